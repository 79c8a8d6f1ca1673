/* SPDX-License-Identifier: Apache-2.0
 *
 * The log under simulated faults, against a model that shares no code with it.
 *
 *   sim_wal [--seeds FIRST COUNT]     (default 1 200)
 *   sim_wal --seed N                  replays one, with what happened
 *   SIM_SHARE=N                       runs one of N of the seeds (slow builds); properties that few
 *                                     seeds reach are then reported, and not demanded
 *
 * Each seed is one world: small segments, a few workers that append, submit, produce with sequence
 * numbers, acknowledge, consume, seal, scan and idle; a run ends cleanly, by a kill, by the
 * engine's own exit or by a power cut; then the log is opened again on what is left and everything
 * is checked:
 *
 *   - a synced entry is there until its table acknowledged it, at its seq, with its chain and bytes
 *   - so is an entry that any scan ever showed (L23), and a written one unless power was lost
 *   - a submission is there whole or not at all; nothing is there twice; nothing refused is there
 *   - no (term, seq) and no synced seq is ever used for anything else (L3)
 *   - completions come in the order of submission within a durability
 *   - a producer's number is stored once, and a repeat gets the receipt of the entry that holds it
 *   - a producer expires no earlier than it may, whatever the wall clock does, and never begins
 *     again at 1
 *   - an acknowledgement that returned is still known; nothing unacknowledged is reclaimed
 *   - what bit rot took is named, and nothing else is missing
 *   - what a consumer acknowledged is known, and what he holds is there (wal_consumers.c)
 *   - the allocated bytes reported are those of the files
 *
 * A failure prints the seed. TAP: one line for each property that must have been exercised.
 */
#include "sim/wal_model.h"

static const char dir[] = "/data/log";

/* ---- a run ---- */

static bool tables_open(struct model *model, struct error *err)
{
    for (uint32_t t = 0; t < TABLES; t++) {
        char name[16];
        uint32_t id;
        snprintf(name, sizeof name, "ns.t%u", t);
        if (wal_table_open(model->wal, name, &id, err) != STATUS_OK)
            return false;
        if (model->table_ids[t] && model->table_ids[t] != id)
            fail(model, "table %s was %u and is %u", name, model->table_ids[t], id);
        model->table_ids[t] = id;
        if (wal_schema_add(model->wal, 77 + t, span_of_text("schema of some table"), err) !=
            STATUS_OK)
            return false;
    }
    return true;
}

static void run_main(void *context)
{
    struct model *model = context;
    struct env *env = sim_node_env(model->node);
    struct worker workers[WORKERS_MAX];
    struct env_thread *threads[WORKERS_MAX] = {0};
    struct error err;
    enum status status = wal_open(env, &model->options, &model->wal, &err);
    if (status != STATUS_OK) {
        say(model, "open: %s: %s", status_name(status), err.message);
        const struct sim_faults *faults = sim_node_faults(model->node);
        bool is_sync = status == STATUS_IO && (faults->sync_fails || faults->dir_sync_fails);
        if (status != STATUS_NO_SPACE && status != STATUS_NO_MEMORY &&
            status != STATUS_UNKNOWN_OUTCOME && !is_sync)
            fail(model, "open: %s: %s", status_name(status), err.message);
        totals.open_refused++;
        model->wal = NULL;
        return;
    }
    struct wal_recovery report = wal_recovery_report(model->wal);
    totals.cut += report.tails_cut;
    totals.dropped += report.segments_dropped;
    say(model, "open: term %llu, %llu segments, %llu entries, %llu cut, %llu damaged",
        U(wal_term(model->wal)), U(report.segments), U(report.entries), U(report.tails_cut),
        U(report.damaged_ranges));
    struct wal_segment_info info;
    for (size_t i = 0; wal_segment_at(model->wal, i, &info); i++)
        totals.found_compacted += info.is_compacted;
    if (wal_term(model->wal) <= model->term_last)
        fail(model, "term %llu after %llu", U(wal_term(model->wal)), U(model->term_last));
    model->term_last = wal_term(model->wal);
    if (tables_open(model, &err)) {
        if (check_all(model))
            model->is_power_lost = false;
        for (uint32_t i = 0; i < model->workers; i++) {
            workers[i] = (struct worker){.model = model, .index = i};
            if (env_thread_start(env, "worker", worker_main, &workers[i], &threads[i], &err) !=
                STATUS_OK)
                threads[i] = NULL;
        }
        for (uint32_t i = 0; i < model->workers; i++)
            env_thread_join(threads[i]);
        budget_check(model, dir);
        backlogs_check(model);
        totals.copied_ahead += wal_usage(model->wal).units_copied_ahead;
        totals.taken_back += wal_usage(model->wal).copies_taken_back;
        totals.lapsed += wal_usage(model->wal).holds_lapsed;
        totals.gave_way += wal_usage(model->wal).holds_released;
        totals.compacted += wal_usage(model->wal).segments_compacted;
    }
    wal_close(model->wal);
    model->wal = NULL;
    if (model->outstanding)
        fail(model, "%llu submissions were never completed", U(model->outstanding));
}

/* ---- a world ---- */

struct listing {
    char paths[256][96];
    uint64_t bytes[256];
    size_t count;
};

static void list_sealed(void *context, const char *path, const struct env_stat *stat)
{
    struct listing *listing = context;
    bool is_sealed = strstr(path, "/sealed/") || strstr(path, "/committed/");
    if (!is_sealed || listing->count == COUNT_OF(listing->paths) || stat->bytes == 0)
        return;
    snprintf(listing->paths[listing->count], sizeof listing->paths[0], "%s", path);
    listing->bytes[listing->count++] = stat->bytes;
}

static void list_state(void *context, const char *path, const struct env_stat *stat)
{
    struct listing *listing = context;
    if (!strstr(path, ".state") || listing->count == COUNT_OF(listing->paths))
        return;
    snprintf(listing->paths[listing->count], sizeof listing->paths[0], "%s", path);
    listing->bytes[listing->count++] = stat->bytes < 4096 ? stat->bytes : 4096;
}

static void rot(struct model *model)
{
    static struct listing listing;
    listing.count = 0;
    sim_each_file(model->node, dir, list_sealed, &listing);
    if (listing.count == 0)
        return;
    size_t at = (size_t)pick(model, listing.count);
    uint64_t offset = pick(model, listing.bytes[at]);
    if (sim_flip_bit(model->node, listing.paths[at], offset, (unsigned)pick(model, 8))) {
        model->has_rot = true;
        say(model, "rot: %s at %llu", listing.paths[at], U(offset));
    }
}

/* The newest checkpoint's base, once it has an older one beside it. */
static bool rot_state(struct model *model)
{
    static struct listing listing;
    size_t newest = 0;
    listing.count = 0;
    sim_each_file(model->node, dir, list_state, &listing);
    if (listing.count != 2)
        return false;
    for (size_t i = 1; i < listing.count; i++)
        if (strcmp(listing.paths[i], listing.paths[newest]) > 0)
            newest = i;
    say(model, "rot: %s", listing.paths[newest]);
    return sim_flip_bit(model->node, listing.paths[newest], pick(model, 64), 1);
}

static void faults_choose(struct model *model)
{
    struct sim_faults *faults = sim_node_faults(model->node);
    *faults = (struct sim_faults){.switches = pick(model, 3) ? 16384 : 1024};
    if (pick(model, 4) == 0)
        faults->sync_fails = 1 + (uint32_t)pick(model, 400);
    if (pick(model, 8) == 0)
        faults->dir_sync_fails = 1 + (uint32_t)pick(model, 300);
    if (pick(model, 5) == 0)
        faults->write_no_space = 1 + (uint32_t)pick(model, 1500);
    if (pick(model, 5) == 0)
        faults->allocate_no_space = 1 + (uint32_t)pick(model, 20000);
    if (pick(model, 8) == 0)
        faults->alloc_fails = 1 + (uint32_t)pick(model, 300);
    if (pick(model, 4) == 0)
        faults->clock_steps = 1 + (uint32_t)pick(model, 3000);
}

static void options_choose(struct model *model)
{
    struct wal_options *options = &model->options;
    *options = wal_options_default(dir);
    options->group_count = model->groups;
    options->segment_bytes = (16 + 4 * pick(model, 13)) << 10;
    options->budget_bytes = options->segment_bytes * (10 + pick(model, 40));
    options->unit_bytes_max = (16 + 16 * pick(model, 8)) << 10;
    options->copy_ahead_bytes = pick(model, 3) ? pick(model, 4000) : 32 << 10;
    options->seal_after_ms = 20 + pick(model, 400);
    options->keep_committed_ms = pick(model, 3) ? 0 : 200;
    options->keep_committed_percent = (uint32_t)pick(model, 50);
    if (pick(model, 2))
        options->keep_producers_ms = 20 + pick(model, 300);
    if (pick(model, 3) == 0)
        options->producers_max = 3;
    if (pick(model, 4) == 0)
        options->table_bytes_max = 1000 + pick(model, 20000);
    if (pick(model, 4) == 0)
        options->group_bytes_max = 1000 + pick(model, 40000);
}

/* In every other world a table takes nothing for long, and what others left is compacted. */
static uint32_t stuck_choose(struct model *model)
{
    struct wal_options *options = &model->options;
    options->compacted_from_percent = 100;
    if (model->seed % 2)
        return TABLES;
    options->compacted_from_percent = (uint32_t)pick(model, 34);
    options->compacted_below_percent = 25 + (uint32_t)pick(model, 60);
    return (uint32_t)pick(model, 2 * TABLES);
}

static void world(struct model *model)
{
    model->groups = 1 + (uint32_t)pick(model, GROUPS_MAX);
    model->workers = 1 + (uint32_t)pick(model, WORKERS_MAX);
    options_choose(model);
    uint64_t roomy = model->options.budget_bytes * 2 + (8 << 20);
    uint64_t volume = pick(model, 4) ? roomy : model->options.budget_bytes / 2 + (1 << 17);
    model->node = sim_node_create(model->sim, volume);
    sim_node_direct(model->node, pick(model, 2));
    item_add(model, (struct item){0});
    uint32_t stuck = stuck_choose(model);
    bool may_rot = pick(model, 4) == 0, may_rot_state = !may_rot && pick(model, 4) == 0;
    uint64_t rounds = 2 + pick(model, 5);
    for (uint64_t round = 0; round <= rounds; round++) {
        bool is_last = round == rounds;
        model->stuck = round + 2 < rounds ? stuck : TABLES;
        struct sim_faults *faults = sim_node_faults(model->node);
        model->ops = 5 + (uint32_t)pick(model, 60);
        memset(model->producer_busy, 0, sizeof model->producer_busy);
        for (size_t i = 0; i < CONSUMERS; i++)
            model->consumers[i].is_busy = false;
        model->outstanding = 0;
        faults_choose(model);
        model->had_no_memory |= faults->alloc_fails > 0;
        if (is_last) {
            *faults = (struct sim_faults){.switches = 4096};
            sim_node_volume(model->node, roomy);
        } else if (pick(model, 8)) {
            enum sim_end how = pick(model, 4) ? SIM_POWER_CUT : SIM_KILLED;
            sim_crash_at(model->node, how, 1 + pick(model, pick(model, 3) ? 150 : 1500));
        }
        enum sim_end end = sim_run(model->node, run_main, model);
        totals.runs++;
        say(model, "run %llu ended: %d (%s)", U(round), (int)end,
            end == SIM_EXITED ? sim_exit_reason(model->node) : "");
        if (end == SIM_STUCK)
            fail(model, "nobody can go on");
        if (end == SIM_EXITED && sim_exit_code(model->node) != 74)
            fail(model, "exit code %d", sim_exit_code(model->node));
        if (is_last && end != SIM_ENDED)
            fail(model, "ended by itself without a fault: %s", sim_exit_reason(model->node));
        if (end == SIM_POWER_CUT)
            model->is_power_lost = true;
        if (end != SIM_ENDED && end != SIM_POWER_CUT && pick(model, 3) == 0) {
            sim_power_cut(model->node);
            model->is_power_lost = true;
        }
        if (may_rot && pick(model, 2))
            rot(model);
        if (may_rot_state && rot_state(model))
            may_rot_state = false;
    }
}

static uint64_t run_seed(uint64_t seed, bool is_verbose)
{
    struct model model = {.seed = seed, .is_verbose = is_verbose, .sim = sim_create(seed)};
    world(&model);
    uint64_t trace = sim_trace(model.sim);
    sim_counts_add(&totals.sim, sim_counts(model.sim));
    totals.seeds++;
    sim_destroy(model.sim);
    free(model.items);
    for (uint32_t g = 0; g < GROUPS_MAX; g++) {
        free(model.synced_at[g].values);
        free(model.written_at[g].values);
    }
    return trace;
}

static const struct sim_event must_happen[] = {
    {"power cuts", &totals.sim.power_cuts},
    {"kills", &totals.sim.kills},
    {"exits after a failed sync", &totals.sim.exits},
    {"pending writes kept", &totals.sim.ops_kept},
    {"pending writes lost", &totals.sim.ops_lost},
    {"pending writes torn", &totals.sim.ops_torn},
    {"pending writes turned to garbage", &totals.sim.ops_garbage},
    {"names lost", &totals.sim.names_lost},
    {"renames that left both names", &totals.sim.renames_doubled},
    {"failed syncs", &totals.sim.syncs_failed},
    {"no space, injected", &totals.sim.no_space},
    {"no space, volume full", &totals.sim.volume_full},
    {"failed allocations", &totals.sim.allocs_failed},
    {"clock steps", &totals.sim.clock_steps},
    {"flipped bits", &totals.sim.bits_flipped},
    {"tails cut", &totals.cut},
    {"segments dropped unused", &totals.dropped},
    {"units copied ahead", &totals.copied_ahead},
    {"copies ahead taken back", &totals.taken_back},
    {"damage named", &totals.damaged},
    {"entries voided", &totals.voided},
    {"submissions refused", &totals.refused},
    {"submissions refused by limits of tables and groups", &totals.limited},
    {"backlogs counted", &totals.backlogs_counted},
    {"written entries lost with the power", &totals.written_lost},
    {"entries reclaimed", &totals.reclaimed},
    {"receipts repeated", &totals.repeats},
    {"receipts compared", &totals.producers_checked},
    {"producers expired", &totals.expired},
    {"expired producers asked again", &totals.expired_asked},
    {"too many producers", &totals.full},
    {"acks of consumers", &totals.consumer_acks},
    {"acks with another term refused", &totals.terms_refused},
    {"holds that stand checked", &totals.holds_checked},
    {"holds that were given up seen", &totals.holds_released},
    {"leases lapsed", &totals.lapsed},
    {"holds given up for space", &totals.gave_way},
    {"segments compacted", &totals.compacted},
    {"compacted segments found by a start", &totals.found_compacted},
};

static void sum_up(void)
{
    printf("# %llu seeds, %llu runs, %llu submissions, %llu scanned, %llu checks of all\n",
           U(totals.seeds), U(totals.runs), U(totals.appended), U(totals.scanned),
           U(totals.verified));
}

int main(int argc, char **argv)
{
    static const struct sim_program program = {.name = "sim_wal",
                                               .run = run_seed,
                                               .sum_up = sum_up,
                                               .events = must_happen,
                                               .event_count = COUNT_OF(must_happen)};
    return sim_program_main(&program, argc, argv);
}
