/* SPDX-License-Identifier: Apache-2.0
 *
 * FlatBuffers, the part that Arrow needs.
 */
#include "format/arrow/flatbuf_internal.h"

/* ---- writer ---- */

static size_t position(const struct flat_writer *writer)
{
    return writer->out->length - writer->start;
}

/* Zeros until position + `ahead` is a multiple of `alignment`. */
static void align(struct flat_writer *writer, size_t ahead, size_t alignment)
{
    size_t rest = (position(writer) + ahead) % alignment;
    for (; rest && rest < alignment; rest++)
        buf_put_byte(writer->out, 0);
}

void flat_begin(struct flat_writer *writer, struct buf *out)
{
    *writer = (struct flat_writer){.out = out, .start = out->length};
    buf_put_le32(out, 0);
}

size_t flat_table(struct flat_writer *writer, struct flat_slot *slots, size_t slot_count)
{
    enum { TABLE_BYTES_MAX = 256, SLOTS_MAX = 16 };
    uint8_t table[TABLE_BYTES_MAX] = {0};
    uint16_t vtable[2 + SLOTS_MAX] = {0};
    size_t table_bytes =
        8; /* the way back to the vtable; widest fields follow, so all are aligned */
    CHECK(slot_count <= SLOTS_MAX);
    for (uint8_t bytes = 8; bytes; bytes /= 2) {
        for (size_t i = 0; i < slot_count; i++) {
            if (slots[i].bytes != bytes)
                continue;
            memcpy(table + table_bytes, &slots[i].value, bytes);
            vtable[2 + i] = (uint16_t)table_bytes;
            table_bytes += bytes;
        }
    }
    size_t vtable_bytes = (2 + slot_count) * sizeof vtable[0];
    vtable[0] = (uint16_t)vtable_bytes;
    vtable[1] = (uint16_t)table_bytes;
    put_le32(table, (uint32_t)vtable_bytes);
    align(writer, vtable_bytes, 8);
    buf_put(writer->out, vtable, vtable_bytes);
    size_t at = position(writer);
    buf_put(writer->out, table, table_bytes);
    for (size_t i = 0; i < slot_count; i++)
        slots[i].at = at + vtable[2 + i];
    return at;
}

size_t flat_bytes(struct flat_writer *writer, struct span bytes)
{
    align(writer, 0, 4);
    size_t at = position(writer);
    buf_put_le32(writer->out, (uint32_t)bytes.length);
    buf_put(writer->out, bytes.data, bytes.length);
    buf_put_byte(writer->out, 0);
    return at;
}

size_t flat_string(struct flat_writer *writer, const char *text)
{
    return flat_bytes(writer, span_of_text(text));
}

size_t flat_offsets(struct flat_writer *writer, size_t count)
{
    align(writer, 0, 4);
    size_t at = position(writer);
    buf_put_le32(writer->out, (uint32_t)count);
    for (size_t i = 0; i < count; i++)
        buf_put_le32(writer->out, 0);
    return at;
}

size_t flat_structs(struct flat_writer *writer, const void *data, size_t count, size_t bytes)
{
    align(writer, 4, 8);
    size_t at = position(writer);
    buf_put_le32(writer->out, (uint32_t)count);
    buf_put(writer->out, data, count * bytes);
    return at;
}

void flat_patch(struct flat_writer *writer, size_t at, size_t target)
{
    if (writer->out->failed)
        return;
    CHECK(target > at && writer->start + at + 4 <= writer->out->length);
    put_le32(writer->out->data + writer->start + at, (uint32_t)(target - at));
}

/* ---- reader ---- */

static bool has_bytes(const struct flat_reader *reader, size_t at, uint64_t bytes)
{
    return at <= reader->length && bytes <= reader->length - at;
}

static const struct flat_table no_table;

static struct flat_table fail_table(struct flat_reader *reader)
{
    reader->failed = true;
    return no_table;
}

/* The target of the offset stored at `at`, which the caller has checked to be inside. */
static size_t follow(struct flat_reader *reader, size_t at)
{
    uint32_t distance = get_le32(reader->data + at);
    if (distance == 0 || !has_bytes(reader, at, (uint64_t)distance + 4)) {
        reader->failed = true;
        return 0;
    }
    return at + distance;
}

static struct flat_table table_at(struct flat_reader *reader, size_t at)
{
    if (reader->failed || reader->tables_left == 0 || !has_bytes(reader, at, 4))
        return fail_table(reader);
    reader->tables_left--;
    int64_t vtable = (int64_t)at - (int32_t)get_le32(reader->data + at);
    if (vtable < 0 || !has_bytes(reader, (size_t)vtable, 4))
        return fail_table(reader);
    struct flat_table table = {.at = at, .vtable = (size_t)vtable};
    table.vtable_bytes = get_le16(reader->data + table.vtable);
    table.table_bytes = get_le16(reader->data + table.vtable + 2);
    if (table.vtable_bytes < 4 || table.vtable_bytes % 2 || table.table_bytes < 4 ||
        !has_bytes(reader, table.vtable, table.vtable_bytes) ||
        !has_bytes(reader, at, table.table_bytes))
        return fail_table(reader);
    return table;
}

struct flat_table flat_root(struct flat_reader *reader)
{
    if (!has_bytes(reader, 0, 4))
        return fail_table(reader);
    size_t at = follow(reader, 0);
    return reader->failed ? no_table : table_at(reader, at);
}

/* Position of a slot's field, or 0 if the table (or the slot) is absent. */
static size_t slot_at(struct flat_reader *reader, const struct flat_table *table, uint32_t slot,
                      size_t bytes)
{
    size_t entry = 4 + 2 * (size_t)slot;
    if (!table->at || reader->failed || entry + 2 > table->vtable_bytes)
        return 0;
    size_t offset = get_le16(reader->data + table->vtable + entry);
    if (offset == 0)
        return 0;
    if (offset < 4 || offset + bytes > table->table_bytes) {
        reader->failed = true;
        return 0;
    }
    return table->at + offset;
}

int64_t flat_number(struct flat_reader *reader, const struct flat_table *table, uint32_t slot,
                    uint32_t bytes, int64_t absent)
{
    size_t at = slot_at(reader, table, slot, bytes);
    if (!at)
        return absent;
    switch (bytes) {
    case 1:
        return (int8_t)reader->data[at];
    case 2:
        return (int16_t)get_le16(reader->data + at);
    case 4:
        return (int32_t)get_le32(reader->data + at);
    default:
        return (int64_t)get_le64(reader->data + at);
    }
}

struct flat_table flat_child(struct flat_reader *reader, const struct flat_table *table,
                             uint32_t slot)
{
    size_t at = slot_at(reader, table, slot, 4);
    if (!at)
        return no_table;
    size_t target = follow(reader, at);
    return reader->failed ? no_table : table_at(reader, target);
}

struct flat_vector flat_vector(struct flat_reader *reader, const struct flat_table *table,
                               uint32_t slot, size_t element_bytes)
{
    struct flat_vector vector = {0};
    size_t at = slot_at(reader, table, slot, 4);
    size_t target = at ? follow(reader, at) : 0;
    if (!at || reader->failed)
        return vector;
    uint32_t count = get_le32(reader->data + target);
    if (!has_bytes(reader, target + 4, (uint64_t)count * element_bytes)) {
        reader->failed = true;
        return vector;
    }
    return (struct flat_vector){.at = target + 4, .count = count, .is_present = true};
}

struct flat_table flat_element(struct flat_reader *reader, const struct flat_vector *vector,
                               uint32_t index)
{
    if (reader->failed || index >= vector->count)
        return fail_table(reader);
    size_t target = follow(reader, vector->at + (size_t)index * 4);
    return reader->failed ? no_table : table_at(reader, target);
}

struct span flat_text(struct flat_reader *reader, const struct flat_table *table, uint32_t slot)
{
    struct flat_vector text = flat_vector(reader, table, slot, 1);
    if (!text.is_present)
        return (struct span){0};
    if (!has_bytes(reader, text.at, (uint64_t)text.count + 1)) { /* its NUL */
        reader->failed = true;
        return (struct span){0};
    }
    return span_of(reader->data + text.at, text.count);
}
