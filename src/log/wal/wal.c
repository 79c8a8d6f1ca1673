/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening, closing, the threads and the small questions. The engine's threads ("wal", two alike)
 * write what wal_submit queued, one at a time, and complete it beside the next unit; they add the
 * floor unit when the log falls idle and seal by time; the keeper
 * ("wal-keep") moves, sweeps, checkpoints and keeps spares. Order of a start: lock, checkpoint
 * loaded, segments recovered, checkpoint written, one NOOP in every group under a new term synced,
 * threads.
 */
#include <stdio.h>

#include "log/wal/wal_internal.h"

struct wal_options wal_options_default(const char *dir)
{
    return (struct wal_options){
        .dir = dir,
        .group_count = 0,
        .segment_bytes = 64 << 20,
        .seal_after_ms = 60000,
        .unit_bytes_max = 160 << 20,
        .copy_ahead_bytes = 512,
        .budget_bytes = 0,
        .producers_refused_at_percent = 80,
        .volume_free_percent_min = 5,
        .keep_committed_ms = 24ull * 3600 * 1000,
        .keep_committed_percent = 25,
        .compacted_from_percent = 33,
        .compacted_below_percent = 25,
        .producers_max = 100000,
        .keep_producers_ms = 7ull * 24 * 3600 * 1000,
    };
}

/* ---- paths ---- */

void wal_path(const struct wal *wal, char out[PATH_BYTES_MAX], const char *folder,
              const char *format, uint64_t number)
{
    char name[64] = "";
    if (format) {
        /* Formats are this module's own literals: sixteen digits and a suffix. */
        const char *suffix = format + strlen("%016llx");
        snprintf(name, sizeof name, "/%016llx%s", (unsigned long long)number, suffix);
    }
    int length = snprintf(out, PATH_BYTES_MAX, "%s/%s%s", wal->dir, folder, name);
    CHECK(length > 0 && length < PATH_BYTES_MAX); /* wal_open bounds the directory's length */
}

const char *segment_folder(enum segment_place place)
{
    static const char *const folders[] = {"active", "sealed", "committed"};
    return folders[place];
}

void wal_segment_path(const struct wal *wal, uint64_t id, enum segment_place place,
                      char out[PATH_BYTES_MAX])
{
    wal_path(wal, out, segment_folder(place), "%016llx.seg", id);
}

uint64_t wal_allocated(struct env *env, const char *path)
{
    struct env_stat stat;
    struct error ignored;
    return env_path_stat(env, path, &stat, &ignored) == STATUS_OK ? stat.allocated_bytes : 0;
}

struct log_id wal_log_id_of_segment(const struct wal *wal, uint64_t id)
{
    size_t at = wal->identity_count;
    while (at > 1 && wal->identities[at - 1].first_segment > id)
        at--;
    return wal->identities[at - 1].log_id;
}

/* ---- long locks ---- */

void wal_lead_acquire(struct wal *wal)
{
    wal->control_waiting++;
    while (wal->is_leading)
        env_wait(wal->freed, wal->lock, UINT64_MAX);
    wal->control_waiting--;
    wal->is_leading = true;
    draft_forget_ahead(wal);
}

void wal_lead_release(struct wal *wal)
{
    wal->is_leading = false;
    if (wal->control_waiting > 0) {
        env_broadcast(wal->freed);
        return;
    }
    if (!wal->queue_head) {
        if (wal->is_stopping)
            env_signal(wal->work);
        return;
    }
    struct waiter *waiter =
        (struct waiter *)(uintptr_t)wal->queue_head->engine_private[WORD_WAITER];
    if (!waiter) {
        env_signal(wal->work);
        return;
    }
    env_lock(waiter->lock);
    waiter->may_lead = true;
    env_signal(waiter->cond);
    env_unlock(waiter->lock);
}

void wal_state_acquire(struct wal *wal)
{
    while (wal->is_state_busy)
        env_wait(wal->freed, wal->lock, UINT64_MAX);
    wal->is_state_busy = true;
}

void wal_state_release(struct wal *wal)
{
    wal->is_state_busy = false;
    env_broadcast(wal->freed);
}

void wal_poke(struct wal *wal)
{
    wal->is_poked = true;
    env_signal(wal->keep);
}

_Noreturn void wal_die(struct wal *wal, const struct error *err)
{
    struct error why = *err;
    env_lock(wal->lock);
    wal->is_dead = true;
    wal->writer.is_writing = false;
    draft_abandon(wal); /* its submissions are about to be answered, and gone */
    struct wal_submission *queue = wal->queue_head;
    wal->queue_head = wal->queue_tail = NULL;
    env_unlock(wal->lock);
    why.status = STATUS_IO;
    while (queue) {
        struct wal_submission *next = queue->next;
        writer_complete(wal, queue, STATUS_IO, &why);
        queue = next;
    }
    env_fatal_exit(wal->env, 74, why.message);
    CHECK(false && "env_fatal_exit returned");
    for (;;)
        continue;
}

/* ---- threads ---- */

/* Is there work of time? Else *out_wait_ms says how long not. Lock held. */
static bool engine_due(const struct wal *wal, uint64_t *out_wait_ms, bool *out_is_seal)
{
    const struct writer *writer = &wal->writer;
    /* Who leads leaves a unit behind that wants a floor; he need not wake us then. */
    *out_wait_ms = wal->is_leading ? WAL_IDLE_FLOOR_MS : UINT64_MAX;
    if (wal->is_leading || !writer->segment)
        return false;
    int64_t now = env_mono_ns(wal->env);
    int64_t seal_in = writer->opened_ns + (int64_t)wal->options.seal_after_ms * 1000000 - now;
    int64_t floor_in = writer->synced_ns + (int64_t)WAL_IDLE_FLOOR_MS * 1000000 - now;
    *out_is_seal = seal_in <= 0;
    if (seal_in <= 0 || (writer->needs_floor && floor_in <= 0))
        return true;
    int64_t next = writer->needs_floor && floor_in < seal_in ? floor_in : seal_in;
    *out_wait_ms = (uint64_t)next / 1000000 + 1;
    return false;
}

static void engine_timed(struct wal *wal, bool is_seal)
{
    struct error err;
    enum status status = is_seal ? writer_seal(wal, &err) : writer_floor(wal, &err);
    if (status == STATUS_IO)
        wal_die(wal, &err);
    if (status != STATUS_OK)
        wal->writer.opened_ns = env_mono_ns(wal->env); /* no space, no memory: later again */
}

static void engine_main(void *context)
{
    enum { ROUNDS = 16 };
    struct wal *wal = context;
    env_lock(wal->lock);
    for (;;) {
        uint64_t wait_ms;
        bool is_seal, is_free = !wal->is_leading && wal->control_waiting == 0;
        if (is_free && wal->queue_head) {
            wal->is_leading = true;
            writer_run(wal);
            /* The disk is not kept waiting for a change of threads: the other one completes. */
            for (int i = 0;
                 i < ROUNDS && wal->queue_head && wal->control_waiting == 0 && !wal->is_dead; i++) {
                if (!wal->is_completing)
                    env_signal(wal->work);
                writer_run(wal);
            }
            wal_lead_release(wal);
            writer_completions_run(wal, ROUNDS);
            continue;
        }
        if (wal->finished_head && !wal->is_completing) {
            writer_completions_run(wal, ROUNDS);
            continue;
        }
        if (wal->is_stopping && is_free)
            break;
        if (engine_due(wal, &wait_ms, &is_seal) && is_free) {
            wal->is_leading = true;
            env_unlock(wal->lock);
            engine_timed(wal, is_seal);
            env_lock(wal->lock);
            wal_lead_release(wal);
            continue;
        }
        if (wal->is_stopping)
            wait_ms = 1;
        wal->engine_until_ns =
            wait_ms == UINT64_MAX ? INT64_MAX : env_mono_ns(wal->env) + (int64_t)wait_ms * 1000000;
        env_wait(wal->work, wal->lock, wait_ms);
    }
    env_unlock(wal->lock);
}

static void keeper_main(void *context)
{
    struct wal *wal = context;
    env_lock(wal->lock);
    while (!wal->is_stopping) {
        if (!wal->is_poked)
            env_wait(wal->keep, wal->lock, WAL_KEEPER_MS);
        wal->is_poked = false;
        if (wal->is_stopping)
            break;
        env_unlock(wal->lock);
        keeper_round(wal);
        env_lock(wal->lock);
    }
    env_unlock(wal->lock);
}

/* ---- opening ---- */

static enum status options_check(const struct wal_options *options, struct error *err)
{
    if (!options->dir || !options->dir[0] || strlen(options->dir) > PATH_BYTES_MAX - 64)
        return error_set(err, STATUS_INVALID, "log: no directory, or its name is too long");
    if (options->segment_bytes < 16 << 10 || options->segment_bytes % WAL_BLOCK != 0 ||
        options->segment_bytes > (uint64_t)64 << 30)
        return error_set(err, STATUS_INVALID, "log: segments of %llu bytes",
                         (unsigned long long)options->segment_bytes);
    if (options->unit_bytes_max < 16 << 10 || options->unit_bytes_max > (uint64_t)1 << 30)
        return error_set(err, STATUS_INVALID, "log: write units of %llu bytes",
                         (unsigned long long)options->unit_bytes_max);
    if (options->producers_refused_at_percent > 100 || options->volume_free_percent_min > 100 ||
        options->keep_committed_percent > 100 || options->compacted_from_percent > 100 ||
        options->compacted_below_percent > 100)
        return error_set(err, STATUS_INVALID, "log: a percentage above 100");
    return STATUS_OK;
}

/* The default budget fits the volume, and the segments the budget. */
static enum status budget_set(struct wal *wal, struct error *err)
{
    struct wal_options *options = &wal->options;
    enum { SEGMENTS_LEAST = 8 };
    if (options->budget_bytes == 0) {
        struct env_volume volume;
        TRY(env_volume_stat(wal->env, wal->dir, &volume, err));
        options->budget_bytes = (uint64_t)50 << 30;
        if (volume.bytes_total / 2 < options->budget_bytes)
            options->budget_bytes = volume.bytes_total / 2;
        uint64_t most = options->budget_bytes / 16 / WAL_BLOCK * WAL_BLOCK;
        if (options->segment_bytes > most)
            options->segment_bytes = most < 64 << 10 ? 64 << 10 : most;
    }
    if (options->budget_bytes / SEGMENTS_LEAST < options->segment_bytes)
        return error_set(err, STATUS_INVALID, "log: a budget of %llu bytes is under %d segments",
                         (unsigned long long)options->budget_bytes, SEGMENTS_LEAST);
    return STATUS_OK;
}

/* L22 holds for names too: one that a killed process left may be in the cache alone, and recovery
 * is about to remove others because of it. */
static enum status dirs_make(struct wal *wal, struct error *err)
{
    static const char *const folders[] = {"active", "sealed", "committed", "spare", "state"};
    for (size_t i = 0; i < COUNT_OF(folders); i++) {
        char path[PATH_BYTES_MAX];
        wal_path(wal, path, folders[i], NULL, 0);
        TRY(files_make_dirs(wal->env, path, err));
        TRY(env_dir_sync(wal->env, path, err));
    }
    return STATUS_OK;
}

static enum status dir_lock(struct wal *wal, struct error *err)
{
    char path[PATH_BYTES_MAX];
    wal_path(wal, path, "lock", NULL, 0);
    TRY(env_open(wal->env, path, ENV_READ | ENV_WRITE | ENV_CREATE, &wal->lock_file, err));
    enum status status = env_lock_file(wal->lock_file, err);
    if (status == STATUS_BUSY)
        error_prefix(err, "log: another process has %.200s", wal->dir);
    return status;
}

static enum status wal_create(struct env *env, const struct wal_options *options,
                              struct wal **out_wal, struct error *err)
{
    struct wal *wal = mem_alloc_zero(1, sizeof *wal);
    if (!wal)
        return error_set(err, STATUS_NO_MEMORY, "log: out of memory");
    wal->env = env;
    wal->options = *options;
    snprintf(wal->dir, sizeof wal->dir, "%s", options->dir);
    wal->options.dir = wal->dir;
    wal->segment_next = 1;
    wal->incarnation = 1;
    wal->lock = env_mutex_create(env);
    wal->work = env_cond_create(env);
    wal->keep = env_cond_create(env);
    wal->freed = env_cond_create(env);
    wal->moved = env_cond_create(env);
    wal->draft = draft_create();
    wal->ahead = draft_create();
    bool has_producers =
        producers_init(&wal->producers, options->producers_max, options->keep_producers_ms);
    wal->producers.clock_base_ns = env_mono_ns(env);
    *out_wal = wal;
    if (!wal->lock || !wal->work || !wal->keep || !wal->freed || !wal->moved || !wal->draft ||
        !wal->ahead || !has_producers)
        return error_set(err, STATUS_NO_MEMORY, "log: out of memory");
    return STATUS_OK;
}

static void tables_destroy(struct wal *wal)
{
    for (size_t i = 0; i < wal->table_count; i++) {
        mem_free(wal->tables[i]->name);
        mem_free(wal->tables[i]->acks);
        mem_free(wal->tables[i]);
    }
    mem_free(wal->tables);
    mem_free(wal->table_slots);
    for (size_t i = 0; i < wal->schema_slots; i++)
        mem_free(wal->schemas[i].message);
    mem_free(wal->schemas);
}

static void wal_destroy(struct wal *wal)
{
    env_close(wal->writer.direct);
    env_close(wal->writer.file);
    env_close(wal->state_file);
    env_close(wal->lock_file);
    for (size_t i = 0; i < wal->segment_count; i++)
        segment_destroy(wal->segments[i]);
    mem_free(wal->segments);
    for (uint32_t g = 0; wal->groups && g < wal->group_count; g++)
        mem_free(wal->groups[g].runs);
    mem_free(wal->groups);
    tables_destroy(wal);
    producers_deinit(&wal->producers);
    leases_deinit(wal);
    unit_buffers_deinit(wal);
    draft_destroy(wal->draft);
    draft_destroy(wal->ahead);
    while (wal->free_waiters) {
        struct waiter *next = wal->free_waiters->next;
        waiter_destroy(wal->free_waiters);
        wal->free_waiters = next;
    }
    mem_free(wal->writer.next_rows);
    mem_free(wal->identities);
    mem_free(wal->damages);
    mem_free(wal->voids);
    mem_free(wal->truncations);
    mem_free(wal->floors);
    mem_free(wal->reclaimed);
    mem_free(wal->spares);
    mem_free(wal->expected);
    mem_free(wal->recovered);
    mem_free(wal->lost);
    env_cond_destroy(wal->work);
    env_cond_destroy(wal->keep);
    env_cond_destroy(wal->freed);
    env_cond_destroy(wal->moved);
    env_mutex_destroy(wal->lock);
    mem_free(wal);
}

/* A directory without a checkpoint is a new log, unless segments say otherwise. */
static enum status identity_create(struct wal *wal, struct error *err)
{
    static const enum segment_place places[] = {SEGMENT_ACTIVE, SEGMENT_SEALED, SEGMENT_COMMITTED};
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        struct arena arena;
        char dir[PATH_BYTES_MAX], **names;
        size_t count = 0;
        arena_init(&arena, 0);
        wal_path(wal, dir, segment_folder(places[i]), NULL, 0);
        enum status status = files_list(wal->env, dir, &arena, &names, &count, err);
        arena_deinit(&arena);
        TRY(status);
        if (count > 0)
            return error_set(err, STATUS_CORRUPT,
                             "log: %.200s holds segments but no checkpoint: put what log/state "
                             "holds in a copy of this data directory back",
                             wal->dir);
    }
    wal->group_count = wal->options.group_count ? wal->options.group_count : 1;
    wal->groups = mem_alloc_zero(wal->group_count, sizeof *wal->groups);
    wal->identities = mem_alloc_zero(1, sizeof *wal->identities);
    if (!wal->groups || !wal->identities)
        return error_set(err, STATUS_NO_MEMORY, "log: out of memory");
    env_random(wal->env, wal->identities[0].log_id.bytes, sizeof wal->identities[0].log_id.bytes);
    wal->identities[0].first_segment = 1;
    wal->identity_count = 1;
    return STATUS_OK;
}

static enum status load(struct wal *wal, struct error *err)
{
    bool is_new;
    TRY(state_load(wal, &is_new, err));
    if (wal->options.restore)
        TRY(restore_begin(wal, is_new, err));
    else if (is_new && wal->options.is_read_only)
        return error_set(err, STATUS_NOT_FOUND, "log: there is none in %.200s", wal->dir);
    else if (is_new)
        TRY(identity_create(wal, err));
    if (wal->options.group_count && wal->options.group_count != wal->group_count)
        return error_set(err, STATUS_INVALID, "log: has %u groups, not %u", wal->group_count,
                         wal->options.group_count);
    if (is_new)
        wal->needs_commit = wal->options.needs_commit;
    if (wal->options.needs_commit != wal->needs_commit && !wal->options.is_read_only &&
        !wal->options.restore)
        return error_set(err, STATUS_INVALID, "log: what is synced %s in this log",
                         wal->needs_commit ? "need not count" : "counts");
    commits_begin(wal);
    TRY(wal_recover(wal, err));
    if (wal->options.restore)
        TRY(restore_settle(wal, err));
    if (wal->options.restore) /* it raised acks */
        commits_begin(wal);
    TRY(commits_settle(wal, err));
    backlog_recount(wal);
    return STATUS_OK;
}

/* L5: the first entry of each start is a NOOP with random bits, in every group, under a new term.
 */
static enum status noops_append(struct wal *wal, struct error *err)
{
    struct control control = {0};
    struct wal_entry *entries = mem_alloc_zero(wal->group_count, sizeof *entries);
    if (!entries)
        return error_set(err, STATUS_NO_MEMORY, "log: out of memory");
    for (uint32_t g = 0; g < wal->group_count; g++)
        entries[g] = (struct wal_entry){.type = WAL_NOOP, .group = g};
    enum status status = wal_append_control(wal, entries, wal->group_count, &control, err);
    mem_free(entries);
    return status;
}

static enum status start(struct wal *wal, struct error *err)
{
    wal->term++;
    /* Both kept checkpoints are this process's own: what was read from older ones may be damaged,
     * or in the page cache alone. */
    TRY(state_checkpoint(wal, err));
    TRY(state_checkpoint(wal, err));
    wal->first_of_start = wal->segment_next;
    TRY(writer_open_segment(wal, true, 0, err));
    TRY(noops_append(wal, err));
    keeper_round(wal);
    for (size_t i = 0; i < WAL_ENGINE_THREADS; i++)
        TRY(env_thread_start(wal->env, "wal", engine_main, wal, &wal->engine_threads[i], err));
    TRY(env_thread_start(wal->env, "wal-keep", keeper_main, wal, &wal->keeper_thread, err));
    wal->is_accepting = true;
    return STATUS_OK;
}

static void threads_stop(struct wal *wal)
{
    env_lock(wal->lock);
    wal->is_accepting = false;
    wal->is_stopping = true;
    env_broadcast(wal->work);
    env_broadcast(wal->freed);
    env_signal(wal->keep);
    while (wal->needs_commit && wal->table_openers) /* one waits for a commit that does not come */
        env_wait(wal->freed, wal->lock, UINT64_MAX);
    env_unlock(wal->lock);
    for (size_t i = 0; i < WAL_ENGINE_THREADS; i++) {
        env_thread_join(wal->engine_threads[i]);
        wal->engine_threads[i] = NULL;
    }
    env_thread_join(wal->keeper_thread);
    wal->keeper_thread = NULL;
}

enum status wal_open(struct env *env, const struct wal_options *options, struct wal **out_wal,
                     struct error *err)
{
    struct wal *wal = NULL;
    TRY(options_check(options, err));
    enum status status = wal_create(env, options, &wal, err);
    if (status == STATUS_OK && !options->is_read_only)
        status = files_make_dirs(env, wal->dir, err);
    if (status == STATUS_OK && !options->is_read_only)
        status = dir_lock(wal, err);
    if (status == STATUS_OK && !options->is_read_only)
        status = dirs_make(wal, err);
    if (status == STATUS_OK)
        status = budget_set(wal, err);
    if (status == STATUS_OK)
        status = load(wal, err);
    if (status == STATUS_OK && !options->is_read_only)
        status = start(wal, err);
    if (status == STATUS_OK) {
        *out_wal = wal;
        return STATUS_OK;
    }
    if (wal && wal->engine_threads[0])
        threads_stop(wal);
    if (wal)
        wal_destroy(wal);
    return status;
}

void wal_close(struct wal *wal)
{
    struct error err;
    if (!wal)
        return;
    bool is_writer = !wal->options.is_read_only;
    threads_stop(wal);
    if (is_writer) {
        /* Floor first: should the seal find no room, the next start still sees a clean end (L9). */
        enum status status = wal->writer.needs_floor ? writer_floor(wal, &err) : STATUS_OK;
        if (status == STATUS_OK)
            status = writer_seal(wal, &err);
        if (status == STATUS_OK || status == STATUS_NO_SPACE)
            status = state_checkpoint(wal, &err);
        if (status == STATUS_IO)
            wal_die(wal, &err);
    }
    wal_destroy(wal);
}

/* ---- tables and schemas ---- */

/* Until its entry counts, which then makes the table known, or is taken back. */
static enum status table_await(struct wal *wal, const char *name, uint64_t seq, struct error *err)
{
    env_lock(wal->lock);
    while (wal->table_pending == seq && wal->groups[0].committed_seq < seq && !wal->is_stopping)
        env_wait(wal->freed, wal->lock, UINT64_MAX);
    bool is_known = table_find(wal, name, strlen(name)) != 0;
    env_unlock(wal->lock);
    return is_known
               ? STATUS_OK
               : error_set(err, STATUS_CONFLICT, "log: table %.100s did not come to count", name);
}

static enum status table_write(struct wal *wal, uint32_t table_id, const char *name,
                               struct error *err)
{
    struct table *table = mem_alloc_zero(1, sizeof *table);
    char *copy = mem_copy_text(name);
    struct control control = {.table = table};
    struct wal_entry entry = {.type = WAL_TABLE,
                              .table_id = table_id,
                              .payload = span_of_text(name),
                              .payload_crc = crc32c(0, name, strlen(name))};
    enum status status = STATUS_OK;
    if (!table || !copy)
        status = error_set(err, STATUS_NO_MEMORY, "log: out of memory");
    else if (table_id > WAL_TABLES_MAX)
        status = error_set(err, STATUS_LIMIT, "log: %u tables", table_id - 1);
    if (table)
        table->name = copy;
    if (status == STATUS_OK)
        status = wal_append_control(wal, &entry, 1, &control, err);
    if (status == STATUS_OK && wal->needs_commit) {
        mem_free(copy);
        mem_free(table);
        return table_await(wal, name, entry.seq, err);
    }
    if (status == STATUS_OK && control.table)
        status = error_set(err, STATUS_NO_MEMORY, "log: out of memory");
    if (status != STATUS_OK) {
        mem_free(copy);
        mem_free(table);
        return status;
    }
    env_lock(wal->lock);
    wal_state_acquire(wal);
    env_unlock(wal->lock);
    struct error ignored;
    if (state_put_table(wal, table_id, name, &ignored) != STATUS_OK)
        status = STATUS_OK; /* the entry is durable; the next checkpoint has the name */
    env_lock(wal->lock);
    wal_state_release(wal);
    env_unlock(wal->lock);
    return status;
}

enum status wal_table_open(struct wal *wal, const char *name, uint32_t *out_table_id,
                           struct error *err)
{
    size_t length = strlen(name);
    if (length == 0 || length > WAL_TABLE_NAME_MAX)
        return error_set(err, STATUS_INVALID, "log: a table name of %zu bytes", length);
    env_lock(wal->lock);
    wal->table_openers++;
    if (wal->needs_commit && !wal->options.is_read_only)
        commits_await_tables(wal, name); /* one may be of this name, and takes the next id */
    uint32_t id = table_find(wal, name, length);
    while (id == 0 && wal->is_tables_busy) {
        env_wait(wal->freed, wal->lock, UINT64_MAX);
        id = table_find(wal, name, length);
    }
    bool is_ours = id == 0;
    size_t count = wal->table_count;
    wal->is_tables_busy |= is_ours;
    enum status status = STATUS_OK;
    if (is_ours) {
        env_unlock(wal->lock);
        status = table_write(wal, (uint32_t)count + 1, name, err);
        id = (uint32_t)count + 1;
        env_lock(wal->lock);
        wal->is_tables_busy = false;
        env_broadcast(wal->freed);
    }
    wal->table_openers--;
    if (wal->is_stopping)
        env_broadcast(wal->freed);
    env_unlock(wal->lock);
    if (status == STATUS_OK)
        *out_table_id = id;
    return status;
}
bool wal_table_name(struct wal *wal, uint32_t table_id, char out_name[WAL_TABLE_NAME_MAX + 1])
{
    env_lock(wal->lock);
    bool is_known = table_id > 0 && table_id <= wal->table_count;
    if (is_known)
        snprintf(out_name, WAL_TABLE_NAME_MAX + 1, "%s", wal->tables[table_id - 1]->name);
    env_unlock(wal->lock);
    return is_known;
}

uint32_t wal_table_count(struct wal *wal)
{
    env_lock(wal->lock);
    uint32_t count = (uint32_t)wal->table_count;
    env_unlock(wal->lock);
    return count;
}

enum status wal_schema_add(struct wal *wal, uint64_t fingerprint, struct span message,
                           struct error *err)
{
    if (fingerprint == 0 || message.length == 0 || message.length > WAL_SCHEMA_BYTES_MAX)
        return error_set(err, STATUS_INVALID, "log: a schema of %zu bytes", message.length);
    enum status status = STATUS_OK;
    env_lock(wal->lock);
    if (!schema_find(wal, fingerprint) && wal->schema_count >= WAL_SCHEMAS_MAX)
        status = error_set(err, STATUS_LIMIT, "log: %zu schemas", wal->schema_count);
    else if (!schema_put(wal, fingerprint, message))
        status = error_set(err, STATUS_NO_MEMORY, "log: out of memory");
    env_unlock(wal->lock);
    return status;
}

enum status wal_schema_get(struct wal *wal, uint64_t fingerprint, struct buf *out,
                           struct error *err)
{
    env_lock(wal->lock);
    const struct schema *schema = schema_find(wal, fingerprint);
    struct span message = schema ? span_of(schema->message, schema->length) : (struct span){0};
    env_unlock(wal->lock);
    if (!message.data)
        return error_set(err, STATUS_NOT_FOUND, "log: unknown schema %016llx",
                         (unsigned long long)fingerprint);
    buf_put(out, message.data, message.length); /* messages live as long as the log is open */
    return buf_status(out, "log: schema", err);
}

/* ---- waiting ---- */

void wal_wait(struct wal *wal, uint64_t *inout_ticket, uint64_t timeout_ms)
{
    env_lock(wal->lock);
    uint64_t wakes = wal->wakes;
    int64_t start_ns = env_mono_ns(wal->env);
    while (wal->ticket == *inout_ticket && wal->wakes == wakes) {
        uint64_t spent = (uint64_t)(env_mono_ns(wal->env) - start_ns) / 1000000;
        if (spent >= timeout_ms)
            break;
        env_wait(wal->moved, wal->lock, timeout_ms == UINT64_MAX ? UINT64_MAX : timeout_ms - spent);
    }
    *inout_ticket = wal->ticket;
    env_unlock(wal->lock);
}

void wal_wake(struct wal *wal)
{
    env_lock(wal->lock);
    wal->wakes++;
    env_broadcast(wal->moved);
    env_unlock(wal->lock);
}

/* ---- seal, fork ---- */

enum status wal_seal(struct wal *wal, struct error *err)
{
    if (wal->options.is_read_only)
        return error_set(err, STATUS_CLOSED, "log: opened for reading");
    env_lock(wal->lock);
    wal_lead_acquire(wal);
    env_unlock(wal->lock);
    enum status status = writer_seal(wal, err);
    env_lock(wal->lock);
    wal_lead_release(wal);
    env_unlock(wal->lock);
    return status;
}

/* Adds the identity and forgets what tables said of the old one; both checkpoints know it then. */
static enum status identity_change(struct wal *wal, struct log_id id, struct error *err)
{
    struct identity_row *rows = mem_alloc_zero(wal->identity_count + 1, sizeof *wal->identities);
    if (!rows)
        return error_set(err, STATUS_NO_MEMORY, "log fork: out of memory");
    memcpy(rows, wal->identities, wal->identity_count * sizeof *rows);
    env_lock(wal->lock);
    rows[wal->identity_count] =
        (struct identity_row){.log_id = id, .first_segment = wal->segment_next};
    struct identity_row *before = wal->identities;
    wal->identities = rows;
    wal->identity_count++;
    wal->term++;
    wal->fenced_by = 0; /* all of these were the old log's */
    struct wal_position *recovered = wal->recovered;
    wal->recovered = NULL;
    wal->lost_count = 0;
    for (size_t i = 0; i < wal->table_count; i++)
        for (uint32_t g = 0; wal->tables[i]->acks && g < wal->group_count; g++)
            wal->tables[i]->acks[g].committed = (struct wal_position){0};
    env_unlock(wal->lock);
    mem_free(before);
    mem_free(recovered);
    TRY(state_checkpoint(wal, err));
    return state_checkpoint(wal, err);
}

enum status wal_fork(struct wal *wal, struct log_id *out_new_id, struct error *err)
{
    struct log_id id;
    if (wal->options.is_read_only)
        return error_set(err, STATUS_CLOSED, "log: opened for reading");
    env_random(wal->env, id.bytes, sizeof id.bytes);
    env_lock(wal->lock);
    wal_lead_acquire(wal);
    env_unlock(wal->lock);
    enum status status = writer_seal(wal, err);
    env_lock(wal->lock);
    wal_state_acquire(wal);
    env_unlock(wal->lock);
    if (status == STATUS_OK)
        status = identity_change(wal, id, err);
    env_lock(wal->lock);
    wal_state_release(wal);
    wal_lead_release(wal);
    env_unlock(wal->lock);
    TRY(status);
    TRY(noops_append(wal, err));
    *out_new_id = id;
    return STATUS_OK;
}
