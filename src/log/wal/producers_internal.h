/* SPDX-License-Identifier: Apache-2.0
 *
 * What is in memory of producers (L28-L30), between producers.c, expire.c and the files that apply
 * entries and write state/. All of it is guarded by the engine's lock.
 */
#ifndef SLUICE_LOG_PRODUCERS_INTERNAL_H
#define SLUICE_LOG_PRODUCERS_INTERNAL_H

#include "log/wal/segment_internal.h"

enum {
    WAL_RECEIPTS_KEPT = 8,      /* numbers of a producer whose receipts are kept (L30) */
    WAL_RECEIPTS_A_NUMBER = 16, /* one a table */
    WAL_EXPIRED_TIMES = 4,      /* producers_max: so many expired ones are remembered */
};

struct wal;

struct producer {
    uint64_t last;    /* highest durable sequence */
    uint64_t claim;   /* sequence in flight; 0: none */
    uint64_t seen_ms; /* on the log's clock */
    struct producer *older, *newer;
    struct wal_receipt *receipts; /* of (last - WAL_RECEIPTS_KEPT, last], lowest first */
    uint16_t receipt_capacity;
    uint8_t counts[WAL_RECEIPTS_KEPT]; /* receipts of a sequence, at its remainder */
    struct hash128 hashes[WAL_RECEIPTS_KEPT];
    bool is_told;  /* that it is uncertain: its next number may be any */
    bool is_going; /* in the list of those that expire: state/ is being told */
    uint8_t id_length;
    char id[];
};

/* From the longest idle to the one seen last. */
struct producer_list {
    struct producer *oldest, *newest;
};

/* Of an expired producer no more than this is kept. */
struct expired_row {
    uint64_t hash; /* of its id */
    uint64_t last;
};

/* A ring, oldest at `first`; a new one takes its place once `max` are there. */
struct expired {
    struct expired_row *rows;
    uint32_t *slots; /* open addressing: index + 1 of a row */
    size_t count, first, capacity, slot_count, max;
    uint64_t forgotten; /* rows that gave way */
};

struct producers {
    struct producer **slots; /* open addressing */
    size_t capacity, count, max;
    struct producer_list idle, going;
    size_t going_count;
    struct expired expired;
    uint64_t keep_ms;
    /* After `log recover`: who has stored nothing since that term is uncertain, until the clock
     * says that whoever was there before would have expired. 0: nobody is. */
    uint64_t certain_term, uncertain_until_ms;
    /* The log's clock: milliseconds in which it was open. */
    uint64_t clock_saved_ms; /* as state/ has it */
    uint64_t clock_base_ms;
    int64_t clock_base_ns; /* monotonic time at which it said clock_base_ms */
};

/* ---- producers.c; lock held ---- */

bool producers_init(struct producers *producers, size_t max, uint64_t keep_ms);
void producers_deinit(struct producers *producers);
/* Applies a durable entry. False: no memory for a producer that was not known, as after
 * wal_producer_begin it always is. */
bool producers_apply(struct producers *producers, const struct record *record,
                     const struct wal_contribution *contributions, uint64_t clock_ms);
/* Numbers that stand in entries which do not count yet; the highest of each producer. False: out of
 * memory. */
bool producers_claim(struct producers *producers, const struct wal_contribution *contributions,
                     uint32_t count, uint64_t clock_ms);
void producers_release(struct producers *producers, const struct wal_contribution *contributions,
                       uint32_t count);
void producers_encode(const struct producers *producers, struct buf *out);
enum status producers_decode(struct producers *producers, struct cursor *cursor,
                             struct error *err) MUST_CHECK;
struct producer *producers_find(const struct producers *producers, const char *id, size_t length);
void producers_remove(struct producers *producers, struct producer *producer);

void producer_list_add(struct producer_list *list, struct producer *producer);      /* as newest */
void producer_list_put_back(struct producer_list *list, struct producer *producer); /* as oldest */
void producer_list_remove(struct producer_list *list, struct producer *producer);

/* ---- expire.c; lock held unless said ---- */

uint64_t wal_clock_ms(const struct wal *wal);
/* If the longest idle one has outlived its time: it goes, once state/ knows. */
bool producers_oldest_goes(struct producers *producers, uint64_t clock_ms);
/* The expired one of that id; NULL: none that is remembered. */
const struct expired_row *expired_find(const struct expired *expired, const char *id,
                                       size_t length);
void expired_deinit(struct expired *expired);
/* The keeper's: all that have outlived their time. State held, lock not. */
enum status producers_expire(struct wal *wal, struct error *err) MUST_CHECK;
/* The clock, when each was seen, and the expired; what stands in a base behind the leases. */
void producers_times_encode(const struct producers *producers, uint64_t clock_ms, struct buf *out);
enum status producers_times_decode(struct producers *producers, struct cursor *cursor,
                                   struct error *err) MUST_CHECK;
/* A change in state/: these expired. */
enum status producers_expired_decode(struct producers *producers, struct cursor *cursor,
                                     struct error *err) MUST_CHECK;

#endif
