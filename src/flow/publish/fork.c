/* SPDX-License-Identifier: Apache-2.0
 *
 * `log fork` (E7): two copies of one log have both gone on, and the table holds what the other one
 * wrote. What this copy wrote since the two parted goes on under a new log id; what it wrote before
 * stands in the table already, by the other's hand.
 *
 * Where they part: a copy can only go on after a start, and a start's first entry is a NOOP with 64
 * random bits (L5). So both copies are the same up to just before the first start of either that
 * the other does not have. A commit tells the starts within its range (`since`, `starts`); between
 * two starts a position needs no proof of its own.
 *
 * Order: 1. `through` of the log's acks, up to the shared position; 2. checkpoints that know of no
 * commit and read after `through`; 3. the log's new id; 4. halts are cleared. Until 4 the lanes are
 * halted, and every step may be repeated. Thread: a command's; no publisher runs.
 */
#include <stdio.h>

#include "flow/publish/publish_internal.h"

/* ---- what a commit says ---- */

/* Of one group. False: the log cannot tell. */
static bool put_starts(const struct buf *found, uint32_t group, struct buf *out)
{
    const struct wal_position *starts = (const void *)found->data;
    for (size_t i = 0; i < found->length / sizeof *starts; i++)
        buf_format(out, "%s%u:%llu:%016llx", out->length ? ";" : "", group,
                   (unsigned long long)starts[i].seq, (unsigned long long)starts[i].chain);
    return !out->failed;
}

/* Has the lane's table rows in (after, last]? */
static enum status has_rows_within(struct lane *lane, uint32_t group, uint64_t after, uint64_t last,
                                   bool *out_has, struct error *err)
{
    struct source *source = lane->publisher->source;
    struct wal_pending all, behind;
    TRY(source_pending(source, lane->table_id, group, after, &all, err));
    TRY(source_pending(source, lane->table_id, group, last, &behind, err));
    *out_has = all.entries > behind.entries;
    return STATUS_OK;
}

/* Where starts begin to be known, at or behind *inout_since: what was reclaimed tells of none. */
static enum status starts_since(struct lane *lane, uint32_t group, struct wal_position last,
                                struct wal_position *inout_since, struct error *err)
{
    struct source *source = lane->publisher->source;
    uint64_t reclaimed = source_reclaimed_below(source, group, last.seq);
    bool has_rows;
    if (reclaimed <= inout_since->seq)
        return STATUS_OK;
    TRY(has_rows_within(lane, group, inout_since->seq, reclaimed, &has_rows, err));
    if (has_rows)
        return error_set(err, STATUS_RECLAIMED, "starts between rows of the table are not known");
    if (reclaimed == last.seq) {
        *inout_since = last;
        return STATUS_OK;
    }
    inout_since->seq = reclaimed;
    return source_chain_at(source, group, reclaimed, &inout_since->chain, err);
}

/* Those of a group within (from, last], and in *inout_since where they begin to be known. */
static enum status group_starts(struct lane *lane, uint32_t group, struct wal_position last,
                                struct wal_position *inout_since, struct buf *out_starts,
                                struct error *err)
{
    struct buf found = {0};
    TRY(starts_since(lane, group, last, inout_since, err));
    if (inout_since->seq >= last.seq)
        return STATUS_OK;
    enum status status =
        source_starts(lane->publisher->source, group, inout_since->seq, last.seq, &found, err);
    if (status == STATUS_OK && !put_starts(&found, group, out_starts))
        status = error_set(err, STATUS_NO_MEMORY, "starts: out of memory");
    buf_deinit(&found);
    return status;
}

enum status range_starts(struct lane *lane, const struct positions *from,
                         const struct positions *to, struct positions *out_since,
                         struct buf *out_starts, bool *out_is_told, struct error *err)
{
    struct source *source = lane->publisher->source;
    struct positions since = *from;
    *out_is_told = false;
    TRY(source_refresh(source, err)); /* younger than what the range was read from */
    for (uint32_t g = 0; g < to->count; g++) {
        struct wal_position last = source_started(source, g);
        if (last.seq > to->at[g].seq)
            last = to->at[g];
        if (from->at[g].seq >= last.seq)
            continue; /* all of it was written since */
        enum status status = group_starts(lane, g, last, &since.at[g], out_starts, err);
        if (status != STATUS_OK)
            return status == STATUS_TIMEOUT ? status : STATUS_OK;
    }
    *out_since = since;
    *out_is_told = true;
    return STATUS_OK;
}

/* ---- where two copies part ---- */

static bool is_in_log(struct lane *lane, uint32_t group, struct wal_position position)
{
    struct error ignored;
    struct wal_ack ack;
    uint64_t chain;
    if (position.seq == 0)
        return true;
    if (position.seq > source_end(lane->publisher->source, group).seq)
        return false;
    if (wal_chain_at(source_wal(lane->publisher->source), group, position.seq, &chain, &ignored) ==
        STATUS_OK)
        return chain == position.chain;
    return (lane->checkpoint.exists &&
            position_equal(lane->checkpoint.committed.at[group], position)) ||
           (source_ack_get(lane->publisher->source, lane->table_id, group, &ack) &&
            position_equal(ack.committed, position));
}

/* The first start of ours after `after`; 0: none. False: that part of the log is gone. */
static bool first_start(struct wal *wal, uint32_t group, uint64_t after, uint64_t *out_seq)
{
    struct wal_scan *scan = NULL;
    struct wal_view view;
    struct error ignored;
    *out_seq = 0;
    enum status status = wal_scan_open(wal, group, 0, after, &scan, &ignored);
    while (status == STATUS_OK && !*out_seq) {
        status = wal_scan_next(scan, &view, &ignored);
        if (status == STATUS_OK && view.type == WAL_NOOP)
            *out_seq = view.seq;
    }
    wal_scan_close(scan);
    return status == STATUS_OK || status == STATUS_NOT_FOUND;
}

/* Reads one "group:seq:chain" and moves on; false at the end. */
static bool next_start(const char **inout_text, unsigned *out_group, struct wal_position *out)
{
    unsigned long long seq, chain;
    int used = 0;
    if (!*inout_text || sscanf(*inout_text, "%u:%llu:%llx%n", out_group, &seq, &chain, &used) != 3)
        return false;
    *out = (struct wal_position){.seq = seq, .chain = chain};
    *inout_text += used + ((*inout_text)[used] == ';');
    return true;
}

/* The last shared position of a group within the range of a commit whose end is not ours: `since`
 * is. */
static bool part_within(struct lane *lane, uint32_t group, const struct own_commit *commit,
                        struct wal_position *out_shared)
{
    struct wal *wal = source_wal(lane->publisher->source);
    struct wal_position shared = commit->since.at[group], start;
    struct error ignored;
    uint64_t end = wal_synced_end(wal, group).seq, ours;
    unsigned start_group;
    if (end > commit->positions.at[group].seq)
        end = commit->positions.at[group].seq;
    for (const char *text = commit->starts; next_start(&text, &start_group, &start);) {
        if (start_group != group)
            continue;
        if (!is_in_log(lane, group, start)) {
            end = start.seq - 1 < end ? start.seq - 1 : end;
            break;
        }
        shared = start;
    }
    if (!first_start(wal, group, shared.seq, &ours))
        return false;
    if (ours && ours - 1 < end)
        end = ours - 1;
    if (end <= shared.seq) {
        *out_shared = shared;
        return true;
    }
    shared.seq = end;
    if (wal_chain_at(wal, group, end, &shared.chain, &ignored) != STATUS_OK)
        return false;
    *out_shared = shared;
    return true;
}

/* The last position of a group up to which the table's rows are this log's. */
static bool find_shared(struct lane *lane, const struct iceberg_table *table, uint32_t group,
                        struct wal_position *out_shared)
{
    struct publisher *publisher = lane->publisher;
    const struct iceberg_snapshot *snapshot = NULL;
    struct own_commit commit, newer = {0};
    bool has_newer = false;
    while (own_commit_next(table, publisher->log, publisher->group_count, &snapshot, &commit)) {
        if (is_in_log(lane, group, commit.positions.at[group])) {
            *out_shared = commit.positions.at[group];
            /* `since` of the newer one unknown to us: no row lies before it, and ours parted there
             */
            if (!has_newer || (newer.has_since && !is_in_log(lane, group, newer.since.at[group])))
                return true;
            return newer.has_since && part_within(lane, group, &newer, out_shared);
        }
        if (position_equal(commit.positions.at[group], newer.positions.at[group]) && has_newer)
            continue; /* a statement repeats the positions of the one before */
        newer = commit;
        has_newer = true;
    }
    return has_newer && newer.has_since && is_in_log(lane, group, newer.since.at[group]) &&
           part_within(lane, group, &newer, out_shared);
}

static enum status shared_positions(struct lane *lane, struct positions *out_shared,
                                    struct error *err)
{
    struct publisher *publisher = lane->publisher;
    struct catalog_ident ident = {.ns = lane->definition->ns, .name = lane->definition->name};
    struct positions shared = {.count = publisher->group_count};
    struct iceberg_table *table = NULL;
    struct own_state own;
    enum status status = iceberg_table_load(publisher->catalog, ident, &table, err);
    if (status == STATUS_NOT_FOUND) {
        *out_shared = shared;
        return STATUS_OK;
    }
    if (status == STATUS_OK)
        status = own_state_read(table, publisher->log, publisher->group_count, &own, err);
    if (status == STATUS_OK)
        status = lane_check_fence(lane, &own, err);
    for (uint32_t g = 0; status == STATUS_OK && g < shared.count; g++) {
        if (is_in_log(lane, g, own.positions.at[g]))
            shared.at[g] = own.positions.at[g];
        else if (!find_shared(lane, table, g, &shared.at[g]))
            status = error_set(err, STATUS_HALTED,
                               "%s: its history no longer tells where this log and the one that "
                               "went on part; decide with sluice clear-halt %s --confirm --from "
                               "GROUP=SEQ",
                               lane->name, lane->name);
    }
    iceberg_table_destroy(table);
    TRY(status);
    *out_shared = shared;
    return STATUS_OK;
}

/* ---- the fork ---- */

/* Steps 1 and 2 for one lane. */
enum status lane_hand_over(struct lane *lane, const struct positions *shared, struct error *err)
{
    struct publisher *publisher = lane->publisher;
    struct wal_ack acks[PUBLISH_GROUPS_MAX] = {0};
    struct checkpoint checkpoint = {.snapshot_id = -1};
    bool has_rows = false;
    checkpoint.committed.count = shared->count;
    checkpoint.through = *shared;
    for (uint32_t g = 0; g < shared->count; g++) {
        struct wal_position *through = &checkpoint.through.at[g];
        if (source_ack_get(publisher->source, lane->table_id, g, &acks[g]) &&
            acks[g].through.seq > through->seq)
            *through = acks[g].through;
        /* A checkpoint may be younger than the log that was put back, and of the other's history;
         * what this log no longer tells lies below the ack. */
        if (lane->checkpoint.exists && lane->checkpoint.through.at[g].seq > through->seq &&
            lane_is_ours(lane, g, lane->checkpoint.through.at[g]))
            *through = lane->checkpoint.through.at[g];
        acks[g].through = *through;
        has_rows |= through->seq != 0;
    }
    if (!has_rows)
        return STATUS_OK;
    TRY(source_ack_table(publisher->source, lane->table_id, acks, err));
    if (lane->checkpoint.exists || lane->record.exists) {
        snprintf(checkpoint.owner, sizeof checkpoint.owner, "%s", publisher->owner);
        snprintf(checkpoint.uuid, sizeof checkpoint.uuid, "%s",
                 lane->checkpoint.exists ? lane->checkpoint.uuid : lane->record.uuid);
        TRY(checkpoint_save(lane, &checkpoint, err));
    }
    return lane_give_up_record(lane, err);
}

enum status publisher_fork(struct publisher *publisher, struct log_id *out_new_id,
                           struct error *err)
{
    TRY(publisher_must_have_log(publisher, err));
    for (size_t i = 0; i < publisher->lane_count; i++) {
        struct positions shared;
        TRY(shared_positions(&publisher->lanes[i], &shared, err));
        TRY(lane_hand_over(&publisher->lanes[i], &shared, err));
    }
    return publisher_go_on_as_new(publisher, out_new_id, err);
}

enum status publisher_go_on_as_new(struct publisher *publisher, struct log_id *out_new_id,
                                   struct error *err)
{
    struct log_id id;
    TRY(wal_fork(source_wal(publisher->source), &id, err));
    publisher->log = id;
    for (size_t i = 0; i < publisher->lane_count; i++) {
        struct lane *lane = &publisher->lanes[i];
        bool is_resolved =
            lane->state == PUBLISH_STOOD_DOWN ||
            (lane->state == PUBLISH_HALTED && strstr(lane->remedy, "sluice log fork"));
        if (!is_resolved)
            continue;
        TRY(halt_remove(lane, err));
        lane_set_state(lane, PUBLISH_IDLE, "");
    }
    *out_new_id = id;
    return STATUS_OK;
}
