/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a Parquet file by what is in them, without reading what cannot match. Part of parquet.h.
 * Source: Apache Parquet format 2.13, PageIndex.md, BloomFilter.md.
 *
 * A filter joins conditions on leaves outside lists and maps by "and" and "or". What a row group's
 * statistics, Bloom filters and page indexes rule out is not read; of the pages that are left the
 * filter's columns come first and are looked at exactly, then the pages of the other columns that
 * hold rows that match.
 *
 * Rows match as in SQL: a null matches "is null" alone. Floats compare as IEEE 754 says: a NaN
 * differs from everything and is neither less nor greater. Unsigned integers compare as such,
 * decimals and times by their numbers, text and bytes by their bytes.
 *
 * Bounds are believed where the file says that they have the order of their type; those of INT96,
 * half floats and types without an order are not used. What an index says of places is held against
 * the chunk when it is read, and against the pages when they are: CORRUPT where they contradict
 * each other. That bounds hold is parquet_file_verify's to show; a filter cannot know.
 *
 * Statuses as in parquet_reader.h. A filter does not change and may be shared; a scan belongs to
 * one thread at a time.
 */
#ifndef SLUICE_FORMAT_PARQUET_PARQUET_FILTER_H
#define SLUICE_FORMAT_PARQUET_PARQUET_FILTER_H

#include "format/parquet/parquet_reader.h"

/* ---- filters ---- */

enum parquet_operator {
    PARQUET_EQUAL,
    PARQUET_NOT_EQUAL,
    PARQUET_LESS,
    PARQUET_LESS_EQUAL,
    PARQUET_GREATER,
    PARQUET_GREATER_EQUAL,
    PARQUET_IS_NULL,
    PARQUET_IS_NOT_NULL,
    PARQUET_IN,
};

/* By the leaf's type: `integer` for booleans, integers (unsigned ones: the same bits), dates, times
 * and timestamps in the file's unit (INT96: us), decimals of INT32 and INT64, unscaled; `real` for
 * floats, half ones too; `bytes` for the others, decimals among them as big-endian two's complement
 * of any length but 0. */
struct parquet_value {
    int64_t integer;
    double real;
    struct span bytes; /* borrowed */
};

struct parquet_condition {
    uint32_t leaf;
    enum parquet_operator op;
    const struct parquet_value *values; /* borrowed; one, of IN any number, of IS NULL none */
    size_t value_count;
};

enum parquet_term_kind { PARQUET_TERM_CONDITION, PARQUET_TERM_AND, PARQUET_TERM_OR };

struct parquet_term {
    enum parquet_term_kind kind;
    uint32_t number; /* of the condition; of AND and OR, how many terms they join, 1 at least */
};

/* Terms stand before those that they join: a or (b and c) is OR 2, a, AND 2, b, c. Without terms
 * all conditions must hold. */
struct parquet_filter {
    const struct parquet_condition *conditions; /* borrowed; none: every row matches */
    size_t count;
    const struct parquet_term *terms; /* borrowed; one within another at most 64 deep */
    size_t term_count;
};

/* The leaf of a path ("a", "a.b"). NOT_FOUND; USAGE: it lies in a list or a map, or there are two.
 */
enum status parquet_filter_leaf(const struct parquet_file *file, struct span path,
                                uint32_t *out_leaf, struct error *err) MUST_CHECK;

/* Conditions of a text, joined by "and" and, less tightly, "or"; brackets group them:
 *
 *   trace_id = x'0af7' and (duration >= 1000 or status is not null and kind in (1, 2))
 *
 * Operators are =, != (or <>), <, <=, >, >=, is null, is not null, in (...). Names are bare words
 * with dots, or stand in double quotes, where a quote is doubled. Literals are read as their column
 * says: true, false; numbers, nan and inf among them for floats; 'text', a quote doubled;
 * x'00ff' bytes; '2026-01-31', '12:30:00.5', '2026-01-31T12:30:00Z' (or an offset) for dates,
 * times, timestamps; a UUID in quotes. What a column cannot hold exactly is refused. Everything is
 * owned by `arena`. INVALID and USAGE with the byte of the text. */
enum status parquet_filter_parse(const char *text, const struct parquet_file *file,
                                 struct arena *arena, struct parquet_filter *out_filter,
                                 struct error *err) MUST_CHECK;

/* ---- pruning ---- */

/* What a scan has done so far. */
struct parquet_scan_facts {
    uint64_t group_count;                                                  /* looked at */
    uint64_t statistics_group_count, bloom_group_count, index_group_count; /* ruled out, by what */
    uint64_t row_count, read_row_count, match_count; /* of the groups, looked at, found */
    uint64_t page_count;                             /* data pages that were decoded */
    uint64_t index_fetch_count, index_bytes;         /* page indexes and Bloom filters */
    uint64_t page_fetch_count, page_bytes;
};

/* The rows of a group that may match, rising, apart from each other, owned by `arena`; none: the
 * group is ruled out. Adds to facts. */
enum status parquet_filter_prune(const struct parquet_file *file,
                                 const struct parquet_filter *filter, size_t group,
                                 struct arena *arena, struct parquet_row_range **out_rows,
                                 size_t *out_count, struct parquet_scan_facts *inout_facts,
                                 struct error *err) MUST_CHECK;

/* ---- scans ---- */

struct parquet_scan_options {
    struct parquet_filter filter;
    struct parquet_read_options read; /* of what is wanted of the rows that match */
    uint64_t rows_max;                /* the scan ends with so many; 0: with all */
    bool skips_pruning; /* every row is looked at: the same rows come out, more slowly */
};

struct parquet_scan;

/* The file, what the filter names and the schema that is wanted are borrowed. USAGE: a condition on
 * a leaf in a list or with the wrong number of values; terms that are not one filter. */
enum status parquet_scan_create(const struct parquet_file *file,
                                const struct parquet_scan_options *options,
                                struct parquet_scan **out_scan, struct error *err) MUST_CHECK;
void parquet_scan_destroy(struct parquet_scan *scan); /* accepts NULL */

/* The schema of the batches; lives as long as the scan. */
const struct arrow_schema *parquet_scan_schema(const struct parquet_scan *scan);

/* The rows of the next row group that has some, all of those that match, in order. The caller
 * deinits the batch. NOT_FOUND at the end. */
enum status parquet_scan_next(struct parquet_scan *scan, struct arrow_batch *out_batch,
                              struct error *err) MUST_CHECK;

struct parquet_scan_facts parquet_scan_facts(const struct parquet_scan *scan);

#endif
