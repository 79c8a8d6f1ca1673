/* SPDX-License-Identifier: Apache-2.0
 *
 * The model that sim_wal holds the log against, shared by its files. It lives through crashes, as
 * its memory is the test's own; what it says of an entry is what the log has promised so far.
 */
#ifndef SLUICE_TEST_SIM_WAL_MODEL_H
#define SLUICE_TEST_SIM_WAL_MODEL_H

#include <stdio.h>
#include <stdlib.h>

#include "log/wal/wal.h"
#include "sim/sim_seeds.h"

enum {
    TABLES = 3,
    GROUPS_MAX = 3,
    PRODUCERS = 4,
    WORKERS_MAX = 4,
    PRODUCER_IDS = 64, /* an expired one is followed by another */
    PRODUCED_MAX = 512,
    CONSUMERS = 3,
    MEMBERS_MAX = 3
};

enum item_state { ITEM_UNKNOWN, ITEM_WRITTEN, ITEM_SYNCED, ITEM_REFUSED };

/* One DATA entry that was ever submitted; its number is in its payload. */
struct item {
    uint32_t table, group, bytes;
    uint64_t submission;
    enum item_state state;
    uint64_t seq, term, chain;
    bool is_durable;   /* synced, or seen by a scan */
    bool is_lost;      /* named as damaged; expected no more */
    bool is_gone;      /* was not there after a start: must never come back */
    bool is_present;   /* in the scan under way */
    uint32_t producer; /* its number, from 1 */
    uint64_t producer_sequence;
};

struct u64s {
    uint64_t *values;
    size_t count, capacity;
};

struct producer_model {
    uint32_t number; /* of its id; 0: none yet */
    uint64_t next;   /* highest sequence known to be durable */
    int64_t seen_ns; /* when the request of that sequence began */
};

/* One that was told that it expired. */
struct retired_model {
    uint32_t number;
    uint64_t last;
};

struct consumer_model {
    bool is_busy, is_known; /* known: a put was tried */
    bool is_sure;           /* it is there, and has been since a call returned */
    bool in_flight;         /* a call was begun whose effect nobody has seen */
    uint32_t table, group, members;
    uint64_t ttl_ms;
    bool has_joined[MEMBERS_MAX];
    uint64_t sure[MEMBERS_MAX], tried[MEMBERS_MAX]; /* acks: answered; begun */
    int64_t until_ns[MEMBERS_MAX];                  /* present until then at the latest */
    uint64_t held;                                  /* last seen */
    uint64_t floor; /* what was reclaimed when the hold last stood for sure */
};

struct model {
    uint64_t seed;
    bool is_verbose;
    struct sim *sim;
    struct sim_node *node;
    struct wal_options options;
    struct wal *wal;
    uint32_t groups, workers, ops;
    struct item *items; /* by number; 0 unused */
    size_t item_count, item_capacity;
    uint64_t submissions;
    struct u64s synced_at[GROUPS_MAX];  /* number by seq, once durable */
    struct u64s written_at[GROUPS_MAX]; /* number by seq, last written acknowledgement */
    uint32_t table_ids[TABLES];
    uint64_t through[TABLES][GROUPS_MAX], tried[TABLES][GROUPS_MAX];
    struct producer_model producers[PRODUCERS];
    struct retired_model retired[PRODUCER_IDS];
    uint32_t retired_count, producer_numbers;
    bool had_no_memory; /* a receipt may have been lost for that */
    bool producer_busy[PRODUCERS];
    struct consumer_model consumers[CONSUMERS];
    uint64_t term_last;
    bool has_rot, is_power_lost;
    uint32_t stuck; /* a table that takes nothing before the last runs; TABLES: none is */
    uint64_t outstanding;
};

struct worker {
    struct model *model;
    uint32_t index;
    uint64_t ordered[2], done[2];
};

/* What all seeds together have seen; each must have happened. */
struct totals {
    uint64_t seeds, runs, appended, cut, voided, refused, damaged, dropped, copied_ahead,
        taken_back, repeats, scanned, acks, reclaimed, forks, verified, open_refused, written_lost,
        producers_checked, consumer_acks, terms_refused, holds_checked, holds_released, lapsed,
        gave_way, expired, expired_asked, full, limited, backlogs_counted, compacted,
        found_compacted;
    struct sim_counts sim;
};
extern struct totals totals;

/* Prints the seed and ends the program. */
_Noreturn void fail(const struct model *model, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void say(const struct model *model, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint64_t pick(struct model *model, uint64_t bound);

/* ---- wal_model.c: entries and what was promised of them ---- */

uint64_t u64s_get(const struct u64s *list, uint64_t at); /* 0 past its end */
void u64s_set(struct u64s *list, uint64_t at, uint64_t value);
uint64_t item_add(struct model *model, struct item item); /* returns its number */
void payload_fill(uint64_t number, uint8_t *to, uint32_t bytes);
bool payload_holds(uint64_t number, struct span payload);
struct hash128 body_hash(uint32_t producer, uint64_t sequence);
/* The entry was acknowledged or seen at this place. */
void item_placed(struct model *model, uint64_t number, uint64_t seq, uint64_t term, uint64_t chain,
                 bool is_durable);
/* A scan showed this entry: it is whole, wanted there, and durable from now on. */
void view_check(struct model *model, const struct wal_view *view);

/* ---- wal_work.c ---- */

/* What one worker does in a run. */
void worker_main(void *worker);

/* ---- wal_consumers.c ---- */

void consumer_work(struct worker *worker);
void consumers_check(struct model *model); /* after each start */

/* ---- wal_check.c: the whole, after each start ---- */

/* False if (simulated) memory ran out on the way. */
bool check_all(struct model *model);
/* L37: exact, once the keeper has come to rest. */
void budget_check(struct model *model, const char *dir);
/* What is not published, of tables and groups, is what a count of the index says. */
void backlogs_check(struct model *model);

#endif
