/* SPDX-License-Identifier: Apache-2.0
 *
 * Thrift's compact protocol, writing.
 */
#include "format/parquet/thrift_internal.h"

static void open_struct(struct thrift *thrift)
{
    CHECK(thrift->depth < THRIFT_DEPTH_MAX);
    thrift->last[thrift->depth++] = 0;
}

struct thrift thrift_to(struct buf *out)
{
    struct thrift thrift = {.out = out};
    open_struct(&thrift);
    return thrift;
}

void thrift_end(struct thrift *thrift)
{
    buf_put_byte(thrift->out, 0);
    thrift->depth--;
}

static void put_field(struct thrift *thrift, int id, enum thrift_type type)
{
    int *last = &thrift->last[thrift->depth - 1];
    int delta = id - *last;
    CHECK(delta > 0);
    *last = id;
    if (delta <= 15) {
        buf_put_byte(thrift->out, (uint8_t)((unsigned)delta << 4 | type));
    } else {
        buf_put_byte(thrift->out, (uint8_t)type);
        buf_put_zigzag(thrift->out, id);
    }
}

void thrift_bool(struct thrift *thrift, int id, bool value)
{
    put_field(thrift, id, value ? THRIFT_TRUE : THRIFT_FALSE);
}

void thrift_byte(struct thrift *thrift, int id, int8_t value)
{
    put_field(thrift, id, THRIFT_BYTE);
    buf_put_byte(thrift->out, (uint8_t)value);
}

void thrift_i16(struct thrift *thrift, int id, int16_t value)
{
    put_field(thrift, id, THRIFT_I16);
    buf_put_zigzag(thrift->out, value);
}

void thrift_i32(struct thrift *thrift, int id, int32_t value)
{
    put_field(thrift, id, THRIFT_I32);
    buf_put_zigzag(thrift->out, value);
}

void thrift_i64(struct thrift *thrift, int id, int64_t value)
{
    put_field(thrift, id, THRIFT_I64);
    buf_put_zigzag(thrift->out, value);
}

void thrift_binary(struct thrift *thrift, int id, struct span value)
{
    put_field(thrift, id, THRIFT_BINARY);
    thrift_element_binary(thrift, value);
}

void thrift_struct(struct thrift *thrift, int id)
{
    put_field(thrift, id, THRIFT_STRUCT);
    open_struct(thrift);
}

void thrift_empty_struct(struct thrift *thrift, int id)
{
    thrift_struct(thrift, id);
    thrift_end(thrift);
}

void thrift_list(struct thrift *thrift, int id, enum thrift_type element, size_t count)
{
    put_field(thrift, id, THRIFT_LIST);
    if (count < 15) {
        buf_put_byte(thrift->out, (uint8_t)((unsigned)count << 4 | element));
    } else {
        buf_put_byte(thrift->out, (uint8_t)(0xf0 | element));
        buf_put_varint(thrift->out, count);
    }
}

void thrift_element_struct(struct thrift *thrift)
{
    open_struct(thrift);
}

void thrift_element_bool(struct thrift *thrift, bool value)
{
    buf_put_byte(thrift->out, value ? THRIFT_TRUE : THRIFT_FALSE);
}

void thrift_element_int(struct thrift *thrift, int64_t value)
{
    buf_put_zigzag(thrift->out, value);
}

void thrift_element_binary(struct thrift *thrift, struct span value)
{
    buf_put_varint(thrift->out, value.length);
    buf_put(thrift->out, value.data, value.length);
}

void thrift_list_i64(struct thrift *thrift, int id, const int64_t *values, size_t count)
{
    thrift_list(thrift, id, THRIFT_I64, count);
    for (size_t i = 0; i < count; i++)
        thrift_element_int(thrift, values[i]);
}
