/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of Arrow batches as Avro records. What a column is written as follows from its field alone,
 * as in from_arrow_schema.c.
 */
#include "format/avro/arrow_internal.h"

static enum status put(const struct arrow_field *field, const struct arrow_array *array, int64_t i,
                       struct buf *out, struct error *err);

static int64_t fixed_integer(const uint8_t *at, int32_t width, bool is_signed)
{
    int shift = 64 - 8 * width;
    uint64_t value = 0;
    for (int32_t byte = 0; byte < width; byte++)
        value |= (uint64_t)at[byte] << (8 * byte);
    return is_signed ? (int64_t)(value << shift) >> shift : (int64_t)value;
}

/* Little-endian two's complement of `width` bytes as the fewest big-endian ones. */
static void put_decimal(const uint8_t *from, size_t width, bool is_signed, struct buf *out)
{
    uint8_t bytes[33] = {0}; /* one more for the sign of what has none */
    uint8_t fill = is_signed && from[width - 1] & 0x80 ? 0xff : 0;
    size_t count = width + !is_signed, start = 0;
    for (size_t i = 0; i < width; i++)
        bytes[count - 1 - i] = from[i];
    while (start + 1 < count && bytes[start] == fill && (bytes[start + 1] & 0x80) == (fill & 0x80))
        start++;
    avro_put_bytes(out, bytes + start, count - start);
}

/* Seconds become milliseconds. */
static enum status put_time(const struct arrow_field *field, int64_t value, struct buf *out,
                            struct error *err)
{
    if (field->origin->unit == ARROW_SECONDS && __builtin_mul_overflow(value, 1000, &value))
        return error_set(err, STATUS_INVALID, "Avro: column %.100s: a time beyond milliseconds",
                         field->name);
    avro_put_long(out, value);
    return STATUS_OK;
}

static enum status put_original(const struct arrow_field *field, const uint8_t *at, struct buf *out,
                                struct error *err)
{
    enum { DAY_MS = 86400000 };
    int32_t width = field->byte_width;
    float real;
    switch (field->origin->kind) {
    case ARROW_ORIGIN_UINT:
        if (width == sizeof(uint64_t))
            put_decimal(at, (size_t)width, false, out);
        else
            avro_put_long(out, fixed_integer(at, width, false));
        return STATUS_OK;
    case ARROW_ORIGIN_HALF:
        real = (float)arrow_half_value(get_le16(at));
        buf_put(out, &real, sizeof real);
        return STATUS_OK;
    case ARROW_ORIGIN_DECIMAL:
        put_decimal(at, (size_t)width, true, out);
        return STATUS_OK;
    case ARROW_ORIGIN_DATE_MS:
        avro_put_long(out, fixed_integer(at, width, true) / DAY_MS);
        return STATUS_OK;
    case ARROW_ORIGIN_TIME:
    case ARROW_ORIGIN_TIMESTAMP:
        return put_time(field, fixed_integer(at, width, true), out, err);
    case ARROW_ORIGIN_INT:
    case ARROW_ORIGIN_DURATION:
        avro_put_long(out, fixed_integer(at, width, true));
        return STATUS_OK;
    default:
        buf_put(out, at, (size_t)width);
        return STATUS_OK;
    }
}

/* ---- nesting ---- */

/* A block of `count` items and the end. */
static enum status put_list(const struct arrow_field *field, const struct arrow_array *array,
                            int64_t i, struct buf *out, struct error *err)
{
    int32_t at = array->offsets[i], end = array->offsets[i + 1];
    if (end > at)
        avro_put_long(out, end - at);
    for (; at < end; at++)
        for (uint32_t child = 0; child < field->child_count; child++)
            TRY(put(&field->children[child], &array->children[child], at, out, err));
    avro_put_long(out, 0);
    return STATUS_OK;
}

static enum status put_value(const struct arrow_field *field, const struct arrow_array *array,
                             int64_t i, struct buf *out, struct error *err)
{
    const uint8_t *values = array->values;
    size_t at = (size_t)i;
    switch (field->type) {
    case ARROW_BOOL:
        buf_put_byte(out, arrow_bit(values, i));
        return STATUS_OK;
    case ARROW_INT32:
    case ARROW_DATE32:
        avro_put_long(out, (int32_t)get_le32(values + at * 4));
        return STATUS_OK;
    case ARROW_INT64:
    case ARROW_TIMESTAMP_US:
        avro_put_long(out, (int64_t)get_le64(values + at * 8));
        return STATUS_OK;
    case ARROW_FLOAT:
        buf_put(out, values + at * 4, 4);
        return STATUS_OK;
    case ARROW_DOUBLE:
        buf_put(out, values + at * 8, 8);
        return STATUS_OK;
    case ARROW_UTF8:
    case ARROW_BINARY:
        avro_put_bytes(out, values + array->offsets[i],
                       (size_t)(array->offsets[i + 1] - array->offsets[i]));
        return STATUS_OK;
    case ARROW_FIXED:
        values += at * (size_t)field->byte_width;
        if (field->origin)
            return put_original(field, values, out, err);
        buf_put(out, values, (size_t)field->byte_width);
        return STATUS_OK;
    case ARROW_LIST:
    case ARROW_MAP:
        return put_list(field, array, i, out, err);
    case ARROW_STRUCT:
        for (uint32_t child = 0; child < field->child_count; child++)
            TRY(put(&field->children[child], &array->children[child], i, out, err));
        return STATUS_OK;
    default:
        return STATUS_OK; /* nulls have no bytes */
    }
}

/* Nullable fields are unions of null, the first branch, and the type. */
static enum status put(const struct arrow_field *field, const struct arrow_array *array, int64_t i,
                       struct buf *out, struct error *err)
{
    if (field->type == ARROW_NULL)
        return STATUS_OK;
    bool is_valid = arrow_is_valid(array, i);
    if (array->dictionary && is_valid) {
        i = ((const int32_t *)array->values)[i];
        array = array->dictionary;
        is_valid = arrow_is_valid(array, i);
    }
    if (!is_valid && !field->is_nullable)
        return error_set(err, STATUS_INVALID, "Avro: column %.100s: null in a required column",
                         field->name);
    if (field->is_nullable)
        avro_put_long(out, is_valid);
    return is_valid ? put_value(field, array, i, out, err) : STATUS_OK;
}

/* ---- limits ---- */

static uint64_t count_values(const struct arrow_field *field, const struct arrow_array *array,
                             int64_t from, int64_t to);

static uint64_t count_slot(const struct arrow_field *field, const struct arrow_array *array,
                           int64_t i)
{
    uint64_t count = 1;
    if (!arrow_is_valid(array, i))
        return count;
    if (array->dictionary)
        return count_slot(field, array->dictionary, ((const int32_t *)array->values)[i]);
    int64_t from = field->type == ARROW_STRUCT ? i : array->offsets[i];
    int64_t to = field->type == ARROW_STRUCT ? i + 1 : array->offsets[i + 1];
    if (field->type == ARROW_MAP && field->children[0].type != ARROW_UTF8)
        count += (uint64_t)(to - from); /* records of two */
    for (uint32_t child = 0; child < field->child_count; child++)
        count += count_values(&field->children[child], &array->children[child], from, to);
    return count;
}

/* As the reader counts them. */
static uint64_t count_values(const struct arrow_field *field, const struct arrow_array *array,
                             int64_t from, int64_t to)
{
    uint64_t count = 0;
    if (!field->child_count && field->type != ARROW_STRUCT)
        return (uint64_t)(to - from);
    for (int64_t i = from; i < to; i++)
        count += count_slot(field, array, i);
    return count;
}

static enum status check_limits(const struct arrow_batch *batch, int64_t row, size_t bytes,
                                struct error *err)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < batch->schema->field_count; i++)
        count += count_values(&batch->schema->fields[i], &batch->columns[i], row, row + 1);
    if (bytes > AVRO_RECORD_BYTES_MAX)
        return error_set(err, STATUS_LIMIT, "Avro: a record of %zu bytes; no more than %d", bytes,
                         AVRO_RECORD_BYTES_MAX);
    if (count > AVRO_RECORD_VALUES_MAX || count > AVRO_FREE_VALUES + bytes * AVRO_VALUES_A_BYTE)
        return error_set(
            err, STATUS_LIMIT,
            "Avro: a record of %llu values; no more than %d, nor than %d and %d a byte",
            (unsigned long long)count, AVRO_RECORD_VALUES_MAX, AVRO_FREE_VALUES,
            AVRO_VALUES_A_BYTE);
    return STATUS_OK;
}

enum status avro_put_row(const struct arrow_batch *batch, int64_t row, struct buf *out,
                         struct error *err)
{
    size_t start = out->length;
    for (uint32_t i = 0; i < batch->schema->field_count; i++)
        TRY(put(&batch->schema->fields[i], &batch->columns[i], row, out, err));
    return check_limits(batch, row, out->length - start, err);
}
