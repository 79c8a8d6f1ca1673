/* SPDX-License-Identifier: Apache-2.0
 *
 * States, and what goes. The order (docs/format/mirror.md): a picture of which segments every table
 * is past, then a checkpoint in which those count as reclaimed, confirmed, and only then are their
 * objects deleted; so at each moment the newest state and the ranges together tell everything that
 * no table has.
 */
#include "log/mirror/mirror_internal.h"

/* ---- states ---- */

static enum status state_put(struct mirror *mirror, struct error *err)
{
    struct buf object = {0}, image = {0};
    char name[MIRROR_NAME_BYTES];
    uint64_t covers = 0, version = wal_state_version(mirror->wal);
    bool is_put;
    enum status status;
    TRY_OR_DONE(status, wal_state_image(mirror->wal, false, &image, &covers, err));
    struct mirror_header header = {
        .kind = MIRROR_STATE,
        .log_id = mirror->log_id,
        .id = ++mirror->state_number,
        .to = image.length,
        .incarnation = mirror->incarnation,
        .floor = covers,
        .made_ns = env_wall_ns(mirror->env),
        .body_crc = crc32c(0, image.data, image.length),
    };
    uint8_t *at = buf_extend(&object, MIRROR_HEADER_BYTES);
    if (at)
        mirror_header_encode(at, &header);
    buf_put(&object, image.data, image.length);
    TRY_OR_DONE(status, buf_status(&object, "mirror: a state", err));
    mirror_name_put(&header, name);
    TRY_OR_DONE(status, mirror_put(mirror, name, &object, &is_put, err));
    mirror->has_state = true;
    mirror->state_version = version;
    mirror->next_state_ns = env_mono_ns(mirror->env) + (int64_t)mirror->options.state_ms * 1000000 +
                            (int64_t)(object.length >> 20) * 1000000000;
    env_lock(mirror->lock);
    mirror->counters.states_total++;
    mirror->stated = version + 1;
    mirror->wants_state = false;
    env_broadcast(mirror->work);
    env_unlock(mirror->lock);
done:
    buf_deinit(&image);
    buf_deinit(&object);
    return status;
}

struct newest {
    struct mirror *mirror;
    struct mirror_header two[2]; /* the newest first */
    bool deletes;
};

static bool is_newer(const struct mirror_header *a, const struct mirror_header *b)
{
    return a->incarnation != b->incarnation ? a->incarnation > b->incarnation : a->id > b->id;
}

static enum status state_look(void *context, const struct store_object *object, struct error *err)
{
    struct newest *newest = context;
    struct mirror_header name;
    if (!mirror_name_parse(mirror_name_of(newest->mirror, object), &name) ||
        name.kind != MIRROR_STATE)
        return STATUS_OK;
    if (newest->deletes)
        return is_newer(&newest->two[1], &name)
                   ? store_delete(newest->mirror->store, object->uri, err)
                   : STATUS_OK;
    if (is_newer(&name, &newest->two[0])) {
        newest->two[1] = newest->two[0];
        newest->two[0] = name;
    } else if (is_newer(&name, &newest->two[1])) {
        newest->two[1] = name;
    }
    return STATUS_OK;
}

/* Two are kept: one alone might be damaged. */
static enum status states_retire(struct mirror *mirror, struct error *err)
{
    struct newest newest = {.mirror = mirror};
    TRY(store_list(mirror->store, "state/", state_look, &newest, err));
    newest.deletes = true;
    return store_list(mirror->store, "state/", state_look, &newest, err);
}

/* ---- deletions ---- */

/* What the store itself leaves of a put that was interrupted. */
static struct span without_suffix(struct span name)
{
    enum { SUFFIX = 21 }; /* ".<16 hex digits>.tmp" */
    if (name.length <= SUFFIX || memcmp(name.data + name.length - 4, ".tmp", 4) != 0 ||
        name.data[name.length - SUFFIX] != '.')
        return name;
    return span_of(name.data, name.length - SUFFIX);
}

struct deletion {
    struct mirror *mirror;
    uint64_t incarnations_below; /* of ranges that go */
};

static enum status delete_range(void *context, const struct store_object *object, struct error *err)
{
    struct deletion *deletion = context;
    struct mirror_header name;
    if (!mirror_name_parse(without_suffix(mirror_name_of(deletion->mirror, object)), &name) ||
        name.kind != MIRROR_RANGE || name.incarnation >= deletion->incarnations_below)
        return STATUS_OK;
    TRY(store_delete(deletion->mirror->store, object->uri, err));
    env_lock(deletion->mirror->lock);
    deletion->mirror->counters.swept_total++;
    env_unlock(deletion->mirror->lock);
    return STATUS_OK;
}

static enum status delete_segment(struct mirror *mirror, uint64_t segment_id, struct error *err)
{
    struct deletion deletion = {.mirror = mirror, .incarnations_below = UINT64_MAX};
    char name[MIRROR_NAME_BYTES];
    mirror_name_put(&(struct mirror_header){.kind = MIRROR_RANGE, .id = segment_id}, name);
    strrchr(name, '/')[1] = '\0';
    TRY(store_list(mirror->store, name, delete_range, &deletion, err));
    store_drop_directory(mirror->store, name);
    env_lock(mirror->lock);
    for (size_t i = 0; i < mirror->held_count; i++) {
        if (mirror->held[i] != segment_id)
            continue;
        memmove(&mirror->held[i], &mirror->held[i + 1],
                (mirror->held_count - i - 1) * sizeof *mirror->held);
        mirror->held_count--;
        break;
    }
    env_unlock(mirror->lock);
    return STATUS_OK;
}

/* Ranges of it are on their way. Lock held. */
static bool is_queued(const struct mirror *mirror, uint64_t segment_id)
{
    for (const struct upload *upload = mirror->head; upload; upload = upload->next)
        if (upload->segment_id == segment_id)
            return true;
    return false;
}

/* Segments in the mirror that no table needs. A segment that the log does not have was reclaimed,
 * unless the log has lost something: then it may be the last copy. NULL: out of memory. */
static uint64_t *find_done(struct mirror *mirror, size_t *out_count)
{
    struct wal_damage damage;
    size_t extent_count = 0, count = 0, at = 0;
    struct wal_extent *extents = mirror_extents(mirror, 0, &extent_count, NULL);
    bool is_damaged = wal_damage_at(mirror->wal, 0, &damage);
    env_lock(mirror->lock);
    size_t held = mirror->held_count;
    env_unlock(mirror->lock);
    uint64_t *done = extents ? mem_alloc_zero(held + 1, sizeof *done) : NULL;
    env_lock(mirror->lock);
    for (size_t i = 0; done && i < mirror->held_count && i < held; i++) {
        uint64_t id = mirror->held[i];
        while (at < extent_count && extents[at].segment_id < id)
            at++;
        bool is_here = at < extent_count && extents[at].segment_id == id;
        bool is_over = at < extent_count && (is_here ? extents[at].is_committed : !is_damaged);
        if (is_over && !is_queued(mirror, id))
            done[count++] = id;
    }
    env_unlock(mirror->lock);
    mem_free(extents);
    *out_count = count;
    return done;
}

/* Everything is there under our own incarnation: what an earlier one wrote is told twice. */
static enum status delete_lower(struct mirror *mirror, struct error *err)
{
    struct deletion deletion = {.mirror = mirror, .incarnations_below = mirror->incarnation};
    env_lock(mirror->lock);
    bool is_told = mirror->counters.confirmed_wall_ms > 0;
    env_unlock(mirror->lock);
    if (!mirror->has_lower || !mirror->has_state || !is_told)
        return STATUS_OK;
    TRY(store_list(mirror->store, "segments/", delete_range, &deletion, err));
    mirror->has_lower = false;
    return STATUS_OK;
}

static enum status tidy(struct mirror *mirror, bool is_forced, enum mirror_step *out_step,
                        struct error *err)
{
    int64_t now = env_mono_ns(mirror->env);
    size_t count = 0;
    uint64_t *done = NULL;
    bool may_sweep = is_forced || now >= mirror->next_sweep_ns;
    *out_step = MIRROR_PUT_STATE;
    if (may_sweep && !(done = find_done(mirror, &count)))
        return error_set(err, STATUS_NO_MEMORY, "mirror: out of memory");
    bool is_changed = mirror->state_version != wal_state_version(mirror->wal);
    env_lock(mirror->lock);
    bool is_due = mirror->wants_state || (is_changed && now >= mirror->next_state_ns);
    env_unlock(mirror->lock);
    enum status status = STATUS_OK;
    if (count > 0 || !mirror->has_state || is_due) {
        TRY_OR_DONE(status, mirror_head_check(mirror, err));
        TRY_OR_DONE(status, state_put(mirror, err));
        *out_step = MIRROR_SWEEP;
        TRY_OR_DONE(status, states_retire(mirror, err));
    }
    *out_step = MIRROR_SWEEP;
    for (size_t i = 0; i < count; i++)
        TRY_OR_DONE(status, delete_segment(mirror, done[i], err));
    TRY_OR_DONE(status, delete_lower(mirror, err));
    if (may_sweep)
        mirror->next_sweep_ns = now + (int64_t)mirror->options.sweep_ms * 1000000;
done:
    mem_free(done);
    return status;
}

void mirror_tidy(struct mirror *mirror, bool is_forced)
{
    struct error err;
    enum mirror_step step = MIRROR_BEGIN;
    enum status status = STATUS_OK;
    int64_t now = env_mono_ns(mirror->env);
    env_lock(mirror->lock);
    bool is_in_doubt = mirror->is_in_doubt;
    env_unlock(mirror->lock);
    if (!is_forced && mirror->tidy_attempts && now < mirror->next_tidy_ns)
        return;
    if (is_forced || is_in_doubt || now >= mirror->next_head_ns) {
        status = mirror_head_check(mirror, &err);
        mirror->next_head_ns = now + (int64_t)mirror->options.head_ms * 1000000;
    }
    if (status == STATUS_OK)
        status = tidy(mirror, is_forced, &step, &err);
    if (status == STATUS_HALTED) {
        mirror_refuse(mirror, &err);
    } else if (status == STATUS_NOT_FOUND) {
        mirror_vanished(mirror);
    } else if (status != STATUS_OK) {
        mirror_failed(mirror, step, &err);
        mirror->next_tidy_ns = now + mirror_back_off_ns(mirror, mirror->tidy_attempts++);
    } else {
        if (mirror->tidy_attempts)
            mirror_works(mirror);
        mirror->tidy_attempts = 0;
        env_lock(mirror->lock);
        mirror->is_in_doubt = false;
        env_unlock(mirror->lock);
    }
}
