/* SPDX-License-Identifier: Apache-2.0
 *
 * A log of this process: every question goes to it as it is.
 */
#include "flow/source/source_internal.h"

struct local {
    struct source source;
    struct wal_position *started; /* a group: the ends when this process began, behind its NOOPs */
};

struct local_scan {
    struct source_scan scan;
    struct wal_scan *wal;
};

static void local_destroy(struct source *source)
{
    struct local *local = CONTAINER_OF(source, struct local, source);
    mem_free(local->started);
    mem_free(local);
}

static bool local_state(struct source *source, struct source_state *out)
{
    UNUSED(source);
    UNUSED(out);
    return false;
}

static enum status local_refresh(struct source *source, struct error *err)
{
    UNUSED(source);
    UNUSED(err);
    return STATUS_OK;
}

static uint64_t local_start(struct source *source)
{
    UNUSED(source);
    return 0;
}

static uint64_t local_term(struct source *source)
{
    return wal_term(source->wal);
}

static uint64_t local_incarnation(struct source *source)
{
    return wal_incarnation(source->wal);
}

static uint64_t local_fenced_by(struct source *source)
{
    return wal_fenced_by(source->wal);
}

static enum status local_fence(struct source *source, uint64_t incarnation, struct error *err)
{
    return wal_fence(source->wal, incarnation, err);
}

static bool local_recovered_to(struct source *source, uint32_t group, struct wal_position *out)
{
    return wal_recovered_to(source->wal, group, out);
}

static bool local_recovered_without(struct source *source, size_t index, uint32_t *out_group,
                                    uint64_t *out_first, uint64_t *out_last)
{
    return wal_recovered_without(source->wal, index, out_group, out_first, out_last);
}

static struct wal_position local_end(struct source *source, uint32_t group)
{
    return wal_synced_end(source->wal, group);
}

static struct wal_position local_started(struct source *source, uint32_t group)
{
    return CONTAINER_OF(source, struct local, source)->started[group];
}

static uint64_t local_reclaimed_below(struct source *source, uint32_t group, uint64_t seq)
{
    return wal_reclaimed_below(source->wal, group, seq);
}

static enum status local_chain_at(struct source *source, uint32_t group, uint64_t seq,
                                  uint64_t *out, struct error *err)
{
    return wal_chain_at(source->wal, group, seq, out, err);
}

static enum status local_starts(struct source *source, uint32_t group, uint64_t after,
                                uint64_t last, struct buf *out, struct error *err)
{
    struct wal_scan *scan = NULL;
    struct wal_view view;
    enum status status = wal_scan_open(source->wal, group, 0, after, &scan, err);
    while (status == STATUS_OK) {
        status = wal_scan_next(scan, &view, err);
        if (status != STATUS_OK || view.seq > last)
            break;
        struct wal_position at = {.seq = view.seq, .chain = view.chain};
        if (view.type == WAL_NOOP)
            buf_put(out, &at, sizeof at);
        if (view.seq == last) /* what is behind it may be gone */
            break;
    }
    wal_scan_close(scan);
    return status == STATUS_OK || status == STATUS_NOT_FOUND ? buf_status(out, "starts", err)
                                                             : status;
}

static enum status local_schema_get(struct source *source, uint64_t fingerprint, struct buf *out,
                                    struct error *err)
{
    return wal_schema_get(source->wal, fingerprint, out, err);
}

/* ---- tables ---- */

static enum status local_table_open(struct source *source, const char *name, uint32_t *out_table_id,
                                    struct error *err)
{
    return wal_table_open(source->wal, name, out_table_id, err);
}

static bool local_ack_get(struct source *source, uint32_t table_id, uint32_t group,
                          struct wal_ack *out)
{
    return wal_ack_get(source->wal, table_id, group, out);
}

static enum status local_ack_table(struct source *source, uint32_t table_id,
                                   const struct wal_ack *acks, struct error *err)
{
    return wal_ack_table(source->wal, table_id, acks, err);
}

static struct wal_pending local_lag(struct source *source, uint32_t table_id, uint32_t group)
{
    return wal_pending(source->wal, group, table_id, source_done_through(source, table_id, group));
}

static bool local_damage(struct source *source, uint32_t table_id, uint32_t group,
                         struct wal_damage *out)
{
    return wal_damage_above(source->wal, group, table_id,
                            source_done_through(source, table_id, group), out);
}

static enum status local_pending(struct source *source, uint32_t table_id, uint32_t group,
                                 uint64_t after, struct wal_pending *out, struct error *err)
{
    UNUSED(err);
    *out = wal_pending(source->wal, group, table_id, after);
    return STATUS_OK;
}

static enum status local_damage_above(struct source *source, uint32_t table_id, uint32_t group,
                                      uint64_t after, struct wal_damage *out, bool *out_is_there,
                                      struct error *err)
{
    UNUSED(err);
    *out_is_there = wal_damage_above(source->wal, group, table_id, after, out);
    return STATUS_OK;
}

static bool local_is_awaited(struct source *source, uint32_t table_id)
{
    UNUSED(source);
    UNUSED(table_id);
    return false; /* who waits here asks the publisher itself */
}

/* ---- entries ---- */

static const struct source_ops local_ops;

static enum status local_scan_open(struct source *source, uint32_t group, uint32_t table_id,
                                   struct wal_position after, struct source_scan **out,
                                   struct error *err)
{
    struct wal_scan *wal = NULL;
    TRY(wal_scan_open(source->wal, group, table_id, after.seq, &wal, err));
    struct local_scan *scan = mem_alloc_zero(1, sizeof *scan);
    if (!scan) {
        wal_scan_close(wal);
        return error_set(err, STATUS_NO_MEMORY, "source: out of memory");
    }
    *scan = (struct local_scan){.scan.ops = &local_ops, .wal = wal};
    *out = &scan->scan;
    return STATUS_OK;
}

static enum status local_scan_next(struct source_scan *scan, struct wal_view *out,
                                   struct error *err)
{
    return wal_scan_next(CONTAINER_OF(scan, struct local_scan, scan)->wal, out, err);
}

static void local_scan_close(struct source_scan *scan)
{
    struct local_scan *local = CONTAINER_OF(scan, struct local_scan, scan);
    wal_scan_close(local->wal);
    mem_free(local);
}

static const struct source_ops local_ops = {
    .destroy = local_destroy,
    .state = local_state,
    .refresh = local_refresh,
    .start = local_start,
    .term = local_term,
    .incarnation = local_incarnation,
    .fenced_by = local_fenced_by,
    .fence = local_fence,
    .recovered_to = local_recovered_to,
    .recovered_without = local_recovered_without,
    .end = local_end,
    .started = local_started,
    .reclaimed_below = local_reclaimed_below,
    .chain_at = local_chain_at,
    .starts = local_starts,
    .schema_get = local_schema_get,
    .table_open = local_table_open,
    .ack_get = local_ack_get,
    .ack_table = local_ack_table,
    .lag = local_lag,
    .damage = local_damage,
    .pending = local_pending,
    .damage_above = local_damage_above,
    .is_awaited = local_is_awaited,
    .scan_open = local_scan_open,
    .scan_next = local_scan_next,
    .scan_close = local_scan_close,
};

enum status source_local_create(struct wal *wal, struct source **out_source, struct error *err)
{
    struct local *local = mem_alloc_zero(1, sizeof *local);
    uint32_t groups = wal_group_count(wal);
    if (local)
        local->started = mem_alloc_zero(groups, sizeof *local->started);
    if (!local || !local->started) {
        mem_free(local);
        return error_set(err, STATUS_NO_MEMORY, "source: out of memory");
    }
    local->source = (struct source){
        .ops = &local_ops, .wal = wal, .log = wal_log_id(wal), .group_count = groups};
    for (uint32_t g = 0; g < groups; g++)
        local->started[g] = wal_synced_end(wal, g);
    *out_source = &local->source;
    return STATUS_OK;
}
