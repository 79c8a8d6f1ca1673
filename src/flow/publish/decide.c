/* SPDX-License-Identifier: Apache-2.0
 *
 * The decision table E12, row by row, in its order. Pure: facts in, one decision out, so that every
 * row has a test that reaches it. Positions compare as (seq, chain).
 */
#include <stdarg.h>
#include <stdio.h>

#include "flow/publish/publish_internal.h"

static enum decision because(char out_reason[400], enum decision decision, const char *format, ...)
    PRINTF_LIKE(3, 4);

static enum decision because(char out_reason[400], enum decision decision, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(out_reason, 400, format, args);
    va_end(args);
    return decision;
}

/* Is our own history at this position? Unknown below retention: the durable ack speaks for it. */
static bool is_ours(const struct facts *facts, uint32_t group, struct wal_position position)
{
    if (position.seq == 0)
        return true;
    switch (facts->chain(facts->context, group, position)) {
    case CHAIN_OURS:
        return true;
    case CHAIN_FOREIGN:
        return false;
    case CHAIN_UNKNOWN:
        break;
    }
    return (facts->has_ack && position_equal(facts->ack->at[group], position)) ||
           (facts->checkpoint->exists &&
            position_equal(facts->checkpoint->committed.at[group], position));
}

bool is_still_lost(const struct own_state *own, int64_t lost_sequence)
{
    return lost_sequence && !(own->walk == WALK_FOUND && own->sequence >= lost_sequence);
}

/* Rows 3 to 6: what the table's history proves, and the position it gives. */
static bool settle_history(const struct facts *facts, struct positions *position,
                           enum decision *out_decision, char out_reason[400])
{
    const struct own_state *own = facts->own;
    *position = own->positions;
    /* Expiry, and whoever removes our properties, take the evidence of a roll-back away, not the
     * roll-back. */
    int64_t lost = own->walk == WALK_LOST ? own->sequence : facts->lost_sequence;
    if (own->walk == WALK_LOST || is_still_lost(own, lost)) {
        *out_decision =
            because(out_reason, DECIDE_HALT,
                    "the table was rolled back or replaced: its history no longer holds "
                    "our commit with sequence number %lld",
                    (long long)lost);
        return false;
    }
    if (!own->has_property && !own->has_summary) {
        bool is_known = facts->record->exists && facts->record->is_descriptor &&
                        !positions_are_zero(&facts->record->from);
        is_known |= facts->checkpoint->exists && !positions_are_zero(&facts->checkpoint->committed);
        is_known |= facts->has_ack && !positions_are_zero(facts->ack);
        if (is_known) {
            *out_decision = because(out_reason, DECIDE_HALT,
                                    "the table no longer knows of this log, which has published "
                                    "into it before");
            return false;
        }
        return true;
    }
    /* A group that the table does not name never begins at zero; one that it names at zero does. */
    for (uint32_t g = own->stated_groups; g < position->count; g++) {
        if (facts->checkpoint->exists && facts->checkpoint->committed.at[g].seq)
            position->at[g] = facts->checkpoint->committed.at[g];
        else if (facts->has_ack && facts->ack->at[g].seq)
            position->at[g] = facts->ack->at[g];
    }
    return true;
}

/* E7: the table has what this log never wrote, so another copy of the log has gone on from here. */
static bool is_other_history(const struct facts *facts, const struct positions *position,
                             char out_reason[400])
{
    for (uint32_t g = 0; g < position->count; g++) {
        struct wal_position at = position->at[g], end = facts->log_end->at[g];
        if (at.seq > end.seq)
            snprintf(out_reason, 400,
                     "group %u: the table holds %llu, this log ends at %llu: it is an older copy",
                     g, (unsigned long long)at.seq, (unsigned long long)end.seq);
        else if (!is_ours(facts, g, at))
            snprintf(out_reason, 400,
                     "group %u: the table's chain at %llu is not this log's: the two have "
                     "different histories",
                     g, (unsigned long long)at.seq);
        else
            continue;
        return true;
    }
    return false;
}

/* What a checkpoint says was in the table, for good: also where the record of it is still there. */
static bool is_below_committed(const struct facts *facts, const struct positions *position,
                               char out_reason[400])
{
    for (uint32_t g = 0; facts->checkpoint->exists && g < position->count; g++) {
        uint64_t at = position->at[g].seq, committed = facts->checkpoint->committed.at[g].seq;
        if (at >= committed)
            continue;
        snprintf(out_reason, 400,
                 "group %u: the table stands at %llu, below the %llu that was committed", g,
                 (unsigned long long)at, (unsigned long long)committed);
        return true;
    }
    return false;
}

/* How the table's position lies to a range (a, b], over all groups that the range moves. */
struct lie {
    bool is_at_a, is_at_b, is_past_b, is_below_a, is_inside, is_above_end;
};

static struct lie lie_of(const struct facts *facts, const struct positions *position)
{
    const struct record *record = facts->record;
    struct lie lie = {.is_at_a = true, .is_at_b = true, .is_past_b = true, .is_inside = true};
    for (uint32_t g = 0; g < position->count; g++) {
        struct wal_position p = position->at[g], a = record->from.at[g], b = record->to.at[g];
        bool ours = is_ours(facts, g, p);
        lie.is_above_end |= p.seq > facts->log_end->at[g].seq;
        lie.is_below_a |= p.seq < a.seq;
        lie.is_at_a &= position_equal(p, a);
        lie.is_at_b &= position_equal(p, b);
        lie.is_past_b &= position_equal(p, b) || (p.seq > b.seq && ours);
        lie.is_inside &= p.seq >= a.seq && p.seq <= b.seq && ours;
    }
    return lie;
}

static enum decision decide_record(const struct facts *facts, const struct positions *position,
                                   char out_reason[400])
{
    const struct record *record = facts->record;
    struct lie lie = lie_of(facts, position);
    bool has_our_digest = strcmp(facts->own->digest, record->digest) == 0;
    if (lie.is_at_a && facts->is_record_listed)
        return because(out_reason, DECIDE_HALT,
                       "the table was rolled back: main no longer leads to snapshot %lld, which we "
                       "had committed",
                       (long long)record->snapshot_id);
    if (lie.is_at_a) {
        if (iceberg_base_equal(&facts->base, &record->base))
            return DECIDE_COMMIT_AGAIN;
        if (facts->base.snapshot_id == record->base.snapshot_id)
            return DECIDE_REWRITE_LIST;
        return DECIDE_REBASE;
    }
    if (lie.is_at_b && has_our_digest)
        return DECIDE_DONE;
    if (lie.is_past_b && !lie.is_at_b && !lie.is_above_end)
        return DECIDE_DONE;
    if (lie.is_below_a)
        return because(out_reason, DECIDE_HALT,
                       "the table stands below the range that was being published");
    if (lie.is_inside && !lie.is_at_b && epoch_compare(record->epoch, facts->own->epoch) < 0)
        return DECIDE_DISCARD;
    if (is_other_history(facts, position, out_reason))
        return DECIDE_HALT;
    if (lie.is_at_b)
        return because(out_reason, DECIDE_HALT,
                       "the table holds our range with other rows (digest %.16s..., ours %.16s...)",
                       facts->own->digest, record->digest);
    return because(out_reason, DECIDE_HALT,
                   "the table's position and the range that was being published contradict");
}

enum decision publish_decide(const struct facts *facts, struct positions *out_from,
                             char out_reason[400])
{
    enum decision decision;
    out_reason[0] = '\0';
    if (facts->bound_uuid[0] && strcmp(facts->bound_uuid, facts->table_uuid) != 0)
        return because(out_reason, DECIDE_HALT_REBIND,
                       "the table under this name is %s, this lane publishes into %s",
                       facts->table_uuid, facts->bound_uuid);
    if (epoch_compare(facts->own->epoch, facts->epoch) > 0)
        return because(out_reason, DECIDE_STAND_DOWN,
                       "another owner has taken the table over (epoch %llu.%llu, ours %llu.%llu)",
                       (unsigned long long)facts->own->epoch.incarnation,
                       (unsigned long long)facts->own->epoch.counter,
                       (unsigned long long)facts->epoch.incarnation,
                       (unsigned long long)facts->epoch.counter);
    if (!settle_history(facts, out_from, &decision, out_reason))
        return decision;
    if (is_below_committed(facts, out_from, out_reason))
        return DECIDE_HALT;
    if (!facts->record->exists || !facts->record->is_descriptor) /* E7 */
        return is_other_history(facts, out_from, out_reason) ? DECIDE_HALT : DECIDE_GO_ON;
    return decide_record(facts, out_from, out_reason);
}
