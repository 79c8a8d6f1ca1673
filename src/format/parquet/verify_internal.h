/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files that hold what a file says against what it is: verify.c has the values and
 * the walk over chunks, verify_footer.c the sizes and encodings of chunks and groups,
 * verify_sizes.c the size statistics, verify_sort.c the order of rows, verify_layout.c and
 * verify_schema.c what belongs to no chunk. page_list.c lists pages for all of them.
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

struct checker {
    const struct parquet_file *file;
    const struct parquet_leaf *about;
    const struct parquet_chunk *chunk;
    struct parquet_chunk_facts facts;
    struct chunk_bytes bytes; /* says which chunk it is */
    struct group_index *places;
    struct offset_index offsets;
    struct column_index index;
    size_t page; /* of the two */
    struct bounds bounds, old_bounds;
    const struct page_bounds *last; /* page with values, of the column index */
    int64_t null_count, nan_count;
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
