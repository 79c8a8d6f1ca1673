/* SPDX-License-Identifier: Apache-2.0
 *
 * The log port over a log of its own: pages of one schema, groups, members, long polls that end
 * with the server, cursors as text.
 */
#include <stdlib.h>
#include <unistd.h>

#include "../unit.h"
#include "../wal/wal_fixture.h"
#include "flow/feed/feed_internal.h"

struct port {
    struct fixture log;
    struct feed *feed;
    struct http_server *server;
    struct http_client *client;
    struct http_response answer;
};

static void port_open(struct port *port)
{
    struct error err;
    struct http_options http = http_options_default();
    fixture_init(&port->log, "feed");
    wal_close(port->log.wal);
    fixture_remove_tree(port->log.dir);
    port->log.options.group_count = 2;
    fixture_open(&port->log);
    assert_ok(feed_create(env_real(), port->log.wal, NULL, &port->feed, &err));
    feed_attach(port->feed, &http);
    assert_ok(http_server_start(env_real(), &http, &port->server, &err));
    assert_ok(http_client_create("127.0.0.1", http_server_port(port->server), 30000, &port->client,
                                 &err));
}

static void port_close(struct port *port)
{
    http_client_destroy(port->client);
    feed_stop(port->feed);
    http_server_destroy(port->server);
    feed_destroy(port->feed);
    fixture_deinit(&port->log);
}

static int get(struct port *port, const char *path)
{
    struct error err;
    assert_ok(http_client_request(port->client, "GET", path, NULL, 0, (struct span){0},
                                  &port->answer, &err));
    return port->answer.code;
}

static bool header_is(const struct port *port, const char *name, const char *end)
{
    struct span value = http_response_get(&port->answer, name);
    size_t length = strlen(end);
    return value.length >= length && memcmp(value.data + value.length - length, end, length) == 0;
}

/* One entry of `rows` rows of a schema with so many int64 columns. */
static uint64_t append(struct port *port, uint32_t group, uint32_t columns, uint32_t rows)
{
    static const char *const names[] = {"a", "b", "c"};
    struct arrow_field fields[3] = {{0}};
    struct arrow_array arrays[3] = {{0}};
    int64_t values[64];
    struct error err;
    struct buf message = {0}, payload = {0};
    for (uint32_t i = 0; i < rows; i++)
        values[i] = i;
    for (uint32_t i = 0; i < columns; i++) {
        fields[i] = (struct arrow_field){.name = names[i], .type = ARROW_INT64};
        arrays[i] = (struct arrow_array){.length = rows, .values = values};
    }
    struct arrow_schema schema = {.fields = fields, .field_count = columns};
    struct arrow_batch batch = {.schema = &schema, .length = rows, .columns = arrays};
    uint64_t fingerprint = arrow_schema_fingerprint(&schema);
    assert_ok(arrow_ipc_write_schema(&schema, &message, &err));
    assert_ok(arrow_ipc_write_batch(&schema, &batch, ARROW_UNCOMPRESSED, &payload, &err));
    assert_ok(
        wal_schema_add(port->log.wal, fingerprint, span_of(message.data, message.length), &err));
    struct wal_contribution contribution = {.rows = rows};
    struct wal_entry entry = {.type = WAL_DATA,
                              .group = group,
                              .table_id = port->log.table,
                              .schema_fingerprint = fingerprint,
                              .rows = rows,
                              .contributions = &contribution,
                              .contribution_count = 1,
                              .payload = span_of(payload.data, payload.length),
                              .payload_crc = crc32c(0, payload.data, payload.length)};
    struct wal_submission submission = {
        .entries = &entry, .entry_count = 1, .durability = WAL_SYNCED};
    assert_ok(wal_append(port->log.wal, &submission, &err));
    buf_deinit(&message);
    buf_deinit(&payload);
    return entry.seq;
}

/* The page's columns and rows, and the positions of the first and last row. */
static void expect_page(const struct port *port, uint32_t columns, int64_t rows, uint32_t group,
                        uint64_t first_seq, uint64_t last_seq, int32_t last_index)
{
    struct error err;
    struct arrow_file *file;
    struct arrow_batch batch;
    struct span body = port->answer.body;
    struct arrow_limits limits = arrow_limits_default();
    assert_int_equal(port->answer.code, 200);
    assert_ok(arrow_file_open(byte_source_of_span(&body), &limits, &file, &err));
    assert_int_equal(arrow_file_schema(file)->field_count, columns + POSITION_FIELDS);
    assert_ok(arrow_file_next(file, &batch, &err));
    assert_int_equal(batch.length, rows);
    const struct arrow_array *at = &batch.columns[columns];
    assert_true(((const int64_t *)at[POSITION_SEQ].values)[0] == (int64_t)first_seq);
    assert_true(((const int64_t *)at[POSITION_SEQ].values)[rows - 1] == (int64_t)last_seq);
    assert_int_equal(((const int32_t *)at[POSITION_INDEX].values)[rows - 1], last_index);
    assert_int_equal(((const int32_t *)at[POSITION_GROUP].values)[0], group);
    arrow_batch_deinit(&batch);
    assert_status(STATUS_NOT_FOUND, arrow_file_next(file, &batch, &err));
    arrow_file_close(file);
}

static void test_a_page_has_one_schema(void **state)
{
    (void)state;
    struct port port;
    char path[256], end[64];
    port_open(&port);
    uint64_t first = append(&port, 0, 1, 3), second = append(&port, 0, 1, 2);
    uint64_t third = append(&port, 0, 2, 4), fourth = append(&port, 0, 1, 1);
    get(&port, "/v1/log/0/rows?table=otel.logs&after=0");
    expect_page(&port, 1, 5, 0, first, second, 1);
    snprintf(end, sizeof end, "/0/1/%llu", (unsigned long long)second);
    assert_true(header_is(&port, "sluice-cursor", end));
    snprintf(path, sizeof path, "/v1/log/0/rows?table=otel.logs&after=%llu",
             (unsigned long long)second);
    get(&port, path);
    expect_page(&port, 2, 4, 0, third, third, 3);
    snprintf(path, sizeof path, "/v1/log/0/rows?table=otel.logs&after=%llu.1",
             (unsigned long long)third);
    get(&port, path);
    expect_page(&port, 2, 2, 0, third, third, 3);
    snprintf(path, sizeof path, "/v1/log/0/rows?table=otel.logs&after=%llu.3",
             (unsigned long long)third);
    get(&port, path);
    expect_page(&port, 1, 1, 0, fourth, fourth, 0);
    port_close(&port);
}

static void test_groups_and_members(void **state)
{
    (void)state;
    struct port port;
    char path[256];
    uint64_t seqs[6];
    port_open(&port);
    append(&port, 0, 1, 7);
    for (size_t i = 0; i < COUNT_OF(seqs); i++)
        seqs[i] = append(&port, 1, 1, 2);
    get(&port, "/v1/log/1/rows?table=otel.logs");
    expect_page(&port, 1, 12, 1, seqs[0], seqs[5], 1);
    for (uint64_t member = 0; member < 2; member++) {
        bool is_first = seqs[0] % 2 == member;
        snprintf(path, sizeof path, "/v1/log/1/rows?table=otel.logs&member=%d/2", (int)member);
        get(&port, path);
        expect_page(&port, 1, 6, 1, seqs[is_first ? 0 : 1], seqs[is_first ? 4 : 5], 1);
    }
    /* Entries of others count as bytes: a page without rows that is not at the end comes at once.
     */
    snprintf(path, sizeof path,
             "/v1/log/1/rows?table=otel.logs&member=%d/2&max_bytes=1&wait_ms=9999",
             (int)((seqs[0] + 1) % 2));
    int64_t began_ns = env_mono_ns(env_real());
    assert_int_equal(get(&port, path), 204);
    assert_true(env_mono_ns(env_real()) - began_ns < (int64_t)5000000000);
    snprintf(path, sizeof path, "/1/1/%llu", (unsigned long long)seqs[0]);
    assert_true(header_is(&port, "sluice-cursor", path));
    assert_int_equal(get(&port, "/v1/log/2/rows?table=otel.logs"), 404);
    port_close(&port);
}

static void ask_and_wait(void *context)
{
    struct port *port = context;
    struct http_client *client;
    struct http_response answer;
    struct error err;
    assert_ok(
        http_client_create("127.0.0.1", http_server_port(port->server), 30000, &client, &err));
    assert_ok(http_client_request(client, "GET",
                                  "/v1/log/1/rows?table=otel.logs&after=0&wait_ms=30000", NULL, 0,
                                  (struct span){0}, &answer, &err));
    port->answer.code = answer.code;
    http_client_destroy(client);
}

static void wait_until_waiting(const struct port *port)
{
    while (feed_stats(port->feed).waiting == 0)
        env_sleep_ms(env_real(), 1);
}

static void test_long_polls_end(void **state)
{
    (void)state;
    struct port port;
    struct error err;
    struct env_thread *thread;
    port_open(&port);
    assert_ok(env_thread_start(env_real(), "asker", ask_and_wait, &port, &thread, &err));
    wait_until_waiting(&port);
    append(&port, 0, 1, 1); /* not theirs */
    append(&port, 1, 1, 1);
    env_thread_join(thread);
    assert_int_equal(port.answer.code, 200);
    while (feed_stats(port.feed).waiting > 0) /* it is counted off behind the answer */
        env_sleep_ms(env_real(), 1);
    struct wal_position end = wal_synced_end(port.log.wal, 1);
    char path[128];
    snprintf(path, sizeof path, "/v1/log/1/rows?table=otel.logs&after=%llu&wait_ms=50",
             (unsigned long long)end.seq);
    assert_int_equal(get(&port, path), 204);
    port_close(&port);
    /* One that waits when the server ends is answered. */
    port_open(&port);
    assert_ok(env_thread_start(env_real(), "asker", ask_and_wait, &port, &thread, &err));
    wait_until_waiting(&port);
    feed_stop(port.feed);
    env_thread_join(thread);
    assert_int_equal(port.answer.code, 204);
    port_close(&port);
}

static void test_cursors_as_text(void **state)
{
    (void)state;
    static const char *const good[] = {"0",
                                       "12",
                                       "12.0",
                                       "12.4294967295",
                                       "9223372036854775806",
                                       "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f/0/0/0",
                                       "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f/1/22/333.4"};
    static const char *const bad[] = {"",
                                      "-1",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "1.",
                                      ".1",
                                      "1.-1",
                                      "0.0",
                                      "1.2.3",
                                      "1.4294967296",
                                      "9223372036854775807",
                                      "18446744073709551616",
                                      "1/2/3",
                                      "0f/0/0/1",
                                      "zf0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f/0/0/1",
                                      "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f/0/1",
                                      "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f/0/0/1/1",
                                      "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f//0/1"};
    struct cursor_text cursor;
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_true(cursor_parse(span_of_text(good[i]), &cursor));
    assert_true(cursor.group == 1 && cursor.term == 22 && cursor.seq == 333 && cursor.index == 4 &&
                cursor.has_index);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(cursor_parse(span_of_text(bad[i]), &cursor));
}

/* Each allocation of a page fails once: a refusal, and the same page later. */
static void test_pages_without_memory(void **state)
{
    (void)state;
    struct port port;
    struct page page;
    struct error err;
    struct row_ask ask = {.bytes_max = 1 << 20, .rows_max = 100, .member_count = 1};
    port_open(&port);
    append(&port, 0, 2, 5);
    ask.table_id = port.log.table;
    bool is_over = false;
    for (int64_t n = 0; n < 400 && !is_over; n++) {
        alloc_fail_after(n);
        enum status status = page_read(port.feed, &ask, &page, &err);
        alloc_fail_after(-1);
        assert_true(status == STATUS_OK || status == STATUS_NO_MEMORY);
        is_over = status == STATUS_OK && page.rows == 5;
        if (status == STATUS_OK)
            page_deinit(&page);
    }
    assert_true(is_over);
    port_close(&port);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_page_has_one_schema), cmocka_unit_test(test_groups_and_members),
        cmocka_unit_test(test_long_polls_end),        cmocka_unit_test(test_cursors_as_text),
        cmocka_unit_test(test_pages_without_memory),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
