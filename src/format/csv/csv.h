/* SPDX-License-Identifier: Apache-2.0
 *
 * CSV, to and from Arrow batches. Sources: RFC 4180; ISO 8601 for dates and times. Lines end with
 * LF or CRLF, the last may have no end; a UTF-8 byte order mark at the start is passed over. Text
 * is UTF-8.
 *
 * The source is read twice: once for the types, once for the values. A column has the first of
 * these types that all its values fit, nulls apart, in quotes or not:
 *
 *   bool        true, false
 *   int64       digits without zeros before them (which a number would lose)
 *   uint64      such integers, without a sign
 *   double      such numbers, with a point or an exponent too, as long as a double has room for all
 *               their digits (9007199254740993 it has not); NaN, Infinity, -Infinity
 *   date32      2024-02-29
 *   timestamp   2024-02-29T23:59:59, or a blank for the T; up to six digits behind a point; an
 *               instant if all have a zone (Z, +hh:mm), local if none has
 *   utf8        all else, and columns of nulls
 *
 * An empty field is null; in quotes it is the empty text. All columns are nullable. Blank lines are
 * passed over, but in a file of one column they are its nulls. A row must have as many fields as
 * the first one. Names that are empty become "column_3", names that came before "a_2". Line numbers
 * in messages begin at 1 and name the line where a row begins.
 *
 * Memory does not grow with the source: one row, one batch, each bounded by a limit. An object
 * belongs to one thread at a time.
 */
#ifndef SLUICE_FORMAT_CSV_CSV_H
#define SLUICE_FORMAT_CSV_CSV_H

#include "base/base.h"
#include "format/arrow/arrow.h"

/* ---- reader ---- */

struct csv_reader_options {
    char delimiter;            /* ASCII, not a quote or a line's end; default ',' */
    bool has_header;           /* default true; else the names are column_1, column_2 */
    const char *null_text;     /* a field of this text without quotes is null; default "" */
    size_t block_bytes;        /* read at once; default 1 MiB */
    size_t row_bytes_max;      /* default 64 MiB; more than 1 GiB counts as that */
    size_t name_bytes_max;     /* of a column; default 4,096 */
    uint32_t column_count_max; /* default 16,384 */
    int64_t batch_rows;        /* default 16,384 */
    size_t batch_bytes;        /* of rows: ends a batch before its rows do; default 64 MiB */
    uint64_t batch_values;     /* the same for values; default 8 Mi */
};

struct csv_reader_options csv_reader_options_default(void);

struct csv_reader;

/* Reads the whole source for the types. `options` may be NULL: the defaults. Borrows the source's
 * context and null_text until destroy. INVALID with the line for stray quotes, rows of another
 * length, text that is not UTF-8, and for a source that should have a header and has not even that;
 * LIMIT; USAGE for bad options; what the source answers. */
enum status csv_reader_create(struct byte_source source, const struct csv_reader_options *options,
                              struct csv_reader **out_reader, struct error *err) MUST_CHECK;
void csv_reader_destroy(struct csv_reader *reader); /* accepts NULL */

/* Lives as long as the reader. */
const struct arrow_schema *csv_reader_schema(const struct csv_reader *reader);

/* The next batch, which borrows the reader's memory until the next call or destroy; the caller
 * deinits it. NOT_FOUND at the end; INVALID also for a source that has changed since it was read
 * first. */
enum status csv_reader_next(struct csv_reader *reader, struct arrow_batch *out_batch,
                            struct error *err) MUST_CHECK;

/* ---- writer ---- */

struct csv_writer_options {
    char delimiter;        /* default ',' */
    bool has_header;       /* default true */
    bool has_crlf;         /* lines end as RFC 4180 has it; default false: with LF */
    const char *null_text; /* default "" */
    size_t row_bytes_max;  /* default 64 MiB, as the reader's */

    /* Appends the text of a value to `out`, without quotes: true. False, and nothing appended: the
     * value is written as without it. Asked for every value but null, if it is set. `array` and `i`
     * are those of the batch: dictionaries are not looked up yet. What it cannot do it says by
     * out->failed. */
    bool (*value)(void *context, const struct arrow_field *field, const struct arrow_array *array,
                  int64_t i, struct buf *out);
    void *context;
};

struct csv_writer_options csv_writer_options_default(void);

struct csv_writer;

/* Text stands in quotes where it must, and where it would read as null. Numbers are the shortest
 * that read back the same, of float as float; instants have a Z, timestamps six digits behind the
 * point; bytes are base64. Nested values, and those whose origin says that they are kept as bytes,
 * are for options->value: without it UNSUPPORTED, naming the column. `options` may be NULL: the
 * defaults. Borrows schema, sink and options' pointers. USAGE for bad options. */
enum status csv_writer_create(const struct arrow_schema *schema,
                              const struct csv_writer_options *options, struct sink sink,
                              struct csv_writer **out_writer, struct error *err) MUST_CHECK;
void csv_writer_destroy(struct csv_writer *writer); /* accepts NULL; does not finish */

/* Rows of the schema's columns. LIMIT, with row and column: one of more bytes than row_bytes_max.
 * After a failure nothing more may be written. */
enum status csv_writer_write(struct csv_writer *writer, const struct arrow_batch *batch,
                             struct error *err) MUST_CHECK;

/* Hands out what is still held back. A schema without columns leaves the sink as it was. */
enum status csv_writer_finish(struct csv_writer *writer, struct error *err) MUST_CHECK;

#endif
