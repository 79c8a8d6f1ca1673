/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of this module.
 *
 * A leaf is a column of Parquet: it has a path of Arrow fields from the root, a page that is being
 * filled (levels and values), and a chunk of finished pages. shred.c turns Arrow rows into levels
 * and values, column.c makes pages and chunks of them, footer.c writes what is known about them.
 */
#ifndef SLUICE_FORMAT_PARQUET_PARQUET_INTERNAL_H
#define SLUICE_FORMAT_PARQUET_PARQUET_INTERNAL_H

#include "format/codec/codec.h"
#include "format/parquet/numbers_internal.h"
#include "format/parquet/parquet.h"
#include "format/parquet/zstd_frame_internal.h"

/* ---- numbers of the format ---- */

enum { NESTING_MAX = 32, BOUND_BYTES_MAX = 64 };

/* ---- values ---- */

/* How values are ordered for their bounds: as their physical type, or by what they mean. */
enum value_order {
    ORDER_BOOLEAN = PARQUET_BOOLEAN,
    ORDER_INT32 = PARQUET_INT32,
    ORDER_INT64 = PARQUET_INT64,
    ORDER_FLOAT = PARQUET_FLOAT,
    ORDER_DOUBLE = PARQUET_DOUBLE,
    ORDER_BYTE_ARRAY = PARQUET_BYTE_ARRAY,
    ORDER_FIXED = PARQUET_FIXED,
    ORDER_UINT32,
    ORDER_UINT64,
    ORDER_BIG_ENDIAN, /* decimals */
    ORDER_NONE,       /* no bounds: half floats, where readers differ */
};

/* Least and greatest of some values, as spans of their PLAIN bytes (byte arrays without length). */
struct extent {
    bool is_set;
    struct span min, max;
};

/* The same, with the bytes owned: the first of them, where they are many. */
struct owned_extent {
    bool is_set;
    struct buf min, max;
};

int value_compare(enum value_order order, struct span a, struct span b);
void extent_add(enum value_order order, struct extent *extent, struct span value);
/* Over PLAIN values; NaN is skipped (and counted when it was appended). `width` 0: byte arrays. */
void extent_add_plain(enum value_order order, uint32_t width, struct extent *extent,
                      struct span plain);
void extent_merge(enum value_order order, struct owned_extent *extent, const struct extent *more);
void owned_extent_clear(struct owned_extent *extent);
void owned_extent_deinit(struct owned_extent *extent);

/* A lower bound of `value` of at most `bytes_max` bytes, text cut between code points. */
struct span bound_lower(struct span value, size_t bytes_max, bool is_text);
/* An upper bound: the value itself if it is short, else its beginning with the last place that can
 * grow grown. False: there is none so short. `out` is written only for a grown one. */
bool bound_upper(struct span value, size_t bytes_max, bool is_text, struct buf *out,
                 struct span *out_bound);
/* Bytes of the first `count` code points. */
size_t code_points_bytes(struct span text, size_t count);
/* A zero as a least value is -0.0, as a greatest +0.0, since the two are equal in order. */
void bound_fix_zero(enum value_order order, uint8_t *value, bool is_lower);

/* ---- dictionaries ---- */

/* A value of at most 16 bytes is known by its length and its two words, so that a look into the
 * page is rare. */
struct dictionary_entry {
    uint64_t first, last;  /* its first and its last eight bytes; of fewer: they, zeros, and 0 */
    uint32_t start, bytes; /* in the dictionary's page */
};

/* The values of a chunk, in the order of their first appearance, as the dictionary page has them.
 */
struct dictionary {
    bool is_fixed; /* values without a length in front */
    uint32_t count;
    struct buf page;    /* PLAIN */
    struct buf entries; /* struct dictionary_entry */
    uint32_t *slots;    /* upper bits of the hash, index + 1 */
    size_t mask;
    uint64_t seed;
};

void dictionary_init(struct dictionary *dictionary, bool is_fixed);
void dictionary_clear(struct dictionary *dictionary);
void dictionary_deinit(struct dictionary *dictionary);
/* The indices of `count` values, added where they are new. False: no memory, and `out_indices` may
 * hold anything. */
bool dictionary_put(struct dictionary *dictionary, const struct span *values, size_t count,
                    uint32_t *out_indices) MUST_CHECK;

static inline struct dictionary_entry *dictionary_entry(const struct dictionary *dictionary,
                                                        uint32_t index)
{
    return (struct dictionary_entry *)(void *)dictionary->entries.data + index;
}

static inline struct span dictionary_get(const struct dictionary *dictionary, uint32_t index)
{
    const struct dictionary_entry *entry = dictionary_entry(dictionary, index);
    return span_of(dictionary->page.data + entry->start, entry->bytes);
}

/* ---- encodings ---- */

/* RLE / bit-packed hybrid, without length or width in front. */
void encode_levels(struct buf *out, const uint8_t *levels, size_t count, unsigned width);
void encode_indices(struct buf *out, const uint32_t *indices, size_t count, unsigned width);
void encode_bits(struct buf *out, const uint8_t *bools, size_t count); /* PLAIN booleans */
unsigned bits_needed(uint32_t value);                                  /* 0 for 0 */
/* `count` PLAIN values (booleans a byte each; `width` 0: byte arrays) in any encoding but that of
 * dictionaries. */
void encode_values(struct buf *out, int encoding, enum parquet_physical type, uint32_t width,
                   uint64_t count, struct span plain);
bool encoding_fits(int encoding, enum parquet_physical type); /* PLAIN fits all */

/* Takes the next of PLAIN values off. */
static inline struct span next_plain(struct span *plain, uint32_t width)
{
    size_t head = width ? 0 : 4;
    size_t bytes = width ? width : get_le32(plain->data);
    struct span value = span_of(plain->data + head, bytes);
    *plain = span_of(plain->data + head + bytes, plain->length - head - bytes);
    return value;
}

/* ---- what the footer says ---- */

struct page_record {
    uint64_t offset;   /* from the chunk's first data page */
    uint32_t bytes;    /* with its header */
    int64_t first_row; /* in the row group */
    int64_t null_count, nan_count, unencoded_bytes;
    bool has_values, has_bounds;
    struct span min, max; /* at most BOUND_BYTES_MAX, where that can be */
};

struct chunk_record {
    uint64_t offset; /* in the file, of the dictionary page or the first data page */
    uint64_t data_offset;
    bool has_dictionary;
    int64_t level_count, null_count, nan_count, unencoded_bytes;
    uint64_t plain_bytes,
        stored_bytes;                  /* of all pages with headers, not compressed and as stored */
    uint32_t pages_of[ENCODING_COUNT]; /* data pages by their encoding */
    bool has_bounds, is_min_exact, is_max_exact;
    struct span min, max;
    int64_t *def_histogram, *rep_histogram;
    struct page_record *pages;
    size_t page_count;
    /* set when the index is written */
    uint64_t column_index_offset, offset_index_offset;
    uint32_t column_index_bytes, offset_index_bytes;
    uint64_t bloom_offset; /* 0 bytes: none */
    uint32_t bloom_bytes;
};

struct group_record {
    struct group_record *next;
    int64_t rows;
    struct chunk_record *chunks; /* one a leaf */
};

/* ---- leaves ---- */

struct path_step {
    const struct arrow_field *field;
    uint32_t child;        /* its place in its parent, or among the columns */
    uint8_t null_def, def; /* definition level of a null here, of a value here */
    uint8_t rep;           /* repetition level of all but the first slot of a list */
};

struct leaf {
    const struct arrow_field *field;
    struct path_step *path;
    uint32_t path_length;
    enum parquet_physical type;
    enum value_order order;
    uint32_t width; /* bytes of a value; 0: byte arrays */
    uint8_t max_def, max_rep;
    const struct parquet_options *options;
    bool has_bloom;
    bool has_own_encoding;     /* `encoding` was asked for: no dictionary */
    bool is_encoding_measured; /* that of pages without a dictionary follows from their values */

    /* the page being filled */
    struct buf rep, def; /* a byte a level */
    struct buf indices;  /* uint32 */
    struct buf used;     /* scratch: a byte an entry of the dictionary */
    struct buf plain;    /* PLAIN values; booleans a byte each */
    int64_t page_rows, page_levels, page_values, page_nans, page_unencoded;

    /* the chunk */
    bool is_plain;    /* no dictionary, or no more */
    bool is_sampled;  /* the dictionary was found to pay */
    bool is_unlucky;  /* the chunk before found that it does not */
    bool is_measured; /* a page was looked at both ways; holds for all chunks */
    int encoding;     /* of pages without a dictionary */
    bool is_encoding_chosen;
    struct buf hashes; /* uint64: of values that no dictionary keeps, for the Bloom filter */
    struct buf bloom;  /* the filter of the chunk just sealed */
    struct buf front;  /* the dictionary page of a sealed chunk, as stored */
    struct dictionary dictionary;
    int64_t chunk_rows, chunk_values;
    uint32_t dictionary_bytes;  /* of its page as stored */
    struct buf chunk;           /* finished data pages */
    struct buf pages;           /* struct page_record */
    struct chunk_record record; /* sums so far */
    struct owned_extent chunk_extent;

    /* indices: of which widths a page was made both ways, and of which of them whole bytes won */
    uint32_t judged_widths, loose_widths; /* a bit each, none of 32 */
    uint32_t wide_pages;

    /* zstd frames of our own, for pages that have a shape for them */
    enum zstd_shape shape; /* of PLAIN values, dictionary pages too */
    uint32_t shaped_pages;
    bool is_framed; /* as the last page found that was made both ways */

    /* the file */
    struct owned_extent file_extent;
    struct parquet_column_metrics metrics; /* sums so far; bounds at the end */
    uint64_t weight;                       /* of the chunk before: about what it took */

    /* the batch: slot of the source -> index in our dictionary, or UINT32_MAX */
    struct buf remap;
    const struct arrow_array *remap_source;
    /* Slots [row_from, row_to) of row_source have the last indices of the page. */
    const struct arrow_array *row_source;
    int64_t row_from, row_to;
    int64_t row_values;  /* of the last row that is a list or map; else 1 */
    int64_t row_misses;  /* of this chunk */
    bool has_other_rows; /* too many: its rows are not compared */
    bool failed;         /* no memory, found in the middle of an append */
};

/* What a thread makes pages with. */
struct page_scratch {
    struct codec_compressor *compressor; /* NULL: uncompressed */
    struct buf body, packed, other, trial, header;
    struct arena arena; /* records of pages; lives as long as the writer */
    /* What the thread met, the first by slice and then by leaf. */
    size_t failed_slice;
    uint32_t failed_leaf;
    struct error failure; /* status OK: nothing */
};

struct parquet_writer {
    struct parquet_options options; /* strings are the arena's */
    struct arrow_schema given;      /* of the batches */
    struct arrow_schema schema;     /* the same in types that Parquet has bytes for */
    bool is_converting;             /* the two differ */
    struct sink sink;
    struct leaf *leaves;
    uint32_t leaf_count;
    struct parquet_sorting_column *sorting; /* with leaf numbers */
    struct buf metadata;                    /* struct parquet_key_value */
    struct page_scratch *scratches;         /* one a thread */
    unsigned thread_count;                  /* 1: the caller's alone */
    uint32_t *order;                        /* of the leaves, as threads take them */
    bool is_ordered;                        /* for this row group */
    struct group_record *groups, *last_group;
    size_t group_count;
    int64_t group_rows, file_rows;
    uint64_t group_bytes; /* of its rows without dictionaries */
    uint64_t offset;      /* bytes written */
    struct arena arena;   /* schema, options, records */
};

/* ---- physical.c ---- */

/* Changes the fields to those of the same columns in types that Parquet has bytes for. USAGE for
 * what it has none for. */
enum status physical_fields(struct arrow_field *fields, uint32_t count, bool *inout_differ,
                            struct error *err) MUST_CHECK;
/* The values of such a column; `arena` owns what is new. INVALID: one that does not fit. */
enum status physical_array(const struct arrow_field *given, const struct arrow_field *field,
                           const struct arrow_array *from, struct arena *arena,
                           struct arrow_array *out_array, struct error *err) MUST_CHECK;
/* Of a leaf; `out_width`: bytes of a value, 0 for byte arrays. */
enum parquet_physical physical_type(const struct arrow_field *field, uint32_t *out_width);
enum value_order physical_order(const struct arrow_field *field, enum parquet_physical type);

/* ---- arrow_schema.c ---- */

/* Adds ARROW:schema to the footer's pairs. USAGE: it is of other columns than the writer has. */
enum status arrow_schema_keep(struct parquet_writer *writer, const struct arrow_schema *schema,
                              struct error *err) MUST_CHECK;

/* ---- row_bytes.c ---- */

/* Bytes of each entry of a column's dictionary, in `arena`; NULL: it is none. */
enum status column_sizes(const struct arrow_field *field, const struct arrow_array *column,
                         struct arena *arena, uint64_t **out_sizes, struct error *err) MUST_CHECK;
/* Bytes of rows without dictionaries. `sizes`: of column_sizes. */
uint64_t column_bytes(const struct arrow_field *field, const struct arrow_array *column,
                      const uint64_t *sizes, int64_t first, int64_t count);

/* ---- shred.c ---- */

/* Appends rows [first, first + count) of `column` to the leaf's page. INVALID: a null where none
 * may be. */
enum status leaf_shred(struct leaf *leaf, const struct arrow_array *column, int64_t first,
                       int64_t count, struct error *err) MUST_CHECK;
/* Bytes of the leaf's values in these rows, where that is quickly said: else 0. */
uint64_t leaf_row_bytes(const struct leaf *leaf, const struct arrow_array *column, int64_t first,
                        int64_t count);

/* Levels that the leaf gets of these rows, at most; LEVELS_UNKNOWN, which is past all bounds, where
 * they come through a dictionary of lists, maps or structs. */
#define LEVELS_UNKNOWN (UINT64_C(1) << 40)
uint64_t leaf_levels_max(const struct leaf *leaf, const struct arrow_array *column, int64_t first,
                         int64_t count);

/* ---- values.c ---- */

/* Array addresses may come again with other values. */
static inline void leaf_forget_sources(struct leaf *leaf)
{
    leaf->remap_source = leaf->row_source = NULL;
}

/* Appends the values of slots [first, first + count) that are not null. `is_repeating`: the slots
 * lie below a dictionary and come again. Failures are left in the leaf. */
void leaf_append_values(struct leaf *leaf, const struct arrow_array *array, int64_t first,
                        int64_t count, bool is_repeating);

/* ---- column.c ---- */

enum status leaf_init(struct leaf *leaf, const struct parquet_options *options,
                      struct error *err) MUST_CHECK;
void leaf_begin(struct leaf *leaf); /* once its options are known */
void leaf_deinit(struct leaf *leaf);
/* Appends rows of a batch and finishes pages as they fill. */
enum status leaf_write(struct page_scratch *scratch, struct leaf *leaf,
                       const struct arrow_array *column, int64_t first, int64_t count,
                       struct error *err) MUST_CHECK;
/* Finishes the chunk's pages: they, its dictionary page and its Bloom filter stay in the leaf. */
enum status leaf_seal_chunk(struct page_scratch *scratch, struct leaf *leaf,
                            struct error *err) MUST_CHECK;
/* A sealed chunk's bytes go to the sink, but for the Bloom filter, and what is known of it to
 * `out_record`. */
enum status leaf_put_chunk(struct parquet_writer *writer, struct leaf *leaf,
                           struct chunk_record *out_record, struct error *err) MUST_CHECK;
size_t leaf_bytes(const struct leaf *leaf); /* pending, about */

/* ---- page.c ---- */

static inline int leaf_page_type(const struct leaf *leaf)
{
    return leaf->options->page_version == 2 ? PARQUET_PAGE_DATA_V2 : PARQUET_PAGE_DATA;
}

/* Finishes the page at hand: it goes to leaf->chunk, what is known of it to leaf->pages. */
enum status leaf_finish_page(struct page_scratch *scratch, struct leaf *leaf,
                             struct error *err) MUST_CHECK;
/* Whether the page at hand, the first of its leaf, and those that will follow in its chunk are
 * smaller with a dictionary than PLAIN. */
enum status leaf_measure_dictionary(struct page_scratch *scratch, struct leaf *leaf, bool *out_pays,
                                    struct error *err) MUST_CHECK;
enum status leaf_seal_dictionary(struct page_scratch *scratch, struct leaf *leaf,
                                 struct error *err) MUST_CHECK; /* to leaf->front */
/* A copy of the bounds that lives as long as the writer, which keeps it for the page index. */
enum status leaf_keep_bounds(struct page_scratch *scratch, const struct leaf *leaf,
                             const struct extent *extent, struct page_record *page,
                             struct error *err) MUST_CHECK;

/* ---- spread.c ---- */

struct row_slice {
    int64_t first, count;
};

/* Rows of a batch, as slices: pages may end otherwise with others. No row group ends within. */
struct round {
    const struct arrow_array *columns;
    const struct row_slice *slices;
    size_t slice_count;
    uint64_t bytes; /* of its rows without dictionaries */
};

bool is_worth_spreading(const struct parquet_writer *writer, uint64_t bytes);
/* Appends the rows to all leaves. */
enum status leaves_write(struct parquet_writer *writer, const struct round *round,
                         struct error *err) MUST_CHECK;
/* Seals the chunks of all leaves by the threads. In any case those of the first `out_sealed` leaves
 * are sealed. */
enum status leaves_seal(struct parquet_writer *writer, uint32_t *out_sealed,
                        struct error *err) MUST_CHECK;

/* ---- rounds.c ---- */

/* Appends rows of columns that have the types of the file; `arena`: for as long as that takes. */
enum status writer_append(struct parquet_writer *writer, const struct arrow_array *columns,
                          int64_t length, struct arena *arena, struct error *err) MUST_CHECK;
/* What writer_pending_bytes can become without more rows, and how much more with these, which take
 * `bytes` without dictionaries. */
uint64_t writer_pending_bytes_max(const struct parquet_writer *writer);
uint64_t rows_growth_max(const struct parquet_writer *writer, const struct arrow_array *columns,
                         struct row_slice rows, uint64_t bytes);

/* ---- writer.c ---- */

uint64_t writer_pending_bytes(const struct parquet_writer *writer); /* about */
enum status writer_finish_group(struct parquet_writer *writer, struct error *err) MUST_CHECK;

/* ---- column_options.c ---- */

/* The names from the root to the leaf, those of the groups in between too; how many. */
enum { PATH_NAMES_MAX = 2 * (NESTING_MAX + 1) };
size_t leaf_path_names(const struct leaf *leaf, const char *names[PATH_NAMES_MAX]);
/* USAGE: a column that is not there, or an encoding that its type has not. */
enum status apply_column_options(struct parquet_writer *writer, struct error *err) MUST_CHECK;

/* ---- footer.c ---- */

/* The Bloom filter of the leaf's chunk, where it has one. */
enum status footer_write_bloom(struct parquet_writer *writer, const struct leaf *leaf,
                               struct chunk_record *chunk, struct error *err) MUST_CHECK;

enum status writer_put(struct parquet_writer *writer, const void *data, size_t bytes,
                       struct error *err) MUST_CHECK;
enum status footer_write(struct parquet_writer *writer, struct error *err) MUST_CHECK;

#endif
