/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads, who waits, and questions. "mirror" threads copy ranges (upload.c); "mirror-tidy" reads
 * what is there at a start, again whenever the head has vanished, and looks after states and
 * deletions.
 */
#include "log/mirror/mirror_internal.h"

static const uint64_t tidy_wait_ms = 1000;

struct mirror_options mirror_options_default(const char *url)
{
    return (struct mirror_options){
        .url = url,
        .interval_ms = 1000,
        .uploads = 4,
        .retry_ms_min = 100,
        .retry_ms_max = 30000,
        .state_ms = 60000,
        .sweep_ms = 10000,
        .head_ms = 5000,
        .range_bytes = MIRROR_RANGE_BYTES_MAX,
    };
}

/* ---- shared by the files ---- */

bool mirror_grow(void **array, size_t *capacity, size_t count, size_t element)
{
    if (count < *capacity)
        return true;
    size_t wider = *capacity ? *capacity * 2 : 16;
    void *moved = mem_resize(*array, wider * element);
    if (!moved)
        return false;
    *array = moved;
    *capacity = wider;
    return true;
}

bool mirror_hold(struct mirror *mirror, uint64_t segment_id)
{
    env_lock(mirror->lock);
    size_t at = mirror->held_count;
    while (at > 0 && mirror->held[at - 1] > segment_id)
        at--;
    bool is_held = at > 0 && mirror->held[at - 1] == segment_id;
    bool has_room = is_held || mirror->held_count < mirror->held_capacity;
    if (!is_held && has_room) {
        memmove(&mirror->held[at + 1], &mirror->held[at],
                (mirror->held_count - at) * sizeof *mirror->held);
        mirror->held[at] = segment_id;
        mirror->held_count++;
    }
    size_t wider = mirror->held_capacity ? mirror->held_capacity * 2 : 64;
    env_unlock(mirror->lock);
    if (has_room)
        return true;
    uint64_t *larger = mem_alloc_zero(wider, sizeof *larger);
    if (!larger)
        return false;
    env_lock(mirror->lock);
    uint64_t *before = larger;
    if (wider > mirror->held_capacity) {
        if (mirror->held_count)
            memcpy(larger, mirror->held, mirror->held_count * sizeof *larger);
        before = mirror->held;
        mirror->held = larger;
        mirror->held_capacity = wider;
    }
    env_unlock(mirror->lock);
    mem_free(before);
    return mirror_hold(mirror, segment_id);
}

struct wal_extent *mirror_extents(struct mirror *mirror, uint64_t from_id, size_t *out_count,
                                  uint64_t *seqs)
{
    size_t capacity = 64, count;
    for (;;) {
        struct wal_extent *extents = mem_alloc_zero(capacity, sizeof *extents);
        if (!extents)
            return NULL;
        wal_extents(mirror->wal, from_id, extents, capacity, &count, seqs);
        if (count <= capacity) {
            *out_count = count;
            return extents;
        }
        mem_free(extents);
        capacity = count + 8;
    }
}

int64_t mirror_back_off_ns(struct mirror *mirror, unsigned attempts)
{
    uint64_t random, ms = mirror->options.retry_ms_min;
    for (unsigned i = 0; i < attempts && ms < mirror->options.retry_ms_max; i++)
        ms *= 2;
    ms = ms < mirror->options.retry_ms_max ? ms : mirror->options.retry_ms_max;
    env_random(mirror->env, &random, sizeof random);
    return (int64_t)(ms * 1000000 / 2 + random % (ms * 1000000 / 2 + 1));
}

static void tell(struct mirror *mirror, const char *why, bool is_refused)
{
    if (mirror->options.changed)
        mirror->options.changed(why, is_refused);
}

static struct mirror_waiter *waiters_take_all(struct mirror *mirror)
{
    struct mirror_waiter *all = mirror->waiters;
    mirror->waiters = NULL;
    mirror->waiting = 0;
    return all;
}

static void waiters_tell(struct mirror_waiter *waiter, enum status status)
{
    while (waiter) {
        struct mirror_waiter *next = waiter->next; /* it is the caller's again */
        waiter->done(waiter, status);
        waiter = next;
    }
}

void mirror_failed(struct mirror *mirror, enum mirror_step step, const struct error *err)
{
    env_lock(mirror->lock);
    bool is_news = !mirror->is_failing && !mirror->is_refused;
    mirror->is_failing = true;
    if (!mirror->is_refused)
        mirror->why = *err;
    mirror->counters.failures_total[step]++;
    struct mirror_waiter *waiters = mirror->is_hurrying ? waiters_take_all(mirror) : NULL;
    env_unlock(mirror->lock);
    waiters_tell(waiters, STATUS_CLOSED);
    if (is_news)
        tell(mirror, err->message, false);
}

void mirror_works(struct mirror *mirror)
{
    env_lock(mirror->lock);
    bool is_news = mirror->is_failing && !mirror->is_refused;
    mirror->is_failing = false;
    env_unlock(mirror->lock);
    if (is_news)
        tell(mirror, NULL, false);
}

void mirror_refuse(struct mirror *mirror, const struct error *err)
{
    env_lock(mirror->lock);
    bool is_news = !mirror->is_refused;
    mirror->is_refused = true;
    if (is_news)
        mirror->why = *err;
    struct mirror_waiter *waiters = waiters_take_all(mirror);
    env_broadcast(mirror->moved);
    env_unlock(mirror->lock);
    waiters_tell(waiters, STATUS_HALTED);
    if (is_news)
        tell(mirror, err->message, true);
}

/* Lock held. */
static void ring_add(struct mirror *mirror, uint32_t group, uint64_t through)
{
    if (through <= mirror->confirmed[group])
        return;
    mirror->ring[mirror->ring_at++ % MIRROR_RING] =
        (struct confirmation){.group = group,
                              .after = mirror->confirmed[group],
                              .through = through,
                              .at_ms = env_wall_ns(mirror->env) / 1000000};
    mirror->confirmed[group] = through;
}

void mirror_publish(struct mirror *mirror, const uint64_t *seqs)
{
    struct mirror_waiter *copied = NULL, *lost = NULL, **link = &mirror->waiters;
    for (uint32_t g = 0; g < mirror->group_count; g++)
        ring_add(mirror, g, seqs[g]);
    mirror->counters.confirmed_wall_ms = env_wall_ns(mirror->env) / 1000000;
    while (*link) {
        struct mirror_waiter *waiter = *link;
        if (waiter->seq > mirror->confirmed[waiter->group]) {
            link = &waiter->next;
            continue;
        }
        struct mirror_waiter **list =
            waiter->seq <= mirror->abandoned[waiter->group] ? &lost : &copied;
        *link = waiter->next;
        waiter->next = *list;
        *list = waiter;
        mirror->waiting--;
    }
    if (!copied && !lost)
        return;
    env_unlock(mirror->lock);
    waiters_tell(copied, STATUS_OK);
    waiters_tell(lost, STATUS_RECLAIMED);
    env_lock(mirror->lock);
}

void mirror_abandon(struct mirror *mirror, uint64_t segment_id)
{
    uint64_t *ends = mem_alloc_zero(mirror->group_count, sizeof *ends);
    if (ends)
        wal_segment_ends(mirror->wal, segment_id, ends);
    env_lock(mirror->lock);
    for (uint32_t g = 0; g < mirror->group_count; g++) {
        /* Out of memory: rather too much than too little. */
        uint64_t end = ends ? ends[g] : mirror->planned_seqs[g];
        if (end > mirror->abandoned[g])
            mirror->abandoned[g] = end;
    }
    env_unlock(mirror->lock);
    mem_free(ends);
}

/* ---- threads ---- */

static void upload_main(void *context)
{
    struct mirror *mirror = context;
    struct buf buffer = {0};
    uint64_t wait_ms;
    env_lock(mirror->lock);
    while (!mirror->is_stopping) {
        if (!mirror_upload_step(mirror, &buffer, &wait_ms) && !mirror->is_stopping)
            env_wait(mirror->work, mirror->lock, wait_ms);
    }
    env_unlock(mirror->lock);
    buf_deinit(&buffer);
}

static bool begin_if_due(struct mirror *mirror)
{
    struct error err;
    if (env_mono_ns(mirror->env) < mirror->next_begin_ns)
        return false;
    if (mirror_begin(mirror, &err) == STATUS_OK) {
        mirror->begin_attempts = 0;
        mirror_works(mirror);
        env_lock(mirror->lock);
        mirror->is_begun = true;
        env_broadcast(mirror->work);
        env_unlock(mirror->lock);
        return true;
    }
    if (err.status == STATUS_HALTED) {
        mirror_refuse(mirror, &err);
        return false;
    }
    mirror_failed(mirror, MIRROR_BEGIN, &err);
    mirror->next_begin_ns =
        env_mono_ns(mirror->env) + mirror_back_off_ns(mirror, mirror->begin_attempts++);
    return false;
}

/* Somebody took away what was there: it is read again, and what is not there any more is copied
 * again. */
void mirror_vanished(struct mirror *mirror)
{
    env_lock(mirror->lock);
    mirror->is_begun = false;
    while (mirror->busy || mirror->is_planning)
        env_wait(mirror->moved, mirror->lock, tidy_wait_ms);
    mirror_uploads_drop(mirror);
    mirror->held_count = 0;
    for (uint32_t g = 0; g < mirror->group_count; g++)
        mirror->planned_seqs[g] = 0;
    mirror->wants_flush = true;
    mirror->is_in_doubt = false;
    mirror->stated = 0;
    env_unlock(mirror->lock);
    mirror->has_state = false;
}

static void tidy_step(struct mirror *mirror, bool is_forced)
{
    env_lock(mirror->lock);
    bool is_begun = mirror->is_begun, is_refused = mirror->is_refused;
    env_unlock(mirror->lock);
    if (is_refused)
        return;
    if (!is_begun)
        is_begun = begin_if_due(mirror);
    if (is_begun)
        mirror_tidy(mirror, is_forced);
}

static void tidy_main(void *context)
{
    struct mirror *mirror = context;
    env_lock(mirror->lock);
    while (!mirror->is_stopping) {
        env_unlock(mirror->lock);
        tidy_step(mirror, false);
        env_lock(mirror->lock);
        int64_t left = mirror->next_begin_ns - env_mono_ns(mirror->env);
        uint64_t wait_ms = tidy_wait_ms;
        if (!mirror->is_begun && !mirror->is_refused)
            wait_ms = left > 0 ? (uint64_t)left / 1000000 + 1 : 0;
        if (!mirror->is_stopping && wait_ms)
            env_wait(mirror->tidy, mirror->lock, wait_ms < tidy_wait_ms ? wait_ms : tidy_wait_ms);
    }
    env_unlock(mirror->lock);
}

/* ---- life ---- */

static enum status options_check(const struct mirror_options *options, struct error *err)
{
    if (options->uploads == 0 || options->uploads > MIRROR_UPLOADS_MAX)
        return error_set(err, STATUS_INVALID, "mirror: %u uploads at a time", options->uploads);
    if (options->range_bytes == 0 || options->range_bytes > MIRROR_RANGE_BYTES_MAX)
        return error_set(err, STATUS_INVALID, "mirror: ranges of %llu bytes",
                         (unsigned long long)options->range_bytes);
    if (options->retry_ms_min == 0 || options->retry_ms_max < options->retry_ms_min)
        return error_set(err, STATUS_INVALID, "mirror: back-off of nothing");
    return STATUS_OK;
}

enum status mirror_create(struct env *env, const struct mirror_options *options, struct wal *wal,
                          struct mirror **out_mirror, struct error *err)
{
    char root[STORE_URI_BYTES_MAX];
    TRY(options_check(options, err));
    struct mirror *mirror = mem_alloc_zero(1, sizeof *mirror);
    if (!mirror)
        return error_set(err, STATUS_NO_MEMORY, "mirror: out of memory");
    mirror->env = env;
    mirror->options = *options;
    mirror->options.url = NULL; /* the caller's */
    mirror->wal = wal;
    mirror->log_id = wal_log_id(wal);
    mirror->incarnation = wal_incarnation(wal);
    while (!mirror->writer)
        env_random(env, &mirror->writer, sizeof mirror->writer);
    mirror->group_count = wal_group_count(wal);
    mirror->tail = &mirror->head;
    mirror->lock = env_mutex_create(env);
    mirror->work = env_cond_create(env);
    mirror->tidy = env_cond_create(env);
    mirror->moved = env_cond_create(env);
    mirror->planned_seqs = mem_alloc_zero(mirror->group_count, sizeof(uint64_t));
    mirror->confirmed = mem_alloc_zero(mirror->group_count, sizeof(uint64_t));
    mirror->abandoned = mem_alloc_zero(mirror->group_count, sizeof(uint64_t));
    mirror->found = mem_alloc_zero(mirror->group_count, sizeof(uint64_t));
    enum status status = STATUS_OK;
    if (!mirror->lock || !mirror->work || !mirror->tidy || !mirror->moved ||
        !mirror->planned_seqs || !mirror->confirmed || !mirror->abandoned || !mirror->found)
        status = error_set(err, STATUS_NO_MEMORY, "mirror: out of memory");
    for (uint32_t g = 0; g < mirror->group_count && status == STATUS_OK; g++)
        mirror->found[g] = wal_synced_end(wal, g).seq;
    if (status == STATUS_OK)
        status = mirror_root(options->url, mirror->log_id, root, err);
    if (status == STATUS_OK)
        status = store_open(env, root, &mirror->store, err);
    if (status == STATUS_OK)
        *out_mirror = mirror;
    else
        mirror_destroy(mirror);
    return status == STATUS_OK ? STATUS_OK : error_prefix(err, "mirror.url");
}

enum status mirror_start(struct mirror *mirror, struct error *err)
{
    for (unsigned i = 0; i < mirror->options.uploads; i++)
        TRY(env_thread_start(mirror->env, "mirror", upload_main, mirror, &mirror->threads[i], err));
    return env_thread_start(mirror->env, "mirror-tidy", tidy_main, mirror, &mirror->tidy_thread,
                            err);
}

/* Everything synced is confirmed. Lock held. */
static bool is_even(const struct mirror *mirror, const uint64_t *seqs)
{
    for (uint32_t g = 0; g < mirror->group_count; g++)
        if (mirror->confirmed[g] < seqs[g])
            return false;
    return true;
}

/* Whether it works. Lock held. */
static bool is_well(const struct mirror *mirror)
{
    return mirror->is_begun && !mirror->is_failing && !mirror->is_refused;
}

/* Begins, copies and tidies, once. */
static void round_run(struct mirror *mirror)
{
    struct buf buffer = {0};
    uint64_t wait_ms;
    mirror->next_begin_ns = 0;
    if (!mirror->is_begun)
        tidy_step(mirror, true);
    env_lock(mirror->lock);
    mirror->is_failing = mirror->is_failing && !mirror->is_begun;
    mirror->wants_flush = true;
    for (struct upload *upload = mirror->head; upload; upload = upload->next)
        upload->next_try_ns = 0;
    while (is_well(mirror) && (mirror->wants_flush || mirror->head) &&
           mirror_upload_step(mirror, &buffer, &wait_ms))
        continue;
    bool is_good = is_well(mirror);
    env_unlock(mirror->lock);
    buf_deinit(&buffer);
    if (is_good)
        tidy_step(mirror, true);
}

enum status mirror_run_once(struct mirror *mirror, struct error *err)
{
    round_run(mirror);
    if (!mirror->is_begun && !mirror->is_failing && !mirror->is_refused)
        round_run(mirror); /* it had vanished */
    env_lock(mirror->lock);
    enum status status = is_well(mirror) ? STATUS_OK : mirror->why.status;
    if (status != STATUS_OK)
        *err = mirror->why;
    env_unlock(mirror->lock);
    return status;
}

void mirror_hurry(struct mirror *mirror)
{
    env_lock(mirror->lock);
    mirror->is_hurrying = true;
    struct mirror_waiter *waiters = mirror->is_failing ? waiters_take_all(mirror) : NULL;
    env_unlock(mirror->lock);
    waiters_tell(waiters, STATUS_CLOSED);
}

void mirror_stop(struct mirror *mirror, uint64_t timeout_ms)
{
    uint64_t *seqs = mem_alloc_zero(mirror->group_count, sizeof *seqs);
    int64_t until_ns = env_mono_ns(mirror->env) + (int64_t)timeout_ms * 1000000;
    for (uint32_t g = 0; seqs && g < mirror->group_count; g++)
        seqs[g] = wal_synced_end(mirror->wal, g).seq;
    env_lock(mirror->lock);
    mirror->wants_flush = true;
    env_broadcast(mirror->work);
    while (seqs && mirror->tidy_thread && !mirror->is_failing && !mirror->is_refused &&
           !is_even(mirror, seqs)) {
        int64_t left = until_ns - env_mono_ns(mirror->env);
        if (left <= 0)
            break;
        env_wait(mirror->moved, mirror->lock, (uint64_t)left / 1000000 + 1);
    }
    mirror->is_stopping = true;
    struct mirror_waiter *waiters = waiters_take_all(mirror);
    env_broadcast(mirror->work);
    env_broadcast(mirror->tidy);
    env_unlock(mirror->lock);
    waiters_tell(waiters, STATUS_CLOSED);
    for (unsigned i = 0; i < MIRROR_UPLOADS_MAX; i++) {
        if (mirror->threads[i])
            env_thread_join(mirror->threads[i]);
        mirror->threads[i] = NULL;
    }
    if (mirror->tidy_thread)
        env_thread_join(mirror->tidy_thread);
    mirror->tidy_thread = NULL;
    mem_free(seqs);
}

void mirror_destroy(struct mirror *mirror)
{
    if (!mirror)
        return;
    if (mirror->threads[0])
        mirror_stop(mirror, 0);
    mirror_uploads_drop(mirror);
    store_close(mirror->store);
    mem_free(mirror->progress);
    mem_free(mirror->held);
    mem_free(mirror->planned_seqs);
    mem_free(mirror->confirmed);
    mem_free(mirror->abandoned);
    mem_free(mirror->found);
    env_cond_destroy(mirror->work);
    env_cond_destroy(mirror->tidy);
    env_cond_destroy(mirror->moved);
    env_mutex_destroy(mirror->lock);
    mem_free(mirror);
}

/* ---- who waits ---- */

void mirror_wait(struct mirror *mirror, struct mirror_waiter *waiter, uint32_t group, uint64_t seq)
{
    enum status status = STATUS_OK;
    bool waits = false;
    waiter->group = group;
    waiter->seq = seq;
    env_lock(mirror->lock);
    if (mirror->is_refused)
        status = STATUS_HALTED;
    else if (mirror->is_stopping || (mirror->is_hurrying && mirror->is_failing))
        status = STATUS_CLOSED;
    else if (seq <= mirror->confirmed[group])
        status = seq <= mirror->abandoned[group] ? STATUS_RECLAIMED : STATUS_OK;
    else
        waits = true;
    if (waits) {
        waiter->next = mirror->waiters;
        mirror->waiters = waiter;
        mirror->waiting++;
        if (seq > mirror->planned_seqs[group]) {
            mirror->wants_flush = true;
            env_signal(mirror->work);
        }
    }
    env_unlock(mirror->lock);
    if (!waits)
        waiter->done(waiter, status);
}

bool mirror_wait_cancel(struct mirror *mirror, struct mirror_waiter *waiter)
{
    env_lock(mirror->lock);
    struct mirror_waiter **link = &mirror->waiters;
    while (*link && *link != waiter)
        link = &(*link)->next;
    bool is_there = *link != NULL;
    if (is_there) {
        *link = waiter->next;
        mirror->waiting--;
    }
    env_unlock(mirror->lock);
    return is_there;
}

/* ---- questions ---- */

uint64_t mirror_confirmed(struct mirror *mirror, uint32_t group)
{
    env_lock(mirror->lock);
    uint64_t seq = group < mirror->group_count ? mirror->confirmed[group] : 0;
    env_unlock(mirror->lock);
    return seq;
}

bool mirror_receipt(struct mirror *mirror, uint32_t group, uint64_t seq, int64_t *out_at_ms)
{
    *out_at_ms = 0;
    if (group >= mirror->group_count)
        return false;
    env_lock(mirror->lock);
    bool is_there = seq <= mirror->confirmed[group] && seq > mirror->abandoned[group];
    size_t oldest = mirror->ring_at > MIRROR_RING ? mirror->ring_at - MIRROR_RING : 0;
    for (size_t i = mirror->ring_at; is_there && i > oldest; i--) {
        const struct confirmation *step = &mirror->ring[(i - 1) % MIRROR_RING];
        if (step->group != group || step->after >= seq || step->through < seq)
            continue;
        /* What was there before this start may have been copied by then. */
        if (step->after || seq > mirror->found[group])
            *out_at_ms = step->at_ms;
        break;
    }
    env_unlock(mirror->lock);
    return is_there;
}

enum status mirror_check(struct mirror *mirror, struct error *err)
{
    env_lock(mirror->lock);
    bool is_refused = mirror->is_refused;
    if (is_refused)
        *err = mirror->why;
    env_unlock(mirror->lock);
    if (!is_refused)
        return STATUS_OK;
    err->status = STATUS_HALTED;
    return error_prefix(err, "commit=remote");
}

const char *mirror_step_name(enum mirror_step step)
{
    static const char *const names[MIRROR_STEPS] = {"begin",   "read",  "put",  "verify",
                                                    "confirm", "state", "sweep"};
    return names[step];
}

const char *mirror_condition_name(enum mirror_condition condition)
{
    static const char *const names[] = {"begins", "runs", "retries", "refused"};
    return names[condition];
}

const char *mirror_url(const struct mirror *mirror)
{
    return store_root(mirror->store);
}

/* What is synced and not planned yet. */
static uint64_t unplanned_bytes(struct mirror *mirror)
{
    uint64_t bytes = 0;
    size_t count = 0;
    env_lock(mirror->lock);
    uint64_t first_id = mirror->first_id, planned = mirror->planned_sum;
    env_unlock(mirror->lock);
    struct wal_extent *extents = mirror_extents(mirror, first_id, &count, NULL);
    for (size_t i = 0; extents && i < count; i++)
        bytes += extents[i].is_committed ? 0 : extents[i].bytes;
    mem_free(extents);
    return bytes > planned ? bytes - planned : 0;
}

struct mirror_stats mirror_stats(struct mirror *mirror)
{
    uint64_t unplanned = unplanned_bytes(mirror);
    int64_t now = env_mono_ns(mirror->env);
    env_lock(mirror->lock);
    struct mirror_stats stats = mirror->counters;
    stats.condition = mirror->is_refused   ? MIRROR_REFUSED
                      : mirror->is_failing ? MIRROR_RETRIES
                      : mirror->is_begun   ? MIRROR_RUNS
                                           : MIRROR_BEGINS;
    if (mirror->is_refused || mirror->is_failing)
        memcpy(stats.why, mirror->why.message, sizeof stats.why);
    stats.queue_bytes = mirror->queued_bytes + unplanned;
    if (mirror->head)
        stats.oldest_ms = (now - mirror->head->planned_ns) / 1000000;
    stats.waiting = mirror->waiting;
    env_unlock(mirror->lock);
    return stats;
}
