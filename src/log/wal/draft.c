/* SPDX-License-Identifier: Apache-2.0
 *
 * A write unit in memory, before it is written: submissions are added in the order of the queue,
 * (seq, term, chain) are assigned, headers made, payloads copied once. Two drafts take turns: while
 * one is being written and synced, submitters of large payloads copy theirs into the other
 * (copying ahead), so that the disk does not wait for memory.
 *
 * What was copied ahead stays in the queue. It is taken back (draft_forget) when the unit in front
 * of it fails, and when it does not fit the segment any more: nobody has seen its numbers.
 */
#include "log/wal/writer_internal.h"

struct draft *draft_create(void)
{
    return mem_alloc_zero(1, sizeof(struct draft));
}

void draft_destroy(struct draft *draft)
{
    if (!draft)
        return;
    if (draft->buffer) {
        mem_free(draft->buffer->base);
        mem_free(draft->buffer);
    }
    mem_free(draft->written);
    mem_free(draft->schemas);
    mem_free(draft);
}

/* ---- what it costs ---- */

static bool lists(const uint64_t *schemas, size_t count, uint64_t fingerprint)
{
    for (size_t i = count; i > 0; i--)
        if (schemas[i - 1] == fingerprint)
            return true;
    return false;
}

/* Will the segment have it, once what comes before in it is written? */
static bool has_schema(const struct wal *wal, const struct draft *draft, uint64_t fingerprint)
{
    const struct segment *segment = wal->writer.segment;
    const struct draft *before = wal->draft;
    return (segment && lists(segment->schemas, segment->schema_count, fingerprint)) ||
           (before != draft && lists(before->schemas, before->schema_count, fingerprint)) ||
           lists(draft->schemas, draft->schema_count, fingerprint);
}

bool draft_cost(struct wal *wal, struct draft *draft, const struct wal_submission *submission,
                struct batch *batch)
{
    batch->bytes += submission->engine_private[WORD_BYTES];
    batch->records += submission->entry_count;
    batch->footer_bytes += submission->entry_count * footer_entry_bytes(true);
    for (uint32_t i = 0; i < submission->entry_count; i++) {
        uint64_t fingerprint = submission->entries[i].schema_fingerprint;
        if (fingerprint == 0 || has_schema(wal, draft, fingerprint))
            continue;
        const struct schema *schema = schema_find(wal, fingerprint);
        CHECK(schema); /* submit looked */
        if (!grow((void **)&draft->schemas, &draft->schema_capacity, draft->schema_count,
                  sizeof *draft->schemas))
            return false;
        draft->schemas[draft->schema_count++] = fingerprint;
        batch->records++;
        batch->bytes += record_bytes(RECORD_HEADER_FIXED, schema->length);
        batch->footer_bytes += 16 + schema->length;
    }
    return true;
}

/* ---- encoding ---- */

static bool written_add(struct draft *draft, const struct written *written)
{
    if (!grow((void **)&draft->written, &draft->written_capacity, draft->written_count,
              sizeof *draft->written))
        return false;
    draft->written[draft->written_count++] = *written;
    return true;
}

static bool put_record(struct wal *wal, struct draft *draft, struct written *written,
                       const struct wal_contribution *contributions, struct span payload)
{
    struct record *record = &written->record;
    uint8_t *to = draft->buffer->base + draft->at;
    written->offset = draft->at;
    written->header_crc =
        record_encode(to, record, contributions, segment_seed(&wal->writer.segment->identity));
    size_t padded = (size_t)align_up(record->header_bytes, WAL_ALIGN);
    memset(to + record->header_bytes, 0, padded - record->header_bytes);
    to += padded;
    if (payload.length)
        memcpy(to, payload.data, payload.length);
    size_t payload_padded = (size_t)align_up(payload.length, WAL_ALIGN);
    memset(to + payload.length, 0, payload_padded - payload.length);
    if (!written_add(draft, written))
        return false;
    draft->at += padded + payload_padded;
    return true;
}

static bool put_schema(struct wal *wal, struct draft *draft, uint64_t fingerprint)
{
    env_lock(wal->lock);
    const struct schema *schema = schema_find(wal, fingerprint);
    struct span message = span_of(schema->message, schema->length); /* never freed while open */
    env_unlock(wal->lock);
    struct written written = {.record = {.type = RECORD_SCHEMA,
                                         .log_id = wal->writer.segment->identity.log_id,
                                         .schema_fingerprint = fingerprint,
                                         .payload_bytes = message.length,
                                         .payload_crc = crc32c(0, message.data, message.length)}};
    return put_record(wal, draft, &written, NULL, message);
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

static bool put_entry(struct wal *wal, struct draft *draft, struct wal_entry *entry,
                      struct control *control)
{
    struct group *group = &wal->groups[entry->group];
    struct written written = {.previous_term = group->term, .control = control};
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
    if (!put_record(wal, draft, &written, entry->contributions, entry->payload))
        return false;
    *record = draft->written[draft->written_count - 1].record; /* with its chain */
    entry->seq = record->seq;
    entry->chain = record->chain;
    if (!(record->flags & RECORD_REPAIR)) {
        group->seq = record->seq;
        group->chain = record->chain;
        group->term = record->term;
    }
    return true;
}

static bool draft_put(struct wal *wal, struct draft *draft, struct wal_submission *submission)
{
    submission->term = wal->term;
    for (uint32_t i = 0; i < submission->entry_count; i++) {
        struct wal_entry *entry = &submission->entries[i];
        if (draft->schemas_put < draft->schema_count &&
            draft->schemas[draft->schemas_put] == entry->schema_fingerprint &&
            !put_schema(wal, draft, draft->schemas[draft->schemas_put++]))
            return false;
        if (!put_entry(wal, draft, entry, submission_control(submission)))
            return false;
    }
    return true;
}

/* Takes back what was put after the first `kept` records: nobody has seen it. */
static void draft_truncate(struct wal *wal, struct draft *draft, size_t kept)
{
    while (draft->written_count > kept) {
        const struct written *written = &draft->written[--draft->written_count];
        const struct record *record = &written->record;
        draft->at = written->offset;
        if (record->flags & RECORD_REPAIR || record->type == RECORD_SCHEMA)
            continue;
        struct group *group = &wal->groups[record->group];
        group->seq = record->seq - 1;
        group->chain = record->chain_before;
        group->term = written->previous_term;
    }
}

void draft_undo(struct wal *wal, struct draft *draft)
{
    draft_truncate(wal, draft, 0);
    env_lock(wal->lock);
    if (draft->buffer)
        unit_buffer_release(wal, draft->buffer);
    if (wal->writer.segment)
        index_unprepare(wal->writer.segment);
    env_unlock(wal->lock);
    draft_clear(draft);
}

void draft_clear(struct draft *draft)
{
    draft->written_count = draft->schema_count = draft->schemas_put = 0;
    draft->buffer = NULL;
    draft->batch = (struct batch){0};
}

/* ---- the unit ---- */

static bool draft_begin(struct wal *wal, struct draft *draft, uint64_t records_at, uint64_t bytes)
{
    draft->buffer = unit_buffer_take(wal, (size_t)bytes);
    draft->records_at = draft->at = records_at;
    return draft->buffer != NULL;
}

bool draft_encode(struct wal *wal, struct draft *draft)
{
    struct batch *batch = &draft->batch;
    if (!draft_begin(wal, draft, unit_head_bytes(batch->records), unit_bytes_for(batch)))
        return false;
    for (struct wal_submission *s = batch->head; s; s = s->next)
        if (!draft_put(wal, draft, s))
            return false;
    CHECK(draft->written_count == batch->records);
    return true;
}

bool draft_finish(struct wal *wal, struct draft *draft)
{
    struct writer *writer = &wal->writer;
    struct unit_buffer *buffer = draft->buffer;
    /* Records copied ahead leave more room than their list needs: it stands in the last blocks of
     * it. */
    uint64_t head = unit_head_bytes(draft->written_count);
    if (draft->records_at != head)
        head = align_up(head, WAL_BLOCK);
    buffer->data = buffer->base + (draft->records_at - head);
    uint64_t used = head + (draft->at - draft->records_at), unit_bytes = align_up(used, WAL_BLOCK);
    CHECK(head <= draft->records_at && draft->records_at - head + unit_bytes <= buffer->capacity);
    memset(buffer->data, 0, (size_t)head);
    memset(buffer->data + used, 0, (size_t)(unit_bytes - used));
    bool is_ok = true;
    env_lock(wal->lock);
    for (size_t i = 0; i < draft->written_count; i++) {
        struct written *written = &draft->written[i];
        const struct record *record = &written->record;
        written->offset -= draft->records_at - head;
        unit_row_encode(buffer->data, (uint32_t)i,
                        &(struct unit_row){.offset = written->offset,
                                           .header_bytes = record->header_bytes,
                                           .payload_bytes = (uint32_t)record->payload_bytes,
                                           .header_crc = written->header_crc,
                                           .payload_crc = record->payload_crc,
                                           .type = record->type});
        if (is_ok && record->type != RECORD_SCHEMA)
            is_ok = index_prepare(wal, writer->segment, record);
    }
    size_t schemas_wanted = writer->segment->schema_count + draft->schema_count;
    while (is_ok && writer->segment->schema_capacity < schemas_wanted)
        is_ok = grow((void **)&writer->segment->schemas, &writer->segment->schema_capacity,
                     writer->segment->schema_capacity, sizeof *writer->segment->schemas);
    env_unlock(wal->lock);
    if (!is_ok)
        return false;
    unit_header_encode(buffer->data,
                       &(struct unit_header){.number = writer->unit_next,
                                             .floor = writer->floor,
                                             .unit_bytes = unit_bytes,
                                             .record_count = (uint32_t)draft->written_count,
                                             .kind = UNIT_DATA,
                                             .wall_ns = env_wall_ns(wal->env),
                                             .salt = writer->segment->identity.salt},
                       segment_seed(&writer->segment->identity));
    buffer->segment_id = writer->segment->identity.id;
    buffer->offset = writer->offset;
    buffer->length = (size_t)unit_bytes;
    return true;
}

/* ---- copying ahead; lock held ---- */

enum {
    AHEAD_HEAD_BYTES = 16 << 10, /* of the list of records copied ahead */
    AHEAD_BYTES = 8 << 20,       /* of a draft at most, but for one larger submission */
};

/* Room for twice the unit in front, or twice what is queued: a buffer stays with the readers for a
 * while, and should not be much larger than what is in it. */
static size_t ahead_capacity(const struct wal *wal, uint64_t bytes)
{
    size_t before = wal->draft->buffer ? wal->draft->buffer->length : 0;
    size_t guess = 2 * size_max(before, (size_t)wal->queue_bytes);
    return size_max(size_min(guess, AHEAD_BYTES), (size_t)bytes) + AHEAD_HEAD_BYTES;
}

static uint64_t ahead_unit_bytes(const struct batch *batch)
{
    return align_up(align_up(unit_head_bytes(batch->records), WAL_BLOCK) + batch->bytes, WAL_BLOCK);
}

/* Adds the next submission to the draft ahead. False: it must wait for the lead. */
static bool ahead_add(struct wal *wal, struct wal_submission *submission, bool is_writing)
{
    struct draft *draft = wal->ahead;
    const struct writer *writer = &wal->writer;
    struct batch wider = draft->batch;
    size_t schemas = draft->schema_count;
    uint64_t offset = is_writing ? writer->writing_end : writer->offset;
    size_t footer_bytes = is_writing ? writer->writing_footer_bytes : writer->footer_bytes;
    bool is_first = wider.head == NULL;
    if (submission_control(submission) || !draft_cost(wal, draft, submission, &wider)) {
        draft->schema_count = schemas;
        return false;
    }
    uint64_t bytes = ahead_unit_bytes(&wider);
    size_t capacity = draft->buffer ? draft->buffer->capacity : ahead_capacity(wal, bytes);
    bool does_fit = offset + bytes + footer_bytes + wider.footer_bytes + FOOTER_BYTES_LEAST <=
                        writer->segment->file_bytes &&
                    bytes <= wal->options.unit_bytes_max &&
                    unit_head_bytes(wider.records) <= AHEAD_HEAD_BYTES &&
                    AHEAD_HEAD_BYTES + bytes <= capacity;
    size_t written = draft->written_count, schemas_put = draft->schemas_put;
    env_unlock(wal->lock);
    bool is_put =
        does_fit && (draft->buffer || draft_begin(wal, draft, AHEAD_HEAD_BYTES, capacity));
    if (is_put && !draft_put(wal, draft, submission)) {
        draft_truncate(wal, draft, written);
        draft->schemas_put = schemas_put;
        is_put = false;
    }
    env_lock(wal->lock);
    if (!is_put) {
        draft->schema_count = schemas;
        return false;
    }
    if (is_first)
        wider.head = submission;
    wider.tail = submission;
    draft->batch = wider;
    return true;
}

static struct wal_submission *ahead_next(const struct wal *wal)
{
    const struct batch *batch = &wal->ahead->batch;
    return batch->tail ? batch->tail->next : wal->queue_head;
}

void draft_copy_ahead(struct wal *wal)
{
    struct wal_submission *next;
    while (wal->writer.is_writing && !wal->is_dead && !wal->is_copying &&
           (next = ahead_next(wal)) &&
           next->engine_private[WORD_BYTES] >= wal->options.copy_ahead_bytes) {
        wal->is_copying = true;
        bool is_added = ahead_add(wal, next, true);
        wal->is_copying = false;
        env_broadcast(wal->freed);
        if (!is_added)
            return;
    }
}

void draft_forget_ahead(struct wal *wal)
{
    while (wal->is_copying)
        env_wait(wal->freed, wal->lock, UINT64_MAX);
    if (!wal->ahead->batch.head && !wal->ahead->buffer)
        return;
    wal->counters.copies_taken_back += wal->ahead->batch.head != NULL;
    draft_truncate(wal, wal->ahead, 0);
    unit_buffer_release(wal, wal->ahead->buffer);
    draft_clear(wal->ahead);
}

void draft_abandon(struct wal *wal)
{
    while (wal->is_copying)
        env_wait(wal->freed, wal->lock, UINT64_MAX);
    if (wal->ahead->buffer)
        unit_buffer_release(wal, wal->ahead->buffer);
    draft_clear(wal->ahead);
}

bool draft_take_ahead(struct wal *wal)
{
    struct wal_submission *next;
    if (wal->writer.must_cut)
        draft_forget_ahead(wal);
    while (wal->is_copying)
        env_wait(wal->freed, wal->lock, UINT64_MAX);
    struct draft *draft = wal->ahead;
    if (!draft->batch.head)
        return false;
    wal->is_copying = true;
    while ((next = ahead_next(wal)) && ahead_add(wal, next, false))
        continue;
    wal->is_copying = false;
    env_broadcast(wal->freed);
    if (wal->is_dead)
        return false;
    for (struct wal_submission *s = draft->batch.head;; s = s->next) {
        wal->queue_bytes -= s->engine_private[WORD_BYTES];
        if (s == draft->batch.tail)
            break;
    }
    wal->queue_head = draft->batch.tail->next;
    if (!wal->queue_head)
        wal->queue_tail = NULL;
    draft->batch.tail->next = NULL;
    wal->ahead = wal->draft;
    wal->draft = draft;
    wal->counters.units_copied_ahead++;
    return true;
}
