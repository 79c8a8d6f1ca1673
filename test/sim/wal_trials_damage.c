/* SPDX-License-Identifier: Apache-2.0
 *
 * Named trials: files that a node left, damaged, put on a fresh disk and opened.
 */
#include "sim/wal_trials.h"

void td3_truncated_at_every_byte(void)
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

void td3_garbled_at_every_sector(void)
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
void l20_floor_decides(void)
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

void l9_idle_floor_protects_the_last_unit(void)
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
void l7_units_on_blocks(void)
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
void act_five_segments(struct run *run, struct wal *wal, uint32_t table)
{
    for (uint64_t segment = 0; segment < 5; segment++) {
        run->first = 1 + segment * 4;
        run->count = 4;
        act_append(run, wal, table);
        EXPECT(wal_seal(wal, &last_error) == STATUS_OK);
    }
}

void td4_damage_in_the_middle_segment(void)
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
void td2_one_bit_anywhere(void)
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

/* L21, L16: when a segment is cut, what stands in later ones goes with it. */
void l21_later_segments_go(void)
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
    snprintf(next->path, sizeof next->path, "%s/active/%016x.seg", trial_dir, 0x30);
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

/* The checkpoints as they were before the segment was named: what came behind their base is gone.
 */
static void forget_changes(struct files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        struct file_copy *file = &files->items[i];
        if (!strstr(file->path, "/state/"))
            continue;
        uint64_t base = 64 + get_le64(file->data + 24);
        memset(file->data + base, 0, file->bytes - base);
    }
}

/* L10: a file begun again under the same number does not take up what is left in it. */
void l10_recycled_bytes_never_verify(void)
{
    struct sim *sim = sim_create(15);
    static struct files files;
    killed_log(sim, &files, 8, 300);
    struct file_copy *active = files_find(&files, "/active/", 0);
    /* As if its name had been lost with the power and its old one as a spare had not. */
    snprintf(active->path, sizeof active->path, "%s/spare/%016x.spare", trial_dir, 0x77);
    forget_changes(&files);
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

/* ---- what the checkpoint's mark knows of the newest segment (L20) ---- */

/* Long enough for the keeper to mark the last unit. */
static void act_wait(struct run *run, struct wal *wal, uint32_t table)
{
    act_append(run, wal, table);
    env_sleep_ms(sim_node_env(run->node), 2500);
}

static void lose_tail(struct file_copy *active, const struct unit *from)
{
    active->bytes = from->offset;
}

static void zero_tail(struct file_copy *active, const struct unit *from)
{
    memset(active->data + from->offset, 0, active->bytes - from->offset);
}

/* One byte of the last entry, and the floor behind it. */
static void garble_last(struct file_copy *active, const struct unit *from)
{
    active->data[from[1].offset + 300] ^= 1;
    zero_tail(active, &from[2]);
}

static void empty_file(struct file_copy *active, const struct unit *from)
{
    UNUSED(from);
    active->bytes = 0;
}

static void remove_file(struct file_copy *active, const struct unit *from)
{
    UNUSED(from);
    snprintf(active->path, sizeof active->path, "%s/aside", trial_dir);
}

/* The newest segment loses synced units: however that comes about, it is damage and no torn tail,
 * their numbers are not given out again, and the next start says the same. */
void l20_the_newest_segment_is_lost(void)
{
    static void (*const losses[])(struct file_copy *, const struct unit *) = {
        lose_tail, zero_tail, garble_last, empty_file, remove_file};
    for (size_t i = 0; i < COUNT_OF(losses); i++) {
        struct sim *sim = sim_create(20 + i);
        static struct files files;
        struct unit units[64];
        struct run run = {.node = sim_node_create(sim, 64 << 20),
                          .act = act_wait,
                          .first = 1,
                          .count = 6,
                          .bytes = 300,
                          .durability = WAL_SYNCED,
                          .leaves_open = true};
        go(&run);
        EXPECT(run.acknowledged == 6);
        files_take(&files, run.node);
        struct file_copy *active = files_find(&files, "/active/", 0);
        size_t count = units_of(active, units, COUNT_OF(units));
        uint64_t whole = active->bytes;
        EXPECT(count >= 8);
        losses[i](active, &units[count - 3]);
        bool is_all = i >= 3;
        size_t left = is_all ? 0 : count - 3 - 2 + (i == 2); /* NOOP and table come first */
        struct run again = {.node = files_put(sim, &files),
                            .act = act_append,
                            .first = 7,
                            .count = 1,
                            .bytes = 300,
                            .durability = WAL_SYNCED};
        go(&again);
        expect_prefix(&again, left);
        EXPECT(again.has_damage && again.damage.seq_first == (is_all ? 1 : left + 3));
        EXPECT(again.damage.seq_last >= 8);
        EXPECT(again.report.tails_cut == 0 && again.report.segments_missing == is_all);
        again.act = NULL;
        go(&again);
        EXPECT(again.found == left + 1 && again.numbers[left] == 7);
        EXPECT(again.has_damage && again.seqs[left] > again.damage.seq_last);
        active->bytes = whole;
        files_free(&files);
        sim_destroy(sim);
    }
}
