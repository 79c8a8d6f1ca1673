/* SPDX-License-Identifier: Apache-2.0
 *
 * /v1/consumers: leases made, acknowledged, renewed, looked at and ended (L31, L33).
 */
#include <stdio.h>

#include "flow/feed/feed_internal.h"

enum { TTL_MS_DEFAULT = 60000 };

/* ---- answers ---- */

static void put_flags(struct json_writer *json, const struct wal_consumer *consumer)
{
    char flags[80];
    struct span list, flag;
    flags_text(consumer, flags);
    list = span_of_text(flags);
    json_write_key(json, "flags");
    json_write_array_begin(json);
    while (http_list_next(&list, &flag))
        json_write_string(json, flag.data, flag.length);
    json_write_array_end(json);
}

static void put_members(struct json_writer *json, struct feed *feed,
                        const struct wal_consumer *consumer)
{
    char text[POSITION_TEXT_BYTES];
    json_write_key(json, "members");
    json_write_array_begin(json);
    for (uint32_t i = 0; i < consumer->member_count; i++) {
        const struct wal_consumer_member *member = &consumer->members[i];
        json_write_object_begin(json);
        snprintf(text, sizeof text, "%u/%u", i, consumer->member_count);
        put_text(json, "member", text);
        put_text(json, "owner", member->owner);
        position_text(feed->wal, consumer->group, member->term, member->seq, text);
        put_text(json, "cursor", text);
        json_write_key(json, "is_present");
        json_write_bool(json, member->is_present);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

/* `member`: whose cursor stands in front; NULL: of a group, nobody's. */
static void put_consumer(struct json_writer *json, struct feed *feed,
                         const struct wal_consumer *consumer, const uint32_t *member)
{
    static const uint32_t only = 0;
    char text[WAL_TABLE_NAME_MAX + 1] = "", cursor[POSITION_TEXT_BYTES];
    struct wal_pending pending =
        wal_pending(feed->wal, consumer->group, consumer->table_id, consumer->held_from);
    if (!wal_table_name(feed->wal, consumer->table_id, text))
        text[0] = '\0';
    if (consumer->member_count == 1)
        member = &only;
    json_write_object_begin(json);
    put_text(json, "name", consumer->name);
    put_text(json, "table", text);
    put_u64(json, "group", consumer->group);
    put_u64(json, "held_from", consumer->held_from);
    put_u64(json, "lag_entries", pending.entries);
    put_u64(json, "lag_rows", pending.rows);
    put_u64(json, "ttl_ms", consumer->ttl_ms);
    if (member) {
        const struct wal_consumer_member *of = &consumer->members[*member];
        position_text(feed->wal, consumer->group, of->term, of->seq, cursor);
        put_text(json, "cursor", cursor);
    }
    put_flags(json, consumer);
    put_members(json, feed, consumer);
    json_write_object_end(json);
}

static void respond_consumer(struct feed *feed, struct http_exchange *exchange,
                             const struct wal_consumer *consumer, const uint32_t *member)
{
    struct buf body = {0};
    struct json_writer json;
    json_writer_init(&json, &body);
    put_consumer(&json, feed, consumer, member);
    buf_put_byte(&body, '\n');
    respond_json(feed, exchange, &body);
}

void handle_consumers(void *context, struct http_exchange *exchange)
{
    struct feed *feed = context;
    struct buf body = {0};
    struct json_writer json;
    struct wal_consumer consumer;
    json_writer_init(&json, &body);
    json_write_object_begin(&json);
    json_write_key(&json, "consumers");
    json_write_array_begin(&json);
    for (size_t i = 0; wal_consumer_at(feed->wal, i, &consumer); i++)
        put_consumer(&json, feed, &consumer, NULL);
    json_write_array_end(&json);
    json_write_object_end(&json);
    buf_put_byte(&body, '\n');
    respond_json(feed, exchange, &body);
}

/* ---- what was asked ---- */

/* The name, and what stands behind it ("ack", or nothing). False: it has answered. */
static bool take_name(struct feed *feed, struct http_exchange *exchange,
                      char out_name[WAL_CONSUMER_NAME_MAX + 1], struct span *out_action)
{
    struct span path = http_exchange_head(exchange)->path;
    size_t start = strlen("/v1/consumers/");
    struct span name = span_of(path.data + start, path.length - start);
    const uint8_t *slash = name.length ? memchr(name.data, '/', name.length) : NULL;
    *out_action = (struct span){0};
    if (slash) {
        *out_action = span_of(slash + 1, (size_t)(name.data + name.length - slash) - 1);
        name.length = (size_t)(slash - name.data);
    }
    if (http_head_get(http_exchange_head(exchange), "origin").data) {
        refuse(feed, exchange, 403, "ERR_EXPORT_BAD_REQUEST",
               "consumers are not made by web pages");
        return false;
    }
    if (consumer_name_parse(name, out_name))
        return true;
    refuse(feed, exchange, 400, "ERR_EXPORT_BAD_REQUEST",
           "a consumer's name is up to %d of A-Z a-z 0-9 . _ -", WAL_CONSUMER_NAME_MAX);
    return false;
}

struct body {
    struct json_value *json;
    struct arena arena;
    struct wal_consumer_key key;
};

/* An object whose members are all among `names`; `member` and `owner` go into the key. */
static enum status body_parse(struct http_exchange *exchange, const char *name,
                              const char *const *names, size_t name_count, struct body *out,
                              struct error *err)
{
    struct span bytes = http_exchange_body(exchange);
    if (json_parse(bytes.data, bytes.length, &out->arena, &out->json, err) != STATUS_OK)
        return err->status = STATUS_INVALID; /* too deep and too large are no better */
    if (out->json->type != JSON_OBJECT)
        return error_set(err, STATUS_INVALID, "the body is no object");
    for (const struct json_value *at = out->json->first; at; at = at->next) {
        bool is_known = false;
        for (size_t i = 0; i < name_count && !is_known; i++)
            is_known = strcmp(at->key, names[i]) == 0;
        if (!is_known)
            return error_set(err, STATUS_INVALID, "unknown member %.60s", at->key);
    }
    out->key = (struct wal_consumer_key){.name = name, .owner = "", .member_count = 1};
    const char *member = json_get_text(out->json, "member");
    if (json_get(out->json, "owner") && !json_get_text(out->json, "owner"))
        return error_set(err, STATUS_INVALID, "owner is a text");
    if (json_get(out->json, "owner"))
        out->key.owner = json_get_text(out->json, "owner");
    if (strlen(out->key.owner) > WAL_OWNER_MAX)
        return error_set(err, STATUS_INVALID, "owner has up to %d bytes", WAL_OWNER_MAX);
    if (json_get(out->json, "member") &&
        (!member || !member_parse(span_of_text(member), &out->key.member, &out->key.member_count)))
        return error_set(err, STATUS_INVALID, "member is \"I/N\", I below N, N up to %d",
                         WAL_MEMBERS_MAX);
    return STATUS_OK;
}

static bool get_u64(const struct json_value *json, const char *name, uint64_t most, uint64_t *out)
{
    int64_t value;
    if (!json_get_i64(json, name, &value) || value < 0 || (uint64_t)value > most)
        return false;
    *out = (uint64_t)value;
    return true;
}

static enum status put_parse(const struct body *body, struct wal_consumer_ask *ask,
                             struct error *err)
{
    const char *start = json_get_text(body->json, "start");
    uint64_t group = 0;
    *ask = (struct wal_consumer_ask){.key = body->key, .ttl_ms = TTL_MS_DEFAULT};
    if (json_get(body->json, "group") && !get_u64(body->json, "group", UINT32_MAX, &group))
        return error_set(err, STATUS_INVALID, "group is a number");
    ask->group = (uint32_t)group;
    if (json_get(body->json, "ttl_ms") &&
        (!get_u64(body->json, "ttl_ms", FEED_TTL_MS_MOST, &ask->ttl_ms) ||
         ask->ttl_ms < FEED_TTL_MS_LEAST))
        return error_set(err, STATUS_INVALID, "ttl_ms is a number from %d to %d", FEED_TTL_MS_LEAST,
                         FEED_TTL_MS_MOST);
    if (start && strcmp(start, "latest") == 0)
        ask->start = WAL_START_LATEST;
    else if (get_u64(body->json, "start", INT64_MAX, &ask->start_seq))
        ask->start = WAL_START_AFTER;
    else if (json_get(body->json, "start") && !(start && strcmp(start, "earliest") == 0))
        return error_set(err, STATUS_INVALID, "start is \"earliest\", \"latest\" or a number");
    return STATUS_OK;
}

/* ---- the calls ---- */

static void put(struct feed *feed, struct http_exchange *exchange, const struct body *body,
                struct wal_consumer_ask *ask)
{
    struct wal_consumer consumer = {0};
    struct error err;
    enum wal_consumer_verdict verdict = WAL_CONSUMER_OK;
    const char *table = json_get_text(body->json, "table");
    ask->table_id = table ? wal_table_find(feed->wal, table) : 0;
    if (!table)
        refuse(feed, exchange, 400, "ERR_EXPORT_BAD_REQUEST", "table is needed");
    else if (!ask->table_id)
        refuse(feed, exchange, 404, "ERR_EXPORT_NO_TABLE", "the log has no table %.250s", table);
    else if (ask->group >= wal_group_count(feed->wal))
        refuse(feed, exchange, 404, "ERR_EXPORT_NO_GROUP", "group %u of %u", ask->group,
               wal_group_count(feed->wal));
    else if (wal_consumer_put(feed->wal, ask, &verdict, &consumer, &err) != STATUS_OK)
        refuse_status(feed, exchange, &err);
    else if (verdict == WAL_CONSUMER_AHEAD)
        refuse_ahead(feed, exchange, ask->group, ask->start_seq);
    else if (verdict == WAL_CONSUMER_RECLAIMED)
        refuse_reclaimed(feed, exchange, ask->group, ask->table_id, ask->start_seq);
    else if (!refuse_verdict(feed, exchange, &ask->key, verdict, &consumer))
        respond_consumer(feed, exchange, &consumer, &ask->key.member);
}

void handle_consumer_put(void *context, struct http_exchange *exchange)
{
    static const char *const names[] = {"table", "group", "start", "ttl_ms", "member", "owner"};
    struct feed *feed = context;
    struct body body = {0};
    struct wal_consumer_ask ask;
    struct error err;
    struct span action;
    char name[WAL_CONSUMER_NAME_MAX + 1];
    if (!take_name(feed, exchange, name, &action))
        return;
    arena_init(&body.arena, FEED_BODY_BYTES_MAX * 16);
    if (action.data)
        refuse(feed, exchange, 404, "ERR_EXPORT_NO_PAGE", "PUT is for /v1/consumers/NAME");
    else if (body_parse(exchange, name, names, COUNT_OF(names), &body, &err) != STATUS_OK ||
             put_parse(&body, &ask, &err) != STATUS_OK)
        refuse_status(feed, exchange, &err);
    else
        put(feed, exchange, &body, &ask);
    arena_deinit(&body.arena);
}

static void acknowledge(struct feed *feed, struct http_exchange *exchange, const struct body *body)
{
    struct wal_consumer consumer = {0};
    struct error err;
    enum wal_consumer_verdict verdict = WAL_CONSUMER_OK;
    uint64_t term, seq;
    if (!get_u64(body->json, "term", INT64_MAX, &term) ||
        !get_u64(body->json, "seq", INT64_MAX, &seq))
        refuse(feed, exchange, 400, "ERR_EXPORT_BAD_REQUEST", "term and seq are needed");
    else if (wal_consumer_ack(feed->wal, &body->key, term, seq, &verdict, &consumer, &err) !=
             STATUS_OK)
        refuse_status(feed, exchange, &err);
    else if (verdict == WAL_CONSUMER_AHEAD)
        refuse_ahead(feed, exchange, consumer.group, seq);
    else if (verdict == WAL_CONSUMER_OTHER_TERM)
        refuse_other_history(feed, exchange, consumer.group, seq, term);
    else if (!refuse_verdict(feed, exchange, &body->key, verdict, &consumer))
        respond_consumer(feed, exchange, &consumer, &body->key.member);
}

static void renew(struct feed *feed, struct http_exchange *exchange, const struct body *body)
{
    struct wal_consumer consumer;
    enum wal_consumer_verdict verdict = wal_consumer_renew(feed->wal, &body->key, &consumer);
    if (!refuse_verdict(feed, exchange, &body->key, verdict, &consumer))
        respond_consumer(feed, exchange, &consumer, &body->key.member);
}

void handle_consumer_post(void *context, struct http_exchange *exchange)
{
    static const char *const names[] = {"member", "owner", "term", "seq"};
    struct feed *feed = context;
    struct body body = {0};
    struct error err;
    struct span action;
    char name[WAL_CONSUMER_NAME_MAX + 1];
    if (!take_name(feed, exchange, name, &action))
        return;
    bool is_ack = span_equal(action, span_of_text("ack"));
    bool is_renewal = span_equal(action, span_of_text("renew"));
    arena_init(&body.arena, FEED_BODY_BYTES_MAX * 16);
    if (!is_ack && !is_renewal)
        refuse(feed, exchange, 404, "ERR_EXPORT_NO_PAGE",
               "POST is for /v1/consumers/NAME/ack and /renew");
    else if (body_parse(exchange, name, names, is_ack ? 4 : 2, &body, &err) != STATUS_OK)
        refuse_status(feed, exchange, &err);
    else if (is_ack)
        acknowledge(feed, exchange, &body);
    else
        renew(feed, exchange, &body);
    arena_deinit(&body.arena);
}

void handle_consumer(void *context, struct http_exchange *exchange)
{
    struct feed *feed = context;
    struct wal_consumer consumer;
    struct span action;
    char name[WAL_CONSUMER_NAME_MAX + 1];
    if (!take_name(feed, exchange, name, &action))
        return;
    if (action.data)
        refuse(feed, exchange, 404, "ERR_EXPORT_NO_PAGE", "GET is for /v1/consumers/NAME");
    else if (!wal_consumer_get(feed->wal, name, &consumer))
        refuse(feed, exchange, 404, "ERR_EXPORT_NO_CONSUMER", "there is no consumer %s", name);
    else
        respond_consumer(feed, exchange, &consumer, NULL);
}

void handle_consumer_delete(void *context, struct http_exchange *exchange)
{
    struct feed *feed = context;
    struct wal_consumer consumer;
    struct span action;
    struct error err;
    bool was_there = false;
    char name[WAL_CONSUMER_NAME_MAX + 1];
    if (!take_name(feed, exchange, name, &action))
        return;
    bool is_known = wal_consumer_get(feed->wal, name, &consumer);
    if (action.data)
        refuse(feed, exchange, 404, "ERR_EXPORT_NO_PAGE", "DELETE is for /v1/consumers/NAME");
    else if (wal_consumer_drop(feed->wal, name, &was_there, &err) != STATUS_OK)
        refuse_status(feed, exchange, &err);
    else if (!was_there || !is_known)
        refuse(feed, exchange, 404, "ERR_EXPORT_NO_CONSUMER", "there is no consumer %s", name);
    else
        respond_consumer(feed, exchange, &consumer, NULL);
}
