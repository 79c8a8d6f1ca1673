/* SPDX-License-Identifier: Apache-2.0
 *
 * The world of sim_publish: one disk with a log, a catalog and a warehouse, the processes that use
 * them, and the model of what must hold. The model knows what was submitted and what was answered;
 * it shares no code with the engine but the calls that it makes of it, reads data files with a
 * reader of its own, and the positions in a table as text.
 */
#ifndef SLUICE_TEST_PUBLISH_WORLD_H
#define SLUICE_TEST_PUBLISH_WORLD_H

#include "flaky_source.h"
#include "flow/publish/publish.h"
#include "sim/sim_seeds.h"

enum {
    GROUPS_MAX = 3,
    TABLES_MAX = 2,
    INSTANCES_MAX = 2,
    ROWS_MAX = 8,    /* of an entry */
    ROW_STRIDE = 16, /* a row's id is its entry's number times this, and its place */
    FOREIGN_MAX = 256,
    PATHS_MAX = 4096,
};

/* What a seed is about. */
enum story {
    STORY_PLAIN,          /* crashes, faults, another engine: nothing may ever halt */
    STORY_OLD_STATE,      /* the publisher's state is put back to an older copy: goes on */
    STORY_OLD_DATA,       /* log and state are: goes on, or halts where the table is ahead */
    STORY_OLD_DATA_MOVED, /* the same into another directory: takes over, or halts */
    STORY_COPY,           /* a copy of the directory runs beside the original */
    STORY_DAMAGE,         /* others roll a table back, or drop it: halts */
    STORY_ROT,            /* the disk loses a sealed segment, or bits of it: halts */
    STORY_LANE_ROT,       /* or bits of a lane's own file: halts, and goes on when it is told to */
    STORY_COUNT
};

enum entry_state {
    ENTRY_OPEN,    /* no answer, or one that promises nothing any more */
    ENTRY_WRITTEN, /* promised unless the power goes */
    ENTRY_SYNCED,  /* promised */
    ENTRY_NEVER,   /* refused, or lost with a log that was put back: must not be seen */
};

struct saved_dir;

struct entry {
    uint32_t instance, table, group, rows;
    enum entry_state state;
    uint64_t seq;             /* 0: not known */
    uint32_t present, before; /* rows in the table: bits; now, and at the check before */
    uint32_t must_stay;       /* rows that a table on the disk had */
    bool in_log[INSTANCES_MAX];
};

enum outcome { OUTCOME_OPEN, OUTCOME_APPLIED, OUTCOME_FAILED };

/* A file that the other engine appended. */
struct foreign {
    uint32_t table;
    enum outcome outcome;
    bool is_present;
};

/* What a table said at the last look at it. */
struct seen {
    bool exists, has_positions;
    struct wal_position at[GROUPS_MAX];
    int64_t sequence; /* of the newest own commit */
    uint64_t own_files, snapshots;
};

struct instance {
    struct model *model;
    uint32_t index;
    bool is_there; /* has a directory */
    char root[16]; /* "/data" */
    char log_dir[32], state_dir[32];
    struct wal *wal;
    struct store *store;
    struct catalog *catalog;
    struct source *source;
    struct publisher *publisher;
    uint32_t table_ids[TABLES_MAX];
    uint32_t writers_left; /* in this run */
    bool must_stop;        /* the poller */
    struct env_thread *poller;
    bool has_new_log; /* its log was put back: what it lacks is to be found out */
    bool has_old_state;
    bool must_halt[TABLES_MAX];
    bool is_rotten[TABLES_MAX];  /* nobody has opened the damaged file yet */
    bool is_stopped[TABLES_MAX]; /* halted or stood down, when last asked */
    bool is_settled;             /* nothing left to publish, in the last rounds */
    char reason[TABLES_MAX][480];
};

struct model {
    uint64_t seed;
    bool is_verbose;
    struct sim *sim;
    struct sim_node *node;
    struct env *env;
    enum story story;
    uint32_t groups, tables, writers, ops, engine_ops;
    bool with_thread; /* the publisher's own, not a poller of ours */
    bool engine_expires, engine_forgets;
    bool is_tight;               /* a small volume */
    bool is_healing;             /* the last rounds: no faults, all is published */
    bool is_quiet;               /* the very last one: nothing is written either */
    bool is_damaged, is_dropped; /* table 0 */
    bool is_rotten;              /* the log, and nobody has repaired it */
    bool is_unpublished;         /* nobody publishes until then: no table is there */
    bool is_narrow;              /* writers have rows for table 0 alone */
    bool is_evidence_seen;       /* a round was refused for a roll-back */
    bool is_evidence_gone;       /* before that, the other engine expired the snapshots below */
    size_t accepted_from;        /* entries from here on are published again */
    bool was_power_cut;          /* since the last look */
    struct wal_options wal_options;
    struct publish_options publish_options;
    struct publish_table definitions[TABLES_MAX];
    uint64_t fingerprint;
    struct entry *entries; /* by number; 0 unused */
    size_t entry_count, entry_capacity;
    uint64_t outstanding;
    struct foreign foreign[FOREIGN_MAX]; /* by number; 0 unused */
    uint32_t foreign_count;
    char log_id[LOG_ID_TEXT_BYTES];
    struct seen seen[TABLES_MAX];
    char *paths[PATHS_MAX]; /* of live data files, at the look under way */
    size_t path_count;
    struct instance instances[INSTANCES_MAX];
    uint64_t sources; /* made so far */
    bool wants_copy;  /* somebody takes a backup while the run is under way */
    struct saved_dir *saved;
};

extern struct totals {
    uint64_t seeds, runs, looks, submissions, rows, rows_checked, files_read;
    uint64_t open_refused, refused, written_lost;
    uint64_t commits, rebases, retries, takeovers, halts, stand_downs, kept_going;
    uint64_t halts_without_evidence; /* of damages that no reading of the table could still show */
    uint64_t intents_found, descriptors_found, rollbacks, tables_dropped, backups_live, decisions;
    uint64_t checkpoints_rotten, journals_rotten, halts_rotten, rot_ended;
    uint64_t foreign_applied, foreign_failed, foreign_unknown, properties_set, properties_removed,
        snapshots_expired;
    uint64_t stories[STORY_COUNT];
    uint64_t sources_elsewhere, silences;
    uint64_t rots[3], rotten_entries, rot_halts; /* bits, wiped, gone */
    uint64_t tails_cut, segments_dropped, compacted, acks_checked, orphans_checked, came_back;
    struct sim_counts sim;
} totals;

__attribute__((format(printf, 2, 3))) _Noreturn void fail(const struct model *model,
                                                          const char *format, ...);
__attribute__((format(printf, 2, 3))) void say(const struct model *model, const char *format, ...);
uint64_t pick(struct model *model, uint64_t bound);
struct catalog_ident table_ident(const struct model *model, uint32_t table);

/* ---- publish_model.c ---- */

uint64_t entry_add(struct model *model, struct entry entry);
/* What is in the tables: every promise that can be judged from outside. Runs a process of its own
 * on a copy of the disk, which is put back. */
void model_look(struct model *model);
/* What the log of an instance that has just been opened says, against the last look. */
void model_check_open(struct instance *instance);
/* The power has gone: what was only written is promised no more. */
void model_power_gone(struct model *model);
/* After the last rounds: every row that was promised is in the table, and nothing else is about. */
void model_check_end(struct model *model);
/* Every DATA entry of the instance's log, from its oldest; fills in_log. */
void model_scan_log(struct instance *instance);

/* ---- publish_node.c ---- */

void node_main(void *model); /* one run of all instances */
void node_define_tables(struct model *model);

/* ---- publish_damage.c ---- */

void damage_do(struct model *model);
/* Damages some of the lanes' own files, if there are any. */
void lane_rot_do(struct model *model);
/* An instance that has just been opened: its lanes have halted, and are told to go on. */
void lane_rot_end(struct instance *instance);

/* ---- publish_rot.c ---- */

void rot_do(struct model *model);
/* The operator repairs the log and clears the halts; publication has come to an end before. */
void rot_repair(struct instance *instance);

/* ---- publish_copies.c ---- */

/* The files under `root` as the node sees them now. */
struct saved_dir *saved_dir_take(struct model *model, const char *root);
/* Puts them under `root`, where nothing else is left, durably. */
void saved_dir_put(struct model *model, const struct saved_dir *saved, const char *root);
void saved_dir_free(struct saved_dir *saved); /* accepts NULL */

#endif
