/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of this module. README.md has the protocol; each file its part:
 *   publisher.c  threads, waiting              lane.c     the steps in order (E8)
 *   own.c        what a table says of us (E1)  decide.c   what follows from it (E12), pure
 *   halt.c       states, halts, their remedies journal.c  record, checkpoint, halt on disk
 *   range.c      rows out of the log           bind.c     our columns in their table
 *   order.c      partitions and sort order     rows.c     sorted Parquet files
 *   row_sum.c    hashes of rows (E3)           columns.c  a table's columns at its birth
 *   commit.c     one commit, what it says      resolve.c  takeovers, operators' decisions
 *   fork.c       where copies of a log part    damage.c   files that do not verify
 *   receipt.c    how far a write has come        standing.c how table and log stand to each other
 *   elsewhere.c  where nothing is published
 */
#ifndef SLUICE_FLOW_PUBLISH_INTERNAL_H
#define SLUICE_FLOW_PUBLISH_INTERNAL_H

#include <stdatomic.h>

#include "flow/positions/positions.h"
#include "flow/publish/publish.h"
#include "format/json/json.h"
#include "format/parquet/parquet.h"

enum {
    PUBLISH_GROUPS_MAX = 64,
    OWNER_TEXT_BYTES = 128,
    DIGEST_TEXT_BYTES = 65,
    PREFIX_TEXT_BYTES = 33,
    ATTEMPTS_MAX = 16
};

/* A position for each group of the log. */
struct positions {
    uint32_t count;
    struct wal_position at[PUBLISH_GROUPS_MAX];
};

/* Newer is larger, incarnation first (L36). {0, 0}: none. */
struct epoch {
    uint64_t incarnation, counter;
};

static inline int epoch_compare(struct epoch a, struct epoch b)
{
    if (a.incarnation != b.incarnation)
        return a.incarnation < b.incarnation ? -1 : 1;
    return a.counter < b.counter ? -1 : a.counter > b.counter;
}

static inline bool position_equal(struct wal_position a, struct wal_position b)
{
    return a.seq == b.seq && a.chain == b.chain;
}

bool positions_equal(const struct positions *a, const struct positions *b);
bool positions_are_zero(const struct positions *positions);
/* "0:17:9f3c...;1:..." and back; false where the text is none. */
void positions_to_text(const struct positions *positions, struct buf *out);
bool positions_from_text(const char *text, struct positions *out_positions);
void epoch_to_text(struct epoch epoch, char out[48]); /* "1.3" */
bool epoch_from_text(const char *text, struct epoch *out_epoch);
void hash128_to_text(struct hash128 hash, char out[33]);
bool hash128_from_text(const char *text, struct hash128 *out_hash);

/* ---- own.c: what the table says (E1) ---- */

enum own_walk {
    WALK_NONE,    /* nothing to look for */
    WALK_FOUND,   /* our newest commit is an ancestor of main */
    WALK_EXPIRED, /* the ancestors end above it: proves nothing */
    WALK_LOST,    /* main's history goes past its place without it */
};

struct own_state {
    bool has_property, has_summary;
    struct positions positions; /* by property, else summary; groups in neither: seq 0 */
    uint32_t stated_groups;     /* so many of them the table names, from 0 on */
    struct epoch epoch;
    char digest[DIGEST_TEXT_BYTES];
    int64_t sequence; /* Iceberg sequence number of the newest own commit */
    struct hash128 row_sum;
    int32_t row_sum_schema;
    enum own_walk walk;
    int64_t snapshot_id;       /* of the newest own commit that the walk met; -1 */
    const char *manifest_list; /* of that snapshot; borrowed from the table */
};

/* The key of a property or summary entry: "sluice.<log id>.<share>.<name>". */
void own_key(struct log_id log, const char *name, char out[96]);
enum status own_state_read(const struct iceberg_table *table, struct log_id log,
                           uint32_t group_count, struct own_state *out_state,
                           struct error *err) MUST_CHECK;
/* What an own commit that moved rows says of its range. */
struct own_commit {
    struct positions positions, since;
    bool has_since;     /* `since` and `starts` were written */
    const char *starts; /* borrowed from the table */
};

/* Steps from *inout_snapshot (NULL: main) to the next older own commit; false: no more are known.
 */
bool own_commit_next(const struct iceberg_table *table, struct log_id log, uint32_t group_count,
                     const struct iceberg_snapshot **inout_snapshot, struct own_commit *out_commit);

/* The state that the newest ancestor with an own summary tells, for --republish; false: none. */
bool own_state_of_ancestor(const struct iceberg_table *table, struct log_id log,
                           uint32_t group_count, struct own_state *out_state);

/* ---- adopt.c: what a recovered log says in tables (L36) ---- */

struct lane;

struct recovered {
    struct positions positions;  /* the last entries of the old history that it has */
    struct positions taken_over; /* where this table stood when it took over */
    const char
        *lost; /* "group:first-last;...", of that history; borrowed from the table; or NULL */
};

/* "sluice.<log id>.0.<name>-<incarnation>" */
void recovered_key(struct log_id log, const char *name, uint64_t incarnation, char out[96]);
/* Of a log that was recovered; `out_lost` as above. False: it never was. */
bool recovered_here(struct source *source, struct positions *out_positions, struct buf *out_lost);
/* Has another machine recovered this log, as the table shows? Then the log is fenced: FENCED. */
enum status lane_check_fence(struct lane *lane, const struct own_state *own, struct error *err);
enum status lane_fenced(struct lane *lane, struct error *err);

/* ---- journal.c: what a lane keeps on disk ---- */

struct checkpoint {
    bool exists;
    char owner[OWNER_TEXT_BYTES]; /* machine id, device, inode (E4) */
    char uuid[UUID_TEXT_BYTES];   /* the table that is bound */
    struct epoch epoch;
    struct positions committed, through;
    int64_t snapshot_id, sequence;
};

struct record {
    bool exists, is_descriptor;
    char owner[OWNER_TEXT_BYTES];
    char uuid[UUID_TEXT_BYTES];
    struct epoch epoch;
    struct positions from, to;      /* (a, b]; an intent has `from` alone */
    char prefix[PREFIX_TEXT_BYTES]; /* of the names of its files */
    char digest[DIGEST_TEXT_BYTES];
    struct hash128 row_sum; /* of the range */
    uint64_t rows;
    int64_t snapshot_id;
    struct iceberg_base base;
    int32_t spec_id, schema_id;
    uint32_t partition_count;        /* fields of that spec */
    struct iceberg_data_file *files; /* owned by `arena` */
    size_t file_count;
    struct uuid attempts[ATTEMPTS_MAX]; /* that may have left metadata behind */
    uint32_t attempt_count;
    struct arena arena;
};

void record_deinit(struct record *record);

struct lane;

/* A missing file leaves `exists` false. CORRUPT names the file. */
enum status checkpoint_load(struct lane *lane, struct error *err) MUST_CHECK;
enum status checkpoint_save(struct lane *lane, const struct checkpoint *checkpoint,
                            struct error *err) MUST_CHECK; /* synced; then lane->checkpoint is it */
enum status record_load(struct lane *lane, struct error *err) MUST_CHECK;
enum status record_save(struct lane *lane, const struct record *record,
                        struct error *err) MUST_CHECK;
enum status record_remove(struct lane *lane, struct error *err) MUST_CHECK;
/* A halt outlives the process (E15). */
enum status halt_load(struct lane *lane, struct error *err) MUST_CHECK;
enum status halt_save(struct lane *lane, struct error *err) MUST_CHECK;
/* HALTED, RECLAIMED or IDENTITY. */
enum status halt_status(const struct lane *lane);
enum status halt_remove(struct lane *lane, struct error *err) MUST_CHECK;

/* A suspected roll-back outlives the process too: expiry by others may take its evidence away. */
enum status doubt_load(struct lane *lane, struct error *err) MUST_CHECK;
enum status doubt_save(struct lane *lane, struct error *err) MUST_CHECK;
enum status doubt_remove(struct lane *lane, struct error *err) MUST_CHECK;

/* ---- trim.c: what an operator gave up ---- */

struct gap {
    uint32_t group;
    uint64_t first, last;
    bool is_told; /* a commit has said it */
};

/* Those that no commit has said, "group:first-last;...". */
void gaps_put(const struct lane *lane, struct buf *out);
void gaps_told(struct lane *lane);
bool gaps_hold(struct lane *lane, uint32_t group, uint64_t seq); /* any thread */
enum status gaps_add(struct lane *lane, const struct gap *gap, struct error *err) MUST_CHECK;
enum status gaps_load(struct lane *lane, struct error *err) MUST_CHECK; /* journal.c */
enum status gaps_save(struct lane *lane, struct error *err) MUST_CHECK;

/* ---- decide.c (E12), pure ---- */

enum chain_verdict { CHAIN_OURS, CHAIN_FOREIGN, CHAIN_UNKNOWN };

enum decision {
    DECIDE_GO_ON,        /* no record: the next range starts at the table's position */
    DECIDE_COMMIT_AGAIN, /* same files, same snapshot id */
    DECIDE_REWRITE_LIST, /* the same, on a base that moved without moving main */
    DECIDE_REBASE,       /* new base, epoch and snapshot id; the files stay */
    DECIDE_DONE,         /* the range is in the table */
    DECIDE_DISCARD,      /* another epoch of ours has covered it in part: files go, next range */
    DECIDE_STAND_DOWN,   /* E6 */
    DECIDE_HALT_REBIND,  /* another table stands under the name */
    DECIDE_HALT,         /* durability */
    DECISION_COUNT
};

struct facts {
    const char *table_uuid, *bound_uuid; /* bound: "" before the first commit */
    const struct own_state *own;
    int64_t lost_sequence; /* of an own commit that an earlier reading missed; 0: none */
    struct epoch epoch;    /* ours */
    const struct checkpoint *checkpoint;
    bool has_ack; /* the log knows of a commit of this lane */
    const struct positions *ack;
    const struct record *record; /* `exists` may be false */
    bool is_record_listed;       /* the table lists its snapshot, on main or not */
    struct iceberg_base base;    /* of the table as it stands */
    const struct positions *log_end;
    /* Whether our own history holds this position. */
    enum chain_verdict (*chain)(void *context, uint32_t group, struct wal_position position);
    void *context;
};

enum decision publish_decide(const struct facts *facts, struct positions *out_from,
                             char out_reason[400]);
/* Has no walk found again what an earlier one missed? */
bool is_still_lost(const struct own_state *own, int64_t lost_sequence);

/* ---- columns.c ---- */

/* The table's schema at its birth: ids level by level, columns' sources as docs. In the arena. */
enum status publish_table_schema(const struct publish_table *definition, struct arena *arena,
                                 struct arrow_schema *out_rows, struct iceberg_schema *out_schema,
                                 struct error *err) MUST_CHECK;

/* ---- bind.c ---- */

/* Where a written column, or a nested field of it, comes from. */
struct bound_column {
    int source;       /* payload column, behind them position_fields; nested: of ours */
    bool is_as_it_is; /* arrays go through untouched */
    bool is_widened;  /* int32 -> int64 */
    struct bound_column *children;
};

/* How payload rows become rows of the table as it stands now. Borrows the payload's schema. */
struct binding {
    struct arena arena;
    const struct arrow_schema *payload;
    struct arrow_schema schema;   /* of what is written: the table's names and ids */
    struct bound_column *columns; /* one a field of `schema` */
    int32_t schema_id, spec_id, sort_order_id;
    const struct iceberg_spec *spec; /* copied into the arena */
    int *partition_columns;          /* one a partition field: payload column */
    char dropped[200]; /* "body, events.name": ours that others dropped, not stored; cut if long */
};

/* HALTED, naming the column, where the table cannot take our rows. */
enum status binding_create(const struct publish_table *definition,
                           const struct arrow_schema *payload, const struct iceberg_table *table,
                           struct binding *out_binding, struct error *err) MUST_CHECK;
void binding_deinit(struct binding *binding); /* accepts zeroed */
/* The payload column that is written as the table's top-level field of that id; -1: none is. */
int binding_source(const struct binding *binding, int32_t field_id);

/* ---- range.c ---- */

struct range_batch {
    struct arrow_batch batch;
    uint32_t group, first_index; /* row 0 of the batch within its entry */
    uint64_t seq;
};

struct range {
    struct positions to;
    struct range_batch *batches;
    size_t batch_count, batch_capacity;
    struct buf *payloads; /* copies, 8-aligned */
    struct arrow_reader **readers;
    size_t entry_count, entry_capacity;
    uint64_t rows, bytes, fingerprint;
    uint64_t expanded_bytes; /* of what was decoded, beside the payloads */
    char digest[DIGEST_TEXT_BYTES];
    struct arena arena; /* owns the schema, to which batches point */
    struct arrow_schema *schema;
};

/* Entries of the lane's table after `from`, up to bytes_max and within one schema; no rows: an
 * empty range. CORRUPT: damage in the log. */
enum status range_read(struct lane *lane, const struct positions *from, uint64_t bytes_max,
                       struct range *out_range, struct error *err) MUST_CHECK;
void range_deinit(struct range *range); /* accepts zeroed */

/* ---- rows.c ---- */

/* Writes the range as sorted files, synced, named by record->prefix; fills record->files, rows,
 * row_sum. */
enum status rows_write(struct lane *lane, const struct iceberg_table *table,
                       const struct binding *binding, const struct range *range,
                       struct record *record, struct error *err) MUST_CHECK;
/* Sum over the rows of the hashes of their cells (E3). */
enum status rows_sum(const struct arrow_schema *schema, const struct arrow_batch *batch,
                     struct hash128 *inout_sum, struct error *err) MUST_CHECK;

/* ---- halt.c ---- */

/* What resolves a halt. */
enum remedy {
    REMEDY_ACCEPT,
    REMEDY_REPUBLISH,
    REMEDY_REBIND,
    REMEDY_REPAIR_LOG,
    REMEDY_FROM,
    REMEDY_FORK,
    REMEDY_OTHER_TABLE,
    REMEDY_PLACE,
    REMEDY_COLUMNS,
    REMEDY_SNAPSHOT,
    REMEDY_CATALOG,
    REMEDY_REPAIR_TABLE,
    REMEDY_ADOPT
};

struct lane;
/* Of a durability halt. */
enum status lane_remedy(struct lane *lane, const struct own_state *own, enum remedy *out_remedy,
                        struct error *err) MUST_CHECK;
void lane_set_state(struct lane *lane, enum publish_state state, const char *reason);
/* HALTED or STOOD_DOWN, durably (E15). */
void lane_stop(struct lane *lane, enum publish_state state, const char *reason, const char *remedy);
/* The same with a remedy by name; returns HALTED, FENCED. */
enum status lane_halt_now(struct lane *lane, struct error *err, const char *reason,
                          enum remedy remedy);
enum status lane_stand_down(struct lane *lane, struct error *err, const char *reason);
/* E12: before any durability halt the table is read again for a while: BUSY until then. */
enum status lane_doubt(struct lane *lane, struct error *err, const char *reason,
                       enum remedy remedy);
/* The same for a log elsewhere that has let go of what is to be published: another publisher may
 * have taken the table over. */
enum status lane_doubt_source(struct lane *lane, struct error *err, const char *reason);
/* The same for a commit that finds what the current snapshot refers to damaged; `err` says what. */
enum status lane_doubt_append(struct lane *lane, struct error *err) MUST_CHECK;
/* Tells options.changed and options.dropped. */
void lane_tell(const struct lane *lane, enum publish_state state, const char *reason,
               const char *remedy);
void lane_note_dropped(struct lane *lane, const char *columns);

/* ---- elsewhere.c ---- */

struct publisher;
/* UNSUPPORTED: no lane works here. */
enum status publisher_must_be_here(const struct publisher *publisher, struct error *err) MUST_CHECK;
/* UNSUPPORTED: nor is the log here. */
enum status publisher_must_have_log(const struct publisher *publisher,
                                    struct error *err) MUST_CHECK;
/* The log has heard that the table holds the entry. */
bool lane_is_acknowledged(struct lane *lane, uint32_t group, uint64_t seq);

/* ---- lane.c, commit.c, resolve.c, damage.c ---- */

enum {
    DAMAGED_CHECKPOINT = 1,
    DAMAGED_JOURNAL = 2,
    DAMAGED_HALT = 4,
    DAMAGED_DOUBT = 8,
    DAMAGED_TRIM = 16,
};

/* Why a lane halted, as the file of the halt says; one-job commands exit by it (E15). */
enum halt_cause {
    CAUSE_TABLE,     /* there is something to decide */
    CAUSE_DAMAGE,    /* nothing to decide yet: `accept` looks again (lane_resume) */
    CAUSE_RECLAIMED, /* the log no longer has what the table lacks */
    CAUSE_IDENTITY,  /* the table has the history of another log */
    CAUSE_COUNT
};

struct lane {
    struct publisher *publisher;
    const struct publish_table *definition;
    char name[WAL_TABLE_NAME_MAX + 1];
    uint32_t table_id;
    struct checkpoint checkpoint;
    struct record record;
    struct epoch epoch; /* {0,0}: none yet */
    /* under publisher->lock: */
    bool is_busy; /* a thread works on it */
    enum publish_state state;
    char reason[480], remedy[PUBLISH_REMEDY_BYTES];
    bool is_demanded;
    struct publish_waiter *waiters;
    struct publish_lane_info info;
    /* of the thread that works on it: */
    unsigned damage;  /* DAMAGED_...: files of its own; it is halted then */
    bool is_deciding; /* a command works on it: what it finds is its answer, and no new halt */
    enum halt_cause halt_cause;
    bool is_recovered;     /* record and table have been looked at since the start */
    int64_t lost_sequence; /* an own commit that a walk missed, and none has found; 0: none */
    int64_t kept_sequence; /* the same, on disk */
    struct gap *gaps;      /* change under publisher->lock, too */
    size_t gap_count;
    int64_t doubt_since_ns; /* when a durability halt was first suspected; 0: not */
    int64_t
        source_doubt_ns; /* since when a log elsewhere says that rows to publish are gone; or 0 */
    int64_t append_doubt_ns;  /* since when commits find the current snapshot damaged; or 0 */
    int64_t catalog_doubt_ns; /* the same for a damaged catalog, seen in commits */
    int64_t retry_at_ns;
    uint64_t retry_ms;
    int64_t trouble_since_ns; /* of the first retry in a row; 0: none */
    bool is_trouble_told;     /* options.changed has heard of them */
    int64_t through_acked_ns;
};

static inline bool lane_is_in_doubt(const struct lane *lane)
{
    return lane->doubt_since_ns || lane->append_doubt_ns || lane->source_doubt_ns;
}

struct publisher {
    struct env *env;
    struct publish_options options;
    struct source *source;
    struct catalog *catalog;
    struct store *store;
    struct log_id log;
    uint32_t group_count;
    char owner[OWNER_TEXT_BYTES];
    char state_dir[PATH_BYTES_MAX];
    struct env_file *lock_file;
    struct lane *lanes;
    size_t lane_count;
    struct env_mutex *lock;
    struct env_cond *wake;  /* the thread that looks for work */
    struct env_cond *turn;  /* to look for work */
    struct env_cond *freed; /* a lane, or the place of a writer */
    struct env_thread *threads[PUBLISH_THREADS_MAX];
    unsigned thread_count;
    /* under lock: */
    bool must_stop, is_looking;
    int64_t work_until_ns; /* no range begins later; 0: no end */
    unsigned claims_waiting;
    size_t look_next;        /* lane */
    uint64_t writers;        /* places left */
    const char *last_writer; /* the thread that took a place last */
};

/* One thread works on a lane at a time; waits until nobody else does. BUSY: that took too long. */
enum status lane_claim(struct lane *lane, uint64_t timeout_ms, struct error *err) MUST_CHECK;
void lane_release(struct lane *lane);
/* A place among those who write files; waits for one. */
void publisher_writer_begin(struct publisher *publisher);
void publisher_writer_end(struct publisher *publisher);

/* No further range is to be begun: the threads are to end, or the last round has had its time. */
bool publisher_is_out_of_time(struct publisher *publisher);

/* One round for a lane: whatever is open is resolved; with `must_publish`, what is synced is
 * published. OK: nothing (more) to do. Failures are noted in the lane's state. */
enum status lane_round(struct lane *lane, bool must_publish, struct error *err);
bool lane_is_due(struct lane *lane);
/* Of the oldest row that is not published; negative where a clock was moved. */
int64_t lane_age_ms(const struct lane *lane, const struct wal_pending *pending);
/* What is synced and not yet acknowledged as published; any thread. */
struct wal_pending lane_pending(struct lane *lane);
/* The table under the lane's name, whichever it is; a new one where there is none. */
enum status lane_load_or_create(struct lane *lane, struct iceberg_table **out_table,
                                struct error *err) MUST_CHECK;
/* The same, but HALTED where the table that the lane is bound to was dropped. */
enum status lane_load_table(struct lane *lane, struct iceberg_table **out_table,
                            struct error *err) MUST_CHECK;
void lane_ack_positions(struct lane *lane, struct positions *out_committed, bool *out_has);
/* Does the log show that it is its own? A position below what it still holds is not shown. */
bool lane_is_ours(struct lane *lane, uint32_t group, struct wal_position position);
/* TIMEOUT: the source did not answer, or began anew meanwhile. */
enum status lane_decide(struct lane *lane, const struct iceberg_table *table,
                        const struct own_state *own, struct positions *out_from,
                        char out_reason[400], enum decision *out_decision,
                        struct error *err) MUST_CHECK;
bool lane_is_in_own_directory(const struct lane *lane, const struct own_state *own);
/* The log's ends; what lane_pending counts afterwards reaches up to them at least. */
void lane_ends(struct lane *lane, struct positions *out_end);
enum status lane_halt_on_damage(struct lane *lane, struct error *err) MUST_CHECK;
/* The table has what this log never wrote: another copy of the log has gone on (E7). */
enum status lane_is_other_history(struct lane *lane, const struct own_state *own, bool *out_is,
                                  struct error *err) MUST_CHECK;
void lane_wake_waiters(struct lane *lane);
/* Removes data files named by `prefix`, and metadata of losing attempts of the record. */
enum status lane_delete_files(struct lane *lane, const struct iceberg_table *table,
                              const char *prefix, struct error *err) MUST_CHECK;
enum status lane_delete_attempts(struct lane *lane, const struct iceberg_table *table,
                                 const struct record *record, bool is_in_table,
                                 struct error *err) MUST_CHECK;

/* Commits the lane's record on `table`; the attempt is noted in the record first. */
enum status commit_record(struct lane *lane, const struct iceberg_table *table,
                          const struct own_state *own, bool with_new_id,
                          struct iceberg_table **out_table, struct error *err) MUST_CHECK;
/* Commits an empty snapshot that says `positions` under `epoch` (E5, E16). */
enum status commit_statement(struct lane *lane, const struct iceberg_table *table,
                             const struct own_state *own, const struct positions *positions,
                             struct epoch epoch, struct iceberg_table **out_table,
                             struct error *err) MUST_CHECK;
/* What the log holds up to `shared` is in the table, or another log's to bring there (fork.c). */
enum status lane_hand_over(struct lane *lane, const struct positions *shared,
                           struct error *err) MUST_CHECK;
/* The log's new id; halts that only this ends are cleared. */
enum status publisher_go_on_as_new(struct publisher *publisher, struct log_id *out_new_id,
                                   struct error *err) MUST_CHECK;
/* Where the log started anew within (from, to]: what tells copies of a log apart (fork.c). No row
 * of the table lies between `from` and *out_since, from which on every start is in `out_starts`
 * ("group:seq:chain;..."). *out_is_told false: the log cannot tell. */
enum status range_starts(struct lane *lane, const struct positions *from,
                         const struct positions *to, struct positions *out_since,
                         struct buf *out_starts, bool *out_is_told, struct error *err) MUST_CHECK;
/* What the lane keeps on disk, at a start. Files that do not verify halt it. */
enum status lane_load_files(struct lane *lane, struct error *err) MUST_CHECK;
/* Ends a halt of damage: what the lane's own files no longer tell is taken from table and log, and
 * they are replaced. HALTED: the table contradicts; the lane is halted anew, for that. CORRUPT: the
 * catalog is damaged still. */
/* Removes the record or what is left of it, if there is one; its files are left to `orphans`. */
enum status lane_give_up_record(struct lane *lane, struct error *err) MUST_CHECK;
enum status lane_resume(struct lane *lane, struct error *err) MUST_CHECK;
enum status lane_halt_end(struct lane *lane, struct error *err) MUST_CHECK;
/* E5: takes the lane over for this directory. */
enum status lane_take_over(struct lane *lane, struct iceberg_table **inout_table,
                           struct own_state *inout_own, struct error *err) MUST_CHECK;

/* ---- publisher.c ---- */

/* NULL: nothing publishes it. */
struct lane *publisher_lane_of(struct publisher *publisher, uint32_t table_id);

#endif
