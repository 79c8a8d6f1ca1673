/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects as files. A whole object is written under a name of its own, synced, and moved into place
 * by rename or link; a streamed one is written under its final name, which nobody knows before it
 * is finished, so that what a crash leaves is found under the prefix it was meant for. Directories
 * are synced after their entries.
 */
#include <errno.h>
#include <stdio.h>

#include "lake/store/store_internal.h"

enum { WRITE_BUFFER_BYTES = 256 * 1024, SCHEME_BYTES = 7 /* "file://" */ };

/* Hashes of directories whose names are known to last, by the hash's low bits. A directory that is
 * there need not be one: its maker may have died between making and syncing it. */
enum { KNOWN_DIRECTORIES = 256 };

struct file_store {
    struct store base;
    struct env *env;
    _Atomic uint64_t known[KNOWN_DIRECTORIES];
};

struct file_writer {
    struct store_writer base;
    struct env *env;
    struct env_file *file;
    struct buf pending;
    uint64_t offset; /* bytes in the file */
    char path[STORE_URI_BYTES_MAX];
};

static struct env *env_of(struct store *store)
{
    return CONTAINER_OF(store, struct file_store, base)->env;
}

static const char *path_of(const char *uri)
{
    return uri[SCHEME_BYTES] ? uri + SCHEME_BYTES : "/";
}

static void file_close(struct store *store)
{
    mem_free(CONTAINER_OF(store, struct file_store, base));
}

/* Syncs `path`, then each directory above it, up to the one that the store's root is in; outside
 * the root up to the first that we may not even open: no writer of our tables made that one. */
static enum status sync_directories(struct store *store, const char *path, struct error *err)
{
    char at[PATH_BYTES_MAX], parent[PATH_BYTES_MAX];
    const char *root = path_of(store->root);
    snprintf(at, sizeof at, "%s", path);
    bool is_last = false;
    for (size_t depth = 0; !is_last; depth++) {
        enum status status = env_dir_sync(env_of(store), at, err);
        if (status != STATUS_OK && depth > 0 && err->os_errno == EACCES)
            return STATUS_OK;
        TRY(status);
        path_parent(parent, at);
        is_last = strcmp(at, parent) == 0;
        if (strcmp(at, root) == 0)
            return is_last ? STATUS_OK : env_dir_sync(env_of(store), parent, err);
        memcpy(at, parent, sizeof at);
    }
    return STATUS_OK;
}

/* The directories above `path`: there when this returns, and their names durable. */
static enum status make_parents(struct store *store, const char *path, struct error *err)
{
    struct file_store *file_store = CONTAINER_OF(store, struct file_store, base);
    char parent[PATH_BYTES_MAX];
    struct env_stat stat;
    path_parent(parent, path);
    enum status status = env_path_stat(file_store->env, parent, &stat, err);
    bool is_new = status == STATUS_NOT_FOUND; /* the one that was known may have been removed */
    if (is_new)
        status = files_make_dirs(file_store->env, parent, err);
    TRY(status);
    uint64_t hash = hash64(parent, strlen(parent));
    _Atomic uint64_t *slot = &file_store->known[hash % KNOWN_DIRECTORIES];
    if (!is_new && atomic_load_explicit(slot, memory_order_relaxed) == hash)
        return STATUS_OK;
    TRY(sync_directories(store, parent, err));
    atomic_store_explicit(slot, hash, memory_order_relaxed);
    return STATUS_OK;
}

static enum status sync_parent(struct env *env, const char *path, struct error *err)
{
    char parent[PATH_BYTES_MAX];
    path_parent(parent, path);
    return env_dir_sync(env, parent, err);
}

/* Takes away what a failed call left. Its own failure changes nothing: the name is never used. */
static void discard(struct env *env, const char *path)
{
    struct error ignored;
    enum status status = env_remove(env, path, &ignored);
    UNUSED(status);
}

/* ---- whole objects ---- */

static enum status write_new(struct env *env, const char *path, bool is_durable, const void *data,
                             size_t bytes, struct error *err)
{
    if (is_durable)
        return files_create(env, path, data, bytes, err);
    struct env_file *file;
    TRY(env_open(env, path, ENV_WRITE | ENV_CREATE | ENV_EXCLUSIVE, &file, err));
    enum status status = env_write(file, 0, data, bytes, err);
    env_close(file);
    return status;
}

static enum status file_put(struct store *store, const char *uri, enum store_put_mode mode,
                            const void *data, size_t bytes, struct error *err)
{
    struct env *env = env_of(store);
    const char *path = path_of(uri);
    char temporary[PATH_BYTES_MAX], digits[17];
    uint8_t random[8];
    env_random(env, random, sizeof random);
    hex_encode(digits, random, sizeof random);
    digits[16] = '\0';
    int length = snprintf(temporary, sizeof temporary, "%s.%s.tmp", path, digits);
    if (length < 0 || length >= PATH_BYTES_MAX)
        return error_set(err, STATUS_INVALID, "put %.300s: name too long", uri);
    TRY(make_parents(store, path, err));
    bool is_durable = mode != STORE_PUT_HINT;
    enum status status = write_new(env, temporary, is_durable, data, bytes, err);
    if (status == STATUS_OK && mode == STORE_PUT_IF_ABSENT)
        status = env_rename_new(env, temporary, path, err);
    else if (status == STATUS_OK)
        status = env_rename(env, temporary, path, err);
    if (status != STATUS_OK)
        discard(env, temporary);
    if (status == STATUS_OK && is_durable)
        status = sync_parent(env, path, err);
    return status == STATUS_OK ? STATUS_OK : error_prefix(err, "put %.200s", uri);
}

/* ---- streamed objects ---- */

static enum status file_create(struct store *store, const char *uri,
                               struct store_writer **out_writer, struct error *err)
{
    struct env *env = env_of(store);
    const char *path = path_of(uri);
    TRY(make_parents(store, path, err));
    struct file_writer *writer = mem_alloc_zero(1, sizeof *writer);
    if (!writer)
        return error_set(err, STATUS_NO_MEMORY, "create %.300s: out of memory", uri);
    writer->base.ops = store->ops;
    writer->env = env;
    buf_init(&writer->pending, 0);
    snprintf(writer->path, sizeof writer->path, "%s", path);
    enum status status =
        env_open(env, path, ENV_WRITE | ENV_CREATE | ENV_EXCLUSIVE, &writer->file, err);
    if (status == STATUS_OK)
        *out_writer = &writer->base;
    else
        mem_free(writer);
    return status;
}

/* Writes what is pending and `data` behind it, in one call. */
static enum status write_out(struct file_writer *writer, const void *data, size_t bytes,
                             struct error *err)
{
    struct env_slice slices[2] = {{writer->pending.data, writer->pending.length}, {data, bytes}};
    TRY(env_writev(writer->file, writer->offset, slices, 2, err));
    writer->offset += writer->pending.length + bytes;
    buf_clear(&writer->pending);
    return STATUS_OK;
}

static enum status file_writer_write(struct store_writer *base, const void *data, size_t bytes,
                                     struct error *err)
{
    struct file_writer *writer = CONTAINER_OF(base, struct file_writer, base);
    if (writer->pending.length + bytes >= WRITE_BUFFER_BYTES)
        return write_out(writer, data, bytes, err);
    buf_put(&writer->pending, data, bytes);
    return buf_status(&writer->pending, "write to an object", err);
}

static void free_writer(struct file_writer *writer)
{
    env_close(writer->file);
    buf_deinit(&writer->pending);
    mem_free(writer);
}

static enum status file_writer_finish(struct store_writer *base, uint64_t *out_bytes,
                                      struct error *err)
{
    struct file_writer *writer = CONTAINER_OF(base, struct file_writer, base);
    enum status status = STATUS_OK;
    if (writer->pending.length)
        status = write_out(writer, NULL, 0, err);
    if (status == STATUS_OK)
        status = env_sync(writer->file, err);
    if (status == STATUS_OK)
        status = sync_parent(writer->env, writer->path, err);
    if (status == STATUS_OK) {
        *out_bytes = writer->offset;
    } else {
        discard(writer->env, writer->path);
        status = error_prefix(err, "finish %.200s", writer->path);
    }
    free_writer(writer);
    return status;
}

static void file_writer_abort(struct store_writer *base)
{
    struct file_writer *writer = CONTAINER_OF(base, struct file_writer, base);
    discard(writer->env, writer->path);
    free_writer(writer);
}

/* ---- reading ---- */

static enum status file_get(struct store *store, const char *uri, uint64_t bytes_max,
                            struct buf *out, struct error *err)
{
    return files_read(env_of(store), path_of(uri), bytes_max, out, err);
}

static enum status file_get_range(struct store *store, const char *uri, uint64_t offset,
                                  size_t bytes, struct buf *out, struct error *err)
{
    struct env_file *file;
    size_t start = out->length, got = 0;
    TRY(env_open(env_of(store), path_of(uri), ENV_READ, &file, err));
    uint8_t *place = buf_extend(out, bytes);
    enum status status = buf_status(out, "read an object", err);
    if (status == STATUS_OK)
        status = env_read(file, offset, place, bytes, &got, err);
    if (status == STATUS_OK && got < bytes)
        status = error_set(err, STATUS_INVALID, "read %.300s at %llu: the object ends before", uri,
                           (unsigned long long)(offset + bytes));
    if (status != STATUS_OK)
        buf_truncate(out, start);
    env_close(file);
    return status;
}

static enum status file_stat(struct store *store, const char *uri, struct store_object *out_object,
                             struct error *err)
{
    struct env_stat stat;
    TRY(env_path_stat(env_of(store), path_of(uri), &stat, err));
    if (stat.is_directory)
        return error_set(err, STATUS_NOT_FOUND, "stat %.300s: is a directory", uri);
    *out_object = (struct store_object){.bytes = stat.bytes, .modified_ns = stat.modified_ns};
    return STATUS_OK;
}

/* ---- listing ---- */

struct lister {
    struct env *env;
    struct arena arena;
    store_list_fn each;
    void *context;
};

/* The entries of the directory `path` whose names begin with `name_prefix`, and all below them. */
static enum status list_directory(struct lister *lister, const char *path, const char *name_prefix,
                                  struct error *err)
{
    char **names;
    size_t count;
    enum status status = files_list(lister->env, path, &lister->arena, &names, &count, err);
    if (status == STATUS_NOT_FOUND)
        return STATUS_OK;
    TRY(status);
    for (size_t i = 0; i < count; i++) {
        struct env_stat stat;
        if (strncmp(names[i], name_prefix, strlen(name_prefix)) != 0)
            continue;
        char *uri =
            arena_format(&lister->arena, "file://%s/%s", strcmp(path, "/") ? path : "", names[i]);
        if (!uri)
            return error_set(err, STATUS_NO_MEMORY, "list %.300s: out of memory", path);
        if (strlen(uri) >= STORE_URI_BYTES_MAX)
            return error_set(err, STATUS_INVALID, "list %.300s: a name is too long", path);
        status = env_path_stat(lister->env, path_of(uri), &stat, err);
        if (status == STATUS_NOT_FOUND)
            continue;
        TRY(status);
        if (stat.is_directory) {
            TRY(list_directory(lister, path_of(uri), "", err));
            continue;
        }
        struct store_object object = {
            .uri = uri, .bytes = stat.bytes, .modified_ns = stat.modified_ns};
        TRY(lister->each(lister->context, &object, err));
    }
    return STATUS_OK;
}

static enum status file_list(struct store *store, const char *prefix, store_list_fn each,
                             void *context, struct error *err)
{
    struct lister lister = {.env = env_of(store), .each = each, .context = context};
    char directory[PATH_BYTES_MAX];
    const char *path = path_of(prefix);
    path_parent(directory, path);
    arena_init(&lister.arena, 0);
    enum status status = list_directory(&lister, directory, strrchr(path, '/') + 1, err);
    arena_deinit(&lister.arena);
    return status;
}

/* ---- removing, syncing ---- */

static enum status file_remove(struct store *store, const char *uri, struct error *err)
{
    enum status status = env_remove(env_of(store), path_of(uri), err);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static void file_drop_directory(struct store *store, const char *uri)
{
    struct error ignored;
    enum status status = env_dir_remove(env_of(store), path_of(uri), &ignored);
    UNUSED(status);
}

static enum status file_sync_prefix(struct store *store, const char *uri, struct error *err)
{
    return sync_directories(store, path_of(uri), err);
}

static enum status file_sync_object(struct store *store, const char *uri, struct error *err)
{
    struct env_file *file;
    char parent[PATH_BYTES_MAX];
    TRY(env_open(env_of(store), path_of(uri), ENV_READ, &file, err));
    enum status status = env_sync(file, err);
    env_close(file);
    TRY(status);
    path_parent(parent, path_of(uri));
    return sync_directories(store, parent, err);
}

static const struct store_ops file_ops = {
    .scheme = "file://",
    .close = file_close,
    .put = file_put,
    .create = file_create,
    .writer_write = file_writer_write,
    .writer_finish = file_writer_finish,
    .writer_abort = file_writer_abort,
    .get = file_get,
    .get_range = file_get_range,
    .stat = file_stat,
    .list = file_list,
    .remove = file_remove,
    .drop_directory = file_drop_directory,
    .sync_object = file_sync_object,
    .sync_prefix = file_sync_prefix,
};

enum status store_file_open(struct env *env, struct store **out_store, struct error *err)
{
    struct file_store *store = mem_alloc_zero(1, sizeof *store);
    if (!store)
        return error_set(err, STATUS_NO_MEMORY, "open store: out of memory");
    store->base.ops = &file_ops;
    store->env = env;
    *out_store = &store->base;
    return STATUS_OK;
}
