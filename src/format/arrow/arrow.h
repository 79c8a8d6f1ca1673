/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrow columns in memory and on the wire: schema, arrays, builders, gather, IPC.
 * Source of layouts: Arrow Columnar Format 1.5 and its IPC chapter; the types here are those that
 * the tables need, and grow by adding rows to the enum.
 *
 * Arrays are plain views: whoever made one says what owns its memory. All buffers are
 * little-endian, 8-byte aligned; validity is 1 bit a slot, LSB first, NULL when nothing is null;
 * offsets are int32, n + 1 of them, starting at 0. Values in null slots are zero, null lists and
 * strings are empty. No global state; an object belongs to one thread at a time.
 */
#ifndef SLUICE_FORMAT_ARROW_ARROW_H
#define SLUICE_FORMAT_ARROW_ARROW_H

#include "base/base.h"

/* ---- schema ---- */

enum arrow_type {
    ARROW_NULL,
    ARROW_BOOL, /* bits */
    ARROW_INT32,
    ARROW_INT64,
    ARROW_FLOAT,
    ARROW_DOUBLE,
    ARROW_DATE32,       /* days since 1970-01-01 */
    ARROW_TIMESTAMP_US, /* microseconds since 1970-01-01; `timezone` set: an instant (UTC) */
    ARROW_UTF8,
    ARROW_BINARY,
    ARROW_FIXED, /* FixedSizeBinary of byte_width */
    ARROW_LIST,  /* one child, "element" */
    ARROW_STRUCT,
    ARROW_MAP, /* two children: key (not nullable), value; the "entries" struct is implied */
    ARROW_TYPE_COUNT
};

/* Levels of columns, those of the schema being the first, and bytes of their names: no format here
 * reads or writes more. */
enum { ARROW_DEPTH_MAX = 32, ARROW_NAME_BYTES_MAX = 4096 };

struct arrow_origin; /* arrow_file.h */

struct arrow_field {
    const char *name;
    enum arrow_type type;
    bool is_nullable;
    bool is_dictionary; /* int32 indices into a dictionary array of `type` (any type) */
    bool is_instant;    /* timestamps: time zone "UTC" */
    int32_t byte_width; /* ARROW_FIXED */
    int32_t field_id;   /* 0: none; travels as metadata "PARQUET:field_id" */
    struct arrow_field *children;
    uint32_t child_count;
    int64_t dictionary_key; /* its id in IPC plus 1; 0: its number among the schema's dictionary
                             * fields, depth first, from 0, which is what our own schemas use */
    const struct arrow_origin *origin; /* NULL: the type says it all, as in every schema of ours */
};

/* What a schema or a field was given along by others, beside what has a place of its own here. Any
 * bytes; not compared, not part of a fingerprint. */
struct arrow_metadata {
    struct arrow_pair {
        struct span key, value;
    } * pairs;
    uint32_t count;
};

struct arrow_schema {
    struct arrow_field *fields;
    uint32_t field_count;
    struct arrow_metadata metadata; /* of files and of the C interface */
};

/* Deep copy; everything it holds is owned by `arena`. */
enum status arrow_schema_copy(const struct arrow_schema *from, struct arena *arena,
                              struct arrow_schema *out_schema, struct error *err) MUST_CHECK;
/* LIMIT, with the column's name: one that is nested deeper than ARROW_DEPTH_MAX. */
enum status arrow_schema_check_depth(const struct arrow_schema *schema,
                                     struct error *err) MUST_CHECK;
/* INVALID, with the name: two of them have the same, for formats that tell columns by it. */
enum status arrow_fields_check_names(const struct arrow_field *fields, uint32_t count,
                                     struct error *err) MUST_CHECK;
/* Names, types, nullability, dictionaries, ids, in order; stable across versions. Never 0. Counts
 * the dictionary keys in, since a stored payload is read by them, and leaves origins out. */
uint64_t arrow_schema_fingerprint(const struct arrow_schema *schema);
/* The same without the dictionary keys: they say nothing about arrays in memory. */
bool arrow_schema_equal(const struct arrow_schema *a, const struct arrow_schema *b);

/* ---- arrays ---- */

struct arrow_array {
    int64_t length, null_count;
    const uint8_t *validity; /* NULL: none null */
    const int32_t *offsets;  /* utf8, binary, list, map */
    const void *values;      /* fixed-width values, bools' bits, bytes; a dictionary's indices */
    struct arrow_array *children;   /* list 1, map 2 (keys, values), struct n */
    struct arrow_array *dictionary; /* is_dictionary: the values */
};

struct arrow_batch {
    const struct arrow_schema *schema; /* borrowed */
    int64_t length;
    struct arrow_array *columns;    /* schema->field_count */
    struct arena arena;             /* owns the array structs, and buffers made for this batch */
    struct arrow_metadata metadata; /* of its message in a stream or file of others; else none */
};

void arrow_batch_deinit(struct arrow_batch *batch); /* accepts a zeroed batch */

static inline bool arrow_is_valid(const struct arrow_array *array, int64_t i)
{
    return !array->validity || (array->validity[i >> 3] >> (i & 7) & 1);
}

static inline bool arrow_bit(const void *bits, int64_t i)
{
    return ((const uint8_t *)bits)[i >> 3] >> (i & 7) & 1;
}

/* Checks every rule above against hostile arrays: lengths, offsets, indices, UTF-8. Recounts nulls.
 */
enum status arrow_array_validate(const struct arrow_field *field, struct arrow_array *array,
                                 struct error *err) MUST_CHECK;

/* ---- builders ---- */

struct arrow_memo; /* value -> dictionary index */

/* Fields are open so that decoders may append without a call; use the functions below. An append
 * that finds no memory sets `failed` in the buffer at hand: check arrow_builder_failed at the end.
 * A batch of a builder is limited to 2^31 - 1 bytes in any one buffer (also `failed`). */
struct arrow_builder {
    const struct arrow_field *field; /* borrowed */
    int64_t length, null_count;
    struct buf validity; /* bits; empty until the first null */
    struct buf offsets;  /* int32 */
    struct buf values;   /* fixed values, bits, bytes, or dictionary indices */
    struct arrow_builder *children;
    uint32_t child_count;
    struct arrow_builder *dictionary; /* is_dictionary: builds the values */
    struct arrow_memo *memo;          /* of arrow_append_memo */
    int32_t null_bytes;               /* of a null in `values`; -1: something else has to be done */
};

enum status arrow_builder_init(struct arrow_builder *builder, const struct arrow_field *field,
                               struct error *err) MUST_CHECK;
void arrow_builder_deinit(struct arrow_builder *builder); /* accepts zeroed */
void arrow_builder_clear(struct arrow_builder *builder);  /* keeps memory; forgets dictionaries */
bool arrow_builder_failed(const struct arrow_builder *builder); /* recursive */
size_t
arrow_builder_bytes(const struct arrow_builder *builder); /* recursive, what an array would take */

size_t arrow_builder_capacity(const struct arrow_builder *builder); /* recursive, what it holds */

/* Back to the first `length` slots, children too. Dictionaries keep what they have learned. Takes
 * back failures of appends behind `length`: what is left is whole. */
void arrow_builder_truncate(struct arrow_builder *builder, int64_t length);

/* A view of what was appended; borrows the builder until the next append, clear or deinit. The
 * structs are owned by `arena`. INTERNAL: struct children of unequal length. */
enum status arrow_builder_view(const struct arrow_builder *builder, struct arena *arena,
                               struct arrow_array *out_array, struct error *err) MUST_CHECK;

/* The same for a struct's children as the columns of a batch of `schema`, which is borrowed: its
 * fields are the children of the builder's field. */
enum status arrow_builder_batch(const struct arrow_builder *builder,
                                const struct arrow_schema *schema, struct arrow_batch *out_batch,
                                struct error *err) MUST_CHECK;

void arrow_append_unusual_null(struct arrow_builder *builder);

static inline void arrow_push_bit(struct buf *bits, int64_t at, bool bit)
{
    if (!(at & 7)) {
        if (__builtin_expect(!bits->failed, 1))
            buf_put_byte(bits, bit);
    } else if (bit && __builtin_expect((size_t)(at >> 3) < bits->length, 1)) {
        bits->data[at >> 3] |= (uint8_t)(1u << (at & 7));
    }
}

/* Any type; children get null or nothing. */
static inline void arrow_append_null(struct arrow_builder *builder)
{
    static const uint8_t zeros[8];
    if (builder->null_bytes < 0 || builder->validity.length == 0) {
        arrow_append_unusual_null(builder);
        return;
    }
    if (builder->null_bytes == 0) {
        int32_t end = (int32_t)builder->values.length;
        buf_put(&builder->offsets, &end, sizeof end);
    } else {
        buf_put(&builder->values, zeros, (size_t)builder->null_bytes);
    }
    arrow_push_bit(&builder->validity, builder->length, false);
    builder->length++;
    builder->null_count++;
}

/* `count` slots at once: null, or zero, empty text and empty lists. Not for dictionaries. */
void arrow_append_many_zeros(struct arrow_builder *builder, int64_t count, bool is_null);

/* Counts a slot whose value was appended, or is about to be. */
static inline void arrow_push_valid(struct arrow_builder *builder)
{
    if (builder->validity.length)
        arrow_push_bit(&builder->validity, builder->length, true);
    builder->length++;
}

/* The same for `count` slots. */
static inline void arrow_push_valids(struct arrow_builder *builder, int64_t count)
{
    for (int64_t i = 0; builder->validity.length && i < count; i++)
        arrow_push_bit(&builder->validity, builder->length + i, true);
    builder->length += count;
}

static inline void arrow_append_bool(struct arrow_builder *builder, bool value)
{
    arrow_push_bit(&builder->values, builder->length, value);
    arrow_push_valid(builder);
}

static inline void arrow_append_i32(struct arrow_builder *builder, int32_t value)
{
    buf_put(&builder->values, &value, sizeof value);
    arrow_push_valid(builder);
}

static inline void arrow_append_i64(struct arrow_builder *builder, int64_t value)
{
    buf_put(&builder->values, &value, sizeof value);
    arrow_push_valid(builder);
}

static inline void arrow_append_float(struct arrow_builder *builder, float value)
{
    buf_put(&builder->values, &value, sizeof value);
    arrow_push_valid(builder);
}

static inline void arrow_append_double(struct arrow_builder *builder, double value)
{
    buf_put(&builder->values, &value, sizeof value);
    arrow_push_valid(builder);
}

/* utf8, binary; and fixed, where `bytes` must be the width. The text must be UTF-8. */
static inline void arrow_append_bytes(struct arrow_builder *builder, const void *data, size_t bytes)
{
    buf_put_short(&builder->values, data, bytes);
    if (__builtin_expect(builder->null_bytes == 0, 1)) {
        int32_t end = (int32_t)builder->values.length;
        buf_put(&builder->offsets, &end, sizeof end);
    } else {
        CHECK(bytes == (size_t)builder->field->byte_width);
    }
    arrow_push_valid(builder);
}

/* Lists and maps: append to the children, then close the slot. Structs: append to each child, then
 * close. */
static inline void arrow_close_list(struct arrow_builder *builder)
{
    int32_t end = (int32_t)builder->children[0].length;
    if (__builtin_expect(builder->children[0].length > INT32_MAX, 0))
        builder->offsets.failed = true;
    buf_put(&builder->offsets, &end, sizeof end);
    arrow_push_valid(builder);
}

static inline void arrow_close_struct(struct arrow_builder *builder)
{
    arrow_push_valid(builder);
}

/* Dictionary fields: by value (utf8, binary, fixed; looked up in the memo), or by index into
 * builder->dictionary. */
void arrow_append_memo(struct arrow_builder *builder, const void *data, size_t bytes);

static inline void arrow_append_index(struct arrow_builder *builder, int32_t index)
{
    arrow_append_i32(builder, index);
}

/* The index that arrow_append_memo would append, learning the value if it is new; -1: no memory. */
int32_t arrow_memo_index(struct arrow_builder *builder, const void *data, size_t bytes);

/* ---- gather ---- */

struct arrow_row {
    uint32_t batch, row;
};

/* A new batch of the rows named, in that order, from batches of equal schemas. Dictionaries are
 * laid end to end, not compared. `out_batch` owns its memory (but borrows batches[0]->schema).
 * LIMIT when a buffer would pass 2^31 - 1 bytes. */
enum status arrow_gather(const struct arrow_batch *const *batches, size_t batch_count,
                         const struct arrow_row *rows, size_t row_count,
                         struct arrow_batch *out_batch, struct error *err) MUST_CHECK;

/* ---- IPC ---- */

enum arrow_compression { ARROW_UNCOMPRESSED, ARROW_LZ4_FRAME, ARROW_ZSTD };

struct arrow_limits {
    size_t metadata_bytes_max; /* of one message; default 16 MiB */
    size_t body_bytes_max;     /* of one message, expanded */
    uint32_t field_count_max;  /* of a schema, nested ones counted; default 4,096 */
    uint32_t depth_max;        /* default ARROW_DEPTH_MAX */
};

struct arrow_limits arrow_limits_default(void);

/* An encapsulated Schema message. */
enum status arrow_ipc_write_schema(const struct arrow_schema *schema, struct buf *out,
                                   struct error *err) MUST_CHECK;

/* DictionaryBatch messages (inner dictionaries first) and one RecordBatch message: the payload of
 * an entry (L11). Body buffers lie on multiples of 64 from the start of `out`; buffers with the
 * same address are written once and referred to many times. */
enum status arrow_ipc_write_batch(const struct arrow_schema *schema,
                                  const struct arrow_batch *batch,
                                  enum arrow_compression compression, struct buf *out,
                                  struct error *err) MUST_CHECK;

/* Reads one Schema message; INVALID for anything that is not one. Owned by `arena`. */
enum status arrow_ipc_read_schema(struct span bytes, const struct arrow_limits *limits,
                                  struct arena *arena, struct arrow_schema *out_schema,
                                  size_t *out_bytes_read, struct error *err) MUST_CHECK;

/* Walks a payload: each call yields the next RecordBatch with the dictionaries in force; NOT_FOUND
 * at the end. Everything is verified (bounds, offsets, indices, UTF-8), so that later code may
 * trust the arrays. Batches borrow `payload` where it is 8-byte aligned and not compressed, else
 * hold copies. */
struct arrow_reader;

enum status arrow_reader_create(const struct arrow_schema *schema, struct span payload,
                                const struct arrow_limits *limits, struct arrow_reader **out_reader,
                                struct error *err) MUST_CHECK;
enum status arrow_reader_next(struct arrow_reader *reader, struct arrow_batch *out_batch,
                              struct error *err) MUST_CHECK;
void arrow_reader_destroy(struct arrow_reader *reader); /* batches of it die with it */

#include "format/arrow/arrow_c.h"
#include "format/arrow/arrow_file.h"

#endif
