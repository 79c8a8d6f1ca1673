/* SPDX-License-Identifier: Apache-2.0
 *
 * Between recover.c (files in order) and walk.c (the units of one file). Runs before the log has
 * threads.
 */
#ifndef SLUICE_LOG_RECOVER_INTERNAL_H
#define SLUICE_LOG_RECOVER_INTERNAL_H

#include "log/wal/wal_internal.h"

/* A unit whose header survived. */
struct unit {
    uint64_t offset;
    struct unit_header header;
    bool is_whole;
};

struct walk {
    struct wal *wal;
    struct segment *segment;
    uint8_t *data;
    uint64_t bytes;
    bool may_cut;   /* an active segment, the last of the log */
    bool is_salted; /* the salt is known: the header survived */
    struct unit *units;
    size_t unit_count, unit_capacity;
    uint64_t floor;    /* highest proven unit; UINT64_MAX if the file was sealed */
    uint64_t end;      /* where the units that count end */
    uint64_t last;     /* number of the last unit that counts */
    uint64_t accepted; /* highest accepted number */
    bool is_cut, has_footer;
    uint64_t lost_bytes;     /* of units whose entries cannot even be counted */
    const struct mark *mark; /* of this segment, or NULL */
};

enum status recover_no_memory(struct error *err);
/* The group goes on at `seq`: what lies between is reclaimed, or lost and named. */
enum status recover_group_jump(struct wal *wal, uint32_t group_id, uint64_t seq, uint64_t chain,
                               const char *where, struct error *err) MUST_CHECK;
/* Tables and producers of an entry that the loaded checkpoint does not hold yet. Of wal_commit,
 * too: the lock is held then. */
enum status recover_state_replay(struct wal *wal, const struct record *record, struct span header,
                                 struct span payload, struct error *err) MUST_CHECK;
/* A truncation to `after` is inferred, as the record is lost: unless `chain` stands there, what
 * does not count up to there may be of another history, and is named as damage. */
enum status recover_suspect(struct wal *wal, uint32_t group, uint64_t after, uint64_t chain,
                            struct error *err) MUST_CHECK;
enum status recover_void_replay(struct wal *wal, const struct void_range *range,
                                struct error *err) MUST_CHECK;

/* The file's bytes, at a multiple of WAL_BLOCK; the caller's to free. */
enum status file_load(struct wal *wal, const char *path, uint8_t **out_data, uint64_t *out_bytes,
                      bool *out_is_direct, struct error *err) MUST_CHECK;
/* Puts what the page cache holds from `from` on in place of what was read directly. */
enum status file_load_cached(struct wal *wal, const char *path, uint8_t *data, uint64_t from,
                             uint64_t bytes, bool *out_is_other, struct error *err) MUST_CHECK;

/* Reads the file, finds its units from `start` on, decides and accepts. */
enum status walk_file(struct walk *walk, const char *path, uint64_t start,
                      struct error *err) MUST_CHECK;
void walk_deinit(struct walk *walk);
/* Entries were lost at the end of the file and nothing behind them says how many: no number that
 * was ever synced may be given out again (L3), so as many are passed over as can have been there.
 */
enum status walk_tail_bound(struct walk *walk, struct error *err) MUST_CHECK;
/* The same for `bytes` of one group that are not there at all. */
enum status recover_tail_lost(struct wal *wal, uint32_t group, uint64_t bytes, const char *where,
                              struct error *err) MUST_CHECK;

#endif
