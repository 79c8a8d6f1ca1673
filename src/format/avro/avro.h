/* SPDX-License-Identifier: Apache-2.0
 *
 * Avro object container files (Avro 1.11 specification, "Object Container Files", "Binary
 * Encoding"): a writer for records the caller encodes, and a reader that walks the writer's schema
 * and yields trees of typed values, found by Iceberg's field ids or by name. Codecs: null, deflate,
 * snappy, zstandard.
 *
 * Whatever bytes come in, the reader answers with a status: lengths, counts and nesting are bounded
 * before memory is taken for them. Pure; an object belongs to one thread at a time.
 */
#ifndef SLUICE_FORMAT_AVRO_AVRO_H
#define SLUICE_FORMAT_AVRO_AVRO_H

#include "base/base.h"

/* What a record may have: the reader takes no more, and avro_put_row writes no more. Values are
 * counted on all levels, a list, record or map as one of them; a null of a union too. */
enum {
    AVRO_RECORD_BYTES_MAX = 256 << 20,
    AVRO_RECORD_VALUES_MAX = 32 << 20,
    AVRO_VALUES_A_BYTE = 4,    /* no more than so many for each of its bytes, */
    AVRO_FREE_VALUES = 100000, /* and these */
};

/* ---- writer ---- */

enum avro_codec { AVRO_NULL_CODEC, AVRO_DEFLATE, AVRO_SNAPPY, AVRO_ZSTANDARD };

struct avro_pair {
    const char *key, *value;
};

struct avro_writer;

/* Writes the header: `schema` as avro.schema, avro.codec, then `metadata` in order. `sync` are 16
 * random bytes. Records collect in blocks of about 64 KiB before compression, and of
 * AVRO_FREE_VALUES records. */
enum status avro_writer_create(struct sink sink, const char *schema, enum avro_codec codec,
                               const uint8_t sync[16], const struct avro_pair *metadata,
                               size_t metadata_count, struct avro_writer **out_writer,
                               struct error *err) MUST_CHECK;
/* The buffer to append the next record's bytes to, with the avro_put functions; then
 * ..._record_end. */
struct buf *avro_writer_record(struct avro_writer *writer);
enum status avro_writer_record_end(struct avro_writer *writer, struct error *err) MUST_CHECK;
/* Writes the last block and yields the exact length of the file. The sink is the caller's to close.
 */
enum status avro_writer_finish(struct avro_writer *writer, uint64_t *out_bytes,
                               struct error *err) MUST_CHECK;
void avro_writer_destroy(struct avro_writer *writer); /* accepts NULL */

static inline void avro_put_long(struct buf *out, int64_t value) /* int and long */
{
    buf_put_zigzag(out, value);
}

static inline void avro_put_bytes(struct buf *out, const void *data, size_t bytes) /* and strings */
{
    buf_put_zigzag(out, (int64_t)bytes);
    buf_put(out, data, bytes);
}

static inline void avro_put_text(struct buf *out, const char *text)
{
    avro_put_bytes(out, text, strlen(text));
}

/* ---- schema of a file ---- */

enum avro_kind {
    AVRO_NULL,
    AVRO_BOOLEAN,
    AVRO_INT,
    AVRO_LONG,
    AVRO_FLOAT,
    AVRO_DOUBLE,
    AVRO_BYTES,
    AVRO_STRING,
    AVRO_RECORD,
    AVRO_ENUM,
    AVRO_ARRAY,
    AVRO_MAP,
    AVRO_UNION,
    AVRO_FIXED,
};

struct json_value;

struct avro_field {
    const char *name;
    const char *original_name; /* what Avro cannot say, in Iceberg's way; NULL: `name` */
    int32_t field_id;          /* -1: none */
    const struct avro_type *type;
    const char **aliases; /* other names, for a reader's schema */
    uint32_t alias_count;
    const struct json_value *default_value; /* NULL: none */
};

struct avro_type {
    enum avro_kind kind;
    const char *name;     /* record, enum, fixed */
    const char **aliases; /* of the name */
    uint32_t alias_count;
    const char *logical_type;  /* "map", "date", "decimal", ...; NULL: none */
    struct avro_field *fields; /* record: fields; union: branches (name NULL); array: one; map:
                                * key, value */
    uint32_t field_count;
    const char **symbols; /* enum */
    uint32_t symbol_count;
    const char *default_symbol; /* enum; NULL: none */
    uint32_t fixed_bytes;
    int32_t precision, scale; /* decimal */
    bool is_local;            /* timestamps: no instants ("local-", or Iceberg's adjust-to-utc) */
};

/* ---- values ---- */

/* Unions are resolved: a value is that of its branch. A map's items are key, value, key, value,
 * ...; a map in Iceberg's form (array with logicalType map) is an array of records of two. */
struct avro_value {
    const struct avro_type *type;
    int64_t integer;          /* boolean, int, long, enum's index */
    double real;              /* float, double */
    struct span bytes;        /* bytes, string, fixed */
    struct avro_value *items; /* record: its fields in order; array, map: as above */
    uint32_t count;           /* of items */
};

/* The field with that id (records; NULL if there is none, or it is null). */
const struct avro_value *avro_get(const struct avro_value *record, int32_t field_id);
const struct avro_value *avro_get_named(const struct avro_value *record, const char *name);
/* False when the field is missing, null, or of another type. */
bool avro_get_long(const struct avro_value *record, int32_t field_id, int64_t *out_value);
bool avro_get_bytes(const struct avro_value *record, int32_t field_id, struct span *out_bytes);

/* ---- reader ---- */

struct avro_limits {
    size_t block_bytes_max;  /* of one block, stored and expanded; default 320 MiB */
    uint32_t type_count_max; /* of nodes in the schema; default 65,536 */
    uint32_t depth_max; /* of types and values; default 128: a level of columns takes up to three */
};

struct avro_limits avro_limits_default(void);

struct avro_reader;

/* Reads the header. Borrows `file` until destroyed. INVALID for what is no container file,
 * UNSUPPORTED for another codec. */
enum status avro_reader_create(struct span file, const struct avro_limits *limits,
                               struct avro_reader **out_reader, struct error *err) MUST_CHECK;
/* The same through a source, which must outlive the reader: a block at a time is in memory. */
enum status avro_reader_open(struct byte_source source, const struct avro_limits *limits,
                             struct avro_reader **out_reader, struct error *err) MUST_CHECK;
/* From now on records come as `schema`, a reader's schema in JSON, wants them, by the rules of the
 * specification ("Schema Resolution"): fields by name or alias, with their defaults where the file
 * has them not, types promoted, enums by symbol or default. Decimals may get more digits, times a
 * finer unit, and no other scale or kind of time. INVALID, of ..._next: a value that does
 * not fit. */
enum status avro_reader_resolve(struct avro_reader *reader, struct span schema,
                                struct error *err) MUST_CHECK;
void avro_reader_destroy(struct avro_reader *reader); /* accepts NULL */
/* The type of the records that come. */
const struct avro_type *avro_reader_type(const struct avro_reader *reader);
/* The header's value under `key`; false if it has none. Borrowed from the file or the reader. */
bool avro_reader_metadata(const struct avro_reader *reader, const char *key,
                          struct span *out_value);

/* The next record (of any type: what the schema says), its tree and bytes owned by `arena`.
 * NOT_FOUND at the end; CORRUPT for damage, with the byte where the block begins, and that within
 * what it holds; TOO_LARGE for a block past its limit. */
enum status avro_reader_next(struct avro_reader *reader, struct arena *arena,
                             const struct avro_value **out_record, struct error *err) MUST_CHECK;

#include "format/avro/avro_arrow.h"

#endif
