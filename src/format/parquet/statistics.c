/* SPDX-License-Identifier: Apache-2.0
 *
 * Least and greatest values, and short bounds of long ones. Source: parquet.thrift (Statistics,
 * TypeDefinedOrder), Iceberg's "Bounds".
 */
#include <math.h>

#include "format/parquet/parquet_internal.h"

static double load_double(enum value_order order, const uint8_t *value)
{
    double wide;
    float narrow;
    if (order == ORDER_FLOAT) {
        memcpy(&narrow, value, sizeof narrow);
        return (double)narrow;
    }
    memcpy(&wide, value, sizeof wide);
    return wide;
}

static int compare_bytes(struct span a, struct span b)
{
    size_t common = size_min(a.length, b.length);
    int result = common ? memcmp(a.data, b.data, common) : 0;
    return result ? result : (a.length > b.length) - (a.length < b.length);
}

int value_compare(enum value_order order, struct span a, struct span b)
{
    switch (order) {
    case ORDER_BOOLEAN:
        return (a.data[0] > b.data[0]) - (a.data[0] < b.data[0]);
    case ORDER_INT32: {
        int32_t x = (int32_t)get_le32(a.data), y = (int32_t)get_le32(b.data);
        return (x > y) - (x < y);
    }
    case ORDER_INT64: {
        int64_t x = (int64_t)get_le64(a.data), y = (int64_t)get_le64(b.data);
        return (x > y) - (x < y);
    }
    case ORDER_FLOAT:
    case ORDER_DOUBLE: {
        double x = load_double(order, a.data), y = load_double(order, b.data);
        return (x > y) - (x < y);
    }
    case ORDER_UINT32: {
        uint32_t x = get_le32(a.data), y = get_le32(b.data);
        return (x > y) - (x < y);
    }
    case ORDER_UINT64: {
        uint64_t x = get_le64(a.data), y = get_le64(b.data);
        return (x > y) - (x < y);
    }
    case ORDER_BIG_ENDIAN: /* two's complement of one width: the sign first, then as bytes */
        if ((a.data[0] ^ b.data[0]) & 0x80)
            return a.data[0] & 0x80 ? -1 : 1;
        return compare_bytes(a, b);
    default:
        return compare_bytes(a, b);
    }
}

static bool is_nan(enum value_order order, const uint8_t *value)
{
    return (order == ORDER_FLOAT || order == ORDER_DOUBLE) && isnan(load_double(order, value));
}

void extent_add(enum value_order order, struct extent *extent, struct span value)
{
    if (order == ORDER_NONE || is_nan(order, value.data))
        return;
    if (!extent->is_set) {
        *extent = (struct extent){.is_set = true, .min = value, .max = value};
        return;
    }
    if (value_compare(order, value, extent->min) < 0)
        extent->min = value;
    else if (value_compare(order, value, extent->max) > 0)
        extent->max = value;
}

/* The first eight bytes as a number that has their order. */
static uint64_t prefix(const uint8_t *data, size_t bytes)
{
    uint64_t number = 0;
    if (bytes >= 8)
        return __builtin_bswap64(get_le64(data));
    for (size_t i = 0; i < bytes; i++)
        number |= (uint64_t)data[i] << (56 - 8 * i);
    return number;
}

/* Most values are settled by their prefix alone. */
static void add_byte_arrays(struct extent *extent, struct span plain)
{
    uint64_t least = 0, greatest = 0;
    if (extent->is_set) {
        least = prefix(extent->min.data, extent->min.length);
        greatest = prefix(extent->max.data, extent->max.length);
    }
    for (size_t at = 0; at < plain.length;) {
        struct span value = span_of(plain.data + at + 4, get_le32(plain.data + at));
        uint64_t begin = prefix(value.data, value.length);
        at += 4 + value.length;
        if (extent->is_set && begin > least && begin < greatest)
            continue;
        extent_add(ORDER_BYTE_ARRAY, extent, value);
        least = prefix(extent->min.data, extent->min.length);
        greatest = prefix(extent->max.data, extent->max.length);
    }
}

static void add_int64s(struct extent *extent, struct span plain)
{
    size_t least = 0, greatest = 0;
    int64_t min = INT64_MAX, max = INT64_MIN;
    for (size_t at = 0; at < plain.length; at += 8) {
        int64_t value = (int64_t)get_le64(plain.data + at);
        min = value < min ? value : min;
        max = value > max ? value : max;
    }
    while (least < plain.length && (int64_t)get_le64(plain.data + least) != min)
        least += 8;
    while (greatest < plain.length && (int64_t)get_le64(plain.data + greatest) != max)
        greatest += 8;
    if (plain.length) {
        extent_add(ORDER_INT64, extent, span_of(plain.data + least, 8));
        extent_add(ORDER_INT64, extent, span_of(plain.data + greatest, 8));
    }
}

void extent_add_plain(enum value_order order, uint32_t width, struct extent *extent,
                      struct span plain)
{
    if (width == 0)
        add_byte_arrays(extent, plain);
    else if (order == ORDER_INT64)
        add_int64s(extent, plain);
    else
        for (size_t at = 0; at < plain.length; at += width)
            extent_add(order, extent, span_of(plain.data + at, width));
}

void owned_extent_clear(struct owned_extent *extent)
{
    extent->is_set = false;
}

void owned_extent_deinit(struct owned_extent *extent)
{
    buf_deinit(&extent->min);
    buf_deinit(&extent->max);
}

/* More of a value than any bound has; a value may be as large as a page. */
static void set_value(struct buf *to, struct span value)
{
    enum { KEPT_BYTES = 16 * BOUND_BYTES_MAX };
    buf_clear(to);
    buf_put(to, value.data, size_min(value.length, KEPT_BYTES));
}

void extent_merge(enum value_order order, struct owned_extent *extent, const struct extent *more)
{
    if (!more->is_set)
        return;
    struct span min = span_of(extent->min.data, extent->min.length);
    struct span max = span_of(extent->max.data, extent->max.length);
    if (!extent->is_set || value_compare(order, more->min, min) < 0)
        set_value(&extent->min, more->min);
    if (!extent->is_set || value_compare(order, more->max, max) > 0)
        set_value(&extent->max, more->max);
    extent->is_set = true;
}

void bound_fix_zero(enum value_order order, uint8_t *value, bool is_lower)
{
    if (order == ORDER_FLOAT && load_double(order, value) == 0)
        put_le32(value, is_lower ? UINT32_C(1) << 31 : 0);
    else if (order == ORDER_DOUBLE && load_double(order, value) == 0)
        put_le64(value, is_lower ? UINT64_C(1) << 63 : 0);
}

/* ---- short bounds ---- */

size_t code_points_bytes(struct span text, size_t count)
{
    size_t at = 0;
    while (at < text.length) {
        if ((text.data[at] & 0xc0) != 0x80 && count-- == 0)
            break;
        at++;
    }
    return at;
}

struct span bound_lower(struct span value, size_t bytes_max, bool is_text)
{
    if (value.length <= bytes_max)
        return value;
    size_t length = bytes_max;
    while (is_text && length && (value.data[length] & 0xc0) == 0x80)
        length--;
    return span_of(value.data, length);
}

static uint32_t code_point(const uint8_t *text, size_t bytes)
{
    static const uint8_t masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t point = text[0] & masks[bytes];
    for (size_t i = 1; i < bytes; i++)
        point = point << 6 | (text[i] & 0x3f);
    return point;
}

static size_t put_code_point(uint8_t out[4], uint32_t point)
{
    size_t bytes = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const uint8_t marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = bytes; i-- > 1; point >>= 6)
        out[i] = (uint8_t)(0x80 | (point & 0x3f));
    out[0] = (uint8_t)(marks[bytes] | point);
    return bytes;
}

/* The last code point of the prefix that has a greater one is replaced by that, the rest dropped.
 */
static bool grow_text(struct span text, struct buf *out)
{
    for (size_t end = text.length; end > 0;) {
        size_t start = end - 1;
        while (start && (text.data[start] & 0xc0) == 0x80)
            start--;
        uint32_t point = code_point(text.data + start, end - start) + 1;
        if (point == 0xd800)
            point = 0xe000;
        uint8_t grown[4];
        if (point <= 0x10ffff) {
            buf_put(out, text.data, start);
            buf_put(out, grown, put_code_point(grown, point));
            return true;
        }
        end = start;
    }
    return false;
}

static bool grow_bytes(struct span bytes, struct buf *out)
{
    for (size_t end = bytes.length; end > 0; end--) {
        if (bytes.data[end - 1] == 0xff)
            continue;
        buf_put(out, bytes.data, end - 1);
        buf_put_byte(out, (uint8_t)(bytes.data[end - 1] + 1));
        return true;
    }
    return false;
}

bool bound_upper(struct span value, size_t bytes_max, bool is_text, struct buf *out,
                 struct span *out_bound)
{
    if (value.length <= bytes_max) {
        *out_bound = value;
        return true;
    }
    size_t start = out->length;
    struct span begin = bound_lower(value, bytes_max, is_text);
    if (!(is_text ? grow_text(begin, out) : grow_bytes(begin, out)) || out->failed)
        return false;
    *out_bound = span_of(out->data + start, out->length - start);
    return true;
}
