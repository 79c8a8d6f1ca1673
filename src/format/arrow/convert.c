/* SPDX-License-Identifier: Apache-2.0
 *
 * Buffers of layouts that our arrays do not have, made into those that they have: for whoever reads
 * arrays from outside. What is made counts against a limit, since it may take more than what it
 * came from.
 */
#include "format/arrow/arrow_internal.h"

enum status making_fail(struct array_making *making, const void *place, const char *what)
{
    making->fault = place;
    if (making->field)
        return error_set(making->err, STATUS_INVALID, "arrow: column %.100s: %s",
                         making->field->name, what);
    return error_set(making->err, STATUS_INVALID, "arrow: %s", what);
}

enum status making_too_long(struct array_making *making)
{
    return error_set(making->err, STATUS_LIMIT,
                     "arrow: column %.100s: more than 2^31 - 1 bytes or elements",
                     making->field->name);
}

enum status arena_no_memory(const struct arena *arena, struct error *err)
{
    if (arena->bytes_max && arena->bytes_total > arena->bytes_max / 2)
        return error_set(err, STATUS_LIMIT, "arrow: a message takes more than %zu bytes of memory",
                         arena->bytes_max);
    return error_set(err, STATUS_NO_MEMORY, "arrow: no memory for a batch");
}

size_t limits_memory_max(const struct arrow_limits *limits)
{
    enum { MEMORY_FACTOR = 4 };
    size_t bytes;
    return SIZE_MUL(limits->body_bytes_max, (size_t)MEMORY_FACTOR, &bytes) &&
                   SIZE_ADD(bytes, limits->metadata_bytes_max, &bytes)
               ? bytes
               : 0;
}

enum status making_charge(struct array_making *making, uint64_t bytes)
{
    if (bytes > making->bytes_left)
        return error_set(making->err, STATUS_TOO_LARGE,
                         "arrow: a batch expands to more than %zu bytes", making->bytes_max);
    making->bytes_left -= bytes;
    return STATUS_OK;
}

enum status making_alloc(struct array_making *making, uint64_t bytes, void *out_place)
{
    TRY(making_charge(making, bytes));
    void *place = arena_alloc(making->arena, (size_t)bytes);
    if (!place)
        return arena_no_memory(making->arena, making->err);
    memcpy(out_place, &place, sizeof place);
    return STATUS_OK;
}

/* ---- offsets ---- */

enum status convert_offsets(struct array_making *making, const uint8_t *from, size_t width,
                            int64_t length, int64_t base, const int32_t **out)
{
    int32_t *offsets;
    TRY(making_alloc(making, ((uint64_t)length + 1) * sizeof *offsets, &offsets));
    for (int64_t i = 0, last = base; i <= length; i++) {
        const uint8_t *place = from + (size_t)i * width;
        int64_t offset = get_le_signed(place, width);
        if (offset < last)
            return making_fail(making, place, "offsets that fall");
        if (offset - base > INT32_MAX)
            return making_too_long(making);
        offsets[i] = (int32_t)(offset - base);
        last = offset;
    }
    *out = offsets;
    return STATUS_OK;
}

enum status convert_fixed_offsets(struct array_making *making, int64_t length, int32_t size,
                                  const int32_t **out)
{
    int32_t *offsets;
    if (length * size > INT32_MAX)
        return making_too_long(making);
    TRY(making_alloc(making, ((uint64_t)length + 1) * sizeof *offsets, &offsets));
    for (int64_t i = 0; i <= length; i++)
        offsets[i] = (int32_t)(i * size);
    *out = offsets;
    return STATUS_OK;
}

/* ---- views ---- */

/* The bytes of one view: within itself, or in one of the data buffers with its first four here. */
static enum status view_at(struct array_making *making, const uint8_t *view,
                           const struct span *buffers, uint64_t buffer_count, struct span *out)
{
    enum { INLINE_BYTES_MAX = 12 };
    uint32_t length = get_le32(view), index = get_le32(view + 8), offset = get_le32(view + 12);
    if (length > INT32_MAX)
        return making_fail(making, view, "a view of a bad length");
    *out = span_of(view + 4, length);
    if (length <= INLINE_BYTES_MAX)
        return STATUS_OK;
    if (index >= buffer_count || offset > buffers[index].length ||
        length > buffers[index].length - offset)
        return making_fail(making, view, "a view outside its data");
    *out = span_of(buffers[index].data + offset, length);
    if (memcmp(out->data, view + 4, 4) != 0)
        return making_fail(making, view, "a view that begins unlike its data");
    return STATUS_OK;
}

enum status convert_views(struct array_making *making, const uint8_t *views,
                          const struct span *buffers, uint64_t buffer_count,
                          struct arrow_array *array)
{
    struct span bytes;
    uint64_t total = 0;
    int32_t *offsets;
    uint8_t *data;
    TRY(making_alloc(making, ((uint64_t)array->length + 1) * sizeof *offsets, &offsets));
    offsets[0] = 0;
    for (int64_t i = 0; i < array->length; i++) {
        if (arrow_is_valid(array, i)) {
            TRY(view_at(making, views + i * ARROW_VIEW_BYTES, buffers, buffer_count, &bytes));
            total += bytes.length;
        }
        if (total > INT32_MAX)
            return making_too_long(making);
        offsets[i + 1] = (int32_t)total;
    }
    TRY(making_alloc(making, total, &data));
    for (int64_t i = 0; i < array->length; i++) {
        if (!arrow_is_valid(array, i))
            continue;
        TRY(view_at(making, views + i * ARROW_VIEW_BYTES, buffers, buffer_count, &bytes));
        copy_short(data + offsets[i], bytes.data, bytes.length);
    }
    array->offsets = offsets;
    array->values = data;
    return STATUS_OK;
}

/* ---- dictionary indices ---- */

static int64_t index_at(const uint8_t *place, const struct arrow_origin *origin)
{
    /* Those past 2^63 turn negative, and are refused alike. */
    size_t width = origin->index_bits / 8;
    return origin->index_is_unsigned ? (int64_t)get_le_unsigned(place, width)
                                     : get_le_signed(place, width);
}

static bool is_index(const struct arrow_array *array, int64_t index)
{
    return index >= 0 && index < array->dictionary->length;
}

enum status hide_indices(struct array_making *making, struct arrow_array *array)
{
    const int32_t *indices = array->values;
    uint8_t *bits = NULL;
    size_t bytes = ((size_t)array->length + 7) / 8;
    for (int64_t i = 0; making->parent && i < array->length; i++) {
        if (!arrow_is_valid(array, i) || is_index(array, indices[i]) ||
            !is_below_null(making->parent, i))
            continue;
        if (!bits) {
            TRY(making_alloc(making, bytes, &bits));
            if (array->validity)
                memcpy(bits, array->validity, bytes);
            else
                memset(bits, 0xff, bytes);
            array->validity = bits;
        }
        bits[i >> 3] &= (uint8_t) ~(1u << (i & 7));
    }
    return STATUS_OK;
}

enum status convert_indices(struct array_making *making, const uint8_t *from,
                            const struct arrow_origin *origin, struct arrow_array *array)
{
    int32_t *indices;
    size_t width = origin->index_bits / 8;
    TRY(making_alloc(making, (uint64_t)array->length * sizeof *indices, &indices));
    for (int64_t i = 0; i < array->length; i++) {
        const uint8_t *place = from + (size_t)i * width;
        bool is_valid = arrow_is_valid(array, i);
        int64_t index = is_valid ? index_at(place, origin) : 0;
        if (is_valid && !is_index(array, index)) {
            if (!is_below_null(making->parent, i))
                return making_fail(making, place, "dictionary index out of range");
            index = -1;
        }
        indices[i] = (int32_t)index;
    }
    array->values = indices;
    return hide_indices(making, array);
}
