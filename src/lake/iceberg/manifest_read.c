/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading manifests of any writer by field id. Sequence numbers and snapshot ids that an entry
 * inherits from the list's row are filled in (specification, "Sequence Number Inheritance").
 */
#include "lake/iceberg/iceberg_internal.h"

enum { COLUMNS_MAX = 20000 };

struct manifest_reader {
    const struct iceberg_table *table;
    const struct manifest_file *manifest;
    const struct iceberg_spec *spec;
    struct arena *arena;
    bool with_metrics;
};

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "manifest: out of memory");
}

static enum status corrupt(const char *what, struct error *err)
{
    return error_set(err, STATUS_CORRUPT, "an entry without fitting %s", what);
}

static enum status copy_text(struct span from, struct arena *arena, const char **out,
                             struct error *err)
{
    if (from.length && memchr(from.data, 0, from.length))
        return corrupt("text", err);
    *out = arena_copy_text(arena, (const char *)from.data, from.length);
    return *out ? STATUS_OK : out_of_memory(err);
}

static enum status copy_bytes(struct span from, struct arena *arena, struct span *out,
                              struct error *err)
{
    char *copy = arena_copy_text(arena, (const char *)from.data, from.length);
    if (!copy)
        return out_of_memory(err);
    *out = span_of(copy, from.length);
    return STATUS_OK;
}

/* ---- partition values ---- */

static bool has_logical(const struct avro_type *type, const char *name)
{
    return type->logical_type && strcmp(type->logical_type, name) == 0;
}

/* What the Avro type alone says; used where the table's schemas no longer have the source column.
 */
static enum iceberg_type type_of_avro(const struct avro_type *type)
{
    switch (type->kind) {
    case AVRO_BOOLEAN:
        return ICEBERG_BOOLEAN;
    case AVRO_INT:
        return has_logical(type, "date") ? ICEBERG_DATE : ICEBERG_INT;
    case AVRO_LONG:
        if (has_logical(type, "time-micros"))
            return ICEBERG_TIME;
        return has_logical(type, "timestamp-micros") ? ICEBERG_TIMESTAMP : ICEBERG_LONG;
    case AVRO_FLOAT:
        return ICEBERG_FLOAT;
    case AVRO_DOUBLE:
        return ICEBERG_DOUBLE;
    case AVRO_STRING:
        return ICEBERG_STRING;
    case AVRO_FIXED:
        if (has_logical(type, "uuid"))
            return ICEBERG_UUID;
        return has_logical(type, "decimal") ? ICEBERG_DECIMAL : ICEBERG_FIXED;
    default:
        return has_logical(type, "decimal") ? ICEBERG_DECIMAL : ICEBERG_BINARY;
    }
}

enum value_class { CLASS_INTEGER, CLASS_REAL, CLASS_BYTES };

static enum value_class class_of(enum iceberg_type type)
{
    switch (type) {
    case ICEBERG_FLOAT:
    case ICEBERG_DOUBLE:
        return CLASS_REAL;
    case ICEBERG_STRING:
    case ICEBERG_UUID:
    case ICEBERG_BINARY:
    case ICEBERG_FIXED:
    case ICEBERG_DECIMAL:
        return CLASS_BYTES;
    default:
        return CLASS_INTEGER;
    }
}

static enum status read_partition_value(struct manifest_reader *reader,
                                        const struct avro_value *record,
                                        const struct iceberg_partition_field *field,
                                        struct iceberg_value *out, struct error *err)
{
    const struct avro_value *value = avro_get(record, field->field_id);
    const struct iceberg_field *source;
    enum iceberg_type type;
    bool is_known = iceberg_partition_type(reader->table, field, &source, &type);
    if (!value)
        value = avro_get_named(record, field->name);
    if (!value) {
        *out = (struct iceberg_value){.type = is_known ? type : ICEBERG_INT, .is_null = true};
        return STATUS_OK;
    }
    if (value->type->kind == AVRO_RECORD || value->type->kind == AVRO_ARRAY ||
        value->type->kind == AVRO_MAP || value->type->kind == AVRO_ENUM)
        return corrupt("partition value", err);
    enum iceberg_type found = type_of_avro(value->type);
    if (is_known && class_of(type) != class_of(found))
        return corrupt("partition value", err);
    *out = (struct iceberg_value){
        .type = is_known ? type : found, .integer = value->integer, .real = value->real};
    return class_of(found) == CLASS_BYTES
               ? copy_bytes(value->bytes, reader->arena, &out->bytes, err)
               : STATUS_OK;
}

static enum status read_partition(struct manifest_reader *reader, const struct avro_value *record,
                                  const struct iceberg_value **out_values, struct error *err)
{
    struct iceberg_value *values =
        arena_alloc_zero(reader->arena, reader->spec->field_count, sizeof *values);
    if (!values)
        return out_of_memory(err);
    for (uint32_t i = 0; i < reader->spec->field_count; i++)
        TRY(read_partition_value(reader, record, &reader->spec->fields[i], &values[i], err));
    *out_values = values;
    return STATUS_OK;
}

/* ---- metrics ---- */

/* The column's row, made if it is new. Maps list columns in the same order mostly: look behind the
 * last hit first. */
static struct iceberg_column_metrics *find_column(struct iceberg_column_metrics *columns,
                                                  uint32_t *count, uint32_t *hint, int32_t id)
{
    for (uint32_t step = 0; step < *count; step++) {
        uint32_t i = (*hint + step) % *count;
        if (columns[i].field_id == id) {
            *hint = i + 1;
            return &columns[i];
        }
    }
    columns[*count] = (struct iceberg_column_metrics){
        .field_id = id, .column_bytes = -1, .value_count = -1, .null_count = -1, .nan_count = -1};
    return &columns[(*count)++];
}

static enum status read_metrics(struct manifest_reader *reader, const struct avro_value *record,
                                struct iceberg_data_file *file, struct error *err)
{
    static const int32_t map_ids[] = {108, 109, 110, 137, 125, 128};
    uint32_t total = 0, count = 0, hint = 0;
    for (size_t i = 0; i < COUNT_OF(map_ids); i++) {
        const struct avro_value *map = avro_get(record, map_ids[i]);
        total += map && map->type->kind == AVRO_ARRAY ? map->count : 0;
        if (total > 6 * COLUMNS_MAX)
            return error_set(err, STATUS_LIMIT, "metrics of more than %d columns", COLUMNS_MAX);
    }
    struct iceberg_column_metrics *columns =
        arena_alloc_zero(reader->arena, total, sizeof *columns);
    if (!columns)
        return out_of_memory(err);
    for (size_t which = 0; which < COUNT_OF(map_ids); which++) {
        const struct avro_value *map = avro_get(record, map_ids[which]);
        for (uint32_t i = 0; map && map->type->kind == AVRO_ARRAY && i < map->count; i++) {
            const struct avro_value *pair = &map->items[i];
            if (pair->type->kind != AVRO_RECORD || pair->count != 2 ||
                pair->items[0].type->kind != AVRO_INT)
                return corrupt("metrics", err);
            struct iceberg_column_metrics *column =
                find_column(columns, &count, &hint, (int32_t)pair->items[0].integer);
            const struct avro_value *value = &pair->items[1];
            int64_t *const counts[] = {&column->column_bytes, &column->value_count,
                                       &column->null_count, &column->nan_count};
            if (which < COUNT_OF(counts))
                *counts[which] = value->integer;
            else if (value->type->kind == AVRO_BYTES)
                TRY(copy_bytes(value->bytes, reader->arena,
                               which == 4 ? &column->lower : &column->upper, err));
        }
    }
    file->columns = columns;
    file->column_count = count;
    return STATUS_OK;
}

static enum status read_splits(struct manifest_reader *reader, const struct avro_value *list,
                               struct iceberg_data_file *file, struct error *err)
{
    if (!list || list->type->kind != AVRO_ARRAY || list->count == 0)
        return STATUS_OK;
    int64_t *offsets = arena_alloc_zero(reader->arena, list->count, sizeof *offsets);
    if (!offsets)
        return out_of_memory(err);
    for (uint32_t i = 0; i < list->count; i++)
        offsets[i] = list->items[i].integer;
    file->split_offsets = offsets;
    file->split_count = list->count;
    return STATUS_OK;
}

/* ---- entries ---- */

static enum status read_data_file(struct manifest_reader *reader, const struct avro_value *record,
                                  struct manifest_entry *entry, struct error *err)
{
    struct iceberg_data_file *file = &entry->file;
    int64_t content = 0, sort_order = -1;
    struct span path, format, key_metadata;
    const struct avro_value *partition = avro_get(record, 102);
    avro_get_long(record, 134, &content);
    if (content < 0 || content > 2 || (content == 0) != (reader->manifest->content == 0))
        return corrupt("content", err);
    if (!avro_get_bytes(record, 100, &path) || !avro_get_bytes(record, 101, &format))
        return corrupt("path or format", err);
    if (!avro_get_long(record, 103, &file->record_count) || file->record_count < 0 ||
        !avro_get_long(record, 104, &file->file_bytes) || file->file_bytes < 0)
        return corrupt("record count or size", err);
    avro_get_long(record, 140, &sort_order);
    file->content = (enum iceberg_content)content;
    file->spec_id = reader->manifest->spec_id;
    file->sort_order_id = sort_order >= 0 && sort_order <= INT32_MAX ? (int32_t)sort_order : -1;
    TRY(copy_text(path, reader->arena, &file->path, err));
    TRY(copy_text(format, reader->arena, &file->format, err));
    if (reader->spec->field_count && !partition)
        return corrupt("partition", err);
    TRY(read_partition(reader, partition, &file->partition, err));
    if (avro_get_bytes(record, 131, &key_metadata))
        TRY(copy_bytes(key_metadata, reader->arena, &entry->key_metadata, err));
    if (!reader->with_metrics)
        return STATUS_OK;
    TRY(read_metrics(reader, record, file, err));
    return read_splits(reader, avro_get(record, 132), file, err);
}

static enum status read_entry(struct manifest_reader *reader, const struct avro_value *record,
                              struct manifest_entry *entry, struct error *err)
{
    const struct manifest_file *manifest = reader->manifest;
    int64_t status;
    if (!avro_get_long(record, 0, &status) || status < 0 || status > 2)
        return corrupt("status", err);
    entry->status = (enum manifest_status)status;
    /* Only ADDED entries inherit; files from before version 2 have sequence number 0. */
    bool inherits = entry->status == MANIFEST_ADDED;
    entry->snapshot_id = manifest->added_snapshot_id;
    entry->sequence_number = inherits ? manifest->sequence_number : 0;
    avro_get_long(record, 1, &entry->snapshot_id);
    avro_get_long(record, 3, &entry->sequence_number);
    entry->file_sequence_number = inherits ? manifest->sequence_number : entry->sequence_number;
    avro_get_long(record, 4, &entry->file_sequence_number);
    const struct avro_value *file = avro_get(record, 2);
    if (!file || file->type->kind != AVRO_RECORD)
        return corrupt("data file", err);
    return read_data_file(reader, file, entry, err);
}

enum status iceberg_manifest_read(struct store *store, const struct iceberg_table *table,
                                  const struct manifest_file *manifest, bool with_metrics,
                                  struct arena *arena, manifest_entry_fn each, void *context,
                                  struct error *err)
{
    struct manifest_reader reader = {.table = table,
                                     .manifest = manifest,
                                     .spec = iceberg_table_spec(table, manifest->spec_id),
                                     .arena = arena,
                                     .with_metrics = with_metrics};
    struct buf bytes;
    struct arena records;
    struct avro_reader *avro = NULL;
    const struct avro_value *record;
    enum status status;
    buf_init(&bytes, 0);
    arena_init(&records, 0);
    if (!reader.spec) {
        status = error_set(err, STATUS_CORRUPT, "unknown partition spec %d", manifest->spec_id);
        goto done;
    }
    TRY_OR_DONE(status, store_get(store, manifest->path, ICEBERG_MANIFEST_BYTES_MAX, &bytes, err));
    TRY_OR_DONE(status, avro_reader_create(span_of(bytes.data, bytes.length), NULL, &avro, err));
    while ((status = avro_reader_next(avro, &records, &record, err)) == STATUS_OK) {
        struct manifest_entry entry = {0};
        TRY_OR_DONE(status, read_entry(&reader, record, &entry, err));
        TRY_OR_DONE(status, each(context, &entry, err));
        arena_clear(&records);
    }
    if (status == STATUS_NOT_FOUND) /* its end */
        status = STATUS_OK;
done:
    if (status == STATUS_NOT_FOUND || status == STATUS_INVALID)
        err->status = status = STATUS_CORRUPT;
    avro_reader_destroy(avro);
    arena_deinit(&records);
    buf_deinit(&bytes);
    return status == STATUS_OK ? STATUS_OK : error_prefix(err, "manifest %.200s", manifest->path);
}
