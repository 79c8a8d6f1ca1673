/* SPDX-License-Identifier: Apache-2.0
 *
 * `log trim --force`: an operator gives up what is not published, so that the log may let go of it
 * while a table stands still for good (TE9). The catalog is not asked, since it may be what stands
 * still.
 *
 * Order: 1. the gap, synced, in the lane's `trim` file; 2. the log's durable ack, whose `through`
 * passes it; 3. those who wait for it are told. The next commit says the gap in its summary. What
 * is being committed (a descriptor) is left alone: the gap begins behind it. A crash between 1 and
 * 2 leaves a gap that the ack is not past: it does not count. Gaps are kept, for receipts. Thread:
 * the one that has claimed the lane; the gaps change under publisher->lock.
 */
#include <stdio.h>

#include "flow/publish/publish_internal.h"

enum { CLAIM_MS = 10000 };

/* Up to where the log has let go of what the lane did not publish. */
static uint64_t through_of(const struct lane *lane, uint32_t group)
{
    return source_done_through(lane->publisher->source, lane->table_id, group);
}

void gaps_put(const struct lane *lane, struct buf *out)
{
    for (size_t i = 0; i < lane->gap_count; i++) {
        const struct gap *gap = &lane->gaps[i];
        if (!gap->is_told && through_of(lane, gap->group) >= gap->last)
            buf_format(out, "%s%u:%llu-%llu", out->length ? ";" : "", gap->group,
                       (unsigned long long)gap->first, (unsigned long long)gap->last);
    }
}

void gaps_told(struct lane *lane)
{
    struct error ignored;
    bool is_news = false;
    env_lock(lane->publisher->lock);
    for (size_t i = 0; i < lane->gap_count; i++) {
        struct gap *gap = &lane->gaps[i];
        bool counts = through_of(lane, gap->group) >= gap->last;
        is_news |= counts && !gap->is_told;
        gap->is_told |= counts;
    }
    env_unlock(lane->publisher->lock);
    if (is_news && gaps_save(lane, &ignored) != STATUS_OK)
        return; /* the next commit after a start says it once more */
}

bool gaps_hold(struct lane *lane, uint32_t group, uint64_t seq)
{
    bool is_held = false;
    env_lock(lane->publisher->lock);
    for (size_t i = 0; i < lane->gap_count; i++)
        is_held |= lane->gaps[i].group == group && lane->gaps[i].first <= seq &&
                   seq <= lane->gaps[i].last && through_of(lane, group) >= lane->gaps[i].last;
    env_unlock(lane->publisher->lock);
    return is_held;
}

enum status gaps_add(struct lane *lane, const struct gap *gap, struct error *err)
{
    struct gap *wider = mem_alloc_zero(lane->gap_count + 1, sizeof *wider);
    if (!wider)
        return error_set(err, STATUS_NO_MEMORY, "log trim: out of memory");
    env_lock(lane->publisher->lock);
    if (lane->gap_count)
        memcpy(wider, lane->gaps, lane->gap_count * sizeof *wider);
    wider[lane->gap_count] = *gap;
    struct gap *before = lane->gaps;
    lane->gaps = wider;
    lane->gap_count++;
    env_unlock(lane->publisher->lock);
    mem_free(before);
    return STATUS_OK;
}

/* Entries of the table in (from, to]: what is given up of one group. */
static enum status weigh(struct lane *lane, uint32_t group, uint64_t from, uint64_t to,
                         struct publish_trim *trim, struct error *err)
{
    struct source *source = lane->publisher->source;
    struct wal_pending all, behind;
    TRY(source_pending(source, lane->table_id, group, from, &all, err));
    TRY(source_pending(source, lane->table_id, group, to, &behind, err));
    trim->entries += all.entries - behind.entries;
    trim->rows += all.rows - behind.rows;
    return STATUS_OK;
}

static enum status trim_group(struct lane *lane, uint32_t group, uint64_t before,
                              struct wal_ack *inout_ack, struct publish_trim *trim,
                              struct error *err)
{
    struct source *source = lane->publisher->source;
    struct wal_position end = source_end(source, group);
    uint64_t from = through_of(lane, group);
    struct publish_trim one = {0};
    if (lane->record.exists && lane->record.is_descriptor && lane->record.to.at[group].seq > from)
        from = lane->record.to.at[group].seq;
    if (before && before - 1 < end.seq)
        end = (struct wal_position){.seq = before - 1};
    if (end.seq <= from)
        return STATUS_OK;
    TRY(weigh(lane, group, from, end.seq, &one, err));
    if (one.entries == 0)
        return STATUS_OK;
    if (!end.chain)
        TRY(source_chain_at(source, group, end.seq, &end.chain, err));
    struct gap gap = {.group = group, .first = from + 1, .last = end.seq};
    TRY(gaps_add(lane, &gap, err));
    inout_ack->through = end;
    trim->entries += one.entries;
    trim->rows += one.rows;
    return STATUS_OK;
}

/* Who waits for what was given up will not see it. */
static void tell_waiters(struct lane *lane)
{
    struct publisher *publisher = lane->publisher;
    struct publish_waiter *gone = NULL;
    env_lock(publisher->lock);
    struct publish_waiter **link = &lane->waiters;
    while (*link) {
        struct publish_waiter *waiter = *link;
        env_unlock(publisher->lock);
        bool is_gone = gaps_hold(lane, waiter->group, waiter->seq);
        env_lock(publisher->lock);
        if (!is_gone) {
            link = &waiter->next;
            continue;
        }
        *link = waiter->next;
        waiter->next = gone;
        gone = waiter;
    }
    env_unlock(publisher->lock);
    while (gone) {
        struct publish_waiter *waiter = gone;
        gone = waiter->next;
        waiter->done(waiter, STATUS_HALTED);
    }
}

/* The lane reads on behind the gap, whatever its checkpoint is asked for (E16). */
static enum status pass_gap(struct lane *lane, const struct wal_ack *acks, struct error *err)
{
    struct checkpoint checkpoint = lane->checkpoint;
    if (!checkpoint.exists)
        return STATUS_OK;
    for (uint32_t g = 0; g < lane->publisher->group_count; g++)
        if (acks[g].through.seq > checkpoint.through.at[g].seq)
            checkpoint.through.at[g] = acks[g].through;
    return checkpoint_save(lane, &checkpoint, err);
}

static enum status trim_lane(struct lane *lane, uint64_t before, struct publish_trim *trim,
                             struct error *err)
{
    struct publisher *publisher = lane->publisher;
    struct wal_ack acks[PUBLISH_GROUPS_MAX] = {0};
    TRY(source_refresh(publisher->source, err));
    for (uint32_t g = 0; g < publisher->group_count; g++) {
        if (!source_ack_get(publisher->source, lane->table_id, g, &acks[g]))
            acks[g] = (struct wal_ack){0};
        TRY(trim_group(lane, g, before, &acks[g], trim, err));
    }
    if (trim->entries == 0)
        return STATUS_OK;
    TRY(gaps_save(lane, err));                                           /* 1 */
    TRY(source_ack_table(publisher->source, lane->table_id, acks, err)); /* 2 */
    TRY(pass_gap(lane, acks, err));
    tell_waiters(lane); /* 3 */
    return STATUS_OK;
}

enum status publisher_trim(struct publisher *publisher, const char *table, uint64_t before,
                           void (*told)(void *context, const struct publish_trim *trim),
                           void *context, struct error *err)
{
    bool is_known = !table;
    TRY(publisher_must_be_here(publisher, err));
    for (size_t i = 0; i < publisher->lane_count; i++) {
        struct lane *lane = &publisher->lanes[i];
        struct publish_trim trim = {0};
        if (table && strcmp(lane->name, table) != 0)
            continue;
        is_known = true;
        TRY(lane_claim(lane, CLAIM_MS, err));
        enum status status = trim_lane(lane, before, &trim, err);
        lane_release(lane);
        if (status != STATUS_OK)
            return error_prefix(err, "log trim: %s", lane->name);
        snprintf(trim.table, sizeof trim.table, "%s", lane->name);
        if (trim.entries)
            told(context, &trim);
    }
    return is_known ? STATUS_OK
                    : error_set(err, STATUS_NOT_FOUND, "no lane publishes %.200s", table);
}
