/* SPDX-License-Identifier: Apache-2.0
 *
 * A growing byte buffer. Appending past `bytes_max` (0 = no bound) or past memory sets `failed` and
 * drops the bytes: a run of appends is checked once, at its end, with buf_status. Owned by one
 * thread.
 */
#ifndef SLUICE_BASE_BUF_H
#define SLUICE_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/status.h"

struct buf {
    uint8_t *data;
    size_t length, capacity;
    size_t bytes_max;
    bool failed;
};

void buf_init(struct buf *buf, size_t bytes_max);
void buf_deinit(struct buf *buf); /* accepts a zeroed buffer */

static inline void buf_clear(struct buf *buf) /* keeps the memory, clears `failed` */
{
    buf->length = 0;
    buf->failed = false;
}

bool buf_grow(struct buf *buf, size_t bytes); /* of buf_reserve, where the room is not there yet */

/* Room for `bytes` more behind `length`; false (and `failed`) if there is none. */
static inline bool buf_reserve(struct buf *buf, size_t bytes)
{
    if (__builtin_expect(buf->capacity - buf->length >= bytes, 1))
        return !buf->failed;
    return buf_grow(buf, bytes);
}

/* Grows `length` by `bytes` and returns the place, uninitialised; NULL if there is no room. */
uint8_t *buf_extend(struct buf *buf, size_t bytes);

/* Cuts back to `length`. */
void buf_truncate(struct buf *buf, size_t length);

/* Takes the bytes out: the caller owns them (mem_free); the buffer is empty. */
uint8_t *buf_take(struct buf *buf, size_t *out_length);

void buf_format(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_pad(struct buf *buf, size_t alignment); /* zeros up to a multiple of `alignment` */

/* STATUS_OK, or NO_MEMORY / LIMIT with "<what>: ..." in `err`. */
enum status buf_status(const struct buf *buf, const char *what, struct error *err) MUST_CHECK;

/* memcpy for what is mostly short: two overlapping words instead of a call. */
static inline void copy_short(uint8_t *to, const void *from, size_t bytes)
{
    const uint8_t *source = (const uint8_t *)from;
    uint64_t a, b;
    uint32_t c, d;
    if (bytes > 16) {
        memcpy(to, source, bytes);
    } else if (bytes >= 8) {
        memcpy(&a, source, 8);
        memcpy(&b, source + bytes - 8, 8);
        memcpy(to, &a, 8);
        memcpy(to + bytes - 8, &b, 8);
    } else if (bytes >= 4) {
        memcpy(&c, source, 4);
        memcpy(&d, source + bytes - 4, 4);
        memcpy(to, &c, 4);
        memcpy(to + bytes - 4, &d, 4);
    } else if (bytes) {
        to[0] = source[0];
        to[bytes / 2] = source[bytes / 2];
        to[bytes - 1] = source[bytes - 1];
    }
}

static inline void buf_put(struct buf *buf, const void *data, size_t bytes)
{
    if (__builtin_expect(buf->capacity - buf->length < bytes, 0) && !buf_reserve(buf, bytes))
        return;
    if (bytes)
        memcpy(buf->data + buf->length, data, bytes);
    buf->length += bytes;
}

static inline void buf_put_text(struct buf *buf, const char *text)
{
    buf_put(buf, text, strlen(text));
}

/* Makes room as buf_reserve does, and an address even for nothing: a NULL must not be added to. */
static inline bool buf_reserve_place(struct buf *buf, size_t bytes)
{
    return buf_reserve(buf, bytes ? bytes : !buf->data);
}

/* The same as buf_put for lengths that vary and are mostly short. */
static inline void buf_put_short(struct buf *buf, const void *data, size_t bytes)
{
    if (__builtin_expect(buf->capacity - buf->length <= bytes, 0) && !buf_reserve_place(buf, bytes))
        return;
    copy_short(buf->data + buf->length, data, bytes);
    buf->length += bytes;
}

static inline void buf_put_byte(struct buf *buf, uint8_t byte)
{
    if (__builtin_expect(buf->capacity == buf->length, 0) && !buf_reserve(buf, 1))
        return;
    buf->data[buf->length++] = byte;
}

void buf_put_le16(struct buf *buf, uint16_t value);
void buf_put_le32(struct buf *buf, uint32_t value);
void buf_put_le64(struct buf *buf, uint64_t value);
void buf_put_varint(struct buf *buf, uint64_t value); /* LEB128 */
void buf_put_zigzag(struct buf *buf, int64_t value);  /* zigzag, then LEB128 */

#endif
