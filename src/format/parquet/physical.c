/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrow types whose values Parquet keeps in other bytes: small and unsigned integers, decimals,
 * dates and times of other units, nulls without a type. A schema and its batches become physical
 * ones before anything else sees them; the field's origin stays, for the annotation. A column of
 * nulls stays one, of int32 values that are not there. Source:
 * Parquet's LogicalTypes.md.
 */
#include "format/parquet/parquet_internal.h"

enum { DECIMAL_DIGITS_MAX = 76, DECIMAL_BYTES_MAX = 32 };

static enum status refuse(const struct arrow_field *field, const char *why, struct error *err)
{
    return error_set(err, STATUS_USAGE, "parquet: column %.100s: %s", field->name, why);
}

/* ---- fields ---- */

/* Bytes that hold every number of that many digits in two's complement. */
static int32_t decimal_bytes(int32_t precision)
{
    /* floor(log10(2^(8 n - 1) - 1)) for n bytes */
    static const uint8_t digits[DECIMAL_BYTES_MAX] = {2,  4,  6,  9,  11, 14, 16, 18, 21, 23, 26,
                                                      28, 31, 33, 35, 38, 40, 43, 45, 47, 50, 52,
                                                      55, 57, 59, 62, 64, 67, 69, 71, 74, 76};
    int32_t bytes = 1;
    while (digits[bytes - 1] < precision)
        bytes++;
    return bytes;
}

static enum status decimal_field(struct arrow_field *field, struct error *err)
{
    int32_t precision = field->origin->precision, scale = field->origin->scale;
    if (precision < 1 || precision > DECIMAL_DIGITS_MAX || scale < 0 || scale > precision)
        return refuse(field, "a decimal whose digits Parquet cannot say", err);
    field->type = precision <= 9 ? ARROW_INT32 : precision <= 18 ? ARROW_INT64 : ARROW_FIXED;
    field->byte_width = field->type == ARROW_FIXED ? decimal_bytes(precision) : 0;
    return STATUS_OK;
}

static void integer_field(struct arrow_field *field, bool is_wide)
{
    field->type = is_wide ? ARROW_INT64 : ARROW_INT32; /* the width stays, for the annotation */
}

static enum status make_physical(struct arrow_field *field, struct error *err)
{
    if (field->type == ARROW_NULL && !field->is_nullable)
        return refuse(field, "nulls that may not be null", err);
    if (!field->origin)
        return STATUS_OK;
    switch (field->origin->kind) {
    case ARROW_ORIGIN_INT:
        integer_field(field, false);
        break;
    case ARROW_ORIGIN_UINT:
        integer_field(field, field->byte_width == 8);
        break;
    case ARROW_ORIGIN_DECIMAL:
        return decimal_field(field, err);
    case ARROW_ORIGIN_DATE_MS:
        field->type = ARROW_DATE32;
        field->byte_width = 0;
        break;
    case ARROW_ORIGIN_TIME:
        integer_field(field, field->byte_width == 8);
        break;
    case ARROW_ORIGIN_TIMESTAMP:
    case ARROW_ORIGIN_DURATION:
        integer_field(field, true);
        break;
    case ARROW_ORIGIN_MONTHS:
    case ARROW_ORIGIN_DAY_TIME:
    case ARROW_ORIGIN_MONTH_DAY_NANO:
        field->type = ARROW_FIXED;
        field->byte_width = PARQUET_INTERVAL_BYTES;
        break;
    case ARROW_ORIGIN_SAME:
    case ARROW_ORIGIN_HALF:
    case ARROW_ORIGIN_LARGE:
    case ARROW_ORIGIN_VIEW:
    case ARROW_ORIGIN_FIXED_LIST:
    case ARROW_ORIGIN_LIST_VIEW:
    case ARROW_ORIGIN_LARGE_LIST_VIEW:
        break;
    }
    return STATUS_OK;
}

static bool is_interval(const struct arrow_field *field)
{
    return field->origin && (field->origin->kind == ARROW_ORIGIN_MONTHS ||
                             field->origin->kind == ARROW_ORIGIN_DAY_TIME ||
                             field->origin->kind == ARROW_ORIGIN_MONTH_DAY_NANO);
}

enum status physical_fields(struct arrow_field *fields, uint32_t count, bool *inout_differ,
                            struct error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        enum arrow_type given = fields[i].type;
        int32_t width = fields[i].byte_width;
        TRY(make_physical(&fields[i], err));
        bool is_decimal = fields[i].origin && fields[i].origin->kind == ARROW_ORIGIN_DECIMAL;
        *inout_differ |= given == ARROW_NULL || is_decimal || is_interval(&fields[i]) ||
                         fields[i].type != given || fields[i].byte_width != width;
        TRY(physical_fields(fields[i].children, fields[i].child_count, inout_differ, err));
    }
    return STATUS_OK;
}

enum parquet_physical physical_type(const struct arrow_field *field, uint32_t *out_width)
{
    switch (field->type) {
    case ARROW_BOOL:
        *out_width = 1;
        return PARQUET_BOOLEAN;
    case ARROW_NULL:
    case ARROW_INT32:
    case ARROW_DATE32:
        *out_width = 4;
        return PARQUET_INT32;
    case ARROW_INT64:
    case ARROW_TIMESTAMP_US:
        *out_width = 8;
        return PARQUET_INT64;
    case ARROW_FLOAT:
        *out_width = 4;
        return PARQUET_FLOAT;
    case ARROW_DOUBLE:
        *out_width = 8;
        return PARQUET_DOUBLE;
    case ARROW_FIXED:
        *out_width = (uint32_t)field->byte_width;
        return PARQUET_FIXED;
    default:
        *out_width = 0;
        return PARQUET_BYTE_ARRAY;
    }
}

enum value_order physical_order(const struct arrow_field *field, enum parquet_physical type)
{
    const struct arrow_origin *origin = field->origin;
    if (!origin)
        return (enum value_order)type;
    if (origin->kind == ARROW_ORIGIN_UINT && field->type == ARROW_INT64)
        return ORDER_UINT64;
    if (origin->kind == ARROW_ORIGIN_UINT)
        return ORDER_UINT32;
    if (origin->kind == ARROW_ORIGIN_DECIMAL && field->type == ARROW_FIXED)
        return ORDER_BIG_ENDIAN;
    return origin->kind == ARROW_ORIGIN_HALF || is_interval(field) ? ORDER_NONE
                                                                   : (enum value_order)type;
}

/* ---- values ---- */

static enum status out_of_range(const struct arrow_field *field, int64_t row, struct error *err)
{
    return error_set(err, STATUS_INVALID,
                     "parquet: column %.100s: value %lld does not fit its type", field->name,
                     (long long)row);
}

/* A decimal of any width in exactly `bytes` big-endian bytes. False: it has more. */
static bool put_big_endian(const uint8_t *from, int32_t width, uint8_t *to, int32_t bytes)
{
    uint8_t fill = from[width - 1] & 0x80 ? 0xff : 0;
    for (int32_t i = 0; i < bytes; i++)
        to[bytes - 1 - i] = i < width ? from[i] : fill;
    for (int32_t i = bytes; i < width; i++) {
        if (from[i] != fill)
            return false;
    }
    return (to[0] & 0x80) == (fill & 0x80);
}

/* The number as the 8 bytes of an integer column want it. False: out of range. */
static bool load_number(const struct arrow_field *given, const uint8_t *from, int64_t *out)
{
    enum { MS_A_DAY = 86400000, MS_A_SECOND = 1000 };
    const struct arrow_origin *origin = given->origin;
    int32_t width = given->byte_width;
    switch (origin->kind) {
    case ARROW_ORIGIN_UINT:
        *out = (int64_t)get_le_unsigned(from, (size_t)width);
        return true;
    case ARROW_ORIGIN_DECIMAL:
        *out = get_le_signed(from, size_min((size_t)width, sizeof *out));
        for (int32_t at = 8; at < width; at += 8) /* the words above are the sign */
            if ((int64_t)get_le64(from + at) != *out >> 63)
                return false;
        return true;
    case ARROW_ORIGIN_DATE_MS:
        *out = get_le_signed(from, (size_t)width);
        if (*out % MS_A_DAY)
            return false;
        *out /= MS_A_DAY;
        return true;
    case ARROW_ORIGIN_TIME:
    case ARROW_ORIGIN_TIMESTAMP:
        *out = get_le_signed(from, (size_t)width);
        return origin->unit != ARROW_SECONDS || !__builtin_mul_overflow(*out, MS_A_SECOND, out);
    default:
        *out = get_le_signed(from, (size_t)width);
        return true;
    }
}

static enum status convert_numbers(const struct arrow_field *given, const struct arrow_field *field,
                                   struct arrow_array *array, struct arena *arena,
                                   struct error *err)
{
    bool is_wide = field->type == ARROW_INT64;
    bool is_unsigned = given->origin->kind == ARROW_ORIGIN_UINT;
    const uint8_t *from = array->values;
    int32_t *narrow = NULL;
    int64_t *wide = NULL;
    if (is_wide)
        wide = arena_alloc_zero(arena, (size_t)array->length + 1, sizeof *wide);
    else
        narrow = arena_alloc_zero(arena, (size_t)array->length + 1, sizeof *narrow);
    if (!wide && !narrow)
        return error_set(err, STATUS_NO_MEMORY, "parquet: no memory for a column");
    for (int64_t i = 0; i < array->length; i++) {
        int64_t value = 0;
        if (!arrow_is_valid(array, i))
            continue;
        if (!load_number(given, from + i * given->byte_width, &value) ||
            (narrow && !is_unsigned && value != (int32_t)value))
            return out_of_range(given, i, err);
        if (wide)
            wide[i] = value;
        else
            narrow[i] = (int32_t)value;
    }
    array->values = wide ? (const void *)wide : narrow;
    return STATUS_OK;
}

/* Months, days and milliseconds, of which Parquet has no negative ones. False: it does not fit. */
static bool put_interval(const struct arrow_field *given, const uint8_t *from, uint8_t *to)
{
    enum { NS_A_MS = 1000000 };
    uint32_t months = 0, days = 0;
    int64_t millis = 0, nanos;
    switch (given->origin->kind) {
    case ARROW_ORIGIN_MONTHS:
        months = get_le32(from);
        break;
    case ARROW_ORIGIN_DAY_TIME:
        days = get_le32(from);
        millis = get_le_signed(from + 4, 4);
        break;
    default:
        months = get_le32(from);
        days = get_le32(from + 4);
        nanos = get_le_signed(from + 8, 8);
        if (nanos % NS_A_MS)
            return false;
        millis = nanos / NS_A_MS;
        break;
    }
    if (months > INT32_MAX || days > INT32_MAX || millis < 0 || millis > UINT32_MAX)
        return false;
    put_le32(to, months);
    put_le32(to + 4, days);
    put_le32(to + 8, (uint32_t)millis);
    return true;
}

/* Big-endian decimals and intervals: bytes of one width. */
static bool put_bytes(const struct arrow_field *given, const struct arrow_field *field,
                      const uint8_t *from, uint8_t *to)
{
    return is_interval(given) ? put_interval(given, from, to)
                              : put_big_endian(from, given->byte_width, to, field->byte_width);
}

static enum status convert_bytes(const struct arrow_field *given, const struct arrow_field *field,
                                 struct arrow_array *array, struct arena *arena, struct error *err)
{
    size_t width = (size_t)field->byte_width;
    const uint8_t *from = array->values;
    uint8_t *to = arena_alloc_zero(arena, (size_t)array->length + 1, width);
    if (!to)
        return error_set(err, STATUS_NO_MEMORY, "parquet: no memory for a column");
    for (int64_t i = 0; i < array->length; i++) {
        if (arrow_is_valid(array, i) &&
            !put_bytes(given, field, from + i * given->byte_width, to + (size_t)i * width))
            return out_of_range(given, i, err);
    }
    array->values = to;
    return STATUS_OK;
}

/* All null, whatever it was. */
static enum status convert_nulls(struct arrow_array *array, struct arena *arena, struct error *err)
{
    size_t count = (size_t)array->length;
    array->values = arena_alloc_zero(arena, count + 1, sizeof(int32_t));
    array->validity = arena_alloc_zero(arena, count / 8 + 1, 1);
    array->null_count = array->length;
    array->dictionary = NULL;
    if (!array->values || !array->validity)
        return error_set(err, STATUS_NO_MEMORY, "parquet: no memory for a column");
    return STATUS_OK;
}

/* Little-endian integers of the width that Parquet has too are as they should be. */
static bool is_as_it_is(const struct arrow_field *given, const struct arrow_field *field)
{
    int32_t width = field->type == ARROW_INT64 ? 8 : field->type == ARROW_INT32 ? 4 : 0;
    bool is_scaled = (given->origin->kind == ARROW_ORIGIN_TIME ||
                      given->origin->kind == ARROW_ORIGIN_TIMESTAMP) &&
                     given->origin->unit == ARROW_SECONDS;
    return given->type == field->type || (given->byte_width == width && !is_scaled);
}

enum status physical_array(const struct arrow_field *given, const struct arrow_field *field,
                           const struct arrow_array *from, struct arena *arena,
                           struct arrow_array *out_array, struct error *err)
{
    *out_array = *from;
    if (given->type == ARROW_NULL)
        return convert_nulls(out_array, arena, err);
    if (from->dictionary) {
        struct arrow_array *dictionary = arena_alloc(arena, sizeof *dictionary);
        if (!dictionary)
            return error_set(err, STATUS_NO_MEMORY, "parquet: no memory for a column");
        out_array->dictionary = dictionary;
        return physical_array(given, field, from->dictionary, arena, dictionary, err);
    }
    if (given->child_count) {
        struct arrow_array *children =
            arena_alloc_zero(arena, given->child_count, sizeof *children);
        if (!children)
            return error_set(err, STATUS_NO_MEMORY, "parquet: no memory for a column");
        out_array->children = children;
        for (uint32_t i = 0; i < given->child_count; i++)
            TRY(physical_array(&given->children[i], &field->children[i], &from->children[i], arena,
                               &children[i], err));
        return STATUS_OK;
    }
    if (given->type != ARROW_FIXED || !given->origin)
        return STATUS_OK;
    bool is_decimal = given->origin->kind == ARROW_ORIGIN_DECIMAL && field->type == ARROW_FIXED;
    if (is_decimal || is_interval(given))
        return convert_bytes(given, field, out_array, arena, err);
    if (is_as_it_is(given, field))
        return STATUS_OK;
    return convert_numbers(given, field, out_array, arena, err);
}
