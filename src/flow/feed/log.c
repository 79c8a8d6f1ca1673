/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /v1/log: what the log is and has, all that a publisher decides by (docs/log_port.md). Ends
 * are read before what is pending, so that nothing up to an end is missing from what is pending.
 */
#include <stdio.h>

#include "flow/feed/feed_internal.h"

static void put_position(struct json_writer *json, const char *key, const uint64_t *term,
                         struct wal_position position)
{
    char chain[17];
    snprintf(chain, sizeof chain, "%016llx", (unsigned long long)position.chain);
    json_write_key(json, key);
    json_write_object_begin(json);
    if (term)
        put_u64(json, "term", *term);
    put_u64(json, "seq", position.seq);
    put_text(json, "chain", chain);
    json_write_object_end(json);
}

static void put_groups(struct json_writer *json, struct feed *feed)
{
    struct wal *wal = feed->wal;
    json_write_key(json, "groups");
    json_write_array_begin(json);
    for (uint32_t group = 0; group < wal_group_count(wal); group++) {
        struct error ignored;
        struct wal_position end = wal_synced_end(wal, group), recovered;
        uint64_t term = 0;
        if (end.seq == 0 || wal_term_at(wal, group, end.seq, &term, &ignored) != STATUS_OK)
            term = 0;
        json_write_object_begin(json);
        put_u64(json, "group", group);
        put_u64(json, "retained_from", wal_retained_from(wal, group));
        put_u64(json, "reclaimed_through", wal_reclaimed_through(wal, group, 0));
        put_position(json, "end", &term, end);
        put_position(json, "started", NULL, feed->started[group]);
        if (wal_recovered_to(wal, group, &recovered))
            put_position(json, "recovered_to", NULL, recovered);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

static void put_lost(struct json_writer *json, struct wal *wal)
{
    uint32_t group;
    uint64_t first, last;
    json_write_key(json, "recovered_without");
    json_write_array_begin(json);
    for (size_t i = 0; wal_recovered_without(wal, i, &group, &first, &last); i++) {
        json_write_object_begin(json);
        put_u64(json, "group", group);
        put_u64(json, "first", first);
        put_u64(json, "last", last);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

void put_behind(struct json_writer *json, struct wal *wal, uint32_t group, uint32_t table_id,
                uint64_t after)
{
    struct wal_pending pending = wal_pending(wal, group, table_id, after);
    struct wal_damage damage;
    json_write_key(json, "pending");
    json_write_object_begin(json);
    put_u64(json, "entries", pending.entries);
    put_u64(json, "rows", pending.rows);
    put_u64(json, "bytes", pending.bytes);
    put_u64(json, "last_seq", pending.last_seq);
    put_u64(json, "oldest_ns", (uint64_t)pending.oldest_wall_ns);
    json_write_object_end(json);
    if (!wal_damage_above(wal, group, table_id, after, &damage))
        return;
    json_write_key(json, "damage");
    json_write_object_begin(json);
    put_u64(json, "first", damage.seq_first);
    put_u64(json, "last", damage.seq_last);
    put_text(json, "where", damage.where);
    json_write_object_end(json);
}

static void put_table_group(struct json_writer *json, struct wal *wal, uint32_t group, uint32_t id)
{
    struct wal_ack ack = {0};
    json_write_object_begin(json);
    put_u64(json, "group", group);
    if (wal_ack_get(wal, id, group, &ack)) {
        put_position(json, "committed", NULL, ack.committed);
        put_position(json, "through", NULL, ack.through);
    }
    put_behind(json, wal, group, id,
               ack.through.seq > ack.committed.seq ? ack.through.seq : ack.committed.seq);
    json_write_object_end(json);
}

static void put_tables(struct json_writer *json, struct feed *feed)
{
    struct wal *wal = feed->wal;
    const struct feed_options *options = &feed->options;
    json_write_key(json, "tables");
    json_write_array_begin(json);
    for (uint32_t id = 1; id <= wal_table_count(wal); id++) {
        char name[WAL_TABLE_NAME_MAX + 1];
        if (!wal_table_name(wal, id, name))
            continue;
        json_write_object_begin(json);
        put_u64(json, "id", id);
        put_text(json, "name", name);
        json_write_key(json, "reclaimed_through");
        json_write_array_begin(json);
        for (uint32_t group = 0; group < wal_group_count(wal); group++)
            json_write_u64(json, wal_reclaimed_through(wal, group, id));
        json_write_array_end(json);
        json_write_key(json, "is_awaited");
        json_write_bool(json, options->is_awaited && options->is_awaited(options->context, id));
        json_write_key(json, "groups");
        json_write_array_begin(json);
        for (uint32_t group = 0; group < wal_group_count(wal); group++)
            put_table_group(json, wal, group, id);
        json_write_array_end(json);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

void respond_log(struct feed *feed, struct http_exchange *exchange)
{
    struct wal *wal = feed->wal;
    struct buf body = {0};
    struct json_writer json;
    char log[LOG_ID_TEXT_BYTES], start[17];
    log_id_to_text(wal_log_id(wal), log);
    snprintf(start, sizeof start, "%016llx", (unsigned long long)feed->start);
    json_writer_init(&json, &body);
    json_write_object_begin(&json);
    put_text(&json, "log", log);
    put_u64(&json, "incarnation", wal_incarnation(wal));
    put_u64(&json, "term", wal_term(wal));
    put_text(&json, "start", start);
    put_u64(&json, "fenced_by", wal_fenced_by(wal));
    put_u64(&json, "now_ns", (uint64_t)env_wall_ns(feed->env));
    put_text(&json, "published_from", feed->options.is_published_elsewhere ? "log_port" : "here");
    put_groups(&json, feed);
    put_lost(&json, wal);
    put_tables(&json, feed);
    json_write_object_end(&json);
    buf_put_byte(&body, '\n');
    respond_json(feed, exchange, &body);
}

void handle_log(void *context, struct http_exchange *exchange)
{
    respond_log(context, exchange);
}
