/* SPDX-License-Identifier: Apache-2.0
 *
 * The log port: rows of the log, and leases on it, for consumers over the network; entries and
 * acknowledgements for a publisher elsewhere. The protocol is docs/log_port.md; rules L23, L31-L34.
 *
 * Requests run on the HTTP workers that feed_attach gives routes to. A long poll holds no worker:
 * it stands in a list of its worker's, and a thread "feed" posts a task there when the log has
 * moved. An ack waits on its worker for one sync of the log's state.
 */
#ifndef SLUICE_FLOW_FEED_FEED_H
#define SLUICE_FLOW_FEED_FEED_H

#include "log/wal/wal.h"
#include "net/http/http.h"

struct feed;

enum { FEED_WORKERS = 2 };

/* Of a log that another server publishes (docs/log_port.md, publication). Callbacks may be NULL,
 * and run on the workers. */
struct feed_options {
    bool is_published_elsewhere;                          /* its acknowledgements are accepted */
    bool (*is_awaited)(void *context, uint32_t table_id); /* does somebody wait for its rows? */
    void (*acknowledged)(void *context, uint32_t table_id);
    void *context;
};

/* Borrows the log; `options` may be NULL. Starts the thread. */
enum status feed_create(struct env *env, struct wal *wal, const struct feed_options *options,
                        struct feed **out_feed, struct error *err) MUST_CHECK;
/* Fills routes, limits and callbacks of a server of FEED_WORKERS workers; the feed must outlive it.
 */
void feed_attach(struct feed *feed, struct http_options *inout_options);
/* Answers those who wait, and lets nobody wait any more; ends the thread. Before the HTTP server is
 * drained. */
void feed_stop(struct feed *feed);
void feed_destroy(struct feed *feed); /* accepts NULL; after the HTTP server */

struct feed_stats {
    uint64_t pages, rows, bytes; /* served */
    uint64_t refusals;           /* answers of 4xx and 5xx */
    uint64_t waiting;            /* long polls now */
};
struct feed_stats feed_stats(const struct feed *feed);

#endif
