/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of this module: rows as fields of text, and values as text.
 */
#ifndef SLUICE_FORMAT_CSV_CSV_INTERNAL_H
#define SLUICE_FORMAT_CSV_CSV_INTERNAL_H

#include "format/csv/csv.h"

/* USAGE unless both can be told from the rest of a row. */
enum status csv_check_options(char delimiter, const char *null_text, struct error *err) MUST_CHECK;

/* ---- rows ---- */

struct csv_value {
    struct span text; /* without quotes; valid until the next row */
    bool is_quoted;
    bool has_doubled; /* quotes that stand for one */
    size_t offset;    /* in the row, while it is read */
};

struct csv_rows {
    struct line_reader lines;
    char delimiter;
    struct csv_value *values; /* value_count_max of them */
    uint32_t value_count_max;
    uint32_t value_count; /* of the row; what is beyond the maximum is counted alone */
    struct span bytes;    /* the row as it was read */
    uint64_t number;      /* of the line where it begins */
    struct buf scratch;   /* texts that had doubled quotes */
};

enum status csv_rows_init(struct csv_rows *rows, struct byte_source source,
                          const struct csv_reader_options *options, struct error *err) MUST_CHECK;
void csv_rows_deinit(struct csv_rows *rows); /* accepts zeroed */
void csv_rows_rewind(struct csv_rows *rows);

/* The next row; a blank line is one of one empty field. NOT_FOUND at the end. */
enum status csv_rows_next(struct csv_rows *rows, struct error *err) MUST_CHECK;

static inline bool csv_row_is_blank(const struct csv_rows *rows)
{
    return rows->bytes.length == 0;
}

/* ---- values ---- */

/* What a text may be, apart from text. */
enum {
    MAY_BOOL = 1,
    MAY_INT = 2,
    MAY_UINT = 4,
    MAY_DOUBLE = 8, /* which keeps all its digits */
    MAY_DATE = 16,
    MAY_LOCAL = 32,   /* a timestamp without a zone */
    MAY_INSTANT = 64, /* with one */
    MAY_ALL = 127,
};

unsigned csv_may_be(struct span text, unsigned may); /* the subset of `may` that holds for it */

/* False, and nothing written, for text of another form. */
bool csv_read_bool(struct span text, bool *out_value);
bool csv_read_i64(struct span text, int64_t *out_value);
bool csv_read_u64(struct span text, uint64_t *out_value);
bool csv_read_double(struct span text, double *out_value);
bool csv_read_date(struct span text, int32_t *out_days);
bool csv_read_timestamp(struct span text, int64_t *out_micros, bool *out_is_instant);

void csv_put_date(struct buf *out, int64_t days);
void csv_put_timestamp(struct buf *out, int64_t micros, bool is_instant);
void csv_put_float(struct buf *out, float value);
void csv_put_double(struct buf *out, double value);
void csv_put_base64(struct buf *out, const void *data, size_t bytes);

/* ---- names ---- */

/* The fields of a row as names, each its own; "column_1" and so on if `values` is NULL. Owned by
 * the arena. */
enum status csv_make_names(const struct csv_value *values, uint32_t count, size_t name_bytes_max,
                           struct arena *arena, const char **out_names,
                           struct error *err) MUST_CHECK;

#endif
