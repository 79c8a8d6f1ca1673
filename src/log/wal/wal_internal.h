/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine's insides, shared by its files.
 *
 * Who may do what: `lock` guards what is marked so and is never held over I/O or a callback. Two
 * long locks serialise I/O: the *lead* (is_leading: appends to the active segment, seals it, opens
 * the next) and the *state* (is_state_busy: checkpoints, moves and removals of sealed files). A
 * holder of the lead may take the state, never the reverse. Fields without a mark belong to the
 * lead.
 */
#ifndef SLUICE_LOG_WAL_INTERNAL_H
#define SLUICE_LOG_WAL_INTERNAL_H

#include "log/wal/leases_internal.h"
#include "log/wal/producers_internal.h"
#include "log/wal/segment_internal.h"

enum {
    WAL_CONTROL_SPARES = 2, /* L18 */
    WAL_SCHEMAS_MAX = 65536,
    WAL_SCHEMA_BYTES_MAX = 4 << 20,
    WAL_IDLE_FLOOR_MS = 10,      /* L9 */
    WAL_BACK_OFF_MS = 250,       /* between tries to open a segment on a full volume */
    WAL_ENGINE_THREADS = 2,      /* one completes a unit while the other writes the next */
    WAL_KEEPER_MS = 1000,        /* between rounds of the keeper without a poke */
    WAL_LARGE_UNIT = 256 << 10,  /* its blocks are not written with zeros first */
    WAL_RECENT_BYTES = 32 << 20, /* written units kept for readers */
    WAL_TABLES_MAX = 1 << 20,
    WAL_RESTORE_STEP = 1 << 20, /* of terms and segments, at `log recover` (L35) */
};

/* ---- index (index.c) ---- */

/* One entry of one segment. */
struct index_entry {
    uint32_t at; /* offset of its header in units of WAL_ALIGN */
    uint32_t header_bytes, payload_bytes;
    uint32_t table_id, rows;
    uint32_t next;   /* the next DATA entry of the same table in this run; 0: none */
    uint32_t age_ms; /* when it was written, after the segment's creation */
    uint8_t type;
    bool has_producers;
};

/* The entries of one group in one segment: dense in seq, or what a compaction left of them. */
struct run {
    struct segment *segment;
    uint32_t group;
    uint64_t first_seq;
    uint32_t count, capacity, pending; /* pending: reserved by index_prepare */
    struct index_entry *entries;
    uint32_t *steps; /* of each entry, above first_seq; NULL: it is dense */
};

static inline uint64_t run_seq(const struct run *run, uint32_t index)
{
    return run->first_seq + (run->steps ? run->steps[index] : index);
}

/* The seq behind its last one. */
static inline uint64_t run_end(const struct run *run)
{
    return run->count ? run_seq(run, run->count - 1) + 1 : run->first_seq;
}

/* DATA entries of one table in one group in one segment. */
struct segment_table {
    uint32_t group, table_id;
    uint32_t first, last; /* indices in the run */
    uint64_t first_seq, last_seq, entries, rows, bytes;
    int64_t time_min_us, time_max_us;
};

/* A range that `log repair` declared lost. */
struct void_range {
    uint32_t group;
    uint64_t first, last, chain, term;
};

/* How a checkpoint, header or scan finds its place in a run: type 0 stands for an entry that is
 * lost. */
enum { ENTRY_LOST = 0 };

/* Where a group stood before a segment. */
struct header_chain {
    uint64_t last_seq, chain;
    uint32_t group;
};

enum segment_place { SEGMENT_ACTIVE, SEGMENT_SEALED, SEGMENT_COMMITTED };

struct segment {
    struct segment_identity identity;
    uint64_t previous_id, term;
    int64_t created_wall_ns, sealed_wall_ns;
    enum segment_place place; /* guarded by lock */
    uint32_t pins;            /* guarded by lock: readers inside it now */
    uint32_t files;           /* guarded by lock: of those, whoever copies the file */
    bool is_going;            /* guarded by lock: its floors are raised; no reader enters */
    bool is_cut;
    bool is_compacted; /* guarded by lock: entries that everybody was past were left out (L26) */
    uint64_t compacted_version; /* of the state that knows; guarded by lock */
    bool is_unsaved;            /* they left the index, and state/ may not know */
    uint64_t tried;             /* to compact it: what was to stay, and 1; 0: never */
    bool has_state;             /* TABLE or VOID entries, or producers: checkpoint before reclaim */
    uint64_t data_end;          /* where units end and the footer begins */
    uint64_t file_bytes, allocated_bytes; /* guarded by lock */
    uint64_t clean_bytes, clean_unit;     /* the same: up to here all of it counted once */
    uint64_t entry_count;                 /* guarded by lock */
    struct run **runs;                    /* by group; guarded by lock */
    size_t run_count, run_capacity;
    struct segment_table *tables; /* by (group, table); guarded by lock */
    size_t table_count, table_capacity;
    uint64_t *schemas;
    size_t schema_count, schema_capacity;
    struct void_range *voids; /* VOID entries that stand in this segment */
    size_t void_count, void_capacity;
    struct header_chain *chains; /* of its header, by group */
    uint32_t chain_count;
    struct group_row *ends; /* of its footer; recovery's */
    uint32_t end_count;
    char problem[120]; /* of its header or footer, found at recovery; empty: none */
};

/* Bytes a second, over windows of a second that weigh less the older they are. Zeroed is unknown.
 */
struct wal_rate {
    double bytes_a_second; /* 0: unknown */
    uint64_t bytes;        /* in the window */
    int64_t since_ns;      /* the window's start */
};

/* Payload of a table, or in a group, that is not published (backlog.c). Guarded by lock. */
struct backlog {
    uint64_t queued, stored; /* waiting for its unit's sync; on the log, above `through` */
    uint64_t limit;          /* 0: none */
    uint64_t refused;
    struct wal_rate drain;
};

struct group {
    /* the tail as written; the lead's */
    uint64_t seq, chain, term;
    /* guarded by lock */
    uint64_t synced_seq, synced_chain;
    uint64_t committed_seq, committed_chain; /* what readers see: the same, or less (commit.c) */
    uint64_t reclaimed_seq;                  /* highest seq in a reclaimed segment */
    struct run **runs;                       /* by first_seq */
    size_t run_count, run_capacity;
    struct backlog backlog;
    /* what the loaded checkpoint knew; recovery's */
    uint64_t state_seq, state_chain;
    uint64_t known_seq;       /* that counts, by acks too */
    struct wal_position told; /* its end in a sealed segment, by the newest footer that has it */
    uint64_t
        lost_before; /* bytes lost in the segment being walked, before the group's last entry */
};

struct damage {
    uint32_t group;
    uint64_t first, last;
    bool has_chain;
    uint64_t chain; /* at `last`, from what follows */
    char where[160];
};

/* Seqs of a group that stood in reclaimed segments; neighbours are merged. */
struct seq_range {
    uint32_t group;
    uint64_t first, last;
};

struct floor_row {
    uint32_t table_id, group;
    uint64_t seq;
};

/* From segment `segment` on a group goes on behind `after`: what older ones have above is void. */
struct truncation {
    uint32_t group;
    bool is_applied;
    uint64_t after, chain, term, segment;
};

/* What leaves a segment, and its tables' floors then. */
struct leavings {
    struct seq_range *ranges;
    size_t range_count, range_capacity;
    struct floor_row *floors;
    size_t floor_count, floor_capacity;
};

struct table {
    char *name;
    struct wal_ack *acks; /* one a group; NULL: never acknowledged */
    struct backlog backlog;
    bool has_limit; /* of its own, in place of table_bytes_max */
};

struct schema {
    uint64_t fingerprint; /* 0: empty slot */
    uint8_t *message;
    size_t length;
};

/* A log id and the first segment that bears it (L1; `log fork` adds one). */
struct identity_row {
    struct log_id log_id;
    uint64_t first_segment;
};

/* ---- units in memory (buffers.c) ---- */

/* A written unit that readers may still look into. */
struct unit_buffer {
    uint8_t *base, *data; /* the memory; the unit in it */
    size_t capacity, length;
    uint32_t references; /* guarded by lock */
    uint64_t segment_id, offset;
    struct unit_buffer *next;
};

/* ---- the engine ---- */

/* Of one thread in wal_append. Its own lock, so that those woken together do not queue for the
 * engine's; taken after that one. Waiters are pooled, so that a late signal finds a condition. */
struct waiter {
    struct env_mutex *lock;
    struct env_cond *cond;
    bool is_done, may_lead; /* guarded by lock, as is the outcome */
    enum status status;
    struct error err;
    struct waiter *next;
};

/* engine_private of a submission. */
enum submission_word { WORD_CONTROL, WORD_WAITER, WORD_BYTES, WORD_IN_BACKLOG };

/* What the engine adds to its own submissions. */
struct control {
    struct void_range range; /* of a VOID entry */
    struct table *table;     /* of a TABLE entry: becomes the next id once synced */
};

static inline struct control *submission_control(const struct wal_submission *submission)
{
    return (struct control *)(uintptr_t)submission->engine_private[WORD_CONTROL];
}

struct writer {
    struct segment *segment; /* NULL: none open */
    struct env_file *file;
    struct env_file *direct; /* the same, ENV_DIRECT and ENV_DSYNC; NULL where there is no such */
    bool has_no_direct;      /* one was refused: no further is tried */
    uint64_t offset, unit_next, floor;
    /* A unit is being written and synced; what comes behind it begins here. Guarded by lock. */
    bool is_writing;
    uint64_t writing_end;
    size_t writing_footer_bytes;
    uint64_t filled;  /* the file's blocks were written once up to here */
    bool needs_floor; /* the last unit had records and no floor covers it (L9) */
    bool must_cut;    /* a write failed for space: seal at `offset` before anything else */
    int64_t retry_ns; /* no try to open a segment for data before */
    int64_t synced_ns, opened_ns;
    size_t footer_bytes;  /* upper bound of the footer as it stands */
    uint64_t previous_id; /* of the segment sealed last */
    /* Of the next header: the groups changed in the segment sealed last; NULL: all groups. */
    struct group_row *next_rows;
    uint32_t next_row_count;
};

struct spare {
    uint64_t number;
    uint64_t bytes, allocated_bytes;
    bool is_written; /* blocks written before: a sync of it needs no journal */
};

struct draft;

/* What the state knows of the segment being written: it is synced before the first unit goes in,
 * and again while there are more, so that a start notices when the file has lost its end, or is
 * gone. */
struct mark {
    uint64_t id;    /* 0: none, or it was reclaimed */
    uint64_t bytes; /* of the file */
    uint64_t floor; /* the last unit that is known to be synced */
};

struct wal {
    struct env *env;
    struct wal_options options;
    char dir[PATH_BYTES_MAX];
    struct env_file *lock_file;
    struct env_mutex *lock;
    struct env_cond *work, *keep, *freed, *moved; /* engine, keeper, long locks, wal_wait */
    struct env_thread *engine_threads[WAL_ENGINE_THREADS], *keeper_thread;

    uint32_t group_count;
    uint64_t term, incarnation;
    struct identity_row *identities;
    size_t identity_count;
    uint64_t segment_next, first_of_start;
    struct wal_recovery recovery;

    /* all guarded by lock from here */
    bool is_leading, is_state_busy, is_tables_busy;
    uint32_t control_waiting; /* wants the lead: appenders hold back */
    bool is_stopping, is_dead, is_poked, is_accepting;
    struct wal_submission *queue_head, *queue_tail;
    uint64_t queue_bytes;
    struct wal_submission *finished_head,
        *finished_tail; /* synced, to be completed in this order */
    bool is_completing;
    uint32_t settle_waiting; /* wants all completions to be out */
    int64_t engine_until_ns; /* when the engine's thread wakes by itself */
    struct waiter *free_waiters;

    struct group *groups;
    struct segment **segments; /* by id */
    size_t segment_count, segment_capacity;
    struct damage *damages;
    size_t damage_count, damage_capacity;
    struct void_range *voids;
    size_t void_count, void_capacity;
    struct truncation *truncations; /* as long as there are older segments */
    size_t truncation_count, truncation_capacity;
    bool needs_commit;      /* guarded by nothing: as the log was made */
    bool is_commit_busy;    /* somebody commits or truncates */
    uint64_t table_pending; /* seq of the TABLE entry that waits to be committed; 0: none */
    uint32_t table_openers; /* inside wal_table_open */
    size_t void_base;       /* a start: voids of the checkpoint, which knew of all truncations */
    struct seq_range *reclaimed; /* by group and seq */
    size_t reclaimed_count, reclaimed_capacity;
    struct floor_row *floors; /* by (table, group) */
    size_t floor_count, floor_capacity;
    struct table **tables; /* id - 1 */
    size_t table_count, table_capacity;
    uint32_t *table_slots; /* hash of names to ids */
    size_t table_slot_count;
    struct schema *schemas;
    size_t schema_count, schema_slots;
    struct producers producers;
    struct lease *leases[WAL_CONSUMERS_MAX]; /* by the time of their making */
    size_t lease_count;
    struct wal_scan *scans;
    struct spare *spares;
    size_t spare_count, spare_capacity;
    uint64_t spare_next;
    struct unit_buffer *recent_head, *recent_tail, *free_buffers;
    uint64_t recent_bytes;
    uint64_t ticket, wakes;
    bool has_large_units;                   /* on average, in the segment sealed last */
    struct wal_rate write_rate, drain_rate; /* of units; of reclaimed segments */
    uint64_t room_left;                     /* of the active segment, for admission */
    uint64_t allocated_bytes;               /* all files of the log (L37) */
    bool volume_is_full;
    uint64_t state_version;   /* of changes but marks, see wal_state_version */
    int64_t no_room_until_ns; /* a segment could not be made for want of space */
    struct wal_usage counters;

    struct writer writer;
    uint64_t synced_unit;  /* of the active segment */
    uint64_t synced_bytes; /* of its file: up to the end of that unit */
    struct draft *draft;   /* being written */
    struct draft *ahead;   /* behind it: of the first submissions in the queue */
    bool is_copying;       /* into the draft ahead: its and the groups' tails are that thread's */

    /* the state's */
    struct env_file *state_file;
    uint64_t state_number, state_bytes, state_base_bytes, state_records;
    uint64_t state_allocated, state_file_allocated; /* of all of state/; of the current file */
    uint64_t covers, covers_before; /* segments up to these are in the two kept checkpoints */
    uint64_t
        *expected; /* ids of segments that the loaded checkpoint counts as present; recovery's */
    size_t expected_count;
    struct mark mark;
    int64_t marked_ns;

    /* of `log recover`; changes under the state long lock and the lock */
    uint64_t fenced_by; /* incarnation; 0: not */
    struct wal_position
        *recovered;         /* by group: the last entry that came back; NULL: it never was */
    struct seq_range *lost; /* below those */
    size_t lost_count, lost_capacity;
};

/* ---- wal.c ---- */

void wal_path(const struct wal *wal, char out[PATH_BYTES_MAX], const char *folder,
              const char *format, uint64_t number);
const char *segment_folder(enum segment_place place);
void wal_segment_path(const struct wal *wal, uint64_t id, enum segment_place place,
                      char out[PATH_BYTES_MAX]);
/* Long locks; called and returning with `lock` held. */
void wal_lead_acquire(struct wal *wal);
void wal_lead_release(struct wal *wal);
void wal_state_acquire(struct wal *wal);
void wal_state_release(struct wal *wal);
void wal_poke(struct wal *wal); /* lock held: the keeper looks again */
/* A sync failed: nothing of that file can be trusted again (L24). Lock not held. */
_Noreturn void wal_die(struct wal *wal, const struct error *err);
struct log_id wal_log_id_of_segment(const struct wal *wal, uint64_t id);
bool grow(void **array, size_t *capacity, size_t count, size_t element); /* room for one more */
void wal_rate_add(struct wal_rate *rate, uint64_t bytes, int64_t now_ns);
/* How long `bytes` take, between 100 ms and a minute; 1,000 if that is not known. */
uint64_t wal_rate_ms(const struct wal_rate *rate, uint64_t bytes, int64_t now_ns);
uint64_t wal_allocated(struct env *env, const char *path); /* 0 if it cannot be told */

/* ---- backlog.c; lock held ---- */

/* Counts a submission's rows in, or refuses it. */
enum status backlog_take_in(struct wal *wal, struct wal_submission *submission,
                            struct error *err) MUST_CHECK;
/* It was counted in, and never came to be. */
void backlog_give_back(struct wal *wal, const struct wal_submission *submission);
void backlog_store(struct wal *wal, const struct record *record); /* synced */
/* Before these acks become the table's. */
void backlog_let_go(struct wal *wal, uint32_t table_id, const struct wal_ack *acks);
void backlog_recount(struct wal *wal); /* from the index; nothing is queued */

/* ---- index.c; lock held by all callers ---- */

struct segment *segment_create(uint64_t id);
void segment_destroy(struct segment *segment);                     /* accepts NULL */
bool index_segment_add(struct wal *wal, struct segment *segment);  /* takes it */
void index_segment_drop(struct wal *wal, struct segment *segment); /* and destroys it */
/* What is left of it takes the place of its entries and tables, and those are in `left` then. */
void index_segment_reduce(struct wal *wal, struct segment *segment, struct segment *left);
struct segment *index_segment_find(struct wal *wal, uint64_t id);
/* Makes room so that the index_add that follows cannot fail. False: out of memory. */
bool index_prepare(struct wal *wal, struct segment *segment, const struct record *record);
void index_unprepare(struct segment *segment);
void index_add(struct wal *wal, struct segment *segment, const struct record *record,
               uint64_t offset, int64_t wall_ns);
/* Index of the first entry above `after`; `count`: there is none. */
uint32_t run_above(const struct run *run, uint64_t after);
/* Of the group's runs the first whose last seq is above `after`. */
size_t runs_above(const struct group *group, uint64_t after);
bool index_find(struct wal *wal, uint32_t group, uint64_t seq, struct run **out_run,
                const struct index_entry **out_entry);
/* Takes out the entries of the group above `after`. */
void index_cut(struct wal *wal, uint32_t group, uint64_t after);
/* The first entry of `table_id` (0: any) above `after` that counts. */
bool index_next(struct wal *wal, uint32_t group, uint32_t table_id, uint64_t after,
                struct run **out_run, const struct index_entry **out_entry, uint64_t *out_seq);
/* As wal_pending; the lock is held. */
struct wal_pending index_pending(const struct wal *wal, uint32_t group, uint32_t table_id,
                                 uint64_t after);
/* Payload of the segment's entries of a table in a group, above `after`. */
uint64_t segment_bytes_above(const struct segment *segment, const struct segment_table *table,
                             uint64_t after);
struct segment_table *segment_table_find(const struct segment *segment, uint32_t group,
                                         uint32_t table_id);
struct segment_table *segment_table_get(struct segment *segment, uint32_t group, uint32_t table_id);
/* Counts a DATA entry, which becomes the last of the run. */
void segment_table_count(struct segment_table *table, struct run *run, uint64_t seq, uint32_t rows,
                         uint64_t payload_bytes);
/* What it keeps of its header's rows, which are in order of their groups. False: out of memory. */
bool segment_chains_set(struct segment *segment, const struct group_row *rows, uint32_t count);
const struct header_chain *segment_chain_find(const struct segment *segment, uint32_t group);
void segment_ends_drop(struct segment *segment);
/* All that a footer or units said of it; its header and its name stay. Not in an index yet. */
void segment_forget(struct segment *segment);
/* No entry comes any more: gives back what was kept free for some. */
void segment_trim(struct segment *segment);
struct run *segment_run_find(const struct segment *segment, uint32_t group);
struct run *segment_run_get(struct segment *segment, uint32_t group);
bool group_run_attach(struct group *group, struct run *run);
bool table_add(struct wal *wal, struct table *table); /* takes; the next id */
/* Makes the id known, with ids before it; gives it its name if it has none yet. */
bool table_put(struct wal *wal, uint32_t table_id, struct span name);
uint32_t table_find(const struct wal *wal, const char *name, size_t length); /* 0: none */
bool schema_put(struct wal *wal, uint64_t fingerprint, struct span message);
const struct schema *schema_find(const struct wal *wal, uint64_t fingerprint);

/* ---- ranges.c; lock held by all callers ---- */

bool damage_add(struct wal *wal, uint32_t group, uint64_t first, uint64_t last, const char *where);
/* The first damage in (after, last] that may hold rows of the table (0: any). Lock held. */
const struct damage *damage_within(struct wal *wal, uint32_t group, uint32_t table_id,
                                   uint64_t after, uint64_t last);
/* Takes a range out of what is damaged. */
bool damage_clear(struct wal *wal, uint32_t group, uint64_t first, uint64_t last);
bool void_add(struct wal *wal, const struct void_range *range);
bool reclaimed_add(struct wal *wal, uint32_t group, uint64_t first, uint64_t last);
/* The reclaimed range that holds `seq`, or the first one above it; NULL: none. */
const struct seq_range *reclaimed_from(const struct wal *wal, uint32_t group, uint64_t seq);
/* The last one at or below `seq`; 0: none. */
uint64_t reclaimed_below(const struct wal *wal, uint32_t group, uint64_t seq);
uint64_t floor_get(const struct wal *wal, uint32_t table_id, uint32_t group);
bool floor_raise(struct wal *wal, uint32_t table_id, uint32_t group, uint64_t seq);

/* ---- commit.c ---- */

/* Notes it, once. False: out of memory. */
bool truncation_add(struct wal *wal, const struct truncation *truncation);
/* A start: those of segments up to `segment_id`, which may be the one that is being loaded. */
void truncations_apply(struct wal *wal, uint64_t segment_id, struct segment *loading);
/* Those that a footer names; the number of them if `out` is NULL. */
uint32_t truncations_put(const struct wal *wal, uint64_t segment_id, struct buf *out);
void commits_encode(const struct wal *wal, struct buf *out);
enum status commits_decode(struct wal *wal, struct cursor *cursor, struct error *err) MUST_CHECK;
/* A start: what is known to count, from state/, and then from what the segments have. */
void commits_begin(struct wal *wal);
enum status commits_settle(struct wal *wal, struct error *err) MUST_CHECK;
/* Has it entries that do not count yet? Lock held. */
bool segment_is_open_ended(const struct wal *wal, const struct segment *segment);
/* Waits until no TABLE entry is left that may come to count, or the table is known. Lock held. */
void commits_await_tables(struct wal *wal, const char *name);

/* ---- footer.c ---- */

/* Appends the footer unit of `segment`, whole and of at least so many bytes, to `out`, which is
 * empty. */
void footer_encode(const struct wal *wal, const struct segment *segment, uint64_t unit_offset,
                   uint64_t unit_number, int64_t wall_ns, uint64_t bytes_least, struct buf *out);
/* Fills an empty segment from a footer unit; its runs are not yet in the groups. A failure leaves
 * it empty. */
enum status footer_decode(struct wal *wal, struct segment *segment, struct span unit,
                          struct error *err) MUST_CHECK;
/* Of it only where the groups stood, into segment->ends, and the unit's number. */
enum status footer_decode_ends(struct segment *segment, struct span unit, uint64_t *out_number,
                               struct error *err) MUST_CHECK;
bool footer_is_compacted(const struct segment *segment, struct span unit);
/* What one more entry may add to a footer. */
static inline size_t footer_entry_bytes(bool is_new_table)
{
    return 48 + (is_new_table ? 160 : 0);
}
enum { FOOTER_BYTES_LEAST = 2 * WAL_BLOCK };

/* ---- buffers.c ---- */

struct unit_buffer *unit_buffer_take(struct wal *wal, size_t bytes);   /* NULL: out of memory */
void unit_buffer_release(struct wal *wal, struct unit_buffer *buffer); /* lock held */
void unit_buffer_publish(struct wal *wal, struct unit_buffer *buffer); /* lock held; takes */
/* The buffer that holds [offset, offset + bytes) of a segment, referenced; NULL: none. Lock held.
 */
struct unit_buffer *unit_buffer_find(struct wal *wal, uint64_t segment_id, uint64_t offset,
                                     uint64_t bytes);
void unit_buffers_deinit(struct wal *wal);

/* ---- draft.c ---- */

struct draft *draft_create(void); /* NULL: out of memory */
void draft_destroy(struct draft *draft);
/* While a unit is being written: copies submissions into the next one, but tiny ones. Lock held,
 * and given up while bytes are copied. */
void draft_copy_ahead(struct wal *wal);
/* The log has failed: nothing refers to submissions any more. Lock held. */
void draft_abandon(struct wal *wal);
/* Takes that back; the submissions are still in the queue. The lead and the lock held. */
void draft_forget_ahead(struct wal *wal);

/* ---- writer.c: the lead held, lock not held ---- */

/* Writes what is queued, up to one unit. What was synced is completed by writer_completions_run.
 * Called and returning with `lock` held. */
void writer_run(struct wal *wal);
/* Completes what has been synced, in order, while the next unit is already on its way; one thread
 * does so at a time, and for no more than `rounds` units. Lock held, the lead not. */
void writer_completions_run(struct wal *wal, unsigned rounds);
enum status writer_open_segment(struct wal *wal, bool is_control, uint64_t bytes_least,
                                struct error *err) MUST_CHECK;
/* Writes zeros over the file and syncs them: its blocks count as written from then on. */
enum status file_zero_fill(struct env_file *file, uint64_t bytes, struct error *err) MUST_CHECK;
enum status writer_seal(struct wal *wal, struct error *err) MUST_CHECK;
enum status writer_floor(struct wal *wal, struct error *err) MUST_CHECK;
/* A unit of one block, with that record or none, written and synced. NO_SPACE: the segment must be
 * cut in front of it. */
enum status writer_put_block(struct wal *wal, struct record *record, struct error *err) MUST_CHECK;
/* Hands a submission of the engine's own to the queue and waits for it. */
enum status wal_append_control(struct wal *wal, struct wal_entry *entries, uint32_t count,
                               struct control *control, struct error *err) MUST_CHECK;
void writer_room_publish(struct wal *wal);                   /* lock held */
bool writer_may_grow(const struct wal *wal, uint64_t bytes); /* lock held: within budget? */
void writer_complete(struct wal *wal, struct wal_submission *submission, enum status status,
                     const struct error *err);

/* ---- submit.c ---- */

void waiter_destroy(struct waiter *waiter);

/* ---- recover.c ---- */

enum status wal_recover(struct wal *wal, struct error *err) MUST_CHECK;

/* ---- restore.c ---- */

/* In front of the segments, and behind them. */
enum status restore_begin(struct wal *wal, bool is_new, struct error *err) MUST_CHECK;
enum status restore_settle(struct wal *wal, struct error *err) MUST_CHECK;
void restored_encode(const struct wal *wal, struct buf *out);
enum status restored_decode(struct wal *wal, struct cursor *cursor, struct error *err) MUST_CHECK;
/* FENCED, if it is. Lock held. */
enum status fence_check(const struct wal *wal, struct error *err);

/* ---- state.c: the state held, lock not held ---- */

enum status state_load(struct wal *wal, bool *out_is_new, struct error *err) MUST_CHECK;
enum status state_checkpoint(struct wal *wal, struct error *err) MUST_CHECK;
enum status state_put_ack(struct wal *wal, uint32_t table_id, const struct wal_ack *acks,
                          struct error *err) MUST_CHECK;
/* Beside its TABLE entry, so that no one damaged block loses a table's name. */
enum status state_put_table(struct wal *wal, uint32_t table_id, const char *name,
                            struct error *err) MUST_CHECK;
enum status state_put_lease(struct wal *wal, const struct lease_state *lease,
                            struct error *err) MUST_CHECK;
enum status state_put_lease_gone(struct wal *wal, const char *name, struct error *err) MUST_CHECK;
enum status state_put_mark(struct wal *wal, const struct mark *mark, struct error *err) MUST_CHECK;
/* They expired by then; none: what the clock says. */
enum status state_put_expired(struct wal *wal, uint64_t clock_ms, const struct producer **batch,
                              size_t count, struct error *err) MUST_CHECK;
enum status state_put_reclaim(struct wal *wal, const struct segment *segment,
                              struct error *err) MUST_CHECK;
/* What left segments that stay. */
enum status state_put_compact(struct wal *wal, const struct leavings *leavings,
                              struct error *err) MUST_CHECK;
enum status state_put_fence(struct wal *wal, uint64_t incarnation, struct error *err) MUST_CHECK;
bool state_wants_checkpoint(const struct wal *wal);
bool state_is_large(const struct wal *wal); /* two checkpoints would make it smaller */

/* ---- retain.c ---- */

void keeper_round(struct wal *wal); /* the keeper thread, or wal_open before it runs */
bool spare_add(struct wal *wal, const struct spare *spare);
/* Frees room for state by removing one control spare; false: none left. State held. */
bool spare_sacrifice(struct wal *wal);
void spare_path(const struct wal *wal, const struct spare *spare, char out[PATH_BYTES_MAX]);
/* Up to where the row's table has taken its rows of that group. Lock held. */
uint64_t table_through(const struct wal *wal, const struct segment_table *row);
bool segment_is_acked(const struct wal *wal, const struct segment *segment);

/* What is damaged stays until it is repaired: nothing else shows what it may have been. Lock held.
 */
bool segment_is_evidence(const struct wal *wal, const struct segment *segment);
bool wal_is_under_pressure(const struct wal *wal); /* lock held */

/* ---- compact.c ---- */

/* One segment at most; *out_is_done: it is not to be tried soon again, and there may be more. State
 * held. */
enum status compact_next(struct wal *wal, bool *out_is_done, struct error *err) MUST_CHECK;

/* What could not be synced when entries left its index is in memory alone: then all of state/ is
 * written, twice. State held. */
enum status compact_save(struct wal *wal, struct segment *segment, struct error *err) MUST_CHECK;

/* ---- scan.c ---- */

/* One entry read from a file: header at the front, payload aligned behind it. Zeroed is empty. */
struct entry_bytes {
    uint8_t *data;
    size_t capacity;
};

/* Does an open scan still want something of this segment? Lock held. */
bool scans_need(const struct wal *wal, const struct segment *segment);
/* Of what goes? Lock held. */
bool scans_need_leavings(const struct wal *wal, const struct leavings *leavings);
/* Reads and checks one entry; the payload only if asked for. CORRUPT says what does not hold. */
enum status entry_read(const struct segment *segment, const struct index_entry *entry,
                       struct env_file *file, bool with_payload, struct entry_bytes *bytes,
                       struct record *out_record, struct error *err) MUST_CHECK;
void entry_bytes_deinit(struct entry_bytes *bytes);
/* As entry_read, of bytes that are in memory. */
enum status entry_verify(const struct segment *segment, const struct index_entry *entry,
                         const uint8_t *data, bool with_payload, struct record *out_record,
                         struct error *err) MUST_CHECK;
/* As wal_chain_at, of what does not count too. Lock not held. */
enum status chain_read(struct wal *wal, uint32_t group, uint64_t seq, uint64_t *out_chain,
                       struct error *err) MUST_CHECK;
enum status segment_open_for_reading(struct wal *wal, const struct segment *segment,
                                     struct env_file **out_file, struct error *err) MUST_CHECK;

#endif
