/* SPDX-License-Identifier: Apache-2.0
 *
 * The way in: checks on the submitter's thread, admission by queue and budget, and the wait of
 * wal_append, in which the first waiter does the writing (L12).
 */
#include "log/wal/wal_internal.h"

static enum status entry_check(struct wal *wal, const struct wal_entry *entry, bool is_control,
                               uint64_t *inout_bytes, struct error *err)
{
    if (!is_control && entry->type != WAL_DATA && entry->type != WAL_PRODUCERS)
        return error_set(err, STATUS_INVALID, "log: entry type %d", (int)entry->type);
    if (entry->group >= wal->group_count)
        return error_set(err, STATUS_INVALID, "log: group %u of %u", entry->group,
                         wal->group_count);
    if (entry->contribution_count > WAL_CONTRIBUTIONS_MAX)
        return error_set(err, STATUS_LIMIT, "log: %u contributions", entry->contribution_count);
    for (uint32_t i = 0; i < entry->contribution_count; i++)
        if (entry->contributions[i].producer_length > WAL_PRODUCER_ID_MAX)
            return error_set(err, STATUS_INVALID, "log: producer id of %u bytes",
                             entry->contributions[i].producer_length);
    if (entry->payload.length > wal->options.unit_bytes_max)
        return error_set(err, STATUS_TOO_LARGE, "log: entry of %zu bytes", entry->payload.length);
    /* L10: every hop checks; here a buffer that was spoilt on its way is still the client's. */
    if (crc32c(0, entry->payload.data, entry->payload.length) != entry->payload_crc)
        return error_set(err, STATUS_INVALID, "log: payload does not match its checksum");
    *inout_bytes +=
        record_bytes(record_header_bytes(entry->contributions, entry->contribution_count),
                     entry->payload.length);
    return STATUS_OK;
}

static enum status submission_check(struct wal *wal, struct wal_submission *submission,
                                    struct error *err)
{
    uint64_t bytes = 0;
    bool is_control = submission_control(submission) != NULL;
    if (submission->entry_count == 0)
        return error_set(err, STATUS_INVALID, "log: empty submission");
    for (uint32_t i = 0; i < submission->entry_count; i++)
        TRY(entry_check(wal, &submission->entries[i], is_control, &bytes, err));
    if (unit_head_bytes(2 * (uint64_t)submission->entry_count) + bytes >
        wal->options.unit_bytes_max)
        return error_set(err, STATUS_TOO_LARGE, "log: submission of %llu bytes",
                         (unsigned long long)bytes);
    submission->engine_private[WORD_BYTES] = bytes;
    return STATUS_OK;
}

bool writer_may_grow(const struct wal *wal, uint64_t bytes)
{
    const struct wal_options *options = &wal->options;
    uint64_t limit = options->budget_bytes / 100 * options->producers_refused_at_percent;
    uint64_t more = bytes > options->segment_bytes ? bytes : options->segment_bytes;
    if (wal->volume_is_full || env_mono_ns(wal->env) < wal->no_room_until_ns)
        return false;
    if (wal->spare_count > WAL_CONTROL_SPARES && bytes <= options->segment_bytes)
        more = 0;
    return wal->allocated_bytes + more <= limit;
}

static const char *refusal_reason(const struct wal *wal)
{
    return wal->volume_is_full || wal->no_room_until_ns ? "the volume is nearly full"
                                                        : "budget reached";
}

/* Lock held. */
static enum status submission_admit(struct wal *wal, struct wal_submission *submission,
                                    struct error *err)
{
    if (!wal->is_accepting && !submission_control(submission))
        return error_set(err, STATUS_CLOSED, "log: closed");
    if (wal->is_dead)
        return error_set(err, STATUS_CLOSED, "log: failed");
    for (uint32_t i = 0; i < submission->entry_count; i++) {
        const struct wal_entry *entry = &submission->entries[i];
        if (entry->schema_fingerprint && !schema_find(wal, entry->schema_fingerprint))
            return error_set(err, STATUS_INVALID, "log: unknown schema");
        if (entry->type == WAL_DATA && (entry->table_id == 0 || entry->table_id > wal->table_count))
            return error_set(err, STATUS_INVALID, "log: unknown table %u", entry->table_id);
    }
    if (submission_control(submission))
        return STATUS_OK;
    if (!submission->passes_fence)
        TRY(fence_check(wal, err));
    uint64_t bytes = submission->engine_private[WORD_BYTES];
    if (wal->queue_bytes + bytes > 2 * wal->options.unit_bytes_max)
        return error_set(err, STATUS_BUSY, "log: queue is full");
    if (wal->queue_bytes + bytes + WAL_BLOCK > wal->room_left && !writer_may_grow(wal, bytes))
        return error_set(err, STATUS_NO_SPACE, "log: %s", refusal_reason(wal));
    return backlog_take_in(wal, submission, err);
}

static void enqueue(struct wal *wal, struct wal_submission *submission)
{
    submission->next = NULL;
    if (wal->queue_tail)
        wal->queue_tail->next = submission;
    else
        wal->queue_head = submission;
    wal->queue_tail = submission;
    wal->queue_bytes += submission->engine_private[WORD_BYTES];
}

void wal_submit(struct wal *wal, struct wal_submission *submission)
{
    struct error err;
    memset(submission->engine_private, 0, sizeof submission->engine_private);
    enum status status = submission_check(wal, submission, &err);
    env_lock(wal->lock);
    if (status == STATUS_OK)
        status = submission_admit(wal, submission, &err);
    if (status == STATUS_OK) {
        enqueue(wal, submission);
        if (wal->is_leading)
            draft_copy_ahead(wal);
        else
            env_signal(wal->work);
    } else {
        wal->counters.submissions_refused++;
    }
    env_unlock(wal->lock);
    if (status != STATUS_OK)
        writer_complete(wal, submission, status, &err);
}

static struct waiter *waiter_create(struct wal *wal)
{
    struct waiter *waiter = mem_alloc_zero(1, sizeof *waiter);
    if (!waiter)
        return NULL;
    waiter->lock = env_mutex_create(wal->env);
    waiter->cond = env_cond_create(wal->env);
    if (waiter->lock && waiter->cond)
        return waiter;
    waiter_destroy(waiter);
    return NULL;
}

void waiter_destroy(struct waiter *waiter)
{
    env_cond_destroy(waiter->cond);
    env_mutex_destroy(waiter->lock);
    mem_free(waiter);
}

/* NULL: out of memory. Called and returning with the engine's lock held. */
static struct waiter *waiter_take(struct wal *wal)
{
    struct waiter *waiter = wal->free_waiters;
    if (waiter) {
        wal->free_waiters = waiter->next;
    } else {
        env_unlock(wal->lock);
        waiter = waiter_create(wal);
        env_lock(wal->lock);
    }
    if (waiter)
        waiter->is_done = waiter->may_lead = false;
    return waiter;
}

static void waiter_give_back(struct wal *wal, struct waiter *waiter)
{
    waiter->next = wal->free_waiters;
    wal->free_waiters = waiter;
}

/* True: done. False: nobody leads, and this one may. The engine's lock is not held. */
static bool waiter_wait(struct waiter *waiter)
{
    env_lock(waiter->lock);
    while (!waiter->is_done && !waiter->may_lead)
        env_wait(waiter->cond, waiter->lock, UINT64_MAX);
    waiter->may_lead = false;
    bool is_done = waiter->is_done;
    env_unlock(waiter->lock);
    return is_done;
}

/* Waits for a submission, and does the writing if nobody else does. */
static enum status append_wait(struct wal *wal, struct wal_submission *submission,
                               struct error *err)
{
    enum { ROUNDS = 2 }; /* of others' completions; then the engine's thread takes over */
    enum status status = submission_check(wal, submission, err);
    env_lock(wal->lock);
    struct waiter *waiter = waiter_take(wal);
    if (status == STATUS_OK && !waiter)
        status = error_set(err, STATUS_NO_MEMORY, "log: no memory to wait");
    if (status == STATUS_OK)
        status = submission_admit(wal, submission, err);
    if (status != STATUS_OK) {
        wal->counters.submissions_refused++;
        if (waiter)
            waiter_give_back(wal, waiter);
        env_unlock(wal->lock);
        writer_complete(wal, submission, status, err);
        return status;
    }
    submission->engine_private[WORD_WAITER] = (uint64_t)(uintptr_t)waiter;
    enqueue(wal, submission);
    draft_copy_ahead(wal);
    for (bool is_done = false; !is_done;) {
        if (!wal->is_leading && wal->control_waiting == 0 && wal->queue_head) {
            wal->is_leading = true;
            writer_run(wal);
            wal_lead_release(wal);
            writer_completions_run(wal, ROUNDS);
        }
        env_unlock(wal->lock);
        is_done = waiter_wait(waiter);
        env_lock(wal->lock);
    }
    status = waiter->status;
    if (status != STATUS_OK)
        *err = waiter->err;
    waiter_give_back(wal, waiter);
    env_unlock(wal->lock);
    return status;
}

enum status wal_append(struct wal *wal, struct wal_submission *submission, struct error *err)
{
    memset(submission->engine_private, 0, sizeof submission->engine_private);
    return append_wait(wal, submission, err);
}

enum status wal_append_control(struct wal *wal, struct wal_entry *entries, uint32_t count,
                               struct control *control, struct error *err)
{
    struct wal_submission submission = {
        .entries = entries, .entry_count = count, .durability = WAL_SYNCED};
    submission.engine_private[WORD_CONTROL] = (uint64_t)(uintptr_t)control;
    return append_wait(wal, &submission, err);
}

void wal_rate_add(struct wal_rate *rate, uint64_t bytes, int64_t now_ns)
{
    enum { WINDOW_NS = 1000 * 1000 * 1000 };
    if (rate->since_ns == 0)
        rate->since_ns = now_ns;
    rate->bytes += bytes;
    int64_t spent_ns = now_ns - rate->since_ns;
    if (spent_ns < WINDOW_NS)
        return;
    double now = (double)rate->bytes * 1e9 / (double)spent_ns;
    rate->bytes_a_second = rate->bytes_a_second > 0 ? (rate->bytes_a_second + now) / 2 : now;
    rate->bytes = 0;
    rate->since_ns = now_ns;
}

uint64_t wal_rate_ms(const struct wal_rate *rate, uint64_t bytes, int64_t now_ns)
{
    enum { LEAST_MS = 100, UNKNOWN_MS = 1000, MOST_MS = 60 * 1000 };
    double a_second = rate->bytes_a_second, open_s = (double)(now_ns - rate->since_ns) / 1e9;
    if (a_second <= 0)
        return UNKNOWN_MS;
    /* A drain that has come to a standstill has not ended its window: what it would end with. */
    if (open_s > 2 && (double)rate->bytes / open_s < a_second)
        a_second = ((double)rate->bytes + 1) / open_s;
    double ms = (double)bytes * 1e3 / a_second;
    return ms < LEAST_MS ? LEAST_MS : ms > MOST_MS ? MOST_MS : (uint64_t)ms;
}

/* When will what was refused find room? A full queue empties as fast as units are written; a full
 * budget as fast as segments are published and reclaimed, one of them at a time. Lock held. */
static uint64_t retry_ms(const struct wal *wal, enum status status, uint64_t bytes)
{
    const struct wal_options *options = &wal->options;
    int64_t now = env_mono_ns(wal->env);
    if (status == STATUS_BUSY)
        return wal_rate_ms(&wal->write_rate, wal->queue_bytes / 2 + bytes, now);
    uint64_t limit = options->budget_bytes / 100 * options->producers_refused_at_percent;
    uint64_t over = wal->allocated_bytes > limit ? wal->allocated_bytes - limit : 0;
    uint64_t wanted = bytes > options->segment_bytes ? bytes : options->segment_bytes;
    return wal_rate_ms(&wal->drain_rate, over + wanted, now);
}

enum status wal_admit(struct wal *wal, uint64_t bytes, uint64_t *out_retry_ms, struct error *err)
{
    enum status status = STATUS_OK;
    env_lock(wal->lock);
    if (!wal->is_accepting)
        status = error_set(err, STATUS_CLOSED, "log: closed");
    else if (wal->is_dead)
        status = error_set(err, STATUS_CLOSED, "log: failed");
    else if (wal->fenced_by)
        status = fence_check(wal, err);
    else if (wal->queue_bytes + bytes + WAL_BLOCK > wal->room_left && !writer_may_grow(wal, bytes))
        status = error_set(err, STATUS_NO_SPACE, "log: %s", refusal_reason(wal));
    else if (wal->queue_bytes + bytes > 2 * wal->options.unit_bytes_max)
        status = error_set(err, STATUS_BUSY, "log: queue is full");
    if (status != STATUS_OK)
        *out_retry_ms = retry_ms(wal, status, bytes);
    env_unlock(wal->lock);
    return status;
}

bool wal_is_filled(struct wal *wal, unsigned percent)
{
    env_lock(wal->lock);
    bool is_filled = wal->allocated_bytes / percent > wal->options.budget_bytes / 100;
    env_unlock(wal->lock);
    return is_filled;
}
