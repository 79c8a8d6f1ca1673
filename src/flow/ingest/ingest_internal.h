/* SPDX-License-Identifier: Apache-2.0
 *
 * A request's way through this module: otlp_http.c checks and decodes it into the worker's
 * builders, submit.c turns builders into submissions and completes them, otlp_http.c answers. All
 * of it on the HTTP worker's thread, but for the two callbacks named below.
 */
#ifndef SLUICE_FLOW_INGEST_INTERNAL_H
#define SLUICE_FLOW_INGEST_INTERNAL_H

#include <stdatomic.h>

#include "flow/ingest/dead_letters.h"
#include "flow/ingest/gather.h"
#include "flow/ingest/ingest.h"
#include "flow/ingest/otlp_decode.h"
#include "format/codec/codec.h"

enum { ACK_BUCKETS = 24 };

enum ingest_counter {
    COUNT_REQUESTS,
    COUNT_ITEMS,
    COUNT_ROWS,
    COUNT_REJECTED_ITEMS,
    COUNT_REPAIRED_ITEMS,
    COUNT_MOVED_TIMES,
    COUNT_DEAD_LETTERS_LOST,
    COUNT_REFUSED_REQUESTS,
    COUNT_BAD_REQUESTS,
    COUNT_REPEATS,
    COUNT_BODY_BYTES,
    COUNT_EXPANDED_BYTES,
    COUNT_PAYLOAD_BYTES,
    COUNT_ENTRIES,
    COUNT_ACK_NS,
    COUNT_ACKS,
    COUNTER_COUNT
};

struct ingest {
    struct env *env;
    struct ingest_options options;
    struct wal *wal;
    struct publisher *publisher;
    struct dead_letters *dead_letters; /* or NULL */
    struct http_route routes[SIGNAL_COUNT];
    uint32_t table_ids[OTLP_TABLE_COUNT];
    uint64_t hash_seed;
    struct ingest_worker *workers;
    struct ingest_route {
        struct ingest *ingest;
        enum otlp_signal signal;
    } route_contexts[SIGNAL_COUNT];
    _Atomic int64_t refusal_told_ns; /* 0: never */
};

enum ingest_mode { MODE_AUTO, MODE_WAIT_FOR, MODE_REMOTE, MODE_FORCE };

/* A request whose rows are in builders or in a submission. */
struct ingest_request {
    struct ingest_request *next;
    struct ingest_worker *worker;
    struct http_exchange *exchange; /* NULL once answered */
    enum otlp_signal signal;
    enum ingest_mode mode;
    bool has_producer;
    char producer[WAL_PRODUCER_ID_MAX];
    uint8_t producer_length;
    uint64_t producer_sequence;
    struct hash128 body_hash;
    uint64_t items, rejected, repaired, moved_times;
    char reject_reason[240];
    uint32_t first_row[OTLP_TABLE_COUNT], rows[OTLP_TABLE_COUNT];
    /* set when its submission is durable */
    uint64_t term, seq[OTLP_TABLE_COUNT];
    uint32_t group;
    /* `force` and `remote` */
    struct publish_waiter waiters[OTLP_TABLE_COUNT];
    struct mirror_waiter mirror_waiter;
    _Atomic uint32_t waits_left;
    _Atomic int wait_status; /* enum status: the worst */
    struct http_task task;
    int64_t deadline_ns;
};

/* One hand-over to the log. Kept and reused, for its buffers. */
struct ingest_submission {
    struct ingest_submission *next; /* free list */
    struct wal_submission wal;
    struct ingest_worker *worker;
    struct ingest_request *requests;
    struct wal_entry entries[OTLP_TABLE_COUNT + 1];
    int tables[OTLP_TABLE_COUNT + 1]; /* otlp_table_id; -1: PRODUCERS */
    struct buf payloads[OTLP_TABLE_COUNT];
    struct buf contributions[OTLP_TABLE_COUNT + 1];
    struct http_task task;
    int64_t begun_ns;
    enum status status;
    struct error err;
};

struct ingest_worker {
    struct ingest *ingest;
    struct http_worker *http;
    struct otlp_decoder decoder;
    struct codec_expander *expander;
    struct buf expanded;
    struct ingest_request *requests, **requests_tail; /* whose rows are in the builders */
    uint32_t request_count;
    struct gather gather;
    struct buf contributions[OTLP_TABLE_COUNT + 1]; /* of them; the last: PRODUCERS */
    struct ingest_submission *free_submissions;
    struct ingest_request *waiting;   /* for their commit, or the mirror */
    struct http_exchange *parked[64]; /* waiting for a producer's write in flight */
    unsigned parked_count;
    _Atomic bool has_parked; /* asks the other workers for a wake when they have written */
    _Atomic bool is_woken;   /* `wake` is posted */
    struct http_task wake;
    unsigned in_flight;
    size_t in_flight_bytes;
    uint64_t retry_ms; /* of the request being handled, should it be refused; 0: not known */
    _Atomic uint64_t counters[COUNTER_COUNT];
    _Atomic uint64_t ack_buckets[ACK_BUCKETS];
};

static inline void ingest_count(struct ingest_worker *worker, enum ingest_counter counter,
                                uint64_t by)
{
    atomic_fetch_add_explicit(&worker->counters[counter], by, memory_order_relaxed);
}

/* Counts a request that is stored; once. */
void ingest_count_stored(const struct ingest_request *request);
/* Counts a request that is to come again, and tells of it now and then. */
void ingest_count_refused(struct ingest_worker *worker, const char *why);

/* submit.c */
bool ingest_worker_is_full(const struct ingest_worker *worker);
void ingest_worker_add(struct ingest_worker *worker, struct ingest_request *request);
void ingest_worker_round(void *context, struct http_worker *http);
void ingest_worker_flush(struct ingest_worker *worker);
void ingest_force(struct ingest_request *request);
/* Answers once everything up to `seq` is in the mirror. */
void ingest_remote(struct ingest_request *request, uint64_t seq);

/* room.c: of the tables that the request being decoded touched */
/* HALTED if one cannot be committed to. */
enum status ingest_check_lanes(struct ingest_worker *worker, struct error *err) MUST_CHECK;
/* NO_SPACE, with worker->retry_ms, if one has no room on the log. */
enum status ingest_check_room(struct ingest_worker *worker, struct error *err) MUST_CHECK;
/* The log has no room: what is not published is in the way, whatever the interval. */
void ingest_hurry_all(struct ingest_worker *worker);
bool ingest_may_store_dead_letters(struct ingest_worker *worker);

/* otlp_http.c */
void ingest_handle(void *context, struct http_exchange *exchange);
bool ingest_admit(void *context, struct http_exchange *exchange);
void ingest_refuse(void *context, struct http_exchange *exchange, int code, const char *why);
void ingest_answer(struct ingest_request *request, const char *boundary);
void ingest_answer_error(struct ingest_request *request, enum status status, const char *message);

#endif
