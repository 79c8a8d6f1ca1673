/* SPDX-License-Identifier: Apache-2.0
 *
 * sluice tail TABLE: rows from the log port of a running server, as they stand on its log.
 */
#include "app/cmd/export_internal.h"

enum { WAIT_MS = 10000, GIVE_UP_MS = 60000 };

struct tail {
    struct follow *follow;
    struct row_printer printer;
    bool as_json, does_follow;
    uint64_t left; /* rows to be printed */
};

enum status stream_open(const struct span *stream, struct byte_source *out_source,
                        struct arrow_file **out_file, struct error *err)
{
    struct arrow_limits limits = arrow_limits_default();
    limits.body_bytes_max = (size_t)1 << 31;
    *out_source = byte_source_of_span(stream);
    return arrow_file_open(*out_source, &limits, out_file, err);
}

/* Where the row stands, then what is not empty, as NAME=JSON. */
static enum status print_line(struct tail *tail, const struct arrow_batch *batch, int64_t row,
                              struct error *err)
{
    static const char positions[] = "_sluice_";
    const struct leaf_writer leaves = {.write = row_write_arrow_leaf};
    const struct arrow_schema *schema = batch->schema;
    struct buf line = {0}, value = {0};
    uint32_t own = schema->field_count - 3; /* group, seq, index are the last ones */
    buf_format(&line, "%d/%lld.%d", ((const int32_t *)batch->columns[own].values)[row],
               (long long)((const int64_t *)batch->columns[own + 1].values)[row],
               ((const int32_t *)batch->columns[own + 2].values)[row]);
    for (uint32_t i = 0; i < own; i++) {
        struct json_writer json;
        if (strncmp(schema->fields[i].name, positions, strlen(positions)) == 0)
            continue;
        buf_clear(&value);
        json_writer_init(&json, &value);
        row_write_slot(&json, &leaves, 0, &schema->fields[i], &batch->columns[i], row);
        bool is_empty = value.length == 2 || /* "", {} and [] */
                        span_equal(span_of(value.data, value.length), span_of_text("null"));
        if (is_empty && value.data[0] != '-' && !(value.data[0] >= '0' && value.data[0] <= '9'))
            continue;
        buf_format(&line, " %s=", schema->fields[i].name);
        buf_put(&line, value.data, value.length);
    }
    buf_put_byte(&line, '\n');
    buf_put(&tail->printer.out, line.data, line.length);
    tail->printer.out.failed |= line.failed || value.failed;
    buf_deinit(&line);
    buf_deinit(&value);
    return buf_status(&tail->printer.out, "tail", err);
}

static enum status print_batch(struct tail *tail, const struct arrow_batch *batch,
                               struct error *err)
{
    int64_t count = (uint64_t)batch->length < tail->left ? batch->length : (int64_t)tail->left;
    tail->left -= (uint64_t)count;
    if (tail->as_json)
        return rows_print_batch(&tail->printer, batch, count, err);
    for (int64_t row = 0; row < count; row++)
        TRY(print_line(tail, batch, row, err));
    return STATUS_OK;
}

static enum status print_page(struct tail *tail, const struct follow_page *page, struct error *err)
{
    struct byte_source source;
    struct arrow_file *file = NULL;
    enum status status = stream_open(&page->stream, &source, &file, err);
    while (status == STATUS_OK && tail->left) {
        struct arrow_batch batch = {0};
        status = arrow_file_next(file, &batch, err);
        if (status == STATUS_OK)
            status = print_batch(tail, &batch, err);
        arrow_batch_deinit(&batch);
    }
    arrow_file_close(file);
    TRY(status == STATUS_NOT_FOUND ? STATUS_OK : status);
    return rows_flush(&tail->printer, err);
}

static enum status run(struct tail *tail, const char *from, struct error *err)
{
    struct follow_page page = {0};
    TRY(follow_begin(tail->follow, from, err));
    while (tail->left) {
        TRY(follow_next(tail->follow, tail->does_follow ? WAIT_MS : 0, &page, err));
        if (page.rows)
            TRY(print_page(tail, &page, err));
        if (page.is_at_end && !tail->does_follow)
            break;
    }
    return STATUS_OK;
}

int cmd_tail(struct invocation *invocation)
{
    struct error err;
    struct tail tail = {.left = UINT64_MAX};
    struct follow_options options = follow_options_default();
    uint64_t group = 0;
    const char *from = cmd_take_option(invocation, "--from");
    tail.as_json = cmd_take_flag(invocation, "--json");
    tail.does_follow = cmd_take_flag(invocation, "--follow");
    if (!cmd_take_number(invocation, "--group", &group) ||
        !cmd_take_number(invocation, "--rows", &tail.left))
        return 2;
    if (invocation->argc < 1 || group > UINT32_MAX)
        return cmd_usage("tail: a table is needed: sluice tail otel.logs");
    if (!cmd_no_more_words(invocation, 1))
        return 2;
    options.address = invocation->settings.listen_address;
    options.port = (uint16_t)invocation->settings.log_port;
    options.table = invocation->argv[0];
    options.group = (uint32_t)group;
    options.give_up_ms = tail.does_follow ? GIVE_UP_MS : 0;
    if (!from)
        from = tail.does_follow ? "latest" : "earliest";
    enum status status = follow_create(invocation->env, &options, &tail.follow, &err);
    if (status == STATUS_OK)
        status = run(&tail, from, &err);
    status = rows_finish(&tail.printer, status, &err);
    follow_destroy(tail.follow);
    return status == STATUS_OK ? 0 : cmd_fail(&err);
}
