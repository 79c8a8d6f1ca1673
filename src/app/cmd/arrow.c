/* SPDX-License-Identifier: Apache-2.0
 *
 * sluice arrow schema | cat | verify FILE...: Arrow IPC files and streams.
 */
#include <inttypes.h>

#include "app/cmd/files_internal.h"

enum word { SCHEMA, CAT, VERIFY, WORD_COUNT };

struct request {
    enum word word;
    bool as_json;
    uint64_t rows; /* that are still to be printed */
    struct row_printer printer;
};

/* ---- schema ---- */

static void put_tree(struct buf *out, const struct arrow_field *field, int depth)
{
    buf_format(out, "%*s%s: ", depth * 2, "", field->name);
    arrow_type_describe(field, out);
    buf_put_text(out, field->is_nullable ? "" : " required");
    if (field->field_id)
        buf_format(out, " #%d", (int)field->field_id);
    if (field->origin && field->origin->extension)
        buf_format(out, " (%s)", field->origin->extension);
    buf_put_byte(out, '\n');
    for (uint32_t i = 0; i < field->child_count; i++)
        put_tree(out, &field->children[i], depth + 1);
}

static void write_fields(struct json_writer *json, const struct arrow_field *fields, uint32_t count)
{
    json_write_array_begin(json);
    for (uint32_t i = 0; i < count; i++) {
        struct buf type = {0};
        arrow_type_describe(&fields[i], &type);
        json_write_object_begin(json);
        json_write_key(json, "name");
        json_write_text(json, fields[i].name);
        json_write_key(json, "type");
        json_write_string(json, type.data, type.length);
        json_write_key(json, "nullable");
        json_write_bool(json, fields[i].is_nullable);
        if (fields[i].field_id) {
            json_write_key(json, "field_id");
            json_write_i64(json, fields[i].field_id);
        }
        if (fields[i].origin && fields[i].origin->extension) {
            json_write_key(json, "extension");
            json_write_text(json, fields[i].origin->extension);
        }
        if (fields[i].child_count) {
            json_write_key(json, "children");
            write_fields(json, fields[i].children, fields[i].child_count);
        }
        json_write_object_end(json);
        json->out->failed |= type.failed;
        buf_deinit(&type);
    }
    json_write_array_end(json);
}

static enum status print_schema(const struct arrow_schema *schema, bool as_json, struct error *err)
{
    struct buf out = {0};
    struct json_writer json;
    json_writer_init(&json, &out);
    if (as_json) {
        write_fields(&json, schema->fields, schema->field_count);
        buf_put_byte(&out, '\n');
    }
    for (uint32_t i = 0; i < schema->field_count && !as_json; i++)
        put_tree(&out, &schema->fields[i], 0);
    enum status status = buf_status(&out, "a schema", err);
    cmd_print(&out);
    return status;
}

/* ---- rows ---- */

static int64_t units_a_second(enum arrow_unit unit)
{
    static const int64_t units[] = {1, 1000, 1000000, 1000000000};
    return units[unit];
}

static int64_t signed_value(const uint8_t *from, int32_t width)
{
    return width == 1   ? (int8_t)*from
           : width == 2 ? (int16_t)get_le16(from)
           : width == 4 ? (int32_t)get_le32(from)
                        : (int64_t)get_le64(from);
}

static uint64_t unsigned_value(const uint8_t *from, int32_t width)
{
    return width == 1   ? *from
           : width == 2 ? get_le16(from)
           : width == 4 ? get_le32(from)
                        : get_le64(from);
}

static void write_little_decimal(struct json_writer *json, struct span bytes, int32_t scale)
{
    enum { DECIMAL_BYTES_MAX = 32 };
    uint8_t turned[DECIMAL_BYTES_MAX];
    CHECK(bytes.length <= sizeof turned);
    for (size_t i = 0; i < bytes.length; i++)
        turned[i] = bytes.data[bytes.length - 1 - i];
    row_write_decimal(json, span_of(turned, bytes.length), scale);
}

static void write_date_ms(struct json_writer *json, int64_t value)
{
    enum { MS_A_DAY = 86400000 };
    if (value % MS_A_DAY) /* not what the format allows, but what stands there */
        row_write_timestamp(json, value, 1000, false);
    else
        row_write_date(json, value / MS_A_DAY);
}

static void write_part(struct json_writer *json, const char *name, int64_t value)
{
    json_write_key(json, name);
    json_write_i64(json, value);
}

/* The parts of an interval, which have no common unit. */
static void write_interval(struct json_writer *json, enum arrow_origin_kind kind,
                           const uint8_t *from)
{
    json_write_object_begin(json);
    if (kind != ARROW_ORIGIN_DAY_TIME)
        write_part(json, "months", signed_value(from, 4));
    if (kind == ARROW_ORIGIN_DAY_TIME) {
        write_part(json, "days", signed_value(from, 4));
        write_part(json, "milliseconds", signed_value(from + 4, 4));
    } else if (kind == ARROW_ORIGIN_MONTH_DAY_NANO) {
        write_part(json, "days", signed_value(from + 4, 4));
        write_part(json, "nanoseconds", signed_value(from + 8, 8));
    }
    json_write_object_end(json);
}

static void write_leaf(struct json_writer *json, const void *context, uint32_t leaf,
                       const struct arrow_field *field, const struct arrow_array *array, int64_t i)
{
    UNUSED(context);
    UNUSED(leaf);
    const struct arrow_origin *origin = field->origin;
    if (!origin || field->type != ARROW_FIXED) {
        row_write_plain_leaf(json, field, array, i);
        return;
    }
    struct span bytes = slot_bytes(field, array, i);
    switch (origin->kind) {
    case ARROW_ORIGIN_INT:
    case ARROW_ORIGIN_DURATION:
        json_write_i64(json, signed_value(bytes.data, field->byte_width));
        break;
    case ARROW_ORIGIN_UINT:
        json_write_u64(json, unsigned_value(bytes.data, field->byte_width));
        break;
    case ARROW_ORIGIN_HALF:
        row_write_half(json, get_le16(bytes.data));
        break;
    case ARROW_ORIGIN_DECIMAL:
        write_little_decimal(json, bytes, origin->scale);
        break;
    case ARROW_ORIGIN_DATE_MS:
        write_date_ms(json, signed_value(bytes.data, 8));
        break;
    case ARROW_ORIGIN_TIME:
        row_write_time(json, signed_value(bytes.data, field->byte_width),
                       units_a_second(origin->unit));
        break;
    case ARROW_ORIGIN_TIMESTAMP:
        row_write_timestamp(json, signed_value(bytes.data, 8), units_a_second(origin->unit),
                            field->is_instant);
        break;
    case ARROW_ORIGIN_MONTHS:
    case ARROW_ORIGIN_DAY_TIME:
    case ARROW_ORIGIN_MONTH_DAY_NANO:
        write_interval(json, origin->kind, bytes.data);
        break;
    case ARROW_ORIGIN_SAME:
    case ARROW_ORIGIN_LARGE:
    case ARROW_ORIGIN_VIEW:
    case ARROW_ORIGIN_FIXED_LIST:
        if (origin->extension && strcmp(origin->extension, "arrow.uuid") == 0 &&
            bytes.length == sizeof(struct uuid))
            row_write_uuid(json, bytes.data);
        else
            row_write_base64(json, bytes);
        break;
    }
}

static enum status print_batch(struct request *request, const struct arrow_batch *batch,
                               struct error *err)
{
    const struct leaf_writer leaves = {.write = write_leaf};
    struct json_writer *json = &request->printer.json;
    for (int64_t i = 0; i < batch->length && request->rows; i++, request->rows--) {
        row_begin(&request->printer);
        json_write_object_begin(json);
        for (uint32_t j = 0; j < batch->schema->field_count; j++) {
            json_write_key(json, batch->schema->fields[j].name);
            row_write_slot(json, &leaves, 0, &batch->schema->fields[j], &batch->columns[j], i);
        }
        json_write_object_end(json);
        TRY(row_end(&request->printer, err));
    }
    return STATUS_OK;
}

/* ---- verify ---- */

/* The reader has checked everything on the way; here is what it saw. */
static void print_facts(const struct arrow_file *file, bool as_json)
{
    struct arrow_file_facts facts = arrow_file_facts(file);
    const char *container = facts.container == ARROW_FILE ? "file" : "stream";
    if (as_json)
        printf("{\"container\":\"%s\",\"rows\":%" PRIu64 ",\"record_batches\":%" PRIu64
               ",\"dictionaries\":%" PRIu64 ",\"columns\":%u,\"end_mark\":%s}\n",
               container, facts.row_count, facts.batch_count, facts.dictionary_count,
               arrow_file_schema(file)->field_count, facts.has_end_mark ? "true" : "false");
    else
        printf("%s: %" PRIu64 " rows in %" PRIu64 " record batches and %u columns are whole%s\n",
               container, facts.row_count, facts.batch_count, arrow_file_schema(file)->field_count,
               facts.has_end_mark ? "" : "; it ends without a mark");
}

/* ---- the command ---- */

static enum status walk(struct request *request, struct arrow_file *file, struct error *err)
{
    enum status status = STATUS_OK;
    while (status == STATUS_OK && (request->word == VERIFY || request->rows)) {
        struct arrow_batch batch;
        status = arrow_file_next(file, &batch, err);
        if (status != STATUS_OK)
            break;
        if (request->word == CAT)
            status = print_batch(request, &batch, err);
        arrow_batch_deinit(&batch);
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status look(void *context, struct byte_source source, struct error *err)
{
    enum { COLUMNS_MAX = 16384 };
    struct request *request = context;
    struct arrow_limits limits = arrow_limits_default();
    struct arrow_file *file;
    limits.field_count_max = COLUMNS_MAX;
    TRY(arrow_file_open(source, &limits, &file, err));
    enum status status = STATUS_OK;
    if (request->word == SCHEMA)
        status = print_schema(arrow_file_schema(file), request->as_json, err);
    else
        status = walk(request, file, err);
    if (request->word == CAT)
        status = rows_finish(&request->printer, status, err);
    if (request->word == VERIFY && status == STATUS_OK)
        print_facts(file, request->as_json);
    arrow_file_close(file);
    return status;
}

int cmd_arrow(struct invocation *invocation)
{
    struct request request = {.rows = UINT64_MAX};
    request.as_json = cmd_take_flag(invocation, "--json");
    if (!cmd_take_number(invocation, "--rows", &request.rows))
        return 2;
    static const char *const words[WORD_COUNT] = {"schema", "cat", "verify"};
    const char *what = invocation->argc > 0 ? invocation->argv[0] : "";
    while (request.word < WORD_COUNT && strcmp(what, words[request.word]) != 0)
        request.word++;
    if (request.word == WORD_COUNT || invocation->argc < 2)
        return cmd_usage("arrow schema, cat or verify, and files");
    return input_each(invocation, 1, look, &request);
}
