/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /v1/receipts/<group>/<seq>, or with all of a receipt: <log>/<group>/<term>/<seq>. Which
 * boundaries (DESIGN, section 2) that write has passed, and when.
 */
#include <stdio.h>

#include "app/server/server_internal.h"
#include "format/json/json.h"

enum { PARTS_MAX = 4 };

struct asked {
    struct span log; /* data NULL: not said */
    bool has_term;
    uint64_t group, term, seq;
};

static bool parse_number(struct span text, uint64_t *out_number)
{
    return text.length && parse_u64((const char *)text.data, text.length, out_number);
}

static bool parse_path(struct span path, struct asked *out_asked)
{
    struct span parts[PARTS_MAX + 1] = {{0}};
    struct asked asked = {0};
    size_t count = 0, start = strlen("/v1/receipts/");
    for (size_t i = start; i <= path.length && count <= PARTS_MAX; i++) {
        if (i < path.length && path.data[i] != '/')
            continue;
        parts[count++] = span_of(path.data + start, i - start);
        start = i + 1;
    }
    if (count == 4) {
        asked.log = parts[0];
        asked.has_term = true;
        if (!parse_number(parts[2], &asked.term))
            return false;
    }
    bool is_good = (count == 2 || count == 4) && parse_number(parts[count == 4], &asked.group) &&
                   parse_number(parts[count - 1], &asked.seq) && asked.group <= UINT32_MAX;
    *out_asked = asked;
    return is_good;
}

static void put_boundary(struct json_writer *json, const char *name, bool is_reached, int64_t at_ms)
{
    json_write_key(json, name);
    json_write_object_begin(json);
    json_write_key(json, "reached");
    json_write_bool(json, is_reached);
    if (at_ms) {
        json_write_key(json, "at_ms");
        json_write_i64(json, at_ms);
    }
    json_write_object_end(json);
}

static void put_receipt(struct buf *out, const char *log, const struct asked *asked,
                        const struct publish_receipt *receipt, struct mirror *mirror)
{
    struct json_writer json;
    int64_t remote_ms = 0;
    bool is_remote =
        mirror && mirror_receipt(mirror, (uint32_t)asked->group, asked->seq, &remote_ms);
    json_writer_init(&json, out);
    json_write_object_begin(&json);
    json_write_key(&json, "log");
    json_write_text(&json, log);
    json_write_key(&json, "group");
    json_write_u64(&json, asked->group);
    json_write_key(&json, "seq");
    json_write_u64(&json, asked->seq);
    if (receipt->term) { /* the log still has it */
        json_write_key(&json, "term");
        json_write_u64(&json, receipt->term);
        json_write_key(&json, "table");
        json_write_text(&json, receipt->table);
        json_write_key(&json, "rows");
        json_write_u64(&json, receipt->rows);
    }
    if (receipt->snapshot_id >= 0) {
        json_write_key(&json, "snapshot_id");
        json_write_i64(&json, receipt->snapshot_id);
    }
    json_write_key(&json, "boundaries");
    json_write_object_begin(&json);
    put_boundary(&json, "durable", true, receipt->durable_ms);
    put_boundary(&json, "remote", is_remote, remote_ms);
    put_boundary(&json, "visible", receipt->is_visible, receipt->visible_ms);
    put_boundary(&json, "released", receipt->is_released, 0);
    json_write_object_end(&json);
    json_write_object_end(&json);
    buf_put_byte(out, '\n');
}

void server_handle_receipt(void *context, struct http_exchange *exchange)
{
    struct server *server = context;
    struct asked asked;
    struct publish_receipt receipt;
    struct error err;
    struct buf body = {0};
    char log[LOG_ID_TEXT_BYTES];
    log_id_to_text(source_log_id(server->stack.source), log);
    if (!parse_path(http_exchange_head(exchange)->path, &asked)) {
        http_respond_text(exchange, 400, "a receipt is LOG/GROUP/TERM/SEQ, or GROUP/SEQ");
        return;
    }
    if (asked.log.data && !span_equal(asked.log, span_of_text(log))) {
        http_respond_text(exchange, 404, "that is a receipt of another log; this one is %s", log);
        return;
    }
    enum status status = publisher_receipt(server->stack.publisher, (uint32_t)asked.group,
                                           asked.seq, &receipt, &err);
    if (status == STATUS_OK && asked.has_term && receipt.term && receipt.term != asked.term)
        status = error_set(&err, STATUS_NOT_FOUND, "entry %llu/%llu is of term %llu",
                           (unsigned long long)asked.group, (unsigned long long)asked.seq,
                           (unsigned long long)receipt.term);
    if (status != STATUS_OK) {
        http_respond_text(exchange, status_http_code(status), "%s", err.message);
        return;
    }
    put_receipt(&body, log, &asked, &receipt, server->mirror);
    server_respond_json(exchange, &body);
}
