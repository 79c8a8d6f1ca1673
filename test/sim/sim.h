/* SPDX-License-Identifier: Apache-2.0
 *
 * A simulated world for code written against struct env. One OS thread runs everything: each thread
 * of a node is a fiber, each env call is a point where the seed may switch to another fiber, fail
 * the call, or cut the power. One 64-bit seed decides all of it, so that a run replays exactly.
 *
 *   struct sim *sim = sim_create(seed);
 *   struct sim_node *node = sim_node_create(sim, volume_bytes);
 *   sim_crash_at(node, SIM_POWER_CUT, 500);            // at the 500th disk call
 *   enum sim_end end = sim_run(node, node_main, context);  // on fibers, until it ends or crashes
 *   end = sim_run(node, node_main, context);               // a restart on the disk that is left
 *   sim_destroy(sim);
 *
 * Disk: what a node reads is its page cache; each write, truncation and name is pending until a
 * sync has returned. A killed process leaves the cache as it is. A power cut decides for each
 * pending operation: kept, lost, torn at 512-byte sectors, or garbage in the sectors it touched. A
 * failed sync marks pages clean though only some reached the disk. Names: a rename is atomic, or
 * leaves the new name beside the old one if the directories differ.
 *
 * Memory that a node allocates through base/alloc is given back when it crashes (sim_alloc.c
 * replaces base/alloc.c). The test's own model uses malloc, and lives on.
 */
#ifndef SLUICE_TEST_SIM_H
#define SLUICE_TEST_SIM_H

#include "os/os.h"

struct sim;
struct sim_node;

enum sim_end {
    SIM_ENDED, /* main and all threads returned */
    SIM_POWER_CUT,
    SIM_KILLED, /* the process alone: what it wrote stays in the page cache */
    SIM_EXITED, /* env_fatal_exit: killed by itself; see sim_exit_code */
    SIM_STUCK,  /* nobody can run, or far too many steps */
};

/* How often, in calls of 65,536. All zero at first. */
struct sim_faults {
    uint32_t sync_fails; /* of file syncs: IO, part of the pages are lost */
    uint32_t dir_sync_fails;
    uint32_t write_no_space; /* of writes: part of the bytes are there, NO_SPACE */
    uint32_t allocate_no_space;
    uint32_t alloc_fails; /* of memory allocations */
    uint32_t clock_steps; /* of wall clock reads: a jump of up to a day */
    uint32_t switches;    /* of all calls: another fiber goes on (default 16,384) */
    const char
        *syncs_under; /* syncs fail of paths that begin so alone; NULL: of all. Set before a run */
};

struct sim_counts {
    uint64_t calls, switches, syncs, writes, power_cuts, kills, exits;
    uint64_t ops_kept, ops_lost, ops_torn, ops_garbage, names_lost, renames_doubled;
    uint64_t removals_lost, syncs_failed, no_space, volume_full, allocs_failed, clock_steps,
        bits_flipped;
};

struct sim *sim_create(uint64_t seed);
void sim_destroy(struct sim *sim);
struct random *sim_random(struct sim *sim); /* the test's own stream */
struct sim_counts sim_counts(const struct sim *sim);
uint64_t sim_trace(const struct sim *sim); /* hash over every call so far: equal in a replay */
/* Leaves the bytes written to files of this suffix (a literal) out of the trace. */
void sim_trace_skip(struct sim *sim, const char *suffix);

struct sim_node *sim_node_create(struct sim *sim, uint64_t volume_bytes);
struct env *sim_node_env(struct sim_node *node);
struct sim_faults *sim_node_faults(struct sim_node *node);
void sim_node_link(struct sim_node *node, const char *from, const char *to); /* a hard link */
void sim_node_volume(struct sim_node *node, uint64_t bytes);                 /* changes its size */
/* Whether files can be opened with ENV_DIRECT and ENV_DSYNC; not at first. */
void sim_node_direct(struct sim_node *node, bool is_supported);

/* What a test makes of a call, one by one; asked before the call acts. */
enum sim_call {
    SIM_OPEN,
    SIM_READ,
    SIM_WRITE,
    SIM_SYNC,
    SIM_ALLOCATE,
    SIM_RENAME,
    SIM_REMOVE,
    SIM_LIST,
    SIM_DIR_SYNC,
};
enum sim_verdict {
    SIM_FINE,
    SIM_FAILS,   /* IO; of a write part is there, of a sync part of the pages are lost */
    SIM_FULL,    /* NO_SPACE; of a write part is there */
    SIM_IGNORED, /* answered well by a disk that does nothing: power cuts show it */
    SIM_ASTRAY,  /* a write: to the same place of another file, or a block behind its own */
};
/* `to`: of a rename; else NULL. */
typedef enum sim_verdict (*sim_judge_fn)(void *context, enum sim_call call, const char *path,
                                         const char *to);
/* `astray`: the other file, borrowed; NULL: the block behind. `judge` NULL: nobody judges. */
void sim_node_judge(struct sim_node *node, sim_judge_fn judge, void *context, const char *astray);

/* The disk of a node that is down, as it stands, pending operations too. A test may look at a copy
 * with code that changes it, and put the disk back. */
struct sim_disk_copy *sim_disk_save(struct sim_node *node);
void sim_disk_load(struct sim_node *node, struct sim_disk_copy *copy); /* takes the copy */

/* Runs `main` as the node's first thread until the node has ended or crashed. */
enum sim_end sim_run(struct sim_node *node, void (*main)(void *context), void *context);
/* Crashes at the `calls`th call from now that writes, syncs or names something, before it acts; 0
 * takes it back. */
void sim_crash_at(struct sim_node *node, enum sim_end how, uint64_t calls);
/* From inside the node: ends it now. Does not return. */
_Noreturn void sim_crash(struct sim_node *node, enum sim_end how);
int sim_exit_code(const struct sim_node *node);
const char *sim_exit_reason(const struct sim_node *node);

/* The disk from outside. Power loss of a node that is down already. */
void sim_power_cut(struct sim_node *node);
/* Flips one bit, on the disk and in the cache. False if there is no such byte. */
bool sim_flip_bit(struct sim_node *node, const char *path, uint64_t offset, unsigned bit);
/* The current bytes of a file; borrowed until the disk changes. False if it is not there. */
bool sim_file_bytes(struct sim_node *node, const char *path, const uint8_t **out_data,
                    uint64_t *out_bytes);
/* Makes a file with these bytes, durable, with the directories above it; replaces one that is
 * there. */
void sim_put_file(struct sim_node *node, const char *path, const void *data, uint64_t bytes);
/* Whether the file was removed once, and a power cut took that back. */
bool sim_came_back(const struct sim_node *node, const char *path);
/* Each name under `dir`, current view. */
void sim_each_file(struct sim_node *node, const char *dir,
                   void (*each)(void *context, const char *path, const struct env_stat *stat),
                   void *context);

#endif
