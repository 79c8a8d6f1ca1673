/* SPDX-License-Identifier: Apache-2.0
 *
 * Avro types as Arrow fields.
 */
#include "format/avro/arrow_internal.h"

enum { COLUMNS_MAX = 16384, MEMBERS_MAX = 256, DECIMAL_DIGITS_MAX = 76, DECIMAL128_DIGITS = 38 };

static enum status refuse(const struct arrow_field *field, const char *why, struct error *err)
{
    return error_set(err, STATUS_UNSUPPORTED, "Avro: column %.100s: %s", field->name, why);
}

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "Avro: no memory for columns");
}

const struct avro_type *avro_some_type(const struct avro_type *type, bool *out_is_nullable)
{
    const struct avro_type *some = NULL;
    *out_is_nullable = type->kind == AVRO_NULL;
    if (type->kind != AVRO_UNION)
        return type;
    for (uint32_t i = 0; i < type->field_count; i++) {
        if (type->fields[i].type->kind == AVRO_NULL)
            *out_is_nullable = true;
        else
            some = some ? type : type->fields[i].type;
    }
    return some ? some : type->fields[0].type;
}

bool avro_is_map(const struct avro_type *type)
{
    const struct avro_type *item = type->kind == AVRO_ARRAY ? type->fields[0].type : NULL;
    return type->kind == AVRO_MAP || (item && avro_is_logical(type, "map") &&
                                      item->kind == AVRO_RECORD && item->field_count == 2);
}

const struct avro_field *avro_map_fields(const struct avro_type *type)
{
    return type->kind == AVRO_MAP ? type->fields : type->fields[0].type->fields;
}

/* ---- leaves ---- */

static enum status set_origin(struct arrow_field *field, enum arrow_type type, int32_t width,
                              struct arrow_origin origin, struct arena *arena, struct error *err)
{
    struct arrow_origin *copy = arena_alloc(arena, sizeof *copy);
    if (!copy)
        return out_of_memory(err);
    *copy = origin;
    field->type = type;
    field->byte_width = width;
    field->origin = copy;
    return STATUS_OK;
}

static enum status set_timestamp(struct arrow_field *field, bool is_local, enum arrow_unit unit,
                                 struct arena *arena, struct error *err)
{
    struct arrow_origin origin = {.kind = ARROW_ORIGIN_TIMESTAMP, .unit = unit};
    field->is_instant = !is_local;
    field->type = ARROW_TIMESTAMP_US;
    return unit == ARROW_MICROS
               ? STATUS_OK
               : set_origin(field, ARROW_FIXED, sizeof(int64_t), origin, arena, err);
}

static enum status set_integer(const struct avro_type *type, struct arrow_field *field,
                               struct arena *arena, struct error *err)
{
    static const struct {
        const char *name;
        enum arrow_unit unit;
    } stamps[] = {
        {"timestamp-millis", ARROW_MILLIS},       {"timestamp-micros", ARROW_MICROS},
        {"timestamp-nanos", ARROW_NANOS},         {"local-timestamp-millis", ARROW_MILLIS},
        {"local-timestamp-micros", ARROW_MICROS}, {"local-timestamp-nanos", ARROW_NANOS}};
    struct arrow_origin time = {.kind = ARROW_ORIGIN_TIME, .unit = ARROW_MICROS};
    bool is_int = type->kind == AVRO_INT;
    field->type = is_int ? ARROW_INT32 : ARROW_INT64;
    if (is_int && avro_is_logical(type, "date"))
        field->type = ARROW_DATE32;
    if (is_int && avro_is_logical(type, "time-millis")) {
        time.unit = ARROW_MILLIS;
        return set_origin(field, ARROW_FIXED, sizeof(int32_t), time, arena, err);
    }
    if (!is_int && avro_is_logical(type, "time-micros"))
        return set_origin(field, ARROW_FIXED, sizeof(int64_t), time, arena, err);
    for (size_t i = 0; !is_int && i < COUNT_OF(stamps); i++)
        if (avro_is_logical(type, stamps[i].name))
            return set_timestamp(field, type->is_local, stamps[i].unit, arena, err);
    return STATUS_OK;
}

/* bytes, fixed. */
static enum status set_bytes(const struct avro_type *type, struct arrow_field *field,
                             struct arena *arena, struct error *err)
{
    struct arrow_origin decimal = {
        .kind = ARROW_ORIGIN_DECIMAL, .precision = type->precision, .scale = type->scale};
    struct arrow_origin uuid = {.kind = ARROW_ORIGIN_SAME, .extension = "arrow.uuid"};
    bool is_fixed = type->kind == AVRO_FIXED;
    if (avro_is_logical(type, "decimal") && type->precision > 0 && type->scale <= type->precision) {
        if (type->precision > DECIMAL_DIGITS_MAX)
            return refuse(field, "a decimal of more than 76 digits", err);
        return set_origin(field, ARROW_FIXED, type->precision > DECIMAL128_DIGITS ? 32 : 16,
                          decimal, arena, err);
    }
    field->type = is_fixed ? ARROW_FIXED : ARROW_BINARY;
    field->byte_width = is_fixed ? (int32_t)type->fixed_bytes : 0;
    if (is_fixed && type->fixed_bytes == 0)
        return refuse(field, "fixed of no bytes", err);
    if (is_fixed && type->fixed_bytes == sizeof(struct uuid) && avro_is_logical(type, "uuid"))
        return set_origin(field, ARROW_FIXED, sizeof(struct uuid), uuid, arena, err);
    return STATUS_OK;
}

/* ---- nesting ---- */

/* A type that is being made, and those around it. */
struct level {
    const struct avro_type *type;
    const struct level *outer;
    uint32_t depth;
};

struct making {
    struct arena *arena;
    struct error *err;
    uint32_t fields_left; /* named types may be referred to many times: columns multiply */
};

static enum status make_field(struct making *making, const struct avro_field *from,
                              const char *name, const struct level *outer,
                              struct arrow_field *out_field);

static enum status alloc_fields(struct making *making, uint32_t count, struct arrow_field *field)
{
    if (count > making->fields_left)
        return error_set(making->err, STATUS_LIMIT, "Avro: column %.100s: more than %d columns",
                         field->name, COLUMNS_MAX);
    making->fields_left -= count;
    field->children = arena_alloc_zero(making->arena, count, sizeof *field->children);
    if (count && !field->children)
        return out_of_memory(making->err);
    field->child_count = count;
    return STATUS_OK;
}

static enum status make_fields(struct making *making, const struct avro_field *from, uint32_t count,
                               const char *const *names, const struct level *level,
                               struct arrow_field *field)
{
    TRY(alloc_fields(making, count, field));
    for (uint32_t i = 0; i < count; i++)
        TRY(make_field(making, &from[i],
                       names                   ? names[i]
                       : from[i].original_name ? from[i].original_name
                                               : from[i].name,
                       level, &field->children[i]));
    return STATUS_OK;
}

/* A struct with a nullable member for each type that is not null. */
static enum status make_members(struct making *making, const struct avro_type *type,
                                const struct level *level, struct arrow_field *field)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < type->field_count; i++)
        count += type->fields[i].type->kind != AVRO_NULL;
    if (count > MEMBERS_MAX)
        return refuse(field, "a union of more than 256 types", making->err);
    field->type = ARROW_STRUCT;
    TRY(alloc_fields(making, count, field));
    for (uint32_t i = 0, at = 0; i < type->field_count; i++) {
        if (type->fields[i].type->kind == AVRO_NULL)
            continue;
        const char *name = arena_format(making->arena, "member%u", at);
        if (!name)
            return out_of_memory(making->err);
        TRY(make_field(making, &type->fields[i], name, level, &field->children[at]));
        field->children[at++].is_nullable = true;
    }
    return STATUS_OK;
}

static enum status make_some(struct making *making, const struct avro_type *type,
                             const struct level *level, struct arrow_field *field)
{
    static const char *const element_name[] = {"element"}, *const map_names[] = {"key", "value"};
    if (avro_is_map(type)) {
        field->type = ARROW_MAP;
        TRY(make_fields(making, avro_map_fields(type), 2, map_names, level, field));
        return field->children[0].is_nullable
                   ? refuse(field, "a map whose keys may be null", making->err)
                   : STATUS_OK;
    }
    switch (type->kind) {
    case AVRO_NULL:
        field->type = ARROW_NULL;
        return STATUS_OK;
    case AVRO_UNION: /* of several: else resolved */
        return make_members(making, type, level, field);
    case AVRO_BOOLEAN:
        field->type = ARROW_BOOL;
        return STATUS_OK;
    case AVRO_INT:
    case AVRO_LONG:
        return set_integer(type, field, making->arena, making->err);
    case AVRO_FLOAT:
        field->type = ARROW_FLOAT;
        return STATUS_OK;
    case AVRO_DOUBLE:
        field->type = ARROW_DOUBLE;
        return STATUS_OK;
    case AVRO_STRING:
    case AVRO_ENUM:
        field->type = ARROW_UTF8;
        return STATUS_OK;
    case AVRO_BYTES:
    case AVRO_FIXED:
        return set_bytes(type, field, making->arena, making->err);
    case AVRO_ARRAY:
    case AVRO_MAP:
        field->type = ARROW_LIST;
        return make_fields(making, type->fields, 1, element_name, level, field);
    case AVRO_RECORD:
        field->type = ARROW_STRUCT;
        return make_fields(making, type->fields, type->field_count, NULL, level, field);
    }
    return refuse(field, "an unknown type", making->err);
}

static enum status make_field(struct making *making, const struct avro_field *from,
                              const char *name, const struct level *outer,
                              struct arrow_field *out_field)
{
    *out_field =
        (struct arrow_field){.name = name, .field_id = from->field_id > 0 ? from->field_id : 0};
    const struct avro_type *some = avro_some_type(from->type, &out_field->is_nullable);
    struct level level = {.type = some, .outer = outer, .depth = outer->depth + 1};
    for (const struct level *at = outer; at && some->kind == AVRO_RECORD; at = at->outer)
        if (at->type == some)
            return refuse(out_field, "a record within itself, which columns cannot hold",
                          making->err);
    if (level.depth > ARROW_DEPTH_MAX)
        return error_set(making->err, STATUS_LIMIT,
                         "Avro: column %.100s: nested deeper than %d levels", name,
                         ARROW_DEPTH_MAX);
    return make_some(making, some, &level, out_field);
}

enum status avro_arrow_schema(const struct avro_type *type, struct arena *arena,
                              struct arrow_schema *out_schema, struct error *err)
{
    struct arrow_field root = {.name = "record"};
    struct making making = {.arena = arena, .err = err, .fields_left = COLUMNS_MAX};
    const struct avro_field only = {.name = "value", .field_id = -1, .type = type};
    const struct level level = {.type = type}, none = {.type = NULL};
    TRY(type->kind == AVRO_RECORD
            ? make_fields(&making, type->fields, type->field_count, NULL, &level, &root)
            : make_fields(&making, &only, 1, NULL, &none, &root));
    *out_schema = (struct arrow_schema){.fields = root.children, .field_count = root.child_count};
    return STATUS_OK;
}
