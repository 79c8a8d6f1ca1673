/* SPDX-License-Identifier: Apache-2.0
 *
 * The log: one engine a node, many groups in the same segment files. Rules L1-L38 are stated in
 * README.md beside this file; docs/format/ gives the bytes.
 *
 * Threads: any thread may call anything here unless said otherwise. The engine owns three: two
 * "wal" write, complete, add floors and seal; "wal-keep" moves, sweeps, checkpoints and makes
 * spares. Callbacks run on "wal" or inside wal_append on the caller's, must not block, and may call
 * wal_submit. A failed sync of log or state ends the process through env_fatal_exit(74) (L24).
 */
#ifndef SLUICE_LOG_WAL_WAL_H
#define SLUICE_LOG_WAL_WAL_H

#include "os/os.h"

struct wal;

/* ---- words ---- */

enum wal_entry_type {
    WAL_DATA = 1,
    WAL_VOID = 2,
    WAL_CONFIG = 3,
    WAL_NOOP = 4,
    WAL_TABLE = 5,
    WAL_PRODUCERS = 6,
    WAL_CURSOR = 7,
};

/* Where a group's history stands: after `seq`, with the hash over everything up to it (L5). */
struct wal_position {
    uint64_t seq;   /* 0: before the first entry */
    uint64_t chain; /* 0 with seq 0 */
};

enum { WAL_PRODUCER_ID_MAX = 64, WAL_TABLE_NAME_MAX = 255, WAL_CONTRIBUTIONS_MAX = 1024 };

/* The rows of one request for one table within a DATA entry (L13). */
struct wal_contribution {
    uint32_t first_row, rows;
    uint32_t rejected;        /* items of the request that were refused */
    struct hash128 body_hash; /* XXH3-128 of the decompressed request body */
    const char *producer;     /* not NUL-terminated; borrowed */
    uint8_t producer_length;  /* 0: none given */
    uint64_t producer_sequence;
};

/* ---- opening ---- */

/* A position of this log that stands elsewhere: in a table. */
struct wal_known_position {
    const char *table;
    uint32_t group;
    struct wal_position position;
};

/* How a log is made of what a mirror held (L25, L35, L36): `dir` holds that, in sealed/, active/
 * and state/. */
struct wal_restore {
    struct log_id log_id; /* this and group_count count where state/ is empty */
    uint32_t group_count;
    uint64_t incarnation; /* from now on */
    /* The last segment, and the last unit of it that is proven; segment 0: there is none. */
    uint64_t proven_segment, proven_unit, proven_bytes; /* bytes: of the file */
    const struct wal_known_position *known;
    size_t known_count;
};

struct wal_options {
    const char *dir;           /* made if missing; holds active/ sealed/ committed/ spare/ state/ */
    uint32_t group_count;      /* at creation; later openings must agree or say 0 */
    uint64_t segment_bytes;    /* default 64 MiB */
    uint64_t seal_after_ms;    /* default 60,000 */
    uint64_t unit_bytes_max;   /* of one write unit; default 160 MiB */
    uint64_t copy_ahead_bytes; /* submissions from here on are copied while a unit is being written;
                                  default 512 B */
    uint64_t budget_bytes;     /* 0: min(50 GiB, half the volume) */
    uint32_t producers_refused_at_percent;     /* default 80 (L37) */
    uint64_t table_bytes_max, group_bytes_max; /* of what is not published; 0 (default): no limit */
    uint32_t volume_free_percent_min;          /* default 5 */
    uint64_t keep_committed_ms;                /* default 24 h */
    uint32_t keep_committed_percent;           /* of the budget; default 25 */
    uint32_t compacted_from_percent;  /* of the budget: from here on little is kept of what a
                                         stuck table holds; default 33 (L26) */
    uint32_t compacted_below_percent; /* of a segment, if less than that is live; default 25 */
    uint32_t producers_max;           /* default 100,000 */
    uint64_t keep_producers_ms; /* idle ones, by the time in which the log was open; default 7 d */
    bool is_read_only;          /* for `log ls|cat`: recovers nothing, writes nothing */
    /* At creation; later openings must agree, but for reading. Entries count when wal_commit says
     * so (a quorum has them), and until then wal_truncate may take them back. */
    bool needs_commit;
    /* What is not proven is ignored; segments that state/ has done with are removed. Entries that
     * the mirror lacks, or may have lacked below what tables say, are damage, to be made void by
     * wal_repair; of the tables' positions the log then knows the chain. Tables' acks are raised to
     * what they hold. Terms and numbers of segments go on far above the old ones, and producers
     * become uncertain. Borrowed; NULL: an ordinary opening. */
    const struct wal_restore *restore;
};

struct wal_options wal_options_default(const char *dir);

/* Recovers (L20-L23) and starts a new term with a NOOP in every group. BUSY: another process has
 * it. */
enum status wal_open(struct env *env, const struct wal_options *options, struct wal **out_wal,
                     struct error *err) MUST_CHECK;
/* Stops accepting, writes what was accepted, adds the floor unit (L9), saves state. Accepts NULL.
 */
void wal_close(struct wal *wal);

struct log_id wal_log_id(const struct wal *wal);
uint32_t wal_group_count(const struct wal *wal);
uint64_t wal_term(const struct wal *wal);
/* L36: raised by `log recover` alone; 1 at first. */
uint64_t wal_incarnation(const struct wal *wal);
/* Of a log that was opened with a `restore`: the segment was done with when its checkpoint was
 * made.
 */
bool wal_restore_is_done_with(const struct wal *wal, uint64_t segment_id);
/* Where the entries end that `log recover` got back; false: it never was. */
bool wal_recovered_to(struct wal *wal, uint32_t group, struct wal_position *out_end);
/* The entries below that which it did not get back: a range of seqs, inclusive. */
bool wal_recovered_without(struct wal *wal, size_t index, uint32_t *out_group, uint64_t *out_first,
                           uint64_t *out_last);
/* Another machine has recovered this log, as `incarnation` (L36): from here on, over restarts,
 * every write is refused (FENCED), until wal_fork. Durable when it returns. */
enum status wal_fence(struct wal *wal, uint64_t incarnation, struct error *err) MUST_CHECK;
uint64_t wal_fenced_by(const struct wal *wal); /* the incarnation; 0: it is not */

/* What recovery did, for logs, metrics and tests. */
struct wal_recovery {
    uint64_t segments, entries, bytes_read;
    uint64_t tails_cut, entries_voided, segments_dropped, segments_missing;
    uint64_t damaged_ranges;   /* CORRUPT, see wal_damage_at */
    uint64_t records_unproven; /* left out of what is only read: the next start looks at them */
};
struct wal_recovery wal_recovery_report(const struct wal *wal);

/* A range whose entries are lost to corruption until `log repair` makes it VOID (L20). */
struct wal_damage {
    uint32_t group;
    uint64_t seq_first, seq_last; /* inclusive */
    char where[160];              /* file, offset, what is wrong */
};
bool wal_damage_at(struct wal *wal, size_t index, struct wal_damage *out_damage);
/* The first one above `after` that may hold rows of the table: what it lost is not in the index, so
 * that wal_pending does not know of it. */
bool wal_damage_above(struct wal *wal, uint32_t group, uint32_t table_id, uint64_t after,
                      struct wal_damage *out_damage);
/* Reads every retained entry; what does not verify becomes a damaged range. */
enum status wal_verify(struct wal *wal, uint64_t *out_entries, struct error *err) MUST_CHECK;
/* Turns every damaged range into VOID entries; they are durable when this returns. */
enum status wal_repair(struct wal *wal, uint64_t *out_entries_voided, struct error *err) MUST_CHECK;

/* ---- tables and schemas ---- */

/* The id of `name` ("namespace.table") in this log; at first sight a TABLE entry is written and
 * synced (its group is 0). Ids are dense from 1. In a log that needs commits it waits until that
 * entry counts, and others before it; CONFLICT: it was taken back, or the log is being closed. */
enum status wal_table_open(struct wal *wal, const char *name, uint32_t *out_table_id,
                           struct error *err) MUST_CHECK;
/* The name of an id; false if unknown. Copies at most WAL_TABLE_NAME_MAX + 1 bytes. */
bool wal_table_name(struct wal *wal, uint32_t table_id, char out_name[WAL_TABLE_NAME_MAX + 1]);
/* The id of a name that the log knows; 0: none. */
uint32_t wal_table_find(struct wal *wal, const char *name);
uint32_t wal_table_count(struct wal *wal); /* ids are 1..count */

/* Makes a schema known by its fingerprint (L11); bytes are copied. Needed before its first use. */
enum status wal_schema_add(struct wal *wal, uint64_t fingerprint, struct span message,
                           struct error *err) MUST_CHECK;
/* The schema message of a fingerprint, appended to `out`; NOT_FOUND. */
enum status wal_schema_get(struct wal *wal, uint64_t fingerprint, struct buf *out,
                           struct error *err) MUST_CHECK;

/* ---- writing ---- */

struct wal_entry {
    enum wal_entry_type type; /* DATA, PRODUCERS; the engine makes the others */
    uint32_t group, table_id;
    uint64_t schema_fingerprint;
    uint32_t rows;
    int64_t time_min_us, time_max_us; /* event times of the rows */
    const struct wal_contribution *contributions;
    uint32_t contribution_count;
    struct span payload;  /* borrowed until the submission is done */
    uint32_t payload_crc; /* plain CRC32C of payload, computed by the submitter (L10) */
    /* set by the engine before `done` */
    uint64_t seq, chain;
};

enum wal_durability { WAL_WRITTEN /* auto */, WAL_SYNCED /* wait_for */ };

/* A submission is written within one unit: after a crash all of its entries are there or none. */
struct wal_submission {
    struct wal_entry *entries; /* borrowed until done */
    uint32_t entry_count;
    enum wal_durability durability;
    bool passes_fence; /* of `log adopt`, see wal_fence */
    bool is_admitted;  /* by wal_admit_rows: limits of tables and groups are not asked again */
    /* Called once, in the order of submission within a durability. On failure no entry was
     * acknowledged; NO_SPACE, BUSY and LIMIT may be tried again later; after UNKNOWN_OUTCOME (a
     * full volume on which the write could not be taken back) and IO a crash may bring the entries
     * back. */
    void (*done)(struct wal_submission *submission, enum status status, const struct error *err);
    void *context;
    uint64_t term;               /* set before `done` */
    struct wal_submission *next; /* the engine's */
    uint64_t engine_private[4];
};

/* Hands over a submission and returns at once; `done` may already have run. The submission must
 * stay until `done`. A refusal (CLOSED, NO_SPACE by budget or volume, TOO_LARGE) comes through
 * `done` too. */
void wal_submit(struct wal *wal, struct wal_submission *submission);

/* Submits and waits. The first waiter writes itself, without a change of thread (L12). */
enum status wal_append(struct wal *wal, struct wal_submission *submission,
                       struct error *err) MUST_CHECK;

/* Would `bytes` more be refused now? OK, or NO_SPACE with the reason; *out_retry_ms from the drain
 * rate, measured (1,000 if unknown). Cheap; for admission before a body is read. */
enum status wal_admit(struct wal *wal, uint64_t bytes, uint64_t *out_retry_ms,
                      struct error *err) MUST_CHECK;

/* ---- what counts: logs that need commits alone ---- */

/* All entries of the group up to `seq` count: readers see them, and what they say of producers and
 * tables holds. A start knows at least what its newest checkpoint and acknowledgements tell; the
 * caller says the rest again. Less than before is no error. `seq`, and `after` below, are where a
 * submission ends: its entries share their producers' numbers. CONFLICT: the group ends before. */
enum status wal_commit(struct wal *wal, uint32_t group, uint64_t seq, struct error *err) MUST_CHECK;

/* Takes back what the group has above `after`, none of which counts, and goes on in `term`, which
 * is above the log's: no (term, seq) is there twice (L3). Nothing to take back: nothing happens.
 * Durable when it returns; a crash before leaves the old end or the new one. Whatever is queued
 * then comes behind. CONFLICT: `after` is below what counts, or above the end. */
enum status wal_truncate(struct wal *wal, uint32_t group, uint64_t after, uint64_t term,
                         struct error *err) MUST_CHECK;

/* Where the group's entries end on this disk, whether they count or not. */
struct wal_position wal_stored_end(struct wal *wal, uint32_t group);

/* ---- limits of single tables and groups (L37) ---- */

/* Payload bytes that a table, or all tables of a group, have on the log above the tables'
 * `through`, with what waits to be written. */
struct wal_backlog {
    uint64_t bytes;
    uint64_t limit;   /* 0: none */
    uint64_t refused; /* submissions and questions, since the start */
};
struct wal_backlog wal_table_backlog(struct wal *wal, uint32_t table_id);
struct wal_backlog wal_group_backlog(struct wal *wal, uint32_t group);

/* In place of table_bytes_max, until the log is closed; 0: no limit. */
void wal_table_limit(struct wal *wal, uint32_t table_id, uint64_t bytes_max);

/* Would `bytes` more of a table be refused for its backlog, or its group's? OK, or NO_SPACE; what
 * finds nothing in front of it is never refused, however large. Cheap; for one request among many
 * that share a submission, which then says is_admitted. *out_retry_ms: when they will have room, by
 * the rate at which that backlog is being published, measured (1,000 if unknown, 60,000 at most).
 */
enum status wal_admit_rows(struct wal *wal, uint32_t group, uint32_t table_id, uint64_t bytes,
                           uint64_t *out_retry_ms, struct error *err) MUST_CHECK;
/* How long `bytes` of a table's backlog take to be published, in the same way. */
uint64_t wal_drain_ms(struct wal *wal, uint32_t table_id, uint64_t bytes);

/* ---- producers (L28-L30) ---- */

struct wal_receipt {
    uint64_t term, seq;
    uint32_t group, table_id;
    uint32_t first_row, rows, rejected;
};

enum wal_producer_verdict {
    WAL_PRODUCER_NEW,       /* store it; the claim below is held until done or abandoned */
    WAL_PRODUCER_REPEAT,    /* durable already: receipts are filled */
    WAL_PRODUCER_IN_FLIGHT, /* the same or the previous one is being written: ask again after
                               `retry` */
    WAL_PRODUCER_MISMATCH,  /* 409: same number, other bytes */
    WAL_PRODUCER_GAP,       /* 409: out_expected is the number wanted */
    WAL_PRODUCER_OLD,       /* durable long ago, receipt no longer kept: "duplicate" */
    WAL_PRODUCER_FULL,      /* producers_max reached, and nobody has been idle long enough */
    WAL_PRODUCER_UNCERTAIN, /* 409, once: `log recover` may have lost what it sent last; numbers
                               below out_expected are stored, and from its next request on it is
                               known by the number that this one names */
    WAL_PRODUCER_EXPIRED, /* 409: idle too long; numbers below out_expected were stored, and that is
                             all that is known. Another id has to take its place */
};

/* A request asks once, before its rows are built; `receipts` holds up to 16 (one a table). A NEW
 * verdict claims (producer, sequence) until the request's entries are durable or
 * wal_producer_abandon is called (a 4xx consumes no number, L29). All entries of a request go into
 * one submission: after a crash all of its tables have it or none, and a repeat never has to store
 * a part. A request without rows goes as a PRODUCERS entry. A producer that nobody has heard of for
 * keep_producers_ms expires; 4 times producers_max expired ones are remembered, then the first of
 * them are unknown, and begin at 1. */
enum wal_producer_verdict wal_producer_begin(struct wal *wal, struct span producer,
                                             uint64_t sequence, struct hash128 body_hash,
                                             struct wal_receipt receipts[16],
                                             uint32_t *out_receipt_count, uint64_t *out_expected);
void wal_producer_abandon(struct wal *wal, struct span producer, uint64_t sequence);

/* ---- reading: the synced prefix only, and of that what counts (L23) ---- */

struct wal_view {
    enum wal_entry_type type;
    uint32_t group, table_id, rows;
    uint64_t seq, term, chain, schema_fingerprint;
    int64_t time_min_us, time_max_us;
    const struct wal_contribution *contributions;
    uint32_t contribution_count;
    struct span payload; /* 64-byte aligned; CRC checked */
    uint32_t payload_crc;
};

struct wal_scan;

/* Entries of `group` with seq > after, of `table_id` (0: all), in order. The scan pins the segments
 * it still needs. Owned by one thread. RECLAIMED if entries of that table above `after` are gone;
 * of all, if the one behind `after` is: what a stuck table still needs lies between such holes. */
enum status wal_scan_open(struct wal *wal, uint32_t group, uint32_t table_id, uint64_t after,
                          struct wal_scan **out_scan, struct error *err) MUST_CHECK;
/* NOT_FOUND: no further entry is synced yet (ask again later); CORRUPT names a damaged range;
 * RECLAIMED as above, and where another process writes the log of an entry that left meanwhile: the
 * next call goes on behind it. The view lives until the next call. */
enum status wal_scan_next(struct wal_scan *scan, struct wal_view *out_view,
                          struct error *err) MUST_CHECK;
/* Moves to another starting point, back or forth. */
enum status wal_scan_seek(struct wal_scan *scan, uint64_t after, struct error *err) MUST_CHECK;
void wal_scan_close(struct wal_scan *scan); /* accepts NULL */
/* Entries of `table_id` (0: any) up to here may be gone: where a scan of what is left can start
 * (L32). */
uint64_t wal_reclaimed_through(struct wal *wal, uint32_t group, uint32_t table_id);
/* The last reclaimed entry at or below `seq`, 0: none; and the end of the hole right behind
 * `after`, or `after`. */
uint64_t wal_reclaimed_below(struct wal *wal, uint32_t group, uint64_t seq);
uint64_t wal_reclaimed_behind(struct wal *wal, uint32_t group, uint64_t after);

/* Of a log that needs commits: of what counts. */
struct wal_position wal_synced_end(struct wal *wal, uint32_t group);
/* The chain at `seq`; NOT_FOUND when no header at or below retention tells it any more. */
enum status wal_chain_at(struct wal *wal, uint32_t group, uint64_t seq, uint64_t *out_chain,
                         struct error *err) MUST_CHECK;

/* The term of the entry at `seq`; NOT_FOUND when it is not here (any more). */
enum status wal_term_at(struct wal *wal, uint32_t group, uint64_t seq, uint64_t *out_term,
                        struct error *err) MUST_CHECK;
/* The first entry that is still here; 0: none. */
uint64_t wal_retained_from(struct wal *wal, uint32_t group);

/* Rows, payload bytes and the last DATA entry of a table in (after, synced end]. */
struct wal_pending {
    uint64_t entries, rows, bytes;
    uint64_t last_seq;      /* 0: none */
    int64_t oldest_wall_ns; /* when the first of them was synced; 0: none */
};
struct wal_pending wal_pending(struct wal *wal, uint32_t group, uint32_t table_id, uint64_t after);

/* Waits until the synced end of any group moves past what it was at `*inout_ticket` (start with 0),
 * or `timeout_ms`, or wal_wake. Returns the new ticket in place. */
void wal_wait(struct wal *wal, uint64_t *inout_ticket, uint64_t timeout_ms);
void wal_wake(struct wal *wal);

/* ---- retention (L32-L34) ---- */

struct wal_ack {
    struct wal_position committed; /* what the table last said */
    struct wal_position through;   /* no unpublished row of this table up to here */
};

/* Durable when it returns; monotone (an older one is accepted and ignored). `acks` has one element
 * a group. CORRUPT: `through` would pass damage that may hold rows of the table, and that the table
 * is not committed past. Segments below every table's `through` become committed and are swept or
 * recycled. */
enum status wal_ack_table(struct wal *wal, uint32_t table_id, const struct wal_ack *acks,
                          struct error *err) MUST_CHECK;
/* False if this table was never acknowledged. */
bool wal_ack_get(struct wal *wal, uint32_t table_id, uint32_t group, struct wal_ack *out_ack);

/* ---- consumers (L31-L33) ---- */

enum {
    WAL_CONSUMERS_MAX = 256,
    WAL_CONSUMER_NAME_MAX = 64,
    WAL_OWNER_MAX = 64,
    WAL_MEMBERS_MAX = 32, /* of a partition group */
};

enum wal_consumer_verdict {
    WAL_CONSUMER_OK,
    WAL_CONSUMER_UNKNOWN,    /* no consumer has that name */
    WAL_CONSUMER_OTHER,      /* one has, of another table or group */
    WAL_CONSUMER_SIZE,       /* its partition group has another size */
    WAL_CONSUMER_TAKEN,      /* that member is another owner's */
    WAL_CONSUMER_ABSENT,     /* that member has not joined */
    WAL_CONSUMER_FULL,       /* WAL_CONSUMERS_MAX are there */
    WAL_CONSUMER_AHEAD,      /* behind the synced end */
    WAL_CONSUMER_OTHER_TERM, /* the entry at that seq has another term */
    WAL_CONSUMER_RECLAIMED,  /* entries of the table behind `start` are gone */
};

enum wal_consumer_start { WAL_START_EARLIEST, WAL_START_LATEST, WAL_START_AFTER };

/* Who asks. Text is borrowed; names and owners that are too long are INVALID. */
struct wal_consumer_key {
    const char *name, *owner;      /* owner "": all the same */
    uint32_t member, member_count; /* 0 of 1: no partition group */
};

struct wal_consumer_ask {
    struct wal_consumer_key key;
    uint32_t table_id, group;
    uint64_t ttl_ms;
    enum wal_consumer_start start; /* of a consumer that is made now */
    uint64_t start_seq;            /* WAL_START_AFTER */
};

struct wal_consumer {
    char name[WAL_CONSUMER_NAME_MAX + 1];
    uint32_t table_id, group, member_count;
    uint64_t ttl_ms;
    uint64_t held_from; /* entries of the table above it are held, if is_held */
    bool is_held;
    bool is_released;  /* given up since the last ack; with is_held: and taken up again, in memory
                          alone */
    bool was_released; /* wal_consumer_ack: until this ack */
    struct wal_consumer_member {
        bool has_joined, is_present;
        uint64_t term, seq; /* acknowledged; term 0: unknown */
        char owner[WAL_OWNER_MAX + 1];
    } members[WAL_MEMBERS_MAX];
};

/* Makes a consumer, or lets a member join or come back; renews its lease. A hold is durable when
 * this returns with WAL_CONSUMER_OK. `out_consumer` is filled whenever one of that name is there.
 */
enum status wal_consumer_put(struct wal *wal, const struct wal_consumer_ask *ask,
                             enum wal_consumer_verdict *out_verdict,
                             struct wal_consumer *out_consumer, struct error *err) MUST_CHECK;
/* All of the member's entries up to `seq`, whose entry has `term`, were taken over (L33). Durable
 * when it returns; monotone: an older one is accepted and ignored. The hold follows the lowest
 * member, and moves only while all are present. The term of what is gone is not checked. */
enum status wal_consumer_ack(struct wal *wal, const struct wal_consumer_key *key, uint64_t term,
                             uint64_t seq, enum wal_consumer_verdict *out_verdict,
                             struct wal_consumer *out_consumer, struct error *err) MUST_CHECK;
/* Renews in memory alone; credits nothing. */
enum wal_consumer_verdict wal_consumer_renew(struct wal *wal, const struct wal_consumer_key *key,
                                             struct wal_consumer *out_consumer);
/* False: it was not there. Durable when it returns. */
enum status wal_consumer_drop(struct wal *wal, const char *name, bool *out_was_there,
                              struct error *err) MUST_CHECK;
bool wal_consumer_get(struct wal *wal, const char *name, struct wal_consumer *out_consumer);
bool wal_consumer_at(struct wal *wal, size_t index, struct wal_consumer *out_consumer);

/* ---- for a mirror (L17, L23, L35) ---- */

/* How far a segment's file is synced. Its bytes [0, bytes) stay as they are, but that zeros may
 * take the place of what every table has (wal_segment_is_compacted). */
struct wal_extent {
    uint64_t segment_id, bytes;
    uint64_t stored;   /* that are there; more where some do not count */
    uint64_t unit;     /* the last one in them; UINT64_MAX: all */
    bool is_sealed;    /* `bytes` is the end of the file */
    bool is_committed; /* every row is acknowledged by its table */
};

/* The segments from `from_id` on that are here, rising, at most `capacity` of *out_count; and in
 * `synced_seqs`, one a group, if it is not NULL, the synced ends: what is in no extent and not
 * above them is in segments before `from_id`, or was reclaimed. All of the same moment. A segment
 * with entries that do not count is as long as it was before them, and not sealed. */
void wal_extents(struct wal *wal, uint64_t from_id, struct wal_extent *extents, size_t capacity,
                 size_t *out_count, uint64_t *synced_seqs);

/* The highest segment id that was ever given out, and the first one of this start. */
uint64_t wal_segment_newest(struct wal *wal, uint64_t *out_first_of_start);

/* Raises inout_seqs, one a group, to the last entry that the segment has of it; if it is gone or
 * compacted, to the last one that is gone with any. */
void wal_segment_ends(struct wal *wal, uint64_t segment_id, uint64_t *inout_seqs);

/* A segment's file, open; the segment is neither recycled nor removed until it is closed. One
 * thread at a time. */
struct wal_segment_file;
/* RECLAIMED: it is gone, or going. */
enum status wal_segment_open(struct wal *wal, uint64_t segment_id,
                             struct wal_segment_file **out_file, struct error *err) MUST_CHECK;
/* CORRUPT: the file is shorter. */
enum status wal_segment_read(struct wal_segment_file *file, uint64_t offset, void *data,
                             size_t bytes, struct error *err) MUST_CHECK;
/* What every table had taken may be missing from what is read: zeros stand there (L26). An image
 * made when wal_state_version had reached *out_version tells what that is. */
bool wal_segment_is_compacted(struct wal_segment_file *file, uint64_t *out_version);
void wal_segment_close(struct wal_segment_file *file); /* accepts NULL */

/* Appends a checkpoint, as in docs/format/checkpoint.md, for a copy of the log: one of all of it,
 * or one that need not hold what tables have acknowledged, where committed segments count as
 * reclaimed. The state of every segment up to *out_covers is in it. `out` is empty. */
enum status wal_state_image(struct wal *wal, bool is_whole, struct buf *out, uint64_t *out_covers,
                            struct error *err) MUST_CHECK;
/* Rises with every change of what such an image tells beside entries. */
uint64_t wal_state_version(struct wal *wal);

/* ---- looking ---- */

struct wal_usage {
    uint64_t budget_bytes,
        allocated_bytes; /* exact: st_blocks of all files, spares and state too */
    uint64_t segments_active, segments_sealed, segments_committed, segments_spare;
    uint64_t units_written, syncs, bytes_written, entries_written, payload_bytes_written;
    uint64_t submissions_refused;
    uint64_t units_copied_ahead, copies_taken_back; /* beside the unit in front of them */
    uint64_t producers;
    uint64_t producers_expired;            /* since the start */
    uint64_t producers_remembered;         /* expired ones that are still told so */
    uint64_t holds_lapsed, holds_released; /* of consumers: not renewed; given up for space */
    uint64_t segments_compacted;           /* since the start (L26) */
    uint64_t pinned_bytes;                 /* of segments that somebody is reading right now */
    bool is_refusing;
};
struct wal_usage wal_usage(struct wal *wal);
/* Whether more than `percent` of the budget is used. Cheap. */
bool wal_is_filled(struct wal *wal, unsigned percent);
/* Of the sealed segments that cannot leave before this table has taken its rows from them. What two
 * tables hold is counted for both. */
uint64_t wal_pinned_bytes(struct wal *wal, uint32_t table_id);

/* One segment, for `log ls`. */
struct wal_segment_info {
    uint64_t id, bytes, allocated_bytes, entries;
    const char *state; /* "active", "sealed", "committed", "spare" */
    char path[256];    /* relative to the log directory */
    int64_t created_wall_ns;
    bool is_cut;       /* a torn tail was cut here */
    bool is_compacted; /* what every table had taken was left out (L26) */
};
bool wal_segment_at(struct wal *wal, size_t index, struct wal_segment_info *out_info);

/* Seals the active segment now (tests, shutdown tools). */
enum status wal_seal(struct wal *wal, struct error *err) MUST_CHECK;

/* `log fork`: what lies above each table's `through` goes on under a new log id, as if freshly
 * written (E7): `through` stays, `committed` is forgotten, because no table has a position of the
 * new log. The caller acknowledges `through` up to the last position shared with the table first.
 * The log must be open and idle. Durable when it returns. */
enum status wal_fork(struct wal *wal, struct log_id *out_new_id, struct error *err) MUST_CHECK;

#endif
