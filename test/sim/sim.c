/* SPDX-License-Identifier: Apache-2.0
 *
 * The world: fibers, virtual time, crashes. A fiber runs until an env call makes it wait or the
 * seed takes the turn away. When nobody is ready, time jumps to the nearest deadline; without one
 * the node is stuck, which is a finding.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sim/sim_internal.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define FIBER_SWITCH_BEGIN(save, bottom, bytes) __sanitizer_start_switch_fiber(save, bottom, bytes)
#define FIBER_SWITCH_END(fake, bottom, bytes) __sanitizer_finish_switch_fiber(fake, bottom, bytes)
#else
#define FIBER_SWITCH_BEGIN(save, bottom, bytes) ((void)(save), (void)(bottom), (void)(bytes))
#define FIBER_SWITCH_END(fake, bottom, bytes) ((void)(fake), (void)(bottom), (void)(bytes))
#endif

enum { STEPS_MAX = 4000000 };

struct sim_node *sim_current;

void *sim_malloc(size_t bytes)
{
    void *memory = calloc(1, bytes ? bytes : 1);
    CHECK(memory);
    return memory;
}

struct sim *sim_create(uint64_t seed)
{
    struct sim *sim = sim_malloc(sizeof *sim);
    struct random root;
    random_init(&root, seed);
    sim->schedule = random_fork(&root, 1);
    sim->disk = random_fork(&root, 2);
    sim->faults = random_fork(&root, 3);
    sim->test = random_fork(&root, 4);
    sim->identity = random_fork(&root, 5);
    sim->now_ns = 1000000000;
    return sim;
}

struct random *sim_random(struct sim *sim)
{
    return &sim->test;
}

struct sim_counts sim_counts(const struct sim *sim)
{
    return sim->counts;
}

uint64_t sim_trace(const struct sim *sim)
{
    return sim->trace;
}

void sim_trace_skip(struct sim *sim, const char *suffix)
{
    sim->untraced = suffix;
}

struct sim_node *sim_node_create(struct sim *sim, uint64_t volume_bytes)
{
    struct sim_node *node = sim_malloc(sizeof *node);
    node->env.ops = &sim_ops;
    node->sim = sim;
    node->faults.switches = 16384;
    node->wall_offset_ns = (int64_t)1700000000 * 1000000000;
    disk_init(&node->disk, volume_bytes);
    node->next = sim->nodes;
    sim->nodes = node;
    return node;
}

struct env *sim_node_env(struct sim_node *node)
{
    return &node->env;
}

struct sim_faults *sim_node_faults(struct sim_node *node)
{
    return &node->faults;
}

void sim_node_volume(struct sim_node *node, uint64_t bytes)
{
    node->disk.volume_bytes = bytes;
}

void sim_node_direct(struct sim_node *node, bool is_supported)
{
    node->has_direct = is_supported;
}

static void fibers_drop(struct sim_node *node)
{
    while (node->fibers) {
        struct fiber *next = node->fibers->next;
        free(node->fibers->stack);
        free(node->fibers);
        node->fibers = next;
    }
    node->running = NULL;
}

void sim_destroy(struct sim *sim)
{
    while (sim->nodes) {
        struct sim_node *next = sim->nodes->next;
        fibers_drop(sim->nodes);
        memory_drop(sim->nodes);
        disk_deinit(&sim->nodes->disk);
        free(sim->nodes);
        sim->nodes = next;
    }
    free(sim);
}

/* ---- fibers ---- */

static void to_scheduler(struct fiber *fiber, bool is_over)
{
    struct sim *sim = fiber->node->sim;
    sim_current = NULL;
    FIBER_SWITCH_BEGIN(is_over ? NULL : &fiber->fake_stack, sim->scheduler_stack,
                       sim->scheduler_stack_bytes);
    CHECK(swapcontext(&fiber->context, &sim->scheduler) == 0);
    FIBER_SWITCH_END(fiber->fake_stack, &sim->scheduler_stack, &sim->scheduler_stack_bytes);
    sim_current = fiber->node;
}

static struct fiber *starting; /* handed to the first code of a fiber */

static void fiber_main(void)
{
    struct fiber *fiber = starting;
    struct sim *sim = fiber->node->sim;
    FIBER_SWITCH_END(NULL, &sim->scheduler_stack, &sim->scheduler_stack_bytes);
    UNUSED(sim);
    sim_current = fiber->node;
    fiber->run(fiber->argument);
    fiber->state = FIBER_ENDED;
    to_scheduler(fiber, true);
}

void sim_fiber_start(struct sim_node *node, void (*run)(void *context), void *argument)
{
    struct fiber *fiber = sim_malloc(sizeof *fiber);
    fiber->node = node;
    fiber->run = run;
    fiber->argument = argument;
    fiber->deadline_ns = INT64_MAX;
    fiber->stack = malloc(SIM_STACK_BYTES);
    CHECK(fiber->stack && getcontext(&fiber->context) == 0);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = SIM_STACK_BYTES;
    makecontext(&fiber->context, fiber_main, 0);
    struct fiber **last = &node->fibers;
    while (*last)
        last = &(*last)->next;
    *last = fiber;
}

static void resume(struct sim_node *node, struct fiber *fiber)
{
    struct sim *sim = node->sim;
    void *fake_stack = NULL;
    node->running = fiber;
    starting = fiber;
    sim->trace = hash64_seeded(&sim->now_ns, sizeof sim->now_ns, sim->trace);
    sim->counts.switches++;
    FIBER_SWITCH_BEGIN(&fake_stack, fiber->stack, SIM_STACK_BYTES);
    CHECK(swapcontext(&sim->scheduler, &fiber->context) == 0);
    FIBER_SWITCH_END(fake_stack, NULL, NULL);
    node->running = NULL;
}

/* A fiber that may go on, chosen by the seed; NULL: none, or all have ended. */
static struct fiber *choose(struct sim_node *node)
{
    struct sim *sim = node->sim;
    uint64_t ready = 0;
    for (struct fiber *fiber = node->fibers; fiber; fiber = fiber->next) {
        if (fiber->deadline_ns <= sim->now_ns && fiber->state != FIBER_ENDED) {
            fiber->timed_out = fiber->state == FIBER_WAITING;
            fiber->state = FIBER_READY;
            fiber->deadline_ns = INT64_MAX;
        }
        ready += fiber->state == FIBER_READY;
    }
    if (ready == 0)
        return NULL;
    uint64_t pick = random_below(&sim->schedule, ready);
    for (struct fiber *fiber = node->fibers; fiber; fiber = fiber->next)
        if (fiber->state == FIBER_READY && pick-- == 0)
            return fiber;
    return NULL;
}

/* Time goes to the nearest deadline. */
static bool advance(struct sim_node *node)
{
    int64_t nearest = INT64_MAX;
    for (struct fiber *fiber = node->fibers; fiber; fiber = fiber->next)
        if (fiber->state != FIBER_ENDED && fiber->deadline_ns < nearest)
            nearest = fiber->deadline_ns;
    if (nearest == INT64_MAX)
        return false;
    if (nearest > node->sim->now_ns)
        node->sim->now_ns = nearest;
    return true;
}

static bool all_ended(const struct sim_node *node)
{
    for (const struct fiber *fiber = node->fibers; fiber; fiber = fiber->next)
        if (fiber->state != FIBER_ENDED)
            return false;
    return true;
}

enum sim_end sim_run(struct sim_node *node, void (*main)(void *context), void *context)
{
    CHECK(!node->fibers && !sim_current);
    node->is_crashing = false;
    node->end = SIM_ENDED;
    sim_fiber_start(node, main, context);
    for (uint64_t steps = 0; !node->is_crashing && !all_ended(node); steps++) {
        struct fiber *fiber = choose(node);
        if (fiber) {
            resume(node, fiber);
        } else if (!advance(node)) {
            node->end = SIM_STUCK;
            break;
        }
        if (steps > STEPS_MAX) {
            node->end = SIM_STUCK;
            break;
        }
    }
    struct sim_counts *counts = &node->sim->counts;
    counts->power_cuts += node->end == SIM_POWER_CUT;
    counts->kills += node->end == SIM_KILLED;
    counts->exits += node->end == SIM_EXITED;
    fibers_drop(node);
    memory_drop(node);
    disk_process_gone(&node->disk);
    if (node->end == SIM_POWER_CUT)
        disk_power_cut(node->sim, &node->disk);
    node->crash_in = 0;
    return node->end;
}

void sim_block(struct sim_node *node, enum fiber_state state, void *on, int64_t deadline_ns)
{
    struct fiber *fiber = node->running;
    fiber->state = state;
    fiber->on = on;
    fiber->deadline_ns = deadline_ns;
    fiber->timed_out = false;
    to_scheduler(fiber, false);
}

_Noreturn void sim_crash(struct sim_node *node, enum sim_end how)
{
    node->is_crashing = true;
    node->end = how;
    node->running->state = FIBER_ENDED;
    for (;;)
        to_scheduler(node->running, false);
}

void sim_crash_at(struct sim_node *node, enum sim_end how, uint64_t calls)
{
    node->crash_how = how;
    node->crash_in = calls;
}

int sim_exit_code(const struct sim_node *node)
{
    return node->exit_code;
}

const char *sim_exit_reason(const struct sim_node *node)
{
    return node->exit_reason;
}

bool sim_fault(struct sim_node *node, uint32_t rate)
{
    return rate > 0 && random_below(&node->sim->faults, 65536) < rate;
}

void sim_step(struct sim_node *node, enum sim_tag tag)
{
    struct sim *sim = node->sim;
    sim->counts.calls++;
    sim->now_ns += 200 + (int64_t)random_below(&sim->schedule, 2000);
    sim->trace = hash64_seeded(&tag, sizeof tag, sim->trace);
    if (!node->running)
        return; /* the test looks at the disk from outside */
    if (sim_is_disk_call(tag) && node->crash_in > 0 && --node->crash_in == 0)
        sim_crash(node, node->crash_how);
    if (random_below(&sim->schedule, 65536) < node->faults.switches)
        sim_block(node, FIBER_READY, NULL, INT64_MAX);
}

struct sim_disk_copy {
    struct disk disk;
};

struct sim_disk_copy *sim_disk_save(struct sim_node *node)
{
    CHECK(!node->fibers);
    struct sim_disk_copy *copy = sim_malloc(sizeof *copy);
    disk_copy(&node->disk, &copy->disk);
    return copy;
}

void sim_disk_load(struct sim_node *node, struct sim_disk_copy *copy)
{
    CHECK(!node->fibers);
    disk_deinit(&node->disk);
    node->disk = copy->disk;
    free(copy);
}

void sim_power_cut(struct sim_node *node)
{
    CHECK(!node->fibers);
    node->sim->counts.power_cuts++;
    disk_power_cut(node->sim, &node->disk);
}

bool sim_flip_bit(struct sim_node *node, const char *path, uint64_t offset, unsigned bit)
{
    struct inode *inode = disk_find(&node->disk, path);
    if (!inode || offset >= inode->cache_bytes)
        return false;
    disk_settle(inode, UINT64_MAX);
    if (offset >= inode->disk_bytes)
        return false;
    inode->cache[offset] ^= (uint8_t)(1u << (bit % 8));
    inode->disk[offset] ^= (uint8_t)(1u << (bit % 8));
    node->sim->counts.bits_flipped++;
    return true;
}

bool sim_file_bytes(struct sim_node *node, const char *path, const uint8_t **out_data,
                    uint64_t *out_bytes)
{
    struct inode *inode = disk_find(&node->disk, path);
    if (!inode || inode->is_directory)
        return false;
    *out_data = inode->cache;
    *out_bytes = inode->cache_bytes;
    return true;
}

void sim_put_file(struct sim_node *node, const char *path, const void *data, uint64_t bytes)
{
    struct disk *disk = &node->disk;
    char part[PATH_BYTES_MAX], parent[PATH_BYTES_MAX];
    for (size_t i = 1; path[i]; i++) {
        if (path[i] != '/')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (!disk_find(disk, part))
            disk_create(disk, part, true);
        path_parent(parent, part);
        disk_dir_sync(disk, parent);
    }
    struct inode *inode = disk_find(disk, path);
    if (!inode)
        inode = disk_create(disk, path, false);
    CHECK(disk_resize(disk, inode, 0, false) && disk_write(disk, inode, 0, data, bytes));
    disk_settle(inode, UINT64_MAX);
    path_parent(parent, path);
    disk_dir_sync(disk, parent);
}

bool sim_came_back(const struct sim_node *node, const char *path)
{
    const struct name *name = node->disk.came_back;
    while (name && strcmp(name->path, path) != 0)
        name = name->next;
    return name != NULL;
}

void sim_each_file(struct sim_node *node, const char *dir,
                   void (*each)(void *context, const char *path, const struct env_stat *stat),
                   void *context)
{
    size_t length = strlen(dir);
    for (struct name *name = node->disk.current; name; name = name->next) {
        if (strncmp(name->path, dir, length) != 0 || name->path[length] != '/' ||
            name->inode->is_directory)
            continue;
        struct env_stat stat = {
            .bytes = name->inode->cache_bytes,
            .allocated_bytes = name->inode->taken * SIM_BLOCK,
            .link_count = name->inode->links,
        };
        each(context, name->path, &stat);
    }
}
