/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranges: planned in the order of the log from what is synced, copied by a few threads, confirmed
 * in that order. A plan takes a picture of the log under its lock: how far each segment is synced,
 * and the groups' ends that go with it. Once every range of the picture is confirmed, so are the
 * ends.
 */
#include "log/mirror/mirror_internal.h"

/* ---- planning ---- */

struct plan {
    struct upload *head, **tail;
    size_t count, room;
    bool is_whole; /* the picture, with what was planned before */
    uint64_t *seqs;
    int64_t now_ns;
};

/* NULL: out of memory. */
static struct progress *progress_of(struct mirror *mirror, uint64_t segment_id)
{
    for (size_t i = mirror->progress_count; i > 0; i--)
        if (mirror->progress[i - 1].segment_id == segment_id)
            return &mirror->progress[i - 1];
    if (!mirror_grow((void **)&mirror->progress, &mirror->progress_capacity, mirror->progress_count,
                     sizeof *mirror->progress))
        return NULL;
    struct progress *progress = &mirror->progress[mirror->progress_count++];
    *progress = (struct progress){.segment_id = segment_id};
    return progress;
}

static bool plan_add(struct mirror *mirror, struct plan *plan, const struct wal_extent *extent,
                     struct progress *progress)
{
    struct upload *upload = mem_alloc_zero(1, sizeof *upload);
    if (!upload || !mirror_hold(mirror, extent->segment_id)) {
        mem_free(upload);
        return false;
    }
    uint64_t left = extent->bytes - progress->planned;
    uint64_t bytes = left < mirror->options.range_bytes ? left : mirror->options.range_bytes;
    bool is_last = bytes == left;
    *upload = (struct upload){.segment_id = extent->segment_id,
                              .from = progress->planned,
                              .to = progress->planned + bytes,
                              .floor = is_last ? extent->unit : 0,
                              .is_end = is_last && extent->is_sealed,
                              .planned_ns = plan->now_ns};
    progress->planned += bytes;
    *plan->tail = upload;
    plan->tail = &upload->next;
    plan->count++;
    return true;
}

/* False: out of memory; what was planned by then is good. */
static bool plan_segment(struct mirror *mirror, struct plan *plan, const struct wal_extent *extent)
{
    struct progress *progress = progress_of(mirror, extent->segment_id);
    if (!progress)
        return false;
    if (progress->is_done)
        return true;
    if (extent->is_committed && progress->planned < extent->bytes) {
        mirror_abandon(mirror, extent->segment_id); /* its rows are in their tables */
        progress->planned = extent->bytes;
    }
    while (progress->planned < extent->bytes) {
        if (plan->count == plan->room) {
            plan->is_whole = false;
            return true;
        }
        if (!plan_add(mirror, plan, extent, progress))
            return false;
    }
    progress->is_done = extent->is_sealed;
    return true;
}

/* Segments that are not here any more were committed, and gone before they were planned. */
static void progress_trim(struct mirror *mirror, const struct wal_extent *extents, size_t count)
{
    uint64_t sum = 0, first_id = mirror->first_id;
    size_t kept = 0;
    for (size_t i = 0; i < mirror->progress_count; i++) {
        struct progress *progress = &mirror->progress[i];
        bool is_here = false;
        for (size_t e = 0; e < count && !is_here; e++)
            is_here = extents[e].segment_id == progress->segment_id;
        if (!is_here && !progress->is_done)
            mirror_abandon(mirror, progress->segment_id);
        bool is_over = progress->is_done || !is_here;
        if (is_over && kept == 0) {
            first_id = progress->segment_id + 1;
            continue;
        }
        progress->is_done = is_over;
        sum += progress->planned;
        mirror->progress[kept++] = *progress;
    }
    mirror->progress_count = kept;
    env_lock(mirror->lock);
    mirror->first_id = first_id;
    mirror->planned_sum = sum;
    env_unlock(mirror->lock);
}

/* Segments that came and went between two pictures: nothing of them was ever planned. */
static void gaps_abandon(struct mirror *mirror, const struct wal_extent *extents, size_t count)
{
    uint64_t first_of_start, next = mirror->seen_id + 1;
    uint64_t newest = wal_segment_newest(mirror->wal, &first_of_start);
    bool has_gap = false;
    if (next < first_of_start) /* nobody waits for what is older */
        next = first_of_start;
    for (size_t i = 0; i < count; i++) {
        if (extents[i].segment_id < next)
            continue;
        has_gap |= extents[i].segment_id > next;
        next = extents[i].segment_id + 1;
    }
    mirror->seen_id = next - 1;
    if (has_gap || newest > next)  /* the newest may not be there yet */
        mirror_abandon(mirror, 0); /* none of that number is there: all that is gone */
}

static void plan_free(struct plan *plan)
{
    while (plan->head) {
        struct upload *next = plan->head->next;
        mem_free(plan->head);
        plan->head = next;
    }
    mem_free(plan->seqs);
}

/* The plan's ranges join the queue; its picture's ends go with the last one. Lock held, and given
 * up for who is told. */
static void plan_take(struct mirror *mirror, struct plan *plan)
{
    struct upload *last = NULL;
    while (plan->head) {
        last = plan->head;
        plan->head = last->next;
        last->next = NULL;
        *mirror->tail = last;
        mirror->tail = &last->next;
        mirror->queued++;
        mirror->queued_bytes += last->to - last->from;
    }
    if (!plan->is_whole)
        return;
    for (uint32_t g = 0; g < mirror->group_count; g++)
        mirror->planned_seqs[g] = plan->seqs[g];
    if (!mirror->head) {
        mirror_publish(mirror, plan->seqs);
        return;
    }
    for (struct upload *at = mirror->head; at && !last; at = at->next)
        last = at->next ? NULL : at; /* nothing new: the ends go with what is under way */
    uint64_t *before = last->seqs;
    last->seqs = plan->seqs;
    plan->seqs = before;
}

/* Lock held, and given up meanwhile. */
static void plan_make(struct mirror *mirror)
{
    int64_t now = env_mono_ns(mirror->env);
    struct plan plan = {.is_whole = true, .now_ns = now};
    size_t count = 0, room = MIRROR_QUEUED_MIN + 2 * (size_t)mirror->options.uploads;
    plan.tail = &plan.head;
    plan.room = room - mirror->queued;
    mirror->is_planning = true;
    mirror->wants_flush = false;
    mirror->next_plan_ns = now + (int64_t)mirror->options.interval_ms * 1000000;
    env_unlock(mirror->lock);
    plan.seqs = mem_alloc_zero(mirror->group_count, sizeof *plan.seqs);
    struct wal_extent *extents =
        plan.seqs ? mirror_extents(mirror, mirror->first_id, &count, plan.seqs) : NULL;
    bool is_made = extents != NULL;
    for (size_t i = 0; i < count && is_made && plan.is_whole; i++)
        is_made = plan_segment(mirror, &plan, &extents[i]);
    if (extents) {
        progress_trim(mirror, extents, count);
        gaps_abandon(mirror, extents, count);
    }
    env_lock(mirror->lock);
    plan.is_whole &= is_made;
    if (!plan.is_whole)
        mirror->wants_flush |= is_made; /* on with it as soon as there is room */
    plan_take(mirror, &plan);
    mirror->is_planning = false;
    env_broadcast(mirror->work);
    env_broadcast(mirror->moved);
    env_unlock(mirror->lock);
    plan_free(&plan);
    mem_free(extents);
    env_lock(mirror->lock);
}

/* ---- copying ---- */

/* A compacted segment lacks what every table has: whoever waits for such an entry is told, and what
 * it said of tables and producers is in a state before bytes without it can take its place. BUSY:
 * there is none yet. */
static enum status compacted_admit(struct mirror *mirror, uint64_t segment_id, uint64_t version,
                                   struct error *err)
{
    mirror_abandon(mirror, segment_id);
    env_lock(mirror->lock);
    bool is_stated = mirror->stated > version;
    mirror->wants_state |= !is_stated;
    if (!is_stated)
        env_signal(mirror->tidy);
    env_unlock(mirror->lock);
    return is_stated ? STATUS_OK : error_set(err, STATUS_BUSY, "mirror: a state comes first");
}

static enum status range_read(struct mirror *mirror, const struct upload *upload,
                              struct buf *buffer, struct error *err)
{
    struct wal_segment_file *file = NULL;
    uint64_t version;
    size_t bytes = (size_t)(upload->to - upload->from);
    buf_clear(buffer);
    uint8_t *at = buf_extend(buffer, MIRROR_HEADER_BYTES + bytes);
    TRY(buf_status(buffer, "mirror: a range", err));
    TRY(wal_segment_open(mirror->wal, upload->segment_id, &file, err));
    enum status status = wal_segment_read(file, upload->from, at + MIRROR_HEADER_BYTES, bytes, err);
    bool is_compacted = wal_segment_is_compacted(file, &version);
    wal_segment_close(file);
    if (status == STATUS_OK && is_compacted)
        status = compacted_admit(mirror, upload->segment_id, version, err);
    TRY(status);
    struct mirror_header header = {
        .kind = MIRROR_RANGE,
        .flags = upload->is_end ? MIRROR_IS_END : 0,
        .log_id = mirror->log_id,
        .id = upload->segment_id,
        .from = upload->from,
        .to = upload->to,
        .incarnation = mirror->incarnation,
        .floor = upload->floor,
        .made_ns = env_wall_ns(mirror->env),
        .body_crc = crc32c(0, at + MIRROR_HEADER_BYTES, bytes),
    };
    mirror_header_encode(at, &header);
    return STATUS_OK;
}

enum status mirror_put(struct mirror *mirror, const char *name, const struct buf *object,
                       bool *out_is_put, struct error *err)
{
    struct store_object stored;
    *out_is_put = false;
    TRY(store_put(mirror->store, name, object->data, object->length, err));
    *out_is_put = true;
    TRY(store_stat(mirror->store, name, &stored, err));
    return stored.bytes == object->length
               ? STATUS_OK
               : error_set(err, STATUS_CORRUPT, "mirror: %s has %llu bytes after a put of %zu",
                           name, (unsigned long long)stored.bytes, object->length);
}

static enum status range_copy(struct mirror *mirror, const struct upload *upload,
                              struct buf *buffer, enum mirror_step *out_step, struct error *err)
{
    char name[MIRROR_NAME_BYTES];
    bool is_put;
    struct mirror_header header = {.kind = MIRROR_RANGE,
                                   .id = upload->segment_id,
                                   .from = upload->from,
                                   .to = upload->to,
                                   .incarnation = mirror->incarnation};
    *out_step = MIRROR_READ;
    TRY(range_read(mirror, upload, buffer, err));
    mirror_name_put(&header, name);
    enum status status = mirror_put(mirror, name, buffer, &is_put, err);
    *out_step = is_put ? MIRROR_VERIFY : MIRROR_PUT;
    TRY(status);
    *out_step = MIRROR_CONFIRM;
    return mirror_head_check(mirror, err);
}

/* What is confirmed at the front of the queue leaves it. Lock held, and given up meanwhile. */
static void queue_settle(struct mirror *mirror)
{
    while (mirror->head && mirror->head->step == UPLOAD_DONE) {
        struct upload *upload = mirror->head;
        mirror->head = upload->next;
        if (!mirror->head)
            mirror->tail = &mirror->head;
        mirror->queued--;
        if (upload->seqs)
            mirror_publish(mirror, upload->seqs);
        mem_free(upload->seqs);
        mem_free(upload);
    }
    env_broadcast(mirror->moved);
}

/* Lock held, and given up meanwhile. */
static void upload_run(struct mirror *mirror, struct upload *upload, struct buf *buffer)
{
    struct error err;
    enum mirror_step step;
    upload->step = UPLOAD_BUSY;
    mirror->busy++;
    env_unlock(mirror->lock);
    enum status status = range_copy(mirror, upload, buffer, &step, &err);
    bool is_gone = step == MIRROR_READ && status == STATUS_RECLAIMED;
    bool is_in_doubt = step == MIRROR_CONFIRM && status == STATUS_NOT_FOUND;
    bool is_early = step == MIRROR_READ && status == STATUS_BUSY;
    if (step == MIRROR_CONFIRM && status == STATUS_HALTED)
        mirror_refuse(mirror, &err);
    else if (status != STATUS_OK && !is_gone && !is_in_doubt && !is_early)
        mirror_failed(mirror, step, &err);
    else if (!is_in_doubt && !is_early)
        mirror_works(mirror);
    if (is_gone)
        mirror_abandon(mirror, upload->segment_id);
    env_lock(mirror->lock);
    mirror->busy--;
    if (is_in_doubt) { /* there is no head: whoever looks after it begins again */
        mirror->is_in_doubt = true;
        env_signal(mirror->tidy);
    }
    if (status != STATUS_OK && !is_gone) {
        upload->step = UPLOAD_READY;
        upload->next_try_ns = env_mono_ns(mirror->env) +
                              mirror_back_off_ns(mirror, is_early ? 0 : upload->attempts++);
        env_broadcast(mirror->moved);
        return;
    }
    upload->step = UPLOAD_DONE;
    mirror->queued_bytes -= upload->to - upload->from;
    mirror->counters.abandoned_total += is_gone;
    if (!is_gone) {
        mirror->counters.uploads_total++;
        mirror->counters.uploaded_bytes_total += upload->to - upload->from;
    }
    queue_settle(mirror);
}

static void wait_less(uint64_t *wait_ms, int64_t until_ns, int64_t now_ns)
{
    uint64_t ms = until_ns > now_ns ? (uint64_t)(until_ns - now_ns) / 1000000 + 1 : 0;
    *wait_ms = ms < *wait_ms ? ms : *wait_ms;
}

/* While something fails, what is synced gathers: few large ranges then, not many small ones. */
static bool plan_is_due(struct mirror *mirror, int64_t now, uint64_t *wait_ms)
{
    size_t room = mirror->is_failing ? mirror->options.uploads
                                     : MIRROR_QUEUED_MIN + 2 * (size_t)mirror->options.uploads;
    if (mirror->is_planning || mirror->queued >= room)
        return false;
    if (mirror->wants_flush || mirror->next_plan_ns <= now)
        return true;
    wait_less(wait_ms, mirror->next_plan_ns, now);
    return false;
}

bool mirror_upload_step(struct mirror *mirror, struct buf *buffer, uint64_t *out_wait_ms)
{
    int64_t now = env_mono_ns(mirror->env);
    *out_wait_ms = UINT64_MAX;
    if (!mirror->is_begun || mirror->is_refused)
        return false;
    for (struct upload *upload = mirror->head; upload; upload = upload->next) {
        if (upload->step != UPLOAD_READY)
            continue;
        if (upload->next_try_ns <= now) {
            upload_run(mirror, upload, buffer);
            return true;
        }
        wait_less(out_wait_ms, upload->next_try_ns, now);
    }
    if (!plan_is_due(mirror, now, out_wait_ms))
        return false;
    plan_make(mirror);
    return true;
}

void mirror_uploads_drop(struct mirror *mirror)
{
    while (mirror->head) {
        struct upload *next = mirror->head->next;
        mem_free(mirror->head->seqs);
        mem_free(mirror->head);
        mirror->head = next;
    }
    mirror->tail = &mirror->head;
    mirror->queued = 0;
    mirror->queued_bytes = 0;
    mirror->progress_count = 0;
    mirror->first_id = mirror->planned_sum = 0;
}
