/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that commands look into, and rows on their way to stdout.
 */
#include "app/cmd/files_internal.h"

/* ---- files ---- */

static enum status read_input(void *context, uint64_t offset, size_t bytes, void *place,
                              struct error *err)
{
    struct env_file *file = context;
    for (size_t got = 0, step = 0; got < bytes; got += step) {
        TRY(env_read(file, offset + got, (uint8_t *)place + got, bytes - got, &step, err));
        if (step == 0)
            return error_set(err, STATUS_IO, "the file became shorter");
    }
    return STATUS_OK;
}

enum status input_open(struct env *env, const char *path, struct input *out_input,
                       struct error *err)
{
    struct env_stat stat;
    struct env_file *file;
    TRY(env_open(env, path, ENV_READ, &file, err));
    if (env_file_stat(file, &stat, err) != STATUS_OK) {
        env_close(file);
        return error_prefix(err, "%.200s", path);
    }
    *out_input = (struct input){
        .file = file,
        .source = {.read = read_input, .context = file, .file_bytes = stat.bytes},
    };
    return STATUS_OK;
}

void input_close(struct input *input)
{
    env_close(input->file);
}

int fail_of_file(const struct error *err)
{
    int code = cmd_fail(err);
    bool is_damage = err->status == STATUS_CORRUPT || err->status == STATUS_TORN_TAIL;
    return is_damage ? status_exit_code(STATUS_INVALID) : code;
}

int input_each(const struct invocation *invocation, int from,
               enum status (*look)(void *context, struct byte_source source, struct error *err),
               void *context)
{
    int exit_code = 0;
    for (int i = from; i < invocation->argc; i++) {
        struct error err;
        struct input input;
        const char *path = invocation->argv[i];
        enum status status = input_open(invocation->env, path, &input, &err);
        if (status == STATUS_OK) {
            status = look(context, input.source, &err);
            if (status != STATUS_OK)
                error_prefix(&err, "%.200s", path);
            input_close(&input);
        }
        if (status != STATUS_OK) {
            int code = fail_of_file(&err);
            exit_code = exit_code ? exit_code : code;
        }
    }
    return exit_code;
}

/* ---- columns ---- */

static bool is_chosen(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    return !list;
}

enum status columns_choose(const struct arrow_schema *schema, const char *list,
                           struct chosen_columns *out_chosen, struct error *err)
{
    struct chosen_columns chosen = {.indices = NULL};
    uint32_t leaf = 0, count = 0, total = schema->field_count, wanted = list != NULL;
    for (const char *at = list; at && (at = strchr(at, ',')); at++)
        wanted++;
    struct arrow_field *fields = arena_alloc_zero(&chosen.arena, total, sizeof *fields);
    chosen.indices = arena_alloc_zero(&chosen.arena, total, sizeof *chosen.indices);
    chosen.first_leaves = arena_alloc_zero(&chosen.arena, total, sizeof *chosen.first_leaves);
    if (!fields || !chosen.indices || !chosen.first_leaves) {
        arena_deinit(&chosen.arena);
        return error_set(err, STATUS_NO_MEMORY, "out of memory");
    }
    for (uint32_t i = 0; i < total; i++) {
        if (is_chosen(list, schema->fields[i].name)) {
            chosen.indices[count] = i;
            chosen.first_leaves[count] = leaf;
            fields[count++] = schema->fields[i];
        }
        leaf += count_leaves(&schema->fields[i]);
    }
    if (list && count < wanted) {
        arena_deinit(&chosen.arena);
        return error_set(err, STATUS_NOT_FOUND, "not all of the columns %.200s are there", list);
    }
    chosen.schema = (struct arrow_schema){.fields = fields, .field_count = count};
    *out_chosen = chosen;
    return STATUS_OK;
}

/* ---- rows ---- */

struct arrow_limits files_arrow_limits(void)
{
    enum { COLUMNS_MAX = 16384 };
    struct arrow_limits limits = arrow_limits_default();
    limits.field_count_max = COLUMNS_MAX;
    return limits;
}

enum status rows_flush(struct row_printer *printer, struct error *err)
{
    struct buf *out = &printer->out;
    if (printer->sink.write) {
        TRY(sink_write(printer->sink, out->data, out->length, err));
        buf_clear(out);
        return STATUS_OK;
    }
    size_t printed = fwrite(out->data, 1, out->length, stdout);
    if (printed < out->length || fflush(stdout) != 0)
        return error_set(err, STATUS_IO, "standard output takes no more");
    buf_clear(out);
    return STATUS_OK;
}

void row_begin(struct row_printer *printer)
{
    json_writer_init(&printer->json, &printer->out);
}

enum status row_end(struct row_printer *printer, struct error *err)
{
    enum { FLUSH_BYTES = 1 << 16 };
    buf_put_byte(&printer->out, '\n');
    TRY(buf_status(&printer->out, "a row", err));
    return printer->out.length < FLUSH_BYTES ? STATUS_OK : rows_flush(printer, err);
}

enum status rows_print_batch(struct row_printer *printer, const struct arrow_batch *batch,
                             int64_t count, struct error *err)
{
    const struct leaf_writer leaves = {.write = row_write_arrow_leaf};
    struct json_writer *json = &printer->json;
    for (int64_t i = 0; i < count; i++) {
        row_begin(printer);
        json_write_object_begin(json);
        for (uint32_t j = 0; j < batch->schema->field_count; j++) {
            json_write_key(json, batch->schema->fields[j].name);
            row_write_slot(json, &leaves, 0, &batch->schema->fields[j], &batch->columns[j], i);
        }
        json_write_object_end(json);
        TRY(row_end(printer, err));
    }
    return STATUS_OK;
}

enum status rows_finish(struct row_printer *printer, enum status status, struct error *err)
{
    struct error late;
    if (printer->out.length && !printer->out.failed) {
        enum status printed = rows_flush(printer, &late);
        if (status == STATUS_OK && printed != STATUS_OK) {
            *err = late;
            status = printed;
        }
    }
    buf_deinit(&printer->out);
    return status;
}
