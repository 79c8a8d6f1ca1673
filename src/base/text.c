/* SPDX-License-Identifier: Apache-2.0
 *
 * Text helpers.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"

size_t utf8_sequence(const uint8_t *text, size_t bytes)
{
    if (bytes == 0)
        return 0;
    uint8_t first = text[0];
    if (first < 0x80)
        return 1;
    if (first < 0xc2)
        return 0;
    if (first < 0xe0)
        return bytes >= 2 && (text[1] & 0xc0) == 0x80 ? 2 : 0;
    if (first < 0xf0) {
        if (bytes < 3 || (text[1] & 0xc0) != 0x80 || (text[2] & 0xc0) != 0x80)
            return 0;
        if ((first == 0xe0 && text[1] < 0xa0) || (first == 0xed && text[1] >= 0xa0))
            return 0;
        return 3;
    }
    if (first > 0xf4 || bytes < 4 || (text[1] & 0xc0) != 0x80 || (text[2] & 0xc0) != 0x80 ||
        (text[3] & 0xc0) != 0x80)
        return 0;
    if ((first == 0xf0 && text[1] < 0x90) || (first == 0xf4 && text[1] >= 0x90))
        return 0;
    return 4;
}

bool utf8_is_valid(const void *text, size_t bytes)
{
    const uint8_t *at = text;
    while (bytes > 0) {
        while (bytes >= 64) { /* as wide as the processor can */
            uint64_t bits = 0;
            for (size_t i = 0; i < 64; i += 8)
                bits |= get_le64(at + i);
            if (bits & 0x8080808080808080u)
                break;
            at += 64;
            bytes -= 64;
        }
        while (bytes >= 8 && !(get_le64(at) & 0x8080808080808080u)) {
            at += 8;
            bytes -= 8;
        }
        if (bytes == 0)
            break;
        size_t step = utf8_sequence(at, bytes);
        if (!step)
            return false;
        at += step;
        bytes -= step;
    }
    return true;
}

void hex_encode(char *out, const void *data, size_t bytes)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *in = data;
    /* Four bytes a step: spread their nibbles over eight bytes, then turn each into its digit. */
    for (; bytes >= 4; bytes -= 4, in += 4, out += 8) {
        uint64_t x = __builtin_bswap32(get_le32(in));
        x = (x << 16 | x) & 0x0000ffff0000ffffu;
        x = (x << 8 | x) & 0x00ff00ff00ff00ffu;
        x = (x << 4 | x) & 0x0f0f0f0f0f0f0f0fu;
        uint64_t is_letter = (x + 0x0606060606060606u) >> 4 & 0x0101010101010101u;
        x += 0x3030303030303030u + is_letter * 39;
        put_le64(out, __builtin_bswap64(x));
    }
    for (; bytes; bytes--, in++) {
        *out++ = digits[*in >> 4];
        *out++ = digits[*in & 15];
    }
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

bool hex_decode(void *out, size_t bytes, const char *text, size_t text_length)
{
    uint8_t *to = out;
    if (text_length != 2 * bytes)
        return false;
    for (size_t i = 0; i < bytes; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        to[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

bool hex_u64(const char *text, size_t length, uint64_t *out_value)
{
    uint8_t bytes[8];
    uint64_t value = 0;
    if (!hex_decode(bytes, sizeof bytes, text, length))
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        value = value << 8 | bytes[i];
    *out_value = value;
    return true;
}

bool parse_u64(const char *text, size_t length, uint64_t *out_value)
{
    uint64_t value = 0;
    if (length == 0)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
            return false;
    }
    *out_value = value;
    return true;
}

bool parse_i64(const char *text, size_t length, int64_t *out_value)
{
    bool is_negative = length > 0 && text[0] == '-';
    uint64_t value;
    if (!parse_u64(text + is_negative, length - is_negative, &value))
        return false;
    if (is_negative) {
        if (value > (uint64_t)INT64_MAX + 1)
            return false;
        *out_value = (int64_t)(0 - value);
    } else {
        if (value > INT64_MAX)
            return false;
        *out_value = (int64_t)value;
    }
    return true;
}

struct unit {
    const char *name;
    double factor;
};

static bool parse_with_unit(const char *text, size_t length, const struct unit *units,
                            size_t unit_count, uint64_t *out_value)
{
    char copy[48];
    if (length == 0 || length >= sizeof copy || text[0] == '-' || text[0] == '+')
        return false;
    size_t digits = 0;
    while (digits < length && ((text[digits] >= '0' && text[digits] <= '9') || text[digits] == '.'))
        digits++;
    if (digits == 0)
        return false;
    memcpy(copy, text, digits);
    copy[digits] = '\0';
    char *end;
    double number = strtod(copy, &end);
    if (*end != '\0')
        return false;
    while (digits < length && text[digits] == ' ')
        digits++;
    for (size_t i = 0; i < unit_count; i++) {
        if (strlen(units[i].name) == length - digits &&
            memcmp(units[i].name, text + digits, length - digits) == 0) {
            number = number * units[i].factor + 0.5;
            if (!(number < 1.8e19))
                return false;
            *out_value = (uint64_t)number;
            return true;
        }
    }
    return false;
}

bool parse_bytes(const char *text, size_t length, uint64_t *out_bytes)
{
    static const struct unit units[] = {
        {"", 1},
        {"B", 1},
        {"KB", 1e3},
        {"MB", 1e6},
        {"GB", 1e9},
        {"TB", 1e12},
        {"KiB", 1024},
        {"MiB", 1048576},
        {"GiB", 1073741824},
        {"TiB", 1099511627776.0},
    };
    return parse_u64(text, length, out_bytes) ||
           parse_with_unit(text, length, units, COUNT_OF(units), out_bytes);
}

bool parse_duration_ms(const char *text, size_t length, uint64_t *out_ms)
{
    static const struct unit units[] = {
        {"ms", 1}, {"s", 1e3}, {"m", 6e4}, {"min", 6e4}, {"h", 3.6e6}, {"d", 8.64e7},
    };
    if (length == 1 && text[0] == '0') { /* the only number that says the same in every unit */
        *out_ms = 0;
        return true;
    }
    return parse_with_unit(text, length, units, COUNT_OF(units), out_ms);
}

/* The eight digits of a number below 10^8 as the values of eight bytes, the first in the lowest. */
static uint64_t eight_digits(uint64_t value)
{
    uint64_t x = value / 10000 | value % 10000 << 32; /* twice four digits */
    uint64_t high = x * 5243 >> 19 & 0x7f0000007f; /* over 100, rounded down, for all below 10000 */
    x = high | (x - high * 100) << 16;
    high = x * 103 >> 10 & 0xf000f000f000f; /* over 10, for all below 100 */
    return high | (x - high * 10) << 8;
}

size_t u64_to_text(char out[U64_TEXT_MAX], uint64_t value)
{
    const uint64_t zeros = 0x3030303030303030u, block = 100000000;
    uint64_t blocks[2] = {0};
    size_t count = 0;
    for (; value >= block; value /= block)
        blocks[count++] = value % block;
    uint64_t first = eight_digits(value);
    unsigned blank = (unsigned)__builtin_ctzll(first | UINT64_C(1) << 56) / 8;
    put_le64(out, (first + zeros) >> 8 * blank);
    size_t length = 8 - blank;
    while (count > 0) {
        put_le64(out + length, eight_digits(blocks[--count]) + zeros);
        length += 8;
    }
    return length;
}

size_t i64_to_text(char out[I64_TEXT_MAX], int64_t value)
{
    out[0] = '-';
    return value < 0 ? 1 + u64_to_text(out + 1, 0 - (uint64_t)value)
                     : u64_to_text(out, (uint64_t)value);
}

size_t base64_encode(char *out, const void *data, size_t bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *in = data;
    size_t length = 0;
    for (; bytes >= 3; bytes -= 3, in += 3) {
        uint32_t group = (uint32_t)in[0] << 16 | (uint32_t)in[1] << 8 | in[2];
        out[length++] = digits[group >> 18];
        out[length++] = digits[group >> 12 & 63];
        out[length++] = digits[group >> 6 & 63];
        out[length++] = digits[group & 63];
    }
    if (bytes) {
        uint32_t group = (uint32_t)in[0] << 16 | (bytes == 2 ? (uint32_t)in[1] << 8 : 0);
        out[length++] = digits[group >> 18];
        out[length++] = digits[group >> 12 & 63];
        out[length++] = bytes == 2 ? digits[group >> 6 & 63] : '=';
        out[length++] = '=';
    }
    return length;
}

static uint32_t base64_digit(char c)
{
    return c >= 'A' && c <= 'Z'   ? (uint32_t)(c - 'A')
           : c >= 'a' && c <= 'z' ? (uint32_t)(c - 'a' + 26)
           : c >= '0' && c <= '9' ? (uint32_t)(c - '0' + 52)
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : UINT32_MAX;
}

bool base64_decode(uint8_t *out, const char *text, size_t length, size_t *out_bytes)
{
    size_t bytes = 0, padding = length && text[length - 1] == '=';
    padding += padding && length > 1 && text[length - 2] == '=';
    if (length % 4)
        return false;
    for (size_t i = 0; i < length; i += 4) {
        uint32_t group = 0, faults = 0;
        for (size_t k = 0; k < 4; k++) {
            uint32_t digit = i + k < length - padding ? base64_digit(text[i + k]) : 0;
            faults |= digit >> 6;
            group = group << 6 | digit;
        }
        if (faults)
            return false;
        for (size_t k = 0; k < 3; k++)
            out[bytes++] = (uint8_t)(group >> (16 - 8 * k));
    }
    *out_bytes = bytes - padding;
    return true;
}

unsigned text_distance(const char *a, const char *b, unsigned limit)
{
    enum { WORD_MAX = 64 };
    size_t a_length = strlen(a), b_length = strlen(b);
    unsigned row[WORD_MAX + 1];
    if (a_length > WORD_MAX || b_length > WORD_MAX)
        return limit + 1;
    for (size_t j = 0; j <= b_length; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= a_length; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_length; j++) {
            unsigned best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[b_length] > limit ? limit + 1 : row[b_length];
}

struct text_nearest text_nearest_to(const char *wanted)
{
    return (struct text_nearest){.wanted = wanted, .name = "", .distance = UINT_MAX};
}

void text_nearest_offer(struct text_nearest *nearest, const char *name)
{
    unsigned distance = text_distance(nearest->wanted, name, UINT_MAX - 1);
    if (distance < nearest->distance || !nearest->name[0]) {
        nearest->distance = distance;
        nearest->name = name;
    }
}

void text_make_line(char *text)
{
    for (; *text; text++) {
        if ((uint8_t)*text < ' ' || *text == 0x7f)
            *text = ' ';
    }
}
