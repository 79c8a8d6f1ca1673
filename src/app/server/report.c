/* SPDX-License-Identifier: Apache-2.0
 *
 * What the server says of itself: status as JSON, metrics as Prometheus text (exposition format
 * 0.0.4). Counters are there from the start, at zero.
 */
#include <stdio.h>

#include "app/server/server_internal.h"
#include "format/json/json.h"

static const char *state_name(enum publish_state state)
{
    static const char *const names[] = {"idle",   "working",    "retrying",
                                        "halted", "stood_down", "elsewhere"};
    return names[state];
}

static void put_u64(struct json_writer *writer, const char *key, uint64_t value)
{
    json_write_key(writer, key);
    json_write_u64(writer, value);
}

static void put_text(struct json_writer *writer, const char *key, const char *value)
{
    json_write_key(writer, key);
    json_write_text(writer, value);
}

static struct wal_backlog backlog_of(struct server *server, const char *table)
{
    struct wal *wal = server->stack.wal;
    return wal_table_backlog(wal, wal_table_find(wal, table));
}

static void put_lanes(struct json_writer *writer, struct server *server)
{
    struct publish_lane_info lane;
    json_write_key(writer, "lanes");
    json_write_array_begin(writer);
    for (size_t i = 0; publisher_lane_at(server->stack.publisher, i, &lane); i++) {
        json_write_object_begin(writer);
        put_text(writer, "table", lane.table);
        put_text(writer, "state", state_name(lane.state));
        if (lane.reason[0])
            put_text(writer, "reason", lane.reason);
        if (lane.remedy[0])
            put_text(writer, "remedy", lane.remedy);
        if (lane.dropped[0])
            put_text(writer, "dropped_columns", lane.dropped);
        put_u64(writer, "committed_seq", lane.committed.seq);
        put_u64(writer, "lag_rows", lane.lag_rows);
        put_u64(writer, "lag_bytes", lane.lag_bytes);
        if (server->stack.wal) {
            put_u64(writer, "pinned_bytes", lane.pinned_bytes);
            struct wal_backlog backlog = backlog_of(server, lane.table);
            put_u64(writer, "backlog_bytes", backlog.bytes);
            put_u64(writer, "limit_bytes", backlog.limit);
        }
        put_u64(writer, "oldest_unpublished_ms", (uint64_t)lane.oldest_unpublished_ms);
        put_u64(writer, "epoch", lane.epoch);
        put_u64(writer, "commits", lane.commits_total);
        put_u64(writer, "rows", lane.rows_total);
        put_u64(writer, "files", lane.files_total);
        put_u64(writer, "retries", lane.retries_total);
        put_u64(writer, "rebases", lane.rebases_total);
        put_u64(writer, "last_commit_ms", (uint64_t)lane.last_commit_wall_ms);
        json_write_key(writer, "snapshot_id");
        json_write_i64(writer, lane.snapshot_id);
        if (lane.state == PUBLISH_ELSEWHERE)
            put_u64(writer, "last_ack_ms", (uint64_t)lane.acked_wall_ms);
        json_write_object_end(writer);
    }
    json_write_array_end(writer);
}

static void put_damage(struct json_writer *writer, struct wal *wal)
{
    struct wal_damage damage;
    json_write_key(writer, "damage");
    json_write_array_begin(writer);
    for (size_t i = 0; wal_damage_at(wal, i, &damage); i++) {
        json_write_object_begin(writer);
        put_u64(writer, "group", damage.group);
        put_u64(writer, "seq_first", damage.seq_first);
        put_u64(writer, "seq_last", damage.seq_last);
        put_text(writer, "where", damage.where);
        json_write_object_end(writer);
    }
    json_write_array_end(writer);
}

static void put_log(struct json_writer *writer, struct server *server)
{
    struct wal *wal = server->stack.wal;
    struct wal_usage usage = wal_usage(wal);
    char id[LOG_ID_TEXT_BYTES];
    log_id_to_text(wal_log_id(wal), id);
    json_write_key(writer, "log");
    json_write_object_begin(writer);
    put_text(writer, "id", id);
    put_u64(writer, "term", wal_term(wal));
    put_u64(writer, "incarnation", wal_incarnation(wal));
    put_u64(writer, "fenced_by", wal_fenced_by(wal));
    put_u64(writer, "groups", wal_group_count(wal));
    put_u64(writer, "synced_seq", wal_synced_end(wal, 0).seq);
    put_u64(writer, "budget_bytes", usage.budget_bytes);
    put_u64(writer, "allocated_bytes", usage.allocated_bytes);
    put_u64(writer, "segments_sealed", usage.segments_sealed);
    put_u64(writer, "segments_committed", usage.segments_committed);
    put_u64(writer, "segments_compacted", usage.segments_compacted);
    put_u64(writer, "entries_written", usage.entries_written);
    put_u64(writer, "bytes_written", usage.bytes_written);
    put_u64(writer, "syncs", usage.syncs);
    put_u64(writer, "producers", usage.producers);
    put_u64(writer, "producers_expired", usage.producers_remembered);
    json_write_key(writer, "is_refusing");
    json_write_bool(writer, usage.is_refusing);
    put_damage(writer, wal);
    json_write_object_end(writer);
}

/* The log that is published from here, on another server. */
static void put_source(struct json_writer *writer, struct server *server)
{
    struct source *source = server->stack.source;
    struct source_state state;
    char id[LOG_ID_TEXT_BYTES];
    if (!source_state(source, &state))
        return;
    log_id_to_text(source_log_id(source), id);
    json_write_key(writer, "source");
    json_write_object_begin(writer);
    put_text(writer, "url", state.url);
    put_text(writer, "log", id);
    put_u64(writer, "term", source_term(source));
    put_u64(writer, "incarnation", source_incarnation(source));
    put_u64(writer, "fenced_by", source_fenced_by(source));
    put_u64(writer, "groups", source_group_count(source));
    put_u64(writer, "synced_seq", source_end(source, 0).seq);
    json_write_key(writer, "is_answering");
    json_write_bool(writer, state.is_answering);
    if (state.why[0])
        put_text(writer, "reason", state.why);
    put_u64(writer, "answered_ms", (uint64_t)state.answered_wall_ms);
    put_u64(writer, "failures", state.failures_total);
    put_u64(writer, "entries", state.entries_total);
    put_u64(writer, "bytes", state.bytes_total);
    json_write_object_end(writer);
}

static void put_ingest(struct json_writer *writer, struct server *server)
{
    struct ingest_stats stats = ingest_stats(server->ingest);
    json_write_key(writer, "ingest");
    json_write_object_begin(writer);
    put_u64(writer, "requests", stats.requests);
    put_u64(writer, "items", stats.items);
    put_u64(writer, "rows", stats.rows);
    put_u64(writer, "rejected_items", stats.rejected_items);
    put_u64(writer, "repaired_items", stats.repaired_items);
    put_u64(writer, "moved_times", stats.moved_times);
    put_u64(writer, "dead_letters_lost", stats.dead_letters_lost);
    put_u64(writer, "bad_requests", stats.bad_requests);
    put_u64(writer, "refused_requests", stats.refused_requests);
    put_u64(writer, "repeats", stats.repeats);
    json_write_object_end(writer);
}

static void put_mirror(struct json_writer *writer, struct server *server)
{
    if (!server->mirror)
        return;
    struct mirror_stats stats = mirror_stats(server->mirror);
    uint64_t failures = 0;
    for (size_t i = 0; i < MIRROR_STEPS; i++)
        failures += stats.failures_total[i];
    json_write_key(writer, "mirror");
    json_write_object_begin(writer);
    put_text(writer, "url", mirror_url(server->mirror));
    put_text(writer, "state", mirror_condition_name(stats.condition));
    if (stats.why[0])
        put_text(writer, "reason", stats.why);
    put_u64(writer, "confirmed_seq", mirror_confirmed(server->mirror, 0));
    put_u64(writer, "confirmed_ms", (uint64_t)stats.confirmed_wall_ms);
    put_u64(writer, "queue_bytes", stats.queue_bytes);
    put_u64(writer, "oldest_ms", (uint64_t)stats.oldest_ms);
    put_u64(writer, "waiting", stats.waiting);
    put_u64(writer, "uploads", stats.uploads_total);
    put_u64(writer, "uploaded_bytes", stats.uploaded_bytes_total);
    put_u64(writer, "failures", failures);
    put_u64(writer, "abandoned", stats.abandoned_total);
    put_u64(writer, "states", stats.states_total);
    put_u64(writer, "swept", stats.swept_total);
    json_write_object_end(writer);
}

void server_put_status(struct server *server, struct buf *out)
{
    struct json_writer writer;
    json_writer_init(&writer, out);
    json_write_object_begin(&writer);
    put_text(&writer, "version", SLUICE_VERSION);
    put_u64(&writer, "started_ms", (uint64_t)(server->started_wall_ns / 1000000));
    put_u64(&writer, "pid", (uint64_t)os_process_id());
    put_u64(&writer, "resident_bytes", os_memory_resident_bytes());
    put_u64(&writer, "otlp_http_port", server_otlp_port(server));
    put_u64(&writer, "log_port", server_log_port(server));
    put_source(&writer, server);
    if (server->stack.wal) {
        put_text(&writer, "published_from", server->stack.settings.publish_from);
        put_log(&writer, server);
        put_mirror(&writer, server);
        put_ingest(&writer, server);
    }
    put_lanes(&writer, server);
    json_write_object_end(&writer);
    buf_put_byte(out, '\n');
}

/* ---- metrics ---- */

static void metric(struct buf *out, const char *name, const char *type, const char *help,
                   uint64_t value)
{
    buf_format(out, "# HELP sluice_%s %s\n# TYPE sluice_%s %s\nsluice_%s %llu\n", name, help, name,
               type, name, (unsigned long long)value);
}

static void put_ack_histogram(struct buf *out, const struct ingest_stats *stats)
{
    uint64_t below = 0;
    buf_put_text(out, "# HELP sluice_ack_seconds Request head complete to durable answer.\n"
                      "# TYPE sluice_ack_seconds histogram\n");
    for (size_t i = 0; i + 1 < COUNT_OF(stats->ack_buckets); i++) {
        below += stats->ack_buckets[i];
        buf_format(out, "sluice_ack_seconds_bucket{le=\"%.6f\"} %llu\n",
                   (double)ingest_ack_bucket_us(i) / 1e6, (unsigned long long)below);
    }
    buf_format(out,
               "sluice_ack_seconds_bucket{le=\"+Inf\"} %llu\n"
               "sluice_ack_seconds_sum %.6f\nsluice_ack_seconds_count %llu\n",
               (unsigned long long)stats->acks, (double)stats->ack_ns_sum / 1e9,
               (unsigned long long)stats->acks);
}

struct lane_metric {
    const char *name, *type, *help;
    uint64_t (*value)(const struct publish_lane_info *lane);
};

static uint64_t lane_halted(const struct publish_lane_info *lane)
{
    return lane->state == PUBLISH_HALTED || lane->state == PUBLISH_STOOD_DOWN;
}

static uint64_t lane_rows(const struct publish_lane_info *lane)
{
    return lane->rows_total;
}

static uint64_t lane_commits(const struct publish_lane_info *lane)
{
    return lane->commits_total;
}

static uint64_t lane_retries(const struct publish_lane_info *lane)
{
    return lane->retries_total;
}

static uint64_t lane_lag_rows(const struct publish_lane_info *lane)
{
    return lane->lag_rows;
}

static uint64_t lane_lag_bytes(const struct publish_lane_info *lane)
{
    return lane->lag_bytes;
}

static uint64_t lane_pinned_bytes(const struct publish_lane_info *lane)
{
    return lane->pinned_bytes;
}

static uint64_t lane_age(const struct publish_lane_info *lane)
{
    return (uint64_t)lane->oldest_unpublished_ms / 1000;
}

static uint64_t lane_ack_age(const struct publish_lane_info *lane)
{
    int64_t age_ms = env_wall_ns(env_real()) / 1000000 - lane->acked_wall_ms;
    return lane->acked_wall_ms && age_ms > 0 ? (uint64_t)age_ms / 1000 : 0;
}

static void put_backlog_metrics(struct buf *out, struct server *server)
{
    static const struct {
        const char *name, *type, *help;
        size_t offset;
    } metrics[] = {
        {"table_backlog_bytes", "gauge", "Payload on the log that the table does not have.",
         offsetof(struct wal_backlog, bytes)},
        {"table_limit_bytes", "gauge", "From which on rows of the table are refused; 0: no limit.",
         offsetof(struct wal_backlog, limit)},
        {"table_refused_total", "counter", "Times that rows were refused for the table's limit.",
         offsetof(struct wal_backlog, refused)},
    };
    struct publish_lane_info lane;
    for (size_t m = 0; m < COUNT_OF(metrics); m++) {
        buf_format(out, "# HELP sluice_%s %s\n# TYPE sluice_%s %s\n", metrics[m].name,
                   metrics[m].help, metrics[m].name, metrics[m].type);
        for (size_t i = 0; publisher_lane_at(server->stack.publisher, i, &lane); i++) {
            struct wal_backlog backlog = backlog_of(server, lane.table);
            uint64_t value;
            memcpy(&value, (const char *)&backlog + metrics[m].offset, sizeof value);
            buf_format(out, "sluice_%s{table=\"%s\"} %llu\n", metrics[m].name, lane.table,
                       (unsigned long long)value);
        }
    }
}

static void put_lane_metrics(struct buf *out, struct server *server)
{
    static const struct lane_metric metrics[] = {
        {"lane_halted", "gauge", "1 while the lane is halted.", lane_halted},
        {"lane_rows_total", "counter", "Rows committed.", lane_rows},
        {"lane_commits_total", "counter", "Table commits.", lane_commits},
        {"lane_retries_total", "counter", "Rounds that failed and were tried again.", lane_retries},
        {"lane_lag_rows", "gauge", "Synced rows not yet committed.", lane_lag_rows},
        {"lane_lag_bytes", "gauge", "Synced payload bytes not yet committed.", lane_lag_bytes},
        {"lane_pinned_bytes", "gauge", "Disk blocks of the log that wait for the lane.",
         lane_pinned_bytes},
        {"lane_oldest_unpublished_seconds", "gauge", "Age of the oldest row not yet committed.",
         lane_age},
        {"lane_last_ack_seconds", "gauge",
         "Since the server that publishes the log acknowledged; 0: not since the start.",
         lane_ack_age},
    };
    struct publish_lane_info lane;
    bool is_elsewhere = settings_is_elsewhere(&server->stack.settings);
    for (size_t m = 0; m < COUNT_OF(metrics); m++) {
        if (metrics[m].value == lane_ack_age && !is_elsewhere)
            continue;
        buf_format(out, "# HELP sluice_%s %s\n# TYPE sluice_%s %s\n", metrics[m].name,
                   metrics[m].help, metrics[m].name, metrics[m].type);
        for (size_t i = 0; publisher_lane_at(server->stack.publisher, i, &lane); i++)
            buf_format(out, "sluice_%s{table=\"%s\"} %llu\n", metrics[m].name, lane.table,
                       (unsigned long long)metrics[m].value(&lane));
    }
}

/* What consumers hold, and how far each is behind. */
static void put_consumer_metrics(struct buf *out, struct server *server,
                                 const struct wal_usage *usage)
{
    struct feed_stats stats = feed_stats(server->feed);
    struct wal *wal = server->stack.wal;
    struct wal_consumer consumer;
    uint64_t count = 0, lost = 0;
    for (size_t i = 0; wal_consumer_at(wal, i, &consumer); i++) {
        count++;
        lost += consumer.is_released;
    }
    metric(out, "export_pages_total", "counter", "Pages served by the log port.", stats.pages);
    metric(out, "export_rows_total", "counter", "Rows in them.", stats.rows);
    metric(out, "export_bytes_total", "counter", "Bytes of them.", stats.bytes);
    metric(out, "export_refusals_total", "counter", "Requests that the log port refused.",
           stats.refusals);
    metric(out, "export_waiting", "gauge", "Requests that wait for rows.", stats.waiting);
    metric(out, "export_consumers", "gauge", "Consumers that the log knows.", count);
    metric(out, "export_consumers_released", "gauge", "Those whose hold was given up.", lost);
    metric(out, "export_holds_lapsed_total", "counter", "Leases that nobody renewed.",
           usage->holds_lapsed);
    metric(out, "export_holds_released_total", "counter", "Holds given up for space.",
           usage->holds_released);
    buf_put_text(out, "# HELP sluice_export_lag_rows Rows that a consumer has not acknowledged.\n"
                      "# TYPE sluice_export_lag_rows gauge\n");
    for (size_t i = 0; wal_consumer_at(wal, i, &consumer); i++)
        buf_format(out, "sluice_export_lag_rows{consumer=\"%s\"} %llu\n", consumer.name,
                   (unsigned long long)wal_pending(wal, consumer.group, consumer.table_id,
                                                   consumer.held_from)
                       .rows);
}

static void put_mirror_metrics(struct buf *out, struct mirror *mirror)
{
    struct mirror_stats stats = mirror_stats(mirror);
    metric(out, "mirror_queue_bytes", "gauge", "Synced bytes that are not in the mirror.",
           stats.queue_bytes);
    metric(out, "mirror_oldest_seconds", "gauge", "For how long the first of them waits.",
           (uint64_t)stats.oldest_ms / 1000);
    metric(out, "mirror_waiting", "gauge", "Requests that wait for the mirror.", stats.waiting);
    metric(out, "mirror_uploads_total", "counter", "Ranges copied.", stats.uploads_total);
    metric(out, "mirror_confirmed_bytes_total", "counter", "Bytes of them.",
           stats.uploaded_bytes_total);
    metric(out, "mirror_confirmed_seq", "gauge", "Everything up to it is in the mirror (group 0).",
           mirror_confirmed(mirror, 0));
    metric(out, "mirror_abandoned_total", "counter",
           "Ranges whose segment went before they were copied.", stats.abandoned_total);
    metric(out, "mirror_states_total", "counter", "Checkpoints put.", stats.states_total);
    metric(out, "mirror_swept_total", "counter", "Objects deleted.", stats.swept_total);
    metric(out, "mirror_refused", "gauge", "1 while nothing is written to it any more.",
           stats.condition == MIRROR_REFUSED);
    buf_put_text(out, "# HELP sluice_mirror_failures_total Steps that failed.\n"
                      "# TYPE sluice_mirror_failures_total counter\n");
    for (size_t i = 0; i < MIRROR_STEPS; i++)
        buf_format(out, "sluice_mirror_failures_total{reason=\"%s\"} %llu\n",
                   mirror_step_name((enum mirror_step)i),
                   (unsigned long long)stats.failures_total[i]);
}

static uint64_t count_damage(struct wal *wal)
{
    struct wal_damage damage;
    uint64_t count = 0;
    while (wal_damage_at(wal, count, &damage))
        count++;
    return count;
}

static void put_log_metrics(struct buf *out, struct server *server)
{
    struct ingest_stats stats = ingest_stats(server->ingest);
    struct wal_usage usage = wal_usage(server->stack.wal);
    struct http_stats http = http_server_stats(server->otlp);
    metric(out, "ingest_requests_total", "counter", "Requests stored.", stats.requests);
    metric(out, "ingest_items_total", "counter", "Items received in them.", stats.items);
    metric(out, "ingest_rejected_items_total", "counter", "Items refused.", stats.rejected_items);
    metric(out, "ingest_repaired_items_total", "counter",
           "Items stored with their original bytes beside the columns.", stats.repaired_items);
    metric(out, "ingest_moved_times_total", "counter",
           "Items whose partition time became the receipt time.", stats.moved_times);
    metric(out, "ingest_dead_letters_lost_total", "counter",
           "Refused items whose bytes were not kept.", stats.dead_letters_lost);
    metric(out, "ingest_bad_requests_total", "counter", "Requests that can never succeed.",
           stats.bad_requests);
    metric(out, "ingest_refused_requests_total", "counter", "Requests to be sent again later.",
           stats.refused_requests);
    metric(out, "ingest_repeats_total", "counter", "Repeats answered with the first receipt.",
           stats.repeats);
    metric(out, "ingest_body_bytes_total", "counter", "Body bytes on the wire.", stats.body_bytes);
    metric(out, "ingest_payload_bytes_total", "counter", "Payload bytes given to the log.",
           stats.payload_bytes);
    put_ack_histogram(out, &stats);
    metric(out, "log_bytes_written_total", "counter", "Bytes written to segments.",
           usage.bytes_written);
    metric(out, "log_entries_total", "counter", "Entries written.", usage.entries_written);
    metric(out, "log_syncs_total", "counter", "Syncs of segments.", usage.syncs);
    metric(out, "log_allocated_bytes", "gauge", "Disk blocks of the log.", usage.allocated_bytes);
    metric(out, "log_budget_bytes", "gauge", "What it may use.", usage.budget_bytes);
    metric(out, "log_pinned_bytes", "gauge", "Of segments that are being read right now.",
           usage.pinned_bytes);
    metric(out, "log_segments_compacted_total", "counter",
           "Segments of which no more was kept than what a lane still needs.",
           usage.segments_compacted);
    metric(out, "log_refusing", "gauge", "1 while writes are refused for space.",
           usage.is_refusing);
    metric(out, "log_refused_submissions_total", "counter", "Submissions refused.",
           usage.submissions_refused);
    metric(out, "log_damaged_ranges", "gauge", "Ranges of entries that cannot be read.",
           count_damage(server->stack.wal));
    metric(out, "http_connections", "gauge", "Open OTLP connections.", http.connections_open);
    metric(out, "http_timeouts_total", "counter", "Requests that took too long.",
           http.timeouts_total);
    put_backlog_metrics(out, server);
    metric(out, "log_group_backlog_bytes", "gauge", "Payload on the log that tables do not have.",
           wal_group_backlog(server->stack.wal, 0).bytes);
    metric(out, "log_group_refused_total", "counter", "Requests refused for log.group_bytes.",
           wal_group_backlog(server->stack.wal, 0).refused);
    put_consumer_metrics(out, server, &usage);
    if (server->mirror)
        put_mirror_metrics(out, server->mirror);
}

static void put_source_metrics(struct buf *out, const struct source_state *state)
{
    metric(out, "source_answering", "gauge", "1 while the log that is published answers.",
           state->is_answering);
    metric(out, "source_failures_total", "counter", "Looks at it that came to nothing.",
           state->failures_total);
    metric(out, "source_entries_total", "counter", "Entries read from it.", state->entries_total);
    metric(out, "source_bytes_total", "counter", "Payload bytes of them.", state->bytes_total);
}

void server_put_metrics(struct server *server, struct buf *out)
{
    struct source_state source;
    buf_format(out,
               "# HELP sluice_build_info Version.\n# TYPE sluice_build_info gauge\n"
               "sluice_build_info{version=\"%s\"} 1\n",
               SLUICE_VERSION);
    if (server->stack.wal)
        put_log_metrics(out, server);
    if (source_state(server->stack.source, &source))
        put_source_metrics(out, &source);
    metric(out, "process_resident_bytes", "gauge", "Resident memory.", os_memory_resident_bytes());
    put_lane_metrics(out, server);
}
