/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading the synced prefix (L23). A scan finds its next entry in the index, takes its bytes from
 * the write buffers while those last and from the file otherwise, and checks header and payload
 * either way. While it is inside a segment the segment is pinned; what lies ahead of it is kept by
 * scans_need. An entry that does not verify becomes a damaged range, which halts whoever may have
 * rows in it until `log repair`.
 */
#include <stdio.h>

#include "log/wal/wal_internal.h"

struct wal_scan {
    struct wal *wal;
    uint32_t group, table_id;
    uint64_t position;     /* guarded by the engine's lock */
    bool sees_all;         /* verification: floors do not matter */
    struct wal_scan *next; /* the engine's list; guarded by lock */
    struct env_file *file; /* of segment_id */
    uint64_t segment_id;
    struct unit_buffer *held; /* the last view points into it */
    struct entry_bytes bytes; /* or into this */
    struct wal_contribution *contributions;
};

void entry_bytes_deinit(struct entry_bytes *bytes)
{
    mem_free(bytes->data);
    *bytes = (struct entry_bytes){0};
}

enum status entry_verify(const struct segment *segment, const struct index_entry *entry,
                         const uint8_t *data, bool with_payload, struct record *out_record,
                         struct error *err)
{
    struct record record;
    TRY(record_decode(span_of(data, entry->header_bytes), segment_seed(&segment->identity), &record,
                      err));
    if (record.payload_bytes != entry->payload_bytes || record.table_id != entry->table_id ||
        record.type != entry->type)
        return error_set(err, STATUS_CORRUPT, "entry header: not the one in the index");
    const uint8_t *payload = data + align_up(record.header_bytes, WAL_ALIGN);
    if (with_payload && !sum_holds(record.payload_crc, crc32c(0, payload, entry->payload_bytes)))
        return error_set(err, STATUS_CORRUPT, "payload: checksum");
    *out_record = record;
    return STATUS_OK;
}

enum status entry_read(const struct segment *segment, const struct index_entry *entry,
                       struct env_file *file, bool with_payload, struct entry_bytes *bytes,
                       struct record *out_record, struct error *err)
{
    size_t wanted = entry->header_bytes, got;
    if (with_payload)
        wanted = (size_t)align_up(entry->header_bytes, WAL_ALIGN) + entry->payload_bytes;
    if (bytes->capacity < wanted) {
        size_t capacity = (size_t)align_up(wanted + wanted / 4, WAL_BLOCK);
        uint8_t *data = mem_alloc_aligned(WAL_BLOCK, capacity);
        if (!data)
            return error_set(err, STATUS_NO_MEMORY, "log: no memory to read an entry");
        mem_free(bytes->data);
        *bytes = (struct entry_bytes){.data = data, .capacity = capacity};
    }
    TRY(env_read(file, (uint64_t)entry->at * WAL_ALIGN, bytes->data, wanted, &got, err));
    if (got < wanted)
        return error_set(err, STATUS_CORRUPT, "entry: the file ends inside it");
    return entry_verify(segment, entry, bytes->data, with_payload, out_record, err);
}

enum status segment_open_for_reading(struct wal *wal, const struct segment *segment,
                                     struct env_file **out_file, struct error *err)
{
    enum status status = STATUS_OK;
    env_lock(wal->lock);
    enum segment_place place = segment->place;
    env_unlock(wal->lock);
    /* The name moves under us from active/ to sealed/ to committed/, and that is said only once the
     * directories are synced. */
    for (; place <= SEGMENT_COMMITTED; place++) {
        char path[PATH_BYTES_MAX];
        wal_segment_path(wal, segment->identity.id, place, path);
        status = env_open(wal->env, path, ENV_READ, out_file, err);
        if (status != STATUS_NOT_FOUND)
            return status;
    }
    return status;
}

/* ---- opening and closing ---- */

static enum status scan_create(struct wal *wal, uint32_t group, uint32_t table_id, uint64_t after,
                               bool sees_all, struct wal_scan **out_scan, struct error *err)
{
    if (group >= wal->group_count)
        return error_set(err, STATUS_INVALID, "log scan: group %u of %u", group, wal->group_count);
    struct wal_scan *scan = mem_alloc_zero(1, sizeof *scan);
    struct wal_contribution *contributions =
        mem_alloc_zero(WAL_CONTRIBUTIONS_MAX, sizeof *contributions);
    if (!scan || !contributions) {
        mem_free(scan);
        mem_free(contributions);
        return error_set(err, STATUS_NO_MEMORY, "log scan: out of memory");
    }
    *scan = (struct wal_scan){.wal = wal,
                              .group = group,
                              .table_id = table_id,
                              .position = after,
                              .sees_all = sees_all,
                              .contributions = contributions};
    env_lock(wal->lock);
    scan->next = wal->scans;
    wal->scans = scan;
    env_unlock(wal->lock);
    *out_scan = scan;
    return STATUS_OK;
}

static enum status floor_check(const struct wal_scan *scan, struct error *err)
{
    uint64_t floor;
    if (scan->sees_all)
        return STATUS_OK;
    if (scan->table_id == 0) {
        const struct seq_range *hole = reclaimed_from(scan->wal, scan->group, scan->position + 1);
        floor = hole && hole->first <= scan->position + 1 ? hole->last : 0;
    } else {
        floor = floor_get(scan->wal, scan->table_id, scan->group);
    }
    if (floor <= scan->position)
        return STATUS_OK;
    return error_set(err, STATUS_RECLAIMED, "log scan: group %u table %u: %llu to %llu reclaimed",
                     scan->group, scan->table_id, (unsigned long long)scan->position + 1,
                     (unsigned long long)floor);
}

enum status wal_scan_seek(struct wal_scan *scan, uint64_t after, struct error *err)
{
    env_lock(scan->wal->lock);
    scan->position = after;
    enum status status = floor_check(scan, err);
    env_unlock(scan->wal->lock);
    return status;
}

enum status wal_scan_open(struct wal *wal, uint32_t group, uint32_t table_id, uint64_t after,
                          struct wal_scan **out_scan, struct error *err)
{
    struct wal_scan *scan;
    TRY(scan_create(wal, group, table_id, after, false, &scan, err));
    enum status status = wal_scan_seek(scan, after, err);
    if (status == STATUS_OK)
        *out_scan = scan;
    else
        wal_scan_close(scan);
    return status;
}

static void view_release(struct wal_scan *scan)
{
    if (!scan->held)
        return;
    env_lock(scan->wal->lock);
    unit_buffer_release(scan->wal, scan->held);
    env_unlock(scan->wal->lock);
    scan->held = NULL;
}

void wal_scan_close(struct wal_scan *scan)
{
    if (!scan)
        return;
    view_release(scan);
    env_lock(scan->wal->lock);
    for (struct wal_scan **at = &scan->wal->scans; *at; at = &(*at)->next) {
        if (*at != scan)
            continue;
        *at = scan->next;
        break;
    }
    env_unlock(scan->wal->lock);
    env_close(scan->file);
    entry_bytes_deinit(&scan->bytes);
    mem_free(scan->contributions);
    mem_free(scan);
}

bool scans_need_leavings(const struct wal *wal, const struct leavings *leavings)
{
    for (const struct wal_scan *scan = wal->scans; scan; scan = scan->next) {
        for (size_t i = 0; scan->table_id == 0 && i < leavings->range_count; i++)
            if (leavings->ranges[i].group == scan->group &&
                leavings->ranges[i].last > scan->position)
                return true;
        for (size_t i = 0; i < leavings->floor_count; i++)
            if (leavings->floors[i].table_id == scan->table_id &&
                leavings->floors[i].group == scan->group &&
                leavings->floors[i].seq > scan->position)
                return true;
    }
    return false;
}

bool scans_need(const struct wal *wal, const struct segment *segment)
{
    for (const struct wal_scan *scan = wal->scans; scan; scan = scan->next) {
        if (scan->table_id) {
            const struct segment_table *table =
                segment_table_find(segment, scan->group, scan->table_id);
            if (table && table->last_seq > scan->position)
                return true;
            continue;
        }
        const struct run *run = segment_run_find(segment, scan->group);
        if (run && run->count && run_end(run) - 1 > scan->position)
            return true;
    }
    return false;
}

/* ---- what comes next ---- */

struct found {
    struct segment *segment; /* pinned */
    struct index_entry entry;
    uint64_t seq;
    struct void_range range; /* instead, if first is not 0 */
};

/* An entry whose place is known and whose table is another one halts nobody else. */
static bool concerns(struct wal *wal, uint32_t table_id, const struct damage *damage)
{
    struct run *run;
    const struct index_entry *entry;
    if (table_id == 0 || damage->first != damage->last ||
        !index_find(wal, damage->group, damage->first, &run, &entry))
        return true;
    return entry->type == WAL_DATA && entry->table_id == table_id;
}

const struct damage *damage_within(struct wal *wal, uint32_t group, uint32_t table_id,
                                   uint64_t after, uint64_t last)
{
    const struct damage *first = NULL;
    for (size_t i = 0; i < wal->damage_count && last > after; i++) {
        const struct damage *damage = &wal->damages[i];
        if (damage->group == group && damage->last > after && damage->first <= last &&
            concerns(wal, table_id, damage) && (!first || damage->first < first->first))
            first = damage;
    }
    return first;
}

static const struct void_range *void_above(const struct wal *wal, uint32_t group, uint64_t after,
                                           uint64_t bound)
{
    const struct void_range *best = NULL;
    for (size_t i = 0; i < wal->void_count; i++) {
        const struct void_range *range = &wal->voids[i];
        if (range->group == group && range->last > after && range->first <= bound &&
            (!best || range->first < best->first))
            best = range;
    }
    return best;
}

/* The step from position to the next entry, range or reason to stop. Lock held. */
static enum status find_next(struct wal_scan *scan, struct found *out, struct error *err)
{
    struct wal *wal = scan->wal;
    uint64_t after = scan->position;
    TRY(floor_check(scan, err));
    for (;;) {
        struct run *run;
        const struct index_entry *entry;
        uint64_t seq = wal->groups[scan->group].committed_seq;
        bool has_entry = index_next(wal, scan->group, scan->table_id, after, &run, &entry, &seq);
        const struct damage *damage =
            damage_within(wal, scan->group, scan->table_id, scan->position, seq);
        if (damage)
            return error_set(err, STATUS_CORRUPT, "log: group %u: %llu to %llu are damaged: %s",
                             damage->group, (unsigned long long)damage->first,
                             (unsigned long long)damage->last, damage->where);
        const struct void_range *range =
            scan->table_id == 0 ? void_above(wal, scan->group, after, seq) : NULL;
        if (range) {
            out->range = *range;
            return STATUS_OK;
        }
        if (!has_entry)
            return error_set(err, STATUS_NOT_FOUND, "log scan: at the end");
        range = void_above(wal, scan->group, seq - 1, seq);
        if (range) {
            after = range->last; /* the entry is there but was declared lost */
            continue;
        }
        out->segment = run->segment;
        out->entry = *entry;
        out->seq = seq;
        out->segment->pins++;
        return STATUS_OK;
    }
}

/* The bytes of the entry, from memory or file. */
static enum status fetch(struct wal_scan *scan, const struct found *found, const uint8_t **out_data,
                         struct record *out_record, struct error *err)
{
    struct wal *wal = scan->wal;
    uint64_t offset = (uint64_t)found->entry.at * WAL_ALIGN;
    env_lock(wal->lock);
    scan->held =
        unit_buffer_find(wal, found->segment->identity.id, offset,
                         record_bytes(found->entry.header_bytes, found->entry.payload_bytes));
    env_unlock(wal->lock);
    if (scan->held) {
        *out_data = scan->held->data + (offset - scan->held->offset);
        return entry_verify(found->segment, &found->entry, *out_data, true, out_record, err);
    }
    if (!scan->file || scan->segment_id != found->segment->identity.id) {
        env_close(scan->file);
        scan->file = NULL;
        enum status status = segment_open_for_reading(wal, found->segment, &scan->file, err);
        if (status == STATUS_NOT_FOUND && wal->options.is_read_only)
            return err->status = STATUS_RECLAIMED; /* by the process that writes it */
        TRY(status);
        scan->segment_id = found->segment->identity.id;
    }
    TRY(entry_read(found->segment, &found->entry, scan->file, true, &scan->bytes, out_record, err));
    *out_data = scan->bytes.data;
    return STATUS_OK;
}

/* Of a log that another process writes: is the file another one than when its footer was read,
 * which had more? */
static bool is_replaced(struct wal *wal, const struct segment *segment)
{
    struct env_file *file = NULL;
    struct buf footer = {0};
    struct error ignored;
    size_t got = 0, bytes = (size_t)(segment->file_bytes - segment->data_end);
    if (!wal->options.is_read_only || segment->is_compacted || bytes == 0)
        return false;
    uint8_t *to = buf_extend(&footer, bytes);
    bool is_read = to && segment_open_for_reading(wal, segment, &file, &ignored) == STATUS_OK &&
                   env_read(file, segment->data_end, to, bytes, &got, &ignored) == STATUS_OK &&
                   got == bytes;
    bool is_other = is_read && footer_is_compacted(segment, span_of(to, bytes));
    env_close(file);
    buf_deinit(&footer);
    return is_other;
}

static void view_of_void(const struct void_range *range, struct wal_view *out)
{
    *out = (struct wal_view){.type = WAL_VOID,
                             .group = range->group,
                             .seq = range->last,
                             .term = range->term,
                             .chain = range->chain};
}

static void view_of_entry(struct wal_scan *scan, const struct found *found, const uint8_t *data,
                          const struct record *record, struct wal_view *out)
{
    *out = (struct wal_view){
        .type = (enum wal_entry_type)record->type,
        .group = record->group,
        .table_id = record->table_id,
        .rows = record->rows,
        .seq = record->seq,
        .term = record->term,
        .chain = record->chain,
        .schema_fingerprint = record->schema_fingerprint,
        .time_min_us = record->time_min_us,
        .time_max_us = record->time_max_us,
        .contributions = scan->contributions,
        .contribution_count = record->contribution_count,
        .payload =
            span_of(data + align_up(record->header_bytes, WAL_ALIGN), found->entry.payload_bytes),
        .payload_crc = record->payload_crc,
    };
}

enum status wal_scan_next(struct wal_scan *scan, struct wal_view *out_view, struct error *err)
{
    struct wal *wal = scan->wal;
    struct found found = {0};
    struct record record;
    const uint8_t *data = NULL;
    view_release(scan);
    env_lock(wal->lock);
    enum status status = find_next(scan, &found, err);
    if (status == STATUS_OK && found.range.first)
        scan->position = found.range.last;
    env_unlock(wal->lock);
    TRY(status);
    if (found.range.first) {
        view_of_void(&found.range, out_view);
        return STATUS_OK;
    }
    status = fetch(scan, &found, &data, &record, err);
    if (status == STATUS_OK && (record.seq != found.seq || record.group != scan->group))
        status = error_set(err, STATUS_CORRUPT, "entry header: of seq %llu",
                           (unsigned long long)record.seq);
    if (status == STATUS_OK)
        status = record_contributions(span_of(data, record.header_bytes), &record,
                                      scan->contributions, err);
    if (status == STATUS_OK)
        view_of_entry(scan, &found, data, &record, out_view);
    if (status == STATUS_CORRUPT && is_replaced(wal, found.segment))
        status = error_set(err, STATUS_RECLAIMED, "log: segment %llu was compacted meanwhile",
                           (unsigned long long)found.segment->identity.id);
    env_lock(wal->lock);
    found.segment->pins--;
    if (status == STATUS_OK || status == STATUS_RECLAIMED)
        scan->position = found.seq;
    if (status == STATUS_CORRUPT) {
        char where[160];
        snprintf(where, sizeof where, "segment %llu at %llu: %.90s",
                 (unsigned long long)found.segment->identity.id,
                 (unsigned long long)found.entry.at * WAL_ALIGN, err->message);
        error_prefix(err, "log: group %u seq %llu", scan->group, (unsigned long long)found.seq);
        if (!damage_add(wal, scan->group, found.seq, found.seq, where))
            error_prefix(err, "not recorded, out of memory");
    }
    env_unlock(wal->lock);
    return status;
}

/* ---- positions ---- */

struct wal_position wal_synced_end(struct wal *wal, uint32_t group)
{
    struct wal_position position = {0};
    if (group >= wal->group_count)
        return position;
    env_lock(wal->lock);
    position.seq = wal->groups[group].committed_seq;
    position.chain = wal->groups[group].committed_chain;
    env_unlock(wal->lock);
    return position;
}

/* The chain from what is in memory: ends, voids, damage, segment headers. Lock held. */
static bool chain_known(struct wal *wal, uint32_t group, uint64_t seq, uint64_t *out_chain)
{
    if (wal->groups[group].synced_seq == seq) {
        *out_chain = wal->groups[group].synced_chain;
        return true;
    }
    for (size_t i = 0; i < wal->void_count; i++) {
        const struct void_range *range = &wal->voids[i];
        if (range->group == group && range->last == seq && range->chain) { /* 0: nothing told it */
            *out_chain = range->chain;
            return true;
        }
    }
    for (size_t i = 0; i < wal->damage_count; i++) {
        const struct damage *damage = &wal->damages[i];
        if (damage->group == group && damage->last == seq && damage->has_chain) {
            *out_chain = damage->chain;
            return true;
        }
    }
    for (size_t i = 0; i < wal->segment_count; i++) {
        const struct header_chain *row = segment_chain_find(wal->segments[i], group);
        if (row && row->last_seq == seq) {
            *out_chain = row->chain;
            return true;
        }
    }
    return false;
}

/* The header of `seq`; NOT_FOUND if it is not here. */
static enum status header_read(struct wal *wal, uint32_t group, uint64_t seq,
                               struct record *out_record, struct error *err)
{
    struct run *run;
    const struct index_entry *place;
    struct index_entry entry;
    struct segment *segment = NULL;
    struct env_file *file = NULL;
    struct entry_bytes bytes = {0};
    enum status status;
    env_lock(wal->lock);
    if (index_find(wal, group, seq, &run, &place) && !run->segment->is_going) {
        entry = *place;
        segment = run->segment;
        segment->pins++;
    }
    env_unlock(wal->lock);
    if (!segment)
        return error_set(err, STATUS_NOT_FOUND, "log: group %u seq %llu is not here", group,
                         (unsigned long long)seq);
    status = segment_open_for_reading(wal, segment, &file, err);
    if (status == STATUS_OK)
        status = entry_read(segment, &entry, file, false, &bytes, out_record, err);
    env_close(file);
    entry_bytes_deinit(&bytes);
    env_lock(wal->lock);
    segment->pins--;
    bool is_left_out = status == STATUS_CORRUPT && !index_find(wal, group, seq, &run, &place);
    env_unlock(wal->lock);
    return is_left_out ? error_set(err, STATUS_NOT_FOUND, "log: group %u seq %llu is gone", group,
                                   (unsigned long long)seq)
                       : status;
}

enum status chain_read(struct wal *wal, uint32_t group, uint64_t seq, uint64_t *out_chain,
                       struct error *err)
{
    struct record record;
    uint64_t chain = 0;
    env_lock(wal->lock);
    bool is_known = seq == 0 || chain_known(wal, group, seq, &chain);
    env_unlock(wal->lock);
    if (!is_known) {
        enum status status = header_read(wal, group, seq, &record, err);
        chain = record.chain;
        if (status != STATUS_OK) {
            TRY(header_read(wal, group, seq + 1, &record, err));
            chain = record.chain_before;
        }
    }
    *out_chain = chain;
    return STATUS_OK;
}

/* Is it one of those that count, or 0? */
static enum status seq_check(struct wal *wal, uint32_t group, uint64_t seq, struct error *err)
{
    if (group >= wal->group_count)
        return error_set(err, STATUS_INVALID, "log: group %u of %u", group, wal->group_count);
    env_lock(wal->lock);
    bool is_ahead = seq > wal->groups[group].committed_seq;
    env_unlock(wal->lock);
    return is_ahead ? error_set(err, STATUS_NOT_FOUND, "log: group %u ends before %llu", group,
                                (unsigned long long)seq)
                    : STATUS_OK;
}

enum status wal_chain_at(struct wal *wal, uint32_t group, uint64_t seq, uint64_t *out_chain,
                         struct error *err)
{
    TRY(seq_check(wal, group, seq, err));
    return chain_read(wal, group, seq, out_chain, err);
}

enum status wal_term_at(struct wal *wal, uint32_t group, uint64_t seq, uint64_t *out_term,
                        struct error *err)
{
    struct record record;
    TRY(seq_check(wal, group, seq, err));
    TRY(header_read(wal, group, seq, &record, err));
    *out_term = record.term;
    return STATUS_OK;
}

/* ---- verification and repair ---- */

static void damage_show(const struct damage *damage, struct wal_damage *out)
{
    *out = (struct wal_damage){
        .group = damage->group, .seq_first = damage->first, .seq_last = damage->last};
    memcpy(out->where, damage->where, sizeof out->where);
}

bool wal_damage_at(struct wal *wal, size_t index, struct wal_damage *out_damage)
{
    env_lock(wal->lock);
    bool is_there = index < wal->damage_count;
    if (is_there)
        damage_show(&wal->damages[index], out_damage);
    env_unlock(wal->lock);
    return is_there;
}

bool wal_damage_above(struct wal *wal, uint32_t group, uint32_t table_id, uint64_t after,
                      struct wal_damage *out_damage)
{
    env_lock(wal->lock);
    const struct damage *damage = damage_within(wal, group, table_id, after, UINT64_MAX);
    if (damage)
        damage_show(damage, out_damage);
    env_unlock(wal->lock);
    return damage != NULL;
}

/* Passes over the damage the scan stands in front of. */
static void damage_pass(struct wal_scan *scan)
{
    struct wal *wal = scan->wal;
    uint64_t to = scan->position;
    env_lock(wal->lock);
    for (size_t i = 0; i < wal->damage_count; i++) {
        const struct damage *damage = &wal->damages[i];
        bool is_nearer = to == scan->position || damage->last < to;
        if (damage->group == scan->group && damage->last > scan->position && is_nearer)
            to = damage->last;
    }
    scan->position = to > scan->position ? to : scan->position + 1;
    env_unlock(wal->lock);
}

enum status wal_verify(struct wal *wal, uint64_t *out_entries, struct error *err)
{
    uint64_t entries = 0;
    for (uint32_t group = 0; group < wal->group_count; group++) {
        struct wal_scan *scan;
        struct wal_view view;
        enum status status;
        TRY(scan_create(wal, group, 0, 0, true, &scan, err));
        for (;;) {
            status = wal_scan_next(scan, &view, err);
            if (status == STATUS_CORRUPT)
                damage_pass(scan);
            else if (status != STATUS_OK && status != STATUS_RECLAIMED)
                break;
            else
                entries += status == STATUS_OK;
        }
        wal_scan_close(scan);
        if (status != STATUS_NOT_FOUND)
            return status;
    }
    *out_entries = entries;
    return STATUS_OK;
}

static bool damage_first(struct wal *wal, struct damage *out)
{
    env_lock(wal->lock);
    bool is_there = wal->damage_count > 0;
    if (is_there)
        *out = wal->damages[0];
    env_unlock(wal->lock);
    return is_there;
}

enum status wal_repair(struct wal *wal, uint64_t *out_entries_voided, struct error *err)
{
    struct damage damage, before = {0};
    uint64_t voided = 0;
    enum status status = STATUS_OK;
    env_lock(wal->lock);
    while (wal->is_tables_busy)
        env_wait(wal->freed, wal->lock, UINT64_MAX);
    wal->is_tables_busy = true;
    env_unlock(wal->lock);
    while (status == STATUS_OK && damage_first(wal, &damage)) {
        struct control control = {.range = {.group = damage.group,
                                            .first = damage.first,
                                            .last = damage.last,
                                            .term = wal->term}};
        struct error ignored;
        struct wal_entry entry = {.type = WAL_VOID, .group = damage.group};
        /* The history behind the hole says what its chain was; if nothing does, it stays 0. */
        if (chain_read(wal, damage.group, damage.last, &control.range.chain, &ignored) != STATUS_OK)
            control.range.chain = 0;
        if (before.first == damage.first && before.group == damage.group && before.last)
            status = error_set(err, STATUS_NO_MEMORY, "log repair: out of memory");
        else
            status = wal_append_control(wal, &entry, 1, &control, err);
        if (status == STATUS_OK)
            voided += damage.last - damage.first + 1;
        before = damage;
    }
    env_lock(wal->lock);
    wal->is_tables_busy = false;
    env_broadcast(wal->freed);
    env_unlock(wal->lock);
    if (status == STATUS_OK)
        *out_entries_voided = voided;
    return status;
}
