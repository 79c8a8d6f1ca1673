/* SPDX-License-Identifier: Apache-2.0
 *
 * One segment file, unit by unit: for what a crash left active, and for a sealed file whose footer
 * does not verify. The decision table stands at the head of recover.c. A unit counts whole or not
 * at all; only where it is known to have been synced once are its entries taken one by one.
 */
#include <stdio.h>

#include "log/wal/recover_internal.h"

enum { LEAST_RECORD = RECORD_HEADER_FIXED };

/* ---- accepting entries ---- */

enum status recover_no_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "log: no memory to recover");
}

enum status recover_group_jump(struct wal *wal, uint32_t group_id, uint64_t seq, uint64_t chain,
                               const char *where, struct error *err)
{
    struct group *group = &wal->groups[group_id];
    if (seq <= group->synced_seq + 1)
        return STATUS_OK;
    for (uint64_t at = group->synced_seq + 1; at < seq;) {
        const struct seq_range *range = reclaimed_from(wal, group_id, at);
        if (range && range->first <= at) {
            at = range->last + 1;
            continue;
        }
        uint64_t last = range && range->first < seq ? range->first - 1 : seq - 1;
        if (!damage_add(wal, group_id, at, last, where))
            return recover_no_memory(err);
        at = last + 1;
    }
    for (size_t i = 0; i < wal->damage_count; i++) {
        struct damage *damage = &wal->damages[i];
        if (chain && damage->group == group_id && damage->last == seq - 1) {
            damage->has_chain = true;
            damage->chain = chain;
        }
    }
    group->synced_seq = seq - 1;
    group->synced_chain = chain;
    return STATUS_OK;
}

static enum status table_replay(struct wal *wal, const struct record *record, struct span name,
                                struct error *err)
{
    if (record->table_id == 0 || record->table_id > WAL_TABLES_MAX ||
        name.length > WAL_TABLE_NAME_MAX)
        return error_set(err, STATUS_CORRUPT, "log: TABLE entry");
    return table_put(wal, record->table_id, name) ? STATUS_OK : recover_no_memory(err);
}

enum status recover_state_replay(struct wal *wal, const struct record *record, struct span header,
                                 struct span payload, struct error *err)
{
    if (record->seq <= wal->groups[record->group].state_seq)
        return STATUS_OK;
    if (record->type == WAL_TABLE)
        TRY(table_replay(wal, record, payload, err));
    if (record->contribution_count == 0)
        return STATUS_OK;
    struct wal_contribution *contributions =
        mem_alloc_zero(record->contribution_count, sizeof *contributions);
    if (!contributions)
        return recover_no_memory(err);
    enum status status = record_contributions(header, record, contributions, err);
    if (status == STATUS_OK &&
        !producers_apply(&wal->producers, record, contributions, wal_clock_ms(wal)))
        status = recover_no_memory(err);
    mem_free(contributions);
    return status;
}

static enum status schema_replay(struct wal *wal, struct segment *segment,
                                 const struct record *record, struct span payload,
                                 struct error *err)
{
    if (record->schema_fingerprint == 0)
        return STATUS_OK;
    if (!schema_put(wal, record->schema_fingerprint, payload) ||
        !grow((void **)&segment->schemas, &segment->schema_capacity, segment->schema_count,
              sizeof *segment->schemas))
        return recover_no_memory(err);
    segment->schemas[segment->schema_count++] = record->schema_fingerprint;
    return STATUS_OK;
}

enum status recover_void_replay(struct wal *wal, const struct void_range *range, struct error *err)
{
    if (!void_add(wal, range))
        return recover_no_memory(err);
    return damage_clear(wal, range->group, range->first, range->last) ? STATUS_OK
                                                                      : recover_no_memory(err);
}

/* The group went on behind `after`. */
static enum status truncation_replay(struct walk *walk, const struct record *record, uint64_t after,
                                     uint64_t chain, struct error *err)
{
    uint64_t id = walk->segment->identity.id;
    struct truncation row = {.group = record->group,
                             .after = after,
                             .chain = chain,
                             .term = record->term,
                             .segment = id};
    if (!truncation_add(walk->wal, &row))
        return recover_no_memory(err);
    walk->segment->has_state = true;
    truncations_apply(walk->wal, id, walk->segment);
    return STATUS_OK;
}

/* One entry of a walked unit, checked; `unit_offset` and `row` say where it lies. */
static enum status accept(struct walk *walk, const struct unit *unit, const struct unit_row *row,
                          const struct record *record, struct error *err)
{
    struct wal *wal = walk->wal;
    const uint8_t *at = walk->data + unit->offset + row->offset;
    struct span header = span_of(at, row->header_bytes);
    struct span payload = span_of(at + align_up(row->header_bytes, WAL_ALIGN), row->payload_bytes);
    if (record->type == RECORD_SCHEMA)
        return schema_replay(wal, walk->segment, record, payload, err);
    if (record->type >= RECORD_SCHEMA && (record->type != RECORD_TRUNCATE || !wal->needs_commit))
        return STATUS_OK; /* replication's, or the footer: nothing to replay */
    if (record->group >= wal->group_count)
        return error_set(err, STATUS_CORRUPT, "log: entry of group %u of %u", record->group,
                         wal->group_count);
    if (record->type == RECORD_TRUNCATE)
        return truncation_replay(walk, record, record->range_last, record->chain, err);
    if (record->seq == 0 || record->range_last < record->seq)
        return error_set(err, STATUS_CORRUPT, "log: entry without a number");
    struct group *group = &wal->groups[record->group];
    bool is_alone = record->flags & RECORD_REPAIR;
    char where[120];
    snprintf(where, sizeof where, "segment %llu before offset %llu",
             (unsigned long long)walk->segment->identity.id,
             (unsigned long long)(unit->offset + row->offset));
    /* The record that said so is lost. */
    if (!is_alone && record->seq <= group->synced_seq && record->term > group->term &&
        wal->needs_commit) {
        TRY(recover_suspect(wal, record->group, record->seq - 1, record->chain_before, err));
        TRY(truncation_replay(walk, record, record->seq - 1, record->chain_before, err));
    }
    if (!is_alone && record->seq <= group->synced_seq)
        return error_set(err, STATUS_CORRUPT, "log: group %u seq %llu comes twice (%s)",
                         record->group, (unsigned long long)record->seq, where);
    if (!is_alone) {
        TRY(recover_group_jump(wal, record->group, record->seq, record->chain_before, where, err));
        if (record->chain_before != group->synced_chain) {
            snprintf(where, sizeof where, "segment %llu: chain does not follow",
                     (unsigned long long)walk->segment->identity.id);
            if (!damage_add(wal, record->group, record->seq, record->seq, where))
                return recover_no_memory(err);
        }
    }
    bool is_data = record->type == WAL_DATA && record->table_id <= WAL_TABLES_MAX;
    if (is_data && record->table_id > wal->table_count &&
        !table_put(wal, record->table_id, (struct span){0}))
        return recover_no_memory(err); /* its TABLE entry is lost: the number stays taken */
    if (!index_prepare(wal, walk->segment, record))
        return recover_no_memory(err);
    index_add(wal, walk->segment, record, unit->offset + row->offset, unit->header.wall_ns);
    wal->recovery.entries++;
    if (record->term > wal->term)
        wal->term = record->term;
    if (is_alone)
        return recover_void_replay(wal, &walk->segment->voids[walk->segment->void_count - 1], err);
    group->synced_seq = record->seq;
    group->synced_chain = record->chain;
    group->term = record->term;
    group->lost_before = walk->lost_bytes;
    return wal->needs_commit ? STATUS_OK /* a later segment may have taken it back */
                             : recover_state_replay(wal, record, header, payload, err);
}

/* ---- walking a file ---- */

static bool record_holds(const struct walk *walk, const struct unit *unit, uint32_t index,
                         bool is_checked, struct unit_row *out_row, struct record *out_record)
{
    struct error ignored;
    const uint8_t *at = walk->data + unit->offset;
    unit_row_decode(at, index, out_row);
    const uint8_t *header = at + out_row->offset;
    const uint8_t *payload = header + align_up(out_row->header_bytes, WAL_ALIGN);
    return record_decode(span_of(header, out_row->header_bytes),
                         segment_seed(&walk->segment->identity), out_record,
                         &ignored) == STATUS_OK &&
           out_record->header_bytes == out_row->header_bytes &&
           out_record->payload_bytes == out_row->payload_bytes &&
           (is_checked ||
            sum_holds(out_record->payload_crc, crc32c(0, payload, out_row->payload_bytes)));
}

/* Is there a unit of this segment, numbered at least `least`? */
static bool unit_at(struct walk *walk, uint64_t offset, uint64_t least, struct unit *out_unit)
{
    struct unit unit = {.offset = offset};
    struct span bytes = span_of(walk->data + offset, (size_t)(walk->bytes - offset));
    if (unit_header_decode(bytes, &walk->segment->identity, walk->is_salted, &unit.header) !=
            STATUS_OK ||
        unit.header.number < least || unit.header.unit_bytes > bytes.length ||
        !unit_rows_are_sound(bytes.data, &unit.header))
        return false;
    if (!walk->is_salted) {
        /* The segment header is gone; the first unit that verifies by its own salt brings it back.
         */
        walk->segment->identity.salt = unit.header.salt;
        walk->is_salted = true;
    }
    unit.is_whole = true;
    for (uint32_t i = 0; i < unit.header.record_count && unit.is_whole; i++) {
        struct unit_row row;
        struct record record;
        unit.is_whole = record_holds(walk, &unit, i, false, &row, &record);
    }
    *out_unit = unit;
    return true;
}

static enum status units_find(struct walk *walk, uint64_t start, struct error *err)
{
    uint64_t offset = start, least = 1;
    while (offset + UNIT_HEADER_FIXED <= walk->bytes) {
        struct unit unit;
        if (!unit_at(walk, offset, least, &unit)) {
            offset += WAL_BLOCK; /* L7: the next one begins on some block */
            continue;
        }
        if (!grow((void **)&walk->units, &walk->unit_capacity, walk->unit_count,
                  sizeof *walk->units))
            return recover_no_memory(err);
        walk->units[walk->unit_count++] = unit;
        if (walk->floor < unit.header.floor)
            walk->floor = unit.header.floor;
        least = unit.header.number + 1;
        offset += unit.header.unit_bytes;
        if (unit.header.kind == UNIT_FOOTER)
            break;
    }
    return STATUS_OK;
}

static enum status unit_take(struct walk *walk, const struct unit *unit, struct error *err)
{
    for (uint32_t i = 0; i < unit->header.record_count; i++) {
        struct unit_row row;
        struct record record;
        if (!record_holds(walk, unit, i, unit->is_whole, &row, &record)) {
            walk->lost_bytes += record_bytes(row.header_bytes, row.payload_bytes);
            continue;
        }
        TRY(accept(walk, unit, &row, &record, err));
    }
    walk->end = unit->offset + unit->header.unit_bytes;
    walk->last = walk->accepted = unit->header.number;
    return STATUS_OK;
}

/* Something of this segment begins here that is not a whole unit: the writer was interrupted. */
static bool has_remains(const struct walk *walk, uint64_t offset)
{
    static const uint8_t magic[4] = {'S', 'L', 'U', 'N'};
    return offset + WAL_BLOCK <= walk->bytes && memcmp(walk->data + offset, magic, 4) == 0 &&
           get_le64(walk->data + offset + 48) == walk->segment->identity.salt;
}

/* The decision table at the head of this file. */
static enum status units_decide(struct walk *walk, uint64_t start, struct error *err)
{
    uint64_t expected = 1;
    walk->end = start;
    for (size_t i = 0; i < walk->unit_count; i++) {
        const struct unit *unit = &walk->units[i];
        bool is_gap = unit->header.number != expected;
        if (walk->may_cut && is_gap && unit->header.number - 1 > walk->floor) {
            walk->is_cut = true;
            return STATUS_OK;
        }
        if (is_gap)
            walk->lost_bytes += unit->offset - walk->end;
        if (walk->may_cut && !unit->is_whole && unit->header.number > walk->floor) {
            walk->is_cut = true;
            return STATUS_OK;
        }
        if (unit->header.kind == UNIT_FOOTER) {
            walk->has_footer = unit->is_whole;
            walk->last = unit->header.number - 1;
            return STATUS_OK;
        }
        TRY(unit_take(walk, unit, err));
        expected = unit->header.number + 1;
    }
    bool is_lost = walk->may_cut && walk->mark && walk->last < walk->mark->floor;
    if (is_lost) /* synced units stood here, and no more is known of them */
        walk->lost_bytes += walk->mark->bytes - walk->end;
    walk->is_cut = walk->may_cut && !is_lost && has_remains(walk, walk->end);
    return STATUS_OK;
}

/* Where the units end that a floor proves. */
static uint64_t units_proven(const struct walk *walk, uint64_t start)
{
    uint64_t end = start;
    for (size_t i = 0; i < walk->unit_count && walk->units[i].header.number <= walk->floor; i++)
        end = walk->units[i].offset + walk->units[i].header.unit_bytes;
    return end;
}

enum status walk_file(struct walk *walk, const char *path, uint64_t start, struct error *err)
{
    for (uint32_t g = 0; g < walk->wal->group_count; g++)
        walk->wal->groups[g].lost_before = 0;
    bool is_direct, is_other = false, was_salted = walk->is_salted;
    TRY(file_load(walk->wal, path, &walk->data, &walk->bytes, &is_direct, err));
    TRY(units_find(walk, start, err));
    /* L22: what no floor proves may be in the page cache alone. */
    uint64_t proven = units_proven(walk, start);
    if (walk->may_cut && is_direct)
        TRY(file_load_cached(walk->wal, path, walk->data, proven, walk->bytes, &is_other, err));
    if (is_other) {
        walk->unit_count = 0;
        walk->floor = 0;
        walk->is_salted = was_salted;
        TRY(units_find(walk, start, err));
    }
    if (walk->mark && walk->floor < walk->mark->floor)
        walk->floor = walk->mark->floor;
    if (!walk->may_cut)
        walk->floor = UINT64_MAX;
    if ((walk->wal->options.is_read_only || walk->wal->options.restore) && walk->may_cut) {
        /* Another process may be writing, or have written and not acknowledged: only what is proven
         * counts (L23, L35). */
        while (walk->unit_count > 0 &&
               walk->units[walk->unit_count - 1].header.number > walk->floor)
            walk->wal->recovery.records_unproven +=
                walk->units[--walk->unit_count].header.record_count;
    }
    return units_decide(walk, start, err);
}

void walk_deinit(struct walk *walk)
{
    mem_free(walk->data);
    mem_free(walk->units);
}

enum status recover_tail_lost(struct wal *wal, uint32_t group, uint64_t bytes, const char *where,
                              struct error *err)
{
    uint64_t chain, most = bytes / LEAST_RECORD + 1;
    env_random(wal->env, &chain, sizeof chain);
    return recover_group_jump(wal, group, wal->groups[group].synced_seq + most + 1, chain, where,
                              err);
}

enum status walk_tail_bound(struct walk *walk, struct error *err)
{
    struct wal *wal = walk->wal;
    if (walk->lost_bytes == 0)
        return STATUS_OK;
    char where[80];
    snprintf(where, sizeof where, "segment %llu: damaged units",
             (unsigned long long)walk->segment->identity.id);
    for (uint32_t g = 0; g < wal->group_count; g++) {
        uint64_t lost = walk->lost_bytes - wal->groups[g].lost_before;
        if (lost == 0)
            continue; /* an entry of this group follows the damage */
        TRY(recover_tail_lost(wal, g, lost, where, err));
    }
    return STATUS_OK;
}
