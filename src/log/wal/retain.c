/* SPDX-License-Identifier: Apache-2.0
 *
 * Retention: which sealed segments are done with (every DATA entry at or below its table's
 * `through`), when they are swept, what is recycled, and how many spares stand ready. All but
 * admission runs on the keeper's thread under the state long lock.
 *
 * A segment leaves in this order: acknowledged -> committed/ (rename, directory syncs) -> both kept
 * checkpoints cover it -> no reader needs it and no consumer holds it, or his hold was given up for
 * space, which is synced by then (leases.c) -> floors raised in memory, so that no reader enters
 * -> floors synced (L32) -> out of the index -> recycled (link count 1, L17) or unlinked.
 */
#include <stdio.h>

#include "log/wal/wal_internal.h"

/* Whether a segment without entries of that group lies where the damaged ones may have stood. */
static bool lies_between(const struct wal *wal, const struct segment *segment,
                         const struct damage *damage)
{
    const struct group *group = &wal->groups[damage->group];
    for (size_t i = 0; i < group->run_count; i++) {
        const struct run *run = group->runs[i];
        if (run->count == 0)
            continue;
        bool is_before = run_end(run) <= damage->first;
        if (is_before
                ? segment->identity.id < run->segment->identity.id
                : run->first_seq > damage->last && segment->identity.id > run->segment->identity.id)
            return false;
    }
    return true;
}

/* Whether a damaged range may stand in the segment, whose entries of that group may be lost too. */
static bool may_hold(const struct wal *wal, const struct segment *segment,
                     const struct damage *damage)
{
    bool has_run = false;
    for (size_t i = 0; i < segment->run_count; i++) {
        const struct run *run = segment->runs[i];
        if (run->group != damage->group || run->count == 0)
            continue;
        has_run = true;
        if (run->first_seq <= damage->last + 1 && damage->first <= run_end(run))
            return true;
    }
    return !has_run && lies_between(wal, segment, damage);
}

bool segment_is_evidence(const struct wal *wal, const struct segment *segment)
{
    for (size_t i = 0; i < wal->damage_count; i++) {
        if (may_hold(wal, segment, &wal->damages[i]))
            return true;
    }
    return false;
}

uint64_t table_through(const struct wal *wal, const struct segment_table *row)
{
    const struct table *table =
        row->table_id <= wal->table_count ? wal->tables[row->table_id - 1] : NULL;
    return table && table->acks ? table->acks[row->group].through.seq : 0;
}

bool segment_is_acked(const struct wal *wal, const struct segment *segment)
{
    if (segment_is_evidence(wal, segment) || segment_is_open_ended(wal, segment))
        return false;
    for (size_t i = 0; i < segment->table_count; i++) {
        const struct segment_table *row = &segment->tables[i];
        if (row->entries > 0 && table_through(wal, row) < row->last_seq)
            return false;
    }
    return true;
}

/* ---- acknowledgements ---- */

/* No row may be passed over because it cannot be read. Lock held. */
static enum status ack_check_damage(struct wal *wal, uint32_t table_id, uint32_t group,
                                    const struct wal_ack *ack, struct error *err)
{
    const struct wal_ack *known = wal->tables[table_id - 1]->acks;
    uint64_t after = ack->committed.seq;
    if (known && known[group].through.seq > after)
        after = known[group].through.seq;
    const struct damage *damage = damage_within(wal, group, table_id, after, ack->through.seq);
    if (!damage)
        return STATUS_OK;
    return error_set(err, STATUS_CORRUPT, "log ack: group %u: %llu to %llu are damaged: %s", group,
                     (unsigned long long)damage->first, (unsigned long long)damage->last,
                     damage->where);
}

static enum status ack_check(struct wal *wal, uint32_t table_id, const struct wal_ack *acks,
                             struct error *err)
{
    enum status status = STATUS_OK;
    env_lock(wal->lock);
    if (table_id == 0 || table_id > wal->table_count)
        status = error_set(err, STATUS_INVALID, "log ack: unknown table %u", table_id);
    for (uint32_t g = 0; g < wal->group_count && status == STATUS_OK; g++) {
        if (acks[g].through.seq > wal->groups[g].committed_seq)
            status = error_set(err, STATUS_CONFLICT,
                               "log ack: table %u group %u: %llu is above the log's end %llu",
                               table_id, g, (unsigned long long)acks[g].through.seq,
                               (unsigned long long)wal->groups[g].committed_seq);
        else
            status = ack_check_damage(wal, table_id, g, &acks[g], err);
    }
    env_unlock(wal->lock);
    return status;
}

/* Nothing in it that is not known already. Lock held. */
static bool ack_is_old(const struct wal *wal, uint32_t table_id, const struct wal_ack *acks)
{
    const struct wal_ack *known = wal->tables[table_id - 1]->acks;
    for (uint32_t g = 0; g < wal->group_count; g++) {
        if (!known || acks[g].through.seq > known[g].through.seq ||
            acks[g].committed.seq > known[g].committed.seq)
            return false;
        bool is_rewritten = acks[g].committed.seq == known[g].committed.seq &&
                            acks[g].committed.chain != known[g].committed.chain;
        if (is_rewritten)
            return false;
    }
    return true;
}

enum status wal_ack_table(struct wal *wal, uint32_t table_id, const struct wal_ack *acks,
                          struct error *err)
{
    TRY(ack_check(wal, table_id, acks, err));
    enum status status = STATUS_OK;
    env_lock(wal->lock);
    wal_state_acquire(wal);
    bool is_old = ack_is_old(wal, table_id, acks);
    bool is_dead = wal->is_dead;
    env_unlock(wal->lock);
    if (is_dead)
        status = error_set(err, STATUS_CLOSED, "log ack: the log has failed");
    else if (!is_old)
        status = state_put_ack(wal, table_id, acks, err);
    env_lock(wal->lock);
    wal_state_release(wal);
    wal_poke(wal);
    env_unlock(wal->lock);
    return status;
}

bool wal_ack_get(struct wal *wal, uint32_t table_id, uint32_t group, struct wal_ack *out_ack)
{
    bool is_there = false;
    env_lock(wal->lock);
    if (table_id > 0 && table_id <= wal->table_count && group < wal->group_count) {
        const struct wal_ack *acks = wal->tables[table_id - 1]->acks;
        is_there = acks != NULL;
        if (is_there)
            *out_ack = acks[group];
    }
    env_unlock(wal->lock);
    return is_there;
}

/* ---- moving to committed/ ---- */

static enum status rename_synced(struct wal *wal, const char *from, const char *to,
                                 struct error *err)
{
    char from_dir[PATH_BYTES_MAX], to_dir[PATH_BYTES_MAX];
    path_parent(from_dir, from);
    path_parent(to_dir, to);
    TRY(env_rename(wal->env, from, to, err));
    TRY(env_dir_sync(wal->env, to_dir, err));
    return env_dir_sync(wal->env, from_dir, err);
}

static struct segment *next_acked(struct wal *wal)
{
    struct segment *found = NULL;
    env_lock(wal->lock);
    for (size_t i = 0; i < wal->segment_count && !found; i++)
        if (wal->segments[i]->place == SEGMENT_SEALED && segment_is_acked(wal, wal->segments[i]))
            found = wal->segments[i];
    env_unlock(wal->lock);
    return found;
}

static enum status commit_acked(struct wal *wal, struct error *err)
{
    struct segment *segment;
    while ((segment = next_acked(wal))) {
        char from[PATH_BYTES_MAX], to[PATH_BYTES_MAX];
        wal_segment_path(wal, segment->identity.id, SEGMENT_SEALED, from);
        wal_segment_path(wal, segment->identity.id, SEGMENT_COMMITTED, to);
        TRY(rename_synced(wal, from, to, err));
        env_lock(wal->lock);
        segment->place = SEGMENT_COMMITTED;
        env_unlock(wal->lock);
    }
    return STATUS_OK;
}

/* ---- sweeping ---- */

bool wal_is_under_pressure(const struct wal *wal)
{
    return !writer_may_grow(wal, 0);
}

static bool is_read(const struct wal *wal, const struct segment *segment)
{
    return segment->pins > 0 || scans_need(wal, segment);
}

/* The oldest committed segment whose time has come. Held ones only under pressure, if no other can
 * go: a hold never refuses a producer (L31). Lock held. */
static struct segment *next_swept(struct wal *wal, bool *out_is_held)
{
    uint64_t committed = 0;
    int64_t now = env_wall_ns(wal->env);
    for (size_t i = 0; i < wal->segment_count; i++)
        if (wal->segments[i]->place == SEGMENT_COMMITTED)
            committed += wal->segments[i]->allocated_bytes;
    bool is_over =
        committed > wal->options.budget_bytes / 100 * wal->options.keep_committed_percent;
    bool is_pressed = wal_is_under_pressure(wal);
    struct segment *held = NULL;
    for (size_t i = 0; i < wal->segment_count; i++) {
        struct segment *segment = wal->segments[i];
        if (segment_is_open_ended(wal, segment)) /* no checkpoint covers what is behind it */
            break;
        if (segment->place != SEGMENT_COMMITTED || is_read(wal, segment))
            continue;
        int64_t age_ns = now - segment->sealed_wall_ns;
        if (!is_over && !is_pressed && age_ns / 1000000 < (int64_t)wal->options.keep_committed_ms)
            continue;
        if (!leases_need(wal, segment))
            return segment;
        held = held ? held : segment;
    }
    *out_is_held = is_pressed && held;
    return is_pressed ? held : NULL;
}

/* In memory first, so that nothing can fail once it is synced. Lock held; false: out of memory. */
static bool floors_raise(struct wal *wal, const struct segment *segment)
{
    for (size_t i = 0; i < segment->run_count; i++) {
        const struct run *run = segment->runs[i];
        if (run->count && !reclaimed_add(wal, run->group, run->first_seq, run_end(run) - 1))
            return false;
    }
    for (size_t i = 0; i < segment->table_count; i++) {
        const struct segment_table *table = &segment->tables[i];
        if (!floor_raise(wal, table->table_id, table->group, table->last_seq))
            return false;
    }
    return true;
}

void spare_path(const struct wal *wal, const struct spare *spare, char out[PATH_BYTES_MAX])
{
    wal_path(wal, out, "spare", spare->is_written ? "%016llx.spare" : "%016llx.blank",
             spare->number);
}

bool spare_add(struct wal *wal, const struct spare *spare)
{
    if (!grow((void **)&wal->spares, &wal->spare_capacity, wal->spare_count, sizeof *wal->spares))
        return false;
    wal->spares[wal->spare_count++] = *spare;
    wal->allocated_bytes += spare->allocated_bytes;
    return true;
}

/* Spares wanted: two for control, one more for data once the active segment is half full. */
static size_t spares_wanted(const struct wal *wal)
{
    bool is_half = wal->room_left < wal->options.segment_bytes / 2;
    return (size_t)WAL_CONTROL_SPARES + (is_half && writer_may_grow(wal, 0) ? 1u : 0u);
}

/* A file that was written once is worth more than a new one, which costs its length again in zeros.
 * Some are kept, as long as they are a small part of the budget. Lock held. */
static bool is_recycled(const struct wal *wal)
{
    enum { RECYCLED_MAX = 16, BUDGET_PART = 8 };
    if (wal->spare_count < spares_wanted(wal))
        return true;
    return wal->spare_count < WAL_CONTROL_SPARES + RECYCLED_MAX &&
           (wal->spare_count + 1) * wal->options.segment_bytes <=
               wal->options.budget_bytes / BUDGET_PART;
}

static enum status recycle(struct wal *wal, const char *path, const struct env_stat *stat,
                           struct error *err)
{
    char to[PATH_BYTES_MAX];
    struct env_file *file = NULL;
    struct env_stat now = *stat;
    env_lock(wal->lock);
    struct spare spare = {.number = wal->spare_next++, .is_written = true};
    env_unlock(wal->lock);
    spare_path(wal, &spare, to);
    TRY(rename_synced(wal, path, to, err));
    /* Sealing cut the file behind its footer; what is missing is reserved again. */
    struct error ignored;
    if (env_open(wal->env, to, ENV_READ | ENV_WRITE, &file, &ignored) == STATUS_OK) {
        if (now.bytes < wal->options.segment_bytes &&
            env_allocate(file, wal->options.segment_bytes, &ignored) != STATUS_OK)
            now = *stat; /* a shorter spare is a spare */
        if (env_file_stat(file, &now, &ignored) != STATUS_OK)
            now = *stat;
    }
    env_close(file);
    spare.bytes = now.bytes;
    spare.allocated_bytes = now.allocated_bytes;
    env_lock(wal->lock);
    bool is_added = spare_add(wal, &spare);
    env_unlock(wal->lock);
    return is_added ? STATUS_OK : files_remove(wal->env, to, err);
}

static enum status sweep_one(struct wal *wal, struct segment *segment, struct error *err)
{
    char path[PATH_BYTES_MAX];
    struct env_stat stat;
    uint64_t id = segment->identity.id;
    wal_segment_path(wal, id, SEGMENT_COMMITTED, path);
    TRY(state_put_reclaim(wal, segment, err));
    TRY(env_path_stat(wal->env, path, &stat, err));
    env_lock(wal->lock);
    bool is_wanted = is_recycled(wal);
    bool is_solid = !segment->is_compacted && !segment->problem[0]; /* its blocks are there */
    wal_rate_add(&wal->drain_rate, stat.allocated_bytes, env_mono_ns(wal->env));
    index_segment_drop(wal, segment);
    env_unlock(wal->lock);
    if (is_wanted && is_solid && stat.link_count == 1 &&
        stat.bytes / 3 >= wal->options.segment_bytes / 4)
        return recycle(wal, path, &stat, err);
    return files_remove(wal->env, path, err);
}

static enum status sweep(struct wal *wal, struct error *err)
{
    for (;;) {
        bool is_held = false;
        env_lock(wal->lock);
        struct segment *segment = next_swept(wal, &is_held);
        env_unlock(wal->lock);
        if (!segment)
            return STATUS_OK;
        if (is_held)
            TRY(leases_release(wal, segment, false, err));
        /* Two checkpoints, so that the loss of either file loses no state. */
        while (segment->identity.id > wal->covers_before)
            TRY(state_checkpoint(wal, err));
        TRY(compact_save(wal, segment, err));
        env_lock(wal->lock);
        bool is_free = !is_read(wal, segment) && !leases_need(wal, segment);
        /* The decision: no reader enters from here on. */
        bool is_raised = is_free && floors_raise(wal, segment);
        segment->is_going |= is_raised;
        env_unlock(wal->lock);
        if (is_free && !is_raised)
            return error_set(err, STATUS_NO_MEMORY, "log: no memory to reclaim");
        if (is_free)
            TRY(sweep_one(wal, segment, err));
    }
}

/* ---- spares ---- */

bool spare_sacrifice(struct wal *wal)
{
    struct spare spare = {0};
    char path[PATH_BYTES_MAX];
    struct error ignored;
    env_lock(wal->lock);
    bool is_there = wal->spare_count > 0;
    if (is_there) {
        spare = wal->spares[--wal->spare_count];
        wal->allocated_bytes -= spare.allocated_bytes;
    }
    env_unlock(wal->lock);
    if (!is_there)
        return false;
    spare_path(wal, &spare, path);
    return env_remove(wal->env, path, &ignored) == STATUS_OK;
}

/* A spare is only reserved, or written once by us, here, so that no sync of a unit has to journal
 * its blocks. */
static enum status spare_build(struct wal *wal, bool is_filled, struct error *err)
{
    char path[PATH_BYTES_MAX], dir[PATH_BYTES_MAX];
    struct env_file *file = NULL;
    struct env_stat stat;
    enum status status;
    env_lock(wal->lock);
    struct spare spare = {.number = wal->spare_next++, .is_written = is_filled};
    env_unlock(wal->lock);
    spare_path(wal, &spare, path);
    wal_path(wal, dir, "spare", NULL, 0);
    TRY(env_open(wal->env, path, ENV_READ | ENV_WRITE | ENV_CREATE | ENV_EXCLUSIVE, &file, err));
    status = env_allocate(file, wal->options.segment_bytes, err);
    if (status == STATUS_OK && is_filled)
        status = file_zero_fill(file, wal->options.segment_bytes, err);
    if (status == STATUS_OK)
        status = env_file_stat(file, &stat, err);
    env_close(file);
    if (status == STATUS_OK)
        status = env_dir_sync(wal->env, dir, err);
    bool is_added = false;
    if (status == STATUS_OK) {
        spare.bytes = stat.bytes;
        spare.allocated_bytes = stat.allocated_bytes;
        env_lock(wal->lock);
        is_added = spare_add(wal, &spare);
        env_unlock(wal->lock);
    }
    if (is_added)
        return STATUS_OK;
    struct error ignored;
    enum status removed = env_remove(wal->env, path, &ignored);
    UNUSED(removed); /* one more try at the next start, which counts what lies there */
    return status == STATUS_OK ? error_set(err, STATUS_NO_MEMORY, "log: spares") : status;
}

static enum status spares_fill(struct wal *wal, struct error *err)
{
    for (;;) {
        env_lock(wal->lock);
        bool is_short = wal->spare_count < spares_wanted(wal);
        /* Not the control spares, and not where units are so large that a journal's block beside
         * each is nothing, and all bytes twice is much. */
        bool is_filled = wal->spare_count >= WAL_CONTROL_SPARES && !wal->has_large_units;
        bool has_room = !wal->volume_is_full && wal->allocated_bytes + wal->options.segment_bytes <=
                                                    wal->options.budget_bytes;
        env_unlock(wal->lock);
        if (!is_short || !has_room)
            return STATUS_OK;
        TRY(spare_build(wal, is_filled, err));
    }
}

/* ---- a round ---- */

static void volume_look(struct wal *wal)
{
    struct env_volume volume;
    struct error ignored;
    if (env_volume_stat(wal->env, wal->dir, &volume, &ignored) != STATUS_OK)
        return;
    bool is_full =
        volume.bytes_free < volume.bytes_total / 100 * wal->options.volume_free_percent_min;
    env_lock(wal->lock);
    wal->volume_is_full = is_full;
    env_unlock(wal->lock);
}

static bool is_checkpoint_due(struct wal *wal)
{
    enum { SEGMENTS_BETWEEN = 8 };
    size_t behind = 0;
    env_lock(wal->lock);
    for (size_t i = 0; i < wal->segment_count && !segment_is_open_ended(wal, wal->segments[i]); i++)
        behind += wal->segments[i]->place != SEGMENT_ACTIVE &&
                  wal->segments[i]->identity.id > wal->covers;
    bool is_pressed = wal_is_under_pressure(wal);
    env_unlock(wal->lock);
    return behind >= SEGMENTS_BETWEEN || state_wants_checkpoint(wal) ||
           (is_pressed && state_is_large(wal)); /* else a small budget may be full of it for ever */
}

/* The mark follows the segment being written, once a second while there is something new. What is
 * lost behind it looks like the end of the log (L20). */
static enum status mark_move(struct wal *wal, struct error *err)
{
    static const int64_t second_ns = 1000000000;
    int64_t now = env_mono_ns(wal->env);
    env_lock(wal->lock);
    struct mark mark = wal->mark;
    const struct segment *segment = wal->writer.segment;
    bool is_due = segment && segment->identity.id == mark.id && wal->synced_unit > mark.floor &&
                  now - wal->marked_ns >= second_ns;
    mark.floor = wal->synced_unit;
    env_unlock(wal->lock);
    if (!is_due)
        return STATUS_OK;
    wal->marked_ns = now;
    enum status status = state_put_mark(wal, &mark, err);
    return status == STATUS_NO_SPACE ? STATUS_OK : status;
}

void keeper_round(struct wal *wal)
{
    struct error err;
    volume_look(wal);
    env_lock(wal->lock);
    wal_state_acquire(wal);
    bool is_dead = wal->is_dead;
    env_unlock(wal->lock);
    bool is_compacting = false;
    enum status status = is_dead ? STATUS_CLOSED : mark_move(wal, &err);
    if (status == STATUS_OK)
        status = commit_acked(wal, &err);
    if (status == STATUS_OK && is_checkpoint_due(wal))
        status = state_checkpoint(wal, &err);
    if (status == STATUS_OK)
        status = leases_lapse(wal, &err);
    if (status == STATUS_OK)
        status = sweep(wal, &err);
    if (status == STATUS_OK)
        status = compact_next(wal, &is_compacting, &err);
    if (status == STATUS_OK)
        status = producers_expire(wal, &err);
    if (status == STATUS_OK || status == STATUS_NO_SPACE)
        status = spares_fill(wal, &err);
    /* A directory or checkpoint that cannot be written is unknown from here on; a full volume is
     * waited out. */
    if (status == STATUS_IO)
        wal_die(wal, &err);
    env_lock(wal->lock);
    wal_state_release(wal);
    if (is_compacting) /* the next one, once others had their turn */
        wal_poke(wal);
    env_unlock(wal->lock);
}
