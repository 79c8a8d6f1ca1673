/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of this module:
 *   source.c     which of the two             local.c  a log of this process, thin
 *   remote.c     another server's log, looks  look.c   what a look says, checked
 *   questions.c  what it is asked and told    keep.c   which log it is, on disk
 *   pages.c      its entries
 */
#ifndef SLUICE_FLOW_SOURCE_INTERNAL_H
#define SLUICE_FLOW_SOURCE_INTERNAL_H

#include "flow/source/source.h"

/* As the functions of source.h. */
struct source_ops {
    void (*destroy)(struct source *source);
    bool (*state)(struct source *source, struct source_state *out);
    enum status (*refresh)(struct source *source, struct error *err);
    uint64_t (*start)(struct source *source);
    uint64_t (*term)(struct source *source);
    uint64_t (*incarnation)(struct source *source);
    uint64_t (*fenced_by)(struct source *source);
    enum status (*fence)(struct source *source, uint64_t incarnation, struct error *err);
    bool (*recovered_to)(struct source *source, uint32_t group, struct wal_position *out);
    bool (*recovered_without)(struct source *source, size_t index, uint32_t *out_group,
                              uint64_t *out_first, uint64_t *out_last);
    struct wal_position (*end)(struct source *source, uint32_t group);
    struct wal_position (*started)(struct source *source, uint32_t group);
    uint64_t (*reclaimed_below)(struct source *source, uint32_t group, uint64_t seq);
    enum status (*chain_at)(struct source *source, uint32_t group, uint64_t seq, uint64_t *out,
                            struct error *err);
    enum status (*starts)(struct source *source, uint32_t group, uint64_t after, uint64_t last,
                          struct buf *out, struct error *err);
    enum status (*schema_get)(struct source *source, uint64_t fingerprint, struct buf *out,
                              struct error *err);
    enum status (*table_open)(struct source *source, const char *name, uint32_t *out_table_id,
                              struct error *err);
    bool (*ack_get)(struct source *source, uint32_t table_id, uint32_t group, struct wal_ack *out);
    enum status (*ack_table)(struct source *source, uint32_t table_id, const struct wal_ack *acks,
                             struct error *err);
    struct wal_pending (*lag)(struct source *source, uint32_t table_id, uint32_t group);
    bool (*damage)(struct source *source, uint32_t table_id, uint32_t group,
                   struct wal_damage *out);
    enum status (*pending)(struct source *source, uint32_t table_id, uint32_t group, uint64_t after,
                           struct wal_pending *out, struct error *err);
    enum status (*damage_above)(struct source *source, uint32_t table_id, uint32_t group,
                                uint64_t after, struct wal_damage *out, bool *out_is_there,
                                struct error *err);
    bool (*is_awaited)(struct source *source, uint32_t table_id);
    enum status (*scan_open)(struct source *source, uint32_t group, uint32_t table_id,
                             struct wal_position after, struct source_scan **out,
                             struct error *err);
    enum status (*scan_next)(struct source_scan *scan, struct wal_view *out, struct error *err);
    void (*scan_close)(struct source_scan *scan);
};

struct source {
    const struct source_ops *ops;
    struct wal *wal; /* NULL: elsewhere */
    struct log_id log;
    uint32_t group_count;
};

struct source_scan {
    const struct source_ops *ops;
};

static inline uint64_t ack_done_through(const struct wal_ack *ack)
{
    return ack->through.seq > ack->committed.seq ? ack->through.seq : ack->committed.seq;
}

#endif
