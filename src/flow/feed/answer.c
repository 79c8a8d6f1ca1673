/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers that are JSON: refusals, each with a code that programs go by, and positions as text.
 */
#include <stdarg.h>
#include <stdio.h>

#include "flow/feed/feed_internal.h"

void put_u64(struct json_writer *json, const char *key, uint64_t value)
{
    json_write_key(json, key);
    json_write_u64(json, value);
}

void put_text(struct json_writer *json, const char *key, const char *value)
{
    json_write_key(json, key);
    json_write_text(json, value);
}

void position_text(struct wal *wal, uint32_t group, uint64_t term, uint64_t seq,
                   char out[POSITION_TEXT_BYTES])
{
    char log[LOG_ID_TEXT_BYTES];
    log_id_to_text(wal_log_id(wal), log);
    snprintf(out, POSITION_TEXT_BYTES, "%s/%u/%llu/%llu", log, group, (unsigned long long)term,
             (unsigned long long)seq);
}

void flags_text(const struct wal_consumer *consumer, char out[80])
{
    bool is_released = consumer && (consumer->is_released || consumer->was_released);
    bool is_in_memory = consumer && consumer->is_released && consumer->is_held;
    snprintf(out, 80, "%s%s%s", consumer ? "" : "NO_LEASE",
             is_released ? "EXPORT_HOLD_RELEASED" : "", is_in_memory ? ", LEASE_NOT_DURABLE" : "");
}

void log_text(const struct feed *feed, char out[LOG_TEXT_BYTES])
{
    char log[LOG_ID_TEXT_BYTES];
    log_id_to_text(wal_log_id(feed->wal), log);
    snprintf(out, LOG_TEXT_BYTES, "%s/%llu/%llu/%016llx", log,
             (unsigned long long)wal_incarnation(feed->wal),
             (unsigned long long)wal_term(feed->wal), (unsigned long long)feed->start);
}

/* With what tells which log answers, and that nothing was changed on the way. */
static void respond(struct feed *feed, struct http_exchange *exchange, int code, struct buf *body)
{
    char log[LOG_TEXT_BYTES], crc[9];
    bool is_later = code == 503 || code == 429;
    log_text(feed, log);
    snprintf(crc, sizeof crc, "%08x", crc32c(0, body->data, body->length));
    struct http_field fields[] = {
        {"Sluice-Log", log}, {"Sluice-Crc32c", crc}, {"Retry-After", "1"}};
    if (body->failed)
        http_respond_text(exchange, 503, "out of memory");
    else
        http_respond(exchange, code, "application/json", span_of(body->data, body->length), fields,
                     is_later ? COUNT_OF(fields) : COUNT_OF(fields) - 1);
    buf_deinit(body);
}

void respond_json(struct feed *feed, struct http_exchange *exchange, struct buf *body)
{
    respond(feed, exchange, 200, body);
}

/* ---- refusals ---- */

static PRINTF_LIKE(4, 0) void begin(struct refusal *refusal, int http_code, const char *code,
                                    const char *format, va_list args)
{
    char message[600];
    vsnprintf(message, sizeof message, format, args);
    *refusal = (struct refusal){.http_code = http_code};
    json_writer_init(&refusal->json, &refusal->body);
    json_write_object_begin(&refusal->json);
    put_text(&refusal->json, "code", code);
    put_text(&refusal->json, "message", message);
}

void refusal_begin(struct refusal *refusal, int http_code, const char *code, const char *format,
                   ...)
{
    va_list args;
    va_start(args, format);
    begin(refusal, http_code, code, format, args);
    va_end(args);
}

void refusal_end(struct refusal *refusal, struct feed *feed, struct http_exchange *exchange)
{
    json_write_object_end(&refusal->json);
    buf_put_byte(&refusal->body, '\n');
    atomic_fetch_add_explicit(&feed->refusals, 1, memory_order_relaxed);
    respond(feed, exchange, refusal->http_code, &refusal->body);
}

void refuse(struct feed *feed, struct http_exchange *exchange, int http_code, const char *code,
            const char *format, ...)
{
    struct refusal refusal;
    va_list args;
    va_start(args, format);
    begin(&refusal, http_code, code, format, args);
    va_end(args);
    refusal_end(&refusal, feed, exchange);
}

void refuse_status(struct feed *feed, struct http_exchange *exchange, const struct error *err)
{
    int code = status_http_code(err->status);
    refuse(feed, exchange,
           code == 400   ? 400
           : code == 404 ? 404
                         : 503,
           code == 400   ? "ERR_EXPORT_BAD_REQUEST"
           : code == 404 ? "ERR_EXPORT_NO_PAGE"
                         : "ERR_EXPORT_UNAVAILABLE",
           "%s", err->message);
}

/* ---- verdicts over consumers ---- */

static void refuse_conflict(struct feed *feed, struct http_exchange *exchange, const char *sub_code,
                            const char *name, const struct wal_consumer *consumer)
{
    struct refusal refusal;
    refusal_begin(&refusal, 409, "ERR_EXPORT_GROUP_CONFLICT", "consumer %s, of %u members: %s",
                  name, consumer->member_count, sub_code);
    put_text(&refusal.json, "sub_code", sub_code);
    put_u64(&refusal.json, "members", consumer->member_count);
    refusal_end(&refusal, feed, exchange);
}

bool refuse_verdict(struct feed *feed, struct http_exchange *exchange,
                    const struct wal_consumer_key *key, enum wal_consumer_verdict verdict,
                    const struct wal_consumer *consumer)
{
    struct refusal refusal;
    char table[WAL_TABLE_NAME_MAX + 1] = "";
    switch (verdict) {
    case WAL_CONSUMER_UNKNOWN:
        refuse(feed, exchange, 404, "ERR_EXPORT_NO_CONSUMER", "there is no consumer %s", key->name);
        return true;
    case WAL_CONSUMER_OTHER:
        if (!wal_table_name(feed->wal, consumer->table_id, table))
            table[0] = '\0';
        refusal_begin(&refusal, 409, "ERR_EXPORT_CONSUMER_EXISTS",
                      "consumer %s is one of %s, group %u", key->name, table, consumer->group);
        put_text(&refusal.json, "table", table);
        put_u64(&refusal.json, "group", consumer->group);
        refusal_end(&refusal, feed, exchange);
        return true;
    case WAL_CONSUMER_SIZE:
        refuse_conflict(feed, exchange, "size_mismatch", key->name, consumer);
        return true;
    case WAL_CONSUMER_TAKEN:
        refuse_conflict(feed, exchange, "member_taken", key->name, consumer);
        return true;
    case WAL_CONSUMER_ABSENT:
        refuse_conflict(feed, exchange, "absent_member", key->name, consumer);
        return true;
    case WAL_CONSUMER_FULL:
        refuse(feed, exchange, 429, "ERR_EXPORT_LIMIT", "there are %d consumers",
               WAL_CONSUMERS_MAX);
        return true;
    default: /* the others need the positions asked for; OK */
        return false;
    }
}

/* ---- positions that this log cannot go on from ---- */

void refuse_ahead(struct feed *feed, struct http_exchange *exchange, uint32_t group, uint64_t asked)
{
    struct refusal refusal;
    uint64_t end = wal_synced_end(feed->wal, group).seq;
    refusal_begin(&refusal, 409, "ERR_EXPORT_AHEAD",
                  "group %u: %llu was asked for, and this log ends at %llu: it was put back to an "
                  "older state",
                  group, (unsigned long long)asked, (unsigned long long)end);
    put_u64(&refusal.json, "group", group);
    put_u64(&refusal.json, "asked", asked);
    put_u64(&refusal.json, "end", end);
    refusal_end(&refusal, feed, exchange);
}

void refuse_other_history(struct feed *feed, struct http_exchange *exchange, uint32_t group,
                          uint64_t seq, uint64_t asked_term)
{
    struct refusal refusal;
    struct error ignored;
    uint64_t term = 0;
    if (wal_term_at(feed->wal, group, seq, &term, &ignored) != STATUS_OK)
        term = 0; /* it was there a moment ago */
    refusal_begin(&refusal, 409, "ERR_EXPORT_OTHER_HISTORY",
                  "group %u: entry %llu has term %llu here, not %llu", group,
                  (unsigned long long)seq, (unsigned long long)term,
                  (unsigned long long)asked_term);
    put_u64(&refusal.json, "group", group);
    put_u64(&refusal.json, "seq", seq);
    put_u64(&refusal.json, "asked_term", asked_term);
    put_u64(&refusal.json, "term", term);
    refusal_end(&refusal, feed, exchange);
}

void refuse_reclaimed(struct feed *feed, struct http_exchange *exchange, uint32_t group,
                      uint32_t table_id, uint64_t after)
{
    struct refusal refusal;
    uint64_t last = table_id ? wal_reclaimed_through(feed->wal, group, table_id)
                             : wal_reclaimed_behind(feed->wal, group, after);
    refusal_begin(&refusal, 410, "ERR_EXPORT_RANGE_RECLAIMED",
                  "group %u: entries %llu to %llu are no longer on the log", group,
                  (unsigned long long)after + 1, (unsigned long long)last);
    put_u64(&refusal.json, "group", group);
    put_u64(&refusal.json, "first", after + 1);
    put_u64(&refusal.json, "last", last);
    refusal_end(&refusal, feed, exchange);
}

void refuse_damaged(struct feed *feed, struct http_exchange *exchange, uint32_t group,
                    uint32_t table_id, uint64_t after, const struct error *err)
{
    struct refusal refusal;
    struct wal_damage damage = {.group = group};
    if (!wal_damage_above(feed->wal, group, table_id, after, &damage)) {
        refuse(feed, exchange, 503, "ERR_EXPORT_UNAVAILABLE", "%s", err->message);
        return;
    }
    refusal_begin(&refusal, 409, "ERR_EXPORT_DAMAGED", "entries %llu to %llu are damaged: %s",
                  (unsigned long long)damage.seq_first, (unsigned long long)damage.seq_last,
                  damage.where);
    put_u64(&refusal.json, "group", damage.group);
    put_u64(&refusal.json, "first", damage.seq_first);
    put_u64(&refusal.json, "last", damage.seq_last);
    put_text(&refusal.json, "where", damage.where);
    put_text(&refusal.json, "command", "sluice log repair --confirm");
    refusal_end(&refusal, feed, exchange);
}
