/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions about the log as it stands: identity, term, what it holds and on which files.
 */
#include <stdio.h>

#include "log/wal/wal_internal.h"

struct log_id wal_log_id(const struct wal *wal)
{
    env_lock(wal->lock);
    struct log_id id = wal->identities[wal->identity_count - 1].log_id;
    env_unlock(wal->lock);
    return id;
}

uint32_t wal_group_count(const struct wal *wal)
{
    return wal->group_count;
}

uint64_t wal_term(const struct wal *wal)
{
    env_lock(wal->lock);
    uint64_t term = wal->term;
    env_unlock(wal->lock);
    return term;
}

uint64_t wal_incarnation(const struct wal *wal)
{
    return wal->incarnation;
}

struct wal_recovery wal_recovery_report(const struct wal *wal)
{
    return wal->recovery;
}

uint64_t wal_reclaimed_through(struct wal *wal, uint32_t group, uint32_t table_id)
{
    if (group >= wal->group_count)
        return 0;
    env_lock(wal->lock);
    uint64_t seq = floor_get(wal, table_id, group);
    env_unlock(wal->lock);
    return seq;
}

uint64_t wal_reclaimed_below(struct wal *wal, uint32_t group, uint64_t seq)
{
    if (group >= wal->group_count)
        return 0;
    env_lock(wal->lock);
    uint64_t last = reclaimed_below(wal, group, seq);
    env_unlock(wal->lock);
    return last;
}

uint64_t wal_reclaimed_behind(struct wal *wal, uint32_t group, uint64_t after)
{
    if (group >= wal->group_count)
        return after;
    env_lock(wal->lock);
    const struct seq_range *range = reclaimed_from(wal, group, after + 1);
    uint64_t end = range && range->first <= after + 1 ? range->last : after;
    env_unlock(wal->lock);
    return end;
}

uint64_t wal_retained_from(struct wal *wal, uint32_t group)
{
    uint64_t seq = 0;
    if (group >= wal->group_count)
        return 0;
    env_lock(wal->lock);
    for (size_t i = 0; i < wal->groups[group].run_count && seq == 0; i++)
        if (wal->groups[group].runs[i]->count > 0)
            seq = wal->groups[group].runs[i]->first_seq;
    env_unlock(wal->lock);
    return seq;
}

uint32_t wal_table_find(struct wal *wal, const char *name)
{
    env_lock(wal->lock);
    uint32_t id = table_find(wal, name, strlen(name));
    env_unlock(wal->lock);
    return id;
}

struct wal_pending wal_pending(struct wal *wal, uint32_t group, uint32_t table_id, uint64_t after)
{
    struct wal_pending pending = {0};
    if (group >= wal->group_count || table_id == 0)
        return pending;
    env_lock(wal->lock);
    pending = index_pending(wal, group, table_id, after);
    env_unlock(wal->lock);
    return pending;
}

struct wal_usage wal_usage(struct wal *wal)
{
    env_lock(wal->lock);
    struct wal_usage usage = wal->counters;
    usage.budget_bytes = wal->options.budget_bytes;
    usage.allocated_bytes = wal->allocated_bytes;
    for (size_t i = 0; i < wal->segment_count; i++) {
        enum segment_place place = wal->segments[i]->place;
        usage.segments_active += place == SEGMENT_ACTIVE;
        usage.segments_sealed += place == SEGMENT_SEALED;
        usage.segments_committed += place == SEGMENT_COMMITTED;
        usage.pinned_bytes += wal->segments[i]->pins ? wal->segments[i]->allocated_bytes : 0;
    }
    usage.segments_spare = wal->spare_count;
    usage.producers = wal->producers.count;
    usage.producers_remembered = wal->producers.expired.count;
    usage.is_refusing = wal->room_left < WAL_BLOCK && !writer_may_grow(wal, 0);
    env_unlock(wal->lock);
    return usage;
}

/* Has the table rows in the segment that it has not taken? Lock held. */
static bool is_pinned_by(const struct wal *wal, const struct segment *segment, uint32_t table_id)
{
    for (size_t i = 0; i < segment->table_count && segment->place == SEGMENT_SEALED; i++) {
        const struct segment_table *row = &segment->tables[i];
        if (row->table_id == table_id && row->entries > 0 &&
            row->last_seq > table_through(wal, row))
            return true;
    }
    return false;
}

uint64_t wal_pinned_bytes(struct wal *wal, uint32_t table_id)
{
    uint64_t bytes = 0;
    env_lock(wal->lock);
    for (size_t i = 0; i < wal->segment_count; i++)
        if (is_pinned_by(wal, wal->segments[i], table_id))
            bytes += wal->segments[i]->allocated_bytes;
    env_unlock(wal->lock);
    return bytes;
}

bool wal_segment_at(struct wal *wal, size_t index, struct wal_segment_info *out_info)
{
    env_lock(wal->lock);
    bool is_there = index < wal->segment_count + wal->spare_count;
    if (index < wal->segment_count) {
        const struct segment *segment = wal->segments[index];
        *out_info = (struct wal_segment_info){.id = segment->identity.id,
                                              .bytes = segment->file_bytes,
                                              .allocated_bytes = segment->allocated_bytes,
                                              .entries = segment->entry_count,
                                              .state = segment_folder(segment->place),
                                              .created_wall_ns = segment->created_wall_ns,
                                              .is_cut = segment->is_cut,
                                              .is_compacted = segment->is_compacted};
        snprintf(out_info->path, sizeof out_info->path, "%s/%016llx.seg", out_info->state,
                 (unsigned long long)segment->identity.id);
    } else if (is_there) {
        const struct spare *spare = &wal->spares[index - wal->segment_count];
        *out_info = (struct wal_segment_info){.id = spare->number,
                                              .bytes = spare->bytes,
                                              .allocated_bytes = spare->allocated_bytes,
                                              .state = "spare"};
        snprintf(out_info->path, sizeof out_info->path, "spare/%016llx.%s",
                 (unsigned long long)spare->number, spare->is_written ? "spare" : "blank");
    }
    env_unlock(wal->lock);
    return is_there;
}
