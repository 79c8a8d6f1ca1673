/* SPDX-License-Identifier: Apache-2.0
 *
 * One connection: HEAD -> BODY -> HANDLER -> SENDING -> HEAD ..., LINGER at the end.
 * Invariants: bytes are read in HEAD, BODY and LINGER only; `exchange.reserved` is what this
 * connection holds of the body budget; a connection that is dead stays allocated until its worker
 * reaps it, because a handler may still hold its exchange.
 * Thread: the worker's.
 */
#include <stdarg.h>
#include <stdio.h>

#include "net/http/http_internal.h"

enum {
    RECEIVE_BYTES = 256 * 1024,
    LINGER_BYTES_MAX = 64 << 20,
    LINGER_MS = 3000,
    BODY_STEP = 256 * 1024, /* what a body holds at first */
    /* while others wait for a connection to end, or for memory */
    HEAD_PRESSED_MS = 500,
    IDLE_PRESSED_MS = 1000,
    SEND_PRESSED_MS = 2000,
    LINGER_PRESSED_MS = 100,
    BODY_PRESSED_MS = 1000,
    BODY_RATE = 1024, /* bytes a second that a body must come at */
    BODY_RATE_PRESSED = 16 * 1024,
};

static void conn_advance(struct http_conn *conn);

static void set_state(struct http_conn *conn, enum http_conn_state state)
{
    conn->state = state;
    conn->since_ns = conn->worker->now_ns;
    conn->progress_bytes = 0;
}

static void set_interest(struct http_conn *conn, unsigned interest)
{
    if (conn->interest == interest || conn->is_dead)
        return;
    conn->interest = interest;
    os_poller_change(conn->worker->poller, conn->socket, interest, conn);
}

/* Bytes that came and were not taken. */
static struct span unread(const struct http_conn *conn)
{
    return conn->window.length ? conn->window : span_of(conn->in.data, conn->in.length);
}

static void take(struct http_conn *conn, size_t bytes)
{
    if (conn->window.length) {
        conn->window = span_of(conn->window.data + bytes, conn->window.length - bytes);
        return;
    }
    memmove(conn->in.data, conn->in.data + bytes, conn->in.length - bytes);
    buf_truncate(&conn->in, conn->in.length - bytes);
}

/* Before others use the worker's buffer. */
static void keep_unread(struct http_conn *conn)
{
    buf_put(&conn->in, conn->window.data, conn->window.length);
    conn->window = (struct span){0};
    if (conn->in.failed)
        http_conn_close(conn);
}

static void release_reservation(struct http_exchange *exchange)
{
    struct http_server *server = exchange->conn->worker->server;
    atomic_fetch_sub(&server->body_bytes_held, exchange->reserved);
    exchange->reserved = 0;
}

/* Takes `bytes` more of the body budget, all or nothing. */
static bool reserve(struct http_exchange *exchange, uint64_t bytes)
{
    struct http_server *server = exchange->conn->worker->server;
    uint64_t held = atomic_fetch_add(&server->body_bytes_held, bytes) + bytes;
    /* A lone request may pass. */
    if (held > server->options.body_budget_bytes && held != exchange->reserved + bytes) {
        atomic_fetch_sub(&server->body_bytes_held, bytes);
        return false;
    }
    exchange->reserved += bytes;
    return true;
}

void http_conn_touch(struct http_conn *conn)
{
    if (conn->is_touched)
        return;
    conn->is_touched = true;
    conn->touched_next = conn->worker->touched;
    conn->worker->touched = conn;
}

void http_conn_open(struct http_worker *worker, struct os_socket socket)
{
    struct error err;
    struct http_conn *conn = mem_alloc_zero(1, sizeof *conn);
    if (!conn) {
        os_close(socket);
        return;
    }
    conn->worker = worker;
    conn->socket = socket;
    conn->exchange.conn = conn;
    conn->interest = OS_READABLE;
    if (os_poller_add(worker->poller, socket, OS_READABLE, conn, &err) != STATUS_OK) {
        os_close(socket);
        mem_free(conn);
        return;
    }
    conn->next = worker->conns;
    if (conn->next)
        conn->next->previous = conn;
    worker->conns = conn;
    worker->conn_count++;
    http_count(&worker->connections_total, 1);
    http_count(&worker->connections_open, 1);
    set_state(conn, HTTP_CONN_HEAD);
}

/* What waits to be sent, of all connections together. */
static void count_answer(struct http_conn *conn)
{
    uint64_t held = conn->is_dead ? 0 : conn->out.length - conn->out_at;
    http_count(&conn->worker->server->answer_bytes_held, held - conn->answer_held);
    conn->answer_held = held;
}

void http_conn_close(struct http_conn *conn)
{
    if (conn->is_dead)
        return;
    conn->is_dead = true;
    count_answer(conn);
    http_conn_touch(conn);
    os_poller_remove(conn->worker->poller, conn->socket);
    os_close(conn->socket);
    conn->socket = OS_SOCKET_NONE;
}

void http_conn_free(struct http_conn *conn)
{
    struct http_worker *worker = conn->worker;
    http_conn_close(conn);
    release_reservation(&conn->exchange);
    if (conn->previous)
        conn->previous->next = conn->next;
    else
        worker->conns = conn->next;
    if (conn->next)
        conn->next->previous = conn->previous;
    worker->conn_count--;
    atomic_fetch_sub(&worker->connections_open, 1);
    buf_deinit(&conn->in);
    buf_deinit(&conn->out);
    buf_deinit(&conn->exchange.head_bytes);
    buf_deinit(&conn->exchange.body);
    mem_free(conn);
}

/* ---- answering ---- */

static void begin_linger(struct http_conn *conn)
{
    os_shutdown_write(conn->socket);
    if (conn->is_peer_done) {
        http_conn_close(conn);
        return;
    }
    buf_clear(&conn->in);
    conn->window = (struct span){0};
    set_state(conn, HTTP_CONN_LINGER);
    set_interest(conn, OS_READABLE);
}

static void end_exchange(struct http_conn *conn)
{
    struct http_exchange *exchange = &conn->exchange;
    release_reservation(exchange);
    buf_deinit(&exchange->body);
    buf_clear(&exchange->head_bytes);
    exchange->route = NULL;
    exchange->allowed[0] = '\0';
}

/* Sends what is queued; behind the last byte the connection goes on or lingers. */
static void send_some(struct http_conn *conn)
{
    struct error err;
    while (conn->out_at < conn->out.length) {
        size_t sent = 0;
        enum status status = os_send(conn->socket, conn->out.data + conn->out_at,
                                     conn->out.length - conn->out_at, &sent, &err);
        if (status == STATUS_BUSY) {
            set_interest(conn, OS_WRITABLE);
            return;
        }
        if (status != STATUS_OK) {
            http_conn_close(conn);
            return;
        }
        conn->out_at += sent;
        conn->since_ns = conn->worker->now_ns;
        http_count(&conn->worker->bytes_sent, sent);
    }
    conn->out_at = 0;
    if (conn->out.capacity > 64 * 1024)
        buf_deinit(&conn->out);
    else
        buf_clear(&conn->out);
    if (conn->state != HTTP_CONN_SENDING) /* an interim answer: the body is still to come */
        return;
    if (conn->close_after) {
        begin_linger(conn);
        return;
    }
    set_state(conn, HTTP_CONN_HEAD);
    set_interest(conn, OS_READABLE);
}

static void flush_out(struct http_conn *conn)
{
    send_some(conn);
    count_answer(conn);
}

static void put_field(struct buf *out, const char *name, const char *value)
{
    buf_put_text(out, name);
    buf_put_text(out, ": ");
    buf_put_text(out, value);
    buf_put_text(out, "\r\n");
}

static void put_number(struct buf *out, const char *before, uint64_t value, const char *behind)
{
    char digits[U64_TEXT_MAX];
    buf_put_text(out, before);
    buf_put(out, digits, u64_to_text(digits, value));
    buf_put_text(out, behind);
}

static void put_head(struct http_conn *conn, int code, const char *type, size_t body_length,
                     const struct http_field *fields, size_t field_count)
{
    struct buf *out = &conn->out;
    put_number(out, "HTTP/1.1 ", (uint64_t)code, " ");
    buf_put_text(out, http_reason(code));
    buf_put_text(out, "\r\n");
    if (code != 204) /* RFC 9110, section 8.6 */
        put_number(out, "Content-Length: ", body_length, "\r\n");
    if (type)
        put_field(out, "Content-Type", type);
    for (size_t i = 0; i < field_count; i++)
        put_field(out, fields[i].name, fields[i].value);
    if (conn->exchange.allowed[0])
        put_field(out, "Allow", conn->exchange.allowed);
    buf_put_text(out, conn->close_after ? "Connection: close\r\n\r\n" : "\r\n");
}

void http_respond(struct http_exchange *exchange, int code, const char *type, struct span body,
                  const struct http_field *fields, size_t field_count)
{
    struct http_conn *conn = exchange->conn;
    bool is_body_unread = conn->state == HTTP_CONN_BODY || conn->state == HTTP_CONN_HEAD;
    conn->close_after |= is_body_unread || exchange->head.wants_close ||
                         atomic_load(&conn->worker->server->is_draining);
    set_state(conn, HTTP_CONN_SENDING);
    http_conn_touch(conn);
    if (!conn->is_dead) {
        put_head(conn, code, type, body.length, fields, field_count);
        if (exchange->head.method != HTTP_HEAD)
            buf_put(&conn->out, body.data, body.length);
        if (conn->out.failed)
            http_conn_close(conn);
    }
    end_exchange(conn);
    conn->answered_ns = env_mono_ns(conn->worker->server->env);
    if (!conn->is_dead)
        flush_out(conn);
    /* A pipelined request that waits in `in` is taken up by the worker's loop, not from here, so
     * that a handler that answers at once does not recurse. */
}

void http_respond_text(struct http_exchange *exchange, int code, const char *format, ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text - 1, format, args);
    va_end(args);
    size_t used = size_min((size_t)(length < 0 ? 0 : length), sizeof text - 2);
    text[used++] = '\n';
    struct http_field retry = {.name = "Retry-After", .value = "1"};
    http_respond(exchange, code, "text/plain; charset=utf-8", span_of(text, used), &retry,
                 code == 503 || code == 429);
}

/* Answers as those who serve the path do. */
static void respond_refusal(struct http_conn *conn, int code, const char *why)
{
    const struct http_route *route = conn->exchange.route;
    if (route && route->refuse)
        route->refuse(route->context, &conn->exchange, code, why);
    else
        http_respond_text(&conn->exchange, code, "%s", why);
}

/* The message is malformed: answer, and read no further. */
static void refuse(struct http_conn *conn, int code, const char *why)
{
    http_count(&conn->worker->bad_requests_total, 1);
    conn->close_after = true;
    respond_refusal(conn, code, why);
}

static void refuse_busy(struct http_conn *conn)
{
    atomic_store_explicit(&conn->worker->server->refused_ns, conn->worker->now_ns,
                          memory_order_relaxed);
    http_count(&conn->worker->refused_total, 1);
    conn->close_after = true;
    respond_refusal(conn, 503, "the memory for request bodies is in use; try again");
}

/* ---- requests ---- */

static bool route_matches(const struct http_route *route, struct span path)
{
    size_t length = strlen(route->path);
    if (length >= 2 && strcmp(route->path + length - 2, "/*") == 0)
        return path.length > length - 1 && memcmp(path.data, route->path, length - 1) == 0;
    return span_equal(path, span_of_text(route->path));
}

/* The same for a head that is bad or did not come whole. */
static void refuse_head(struct http_conn *conn, struct span bytes, int code, const char *why)
{
    const struct http_options *options = &conn->worker->server->options;
    struct http_exchange *exchange = &conn->exchange;
    struct span path = http_peek_path(bytes);
    exchange->head = (struct http_head){.method = HTTP_OTHER};
    exchange->route = NULL;
    for (size_t i = 0; i < options->route_count && !exchange->route; i++) {
        if (route_matches(&options->routes[i], path))
            exchange->route = &options->routes[i];
    }
    refuse(conn, code, why);
}

static void allow(struct http_exchange *exchange, enum http_method method)
{
    static const char *const names[HTTP_OTHER] = {"GET, HEAD", "HEAD", "POST", "PUT", "DELETE"};
    size_t used = strlen(exchange->allowed);
    snprintf(exchange->allowed + used, sizeof exchange->allowed - used, "%s%s", used ? ", " : "",
             names[method]);
}

/* Finds the route; answers 404 or 405 itself. */
static bool find_route(struct http_conn *conn)
{
    const struct http_options *options = &conn->worker->server->options;
    struct http_exchange *exchange = &conn->exchange;
    enum http_method method = exchange->head.method == HTTP_HEAD ? HTTP_GET : exchange->head.method;
    for (size_t i = 0; i < options->route_count; i++) {
        const struct http_route *route = &options->routes[i];
        if (!route_matches(route, exchange->head.path))
            continue;
        exchange->route = route;
        if (route->method == method) {
            exchange->allowed[0] = '\0';
            return true;
        }
        allow(exchange, route->method);
    }
    if (exchange->allowed[0]) {
        respond_refusal(conn, 405, "method not allowed here");
    } else {
        http_respond_text(exchange, 404, "nothing is served at %.*s",
                          (int)size_min(exchange->head.path.length, 200),
                          (const char *)exchange->head.path.data);
    }
    return false;
}

static void run_handler(struct http_conn *conn)
{
    set_state(conn, HTTP_CONN_HANDLER);
    conn->exchange.route->run(conn->exchange.route->context, &conn->exchange);
}

/* Room for the next bytes of a body of known length. What it holds grows with what has come: a
 * length that is only announced takes nothing from others. False: refused. */
static bool grow_body(struct http_conn *conn)
{
    struct http_exchange *exchange = &conn->exchange;
    size_t have = exchange->body.length;
    size_t step = size_min(size_max(have, BODY_STEP), (size_t)exchange->head.content_length - have);
    if (have < exchange->reserved ||
        (reserve(exchange, step) && buf_reserve(&exchange->body, step)))
        return true;
    refuse_busy(conn);
    return false;
}

/* A head is complete: routes it, admits it, makes ready for the body. */
static void begin_request(struct http_conn *conn)
{
    struct http_exchange *exchange = &conn->exchange;
    const struct http_head *head = &exchange->head;
    size_t limit = conn->worker->server->options.body_bytes_max;
    exchange->started_ns = conn->worker->now_ns;
    exchange->pause_ns = conn->answered_ns ? conn->worker->now_ns - conn->answered_ns : INT64_MAX;
    memset(exchange->scratch, 0, sizeof exchange->scratch);
    exchange->chunks = (struct http_chunks){0};
    http_count(&conn->worker->requests_total, 1);
    bool has_body = head->is_chunked || head->content_length > 0;
    if (!has_body)
        set_state(conn, HTTP_CONN_HANDLER);
    if (!find_route(conn))
        return;
    if (head->content_length > limit) {
        char text[96];
        snprintf(text, sizeof text, "the body has more than %zu bytes", limit);
        refuse(conn, 413, text);
        return;
    }
    if (exchange->route->admit && !exchange->route->admit(exchange->route->context, exchange))
        return;
    if (!has_body) {
        run_handler(conn);
        return;
    }
    buf_init(&exchange->body, limit);
    set_state(conn, HTTP_CONN_BODY);
    if (head->has_length && !grow_body(conn))
        return;
    if (head->expects_continue && unread(conn).length == 0) {
        buf_put_text(&conn->out, "HTTP/1.1 100 Continue\r\n\r\n");
        flush_out(conn);
        if (conn->out.length &&
            !conn->is_dead) /* 25 bytes that did not fit: give up on this peer */
            http_conn_close(conn);
    }
}

/* Looks for a head. Returns whether anything happened. */
static bool advance_head(struct http_conn *conn)
{
    struct http_exchange *exchange = &conn->exchange;
    size_t head_bytes = 0, skipped = 0;
    int code = 0;
    const char *why = NULL;
    struct span bytes = unread(conn);
    while (skipped + 2 <= bytes.length && skipped < 8 && /* RFC 9112 2.2: empty lines before */
           memcmp(bytes.data + skipped, "\r\n", 2) == 0)
        skipped += 2;
    if (bytes.length == skipped)
        return false;
    bytes = span_of(bytes.data + skipped, bytes.length - skipped);
    enum http_parse parse = http_parse_request(bytes, conn->worker->server->options.head_bytes_max,
                                               &exchange->head, &head_bytes, &code, &why);
    if (parse == HTTP_PARSE_MORE)
        return false;
    if (parse == HTTP_PARSE_BAD) {
        refuse_head(conn, bytes, code, why);
        return true;
    }
    /* The head's spans must outlive those bytes. */
    buf_clear(&exchange->head_bytes);
    buf_put(&exchange->head_bytes, bytes.data, head_bytes);
    if (exchange->head_bytes.failed) {
        http_conn_close(conn);
        return true;
    }
    http_head_move(&exchange->head, span_of(bytes.data, head_bytes), exchange->head_bytes.data);
    take(conn, skipped + head_bytes);
    begin_request(conn);
    return true;
}

/* Moves bytes from `data` into the body; *out_used tells how many. True when the body is whole. */
static bool feed_body(struct http_conn *conn, const uint8_t *data, size_t bytes, size_t *out_used)
{
    struct http_exchange *exchange = &conn->exchange;
    const char *why = NULL;
    *out_used = 0;
    if (exchange->head.has_length) {
        while (*out_used < bytes && exchange->body.length < exchange->head.content_length) {
            if (!grow_body(conn))
                return false;
            size_t part =
                size_min((size_t)exchange->reserved - exchange->body.length, bytes - *out_used);
            buf_put(&exchange->body, data + *out_used, part);
            *out_used += part;
        }
        return exchange->body.length == exchange->head.content_length;
    }
    size_t before = exchange->body.length;
    if (before + bytes > exchange->reserved &&
        !reserve(exchange, size_max(bytes, (size_t)RECEIVE_BYTES))) {
        refuse_busy(conn);
        return false;
    }
    switch (http_chunks_feed(&exchange->chunks, data, bytes, out_used, &exchange->body, &why)) {
    case HTTP_PARSE_DONE:
        return true;
    case HTTP_PARSE_MORE:
        return false;
    case HTTP_PARSE_BAD:
        break;
    }
    if (exchange->body.failed)
        refuse(conn, 413, "the body is too large");
    else
        refuse(conn, 400, why);
    return false;
}

static bool advance_body(struct http_conn *conn)
{
    size_t used;
    struct span bytes = unread(conn);
    if (bytes.length == 0)
        return false;
    bool is_whole = feed_body(conn, bytes.data, bytes.length, &used);
    if (conn->state != HTTP_CONN_BODY)
        return true;
    take(conn, used);
    if (is_whole)
        run_handler(conn);
    return is_whole;
}

/* Takes up whatever the bytes that came allow. */
static void conn_advance(struct http_conn *conn)
{
    bool is_moving = true;
    while (is_moving && !conn->is_dead) {
        if (conn->state == HTTP_CONN_HEAD)
            is_moving = advance_head(conn);
        else if (conn->state == HTTP_CONN_BODY)
            is_moving = advance_body(conn);
        else
            is_moving = false;
    }
    if (conn->is_dead)
        return;
    if (conn->in.length == 0 && conn->in.capacity > 0 && conn->state == HTTP_CONN_HEAD)
        buf_deinit(&conn->in);
    if (!conn->is_peer_done)
        return;
    if (conn->state == HTTP_CONN_BODY)
        refuse(conn, 400, "the body ended before it was whole");
    else if (conn->state == HTTP_CONN_HEAD && conn->in.length > 2) /* more than an empty line */
        refuse_head(conn, span_of(conn->in.data, conn->in.length), 400,
                    "the request head ended before it was whole");
    else if (conn->state == HTTP_CONN_HEAD)
        http_conn_close(conn);
}

/* Where the next bytes go: straight into a body of known length, else through the worker's buffer.
 */
static void receive(struct http_conn *conn)
{
    struct error err;
    struct http_exchange *exchange = &conn->exchange;
    size_t got = 0;
    bool is_direct =
        conn->state == HTTP_CONN_BODY && exchange->head.has_length && conn->in.length == 0;
    uint8_t *place = conn->worker->receive_buffer;
    size_t room = RECEIVE_BYTES;
    if (is_direct) {
        if (!grow_body(conn))
            return;
        place = exchange->body.data + exchange->body.length;
        room = (size_t)exchange->reserved - exchange->body.length;
    }
    enum status status = os_recv(conn->socket, place, room, &got, &err);
    if (status == STATUS_BUSY)
        return;
    if (status != STATUS_OK) {
        http_conn_close(conn);
        return;
    }
    http_count(&conn->worker->bytes_received, got);
    conn->progress_bytes += got;
    if (got == 0) {
        conn->is_peer_done = true;
    } else if (conn->state == HTTP_CONN_LINGER) {
        if (conn->progress_bytes > LINGER_BYTES_MAX)
            http_conn_close(conn);
        return;
    } else if (is_direct) {
        exchange->body.length += got;
        if (exchange->body.length == exchange->head.content_length)
            run_handler(conn);
    } else {
        if (conn->state == HTTP_CONN_HEAD && conn->in.length == 0)
            set_state(conn, HTTP_CONN_HEAD); /* the head's time begins with its first byte */
        conn->window = span_of(place, got);
        if (conn->in.length > 0)
            keep_unread(conn);
    }
    conn_advance(conn);
    if (conn->window.length > 0)
        keep_unread(conn);
}

void http_conn_ready(struct http_conn *conn, unsigned ready)
{
    if (conn->is_dead)
        return;
    switch (conn->state) {
    case HTTP_CONN_HEAD:
    case HTTP_CONN_BODY:
        if (ready & (OS_READABLE | OS_CLOSED))
            receive(conn);
        break;
    case HTTP_CONN_HANDLER:
        /* The next request, or its half of the connection is closed: not to be told again before
         * this one is answered. What is told all the same is a hang-up: the answer would fail to
         * send. */
        if (conn->interest)
            set_interest(conn, 0);
        else if (ready & OS_CLOSED)
            http_conn_close(conn);
        break;
    case HTTP_CONN_SENDING:
        flush_out(conn);
        conn_advance(conn);
        break;
    case HTTP_CONN_LINGER:
        receive(conn);
        if (conn->is_peer_done)
            http_conn_close(conn);
        break;
    }
}

static bool is_expired(const struct http_conn *conn, uint64_t timeout_ms)
{
    return conn->worker->now_ns - conn->since_ns > (int64_t)timeout_ms * 1000000;
}

/* Does anybody wait for what a stalled body holds? */
static bool is_memory_wanted(const struct http_worker *worker)
{
    int64_t refused_ns = atomic_load_explicit(&worker->server->refused_ns, memory_order_relaxed);
    return worker->is_listener_paused ||
           (refused_ns && worker->now_ns - refused_ns < (int64_t)BODY_PRESSED_MS * 2 * 1000000);
}

/* Past a time-out a body must have come at a rate, on average. */
static bool is_body_slow(const struct http_conn *conn, uint64_t timeout_ms, uint64_t rate)
{
    uint64_t elapsed_ms = (uint64_t)(conn->worker->now_ns - conn->since_ns) / 1000000;
    return is_expired(conn, timeout_ms) && conn->exchange.body.length < elapsed_ms * rate / 1000;
}

/* Once a tick: time-outs, and pipelined requests that an answer from elsewhere has freed. */
void http_conn_tick(struct http_conn *conn)
{
    const struct http_options *options = &conn->worker->server->options;
    bool is_crowded = conn->worker->is_listener_paused; /* others wait for a connection to end */
    if (conn->is_dead)
        return;
    switch (conn->state) {
    case HTTP_CONN_HEAD:
        if (is_crowded &&
            is_expired(conn, conn->in.length > 0 ? HEAD_PRESSED_MS : IDLE_PRESSED_MS)) {
            http_count(&conn->worker->timeouts_total, 1);
            http_conn_close(conn);
        } else if (conn->in.length > 0 && is_expired(conn, options->head_timeout_ms)) {
            http_count(&conn->worker->timeouts_total, 1);
            refuse_head(conn, span_of(conn->in.data, conn->in.length), 408,
                        "the request head took too long");
        } else if (is_expired(conn, options->idle_timeout_ms)) {
            http_conn_close(conn);
        }
        break;
    case HTTP_CONN_BODY:
        if (is_body_slow(conn, options->body_timeout_ms, BODY_RATE) ||
            (is_memory_wanted(conn->worker) &&
             is_body_slow(conn, BODY_PRESSED_MS, BODY_RATE_PRESSED))) {
            http_count(&conn->worker->timeouts_total, 1);
            refuse(conn, 408, "the request body took too long");
        }
        break;
    case HTTP_CONN_HANDLER:
        break;
    case HTTP_CONN_SENDING:
        if (is_expired(conn, is_crowded ? SEND_PRESSED_MS : options->send_timeout_ms)) {
            http_count(&conn->worker->timeouts_total, 1);
            http_conn_close(conn);
        }
        break;
    case HTTP_CONN_LINGER:
        if (is_expired(conn, is_crowded ? LINGER_PRESSED_MS : LINGER_MS))
            http_conn_close(conn);
        break;
    }
}

/* Resumes a connection whose handler has answered: called by the loop for those with bytes left. */
void http_conn_drain(struct http_conn *conn)
{
    if (conn->is_dead)
        return;
    if (conn->state == HTTP_CONN_HEAD && (conn->in.length > 0 || conn->is_peer_done))
        conn_advance(conn);
    if (conn->state == HTTP_CONN_HANDLER) /* it began behind the round's end: another at once */
        conn->worker->round_by_ns = conn->worker->now_ns;
    if (conn->state == HTTP_CONN_HEAD && conn->in.length == 0 &&
        atomic_load(&conn->worker->server->is_draining))
        http_conn_close(conn);
}

/* ---- what handlers see ---- */

const struct http_head *http_exchange_head(const struct http_exchange *exchange)
{
    return &exchange->head;
}

struct span http_exchange_body(const struct http_exchange *exchange)
{
    return span_of(exchange->body.data, exchange->body.length);
}

void http_exchange_release_body(struct http_exchange *exchange)
{
    release_reservation(exchange);
    buf_deinit(&exchange->body);
}

struct http_worker *http_exchange_worker(const struct http_exchange *exchange)
{
    return exchange->conn->worker;
}

int64_t http_exchange_started_ns(const struct http_exchange *exchange)
{
    return exchange->started_ns;
}

int64_t http_exchange_pause_ns(const struct http_exchange *exchange)
{
    return exchange->pause_ns;
}

void *http_exchange_scratch(struct http_exchange *exchange)
{
    return exchange->scratch;
}
