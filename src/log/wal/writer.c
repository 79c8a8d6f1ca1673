/* SPDX-License-Identifier: Apache-2.0
 *
 * Group commit. Whoever holds the lead takes what is queued into one write unit: headers are made
 * in the order of the queue, payloads copied once into an aligned buffer, one write, one sync, then
 * completions in order (L6-L8). Nothing here runs twice at a time.
 *
 * Order of one unit:
 *   1. room: seal and open the next segment if the unit does not fit (L16)
 *   2. take submissions, assign (seq, term, chain), encode
 *   3. write               - NO_SPACE: tails go back, the segment is cut, then the batch is refused
 *   4. complete WAL_WRITTEN
 *   5. sync                - a failure ends the process (L24); where the file system lets us, 3
 *                            and 5 are one direct write, unless 4 has something to do
 *   6. index, producers, tables, synced ends: readers see the entries from here (L23)
 *   7. the lead is given on; WAL_SYNCED is completed beside the next unit, in order all the same
 */
#include <limits.h>

#include "log/wal/writer_internal.h"

void writer_complete(struct wal *wal, struct wal_submission *submission, enum status status,
                     const struct error *err)
{
    struct waiter *waiter = (struct waiter *)(uintptr_t)submission->engine_private[WORD_WAITER];
    if (status != STATUS_OK) {
        env_lock(wal->lock);
        for (uint32_t i = 0; i < submission->entry_count; i++)
            producers_release(&wal->producers, submission->entries[i].contributions,
                              submission->entries[i].contribution_count);
        backlog_give_back(wal, submission);
        env_unlock(wal->lock);
    }
    if (submission->done)
        submission->done(submission, status, err);
    if (!waiter)
        return;
    struct env_cond *cond = waiter->cond; /* of the pool: there whoever has the waiter by then */
    env_lock(waiter->lock);
    waiter->status = status;
    if (status != STATUS_OK)
        waiter->err = *err;
    waiter->is_done = true;
    env_unlock(waiter->lock);
    env_signal(cond);
}

/* ---- room ---- */

static bool fits(const struct writer *writer, const struct batch *batch)
{
    return writer->segment && writer->offset + unit_bytes_for(batch) + writer->footer_bytes +
                                      batch->footer_bytes + FOOTER_BYTES_LEAST <=
                                  writer->segment->file_bytes;
}

void writer_room_publish(struct wal *wal)
{
    const struct writer *writer = &wal->writer;
    uint64_t used = writer->offset + writer->footer_bytes + FOOTER_BYTES_LEAST;
    wal->room_left = writer->segment && !writer->must_cut && writer->segment->file_bytes > used
                         ? writer->segment->file_bytes - used
                         : 0;
}

/* Makes sure that a batch of this size can be written. Lock not held. */
static enum status room_make(struct wal *wal, const struct batch *batch, bool is_control,
                             struct error *err)
{
    struct writer *writer = &wal->writer;
    if (!writer->must_cut && fits(writer, batch))
        return STATUS_OK;
    int64_t now = env_mono_ns(wal->env);
    if (!is_control && now < writer->retry_ns)
        return error_set(err, STATUS_NO_SPACE, "log: no room for a new segment");
    enum status status = STATUS_OK;
    if (writer->segment)
        status = writer_seal(wal, err);
    if (status == STATUS_OK)
        status =
            writer_open_segment(wal, is_control, unit_bytes_for(batch) + batch->footer_bytes, err);
    if (status != STATUS_OK)
        writer->retry_ns = now + (int64_t)WAL_BACK_OFF_MS * 1000000;
    env_lock(wal->lock);
    wal->no_room_until_ns = status == STATUS_NO_SPACE ? writer->retry_ns : 0;
    writer_room_publish(wal);
    env_unlock(wal->lock);
    return status;
}

/* ---- completion ---- */

static void complete_all(struct wal *wal, struct wal_submission *head, enum status status,
                         const struct error *err)
{
    while (head) {
        struct wal_submission *next = head->next; /* gone once it is done */
        writer_complete(wal, head, status, err);
        head = next;
    }
}

void writer_completions_run(struct wal *wal, unsigned rounds)
{
    if (wal->is_completing)
        return;
    wal->is_completing = true;
    while (wal->finished_head && rounds-- > 0) {
        struct wal_submission *head = wal->finished_head;
        wal->finished_head = wal->finished_tail = NULL;
        env_unlock(wal->lock);
        complete_all(wal, head, STATUS_OK, NULL);
        env_lock(wal->lock);
    }
    wal->is_completing = false;
    if (wal->finished_head)
        env_signal(wal->work);
    if (wal->settle_waiting)
        env_broadcast(wal->freed);
}

/* Waits until everything synced before is completed. Lock held. */
static void completions_settle(struct wal *wal)
{
    wal->settle_waiting++;
    while (wal->is_completing || wal->finished_head) {
        if (wal->is_completing)
            env_wait(wal->freed, wal->lock, UINT64_MAX);
        else
            writer_completions_run(wal, UINT_MAX);
    }
    wal->settle_waiting--;
}

/* A batch that failed, behind all that went well before it. */
static void batch_fail(struct wal *wal, struct batch *batch, enum status status,
                       const struct error *err)
{
    env_lock(wal->lock);
    completions_settle(wal);
    env_unlock(wal->lock);
    complete_all(wal, batch->head, status, err);
}

/* Completes what asked for no more than the write; the rest stays in the batch. */
static void complete_written(struct wal *wal, struct batch *batch)
{
    struct wal_submission *head = batch->head, **keep = &batch->head;
    while (head) {
        struct wal_submission *next = head->next;
        if (head->durability == WAL_WRITTEN) {
            writer_complete(wal, head, STATUS_OK, NULL);
        } else {
            *keep = head;
            keep = &head->next;
        }
        head = next;
    }
    *keep = NULL;
}

/* Makes one synced record visible. Lock held; cannot fail. */
static void apply_record(struct wal *wal, const struct written *written, const uint8_t *unit,
                         struct wal_contribution *contributions, int64_t wall_ns)
{
    const struct record *record = &written->record;
    struct writer *writer = &wal->writer;
    struct group *group = &wal->groups[record->group];
    index_add(wal, writer->segment, record, writer->offset + written->offset, wall_ns);
    if (record->type == WAL_VOID) {
        /* Out of memory: the range stays named as damaged, and the repair says so. */
        bool is_applied = void_add(wal, &written->control->range) &&
                          damage_clear(wal, record->group, record->seq, record->range_last);
        UNUSED(is_applied);
        return;
    }
    group->synced_seq = record->seq;
    group->synced_chain = record->chain;
    backlog_store(wal, record);
    if (wal->needs_commit) { /* what it says of producers and tables holds from then on */
        if (record->type == WAL_TABLE)
            wal->table_pending = record->seq;
        return;
    }
    group->committed_seq = record->seq;
    group->committed_chain = record->chain;
    if (record->type == WAL_TABLE && table_add(wal, written->control->table))
        written->control->table = NULL; /* taken */
    if (record->contribution_count == 0)
        return;
    struct error err;
    struct span header = span_of(unit + written->offset, record->header_bytes);
    /* From the unit, not from the submitter: his memory went back when the write was done. */
    CHECK(record_contributions(header, record, contributions, &err) == STATUS_OK);
    bool is_applied = producers_apply(&wal->producers, record, contributions, wal_clock_ms(wal));
    UNUSED(is_applied); /* who writes a number claimed it first, and the claim holds the place */
}

static void apply_unit(struct wal *wal, struct draft *draft)
{
    static _Thread_local struct wal_contribution contributions[WAL_CONTRIBUTIONS_MAX];
    struct writer *writer = &wal->writer;
    struct unit_buffer *buffer = draft->buffer;
    int64_t wall_ns = env_wall_ns(wal->env);
    env_lock(wal->lock);
    for (size_t i = 0; i < draft->schema_count; i++)
        writer->segment->schemas[writer->segment->schema_count++] = draft->schemas[i];
    for (size_t i = 0; i < draft->written_count; i++) {
        const struct written *written = &draft->written[i];
        if (written->record.type == RECORD_SCHEMA)
            continue;
        apply_record(wal, written, buffer->data, contributions, wall_ns);
        wal->counters.payload_bytes_written += written->record.payload_bytes;
        wal->counters.entries_written++;
    }
    wal->synced_unit = writer->floor;
    wal->counters.bytes_written += buffer->length;
    wal->counters.units_written++;
    wal->counters.syncs++;
    wal_rate_add(&wal->write_rate, buffer->length, writer->synced_ns);
    writer->offset += buffer->length;
    wal->synced_bytes = writer->offset;
    writer->footer_bytes += draft->batch.footer_bytes;
    writer->is_writing = false;
    unit_buffer_publish(wal, buffer);
    writer_room_publish(wal);
    wal->ticket++;
    env_broadcast(wal->moved);
    env_unlock(wal->lock);
    draft_clear(draft);
}

/* ---- one unit ---- */

/* A sync over blocks that were only reserved journals them, which costs as much again as the sync.
 * Small units therefore find their blocks written: zeros go out a few MiB ahead and are synced with
 * the unit in front of them. No room for them now is no matter. */
static void fill_ahead(struct wal *wal, uint64_t unit_bytes)
{
    enum { AHEAD = 4 << 20 };
    static const uint8_t zeros[AHEAD] __attribute__((aligned(WAL_BLOCK)));
    struct writer *writer = &wal->writer;
    uint64_t end = writer->offset + unit_bytes, from = align_up(end, WAL_BLOCK);
    struct error ignored;
    if (end <= writer->filled)
        return;
    uint64_t left = writer->segment->file_bytes - from;
    size_t bytes = left < AHEAD ? (size_t)left : AHEAD;
    writer->filled = end;
    if (unit_bytes >= WAL_LARGE_UNIT || bytes == 0)
        return;
    if (env_write(writer->file, from, zeros, bytes, &ignored) == STATUS_OK)
        writer->filled = from + bytes;
}

/* May the unit go out in one write that is durable when it returns? Not if somebody wants to hear
 * of the write alone; and a small one not over blocks that were only reserved, see fill_ahead. */
static bool is_one_step(const struct writer *writer, const struct batch *batch, uint64_t unit_bytes)
{
    bool is_written = writer->offset + unit_bytes <= writer->filled;
    if (!writer->direct || (!is_written && unit_bytes < WAL_LARGE_UNIT))
        return false;
    for (const struct wal_submission *s = batch->head; s; s = s->next)
        if (s->durability == WAL_WRITTEN)
            return false;
    return true;
}

/* From here on others may copy ahead. */
static void writing_begin(struct wal *wal, const struct draft *draft)
{
    struct writer *writer = &wal->writer;
    env_lock(wal->lock);
    writer->is_writing = true;
    writer->writing_end = writer->offset + draft->buffer->length;
    writer->writing_footer_bytes = writer->footer_bytes + draft->batch.footer_bytes;
    env_unlock(wal->lock);
}

/* The unit is not there, and what was copied ahead has numbers behind it. */
static void writing_undo(struct wal *wal, struct draft *draft)
{
    env_lock(wal->lock);
    wal->writer.is_writing = false;
    draft_forget_ahead(wal);
    env_unlock(wal->lock);
    draft_undo(wal, draft);
}

static enum status bytes_write(struct wal *wal, struct draft *draft, bool *inout_is_synced,
                               struct error *err)
{
    struct writer *writer = &wal->writer;
    const struct unit_buffer *buffer = draft->buffer;
    enum status status = env_write(*inout_is_synced ? writer->direct : writer->file, writer->offset,
                                   buffer->data, buffer->length, err);
    if (status != STATUS_UNSUPPORTED || !*inout_is_synced)
        return status;
    /* The file system took the flag and does not take the blocks: nothing was written. */
    env_close(writer->direct);
    writer->direct = NULL;
    writer->has_no_direct = true;
    *inout_is_synced = false;
    return env_write(writer->file, writer->offset, buffer->data, buffer->length, err);
}

/* Writes and syncs wal->draft, which is encoded (`is_ahead`) or only filled. */
static enum status unit_write(struct wal *wal, struct batch *batch, bool is_ahead,
                              struct error *err)
{
    struct writer *writer = &wal->writer;
    struct draft *draft = wal->draft;
    if ((!is_ahead && !draft_encode(wal, draft)) || !draft_finish(wal, draft)) {
        draft_undo(wal, draft);
        return error_set(err, STATUS_NO_MEMORY, "log: no memory for a write unit");
    }
    bool is_synced = is_one_step(writer, batch, draft->buffer->length);
    writing_begin(wal, draft);
    enum status status = bytes_write(wal, draft, &is_synced, err);
    if (status != STATUS_OK) {
        writing_undo(wal, draft);
        /* Part of the unit may be there: the segment ends in front of it, durably, before anything
         * else is written; the numbers given back are then free again. */
        writer->must_cut = true;
        return status;
    }
    uint64_t number = writer->unit_next++;
    if (!is_synced) {
        complete_written(wal, batch);
        fill_ahead(wal, draft->buffer->length);
        if (env_sync(writer->file, err) != STATUS_OK)
            return err->status = STATUS_IO;
    }
    writer->floor = number;
    writer->synced_ns = env_mono_ns(wal->env);
    apply_unit(wal, draft);
    writer->needs_floor = true;
    return STATUS_OK;
}

/* Takes further submissions as long as they fit. Lock held. */
static bool batch_fill(struct wal *wal, struct batch *batch)
{
    while (wal->queue_head) {
        struct wal_submission *next = wal->queue_head;
        struct batch wider = *batch;
        size_t schemas = wal->draft->schema_count;
        bool is_costed = draft_cost(wal, wal->draft, next, &wider);
        bool is_too_much = batch->head && (!fits(&wal->writer, &wider) ||
                                           unit_bytes_for(&wider) > wal->options.unit_bytes_max);
        if (!is_costed || is_too_much) {
            wal->draft->schema_count = schemas;
            return batch->head != NULL;
        }
        wal->queue_head = next->next;
        if (!wal->queue_head)
            wal->queue_tail = NULL;
        wal->queue_bytes -= next->engine_private[WORD_BYTES];
        next->next = NULL;
        if (wider.tail)
            wider.tail->next = next;
        else
            wider.head = next;
        wider.tail = next;
        *batch = wider;
    }
    return true;
}

static void refuse_head(struct wal *wal, enum status status, const struct error *err)
{
    struct wal_submission *head = wal->queue_head;
    wal->queue_head = head->next;
    if (!wal->queue_head)
        wal->queue_tail = NULL;
    wal->queue_bytes -= head->engine_private[WORD_BYTES];
    wal->counters.submissions_refused++;
    env_unlock(wal->lock);
    head->next = NULL;
    writer_complete(wal, head, status, err);
    env_lock(wal->lock);
}

/* A write failed for space, and a crash could still find it whole. The refusal is given once the
 * segment has durably ended in front of it; until then nobody knows. */
static enum status write_undo(struct wal *wal, struct error *err)
{
    struct error cut;
    if (writer_seal(wal, &cut) == STATUS_OK)
        return err->status;
    return error_set(err, STATUS_UNKNOWN_OUTCOME,
                     "log: the volume is full, and the write could not be taken back: %.200s",
                     cut.message);
}

static void finished_add(struct wal *wal, struct wal_submission *head)
{
    if (!head)
        return;
    if (wal->finished_tail)
        wal->finished_tail->next = head;
    else
        wal->finished_head = head;
    while (head->next)
        head = head->next;
    wal->finished_tail = head;
}

void writer_run(struct wal *wal)
{
    enum { SLACK_NS = 2 * 1000 * 1000 }; /* sleeps are whole milliseconds, rounded up */
    struct error err;
    struct batch batch = {0}, first = {0};
    enum status status;
    CHECK(wal->is_leading);
    if (!wal->queue_head || wal->is_dead)
        return;
    bool is_ahead = draft_take_ahead(wal);
    if (wal->is_dead) /* meanwhile: who made it so answers the queue */
        return;
    if (is_ahead) {
        batch = wal->draft->batch;
    } else {
        bool is_control = submission_control(wal->queue_head) != NULL;
        status =
            draft_cost(wal, wal->draft, wal->queue_head, &first) ? STATUS_OK : STATUS_NO_MEMORY;
        if (status != STATUS_OK)
            error_set(&err, status, "log: no memory for a write unit");
        env_unlock(wal->lock);
        if (status == STATUS_OK)
            status = room_make(wal, &first, is_control, &err);
        env_lock(wal->lock);
        if (wal->is_dead)
            return;
        wal->draft->schema_count = 0;
        if (status != STATUS_OK) {
            refuse_head(wal, status, &err);
            return;
        }
        if (!batch_fill(wal, &batch))
            return;
        wal->draft->batch = batch;
    }
    env_unlock(wal->lock);
    status = unit_write(wal, &batch, is_ahead, &err);
    if (status == STATUS_IO) {
        error_prefix(&err, "log");
        batch_fail(wal, &batch, status, &err);
        wal_die(wal, &err);
    } else if (status != STATUS_OK) {
        if (wal->writer.must_cut)
            status = write_undo(wal, &err);
        batch_fail(wal, &batch, status, &err);
        batch.head = NULL;
    }
    env_lock(wal->lock);
    finished_add(wal, batch.head);
    writer_room_publish(wal);
    int64_t floor_ns = wal->writer.synced_ns + (int64_t)WAL_IDLE_FLOOR_MS * 1000000;
    if (wal->writer.needs_floor && wal->engine_until_ns > floor_ns + SLACK_NS)
        env_signal(wal->work);
}
