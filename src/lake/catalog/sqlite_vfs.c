/* SPDX-License-Identifier: Apache-2.0
 *
 * SQLite's operating system interface (sqlite3_vfs, sqlite3_io_methods version 1) over struct env,
 * so that the real catalog code runs in a simulated world too.
 *
 * Locking is SQLite's protocol of byte ranges ("File Locking And Concurrency In SQLite Version 3";
 * os_unix.c), because other programs write the same file: PENDING at 2^30, RESERVED behind it, then
 * 510 SHARED bytes. A shared lock is a read lock on the SHARED bytes, taken under a read lock on
 * PENDING; RESERVED is a write lock on its byte; EXCLUSIVE is a write lock on PENDING, then on the
 * SHARED bytes. No shared memory, hence no WAL mode, and no memory mapping.
 */
#include <sqlite3.h>
#include <stdio.h>

#include "lake/catalog/catalog_internal.h"

enum {
    PENDING_BYTE = 0x40000000,
    RESERVED_BYTE = PENDING_BYTE + 1,
    SHARED_FIRST = PENDING_BYTE + 2,
    SHARED_BYTES = 510,
    SECTOR_BYTES = 4096,
};

struct sqlite_vfs {
    sqlite3_vfs base;
    struct env *env;
    char name[40];
};

struct vfs_file {
    sqlite3_file base;
    struct env *env;
    struct env_file *file;
    int lock;            /* SQLITE_LOCK_... */
    bool sync_directory; /* made by us: its name is not durable before the directory is synced */
    bool delete_on_close;
    char path[PATH_BYTES_MAX];
};

static struct vfs_file *file_of(sqlite3_file *base)
{
    return CONTAINER_OF(base, struct vfs_file, base);
}

static struct env *env_of(sqlite3_vfs *base)
{
    return CONTAINER_OF(base, struct sqlite_vfs, base)->env;
}

static int fail_code(const struct error *err, int code)
{
    return err->status == STATUS_NO_MEMORY ? SQLITE_NOMEM : code;
}

static int sync_parent(struct env *env, const char *path)
{
    struct error err;
    char parent[PATH_BYTES_MAX];
    path_parent(parent, path);
    return env_dir_sync(env, parent, &err) == STATUS_OK ? SQLITE_OK : SQLITE_IOERR_DIR_FSYNC;
}

/* ---- files ---- */

static int vfs_close(sqlite3_file *base)
{
    struct vfs_file *file = file_of(base);
    env_close(file->file);
    file->file = NULL;
    if (file->delete_on_close) {
        struct error ignored;
        enum status status = env_remove(file->env, file->path, &ignored);
        UNUSED(status);
    }
    return SQLITE_OK;
}

static int vfs_read(sqlite3_file *base, void *data, int bytes, sqlite3_int64 offset)
{
    struct error err;
    size_t got;
    if (env_read(file_of(base)->file, (uint64_t)offset, data, (size_t)bytes, &got, &err) !=
        STATUS_OK)
        return SQLITE_IOERR_READ;
    if (got == (size_t)bytes)
        return SQLITE_OK;
    memset((char *)data + got, 0, (size_t)bytes - got); /* SQLite relies on the zeros */
    return SQLITE_IOERR_SHORT_READ;
}

static int vfs_write(sqlite3_file *base, const void *data, int bytes, sqlite3_int64 offset)
{
    struct error err;
    if (env_write(file_of(base)->file, (uint64_t)offset, data, (size_t)bytes, &err) == STATUS_OK)
        return SQLITE_OK;
    return err.status == STATUS_NO_SPACE ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

static int vfs_truncate(sqlite3_file *base, sqlite3_int64 bytes)
{
    struct error err;
    return env_truncate(file_of(base)->file, (uint64_t)bytes, &err) == STATUS_OK
               ? SQLITE_OK
               : SQLITE_IOERR_TRUNCATE;
}

static int vfs_sync(sqlite3_file *base, int flags)
{
    UNUSED(flags);
    struct error err;
    struct vfs_file *file = file_of(base);
    if (env_sync(file->file, &err) != STATUS_OK)
        return SQLITE_IOERR_FSYNC;
    if (file->sync_directory) {
        int code = sync_parent(file->env, file->path);
        if (code != SQLITE_OK)
            return code;
        file->sync_directory = false;
    }
    return SQLITE_OK;
}

static int vfs_file_size(sqlite3_file *base, sqlite3_int64 *out_bytes)
{
    struct error err;
    struct env_stat stat;
    if (env_file_stat(file_of(base)->file, &stat, &err) != STATUS_OK)
        return SQLITE_IOERR_FSTAT;
    *out_bytes = (sqlite3_int64)stat.bytes;
    return SQLITE_OK;
}

/* ---- locks ---- */

static int lock_range(struct vfs_file *file, uint64_t offset, uint64_t bytes,
                      enum env_lock_kind kind)
{
    struct error err;
    enum status status = env_lock_range(file->file, offset, bytes, kind, &err);
    if (status == STATUS_OK)
        return SQLITE_OK;
    return status == STATUS_BUSY ? SQLITE_BUSY : SQLITE_IOERR_LOCK;
}

/* Releasing cannot be busy; a failure of it is the disk's. */
static int unlock_range(struct vfs_file *file, uint64_t offset, uint64_t bytes)
{
    return lock_range(file, offset, bytes, ENV_UNLOCK) == SQLITE_OK ? SQLITE_OK
                                                                    : SQLITE_IOERR_UNLOCK;
}

static int lock_shared(struct vfs_file *file)
{
    /* PENDING first: a writer that waits there keeps new readers out. */
    int code = lock_range(file, PENDING_BYTE, 1, ENV_LOCK_SHARED);
    if (code != SQLITE_OK)
        return code;
    code = lock_range(file, SHARED_FIRST, SHARED_BYTES, ENV_LOCK_SHARED);
    int unlock_code = unlock_range(file, PENDING_BYTE, 1);
    if (code == SQLITE_OK && unlock_code != SQLITE_OK)
        unlock_range(file, SHARED_FIRST, SHARED_BYTES);
    return code != SQLITE_OK ? code : unlock_code;
}

static int vfs_lock(sqlite3_file *base, int level)
{
    struct vfs_file *file = file_of(base);
    int code = SQLITE_OK;
    if (file->lock >= level)
        return SQLITE_OK;
    if (level == SQLITE_LOCK_SHARED) {
        code = lock_shared(file);
    } else if (level == SQLITE_LOCK_RESERVED) {
        code = lock_range(file, RESERVED_BYTE, 1, ENV_LOCK_EXCLUSIVE);
    } else {
        if (file->lock < SQLITE_LOCK_PENDING)
            code = lock_range(file, PENDING_BYTE, 1, ENV_LOCK_EXCLUSIVE);
        if (code == SQLITE_OK) {
            /* Kept where EXCLUSIVE is busy: readers leave, none come, and SQLite asks again. */
            file->lock = SQLITE_LOCK_PENDING;
            code = lock_range(file, SHARED_FIRST, SHARED_BYTES, ENV_LOCK_EXCLUSIVE);
        }
    }
    if (code == SQLITE_OK)
        file->lock = level;
    return code;
}

static int vfs_unlock(sqlite3_file *base, int level)
{
    struct vfs_file *file = file_of(base);
    int code = SQLITE_OK;
    if (file->lock <= level)
        return SQLITE_OK;
    if (level == SQLITE_LOCK_SHARED) {
        if (file->lock == SQLITE_LOCK_EXCLUSIVE)
            code = lock_range(file, SHARED_FIRST, SHARED_BYTES, ENV_LOCK_SHARED);
        if (code == SQLITE_OK)
            code = unlock_range(file, PENDING_BYTE, 2);
    } else {
        code = unlock_range(file, PENDING_BYTE, 2 + SHARED_BYTES);
    }
    if (code == SQLITE_OK)
        file->lock = level;
    return code == SQLITE_OK ? SQLITE_OK : SQLITE_IOERR_UNLOCK;
}

/* Asked before a hot journal is rolled back: is its writer alive? */
static int vfs_check_reserved(sqlite3_file *base, int *out_is_reserved)
{
    struct vfs_file *file = file_of(base);
    *out_is_reserved = 1;
    if (file->lock >= SQLITE_LOCK_RESERVED)
        return SQLITE_OK;
    int code = lock_range(file, RESERVED_BYTE, 1, ENV_LOCK_SHARED);
    if (code == SQLITE_BUSY)
        return SQLITE_OK;
    if (code != SQLITE_OK || unlock_range(file, RESERVED_BYTE, 1) != SQLITE_OK)
        return SQLITE_IOERR_CHECKRESERVEDLOCK;
    *out_is_reserved = 0;
    return SQLITE_OK;
}

static int vfs_file_control(sqlite3_file *base, int operation, void *argument)
{
    if (operation != SQLITE_FCNTL_LOCKSTATE)
        return SQLITE_NOTFOUND;
    *(int *)argument = file_of(base)->lock;
    return SQLITE_OK;
}

static int vfs_sector_size(sqlite3_file *base)
{
    UNUSED(base);
    return SECTOR_BYTES;
}

/* Promises nothing: a power cut may tear any sector that was being written. */
static int vfs_characteristics(sqlite3_file *base)
{
    UNUSED(base);
    return 0;
}

static const sqlite3_io_methods file_methods = {
    .iVersion = 1,
    .xClose = vfs_close,
    .xRead = vfs_read,
    .xWrite = vfs_write,
    .xTruncate = vfs_truncate,
    .xSync = vfs_sync,
    .xFileSize = vfs_file_size,
    .xLock = vfs_lock,
    .xUnlock = vfs_unlock,
    .xCheckReservedLock = vfs_check_reserved,
    .xFileControl = vfs_file_control,
    .xSectorSize = vfs_sector_size,
    .xDeviceCharacteristics = vfs_characteristics,
};

/* ---- names and the rest ---- */

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags,
                    int *out_flags)
{
    struct vfs_file *file = file_of(base);
    struct error err;
    memset(file, 0, sizeof *file); /* no methods: SQLite will not call close */
    if (!name || strlen(name) >= sizeof file->path)
        return SQLITE_CANTOPEN; /* temporary files: temp_store=MEMORY makes SQLite not ask for them
                                 */
    file->env = env_of(vfs);
    memcpy(file->path, name, strlen(name) + 1);
    unsigned mode = ENV_READ;
    mode |= flags & SQLITE_OPEN_READWRITE ? ENV_WRITE : 0;
    mode |= flags & SQLITE_OPEN_CREATE ? ENV_CREATE : 0;
    mode |= flags & SQLITE_OPEN_EXCLUSIVE ? ENV_EXCLUSIVE : 0;
    if (env_open(file->env, name, mode, &file->file, &err) != STATUS_OK)
        return fail_code(&err, SQLITE_CANTOPEN);
    /* Also where the name was there: its maker may have died before it synced the directory. */
    file->sync_directory = flags & SQLITE_OPEN_CREATE;
    file->delete_on_close = flags & SQLITE_OPEN_DELETEONCLOSE;
    file->base.pMethods = &file_methods;
    if (out_flags)
        *out_flags = flags;
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync_directory)
{
    struct error err;
    if (env_remove(env_of(vfs), name, &err) != STATUS_OK)
        return err.status == STATUS_NOT_FOUND ? SQLITE_IOERR_DELETE_NOENT : SQLITE_IOERR_DELETE;
    return sync_directory ? sync_parent(env_of(vfs), name) : SQLITE_OK;
}

/* An empty file counts as none, as with SQLite's own: an empty journal is not a hot one. */
static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *out_result)
{
    struct error err;
    struct env_stat stat;
    enum status status = env_path_stat(env_of(vfs), name, &stat, &err);
    if (status != STATUS_OK && status != STATUS_NOT_FOUND)
        return SQLITE_IOERR_ACCESS;
    *out_result = status == STATUS_OK && (flags != SQLITE_ACCESS_EXISTS || stat.bytes > 0);
    return SQLITE_OK;
}

static int vfs_full_path(sqlite3_vfs *vfs, const char *name, int capacity, char *out)
{
    UNUSED(vfs);
    int length = snprintf(out, (size_t)capacity, "%s", name);
    return length >= 0 && length < capacity ? SQLITE_OK : SQLITE_CANTOPEN;
}

static int vfs_randomness(sqlite3_vfs *vfs, int bytes, char *out)
{
    env_random(env_of(vfs), out, (size_t)bytes);
    return bytes;
}

static int vfs_sleep(sqlite3_vfs *vfs, int microseconds)
{
    uint64_t ms = ((uint64_t)microseconds + 999) / 1000;
    env_sleep_ms(env_of(vfs), ms);
    return (int)(ms * 1000);
}

static int vfs_time_ms(sqlite3_vfs *vfs, sqlite3_int64 *out_ms)
{
    const sqlite3_int64 unix_epoch = 210866760000000; /* 1970-01-01 in ms of the Julian day */
    *out_ms = unix_epoch + env_wall_ns(env_of(vfs)) / 1000000;
    return SQLITE_OK;
}

static int vfs_time(sqlite3_vfs *vfs, double *out_days)
{
    sqlite3_int64 ms;
    vfs_time_ms(vfs, &ms);
    *out_days = (double)ms / 86400000.0;
    return SQLITE_OK;
}

static int vfs_last_error(sqlite3_vfs *vfs, int capacity, char *out)
{
    UNUSED(vfs);
    UNUSED(capacity);
    UNUSED(out);
    return 0;
}

enum status sqlite_vfs_create(struct env *env, struct sqlite_vfs **out_vfs, struct error *err)
{
    /* SQLite's list of VFSs holds it: it lives in SQLite's memory, which outlasts a simulated
     * crash. */
    struct sqlite_vfs *vfs = sqlite3_malloc(sizeof *vfs);
    if (!vfs)
        return error_set(err, STATUS_NO_MEMORY, "SQLite: out of memory");
    memset(vfs, 0, sizeof *vfs);
    vfs->env = env;
    snprintf(vfs->name, sizeof vfs->name, "sluice-%p", (void *)vfs);
    vfs->base = (sqlite3_vfs){
        .iVersion = 2,
        .szOsFile = sizeof(struct vfs_file),
        .mxPathname = PATH_BYTES_MAX - 1,
        .zName = vfs->name,
        .xOpen = vfs_open,
        .xDelete = vfs_delete,
        .xAccess = vfs_access,
        .xFullPathname = vfs_full_path,
        .xRandomness = vfs_randomness,
        .xSleep = vfs_sleep,
        .xCurrentTime = vfs_time,
        .xGetLastError = vfs_last_error,
        .xCurrentTimeInt64 = vfs_time_ms,
    };
    if (sqlite3_vfs_register(&vfs->base, 0) != SQLITE_OK) {
        sqlite3_free(vfs);
        return error_set(err, STATUS_NO_MEMORY, "SQLite: cannot register its VFS");
    }
    *out_vfs = vfs;
    return STATUS_OK;
}

void sqlite_vfs_destroy(struct sqlite_vfs *vfs)
{
    if (!vfs)
        return;
    sqlite3_vfs_unregister(&vfs->base);
    sqlite3_free(vfs);
}

const char *sqlite_vfs_name(const struct sqlite_vfs *vfs)
{
    return vfs->name;
}
