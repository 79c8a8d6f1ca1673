/* SPDX-License-Identifier: Apache-2.0
 *
 * The protobuf wire format (protobuf.dev, "Encoding"), read forward without allocation. What no
 * decoder knows it is given as a field all the same, and treats as unknown: a field of an
 * unexpected wire type, and a group, which goes from its start to its end and may hold others. Of a
 * varint whose tenth byte says more than 64 bits hold, the upper bits are dropped, as by other
 * parsers.
 */
#ifndef SLUICE_FORMAT_WIRE_WIRE_H
#define SLUICE_FORMAT_WIRE_WIRE_H

#include "base/base.h"

enum wire_type {
    WIRE_VARINT = 0,
    WIRE_I64 = 1,
    WIRE_LEN = 2,
    WIRE_GROUP = 3,
    WIRE_GROUP_END = 4,
    WIRE_I32 = 5
};

enum { WIRE_GROUPS_MAX = 100 }; /* within each other; what protobuf's own parsers allow */

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

/* The 7-bit groups of eight bytes, next to each other. */
static inline uint64_t wire_join_groups(uint64_t x)
{
    x = (x & 0x7f007f007f007f00u) >> 1 | (x & 0x007f007f007f007fu);
    x = (x & 0x3fff00003fff0000u) >> 2 | (x & 0x00003fff00003fffu);
    return (x & 0x0fffffff00000000u) >> 4 | (x & 0x0fffffffu);
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
    if (end - at >= 10) { /* all bytes of it can be looked at at once */
        uint64_t bytes = get_le64(at), stops = ~bytes & 0x8080808080808080u;
        if (stops) {
            *out_value = wire_join_groups(bytes & (stops ^ (stops - 1)));
            wire->at = at + ((unsigned)__builtin_ctzll(stops) + 1) / 8;
            return true;
        }
        value = wire_join_groups(bytes) | (uint64_t)(at[8] & 0x7f) << 56;
        bool is_long = at[8] & 0x80;
        if (is_long && at[9] >= 0x80)
            return wire_fail(wire);
        *out_value = is_long ? value | (uint64_t)at[9] << 63 : value;
        wire->at = at + 9 + is_long;
        return true;
    }
    for (unsigned shift = 0; shift < 70 && at < end; shift += 7) {
        uint8_t byte = *at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out_value = value;
            wire->at = at;
            return true;
        }
    }
    return wire_fail(wire);
}

static const uint8_t *wire_group_end(const uint8_t *at, const uint8_t *end, uint32_t key);

/* What stands behind a key. `has_groups`, a constant: a group is gone through whole. */
static inline bool wire_value(struct wire *wire, struct wire_field *field, bool has_groups)
{
    uint64_t length;
    size_t left = (size_t)(wire->end - wire->at);
    switch (field->key & 7) {
    case WIRE_VARINT:
        return wire_varint(wire, &field->value);
    case WIRE_LEN:
        if (!wire_varint(wire, &length) || length > (size_t)(wire->end - wire->at))
            return wire_fail(wire);
        field->bytes = span_of(wire->at, (size_t)length);
        wire->at += length;
        return true;
    case WIRE_I64:
        if (left < 8)
            return wire_fail(wire);
        field->value = get_le64(wire->at);
        wire->at += 8;
        return true;
    case WIRE_I32:
        if (left < 4)
            return wire_fail(wire);
        field->value = get_le32(wire->at);
        wire->at += 4;
        return true;
    default: /* four cases above, for which the compiler compares: it would jump for five */
        if (has_groups && (field->key & 7) == WIRE_GROUP) {
            const uint8_t *behind = wire_group_end(wire->at, wire->end, field->key);
            if (behind) {
                wire->at = behind;
                return true;
            }
        }
        return wire_fail(wire);
    }
}

static inline bool wire_key(struct wire *wire, struct wire_field *field)
{
    uint64_t key;
    if (!wire_varint(wire, &key))
        return false;
    if (__builtin_expect(key > UINT32_MAX || key < 8, 0))
        return wire_fail(wire);
    field->key = (uint32_t)key;
    return true;
}

/* Behind the end of the group that `key` begins; NULL: it has none. By value, so that the cursor of
 * whoever reads fields can stay in registers. */
static __attribute__((noinline, cold, unused)) const uint8_t *
wire_group_end(const uint8_t *at, const uint8_t *end, uint32_t key)
{
    struct wire wire = {.at = at, .end = end};
    struct wire_field field;
    uint32_t open[WIRE_GROUPS_MAX], depth = 0;
    open[depth++] = key >> 3;
    while (depth) {
        if (wire.at >= wire.end || !wire_key(&wire, &field))
            return NULL;
        if ((field.key & 7) == WIRE_GROUP) {
            if (depth == WIRE_GROUPS_MAX)
                return NULL;
            open[depth++] = field.key >> 3;
        } else if ((field.key & 7) == WIRE_GROUP_END) {
            if (open[--depth] != field.key >> 3)
                return NULL;
        } else if (!wire_value(&wire, &field, false)) {
            return NULL;
        }
    }
    return wire.at;
}

/* The next field; false at the end, or with is_malformed set and out_field->start where. */
static inline bool wire_next(struct wire *wire, struct wire_field *out_field)
{
    if (wire->at >= wire->end)
        return false;
    out_field->start = wire->at;
    return wire_key(wire, out_field) && wire_value(wire, out_field, true);
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
