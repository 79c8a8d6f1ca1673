/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of arrays that came from outside. The buffers' sizes are the caller's to check: here the
 * values in them are looked at, so that code behind may use offsets and indices as they are.
 */
#include "format/arrow/arrow_internal.h"

static enum status invalid(const struct arrow_field *field, struct error *err, const char *what)
{
    return error_set(err, STATUS_INVALID, "arrow: column %.100s: %s", field->name, what);
}

/* The same with the place and the slot at fault. */
static enum status wrong(const struct arrow_field *field, struct array_checking *checking,
                         const void *place, int64_t slot, const char *what, struct error *err)
{
    checking->fault = place;
    return error_set(err, STATUS_INVALID, "arrow: column %.100s: %s (slot %lld)", field->name, what,
                     (long long)slot);
}

static bool is_zero(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i])
            return false;
    return true;
}

/* Nothing behind null slots of fixed width. */
static bool null_slots_are_zero(const struct arrow_array *array, const void *values, size_t width)
{
    for (int64_t i = 0; array->null_count && i < array->length; i++)
        if (!arrow_is_valid(array, i) &&
            !is_zero((const uint8_t *)values + (size_t)i * width, width))
            return false;
    return true;
}

static enum status check_validity(const struct arrow_field *field, struct arrow_array *array,
                                  const struct parent *parent, struct array_checking *checking,
                                  struct error *err)
{
    if (array->length < 0 || array->length > INT32_MAX)
        return invalid(field, err, "bad length");
    if (!field->is_dictionary && field->type == ARROW_NULL) {
        array->null_count = array->length;
        array->validity = NULL;
        return STATUS_OK;
    }
    array->null_count = array->validity ? bits_count_zero(array->validity, array->length) : 0;
    if (array->null_count == 0)
        array->validity = NULL;
    if (field->is_nullable || array->null_count == 0)
        return STATUS_OK;
    for (int64_t i = 0; i < array->length; i++)
        if (!arrow_is_valid(array, i) && !is_below_null(parent, i))
            return wrong(field, checking, array->validity + i / 8, i,
                         "null in a column that has none", err);
    return STATUS_OK;
}

static enum status check_offsets(const struct arrow_field *field, const struct arrow_array *array,
                                 struct array_checking *checking, struct error *err)
{
    const int32_t *offsets = array->offsets;
    bool is_falling = offsets[0] < 0;
    for (int64_t i = 0; i < array->length; i++)
        is_falling |= offsets[i + 1] < offsets[i];
    if (is_falling) {
        int64_t i = 0;
        for (int32_t last = 0; offsets[i] >= last; i++)
            last = offsets[i];
        return wrong(field, checking, &offsets[i], i, "offsets that fall", err);
    }
    checking->is_canonical = checking->is_canonical && offsets[0] == 0;
    for (int64_t i = 0; array->null_count && checking->is_canonical && i < array->length; i++)
        checking->is_canonical = arrow_is_valid(array, i) || offsets[i] == offsets[i + 1];
    return STATUS_OK;
}

/* All at once where that answers; slot by slot where it does not, because bytes behind null slots
 * need not be text. */
static enum status check_text(const struct arrow_field *field, const struct arrow_array *array,
                              struct array_checking *checking, struct error *err)
{
    const int32_t *offsets = array->offsets;
    const uint8_t *data = array->values;
    int32_t end = offsets[array->length];
    if (end == offsets[0])
        return STATUS_OK;
    bool is_text = utf8_is_valid(data + offsets[0], (size_t)(end - offsets[0]));
    for (int64_t i = 0; is_text && i < array->length; i++)
        is_text = offsets[i] == end || (data[offsets[i]] & 0xc0) != 0x80;
    for (int64_t i = 0; !is_text && i < array->length; i++)
        if (arrow_is_valid(array, i) &&
            !utf8_is_valid(data + offsets[i], (size_t)(offsets[i + 1] - offsets[i])))
            return wrong(field, checking, data + offsets[i], i, "text that is not UTF-8", err);
    return STATUS_OK;
}

static enum status check_indices(const struct arrow_field *field, const struct arrow_array *array,
                                 const struct parent *parent, struct array_checking *checking,
                                 struct error *err)
{
    const int32_t *indices = array->values;
    int64_t count = array->dictionary->length;
    bool may_refer_to_null = field->is_nullable || !array->dictionary->validity;
    for (int64_t i = 0; i < array->length; i++)
        if ((indices[i] < 0 || indices[i] >= count) && arrow_is_valid(array, i))
            return wrong(field, checking, &indices[i], i, "dictionary index out of range", err);
    for (int64_t i = 0; !may_refer_to_null && i < array->length; i++)
        if (arrow_is_valid(array, i) && !arrow_is_valid(array->dictionary, indices[i]) &&
            !is_below_null(parent, i))
            return wrong(field, checking, &indices[i], i, "null in a column that has none", err);
    return STATUS_OK;
}

static enum status check(const struct arrow_field *field, struct arrow_array *array,
                         const struct parent *parent, struct array_checking *checking,
                         struct error *err);

static enum status check_list(const struct arrow_field *field, struct arrow_array *array,
                              const struct parent *parent, struct array_checking *checking,
                              struct error *err)
{
    TRY(check_offsets(field, array, checking, err));
    int64_t size = origin_kind(field) == ARROW_ORIGIN_FIXED_LIST ? field->origin->list_size : 0;
    struct parent slots = {.array = array, .each = size, .around = parent};
    bool has_fillers = size && array->offsets[array->length] == array->length * size &&
                       array->children[0].length == array->length * size;
    for (uint32_t i = 0; i < field->child_count; i++) {
        if (array->children[i].length != array->children[0].length)
            return invalid(field, err, "keys and values of different counts");
        if (array->offsets[array->length] > array->children[i].length)
            return wrong(field, checking, &array->offsets[array->length], array->length,
                         "offsets past the elements", err);
        TRY(check(&field->children[i], &array->children[i], has_fillers ? &slots : NULL, checking,
                  err));
    }
    return STATUS_OK;
}

static enum status check_dictionary(const struct arrow_field *field, struct arrow_array *array,
                                    const struct parent *parent, struct array_checking *checking,
                                    struct error *err)
{
    struct arrow_field values = dictionary_value_field(field);
    if (!array->dictionary)
        return invalid(field, err, "no dictionary");
    if (!checking->trusts_dictionaries)
        TRY(check(&values, array->dictionary, NULL, checking, err));
    TRY(check_indices(field, array, parent, checking, err));
    checking->is_canonical =
        checking->is_canonical && null_slots_are_zero(array, array->values, sizeof(int32_t));
    return STATUS_OK;
}

static enum status check(const struct arrow_field *field, struct arrow_array *array,
                         const struct parent *parent, struct array_checking *checking,
                         struct error *err)
{
    TRY(check_validity(field, array, parent, checking, err));
    if (field->is_dictionary)
        return check_dictionary(field, array, parent, checking, err);
    switch (type_layout(field->type)) {
    case LAYOUT_NULL:
        return STATUS_OK;
    case LAYOUT_BITS:
        for (int64_t i = 0; array->null_count && checking->is_canonical && i < array->length; i++)
            checking->is_canonical = arrow_is_valid(array, i) || !arrow_bit(array->values, i);
        return STATUS_OK;
    case LAYOUT_FIXED:
        checking->is_canonical =
            checking->is_canonical &&
            null_slots_are_zero(array, array->values, (size_t)type_width(field));
        return STATUS_OK;
    case LAYOUT_BYTES:
        TRY(check_offsets(field, array, checking, err));
        return field->type == ARROW_UTF8 ? check_text(field, array, checking, err) : STATUS_OK;
    case LAYOUT_LIST:
        return check_list(field, array, parent, checking, err);
    case LAYOUT_STRUCT:
        for (uint32_t i = 0; i < field->child_count; i++) {
            struct parent slots = {.array = array, .each = 1, .around = parent};
            if (array->children[i].length != array->length)
                return invalid(&field->children[i], err, "another length than its struct's");
            TRY(check(&field->children[i], &array->children[i], &slots, checking, err));
        }
        return STATUS_OK;
    }
    return STATUS_OK;
}

enum status array_check(const struct arrow_field *field, struct arrow_array *array,
                        struct array_checking *checking, struct error *err)
{
    checking->is_canonical = true;
    return check(field, array, NULL, checking, err);
}

enum status arrow_array_validate(const struct arrow_field *field, struct arrow_array *array,
                                 struct error *err)
{
    struct array_checking checking = {0};
    TRY(array_check(field, array, &checking, err));
    if (!checking.is_canonical)
        return invalid(field, err, "offsets do not begin at 0, or bytes lie behind null slots");
    return STATUS_OK;
}
