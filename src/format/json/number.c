/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers as text. Integers are read exactly, in whatever form they are written: 1.20e1 is 12.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "format/json/json.h"

/* digits * 10^exponent with the sign apart. False unless `text` is a JSON number whose value is an
 * integer of at most 64 bits without sign. */
static bool read_integer(struct span text, bool *out_is_negative, uint64_t *out_magnitude)
{
    const uint8_t *at = text.data, *end = at + text.length;
    bool is_negative = at < end && *at == '-', seen_digit = false, after_point = false;
    uint64_t magnitude = 0;
    int64_t exponent = 0, zeros = 0; /* zeros: held back, they matter only before another digit */
    for (at += is_negative; at < end; at++) {
        if (*at == '.' && !after_point) {
            after_point = true;
            continue;
        }
        if (*at < '0' || *at > '9')
            break;
        seen_digit = true;
        exponent -= after_point;
        if (*at == '0') {
            zeros++;
            continue;
        }
        for (; zeros >= 0; zeros--) {
            if (magnitude && __builtin_mul_overflow(magnitude, 10, &magnitude))
                return false;
        }
        zeros = 0;
        if (__builtin_add_overflow(magnitude, (uint64_t)(*at - '0'), &magnitude))
            return false;
    }
    exponent += zeros;
    if (at < end && (*at == 'e' || *at == 'E')) {
        bool minus = ++at < end && *at == '-';
        if (at < end && (*at == '-' || *at == '+'))
            at++;
        int64_t written = 0;
        for (; at < end && *at >= '0' && *at <= '9'; at++)
            written = written < 1000000000 ? written * 10 + (*at - '0') : written;
        exponent += minus ? -written : written;
    }
    if (!seen_digit || at != end)
        return false;
    for (; magnitude && exponent > 0; exponent--) {
        if (__builtin_mul_overflow(magnitude, 10, &magnitude))
            return false;
    }
    if (magnitude && exponent < 0)
        return false;
    *out_is_negative = is_negative;
    *out_magnitude = magnitude;
    return true;
}

bool json_number_to_i64(struct span text, int64_t *out_value)
{
    bool is_negative;
    uint64_t magnitude;
    if (!read_integer(text, &is_negative, &magnitude) ||
        magnitude > (uint64_t)INT64_MAX + is_negative)
        return false;
    *out_value = is_negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

bool json_number_to_u64(struct span text, uint64_t *out_value)
{
    bool is_negative;
    uint64_t magnitude;
    if (!read_integer(text, &is_negative, &magnitude) || (is_negative && magnitude))
        return false;
    *out_value = magnitude;
    return true;
}

bool json_number_to_double(struct span text, double *out_value)
{
    char small[64], *copy = small, *stop;
    if (text.length == 0)
        return false;
    if (text.length >= sizeof small && !(copy = mem_alloc(text.length + 1)))
        return false;
    memcpy(copy, text.data, text.length);
    copy[text.length] = '\0';
    double value = strtod(copy, &stop);
    bool is_whole = stop == copy + text.length && isfinite(value);
    if (copy != small)
        mem_free(copy);
    if (is_whole)
        *out_value = value;
    return is_whole;
}
