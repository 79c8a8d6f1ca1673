/* SPDX-License-Identifier: Apache-2.0
 *
 * What others do to a table that no protocol can make good: main goes back behind our newest
 * commit, or the table is dropped. The lane must halt, durably, and go on only after an operator's
 * decision.
 *
 * And what a disk does to a lane's own files: whatever they held, the lane halts, and goes on from
 * what the table and the log say once it is told to, with every row there once.
 */
#include <stdio.h>

#include "sim/publish_world.h"

static const struct iceberg_snapshot *newest_own(const struct model *model,
                                                 const struct iceberg_table *table)
{
    char key[96];
    const struct iceberg_snapshot *at = table->current;
    snprintf(key, sizeof key, "sluice.%s.0.positions", model->log_id);
    while (at && !iceberg_snapshot_summary(at, key))
        at = at->parent_id >= 0 ? iceberg_table_snapshot(table, at->parent_id) : NULL;
    return at;
}

/* False: there is nothing to go back to. */
static bool roll_back(struct model *model, struct catalog *catalog, struct iceberg_table *table)
{
    struct error err;
    const struct iceberg_snapshot *own = newest_own(model, table);
    if (!own || own->parent_id < 0 || !iceberg_table_snapshot(table, own->parent_id))
        return false;
    struct catalog_change change;
    struct iceberg_table *after = NULL;
    catalog_change_init(&change, env_wall_ns(model->env) / 1000000);
    catalog_update_set_ref(&change, "main", own->parent_id);
    enum status status = iceberg_change_commit(catalog, table, &change, &after, &err);
    catalog_change_deinit(&change);
    iceberg_table_destroy(after);
    if (status != STATUS_OK)
        fail(model, "main cannot be set back: %s", err.message);
    return true;
}

static void damage_main(void *context)
{
    struct model *model = context;
    struct error err;
    struct store *store = NULL;
    struct catalog *catalog = NULL;
    struct iceberg_table *table = NULL;
    struct catalog_sqlite_options options = {.path = "/catalog/catalog.db"};
    struct catalog_ident ident = table_ident(model, 0);
    if (files_make_dirs(model->env, "/catalog", &err) != STATUS_OK ||
        store_open(model->env, "/lake", &store, &err) != STATUS_OK ||
        catalog_open_sqlite(model->env, store, &options, &catalog, &err) != STATUS_OK)
        fail(model, "store and catalog do not open: %s", err.message);
    enum status status = iceberg_table_load(catalog, ident, &table, &err);
    bool is_ours = status == STATUS_OK && newest_own(model, table);
    if (is_ours && pick(model, 3) == 0) {
        if (catalog_drop_table(catalog, ident, &err) != STATUS_OK)
            fail(model, "the table cannot be dropped: %s", err.message);
        model->is_dropped = model->is_damaged = true;
        totals.tables_dropped++;
    } else if (is_ours && roll_back(model, catalog, table)) {
        model->is_damaged = true;
        totals.rollbacks++;
    }
    iceberg_table_destroy(table);
    catalog_close(catalog);
    store_close(store);
}

void damage_do(struct model *model)
{
    struct sim_faults *faults = sim_node_faults(model->node);
    *faults = (struct sim_faults){.switches = 1};
    CHECK(sim_run(model->node, damage_main, model) == SIM_ENDED);
    if (!model->is_damaged)
        return;
    model->instances[0].must_halt[0] = true;
    for (size_t number = 1; number < model->entry_count; number++)
        if (model->entries[number].table == 0)
            model->entries[number].must_stay = 0;
}

/* ---- rot ---- */

struct rot {
    struct model *model;
    uint32_t table;
    const char *kind;
    bool is_done;
};

static void rot_main(void *context)
{
    struct rot *rot = context;
    struct model *model = rot->model;
    struct error err;
    struct buf bytes = {0};
    char path[128];
    snprintf(path, sizeof path, "%s/ns.%s.%s", model->instances[0].state_dir,
             model->definitions[rot->table].name, rot->kind);
    if (files_read(model->env, path, 1 << 20, &bytes, &err) != STATUS_OK)
        return;
    if (bytes.length && pick(model, 3)) { /* not one that turns a hex digit's case alone */
        size_t at = pick(model, bytes.length);
        bytes.data[at] ^= (uint8_t)(0x80 | (1 << pick(model, 8)));
    } else {
        buf_truncate(&bytes, bytes.length ? pick(model, bytes.length) : 0);
    }
    rot->is_done = files_replace(model->env, path, bytes.data, bytes.length, &err) == STATUS_OK;
    buf_deinit(&bytes);
}

void lane_rot_do(struct model *model)
{
    static const struct {
        const char *kind;
        uint64_t *count;
    } kinds[] = {{"journal", &totals.journals_rotten},
                 {"checkpoint", &totals.checkpoints_rotten},
                 {"halt", &totals.halts_rotten}};
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        struct rot rot = {
            .model = model, .kind = kinds[k].kind, .table = (uint32_t)pick(model, model->tables)};
        /* A second flip could take the first back. */
        if (pick(model, 3) == 0 || model->instances[0].is_rotten[rot.table])
            continue;
        *sim_node_faults(model->node) = (struct sim_faults){.switches = 1};
        CHECK(sim_run(model->node, rot_main, &rot) == SIM_ENDED);
        if (!rot.is_done)
            continue;
        say(model, "the %s of table %u is damaged", rot.kind, rot.table);
        model->instances[0].must_halt[rot.table] = true;
        model->instances[0].is_rotten[rot.table] = true;
        ++*kinds[k].count;
    }
}

void lane_rot_end(struct instance *instance)
{
    struct model *model = instance->model;
    struct error err;
    for (uint32_t t = 0; model->story == STORY_LANE_ROT && t < model->tables; t++) {
        struct publish_lane_info info;
        CHECK(publisher_lane_at(instance->publisher, t, &info));
        bool is_stopped = info.state == PUBLISH_HALTED || info.state == PUBLISH_STOOD_DOWN;
        if (instance->is_rotten[t] && !is_stopped)
            fail(model, "table %u: a damaged file is taken for a good one", t);
        instance->is_rotten[t] = false;
        if (!instance->must_halt[t])
            continue;
        enum status status = STATUS_OK; /* it may have gone on before the process died */
        if (is_stopped)
            status =
                publisher_clear_halt(instance->publisher, info.table, PUBLISH_ACCEPT, 0, 0, &err);
        /* A takeover of its own, which a lost checkpoint knew of: the lane asks once more. */
        if (status == STATUS_HALTED && strstr(err.message, "another owner"))
            status =
                publisher_clear_halt(instance->publisher, info.table, PUBLISH_ACCEPT, 0, 0, &err);
        if (status == STATUS_HALTED || (status != STATUS_OK && model->is_healing))
            fail(model, "table %u does not go on: %s", t, err.message);
        if (status != STATUS_OK) {
            say(model, "table %u stays halted: %s", t, err.message);
            continue;
        }
        instance->must_halt[t] = instance->is_stopped[t] = false;
        totals.rot_ended++;
    }
}
