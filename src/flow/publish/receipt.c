/* SPDX-License-Identifier: Apache-2.0
 *
 * How far a write has come: read out of the log, its acks and the table, and kept nowhere. Thread:
 * any.
 */
#include <stdio.h>

#include "flow/publish/publish_internal.h"

/* Looks the entry up; *out_table_id 0: the log has let go of it, or it has no rows. */
static enum status look_up(struct publisher *publisher, uint32_t group, uint64_t seq,
                           struct publish_receipt *receipt, uint32_t *out_table_id,
                           struct error *err)
{
    struct source_scan *scan = NULL;
    struct wal_view view;
    *out_table_id = 0;
    enum status status = source_scan_open(publisher->source, group, 0,
                                          (struct wal_position){.seq = seq - 1}, &scan, err);
    if (status == STATUS_RECLAIMED) {
        receipt->is_visible = receipt->is_released = true;
        return STATUS_OK;
    }
    if (status == STATUS_OK)
        status = source_scan_next(scan, &view, err);
    if (status == STATUS_OK && view.seq != seq)
        status = error_set(err, STATUS_NOT_FOUND, "entry %u/%llu holds no rows", group,
                           (unsigned long long)seq);
    if (status == STATUS_OK) {
        receipt->term = view.term;
        receipt->rows = view.type == WAL_DATA ? view.rows : 0;
        *out_table_id = view.type == WAL_DATA ? view.table_id : 0;
    }
    source_scan_close(scan);
    return status;
}

/* The oldest commit of ours that reaches the entry, if the table's history still shows it. */
static void find_commit(struct publisher *publisher, const struct iceberg_table *table,
                        uint32_t group, uint64_t seq, struct publish_receipt *receipt)
{
    const struct iceberg_snapshot *snapshot = NULL, *found = NULL;
    struct own_commit commit;
    bool is_first = false;
    while (!is_first &&
           own_commit_next(table, publisher->log, publisher->group_count, &snapshot, &commit) &&
           commit.positions.at[group].seq >= seq) {
        found = snapshot;
        is_first = commit.has_since && commit.since.at[group].seq < seq;
    }
    receipt->is_visible |= found != NULL;
    if (!is_first)
        return; /* older ones were expired: it may have been one of them */
    receipt->snapshot_id = found->snapshot_id;
    receipt->visible_ms = found->timestamp_ms;
}

static enum status look_in_table(struct lane *lane, uint32_t group, uint64_t seq,
                                 struct publish_receipt *receipt, struct error *err)
{
    struct publisher *publisher = lane->publisher;
    struct catalog_ident ident = {.ns = lane->definition->ns, .name = lane->definition->name};
    struct iceberg_table *table = NULL;
    enum status status = iceberg_table_load(publisher->catalog, ident, &table, err);
    if (status == STATUS_NOT_FOUND)
        return STATUS_OK;
    TRY(status);
    find_commit(publisher, table, group, seq, receipt);
    iceberg_table_destroy(table);
    return STATUS_OK;
}

enum status publisher_receipt(struct publisher *publisher, uint32_t group, uint64_t seq,
                              struct publish_receipt *out_receipt, struct error *err)
{
    struct publish_receipt receipt = {.snapshot_id = -1};
    struct wal_ack ack;
    struct wal_pending behind;
    uint32_t table_id;
    TRY(source_refresh(publisher->source, err));
    if (group >= publisher->group_count || seq == 0 ||
        seq > source_end(publisher->source, group).seq)
        return error_set(err, STATUS_NOT_FOUND, "entry %u/%llu is not in the log", group,
                         (unsigned long long)seq);
    TRY(look_up(publisher, group, seq, &receipt, &table_id, err));
    struct lane *lane = table_id ? publisher_lane_of(publisher, table_id) : NULL;
    if (lane) {
        snprintf(receipt.table, sizeof receipt.table, "%s", lane->name);
        TRY(source_pending(publisher->source, table_id, group, seq - 1, &behind, err));
        receipt.durable_ms = behind.oldest_wall_ns / 1000000;
        if (source_ack_get(publisher->source, table_id, group, &ack))
            receipt.is_visible = receipt.is_released =
                ack.through.seq >= seq || ack.committed.seq >= seq;
        if (publisher->options.is_elsewhere)
            receipt.is_visible = lane_is_acknowledged(lane, group, seq);
        else
            TRY(look_in_table(lane, group, seq, &receipt, err));
        if (gaps_hold(lane, group, seq)) { /* `log trim`: it never will be */
            receipt.is_visible = false;
            receipt.snapshot_id = -1;
            receipt.visible_ms = 0;
        }
    }
    *out_receipt = receipt;
    return STATUS_OK;
}
