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

#include "log/wal/wal_internal.h"

/* One record of the unit being written. */
struct written {
    struct record record;
    uint64_t offset;        /* in the unit */
    uint64_t previous_term; /* of the group, to go back to */
    struct control *control;
};

struct scratch {
    struct written *written;
    size_t written_count, written_capacity;
    uint64_t *schemas; /* first used in this unit, in order */
    size_t schema_count, schema_capacity;
};

struct scratch *scratch_create(void)
{
    return mem_alloc_zero(1, sizeof(struct scratch));
}

void scratch_destroy(struct scratch *scratch)
{
    if (!scratch)
        return;
    mem_free(scratch->written);
    mem_free(scratch->schemas);
    mem_free(scratch);
}

/* The submissions that share a unit. */
struct batch {
    struct wal_submission *head, *tail;
    uint64_t records, bytes; /* records without their list */
    size_t footer_bytes;
};

void writer_complete(struct wal *wal, struct wal_submission *submission, enum status status,
                     const struct error *err)
{
    struct waiter *waiter = (struct waiter *)(uintptr_t)submission->engine_private[WORD_WAITER];
    if (status != STATUS_OK) {
        env_lock(wal->lock);
        for (uint32_t i = 0; i < submission->entry_count; i++)
            producers_release(&wal->producers, submission->entries[i].contributions,
                              submission->entries[i].contribution_count);
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

static uint64_t unit_bytes_for(const struct batch *batch)
{
    return align_up(unit_head_bytes(batch->records) + batch->bytes, WAL_BLOCK);
}

static bool fits(const struct writer *writer, const struct batch *batch)
{
    return writer->segment && writer->offset + unit_bytes_for(batch) + writer->footer_bytes +
                                      batch->footer_bytes + FOOTER_BYTES_LEAST <=
                                  writer->segment->file_bytes;
}

static bool has_schema(const struct wal *wal, uint64_t fingerprint)
{
    const struct segment *segment = wal->writer.segment;
    for (size_t i = segment ? segment->schema_count : 0; i > 0; i--)
        if (segment->schemas[i - 1] == fingerprint)
            return true;
    const struct scratch *scratch = wal->scratch;
    for (size_t i = scratch->schema_count; i > 0; i--)
        if (scratch->schemas[i - 1] == fingerprint)
            return true;
    return false;
}

/* Adds the submission's cost to `batch`; its new schemas to the scratch. Lock held (for schemas).
 */
static bool cost_add(struct wal *wal, const struct wal_submission *submission, struct batch *batch)
{
    struct scratch *scratch = wal->scratch;
    batch->bytes += submission->engine_private[WORD_BYTES];
    batch->records += submission->entry_count;
    batch->footer_bytes += submission->entry_count * footer_entry_bytes(true);
    for (uint32_t i = 0; i < submission->entry_count; i++) {
        uint64_t fingerprint = submission->entries[i].schema_fingerprint;
        if (fingerprint == 0 || has_schema(wal, fingerprint))
            continue;
        const struct schema *schema = schema_find(wal, fingerprint);
        CHECK(schema); /* submit looked */
        if (!grow((void **)&scratch->schemas, &scratch->schema_capacity, scratch->schema_count,
                  sizeof *scratch->schemas))
            return false;
        scratch->schemas[scratch->schema_count++] = fingerprint;
        batch->records++;
        batch->bytes += record_bytes(RECORD_HEADER_FIXED, schema->length);
        batch->footer_bytes += 16 + schema->length;
    }
    return true;
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

/* ---- encoding ---- */

static bool written_add(struct scratch *scratch, const struct written *written)
{
    if (!grow((void **)&scratch->written, &scratch->written_capacity, scratch->written_count,
              sizeof *scratch->written))
        return false;
    scratch->written[scratch->written_count++] = *written;
    return true;
}

struct encoder {
    uint8_t *unit;
    uint64_t at; /* end of what is there */
    uint32_t index, seed;
};

static void put_record(struct encoder *encoder, struct record *record,
                       const struct wal_contribution *contributions, struct span payload)
{
    struct unit_row row = {.offset = encoder->at,
                           .payload_bytes = (uint32_t)payload.length,
                           .payload_crc = record->payload_crc,
                           .type = record->type};
    uint8_t *to = encoder->unit + encoder->at;
    row.header_crc = record_encode(to, record, contributions, encoder->seed);
    row.header_bytes = record->header_bytes;
    size_t padded = (size_t)align_up(record->header_bytes, WAL_ALIGN);
    memset(to + record->header_bytes, 0, padded - record->header_bytes);
    to += padded;
    if (payload.length)
        memcpy(to, payload.data, payload.length);
    size_t payload_padded = (size_t)align_up(payload.length, WAL_ALIGN);
    memset(to + payload.length, 0, payload_padded - payload.length);
    unit_row_encode(encoder->unit, encoder->index++, &row);
    encoder->at += padded + payload_padded;
}

static void put_schema(struct wal *wal, struct encoder *encoder, uint64_t fingerprint)
{
    env_lock(wal->lock);
    const struct schema *schema = schema_find(wal, fingerprint);
    struct span message = span_of(schema->message, schema->length); /* never freed while open */
    env_unlock(wal->lock);
    struct record record = {
        .type = RECORD_SCHEMA,
        .log_id = wal->writer.segment->identity.log_id,
        .schema_fingerprint = fingerprint,
        .payload_bytes = message.length,
        .payload_crc = crc32c(0, message.data, message.length),
    };
    put_record(encoder, &record, NULL, message);
}

static void fill_record(struct wal *wal, const struct wal_entry *entry, struct record *record)
{
    const struct group *group = &wal->groups[entry->group];
    *record = (struct record){
        .type = (uint8_t)entry->type,
        .payload_crc = entry->payload_crc,
        .log_id = wal->writer.segment->identity.log_id,
        .group = entry->group,
        .table_id = entry->table_id,
        .seq = group->seq + 1,
        .term = wal->term,
        .chain_before = group->chain,
        .schema_fingerprint = entry->schema_fingerprint,
        .rows = entry->rows,
        .contribution_count = entry->contribution_count,
        .time_min_us = entry->time_min_us,
        .time_max_us = entry->time_max_us,
        .payload_bytes = entry->payload.length,
        .range_last = group->seq + 1,
    };
}

static bool put_entry(struct wal *wal, struct encoder *encoder, struct wal_entry *entry,
                      struct control *control)
{
    struct group *group = &wal->groups[entry->group];
    struct written written = {
        .offset = encoder->at, .previous_term = group->term, .control = control};
    struct record *record = &written.record;
    fill_record(wal, entry, record);
    if (entry->type == WAL_NOOP)
        env_random(wal->env, &record->nonce, sizeof record->nonce); /* L5 */
    if (entry->type == WAL_VOID) {
        record->flags = RECORD_REPAIR;
        record->seq = control->range.first;
        record->range_last = control->range.last;
        record->chain = control->range.chain;
        record->chain_before = 0;
    }
    put_record(encoder, record, entry->contributions, entry->payload);
    if (!written_add(wal->scratch, &written))
        return false;
    entry->seq = record->seq;
    entry->chain = record->chain;
    if (!(record->flags & RECORD_REPAIR)) {
        group->seq = record->seq;
        group->chain = record->chain;
        group->term = record->term;
    }
    return true;
}

/* The tails go back to before this unit: nothing of it was seen by anybody. */
static void tails_restore(struct wal *wal)
{
    struct scratch *scratch = wal->scratch;
    for (size_t i = scratch->written_count; i > 0; i--) {
        const struct written *written = &scratch->written[i - 1];
        const struct record *record = &written->record;
        if (record->flags & RECORD_REPAIR)
            continue;
        struct group *group = &wal->groups[record->group];
        group->seq = record->seq - 1;
        group->chain = record->chain_before;
        group->term = written->previous_term;
    }
    env_lock(wal->lock);
    index_unprepare(wal->writer.segment);
    env_unlock(wal->lock);
    scratch->written_count = scratch->schema_count = 0;
}

static struct unit_buffer *unit_encode(struct wal *wal, const struct batch *batch)
{
    struct writer *writer = &wal->writer;
    struct scratch *scratch = wal->scratch;
    uint64_t unit_bytes = unit_bytes_for(batch);
    struct unit_buffer *buffer = unit_buffer_take(wal, (size_t)unit_bytes);
    if (!buffer)
        return NULL;
    struct encoder encoder = {.unit = buffer->data,
                              .at = unit_head_bytes(batch->records),
                              .seed = segment_seed(&writer->segment->identity)};
    memset(buffer->data, 0, (size_t)encoder.at);
    size_t schemas_put = 0;
    bool is_ok = true;
    for (struct wal_submission *s = batch->head; s && is_ok; s = s->next) {
        s->term = wal->term;
        for (uint32_t i = 0; i < s->entry_count && is_ok; i++) {
            struct wal_entry *entry = &s->entries[i];
            if (schemas_put < scratch->schema_count &&
                scratch->schemas[schemas_put] == entry->schema_fingerprint)
                put_schema(wal, &encoder, scratch->schemas[schemas_put++]);
            is_ok = put_entry(wal, &encoder, entry, submission_control(s));
        }
    }
    env_lock(wal->lock);
    for (size_t i = 0; i < scratch->written_count && is_ok; i++)
        is_ok = index_prepare(wal, writer->segment, &scratch->written[i].record);
    size_t schemas_wanted = writer->segment->schema_count + scratch->schema_count;
    while (is_ok && writer->segment->schema_capacity < schemas_wanted)
        is_ok = grow((void **)&writer->segment->schemas, &writer->segment->schema_capacity,
                     writer->segment->schema_capacity, sizeof *writer->segment->schemas);
    if (!is_ok)
        unit_buffer_release(wal, buffer);
    env_unlock(wal->lock);
    if (!is_ok)
        return NULL;
    CHECK(encoder.index == batch->records && encoder.at <= unit_bytes);
    memset(buffer->data + encoder.at, 0, (size_t)(unit_bytes - encoder.at));
    unit_header_encode(buffer->data,
                       &(struct unit_header){.number = writer->unit_next,
                                             .floor = writer->floor,
                                             .unit_bytes = unit_bytes,
                                             .record_count = (uint32_t)batch->records,
                                             .kind = UNIT_DATA,
                                             .wall_ns = env_wall_ns(wal->env),
                                             .salt = writer->segment->identity.salt},
                       encoder.seed);
    buffer->segment_id = writer->segment->identity.id;
    buffer->offset = writer->offset;
    return buffer;
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
    if (record->type == WAL_TABLE && table_add(wal, written->control->table))
        written->control->table = NULL; /* taken */
    if (record->contribution_count == 0)
        return;
    struct error err;
    struct span header = span_of(unit + written->offset, record->header_bytes);
    /* From the unit, not from the submitter: his memory went back when the write was done. */
    CHECK(record_contributions(header, record, contributions, &err) == STATUS_OK);
    bool is_applied = producers_apply(&wal->producers, record, contributions);
    UNUSED(is_applied); /* who writes a number claimed it first, and the claim holds the place */
}

static void apply_unit(struct wal *wal, struct unit_buffer *buffer)
{
    static _Thread_local struct wal_contribution contributions[WAL_CONTRIBUTIONS_MAX];
    struct writer *writer = &wal->writer;
    struct scratch *scratch = wal->scratch;
    int64_t wall_ns = env_wall_ns(wal->env);
    env_lock(wal->lock);
    for (size_t i = 0; i < scratch->schema_count; i++)
        writer->segment->schemas[writer->segment->schema_count++] = scratch->schemas[i];
    for (size_t i = 0; i < scratch->written_count; i++) {
        apply_record(wal, &scratch->written[i], buffer->data, contributions, wall_ns);
        wal->counters.payload_bytes_written += scratch->written[i].record.payload_bytes;
    }
    wal->counters.entries_written += scratch->written_count;
    wal->counters.bytes_written += buffer->length;
    wal->counters.units_written++;
    wal->counters.syncs++;
    wal_rate_add(&wal->write_rate, buffer->length, writer->synced_ns);
    writer->offset += buffer->length;
    unit_buffer_publish(wal, buffer);
    writer_room_publish(wal);
    wal->ticket++;
    env_broadcast(wal->moved);
    env_unlock(wal->lock);
    scratch->written_count = scratch->schema_count = 0;
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

static enum status unit_write(struct wal *wal, struct batch *batch, struct error *err)
{
    struct writer *writer = &wal->writer;
    struct unit_buffer *buffer = unit_encode(wal, batch);
    if (!buffer) {
        tails_restore(wal);
        return error_set(err, STATUS_NO_MEMORY, "log: no memory for a write unit");
    }
    bool is_synced = is_one_step(writer, batch, buffer->length);
    enum status status = env_write(is_synced ? writer->direct : writer->file, writer->offset,
                                   buffer->data, buffer->length, err);
    if (status == STATUS_UNSUPPORTED && is_synced) {
        /* The file system took the flag and does not take the blocks: nothing was written. */
        env_close(writer->direct);
        writer->direct = NULL;
        writer->has_no_direct = true;
        is_synced = false;
        status = env_write(writer->file, writer->offset, buffer->data, buffer->length, err);
    }
    if (status != STATUS_OK) {
        tails_restore(wal);
        env_lock(wal->lock);
        unit_buffer_release(wal, buffer);
        env_unlock(wal->lock);
        /* Part of the unit may be there: the segment ends in front of it, durably, before anything
         * else is written; the numbers given back are then free again. */
        writer->must_cut = true;
        return status;
    }
    uint64_t number = writer->unit_next++;
    if (!is_synced) {
        complete_written(wal, batch);
        fill_ahead(wal, buffer->length);
        if (env_sync(writer->file, err) != STATUS_OK)
            return err->status = STATUS_IO;
    }
    writer->floor = number;
    writer->synced_ns = env_mono_ns(wal->env);
    writer->footer_bytes += batch->footer_bytes;
    apply_unit(wal, buffer);
    writer->needs_floor = true;
    return STATUS_OK;
}

/* Takes further submissions as long as they fit. Lock held. */
static bool batch_fill(struct wal *wal, struct batch *batch)
{
    while (wal->queue_head) {
        struct wal_submission *next = wal->queue_head;
        struct batch wider = *batch;
        size_t schemas = wal->scratch->schema_count;
        bool is_costed = cost_add(wal, next, &wider);
        bool is_too_much = batch->head && (!fits(&wal->writer, &wider) ||
                                           unit_bytes_for(&wider) > wal->options.unit_bytes_max);
        if (!is_costed || is_too_much) {
            wal->scratch->schema_count = schemas;
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
    CHECK(wal->is_leading);
    if (!wal->queue_head || wal->is_dead)
        return;
    bool is_control = submission_control(wal->queue_head) != NULL;
    enum status status = cost_add(wal, wal->queue_head, &first) ? STATUS_OK : STATUS_NO_MEMORY;
    if (status != STATUS_OK)
        error_set(&err, status, "log: no memory for a write unit");
    env_unlock(wal->lock);
    if (status == STATUS_OK)
        status = room_make(wal, &first, is_control, &err);
    env_lock(wal->lock);
    wal->scratch->schema_count = 0;
    if (status != STATUS_OK) {
        refuse_head(wal, status, &err);
        return;
    }
    if (!batch_fill(wal, &batch))
        return;
    env_unlock(wal->lock);
    status = unit_write(wal, &batch, &err);
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
