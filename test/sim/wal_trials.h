/* SPDX-License-Identifier: Apache-2.0
 *
 * What the named trials of the log share: one run of a node with an action in it, its files as
 * bytes, and an independent reading of the active file.
 */
#ifndef SLUICE_TEST_SIM_WAL_TRIALS_H
#define SLUICE_TEST_SIM_WAL_TRIALS_H

#include <stdio.h>
#include <stdlib.h>

#include "log/wal/wal.h"
#include "sim/sim.h"

enum { BLOCK = 4096, SEGMENT = 64 << 10, NUMBERS_MAX = 4096 };

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("not ok - %s\n# %s:%d: %s (%s)\n", trial, __FILE__, __LINE__, #condition,       \
                   last_error.message);                                                            \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

extern const char *trial;
extern bool trial_is_direct; /* nodes write units with ENV_DIRECT and ENV_DSYNC */
extern struct error last_error;
extern const char trial_dir[];

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

/* ---- a node and what happened on it (wal_trial.c) ---- */

enum status append(struct wal *wal, uint32_t table, uint64_t number, uint64_t bytes,
                   enum wal_durability durability, uint64_t *out_seq);
bool is_payload(uint64_t number, struct span payload); /* what `append` writes under the number */
void act_append(struct run *run, struct wal *wal, uint32_t table);
/* Opens the log, reads it, acts, closes it; `run` says what came of it. */
void go(struct run *run);
/* Killed in the middle: the active segment holds NOOP, TABLE and `count` entries, one a unit. */
void killed_log(struct sim *sim, struct files *files, uint64_t count, uint64_t bytes);
void expect_prefix(const struct run *run, uint64_t count);

void files_take(struct files *files, struct sim_node *node);
void files_free(struct files *files);
/* The nth, by name, of those whose path holds `part`. */
struct file_copy *files_find(struct files *files, const char *part, size_t nth);
struct sim_node *files_put(struct sim *sim, const struct files *files);

/* An independent reading of a segment. */
struct unit {
    uint64_t offset, bytes, number, floor;
    uint32_t records;
};
size_t units_of(const struct file_copy *file, struct unit *out, size_t most);

/* ---- damage to the files (wal_trials_damage.c) ---- */

void td2_one_bit_anywhere(void);
void td3_truncated_at_every_byte(void);
void td3_garbled_at_every_sector(void);
void td4_damage_in_the_middle_segment(void);
void l7_units_on_blocks(void);
void l9_idle_floor_protects_the_last_unit(void);
void l20_the_newest_segment_is_lost(void);
void l10_recycled_bytes_never_verify(void);
void l20_floor_decides(void);
void l21_later_segments_go(void);
/* ---- a stuck table (wal_trials_compact.c) ---- */

void l26_stuck_table_keeps_its_rows(void);
void l26_crash_at_any_step(void);
void l26_damage_in_a_compacted_segment(void);
void l26_what_is_wanted_stays(void);

/* ---- entries that do not count yet (wal_trials_commit.c) ---- */

void truncation_lasts(void);
void commits_are_of_the_log(void);
void l20_the_record_is_damaged(void);
void l20_the_segment_of_the_record_is_lost(void);

void act_five_segments(struct run *run, struct wal *wal, uint32_t table);

#endif
