/* SPDX-License-Identifier: Apache-2.0
 *
 * One commit of ours: an append of the record's files, or a statement without files. What it says
 * of us stands in the summary and in the table's properties, moved by one atomic change (E1). The
 * record on disk names the base and the attempt before the catalog is asked (E8 step 4, E9).
 */
#include <stdio.h>

#include "flow/publish/publish_internal.h"

enum { SAID_MAX = 16, SAID_BYTES = 96 };

/* What a commit says of our log, as properties and as summary entries. */
struct saying {
    char keys[SAID_MAX][SAID_BYTES];
    char short_values[SAID_MAX][80];
    struct buf positions, range, since, starts, recovered, taken_over, lost, trimmed;
    struct iceberg_pair pairs[SAID_MAX];
    size_t property_count; /* the first of `pairs` are properties too */
    size_t count;
};

static void say(struct saying *saying, struct log_id log, const char *name, const char *value)
{
    own_key(log, name, saying->keys[saying->count]);
    saying->pairs[saying->count] =
        (struct iceberg_pair){.key = saying->keys[saying->count], .value = value};
    saying->count++;
}

static const char *say_number(struct saying *saying, uint64_t number)
{
    snprintf(saying->short_values[saying->count], sizeof saying->short_values[0], "%llu",
             (unsigned long long)number);
    return saying->short_values[saying->count];
}

static void say_range(struct saying *saying, const struct positions *from,
                      const struct positions *to)
{
    for (uint32_t g = 0; g < to->count; g++) {
        if (!position_equal(from->at[g], to->at[g]))
            buf_format(&saying->range, "%s%u:%llu-%llu", saying->range.length ? ";" : "", g,
                       (unsigned long long)from->at[g].seq, (unsigned long long)to->at[g].seq);
    }
    buf_put_byte(&saying->range, '\0');
}

struct statement {
    const struct positions *from, *to; /* `from` NULL: no range */
    struct epoch epoch;
    const char *digest;
    struct hash128 row_sum; /* of all rows of this log in the table */
    int32_t row_sum_schema;
    uint64_t rows;
};

/* Tells a later `log fork` where copies of this log part. */
static enum status say_starts(struct saying *saying, struct lane *lane,
                              const struct statement *statement, struct error *err)
{
    struct positions since;
    bool is_told;
    TRY(range_starts(lane, statement->from, statement->to, &since, &saying->starts, &is_told, err));
    if (!is_told)
        return STATUS_OK;
    positions_to_text(&since, &saying->since);
    buf_put_byte(&saying->since, '\0');
    TRY(buf_status(&saying->since, "commit", err));
    say(saying, lane->publisher->log, "since", (const char *)saying->since.data);
    if (!saying->starts.length)
        return STATUS_OK;
    buf_put_byte(&saying->starts, '\0');
    TRY(buf_status(&saying->starts, "commit", err));
    say(saying, lane->publisher->log, "starts", (const char *)saying->starts.data);
    return STATUS_OK;
}

/* Said once in each table by a log that came back from its mirror: up to where it has the old
 * history, what of that it lacks, and where the table stood (adopt.c). */
static enum status say_recovered(struct saying *saying, struct lane *lane,
                                 const struct iceberg_table *table,
                                 const struct statement *statement, struct error *err)
{
    struct publisher *publisher = lane->publisher;
    struct recovered recovered;
    char name[40];
    if (!recovered_here(publisher->source, &recovered.positions, &saying->lost))
        return STATUS_OK;
    uint64_t incarnation = source_incarnation(publisher->source);
    recovered_key(publisher->log, "recovered", incarnation, saying->keys[saying->count]);
    if (iceberg_table_property(table, saying->keys[saying->count]))
        return STATUS_OK;
    positions_to_text(&recovered.positions, &saying->recovered);
    positions_to_text(statement->from ? statement->from : statement->to, &saying->taken_over);
    buf_put_byte(&saying->recovered, '\0');
    buf_put_byte(&saying->taken_over, '\0');
    TRY(buf_status(&saying->recovered, "commit", err));
    TRY(buf_status(&saying->taken_over, "commit", err));
    snprintf(name, sizeof name, "recovered-%llu", (unsigned long long)incarnation);
    say(saying, publisher->log, name, (const char *)saying->recovered.data);
    snprintf(name, sizeof name, "taken-over-%llu", (unsigned long long)incarnation);
    say(saying, publisher->log, name, (const char *)saying->taken_over.data);
    if (saying->lost.length == 0)
        return STATUS_OK;
    buf_put_byte(&saying->lost, '\0');
    TRY(buf_status(&saying->lost, "commit", err));
    snprintf(name, sizeof name, "lost-%llu", (unsigned long long)incarnation);
    say(saying, publisher->log, name, (const char *)saying->lost.data);
    return STATUS_OK;
}

static enum status saying_init(struct saying *saying, struct lane *lane,
                               const struct iceberg_table *table, const struct statement *statement,
                               struct error *err)
{
    struct log_id log = lane->publisher->log;
    char *epoch = saying->short_values[SAID_MAX - 1], *row_sum = saying->short_values[SAID_MAX - 2];
    epoch_to_text(statement->epoch, epoch);
    hash128_to_text(statement->row_sum, row_sum);
    positions_to_text(statement->to, &saying->positions);
    buf_put_byte(&saying->positions, '\0');
    TRY(buf_status(&saying->positions, "commit", err));
    say(saying, log, "positions", (const char *)saying->positions.data);
    say(saying, log, "epoch", epoch);
    say(saying, log, "digest", statement->digest);
    say(saying, log, "sequence", say_number(saying, (uint64_t)table->last_sequence_number + 1));
    say(saying, log, "row-sum", row_sum);
    say(saying, log, "row-sum-schema", say_number(saying, (uint64_t)statement->row_sum_schema));
    TRY(say_recovered(saying, lane, table, statement, err));
    saying->property_count = saying->count;
    gaps_put(lane, &saying->trimmed);
    if (saying->trimmed.length) {
        buf_put_byte(&saying->trimmed, '\0');
        TRY(buf_status(&saying->trimmed, "commit", err));
        say(saying, log, "trimmed", (const char *)saying->trimmed.data);
    }
    if (statement->from) {
        say_range(saying, statement->from, statement->to);
        TRY(buf_status(&saying->range, "commit", err));
        say(saying, log, "range", (const char *)saying->range.data);
        say(saying, log, "rows", say_number(saying, statement->rows));
        TRY(say_starts(saying, lane, statement, err));
    }
    return STATUS_OK;
}

static void saying_deinit(struct saying *saying)
{
    buf_deinit(&saying->positions);
    buf_deinit(&saying->range);
    buf_deinit(&saying->since);
    buf_deinit(&saying->starts);
    buf_deinit(&saying->recovered);
    buf_deinit(&saying->taken_over);
    buf_deinit(&saying->lost);
    buf_deinit(&saying->trimmed);
}

/* On file://, what others added must last before we stand on it (E10). */
static enum status sync_base(struct lane *lane, const struct iceberg_table *table,
                             const struct own_state *own, struct error *err)
{
    if (!table->current || (own->snapshot_id == table->current->snapshot_id))
        return STATUS_OK;
    return iceberg_table_sync_foreign(lane->publisher->store, table, own->sequence, err);
}

static enum status append(struct lane *lane, const struct iceberg_table *table,
                          const struct own_state *own, const struct statement *statement,
                          const struct iceberg_append *wanted, struct iceberg_table **out_table,
                          struct error *err)
{
    struct publisher *publisher = lane->publisher;
    struct saying saying = {0};
    struct iceberg_append append = *wanted;
    enum status status = saying_init(&saying, lane, table, statement, err);
    if (status == STATUS_OK)
        status = sync_base(lane, table, own, err);
    if (status == STATUS_OK) {
        append.now_ms = env_wall_ns(publisher->env) / 1000000;
        append.summary = saying.pairs;
        append.summary_count = saying.count;
        append.properties = saying.pairs;
        append.property_count = saying.property_count;
        status = iceberg_append_commit(publisher->env, publisher->catalog, publisher->store, table,
                                       &append, out_table, err);
    }
    if (status == STATUS_OK && saying.trimmed.length)
        gaps_told(lane);
    saying_deinit(&saying);
    return status;
}

static struct uuid new_uuid(struct env *env)
{
    uint8_t bytes[16];
    env_random(env, bytes, sizeof bytes);
    return uuid_from_random(bytes);
}

/* Whether rows of schema `later` can no longer add up to a sum over rows of `earlier`: a field was
 * dropped or retyped (E3). Sums take int and long, float and double for the same. */
static bool is_sum_broken(const struct iceberg_table *table, int32_t earlier, int32_t later)
{
    const struct iceberg_schema *from = iceberg_table_schema(table, earlier);
    const struct iceberg_schema *to = iceberg_table_schema(table, later);
    return earlier != later && (!from || !to || iceberg_schema_loses(from, to));
}

/* The sum of all our rows in the table once the record is in it. A new one starts with a schema. */
static void add_up(const struct iceberg_table *table, const struct own_state *own,
                   const struct record *record, struct statement *statement)
{
    bool is_first = !own->has_property && !own->has_summary;
    statement->row_sum = record->row_sum;
    statement->row_sum_schema = record->schema_id;
    if (is_first || is_sum_broken(table, own->row_sum_schema, record->schema_id))
        return;
    statement->row_sum = hash128_add(own->row_sum, record->row_sum);
    statement->row_sum_schema = own->row_sum_schema;
}

enum status commit_record(struct lane *lane, const struct iceberg_table *table,
                          const struct own_state *own, bool with_new_id,
                          struct iceberg_table **out_table, struct error *err)
{
    struct publisher *publisher = lane->publisher;
    struct record *record = &lane->record;
    struct uuid attempt = new_uuid(publisher->env);
    if (with_new_id && record->attempt_count == ATTEMPTS_MAX) { /* main has left all their bases */
        TRY(lane_delete_attempts(lane, table, record, false, err));
        record->attempt_count = 0;
    }
    if (with_new_id)
        record->snapshot_id = iceberg_snapshot_id_create(publisher->env);
    if (record->attempt_count == ATTEMPTS_MAX) { /* the oldest is left to `orphans` */
        memmove(record->attempts, record->attempts + 1,
                (ATTEMPTS_MAX - 1) * sizeof record->attempts[0]);
        record->attempt_count--;
    }
    record->attempts[record->attempt_count++] = attempt;
    record->epoch = lane->epoch;
    iceberg_table_base(table, &record->base);
    record->is_descriptor = true;
    TRY(record_save(lane, record, err));
    struct statement statement = {
        .from = &record->from,
        .to = &record->to,
        .epoch = lane->epoch,
        .digest = record->digest,
        .rows = record->rows,
    };
    add_up(table, own, record, &statement);
    struct iceberg_append wanted = {
        .snapshot_id = record->snapshot_id,
        .attempt = attempt,
        .attempt_number = record->attempt_count,
        .files = record->files,
        .file_count = record->file_count,
    };
    return append(lane, table, own, &statement, &wanted, out_table, err);
}

enum status commit_statement(struct lane *lane, const struct iceberg_table *table,
                             const struct own_state *own, const struct positions *positions,
                             struct epoch epoch, struct iceberg_table **out_table,
                             struct error *err)
{
    struct publisher *publisher = lane->publisher;
    struct statement statement = {
        .to = positions,
        .epoch = epoch,
        .digest = own->digest,
        .row_sum = own->row_sum,
        .row_sum_schema = own->row_sum_schema,
    };
    struct iceberg_append wanted = {
        .snapshot_id = iceberg_snapshot_id_create(publisher->env),
        .attempt = new_uuid(publisher->env),
        .attempt_number = 1,
    };
    return append(lane, table, own, &statement, &wanted, out_table, err);
}
