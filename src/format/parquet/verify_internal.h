/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files that hold what a file says against what it is: verify.c has the values and
 * the walk over chunks, verify_footer.c the sizes and encodings of chunks and groups,
 * verify_statistics.c what else statistics say, verify_sizes.c those of sizes, verify_sort.c the
 * order of rows, verify_layout.c and verify_schema.c what belongs to no chunk. page_list.c lists
 * pages for all of them.
 */
#ifndef SLUICE_FORMAT_PARQUET_VERIFY_INTERNAL_H
#define SLUICE_FORMAT_PARQUET_VERIFY_INTERNAL_H

#include "format/parquet/parquet_inspect.h"
#include "format/parquet/prune_internal.h"

/* ---- pages ---- */

/* A chunk whose bytes are at hand. */
struct chunk_bytes {
    size_t group;
    uint32_t leaf;
    uint64_t offset;
    struct span bytes;
    const struct offset_index *offsets; /* NULL, or without pages: none */
    const struct column_index *index;
    bool checks_checksums;
};

/* Group and leaf must be set. `arena` owns the bytes. */
enum status chunk_fetch(const struct parquet_file *file, struct arena *arena,
                        struct chunk_bytes *inout_chunk, struct error *err) MUST_CHECK;
/* parquet_file_pages over it. */
enum status pages_visit(const struct parquet_file *file, const struct chunk_bytes *chunk,
                        enum status (*visit)(void *context, const struct parquet_page_facts *page,
                                             struct error *err),
                        void *context, struct error *err) MUST_CHECK;

/* ---- a chunk ---- */

/* Bounds, and which of them some value has. */
struct bounds {
    struct parquet_value min, max;
    bool is_said, has_min, has_max;
};

enum { LEVEL_COUNT = 256 };

/* What size statistics count. */
struct sizes {
    int64_t unencoded_bytes;
    int64_t rep[LEVEL_COUNT], def[LEVEL_COUNT];
};

/* Copies of them in the page indexes, a page each. */
struct page_sizes {
    struct parquet_histogram unencoded_bytes;
    struct parquet_histogram rep, def; /* of a page as many as there are levels */
};

/* Under lists there are three readings of it: every level without a value, every slot without one,
 * nulls of the leaf itself. */
struct null_counts {
    int64_t levels, slots, own;
};

/* Statistics as they stand in front of a page. */
struct page_statistics {
    struct parquet_statistics said;
    struct span old_min, old_max; /* `data` NULL: not said */
    int64_t distinct_count;       /* -1: not said */
};

struct checker {
    const struct parquet_file *file;
    const struct parquet_leaf *about;
    const struct parquet_chunk *chunk;
    struct parquet_chunk_facts facts;
    struct chunk_bytes bytes; /* says which chunk it is */
    struct group_index *places;
    struct offset_index offsets;
    struct column_index index;
    size_t page, page_count; /* of the two */
    struct bounds bounds, old_bounds;
    const struct page_bounds *last; /* page with values, of the column index */
    struct null_counts nulls;
    int64_t value_count, nan_count; /* without nulls */
    uint8_t slot_def;               /* levels from here on are slots of the innermost list */
    bool is_optional;               /* the leaf itself */
    bool has_seen_dictionary;
    struct buf hashes; /* uint64, of values: where it is said how many differ */
    struct sizes sizes;
    struct page_sizes said_sizes;
    struct span bloom;
    struct arena arena;
    struct error *err;
};

enum status checker_fault(const struct checker *checker, uint64_t offset,
                          const char *what) MUST_CHECK;
enum status checker_wrong_count(const struct checker *checker, uint64_t offset, const char *what,
                                int64_t is, int64_t said) MUST_CHECK;

/* ---- verify_footer.c ---- */

/* What the footer says of a chunk, against its pages' headers. */
enum status verify_chunk_facts(struct checker *checker) MUST_CHECK;
/* What it says of a row group, against its chunks. */
enum status verify_group_facts(const struct parquet_file *file, size_t group,
                               struct error *err) MUST_CHECK;

/* ---- verify_schema.c ---- */

enum status verify_schema(const struct parquet_file *file, struct error *err) MUST_CHECK;

/* ---- verify_sizes.c ---- */

/* The copies that the indexes have; and that the indexes have no byte more than they need. */
enum status verify_load_sizes(struct checker *checker) MUST_CHECK;
/* Counts a page that was read, and holds what is said of it against that. */
enum status verify_page_sizes(struct checker *checker, const struct leaf_reader *reader,
                              const struct page *page, size_t levels) MUST_CHECK;
enum status verify_chunk_sizes(const struct checker *checker) MUST_CHECK;

/* ---- verify_statistics.c ---- */

/* False: they are damaged. */
bool verify_read_statistics(struct span bytes, struct page_statistics *out_statistics);
/* Bounds have the length of their type, and are NaN only where some value is: so parquet-java has
 * them. `value_count`: of the values that they are of, without nulls. */
enum status verify_bounds(const struct checker *checker, uint64_t at,
                          const struct parquet_statistics *said, int64_t value_count,
                          int64_t nan_count) MUST_CHECK;
/* Their length; `data` NULL: not said. What NaN is to them was never written down. */
enum status verify_old_bounds(const struct checker *checker, uint64_t at, struct span min,
                              struct span max) MUST_CHECK;
/* Nulls of the levels of a page of which `def` are the definition levels. */
struct null_counts verify_count_nulls(const struct checker *checker, const uint8_t *def,
                                      size_t levels);
enum status verify_null_count(const struct checker *checker, uint64_t at, int64_t said,
                              const struct null_counts *nulls) MUST_CHECK;
/* One more value of the chunk. Past some millions that differ they are no longer counted. */
void verify_add_distinct(struct checker *checker, struct span plain);
/* Of the chunk, from the hashes. */
enum status verify_distinct_count(struct checker *checker) MUST_CHECK;
/* Before the first page of values, whether a dictionary that is said to be sorted is. */
enum status verify_dictionary(struct checker *checker, const struct leaf_reader *reader) MUST_CHECK;
void verify_find_leaf(struct checker *checker); /* what its levels mean */

/* ---- verify_sort.c ---- */

enum status verify_sort_keys(const struct parquet_file *file, size_t group,
                             struct error *err) MUST_CHECK;

/* The bytes of a slot that has a value. */
struct span verify_slot(const struct leaf_reader *reader, size_t slot);
/* Reads a chunk within `bytes_max`; `watch` as in a leaf_reader, or NULL: all of it is kept. The
 * reader must be deinited in any case. */
enum status verify_read_leaf(const struct parquet_file *file, const struct chunk_bytes *chunk,
                             size_t bytes_max,
                             enum status (*watch)(void *context, const struct leaf_reader *reader,
                                                  const struct page *page, size_t levels),
                             void *context, struct leaf_reader *out_reader,
                             struct error *err) MUST_CHECK;

#endif
