/* SPDX-License-Identifier: Apache-2.0
 *
 * Idempotent producers (L28-L30). A producer's numbers are dense from 1; `last` is the highest that
 * is durable, and it moves only when an entry that carries the number has been synced, so that
 * number and rows become durable together. `claim` is the one being written. Receipts of the last
 * eight numbers are kept; if memory for a receipt runs out the number still counts and a repeat is
 * answered as long ago. Guarded by the engine's lock.
 */
#include "log/wal/wal_internal.h"

bool producers_init(struct producers *producers, size_t max)
{
    enum { CAPACITY_FIRST = 64 };
    *producers = (struct producers){.max = max};
    producers->slots = mem_alloc_zero(CAPACITY_FIRST, sizeof(struct producer *));
    producers->capacity = producers->slots ? CAPACITY_FIRST : 0;
    return producers->slots != NULL;
}

static void producer_destroy(struct producer *producer)
{
    for (size_t i = 0; i < WAL_RECEIPTS_KEPT; i++)
        mem_free(producer->slots[i].receipts);
    mem_free(producer);
}

void producers_deinit(struct producers *producers)
{
    for (size_t i = 0; i < producers->capacity; i++)
        if (producers->slots[i])
            producer_destroy(producers->slots[i]);
    mem_free(producers->slots);
    *producers = (struct producers){0};
}

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

static struct producer *find(const struct producers *producers, const char *id, size_t length)
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

static struct producer *add(struct producers *producers, const char *id, size_t length)
{
    if (!make_room(producers))
        return NULL;
    struct producer *producer = mem_alloc_zero(1, sizeof *producer);
    if (!producer)
        return NULL;
    producer->id_length = (uint8_t)length;
    memcpy(producer->id, id, length);
    producers->slots[slot_of(producers, id, length)] = producer;
    producers->count++;
    return producer;
}

/* Open addressing without tombstones: what follows the hole is put in again. */
static void remove_producer(struct producers *producers, struct producer *producer)
{
    size_t mask = producers->capacity - 1;
    size_t at = slot_of(producers, producer->id, producer->id_length);
    producers->slots[at] = NULL;
    producers->count--;
    for (at = (at + 1) & mask; producers->slots[at]; at = (at + 1) & mask) {
        struct producer *moved = producers->slots[at];
        producers->slots[at] = NULL;
        producers->slots[slot_of(producers, moved->id, moved->id_length)] = moved;
    }
    producer_destroy(producer);
}

static struct producer_slot *receipts_of(struct producer *producer, uint64_t sequence)
{
    struct producer_slot *slot = &producer->slots[sequence % WAL_RECEIPTS_KEPT];
    return slot->sequence == sequence ? slot : NULL;
}

static void add_receipt(struct producer_slot *slot, const struct wal_receipt *receipt)
{
    for (uint32_t i = 0; i < slot->count; i++) {
        /* Recovery may apply what a checkpoint knew already. */
        if (slot->receipts[i].group == receipt->group && slot->receipts[i].seq == receipt->seq &&
            slot->receipts[i].first_row == receipt->first_row)
            return;
    }
    if (slot->count == slot->capacity) {
        uint32_t capacity = slot->capacity ? slot->capacity * 2 : 1;
        struct wal_receipt *receipts = mem_resize(slot->receipts, capacity * sizeof *receipts);
        if (!receipts)
            return;
        slot->receipts = receipts;
        slot->capacity = capacity;
    }
    slot->receipts[slot->count++] = *receipt;
}

bool producers_apply(struct producers *producers, const struct record *record,
                     const struct wal_contribution *contributions)
{
    bool is_whole = true;
    for (uint32_t i = 0; i < record->contribution_count; i++) {
        const struct wal_contribution *from = &contributions[i];
        if (from->producer_length == 0)
            continue;
        struct producer *producer = find(producers, from->producer, from->producer_length);
        if (!producer)
            producer = add(producers, from->producer, from->producer_length);
        if (!producer) {
            is_whole = false;
            continue;
        }
        struct producer_slot *slot = &producer->slots[from->producer_sequence % WAL_RECEIPTS_KEPT];
        if (from->producer_sequence > slot->sequence) {
            slot->sequence = from->producer_sequence;
            slot->body_hash = from->body_hash;
            slot->count = 0;
        }
        if (slot->sequence == from->producer_sequence)
            add_receipt(slot, &(struct wal_receipt){.term = record->term,
                                                    .seq = record->seq,
                                                    .group = record->group,
                                                    .table_id = record->table_id,
                                                    .first_row = from->first_row,
                                                    .rows = from->rows,
                                                    .rejected = from->rejected});
        if (from->producer_sequence > producer->last)
            producer->last = from->producer_sequence;
        if (producer->claim && producer->claim <= producer->last)
            producer->claim = 0;
    }
    return is_whole;
}

static void release(struct producers *producers, const char *id, size_t length, uint64_t sequence)
{
    struct producer *producer = find(producers, id, length);
    if (!producer || producer->claim != sequence || sequence == 0)
        return;
    producer->claim = 0;
    if (producer->last == 0)
        remove_producer(producers, producer);
}

void producers_release(struct producers *producers, const struct wal_contribution *contributions,
                       uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (contributions[i].producer_length)
            release(producers, contributions[i].producer, contributions[i].producer_length,
                    contributions[i].producer_sequence);
}

void wal_producer_abandon(struct wal *wal, struct span producer, uint64_t sequence)
{
    env_lock(wal->lock);
    release(&wal->producers, (const char *)producer.data, producer.length, sequence);
    env_unlock(wal->lock);
}

static enum wal_producer_verdict judge(struct producers *producers, struct span id,
                                       uint64_t sequence, struct hash128 body_hash,
                                       struct wal_receipt receipts[16], uint32_t *out_receipt_count,
                                       uint64_t *out_expected)
{
    struct producer *producer = find(producers, (const char *)id.data, id.length);
    uint64_t last = producer ? producer->last : 0;
    *out_expected = last + 1;
    if (sequence == 0)
        return WAL_PRODUCER_GAP;
    if (sequence <= last) {
        struct producer_slot *slot = receipts_of(producer, sequence);
        if (!slot || slot->count == 0)
            return WAL_PRODUCER_OLD;
        if (!hash128_equal(slot->body_hash, body_hash))
            return WAL_PRODUCER_MISMATCH;
        *out_receipt_count = slot->count < 16 ? slot->count : 16;
        memcpy(receipts, slot->receipts, *out_receipt_count * sizeof *receipts);
        return WAL_PRODUCER_REPEAT;
    }
    if (producer && producer->claim)
        return sequence <= producer->claim + 1 ? WAL_PRODUCER_IN_FLIGHT : WAL_PRODUCER_GAP;
    if (sequence != last + 1)
        return WAL_PRODUCER_GAP;
    if (!producer) {
        if (producers->count >= producers->max)
            return WAL_PRODUCER_FULL;
        producer = add(producers, (const char *)id.data, id.length);
        if (!producer)
            return WAL_PRODUCER_FULL;
    }
    producer->claim = sequence;
    producer->claim_hash = body_hash;
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
    enum wal_producer_verdict verdict = judge(&wal->producers, producer, sequence, body_hash,
                                              receipts, out_receipt_count, out_expected);
    env_unlock(wal->lock);
    return verdict;
}

/* ---- in checkpoints ---- */

void producers_encode(const struct producers *producers, struct buf *out)
{
    uint32_t count = 0;
    for (size_t i = 0; i < producers->capacity; i++)
        count += producers->slots[i] && producers->slots[i]->last > 0;
    buf_put_le32(out, count);
    for (size_t i = 0; i < producers->capacity; i++) {
        const struct producer *producer = producers->slots[i];
        if (!producer || producer->last == 0)
            continue;
        buf_put_byte(out, producer->id_length);
        buf_put(out, producer->id, producer->id_length);
        buf_put_le64(out, producer->last);
        for (size_t k = 0; k < WAL_RECEIPTS_KEPT; k++) {
            const struct producer_slot *slot = &producer->slots[k];
            buf_put_le64(out, slot->sequence);
            if (slot->sequence == 0)
                continue;
            buf_put_le64(out, slot->body_hash.low);
            buf_put_le64(out, slot->body_hash.high);
            buf_put_le32(out, slot->count);
            for (uint32_t n = 0; n < slot->count; n++) {
                const struct wal_receipt *receipt = &slot->receipts[n];
                buf_put_le64(out, receipt->term);
                buf_put_le64(out, receipt->seq);
                buf_put_le32(out, receipt->group);
                buf_put_le32(out, receipt->table_id);
                buf_put_le32(out, receipt->first_row);
                buf_put_le32(out, receipt->rows);
                buf_put_le32(out, receipt->rejected);
            }
        }
    }
}

static bool slot_decode(struct producer_slot *slot, struct cursor *cursor)
{
    slot->sequence = cursor_get_le64(cursor);
    if (slot->sequence == 0)
        return true;
    slot->body_hash.low = cursor_get_le64(cursor);
    slot->body_hash.high = cursor_get_le64(cursor);
    uint32_t count = cursor_get_le32(cursor);
    for (uint32_t n = 0; n < count && !cursor->failed; n++) {
        struct wal_receipt receipt = {.term = cursor_get_le64(cursor)};
        receipt.seq = cursor_get_le64(cursor);
        receipt.group = cursor_get_le32(cursor);
        receipt.table_id = cursor_get_le32(cursor);
        receipt.first_row = cursor_get_le32(cursor);
        receipt.rows = cursor_get_le32(cursor);
        receipt.rejected = cursor_get_le32(cursor);
        add_receipt(slot, &receipt);
    }
    return !cursor->failed;
}

enum status producers_decode(struct producers *producers, struct cursor *cursor, struct error *err)
{
    uint32_t count = cursor_get_le32(cursor);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t length = cursor_get_byte(cursor);
        const char *id = (const char *)cursor_take(cursor, length);
        if (!id || length == 0 || length > WAL_PRODUCER_ID_MAX || find(producers, id, length))
            return error_set(err, STATUS_CORRUPT, "checkpoint: producer %u", i);
        struct producer *producer = add(producers, id, length);
        if (!producer)
            return error_set(err, STATUS_NO_MEMORY, "checkpoint: out of memory");
        producer->last = cursor_get_le64(cursor);
        for (size_t k = 0; k < WAL_RECEIPTS_KEPT; k++)
            if (!slot_decode(&producer->slots[k], cursor))
                return error_set(err, STATUS_CORRUPT, "checkpoint: producer %u", i);
    }
    return STATUS_OK;
}
