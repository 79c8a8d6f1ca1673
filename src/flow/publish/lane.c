/* SPDX-License-Identifier: Apache-2.0
 *
 * A lane's round: look at the table, resolve what is open, publish what is synced. The steps are
 * those of E8; after each of them the process may die, and README.md says what the next start does.
 * Thread: the one that has claimed the lane (publisher.c). lane->state, reason, info and waiters
 * are guarded by publisher->lock; the rest is that thread's alone.
 */
#include <stdio.h>

#include "flow/publish/publish_internal.h"

enum {
    TURNS_MAX = 4,
    CONTENTION_RETRY_MS = 500,
    SILENCE_RETRY_MS = 2000,
    THROUGH_ACK_MS = 10000,
    TROUBLE_NS = 1000000000, /* from then on retries are worth a word */
};

static void count_up(struct lane *lane, uint64_t *counter)
{
    env_lock(lane->publisher->lock);
    ++*counter;
    env_unlock(lane->publisher->lock);
}

/* ---- the table ---- */

static enum status create_table(struct lane *lane, struct iceberg_table **out_table,
                                struct error *err)
{
    struct publisher *publisher = lane->publisher;
    const struct publish_table *definition = lane->definition;
    struct arrow_schema rows;
    struct iceberg_schema schema;
    struct iceberg_partition_field partition = {.transform = {.kind = ICEBERG_DAY}};
    char partition_name[80];
    struct iceberg_spec spec = {.fields = &partition};
    struct iceberg_sort_field sort_fields[4] = {{0}};
    struct iceberg_sort_order order = {.order_id = 1, .fields = sort_fields};
    struct arena arena;
    enum status status;
    arena_init(&arena, 0);
    TRY_OR_DONE(status, publish_table_schema(definition, &arena, &rows, &schema, err));
    for (uint32_t i = 0; i < schema.field_count; i++) {
        for (size_t s = 0; s < definition->sort_column_count && s < COUNT_OF(sort_fields); s++) {
            if (strcmp(schema.fields[i].name, definition->sort_columns[s]) == 0)
                sort_fields[s] = (struct iceberg_sort_field){
                    .source_id = schema.fields[i].id, .transform = {.kind = ICEBERG_IDENTITY}};
        }
        if (definition->time_column &&
            strcmp(schema.fields[i].name, definition->time_column) == 0) {
            partition.source_id = schema.fields[i].id;
            snprintf(partition_name, sizeof partition_name, "%s_day", definition->time_column);
            partition.name = partition_name;
            spec.field_count = 1;
        }
    }
    order.field_count = (uint32_t)definition->sort_column_count;
    struct iceberg_table_options options = {
        .schema = &schema,
        .spec = definition->time_column ? &spec : NULL,
        .sort_order = &order,
        .with_name_mapping = true,
    };
    struct catalog_ident ident = {.ns = definition->ns, .name = definition->name};
    status = iceberg_table_create(publisher->env, publisher->catalog, publisher->store, ident,
                                  &options, out_table, err);
done:
    arena_deinit(&arena);
    return status;
}

static enum status load_table(struct lane *lane, struct iceberg_table **out_table,
                              struct error *err)
{
    struct catalog_ident ident = {.ns = lane->definition->ns, .name = lane->definition->name};
    enum status status = iceberg_table_load(lane->publisher->catalog, ident, out_table, err);
    struct error damage;
    bool is_missed = status == STATUS_NOT_FOUND && (lane->checkpoint.exists || lane->record.exists);
    if ((status == STATUS_CORRUPT || is_missed) &&
        catalog_check(lane->publisher->catalog, &damage) == STATUS_CORRUPT)
        return lane_doubt(lane, err, damage.message, REMEDY_CATALOG);
    if (status == STATUS_CORRUPT || status == STATUS_UNSUPPORTED) {
        char reason[480];
        bool is_elsewhere = status == STATUS_CORRUPT && strstr(err->message, "file://") &&
                            !strstr(err->message, store_root(lane->publisher->store));
        snprintf(reason, sizeof reason, "%.400s%s", err->message,
                 is_elsewhere ? "; that is outside of this server's warehouse: was the data "
                                "directory moved?"
                              : "");
        return lane_doubt(lane, err, reason,
                          status == STATUS_CORRUPT ? REMEDY_REPAIR_TABLE : REMEDY_OTHER_TABLE);
    }
    return status;
}

/* NOT_FOUND: there is none yet. One that this lane is bound to may not be missing. */
static enum status find_table(struct lane *lane, struct iceberg_table **out_table,
                              struct error *err)
{
    enum status status = load_table(lane, out_table, err);
    if (status == STATUS_NOT_FOUND && (lane->checkpoint.exists || lane->record.exists))
        return lane_doubt(
            lane, err,
            "the table was dropped, or the catalog is another one (if it was lost, put it "
            "back first)",
            REMEDY_REBIND);
    return status;
}

enum status lane_load_or_create(struct lane *lane, struct iceberg_table **out_table,
                                struct error *err)
{
    enum status status = load_table(lane, out_table, err);
    if (status == STATUS_NOT_FOUND)
        status = create_table(lane, out_table, err);
    if (status == STATUS_EXISTS || status == STATUS_UNKNOWN_OUTCOME)
        status = load_table(lane, out_table, err);
    return status;
}

enum status lane_load_table(struct lane *lane, struct iceberg_table **out_table, struct error *err)
{
    enum status status = find_table(lane, out_table, err);
    return status == STATUS_NOT_FOUND ? lane_load_or_create(lane, out_table, err) : status;
}

/* ---- settling ---- */

static void note_commit(struct lane *lane, const struct positions *committed, int64_t snapshot_id)
{
    struct publisher *publisher = lane->publisher;
    env_lock(publisher->lock);
    lane->info.commits_total++;
    lane->info.rows_total += lane->record.rows;
    lane->info.files_total += lane->record.file_count;
    lane->info.last_commit_wall_ms = env_wall_ns(publisher->env) / 1000000;
    lane->info.snapshot_id = snapshot_id;
    lane->info.committed = committed->at[0];
    lane->info.epoch = lane->epoch.counter;
    env_unlock(publisher->lock);
}

static enum status acknowledge(struct lane *lane, struct error *err)
{
    struct publisher *publisher = lane->publisher;
    struct wal_ack acks[PUBLISH_GROUPS_MAX];
    for (uint32_t g = 0; g < publisher->group_count; g++)
        acks[g] = (struct wal_ack){.committed = lane->checkpoint.committed.at[g],
                                   .through = lane->checkpoint.through.at[g]};
    return source_ack_table(publisher->source, lane->table_id, acks, err);
}

/* Steps 7 and 8 (E8): what the table says is taken down, then acknowledged. */
static enum status save_position(struct lane *lane, const struct iceberg_table *table,
                                 const struct positions *committed, int64_t snapshot_id,
                                 int64_t sequence, struct error *err)
{
    struct checkpoint checkpoint = {
        .epoch = lane->epoch,
        .committed = *committed,
        .through = *committed,
        .snapshot_id = snapshot_id,
        .sequence = sequence,
    };
    snprintf(checkpoint.owner, sizeof checkpoint.owner, "%s", lane->publisher->owner);
    snprintf(checkpoint.uuid, sizeof checkpoint.uuid, "%s", table->uuid);
    TRY(checkpoint_save(lane, &checkpoint, err)); /* 7 */
    return acknowledge(lane, err);                /* 8 */
}

static enum status settle(struct lane *lane, const struct iceberg_table *table,
                          const struct positions *committed, int64_t snapshot_id, int64_t sequence,
                          struct error *err)
{
    TRY(save_position(lane, table, committed, snapshot_id, sequence, err));
    note_commit(lane, committed, snapshot_id);
    return STATUS_OK;
}

/* Nothing of this table up to the end of the log: only `through` moves (L34). */
static enum status settle_idle(struct lane *lane, const struct positions *end, struct error *err)
{
    struct publisher *publisher = lane->publisher;
    struct wal_ack acks[PUBLISH_GROUPS_MAX];
    int64_t now_ns = env_mono_ns(publisher->env);
    bool is_moved = false;
    if (lane->through_acked_ns &&
        now_ns - lane->through_acked_ns < (int64_t)THROUGH_ACK_MS * 1000000)
        return STATUS_OK;
    for (uint32_t g = 0; g < end->count; g++) {
        if (!source_ack_get(publisher->source, lane->table_id, g, &acks[g]))
            acks[g] = (struct wal_ack){0};
        if (lane->checkpoint.exists)
            acks[g].committed = lane->checkpoint.committed.at[g];
        is_moved |= end->at[g].seq > acks[g].through.seq;
        if (end->at[g].seq > acks[g].through.seq)
            acks[g].through = end->at[g];
    }
    lane->through_acked_ns = now_ns;
    return is_moved ? source_ack_table(publisher->source, lane->table_id, acks, err) : STATUS_OK;
}

/* ---- one turn ---- */

static enum status begin_record(struct lane *lane, const struct iceberg_table *table,
                                const struct positions *from, struct error *err)
{
    struct record record = {.exists = true, .epoch = lane->epoch, .from = *from};
    uint8_t random_bytes[16];
    env_random(lane->publisher->env, random_bytes, sizeof random_bytes);
    hex_encode(record.prefix, random_bytes, sizeof random_bytes);
    snprintf(record.owner, sizeof record.owner, "%s", lane->publisher->owner);
    snprintf(record.uuid, sizeof record.uuid, "%s", table->uuid);
    TRY(record_save(lane, &record, err)); /* 2 */
    record_deinit(&lane->record);
    lane->record = record;
    arena_init(&lane->record.arena, 0);
    return STATUS_OK;
}

/* Commits what the record describes, on the table as it was just seen, and settles. CONFLICT and
 * UNKNOWN_OUTCOME: look again. */
static enum status commit_and_settle(struct lane *lane, const struct iceberg_table *table,
                                     const struct own_state *own, bool with_new_id,
                                     struct error *err)
{
    struct iceberg_table *after = NULL;
    enum status status = commit_record(lane, table, own, with_new_id, &after, err); /* 4, 5 */
    TRY(status);
    lane->append_doubt_ns = 0;
    struct positions committed = lane->record.to;
    status =
        settle(lane, after, &committed, lane->record.snapshot_id, after->last_sequence_number, err);
    if (status == STATUS_OK && lane->record.attempt_count > 1)
        status = lane_delete_attempts(lane, after, &lane->record, true, err);
    if (status == STATUS_OK)
        status = record_remove(lane, err);
    iceberg_table_destroy(after);
    return status;
}

/* Steps 1 to 3 for one range. What was read is gone when this returns. *out_is_empty: there was
 * nothing to publish, and that is settled. */
static enum status write_range(struct lane *lane, const struct iceberg_table *table,
                               const struct positions *from, bool *out_is_empty, struct error *err)
{
    struct range range = {0};
    struct binding binding = {0};
    struct positions end;
    char reason[400];
    enum status status;
    lane_ends(lane, &end);
    status = range_read(lane, from, lane->publisher->options.range_bytes_max, &range, err);
    if (status == STATUS_CORRUPT || status == STATUS_RECLAIMED) {
        snprintf(reason, sizeof reason, "%s", err->message);
        if (status == STATUS_RECLAIMED && !source_wal(lane->publisher->source))
            return lane_doubt_source(lane, err, reason);
        return lane_halt_now(lane, err, reason,
                             status == STATUS_CORRUPT ? REMEDY_REPAIR_LOG : REMEDY_FROM);
    }
    TRY(status);
    *out_is_empty = range.rows == 0;
    if (range.rows == 0) {
        status = settle_idle(lane, &end, err);
        goto done;
    }
    status = binding_create(lane->definition, range.schema, table, &binding, err);
    if (status == STATUS_HALTED) {
        snprintf(reason, sizeof reason, "%s", err->message);
        status = lane_halt_now(lane, err, reason, REMEDY_COLUMNS);
        goto done;
    }
    TRY_OR_DONE(status, status);
    lane_note_dropped(lane, binding.dropped);
    TRY_OR_DONE(status, begin_record(lane, table, from, err));
    lane->record.to = range.to;
    memcpy(lane->record.digest, range.digest, sizeof range.digest);
    status = rows_write(lane, table, &binding, &range, &lane->record, err); /* 3 */
done:
    binding_deinit(&binding);
    range_deinit(&range);
    return status;
}

/* Steps 1 to 8 for one range. */
static enum status publish_range(struct lane *lane, const struct iceberg_table *table,
                                 const struct own_state *own, const struct positions *from,
                                 bool *out_is_empty, struct error *err)
{
    /* The record will bind the lane to this table; whoever created it may have died before it
     * lasted. Before the place of a writer is taken: the catalog may stand still. */
    if (!lane->checkpoint.exists)
        TRY(iceberg_table_make_durable(lane->publisher->catalog, lane->publisher->store, table,
                                       err));
    publisher_writer_begin(lane->publisher);
    enum status status = write_range(lane, table, from, out_is_empty, err);
    publisher_writer_end(lane->publisher);
    return status == STATUS_OK && !*out_is_empty ? commit_and_settle(lane, table, own, true, err)
                                                 : status;
}

/* E14: an intent of ours that came to nothing. */
static enum status drop_intent(struct lane *lane, const struct iceberg_table *table,
                               const struct own_state *own, struct error *err)
{
    if (strcmp(lane->record.uuid, table->uuid) == 0 &&
        positions_equal(&own->positions, &lane->record.from))
        TRY(lane_delete_files(lane, table, lane->record.prefix, err));
    return record_remove(lane, err);
}

static enum status adopt(struct lane *lane, const struct iceberg_table *table,
                         const struct own_state *own, struct error *err)
{
    TRY(iceberg_table_make_durable(lane->publisher->catalog, lane->publisher->store, table, err));
    TRY(settle(lane, table, &own->positions, own->snapshot_id, own->sequence, err));
    TRY(lane_delete_attempts(lane, table, &lane->record, true, err));
    return record_remove(lane, err);
}

/* The table is ahead of what we remember, by commits of ours (an older state was put back): while
 * the log still shows that they are ours, their position is taken down. */
static enum status catch_up(struct lane *lane, const struct iceberg_table *table,
                            const struct own_state *own, const struct positions *position,
                            struct error *err)
{
    if (lane->checkpoint.exists ? positions_equal(&lane->checkpoint.committed, position)
                                : positions_are_zero(position))
        return STATUS_OK;
    TRY(iceberg_table_make_durable(lane->publisher->catalog, lane->publisher->store, table, err));
    return save_position(lane, table, position, own->snapshot_id, own->sequence, err);
}

static enum status discard(struct lane *lane, const struct iceberg_table *table, struct error *err)
{
    TRY(iceberg_table_make_durable(lane->publisher->catalog, lane->publisher->store, table, err));
    TRY(lane_delete_files(lane, table, lane->record.prefix, err));
    TRY(lane_delete_attempts(lane, table, &lane->record, false, err));
    return record_remove(lane, err);
}

static enum status act(struct lane *lane, enum decision decision, const char *reason,
                       const struct iceberg_table *table, const struct own_state *own,
                       const struct positions *from, bool must_publish, bool *out_is_done,
                       struct error *err)
{
    bool is_empty = true;
    enum remedy remedy;
    switch (decision) {
    case DECIDE_GO_ON:
        if (lane->record.exists) /* an intent */
            TRY(drop_intent(lane, table, own, err));
        TRY(catch_up(lane, table, own, from, err));
        lane->is_recovered = true;
        if (must_publish)
            TRY(publish_range(lane, table, own, from, &is_empty, err));
        *out_is_done = is_empty;
        return STATUS_OK;
    case DECIDE_COMMIT_AGAIN:
    case DECIDE_REWRITE_LIST:
    case DECIDE_REBASE:
        /* Begun in another directory: there it may have lost its description with the power, be
         * taken for an intent and lose its files (E14). What it was to commit is written anew. */
        if (strcmp(lane->record.owner, lane->publisher->owner) != 0)
            return discard(lane, table, err);
        if (decision == DECIDE_REBASE)
            count_up(lane, &lane->info.rebases_total);
        return commit_and_settle(lane, table, own, decision == DECIDE_REBASE, err);
    case DECIDE_DONE:
        return adopt(lane, table, own, err);
    case DECIDE_DISCARD:
        return discard(lane, table, err);
    case DECIDE_STAND_DOWN:
        return lane_stand_down(lane, err, reason);
    case DECIDE_HALT_REBIND:
        return lane_halt_now(lane, err, reason, REMEDY_REBIND);
    case DECIDE_HALT:
        TRY(lane_remedy(lane, own, &remedy, err));
        return lane_doubt(lane, err, reason, remedy);
    case DECISION_COUNT:
        break;
    }
    return error_set(err, STATUS_INTERNAL, "%s: no such decision", lane->name);
}

/* No rows to publish and nothing open. */
static bool is_idle(struct lane *lane)
{
    return !lane->record.exists && lane_pending(lane).rows == 0;
}

static enum status settle_while_idle(struct lane *lane, bool *out_is_settled, struct error *err)
{
    struct positions end;
    lane_ends(lane, &end);
    *out_is_settled = is_idle(lane); /* what comes from now on lies above `end` */
    return *out_is_settled ? settle_idle(lane, &end, err) : STATUS_OK;
}

/* Keeps the suspicion of a roll-back until a walk proves the contrary. */
static enum status note_walk(struct lane *lane, const struct own_state *own, struct error *err)
{
    if (own->walk == WALK_LOST && own->sequence > lane->lost_sequence)
        lane->lost_sequence = own->sequence;
    if (!is_still_lost(own, lane->lost_sequence))
        return lane->lost_sequence ? doubt_remove(lane, err) : STATUS_OK;
    return lane->kept_sequence == lane->lost_sequence ? STATUS_OK : doubt_save(lane, err);
}

/* What metadata names has to be there, and whole (E17). Of the catalog the caller asks. */
static enum status doubt_files(struct lane *lane, enum status status, struct error *err)
{
    struct error damage;
    bool is_missed = status == STATUS_CORRUPT || status == STATUS_NOT_FOUND;
    if (!is_missed || catalog_check(lane->publisher->catalog, &damage) == STATUS_CORRUPT)
        return status;
    return lane_doubt_append(lane, err);
}

/* In a copy of a data directory the tables are still the original's, whose server may be running.
 */
static enum status check_place(struct lane *lane, const struct iceberg_table *table,
                               struct error *err)
{
    const char *warehouse = store_root(lane->publisher->store);
    char reason[400];
    if (strncmp(table->location, warehouse, strlen(warehouse)) == 0)
        return STATUS_OK;
    snprintf(reason, sizeof reason,
             "the table stands at %.150s, and this server's warehouse is %.150s: the data "
             "directory was copied",
             table->location, warehouse);
    return lane_halt_now(lane, err, reason, REMEDY_PLACE);
}

/* Looks at the table, decides, acts once. */
static enum status turn(struct lane *lane, bool must_publish, bool *out_is_done, struct error *err)
{
    struct iceberg_table *table = NULL;
    struct own_state own;
    struct positions from;
    char reason[400];
    enum decision decision;
    enum status status;
    *out_is_done = false;
    if (!lane->record.exists)
        TRY(lane_halt_on_damage(lane, err));
    status = find_table(lane, &table, err);
    if (status == STATUS_NOT_FOUND && must_publish && is_idle(lane)) {
        lane->is_recovered = true; /* no table, nothing that it could prove */
        lane->doubt_since_ns = 0;
        return settle_while_idle(lane, out_is_done, err);
    }
    if (status == STATUS_NOT_FOUND)
        status = lane_load_or_create(lane, &table, err);
    TRY(status);
    status = own_state_read(table, lane->publisher->log, lane->publisher->group_count, &own, err);
    if (status != STATUS_OK) {
        snprintf(reason, sizeof reason, "%s", err->message);
        status = lane_doubt(lane, err, reason, REMEDY_ACCEPT);
        goto done;
    }
    /* Younger than the table's state: what it holds, a log that goes on has too. */
    TRY_OR_DONE(status, source_refresh(lane->publisher->source, err));
    status = lane_check_fence(lane, &own, err);
    if (status == STATUS_FENCED)
        status = lane_fenced(lane, err);
    TRY_OR_DONE(status, status);
    TRY_OR_DONE(status, note_walk(lane, &own, err));
    TRY_OR_DONE(status, lane_decide(lane, table, &own, &from, reason, &decision, err));
    if (decision != DECIDE_HALT)
        lane->doubt_since_ns = 0;
    bool is_settled =
        decision == DECIDE_HALT || decision == DECIDE_HALT_REBIND || decision == DECIDE_STAND_DOWN;
    /* L35: a recovered log takes its tables over at once, whoever's directory this is. */
    bool is_recovery = (own.has_property || own.has_summary) &&
                       own.epoch.incarnation < source_incarnation(lane->publisher->source);
    if (!is_settled && (is_recovery || !lane_is_in_own_directory(lane, &own))) { /* E5 */
        if (is_idle(lane) && !is_recovery) {
            lane->through_acked_ns = env_mono_ns(lane->publisher->env);
            *out_is_done = true;
        } else {
            TRY_OR_DONE(status, check_place(lane, table, err));
            status = doubt_files(lane, lane_take_over(lane, &table, &own, err), err);
            if (status == STATUS_OK && is_recovery) /* a range of the lost log; main has moved */
                status = lane_give_up_record(lane, err);
        }
        goto done;
    }
    if (!lane->epoch.counter)
        lane->epoch = own.epoch.counter
                          ? own.epoch
                          : (struct epoch){source_incarnation(lane->publisher->source), 1};
    status = act(lane, decision, reason, table, &own, &from, must_publish, out_is_done, err);
    status = doubt_files(lane, status, err);
done:
    iceberg_table_destroy(table);
    return status;
}

static bool is_stopped(struct lane *lane)
{
    env_lock(lane->publisher->lock);
    bool is_stopped = lane->state == PUBLISH_HALTED || lane->state == PUBLISH_STOOD_DOWN;
    env_unlock(lane->publisher->lock);
    return is_stopped;
}

int64_t lane_age_ms(const struct lane *lane, const struct wal_pending *pending)
{
    /* Unsigned: of a log elsewhere it is what that one says. */
    uint64_t age_ns =
        (uint64_t)env_wall_ns(lane->publisher->env) - (uint64_t)pending->oldest_wall_ns;
    return pending->oldest_wall_ns ? (int64_t)age_ns / 1000000 : 0;
}

bool lane_is_due(struct lane *lane)
{
    struct publisher *publisher = lane->publisher;
    const struct publish_options *options = &publisher->options;
    int64_t now_ns = env_mono_ns(publisher->env);
    if (is_stopped(lane) || now_ns < lane->retry_at_ns)
        return false;
    if (source_fenced_by(publisher->source))
        return true;
    struct wal_pending pending = lane_pending(lane);
    int64_t age_ms = lane_age_ms(lane, &pending);
    env_lock(publisher->lock);
    bool is_demanded = lane->is_demanded;
    env_unlock(publisher->lock);
    is_demanded |= pending.rows && source_is_awaited(publisher->source, lane->table_id);
    if (!lane->is_recovered && lane->record.exists)
        return true;
    if (pending.rows == 0)
        return is_demanded || !lane->through_acked_ns ||
               now_ns - lane->through_acked_ns > (int64_t)THROUGH_ACK_MS * 1000000;
    return is_demanded || pending.bytes >= options->bytes || age_ms < 0 ||
           (uint64_t)age_ms >= options->interval_ms;
}

static bool is_committed_to(const struct lane *lane, const struct positions *positions)
{
    if (!lane->is_recovered || !lane->checkpoint.exists || lane->record.exists)
        return false;
    for (uint32_t g = 0; g < positions->count; g++)
        if (lane->checkpoint.committed.at[g].seq < positions->at[g].seq)
            return false;
    return true;
}

/* Turns until nothing is left of what was there when it began: others want the thread too. */
static enum status work(struct lane *lane, bool must_publish, struct error *err)
{
    bool is_settled = false;
    TRY(source_refresh(lane->publisher->source, err));
    if (source_fenced_by(lane->publisher->source))
        return lane_fenced(lane, err);
    /* Not before the table was read once: until then nobody knows whether it stands where the log
     * would let go of the chain (E7). */
    if (must_publish && lane->is_recovered)
        TRY(settle_while_idle(lane, &is_settled, err));
    if (is_settled) {
        lane_wake_waiters(lane); /* of what was committed before they asked */
        return STATUS_OK;
    }
    lane_set_state(lane, PUBLISH_WORKING, "");
    struct positions pending = {.count = lane->publisher->group_count};
    for (uint32_t g = 0; g < pending.count; g++)
        pending.at[g].seq = source_lag(lane->publisher->source, lane->table_id, g).last_seq;
    for (int turns = 0; turns < TURNS_MAX;) {
        bool is_done;
        enum status status = turn(lane, must_publish, &is_done, err);
        if (status == STATUS_CONFLICT || status == STATUS_UNKNOWN_OUTCOME) {
            turns++; /* read the table, decide again (E8 step 6); not for long: others wait */
            continue;
        }
        TRY(status);
        lane_wake_waiters(lane);
        if (is_done || is_committed_to(lane, &pending) || publisher_is_out_of_time(lane->publisher))
            return STATUS_OK; /* what is left stands on the log */
    }
    return error_set(err, STATUS_BUSY, "%s: others commit without pause", lane->name);
}

/* Somebody may be putting a good copy in its place just now. Reading may go well meanwhile, and
 * ends other doubts. */
static enum status doubt_catalog(struct lane *lane, struct error *err, const char *reason)
{
    struct publisher *publisher = lane->publisher;
    int64_t now_ns = env_mono_ns(publisher->env);
    if (!lane->catalog_doubt_ns)
        lane->catalog_doubt_ns = now_ns;
    if (now_ns - lane->catalog_doubt_ns < (int64_t)publisher->options.halt_confirm_ms * 1000000)
        return error_set(err, STATUS_BUSY, "%s", reason);
    lane->catalog_doubt_ns = 0;
    return lane_halt_now(lane, err, reason, REMEDY_CATALOG);
}

enum status lane_round(struct lane *lane, bool must_publish, struct error *err)
{
    struct publisher *publisher = lane->publisher;
    const struct publish_options *options = &publisher->options;
    if (is_stopped(lane))
        return error_set(err, STATUS_HALTED, "%s: %s", lane->name, lane->reason);
    env_lock(publisher->lock);
    lane->is_demanded = false;
    env_unlock(publisher->lock);
    enum status status = work(lane, must_publish, err);
    if (status == STATUS_OK) {
        if (lane->is_trouble_told)
            lane_tell(lane, PUBLISH_IDLE, "", "");
        lane->is_trouble_told = false;
        lane->trouble_since_ns = 0;
        lane->retry_ms = 0;
        lane->retry_at_ns = 0;
        lane->catalog_doubt_ns = lane->append_doubt_ns = lane->source_doubt_ns = 0;
        lane_set_state(lane, PUBLISH_IDLE, "");
        return STATUS_OK;
    }
    struct error damage; /* of the catalog, which shows in commits alone */
    if (status == STATUS_CORRUPT && catalog_check(publisher->catalog, &damage) == STATUS_CORRUPT)
        status = doubt_catalog(lane, err, damage.message);
    if (is_stopped(lane))
        return status;
    lane->retry_ms = lane->retry_ms ? lane->retry_ms * 2 : options->retry_ms_min;
    if (lane->retry_ms > options->retry_ms_max)
        lane->retry_ms = options->retry_ms_max;
    if (status == STATUS_BUSY && lane->retry_ms > CONTENTION_RETRY_MS)
        lane->retry_ms = CONTENTION_RETRY_MS; /* whoever waits longer loses every race */
    if (status == STATUS_TIMEOUT && lane->retry_ms > SILENCE_RETRY_MS)
        lane->retry_ms = SILENCE_RETRY_MS; /* asking the log again costs little */
    if (lane_is_in_doubt(lane))
        lane->retry_ms = 1000;
    lane->retry_at_ns = env_mono_ns(publisher->env) + (int64_t)lane->retry_ms * 1000000;
    if (!lane->trouble_since_ns)
        lane->trouble_since_ns = env_mono_ns(publisher->env);
    if (env_mono_ns(publisher->env) - lane->trouble_since_ns >= TROUBLE_NS &&
        !lane->is_trouble_told) {
        lane->is_trouble_told = true;
        lane_tell(lane, PUBLISH_RETRYING, err->message, "");
    }
    count_up(lane, &lane->info.retries_total);
    lane_set_state(lane, PUBLISH_RETRYING, err->message);
    env_lock(publisher->lock);
    lane->is_demanded |= lane->waiters != NULL;
    env_unlock(publisher->lock);
    return status;
}
