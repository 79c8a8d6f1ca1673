/* SPDX-License-Identifier: Apache-2.0
 *
 * The first metadata document of a table, and its creation.
 */
#include "lake/iceberg/iceberg_internal.h"

enum { FIRST_PARTITION_ID = 1000, CREATE_BYTES_MAX = 64 << 20 };

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "create table: out of memory");
}

/* ---- checks ---- */

static enum status check_spec(const struct iceberg_spec *spec, const struct iceberg_schema *schema,
                              struct error *err)
{
    if (spec->field_count > ICEBERG_PARTITION_FIELDS_MAX)
        return error_set(err, STATUS_LIMIT, "partition spec of %u fields", spec->field_count);
    for (uint32_t i = 0; i < spec->field_count; i++) {
        const struct iceberg_partition_field *field = &spec->fields[i];
        const struct iceberg_field *source = iceberg_schema_find(schema, field->source_id);
        enum iceberg_type type;
        if (!source)
            return error_set(err, STATUS_INVALID, "partition field %.100s: no source column %d",
                             field->name, field->source_id);
        size_t length = strspn(field->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789_");
        bool is_plain =
            length > 0 && !field->name[length] && !(field->name[0] >= '0' && field->name[0] <= '9');
        /* The only column a field may be named like is the one it takes as it is. */
        const struct iceberg_field *namesake = iceberg_schema_find_name(schema, field->name);
        bool is_taken =
            namesake && (field->transform.kind != ICEBERG_IDENTITY || namesake != source);
        if (!is_plain || is_taken)
            return error_set(err, STATUS_INVALID, "partition field name \"%.100s\"", field->name);
        TRY(iceberg_transform_result(field->transform, source->type, &type, err));
    }
    return STATUS_OK;
}

static enum status check_order(const struct iceberg_sort_order *order,
                               const struct iceberg_schema *schema, struct error *err)
{
    for (uint32_t i = 0; i < order->field_count; i++) {
        const struct iceberg_field *source =
            iceberg_schema_find(schema, order->fields[i].source_id);
        enum iceberg_type type;
        if (!source)
            return error_set(err, STATUS_INVALID, "sort order: no column %d",
                             order->fields[i].source_id);
        TRY(iceberg_transform_result(order->fields[i].transform, source->type, &type, err));
    }
    return STATUS_OK;
}

/* ---- parts of the document; a NULL means that the arena is full ---- */

static struct json_value *new_order(const struct iceberg_sort_order *order, int32_t id,
                                    struct arena *arena)
{
    struct json_value *json = json_new_object(arena), *fields = json_new_array(arena);
    char transform[32];
    for (uint32_t i = 0; order && i < order->field_count; i++) {
        const struct iceberg_sort_field *field = &order->fields[i];
        struct json_value *object = json_new_object(arena);
        iceberg_transform_to_text(field->transform, transform);
        if (!json_set(arena, object, "transform", json_new_text(arena, transform)) ||
            !json_set(arena, object, "source-id", json_new_i64(arena, field->source_id)) ||
            !json_set(arena, object, "direction",
                      json_new_text(arena, field->is_descending ? "desc" : "asc")) ||
            !json_set(arena, object, "null-order",
                      json_new_text(arena, field->nulls_last ? "nulls-last" : "nulls-first")) ||
            !json_append(fields, object))
            return NULL;
    }
    return json_set(arena, json, "order-id", json_new_i64(arena, id)) &&
                   json_set(arena, json, "fields", fields)
               ? json
               : NULL;
}

/* [{"field-id", "names": [name], "fields": [...]}]: for files that were written without ids. */
static struct json_value *new_mapping(const struct iceberg_field *fields, uint32_t count,
                                      struct arena *arena)
{
    struct json_value *list = json_new_array(arena);
    for (uint32_t i = 0; i < count; i++) {
        struct json_value *object = json_new_object(arena), *names = json_new_array(arena);
        if (!json_set(arena, object, "field-id", json_new_i64(arena, fields[i].id)) ||
            !json_append(names, json_new_text(arena, fields[i].name)) ||
            !json_set(arena, object, "names", names) ||
            (fields[i].child_count &&
             !json_set(arena, object, "fields",
                       new_mapping(fields[i].children, fields[i].child_count, arena))) ||
            !json_append(list, object))
            return NULL;
    }
    return list;
}

static enum status set_properties(const struct iceberg_table_options *options,
                                  const struct iceberg_schema *schema, struct arena *arena,
                                  struct json_value *metadata, struct error *err)
{
    struct json_value *properties = json_new_object(arena);
    for (size_t i = 0; i < options->property_count; i++) {
        const struct iceberg_pair *pair = &options->properties[i];
        if (pair->value &&
            !json_set(arena, properties, pair->key, json_new_text(arena, pair->value)))
            return out_of_memory(err);
    }
    if (options->with_name_mapping) {
        struct json_value *mapping = new_mapping(schema->fields, schema->field_count, arena);
        struct buf text;
        if (!mapping)
            return out_of_memory(err);
        buf_init(&text, 0);
        enum status status = json_serialize(mapping, &text, err);
        if (status == STATUS_OK && !json_set(arena, properties, "schema.name-mapping.default",
                                             json_new_string(arena, text.data, text.length)))
            status = out_of_memory(err);
        buf_deinit(&text);
        TRY(status);
    }
    return json_set(arena, metadata, "properties", properties) ? STATUS_OK : out_of_memory(err);
}

/* The spec with field ids from 1000 where none are given. */
static enum status number_spec(const struct iceberg_spec *from, struct arena *arena,
                               struct iceberg_spec *out_spec, int32_t *out_last_id,
                               struct error *err)
{
    struct iceberg_spec spec = {.field_count = from ? from->field_count : 0};
    int32_t last_id = FIRST_PARTITION_ID - 1;
    spec.fields = arena_alloc_zero(arena, spec.field_count, sizeof *spec.fields);
    if (!spec.fields)
        return out_of_memory(err);
    for (uint32_t i = 0; i < spec.field_count; i++) {
        spec.fields[i] = from->fields[i];
        if (spec.fields[i].field_id > last_id)
            last_id = spec.fields[i].field_id;
    }
    for (uint32_t i = 0; i < spec.field_count; i++) {
        if (spec.fields[i].field_id == 0)
            spec.fields[i].field_id = ++last_id;
    }
    *out_spec = spec;
    *out_last_id = last_id;
    return STATUS_OK;
}

/* ---- the document ---- */

/* Appends `item` as the one element of a list under `key`. */
static bool set_single(struct arena *arena, struct json_value *metadata, const char *key,
                       struct json_value *item)
{
    struct json_value *list = json_new_array(arena);
    return json_append(list, item) && json_set(arena, metadata, key, list);
}

/* The unsorted order under its reserved id 0, always: Java's sorting rewrites name it whatever the
 * table's own order is, and fail where it is missing. Then the table's own. */
static bool set_orders(struct arena *arena, struct json_value *metadata,
                       const struct iceberg_sort_order *own)
{
    int32_t id = own && own->field_count ? 1 : 0;
    struct json_value *list = json_new_array(arena);
    return json_append(list, new_order(NULL, 0, arena)) &&
           (!id || json_append(list, new_order(own, id, arena))) &&
           json_set(arena, metadata, "default-sort-order-id", json_new_i64(arena, id)) &&
           json_set(arena, metadata, "sort-orders", list);
}

static enum status fill_document(const struct iceberg_table_options *options, const char *uuid,
                                 const char *location, int64_t now_ms,
                                 const struct iceberg_schema *schema, int32_t last_column_id,
                                 struct arena *arena, struct json_value *metadata,
                                 struct error *err)
{
    struct iceberg_spec spec;
    int32_t last_partition_id = 0;
    struct json_value *schema_json = NULL, *spec_fields = NULL, *spec_json = json_new_object(arena);
    TRY(number_spec(options->spec, arena, &spec, &last_partition_id, err));
    TRY(iceberg_schema_to_json(schema, arena, &schema_json, err));
    TRY(iceberg_spec_to_json(&spec, arena, &spec_fields, err));
    bool is_whole =
        json_set(arena, metadata, "format-version", json_new_i64(arena, 2)) &&
        json_set(arena, metadata, "table-uuid", json_new_text(arena, uuid)) &&
        json_set(arena, metadata, "location", json_new_text(arena, location)) &&
        json_set(arena, metadata, "last-sequence-number", json_new_i64(arena, 0)) &&
        json_set(arena, metadata, "last-updated-ms", json_new_i64(arena, now_ms)) &&
        json_set(arena, metadata, "last-column-id", json_new_i64(arena, last_column_id)) &&
        json_set(arena, metadata, "current-schema-id", json_new_i64(arena, 0)) &&
        set_single(arena, metadata, "schemas", schema_json) &&
        json_set(arena, spec_json, "spec-id", json_new_i64(arena, 0)) &&
        json_set(arena, spec_json, "fields", spec_fields) &&
        json_set(arena, metadata, "default-spec-id", json_new_i64(arena, 0)) &&
        set_single(arena, metadata, "partition-specs", spec_json) &&
        json_set(arena, metadata, "last-partition-id", json_new_i64(arena, last_partition_id)) &&
        set_orders(arena, metadata, options->sort_order);
    if (!is_whole)
        return out_of_memory(err);
    TRY(set_properties(options, schema, arena, metadata, err));
    is_whole = json_set(arena, metadata, "refs", json_new_object(arena)) &&
               json_set(arena, metadata, "snapshots", json_new_array(arena)) &&
               json_set(arena, metadata, "snapshot-log", json_new_array(arena)) &&
               json_set(arena, metadata, "metadata-log", json_new_array(arena));
    return is_whole ? STATUS_OK : out_of_memory(err);
}

static enum status default_location(struct store *store, struct catalog_ident ident,
                                    const char *wanted, char out_uri[STORE_URI_BYTES_MAX],
                                    struct error *err)
{
    char directory[STORE_URI_BYTES_MAX];
    if (wanted)
        return store_uri_canonical(store, wanted, out_uri, err);
    TRY(store_uri_join(store_root(store), ident.ns, directory, err));
    return store_uri_join(directory, ident.name, out_uri, err);
}

enum status iceberg_table_create(struct env *env, struct catalog *catalog, struct store *store,
                                 struct catalog_ident ident,
                                 const struct iceberg_table_options *options,
                                 struct iceberg_table **out_table, struct error *err)
{
    struct arena arena;
    struct catalog_table base = {0};
    struct iceberg_schema schema = *options->schema;
    int32_t last_column_id = 0;
    uint8_t random[16];
    char uuid[UUID_TEXT_BYTES], location[STORE_URI_BYTES_MAX];
    enum status status;
    arena_init(&arena, CREATE_BYTES_MAX);
    env_random(env, random, sizeof random);
    uuid_to_text(uuid_from_random(random), uuid);
    schema.schema_id = 0;
    TRY_OR_DONE(status, iceberg_field_copy(options->schema->fields, schema.field_count, &arena,
                                           &schema.fields, err));
    iceberg_schema_assign_ids(&schema, &last_column_id);
    if (options->spec)
        TRY_OR_DONE(status, check_spec(options->spec, &schema, err));
    if (options->sort_order)
        TRY_OR_DONE(status, check_order(options->sort_order, &schema, err));
    TRY_OR_DONE(status, default_location(store, ident, options->location, location, err));
    struct json_value *metadata = json_new_object(&arena);
    TRY_OR_DONE(status, fill_document(options, uuid, location, env_wall_ns(env) / 1000000, &schema,
                                      last_column_id, &arena, metadata, err));
    TRY_OR_DONE(status, catalog_create_table(catalog, ident, metadata, &base, err));
    status = iceberg_table_from_metadata(&base, ident, out_table, err);
    if (status != STATUS_OK) /* it is there by now */
        err->status = status = STATUS_UNKNOWN_OUTCOME;
done:
    arena_deinit(&arena);
    return status;
}
