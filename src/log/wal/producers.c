/* SPDX-License-Identifier: Apache-2.0
 *
 * Idempotent producers (L28-L30). A producer's numbers are dense from 1; `last` is the highest that
 * is durable, and it moves only when an entry that carries the number has been synced, so that
 * number and rows become durable together. `claim` is the one being written. Receipts of the last
 * eight numbers are kept; if memory for a receipt runs out the number still counts and a repeat is
 * answered as long ago. How producers expire: expire.c. Guarded by the engine's lock.
 */
#include <stddef.h>

#include "log/wal/wal_internal.h"

bool producers_init(struct producers *producers, size_t max, uint64_t keep_ms)
{
    enum { CAPACITY_FIRST = 64 };
    *producers = (struct producers){
        .max = max, .keep_ms = keep_ms, .expired = {.max = WAL_EXPIRED_TIMES * max}};
    producers->slots = mem_alloc_zero(CAPACITY_FIRST, sizeof(struct producer *));
    producers->capacity = producers->slots ? CAPACITY_FIRST : 0;
    return producers->slots != NULL;
}

static void producer_destroy(struct producer *producer)
{
    mem_free(producer->receipts);
    mem_free(producer);
}

void producers_deinit(struct producers *producers)
{
    for (size_t i = 0; i < producers->capacity; i++)
        if (producers->slots[i])
            producer_destroy(producers->slots[i]);
    mem_free(producers->slots);
    expired_deinit(&producers->expired);
    *producers = (struct producers){0};
}

/* ---- by idleness ---- */

void producer_list_remove(struct producer_list *list, struct producer *producer)
{
    *(producer->older ? &producer->older->newer : &list->oldest) = producer->newer;
    *(producer->newer ? &producer->newer->older : &list->newest) = producer->older;
    producer->older = producer->newer = NULL;
}

void producer_list_add(struct producer_list *list, struct producer *producer)
{
    producer->older = list->newest;
    producer->newer = NULL;
    *(list->newest ? &list->newest->newer : &list->oldest) = producer;
    list->newest = producer;
}

void producer_list_put_back(struct producer_list *list, struct producer *producer)
{
    producer->newer = list->oldest;
    producer->older = NULL;
    *(list->oldest ? &list->oldest->older : &list->newest) = producer;
    list->oldest = producer;
}

static void touch(struct producers *producers, struct producer *producer, uint64_t clock_ms)
{
    if (producer->is_going)
        return;
    producer->seen_ms = clock_ms;
    producer_list_remove(&producers->idle, producer);
    producer_list_add(&producers->idle, producer);
}

/* ---- by id ---- */

static size_t slot_of(const struct producers *producers, const char *id, size_t length)
{
    size_t mask = producers->capacity - 1, at = (size_t)hash64(id, length) & mask;
    for (; producers->slots[at]; at = (at + 1) & mask) {
        const struct producer *producer = producers->slots[at];
        if (producer->id_length == length && memcmp(producer->id, id, length) == 0)
            break;
    }
    return at;
}

struct producer *producers_find(const struct producers *producers, const char *id, size_t length)
{
    return producers->capacity ? producers->slots[slot_of(producers, id, length)] : NULL;
}

static bool make_room(struct producers *producers)
{
    if ((producers->count + 1) * 2 <= producers->capacity)
        return true;
    struct producers wider = {.capacity = producers->capacity * 2};
    wider.slots = mem_alloc_zero(wider.capacity, sizeof(struct producer *));
    if (!wider.slots)
        return false;
    for (size_t i = 0; i < producers->capacity; i++) {
        struct producer *producer = producers->slots[i];
        if (producer)
            wider.slots[slot_of(&wider, producer->id, producer->id_length)] = producer;
    }
    mem_free(producers->slots);
    producers->slots = wider.slots;
    producers->capacity = wider.capacity;
    return true;
}

static struct producer *add(struct producers *producers, const char *id, size_t length,
                            uint64_t clock_ms)
{
    if (!make_room(producers))
        return NULL;
    struct producer *producer = mem_alloc_zero(1, offsetof(struct producer, id) + length);
    if (!producer)
        return NULL;
    producer->seen_ms = clock_ms;
    producer->id_length = (uint8_t)length;
    memcpy(producer->id, id, length);
    producers->slots[slot_of(producers, id, length)] = producer;
    producers->count++;
    producer_list_add(&producers->idle, producer);
    return producer;
}

/* Open addressing without tombstones: what follows the hole is put in again. */
void producers_remove(struct producers *producers, struct producer *producer)
{
    size_t mask = producers->capacity - 1;
    size_t at = slot_of(producers, producer->id, producer->id_length);
    producers->slots[at] = NULL;
    producers->count--;
    producers->going_count -= producer->is_going;
    producer_list_remove(producer->is_going ? &producers->going : &producers->idle, producer);
    for (at = (at + 1) & mask; producers->slots[at]; at = (at + 1) & mask) {
        struct producer *moved = producers->slots[at];
        producers->slots[at] = NULL;
        producers->slots[slot_of(producers, moved->id, moved->id_length)] = moved;
    }
    producer_destroy(producer);
}

/* ---- receipts ---- */

static uint8_t *count_of(struct producer *producer, uint64_t sequence)
{
    return &producer->counts[sequence % WAL_RECEIPTS_KEPT];
}

static bool is_kept(const struct producer *producer, uint64_t sequence)
{
    return sequence > 0 && sequence <= producer->last &&
           producer->last - sequence < WAL_RECEIPTS_KEPT;
}

/* Where the receipts of a kept sequence begin, or would. */
static struct wal_receipt *receipts_of(const struct producer *producer, uint64_t sequence)
{
    size_t at = 0;
    uint64_t last = producer->last;
    for (uint64_t k = last < WAL_RECEIPTS_KEPT ? 1 : last - WAL_RECEIPTS_KEPT + 1; k < sequence;
         k++)
        at += producer->counts[k % WAL_RECEIPTS_KEPT];
    return producer->receipts ? producer->receipts + at : NULL;
}

static size_t receipt_count(const struct producer *producer)
{
    size_t count = 0;
    for (size_t i = 0; i < WAL_RECEIPTS_KEPT; i++)
        count += producer->counts[i];
    return count;
}

/* Moves `last` on; receipts that fall out of the window are dropped. */
static void advance(struct producer *producer, uint64_t sequence)
{
    size_t before = receipt_count(producer);
    for (uint64_t next = producer->last + 1, i = 0; next <= sequence && i < WAL_RECEIPTS_KEPT;
         next++, i++)
        *count_of(producer, next) = 0;
    size_t left = receipt_count(producer);
    if (left > 0 && left < before)
        memmove(producer->receipts, producer->receipts + before - left,
                left * sizeof(struct wal_receipt));
    producer->last = sequence;
}

static void add_receipt(struct producer *producer, uint64_t sequence, struct hash128 body_hash,
                        const struct wal_receipt *receipt)
{
    if (!is_kept(producer, sequence))
        return;
    uint8_t *count = count_of(producer, sequence);
    struct wal_receipt *own = receipts_of(producer, sequence);
    for (uint8_t i = 0; i < *count; i++) {
        /* Recovery may apply what a checkpoint knew already. */
        if (own[i].group == receipt->group && own[i].seq == receipt->seq &&
            own[i].first_row == receipt->first_row)
            return;
    }
    size_t all = receipt_count(producer);
    if (*count == WAL_RECEIPTS_A_NUMBER)
        return;
    if (all == producer->receipt_capacity) {
        size_t capacity = all ? all * 2 : 1;
        struct wal_receipt *receipts = mem_resize(producer->receipts, capacity * sizeof *receipts);
        if (!receipts)
            return;
        producer->receipts = receipts;
        producer->receipt_capacity = (uint16_t)capacity;
        own = receipts_of(producer, sequence);
    }
    struct wal_receipt *place = own + *count, *end = producer->receipts + all;
    memmove(place + 1, place, (size_t)(end - place) * sizeof *place);
    *place = *receipt;
    if ((*count)++ == 0)
        producer->hashes[sequence % WAL_RECEIPTS_KEPT] = body_hash;
}

/* ---- entries ---- */

/* False: out of memory. */
static bool apply_one(struct producers *producers, const struct record *record,
                      const struct wal_contribution *from, uint64_t clock_ms)
{
    uint64_t sequence = from->producer_sequence;
    struct producer *producer = producers_find(producers, from->producer, from->producer_length);
    if (!producer) {
        /* A start replays entries of those whose expiry state/ knows already. */
        const struct expired_row *expired =
            expired_find(&producers->expired, from->producer, from->producer_length);
        if (expired && sequence <= expired->last)
            return true;
        producer = add(producers, from->producer, from->producer_length, clock_ms);
    }
    if (!producer)
        return false;
    touch(producers, producer, clock_ms);
    if (sequence > producer->last)
        advance(producer, sequence);
    producer->is_told = false;
    add_receipt(producer, sequence, from->body_hash,
                &(struct wal_receipt){.term = record->term,
                                      .seq = record->seq,
                                      .group = record->group,
                                      .table_id = record->table_id,
                                      .first_row = from->first_row,
                                      .rows = from->rows,
                                      .rejected = from->rejected});
    if (producer->claim && producer->claim <= producer->last)
        producer->claim = 0;
    return true;
}

bool producers_apply(struct producers *producers, const struct record *record,
                     const struct wal_contribution *contributions, uint64_t clock_ms)
{
    bool is_whole = true;
    for (uint32_t i = 0; i < record->contribution_count; i++)
        if (contributions[i].producer_length > 0)
            is_whole &= apply_one(producers, record, &contributions[i], clock_ms);
    return is_whole;
}

static void release(struct producers *producers, const char *id, size_t length, uint64_t sequence)
{
    struct producer *producer = producers_find(producers, id, length);
    if (!producer || producer->claim != sequence || sequence == 0)
        return;
    producer->claim = 0;
    if (producer->last == 0 && !producer->is_told)
        producers_remove(producers, producer);
}

void producers_release(struct producers *producers, const struct wal_contribution *contributions,
                       uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (contributions[i].producer_length)
            release(producers, contributions[i].producer, contributions[i].producer_length,
                    contributions[i].producer_sequence);
}

bool producers_claim(struct producers *producers, const struct wal_contribution *contributions,
                     uint32_t count, uint64_t clock_ms)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct wal_contribution *from = &contributions[i];
        if (from->producer_length == 0)
            continue;
        struct producer *producer =
            producers_find(producers, from->producer, from->producer_length);
        if (!producer && !expired_find(&producers->expired, from->producer, from->producer_length))
            producer = add(producers, from->producer, from->producer_length, clock_ms);
        else if (!producer)
            continue;
        if (!producer)
            return false;
        if (from->producer_sequence > producer->last && from->producer_sequence > producer->claim)
            producer->claim = from->producer_sequence;
    }
    return true;
}

void wal_producer_abandon(struct wal *wal, struct span producer, uint64_t sequence)
{
    env_lock(wal->lock);
    release(&wal->producers, (const char *)producer.data, producer.length, sequence);
    env_unlock(wal->lock);
}

/* ---- requests ---- */

static enum wal_producer_verdict judge_repeat(struct producer *producer, uint64_t sequence,
                                              struct hash128 body_hash,
                                              struct wal_receipt receipts[WAL_RECEIPTS_A_NUMBER],
                                              uint32_t *out_receipt_count)
{
    if (!is_kept(producer, sequence) || *count_of(producer, sequence) == 0)
        return WAL_PRODUCER_OLD;
    if (!hash128_equal(producer->hashes[sequence % WAL_RECEIPTS_KEPT], body_hash))
        return WAL_PRODUCER_MISMATCH;
    *out_receipt_count = *count_of(producer, sequence);
    memcpy(receipts, receipts_of(producer, sequence), *out_receipt_count * sizeof *receipts);
    return WAL_PRODUCER_REPEAT;
}

/* NULL: no room, or no memory. */
static struct producer *admit(struct producers *producers, struct span id, uint64_t clock_ms)
{
    if (producers->count - producers->going_count >= producers->max &&
        !producers_oldest_goes(producers, clock_ms))
        return NULL;
    return add(producers, (const char *)id.data, id.length, clock_ms);
}

/* L30: it has stored something since the recovery, or nobody is uncertain any more. */
static bool is_certain(const struct producers *producers, const struct producer *producer,
                       uint64_t clock_ms)
{
    if (clock_ms >= producers->uncertain_until_ms)
        return true;
    size_t count = producer ? receipt_count(producer) : 0;
    return producer && (producer->is_told || producer->claim ||
                        (count && producer->receipts[count - 1].term >= producers->certain_term));
}

static enum wal_producer_verdict judge(struct producers *producers, struct span id,
                                       uint64_t sequence, struct hash128 body_hash,
                                       uint64_t clock_ms,
                                       struct wal_receipt receipts[WAL_RECEIPTS_A_NUMBER],
                                       uint32_t *out_receipt_count, uint64_t *out_expected)
{
    struct producer *producer = producers_find(producers, (const char *)id.data, id.length);
    const struct expired_row *expired =
        producer ? NULL : expired_find(&producers->expired, (const char *)id.data, id.length);
    uint64_t last = producer ? producer->last : expired ? expired->last : 0;
    *out_expected = last + 1;
    if (expired || (producer && producer->is_going))
        return WAL_PRODUCER_EXPIRED;
    if (producer)
        touch(producers, producer, clock_ms);
    if (!is_certain(producers, producer, clock_ms)) {
        producer = producer ? producer : admit(producers, id, clock_ms);
        if (!producer)
            return WAL_PRODUCER_FULL;
        producer->is_told = true;
        return WAL_PRODUCER_UNCERTAIN;
    }
    if (sequence == 0)
        return WAL_PRODUCER_GAP;
    if (sequence <= last)
        return judge_repeat(producer, sequence, body_hash, receipts, out_receipt_count);
    if (producer && producer->claim)
        return sequence <= producer->claim + 1 ? WAL_PRODUCER_IN_FLIGHT : WAL_PRODUCER_GAP;
    if (sequence != last + 1 && !(producer && producer->is_told))
        return WAL_PRODUCER_GAP;
    if (!producer)
        producer = admit(producers, id, clock_ms);
    if (!producer)
        return WAL_PRODUCER_FULL;
    producer->claim = sequence;
    return WAL_PRODUCER_NEW;
}

enum wal_producer_verdict wal_producer_begin(struct wal *wal, struct span producer,
                                             uint64_t sequence, struct hash128 body_hash,
                                             struct wal_receipt receipts[16],
                                             uint32_t *out_receipt_count, uint64_t *out_expected)
{
    *out_receipt_count = 0;
    *out_expected = 0;
    CHECK(producer.length > 0 && producer.length <= WAL_PRODUCER_ID_MAX);
    env_lock(wal->lock);
    bool had_going = wal->producers.going_count > 0;
    enum wal_producer_verdict verdict =
        judge(&wal->producers, producer, sequence, body_hash, wal_clock_ms(wal), receipts,
              out_receipt_count, out_expected);
    if (!had_going && wal->producers.going_count > 0)
        wal_poke(wal);
    env_unlock(wal->lock);
    return verdict;
}

/* ---- in checkpoints ---- */

static void put_receipts(const struct producer *producer, uint64_t sequence, struct buf *out)
{
    const struct wal_receipt *receipts = receipts_of(producer, sequence);
    uint32_t count = producer->counts[sequence % WAL_RECEIPTS_KEPT];
    buf_put_le64(out, sequence);
    buf_put_le64(out, producer->hashes[sequence % WAL_RECEIPTS_KEPT].low);
    buf_put_le64(out, producer->hashes[sequence % WAL_RECEIPTS_KEPT].high);
    buf_put_le32(out, count);
    for (uint32_t n = 0; n < count; n++) {
        buf_put_le64(out, receipts[n].term);
        buf_put_le64(out, receipts[n].seq);
        buf_put_le32(out, receipts[n].group);
        buf_put_le32(out, receipts[n].table_id);
        buf_put_le32(out, receipts[n].first_row);
        buf_put_le32(out, receipts[n].rows);
        buf_put_le32(out, receipts[n].rejected);
    }
}

static void put_list(const struct producer_list *list, struct buf *out)
{
    for (const struct producer *producer = list->oldest; producer; producer = producer->newer) {
        if (producer->last == 0)
            continue;
        buf_put_byte(out, producer->id_length);
        buf_put(out, producer->id, producer->id_length);
        buf_put_le64(out, producer->last);
        for (uint64_t k = 0; k < WAL_RECEIPTS_KEPT; k++) {
            uint64_t sequence = producer->last - k;
            if (k < producer->last && producer->counts[sequence % WAL_RECEIPTS_KEPT])
                put_receipts(producer, sequence, out);
            else
                buf_put_le64(out, 0);
        }
    }
}

void producers_encode(const struct producers *producers, struct buf *out)
{
    uint32_t count = 0;
    for (size_t i = 0; i < producers->capacity; i++)
        count += producers->slots[i] && producers->slots[i]->last > 0;
    buf_put_le32(out, count);
    put_list(&producers->going, out);
    put_list(&producers->idle, out);
}

static bool slot_decode(struct producer *producer, struct cursor *cursor)
{
    uint64_t sequence = cursor_get_le64(cursor);
    if (sequence == 0)
        return !cursor->failed;
    struct hash128 body_hash = {.low = cursor_get_le64(cursor)};
    body_hash.high = cursor_get_le64(cursor);
    uint32_t count = cursor_get_le32(cursor);
    for (uint32_t n = 0; n < count && !cursor->failed; n++) {
        struct wal_receipt receipt = {.term = cursor_get_le64(cursor)};
        receipt.seq = cursor_get_le64(cursor);
        receipt.group = cursor_get_le32(cursor);
        receipt.table_id = cursor_get_le32(cursor);
        receipt.first_row = cursor_get_le32(cursor);
        receipt.rows = cursor_get_le32(cursor);
        receipt.rejected = cursor_get_le32(cursor);
        add_receipt(producer, sequence, body_hash, &receipt);
    }
    return !cursor->failed;
}

enum status producers_decode(struct producers *producers, struct cursor *cursor, struct error *err)
{
    uint32_t count = cursor_get_le32(cursor);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t length = cursor_get_byte(cursor);
        const char *id = (const char *)cursor_take(cursor, length);
        if (!id || length == 0 || length > WAL_PRODUCER_ID_MAX ||
            producers_find(producers, id, length))
            return error_set(err, STATUS_CORRUPT, "checkpoint: producer %u", i);
        struct producer *producer = add(producers, id, length, 0);
        if (!producer)
            return error_set(err, STATUS_NO_MEMORY, "checkpoint: out of memory");
        producer->last = cursor_get_le64(cursor);
        for (size_t k = 0; k < WAL_RECEIPTS_KEPT; k++)
            if (!slot_decode(producer, cursor))
                return error_set(err, STATUS_CORRUPT, "checkpoint: producer %u", i);
    }
    return STATUS_OK;
}
