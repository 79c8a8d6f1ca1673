/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of the two sources it is.
 */
#include "flow/source/source_internal.h"

void source_destroy(struct source *source)
{
    if (source)
        source->ops->destroy(source);
}

struct wal *source_wal(const struct source *source)
{
    return source->wal;
}

bool source_state(struct source *source, struct source_state *out_state)
{
    return source->ops->state(source, out_state);
}

enum status source_refresh(struct source *source, struct error *err)
{
    return source->ops->refresh(source, err);
}

uint64_t source_start(struct source *source)
{
    return source->ops->start(source);
}

struct log_id source_log_id(const struct source *source)
{
    return source->log;
}

uint32_t source_group_count(const struct source *source)
{
    return source->group_count;
}

uint64_t source_term(struct source *source)
{
    return source->ops->term(source);
}

uint64_t source_incarnation(struct source *source)
{
    return source->ops->incarnation(source);
}

uint64_t source_fenced_by(struct source *source)
{
    return source->ops->fenced_by(source);
}

enum status source_fence(struct source *source, uint64_t incarnation, struct error *err)
{
    return source->ops->fence(source, incarnation, err);
}

bool source_recovered_to(struct source *source, uint32_t group, struct wal_position *out_end)
{
    return source->ops->recovered_to(source, group, out_end);
}

bool source_recovered_without(struct source *source, size_t index, uint32_t *out_group,
                              uint64_t *out_first, uint64_t *out_last)
{
    return source->ops->recovered_without(source, index, out_group, out_first, out_last);
}

struct wal_position source_end(struct source *source, uint32_t group)
{
    return source->ops->end(source, group);
}

struct wal_position source_started(struct source *source, uint32_t group)
{
    return source->ops->started(source, group);
}

uint64_t source_reclaimed_below(struct source *source, uint32_t group, uint64_t seq)
{
    return source->ops->reclaimed_below(source, group, seq);
}

enum status source_chain_at(struct source *source, uint32_t group, uint64_t seq,
                            uint64_t *out_chain, struct error *err)
{
    return source->ops->chain_at(source, group, seq, out_chain, err);
}

enum status source_starts(struct source *source, uint32_t group, uint64_t after, uint64_t last,
                          struct buf *out_positions, struct error *err)
{
    return source->ops->starts(source, group, after, last, out_positions, err);
}

enum status source_schema_get(struct source *source, uint64_t fingerprint, struct buf *out,
                              struct error *err)
{
    return source->ops->schema_get(source, fingerprint, out, err);
}

/* ---- tables ---- */

enum status source_table_open(struct source *source, const char *name, uint32_t *out_table_id,
                              struct error *err)
{
    return source->ops->table_open(source, name, out_table_id, err);
}

bool source_ack_get(struct source *source, uint32_t table_id, uint32_t group,
                    struct wal_ack *out_ack)
{
    return source->ops->ack_get(source, table_id, group, out_ack);
}

enum status source_ack_table(struct source *source, uint32_t table_id, const struct wal_ack *acks,
                             struct error *err)
{
    return source->ops->ack_table(source, table_id, acks, err);
}

uint64_t source_done_through(struct source *source, uint32_t table_id, uint32_t group)
{
    struct wal_ack ack = {0};
    return source_ack_get(source, table_id, group, &ack) ? ack_done_through(&ack) : 0;
}

struct wal_pending source_lag(struct source *source, uint32_t table_id, uint32_t group)
{
    return source->ops->lag(source, table_id, group);
}

bool source_damage(struct source *source, uint32_t table_id, uint32_t group,
                   struct wal_damage *out_damage)
{
    return source->ops->damage(source, table_id, group, out_damage);
}

enum status source_pending(struct source *source, uint32_t table_id, uint32_t group, uint64_t after,
                           struct wal_pending *out_pending, struct error *err)
{
    return source->ops->pending(source, table_id, group, after, out_pending, err);
}

enum status source_damage_above(struct source *source, uint32_t table_id, uint32_t group,
                                uint64_t after, struct wal_damage *out_damage, bool *out_is_there,
                                struct error *err)
{
    return source->ops->damage_above(source, table_id, group, after, out_damage, out_is_there, err);
}

bool source_is_awaited(struct source *source, uint32_t table_id)
{
    return source->ops->is_awaited(source, table_id);
}

/* ---- entries ---- */

enum status source_scan_open(struct source *source, uint32_t group, uint32_t table_id,
                             struct wal_position after, struct source_scan **out_scan,
                             struct error *err)
{
    return source->ops->scan_open(source, group, table_id, after, out_scan, err);
}

enum status source_scan_next(struct source_scan *scan, struct wal_view *out_view, struct error *err)
{
    return scan->ops->scan_next(scan, out_view, err);
}

void source_scan_close(struct source_scan *scan)
{
    if (scan)
        scan->ops->scan_close(scan);
}
