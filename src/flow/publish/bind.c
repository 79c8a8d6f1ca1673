/* SPDX-License-Identifier: Apache-2.0
 *
 * Our columns in their table. Tables are made by us, copied, made by others, and changed by
 * anybody. A field of the table is ours by the first of its names that one of ours has: a rename
 * keeps the field's id, and rows follow the id. What others added is left out of our files, which
 * read as null there; what they dropped is not stored, and told. A column that the table never had,
 * of another type, or required and unknown halts the lane and is named.
 */
#include <stdio.h>

#include "flow/publish/publish_internal.h"

struct pairing {
    struct binding *binding;
    const struct iceberg_table *table;
    const char *column; /* the top-level one at hand; NULL: none */
    struct error *err;
};

static enum status mismatch(const struct pairing *pairing, const char *what, const char *name)
{
    return error_set(pairing->err, STATUS_HALTED, "column %s: %s%s%s", pairing->column, what,
                     name ? " " : "", name ? name : "");
}

static enum status out_of_memory(const struct pairing *pairing)
{
    return error_set(pairing->err, STATUS_NO_MEMORY, "binding: out of memory");
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

/* ---- which field is which column ---- */

static int find_field(const struct arrow_field *fields, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(fields[i].name, name) == 0)
            return (int)i;
    }
    return -1;
}

/* Fields of one struct, or of the table itself (id 0), in one of the table's schemas. */
struct level {
    const struct iceberg_field *fields;
    uint32_t count;
};

static struct level level_in(const struct iceberg_schema *schema, int32_t id)
{
    const struct iceberg_field *parent = id ? iceberg_schema_find(schema, id) : NULL;
    if (id)
        return (struct level){parent ? parent->children : NULL, parent ? parent->child_count : 0};
    return (struct level){schema->fields, schema->field_count};
}

/* Which of ours a field of the table is; -1: none. */
static int find_own(const struct iceberg_table *table, int32_t id, const struct arrow_field *ours,
                    uint32_t count)
{
    for (uint32_t s = 0; s < table->schema_count; s++) {
        const struct iceberg_field *then = iceberg_schema_find(&table->schemas[s], id);
        int found = then ? find_field(ours, count, then->name) : -1;
        if (found >= 0)
            return found;
    }
    return -1;
}

static bool was_there(const struct iceberg_table *table, int32_t parent_id, const char *name)
{
    for (uint32_t s = 0; s < table->schema_count; s++) {
        struct level level = level_in(&table->schemas[s], parent_id);
        for (uint32_t i = 0; i < level.count; i++) {
            if (strcmp(level.fields[i].name, name) == 0)
                return true;
        }
    }
    return false;
}

/* A column of ours that the table does not have: dropped by somebody, or never there. */
static enum status note_missing(struct pairing *pairing, int32_t parent_id, const char *name)
{
    char *list = pairing->binding->dropped;
    size_t length = strlen(list), room = sizeof pairing->binding->dropped - length;
    bool is_position = find_field(position_fields, POSITION_FIELDS, name) >= 0;
    if (is_position || !was_there(pairing->table, parent_id, name)) {
        if (!pairing->column)
            return error_set(pairing->err, STATUS_HALTED,
                             "column %s: the table has none of that name", name);
        return mismatch(pairing, "the table's nested fields have none named", name);
    }
    snprintf(list + length, room, "%s%s%s%s", length ? ", " : "",
             pairing->column ? pairing->column : "", pairing->column ? "." : "", name);
    return STATUS_OK;
}

/* ---- pairs ---- */

/* `out_fields` and `out_columns` have room for all of theirs. */
static enum status pair_level(struct pairing *pairing, const struct arrow_field *ours,
                              uint32_t our_count, struct level theirs, int32_t parent_id,
                              struct arrow_field *out_fields, struct bound_column *out_columns,
                              uint32_t *out_count);

static enum status pair_type(struct pairing *pairing, const struct arrow_field *ours,
                             const struct iceberg_field *theirs, struct arrow_field *out_field,
                             struct bound_column *out_column)
{
    enum arrow_type type = arrow_type_of(theirs);
    bool is_widened = ours->type == ARROW_INT32 && type == ARROW_INT64 && !ours->is_dictionary;
    bool is_other_time =
        type == ARROW_TIMESTAMP_US && ours->is_instant != (theirs->type == ICEBERG_TIMESTAMPTZ);
    if ((type != ours->type && !is_widened) || is_other_time)
        return mismatch(pairing, "the table's type is", iceberg_type_name(theirs->type));
    if (theirs->is_required && ours->is_nullable)
        return mismatch(pairing, "the table requires a value, ours may be missing", NULL);
    *out_field = *ours;
    out_field->type = type;
    out_field->field_id = theirs->id;
    out_field->is_nullable = !theirs->is_required;
    out_column->is_widened = is_widened;
    return STATUS_OK;
}

/* Our field becomes the table's, all the way down. */
static enum status pair_field(struct pairing *pairing, const struct arrow_field *ours,
                              const struct iceberg_field *theirs, struct arrow_field *out_field,
                              struct bound_column *out_column)
{
    struct arena *arena = &pairing->binding->arena;
    struct level level = {theirs->children, theirs->child_count};
    TRY(pair_type(pairing, ours, theirs, out_field, out_column));
    out_column->is_as_it_is = !out_column->is_widened;
    if (!ours->child_count)
        return STATUS_OK;
    out_field->children = arena_alloc_zero(arena, level.count + 1, sizeof *out_field->children);
    out_column->children = arena_alloc_zero(arena, level.count + 1, sizeof *out_column->children);
    if (!out_field->children || !out_column->children)
        return out_of_memory(pairing);
    if (ours->type == ARROW_STRUCT) {
        TRY(pair_level(pairing, ours->children, ours->child_count, level, theirs->id,
                       out_field->children, out_column->children, &out_field->child_count));
    } else {
        CHECK(level.count == ours->child_count); /* list 1, map 2 */
        for (uint32_t i = 0; i < level.count; i++) {
            out_column->children[i].source = (int)i;
            TRY(pair_field(pairing, &ours->children[i], &level.fields[i], &out_field->children[i],
                           &out_column->children[i]));
        }
    }
    out_column->is_as_it_is = out_field->child_count == ours->child_count;
    for (uint32_t i = 0; i < out_field->child_count; i++)
        out_column->is_as_it_is &=
            out_column->children[i].is_as_it_is && out_column->children[i].source == (int)i;
    return STATUS_OK;
}

/* For each of theirs the column of ours, or -1. Where two have borne one name, the elder has it. */
static void find_homes(const struct iceberg_table *table, const struct arrow_field *ours,
                       uint32_t our_count, struct level theirs, int *out_owns, bool *out_is_homed)
{
    for (uint32_t i = 0; i < theirs.count; i++) {
        out_owns[i] = find_own(table, theirs.fields[i].id, ours, our_count);
        for (uint32_t j = 0; j < i && out_owns[i] >= 0; j++) {
            if (out_owns[j] == out_owns[i])
                out_owns[theirs.fields[j].id < theirs.fields[i].id ? i : j] = -1;
        }
    }
    for (uint32_t i = 0; i < theirs.count; i++) {
        if (out_owns[i] >= 0)
            out_is_homed[out_owns[i]] = true;
    }
}

static enum status pair_level(struct pairing *pairing, const struct arrow_field *ours,
                              uint32_t our_count, struct level theirs, int32_t parent_id,
                              struct arrow_field *out_fields, struct bound_column *out_columns,
                              uint32_t *out_count)
{
    struct arena *arena = &pairing->binding->arena;
    int *owns = arena_alloc_zero(arena, theirs.count + 1, sizeof *owns);
    bool *is_homed = arena_alloc_zero(arena, our_count + 1, sizeof *is_homed);
    uint32_t count = 0;
    if (!owns || !is_homed)
        return out_of_memory(pairing);
    find_homes(pairing->table, ours, our_count, theirs, owns, is_homed);
    for (uint32_t i = 0; i < our_count; i++) {
        if (!is_homed[i])
            TRY(note_missing(pairing, parent_id, ours[i].name));
    }
    for (uint32_t i = 0; i < theirs.count; i++) {
        const struct iceberg_field *field = &theirs.fields[i];
        if (!parent_id)
            pairing->column = field->name;
        if (owns[i] < 0) {
            if (field->is_required)
                return mismatch(pairing, "the table requires it, and we have no such column",
                                parent_id ? field->name : NULL);
            continue; /* not in the file: null to every reader */
        }
        TRY(pair_field(pairing, &ours[owns[i]], field, &out_fields[count], &out_columns[count]));
        out_fields[count].name = arena_copy_text(arena, field->name, strlen(field->name));
        if (!out_fields[count].name)
            return out_of_memory(pairing);
        out_columns[count++].source = owns[i];
    }
    if (!count && parent_id)
        return mismatch(pairing, "none of its nested fields is left", NULL);
    *out_count = count;
    return STATUS_OK;
}

/* ---- the table ---- */

static enum status bind_columns(struct pairing *pairing)
{
    struct binding *binding = pairing->binding;
    const struct arrow_schema *payload = binding->payload;
    const struct iceberg_schema *theirs = pairing->table->schema;
    struct arena *arena = &binding->arena;
    struct arrow_schema ours;
    binding->schema.fields =
        arena_alloc_zero(arena, theirs->field_count + 1, sizeof(struct arrow_field));
    binding->columns =
        arena_alloc_zero(arena, theirs->field_count + 1, sizeof(struct bound_column));
    if (!binding->schema.fields || !binding->columns || !positions_schema(payload, arena, &ours))
        return out_of_memory(pairing);
    return pair_level(pairing, ours.fields, ours.field_count, level_in(theirs, 0), 0,
                      binding->schema.fields, binding->columns, &binding->schema.field_count);
}

int binding_source(const struct binding *binding, int32_t field_id)
{
    for (uint32_t i = 0; i < binding->schema.field_count; i++) {
        if (binding->schema.fields[i].field_id == field_id &&
            binding->columns[i].source < (int)binding->payload->field_count)
            return binding->columns[i].source;
    }
    return -1;
}

static enum status bind_partition(struct pairing *pairing)
{
    struct binding *binding = pairing->binding;
    const struct iceberg_spec *spec = pairing->table->spec;
    struct arena *arena = &binding->arena;
    struct iceberg_spec *copy = arena_alloc_zero(arena, 1, sizeof *copy);
    if (copy)
        copy->fields = arena_alloc_zero(arena, spec->field_count + 1, sizeof *copy->fields);
    binding->partition_columns = arena_alloc_zero(arena, spec->field_count + 1, sizeof(int));
    if (!copy || !copy->fields || !binding->partition_columns)
        return out_of_memory(pairing);
    copy->spec_id = spec->spec_id;
    copy->field_count = spec->field_count;
    for (uint32_t i = 0; i < spec->field_count; i++) {
        const struct iceberg_partition_field *field = &spec->fields[i];
        int column = binding_source(binding, field->source_id);
        if (column < 0 || field->transform.kind == ICEBERG_TRANSFORM_UNKNOWN)
            return error_set(pairing->err, STATUS_HALTED,
                             "partition field %s: its source or transform is not known here",
                             field->name);
        copy->fields[i] = *field;
        copy->fields[i].name = arena_copy_text(arena, field->name, strlen(field->name));
        if (!copy->fields[i].name)
            return out_of_memory(pairing);
        binding->partition_columns[i] = column;
    }
    binding->spec = copy;
    binding->spec_id = spec->spec_id;
    return STATUS_OK;
}

/* Our sort columns are the table's order only if it says so. */
static int32_t sort_order_of(const struct binding *binding, const struct publish_table *definition,
                             const struct iceberg_table *table)
{
    const struct iceberg_sort_order *order = table->sort_order;
    if (!order || order->field_count != definition->sort_column_count)
        return -1;
    for (uint32_t i = 0; i < order->field_count; i++) {
        const struct iceberg_sort_field *field = &order->fields[i];
        int column = binding_source(binding, field->source_id);
        if (column < 0 ||
            strcmp(binding->payload->fields[column].name, definition->sort_columns[i]) != 0 ||
            field->transform.kind != ICEBERG_IDENTITY || field->is_descending || field->nulls_last)
            return -1;
    }
    return order->order_id;
}

enum status binding_create(const struct publish_table *definition,
                           const struct arrow_schema *payload, const struct iceberg_table *table,
                           struct binding *out_binding, struct error *err)
{
    struct binding binding = {.payload = payload, .schema_id = table->schema->schema_id};
    struct pairing pairing = {.binding = &binding, .table = table, .err = err};
    arena_init(&binding.arena, 0);
    enum status status = bind_columns(&pairing);
    if (status == STATUS_OK)
        status = bind_partition(&pairing);
    if (status != STATUS_OK) {
        arena_deinit(&binding.arena);
        return status;
    }
    binding.sort_order_id = sort_order_of(&binding, definition, table);
    *out_binding = binding;
    return STATUS_OK;
}

void binding_deinit(struct binding *binding)
{
    arena_deinit(&binding->arena);
    *binding = (struct binding){0};
}
