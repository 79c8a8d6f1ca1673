/* SPDX-License-Identifier: Apache-2.0
 *
 * Damaged files: a lane's own, and what leads on from a damaged catalog. The lane halts; an
 * operator has it go on once the catalog is good, and what its own files no longer tell is taken
 * from the table and the log's durable ack (E12): their position is never below what the log has
 * seen committed, and never zero.
 *
 * A lost checkpoint: the ack stands in for it, the table's uuid is bound anew, and a takeover (E5)
 * gives a new epoch. A lost record: its range is in the table or not, the table's position says
 * which; the takeover moves main, so that no late commit of it holds (E13); its files, whose prefix
 * nobody knows, are left to `orphans`. A lost doubt: no walk is believed that does not find the
 * checkpoint's commit. A lost halt: what it was for shows again, or is over. Where the table
 * contradicts, the lane halts anew, with that reason and that decision.
 * Thread: the opening one, then the one that has claimed the lane.
 */
#include <stdio.h>

#include "flow/publish/publish_internal.h"

/* ---- halting ---- */

/* What the log alone knows of the lane. */
static void remember_by_log(struct lane *lane)
{
    struct publisher *publisher = lane->publisher;
    const struct record *record = &lane->record;
    struct checkpoint checkpoint = {
        .exists = true,
        .committed.count = publisher->group_count,
        .through.count = publisher->group_count,
        .snapshot_id = -1,
    };
    for (uint32_t g = 0; g < publisher->group_count; g++) {
        struct wal_ack ack = {0};
        if (!source_ack_get(publisher->source, lane->table_id, g, &ack))
            ack = (struct wal_ack){0};
        if (record->exists && record->from.at[g].seq > ack.committed.seq)
            ack.committed = record->from.at[g]; /* where the table stood before the record */
        checkpoint.committed.at[g] = ack.committed;
        checkpoint.through.at[g] =
            ack.through.seq > ack.committed.seq ? ack.through : ack.committed;
    }
    if (record->exists) {
        checkpoint.epoch = record->epoch;
        memcpy(checkpoint.owner, record->owner, sizeof checkpoint.owner);
        memcpy(checkpoint.uuid, record->uuid, sizeof checkpoint.uuid);
    }
    lane->checkpoint = checkpoint;
}

enum status lane_load_files(struct lane *lane, struct error *err)
{
    static const struct {
        enum status (*load)(struct lane *lane, struct error *err);
        unsigned bit;
    } files[] = {
        {checkpoint_load, DAMAGED_CHECKPOINT},
        {record_load, DAMAGED_JOURNAL},
        {halt_load, DAMAGED_HALT},
        {doubt_load, DAMAGED_DOUBT},
        {gaps_load, DAMAGED_TRIM},
    };
    char reason[sizeof lane->reason] = "", remedy[sizeof lane->remedy];
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        enum status status = files[i].load(lane, err);
        if (status != STATUS_CORRUPT) {
            TRY(status);
            continue;
        }
        size_t used = strlen(reason);
        snprintf(reason + used, sizeof reason - used, "%s%s", used ? "; " : "", err->message);
        lane->damage |= files[i].bit;
    }
    if (!lane->damage)
        return STATUS_OK;
    if (lane->damage & DAMAGED_CHECKPOINT)
        remember_by_log(lane);
    if (lane->damage & DAMAGED_DOUBT)
        lane->lost_sequence = lane->checkpoint.sequence;
    /* What was to be decided before is still to be decided, and by whom is known. */
    bool is_decided = (lane->state == PUBLISH_HALTED || lane->state == PUBLISH_STOOD_DOWN) &&
                      !(lane->damage & DAMAGED_HALT) && lane->halt_cause != CAUSE_DAMAGE;
    if (is_decided) {
        size_t used = strlen(lane->reason);
        snprintf(lane->reason + used, sizeof lane->reason - used, "; %s", reason);
        lane_tell(lane, lane->state, lane->reason, lane->remedy);
        return STATUS_OK;
    }
    snprintf(remedy, sizeof remedy, "sluice clear-halt %s --confirm --accept", lane->name);
    lane->halt_cause = CAUSE_DAMAGE;
    lane_stop(lane, PUBLISH_HALTED, reason, remedy);
    return STATUS_OK;
}

/* ---- going on ---- */

/* Why the lane cannot go on without a decision, and what resolves it. */
struct obstacle {
    char reason[400];
    enum remedy remedy;
    bool is_there, is_newer_owner;
};

static void obstruct(struct obstacle *obstacle, const char *reason, enum remedy remedy)
{
    if (reason != obstacle->reason)
        snprintf(obstacle->reason, sizeof obstacle->reason, "%s", reason);
    obstacle->remedy = remedy;
    obstacle->is_there = true;
}

/* Reads the table as the lane's next round would. *out_table NULL: there is none. */
static enum status look(struct lane *lane, struct iceberg_table **out_table,
                        struct own_state *out_own, struct obstacle *obstacle, struct error *err)
{
    struct publisher *publisher = lane->publisher;
    struct catalog_ident ident = {.ns = lane->definition->ns, .name = lane->definition->name};
    struct positions from;
    enum decision decision;
    enum remedy remedy;
    bool is_bound =
        lane->checkpoint.exists || lane->record.exists || (lane->damage & DAMAGED_JOURNAL);
    TRY(catalog_check(publisher->catalog, err));
    enum status status = iceberg_table_load(publisher->catalog, ident, out_table, err);
    if (status == STATUS_NOT_FOUND) {
        if (is_bound)
            obstruct(obstacle,
                     "the table was dropped, or the catalog is another one (if it was lost, put it "
                     "back first)",
                     REMEDY_REBIND);
        return STATUS_OK;
    }
    if (status == STATUS_CORRUPT) {
        obstruct(obstacle, err->message, REMEDY_REPAIR_TABLE);
        return STATUS_OK;
    }
    TRY(status);
    status = own_state_read(*out_table, publisher->log, publisher->group_count, out_own, err);
    if (status != STATUS_OK) {
        obstruct(obstacle, err->message, REMEDY_ACCEPT);
        return STATUS_OK;
    }
    if ((lane->damage & DAMAGED_DOUBT) && !lane->lost_sequence)
        lane->lost_sequence = out_own->sequence; /* nobody knows which: a walk has to find it */
    TRY(source_refresh(publisher->source, err));
    TRY(lane_decide(lane, *out_table, out_own, &from, obstacle->reason, &decision, err));
    switch (decision) {
    case DECIDE_STAND_DOWN:
        obstacle->is_newer_owner = true;
        obstruct(obstacle, obstacle->reason, REMEDY_ACCEPT);
        break;
    case DECIDE_HALT_REBIND:
        obstruct(obstacle, obstacle->reason, REMEDY_REBIND);
        break;
    case DECIDE_HALT:
        TRY(lane_remedy(lane, out_own, &remedy, err));
        obstruct(obstacle, obstacle->reason, remedy);
        break;
    default:
        if ((lane->damage & DAMAGED_CHECKPOINT) && !out_own->has_property && !out_own->has_summary)
            obstruct(obstacle,
                     "the lane's checkpoint is damaged, and the table does not know of this log",
                     REMEDY_ACCEPT);
        break;
    }
    return STATUS_OK;
}

static enum status halt_anew(struct lane *lane, const struct obstacle *obstacle, struct error *err)
{
    lane->halt_cause = CAUSE_TABLE;
    enum status status = obstacle->is_newer_owner
                             ? lane_stand_down(lane, err, obstacle->reason)
                             : lane_halt_now(lane, err, obstacle->reason, obstacle->remedy);
    UNUSED(status); /* either way the command was refused */
    return error_set(err, STATUS_HALTED, "%.250s; to resolve it: %s", obstacle->reason,
                     lane->remedy);
}

enum status lane_give_up_record(struct lane *lane, struct error *err)
{
    bool has_file = lane->record.exists || (lane->damage & DAMAGED_JOURNAL);
    return has_file ? record_remove(lane, err) : STATUS_OK;
}

enum status lane_resume(struct lane *lane, struct error *err)
{
    struct iceberg_table *table = NULL;
    struct own_state own;
    struct obstacle obstacle = {0};
    enum status status;
    TRY(source_refresh(lane->publisher->source, err));
    if ((lane->damage & DAMAGED_CHECKPOINT) && !source_wal(lane->publisher->source))
        remember_by_log(lane); /* at the start the log may not have answered */
    TRY_OR_DONE(status, look(lane, &table, &own, &obstacle, err));
    if (obstacle.is_there) {
        status = halt_anew(lane, &obstacle, err);
        goto done;
    }
    if (table && (lane->damage & (DAMAGED_CHECKPOINT | DAMAGED_JOURNAL)))
        TRY_OR_DONE(status, lane_take_over(lane, &table, &own, err));
    if (lane->damage & DAMAGED_JOURNAL)
        TRY_OR_DONE(status, record_remove(lane, err));
    if (lane->damage & DAMAGED_DOUBT)
        TRY_OR_DONE(status, doubt_remove(lane, err));
    if (lane->damage & DAMAGED_TRIM) /* which rows were given up nobody knows any more */
        TRY_OR_DONE(status, gaps_save(lane, err));
    status = lane_halt_end(lane, err);
done:
    iceberg_table_destroy(table);
    return status;
}

enum status lane_halt_end(struct lane *lane, struct error *err)
{
    TRY(halt_remove(lane, err));
    lane->damage = 0;
    lane->halt_cause = CAUSE_TABLE;
    lane->doubt_since_ns = lane->retry_at_ns = 0;
    lane_set_state(lane, PUBLISH_IDLE, "");
    return STATUS_OK;
}
