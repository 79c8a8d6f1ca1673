/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches into rows.
 */
#include "format/csv/csv_internal.h"

enum { HOLD_BYTES = 256 << 10 };

struct csv_writer {
    const struct arrow_schema *schema; /* borrowed */
    struct csv_writer_options options;
    struct sink sink;
    struct buf out;  /* rows that the sink has not got yet */
    struct buf text; /* of the value at hand */
    uint64_t row_count;
};

struct csv_writer_options csv_writer_options_default(void)
{
    return (struct csv_writer_options){
        .delimiter = ',', .has_header = true, .null_text = "", .row_bytes_max = 64 << 20};
}

/* ---- text ---- */

/* A byte order mark at the start of a file would be taken for one. */
static bool needs_quotes(const struct csv_writer *writer, struct span text)
{
    if (text.length == 0 || text.data[0] == 0xef ||
        span_equal(text, span_of_text(writer->options.null_text)))
        return true;
    for (size_t i = 0; i < text.length; i++) {
        uint8_t byte = text.data[i];
        if (byte == '"' || byte == '\n' || byte == '\r' ||
            byte == (uint8_t)writer->options.delimiter)
            return true;
    }
    return false;
}

static void put_text(struct csv_writer *writer, struct span text)
{
    struct buf *out = &writer->out;
    if (!needs_quotes(writer, text)) {
        buf_put(out, text.data, text.length);
        return;
    }
    buf_put_byte(out, '"');
    for (size_t at = 0; at < text.length;) {
        const uint8_t *from = text.data + at;
        const uint8_t *quote = memchr(from, '"', text.length - at);
        size_t bytes = quote ? (size_t)(quote - from) + 1 : text.length - at;
        buf_put(out, from, bytes);
        if (quote)
            buf_put_byte(out, '"');
        at += bytes;
    }
    buf_put_byte(out, '"');
}

static void end_line(struct csv_writer *writer)
{
    buf_put_text(&writer->out, writer->options.has_crlf ? "\r\n" : "\n");
}

static enum status hand_out(struct csv_writer *writer, struct error *err)
{
    TRY(buf_status(&writer->out, "csv", err));
    TRY(buf_status(&writer->text, "csv", err));
    if (writer->out.length)
        TRY(sink_write(writer->sink, writer->out.data, writer->out.length, err));
    buf_clear(&writer->out);
    return STATUS_OK;
}

/* ---- values ---- */

/* Whether its values have a text of their own, without the callback. */
static bool is_plain(const struct arrow_field *field)
{
    const struct arrow_origin *origin = field->origin;
    bool is_nested =
        field->type == ARROW_LIST || field->type == ARROW_STRUCT || field->type == ARROW_MAP;
    return !is_nested && (!origin || origin->kind == ARROW_ORIGIN_SAME ||
                          origin->kind == ARROW_ORIGIN_LARGE || origin->kind == ARROW_ORIGIN_VIEW);
}

static enum status unsupported(const struct arrow_field *field, struct error *err)
{
    struct buf type = {0};
    arrow_type_describe(field, &type);
    error_set(err, STATUS_UNSUPPORTED, "csv: column %.100s: %.*s has no form as text", field->name,
              (int)size_min(type.length, 100), type.data ? (const char *)type.data : "");
    buf_deinit(&type);
    return STATUS_UNSUPPORTED;
}

static struct span bytes_of(const struct arrow_field *field, const struct arrow_array *array,
                            int64_t i)
{
    const uint8_t *data = array->values;
    if (field->type == ARROW_FIXED)
        return span_of(data + i * field->byte_width, (size_t)field->byte_width);
    return span_of(data + array->offsets[i], (size_t)(array->offsets[i + 1] - array->offsets[i]));
}

static void put_i64(struct buf *out, int64_t value)
{
    char digits[I64_TEXT_MAX];
    buf_put(out, digits, i64_to_text(digits, value));
}

/* The text of a plain value that is neither null nor of a dictionary. */
static void make_text(struct buf *out, const struct arrow_field *field,
                      const struct arrow_array *array, int64_t i)
{
    struct span bytes;
    switch (field->type) {
    case ARROW_BOOL:
        buf_put_text(out, arrow_bit(array->values, i) ? "true" : "false");
        break;
    case ARROW_INT32:
        put_i64(out, ((const int32_t *)array->values)[i]);
        break;
    case ARROW_INT64:
        put_i64(out, ((const int64_t *)array->values)[i]);
        break;
    case ARROW_FLOAT:
        csv_put_float(out, ((const float *)array->values)[i]);
        break;
    case ARROW_DOUBLE:
        csv_put_double(out, ((const double *)array->values)[i]);
        break;
    case ARROW_DATE32:
        csv_put_date(out, ((const int32_t *)array->values)[i]);
        break;
    case ARROW_TIMESTAMP_US:
        csv_put_timestamp(out, ((const int64_t *)array->values)[i], field->is_instant);
        break;
    case ARROW_UTF8:
        bytes = bytes_of(field, array, i);
        buf_put(out, bytes.data, bytes.length);
        break;
    default:
        bytes = bytes_of(field, array, i);
        csv_put_base64(out, bytes.data, bytes.length);
        break;
    }
}

/* The slot that stands for it: of a dictionary, the value. False: null. */
static bool resolve(const struct arrow_field *field, const struct arrow_array **inout_array,
                    int64_t *inout_i)
{
    if (field->type == ARROW_NULL || !arrow_is_valid(*inout_array, *inout_i))
        return false;
    if (!field->is_dictionary)
        return true;
    *inout_i = ((const int32_t *)(*inout_array)->values)[*inout_i];
    *inout_array = (*inout_array)->dictionary;
    return arrow_is_valid(*inout_array, *inout_i);
}

static enum status put_value(struct csv_writer *writer, const struct arrow_field *field,
                             const struct arrow_array *column, int64_t row, struct error *err)
{
    const struct csv_writer_options *options = &writer->options;
    const struct arrow_array *array = column;
    int64_t i = row;
    if (!resolve(field, &array, &i)) {
        buf_put_text(&writer->out, options->null_text);
        return STATUS_OK;
    }
    buf_clear(&writer->text);
    if (!options->value || !options->value(options->context, field, column, row, &writer->text)) {
        if (!is_plain(field))
            return unsupported(field, err);
        make_text(&writer->text, field, array, i);
    }
    TRY(buf_status(&writer->text, "csv: a value", err));
    put_text(writer, span_of(writer->text.data, writer->text.length));
    return STATUS_OK;
}

/* ---- the writer ---- */

static void put_header(struct csv_writer *writer)
{
    for (uint32_t i = 0; i < writer->schema->field_count; i++) {
        if (i)
            buf_put_byte(&writer->out, (uint8_t)writer->options.delimiter);
        put_text(writer, span_of_text(writer->schema->fields[i].name));
    }
    end_line(writer);
}

enum status csv_writer_create(const struct arrow_schema *schema,
                              const struct csv_writer_options *options, struct sink sink,
                              struct csv_writer **out_writer, struct error *err)
{
    struct csv_writer_options chosen = options ? *options : csv_writer_options_default();
    chosen.null_text = chosen.null_text ? chosen.null_text : "";
    TRY(csv_check_options(chosen.delimiter, chosen.null_text, err));
    for (uint32_t i = 0; i < schema->field_count && !chosen.value; i++)
        if (!is_plain(&schema->fields[i]))
            return unsupported(&schema->fields[i], err);
    struct csv_writer *writer = mem_alloc_zero(1, sizeof *writer);
    if (!writer)
        return error_set(err, STATUS_NO_MEMORY, "csv: no memory for a writer");
    writer->schema = schema;
    writer->options = chosen;
    writer->sink = sink;
    buf_init(&writer->out, 0);
    buf_init(&writer->text, 0);
    if (chosen.has_header && schema->field_count)
        put_header(writer);
    *out_writer = writer;
    return STATUS_OK;
}

void csv_writer_destroy(struct csv_writer *writer)
{
    if (!writer)
        return;
    buf_deinit(&writer->out);
    buf_deinit(&writer->text);
    mem_free(writer);
}

static enum status put_row(struct csv_writer *writer, const struct arrow_batch *batch, int64_t row,
                           struct error *err)
{
    const struct arrow_schema *schema = writer->schema;
    size_t start = writer->out.length;
    writer->row_count++;
    for (uint32_t i = 0; i < schema->field_count; i++) {
        if (i)
            buf_put_byte(&writer->out, (uint8_t)writer->options.delimiter);
        TRY(put_value(writer, &schema->fields[i], &batch->columns[i], row, err));
        if (writer->out.length - start > writer->options.row_bytes_max)
            return error_set(err, STATUS_LIMIT, "csv: row %llu, column %.100s: more than %zu bytes",
                             (unsigned long long)writer->row_count, schema->fields[i].name,
                             writer->options.row_bytes_max);
    }
    end_line(writer);
    return STATUS_OK;
}

enum status csv_writer_write(struct csv_writer *writer, const struct arrow_batch *batch,
                             struct error *err)
{
    const struct arrow_schema *schema = writer->schema;
    for (int64_t row = 0; schema->field_count && row < batch->length; row++) {
        TRY(put_row(writer, batch, row, err));
        if (writer->out.length >= HOLD_BYTES)
            TRY(hand_out(writer, err));
    }
    return hand_out(writer, err);
}

enum status csv_writer_finish(struct csv_writer *writer, struct error *err)
{
    return hand_out(writer, err);
}
