/* SPDX-License-Identifier: Apache-2.0
 *
 * The protobuf wire format (protobuf.dev, "Encoding"), read forward without allocation. Groups,
 * which no OTLP message has ever had, are malformed. A field of an unexpected wire type shows up
 * under a key that no decoder knows and is treated as unknown, as other parsers do.
 */
#ifndef SLUICE_FORMAT_WIRE_WIRE_H
#define SLUICE_FORMAT_WIRE_WIRE_H

#include "base/base.h"

enum wire_type { WIRE_VARINT = 0, WIRE_I64 = 1, WIRE_LEN = 2, WIRE_I32 = 5 };

#define WIRE_KEY(number, type) ((uint32_t)(number) << 3 | (uint32_t)(type))

struct wire {
    const uint8_t *at, *end;
    bool is_malformed;
};

struct wire_field {
    uint32_t key;         /* WIRE_KEY */
    uint64_t value;       /* varint, I64, I32 */
    struct span bytes;    /* LEN */
    const uint8_t *start; /* of the key: the whole field is [start, wire.at) */
};

static inline struct wire wire_of(struct span message)
{
    static const uint8_t nothing[1]; /* no pointer into an empty message may be NULL */
    const uint8_t *at = message.length ? message.data : nothing;
    return (struct wire){.at = at, .end = at + message.length};
}

static inline bool wire_fail(struct wire *wire)
{
    wire->is_malformed = true;
    return false;
}

static inline bool wire_varint(struct wire *wire, uint64_t *out_value)
{
    const uint8_t *at = wire->at, *end = wire->end;
    uint64_t value = 0;
    if (__builtin_expect(at < end && *at < 0x80, 1)) {
        *out_value = *at;
        wire->at = at + 1;
        return true;
    }
    for (unsigned shift = 0; shift < 70 && at < end; shift += 7) {
        uint8_t byte = *at++;
        if (shift == 63 && byte > 1)
            break;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out_value = value;
            wire->at = at;
            return true;
        }
    }
    return wire_fail(wire);
}

/* The next field; false at the end, or with is_malformed set. */
static inline bool wire_next(struct wire *wire, struct wire_field *out_field)
{
    uint64_t key, length;
    if (wire->at >= wire->end)
        return false;
    out_field->start = wire->at;
    if (!wire_varint(wire, &key))
        return false;
    if (__builtin_expect(key > UINT32_MAX || key < 8, 0))
        return wire_fail(wire);
    out_field->key = (uint32_t)key;
    size_t left = (size_t)(wire->end - wire->at);
    switch (key & 7) {
    case WIRE_VARINT:
        return wire_varint(wire, &out_field->value);
    case WIRE_LEN:
        if (!wire_varint(wire, &length) || length > (size_t)(wire->end - wire->at))
            return wire_fail(wire);
        out_field->bytes = span_of(wire->at, (size_t)length);
        wire->at += length;
        return true;
    case WIRE_I64:
        if (left < 8)
            return wire_fail(wire);
        out_field->value = get_le64(wire->at);
        wire->at += 8;
        return true;
    case WIRE_I32:
        if (left < 4)
            return wire_fail(wire);
        out_field->value = get_le32(wire->at);
        wire->at += 4;
        return true;
    default:
        return wire_fail(wire);
    }
}

static inline double wire_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline int64_t wire_zigzag(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

/* Writing, for answers and rewrapped items. */
static inline void wire_put_bytes(struct buf *out, uint32_t number, struct span bytes)
{
    buf_put_varint(out, WIRE_KEY(number, WIRE_LEN));
    buf_put_varint(out, bytes.length);
    buf_put(out, bytes.data, bytes.length);
}

static inline void wire_put_varint(struct buf *out, uint32_t number, uint64_t value)
{
    buf_put_varint(out, WIRE_KEY(number, WIRE_VARINT));
    buf_put_varint(out, value);
}

#endif
