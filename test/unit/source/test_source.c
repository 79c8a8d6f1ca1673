/* SPDX-License-Identifier: Apache-2.0
 *
 * A log through both kinds of source: whatever the one of this process says, the one over the log
 * port says too. Frames and looks that were changed, cut or come from elsewhere.
 */
#include <stdlib.h>
#include <unistd.h>

#include "../unit.h"
#include "../wal/wal_fixture.h"
#include "flow/feed/feed.h"
#include "flow/frames/frames.h"
#include "flow/source/remote_internal.h"

struct both {
    struct fixture log;
    struct feed *feed;
    struct http_server *server;
    struct source *here, *there;
    char path[300];
    uint32_t acknowledged; /* the table that the log was told of last */
};

static void acknowledged(void *context, uint32_t table_id)
{
    ((struct both *)context)->acknowledged = table_id;
}

static void serve(struct both *both, bool is_elsewhere)
{
    struct error err;
    struct http_options http = http_options_default();
    struct feed_options options = {
        .is_published_elsewhere = is_elsewhere, .acknowledged = acknowledged, .context = both};
    assert_ok(feed_create(env_real(), both->log.wal, &options, &both->feed, &err));
    feed_attach(both->feed, &http);
    assert_ok(http_server_start(env_real(), &http, &both->server, &err));
}

static void both_open(struct both *both)
{
    struct error err;
    char url[64];
    *both = (struct both){0};
    fixture_init(&both->log, "source");
    wal_close(both->log.wal);
    fixture_remove_tree(both->log.dir);
    both->log.options.group_count = 2;
    fixture_open(&both->log);
    serve(both, true);
    snprintf(both->path, sizeof both->path, "%s.source", both->log.dir);
    snprintf(url, sizeof url, "http://127.0.0.1:%u", http_server_port(both->server));
    struct source_options options = source_options_default(url, both->path);
    options.look_ms = 100000; /* the test asks for looks itself */
    assert_ok(source_local_create(both->log.wal, &both->here, &err));
    assert_ok(source_remote_create(env_real(), &options, &both->there, &err));
}

static void both_close(struct both *both)
{
    struct error err;
    source_destroy(both->here);
    source_destroy(both->there);
    feed_stop(both->feed);
    http_server_destroy(both->server);
    feed_destroy(both->feed);
    assert_ok(env_remove(env_real(), both->path, &err));
    fixture_deinit(&both->log);
}

/* One entry of `bytes` in a group; its number is in its payload. */
static uint64_t append(struct both *both, uint32_t group, uint32_t table, uint64_t number,
                       size_t bytes)
{
    struct error err;
    uint8_t *payload = mem_alloc(bytes);
    assert_non_null(payload);
    fixture_payload(number, payload, bytes);
    struct wal_contribution contribution = {.rows = 1};
    struct wal_entry entry = {.type = WAL_DATA,
                              .group = group,
                              .table_id = table,
                              .schema_fingerprint = 7,
                              .rows = 1,
                              .time_min_us = -5,
                              .time_max_us = (int64_t)number,
                              .contributions = &contribution,
                              .contribution_count = 1,
                              .payload = span_of(payload, bytes),
                              .payload_crc = crc32c(0, payload, bytes)};
    struct wal_submission submission = {
        .entries = &entry, .entry_count = 1, .durability = WAL_SYNCED};
    assert_ok(wal_schema_add(both->log.wal, 7, span_of_text("a schema"), &err));
    assert_ok(wal_append(both->log.wal, &submission, &err));
    mem_free(payload);
    return entry.seq;
}

static void expect_same_view(const struct wal_view *a, const struct wal_view *b)
{
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->group, b->group);
    assert_int_equal(a->rows, b->rows);
    assert_true(a->seq == b->seq && a->term == b->term && a->chain == b->chain);
    assert_true(a->schema_fingerprint == b->schema_fingerprint);
    assert_true(a->time_min_us == b->time_min_us && a->time_max_us == b->time_max_us);
    assert_int_equal(a->payload_crc, b->payload_crc);
    assert_int_equal(a->payload.length, b->payload.length);
    if (a->payload.length)
        assert_memory_equal(a->payload.data, b->payload.data, a->payload.length);
}

/* Both scans give the same; returns how many entries. */
static size_t expect_same_scan(struct both *both, uint32_t group, uint32_t here, uint32_t there,
                               struct wal_position after)
{
    struct error err;
    struct source_scan *a, *b;
    struct wal_view view, other;
    size_t count = 0;
    assert_ok(source_scan_open(both->here, group, here, after, &a, &err));
    assert_ok(source_scan_open(both->there, group, there, after, &b, &err));
    for (;; count++) {
        enum status status = source_scan_next(a, &view, &err);
        assert_status(status, source_scan_next(b, &other, &err));
        if (status != STATUS_OK)
            break;
        expect_same_view(&view, &other);
        if (here)
            assert_int_equal(other.table_id, there);
    }
    source_scan_close(a);
    source_scan_close(b);
    return count;
}

static void expect_same_state(struct both *both, uint32_t here, uint32_t there)
{
    struct error err;
    assert_ok(source_refresh(both->there, &err));
    assert_true(log_id_equal(source_log_id(both->here), source_log_id(both->there)));
    assert_true(source_term(both->here) == source_term(both->there));
    assert_true(source_incarnation(both->here) == source_incarnation(both->there));
    assert_true(source_fenced_by(both->here) == source_fenced_by(both->there));
    for (uint32_t g = 0; g < source_group_count(both->here); g++) {
        struct wal_position a = source_end(both->here, g), b = source_end(both->there, g);
        struct wal_ack ack = {0}, other = {0};
        assert_memory_equal(&a, &b, sizeof a);
        assert_int_equal(source_ack_get(both->here, here, g, &ack),
                         source_ack_get(both->there, there, g, &other));
        assert_memory_equal(&ack, &other, sizeof ack);
        struct wal_pending lag = source_lag(both->here, here, g);
        struct wal_pending their = source_lag(both->there, there, g);
        assert_true(llabs(lag.oldest_wall_ns - their.oldest_wall_ns) < 1000000000);
        their.oldest_wall_ns = lag.oldest_wall_ns; /* by the clock here */
        assert_memory_equal(&lag, &their, sizeof lag);
        assert_true(source_reclaimed_below(both->here, g, UINT64_MAX) ==
                    source_reclaimed_below(both->there, g, UINT64_MAX));
    }
}

static void test_both_say_the_same(void **state)
{
    (void)state;
    struct both both;
    struct error err;
    uint32_t spans, there[2], unknown;
    both_open(&both);
    assert_ok(wal_table_open(both.log.wal, "otel.spans", &spans, &err));
    assert_ok(source_table_open(both.there, "otel.spans", &there[1], &err));
    assert_ok(source_table_open(both.there, "otel.logs", &there[0], &err));
    assert_ok(source_table_open(both.there, "otel.other", &unknown, &err));
    for (uint64_t i = 0; i < 40; i++)
        append(&both, i % 2, i % 3 ? both.log.table : spans, i, 20 + 100 * (size_t)i);
    expect_same_state(&both, both.log.table, there[0]);
    expect_same_state(&both, spans, there[1]);
    for (uint32_t g = 0; g < 2; g++) {
        assert_true(expect_same_scan(&both, g, 0, 0, (struct wal_position){0}) > 20);
        assert_int_equal(
            expect_same_scan(&both, g, both.log.table, there[0], (struct wal_position){0}) +
                expect_same_scan(&both, g, spans, there[1], (struct wal_position){0}),
            20);
        for (uint64_t seq = 0; seq < source_end(both.here, g).seq + 3; seq++) {
            struct wal_position at = {.seq = seq};
            uint64_t other = 0;
            struct wal_pending a, b;
            enum status status = source_chain_at(both.here, g, seq, &at.chain, &err);
            assert_status(status, source_chain_at(both.there, g, seq, &other, &err));
            assert_true(at.chain == other);
            assert_ok(source_pending(both.here, spans, g, seq, &a, &err));
            assert_ok(source_pending(both.there, there[1], g, seq, &b, &err));
            assert_memory_equal(&a, &b, sizeof a);
            if (status == STATUS_OK)
                expect_same_scan(&both, g, spans, there[1], at);
        }
    }
    struct buf schema = {0};
    assert_ok(source_schema_get(both.there, 7, &schema, &err));
    assert_true(span_equal(span_of(schema.data, schema.length), span_of_text("a schema")));
    buf_deinit(&schema);
    assert_status(STATUS_NOT_FOUND, source_schema_get(both.there, 8, &schema, &err));
    buf_deinit(&schema);
    struct source_scan *scan;
    struct wal_view view;
    assert_ok(source_scan_open(both.there, 0, unknown, (struct wal_position){0}, &scan, &err));
    assert_status(STATUS_NOT_FOUND, source_scan_next(scan, &view, &err));
    source_scan_close(scan);
    both_close(&both);
}

static void test_many_pages(void **state)
{
    (void)state;
    struct both both;
    struct error err;
    uint32_t there;
    both_open(&both);
    for (uint64_t i = 0; i < 30; i++) /* 24 MiB: some pages */
        append(&both, 0, both.log.table, i, 800 << 10);
    assert_ok(source_refresh(both.there, &err));
    assert_ok(source_table_open(both.there, "otel.logs", &there, &err));
    assert_int_equal(expect_same_scan(&both, 0, both.log.table, there, (struct wal_position){0}),
                     30);
    both_close(&both);
}

static void test_acknowledgements_go_there(void **state)
{
    (void)state;
    struct both both;
    struct error err;
    struct wal_ack acks[2] = {0}, ack;
    uint32_t there;
    both_open(&both);
    assert_ok(source_table_open(both.there, "otel.logs", &there, &err));
    uint64_t first = append(&both, 1, both.log.table, 1, 30);
    append(&both, 1, both.log.table, 2, 30);
    expect_same_state(&both, both.log.table, there);
    acks[1].committed.seq = first;
    assert_ok(source_chain_at(both.there, 1, first, &acks[1].committed.chain, &err));
    acks[1].through = acks[1].committed;
    assert_ok(source_ack_table(both.there, there, acks, &err));
    assert_int_equal(both.acknowledged, both.log.table);
    assert_true(wal_ack_get(both.log.wal, both.log.table, 1, &ack));
    assert_memory_equal(&ack, &acks[1], sizeof ack);
    assert_true(source_ack_get(both.there, there, 1, &ack)); /* without asking for a look */
    assert_true(source_lag(both.there, there, 1).rows == 1);
    expect_same_state(&both, both.log.table, there);
    /* Of another history, or behind the end: nobody let go of anything. */
    acks[1].through = source_end(both.there, 1);
    acks[1].through.chain ^= 1;
    assert_status(STATUS_TIMEOUT, source_ack_table(both.there, there, acks, &err));
    acks[1].through.seq += 1;
    assert_status(STATUS_TIMEOUT, source_ack_table(both.there, there, acks, &err));
    assert_true(wal_ack_get(both.log.wal, both.log.table, 1, &ack));
    assert_true(ack.through.seq == first);
    /* L36: of its own incarnation and older ones no log is fenced. */
    assert_status(STATUS_TIMEOUT, source_fence(both.there, 1, &err));
    assert_true(wal_fenced_by(both.log.wal) == 0);
    assert_ok(source_fence(both.there, 3, &err));
    assert_true(wal_fenced_by(both.log.wal) == 3);
    expect_same_state(&both, both.log.table, there);
    both_close(&both);
}

/* Another start of the log: what was read before and what is read now are not of one piece. */
static void test_a_restart_ends_scans_and_questions(void **state)
{
    (void)state;
    struct both both;
    struct error err;
    struct source_scan *scan;
    struct wal_view view;
    struct buf starts = {0};
    uint32_t there;
    uint64_t chain;
    both_open(&both);
    uint16_t port = http_server_port(both.server);
    for (uint64_t i = 0; i < 20; i++)
        append(&both, 0, both.log.table, i, 800 << 10);
    assert_ok(source_refresh(both.there, &err));
    assert_ok(source_table_open(both.there, "otel.logs", &there, &err));
    uint64_t start = source_start(both.there);
    assert_ok(source_scan_open(both.there, 0, there, (struct wal_position){0}, &scan, &err));
    assert_ok(source_scan_next(scan, &view, &err));
    source_destroy(both.here);
    feed_stop(both.feed);
    http_server_destroy(both.server);
    feed_destroy(both.feed);
    wal_close(both.log.wal);
    fixture_open(&both.log);
    struct feed_options options = {.is_published_elsewhere = true};
    struct http_options http = http_options_default();
    assert_ok(feed_create(env_real(), both.log.wal, &options, &both.feed, &err));
    feed_attach(both.feed, &http);
    http.port = port;
    assert_ok(http_server_start(env_real(), &http, &both.server, &err));
    assert_ok(source_local_create(both.log.wal, &both.here, &err));
    enum status status;
    while ((status = source_scan_next(scan, &view, &err)) == STATUS_OK)
        assert_true(view.seq < 20);
    assert_int_equal(status, STATUS_TIMEOUT);
    source_scan_close(scan);
    assert_status(STATUS_TIMEOUT, source_chain_at(both.there, 0, 1, &chain, &err));
    assert_ok(source_refresh(both.there, &err));
    assert_true(source_start(both.there) != start);
    assert_ok(source_chain_at(both.there, 0, 1, &chain, &err));
    assert_ok(source_starts(both.there, 0, 0, source_end(both.there, 0).seq, &starts, &err));
    assert_int_equal(starts.length, 2 * sizeof(struct wal_position));
    struct wal_position last = ((struct wal_position *)(void *)starts.data)[1];
    assert_true(last.seq == source_started(both.there, 0).seq);
    buf_deinit(&starts);
    assert_ok(source_starts(both.there, 0, last.seq, last.seq + 5, &starts, &err));
    assert_int_equal(starts.length, 0);
    buf_deinit(&starts);
    both_close(&both);
}

static void test_a_log_that_is_published_there(void **state)
{
    (void)state;
    struct both both = {0};
    struct error err;
    struct source *source;
    char url[64];
    fixture_init(&both.log, "source");
    serve(&both, false);
    snprintf(url, sizeof url, "http://127.0.0.1:%u", http_server_port(both.server));
    struct source_options options = source_options_default(url, "/nowhere/source");
    assert_status(STATUS_UNSUPPORTED, source_remote_create(env_real(), &options, &source, &err));
    assert_status(STATUS_UNSUPPORTED, source_probe(env_real(), url, &err));
    feed_stop(both.feed);
    http_server_destroy(both.server);
    feed_destroy(both.feed);
    fixture_deinit(&both.log);
    options.first_look_ms_max = 50;
    options.look_ms = 10;
    assert_status(STATUS_TIMEOUT, source_remote_create(env_real(), &options, &source, &err));
}

/* ---- bytes from the network ---- */

static void test_frames_that_were_changed(void **state)
{
    (void)state;
    struct log_id log = {.bytes = {1, 2, 3}}, other = {.bytes = {1, 2, 4}};
    struct buf frames = {0};
    struct wal_view in[2] = {{.type = WAL_DATA,
                              .group = 1,
                              .table_id = 2,
                              .rows = 3,
                              .seq = 4,
                              .term = 5,
                              .chain = 6,
                              .schema_fingerprint = 7,
                              .time_min_us = -8,
                              .time_max_us = 9,
                              .payload = span_of_text("a payload")},
                             {.type = WAL_NOOP, .seq = 5, .chain = 1}};
    struct wal_view out;
    struct error err;
    in[0].payload_crc = crc32c(0, in[0].payload.data, in[0].payload.length);
    frame_put(&frames, log, &in[0]);
    size_t first = frames.length;
    frame_put(&frames, log, &in[1]);
    struct span rest = span_of(frames.data, frames.length);
    for (int i = 0; i < 2; i++) {
        assert_ok(frame_next(&rest, log, &out, &err));
        expect_same_view(&in[i], &out);
        assert_int_equal(out.table_id, in[i].table_id);
    }
    assert_status(STATUS_NOT_FOUND, frame_next(&rest, log, &out, &err));
    rest = span_of(frames.data, frames.length);
    assert_status(STATUS_INVALID, frame_next(&rest, other, &out, &err));
    assert_int_equal(rest.length, frames.length); /* nothing was taken */
    for (size_t length = 1; length < first; length++) {
        rest = span_of(frames.data, length);
        assert_status(STATUS_INVALID, frame_next(&rest, log, &out, &err));
    }
    for (size_t bit = 0; bit < first * 8; bit++) {
        frames.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        rest = span_of(frames.data, frames.length);
        assert_status(STATUS_INVALID, frame_next(&rest, log, &out, &err));
        frames.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    buf_deinit(&frames);
}

static const char good_look[] =
    "{\"log\":\"000102030405060708090a0b0c0d0e0f\",\"incarnation\":1,\"term\":2,"
    "\"start\":\"0123456789abcdef\",\"fenced_by\":0,\"now_ns\":99,\"published_from\":\"log_port\","
    "\"groups\":[{\"group\":0,\"retained_from\":1,\"reclaimed_through\":0,"
    "\"end\":{\"term\":2,\"seq\":9,\"chain\":\"00000000000000aa\"},"
    "\"started\":{\"seq\":8,\"chain\":\"00000000000000ab\"},"
    "\"recovered_to\":{\"seq\":5,\"chain\":\"00000000000000ac\"}}],"
    "\"recovered_without\":[{\"group\":0,\"first\":3,\"last\":4}],"
    "\"tables\":[{\"id\":1,\"name\":\"otel.logs\",\"reclaimed_through\":[0],\"is_awaited\":true,"
    "\"groups\":[{\"group\":0,\"committed\":{\"seq\":6,\"chain\":\"00000000000000ad\"},"
    "\"through\":{\"seq\":7,\"chain\":\"00000000000000ae\"},"
    "\"pending\":{\"entries\":1,\"rows\":2,\"bytes\":3,\"last_seq\":9,\"oldest_ns\":5},"
    "\"damage\":{\"first\":8,\"last\":8,\"where\":\"there\"}}]}]}";

/* The members without which a look is none; those that may be absent are halves of a pair. */
static void test_looks_that_say_too_little(void **state)
{
    (void)state;
    static const char *const needed[] = {"log",
                                         "incarnation",
                                         "term",
                                         "start",
                                         "fenced_by",
                                         "published_from",
                                         "groups",
                                         "group",
                                         "end",
                                         "seq",
                                         "chain",
                                         "started",
                                         "tables",
                                         "id",
                                         "name",
                                         "rows",
                                         "bytes",
                                         "recovered_without",
                                         "first",
                                         "last",
                                         "where",
                                         "pending",
                                         "entries",
                                         "last_seq",
                                         "oldest_ns",
                                         "committed",
                                         "through",
                                         "is_awaited",
                                         "reclaimed_through"};
    struct error err;
    struct look *look;
    char text[sizeof good_look];
    assert_ok(look_parse(span_of_text(good_look), 0, &look, &err));
    const struct look_table *table = look_table_of(look, "otel.logs");
    assert_true(look->groups[0].end.chain == 0xaa && look->groups[0].is_recovered);
    assert_true(look->lost_count == 1 && look->lost[0].last == 4);
    assert_true(table->parts[0].has_ack && table->parts[0].ack.through.seq == 7);
    assert_true(table->parts[0].is_damaged && table->parts[0].pending.bytes == 3);
    assert_null(look_table_of(look, "otel.spans"));
    assert_true(table->parts[0].pending.oldest_wall_ns == 5);
    look_destroy(look);
    assert_ok(look_parse(span_of_text(good_look), 1099, &look, &err)); /* 1000 later here */
    assert_true(look->tables[0].parts[0].pending.oldest_wall_ns == 1005);
    look_destroy(look);
    for (size_t i = 0; i < COUNT_OF(needed); i++) {
        char key[40];
        snprintf(key, sizeof key, "\"%s\":", needed[i]);
        size_t found = 0;
        for (const char *at = good_look; (at = strstr(at, key)); at++) {
            memcpy(text, good_look, sizeof text);
            text[at - good_look + 1] = 'X'; /* another name */
            bool is_spare = strcmp(needed[i], "reclaimed_through") == 0 && found == 1;
            assert_status(is_spare ? STATUS_OK : STATUS_INVALID,
                          look_parse(span_of_text(text), 0, &look, &err));
            if (is_spare)
                look_destroy(look); /* of a table: for consumers */
            found++;
        }
        assert_true(found > 0);
    }
    for (size_t length = 0; length + 1 < sizeof good_look; length++)
        assert_true(look_parse(span_of(good_look, length), 0, &look, &err) != STATUS_OK);
    for (int64_t n = 0;; n++) {
        alloc_fail_after(n);
        enum status status = look_parse(span_of_text(good_look), 0, &look, &err);
        alloc_fail_after(-1);
        if (status == STATUS_OK)
            break;
        assert_true(n < 100);
    }
    look_destroy(look);
}

static void test_which_log_it_is_is_kept(void **state)
{
    (void)state;
    char path[] = "/tmp/sluice-keep-XXXXXX";
    struct error err;
    struct log_id log = {.bytes = {9, 8, 7}}, found;
    struct buf file = {0};
    uint32_t groups;
    int made = mkstemp(path);
    assert_true(made >= 0);
    close(made);
    assert_status(STATUS_CORRUPT, keep_load(env_real(), path, &found, &groups, &err)); /* empty */
    assert_ok(keep_save(env_real(), path, log, 3, &err));
    assert_ok(keep_load(env_real(), path, &found, &groups, &err));
    assert_true(log_id_equal(log, found) && groups == 3);
    assert_ok(files_read(env_real(), path, 4096, &file, &err));
    for (size_t bit = 0; bit < file.length * 8; bit++) {
        file.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_ok(files_replace(env_real(), path, file.data, file.length, &err));
        enum status status = keep_load(env_real(), path, &found, &groups, &err);
        assert_true(status == STATUS_CORRUPT ||
                    (status == STATUS_OK && log_id_equal(log, found) && groups == 3));
        file.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    buf_deinit(&file);
    assert_ok(env_remove(env_real(), path, &err));
    assert_status(STATUS_NOT_FOUND, keep_load(env_real(), path, &found, &groups, &err));
}

static void test_urls(void **state)
{
    (void)state;
    struct error err;
    static const char *const good[] = {"http://127.0.0.1:7800", "http://localhost:1/",
                                       "http://[::1]:65535", "http://10.0.0.7:7800/"};
    static const char *const bad[] = {"",
                                      "http://",
                                      "https://127.0.0.1:7800",
                                      "127.0.0.1:7800",
                                      "http://127.0.0.1",
                                      "http://127.0.0.1:",
                                      "http://127.0.0.1:0",
                                      "http://127.0.0.1:65536",
                                      "http://127.0.0.1:7800/v1",
                                      "http://127.0.0.1:78x",
                                      "http://:7800",
                                      "http://[]:7800",
                                      "http://log.example.org:7800",
                                      "http://127.0.0.1:99999999999999999999"};
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_ok(source_url_check(good[i], &err));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_status(STATUS_INVALID, source_url_check(bad[i], &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_say_the_same),
        cmocka_unit_test(test_many_pages),
        cmocka_unit_test(test_acknowledgements_go_there),
        cmocka_unit_test(test_a_restart_ends_scans_and_questions),
        cmocka_unit_test(test_a_log_that_is_published_there),
        cmocka_unit_test(test_frames_that_were_changed),
        cmocka_unit_test(test_looks_that_say_too_little),
        cmocka_unit_test(test_which_log_it_is_is_kept),
        cmocka_unit_test(test_urls),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
