/* SPDX-License-Identifier: Apache-2.0
 *
 * sluice avro schema | cat FILE...: Avro object container files.
 */
#include "app/cmd/files_internal.h"
#include "format/avro/avro.h"

enum word { SCHEMA, CAT, WORD_COUNT };

struct request {
    enum word word;
    bool as_json;
    const char *columns; /* NULL: all */
    uint64_t rows;       /* that are still to be printed */
    struct row_printer printer;
};

/* ---- schema ---- */

static void put_children(struct buf *out, const struct json_value *type, int depth);

/* A type in a few words: "long", "string | null", "record r", "decimal(9, 2) as bytes". */
static void put_type(struct buf *out, const struct json_value *type)
{
    const struct json_value *inner = json_get(type, "type");
    const char *logical = json_get_text(type, "logicalType"), *name = json_get_text(type, "name");
    int64_t precision, scale = 0;
    if (type->type == JSON_STRING) {
        buf_put_text(out, type->text);
    } else if (type->type == JSON_ARRAY) {
        for (const struct json_value *branch = type->first; branch; branch = branch->next) {
            put_type(out, branch);
            buf_put_text(out, branch->next ? " | " : "");
        }
    } else if (inner) {
        if (logical) {
            buf_put_text(out, logical);
            if (json_get_i64(type, "precision", &precision)) {
                json_get_i64(type, "scale", &scale);
                buf_format(out, "(%lld, %lld)", (long long)precision, (long long)scale);
            }
            buf_put_text(out, " as ");
        }
        put_type(out, inner);
        if (name)
            buf_format(out, " %s", name);
    }
}

static void put_named(struct buf *out, const char *name, const struct json_value *type,
                      const struct json_value *id, int depth)
{
    buf_format(out, "%*s%s: ", depth * 2, "", name);
    put_type(out, type);
    if (id && id->type == JSON_NUMBER)
        buf_format(out, " #%s", id->text);
    buf_put_byte(out, '\n');
    put_children(out, type, depth + 1);
}

static void put_enum(struct buf *out, const struct json_value *symbols, int depth)
{
    buf_format(out, "%*s", depth * 2, "");
    for (const struct json_value *symbol = symbols->first; symbol; symbol = symbol->next)
        buf_format(out, "%s%s", symbol->text ? symbol->text : "", symbol->next ? ", " : "\n");
}

/* What is defined within a type. A name that was defined before is not opened again, so that the
 * tree ends where the schema's text does. */
static void put_children(struct buf *out, const struct json_value *type, int depth)
{
    const struct json_value *part;
    if (type->type == JSON_ARRAY) {
        for (part = type->first; part; part = part->next)
            put_children(out, part, depth);
        return;
    }
    if ((part = json_get(type, "fields")) && part->type == JSON_ARRAY) {
        for (const struct json_value *field = part->first; field; field = field->next) {
            const char *name = json_get_text(field, "name");
            if (name && json_get(field, "type"))
                put_named(out, name, json_get(field, "type"), json_get(field, "field-id"), depth);
        }
    }
    if ((part = json_get(type, "symbols")) && part->type == JSON_ARRAY)
        put_enum(out, part, depth);
    if ((part = json_get(type, "items")))
        put_named(out, "element", part, json_get(type, "element-id"), depth);
    if ((part = json_get(type, "values")))
        put_named(out, "value", part, json_get(type, "value-id"), depth);
    if ((part = json_get(type, "type")) && part->type != JSON_STRING)
        put_children(out, part, depth);
}

static enum status print_schema(const struct avro_reader *reader, bool as_json, struct error *err)
{
    enum { TREE_BYTES_MAX = 1 << 28 };
    struct span text;
    struct arena arena;
    struct buf out = {0};
    struct json_value *tree;
    CHECK(avro_reader_metadata(reader, "avro.schema", &text));
    arena_init(&arena, TREE_BYTES_MAX);
    enum status status = json_parse(text.data, text.length, &arena, &tree, err);
    if (status == STATUS_OK && as_json) {
        status = json_serialize(tree, &out, err);
        buf_put_byte(&out, '\n');
    } else if (status == STATUS_OK) {
        if (!json_get(tree, "fields")) { /* no record: its type has a line of its own */
            put_type(&out, tree);
            buf_put_byte(&out, '\n');
        }
        put_children(&out, tree, json_get(tree, "fields") ? 0 : 1);
        status = buf_status(&out, "a schema", err);
    }
    arena_deinit(&arena);
    cmd_print(&out);
    return status;
}

/* ---- rows ---- */

static void write_value(struct json_writer *json, const struct avro_value *value);

static bool is_logical(const struct avro_type *type, const char *name)
{
    return type->logical_type && strcmp(type->logical_type, name) == 0;
}

/* Units a second of the timestamp types, local or not; 0 for others. */
static int64_t timestamp_units(const struct avro_type *type)
{
    static const struct {
        const char *name;
        int64_t units;
    } known[] = {
        {"timestamp-millis", 1000},          {"timestamp-micros", 1000000},
        {"timestamp-nanos", 1000000000},     {"local-timestamp-millis", 1000},
        {"local-timestamp-micros", 1000000}, {"local-timestamp-nanos", 1000000000},
    };
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (is_logical(type, known[i].name))
            return known[i].units;
    return 0;
}

static void write_integer(struct json_writer *json, const struct avro_value *value)
{
    const struct avro_type *type = value->type;
    int64_t units = type->kind == AVRO_LONG ? timestamp_units(type) : 0;
    if (units)
        row_write_timestamp(json, value->integer, units, !type->is_local);
    else if (type->kind == AVRO_INT && is_logical(type, "date"))
        row_write_date(json, value->integer);
    else if (type->kind == AVRO_INT && is_logical(type, "time-millis"))
        row_write_time(json, value->integer, 1000);
    else if (type->kind == AVRO_LONG && is_logical(type, "time-micros"))
        row_write_time(json, value->integer, 1000000);
    else
        json_write_i64(json, value->integer);
}

static void write_duration(struct json_writer *json, const uint8_t *from)
{
    static const char *const parts[] = {"months", "days", "milliseconds"};
    json_write_object_begin(json);
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        json_write_key(json, parts[i]);
        json_write_u64(json, get_le32(from + 4 * i));
    }
    json_write_object_end(json);
}

static void write_bytes(struct json_writer *json, const struct avro_value *value)
{
    enum { DURATION_BYTES = 12 };
    const struct avro_type *type = value->type;
    if (is_logical(type, "decimal"))
        row_write_decimal(json, value->bytes, type->scale);
    else if (is_logical(type, "uuid") && value->bytes.length == sizeof(struct uuid))
        row_write_uuid(json, value->bytes.data);
    else if (is_logical(type, "duration") && value->bytes.length == DURATION_BYTES)
        write_duration(json, value->bytes.data);
    else
        row_write_base64(json, value->bytes);
}

static void write_record(struct json_writer *json, const struct avro_value *value)
{
    json_write_object_begin(json);
    for (uint32_t i = 0; i < value->count; i++) {
        json_write_key(json, value->type->fields[i].name);
        write_value(json, &value->items[i]);
    }
    json_write_object_end(json);
}

static void write_map(struct json_writer *json, const struct avro_value *value)
{
    json_write_object_begin(json);
    for (uint32_t i = 0; i + 1 < value->count; i += 2) {
        json_write_key_bytes(json, value->items[i].bytes.data, value->items[i].bytes.length);
        write_value(json, &value->items[i + 1]);
    }
    json_write_object_end(json);
}

static void write_array(struct json_writer *json, const struct avro_value *value)
{
    json_write_array_begin(json);
    for (uint32_t i = 0; i < value->count; i++)
        write_value(json, &value->items[i]);
    json_write_array_end(json);
}

/* Unions are the value of their branch, enums their symbol. Nesting is the reader's to bound. */
static void write_value(struct json_writer *json, const struct avro_value *value)
{
    switch (value->type->kind) {
    case AVRO_NULL:
    case AVRO_UNION: /* resolved by the reader */
        json_write_null(json);
        break;
    case AVRO_BOOLEAN:
        json_write_bool(json, value->integer != 0);
        break;
    case AVRO_INT:
    case AVRO_LONG:
        write_integer(json, value);
        break;
    case AVRO_FLOAT:
    case AVRO_DOUBLE:
        json_write_double(json, value->real);
        break;
    case AVRO_BYTES:
    case AVRO_FIXED:
        write_bytes(json, value);
        break;
    case AVRO_STRING:
        json_write_string(json, value->bytes.data, value->bytes.length);
        break;
    case AVRO_ENUM:
        json_write_text(json, value->type->symbols[value->integer]);
        break;
    case AVRO_RECORD:
        write_record(json, value);
        break;
    case AVRO_MAP:
        write_map(json, value);
        break;
    case AVRO_ARRAY:
        write_array(json, value);
        break;
    }
}

/* The fields that are wanted, of records that are rows. */
static enum status choose_fields(const struct request *request, const struct avro_type *type,
                                 struct chosen_columns *out_chosen, struct error *err)
{
    struct arrow_schema names = {.field_count = type->field_count};
    struct arena arena;
    if (type->kind != AVRO_RECORD)
        return error_set(err, STATUS_NOT_FOUND, "no records, and so no columns");
    arena_init(&arena, 0); /* the schema is bounded */
    names.fields = arena_alloc_zero(&arena, (size_t)type->field_count + 1, sizeof *names.fields);
    for (uint32_t i = 0; names.fields && i < type->field_count; i++)
        names.fields[i] = (struct arrow_field){.name = type->fields[i].name};
    enum status status = names.fields ? columns_choose(&names, request->columns, out_chosen, err)
                                      : error_set(err, STATUS_NO_MEMORY, "out of memory");
    arena_deinit(&arena);
    return status;
}

/* JSON holds no other text. */
static bool is_text_valid(const struct avro_value *value)
{
    enum avro_kind kind = value->type->kind;
    bool is_valid = kind != AVRO_STRING || utf8_is_valid(value->bytes.data, value->bytes.length);
    if (kind != AVRO_RECORD && kind != AVRO_MAP && kind != AVRO_ARRAY)
        return is_valid;
    for (uint32_t i = 0; is_valid && i < value->count; i++) {
        const struct avro_value *item = &value->items[i];
        bool is_key = kind == AVRO_MAP && i % 2 == 0;
        is_valid =
            is_key ? utf8_is_valid(item->bytes.data, item->bytes.length) : is_text_valid(item);
    }
    return is_valid;
}

/* Of the fields that are printed. */
static enum status check_text(const struct request *request, const struct chosen_columns *chosen,
                              const struct avro_value *record, struct error *err)
{
    if (record->type->kind != AVRO_RECORD)
        return is_text_valid(record)
                   ? STATUS_OK
                   : error_set(err, STATUS_INVALID, "Avro: text that is no UTF-8");
    uint32_t count = request->columns ? chosen->schema.field_count : record->count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = request->columns ? chosen->indices[i] : i;
        if (!is_text_valid(&record->items[at]))
            return error_set(err, STATUS_INVALID, "Avro: column %.100s: text that is no UTF-8",
                             record->type->fields[at].name);
    }
    return STATUS_OK;
}

static void write_chosen(struct json_writer *json, const struct chosen_columns *chosen,
                         const struct avro_value *record)
{
    json_write_object_begin(json);
    for (uint32_t i = 0; i < chosen->schema.field_count; i++) {
        json_write_key(json, record->type->fields[chosen->indices[i]].name);
        write_value(json, &record->items[chosen->indices[i]]);
    }
    json_write_object_end(json);
}

static enum status print_rows(struct request *request, struct avro_reader *reader,
                              struct error *err)
{
    struct chosen_columns chosen = {.indices = NULL};
    static const size_t record_bytes_max = (size_t)4 << 30;
    struct arena arena;
    enum status status = STATUS_OK;
    if (request->columns)
        TRY(choose_fields(request, avro_reader_type(reader), &chosen, err));
    arena_init(&arena, record_bytes_max);
    for (; status == STATUS_OK && request->rows; request->rows--) {
        const struct avro_value *record;
        arena_clear(&arena);
        status = avro_reader_next(reader, &arena, &record, err);
        if (status == STATUS_OK)
            status = check_text(request, &chosen, record, err);
        if (status != STATUS_OK)
            break;
        row_begin(&request->printer);
        if (request->columns)
            write_chosen(&request->printer.json, &chosen, record);
        else
            write_value(&request->printer.json, record);
        status = row_end(&request->printer, err);
    }
    arena_deinit(&arena);
    arena_deinit(&chosen.arena);
    status = status == STATUS_NOT_FOUND ? STATUS_OK : status;
    return rows_finish(&request->printer, status, err);
}

/* ---- the command ---- */

static enum status look(void *context, struct byte_source source, struct error *err)
{
    struct request *request = context;
    struct avro_reader *reader;
    TRY(avro_reader_open(source, NULL, &reader, err));
    enum status status = request->word == SCHEMA ? print_schema(reader, request->as_json, err)
                                                 : print_rows(request, reader, err);
    avro_reader_destroy(reader);
    return status;
}

int cmd_avro(struct invocation *invocation)
{
    struct request request = {.rows = UINT64_MAX};
    request.as_json = cmd_take_flag(invocation, "--json");
    request.columns = cmd_take_option(invocation, "--columns");
    if (!cmd_take_number(invocation, "--rows", &request.rows))
        return 2;
    static const char *const words[WORD_COUNT] = {"schema", "cat"};
    const char *what = invocation->argc > 0 ? invocation->argv[0] : "";
    while (request.word < WORD_COUNT && strcmp(what, words[request.word]) != 0)
        request.word++;
    if (request.word == WORD_COUNT || invocation->argc < 2)
        return cmd_usage("avro schema or cat, and files");
    if (request.word == SCHEMA && (request.columns || request.rows != UINT64_MAX))
        return cmd_usage("avro schema has no %s", request.columns ? "--columns" : "--rows");
    return input_each(invocation, 1, look, &request);
}
