/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of the log port.
 */
#ifndef SLUICE_FLOW_FEED_INTERNAL_H
#define SLUICE_FLOW_FEED_INTERNAL_H

#include <stdatomic.h>

#include "flow/feed/feed.h"
#include "flow/positions/positions.h"
#include "format/json/json.h"

enum {
    FEED_ROUTES = 8,
    FEED_WAITING_MAX = 1024, /* long polls of a worker */
    FEED_WAIT_MS_MAX = 30000,
    FEED_BODY_BYTES_MAX = 64 << 10,
    FEED_ANSWER_BYTES_MAX = 256 << 20, /* of pages that were answered and not taken */
    FEED_TTL_MS_LEAST = 100,
    FEED_TTL_MS_MOST = 604800000,
};

struct feed_worker {
    struct feed *feed;
    struct http_worker *http;
    struct http_task task;
    _Atomic bool is_posted;
    struct waiting *waiting;
    uint32_t waiting_count;
};

struct feed {
    struct env *env;
    struct wal *wal;
    struct feed_options options;
    uint64_t start;               /* random: of this start of the server */
    struct wal_position *started; /* a group: the log's end at it */
    struct http_route routes[FEED_ROUTES];
    struct feed_worker workers[FEED_WORKERS];
    struct env_mutex *lock;
    struct env_cond *work;
    struct env_thread *thread;
    uint64_t waiting; /* guarded by lock */
    bool is_ending;   /* guarded by lock */
    _Atomic bool is_stopping;
    _Atomic uint64_t pages, rows, bytes, refusals;
};

/* ---- ask.c: what a request says ---- */

/* "<log>/<group>/<term>/<seq>[.<index>]", or "<seq>[.<index>]" alone. */
struct cursor_text {
    char log[LOG_ID_TEXT_BYTES]; /* "": a number alone */
    uint64_t group, term, seq;
    bool has_index; /* rows behind `index` of the entry are wanted; else all of it was seen */
    uint64_t index;
};
bool cursor_parse(struct span text, struct cursor_text *out);

struct row_ask {
    uint32_t group, table_id;
    struct cursor_text after;
    bool has_after;
    uint64_t bytes_max, rows_max, wait_ms;
    uint32_t member, member_count;
    enum arrow_compression compression;
    bool has_consumer;
    char consumer[WAL_CONSUMER_NAME_MAX + 1], owner[WAL_OWNER_MAX + 1];
    char table[WAL_TABLE_NAME_MAX + 1];
};

/* "I/N" */
bool member_parse(struct span text, uint32_t *out_member, uint32_t *out_count);
/* 1 to 64 of A-Z a-z 0-9 . _ - */
bool consumer_name_parse(struct span text, char out_name[WAL_CONSUMER_NAME_MAX + 1]);
/* Path and query, checked for themselves. INVALID with what is wrong. */
enum status row_ask_parse(const struct http_head *head, struct row_ask *out_ask,
                          struct error *err) MUST_CHECK;

/* What is asked for below /v1/log/GROUP/ but rows. */
struct entry_ask {
    uint32_t group, table_id;
    char table[WAL_TABLE_NAME_MAX + 1]; /* "": all */
    struct wal_position after;          /* chain 0: not said */
    uint64_t last, bytes_max;
};
enum status entry_ask_parse(const struct http_head *head, struct entry_ask *out_ask,
                            struct error *err) MUST_CHECK;

/* ---- answer.c ---- */

/* {"code":, "message":, members of the caller's own}: between begin and end he writes to `json`. */
struct refusal {
    struct buf body;
    struct json_writer json;
    int http_code;
};
void refusal_begin(struct refusal *refusal, int http_code, const char *code, const char *format,
                   ...) PRINTF_LIKE(4, 5);
void refusal_end(struct refusal *refusal, struct feed *feed, struct http_exchange *exchange);
void refuse(struct feed *feed, struct http_exchange *exchange, int http_code, const char *code,
            const char *format, ...) PRINTF_LIKE(5, 6);
/* What a failure of the log itself comes to. */
void refuse_status(struct feed *feed, struct http_exchange *exchange, const struct error *err);
void put_u64(struct json_writer *json, const char *key, uint64_t value);
void put_text(struct json_writer *json, const char *key, const char *value);
/* "<log>/<group>/<term>/<seq>" */
enum { POSITION_TEXT_BYTES = 112 };
void position_text(struct wal *wal, uint32_t group, uint64_t term, uint64_t seq,
                   char out[POSITION_TEXT_BYTES]);
/* What the hold of a consumer lacks: names with commas between; "" if it is as asked. NULL: there
 * is no such consumer. */
void flags_text(const struct wal_consumer *consumer, char out[80]);
/* "<log>/<incarnation>/<term>/<start>": which log answers, and which start of it. */
enum { LOG_TEXT_BYTES = 112 };
void log_text(const struct feed *feed, char out[LOG_TEXT_BYTES]);
/* Gives the body away. */
void respond_json(struct feed *feed, struct http_exchange *exchange, struct buf *body);
/* GROUP_CONFLICT and its like; false: the verdict is OK. */
bool refuse_verdict(struct feed *feed, struct http_exchange *exchange,
                    const struct wal_consumer_key *key, enum wal_consumer_verdict verdict,
                    const struct wal_consumer *consumer);

void refuse_ahead(struct feed *feed, struct http_exchange *exchange, uint32_t group,
                  uint64_t asked);
void refuse_other_history(struct feed *feed, struct http_exchange *exchange, uint32_t group,
                          uint64_t seq, uint64_t asked_term);
/* Entries of the table behind `after` are gone (L32). */
void refuse_reclaimed(struct feed *feed, struct http_exchange *exchange, uint32_t group,
                      uint32_t table_id, uint64_t after);

/* A damaged range is next. */
void refuse_damaged(struct feed *feed, struct http_exchange *exchange, uint32_t group,
                    uint32_t table_id, uint64_t after, const struct error *err);

/* ---- log.c ---- */

void handle_log(void *context, struct http_exchange *exchange); /* GET /v1/log */
void respond_log(struct feed *feed, struct http_exchange *exchange);
/* "pending" and "damage" of a table behind a place. */
void put_behind(struct json_writer *json, struct wal *wal, uint32_t group, uint32_t table_id,
                uint64_t after);

/* ---- entries.c, publication.c: for a publisher elsewhere ---- */

void handle_below_log(void *context, struct http_exchange *exchange); /* rows too */
/* The position is not this log's, or behind its end; false: it is, or nobody can tell. */
bool refuse_foreign(struct feed *feed, struct http_exchange *exchange, uint32_t group,
                    struct wal_position at, bool may_lack_chain);
void handle_publication(void *context, struct http_exchange *exchange); /* POST */

/* ---- consumers.c ---- */

void handle_consumers(void *context, struct http_exchange *exchange);       /* GET of all */
void handle_consumer(void *context, struct http_exchange *exchange);        /* GET of one */
void handle_consumer_put(void *context, struct http_exchange *exchange);    /* PUT */
void handle_consumer_post(void *context, struct http_exchange *exchange);   /* ack, renew */
void handle_consumer_delete(void *context, struct http_exchange *exchange); /* DELETE */

/* ---- page.c: one page of rows ---- */

struct page {
    struct buf body; /* an Arrow IPC stream; empty: no rows */
    uint64_t rows;
    uint64_t term, seq;         /* the cursor behind it */
    uint64_t end_term, end_seq; /* of the log, when it was read */
    bool is_at_limit;           /* there may be more at once */
};
/* RECLAIMED, CORRUPT (a damaged range is next), else what the log answers. */
enum status page_read(struct feed *feed, const struct row_ask *ask, struct page *out_page,
                      struct error *err) MUST_CHECK;
void page_deinit(struct page *page);

/* ---- rows.c: GET /v1/log/<group>/rows ---- */

void handle_rows(void *context, struct http_exchange *exchange);
/* Looks at those who wait; on their worker's thread. */
void rows_look(struct feed_worker *worker);
/* Of a worker that is gone. */
void rows_forget(struct feed_worker *worker);

#endif
