/* SPDX-License-Identifier: Apache-2.0
 *
 * Values as text, both ways.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "format/csv/csv_internal.h"

enum {
    NUMBER_BYTES_MAX = 127, /* longer numbers are text */
    DATE_BYTES = 10,
    TIME_BYTES = 8,
    FRACTION_DIGITS = 6,
    SECONDS_A_DAY = 86400,
    MICROS_A_SECOND = 1000000,
};

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_text(struct span text, const char *expected)
{
    return span_equal(text, span_of_text(expected));
}

/* ---- bool, numbers ---- */

bool csv_read_bool(struct span text, bool *out_value)
{
    bool is_true = is_text(text, "true");
    if (!is_true && !is_text(text, "false"))
        return false;
    *out_value = is_true;
    return true;
}

static size_t count_digits(struct span text, size_t from)
{
    size_t at = from;
    while (at < text.length && is_digit(text.data[at]))
        at++;
    return at - from;
}

/* No zero before another digit: "007" is a name; "-0" is a number, but no integer. */
static bool is_integer(struct span text)
{
    size_t sign = text.length && text.data[0] == '-';
    size_t digits = count_digits(text, sign);
    return digits && sign + digits == text.length &&
           (text.data[sign] != '0' || (digits == 1 && !sign));
}

bool csv_read_i64(struct span text, int64_t *out_value)
{
    return is_integer(text) && parse_i64((const char *)text.data, text.length, out_value);
}

bool csv_read_u64(struct span text, uint64_t *out_value)
{
    return is_integer(text) && parse_u64((const char *)text.data, text.length, out_value);
}

/* -?(digits . digits? | . digits | digits)(e[+-]?digits)? with no zero before another digit. */
static bool is_number(struct span text)
{
    size_t at = text.length && text.data[0] == '-';
    size_t whole = count_digits(text, at), fraction = 0;
    if (whole > 1 && text.data[at] == '0')
        return false;
    at += whole;
    if (at < text.length && text.data[at] == '.') {
        fraction = count_digits(text, ++at);
        at += fraction;
    }
    if (whole + fraction == 0)
        return false;
    if (at < text.length && (text.data[at] | 0x20) == 'e') {
        at++;
        at += at < text.length && (text.data[at] == '+' || text.data[at] == '-');
        size_t exponent = count_digits(text, at);
        if (exponent == 0)
            return false;
        at += exponent;
    }
    return at == text.length;
}

bool csv_read_double(struct span text, double *out_value)
{
    char copy[NUMBER_BYTES_MAX + 1];
    if (text.length == 0 || text.length > NUMBER_BYTES_MAX)
        return false;
    if (is_text(text, "NaN") || is_text(text, "Infinity") || is_text(text, "-Infinity")) {
        *out_value = text.data[0] == 'N'   ? (double)NAN
                     : text.data[0] == '-' ? -(double)INFINITY
                                           : (double)INFINITY;
        return true;
    }
    if (!is_number(text))
        return false;
    memcpy(copy, text.data, text.length);
    copy[text.length] = '\0';
    double value = strtod(copy, NULL);
    if (!isfinite(value) || !double_keeps_digits(text, value))
        return false;
    *out_value = value;
    return true;
}

/* ---- dates and times ---- */

/* Exactly `count` digits; -1: something else. */
static int read_digits(const uint8_t *at, int count)
{
    int value = 0;
    for (int i = 0; i < count; i++) {
        if (!is_digit(at[i]))
            return -1;
        value = value * 10 + (at[i] - '0');
    }
    return value;
}

bool csv_read_date(struct span text, int32_t *out_days)
{
    if (text.length != DATE_BYTES || text.data[4] != '-' || text.data[7] != '-')
        return false;
    struct civil_date date = {.year = read_digits(text.data, 4),
                              .month = read_digits(text.data + 5, 2),
                              .day = read_digits(text.data + 8, 2)};
    if (date.year < 0 || !civil_is_valid(date))
        return false;
    *out_days = (int32_t)civil_to_days(date);
    return true;
}

static bool read_time(const uint8_t *at, int64_t *out_seconds)
{
    int hour = read_digits(at, 2), minute = read_digits(at + 3, 2);
    int second = read_digits(at + 6, 2);
    if (at[2] != ':' || at[5] != ':' || hour < 0 || hour > 23 || minute < 0 || minute > 59 ||
        second < 0 || second > 59)
        return false;
    *out_seconds = hour * 3600 + minute * 60 + second;
    return true;
}

/* ".25" and so on, as long as nothing of it would be lost; returns the bytes it takes. */
static bool read_fraction(struct span text, int64_t *out_micros, size_t *out_bytes)
{
    int64_t micros = 0;
    *out_bytes = 0;
    if (text.length == 0 || text.data[0] != '.') {
        *out_micros = 0;
        return true;
    }
    size_t digits = count_digits(text, 1);
    for (size_t i = 0; i < digits || i < FRACTION_DIGITS; i++) {
        int digit = i < digits ? text.data[1 + i] - '0' : 0;
        if (i < FRACTION_DIGITS)
            micros = micros * 10 + digit;
        else if (digit)
            return false;
    }
    *out_micros = micros;
    *out_bytes = 1 + digits;
    return digits > 0;
}

/* Nothing, "Z", or "+hh:mm". */
static bool read_zone(struct span text, int64_t *out_seconds, bool *out_is_instant)
{
    *out_seconds = 0;
    *out_is_instant = text.length != 0;
    if (text.length == 0 || (text.length == 1 && text.data[0] == 'Z'))
        return true;
    if (text.length != 6 || (text.data[0] != '+' && text.data[0] != '-') || text.data[3] != ':')
        return false;
    int hour = read_digits(text.data + 1, 2), minute = read_digits(text.data + 4, 2);
    int64_t seconds = hour * 3600 + minute * 60;
    *out_seconds = text.data[0] == '-' ? -seconds : seconds;
    return hour >= 0 && hour <= 23 && minute >= 0 && minute <= 59;
}

bool csv_read_timestamp(struct span text, int64_t *out_micros, bool *out_is_instant)
{
    enum { WHOLE_BYTES = DATE_BYTES + 1 + TIME_BYTES };
    int32_t days;
    int64_t seconds, micros, zone;
    size_t fraction_bytes;
    bool is_instant;
    if (text.length < WHOLE_BYTES || (text.data[DATE_BYTES] != 'T' && text.data[DATE_BYTES] != ' '))
        return false;
    struct span rest = span_of(text.data + WHOLE_BYTES, text.length - WHOLE_BYTES);
    if (!csv_read_date(span_of(text.data, DATE_BYTES), &days) ||
        !read_time(text.data + DATE_BYTES + 1, &seconds) ||
        !read_fraction(rest, &micros, &fraction_bytes))
        return false;
    rest = span_of(rest.data + fraction_bytes, rest.length - fraction_bytes);
    if (!read_zone(rest, &zone, &is_instant))
        return false;
    *out_micros =
        ((int64_t)days * SECONDS_A_DAY + seconds - zone) * (int64_t)MICROS_A_SECOND + micros;
    *out_is_instant = is_instant;
    return true;
}

/* ---- what it may be ---- */

unsigned csv_may_be(struct span text, unsigned may)
{
    bool truth, is_instant;
    int64_t number;
    uint64_t natural;
    double real;
    int32_t days;
    unsigned is = 0;
    if ((may & MAY_BOOL) && csv_read_bool(text, &truth))
        is |= MAY_BOOL;
    if ((may & MAY_INT) && csv_read_i64(text, &number))
        is |= MAY_INT;
    if ((may & MAY_UINT) && csv_read_u64(text, &natural))
        is |= MAY_UINT;
    if ((may & MAY_DOUBLE) && csv_read_double(text, &real))
        is |= MAY_DOUBLE;
    if ((may & MAY_DATE) && csv_read_date(text, &days))
        is |= MAY_DATE;
    if ((may & (MAY_LOCAL | MAY_INSTANT)) && csv_read_timestamp(text, &number, &is_instant))
        is |= is_instant ? MAY_INSTANT : MAY_LOCAL;
    return is & may;
}

/* ---- writing ---- */

/* The last `digits` digits of a value that is not negative. */
static void put_digits(struct buf *out, int64_t value, int digits)
{
    uint8_t *place = buf_extend(out, (size_t)digits);
    for (int i = digits; place && i-- > 0; value /= 10)
        place[i] = (uint8_t)('0' + value % 10);
}

void csv_put_date(struct buf *out, int64_t days)
{
    struct civil_date date = civil_from_days(days);
    if (date.year >= 0 && date.year <= 9999)
        put_digits(out, date.year, 4);
    else
        buf_format(out, "%04lld", (long long)date.year);
    buf_put_byte(out, '-');
    put_digits(out, date.month, 2);
    buf_put_byte(out, '-');
    put_digits(out, date.day, 2);
}

void csv_put_timestamp(struct buf *out, int64_t micros, bool is_instant)
{
    const int64_t day_micros = (int64_t)SECONDS_A_DAY * MICROS_A_SECOND;
    int64_t days = micros / day_micros - (micros % day_micros < 0);
    int64_t of_day = micros % day_micros + (micros % day_micros < 0 ? day_micros : 0);
    int64_t seconds = of_day / MICROS_A_SECOND;
    csv_put_date(out, days);
    buf_put_byte(out, 'T');
    put_digits(out, seconds / 3600, 2);
    buf_put_byte(out, ':');
    put_digits(out, seconds / 60 % 60, 2);
    buf_put_byte(out, ':');
    put_digits(out, seconds % 60, 2);
    buf_put_byte(out, '.');
    put_digits(out, of_day % MICROS_A_SECOND, FRACTION_DIGITS);
    if (is_instant)
        buf_put_byte(out, 'Z');
}

void csv_put_float(struct buf *out, float value)
{
    char text[DOUBLE_TEXT_MAX];
    int digits = 6;
    if (!isfinite(value) || value == 0) {
        csv_put_double(out, (double)value);
        return;
    }
    do {
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
    } while (digits++ < 9 && strtof(text, NULL) != value);
    buf_put_text(out, text);
}

void csv_put_double(struct buf *out, double value)
{
    char text[DOUBLE_TEXT_MAX];
    buf_put(out, text, double_to_text(text, value));
}

void csv_put_base64(struct buf *out, const void *data, size_t bytes)
{
    uint8_t *place = buf_extend(out, 4 * ((bytes + 2) / 3));
    if (place)
        base64_encode((char *)place, data, bytes);
}
