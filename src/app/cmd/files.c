/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that commands look into, and rows on their way to stdout.
 */
#include <stdlib.h>

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

/* Readers go where they want in a file; what a pipe gives is kept until they have. */
static enum status make_readable(struct env_file *file, struct env_stat *out_stat,
                                 struct error *err)
{
    static const uint64_t pipe_bytes_max = (uint64_t)16 << 30;
    TRY(env_file_stat(file, out_stat, err));
    if (out_stat->is_directory || out_stat->is_device)
        return error_set(err, STATUS_INVALID, "not a regular file");
    if (!out_stat->is_pipe)
        return STATUS_OK;
    TRY(os_file_spool(file, pipe_bytes_max, err));
    return env_file_stat(file, out_stat, err);
}

enum status input_open(struct env *env, const char *path, struct input *out_input,
                       struct error *err)
{
    struct env_stat stat;
    struct env_file *file;
    TRY(env_open(env, path, ENV_READ, &file, err));
    if (make_readable(file, &stat, err) != STATUS_OK) {
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

void files_write_failure(struct json_writer *json, const struct error *err)
{
    json_write_key(json, "status");
    json_write_text(json, status_name(err->status));
    json_write_key(json, "error");
    json_write_text(json, err->message);
    json_write_key(json, "offset");
    if (err->offset < 0)
        json_write_null(json);
    else
        json_write_i64(json, err->offset);
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

enum status columns_split(const char *list, struct arena *arena, const char ***out_names,
                          size_t *out_count, struct error *err)
{
    size_t count = 1, length = strlen(list);
    char *text = arena_copy_text(arena, list, length);
    for (const char *at = list; *at; at++)
        count += *at == ',';
    const char **names = arena_alloc(arena, count * sizeof *names);
    if (!text || !names)
        return error_set(err, STATUS_NO_MEMORY, "out of memory");
    bool is_quoted = false;
    count = 0;
    names[count++] = text;
    for (char *at = text; *at; at++) {
        is_quoted ^= *at == '"';
        if (*at != ',' || is_quoted)
            continue;
        *at = '\0';
        names[count++] = at + 1;
    }
    *out_names = names;
    *out_count = count;
    return STATUS_OK;
}

/* Takes the quotes off a name that is in quotes. */
static void unquote(char *name)
{
    size_t length = strlen(name), to = 0;
    if (length < 2 || name[0] != '"' || name[length - 1] != '"')
        return;
    for (size_t i = 1; i + 1 < length; i++) {
        name[to++] = name[i];
        i += name[i] == '"' && name[i + 1] == '"';
    }
    name[to] = '\0';
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int compare_to_text(const void *key, const void *text)
{
    return strcmp(key, *(const char *const *)text);
}

/* Sorted, each once; without a list none. */
static enum status wanted_names(const char *list, struct arena *arena, const char ***out_names,
                                size_t *out_count, struct error *err)
{
    size_t count, kept = 0;
    const char **names;
    if (!list)
        return STATUS_OK;
    TRY(columns_split(list, arena, &names, &count, err));
    for (size_t i = 0; i < count; i++)
        unquote((char *)(uintptr_t)names[i]); /* it is our copy */
    qsort(names, count, sizeof *names, compare_texts);
    for (size_t i = 0; i < count; i++)
        if (!kept || strcmp(names[kept - 1], names[i]) != 0)
            names[kept++] = names[i];
    *out_names = names;
    *out_count = kept;
    return STATUS_OK;
}

static enum status choose(const struct arrow_schema *schema, const char *list,
                          struct chosen_columns *chosen, struct error *err)
{
    uint32_t leaf = 0, count = 0, total = schema->field_count;
    const char **names = NULL;
    size_t wanted = 0, found = 0;
    struct arrow_field *fields = arena_alloc_zero(&chosen->arena, total, sizeof *fields);
    chosen->indices = arena_alloc_zero(&chosen->arena, total, sizeof *chosen->indices);
    chosen->first_leaves = arena_alloc_zero(&chosen->arena, total, sizeof *chosen->first_leaves);
    if (!fields || !chosen->indices || !chosen->first_leaves)
        return error_set(err, STATUS_NO_MEMORY, "out of memory");
    TRY(wanted_names(list, &chosen->arena, &names, &wanted, err));
    bool *was_found = arena_alloc_zero(&chosen->arena, wanted + 1, sizeof *was_found);
    if (!was_found)
        return error_set(err, STATUS_NO_MEMORY, "out of memory");
    for (uint32_t i = 0; i < total; i++) {
        const char *const *at =
            !names ? NULL
                   : bsearch(schema->fields[i].name, names, wanted, sizeof *names, compare_to_text);
        if (at || !list) {
            chosen->indices[count] = i;
            chosen->first_leaves[count] = leaf;
            fields[count++] = schema->fields[i];
        }
        if (at) {
            found += !was_found[at - names];
            was_found[at - names] = true;
        }
        leaf += count_leaves(&schema->fields[i]);
    }
    for (size_t i = 0; found < wanted && i < wanted; i++)
        if (!was_found[i])
            return error_set(err, STATUS_NOT_FOUND, "there is no column %.200s", names[i]);
    chosen->schema = (struct arrow_schema){.fields = fields, .field_count = count};
    return STATUS_OK;
}

enum status columns_choose(const struct arrow_schema *schema, const char *list,
                           struct chosen_columns *out_chosen, struct error *err)
{
    struct chosen_columns chosen = {.indices = NULL};
    enum status status = choose(schema, list, &chosen, err);
    if (status == STATUS_OK)
        *out_chosen = chosen;
    else
        arena_deinit(&chosen.arena);
    return status;
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
