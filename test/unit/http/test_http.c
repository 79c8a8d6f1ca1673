/* SPDX-License-Identifier: Apache-2.0
 *
 * The pure parts of the HTTP module, and a server and client that talk to each other.
 */
#include <stdatomic.h>

#include "../unit.h"
#include "net/http/http.h"

static enum http_parse parse(const char *text, struct http_head *head, int *code)
{
    size_t bytes;
    const char *why;
    return http_parse_request(span_of_text(text), 16384, head, &bytes, code, &why);
}

static void test_heads(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum http_parse parse;
        int code;
    } cases[] = {
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_PARSE_DONE, 0},
        {"GET http://a/b?c HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_PARSE_DONE, 0},
        {"GET / HTTP/1.0\r\n\r\n", HTTP_PARSE_DONE, 0},
        {"GET / HTTP/1.1\r\nHost: a\r\n", HTTP_PARSE_MORE, 0},
        {"GET / HTTP/1.1\nHost: a\r\n", HTTP_PARSE_BAD, 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n", HTTP_PARSE_BAD, 400},
        {"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", HTTP_PARSE_BAD, 400},
        {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_PARSE_BAD, 400},
        {"G\x7fT / HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_PARSE_BAD, 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
         "chunked\r\n\r\n",
         HTTP_PARSE_BAD, 501},
        {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_PARSE_BAD, 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n",
         HTTP_PARSE_BAD, 400},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct http_head head;
        int code = 0;
        assert_int_equal(parse(cases[i].text, &head, &code), cases[i].parse);
        assert_int_equal(code, cases[i].code);
    }
}

static void test_head_fields(void **state)
{
    (void)state;
    struct http_head head;
    int code;
    const char *text = "POST /v1/logs?commit=force&x HTTP/1.1\r\nhOST:a\r\nX-Y: \t b c \r\n"
                       "Connection: keep-alive, CLOSE\r\nContent-Length: 7\r\n\r\n";
    struct span request = span_of_text(text);
    assert_int_equal(parse(text, &head, &code), HTTP_PARSE_DONE);
    assert_true(span_equal(head.path, span_of_text("/v1/logs")));
    assert_true(span_equal(http_query_get(head.query, "commit"), span_of_text("force")));
    assert_non_null(http_query_get(head.query, "x").data);
    assert_null(http_query_get(head.query, "comm").data);
    assert_true(span_equal(http_head_get(&head, "x-y"), span_of_text("b c")));
    uint8_t *elsewhere = mem_copy(request.data, request.length);
    struct span query = head.query;
    http_head_move(&head, request, elsewhere);
    assert_true(head.query.data == elsewhere + (query.data - request.data));
    assert_true(span_equal(head.query, query));
    assert_true(http_head_get(&head, "x-y").data > elsewhere &&
                http_head_get(&head, "x-y").data < elsewhere + request.length);
    assert_true(span_equal(http_head_get(&head, "x-y"), span_of_text("b c")));
    mem_free(elsewhere);
    assert_true(head.wants_close && head.has_length && head.content_length == 7);
}

/* Every way of cutting the same chunked body gives the same bytes. */
static void test_chunks_at_every_cut(void **state)
{
    (void)state;
    static const char wire[] = "4;a=b\r\nWiki\r\n6\r\npedia \r\n0\r\nTrailer: x\r\n\r\nNEXT";
    size_t length = sizeof wire - 1;
    for (size_t cut = 0; cut <= length; cut++) {
        struct http_chunks chunks = {0};
        struct buf body = {0};
        const char *why = NULL;
        size_t used = 0, more = 0;
        enum http_parse result =
            http_chunks_feed(&chunks, (const uint8_t *)wire, cut, &used, &body, &why);
        if (result == HTTP_PARSE_MORE)
            result = http_chunks_feed(&chunks, (const uint8_t *)wire + used, length - used, &more,
                                      &body, &why);
        assert_int_equal(result, HTTP_PARSE_DONE);
        assert_int_equal(used + more, length - 4);
        assert_int_equal(body.length, 10);
        assert_memory_equal(body.data, "Wikipedia ", 10);
        buf_deinit(&body);
    }
}

static void echo(void *context, struct http_exchange *exchange)
{
    atomic_fetch_add((_Atomic int *)context, 1);
    http_respond(exchange, 200, "text/plain", http_exchange_body(exchange), NULL, 0);
}

/* Answers from another thread, through a task. */
struct later {
    struct http_task task;
    struct http_exchange *exchange;
    struct http_worker *worker;
    struct env_thread *thread;
};

static void answer_later(struct http_task *task)
{
    struct later *later = CONTAINER_OF(task, struct later, task);
    http_respond_text(later->exchange, 202, "later");
}

static void later_main(void *context)
{
    struct later *later = context;
    env_sleep_ms(env_real(), 5);
    later->task.run = answer_later;
    http_worker_post(later->worker, &later->task);
}

static void handle_later(void *context, struct http_exchange *exchange)
{
    struct error err;
    struct later *later = context;
    *later = (struct later){.exchange = exchange, .worker = http_exchange_worker(exchange)};
    assert_ok(env_thread_start(env_real(), "later", later_main, later, &later->thread, &err));
}

/* Rounds without events, and what a request says of the time since the answer before it. */
enum { ROUNDS_BY = 5 };

struct rounds {
    _Atomic int left, looked;
    _Atomic int64_t pause_ns;
};

static void say_pause(void *context, struct http_exchange *exchange)
{
    struct rounds *rounds = context;
    atomic_store(&rounds->pause_ns, http_exchange_pause_ns(exchange));
    atomic_store(&rounds->left, ROUNDS_BY);
    http_respond(exchange, 200, NULL, (struct span){0}, NULL, 0);
}

static void next_round(void *context, struct http_worker *worker)
{
    struct rounds *rounds = context;
    if (atomic_load(&rounds->left) == 0)
        return;
    atomic_fetch_sub(&rounds->left, 1);
    http_worker_round_by(worker, env_mono_ns(env_real()) + 1000000);
    atomic_fetch_add(&rounds->looked, http_worker_may_look(worker));
}

static void ask_twice(uint64_t busy_poll_us, struct rounds *rounds)
{
    struct error err;
    struct http_server *server;
    struct http_client *client;
    struct http_response response;
    const struct http_route route = {
        .method = HTTP_GET, .path = "/", .run = say_pause, .context = rounds};
    struct http_options options = http_options_default();
    options.routes = &route;
    options.route_count = 1;
    options.busy_poll_us = busy_poll_us;
    options.worker_round = next_round;
    options.context = rounds;
    assert_ok(http_server_start(env_real(), &options, &server, &err));
    assert_ok(http_client_create("127.0.0.1", http_server_port(server), 5000, &client, &err));
    for (int i = 0; i < 2; i++) {
        assert_ok(
            http_client_request(client, "GET", "/", NULL, 0, (struct span){0}, &response, &err));
        if (i == 0)
            assert_true(atomic_load(&rounds->pause_ns) == INT64_MAX);
        env_sleep_ms(env_real(), 50);
    }
    assert_in_range(atomic_load(&rounds->pause_ns), 50000000, 10000000000);
    http_client_destroy(client);
    http_server_drain(server, 2000);
    http_server_destroy(server);
}

static void test_rounds_that_do_not_wait_for_events(void **state)
{
    (void)state;
    struct rounds looks = {0}, sleeps = {0};
    ask_twice(100, &looks);
    assert_int_equal(looks.looked, 2 * ROUNDS_BY); /* in 50 ms: no tick is that short */
    ask_twice(0, &sleeps);
    assert_int_equal(sleeps.looked, 0);
}

static void test_server_and_client(void **state)
{
    (void)state;
    struct error err;
    _Atomic int calls = 0;
    struct later later;
    const struct http_route routes[] = {
        {.method = HTTP_POST, .path = "/echo", .run = echo, .context = &calls},
        {.method = HTTP_GET, .path = "/later", .run = handle_later, .context = &later},
    };
    struct http_options options = http_options_default();
    options.routes = routes;
    options.route_count = COUNT_OF(routes);
    options.worker_count = 2;
    struct http_server *server;
    struct http_client *client;
    struct http_response response;
    assert_ok(http_server_start(env_real(), &options, &server, &err));
    assert_ok(http_client_create("127.0.0.1", http_server_port(server), 5000, &client, &err));
    for (int i = 0; i < 20; i++) {
        assert_ok(http_client_request(client, "POST", "/echo", NULL, 0, span_of_text("hello"),
                                      &response, &err));
        assert_int_equal(response.code, 200);
        assert_true(span_equal(response.body, span_of_text("hello")));
    }
    assert_ok(
        http_client_request(client, "GET", "/later", NULL, 0, (struct span){0}, &response, &err));
    assert_int_equal(response.code, 202);
    env_thread_join(later.thread);
    assert_ok(http_client_request(client, "HEAD", "/nowhere", NULL, 0, (struct span){0}, &response,
                                  &err));
    assert_int_equal(response.code, 404);
    assert_int_equal(response.body.length, 0);
    assert_int_equal(calls, 20);
    struct http_server *second;
    options.port = http_server_port(server);
    assert_status(STATUS_EXISTS, http_server_start(env_real(), &options, &second, &err));
    http_client_destroy(client);
    http_server_drain(server, 2000);
    http_server_destroy(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_head_fields),
        cmocka_unit_test(test_chunks_at_every_cut),
        cmocka_unit_test(test_server_and_client),
        cmocka_unit_test(test_rounds_that_do_not_wait_for_events),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
