/* SPDX-License-Identifier: Apache-2.0
 *
 * A table's metadata document as C structures. Source: specification, "Table Metadata". Everything
 * that a reader of the table would stumble over is found here, so that the code above may rely on
 * it: ids resolve, the current snapshot exists, version 2.
 */
#include <stdio.h>

#include "lake/iceberg/iceberg_internal.h"

static enum status corrupt(const char *what, struct error *err)
{
    return error_set(err, STATUS_CORRUPT, "table metadata: no fitting %s", what);
}

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "table metadata: out of memory");
}

static enum status read_i32(const struct json_value *object, const char *key, int32_t *out_value,
                            struct error *err)
{
    int64_t value;
    if (!json_get_i64(object, key, &value) || value < 0 || value > INT32_MAX)
        return corrupt(key, err);
    *out_value = (int32_t)value;
    return STATUS_OK;
}

static enum status read_i64(const struct json_value *object, const char *key, int64_t *out_value,
                            struct error *err)
{
    if (!json_get_i64(object, key, out_value) || *out_value < 0)
        return corrupt(key, err);
    return STATUS_OK;
}

static enum status read_text(const struct json_value *object, const char *key,
                             const char **out_text, struct error *err)
{
    *out_text = json_get_text(object, key);
    return *out_text ? STATUS_OK : corrupt(key, err);
}

/* The list under `key`; *out_count 0 where it is missing and `is_required` is not set. */
static enum status read_list(const struct json_value *object, const char *key, bool is_required,
                             const struct json_value **out_first, uint32_t *out_count,
                             struct error *err)
{
    const struct json_value *list = json_get(object, key);
    if (list && list->type == JSON_NULL)
        list = NULL;
    if (list ? list->type != JSON_ARRAY : is_required)
        return corrupt(key, err);
    *out_first = list ? list->first : NULL;
    *out_count = list ? list->count : 0;
    return STATUS_OK;
}

/* ---- specs and orders ---- */

static enum status read_spec(const struct json_value *json, struct arena *arena,
                             struct iceberg_spec *spec, struct error *err)
{
    const struct json_value *at;
    TRY(read_i32(json, "spec-id", &spec->spec_id, err));
    TRY(read_list(json, "fields", true, &at, &spec->field_count, err));
    if (spec->field_count > ICEBERG_PARTITION_FIELDS_MAX)
        return error_set(err, STATUS_LIMIT, "partition spec of %u fields", spec->field_count);
    spec->fields = arena_alloc_zero(arena, spec->field_count, sizeof *spec->fields);
    if (!spec->fields)
        return out_of_memory(err);
    for (struct iceberg_partition_field *field = spec->fields; at; at = at->next, field++) {
        const char *transform;
        TRY(read_i32(at, "source-id", &field->source_id, err));
        TRY(read_i32(at, "field-id", &field->field_id, err));
        TRY(read_text(at, "name", &field->name, err));
        TRY(read_text(at, "transform", &transform, err));
        field->transform = iceberg_transform_parse(transform);
    }
    return STATUS_OK;
}

static enum status read_order(const struct json_value *json, struct arena *arena,
                              struct iceberg_sort_order *order, struct error *err)
{
    const struct json_value *at;
    TRY(read_i32(json, "order-id", &order->order_id, err));
    TRY(read_list(json, "fields", true, &at, &order->field_count, err));
    order->fields = arena_alloc_zero(arena, order->field_count, sizeof *order->fields);
    if (!order->fields)
        return out_of_memory(err);
    for (struct iceberg_sort_field *field = order->fields; at; at = at->next, field++) {
        const char *transform, *direction, *nulls;
        TRY(read_i32(at, "source-id", &field->source_id, err));
        TRY(read_text(at, "transform", &transform, err));
        TRY(read_text(at, "direction", &direction, err));
        TRY(read_text(at, "null-order", &nulls, err));
        field->transform = iceberg_transform_parse(transform);
        field->is_descending = strcmp(direction, "desc") == 0;
        field->nulls_last = strcmp(nulls, "nulls-last") == 0;
    }
    return STATUS_OK;
}

enum status iceberg_spec_to_json(const struct iceberg_spec *spec, struct arena *arena,
                                 struct json_value **out_fields, struct error *err)
{
    struct json_value *list = json_new_array(arena);
    char transform[32];
    for (uint32_t i = 0; i < spec->field_count; i++) {
        const struct iceberg_partition_field *field = &spec->fields[i];
        struct json_value *object = json_new_object(arena);
        iceberg_transform_to_text(field->transform, transform);
        if (!json_set(arena, object, "name", json_new_text(arena, field->name)) ||
            !json_set(arena, object, "transform", json_new_text(arena, transform)) ||
            !json_set(arena, object, "source-id", json_new_i64(arena, field->source_id)) ||
            !json_set(arena, object, "field-id", json_new_i64(arena, field->field_id)) ||
            !json_append(list, object))
            return out_of_memory(err);
    }
    if (!list)
        return out_of_memory(err);
    *out_fields = list;
    return STATUS_OK;
}

/* ---- parts of the document ---- */

static enum status read_schemas(struct iceberg_table *table, struct error *err)
{
    const struct json_value *at;
    TRY(read_i32(table->base.metadata, "current-schema-id", &table->current_schema_id, err));
    TRY(read_list(table->base.metadata, "schemas", true, &at, &table->schema_count, err));
    table->schemas =
        arena_alloc_zero(&table->base.arena, table->schema_count, sizeof *table->schemas);
    if (!table->schemas)
        return out_of_memory(err);
    for (struct iceberg_schema *schema = table->schemas; at; at = at->next, schema++)
        TRY(iceberg_schema_parse(at, &table->base.arena, schema, err));
    table->schema = iceberg_table_schema(table, table->current_schema_id);
    return table->schema ? STATUS_OK : corrupt("current schema", err);
}

static enum status read_specs(struct iceberg_table *table, struct error *err)
{
    const struct json_value *at;
    TRY(read_i32(table->base.metadata, "default-spec-id", &table->default_spec_id, err));
    TRY(read_list(table->base.metadata, "partition-specs", true, &at, &table->spec_count, err));
    table->specs = arena_alloc_zero(&table->base.arena, table->spec_count, sizeof *table->specs);
    if (!table->specs)
        return out_of_memory(err);
    for (struct iceberg_spec *spec = table->specs; at; at = at->next, spec++)
        TRY(read_spec(at, &table->base.arena, spec, err));
    table->spec = iceberg_table_spec(table, table->default_spec_id);
    return table->spec ? STATUS_OK : corrupt("default partition spec", err);
}

static enum status read_orders(struct iceberg_table *table, struct error *err)
{
    const struct json_value *at;
    const struct json_value *metadata = table->base.metadata;
    TRY(read_i32(metadata, "default-sort-order-id", &table->default_sort_order_id, err));
    TRY(read_list(metadata, "sort-orders", true, &at, &table->sort_order_count, err));
    table->sort_orders =
        arena_alloc_zero(&table->base.arena, table->sort_order_count, sizeof *table->sort_orders);
    if (!table->sort_orders)
        return out_of_memory(err);
    for (struct iceberg_sort_order *order = table->sort_orders; at; at = at->next, order++) {
        TRY(read_order(at, &table->base.arena, order, err));
        if (order->order_id == table->default_sort_order_id)
            table->sort_order = order;
    }
    return table->sort_order ? STATUS_OK : corrupt("default sort order", err);
}

static enum status read_snapshot(const struct json_value *json, struct iceberg_snapshot *snapshot,
                                 struct error *err)
{
    int64_t schema_id = -1;
    snapshot->parent_id = -1;
    TRY(read_i64(json, "snapshot-id", &snapshot->snapshot_id, err));
    TRY(read_i64(json, "timestamp-ms", &snapshot->timestamp_ms, err));
    json_get_i64(json, "parent-snapshot-id", &snapshot->parent_id);
    json_get_i64(json, "sequence-number", &snapshot->sequence_number); /* version 1: none, 0 */
    json_get_i64(json, "schema-id", &schema_id);
    snapshot->schema_id = schema_id >= 0 && schema_id <= INT32_MAX ? (int32_t)schema_id : -1;
    snapshot->manifest_list = json_get_text(json, "manifest-list");
    snapshot->summary = json_get(json, "summary");
    snapshot->operation = json_get_text(snapshot->summary, "operation");
    if (!snapshot->operation)
        snapshot->operation = "";
    return STATUS_OK;
}

/* main's snapshot; -1: none. Metadata without refs has only current-snapshot-id. */
static int64_t main_snapshot_id(const struct json_value *metadata)
{
    int64_t id = -1;
    if (!json_get_i64(json_get(json_get(metadata, "refs"), "main"), "snapshot-id", &id))
        json_get_i64(metadata, "current-snapshot-id", &id);
    return id;
}

static enum status read_snapshots(struct iceberg_table *table, struct error *err)
{
    const struct json_value *at;
    TRY(read_list(table->base.metadata, "snapshots", false, &at, &table->snapshot_count, err));
    table->snapshots =
        arena_alloc_zero(&table->base.arena, table->snapshot_count, sizeof *table->snapshots);
    if (!table->snapshots)
        return out_of_memory(err);
    for (struct iceberg_snapshot *snapshot = table->snapshots; at; at = at->next, snapshot++)
        TRY(read_snapshot(at, snapshot, err));
    int64_t current_id = main_snapshot_id(table->base.metadata);
    if (current_id != -1)
        table->current = iceberg_table_snapshot(table, current_id);
    return current_id == -1 || table->current ? STATUS_OK : corrupt("current snapshot", err);
}

static enum status read_table(struct iceberg_table *table, struct error *err)
{
    const struct json_value *metadata = table->base.metadata;
    const char *location;
    int64_t version;
    TRY(read_i64(metadata, "format-version", &version, err));
    if (version != 2)
        return error_set(err, STATUS_UNSUPPORTED, "table of format version %lld, only 2 is known",
                         (long long)version);
    table->format_version = 2;
    TRY(read_text(metadata, "table-uuid", &table->uuid, err));
    if (strlen(table->uuid) != UUID_TEXT_BYTES - 1)
        return corrupt("table-uuid", err);
    TRY(read_text(metadata, "location", &location, err));
    size_t length = strlen(location);
    while (length > 1 && location[length - 1] == '/')
        length--;
    table->location = arena_copy_text(&table->base.arena, location, length);
    if (!table->location)
        return out_of_memory(err);
    TRY(read_i64(metadata, "last-sequence-number", &table->last_sequence_number, err));
    TRY(read_i64(metadata, "last-updated-ms", &table->last_updated_ms, err));
    TRY(read_i32(metadata, "last-column-id", &table->last_column_id, err));
    table->properties = json_get(metadata, "properties");
    TRY(read_schemas(table, err));
    TRY(read_specs(table, err));
    TRY(read_orders(table, err));
    return read_snapshots(table, err);
}

enum status iceberg_table_from_metadata(struct catalog_table *base, struct catalog_ident ident,
                                        struct iceberg_table **out_table, struct error *err)
{
    struct iceberg_table *table = mem_alloc_zero(1, sizeof *table);
    if (!table) {
        catalog_table_deinit(base);
        return out_of_memory(err);
    }
    table->base = *base;
    *base = (struct catalog_table){0};
    table->ns = arena_copy_text(&table->base.arena, ident.ns, strlen(ident.ns));
    table->name = arena_copy_text(&table->base.arena, ident.name, strlen(ident.name));
    enum status status = table->ns && table->name ? read_table(table, err) : out_of_memory(err);
    if (status == STATUS_INVALID) /* a schema that is none */
        err->status = status = STATUS_CORRUPT;
    if (status == STATUS_OK) {
        *out_table = table;
        return STATUS_OK;
    }
    status = error_prefix(err, "%.200s", table->base.metadata_location);
    iceberg_table_destroy(table);
    return status;
}

/* ---- loading ---- */

enum status iceberg_table_load(struct catalog *catalog, struct catalog_ident ident,
                               struct iceberg_table **out_table, struct error *err)
{
    struct catalog_table base = {0};
    TRY(catalog_load(catalog, ident, &base, err));
    return iceberg_table_from_metadata(&base, ident, out_table, err);
}

enum status iceberg_table_open(struct store *store, const char *metadata_uri,
                               struct iceberg_table **out_table, struct error *err)
{
    struct catalog_table base = {0};
    struct catalog_ident nameless = {.ns = "", .name = ""};
    TRY(catalog_metadata_read(store, metadata_uri, &base, err));
    return iceberg_table_from_metadata(&base, nameless, out_table, err);
}

void iceberg_table_destroy(struct iceberg_table *table)
{
    if (!table)
        return;
    catalog_table_deinit(&table->base);
    mem_free(table);
}

/* ---- looking things up ---- */

const char *iceberg_table_property(const struct iceberg_table *table, const char *key)
{
    return json_get_text(table->properties, key);
}

const struct iceberg_schema *iceberg_table_schema(const struct iceberg_table *table, int32_t id)
{
    for (uint32_t i = 0; i < table->schema_count; i++) {
        if (table->schemas[i].schema_id == id)
            return &table->schemas[i];
    }
    return NULL;
}

const struct iceberg_spec *iceberg_table_spec(const struct iceberg_table *table, int32_t id)
{
    for (uint32_t i = 0; i < table->spec_count; i++) {
        if (table->specs[i].spec_id == id)
            return &table->specs[i];
    }
    return NULL;
}

const struct iceberg_snapshot *iceberg_table_snapshot(const struct iceberg_table *table, int64_t id)
{
    for (uint32_t i = table->snapshot_count; i-- > 0;) { /* the newest are asked for most */
        if (table->snapshots[i].snapshot_id == id)
            return &table->snapshots[i];
    }
    return NULL;
}

const char *iceberg_snapshot_summary(const struct iceberg_snapshot *snapshot, const char *key)
{
    return json_get_text(snapshot->summary, key);
}

bool iceberg_partition_type(const struct iceberg_table *table,
                            const struct iceberg_partition_field *field,
                            const struct iceberg_field **out_source, enum iceberg_type *out_type)
{
    struct error ignored;
    const struct iceberg_field *source = iceberg_schema_find(table->schema, field->source_id);
    for (uint32_t i = 0; i < table->schema_count && !source; i++)
        source = iceberg_schema_find(&table->schemas[i], field->source_id);
    if (!source ||
        iceberg_transform_result(field->transform, source->type, out_type, &ignored) != STATUS_OK)
        return false;
    *out_source = source;
    return true;
}

static enum status data_or_metadata(const struct iceberg_table *table, const char *property,
                                    const char *name, char out_uri[STORE_URI_BYTES_MAX],
                                    struct error *err)
{
    const char *path = iceberg_table_property(table, property);
    if (!path)
        return store_uri_join(table->location, name, out_uri, err);
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    if (length >= STORE_URI_BYTES_MAX)
        return error_set(err, STATUS_INVALID, "%s: too long", property);
    snprintf(out_uri, STORE_URI_BYTES_MAX, "%.*s", (int)length, path);
    return STATUS_OK;
}

enum status iceberg_table_data_location(const struct iceberg_table *table,
                                        char out_uri[STORE_URI_BYTES_MAX], struct error *err)
{
    return data_or_metadata(table, "write.data.path", "data", out_uri, err);
}

enum status iceberg_table_metadata_location(const struct iceberg_table *table,
                                            char out_uri[STORE_URI_BYTES_MAX], struct error *err)
{
    return data_or_metadata(table, "write.metadata.path", "metadata", out_uri, err);
}

/* ---- base ---- */

void iceberg_table_base(const struct iceberg_table *table, struct iceberg_base *out_base)
{
    snprintf(out_base->uuid, sizeof out_base->uuid, "%s", table->uuid);
    out_base->snapshot_id = table->current ? table->current->snapshot_id : -1;
    out_base->last_sequence_number = table->last_sequence_number;
    out_base->last_updated_ms = table->last_updated_ms;
}

bool iceberg_base_equal(const struct iceberg_base *a, const struct iceberg_base *b)
{
    return strcasecmp(a->uuid, b->uuid) == 0 && a->snapshot_id == b->snapshot_id &&
           a->last_sequence_number == b->last_sequence_number &&
           a->last_updated_ms == b->last_updated_ms;
}
