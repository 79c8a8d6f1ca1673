/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches into files of every format.
 */
#include "app/cmd/convert_internal.h"
#include "format/avro/avro.h"
#include "format/csv/csv.h"

enum status find_name(const char *flag, const char *const *names, const char *name, int *out_number,
                      struct error *err)
{
    struct buf list = {0};
    for (*out_number = 0; names[*out_number]; ++*out_number) {
        if (strcmp(names[*out_number], name) == 0)
            return STATUS_OK;
    }
    for (size_t i = 0; names[i]; i++)
        buf_format(&list, "%s%s", i ? ", " : "", names[i]);
    buf_put_byte(&list, '\0');
    error_set(err, STATUS_USAGE, "%s %.40s: this format has %s", flag, name,
              list.failed ? "others" : (const char *)list.data);
    buf_deinit(&list);
    return STATUS_USAGE;
}

/* ---- Arrow ---- */

static enum status write_arrow(void *state, const struct arrow_batch *batch, struct error *err)
{
    return arrow_writer_write(state, batch, err);
}

static enum status finish_arrow(void *state, struct error *err)
{
    return arrow_writer_finish(state, err);
}

static void close_arrow(void *state)
{
    arrow_writer_destroy(state);
}

static enum status open_arrow(enum arrow_container container, const struct arrow_schema *schema,
                              const struct write_flags *flags, struct sink sink,
                              struct rows_out *out_rows, struct error *err)
{
    static const char *const names[] = {[ARROW_UNCOMPRESSED] = "none",
                                        [ARROW_LZ4_FRAME] = "lz4",
                                        [ARROW_ZSTD] = "zstd",
                                        [ARROW_ZSTD + 1] = NULL};
    struct arrow_writer *writer;
    int number = ARROW_UNCOMPRESSED;
    if (flags->compression)
        TRY(find_name("--compression", names, flags->compression, &number, err));
    TRY(arrow_writer_create(schema, container, (enum arrow_compression)number, sink, &writer, err));
    enum status status =
        flags->footer ? arrow_writer_set_footer_metadata(writer, flags->footer, err) : STATUS_OK;
    if (status != STATUS_OK) {
        arrow_writer_destroy(writer);
        return status;
    }
    *out_rows = (struct rows_out){write_arrow, finish_arrow, close_arrow, writer};
    return STATUS_OK;
}

/* ---- JSON lines ---- */

struct json_lines {
    struct row_printer printer;
    uint64_t row_count;
};

static enum status write_line(struct json_lines *lines, const struct arrow_batch *batch,
                              int64_t row, struct error *err)
{
    const struct leaf_writer leaves = {.write = row_write_arrow_leaf};
    const struct arrow_schema *schema = batch->schema;
    struct row_printer *printer = &lines->printer;
    size_t start = printer->out.length;
    lines->row_count++;
    row_begin(printer);
    json_write_object_begin(&printer->json);
    for (uint32_t i = 0; i < schema->field_count; i++) {
        json_write_key(&printer->json, schema->fields[i].name);
        row_write_slot(&printer->json, &leaves, 0, &schema->fields[i], &batch->columns[i], row);
        if (printer->out.length - start >= LINE_BYTES_MAX)
            return error_set(err, STATUS_LIMIT, "json: row %llu, column %.100s: more than %d bytes",
                             (unsigned long long)lines->row_count, schema->fields[i].name,
                             LINE_BYTES_MAX);
    }
    json_write_object_end(&printer->json);
    return row_end(printer, err);
}

static enum status write_json(void *state, const struct arrow_batch *batch, struct error *err)
{
    for (int64_t row = 0; row < batch->length; row++)
        TRY(write_line(state, batch, row, err));
    return STATUS_OK;
}

static enum status finish_json(void *state, struct error *err)
{
    return rows_flush(&((struct json_lines *)state)->printer, err);
}

static void close_json(void *state)
{
    struct json_lines *lines = state;
    buf_deinit(&lines->printer.out);
    mem_free(lines);
}

/* Of members of one name a reader keeps the last. */
static enum status check_all_names(const struct arrow_field *fields, uint32_t count, bool is_object,
                                   struct error *err)
{
    if (is_object)
        TRY(arrow_fields_check_names(fields, count, err));
    for (uint32_t i = 0; i < count; i++)
        TRY(check_all_names(fields[i].children, fields[i].child_count,
                            fields[i].type == ARROW_STRUCT, err));
    return STATUS_OK;
}

static enum status open_json(const struct arrow_schema *schema, struct sink sink,
                             struct rows_out *out_rows, struct error *err)
{
    TRY(check_all_names(schema->fields, schema->field_count, true, err));
    struct json_lines *lines = mem_alloc_zero(1, sizeof *lines);
    if (!lines)
        return error_set(err, STATUS_NO_MEMORY, "out of memory");
    lines->printer.sink = sink;
    *out_rows = (struct rows_out){write_json, finish_json, close_json, lines};
    return STATUS_OK;
}

/* ---- CSV ---- */

static enum status write_csv(void *state, const struct arrow_batch *batch, struct error *err)
{
    return csv_writer_write(state, batch, err);
}

static enum status finish_csv(void *state, struct error *err)
{
    return csv_writer_finish(state, err);
}

static void close_csv(void *state)
{
    csv_writer_destroy(state);
}

/* Lists, maps, structs as JSON, and what has an origin as in JSON, without its quotes. */
static bool put_value(void *context, const struct arrow_field *field,
                      const struct arrow_array *array, int64_t i, struct buf *out)
{
    const struct leaf_writer leaves = {.write = row_write_arrow_leaf};
    struct json_writer json;
    struct buf text = {0};
    UNUSED(context);
    if (!field->child_count && (field->type != ARROW_FIXED || !field->origin))
        return false;
    json_writer_init(&json, &text);
    row_write_slot(&json, &leaves, 0, field, array, i);
    size_t quotes = text.length > 1 && text.data[0] == '"';
    buf_put(out, text.data + quotes, text.length - 2 * quotes);
    out->failed |= text.failed;
    buf_deinit(&text);
    return true;
}

static enum status open_csv(const struct arrow_schema *schema, struct sink sink,
                            struct rows_out *out_rows, struct error *err)
{
    struct csv_writer_options options = csv_writer_options_default();
    struct csv_writer *writer;
    options.value = put_value;
    options.row_bytes_max = LINE_BYTES_MAX;
    TRY(csv_writer_create(schema, &options, sink, &writer, err));
    *out_rows = (struct rows_out){write_csv, finish_csv, close_csv, writer};
    return STATUS_OK;
}

/* ---- Avro ---- */

struct avro_out {
    struct avro_writer *writer;
    uint64_t row_count;
};

static enum status write_avro(void *state, const struct arrow_batch *batch, struct error *err)
{
    struct avro_out *out = state;
    for (int64_t row = 0; row < batch->length; row++) {
        out->row_count++;
        if (avro_put_row(batch, row, avro_writer_record(out->writer), err) != STATUS_OK)
            return error_prefix(err, "row %llu", (unsigned long long)out->row_count);
        TRY(avro_writer_record_end(out->writer, err));
    }
    return STATUS_OK;
}

static enum status finish_avro(void *state, struct error *err)
{
    uint64_t bytes;
    return avro_writer_finish(((struct avro_out *)state)->writer, &bytes, err);
}

static void close_avro(void *state)
{
    struct avro_out *out = state;
    avro_writer_destroy(out->writer);
    mem_free(out);
}

static enum status open_avro(const struct arrow_schema *schema, const struct write_flags *flags,
                             struct sink sink, struct rows_out *out_rows, struct error *err)
{
    static const char *const names[] = {[AVRO_NULL_CODEC] = "none",
                                        [AVRO_DEFLATE] = "deflate",
                                        [AVRO_SNAPPY] = "snappy",
                                        [AVRO_ZSTANDARD] = "zstd",
                                        [AVRO_ZSTANDARD + 1] = NULL};
    struct buf text = {0};
    int number = AVRO_DEFLATE;
    if (flags->compression)
        TRY(find_name("--compression", names, flags->compression, &number, err));
    struct avro_out *out = mem_alloc_zero(1, sizeof *out);
    if (!out)
        return error_set(err, STATUS_NO_MEMORY, "out of memory");
    enum status status = avro_schema_of(schema, &text, err);
    buf_put_byte(&text, '\0');
    if (status == STATUS_OK)
        status = buf_status(&text, "an Avro schema", err);
    if (status == STATUS_OK)
        status = avro_writer_create(sink, (const char *)text.data, (enum avro_codec)number,
                                    flags->random, NULL, 0, &out->writer, err);
    buf_deinit(&text);
    if (status == STATUS_OK)
        *out_rows = (struct rows_out){write_avro, finish_avro, close_avro, out};
    else
        close_avro(out);
    return status;
}

/* ---- any ---- */

static uint64_t count_fields(const struct arrow_field *fields, uint32_t count)
{
    uint64_t sum = count;
    for (uint32_t i = 0; i < count; i++)
        sum += count_fields(fields[i].children, fields[i].child_count);
    return sum;
}

/* Nothing is written that could not be read back. */
static enum status check_column_count(const struct arrow_schema *schema, struct error *err)
{
    uint32_t count_max = files_arrow_limits().field_count_max;
    uint64_t count = count_fields(schema->fields, schema->field_count);
    return count <= count_max
               ? STATUS_OK
               : error_set(err, STATUS_LIMIT, "%llu columns, nested ones counted: no more than %u",
                           (unsigned long long)count, count_max);
}

enum status rows_out_open(enum file_format format, const struct arrow_schema *schema,
                          const struct write_flags *flags, struct sink sink,
                          struct rows_out *out_rows, struct error *err)
{
    bool is_text = format == FORMAT_NDJSON || format == FORMAT_CSV;
    bool is_parquets = flags->encoding_count || flags->bloom_count || flags->page_version ||
                       flags->row_group_rows || flags->page_rows || flags->threads;
    if (is_text && flags->compression)
        return error_set(err, STATUS_USAGE, "--compression: text is written as it is");
    if (is_parquets && format != FORMAT_PARQUET)
        return error_set(err, STATUS_USAGE, "%s: only Parquet has it",
                         flags->encoding_count ? "--encoding"
                         : flags->bloom_count  ? "--bloom"
                         : flags->page_version ? "--page-version"
                         : flags->threads      ? "--threads"
                         : flags->page_rows    ? "--page-rows"
                                               : "--row-group-rows");
    TRY(arrow_schema_check_depth(schema, err));
    if (format != FORMAT_PARQUET)
        TRY(check_column_count(schema, err));
    switch (format) {
    case FORMAT_PARQUET:
        return parquet_out_open(schema, flags, sink, out_rows, err);
    case FORMAT_ARROW:
        return open_arrow(ARROW_FILE, schema, flags, sink, out_rows, err);
    case FORMAT_ARROW_STREAM:
        return open_arrow(ARROW_STREAM, schema, flags, sink, out_rows, err);
    case FORMAT_NDJSON:
        return open_json(schema, sink, out_rows, err);
    case FORMAT_CSV:
        return open_csv(schema, sink, out_rows, err);
    case FORMAT_AVRO:
        return open_avro(schema, flags, sink, out_rows, err);
    case FORMAT_COUNT:
        break;
    }
    return error_set(err, STATUS_INTERNAL, "no such format");
}
