/* SPDX-License-Identifier: Apache-2.0
 *
 * Single values: their order, their binary form, their bounds.
 * Source: specification, "Appendix D: Single-value serialization", "Column metrics" of data files.
 */
#include "lake/iceberg/iceberg_internal.h"

static bool is_bytes(enum iceberg_type type)
{
    return type == ICEBERG_STRING || type == ICEBERG_UUID || type == ICEBERG_BINARY ||
           type == ICEBERG_FIXED || type == ICEBERG_DECIMAL;
}

static bool is_real(enum iceberg_type type)
{
    return type == ICEBERG_FLOAT || type == ICEBERG_DOUBLE;
}

static int compare_bytes(struct span a, struct span b)
{
    size_t common = size_min(a.length, b.length);
    int order = common ? memcmp(a.data, b.data, common) : 0;
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

/* Big-endian two's complement of any lengths. */
static int compare_decimals(struct span a, struct span b)
{
    uint8_t a_fill = a.length && a.data[0] & 0x80 ? 0xff : 0;
    uint8_t b_fill = b.length && b.data[0] & 0x80 ? 0xff : 0;
    if (a_fill != b_fill)
        return a_fill ? -1 : 1;
    size_t width = size_max(a.length, b.length);
    for (size_t i = 0; i < width; i++) {
        uint8_t left = i < width - a.length ? a_fill : a.data[i - (width - a.length)];
        uint8_t right = i < width - b.length ? b_fill : b.data[i - (width - b.length)];
        if (left != right)
            return left < right ? -1 : 1;
    }
    return 0;
}

int iceberg_value_compare(const struct iceberg_value *a, const struct iceberg_value *b)
{
    if (a->is_null || b->is_null)
        return b->is_null - a->is_null;
    if (a->type == ICEBERG_DECIMAL)
        return compare_decimals(a->bytes, b->bytes);
    if (is_bytes(a->type))
        return compare_bytes(a->bytes, b->bytes);
    if (is_real(a->type))
        return (a->real > b->real) - (a->real < b->real);
    return (a->integer > b->integer) - (a->integer < b->integer);
}

bool iceberg_value_equal(const struct iceberg_value *a, const struct iceberg_value *b)
{
    bool both_nan =
        is_real(a->type) && !a->is_null && !b->is_null && a->real != a->real && b->real != b->real;
    bool one_nan = is_real(a->type) && !both_nan && (a->real != a->real || b->real != b->real);
    return a->type == b->type && (both_nan || (!one_nan && iceberg_value_compare(a, b) == 0));
}

void iceberg_value_encode(const struct iceberg_value *value, struct buf *out)
{
    float single;
    switch (value->type) {
    case ICEBERG_BOOLEAN:
        buf_put_byte(out, value->integer != 0);
        break;
    case ICEBERG_INT:
    case ICEBERG_DATE:
        buf_put_le32(out, (uint32_t)(int32_t)value->integer);
        break;
    case ICEBERG_LONG:
    case ICEBERG_TIME:
    case ICEBERG_TIMESTAMP:
    case ICEBERG_TIMESTAMPTZ:
        buf_put_le64(out, (uint64_t)value->integer);
        break;
    case ICEBERG_FLOAT:
        single = (float)value->real;
        buf_put(out, &single, sizeof single);
        break;
    case ICEBERG_DOUBLE:
        buf_put(out, &value->real, sizeof value->real);
        break;
    default:
        buf_put(out, value->bytes.data, value->bytes.length);
        break;
    }
}

enum status iceberg_value_decode(enum iceberg_type type, struct span bytes,
                                 struct iceberg_value *out_value, struct error *err)
{
    struct iceberg_value value = {.type = type};
    float single;
    size_t width = 0;
    switch (type) {
    case ICEBERG_BOOLEAN:
        width = 1;
        break;
    case ICEBERG_INT:
    case ICEBERG_DATE:
    case ICEBERG_FLOAT:
        width = 4;
        break;
    case ICEBERG_LONG:
    case ICEBERG_TIME:
    case ICEBERG_TIMESTAMP:
    case ICEBERG_TIMESTAMPTZ:
    case ICEBERG_DOUBLE:
        width = 8;
        break;
    case ICEBERG_UUID:
        width = 16;
        break;
    default:
        width = bytes.length;
        break;
    }
    /* A column promoted from int or float keeps the narrower bounds of its old files. */
    bool is_promoted = bytes.length == 4 && (type == ICEBERG_LONG || type == ICEBERG_DOUBLE);
    if (bytes.length != width && !is_promoted)
        return error_set(err, STATUS_INVALID, "a %s value of %zu bytes", iceberg_type_name(type),
                         bytes.length);
    if (is_bytes(type)) {
        value.bytes = bytes;
    } else if (is_real(type) && bytes.length == 4) {
        memcpy(&single, bytes.data, sizeof single);
        value.real = (double)single;
    } else if (is_real(type)) {
        memcpy(&value.real, bytes.data, sizeof value.real);
    } else if (width == 1) {
        value.integer = bytes.data[0] != 0;
    } else {
        value.integer =
            bytes.length == 4 ? (int32_t)get_le32(bytes.data) : (int64_t)get_le64(bytes.data);
    }
    *out_value = value;
    return STATUS_OK;
}

/* ---- bounds of text and bytes ---- */

/* The bytes of the first `points` code points of valid UTF-8. */
static size_t prefix_of_points(struct span text, size_t points)
{
    size_t at = 0;
    for (; points && at < text.length; points--) {
        size_t step = utf8_sequence(text.data + at, text.length - at);
        at += step ? step : 1;
    }
    return at;
}

struct span iceberg_bound_lower(enum iceberg_type type, struct span value)
{
    size_t length = value.length;
    if (type == ICEBERG_STRING)
        length = prefix_of_points(value, ICEBERG_BOUND_LENGTH);
    else if (type == ICEBERG_BINARY || type == ICEBERG_FIXED)
        length = size_min(length, ICEBERG_BOUND_LENGTH);
    return span_of(length ? value.data : (const uint8_t *)"", length);
}

static uint32_t decode_point(const uint8_t *at, size_t length)
{
    static const uint8_t masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t point = at[0] & masks[length];
    for (size_t i = 1; i < length; i++)
        point = point << 6 | (at[i] & 0x3f);
    return point;
}

static size_t encode_point(uint32_t c, uint8_t out[4])
{
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    size_t length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t heads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = length; i-- > 1; c >>= 6)
        out[i] = (uint8_t)(0x80 | (c & 0x3f));
    out[0] = (uint8_t)(heads[length] | c);
    return length;
}

/* Raises the last code point that can be raised and cuts what follows it. */
static bool raise_text(uint8_t *text, size_t *length)
{
    while (*length) {
        size_t start = *length - 1;
        while (start && (text[start] & 0xc0) == 0x80)
            start--;
        uint32_t point = decode_point(text + start, *length - start) + 1;
        if (point == 0xd800) /* surrogates are no code points of text */
            point = 0xe000;
        if (point <= 0x10ffff) {
            *length = start + encode_point(point, text + start);
            return true;
        }
        *length = start;
    }
    return false;
}

static bool raise_bytes(uint8_t *bytes, size_t *length)
{
    for (; *length; --*length) {
        if (bytes[*length - 1] != 0xff) {
            bytes[*length - 1]++;
            return true;
        }
    }
    return false;
}

bool iceberg_bound_upper(enum iceberg_type type, struct span value, struct arena *arena,
                         struct span *out_bound)
{
    struct span prefix = iceberg_bound_lower(type, value);
    if (prefix.length == value.length) {
        *out_bound = prefix;
        return true;
    }
    /* A raised code point may take one byte more than it did. */
    uint8_t *copy = arena_alloc(arena, prefix.length + 4);
    if (!copy)
        return false;
    memcpy(copy, prefix.data, prefix.length);
    size_t length = prefix.length;
    if (!(type == ICEBERG_STRING ? raise_text(copy, &length) : raise_bytes(copy, &length)))
        return false;
    *out_bound = span_of(copy, length);
    return true;
}
