/* SPDX-License-Identifier: Apache-2.0
 *
 * Publication: what the log holds goes into open tables, exactly once. Rules E1-E18 are restated in
 * README.md beside this file.
 *
 * A lane is the publication of one table. A few threads of the publisher work on lanes, each lane
 * by one of them at a time, so that a table which others contend for holds up no other; at most
 * `writers` of them write files, because that takes memory. Other threads ask for publication, wait
 * for positions and read states.
 */
#ifndef SLUICE_FLOW_PUBLISH_PUBLISH_H
#define SLUICE_FLOW_PUBLISH_PUBLISH_H

#include "format/arrow/arrow.h"
#include "lake/catalog/catalog.h"
#include "lake/iceberg/iceberg.h"
#include "lake/store/store.h"
#include "flow/source/source.h"

struct publisher;

enum { PUBLISH_THREADS_MAX = 64, PUBLISH_REMEDY_BYTES = 600 };

/* A table as its producer defines it. Everything is borrowed for the publisher's life. */
struct publish_table {
    const char *ns, *name;
    const struct arrow_schema *schema; /* of payloads; the _sluice_* position columns come on top */
    const char *const *sources;        /* one a column: where its value comes from; column docs */
    const char *time_column;           /* partitioned by day() of it; NULL: unpartitioned */
    const char *const *sort_columns;   /* within a file, ascending, nulls first */
    size_t sort_column_count;
};

enum publish_state {
    PUBLISH_IDLE,
    PUBLISH_WORKING,
    PUBLISH_RETRYING,   /* the catalog or store answers errors; back-off */
    PUBLISH_HALTED,     /* E15 */
    PUBLISH_STOOD_DOWN, /* E6 */
    PUBLISH_ELSEWHERE,  /* another server publishes the table */
};

struct publish_options {
    /* Another server publishes the log, and acknowledges to it: no lane works here, `state_dir` is
     * not touched, and neither catalog nor store is needed. */
    bool is_elsewhere;
    const char *state_dir;               /* journal and checkpoints; made if missing */
    uint64_t interval_ms;                /* default 10,000 */
    uint64_t bytes;                      /* of payload that publish at once; default 128 MiB */
    uint64_t range_bytes_max;            /* of payload in one commit; default 64 MiB */
    int zstd_level;                      /* default 1 */
    int64_t row_group_rows;              /* default 122,880 */
    int64_t page_rows;                   /* default 20,000; 2,000 where sorted by an id first */
    uint64_t retry_ms_min, retry_ms_max; /* back-off; defaults 100 and 30,000 */
    uint64_t threads;                    /* default 3: one writes, two wait or back off */
    uint64_t writers;                    /* lanes that write files at the same time; default 1 */
    uint64_t halt_confirm_ms; /* how long a durability halt is doubted; default 30,000 (E12) */
    const char *created_by;   /* of Parquet files */
    /* Told when a lane stops, when it has failed for a second (RETRYING) and when it goes on after
     * that (IDLE); on the thread that works on it. May be NULL. */
    void (*changed)(const char *table, enum publish_state state, const char *reason,
                    const char *remedy);
    /* Told when others have dropped columns of ours from the table, whose values are not stored
     * from then on ("body, events.name"; "": none any more). The same thread; may be NULL. */
    void (*dropped)(const char *table, const char *columns);
};

struct publish_options publish_options_default(const char *state_dir);

/* Opens the lanes of all tables. The source, catalog and store are borrowed. BUSY: another process
 * has the state directory. */
enum status publisher_create(struct env *env, const struct publish_options *options,
                             struct source *source, struct catalog *catalog, struct store *store,
                             const struct publish_table *tables, size_t table_count,
                             struct publisher **out_publisher, struct error *err) MUST_CHECK;
/* Starts the publisher's threads. */
enum status publisher_start(struct publisher *publisher, struct error *err) MUST_CHECK;
/* The threads end with the range that they are at; then what is there is published, once, in ranges
 * that begin within `timeout_ms` from the call. */
void publisher_stop(struct publisher *publisher, bool with_last_round, uint64_t timeout_ms);
void publisher_destroy(struct publisher *publisher); /* accepts NULL */

/* Publishes everything that is synced now, on the caller's thread; for one-job commands and tests
 * while the publisher's threads are not running. HALTED if any lane is, or what it halts for:
 * RECLAIMED, IDENTITY (E15). */
enum status publisher_run_once(struct publisher *publisher, struct error *err) MUST_CHECK;

/* docs/tables.md: every column of the tables, its type, field id at birth, and source. */
void publish_print_columns(const struct publish_table *tables, size_t count, struct buf *out);
/* The same as [{"table":, "partition":, "sort":, "columns": [{"id":, "name":, "type":, ...}]}]. */
void publish_print_columns_json(const struct publish_table *tables, size_t count, struct buf *out);

/* Holds all lanes still, between two rounds of each, for a copy of what they keep on disk; until
 * publisher_resume. BUSY: not within the time; nothing is held then. */
enum status publisher_pause(struct publisher *publisher, uint64_t timeout_ms,
                            struct error *err) MUST_CHECK;
void publisher_resume(struct publisher *publisher);

/* ---- states ---- */

struct publish_lane_info {
    char table[WAL_TABLE_NAME_MAX + 1];
    enum publish_state state;
    char reason[480];                  /* of a halt or of the last failure */
    char remedy[PUBLISH_REMEDY_BYTES]; /* the command that resolves it */
    char dropped[200];                 /* columns of ours that the table no longer has */
    struct wal_position committed;     /* of group 0 */
    uint64_t lag_rows, lag_bytes;
    uint64_t pinned_bytes;         /* of the log's files that wait for this lane */
    int64_t oldest_unpublished_ms; /* age; 0: none */
    uint64_t epoch;
    uint64_t commits_total, rows_total, files_total, retries_total, rebases_total;
    int64_t last_commit_wall_ms; /* 0: none yet */
    int64_t snapshot_id;         /* of the last own commit; -1: none */
    int64_t acked_wall_ms; /* published elsewhere: the last acknowledgement since the start; or 0 */
};

size_t publisher_lane_count(const struct publisher *publisher);
bool publisher_lane_at(struct publisher *publisher, size_t index,
                       struct publish_lane_info *out_info);

/* ---- receipts ---- */

/* How far an entry of the log has come. Times are of the wall clock, 0 where nothing tells them any
 * more; an entry that the log has let go of has no table, rows or term. */
struct publish_receipt {
    char table[WAL_TABLE_NAME_MAX + 1]; /* "": an entry without rows, too */
    uint32_t rows;
    uint64_t term;
    int64_t durable_ms; /* synced */
    bool is_visible;    /* committed to the table */
    int64_t visible_ms;
    int64_t snapshot_id; /* of that commit; -1: not known */
    bool is_released;    /* nothing here needs the log's copy any more */
};

/* NOT_FOUND: the log never gave that number out, or has not synced it. Reads the log and the
 * table; any thread. */
enum status publisher_receipt(struct publisher *publisher, uint32_t group, uint64_t seq,
                              struct publish_receipt *out_receipt, struct error *err) MUST_CHECK;

/* ---- waiting (`force`) ---- */

struct publish_waiter {
    /* Called once: STATUS_OK when the position is in the table and visible; HALTED; CLOSED. On the
     * thread that works on the lane, or inside publisher_wait. */
    void (*done)(struct publish_waiter *waiter, enum status status);
    void *context;
    struct publish_waiter *next;
    uint32_t table_id, group;
    uint64_t seq;
};

/* Asks for publication of a table up to (group, seq) at once. `waiter` must stay until `done`. */
void publisher_wait(struct publisher *publisher, struct publish_waiter *waiter, uint32_t table_id,
                    uint32_t group, uint64_t seq);
/* Published elsewhere: the other server has acknowledged something of the table. Any thread. */
void publisher_acknowledged(struct publisher *publisher, uint32_t table_id);
/* Does somebody wait for rows of the table? */
bool publisher_is_awaited(struct publisher *publisher, uint32_t table_id);
/* Asks for publication of what a table has now: there is no room for more. */
void publisher_hurry(struct publisher *publisher, uint32_t table_id);
/* HALTED if this table's lane is; what an admission asks before `force`. */
enum status publisher_check(struct publisher *publisher, uint32_t table_id,
                            struct error *err) MUST_CHECK;

/* ---- resolving halts; on the caller's thread, while others may work on other lanes ---- */

enum publish_decision {
    PUBLISH_ACCEPT,    /* positions stand; rows that were removed stay removed */
    PUBLISH_REPUBLISH, /* from the newest own ancestor; RECLAIMED if the log no longer has it */
    PUBLISH_FROM,      /* from a sequence number given */
};

/* `clear-halt --confirm` (E16): committed as an empty snapshot. */
enum status publisher_clear_halt(struct publisher *publisher, const char *table,
                                 enum publish_decision decision, uint32_t group, uint64_t from_seq,
                                 struct error *err) MUST_CHECK;
/* `tables rebind`: takes the table that stands under the name now as this lane's. Both refuse a
 * lane that is not halted (USAGE). */
enum status publisher_rebind(struct publisher *publisher, const char *table,
                             enum publish_decision decision, struct error *err) MUST_CHECK;
/* `log fork` (E7): what this log holds above the last position that it shares with each table goes
 * on under a new log id, so that nothing stands twice; halts that only this resolves are cleared.
 * HALTED: the table's history no longer tells where the two copies part. After a failure it can be
 * repeated. The publisher's threads must not be running, and the publisher is only good for
 * publisher_destroy afterwards. */
enum status publisher_fork(struct publisher *publisher, struct log_id *out_new_id,
                           struct error *err) MUST_CHECK;

/* ---- giving up (TE9) ---- */

struct publish_trim {
    char table[WAL_TABLE_NAME_MAX + 1];
    uint64_t entries, rows;
};

/* `log trim`: gives up what is synced and not published of one table, or of all (NULL), up to and
 * without entry `before` of each group; 0: all of it. What is being committed is left alone. The
 * gap is durable when this returns, and stands in the summary of the table's next commit; `told` is
 * called for each table that gives something up. CORRUPT: there is damage in it, to be repaired
 * first. Threads as for publisher_clear_halt. */
enum status publisher_trim(struct publisher *publisher, const char *table, uint64_t before,
                           void (*told)(void *context, const struct publish_trim *trim),
                           void *context, struct error *err) MUST_CHECK;

/* ---- after `log recover` (L36) ---- */

/* What a log would bring to one table under its new id. */
struct publish_adoption {
    char table[WAL_TABLE_NAME_MAX + 1];
    uint64_t entries, rows; /* that the log which was recovered does not have */
};

/* `log adopt`: this log was recovered on another machine. What it holds up to where that one got
 * its history is the other's to publish; the rest goes on under a new log id. `told` is called once
 * a table. Without `is_confirmed` nothing is changed. NOT_FOUND: no table knows of a recovery, and
 * it is not said that the recovered log never ran and never will (`is_alone`), or this one is not
 * fenced; IDENTITY: what was recovered is not this log's history. Threads as for publisher_fork;
 * repeatable.
 */
enum status publisher_adopt(struct publisher *publisher, bool is_confirmed, bool is_alone,
                            void (*told)(void *context, const struct publish_adoption *adoption),
                            void *context, struct log_id *out_new_id, struct error *err) MUST_CHECK;
/* Where a table says it stands, for `log recover`: one position a group in `out`, seq 0 where it
 * says nothing. NOT_FOUND: there is no such table. */
enum status publish_table_positions(struct catalog *catalog, struct catalog_ident ident,
                                    struct log_id log, uint32_t group_count,
                                    struct wal_position *out, uint64_t *out_incarnation,
                                    struct error *err) MUST_CHECK;

#endif
