/* SPDX-License-Identifier: Apache-2.0
 *
 * Thrift's compact protocol, reading. Source: thrift-compact-protocol.md.
 */
#include "format/parquet/thrift_internal.h"

enum { THRIFT_DOUBLE = 7, THRIFT_SET = 10, THRIFT_MAP = 11, THRIFT_UUID = 13, SKIP_DEPTH_MAX = 64 };

static void *fail(struct cursor *in)
{
    in->failed = true;
    return NULL;
}

int thrift_read_field(struct cursor *in, int *inout_id)
{
    uint8_t head = cursor_get_byte(in);
    if (in->failed || head == 0)
        return 0;
    int64_t id = head >> 4 ? *inout_id + (head >> 4) : cursor_get_zigzag(in);
    if (in->failed || id < INT16_MIN || id > INT16_MAX || !(head & 15)) {
        fail(in);
        return 0;
    }
    *inout_id = (int)id;
    return head & 15;
}

bool thrift_read_bool(struct cursor *in, int type)
{
    if (type != THRIFT_TRUE && type != THRIFT_FALSE)
        fail(in);
    return type == THRIFT_TRUE;
}

int64_t thrift_read_i64(struct cursor *in, int type)
{
    if (type == THRIFT_BYTE)
        return (int8_t)cursor_get_byte(in);
    if (type == THRIFT_I16 || type == THRIFT_I32 || type == THRIFT_I64)
        return cursor_get_zigzag(in);
    fail(in);
    return 0;
}

int32_t thrift_read_i32(struct cursor *in, int type)
{
    int64_t value = thrift_read_i64(in, type);
    if (value >= INT32_MIN && value <= INT32_MAX)
        return (int32_t)value;
    fail(in);
    return 0;
}

struct span thrift_read_binary(struct cursor *in, int type)
{
    if (type != THRIFT_BINARY)
        fail(in);
    uint64_t length = cursor_get_varint(in);
    const uint8_t *data = length <= cursor_left(in) ? cursor_take(in, (size_t)length) : fail(in);
    return span_of(data, data ? (size_t)length : 0);
}

bool thrift_read_struct(struct cursor *in, int type)
{
    if (type != THRIFT_STRUCT)
        fail(in);
    return !in->failed;
}

size_t thrift_read_list(struct cursor *in, int type, int *out_element)
{
    uint8_t head = type == THRIFT_LIST || type == THRIFT_SET ? cursor_get_byte(in) : 0;
    uint64_t count = head >> 4 == 15 ? cursor_get_varint(in) : head >> 4;
    *out_element = head & 15;
    if ((type != THRIFT_LIST && type != THRIFT_SET) || count > cursor_left(in))
        fail(in);
    return in->failed ? 0 : (size_t)count;
}

static void skip_value(struct cursor *in, int type, int depth);

static void skip_elements(struct cursor *in, uint64_t count, int key, int value, int depth)
{
    for (; count && !in->failed; count--) {
        if (key)
            skip_value(in, key == THRIFT_FALSE || key == THRIFT_TRUE ? THRIFT_BYTE : key, depth);
        skip_value(in, value == THRIFT_FALSE || value == THRIFT_TRUE ? THRIFT_BYTE : value, depth);
    }
}

static void skip_map(struct cursor *in, int depth)
{
    uint64_t count = cursor_get_varint(in);
    uint8_t types = count ? cursor_get_byte(in) : 0;
    if (count > cursor_left(in) || (count && (!(types >> 4) || !(types & 15))))
        fail(in);
    skip_elements(in, count, types >> 4, types & 15, depth);
}

static void skip_value(struct cursor *in, int type, int depth)
{
    int id = 0, inner;
    size_t count;
    if (depth > SKIP_DEPTH_MAX)
        fail(in);
    if (in->failed)
        return;
    switch (type) {
    case THRIFT_TRUE:
    case THRIFT_FALSE:
        return;
    case THRIFT_BYTE:
        cursor_take(in, 1);
        return;
    case THRIFT_I16:
    case THRIFT_I32:
    case THRIFT_I64:
        cursor_get_varint(in);
        return;
    case THRIFT_DOUBLE:
        cursor_take(in, 8);
        return;
    case THRIFT_UUID:
        cursor_take(in, 16);
        return;
    case THRIFT_BINARY:
        thrift_read_binary(in, type);
        return;
    case THRIFT_LIST:
    case THRIFT_SET:
        count = thrift_read_list(in, type, &inner);
        skip_elements(in, count, 0, inner, depth + 1);
        return;
    case THRIFT_MAP:
        skip_map(in, depth + 1);
        return;
    case THRIFT_STRUCT:
        while ((inner = thrift_read_field(in, &id)) != 0)
            skip_value(in, inner, depth + 1);
        return;
    default:
        fail(in);
    }
}

void thrift_skip(struct cursor *in, int type)
{
    skip_value(in, type, 0);
}
