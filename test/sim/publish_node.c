/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes: a server in small (log, catalog, store, publisher, writers), and another engine
 * that commits to the same tables through a catalog and a store of its own. All of it is product
 * code but the writers; what they are answered goes into the model.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sim/publish_world.h"

enum { POLLS_MAX = 400, DAY_US_HALF = 43200 };

/* ---- tables and rows ---- */

static struct arrow_field payload_fields[] = {
    {.name = "time", .type = ARROW_TIMESTAMP_US, .is_instant = true},
    {.name = "id", .type = ARROW_INT64},
    {.name = "text", .type = ARROW_UTF8, .is_nullable = true},
};
static const struct arrow_schema payload_schema = {.fields = payload_fields,
                                                   .field_count = COUNT_OF(payload_fields)};
static const char *const sort_columns[] = {"text", "time"};

struct catalog_ident table_ident(const struct model *model, uint32_t table)
{
    return (struct catalog_ident){.ns = model->definitions[table].ns,
                                  .name = model->definitions[table].name};
}

void node_define_tables(struct model *model)
{
    static const char *const names[TABLES_MAX] = {"t0", "t1"};
    for (uint32_t t = 0; t < model->tables; t++)
        model->definitions[t] = (struct publish_table){
            .ns = "ns",
            .name = names[t],
            .schema = &payload_schema,
            .time_column = pick(model, 2) ? "time" : NULL,
            .sort_columns = sort_columns,
            .sort_column_count = (size_t)pick(model, 3),
        };
}

static void rows_append(struct model *model, struct arrow_builder builders[3], uint64_t number,
                        uint32_t rows)
{
    for (uint32_t i = 0; i < rows; i++) {
        char text[80];
        int64_t day = 19000 + (int64_t)pick(model, 3);
        int length =
            snprintf(text, sizeof text, "row %llu.%u %.*s", U(number), i, (int)pick(model, 50),
                     "..................................................");
        arrow_append_i64(&builders[0], day * 86400000000 + (int64_t)pick(model, DAY_US_HALF));
        arrow_append_i64(&builders[1], (int64_t)(number * ROW_STRIDE + i));
        if (pick(model, 5))
            arrow_append_bytes(&builders[2], text, (size_t)length);
        else
            arrow_append_null(&builders[2]);
    }
}

/* False: out of (simulated) memory. */
static bool payload_make(struct model *model, uint64_t number, uint32_t rows, struct buf *out)
{
    struct arrow_builder builders[3] = {0};
    struct arrow_batch batch = {.schema = &payload_schema, .length = rows};
    struct arrow_array columns[3];
    struct error err;
    bool is_made = true;
    arena_init(&batch.arena, 0);
    for (size_t i = 0; i < 3 && is_made; i++)
        is_made = arrow_builder_init(&builders[i], &payload_fields[i], &err) == STATUS_OK;
    if (is_made)
        rows_append(model, builders, number, rows);
    for (size_t i = 0; i < 3 && is_made; i++)
        is_made = !arrow_builder_failed(&builders[i]) &&
                  arrow_builder_view(&builders[i], &batch.arena, &columns[i], &err) == STATUS_OK;
    batch.columns = columns;
    is_made = is_made && arrow_ipc_write_batch(&payload_schema, &batch, ARROW_UNCOMPRESSED, out,
                                               &err) == STATUS_OK;
    for (size_t i = 0; i < 3; i++)
        arrow_builder_deinit(&builders[i]);
    arena_deinit(&batch.arena);
    return is_made;
}

/* ---- writers ---- */

struct request {
    struct wal_submission submission;
    struct wal_entry entries[TABLES_MAX];
    struct wal_contribution contributions[TABLES_MAX];
    struct buf payloads[TABLES_MAX];
    uint64_t numbers[TABLES_MAX];
    struct instance *instance;
    bool is_owned; /* freed when done */
};

static void request_free(struct request *request)
{
    for (size_t i = 0; i < TABLES_MAX; i++)
        buf_deinit(&request->payloads[i]);
    mem_free(request);
}

static void request_done(struct wal_submission *submission, enum status status,
                         const struct error *err)
{
    struct request *request = CONTAINER_OF(submission, struct request, submission);
    struct model *model = request->instance->model;
    UNUSED(err);
    model->outstanding--;
    for (uint32_t i = 0; i < submission->entry_count; i++) {
        struct entry *entry = &model->entries[request->numbers[i]];
        if (status == STATUS_OK) {
            bool is_synced = submission->durability == WAL_SYNCED;
            uint64_t seq = submission->entries[i].seq;
            if (entry->seq && entry->seq != seq)
                fail(model, "entry %llu was published as seq %llu and acknowledged as %llu",
                     U(request->numbers[i]), U(entry->seq), U(seq));
            entry->state = is_synced ? ENTRY_SYNCED : ENTRY_WRITTEN;
            entry->seq = seq;
            totals.rows += entry->rows;
        } else if (status != STATUS_IO && status != STATUS_UNKNOWN_OUTCOME) {
            entry->state = ENTRY_NEVER;
            totals.refused++;
        }
    }
    totals.submissions += status == STATUS_OK;
    if (request->is_owned)
        request_free(request);
}

/* Rows for one table or more, of one group. NULL: out of (simulated) memory. */
static struct request *request_make(struct instance *instance, uint32_t group, uint32_t tables)
{
    struct model *model = instance->model;
    struct request *request = mem_alloc_zero(1, sizeof *request);
    if (!request)
        return NULL;
    request->instance = instance;
    request->submission = (struct wal_submission){
        .entries = request->entries, .done = request_done, .durability = WAL_SYNCED};
    for (uint32_t t = 0; t < model->tables; t++) {
        if (!(tables >> t & 1))
            continue;
        uint32_t rows = 1 + (uint32_t)pick(model, ROWS_MAX), at = request->submission.entry_count;
        uint64_t number = entry_add(model, (struct entry){.instance = instance->index,
                                                          .table = t,
                                                          .group = group,
                                                          .rows = rows,
                                                          .state = ENTRY_NEVER});
        struct buf *payload = &request->payloads[at];
        if (!payload_make(model, number, rows, payload)) {
            request_free(request); /* those made so far were never handed over */
            return NULL;
        }
        request->numbers[at] = number;
        request->contributions[at] =
            (struct wal_contribution){.rows = rows, .body_hash = {.low = number}};
        request->entries[at] =
            (struct wal_entry){.type = WAL_DATA,
                               .group = group,
                               .table_id = instance->table_ids[t],
                               .schema_fingerprint = model->fingerprint,
                               .rows = rows,
                               .contributions = &request->contributions[at],
                               .contribution_count = 1,
                               .payload = span_of(payload->data, payload->length),
                               .payload_crc = crc32c(0, payload->data, payload->length)};
        request->submission.entry_count++;
    }
    for (uint32_t i = 0; i < request->submission.entry_count; i++)
        model->entries[request->numbers[i]].state = ENTRY_OPEN;
    model->outstanding++;
    return request;
}

static enum status append(struct instance *instance, uint32_t group, uint32_t tables,
                          enum wal_durability durability)
{
    struct error err;
    struct request *request = request_make(instance, group, tables);
    if (!request)
        return STATUS_NO_MEMORY;
    request->submission.durability = durability;
    enum status status = wal_append(instance->wal, &request->submission, &err);
    request_free(request);
    return status;
}

static void submit(struct instance *instance, uint32_t group, uint32_t tables,
                   enum wal_durability durability)
{
    struct request *request = request_make(instance, group, tables);
    if (!request)
        return;
    request->is_owned = true;
    request->submission.durability = durability;
    wal_submit(instance->wal, &request->submission);
}

static void writer_main(void *context)
{
    struct instance *instance = context;
    struct model *model = instance->model;
    for (uint32_t i = 0; i < model->ops; i++) {
        uint32_t group = (uint32_t)pick(model, model->groups);
        uint32_t tables = 1 + (uint32_t)pick(model, (1u << model->tables) - 1);
        tables = model->is_narrow ? 1 : tables;
        enum wal_durability durability = pick(model, 3) ? WAL_SYNCED : WAL_WRITTEN;
        uint64_t choice = pick(model, 10);
        if (choice < 4) {
            enum status ignored = append(instance, group, tables, durability);
            UNUSED(ignored); /* the model has it */
        } else if (choice < 6) {
            submit(instance, group, tables, durability);
        } else {
            env_sleep_ms(model->env, 1 + pick(model, 60));
        }
    }
}

/* ---- the other engine ---- */

struct engine {
    struct model *model;
    struct store *store;
    struct catalog *catalog;
};

static enum status engine_append(struct engine *engine, uint32_t t,
                                 const struct iceberg_table *table, struct error *err)
{
    struct model *model = engine->model;
    char uri[STORE_URI_BYTES_MAX];
    uint8_t bytes[200], random_bytes[16];
    if (model->foreign_count + 1 == FOREIGN_MAX)
        return STATUS_OK;
    uint32_t number = ++model->foreign_count;
    struct foreign *foreign = &model->foreign[number];
    *foreign = (struct foreign){.table = t, .outcome = OUTCOME_FAILED};
    snprintf(uri, sizeof uri, "%s/data/foreign-%u", table->location, number);
    memset(bytes, (int)number, sizeof bytes);
    TRY(store_put_if_absent(engine->store, uri, bytes, sizeof bytes, err));
    struct iceberg_value day = {.type = ICEBERG_DATE, .integer = 19001};
    struct iceberg_data_file file = {.path = uri,
                                     .spec_id = table->spec->spec_id,
                                     .partition = &day,
                                     .record_count = 3,
                                     .file_bytes = sizeof bytes,
                                     .sort_order_id = -1};
    if (table->spec->field_count)
        TRY(iceberg_transform_result(table->spec->fields[0].transform, ICEBERG_TIMESTAMPTZ,
                                     &day.type, err));
    env_random(model->env, random_bytes, sizeof random_bytes);
    struct iceberg_append append = {.snapshot_id = iceberg_snapshot_id_create(model->env),
                                    .attempt = uuid_from_random(random_bytes),
                                    .attempt_number = 1,
                                    .now_ms = env_wall_ns(model->env) / 1000000,
                                    .files = &file,
                                    .file_count = 1};
    struct iceberg_table *after = NULL;
    foreign->outcome = OUTCOME_OPEN;
    enum status status = iceberg_append_commit(model->env, engine->catalog, engine->store, table,
                                               &append, &after, err);
    iceberg_table_destroy(after);
    if (status == STATUS_OK)
        foreign->outcome = OUTCOME_APPLIED;
    else if (status != STATUS_UNKNOWN_OUTCOME)
        foreign->outcome = OUTCOME_FAILED;
    totals.foreign_applied += foreign->outcome == OUTCOME_APPLIED;
    totals.foreign_failed += foreign->outcome == OUTCOME_FAILED;
    totals.foreign_unknown += foreign->outcome == OUTCOME_OPEN;
    return status;
}

/* A round that is refused for a roll-back has kept that on disk before it says so. */
static void note_evidence(struct model *model)
{
    struct publish_lane_info info;
    for (size_t i = 0; i < INSTANCES_MAX; i++) {
        struct publisher *publisher = model->instances[i].publisher;
        for (size_t t = 0; publisher && publisher_lane_at(publisher, t, &info); t++)
            model->is_evidence_seen |= strstr(info.reason, "rolled back") != NULL;
    }
}

/* Takes away what there is of ours but the newest few, or everything but main. */
static void expire(struct model *model, const struct iceberg_table *table,
                   struct catalog_change *change)
{
    char text[64 + 24 * 200];
    size_t used =
        (size_t)snprintf(text, sizeof text, "{\"action\":\"remove-snapshots\",\"snapshot-ids\":[");
    uint32_t keep = (uint32_t)pick(model, 4), removed = 0;
    for (uint32_t s = 0; s + keep < table->snapshot_count && removed < 200; s++) {
        if (&table->snapshots[s] == table->current)
            continue;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld", removed ? "," : "",
                                 (long long)table->snapshots[s].snapshot_id);
        removed++;
    }
    snprintf(text + used, sizeof text - used, "]}");
    struct json_value *update = NULL;
    struct error err;
    if (removed == 0 || json_parse(text, strlen(text), &change->arena, &update, &err) != STATUS_OK)
        return;
    catalog_update_add(change, update);
    totals.snapshots_expired += removed;
}

static enum status engine_change(struct engine *engine, const struct iceberg_table *table,
                                 struct error *err)
{
    static const char *const names[] = {"positions", "epoch",   "digest",
                                        "sequence",  "row-sum", "row-sum-schema"};
    struct model *model = engine->model;
    struct catalog_change change;
    struct iceberg_table *after = NULL;
    uint64_t expired = totals.snapshots_expired;
    catalog_change_init(&change, env_wall_ns(model->env) / 1000000);
    if (model->engine_expires && pick(model, 2)) {
        expire(model, table, &change);
    } else if (model->engine_forgets && pick(model, 3) == 0) {
        char key[96];
        size_t count = pick(model, 2) ? 1 : COUNT_OF(names);
        for (size_t i = 0; i < count; i++) {
            snprintf(key, sizeof key, "sluice.%s.0.%s", model->log_id, names[i]);
            if (iceberg_table_property(table, key))
                catalog_update_remove_property(&change, key);
        }
        totals.properties_removed++;
    } else {
        catalog_update_set_property(&change, "owner", pick(model, 2) ? "a" : "b");
        totals.properties_set++;
    }
    note_evidence(model);
    enum status status = iceberg_change_commit(engine->catalog, table, &change, &after, err);
    if (totals.snapshots_expired > expired &&
        (status == STATUS_OK || status == STATUS_UNKNOWN_OUTCOME))
        model->is_evidence_gone |= model->is_damaged && !model->is_evidence_seen &&
                                   strcmp(table->name, model->definitions[0].name) == 0;
    iceberg_table_destroy(after);
    catalog_change_deinit(&change);
    return status;
}

static void engine_main(void *context)
{
    struct model *model = context;
    struct engine engine = {.model = model};
    struct catalog_sqlite_options options = {.path = "/catalog/catalog.db"};
    struct error err;
    enum status status = store_open(model->env, "/lake", &engine.store, &err);
    if (status == STATUS_OK)
        status = catalog_open_sqlite(model->env, engine.store, &options, &engine.catalog, &err);
    for (uint32_t i = 0; i < model->engine_ops && status == STATUS_OK; i++) {
        uint32_t t = (uint32_t)pick(model, model->tables);
        struct iceberg_table *table = NULL;
        env_sleep_ms(model->env, 1 + pick(model, 150));
        if (iceberg_table_load(engine.catalog, table_ident(model, t), &table, &err) != STATUS_OK)
            continue;
        if (pick(model, 3))
            status = engine_append(&engine, t, table, &err);
        else
            status = engine_change(&engine, table, &err);
        say(model, "the other engine, table %u: %s", t, status == STATUS_OK ? "ok" : err.message);
        status = STATUS_OK; /* it tries something else next time */
        iceberg_table_destroy(table);
    }
    catalog_close(engine.catalog);
    store_close(engine.store);
}

/* ---- a server ---- */

static void lanes_note(struct instance *instance)
{
    struct model *model = instance->model;
    for (uint32_t t = 0; t < model->tables; t++) {
        struct publish_lane_info info;
        if (!publisher_lane_at(instance->publisher, t, &info))
            continue;
        bool is_stopped = info.state == PUBLISH_HALTED || info.state == PUBLISH_STOOD_DOWN;
        if (is_stopped && !instance->is_stopped[t]) {
            say(model, "%s: table %u stops: %s", instance->root, t, info.reason);
            totals.halts += info.state == PUBLISH_HALTED;
            totals.stand_downs += info.state == PUBLISH_STOOD_DOWN;
        }
        instance->is_stopped[t] = is_stopped;
        snprintf(instance->reason[t], sizeof instance->reason[t], "%s", info.reason);
        if (is_stopped && !instance->must_halt[t] && model->story != STORY_COPY &&
            !model->is_rotten)
            fail(model, "table %u halted without a reason: %s", t, info.reason);
    }
}

static void poller_main(void *context)
{
    struct instance *instance = context;
    struct error err;
    while (!instance->must_stop) {
        enum status status = publisher_run_once(instance->publisher, &err);
        if (status != STATUS_OK) {
            say(instance->model, "%s: round: %s", instance->root, err.message);
            instance->model->is_evidence_seen |= strstr(err.message, "rolled back") != NULL;
        }
        env_sleep_ms(instance->model->env, 1 + pick(instance->model, 100));
    }
}

static enum status open_tables(struct instance *instance, struct error *err)
{
    struct model *model = instance->model;
    struct buf message = {0};
    enum status status = arrow_ipc_write_schema(&payload_schema, &message, err);
    model->fingerprint = arrow_schema_fingerprint(&payload_schema);
    for (uint32_t t = 0; t < model->tables && status == STATUS_OK; t++) {
        char name[32];
        snprintf(name, sizeof name, "ns.%s", model->definitions[t].name);
        status = wal_table_open(instance->wal, name, &instance->table_ids[t], err);
    }
    if (status == STATUS_OK)
        status = wal_schema_add(instance->wal, model->fingerprint,
                                span_of(message.data, message.length), err);
    buf_deinit(&message);
    return status;
}

/* Whether this failure is one that the faults of this run explain. */
static bool is_expected(struct model *model, enum status status)
{
    const struct sim_faults *faults = sim_node_faults(model->node);
    bool may_sync_fail = faults->sync_fails || faults->dir_sync_fails;
    return status == STATUS_NO_SPACE || status == STATUS_NO_MEMORY || status == STATUS_BUSY ||
           ((status == STATUS_IO || status == STATUS_UNKNOWN_OUTCOME) &&
            (may_sync_fail || faults->alloc_fails || faults->write_no_space || model->is_tight));
}

/* In every fourth seed the log is as if it were elsewhere. */
static enum status open_source(struct instance *instance, struct error *err)
{
    struct model *model = instance->model;
    if (model->seed % 4 != 1)
        return source_local_create(instance->wal, &instance->source, err);
    uint32_t fails = model->seed % 8 == 1 ? 2000 : 12000;
    totals.sources_elsewhere++;
    return flaky_source_create(instance->wal, model->seed + ++model->sources, fails,
                               &model->is_healing, &totals.silences, &instance->source, err);
}

static enum status open_lake(struct instance *instance, struct error *err)
{
    struct model *model = instance->model;
    struct catalog_sqlite_options options = {.path = "/catalog/catalog.db"};
    TRY(files_make_dirs(model->env, "/catalog", err));
    TRY(store_open(model->env, "/lake", &instance->store, err));
    TRY(catalog_open_sqlite(model->env, instance->store, &options, &instance->catalog, err));
    struct publish_options publishing = model->publish_options;
    publishing.state_dir = instance->state_dir;
    TRY(open_source(instance, err));
    return publisher_create(model->env, &publishing, instance->source, instance->catalog,
                            instance->store, model->definitions, model->tables,
                            &instance->publisher, err);
}

static void server_close(struct instance *instance)
{
    if (instance->publisher)
        lanes_note(instance);
    publisher_destroy(instance->publisher);
    source_destroy(instance->source);
    catalog_close(instance->catalog);
    store_close(instance->store);
    wal_close(instance->wal);
    instance->publisher = NULL;
    instance->source = NULL;
    instance->catalog = NULL;
    instance->store = NULL;
    instance->wal = NULL;
}

static bool server_open(struct instance *instance)
{
    struct model *model = instance->model;
    struct error err;
    struct wal_options logging = model->wal_options;
    logging.dir = instance->log_dir;
    enum status status = files_make_dirs(model->env, instance->root, &err);
    if (status == STATUS_OK)
        status = wal_open(model->env, &logging, &instance->wal, &err);
    if (status == STATUS_OK)
        status = open_tables(instance, &err);
    if (status == STATUS_OK) {
        struct wal_recovery report = wal_recovery_report(instance->wal);
        totals.tails_cut += report.tails_cut;
        totals.segments_dropped += report.segments_dropped;
        model_check_open(instance);
        status = open_lake(instance, &err);
    }
    if (status == STATUS_OK) {
        lane_rot_end(instance);
        return true;
    }
    say(model, "%s does not open: %s", instance->root, err.message);
    if (!is_expected(model, status))
        fail(model, "%s does not open: %s", instance->root, err.message);
    totals.open_refused++;
    server_close(instance);
    return false;
}

static void backup_main(void *context)
{
    struct model *model = context;
    env_sleep_ms(model->env, pick(model, 300));
    for (uint64_t i = pick(model, 200); i > 0; i--)
        env_mono_ns(model->env); /* anywhere between two calls of the others */
    const struct instance *instance = &model->instances[0];
    model->saved = saved_dir_take(model, model->story == STORY_OLD_STATE ? instance->state_dir
                                                                         : instance->root);
    totals.backups_live++;
}

static void publisher_begin(struct instance *instance)
{
    struct model *model = instance->model;
    struct error err;
    instance->must_stop = false;
    instance->poller = NULL;
    enum status status = model->with_thread ? publisher_start(instance->publisher, &err)
                                            : env_thread_start(model->env, "poller", poller_main,
                                                               instance, &instance->poller, &err);
    if (status != STATUS_OK)
        say(model, "nobody publishes: %s", err.message);
}

static void publisher_end(struct instance *instance)
{
    instance->must_stop = true;
    env_thread_join(instance->poller);
    instance->poller = NULL;
    publisher_stop(instance->publisher, pick(instance->model, 2), 1000);
}

/* Everything that is there goes into the tables, or the lane stops. */
static void publish_all(struct instance *instance)
{
    struct model *model = instance->model;
    struct error err = {0};
    for (int i = 0; i < POLLS_MAX; i++) {
        enum status status = publisher_run_once(instance->publisher, &err);
        bool is_busy = false;
        lanes_note(instance);
        for (uint32_t t = 0; t < model->tables; t++) {
            struct publish_lane_info info;
            CHECK(publisher_lane_at(instance->publisher, t, &info));
            is_busy |= !instance->is_stopped[t] && (info.state != PUBLISH_IDLE || info.lag_rows);
        }
        if (!is_busy)
            return;
        if (status == STATUS_OK && i > POLLS_MAX / 2)
            break;
        env_sleep_ms(model->env, 100);
    }
    fail(model, "%s: publication does not come to an end: %s", instance->root, err.message);
}

/* The operator takes the table as it is now: what was removed stays removed, new rows go in. */
static void accept_damage(struct instance *instance)
{
    struct model *model = instance->model;
    struct error err;
    if (!model->is_damaged || model->is_dropped || !instance->is_stopped[0])
        return;
    if (publisher_clear_halt(instance->publisher, "ns.t0", PUBLISH_ACCEPT, 0, 0, &err) != STATUS_OK)
        fail(model, "a halt cannot be cleared: %s", err.message);
    totals.decisions++;
    instance->must_halt[0] = instance->is_stopped[0] = false;
    model->accepted_from = model->entry_count;
}

static void instance_heal(struct instance *instance)
{
    struct model *model = instance->model;
    if (model->is_quiet)
        accept_damage(instance);
    if (model->is_rotten) {
        publish_all(instance);
        rot_repair(instance);
    }
    for (uint32_t g = 0; g < model->groups && (!model->is_quiet || model->accepted_from); g++) {
        enum status status = append(instance, g, (1u << model->tables) - 1, WAL_SYNCED);
        for (int i = 0; i < 50 && status == STATUS_NO_SPACE; i++) { /* the budget: publish first */
            publish_all(instance);
            env_sleep_ms(model->env, 100); /* what was published is swept */
            status = append(instance, g, (1u << model->tables) - 1, WAL_SYNCED);
        }
        bool may_fill = instance->is_stopped[0] || instance->is_stopped[1];
        if (status != STATUS_OK && !(may_fill && status == STATUS_NO_SPACE))
            fail(model, "%s: refuses a row: %s", instance->root, status_name(status));
    }
    publish_all(instance);
    model_scan_log(instance);
}

void node_main(void *context)
{
    struct model *model = context;
    struct env_thread *threads[INSTANCES_MAX * 4 + 2] = {0};
    size_t count = 0;
    struct error err;
    bool is_open[INSTANCES_MAX] = {0};
    for (uint32_t i = 0; i < INSTANCES_MAX; i++)
        is_open[i] = model->instances[i].is_there && server_open(&model->instances[i]);
    for (uint32_t i = 0; i < INSTANCES_MAX && !model->is_healing; i++) {
        if (!is_open[i])
            continue;
        if (!model->is_unpublished)
            publisher_begin(&model->instances[i]);
        for (uint32_t w = 0; w < model->writers; w++)
            if (env_thread_start(model->env, "writer", writer_main, &model->instances[i],
                                 &threads[count], &err) == STATUS_OK)
                count++;
    }
    if (model->engine_ops && !model->is_healing &&
        env_thread_start(model->env, "engine", engine_main, model, &threads[count], &err) ==
            STATUS_OK)
        count++;
    if (model->wants_copy && is_open[0] && !model->saved &&
        env_thread_start(model->env, "backup", backup_main, model, &threads[count], &err) ==
            STATUS_OK)
        count++;
    while (count > 0)
        env_thread_join(threads[--count]);
    for (uint32_t i = 0; i < INSTANCES_MAX; i++) {
        if (!is_open[i])
            continue;
        if (model->is_healing)
            instance_heal(&model->instances[i]);
        else if (!model->is_unpublished)
            publisher_end(&model->instances[i]);
    }
    /* In COPY one that healed first may have rows that the other's takeover left to it. */
    for (uint32_t i = 0; i < INSTANCES_MAX; i++) {
        if (!is_open[i])
            continue;
        totals.compacted += wal_usage(model->instances[i].wal).segments_compacted;
        server_close(&model->instances[i]);
    }
    if (model->outstanding)
        fail(model, "%llu submissions were never answered", U(model->outstanding));
}
