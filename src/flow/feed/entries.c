/* SPDX-License-Identifier: Apache-2.0
 *
 * GET below /v1/log/GROUP/ for a publisher: entries as they are stored (`entries`), what stands at
 * and behind a place (`position`), where the log started anew (`starts`); and schemas. Nothing is
 * decoded. Runs on the worker that owns the exchange.
 */
#include <stdio.h>

#include "flow/feed/feed_internal.h"
#include "flow/frames/frames.h"

enum { STARTS_BYTES_MAX = 32 << 20 /* passed over in one answer */ };

/* ---- the place that is asked about ---- */

/* The chain at a place, as far as the log tells it; *out_is_known false: it does not. */
static enum status chain_at(struct feed *feed, uint32_t group, uint64_t seq, uint64_t *out_chain,
                            bool *out_is_known, struct error *err)
{
    enum status status = wal_chain_at(feed->wal, group, seq, out_chain, err);
    *out_is_known = status == STATUS_OK;
    return status == STATUS_NOT_FOUND || status == STATUS_CORRUPT ? STATUS_OK : status;
}

bool refuse_foreign(struct feed *feed, struct http_exchange *exchange, uint32_t group,
                    struct wal_position at, bool may_lack_chain)
{
    struct error err;
    uint64_t chain = 0;
    bool is_known;
    if (at.seq > wal_synced_end(feed->wal, group).seq) {
        refuse_ahead(feed, exchange, group, at.seq);
        return true;
    }
    if (!at.seq || (!at.chain && may_lack_chain))
        return false;
    if (chain_at(feed, group, at.seq, &chain, &is_known, &err) != STATUS_OK) {
        refuse_status(feed, exchange, &err);
        return true;
    }
    if (!is_known || chain == at.chain)
        return false;
    refuse(feed, exchange, 409, "ERR_EXPORT_OTHER_HISTORY",
           "group %u: at %llu the chain is %016llx here, not %016llx", group,
           (unsigned long long)at.seq, (unsigned long long)chain, (unsigned long long)at.chain);
    return true;
}

static void refuse_read(struct feed *feed, struct http_exchange *exchange,
                        const struct entry_ask *ask, const struct error *err)
{
    if (err->status == STATUS_RECLAIMED)
        refuse_reclaimed(feed, exchange, ask->group, ask->table_id, ask->after.seq);
    else if (err->status == STATUS_CORRUPT)
        refuse_damaged(feed, exchange, ask->group, ask->table_id, ask->after.seq, err);
    else
        refuse_status(feed, exchange, err);
}

/* ---- entries ---- */

struct entries {
    struct buf body;
    uint64_t count;
    bool is_at_end;
};

/* Up to a limit, the end, damage, or a hole. One entry is given in any case. */
static enum status read_entries(struct feed *feed, const struct entry_ask *ask,
                                struct entries *entries, struct error *err)
{
    struct log_id log = wal_log_id(feed->wal);
    struct wal_scan *scan = NULL;
    struct wal_view view;
    TRY(wal_scan_open(feed->wal, ask->group, ask->table_id, ask->after.seq, &scan, err));
    enum status status;
    while ((status = wal_scan_next(scan, &view, err)) == STATUS_OK) {
        uint64_t bytes = entries->body.length + FRAME_HEADER_BYTES + view.payload.length;
        if (entries->count && bytes > ask->bytes_max)
            break;
        frame_put(&entries->body, log, &view);
        entries->count++;
    }
    wal_scan_close(scan);
    entries->is_at_end = status == STATUS_NOT_FOUND;
    bool has_progress = /* the next answer says it */
        entries->count && (status == STATUS_CORRUPT || status == STATUS_RECLAIMED);
    if (status != STATUS_OK && !entries->is_at_end && !has_progress)
        return status;
    return buf_status(&entries->body, "entries", err);
}

static void respond_page(struct feed *feed, struct http_exchange *exchange,
                         const struct entries *entries)
{
    char log[LOG_TEXT_BYTES], count[24];
    log_text(feed, log);
    snprintf(count, sizeof count, "%llu", (unsigned long long)entries->count);
    struct http_field fields[] = {{"Sluice-Log", log},
                                  {"Sluice-Entries", count},
                                  {"Sluice-At-End", entries->is_at_end ? "1" : "0"}};
    atomic_fetch_add_explicit(&feed->pages, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&feed->bytes, entries->body.length, memory_order_relaxed);
    http_respond(exchange, 200, "application/octet-stream",
                 span_of(entries->body.data, entries->body.length), fields, COUNT_OF(fields));
}

static void respond_entries(struct feed *feed, struct http_exchange *exchange,
                            const struct entry_ask *ask)
{
    struct entries entries = {0};
    struct error err;
    if (http_worker_answer_bytes(http_exchange_worker(exchange)) > FEED_ANSWER_BYTES_MAX) {
        refuse(feed, exchange, 503, "ERR_EXPORT_UNAVAILABLE",
               "too many pages are under way to clients that do not take them");
        return;
    }
    if (refuse_foreign(feed, exchange, ask->group, ask->after, true))
        return;
    if (read_entries(feed, ask, &entries, &err) == STATUS_OK)
        respond_page(feed, exchange, &entries);
    else
        refuse_read(feed, exchange, ask, &err);
    buf_deinit(&entries.body);
}

/* ---- places ---- */

static void respond_place(struct feed *feed, struct http_exchange *exchange,
                          const struct entry_ask *ask)
{
    struct buf body = {0};
    struct json_writer json;
    struct error err;
    uint64_t chain = 0;
    bool is_known;
    char text[17];
    if (chain_at(feed, ask->group, ask->after.seq, &chain, &is_known, &err) != STATUS_OK) {
        refuse_status(feed, exchange, &err);
        return;
    }
    snprintf(text, sizeof text, "%016llx", (unsigned long long)chain);
    json_writer_init(&json, &body);
    json_write_object_begin(&json);
    put_u64(&json, "group", ask->group);
    put_u64(&json, "seq", ask->after.seq);
    json_write_key(&json, "chain");
    if (is_known)
        json_write_text(&json, text);
    else
        json_write_null(&json);
    if (ask->table_id)
        put_behind(&json, feed->wal, ask->group, ask->table_id, ask->after.seq);
    json_write_object_end(&json);
    buf_put_byte(&body, '\n');
    respond_json(feed, exchange, &body);
}

/* Writes the starts in (after, last]; *out_through: up to there it has looked. */
static enum status put_starts(struct feed *feed, const struct entry_ask *ask,
                              struct json_writer *json, uint64_t *out_through, struct error *err)
{
    struct wal_scan *scan = NULL;
    struct wal_view view;
    uint64_t passed = 0;
    char chain[17];
    *out_through = ask->after.seq;
    TRY(wal_scan_open(feed->wal, ask->group, 0, ask->after.seq, &scan, err));
    enum status status;
    while ((status = wal_scan_next(scan, &view, err)) == STATUS_OK && view.seq <= ask->last &&
           passed < STARTS_BYTES_MAX) {
        passed += view.payload.length + FRAME_HEADER_BYTES;
        *out_through = view.seq;
        if (view.type == WAL_NOOP) {
            snprintf(chain, sizeof chain, "%016llx", (unsigned long long)view.chain);
            json_write_object_begin(json);
            put_u64(json, "seq", view.seq);
            put_text(json, "chain", chain);
            json_write_object_end(json);
        }
        if (view.seq == ask->last) /* what is behind it may be gone */
            break;
    }
    wal_scan_close(scan);
    bool is_all = status == STATUS_NOT_FOUND || (status == STATUS_OK && view.seq >= ask->last);
    if (is_all)
        *out_through = ask->last;
    return is_all ? STATUS_OK : status;
}

static void respond_starts(struct feed *feed, struct http_exchange *exchange,
                           const struct entry_ask *ask)
{
    struct buf body = {0};
    struct json_writer json;
    struct error err;
    uint64_t through;
    json_writer_init(&json, &body);
    json_write_object_begin(&json);
    json_write_key(&json, "starts");
    json_write_array_begin(&json);
    if (put_starts(feed, ask, &json, &through, &err) != STATUS_OK) {
        buf_deinit(&body);
        refuse_read(feed, exchange, ask, &err);
        return;
    }
    json_write_array_end(&json);
    put_u64(&json, "through", through);
    json_write_object_end(&json);
    buf_put_byte(&body, '\n');
    respond_json(feed, exchange, &body);
}

/* ---- schemas ---- */

static void respond_schema(struct feed *feed, struct http_exchange *exchange, struct span name)
{
    uint64_t fingerprint = 0;
    struct buf message = {0};
    struct error err;
    char log[LOG_TEXT_BYTES], crc[9];
    bool is_name = hex_u64((const char *)name.data, name.length, &fingerprint);
    enum status status =
        is_name ? wal_schema_get(feed->wal, fingerprint, &message, &err)
                : error_set(&err, STATUS_INVALID, "a schema is named by 16 hex digits");
    if (status == STATUS_NOT_FOUND)
        refuse(feed, exchange, 404, "ERR_EXPORT_NO_SCHEMA", "the log has no schema %016llx",
               (unsigned long long)fingerprint);
    else if (status != STATUS_OK)
        refuse_status(feed, exchange, &err);
    else {
        log_text(feed, log);
        snprintf(crc, sizeof crc, "%08x", crc32c(0, message.data, message.length));
        struct http_field fields[] = {{"Sluice-Log", log}, {"Sluice-Crc32c", crc}};
        http_respond(exchange, 200, "application/octet-stream",
                     span_of(message.data, message.length), fields, COUNT_OF(fields));
    }
    buf_deinit(&message);
}

/* ---- a request ---- */

static bool ends_with(struct span path, const char *end)
{
    size_t length = strlen(end);
    return path.length > length && memcmp(path.data + path.length - length, end, length) == 0;
}

void handle_below_log(void *context, struct http_exchange *exchange)
{
    static const char schemas[] = "/v1/log/schemas/";
    const size_t prefix = sizeof schemas - 1;
    struct feed *feed = context;
    struct entry_ask ask;
    struct error err;
    const struct http_head *head = http_exchange_head(exchange);
    if (head->path.length > prefix && memcmp(head->path.data, schemas, prefix) == 0) {
        respond_schema(feed, exchange,
                       span_of(head->path.data + prefix, head->path.length - prefix));
        return;
    }
    bool is_entries = ends_with(head->path, "/entries");
    bool is_place = ends_with(head->path, "/position");
    if (!is_entries && !is_place && !ends_with(head->path, "/starts")) {
        handle_rows(context, exchange);
        return;
    }
    if (entry_ask_parse(head, &ask, &err) != STATUS_OK) {
        refuse_status(feed, exchange, &err);
        return;
    }
    if (ask.group >= wal_group_count(feed->wal)) {
        refuse(feed, exchange, 404, "ERR_EXPORT_NO_GROUP", "group %u of %u", ask.group,
               wal_group_count(feed->wal));
        return;
    }
    if (ask.table[0])
        ask.table_id = wal_table_find(feed->wal, ask.table);
    if (ask.table[0] && !ask.table_id)
        refuse(feed, exchange, 404, "ERR_EXPORT_NO_TABLE", "the log has no table %s", ask.table);
    else if (is_entries)
        respond_entries(feed, exchange, &ask);
    else if (is_place)
        respond_place(feed, exchange, &ask);
    else
        respond_starts(feed, exchange, &ask);
}
