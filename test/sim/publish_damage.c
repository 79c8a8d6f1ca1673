/* SPDX-License-Identifier: Apache-2.0
 *
 * What others do to a table that no protocol can make good: main goes back behind our newest
 * commit, or the table is dropped. The lane must halt, durably, and go on only after an operator's
 * decision.
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
