/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of JSON as Arrow batches. Sources: RFC 8259 for each line; lines end with LF or CRLF, blank
 * ones are passed over, a UTF-8 byte order mark at the start too.
 *
 * The source is read twice: once for the types, once for the values. A column's type follows from
 * all of its values, null apart:
 *
 *   only null                                 null
 *   true, false                               bool
 *   integers                                  int64; uint64 if all fit that and not int64
 *   numbers, and NaN, Infinity, -Infinity
 *   as strings beside them                    double
 *   strings                                   utf8
 *   arrays                                    list of what its elements are
 *   objects                                   struct, members in the order of their appearance
 *   a mixture, numbers of which a double
 *   would lose digits, or the whole,
 *   objects that never have a member          utf8: strings themselves, the JSON of all else
 *
 * A number with a point or an exponent is no integer. All columns are nullable; a member that is
 * missing is null. Of members with one name in one object the last counts, but all of them say what
 * the type is. Line numbers in messages begin at 1.
 *
 * Memory does not grow with the source: one line, one batch, and the columns, each bounded by a
 * limit. An object belongs to one thread at a time.
 */
#ifndef SLUICE_FORMAT_NDJSON_NDJSON_H
#define SLUICE_FORMAT_NDJSON_NDJSON_H

#include "base/base.h"
#include "format/arrow/arrow.h"

struct ndjson_limits {
    size_t block_bytes;        /* read at once; default 1 MiB */
    size_t line_bytes_max;     /* default 64 MiB; more than 1 GiB counts as that */
    size_t name_bytes_max;     /* of a member; default 4,096 */
    uint32_t column_count_max; /* on all levels, elements of lists too; default 16,384 */
    uint32_t depth_max;        /* levels of columns; default ARROW_DEPTH_MAX */
    int64_t batch_rows;        /* default 16,384 */
    size_t batch_bytes;        /* of lines: ends a batch before its rows do; default 64 MiB */
    uint64_t batch_values;     /* the same for values, nulls that fill up too; default 8 Mi */
    uint64_t line_values_max;  /* values of one line, nulls that fill up too; default 64 Mi */
};

struct ndjson_limits ndjson_limits_default(void);

struct ndjson_reader;

/* Reads the whole source for the types. `limits` may be NULL: the defaults. Borrows the source's
 * context until destroy. INVALID with the line, and the byte in it where JSON tells, for what is no
 * JSON object; LIMIT with the line and the column's path ("a.b[].c"); what the source answers. A
 * source without rows has no columns. */
enum status ndjson_reader_create(struct byte_source source, const struct ndjson_limits *limits,
                                 struct ndjson_reader **out_reader, struct error *err) MUST_CHECK;
void ndjson_reader_destroy(struct ndjson_reader *reader); /* accepts NULL */

/* Lives as long as the reader. */
const struct arrow_schema *ndjson_reader_schema(const struct ndjson_reader *reader);

/* The next batch, which borrows the reader's memory until the next call or destroy; the caller
 * deinits it. NOT_FOUND at the end; INVALID also for a source that has changed since it was read
 * first; LIMIT for a line of too many values. */
enum status ndjson_reader_next(struct ndjson_reader *reader, struct arrow_batch *out_batch,
                               struct error *err) MUST_CHECK;

#endif
