/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes of ownership and what operators decide: takeovers (E5), clear-halt (E16), rebind, and the
 * removal of files that came to nothing (E13, E14).
 */
#include <stdio.h>

#include "flow/publish/publish_internal.h"

enum { CLAIM_MS = 10000 };

/* ---- takeover ---- */

/* Above what the table says, and above what the directory that we are a copy of may hold: before
 * its first commit the table says nothing of it. */
static struct epoch next_epoch(const struct lane *lane, const struct own_state *own)
{
    const struct epoch known[] = {own->epoch, lane->checkpoint.epoch, lane->record.epoch};
    struct epoch epoch = {.incarnation = source_incarnation(lane->publisher->source)};
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        if (known[i].incarnation > epoch.incarnation)
            epoch.incarnation = known[i].incarnation;
        if (known[i].counter > epoch.counter)
            epoch.counter = known[i].counter;
    }
    epoch.counter++;
    return epoch;
}

enum status lane_take_over(struct lane *lane, struct iceberg_table **inout_table,
                           struct own_state *inout_own, struct error *err)
{
    struct publisher *publisher = lane->publisher;
    struct iceberg_table *after = NULL;
    struct positions positions;
    char reason[400];
    TRY(lane_check_fence(lane, inout_own, err));
    struct epoch epoch = next_epoch(lane, inout_own);
    enum decision decision; /* the caller has looked; this is for the positions, zeros filled in */
    TRY(lane_decide(lane, *inout_table, inout_own, &positions, reason, &decision, err));
    TRY(commit_statement(lane, *inout_table, inout_own, &positions, epoch, &after, err));
    lane->epoch = epoch;
    struct checkpoint checkpoint = {
        .epoch = epoch,
        .committed = positions,
        .through = positions,
        .snapshot_id = after->current->snapshot_id,
        .sequence = after->last_sequence_number,
    };
    snprintf(checkpoint.owner, sizeof checkpoint.owner, "%s", publisher->owner);
    snprintf(checkpoint.uuid, sizeof checkpoint.uuid, "%s", after->uuid);
    enum status status = checkpoint_save(lane, &checkpoint, err);
    iceberg_table_destroy(*inout_table);
    *inout_table = after;
    return status;
}

/* ---- removal ---- */

struct removal {
    struct store *store;
    const char *needle; /* in the object's last name */
};

static enum status remove_match(void *context, const struct store_object *object, struct error *err)
{
    struct removal *removal = context;
    const char *slash = strrchr(object->uri, '/');
    if (!slash || !strstr(slash, removal->needle))
        return STATUS_OK;
    return store_delete(removal->store, object->uri, err);
}

static enum status remove_named(struct lane *lane, const char *directory, const char *needle,
                                struct error *err)
{
    struct removal removal = {.store = lane->publisher->store, .needle = needle};
    char prefix[STORE_URI_BYTES_MAX];
    int length = snprintf(prefix, sizeof prefix, "%s/", directory);
    if (length < 0 || (size_t)length >= sizeof prefix)
        return error_set(err, STATUS_INVALID, "path too long: %.200s", directory);
    return store_list(lane->publisher->store, prefix, remove_match, &removal, err);
}

enum status lane_delete_files(struct lane *lane, const struct iceberg_table *table,
                              const char *prefix, struct error *err)
{
    char directory[STORE_URI_BYTES_MAX];
    TRY(iceberg_table_data_location(table, directory, err));
    return remove_named(lane, directory, prefix, err);
}

/* What the attempts of a record may have left in the metadata directory. */
struct attempts {
    struct lane *lane;
    const struct iceberg_table *table;
    const struct record *record;
    const struct iceberg_snapshot *snapshot; /* the record's, where it stands; or NULL */
};

/* Is this text of an attempt that lost? The one whose list is the snapshot's has won. */
static bool is_of_loser(const struct attempts *attempts, const char *text)
{
    char attempt[UUID_TEXT_BYTES];
    for (uint32_t i = 0; i < attempts->record->attempt_count; i++) {
        uuid_to_text(attempts->record->attempts[i], attempt);
        if (strstr(text, attempt) &&
            !(attempts->snapshot && strstr(attempts->snapshot->manifest_list, attempt)))
            return true;
    }
    return false;
}

static bool is_in_history(const struct iceberg_table *table, const char *name)
{
    const struct json_value *log = json_get(table->base.metadata, "metadata-log");
    const char *slash = strrchr(table->base.metadata_location, '/');
    if (slash && strcmp(slash, name) == 0)
        return true;
    for (const struct json_value *item = log ? log->first : NULL; item; item = item->next) {
        const char *file = json_get_text(item, "metadata-file");
        slash = file ? strrchr(file, '/') : NULL;
        if (slash && strcmp(slash, name) == 0)
            return true;
    }
    return false;
}

/* Metadata files bear names that the catalog chose: one is ours if its newest snapshot is. */
static bool is_losers_metadata(const struct attempts *attempts, const struct store_object *object,
                               const char *name)
{
    struct iceberg_table *opened = NULL;
    struct error ignored;
    const int64_t slack_ms = 3600000; /* clocks of those who committed the base */
    size_t length = strlen(name), suffix = strlen(".metadata.json");
    if (length < suffix || strcmp(name + length - suffix, ".metadata.json") != 0 ||
        object->modified_ns / 1000000 < attempts->record->base.last_updated_ms - slack_ms ||
        is_in_history(attempts->table, name) ||
        iceberg_table_open(attempts->lane->publisher->store, object->uri, &opened, &ignored) !=
            STATUS_OK)
        return false;
    bool is_ours = opened->current && is_of_loser(attempts, opened->current->manifest_list);
    iceberg_table_destroy(opened);
    return is_ours;
}

static enum status remove_attempt(void *context, const struct store_object *object,
                                  struct error *err)
{
    const struct attempts *attempts = context;
    const char *name = strrchr(object->uri, '/');
    if (!name)
        return STATUS_OK;
    size_t length = strlen(name);
    /* A writer of the store that died; whom it is taken from while alive tries again. */
    bool is_left_over = length > 4 && strcmp(name + length - 4, ".tmp") == 0 &&
                        (strstr(name, ".metadata.json.") || strstr(name, "/version-hint.text."));
    if (!is_left_over && !is_of_loser(attempts, name) &&
        !is_losers_metadata(attempts, object, name))
        return STATUS_OK;
    return store_delete(attempts->lane->publisher->store, object->uri, err);
}

/* The record's snapshot as an older version of the table shows it, when it has been expired since.
 * NULL: none does. The snapshot is borrowed from *out_opened. */
static const struct iceberg_snapshot *expired_snapshot(struct lane *lane,
                                                       const struct iceberg_table *table,
                                                       const struct record *record,
                                                       struct iceberg_table **out_opened)
{
    const struct json_value *log = json_get(table->base.metadata, "metadata-log");
    struct error ignored;
    for (const struct json_value *item = log ? log->first : NULL; item; item = item->next) {
        const char *file = json_get_text(item, "metadata-file");
        int64_t timestamp_ms = 0;
        if (!file || !json_get_i64(item, "timestamp-ms", &timestamp_ms) ||
            timestamp_ms < record->base.last_updated_ms)
            continue;
        struct iceberg_table *opened = NULL;
        if (iceberg_table_open(lane->publisher->store, file, &opened, &ignored) != STATUS_OK)
            continue;
        const struct iceberg_snapshot *snapshot =
            iceberg_table_snapshot(opened, record->snapshot_id);
        if (snapshot) {
            *out_opened = opened;
            return snapshot;
        }
        iceberg_table_destroy(opened);
    }
    return NULL;
}

/* Main has left the base of every attempt but the one that won, if one did: the others are garbage.
 * Where the range stands (`is_in_table`) and nothing tells any more which attempt won, its
 * manifests are in use all the same: all are left to `orphans`. */
enum status lane_delete_attempts(struct lane *lane, const struct iceberg_table *table,
                                 const struct record *record, bool is_in_table, struct error *err)
{
    char directory[STORE_URI_BYTES_MAX], prefix[STORE_URI_BYTES_MAX];
    struct attempts attempts = {
        .lane = lane,
        .table = table,
        .record = record,
        .snapshot = iceberg_table_snapshot(table, record->snapshot_id),
    };
    struct iceberg_table *opened = NULL;
    if (is_in_table && !attempts.snapshot)
        attempts.snapshot = expired_snapshot(lane, table, record, &opened);
    enum status status = STATUS_OK;
    if (attempts.snapshot || !is_in_table) {
        status = iceberg_table_metadata_location(table, directory, err);
        if (status == STATUS_OK)
            status = store_uri_join(directory, "", prefix, err);
        if (status == STATUS_OK)
            status = store_list(lane->publisher->store, prefix, remove_attempt, &attempts, err);
    }
    iceberg_table_destroy(opened);
    return status;
}

/* ---- operators' decisions ---- */

static struct lane *find_lane(struct publisher *publisher, const char *table)
{
    for (size_t i = 0; i < publisher->lane_count; i++) {
        if (strcmp(publisher->lanes[i].name, table) == 0)
            return &publisher->lanes[i];
    }
    return NULL;
}

static enum status find_chain(struct publisher *publisher, uint32_t group,
                              struct wal_position *inout_position, struct error *err)
{
    uint64_t seq = inout_position->seq, end = source_end(publisher->source, group).seq;
    if (seq == 0)
        return STATUS_OK;
    if (seq > end)
        return error_set(err, STATUS_USAGE, "group %u of this log ends at %llu", group,
                         (unsigned long long)end);
    enum status status =
        source_chain_at(publisher->source, group, seq, &inout_position->chain, err);
    if (status == STATUS_NOT_FOUND)
        return error_set(err, STATUS_RECLAIMED, "the log no longer holds entry %u/%llu", group,
                         (unsigned long long)seq);
    return status;
}

static enum status decided_positions(struct lane *lane, const struct iceberg_table *table,
                                     const struct own_state *own, enum publish_decision decision,
                                     uint32_t group, uint64_t from_seq, struct positions *out,
                                     struct error *err)
{
    struct publisher *publisher = lane->publisher;
    struct own_state ancestor;
    *out = own->positions;
    out->count = publisher->group_count;
    switch (decision) {
    case PUBLISH_ACCEPT:
        for (uint32_t g = 0; g < out->count; g++) { /* never below what we know was committed */
            if (lane->checkpoint.exists && lane->checkpoint.committed.at[g].seq > out->at[g].seq)
                out->at[g] = lane->checkpoint.committed.at[g];
            if (lane->checkpoint.exists && lane->checkpoint.through.at[g].seq > out->at[g].seq)
                out->at[g] = lane->checkpoint.through.at[g];
        }
        return STATUS_OK;
    case PUBLISH_REPUBLISH:
        if (own_state_of_ancestor(table, publisher->log, publisher->group_count, &ancestor))
            *out = ancestor.positions;
        else
            *out = (struct positions){.count = publisher->group_count};
        break;
    case PUBLISH_FROM:
        if (group >= publisher->group_count)
            return error_set(err, STATUS_USAGE, "this log has %u groups", publisher->group_count);
        out->at[group].seq = from_seq;
        out->at[group].chain = 0;
        TRY(find_chain(publisher, group, &out->at[group], err));
        break;
    }
    for (uint32_t g = 0; g < out->count; g++) { /* what follows must still be in the log */
        struct source_scan *scan = NULL;
        TRY(source_scan_open(publisher->source, g, lane->table_id, out->at[g], &scan, err));
        source_scan_close(scan);
    }
    return STATUS_OK;
}

/* A decision that the next round would take back at once is refused, with what helps. */
static enum status check_decided(struct lane *lane, const struct positions *positions,
                                 struct error *err)
{
    struct source *source = lane->publisher->source;
    struct wal_damage damage;
    for (uint32_t g = 0; g < positions->count; g++) {
        struct wal_position at = positions->at[g];
        uint64_t chain = at.chain;
        enum status status = at.seq ? source_chain_at(source, g, at.seq, &chain, err) : STATUS_OK;
        if (status == STATUS_TIMEOUT)
            return status;
        if (at.seq > source_end(source, g).seq || (status == STATUS_OK && chain != at.chain))
            return error_set(err, STATUS_HALTED,
                             "%s holds what this log never wrote; stop the server, sluice log fork "
                             "--confirm, start the server",
                             lane->name);
        bool is_damaged;
        TRY(source_damage_above(source, lane->table_id, g, at.seq, &damage, &is_damaged, err));
        if (is_damaged)
            return error_set(err, STATUS_HALTED,
                             "the log is damaged still: %.160s; stop the server, sluice log repair "
                             "--confirm, start the server, then this again",
                             damage.where);
    }
    return STATUS_OK;
}

/* Makes property, summary and chain agree with the decision, in one commit (E16). */
static enum status resolve(struct lane *lane, bool with_rebind, enum publish_decision decision,
                           uint32_t group, uint64_t from_seq, struct error *err)
{
    struct publisher *publisher = lane->publisher;
    struct iceberg_table *table = NULL, *after = NULL;
    struct own_state own = {.snapshot_id = -1};
    struct positions positions;
    enum status status;
    TRY(source_refresh(publisher->source, err));
    lane->is_deciding = true;
    status =
        with_rebind ? lane_load_or_create(lane, &table, err) : lane_load_table(lane, &table, err);
    lane->is_deciding = false;
    TRY(status);
    status = own_state_read(table, publisher->log, publisher->group_count, &own, err);
    if (status != STATUS_OK) /* unreadable properties are what the decision replaces */
        own = (struct own_state){.snapshot_id = -1, .positions = {.count = publisher->group_count}};
    TRY_OR_DONE(status, source_refresh(publisher->source, err)); /* younger than the table */
    TRY_OR_DONE(status, lane_check_fence(lane, &own, err));
    TRY_OR_DONE(status,
                decided_positions(lane, table, &own, decision, group, from_seq, &positions, err));
    TRY_OR_DONE(status, check_decided(lane, &positions, err));
    struct epoch epoch = next_epoch(lane, &own);
    TRY_OR_DONE(status, commit_statement(lane, table, &own, &positions, epoch, &after, err));
    lane->epoch = epoch;
    struct checkpoint checkpoint = {
        .epoch = epoch,
        .committed = positions,
        .through = positions,
        .snapshot_id = after->current->snapshot_id,
        .sequence = after->last_sequence_number,
    };
    snprintf(checkpoint.owner, sizeof checkpoint.owner, "%s", publisher->owner);
    snprintf(checkpoint.uuid, sizeof checkpoint.uuid, "%s", after->uuid);
    TRY_OR_DONE(status, checkpoint_save(lane, &checkpoint, err));
    TRY_OR_DONE(status, lane_give_up_record(lane, err)); /* its range is decided over */
    TRY_OR_DONE(status, doubt_remove(lane, err));
    status = lane_halt_end(lane, err);
done:
    iceberg_table_destroy(table);
    iceberg_table_destroy(after);
    return status;
}

static enum status resolve_halted(struct lane *lane, bool with_rebind,
                                  enum publish_decision decision, uint32_t group, uint64_t from_seq,
                                  struct error *err)
{
    enum status status;
    TRY(publisher_must_be_here(lane->publisher, err));
    TRY(lane_claim(lane, CLAIM_MS, err));
    if (lane->state != PUBLISH_HALTED && lane->state != PUBLISH_STOOD_DOWN)
        status = error_set(err, STATUS_USAGE, "%s is not halted", lane->name);
    else if (!with_rebind && lane->halt_cause == CAUSE_DAMAGE && decision == PUBLISH_ACCEPT)
        status = lane_resume(lane, err);
    else
        status = resolve(lane, with_rebind, decision, group, from_seq, err);
    lane_release(lane);
    return status;
}

enum status publisher_clear_halt(struct publisher *publisher, const char *table,
                                 enum publish_decision decision, uint32_t group, uint64_t from_seq,
                                 struct error *err)
{
    struct lane *lane = find_lane(publisher, table);
    if (!lane)
        return error_set(err, STATUS_NOT_FOUND, "no lane publishes %s", table);
    return resolve_halted(lane, false, decision, group, from_seq, err);
}

enum status publisher_rebind(struct publisher *publisher, const char *table,
                             enum publish_decision decision, struct error *err)
{
    struct lane *lane = find_lane(publisher, table);
    if (!lane)
        return error_set(err, STATUS_NOT_FOUND, "no lane publishes %s", table);
    return resolve_halted(lane, true, decision, 0, 0, err);
}
