/* SPDX-License-Identifier: Apache-2.0
 *
 * Named trials of the log on the simulated disk: one scenario each, checked exactly. The files a
 * node leaves are taken as bytes, damaged, put on a fresh disk and opened. All of them run twice:
 * with writes and syncs, and with direct writes that are their own sync. Prints TAP.
 */
#include "sim/wal_trials.h"

/* Power cut under load, again and again: everything acknowledged is there. */
static void td1_power_loss_under_load(void)
{
    struct sim *sim = sim_create(10);
    struct sim_node *node = sim_node_create(sim, 64 << 20);
    uint64_t next = 1, least = 0;
    for (int round = 0; round < 60; round++) {
        struct run run = {.node = node,
                          .act = act_append,
                          .first = next,
                          .count = 200,
                          .bytes = 900,
                          .durability = WAL_SYNCED};
        /* Each start leaves a segment, which the next has to read. */
        sim_crash_at(node, SIM_POWER_CUT,
                     5 + random_below(sim_random(sim), 120 + 10 * (uint64_t)round));
        go(&run);
        if (run.acknowledged > 0 && least > 0) /* all had been read by then */
            EXPECT(run.found > 0 && run.numbers[run.found - 1] >= least);
        next +=
            run.acknowledged + 1; /* the one in flight may be there: its number is not used again */
        least = run.acknowledged ? next - 2 : least;
    }
    struct run last = {.node = node};
    go(&last);
    EXPECT(last.numbers[last.found - 1] >= least);
    sim_destroy(sim);
}

/* A volume that fills up: refusals that can be tried again, nothing acknowledged is lost, and room
 * given back is used without a restart. */
static void act_fill(struct run *run, struct wal *wal, uint32_t table)
{
    uint64_t seq;
    for (uint64_t number = 1; number < 2000; number++) {
        run->last_append = append(wal, table, number, 2000, WAL_SYNCED, &seq);
        if (run->last_append != STATUS_OK)
            break;
        run->acknowledged++;
    }
    uint64_t retry_ms;
    run->extra[0] = wal_admit(wal, 60000, &retry_ms, &last_error);
    sim_node_volume(run->node, 64 << 20);
    env_sleep_ms(sim_node_env(run->node), 3000);
    run->extra[1] = append(wal, table, run->acknowledged + 1, 2000, WAL_SYNCED, &seq) == STATUS_OK;
    run->acknowledged += run->extra[1];
}

static void td6_disk_full(void)
{
    struct sim *sim = sim_create(11);
    struct run run = {.node = sim_node_create(sim, 1 << 20), .act = act_fill};
    go(&run);
    EXPECT(run.end == SIM_ENDED);
    EXPECT(run.last_append == STATUS_NO_SPACE && run.acknowledged > 100);
    EXPECT(run.extra[0] == STATUS_NO_SPACE && run.extra[1]);
    struct run again = {.node = run.node};
    go(&again);
    expect_prefix(&again, run.acknowledged);
    sim_destroy(sim);
}

/* After a failed sync nothing in that file is trusted: the process ends with 74, and what the next
 * start serves is on the disk, not in the page cache alone (L22). */
static void td6_failed_sync(void)
{
    uint64_t seen_in_cache = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct sim *sim = sim_create(seed);
        struct sim_node *node = sim_node_create(sim, 64 << 20);
        struct run run = {.node = node,
                          .act = act_append,
                          .first = 1,
                          .count = 400,
                          .bytes = 700,
                          /* what is its own sync goes past the page cache */
                          .durability = trial_is_direct ? WAL_WRITTEN : WAL_SYNCED};
        sim_node_faults(node)->sync_fails = 1000;
        go(&run);
        sim_node_faults(node)->sync_fails = 0;
        if (run.end != SIM_EXITED || run.opened != STATUS_OK) {
            sim_destroy(sim);
            continue;
        }
        EXPECT(sim_exit_code(node) == 74);
        struct run second = {.node = node, .leaves_open = true};
        go(&second);
        EXPECT(second.found >= run.acknowledged);
        seen_in_cache += second.found > run.acknowledged;
        /* Served once, so it must be there after the power goes. */
        sim_power_cut(node);
        struct run third = {.node = node};
        go(&third);
        EXPECT(third.found >= second.found);
        sim_destroy(sim);
    }
    EXPECT(seen_in_cache > 0);
}

/* The number of a producer and its rows become durable together, in all tables of the request
 * (L28). */
static void act_tc11(struct run *run, struct wal *wal, uint32_t table)
{
    struct wal_receipt receipts[16];
    uint32_t count;
    uint64_t expected;
    struct span id = span_of_text("p");
    struct hash128 hash = {1, 2};
    uint8_t payload[8] = {9};
    run->extra[0] = wal_producer_begin(wal, id, 1, hash, receipts, &count, &expected);
    run->extra[1] = count;
    if (run->extra[0] != WAL_PRODUCER_NEW)
        return;
    run->extra[2] = wal_producer_begin(wal, id, 1, hash, receipts, &count, &expected);
    struct wal_contribution contribution = {.rows = 1,
                                            .body_hash = hash,
                                            .producer = "p",
                                            .producer_length = 1,
                                            .producer_sequence = 1};
    struct wal_entry entry = {.type = WAL_DATA,
                              .table_id = table,
                              .rows = 1,
                              .contributions = &contribution,
                              .contribution_count = 1,
                              .payload = span_of(payload, sizeof payload),
                              .payload_crc = crc32c(0, payload, sizeof payload)};
    struct wal_entry entries[2] = {entry, entry};
    EXPECT(wal_table_open(wal, "other", &entries[1].table_id, &last_error) == STATUS_OK);
    struct wal_submission submission = {
        .entries = entries, .entry_count = 2, .durability = WAL_SYNCED};
    run->last_append = wal_append(wal, &submission, &last_error);
}

static void tc11_number_and_rows_together(void)
{
    bool was_new = false, was_repeat = false;
    for (uint64_t call = 40; call < 130; call++) {
        struct sim *sim = sim_create(call);
        struct run first = {.node = sim_node_create(sim, 64 << 20)};
        go(&first);
        struct run run = {.node = first.node, .act = act_tc11};
        sim_crash_at(run.node, SIM_POWER_CUT, call);
        go(&run);
        struct run again = {.node = run.node, .act = act_tc11};
        go(&again);
        bool is_repeat = again.extra[0] == WAL_PRODUCER_REPEAT;
        EXPECT(is_repeat || again.extra[0] == WAL_PRODUCER_NEW);
        EXPECT(is_repeat == (again.found == 1)); /* found before the retry */
        EXPECT(!is_repeat || again.extra[1] == 2);
        if (!is_repeat)
            EXPECT(again.extra[2] == WAL_PRODUCER_IN_FLIGHT && again.last_append == STATUS_OK);
        was_new |= !is_repeat;
        was_repeat |= is_repeat;
        struct run last = {.node = run.node, .act = act_tc11};
        go(&last);
        EXPECT(last.extra[0] == WAL_PRODUCER_REPEAT && last.extra[1] == 2 && last.found == 1);
        sim_destroy(sim);
    }
    EXPECT(was_new && was_repeat);
}

/* An acknowledgement never outlives, or outruns, the entries it speaks of. */
static void act_tc12(struct run *run, struct wal *wal, uint32_t table)
{
    struct wal_ack ack = {0}, known = {0};
    struct wal_position end = wal_synced_end(wal, 0);
    if (wal_ack_get(wal, table, 0, &known))
        EXPECT(known.through.seq <= end.seq);
    run->extra[0] = known.through.seq;
    for (uint64_t i = 0; i < 20; i++) {
        uint64_t seq;
        EXPECT(append(wal, table, 1000 + i, 300, i % 2 ? WAL_WRITTEN : WAL_SYNCED, &seq) ==
               STATUS_OK);
        ack.through = ack.committed = wal_synced_end(wal, 0);
        if (wal_ack_table(wal, table, &ack, &last_error) == STATUS_OK)
            run->extra[1] = ack.through.seq;
    }
}

static void tc12_position_never_ahead(void)
{
    for (uint64_t call = 1; call < 160; call += 3) {
        struct sim *sim = sim_create(call + 500);
        struct run run = {.node = sim_node_create(sim, 64 << 20), .act = act_tc12};
        sim_crash_at(run.node, SIM_POWER_CUT, 20 + call);
        go(&run);
        struct run again = {.node = run.node, .act = act_tc12};
        go(&again);
        EXPECT(again.opened == STATUS_OK && again.end == SIM_ENDED);
        EXPECT(again.extra[0] >= run.extra[1]);
        sim_destroy(sim);
    }
}

/* L17: a spare with a second name is somebody's: it is not written to. */
static void l17_linked_spare_is_left_alone(void)
{
    struct sim *sim = sim_create(13);
    struct run run = {.node = sim_node_create(sim, 64 << 20),
                      .act = act_five_segments,
                      .bytes = 12000,
                      .durability = WAL_SYNCED};
    go(&run);
    static struct files files;
    files_take(&files, run.node);
    const char *victim = files_find(&files, "/sealed/", 0)->path;
    char link[128];
    snprintf(link, sizeof link, "%s/spare/%016x.spare", trial_dir, 0x77);
    sim_node_link(run.node, victim, link);
    struct run again = {
        .node = run.node, .act = act_five_segments, .bytes = 12000, .durability = WAL_SYNCED};
    go(&again);
    struct run last = {.node = run.node};
    go(&last);
    EXPECT(last.found == 40 && !last.has_damage);
    files_free(&files);
    sim_destroy(sim);
}

/* L17: what an open scan has yet to read is not reclaimed under it; afterwards it is. */
static void act_scanned(struct run *run, struct wal *wal, uint32_t table)
{
    struct wal_scan *scan;
    struct wal_view view;
    enum status status;
    act_five_segments(run, wal, table);
    EXPECT(wal_scan_open(wal, 0, table, 0, &scan, &last_error) == STATUS_OK);
    EXPECT(wal_scan_next(scan, &view, &last_error) == STATUS_OK);
    struct wal_ack ack = {.committed = wal_synced_end(wal, 0)};
    ack.through = ack.committed;
    EXPECT(wal_ack_table(wal, table, &ack, &last_error) == STATUS_OK);
    env_sleep_ms(sim_node_env(run->node), 5000);
    run->extra[0] = 1;
    while ((status = wal_scan_next(scan, &view, &last_error)) == STATUS_OK)
        run->extra[0]++;
    EXPECT(status == STATUS_NOT_FOUND);
    wal_scan_close(scan);
    env_sleep_ms(sim_node_env(run->node), 5000);
    run->extra[1] = wal_reclaimed_through(wal, 0, table);
}

static void l17_open_scan_keeps_what_it_reads(void)
{
    struct sim *sim = sim_create(16);
    struct run run = {.node = sim_node_create(sim, 64 << 20),
                      .act = act_scanned,
                      .options = wal_options_default(trial_dir),
                      .bytes = 12000,
                      .durability = WAL_SYNCED};
    run.options.segment_bytes = SEGMENT;
    run.options.budget_bytes = 64 * SEGMENT;
    run.options.keep_committed_ms = 0;
    go(&run);
    EXPECT(run.end == SIM_ENDED && run.extra[0] == 20 && run.extra[1] > 0);
    sim_destroy(sim);
}

/* L5: two copies of one log that go on with the same writes do not have the same history. */
static void act_chain(struct run *run, struct wal *wal, uint32_t table)
{
    act_append(run, wal, table);
    run->extra[0] = wal_synced_end(wal, 0).chain;
    run->extra[1] = wal_synced_end(wal, 0).seq;
}

static void l5_copies_part(void)
{
    struct sim *sim = sim_create(14);
    static struct files files;
    struct run runs[2];
    killed_log(sim, &files, 3, 300);
    for (size_t i = 0; i < 2; i++) {
        struct sim *world = sim_create(100 + i);
        runs[i] = (struct run){.node = files_put(world, &files),
                               .act = act_chain,
                               .first = 4,
                               .count = 2,
                               .bytes = 50,
                               .durability = WAL_SYNCED};
        go(&runs[i]);
        sim_destroy(world);
    }
    EXPECT(runs[0].extra[1] == runs[1].extra[1] && runs[0].extra[0] != runs[1].extra[0]);
    files_free(&files);
    sim_destroy(sim);
}

/* L23: a scan beside the writer shows nothing that a loss of power can still take back. */
struct watch {
    struct wal *wal;
    struct sim_node *node;
    uint32_t table;
    uint64_t seen, end; /* entries in the longest scan; the highest synced end */
    bool is_over;
};

static void watch_main(void *context)
{
    struct watch *watch = context;
    struct wal_scan *scan;
    struct wal_view view;
    struct error err;
    uint64_t seen = 0;
    EXPECT(wal_scan_open(watch->wal, 0, watch->table, 0, &scan, &last_error) == STATUS_OK);
    while (!watch->is_over) {
        while (wal_scan_next(scan, &view, &err) == STATUS_OK)
            watch->seen = ++seen;
        watch->end = wal_synced_end(watch->wal, 0).seq;
        env_sleep_ms(sim_node_env(watch->node), 0);
    }
    wal_scan_close(scan);
}

static struct watch watch;

static void act_watched(struct run *run, struct wal *wal, uint32_t table)
{
    struct env_thread *thread;
    watch.wal = wal;
    watch.node = run->node;
    watch.table = table;
    EXPECT(env_thread_start(sim_node_env(run->node), "watch", watch_main, &watch, &thread,
                            &last_error) == STATUS_OK);
    act_append(run, wal, table);
    watch.is_over = true;
    env_thread_join(thread);
}

static void l23_only_what_is_synced_is_seen(void)
{
    uint64_t seen = 0;
    for (uint64_t call = 50; call < 180; call++) {
        struct sim *sim = sim_create(call);
        watch = (struct watch){0};
        struct run first = {.node = sim_node_create(sim, 64 << 20)};
        go(&first);
        struct run run = {.node = first.node,
                          .act = act_watched,
                          .first = 1,
                          .count = 60,
                          .bytes = 300,
                          .durability = call % 2 ? WAL_SYNCED : WAL_WRITTEN};
        sim_crash_at(run.node, SIM_POWER_CUT, call);
        go(&run);
        seen += watch.seen;
        struct run again = {.node = run.node, .act = act_chain};
        go(&again);
        EXPECT(again.opened == STATUS_OK && again.end == SIM_ENDED);
        EXPECT(again.found >= watch.seen && again.extra[1] >= watch.end);
        sim_destroy(sim);
    }
    EXPECT(seen > 1000);
}

static void act_refused(struct run *run, struct wal *wal, uint32_t table)
{
    sim_node_faults(run->node)->write_no_space = 3000;
    act_append(run, wal, table);
}

/* A write that failed for space is taken back before it is refused: the bytes that reached the file
 * are more often than not the whole of the entry, and only padding is missing. */
static void l6_refused_write_is_taken_back(void)
{
    uint64_t refused = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct sim *sim = sim_create(seed);
        struct run run = {.node = sim_node_create(sim, 64 << 20),
                          .act = act_refused,
                          .first = 1,
                          .count = 100,
                          .bytes = 300,
                          .durability = WAL_SYNCED,
                          .leaves_open = true};
        go(&run);
        sim_node_faults(run.node)->write_no_space = 0;
        EXPECT(run.opened == STATUS_OK && run.end == SIM_KILLED);
        refused += run.last_append == STATUS_NO_SPACE;
        struct run again = {.node = run.node};
        go(&again);
        EXPECT(again.opened == STATUS_OK && !again.has_damage);
        if (run.last_append == STATUS_UNKNOWN_OUTCOME)
            EXPECT(again.found >= run.acknowledged);
        else
            expect_prefix(&again, run.acknowledged);
        sim_destroy(sim);
    }
    EXPECT(refused > 10);
}

/* L22 for names: one that a killed process left may be in the cache alone, and nothing is removed
 * on its word before it is synced. */
static void l22_names_are_synced_before_they_count(void)
{
    struct sim *sim = sim_create(17);
    static struct files files;
    killed_log(sim, &files, 4, 300);
    sim_destroy(sim);
    uint64_t cut = 0;
    for (uint64_t killed = 1; killed <= 120; killed += 2) {
        for (uint64_t lost = 1; lost <= 120; lost += 6) {
            struct sim *world = sim_create(killed * 1000 + lost);
            struct run first = {.node = files_put(world, &files)};
            sim_crash_at(first.node, SIM_KILLED, killed);
            go(&first);
            struct run second = {.node = first.node};
            sim_crash_at(first.node, SIM_POWER_CUT, lost);
            go(&second);
            cut += second.end == SIM_POWER_CUT;
            struct run last = {.node = first.node};
            go(&last);
            expect_prefix(&last, 4);
            EXPECT(last.end == SIM_ENDED && !last.has_damage);
            sim_destroy(world);
        }
    }
    EXPECT(cut > 400);
    files_free(&files);
}

/* L8: completions come in the order of submission, whoever gives them, however long they take. */
enum { ORDERED = 300, APPENDERS = 3 };

struct ordered {
    struct wal_submission submission;
    struct wal_entry entry;
    struct wal_contribution contribution;
    uint64_t number;
};

static struct {
    struct sim_node *node;
    struct wal *wal;
    uint32_t table;
    uint64_t done;
    uint8_t payload[64];
    struct ordered items[ORDERED];
} order;

static void ordered_done(struct wal_submission *submission, enum status status,
                         const struct error *err)
{
    struct ordered *item = CONTAINER_OF(submission, struct ordered, submission);
    UNUSED(err);
    EXPECT(status == STATUS_OK && item->number == order.done + 1);
    if (item->number % 8 == 0)
        env_sleep_ms(sim_node_env(order.node), 1); /* time for others to write a unit, and end it */
    order.done++;
}

static void appender_main(void *context)
{
    UNUSED(context);
    uint64_t seq;
    for (uint64_t i = 0; i < 40; i++)
        EXPECT(append(order.wal, order.table, 1000 + i, 100, WAL_SYNCED, &seq) == STATUS_OK);
}

static void act_ordered(struct run *run, struct wal *wal, uint32_t table)
{
    struct env *env = sim_node_env(run->node);
    struct env_thread *threads[APPENDERS];
    order.node = run->node;
    order.wal = wal;
    order.table = table;
    order.done = 0;
    for (size_t i = 0; i < APPENDERS; i++)
        EXPECT(env_thread_start(env, "append", appender_main, NULL, &threads[i], &last_error) ==
               STATUS_OK);
    for (uint64_t i = 0; i < ORDERED; i++) {
        struct ordered *item = &order.items[i];
        *item = (struct ordered){.number = i + 1, .contribution.rows = 1};
        item->entry =
            (struct wal_entry){.type = WAL_DATA,
                               .table_id = table,
                               .rows = 1,
                               .contributions = &item->contribution,
                               .contribution_count = 1,
                               .payload = span_of(order.payload, sizeof order.payload),
                               .payload_crc = crc32c(0, order.payload, sizeof order.payload)};
        item->submission = (struct wal_submission){.entries = &item->entry,
                                                   .entry_count = 1,
                                                   .durability = WAL_SYNCED,
                                                   .done = ordered_done};
        wal_submit(wal, &item->submission);
        if (i % 16 == 0)
            env_sleep_ms(env, 1);
    }
    while (order.done < ORDERED)
        env_sleep_ms(env, 1);
    for (size_t i = 0; i < APPENDERS; i++)
        env_thread_join(threads[i]);
}

static void l8_completions_in_order(void)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct sim *sim = sim_create(seed);
        struct run run = {.node = sim_node_create(sim, 64 << 20), .act = act_ordered};
        go(&run);
        EXPECT(run.end == SIM_ENDED && order.done == ORDERED);
        sim_destroy(sim);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} trials[] = {
    {"TD1 power loss under load", td1_power_loss_under_load},
    {"TD2 one bit anywhere in closed files", td2_one_bit_anywhere},
    {"TD3 truncated at every byte of the last record", td3_truncated_at_every_byte},
    {"TD3 garbled at every sector of the last record", td3_garbled_at_every_sector},
    {"TD4 damage in the middle segment of five", td4_damage_in_the_middle_segment},
    {"TD6 disk full", td6_disk_full},
    {"TD6 failed sync", td6_failed_sync},
    {"TC11 number and rows together", tc11_number_and_rows_together},
    {"TC12 position never ahead of durable data", tc12_position_never_ahead},
    {"L5 copies part", l5_copies_part},
    {"L6 a refused write is taken back", l6_refused_write_is_taken_back},
    {"L7 units on blocks", l7_units_on_blocks},
    {"L8 completions in order", l8_completions_in_order},
    {"L9 idle floor protects the last unit", l9_idle_floor_protects_the_last_unit},
    {"L20 the newest segment is lost", l20_the_newest_segment_is_lost},
    {"L10 recycled bytes never verify", l10_recycled_bytes_never_verify},
    {"L17 linked spare is left alone", l17_linked_spare_is_left_alone},
    {"L17 an open scan keeps what it reads", l17_open_scan_keeps_what_it_reads},
    {"L20 the floor decides", l20_floor_decides},
    {"L21 later segments go with a cut", l21_later_segments_go},
    {"L22 names are synced before they count", l22_names_are_synced_before_they_count},
    {"L23 only what is synced is seen", l23_only_what_is_synced_is_seen},
    {"L26 a stuck table keeps its rows alone", l26_stuck_table_keeps_its_rows},
    {"L26 a crash at any step", l26_crash_at_any_step},
    {"L26 damage in a compacted segment", l26_damage_in_a_compacted_segment},
    {"L26 what is wanted stays", l26_what_is_wanted_stays},
    {"L3 a truncation lasts", truncation_lasts},
    {"L23 what counts is the log's to say", commits_are_of_the_log},
    {"L20 a truncation's record is damaged", l20_the_record_is_damaged},
    {"L20 a truncation's segment is lost", l20_the_segment_of_the_record_is_lost},
};

int main(void)
{
    size_t number = 0;
    printf("1..%zu\n", 2 * COUNT_OF(trials));
    for (int is_direct = 0; is_direct < 2; is_direct++) {
        trial_is_direct = is_direct;
        for (size_t i = 0; i < COUNT_OF(trials); i++) {
            trial = trials[i].name;
            trials[i].run();
            printf("ok %zu - %s%s\n", ++number, trial, is_direct ? ", direct" : "");
            fflush(stdout);
        }
    }
    return 0;
}
