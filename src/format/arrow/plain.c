/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches without dictionaries: each slot gets its own value.
 */
#include "format/arrow/arrow_internal.h"

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "arrow: no memory for plain columns");
}

static bool make_plain(struct arrow_field *fields, uint32_t count)
{
    bool has_dictionaries = false;
    for (uint32_t i = 0; i < count; i++) {
        has_dictionaries |= fields[i].is_dictionary;
        fields[i].is_dictionary = false;
        fields[i].dictionary_key = 0;
        has_dictionaries |= make_plain(fields[i].children, fields[i].child_count);
    }
    return has_dictionaries;
}

enum status arrow_plain_schema(const struct arrow_schema *schema, struct arena *arena,
                               struct arrow_schema *out_schema, bool *out_differs,
                               struct error *err)
{
    TRY(arrow_schema_copy(schema, arena, out_schema, err));
    *out_differs = make_plain(out_schema->fields, out_schema->field_count);
    return STATUS_OK;
}

/* ---- values ---- */

/* Null where the index is, or the value it names. */
static bool set_validity(const struct arrow_array *from, struct arena *arena,
                         struct arrow_array *to)
{
    const int32_t *indices = from->values;
    uint8_t *bits = arena_alloc_zero(arena, (size_t)bits_bytes(from->length) + 1, 1);
    if (!bits)
        return false;
    for (int64_t i = 0; i < from->length; i++) {
        bool is_valid = arrow_is_valid(from, i) && arrow_is_valid(from->dictionary, indices[i]);
        bits[i >> 3] |= (uint8_t)(is_valid << (i & 7));
        to->null_count += !is_valid;
    }
    to->validity = to->null_count ? bits : NULL;
    return true;
}

static bool put_bits(const struct arrow_array *from, struct arena *arena, struct arrow_array *to)
{
    const int32_t *indices = from->values;
    uint8_t *bits = arena_alloc_zero(arena, (size_t)bits_bytes(from->length) + 1, 1);
    for (int64_t i = 0; bits && i < from->length; i++) {
        if (arrow_is_valid(to, i) && arrow_bit(from->dictionary->values, indices[i]))
            bits[i >> 3] |= (uint8_t)(1u << (i & 7));
    }
    to->values = bits;
    return bits;
}

static bool put_fixed(const struct arrow_array *from, size_t width, struct arena *arena,
                      struct arrow_array *to)
{
    const int32_t *indices = from->values;
    const uint8_t *values = from->dictionary->values;
    uint8_t *place = arena_alloc_zero(arena, (size_t)from->length + 1, width);
    for (int64_t i = 0; place && i < from->length; i++) {
        if (arrow_is_valid(to, i))
            memcpy(place + (size_t)i * width, values + (size_t)indices[i] * width, width);
    }
    to->values = place;
    return place;
}

static enum status put_bytes(const struct arrow_array *from, struct arena *arena,
                             struct arrow_array *to, struct error *err)
{
    const int32_t *indices = from->values, *ends = from->dictionary->offsets;
    const uint8_t *values = from->dictionary->values;
    int32_t *offsets = arena_alloc_zero(arena, (size_t)from->length + 1, sizeof *offsets);
    int64_t bytes = 0;
    for (int64_t i = 0; offsets && i < from->length; i++) {
        if (arrow_is_valid(to, i))
            bytes += ends[indices[i] + 1] - ends[indices[i]];
        if (bytes > INT32_MAX)
            return error_set(err, STATUS_LIMIT, "arrow: a column of more than 2 GiB");
        offsets[i + 1] = (int32_t)bytes;
    }
    uint8_t *place = arena_alloc(arena, (size_t)bytes + 1);
    if (!offsets || !place)
        return out_of_memory(err);
    for (int64_t i = 0; i < from->length; i++) {
        if (offsets[i + 1] > offsets[i])
            memcpy(place + offsets[i], values + ends[indices[i]],
                   (size_t)(offsets[i + 1] - offsets[i]));
    }
    to->offsets = offsets;
    to->values = place;
    return STATUS_OK;
}

/* The slots of a dictionary of lists, maps or structs; what is null takes the null behind them. */
static enum status gather_slots(const struct arrow_field *field, const struct arrow_array *from,
                                struct arena *scratch, struct arena *arena, struct arrow_array *to,
                                struct error *err)
{
    const int32_t *indices = from->values;
    const struct arrow_array *values = from->dictionary;
    struct arrow_array both;
    struct array_run *runs = arena_alloc_zero(scratch, (size_t)from->length + 1, sizeof *runs);
    if (!runs)
        return out_of_memory(err);
    TRY(array_with_null(field, values, 1, scratch, &both, err));
    for (int64_t i = 0; i < from->length; i++) {
        bool is_valid = arrow_is_valid(from, i) && arrow_is_valid(values, indices[i]);
        runs[i] = (struct array_run){.first = is_valid ? indices[i] : (int32_t)values->length,
                                     .count = 1};
    }
    return array_gather(field, &both, runs, (size_t)from->length, arena, to, err);
}

static enum status look_up_nested(const struct arrow_field *field, const struct arrow_array *from,
                                  struct arena *arena, struct arrow_array *to, struct error *err)
{
    struct arena scratch;
    struct arrow_array slots;
    struct arrow_field value_field = dictionary_value_field(field);
    value_field.is_nullable = true;
    arena_init(&scratch, arena->bytes_max);
    enum status status = gather_slots(&value_field, from, &scratch, arena, &slots, err);
    arena_deinit(&scratch);
    return status == STATUS_OK ? arrow_plain_array(&value_field, &slots, arena, to, err) : status;
}

static enum status look_up(const struct arrow_field *field, const struct arrow_array *from,
                           struct arena *arena, struct arrow_array *to, struct error *err)
{
    *to = (struct arrow_array){.length = from->length};
    if (!set_validity(from, arena, to))
        return out_of_memory(err);
    switch (type_layout(field->type)) {
    case LAYOUT_NULL:
        return STATUS_OK;
    case LAYOUT_BITS:
        return put_bits(from, arena, to) ? STATUS_OK : out_of_memory(err);
    case LAYOUT_FIXED:
        return put_fixed(from, (size_t)type_width(field), arena, to) ? STATUS_OK
                                                                     : out_of_memory(err);
    case LAYOUT_BYTES:
        return put_bytes(from, arena, to, err);
    default:
        return look_up_nested(field, from, arena, to, err);
    }
}

enum status arrow_plain_array(const struct arrow_field *field, const struct arrow_array *from,
                              struct arena *arena, struct arrow_array *out_array, struct error *err)
{
    if (field->is_dictionary)
        return look_up(field, from, arena, out_array, err);
    *out_array = *from;
    if (!field->child_count)
        return STATUS_OK;
    struct arrow_array *children = arena_alloc_zero(arena, field->child_count, sizeof *children);
    if (!children)
        return out_of_memory(err);
    for (uint32_t i = 0; i < field->child_count; i++)
        TRY(arrow_plain_array(&field->children[i], &from->children[i], arena, &children[i], err));
    out_array->children = children;
    return STATUS_OK;
}
