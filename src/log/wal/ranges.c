/* SPDX-License-Identifier: Apache-2.0
 *
 * What is not there: damaged, voided and reclaimed ranges, and the tables' reclaim floors (L32).
 * Guarded by the engine's lock.
 */
#include <stdio.h>

#include "log/wal/wal_internal.h"

#define GROW(array, capacity, count) grow((void **)&(array), &(capacity), count, sizeof *(array))

/* ---- damage, voids, floors ---- */

bool damage_add(struct wal *wal, uint32_t group, uint64_t first, uint64_t last, const char *where)
{
    for (size_t i = 0; i < wal->damage_count; i++) {
        const struct damage *old = &wal->damages[i];
        if (old->group == group && old->first <= first && old->last >= last)
            return true;
    }
    if (!GROW(wal->damages, wal->damage_capacity, wal->damage_count))
        return false;
    struct damage *damage = &wal->damages[wal->damage_count++];
    *damage = (struct damage){.group = group, .first = first, .last = last};
    snprintf(damage->where, sizeof damage->where, "%s", where);
    wal->ticket++;
    return true;
}

bool damage_clear(struct wal *wal, uint32_t group, uint64_t first, uint64_t last)
{
    for (size_t i = 0; i < wal->damage_count;) {
        struct damage *damage = &wal->damages[i];
        if (damage->group != group || damage->last < first || damage->first > last) {
            i++;
        } else if (damage->first >= first && damage->last <= last) {
            *damage = wal->damages[--wal->damage_count];
        } else if (damage->first < first && damage->last > last) {
            if (!GROW(wal->damages, wal->damage_capacity, wal->damage_count))
                return false;
            struct damage *rest = &wal->damages[wal->damage_count++];
            *rest = wal->damages[i];
            rest->first = last + 1;
            wal->damages[i].has_chain = false;
            wal->damages[i++].last = first - 1;
        } else {
            if (damage->first < first) {
                damage->last = first - 1;
                damage->has_chain = false;
            } else {
                damage->first = last + 1;
            }
            i++;
        }
    }
    return true;
}

/* The first range of the group, or of a later one, that ends at or above `seq`. */
static size_t reclaimed_place(const struct wal *wal, uint32_t group, uint64_t seq)
{
    size_t low = 0, high = wal->reclaimed_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct seq_range *range = &wal->reclaimed[middle];
        if (range->group < group || (range->group == group && range->last < seq))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct seq_range *reclaimed_from(const struct wal *wal, uint32_t group, uint64_t seq)
{
    size_t at = reclaimed_place(wal, group, seq);
    return at < wal->reclaimed_count && wal->reclaimed[at].group == group ? &wal->reclaimed[at]
                                                                          : NULL;
}

uint64_t reclaimed_below(const struct wal *wal, uint32_t group, uint64_t seq)
{
    size_t at = reclaimed_place(wal, group, seq);
    const struct seq_range *ranges = wal->reclaimed;
    if (at < wal->reclaimed_count && ranges[at].group == group && ranges[at].first <= seq)
        return seq;
    return at > 0 && ranges[at - 1].group == group ? ranges[at - 1].last : 0;
}

bool reclaimed_add(struct wal *wal, uint32_t group, uint64_t first, uint64_t last)
{
    if (wal->groups[group].reclaimed_seq < last)
        wal->groups[group].reclaimed_seq = last;
    if (!GROW(wal->reclaimed, wal->reclaimed_capacity, wal->reclaimed_count))
        return false;
    size_t at = reclaimed_place(wal, group, first - 1), end = at;
    struct seq_range *ranges = wal->reclaimed;
    for (;
         end < wal->reclaimed_count && ranges[end].group == group && ranges[end].first <= last + 1;
         end++) {
        /* Touches: the wider one takes its place. */
        first = ranges[end].first < first ? ranges[end].first : first;
        last = ranges[end].last > last ? ranges[end].last : last;
    }
    memmove(&ranges[at + 1], &ranges[end], (wal->reclaimed_count - end) * sizeof *ranges);
    wal->reclaimed_count += 1 - (end - at);
    ranges[at] = (struct seq_range){.group = group, .first = first, .last = last};
    return true;
}

bool void_add(struct wal *wal, const struct void_range *range)
{
    for (size_t i = 0; i < wal->void_count; i++) {
        const struct void_range *old = &wal->voids[i];
        if (old->group == range->group && old->first == range->first && old->last == range->last)
            return true;
    }
    if (!GROW(wal->voids, wal->void_capacity, wal->void_count))
        return false;
    wal->voids[wal->void_count++] = *range;
    return true;
}

static size_t floor_place(const struct wal *wal, uint32_t table_id, uint32_t group)
{
    uint64_t key = (uint64_t)table_id << 32 | group;
    size_t low = 0, high = wal->floor_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct floor_row *row = &wal->floors[middle];
        if (((uint64_t)row->table_id << 32 | row->group) < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t floor_get(const struct wal *wal, uint32_t table_id, uint32_t group)
{
    if (table_id == 0)
        return wal->groups[group].reclaimed_seq;
    size_t at = floor_place(wal, table_id, group);
    if (at == wal->floor_count)
        return 0;
    const struct floor_row *row = &wal->floors[at];
    return row->table_id == table_id && row->group == group ? row->seq : 0;
}

bool floor_raise(struct wal *wal, uint32_t table_id, uint32_t group, uint64_t seq)
{
    size_t at = floor_place(wal, table_id, group);
    if (at < wal->floor_count && wal->floors[at].table_id == table_id &&
        wal->floors[at].group == group) {
        if (wal->floors[at].seq < seq)
            wal->floors[at].seq = seq;
        return true;
    }
    if (!GROW(wal->floors, wal->floor_capacity, wal->floor_count))
        return false;
    memmove(&wal->floors[at + 1], &wal->floors[at],
            (wal->floor_count - at) * sizeof(struct floor_row));
    wal->floors[at] = (struct floor_row){.table_id = table_id, .group = group, .seq = seq};
    wal->floor_count++;
    return true;
}
