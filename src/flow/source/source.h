/* SPDX-License-Identifier: Apache-2.0
 *
 * Where publication reads a log from, and acknowledges to: the log of this process, or another
 * server's by its log port (docs/log_port.md). What is asked is the same.
 *
 * Of a remote log some questions are asked when they come up, and others are answered from a *look*
 * at it, which is whole, was checked, and never goes back: source_refresh takes a new one. A lane
 * begins its rounds with that. Functions with an `err` may fail; TIMEOUT means that nobody answered
 * or not as it should be, so that nothing is known, and never that something is not there. Those
 * without one answer from the last look; before the first one a remote log says nothing at all.
 *
 * Threads: any, at the same time; a scan belongs to one.
 */
#ifndef SLUICE_FLOW_SOURCE_SOURCE_H
#define SLUICE_FLOW_SOURCE_SOURCE_H

#include "log/wal/wal.h"

struct source;

enum { SOURCE_URL_BYTES = 256, SOURCE_GROUPS_MAX = 64 };

/* Borrows the log. */
enum status source_local_create(struct wal *wal, struct source **out_source,
                                struct error *err) MUST_CHECK;

struct source_options {
    const char *url;            /* "http://HOST:PORT" of the log port */
    const char *path;           /* of the file that keeps which log it is */
    uint64_t look_ms;           /* between two looks without being asked; default 200 */
    uint64_t answer_ms_max;     /* default 10,000 */
    uint64_t first_look_ms_max; /* how long to wait for it where no file is yet; default 30,000 */
    /* Told when the log has not answered for a second (why) and when it answers again (NULL); on
     * any thread. May be NULL. */
    void (*changed)(const char *why);
};

struct source_options source_options_default(const char *url, const char *path);
/* INVALID: no such URL. */
enum status source_url_check(const char *url, struct error *err) MUST_CHECK;
/* Whether a log that can be published from here answers there. */
enum status source_probe(struct env *env, const char *url, struct error *err) MUST_CHECK;
/* Text is borrowed. Starts the thread that looks. Where the file is there, nobody has to answer
 * yet. TIMEOUT: nobody did; IDENTITY: the log there is another than the file says; CORRUPT: the
 * file. */
enum status source_remote_create(struct env *env, const struct source_options *options,
                                 struct source **out_source, struct error *err) MUST_CHECK;
void source_destroy(struct source *source); /* accepts NULL */

/* NULL: the log is elsewhere. */
struct wal *source_wal(const struct source *source);

/* Of a remote log. */
struct source_state {
    char url[SOURCE_URL_BYTES];
    bool is_answering;
    char why[300];                       /* it does not; "" */
    int64_t answered_wall_ms;            /* the last time that it did; 0: never */
    uint64_t failures_total;             /* looks that came to nothing */
    uint64_t entries_total, bytes_total; /* read from it; bytes: of payloads */
};
/* False: the log is here. */
bool source_state(struct source *source, struct source_state *out_state);

/* ---- the log ---- */

/* IDENTITY: another log answers there now. */
enum status source_refresh(struct source *source, struct error *err) MUST_CHECK;
/* Of which start of the log the last look is: never the same for two. A local log has one. */
uint64_t source_start(struct source *source);

struct log_id source_log_id(const struct source *source);
uint32_t source_group_count(const struct source *source);
uint64_t source_term(struct source *source);
uint64_t source_incarnation(struct source *source);
uint64_t source_fenced_by(struct source *source);
/* As wal_fence; durable there when it returns. */
enum status source_fence(struct source *source, uint64_t incarnation, struct error *err) MUST_CHECK;
/* As wal_recovered_to and wal_recovered_without. */
bool source_recovered_to(struct source *source, uint32_t group, struct wal_position *out_end);
bool source_recovered_without(struct source *source, size_t index, uint32_t *out_group,
                              uint64_t *out_first, uint64_t *out_last);

struct wal_position source_end(struct source *source, uint32_t group);
/* The end at its last start: no start lies behind it. */
struct wal_position source_started(struct source *source, uint32_t group);
/* The last entry at or below `seq` that is gone, or may be. */
uint64_t source_reclaimed_below(struct source *source, uint32_t group, uint64_t seq);
/* The chain at `seq`; NOT_FOUND: the log does not tell it any more. */
enum status source_chain_at(struct source *source, uint32_t group, uint64_t seq,
                            uint64_t *out_chain, struct error *err) MUST_CHECK;
/* Appends where the log started anew within (after, last], as struct wal_position, in order.
 * RECLAIMED, CORRUPT: nobody can tell. */
enum status source_starts(struct source *source, uint32_t group, uint64_t after, uint64_t last,
                          struct buf *out_positions, struct error *err) MUST_CHECK;
/* Appends the schema message of a fingerprint; NOT_FOUND. */
enum status source_schema_get(struct source *source, uint64_t fingerprint, struct buf *out,
                              struct error *err) MUST_CHECK;

/* ---- tables ---- */

/* A number for `name` that holds as long as the source does. A local log gets to know the table; a
 * remote one need not have it yet. */
enum status source_table_open(struct source *source, const char *name, uint32_t *out_table_id,
                              struct error *err) MUST_CHECK;
/* False: it was never acknowledged. */
bool source_ack_get(struct source *source, uint32_t table_id, uint32_t group,
                    struct wal_ack *out_ack);
/* As wal_ack_table. */
enum status source_ack_table(struct source *source, uint32_t table_id, const struct wal_ack *acks,
                             struct error *err) MUST_CHECK;
/* Up to here nothing of the table is to be published any more, as its ack says. */
uint64_t source_done_through(struct source *source, uint32_t table_id, uint32_t group);
/* What there is behind that; of one look with source_end, which was taken before it. */
struct wal_pending source_lag(struct source *source, uint32_t table_id, uint32_t group);
/* The first damage behind that which may hold rows of the table. */
bool source_damage(struct source *source, uint32_t table_id, uint32_t group,
                   struct wal_damage *out_damage);
/* The same behind any place. */
enum status source_pending(struct source *source, uint32_t table_id, uint32_t group, uint64_t after,
                           struct wal_pending *out_pending, struct error *err) MUST_CHECK;
enum status source_damage_above(struct source *source, uint32_t table_id, uint32_t group,
                                uint64_t after, struct wal_damage *out_damage, bool *out_is_there,
                                struct error *err) MUST_CHECK;
/* Somebody waits there for rows of the table to be committed. */
bool source_is_awaited(struct source *source, uint32_t table_id);

/* ---- entries, as wal_scan ---- */

struct source_scan;

/* `after`: its chain 0 where it is not known; else the log has to have it there, if it can tell. */
enum status source_scan_open(struct source *source, uint32_t group, uint32_t table_id,
                             struct wal_position after, struct source_scan **out_scan,
                             struct error *err) MUST_CHECK;
/* A view has no contributions. */
enum status source_scan_next(struct source_scan *scan, struct wal_view *out_view,
                             struct error *err) MUST_CHECK;
void source_scan_close(struct source_scan *scan); /* accepts NULL */

#endif
