/* SPDX-License-Identifier: Apache-2.0
 *
 * From the mirror's objects to the directory of a log. The checkpoint comes first, because it says
 * which segments are done with. Of each other segment the ranges are written in the order of their
 * incarnations, so that the bytes of the highest remain; what no object gives is zeros, and named.
 * A segment that is not complete, though later ones are there, was once (L16): it goes to sealed/,
 * where a start cuts nothing. The last one goes to active/ unless it is complete.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "log/mirror/mirror.h"

static const uint64_t object_bytes_max = (uint64_t)4 << 30;

static enum status no_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "mirror: out of memory");
}

static enum status add_problem(struct mirror_plan *plan, struct error *err, const char *format, ...)
    PRINTF_LIKE(3, 4);

static enum status add_problem(struct mirror_plan *plan, struct error *err, const char *format, ...)
{
    va_list args;
    if (plan->problem_count == plan->problem_capacity) {
        size_t wider = plan->problem_capacity ? plan->problem_capacity * 2 : 8;
        struct mirror_problem *moved = mem_resize(plan->problems, wider * sizeof *moved);
        if (!moved)
            return no_memory(err);
        plan->problems = moved;
        plan->problem_capacity = wider;
    }
    va_start(args, format);
    vsnprintf(plan->problems[plan->problem_count++].text, sizeof plan->problems[0].text, format,
              args);
    va_end(args);
    return STATUS_OK;
}

/* Reads and checks one object. *out_is_good false: it is damaged or gone, which is noted. */
static enum status take(struct store *store, struct mirror_plan *plan,
                        const struct mirror_header *name, struct buf *out,
                        struct mirror_header *out_header, bool *out_is_good, struct error *err)
{
    char text[MIRROR_NAME_BYTES], uri[STORE_URI_BYTES_MAX];
    mirror_name_put(name, text);
    TRY(store_uri_join(plan->root, text, uri, err));
    buf_clear(out);
    *out_is_good = false;
    enum status status = store_get(store, uri, object_bytes_max, out, err);
    if (status == STATUS_OK)
        status = mirror_object_check(span_of(out->data, out->length), out_header, err);
    if (status == STATUS_OK && (!mirror_header_is_of(out_header, name) ||
                                !log_id_equal(out_header->log_id, plan->head.log_id)))
        status = error_set(err, STATUS_CORRUPT, "not what its name says");
    bool is_damage =
        status == STATUS_CORRUPT || status == STATUS_NOT_FOUND || status == STATUS_UNSUPPORTED;
    if (is_damage)
        return add_problem(plan, err, "%s: %.120s", text, err->message);
    TRY(status);
    *out_is_good = true;
    return STATUS_OK;
}

static enum status write_file(struct env *env, const char *path, struct span bytes,
                              struct error *err)
{
    struct env_file *file = NULL;
    TRY(env_open(env, path, ENV_WRITE | ENV_CREATE | ENV_TRUNCATE, &file, err));
    enum status status = env_write(file, 0, bytes.data, bytes.length, err);
    if (status == STATUS_OK)
        status = env_sync(file, err);
    env_close(file);
    return status;
}

/* ---- the checkpoint ---- */

static enum status fetch_state(struct env *env, struct store *store, struct mirror_plan *plan,
                               const char *dir, struct error *err)
{
    char path[PATH_BYTES_MAX], folder[PATH_BYTES_MAX];
    struct buf object = {0};
    enum status status = path_join(folder, dir, "state", err);
    if (status == STATUS_OK)
        status = path_join(path, folder, "0000000000000000.state", err);
    for (size_t i = 0; status == STATUS_OK && i < plan->state_count && !plan->has_state; i++) {
        status = take(store, plan, &plan->states[i], &object, &plan->state, &plan->has_state, err);
        if (status == STATUS_OK && plan->has_state)
            status = write_file(
                env, path,
                span_of(object.data + MIRROR_HEADER_BYTES, object.length - MIRROR_HEADER_BYTES),
                err);
    }
    buf_deinit(&object);
    TRY(status);
    return env_dir_sync(env, folder, err);
}

/* ---- segments ---- */

struct assembly {
    struct env *env;
    struct store *store;
    struct mirror_plan *plan;
    struct env_file *file;
    struct mirror_segment segment;
    struct mirror_header *good; /* ranges whose bytes are there */
    size_t good_count;
    struct buf object;
};

static enum status place_range(struct assembly *assembly, const struct mirror_header *name,
                               struct error *err)
{
    struct mirror_header header;
    bool is_good;
    TRY(take(assembly->store, assembly->plan, name, &assembly->object, &header, &is_good, err));
    if (!is_good)
        return STATUS_OK;
    TRY(env_write(assembly->file, header.from, assembly->object.data + MIRROR_HEADER_BYTES,
                  (size_t)(header.to - header.from), err));
    assembly->good[assembly->good_count++] = header;
    struct mirror_segment *segment = &assembly->segment;
    if (header.to > segment->bytes || (header.flags & MIRROR_IS_END)) {
        /* Where it ends, what is behind it is not of the same file. */
        segment->bytes = header.to;
        segment->is_complete = header.flags & MIRROR_IS_END;
    }
    if (header.floor > segment->floor)
        segment->floor = header.floor;
    return STATUS_OK;
}

/* What no good range has, up to the end, is named. */
static enum status name_gaps(struct assembly *assembly, struct error *err)
{
    uint64_t at = 0, end = assembly->segment.bytes;
    while (at < end) {
        uint64_t next = end;
        bool is_covered = false;
        for (size_t i = 0; i < assembly->good_count; i++) {
            const struct mirror_header *range = &assembly->good[i];
            if (range->from <= at && range->to > at) {
                at = range->to;
                is_covered = true;
            } else if (range->from > at && range->from < next) {
                next = range->from;
            }
        }
        if (is_covered)
            continue;
        TRY(add_problem(assembly->plan, err,
                        "segment %" PRIu64 ": bytes %" PRIu64 " to %" PRIu64 " are missing",
                        assembly->segment.id, at, next));
        at = next;
    }
    return STATUS_OK;
}

static enum status assemble(struct assembly *assembly, const struct mirror_header *names,
                            size_t count, const char *path, struct error *err)
{
    enum status status;
    assembly->segment = (struct mirror_segment){.id = names[0].id};
    assembly->good_count = 0;
    assembly->good = mem_alloc_zero(count, sizeof *assembly->good);
    if (!assembly->good)
        return no_memory(err);
    TRY_OR_DONE(status, env_open(assembly->env, path, ENV_READ | ENV_WRITE | ENV_CREATE,
                                 &assembly->file, err));
    for (size_t i = 0; i < count; i++)
        TRY_OR_DONE(status, place_range(assembly, &names[i], err));
    TRY_OR_DONE(status, name_gaps(assembly, err));
    TRY_OR_DONE(status, env_truncate(assembly->file, assembly->segment.bytes, err));
    status = env_sync(assembly->file, err);
done:
    env_close(assembly->file);
    assembly->file = NULL;
    mem_free(assembly->good);
    return status;
}

static enum status add_segment(struct mirror_plan *plan, const struct mirror_segment *segment,
                               struct error *err)
{
    if (plan->segment_count == plan->segment_capacity) {
        size_t wider = plan->segment_capacity ? plan->segment_capacity * 2 : 16;
        struct mirror_segment *moved = mem_resize(plan->segments, wider * sizeof *moved);
        if (!moved)
            return no_memory(err);
        plan->segments = moved;
        plan->segment_capacity = wider;
    }
    plan->segments[plan->segment_count++] = *segment;
    return STATUS_OK;
}

static enum status segment_path(const char *dir, const char *folder, uint64_t id,
                                char out[PATH_BYTES_MAX], struct error *err)
{
    char name[48];
    snprintf(name, sizeof name, "%s/%016" PRIx64 ".seg", folder, id);
    return path_join(out, dir, name, err);
}

static enum status fetch_segments(struct assembly *assembly, const struct wal *state,
                                  const char *dir, struct error *err)
{
    struct mirror_plan *plan = assembly->plan;
    char path[PATH_BYTES_MAX], last[PATH_BYTES_MAX];
    for (size_t i = 0, next; i < plan->range_count; i = next) {
        uint64_t id = plan->ranges[i].id;
        for (next = i; next < plan->range_count && plan->ranges[next].id == id;)
            next++;
        if (state && wal_restore_is_done_with(state, id))
            continue;
        TRY(segment_path(dir, "sealed", id, path, err));
        TRY(assemble(assembly, &plan->ranges[i], next - i, path, err));
        if (assembly->segment.bytes == 0)
            TRY(files_remove(assembly->env, path, err)); /* nothing of it verified */
        else
            TRY(add_segment(plan, &assembly->segment, err));
    }
    if (plan->segment_count == 0 || plan->segments[plan->segment_count - 1].is_complete)
        return STATUS_OK;
    uint64_t id = plan->segments[plan->segment_count - 1].id;
    TRY(segment_path(dir, "sealed", id, path, err));
    TRY(segment_path(dir, "active", id, last, err));
    return env_rename(assembly->env, path, last, err);
}

static enum status sync_folders(struct env *env, const char *dir, struct error *err)
{
    static const char *const folders[] = {"sealed", "active", "state"};
    char path[PATH_BYTES_MAX];
    for (size_t i = 0; i < COUNT_OF(folders); i++) {
        TRY(path_join(path, dir, folders[i], err));
        TRY(env_dir_sync(env, path, err));
    }
    return env_dir_sync(env, dir, err);
}

enum status mirror_fetch(struct env *env, struct store *store, struct mirror_plan *plan,
                         const char *dir, struct error *err)
{
    static const char *const folders[] = {"active", "sealed", "committed", "spare", "state"};
    struct assembly assembly = {.env = env, .store = store, .plan = plan};
    struct wal_restore restore = {.log_id = plan->head.log_id,
                                  .group_count = plan->head.group_count,
                                  .incarnation = plan->incarnation};
    struct wal_options options = wal_options_default(dir);
    struct wal *state = NULL;
    char path[PATH_BYTES_MAX];
    for (size_t i = 0; i < COUNT_OF(folders); i++) {
        TRY(path_join(path, dir, folders[i], err));
        TRY(files_make_dirs(env, path, err));
    }
    TRY(fetch_state(env, store, plan, dir, err));
    options.restore = &restore;
    options.is_read_only = true;
    if (plan->has_state)
        TRY(wal_open(env, &options, &state, err));
    enum status status = fetch_segments(&assembly, state, dir, err);
    wal_close(state);
    buf_deinit(&assembly.object);
    TRY(status);
    return sync_folders(env, dir, err);
}

void mirror_plan_prove(const struct mirror_plan *plan, struct wal_restore *restore)
{
    restore->log_id = plan->head.log_id;
    restore->group_count = plan->head.group_count;
    restore->proven_segment = 0;
    if (plan->segment_count == 0)
        return;
    const struct mirror_segment *last = &plan->segments[plan->segment_count - 1];
    restore->proven_segment = last->id;
    restore->proven_unit = last->is_complete ? 0 : last->floor;
    restore->proven_bytes = last->bytes;
}
