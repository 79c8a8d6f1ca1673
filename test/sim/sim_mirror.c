/* SPDX-License-Identifier: Apache-2.0
 *
 * The mirror under simulated faults, against a model that shares no code with it but the names and
 * headers of objects.
 *
 *   sim_mirror [--seeds FIRST COUNT]    (sim_seeds.h)
 *   sim_mirror --seed N                 replays one, with what happened
 *
 * Each seed is one world: a log and a mirror of it on one disk, a few workers that append, wait for
 * the mirror, acknowledge, seal and idle; a run ends cleanly, by a kill, by the engine's own exit
 * or by a power cut at any disk call. Syncs fail everywhere, or under the mirror alone. After each
 * run the mirror is looked at alone, as if the log were lost:
 *
 *   - every object under one of our names is whole, and what its name says
 *   - an entry that somebody was told is remote is there, proven, unless its table acknowledged it
 *   - so it is in the log that the newest state and the ranges give back, where nothing that a
 *     table has not is missing for want of a state
 *   - a producer's number that somebody was told is remote is known there, whatever was deleted
 *   - a mirror is never refused: it is never ahead of its log
 * and after the last run, which has no faults, everything that no table has is there.
 */
#include <stdarg.h>

#include "sim/mirror_model.h"

struct totals totals;

static const char log_dir[] = "/data/log";

/* ---- talking ---- */

static void say(const struct model *model, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

_Noreturn void fail(const struct model *model, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("not ok - seed %llu\n# ", U(model->seed));
    vprintf(format, args);
    printf("\n# replay: sim_mirror --seed %llu\n", U(model->seed));
    fflush(stdout);
    va_end(args);
    exit(1);
}

static void say(const struct model *model, const char *format, ...)
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

static uint64_t pick(struct model *model, uint64_t bound)
{
    return random_below(sim_random(model->sim), bound);
}

/* ---- work ---- */

struct span producer_of(uint32_t worker)
{
    static const char names[WORKERS_MAX][3] = {"p0", "p1", "p2"};
    return span_of(names[worker], 2);
}

/* The next number of the worker's producer, claimed; 0: none. */
static uint64_t claim(struct model *model, uint32_t worker)
{
    struct wal_receipt receipts[16];
    uint32_t count;
    uint64_t expected;
    for (int i = 0; i < 3; i++) {
        uint64_t sequence = model->sequences[worker] + 1;
        enum wal_producer_verdict verdict =
            wal_producer_begin(model->wal, producer_of(worker), sequence, (struct hash128){0},
                               receipts, &count, &expected);
        if (verdict == WAL_PRODUCER_NEW)
            return sequence;
        if (verdict == WAL_PRODUCER_GAP) /* the last one was never stored */
            model->sequences[worker] = expected - 1;
        else if (verdict == WAL_PRODUCER_REPEAT || verdict == WAL_PRODUCER_OLD)
            model->sequences[worker]++;
    }
    return 0;
}

static uint64_t append(struct model *model, uint32_t worker)
{
    struct error err;
    uint32_t table = model->is_stuck ? pick(model, 8) > 0 : (uint32_t)pick(model, TABLES);
    if (model->item_count + 1 >= ITEMS_MAX)
        return 0;
    uint64_t number = ++model->item_count;
    uint64_t bytes = 16 + (pick(model, 8) ? pick(model, 600) : pick(model, 30000));
    uint8_t *payload = mem_alloc(bytes);
    if (!payload)
        return 0;
    memset(payload, (int)(number % 251), bytes);
    put_le64(payload, number);
    uint64_t sequence = claim(model, worker);
    struct wal_contribution contribution = {.rows = 1};
    if (sequence) {
        contribution.producer = (const char *)producer_of(worker).data;
        contribution.producer_length = 2;
        contribution.producer_sequence = sequence;
        model->sequences[worker] = sequence;
    }
    struct wal_entry entry = {.type = WAL_DATA,
                              .group = (uint32_t)pick(model, model->groups),
                              .table_id = model->tables[table],
                              .rows = 1,
                              .contributions = &contribution,
                              .contribution_count = 1,
                              .payload = span_of(payload, bytes),
                              .payload_crc = crc32c(0, payload, bytes)};
    struct wal_submission submission = {
        .entries = &entry, .entry_count = 1, .durability = WAL_SYNCED};
    enum status status = wal_append(model->wal, &submission, &err);
    mem_free(payload);
    if (status != STATUS_OK) {
        if (sequence)
            wal_producer_abandon(model->wal, producer_of(worker), sequence);
        return 0;
    }
    model->items[number] = (struct item){.group = entry.group,
                                         .table = table,
                                         .seq = entry.seq,
                                         .worker = worker,
                                         .sequence = sequence};
    totals.appended++;
    return number;
}

static void told(struct mirror_waiter *waiter, enum status status)
{
    struct wait *wait = CONTAINER_OF(waiter, struct wait, waiter);
    if (wait->is_told)
        fail(wait->model, "entry %llu: told twice", U(wait->number));
    wait->is_told = true;
    wait->status = status;
    totals.abandoned += status == STATUS_RECLAIMED;
    if (status != STATUS_OK)
        return;
    wait->model->items[wait->number].is_remote = true;
    totals.remote++;
}

static void append_remote(struct model *model, uint32_t worker)
{
    struct env *env = sim_node_env(model->node);
    uint64_t number = append(model, worker), patience = pick(model, 4) ? 400 : pick(model, 20);
    if (!number)
        return;
    struct wait *wait = calloc(1, sizeof *wait);
    CHECK(wait);
    *wait = (struct wait){.waiter.done = told, .model = model, .number = number};
    mirror_wait(model->mirror, &wait->waiter, model->items[number].group, model->items[number].seq);
    for (uint64_t i = 0; i < patience && !wait->is_told; i++)
        env_sleep_ms(env, 5);
    if (!wait->is_told && mirror_wait_cancel(model->mirror, &wait->waiter)) {
        totals.given_up++;
        free(wait);
        return;
    }
    while (!wait->is_told) /* it is about to be */
        env_sleep_ms(env, 1);
    free(wait);
}

static void ack(struct model *model)
{
    struct error err;
    struct wal_ack acks[GROUPS_MAX];
    uint32_t table = (uint32_t)pick(model, TABLES);
    if (model->is_stuck && table == 0)
        return;
    for (uint32_t g = 0; g < model->groups; g++) {
        acks[g].through = acks[g].committed = wal_synced_end(model->wal, g);
        if (acks[g].through.seq > model->tried[table][g])
            model->tried[table][g] = acks[g].through.seq;
    }
    totals.acks += wal_ack_table(model->wal, model->tables[table], acks, &err) == STATUS_OK;
}

static void work(void *context)
{
    struct worker *worker = context;
    struct model *model = worker->model;
    struct error err;
    for (uint32_t i = 0; i < model->ops; i++) {
        uint64_t choice = pick(model, 100);
        if (choice < 40) {
            append_remote(model, worker->index);
        } else if (choice < 75) {
            append(model, worker->index);
        } else if (choice < 83) {
            ack(model);
        } else if (choice < 90) {
            enum status status = wal_seal(model->wal, &err);
            UNUSED(status);
        } else {
            env_sleep_ms(sim_node_env(model->node), pick(model, 300));
        }
    }
}

/* ---- a run ---- */

static bool open_all(struct model *model, struct env *env)
{
    struct error err;
    model->wal = NULL;
    model->mirror = NULL;
    enum status status = wal_open(env, &model->log_options, &model->wal, &err);
    if (status == STATUS_OK)
        status = wal_table_open(model->wal, "ns.t0", &model->tables[0], &err);
    if (status == STATUS_OK)
        status = wal_table_open(model->wal, "ns.t1", &model->tables[1], &err);
    if (status == STATUS_OK)
        status = mirror_create(env, &model->options, model->wal, &model->mirror, &err);
    if (status == STATUS_OK)
        status = mirror_start(model->mirror, &err);
    if (status != STATUS_OK) {
        say(model, "open: %s", err.message);
        if (model->is_last)
            fail(model, "open: %s", err.message);
    }
    return status == STATUS_OK;
}

static void check_even(struct model *model)
{
    for (uint32_t g = 0; g < model->groups; g++) {
        uint64_t end = wal_synced_end(model->wal, g).seq;
        if (mirror_confirmed(model->mirror, g) < end)
            fail(model, "group %u ends at %llu, the mirror at %llu: %s", g, U(end),
                 U(mirror_confirmed(model->mirror, g)), mirror_stats(model->mirror).why);
    }
}

static void run_main(void *context)
{
    struct model *model = context;
    struct env *env = sim_node_env(model->node);
    struct worker workers[WORKERS_MAX] = {0};
    struct error err;
    bool is_open = open_all(model, env);
    for (uint32_t i = 0; is_open && i < model->workers; i++) {
        workers[i].model = model;
        workers[i].index = i;
        if (env_thread_start(env, "worker", work, &workers[i], &workers[i].thread, &err) !=
            STATUS_OK)
            workers[i].thread = NULL;
    }
    for (uint32_t i = 0; i < model->workers; i++)
        if (workers[i].thread)
            env_thread_join(workers[i].thread);
    if (is_open) {
        mirror_stop(model->mirror, model->is_last ? 600000 : pick(model, 2000));
        if (mirror_check(model->mirror, &err) != STATUS_OK)
            fail(model, "refused: %s", err.message);
        if (model->is_last)
            check_even(model);
        struct mirror_stats stats = mirror_stats(model->mirror);
        totals.compacted += wal_usage(model->wal).segments_compacted;
        totals.states += stats.states_total;
        totals.swept += stats.swept_total;
        for (size_t i = 0; i < MIRROR_STEPS; i++)
            totals.failures += stats.failures_total[i];
    }
    mirror_destroy(model->mirror);
    wal_close(model->wal);
}

/* ---- a world ---- */

static void faults_choose(struct model *model)
{
    struct sim_faults *faults = sim_node_faults(model->node);
    *faults = (struct sim_faults){.switches = pick(model, 3) ? 16384 : 1024};
    if (pick(model, 2)) {
        faults->syncs_under = MIRROR_DIR;
        faults->sync_fails = 500 + (uint32_t)pick(model, 20000);
        faults->dir_sync_fails = pick(model, 2) ? 500 + (uint32_t)pick(model, 10000) : 0;
    } else if (pick(model, 4) == 0) {
        faults->sync_fails = 1 + (uint32_t)pick(model, 300);
    }
    if (pick(model, 5) == 0)
        faults->write_no_space = 1 + (uint32_t)pick(model, 800);
    if (pick(model, 5) == 0)
        faults->alloc_fails = 1 + (uint32_t)pick(model, 200);
    if (pick(model, 4) == 0)
        faults->clock_steps = 1 + (uint32_t)pick(model, 3000);
}

static void options_choose(struct model *model)
{
    struct wal_options *log = &model->log_options;
    *log = wal_options_default(log_dir);
    log->group_count = model->groups;
    log->segment_bytes = (24 + 8 * pick(model, 8)) << 10;
    log->budget_bytes = 64 << 20;
    log->unit_bytes_max = (32 + 16 * pick(model, 6)) << 10;
    log->seal_after_ms = 20 + pick(model, 400);
    log->keep_committed_ms = pick(model, 3) ? 0 : 200;
    model->may_compact = pick(model, 3) > 0;
    log->compacted_from_percent = model->may_compact ? 0 : 100;
    log->compacted_below_percent = 40 + (uint32_t)pick(model, 50);
    struct mirror_options *options = &model->options;
    *options = mirror_options_default(MIRROR_DIR);
    options->interval_ms = 1 + pick(model, 300);
    options->uploads = 1 + (unsigned)pick(model, 4);
    options->retry_ms_min = 1 + pick(model, 10);
    options->retry_ms_max = 20 + pick(model, 100);
    options->state_ms = pick(model, 2) ? pick(model, 500) : 3600000;
    options->sweep_ms = pick(model, 500);
    options->head_ms = pick(model, 500);
    options->range_bytes = pick(model, 2) ? 3000 + pick(model, 9000) : 1 << 20;
}

static void world(struct model *model)
{
    model->groups = 1 + (uint32_t)pick(model, GROUPS_MAX);
    options_choose(model);
    model->node = sim_node_create(model->sim, UINT64_C(1) << 32);
    uint64_t rounds = 2 + pick(model, 4);
    bool is_stuck = pick(model, 2);
    for (uint64_t round = 0; round <= rounds; round++) {
        model->is_last = round == rounds;
        model->is_stuck = is_stuck && round + 1 < rounds;
        model->workers = 1 + (uint32_t)pick(model, WORKERS_MAX);
        model->ops = 5 + (uint32_t)pick(model, 40);
        faults_choose(model);
        if (model->is_last) {
            *sim_node_faults(model->node) = (struct sim_faults){.switches = 4096};
        } else if (pick(model, 8)) {
            enum sim_end how = pick(model, 4) ? SIM_POWER_CUT : SIM_KILLED;
            sim_crash_at(model->node, how, 1 + pick(model, pick(model, 3) ? 300 : 1500));
        }
        enum sim_end end = sim_run(model->node, run_main, model);
        sim_crash_at(model->node, SIM_KILLED, 0);
        totals.runs++;
        say(model, "run %llu ended: %d (%s)", U(round), (int)end,
            end == SIM_EXITED ? sim_exit_reason(model->node) : "");
        if (end == SIM_STUCK)
            fail(model, "nobody can go on");
        if (end == SIM_EXITED && sim_exit_code(model->node) != 74)
            fail(model, "exit code %d", sim_exit_code(model->node));
        if (model->is_last && end != SIM_ENDED)
            fail(model, "ended by itself without a fault: %s", sim_exit_reason(model->node));
        if (end != SIM_ENDED && end != SIM_POWER_CUT && pick(model, 3) == 0)
            sim_power_cut(model->node);
        look(model);
    }
}

static uint64_t run_seed(uint64_t seed, bool is_verbose)
{
    struct model *model = calloc(1, sizeof *model);
    CHECK(model);
    model->seed = seed;
    model->is_verbose = is_verbose;
    model->sim = sim_create(seed);
    world(model);
    uint64_t trace = sim_trace(model->sim);
    sim_counts_add(&totals.sim, sim_counts(model->sim));
    totals.seeds++;
    sim_destroy(model->sim);
    free(model);
    return trace;
}

static const struct sim_event must_happen[] = {
    {"power cuts", &totals.sim.power_cuts},
    {"kills", &totals.sim.kills},
    {"exits after a failed sync", &totals.sim.exits},
    {"pending writes lost", &totals.sim.ops_lost},
    {"pending writes torn", &totals.sim.ops_torn},
    {"names lost", &totals.sim.names_lost},
    {"failed syncs", &totals.sim.syncs_failed},
    {"no space, injected", &totals.sim.no_space},
    {"failed allocations", &totals.sim.allocs_failed},
    {"entries told to be remote", &totals.remote},
    {"waits given up", &totals.given_up},
    {"waits for what tables had first", &totals.abandoned},
    {"acknowledgements of the table", &totals.acks},
    {"steps of the mirror that failed", &totals.failures},
    {"states", &totals.states},
    {"objects deleted", &totals.swept},
    {"ranges read", &totals.ranges},
    {"entries found on the way back", &totals.back},
    {"producers known on the way back", &totals.producers},
    {"segments compacted", &totals.compacted},
    {"compacted segments in the mirror", &totals.found_compacted},
};

static void sum_up(void)
{
    printf("# %llu seeds, %llu runs, %llu entries\n", U(totals.seeds), U(totals.runs),
           U(totals.appended));
}

int main(int argc, char **argv)
{
    static const struct sim_program program = {.name = "sim_mirror",
                                               .run = run_seed,
                                               .sum_up = sum_up,
                                               .events = must_happen,
                                               .event_count = COUNT_OF(must_happen)};
    return sim_program_main(&program, argc, argv);
}
