/* SPDX-License-Identifier: Apache-2.0
 *
 * struct env over the simulated node. Each function is one step of the world, then the act.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sim/sim_internal.h"

struct sim_file {
    struct env_file base;
    struct sim_node *node;
    struct inode *inode;
    char name[48];
    bool holds_lock, may_fail, is_dsync, is_direct;
};

struct sim_mutex {
    struct env_mutex base;
    struct sim_node *node;
    struct fiber *owner;
};

struct sim_cond {
    struct env_cond base;
    struct sim_node *node;
};

struct sim_thread {
    struct env_thread base;
    struct sim_node *node;
    void (*run)(void *context);
    void *context;
    struct fiber *joiner;
    bool has_ended;
};

static struct sim_node *node_of(struct env *env)
{
    return CONTAINER_OF(env, struct sim_node, env);
}

static struct sim_file *file_of(struct env_file *file)
{
    return CONTAINER_OF(file, struct sim_file, base);
}

void sim_node_judge(struct sim_node *node, sim_judge_fn judge, void *context, const char *astray)
{
    node->judge = judge;
    node->judge_context = context;
    node->astray = astray;
}

static enum sim_verdict judge(struct sim_node *node, enum sim_call call, const char *path,
                              const char *to)
{
    return node->judge ? node->judge(node->judge_context, call, path, to) : SIM_FINE;
}

static enum status injected(struct error *err, const char *what, const char *path)
{
    return error_set(err, STATUS_IO, "%s %s: injected", what, path);
}

/* ---- files ---- */

static bool parent_exists(struct disk *disk, const char *path)
{
    char parent[PATH_BYTES_MAX];
    path_parent(parent, path);
    if (strcmp(parent, "/") == 0 || strcmp(parent, ".") == 0)
        return true;
    struct inode *inode = disk_find(disk, parent);
    return inode && inode->is_directory;
}

static bool syncs_may_fail(const struct sim_node *node, const char *path)
{
    const char *under = node->faults.syncs_under;
    return !under || strncmp(path, under, strlen(under)) == 0;
}

static enum status sim_open(struct env *env, const char *path, unsigned flags,
                            struct env_file **out_file, struct error *err)
{
    struct sim_node *node = node_of(env);
    sim_step(node, TAG_OPEN);
    if (judge(node, SIM_OPEN, path, NULL) == SIM_FAILS)
        return injected(err, "open", path);
    struct inode *inode = disk_find(&node->disk, path);
    bool is_odd = (flags & ENV_WRITE) && !(flags & ENV_DSYNC); /* nobody writes so */
    if ((flags & ENV_DIRECT) && (!node->has_direct || is_odd))
        return error_set(err, STATUS_UNSUPPORTED, "open %s: no direct access here", path);
    if (!inode && !(flags & ENV_CREATE))
        return error_set(err, STATUS_NOT_FOUND, "open %s: no such file", path);
    if (inode && (flags & ENV_CREATE) && (flags & ENV_EXCLUSIVE))
        return error_set(err, STATUS_EXISTS, "open %s: is there", path);
    if (!inode && !parent_exists(&node->disk, path))
        return error_set(err, STATUS_NOT_FOUND, "open %s: no such directory", path);
    struct sim_file *file = mem_alloc_zero(1, sizeof *file);
    if (!file)
        return error_set(err, STATUS_NO_MEMORY, "open %s: out of memory", path);
    if (!inode)
        inode = disk_create(&node->disk, path, false);
    if ((flags & ENV_TRUNCATE) && !disk_resize(&node->disk, inode, 0, false))
        CHECK(false && "shrinking needs no room");
    inode->opens++;
    *file = (struct sim_file){.base.ops = &sim_ops,
                              .node = node,
                              .inode = inode,
                              .may_fail = syncs_may_fail(node, path),
                              .is_dsync = flags & ENV_DSYNC,
                              .is_direct = flags & ENV_DIRECT};
    size_t length = strlen(path);
    snprintf(file->name, sizeof file->name, "%s", path + (length > 40 ? length - 40 : 0));
    *out_file = &file->base;
    return STATUS_OK;
}

static void sim_close(struct env_file *base)
{
    struct sim_file *file = file_of(base);
    sim_step(file->node, TAG_OPEN);
    file->inode->opens--;
    disk_range_lock(file->inode, file, 0, UINT64_MAX, ENV_UNLOCK);
    if (file->holds_lock)
        file->inode->is_locked = false;
    mem_free(file);
}

static enum status sim_read(struct env_file *base, uint64_t offset, void *data, size_t bytes,
                            size_t *out_bytes, struct error *err)
{
    struct sim_file *file = file_of(base);
    sim_step(file->node, TAG_READ);
    if (judge(file->node, SIM_READ, file->name, NULL) == SIM_FAILS)
        return injected(err, "read", file->name);
    uint64_t end = file->inode->cache_bytes;
    size_t got = offset >= end ? 0 : bytes < end - offset ? bytes : (size_t)(end - offset);
    if (got && file->is_direct)
        disk_read(file->inode, offset, data, got);
    else if (got)
        memcpy(data, file->inode->cache + offset, got);
    *out_bytes = got;
    return STATUS_OK;
}

static enum status no_space(struct error *err, const char *what, const char *name)
{
    return error_set(err, STATUS_NO_SPACE, "%s %s: no space left", what, name);
}

static bool is_traced(const struct sim *sim, const char *name)
{
    size_t length = strlen(name), suffix = sim->untraced ? strlen(sim->untraced) : 0;
    return suffix == 0 || length < suffix || strcmp(name + length - suffix, sim->untraced) != 0;
}

/* The device's part of a sync: time passes, and it may fail. */
static enum status sync_wait(struct sim_file *file, bool *out_is_ignored, struct error *err)
{
    struct sim_node *node = file->node;
    char name[48];
    memcpy(name, file->name, sizeof name);
    struct inode *inode = file->inode;
    enum sim_verdict verdict = judge(node, SIM_SYNC, file->name, NULL);
    bool is_failed =
        verdict == SIM_FAILS || (file->may_fail && sim_fault(node, node->faults.sync_fails));
    if (node->running)
        sim_block(node, FIBER_SLEEPING, NULL,
                  node->sim->now_ns + 50000 + (int64_t)random_below(&node->sim->schedule, 400000));
    *out_is_ignored = verdict == SIM_IGNORED;
    if (!is_failed)
        return STATUS_OK;
    disk_sync_fails(node->sim, inode);
    node->sim->counts.syncs_failed++;
    return error_set(err, STATUS_IO, "sync %s: injected", name);
}

static enum status sim_write(struct env_file *base, uint64_t offset, const struct env_slice *slices,
                             size_t count, struct error *err)
{
    struct sim_file *file = file_of(base);
    struct sim_node *node = file->node;
    sim_step(node, TAG_WRITE);
    node->sim->counts.writes++;
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += slices[i].bytes;
    uint8_t *all = sim_malloc(total);
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (slices[i].bytes)
            memcpy(all + at, slices[i].data, slices[i].bytes);
        at += slices[i].bytes;
    }
    enum sim_verdict verdict = judge(node, SIM_WRITE, file->name, NULL);
    bool is_failed =
        total > 0 && (verdict == SIM_FAILS || verdict == SIM_FULL ||
                      (verdict == SIM_FINE && sim_fault(node, node->faults.write_no_space)));
    size_t part = is_failed ? (size_t)random_below(&node->sim->faults, total) : total;
    if (is_traced(node->sim, file->name))
        node->sim->trace = hash64_seeded(all, total, node->sim->trace);
    uint64_t first = file->inode->op_next;
    struct inode *to = file->inode;
    if (verdict == SIM_ASTRAY)
        to = node->astray ? disk_find(&node->disk, node->astray) : to;
    bool has_room =
        disk_write(&node->disk, to,
                   offset + (verdict == SIM_ASTRAY && !node->astray ? SIM_BLOCK : 0), all, part);
    if (verdict == SIM_IGNORED)
        disk_forget(to, first);
    file->inode->modified_ns = node->sim->now_ns;
    free(all);
    node->sim->counts.no_space += is_failed;
    node->sim->counts.volume_full += !has_room;
    if (is_failed || !has_room) { /* not at once: others go on meanwhile */
        enum status status = verdict == SIM_FAILS ? injected(err, "write", file->name)
                                                  : no_space(err, "write", file->name);
        if (node->running)
            sim_block(node, FIBER_SLEEPING, NULL,
                      node->sim->now_ns + (int64_t)random_below(&node->sim->schedule, 300000));
        return status;
    }
    if (!file->is_dsync)
        return STATUS_OK;
    struct inode *inode = file->inode;
    uint64_t last = inode->op_next;
    sim_step(node, TAG_SYNC);
    node->sim->counts.syncs++;
    bool is_ignored;
    TRY(sync_wait(file, &is_ignored, err));
    if (!is_ignored)
        disk_settle_range(inode, last, offset, offset + total);
    return STATUS_OK;
}

static enum status sim_sync(struct env_file *base, struct error *err)
{
    struct sim_file *file = file_of(base);
    struct inode *inode = file->inode;
    sim_step(file->node, TAG_SYNC);
    file->node->sim->counts.syncs++;
    uint64_t last = inode->op_next;
    bool is_ignored;
    TRY(sync_wait(file, &is_ignored, err));
    if (!is_ignored)
        disk_settle(inode, last);
    return STATUS_OK;
}

static enum status sim_truncate(struct env_file *base, uint64_t bytes, struct error *err)
{
    struct sim_file *file = file_of(base);
    sim_step(file->node, TAG_WRITE);
    return disk_resize(&file->node->disk, file->inode, bytes, false)
               ? STATUS_OK
               : no_space(err, "truncate", file->name);
}

static enum status sim_allocate(struct env_file *base, uint64_t bytes, struct error *err)
{
    struct sim_file *file = file_of(base);
    struct sim_node *node = file->node;
    sim_step(node, TAG_WRITE);
    if (bytes <= file->inode->cache_bytes)
        return STATUS_OK;
    bool is_failed = judge(node, SIM_ALLOCATE, file->name, NULL) == SIM_FULL ||
                     sim_fault(node, node->faults.allocate_no_space);
    bool has_room = !is_failed && disk_resize(&node->disk, file->inode, bytes, true);
    node->sim->counts.no_space += is_failed;
    node->sim->counts.volume_full += !is_failed && !has_room;
    return has_room ? STATUS_OK : no_space(err, "allocate", file->name);
}

static void stat_fill(const struct inode *inode, struct env_stat *out)
{
    *out = (struct env_stat){
        .bytes = inode->cache_bytes,
        .allocated_bytes = inode->taken * SIM_BLOCK,
        .device = 1,
        .inode = inode->number,
        .link_count = inode->links,
        .is_directory = inode->is_directory,
        .modified_ns = inode->modified_ns,
    };
}

static enum status sim_file_stat(struct env_file *base, struct env_stat *out_stat,
                                 struct error *err)
{
    struct sim_file *file = file_of(base);
    UNUSED(err);
    sim_step(file->node, TAG_NAME);
    stat_fill(file->inode, out_stat);
    return STATUS_OK;
}

static enum status sim_file_lock(struct env_file *base, struct error *err)
{
    struct sim_file *file = file_of(base);
    sim_step(file->node, TAG_NAME);
    if (file->inode->is_locked)
        return error_set(err, STATUS_BUSY, "lock %s: held", file->name);
    file->inode->is_locked = file->holds_lock = true;
    return STATUS_OK;
}

static enum status sim_range_lock(struct env_file *base, uint64_t offset, uint64_t bytes,
                                  enum env_lock_kind kind, struct error *err)
{
    struct sim_file *file = file_of(base);
    sim_step(file->node, TAG_LOCK);
    if (!disk_range_lock(file->inode, file, offset, offset + bytes, kind))
        return error_set(err, STATUS_BUSY, "lock a range of %s: held", file->name);
    return STATUS_OK;
}

/* ---- names ---- */

static enum status not_found(struct error *err, const char *what, const char *path)
{
    return error_set(err, STATUS_NOT_FOUND, "%s %s: no such file", what, path);
}

static enum status sim_path_stat(struct env *env, const char *path, struct env_stat *out_stat,
                                 struct error *err)
{
    struct sim_node *node = node_of(env);
    sim_step(node, TAG_NAME);
    struct inode *inode = disk_find(&node->disk, path);
    if (!inode)
        return not_found(err, "stat", path);
    stat_fill(inode, out_stat);
    return STATUS_OK;
}

static enum status rename_now(struct sim_node *node, const char *from, const char *to,
                              struct error *err)
{
    if (!disk_find(&node->disk, from) || !parent_exists(&node->disk, to))
        return not_found(err, "rename", from);
    disk_rename(&node->disk, from, to);
    return STATUS_OK;
}

static enum status sim_rename(struct env *env, const char *from, const char *to, struct error *err)
{
    struct sim_node *node = node_of(env);
    sim_step(node, TAG_NAME);
    if (judge(node, SIM_RENAME, from, to) == SIM_FAILS)
        return injected(err, "rename", from);
    return rename_now(node, from, to, err);
}

static enum status sim_rename_new(struct env *env, const char *from, const char *to,
                                  struct error *err)
{
    struct sim_node *node = node_of(env);
    sim_step(node, TAG_NAME);
    if (judge(node, SIM_RENAME, from, to) == SIM_FAILS)
        return injected(err, "rename", from);
    if (disk_find(&node->disk, to))
        return error_set(err, STATUS_EXISTS, "rename to %s: is there", to);
    return rename_now(node, from, to, err);
}

static enum status sim_remove(struct env *env, const char *path, struct error *err)
{
    struct sim_node *node = node_of(env);
    sim_step(node, TAG_NAME);
    if (judge(node, SIM_REMOVE, path, NULL) == SIM_FAILS)
        return injected(err, "remove", path);
    struct inode *inode = disk_find(&node->disk, path);
    if (!inode)
        return not_found(err, "remove", path);
    if (inode->is_directory)
        return error_set(err, STATUS_IO, "remove %s: a directory", path);
    disk_unlink(&node->disk, path);
    return STATUS_OK;
}

static enum status sim_dir_make(struct env *env, const char *path, struct error *err)
{
    struct sim_node *node = node_of(env);
    sim_step(node, TAG_NAME);
    if (disk_find(&node->disk, path))
        return error_set(err, STATUS_EXISTS, "make directory %s: is there", path);
    if (!parent_exists(&node->disk, path))
        return not_found(err, "make directory", path);
    disk_create(&node->disk, path, true);
    return STATUS_OK;
}

/* Calls `each` for the names directly in `path`; returns their count. */
static size_t dir_names(struct sim_node *node, const char *path, env_name_fn each, void *context)
{
    size_t length = strlen(path), count = 0;
    for (struct name *name = node->disk.current, *next; name; name = next) {
        next = name->next;
        if (strncmp(name->path, path, length) != 0 || name->path[length] != '/' ||
            strchr(name->path + length + 1, '/'))
            continue;
        count++;
        if (each && !each(context, name->path + length + 1))
            break;
    }
    return count;
}

static enum status sim_dir_remove(struct env *env, const char *path, struct error *err)
{
    struct sim_node *node = node_of(env);
    sim_step(node, TAG_NAME);
    struct inode *inode = disk_find(&node->disk, path);
    if (!inode || !inode->is_directory)
        return not_found(err, "remove directory", path);
    if (dir_names(node, path, NULL, NULL) > 0)
        return error_set(err, STATUS_IO, "remove directory %s: not empty", path);
    disk_unlink(&node->disk, path);
    return STATUS_OK;
}

static enum status sim_dir_sync(struct env *env, const char *path, struct error *err)
{
    struct sim_node *node = node_of(env);
    sim_step(node, TAG_SYNC);
    enum sim_verdict verdict = judge(node, SIM_DIR_SYNC, path, NULL);
    bool is_failed = verdict == SIM_FAILS ||
                     (syncs_may_fail(node, path) && sim_fault(node, node->faults.dir_sync_fails));
    if (node->running)
        sim_block(node, FIBER_SLEEPING, NULL,
                  node->sim->now_ns + 20000 + (int64_t)random_below(&node->sim->schedule, 100000));
    if (is_failed) {
        node->sim->counts.syncs_failed++;
        return error_set(err, STATUS_IO, "sync directory %s: injected", path);
    }
    if (verdict != SIM_IGNORED)
        disk_dir_sync(&node->disk, path);
    return STATUS_OK;
}

static enum status sim_dir_list(struct env *env, const char *path, env_name_fn each, void *context,
                                struct error *err)
{
    struct sim_node *node = node_of(env);
    sim_step(node, TAG_NAME);
    if (judge(node, SIM_LIST, path, NULL) == SIM_FAILS)
        return injected(err, "list", path);
    struct inode *inode = disk_find(&node->disk, path);
    if (!inode || !inode->is_directory)
        return not_found(err, "list", path);
    dir_names(node, path, each, context);
    return STATUS_OK;
}

static enum status sim_volume_stat(struct env *env, const char *path, struct env_volume *out_volume,
                                   struct error *err)
{
    struct sim_node *node = node_of(env);
    UNUSED(path);
    UNUSED(err);
    sim_step(node, TAG_NAME);
    uint64_t used = disk_used(&node->disk), total = node->disk.volume_bytes;
    *out_volume = (struct env_volume){
        .bytes_total = total, .bytes_free = used < total ? total - used : 0, .device = 1};
    return STATUS_OK;
}

/* ---- clock and randomness ---- */

static int64_t sim_wall(struct env *env)
{
    struct sim_node *node = node_of(env);
    sim_step(node, TAG_CLOCK);
    if (sim_fault(node, node->faults.clock_steps)) {
        int64_t day_ns = (int64_t)24 * 3600 * 1000000000;
        node->wall_offset_ns +=
            (int64_t)random_below(&node->sim->faults, (uint64_t)(2 * day_ns)) - day_ns;
        node->sim->counts.clock_steps++;
    }
    return node->sim->now_ns + node->wall_offset_ns;
}

static int64_t sim_mono(struct env *env)
{
    struct sim_node *node = node_of(env);
    sim_step(node, TAG_CLOCK);
    return node->sim->now_ns;
}

static void sim_sleep(struct env *env, uint64_t ms)
{
    struct sim_node *node = node_of(env);
    sim_step(node, TAG_CLOCK);
    sim_block(node, FIBER_SLEEPING, NULL, node->sim->now_ns + (int64_t)ms * 1000000);
}

static void sim_random_bytes(struct env *env, void *data, size_t bytes)
{
    struct sim_node *node = node_of(env);
    uint8_t *to = data;
    sim_step(node, TAG_CLOCK);
    for (size_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)random_next(&node->sim->identity);
}

/* ---- threads ---- */

static struct env_mutex *sim_mutex_create(struct env *env)
{
    struct sim_mutex *mutex = mem_alloc_zero(1, sizeof *mutex);
    if (!mutex)
        return NULL;
    *mutex = (struct sim_mutex){.base.ops = &sim_ops, .node = node_of(env)};
    return &mutex->base;
}

static struct sim_mutex *mutex_of(struct env_mutex *mutex)
{
    return CONTAINER_OF(mutex, struct sim_mutex, base);
}

static void sim_mutex_destroy(struct env_mutex *base)
{
    CHECK(!mutex_of(base)->owner);
    mem_free(mutex_of(base));
}

static void sim_mutex_lock(struct env_mutex *base)
{
    struct sim_mutex *mutex = mutex_of(base);
    struct sim_node *node = mutex->node;
    sim_step(node, TAG_LOCK);
    CHECK(mutex->owner != node->running);
    while (mutex->owner)
        sim_block(node, FIBER_LOCKED, mutex, INT64_MAX);
    mutex->owner = node->running;
}

static void sim_mutex_unlock(struct env_mutex *base)
{
    struct sim_mutex *mutex = mutex_of(base);
    struct sim_node *node = mutex->node;
    CHECK(mutex->owner == node->running);
    mutex->owner = NULL;
    for (struct fiber *fiber = node->fibers; fiber; fiber = fiber->next)
        if (fiber->state == FIBER_LOCKED && fiber->on == mutex)
            fiber->state = FIBER_READY;
    sim_step(node, TAG_LOCK);
}

static struct env_cond *sim_cond_create(struct env *env)
{
    struct sim_cond *cond = mem_alloc_zero(1, sizeof *cond);
    if (!cond)
        return NULL;
    *cond = (struct sim_cond){.base.ops = &sim_ops, .node = node_of(env)};
    return &cond->base;
}

static struct sim_cond *cond_of(struct env_cond *cond)
{
    return CONTAINER_OF(cond, struct sim_cond, base);
}

static void sim_cond_destroy(struct env_cond *base)
{
    mem_free(cond_of(base));
}

static void wake(struct sim_cond *cond, bool all)
{
    struct sim_node *node = cond->node;
    uint64_t waiting = 0;
    for (struct fiber *fiber = node->fibers; fiber; fiber = fiber->next)
        waiting += fiber->state == FIBER_WAITING && fiber->on == cond;
    if (waiting == 0)
        return;
    uint64_t pick = random_below(&node->sim->schedule, waiting);
    for (struct fiber *fiber = node->fibers; fiber; fiber = fiber->next) {
        if (fiber->state != FIBER_WAITING || fiber->on != cond)
            continue;
        if (all || pick == 0) {
            fiber->state = FIBER_READY;
            fiber->deadline_ns = INT64_MAX;
        }
        pick--;
    }
}

static void sim_cond_signal(struct env_cond *base)
{
    wake(cond_of(base), false);
}

static void sim_cond_broadcast(struct env_cond *base)
{
    wake(cond_of(base), true);
}

static bool sim_cond_wait(struct env_cond *base, struct env_mutex *mutex_base, uint64_t timeout_ms)
{
    struct sim_mutex *mutex = mutex_of(mutex_base);
    struct sim_node *node = mutex->node;
    struct fiber *self = node->running;
    CHECK(mutex->owner == self);
    mutex->owner = NULL;
    for (struct fiber *fiber = node->fibers; fiber; fiber = fiber->next)
        if (fiber->state == FIBER_LOCKED && fiber->on == mutex)
            fiber->state = FIBER_READY;
    int64_t deadline = timeout_ms == UINT64_MAX || timeout_ms > (uint64_t)INT64_MAX / 2000000
                           ? INT64_MAX
                           : node->sim->now_ns + (int64_t)timeout_ms * 1000000;
    sim_block(node, FIBER_WAITING, cond_of(base), deadline);
    bool timed_out = self->timed_out;
    while (mutex->owner)
        sim_block(node, FIBER_LOCKED, mutex, INT64_MAX);
    mutex->owner = self;
    return !timed_out;
}

static void thread_body(void *context)
{
    struct sim_thread *thread = context;
    thread->run(thread->context);
    thread->has_ended = true;
    struct fiber *joiner = thread->joiner;
    if (joiner && joiner->state == FIBER_WAITING && joiner->on == thread) {
        joiner->state = FIBER_READY;
        joiner->deadline_ns = INT64_MAX;
    }
}

static enum status sim_thread_start(struct env *env, const char *name, void (*run)(void *context),
                                    void *context, struct env_thread **out_thread,
                                    struct error *err)
{
    struct sim_node *node = node_of(env);
    sim_step(node, TAG_LOCK);
    struct sim_thread *thread = mem_alloc_zero(1, sizeof *thread);
    if (!thread)
        return error_set(err, STATUS_NO_MEMORY, "start thread %s: out of memory", name);
    *thread =
        (struct sim_thread){.base.ops = &sim_ops, .node = node, .run = run, .context = context};
    sim_fiber_start(node, thread_body, thread);
    *out_thread = &thread->base;
    return STATUS_OK;
}

static void sim_thread_join(struct env_thread *base)
{
    struct sim_thread *thread = CONTAINER_OF(base, struct sim_thread, base);
    sim_step(thread->node, TAG_LOCK);
    thread->joiner = thread->node->running;
    while (!thread->has_ended)
        sim_block(thread->node, FIBER_WAITING, thread, INT64_MAX);
    mem_free(thread);
}

static void sim_fatal_exit(struct env *env, int exit_code, const char *why)
{
    struct sim_node *node = node_of(env);
    node->exit_code = exit_code;
    snprintf(node->exit_reason, sizeof node->exit_reason, "%s", why);
    sim_crash(node, SIM_EXITED);
}

const struct env_ops sim_ops = {
    .file_open = sim_open,
    .file_close = sim_close,
    .file_read = sim_read,
    .file_write = sim_write,
    .file_sync = sim_sync,
    .file_truncate = sim_truncate,
    .file_allocate = sim_allocate,
    .file_stat = sim_file_stat,
    .file_lock = sim_file_lock,
    .path_stat = sim_path_stat,
    .path_rename = sim_rename,
    .path_rename_new = sim_rename_new,
    .path_remove = sim_remove,
    .dir_make = sim_dir_make,
    .dir_remove = sim_dir_remove,
    .dir_sync = sim_dir_sync,
    .dir_list = sim_dir_list,
    .volume_stat = sim_volume_stat,
    .clock_wall_ns = sim_wall,
    .clock_mono_ns = sim_mono,
    .sleep_ms = sim_sleep,
    .random = sim_random_bytes,
    .mutex_create = sim_mutex_create,
    .mutex_destroy = sim_mutex_destroy,
    .mutex_lock = sim_mutex_lock,
    .mutex_unlock = sim_mutex_unlock,
    .cond_create = sim_cond_create,
    .cond_destroy = sim_cond_destroy,
    .cond_signal = sim_cond_signal,
    .cond_broadcast = sim_cond_broadcast,
    .cond_wait = sim_cond_wait,
    .thread_start = sim_thread_start,
    .thread_join = sim_thread_join,
    .fatal_exit = sim_fatal_exit,
    .file_range_lock = sim_range_lock,
};

/* ---- for trials: what a server never asks for ---- */

void sim_node_link(struct sim_node *node, const char *from, const char *to)
{
    struct inode *inode = disk_find(&node->disk, from);
    CHECK(inode && parent_exists(&node->disk, to) && !disk_find(&node->disk, to));
    disk_link(&node->disk, inode, to);
}
