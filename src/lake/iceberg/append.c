/* SPDX-License-Identifier: Apache-2.0
 *
 * Committing an append: manifests of the new files, the parent's manifests carried over (many small
 * ones merged), the list, the snapshot, the swap. Each step writes under names of this attempt; the
 * order is that of E8, and a failure before the last step leaves only garbage.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lake/iceberg/iceberg_internal.h"

enum {
    MERGE_COUNT_DEFAULT = 100,        /* commit.manifest.min-count-to-merge */
    MANIFEST_BYTES_DEFAULT = 8 << 20, /* commit.manifest.target-size-bytes */
};

struct appender {
    struct env *env;
    struct store *store;
    const struct iceberg_table *table;
    const struct iceberg_append *append;
    struct arena arena;
    char metadata_location[STORE_URI_BYTES_MAX];
    int64_t sequence_number;
    uint32_t manifest_number;        /* of the next manifest's name */
    struct manifest_file *manifests; /* of the new list */
    size_t manifest_count, manifest_capacity;
    struct manifest_file *parents; /* of the parent's list */
    size_t parent_count;
};

int64_t iceberg_snapshot_id_create(struct env *env)
{
    uint64_t bits;
    env_random(env, &bits, sizeof bits);
    int64_t id = (int64_t)(bits >> 1);
    return id ? id : 1;
}

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "commit: out of memory");
}

static enum status add_manifest(struct appender *to, const struct manifest_file *manifest,
                                struct error *err)
{
    if (to->manifest_count == to->manifest_capacity) {
        size_t capacity = to->manifest_capacity ? to->manifest_capacity * 2 : 32;
        struct manifest_file *more = arena_alloc_zero(&to->arena, capacity, sizeof *more);
        if (!more)
            return out_of_memory(err);
        if (to->manifest_count)
            memcpy(more, to->manifests, to->manifest_count * sizeof *more);
        to->manifests = more;
        to->manifest_capacity = capacity;
    }
    to->manifests[to->manifest_count++] = *manifest;
    return STATUS_OK;
}

/* ---- manifests ---- */

static enum status write_manifest(struct appender *to, const struct iceberg_spec *spec,
                                  const struct manifest_entry *entries, size_t count,
                                  struct error *err)
{
    char uri[STORE_URI_BYTES_MAX], name[64], uuid[UUID_TEXT_BYTES];
    struct manifest_file manifest;
    struct manifest_options options = {.table = to->table,
                                       .spec = spec,
                                       .snapshot_id = to->append->snapshot_id,
                                       .sequence_number = to->sequence_number};
    uuid_to_text(to->append->attempt, uuid);
    snprintf(name, sizeof name, "%s-m%u.avro", uuid, to->manifest_number++);
    TRY(store_uri_join(to->metadata_location, name, uri, err));
    TRY(store_uri_canonical(to->store, uri, uri, err));
    TRY(iceberg_manifest_write(to->env, to->store, uri, &options, entries, count, &to->arena,
                               &manifest, err));
    return add_manifest(to, &manifest, err);
}

/* One manifest for each spec that the new files have. */
static enum status write_new_manifests(struct appender *to, struct error *err)
{
    const struct iceberg_append *append = to->append;
    struct manifest_entry *entries =
        arena_alloc_zero(&to->arena, append->file_count, sizeof *entries);
    if (!entries)
        return out_of_memory(err);
    for (uint32_t s = 0; s < to->table->spec_count; s++) {
        const struct iceberg_spec *spec = &to->table->specs[s];
        size_t count = 0;
        for (size_t i = 0; i < append->file_count; i++) {
            if (append->files[i].spec_id == spec->spec_id)
                entries[count++] = (struct manifest_entry){.status = MANIFEST_ADDED,
                                                           .snapshot_id = append->snapshot_id,
                                                           .file = append->files[i]};
        }
        if (count)
            TRY(write_manifest(to, spec, entries, count, err));
    }
    return STATUS_OK;
}

/* ---- merging ---- */

struct merge {
    struct appender *to;
    struct manifest_entry *entries;
    size_t count, capacity;
};

static enum status keep_entry(void *context, const struct manifest_entry *entry, struct error *err)
{
    struct merge *merge = context;
    if (entry->status == MANIFEST_DELETED)
        return STATUS_OK;
    if (merge->count == merge->capacity) {
        size_t capacity = merge->capacity ? merge->capacity * 2 : 256;
        struct manifest_entry *more = arena_alloc_zero(&merge->to->arena, capacity, sizeof *more);
        if (!more)
            return out_of_memory(err);
        if (merge->count)
            memcpy(more, merge->entries, merge->count * sizeof *more);
        merge->entries = more;
        merge->capacity = capacity;
    }
    merge->entries[merge->count] = *entry;
    merge->entries[merge->count++].status = MANIFEST_EXISTING;
    return STATUS_OK;
}

static uint64_t number_property(const struct iceberg_table *table, const char *key,
                                uint64_t fallback)
{
    const char *text = iceberg_table_property(table, key);
    uint64_t value;
    return text && parse_u64(text, strlen(text), &value) && value > 0 ? value : fallback;
}

/* Only manifests of the default spec: the others may have sources that the schema lacks by now. */
static bool is_mergeable(const struct appender *to, const struct manifest_file *manifest,
                         uint64_t bytes_max)
{
    return manifest->content == 0 && manifest->spec_id == to->table->default_spec_id &&
           !manifest->key_metadata.data && (uint64_t)manifest->length < bytes_max;
}

/* Rewrites runs of small manifests into ones of about the target size. */
static enum status merge_small(struct appender *to, uint64_t bytes_max, struct error *err)
{
    struct merge merge = {.to = to};
    uint64_t bytes = 0;
    for (size_t i = 0; i <= to->parent_count; i++) {
        bool is_end = i == to->parent_count;
        if (!is_end && !is_mergeable(to, &to->parents[i], bytes_max))
            continue;
        bool is_full = bytes && !is_end && bytes + (uint64_t)to->parents[i].length > bytes_max;
        if ((is_end || is_full) && merge.count) {
            TRY(write_manifest(to, to->table->spec, merge.entries, merge.count, err));
            merge.count = 0;
            bytes = 0;
        }
        if (is_end)
            break;
        bytes += (uint64_t)to->parents[i].length;
        TRY(iceberg_manifest_read(to->store, to->table, &to->parents[i], true, &to->arena,
                                  keep_entry, &merge, err));
    }
    return STATUS_OK;
}

struct counts {
    int64_t files[3], rows[3]; /* by enum manifest_status */
};

static enum status count_status(void *context, const struct manifest_entry *entry,
                                struct error *err)
{
    UNUSED(err);
    struct counts *counts = context;
    counts->files[entry->status]++;
    counts->rows[entry->status] += entry->file.record_count;
    return STATUS_OK;
}

/* Lists of version 1 need not say what a manifest holds; ours must. */
static enum status fill_counts(struct appender *to, struct manifest_file *manifest,
                               struct error *err)
{
    struct counts counts = {0};
    struct arena entries;
    if (manifest->added_files >= 0 && manifest->existing_files >= 0 &&
        manifest->deleted_files >= 0 && manifest->added_rows >= 0 && manifest->existing_rows >= 0 &&
        manifest->deleted_rows >= 0)
        return STATUS_OK;
    arena_init(&entries, 0);
    enum status status = iceberg_manifest_read(to->store, to->table, manifest, false, &entries,
                                               count_status, &counts, err);
    arena_deinit(&entries);
    TRY(status);
    manifest->added_files = counts.files[MANIFEST_ADDED];
    manifest->existing_files = counts.files[MANIFEST_EXISTING];
    manifest->deleted_files = counts.files[MANIFEST_DELETED];
    manifest->added_rows = counts.rows[MANIFEST_ADDED];
    manifest->existing_rows = counts.rows[MANIFEST_EXISTING];
    manifest->deleted_rows = counts.rows[MANIFEST_DELETED];
    return STATUS_OK;
}

static bool is_live(const struct manifest_file *manifest)
{
    return manifest->added_files > 0 || manifest->existing_files > 0;
}

/* Before anything is written: what the current snapshot has may be damaged. */
static enum status read_parents(struct appender *to, struct error *err)
{
    const struct iceberg_snapshot *parent = to->table->current;
    if (!parent)
        return STATUS_OK;
    if (!parent->manifest_list)
        return error_set(err, STATUS_UNSUPPORTED, "snapshot %lld has no manifest list",
                         (long long)parent->snapshot_id);
    TRY(iceberg_list_read(to->store, parent->manifest_list, &to->arena, &to->parents,
                          &to->parent_count, err));
    for (size_t i = 0; i < to->parent_count; i++)
        TRY(fill_counts(to, &to->parents[i], err));
    return STATUS_OK;
}

static enum status carry_over(struct appender *to, struct error *err)
{
    uint64_t bytes_max =
        number_property(to->table, "commit.manifest.target-size-bytes", MANIFEST_BYTES_DEFAULT);
    uint64_t count_max =
        number_property(to->table, "commit.manifest.min-count-to-merge", MERGE_COUNT_DEFAULT);
    const char *enabled = iceberg_table_property(to->table, "commit.manifest-merge.enabled");
    uint64_t small = 0;
    for (size_t i = 0; i < to->parent_count; i++)
        small += is_live(&to->parents[i]) && is_mergeable(to, &to->parents[i], bytes_max);
    bool merges = small >= count_max && !(enabled && strcmp(enabled, "false") == 0);
    if (merges)
        TRY(merge_small(to, bytes_max, err));
    for (size_t i = 0; i < to->parent_count; i++) {
        /* What was only deleted in an earlier snapshot is told there and not again. */
        if (is_live(&to->parents[i]) && !(merges && is_mergeable(to, &to->parents[i], bytes_max)))
            TRY(add_manifest(to, &to->parents[i], err));
    }
    return STATUS_OK;
}

/* ---- summary ---- */

struct totals {
    int64_t files, records, bytes, delete_files, position_deletes, equality_deletes;
};

static const struct {
    const char *key;
    size_t offset;
} total_keys[] = {
    {"total-data-files", offsetof(struct totals, files)},
    {"total-records", offsetof(struct totals, records)},
    {"total-files-size", offsetof(struct totals, bytes)},
    {"total-delete-files", offsetof(struct totals, delete_files)},
    {"total-position-deletes", offsetof(struct totals, position_deletes)},
    {"total-equality-deletes", offsetof(struct totals, equality_deletes)},
};

static int64_t *total_at(struct totals *totals, size_t row)
{
    return (int64_t *)(void *)((char *)totals + total_keys[row].offset);
}

static enum status count_entry(void *context, const struct manifest_entry *entry, struct error *err)
{
    UNUSED(err);
    struct totals *totals = context;
    if (entry->status == MANIFEST_DELETED)
        return STATUS_OK;
    totals->bytes += entry->file.file_bytes;
    if (entry->file.content == ICEBERG_DATA) {
        totals->files++;
        totals->records += entry->file.record_count;
        return STATUS_OK;
    }
    totals->delete_files++;
    if (entry->file.content == ICEBERG_POSITION_DELETES)
        totals->position_deletes += entry->file.record_count;
    else
        totals->equality_deletes += entry->file.record_count;
    return STATUS_OK;
}

/* The parent's totals, from its summary, or counted where a writer left one out: some readers fail
 * on a table that has none. */
static enum status parent_totals(struct appender *to, struct totals *out, struct error *err)
{
    const struct iceberg_snapshot *parent = to->table->current;
    bool is_whole = true;
    *out = (struct totals){0};
    if (!parent)
        return STATUS_OK;
    for (size_t row = 0; row < COUNT_OF(total_keys); row++) {
        const char *text = iceberg_snapshot_summary(parent, total_keys[row].key);
        is_whole &= text && parse_i64(text, strlen(text), total_at(out, row));
    }
    if (is_whole)
        return STATUS_OK;
    struct arena entries;
    enum status status = STATUS_OK;
    *out = (struct totals){0};
    arena_init(&entries, 0);
    for (size_t i = 0; i < to->parent_count && status == STATUS_OK; i++) {
        status = iceberg_manifest_read(to->store, to->table, &to->parents[i], false, &entries,
                                       count_entry, out, err);
        arena_clear(&entries);
    }
    arena_deinit(&entries);
    return status;
}

static bool set_count(struct arena *arena, struct json_value *summary, const char *key,
                      int64_t value)
{
    char text[I64_TEXT_MAX];
    size_t length = i64_to_text(text, value);
    return json_set(arena, summary, key, json_new_string(arena, text, length));
}

static enum status build_summary(struct appender *to, struct json_value **out_summary,
                                 struct error *err)
{
    const struct iceberg_append *append = to->append;
    struct arena *arena = &to->arena;
    struct json_value *summary = json_new_object(arena);
    struct totals totals;
    int64_t records = 0, bytes = 0;
    TRY(parent_totals(to, &totals, err));
    for (size_t i = 0; i < append->file_count; i++) {
        records += append->files[i].record_count;
        bytes += append->files[i].file_bytes;
    }
    totals.files += (int64_t)append->file_count;
    totals.records += records;
    totals.bytes += bytes;
    bool is_whole = json_set(arena, summary, "operation", json_new_text(arena, "append")) &&
                    set_count(arena, summary, "added-data-files", (int64_t)append->file_count) &&
                    set_count(arena, summary, "added-records", records) &&
                    set_count(arena, summary, "added-files-size", bytes);
    for (size_t row = 0; row < COUNT_OF(total_keys) && is_whole; row++)
        is_whole = set_count(arena, summary, total_keys[row].key, *total_at(&totals, row));
    for (size_t i = 0; i < append->summary_count && is_whole; i++)
        is_whole = json_set(arena, summary, append->summary[i].key,
                            json_new_text(arena, append->summary[i].value));
    if (!is_whole)
        return out_of_memory(err);
    *out_summary = summary;
    return STATUS_OK;
}

/* ---- snapshot and commit ---- */

static enum status build_snapshot(struct appender *to, const char *list_uri, int64_t timestamp_ms,
                                  struct json_value **out_snapshot, struct error *err)
{
    struct arena *arena = &to->arena;
    struct json_value *snapshot = json_new_object(arena), *summary = NULL;
    const struct iceberg_snapshot *parent = to->table->current;
    TRY(build_summary(to, &summary, err));
    bool is_whole =
        json_set(arena, snapshot, "snapshot-id", json_new_i64(arena, to->append->snapshot_id)) &&
        (!parent || json_set(arena, snapshot, "parent-snapshot-id",
                             json_new_i64(arena, parent->snapshot_id))) &&
        json_set(arena, snapshot, "sequence-number", json_new_i64(arena, to->sequence_number)) &&
        json_set(arena, snapshot, "timestamp-ms", json_new_i64(arena, timestamp_ms)) &&
        json_set(arena, snapshot, "manifest-list", json_new_text(arena, list_uri)) &&
        json_set(arena, snapshot, "summary", summary) &&
        json_set(arena, snapshot, "schema-id", json_new_i64(arena, to->table->current_schema_id));
    if (!is_whole)
        return out_of_memory(err);
    *out_snapshot = snapshot;
    return STATUS_OK;
}

/* Everything that the commit is conditioned on, and the snapshot, ref and properties that move in
 * it. */
static void fill_change(struct catalog_change *change, const struct iceberg_table *table,
                        const struct iceberg_append *append, const struct json_value *snapshot)
{
    catalog_require_uuid(change, table->uuid);
    catalog_require_ref(change, "main", table->current ? table->current->snapshot_id : -1);
    catalog_require_last_sequence(change, table->last_sequence_number);
    catalog_require_last_updated(change, table->last_updated_ms);
    for (size_t i = 0; i < append->require_property_count; i++)
        catalog_require_property(change, append->require_properties[i].key,
                                 append->require_properties[i].value);
    catalog_update_add_snapshot(change, snapshot);
    catalog_update_set_ref(change, "main", append->snapshot_id);
    for (size_t i = 0; i < append->property_count; i++) {
        if (append->properties[i].value)
            catalog_update_set_property(change, append->properties[i].key,
                                        append->properties[i].value);
        else
            catalog_update_remove_property(change, append->properties[i].key);
    }
}

static enum status commit(struct catalog *catalog, const struct iceberg_table *table,
                          struct catalog_change *change, struct iceberg_table **out_table,
                          struct error *err)
{
    struct catalog_ident ident = {.ns = table->ns, .name = table->name};
    struct catalog_table base = {0};
    TRY(catalog_commit(catalog, ident, &table->base, change, &base, err));
    if (iceberg_table_from_metadata(&base, ident, out_table, err) == STATUS_OK)
        return STATUS_OK;
    err->status = STATUS_UNKNOWN_OUTCOME; /* applied, but we cannot show it */
    return error_prefix(err, "after the commit");
}

/* Partition values may come from a journal: a type that is not the spec's would be written as
 * another value, or as damage. */
static enum status check_partition(const struct iceberg_table *table,
                                   const struct iceberg_data_file *file, struct error *err)
{
    const struct iceberg_spec *spec = iceberg_table_spec(table, file->spec_id);
    if (!spec)
        return error_set(err, STATUS_INVALID, "data file %.300s: unknown partition spec %d",
                         file->path, file->spec_id);
    for (uint32_t i = 0; i < spec->field_count; i++) {
        const struct iceberg_value *value = &file->partition[i];
        const struct iceberg_field *source;
        enum iceberg_type type;
        if (!iceberg_partition_type(table, &spec->fields[i], &source, &type))
            return error_set(err, STATUS_UNSUPPORTED, "partition field %.100s cannot be written",
                             spec->fields[i].name);
        bool fits = value->is_null || value->type == type;
        if (!value->is_null && type == ICEBERG_FIXED)
            fits = fits && value->bytes.length == source->fixed_bytes;
        else if (!value->is_null && type == ICEBERG_UUID)
            fits = fits && value->bytes.length == 16;
        else if (!value->is_null && type == ICEBERG_DECIMAL)
            fits = fits && iceberg_decimal_fits(value->bytes, source->precision);
        if (!fits)
            return error_set(err, STATUS_INVALID, "data file %.300s: partition value %u",
                             file->path, i);
    }
    return STATUS_OK;
}

static enum status check_append(const struct iceberg_table *table,
                                const struct iceberg_append *append, struct error *err)
{
    struct iceberg_base base;
    iceberg_table_base(table, &base);
    if (append->require_base && !iceberg_base_equal(append->require_base, &base))
        return error_set(err, STATUS_CONFLICT, "the table is not at the expected base");
    if (append->snapshot_id <= 0)
        return error_set(err, STATUS_INVALID, "snapshot id %lld", (long long)append->snapshot_id);
    if (iceberg_table_snapshot(table, append->snapshot_id))
        return error_set(err, STATUS_CONFLICT, "snapshot %lld is in the table already",
                         (long long)append->snapshot_id);
    for (size_t i = 0; i < append->file_count; i++) {
        const struct iceberg_data_file *file = &append->files[i];
        if (file->content != ICEBERG_DATA || file->record_count < 0 || file->file_bytes <= 0)
            return error_set(err, STATUS_INVALID, "data file %.300s: not a fitting data file",
                             file->path);
        TRY(check_partition(table, file, err));
    }
    return STATUS_OK;
}

static enum status write_list(struct appender *to, char out_uri[STORE_URI_BYTES_MAX],
                              struct error *err)
{
    char name[128], uuid[UUID_TEXT_BYTES];
    const struct iceberg_snapshot *parent = to->table->current;
    struct list_header header = {.snapshot_id = to->append->snapshot_id,
                                 .parent_id = parent ? parent->snapshot_id : -1,
                                 .sequence_number = to->sequence_number};
    uuid_to_text(to->append->attempt, uuid);
    snprintf(name, sizeof name, "snap-%lld-%u-%s.avro", (long long)to->append->snapshot_id,
             to->append->attempt_number, uuid);
    TRY(store_uri_join(to->metadata_location, name, out_uri, err));
    TRY(store_uri_canonical(to->store, out_uri, out_uri, err));
    return iceberg_list_write(to->env, to->store, out_uri, &header, to->manifests,
                              to->manifest_count, err);
}

enum status iceberg_append_commit(struct env *env, struct catalog *catalog, struct store *store,
                                  const struct iceberg_table *table,
                                  const struct iceberg_append *append,
                                  struct iceberg_table **out_table, struct error *err)
{
    struct appender to = {.env = env,
                          .store = store,
                          .table = table,
                          .append = append,
                          .sequence_number = table->last_sequence_number + 1};
    struct catalog_change change = {0};
    struct json_value *snapshot = NULL;
    char list_uri[STORE_URI_BYTES_MAX];
    int64_t now_ms =
        append->now_ms > table->last_updated_ms ? append->now_ms : table->last_updated_ms;
    enum status status;
    arena_init(&to.arena, 0);
    catalog_change_init(&change, now_ms);
    TRY_OR_DONE(status, check_append(table, append, err));
    TRY_OR_DONE(status, iceberg_table_metadata_location(table, to.metadata_location, err));
    TRY_OR_DONE(status, read_parents(&to, err));
    TRY_OR_DONE(status, write_new_manifests(&to, err));
    TRY_OR_DONE(status, carry_over(&to, err));
    TRY_OR_DONE(status, write_list(&to, list_uri, err));
    TRY_OR_DONE(status, build_snapshot(&to, list_uri, now_ms, &snapshot, err));
    fill_change(&change, table, append, snapshot);
    status = commit(catalog, table, &change, out_table, err);
done:
    catalog_change_deinit(&change);
    arena_deinit(&to.arena);
    return status;
}

enum status iceberg_change_commit(struct catalog *catalog, const struct iceberg_table *table,
                                  struct catalog_change *change, struct iceberg_table **out_table,
                                  struct error *err)
{
    catalog_require_uuid(change, table->uuid);
    return commit(catalog, table, change, out_table, err);
}
