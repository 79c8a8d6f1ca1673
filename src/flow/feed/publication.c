/* SPDX-License-Identifier: Apache-2.0
 *
 * POST /v1/publication/TABLE and /v1/publication/fence: what a publisher elsewhere tells the log.
 * Accepted only where the log is published from elsewhere: an acknowledgement lets go of rows
 * (L34). A position counts if the log has its chain, or no longer tells it. An acknowledgement
 * waits on its worker for one sync of the log's state.
 */
#include <stdio.h>

#include "flow/feed/feed_internal.h"

static bool parse_position(const struct json_value *json, struct wal_position *out)
{
    int64_t seq;
    const char *chain = json_get_text(json, "chain");
    if (!json_get_i64(json, "seq", &seq) || seq < 0 || !chain ||
        !hex_u64(chain, strlen(chain), &out->chain))
        return false;
    out->seq = (uint64_t)seq;
    return out->seq || !out->chain;
}

/* {"log":, "groups":[{"group":, "committed":{"seq":,"chain":}, "through":{...}}, ...]}, all groups
 * in order. */
static enum status parse_acks(const struct json_value *json, uint32_t group_count,
                              struct wal_ack *acks, struct error *err)
{
    const struct json_value *groups = json_get(json, "groups");
    if (!groups || groups->type != JSON_ARRAY || groups->count != group_count)
        return error_set(err, STATUS_INVALID, "groups is an array of %u, one a group", group_count);
    for (uint32_t g = 0; g < group_count; g++) {
        const struct json_value *one = json_at(groups, g);
        int64_t number;
        if (!json_get_i64(one, "group", &number) || number != g ||
            !parse_position(json_get(one, "committed"), &acks[g].committed) ||
            !parse_position(json_get(one, "through"), &acks[g].through))
            return error_set(err, STATUS_INVALID,
                             "group %u: group, committed and through are needed, positions with "
                             "seq and chain",
                             g);
    }
    return STATUS_OK;
}

/* Is it said of this log? False: it has answered. */
static bool check_log(struct feed *feed, struct http_exchange *exchange,
                      const struct json_value *json)
{
    char log[LOG_ID_TEXT_BYTES];
    struct refusal refusal;
    const char *asked = json_get_text(json, "log");
    log_id_to_text(wal_log_id(feed->wal), log);
    if (asked && strcmp(asked, log) == 0)
        return true;
    if (!asked) {
        refuse(feed, exchange, 400, "ERR_EXPORT_BAD_REQUEST", "log is needed");
        return false;
    }
    refusal_begin(&refusal, 409, "ERR_EXPORT_OTHER_LOG", "that is said of log %.64s, this is %s",
                  asked, log);
    put_text(&refusal.json, "asked", asked);
    put_text(&refusal.json, "log", log);
    refusal_end(&refusal, feed, exchange);
    return false;
}

static bool are_foreign(struct feed *feed, struct http_exchange *exchange,
                        const struct wal_ack *acks)
{
    for (uint32_t g = 0; g < wal_group_count(feed->wal); g++)
        if (refuse_foreign(feed, exchange, g, acks[g].committed, false) ||
            refuse_foreign(feed, exchange, g, acks[g].through, false))
            return true;
    return false;
}

static void take_acks(struct feed *feed, struct http_exchange *exchange, uint32_t table_id,
                      const struct wal_ack *acks)
{
    struct error err;
    if (are_foreign(feed, exchange, acks))
        return;
    enum status status = wal_ack_table(feed->wal, table_id, acks, &err);
    if (status == STATUS_CORRUPT)
        refuse(feed, exchange, 409, "ERR_EXPORT_DAMAGED", "%s", err.message);
    else if (status != STATUS_OK)
        refuse_status(feed, exchange, &err);
    else {
        if (feed->options.acknowledged)
            feed->options.acknowledged(feed->options.context, table_id);
        respond_log(feed, exchange);
    }
}

static void acknowledge(struct feed *feed, struct http_exchange *exchange, const char *table,
                        const struct json_value *json)
{
    struct error err;
    uint32_t groups = wal_group_count(feed->wal), table_id = wal_table_find(feed->wal, table);
    struct wal_ack *acks = mem_alloc_zero(groups, sizeof *acks);
    if (!table_id)
        refuse(feed, exchange, 404, "ERR_EXPORT_NO_TABLE", "the log has no table %.250s", table);
    else if (!acks)
        refuse(feed, exchange, 503, "ERR_EXPORT_UNAVAILABLE", "out of memory");
    else if (parse_acks(json, groups, acks, &err) != STATUS_OK)
        refuse_status(feed, exchange, &err);
    else
        take_acks(feed, exchange, table_id, acks);
    mem_free(acks);
}

static void fence(struct feed *feed, struct http_exchange *exchange, const struct json_value *json)
{
    struct error err;
    int64_t incarnation;
    if (!json_get_i64(json, "incarnation", &incarnation) || incarnation <= 0)
        refuse(feed, exchange, 400, "ERR_EXPORT_BAD_REQUEST", "incarnation is needed");
    else if ((uint64_t)incarnation <= wal_incarnation(feed->wal))
        refuse(feed, exchange, 409, "ERR_EXPORT_OTHER_HISTORY",
               "this log is incarnation %llu itself",
               (unsigned long long)wal_incarnation(feed->wal));
    else if (wal_fence(feed->wal, (uint64_t)incarnation, &err) != STATUS_OK)
        refuse_status(feed, exchange, &err);
    else
        respond_log(feed, exchange);
}

/* What may be said here, and by whom? False: it has answered. */
static bool check_request(struct feed *feed, struct http_exchange *exchange, struct span name)
{
    const struct http_head *head = http_exchange_head(exchange);
    struct span body = http_exchange_body(exchange), crc = http_head_get(head, "sluice-crc32c");
    char own_crc[9];
    snprintf(own_crc, sizeof own_crc, "%08x", crc32c(0, body.data, body.length));
    if (http_head_get(head, "origin").data)
        refuse(feed, exchange, 403, "ERR_EXPORT_BAD_REQUEST", "not from web pages");
    else if (!feed->options.is_published_elsewhere)
        refuse(feed, exchange, 409, "ERR_EXPORT_PUBLISHED_HERE",
               "this server publishes its log itself; publish.from = \"log_port\" changes that");
    else if (crc.data && !span_equal(crc, span_of_text(own_crc)))
        refuse(feed, exchange, 400, "ERR_EXPORT_BAD_REQUEST", "Sluice-Crc32c is not the body's");
    else if (name.length == 0 || name.length > WAL_TABLE_NAME_MAX)
        refuse(feed, exchange, 404, "ERR_EXPORT_NO_TABLE", "POST is for /v1/publication/TABLE");
    else
        return true;
    return false;
}

void handle_publication(void *context, struct http_exchange *exchange)
{
    struct feed *feed = context;
    struct arena arena;
    struct json_value *json = NULL;
    struct error err;
    char table[WAL_TABLE_NAME_MAX + 1];
    struct span path = http_exchange_head(exchange)->path, body = http_exchange_body(exchange);
    size_t start = strlen("/v1/publication/");
    struct span name = span_of(path.data + start, path.length - start);
    if (!check_request(feed, exchange, name))
        return;
    memcpy(table, name.data, name.length);
    table[name.length] = '\0';
    arena_init(&arena, FEED_BODY_BYTES_MAX * 16);
    if (json_parse(body.data, body.length, &arena, &json, &err) != STATUS_OK)
        refuse(feed, exchange, 400, "ERR_EXPORT_BAD_REQUEST", "%s", err.message);
    else if (check_log(feed, exchange, json)) {
        if (strcmp(table, "fence") == 0)
            fence(feed, exchange, json);
        else
            acknowledge(feed, exchange, table, json);
    }
    arena_deinit(&arena);
}
