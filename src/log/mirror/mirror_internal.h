/* SPDX-License-Identifier: Apache-2.0
 *
 * The mirror's insides, shared by mirror.c (threads, waiters, questions), begin.c (what is there at
 * a start), upload.c (ranges) and tidy.c (states, what goes).
 *
 * `lock` guards what is marked so and is never held over I/O, an allocation or a callback. What is
 * the planner's belongs to who has set is_planning.
 */
#ifndef SLUICE_LOG_MIRROR_INTERNAL_H
#define SLUICE_LOG_MIRROR_INTERNAL_H

#include "log/mirror/mirror.h"

enum {
    MIRROR_RING = 1024,       /* times of confirmations that are remembered */
    MIRROR_QUEUED_MIN = 16,   /* ranges that are planned ahead, at least */
    MIRROR_HEAD_PREFIX = 4096 /* of a segment, by which it is known again */
};

/* A range on its way. They stand in the order of the log; one segment's may be under way at the
 * same time. */
struct upload {
    struct upload *next;
    uint64_t segment_id, from, to, floor;
    bool is_end;
    enum { UPLOAD_READY, UPLOAD_BUSY, UPLOAD_DONE } step;
    unsigned attempts;
    int64_t planned_ns, next_try_ns;
    /* With this one and all before it everything up to here is confirmed; NULL: nothing to say. */
    uint64_t *seqs;
};

/* How far a segment is planned. */
struct progress {
    uint64_t segment_id, planned;
    bool is_done; /* to its end, or never more */
};

/* A step from one position to the next. */
struct confirmation {
    uint32_t group;
    uint64_t after, through;
    int64_t at_ms;
};

struct mirror {
    struct env *env;
    struct mirror_options options;
    struct wal *wal;
    struct store *store; /* its root is the log's */
    struct log_id log_id;
    uint64_t incarnation, writer;
    uint32_t group_count;
    struct env_mutex *lock;
    struct env_cond *work, *tidy, *moved; /* uploads; the tidying thread; mirror_stop */
    struct env_thread *threads[MIRROR_UPLOADS_MAX], *tidy_thread;

    /* all guarded by lock from here */
    bool is_begun, is_planning, is_refused, is_hurrying, is_stopping, is_failing;
    bool wants_flush, is_in_doubt; /* the head is to be read at once */
    bool wants_state;              /* at once: ranges wait for it */
    uint64_t stated;  /* one above the version of the newest state since the start; 0: none */
    struct error why; /* of is_refused, or of the last failure */
    struct upload *head, **tail;
    size_t queued, busy;
    uint64_t queued_bytes; /* of ranges that are not DONE */
    int64_t next_plan_ns;
    uint64_t *planned_seqs;                /* what the last mark will confirm */
    uint64_t *confirmed, *abandoned;       /* up to here; some up to here were not copied */
    uint64_t *found;                       /* what was synced when it was made; constant */
    struct confirmation ring[MIRROR_RING]; /* the newest at ring_at - 1 */
    size_t ring_at;
    struct mirror_waiter *waiters;
    uint64_t waiting;
    struct mirror_stats counters;
    /* Segments that have objects in the mirror, rising. */
    uint64_t *held;
    size_t held_count, held_capacity;

    /* the planner's; first_id and planned_sum are written under lock */
    struct progress *progress; /* from first_id on, rising */
    size_t progress_count, progress_capacity;
    uint64_t first_id; /* what is before it is done */
    uint64_t seen_id;  /* the highest in a picture of the log */
    uint64_t planned_sum;

    /* the tidying thread's */
    bool has_written; /* ranges of segments that this process began may be there */
    bool has_state;   /* one was put since the start */
    bool has_lower;   /* objects of lower incarnations may be there */
    uint64_t state_number, state_version;
    int64_t next_state_ns, next_sweep_ns, next_head_ns, next_begin_ns, next_tidy_ns;
    unsigned begin_attempts, tidy_attempts;
};

/* ---- mirror.c ---- */

/* Nothing is written any more. Lock not held. */
void mirror_refuse(struct mirror *mirror, const struct error *err);
/* Counts a failure and keeps its text. Lock not held. */
void mirror_failed(struct mirror *mirror, enum mirror_step step, const struct error *err);
void mirror_works(struct mirror *mirror); /* something succeeded; lock not held */
/* Between tries, longer with each, and never twice the same. */
int64_t mirror_back_off_ns(struct mirror *mirror, unsigned attempts);
/* Everything up to `seqs` is confirmed; whom that satisfies is told. Lock held, and given up
 * meanwhile. */
void mirror_publish(struct mirror *mirror, const uint64_t *seqs);
/* The segment is not copied, or not all of it, because no table needs it. Lock not held. */
void mirror_abandon(struct mirror *mirror, uint64_t segment_id);
bool mirror_grow(void **array, size_t *capacity, size_t count, size_t element);
/* In rising order, once. False: out of memory. Lock not held: it allocates. */
bool mirror_hold(struct mirror *mirror, uint64_t segment_id);
/* All extents from `from_id` on, owned by the caller; NULL: out of memory. */
struct wal_extent *mirror_extents(struct mirror *mirror, uint64_t from_id, size_t *out_count,
                                  uint64_t *seqs);

/* What was there is not there any more: begins again. The tidying thread's. */
void mirror_vanished(struct mirror *mirror);

/* ---- begin.c ---- */

/* Reads what is there; HALTED and the like refuse. The tidying thread's. */
enum status mirror_begin(struct mirror *mirror, struct error *err) MUST_CHECK;
/* The name of an object below the log's root; of another one it is empty. */
struct span mirror_name_of(const struct mirror *mirror, const struct store_object *object);
/* Whether the head is still ours. HALTED: a newer incarnation's, which also fences the log, or
 * another server's; NOT_FOUND: it is gone. Lock not held. */
enum status mirror_head_check(struct mirror *mirror, struct error *err) MUST_CHECK;

/* ---- upload.c ---- */

/* Without the lock. An object that the store then has in its whole length; *out_is_put: it said so
 * of the put itself. */
enum status mirror_put(struct mirror *mirror, const char *name, const struct buf *object,
                       bool *out_is_put, struct error *err) MUST_CHECK;

/* ---- upload.c; lock held, and given up meanwhile ---- */

/* One range, or one plan. False: nothing is due, for *out_wait_ms. */
bool mirror_upload_step(struct mirror *mirror, struct buf *buffer, uint64_t *out_wait_ms);
void mirror_uploads_drop(struct mirror *mirror); /* nobody uploads */

/* ---- tidy.c ---- */

/* Head, states, deletions: what is due. The tidying thread's; lock not held. */
void mirror_tidy(struct mirror *mirror, bool is_forced);

#endif
