/* SPDX-License-Identifier: Apache-2.0
 *
 * What a table says about our log and share (E1): properties, and the summaries of our own commits
 * found by walking the parents of main. Pure over a loaded table.
 */
#include <stdio.h>
#include <stdlib.h>

#include "flow/publish/publish_internal.h"

bool positions_are_zero(const struct positions *positions)
{
    for (uint32_t g = 0; g < positions->count; g++)
        if (positions->at[g].seq)
            return false;
    return true;
}

bool positions_equal(const struct positions *a, const struct positions *b)
{
    if (a->count != b->count)
        return false;
    for (uint32_t g = 0; g < a->count; g++) {
        if (!position_equal(a->at[g], b->at[g]))
            return false;
    }
    return true;
}

void positions_to_text(const struct positions *positions, struct buf *out)
{
    for (uint32_t g = 0; g < positions->count; g++)
        buf_format(out, "%s%u:%llu:%016llx", g ? ";" : "", g,
                   (unsigned long long)positions->at[g].seq,
                   (unsigned long long)positions->at[g].chain);
}

bool positions_from_text(const char *text, struct positions *out_positions)
{
    struct positions positions = {0};
    while (*text) {
        unsigned group;
        unsigned long long seq, chain;
        int used = 0;
        if (sscanf(text, "%u:%llu:%llx%n", &group, &seq, &chain, &used) != 3 ||
            group >= PUBLISH_GROUPS_MAX)
            return false;
        positions.at[group] = (struct wal_position){.seq = seq, .chain = chain};
        if (group >= positions.count)
            positions.count = group + 1;
        text += used;
        if (*text == ';')
            text++;
        else if (*text)
            return false;
    }
    *out_positions = positions;
    return positions.count > 0;
}

void epoch_to_text(struct epoch epoch, char out[48])
{
    snprintf(out, 48, "%llu.%llu", (unsigned long long)epoch.incarnation,
             (unsigned long long)epoch.counter);
}

bool epoch_from_text(const char *text, struct epoch *out_epoch)
{
    const char *dot = strchr(text, '.');
    return dot && parse_u64(text, (size_t)(dot - text), &out_epoch->incarnation) &&
           parse_u64(dot + 1, strlen(dot + 1), &out_epoch->counter);
}

void hash128_to_text(struct hash128 hash, char out[33])
{
    snprintf(out, 33, "%016llx%016llx", (unsigned long long)hash.high,
             (unsigned long long)hash.low);
}

bool hash128_from_text(const char *text, struct hash128 *out_hash)
{
    unsigned long long high, low;
    if (strlen(text) != 32 || sscanf(text, "%16llx%16llx", &high, &low) != 2)
        return false;
    *out_hash = (struct hash128){.low = low, .high = high};
    return true;
}

void own_key(struct log_id log, const char *name, char out[96])
{
    char id[LOG_ID_TEXT_BYTES];
    log_id_to_text(log, id);
    snprintf(out, 96, "sluice.%s.0.%s", id, name);
}

/* Where a value of ours is read from: the table's properties, or a snapshot's summary. */
struct place {
    const struct iceberg_table *table;
    const struct iceberg_snapshot *snapshot; /* NULL: properties */
    struct log_id log;
};

static const char *place_get(const struct place *place, const char *name)
{
    char key[96];
    own_key(place->log, name, key);
    return place->snapshot ? iceberg_snapshot_summary(place->snapshot, key)
                           : iceberg_table_property(place->table, key);
}

/* False: nothing of ours there. */
static bool read_state(const struct place *place, struct own_state *state, struct error *err,
                       enum status *out_status)
{
    const char *positions = place_get(place, "positions");
    const char *epoch = place_get(place, "epoch");
    const char *digest = place_get(place, "digest");
    const char *sequence = place_get(place, "sequence");
    const char *row_sum = place_get(place, "row-sum");
    const char *row_sum_schema = place_get(place, "row-sum-schema");
    uint64_t number = 0, schema = 0;
    *out_status = STATUS_OK;
    if (!positions)
        return false;
    if (!positions_from_text(positions, &state->positions) || !epoch ||
        !epoch_from_text(epoch, &state->epoch) || !sequence ||
        !parse_u64(sequence, strlen(sequence), &number) ||
        (row_sum && !hash128_from_text(row_sum, &state->row_sum))) {
        *out_status =
            error_set(err, STATUS_CORRUPT, "the table's record of this log cannot be read (%s)",
                      place->snapshot ? "snapshot summary" : "properties");
        return false;
    }
    if (row_sum_schema)
        parse_u64(row_sum_schema, strlen(row_sum_schema), &schema);
    state->sequence = (int64_t)number;
    state->row_sum_schema = (int32_t)schema;
    snprintf(state->digest, sizeof state->digest, "%s", digest ? digest : "");
    return true;
}

static bool is_own(const struct iceberg_snapshot *snapshot, struct log_id log)
{
    char key[96];
    own_key(log, "positions", key);
    return iceberg_snapshot_summary(snapshot, key) != NULL;
}

static uint64_t summary_number(const struct iceberg_snapshot *snapshot, const char *key)
{
    const char *text = iceberg_snapshot_summary(snapshot, key);
    uint64_t number = 0;
    return text && parse_u64(text, strlen(text), &number) ? number : 0;
}

/* Of a snapshot without a parent: was there a table before it? PyIceberg takes the parent away from
 * a snapshot when it expires that parent, so that its children look like the first of a table that
 * was created or replaced; their totals tell the two apart. */
static bool has_past(const struct iceberg_snapshot *snapshot)
{
    return summary_number(snapshot, "total-data-files") !=
               summary_number(snapshot, "added-data-files") ||
           summary_number(snapshot, "deleted-data-files") > 0;
}

/* Walks the parents of main: the first own commit, or how the walk ended. `sequence` is what the
 * property names; 0: unknown. */
static enum own_walk walk_parents(const struct iceberg_table *table, struct log_id log,
                                  int64_t sequence, const struct iceberg_snapshot **out_own)
{
    const struct iceberg_snapshot *snapshot = table->current;
    *out_own = NULL;
    if (!snapshot)
        return sequence > 0 ? WALK_LOST : WALK_NONE;
    for (uint32_t steps = 0; steps <= table->snapshot_count; steps++) {
        if (is_own(snapshot, log)) {
            *out_own = snapshot;
            /* An own commit below the one that the property names: that one was rolled back. */
            return snapshot->sequence_number < sequence ? WALK_LOST : WALK_FOUND;
        }
        if (sequence > 0 && snapshot->sequence_number < sequence)
            return WALK_LOST;
        if (snapshot->parent_id < 0 && sequence > 0)
            return snapshot->sequence_number > sequence && has_past(snapshot) ? WALK_EXPIRED
                                                                              : WALK_LOST;
        if (snapshot->parent_id < 0)
            return WALK_NONE;
        const struct iceberg_snapshot *parent = iceberg_table_snapshot(table, snapshot->parent_id);
        if (!parent)
            return sequence > 0 ? WALK_EXPIRED : WALK_NONE;
        snapshot = parent;
    }
    return WALK_LOST; /* a circle: no history at all */
}

enum status own_state_read(const struct iceberg_table *table, struct log_id log,
                           uint32_t group_count, struct own_state *out_state, struct error *err)
{
    struct own_state state = {.snapshot_id = -1}, by_summary = {.snapshot_id = -1};
    struct place place = {.table = table, .log = log};
    enum status status;
    const struct iceberg_snapshot *own;
    state.has_property = read_state(&place, &state, err, &status);
    TRY(status);
    enum own_walk walk = walk_parents(table, log, state.has_property ? state.sequence : 0, &own);
    bool has_summary = false;
    if (own) {
        place.snapshot = own;
        has_summary = read_state(&place, &by_summary, err, &status);
        TRY(status);
    }
    if (has_summary && (!state.has_property || by_summary.sequence > state.sequence)) {
        bool has_property =
            state.has_property; /* an older one that somebody put back does not count */
        state = by_summary;
        state.has_property = has_property;
    }
    state.has_summary = has_summary;
    state.walk = walk;
    state.snapshot_id = own ? own->snapshot_id : -1;
    state.manifest_list = own ? own->manifest_list : NULL;
    if (state.positions.count > group_count)
        return error_set(err, STATUS_IDENTITY, "the table knows %u groups of this log, it has %u",
                         state.positions.count, group_count);
    state.stated_groups = state.positions.count;
    state.positions.count = group_count;
    *out_state = state;
    return STATUS_OK;
}

bool own_state_of_ancestor(const struct iceberg_table *table, struct log_id log,
                           uint32_t group_count, struct own_state *out_state)
{
    const struct iceberg_snapshot *own;
    struct own_state state = {.snapshot_id = -1};
    struct error err;
    enum status status;
    walk_parents(table, log, 0, &own);
    if (!own)
        return false;
    struct place place = {.table = table, .snapshot = own, .log = log};
    if (!read_state(&place, &state, &err, &status) || status != STATUS_OK)
        return false;
    state.has_summary = true;
    state.walk = WALK_FOUND;
    state.snapshot_id = own->snapshot_id;
    state.stated_groups = state.positions.count;
    state.positions.count = group_count;
    *out_state = state;
    return true;
}

bool own_commit_next(const struct iceberg_table *table, struct log_id log, uint32_t group_count,
                     const struct iceberg_snapshot **inout_snapshot, struct own_commit *out_commit)
{
    const struct iceberg_snapshot *snapshot = *inout_snapshot;
    struct place place = {.table = table, .log = log};
    for (uint32_t steps = 0; steps <= table->snapshot_count; steps++) {
        snapshot = snapshot ? iceberg_table_snapshot(table, snapshot->parent_id) : table->current;
        if (!snapshot)
            return false;
        if (!is_own(snapshot, log))
            continue;
        place.snapshot = snapshot;
        const char *positions = place_get(&place, "positions");
        const char *since = place_get(&place, "since");
        struct own_commit commit = {.starts = place_get(&place, "starts")};
        if (!positions_from_text(positions, &commit.positions) ||
            commit.positions.count > group_count)
            return false;
        commit.has_since = since && positions_from_text(since, &commit.since);
        commit.positions.count = group_count;
        commit.since.count = group_count;
        *inout_snapshot = snapshot;
        *out_commit = commit;
        return true;
    }
    return false;
}
