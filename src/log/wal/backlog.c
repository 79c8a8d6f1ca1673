/* SPDX-License-Identifier: Apache-2.0
 *
 * What is on the log and not published, by table and by group, and the limits of it (L37): payload
 * bytes of DATA entries above their table's `through`, and of those in the queue. The log's own
 * budget counts blocks of files and is asked first; a limit here keeps one table, or one group,
 * from using it up. Counted as entries come and are acknowledged, under the lock, so that a
 * question costs nothing; a start counts them out of the index.
 */
#include <stdio.h>

#include "log/wal/wal_internal.h"

static struct backlog *of_table(struct wal *wal, uint32_t table_id)
{
    return table_id && table_id <= wal->table_count ? &wal->tables[table_id - 1]->backlog : NULL;
}

static uint64_t table_limit(const struct wal *wal, uint32_t table_id)
{
    const struct table *table = wal->tables[table_id - 1];
    return table->has_limit ? table->backlog.limit : wal->options.table_bytes_max;
}

static uint64_t bytes_of(const struct backlog *backlog)
{
    return backlog->queued + backlog->stored;
}

/* By how much `bytes` more would be too much. */
static uint64_t excess(const struct backlog *backlog, uint64_t limit, uint64_t bytes)
{
    uint64_t used = bytes_of(backlog);
    return limit && used && used + bytes > limit ? used + bytes - limit : 0;
}

static enum status refuse(const char *of, const struct backlog *backlog, uint64_t limit,
                          struct error *err)
{
    return error_set(err, STATUS_NO_SPACE,
                     "log: %s has %llu bytes that are not published yet, its limit is %llu", of,
                     (unsigned long long)bytes_of(backlog), (unsigned long long)limit);
}

/* *out_full: the backlog that has no room, and how many bytes of it are in the way. */
static enum status check(struct wal *wal, uint32_t group, uint32_t table_id, uint64_t bytes,
                         const struct backlog **out_full, uint64_t *out_excess, struct error *err)
{
    struct backlog *table = of_table(wal, table_id), *all = &wal->groups[group].backlog;
    uint64_t limit = table_limit(wal, table_id);
    uint64_t over = excess(table, limit, bytes);
    char name[32];
    if (over) {
        *out_full = table;
        *out_excess = over;
        table->refused++;
        const char *text = wal->tables[table_id - 1]->name;
        return refuse(text ? text : "a table", table, limit, err);
    }
    limit = wal->options.group_bytes_max;
    over = excess(all, limit, bytes);
    if (!over)
        return STATUS_OK;
    *out_full = all;
    *out_excess = over;
    all->refused++;
    snprintf(name, sizeof name, "group %u", group);
    return refuse(name, all, limit, err);
}

/* A drain is measured while there is something to drain. */
static void queue_add(struct wal *wal, struct backlog *backlog, uint64_t bytes)
{
    if (bytes_of(backlog) == 0) {
        backlog->drain.since_ns = env_mono_ns(wal->env);
        backlog->drain.bytes = 0;
    }
    backlog->queued += bytes;
}

static void take_back(struct wal *wal, const struct wal_submission *submission, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct wal_entry *entry = &submission->entries[i];
        if (entry->type != WAL_DATA)
            continue;
        of_table(wal, entry->table_id)->queued -= entry->payload.length;
        wal->groups[entry->group].backlog.queued -= entry->payload.length;
    }
}

enum status backlog_take_in(struct wal *wal, struct wal_submission *submission, struct error *err)
{
    for (uint32_t i = 0; i < submission->entry_count; i++) {
        const struct wal_entry *entry = &submission->entries[i];
        const struct backlog *full;
        uint64_t over;
        if (entry->type != WAL_DATA)
            continue;
        if (!submission->is_admitted &&
            check(wal, entry->group, entry->table_id, entry->payload.length, &full, &over, err) !=
                STATUS_OK) {
            take_back(wal, submission, i);
            return err->status;
        }
        queue_add(wal, of_table(wal, entry->table_id), entry->payload.length);
        queue_add(wal, &wal->groups[entry->group].backlog, entry->payload.length);
    }
    submission->engine_private[WORD_IN_BACKLOG] = true;
    return STATUS_OK;
}

void backlog_give_back(struct wal *wal, const struct wal_submission *submission)
{
    if (submission->engine_private[WORD_IN_BACKLOG])
        take_back(wal, submission, submission->entry_count);
}

static void store(struct backlog *backlog, uint64_t bytes)
{
    CHECK(backlog->queued >= bytes);
    backlog->queued -= bytes;
    backlog->stored += bytes;
}

void backlog_store(struct wal *wal, const struct record *record)
{
    if (record->type != WAL_DATA)
        return;
    store(of_table(wal, record->table_id), record->payload_bytes);
    store(&wal->groups[record->group].backlog, record->payload_bytes);
}

static void let_go(struct backlog *backlog, uint64_t bytes, int64_t now_ns)
{
    backlog->stored -= bytes < backlog->stored ? bytes : backlog->stored;
    if (bytes) /* an idle lane's acks drain nothing, and say nothing of how fast it could */
        wal_rate_add(&backlog->drain, bytes, now_ns);
}

void backlog_let_go(struct wal *wal, uint32_t table_id, const struct wal_ack *acks)
{
    const struct table *table = wal->tables[table_id - 1];
    int64_t now_ns = env_mono_ns(wal->env);
    uint64_t sum = 0;
    for (uint32_t g = 0; g < wal->group_count; g++) {
        uint64_t before = table->acks ? table->acks[g].through.seq : 0;
        if (acks[g].through.seq <= before)
            continue;
        uint64_t bytes = index_pending(wal, g, table_id, before).bytes -
                         index_pending(wal, g, table_id, acks[g].through.seq).bytes;
        let_go(&wal->groups[g].backlog, bytes, now_ns);
        sum += bytes;
    }
    let_go(of_table(wal, table_id), sum, now_ns);
}

void backlog_recount(struct wal *wal)
{
    for (uint32_t t = 0; t < wal->table_count; t++)
        wal->tables[t]->backlog.stored = 0;
    for (uint32_t g = 0; g < wal->group_count; g++)
        wal->groups[g].backlog.stored = 0;
    for (size_t i = 0; i < wal->segment_count; i++) {
        const struct segment *segment = wal->segments[i];
        for (size_t k = 0; k < segment->table_count; k++) {
            const struct segment_table *row = &segment->tables[k];
            struct backlog *backlog = of_table(wal, row->table_id);
            if (!backlog || row->entries == 0)
                continue;
            uint64_t bytes = segment_bytes_above(segment, row, table_through(wal, row));
            backlog->stored += bytes;
            wal->groups[row->group].backlog.stored += bytes;
        }
    }
}

/* ---- questions ---- */

enum status wal_admit_rows(struct wal *wal, uint32_t group, uint32_t table_id, uint64_t bytes,
                           uint64_t *out_retry_ms, struct error *err)
{
    const struct backlog *full = NULL;
    uint64_t over = 0;
    enum status status;
    env_lock(wal->lock);
    if (group >= wal->group_count || !of_table(wal, table_id))
        status = error_set(err, STATUS_INVALID, "log: group %u, table %u", group, table_id);
    else
        status = check(wal, group, table_id, bytes, &full, &over, err);
    if (full)
        *out_retry_ms = wal_rate_ms(&full->drain, over, env_mono_ns(wal->env));
    env_unlock(wal->lock);
    return status;
}

uint64_t wal_drain_ms(struct wal *wal, uint32_t table_id, uint64_t bytes)
{
    struct wal_rate unknown = {0};
    env_lock(wal->lock);
    const struct backlog *backlog = of_table(wal, table_id);
    uint64_t ms = wal_rate_ms(backlog ? &backlog->drain : &unknown, bytes, env_mono_ns(wal->env));
    env_unlock(wal->lock);
    return ms;
}

void wal_table_limit(struct wal *wal, uint32_t table_id, uint64_t bytes_max)
{
    env_lock(wal->lock);
    struct backlog *backlog = of_table(wal, table_id);
    if (backlog) {
        backlog->limit = bytes_max;
        wal->tables[table_id - 1]->has_limit = true;
    }
    env_unlock(wal->lock);
}

struct wal_backlog wal_table_backlog(struct wal *wal, uint32_t table_id)
{
    struct wal_backlog out = {0};
    env_lock(wal->lock);
    const struct backlog *backlog = of_table(wal, table_id);
    if (backlog)
        out = (struct wal_backlog){.bytes = bytes_of(backlog),
                                   .limit = table_limit(wal, table_id),
                                   .refused = backlog->refused};
    env_unlock(wal->lock);
    return out;
}

struct wal_backlog wal_group_backlog(struct wal *wal, uint32_t group)
{
    struct wal_backlog out = {0};
    env_lock(wal->lock);
    if (group < wal->group_count)
        out = (struct wal_backlog){.bytes = bytes_of(&wal->groups[group].backlog),
                                   .limit = wal->options.group_bytes_max,
                                   .refused = wal->groups[group].backlog.refused};
    env_unlock(wal->lock);
    return out;
}
