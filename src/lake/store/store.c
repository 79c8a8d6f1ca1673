/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of objects, and the way from a call to the kind of store behind it.
 */
#include <stdio.h>

#include "lake/store/store_internal.h"

/* Whether `text` starts with a scheme ("s3:"), of two letters or more. */
static bool has_scheme(const char *text)
{
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789+-.");
    return length >= 2 && text[length] == ':';
}

/* The path of a file URI or plain path; NULL if it is neither. */
static const char *file_path_of(const char *uri)
{
    if (uri[0] == '/')
        return uri;
    if (strncmp(uri, "file:", 5) != 0)
        return NULL;
    const char *rest = uri + 5;
    if (strncmp(rest, "//localhost/", 12) == 0)
        return rest + 11;
    if (rest[0] != '/' || (rest[1] == '/' && rest[2] != '/'))
        return NULL; /* another host, or no absolute path */
    return rest;
}

/* Appends the segments of `path` to the canonical `out`, each behind one slash. */
static enum status append_segments(char out[STORE_URI_BYTES_MAX], const char *path,
                                   struct error *err)
{
    size_t length = strlen(out);
    for (const char *at = path; *at;) {
        at += strspn(at, "/");
        size_t segment = strcspn(at, "/");
        if (segment == 0)
            break;
        if ((segment == 1 && at[0] == '.') || (segment == 2 && at[0] == '.' && at[1] == '.'))
            return error_set(err, STATUS_INVALID, "object %.300s: relative segment", path);
        if (length + 1 + segment >= STORE_URI_BYTES_MAX)
            return error_set(err, STATUS_INVALID, "object %.300s: name too long", path);
        out[length++] = '/';
        memcpy(out + length, at, segment);
        length += segment;
        out[length] = '\0';
        at += segment;
    }
    return STATUS_OK;
}

enum status store_uri_canonical(const struct store *store, const char *uri,
                                char out_uri[STORE_URI_BYTES_MAX], struct error *err)
{
    char canonical[STORE_URI_BYTES_MAX];
    const char *path = file_path_of(uri);
    if (path)
        snprintf(canonical, sizeof canonical, "%s", store->ops->scheme);
    else if (has_scheme(uri))
        return error_set(err, STATUS_UNSUPPORTED,
                         "object %.300s: not served by the store at %.300s", uri, store->root);
    else
        snprintf(canonical, sizeof canonical, "%s", store->root);
    TRY(append_segments(canonical, path ? path : uri, err));
    memcpy(out_uri, canonical, strlen(canonical) + 1);
    return STATUS_OK;
}

enum status store_uri_join(const char *base, const char *relative,
                           char out_uri[STORE_URI_BYTES_MAX], struct error *err)
{
    size_t length = strlen(base);
    while (length && base[length - 1] == '/')
        length--;
    char joined[STORE_URI_BYTES_MAX];
    int total = snprintf(joined, sizeof joined, "%.*s/%s", (int)length, base, relative);
    if (total < 0 || (size_t)total >= sizeof joined)
        return error_set(err, STATUS_INVALID, "object %.200s/%.200s: name too long", base,
                         relative);
    memcpy(out_uri, joined, (size_t)total + 1);
    return STATUS_OK;
}

enum status store_open(struct env *env, const char *root_url, struct store **out_store,
                       struct error *err)
{
    const char *path = file_path_of(root_url);
    if (!path)
        return error_set(err, has_scheme(root_url) ? STATUS_UNSUPPORTED : STATUS_INVALID,
                         "store %.300s: only file:///path and /path can be opened", root_url);
    struct store *store;
    TRY(store_file_open(env, &store, err));
    enum status status = store_uri_canonical(store, path, store->root, err);
    if (status == STATUS_OK)
        *out_store = store;
    else
        store_close(store);
    return status;
}

void store_close(struct store *store)
{
    if (store)
        store->ops->close(store);
}

const char *store_root(const struct store *store)
{
    return store->root;
}

static enum status put(struct store *store, const char *uri, enum store_put_mode mode,
                       const void *data, size_t bytes, struct error *err)
{
    char canonical[STORE_URI_BYTES_MAX];
    TRY(store_uri_canonical(store, uri, canonical, err));
    return store->ops->put(store, canonical, mode, data, bytes, err);
}

enum status store_put(struct store *store, const char *uri, const void *data, size_t bytes,
                      struct error *err)
{
    return put(store, uri, STORE_PUT_REPLACE, data, bytes, err);
}

enum status store_put_if_absent(struct store *store, const char *uri, const void *data,
                                size_t bytes, struct error *err)
{
    return put(store, uri, STORE_PUT_IF_ABSENT, data, bytes, err);
}

enum status store_put_hint(struct store *store, const char *uri, const void *data, size_t bytes,
                           struct error *err)
{
    return put(store, uri, STORE_PUT_HINT, data, bytes, err);
}

enum status store_create(struct store *store, const char *uri, struct store_writer **out_writer,
                         struct error *err)
{
    char canonical[STORE_URI_BYTES_MAX];
    TRY(store_uri_canonical(store, uri, canonical, err));
    return store->ops->create(store, canonical, out_writer, err);
}

static enum status writer_sink_write(void *context, const void *data, size_t bytes,
                                     struct error *err)
{
    struct store_writer *writer = context;
    TRY(writer->ops->writer_write(writer, data, bytes, err));
    writer->bytes += bytes;
    return STATUS_OK;
}

struct sink store_writer_sink(struct store_writer *writer)
{
    return (struct sink){.write = writer_sink_write, .context = writer};
}

uint64_t store_writer_bytes(const struct store_writer *writer)
{
    return writer->bytes;
}

enum status store_writer_finish(struct store_writer *writer, uint64_t *out_bytes, struct error *err)
{
    return writer->ops->writer_finish(writer, out_bytes, err);
}

void store_writer_abort(struct store_writer *writer)
{
    if (writer)
        writer->ops->writer_abort(writer);
}

enum status store_get(struct store *store, const char *uri, uint64_t bytes_max, struct buf *out,
                      struct error *err)
{
    char canonical[STORE_URI_BYTES_MAX];
    TRY(store_uri_canonical(store, uri, canonical, err));
    return store->ops->get(store, canonical, bytes_max, out, err);
}

enum status store_get_range(struct store *store, const char *uri, uint64_t offset, size_t bytes,
                            struct buf *out, struct error *err)
{
    char canonical[STORE_URI_BYTES_MAX];
    TRY(store_uri_canonical(store, uri, canonical, err));
    return store->ops->get_range(store, canonical, offset, bytes, out, err);
}

enum status store_stat(struct store *store, const char *uri, struct store_object *out_object,
                       struct error *err)
{
    char canonical[STORE_URI_BYTES_MAX];
    TRY(store_uri_canonical(store, uri, canonical, err));
    return store->ops->stat(store, canonical, out_object, err);
}

enum status store_list(struct store *store, const char *prefix, store_list_fn each, void *context,
                       struct error *err)
{
    char canonical[STORE_URI_BYTES_MAX];
    TRY(store_uri_canonical(store, prefix, canonical, err));
    /* A slash at the end means: only what is inside. Canonical names have dropped it. */
    size_t length = strlen(canonical), given = strlen(prefix);
    if (given == 0 || prefix[given - 1] == '/') {
        if (length + 2 > sizeof canonical)
            return error_set(err, STATUS_INVALID, "list %.300s: name too long", prefix);
        memcpy(canonical + length, "/", 2);
    }
    return store->ops->list(store, canonical, each, context, err);
}

enum status store_delete(struct store *store, const char *uri, struct error *err)
{
    char canonical[STORE_URI_BYTES_MAX];
    TRY(store_uri_canonical(store, uri, canonical, err));
    return store->ops->remove(store, canonical, err);
}

void store_drop_directory(struct store *store, const char *directory_uri)
{
    struct error ignored;
    char canonical[STORE_URI_BYTES_MAX];
    if (store_uri_canonical(store, directory_uri, canonical, &ignored) == STATUS_OK)
        store->ops->drop_directory(store, canonical);
}

enum status store_sync_object(struct store *store, const char *uri, struct error *err)
{
    char canonical[STORE_URI_BYTES_MAX];
    TRY(store_uri_canonical(store, uri, canonical, err));
    return store->ops->sync_object(store, canonical, err);
}

enum status store_sync_prefix(struct store *store, const char *directory_uri, struct error *err)
{
    char canonical[STORE_URI_BYTES_MAX];
    TRY(store_uri_canonical(store, directory_uri, canonical, err));
    return store->ops->sync_prefix(store, canonical, err);
}
