/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands in a Parquet file beside its values, and whether it is true. Part of parquet.h.
 * Everything here reads, and keeps nothing; statuses are those of parquet_reader.h.
 */
#ifndef SLUICE_FORMAT_PARQUET_PARQUET_INSPECT_H
#define SLUICE_FORMAT_PARQUET_PARQUET_INSPECT_H

#include "format/parquet/parquet_reader.h"

/* ---- the footer ---- */

/* Types of pages, as the format numbers them. */
enum {
    PARQUET_PAGE_DATA = 0,
    PARQUET_PAGE_INDEX = 1,
    PARQUET_PAGE_DICTIONARY = 2,
    PARQUET_PAGE_DATA_V2 = 3,
    PARQUET_PAGE_TYPES,
};

static inline bool parquet_page_is_data(int32_t type)
{
    return type == PARQUET_PAGE_DATA || type == PARQUET_PAGE_DATA_V2;
}

/* How many pages of a type have an encoding. */
struct parquet_encoding_stat {
    int32_t page_type, encoding; /* as the format numbers them */
    int64_t count;
};

/* How many levels of each height there are, from 0 on. */
struct parquet_histogram {
    const int64_t *counts;
    size_t count; /* 0: not said */
};

/* What the footer says of a chunk and parquet_chunk does not have, or has only if it makes sense.
 * Numbers that are not said are -1; offsets are those of the file. */
struct parquet_chunk_facts {
    uint64_t at; /* where all this stands, in the file */
    int64_t file_offset, value_count, plain_bytes, stored_bytes;
    int64_t data_offset, index_page_offset, dictionary_offset;
    int64_t bloom_offset, bloom_bytes, offset_index_offset, offset_index_bytes;
    int64_t column_index_offset, column_index_bytes;
    const struct span *path; /* names, from the root on */
    size_t path_length;
    const int32_t *encodings;
    size_t encoding_count;
    const struct parquet_encoding_stat *encoding_stats;
    size_t encoding_stat_count;
    int64_t distinct_count;
    bool has_place_below_0;       /* an offset or length of a part of the file: it is none */
    struct span old_min, old_max; /* `data` NULL: not said */
    int64_t unencoded_bytes;
    struct parquet_histogram rep, def;
};

struct parquet_sort_key {
    int32_t leaf; /* as the footer says it: it may be none */
    bool is_descending, is_nulls_first;
};

struct parquet_group_facts {
    uint64_t at;
    int64_t plain_bytes, stored_bytes, file_offset, ordinal; /* -1: not said */
    bool has_number_below_0;                                 /* one of these is said, and is none */
    const struct parquet_sort_key *sort_keys;
    size_t sort_key_count;
};

/* Owned by `arena`, but for spans, which are the file's. */
enum status parquet_chunk_facts_read(const struct parquet_file *file, size_t group, uint32_t leaf,
                                     struct arena *arena, struct parquet_chunk_facts *out_facts,
                                     struct error *err) MUST_CHECK;
enum status parquet_group_facts_read(const struct parquet_file *file, size_t group,
                                     struct arena *arena, struct parquet_group_facts *out_facts,
                                     struct error *err) MUST_CHECK;

/* ---- pages ---- */

struct parquet_page_facts {
    uint64_t offset; /* of its header, in the file */
    uint32_t header_bytes;
    int32_t stored_bytes, plain_bytes;        /* without the header */
    int32_t type, encoding;                   /* as the format numbers them; encoding -1: none */
    int64_t values;                           /* nulls counted; of a dictionary: entries */
    int64_t first_row, row_count, null_count; /* -1: not said; rows are the row group's */
    bool has_checksum, is_checksum_right;
    bool has_bounds;
    struct span min, max; /* of the column index, PLAIN */
};

/* Shows each page of a chunk, of every kind, in order. What the page indexes say of it is there if
 * they make sense. A status that `visit` returns ends it. */
enum status parquet_file_pages(const struct parquet_file *file, size_t group, uint32_t leaf,
                               enum status (*visit)(void *context,
                                                    const struct parquet_page_facts *page,
                                                    struct error *err),
                               void *context, struct error *err) MUST_CHECK;

/* ---- is it true ---- */

/* Holds what the footer says of the whole file against it: the magic in front, annotations old and
 * new, and that each byte belongs to one part: a chunk, an index, a filter, the footer. CORRUPT
 * names the first that is not so. */
enum status parquet_file_verify_layout(const struct parquet_file *file,
                                       struct error *err) MUST_CHECK;

/* Holds what the file says of a row group against its pages and values: sizes, encodings, counts,
 * values that differ, bounds of chunks and pages (in headers too) and whether they are exact, the
 * order of dictionaries, size statistics, the order of pages, where
 * they lie and with which row they begin, Bloom filters, the columns that rows are sorted by. */
enum status parquet_file_verify(const struct parquet_file *file, size_t group,
                                struct error *err) MUST_CHECK;

#endif
