/* SPDX-License-Identifier: Apache-2.0
 *
 * Metadata files: "<metadata path>/<number of 5 digits>-<uuid>.metadata.json", a new name for every
 * attempt. Files of others may be compressed (".gz.metadata.json") or numbered "v3.metadata.json".
 */
#include <stdio.h>
#include <stdlib.h>

#include "format/codec/codec.h"
#include "lake/catalog/catalog_internal.h"

enum { METADATA_BYTES_MAX = 256 << 20 };
static const char metadata_suffix[] = ".metadata.json";

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* Reads into an initialised table that holds nothing yet. */
static enum status read_into(struct store *store, const char *location, struct buf *raw,
                             struct buf *expanded, struct catalog_table *table, struct error *err)
{
    struct json_value *metadata;
    /* Hadoop's older name puts the ".gz" at the end. */
    bool is_gzip = ends_with(location, ".gz.metadata.json") || ends_with(location, ".gz");
    enum status status = store_get(store, location, METADATA_BYTES_MAX, raw, err);
    if (status == STATUS_NOT_FOUND)
        return err->status = STATUS_CORRUPT; /* the catalog points at nothing (E17) */
    TRY(status);
    if (is_gzip)
        status = codec_expand(CODEC_GZIP, span_of(raw->data, raw->length), METADATA_BYTES_MAX,
                              expanded, err);
    const struct buf *text = is_gzip ? expanded : raw;
    if (status == STATUS_OK)
        status = json_parse(text->data, text->length, &table->arena, &metadata, err);
    if (status == STATUS_INVALID || status == STATUS_LIMIT)
        return err->status = STATUS_CORRUPT;
    TRY(status);
    if (metadata->type != JSON_OBJECT)
        return error_set(err, STATUS_CORRUPT, "not an object");
    table->metadata_location = arena_copy_text(&table->arena, location, strlen(location));
    if (!table->metadata_location)
        return error_set(err, STATUS_NO_MEMORY, "out of memory");
    table->metadata = metadata;
    return STATUS_OK;
}

enum status catalog_metadata_read(struct store *store, const char *location,
                                  struct catalog_table *out_table, struct error *err)
{
    struct catalog_table table = {0};
    struct buf raw, expanded;
    arena_init(&table.arena, 0);
    buf_init(&raw, 0);
    buf_init(&expanded, 0);
    enum status status = read_into(store, location, &raw, &expanded, &table, err);
    buf_deinit(&raw);
    buf_deinit(&expanded);
    if (status == STATUS_OK) {
        *out_table = table;
        return STATUS_OK;
    }
    catalog_table_deinit(&table);
    return error_prefix(err, "metadata file %.250s", location);
}

/* The number after that of `location`; 0 when it has none. */
static unsigned long next_version(const char *location)
{
    if (!location)
        return 0;
    const char *name = strrchr(location, '/');
    name = name ? name + 1 : location;
    name += *name == 'v';
    size_t digits = strspn(name, "0123456789");
    if (digits == 0 || digits > 9 || (name[digits] != '-' && name[digits] != '.'))
        return 0;
    return strtoul(name, NULL, 10) + 1;
}

/* A new name beside the other metadata of the table. */
static enum status new_location(struct env *env, struct store *store,
                                const struct json_value *metadata, const char *base_location,
                                char out_uri[STORE_URI_BYTES_MAX], struct error *err)
{
    const char *path = json_get_text(json_get(metadata, "properties"), "write.metadata.path");
    const char *location = json_get_text(metadata, "location");
    char directory[STORE_URI_BYTES_MAX], name[96], uuid_text[UUID_TEXT_BYTES];
    uint8_t random[16];
    if (!path && !location)
        return error_set(err, STATUS_CORRUPT, "metadata: no location");
    if (path)
        TRY(store_uri_canonical(store, path, directory, err));
    else {
        TRY(store_uri_join(location, "metadata", directory, err));
        TRY(store_uri_canonical(store, directory, directory, err));
    }
    env_random(env, random, sizeof random);
    uuid_to_text(uuid_from_random(random), uuid_text);
    snprintf(name, sizeof name, "%05lu-%s%s", next_version(base_location), uuid_text,
             metadata_suffix);
    return store_uri_join(directory, name, out_uri, err);
}

enum status catalog_metadata_write(struct env *env, struct store *store,
                                   const struct json_value *metadata, const char *base_location,
                                   struct arena *arena, const char **out_location,
                                   struct error *err)
{
    char uri[STORE_URI_BYTES_MAX];
    struct buf text;
    TRY(new_location(env, store, metadata, base_location, uri, err));
    const char *location = arena_copy_text(arena, uri, strlen(uri));
    if (!location)
        return error_set(err, STATUS_NO_MEMORY, "metadata file: out of memory");
    buf_init(&text, METADATA_BYTES_MAX);
    enum status status = json_serialize(metadata, &text, err);
    if (status == STATUS_OK)
        status = store_put_if_absent(store, uri, text.data, text.length, err);
    buf_deinit(&text);
    if (status == STATUS_OK)
        *out_location = location;
    return status;
}

void catalog_metadata_hint(struct store *store, const char *location)
{
    struct error ignored;
    char uri[STORE_URI_BYTES_MAX];
    const char *slash = strrchr(location, '/');
    if (!slash || !ends_with(slash, metadata_suffix))
        return;
    int length =
        snprintf(uri, sizeof uri, "%.*s/version-hint.text", (int)(slash - location), location);
    if (length < 0 || (size_t)length >= sizeof uri)
        return;
    /* Without a newline: readers take the text as it is. */
    size_t stem = strlen(slash + 1) - (sizeof metadata_suffix - 1);
    enum status status = store_put_hint(store, uri, slash + 1, stem, &ignored);
    UNUSED(status);
}

static bool log_has(const struct json_value *log, const char *location)
{
    for (const struct json_value *entry = log ? log->first : NULL; entry; entry = entry->next) {
        const char *file = json_get_text(entry, "metadata-file");
        if (file && strcmp(file, location) == 0)
            return true;
    }
    return false;
}

/* Beside the current one, and named as one: what else stands in a log is not ours to delete. */
static bool is_sibling(const char *file, const char *location)
{
    const char *slash = strrchr(location, '/');
    size_t length = slash ? (size_t)(slash - location) + 1 : 0;
    return length && strncmp(file, location, length) == 0 && !strchr(file + length, '/') &&
           ends_with(file, metadata_suffix);
}

void catalog_metadata_clean(struct store *store, const struct json_value *before,
                            const struct json_value *after, const char *location)
{
    struct error ignored;
    const char *setting =
        json_get_text(json_get(after, "properties"), "write.metadata.delete-after-commit.enabled");
    const struct json_value *log = json_get(before, "metadata-log");
    if (!setting || strcmp(setting, "true") != 0 || !log || log->type != JSON_ARRAY)
        return;
    /* Oldest first: what has left the log stands in front. */
    for (const struct json_value *entry = log->first; entry; entry = entry->next) {
        const char *file = json_get_text(entry, "metadata-file");
        if (!file || log_has(json_get(after, "metadata-log"), file))
            return;
        if (!is_sibling(file, location))
            continue;
        enum status status = store_delete(store, file, &ignored);
        UNUSED(status); /* best effort: it is referred to by nothing */
    }
}
