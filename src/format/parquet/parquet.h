/* SPDX-License-Identifier: Apache-2.0
 *
 * Parquet files, written from Arrow batches (and read: parquet_reader.h). Source: Apache Parquet
 * format 2.13; page CRCs, chunk statistics, page index, Bloom filters. The defaults are what every
 * reader has: v1 data pages, PLAIN and RLE_DICTIONARY values. README.md beside this file says which
 * parts of the format are written and why.
 *
 * A writer is a stream: it holds at most one row group and emits bytes in file order through a
 * sink. What it returns at the end is what an Iceberg manifest wants to know about the file. No
 * global state; a writer belongs to one thread at a time.
 *
 * With an executor it spreads the columns over threads while a call lasts. The file is the same for
 * any number of them (of gzip the rows: its encoder does not always make the same of the same, even
 * alone); the caller's thread alone calls the sink. Each thread takes memory for a page and a
 * compressor; the dictionary pages of a row group are held, compressed, until they are written.
 */
#ifndef SLUICE_FORMAT_PARQUET_PARQUET_H
#define SLUICE_FORMAT_PARQUET_PARQUET_H

#include "base/base.h"
#include "format/arrow/arrow.h"
#include "format/parquet/parquet_reader.h"

enum parquet_compression {
    PARQUET_UNCOMPRESSED,
    PARQUET_ZSTD,
    PARQUET_SNAPPY,
    PARQUET_GZIP,
    PARQUET_LZ4_RAW,
};

/* Declares an order that the rows have; it is not checked. */
struct parquet_sorting_column {
    uint32_t field; /* index of a top-level field that is not nested */
    bool is_descending, is_nulls_first;
};

struct parquet_key_value {
    const char *key, *value;
};

/* How values are laid down. The first two keep a dictionary where it pays. */
enum parquet_values {
    PARQUET_VALUES_AUTO,     /* else PLAIN, which every reader has */
    PARQUET_VALUES_SMALLEST, /* else the encoding that makes the first page of a chunk smallest */
    PARQUET_VALUES_PLAIN,    /* this one and those below: no dictionary */
    PARQUET_VALUES_RLE,      /* booleans */
    PARQUET_VALUES_DELTA_BINARY_PACKED,     /* int32, int64 */
    PARQUET_VALUES_DELTA_LENGTH_BYTE_ARRAY, /* byte arrays */
    PARQUET_VALUES_DELTA_BYTE_ARRAY,        /* byte arrays, fixed */
    PARQUET_VALUES_BYTE_STREAM_SPLIT,       /* numbers, fixed */
};

/* Of the column at `path` ("a.b", "a.list.element"), or of all columns below it. */
struct parquet_column_options {
    const char *path;
    enum parquet_values values; /* AUTO: as the file's */
    bool has_bloom;             /* a Bloom filter a chunk; booleans have none */
};

struct parquet_options {
    enum parquet_compression compression; /* default ZSTD */
    int zstd_level;                       /* default 1; gzip has level 1 alone */
    bool own_zstd_frames;                 /* default true: pages of 64-bit integers and of ids in
                                           * hexadecimal are laid out without libzstd where they come
                                           * out about as small: faster, for any decoder */
    int64_t row_group_rows;               /* default 122,880 */
    size_t row_group_bytes;               /* encoded, default 256 MiB; closes a group early */
    uint64_t row_group_plain_bytes;       /* what a reader gets, each value as often as it stands in
                                           * a row: default 512 MiB; one row may pass it */
    int64_t page_rows;                    /* default 20,000 */
    size_t page_bytes;                    /* not compressed, default 1 MiB; one row may pass it */
    size_t dictionary_bytes_max;          /* of a column chunk, default 4 MiB; 0: no dictionaries */
    int page_version;                     /* of data pages, 1 (default) or 2 */
    enum parquet_values values;           /* of the columns whose type has that encoding */
    const struct parquet_column_options *columns; /* later ones win */
    size_t column_count;
    const char *created_by;                   /* "name version X.Y.Z (build hash)" */
    const struct parquet_key_value *metadata; /* of the footer */
    size_t metadata_count;
    /* What the columns were in Arrow, for readers that know it: kept as ARROW:schema; NULL
     * (default): not kept. The writer's schema, or that with dictionaries. */
    const struct arrow_schema *arrow_schema;
    const struct parquet_sorting_column *sorting;
    size_t sorting_count;
    struct executor executor; /* lives as long as the writer; default none: the caller's thread */
};

struct parquet_options parquet_options_default(void);

/* ---- what a manifest wants to know ---- */

struct parquet_column_metrics {
    int32_t field_id;
    int64_t column_bytes; /* of its chunks in the file: pages, headers and dictionaries */
    int64_t value_count;  /* nulls included; under lists and maps: levels */
    int64_t null_count;
    int64_t nan_count; /* -1: not a floating-point column */
    /* Iceberg single-value serialization, text cut to 16 code points, binary to 16 bytes. Absent
     * under lists and maps, for columns of nulls, and (both) for columns with a NaN. */
    bool has_lower, has_upper;
    struct span lower, upper;
};

struct parquet_file_metrics {
    uint64_t file_bytes;
    int64_t row_count;
    int64_t *split_offsets; /* where the row groups begin */
    size_t split_offset_count;
    struct parquet_column_metrics *columns; /* one a leaf, in schema order */
    size_t column_count;
    struct arena arena; /* owns everything above */
};

void parquet_file_metrics_deinit(struct parquet_file_metrics *metrics); /* accepts a zeroed one */

/* ---- writer ---- */

struct parquet_writer;

/* Copies `schema` and `options`; every field with a field id carries it into the file, and nothing
 * is written before the first row group is full. Fields with an origin (arrow_file.h) become the
 * Parquet type of what they were: small and unsigned integers, half floats, decimals, times,
 * timestamps (of seconds in milliseconds), UUIDs; durations plain int64. USAGE: a schema that
 * Parquet cannot hold (no columns, nesting deeper than 32, structs without children, intervals,
 * decimals of a negative scale), or a bad option. */
enum status parquet_writer_create(const struct arrow_schema *schema,
                                  const struct parquet_options *options, struct sink sink,
                                  struct parquet_writer **out_writer, struct error *err) MUST_CHECK;

/* Appends rows; `batch` must have an equal schema (dictionaries may come and go: a field may be a
 * dictionary in one batch and plain in another) and valid arrays, and may be freed afterwards.
 * INVALID: a null where the schema has none, a mismatched schema, a value that
 * its type cannot hold (a decimal of more bytes, a date that is no whole day). After any
 * failure only destroy is left. */
enum status parquet_writer_write(struct parquet_writer *writer, const struct arrow_batch *batch,
                                 struct error *err) MUST_CHECK;

/* Adds to the footer's key-value pairs; any time before finish. Copies. */
enum status parquet_writer_add_metadata(struct parquet_writer *writer, const char *key,
                                        const char *value, struct error *err) MUST_CHECK;

/* Writes the last row group, the page index and the footer. A file of no rows is a valid file. The
 * caller owns `out_metrics` (parquet_file_metrics_deinit). */
enum status parquet_writer_finish(struct parquet_writer *writer,
                                  struct parquet_file_metrics *out_metrics,
                                  struct error *err) MUST_CHECK;

int64_t parquet_writer_rows(const struct parquet_writer *writer);   /* taken so far */
uint64_t parquet_writer_bytes(const struct parquet_writer *writer); /* written and pending, about */

void parquet_writer_destroy(struct parquet_writer *writer); /* accepts NULL */

#endif
