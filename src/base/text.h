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

bool utf8_is_valid(const void *text, size_t bytes);

/* Length of the valid sequence at `text` (1-4), or 0 if the bytes there are not one. */
size_t utf8_sequence(const uint8_t *text, size_t bytes);

/* 2 * bytes lower-case digits, no terminator. */
void hex_encode(char *out, const void *data, size_t bytes);
/* False unless `text` is exactly 2 * bytes hex digits of either case. */
bool hex_decode(void *out, size_t bytes, const char *text, size_t text_length);

/* Decimal without sign, spaces or overflow. */
bool parse_u64(const char *text, size_t length, uint64_t *out_value);
bool parse_i64(const char *text, size_t length, int64_t *out_value);
/* "64MiB", "1.5s", "250ms": a decimal number with an optional unit; bytes and milliseconds. */
bool parse_bytes(const char *text, size_t length, uint64_t *out_bytes);
bool parse_duration_ms(const char *text, size_t length, uint64_t *out_ms);

/* Shortest decimal that strtod reads back to the same double; "NaN", "Infinity", "-Infinity", and
 * "-0" for the negative zero. At most 32 bytes with NUL; returns the length. */
enum { DOUBLE_TEXT_MAX = 32 };
size_t double_to_text(char out[DOUBLE_TEXT_MAX], double value);

/* Decimal digits of a signed 64-bit number; no terminator; returns the length (at most 20). */
enum { I64_TEXT_MAX = 20 };
size_t i64_to_text(char out[I64_TEXT_MAX], int64_t value);

/* Base64 of RFC 4648 section 4, padded. Returns the length; out needs 4 * ((bytes + 2) / 3). */
size_t base64_encode(char *out, const void *data, size_t bytes);

/* Levenshtein distance, capped at `limit` + 1. Words longer than 64 bytes answer limit + 1. */
unsigned text_distance(const char *a, const char *b, unsigned limit);

#endif
