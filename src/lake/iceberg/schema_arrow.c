/* SPDX-License-Identifier: Apache-2.0
 *
 * Between Iceberg's and Arrow's schemas. Field ids go along on every node: readers find columns by
 * them, and a Parquet file without them reads as nulls.
 */
#include "lake/iceberg/iceberg_internal.h"

static const struct {
    enum iceberg_type iceberg;
    enum arrow_type arrow;
} pairs[] = {
    {ICEBERG_BOOLEAN, ARROW_BOOL},
    {ICEBERG_INT, ARROW_INT32},
    {ICEBERG_LONG, ARROW_INT64},
    {ICEBERG_FLOAT, ARROW_FLOAT},
    {ICEBERG_DOUBLE, ARROW_DOUBLE},
    {ICEBERG_DATE, ARROW_DATE32},
    {ICEBERG_TIMESTAMP, ARROW_TIMESTAMP_US},
    {ICEBERG_TIMESTAMPTZ, ARROW_TIMESTAMP_US},
    {ICEBERG_STRING, ARROW_UTF8},
    {ICEBERG_BINARY, ARROW_BINARY},
    {ICEBERG_FIXED, ARROW_FIXED},
    {ICEBERG_STRUCT, ARROW_STRUCT},
    {ICEBERG_LIST, ARROW_LIST},
    {ICEBERG_MAP, ARROW_MAP},
};

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "schema: out of memory");
}

/* Whether Arrow has the type of the field and of all below it. */
static bool has_arrow_type(const struct iceberg_field *field)
{
    bool is_known = false;
    for (size_t i = 0; i < COUNT_OF(pairs); i++)
        is_known |= pairs[i].iceberg == field->type;
    for (uint32_t i = 0; i < field->child_count && is_known; i++)
        is_known = has_arrow_type(&field->children[i]);
    return is_known;
}

static enum status to_arrow(const struct iceberg_field *from, struct arena *arena,
                            struct arrow_field *to, struct error *err)
{
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        if (pairs[i].iceberg == from->type)
            to->type = pairs[i].arrow;
    }
    to->name = arena_copy_text(arena, from->name, strlen(from->name));
    to->is_nullable = !from->is_required;
    to->is_instant = from->type == ICEBERG_TIMESTAMPTZ;
    to->byte_width = (int32_t)from->fixed_bytes;
    to->field_id = from->id;
    to->child_count = from->child_count;
    to->children = arena_alloc_zero(arena, from->child_count, sizeof *to->children);
    if (!to->name || !to->children)
        return out_of_memory(err);
    for (uint32_t i = 0; i < from->child_count; i++)
        TRY(to_arrow(&from->children[i], arena, &to->children[i], err));
    return STATUS_OK;
}

enum status iceberg_schema_to_arrow(const struct iceberg_schema *schema, struct arena *arena,
                                    struct arrow_schema *out_schema, struct error *err)
{
    struct arrow_schema arrow = {0};
    arrow.fields = arena_alloc_zero(arena, schema->field_count, sizeof *arrow.fields);
    if (!arrow.fields)
        return out_of_memory(err);
    for (uint32_t i = 0; i < schema->field_count; i++) {
        const struct iceberg_field *field = &schema->fields[i];
        if (has_arrow_type(field))
            TRY(to_arrow(field, arena, &arrow.fields[arrow.field_count++], err));
        else if (field->is_required)
            return error_set(err, STATUS_UNSUPPORTED,
                             "required column %.200s is of a type (%s) that "
                             "cannot be written",
                             field->name, iceberg_type_name(field->type));
    }
    *out_schema = arrow;
    return STATUS_OK;
}

static enum status from_arrow(const struct arrow_field *from, struct arena *arena,
                              struct iceberg_field *to, struct error *err)
{
    bool is_known = false;
    for (size_t i = 0; i < COUNT_OF(pairs) && !is_known; i++) {
        is_known = pairs[i].arrow == from->type;
        to->type = pairs[i].iceberg;
    }
    if (!is_known)
        return error_set(err, STATUS_UNSUPPORTED, "column %.200s has no Iceberg type", from->name);
    if (from->type == ARROW_TIMESTAMP_US && from->is_instant)
        to->type = ICEBERG_TIMESTAMPTZ;
    to->name = arena_copy_text(arena, from->name, strlen(from->name));
    to->id = from->field_id;
    to->is_required = !from->is_nullable;
    to->fixed_bytes = from->type == ARROW_FIXED ? (uint32_t)from->byte_width : 0;
    to->child_count = from->child_count;
    to->children = arena_alloc_zero(arena, from->child_count, sizeof *to->children);
    if (!to->name || !to->children)
        return out_of_memory(err);
    for (uint32_t i = 0; i < from->child_count; i++) {
        TRY(from_arrow(&from->children[i], arena, &to->children[i], err));
        /* Arrow leaves these names open, Iceberg's JSON is built from them. */
        if (to->type == ICEBERG_LIST)
            to->children[i].name = "element";
        else if (to->type == ICEBERG_MAP)
            to->children[i].name = i == 0 ? "key" : "value";
    }
    if (to->type == ICEBERG_MAP && to->child_count == 2)
        to->children[0].is_required = true;
    return STATUS_OK;
}

enum status iceberg_schema_from_arrow(const struct arrow_schema *from, struct arena *arena,
                                      struct iceberg_schema *out_schema, struct error *err)
{
    struct iceberg_schema schema = {.field_count = from->field_count};
    schema.fields = arena_alloc_zero(arena, from->field_count, sizeof *schema.fields);
    if (!schema.fields)
        return out_of_memory(err);
    for (uint32_t i = 0; i < from->field_count; i++)
        TRY(from_arrow(&from->fields[i], arena, &schema.fields[i], err));
    *out_schema = schema;
    return STATUS_OK;
}
