/* SPDX-License-Identifier: Apache-2.0
 *
 * How a table stands to the log: what the source is asked, and what follows from it (E7, E12). A
 * question that nobody answers fails the round; it is never taken for an answer. Thread: the one
 * that works on the lane, but for lane_pending.
 */
#include <stdio.h>

#include "flow/publish/publish_internal.h"

void lane_ack_positions(struct lane *lane, struct positions *out_committed, bool *out_has)
{
    struct publisher *publisher = lane->publisher;
    *out_committed = (struct positions){.count = publisher->group_count};
    *out_has = false;
    for (uint32_t g = 0; g < publisher->group_count; g++) {
        struct wal_ack ack;
        if (!source_ack_get(publisher->source, lane->table_id, g, &ack))
            continue;
        out_committed->at[g] = ack.committed;
        *out_has |= ack.committed.seq != 0;
    }
}

/* ---- the log's history ---- */

/* Questions of one decision: what is answered is of one start of the log, or the decision counts
 * for nothing. */
struct asking {
    struct lane *lane;
    uint64_t start;
    struct error silence; /* status OK: everything was answered */
};

static struct asking asking_begin(struct lane *lane)
{
    return (struct asking){
        .lane = lane, .start = source_start(lane->publisher->source), .silence.status = STATUS_OK};
}

static enum status asking_end(const struct asking *asking, struct error *err)
{
    if (asking->silence.status != STATUS_OK) {
        *err = asking->silence;
        return err->status;
    }
    if (source_start(asking->lane->publisher->source) != asking->start)
        return error_set(err, STATUS_TIMEOUT, "%s: the log was started again meanwhile",
                         asking->lane->name);
    return STATUS_OK;
}

static enum chain_verdict ask_chain(void *context, uint32_t group, struct wal_position position)
{
    struct asking *asking = context;
    struct error err;
    uint64_t chain;
    enum status status =
        source_chain_at(asking->lane->publisher->source, group, position.seq, &chain, &err);
    if (status == STATUS_TIMEOUT)
        asking->silence = err;
    if (status != STATUS_OK)
        return CHAIN_UNKNOWN;
    return chain == position.chain ? CHAIN_OURS : CHAIN_FOREIGN;
}

bool lane_is_ours(struct lane *lane, uint32_t group, struct wal_position position)
{
    struct asking asking = asking_begin(lane);
    return position.seq <= source_end(lane->publisher->source, group).seq &&
           ask_chain(&asking, group, position) == CHAIN_OURS;
}

enum status lane_is_other_history(struct lane *lane, const struct own_state *own, bool *out_is,
                                  struct error *err)
{
    struct asking asking = asking_begin(lane);
    bool is_other = false;
    for (uint32_t g = 0; g < own->positions.count && !is_other; g++) {
        struct wal_position at = own->positions.at[g];
        is_other = at.seq && (at.seq > source_end(lane->publisher->source, g).seq ||
                              ask_chain(&asking, g, at) == CHAIN_FOREIGN);
    }
    TRY(asking_end(&asking, err));
    *out_is = is_other;
    return STATUS_OK;
}

/* ---- deciding ---- */

/* E4: the directory that committed last, by machine, device and inode. */
bool lane_is_in_own_directory(const struct lane *lane, const struct own_state *own)
{
    if (lane->checkpoint.exists)
        return strcmp(lane->checkpoint.owner, lane->publisher->owner) == 0;
    if (lane->record.exists)
        return strcmp(lane->record.owner, lane->publisher->owner) == 0;
    return !own->has_property && !own->has_summary;
}

enum status lane_decide(struct lane *lane, const struct iceberg_table *table,
                        const struct own_state *own, struct positions *out_from,
                        char out_reason[400], enum decision *out_decision, struct error *err)
{
    struct asking asking = asking_begin(lane);
    struct positions ack, log_end;
    bool has_ack;
    lane_ack_positions(lane, &ack, &has_ack);
    lane_ends(lane, &log_end);
    struct facts facts = {
        .table_uuid = table->uuid,
        .bound_uuid = lane->checkpoint.exists ? lane->checkpoint.uuid
                      : lane->record.exists   ? lane->record.uuid
                                              : "",
        .own = own,
        .lost_sequence = lane->lost_sequence,
        .epoch = lane_is_in_own_directory(lane, own) ? lane->epoch : own->epoch,
        .checkpoint = &lane->checkpoint,
        .has_ack = has_ack,
        .ack = &ack,
        .record = &lane->record,
        .is_record_listed = lane->record.exists && lane->record.is_descriptor &&
                            iceberg_table_snapshot(table, lane->record.snapshot_id),
        .log_end = &log_end,
        .chain = ask_chain,
        .context = &asking,
    };
    iceberg_table_base(table, &facts.base);
    enum decision decision = publish_decide(&facts, out_from, out_reason);
    TRY(asking_end(&asking, err));
    *out_decision = decision;
    return STATUS_OK;
}

/* An older state of the table that was put back holds together: what it lacks is in the log. */
enum status lane_remedy(struct lane *lane, const struct own_state *own, enum remedy *out_remedy,
                        struct error *err)
{
    bool is_other;
    TRY(lane_is_other_history(lane, own, &is_other, err));
    bool is_older = own->walk == WALK_FOUND && lane->checkpoint.exists;
    for (uint32_t g = 0; g < own->positions.count && is_older; g++)
        is_older = own->positions.at[g].seq <= lane->checkpoint.committed.at[g].seq;
    *out_remedy = is_other ? REMEDY_FORK : is_older ? REMEDY_REPUBLISH : REMEDY_ACCEPT;
    return STATUS_OK;
}

/* ---- what there is to do ---- */

struct wal_pending lane_pending(struct lane *lane)
{
    struct wal_pending sum = {0};
    for (uint32_t g = 0; g < lane->publisher->group_count; g++) {
        struct wal_pending one = source_lag(lane->publisher->source, lane->table_id, g);
        sum.entries += one.entries;
        sum.rows += one.rows;
        sum.bytes += one.bytes;
        if (one.oldest_wall_ns && (!sum.oldest_wall_ns || one.oldest_wall_ns < sum.oldest_wall_ns))
            sum.oldest_wall_ns = one.oldest_wall_ns;
    }
    return sum;
}

void lane_ends(struct lane *lane, struct positions *out_end)
{
    *out_end = (struct positions){.count = lane->publisher->group_count};
    for (uint32_t g = 0; g < out_end->count; g++)
        out_end->at[g] = source_end(lane->publisher->source, g);
}

/* L20: rows that may be lost are no rows that were not there. */
enum status lane_halt_on_damage(struct lane *lane, struct error *err)
{
    struct wal_damage damage;
    char reason[400];
    bool is_damaged = false;
    for (uint32_t g = 0; g < lane->publisher->group_count && !is_damaged; g++)
        is_damaged = source_damage(lane->publisher->source, lane->table_id, g, &damage);
    if (!is_damaged)
        return STATUS_OK;
    snprintf(reason, sizeof reason, "log: group %u: %llu to %llu are damaged: %s", damage.group,
             (unsigned long long)damage.seq_first, (unsigned long long)damage.seq_last,
             damage.where);
    return lane_halt_now(lane, err, reason, REMEDY_REPAIR_LOG);
}
