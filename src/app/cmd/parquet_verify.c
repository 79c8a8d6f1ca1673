/* SPDX-License-Identifier: Apache-2.0
 *
 * sluice parquet verify: whether what a file says is so.
 */
#include <inttypes.h>

#include "app/cmd/parquet_internal.h"

static enum status verify_group(const struct parquet_file *file, struct parquet_reader *reader,
                                size_t group, struct error *err)
{
    struct arrow_batch batch;
    TRY(parquet_reader_read(reader, group, &batch, err));
    enum status status = STATUS_OK;
    for (uint32_t i = 0; status == STATUS_OK && i < batch.schema->field_count; i++)
        status = arrow_array_validate(&batch.schema->fields[i], &batch.columns[i], err);
    arrow_batch_deinit(&batch);
    return status == STATUS_OK ? parquet_file_verify(file, group, err) : status;
}

enum status parquet_verify(const struct parquet_file *file, struct error *err)
{
    struct parquet_read_options options = {.schema = NULL};
    struct parquet_reader *reader;
    TRY(parquet_reader_create(file, &options, &reader, err));
    enum status status = parquet_file_verify_layout(file, err);
    for (size_t i = 0; status == STATUS_OK && i < file->group_count; i++)
        status = verify_group(file, reader, i, err);
    parquet_reader_destroy(reader);
    return status;
}

static void write_failure(struct json_writer *json, const struct error *err)
{
    parquet_write_text(json, "status", status_name(err->status));
    parquet_write_text(json, "error", err->message);
    json_write_key(json, "offset");
    if (err->offset < 0)
        json_write_null(json);
    else
        json_write_i64(json, err->offset);
}

/* One line; what is wrong stands on stderr too. */
static enum status verify_as_json(const struct invocation *invocation, const char *path,
                                  struct error *err)
{
    struct parquet_limits limits = parquet_limits_default();
    struct parquet_file *file = NULL;
    struct input input;
    struct json_writer json;
    struct buf out = {0};
    enum status status = input_open(invocation->env, path, &input, err);
    bool is_open = status == STATUS_OK;
    if (status == STATUS_OK)
        status = parquet_file_open(input.source, &limits, &file, err);
    if (status == STATUS_OK)
        status = parquet_verify(file, err);
    json_writer_init(&json, &out);
    json_write_object_begin(&json);
    parquet_write_text(&json, "file", path);
    parquet_write_bool(&json, "ok", status == STATUS_OK);
    if (status == STATUS_OK) {
        parquet_write_number(&json, "rows", file->row_count);
        parquet_write_number(&json, "row_groups", (int64_t)file->group_count);
        parquet_write_number(&json, "columns", file->leaf_count);
    } else {
        write_failure(&json, err);
    }
    json_write_object_end(&json);
    buf_put_byte(&out, '\n');
    cmd_print(&out);
    parquet_file_close(file);
    if (is_open) {
        input_close(&input);
        if (status != STATUS_OK)
            error_prefix(err, "%.200s", path);
    }
    return status;
}

int parquet_verify_as_json(const struct invocation *invocation, int from)
{
    int exit_code = 0;
    for (int i = from; i < invocation->argc; i++) {
        struct error err;
        if (verify_as_json(invocation, invocation->argv[i], &err) == STATUS_OK)
            continue;
        int code = fail_of_file(&err);
        exit_code = exit_code ? exit_code : code;
    }
    return exit_code;
}
