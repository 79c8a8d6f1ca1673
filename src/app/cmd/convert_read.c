/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches out of files of every format.
 */
#include "app/cmd/convert_internal.h"
#include "format/avro/avro.h"
#include "format/csv/csv.h"
#include "format/ndjson/ndjson.h"
#include "format/parquet/parquet.h"

/* ---- Parquet ---- */

struct parquet_rows {
    struct parquet_file *file;
    struct parquet_reader *reader;
    struct arrow_schema original, schema; /* with dictionaries; of the rows */
    bool was_arrow;
    size_t group;
    struct arena arena; /* of the schemas */
};

static void close_parquet(void *state)
{
    struct parquet_rows *rows = state;
    parquet_reader_destroy(rows->reader);
    parquet_file_close(rows->file);
    arena_deinit(&rows->arena);
    mem_free(rows);
}

static enum status next_of_parquet(void *state, struct arrow_batch *out_batch, struct error *err)
{
    struct parquet_rows *rows = state;
    if (rows->group == rows->file->group_count)
        return error_set(err, STATUS_NOT_FOUND, "no more rows");
    return parquet_reader_read(rows->reader, rows->group++, out_batch, err);
}

/* But for the schema, which is in the columns already. */
static enum status keep_pairs(struct parquet_rows *rows, struct error *err)
{
    for (size_t i = 0; i < rows->file->pair_count; i++) {
        const struct parquet_pair *pair = &rows->file->pairs[i];
        if (strcmp(pair->key, PARQUET_ARROW_SCHEMA_KEY) != 0 &&
            arrow_metadata_add(&rows->schema.metadata, &rows->arena, span_of_text(pair->key),
                               span_of_text(pair->value ? pair->value : "")) != STATUS_OK)
            return error_set(err, STATUS_NO_MEMORY, "out of memory");
    }
    rows->original.metadata = rows->schema.metadata;
    return STATUS_OK;
}

static bool is_arrow(enum file_format format)
{
    return format == FORMAT_ARROW || format == FORMAT_ARROW_STREAM;
}

static enum status make_schemas(struct parquet_rows *rows, const struct read_flags *flags,
                                struct error *err)
{
    bool has_dictionaries;
    if (flags->no_arrow_schema)
        return parquet_logical_schema(rows->file, &rows->arena, &rows->schema, err);
    TRY(parquet_original_schema(rows->file, &rows->arena, &rows->original, &rows->was_arrow, err));
    rows->schema = rows->original;
    return is_arrow(flags->to) ? STATUS_OK
                               : arrow_plain_schema(&rows->original, &rows->arena, &rows->schema,
                                                    &has_dictionaries, err);
}

static enum status open_parquet(struct byte_source source, const struct read_flags *flags,
                                struct rows_in *out_rows, struct error *err)
{
    struct parquet_limits limits = parquet_limits_default();
    struct parquet_rows *rows = mem_alloc_zero(1, sizeof *rows);
    enum status status;
    if (!rows)
        return error_set(err, STATUS_NO_MEMORY, "out of memory");
    TRY_OR_DONE(status, parquet_file_open(source, &limits, &rows->file, err));
    TRY_OR_DONE(status, make_schemas(rows, flags, err));
    TRY_OR_DONE(status, keep_pairs(rows, err));
    const struct parquet_read_options options = {.schema = &rows->schema};
    TRY_OR_DONE(status, parquet_reader_create(rows->file, &options, &rows->reader, err));
    *out_rows = (struct rows_in){.schema = &rows->schema,
                                 .next = next_of_parquet,
                                 .close = close_parquet,
                                 .state = rows,
                                 .original = rows->was_arrow ? &rows->original : NULL};
    return STATUS_OK;
done:
    close_parquet(rows);
    return status;
}

/* ---- Arrow ---- */

/* Unless they go into Arrow again, dictionaries become plain values: those of files may hold nulls,
 * and be replaced. */
struct arrow_rows {
    struct arrow_file *file;
    struct arrow_schema schema; /* of the rows */
    bool makes_plain;
    struct arena arena; /* of the schema */
};

static void close_arrow(void *state)
{
    struct arrow_rows *rows = state;
    arrow_file_close(rows->file);
    arena_deinit(&rows->arena);
    mem_free(rows);
}

static enum status make_plain(const struct arrow_rows *rows, struct arrow_batch *batch,
                              struct error *err)
{
    const struct arrow_schema *given = batch->schema;
    struct arrow_array *columns =
        arena_alloc_zero(&batch->arena, (size_t)given->field_count + 1, sizeof *columns);
    if (!columns)
        return error_set(err, STATUS_LIMIT, "arrow: no room for plain columns");
    for (uint32_t i = 0; i < given->field_count; i++)
        TRY(arrow_plain_array(&given->fields[i], &batch->columns[i], &batch->arena, &columns[i],
                              err));
    batch->columns = columns;
    batch->schema = &rows->schema;
    return STATUS_OK;
}

static enum status next_of_arrow(void *state, struct arrow_batch *out_batch, struct error *err)
{
    struct arrow_rows *rows = state;
    TRY(arrow_file_next(rows->file, out_batch, err));
    enum status status = STATUS_OK;
    if (rows->makes_plain)
        status = make_plain(rows, out_batch, err);
    else
        out_batch->schema = &rows->schema;
    if (status != STATUS_OK)
        arrow_batch_deinit(out_batch);
    return status;
}

/* The dictionaries of a stream may be replaced; those of a file only grow, beyond what small
 * indices can name, and then are in no order. */
static bool loosen_dictionaries(struct arrow_field *fields, uint32_t count, struct arena *arena)
{
    bool is_done = true;
    for (uint32_t i = 0; i < count && is_done; i++) {
        if (fields[i].is_dictionary && fields[i].origin) {
            struct arrow_origin *origin = arena_alloc(arena, sizeof *origin);
            if (!origin)
                return false;
            *origin = *fields[i].origin;
            origin->index_bits = 0;
            origin->index_is_unsigned = origin->is_ordered = false;
            fields[i].origin = origin;
        }
        is_done = loosen_dictionaries(fields[i].children, fields[i].child_count, arena);
    }
    return is_done;
}

static enum status make_schema(struct arrow_rows *rows, enum file_format to, struct error *err)
{
    const struct arrow_schema *given = arrow_file_schema(rows->file);
    bool is_stream = arrow_file_facts(rows->file).container == ARROW_STREAM;
    if (!is_arrow(to))
        return arrow_plain_schema(given, &rows->arena, &rows->schema, &rows->makes_plain, err);
    TRY(arrow_schema_copy(given, &rows->arena, &rows->schema, err));
    if (is_stream && to == FORMAT_ARROW &&
        !loosen_dictionaries(rows->schema.fields, rows->schema.field_count, &rows->arena))
        return error_set(err, STATUS_NO_MEMORY, "out of memory");
    return STATUS_OK;
}

static enum status open_arrow(struct byte_source source, enum file_format to,
                              struct rows_in *out_rows, struct error *err)
{
    struct arrow_limits limits = files_arrow_limits();
    struct arrow_rows *rows = mem_alloc_zero(1, sizeof *rows);
    enum status status;
    if (!rows)
        return error_set(err, STATUS_NO_MEMORY, "out of memory");
    TRY_OR_DONE(status, arrow_file_open(source, &limits, &rows->file, err));
    TRY_OR_DONE(status, make_schema(rows, to, err));
    *out_rows = (struct rows_in){&rows->schema,
                                 next_of_arrow,
                                 close_arrow,
                                 rows,
                                 arrow_file_footer_metadata(rows->file),
                                 arrow_file_schema(rows->file)};
    return STATUS_OK;
done:
    close_arrow(rows);
    return status;
}

/* ---- text ---- */

static enum status next_of_ndjson(void *state, struct arrow_batch *out_batch, struct error *err)
{
    return ndjson_reader_next(state, out_batch, err);
}

static void close_ndjson(void *state)
{
    ndjson_reader_destroy(state);
}

static enum status open_ndjson(struct byte_source source, struct rows_in *out_rows,
                               struct error *err)
{
    struct ndjson_limits limits = ndjson_limits_default();
    struct ndjson_reader *reader;
    limits.line_bytes_max = LINE_BYTES_MAX;
    limits.line_values_max = LINE_VALUES_MAX;
    TRY(ndjson_reader_create(source, &limits, &reader, err));
    *out_rows = (struct rows_in){
        ndjson_reader_schema(reader), next_of_ndjson, close_ndjson, reader, NULL, NULL};
    return STATUS_OK;
}

static enum status next_of_csv(void *state, struct arrow_batch *out_batch, struct error *err)
{
    return csv_reader_next(state, out_batch, err);
}

static void close_csv(void *state)
{
    csv_reader_destroy(state);
}

static enum status open_csv(struct byte_source source, struct rows_in *out_rows, struct error *err)
{
    struct csv_reader_options options = csv_reader_options_default();
    struct csv_reader *reader;
    options.row_bytes_max = LINE_BYTES_MAX;
    TRY(csv_reader_create(source, &options, &reader, err));
    *out_rows =
        (struct rows_in){csv_reader_schema(reader), next_of_csv, close_csv, reader, NULL, NULL};
    return STATUS_OK;
}

/* ---- Avro ---- */

static enum status next_of_avro(void *state, struct arrow_batch *out_batch, struct error *err)
{
    return avro_rows_next(state, out_batch, err);
}

static void close_avro(void *state)
{
    avro_rows_close(state);
}

static enum status open_avro(struct byte_source source, struct rows_in *out_rows, struct error *err)
{
    struct avro_rows *rows;
    TRY(avro_rows_open(source, NULL, NULL, &rows, err));
    *out_rows =
        (struct rows_in){avro_rows_schema(rows), next_of_avro, close_avro, rows, NULL, NULL};
    return STATUS_OK;
}

/* ---- any ---- */

enum status rows_in_open(enum file_format format, const struct read_flags *flags,
                         struct byte_source source, struct rows_in *out_rows, struct error *err)
{
    switch (format) {
    case FORMAT_PARQUET:
        return open_parquet(source, flags, out_rows, err);
    case FORMAT_ARROW:
    case FORMAT_ARROW_STREAM: /* told apart by its first bytes */
        return open_arrow(source, flags->to, out_rows, err);
    case FORMAT_NDJSON:
        return open_ndjson(source, out_rows, err);
    case FORMAT_CSV:
        return open_csv(source, out_rows, err);
    case FORMAT_AVRO:
        return open_avro(source, out_rows, err);
    case FORMAT_COUNT:
        break;
    }
    return error_set(err, STATUS_INTERNAL, "no such format");
}
