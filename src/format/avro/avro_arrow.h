/* SPDX-License-Identifier: Apache-2.0
 *
 * Avro container files as Arrow batches, both ways. Source: Avro 1.12 specification ("Schema
 * Declaration", "Logical Types", "Schema Resolution"); Iceberg, Appendix A: Avro (ids, maps with
 * other keys than text).
 *
 *   null, boolean, int, long, float, double    the same
 *   bytes, string                              binary, utf8
 *   enum                                       utf8
 *   fixed                                      fixed; uuid with its extension
 *   record, array, map                         struct, list, map; an array that is a "map" too
 *   union of null and one type                 that type, nullable
 *   union of several types                     struct with a nullable field a type: member0, ...
 *                                              (null is none of them, but makes it nullable)
 *   date, time-*, timestamp-*, decimal         with an origin (arrow_file.h) where tables have none
 *
 * A record within itself, a union of more than 256 types and a decimal of more than 76 digits are
 * UNSUPPORTED, with the column; more than 16,384 columns, nested ones counted, or ARROW_DEPTH_MAX
 * levels are LIMIT. A file whose records are no records has one column, "value".
 */
#ifndef SLUICE_FORMAT_AVRO_AVRO_ARROW_H
#define SLUICE_FORMAT_AVRO_AVRO_ARROW_H

#include "format/arrow/arrow.h"
#include "format/avro/avro.h"

/* The columns of a file's schema; owned by `arena`. */
enum status avro_arrow_schema(const struct avro_type *type, struct arena *arena,
                              struct arrow_schema *out_schema, struct error *err) MUST_CHECK;

/* ---- reading ---- */

struct avro_rows_options {
    /* What is wanted, in this order (Avro's reader's schema); NULL: all that the file has. A field
     * that the file has not is null. int becomes long, float or double, long float or double, float
     * double, bytes and text each other. Borrowed until the close. */
    const struct arrow_schema *schema;
    struct span reads_as; /* a reader's schema in Avro's JSON (avro_reader_resolve); empty: none.
                           * `schema` then binds to what it gives */
    bool binds_by_id;     /* fields by their ids, else by their names, at every level */
    int64_t batch_rows;   /* 0: 16,384; a batch also ends at 32 MiB */
};

struct avro_rows;

/* INVALID: a column of another type than is wanted, or a required one that the file has not.
 * `options` may be NULL. The source must outlive the rows. */
enum status avro_rows_open(struct byte_source source, const struct avro_limits *limits,
                           const struct avro_rows_options *options, struct avro_rows **out_rows,
                           struct error *err) MUST_CHECK;
const struct arrow_schema *avro_rows_schema(const struct avro_rows *rows); /* lives as they do */
/* The next batch, which borrows the rows' memory until the next call or the close; the caller
 * deinits it. NOT_FOUND at the end; INVALID for text that is no UTF-8, a decimal too long. */
enum status avro_rows_next(struct avro_rows *rows, struct arrow_batch *out_batch,
                           struct error *err) MUST_CHECK;
void avro_rows_close(struct avro_rows *rows); /* accepts NULL */

/* ---- writing ---- */

/* The schema's JSON, with field ids; names that Avro does not take are written as Iceberg does
 * ("a b": a_x20b), with the name itself as iceberg-field-name. Times of seconds become
 * milliseconds, uint64 decimal(20, 0), times of nanoseconds and durations long. UNSUPPORTED:
 * intervals. INVALID: two fields of one name in a record. LIMIT: arrow_schema_check_depth. */
enum status avro_schema_of(const struct arrow_schema *schema, struct buf *out,
                           struct error *err) MUST_CHECK;
/* Appends a row of a batch of that schema to a record. LIMIT: more bytes or values than a record
 * may have. */
enum status avro_put_row(const struct arrow_batch *batch, int64_t row, struct buf *out,
                         struct error *err) MUST_CHECK;

#endif
