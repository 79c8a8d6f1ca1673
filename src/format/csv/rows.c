/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines into rows. A row is one line, or several where a line's end is in quotes; then the line
 * grows and may move, which is why places are offsets until the row is complete.
 */
#include "format/csv/csv_internal.h"

enum { ROW_BYTES_MAX = 1 << 30 };

enum status csv_check_options(char delimiter, const char *null_text, struct error *err)
{
    if (delimiter <= 0 || delimiter == '"' || delimiter == '\n' || delimiter == '\r')
        return error_set(err, STATUS_USAGE,
                         "csv: the delimiter is a byte of ASCII, no quote and no line's end");
    const char no[] = {'"', '\n', '\r', delimiter, '\0'};
    if (null_text && null_text[strcspn(null_text, no)])
        return error_set(err, STATUS_USAGE,
                         "csv: the text for null has a delimiter, a quote or a line's end in it");
    return STATUS_OK;
}

enum status csv_rows_init(struct csv_rows *rows, struct byte_source source,
                          const struct csv_reader_options *options, struct error *err)
{
    *rows = (struct csv_rows){.delimiter = options->delimiter,
                              .value_count_max = options->column_count_max};
    line_reader_init(&rows->lines, source, options->block_bytes,
                     size_min(options->row_bytes_max, ROW_BYTES_MAX));
    buf_init(&rows->scratch, 0);
    rows->values = mem_alloc_zero(rows->value_count_max, sizeof *rows->values);
    if (!rows->values)
        return error_set(err, STATUS_NO_MEMORY, "csv: no memory for a row");
    return STATUS_OK;
}

void csv_rows_deinit(struct csv_rows *rows)
{
    mem_free(rows->values);
    buf_deinit(&rows->scratch);
    line_reader_deinit(&rows->lines);
    *rows = (struct csv_rows){0};
}

void csv_rows_rewind(struct csv_rows *rows)
{
    line_reader_rewind(&rows->lines);
}

static enum status invalid(const struct csv_rows *rows, const char *what, struct error *err)
{
    return error_set(err, STATUS_INVALID, "csv: line %llu: field %u: %s",
                     (unsigned long long)rows->number, rows->value_count + 1, what);
}

/* The next quote from `inout_at` on, in this line or those behind it. */
static enum status find_quote(struct csv_rows *rows, size_t *inout_at, struct error *err)
{
    size_t at = *inout_at;
    for (;;) {
        const uint8_t *from = rows->bytes.data + at;
        const uint8_t *quote =
            at < rows->bytes.length ? memchr(from, '"', rows->bytes.length - at) : NULL;
        if (quote) {
            *inout_at = (size_t)(quote - rows->bytes.data);
            return STATUS_OK;
        }
        at = rows->bytes.length;
        enum status status = line_reader_extend(&rows->lines, &rows->bytes, err);
        if (status == STATUS_NOT_FOUND)
            return invalid(rows, "quotes without an end", err);
        if (status == STATUS_LIMIT)
            return error_set(err, STATUS_LIMIT, "csv: line %llu: more than %zu bytes",
                             (unsigned long long)rows->number, rows->lines.line_bytes_max);
        if (status != STATUS_OK)
            return error_prefix(err, "csv");
    }
}

/* `inout_at`: from the first quote to behind the last one. */
static enum status read_quoted(struct csv_rows *rows, size_t *inout_at, struct csv_value *value,
                               struct error *err)
{
    size_t at = value->offset = *inout_at + 1;
    value->is_quoted = true;
    for (;;) {
        TRY(find_quote(rows, &at, err));
        if (at + 1 == rows->bytes.length || rows->bytes.data[at + 1] != '"')
            break;
        value->has_doubled = true;
        at += 2;
    }
    value->text.length = at - value->offset;
    *inout_at = at + 1;
    if (at + 1 < rows->bytes.length && rows->bytes.data[at + 1] != (uint8_t)rows->delimiter)
        return invalid(rows, "text behind the closing quote", err);
    return STATUS_OK;
}

static enum status read_plain(struct csv_rows *rows, size_t *inout_at, struct csv_value *value,
                              struct error *err)
{
    const uint8_t *start = rows->bytes.data + *inout_at, *at = start;
    const uint8_t *end = rows->bytes.data + rows->bytes.length;
    for (; at < end && *at != (uint8_t)rows->delimiter; at++) {
        if (*at == '"')
            return invalid(rows, "a quote in a field without quotes", err);
        if (*at == '\r')
            return invalid(rows, "a carriage return without a line feed", err);
    }
    value->offset = *inout_at;
    value->text.length = (size_t)(at - start);
    *inout_at += value->text.length;
    return STATUS_OK;
}

/* Of two quotes one. The scratch has room for the whole row. */
static void undouble(struct csv_rows *rows, struct csv_value *value)
{
    const uint8_t *at = value->text.data, *end = at + value->text.length;
    size_t start = rows->scratch.length;
    while (at < end) {
        const uint8_t *quote = memchr(at, '"', (size_t)(end - at));
        const uint8_t *stop = quote ? quote + 1 : end;
        buf_put(&rows->scratch, at, (size_t)(stop - at));
        at = quote ? stop + 1 : end;
    }
    value->text = span_of(rows->scratch.data + start, rows->scratch.length - start);
}

/* Offsets into places. */
static enum status settle(struct csv_rows *rows, struct error *err)
{
    uint32_t count =
        rows->value_count < rows->value_count_max ? rows->value_count : rows->value_count_max;
    buf_clear(&rows->scratch);
    for (uint32_t i = 0; i < count; i++) {
        struct csv_value *value = &rows->values[i];
        value->text.data = rows->bytes.data + value->offset;
        if (!value->has_doubled)
            continue;
        if (rows->scratch.length == 0 && !buf_reserve(&rows->scratch, rows->bytes.length))
            return buf_status(&rows->scratch, "csv", err);
        undouble(rows, value);
    }
    return STATUS_OK;
}

enum status csv_rows_next(struct csv_rows *rows, struct error *err)
{
    enum status status = line_reader_next(&rows->lines, &rows->bytes, err);
    if (status != STATUS_OK)
        return status == STATUS_NOT_FOUND ? status : error_prefix(err, "csv");
    rows->number = rows->lines.number;
    rows->value_count = 0;
    for (size_t at = 0;; at++) {
        struct csv_value value = {0};
        bool is_quoted = at < rows->bytes.length && rows->bytes.data[at] == '"';
        TRY(is_quoted ? read_quoted(rows, &at, &value, err) : read_plain(rows, &at, &value, err));
        if (rows->value_count < rows->value_count_max)
            rows->values[rows->value_count] = value;
        rows->value_count++;
        if (at == rows->bytes.length)
            break;
    }
    if (!utf8_is_valid(rows->bytes.data, rows->bytes.length))
        return error_set(err, STATUS_INVALID, "csv: line %llu: text that is not UTF-8",
                         (unsigned long long)rows->number);
    return settle(rows, err);
}
