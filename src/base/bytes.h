/* SPDX-License-Identifier: Apache-2.0
 *
 * Little-endian loads and stores, and a read cursor over bytes from outside: a read past the end
 * returns zero and sets `failed`, which the caller checks once behind a run of reads.
 */
#ifndef SLUICE_BASE_BYTES_H
#define SLUICE_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t get_le16(const void *from)
{
    uint16_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static inline uint32_t get_le32(const void *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static inline uint64_t get_le64(const void *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

/* Little-endian numbers of 1, 2, 4 or 8 bytes. */
static inline int64_t get_le_signed(const void *from, size_t bytes)
{
    return bytes == 1   ? *(const int8_t *)from
           : bytes == 2 ? (int16_t)get_le16(from)
           : bytes == 4 ? (int32_t)get_le32(from)
                        : (int64_t)get_le64(from);
}

static inline uint64_t get_le_unsigned(const void *from, size_t bytes)
{
    return bytes == 1   ? *(const uint8_t *)from
           : bytes == 2 ? get_le16(from)
           : bytes == 4 ? get_le32(from)
                        : get_le64(from);
}

static inline void put_le16(void *to, uint16_t value)
{
    memcpy(to, &value, sizeof value);
}

static inline void put_le32(void *to, uint32_t value)
{
    memcpy(to, &value, sizeof value);
}

static inline void put_le64(void *to, uint64_t value)
{
    memcpy(to, &value, sizeof value);
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "little-endian hosts only");

/* Bytes that somebody else owns. */
struct span {
    const uint8_t *data;
    size_t length;
};

static inline struct span span_of(const void *data, size_t length)
{
    return (struct span){.data = data, .length = length};
}

static inline struct span span_of_text(const char *text)
{
    return (struct span){.data = (const uint8_t *)text, .length = strlen(text)};
}

/* memcmp for what is mostly short and mostly equal. */
static inline bool equal_short(const uint8_t *a, const uint8_t *b, size_t bytes)
{
    if (bytes > 32)
        return memcmp(a, b, bytes) == 0;
    if (bytes >= 16)
        return ((get_le64(a) ^ get_le64(b)) | (get_le64(a + 8) ^ get_le64(b + 8)) |
                (get_le64(a + bytes - 16) ^ get_le64(b + bytes - 16)) |
                (get_le64(a + bytes - 8) ^ get_le64(b + bytes - 8))) == 0;
    if (bytes >= 8)
        return ((get_le64(a) ^ get_le64(b)) |
                (get_le64(a + bytes - 8) ^ get_le64(b + bytes - 8))) == 0;
    if (bytes >= 4)
        return ((get_le32(a) ^ get_le32(b)) |
                (get_le32(a + bytes - 4) ^ get_le32(b + bytes - 4))) == 0;
    return bytes == 0 ||
           (a[0] == b[0] && a[bytes / 2] == b[bytes / 2] && a[bytes - 1] == b[bytes - 1]);
}

static inline bool span_equal(struct span a, struct span b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

struct cursor {
    const uint8_t *at, *end;
    bool failed;
};

static inline struct cursor cursor_of(const void *data, size_t length)
{
    const uint8_t *start = data;
    return (struct cursor){.at = start, .end = start ? start + length : start};
}

static inline size_t cursor_left(const struct cursor *cursor)
{
    return (size_t)(cursor->end - cursor->at);
}

/* The place of the next `bytes` bytes, or NULL and `failed`. */
static inline const uint8_t *cursor_take(struct cursor *cursor, size_t bytes)
{
    if (cursor->failed || cursor_left(cursor) < bytes) {
        cursor->failed = true;
        return NULL;
    }
    const uint8_t *place = cursor->at;
    cursor->at += bytes;
    return place;
}

static inline uint8_t cursor_get_byte(struct cursor *cursor)
{
    const uint8_t *place = cursor_take(cursor, 1);
    return place ? *place : 0;
}

static inline uint16_t cursor_get_le16(struct cursor *cursor)
{
    const uint8_t *place = cursor_take(cursor, 2);
    return place ? get_le16(place) : 0;
}

static inline uint32_t cursor_get_le32(struct cursor *cursor)
{
    const uint8_t *place = cursor_take(cursor, 4);
    return place ? get_le32(place) : 0;
}

static inline uint64_t cursor_get_le64(struct cursor *cursor)
{
    const uint8_t *place = cursor_take(cursor, 8);
    return place ? get_le64(place) : 0;
}

/* LEB128 of at most 64 bits; longer or overflowing forms fail. */
static inline uint64_t cursor_get_varint(struct cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        const uint8_t *place = cursor_take(cursor, 1);
        if (!place)
            return 0;
        if (shift == 63 && *place > 1)
            break;
        value |= (uint64_t)(*place & 0x7f) << shift;
        if (!(*place & 0x80))
            return value;
    }
    cursor->failed = true;
    return 0;
}

static inline int64_t cursor_get_zigzag(struct cursor *cursor)
{
    uint64_t value = cursor_get_varint(cursor);
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

#endif
