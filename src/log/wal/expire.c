/* SPDX-License-Identifier: Apache-2.0
 *
 * How producers expire (L30), and what is left of them.
 *
 * The clock is the log's own: the milliseconds in which it was open, by monotonic time, saved in
 * state/. No step of the wall clock moves it, it never goes back below what was saved, and while
 * the log is closed it stands. A crash loses what it counted since it was saved last, an hour at
 * the usual time of keeping, so that a producer is kept longer than it asked for, never shorter.
 *
 * A producer goes in this order: it leaves the idle list under the lock, from where on its requests
 * are answered as those of an expired one; state/ is told, synced; it leaves memory, and a row of
 * 16 bytes takes its place. A crash in between leaves it either as it was or expired. Entries of it
 * that a start replays after that are passed over. The rows have a limit: the oldest give way, and
 * their producers are unknown then.
 *
 * Guarded by the engine's lock.
 */
#include "log/wal/state_internal.h"

enum {
    BATCH = 256,         /* producers a change in state/ */
    BATCHES_A_ROUND = 8, /* of the keeper, which has other work */
    SAVES_A_KEEPING = 168,
};

uint64_t wal_clock_ms(const struct wal *wal)
{
    const struct producers *producers = &wal->producers;
    int64_t since_ns = env_mono_ns(wal->env) - producers->clock_base_ns;
    return producers->clock_base_ms + (uint64_t)(since_ns > 0 ? since_ns : 0) / 1000000;
}

/* ---- the expired ---- */

static size_t slot_of(const struct expired *expired, uint64_t hash)
{
    size_t mask = expired->slot_count - 1, at = (size_t)hash & mask;
    while (expired->slots[at] && expired->rows[expired->slots[at] - 1].hash != hash)
        at = (at + 1) & mask;
    return at;
}

const struct expired_row *expired_find(const struct expired *expired, const char *id, size_t length)
{
    if (expired->count == 0)
        return NULL;
    size_t at = slot_of(expired, hash64(id, length));
    return expired->slots[at] ? &expired->rows[expired->slots[at] - 1] : NULL;
}

void expired_deinit(struct expired *expired)
{
    mem_free(expired->rows);
    mem_free(expired->slots);
    *expired = (struct expired){0};
}

/* Room for one more row, unless the oldest gives way to it. False: out of memory. */
static bool expired_reserve(struct expired *expired, size_t more)
{
    size_t wanted = expired->count + more, capacity = expired->capacity ? expired->capacity : 64;
    wanted = wanted > expired->max ? expired->max : wanted;
    while (capacity < wanted)
        capacity *= 2;
    if (capacity == expired->capacity)
        return true;
    struct expired wider = {.capacity = capacity, .slot_count = capacity * 2};
    wider.rows = mem_alloc_zero(wider.capacity, sizeof *wider.rows);
    wider.slots = mem_alloc_zero(wider.slot_count, sizeof *wider.slots);
    if (!wider.rows || !wider.slots) {
        expired_deinit(&wider);
        return false;
    }
    for (size_t i = 0; i < expired->count; i++) {
        wider.rows[i] = expired->rows[(expired->first + i) % expired->capacity];
        wider.slots[slot_of(&wider, wider.rows[i].hash)] = (uint32_t)i + 1;
    }
    wider.count = expired->count;
    wider.max = expired->max;
    wider.forgotten = expired->forgotten;
    expired_deinit(expired);
    *expired = wider;
    return true;
}

/* Open addressing without tombstones: what follows the hole is put in again. */
static void slot_clear(struct expired *expired, size_t at)
{
    size_t mask = expired->slot_count - 1;
    expired->slots[at] = 0;
    for (at = (at + 1) & mask; expired->slots[at]; at = (at + 1) & mask) {
        uint32_t moved = expired->slots[at];
        expired->slots[at] = 0;
        expired->slots[slot_of(expired, expired->rows[moved - 1].hash)] = moved;
    }
}

static void forget_oldest(struct expired *expired)
{
    slot_clear(expired, slot_of(expired, expired->rows[expired->first].hash));
    expired->first = (expired->first + 1) % expired->capacity;
    expired->count--;
    expired->forgotten++;
}

/* There is room: expired_reserve. */
static void expired_add(struct expired *expired, uint64_t hash, uint64_t last)
{
    size_t at = expired->slot_count ? slot_of(expired, hash) : 0;
    if (expired->slot_count && expired->slots[at]) {
        struct expired_row *row = &expired->rows[expired->slots[at] - 1];
        row->last = row->last > last ? row->last : last;
        return;
    }
    if (expired->max == 0)
        return;
    if (expired->count == expired->max)
        forget_oldest(expired);
    size_t index = (expired->first + expired->count++) % expired->capacity;
    expired->rows[index] = (struct expired_row){.hash = hash, .last = last};
    expired->slots[slot_of(expired, hash)] = (uint32_t)index + 1;
}

/* ---- going ---- */

bool producers_oldest_goes(struct producers *producers, uint64_t clock_ms)
{
    struct producer *producer = producers->idle.oldest;
    while (producer && producer->claim) /* few are being written at any time */
        producer = producer->newer;
    if (!producer || clock_ms - producer->seen_ms < producers->keep_ms)
        return false;
    producer_list_remove(&producers->idle, producer);
    producer_list_add(&producers->going, producer);
    producer->is_going = true;
    producers->going_count++;
    return true;
}

static void stay(struct producers *producers, struct producer *producer)
{
    producer_list_remove(&producers->going, producer);
    producer_list_put_back(&producers->idle, producer);
    producer->is_going = false;
    producers->going_count--;
}

/* The next batch of those that go; nobody else touches them. */
static size_t batch_take(struct producers *producers, uint64_t clock_ms,
                         const struct producer *batch[BATCH])
{
    size_t count = 0;
    while (producers->going_count < BATCH && producers_oldest_goes(producers, clock_ms))
        continue;
    for (const struct producer *producer = producers->going.oldest; producer && count < BATCH;
         producer = producer->newer)
        batch[count++] = producer;
    return count;
}

static void batch_settle(struct producers *producers, size_t count, bool is_told)
{
    if (!is_told) {
        while (producers->going.newest) /* the longest idle one ends up in front again */
            stay(producers, producers->going.newest);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        struct producer *producer = producers->going.oldest;
        expired_add(&producers->expired, hash64(producer->id, producer->id_length), producer->last);
        producers_remove(producers, producer);
    }
}

static enum status batch_expire(struct wal *wal, size_t *out_count, struct error *err)
{
    struct producers *producers = &wal->producers;
    const struct producer *batch[BATCH];
    env_lock(wal->lock);
    uint64_t clock_ms = wal_clock_ms(wal);
    size_t count = batch_take(producers, clock_ms, batch);
    bool has_room = count == 0 || expired_reserve(&producers->expired, count);
    if (!has_room)
        batch_settle(producers, count, false);
    bool is_clock_due = producers->count > 0 &&
                        clock_ms - producers->clock_saved_ms > producers->keep_ms / SAVES_A_KEEPING;
    env_unlock(wal->lock);
    *out_count = count;
    if (!has_room)
        return error_set(err, STATUS_NO_MEMORY, "log: no memory for expired producers");
    if (count == 0 && !is_clock_due)
        return STATUS_OK;
    enum status status = state_put_expired(wal, clock_ms, batch, count, err);
    env_lock(wal->lock);
    batch_settle(producers, count, status == STATUS_OK);
    if (status == STATUS_OK) {
        producers->clock_saved_ms = clock_ms;
        wal->counters.producers_expired += count;
    }
    env_unlock(wal->lock);
    return status;
}

enum status producers_expire(struct wal *wal, struct error *err)
{
    size_t count = BATCH;
    for (int i = 0; i < BATCHES_A_ROUND && count == BATCH; i++)
        TRY(batch_expire(wal, &count, err));
    return STATUS_OK;
}

/* ---- in state/ ---- */

static void put_seen(const struct producer_list *list, struct buf *out)
{
    for (const struct producer *producer = list->oldest; producer; producer = producer->newer)
        if (producer->last > 0)
            buf_put_le64(out, producer->seen_ms);
}

void producers_times_encode(const struct producers *producers, uint64_t clock_ms, struct buf *out)
{
    const struct expired *expired = &producers->expired;
    buf_put_le64(out, clock_ms);
    put_seen(&producers->going, out);
    put_seen(&producers->idle, out);
    buf_put_le64(out, expired->forgotten);
    buf_put_le32(out, (uint32_t)expired->count);
    for (size_t i = 0; i < expired->count; i++) {
        const struct expired_row *row = &expired->rows[(expired->first + i) % expired->capacity];
        buf_put_le64(out, row->hash);
        buf_put_le64(out, row->last);
    }
}

static void clock_set(struct producers *producers, uint64_t clock_ms)
{
    producers->clock_base_ms = producers->clock_saved_ms = clock_ms;
}

static enum status no_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "checkpoint: out of memory");
}

/* Right behind producers_decode: the idle list is as it was encoded. */
enum status producers_times_decode(struct producers *producers, struct cursor *cursor,
                                   struct error *err)
{
    uint64_t clock_ms = cursor_get_le64(cursor), before = 0;
    for (struct producer *producer = producers->idle.oldest; producer; producer = producer->newer) {
        producer->seen_ms = cursor_get_le64(cursor);
        if (producer->seen_ms < before || producer->seen_ms > clock_ms)
            return error_set(err, STATUS_CORRUPT, "checkpoint: when producers were seen");
        before = producer->seen_ms;
    }
    producers->expired.forgotten = cursor_get_le64(cursor);
    uint32_t count = cursor_get_le32(cursor);
    if (cursor->failed || count > cursor_left(cursor) / 16)
        return error_set(err, STATUS_CORRUPT, "checkpoint: expired producers");
    if (!expired_reserve(&producers->expired, count))
        return no_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t hash = cursor_get_le64(cursor);
        expired_add(&producers->expired, hash, cursor_get_le64(cursor));
    }
    clock_set(producers, clock_ms);
    return STATUS_OK;
}

enum status producers_expired_decode(struct producers *producers, struct cursor *cursor,
                                     struct error *err)
{
    uint64_t clock_ms = cursor_get_le64(cursor);
    uint32_t count = cursor_get_le32(cursor);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t length = cursor_get_byte(cursor);
        const char *id = (const char *)cursor_take(cursor, length);
        uint64_t last = cursor_get_le64(cursor);
        if (cursor->failed || !id)
            return error_set(err, STATUS_CORRUPT, "checkpoint: expired producers");
        if (!expired_reserve(&producers->expired, 1))
            return no_memory(err);
        struct producer *producer = producers_find(producers, id, length);
        if (producer && producer->last > last)
            continue;
        if (producer)
            producers_remove(producers, producer);
        expired_add(&producers->expired, hash64(id, length), last);
    }
    if (clock_ms > producers->clock_base_ms)
        clock_set(producers, clock_ms);
    return STATUS_OK;
}
