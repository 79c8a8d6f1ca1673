/* SPDX-License-Identifier: Apache-2.0
 *
 * Parquet files, read into Arrow batches. Part of parquet.h. Source: Apache Parquet format 2.13.
 *
 * A file is opened from its footer; a reader names the columns that are wanted; each row group is
 * then three steps, so that a store of objects is asked for what is needed and nothing else: plan
 * (which byte ranges), fetch (the caller, in any order, at once or not), decode (into Arrow
 * buffers). parquet_reader_read does the three in a row through the file's own source.
 *
 * Everything in a file is hostile. Statuses: CORRUPT for bytes that contradict the format or each
 * other, UNSUPPORTED for what is valid but not read here (encryption, brotli), LIMIT where the
 * caller's limits end; messages name the column's path, the row group and the byte offset. An
 * opened file does not change and may be shared by threads; a reader belongs to one at a time.
 */
#ifndef SLUICE_FORMAT_PARQUET_PARQUET_READER_H
#define SLUICE_FORMAT_PARQUET_PARQUET_READER_H

#include "base/base.h"
#include "format/arrow/arrow.h"

/* ---- the file ---- */

struct parquet_limits {
    size_t metadata_bytes_max;  /* of a footer, and of what it becomes in memory; 256 MiB */
    uint32_t element_count_max; /* of a schema, groups counted; 100,000 */
    uint32_t depth_max;         /* of groups in groups; 64 */
    size_t page_bytes_max;      /* of one page, expanded; 1 GiB */
    /* Of a batch, and again each: of what is fetched for it, of its pages expanded, and of the
     * levels while it is made; 4 GiB. */
    size_t batch_bytes_max;
};

struct parquet_limits parquet_limits_default(void);

enum parquet_physical {
    PARQUET_BOOLEAN = 0,
    PARQUET_INT32 = 1,
    PARQUET_INT64 = 2,
    PARQUET_INT96 = 3,
    PARQUET_FLOAT = 4,
    PARQUET_DOUBLE = 5,
    PARQUET_BYTE_ARRAY = 6,
    PARQUET_FIXED = 7,
};

/* What a leaf's annotation says, new and old forms taken together. Kinds without an Arrow type of
 * ours stay in the physical one: see parquet_leaf. */
enum parquet_kind {
    PARQUET_KIND_NONE,
    PARQUET_KIND_STRING, /* UTF-8; also ENUM and JSON */
    PARQUET_KIND_INTEGER,
    PARQUET_KIND_DATE,
    PARQUET_KIND_TIME,
    PARQUET_KIND_TIMESTAMP,
    PARQUET_KIND_DECIMAL,
    PARQUET_KIND_UUID,
    PARQUET_KIND_FLOAT16,
    PARQUET_KIND_INTERVAL, /* of 12 bytes: months, days, milliseconds, uint32 each */
    PARQUET_KIND_OTHER,    /* BSON, GEOMETRY, ... */
};

enum parquet_unit { PARQUET_MILLIS, PARQUET_MICROS, PARQUET_NANOS };

/* A column of the file. Its Arrow type: BOOLEAN bool; INT32 int32 (unsigned 32 bits int64), INT64
 * int64 (unsigned: the same bits), dates date32, timestamps in ms and us timestamp[us], INT96
 * timestamp[us] without a zone, rounded down; timestamps in ns and times the plain integer; FLOAT
 * and DOUBLE themselves; BYTE_ARRAY utf8 where it is STRING, else binary; FIXED fixed, UUID,
 * FLOAT16 and INTERVAL too; decimals as the physical type (bytes: big-endian). */
struct parquet_leaf {
    const char *path; /* "a.list.element" */
    const struct arrow_field *field;
    enum parquet_physical physical;
    uint32_t width; /* of FIXED */
    enum parquet_kind kind;
    enum parquet_unit unit; /* times and timestamps */
    bool is_utc;            /* the same: adjusted to UTC */
    bool is_zone_said;      /* by the new annotation; the old one says UTC where it may mean none */
    bool is_unsigned;       /* INTEGER */
    uint8_t bits;           /* INTEGER */
    int32_t precision, scale; /* DECIMAL */
    const char *extension;    /* "arrow.json", "parquet.enum", "parquet.bson", or NULL */
    const char *annotation;   /* of OTHER: what it is in the format, "null", "geometry"; or NULL */
    uint8_t max_def, max_rep;
    bool has_type_order; /* the footer says that bounds are ordered as the type is */
};

struct parquet_statistics {
    bool has_null_count, has_nan_count, has_min, has_max, is_min_exact, is_max_exact;
    int64_t null_count, nan_count;
    struct span min, max; /* PLAIN, byte arrays without length; the new fields only */
};

struct parquet_chunk {
    uint64_t offset, bytes; /* of all its pages, within the file */
    uint64_t plain_bytes;   /* what it says of itself not compressed */
    uint64_t value_count;   /* nulls counted; under lists, levels */
    int32_t codec;          /* as the format numbers them */
    uint32_t encodings;     /* 1 << encoding, or-ed */
    bool has_dictionary;
    struct parquet_statistics statistics;
    uint64_t column_index_offset, offset_index_offset, bloom_offset; /* 0: none */
    uint32_t column_index_bytes, offset_index_bytes, bloom_bytes;
    uint32_t footer_at; /* where it stands in the footer */
};

struct parquet_group {
    int64_t rows;
    uint64_t plain_bytes;
    struct parquet_chunk *chunks; /* one a leaf */
    uint32_t footer_at;
};

struct parquet_pair {
    const char *key, *value; /* `value` may be NULL */
};

struct parquet_file {
    struct byte_source source;
    struct parquet_limits limits;
    struct arrow_schema schema;
    struct parquet_leaf *leaves;
    uint32_t leaf_count;
    struct parquet_group *groups;
    size_t group_count;
    int64_t row_count;
    int32_t version;
    const char *created_by; /* NULL: not said */
    struct parquet_pair *pairs;
    size_t pair_count;
    struct span footer;
    uint64_t footer_offset;     /* in the file */
    uint32_t schema_at;         /* in the footer: the list of elements */
    struct parquet_node *nodes; /* one a field of the schema; private */
    struct arena arena;         /* owns everything above */
};

/* Reads the footer: the last 8 bytes, then as many as they say. The source must outlive the file.
 */
enum status parquet_file_open(struct byte_source source, const struct parquet_limits *limits,
                              struct parquet_file **out_file, struct error *err) MUST_CHECK;
void parquet_file_close(struct parquet_file *file); /* accepts NULL */

/* "snappy", "ZSTD" of the format's numbers; "?" for those it does not have. */
const char *parquet_codec_name(int32_t codec);
const char *parquet_encoding_name(int encoding);
const char *parquet_physical_name(enum parquet_physical physical);

/* ---- reading ---- */

/* What batches were made of, for batches to come: fresh memory costs as much as decoding into it.
 * It belongs to one thread at a time, with all readers that use it; batches may be released by any,
 * even when it is destroyed, from when on what they give back is freed. */
struct parquet_memory;

/* Keeps `bytes_max` at most; NULL: no memory. */
struct parquet_memory *parquet_memory_create(size_t bytes_max);
void parquet_memory_destroy(struct parquet_memory *memory); /* accepts NULL */

struct parquet_read_options {
    /* What is wanted, in this order; NULL: all that the file has. Lists, maps and structs may name
     * fewer children than the file has. What the file does not have is null. A leaf that
     * is_dictionary (utf8, binary) stays a dictionary. int32 becomes int64, float double, a decimal
     * one of more digits where that is wanted, milliseconds seconds, int64 a duration, a list one
     * of a fixed size; else a field with an origin (arrow_file.h) is what the file's annotation
     * must say. Borrowed until the reader is destroyed. */
    const struct arrow_schema *schema;
    /* The schema is the file's own or a part of it: values as the file has them, whatever their
     * annotations say. So it is without a schema. */
    bool keeps_physical;
    bool binds_by_id; /* fields with an id are found by it, at every level, and never by name */
    bool skips_checksums;
    struct parquet_memory *memory; /* shared by some readers; NULL: the reader's own, of 256 MiB */
};

struct parquet_reader;

/* INVALID: a column of another type than is wanted, or a required one that the file has not. (A
 * column wanted twice within another one is found when a row group is read.) */
enum status parquet_reader_create(const struct parquet_file *file,
                                  const struct parquet_read_options *options,
                                  struct parquet_reader **out_reader, struct error *err) MUST_CHECK;
void parquet_reader_destroy(struct parquet_reader *reader); /* accepts NULL */

/* The schema of the batches; lives as long as the reader. */
const struct arrow_schema *parquet_reader_schema(const struct parquet_reader *reader);

struct parquet_range {
    uint64_t offset, bytes;
    uint32_t leaf;
};

/* How many ranges every row group has, and which; in schema order, none over another in an honest
 * file. */
size_t parquet_reader_range_count(const struct parquet_reader *reader);
void parquet_reader_plan(const struct parquet_reader *reader, size_t group,
                         struct parquet_range *out_ranges);

/* The rows of a group from the bytes of its ranges, which may be freed afterwards. The batch owns
 * its memory (and borrows the schema): it may outlive the reader, and be released by any thread.
 * What is large of a batch that is released goes to the reader's memory. */
enum status parquet_reader_decode(struct parquet_reader *reader, size_t group,
                                  const struct span *ranges, struct arrow_batch *out_batch,
                                  struct error *err) MUST_CHECK;

/* Plan, fetch and decode. CORRUPT where the chunks together are longer than the file. */
enum status parquet_reader_read(struct parquet_reader *reader, size_t group,
                                struct arrow_batch *out_batch, struct error *err) MUST_CHECK;

/* ---- some rows of a group ---- */

struct parquet_row_range {
    int64_t first, count;
};

/* Which bytes the rows of a group take: pages by the offset index, each chunk that has none whole;
 * near ones together. */
struct parquet_plan {
    struct parquet_range *ranges; /* rising, apart from each other; `leaf` is the first in each */
    size_t range_count;
    size_t group;
    const struct parquet_row_range *rows; /* borrowed */
    size_t row_range_count;
    int64_t row_count;
    struct planned_leaf *leaves; /* private */
    struct arena arena;          /* owns them */
};

/* `rows` are rising, within the group, apart from each other, none empty; borrowed until the plan
 * is done with. Fetches offset indexes. CORRUPT where one contradicts itself, its chunk or the
 * row group. */
enum status parquet_reader_plan_rows(struct parquet_reader *reader, size_t group,
                                     const struct parquet_row_range *rows, size_t count,
                                     struct parquet_plan *out_plan, struct error *err) MUST_CHECK;
void parquet_plan_deinit(struct parquet_plan *plan); /* accepts a zeroed one */

/* Those rows, in order, from the bytes of the plan's ranges. CORRUPT also where the pages are not
 * what the offset index says. */
enum status parquet_reader_decode_rows(struct parquet_reader *reader, struct parquet_plan *plan,
                                       const struct span *ranges, struct arrow_batch *out_batch,
                                       struct error *err) MUST_CHECK;
/* Plan, fetch and decode. */
enum status parquet_reader_read_rows(struct parquet_reader *reader, size_t group,
                                     const struct parquet_row_range *rows, size_t count,
                                     struct arrow_batch *out_batch, struct error *err) MUST_CHECK;

/* ---- what annotations say ---- */

/* All columns of the file with what their annotations say, to be wanted as they are: fields that
 * have no Arrow type of ours get an origin (arrow_file.h): decimals of 16 or 32 bytes, times,
 * timestamps in ms and ns, small and unsigned integers, half floats, intervals, UUIDs, JSON. Owned
 * by `arena`. A value that such a type cannot hold is found when its row group is read: CORRUPT. */
enum status parquet_logical_schema(const struct parquet_file *file, struct arena *arena,
                                   struct arrow_schema *out_schema, struct error *err) MUST_CHECK;

/* The same with what the Arrow schema that the file was given along (ARROW:schema) says beyond the
 * annotations, as far as it fits them: zone names, durations, seconds, days in milliseconds, widths
 * of decimals, large types, views and lists of a fixed size, names of elements, extensions,
 * metadata of columns. Text and bytes that were dictionaries are such again, with int32 indices if
 * they had smaller ones, in no order. Names and types are always the file's. `out_was_arrow`: there
 * is such a schema, of as many columns; a damaged one is none. NO_MEMORY. */
enum status parquet_original_schema(const struct parquet_file *file, struct arena *arena,
                                    struct arrow_schema *out_schema, bool *out_was_arrow,
                                    struct error *err) MUST_CHECK;

#define PARQUET_ARROW_SCHEMA_KEY "ARROW:schema"

/* Marks the leaves of `names`, one a leaf of the file: each with everything below it. A name is
 * steps with dots between them: "a.b" within structs, "l.element.b" within lists, "m.key" and
 * "m.value.b" within maps. A step in double quotes may have any characters in it, a quote twice.
 * What is not found so may be a column's name, or a leaf's path, as it stands. NOT_FOUND names the
 * one that is not there; then nothing is marked. What was marked before stays. */
enum status parquet_leaves_select(const struct parquet_file *file, const char *const *names,
                                  size_t count, bool *inout_leaves, struct error *err) MUST_CHECK;

/* The fields of marked leaves from a file's schema, in the file's order, owned by `arena`. Maps
 * keep their keys, and their values if nothing of those is marked: what is kept so is marked too.
 */
enum status parquet_schema_of_leaves(const struct parquet_file *file, bool *inout_leaves,
                                     struct arena *arena, struct arrow_schema *out_schema,
                                     struct error *err) MUST_CHECK;

/* Both in one. */
enum status parquet_schema_select(const struct parquet_file *file, const char *const *names,
                                  size_t count, struct arena *arena,
                                  struct arrow_schema *out_schema, struct error *err) MUST_CHECK;

#include "format/parquet/parquet_filter.h"
#include "format/parquet/parquet_inspect.h"

#endif
