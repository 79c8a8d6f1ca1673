/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole server in one process, with all its threads: under TSan it shows what they share.
 */
#include <stdatomic.h>

#include "../unit.h"
#include "app/cmd/cmd.h"
#include "app/server/server.h"

enum { SENDERS = 3, REQUESTS = 24, ITEMS = 40 };

struct sender {
    uint16_t port;
    int index;
    _Atomic int stored;
    struct env_thread *thread;
};

static void send_all(void *context)
{
    static const char *const paths[] = {"/v1/traces", "/v1/traces", "/v1/logs", "/v1/metrics"};
    static const char *const modes[] = {"wait_for", "auto", "force"};
    struct sender *sender = context;
    struct error err;
    struct http_client *client;
    assert_ok(http_client_create("127.0.0.1", sender->port, 30000, &client, &err));
    for (int i = 0; i < REQUESTS; i++) {
        struct buf body = {0};
        struct http_response response;
        char producer[16], sequence[16];
        enum gen_profile profile = (enum gen_profile)((i + sender->index) % GEN_PROFILE_COUNT);
        snprintf(producer, sizeof producer, "p%d", sender->index);
        snprintf(sequence, sizeof sequence, "%d", i + 1);
        struct http_field fields[] = {{"Content-Type", "application/x-protobuf"},
                                      {"Sluice-Producer", producer},
                                      {"Sluice-Sequence", sequence},
                                      {"Sluice-Commit", modes[i % 3]}};
        gen_body(profile, 1, (uint64_t)(sender->index * 1000 + i), ITEMS, env_wall_ns(env_real()),
                 &body);
        assert_ok(http_client_request(client, "POST", paths[profile], fields, COUNT_OF(fields),
                                      span_of(body.data, body.length), &response, &err));
        sender->stored += response.code == 200;
        buf_deinit(&body);
    }
    http_client_destroy(client);
}

/* Follows the log port beside the senders: long polls, wakes, ends. */
struct log_reader {
    struct env_thread *thread;
    uint16_t port;
    uint64_t rows, expected;
};

static void read_log(void *context)
{
    struct log_reader *reader = context;
    struct error err;
    struct http_client *client;
    struct http_response response;
    char path[256], cursor[128] = "0";
    assert_ok(http_client_create("127.0.0.1", reader->port, 30000, &client, &err));
    while (reader->rows < reader->expected) {
        uint64_t rows = 0;
        snprintf(path, sizeof path, "/v1/log/0/rows?table=otel.logs&wait_ms=300&after=%s", cursor);
        assert_ok(
            http_client_request(client, "GET", path, NULL, 0, (struct span){0}, &response, &err));
        struct span next = http_response_get(&response, "sluice-cursor");
        struct span count = http_response_get(&response, "sluice-rows");
        assert_true(response.code == 200 || response.code == 204);
        assert_true(parse_u64((const char *)count.data, count.length, &rows));
        snprintf(cursor, sizeof cursor, "%.*s", (int)next.length, (const char *)next.data);
        reader->rows += rows;
    }
    http_client_destroy(client);
}

static void read_api(struct server *server)
{
    static const char *const paths[] = {"/healthz", "/readyz", "/metrics", "/v1/status"};
    struct error err;
    struct http_client *client;
    struct http_response response;
    assert_ok(http_client_create("127.0.0.1", server_api_port(server), 30000, &client, &err));
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        assert_ok(http_client_request(client, "GET", paths[i], NULL, 0, (struct span){0}, &response,
                                      &err));
        assert_int_equal(response.code, 200);
    }
    assert_ok(http_client_request(client, "POST",
                                  "/v1/lanes/clear-halt?table=otel.logs&decision=accept", NULL, 0,
                                  (struct span){0}, &response, &err));
    assert_int_equal(response.code, 400); /* it is not halted */
    http_client_destroy(client);
}

static void test_senders_lanes_and_api_together(void **state)
{
    (void)state;
    struct error err;
    struct settings settings;
    struct server *server;
    struct sender senders[SENDERS] = {{0}};
    struct log_reader readers[3] = {{0}};
    char dir[] = "/tmp/sluice-server-XXXXXX", command[64];
    assert_non_null(mkdtemp(dir));
    settings_init(&settings);
    snprintf(settings.data_dir, sizeof settings.data_dir, "%s/data", dir);
    settings.otlp_http_port = settings.api_port = settings.log_port = 0;
    settings.otlp_workers = 2;
    settings.publish_interval_ms = 20;
    log_set_level(LOG_ERROR);
    assert_ok(server_start(env_real(), &settings, &server, &err));
    for (int i = 0; i < SENDERS; i++) {
        senders[i].port = server_otlp_port(server);
        senders[i].index = i;
        assert_ok(env_thread_start(env_real(), "sender", send_all, &senders[i], &senders[i].thread,
                                   &err));
    }
    for (size_t i = 0; i < COUNT_OF(readers); i++) {
        readers[i].port = server_log_port(server);
        for (int k = 0; k < SENDERS * REQUESTS; k++)
            readers[i].expected +=
                (k % REQUESTS + k / REQUESTS) % GEN_PROFILE_COUNT == 2 ? ITEMS : 0;
        assert_ok(env_thread_start(env_real(), "reader", read_log, &readers[i], &readers[i].thread,
                                   &err));
    }
    for (int i = 0; i < 5; i++)
        read_api(server);
    for (size_t i = 0; i < COUNT_OF(readers); i++) {
        env_thread_join(readers[i].thread);
        assert_true(readers[i].expected > 0 && readers[i].rows == readers[i].expected);
    }
    for (int i = 0; i < SENDERS; i++) {
        env_thread_join(senders[i].thread);
        assert_int_equal(senders[i].stored, REQUESTS);
    }
    struct ingest_stats stats = ingest_stats(server_ingest(server));
    assert_int_equal(stats.requests, SENDERS * REQUESTS);
    assert_int_equal(stats.rows, SENDERS * REQUESTS * ITEMS);
    server_stop(server);
    /* The last round has published everything. */
    struct stack stack;
    assert_ok(stack_open(env_real(), &settings, &stack, &err));
    struct publish_lane_info lane;
    for (size_t i = 0; publisher_lane_at(stack.publisher, i, &lane); i++)
        assert_int_equal(lane.lag_rows, 0);
    stack_close(&stack);
    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

/* As many producers as the log takes; then one more asks. */
static void test_too_many_producers_are_not_told_to_wait(void **state)
{
    (void)state;
    struct error err;
    struct settings settings;
    struct server *server;
    struct wal_receipt receipts[16];
    uint32_t receipt_count;
    uint64_t expected;
    char dir[] = "/tmp/sluice-server-XXXXXX", command[64], name[32];
    assert_non_null(mkdtemp(dir));
    settings_init(&settings);
    snprintf(settings.data_dir, sizeof settings.data_dir, "%s/data", dir);
    settings.otlp_http_port = settings.api_port = settings.log_port = 0;
    log_set_level(LOG_ERROR);
    assert_ok(server_start(env_real(), &settings, &server, &err));
    for (uint32_t i = 0; i < wal_options_default("").producers_max; i++) {
        snprintf(name, sizeof name, "p%u", i);
        assert_int_equal(wal_producer_begin(server_stack(server)->wal, span_of_text(name), 1,
                                            (struct hash128){0}, receipts, &receipt_count,
                                            &expected),
                         WAL_PRODUCER_NEW);
    }
    struct http_client *client;
    struct http_response response;
    struct http_field fields[] = {{"Content-Type", "application/x-protobuf"},
                                  {"Sluice-Producer", "one more"},
                                  {"Sluice-Sequence", "1"}};
    assert_ok(http_client_create("127.0.0.1", server_otlp_port(server), 30000, &client, &err));
    assert_ok(http_client_request(client, "POST", "/v1/logs", fields, COUNT_OF(fields),
                                  (struct span){0}, &response, &err));
    assert_int_equal(response.code, 429);
    assert_null(http_response_get(&response, "retry-after").data);
    http_client_destroy(client);
    server_stop(server);
    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

static void test_every_setting_survives_its_text(void **state)
{
    (void)state;
    struct error err;
    struct settings settings, back;
    settings_init(&settings);
    settings_init(&back);
    assert_ok(settings_check(&settings, &err));
    for (size_t i = 0; i < settings_count(); i++) {
        struct buf text = {0};
        settings_get_text(&settings, i, &text);
        assert_ok(settings_set(&back, i, text.length ? (char *)text.data : "", text.length, &err));
        buf_deinit(&text);
    }
    assert_memory_equal(&settings, &back, sizeof settings);
    assert_status(STATUS_USAGE,
                  settings_read_toml(&settings, "f", span_of_text("[otlp]\nhttp_prot=1"), &err));
    assert_non_null(strstr(err.message, "f:2: unknown key otlp.http_prot"));
    assert_non_null(strstr(err.message, "otlp.http_port"));
}

/* Every number has its range, which the default is in; what is outside, or a duration without its
 * unit, is refused by name. */
static void test_ranges(void **state)
{
    (void)state;
    struct error err;
    struct settings settings;
    settings_init(&settings);
    for (size_t i = 0; i < settings_count(); i++) {
        const struct setting_info *info = settings_info(i);
        if (info->kind == SETTING_TEXT)
            continue;
        assert_ok(settings_set(&settings, i, info->least, strlen(info->least), &err));
        assert_ok(settings_set(&settings, i, info->most, strlen(info->most), &err));
        assert_status(STATUS_USAGE, settings_set(&settings, i, "18000000000000000000", 20, &err));
        assert_non_null(strstr(err.message, info->name));
        if (strcmp(info->least, "0") != 0)
            assert_status(STATUS_USAGE, settings_set(&settings, i, "0", 1, &err));
        if (info->kind != SETTING_DURATION)
            continue;
        assert_status(STATUS_USAGE, settings_set(&settings, i, "60", 2, &err));
        assert_non_null(strstr(err.message, info->name));
        assert_non_null(strstr(err.message, "10s"));
    }
    assert_int_equal(settings.publish_threads, PUBLISH_THREADS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_senders_lanes_and_api_together),
        cmocka_unit_test(test_too_many_producers_are_not_told_to_wait),
        cmocka_unit_test(test_every_setting_survives_its_text),
        cmocka_unit_test(test_ranges),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
