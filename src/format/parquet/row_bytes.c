/* SPDX-License-Identifier: Apache-2.0
 *
 * What rows take once a reader has them in memory, where nothing is a dictionary: a value that a
 * thousand rows share counts a thousand times. Bounds row groups.
 */
#include "format/parquet/parquet_internal.h"

enum { OFFSET_BYTES = 4 };

static uint64_t slots_bytes(const struct arrow_field *field, const struct arrow_array *array,
                            int64_t first, int64_t count);

static uint64_t leaf_bytes_of(const struct arrow_field *field, const struct arrow_array *array,
                              int64_t first, int64_t count)
{
    uint32_t width;
    physical_type(field, &width);
    if (width)
        return (uint64_t)count * width;
    return (uint64_t)(array->offsets[first + count] - array->offsets[first]) +
           (uint64_t)count * OFFSET_BYTES;
}

/* Slots of a dictionary within lists; a column's own goes through column_sizes. */
static uint64_t indexed_bytes(const struct arrow_field *field, const struct arrow_array *array,
                              int64_t first, int64_t count)
{
    const int32_t *indices = array->values;
    uint64_t bytes = 0;
    uint32_t width;
    bool is_leaf = field->child_count == 0;
    physical_type(field, &width);
    if (is_leaf && width)
        return (uint64_t)count * width;
    for (int64_t i = first; i < first + count; i++) {
        if (!arrow_is_valid(array, i))
            continue;
        if (is_leaf) {
            const int32_t *ends = array->dictionary->offsets + indices[i];
            bytes += (uint64_t)(ends[1] - ends[0]) + OFFSET_BYTES;
        } else {
            bytes += slots_bytes(field, array->dictionary, indices[i], 1);
        }
    }
    return bytes;
}

static uint64_t slots_bytes(const struct arrow_field *field, const struct arrow_array *array,
                            int64_t first, int64_t count)
{
    uint64_t bytes = 0;
    if (array->dictionary)
        return indexed_bytes(field, array, first, count);
    if (field->child_count == 0)
        return leaf_bytes_of(field, array, first, count);
    if (field->type != ARROW_STRUCT) {
        int64_t end = array->offsets[first + count];
        bytes = (uint64_t)count * OFFSET_BYTES;
        first = array->offsets[first];
        count = end - first;
    }
    for (uint32_t i = 0; i < field->child_count; i++)
        bytes += slots_bytes(&field->children[i], &array->children[i], first, count);
    return bytes;
}

enum status column_sizes(const struct arrow_field *field, const struct arrow_array *column,
                         struct arena *arena, uint64_t **out_sizes, struct error *err)
{
    *out_sizes = NULL;
    if (!column->dictionary)
        return STATUS_OK;
    int64_t count = column->dictionary->length;
    uint64_t *sizes = arena_alloc(arena, ((size_t)count + 1) * sizeof *sizes);
    if (!sizes)
        return error_set(err, STATUS_NO_MEMORY, "parquet: no memory for a column");
    for (int64_t i = 0; i < count; i++)
        sizes[i] = slots_bytes(field, column->dictionary, i, 1);
    *out_sizes = sizes;
    return STATUS_OK;
}

uint64_t column_bytes(const struct arrow_field *field, const struct arrow_array *column,
                      const uint64_t *sizes, int64_t first, int64_t count)
{
    const int32_t *indices = column->values;
    uint64_t bytes = 0;
    if (!sizes)
        return slots_bytes(field, column, first, count);
    for (int64_t i = first; i < first + count; i++)
        bytes += arrow_is_valid(column, i) ? sizes[indices[i]] : 0;
    return bytes;
}
