/* SPDX-License-Identifier: Apache-2.0
 *
 * struct env: the world as a table of functions.
 *
 * Paths are absolute or relative to the working directory; they are borrowed for the call. A handle
 * belongs to its opener and may be used from several threads for reads; writes to one file are the
 * callers' to order. A short read at the end of a file is not an error; a short write is retried
 * inside until it is whole or fails. After a failed sync nothing in that file can be trusted (L24).
 *
 * Every call is a point where the simulated twin may switch threads, fail, tear, or cut the power.
 */
#ifndef SLUICE_OS_ENV_H
#define SLUICE_OS_ENV_H

#include <stdatomic.h>

#include "base/base.h"

struct env;
struct env_file;
struct env_mutex;
struct env_cond;
struct env_thread;

enum env_open_flags {
    ENV_READ = 1,
    ENV_WRITE = 2,
    ENV_CREATE = 4,    /* if missing */
    ENV_EXCLUSIVE = 8, /* with ENV_CREATE: EXISTS if there */
    ENV_TRUNCATE = 16,
    ENV_DIRECT = 32, /* O_DIRECT; UNSUPPORTED where the file system has none, here or at a write of
                        other than its blocks */
    ENV_DSYNC = 64,  /* O_DSYNC: each write is durable when it returns, as if env_sync had followed
                        for these bytes alone */
    ENV_PRIVATE = 128, /* with ENV_CREATE: its owner's alone; else its group may read it too */
};

struct env_stat {
    uint64_t bytes;
    uint64_t allocated_bytes; /* blocks, the unit of every budget (L37) */
    uint64_t device, inode;
    uint32_t link_count;
    bool is_directory;
    bool is_pipe; /* or a socket: it has no offsets; what is left of it is only known at its end */
    bool is_device;      /* a terminal too */
    int64_t modified_ns; /* Unix time */
};

struct env_volume {
    uint64_t bytes_total, bytes_free; /* free to this process */
    uint64_t device;
};

struct env_slice {
    const void *data;
    size_t bytes;
};

enum env_lock_kind { ENV_UNLOCK, ENV_LOCK_SHARED, ENV_LOCK_EXCLUSIVE };

/* Called by dir_list for each name but "." and "..", in no order; false ends the listing. */
typedef bool (*env_name_fn)(void *context, const char *name);

struct env_ops {
    /* files */
    enum status (*file_open)(struct env *env, const char *path, unsigned flags,
                             struct env_file **out_file, struct error *err);
    void (*file_close)(struct env_file *file);
    enum status (*file_read)(struct env_file *file, uint64_t offset, void *data, size_t bytes,
                             size_t *out_bytes, struct error *err);
    enum status (*file_write)(struct env_file *file, uint64_t offset,
                              const struct env_slice *slices, size_t count, struct error *err);
    enum status (*file_sync)(struct env_file *file, struct error *err); /* data and its metadata */
    enum status (*file_truncate)(struct env_file *file, uint64_t bytes, struct error *err);
    enum status (*file_allocate)(struct env_file *file, uint64_t bytes, struct error *err);
    enum status (*file_stat)(struct env_file *file, struct env_stat *out_stat, struct error *err);
    enum status (*file_lock)(struct env_file *file, struct error *err); /* BUSY if held elsewhere */

    /* names; a change of a directory lasts once dir_sync has returned */
    enum status (*path_stat)(struct env *env, const char *path, struct env_stat *out_stat,
                             struct error *err);
    enum status (*path_rename)(struct env *env, const char *from, const char *to,
                               struct error *err);
    enum status (*path_rename_new)(struct env *env, const char *from, const char *to,
                                   struct error *err); /* EXISTS if `to` does; then as it was */
    enum status (*path_remove)(struct env *env, const char *path, struct error *err);
    enum status (*dir_make)(struct env *env, const char *path, struct error *err);   /* EXISTS */
    enum status (*dir_remove)(struct env *env, const char *path, struct error *err); /* empty one */
    enum status (*dir_sync)(struct env *env, const char *path, struct error *err);
    enum status (*dir_list)(struct env *env, const char *path, env_name_fn each, void *context,
                            struct error *err);
    enum status (*volume_stat)(struct env *env, const char *path, struct env_volume *out_volume,
                               struct error *err);

    /* clock and randomness */
    int64_t (*clock_wall_ns)(struct env *env); /* Unix time, may step */
    int64_t (*clock_mono_ns)(struct env *env);
    void (*sleep_ms)(struct env *env, uint64_t ms);
    void (*random)(struct env *env, void *data, size_t bytes); /* for identities */

    /* threads; a mutex is not recursive */
    struct env_mutex *(*mutex_create)(struct env *env); /* NULL: out of memory */
    void (*mutex_destroy)(struct env_mutex *mutex);
    void (*mutex_lock)(struct env_mutex *mutex);
    void (*mutex_unlock)(struct env_mutex *mutex);
    struct env_cond *(*cond_create)(struct env *env);
    void (*cond_destroy)(struct env_cond *cond);
    void (*cond_signal)(struct env_cond *cond);
    void (*cond_broadcast)(struct env_cond *cond);
    /* False when `timeout_ms` passed first; UINT64_MAX waits for ever. Wakes may be spurious. */
    bool (*cond_wait)(struct env_cond *cond, struct env_mutex *mutex, uint64_t timeout_ms);
    enum status (*thread_start)(struct env *env, const char *name, void (*run)(void *context),
                                void *context, struct env_thread **out_thread, struct error *err);
    void (*thread_join)(struct env_thread *thread); /* and frees it */

    /* Ends the process at once, as after a failed sync (L24). The simulated twin crashes the node.
     */
    void (*fatal_exit)(struct env *env, int exit_code, const char *why);

    /* Advisory lock on a range of bytes, owned by the handle, seen by other handles and, as fcntl
     * locks are, by other programs. Replaces what the handle holds there. BUSY, at once, if held
     * elsewhere. NULL: always granted, for a world in which one handle at a time opens such files.
     */
    enum status (*file_range_lock)(struct env_file *file, uint64_t offset, uint64_t bytes,
                                   enum env_lock_kind kind, struct error *err);
    /* See env_cached. NULL: all of it is. */
    bool (*file_cached)(struct env_file *file, uint64_t offset, uint64_t bytes, uint64_t *out_from,
                        uint64_t *out_bytes);
};

struct env {
    const struct env_ops *ops;
};
struct env_file {
    const struct env_ops *ops;
};
struct env_mutex {
    const struct env_ops *ops;
};
struct env_cond {
    const struct env_ops *ops;
};
struct env_thread {
    const struct env_ops *ops;
};

struct env *env_real(void); /* the process's own world; lives for ever, any thread */
/* A fatal exit of the real world waits for so long after its message: other threads may still write
 * answers. 0, the default: it ends at once. */
void os_fatal_exit_delay(unsigned ms);

static inline MUST_CHECK enum status env_open(struct env *env, const char *path, unsigned flags,
                                              struct env_file **out_file, struct error *err)
{
    return env->ops->file_open(env, path, flags, out_file, err);
}

static inline void env_close(struct env_file *file) /* accepts NULL */
{
    if (file)
        file->ops->file_close(file);
}

static inline MUST_CHECK enum status env_read(struct env_file *file, uint64_t offset, void *data,
                                              size_t bytes, size_t *out_bytes, struct error *err)
{
    return file->ops->file_read(file, offset, data, bytes, out_bytes, err);
}

static inline MUST_CHECK enum status env_writev(struct env_file *file, uint64_t offset,
                                                const struct env_slice *slices, size_t count,
                                                struct error *err)
{
    return file->ops->file_write(file, offset, slices, count, err);
}

static inline MUST_CHECK enum status env_write(struct env_file *file, uint64_t offset,
                                               const void *data, size_t bytes, struct error *err)
{
    struct env_slice slice = {.data = data, .bytes = bytes};
    return file->ops->file_write(file, offset, &slice, 1, err);
}

static inline MUST_CHECK enum status env_sync(struct env_file *file, struct error *err)
{
    return file->ops->file_sync(file, err);
}

static inline MUST_CHECK enum status env_truncate(struct env_file *file, uint64_t bytes,
                                                  struct error *err)
{
    return file->ops->file_truncate(file, bytes, err);
}

/* Reserves blocks for [0, bytes) and makes the file that long. */
static inline MUST_CHECK enum status env_allocate(struct env_file *file, uint64_t bytes,
                                                  struct error *err)
{
    return file->ops->file_allocate(file, bytes, err);
}

static inline MUST_CHECK enum status env_file_stat(struct env_file *file, struct env_stat *out_stat,
                                                   struct error *err)
{
    return file->ops->file_stat(file, out_stat, err);
}

static inline MUST_CHECK enum status env_lock_file(struct env_file *file, struct error *err)
{
    return file->ops->file_lock(file, err);
}

static inline MUST_CHECK enum status env_lock_range(struct env_file *file, uint64_t offset,
                                                    uint64_t bytes, enum env_lock_kind kind,
                                                    struct error *err)
{
    return file->ops->file_range_lock ? file->ops->file_range_lock(file, offset, bytes, kind, err)
                                      : STATUS_OK;
}

/* The first run of [offset, offset + bytes) that a read may find in the page cache; false: nothing
 * of it is there, and a direct read sees all that others do. */
static inline bool env_cached(struct env_file *file, uint64_t offset, uint64_t bytes,
                              uint64_t *out_from, uint64_t *out_bytes)
{
    if (bytes > 0 && file->ops->file_cached)
        return file->ops->file_cached(file, offset, bytes, out_from, out_bytes);
    *out_from = offset;
    *out_bytes = bytes;
    return bytes > 0;
}

static inline MUST_CHECK enum status env_path_stat(struct env *env, const char *path,
                                                   struct env_stat *out_stat, struct error *err)
{
    return env->ops->path_stat(env, path, out_stat, err);
}

static inline MUST_CHECK enum status env_rename(struct env *env, const char *from, const char *to,
                                                struct error *err)
{
    return env->ops->path_rename(env, from, to, err);
}

static inline MUST_CHECK enum status env_rename_new(struct env *env, const char *from,
                                                    const char *to, struct error *err)
{
    return env->ops->path_rename_new(env, from, to, err);
}

static inline MUST_CHECK enum status env_remove(struct env *env, const char *path,
                                                struct error *err)
{
    return env->ops->path_remove(env, path, err);
}

static inline MUST_CHECK enum status env_dir_make(struct env *env, const char *path,
                                                  struct error *err)
{
    return env->ops->dir_make(env, path, err);
}

static inline MUST_CHECK enum status env_dir_remove(struct env *env, const char *path,
                                                    struct error *err)
{
    return env->ops->dir_remove(env, path, err);
}

static inline MUST_CHECK enum status env_dir_sync(struct env *env, const char *path,
                                                  struct error *err)
{
    return env->ops->dir_sync(env, path, err);
}

static inline MUST_CHECK enum status
env_dir_list(struct env *env, const char *path, env_name_fn each, void *context, struct error *err)
{
    return env->ops->dir_list(env, path, each, context, err);
}

static inline MUST_CHECK enum status
env_volume_stat(struct env *env, const char *path, struct env_volume *out_volume, struct error *err)
{
    return env->ops->volume_stat(env, path, out_volume, err);
}

static inline int64_t env_wall_ns(struct env *env)
{
    return env->ops->clock_wall_ns(env);
}

static inline int64_t env_mono_ns(struct env *env)
{
    return env->ops->clock_mono_ns(env);
}

static inline void env_sleep_ms(struct env *env, uint64_t ms)
{
    env->ops->sleep_ms(env, ms);
}

static inline void env_random(struct env *env, void *data, size_t bytes)
{
    env->ops->random(env, data, bytes);
}

static inline struct env_mutex *env_mutex_create(struct env *env)
{
    return env->ops->mutex_create(env);
}

static inline void env_mutex_destroy(struct env_mutex *mutex) /* accepts NULL */
{
    if (mutex)
        mutex->ops->mutex_destroy(mutex);
}

static inline void env_lock(struct env_mutex *mutex)
{
    mutex->ops->mutex_lock(mutex);
}

static inline void env_unlock(struct env_mutex *mutex)
{
    mutex->ops->mutex_unlock(mutex);
}

static inline struct env_cond *env_cond_create(struct env *env)
{
    return env->ops->cond_create(env);
}

static inline void env_cond_destroy(struct env_cond *cond) /* accepts NULL */
{
    if (cond)
        cond->ops->cond_destroy(cond);
}

static inline void env_signal(struct env_cond *cond)
{
    cond->ops->cond_signal(cond);
}

static inline void env_broadcast(struct env_cond *cond)
{
    cond->ops->cond_broadcast(cond);
}

static inline bool env_wait(struct env_cond *cond, struct env_mutex *mutex, uint64_t timeout_ms)
{
    return cond->ops->cond_wait(cond, mutex, timeout_ms);
}

static inline MUST_CHECK enum status env_thread_start(struct env *env, const char *name,
                                                      void (*run)(void *context), void *context,
                                                      struct env_thread **out_thread,
                                                      struct error *err)
{
    return env->ops->thread_start(env, name, run, context, out_thread, err);
}

static inline void env_thread_join(struct env_thread *thread) /* accepts NULL */
{
    if (thread)
        thread->ops->thread_join(thread);
}

static inline void env_fatal_exit(struct env *env, int exit_code, const char *why)
{
    env->ops->fatal_exit(env, exit_code, why);
}

#endif
