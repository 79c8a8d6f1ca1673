/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of the remote source.
 */
#ifndef SLUICE_FLOW_SOURCE_REMOTE_INTERNAL_H
#define SLUICE_FLOW_SOURCE_REMOTE_INTERNAL_H

#include <stdatomic.h>

#include "flow/source/source_internal.h"
#include "format/json/json.h"
#include "net/http/http.h"

enum { CLIENTS_IDLE_MAX = 4 /* each keeps room for a page */, TABLES_MAX = 256 };

/* ---- look.c: what GET /v1/log says, checked; immutable ---- */

struct look_group {
    struct wal_position end, started, recovered_to;
    uint64_t end_term, reclaimed_through;
    bool is_recovered;
};

struct look_part { /* of a table: one group */
    bool has_ack, is_damaged;
    struct wal_ack ack;
    struct wal_pending pending; /* behind the ack */
    struct wal_damage damage;
};

struct look_table {
    const char *name;
    uint32_t id; /* the log's */
    bool is_awaited;
    struct look_part *parts; /* one a group */
};

struct look_lost {
    uint32_t group;
    uint64_t first, last;
};

struct look {
    struct arena arena; /* owns all of it */
    uint64_t ticket;    /* rises with the time at which it was asked for */
    uint64_t came_at;   /* the last ticket when it came */
    struct log_id log;
    uint64_t incarnation, term, start, fenced_by;
    bool is_published_elsewhere;
    int64_t clock_ns; /* of the clock here before the log's */
    uint32_t group_count, table_count;
    struct look_group *groups;
    struct look_table *tables;
    struct look_lost *lost;
    size_t lost_count;
};

/* Ages are as by the clock here, where it is `now_wall_ns` (0: as the log says).
 * INVALID: it says less than a publisher needs, or contradicts itself. */
enum status look_parse(struct span json, int64_t now_wall_ns, struct look **out_look,
                       struct error *err) MUST_CHECK;
void look_destroy(struct look *look); /* accepts NULL */
const struct look_table *look_table_of(const struct look *look, const char *name); /* or NULL */

bool look_get_u64(const struct json_value *json, const char *key, uint64_t *out);
bool look_chain(const char *text, uint64_t *out); /* 16 hex digits */
bool look_pending(const struct json_value *json, struct wal_pending *out);
/* False: it is there and cannot be read. */
bool look_damage(const struct json_value *json, uint32_t group, struct wal_damage *out,
                 bool *out_is_there);

/* ---- keep.c: which log it is, on disk ---- */

/* NOT_FOUND; CORRUPT. */
enum status keep_load(struct env *env, const char *path, struct log_id *out_log,
                      uint32_t *out_group_count, struct error *err) MUST_CHECK;
enum status keep_save(struct env *env, const char *path, struct log_id log, uint32_t group_count,
                      struct error *err) MUST_CHECK;

/* ---- remote.c ---- */

struct remote {
    struct source source;
    struct env *env;
    struct source_options options;
    char url[SOURCE_URL_BYTES], path[PATH_BYTES_MAX], host[64];
    uint16_t port;
    bool is_known; /* source.log and group_count are set; before any other thread */
    struct env_mutex *lock;
    struct env_cond *wake;
    struct env_thread *thread;
    _Atomic uint64_t entries, bytes;
    /* guarded by lock: */
    bool is_ending;
    uint64_t tickets;
    struct look *look; /* NULL: none yet */
    int64_t looked_ns;
    bool is_answering, is_told; /* told: options.changed has heard that it does not */
    int64_t silent_since_ns;    /* 0: it answers */
    char why[300];
    int64_t answered_wall_ms;
    uint64_t failures;
    struct http_client *idle[CLIENTS_IDLE_MAX];
    size_t idle_count;
    char *tables[TABLES_MAX]; /* by number, from 1 on */
    uint32_t table_count;
};

static inline struct remote *remote_of(struct source *source)
{
    return CONTAINER_OF(source, struct remote, source);
}

/* One question over one connection. The answer is borrowed from the client, which is given back
 * when it is done with. */
struct question {
    struct remote *remote;
    struct http_client *client;
    struct http_response response;
    struct log_id log; /* as the answer says, */
    uint64_t start;    /* and which start of it */
};

/* TIMEOUT: no answer, or none that can be believed. IDENTITY: of another log. Else what the log
 * port refuses with: RECLAIMED, CORRUPT, NOT_FOUND (a schema), UNSUPPORTED (it publishes itself).
 */
enum status question_ask(struct question *question, struct remote *remote, const char *method,
                         const char *path, struct span body, struct error *err) MUST_CHECK;
/* The same, where the answer has to be of the start that the last look is of: else TIMEOUT. */
enum status question_ask_now(struct question *question, struct remote *remote, const char *path,
                             struct error *err) MUST_CHECK;
void question_end(struct question *question);
enum status remote_silent(const struct remote *remote, struct error *err, const char *what);
/* The name that a table was opened by, and the log's number for it; 0: the log does not have it. */
const char *remote_table(struct remote *remote, uint32_t table_id, uint32_t *out_id);
/* Ours, for the log's; 0: none. */
uint32_t remote_table_number(struct remote *remote, uint32_t id);

/* A request that is answered as GET /v1/log is: a new look. */
enum status remote_look_by(struct remote *remote, const char *method, const char *path,
                           struct span body, struct error *err) MUST_CHECK;

/* ---- questions.c ---- */

enum status remote_chain_at(struct source *source, uint32_t group, uint64_t seq, uint64_t *out,
                            struct error *err);
enum status remote_pending(struct source *source, uint32_t table_id, uint32_t group, uint64_t after,
                           struct wal_pending *out, struct error *err);
enum status remote_damage_above(struct source *source, uint32_t table_id, uint32_t group,
                                uint64_t after, struct wal_damage *out, bool *out_is_there,
                                struct error *err);
enum status remote_starts(struct source *source, uint32_t group, uint64_t after, uint64_t last,
                          struct buf *out, struct error *err);
enum status remote_schema_get(struct source *source, uint64_t fingerprint, struct buf *out,
                              struct error *err);
enum status remote_ack_table(struct source *source, uint32_t table_id, const struct wal_ack *acks,
                             struct error *err);
enum status remote_fence(struct source *source, uint64_t incarnation, struct error *err);

/* ---- pages.c ---- */

enum status remote_scan_open(struct source *source, uint32_t group, uint32_t table_id,
                             struct wal_position after, struct source_scan **out,
                             struct error *err);
enum status remote_scan_next(struct source_scan *scan, struct wal_view *out, struct error *err);
void remote_scan_close(struct source_scan *scan);
extern const struct source_ops remote_ops;

#endif
