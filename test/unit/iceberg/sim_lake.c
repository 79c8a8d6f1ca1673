/* SPDX-License-Identifier: Apache-2.0
 *
 * Commits to a table under simulated faults, against a model that shares no code with them.
 *
 *   sim_lake [--seeds FIRST COUNT]     (default 1 100)
 *   sim_lake --seed N                  replays one, with what happened
 *
 * Each seed is one world with one table. A run opens store and catalog, reads the table, makes what
 * it read last (E10), and appends; it ends cleanly, by a kill or by a power cut at any disk call,
 * or fails with errors of disk and memory on the way. After each, on what is left:
 *
 *   - a commit that answered OK, or that was read and made durable, is in the history of main for
 * ever
 *   - a commit that failed for certain is never there; one of unknown outcome is there or not
 *   - an unknown one that a later commit's history lacks never comes back
 *   - main's whole history can be read: metadata, lists, manifests, and the files with their bytes
 *
 * A failure prints the seed.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lake/iceberg/iceberg.h"
#include "sim/sim.h"

enum { RUNS = 8, ATTEMPTS_MAX = 64, FILE_BYTES = 700 };

enum outcome { OUTCOME_OPEN, OUTCOME_APPLIED, OUTCOME_NOT_APPLIED };

struct attempt {
    int64_t snapshot_id;
    enum outcome outcome;
};

struct model {
    uint64_t seed;
    bool is_verbose, has_failed, was_created;
    struct sim *sim;
    struct sim_node *node;
    struct env *env;
    struct attempt attempts[ATTEMPTS_MAX]; /* snapshot ids are 1, 2, ...: index + 1 */
    size_t count;
    uint64_t applied, not_applied, unknown, learned, vanished; /* what was exercised */
};

static const struct catalog_ident ident = {.ns = "ns", .name = "t"};

static void fail(struct model *model, const char *what, int64_t id, const struct error *err)
{
    model->has_failed = true;
    printf("# seed %llu: %s (snapshot %lld): %s\n", (unsigned long long)model->seed, what,
           (long long)id, err ? err->message : "");
}

static void say(const struct model *model, const char *what, int64_t id, const struct error *err)
{
    if (model->is_verbose)
        printf("# %s %lld %s\n", what, (long long)id, err ? err->message : "");
}

/* ---- what the table says ---- */

static bool in_history(const struct iceberg_table *table, int64_t id)
{
    const struct iceberg_snapshot *at = table->current;
    while (at && at->snapshot_id != id)
        at = at->parent_id >= 0 ? iceberg_table_snapshot(table, at->parent_id) : NULL;
    return at != NULL;
}

static void check_file(struct model *model, struct store *store,
                       const struct iceberg_live_file *live)
{
    struct error err;
    struct buf bytes;
    buf_init(&bytes, 0);
    enum status status = store_get(store, live->file.path, FILE_BYTES, &bytes, &err);
    if (status == STATUS_OK) {
        bool is_whole = bytes.length == FILE_BYTES;
        for (size_t i = 0; i < bytes.length; i++)
            is_whole = is_whole && bytes.data[i] == (uint8_t)live->snapshot_id;
        if (!is_whole)
            fail(model, "a file's bytes are not what was written", live->snapshot_id, NULL);
    } else if (status != STATUS_NO_MEMORY) {
        fail(model, "a file cannot be read", live->snapshot_id, &err);
    }
    buf_deinit(&bytes);
}

/* Whether what is there may be there, and what must be there is. */
static void check_table(struct model *model, struct store *store, const struct iceberg_table *table)
{
    struct error err;
    struct iceberg_plan plan;
    for (size_t i = 0; i < model->count; i++) {
        bool is_there = in_history(table, model->attempts[i].snapshot_id);
        if (model->attempts[i].outcome == OUTCOME_APPLIED && !is_there)
            fail(model, "a durable commit is gone", (int64_t)i + 1, NULL);
        if (model->attempts[i].outcome == OUTCOME_NOT_APPLIED && is_there)
            fail(model, "a failed commit is there", (int64_t)i + 1, NULL);
    }
    if (!table->current)
        return;
    enum status status = iceberg_plan_create(store, table, table->current, NULL, &plan, &err);
    if (status == STATUS_NO_MEMORY)
        return;
    if (status != STATUS_OK) {
        fail(model, "the history cannot be read", table->current->snapshot_id, &err);
        return;
    }
    if (plan.file_count != (size_t)table->snapshot_count)
        fail(model, "not one file a snapshot", (int64_t)plan.file_count, NULL);
    for (size_t i = 0; i < plan.file_count; i++)
        check_file(model, store, &plan.files[i]);
    iceberg_plan_deinit(&plan);
}

/* `table` lasts: what is in it is applied for ever. */
static void learn(struct model *model, const struct iceberg_table *table)
{
    for (size_t i = 0; i < model->count; i++) {
        struct attempt *attempt = &model->attempts[i];
        if (attempt->outcome != OUTCOME_OPEN || !in_history(table, attempt->snapshot_id))
            continue;
        attempt->outcome = OUTCOME_APPLIED;
        model->learned++;
    }
}

/* A commit on top of `table` lasts: what it does not descend from has lost its base. */
static void exclude(struct model *model, const struct iceberg_table *table)
{
    for (size_t i = 0; i < model->count; i++) {
        struct attempt *attempt = &model->attempts[i];
        if (attempt->outcome != OUTCOME_OPEN || in_history(table, attempt->snapshot_id))
            continue;
        attempt->outcome = OUTCOME_NOT_APPLIED;
        model->vanished++;
    }
}

/* ---- what a run does ---- */

static enum status create(struct model *model, struct catalog *catalog, struct store *store,
                          struct iceberg_table **out_table, struct error *err)
{
    struct iceberg_field field = {.id = 1, .name = "x", .type = ICEBERG_LONG};
    struct iceberg_schema schema = {.fields = &field, .field_count = 1};
    struct iceberg_table_options options = {.schema = &schema};
    enum status status =
        iceberg_table_create(model->env, catalog, store, ident, &options, out_table, err);
    model->was_created |= status == STATUS_OK;
    return status;
}

static enum status append(struct model *model, struct catalog *catalog, struct store *store,
                          struct iceberg_table **table, struct error *err)
{
    int64_t id = (int64_t)model->count + 1;
    uint8_t bytes[FILE_BYTES], random[16];
    char path[64];
    memset(bytes, (int)id, sizeof bytes);
    env_random(model->env, random, sizeof random);
    snprintf(path, sizeof path, "file:///lake/data/%d-%02x%02x", (int)id, random[0], random[1]);
    TRY(store_put_if_absent(store, path, bytes, sizeof bytes, err));
    struct iceberg_data_file file = {
        .path = path, .record_count = 1, .file_bytes = FILE_BYTES, .sort_order_id = -1};
    struct iceberg_append request = {.snapshot_id = id,
                                     .attempt = uuid_from_random(random),
                                     .now_ms = env_wall_ns(model->env) / 1000000,
                                     .files = &file,
                                     .file_count = 1};
    struct attempt *attempt = &model->attempts[model->count++];
    *attempt = (struct attempt){.snapshot_id = id};
    struct iceberg_table *next;
    enum status status =
        iceberg_append_commit(model->env, catalog, store, *table, &request, &next, err);
    say(model, status_name(status), id, status == STATUS_OK ? NULL : err);
    if (status == STATUS_OK) {
        attempt->outcome = OUTCOME_APPLIED;
        model->applied++;
        iceberg_table_destroy(*table);
        *table = next;
        exclude(model, next);
    } else if (status == STATUS_UNKNOWN_OUTCOME) {
        model->unknown++;
    } else {
        attempt->outcome = OUTCOME_NOT_APPLIED;
        model->not_applied++;
    }
    return status;
}

static enum status load(struct model *model, struct catalog *catalog, struct store *store,
                        struct iceberg_table **out_table, struct error *err)
{
    struct iceberg_table *table;
    enum status status = iceberg_table_load(catalog, ident, &table, err);
    if (status == STATUS_NOT_FOUND) {
        if (model->was_created)
            fail(model, "the table is gone", 0, err);
        return create(model, catalog, store, out_table, err);
    }
    if (status == STATUS_CORRUPT)
        fail(model, "the table is damaged", 0, err);
    TRY(status);
    check_table(model, store, table);
    status = iceberg_table_make_durable(catalog, store, table, err);
    if (status == STATUS_OK) {
        model->was_created = true;
        learn(model, table);
        *out_table = table;
    } else {
        iceberg_table_destroy(table);
    }
    return status;
}

static void node_main(void *context)
{
    struct model *model = context;
    struct error err;
    struct store *store = NULL;
    struct catalog *catalog = NULL;
    struct iceberg_table *table = NULL;
    struct catalog_sqlite_options options = {.path = "/catalog/catalog.db"};
    /* Apart from the tables: what syncs their directories must not help the catalog by chance. */
    enum status status = files_make_dirs(model->env, "/catalog", &err);
    if (status == STATUS_OK)
        status = store_open(model->env, "/lake", &store, &err);
    if (status == STATUS_OK)
        status = catalog_open_sqlite(model->env, store, &options, &catalog, &err);
    if (status == STATUS_OK)
        status = load(model, catalog, store, &table, &err);
    say(model, "opened", (int64_t)status, status == STATUS_OK ? NULL : &err);
    if (status == STATUS_OK && random_chance(sim_random(model->sim), 1, 5))
        sim_crash(model->node, SIM_POWER_CUT); /* what was read has been made to last */
    uint64_t wanted = 1 + random_below(sim_random(model->sim), 6);
    for (uint64_t i = 0; i < wanted && status == STATUS_OK && model->count < ATTEMPTS_MAX; i++) {
        status = append(model, catalog, store, &table, &err);
        if (status == STATUS_OK)
            continue;
        /* The state may have moved without us: read it again, as a lane does. */
        iceberg_table_destroy(table);
        table = NULL;
        status = load(model, catalog, store, &table, &err);
    }
    iceberg_table_destroy(table);
    catalog_close(catalog);
    store_close(store);
}

static void set_faults(struct sim_faults *faults, struct random *random, bool is_last)
{
    *faults = (struct sim_faults){.switches = faults->switches};
    if (is_last || random_chance(random, 1, 2))
        return;
    faults->sync_fails = random_chance(random, 1, 2) ? 3000 : 0;
    faults->dir_sync_fails = random_chance(random, 1, 2) ? 3000 : 0;
    faults->write_no_space = random_chance(random, 1, 3) ? 1000 : 0;
    faults->alloc_fails = random_chance(random, 1, 3) ? 300 : 0;
    faults->clock_steps = random_chance(random, 1, 3) ? 6000 : 0;
}

static bool run_seed(uint64_t seed, bool is_verbose, struct model *totals)
{
    struct model *model = calloc(1, sizeof *model);
    model->seed = seed;
    model->is_verbose = is_verbose;
    model->sim = sim_create(seed);
    struct sim_node *node = sim_node_create(model->sim, UINT64_C(1) << 30);
    struct random *random = sim_random(model->sim);
    model->node = node;
    model->env = sim_node_env(node);
    for (int run = 0; run < RUNS && !model->has_failed; run++) {
        bool is_last = run == RUNS - 1;
        enum sim_end how = random_chance(random, 1, 3) ? SIM_KILLED : SIM_POWER_CUT;
        uint64_t at = random_chance(random, 1, 5) ? 0 : 1 + random_below(random, 120);
        set_faults(sim_node_faults(node), random, is_last);
        sim_crash_at(node, how, is_last ? 0 : at);
        enum sim_end end = sim_run(node, node_main, model);
        sim_crash_at(node, how, 0);
        say(model, "run ended", (int64_t)end, NULL);
        if (end == SIM_STUCK)
            fail(model, "stuck", run, NULL);
        if (random_chance(random, 1, 4))
            sim_power_cut(node);
    }
    bool has_failed = model->has_failed;
    totals->applied += model->applied;
    totals->not_applied += model->not_applied;
    totals->unknown += model->unknown;
    totals->learned += model->learned;
    totals->vanished += model->vanished;
    sim_destroy(model->sim);
    free(model);
    return !has_failed;
}

/* SQLite's memory of a node that crashed is nobody's. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libsqlite3\n";
}

int main(int argc, char **argv)
{
    uint64_t first = 1, count = 100;
    struct model totals = {0};
    bool is_one = argc == 3 && strcmp(argv[1], "--seed") == 0, is_good = true;
    if (is_one)
        first = strtoull(argv[2], NULL, 10), count = 1;
    else if (argc == 4 && strcmp(argv[1], "--seeds") == 0)
        first = strtoull(argv[2], NULL, 10), count = strtoull(argv[3], NULL, 10);
    for (uint64_t seed = first; seed < first + count; seed++)
        is_good &= run_seed(seed, is_one, &totals);
    const struct {
        const char *what;
        uint64_t times;
    } rows[] = {{"commits applied", totals.applied},
                {"commits refused for certain", totals.not_applied},
                {"commits of unknown outcome", totals.unknown},
                {"unknown commits found and made durable", totals.learned},
                {"unknown commits excluded by a later one", totals.vanished}};
    printf("1..%zu\n", COUNT_OF(rows) + 1);
    printf("%s 1 - no seed failed\n", is_good ? "ok" : "not ok");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bool was_seen = rows[i].times > 0 || is_one;
        printf("%s %zu - %s: %llu\n", was_seen ? "ok" : "not ok", i + 2, rows[i].what,
               (unsigned long long)rows[i].times);
        is_good &= was_seen;
    }
    return is_good ? 0 : 1;
}
