/* SPDX-License-Identifier: Apache-2.0
 *
 * The second pass: lines into the builders of a batch.
 *
 * What is counted as values bounds memory and time alike: a slot for each column that a value or a
 * null fills, and for a member that comes again what it costs to take the first one back. Nulls of
 * members that an object does not have are put off until the member's next value or the batch's end
 * and then appended at once: until then a struct's members may be shorter than the struct.
 */
#include "format/ndjson/ndjson_internal.h"

enum {
    BYTES_MAX = 1 << 30,
    TAKE_BACK_SHIFT = 12, /* taking back counts nulls anew: so many slots cost as much as a value */
};

struct ndjson_reader {
    struct ndjson_limits limits;
    struct line_reader lines;
    struct json_reader json;
    struct columns columns;
    struct arrow_schema schema;
    struct arrow_field rows;      /* a struct of the schema's fields */
    struct arrow_builder builder; /* of `rows` */
    uint64_t values, line_values; /* of the batch; of it when the line began */
};

struct ndjson_limits ndjson_limits_default(void)
{
    return (struct ndjson_limits){.block_bytes = 1 << 20,
                                  .line_bytes_max = 64 << 20,
                                  .name_bytes_max = ARROW_NAME_BYTES_MAX,
                                  .column_count_max = 16384,
                                  .depth_max = ARROW_DEPTH_MAX,
                                  .batch_rows = 16384,
                                  .batch_bytes = 64 << 20,
                                  .batch_values = 8 << 20,
                                  .line_values_max = 64 << 20};
}

/* ---- lines ---- */

static bool is_blank(struct span line)
{
    for (size_t i = 0; i < line.length; i++)
        if (line.data[i] != ' ' && line.data[i] != '\t' && line.data[i] != '\r')
            return false;
    return true;
}

/* The next line that is not blank, with the JSON reader at its start. */
static enum status next_line(struct ndjson_reader *reader, struct span *out_line, struct error *err)
{
    struct buf scratch = reader->json.scratch; /* its memory serves the next line too */
    do {
        enum status status = line_reader_next(&reader->lines, out_line, err);
        if (status != STATUS_OK)
            return status == STATUS_NOT_FOUND ? status : error_prefix(err, "ndjson");
    } while (is_blank(*out_line));
    json_reader_init(&reader->json, out_line->data, out_line->length);
    reader->json.scratch = scratch;
    return STATUS_OK;
}

static enum status in_line(const struct ndjson_reader *reader, struct error *err)
{
    return error_prefix(err, "ndjson: line %llu", (unsigned long long)reader->lines.number);
}

/* ---- values ---- */

static enum status changed(struct error *err)
{
    return error_set(err, STATUS_INVALID, "the source has changed since it was read first");
}

static enum status count_values(struct ndjson_reader *reader, uint64_t count, struct error *err)
{
    reader->values += count;
    if (reader->values - reader->line_values > reader->limits.line_values_max)
        return error_set(err, STATUS_LIMIT, "more than %llu values",
                         (unsigned long long)reader->limits.line_values_max);
    return STATUS_OK;
}

static enum status append_value(struct ndjson_reader *reader, const struct column *column,
                                struct arrow_builder *builder, enum json_event event,
                                struct error *err);

static enum status append_null(struct ndjson_reader *reader, const struct column *column,
                               struct arrow_builder *builder, struct error *err)
{
    TRY(count_values(reader, column->slot_values, err));
    arrow_append_null(builder);
    return STATUS_OK;
}

/* A member that has come before in this object: the last one counts. */
static enum status take_back(struct ndjson_reader *reader, const struct column *column,
                             struct arrow_builder *builder, int64_t length, struct error *err)
{
    uint64_t cost = 1 + (reader->values >> TAKE_BACK_SHIFT);
    TRY(count_values(reader, cost * column->slot_values, err));
    arrow_builder_truncate(builder, length);
    return STATUS_OK;
}

/* Makes a member ready for its value in slot `length` of its struct: the nulls since its last one,
 * which were put off. `inout_missing` counts what the members without a value come to. */
static enum status begin_member(struct ndjson_reader *reader, const struct column *member,
                                struct arrow_builder *builder, int64_t length,
                                uint32_t *inout_missing, struct error *err)
{
    if (builder->length > length)
        return take_back(reader, member, builder, length, err);
    if (builder->length < length)
        arrow_append_many_zeros(builder, length - builder->length, true);
    *inout_missing -= member->slot_values;
    return STATUS_OK;
}

static enum status append_members(struct ndjson_reader *reader, const struct column *column,
                                  struct arrow_builder *builder, struct error *err)
{
    struct column *expected = column->first;
    uint32_t missing = column->slot_values - 1;
    int64_t length = builder->length;
    for (;;) {
        enum json_event event;
        TRY(json_reader_next(&reader->json, &event, err));
        if (event == JSON_EVENT_OBJECT_END)
            break;
        struct column *member = columns_find(&reader->columns, column, expected, reader->json.text);
        if (!member)
            return changed(err);
        expected = member->next;
        struct arrow_builder *values = &builder->children[member->index];
        TRY(begin_member(reader, member, values, length, &missing, err));
        TRY(json_reader_next(&reader->json, &event, err));
        TRY(append_value(reader, member, values, event, err));
    }
    TRY(count_values(reader, missing, err));
    arrow_close_struct(builder);
    return STATUS_OK;
}

static enum status append_elements(struct ndjson_reader *reader, const struct column *column,
                                   struct arrow_builder *builder, struct error *err)
{
    for (;;) {
        enum json_event event;
        TRY(json_reader_next(&reader->json, &event, err));
        if (event == JSON_EVENT_ARRAY_END)
            break;
        TRY(append_value(reader, column->first, &builder->children[0], event, err));
    }
    arrow_close_list(builder);
    return STATUS_OK;
}

/* Strings themselves; of all else the JSON as it was sent. */
static enum status append_text(struct ndjson_reader *reader, struct arrow_builder *builder,
                               enum json_event event, struct error *err)
{
    struct json_reader *json = &reader->json;
    struct span text = json->text;
    if (event != JSON_EVENT_STRING) {
        size_t from = json->token_offset;
        TRY(json_reader_skip(json, event, err));
        text = span_of(json->start + from, json_reader_offset(json) - from);
    }
    arrow_append_bytes(builder, text.data, text.length);
    return STATUS_OK;
}

static enum status append_number(struct arrow_builder *builder, struct span text, struct error *err)
{
    int64_t integer;
    uint64_t natural;
    double real;
    if (builder->field->type == ARROW_INT64) {
        if (!json_number_to_i64(text, &integer))
            return changed(err);
        arrow_append_i64(builder, integer);
        return STATUS_OK;
    }
    if (builder->field->type == ARROW_FIXED) {
        if (!json_number_to_u64(text, &natural))
            return changed(err);
        arrow_append_bytes(builder, &natural, sizeof natural);
        return STATUS_OK;
    }
    if (!json_number_to_double(text, &real))
        return changed(err);
    arrow_append_double(builder, real);
    return STATUS_OK;
}

/* The value whose first event it is. */
static enum status append_value(struct ndjson_reader *reader, const struct column *column,
                                struct arrow_builder *builder, enum json_event event,
                                struct error *err)
{
    enum arrow_type type = builder->field->type;
    double named;
    if (event == JSON_EVENT_NULL)
        return append_null(reader, column, builder, err);
    TRY(count_values(reader, 1, err));
    if (type == ARROW_UTF8)
        return append_text(reader, builder, event, err);
    switch (event) {
    case JSON_EVENT_OBJECT_BEGIN:
        return type == ARROW_STRUCT ? append_members(reader, column, builder, err) : changed(err);
    case JSON_EVENT_ARRAY_BEGIN:
        return type == ARROW_LIST ? append_elements(reader, column, builder, err) : changed(err);
    case JSON_EVENT_NUMBER:
        if (type != ARROW_INT64 && type != ARROW_FIXED && type != ARROW_DOUBLE)
            return changed(err);
        return append_number(builder, reader->json.text, err);
    case JSON_EVENT_STRING:
        if (type != ARROW_DOUBLE || !read_named_number(reader->json.text, &named))
            return changed(err);
        arrow_append_double(builder, named);
        return STATUS_OK;
    case JSON_EVENT_TRUE:
    case JSON_EVENT_FALSE:
        if (type != ARROW_BOOL)
            return changed(err);
        arrow_append_bool(builder, event == JSON_EVENT_TRUE);
        return STATUS_OK;
    default:
        return changed(err);
    }
}

/* The nulls that were put off, at the end of a batch. */
static void complete_members(struct arrow_builder *builder)
{
    bool is_struct = builder->field->type == ARROW_STRUCT;
    for (uint32_t i = 0; i < builder->child_count; i++) {
        struct arrow_builder *child = &builder->children[i];
        if (is_struct && child->length < builder->length)
            arrow_append_many_zeros(child, builder->length - child->length, true);
        complete_members(child);
    }
}

static enum status append_line(struct ndjson_reader *reader, struct error *err)
{
    enum json_event event;
    reader->line_values = reader->values;
    TRY(json_reader_next(&reader->json, &event, err));
    if (event != JSON_EVENT_OBJECT_BEGIN)
        return changed(err);
    TRY(append_members(reader, reader->columns.root, &reader->builder, err));
    return json_reader_next(&reader->json, &event, err); /* nothing but the end may follow */
}

/* ---- the reader ---- */

static enum status infer_schema(struct ndjson_reader *reader, struct error *err)
{
    struct span line;
    enum status status;
    while ((status = next_line(reader, &line, err)) == STATUS_OK)
        if (infer_line(&reader->columns, &reader->json, err) != STATUS_OK)
            return in_line(reader, err);
    if (status != STATUS_NOT_FOUND)
        return status;
    if (columns_make_schema(&reader->columns, &reader->schema, err) != STATUS_OK)
        return error_prefix(err, "ndjson");
    reader->rows = (struct arrow_field){.name = "rows",
                                        .type = ARROW_STRUCT,
                                        .children = reader->schema.fields,
                                        .child_count = reader->schema.field_count};
    line_reader_rewind(&reader->lines);
    return arrow_builder_init(&reader->builder, &reader->rows, err);
}

enum status ndjson_reader_create(struct byte_source source, const struct ndjson_limits *limits,
                                 struct ndjson_reader **out_reader, struct error *err)
{
    struct ndjson_reader *reader = mem_alloc_zero(1, sizeof *reader);
    if (!reader)
        return error_set(err, STATUS_NO_MEMORY, "ndjson: no memory for a reader");
    reader->limits = limits ? *limits : ndjson_limits_default();
    reader->limits.line_bytes_max = size_min(reader->limits.line_bytes_max, BYTES_MAX);
    reader->limits.batch_bytes = size_min(reader->limits.batch_bytes, BYTES_MAX - 1);
    line_reader_init(&reader->lines, source, reader->limits.block_bytes,
                     reader->limits.line_bytes_max);
    enum status status = columns_init(&reader->columns, &reader->limits, err);
    if (status == STATUS_OK)
        status = infer_schema(reader, err);
    if (status == STATUS_OK)
        *out_reader = reader;
    else
        ndjson_reader_destroy(reader);
    return status;
}

void ndjson_reader_destroy(struct ndjson_reader *reader)
{
    if (!reader)
        return;
    arrow_builder_deinit(&reader->builder);
    columns_deinit(&reader->columns);
    json_reader_deinit(&reader->json);
    line_reader_deinit(&reader->lines);
    mem_free(reader);
}

const struct arrow_schema *ndjson_reader_schema(const struct ndjson_reader *reader)
{
    return &reader->schema;
}

/* Lines until the batch is full or the source is over. */
static enum status fill_batch(struct ndjson_reader *reader, struct error *err)
{
    const struct ndjson_limits *limits = &reader->limits;
    size_t bytes = 0;
    do {
        struct span line;
        enum status status = next_line(reader, &line, err);
        if (status == STATUS_NOT_FOUND)
            break;
        TRY(status);
        if (append_line(reader, err) != STATUS_OK)
            return in_line(reader, err);
        bytes += line.length;
    } while (reader->builder.length < limits->batch_rows && bytes < limits->batch_bytes &&
             reader->values < limits->batch_values);
    complete_members(&reader->builder);
    if (arrow_builder_failed(&reader->builder)) {
        error_set(err, STATUS_NO_MEMORY, "no memory for the rows of a batch that ends here");
        return in_line(reader, err);
    }
    return STATUS_OK;
}

enum status ndjson_reader_next(struct ndjson_reader *reader, struct arrow_batch *out_batch,
                               struct error *err)
{
    arrow_builder_clear(&reader->builder);
    reader->values = 0;
    TRY(fill_batch(reader, err));
    if (reader->builder.length == 0)
        return error_set(err, STATUS_NOT_FOUND, "ndjson: no more rows");
    return arrow_builder_batch(&reader->builder, &reader->schema, out_batch, err);
}
