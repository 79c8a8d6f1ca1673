/* SPDX-License-Identifier: Apache-2.0
 *
 * The publisher: lanes, its threads, those who wait for positions.
 */
#include <stdio.h>

#include "flow/publish/publish_internal.h"

enum { LOOK_MS = 100, DOUBT_LOOK_MS = 1000 };

struct publish_options publish_options_default(const char *state_dir)
{
    return (struct publish_options){
        .state_dir = state_dir,
        .interval_ms = 10000,
        .bytes = 128 << 20,
        .range_bytes_max = 64 << 20,
        .zstd_level = 1,
        .row_group_rows = 122880,
        .page_rows = 20000,
        .threads = 3,
        .writers = 1,
        .retry_ms_min = 100,
        .retry_ms_max = 30000,
        .halt_confirm_ms = 30000,
        .created_by = "sluice version 0.1.0 (build dev)",
    };
}

/* ---- threads ---- */

enum status lane_claim(struct lane *lane, uint64_t timeout_ms, struct error *err)
{
    struct publisher *publisher = lane->publisher;
    int64_t deadline_ns = env_mono_ns(publisher->env) + (int64_t)timeout_ms * 1000000;
    env_lock(publisher->lock);
    publisher->claims_waiting++;
    while (lane->is_busy && env_mono_ns(publisher->env) < deadline_ns)
        env_wait(publisher->freed, publisher->lock, 10);
    publisher->claims_waiting--;
    bool is_claimed = !lane->is_busy;
    lane->is_busy = true;
    env_unlock(publisher->lock);
    return is_claimed ? STATUS_OK
                      : error_set(err, STATUS_BUSY, "%s is being worked on; try again", lane->name);
}

/* Lock held. */
static void give_back(struct lane *lane)
{
    lane->is_busy = false;
    if (lane->publisher->claims_waiting)
        env_broadcast(lane->publisher->freed);
}

void lane_release(struct lane *lane)
{
    env_lock(lane->publisher->lock);
    give_back(lane);
    if (lane->is_demanded)
        env_signal(lane->publisher->wake);
    env_unlock(lane->publisher->lock);
}

enum status publisher_pause(struct publisher *publisher, uint64_t timeout_ms, struct error *err)
{
    int64_t deadline_ns = env_mono_ns(publisher->env) + (int64_t)timeout_ms * 1000000;
    for (size_t i = 0; i < publisher->lane_count; i++) {
        int64_t left_ns = deadline_ns - env_mono_ns(publisher->env);
        enum status status =
            lane_claim(&publisher->lanes[i], left_ns > 0 ? (uint64_t)left_ns / 1000000 : 0, err);
        if (status == STATUS_OK)
            continue;
        while (i-- > 0)
            lane_release(&publisher->lanes[i]);
        return status;
    }
    return STATUS_OK;
}

void publisher_resume(struct publisher *publisher)
{
    for (size_t i = 0; i < publisher->lane_count; i++)
        lane_release(&publisher->lanes[i]);
}

static _Thread_local char this_thread; /* its address tells threads apart */

void publisher_writer_begin(struct publisher *publisher)
{
    env_lock(publisher->lock);
    while (publisher->writers == 0)
        env_wait(publisher->freed, publisher->lock, UINT64_MAX);
    publisher->writers--;
    bool is_other = publisher->last_writer && publisher->last_writer != &this_thread;
    publisher->last_writer = &this_thread;
    env_unlock(publisher->lock);
    if (is_other) /* the allocator keeps what that thread has freed for that thread */
        os_memory_trim();
}

void publisher_writer_end(struct publisher *publisher)
{
    env_lock(publisher->lock);
    publisher->writers++;
    env_broadcast(publisher->freed);
    env_unlock(publisher->lock);
}

/* The next lane that is due, claimed; NULL: none is. Lock held, given up meanwhile. */
static struct lane *due_lane(struct publisher *publisher)
{
    for (size_t i = 0; i < publisher->lane_count && !publisher->must_stop; i++) {
        size_t index = (publisher->look_next + i) % publisher->lane_count;
        struct lane *lane = &publisher->lanes[index];
        if (lane->is_busy)
            continue;
        lane->is_busy = true; /* what tells whether it is due belongs to who works on it */
        env_unlock(publisher->lock);
        bool is_due = lane_is_due(lane);
        env_lock(publisher->lock);
        if (is_due) {
            publisher->look_next = index + 1;
            return lane;
        }
        give_back(lane);
    }
    return NULL;
}

static bool is_demanded(const struct publisher *publisher)
{
    for (size_t i = 0; i < publisher->lane_count; i++) {
        const struct lane *lane = &publisher->lanes[i];
        bool is_stopped = lane->state == PUBLISH_HALTED || lane->state == PUBLISH_STOOD_DOWN;
        if (lane->is_demanded && !lane->is_busy && !lane->retry_at_ns && !is_stopped)
            return true;
    }
    return false;
}

/* One thread looks for work at a time; it hands that on before it works. NULL: time to stop. */
static struct lane *work_wait(struct publisher *publisher)
{
    struct lane *lane = NULL;
    env_lock(publisher->lock);
    while (publisher->is_looking && !publisher->must_stop)
        env_wait(publisher->turn, publisher->lock, UINT64_MAX);
    if (!publisher->must_stop) {
        publisher->is_looking = true;
        while (!(lane = due_lane(publisher)) && !publisher->must_stop) {
            if (!is_demanded(publisher))
                env_wait(publisher->wake, publisher->lock, LOOK_MS);
        }
        publisher->is_looking = false;
        env_signal(publisher->turn);
    }
    env_unlock(publisher->lock);
    return lane;
}

static void publisher_main(void *context)
{
    struct publisher *publisher = context;
    struct error err;
    struct lane *lane;
    while ((lane = work_wait(publisher))) {
        enum status status = lane_round(lane, true, &err);
        UNUSED(status); /* noted in the lane's state */
        lane_release(lane);
    }
}

static void threads_stop(struct publisher *publisher)
{
    if (publisher->thread_count == 0)
        return;
    env_lock(publisher->lock);
    publisher->must_stop = true;
    env_broadcast(publisher->wake);
    env_broadcast(publisher->turn);
    env_unlock(publisher->lock);
    while (publisher->thread_count > 0)
        env_thread_join(publisher->threads[--publisher->thread_count]);
    env_lock(publisher->lock);
    publisher->must_stop = false; /* rounds go on, on other threads */
    env_unlock(publisher->lock);
}

bool publisher_is_out_of_time(struct publisher *publisher)
{
    env_lock(publisher->lock);
    bool must_stop = publisher->must_stop;
    int64_t until_ns = publisher->work_until_ns;
    env_unlock(publisher->lock);
    return must_stop || (until_ns && env_mono_ns(publisher->env) >= until_ns);
}

static void set_work_until(struct publisher *publisher, int64_t until_ns)
{
    env_lock(publisher->lock);
    publisher->work_until_ns = until_ns;
    env_unlock(publisher->lock);
}

enum status publisher_start(struct publisher *publisher, struct error *err)
{
    size_t most = size_min(publisher->lane_count, PUBLISH_THREADS_MAX);
    if (publisher->options.is_elsewhere)
        return STATUS_OK;
    publisher->must_stop = false;
    while (publisher->thread_count < size_min(publisher->options.threads, most)) {
        enum status status = env_thread_start(publisher->env, "publish", publisher_main, publisher,
                                              &publisher->threads[publisher->thread_count], err);
        if (status != STATUS_OK) {
            threads_stop(publisher);
            return status;
        }
        publisher->thread_count++;
    }
    return STATUS_OK;
}

/* ---- life ---- */

/* E4: machine id, device and inode of the state directory. */
static enum status read_owner(struct publisher *publisher, struct error *err)
{
    struct env_stat stat;
    struct buf machine = {0};
    struct error ignored;
    TRY(env_path_stat(publisher->env, publisher->state_dir, &stat, err));
    if (files_read(publisher->env, "/etc/machine-id", 256, &machine, &ignored) != STATUS_OK)
        buf_clear(&machine);
    while (machine.length && machine.data[machine.length - 1] <= ' ')
        machine.length--;
    snprintf(publisher->owner, sizeof publisher->owner, "%.*s:%llu:%llu",
             (int)size_min(machine.length, 64), machine.length ? (const char *)machine.data : "",
             (unsigned long long)stat.device, (unsigned long long)stat.inode);
    buf_deinit(&machine);
    return STATUS_OK;
}

static enum status lock_state(struct publisher *publisher, struct error *err)
{
    char path[PATH_BYTES_MAX];
    TRY(files_make_dirs(publisher->env, publisher->state_dir, err));
    TRY(path_join(path, publisher->state_dir, "lock", err));
    TRY(env_open(publisher->env, path, ENV_READ | ENV_WRITE | ENV_CREATE, &publisher->lock_file,
                 err));
    if (env_lock_file(publisher->lock_file, err) == STATUS_BUSY)
        return error_set(err, STATUS_BUSY, "%s: another process publishes from here",
                         publisher->state_dir);
    return read_owner(publisher, err);
}

static enum status open_lane(struct publisher *publisher, const struct publish_table *definition,
                             struct lane *lane, struct error *err)
{
    lane->publisher = publisher;
    lane->definition = definition;
    snprintf(lane->name, sizeof lane->name, "%s.%s", definition->ns, definition->name);
    lane->info.snapshot_id = -1;
    TRY(source_table_open(publisher->source, lane->name, &lane->table_id, err));
    if (publisher->options.is_elsewhere) {
        lane->state = PUBLISH_ELSEWHERE;
        return STATUS_OK;
    }
    TRY(lane_load_files(lane, err));
    if (lane->checkpoint.exists) {
        lane->epoch = lane->checkpoint.epoch;
        lane->info.committed = lane->checkpoint.committed.at[0];
        lane->info.snapshot_id = lane->checkpoint.snapshot_id;
    } else if (lane->record.exists) {
        lane->epoch = lane->record.epoch;
    }
    return STATUS_OK;
}

enum status publisher_create(struct env *env, const struct publish_options *options,
                             struct source *source, struct catalog *catalog, struct store *store,
                             const struct publish_table *tables, size_t table_count,
                             struct publisher **out_publisher, struct error *err)
{
    struct publisher *publisher = mem_alloc_zero(1, sizeof *publisher);
    enum status status = STATUS_OK;
    if (!publisher)
        return error_set(err, STATUS_NO_MEMORY, "publisher: out of memory");
    publisher->env = env;
    publisher->options = *options;
    publisher->source = source;
    publisher->catalog = catalog;
    publisher->store = store;
    publisher->log = source_log_id(source);
    publisher->group_count = source_group_count(source);
    snprintf(publisher->state_dir, sizeof publisher->state_dir, "%s", options->state_dir);
    publisher->lock = env_mutex_create(env);
    publisher->wake = env_cond_create(env);
    publisher->turn = env_cond_create(env);
    publisher->freed = env_cond_create(env);
    publisher->writers = options->writers;
    publisher->lanes = mem_alloc_zero(table_count, sizeof *publisher->lanes);
    if (!publisher->lock || !publisher->wake || !publisher->turn || !publisher->freed ||
        !publisher->lanes)
        status = error_set(err, STATUS_NO_MEMORY, "publisher: out of memory");
    else if (publisher->group_count > PUBLISH_GROUPS_MAX)
        status = error_set(err, STATUS_UNSUPPORTED, "at most %d groups can be published",
                           (int)PUBLISH_GROUPS_MAX);
    if (status == STATUS_OK && !options->is_elsewhere)
        status = lock_state(publisher, err);
    for (size_t i = 0; i < table_count && status == STATUS_OK; i++) {
        status = open_lane(publisher, &tables[i], &publisher->lanes[i], err);
        publisher->lane_count = i + 1;
    }
    if (status != STATUS_OK) {
        publisher_destroy(publisher);
        return status;
    }
    *out_publisher = publisher;
    return STATUS_OK;
}

void publisher_destroy(struct publisher *publisher)
{
    if (!publisher)
        return;
    threads_stop(publisher);
    for (size_t i = 0; i < publisher->lane_count; i++) {
        record_deinit(&publisher->lanes[i].record);
        mem_free(publisher->lanes[i].gaps);
    }
    mem_free(publisher->lanes);
    env_cond_destroy(publisher->wake);
    env_cond_destroy(publisher->turn);
    env_cond_destroy(publisher->freed);
    env_mutex_destroy(publisher->lock);
    env_close(publisher->lock_file);
    mem_free(publisher);
}

void publisher_stop(struct publisher *publisher, bool with_last_round, uint64_t timeout_ms)
{
    struct error err;
    int64_t now_ns = env_mono_ns(publisher->env);
    int64_t deadline_ns = now_ns + (int64_t)timeout_ms * 1000000;
    threads_stop(publisher);
    set_work_until(publisher, deadline_ns);
    with_last_round &= !publisher->options.is_elsewhere;
    for (size_t i = 0; with_last_round && i < publisher->lane_count; i++) {
        struct lane *lane = &publisher->lanes[i];
        now_ns = env_mono_ns(publisher->env);
        if (now_ns >= deadline_ns)
            break;
        if (lane_claim(lane, (uint64_t)(deadline_ns - now_ns) / 1000000, &err) == STATUS_OK) {
            enum status status = lane_round(lane, true, &err);
            UNUSED(status);
            lane_release(lane);
        }
    }
    set_work_until(publisher, 0);
    for (size_t i = 0; i < publisher->lane_count; i++) {
        struct lane *lane = &publisher->lanes[i];
        while (lane->waiters) {
            struct publish_waiter *waiter = lane->waiters;
            lane->waiters = waiter->next;
            waiter->done(waiter, STATUS_CLOSED);
        }
    }
}

static bool is_halt(enum status status)
{
    return status == STATUS_HALTED || status == STATUS_RECLAIMED || status == STATUS_IDENTITY;
}

/* Rounds of the lanes that are to be looked at (again); how those end that settle goes into
 * *inout_worst. True: the others are in doubt (E12), and have not been for halt_confirm yet. */
static bool run_lanes(struct publisher *publisher, bool is_first, int64_t give_up_ns,
                      enum status *inout_worst, struct error *err)
{
    bool is_in_doubt = false;
    for (size_t i = 0; i < publisher->lane_count; i++) {
        struct lane *lane = &publisher->lanes[i];
        struct error lane_err;
        if (!is_first && !lane_is_in_doubt(lane))
            continue;
        enum status status = lane_round(lane, true, &lane_err);
        if (lane_is_in_doubt(lane) && env_mono_ns(publisher->env) < give_up_ns) {
            is_in_doubt = true;
            continue;
        }
        lane->doubt_since_ns = lane->append_doubt_ns = lane->source_doubt_ns = 0;
        bool is_halted = status == STATUS_HALTED || status == STATUS_FENCED;
        if (status == STATUS_OK || is_halt(*inout_worst))
            continue;
        *inout_worst = lane_err.status = is_halted ? halt_status(lane) : status;
        *err = lane_err;
    }
    return is_in_doubt;
}

enum status publisher_run_once(struct publisher *publisher, struct error *err)
{
    enum status worst = STATUS_OK;
    TRY(publisher_must_be_here(publisher, err));
    CHECK(publisher->thread_count == 0);
    uint64_t confirm_ms = publisher->options.halt_confirm_ms;
    uint64_t step_ms = confirm_ms < DOUBT_LOOK_MS ? confirm_ms + 1 : DOUBT_LOOK_MS;
    bool is_first = true;
    int64_t give_up_ns = INT64_MAX;
    /* The doubt begins with the process: only rounds until it has lasted can end in a halt. */
    while (run_lanes(publisher, is_first, give_up_ns, &worst, err)) {
        if (is_first) /* a table that answers errors instead is neither confirmed nor refuted */
            give_up_ns =
                env_mono_ns(publisher->env) + (int64_t)(confirm_ms + 2 * step_ms) * 1000000;
        is_first = false;
        env_sleep_ms(publisher->env, step_ms);
    }
    return worst;
}

/* ---- waiting ---- */

struct lane *publisher_lane_of(struct publisher *publisher, uint32_t table_id)
{
    for (size_t i = 0; i < publisher->lane_count; i++) {
        if (publisher->lanes[i].table_id == table_id)
            return &publisher->lanes[i];
    }
    return NULL;
}

static bool is_settled(struct lane *lane, const struct publish_waiter *waiter,
                       enum status *out_status)
{
    if (lane->publisher->options.is_elsewhere) {
        *out_status = STATUS_OK;
        return lane_is_acknowledged(lane, waiter->group, waiter->seq);
    }
    if (waiter->group < lane->checkpoint.committed.count && lane->checkpoint.exists &&
        lane->checkpoint.committed.at[waiter->group].seq >= waiter->seq) {
        *out_status = STATUS_OK;
        return true;
    }
    *out_status = STATUS_HALTED;
    return lane->state == PUBLISH_HALTED || lane->state == PUBLISH_STOOD_DOWN;
}

void publisher_wait(struct publisher *publisher, struct publish_waiter *waiter, uint32_t table_id,
                    uint32_t group, uint64_t seq)
{
    struct lane *lane = publisher_lane_of(publisher, table_id);
    CHECK(lane != NULL);
    waiter->table_id = table_id;
    waiter->group = group;
    waiter->seq = seq;
    env_lock(publisher->lock);
    bool is_stopped = lane->state == PUBLISH_HALTED || lane->state == PUBLISH_STOOD_DOWN;
    if (!is_stopped) {
        waiter->next = lane->waiters;
        lane->waiters = waiter;
        lane->is_demanded = true;
        env_signal(publisher->wake);
    }
    env_unlock(publisher->lock);
    if (is_stopped)
        waiter->done(waiter, STATUS_HALTED);
    else if (publisher->options.is_elsewhere)
        lane_wake_waiters(lane); /* the acknowledgement may have come before */
}

void publisher_hurry(struct publisher *publisher, uint32_t table_id)
{
    struct lane *lane = publisher_lane_of(publisher, table_id);
    if (!lane)
        return;
    env_lock(publisher->lock);
    if (!lane->is_demanded) {
        lane->is_demanded = true;
        env_signal(publisher->wake);
    }
    env_unlock(publisher->lock);
}

/* On the thread that works on the lane, which alone changes its checkpoint; where the log is
 * published from elsewhere, on whichever waits or acknowledges. */
void lane_wake_waiters(struct lane *lane)
{
    struct publisher *publisher = lane->publisher;
    struct publish_waiter *settled = NULL;
    env_lock(publisher->lock);
    struct publish_waiter **link = &lane->waiters;
    while (*link) {
        struct publish_waiter *waiter = *link;
        enum status status;
        if (is_settled(lane, waiter, &status)) {
            *link = waiter->next;
            waiter->next = settled;
            settled = waiter;
        } else {
            link = &waiter->next;
        }
    }
    env_unlock(publisher->lock);
    while (settled) {
        struct publish_waiter *waiter = settled;
        enum status status;
        settled = waiter->next;
        is_settled(lane, waiter, &status);
        waiter->done(waiter, status);
    }
}

enum status publisher_check(struct publisher *publisher, uint32_t table_id, struct error *err)
{
    struct lane *lane = publisher_lane_of(publisher, table_id);
    if (!lane)
        return error_set(err, STATUS_NOT_FOUND, "nothing publishes table %u", table_id);
    env_lock(publisher->lock);
    enum status status = STATUS_OK;
    if (lane->state == PUBLISH_HALTED || lane->state == PUBLISH_STOOD_DOWN)
        status = error_set(err, STATUS_HALTED, "%s is halted: %s", lane->name, lane->reason);
    env_unlock(publisher->lock);
    return status;
}

/* ---- looking ---- */

size_t publisher_lane_count(const struct publisher *publisher)
{
    return publisher->lane_count;
}

bool publisher_lane_at(struct publisher *publisher, size_t index,
                       struct publish_lane_info *out_info)
{
    if (index >= publisher->lane_count)
        return false;
    struct lane *lane = &publisher->lanes[index];
    struct wal_pending pending = lane_pending(lane);
    struct wal *wal = source_wal(publisher->source);
    uint64_t pinned = wal ? wal_pinned_bytes(wal, lane->table_id) : 0;
    struct wal_ack ack;
    if (!source_ack_get(publisher->source, lane->table_id, 0, &ack))
        ack = (struct wal_ack){0};
    env_lock(publisher->lock);
    *out_info = lane->info;
    if (publisher->options.is_elsewhere)
        out_info->committed = ack.committed;
    out_info->pinned_bytes = pinned;
    out_info->lag_rows = pending.rows;
    out_info->lag_bytes = pending.bytes;
    out_info->oldest_unpublished_ms = lane_age_ms(lane, &pending);
    out_info->state = lane->state;
    memcpy(out_info->table, lane->name, sizeof out_info->table);
    memcpy(out_info->reason, lane->reason, sizeof out_info->reason);
    memcpy(out_info->remedy, lane->remedy, sizeof out_info->remedy);
    env_unlock(publisher->lock);
    return true;
}
