/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by what looks at values and at what is said of them: filter_values.c has the order of each
 * type, page_index.c and bloom_read.c read what a file says, prune.c rules row groups and pages
 * out, scan.c looks at rows, verify.c at what is said.
 */
#ifndef SLUICE_FORMAT_PARQUET_PRUNE_INTERNAL_H
#define SLUICE_FORMAT_PARQUET_PRUNE_INTERNAL_H

#include "format/parquet/parquet_filter.h"
#include "format/parquet/reader_internal.h"

/* CORRUPT or `status` with the column, the row group and the byte offset. */
enum status chunk_fault(const struct parquet_file *file, size_t group, uint32_t leaf,
                        uint64_t offset, enum status status, struct error *err, const char *format,
                        ...) PRINTF_LIKE(7, 8);

/* ---- values and their order ---- */

/* How a leaf's values are kept in a parquet_value, and compared. */
enum value_class { CLASS_SIGNED, CLASS_UNSIGNED, CLASS_REAL, CLASS_BYTES, CLASS_DECIMAL };

enum value_class value_class_of(const struct parquet_leaf *leaf);

/* Each a bit, so that an operator is a set of them. NONE: one of both is NaN. */
enum { ORDER_LESS = 1, ORDER_SAME = 2, ORDER_GREATER = 4, ORDER_NONE = 8 };

int value_order(const struct parquet_leaf *leaf, const struct parquet_value *a,
                const struct parquet_value *b);
/* A value in PLAIN form, byte arrays without length. False: it is none of the leaf's type. */
bool value_load(const struct parquet_leaf *leaf, struct span plain,
                struct parquet_value *out_value);
/* Whether bounds of this leaf say anything. */
bool leaf_has_bounds(const struct parquet_leaf *leaf);
/* The orders in which a value of the row may stand to that of the condition. */
int operator_orders(enum parquet_operator op);

/* Clears the bytes (one a slot) of slots that do not match. The array is that of the leaf's field,
 * or a dictionary of such. NO_MEMORY for what is made of the dictionary. */
enum status condition_apply(const struct parquet_file *file,
                            const struct parquet_condition *condition,
                            const struct arrow_field *field, const struct arrow_array *array,
                            uint8_t *inout_matches, struct error *err) MUST_CHECK;

/* USAGE: a condition that cannot be. */
enum status filter_check(const struct parquet_file *file, const struct parquet_filter *filter,
                         struct error *err) MUST_CHECK;

enum { FILTER_DEPTH_MAX = 64 };

/* The terms of a filter that was checked, one after the other; of one without terms those that it
 * stands for: AND of its conditions, of which there may be none. */
struct filter_walk {
    const struct parquet_filter *filter;
    size_t at;
};

void filter_walk_init(struct filter_walk *walk, const struct parquet_filter *filter);
struct parquet_term filter_walk_next(struct filter_walk *walk);

/* ---- what a file says of its values ---- */

struct page_bounds {
    bool is_null; /* no values but nulls */
    struct parquet_statistics statistics;
};

struct column_index {
    struct page_bounds *pages;
    size_t count;
    int64_t boundary_order; /* 1: rising, 2: falling */
    struct span bytes;      /* as it stands in the file */
};

/* Of a chunk that has one. Owned by `arena`. */
enum status column_index_read(const struct parquet_file *file, size_t group, uint32_t leaf,
                              struct fetches *fetches, struct arena *arena,
                              struct column_index *out_index, struct error *err) MUST_CHECK;

/* Where the blocks of a chunk's Bloom filter lie. */
struct bloom_place {
    uint64_t offset;
    size_t bytes; /* 0: none that can be used */
};

enum status bloom_find(const struct parquet_file *file, size_t group, uint32_t leaf,
                       struct fetches *fetches, struct bloom_place *out_place,
                       struct error *err) MUST_CHECK;
/* Whether a value may be in the chunk. */
enum status bloom_ask(const struct parquet_file *file, uint32_t leaf,
                      const struct bloom_place *place, const struct parquet_value *value,
                      struct fetches *fetches, bool *out_may_have, struct error *err) MUST_CHECK;

/* parquet_filter_prune with the offset indexes of `index`, whose fetches count too. */
enum status prune_group(struct group_index *index, const struct parquet_filter *filter,
                        size_t group, struct arena *arena, struct parquet_row_range **out_rows,
                        size_t *out_count, struct parquet_scan_facts *inout_facts,
                        struct error *err) MUST_CHECK;

#endif
