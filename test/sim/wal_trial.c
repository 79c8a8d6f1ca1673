/* SPDX-License-Identifier: Apache-2.0
 *
 * What the named trials of the log share.
 */
#include "sim/wal_trials.h"

const char *trial;
bool trial_is_direct;
struct error last_error;
const char trial_dir[] = "/log";

static uint8_t *payload_of(uint64_t number, uint64_t bytes)
{
    uint8_t *payload = mem_alloc(bytes);
    EXPECT(payload);
    for (uint64_t i = 0; i < bytes; i++)
        payload[i] = (uint8_t)(number * 31 + i);
    put_le64(payload, number);
    return payload;
}

bool is_payload(uint64_t number, struct span payload)
{
    uint8_t *expected = payload_of(number, payload.length);
    bool is_same = memcmp(expected, payload.data, payload.length) == 0;
    mem_free(expected);
    return is_same;
}

enum status append(struct wal *wal, uint32_t table, uint64_t number, uint64_t bytes,
                   enum wal_durability durability, uint64_t *out_seq)
{
    uint8_t *payload = payload_of(number, bytes);
    struct wal_contribution contribution = {.rows = 1};
    struct wal_entry entry = {.type = WAL_DATA,
                              .table_id = table,
                              .rows = 1,
                              .contributions = &contribution,
                              .contribution_count = 1,
                              .payload = span_of(payload, bytes),
                              .payload_crc = crc32c(0, payload, bytes)};
    struct wal_submission submission = {
        .entries = &entry, .entry_count = 1, .durability = durability};
    enum status status = wal_append(wal, &submission, &last_error);
    mem_free(payload);
    *out_seq = entry.seq;
    return status;
}

void act_append(struct run *run, struct wal *wal, uint32_t table)
{
    for (uint64_t i = 0; i < run->count; i++) {
        uint64_t seq;
        run->last_append = append(wal, table, run->first + i, run->bytes, run->durability, &seq);
        if (run->last_append != STATUS_OK)
            return;
        run->acknowledged++;
    }
}

/* The damaged range that stops a scan behind `after`. */
static struct wal_damage damage_above(struct wal *wal, uint64_t after)
{
    struct wal_damage damage, nearest = {.seq_last = UINT64_MAX};
    for (size_t i = 0; wal_damage_at(wal, i, &damage); i++)
        if (damage.seq_last > after && damage.seq_last < nearest.seq_last)
            nearest = damage;
    EXPECT(nearest.seq_last != UINT64_MAX);
    return nearest;
}

static void scan_all(struct run *run, struct wal *wal, uint32_t table)
{
    struct wal_scan *scan;
    struct wal_view view;
    uint64_t position = 0;
    run->found = 0;
    EXPECT(wal_scan_open(wal, 0, table, 0, &scan, &last_error) == STATUS_OK);
    for (;;) {
        enum status status = wal_scan_next(scan, &view, &last_error);
        if (status == STATUS_CORRUPT) {
            struct wal_damage damage = damage_above(wal, position);
            if (!run->has_damage)
                run->damage = damage;
            run->has_damage = true;
            position = damage.seq_last;
            EXPECT(wal_scan_seek(scan, position, &last_error) == STATUS_OK);
            continue;
        }
        if (status != STATUS_OK) {
            EXPECT(status == STATUS_NOT_FOUND);
            break;
        }
        EXPECT(is_payload(get_le64(view.payload.data), view.payload));
        EXPECT(run->found < NUMBERS_MAX);
        position = view.seq;
        run->seqs[run->found] = view.seq;
        run->numbers[run->found++] = get_le64(view.payload.data);
    }
    wal_scan_close(scan);
}

static void run_main(void *context)
{
    struct run *run = context;
    struct wal *wal;
    uint32_t table;
    run->opened = wal_open(sim_node_env(run->node), &run->options, &wal, &last_error);
    if (run->opened != STATUS_OK)
        return;
    run->report = wal_recovery_report(wal);
    EXPECT(wal_table_open(wal, "otel.logs", &table, &last_error) == STATUS_OK);
    scan_all(run, wal, table);
    if (run->act)
        run->act(run, wal, table);
    if (run->leaves_open)
        sim_crash(run->node, SIM_KILLED);
    wal_close(wal);
}

void go(struct run *run)
{
    if (run->options.dir == NULL) {
        run->options = wal_options_default(trial_dir);
        run->options.segment_bytes = SEGMENT;
        run->options.budget_bytes = 64 * SEGMENT;
    }
    sim_node_direct(run->node, trial_is_direct);
    run->acknowledged = 0;
    run->has_damage = false;
    run->end = sim_run(run->node, run_main, run);
}

static void copy_file(void *context, const char *path, const struct env_stat *stat)
{
    struct files *files = context;
    struct file_copy *copy = &files->items[files->count++];
    UNUSED(stat);
    snprintf(copy->path, sizeof copy->path, "%s", path);
}

void files_take(struct files *files, struct sim_node *node)
{
    files->count = 0;
    sim_each_file(node, trial_dir, copy_file, files);
    for (size_t i = 0; i < files->count; i++) {
        const uint8_t *data;
        EXPECT(sim_file_bytes(node, files->items[i].path, &data, &files->items[i].bytes));
        files->items[i].data = malloc(files->items[i].bytes + 1);
        if (files->items[i].bytes)
            memcpy(files->items[i].data, data, files->items[i].bytes);
    }
}

void files_free(struct files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->items[i].data);
    files->count = 0;
}

struct file_copy *files_find(struct files *files, const char *part, size_t nth)
{
    /* Names are listed in no order: the nth smallest. */
    struct file_copy *best = NULL;
    const char *above = "";
    for (size_t k = 0; k <= nth; k++) {
        best = NULL;
        for (size_t i = 0; i < files->count; i++) {
            struct file_copy *file = &files->items[i];
            if (strstr(file->path, part) && strcmp(file->path, above) > 0 &&
                (!best || strcmp(file->path, best->path) < 0))
                best = file;
        }
        EXPECT(best);
        above = best->path;
    }
    return best;
}

struct sim_node *files_put(struct sim *sim, const struct files *files)
{
    struct sim_node *node = sim_node_create(sim, 64 << 20);
    for (size_t i = 0; i < files->count; i++)
        sim_put_file(node, files->items[i].path, files->items[i].data, files->items[i].bytes);
    return node;
}

/* ---- an independent reading of the active file ---- */

size_t units_of(const struct file_copy *file, struct unit *out, size_t most)
{
    size_t count = 0;
    for (uint64_t at = BLOCK; at + BLOCK <= file->bytes && count < most;) {
        const uint8_t *unit = file->data + at;
        if (memcmp(unit, "SLUN", 4) != 0 || get_le64(unit + 8) != count + 1)
            break;
        out[count++] = (struct unit){.offset = at,
                                     .bytes = get_le64(unit + 24),
                                     .number = get_le64(unit + 8),
                                     .floor = get_le64(unit + 16),
                                     .records = get_le32(unit + 32)};
        at += get_le64(unit + 24);
    }
    return count;
}

void killed_log(struct sim *sim, struct files *files, uint64_t count, uint64_t bytes)
{
    struct run run = {.node = sim_node_create(sim, 64 << 20),
                      .act = act_append,
                      .first = 1,
                      .count = count,
                      .bytes = bytes,
                      .durability = WAL_SYNCED,
                      .leaves_open = true};
    go(&run);
    EXPECT(run.end == SIM_KILLED && run.acknowledged == count);
    files_take(files, run.node);
}

void expect_prefix(const struct run *run, uint64_t count)
{
    EXPECT(run->opened == STATUS_OK);
    EXPECT(run->found == count);
    for (uint64_t i = 0; i < count; i++)
        EXPECT(run->numbers[i] == i + 1);
}
