/* SPDX-License-Identifier: Apache-2.0
 *
 * The real world: POSIX files and threads. file_sync is fdatasync, which on Linux also flushes the
 * device cache and the metadata needed to read the data back (size, extents); a new or renamed name
 * lasts only after dir_sync.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "os/os.h"

static const struct env_ops real_ops;

struct real_file {
    struct env_file base;
    int fd;
    bool is_direct;
    char name[64]; /* end of the path, for messages */
};

static struct real_file *real_file(struct env_file *file)
{
    return CONTAINER_OF(file, struct real_file, base);
}

static enum status real_open(struct env *env, const char *path, unsigned flags,
                             struct env_file **out_file, struct error *err)
{
    UNUSED(env);
    int mode = O_CLOEXEC;
    if ((flags & ENV_READ) && (flags & ENV_WRITE))
        mode |= O_RDWR;
    else if (flags & ENV_WRITE)
        mode |= O_WRONLY;
    mode |= flags & ENV_CREATE ? O_CREAT : 0;
    mode |= flags & ENV_EXCLUSIVE ? O_EXCL : 0;
    mode |= flags & ENV_TRUNCATE ? O_TRUNC : 0;
    mode |= flags & ENV_DIRECT ? O_DIRECT : 0;
    mode |= flags & ENV_DSYNC ? O_DSYNC : 0;
    struct real_file *file = mem_alloc_zero(1, sizeof *file);
    if (!file)
        return error_set(err, STATUS_NO_MEMORY, "open %s: out of memory", path);
    do
        file->fd = open(path, mode, flags & ENV_PRIVATE ? 0600 : 0640);
    while (file->fd < 0 && errno == EINTR);
    if (file->fd < 0) {
        int code = errno;
        mem_free(file);
        if (code == EINVAL && (flags & ENV_DIRECT))
            return error_set(err, STATUS_UNSUPPORTED, "open %s: no direct access here", path);
        return error_set_errno(err, code, "open %s", path);
    }
    file->base.ops = &real_ops;
    file->is_direct = flags & ENV_DIRECT;
    size_t length = strlen(path), skip = length > 60 ? length - 60 : 0;
    snprintf(file->name, sizeof file->name, "%s", path + skip);
    *out_file = &file->base;
    return STATUS_OK;
}

static void real_close(struct env_file *base)
{
    struct real_file *file = real_file(base);
    close(file->fd);
    mem_free(file);
}

static enum status real_read(struct env_file *base, uint64_t offset, void *data, size_t bytes,
                             size_t *out_bytes, struct error *err)
{
    struct real_file *file = real_file(base);
    size_t got = 0;
    while (got < bytes) {
        ssize_t part = pread(file->fd, (char *)data + got, bytes - got, (off_t)(offset + got));
        if (part == 0)
            break;
        if (part < 0) {
            if (errno == EINTR)
                continue;
            return error_set_errno(err, errno, "read %s at %llu", file->name,
                                   (unsigned long long)(offset + got));
        }
        got += (size_t)part;
    }
    *out_bytes = got;
    return STATUS_OK;
}

/* A page that is not certain to be absent counts as there. */
static bool real_cached(struct env_file *base, uint64_t offset, uint64_t bytes, uint64_t *out_from,
                        uint64_t *out_bytes)
{
    enum { PAGE = 4096, SPAN = 16 << 20 };
    const struct real_file *file = real_file(base);
    uint64_t end = offset + bytes, at = offset / PAGE * PAGE;
    unsigned char resident[SPAN / PAGE];
    uint64_t from = end;
    for (; at < end; at += SPAN) {
        size_t span = end - at < SPAN ? (size_t)(end - at) : SPAN, pages = (span + PAGE - 1) / PAGE;
        void *map = mmap(NULL, span, PROT_READ, MAP_SHARED, file->fd, (off_t)at);
        if (map == MAP_FAILED || mincore(map, span, resident) != 0)
            memset(resident, 1, pages);
        if (map != MAP_FAILED)
            munmap(map, span);
        for (size_t i = 0; i < pages; i++) {
            uint64_t page = at + i * PAGE < offset ? offset : at + i * PAGE;
            if ((resident[i] & 1) && from == end)
                from = page;
            if (!(resident[i] & 1) && from < end) {
                *out_from = from;
                *out_bytes = page - from;
                return true;
            }
        }
    }
    *out_from = from;
    *out_bytes = end - from;
    return from < end;
}

static enum status real_write(struct env_file *base, uint64_t offset,
                              const struct env_slice *slices, size_t count, struct error *err)
{
    enum { BATCH = 64 };
    struct real_file *file = real_file(base);
    size_t index = 0, skip = 0; /* the first slice not written whole, and bytes of it done */
    while (index < count) {
        struct iovec parts[BATCH];
        int used = 0;
        for (size_t i = index; i < count && used < BATCH; i++) {
            size_t done = i == index ? skip : 0;
            parts[used].iov_base = (void *)((uintptr_t)slices[i].data + done);
            parts[used].iov_len = slices[i].bytes - done;
            used++;
        }
        ssize_t written = pwritev(file->fd, parts, used, (off_t)offset);
        if (written < 0) {
            if (errno == EINTR)
                continue;
            if (errno == EINVAL && file->is_direct)
                return error_set(err, STATUS_UNSUPPORTED, "write %s: no direct access in %zu bytes",
                                 file->name, slices[index].bytes - skip);
            return error_set_errno(err, errno, "write %s at %llu", file->name,
                                   (unsigned long long)offset);
        }
        offset += (uint64_t)written;
        size_t rest = (size_t)written + skip;
        while (index < count && rest >= slices[index].bytes)
            rest -= slices[index++].bytes;
        skip = rest;
    }
    return STATUS_OK;
}

static enum status real_sync(struct env_file *base, struct error *err)
{
    struct real_file *file = real_file(base);
    if (fdatasync(file->fd) != 0)
        return error_set_errno(err, errno, "sync %s", file->name);
    return STATUS_OK;
}

static enum status real_truncate(struct env_file *base, uint64_t bytes, struct error *err)
{
    struct real_file *file = real_file(base);
    if (ftruncate(file->fd, (off_t)bytes) != 0)
        return error_set_errno(err, errno, "truncate %s", file->name);
    return STATUS_OK;
}

static enum status real_allocate(struct env_file *base, uint64_t bytes, struct error *err)
{
    struct real_file *file = real_file(base);
    int code;
    do
        code = posix_fallocate(file->fd, 0, (off_t)bytes);
    while (code == EINTR);
    if (code != 0)
        return error_set_errno(err, code, "allocate %llu bytes for %s", (unsigned long long)bytes,
                               file->name);
    return STATUS_OK;
}

static void fill_stat(const struct stat *from, struct env_stat *to)
{
    *to = (struct env_stat){
        .bytes = (uint64_t)from->st_size,
        .allocated_bytes = (uint64_t)from->st_blocks * 512,
        .device = (uint64_t)from->st_dev,
        .inode = (uint64_t)from->st_ino,
        .link_count = (uint32_t)from->st_nlink,
        .is_directory = S_ISDIR(from->st_mode),
        .is_pipe = S_ISFIFO(from->st_mode) || S_ISSOCK(from->st_mode),
        .is_device = S_ISCHR(from->st_mode) || S_ISBLK(from->st_mode),
        .modified_ns = (int64_t)from->st_mtim.tv_sec * 1000000000 + from->st_mtim.tv_nsec,
    };
}

enum status os_absolute_path(const char *path, char out[PATH_BYTES_MAX], struct error *err)
{
    char directory[PATH_BYTES_MAX];
    if (path[0] == '/') {
        if (snprintf(out, PATH_BYTES_MAX, "%s", path) >= PATH_BYTES_MAX)
            return error_set(err, STATUS_INVALID, "path too long: %.200s", path);
        return STATUS_OK;
    }
    if (!getcwd(directory, sizeof directory))
        return error_set_errno(err, errno, "working directory");
    while (strncmp(path, "./", 2) == 0)
        path += 2;
    return path_join(out, directory, path, err);
}

static enum status real_file_stat(struct env_file *base, struct env_stat *out_stat,
                                  struct error *err)
{
    struct real_file *file = real_file(base);
    struct stat stat;
    if (fstat(file->fd, &stat) != 0)
        return error_set_errno(err, errno, "stat %s", file->name);
    fill_stat(&stat, out_stat);
    return STATUS_OK;
}

/* A file without a name, of this process alone; in memory where the file system has none. */
static int open_unnamed(void)
{
    const char *dir = getenv("TMPDIR");
    int fd = open(dir && dir[0] ? dir : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return fd >= 0 ? fd : memfd_create("sluice-spool", MFD_CLOEXEC);
}

static enum status write_whole(int fd, const char *data, size_t bytes, struct error *err)
{
    while (bytes > 0) {
        ssize_t part = write(fd, data, bytes);
        if (part < 0 && errno != EINTR)
            return error_set_errno(err, errno, "write what a pipe gave into $TMPDIR or /tmp");
        data += part > 0 ? part : 0;
        bytes -= part > 0 ? (size_t)part : 0;
    }
    return STATUS_OK;
}

static enum status spool(int from, int to, const char *name, uint64_t bytes_max, struct error *err)
{
    enum { CHUNK_BYTES = 1 << 16 };
    char *chunk = mem_alloc(CHUNK_BYTES);
    uint64_t total = 0;
    enum status status = chunk ? STATUS_OK : error_set(err, STATUS_NO_MEMORY, "out of memory");
    while (status == STATUS_OK) {
        ssize_t part = read(from, chunk, CHUNK_BYTES);
        if (part == 0)
            break;
        if (part < 0 && errno == EINTR)
            continue;
        total += part > 0 ? (uint64_t)part : 0;
        if (part < 0)
            status = error_set_errno(err, errno, "read %s", name);
        else if (total > bytes_max)
            status = error_set(err, STATUS_LIMIT,
                               "%s: more than %llu bytes from a pipe; a file may have more", name,
                               (unsigned long long)bytes_max);
        else
            status = write_whole(to, chunk, (size_t)part, err);
    }
    mem_free(chunk);
    return status;
}

enum status os_file_spool(struct env_file *base, uint64_t bytes_max, struct error *err)
{
    struct real_file *file = real_file(base);
    CHECK(base->ops == &real_ops);
    int fd = open_unnamed();
    if (fd < 0)
        return error_set_errno(err, errno, "a place for what a pipe gives");
    enum status status = spool(file->fd, fd, file->name, bytes_max, err);
    close(status == STATUS_OK ? file->fd : fd);
    if (status == STATUS_OK)
        file->fd = fd;
    return status;
}

static enum status real_lock(struct env_file *base, struct error *err)
{
    struct real_file *file = real_file(base);
    if (flock(file->fd, LOCK_EX | LOCK_NB) != 0)
        return error_set_errno(err, errno, "lock %s", file->name);
    return STATUS_OK;
}

/* Locks of the open file description: unlike classic POSIX locks they belong to the handle, are not
 * dropped when another handle of this process closes the file, and yet conflict with the classic
 * ones of other programs. */
static enum status real_range_lock(struct env_file *base, uint64_t offset, uint64_t bytes,
                                   enum env_lock_kind kind, struct error *err)
{
    static const short types[] = {
        [ENV_UNLOCK] = F_UNLCK, [ENV_LOCK_SHARED] = F_RDLCK, [ENV_LOCK_EXCLUSIVE] = F_WRLCK};
    struct real_file *file = real_file(base);
    struct flock lock = {.l_type = types[kind],
                         .l_whence = SEEK_SET,
                         .l_start = (off_t)offset,
                         .l_len = (off_t)bytes};
    int result;
    do
        result = fcntl(file->fd, F_OFD_SETLK, &lock);
    while (result != 0 && errno == EINTR);
    if (result == 0)
        return STATUS_OK;
    int code = errno == EACCES ? EAGAIN : errno;
    return error_set_errno(err, code, "lock %s at %llu", file->name, (unsigned long long)offset);
}

static enum status real_path_stat(struct env *env, const char *path, struct env_stat *out_stat,
                                  struct error *err)
{
    UNUSED(env);
    struct stat stat_buffer;
    if (stat(path, &stat_buffer) != 0)
        return error_set_errno(err, errno, "stat %s", path);
    fill_stat(&stat_buffer, out_stat);
    return STATUS_OK;
}

static enum status real_rename(struct env *env, const char *from, const char *to, struct error *err)
{
    UNUSED(env);
    if (rename(from, to) != 0)
        return error_set_errno(err, errno, "rename %s to %s", from, to);
    return STATUS_OK;
}

static enum status real_rename_new(struct env *env, const char *from, const char *to,
                                   struct error *err)
{
    UNUSED(env);
    int result = renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
    if (result != 0 && (errno == EINVAL || errno == ENOSYS)) { /* NFS and others: in two steps */
        result = link(from, to);
        if (result == 0)
            unlink(from); /* if not: it is there all the same, and the old name stays too */
    }
    if (result != 0)
        return error_set_errno(err, errno, "rename %s to the new %s", from, to);
    return STATUS_OK;
}

static enum status real_remove(struct env *env, const char *path, struct error *err)
{
    UNUSED(env);
    if (unlink(path) != 0)
        return error_set_errno(err, errno, "remove %s", path);
    return STATUS_OK;
}

static enum status real_dir_make(struct env *env, const char *path, struct error *err)
{
    UNUSED(env);
    if (mkdir(path, 0750) != 0)
        return error_set_errno(err, errno, "make directory %s", path);
    return STATUS_OK;
}

static enum status real_dir_remove(struct env *env, const char *path, struct error *err)
{
    UNUSED(env);
    if (rmdir(path) != 0)
        return error_set_errno(err, errno, "remove directory %s", path);
    return STATUS_OK;
}

static enum status real_dir_sync(struct env *env, const char *path, struct error *err)
{
    UNUSED(env);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, errno, "open directory %s", path);
    int result = fsync(fd), code = errno;
    close(fd);
    if (result != 0)
        return error_set_errno(err, code, "sync directory %s", path);
    return STATUS_OK;
}

static enum status real_dir_list(struct env *env, const char *path, env_name_fn each, void *context,
                                 struct error *err)
{
    UNUSED(env);
    DIR *dir = opendir(path);
    if (!dir)
        return error_set_errno(err, errno, "list %s", path);
    enum status status = STATUS_OK;
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(dir);
        if (!entry) {
            if (errno)
                status = error_set_errno(err, errno, "list %s", path);
            break;
        }
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (!each(context, entry->d_name))
            break;
    }
    closedir(dir);
    return status;
}

static enum status real_volume_stat(struct env *env, const char *path,
                                    struct env_volume *out_volume, struct error *err)
{
    UNUSED(env);
    struct statvfs volume;
    struct stat stat_buffer;
    if (statvfs(path, &volume) != 0 || stat(path, &stat_buffer) != 0)
        return error_set_errno(err, errno, "volume of %s", path);
    *out_volume = (struct env_volume){
        .bytes_total = (uint64_t)volume.f_blocks * volume.f_frsize,
        .bytes_free = (uint64_t)volume.f_bavail * volume.f_frsize,
        .device = (uint64_t)stat_buffer.st_dev,
    };
    return STATUS_OK;
}

static int64_t read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t real_wall_ns(struct env *env)
{
    UNUSED(env);
    return read_clock(CLOCK_REALTIME);
}

static int64_t real_mono_ns(struct env *env)
{
    UNUSED(env);
    return read_clock(CLOCK_MONOTONIC);
}

static void real_sleep_ms(struct env *env, uint64_t ms)
{
    UNUSED(env);
    struct timespec rest = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR)
        continue;
}

static void real_random(struct env *env, void *data, size_t bytes)
{
    UNUSED(env);
    unsigned char *to = data;
    while (bytes > 0) {
        ssize_t got = getrandom(to, size_min(bytes, 256), 0);
        if (got < 0 && errno == EINTR)
            continue;
        CHECK(got > 0);
        to += got;
        bytes -= (size_t)got;
    }
}

struct real_mutex {
    struct env_mutex base;
    pthread_mutex_t mutex;
};

struct real_cond {
    struct env_cond base;
    pthread_cond_t cond;
};

struct real_thread {
    struct env_thread base;
    pthread_t thread;
    void (*run)(void *context);
    void *context;
};

static struct env_mutex *real_mutex_create(struct env *env)
{
    UNUSED(env);
    struct real_mutex *mutex = mem_alloc_zero(1, sizeof *mutex);
    if (!mutex)
        return NULL;
    mutex->base.ops = &real_ops;
    CHECK(pthread_mutex_init(&mutex->mutex, NULL) == 0);
    return &mutex->base;
}

static pthread_mutex_t *real_mutex(struct env_mutex *base)
{
    return &CONTAINER_OF(base, struct real_mutex, base)->mutex;
}

static void real_mutex_destroy(struct env_mutex *base)
{
    CHECK(pthread_mutex_destroy(real_mutex(base)) == 0);
    mem_free(CONTAINER_OF(base, struct real_mutex, base));
}

static void real_mutex_lock(struct env_mutex *base)
{
    CHECK(pthread_mutex_lock(real_mutex(base)) == 0);
}

static void real_mutex_unlock(struct env_mutex *base)
{
    CHECK(pthread_mutex_unlock(real_mutex(base)) == 0);
}

static struct env_cond *real_cond_create(struct env *env)
{
    UNUSED(env);
    struct real_cond *cond = mem_alloc_zero(1, sizeof *cond);
    if (!cond)
        return NULL;
    cond->base.ops = &real_ops;
    pthread_condattr_t attributes;
    CHECK(pthread_condattr_init(&attributes) == 0);
    CHECK(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0);
    CHECK(pthread_cond_init(&cond->cond, &attributes) == 0);
    pthread_condattr_destroy(&attributes);
    return &cond->base;
}

static pthread_cond_t *real_cond(struct env_cond *base)
{
    return &CONTAINER_OF(base, struct real_cond, base)->cond;
}

static void real_cond_destroy(struct env_cond *base)
{
    CHECK(pthread_cond_destroy(real_cond(base)) == 0);
    mem_free(CONTAINER_OF(base, struct real_cond, base));
}

static void real_cond_signal(struct env_cond *base)
{
    CHECK(pthread_cond_signal(real_cond(base)) == 0);
}

static void real_cond_broadcast(struct env_cond *base)
{
    CHECK(pthread_cond_broadcast(real_cond(base)) == 0);
}

static bool real_cond_wait(struct env_cond *base, struct env_mutex *mutex, uint64_t timeout_ms)
{
    if (timeout_ms == UINT64_MAX) {
        CHECK(pthread_cond_wait(real_cond(base), real_mutex(mutex)) == 0);
        return true;
    }
    int64_t until = read_clock(CLOCK_MONOTONIC) + (int64_t)(timeout_ms * 1000000);
    struct timespec deadline = {.tv_sec = (time_t)(until / 1000000000),
                                .tv_nsec = (long)(until % 1000000000)};
    int code = pthread_cond_timedwait(real_cond(base), real_mutex(mutex), &deadline);
    CHECK(code == 0 || code == ETIMEDOUT);
    return code == 0;
}

static void *thread_main(void *context)
{
    struct real_thread *thread = context;
    thread->run(thread->context);
    return NULL;
}

/* What ends the process reaches the thread that began it, which makes and names files. */
static void block_endings(sigset_t *out_before)
{
    sigset_t endings;
    sigemptyset(&endings);
    sigaddset(&endings, SIGHUP);
    sigaddset(&endings, SIGINT);
    sigaddset(&endings, SIGQUIT);
    sigaddset(&endings, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &endings, out_before);
}

static enum status real_thread_start(struct env *env, const char *name, void (*run)(void *context),
                                     void *context, struct env_thread **out_thread,
                                     struct error *err)
{
    UNUSED(env);
    struct real_thread *thread = mem_alloc_zero(1, sizeof *thread);
    if (!thread)
        return error_set(err, STATUS_NO_MEMORY, "start thread %s: out of memory", name);
    thread->base.ops = &real_ops;
    thread->run = run;
    thread->context = context;
    sigset_t before;
    block_endings(&before);
    int code = pthread_create(&thread->thread, NULL, thread_main, thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0) {
        mem_free(thread);
        return error_set_errno(err, code, "start thread %s", name);
    }
    char short_name[16];
    snprintf(short_name, sizeof short_name, "%s", name);
    pthread_setname_np(thread->thread, short_name);
    *out_thread = &thread->base;
    return STATUS_OK;
}

static void real_thread_join(struct env_thread *base)
{
    struct real_thread *thread = CONTAINER_OF(base, struct real_thread, base);
    CHECK(pthread_join(thread->thread, NULL) == 0);
    mem_free(thread);
}

static _Atomic unsigned fatal_exit_delay_ms;

void os_fatal_exit_delay(unsigned ms)
{
    atomic_store(&fatal_exit_delay_ms, ms);
}

static void real_fatal_exit(struct env *env, int exit_code, const char *why)
{
    unsigned delay_ms = atomic_load(&fatal_exit_delay_ms);
    log_line(LOG_ERROR, "ending: %s", why);
    if (delay_ms)
        env_sleep_ms(env, delay_ms);
    _exit(exit_code);
}

static const struct env_ops real_ops = {
    .file_open = real_open,
    .file_close = real_close,
    .file_read = real_read,
    .file_cached = real_cached,
    .file_write = real_write,
    .file_sync = real_sync,
    .file_truncate = real_truncate,
    .file_allocate = real_allocate,
    .file_stat = real_file_stat,
    .file_lock = real_lock,
    .path_stat = real_path_stat,
    .path_rename = real_rename,
    .path_rename_new = real_rename_new,
    .path_remove = real_remove,
    .dir_make = real_dir_make,
    .dir_remove = real_dir_remove,
    .dir_sync = real_dir_sync,
    .dir_list = real_dir_list,
    .volume_stat = real_volume_stat,
    .clock_wall_ns = real_wall_ns,
    .clock_mono_ns = real_mono_ns,
    .sleep_ms = real_sleep_ms,
    .random = real_random,
    .mutex_create = real_mutex_create,
    .mutex_destroy = real_mutex_destroy,
    .mutex_lock = real_mutex_lock,
    .mutex_unlock = real_mutex_unlock,
    .cond_create = real_cond_create,
    .cond_destroy = real_cond_destroy,
    .cond_signal = real_cond_signal,
    .cond_broadcast = real_cond_broadcast,
    .cond_wait = real_cond_wait,
    .thread_start = real_thread_start,
    .thread_join = real_thread_join,
    .fatal_exit = real_fatal_exit,
    .file_range_lock = real_range_lock,
};

struct env *env_real(void)
{
    static struct env real = {.ops = &real_ops};
    return &real;
}
