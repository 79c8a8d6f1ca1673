/* SPDX-License-Identifier: Apache-2.0
 *
 * The disk of a node: inodes with a cache image (what the node reads), a disk image and the
 * operations between the two; names as they are now, as they are on the disk, and the changes
 * between.
 */
#include <stdlib.h>

#include "sim/sim_internal.h"

void disk_init(struct disk *disk, uint64_t volume_bytes)
{
    *disk = (struct disk){.volume_bytes = volume_bytes, .inode_next = 1};
}

static char *copy_text(const char *text)
{
    char *copy = sim_malloc(strlen(text) + 1);
    memcpy(copy, text, strlen(text) + 1);
    return copy;
}

/* ---- images ---- */

static void image_resize(uint8_t **image, uint64_t *bytes, uint64_t *capacity, uint64_t now)
{
    if (now > *capacity) {
        uint64_t wider = now > 2 * *capacity ? now : 2 * *capacity;
        uint8_t *data = sim_malloc(wider);
        if (*bytes)
            memcpy(data, *image, *bytes);
        free(*image);
        *image = data;
        *capacity = wider;
    }
    if (now > *bytes)
        memset(*image + *bytes, 0, now - *bytes);
    *bytes = now;
}

static void op_add(struct inode *inode, enum op_kind kind, uint64_t offset, const void *data,
                   uint64_t bytes)
{
    struct op *op = sim_malloc(sizeof *op);
    *op = (struct op){.kind = kind, .offset = offset, .bytes = bytes, .number = ++inode->op_next};
    if (kind == OP_WRITE) {
        op->data = sim_malloc(bytes);
        memcpy(op->data, data, bytes);
    }
    if (!inode->pending)
        inode->pending_tail = &inode->pending;
    *inode->pending_tail = op;
    inode->pending_tail = &op->next;
}

static struct op *op_pop(struct inode *inode)
{
    struct op *op = inode->pending;
    inode->pending = op->next;
    if (!inode->pending)
        inode->pending_tail = &inode->pending;
    return op;
}

static void op_free(struct op *op)
{
    free(op->data);
    free(op);
}

static void sectors_apply(struct inode *inode, const struct op *op, uint64_t from, uint64_t to)
{
    if (op->offset + to > inode->disk_bytes)
        image_resize(&inode->disk, &inode->disk_bytes, &inode->disk_capacity, op->offset + to);
    memcpy(inode->disk + op->offset + from, op->data + from, to - from);
}

static void op_apply(struct inode *inode, const struct op *op)
{
    if (op->kind == OP_RESIZE)
        image_resize(&inode->disk, &inode->disk_bytes, &inode->disk_capacity, op->bytes);
    else if (op->bytes)
        sectors_apply(inode, op, 0, op->bytes);
}

void disk_settle(struct inode *inode, uint64_t last)
{
    while (inode->pending && inode->pending->number <= last) {
        struct op *op = op_pop(inode);
        op_apply(inode, op);
        op_free(op);
    }
}

void disk_settle_range(struct inode *inode, uint64_t last, uint64_t from, uint64_t to)
{
    struct op **at = &inode->pending;
    while (*at && (*at)->number <= last) {
        struct op *op = *at;
        bool is_touched =
            op->kind == OP_RESIZE || (op->offset < to && from < op->offset + op->bytes);
        if (!is_touched) {
            at = &op->next;
            continue;
        }
        op_apply(inode, op);
        *at = op->next;
        op_free(op);
    }
    inode->pending_tail = at;
    while (*inode->pending_tail)
        inode->pending_tail = &(*inode->pending_tail)->next;
}

void disk_read(const struct inode *inode, uint64_t offset, uint8_t *out, uint64_t bytes)
{
    struct inode image = {.pending_tail = &image.pending};
    if (inode->disk_bytes) {
        image_resize(&image.disk, &image.disk_bytes, &image.disk_capacity, inode->disk_bytes);
        memcpy(image.disk, inode->disk, inode->disk_bytes);
    }
    for (const struct op *op = inode->pending; op; op = op->next)
        op_apply(&image, op);
    memset(out, 0, bytes);
    if (offset < image.disk_bytes)
        memcpy(out, image.disk + offset,
               bytes < image.disk_bytes - offset ? bytes : image.disk_bytes - offset);
    free(image.disk);
}

void disk_sync_fails(struct sim *sim, struct inode *inode)
{
    while (inode->pending) {
        struct op *op = op_pop(inode);
        if (random_chance(&sim->disk, 1, 2))
            op_apply(inode, op);
        op_free(op);
    }
}

void disk_forget(struct inode *inode, uint64_t first)
{
    struct op **at = &inode->pending;
    while (*at) {
        struct op *op = *at;
        if (op->number < first) {
            at = &op->next;
            continue;
        }
        *at = op->next;
        op_free(op);
    }
    inode->pending_tail = at;
}

/* ---- blocks ---- */

static uint64_t blocks_of(uint64_t bytes)
{
    return (bytes + SIM_BLOCK - 1) / SIM_BLOCK;
}

/* Those in [from, to) that are holes; `takes`: no longer. */
static uint64_t blocks_take(struct inode *inode, uint64_t from, uint64_t to, bool takes)
{
    uint64_t count = 0;
    if (takes && blocks_of(to) > inode->is_taken_capacity) {
        uint64_t wider = 2 * blocks_of(to);
        uint8_t *map = sim_malloc(wider);
        memset(map, 0, wider);
        if (inode->is_taken_capacity)
            memcpy(map, inode->is_taken, inode->is_taken_capacity);
        free(inode->is_taken);
        inode->is_taken = map;
        inode->is_taken_capacity = wider;
    }
    for (uint64_t i = from / SIM_BLOCK; i < blocks_of(to); i++) {
        bool was_taken = i < inode->is_taken_capacity && inode->is_taken[i];
        count += !was_taken;
        if (takes)
            inode->is_taken[i] = 1;
    }
    inode->taken += takes ? count : 0;
    return count;
}

static void blocks_cut(struct inode *inode, uint64_t bytes)
{
    for (uint64_t i = blocks_of(bytes); i < inode->is_taken_capacity; i++) {
        inode->taken -= inode->is_taken[i];
        inode->is_taken[i] = 0;
    }
}

uint64_t disk_used(const struct disk *disk)
{
    uint64_t used = 0;
    for (const struct inode *inode = disk->inodes; inode; inode = inode->next)
        if (inode->links || inode->opens)
            used += inode->taken * SIM_BLOCK;
    return used;
}

static bool take_room(struct disk *disk, struct inode *inode, uint64_t from, uint64_t to)
{
    uint64_t more = blocks_take(inode, from, to, false);
    if (more && disk_used(disk) + more * SIM_BLOCK > disk->volume_bytes)
        return false;
    blocks_take(inode, from, to, true);
    return true;
}

bool disk_write(struct disk *disk, struct inode *inode, uint64_t offset, const void *data,
                uint64_t bytes)
{
    if (bytes == 0)
        return true;
    if (!take_room(disk, inode, offset, offset + bytes))
        return false;
    if (offset + bytes > inode->cache_bytes)
        image_resize(&inode->cache, &inode->cache_bytes, &inode->cache_capacity, offset + bytes);
    memcpy(inode->cache + offset, data, bytes);
    op_add(inode, OP_WRITE, offset, data, bytes);
    return true;
}

bool disk_resize(struct disk *disk, struct inode *inode, uint64_t bytes, bool is_reserved)
{
    if (is_reserved && !take_room(disk, inode, 0, bytes))
        return false;
    if (bytes == inode->cache_bytes)
        return true;
    blocks_cut(inode, bytes);
    image_resize(&inode->cache, &inode->cache_bytes, &inode->cache_capacity, bytes);
    op_add(inode, OP_RESIZE, 0, NULL, bytes);
    return true;
}

/* ---- names ---- */

static struct name **name_find(struct name **list, const char *path)
{
    uint64_t hash = hash64(path, strlen(path));
    while (*list && ((*list)->hash != hash || strcmp((*list)->path, path) != 0))
        list = &(*list)->next;
    return list;
}

static void name_set(struct name **list, const char *path, struct inode *inode)
{
    struct name **at = name_find(list, path);
    if (*at) {
        if (inode) {
            (*at)->inode = inode;
            return;
        }
        struct name *gone = *at;
        *at = gone->next;
        free(gone->path);
        free(gone);
    } else if (inode) {
        struct name *name = sim_malloc(sizeof *name);
        *name = (struct name){.hash = hash64(path, strlen(path)),
                              .path = copy_text(path),
                              .inode = inode,
                              .next = *at};
        *at = name;
    }
}

static void names_free(struct name **list)
{
    while (*list)
        name_set(list, (*list)->path, NULL);
}

struct inode *disk_find(struct disk *disk, const char *path)
{
    struct name *name = *name_find(&disk->current, path);
    return name ? name->inode : NULL;
}

/* Changes the current view and leaves the change pending on its directory. */
static struct name_op *name_change(struct disk *disk, const char *path, struct inode *inode)
{
    struct name *before = *name_find(&disk->current, path);
    if (before)
        before->inode->links--;
    if (inode)
        inode->links++;
    name_set(&disk->current, path, inode);
    char dir[PATH_BYTES_MAX];
    path_parent(dir, path);
    struct name_op *op = sim_malloc(sizeof *op), **last = &disk->pending;
    *op = (struct name_op){.dir = copy_text(dir), .path = copy_text(path), .inode = inode};
    while (*last)
        last = &(*last)->next;
    *last = op;
    return op;
}

struct inode *disk_create(struct disk *disk, const char *path, bool is_directory)
{
    struct inode *inode = sim_malloc(sizeof *inode);
    inode->number = disk->inode_next++;
    inode->is_directory = is_directory;
    inode->pending_tail = &inode->pending;
    inode->next = disk->inodes;
    disk->inodes = inode;
    name_change(disk, path, inode);
    return inode;
}

void disk_unlink(struct disk *disk, const char *path)
{
    name_change(disk, path, NULL);
}

void disk_link(struct disk *disk, struct inode *inode, const char *path)
{
    name_change(disk, path, inode);
}

void disk_rename(struct disk *disk, const char *from, const char *to)
{
    struct inode *inode = disk_find(disk, from);
    struct name_op *added = name_change(disk, to, inode);
    struct name_op *removed = name_change(disk, from, NULL);
    removed->needs = added;
    removed->is_atomic = strcmp(added->dir, removed->dir) == 0;
}

/* On the disk from now on. Earlier changes of the same name are history with it. */
static void name_op_apply(struct disk *disk, struct name_op *op)
{
    for (struct name_op *q = disk->pending; q != op; q = q->next)
        if (!q->is_applied && strcmp(q->path, op->path) == 0)
            q->is_applied = true;
    name_set(&disk->durable, op->path, op->inode);
    op->is_applied = true;
}

static void name_ops_sweep(struct disk *disk)
{
    for (struct name_op *op = disk->pending; op; op = op->next)
        if (op->needs && op->needs->is_applied)
            op->needs = NULL;
    for (struct name_op **at = &disk->pending; *at;) {
        struct name_op *op = *at;
        if (!op->is_applied) {
            at = &op->next;
            continue;
        }
        *at = op->next;
        free(op->dir);
        free(op->path);
        free(op);
    }
}

void disk_dir_sync(struct disk *disk, const char *dir)
{
    for (struct name_op *op = disk->pending; op; op = op->next) {
        if (op->is_applied || strcmp(op->dir, dir) != 0)
            continue;
        if (op->needs && !op->needs->is_applied)
            name_op_apply(disk, op->needs);
        name_op_apply(disk, op);
    }
    name_ops_sweep(disk);
}

/* ---- locks of ranges ---- */

static void range_lock_add(struct inode *inode, struct range_lock lock)
{
    struct range_lock *added = sim_malloc(sizeof *added);
    *added = lock;
    added->next = inode->locks;
    inode->locks = added;
}

/* What `holder` (NULL: anybody) has of [from, to) goes; pieces of its locks outside stay. */
static void range_unlock(struct inode *inode, const void *holder, uint64_t from, uint64_t to)
{
    struct range_lock *list = inode->locks;
    inode->locks = NULL;
    while (list) {
        struct range_lock *lock = list, whole = *lock;
        list = lock->next;
        free(lock);
        if ((holder && whole.holder != holder) || whole.to <= from || whole.from >= to) {
            range_lock_add(inode, whole);
            continue;
        }
        struct range_lock before = whole, behind = whole;
        before.to = from;
        behind.from = to;
        if (whole.from < from)
            range_lock_add(inode, before);
        if (whole.to > to)
            range_lock_add(inode, behind);
    }
}

bool disk_range_lock(struct inode *inode, const void *holder, uint64_t from, uint64_t to,
                     enum env_lock_kind kind)
{
    bool is_exclusive = kind == ENV_LOCK_EXCLUSIVE;
    for (const struct range_lock *lock = inode->locks; lock && kind != ENV_UNLOCK;
         lock = lock->next)
        if (lock->holder != holder && lock->from < to && lock->to > from &&
            (is_exclusive || lock->is_exclusive))
            return false;
    range_unlock(inode, holder, from, to);
    if (kind != ENV_UNLOCK)
        range_lock_add(inode,
                       (struct range_lock){
                           .holder = holder, .from = from, .to = to, .is_exclusive = is_exclusive});
    return true;
}

/* ---- copies ---- */

static uint8_t *image_copy(const uint8_t *image, uint64_t bytes)
{
    uint8_t *copy = sim_malloc(bytes);
    if (bytes)
        memcpy(copy, image, bytes);
    return copy;
}

/* No locks, no opens: those are a process's. */
static struct inode *inode_copy(const struct inode *from)
{
    struct inode *to = sim_malloc(sizeof *to);
    *to = *from;
    to->cache = image_copy(from->cache, from->cache_bytes);
    to->disk = image_copy(from->disk, from->disk_bytes);
    to->cache_capacity = from->cache_bytes;
    to->disk_capacity = from->disk_bytes;
    to->is_taken = image_copy(from->is_taken, from->is_taken_capacity);
    to->locks = NULL;
    to->opens = 0;
    to->is_locked = false;
    to->pending = NULL;
    to->pending_tail = &to->pending;
    for (const struct op *op = from->pending; op; op = op->next) {
        struct op *copy = sim_malloc(sizeof *copy);
        *copy = *op;
        copy->next = NULL;
        copy->data = op->data ? image_copy(op->data, op->bytes) : NULL;
        *to->pending_tail = copy;
        to->pending_tail = &copy->next;
    }
    return to;
}

/* In the order that they have, which listings show. */
static struct name *names_copy(const struct name *from)
{
    struct name *first = NULL, **last = &first;
    for (; from; from = from->next) {
        *last = sim_malloc(sizeof **last);
        **last = (struct name){
            .hash = from->hash, .path = copy_text(from->path), .inode = from->inode->twin};
        last = &(*last)->next;
    }
    return first;
}

void disk_copy(const struct disk *from, struct disk *out)
{
    struct inode **last = &out->inodes;
    *out = (struct disk){.inode_next = from->inode_next, .volume_bytes = from->volume_bytes};
    for (struct inode *inode = from->inodes; inode; inode = inode->next) {
        *last = inode->twin = inode_copy(inode);
        last = &(*last)->next;
    }
    *last = NULL;
    out->current = names_copy(from->current);
    out->durable = names_copy(from->durable);
    for (const struct name *name = from->came_back; name; name = name->next)
        name_set(&out->came_back, name->path, out->inodes);
    struct name_op **last_op = &out->pending;
    for (const struct name_op *op = from->pending; op; op = op->next) {
        *last_op = sim_malloc(sizeof **last_op);
        **last_op = *op;
        (*last_op)->dir = copy_text(op->dir);
        (*last_op)->path = copy_text(op->path);
        (*last_op)->inode = op->inode ? op->inode->twin : NULL;
        for (const struct name_op *p = from->pending, *q = out->pending; op->needs && p != op;
             p = p->next, q = q->next)
            if (p == op->needs)
                (*last_op)->needs = (struct name_op *)(uintptr_t)q;
        last_op = &(*last_op)->next;
        *last_op = NULL;
    }
}

/* ---- ends ---- */

static void locks_drop(struct inode *inode)
{
    disk_range_lock(inode, NULL, 0, UINT64_MAX, ENV_UNLOCK);
}

static void inode_free(struct inode *inode)
{
    while (inode->pending)
        op_free(op_pop(inode));
    locks_drop(inode);
    free(inode->cache);
    free(inode->disk);
    free(inode->is_taken);
    free(inode);
}

static void mark(const struct name *names)
{
    for (; names; names = names->next)
        names->inode->is_marked = true;
}

static void inodes_collect(struct disk *disk)
{
    for (struct inode *inode = disk->inodes; inode; inode = inode->next)
        inode->is_marked = inode->opens > 0;
    mark(disk->current);
    mark(disk->durable);
    for (struct name_op *op = disk->pending; op; op = op->next)
        if (op->inode)
            op->inode->is_marked = true;
    for (struct inode **at = &disk->inodes; *at;) {
        struct inode *inode = *at;
        if (inode->is_marked) {
            at = &inode->next;
            continue;
        }
        *at = inode->next;
        inode_free(inode);
    }
}

void disk_process_gone(struct disk *disk)
{
    for (struct inode *inode = disk->inodes; inode; inode = inode->next) {
        inode->opens = 0;
        inode->is_locked = false;
        locks_drop(inode);
    }
    inodes_collect(disk);
}

void disk_deinit(struct disk *disk)
{
    for (struct name_op *op = disk->pending; op; op = op->next)
        op->is_applied = true;
    name_ops_sweep(disk);
    names_free(&disk->current);
    names_free(&disk->durable);
    names_free(&disk->came_back);
    disk_process_gone(disk);
}

enum mood { MOOD_KEEP, MOOD_LOSE, MOOD_MIX };

static enum mood mood_choose(struct sim *sim)
{
    uint64_t pick = random_below(&sim->disk, 4);
    return pick == 0 ? MOOD_KEEP : pick == 1 ? MOOD_LOSE : MOOD_MIX;
}

static void op_tear(struct sim *sim, struct inode *inode, const struct op *op)
{
    for (uint64_t at = 0; at < op->bytes;) {
        uint64_t sector_end = ((op->offset + at) / SIM_SECTOR + 1) * SIM_SECTOR - op->offset;
        uint64_t to = sector_end < op->bytes ? sector_end : op->bytes;
        if (random_chance(&sim->disk, 1, 2))
            sectors_apply(inode, op, at, to);
        at = to;
    }
}

static void op_garble(struct sim *sim, struct inode *inode, struct op *op)
{
    uint64_t at = random_below(&sim->disk, op->bytes) / SIM_SECTOR * SIM_SECTOR;
    for (uint64_t i = at; i < op->bytes && i < at + SIM_SECTOR; i++)
        op->data[i] = (uint8_t)random_next(&sim->disk);
    op_apply(inode, op);
}

static void op_fate(struct sim *sim, struct inode *inode, struct op *op, enum mood mood)
{
    struct sim_counts *counts = &sim->counts;
    uint64_t pick = mood == MOOD_KEEP ? 0 : mood == MOOD_LOSE ? 40 : random_below(&sim->disk, 100);
    if (pick < 40) {
        op_apply(inode, op);
        counts->ops_kept++;
    } else if (pick < 70 || op->kind == OP_RESIZE || op->bytes == 0) {
        counts->ops_lost++;
    } else if (pick < 95) {
        op_tear(sim, inode, op);
        counts->ops_torn++;
    } else {
        op_garble(sim, inode, op);
        counts->ops_garbage++;
    }
}

static void names_fate(struct sim *sim, struct disk *disk)
{
    enum mood mood = mood_choose(sim);
    for (struct name_op *op = disk->pending; op; op = op->next) {
        bool is_kept = mood == MOOD_KEEP || (mood == MOOD_MIX && random_chance(&sim->disk, 1, 2));
        if (op->needs && op->is_atomic)
            is_kept = op->needs->is_kept;
        else if (op->needs && !op->needs->is_kept)
            is_kept = false;
        if (op->needs && op->needs->is_kept && !is_kept)
            sim->counts.renames_doubled++;
        op->is_kept = is_kept;
        if (is_kept)
            name_set(&disk->durable, op->path, op->inode);
        else
            sim->counts.names_lost++;
        if (!is_kept && !op->inode && !op->needs) {
            struct inode *none = disk->inodes; /* a name needs one; nobody asks for it */
            name_set(&disk->came_back, op->path, none);
            sim->counts.removals_lost++;
        }
    }
    for (struct name_op *op = disk->pending; op; op = op->next)
        op->is_applied = true;
    name_ops_sweep(disk);
}

/* With the name of a directory goes what is below it. */
static void orphans_drop(struct disk *disk)
{
    for (bool is_settled = false; !is_settled;) {
        is_settled = true;
        for (struct name **at = &disk->durable; *at;) {
            char parent[PATH_BYTES_MAX];
            path_parent(parent, (*at)->path);
            if (strcmp(parent, "/") == 0 || *name_find(&disk->durable, parent)) {
                at = &(*at)->next;
                continue;
            }
            name_set(&disk->durable, (*at)->path, NULL);
            is_settled = false;
        }
    }
}

void disk_power_cut(struct sim *sim, struct disk *disk)
{
    for (struct inode *inode = disk->inodes; inode; inode = inode->next) {
        enum mood mood = mood_choose(sim);
        while (inode->pending) {
            struct op *op = op_pop(inode);
            op_fate(sim, inode, op, mood);
            op_free(op);
        }
        blocks_cut(inode, inode->disk_bytes);
        if (inode->disk_bytes > inode->cache_bytes) /* a cut that was lost */
            blocks_take(inode, inode->cache_bytes, inode->disk_bytes, true);
        image_resize(&inode->cache, &inode->cache_bytes, &inode->cache_capacity, inode->disk_bytes);
        if (inode->disk_bytes)
            memcpy(inode->cache, inode->disk, inode->disk_bytes);
        inode->links = 0;
    }
    names_fate(sim, disk);
    orphans_drop(disk);
    names_free(&disk->current);
    for (struct name *name = disk->durable; name; name = name->next) {
        name_set(&disk->current, name->path, name->inode);
        name->inode->links++;
    }
    disk_process_gone(disk);
}
