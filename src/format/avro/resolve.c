/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of a file as a reader's schema wants them. Source: Avro 1.12 specification, "Schema
 * Resolution" and "Aliases". What a value becomes follows from the type that it was written as, so
 * that a union's branches are told apart; a schema that does not fit shows at the first value that
 * it does not fit to.
 */
#include "format/avro/avro_internal.h"
#include "format/json/json.h"

struct resolver {
    struct avro_resolution *resolution;
    struct arena *arena;
    struct error *err;
    uint32_t depth_left; /* of defaults, which may stand in for one another without end */
};

static enum status out_of_memory(struct resolver *resolver)
{
    return error_set(resolver->err, STATUS_NO_MEMORY, "Avro: no memory for a value");
}

static enum status misfit(struct resolver *resolver, const char *what, const char *name)
{
    return error_set(resolver->err, STATUS_INVALID, "Avro: the reader's schema: %s%.100s", what,
                     name ? name : "");
}

static enum status take_items(struct resolver *resolver, uint32_t count, struct avro_value *out)
{
    out->items = arena_alloc_zero(resolver->arena, (size_t)count + 1, sizeof *out->items);
    out->count = count;
    return out->items ? STATUS_OK : out_of_memory(resolver);
}

static bool find_symbol(const struct avro_type *type, const char *symbol, int64_t *out_index)
{
    for (uint32_t i = 0; symbol && i < type->symbol_count; i++) {
        if (strcmp(type->symbols[i], symbol) == 0) {
            *out_index = i;
            return true;
        }
    }
    return false;
}

/* ---- defaults ---- */

static enum status make_default(struct resolver *resolver, const struct json_value *json,
                                const struct avro_type *type, struct avro_value *out);

/* Bytes are text of the characters U+0000 to U+00FF. */
static enum status default_bytes(struct resolver *resolver, const struct json_value *json,
                                 const struct avro_type *type, struct avro_value *out)
{
    size_t length = json->length, count = 0;
    uint8_t *bytes = arena_alloc(resolver->arena, length + 1);
    if (!bytes)
        return out_of_memory(resolver);
    for (size_t i = 0; i < length; i++) {
        uint8_t byte = (uint8_t)json->text[i];
        bool is_two = (byte & 0xfe) == 0xc2;
        if (byte >= 0x80 && !is_two)
            return misfit(resolver, "bytes beyond U+00FF in a default", NULL);
        unsigned low = is_two ? (unsigned)json->text[++i] & 0x3f : 0;
        bytes[count++] = is_two ? (uint8_t)((unsigned)byte << 6 | low) : byte;
    }
    if (type->kind == AVRO_FIXED && count != type->fixed_bytes)
        return misfit(resolver, "a default of another size: ", type->name);
    out->bytes = span_of(bytes, count);
    return STATUS_OK;
}

static enum status default_record(struct resolver *resolver, const struct json_value *json,
                                  const struct avro_type *type, struct avro_value *out)
{
    TRY(take_items(resolver, type->field_count, out));
    for (uint32_t i = 0; i < type->field_count; i++) {
        const struct avro_field *field = &type->fields[i];
        const struct json_value *member = json_get(json, field->name);
        member = member ? member : field->default_value;
        if (!member)
            return misfit(resolver, "a default without the field ", field->name);
        TRY(make_default(resolver, member, field->type, &out->items[i]));
    }
    return STATUS_OK;
}

static enum status default_items(struct resolver *resolver, const struct json_value *json,
                                 const struct avro_type *type, struct avro_value *out)
{
    bool is_map = type->kind == AVRO_MAP;
    uint32_t at = 0;
    TRY(take_items(resolver, is_map ? json->count * 2 : json->count, out));
    for (const struct json_value *item = json->first; item; item = item->next) {
        if (is_map)
            out->items[at++] = (struct avro_value){.type = type->fields[0].type,
                                                   .bytes = span_of(item->key, item->key_length)};
        TRY(make_default(resolver, item, type->fields[is_map].type, &out->items[at++]));
    }
    return STATUS_OK;
}

static enum status default_union(struct resolver *resolver, const struct json_value *json,
                                 const struct avro_type *type, struct avro_value *out)
{
    enum status status = STATUS_INVALID;
    for (uint32_t i = 0; i < type->field_count && status == STATUS_INVALID; i++) {
        *out = (struct avro_value){0};
        status = make_default(resolver, json, type->fields[i].type, out);
    }
    return status;
}

static bool default_number(const struct json_value *json, const struct avro_type *type,
                           struct avro_value *out)
{
    struct span text = span_of_text(json->text);
    bool is_real = type->kind == AVRO_FLOAT || type->kind == AVRO_DOUBLE;
    if (is_real)
        return json_number_to_double(text, &out->real);
    return json_number_to_i64(text, &out->integer) &&
           (type->kind == AVRO_LONG || (out->integer >= INT32_MIN && out->integer <= INT32_MAX));
}

static bool is_json_of(const struct json_value *json, enum avro_kind kind)
{
    static const enum json_type types[] = {
        [AVRO_NULL] = JSON_NULL,    [AVRO_BOOLEAN] = JSON_BOOL,  [AVRO_INT] = JSON_NUMBER,
        [AVRO_LONG] = JSON_NUMBER,  [AVRO_FLOAT] = JSON_NUMBER,  [AVRO_DOUBLE] = JSON_NUMBER,
        [AVRO_BYTES] = JSON_STRING, [AVRO_STRING] = JSON_STRING, [AVRO_RECORD] = JSON_OBJECT,
        [AVRO_ENUM] = JSON_STRING,  [AVRO_ARRAY] = JSON_ARRAY,   [AVRO_MAP] = JSON_OBJECT,
        [AVRO_FIXED] = JSON_STRING,
    };
    return json->type == types[kind];
}

static enum status default_some(struct resolver *resolver, const struct json_value *json,
                                const struct avro_type *type, struct avro_value *out)
{
    out->type = type;
    if (!is_json_of(json, type->kind))
        return misfit(resolver, "a default of another type", NULL);
    switch (type->kind) {
    case AVRO_BOOLEAN:
        out->integer = json->boolean;
        return STATUS_OK;
    case AVRO_STRING:
        out->bytes = span_of(json->text, json->length);
        return STATUS_OK;
    case AVRO_BYTES:
    case AVRO_FIXED:
        return default_bytes(resolver, json, type, out);
    case AVRO_ENUM:
        return find_symbol(type, json->text, &out->integer)
                   ? STATUS_OK
                   : misfit(resolver, "a default that is no symbol of ", type->name);
    case AVRO_RECORD:
        return default_record(resolver, json, type, out);
    case AVRO_ARRAY:
    case AVRO_MAP:
        return default_items(resolver, json, type, out);
    case AVRO_NULL:
        return STATUS_OK;
    default:
        return default_number(json, type, out) ? STATUS_OK
                                               : misfit(resolver, "a default out of range", NULL);
    }
}

static enum status make_default(struct resolver *resolver, const struct json_value *json,
                                const struct avro_type *type, struct avro_value *out)
{
    if (resolver->depth_left == 0)
        return error_set(resolver->err, STATUS_LIMIT, "Avro: defaults nested too deep");
    resolver->depth_left--;
    enum status status = type->kind == AVRO_UNION ? default_union(resolver, json, type, out)
                                                  : default_some(resolver, json, type, out);
    resolver->depth_left++;
    return status;
}

/* ---- values ---- */

static enum status resolve(struct resolver *resolver, const struct avro_value *from,
                           const struct avro_type *to, struct avro_value *out);

static enum status resolve_record(struct resolver *resolver, const struct avro_value *from,
                                  const struct avro_match *match, struct avro_value *out)
{
    const struct avro_type *to = match->type;
    TRY(take_items(resolver, to->field_count, out));
    for (uint32_t i = 0; i < to->field_count; i++) {
        const struct avro_field *field = &to->fields[i];
        uint32_t place = match->places[i];
        if (place != AVRO_NO_PLACE)
            TRY(resolve(resolver, &from->items[place], field->type, &out->items[i]));
        else if (field->default_value)
            TRY(make_default(resolver, field->default_value, field->type, &out->items[i]));
        else
            return misfit(resolver, "not in the file, and without a default: ", field->name);
    }
    return STATUS_OK;
}

static enum status resolve_items(struct resolver *resolver, const struct avro_value *from,
                                 const struct avro_type *to, struct avro_value *out)
{
    uint32_t width = to->kind == AVRO_MAP ? 2 : 1;
    TRY(take_items(resolver, from->count, out));
    for (uint32_t i = 0; i < from->count; i++)
        TRY(resolve(resolver, &from->items[i], to->fields[i % width].type, &out->items[i]));
    return STATUS_OK;
}

static enum status resolve_number(struct resolver *resolver, const struct avro_value *from,
                                  const struct avro_match *match, struct avro_value *out)
{
    bool was_real = from->type->kind == AVRO_FLOAT || from->type->kind == AVRO_DOUBLE;
    if (__builtin_mul_overflow(from->integer, match->factor, &out->integer))
        return misfit(resolver, "a time out of range of its unit: ", match->type->logical_type);
    out->real = was_real ? from->real : (double)from->integer;
    if (match->type->kind == AVRO_FLOAT && !was_real)
        out->real = (double)(float)from->integer;
    return STATUS_OK;
}

static enum status resolve_symbol(struct resolver *resolver, const struct avro_value *from,
                                  const struct avro_match *match, struct avro_value *out)
{
    uint32_t place = match->places[from->integer];
    if (place == AVRO_NO_PLACE)
        return misfit(resolver, "no symbol ", from->type->symbols[from->integer]);
    out->integer = place;
    return STATUS_OK;
}

static enum status resolve(struct resolver *resolver, const struct avro_value *from,
                           const struct avro_type *to, struct avro_value *out)
{
    const struct avro_match *match = avro_match_types(resolver->resolution, from->type, to);
    if (!match)
        return out_of_memory(resolver);
    if (!match->type)
        return misfit(resolver,
                      "another type than the file's: ", to->name ? to->name : from->type->name);
    out->type = match->type;
    out->bytes = from->bytes;
    switch (match->type->kind) {
    case AVRO_RECORD:
        return resolve_record(resolver, from, match, out);
    case AVRO_ARRAY:
    case AVRO_MAP:
        return resolve_items(resolver, from, match->type, out);
    case AVRO_ENUM:
        return resolve_symbol(resolver, from, match, out);
    default:
        return resolve_number(resolver, from, match, out);
    }
}

enum status avro_resolve(struct avro_resolution *resolution, const struct avro_value *from,
                         const struct avro_type *to, uint32_t depth_max, struct arena *arena,
                         const struct avro_value **out_value, struct error *err)
{
    struct resolver resolver = {
        .resolution = resolution, .arena = arena, .err = err, .depth_left = depth_max};
    struct avro_value *value = arena_alloc_zero(arena, 1, sizeof *value);
    if (!value)
        return out_of_memory(&resolver);
    TRY(resolve(&resolver, from, to, value));
    *out_value = value;
    return STATUS_OK;
}
