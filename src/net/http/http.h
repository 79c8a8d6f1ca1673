/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP/1.1 (RFC 9110, RFC 9112): a strict server on epoll workers, and a small blocking client.
 *
 * Threads: each worker is one thread with its own listening socket (SO_REUSEPORT) and its own
 * connections. A handler runs on the worker that owns the exchange; it answers at once or later,
 * but always on that worker: other threads reach it through http_worker_post. An exchange lives
 * until it is answered. A connection handles one request at a time; pipelined ones wait in its
 * buffer.
 *
 * What a request may cost is bounded: head, headers, body, time, connections, and the memory of all
 * bodies together (503 with Retry-After when that is used up).
 */
#ifndef SLUICE_NET_HTTP_HTTP_H
#define SLUICE_NET_HTTP_HTTP_H

#include "os/os.h"

/* ---- messages ---- */

enum { HTTP_HEADERS_MAX = 100 };

struct http_header {
    struct span name;  /* as sent; compare with http_name_is */
    struct span value; /* without surrounding white space */
};

enum http_method { HTTP_GET, HTTP_HEAD, HTTP_POST, HTTP_PUT, HTTP_DELETE, HTTP_OTHER };

struct http_head {
    enum http_method method;
    struct span method_text;
    struct span path;       /* as sent, percent-encoding kept */
    struct span query;      /* without '?' */
    unsigned minor_version; /* 0 or 1 */
    struct http_header headers[HTTP_HEADERS_MAX];
    size_t header_count;
    bool is_chunked, has_length, expects_continue, wants_close;
    uint64_t content_length;
};

bool http_name_is(struct span name, const char *lower_case);
/* The header's value, or an empty span with data NULL. */
struct span http_head_get(const struct http_head *head, const char *lower_case_name);
/* The same of a header that must not say two things; false if it stands twice, with values that
 * differ. */
bool http_head_get_only(const struct http_head *head, const char *lower_case_name,
                        struct span *out_value);
/* The next element of a comma-separated list, without white space; false at its end. */
bool http_list_next(struct span *inout_list, struct span *out_element);
/* The value of `name` in a query "a=b&c=d" (not decoded); data NULL if absent. */
struct span http_query_get(struct span query, const char *name);
/* The same, percent-decoded, as text; false: missing or empty, or longer than there is room for. */
bool http_query_text(struct span query, const char *name, char *out, size_t bytes);

/* A value for a query, percent-encoded. */
void http_put_encoded(struct buf *out, const char *text);

enum http_parse { HTTP_PARSE_DONE, HTTP_PARSE_MORE, HTTP_PARSE_BAD };

/* Parses a request head at the start of `bytes`. DONE: *out_bytes is its length with the empty
 * line. BAD: *out_code is the answer (400, 431, 501, 505), *out_why a short text. Pure. */
enum http_parse http_parse_request(struct span bytes, size_t bytes_max, struct http_head *out_head,
                                   size_t *out_bytes, int *out_code, const char **out_why);
/* The bytes it was parsed from, `from`, were copied to `to`: it points there from now on. */
void http_head_move(struct http_head *head, struct span from, const uint8_t *to);
/* The path of a head that may be incomplete or bad; empty if its first line does not tell. */
struct span http_peek_path(struct span bytes);

/* Chunked bodies. Feed bytes; data goes to `body`. DONE at the end of the trailers. */
struct http_chunks {
    unsigned state;
    uint64_t left;
    unsigned digits, line_bytes;
    bool has_colon; /* the line of the trailers at hand */
};
enum http_parse http_chunks_feed(struct http_chunks *chunks, const uint8_t *data, size_t bytes,
                                 size_t *out_used, struct buf *body, const char **out_why);

const char *http_reason(int code);

/* ---- server ---- */

struct http_server;
struct http_worker;
struct http_exchange;

typedef void (*http_run_fn)(void *context, struct http_exchange *exchange);
/* Runs when the head is there and no byte of the body was read. False: it has answered. */
typedef bool (*http_admit_fn)(void *context, struct http_exchange *exchange);

/* Answers a request that this module refuses: `code` and a short text. The head may be empty, where
 * it is what was refused. */
typedef void (*http_refuse_fn)(void *context, struct http_exchange *exchange, int code,
                               const char *why);

struct http_route {
    enum http_method method;
    const char *path; /* exact, or a prefix when it ends in a slash and a star */
    http_run_fn run;
    http_admit_fn admit;   /* may be NULL */
    http_refuse_fn refuse; /* may be NULL: answers are plain text */
    void *context;
};

struct http_options {
    const char *address;
    uint16_t port; /* 0: any */
    unsigned worker_count;
    size_t head_bytes_max;      /* 16 KiB */
    size_t body_bytes_max;      /* 16 MiB, on the wire */
    uint64_t body_budget_bytes; /* of all bodies being read or held; 256 MiB */
    /* A worker; 10,000. When all are taken and others wait, those that stand there for nothing
     * (idle, half a head, a body that does not come, an answer that is not read) are closed after a
     * second or two. */
    unsigned connections_max;
    uint64_t head_timeout_ms, body_timeout_ms, idle_timeout_ms, send_timeout_ms;
    uint64_t busy_poll_us;           /* see os_poller_busy_poll; 0 */
    const struct http_route *routes; /* borrowed for the server's life */
    size_t route_count;
    /* Called on the worker's thread; may be NULL. `state` is what worker_start returned. */
    void *(*worker_start)(void *context, struct http_worker *worker, unsigned index);
    void (*worker_round)(void *context,
                         struct http_worker *worker); /* after each batch of events */
    void (*worker_stop)(void *context, struct http_worker *worker);
    void *context;
};

struct http_options http_options_default(void);

/* Can a server listen there now? INVALID: it is no address of this machine; EXISTS: something else
 * listens. Port 0: any. */
enum status http_address_check(const char *address, uint16_t port, struct error *err) MUST_CHECK;
enum status http_server_start(struct env *env, const struct http_options *options,
                              struct http_server **out_server, struct error *err) MUST_CHECK;
uint16_t http_server_port(const struct http_server *server);
/* Closes the listeners; requests that began are answered, idle connections closed. Waits up to
 * `timeout_ms`, then cuts off the rest. */
void http_server_drain(struct http_server *server, uint64_t timeout_ms);
void http_server_destroy(struct http_server *server); /* accepts NULL; drained or not */

struct http_stats {
    uint64_t connections_open, connections_total, requests_total, bytes_received, bytes_sent;
    uint64_t bad_requests_total, timeouts_total, refused_total, body_bytes_held;
    uint64_t answer_bytes_held; /* that peers have not taken yet */
};
struct http_stats http_server_stats(const struct http_server *server);

/* ---- exchanges; on their worker's thread ---- */

const struct http_head *http_exchange_head(const struct http_exchange *exchange);
struct span http_exchange_body(const struct http_exchange *exchange);
/* Gives the body's memory back before the answer. */
void http_exchange_release_body(struct http_exchange *exchange);
struct http_worker *http_exchange_worker(const struct http_exchange *exchange);
int64_t
http_exchange_started_ns(const struct http_exchange *exchange); /* monotonic: head complete */
/* Since the answer before it on its connection; INT64_MAX: there was none. From the last round's
 * begin, so that it is below 0 for a request that was there already. */
int64_t http_exchange_pause_ns(const struct http_exchange *exchange);
/* 64 bytes for the handler's own use until it answers; zeroed. */
void *http_exchange_scratch(struct http_exchange *exchange);

struct http_field {
    const char *name, *value;
};

/* Answers; the exchange is gone afterwards. `type` NULL: no Content-Type. Bytes are copied. */
void http_respond(struct http_exchange *exchange, int code, const char *type, struct span body,
                  const struct http_field *fields, size_t field_count);
void http_respond_text(struct http_exchange *exchange, int code, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* ---- workers ---- */

/* The next round comes at `mono_ns` at the latest, of the last call: until then the worker looks
 * for events and does not sleep. From a worker_round. */
void http_worker_round_by(struct http_worker *worker, int64_t mono_ns);
/* Whether that is wanted: not with a busy_poll_us of 0, nor while the server drains. */
bool http_worker_may_look(const struct http_worker *worker);
void *http_worker_state(const struct http_worker *worker);
/* answer_bytes_held of its server: what a handler of large answers bounds itself by. */
uint64_t http_worker_answer_bytes(const struct http_worker *worker);

struct http_task {
    struct http_task *next; /* the worker's */
    void (*run)(struct http_task *task);
};
/* Runs `task` on the worker's thread soon; any thread. Tasks posted before the drain ends are run.
 */
void http_worker_post(struct http_worker *worker, struct http_task *task);

/* ---- client: blocking, one connection, kept alive ---- */

struct http_client;

struct http_response {
    int code;
    struct span body; /* borrowed until the next call */
    struct http_header headers[HTTP_HEADERS_MAX];
    size_t header_count;
};

/* `address` is an IP literal or "localhost". */
enum status http_client_create(const char *address, uint16_t port, uint64_t timeout_ms,
                               struct http_client **out_client, struct error *err) MUST_CHECK;
void http_client_destroy(struct http_client *client); /* accepts NULL */
/* Connects if need be, sends, reads the whole answer. CLOSED, TIMEOUT, IO: no answer, the outcome
 * is unknown; the connection is dropped. Never sends a request twice. */
enum status http_client_request(struct http_client *client, const char *method, const char *path,
                                const struct http_field *fields, size_t field_count,
                                struct span body, struct http_response *out_response,
                                struct error *err) MUST_CHECK;
struct span http_response_get(const struct http_response *response, const char *lower_case_name);

#endif
