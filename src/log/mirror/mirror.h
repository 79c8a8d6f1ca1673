/* SPDX-License-Identifier: Apache-2.0
 *
 * The mirror: a copy of the log's synced bytes in an object store, from which `log recover` makes a
 * data directory anew (L35). docs/format/mirror.md gives names and bytes.
 */
#ifndef SLUICE_LOG_MIRROR_MIRROR_H
#define SLUICE_LOG_MIRROR_MIRROR_H

#include "lake/store/store.h"
#include "log/wal/wal.h"

/* ---- names and bytes; pure ---- */

enum {
    MIRROR_HEADER_BYTES = 96,
    MIRROR_RANGE_BYTES_MAX = 8 << 20, /* of a range's body, as we write it */
    MIRROR_NAME_BYTES = 112,          /* of a name below the log's root, with its NUL */
    MIRROR_HEAD_BYTES_MAX = 4096,
};

enum mirror_kind { MIRROR_RANGE = 1, MIRROR_STATE = 2 };

enum { MIRROR_IS_END = 1 }; /* flag of a range: `to` is the end of a sealed segment's file */

struct mirror_header {
    enum mirror_kind kind;
    uint32_t flags;
    struct log_id log_id;
    uint64_t id;       /* of the segment; of a state its number */
    uint64_t from, to; /* of a state 0 and the body's bytes */
    uint64_t incarnation;
    uint64_t floor; /* of a state: covers */
    int64_t made_ns;
    uint32_t body_crc;
};

void mirror_header_encode(uint8_t out[MIRROR_HEADER_BYTES], const struct mirror_header *header);
/* CORRUPT; UNSUPPORTED: a later version. */
enum status mirror_header_decode(struct span bytes, struct mirror_header *out_header,
                                 struct error *err) MUST_CHECK;
/* The header of `object`, whose body it also checks. CORRUPT. */
enum status mirror_object_check(struct span object, struct mirror_header *out_header,
                                struct error *err) MUST_CHECK;

/* What a name says; the other fields stay 0. */
void mirror_name_put(const struct mirror_header *header, char out[MIRROR_NAME_BYTES]);
/* `name` is below the log's root. False: none of ours. */
bool mirror_name_parse(struct span name, struct mirror_header *out_header);
/* Whether the header is what such a name stands for. */
bool mirror_header_is_of(const struct mirror_header *header, const struct mirror_header *name);

/* "<url>/<log id>"; INVALID if it does not fit. */
enum status mirror_root(const char *url, struct log_id id, char out[STORE_URI_BYTES_MAX],
                        struct error *err) MUST_CHECK;

struct mirror_head {
    struct log_id log_id;
    uint64_t incarnation;
    uint32_t group_count;
    uint64_t writer; /* random, of the one start that may write; 0: of none yet */
    int64_t made_ms;
};

void mirror_head_encode(struct buf *out, const struct mirror_head *head);
/* CORRUPT: no head of a mirror; UNSUPPORTED: a later version. */
enum status mirror_head_decode(struct span text, struct mirror_head *out_head,
                               struct error *err) MUST_CHECK;

/* ---- the way in ----
 *
 * A few threads of the mirror copy what is synced, range by range; one more looks after head,
 * states and what may go. Others wait for positions and read states; any thread, unless said
 * otherwise. README.md beside this file gives the steps.
 */

struct mirror;

struct mirror_options {
    const char *url;                     /* what is below it is named by the log's id */
    uint64_t interval_ms;                /* what is synced waits at most so long; default 1,000 */
    unsigned uploads;                    /* at the same time; default 4 */
    uint64_t retry_ms_min, retry_ms_max; /* back-off; defaults 100 and 30,000 */
    uint64_t state_ms;    /* between states, where nothing is to be deleted; default 60,000 */
    uint64_t sweep_ms;    /* between deletions; default 10,000 */
    uint64_t head_ms;     /* between looks at the head; default 5,000 */
    uint64_t range_bytes; /* of one object; default and at most MIRROR_RANGE_BYTES_MAX */
    /* Told when it does not get on (`why`), and when it does again (NULL). A thread of the mirror;
     * may be NULL. */
    void (*changed)(const char *why, bool is_refused);
};

struct mirror_options mirror_options_default(const char *url);

enum { MIRROR_UPLOADS_MAX = 64 };

/* The log is borrowed. Nothing is read or written yet. UNSUPPORTED: a scheme that nobody serves. */
enum status mirror_create(struct env *env, const struct mirror_options *options, struct wal *wal,
                          struct mirror **out_mirror, struct error *err) MUST_CHECK;
enum status mirror_start(struct mirror *mirror, struct error *err) MUST_CHECK;
/* What is due, on the caller's thread, while the mirror's own do not run: afterwards everything
 * that was synced at the call is confirmed. HALTED: refused. */
enum status mirror_run_once(struct mirror *mirror, struct error *err) MUST_CHECK;
/* From now on nobody waits while the store fails: CLOSED, at once. */
void mirror_hurry(struct mirror *mirror);
/* Copies what is synced, for as long as `timeout_ms` and not while that fails, then ends the
 * threads. Who still waits is told CLOSED. */
void mirror_stop(struct mirror *mirror, uint64_t timeout_ms);
void mirror_destroy(struct mirror *mirror); /* accepts NULL; before the log is closed */

/* Everything of the group up to it that was synced is in the mirror, or was in its table and gone
 * from the log before it was copied. */
uint64_t mirror_confirmed(struct mirror *mirror, uint32_t group);
/* Whether this entry was copied, as far as this process knows; *out_at_ms: when, 0 unknown. */
bool mirror_receipt(struct mirror *mirror, uint32_t group, uint64_t seq, int64_t *out_at_ms);
/* HALTED: nothing is copied any more; what an admission asks before `remote`. */
enum status mirror_check(struct mirror *mirror, struct error *err) MUST_CHECK;

struct mirror_waiter {
    /* Called once: OK when the position is in the mirror; RECLAIMED: it went another way (see
     * mirror_confirmed); HALTED; CLOSED. On a thread of the mirror, or inside mirror_wait. Must not
     * block. */
    void (*done)(struct mirror_waiter *waiter, enum status status);
    void *context;
    struct mirror_waiter *next;
    uint32_t group;
    uint64_t seq;
};

/* Asks for a copy of everything up to (group, seq) at once. `waiter` must stay until `done`, or
 * until mirror_wait_cancel has answered true. */
void mirror_wait(struct mirror *mirror, struct mirror_waiter *waiter, uint32_t group, uint64_t seq);
/* False: `done` was called, or is about to be. */
bool mirror_wait_cancel(struct mirror *mirror, struct mirror_waiter *waiter);

/* What a failure was of. */
enum mirror_step {
    MIRROR_BEGIN,   /* head and list */
    MIRROR_READ,    /* the log's own file */
    MIRROR_PUT,     /* a range */
    MIRROR_VERIFY,  /* a range, after it */
    MIRROR_CONFIRM, /* the head, after that */
    MIRROR_PUT_STATE,
    MIRROR_SWEEP,
    MIRROR_STEPS,
};
const char *mirror_step_name(enum mirror_step step);

enum mirror_condition {
    MIRROR_BEGINS, /* has not yet read what is there */
    MIRROR_RUNS,
    MIRROR_RETRIES, /* back-off */
    MIRROR_REFUSED, /* nothing is written any more: `why` says it */
};
const char *mirror_condition_name(enum mirror_condition condition);

struct mirror_stats {
    enum mirror_condition condition;
    char why[480];        /* of the last failure, while it lasts */
    uint64_t queue_bytes; /* synced and not confirmed */
    int64_t oldest_ms;    /* for how long the first of them has been asked for; 0: none */
    uint64_t uploads_total, uploaded_bytes_total; /* confirmed ones */
    uint64_t failures_total[MIRROR_STEPS];
    uint64_t abandoned_total;           /* ranges that were never copied, see mirror_confirmed */
    uint64_t states_total, swept_total; /* states put; objects deleted */
    uint64_t waiting;                   /* who waits */
    int64_t confirmed_wall_ms;          /* when everything known was; 0: never */
};
struct mirror_stats mirror_stats(struct mirror *mirror);
const char *mirror_url(const struct mirror *mirror); /* with the log's id */

/* ---- the way back (plan.c, fetch.c); one thread ---- */

struct mirror_segment {
    uint64_t id, bytes;
    uint64_t floor; /* units up to it are proven; UINT64_MAX: all */
    bool is_complete;
};

struct mirror_problem {
    char text[256]; /* the object, or the bytes, and what is wrong */
};

enum { MIRROR_TOKEN_BYTES = 33 }; /* of a recovery: 32 hex digits and their NUL */

/* What a mirror has of one log. */
struct mirror_plan {
    struct mirror_head head;
    char root[STORE_URI_BYTES_MAX]; /* of the log, without a slash at its end */
    uint64_t incarnation;           /* the highest that an object or the head bears */
    uint64_t claimed;               /* the highest that a recovery took, whatever became of it */
    struct mirror_header *ranges;   /* by segment, incarnation and place; what their names say */
    size_t range_count, range_capacity;
    struct mirror_header *states; /* the one that counts, if it verifies, first */
    size_t state_count, state_capacity;
    /* of mirror_fetch: */
    struct mirror_header state; /* the one that was taken */
    bool has_state;
    struct mirror_segment *segments; /* that are in the directory, by id */
    size_t segment_count, segment_capacity;
    struct mirror_problem *problems;
    size_t problem_count, problem_capacity;
};

/* Lists what the store has of the log `wanted`; NULL: of the only one there is. NOT_FOUND: nothing
 * below the store's root is a mirror; USAGE: several are, or the root is that of one log; IDENTITY:
 * the head is another log's; CORRUPT, UNSUPPORTED: of the head. */
enum status mirror_plan_create(struct store *store, const struct log_id *wanted,
                               struct mirror_plan **out_plan, struct error *err) MUST_CHECK;
void mirror_plan_destroy(struct mirror_plan *plan); /* accepts NULL */
/* Writes what counts into `dir`, which is empty, as the directory of a log that wal_open takes with
 * a `restore`; synced. What is damaged or missing is left out and named in plan->problems. Errors
 * are those of the store and the directory. */
enum status mirror_fetch(struct env *env, struct store *store, struct mirror_plan *plan,
                         const char *dir, struct error *err) MUST_CHECK;
/* What of it is proven, after mirror_fetch: fills proven_... of `restore`, log id and groups. */
void mirror_plan_prove(const struct mirror_plan *plan, struct wal_restore *restore);
/* Takes an incarnation for the recovery that bears `token`; again is fine. BUSY: another one has
 * it. */
enum status mirror_claim(struct store *store, const struct mirror_plan *plan, uint64_t incarnation,
                         const char token[MIRROR_TOKEN_BYTES], struct error *err) MUST_CHECK;
/* Raises the head's incarnation: from then on the writer before confirms nothing more. BUSY:
 * somebody raised it since the plan was made. */
enum status mirror_head_raise(struct env *env, struct store *store, const struct mirror_plan *plan,
                              uint64_t incarnation, struct error *err) MUST_CHECK;

#endif
