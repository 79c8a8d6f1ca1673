/* SPDX-License-Identifier: Apache-2.0
 *
 * Insides of the simulation, shared by its files. Nothing here is tracked as a node's memory: the
 * world allocates with malloc, and a failure to allocate ends the test.
 */
#ifndef SLUICE_TEST_SIM_INTERNAL_H
#define SLUICE_TEST_SIM_INTERNAL_H

#include <ucontext.h>

#include "sim/sim.h"

enum { SIM_SECTOR = 512, SIM_BLOCK = 4096, SIM_STACK_BYTES = 512 << 10 };

/* ---- disk ---- */

enum op_kind { OP_WRITE, OP_RESIZE };

struct op {
    enum op_kind kind;
    uint64_t offset, bytes; /* RESIZE: the new size in `bytes` */
    uint64_t number;        /* order within the file */
    uint8_t *data;
    struct op *next;
};

/* Of file_range_lock: who holds [from, to). */
struct range_lock {
    const void *holder; /* a handle */
    uint64_t from, to;
    bool is_exclusive;
    struct range_lock *next;
};

struct inode {
    uint64_t number;
    uint32_t links; /* names in the current view */
    uint32_t opens;
    bool is_directory, is_locked;
    uint8_t *cache, *disk;
    uint64_t cache_bytes, disk_bytes, cache_capacity, disk_capacity;
    uint8_t *is_taken; /* by block: the others are holes */
    uint64_t taken, is_taken_capacity;
    struct op *pending, **pending_tail;
    uint64_t op_next;
    bool is_marked;
    int64_t modified_ns;
    struct range_lock *locks;
    struct inode *twin; /* while a disk is copied */
    struct inode *next;
};

struct name {
    uint64_t hash; /* of the path */
    char *path;
    struct inode *inode;
    struct name *next;
};

/* A change of names that no directory sync has covered. */
struct name_op {
    char *dir; /* whose sync covers it */
    char *path;
    struct inode *inode;   /* NULL: the name goes */
    struct name_op *needs; /* a removal by rename: not without its new name */
    bool is_atomic;        /* with `needs`: both or none */
    bool is_applied, is_decided, is_kept;
    struct name_op *next;
};

struct disk {
    struct inode *inodes;
    struct name *current, *durable;
    struct name_op *pending;
    struct name *came_back; /* removals that a power cut took back */
    uint64_t inode_next, volume_bytes;
};

/* ---- fibers ---- */

enum fiber_state { FIBER_READY, FIBER_LOCKED, FIBER_WAITING, FIBER_SLEEPING, FIBER_ENDED };

struct fiber {
    struct sim_node *node;
    ucontext_t context;
    void *stack;
    void *fake_stack; /* the address sanitizer's */
    enum fiber_state state;
    void *on;            /* mutex or condition */
    int64_t deadline_ns; /* INT64_MAX: none */
    bool timed_out;
    void (*run)(void *context);
    void *argument;
    struct fiber *next;
};

struct sim_node {
    struct env env;
    struct sim *sim;
    struct disk disk;
    struct fiber *fibers, *running;
    struct sim_faults faults;
    uint64_t crash_in; /* calls; 0: never */
    enum sim_end crash_how, end;
    bool is_crashing, has_direct;
    sim_judge_fn judge;
    void *judge_context;
    const char *astray;
    int exit_code;
    char exit_reason[256];
    int64_t wall_offset_ns;
    struct memory *memory; /* sim_alloc.c */
    struct sim_node *next;
};

struct sim {
    struct random schedule, disk, faults, test, identity;
    struct sim_counts counts;
    uint64_t trace;
    const char *untraced; /* suffix of names; or NULL */
    int64_t now_ns;
    ucontext_t scheduler;
    const void *scheduler_stack;
    size_t scheduler_stack_bytes;
    struct sim_node *nodes;
};

extern const struct env_ops sim_ops;
extern struct sim_node *sim_current; /* whose fiber runs; NULL outside */

/* What a call does, for the trace and for the countdown to a crash. */
enum sim_tag { TAG_OPEN = 1, TAG_READ, TAG_WRITE, TAG_SYNC, TAG_NAME, TAG_CLOCK, TAG_LOCK };

static inline bool sim_is_disk_call(enum sim_tag tag)
{
    return tag == TAG_WRITE || tag == TAG_SYNC || tag == TAG_NAME;
}

/* One env call: time passes, others may run, the node may crash. */
void sim_step(struct sim_node *node, enum sim_tag tag);
bool sim_fault(struct sim_node *node, uint32_t rate);
/* The running fiber waits: on a lock, a condition or time alone. */
void sim_block(struct sim_node *node, enum fiber_state state, void *on, int64_t deadline_ns);
void sim_fiber_start(struct sim_node *node, void (*run)(void *context), void *argument);
void *sim_malloc(size_t bytes); /* zeroed; ends the test if there is none */

void disk_init(struct disk *disk, uint64_t volume_bytes);
void disk_deinit(struct disk *disk);
struct inode *disk_find(struct disk *disk, const char *path);
struct inode *disk_create(struct disk *disk, const char *path, bool is_directory);
void disk_unlink(struct disk *disk, const char *path);
void disk_link(struct disk *disk, struct inode *inode, const char *path);
void disk_rename(struct disk *disk, const char *from, const char *to);
bool disk_write(struct disk *disk, struct inode *inode, uint64_t offset, const void *data,
                uint64_t bytes); /* false: no space */
/* What is new is a hole, or reserved. */
bool disk_resize(struct disk *disk, struct inode *inode, uint64_t bytes, bool is_reserved);
/* The pending operations from number `first` on never reach the disk. */
void disk_forget(struct inode *inode, uint64_t first);
/* Applies the pending operations numbered up to `last` to the disk. */
void disk_settle(struct inode *inode, uint64_t last);
/* Of those, what touches the range, and the file's size: a write that is its own sync. */
void disk_settle_range(struct inode *inode, uint64_t last, uint64_t from, uint64_t to);
uint64_t disk_used(const struct disk *disk);
void disk_copy(const struct disk *from, struct disk *out);
/* False: another handle has part of the range. Takes the place of what the holder has there. */
bool disk_range_lock(struct inode *inode, const void *holder, uint64_t from, uint64_t to,
                     enum env_lock_kind kind);
/* What the device holds, with what is on its way there: not what a failed sync left in the cache.
 */
void disk_read(const struct inode *inode, uint64_t offset, uint8_t *out, uint64_t bytes);
/* The kernel gives up: pages are clean, and some of them are nowhere but in the cache. */
void disk_sync_fails(struct sim *sim, struct inode *inode);
void disk_dir_sync(struct disk *disk, const char *dir);
void disk_process_gone(struct disk *disk);
void disk_power_cut(struct sim *sim, struct disk *disk);

void memory_drop(struct sim_node *node); /* all that the node allocated */

#endif
