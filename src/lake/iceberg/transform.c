/* SPDX-License-Identifier: Apache-2.0
 *
 * Partition transforms. Source: specification, "Partition Transforms" and "Appendix B: 32-bit Hash
 * Requirements" (murmur3 x86 of seed 0; integers, dates and times hash as 8 bytes little-endian).
 */
#include <stdio.h>

#include "lake/iceberg/iceberg_internal.h"

__extension__ typedef __int128 int128;

static const int64_t micros_per_hour = INT64_C(3600000000);
static const int64_t micros_per_day = INT64_C(86400000000);

static const struct {
    const char *name;
    enum iceberg_transform_kind kind;
} plain_names[] = {
    {"identity", ICEBERG_IDENTITY}, {"year", ICEBERG_YEAR}, {"month", ICEBERG_MONTH},
    {"day", ICEBERG_DAY},           {"hour", ICEBERG_HOUR}, {"void", ICEBERG_VOID},
};

/* The number in "<name>[<number>]"; 0: the text is something else. */
static uint32_t bracketed(const char *text, const char *name)
{
    size_t length = strlen(text), start = strlen(name) + 1;
    uint64_t width;
    bool fits = length > start && strncmp(text, name, start - 1) == 0 && text[start - 1] == '[' &&
                text[length - 1] == ']' && parse_u64(text + start, length - start - 1, &width);
    return fits && width <= INT32_MAX ? (uint32_t)width : 0;
}

struct iceberg_transform iceberg_transform_parse(const char *text)
{
    for (size_t i = 0; i < COUNT_OF(plain_names); i++) {
        if (strcmp(text, plain_names[i].name) == 0)
            return (struct iceberg_transform){.kind = plain_names[i].kind};
    }
    uint32_t buckets = bracketed(text, "bucket"), width = bracketed(text, "truncate");
    if (buckets)
        return (struct iceberg_transform){ICEBERG_BUCKET, buckets};
    if (width)
        return (struct iceberg_transform){ICEBERG_TRUNCATE, width};
    return (struct iceberg_transform){.kind = ICEBERG_TRANSFORM_UNKNOWN};
}

void iceberg_transform_to_text(struct iceberg_transform transform, char out[32])
{
    snprintf(out, 32, "unknown");
    for (size_t i = 0; i < COUNT_OF(plain_names); i++) {
        if (plain_names[i].kind == transform.kind)
            snprintf(out, 32, "%s", plain_names[i].name);
    }
    if (transform.kind == ICEBERG_BUCKET || transform.kind == ICEBERG_TRUNCATE)
        snprintf(out, 32, "%s[%u]", transform.kind == ICEBERG_BUCKET ? "bucket" : "truncate",
                 transform.width);
}

static bool is_timestamp(enum iceberg_type type)
{
    return type == ICEBERG_TIMESTAMP || type == ICEBERG_TIMESTAMPTZ;
}

enum status iceberg_transform_result(struct iceberg_transform transform, enum iceberg_type source,
                                     enum iceberg_type *out_type, struct error *err)
{
    bool is_nested = source == ICEBERG_STRUCT || source == ICEBERG_LIST || source == ICEBERG_MAP;
    bool is_real = source == ICEBERG_FLOAT || source == ICEBERG_DOUBLE;
    bool fits = false;
    enum iceberg_type type = ICEBERG_INT;
    switch (transform.kind) {
    case ICEBERG_IDENTITY:
    case ICEBERG_VOID:
        fits = !is_nested;
        type = source;
        break;
    case ICEBERG_BUCKET:
        fits = !is_nested && !is_real && source != ICEBERG_BOOLEAN;
        break;
    case ICEBERG_TRUNCATE:
        fits = source == ICEBERG_INT || source == ICEBERG_LONG || source == ICEBERG_DECIMAL ||
               source == ICEBERG_STRING || source == ICEBERG_BINARY;
        type = source;
        break;
    case ICEBERG_DAY:
        type = ICEBERG_DATE;
        fits = is_timestamp(source) || source == ICEBERG_DATE;
        break;
    case ICEBERG_YEAR:
    case ICEBERG_MONTH:
        fits = is_timestamp(source) || source == ICEBERG_DATE;
        break;
    case ICEBERG_HOUR:
        fits = is_timestamp(source);
        break;
    case ICEBERG_TRANSFORM_UNKNOWN:
        break;
    }
    char text[32];
    iceberg_transform_to_text(transform, text);
    if (!fits)
        return error_set(err, STATUS_INVALID, "transform %s of a %s", text,
                         iceberg_type_name(source));
    *out_type = type;
    return STATUS_OK;
}

/* ---- hash ---- */

static uint32_t rotate(uint32_t value, unsigned bits)
{
    return value << bits | value >> (32 - bits);
}

static uint32_t mix(uint32_t k)
{
    return rotate(k * 0xcc9e2d51u, 15) * 0x1b873593u;
}

static uint32_t murmur3(const uint8_t *data, size_t bytes)
{
    uint32_t hash = 0, tail = 0;
    size_t at = 0;
    for (; bytes - at >= 4; at += 4)
        hash = rotate(hash ^ mix(get_le32(data + at)), 13) * 5 + 0xe6546b64u;
    for (size_t i = bytes; i-- > at;)
        tail = tail << 8 | data[i];
    if (at < bytes)
        hash ^= mix(tail);
    hash ^= (uint32_t)bytes;
    hash = (hash ^ hash >> 16) * 0x85ebca6bu;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
    return hash ^ hash >> 16;
}

uint32_t iceberg_hash(const struct iceberg_value *value)
{
    uint8_t integer[8];
    struct span bytes = value->bytes;
    switch (value->type) {
    case ICEBERG_STRING:
    case ICEBERG_UUID:
    case ICEBERG_BINARY:
    case ICEBERG_FIXED:
        break;
    case ICEBERG_DECIMAL: /* minimal: no sign byte that the next one already says */
        while (bytes.length > 1 && ((bytes.data[0] == 0 && bytes.data[1] < 0x80) ||
                                    (bytes.data[0] == 0xff && bytes.data[1] >= 0x80))) {
            bytes.data++;
            bytes.length--;
        }
        break;
    default:
        put_le64(integer, (uint64_t)value->integer);
        bytes = span_of(integer, sizeof integer);
        break;
    }
    return murmur3(bytes.data, bytes.length);
}

/* ---- time ---- */

static int64_t floor_divide(int64_t value, int64_t by)
{
    int64_t quotient = value / by;
    return value % by < 0 ? quotient - 1 : quotient;
}

static int64_t transform_day(enum iceberg_transform_kind kind, int64_t day)
{
    if (kind == ICEBERG_DAY)
        return day;
    struct civil_date date = civil_from_days(day);
    int64_t years = date.year - 1970;
    return kind == ICEBERG_YEAR ? years : years * 12 + date.month - 1;
}

int64_t iceberg_transform_micros(enum iceberg_transform_kind kind, int64_t micros)
{
    if (kind == ICEBERG_HOUR)
        return floor_divide(micros, micros_per_hour);
    return transform_day(kind, floor_divide(micros, micros_per_day));
}

/* ---- truncation ---- */

/* v - (v mod width), the remainder being never negative; wraps at the type's lower end as Java
 * does. */
static int64_t truncate_integer(int64_t value, uint32_t width, bool is_narrow)
{
    int64_t remainder = value % (int64_t)width;
    if (remainder < 0)
        remainder += width;
    int64_t result = (int64_t)((uint64_t)value - (uint64_t)remainder);
    return is_narrow ? (int32_t)(uint32_t)result : result;
}

static enum status truncate_decimal(const struct iceberg_value *value, uint32_t width,
                                    struct arena *arena, struct iceberg_value *out_value,
                                    struct error *err)
{
    struct span bytes = value->bytes;
    if (bytes.length == 0 || bytes.length > 16)
        return error_set(err, STATUS_INVALID, "a decimal of %zu bytes", bytes.length);
    int128 unscaled = bytes.data[0] & 0x80 ? -1 : 0;
    for (size_t i = 0; i < bytes.length; i++)
        unscaled = unscaled * 256 + bytes.data[i];
    int128 remainder = unscaled % (int128)width;
    if (remainder < 0)
        remainder += width;
    unscaled -= remainder;
    uint8_t *out = arena_alloc(arena, 16);
    if (!out)
        return error_set(err, STATUS_NO_MEMORY, "decimal: out of memory");
    for (size_t i = 16; i-- > 0; unscaled >>= 8)
        out[i] = (uint8_t)(unscaled & 0xff);
    size_t skip = 0;
    while (skip < 15 && ((out[skip] == 0 && out[skip + 1] < 0x80) ||
                         (out[skip] == 0xff && out[skip + 1] >= 0x80)))
        skip++;
    out_value->bytes = span_of(out + skip, 16 - skip);
    return STATUS_OK;
}

static enum status truncate_value(const struct iceberg_value *value, uint32_t width,
                                  struct arena *arena, struct iceberg_value *out_value,
                                  struct error *err)
{
    switch (value->type) {
    case ICEBERG_INT:
    case ICEBERG_LONG:
        out_value->integer = truncate_integer(value->integer, width, value->type == ICEBERG_INT);
        return STATUS_OK;
    case ICEBERG_DECIMAL:
        return truncate_decimal(value, width, arena, out_value, err);
    case ICEBERG_BINARY:
        out_value->bytes.length = size_min(value->bytes.length, width);
        return STATUS_OK;
    default:
        break;
    }
    size_t at = 0;
    for (uint32_t points = 0; points < width && at < value->bytes.length; points++) {
        size_t step = utf8_sequence(value->bytes.data + at, value->bytes.length - at);
        at += step ? step : 1;
    }
    out_value->bytes.length = at;
    return STATUS_OK;
}

enum status iceberg_transform_apply(struct iceberg_transform transform,
                                    const struct iceberg_value *value, struct arena *arena,
                                    struct iceberg_value *out_value, struct error *err)
{
    struct iceberg_value result = *value;
    enum iceberg_type type;
    TRY(iceberg_transform_result(transform, value->type, &type, err));
    result.is_null = value->is_null || transform.kind == ICEBERG_VOID;
    if (!result.is_null) {
        switch (transform.kind) {
        case ICEBERG_BUCKET:
            result.integer = (iceberg_hash(value) & 0x7fffffff) % transform.width;
            break;
        case ICEBERG_TRUNCATE:
            TRY(truncate_value(value, transform.width, arena, &result, err));
            break;
        case ICEBERG_YEAR:
        case ICEBERG_MONTH:
        case ICEBERG_DAY:
        case ICEBERG_HOUR:
            result.integer = value->type == ICEBERG_DATE
                                 ? transform_day(transform.kind, value->integer)
                                 : iceberg_transform_micros(transform.kind, value->integer);
            break;
        default:
            break;
        }
    }
    result.type = type;
    *out_value = result;
    return STATUS_OK;
}

/* ---- paths ---- */

/* Readers take paths literally or decode percent signs, so nothing is escaped: what is not plainly
 * safe becomes an underscore. Two values may share a directory; file names are unique anyhow. */
static void put_safe(struct buf *out, const uint8_t *text, size_t length)
{
    enum { SEGMENT_MAX = 64 };
    for (size_t i = 0; i < size_min(length, SEGMENT_MAX); i++) {
        bool is_letter = (text[i] | 0x20) >= 'a' && (text[i] | 0x20) <= 'z';
        bool is_digit = text[i] >= '0' && text[i] <= '9';
        bool is_safe = is_letter || is_digit || text[i] == '-' || text[i] == '.' || text[i] == '_';
        buf_put_byte(out, is_safe ? text[i] : '_');
    }
}

static void put_time(struct buf *out, enum iceberg_transform_kind kind, int64_t value)
{
    int64_t day = kind == ICEBERG_HOUR ? floor_divide(value, 24) : value;
    if (kind == ICEBERG_YEAR) {
        buf_format(out, "%04lld", (long long)(1970 + value));
        return;
    }
    if (kind == ICEBERG_MONTH) {
        buf_format(out, "%04lld-%02lld", (long long)(1970 + floor_divide(value, 12)),
                   (long long)(value - floor_divide(value, 12) * 12 + 1));
        return;
    }
    struct civil_date date = civil_from_days(day);
    buf_format(out, "%04lld-%02d-%02d", (long long)date.year, date.month, date.day);
    if (kind == ICEBERG_HOUR)
        buf_format(out, "-%02lld", (long long)(value - day * 24));
}

static void put_path_value(struct buf *out, struct iceberg_transform transform,
                           const struct iceberg_value *value)
{
    enum iceberg_transform_kind kind = transform.kind;
    if (kind == ICEBERG_IDENTITY && value->type == ICEBERG_DATE)
        kind = ICEBERG_DAY;
    if (value->is_null) {
        buf_put_text(out, "null");
    } else if (kind == ICEBERG_YEAR || kind == ICEBERG_MONTH || kind == ICEBERG_DAY ||
               kind == ICEBERG_HOUR) {
        put_time(out, kind, value->integer);
    } else if (value->type == ICEBERG_STRING) {
        put_safe(out, value->bytes.data, value->bytes.length);
    } else if (value->type == ICEBERG_FLOAT || value->type == ICEBERG_DOUBLE) {
        char text[DOUBLE_TEXT_MAX];
        buf_put(out, text, double_to_text(text, value->real));
    } else if (value->bytes.data) {
        char digits[32];
        size_t length = size_min(value->bytes.length, 16);
        hex_encode(digits, value->bytes.data, length);
        buf_put(out, digits, 2 * length);
    } else if (value->type == ICEBERG_BOOLEAN) {
        buf_put_text(out, value->integer ? "true" : "false");
    } else {
        buf_format(out, "%lld", (long long)value->integer);
    }
}

enum status iceberg_partition_path(const struct iceberg_spec *spec,
                                   const struct iceberg_value *values, struct buf *out,
                                   struct error *err)
{
    for (uint32_t i = 0; i < spec->field_count; i++) {
        const char *name = spec->fields[i].name;
        if (i)
            buf_put_byte(out, '/');
        put_safe(out, (const uint8_t *)name, strlen(name));
        buf_put_byte(out, '=');
        put_path_value(out, spec->fields[i].transform, &values[i]);
    }
    return buf_status(out, "partition path", err);
}
