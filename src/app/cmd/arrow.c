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
    const char *columns;
    uint64_t rows; /* that are still to be printed */
    struct row_printer printer;
    struct chosen_columns chosen; /* of the file at hand */
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

static enum status print_batch(struct request *request, struct arrow_batch *batch,
                               struct error *err)
{
    const struct chosen_columns *chosen = &request->chosen;
    struct arrow_batch some = {.schema = &chosen->schema, .length = batch->length};
    uint64_t length = (uint64_t)batch->length;
    uint64_t count = request->rows < length ? request->rows : length;
    request->rows -= count;
    some.columns = arena_alloc(&batch->arena, chosen->schema.field_count * sizeof *some.columns);
    if (!some.columns)
        return error_set(err, STATUS_NO_MEMORY, "out of memory");
    for (uint32_t i = 0; i < chosen->schema.field_count; i++)
        some.columns[i] = batch->columns[chosen->indices[i]];
    return rows_print_batch(&request->printer, &some, (int64_t)count, err);
}

/* ---- verify ---- */

/* The reader has checked everything on the way; here is what it saw. */
static void print_facts(const struct arrow_file *file)
{
    struct arrow_file_facts facts = arrow_file_facts(file);
    printf("%s: %" PRIu64 " rows in %" PRIu64 " record batches and %u columns are whole%s\n",
           facts.container == ARROW_FILE ? "file" : "stream", facts.row_count, facts.batch_count,
           arrow_file_schema(file)->field_count,
           facts.has_end_mark ? "" : "; it ends without a mark");
}

static void write_facts(struct json_writer *json, const struct arrow_file *file)
{
    struct arrow_file_facts facts = arrow_file_facts(file);
    const struct {
        const char *name;
        uint64_t value;
    } members[] = {
        {"rows", facts.row_count},
        {"record_batches", facts.batch_count},
        {"dictionaries", facts.dictionary_count},
        {"columns", arrow_file_schema(file)->field_count},
    };
    json_write_key(json, "container");
    json_write_text(json, facts.container == ARROW_FILE ? "file" : "stream");
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        json_write_key(json, members[i].name);
        json_write_u64(json, members[i].value);
    }
    json_write_key(json, "end_mark");
    json_write_bool(json, facts.has_end_mark);
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

static enum status print_rows(struct request *request, struct arrow_file *file, struct error *err)
{
    TRY(columns_choose(arrow_file_schema(file), request->columns, &request->chosen, err));
    enum status status = walk(request, file, err);
    arena_deinit(&request->chosen.arena);
    return rows_finish(&request->printer, status, err);
}

static enum status look(void *context, struct byte_source source, struct error *err)
{
    struct request *request = context;
    struct arrow_limits limits = files_arrow_limits();
    struct arrow_file *file;
    TRY(arrow_file_open(source, &limits, &file, err));
    enum status status = STATUS_OK;
    if (request->word == SCHEMA)
        status = print_schema(arrow_file_schema(file), request->as_json, err);
    else if (request->word == CAT)
        status = print_rows(request, file, err);
    else
        status = walk(request, file, err);
    if (request->word == VERIFY && status == STATUS_OK)
        print_facts(file);
    arrow_file_close(file);
    return status;
}

/* One line; what is wrong stands on stderr too. */
static enum status verify_as_json(struct request *request, struct env *env, const char *path,
                                  struct error *err)
{
    struct arrow_limits limits = files_arrow_limits();
    struct arrow_file *file = NULL;
    struct input input;
    struct json_writer json;
    struct buf out = {0};
    enum status status = input_open(env, path, &input, err);
    bool is_open = status == STATUS_OK;
    if (status == STATUS_OK)
        status = arrow_file_open(input.source, &limits, &file, err);
    if (status == STATUS_OK)
        status = walk(request, file, err);
    json_writer_init(&json, &out);
    json_write_object_begin(&json);
    json_write_key(&json, "file");
    json_write_text(&json, path);
    json_write_key(&json, "ok");
    json_write_bool(&json, status == STATUS_OK);
    if (status == STATUS_OK)
        write_facts(&json, file);
    else
        files_write_failure(&json, err);
    json_write_object_end(&json);
    buf_put_byte(&out, '\n');
    cmd_print(&out);
    arrow_file_close(file);
    if (is_open)
        input_close(&input);
    if (is_open && status != STATUS_OK)
        error_prefix(err, "%.200s", path);
    return status;
}

static int verify_each_as_json(struct request *request, const struct invocation *invocation)
{
    int exit_code = 0;
    for (int i = 1; i < invocation->argc; i++) {
        struct error err;
        if (verify_as_json(request, invocation->env, invocation->argv[i], &err) == STATUS_OK)
            continue;
        int code = fail_of_file(&err);
        exit_code = exit_code ? exit_code : code;
    }
    return exit_code;
}

/* Only rows are chosen. */
static bool has_its_flags(const struct request *request, const char *word)
{
    bool has_rows = request->rows != UINT64_MAX;
    if (request->word == CAT || (!request->columns && !has_rows))
        return true;
    cmd_usage("arrow %s has no %s", word, request->columns ? "--columns" : "--rows");
    return false;
}

int cmd_arrow(struct invocation *invocation)
{
    struct request request = {.rows = UINT64_MAX}; /* not said */
    request.as_json = cmd_take_flag(invocation, "--json");
    request.columns = cmd_take_option(invocation, "--columns");
    if (!cmd_take_number(invocation, "--rows", &request.rows))
        return 2;
    static const char *const words[WORD_COUNT] = {"schema", "cat", "verify"};
    const char *what = invocation->argc > 0 ? invocation->argv[0] : "";
    while (request.word < WORD_COUNT && strcmp(what, words[request.word]) != 0)
        request.word++;
    if (request.word == WORD_COUNT || invocation->argc < 2)
        return cmd_usage("arrow schema, cat or verify, and files");
    if (!has_its_flags(&request, what))
        return 2;
    if (request.word == VERIFY && request.as_json)
        return verify_each_as_json(&request, invocation);
    return input_each(invocation, 1, look, &request);
}
