/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole segment file into memory, for a start. Past the page cache where that can be, and by some
 * threads: after a kill the cache holds next to nothing of what was written directly, and its
 * read-ahead is half as fast as the disk. What only the cache has, because a sync failed, comes
 * from there afterwards (file_load_cached).
 */
#include "log/wal/recover_internal.h"

enum { CHUNK = 2 << 20, THREADED_FROM = 8 * CHUNK, HELPERS = 3 };

struct load {
    struct env_file *file;
    uint8_t *data;
    uint64_t bytes; /* of the file when it was opened */
    struct env_mutex *lock;
    uint64_t next, end; /* guarded by lock; `end`: where it turned out to end */
    enum status status;
    struct error err;
};

static void load_chunks(void *context)
{
    struct load *load = context;
    env_lock(load->lock);
    while (load->next < load->end && load->status == STATUS_OK) {
        struct error err;
        uint64_t at = load->next;
        size_t got = 0, wanted = size_min(CHUNK, (size_t)(load->bytes - at));
        load->next += wanted;
        env_unlock(load->lock);
        enum status status = env_read(load->file, at, load->data + at,
                                      (size_t)align_up(wanted, WAL_BLOCK), &got, &err);
        env_lock(load->lock);
        if (status != STATUS_OK && load->status == STATUS_OK) {
            load->status = status;
            load->err = err;
        } else if (status == STATUS_OK && got < wanted && at + got < load->end) {
            load->end = at + got;
        }
    }
    env_unlock(load->lock);
}

static enum status load_all(struct wal *wal, struct load *load, struct error *err)
{
    struct env_thread *helpers[HELPERS] = {0};
    struct error ignored;
    load->lock = env_mutex_create(wal->env);
    if (!load->lock)
        return recover_no_memory(err);
    for (size_t i = 0; i < HELPERS && load->bytes >= THREADED_FROM; i++)
        if (env_thread_start(wal->env, "wal-load", load_chunks, load, &helpers[i], &ignored) !=
            STATUS_OK)
            helpers[i] = NULL; /* then by fewer */
    load_chunks(load);
    for (size_t i = 0; i < HELPERS; i++)
        env_thread_join(helpers[i]);
    env_mutex_destroy(load->lock);
    if (load->status != STATUS_OK)
        *err = load->err;
    return load->status;
}

static enum status load_as(struct wal *wal, const char *path, bool is_direct, uint8_t **out_data,
                           uint64_t *out_bytes, struct error *err)
{
    struct load load = {0};
    struct env_stat stat;
    enum status status =
        env_open(wal->env, path, ENV_READ | (is_direct ? ENV_DIRECT : 0), &load.file, err);
    TRY(status);
    TRY_OR_DONE(status, env_file_stat(load.file, &stat, err));
    load.bytes = load.end = stat.bytes;
    load.data = mem_alloc_aligned(WAL_BLOCK, (size_t)align_up(stat.bytes, WAL_BLOCK) + WAL_BLOCK);
    if (!load.data) {
        status = recover_no_memory(err);
        goto done;
    }
    TRY_OR_DONE(status, load_all(wal, &load, err));
    wal->recovery.bytes_read += load.end;
    *out_data = load.data;
    *out_bytes = load.end;
    load.data = NULL;
done:
    mem_free(load.data);
    env_close(load.file);
    return status;
}

enum status file_load(struct wal *wal, const char *path, uint8_t **out_data, uint64_t *out_bytes,
                      bool *out_is_direct, struct error *err)
{
    enum status status = load_as(wal, path, true, out_data, out_bytes, err);
    *out_is_direct = status == STATUS_OK;
    /* Where there is no direct access an open says so, or a read. */
    return *out_is_direct || status == STATUS_NO_MEMORY
               ? status
               : load_as(wal, path, false, out_data, out_bytes, err);
}

enum status file_load_cached(struct wal *wal, const char *path, uint8_t *data, uint64_t from,
                             uint64_t bytes, bool *out_is_other, struct error *err)
{
    enum { PART = 256 << 10 };
    struct env_file *file = NULL;
    enum status status = STATUS_OK;
    uint64_t at = from, run = 0;
    uint8_t *part = mem_alloc(PART);
    *out_is_other = false;
    if (!part)
        return recover_no_memory(err);
    TRY_OR_DONE(status, env_open(wal->env, path, ENV_READ, &file, err));
    while (at < bytes && env_cached(file, at, bytes - at, &at, &run)) {
        for (uint64_t end = at + run; at < end;) {
            size_t got, wanted = size_min(PART, (size_t)(end - at));
            TRY_OR_DONE(status, env_read(file, at, part, wanted, &got, err));
            if (memcmp(data + at, part, got) != 0) {
                memcpy(data + at, part, got);
                *out_is_other = true;
            }
            if (got < wanted) /* shorter than it was */
                goto done;
            at += got;
        }
    }
done:
    env_close(file);
    mem_free(part);
    return status;
}
