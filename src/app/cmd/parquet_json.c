/* SPDX-License-Identifier: Apache-2.0
 *
 * Leaves of Parquet files as JSON: what their annotation says stands in bytes of their physical
 * type.
 */
#include "app/cmd/parquet_internal.h"

static int64_t units_a_second(enum parquet_unit unit)
{
    return unit == PARQUET_MILLIS ? 1000 : unit == PARQUET_MICROS ? 1000000 : 1000000000;
}

static void write_small_decimal(struct json_writer *json, int64_t value, int32_t scale)
{
    uint64_t bytes = __builtin_bswap64((uint64_t)value);
    row_write_decimal(json, span_of(&bytes, sizeof bytes), scale < 0 ? 0 : scale);
}

static void write_integer(struct json_writer *json, const struct parquet_leaf *leaf, int64_t value)
{
    switch (leaf->kind) {
    case PARQUET_KIND_TIME:
        row_write_time(json, value, units_a_second(leaf->unit));
        break;
    case PARQUET_KIND_TIMESTAMP:
        row_write_timestamp(json, value, units_a_second(leaf->unit), leaf->is_utc);
        break;
    case PARQUET_KIND_DECIMAL:
        write_small_decimal(json, value, leaf->scale);
        break;
    default:
        if (leaf->kind == PARQUET_KIND_INTEGER && leaf->is_unsigned)
            json_write_u64(json, (uint64_t)value);
        else
            json_write_i64(json, value);
        break;
    }
}

static void write_bytes(struct json_writer *json, const struct parquet_leaf *leaf,
                        struct span bytes)
{
    if (leaf->kind == PARQUET_KIND_DECIMAL)
        row_write_decimal(json, bytes, leaf->scale < 0 ? 0 : leaf->scale);
    else if (leaf->kind == PARQUET_KIND_UUID && bytes.length == sizeof(struct uuid))
        row_write_uuid(json, bytes.data);
    else if (leaf->kind == PARQUET_KIND_FLOAT16 && bytes.length == sizeof(uint16_t))
        row_write_half(json, get_le16(bytes.data));
    else
        row_write_base64(json, bytes);
}

void parquet_write_leaf(struct json_writer *json, const void *context, uint32_t number,
                        const struct arrow_field *field, const struct arrow_array *array, int64_t i)
{
    const struct parquet_leaf *leaf = (const struct parquet_leaf *)context + number;
    switch (field->type) {
    case ARROW_INT32:
        write_integer(json, leaf, ((const int32_t *)array->values)[i]);
        break;
    case ARROW_INT64:
        write_integer(json, leaf, ((const int64_t *)array->values)[i]);
        break;
    case ARROW_BINARY:
    case ARROW_FIXED:
        write_bytes(json, leaf, slot_bytes(field, array, i));
        break;
    case ARROW_TIMESTAMP_US: /* of milliseconds and INT96 too; the leaf knows the zone */
        row_write_timestamp(json, ((const int64_t *)array->values)[i], 1000000, leaf->is_utc);
        break;
    default:
        row_write_plain_leaf(json, field, array, i);
        break;
    }
}
