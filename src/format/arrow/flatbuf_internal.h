/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of FlatBuffers that Arrow's messages need. Source: FlatBuffers internals, Arrow's
 * Message.fbs and Schema.fbs.
 *
 * Writer: forward, parents before children; a table records where its offset slots are, and they
 * are patched when the child is placed. Positions count from the buffer's start, which must come to
 * lie on a multiple of 8. Errors gather in the buf.
 *
 * Reader: every access is checked against the buffer; a fault sets `failed`, and what was asked for
 * reads as absent. Offsets only point forward, so that there are no cycles; but many may point to
 * one place, so a budget bounds the tables that are visited.
 */
#ifndef SLUICE_FORMAT_ARROW_FLATBUF_INTERNAL_H
#define SLUICE_FORMAT_ARROW_FLATBUF_INTERNAL_H

#include "base/base.h"

/* ---- writer ---- */

struct flat_writer {
    struct buf *out;
    size_t start; /* of the flatbuffer in `out` */
};

/* `bytes` 0: absent. Offsets are 4 bytes, patched later through `at`. */
struct flat_slot {
    uint8_t bytes;
    uint64_t value;
    size_t at; /* out: position of the field */
};

#define FLAT_ABSENT                                                                                \
    {                                                                                              \
        .bytes = 0                                                                                 \
    }
#define FLAT_BYTE(x)                                                                               \
    {                                                                                              \
        .bytes = 1, .value = (uint64_t)(x)                                                         \
    }
#define FLAT_SHORT(x)                                                                              \
    {                                                                                              \
        .bytes = 2, .value = (uint64_t)(x)                                                         \
    }
#define FLAT_INT(x)                                                                                \
    {                                                                                              \
        .bytes = 4, .value = (uint64_t)(x)                                                         \
    }
#define FLAT_LONG(x)                                                                               \
    {                                                                                              \
        .bytes = 8, .value = (uint64_t)(x)                                                         \
    }
#define FLAT_OFFSET                                                                                \
    {                                                                                              \
        .bytes = 4                                                                                 \
    }

void flat_begin(struct flat_writer *writer, struct buf *out); /* root offset; patch position 0 */
size_t flat_table(struct flat_writer *writer, struct flat_slot *slots, size_t slot_count);
size_t flat_string(struct flat_writer *writer, const char *text);
size_t flat_bytes(struct flat_writer *writer, struct span bytes); /* the same of any bytes */
/* A vector of `count` offsets, to be patched; returns its position, the first slot is at +4. */
size_t flat_offsets(struct flat_writer *writer, size_t count);
/* A vector of structs or numbers whose elements begin on multiples of 8. */
size_t flat_structs(struct flat_writer *writer, const void *data, size_t count, size_t bytes);
void flat_patch(struct flat_writer *writer, size_t at, size_t target);

/* ---- reader ---- */

struct flat_reader {
    const uint8_t *data;
    size_t length;
    uint32_t tables_left;
    bool failed;
};

struct flat_table {
    size_t at; /* 0: absent */
    size_t vtable, vtable_bytes, table_bytes;
};

struct flat_vector {
    size_t at; /* of the first element */
    uint32_t count;
    bool is_present;
};

struct flat_table flat_root(struct flat_reader *reader);
int64_t flat_number(struct flat_reader *reader, const struct flat_table *table, uint32_t slot,
                    uint32_t bytes, int64_t absent); /* signed; bytes 1, 2, 4, 8 */
struct flat_table flat_child(struct flat_reader *reader, const struct flat_table *table,
                             uint32_t slot);
struct flat_vector flat_vector(struct flat_reader *reader, const struct flat_table *table,
                               uint32_t slot, size_t element_bytes);
struct flat_table flat_element(struct flat_reader *reader, const struct flat_vector *vector,
                               uint32_t index); /* of a vector of tables */
struct span flat_text(struct flat_reader *reader, const struct flat_table *table, uint32_t slot);

#endif
