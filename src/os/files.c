/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers over struct env; no system calls of their own.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "os/os.h"

enum status path_join(char out[PATH_BYTES_MAX], const char *a, const char *b, struct error *err)
{
    int length = snprintf(out, PATH_BYTES_MAX, "%s/%s", a, b);
    if (length < 0 || length >= PATH_BYTES_MAX)
        return error_set(err, STATUS_INVALID, "path too long: %.200s/%.200s", a, b);
    return STATUS_OK;
}

void path_parent(char out[PATH_BYTES_MAX], const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (!slash)
        memcpy(out, ".", 2);
    else if (length == 0)
        memcpy(out, "/", 2);
    else
        snprintf(out, PATH_BYTES_MAX, "%.*s", (int)length, path);
}

enum status files_make_dirs(struct env *env, const char *path, struct error *err)
{
    char part[PATH_BYTES_MAX], parent[PATH_BYTES_MAX];
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof part)
        return error_set(err, STATUS_INVALID, "make directory: bad path");
    for (size_t i = 1; i <= length; i++) {
        if ((i < length && path[i] != '/') || (i == 1 && path[0] == '/'))
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        enum status made = env_dir_make(env, part, err);
        if (made != STATUS_EXISTS)
            TRY(made);
        /* Whoever made one that is there may have died before its name lasted. */
        path_parent(parent, part);
        enum status status = env_dir_sync(env, parent, err);
        if (made == STATUS_EXISTS && status != STATUS_OK &&
            (err->os_errno == EACCES || err->os_errno == EINVAL || err->os_errno == EROFS))
            continue; /* not ours to write, or not to be synced: not ours to make last */
        TRY(status);
    }
    return STATUS_OK;
}

enum status files_read(struct env *env, const char *path, uint64_t bytes_max, struct buf *out,
                       struct error *err)
{
    struct env_file *file = NULL;
    struct env_stat stat;
    enum status status;
    size_t start = out->length, got = 0;
    TRY(env_open(env, path, ENV_READ, &file, err));
    TRY_OR_DONE(status, env_file_stat(file, &stat, err));
    if (stat.bytes > bytes_max) {
        status = error_set(err, STATUS_LIMIT, "read %s: %llu bytes, at most %llu", path,
                           (unsigned long long)stat.bytes, (unsigned long long)bytes_max);
        goto done;
    }
    uint8_t *place = buf_extend(out, (size_t)stat.bytes);
    if (!place) {
        status = buf_status(out, path, err);
        goto done;
    }
    status = env_read(file, 0, place, (size_t)stat.bytes, &got, err);
    buf_truncate(out, start + (status == STATUS_OK ? got : 0));
done:
    env_close(file);
    return status;
}

enum status files_create(struct env *env, const char *path, const void *data, size_t bytes,
                         struct error *err)
{
    struct env_file *file = NULL;
    enum status status;
    TRY(env_open(env, path, ENV_WRITE | ENV_CREATE | ENV_EXCLUSIVE, &file, err));
    status = env_write(file, 0, data, bytes, err);
    if (status == STATUS_OK)
        status = env_sync(file, err);
    env_close(file);
    return status;
}

enum status files_replace(struct env *env, const char *path, const void *data, size_t bytes,
                          struct error *err)
{
    char temporary[PATH_BYTES_MAX], parent[PATH_BYTES_MAX];
    struct env_file *file = NULL;
    enum status status;
    int length = snprintf(temporary, sizeof temporary, "%s.tmp", path);
    if (length < 0 || length >= PATH_BYTES_MAX)
        return error_set(err, STATUS_INVALID, "path too long: %.300s", path);
    TRY(env_open(env, temporary, ENV_WRITE | ENV_CREATE | ENV_TRUNCATE, &file, err));
    status = env_write(file, 0, data, bytes, err);
    if (status == STATUS_OK)
        status = env_sync(file, err);
    env_close(file);
    TRY(status);
    TRY(env_rename(env, temporary, path, err));
    path_parent(parent, path);
    return env_dir_sync(env, parent, err);
}

enum status files_remove(struct env *env, const char *path, struct error *err)
{
    char parent[PATH_BYTES_MAX];
    enum status status = env_remove(env, path, err);
    if (status == STATUS_NOT_FOUND)
        return STATUS_OK;
    TRY(status);
    path_parent(parent, path);
    return env_dir_sync(env, parent, err);
}

struct listing {
    struct arena *arena;
    char **names;
    size_t count, capacity;
    bool failed;
};

static bool add_name(void *context, const char *name)
{
    struct listing *listing = context;
    if (listing->count == listing->capacity) {
        size_t capacity = listing->capacity ? listing->capacity * 2 : 32;
        char **names = arena_alloc(listing->arena, capacity * sizeof *names);
        if (!names) {
            listing->failed = true;
            return false;
        }
        if (listing->count)
            memcpy(names, listing->names, listing->count * sizeof *names);
        listing->names = names;
        listing->capacity = capacity;
    }
    char *copy = arena_copy_text(listing->arena, name, strlen(name));
    listing->failed = !copy;
    if (copy)
        listing->names[listing->count++] = copy;
    return copy != NULL;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

enum status files_list(struct env *env, const char *dir, struct arena *arena, char ***out_names,
                       size_t *out_count, struct error *err)
{
    struct listing listing = {.arena = arena};
    TRY(env_dir_list(env, dir, add_name, &listing, err));
    if (listing.failed)
        return error_set(err, STATUS_NO_MEMORY, "list %s: out of memory", dir);
    if (listing.count)
        qsort(listing.names, listing.count, sizeof *listing.names, compare_names);
    *out_names = listing.names;
    *out_count = listing.count;
    return STATUS_OK;
}
