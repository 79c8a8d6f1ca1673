/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing data manifests. Source: specification, "Manifests"; the Avro schema is, field for field
 * and id for id, what Iceberg's Java library writes for version 2, because some readers resolve by
 * name, some by id, and some compare.
 */
#include <stdio.h>

#include "lake/iceberg/iceberg_internal.h"

/* ---- the Avro file ---- */

enum status iceberg_avro_create(struct env *env, struct store *store, const char *uri,
                                const char *schema, const struct avro_pair *metadata,
                                size_t metadata_count, struct iceberg_avro_file *out_file,
                                struct error *err)
{
    struct iceberg_avro_file file = {0};
    uint8_t sync[16];
    env_random(env, sync, sizeof sync);
    TRY(store_create(store, uri, &file.object, err));
    enum status status = avro_writer_create(store_writer_sink(file.object), schema, AVRO_DEFLATE,
                                            sync, metadata, metadata_count, &file.avro, err);
    if (status == STATUS_OK)
        *out_file = file;
    else
        iceberg_avro_abort(&file);
    return status;
}

enum status iceberg_avro_finish(struct iceberg_avro_file *file, uint64_t *out_bytes,
                                struct error *err)
{
    uint64_t bytes, stored;
    enum status status = avro_writer_finish(file->avro, &bytes, err);
    if (status == STATUS_OK) {
        struct store_writer *object = file->object;
        file->object = NULL; /* gone, whatever comes of it */
        status = store_writer_finish(object, &stored, err);
    }
    if (status == STATUS_OK) {
        CHECK(stored == bytes);
        *out_bytes = bytes;
    }
    iceberg_avro_abort(file);
    return status;
}

void iceberg_avro_abort(struct iceberg_avro_file *file)
{
    avro_writer_destroy(file->avro);
    store_writer_abort(file->object);
    *file = (struct iceberg_avro_file){0};
}

/* ---- schema ---- */

/* Avro names are [A-Za-z_][A-Za-z0-9_]*; others are written as the Java library writes them. */
static void put_avro_name(struct buf *out, const char *name)
{
    for (const char *at = name; *at; at++) {
        unsigned char c = (unsigned char)*at;
        bool is_letter = ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_';
        bool is_digit = c >= '0' && c <= '9';
        if (is_digit && at == name)
            buf_format(out, "_%c", c);
        else if (is_letter || is_digit)
            buf_put_byte(out, c);
        else
            buf_format(out, "_x%X", c);
    }
}

/* The bytes that hold any decimal of that precision. */
static uint32_t decimal_bytes(uint32_t precision)
{
    double limit = 1;
    for (uint32_t i = 0; i < precision; i++)
        limit *= 10;
    uint32_t bytes = 1;
    for (double power = 128; power < limit; power *= 256)
        bytes++;
    return bytes;
}

static struct span minimal_decimal(struct span unscaled)
{
    while (unscaled.length > 1 && ((unscaled.data[0] == 0 && unscaled.data[1] < 0x80) ||
                                   (unscaled.data[0] == 0xff && unscaled.data[1] >= 0x80))) {
        unscaled.data++;
        unscaled.length--;
    }
    return unscaled;
}

bool iceberg_decimal_fits(struct span unscaled, uint32_t precision)
{
    return unscaled.length > 0 && minimal_decimal(unscaled).length <= decimal_bytes(precision);
}

static void put_partition_type(struct buf *out, enum iceberg_type type,
                               const struct iceberg_field *source)
{
    switch (type) {
    case ICEBERG_DATE:
        buf_put_text(out, "{\"type\":\"int\",\"logicalType\":\"date\"}");
        break;
    case ICEBERG_TIME:
        buf_put_text(out, "{\"type\":\"long\",\"logicalType\":\"time-micros\"}");
        break;
    case ICEBERG_TIMESTAMP:
    case ICEBERG_TIMESTAMPTZ:
        buf_format(out,
                   "{\"type\":\"long\",\"logicalType\":\"timestamp-micros\",\"adjust-to-utc\":%s}",
                   type == ICEBERG_TIMESTAMPTZ ? "true" : "false");
        break;
    case ICEBERG_UUID:
        buf_put_text(out, "{\"type\":\"fixed\",\"name\":\"uuid_fixed\",\"size\":16,"
                          "\"logicalType\":\"uuid\"}");
        break;
    case ICEBERG_FIXED:
        buf_format(out, "{\"type\":\"fixed\",\"name\":\"fixed_%u\",\"size\":%u}",
                   source->fixed_bytes, source->fixed_bytes);
        break;
    case ICEBERG_DECIMAL:
        buf_format(out,
                   "{\"type\":\"fixed\",\"name\":\"decimal_%u_%u\",\"size\":%u,"
                   "\"logicalType\":\"decimal\",\"precision\":%u,\"scale\":%u}",
                   source->precision, source->scale, decimal_bytes(source->precision),
                   source->precision, source->scale);
        break;
    case ICEBERG_BINARY:
        buf_put_text(out, "\"bytes\"");
        break;
    default:
        buf_format(out, "\"%s\"", iceberg_type_name(type));
        break;
    }
}

static enum status put_partition_fields(struct buf *out, const struct manifest_options *options,
                                        struct error *err)
{
    for (uint32_t i = 0; i < options->spec->field_count; i++) {
        const struct iceberg_partition_field *field = &options->spec->fields[i];
        const struct iceberg_field *source;
        enum iceberg_type type;
        if (!iceberg_partition_type(options->table, field, &source, &type))
            return error_set(err, STATUS_UNSUPPORTED, "partition field %.100s cannot be written",
                             field->name);
        buf_put_text(out, i ? ",{\"name\":\"" : "{\"name\":\"");
        put_avro_name(out, field->name);
        buf_put_text(out, "\",\"type\":[\"null\",");
        put_partition_type(out, type, source);
        buf_format(out, "],\"default\":null,\"field-id\":%d}", field->field_id);
    }
    return STATUS_OK;
}

static void put_map_field(struct buf *out, const char *name, int id, int key_id, int value_id,
                          const char *value_type)
{
    buf_format(
        out,
        ",{\"name\":\"%s\",\"type\":[\"null\",{\"type\":\"array\",\"items\":{\"type\":\"record\","
        "\"name\":\"k%d_v%d\",\"fields\":[{\"name\":\"key\",\"type\":\"int\",\"field-id\":%d},"
        "{\"name\":\"value\",\"type\":\"%s\",\"field-id\":%d}]},\"logicalType\":\"map\"}],"
        "\"default\":null,\"field-id\":%d}",
        name, key_id, value_id, key_id, value_type, value_id, id);
}

static enum status put_schema(struct buf *out, const struct manifest_options *options,
                              struct error *err)
{
    buf_put_text(
        out,
        "{\"type\":\"record\",\"name\":\"manifest_entry\",\"fields\":["
        "{\"name\":\"status\",\"type\":\"int\",\"field-id\":0},"
        "{\"name\":\"snapshot_id\",\"type\":[\"null\",\"long\"],\"default\":null,\"field-id\":1},"
        "{\"name\":\"sequence_number\",\"type\":[\"null\",\"long\"],\"default\":null,\"field-id\":"
        "3},"
        "{\"name\":\"file_sequence_number\",\"type\":[\"null\",\"long\"],\"default\":null,\"field-"
        "id\":4},"
        "{\"name\":\"data_file\",\"type\":{\"type\":\"record\",\"name\":\"r2\",\"fields\":["
        "{\"name\":\"content\",\"type\":\"int\",\"field-id\":134},"
        "{\"name\":\"file_path\",\"type\":\"string\",\"field-id\":100},"
        "{\"name\":\"file_format\",\"type\":\"string\",\"field-id\":101},"
        "{\"name\":\"partition\",\"type\":{\"type\":\"record\",\"name\":\"r102\",\"fields\":[");
    TRY(put_partition_fields(out, options, err));
    buf_put_text(out, "]},\"field-id\":102},"
                      "{\"name\":\"record_count\",\"type\":\"long\",\"field-id\":103},"
                      "{\"name\":\"file_size_in_bytes\",\"type\":\"long\",\"field-id\":104}");
    put_map_field(out, "column_sizes", 108, 117, 118, "long");
    put_map_field(out, "value_counts", 109, 119, 120, "long");
    put_map_field(out, "null_value_counts", 110, 121, 122, "long");
    put_map_field(out, "nan_value_counts", 137, 138, 139, "long");
    put_map_field(out, "lower_bounds", 125, 126, 127, "bytes");
    put_map_field(out, "upper_bounds", 128, 129, 130, "bytes");
    buf_put_text(
        out,
        ",{\"name\":\"key_metadata\",\"type\":[\"null\",\"bytes\"],\"default\":null,\"field-id\":"
        "131},"
        "{\"name\":\"split_offsets\",\"type\":[\"null\",{\"type\":\"array\",\"items\":\"long\","
        "\"element-id\":133}],\"default\":null,\"field-id\":132},"
        "{\"name\":\"equality_ids\",\"type\":[\"null\",{\"type\":\"array\",\"items\":\"int\","
        "\"element-id\":136}],\"default\":null,\"field-id\":135},"
        "{\"name\":\"sort_order_id\",\"type\":[\"null\",\"int\"],\"default\":null,\"field-id\":140}"
        ","
        "{\"name\":\"referenced_data_file\",\"type\":[\"null\",\"string\"],\"default\":null,"
        "\"field-id\":143}]},\"field-id\":2}]}");
    buf_put_byte(out, 0);
    return buf_status(out, "manifest schema", err);
}

/* ---- entries ---- */

static void put_partition_value(struct buf *out, const struct iceberg_field *source,
                                const struct iceberg_value *value)
{
    avro_put_long(out, value->is_null ? 0 : 1);
    if (value->is_null)
        return;
    switch (value->type) {
    case ICEBERG_BOOLEAN:
    case ICEBERG_FLOAT:
    case ICEBERG_DOUBLE:
    case ICEBERG_UUID:
    case ICEBERG_FIXED:
        iceberg_value_encode(value, out); /* the same bytes in both encodings */
        break;
    case ICEBERG_DECIMAL: {
        struct span unscaled = minimal_decimal(value->bytes);
        uint8_t fill = unscaled.data[0] & 0x80 ? 0xff : 0;
        for (size_t i = unscaled.length; i < decimal_bytes(source->precision); i++)
            buf_put_byte(out, fill);
        buf_put(out, unscaled.data, unscaled.length);
        break;
    }
    case ICEBERG_STRING:
    case ICEBERG_BINARY:
        avro_put_bytes(out, value->bytes.data, value->bytes.length);
        break;
    default:
        avro_put_long(out, value->integer);
        break;
    }
}

/* What one of the optional maps says of a column; false: nothing. */
static bool metric(const struct iceberg_column_metrics *column, int which, int64_t *out_count,
                   struct span *out_bound)
{
    const int64_t counts[] = {column->column_bytes, column->value_count, column->null_count,
                              column->nan_count};
    if (which < 4) {
        *out_count = counts[which];
        return counts[which] >= 0;
    }
    *out_bound = which == 4 ? column->lower : column->upper;
    return out_bound->data != NULL;
}

static void put_metrics(struct buf *out, const struct iceberg_data_file *file)
{
    int64_t count = 0;
    struct span bound = {0};
    for (int which = 0; which < 6; which++) {
        int64_t entries = 0;
        for (uint32_t i = 0; i < file->column_count; i++)
            entries += metric(&file->columns[i], which, &count, &bound);
        avro_put_long(out, entries ? 1 : 0);
        if (!entries)
            continue;
        avro_put_long(out, entries);
        for (uint32_t i = 0; i < file->column_count; i++) {
            if (!metric(&file->columns[i], which, &count, &bound))
                continue;
            avro_put_long(out, file->columns[i].field_id);
            if (which < 4)
                avro_put_long(out, count);
            else
                avro_put_bytes(out, bound.data, bound.length);
        }
        avro_put_long(out, 0);
    }
}

static void put_entry(struct buf *out, const struct manifest_options *options,
                      const struct manifest_entry *entry)
{
    const struct iceberg_data_file *file = &entry->file;
    bool inherits = entry->status == MANIFEST_ADDED;
    avro_put_long(out, entry->status);
    avro_put_optional_long(out, true, entry->snapshot_id);
    avro_put_optional_long(out, !inherits, entry->sequence_number);
    avro_put_optional_long(out, !inherits, entry->file_sequence_number);
    avro_put_long(out, file->content);
    avro_put_text(out, file->path);
    avro_put_text(out, file->format ? file->format : "PARQUET");
    for (uint32_t i = 0; i < options->spec->field_count; i++) {
        const struct iceberg_field *source = NULL;
        enum iceberg_type type;
        bool is_known =
            iceberg_partition_type(options->table, &options->spec->fields[i], &source, &type);
        CHECK(is_known); /* or the schema could not have been written */
        put_partition_value(out, source, &file->partition[i]);
    }
    avro_put_long(out, file->record_count);
    avro_put_long(out, file->file_bytes);
    put_metrics(out, file);
    avro_put_optional_bytes(out, entry->key_metadata);
    avro_put_long(out, file->split_count ? 1 : 0);
    if (file->split_count) {
        avro_put_long(out, file->split_count);
        for (uint32_t i = 0; i < file->split_count; i++)
            avro_put_long(out, file->split_offsets[i]);
        avro_put_long(out, 0);
    }
    avro_put_long(out, 0); /* equality_ids */
    avro_put_optional_long(out, file->sort_order_id >= 0, file->sort_order_id);
    avro_put_long(out, 0); /* referenced_data_file */
}

/* ---- summaries ---- */

static bool value_is_nan(const struct iceberg_value *value)
{
    return !value->is_null && value->real != value->real;
}

/* Encodes a bound of a partition field into the arena; truncation is not needed, values are small.
 */
static enum status keep_bound(const struct iceberg_value *value, struct arena *arena,
                              struct span *out_bound, struct error *err)
{
    struct buf bytes;
    buf_init(&bytes, 0);
    iceberg_value_encode(value, &bytes);
    enum status status = buf_status(&bytes, "partition summary", err);
    char *copy =
        status == STATUS_OK ? arena_copy_text(arena, (const char *)bytes.data, bytes.length) : NULL;
    if (status == STATUS_OK && !copy)
        status = error_set(err, STATUS_NO_MEMORY, "partition summary: out of memory");
    if (status == STATUS_OK)
        *out_bound = span_of(copy, bytes.length);
    buf_deinit(&bytes);
    return status;
}

static enum status summarize(const struct manifest_entry *entries, size_t count, uint32_t field,
                             struct arena *arena, struct partition_summary *out, struct error *err)
{
    const struct iceberg_value *lower = NULL, *upper = NULL;
    out->contains_nan = 0;
    for (size_t i = 0; i < count; i++) {
        const struct iceberg_value *value = &entries[i].file.partition[field];
        out->contains_null |= value->is_null;
        if (value_is_nan(value))
            out->contains_nan = 1;
        if (value->is_null || value_is_nan(value))
            continue;
        lower = !lower || iceberg_value_compare(value, lower) < 0 ? value : lower;
        upper = !upper || iceberg_value_compare(value, upper) > 0 ? value : upper;
    }
    if (!lower)
        return STATUS_OK;
    TRY(keep_bound(lower, arena, &out->lower, err));
    return keep_bound(upper, arena, &out->upper, err);
}

/* Counts, sequence numbers and partition summaries of the entries. */
static enum status describe(const struct manifest_options *options,
                            const struct manifest_entry *entries, size_t count, struct arena *arena,
                            struct manifest_file *out, struct error *err)
{
    uint32_t fields = options->spec->field_count;
    struct partition_summary *partitions = arena_alloc_zero(arena, fields, sizeof *partitions);
    if (!partitions)
        return error_set(err, STATUS_NO_MEMORY, "manifest: out of memory");
    for (uint32_t i = 0; i < fields; i++)
        TRY(summarize(entries, count, i, arena, &partitions[i], err));
    out->spec_id = options->spec->spec_id;
    out->sequence_number = out->min_sequence_number = options->sequence_number;
    out->added_snapshot_id = options->snapshot_id;
    out->partitions = partitions;
    out->partition_count = fields;
    for (size_t i = 0; i < count; i++) {
        if (entries[i].status == MANIFEST_ADDED) {
            out->added_files++;
            out->added_rows += entries[i].file.record_count;
            continue;
        }
        out->existing_files++;
        out->existing_rows += entries[i].file.record_count;
        if (entries[i].sequence_number < out->min_sequence_number)
            out->min_sequence_number = entries[i].sequence_number;
    }
    return STATUS_OK;
}

/* ---- the whole ---- */

static enum status write_entries(struct iceberg_avro_file *file,
                                 const struct manifest_options *options,
                                 const struct manifest_entry *entries, size_t count,
                                 struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        put_entry(avro_writer_record(file->avro), options, &entries[i]);
        TRY(avro_writer_record_end(file->avro, err));
    }
    return STATUS_OK;
}

enum status iceberg_manifest_write(struct env *env, struct store *store, const char *uri,
                                   const struct manifest_options *options,
                                   const struct manifest_entry *entries, size_t count,
                                   struct arena *arena, struct manifest_file *out_file,
                                   struct error *err)
{
    struct buf avro_schema, schema_text, spec_text;
    struct json_value *schema_json, *spec_json;
    struct iceberg_avro_file file = {0};
    struct manifest_file manifest = {0};
    char schema_id[16], spec_id[16];
    uint64_t bytes;
    enum status status;
    buf_init(&avro_schema, 0);
    buf_init(&schema_text, 0);
    buf_init(&spec_text, 0);
    TRY_OR_DONE(status, put_schema(&avro_schema, options, err));
    TRY_OR_DONE(status, iceberg_schema_to_json(options->table->schema, arena, &schema_json, err));
    TRY_OR_DONE(status, json_serialize(schema_json, &schema_text, err));
    TRY_OR_DONE(status, iceberg_spec_to_json(options->spec, arena, &spec_json, err));
    TRY_OR_DONE(status, json_serialize(spec_json, &spec_text, err));
    buf_put_byte(&schema_text, 0);
    buf_put_byte(&spec_text, 0);
    TRY_OR_DONE(status, buf_status(&schema_text, "manifest", err));
    TRY_OR_DONE(status, buf_status(&spec_text, "manifest", err));
    snprintf(schema_id, sizeof schema_id, "%d", options->table->schema->schema_id);
    snprintf(spec_id, sizeof spec_id, "%d", options->spec->spec_id);
    const struct avro_pair metadata[] = {
        {"schema", (const char *)schema_text.data},
        {"schema-id", schema_id},
        {"partition-spec", (const char *)spec_text.data},
        {"partition-spec-id", spec_id},
        {"format-version", "2"},
        {"content", "data"},
    };
    TRY_OR_DONE(status, describe(options, entries, count, arena, &manifest, err));
    manifest.path = arena_copy_text(arena, uri, strlen(uri));
    if (!manifest.path) {
        status = error_set(err, STATUS_NO_MEMORY, "manifest: out of memory");
        goto done;
    }
    TRY_OR_DONE(status, iceberg_avro_create(env, store, uri, (const char *)avro_schema.data,
                                            metadata, COUNT_OF(metadata), &file, err));
    TRY_OR_DONE(status, write_entries(&file, options, entries, count, err));
    TRY_OR_DONE(status, iceberg_avro_finish(&file, &bytes, err));
    manifest.length = (int64_t)bytes;
    *out_file = manifest;
done:
    iceberg_avro_abort(&file);
    buf_deinit(&avro_schema);
    buf_deinit(&schema_text);
    buf_deinit(&spec_text);
    return status == STATUS_OK ? STATUS_OK : error_prefix(err, "write manifest %.200s", uri);
}
