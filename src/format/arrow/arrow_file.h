/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole Arrow IPC streams and files, read and written batch by batch. Part of arrow.h. Source:
 * Arrow Columnar Format 1.5, "IPC Streaming Format" and "IPC File Format"; File.fbs, Message.fbs,
 * Schema.fbs.
 *
 * Here columns may also have types that tables do not have: such a field carries an origin, which
 * says what it was. Refused (UNSUPPORTED, with the column and the type) are unions, runs of runs,
 * and dictionaries that two columns share.
 *
 * Everything is verified before it is handed out: framing, the footer against the stream, bounds,
 * offsets, indices, UTF-8. A message names the message's byte in the file, and that of the first
 * wrong thing where it is known more closely. Memory: one message, what it becomes, and the
 * dictionaries in force; each bounded through the limits.
 */
#ifndef SLUICE_FORMAT_ARROW_ARROW_FILE_H
#define SLUICE_FORMAT_ARROW_ARROW_FILE_H

#include "format/arrow/arrow.h"

/* ---- types that tables do not have ---- */

enum arrow_unit { ARROW_SECONDS, ARROW_MILLIS, ARROW_MICROS, ARROW_NANOS };

/* How the values of a field are kept. The fixed ones are ARROW_FIXED, little-endian. */
enum arrow_origin_kind {
    ARROW_ORIGIN_SAME,            /* by its type; the rest of the origin says more about it */
    ARROW_ORIGIN_INT,             /* fixed: 1, 2 bytes */
    ARROW_ORIGIN_UINT,            /* fixed: 1, 2, 4, 8 bytes */
    ARROW_ORIGIN_HALF,            /* fixed: 2 bytes, IEEE 754 binary16 */
    ARROW_ORIGIN_DECIMAL,         /* fixed: 4, 8, 16, 32 bytes, two's complement */
    ARROW_ORIGIN_DATE_MS,         /* fixed: 8 bytes, milliseconds since 1970-01-01 */
    ARROW_ORIGIN_TIME,            /* fixed: 4 bytes (s, ms) or 8 (us, ns), since midnight */
    ARROW_ORIGIN_TIMESTAMP,       /* fixed: 8 bytes, since 1970-01-01 */
    ARROW_ORIGIN_DURATION,        /* fixed: 8 bytes */
    ARROW_ORIGIN_MONTHS,          /* fixed: 4 bytes */
    ARROW_ORIGIN_DAY_TIME,        /* fixed: days and milliseconds, 4 bytes each */
    ARROW_ORIGIN_MONTH_DAY_NANO,  /* fixed: months and days of 4 bytes, nanoseconds of 8 */
    ARROW_ORIGIN_LARGE,           /* utf8, binary, list: had offsets of 64 bits */
    ARROW_ORIGIN_VIEW,            /* utf8, binary: were views */
    ARROW_ORIGIN_FIXED_LIST,      /* list: of list_size elements in each slot */
    ARROW_ORIGIN_LIST_VIEW,       /* list: each slot said where its elements were, with 32 bits */
    ARROW_ORIGIN_LARGE_LIST_VIEW, /* the same with 64 */
};

/* What a field was in the file, where our type does not say it all. */
struct arrow_origin {
    enum arrow_origin_kind kind;
    enum arrow_unit unit;     /* time, timestamp, duration */
    const char *timezone;     /* timestamps, any unit; NULL: "UTC" or none, as is_instant says */
    const char *extension;    /* "arrow.uuid"; NULL: none */
    int32_t precision, scale; /* decimal */
    int32_t list_size;
    uint8_t index_bits; /* of a dictionary's indices; 0: 32 */
    bool index_is_unsigned;
    bool is_ordered;      /* a dictionary whose values stand in their order */
    bool has_sorted_keys; /* a map; says nothing about its type, and is not compared */
    struct arrow_metadata metadata;
    uint8_t run_end_bits; /* was run-end encoded, with ends of so many bits; 0: was not */
};

/* Makes it a field of uint64: its values are eight bytes. */
void arrow_set_uint64(struct arrow_field *field);

/* Appends a copy, owned by `arena`. NO_MEMORY, without a message. */
enum status arrow_metadata_add(struct arrow_metadata *metadata, struct arena *arena,
                               struct span key, struct span value) MUST_CHECK;

/* The same columns without dictionaries; `out_differs`: there were some. Owned by `arena`. */
enum status arrow_plain_schema(const struct arrow_schema *schema, struct arena *arena,
                               struct arrow_schema *out_schema, bool *out_differs,
                               struct error *err) MUST_CHECK;
/* A column of such a schema; `field` is that of `from`, which is borrowed. */
enum status arrow_plain_array(const struct arrow_field *field, const struct arrow_array *from,
                              struct arena *arena, struct arrow_array *out_array,
                              struct error *err) MUST_CHECK;

/* IEEE 754 binary16. */
static inline double arrow_half_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent == 31  ? (fraction ? __builtin_nan("") : __builtin_inf())
                   : exponent == 0 ? fraction * 0x1p-24
                                   : (1024 + fraction) * __builtin_ldexp(1, exponent - 25);
    return bits & 0x8000 ? -value : value;
}

/* NULL: of a field whose type says it all. But for the metadata. */
bool arrow_origins_equal(const struct arrow_origin *a, const struct arrow_origin *b);

/* The name of the field's type: "int64", "timestamp[ms, UTC]", "dictionary[int8, utf8]"; of lists,
 * maps and structs without their children. */
void arrow_type_describe(const struct arrow_field *field, struct buf *out);

/* ---- files ---- */

enum arrow_container {
    ARROW_STREAM, /* messages, usually with a mark of the end; .arrows */
    ARROW_FILE,   /* the same between two magics, with a footer; .arrow, Feather V2 */
};

/* `row_count` and below: of what was read so far. */
struct arrow_file_facts {
    enum arrow_container container;
    bool has_end_mark; /* a stream may also just end */
    uint64_t row_count, batch_count, dictionary_count;
};

struct arrow_file;

/* Tells the two apart by their first bytes; reads the schema, of a file the footer too. INVALID for
 * what is neither. The source must outlive it; one thread at a time. */
enum status arrow_file_open(struct byte_source source, const struct arrow_limits *limits,
                            struct arrow_file **out_file, struct error *err) MUST_CHECK;
void arrow_file_close(struct arrow_file *file); /* accepts NULL */

/* Lives as long as the file. */
const struct arrow_schema *arrow_file_schema(const struct arrow_file *file);
struct arrow_file_facts arrow_file_facts(const struct arrow_file *file);
/* What a file's footer was given along, beside its schema's; of a stream: none. */
const struct arrow_metadata *arrow_file_footer_metadata(const struct arrow_file *file);

/* The next batch; the caller deinits it, before the next call, because dictionaries may be replaced
 * by then. Unlike ours, dictionaries may hold nulls. NOT_FOUND at the end; INVALID for damage,
 * UNSUPPORTED and the limits' statuses as everywhere in this module. */
enum status arrow_file_next(struct arrow_file *file, struct arrow_batch *out_batch,
                            struct error *err) MUST_CHECK;

/* ---- writing ---- */

struct arrow_writer;

/* Writes the head and the schema at once. LIMIT: arrow_schema_check_depth. Fields with an origin
 * are written as what they were, runs of equal values as the plain column that they have become.
 * Dictionaries stay such, with the type of their indices, but for those within the values of
 * another, which become plain. Where a batch has another dictionary than the one before, a stream
 * replaces it, or adds what it has behind the values that were there. A file cannot replace: there
 * it is added what its dictionary has not yet, and indices change. */
enum status arrow_writer_create(const struct arrow_schema *schema, enum arrow_container container,
                                enum arrow_compression compression, struct sink sink,
                                struct arrow_writer **out_writer, struct error *err) MUST_CHECK;
/* What the footer is given along; a stream, which has none, leaves it out. Copied. */
enum status arrow_writer_set_footer_metadata(struct arrow_writer *writer,
                                             const struct arrow_metadata *metadata,
                                             struct error *err) MUST_CHECK;
/* A batch of an equal schema, with its metadata. In a file: LIMIT, a dictionary grown beyond the
 * type of its indices; UNSUPPORTED, an ordered one that changes. After any failure only destroy is
 * left. */
enum status arrow_writer_write(struct arrow_writer *writer, const struct arrow_batch *batch,
                               struct error *err) MUST_CHECK;
/* The mark of the end, and a file's footer. */
enum status arrow_writer_finish(struct arrow_writer *writer, struct error *err) MUST_CHECK;
void arrow_writer_destroy(struct arrow_writer *writer); /* accepts NULL */

#endif
