/* SPDX-License-Identifier: Apache-2.0
 *
 * Literals of a filter, as their column reads them. What the column cannot hold exactly is no
 * literal of it: to compare with something near it would be a guess.
 */
#include <math.h>
#include <stdlib.h>

#include "format/parquet/filter_internal.h"

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

/* ---- numbers ---- */

static bool read_integer(const struct parquet_leaf *leaf, const struct token *token,
                         int64_t *out_value)
{
    const char *text = (const char *)token->text.data;
    size_t length = token->text.length, sign = length && text[0] == '-';
    uint64_t magnitude;
    if (token->kind != TOKEN_WORD || !parse_u64(text + sign, length - sign, &magnitude))
        return false;
    if (value_class_of(leaf) == CLASS_UNSIGNED) {
        *out_value = (int64_t)magnitude;
        return !sign || magnitude == 0;
    }
    if (magnitude > (uint64_t)INT64_MAX + sign)
        return false;
    *out_value = (int64_t)(sign ? 0 - magnitude : magnitude);
    return true;
}

static bool read_real(const struct token *token, double *out_value)
{
    enum { NUMBER_BYTES_MAX = 400 };
    char copy[NUMBER_BYTES_MAX + 1], *end;
    size_t length = token->text.length, sign = length && token->text.data[0] == '-';
    struct token name = *token;
    name.text = span_of(token->text.data + sign, length - sign);
    if (token_is(&name, "nan") || token_is(&name, "inf")) {
        double value = token_is(&name, "nan") ? (double)NAN : (double)INFINITY;
        *out_value = sign ? -value : value;
        return true;
    }
    if (token->kind != TOKEN_WORD || length > NUMBER_BYTES_MAX || sign == length ||
        !(is_digit(token->text.data[sign]) || token->text.data[sign] == '.') ||
        memchr(token->text.data, 'x', length) || memchr(token->text.data, 'X', length))
        return false;
    memcpy(copy, token->text.data, length);
    copy[length] = '\0';
    *out_value = strtod(copy, &end);
    return *end == '\0' && isfinite(*out_value);
}

/* ---- decimals ---- */

enum { DECIMAL_BYTES = 40, DECIMAL_DIGITS_MAX = 90 };

/* Multiplies a big-endian number by ten and adds a digit. */
static void push_digit(uint8_t number[DECIMAL_BYTES], unsigned digit)
{
    for (size_t i = DECIMAL_BYTES; i-- > 0;) {
        digit += number[i] * 10u;
        number[i] = (uint8_t)digit;
        digit >>= 8;
    }
}

static void negate(uint8_t number[DECIMAL_BYTES])
{
    unsigned carry = 1;
    for (size_t i = DECIMAL_BYTES; i-- > 0;) {
        carry += (uint8_t)~number[i];
        number[i] = (uint8_t)carry;
        carry >>= 8;
    }
}

/* The unscaled number. False: no decimal, or one with more digits than the column's. */
static bool read_unscaled(struct span text, int32_t scale, uint8_t number[DECIMAL_BYTES])
{
    size_t at = text.length && text.data[0] == '-', digits = 0;
    bool is_negative = at, has_digits = false;
    int32_t left = -1; /* digits behind the point that are still due; -1: before it */
    scale = scale < 0 ? 0 : scale;
    memset(number, 0, DECIMAL_BYTES);
    for (; at < text.length; at++) {
        if (text.data[at] == '.' && left < 0) {
            left = scale;
            continue;
        }
        if (!is_digit(text.data[at]) || (left == 0 && text.data[at] != '0'))
            return false;
        has_digits = true;
        if (left == 0)
            continue;
        left -= left > 0;
        if (++digits > DECIMAL_DIGITS_MAX)
            return false;
        push_digit(number, text.data[at] - (unsigned)'0');
    }
    left = left < 0 ? scale : left;
    if (!has_digits || (size_t)left > DECIMAL_DIGITS_MAX - digits)
        return false;
    for (; left > 0; left--)
        push_digit(number, 0);
    if (is_negative)
        negate(number);
    return true;
}

static bool read_decimal(const struct parquet_leaf *leaf, const struct token *token,
                         struct arena *arena, struct parquet_value *out_value)
{
    enum { INTEGER_AT = DECIMAL_BYTES - 8 };
    uint8_t number[DECIMAL_BYTES];
    if (token->kind != TOKEN_WORD || !read_unscaled(token->text, leaf->scale, number))
        return false;
    if (value_class_of(leaf) == CLASS_DECIMAL) {
        uint8_t *copy = arena_alloc(arena, sizeof number);
        if (copy)
            memcpy(copy, number, sizeof number);
        out_value->bytes = span_of(copy, sizeof number);
        return copy != NULL;
    }
    uint8_t fill = number[INTEGER_AT] & 0x80 ? 0xff : 0;
    for (size_t i = 0; i < INTEGER_AT; i++)
        if (number[i] != fill)
            return false;
    out_value->integer = (int64_t)__builtin_bswap64(get_le64(number + INTEGER_AT));
    return true;
}

/* ---- dates and times ---- */

/* Up to `count_max` digits, at least `count_min`. */
static bool take_digits(struct cursor *in, size_t count_min, size_t count_max, int64_t *out_value)
{
    size_t count = 0;
    int64_t value = 0;
    while (count < count_max && cursor_left(in) && is_digit(*in->at)) {
        value = value * 10 + (*in->at++ - '0');
        count++;
    }
    *out_value = value;
    return count >= count_min;
}

static bool take_byte(struct cursor *in, uint8_t byte)
{
    if (!cursor_left(in) || *in->at != byte)
        return false;
    in->at++;
    return true;
}

static bool take_date(struct cursor *in, int64_t *out_days)
{
    enum { YEAR_DIGITS_MAX = 6 };
    bool is_negative = take_byte(in, '-');
    int64_t year, month, day;
    if (!take_digits(in, 4, YEAR_DIGITS_MAX, &year) || !take_byte(in, '-') ||
        !take_digits(in, 2, 2, &month) || !take_byte(in, '-') || !take_digits(in, 2, 2, &day))
        return false;
    struct civil_date date = {
        .year = is_negative ? -year : year, .month = (int)month, .day = (int)day};
    if (!civil_is_valid(date))
        return false;
    *out_days = civil_to_days(date);
    return true;
}

/* Seconds, and the fraction behind them in `units` a second. */
static bool take_time(struct cursor *in, int64_t units, int64_t *out_seconds, int64_t *out_fraction)
{
    int64_t hour, minute, second, fraction = 0;
    if (!take_digits(in, 2, 2, &hour) || !take_byte(in, ':') || !take_digits(in, 2, 2, &minute) ||
        !take_byte(in, ':') || !take_digits(in, 2, 2, &second) || hour > 23 || minute > 59 ||
        second > 59)
        return false;
    if (take_byte(in, '.')) {
        if (!cursor_left(in) || !is_digit(*in->at))
            return false;
        for (int64_t digit, unit = units; take_digits(in, 1, 1, &digit);) {
            unit /= 10;
            if (unit == 0 && digit)
                return false;
            fraction += digit * unit;
        }
    }
    *out_seconds = (hour * 60 + minute) * 60 + second;
    *out_fraction = fraction;
    return true;
}

/* Nothing, "Z", "+hh:mm". */
static bool take_zone(struct cursor *in, bool *out_has_zone, int64_t *out_seconds)
{
    int64_t hour, minute;
    *out_seconds = 0;
    *out_has_zone = cursor_left(in) != 0;
    if (!*out_has_zone || take_byte(in, 'Z'))
        return true;
    bool is_negative = *in->at == '-';
    if ((!is_negative && *in->at != '+') || !cursor_take(in, 1) || !take_digits(in, 2, 2, &hour) ||
        !take_byte(in, ':') || !take_digits(in, 2, 2, &minute) || hour > 23 || minute > 59)
        return false;
    *out_seconds = (hour * 60 + minute) * 60;
    *out_seconds = is_negative ? -*out_seconds : *out_seconds;
    return true;
}

static int64_t units_a_second(const struct parquet_leaf *leaf)
{
    if (leaf->physical == PARQUET_INT96)
        return 1000000;
    return leaf->unit == PARQUET_MILLIS   ? 1000
           : leaf->unit == PARQUET_MICROS ? 1000000
                                          : 1000000000;
}

static bool read_timestamp(const struct parquet_leaf *leaf, struct span text, int64_t *out_value)
{
    enum { SECONDS_A_DAY = 86400 };
    struct cursor in = cursor_of(text.data, text.length);
    int64_t units = units_a_second(leaf), days, seconds = 0, fraction = 0, zone = 0, value;
    bool has_zone = false;
    if (!take_date(&in, &days))
        return false;
    if (cursor_left(&in) &&
        ((!take_byte(&in, 'T') && !take_byte(&in, ' ')) ||
         !take_time(&in, units, &seconds, &fraction) || !take_zone(&in, &has_zone, &zone)))
        return false;
    if (cursor_left(&in) || (has_zone && !leaf->is_utc))
        return false;
    seconds += days * SECONDS_A_DAY - zone;
    return !__builtin_mul_overflow(seconds, units, &value) &&
           !__builtin_add_overflow(value, fraction, out_value);
}

static bool read_time(const struct parquet_leaf *leaf, struct span text, int64_t *out_value)
{
    struct cursor in = cursor_of(text.data, text.length);
    int64_t units = units_a_second(leaf), seconds, fraction;
    if (!take_time(&in, units, &seconds, &fraction) || cursor_left(&in))
        return false;
    *out_value = seconds * units + fraction;
    return true;
}

static bool read_date(struct span text, int64_t *out_value)
{
    struct cursor in = cursor_of(text.data, text.length);
    return take_date(&in, out_value) && !cursor_left(&in);
}

/* ---- by the column ---- */

static bool read_bytes(const struct parquet_leaf *leaf, const struct token *token,
                       struct arena *arena, struct span *out_bytes)
{
    struct uuid uuid;
    if (leaf->kind == PARQUET_KIND_UUID && token->kind == TOKEN_TEXT) {
        if (!uuid_from_text((const char *)token->text.data, token->text.length, &uuid))
            return false;
        uint8_t *copy = arena_alloc(arena, sizeof uuid.bytes);
        if (copy)
            memcpy(copy, uuid.bytes, sizeof uuid.bytes);
        *out_bytes = span_of(copy, sizeof uuid.bytes);
        return copy != NULL;
    }
    *out_bytes = token->text;
    return token->kind == TOKEN_BYTES ||
           (token->kind == TOKEN_TEXT && leaf->kind == PARQUET_KIND_STRING);
}

/* What a literal of the leaf looks like. */
static const char *wanted_of(const struct parquet_leaf *leaf)
{
    enum value_class how = value_class_of(leaf);
    if (leaf->physical == PARQUET_INT96 || leaf->kind == PARQUET_KIND_TIMESTAMP)
        return leaf->is_utc ? "a time such as '2026-01-31T12:30:00Z', not finer than the column's"
                            : "a time such as '2026-01-31T12:30:00', without a zone, not finer "
                              "than the column's";
    if (leaf->kind == PARQUET_KIND_DATE)
        return "a date such as '2026-01-31'";
    if (leaf->kind == PARQUET_KIND_TIME)
        return "a time of day such as '12:30:00', not finer than the column's";
    if (leaf->kind == PARQUET_KIND_DECIMAL)
        return "a decimal with no more digits behind the point than the column's";
    if (leaf->physical == PARQUET_BOOLEAN)
        return "true or false";
    if (leaf->kind == PARQUET_KIND_STRING)
        return "a text such as 'abc'";
    if (leaf->kind == PARQUET_KIND_UUID)
        return "a UUID such as '01234567-89ab-cdef-0123-456789abcdef'";
    return how == CLASS_UNSIGNED ? "an integer from 0 on"
           : how == CLASS_SIGNED ? "an integer of 64 bits"
           : how == CLASS_REAL   ? "a number, nan or inf"
                                 : "bytes such as x'00ff'";
}

bool literal_read(const struct parquet_leaf *leaf, const struct token *token, struct arena *arena,
                  struct parquet_value *out_value, const char **out_why)
{
    struct parquet_value value = {.integer = 0};
    bool is_text = token->kind == TOKEN_TEXT, is_read;
    if (leaf->physical == PARQUET_INT96 || leaf->kind == PARQUET_KIND_TIMESTAMP) {
        is_read = is_text && read_timestamp(leaf, token->text, &value.integer);
    } else if (leaf->kind == PARQUET_KIND_DATE) {
        is_read = is_text && read_date(token->text, &value.integer);
    } else if (leaf->kind == PARQUET_KIND_TIME) {
        is_read = is_text && read_time(leaf, token->text, &value.integer);
    } else if (leaf->kind == PARQUET_KIND_DECIMAL) {
        is_read = read_decimal(leaf, token, arena, &value);
    } else if (leaf->physical == PARQUET_BOOLEAN) {
        value.integer = token_is(token, "true");
        is_read = value.integer || token_is(token, "false");
    } else if (value_class_of(leaf) == CLASS_REAL) {
        is_read = read_real(token, &value.real);
    } else if (value_class_of(leaf) == CLASS_BYTES) {
        is_read = read_bytes(leaf, token, arena, &value.bytes);
    } else {
        is_read = read_integer(leaf, token, &value.integer);
    }
    if (is_read)
        *out_value = value;
    else
        *out_why = wanted_of(leaf);
    return is_read;
}
