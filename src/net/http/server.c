/* SPDX-License-Identifier: Apache-2.0
 *
 * Workers: an epoll loop each, with a listening socket of its own. Dead connections are reaped at
 * the end of a round, unless a handler still holds their exchange.
 */
#include <errno.h>
#include <stdio.h>

#include "net/http/http_internal.h"

enum {
    EVENTS = 128,
    RECEIVE_BYTES = 256 * 1024,
    ACCEPTS_A_ROUND = 64,
    TICK_MS = 500,
    TICK_PRESSED_MS = 100,
    CUT_OFF_MS = 1000
};

struct http_options http_options_default(void)
{
    return (struct http_options){
        .address = "127.0.0.1",
        .worker_count = 1,
        .head_bytes_max = 16 * 1024,
        .body_bytes_max = 16 << 20,
        .body_budget_bytes = 256 << 20,
        .connections_max = 10000,
        .head_timeout_ms = 10000,
        .body_timeout_ms = 30000,
        .idle_timeout_ms = 75000,
        .send_timeout_ms = 30000,
    };
}

static void pause_listening(struct http_worker *worker)
{
    worker->is_listener_paused = true;
    worker->paused_at = worker->conn_count;
    os_poller_change(worker->poller, worker->listener, 0, worker);
}

static void accept_some(struct http_worker *worker)
{
    struct error err;
    for (int i = 0; i < ACCEPTS_A_ROUND; i++) {
        struct os_socket socket;
        if (worker->conn_count >= worker->server->options.connections_max) {
            if (i == 0) /* somebody waits: until one closes */
                pause_listening(worker);
            return;
        }
        enum status status = os_accept(worker->listener, &socket, &err);
        if (status == STATUS_LIMIT)
            pause_listening(worker);
        if (status != STATUS_OK)
            return;
        http_conn_open(worker, socket);
    }
}

static void stop_listening(struct http_worker *worker)
{
    if (!worker->is_listening)
        return;
    worker->is_listening = false;
    os_poller_remove(worker->poller, worker->listener);
    os_close(worker->listener);
    worker->listener = OS_SOCKET_NONE;
}

void http_worker_post(struct http_worker *worker, struct http_task *task)
{
    struct http_task *head = atomic_load_explicit(&worker->tasks, memory_order_relaxed);
    do
        task->next = head;
    while (!atomic_compare_exchange_weak_explicit(&worker->tasks, &head, task, memory_order_release,
                                                  memory_order_relaxed));
    if (!head)
        os_poller_wake(worker->poller);
}

static void run_tasks(struct http_worker *worker)
{
    struct http_task *stack = atomic_exchange_explicit(&worker->tasks, NULL, memory_order_acquire);
    struct http_task *queue = NULL;
    while (stack) { /* oldest first */
        struct http_task *next = stack->next;
        stack->next = queue;
        queue = stack;
        stack = next;
    }
    while (queue) {
        struct http_task *task = queue;
        queue = task->next;
        task->run(task);
    }
}

/* While others wait for a connection to end, those that keep one for nothing are looked at often.
 */
static int tick_ms(const struct http_worker *worker)
{
    return worker->is_listener_paused ? TICK_PRESSED_MS : TICK_MS;
}

/* Once a tick: time-outs, and in a drain the idle ones. */
static void tick(struct http_worker *worker)
{
    bool is_cutting_off = atomic_load(&worker->server->is_cutting_off);
    bool is_draining = atomic_load(&worker->server->is_draining);
    if (worker->now_ns - worker->last_tick_ns < (int64_t)tick_ms(worker) * 1000000 && !is_draining)
        return;
    worker->last_tick_ns = worker->now_ns;
    worker->paused_at = worker->server->options.connections_max; /* files may be free by now */
    for (struct http_conn *conn = worker->conns; conn; conn = conn->next) {
        http_conn_tick(conn);
        if (is_draining)
            http_conn_touch(conn);
        if (is_cutting_off && conn->state != HTTP_CONN_HANDLER)
            http_conn_close(conn);
    }
}

static void resume_listening(struct http_worker *worker)
{
    if (worker->is_listener_paused && worker->is_listening &&
        worker->conn_count < worker->paused_at) {
        worker->is_listener_paused = false;
        os_poller_change(worker->poller, worker->listener, OS_READABLE, worker);
    }
}

/* Ends the round for the connections that something happened to: takes up pipelined requests, and
 * frees the dead whose exchange no handler holds. */
static void sweep(struct http_worker *worker)
{
    while (worker->touched) {
        struct http_conn *conn = worker->touched;
        worker->touched = conn->touched_next;
        conn->is_touched = false;
        http_conn_drain(conn);
        if (conn->is_touched) /* answered once more just now */
            continue;
        if (conn->is_dead && conn->state != HTTP_CONN_HANDLER)
            http_conn_free(conn);
    }
}

static size_t wait_for_events(struct http_worker *worker, struct os_event *events)
{
    int64_t round_by_ns = worker->round_by_ns;
    worker->round_by_ns = 0;
    return round_by_ns ? os_poller_look(worker->poller, round_by_ns, events, EVENTS)
                       : os_poller_wait(worker->poller, tick_ms(worker), events, EVENTS);
}

static void worker_main(void *context)
{
    struct http_worker *worker = context;
    struct http_server *server = worker->server;
    const struct http_options *options = &server->options;
    struct os_event events[EVENTS];
    for (;;) {
        size_t count = wait_for_events(worker, events);
        worker->now_ns = env_mono_ns(server->env);
        run_tasks(worker);
        for (size_t i = 0; i < count; i++) {
            if (events[i].context == worker)
                accept_some(worker);
            else
                http_conn_ready(events[i].context, events[i].ready);
        }
        if (atomic_load(&server->is_draining))
            stop_listening(worker);
        if (options->worker_round)
            options->worker_round(options->context, worker);
        tick(worker);
        sweep(worker);
        resume_listening(worker);
        if (atomic_load(&server->is_draining) && worker->conn_count == 0)
            break;
        if (atomic_load(&server->is_cutting_off)) { /* handlers that do not answer get a moment */
            if (!worker->cut_off_ns)
                worker->cut_off_ns = worker->now_ns;
            if (worker->now_ns - worker->cut_off_ns > (int64_t)CUT_OFF_MS * 1000000)
                break;
        }
    }
}

static enum status start_worker(struct http_server *server, unsigned index, struct error *err)
{
    struct http_worker *worker = &server->workers[index];
    worker->server = server;
    worker->listener = OS_SOCKET_NONE;
    worker->receive_buffer = mem_alloc(RECEIVE_BYTES);
    if (!worker->receive_buffer)
        return error_set(err, STATUS_NO_MEMORY, "http worker: out of memory");
    TRY(os_poller_create(&worker->poller, err));
    os_poller_busy_poll(worker->poller, server->options.busy_poll_us);
    uint16_t port = index == 0 ? server->options.port : server->port;
    TRY(os_listen(server->options.address, port, &worker->listener, &server->port, err));
    worker->is_listening = true;
    TRY(os_poller_add(worker->poller, worker->listener, OS_READABLE, worker, err));
    worker->now_ns = worker->last_tick_ns = env_mono_ns(server->env);
    if (server->options.worker_start)
        worker->state = server->options.worker_start(server->options.context, worker, index);
    char name[16];
    snprintf(name, sizeof name, "http-%u", index);
    return env_thread_start(server->env, name, worker_main, worker, &worker->thread, err);
}

enum status http_address_check(const char *address, uint16_t port, struct error *err)
{
    struct os_socket probe = OS_SOCKET_NONE;
    struct error ignored;
    uint16_t bound;
    enum status status = os_listen(address, 0, &probe, &bound, err);
    os_close(probe);
    if (status != STATUS_OK && err->os_errno == EADDRNOTAVAIL)
        return error_set(err, STATUS_INVALID, "listen on %s: it is no address of this machine",
                         address);
    TRY(status);
    if (port == 0)
        return STATUS_OK;
    /* SO_REUSEPORT lets two servers of one user share a port in silence: look before binding. */
    probe = OS_SOCKET_NONE;
    status = os_connect(address, port, 1000, &probe, &ignored);
    os_close(probe);
    if (status == STATUS_OK)
        return error_set(err, STATUS_EXISTS, "listen on %s port %u: something listens there",
                         address, port);
    probe = OS_SOCKET_NONE;
    status = os_listen(address, port, &probe, &bound, err);
    os_close(probe);
    return status;
}

enum status http_server_start(struct env *env, const struct http_options *options,
                              struct http_server **out_server, struct error *err)
{
    struct http_server *server = mem_alloc_zero(1, sizeof *server);
    if (server)
        server->workers = mem_alloc_zero(options->worker_count, sizeof *server->workers);
    if (!server || !server->workers) {
        mem_free(server);
        return error_set(err, STATUS_NO_MEMORY, "http server: out of memory");
    }
    server->env = env;
    server->options = *options;
    server->worker_count = options->worker_count;
    enum status checked = http_address_check(options->address, options->port, err);
    if (checked != STATUS_OK) {
        http_server_destroy(server);
        return checked;
    }
    for (unsigned i = 0; i < options->worker_count; i++) {
        enum status status = start_worker(server, i, err);
        if (status != STATUS_OK) {
            http_server_destroy(server);
            return status;
        }
        server->workers_started++;
    }
    *out_server = server;
    return STATUS_OK;
}

uint16_t http_server_port(const struct http_server *server)
{
    return server->port;
}

static void wake_all(struct http_server *server)
{
    for (unsigned i = 0; i < server->workers_started; i++)
        os_poller_wake(server->workers[i].poller);
}

static bool is_empty(const struct http_server *server)
{
    for (unsigned i = 0; i < server->workers_started; i++) {
        if (atomic_load(&server->workers[i].connections_open) > 0)
            return false;
    }
    return true;
}

void http_server_drain(struct http_server *server, uint64_t timeout_ms)
{
    atomic_store(&server->is_draining, true);
    wake_all(server);
    int64_t deadline_ns = env_mono_ns(server->env) + (int64_t)timeout_ms * 1000000;
    while (!is_empty(server) && env_mono_ns(server->env) < deadline_ns)
        env_sleep_ms(server->env, 5);
    atomic_store(&server->is_cutting_off, true);
    wake_all(server);
    for (unsigned i = 0; i < server->workers_started; i++) {
        env_thread_join(server->workers[i].thread);
        server->workers[i].thread = NULL;
    }
}

void http_server_destroy(struct http_server *server)
{
    if (!server)
        return;
    if (server->workers_started && server->workers[0].thread)
        http_server_drain(server, 0);
    for (unsigned i = 0; i < server->worker_count; i++) {
        struct http_worker *worker = &server->workers[i];
        if (!worker->server)
            continue;
        if (server->options.worker_stop && i < server->workers_started)
            server->options.worker_stop(server->options.context, worker);
        while (worker->conns)
            http_conn_free(worker->conns);
        os_close(worker->listener);
        os_poller_destroy(worker->poller);
        mem_free(worker->receive_buffer);
    }
    mem_free(server->workers);
    mem_free(server);
}

bool http_worker_may_look(const struct http_worker *worker)
{
    return worker->server->options.busy_poll_us > 0 && !atomic_load(&worker->server->is_draining);
}

void http_worker_round_by(struct http_worker *worker, int64_t mono_ns)
{
    worker->round_by_ns = mono_ns;
}

void *http_worker_state(const struct http_worker *worker)
{
    return worker->state;
}

uint64_t http_worker_answer_bytes(const struct http_worker *worker)
{
    return atomic_load(&worker->server->answer_bytes_held);
}

struct http_stats http_server_stats(const struct http_server *server)
{
    struct http_stats stats = {.body_bytes_held = atomic_load(&server->body_bytes_held),
                               .answer_bytes_held = atomic_load(&server->answer_bytes_held)};
    for (unsigned i = 0; i < server->workers_started; i++) {
        const struct http_worker *worker = &server->workers[i];
        stats.connections_open += atomic_load(&worker->connections_open);
        stats.connections_total += atomic_load(&worker->connections_total);
        stats.requests_total += atomic_load(&worker->requests_total);
        stats.bytes_received += atomic_load(&worker->bytes_received);
        stats.bytes_sent += atomic_load(&worker->bytes_sent);
        stats.bad_requests_total += atomic_load(&worker->bad_requests_total);
        stats.timeouts_total += atomic_load(&worker->timeouts_total);
        stats.refused_total += atomic_load(&worker->refused_total);
    }
    return stats;
}
