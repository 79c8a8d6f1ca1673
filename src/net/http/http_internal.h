/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of this module.
 */
#ifndef SLUICE_NET_HTTP_INTERNAL_H
#define SLUICE_NET_HTTP_INTERNAL_H

#include <stdatomic.h>

#include "net/http/http.h"

struct span http_headers_get(const struct http_header *headers, size_t count,
                             const char *lower_case_name);

/* Header lines up to and with the empty one; false: malformed, or too many. */
bool http_parse_header_lines(const uint8_t **at, const uint8_t *end, struct http_header *headers,
                             size_t *out_count, bool *out_too_many);

enum http_conn_state {
    HTTP_CONN_HEAD, /* between requests, or a head that is incomplete */
    HTTP_CONN_BODY,
    HTTP_CONN_HANDLER, /* a handler has the exchange; nothing is read */
    HTTP_CONN_SENDING, /* an answer that the socket did not take whole */
    HTTP_CONN_LINGER,  /* answered for the last time; reading the rest so that no reset eats it */
};

struct http_exchange {
    struct http_conn *conn;
    struct http_head head;
    struct buf head_bytes; /* what `head` points into */
    struct buf body;
    struct http_chunks chunks;
    const struct http_route *route;
    char allowed[40]; /* the methods of the path, where another one was asked */
    int64_t started_ns, pause_ns;
    uint64_t reserved; /* of the body budget */
    _Alignas(16) uint8_t scratch[64];
};

struct http_conn {
    struct http_conn *previous, *next; /* the worker's list */
    struct http_conn *touched_next;    /* of those to look at when the round ends */
    bool is_touched;
    struct http_worker *worker;
    struct os_socket socket;
    enum http_conn_state state;
    struct span window; /* what was just received and not looked at: in the worker's buffer */
    struct buf in;      /* what is left of that; one of the two is empty */
    struct buf out;     /* bytes not yet sent, from `out_at` */
    size_t out_at;
    uint64_t answer_held; /* of it, as counted in the server's sum */
    unsigned interest;
    bool close_after, is_peer_done, is_dead;
    int64_t answered_ns; /* the request before; 0: there was none */
    int64_t since_ns;    /* monotonic: when the state began, or its last progress */
    uint64_t progress_bytes;
    struct http_exchange exchange;
};

struct http_worker {
    struct http_server *server;
    struct os_poller *poller;
    struct os_socket listener;
    struct env_thread *thread;
    struct http_conn *conns, *touched;
    unsigned conn_count;
    unsigned paused_at; /* the listener is taken up again when there are fewer connections */
    bool is_listening, is_listener_paused;
    int64_t now_ns, last_tick_ns, cut_off_ns;
    int64_t round_by_ns; /* the next round does not wait for events any longer; 0: it does */
    uint8_t *receive_buffer;
    void *state;
    _Atomic(struct http_task *) tasks;
    /* counters, read by others */
    _Atomic uint64_t connections_open, connections_total, requests_total, bytes_received,
        bytes_sent, bad_requests_total, timeouts_total, refused_total;
};

struct http_server {
    struct env *env;
    struct http_options options;
    uint16_t port;
    struct http_worker *workers;
    unsigned worker_count, workers_started;
    _Atomic uint64_t body_bytes_held, answer_bytes_held;
    _Atomic int64_t refused_ns; /* when a body last found no memory; 0: never */
    _Atomic bool is_draining, is_cutting_off;
};

/* connection.c; all on the worker's thread */
void http_conn_open(struct http_worker *worker, struct os_socket socket);
void http_conn_close(struct http_conn *conn); /* frees nothing: the loop reaps dead ones */
void http_conn_touch(struct http_conn *conn); /* the round's end looks at it */
void http_conn_free(struct http_conn *conn);
void http_conn_ready(struct http_conn *conn, unsigned ready);
void http_conn_tick(struct http_conn *conn);
void http_conn_drain(struct http_conn *conn);

static inline void http_count(_Atomic uint64_t *counter, uint64_t by)
{
    atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

#endif
