/* SPDX-License-Identifier: Apache-2.0
 *
 * Text: UTF-8 checks (RFC 3629: no surrogates, no overlong forms, at most U+10FFFF), hex, numbers,
 * edit distance for "did you mean". Pure; any thread.
 */
#ifndef SLUICE_BASE_TEXT_H
#define SLUICE_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

bool utf8_is_valid(const void *text, size_t bytes);
/* Makes one line of what others said, in place: control characters become spaces. */
void text_make_line(char *text);

/* The same, quick for the short ASCII that most text is. */
static inline bool text_is_valid(const void *text, size_t bytes)
{
    const uint8_t *at = (const uint8_t *)text;
    uint64_t bits = 0x80;
    if (bytes >= 8 && bytes <= 32) {
        bits = get_le64(at) | get_le64(at + bytes - 8);
        if (bytes > 16)
            bits |= get_le64(at + 8) | get_le64(at + bytes - 16);
    } else if (bytes >= 4 && bytes < 8) {
        bits = (uint64_t)get_le32(at) | get_le32(at + bytes - 4);
    } else if (bytes < 4) {
        bits = bytes ? (uint64_t)at[0] | at[bytes / 2] | at[bytes - 1] : 0;
    }
    return !(bits & 0x8080808080808080u) || utf8_is_valid(text, bytes);
}

/* Length of the valid sequence at `text` (1-4), or 0 if the bytes there are not one. */
size_t utf8_sequence(const uint8_t *text, size_t bytes);

/* 2 * bytes lower-case digits, no terminator. */
void hex_encode(char *out, const void *data, size_t bytes);
/* False unless `text` is exactly 2 * bytes hex digits of either case. */
bool hex_decode(void *out, size_t bytes, const char *text, size_t text_length);
/* A number of exactly 16 hex digits. */
bool hex_u64(const char *text, size_t length, uint64_t *out_value);

/* Decimal without sign, spaces or overflow. */
bool parse_u64(const char *text, size_t length, uint64_t *out_value);
bool parse_i64(const char *text, size_t length, int64_t *out_value);
/* "64MiB", "1.5GB", "1000": a decimal number with an optional unit. */
bool parse_bytes(const char *text, size_t length, uint64_t *out_bytes);
/* "1.5s", "250ms": a decimal number with its unit, without which only "0" is a duration. */
bool parse_duration_ms(const char *text, size_t length, uint64_t *out_ms);

/* Shortest decimal that strtod reads back to the same double; "NaN", "Infinity", "-Infinity", and
 * "-0" for the negative zero. At most 32 bytes with NUL; returns the length. */
enum { DOUBLE_TEXT_MAX = 32 };
size_t double_to_text(char out[DOUBLE_TEXT_MAX], double value);

/* Whether `value`, written with as many digits as `number` has, comes to the same digits. The
 * number is decimal, with or without sign, point and exponent; `value` is the double next to it. */
bool double_keeps_digits(struct span number, double value);

/* Decimal digits of a 64-bit number; no terminator; returns the length (at most 20). All of `out`
 * may be written. */
enum { U64_TEXT_MAX = 20, I64_TEXT_MAX = 1 + U64_TEXT_MAX };
size_t u64_to_text(char out[U64_TEXT_MAX], uint64_t value);
size_t i64_to_text(char out[I64_TEXT_MAX], int64_t value);

/* Base64 of RFC 4648 section 4, padded. Returns the length; out needs 4 * ((bytes + 2) / 3). */
size_t base64_encode(char *out, const void *data, size_t bytes);
/* The reverse; `out` needs 3 * (length / 4), and holds anything where it is none. */
bool base64_decode(uint8_t *out, const char *text, size_t length, size_t *out_bytes) MUST_CHECK;

/* Levenshtein distance, capped at `limit` + 1. Words longer than 64 bytes answer limit + 1. */
unsigned text_distance(const char *a, const char *b, unsigned limit);

/* Of the names that were offered, the nearest to a word that is none of them. Borrows both. */
struct text_nearest {
    const char *wanted, *name; /* "" before the first offer */
    unsigned distance;
};
struct text_nearest text_nearest_to(const char *wanted);
void text_nearest_offer(struct text_nearest *nearest, const char *name);

#endif
