/* SPDX-License-Identifier: Apache-2.0
 *
 * Trials of a table that takes nothing while another one flows (L26): what is left of the segments,
 * and what a crash, a bit or a reader makes of it.
 */
#include "sim/wal_trials.h"

enum {
    WIDE = 256 << 10,
    ROWS = 800,
    STUCK_EVERY = 40,
    STUCK = ROWS / STUCK_EVERY,
    FEW = 240, /* rows, where many worlds are made */
};

/* The stuck one is the run's table. Numbers of its rows are 1, 2, ..., the others' follow ROWS. */
static struct {
    struct sim_node *node;
    uint32_t flowing;
    uint64_t rows, stuck, last_seq;
    uint64_t retained; /* rows of the flowing table that are still to be read */
    bool holds_all;    /* the flowing table is not acknowledged */
    bool is_cut_off;   /* the last row may be there */
} world;

static struct wal_options wide_options(void)
{
    struct wal_options options = wal_options_default(trial_dir);
    options.segment_bytes = WIDE;
    options.budget_bytes = 24 * WIDE;
    options.keep_committed_ms = 0;
    options.keep_committed_percent = 1;
    return options;
}

static void ack(struct wal *wal, uint32_t table, uint64_t seq)
{
    struct wal_ack ack = {.through.seq = seq, .committed.seq = seq};
    EXPECT(wal_chain_at(wal, 0, seq, &ack.through.chain, &last_error) == STATUS_OK);
    ack.committed.chain = ack.through.chain;
    EXPECT(wal_ack_table(wal, table, &ack, &last_error) == STATUS_OK);
}

/* `count` rows, each 40th of the stuck table; nobody is refused. */
static void flow(struct run *run, struct wal *wal, uint32_t table, uint64_t count)
{
    uint64_t seq;
    EXPECT(wal_table_open(wal, "otel.traces", &world.flowing, &last_error) == STATUS_OK);
    for (uint64_t i = 1; i <= count; i++) {
        bool is_stuck = i % STUCK_EVERY == 0;
        run->last_append = is_stuck ? append(wal, table, ++world.stuck, 200, WAL_SYNCED, &seq)
                                    : append(wal, world.flowing, ROWS + ++world.rows, 8000,
                                             WAL_SYNCED, &world.last_seq);
        EXPECT(run->last_append == STATUS_OK);
        if (i % 10 == 0 && !world.holds_all)
            ack(wal, world.flowing, world.last_seq);
        if (i % 10 == 0)
            env_sleep_ms(sim_node_env(run->node), 20);
    }
    env_sleep_ms(sim_node_env(run->node), 3000);
}

static void act_flow(struct run *run, struct wal *wal, uint32_t table)
{
    flow(run, wal, table, run->count);
}

static void sum_files(void *context, const char *path, const struct env_stat *stat)
{
    UNUSED(path);
    *(uint64_t *)context += stat->allocated_bytes;
}

static uint64_t count_compacted(struct wal *wal)
{
    struct wal_segment_info info;
    uint64_t count = 0;
    for (size_t i = 0; wal_segment_at(wal, i, &info); i++)
        count += info.is_compacted;
    return count;
}

/* What is reclaimed is told so to all who ask, with the exact range, and what is not is there. */
static void look_around(struct run *run, struct wal *wal, uint32_t table)
{
    struct wal_scan *scan;
    struct wal_view view;
    struct wal_damage damage;
    uint64_t entries, files = 0, chain, floor = wal_reclaimed_through(wal, 0, world.flowing);
    enum status status;
    EXPECT(wal_verify(wal, &entries, &last_error) == STATUS_OK && !wal_damage_at(wal, 0, &damage));
    EXPECT(wal_reclaimed_through(wal, 0, table) == 0);
    EXPECT((floor > 0 || world.is_cut_off) && floor <= world.last_seq);
    EXPECT(floor == 0 ||
           wal_scan_open(wal, 0, world.flowing, floor - 1, &scan, &last_error) == STATUS_RECLAIMED);
    EXPECT(wal_scan_open(wal, 0, world.flowing, floor, &scan, &last_error) == STATUS_OK);
    uint64_t number = 0; /* of the last one: all behind the floor are there */
    while (wal_scan_next(scan, &view, &last_error) == STATUS_OK) {
        EXPECT(view.seq > floor && (number == 0 || get_le64(view.payload.data) == number + 1));
        number = get_le64(view.payload.data);
    }
    wal_scan_close(scan);
    EXPECT(number == 0 || number >= ROWS + world.rows - world.is_cut_off);
    EXPECT(floor == 0 || wal_reclaimed_below(wal, 0, floor) == floor);
    /* All entries, hole by hole: those of the stuck table are all there. */
    uint64_t after = wal_reclaimed_behind(wal, 0, 0), found = 0, term;
    EXPECT(wal_scan_open(wal, 0, 0, after, &scan, &last_error) == STATUS_OK);
    while ((status = wal_scan_next(scan, &view, &last_error)) != STATUS_NOT_FOUND) {
        if (status == STATUS_RECLAIMED) {
            uint64_t behind = wal_reclaimed_behind(wal, 0, after);
            EXPECT(behind > after && wal_reclaimed_below(wal, 0, behind) == behind);
            EXPECT(wal_reclaimed_below(wal, 0, after + 1) == after + 1);
            after = behind;
            EXPECT(wal_scan_seek(scan, after, &last_error) == STATUS_OK);
            continue;
        }
        EXPECT(status == STATUS_OK && view.seq == after + 1);
        after = view.seq;
        if (view.type != WAL_DATA || view.table_id != table)
            continue;
        EXPECT(get_le64(view.payload.data) == ++found && is_payload(found, view.payload));
        EXPECT(wal_chain_at(wal, 0, view.seq, &chain, &last_error) == STATUS_OK);
        EXPECT(chain == view.chain);
        EXPECT(wal_term_at(wal, 0, view.seq, &term, &last_error) == STATUS_OK && term == view.term);
    }
    wal_scan_close(scan);
    EXPECT(found == world.stuck || (world.is_cut_off && found + 1 == world.stuck));
    for (int i = 0; i < 100 && files != wal_usage(wal).allocated_bytes; i++) {
        files = 0;
        sim_each_file(run->node, trial_dir, sum_files, &files);
        env_sleep_ms(sim_node_env(run->node), 20);
    }
    EXPECT(files == wal_usage(wal).allocated_bytes);
    run->extra[0] = count_compacted(wal);
    run->extra[1] = wal_pinned_bytes(wal, table);
}

static void act_flow_and_look(struct run *run, struct wal *wal, uint32_t table)
{
    flow(run, wal, table, run->count);
    look_around(run, wal, table);
    run->extra[2] = wal_usage(wal).segments_compacted;
}

static void act_take_all(struct run *run, struct wal *wal, uint32_t table)
{
    look_around(run, wal, table);
    uint64_t seq = wal_synced_end(wal, 0).seq;
    ack(wal, world.flowing, seq);
    ack(wal, table, seq);
    env_sleep_ms(sim_node_env(run->node), 3000);
    run->extra[2] = wal_usage(wal).segments_sealed + wal_usage(wal).segments_committed;
    struct wal_segment_info info;
    for (size_t i = 0; wal_segment_at(wal, i, &info); i++)
        EXPECT(info.allocated_bytes >= info.bytes); /* no spare has holes */
}

static struct run world_begin(struct sim *sim, uint64_t rows)
{
    memset(&world, 0, sizeof world);
    return (struct run){.node = sim_node_create(sim, 64 << 20),
                        .options = wide_options(),
                        .act = act_flow,
                        .count = rows};
}

/* Far more than the budget flows by, and nobody is refused; what the stuck table holds is a small
 * part of the segments it is in, over starts as well, and all of it leaves with its last row. */
void l26_stuck_table_keeps_its_rows(void)
{
    struct sim *sim = sim_create(40);
    struct run run = world_begin(sim, ROWS);
    run.act = act_flow_and_look;
    go(&run);
    EXPECT(run.end == SIM_ENDED && world.stuck == STUCK);
    EXPECT(run.extra[2] > 5 && run.extra[0] > 5);
    struct run again = {.node = run.node, .options = run.options, .act = act_take_all};
    go(&again);
    EXPECT(again.end == SIM_ENDED && again.report.damaged_ranges == 0);
    EXPECT(again.found == STUCK && again.numbers[STUCK - 1] == STUCK);
    EXPECT(again.extra[0] >= run.extra[0] && again.extra[1] < (run.extra[0] + 9) * WIDE);
    EXPECT(again.extra[2] == 0);
    sim_destroy(sim);
}

/* The power goes, or the process, at any call while segments are made smaller. */
static void crash_everywhere(enum sim_end how)
{
    uint64_t found_old = 0, found_new = 0, ended = 0;
    for (uint64_t at = 100; at < 1400; at += 5) {
        struct sim *sim = sim_create(at);
        struct run run = world_begin(sim, FEW);
        run.options.budget_bytes = 8 * WIDE;
        run.options.compacted_from_percent = 20;
        sim_crash_at(run.node, how, at);
        go(&run);
        ended += run.end == how;
        world.is_cut_off = run.end == how;
        struct run look = {.node = run.node, .options = run.options};
        look.options.compacted_from_percent = 100;
        look.act = look_around;
        go(&look);
        EXPECT(look.end == SIM_ENDED && look.report.damaged_ranges == 0);
        found_new += look.extra[0] > 0;
        found_old += look.extra[0] == 0;
        look.options = run.options;
        look.act = act_take_all;
        go(&look);
        EXPECT(look.end == SIM_ENDED && look.extra[2] == 0);
        sim_destroy(sim);
    }
    EXPECT(ended > 50 && found_old > 5 && found_new > 5);
}

void l26_crash_at_any_step(void)
{
    crash_everywhere(SIM_KILLED);
    crash_everywhere(SIM_POWER_CUT);
}

/* A bit in a compacted file costs the entry it is in, or nothing: its holes stay explained. */
void l26_damage_in_a_compacted_segment(void)
{
    static struct files files;
    struct sim *sim = sim_create(41);
    struct run run = world_begin(sim, FEW);
    run.options.budget_bytes = 8 * WIDE;
    run.options.compacted_from_percent = 20;
    go(&run);
    EXPECT(run.end == SIM_ENDED);
    files_take(&files, run.node);
    struct file_copy *file = files_find(&files, "/sealed/", 2);
    uint64_t lost = 0, walked = 0, written = 0;
    for (uint64_t at = 0; at < file->bytes; at++) {
        written += file->data[at] != 0;
        if (file->data[at] ? written % 7 : at % 4001)
            continue;
        struct sim *other = sim_create(at);
        file->data[at] ^= 16;
        struct run look = {.node = files_put(other, &files), .options = run.options};
        go(&look);
        EXPECT(look.end == SIM_ENDED && look.found >= world.stuck - 1);
        EXPECT((look.found < world.stuck) == look.has_damage);
        if (look.has_damage)
            EXPECT(look.damage.seq_first == look.damage.seq_last);
        lost += look.has_damage;
        walked += look.report.damaged_ranges == 0 && look.report.bytes_read > WIDE;
        file->data[at] ^= 16;
        sim_destroy(other);
    }
    EXPECT(lost > 3 && walked > 3);
    files_free(&files);
    sim_destroy(sim);
}

/* Another process looked before, and looks again: what it misses is no damage. */
static struct wal *look_on(struct run *run)
{
    struct wal_options options = run->options;
    struct wal *other;
    options.is_read_only = true;
    EXPECT(wal_open(sim_node_env(run->node), &options, &other, &last_error) == STATUS_OK);
    return other;
}

static void look_again(struct wal *other)
{
    struct wal_scan *scan;
    struct wal_view view;
    struct wal_damage damage;
    uint64_t entries, compacted = 0, gone = 0, end = wal_synced_end(other, 0).seq;
    for (uint64_t seq = 1; seq <= end; seq++) {
        EXPECT(wal_scan_open(other, 0, 0, seq - 1, &scan, &last_error) == STATUS_OK);
        enum status status = wal_scan_next(scan, &view, &last_error);
        EXPECT(status == STATUS_OK || status == STATUS_RECLAIMED);
        gone += status == STATUS_RECLAIMED;
        compacted += status == STATUS_RECLAIMED && strstr(last_error.message, "compacted");
        wal_scan_close(scan);
    }
    EXPECT(compacted > 10 && gone > compacted && !wal_damage_at(other, 0, &damage));
    EXPECT(wal_verify(other, &entries, &last_error) == STATUS_OK && entries == end - gone);
    EXPECT(!wal_damage_at(other, 0, &damage));
    wal_close(other);
}

/* Of the oldest sealed segment, for a copy of the log. */
static struct wal_segment_file *file_hold(struct wal *wal)
{
    struct wal_segment_file *file = NULL;
    struct wal_segment_info info;
    for (size_t i = 0; !file && wal_segment_at(wal, i, &info); i++)
        if (strcmp(info.state, "sealed") == 0)
            EXPECT(wal_segment_open(wal, info.id, &file, &last_error) == STATUS_OK);
    EXPECT(file);
    return file;
}

/* Who reads what would go keeps it, who copies the file too, and so does a consumer, until room is
 * short. */
static void act_hold(struct run *run, struct wal *wal, uint32_t table)
{
    struct wal_consumer consumer;
    enum wal_consumer_verdict verdict;
    struct wal_scan *scan;
    struct wal_view view;
    world.holds_all = true;
    flow(run, wal, table, 120);
    uint64_t first = wal_retained_from(wal, 0), end = world.last_seq;
    struct wal_consumer_ask ask = {
        .key = {.name = "c", .owner = "", .member_count = 1},
        .table_id = world.flowing,
        .ttl_ms = 1000000,
        .start = WAL_START_EARLIEST,
    };
    EXPECT(wal_consumer_put(wal, &ask, &verdict, &consumer, &last_error) == STATUS_OK);
    ack(wal, world.flowing, end);
    env_sleep_ms(sim_node_env(run->node), 3000);
    EXPECT(wal_usage(wal).segments_compacted == 0 && wal_retained_from(wal, 0) == first);
    EXPECT(wal_scan_open(wal, 0, world.flowing, 0, &scan, &last_error) == STATUS_OK);
    bool was_there;
    EXPECT(wal_consumer_drop(wal, "c", &was_there, &last_error) == STATUS_OK && was_there);
    env_sleep_ms(sim_node_env(run->node), 3000);
    struct wal *other = look_on(run);
    struct wal_segment_file *file = file_hold(wal);
    uint64_t found = 0;
    while (wal_scan_next(scan, &view, &last_error) == STATUS_OK)
        EXPECT(is_payload(ROWS + ++found, view.payload));
    EXPECT(found == world.rows && wal_usage(wal).segments_compacted == 0);
    wal_scan_close(scan);
    env_sleep_ms(sim_node_env(run->node), 3000);
    EXPECT(wal_usage(wal).segments_compacted == 1);
    wal_segment_close(file);
    env_sleep_ms(sim_node_env(run->node), 3000);
    EXPECT(wal_usage(wal).segments_compacted == 2);
    look_again(other);
    look_around(run, wal, table);
    /* A hold refuses nobody. */
    ask.start = WAL_START_LATEST;
    EXPECT(wal_consumer_put(wal, &ask, &verdict, &consumer, &last_error) == STATUS_OK);
    world.holds_all = false;
    flow(run, wal, table, ROWS / 2);
    EXPECT(wal_usage(wal).holds_released > 0);
    look_around(run, wal, table);
    /* The last of its rows goes out of the middle of a segment: there the floor is. */
    EXPECT(wal_consumer_drop(wal, "c", &was_there, &last_error) == STATUS_OK && was_there);
    world.holds_all = true;
    flow(run, wal, table, STUCK_EVERY + 5);
    EXPECT(wal_seal(wal, &last_error) == STATUS_OK);
    ack(wal, world.flowing, world.last_seq);
    env_sleep_ms(sim_node_env(run->node), 3000);
    EXPECT(wal_reclaimed_through(wal, 0, world.flowing) == world.last_seq);
    look_around(run, wal, table);
}

void l26_what_is_wanted_stays(void)
{
    struct sim *sim = sim_create(42);
    struct run run = world_begin(sim, 0);
    run.act = act_hold;
    run.options.budget_bytes = 16 * WIDE;
    run.options.compacted_from_percent = 10;
    go(&run);
    EXPECT(run.end == SIM_ENDED);
    sim_destroy(sim);
}
