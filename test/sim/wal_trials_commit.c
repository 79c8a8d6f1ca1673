/* SPDX-License-Identifier: Apache-2.0
 *
 * Trials of logs whose entries count when they are committed: what becomes of a truncation when the
 * record that says so, or the segment it stood in, is lost.
 */
#include "sim/wal_trials.h"

enum { OLD = 10, KEPT = 4, ROW_BYTES = 700 };

struct history {
    struct sim_node *node;
    struct wal *wal;
    uint32_t table;
    int old_rows, new_rows, kept_rows; /* found by a look */
    struct wal_recovery report;
    bool has_damage, leaves_open;
    uint64_t replacing; /* so many rows come in place of six */
    uint64_t in_next;   /* rows in a segment behind */
    struct wal_options options;
    uint64_t after;
};

static void commit_all(void *context)
{
    struct history *history = context;
    while (history->table == 0) {
        EXPECT(wal_commit(history->wal, 0, wal_stored_end(history->wal, 0).seq, &last_error) ==
               STATUS_OK);
        env_sleep_ms(sim_node_env(history->node), 5);
    }
}

/* A table waits until its entry counts. */
static void log_open(struct history *history)
{
    struct env *env = sim_node_env(history->node);
    struct env_thread *thread;
    history->table = 0;
    EXPECT(wal_open(env, &history->options, &history->wal, &last_error) == STATUS_OK);
    EXPECT(env_thread_start(env, "commit", commit_all, history, &thread, &last_error) == STATUS_OK);
    EXPECT(wal_table_open(history->wal, "ns.t", &history->table, &last_error) == STATUS_OK);
    env_thread_join(thread);
}

/* Ten rows, of which four are kept and six replaced by others. */
static void act(void *context)
{
    struct history *history = context;
    uint64_t seq = 0;
    log_open(history);
    for (uint64_t i = 1; i <= OLD; i++) {
        EXPECT(append(history->wal, history->table, i, ROW_BYTES, WAL_SYNCED, &seq) == STATUS_OK);
        if (i == KEPT)
            history->after = seq;
    }
    uint64_t term = wal_term(history->wal);
    EXPECT(wal_truncate(history->wal, 0, history->after, term, &last_error) == STATUS_INVALID);
    EXPECT(wal_truncate(history->wal, 0, seq + 1, term + 1, &last_error) == STATUS_CONFLICT);
    EXPECT(wal_truncate(history->wal, 0, history->after, term + 1, &last_error) == STATUS_OK);
    EXPECT(wal_commit(history->wal, 0, seq, &last_error) == STATUS_CONFLICT);
    for (uint64_t i = 1; i <= history->replacing; i++)
        EXPECT(append(history->wal, history->table, 100 + i, ROW_BYTES, WAL_SYNCED, &seq) ==
               STATUS_OK);
    for (uint64_t i = 0; i < history->in_next; i++) {
        EXPECT(wal_seal(history->wal, &last_error) == STATUS_OK);
        EXPECT(append(history->wal, history->table, 200 + i, ROW_BYTES, WAL_SYNCED, &seq) ==
               STATUS_OK);
    }
    env_sleep_ms(sim_node_env(history->node), 100); /* a floor over all of it */
    if (history->leaves_open)
        sim_crash(history->node, SIM_KILLED);
    wal_close(history->wal);
}

static void look(void *context)
{
    struct history *history = context;
    struct wal_scan *scan;
    struct wal_view view;
    struct wal_damage damage;
    history->table = 0;
    EXPECT(wal_open(sim_node_env(history->node), &history->options, &history->wal, &last_error) ==
           STATUS_OK);
    history->report = wal_recovery_report(history->wal);
    history->has_damage = wal_damage_at(history->wal, 0, &damage);
    uint64_t known = wal_synced_end(history->wal, 0).seq;
    EXPECT(known <= history->after);
    EXPECT(wal_commit(history->wal, 0, wal_stored_end(history->wal, 0).seq, &last_error) ==
           STATUS_OK);
    EXPECT(wal_table_open(history->wal, "ns.t", &history->table, &last_error) == STATUS_OK);
    EXPECT(wal_scan_open(history->wal, 0, history->table, 0, &scan, &last_error) == STATUS_OK);
    while (wal_scan_next(scan, &view, &last_error) == STATUS_OK) {
        uint64_t number = get_le64(view.payload.data), chain;
        EXPECT(is_payload(number, view.payload));
        EXPECT(wal_chain_at(history->wal, 0, view.seq, &chain, &last_error) == STATUS_OK);
        EXPECT(chain == view.chain);
        history->old_rows += number > KEPT && number <= OLD;
        history->kept_rows += number <= KEPT;
        history->new_rows += number > 100;
    }
    wal_scan_close(scan);
    wal_close(history->wal);
}

static struct history begin_with(struct sim *sim, bool leaves_open, uint64_t replacing,
                                 uint64_t in_next)
{
    struct history history = {.node = sim_node_create(sim, 64 << 20),
                              .leaves_open = leaves_open,
                              .replacing = replacing,
                              .in_next = in_next,
                              .options = wal_options_default(trial_dir)};
    history.options.segment_bytes = SEGMENT;
    history.options.budget_bytes = 64 * SEGMENT;
    history.options.needs_commit = true;
    sim_node_direct(history.node, trial_is_direct);
    enum sim_end end = sim_run(history.node, act, &history);
    EXPECT(end == (leaves_open ? SIM_KILLED : SIM_ENDED));
    return history;
}

static struct history begin(struct sim *sim, bool leaves_open)
{
    return begin_with(sim, leaves_open, OLD - 1, 0);
}

static void look_at(struct history *history, struct sim *sim, const struct files *files)
{
    history->node = files_put(sim, files);
    history->old_rows = history->kept_rows = history->new_rows = 0;
    EXPECT(sim_run(history->node, look, history) == SIM_ENDED);
}

/* After a kill and after a clean end; and who opens the log as another kind is told. */
void truncation_lasts(void)
{
    for (int is_killed = 0; is_killed < 2; is_killed++) {
        struct sim *sim = sim_create(51);
        static struct files files;
        struct history history = begin(sim, is_killed);
        files_take(&files, history.node);
        look_at(&history, sim, &files);
        EXPECT(history.kept_rows == KEPT && history.old_rows == 0);
        EXPECT(history.new_rows == OLD - 1 && !history.has_damage);
        files_free(&files);
        sim_destroy(sim);
    }
}

static void open_as_another_kind(void *context)
{
    struct history *history = context;
    history->options.needs_commit = !history->options.needs_commit;
    EXPECT(wal_open(sim_node_env(history->node), &history->options, &history->wal, &last_error) ==
           STATUS_INVALID);
    history->options.is_read_only = true; /* looking is free, and sees what counts alone */
    EXPECT(wal_open(sim_node_env(history->node), &history->options, &history->wal, &last_error) ==
           STATUS_OK);
    EXPECT(wal_synced_end(history->wal, 0).seq <= history->after);
    EXPECT(wal_stored_end(history->wal, 0).seq > history->after);
    wal_close(history->wal);
}

void commits_are_of_the_log(void)
{
    struct sim *sim = sim_create(52);
    struct history history = begin(sim, false);
    EXPECT(sim_run(history.node, open_as_another_kind, &history) == SIM_ENDED);
    sim_destroy(sim);
}

/* Of those whose path holds `part`, from the last one back. */
static struct file_copy *last_file(struct files *files, const char *part, size_t back)
{
    size_t count = 0;
    for (size_t i = 0; i < files->count; i++)
        count += strstr(files->items[i].path, part) != NULL;
    EXPECT(count > back);
    return files_find(files, part, count - 1 - back);
}

/* L20: any bit of the block that holds the record, in the active segment and in a sealed one whose
 * footer is gone too. The rows that follow say by their terms what it said. */
static void bits_flipped(bool is_killed)
{
    static struct files files;
    struct sim *sim = sim_create(53);
    struct history history = begin(sim, is_killed);
    files_take(&files, history.node);
    struct file_copy *file = last_file(&files, is_killed ? "/active/" : "/sealed/", 0);
    struct unit units[64];
    size_t count = units_of(file, units, COUNT_OF(units));
    EXPECT(count > OLD && units[0].records == 1);
    if (!is_killed) /* the trailer: all is walked */
        memset(file->data + file->bytes - 64, 0, 64);
    for (uint64_t bit = 0; bit < (uint64_t)300 * 8; bit += 7) {
        struct sim *other = sim_create(bit);
        uint8_t *byte = &file->data[units[0].offset + bit / 8];
        *byte ^= (uint8_t)(1 << bit % 8);
        look_at(&history, other, &files);
        EXPECT(history.kept_rows == KEPT && history.old_rows == 0);
        EXPECT(history.new_rows == OLD - 1);
        *byte ^= (uint8_t)(1 << bit % 8);
        sim_destroy(other);
    }
    files_free(&files);
    sim_destroy(sim);
}

void l20_the_record_is_damaged(void)
{
    bits_flipped(true);
    bits_flipped(false);
}

/* L20: the segment is gone with the rows that replaced others: nothing passes for them. */
static void lose_the_segment(uint64_t replacing)
{
    static struct files files;
    struct sim *sim = sim_create(54);
    struct history history = begin_with(sim, true, replacing, 1);
    files_take(&files, history.node);
    struct file_copy *file = last_file(&files, "/sealed/", 0);
    files_free(&(struct files){.items = {*file}, .count = 1});
    *file = files.items[--files.count];
    look_at(&history, sim, &files);
    EXPECT(history.has_damage && history.old_rows == 0 && history.new_rows == 0);
    EXPECT(history.kept_rows == 0 || history.kept_rows == KEPT);
    files_free(&files);
    sim_destroy(sim);
}

/* More rows than they replaced, as many, and fewer. */
void l20_the_segment_of_the_record_is_lost(void)
{
    lose_the_segment(OLD - 1);
    lose_the_segment(OLD - KEPT);
    lose_the_segment(2);
}
