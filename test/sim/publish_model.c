/* SPDX-License-Identifier: Apache-2.0
 *
 * What must hold, whatever crashed:
 *
 *   always    a row is in its table at most once, and only if it was submitted and not refused
 *             it stands there under the sequence number that it was acknowledged with
 *             no data file is live twice; every live one is whole
 *             what a table on the disk had stays, through every later power cut
 *             durable ack <= checkpoint <= table <= durable log, in every group
 *             rows up to the durable ack are in the table
 *             positions in properties and in the newest own summary agree; rows and row sums of
 *             commits are those of their files
 *             a commit of the other engine that was answered OK stays, one that failed never comes
 *   at last   every promised row, and every row that the log has, is in the table; no record, no
 *             data file without a snapshot is left
 */
#include <stdio.h>
#include <stdlib.h>

#include "sim/parquet_look.h"
#include "sim/publish_world.h"

uint64_t entry_add(struct model *model, struct entry entry)
{
    if (model->entry_count == model->entry_capacity) {
        model->entry_capacity = model->entry_capacity ? model->entry_capacity * 2 : 256;
        model->entries = realloc(model->entries, model->entry_capacity * sizeof entry);
        CHECK(model->entries);
    }
    model->entries[model->entry_count] = entry;
    return model->entry_count++;
}

static uint32_t all_rows(const struct entry *entry)
{
    return (1u << entry->rows) - 1;
}

static bool is_of(const struct entry *entry, const struct instance *instance)
{
    return entry->instance == instance->index || entry->in_log[instance->index];
}

/* ---- a table ---- */

static void row_seen(struct model *model, uint32_t table, int64_t id, int64_t seq, const char *path)
{
    uint64_t number = (uint64_t)id / ROW_STRIDE, place = (uint64_t)id % ROW_STRIDE;
    if (id < 0 || number == 0 || number >= model->entry_count)
        fail(model, "%s: row %lld was never submitted", path, (long long)id);
    struct entry *entry = &model->entries[number];
    if (place >= entry->rows || entry->table != table)
        fail(model, "%s: row %lld does not belong here", path, (long long)id);
    if (entry->state == ENTRY_NEVER)
        fail(model, "%s: row %lld was refused, or is lost, and is here", path, (long long)id);
    if (entry->present >> place & 1)
        fail(model, "%s: row %lld is in the table twice", path, (long long)id);
    if (entry->seq && entry->seq != (uint64_t)seq)
        fail(model, "%s: row %lld has seq %lld, its entry %llu", path, (long long)id,
             (long long)seq, U(entry->seq));
    entry->seq = (uint64_t)seq;
    entry->present |= 1u << place;
    totals.rows_checked++;
}

/* Its rows; returns the row sum that its footer says. */
static struct hash128 file_check(struct model *model, uint32_t table,
                                 const struct iceberg_data_file *file)
{
    const uint8_t *data = NULL;
    uint64_t bytes = 0;
    struct parquet_look look;
    struct hash128 sum = {0};
    char text[64];
    if (!sim_file_bytes(model->node, file->path + strlen("file://"), &data, &bytes))
        fail(model, "%s: live, and gone", file->path);
    if (bytes != (uint64_t)file->file_bytes ||
        !parquet_look_open(&look, span_of(data, (size_t)bytes)) || look.rows != file->record_count)
        fail(model, "%s: not what the manifest says: %s", file->path,
             bytes != (uint64_t)file->file_bytes ? "its length"
             : look.why                          ? look.why
                                                 : "its rows");
    int64_t *ids = parquet_look_i64(&look, "id"), *seqs = parquet_look_i64(&look, "_sluice_seq");
    if (!ids || !seqs)
        fail(model, "%s: %s", file->path, look.why);
    for (int64_t i = 0; i < look.rows; i++)
        row_seen(model, table, ids[i], seqs[i], file->path);
    free(ids);
    free(seqs);
    unsigned long long high, low;
    if (!parquet_look_metadata(&look, "sluice.row-sum", text, sizeof text) ||
        sscanf(text, "%16llx%16llx", &high, &low) != 2)
        fail(model, "%s: no row sum", file->path);
    totals.files_read++;
    sum.low = low;
    sum.high = high;
    return sum;
}

static void foreign_seen(struct model *model, uint32_t table, const char *path)
{
    unsigned number = 0;
    const char *name = strrchr(path, '/');
    const uint8_t *data = NULL;
    uint64_t bytes = 0;
    if (!name || sscanf(name, "/foreign-%u", &number) != 1 || number == 0 ||
        number > model->foreign_count || model->foreign[number].table != table)
        fail(model, "%s: nobody wrote this file", path);
    struct foreign *foreign = &model->foreign[number];
    if (foreign->is_present)
        fail(model, "%s: live twice", path);
    if (foreign->outcome == OUTCOME_FAILED)
        fail(model, "%s: its commit failed, and is here", path);
    if (!sim_file_bytes(model->node, path + strlen("file://"), &data, &bytes) || bytes == 0)
        fail(model, "%s: live, and gone", path);
    foreign->is_present = true;
}

static void path_seen(struct model *model, const char *path)
{
    for (size_t i = 0; i < model->path_count; i++)
        if (strcmp(model->paths[i], path) == 0)
            fail(model, "%s: live twice", path);
    CHECK(model->path_count < PATHS_MAX);
    model->paths[model->path_count++] = strdup(path);
}

static const char *own_value(const struct model *model, const struct iceberg_table *table,
                             const struct iceberg_snapshot *snapshot, const char *name)
{
    char key[96];
    snprintf(key, sizeof key, "sluice.%s.0.%s", model->log_id, name);
    return snapshot ? iceberg_snapshot_summary(snapshot, key) : iceberg_table_property(table, key);
}

static const struct iceberg_snapshot *newest_own(const struct model *model,
                                                 const struct iceberg_table *table)
{
    const struct iceberg_snapshot *at = table->current;
    while (at && !own_value(model, table, at, "positions"))
        at = at->parent_id >= 0 ? iceberg_table_snapshot(table, at->parent_id) : NULL;
    return at;
}

static void positions_parse(struct model *model, const char *text, struct seen *seen)
{
    while (*text) {
        unsigned group;
        unsigned long long seq, chain;
        int used = 0;
        if (sscanf(text, "%u:%llu:%llx%n", &group, &seq, &chain, &used) != 3 ||
            group >= model->groups)
            fail(model, "positions that cannot be read: %s", text);
        seen->at[group] = (struct wal_position){.seq = seq, .chain = chain};
        text += used + (text[used] == ';');
    }
    seen->has_positions = true;
}

/* Rolled back: what it says and what it holds are two things. */
static bool is_damaged(const struct model *model, const struct iceberg_table *table)
{
    return model->is_damaged && strcmp(table->name, model->definitions[0].name) == 0;
}

static void commits_check(struct model *model, const struct iceberg_table *table,
                          const struct iceberg_plan *plan)
{
    for (uint32_t s = 0; s < table->snapshot_count; s++) {
        const struct iceberg_snapshot *snapshot = &table->snapshots[s];
        const char *rows =
            is_damaged(model, table) ? NULL : own_value(model, table, snapshot, "rows");
        uint64_t said = 0, counted = 0;
        if (!rows)
            continue;
        for (size_t i = 0; i < plan->file_count; i++)
            if (plan->files[i].snapshot_id == snapshot->snapshot_id)
                counted += (uint64_t)plan->files[i].file.record_count;
        if (!parse_u64(rows, strlen(rows), &said) || said != counted)
            fail(model, "snapshot %lld says %s rows and added %llu",
                 (long long)snapshot->snapshot_id, rows, U(counted));
    }
}

/* Properties, and the newest own summary. */
static void statements_check(struct model *model, const struct iceberg_table *table,
                             struct hash128 sum, struct seen *seen)
{
    const struct iceberg_snapshot *own = newest_own(model, table);
    const char *property = own_value(model, table, NULL, "positions");
    const char *summary = own ? own_value(model, table, own, "positions") : NULL;
    const char *sequence = own ? own_value(model, table, own, "sequence") : NULL;
    const struct iceberg_snapshot *source = property ? NULL : own;
    uint64_t number = 0;
    if (is_damaged(model, table))
        return;
    if (property && summary && strcmp(property, summary) != 0)
        fail(model, "the property says %s, the newest own commit %s", property, summary);
    if (own && (!sequence || !parse_u64(sequence, strlen(sequence), &number) ||
                number != (uint64_t)own->sequence_number))
        fail(model, "snapshot %lld has sequence number %lld and says %s",
             (long long)own->snapshot_id, (long long)own->sequence_number, sequence);
    if (!property && !own) {
        if (seen->own_files > 0)
            fail(model, "rows of the log are in the table, which knows of no log");
        return;
    }
    if (!property && !model->engine_forgets)
        fail(model, "an own commit without its properties");
    positions_parse(model, property ? property : summary, seen);
    sequence = own_value(model, table, source, "sequence");
    if (sequence && parse_u64(sequence, strlen(sequence), &number))
        seen->sequence = (int64_t)number;
    const char *row_sum = own_value(model, table, source, "row-sum");
    unsigned long long high, low;
    if (!row_sum || sscanf(row_sum, "%16llx%16llx", &high, &low) != 2 || high != sum.high ||
        low != sum.low)
        fail(model, "the table says row sum %s, its files %016llx%016llx",
             row_sum ? row_sum : "none", U(sum.high), U(sum.low));
}

static void table_check(struct model *model, struct store *store, uint32_t index,
                        const struct iceberg_table *table)
{
    struct error err;
    struct iceberg_plan plan = {0};
    struct hash128 sum = {0};
    struct seen *seen = &model->seen[index];
    *seen = (struct seen){.exists = true, .snapshots = table->snapshot_count};
    if (table->current) {
        if (iceberg_plan_create(store, table, table->current, NULL, &plan, &err) != STATUS_OK)
            fail(model, "the table cannot be planned: %s", err.message);
        for (size_t i = 0; i < plan.file_count; i++) {
            const struct iceberg_data_file *file = &plan.files[i].file;
            path_seen(model, file->path);
            if (strstr(file->path, "/foreign-")) {
                foreign_seen(model, index, file->path);
                continue;
            }
            sum = hash128_add(sum, file_check(model, index, file));
            seen->own_files++;
        }
        commits_check(model, table, &plan);
    }
    statements_check(model, table, sum, seen);
    iceberg_plan_deinit(&plan);
}

/* ---- all of it ---- */

static void look_main(void *context)
{
    struct model *model = context;
    struct error err;
    struct store *store = NULL;
    struct catalog *catalog = NULL;
    struct catalog_sqlite_options options = {.path = "/catalog/catalog.db"};
    const uint8_t *unused;
    uint64_t bytes;
    if (!sim_file_bytes(model->node, options.path, &unused, &bytes))
        return; /* nothing has come that far */
    if (store_open(model->env, "/lake", &store, &err) != STATUS_OK ||
        catalog_open_sqlite(model->env, store, &options, &catalog, &err) != STATUS_OK)
        fail(model, "store and catalog do not open: %s", err.message);
    for (uint32_t t = 0; t < model->tables; t++) {
        struct iceberg_table *table = NULL;
        enum status status = iceberg_table_load(catalog, table_ident(model, t), &table, &err);
        if (status == STATUS_OK)
            table_check(model, store, t, table);
        else if (status == STATUS_NOT_FOUND && model->is_dropped && t == 0)
            model->seen[t] = (struct seen){0};
        else if (status != STATUS_NOT_FOUND || model->seen[t].has_positions)
            fail(model, "table %u is gone: %s", t, err.message);
        iceberg_table_destroy(table);
    }
    catalog_close(catalog);
    store_close(store);
}

static void presence_check(struct model *model)
{
    for (size_t number = 1; number < model->entry_count; number++) {
        struct entry *entry = &model->entries[number];
        if (entry->must_stay & ~entry->present)
            fail(model, "rows of entry %zu (seq %llu) were in the table and are gone", number,
                 U(entry->seq));
        if (entry->present && entry->present != all_rows(entry))
            fail(model, "entry %zu (seq %llu) is in the table in part", number, U(entry->seq));
        if (model->was_power_cut && !(model->is_damaged && entry->table == 0))
            entry->must_stay |= entry->present;
    }
    for (uint32_t number = 1; number <= model->foreign_count; number++) {
        struct foreign *foreign = &model->foreign[number];
        if (model->is_damaged && foreign->table == 0)
            continue;
        if (foreign->outcome == OUTCOME_APPLIED && !foreign->is_present)
            fail(model, "commit %u of the other engine was answered OK and is gone", number);
        if (model->was_power_cut && foreign->outcome == OUTCOME_OPEN)
            foreign->outcome = foreign->is_present ? OUTCOME_APPLIED : OUTCOME_FAILED;
    }
}

/* The positions in a checkpoint, by its text; false: there is none. */
static bool checkpoint_read(const struct instance *instance, uint32_t table,
                            uint64_t committed[GROUPS_MAX])
{
    struct model *model = instance->model;
    char path[64], text[2048];
    const uint8_t *data;
    uint64_t bytes;
    snprintf(path, sizeof path, "%s/publish/ns.t%u.checkpoint", instance->root, table);
    if (model->story == STORY_LANE_ROT && instance->must_halt[table]) /* it may say anything */
        return false;
    if (!sim_file_bytes(model->node, path, &data, &bytes) || bytes >= sizeof text)
        return false;
    memcpy(text, data, (size_t)bytes);
    text[bytes] = '\0';
    const char *at = strstr(text, "\"committed\"");
    at = at ? strchr(at, ':') : NULL;
    if (!at)
        return false;
    at += strcspn(at, "0123456789");
    for (uint32_t g = 0; g < model->groups; g++) {
        unsigned group;
        unsigned long long seq, chain;
        int used = 0;
        if (sscanf(at, "%u:%llu:%llx%n", &group, &seq, &chain, &used) != 3 || group != g)
            fail(model, "%s: no position of group %u", path, g);
        committed[g] = seq;
        at += used + 1;
    }
    return true;
}

static void checkpoints_check(struct model *model)
{
    uint64_t committed[GROUPS_MAX];
    for (uint32_t i = 0; i < INSTANCES_MAX; i++)
        for (uint32_t t = 0; t < model->tables; t++) {
            const struct instance *instance = &model->instances[i];
            if (!instance->is_there || (model->is_damaged && t == 0) ||
                !checkpoint_read(instance, t, committed))
                continue;
            for (uint32_t g = 0; g < model->groups; g++)
                if (committed[g] > model->seen[t].at[g].seq)
                    fail(model, "table %u group %u: the checkpoint says %llu, the table %llu", t, g,
                         U(committed[g]), U(model->seen[t].at[g].seq));
        }
}

/* How the last run left its lanes. */
static void records_count(const struct model *model)
{
    for (uint32_t t = 0; t < model->tables; t++) {
        char path[64], head[64];
        const uint8_t *data;
        uint64_t bytes;
        snprintf(path, sizeof path, "%s/ns.t%u.journal", model->instances[0].state_dir, t);
        if (!sim_file_bytes(model->node, path, &data, &bytes) || bytes < sizeof head)
            continue;
        memcpy(head, data, sizeof head - 1);
        head[sizeof head - 1] = '\0';
        totals.intents_found += strstr(head, "\"intent\"") != NULL;
        totals.descriptors_found += strstr(head, "\"descriptor\"") != NULL;
    }
}

static void paths_clear(struct model *model)
{
    while (model->path_count > 0)
        free(model->paths[--model->path_count]);
}

void model_look(struct model *model)
{
    struct sim_faults *faults = sim_node_faults(model->node), saved_faults = *faults;
    struct sim_disk_copy *copy = sim_disk_save(model->node);
    paths_clear(model);
    for (size_t number = 1; number < model->entry_count; number++)
        model->entries[number].present = 0;
    for (uint32_t number = 1; number <= model->foreign_count; number++)
        model->foreign[number].is_present = false;
    *faults = (struct sim_faults){.switches = 1};
    sim_node_volume(model->node, UINT64_C(1) << 40);
    if (sim_run(model->node, look_main, model) != SIM_ENDED)
        fail(model, "a look at the table did not end");
    *faults = saved_faults;
    sim_disk_load(model->node, copy);
    presence_check(model);
    checkpoints_check(model);
    model->was_power_cut = false;
    totals.looks++;
    records_count(model);
}

void model_power_gone(struct model *model)
{
    model->was_power_cut = true;
    for (size_t number = 1; number < model->entry_count; number++) {
        struct entry *entry = &model->entries[number];
        if (entry->state == ENTRY_WRITTEN && !entry->present) {
            entry->state = ENTRY_OPEN;
            entry->seq = 0; /* may be given again, under a later term */
            totals.written_lost++;
        }
    }
}

/* ---- the log ---- */

void model_scan_log(struct instance *instance)
{
    struct model *model = instance->model;
    struct error err;
    struct wal_view view;
    struct sim_faults *faults = sim_node_faults(model->node);
    uint32_t alloc_fails = faults->alloc_fails;
    faults->alloc_fails = 0; /* this reading is the model's, not the server's */
    for (size_t number = 1; number < model->entry_count; number++)
        model->entries[number].in_log[instance->index] = false;
    for (uint32_t g = 0; g < model->groups; g++)
        for (uint32_t t = 0; t < model->tables; t++) {
            struct wal_scan *scan = NULL;
            enum status status;
            do {
                uint64_t after = wal_reclaimed_through(instance->wal, g, instance->table_ids[t]);
                status =
                    wal_scan_open(instance->wal, g, instance->table_ids[t], after, &scan, &err);
            } while (status == STATUS_RECLAIMED);
            while (status == STATUS_OK &&
                   (status = wal_scan_next(scan, &view, &err)) == STATUS_OK) {
                if (view.type != WAL_DATA || view.contribution_count != 1)
                    continue;
                uint64_t number = view.contributions[0].body_hash.low;
                if (number == 0 || number >= model->entry_count)
                    fail(model, "the log has an entry that nobody submitted");
                struct entry *entry = &model->entries[number];
                if (entry->seq && entry->seq != view.seq)
                    fail(model, "entry %llu moved from seq %llu to %llu", U(number), U(entry->seq),
                         U(view.seq));
                entry->seq = view.seq;
                entry->in_log[instance->index] = true;
            }
            if (status != STATUS_NOT_FOUND)
                fail(model, "the log cannot be read: %s", err.message);
            wal_scan_close(scan);
        }
    faults->alloc_fails = alloc_fails;
}

/* The log was put back: what it has not, and no table has, is lost. What a table shows may be in
 * the page cache alone (its commit was cut off by a kill): the log that could have brought it back
 * after a power cut is gone. */
static void forget_lost(struct instance *instance)
{
    struct model *model = instance->model;
    model_scan_log(instance);
    for (size_t number = 1; number < model->entry_count; number++) {
        struct entry *entry = &model->entries[number];
        if (model->story == STORY_COPY || entry->in_log[instance->index])
            continue;
        if (!entry->present)
            entry->state = ENTRY_NEVER;
        else if (!entry->must_stay)
            entry->state = ENTRY_OPEN;
    }
    instance->has_new_log = false;
}

static void check_table_open(struct instance *instance, uint32_t t, uint32_t g)
{
    struct model *model = instance->model;
    const struct wal_position *seen = &model->seen[t].at[g];
    uint64_t end = wal_synced_end(instance->wal, g).seq, chain = 0, committed[GROUPS_MAX];
    struct wal_ack ack = {0};
    struct error err;
    wal_ack_get(instance->wal, instance->table_ids[t], g, &ack);
    if (ack.through.seq > end)
        fail(model, "table %u group %u: acknowledged to %llu, the log ends at %llu", t, g,
             U(ack.through.seq), U(end));
    bool is_readable = !(model->story == STORY_LANE_ROT && instance->must_halt[t]);
    if (is_readable && !instance->has_old_state && ack.committed.seq > 0 &&
        (!checkpoint_read(instance, t, committed) || committed[g] < ack.committed.seq))
        fail(model, "table %u group %u: %llu is acknowledged, the checkpoint is below it", t, g,
             U(ack.committed.seq));
    bool is_judged = !(model->is_damaged && t == 0);
    for (size_t number = 1; number < model->entry_count && is_judged; number++) {
        const struct entry *entry = &model->entries[number];
        if (entry->table == t && entry->group == g && is_of(entry, instance) && entry->seq > 0 &&
            entry->seq <= ack.through.seq && entry->state == ENTRY_SYNCED &&
            entry->present != all_rows(entry))
            fail(model, "entry %zu (table %u group %u seq %llu) is acknowledged, not published",
                 number, t, g, U(entry->seq));
    }
    totals.acks_checked++;
    if (seen->seq == 0 || model->story == STORY_COPY || !is_judged)
        return;
    bool is_ahead =
        seen->seq > end || (wal_chain_at(instance->wal, g, seen->seq, &chain, &err) == STATUS_OK &&
                            chain != seen->chain);
    bool may_be = model->story == STORY_OLD_DATA || model->story == STORY_OLD_DATA_MOVED;
    if (is_ahead && !may_be)
        fail(model, "table %u group %u: stands at %llu, the log ends at %llu", t, g, U(seen->seq),
             U(end));
    instance->must_halt[t] |= is_ahead;
}

void model_check_open(struct instance *instance)
{
    struct model *model = instance->model;
    char log_id[LOG_ID_TEXT_BYTES];
    log_id_to_text(wal_log_id(instance->wal), log_id);
    if (model->log_id[0] && strcmp(model->log_id, log_id) != 0)
        fail(model, "the log has another identity");
    memcpy(model->log_id, log_id, sizeof log_id);
    if (instance->has_new_log)
        forget_lost(instance);
    for (uint32_t t = 0; t < model->tables; t++)
        for (uint32_t g = 0; g < model->groups; g++)
            check_table_open(instance, t, g);
}

/* ---- the end ---- */

static void data_file_check(void *context, const char *path, const struct env_stat *stat)
{
    struct model *model = context;
    UNUSED(stat);
    if (!strstr(path, "/data/") || strstr(path, "/foreign-"))
        return;
    totals.orphans_checked++;
    for (size_t i = 0; i < model->path_count; i++)
        if (strcmp(model->paths[i] + strlen("file://"), path) == 0)
            return;
    if (sim_came_back(model->node, path)) /* a removal is not promised to last: left to `orphans` */
        totals.came_back++;
    else
        fail(model, "%s: no snapshot has it, and it is left", path);
}

static void state_file_check(void *context, const char *path, const struct env_stat *stat)
{
    UNUSED(stat);
    if (strstr(path, ".journal"))
        fail(context, "%s: nothing is under way, and it is left", path);
}

static bool is_after_decision(const struct model *model, size_t number)
{
    return model->accepted_from && number >= model->accepted_from;
}

static void entry_check_end(struct model *model, size_t number)
{
    const struct entry *entry = &model->entries[number];
    bool is_promised = entry->state == ENTRY_SYNCED || entry->state == ENTRY_WRITTEN;
    bool is_in_log = false, is_published = false;
    for (uint32_t i = 0; i < INSTANCES_MAX; i++) {
        const struct instance *instance = &model->instances[i];
        if (!instance->is_there)
            continue;
        is_in_log |= entry->in_log[i];
        is_published |= entry->in_log[i] && !instance->is_stopped[entry->table];
    }
    if (entry->present || entry->state == ENTRY_NEVER ||
        (model->is_damaged && entry->table == 0 && !is_after_decision(model, number)))
        return;
    if (is_published)
        fail(model, "entry %zu (table %u group %u seq %llu) is in the log, not in the table",
             number, entry->table, entry->group, U(entry->seq));
    if (is_promised && !is_in_log)
        fail(model, "entry %zu (table %u group %u seq %llu) was promised, and is nowhere", number,
             entry->table, entry->group, U(entry->seq));
}

void model_check_end(struct model *model)
{
    for (size_t number = 1; number < model->entry_count; number++)
        entry_check_end(model, number);
    for (uint32_t t = 0; t < model->tables; t++) {
        bool all_stopped = true;
        for (uint32_t i = 0; i < INSTANCES_MAX; i++) {
            const struct instance *instance = &model->instances[i];
            bool is_missed =
                instance->is_there && instance->must_halt[t] && !instance->is_stopped[t];
            if (is_missed && model->is_evidence_gone && t == 0)
                totals.halts_without_evidence++;
            else if (is_missed)
                fail(model, "table %u is ahead of the log that was put back, and nothing halted",
                     t);
            all_stopped &= !instance->is_there || instance->is_stopped[t];
        }
        if (all_stopped && model->story == STORY_COPY)
            fail(model, "original and copy have both stopped: %s; %s",
                 model->instances[0].reason[t], model->instances[1].reason[t]);
    }
    if (model->story != STORY_PLAIN)
        return; /* what others may still want is left to `orphans` (E14) */
    sim_each_file(model->node, "/lake", data_file_check, model);
    sim_each_file(model->node, "/data/publish", state_file_check, model);
}
