/* SPDX-License-Identifier: Apache-2.0
 *
 * Growing byte buffer.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/base.h"

void buf_init(struct buf *buf, size_t bytes_max)
{
    *buf = (struct buf){.bytes_max = bytes_max};
}

void buf_deinit(struct buf *buf)
{
    mem_free(buf->data);
    *buf = (struct buf){0};
}

bool buf_grow(struct buf *buf, size_t bytes)
{
    size_t need;
    if (buf->failed || !SIZE_ADD(buf->length, bytes, &need) || need > SIZE_MAX / 2 ||
        (buf->bytes_max && need > buf->bytes_max)) {
        buf->failed = true;
        return false;
    }
    size_t capacity = size_max(size_max(buf->capacity + buf->capacity / 2, need), 64);
    if (buf->bytes_max)
        capacity = size_min(capacity, buf->bytes_max);
    uint8_t *data = mem_resize(buf->data, capacity);
    if (!data) {
        buf->failed = true;
        return false;
    }
    buf->data = data;
    buf->capacity = capacity;
    return true;
}

uint8_t *buf_extend(struct buf *buf, size_t bytes)
{
    if (!buf_reserve_place(buf, bytes))
        return NULL;
    uint8_t *place = buf->data + buf->length;
    buf->length += bytes;
    return place;
}

void buf_truncate(struct buf *buf, size_t length)
{
    CHECK(length <= buf->length);
    buf->length = length;
}

uint8_t *buf_take(struct buf *buf, size_t *out_length)
{
    uint8_t *data = buf->data;
    *out_length = buf->length;
    buf->data = NULL;
    buf->length = buf->capacity = 0;
    return data;
}

void buf_format(struct buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0 || !buf_reserve(buf, (size_t)length + 1)) {
        buf->failed = true;
        return;
    }
    va_start(args, format);
    vsnprintf((char *)buf->data + buf->length, (size_t)length + 1, format, args);
    va_end(args);
    buf->length += (size_t)length;
}

void buf_pad(struct buf *buf, size_t alignment)
{
    size_t rest = buf->length % alignment;
    if (!rest)
        return;
    uint8_t *place = buf_extend(buf, alignment - rest);
    if (place)
        memset(place, 0, alignment - rest);
}

enum status buf_status(const struct buf *buf, const char *what, struct error *err)
{
    if (!buf->failed)
        return STATUS_OK;
    if (buf->bytes_max && buf->capacity <= buf->bytes_max && buf->bytes_max < SIZE_MAX / 2)
        return error_set(err, STATUS_LIMIT, "%s: more than %zu bytes", what, buf->bytes_max);
    return error_set(err, STATUS_NO_MEMORY, "%s: out of memory", what);
}

void buf_put_le16(struct buf *buf, uint16_t value)
{
    uint8_t bytes[2];
    put_le16(bytes, value);
    buf_put(buf, bytes, sizeof bytes);
}

void buf_put_le32(struct buf *buf, uint32_t value)
{
    uint8_t bytes[4];
    put_le32(bytes, value);
    buf_put(buf, bytes, sizeof bytes);
}

void buf_put_le64(struct buf *buf, uint64_t value)
{
    uint8_t bytes[8];
    put_le64(bytes, value);
    buf_put(buf, bytes, sizeof bytes);
}

void buf_put_varint(struct buf *buf, uint64_t value)
{
    while (value >= 0x80) {
        buf_put_byte(buf, (uint8_t)(value | 0x80));
        value >>= 7;
    }
    buf_put_byte(buf, (uint8_t)value);
}

void buf_put_zigzag(struct buf *buf, int64_t value)
{
    buf_put_varint(buf, ((uint64_t)value << 1) ^ (uint64_t)(value >> 63));
}
