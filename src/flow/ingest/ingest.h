/* SPDX-License-Identifier: Apache-2.0
 *
 * From requests to log entries. Today OTLP over HTTP with protobuf bodies: /v1/logs, /v1/traces,
 * /v1/metrics.
 *
 * Each HTTP worker owns one builder a table and group. Requests that arrive while a write is in
 * flight share the builders; when the log is ready for more they become one submission (L12). A
 * request's answer waits for its submission. No locks: what crosses threads are submissions (to the
 * log) and tasks (back to the worker).
 */
#ifndef SLUICE_FLOW_INGEST_INGEST_H
#define SLUICE_FLOW_INGEST_INGEST_H

#include "flow/publish/publish.h"
#include "log/mirror/mirror.h"
#include "log/wal/wal.h"
#include "net/http/http.h"

struct ingest;

struct ingest_options {
    size_t expanded_bytes_max;   /* of a body; default 32 MiB */
    uint32_t items_max;          /* of a request; default 500,000 */
    size_t entry_bytes_max;      /* of the rows that a request becomes; default 64 MiB */
    uint64_t force_timeout_ms;   /* of `force` and `remote`; default 30,000 */
    struct mirror *mirror;       /* borrowed; NULL: `remote` is refused */
    const char *dead_letter_dir; /* for rejected items while their table's lane stands still, see
                                  * dead_letters.h; NULL: they are counted alone */
    uint64_t dead_letter_bytes;  /* at most there; default 64 MiB */
    unsigned worker_count;
    /* Told, every ten seconds at most, that requests are refused for no fault of theirs. May be
     * NULL; any worker's thread. */
    void (*refusing)(const char *why, uint64_t refused_total);
};

struct ingest_options ingest_options_default(void);

/* The tables that ingest fills, for the publisher. Lives as long as the process. */
const struct publish_table *ingest_tables(size_t *out_count);

/* Registers tables and schemas in the log. `publisher` may be NULL (then `force` is refused). */
enum status ingest_create(struct env *env, const struct ingest_options *options, struct wal *wal,
                          struct publisher *publisher, struct ingest **out_ingest,
                          struct error *err) MUST_CHECK;
/* After the HTTP server is destroyed. Accepts NULL. */
void ingest_destroy(struct ingest *ingest);

/* What the HTTP server needs: routes and worker hooks with their context. */
void ingest_attach(struct ingest *ingest, struct http_options *options);

struct ingest_stats {
    uint64_t requests, items, rows, rejected_items, repaired_items, moved_times;
    uint64_t dead_letters_lost; /* rejected items whose bytes are nowhere */
    uint64_t refused_requests, bad_requests, repeats;
    uint64_t body_bytes, expanded_bytes, payload_bytes, entries;
    uint64_t ack_ns_sum, acks; /* head complete to answer, durable ones */
    uint64_t ack_buckets[24];  /* count by ack_le_us(i) */
};
struct ingest_stats ingest_stats(struct ingest *ingest);
/* Upper bound of bucket i in microseconds: 50 * 2^i. */
uint64_t ingest_ack_bucket_us(size_t index);

/* Pure: decodes one OTLP request into batches and hands each to `each`. For benchmarks, fuzzers and
 * tests; the server goes the same way. `signal` is "logs", "traces" or "metrics". */
typedef enum status (*ingest_batch_fn)(void *context, const struct publish_table *table,
                                       const struct arrow_batch *batch, struct error *err);
enum status ingest_decode(const char *signal, struct span body, int64_t received_us,
                          uint64_t *out_rejected, ingest_batch_fn each, void *context,
                          struct error *err) MUST_CHECK;

#endif
