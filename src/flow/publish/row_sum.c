/* SPDX-License-Identifier: Apache-2.0
 *
 * Row sums (E3). The hash of a cell is XXH3-128 of its canonical bytes, seeded with the column's
 * field id; a row's hash is XXH3-128 over the sum of its cells' hashes; nulls add nothing.
 * Canonical bytes: integers, dates, times and booleans as 8 bytes, so that int -> long leaves the
 * sum; doubles as their bits with one NaN; text and bytes as they are; nested values as count,
 * presence and length marks around the same. A dictionary's value is hashed once, however many rows
 * have it.
 */
#include "flow/publish/publish_internal.h"

static void put_value(struct buf *out, const struct arrow_field *field,
                      const struct arrow_array *array, int64_t row);

static void put_children(struct buf *out, const struct arrow_field *field,
                         const struct arrow_array *array, int64_t row)
{
    for (uint32_t i = 0; i < field->child_count; i++)
        put_value(out, &field->children[i], &array->children[i], row);
}

/* The canonical bytes of a non-null value. */
static void put_present(struct buf *out, const struct arrow_field *field,
                        const struct arrow_array *array, int64_t row, bool is_nested)
{
    double real;
    switch (field->type) {
    case ARROW_BOOL:
        buf_put_le64(out, arrow_bit(array->values, row));
        return;
    case ARROW_INT32:
    case ARROW_DATE32:
        buf_put_le64(out, (uint64_t)(int64_t)((const int32_t *)array->values)[row]);
        return;
    case ARROW_INT64:
    case ARROW_TIMESTAMP_US:
        buf_put_le64(out, (uint64_t)((const int64_t *)array->values)[row]);
        return;
    case ARROW_FLOAT:
    case ARROW_DOUBLE:
        real = field->type == ARROW_DOUBLE ? ((const double *)array->values)[row]
                                           : (double)((const float *)array->values)[row];
        if (real != real)
            real = __builtin_nan("");
        buf_put(out, &real, sizeof real);
        return;
    case ARROW_UTF8:
    case ARROW_BINARY: {
        int32_t start = array->offsets[row], end = array->offsets[row + 1];
        if (is_nested)
            buf_put_le32(out, (uint32_t)(end - start));
        buf_put(out, (const uint8_t *)array->values + start, (size_t)(end - start));
        return;
    }
    case ARROW_FIXED:
        buf_put(out, (const uint8_t *)array->values + row * field->byte_width,
                (size_t)field->byte_width);
        return;
    case ARROW_STRUCT:
        put_children(out, field, array, row);
        return;
    case ARROW_LIST:
    case ARROW_MAP:
        buf_put_le32(out, (uint32_t)(array->offsets[row + 1] - array->offsets[row]));
        for (int32_t i = array->offsets[row]; i < array->offsets[row + 1]; i++)
            put_children(out, field, array, i);
        return;
    case ARROW_NULL:
    case ARROW_TYPE_COUNT:
        return;
    }
}

static void put_value(struct buf *out, const struct arrow_field *field,
                      const struct arrow_array *array, int64_t row)
{
    bool is_valid = arrow_is_valid(array, row);
    if (is_valid && field->is_dictionary) {
        row = ((const int32_t *)array->values)[row];
        array = array->dictionary;
        is_valid = arrow_is_valid(array, row);
    }
    buf_put_byte(out, is_valid);
    if (is_valid)
        put_present(out, field, array, row, true);
}

/* The hash of one value outside any dictionary; zero for null. */
static struct hash128 hash_cell(const struct arrow_field *field, const struct arrow_array *array,
                                int64_t row, struct buf *scratch)
{
    if (!arrow_is_valid(array, row))
        return (struct hash128){0};
    uint64_t seed = (uint64_t)field->field_id;
    if (field->type == ARROW_UTF8 || field->type == ARROW_BINARY)
        return hash128_seeded((const uint8_t *)array->values + array->offsets[row],
                              (size_t)(array->offsets[row + 1] - array->offsets[row]), seed);
    buf_clear(scratch);
    put_present(scratch, field, array, row, false);
    return hash128_seeded(scratch->data, scratch->length, seed);
}

static bool add_column(const struct arrow_field *field, const struct arrow_array *array,
                       struct hash128 *sums, struct buf *scratch)
{
    if (!field->is_dictionary) {
        for (int64_t row = 0; row < array->length; row++)
            sums[row] = hash128_add(sums[row], hash_cell(field, array, row, scratch));
        return true;
    }
    const struct arrow_array *values = array->dictionary;
    struct hash128 *hashes = mem_alloc(((size_t)values->length + 1) * sizeof *hashes);
    if (!hashes)
        return false;
    for (int64_t i = 0; i < values->length; i++)
        hashes[i] = hash_cell(field, values, i, scratch);
    const int32_t *indices = array->values;
    for (int64_t row = 0; row < array->length; row++) {
        if (arrow_is_valid(array, row))
            sums[row] = hash128_add(sums[row], hashes[indices[row]]);
    }
    mem_free(hashes);
    return true;
}

enum status rows_sum(const struct arrow_schema *schema, const struct arrow_batch *batch,
                     struct hash128 *inout_sum, struct error *err)
{
    struct buf scratch = {0};
    struct hash128 *sums = mem_alloc_zero((size_t)batch->length + 1, sizeof *sums);
    bool is_done = sums != NULL;
    for (uint32_t i = 0; i < schema->field_count && is_done; i++)
        is_done = add_column(&schema->fields[i], &batch->columns[i], sums, &scratch);
    is_done = is_done && !scratch.failed;
    if (is_done) {
        for (int64_t row = 0; row < batch->length; row++)
            *inout_sum = hash128_add(*inout_sum, hash128(&sums[row], sizeof sums[row]));
    }
    mem_free(sums);
    buf_deinit(&scratch);
    return is_done ? STATUS_OK : error_set(err, STATUS_NO_MEMORY, "row sum: out of memory");
}
