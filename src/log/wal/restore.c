/* SPDX-License-Identifier: Apache-2.0
 *
 * A log made of what a mirror held (L25, L30, L35, L36), and the fence for the one it was made
 * from.
 *
 * A restoring start is a start like any other, but for this: only proven units count; the
 * checkpoint says which segments are done with; behind the last entry comes a hole up to the
 * highest position that a table, an ack, a consumer or the checkpoint names. Where several tables
 * stand within the hole it is cut into as many ranges, so that each void that wal_repair makes of
 * them bears the chain of the position at its end: for E7 these count as the log's own. Terms and
 * numbers of segments go on WAL_RESTORE_STEP higher, so that nothing the old machine may still
 * write bears a name of ours.
 *
 * Runs before the log has threads; the fence may come at any time.
 */
#include <stdio.h>
#include <stdlib.h>

#include "log/wal/recover_internal.h"

static enum status no_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "log: no memory to restore it");
}

/* ---- in front of the segments ---- */

/* Without a checkpoint the first segments are there, and bear the id that the log began with. */
static enum status identity_take(struct wal *wal, struct error *err)
{
    const struct wal_restore *restore = wal->options.restore;
    wal->group_count = restore->group_count;
    wal->groups = mem_alloc_zero(wal->group_count, sizeof *wal->groups);
    wal->identities = mem_alloc_zero(1, sizeof *wal->identities);
    if (!wal->groups || !wal->identities)
        return no_memory(err);
    wal->identities[0] = (struct identity_row){.log_id = restore->log_id, .first_segment = 1};
    wal->identity_count = 1;
    return STATUS_OK;
}

enum status restore_begin(struct wal *wal, bool is_new, struct error *err)
{
    const struct wal_restore *restore = wal->options.restore;
    if (is_new)
        TRY(identity_take(wal, err));
    if (!log_id_equal(wal_log_id(wal), restore->log_id))
        return error_set(err, STATUS_IDENTITY, "log: the checkpoint is another log's");
    /* What it knew of the segment being written is the old machine's; of the mirror's copy of the
     * last one this is known. Units that are lost may have filled the rest of it. */
    wal->mark = (struct mark){.id = restore->proven_segment,
                              .bytes = restore->proven_bytes > wal->options.segment_bytes
                                           ? restore->proven_bytes
                                           : wal->options.segment_bytes,
                              .floor = restore->proven_unit};
    return STATUS_OK;
}

bool wal_restore_is_done_with(const struct wal *wal, uint64_t segment_id)
{
    if (segment_id > wal->covers)
        return false;
    for (size_t i = 0; i < wal->expected_count; i++)
        if (wal->expected[i] == segment_id)
            return false;
    return true;
}

/* ---- behind them ---- */

/* The last entry of each group that is here. */
static enum status note_ends(struct wal *wal, struct error *err)
{
    struct error ignored;
    mem_free(wal->recovered);
    wal->lost_count = 0;
    wal->recovered = mem_alloc_zero(wal->group_count, sizeof *wal->recovered);
    if (!wal->recovered)
        return no_memory(err);
    for (uint32_t g = 0; g < wal->group_count; g++) {
        const struct group *group = &wal->groups[g];
        uint64_t last = 0;
        for (size_t i = 0; i < group->run_count; i++)
            if (group->runs[i]->count > 0)
                last = run_end(group->runs[i]) - 1;
        wal->recovered[g].seq = last;
        /* Where ranges are of a segment before and after it was compacted, the entry may be left
         * out that the footer ends with. */
        if (chain_read(wal, g, last, &wal->recovered[g].chain, &ignored) != STATUS_OK)
            wal->recovered[g].chain = group->told.seq == last ? group->told.chain : 0;
    }
    for (size_t i = 0; i < wal->damage_count; i++) {
        const struct damage *damage = &wal->damages[i];
        if (damage->first > wal->recovered[damage->group].seq)
            continue;
        if (!grow((void **)&wal->lost, &wal->lost_capacity, wal->lost_count, sizeof *wal->lost))
            return no_memory(err);
        wal->lost[wal->lost_count++] =
            (struct seq_range){damage->group, damage->first, damage->last};
    }
    return STATUS_OK;
}

/* Ends a damaged range at a position whose chain is known; what is behind it is another range. */
static bool damage_part(struct wal *wal, uint32_t group, struct wal_position at)
{
    for (size_t i = 0; i < wal->damage_count; i++) {
        struct damage *damage = &wal->damages[i];
        if (damage->group != group || damage->first > at.seq || damage->last < at.seq)
            continue;
        struct damage rest = *damage;
        damage->last = at.seq;
        damage->has_chain = true;
        damage->chain = at.chain;
        if (rest.last == at.seq)
            return true;
        rest.first = at.seq + 1;
        if (!damage_add(wal, group, rest.first, rest.last, rest.where))
            return false;
        wal->damages[wal->damage_count - 1] = rest;
        return true;
    }
    return true;
}

/* L25: the numbers that somebody may have seen end at the highest that anybody names. */
static enum status jump(struct wal *wal, uint32_t group, struct wal_position to, const char *where,
                        struct error *err)
{
    if (to.seq <= wal->groups[group].synced_seq)
        return STATUS_OK;
    if (!to.chain)
        env_random(wal->env, &to.chain, sizeof to.chain);
    return recover_group_jump(wal, group, to.seq + 1, to.chain, where, err);
}

static enum status jump_all(struct wal *wal, struct error *err)
{
    const struct wal_restore *restore = wal->options.restore;
    char where[160];
    for (size_t i = 0; i < restore->known_count; i++) {
        const struct wal_known_position *known = &restore->known[i];
        if (known->group >= wal->group_count)
            return error_set(err, STATUS_IDENTITY, "%s knows group %u of this log, it has %u",
                             known->table, known->group, wal->group_count);
        snprintf(where, sizeof where, "not in the mirror; %.100s is ahead of it", known->table);
        TRY(jump(wal, known->group, known->position, where, err));
    }
    for (size_t i = 0; i < wal->lease_count; i++) {
        const struct lease_state *lease = &wal->leases[i]->state;
        struct wal_position to = {.seq = lease->held_from};
        for (uint32_t m = 0; m < lease->member_count; m++)
            to.seq = lease->members[m].seq > to.seq ? lease->members[m].seq : to.seq;
        snprintf(where, sizeof where, "not in the mirror; consumer %s is ahead of it", lease->name);
        TRY(jump(wal, lease->group, to, where, err));
    }
    for (size_t i = 0; i < restore->known_count; i++)
        if (!damage_part(wal, restore->known[i].group, restore->known[i].position))
            return no_memory(err);
    return STATUS_OK;
}

/* What a table holds needs no log, unless the table has another history. */
static enum status ack_raise(struct wal *wal, const struct wal_known_position *known,
                             struct error *err)
{
    struct error ignored;
    uint64_t chain;
    uint32_t id = table_find(wal, known->table, strlen(known->table));
    if (id == 0 || known->position.seq == 0 ||
        (known->position.seq <= wal->groups[known->group].synced_seq &&
         chain_read(wal, known->group, known->position.seq, &chain, &ignored) == STATUS_OK &&
         chain != known->position.chain))
        return STATUS_OK;
    struct table *table = wal->tables[id - 1];
    if (!table->acks)
        table->acks = mem_alloc_zero(wal->group_count, sizeof *table->acks);
    if (!table->acks)
        return no_memory(err);
    struct wal_ack *ack = &table->acks[known->group];
    if (known->position.seq >= ack->committed.seq)
        ack->committed = known->position;
    if (known->position.seq >= ack->through.seq)
        ack->through = known->position;
    return STATUS_OK;
}

enum status restore_settle(struct wal *wal, struct error *err)
{
    const struct wal_restore *restore = wal->options.restore;
    TRY(note_ends(wal, err));
    TRY(jump_all(wal, err));
    for (size_t i = 0; i < restore->known_count; i++)
        TRY(ack_raise(wal, &restore->known[i], err));
    for (uint32_t g = 0; g < wal->group_count; g++) {
        wal->groups[g].seq = wal->groups[g].synced_seq;
        wal->groups[g].chain = wal->groups[g].synced_chain;
    }
    wal->incarnation = restore->incarnation;
    wal->term += WAL_RESTORE_STEP;
    wal->segment_next += WAL_RESTORE_STEP;
    wal->fenced_by = 0;
    wal->producers.certain_term = wal->term + 1; /* of this start */
    wal->producers.uncertain_until_ms = wal_clock_ms(wal) + wal->producers.keep_ms;
    wal->recovery.damaged_ranges = wal->damage_count;
    return STATUS_OK;
}

bool wal_recovered_to(struct wal *wal, uint32_t group, struct wal_position *out_end)
{
    env_lock(wal->lock);
    bool is_recovered = wal->recovered && group < wal->group_count;
    if (is_recovered)
        *out_end = wal->recovered[group];
    env_unlock(wal->lock);
    return is_recovered;
}

bool wal_recovered_without(struct wal *wal, size_t index, uint32_t *out_group, uint64_t *out_first,
                           uint64_t *out_last)
{
    env_lock(wal->lock);
    bool is_there = index < wal->lost_count;
    if (is_there) {
        *out_group = wal->lost[index].group;
        *out_first = wal->lost[index].first;
        *out_last = wal->lost[index].last;
    }
    env_unlock(wal->lock);
    return is_there;
}

/* ---- the fence ---- */

enum status fence_check(const struct wal *wal, struct error *err)
{
    if (!wal->fenced_by)
        return STATUS_OK;
    return error_set(err, STATUS_FENCED,
                     "this log was recovered on another machine, as incarnation %llu, and goes on "
                     "there: stop this server, then sluice log adopt --confirm",
                     (unsigned long long)wal->fenced_by);
}

enum status wal_fence(struct wal *wal, uint64_t incarnation, struct error *err)
{
    enum status status = STATUS_OK;
    env_lock(wal->lock);
    wal_state_acquire(wal);
    bool is_news = incarnation > wal->fenced_by;
    env_unlock(wal->lock);
    if (is_news)
        status = state_put_fence(wal, incarnation, err);
    env_lock(wal->lock);
    if (is_news && status == STATUS_OK)
        wal->fenced_by = incarnation;
    wal_state_release(wal);
    env_unlock(wal->lock);
    return status;
}

uint64_t wal_fenced_by(const struct wal *wal)
{
    env_lock(wal->lock);
    uint64_t incarnation = wal->fenced_by;
    env_unlock(wal->lock);
    return incarnation;
}

/* ---- in state/ ---- */

void restored_encode(const struct wal *wal, struct buf *out)
{
    buf_put_le64(out, wal->fenced_by);
    buf_put_le64(out, wal->producers.certain_term);
    buf_put_le64(out, wal->producers.uncertain_until_ms);
    buf_put_byte(out, wal->recovered != NULL);
    for (uint32_t g = 0; wal->recovered && g < wal->group_count; g++) {
        buf_put_le64(out, wal->recovered[g].seq);
        buf_put_le64(out, wal->recovered[g].chain);
    }
    buf_put_le32(out, (uint32_t)wal->lost_count);
    for (size_t i = 0; i < wal->lost_count; i++) {
        buf_put_le32(out, wal->lost[i].group);
        buf_put_le64(out, wal->lost[i].first);
        buf_put_le64(out, wal->lost[i].last);
    }
}

enum status restored_decode(struct wal *wal, struct cursor *cursor, struct error *err)
{
    wal->fenced_by = cursor_get_le64(cursor);
    wal->producers.certain_term = cursor_get_le64(cursor);
    wal->producers.uncertain_until_ms = cursor_get_le64(cursor);
    if (cursor_get_byte(cursor)) {
        wal->recovered = mem_alloc_zero(wal->group_count, sizeof *wal->recovered);
        if (!wal->recovered)
            return no_memory(err);
        for (uint32_t g = 0; g < wal->group_count; g++) {
            wal->recovered[g].seq = cursor_get_le64(cursor);
            wal->recovered[g].chain = cursor_get_le64(cursor);
        }
    }
    uint32_t count = cursor_get_le32(cursor);
    if (cursor->failed || count > cursor_left(cursor) / 20)
        return error_set(err, STATUS_CORRUPT, "checkpoint: what a recovery left");
    for (uint32_t i = 0; i < count; i++) {
        struct seq_range range = {.group = cursor_get_le32(cursor)};
        range.first = cursor_get_le64(cursor);
        range.last = cursor_get_le64(cursor);
        if (!grow((void **)&wal->lost, &wal->lost_capacity, wal->lost_count, sizeof *wal->lost))
            return no_memory(err);
        wal->lost[wal->lost_count++] = range;
    }
    return STATUS_OK;
}
