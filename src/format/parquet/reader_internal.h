/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the reading half of this module. read_footer.c and read_schema.c make a parquet_file of
 * a footer; reader.c binds what is wanted to what is there, select.c names it, with sorted.c;
 * read_plan.c finds the pages of some rows; read_pages.c walks them, read_values.c puts their
 * values where Arrow wants them, with the encodings of decode.c and unpack.c, read_cut.c drops the
 * rows around those; read_assemble.c makes lists and structs of the levels; read_pool.c has the
 * memory for all of it.
 */
#ifndef SLUICE_FORMAT_PARQUET_READER_INTERNAL_H
#define SLUICE_FORMAT_PARQUET_READER_INTERNAL_H

#include "format/codec/codec.h"
#include "format/parquet/numbers_internal.h"
#include "format/parquet/parquet_reader.h"

enum { MAGIC_BYTES = 4, TAIL_BYTES = 8 };

/* ---- schema ---- */

/* What the levels of a leaf mean at one field on its path. An entry of levels (rep, def) begins a
 * slot of the field where rep <= slot_rep and def >= slot_def; the slot has a value where def >=
 * def. Lists and maps: an entry is an element where rep <= slot_rep + 1 and def >= def + 1. */
struct parquet_node {
    const struct arrow_field *field;
    uint8_t def, slot_def, slot_rep;
    bool is_optional; /* so in the file; a null of its own has def - 1 */
    uint32_t first_leaf, leaf_count;
    struct parquet_node *children; /* as the field's */
};

/* A SchemaElement. */
struct schema_element {
    uint64_t at; /* in the file */
    struct span name;
    int32_t physical, width, repetition, child_count, converted, scale, precision, field_id;
    int32_t logical; /* the union's field; 0: none */
    bool is_utc, is_signed;
    int32_t unit, bits, logical_scale, logical_precision;
};

/* All of it but `at`. */
void schema_element_read(struct cursor *in, struct schema_element *element);
/* Fills schema, nodes and leaves of `file` from its elements, depth first. */
enum status schema_build(struct parquet_file *file, const struct schema_element *elements,
                         size_t count, struct error *err) MUST_CHECK;

/* ---- sorted.c ---- */

/* What a thing of a list is found by: a name, or an id; the other is empty or 0. */
struct sort_key {
    struct span name;
    int32_t id;
    uint32_t place; /* in the list */
};

int span_order(struct span a, struct span b);          /* bytewise; below 0: `a` comes first */
void sort_keys(struct sort_key *keys, uint32_t count); /* those that are the same, by place */
/* The sorted keys of `nodes`, in `arena`; NULL: no memory. */
struct sort_key *nodes_sort(const struct parquet_node *nodes, uint32_t count, bool is_by_id,
                            struct arena *arena);
/* The first with the name and id of `wanted`, behind which the others are; `count`: there is none.
 */
uint32_t find_key(const struct sort_key *keys, uint32_t count, const struct sort_key *wanted);

/* ---- encodings; false: the bytes do not hold what they should ---- */

/* RLE / bit-packed hybrid of `count` values. */
bool decode_hybrid_u8(struct cursor *in, unsigned width, uint8_t *out, size_t count);
bool decode_hybrid_u32(struct cursor *in, unsigned width, uint32_t *out, size_t count,
                       uint32_t *out_greatest);
/* The levels of old files: packed from the most significant bit, `count` of them. */
bool decode_bit_packed(struct cursor *in, unsigned width, uint8_t *out, size_t count);
/* DELTA_BINARY_PACKED; exactly `count` values must be there. */
bool decode_delta_i32(struct cursor *in, int32_t *out, size_t count);
bool decode_delta_i64(struct cursor *in, int64_t *out, size_t count);
bool decode_stream_split(struct cursor *in, size_t width, uint8_t *out, size_t count);
bool decode_plain_bools(struct cursor *in, uint8_t *out, size_t count); /* a byte each */

/* Of what lies there the first eight bytes, or all of fewer. */
static inline uint64_t load_up_to_8(const uint8_t *at, size_t bytes)
{
    uint64_t word = 0;
    memcpy(&word, at, size_min(bytes, 8));
    return word;
}

/* Values whose eight bytes from their first one on lie within `bytes`. */
static inline size_t count_fast(size_t bytes, unsigned width, size_t count)
{
    return bytes < 8 ? 0 : size_min(count, ((bytes - 8) * 8 + 7) / width + 1);
}

/* `count` bit-packed values, of 1 to 32 bits; returns the greatest. The scalar ones are what the
 * others come to where the processor does not have more. */
uint32_t unpack_u32(const uint8_t *bits, size_t bytes, unsigned width, uint32_t *out, size_t count);
uint32_t unpack_u32_scalar(const uint8_t *bits, size_t bytes, unsigned width, uint32_t *out,
                           size_t count);
void unpack_bits(const uint8_t *bits, uint8_t *out, size_t count); /* of one bit, a byte each */
void unpack_bits_scalar(const uint8_t *bits, uint8_t *out, size_t count);

/* ---- memory that is used again ---- */

void pool_share(struct parquet_memory *pool); /* one more that it must live for */
void pool_leave(struct parquet_memory *pool); /* accepts NULL */
/* buf_reserve and buf_extend, with what was given back where something fits. The functions below
 * take NULL for a pool too: of none. */
bool pool_reserve(struct parquet_memory *pool, struct buf *buf, size_t bytes);
uint8_t *pool_extend(struct parquet_memory *pool, struct buf *buf, size_t bytes);
void pool_give(struct parquet_memory *pool, struct buf *buf); /* buf_deinit */
/* The buffer's memory lives as long as the arena, which counts it, then is given back; `buf` is
 * empty. False: nothing was done. */
bool pool_lend(struct parquet_memory *pool, struct buf *buf, struct arena *arena);

/* ---- pages ---- */

struct page_header {
    int32_t type, plain_bytes, stored_bytes, crc;
    int32_t values, encoding, def_encoding, rep_encoding;
    int32_t rows, nulls; /* v2; -1: not said */
    int32_t def_bytes, rep_bytes;
    bool has_crc, has_details, is_stored; /* v2: its values are not compressed */
    bool is_sorted;                       /* a dictionary, by its own word */
    struct span statistics;               /* a Thrift struct; none: `data` NULL */
};

/* False: no header of a page. */
bool page_header_read(struct cursor *in, struct page_header *out_header);

struct page {
    uint64_t offset; /* of its header in the file */
    size_t level_count;
    int encoding, rep_encoding, def_encoding;
    uint64_t bytes;                /* with it */
    int32_t row_count, null_count; /* v2: as its header says; -1: not said */
    bool is_dictionary, is_v2;
    struct span statistics; /* as in the header */
    struct span rep, def;   /* v2: the level sections */
    struct span body;       /* expanded; v1: with the level sections in front */
    size_t plain_bytes;     /* of a dictionary that is not expanded yet: of its body */
};

/* A walk over pages of a chunk that lie one behind the other. */
struct page_walk {
    const struct parquet_file *file;
    const struct parquet_leaf *leaf;
    const struct parquet_chunk *chunk;
    size_t group;
    struct cursor in;
    const uint8_t *start; /* lies at `offset` of the file */
    uint64_t offset;
    bool skips_checksums, skips_dictionary;
    bool defers_dictionary;       /* its page comes as it is stored, for page_expand_front */
    struct codec_expander **zstd; /* made when it is needed, and kept by its owner */
    struct parquet_memory *pool;  /* of the buffers; may be NULL */
    bool has_begun;               /* a page of values or a dictionary came by */
    bool has_sorted_dictionary;   /* by its own word */
    uint64_t dictionary_at;       /* its header */
    struct buf expanded;          /* the page at hand */
    uint64_t expanded_bytes, expanded_bytes_max; /* of all pages */
};

/* The next page of values, or the dictionary, which comes first if at all. Pages of no values and
 * of other kinds are stepped over, and a dictionary that is not wanted. NOT_FOUND at the end of the
 * chunk. Its spans live until the next call. */
enum status page_next(struct page_walk *walk, struct page *out_page, struct error *err) MUST_CHECK;
/* The first `bytes` of the body of a dictionary that was deferred, into `front`, which the page
 * then refers to; or where they are stored so. */
enum status page_expand_front(struct page_walk *walk, struct page *page, size_t bytes,
                              struct buf *front, struct error *err) MUST_CHECK;
/* CORRUPT or `status` with the column, the row group and the byte offset. */
enum status page_fault(const struct page_walk *walk, uint64_t offset, enum status status,
                       struct error *err, const char *format, ...) PRINTF_LIKE(5, 6);

/* ---- the page index ---- */

struct page_place {
    uint64_t offset, bytes; /* with its header, in the chunk */
    int64_t first_row, row_count;
};

/* The data pages of a chunk, held against the chunk and the row group; none: it has no index. */
struct offset_index {
    struct page_place *pages;
    size_t count;
    struct span bytes; /* as it stands in the file */
};

/* What was fetched of a file. */
struct fetches {
    uint64_t count, bytes;
};

/* Bytes of the file into `place`. */
enum status file_fetch(const struct parquet_file *file, struct fetches *fetches, uint64_t offset,
                       size_t bytes, void *place, struct error *err) MUST_CHECK;

/* Of one leaf, in `arena`; untouched where the file has none. */
enum status offset_index_read(const struct parquet_file *file, size_t group, uint32_t leaf,
                              struct fetches *fetches, struct arena *arena,
                              struct offset_index *out_offsets, struct error *err) MUST_CHECK;

/* The offset indexes of the row group at hand, read when they are asked for. */
struct group_index {
    const struct parquet_file *file;
    size_t group;
    struct offset_index *offsets; /* one a leaf; NULL: of no group yet */
    bool *is_read;
    struct fetches fetches;
    struct arena arena;
};

void group_index_init(struct group_index *index, const struct parquet_file *file);
void group_index_deinit(struct group_index *index); /* accepts a zeroed one */
/* Lives until another group is asked for. */
enum status group_index_offsets(struct group_index *index, size_t group, uint32_t leaf,
                                struct offset_index *out_offsets, struct error *err) MUST_CHECK;

/* ---- a leaf of a row group ---- */

/* Bytes of a chunk, and the rows that are in them. */
struct page_piece {
    uint64_t offset, length;
    size_t range; /* of the plan */
    struct span bytes;
    int64_t first_row, row_count;
};

struct planned_leaf {
    struct page_piece *pieces;
    size_t count;
    bool is_whole; /* one piece, the whole chunk */
};

/* What becomes of a physical value on its way to Arrow. */
enum conversion {
    CONVERT_NONE,
    CONVERT_I32_TO_I64,
    CONVERT_U32_TO_I64,
    CONVERT_FLOAT_TO_DOUBLE,
    CONVERT_MILLIS, /* int64 ms to us */
    CONVERT_INT96,  /* to us */
};

/* Values laid end to end: fixed-width ones, or bytes with their ends. */
struct values {
    struct buf data;
    struct buf ends; /* int32, byte arrays: 0, then where each value ends in `data` */
};

/* Levels of a page whose rows are wanted, with their slots and values; counted from its first. */
struct kept_run {
    size_t level, levels, slot, slots, value, values;
};

struct leaf_reader {
    struct page_walk walk;
    enum conversion conversion;
    uint32_t physical_width; /* bytes as stored; 0: byte arrays; booleans 1 */
    uint32_t width;          /* bytes in Arrow; 0: byte arrays; booleans a byte until the end */
    bool is_text, keeps_dictionary;
    bool reads_values; /* false: only its levels are wanted */
    const struct planned_leaf *plan;
    /* Sees the levels and slots of each page, which begin behind those that are kept; NULL: nobody
     * does. */
    enum status (*watch)(void *context, const struct leaf_reader *reader, const struct page *page,
                         size_t levels);
    void *watch_context;
    const struct parquet_row_range *rows; /* wanted ones; NULL: all */
    size_t rows_left;                     /* ranges from `rows` on that are not over */
    int64_t row_at;                       /* rows begun, of the row group */
    size_t levels_wanted;                 /* of the chunk */
    size_t levels_seen, slots_likely, page_count;
    size_t level_count, slot_count, null_count; /* kept */
    uint8_t slot_def;                           /* from which an entry is a slot */
    struct buf rep, def;                        /* a byte a level; empty where the maximum is 0 */
    struct values values;                       /* a slot each, nulls zero or empty */
    struct buf indices;       /* instead, where the dictionary is kept: int32 a slot */
    struct values dictionary; /* of the page; kept: and of plain values behind it */
    size_t dictionary_page_count, dictionary_count;
    size_t dictionary_entry_max; /* bytes, of the page's byte arrays */
    bool has_dictionary;
    bool is_deferred;     /* its entries from dictionary_count on are not read */
    struct page deferred; /* as it is stored */
    struct buf front;     /* of it, expanded */
    struct span entries;  /* where they stand in it, from dictionary.ends on: byte arrays */
    struct buf scratch, scratch_ends;
    struct buf runs; /* kept_run, of the page at hand, where `rows` says what is wanted */
    size_t run_count;
};

void leaf_reader_deinit(struct leaf_reader *reader);           /* accepts a zeroed one */
void leaf_reader_drop_values(struct leaf_reader *reader);      /* all but its levels */
uint32_t leaf_physical_width(const struct parquet_leaf *leaf); /* 0: byte arrays */
/* The pages of its plan, of which the wanted rows are kept. Begin with the walk and the members
 * above `row_at` set. */
enum status leaf_reader_read(struct leaf_reader *reader, size_t bytes_max,
                             struct error *err) MUST_CHECK;
/* The values of one page, `count` of them. */
/* For who watches: nothing stands behind the values of a page. */
enum status leaf_check_end(const struct leaf_reader *reader, const struct page *page,
                           const struct cursor *in, struct error *err) MUST_CHECK;
enum status leaf_read_values(struct leaf_reader *reader, const struct page *page, struct cursor *in,
                             size_t count, struct error *err) MUST_CHECK;
enum status leaf_read_dictionary(struct leaf_reader *reader, const struct page *page,
                                 struct error *err) MUST_CHECK;

/* CORRUPT: not what the body of a dictionary can be, of so many bytes. */
enum status leaf_check_dictionary(const struct leaf_reader *reader, const struct page *page,
                                  size_t body_bytes, struct error *err) MUST_CHECK;

/* The values of a page in stretches: those of rows that are wanted, and those between, which become
 * empty. */
struct value_walk {
    const struct leaf_reader *reader;
    size_t count;  /* of the page */
    bool is_whole; /* all are wanted */
    size_t run;
    size_t first, length; /* the stretch at hand */
    bool is_wanted;
};

bool leaf_next_values(struct value_walk *walk);

/* Whether only the front of a dictionary is worth reading: of a few pages. */
bool leaf_defers_dictionary(const struct leaf_reader *reader);
enum status leaf_defer_dictionary(struct leaf_reader *reader, const struct page *page,
                                  struct error *err) MUST_CHECK;
/* Has the first `entries` of the dictionary read, of those that it has. */
enum status leaf_need_entries(struct leaf_reader *reader, size_t entries,
                              struct error *err) MUST_CHECK;
/* Byte arrays behind those of `values`, with their ends; false: they are not to be had so. */
bool leaf_gather_in_place(struct leaf_reader *reader, const uint32_t *indices, int32_t *ends,
                          size_t count);

/* Levels from `least` on. */
size_t count_levels_from(const uint8_t *levels, size_t count, uint8_t least);
/* Of a page whose levels were appended behind those that are kept, with rows from `row_at` on: the
 * runs that are wanted. Byte arrays outside of them are read as empty, unless they are watched.
 * False: no memory. */
bool leaf_find_runs(struct leaf_reader *reader, size_t levels) MUST_CHECK;
/* Of a page whose `levels` levels and `slots` slots were appended behind those that are kept:
 * takes back those outside of the runs, and counts what is left. */
void leaf_keep_rows(struct leaf_reader *reader, size_t levels, size_t slots);

/* ---- what is wanted, bound to what is there ---- */

struct binding {
    const struct arrow_field *field; /* wanted */
    const struct parquet_node *node; /* NULL: the file has it not */
    uint32_t leaf;                   /* whose levels speak for this field */
    enum conversion conversion;
    bool converts; /* then by logical_convert */
    struct binding *children;
};

struct parquet_reader {
    const struct parquet_file *file;
    struct parquet_read_options options;
    const struct arrow_schema *schema;
    struct binding *bindings; /* one a field of the schema */
    uint32_t *leaves;         /* those that are read, rising */
    size_t leaf_count;
    uint32_t *places;            /* of each leaf of the file among them, or UINT32_MAX */
    struct codec_expander *zstd; /* NULL until a page needs it */
    struct parquet_memory *pool;
    struct group_index own_index;
    struct group_index *index; /* its own, or one that several readers share */
    struct fetches fetches;    /* of pages */
    uint64_t page_count;       /* of data, decoded */
    struct arena arena;
};

/* ---- what annotations say ---- */

/* Whether a leaf can be given as `wanted`, apart from the widening of integers and floats: what its
 * annotation says is what is wanted, a decimal of more digits aside (Iceberg, "Schema Evolution").
 * `out_converts`: its values go through logical_convert. */
bool logical_matches(const struct parquet_leaf *leaf, const struct arrow_field *wanted,
                     bool *out_converts);
/* Physical values become those of a field with an origin, in `arena`. Null slots become zeros. */
enum status logical_convert(const struct parquet_leaf *leaf, const struct arrow_field *logical,
                            struct arena *arena, struct arrow_array *array,
                            struct error *err) MUST_CHECK;
/* "decimal(9, 2)". */
void logical_describe(const struct parquet_leaf *leaf, struct buf *out);

/* A batch from the pieces of a plan, whose bytes are known. */
enum status group_assemble(struct parquet_reader *reader, const struct parquet_plan *plan,
                           struct arrow_batch *out_batch, struct error *err) MUST_CHECK;

#endif
