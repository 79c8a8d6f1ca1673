/* SPDX-License-Identifier: Apache-2.0
 *
 * A log that came back from its mirror on another machine (L35, L36), and the old machine that
 * comes back after it.
 *
 * The recovered log says in each table, with its takeover or its first commit there, and once an
 * incarnation: `recovered-N`, the last entries of the old history that it has; `lost-N`, what of
 * that history it lacks; `taken-over-N`, where the table stood. The old log finds the incarnation
 * above its own and is fenced. By `log adopt` it takes for done what stands in the table
 * (`taken-over`) and what the other one has to bring there (`recovered`), copies what
 * is in `lost` to its end, and goes on with the rest under a new id. Thread: a lane's, or a
 * command's.
 */
#include <stdio.h>

#include "flow/publish/publish_internal.h"

/* ---- what is said ---- */

void recovered_key(struct log_id log, const char *name, uint64_t incarnation, char out[96])
{
    char numbered[48];
    snprintf(numbered, sizeof numbered, "%s-%llu", name, (unsigned long long)incarnation);
    own_key(log, numbered, out);
}

bool recovered_here(struct source *source, struct positions *out_positions, struct buf *out_lost)
{
    uint32_t group;
    uint64_t first, last;
    struct positions positions = {.count = source_group_count(source)};
    for (uint32_t g = 0; g < positions.count; g++)
        if (!source_recovered_to(source, g, &positions.at[g]))
            return false;
    for (size_t i = 0; source_recovered_without(source, i, &group, &first, &last); i++)
        buf_format(out_lost, "%s%u:%llu-%llu", out_lost->length ? ";" : "", group,
                   (unsigned long long)first, (unsigned long long)last);
    *out_positions = positions;
    return true;
}

/* What the first recovery after `incarnation` says in the table. False: nothing. */
static bool recovered_read(const struct iceberg_table *table, struct log_id log,
                           uint64_t incarnation, uint64_t last, uint32_t group_count,
                           struct recovered *out)
{
    for (uint64_t i = incarnation + 1; i <= last; i++) {
        char key[96];
        recovered_key(log, "recovered", i, key);
        const char *positions = iceberg_table_property(table, key);
        recovered_key(log, "taken-over", i, key);
        const char *taken_over = iceberg_table_property(table, key);
        recovered_key(log, "lost", i, key);
        if (!positions || !taken_over || !positions_from_text(positions, &out->positions) ||
            !positions_from_text(taken_over, &out->taken_over) ||
            out->positions.count > group_count || out->taken_over.count > group_count)
            continue;
        out->lost = iceberg_table_property(table, key);
        out->positions.count = out->taken_over.count = group_count;
        return true;
    }
    return false;
}

enum status publish_table_positions(struct catalog *catalog, struct catalog_ident ident,
                                    struct log_id log, uint32_t group_count,
                                    struct wal_position *out, uint64_t *out_incarnation,
                                    struct error *err)
{
    struct iceberg_table *table = NULL;
    struct own_state own;
    if (group_count > PUBLISH_GROUPS_MAX)
        return error_set(err, STATUS_UNSUPPORTED, "at most %d groups can be published",
                         (int)PUBLISH_GROUPS_MAX);
    TRY(iceberg_table_load(catalog, ident, &table, err));
    enum status status = own_state_read(table, log, group_count, &own, err);
    iceberg_table_destroy(table);
    TRY(status);
    memcpy(out, own.positions.at, group_count * sizeof *out);
    *out_incarnation = own.epoch.incarnation;
    return STATUS_OK;
}

/* ---- the fence ---- */

enum status lane_check_fence(struct lane *lane, const struct own_state *own, struct error *err)
{
    struct source *source = lane->publisher->source;
    uint64_t newest = source_fenced_by(source);
    if (own->epoch.incarnation > source_incarnation(source) && own->epoch.incarnation > newest) {
        newest = own->epoch.incarnation;
        TRY(source_fence(source, newest, err));
    }
    if (!newest)
        return STATUS_OK;
    return error_set(err, STATUS_FENCED,
                     "this log was recovered on another machine, as incarnation %llu, and goes on "
                     "there: stop the server, sluice log adopt --confirm, start the server",
                     (unsigned long long)newest);
}

/* ---- adopting ---- */

/* What one table tells of the recovery. */
struct told {
    bool has_recovered;
    struct recovered recovered;
    char *lost; /* owned */
};

static enum status look(struct lane *lane, struct told *out, struct error *err)
{
    struct publisher *publisher = lane->publisher;
    struct catalog_ident ident = {.ns = lane->definition->ns, .name = lane->definition->name};
    struct iceberg_table *table = NULL;
    struct own_state own;
    struct error fenced;
    enum status status = iceberg_table_load(publisher->catalog, ident, &table, err);
    if (status == STATUS_NOT_FOUND)
        return STATUS_OK;
    if (status == STATUS_OK)
        status = own_state_read(table, publisher->log, publisher->group_count, &own, err);
    if (status == STATUS_OK && lane_check_fence(lane, &own, &fenced) == STATUS_IO)
        status = error_set(err, STATUS_IO, "%s", fenced.message);
    if (status == STATUS_OK) {
        out->has_recovered =
            recovered_read(table, publisher->log, source_incarnation(publisher->source),
                           own.epoch.incarnation, publisher->group_count, &out->recovered);
        if (out->has_recovered && out->recovered.lost) {
            out->lost = mem_copy_text(out->recovered.lost);
            out->recovered.lost = NULL; /* the table's */
            if (!out->lost)
                status = error_set(err, STATUS_NO_MEMORY, "log adopt: out of memory");
        }
        if (!out->has_recovered)
            out->recovered.taken_over = own.positions;
    }
    iceberg_table_destroy(table);
    return status;
}

/* The log has this position, or no longer knows. */
static bool may_be_ours(struct publisher *publisher, uint32_t group, struct wal_position position)
{
    struct error ignored;
    uint64_t chain;
    if (position.seq > source_end(publisher->source, group).seq)
        return false;
    return position.seq == 0 ||
           wal_chain_at(source_wal(publisher->source), group, position.seq, &chain, &ignored) !=
               STATUS_OK ||
           chain == position.chain;
}

/* Where the lane goes on: behind what stands in the table, and what the other log brings there. */
static enum status shared_with(struct lane *lane, const struct told *told,
                               const struct positions *recovered, struct positions *out,
                               struct error *err)
{
    *out = *recovered;
    for (uint32_t g = 0; g < out->count; g++) {
        const struct wal_position table = told->recovered.taken_over.at[g];
        if (g < told->recovered.taken_over.count && table.seq > out->at[g].seq)
            out->at[g] = table;
        if (!may_be_ours(lane->publisher, g, out->at[g]))
            return error_set(err, STATUS_IDENTITY,
                             "%s: what was recovered, up to %u/%llu, is not this log's history",
                             lane->name, g, (unsigned long long)out->at[g].seq);
    }
    return STATUS_OK;
}

/* What the recovered log lacks below the position, as `lost` says it, and the table does not have:
 * these rows are here alone. */
struct left {
    struct lane *lane;
    const struct told *told;
    bool is_confirmed;
    struct publish_adoption *adoption;
};

/* The same rows again, at the end of this log, from where they go on under the new id. The number
 * of a producer of its own makes a copy that an interrupted run has made count. */
static enum status copy_entry(const struct left *left, const struct wal_view *view, uint64_t number,
                              struct error *err)
{
    struct wal *wal = source_wal(left->lane->publisher->source);
    char producer[WAL_PRODUCER_ID_MAX + 1], log[LOG_ID_TEXT_BYTES];
    struct wal_receipt receipts[16];
    uint32_t count;
    uint64_t expected;
    struct hash128 hash = hash128(view->payload.data, view->payload.length);
    log_id_to_text(left->lane->publisher->log, log);
    snprintf(producer, sizeof producer, "adopt-%s-%u-%u", log, view->table_id, view->group);
    enum wal_producer_verdict verdict;
    do
        verdict = wal_producer_begin(wal, span_of_text(producer), number, hash, receipts, &count,
                                     &expected);
    while (verdict == WAL_PRODUCER_UNCERTAIN);
    if (verdict == WAL_PRODUCER_REPEAT || verdict == WAL_PRODUCER_OLD)
        return STATUS_OK;
    if (verdict != WAL_PRODUCER_NEW)
        return error_set(err, STATUS_LIMIT, "log adopt: entry %u/%llu cannot be copied (%d)",
                         view->group, (unsigned long long)view->seq, (int)verdict);
    struct wal_contribution contribution = {.rows = view->rows,
                                            .body_hash = hash,
                                            .producer = producer,
                                            .producer_length = (uint8_t)strlen(producer),
                                            .producer_sequence = number};
    struct wal_entry entry = {.type = WAL_DATA,
                              .group = view->group,
                              .table_id = view->table_id,
                              .schema_fingerprint = view->schema_fingerprint,
                              .rows = view->rows,
                              .time_min_us = view->time_min_us,
                              .time_max_us = view->time_max_us,
                              .contributions = &contribution,
                              .contribution_count = 1,
                              .payload = view->payload,
                              .payload_crc = view->payload_crc};
    struct wal_submission submission = {.entries = &entry,
                                        .entry_count = 1,
                                        .durability = WAL_SYNCED,
                                        .passes_fence = true,
                                        .is_admitted =
                                            true}; /* nothing is published before it ends */
    return wal_append(wal, &submission, err);
}

static enum status take_range(const struct left *left, uint32_t group, uint64_t after,
                              uint64_t last, uint64_t *inout_number, struct error *err)
{
    struct wal *wal = source_wal(left->lane->publisher->source);
    struct wal_scan *scan = NULL;
    struct wal_view view;
    TRY(wal_scan_open(wal, group, left->lane->table_id, after, &scan, err));
    enum status status;
    while ((status = wal_scan_next(scan, &view, err)) == STATUS_OK && view.seq <= last) {
        left->adoption->entries++;
        left->adoption->rows += view.rows;
        ++*inout_number;
        if (left->is_confirmed)
            status = copy_entry(left, &view, *inout_number, err);
        if (status != STATUS_OK)
            break;
    }
    wal_scan_close(scan);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status take_left(const struct left *left, const char *lost, struct error *err)
{
    const struct positions *table = &left->told->recovered.taken_over;
    uint64_t numbers[PUBLISH_GROUPS_MAX] = {0};
    unsigned group;
    unsigned long long first, last;
    int used = 0;
    for (const char *text = lost ? lost : "";
         sscanf(text, "%u:%llu-%llu%n", &group, &first, &last, &used) == 3;
         text += used + (text[used] == ';')) {
        if (group >= left->lane->publisher->group_count || first == 0)
            continue;
        uint64_t after = first - 1;
        if (group < table->count && table->at[group].seq > after)
            after = table->at[group].seq;
        if (after < last)
            TRY(take_range(left, group, after, last, &numbers[group], err));
    }
    return STATUS_OK;
}

static void weigh(struct lane *lane, const struct positions *shared,
                  struct publish_adoption *adoption)
{
    for (uint32_t g = 0; g < shared->count; g++) {
        struct wal_ack ack;
        uint64_t from = shared->at[g].seq;
        if (source_ack_get(lane->publisher->source, lane->table_id, g, &ack) &&
            ack.through.seq > from)
            from = ack.through.seq;
        struct wal_pending pending =
            wal_pending(source_wal(lane->publisher->source), g, lane->table_id, from);
        adoption->entries += pending.entries;
        adoption->rows += pending.rows;
    }
}

static enum status adopt_all(struct publisher *publisher, const struct told *told,
                             const struct told *first, bool is_confirmed,
                             void (*tell)(void *context, const struct publish_adoption *adoption),
                             void *context, struct error *err)
{
    for (size_t i = 0; i < publisher->lane_count; i++) {
        struct lane *lane = &publisher->lanes[i];
        struct publish_adoption adoption = {0};
        struct positions shared;
        TRY(shared_with(lane, &told[i], &first->recovered.positions, &shared, err));
        snprintf(adoption.table, sizeof adoption.table, "%s", lane->name);
        weigh(lane, &shared, &adoption);
        struct left left = {lane, &told[i], is_confirmed, &adoption};
        TRY(take_left(&left, first->lost, err));
        tell(context, &adoption);
        if (is_confirmed)
            TRY(lane_hand_over(lane, &shared, err));
    }
    return STATUS_OK;
}

enum status publisher_adopt(struct publisher *publisher, bool is_confirmed, bool is_alone,
                            void (*told)(void *context, const struct publish_adoption *adoption),
                            void *context, struct log_id *out_new_id, struct error *err)
{
    TRY(publisher_must_have_log(publisher, err));
    struct told *tables = mem_alloc_zero(publisher->lane_count, sizeof *tables);
    const struct told *first = NULL;
    /* Whoever recovered it brings nothing: only what stands in the tables is done. */
    const struct told nothing = {.recovered.positions.count = publisher->group_count};
    enum status status = STATUS_OK;
    if (!tables)
        return error_set(err, STATUS_NO_MEMORY, "log adopt: out of memory");
    for (size_t i = 0; status == STATUS_OK && i < publisher->lane_count; i++) {
        status = look(&publisher->lanes[i], &tables[i], err);
        if (tables[i].has_recovered && !first)
            first = &tables[i];
    }
    if (!first && is_alone && source_fenced_by(publisher->source))
        first = &nothing;
    if (status == STATUS_OK && !first && source_fenced_by(publisher->source))
        status = error_set(err, STATUS_NOT_FOUND,
                           "no table says yet how far this log was recovered: start the server on "
                           "the recovered one first, it says so at once; if that one never ran and "
                           "never will, sluice log adopt --confirm --alone");
    else if (status == STATUS_OK && !first)
        status = error_set(err, STATUS_NOT_FOUND,
                           "no table says that this log was recovered on another machine");
    if (status == STATUS_OK)
        status = adopt_all(publisher, tables, first, is_confirmed, told, context, err);
    if (status == STATUS_OK && is_confirmed)
        status = publisher_go_on_as_new(publisher, out_new_id, err);
    for (size_t i = 0; i < publisher->lane_count; i++)
        mem_free(tables[i].lost);
    mem_free(tables);
    return status;
}
