/* SPDX-License-Identifier: Apache-2.0
 *
 * A log that came back from its mirror on another machine (L35, L36), and the old machine that
 * comes back after it.
 *
 * The recovered log says in each table, with its takeover or its first commit there, and once an
 * incarnation: `recovered-N`, the last entries of the old history that it has; `lost-N`, what of
 * that history it lacks; `taken-over-N`, where the table stood. The old log finds the incarnation
 * above its own and is fenced. By `log adopt` it takes for done what stands in the table
 * (`taken-over`) and what the other one has to bring there (`recovered`), and goes on with the
 * rest under a new id. Thread: a lane's, or a command's.
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

bool recovered_here(struct wal *wal, struct positions *out_positions, struct buf *out_lost)
{
    uint32_t group;
    uint64_t first, last;
    struct positions positions = {.count = wal_group_count(wal)};
    for (uint32_t g = 0; g < positions.count; g++)
        if (!wal_recovered_to(wal, g, &positions.at[g]))
            return false;
    for (size_t i = 0; wal_recovered_without(wal, i, &group, &first, &last); i++)
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
    struct wal *wal = lane->publisher->wal;
    uint64_t newest = wal_fenced_by(wal);
    if (own->epoch.incarnation > wal_incarnation(wal) && own->epoch.incarnation > newest) {
        newest = own->epoch.incarnation;
        TRY(wal_fence(wal, newest, err));
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
            recovered_read(table, publisher->log, wal_incarnation(publisher->wal),
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
    if (position.seq > wal_synced_end(publisher->wal, group).seq)
        return false;
    return wal_chain_at(publisher->wal, group, position.seq, &chain, &ignored) != STATUS_OK ||
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

static void count_left(struct lane *lane, const struct told *told, const char *lost,
                       struct publish_adoption *adoption)
{
    unsigned group;
    unsigned long long first, last;
    int used = 0;
    for (const char *text = lost ? lost : "";
         sscanf(text, "%u:%llu-%llu%n", &group, &first, &last, &used) == 3;
         text += used + (text[used] == ';')) {
        if (group >= lane->publisher->group_count || first == 0)
            continue;
        uint64_t from = first - 1;
        if (group < told->recovered.taken_over.count &&
            told->recovered.taken_over.at[group].seq > from)
            from = told->recovered.taken_over.at[group].seq;
        if (from >= last)
            continue;
        struct wal *wal = lane->publisher->wal;
        struct wal_pending all = wal_pending(wal, group, lane->table_id, from);
        struct wal_pending behind = wal_pending(wal, group, lane->table_id, last);
        adoption->left_entries += all.entries - behind.entries;
        adoption->left_rows += all.rows - behind.rows;
    }
}

static void weigh(struct lane *lane, const struct positions *shared,
                  struct publish_adoption *adoption)
{
    for (uint32_t g = 0; g < shared->count; g++) {
        struct wal_ack ack;
        uint64_t from = shared->at[g].seq;
        if (wal_ack_get(lane->publisher->wal, lane->table_id, g, &ack) && ack.through.seq > from)
            from = ack.through.seq;
        struct wal_pending pending = wal_pending(lane->publisher->wal, g, lane->table_id, from);
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
        count_left(lane, &told[i], first->lost, &adoption);
        tell(context, &adoption);
        if (is_confirmed)
            TRY(lane_hand_over(lane, &shared, err));
    }
    return STATUS_OK;
}

enum status publisher_adopt(struct publisher *publisher, bool is_confirmed,
                            void (*told)(void *context, const struct publish_adoption *adoption),
                            void *context, struct log_id *out_new_id, struct error *err)
{
    struct told *tables = mem_alloc_zero(publisher->lane_count, sizeof *tables);
    const struct told *first = NULL;
    enum status status = STATUS_OK;
    if (!tables)
        return error_set(err, STATUS_NO_MEMORY, "log adopt: out of memory");
    for (size_t i = 0; status == STATUS_OK && i < publisher->lane_count; i++) {
        status = look(&publisher->lanes[i], &tables[i], err);
        if (tables[i].has_recovered && !first)
            first = &tables[i];
    }
    if (status == STATUS_OK && !first)
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
