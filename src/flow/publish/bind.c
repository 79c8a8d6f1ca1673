/* SPDX-License-Identifier: Apache-2.0
 *
 * Our columns in their table. Tables are made by us, copied, made by others, and changed by
 * anybody: a column is found by its name, and what is written carries the id that the table gives
 * it. Unknown optional columns are null; a column that is missing, of another type, or required and
 * unknown halts the lane and is named.
 */
#include <stdio.h>

#include "flow/publish/publish_internal.h"

static const struct arrow_field position_fields[] = {
    {.name = "_sluice_log", .type = ARROW_UTF8, .is_dictionary = true},
    {.name = "_sluice_group", .type = ARROW_INT32},
    {.name = "_sluice_seq", .type = ARROW_INT64},
    {.name = "_sluice_index", .type = ARROW_INT32},
};
static const int position_sources[] = {SOURCE_LOG, SOURCE_GROUP, SOURCE_SEQ, SOURCE_INDEX};

static enum status binding_new_schema(const struct publish_table *definition, struct arena *arena,
                                      struct arrow_schema *out_schema, struct error *err)
{
    struct arrow_schema payload;
    TRY(arrow_schema_copy(definition->schema, arena, &payload, err));
    uint32_t own = COUNT_OF(position_fields), count = payload.field_count + own;
    struct arrow_field *fields = arena_alloc_zero(arena, count, sizeof *fields);
    if (!fields)
        return error_set(err, STATUS_NO_MEMORY, "new schema: out of memory");
    memcpy(fields, payload.fields, payload.field_count * sizeof *fields);
    memcpy(fields + payload.field_count, position_fields, sizeof position_fields);
    *out_schema = (struct arrow_schema){.fields = fields, .field_count = count};
    return STATUS_OK;
}

static void forget_ids(struct iceberg_field *fields, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        fields[i].id = 0;
        forget_ids(fields[i].children, fields[i].child_count);
    }
}

enum status publish_table_schema(const struct publish_table *definition, struct arena *arena,
                                 struct arrow_schema *out_rows, struct iceberg_schema *out_schema,
                                 struct error *err)
{
    int32_t last_id = 0;
    TRY(binding_new_schema(definition, arena, out_rows, err));
    TRY(iceberg_schema_from_arrow(out_rows, arena, out_schema, err));
    forget_ids(out_schema->fields, out_schema->field_count);
    iceberg_schema_assign_ids(out_schema, &last_id);
    for (uint32_t i = 0; i < definition->schema->field_count && definition->sources; i++)
        out_schema->fields[i].doc = definition->sources[i];
    return STATUS_OK;
}

struct pairing {
    struct arena *arena;
    const char *column;
    struct error *err;
};

static enum status mismatch(struct pairing *pairing, const char *what, const char *name)
{
    return error_set(pairing->err, STATUS_HALTED, "column %s: %s%s%s", pairing->column, what,
                     name ? " " : "", name ? name : "");
}

static enum arrow_type arrow_type_of(const struct iceberg_field *field)
{
    switch (field->type) {
    case ICEBERG_BOOLEAN:
        return ARROW_BOOL;
    case ICEBERG_INT:
        return ARROW_INT32;
    case ICEBERG_LONG:
        return ARROW_INT64;
    case ICEBERG_FLOAT:
        return ARROW_FLOAT;
    case ICEBERG_DOUBLE:
        return ARROW_DOUBLE;
    case ICEBERG_DATE:
        return ARROW_DATE32;
    case ICEBERG_TIMESTAMP:
    case ICEBERG_TIMESTAMPTZ:
        return ARROW_TIMESTAMP_US;
    case ICEBERG_STRING:
        return ARROW_UTF8;
    case ICEBERG_BINARY:
        return ARROW_BINARY;
    case ICEBERG_STRUCT:
        return ARROW_STRUCT;
    case ICEBERG_LIST:
        return ARROW_LIST;
    case ICEBERG_MAP:
        return ARROW_MAP;
    default:
        return ARROW_TYPE_COUNT;
    }
}

/* `field` is ours and gets the table's id and nullability, all the way down. */
static enum status pair_fields(struct pairing *pairing, struct arrow_field *field,
                               const struct iceberg_field *theirs, bool *out_is_widened)
{
    enum arrow_type type = arrow_type_of(theirs);
    *out_is_widened = field->type == ARROW_INT32 && type == ARROW_INT64 && !field->is_dictionary;
    if (type != field->type && !*out_is_widened)
        return mismatch(pairing, "the table's type is", iceberg_type_name(theirs->type));
    if (type == ARROW_TIMESTAMP_US && field->is_instant != (theirs->type == ICEBERG_TIMESTAMPTZ))
        return mismatch(pairing, "the table's type is", iceberg_type_name(theirs->type));
    field->type = type;
    field->field_id = theirs->id;
    if (!theirs->is_required)
        field->is_nullable = true;
    else if (field->is_nullable)
        return mismatch(pairing, "the table requires a value, ours may be missing", NULL);
    if (theirs->child_count != field->child_count)
        return mismatch(pairing, "the table's nested fields are not ours", NULL);
    for (uint32_t i = 0; i < field->child_count; i++) {
        struct arrow_field *child = &field->children[i];
        const struct iceberg_field *their_child = &theirs->children[i];
        bool is_widened;
        if (field->type == ARROW_STRUCT && strcmp(child->name, their_child->name) != 0)
            return mismatch(pairing, "the table's nested fields are not ours, at",
                            their_child->name);
        TRY(pair_fields(pairing, child, their_child, &is_widened));
        if (is_widened)
            return mismatch(pairing, "a nested field was widened:", their_child->name);
    }
    return STATUS_OK;
}

static int find_payload(const struct arrow_schema *payload, const char *name)
{
    for (uint32_t i = 0; i < payload->field_count; i++) {
        if (strcmp(payload->fields[i].name, name) == 0)
            return (int)i;
    }
    return -1;
}

static enum status bind_column(struct binding *binding, const struct iceberg_field *theirs,
                               uint32_t index, const struct arrow_schema *empty, struct error *err)
{
    struct arrow_field *field = &binding->schema.fields[index];
    struct pairing pairing = {.arena = &binding->arena, .column = theirs->name, .err = err};
    int source = find_payload(binding->payload, theirs->name);
    struct arrow_schema one = {.field_count = 1}, copy;
    binding->sources[index] = source;
    if (source >= 0) {
        one.fields = &binding->payload->fields[source];
    } else {
        for (size_t i = 0; i < COUNT_OF(position_fields); i++) {
            if (strcmp(position_fields[i].name, theirs->name) == 0) {
                binding->sources[index] = position_sources[i];
                one.fields = (struct arrow_field *)(uintptr_t)&position_fields[i];
            }
        }
    }
    if (!one.fields) {
        if (theirs->is_required)
            return mismatch(&pairing, "the table requires it, and we have no such column", NULL);
        binding->sources[index] = SOURCE_NULL;
        *field = empty->fields[index]; /* the table's own type, all null */
        return STATUS_OK;
    }
    TRY(arrow_schema_copy(&one, &binding->arena, &copy, err));
    *field = copy.fields[0];
    return pair_fields(&pairing, field, theirs, &binding->is_widened[index]);
}

/* Every column of ours must have found its place. */
static enum status check_all_bound(const struct binding *binding,
                                   const struct iceberg_schema *theirs, struct error *err)
{
    for (uint32_t i = 0; i < binding->payload->field_count; i++) {
        const char *name = binding->payload->fields[i].name;
        if (!iceberg_schema_find_name(theirs, name))
            return error_set(err, STATUS_HALTED, "column %s: the table has none of that name",
                             name);
    }
    for (size_t i = 0; i < COUNT_OF(position_fields); i++) {
        if (!iceberg_schema_find_name(theirs, position_fields[i].name))
            return error_set(err, STATUS_HALTED, "column %s: the table has none of that name",
                             position_fields[i].name);
    }
    return STATUS_OK;
}

static enum status bind_partition(struct binding *binding, const struct iceberg_table *table,
                                  struct error *err)
{
    const struct iceberg_spec *spec = table->spec;
    struct iceberg_spec *copy = arena_alloc_zero(&binding->arena, 1, sizeof *copy);
    if (copy)
        copy->fields =
            arena_alloc_zero(&binding->arena, spec->field_count + 1, sizeof *copy->fields);
    binding->partition_columns =
        arena_alloc_zero(&binding->arena, spec->field_count + 1, sizeof(int));
    if (!copy || !copy->fields || !binding->partition_columns)
        return error_set(err, STATUS_NO_MEMORY, "binding: out of memory");
    copy->spec_id = spec->spec_id;
    copy->field_count = spec->field_count;
    for (uint32_t i = 0; i < spec->field_count; i++) {
        const struct iceberg_partition_field *field = &spec->fields[i];
        const struct iceberg_field *source = iceberg_schema_find(table->schema, field->source_id);
        int column = source ? find_payload(binding->payload, source->name) : -1;
        if (!source || column < 0 || field->transform.kind == ICEBERG_TRANSFORM_UNKNOWN)
            return error_set(err, STATUS_HALTED,
                             "partition field %s: its source or transform is not known here",
                             field->name);
        copy->fields[i] = *field;
        copy->fields[i].name = arena_copy_text(&binding->arena, field->name, strlen(field->name));
        if (!copy->fields[i].name)
            return error_set(err, STATUS_NO_MEMORY, "binding: out of memory");
        binding->partition_columns[i] = column;
    }
    binding->spec = copy;
    binding->spec_id = spec->spec_id;
    return STATUS_OK;
}

/* Our sort columns are the table's order only if it says so. */
static int32_t sort_order_of(const struct publish_table *definition,
                             const struct iceberg_table *table)
{
    const struct iceberg_sort_order *order = table->sort_order;
    if (!order || order->field_count != definition->sort_column_count)
        return -1;
    for (uint32_t i = 0; i < order->field_count; i++) {
        const struct iceberg_field *source =
            iceberg_schema_find(table->schema, order->fields[i].source_id);
        if (!source || strcmp(source->name, definition->sort_columns[i]) != 0 ||
            order->fields[i].transform.kind != ICEBERG_IDENTITY || order->fields[i].is_descending ||
            order->fields[i].nulls_last)
            return -1;
    }
    return order->order_id;
}

static enum status bind_all(struct binding *binding, const struct publish_table *definition,
                            const struct iceberg_table *table, struct error *err)
{
    const struct iceberg_schema *theirs = table->schema;
    struct arrow_schema empty;
    uint32_t count = theirs->field_count;
    binding->schema.fields = arena_alloc_zero(&binding->arena, count, sizeof(struct arrow_field));
    binding->schema.field_count = count;
    binding->sources = arena_alloc_zero(&binding->arena, count, sizeof(int));
    binding->is_widened = arena_alloc_zero(&binding->arena, count, sizeof(bool));
    if (!binding->schema.fields || !binding->sources || !binding->is_widened)
        return error_set(err, STATUS_NO_MEMORY, "binding: out of memory");
    TRY(check_all_bound(binding, theirs, err));
    enum status status = iceberg_schema_to_arrow(theirs, &binding->arena, &empty, err);
    if (status != STATUS_OK)
        return error_set(err, STATUS_HALTED,
                         "the table has a column that cannot be written here: %s", err->message);
    for (uint32_t i = 0; i < count; i++)
        TRY(bind_column(binding, &theirs->fields[i], i, &empty, err));
    binding->schema_id = theirs->schema_id;
    binding->sort_order_id = sort_order_of(definition, table);
    return bind_partition(binding, table, err);
}

enum status binding_create(const struct publish_table *definition,
                           const struct arrow_schema *payload, const struct iceberg_table *table,
                           struct binding *out_binding, struct error *err)
{
    struct binding binding = {.payload = payload};
    arena_init(&binding.arena, 0);
    enum status status = bind_all(&binding, definition, table, err);
    if (status != STATUS_OK) {
        arena_deinit(&binding.arena);
        return status;
    }
    *out_binding = binding;
    return STATUS_OK;
}

void binding_deinit(struct binding *binding)
{
    arena_deinit(&binding->arena);
    *binding = (struct binding){0};
}
