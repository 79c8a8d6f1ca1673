/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of Parquet files as JSON. Numbers are numbers (decimals with all their digits), times ISO
 * 8601, bytes base64, maps with text keys objects, NaN and the infinities text.
 */
#include <inttypes.h>

#include "app/cmd/parquet_internal.h"

/* ---- times ---- */

/* Proleptic Gregorian; "days_from_civil" of Howard Hinnant's date algorithms, reversed. */
static void put_date(struct buf *out, int64_t days)
{
    int64_t shifted = days + 719468;
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    int64_t day_of_era = shifted - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153;
    int64_t day = day_of_year - (153 * month + 2) / 5 + 1;
    month += month < 10 ? 3 : -9;
    buf_format(out, "%04" PRId64 "-%02d-%02d", year_of_era + era * 400 + (month <= 2), (int)month,
               (int)day);
}

static int64_t units_a_second(enum parquet_unit unit)
{
    return unit == PARQUET_MILLIS ? 1000 : unit == PARQUET_MICROS ? 1000000 : 1000000000;
}

static void put_time_of_day(struct buf *out, int64_t of_day, int64_t units)
{
    int64_t seconds = of_day / units;
    int digits = units == 1000 ? 3 : units == 1000000 ? 6 : 9;
    buf_format(out, "%02d:%02d:%02d.%0*" PRId64, (int)(seconds / 3600), (int)(seconds / 60 % 60),
               (int)(seconds % 60), digits, of_day % units);
}

static void write_time(struct json_writer *writer, const struct parquet_leaf *leaf,
                       enum arrow_type type, int64_t value)
{
    uint8_t memory[64];
    struct buf text = {.data = memory, .capacity = sizeof memory, .bytes_max = sizeof memory};
    bool is_timestamp = type == ARROW_TIMESTAMP_US || leaf->kind == PARQUET_KIND_TIMESTAMP;
    int64_t units = type == ARROW_TIMESTAMP_US ? 1000000 : units_a_second(leaf->unit);
    int64_t a_day = units * 86400, of_day = value % a_day + (value % a_day < 0 ? a_day : 0);
    int64_t days = value / a_day - (value % a_day < 0);
    if (type != ARROW_DATE32 && !is_timestamp && days) { /* no time of any day */
        json_write_i64(writer, value);
        return;
    }
    if (type == ARROW_DATE32) {
        put_date(&text, value);
    } else {
        if (is_timestamp) {
            put_date(&text, days);
            buf_put_byte(&text, 'T');
        }
        put_time_of_day(&text, of_day, units);
        if (is_timestamp && leaf->is_utc)
            buf_put_byte(&text, 'Z');
    }
    json_write_string(writer, text.data, text.length);
}

/* ---- numbers ---- */

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 unsigned_wide;

static void write_decimal(struct json_writer *writer, wide value, int32_t scale)
{
    enum { SCALE_MAX = 64 };
    char text[SCALE_MAX + 48], *at = text + sizeof text;
    bool is_negative = value < 0;
    unsigned_wide rest = is_negative ? -(unsigned_wide)value : (unsigned_wide)value;
    scale = scale < 0 ? 0 : scale > SCALE_MAX ? SCALE_MAX : scale;
    for (int32_t digits = 0; rest || digits <= scale; digits++) {
        if (digits == scale && scale)
            *--at = '.';
        *--at = (char)('0' + (int)(rest % 10));
        rest /= 10;
    }
    if (is_negative)
        *--at = '-';
    json_write_raw(writer, at, (size_t)(text + sizeof text - at));
}

static double half_to_double(uint16_t half)
{
    int exponent = half >> 10 & 31, fraction = half & 1023;
    double value = exponent == 31  ? (fraction ? __builtin_nan("") : __builtin_inf())
                   : exponent == 0 ? fraction * 0x1p-24
                                   : (1024 + fraction) * __builtin_ldexp(1, exponent - 25);
    return half & 0x8000 ? -value : value;
}

static void write_integer(struct json_writer *writer, const struct parquet_leaf *leaf,
                          enum arrow_type type, int64_t value)
{
    if (type == ARROW_DATE32 || type == ARROW_TIMESTAMP_US || leaf->kind == PARQUET_KIND_TIME ||
        leaf->kind == PARQUET_KIND_TIMESTAMP)
        write_time(writer, leaf, type, value);
    else if (leaf->kind == PARQUET_KIND_DECIMAL)
        write_decimal(writer, value, leaf->scale);
    else if (leaf->kind == PARQUET_KIND_INTEGER && leaf->is_unsigned)
        json_write_u64(writer, (uint64_t)value);
    else
        json_write_i64(writer, value);
}

/* ---- bytes ---- */

static void write_base64(struct json_writer *writer, struct span bytes)
{
    char *text = mem_alloc(4 * ((bytes.length + 2) / 3) + 1);
    if (text)
        json_write_string(writer, text, base64_encode(text, bytes.data, bytes.length));
    else
        writer->out->failed = true;
    mem_free(text);
}

static void write_bytes(struct json_writer *writer, const struct parquet_leaf *leaf,
                        struct span bytes)
{
    if (leaf->kind == PARQUET_KIND_DECIMAL && bytes.length >= 1 && bytes.length <= 16) {
        unsigned_wide value = bytes.data[0] & 0x80 ? ~(unsigned_wide)0 : 0;
        for (size_t i = 0; i < bytes.length; i++)
            value = value << 8 | bytes.data[i];
        write_decimal(writer, (wide)value, leaf->scale);
    } else if (leaf->kind == PARQUET_KIND_UUID && bytes.length == 16) {
        struct uuid uuid;
        char text[UUID_TEXT_BYTES];
        memcpy(&uuid, bytes.data, sizeof uuid);
        uuid_to_text(uuid, text);
        json_write_text(writer, text);
    } else if (leaf->kind == PARQUET_KIND_FLOAT16 && bytes.length == 2) {
        json_write_double(writer, half_to_double(get_le16(bytes.data)));
    } else {
        write_base64(writer, bytes);
    }
}

/* ---- values ---- */

static struct span bytes_at(const struct arrow_field *field, const struct arrow_array *array,
                            int64_t i)
{
    const uint8_t *data = array->values;
    if (field->type == ARROW_FIXED)
        return span_of(data + i * field->byte_width, (size_t)field->byte_width);
    return span_of(data + array->offsets[i], (size_t)(array->offsets[i + 1] - array->offsets[i]));
}

static void write_leaf(struct json_writer *writer, const struct parquet_leaf *leaf,
                       const struct arrow_field *field, const struct arrow_array *array, int64_t i)
{
    struct span bytes;
    switch (field->type) {
    case ARROW_BOOL:
        json_write_bool(writer, arrow_bit(array->values, i));
        break;
    case ARROW_INT32:
    case ARROW_DATE32:
        write_integer(writer, leaf, field->type, ((const int32_t *)array->values)[i]);
        break;
    case ARROW_INT64:
    case ARROW_TIMESTAMP_US:
        write_integer(writer, leaf, field->type, ((const int64_t *)array->values)[i]);
        break;
    case ARROW_FLOAT:
        json_write_double(writer, (double)((const float *)array->values)[i]);
        break;
    case ARROW_DOUBLE:
        json_write_double(writer, ((const double *)array->values)[i]);
        break;
    case ARROW_UTF8:
        bytes = bytes_at(field, array, i);
        json_write_string(writer, bytes.data, bytes.length);
        break;
    default:
        write_bytes(writer, leaf, bytes_at(field, array, i));
        break;
    }
}

uint32_t parquet_count_leaves(const struct arrow_field *field)
{
    uint32_t count = field->child_count == 0;
    for (uint32_t i = 0; i < field->child_count; i++)
        count += parquet_count_leaves(&field->children[i]);
    return count;
}

static void write_map(struct json_writer *writer, const struct parquet_leaf *leaves,
                      const struct arrow_field *field, const struct arrow_array *array, int64_t i)
{
    const struct parquet_leaf *value_leaves = leaves + parquet_count_leaves(&field->children[0]);
    bool is_object = field->children[0].type == ARROW_UTF8;
    if (is_object)
        json_write_object_begin(writer);
    else
        json_write_array_begin(writer);
    for (int64_t at = array->offsets[i]; at < array->offsets[i + 1]; at++) {
        if (is_object) {
            struct span key = bytes_at(&field->children[0], &array->children[0], at);
            json_write_key_bytes(writer, key.data, key.length);
        } else {
            json_write_array_begin(writer);
            parquet_write_value(writer, leaves, &field->children[0], &array->children[0], at);
        }
        parquet_write_value(writer, value_leaves, &field->children[1], &array->children[1], at);
        if (!is_object)
            json_write_array_end(writer);
    }
    if (is_object)
        json_write_object_end(writer);
    else
        json_write_array_end(writer);
}

void parquet_write_value(struct json_writer *writer, const struct parquet_leaf *leaves,
                         const struct arrow_field *field, const struct arrow_array *array,
                         int64_t i)
{
    if (!arrow_is_valid(array, i)) {
        json_write_null(writer);
    } else if (field->type == ARROW_STRUCT) {
        json_write_object_begin(writer);
        for (uint32_t j = 0; j < field->child_count; j++) {
            json_write_key(writer, field->children[j].name);
            parquet_write_value(writer, leaves, &field->children[j], &array->children[j], i);
            leaves += parquet_count_leaves(&field->children[j]);
        }
        json_write_object_end(writer);
    } else if (field->type == ARROW_LIST) {
        json_write_array_begin(writer);
        for (int64_t at = array->offsets[i]; at < array->offsets[i + 1]; at++)
            parquet_write_value(writer, leaves, &field->children[0], &array->children[0], at);
        json_write_array_end(writer);
    } else if (field->type == ARROW_MAP) {
        write_map(writer, leaves, field, array, i);
    } else {
        write_leaf(writer, leaves, field, array, i);
    }
}
