/* SPDX-License-Identifier: Apache-2.0
 *
 * Doubles as the shortest decimal that reads back to them, after Raffaello Giulietti, "The
 * Schubfach way to render doubles" (2020): of the decimals of the coarsest spacing that fall into
 * the rounding interval, the one next to the value. Three 64 x 128 bit products decide.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "base/base.h"
#include "base/double_internal.h"

__extension__ typedef unsigned __int128 wide;

/* floor(log2(10^e)), floor(log10(2^e)), floor(log10(3/4 * 2^e)) for |e| < 1,600 */
static int log2_of_pow10(int e)
{
    return (e * 1741647) >> 19;
}

static int log10_of_pow2(int e)
{
    return (e * 1262611) >> 22;
}

static int log10_of_three_quarters_pow2(int e)
{
    return (e * 1262611 - 524031) >> 22;
}

/* The top 64 bits of a 192-bit product; its last bit says whether anything was cut off. */
static uint64_t multiply_to_odd(const uint64_t pow10[2], uint64_t value)
{
    wide low = (wide)pow10[1] * value;
    wide high = (wide)pow10[0] * value + (uint64_t)(low >> 64);
    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

struct decimal {
    uint64_t digits;
    int exponent;
};

static struct decimal shortest(uint64_t fraction, int biased_exponent)
{
    const int bias = 1023 + 52;
    uint64_t c = fraction;
    int q = 1 - bias;
    if (biased_exponent) {
        c |= (uint64_t)1 << 52;
        q = biased_exponent - bias;
        if (q <= 0 && q > -53 && (c & (((uint64_t)1 << -q) - 1)) == 0)
            return (struct decimal){c >> -q, 0}; /* an integer */
    }
    bool is_even = c % 2 == 0;
    bool lower_is_closer = fraction == 0 && biased_exponent > 1;
    int k = lower_is_closer ? log10_of_three_quarters_pow2(q) : log10_of_pow2(q);
    int h = q + log2_of_pow10(-k) + 1;
    const uint64_t *pow10 = double_pow10[-k - DOUBLE_POW10_MIN];
    uint64_t lower = multiply_to_odd(pow10, (4 * c - 2 + lower_is_closer) << h) + !is_even;
    uint64_t value = multiply_to_odd(pow10, (4 * c) << h);
    uint64_t upper = multiply_to_odd(pow10, (4 * c + 2) << h) - !is_even;
    uint64_t s = value / 4;
    if (s >= 10) { /* one digit fewer? */
        uint64_t tens = s / 10;
        bool is_low_in = lower <= 40 * tens, is_high_in = 40 * tens + 40 <= upper;
        if (is_low_in != is_high_in)
            return (struct decimal){tens + is_high_in, k + 1};
    }
    bool is_low_in = lower <= 4 * s, is_high_in = 4 * s + 4 <= upper;
    if (is_low_in != is_high_in)
        return (struct decimal){s + is_high_in, k};
    uint64_t middle = 4 * s + 2;
    bool is_up = value > middle || (value == middle && s % 2 != 0);
    return (struct decimal){s + is_up, k};
}

/* "-d.ddde+NN", or positional where the exponent is small; the form of printf's %g. */
static size_t put_decimal(char *out, struct decimal decimal)
{
    char digits[I64_TEXT_MAX];
    size_t length = 0;
    while (decimal.digits % 10 == 0) {
        decimal.digits /= 10;
        decimal.exponent++;
    }
    int count = (int)i64_to_text(digits, (int64_t)decimal.digits);
    int point = count + decimal.exponent; /* digits before the decimal point */
    if (point > 17 || point < -3) {
        int power = point - 1;
        out[length++] = digits[0];
        if (count > 1)
            out[length++] = '.';
        memcpy(out + length, digits + 1, (size_t)count - 1);
        length += (size_t)count - 1;
        out[length++] = 'e';
        out[length++] = power < 0 ? '-' : '+';
        power = power < 0 ? -power : power;
        if (power >= 100)
            out[length++] = (char)('0' + power / 100);
        out[length++] = (char)('0' + power / 10 % 10);
        out[length++] = (char)('0' + power % 10);
        return length;
    }
    if (point <= 0) {
        memcpy(out, "0.0000", 6);
        length = 2 + (size_t)-point;
        memcpy(out + length, digits, (size_t)count);
        return length + (size_t)count;
    }
    if (point >= count) {
        copy_short((uint8_t *)out, digits, (size_t)count);
        memset(out + count, '0', (size_t)(point - count));
        return (size_t)point;
    }
    copy_short((uint8_t *)out, digits, (size_t)point);
    out[point] = '.';
    copy_short((uint8_t *)out + point + 1, digits + point, (size_t)(count - point));
    return (size_t)count + 1;
}

size_t double_to_text(char out[DOUBLE_TEXT_MAX], double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t fraction = bits & (((uint64_t)1 << 52) - 1);
    int exponent = (int)(bits >> 52 & 0x7ff);
    size_t length = 0;
    if (exponent == 0x7ff && fraction) {
        memcpy(out, "NaN", 4);
        return 3;
    }
    if (bits >> 63)
        out[length++] = '-';
    if (exponent == 0x7ff) {
        memcpy(out + length, "Infinity", 9);
        return length + 8;
    }
    if (exponent == 0 && fraction == 0)
        out[length++] = '0';
    else
        length += put_decimal(out + length, shortest(fraction, exponent));
    out[length] = '\0';
    return length;
}

enum {
    DIGITS_MAX = 767, /* no double has more */
    EXPONENT_BYTES = 8,
};

/* Without the zeros at both ends; more than DIGITS_MAX: only that they are more. */
static size_t copy_digits(char out[DIGITS_MAX], struct span number)
{
    size_t count = 0, zeros = 0;
    for (size_t i = 0; i < number.length && (number.data[i] | 0x20) != 'e'; i++) {
        uint8_t byte = number.data[i];
        if (byte < '0' || byte > '9')
            continue;
        if (byte == '0') {
            zeros += count > 0;
            continue;
        }
        if (count + zeros + 1 > DIGITS_MAX)
            return DIGITS_MAX + 1;
        memset(out + count, '0', zeros);
        count += zeros;
        out[count++] = (char)byte;
        zeros = 0;
    }
    return count;
}

bool double_keeps_digits(struct span number, double value)
{
    char digits[DIGITS_MAX], written[DIGITS_MAX + 2 + EXPONENT_BYTES];
    size_t count = copy_digits(digits, number);
    if (count > DIGITS_MAX)
        return false;
    if (count == 0 || fpclassify(value) == FP_ZERO)
        return count == 0 && fpclassify(value) == FP_ZERO;
    if (count <= DBL_DIG && fabs(value) >= DBL_MIN)
        return true;
    snprintf(written, sizeof written, "%.*e", (int)count - 1, fabs(value));
    return written[0] == digits[0] &&
           (count == 1 || memcmp(written + 2, digits + 1, count - 1) == 0);
}
