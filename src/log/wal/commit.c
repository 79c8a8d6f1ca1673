/* SPDX-License-Identifier: Apache-2.0
 *
 * Logs in which what is synced need not count yet. A group's entries are on the disk, in the index
 * and in footers as ever; readers, checkpoints, the mirror and retention end at `committed_seq`,
 * and what entries say of producers and tables is applied when that passes them. So taking a suffix
 * back has nothing to roll back: it is cut out of the index, and a TRUNCATE record at the head of a
 * new segment says so.
 *
 * Footers of older segments still have what was taken back. A start therefore takes segments in
 * order and cuts where a segment's own record, its footer or the checkpoint says that a group went
 * on at a lower place: the first two are lost with the segment, which may be reclaimed before an
 * older one that somebody holds, and the third is in both checkpoints by then.
 */
#include "log/wal/recover_internal.h"

/* ---- truncations ---- */

bool truncation_add(struct wal *wal, const struct truncation *truncation)
{
    for (size_t i = 0; i < wal->truncation_count; i++) {
        const struct truncation *old = &wal->truncations[i];
        if (old->group == truncation->group && old->segment == truncation->segment &&
            old->after == truncation->after)
            return true;
    }
    if (!grow((void **)&wal->truncations, &wal->truncation_capacity, wal->truncation_count,
              sizeof *wal->truncations))
        return false;
    size_t at = wal->truncation_count++;
    for (; at > 0 && wal->truncations[at - 1].segment > truncation->segment; at--)
        wal->truncations[at] = wal->truncations[at - 1];
    wal->truncations[at] = *truncation;
    return true;
}

/* Is there still a segment from before it, or its own? */
static bool is_wanted(const struct wal *wal, const struct truncation *truncation)
{
    return wal->segment_count > 0 && wal->segments[0]->identity.id <= truncation->segment;
}

static void prune(struct wal *wal)
{
    size_t kept = 0;
    for (size_t i = 0; i < wal->truncation_count; i++)
        if (is_wanted(wal, &wal->truncations[i]))
            wal->truncations[kept++] = wal->truncations[i];
    wal->truncation_count = kept;
}

uint32_t truncations_put(const struct wal *wal, uint64_t segment_id, struct buf *out)
{
    uint32_t count = 0;
    for (size_t i = 0; i < wal->truncation_count; i++) {
        const struct truncation *row = &wal->truncations[i];
        if (row->segment != segment_id)
            continue;
        count++;
        if (!out)
            continue;
        buf_put_le32(out, row->group);
        buf_put_le64(out, row->after);
        buf_put_le64(out, row->chain);
        buf_put_le64(out, row->term);
    }
    return count;
}

/* A header tells where groups stood before its segment: those places are gone. */
static void chains_cut(struct segment *segment, uint32_t group, uint64_t after)
{
    for (uint32_t i = 0; segment && i < segment->chain_count; i++)
        if (segment->chains[i].group == group && segment->chains[i].last_seq > after)
            segment->chains[i].last_seq = 0;
}

static void voids_cut(struct wal *wal, uint32_t group, uint64_t after)
{
    size_t kept = wal->void_base;
    for (size_t i = kept; i < wal->void_count; i++) {
        struct void_range range = wal->voids[i];
        if (range.group == group && range.first > after)
            continue;
        if (range.group == group && range.last > after) {
            range.last = after;
            range.chain = 0;
        }
        wal->voids[kept++] = range;
    }
    wal->void_count = kept;
}

/* Lock held, or a start. */
static void take_effect(struct wal *wal, struct truncation *row, struct segment *loading)
{
    struct group *group = &wal->groups[row->group];
    row->is_applied = true;
    if (row->term > wal->term)
        wal->term = row->term;
    if (group->synced_seq <= row->after)
        return;
    index_cut(wal, row->group, row->after);
    for (size_t i = 0; i < wal->segment_count && wal->segments[i]->identity.id <= row->segment; i++)
        chains_cut(wal->segments[i], row->group, row->after);
    chains_cut(loading, row->group, row->after);
    voids_cut(wal, row->group, row->after);
    bool is_cleared = damage_clear(wal, row->group, row->after + 1, UINT64_MAX);
    UNUSED(is_cleared); /* only a range that goes on above would need memory */
    group->synced_seq = row->after;
    group->synced_chain = row->chain;
    group->term = row->term;
}

void truncations_apply(struct wal *wal, uint64_t segment_id, struct segment *loading)
{
    for (size_t i = 0; i < wal->truncation_count; i++)
        if (!wal->truncations[i].is_applied && wal->truncations[i].segment <= segment_id)
            take_effect(wal, &wal->truncations[i], loading);
}

/* ---- checkpoints ---- */

void commits_encode(const struct wal *wal, struct buf *out)
{
    uint32_t count = 0;
    for (size_t i = 0; i < wal->truncation_count; i++)
        count += is_wanted(wal, &wal->truncations[i]);
    buf_put_byte(out, wal->needs_commit);
    buf_put_le32(out, count);
    for (size_t i = 0; i < wal->truncation_count; i++) {
        const struct truncation *row = &wal->truncations[i];
        if (!is_wanted(wal, row))
            continue;
        buf_put_le32(out, row->group);
        buf_put_le64(out, row->after);
        buf_put_le64(out, row->chain);
        buf_put_le64(out, row->term);
        buf_put_le64(out, row->segment);
    }
}

enum status commits_decode(struct wal *wal, struct cursor *cursor, struct error *err)
{
    wal->needs_commit = cursor_get_byte(cursor) != 0;
    uint32_t count = cursor_get_le32(cursor);
    if (cursor->failed || count > cursor_left(cursor) / 36)
        return error_set(err, STATUS_CORRUPT, "checkpoint: truncations");
    for (uint32_t i = 0; i < count; i++) {
        struct truncation row = {.group = cursor_get_le32(cursor)};
        row.after = cursor_get_le64(cursor);
        row.chain = cursor_get_le64(cursor);
        row.term = cursor_get_le64(cursor);
        row.segment = cursor_get_le64(cursor);
        if (row.group >= wal->group_count)
            return error_set(err, STATUS_CORRUPT, "checkpoint: truncation of group %u", row.group);
        if (!truncation_add(wal, &row))
            return recover_no_memory(err);
    }
    return STATUS_OK;
}

/* ---- a start ---- */

/* Nothing is acknowledged, by a table or a consumer, before it counts. */
void commits_begin(struct wal *wal)
{
    wal->void_base = wal->void_count;
    for (uint32_t g = 0; g < wal->group_count; g++) {
        struct group *group = &wal->groups[g];
        group->committed_seq = group->known_seq = group->state_seq;
        group->committed_chain = group->state_chain;
        for (size_t t = 0; t < wal->table_count; t++) {
            const struct wal_ack *acks = wal->tables[t]->acks;
            if (acks && acks[g].through.seq > group->known_seq)
                group->known_seq = acks[g].through.seq;
        }
    }
    for (size_t i = 0; i < wal->lease_count; i++) {
        const struct lease_state *lease = &wal->leases[i]->state;
        for (uint32_t m = 0; m < lease->member_count; m++)
            if (lease->members[m].seq > wal->groups[lease->group].known_seq)
                wal->groups[lease->group].known_seq = lease->members[m].seq;
    }
}

/* ---- questions ---- */

bool segment_is_open_ended(const struct wal *wal, const struct segment *segment)
{
    for (size_t i = 0; wal->needs_commit && i < segment->run_count; i++) {
        const struct run *run = segment->runs[i];
        if (run->count > 0 && run_end(run) - 1 > wal->groups[run->group].committed_seq)
            return true;
    }
    return false;
}

struct wal_position wal_stored_end(struct wal *wal, uint32_t group)
{
    struct wal_position position = {0};
    if (group >= wal->group_count)
        return position;
    env_lock(wal->lock);
    position.seq = wal->groups[group].synced_seq;
    position.chain = wal->groups[group].synced_chain;
    env_unlock(wal->lock);
    return position;
}

/* The first entry of the group in (after, through] that says something of producers or tables, or
 * else that at `through`; false: neither is here. Lock held. */
static bool next_said(const struct wal *wal, uint32_t group, uint64_t after, uint64_t through,
                      const struct run **out_run, uint32_t *out_index)
{
    const struct group *of = &wal->groups[group];
    for (size_t at = runs_above(of, after); at < of->run_count; at++) {
        const struct run *run = of->runs[at];
        for (uint32_t i = run_above(run, after); i < run->count && run_seq(run, i) <= through;
             i++) {
            const struct index_entry *entry = &run->entries[i];
            if (entry->type != WAL_TABLE && !entry->has_producers && run_seq(run, i) < through)
                continue;
            *out_run = run;
            *out_index = i;
            return true;
        }
    }
    return false;
}

void commits_await_tables(struct wal *wal, const char *name)
{
    const struct group *group = &wal->groups[0];
    for (uint64_t after = group->committed_seq;
         after < group->synced_seq && !wal->is_stopping && !table_find(wal, name, strlen(name));) {
        const struct run *run;
        uint32_t index;
        if (!next_said(wal, 0, after, group->synced_seq, &run, &index))
            return;
        after = run_seq(run, index);
        if (run->entries[index].type != WAL_TABLE)
            continue;
        env_wait(wal->freed, wal->lock, UINT64_MAX);
        after = group->committed_seq;
    }
}

/* ---- one entry, from memory or file ---- */

struct loaded {
    struct segment *segment; /* pinned */
    uint32_t group;
    uint64_t seq;
    struct index_entry entry;
    struct unit_buffer *buffer;
    struct entry_bytes bytes;
    const uint8_t *data;
    struct record record;
};

static enum status load_bytes(struct wal *wal, struct loaded *loaded, struct error *err)
{
    struct env_file *file = NULL;
    bool with_payload = loaded->entry.type == WAL_TABLE;
    uint64_t offset = (uint64_t)loaded->entry.at * WAL_ALIGN;
    env_lock(wal->lock);
    loaded->buffer =
        unit_buffer_find(wal, loaded->segment->identity.id, offset,
                         record_bytes(loaded->entry.header_bytes, loaded->entry.payload_bytes));
    env_unlock(wal->lock);
    if (loaded->buffer) {
        loaded->data = loaded->buffer->data + (offset - loaded->buffer->offset);
        return entry_verify(loaded->segment, &loaded->entry, loaded->data, with_payload,
                            &loaded->record, err);
    }
    TRY(segment_open_for_reading(wal, loaded->segment, &file, err));
    enum status status = entry_read(loaded->segment, &loaded->entry, file, with_payload,
                                    &loaded->bytes, &loaded->record, err);
    loaded->data = loaded->bytes.data;
    env_close(file);
    return status;
}

/* Lock not held; the place was pinned under it. */
static enum status load(struct wal *wal, struct loaded *loaded, struct error *err)
{
    TRY(load_bytes(wal, loaded, err));
    if (loaded->record.group == loaded->group && loaded->record.seq == loaded->seq)
        return STATUS_OK;
    return error_set(err, STATUS_CORRUPT, "log: group %u seq %llu where %u/%llu should stand",
                     loaded->record.group, (unsigned long long)loaded->record.seq, loaded->group,
                     (unsigned long long)loaded->seq);
}

/* Lock held. */
static void unload(struct wal *wal, struct loaded *loaded)
{
    if (loaded->buffer)
        unit_buffer_release(wal, loaded->buffer);
    entry_bytes_deinit(&loaded->bytes);
    loaded->segment->pins--;
}

static struct loaded place_of(const struct run *run, uint32_t index)
{
    run->segment->pins++;
    return (struct loaded){.segment = run->segment,
                           .group = run->group,
                           .seq = run_seq(run, index),
                           .entry = run->entries[index]};
}

/* ---- committing ---- */

static void busy_acquire(struct wal *wal)
{
    while (wal->is_commit_busy)
        env_wait(wal->freed, wal->lock, UINT64_MAX);
    wal->is_commit_busy = true;
}

static void busy_release(struct wal *wal)
{
    wal->is_commit_busy = false;
    wal->ticket++;
    env_broadcast(wal->freed);
    env_broadcast(wal->moved);
}

/* The first entry that has something to say now says it. What cannot be read is named, and says
 * nothing. Lock held, but for I/O. */
static enum status commit_step(struct wal *wal, uint32_t group, uint64_t through, struct error *err)
{
    struct group *of = &wal->groups[group];
    const struct run *run;
    uint32_t index;
    uint64_t seq = through, chain = of->synced_chain;
    bool is_end = through == of->synced_seq, is_read = false;
    if (next_said(wal, group, of->committed_seq, through, &run, &index)) {
        seq = run_seq(run, index);
        struct loaded loaded = place_of(run, index);
        env_unlock(wal->lock);
        enum status status = load(wal, &loaded, err);
        env_lock(wal->lock);
        size_t header_bytes = (size_t)align_up(loaded.record.header_bytes, WAL_ALIGN);
        is_read = status == STATUS_OK;
        if (is_read) {
            chain = loaded.record.chain;
            status = recover_state_replay(
                wal, &loaded.record, span_of(loaded.data, loaded.record.header_bytes),
                span_of(loaded.data + header_bytes,
                        loaded.entry.type == WAL_TABLE ? loaded.entry.payload_bytes : 0),
                err);
        }
        unload(wal, &loaded);
        if (status == STATUS_CORRUPT &&
            damage_add(wal, group, seq, seq, "could not be read when it was committed"))
            status = STATUS_OK;
        TRY(status);
    }
    if (!is_read && (seq < through || !is_end)) { /* lost: what follows may tell it */
        env_unlock(wal->lock);
        if (chain_read(wal, group, seq, &chain, err) != STATUS_OK)
            chain = 0;
        env_lock(wal->lock);
    }
    of->committed_seq = seq;
    of->committed_chain = chain;
    return STATUS_OK;
}

static enum status group_check(const struct wal *wal, uint32_t group, struct error *err)
{
    if (group >= wal->group_count)
        return error_set(err, STATUS_INVALID, "log: group %u of %u", group, wal->group_count);
    if (!wal->needs_commit || wal->options.is_read_only)
        return error_set(err, STATUS_INVALID, "log: what is synced counts in this log");
    return STATUS_OK;
}

enum status wal_commit(struct wal *wal, uint32_t group, uint64_t seq, struct error *err)
{
    TRY(group_check(wal, group, err));
    enum status status = STATUS_OK;
    env_lock(wal->lock);
    busy_acquire(wal);
    const struct group *of = &wal->groups[group];
    if (seq > of->synced_seq)
        status = error_set(err, STATUS_CONFLICT, "log: group %u ends at %llu, before %llu", group,
                           (unsigned long long)of->synced_seq, (unsigned long long)seq);
    while (status == STATUS_OK && of->committed_seq < seq)
        status = commit_step(wal, group, seq, err);
    busy_release(wal);
    env_unlock(wal->lock);
    return status;
}

/* ---- the producers' numbers in what does not count: nobody else may use them ---- */

typedef bool (*numbers_fn)(struct wal *wal, const struct wal_contribution *contributions,
                           uint32_t count, void *context);

static enum status numbers_of(struct wal *wal, const struct loaded *loaded, numbers_fn each,
                              void *context, struct error *err)
{
    uint32_t count = loaded->record.contribution_count;
    struct wal_contribution *contributions = mem_alloc_zero(count, sizeof *contributions);
    if (!contributions)
        return recover_no_memory(err);
    enum status status = record_contributions(span_of(loaded->data, loaded->record.header_bytes),
                                              &loaded->record, contributions, err);
    if (status == STATUS_OK && !each(wal, contributions, count, context))
        status = recover_no_memory(err);
    mem_free(contributions);
    return status;
}

/* Those in (after, end]; false of `each`: out of memory. What cannot be read is passed over. */
static enum status numbers_each(struct wal *wal, uint32_t group, uint64_t after, uint64_t end,
                                numbers_fn each, void *context, struct error *err)
{
    enum status status = STATUS_OK;
    const struct run *run;
    uint32_t index;
    env_lock(wal->lock);
    while (status == STATUS_OK && after < end && next_said(wal, group, after, end, &run, &index)) {
        after = run_seq(run, index);
        if (!run->entries[index].has_producers)
            continue;
        struct loaded loaded = place_of(run, index);
        env_unlock(wal->lock);
        status = load(wal, &loaded, err);
        if (status == STATUS_OK)
            status = numbers_of(wal, &loaded, each, context, err);
        env_lock(wal->lock);
        unload(wal, &loaded);
        if (status == STATUS_CORRUPT)
            status = STATUS_OK;
    }
    env_unlock(wal->lock);
    return status;
}

struct claim {
    char producer[WAL_PRODUCER_ID_MAX];
    uint8_t length;
    uint64_t sequence;
};

struct claims {
    struct claim *items;
    size_t count, capacity;
};

static bool claims_add(struct wal *wal, const struct wal_contribution *contributions,
                       uint32_t count, void *context)
{
    struct claims *claims = context;
    UNUSED(wal);
    for (uint32_t i = 0; i < count; i++) {
        struct claim claim = {.length = contributions[i].producer_length,
                              .sequence = contributions[i].producer_sequence};
        if (claim.length == 0)
            continue;
        memcpy(claim.producer, contributions[i].producer, claim.length);
        if (!grow((void **)&claims->items, &claims->capacity, claims->count, sizeof claim))
            return false;
        claims->items[claims->count++] = claim;
    }
    return true;
}

static bool claims_take(struct wal *wal, const struct wal_contribution *contributions,
                        uint32_t count, void *context)
{
    UNUSED(context);
    env_lock(wal->lock);
    bool is_claimed = producers_claim(&wal->producers, contributions, count, wal_clock_ms(wal));
    env_unlock(wal->lock);
    return is_claimed;
}

/* What goes gives its numbers back; a producer may have one in what stays, too. Lock held. */
static void claims_settle(struct wal *wal, const struct claims *gone, const struct claims *kept)
{
    for (size_t i = 0; i < gone->count + kept->count; i++) {
        bool is_gone = i < gone->count;
        const struct claim *item = is_gone ? &gone->items[i] : &kept->items[i - gone->count];
        struct wal_contribution claim = {.producer = item->producer,
                                         .producer_length = item->length,
                                         .producer_sequence = item->sequence};
        if (is_gone)
            producers_release(&wal->producers, &claim, 1);
        else if (!producers_claim(&wal->producers, &claim, 1, wal_clock_ms(wal)))
            return; /* no memory for one that was there just now */
    }
}

static enum status settle(struct wal *wal, uint32_t group, struct error *err)
{
    struct group *of = &wal->groups[group];
    enum status status = STATUS_OK;
    env_lock(wal->lock);
    while (status == STATUS_OK && of->committed_seq < of->known_seq)
        status = commit_step(wal, group, of->known_seq, err);
    env_unlock(wal->lock);
    TRY(status);
    return numbers_each(wal, group, of->committed_seq, of->synced_seq, claims_take, NULL, err);
}

enum status commits_settle(struct wal *wal, struct error *err)
{
    wal->void_base = 0;
    for (uint32_t g = 0; g < wal->group_count; g++) {
        struct group *group = &wal->groups[g];
        if (wal->needs_commit) {
            TRY(settle(wal, g, err));
            continue;
        }
        group->committed_seq = group->synced_seq;
        group->committed_chain = group->synced_chain;
    }
    return STATUS_OK;
}

/* ---- truncating: the lead held ---- */

/* A segment that begins with the record, synced. */
static enum status record_write(struct wal *wal, const struct truncation *row, struct error *err)
{
    struct error cut;
    TRY(writer_seal(wal, err));
    TRY(writer_open_segment(wal, true, 0, err));
    struct record record = {.type = RECORD_TRUNCATE,
                            .log_id = wal->writer.segment->identity.log_id,
                            .group = row->group,
                            .term = row->term,
                            .range_last = row->after,
                            .chain = row->chain};
    enum status status = writer_put_block(wal, &record, err);
    if (status == STATUS_IO)
        wal_die(wal, err);
    if (status == STATUS_OK || !wal->writer.must_cut || writer_seal(wal, &cut) == STATUS_OK)
        return status;
    error_prefix(&cut, "log: a truncation could not be taken back");
    wal_die(wal, &cut); /* the next start tells whether it happened */
}

static enum status truncate_now(struct wal *wal, struct truncation *row, struct error *err)
{
    struct claims gone = {0}, kept = {0};
    struct group *group = &wal->groups[row->group];
    enum status status =
        numbers_each(wal, row->group, row->after, group->synced_seq, claims_add, &gone, err);
    if (status == STATUS_OK)
        status =
            numbers_each(wal, row->group, group->committed_seq, row->after, claims_add, &kept, err);
    if (status == STATUS_OK)
        status = record_write(wal, row, err);
    if (status != STATUS_OK)
        goto done;
    env_lock(wal->lock);
    wal->writer.segment->has_state = true;
    wal->writer.needs_floor = true;
    wal->writer.synced_ns = env_mono_ns(wal->env);
    env_signal(wal->work); /* for the floor (L9) */
    row->segment = wal->writer.segment->identity.id;
    prune(wal);
    CHECK(truncation_add(wal, row)); /* there was room */
    truncations_apply(wal, row->segment, NULL);
    group->seq = row->after;
    group->chain = row->chain;
    if (row->group == 0 && wal->table_pending > row->after)
        wal->table_pending = 0;
    claims_settle(wal, &gone, &kept);
    backlog_recount(wal);
    env_unlock(wal->lock);
done:
    mem_free(gone.items);
    mem_free(kept.items);
    return status;
}

/* Lock held. */
static enum status truncate_check(struct wal *wal, const struct truncation *row, struct error *err)
{
    const struct group *group = &wal->groups[row->group];
    if (row->after < group->committed_seq || row->after > group->synced_seq)
        return error_set(err, STATUS_CONFLICT,
                         "log: group %u counts up to %llu and ends at %llu: %llu", row->group,
                         (unsigned long long)group->committed_seq,
                         (unsigned long long)group->synced_seq, (unsigned long long)row->after);
    if (row->term <= wal->term)
        return error_set(err, STATUS_INVALID, "log: term %llu is not above %llu",
                         (unsigned long long)row->term, (unsigned long long)wal->term);
    if (!grow((void **)&wal->truncations, &wal->truncation_capacity, wal->truncation_count,
              sizeof *wal->truncations))
        return recover_no_memory(err);
    return STATUS_OK;
}

enum status wal_truncate(struct wal *wal, uint32_t group, uint64_t after, uint64_t term,
                         struct error *err)
{
    struct truncation row = {.group = group, .after = after, .term = term};
    TRY(group_check(wal, group, err));
    env_lock(wal->lock);
    wal_lead_acquire(wal);
    busy_acquire(wal);
    enum status status = truncate_check(wal, &row, err);
    bool is_end = after == wal->groups[group].synced_seq;
    env_unlock(wal->lock);
    if (status == STATUS_OK && !is_end)
        status = chain_read(wal, group, after, &row.chain, err);
    if (status == STATUS_OK && !is_end)
        status = truncate_now(wal, &row, err);
    env_lock(wal->lock);
    busy_release(wal);
    wal_lead_release(wal);
    env_unlock(wal->lock);
    return status;
}
