/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of sim_mirror share: the model of a log and its mirror (sim_mirror.c), and the
 * look at the mirror alone (mirror_look.c).
 */
#ifndef SLUICE_TEST_SIM_MIRROR_MODEL_H
#define SLUICE_TEST_SIM_MIRROR_MODEL_H

#include <stdio.h>
#include <stdlib.h>

#include "log/mirror/mirror.h"
#include "sim/sim_seeds.h"

enum { GROUPS_MAX = 2, TABLES = 2, WORKERS_MAX = 3, ITEMS_MAX = 4096, SEGMENTS_MAX = 1024 };

#define MIRROR_DIR "/mirror"

/* One entry that was acknowledged as synced; its number is in its payload. */
struct item {
    uint32_t group, table;
    uint64_t seq;
    bool is_remote;    /* somebody was told so */
    uint32_t worker;   /* whose producer sent it */
    uint64_t sequence; /* 0: nobody's */
    bool is_there;     /* in the look under way */
};

struct model {
    uint64_t seed;
    bool is_verbose, is_last;
    struct sim *sim;
    struct sim_node *node;
    struct wal_options log_options;
    struct mirror_options options;
    struct wal *wal;
    struct mirror *mirror;
    uint32_t groups, workers, ops;
    uint32_t tables[TABLES];
    bool may_compact;
    bool is_stuck; /* the first table takes nothing */
    struct item items[ITEMS_MAX];
    uint64_t item_count;
    uint64_t tried[TABLES][GROUPS_MAX]; /* acknowledged by the table, or perhaps */
    uint64_t sequences[WORKERS_MAX];    /* the producers': the last one tried */
};

struct worker {
    struct model *model;
    uint32_t index;
    struct env_thread *thread;
};

/* Lives through a crash: it may be told late. */
struct wait {
    struct mirror_waiter waiter;
    struct model *model;
    uint64_t number;
    bool is_told;
    enum status status;
};

/* What all seeds together have seen; each must have happened. */
struct totals {
    uint64_t seeds, runs, appended, remote, given_up, abandoned, looked, ranges, states, swept,
        back, failures, producers, acks, compacted, found_compacted;
    struct sim_counts sim;
};
extern struct totals totals;

_Noreturn void fail(const struct model *model, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The producer of a worker. */
struct span producer_of(uint32_t worker);

/* What the mirror has, as if the log were lost, and what becomes of it. */
void look(struct model *model);

#endif
