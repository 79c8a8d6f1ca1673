/* SPDX-License-Identifier: Apache-2.0
 *
 * Log and publication in the simulated world, with the real catalog code, against a model
 * (publish_model.c says what must hold).
 *
 *   sim_publish [--seeds FIRST COUNT]    (sim_seeds.h)
 *   sim_publish --seed N                 replays one, with what happened
 *
 * A seed is a story of several runs of a server on one disk. Each run opens log, catalog and
 * publisher, writes rows and publishes them in tiny ranges while another engine commits to the same
 * tables; it ends by itself, by a kill, by a power cut at any disk call, or by a failed sync. Syncs
 * fail everywhere, or only under the catalog or the warehouse; space and memory run out; the clock
 * jumps. Stories also put older copies of the directories back, or start a copy beside the
 * original. After each run the tables are looked at; after the last, without faults, everything is
 * in them.
 *
 * TAP: one line for each thing that must have been exercised; a zero fails the program.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/publish_world.h"
#include "sim/sim_sqlite.h"

struct totals totals;

/* ---- talking ---- */

void fail(const struct model *model, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("not ok - seed %llu\n# ", U(model->seed));
    vprintf(format, args);
    printf("\n# replay: sim_publish --seed %llu\n", U(model->seed));
    fflush(stdout);
    va_end(args);
    exit(1);
}

void say(const struct model *model, const char *format, ...)
{
    va_list args;
    if (!model->is_verbose)
        return;
    va_start(args, format);
    printf("# ");
    vprintf(format, args);
    printf("\n");
    va_end(args);
}

uint64_t pick(struct model *model, uint64_t bound)
{
    return random_below(sim_random(model->sim), bound);
}

/* ---- choices ---- */

static void options_choose(struct model *model)
{
    struct wal_options *log = &model->wal_options;
    *log = wal_options_default("");
    log->group_count = model->groups;
    log->segment_bytes = (24 + 8 * pick(model, 8)) << 10;
    log->budget_bytes = log->segment_bytes * (16 + pick(model, 30));
    log->unit_bytes_max = (32 + 16 * pick(model, 6)) << 10;
    log->copy_ahead_bytes = pick(model, 3) ? pick(model, 4000) : 32 << 10;
    log->seal_after_ms = 20 + pick(model, 400);
    log->keep_committed_ms = pick(model, 3) ? 0 : 200;
    log->keep_committed_percent = (uint32_t)pick(model, 30);
    log->compacted_from_percent = (uint32_t)pick(model, 34);
    log->compacted_below_percent = 25 + (uint32_t)pick(model, 60);
    struct publish_options *publish = &model->publish_options;
    *publish = publish_options_default("");
    publish->interval_ms = 1 + pick(model, 200);
    publish->bytes = 1 + pick(model, 20000);
    publish->range_bytes_max = 1 + pick(model, 6000);
    publish->row_group_rows = 4 + (int64_t)pick(model, 40);
    publish->threads = 1 + pick(model, 4);
    publish->writers = 1 + pick(model, 3);
    publish->page_rows = 2 + (int64_t)pick(model, 20);
    publish->zstd_level = -50; /* small tables: it is cleared for every page */
    publish->retry_ms_min = 5;
    publish->retry_ms_max = 100;
    publish->halt_confirm_ms = pick(model, 2) ? 0 : 1500;
}

static void faults_choose(struct model *model)
{
    static const char *const places[] = {"/catalog", "/lake", "/data/publish"};
    struct sim_faults *faults = sim_node_faults(model->node);
    *faults = (struct sim_faults){.switches = pick(model, 3) ? 16384 : 1024};
    if (pick(model, 3) == 0) {
        faults->syncs_under = places[pick(model, COUNT_OF(places))];
        faults->sync_fails = 500 + (uint32_t)pick(model, 8000);
        faults->dir_sync_fails = pick(model, 2) ? 500 + (uint32_t)pick(model, 4000) : 0;
    } else if (pick(model, 6) == 0) {
        faults->sync_fails = 1 + (uint32_t)pick(model, 300);
        faults->dir_sync_fails = 1 + (uint32_t)pick(model, 300);
    }
    if (pick(model, 6) == 0)
        faults->write_no_space = 1 + (uint32_t)pick(model, 800);
    if (pick(model, 6) == 0)
        faults->allocate_no_space = 1 + (uint32_t)pick(model, 20000);
    if (pick(model, 6) == 0)
        faults->alloc_fails = 1 + (uint32_t)pick(model, 60);
    if (pick(model, 4) == 0)
        faults->clock_steps = 1 + (uint32_t)pick(model, 3000);
}

static enum story story_choose(struct model *model)
{
    uint64_t choice = pick(model, 100);
    return choice < 48   ? STORY_PLAIN
           : choice < 54 ? STORY_LANE_ROT
           : choice < 59 ? STORY_DAMAGE
           : choice < 67 ? STORY_ROT
           : choice < 76 ? STORY_OLD_STATE
           : choice < 84 ? STORY_OLD_DATA
           : choice < 90 ? STORY_OLD_DATA_MOVED
                         : STORY_COPY;
}

/* ---- a story ---- */

static void instance_place(struct instance *instance, const char *root)
{
    snprintf(instance->root, sizeof instance->root, "%s", root);
    snprintf(instance->log_dir, sizeof instance->log_dir, "%s/log", root);
    snprintf(instance->state_dir, sizeof instance->state_dir, "%s/publish", root);
    instance->is_there = true;
}

static void run(struct model *model, uint64_t number)
{
    enum sim_end end = sim_run(model->node, node_main, model);
    size_t blocks = sim_sqlite_drop();
    totals.runs++;
    say(model, "run %llu ended: %d %s", U(number), (int)end,
        end == SIM_EXITED ? sim_exit_reason(model->node) : "");
    if (end == SIM_STUCK)
        fail(model, "nobody can go on");
    if (end == SIM_EXITED && sim_exit_code(model->node) != 74)
        fail(model, "exit code %d", sim_exit_code(model->node));
    if (end == SIM_ENDED && blocks > 0)
        fail(model, "%zu pieces of SQLite's memory are left", blocks);
    if (model->is_healing && end != SIM_ENDED)
        fail(model, "ended by itself without a fault: %s", sim_exit_reason(model->node));
    model->outstanding = 0;
    bool is_power_lost = end == SIM_POWER_CUT;
    if (end != SIM_ENDED && end != SIM_POWER_CUT && pick(model, 3) == 0) {
        sim_power_cut(model->node);
        is_power_lost = true;
    }
    if (is_power_lost)
        model_power_gone(model);
    for (uint32_t i = 0; i < INSTANCES_MAX; i++) { /* they went with the process */
        struct instance *instance = &model->instances[i];
        instance->wal = NULL;
        instance->store = NULL;
        instance->catalog = NULL;
        instance->publisher = NULL;
        instance->source = NULL;
    }
    model_look(model);
    sim_sqlite_drop();
}

static void run_with_faults(struct model *model, uint64_t number)
{
    uint64_t volume = UINT64_C(1) << 40;
    model->ops = 4 + (uint32_t)pick(model, 24);
    model->engine_ops = pick(model, 3) ? (uint32_t)pick(model, 12) : 0;
    model->with_thread = pick(model, 2);
    faults_choose(model);
    model->is_tight = pick(model, 8) == 0;
    if (model->is_tight)
        volume = model->wal_options.budget_bytes / 2 + (pick(model, 40) << 14);
    sim_node_volume(model->node, volume);
    if (pick(model, 6)) {
        enum sim_end how = pick(model, 3) ? SIM_POWER_CUT : SIM_KILLED;
        sim_crash_at(model->node, how, 1 + pick(model, pick(model, 3) ? 400 : 2500));
    }
    run(model, number);
    sim_node_volume(model->node, UINT64_C(1) << 40);
}

/* The copy that was taken earlier comes into its own. */
static void twist(struct model *model, const struct saved_dir *saved)
{
    struct instance *first = &model->instances[0], *second = &model->instances[1];
    say(model, "story %d: %s", (int)model->story, first->root);
    switch (model->story) {
    case STORY_OLD_STATE:
        saved_dir_put(model, saved, first->state_dir);
        first->has_old_state = true;
        break;
    case STORY_OLD_DATA:
        saved_dir_put(model, saved, first->root);
        first->has_new_log = true;
        break;
    case STORY_OLD_DATA_MOVED:
        instance_place(first, "/moved");
        saved_dir_put(model, saved, first->root);
        first->has_new_log = true;
        break;
    case STORY_COPY:
        instance_place(second, "/copy");
        saved_dir_put(model, saved, second->root);
        second->has_new_log = true;
        break;
    case STORY_DAMAGE:
        damage_do(model);
        sim_sqlite_drop();
        break;
    case STORY_ROT:
        model->is_unpublished = false;
        rot_do(model);
        break;
    case STORY_PLAIN:
    case STORY_LANE_ROT:
    case STORY_COUNT:
        break;
    }
}

static void story_tell(struct model *model)
{
    uint64_t rounds = 2 + pick(model, 4), number = 0;
    uint64_t saved_after = pick(model, rounds), put_after = saved_after;
    bool is_told = model->story == STORY_PLAIN || model->story == STORY_LANE_ROT;
    model->is_unpublished = model->story == STORY_ROT && pick(model, 2);
    if (model->story != STORY_COPY)
        put_after += pick(model, rounds - saved_after);
    for (; number < rounds; number++) {
        model->wants_copy = !is_told && number == saved_after && model->story != STORY_DAMAGE &&
                            model->story != STORY_ROT && pick(model, 2);
        run_with_faults(model, number);
        if (model->story == STORY_LANE_ROT && pick(model, 3))
            lane_rot_do(model);
        const char *root = model->story == STORY_OLD_STATE ? model->instances[0].state_dir
                                                           : model->instances[0].root;
        if (!is_told && number == saved_after && !model->saved)
            model->saved = saved_dir_take(model, root);
        if (!model->log_id[0] && number == saved_after) { /* no log was born: nothing to tell */
            model->story = STORY_PLAIN;
            is_told = true;
        }
        if (!is_told && number == put_after) {
            twist(model, model->saved);
            is_told = true;
        }
    }
    saved_dir_free(model->saved);
    model->saved = NULL;
    *sim_node_faults(model->node) = (struct sim_faults){.switches = 4096};
    model->is_healing = true;
    model->is_tight = false;
    run(model, number);
    model->is_quiet = true;
    uint64_t snapshots[TABLES_MAX];
    for (uint32_t t = 0; t < model->tables; t++)
        snapshots[t] = model->seen[t].snapshots;
    run(model, number + 1);
    for (uint32_t t = 0; t < model->tables; t++)
        if (model->seen[t].snapshots != snapshots[t] && !model->is_damaged)
            fail(model, "table %u: a quiet run has changed it", t);
    model_check_end(model);
}

/* ---- seeds ---- */

static uint64_t run_seed(uint64_t seed, bool is_verbose)
{
    struct model *model = calloc(1, sizeof *model);
    CHECK(model);
    model->seed = seed;
    model->is_verbose = is_verbose;
    model->sim = sim_create(seed);
    sim_sqlite_seed(seed);
    sim_trace_skip(model->sim, ".avro"); /* igzip does not always give the same bytes */
    model->groups = 1 + (uint32_t)pick(model, GROUPS_MAX);
    model->tables = 1 + (uint32_t)pick(model, TABLES_MAX);
    model->writers = 1 + (uint32_t)pick(model, 3);
    model->story = story_choose(model);
    model->engine_expires = pick(model, 3) == 0;
    model->engine_forgets = !model->engine_expires && pick(model, 3) == 0;
    if (model->story == STORY_LANE_ROT) /* with what the lane knew it would have to ask */
        model->engine_forgets = false;
    options_choose(model);
    node_define_tables(model);
    model->node = sim_node_create(model->sim, UINT64_C(1) << 40);
    model->env = sim_node_env(model->node);
    for (uint32_t i = 0; i < INSTANCES_MAX; i++)
        model->instances[i] = (struct instance){.model = model, .index = i};
    instance_place(&model->instances[0], "/data");
    entry_add(model, (struct entry){0});
    story_tell(model);
    uint64_t trace = sim_trace(model->sim);
    sim_counts_add(&totals.sim, sim_counts(model->sim));
    totals.seeds++;
    totals.stories[model->story]++;
    sim_destroy(model->sim);
    for (size_t i = 0; i < model->path_count; i++)
        free(model->paths[i]);
    free(model->entries);
    free(model);
    return trace;
}

static const struct sim_event must_happen[] = {
    {"segments compacted", &totals.compacted},
    {"power cuts", &totals.sim.power_cuts},
    {"logs elsewhere", &totals.sources_elsewhere},
    {"questions without an answer", &totals.silences},
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
    {"starts refused", &totals.open_refused},
    {"tails cut", &totals.tails_cut},
    {"segments dropped unused", &totals.segments_dropped},
    {"submissions refused", &totals.refused},
    {"written entries lost with the power", &totals.written_lost},
    {"commits of the other engine", &totals.foreign_applied},
    {"commits of the other engine that failed", &totals.foreign_failed},
    {"commits of the other engine of unknown outcome", &totals.foreign_unknown},
    {"properties set by others", &totals.properties_set},
    {"our properties removed by others", &totals.properties_removed},
    {"snapshots expired by others", &totals.snapshots_expired},
    {"stories: no damage", &totals.stories[STORY_PLAIN]},
    {"stories: older state put back", &totals.stories[STORY_OLD_STATE]},
    {"stories: older log and state put back", &totals.stories[STORY_OLD_DATA]},
    {"stories: the same, elsewhere", &totals.stories[STORY_OLD_DATA_MOVED]},
    {"stories: a copy beside the original", &totals.stories[STORY_COPY]},
    {"stories: others damaged a table", &totals.stories[STORY_DAMAGE]},
    {"stories: files of a lane rot", &totals.stories[STORY_LANE_ROT]},
    {"checkpoints damaged", &totals.checkpoints_rotten},
    {"journals damaged", &totals.journals_rotten},
    {"halts of damage ended", &totals.rot_ended},
    {"stories: the log rots", &totals.stories[STORY_ROT]},
    {"segments with flipped bits", &totals.rots[0]},
    {"segments wiped", &totals.rots[1]},
    {"segments gone", &totals.rots[2]},
    {"promised entries lost to rot, and their lanes halted", &totals.rotten_entries},
    {"halts over damage, cleared", &totals.rot_halts},
    {"tables rolled back", &totals.rollbacks},
    {"tables dropped", &totals.tables_dropped},
    {"halts cleared", &totals.decisions},
    {"backups taken while it ran", &totals.backups_live},
    {"intents left behind", &totals.intents_found},
    {"descriptors left behind", &totals.descriptors_found},
    {"halts that had to be", &totals.halts},
    {"owners that stood down", &totals.stand_downs},
};

static void sum_up(void)
{
    printf(
        "# %llu seeds, %llu runs, %llu submissions of %llu rows; %llu looks at %llu rows in %llu "
        "files; %llu roll-backs whose traces expired unread\n",
        U(totals.seeds), U(totals.runs), U(totals.submissions), U(totals.rows), U(totals.looks),
        U(totals.rows_checked), U(totals.files_read), U(totals.halts_without_evidence));
}

int main(int argc, char **argv)
{
    static const struct sim_program program = {.name = "sim_publish",
                                               .run = run_seed,
                                               .sum_up = sum_up,
                                               .events = must_happen,
                                               .event_count = COUNT_OF(must_happen),
                                               .replayed_every = 50};
    sim_sqlite_init();
    return sim_program_main(&program, argc, argv);
}
