/* SPDX-License-Identifier: Apache-2.0
 *
 * Named trials of the log on the simulated disk: one scenario each, checked exactly. The files a
 * node leaves are taken as bytes, damaged, put on a fresh disk and opened. Prints TAP.
 */
#include <stdio.h>
#include <stdlib.h>

#include "log/wal/wal.h"
#include "sim/sim.h"

static const char dir[] = "/log";
enum { BLOCK = 4096, SEGMENT = 64 << 10, NUMBERS_MAX = 4096 };

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("not ok - %s\n# %s:%d: %s (%s)\n", trial, __FILE__, __LINE__, #condition,       \
                   last_error.message);                                                            \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static const char *trial;
static struct error last_error;

/* ---- a node and what happened on it ---- */

struct file_copy {
    char path[128];
    uint8_t *data;
    uint64_t bytes;
};

struct files {
    struct file_copy items[128];
    size_t count;
};

struct run {
    struct sim_node *node;
    struct wal_options options;
    void (*act)(struct run *run, struct wal *wal, uint32_t table);
    bool leaves_open;             /* killed instead of closed */
    uint64_t first, count, bytes; /* for act_append */
    enum wal_durability durability;
    /* results */
    enum status opened, last_append;
    struct wal_recovery report;
    uint64_t numbers[NUMBERS_MAX], seqs[NUMBERS_MAX];
    size_t found;
    struct wal_damage damage;
    bool has_damage;
    uint64_t acknowledged, extra[8];
    enum sim_end end;
};

static uint8_t *payload_of(uint64_t number, uint64_t bytes)
{
    uint8_t *payload = mem_alloc(bytes);
    EXPECT(payload);
    for (uint64_t i = 0; i < bytes; i++)
        payload[i] = (uint8_t)(number * 31 + i);
    put_le64(payload, number);
    return payload;
}

static enum status append(struct wal *wal, uint32_t table, uint64_t number, uint64_t bytes,
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

static void act_append(struct run *run, struct wal *wal, uint32_t table)
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
        uint8_t *expected = payload_of(get_le64(view.payload.data), view.payload.length);
        EXPECT(memcmp(expected, view.payload.data, view.payload.length) == 0);
        mem_free(expected);
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

static void go(struct run *run)
{
    if (run->options.dir == NULL) {
        run->options = wal_options_default(dir);
        run->options.segment_bytes = SEGMENT;
        run->options.budget_bytes = 64 * SEGMENT;
    }
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

static void files_take(struct files *files, struct sim_node *node)
{
    files->count = 0;
    sim_each_file(node, dir, copy_file, files);
    for (size_t i = 0; i < files->count; i++) {
        const uint8_t *data;
        EXPECT(sim_file_bytes(node, files->items[i].path, &data, &files->items[i].bytes));
        files->items[i].data = malloc(files->items[i].bytes + 1);
        if (files->items[i].bytes)
            memcpy(files->items[i].data, data, files->items[i].bytes);
    }
}

static void files_free(struct files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->items[i].data);
    files->count = 0;
}

static struct file_copy *files_find(struct files *files, const char *part, size_t nth)
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

static struct sim_node *files_put(struct sim *sim, const struct files *files)
{
    struct sim_node *node = sim_node_create(sim, 64 << 20);
    for (size_t i = 0; i < files->count; i++)
        sim_put_file(node, files->items[i].path, files->items[i].data, files->items[i].bytes);
    return node;
}

/* ---- an independent reading of the active file ---- */

struct unit {
    uint64_t offset, bytes, number, floor;
    uint32_t records;
};

static size_t units_of(const struct file_copy *file, struct unit *out, size_t most)
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

/* ---- trials ---- */

/* Killed in the middle: the active segment holds NOOP, TABLE and `count` entries, one a unit. */
static void killed_log(struct sim *sim, struct files *files, uint64_t count, uint64_t bytes)
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

static void expect_prefix(const struct run *run, uint64_t count)
{
    EXPECT(run->opened == STATUS_OK);
    EXPECT(run->found == count);
    for (uint64_t i = 0; i < count; i++)
        EXPECT(run->numbers[i] == i + 1);
}

static void td3_truncated_at_every_byte(void)
{
    struct sim *sim = sim_create(3);
    static struct files files;
    struct unit units[64];
    killed_log(sim, &files, 4, 300);
    struct file_copy *active = files_find(&files, "/active/", 0);
    size_t count = units_of(active, units, COUNT_OF(units));
    while (count > 0 && units[count - 1].records == 0)
        count--; /* a floor unit behind the last record */
    const struct unit *last = &units[count - 1];
    sim_destroy(sim);
    uint64_t whole = active->bytes;
    for (uint64_t length = last->offset; length <= last->offset + last->bytes; length++) {
        struct sim *world = sim_create(length);
        active->bytes = length;
        struct run run = {.node = files_put(world, &files)};
        go(&run);
        expect_prefix(&run, length == last->offset + last->bytes ? 4 : 3);
        EXPECT(!run.has_damage);
        sim_destroy(world);
    }
    active->bytes = whole;
    files_free(&files);
}

static void td3_garbled_at_every_sector(void)
{
    struct sim *sim = sim_create(4);
    static struct files files;
    struct unit units[64];
    killed_log(sim, &files, 4, 5000);
    struct file_copy *active = files_find(&files, "/active/", 0);
    size_t count = units_of(active, units, COUNT_OF(units));
    while (count > 0 && units[count - 1].records == 0)
        count--;
    const struct unit *last = &units[count - 1];
    /* What a floor behind it says would make this damage instead of a torn tail. */
    memset(active->data + last->offset + last->bytes, 0,
           active->bytes - last->offset - last->bytes);
    sim_destroy(sim);
    uint64_t used = 5000 + 512; /* the rest of the unit is padding */
    for (uint64_t at = 0; at < used; at += 512) {
        struct sim *world = sim_create(at);
        uint8_t saved[512];
        memcpy(saved, active->data + last->offset + at, sizeof saved);
        memset(active->data + last->offset + at, 0xa5, sizeof saved);
        struct run run = {.node = files_put(world, &files)};
        go(&run);
        expect_prefix(&run, 3);
        EXPECT(!run.has_damage);
        /* L21: the segment got its footer, and the next entries are in another one. */
        run.act = act_append;
        run.first = 4;
        run.count = 1;
        run.bytes = 100;
        run.durability = WAL_SYNCED;
        go(&run);
        run.act = NULL;
        go(&run);
        expect_prefix(&run, 4);
        memcpy(active->data + last->offset + at, saved, sizeof saved);
        sim_destroy(world);
    }
    files_free(&files);
}

/* Damage at or below a surviving floor is never cut: it is named, and what follows stays. */
static void l20_floor_decides(void)
{
    struct sim *sim = sim_create(5);
    static struct files files;
    struct unit units[64];
    killed_log(sim, &files, 6, 300);
    struct file_copy *active = files_find(&files, "/active/", 0);
    size_t count = units_of(active, units, COUNT_OF(units));
    EXPECT(count >= 8);
    sim_destroy(sim);
    for (size_t victim = 2; victim < count; victim++) {
        bool is_proven = false, has_records = units[victim].records > 0;
        for (size_t k = victim + 1; k < count; k++)
            is_proven |= units[k].floor >= units[victim].number;
        for (int part = 0; part < 3 && has_records; part++) {
            /* unit header, entry header, payload */
            static const uint64_t offsets[] = {9, 200, 400};
            struct sim *world = sim_create(victim);
            uint8_t *byte = active->data + units[victim].offset + offsets[part];
            *byte ^= 4;
            struct run run = {.node = files_put(world, &files)};
            go(&run);
            EXPECT(run.opened == STATUS_OK);
            EXPECT(run.has_damage == is_proven);
            EXPECT(run.found == 5);
            for (size_t i = 0; i < run.found; i++)
                EXPECT(run.numbers[i] == i + 1 + (i + 2 >= victim));
            if (is_proven)
                EXPECT(run.damage.seq_first == victim + 1 && run.damage.seq_last >= victim + 1);
            *byte ^= 4;
            sim_destroy(world);
        }
    }
    files_free(&files);
}

/* L9: an idle writer says that its last unit is durable. */
static void act_idle(struct run *run, struct wal *wal, uint32_t table)
{
    act_append(run, wal, table);
    env_sleep_ms(sim_node_env(run->node), 50);
}

static void l9_idle_floor_protects_the_last_unit(void)
{
    struct sim *sim = sim_create(6);
    static struct files files;
    struct unit units[64];
    struct run run = {.node = sim_node_create(sim, 64 << 20),
                      .act = act_idle,
                      .first = 1,
                      .count = 3,
                      .bytes = 300,
                      .durability = WAL_SYNCED,
                      .leaves_open = true};
    go(&run);
    files_take(&files, run.node);
    struct file_copy *active = files_find(&files, "/active/", 0);
    size_t count = units_of(active, units, COUNT_OF(units));
    EXPECT(units[count - 1].records == 0 && units[count - 1].floor == units[count - 2].number);
    EXPECT(units[count - 2].records == 1);
    active->data[units[count - 2].offset + 400] ^= 1;
    struct run again = {.node = files_put(sim, &files)};
    go(&again);
    EXPECT(again.found == 2 && again.has_damage);
    files_free(&files);
    sim_destroy(sim);
}

/* L7: units begin on blocks, and no two share one. */
static void l7_units_on_blocks(void)
{
    struct sim *sim = sim_create(7);
    static struct files files;
    struct unit units[64];
    killed_log(sim, &files, 5, 777);
    struct file_copy *active = files_find(&files, "/active/", 0);
    size_t count = units_of(active, units, COUNT_OF(units));
    EXPECT(count >= 7);
    for (size_t i = 0; i < count; i++)
        EXPECT(units[i].offset % BLOCK == 0 && units[i].bytes % BLOCK == 0);
    files_free(&files);
    sim_destroy(sim);
}

/* Five sealed segments, one damaged record in the middle one. */
static void act_five_segments(struct run *run, struct wal *wal, uint32_t table)
{
    for (uint64_t segment = 0; segment < 5; segment++) {
        run->first = 1 + segment * 4;
        run->count = 4;
        act_append(run, wal, table);
        EXPECT(wal_seal(wal, &last_error) == STATUS_OK);
    }
}

static void td4_damage_in_the_middle_segment(void)
{
    struct sim *sim = sim_create(8);
    static struct files files;
    struct run run = {.node = sim_node_create(sim, 64 << 20),
                      .act = act_five_segments,
                      .bytes = 500,
                      .durability = WAL_SYNCED};
    go(&run);
    EXPECT(run.end == SIM_ENDED && run.acknowledged == 20);
    files_take(&files, run.node);
    struct file_copy *middle = files_find(&files, "/sealed/", 2);
    /* The second unit of that segment holds entry 10. */
    struct unit units[8];
    size_t count = units_of(middle, units, COUNT_OF(units));
    EXPECT(count >= 4);
    for (int part = 0; part < 3; part++) {
        static const uint64_t offsets[] = {9, 200, 400};
        struct sim *world = sim_create((uint64_t)part + 80);
        middle->data[units[1].offset + offsets[part]] ^= 8;
        struct run again = {.node = files_put(world, &files)};
        go(&again);
        EXPECT(again.opened == STATUS_OK);
        /* A damaged unit header alone costs nothing: the footer knows where the entry is. */
        bool is_lost = part > 0;
        EXPECT(again.found == 20u - is_lost && again.has_damage == is_lost);
        for (size_t i = 0; i < again.found; i++)
            EXPECT(again.numbers[i] == i + 1 + (is_lost && i >= 9));
        if (is_lost)
            EXPECT(again.damage.seq_first == again.damage.seq_last &&
                   again.damage.seq_first == again.seqs[8] + 1);
        middle->data[units[1].offset + offsets[part]] ^= 8;
        sim_destroy(world);
    }
    files_free(&files);
    sim_destroy(sim);
}

/* One bit anywhere in a closed segment or checkpoint: nothing but that entry may be missing. */
static void td2_one_bit_anywhere(void)
{
    struct sim *sim = sim_create(9);
    static struct files files;
    struct run run = {.node = sim_node_create(sim, 64 << 20),
                      .act = act_five_segments,
                      .bytes = 200,
                      .durability = WAL_SYNCED};
    go(&run);
    files_take(&files, run.node);
    for (size_t f = 0; f < files.count; f++) {
        struct file_copy *file = &files.items[f];
        bool is_state = strstr(file->path, "/state/"), is_sealed = strstr(file->path, "/sealed/");
        if (!is_state && !is_sealed)
            continue;
        uint64_t step = 97;
        for (uint64_t at = 0; at < file->bytes && at < 24 << 10; at += step) {
            struct sim *world = sim_create(at);
            file->data[at] ^= (uint8_t)(1u << (at % 8));
            struct run again = {.node = files_put(world, &files)};
            go(&again);
            EXPECT(again.opened == STATUS_OK);
            EXPECT(again.found >= 19 && (again.found == 20 || again.has_damage));
            if (is_state)
                EXPECT(again.found == 20);
            file->data[at] ^= (uint8_t)(1u << (at % 8));
            sim_destroy(world);
        }
    }
    files_free(&files);
    sim_destroy(sim);
}

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
        sim_crash_at(node, SIM_POWER_CUT, 5 + random_below(sim_random(sim), 120));
        go(&run);
        if (run.opened == STATUS_OK && run.found > 0)
            EXPECT(run.numbers[run.found - 1] >= least);
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
                          .durability = WAL_SYNCED};
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

/* The number of a producer and its rows become durable together. */
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
    struct wal_submission submission = {
        .entries = &entry, .entry_count = 1, .durability = WAL_SYNCED};
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
        if (!is_repeat)
            EXPECT(again.extra[2] == WAL_PRODUCER_IN_FLIGHT && again.last_append == STATUS_OK);
        was_new |= !is_repeat;
        was_repeat |= is_repeat;
        struct run last = {.node = run.node, .act = act_tc11};
        go(&last);
        EXPECT(last.extra[0] == WAL_PRODUCER_REPEAT && last.extra[1] == 1 && last.found == 1);
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

/* L21, L16: when a segment is cut, what stands in later ones goes with it. */
static void l21_later_segments_go(void)
{
    struct sim *sim = sim_create(12);
    static struct files files;
    struct unit units[64];
    killed_log(sim, &files, 4, 300);
    struct file_copy *active = files_find(&files, "/active/", 0);
    size_t count = units_of(active, units, COUNT_OF(units));
    while (units[count - 1].records == 0)
        count--;
    memset(active->data + units[count - 1].offset + 300, 0x5a, 512);
    memset(active->data + units[count - 1].offset + units[count - 1].bytes, 0, BLOCK);
    /* A segment beside it that claims to follow. */
    struct file_copy *next = &files.items[files.count++];
    snprintf(next->path, sizeof next->path, "%s/active/%016x.seg", dir, 0x30);
    next->bytes = active->bytes;
    next->data = malloc(active->bytes);
    memcpy(next->data, active->data, active->bytes);
    struct run run = {.node = files_put(sim, &files)};
    go(&run);
    expect_prefix(&run, 3);
    EXPECT(run.report.tails_cut == 1 && run.report.segments_dropped == 1);
    files_free(&files);
    sim_destroy(sim);
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
    struct env *env = sim_node_env(run.node);
    static struct files files;
    files_take(&files, run.node);
    const char *victim = files_find(&files, "/sealed/", 0)->path;
    char link[128];
    snprintf(link, sizeof link, "%s/spare/%016x.spare", dir, 0x77);
    EXPECT(env_link(env, victim, link, &last_error) == STATUS_OK);
    struct run again = {
        .node = run.node, .act = act_five_segments, .bytes = 12000, .durability = WAL_SYNCED};
    go(&again);
    struct run last = {.node = run.node};
    go(&last);
    EXPECT(last.found == 40 && !last.has_damage);
    files_free(&files);
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

/* L10: a file begun again under the same number does not take up what is left in it. */
static void l10_recycled_bytes_never_verify(void)
{
    struct sim *sim = sim_create(15);
    static struct files files;
    killed_log(sim, &files, 8, 300);
    struct file_copy *active = files_find(&files, "/active/", 0);
    /* As if its name had been lost with the power and its old one as a spare had not. */
    snprintf(active->path, sizeof active->path, "%s/spare/%016x.spare", dir, 0x77);
    struct run run = {.node = files_put(sim, &files), .leaves_open = true};
    go(&run);
    EXPECT(run.opened == STATUS_OK && run.found == 0);
    struct files after = {0};
    files_take(&after, run.node);
    EXPECT(strstr(files_find(&after, "/active/", 0)->path, "0000000000000001.seg"));
    struct run again = {.node = run.node};
    go(&again);
    EXPECT(again.found == 0 && !again.has_damage);
    EXPECT(again.report.damaged_ranges == 0);
    files_free(&files);
    files_free(&after);
    sim_destroy(sim);
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
    {"L7 units on blocks", l7_units_on_blocks},
    {"L9 idle floor protects the last unit", l9_idle_floor_protects_the_last_unit},
    {"L10 recycled bytes never verify", l10_recycled_bytes_never_verify},
    {"L17 linked spare is left alone", l17_linked_spare_is_left_alone},
    {"L20 the floor decides", l20_floor_decides},
    {"L21 later segments go with a cut", l21_later_segments_go},
};

int main(void)
{
    printf("1..%zu\n", COUNT_OF(trials));
    for (size_t i = 0; i < COUNT_OF(trials); i++) {
        trial = trials[i].name;
        trials[i].run();
        printf("ok %zu - %s\n", i + 1, trial);
        fflush(stdout);
    }
    return 0;
}
