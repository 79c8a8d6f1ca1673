/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows into batches: a first pass over the source for the types, a second one for the values.
 */
#include "format/csv/csv_internal.h"

enum { BATCH_BYTES_MAX = (1 << 30) - 1 };

struct csv_reader {
    struct csv_reader_options options;
    struct csv_rows rows;
    struct arena arena; /* of the schema */
    struct arrow_schema schema;
    struct arrow_field row;       /* a struct of the schema's fields */
    struct arrow_builder builder; /* of `row` */
    bool has_columns;             /* how many there are is known */
};

struct csv_reader_options csv_reader_options_default(void)
{
    return (struct csv_reader_options){.delimiter = ',',
                                       .has_header = true,
                                       .null_text = "",
                                       .block_bytes = 1 << 20,
                                       .row_bytes_max = 64 << 20,
                                       .name_bytes_max = ARROW_NAME_BYTES_MAX,
                                       .column_count_max = 16384,
                                       .batch_rows = 16384,
                                       .batch_bytes = 64 << 20,
                                       .batch_values = 8 << 20};
}

/* ---- rows ---- */

/* The next row of values: a blank line is none, unless there is one column. */
static enum status next_row(struct csv_reader *reader, struct error *err)
{
    struct csv_rows *rows = &reader->rows;
    bool may_be_blank = reader->has_columns && reader->schema.field_count == 1;
    do {
        TRY(csv_rows_next(rows, err));
    } while (csv_row_is_blank(rows) && !may_be_blank);
    if (reader->has_columns && rows->value_count != reader->schema.field_count)
        return error_set(
            err, STATUS_INVALID, "csv: line %llu: %u fields where the first row has %u",
            (unsigned long long)rows->number, rows->value_count, reader->schema.field_count);
    return STATUS_OK;
}

static bool is_null(const struct csv_reader *reader, const struct csv_value *value)
{
    return !value->is_quoted && span_equal(value->text, span_of_text(reader->options.null_text));
}

/* ---- types ---- */

struct column_types {
    unsigned *may; /* of each column */
    bool *has_value;
};

static void note_types(const struct csv_reader *reader, struct column_types *types)
{
    for (uint32_t i = 0; i < reader->schema.field_count; i++) {
        const struct csv_value *value = &reader->rows.values[i];
        if (is_null(reader, value))
            continue;
        types->has_value[i] = true;
        if (types->may[i])
            types->may[i] = csv_may_be(value->text, types->may[i]);
    }
}

static enum arrow_type type_of(unsigned may)
{
    return may & MAY_BOOL                    ? ARROW_BOOL
           : may & MAY_INT                   ? ARROW_INT64
           : may & MAY_UINT                  ? ARROW_FIXED
           : may & MAY_DOUBLE                ? ARROW_DOUBLE
           : may & MAY_DATE                  ? ARROW_DATE32
           : may & (MAY_LOCAL | MAY_INSTANT) ? ARROW_TIMESTAMP_US
                                             : ARROW_UTF8;
}

static void set_types(struct csv_reader *reader, const struct column_types *types)
{
    for (uint32_t i = 0; i < reader->schema.field_count; i++) {
        struct arrow_field *field = &reader->schema.fields[i];
        field->is_nullable = true;
        field->type = types->has_value[i] ? type_of(types->may[i]) : ARROW_UTF8;
        if (field->type == ARROW_FIXED)
            arrow_set_uint64(field);
        field->is_instant = field->type == ARROW_TIMESTAMP_US && types->may[i] == MAY_INSTANT;
    }
}

/* Names from the row at hand, or made up. */
static enum status make_columns(struct csv_reader *reader, uint32_t count, bool has_names,
                                struct column_types *out_types, struct error *err)
{
    struct arena *arena = &reader->arena;
    if (count > reader->options.column_count_max)
        return error_set(err, STATUS_LIMIT, "csv: line %llu: %u columns; the limit is %u",
                         (unsigned long long)reader->rows.number, count,
                         reader->options.column_count_max);
    const char **names = arena_alloc_zero(arena, count, sizeof *names);
    struct arrow_field *fields = arena_alloc_zero(arena, count, sizeof *fields);
    out_types->may = arena_alloc_zero(arena, count, sizeof *out_types->may);
    out_types->has_value = arena_alloc_zero(arena, count, sizeof *out_types->has_value);
    if (!names || !fields || !out_types->may || !out_types->has_value)
        return error_set(err, STATUS_NO_MEMORY, "csv: no memory for a schema");
    TRY(csv_make_names(has_names ? reader->rows.values : NULL, count,
                       reader->options.name_bytes_max, arena, names, err));
    for (uint32_t i = 0; i < count; i++) {
        fields[i].name = names[i];
        out_types->may[i] = MAY_ALL;
    }
    reader->schema = (struct arrow_schema){.fields = fields, .field_count = count};
    reader->has_columns = true;
    return STATUS_OK;
}

/* The first row says how many columns there are. */
static enum status read_first_row(struct csv_reader *reader, struct column_types *out_types,
                                  struct error *err)
{
    bool has_header = reader->options.has_header;
    enum status status = next_row(reader, err);
    if (status == STATUS_NOT_FOUND && has_header)
        return error_set(err, STATUS_INVALID, "csv: no header: the file is empty");
    if (status == STATUS_NOT_FOUND) /* nothing, or one column of nulls */
        return make_columns(reader, reader->rows.lines.number > 0, false, out_types, err);
    TRY(status);
    TRY(make_columns(reader, reader->rows.value_count, has_header, out_types, err));
    if (!has_header)
        note_types(reader, out_types);
    return STATUS_OK;
}

static enum status infer_schema(struct csv_reader *reader, struct error *err)
{
    struct column_types types;
    enum status status;
    TRY(read_first_row(reader, &types, err));
    while ((status = next_row(reader, err)) == STATUS_OK)
        note_types(reader, &types);
    if (status != STATUS_NOT_FOUND)
        return status;
    set_types(reader, &types);
    return STATUS_OK;
}

/* ---- values ---- */

/* False: the text is not of the column's type, which it was when the types were found. */
static bool append_value(struct arrow_builder *builder, struct span text)
{
    bool truth, is_instant;
    int64_t number;
    uint64_t natural;
    int32_t days;
    double real;
    switch (builder->field->type) {
    case ARROW_BOOL:
        if (!csv_read_bool(text, &truth))
            return false;
        arrow_append_bool(builder, truth);
        return true;
    case ARROW_INT64:
        if (!csv_read_i64(text, &number))
            return false;
        arrow_append_i64(builder, number);
        return true;
    case ARROW_FIXED:
        if (!csv_read_u64(text, &natural))
            return false;
        arrow_append_bytes(builder, &natural, sizeof natural);
        return true;
    case ARROW_DOUBLE:
        if (!csv_read_double(text, &real))
            return false;
        arrow_append_double(builder, real);
        return true;
    case ARROW_DATE32:
        if (!csv_read_date(text, &days))
            return false;
        arrow_append_i32(builder, days);
        return true;
    case ARROW_TIMESTAMP_US:
        if (!csv_read_timestamp(text, &number, &is_instant) ||
            is_instant != builder->field->is_instant)
            return false;
        arrow_append_i64(builder, number);
        return true;
    default:
        arrow_append_bytes(builder, text.data, text.length);
        return true;
    }
}

static enum status changed(const struct csv_reader *reader, struct error *err)
{
    return error_set(err, STATUS_INVALID,
                     "csv: line %llu: the source has changed since it was read first",
                     (unsigned long long)reader->rows.number);
}

static enum status append_row(struct csv_reader *reader, struct error *err)
{
    for (uint32_t i = 0; i < reader->schema.field_count; i++) {
        const struct csv_value *value = &reader->rows.values[i];
        struct arrow_builder *builder = &reader->builder.children[i];
        if (is_null(reader, value))
            arrow_append_null(builder);
        else if (!append_value(builder, value->text))
            return changed(reader, err);
    }
    arrow_close_struct(&reader->builder);
    return STATUS_OK;
}

/* Back to the first row of values. */
static enum status rewind_rows(struct csv_reader *reader, struct error *err)
{
    csv_rows_rewind(&reader->rows);
    if (!reader->options.has_header)
        return STATUS_OK;
    do {
        enum status status = csv_rows_next(&reader->rows, err);
        if (status != STATUS_OK)
            return status == STATUS_NOT_FOUND ? changed(reader, err) : status;
    } while (csv_row_is_blank(&reader->rows));
    return STATUS_OK;
}

static enum status fill_batch(struct csv_reader *reader, struct error *err)
{
    const struct csv_reader_options *options = &reader->options;
    size_t bytes = 0;
    uint64_t values = 0;
    do {
        enum status status = next_row(reader, err);
        if (status == STATUS_NOT_FOUND)
            break;
        TRY(status);
        TRY(append_row(reader, err));
        bytes += reader->rows.bytes.length;
        values += reader->schema.field_count;
    } while (reader->builder.length < options->batch_rows && bytes < options->batch_bytes &&
             values < options->batch_values);
    if (arrow_builder_failed(&reader->builder))
        return error_set(err, STATUS_NO_MEMORY,
                         "csv: line %llu: no memory for the rows of a batch that ends here",
                         (unsigned long long)reader->rows.number);
    return STATUS_OK;
}

/* ---- the reader ---- */

static enum status open_reader(struct csv_reader *reader, struct byte_source source,
                               struct error *err)
{
    struct csv_reader_options *options = &reader->options;
    options->null_text = options->null_text ? options->null_text : "";
    options->batch_bytes = size_min(options->batch_bytes, BATCH_BYTES_MAX);
    TRY(csv_check_options(options->delimiter, options->null_text, err));
    TRY(csv_rows_init(&reader->rows, source, options, err));
    TRY(infer_schema(reader, err));
    reader->row = (struct arrow_field){.name = "row",
                                       .type = ARROW_STRUCT,
                                       .children = reader->schema.fields,
                                       .child_count = reader->schema.field_count};
    TRY(arrow_builder_init(&reader->builder, &reader->row, err));
    return rewind_rows(reader, err);
}

enum status csv_reader_create(struct byte_source source, const struct csv_reader_options *options,
                              struct csv_reader **out_reader, struct error *err)
{
    struct csv_reader *reader = mem_alloc_zero(1, sizeof *reader);
    if (!reader)
        return error_set(err, STATUS_NO_MEMORY, "csv: no memory for a reader");
    reader->options = options ? *options : csv_reader_options_default();
    arena_init(&reader->arena, 0);
    enum status status = open_reader(reader, source, err);
    if (status == STATUS_OK)
        *out_reader = reader;
    else
        csv_reader_destroy(reader);
    return status;
}

void csv_reader_destroy(struct csv_reader *reader)
{
    if (!reader)
        return;
    arrow_builder_deinit(&reader->builder);
    csv_rows_deinit(&reader->rows);
    arena_deinit(&reader->arena);
    mem_free(reader);
}

const struct arrow_schema *csv_reader_schema(const struct csv_reader *reader)
{
    return &reader->schema;
}

enum status csv_reader_next(struct csv_reader *reader, struct arrow_batch *out_batch,
                            struct error *err)
{
    arrow_builder_clear(&reader->builder);
    TRY(fill_batch(reader, err));
    if (reader->builder.length == 0)
        return error_set(err, STATUS_NOT_FOUND, "csv: no more rows");
    return arrow_builder_batch(&reader->builder, &reader->schema, out_batch, err);
}
