/* SPDX-License-Identifier: Apache-2.0
 *
 * What is left of a segment that a stuck table holds (L26): a file of the same number and length
 * with what is live where it stood, and holes. Steps and crashes: README.md, "A stuck table". Runs
 * on the keeper's thread under the state long lock, under which alone the index of a sealed segment
 * changes: it is read here without the lock.
 *
 * Invariant: a record that is in both files is at the same place with the same bytes, so whoever
 * has the old one open, or a part of it in a mirror, is not concerned.
 */
#include <stdlib.h>

#include "log/wal/wal_internal.h"

struct compaction {
    struct wal *wal;
    struct segment *segment, *left; /* left: the index of what stays */
    bool *is_live;                  /* of the segment's tables: all of their entries stay */
    struct leavings leavings;
    uint32_t *kept; /* where the entries are that stay, in units of WAL_ALIGN, rising */
    size_t kept_count, found;
    struct env_file *from, *to;
    struct buf head, made, record;
    uint64_t block_next, blocks, blocks_max; /* of the new file */
    uint64_t allocated_bytes;                /* of the new file, once it is counted */
};

static enum status no_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "log: no memory to compact");
}

/* ---- which ---- */

/* Does anybody want an entry of it? Then all are kept: a lane that stands still may have to go
 * back. Lock held. */
static bool row_is_live(const struct wal *wal, const struct segment_table *row, bool passes_holds)
{
    return row->last_seq > table_through(wal, row) ||
           (!passes_holds && row->last_seq > leases_held_from(wal, row->group, row->table_id));
}

/* Payload bytes that stay; not much beyond `most`. Lock held. */
static uint64_t live_bytes(const struct wal *wal, const struct segment *segment, bool passes_holds,
                           uint64_t most)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < segment->table_count && bytes <= most; i++)
        if (row_is_live(wal, &segment->tables[i], passes_holds))
            bytes += segment->tables[i].bytes;
    return bytes;
}

static bool is_candidate(const struct wal *wal, const struct segment *segment, bool passes_holds)
{
    if (segment->place != SEGMENT_SEALED || segment->problem[0] || segment->files > 0)
        return false;
    uint64_t most = segment->allocated_bytes / 100 * wal->options.compacted_below_percent;
    uint64_t live = live_bytes(wal, segment, passes_holds, most);
    bool is_new = segment->tried == 0 || 2 * (live + 1) <= segment->tried;
    /* Beside it stay the segment's header and footer, and a unit's header. */
    return live + 3 * (uint64_t)WAL_BLOCK <= most && is_new && !segment_is_evidence(wal, segment);
}

/* The oldest of which little is live. Lock held. */
static struct segment *next_candidate(const struct wal *wal, bool *out_passes_holds)
{
    uint64_t from = wal->options.budget_bytes / 100 * wal->options.compacted_from_percent;
    if (wal->allocated_bytes <= from)
        return NULL;
    for (int pass = 0; pass < (wal_is_under_pressure(wal) ? 2 : 1); pass++) {
        *out_passes_holds = pass > 0;
        for (size_t i = 0; i < wal->segment_count && !segment_is_open_ended(wal, wal->segments[i]);
             i++)
            if (is_candidate(wal, wal->segments[i], pass > 0))
                return wal->segments[i];
    }
    return NULL;
}

/* ---- what stays of it ---- */

static bool range_add(struct leavings *leavings, uint32_t group, uint64_t first, uint64_t last)
{
    if (!grow((void **)&leavings->ranges, &leavings->range_capacity, leavings->range_count,
              sizeof *leavings->ranges))
        return false;
    leavings->ranges[leavings->range_count++] = (struct seq_range){group, first, last};
    return true;
}

static bool floors_add(struct compaction *c)
{
    struct leavings *leavings = &c->leavings;
    for (size_t i = 0; i < c->segment->table_count; i++) {
        const struct segment_table *row = &c->segment->tables[i];
        if (c->is_live[i] || row->entries == 0)
            continue;
        if (!grow((void **)&leavings->floors, &leavings->floor_capacity, leavings->floor_count,
                  sizeof *leavings->floors))
            return false;
        leavings->floors[leavings->floor_count++] =
            (struct floor_row){row->table_id, row->group, row->last_seq};
    }
    return true;
}

/* Tables, starts and voids are few, and tell of more than rows. */
static bool stays(const struct compaction *c, const struct run *run, uint32_t index)
{
    const struct index_entry *entry = &run->entries[index];
    if (entry->type != WAL_DATA)
        return entry->type != WAL_PRODUCERS && entry->type != ENTRY_LOST;
    const struct segment_table *row = segment_table_find(c->segment, run->group, entry->table_id);
    return c->is_live[row - c->segment->tables];
}

static bool left_add(struct compaction *c, const struct run *from, uint32_t index, struct run *to)
{
    const struct index_entry *entry = &from->entries[index];
    uint64_t seq = run_seq(from, index);
    if (to->count == 0)
        to->first_seq = seq;
    to->steps[to->count] = (uint32_t)(seq - to->first_seq);
    to->entries[to->count] = *entry;
    to->entries[to->count].next = 0;
    c->kept[c->kept_count++] = entry->at;
    c->left->entry_count++;
    if (entry->type == WAL_DATA) {
        const struct segment_table *was =
            segment_table_find(c->segment, from->group, entry->table_id);
        struct segment_table *row = segment_table_get(c->left, from->group, entry->table_id);
        if (!row)
            return false;
        row->time_min_us = was->time_min_us;
        row->time_max_us = was->time_max_us;
        segment_table_count(row, to, seq, entry->rows, entry->payload_bytes);
    }
    to->count++;
    return true;
}

/* NULL: out of memory. */
static struct run *left_run(struct compaction *c, uint32_t group, uint32_t count)
{
    struct run *run = segment_run_get(c->left, group);
    if (!run)
        return NULL;
    run->entries = mem_alloc_zero(count, sizeof *run->entries);
    run->steps = mem_alloc_zero(count, sizeof *run->steps);
    run->capacity = count;
    return run->entries && run->steps ? run : NULL;
}

static bool run_divide(struct compaction *c, const struct run *from)
{
    uint64_t next = from->first_seq;
    uint32_t count = 0;
    for (uint32_t i = 0; i < from->count; i++)
        count += stays(c, from, i);
    if (count == from->count && from->steps) /* its holes are known */
        next = UINT64_MAX;
    struct run *to = count ? left_run(c, from->group, count) : NULL;
    if (count && !to)
        return false;
    for (uint32_t i = 0; i < from->count; i++) {
        uint64_t seq = run_seq(from, i);
        if (!stays(c, from, i))
            continue;
        if (!left_add(c, from, i, to) ||
            (seq > next && !range_add(&c->leavings, from->group, next, seq - 1)))
            return false;
        next = next == UINT64_MAX ? next : seq + 1;
    }
    return next >= run_end(from) || range_add(&c->leavings, from->group, next, run_end(from) - 1);
}

static int by_place(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static bool divide(struct compaction *c)
{
    struct segment *segment = c->segment;
    size_t count = 0;
    for (size_t r = 0; r < segment->run_count; r++)
        count += segment->runs[r]->count;
    c->left = segment_create(segment->identity.id);
    c->is_live = mem_alloc_zero(segment->table_count + 1, sizeof *c->is_live);
    c->kept = mem_alloc_zero(count + 1, sizeof *c->kept);
    if (!c->left || !c->is_live || !c->kept)
        return false;
    c->left->identity = segment->identity;
    c->left->created_wall_ns = segment->created_wall_ns;
    c->left->term = segment->term;
    c->left->is_cut = segment->is_cut;
    c->left->is_compacted = true;
    c->left->entry_count = segment->void_count;
    env_lock(c->wal->lock);
    for (size_t i = 0; i < segment->table_count; i++)
        c->is_live[i] = row_is_live(c->wal, &segment->tables[i], false);
    env_unlock(c->wal->lock);
    for (size_t r = 0; r < segment->run_count; r++)
        if (segment->runs[r]->count > 0 && !run_divide(c, segment->runs[r]))
            return false;
    qsort(c->kept, c->kept_count, sizeof *c->kept, by_place);
    segment_trim(c->left);
    return floors_add(c);
}

/* ---- its bytes ---- */

/* Whatever keeps it from being read: the segment stays as it is. */
static enum status read_at(struct compaction *c, uint64_t offset, uint64_t bytes, struct buf *out,
                           struct error *err)
{
    size_t got = 0;
    buf_clear(out);
    uint8_t *to = buf_extend(out, (size_t)bytes);
    TRY(buf_status(out, "log: compaction", err));
    if (env_read(c->from, offset, to, (size_t)bytes, &got, err) != STATUS_OK || got < bytes)
        return error_set(err, STATUS_CORRUPT, "log: compaction: segment %llu at %llu",
                         (unsigned long long)c->segment->identity.id, (unsigned long long)offset);
    return STATUS_OK;
}

static enum status put_at(struct compaction *c, uint64_t offset, const uint8_t *data,
                          uint64_t bytes, struct error *err)
{
    uint64_t first = offset / WAL_BLOCK, end = align_up(offset + bytes, WAL_BLOCK) / WAL_BLOCK;
    first = first < c->block_next ? c->block_next : first;
    if (end > first) {
        c->blocks += end - first;
        c->block_next = end;
    }
    if (c->blocks > c->blocks_max)
        return error_set(err, STATUS_LIMIT, "log: compaction: too much is live");
    return env_write(c->to, offset, data, (size_t)bytes, err);
}

static enum status header_copy(struct compaction *c, uint64_t *out_bytes, struct error *err)
{
    struct segment_header header = {0};
    uint64_t id = c->segment->identity.id;
    TRY(read_at(c, 0, WAL_BLOCK, &c->head, err));
    enum status status =
        segment_header_decode(span_of(c->head.data, c->head.length), id, &header, err);
    if (status == STATUS_TORN_TAIL && header.header_bytes <= c->segment->data_end) {
        TRY(read_at(c, 0, header.header_bytes, &c->head, err));
        status = segment_header_decode(span_of(c->head.data, c->head.length), id, &header, err);
    }
    if (status != STATUS_OK)
        return err->status = STATUS_CORRUPT;
    *out_bytes = header.header_bytes;
    return put_at(c, 0, c->head.data, header.header_bytes, err);
}

static bool is_kept(const struct compaction *c, uint64_t unit_offset, const struct unit_row *row)
{
    uint32_t at = (uint32_t)((unit_offset + row->offset) / WAL_ALIGN);
    return bsearch(&at, c->kept, c->kept_count, sizeof *c->kept, by_place);
}

/* What is no entry of a group stays as well: schemas, voids. */
static bool row_stays(const struct compaction *c, uint64_t unit_offset, const struct unit_row *row)
{
    return is_kept(c, unit_offset, row) || (row->type != WAL_DATA && row->type != WAL_PRODUCERS);
}

static enum status record_copy(struct compaction *c, uint64_t offset, const struct unit_row *row,
                               struct error *err)
{
    struct record record;
    uint64_t payload_at = align_up(row->header_bytes, WAL_ALIGN);
    TRY(read_at(c, offset, record_bytes(row->header_bytes, row->payload_bytes), &c->record, err));
    TRY(record_decode(span_of(c->record.data, row->header_bytes),
                      segment_seed(&c->segment->identity), &record, err));
    if (record.payload_bytes != row->payload_bytes ||
        !sum_holds(record.payload_crc, crc32c(0, c->record.data + payload_at, row->payload_bytes)))
        return error_set(err, STATUS_CORRUPT, "payload: checksum");
    return put_at(c, offset, c->record.data, c->record.length, err);
}

/* The unit at c->head: its header with the rows that stay, and those. */
static enum status unit_copy(struct compaction *c, uint64_t offset, struct unit_header header,
                             struct error *err)
{
    struct unit_row row;
    uint32_t count = header.record_count, used = 0;
    header.record_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        unit_row_decode(c->head.data, i, &row);
        header.record_count += row_stays(c, offset, &row);
    }
    if (header.record_count == 0)
        return STATUS_OK;
    buf_clear(&c->made);
    size_t bytes = (size_t)unit_head_bytes(header.record_count);
    uint8_t *made = buf_extend(&c->made, bytes);
    if (!made)
        return no_memory(err);
    memset(made, 0, bytes);
    for (uint32_t i = 0; i < count; i++) {
        unit_row_decode(c->head.data, i, &row);
        if (row_stays(c, offset, &row))
            unit_row_encode(made, used++, &row);
    }
    unit_header_encode(made, &header, segment_seed(&c->segment->identity));
    TRY(put_at(c, offset, made, bytes, err));
    for (uint32_t i = 0; i < used; i++) {
        unit_row_decode(c->made.data, i, &row);
        TRY(record_copy(c, offset + row.offset, &row, err));
        c->found += is_kept(c, offset, &row);
    }
    return STATUS_OK;
}

/* Is there a unit? Its header and list are in c->head then. */
static enum status unit_find(struct compaction *c, uint64_t offset, struct unit_header *out_header,
                             bool *out_is_there, struct error *err)
{
    uint64_t left = c->segment->data_end - offset;
    const struct segment_identity *identity = &c->segment->identity;
    TRY(read_at(c, offset, WAL_BLOCK, &c->head, err));
    enum status status =
        unit_header_decode(span_of(c->head.data, WAL_BLOCK), identity, true, out_header);
    if (status == STATUS_TORN_TAIL && unit_head_bytes(out_header->record_count) <= left) {
        TRY(read_at(c, offset, unit_head_bytes(out_header->record_count), &c->head, err));
        status =
            unit_header_decode(span_of(c->head.data, c->head.length), identity, true, out_header);
    }
    *out_is_there = status == STATUS_OK && out_header->unit_bytes <= left &&
                    unit_rows_are_sound(c->head.data, out_header);
    return STATUS_OK;
}

static enum status units_copy(struct compaction *c, uint64_t offset, struct error *err)
{
    while (offset < c->segment->data_end) {
        struct unit_header header = {0};
        bool is_there;
        TRY(unit_find(c, offset, &header, &is_there, err));
        if (is_there)
            TRY(unit_copy(c, offset, header, err));
        offset += is_there ? header.unit_bytes : WAL_BLOCK; /* or a hole */
    }
    if (c->found != c->kept_count)
        return error_set(err, STATUS_CORRUPT, "log: compaction: %zu of %zu entries are there",
                         c->found, c->kept_count);
    return STATUS_OK;
}

/* In the place of the old one, and as long. */
static enum status footer_copy(struct compaction *c, struct error *err)
{
    struct segment *segment = c->segment, *left = c->left;
    struct segment_identity identity;
    uint64_t number, unit_offset, unit_bytes, bytes = segment->file_bytes - segment->data_end;
    TRY(read_at(c, segment->data_end, bytes, &c->head, err));
    TRY(segment_trailer_decode(c->head.data + bytes - FOOTER_TRAILER_BYTES, segment->identity.id,
                               &identity, &unit_offset, &unit_bytes, err));
    TRY(footer_decode_ends(left, span_of(c->head.data, (size_t)bytes), &number, err));
    buf_clear(&c->made);
    if (!buf_reserve(&c->made, (size_t)bytes))
        return no_memory(err);
    env_lock(c->wal->lock);
    left->voids = segment->voids; /* borrowed, for the footer */
    left->void_count = segment->void_count;
    left->schemas = segment->schemas;
    left->schema_count = segment->schema_count;
    footer_encode(c->wal, left, segment->data_end, number, segment->sealed_wall_ns, bytes,
                  &c->made);
    left->voids = NULL;
    left->schemas = NULL;
    left->void_count = left->schema_count = 0;
    env_unlock(c->wal->lock);
    TRY(buf_status(&c->made, "log: footer", err));
    if (c->made.length != bytes)
        return error_set(err, STATUS_LIMIT, "log: compaction: the footer has no place");
    uint64_t used = bytes - FOOTER_TRAILER_BYTES;
    while (used > 0 && c->made.data[used - 1] == 0)
        used--;
    TRY(put_at(c, segment->data_end, c->made.data, used, err));
    return put_at(c, segment->file_bytes - FOOTER_TRAILER_BYTES,
                  c->made.data + bytes - FOOTER_TRAILER_BYTES, FOOTER_TRAILER_BYTES, err);
}

static void new_path(const struct compaction *c, char out[PATH_BYTES_MAX])
{
    wal_path(c->wal, out, "sealed", "%016llx.seg.new", c->segment->identity.id);
}

/* The new file, whole and synced, and counted. */
static enum status file_make(struct compaction *c, struct error *err)
{
    char path[PATH_BYTES_MAX];
    struct env_stat stat = {0};
    struct segment *segment = c->segment;
    uint64_t header_bytes;
    new_path(c, path);
    c->blocks_max =
        segment->allocated_bytes / 100 * c->wal->options.compacted_below_percent / WAL_BLOCK;
    if (segment_open_for_reading(c->wal, segment, &c->from, err) != STATUS_OK)
        return err->status = STATUS_CORRUPT;
    TRY(env_open(c->wal->env, path, ENV_READ | ENV_WRITE | ENV_CREATE | ENV_TRUNCATE, &c->to, err));
    TRY(env_truncate(c->to, segment->file_bytes, err));
    TRY(header_copy(c, &header_bytes, err));
    TRY(units_copy(c, header_bytes, err));
    TRY(footer_copy(c, err));
    TRY(env_sync(c->to, err));
    TRY(env_file_stat(c->to, &stat, err));
    c->allocated_bytes = stat.allocated_bytes;
    env_lock(c->wal->lock);
    c->wal->allocated_bytes += stat.allocated_bytes;
    env_unlock(c->wal->lock);
    return STATUS_OK;
}

/* What cannot be removed goes with the next start, and is counted until then. */
static void file_drop(struct compaction *c)
{
    char path[PATH_BYTES_MAX];
    struct error ignored;
    new_path(c, path);
    if (env_remove(c->wal->env, path, &ignored) != STATUS_OK)
        return;
    env_lock(c->wal->lock);
    c->wal->allocated_bytes -= c->allocated_bytes;
    env_unlock(c->wal->lock);
}

/* ---- the decision ---- */

/* Does somebody want what goes after all? Lock held. */
static bool is_wanted(const struct compaction *c)
{
    const struct wal *wal = c->wal;
    for (size_t i = 0; i < c->leavings.floor_count; i++) {
        const struct floor_row *floor = &c->leavings.floors[i];
        if (leases_held_from(wal, floor->group, floor->table_id) < floor->seq)
            return true;
    }
    return c->segment->files > 0 || segment_is_evidence(wal, c->segment) ||
           scans_need_leavings(wal, &c->leavings);
}

/* In memory first, so that nothing can fail once it is synced. Lock held; false: out of memory. */
static bool floors_raise(struct wal *wal, const struct leavings *leavings)
{
    for (size_t i = 0; i < leavings->range_count; i++) {
        const struct seq_range *range = &leavings->ranges[i];
        if (!reclaimed_add(wal, range->group, range->first, range->last))
            return false;
    }
    for (size_t i = 0; i < leavings->floor_count; i++) {
        const struct floor_row *floor = &leavings->floors[i];
        if (!floor_raise(wal, floor->table_id, floor->group, floor->seq))
            return false;
    }
    return true;
}

static enum status decide(struct compaction *c, bool *out_is_decided, struct error *err)
{
    env_lock(c->wal->lock);
    bool is_free = !is_wanted(c);
    bool is_raised = is_free && floors_raise(c->wal, &c->leavings);
    if (is_raised) {
        index_segment_reduce(c->wal, c->segment, c->left);
        c->segment->compacted_version = ++c->wal->state_version;
    }
    env_unlock(c->wal->lock);
    *out_is_decided = is_raised;
    return is_free && !is_raised ? no_memory(err) : STATUS_OK;
}

enum status compact_save(struct wal *wal, struct segment *segment, struct error *err)
{
    if (!segment->is_unsaved)
        return STATUS_OK;
    TRY(state_checkpoint(wal, err));
    TRY(state_checkpoint(wal, err));
    segment->is_unsaved = false;
    return STATUS_OK;
}

static enum status save(struct compaction *c, struct error *err)
{
    struct segment *segment = c->segment;
    if (segment->is_unsaved)
        return compact_save(c->wal, segment, err);
    segment->is_unsaved = true;
    TRY(state_put_compact(c->wal, &c->leavings, err));
    segment->is_unsaved = false;
    return STATUS_OK;
}

static enum status file_replace(struct compaction *c, struct error *err)
{
    char from[PATH_BYTES_MAX], to[PATH_BYTES_MAX], dir[PATH_BYTES_MAX];
    struct wal *wal = c->wal;
    struct segment *segment = c->segment;
    new_path(c, from);
    wal_segment_path(wal, segment->identity.id, SEGMENT_SEALED, to);
    path_parent(dir, to);
    TRY(env_rename(wal->env, from, to, err));
    if (env_dir_sync(wal->env, dir, err) != STATUS_OK)
        return err->status = STATUS_IO; /* which of the two is there is unknown */
    env_lock(wal->lock);
    uint64_t less = segment->allocated_bytes - c->allocated_bytes;
    wal->allocated_bytes -= segment->allocated_bytes;
    segment->allocated_bytes = c->allocated_bytes;
    wal->counters.segments_compacted++;
    wal_rate_add(&wal->drain_rate, less, env_mono_ns(wal->env));
    env_unlock(wal->lock);
    return STATUS_OK;
}

/* ---- one segment ---- */

static void compaction_deinit(struct compaction *c)
{
    env_close(c->from);
    env_close(c->to);
    segment_destroy(c->left);
    mem_free(c->is_live);
    mem_free(c->kept);
    mem_free(c->leavings.ranges);
    mem_free(c->leavings.floors);
    buf_deinit(&c->head);
    buf_deinit(&c->made);
    buf_deinit(&c->record);
}

static enum status compact(struct compaction *c, bool *out_is_done, struct error *err)
{
    bool is_decided = false;
    if (!divide(c))
        return no_memory(err);
    env_lock(c->wal->lock);
    bool is_in_vain = is_wanted(c); /* so far; the decision comes when the file is there */
    env_unlock(c->wal->lock);
    if (is_in_vain)
        return STATUS_OK;
    while (c->segment->identity.id > c->wal->covers_before)
        TRY(state_checkpoint(c->wal, err));
    enum status status = file_make(c, err);
    if (status == STATUS_OK)
        status = decide(c, &is_decided, err);
    if (status == STATUS_OK && is_decided)
        status = save(c, err);
    if (status == STATUS_OK && is_decided)
        status = file_replace(c, err);
    *out_is_done = status == STATUS_OK && is_decided;
    if (c->to && !*out_is_done && status != STATUS_IO)
        file_drop(c);
    return status;
}

enum status compact_next(struct wal *wal, bool *out_is_done, struct error *err)
{
    bool passes_holds = false;
    env_lock(wal->lock);
    struct compaction c = {.wal = wal, .segment = next_candidate(wal, &passes_holds)};
    uint64_t live = c.segment ? live_bytes(wal, c.segment, passes_holds, UINT64_MAX) : 0;
    env_unlock(wal->lock);
    if (!c.segment)
        return STATUS_OK;
    enum status status = passes_holds ? leases_release(wal, c.segment, true, err) : STATUS_OK;
    if (status == STATUS_OK)
        status = compact(&c, out_is_done, err);
    bool is_vain = status == STATUS_CORRUPT || status == STATUS_LIMIT;
    *out_is_done |= is_vain;
    if (*out_is_done)
        c.segment->tried = live + 1;
    compaction_deinit(&c);
    return is_vain || status == STATUS_NO_SPACE ? STATUS_OK : status; /* later again */
}
