/* SPDX-License-Identifier: Apache-2.0
 *
 * Row sums (E3). A row's hash is XXH3-128 over the sum of its cells' hashes; nulls add nothing; a
 * row sum is the sum of row hashes modulo 2^128. The hash of a cell, seeded with its field id:
 *   text, bytes            XXH3-128 of the bytes
 *   integers, times, bools XXH3-128 of the value as 8 bytes, so that int -> long leaves it
 *   doubles                the same of their bits, with one NaN
 *   lists, maps            the parts' hashes mixed in order, beginning with their count; a null
 *                          part has a hash of its own
 *   structs                like rows: the sum of their fields' hashes and one of the struct's own,
 *                          so that added, renamed and reordered fields leave it
 * Whole arrays are hashed at once, dictionaries value by value.
 */
#include "flow/publish/publish_internal.h"

static const struct hash128 null_part = {0x9e3779b97f4a7c15u, 0xbf58476d1ce4e5b9u};

static inline uint64_t rotate_left(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

/* Order matters: mix(mix(h, a), b) differs from mix(mix(h, b), a). */
static inline struct hash128 mix(struct hash128 hash, struct hash128 part)
{
    uint64_t low = (rotate_left(hash.low, 27) ^ part.low) * 0x9e3779b185ebca87u;
    uint64_t high = (rotate_left(hash.high, 31) ^ part.high) * 0xc2b2ae3d27d4eb4fu;
    return (struct hash128){.low = low ^ high >> 29, .high = high ^ low >> 32};
}

static bool hash_array(const struct arrow_field *field, const struct arrow_array *array,
                       struct hash128 *out);

static void hash_numbers(const struct arrow_field *field, const struct arrow_array *array,
                         struct hash128 *out)
{
    uint64_t seed = (uint64_t)field->field_id;
    for (int64_t i = 0; i < array->length; i++) {
        int64_t number = 0;
        double real;
        switch (field->type) {
        case ARROW_BOOL:
            number = arrow_bit(array->values, i);
            break;
        case ARROW_INT32:
        case ARROW_DATE32:
            number = ((const int32_t *)array->values)[i];
            break;
        case ARROW_FLOAT:
        case ARROW_DOUBLE:
            real = field->type == ARROW_DOUBLE ? ((const double *)array->values)[i]
                                               : (double)((const float *)array->values)[i];
            if (real != real)
                real = __builtin_nan("");
            memcpy(&number, &real, sizeof number);
            break;
        default:
            number = ((const int64_t *)array->values)[i];
            break;
        }
        out[i] = hash128_seeded(&number, sizeof number, seed);
    }
}

static void hash_bytes(const struct arrow_field *field, const struct arrow_array *array,
                       struct hash128 *out)
{
    uint64_t seed = (uint64_t)field->field_id;
    const uint8_t *bytes = array->values;
    for (int64_t i = 0; i < array->length; i++) {
        int64_t start = field->type == ARROW_FIXED ? i * field->byte_width : array->offsets[i];
        int64_t length = field->type == ARROW_FIXED ? field->byte_width
                                                    : array->offsets[i + 1] - array->offsets[i];
        out[i] = hash128_seeded(length ? bytes + start : (const uint8_t *)"", (size_t)length, seed);
    }
}

/* Mixes child number `child` of each slot into `out`. */
static void mix_child(const struct arrow_field *field, const struct arrow_array *array,
                      uint32_t child, const struct hash128 *parts, struct hash128 *out)
{
    const struct arrow_array *values = &array->children[child];
    if (field->type == ARROW_STRUCT) {
        for (int64_t i = 0; i < array->length; i++) {
            if (arrow_is_valid(values, i))
                out[i] = hash128_add(out[i], parts[i]);
        }
        return;
    }
    for (int64_t i = 0; i < array->length; i++) {
        for (int64_t j = array->offsets[i]; j < array->offsets[i + 1]; j++)
            out[i] = mix(out[i], arrow_is_valid(values, j) ? parts[j] : null_part);
    }
}

static bool hash_nested(const struct arrow_field *field, const struct arrow_array *array,
                        struct hash128 *out)
{
    uint64_t seed = (uint64_t)field->field_id;
    bool is_list = field->type != ARROW_STRUCT;
    for (int64_t i = 0; i < array->length; i++)
        out[i] = (struct hash128){
            .low = seed,
            .high = is_list ? (uint64_t)(array->offsets[i + 1] - array->offsets[i]) : 1};
    for (uint32_t child = 0; child < field->child_count; child++) {
        struct hash128 *parts =
            mem_alloc(((size_t)array->children[child].length + 1) * sizeof *parts);
        bool is_done = parts && hash_array(&field->children[child], &array->children[child], parts);
        if (is_done)
            mix_child(field, array, child, parts, out);
        mem_free(parts);
        if (!is_done)
            return false;
    }
    return true;
}

static bool hash_dictionary(const struct arrow_field *field, const struct arrow_array *array,
                            struct hash128 *out)
{
    struct arrow_field value_field = *field;
    const struct arrow_array *dictionary = array->dictionary;
    const int32_t *indices = array->values;
    struct hash128 *hashes = mem_alloc(((size_t)dictionary->length + 1) * sizeof *hashes);
    value_field.is_dictionary = false;
    if (!hashes || !hash_array(&value_field, dictionary, hashes)) {
        mem_free(hashes);
        return false;
    }
    for (int64_t i = 0; i < array->length; i++)
        out[i] = arrow_is_valid(array, i) ? hashes[indices[i]] : null_part;
    mem_free(hashes);
    return true;
}

/* The hash of every slot; what null slots get is the caller's to ignore. */
static bool hash_array(const struct arrow_field *field, const struct arrow_array *array,
                       struct hash128 *out)
{
    if (field->is_dictionary)
        return hash_dictionary(field, array, out);
    switch (field->type) {
    case ARROW_UTF8:
    case ARROW_BINARY:
    case ARROW_FIXED:
        hash_bytes(field, array, out);
        return true;
    case ARROW_LIST:
    case ARROW_MAP:
    case ARROW_STRUCT:
        return hash_nested(field, array, out);
    case ARROW_NULL:
    case ARROW_TYPE_COUNT:
        memset(out, 0, (size_t)array->length * sizeof *out);
        return true;
    default:
        hash_numbers(field, array, out);
        return true;
    }
}

enum status rows_sum(const struct arrow_schema *schema, const struct arrow_batch *batch,
                     struct hash128 *inout_sum, struct error *err)
{
    struct hash128 *sums = mem_alloc_zero((size_t)batch->length + 1, sizeof *sums);
    struct hash128 *cells = mem_alloc(((size_t)batch->length + 1) * sizeof *cells);
    bool is_done = sums && cells;
    for (uint32_t i = 0; i < schema->field_count && is_done; i++) {
        const struct arrow_array *column = &batch->columns[i];
        is_done = hash_array(&schema->fields[i], column, cells);
        for (int64_t row = 0; row < batch->length && is_done; row++) {
            if (arrow_is_valid(column, row))
                sums[row] = hash128_add(sums[row], cells[row]);
        }
    }
    for (int64_t row = 0; row < batch->length && is_done; row++)
        *inout_sum = hash128_add(*inout_sum, hash128(&sums[row], sizeof sums[row]));
    mem_free(sums);
    mem_free(cells);
    return is_done ? STATUS_OK : error_set(err, STATUS_NO_MEMORY, "row sum: out of memory");
}
