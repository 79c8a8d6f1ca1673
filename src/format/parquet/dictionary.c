/* SPDX-License-Identifier: Apache-2.0
 *
 * The dictionary of a column chunk: open addressing over the values of its page.
 */
#include "format/parquet/parquet_internal.h"

enum { SLOTS_MIN = 1024, BATCH = 128, NEAR_COUNT = 4096 };

void dictionary_init(struct dictionary *dictionary, bool is_fixed)
{
    /* The seed keeps the table's order from being known to whoever sends the values. */
    *dictionary = (struct dictionary){.is_fixed = is_fixed,
                                      .seed = (uintptr_t)dictionary * UINT64_C(0x9e3779b97f4a7c15)};
}

void dictionary_clear(struct dictionary *dictionary)
{
    if (dictionary->count)
        memset(dictionary->slots, 0, (dictionary->mask + 1) * sizeof *dictionary->slots);
    dictionary->count = 0;
    buf_clear(&dictionary->page);
    buf_clear(&dictionary->entries);
}

void dictionary_deinit(struct dictionary *dictionary)
{
    mem_free(dictionary->slots);
    buf_deinit(&dictionary->page);
    buf_deinit(&dictionary->entries);
    *dictionary = (struct dictionary){0};
}

static inline uint64_t fold(uint64_t a, uint64_t b)
{
    __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* A value as it is looked for. */
struct key {
    uint64_t first, last; /* as an entry has them */
    uint32_t hash;
};

/* Both words and the hash; of more than sixteen bytes those in between, sixteen a step. Values are
 * short, and a call for each would cost more than the hash. */
static inline struct key make_key(const uint8_t *data, size_t bytes, uint64_t seed)
{
    static const uint64_t k0 = UINT64_C(0xa0761d6478bd642f), k1 = UINT64_C(0xe7037ed1a0b428db);
    struct key key = {0};
    uint64_t mixed = seed;
    if (bytes >= 8) {
        key.first = get_le64(data);
        key.last = get_le64(data + bytes - 8);
        for (size_t at = 8; at + 8 < bytes; at += 16) /* the last step overlaps */
            mixed = fold(get_le64(data + size_min(at, bytes - 16)) ^ k1,
                         get_le64(data + size_min(at + 8, bytes - 8)) ^ mixed);
    } else if (bytes >= 4) {
        key.first = get_le32(data) | (uint64_t)get_le32(data + bytes - 4) << (8 * (bytes - 4));
    } else if (bytes) {
        key.first = data[0] | (uint64_t)data[bytes / 2] << (8 * (bytes / 2)) |
                    (uint64_t)data[bytes - 1] << (8 * (bytes - 1));
    }
    key.hash = (uint32_t)(fold(key.first ^ mixed, key.last ^ seed ^ (k0 + bytes)) >> 32);
    return key;
}

/* A slot is empty or holds an entry's number, from 1 on, under as much of the hash as there is room
 * for above: half a table's entries are counted by the bits of its mask. */
static inline uint32_t make_slot(const struct dictionary *dictionary, uint32_t hash,
                                 uint32_t number)
{
    return (hash & ~(uint32_t)dictionary->mask) | number;
}

static void put_slot(struct dictionary *dictionary, uint32_t hash, uint32_t number)
{
    size_t at = hash & dictionary->mask;
    while (dictionary->slots[at])
        at = (at + 1) & dictionary->mask;
    dictionary->slots[at] = make_slot(dictionary, hash, number);
}

static bool grow(struct dictionary *dictionary)
{
    size_t slot_count = dictionary->slots ? (dictionary->mask + 1) * 2 : SLOTS_MIN;
    uint32_t *slots =
        slot_count > UINT32_MAX / 2 ? NULL : mem_alloc_zero(slot_count, sizeof *slots);
    if (!slots)
        return false;
    mem_free(dictionary->slots);
    dictionary->slots = slots;
    dictionary->mask = slot_count - 1;
    for (uint32_t i = 0; i < dictionary->count; i++) {
        struct span value = dictionary_get(dictionary, i);
        put_slot(dictionary, make_key(value.data, value.length, dictionary->seed).hash, i + 1);
    }
    return true;
}

static bool add(struct dictionary *dictionary, struct span value, const struct key *key)
{
    if (value.length > UINT32_MAX || dictionary->page.length > UINT32_MAX - 8 - value.length)
        return false;
    if (!dictionary->is_fixed)
        buf_put_le32(&dictionary->page, (uint32_t)value.length);
    uint32_t start = (uint32_t)dictionary->page.length;
    buf_put_short(&dictionary->page, value.data, value.length);
    if (dictionary->page.failed ||
        !buf_reserve(&dictionary->entries, sizeof(struct dictionary_entry)))
        return false;
    /* In place: a copy would wait until its parts are there as a whole. */
    struct dictionary_entry *entry = dictionary_entry(dictionary, dictionary->count);
    entry->first = key->first;
    entry->last = key->last;
    entry->start = start;
    entry->bytes = (uint32_t)value.length;
    dictionary->entries.length += sizeof *entry;
    return true;
}

static inline bool is_entry(const struct dictionary *dictionary, uint32_t index, struct span value,
                            const struct key *key)
{
    const struct dictionary_entry *entry = dictionary_entry(dictionary, index);
    if ((entry->first ^ key->first) | (entry->last ^ key->last) | (entry->bytes ^ value.length))
        return false;
    return value.length <= 16 ||
           memcmp(dictionary->page.data + entry->start + 8, value.data + 8, value.length - 16) == 0;
}

static inline bool put_one(struct dictionary *dictionary, struct span value, const struct key *key,
                           uint32_t *out_index)
{
    uint32_t mask = (uint32_t)dictionary->mask, at = key->hash & mask;
    for (uint32_t slot; (slot = dictionary->slots[at]); at = (at + 1) & mask) {
        uint32_t index = (slot & mask) - 1;
        if (!((slot ^ key->hash) & ~mask) && is_entry(dictionary, index, value, key)) {
            *out_index = index;
            return true;
        }
    }
    if (!add(dictionary, value, key))
        return false;
    *out_index = dictionary->count++;
    dictionary->slots[at] = make_slot(dictionary, key->hash, dictionary->count);
    return true;
}

/* Few entries are near: what one value waits for is little. */
static inline __attribute__((always_inline)) bool put_near(struct dictionary *dictionary,
                                                           const struct span *values, size_t count,
                                                           size_t width, uint32_t *out_indices)
{
    for (size_t i = 0; i < count; i++) {
        struct span value = span_of(values[i].data, width ? width : values[i].length);
        struct key key = make_key(value.data, value.length, dictionary->seed);
        if (!put_one(dictionary, value, &key, &out_indices[i]))
            return false;
    }
    return true;
}

/* In steps, so that what one value waits for is fetched beside what the others do: the slot, then
 * the entry that is there. */
static bool put_far(struct dictionary *dictionary, const struct span *values, size_t count,
                    uint32_t *out_indices)
{
    struct key keys[BATCH];
    const uint32_t mask = (uint32_t)dictionary->mask;
    for (size_t i = 0; i < count; i++) {
        keys[i] = make_key(values[i].data, values[i].length, dictionary->seed);
        __builtin_prefetch(&dictionary->slots[keys[i].hash & mask]);
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t slot = dictionary->slots[keys[i].hash & mask];
        __builtin_prefetch(dictionary_entry(dictionary, slot ? (slot & mask) - 1 : 0));
    }
    for (size_t i = 0; i < count; i++)
        if (!put_one(dictionary, values[i], &keys[i], &out_indices[i]))
            return false;
    return true;
}

/* Room for `more` entries: two slots for each, of few entries four, so that hardly a value has to
 * look further than its own. */
static bool make_room(struct dictionary *dictionary, size_t more)
{
    enum { FEW = 4096 };
    size_t count = dictionary->count + more;
    while (count * (count < FEW ? 4 : 2) >= dictionary->mask)
        if (!grow(dictionary))
            return false;
    return true;
}

bool dictionary_put(struct dictionary *dictionary, const struct span *values, size_t count,
                    uint32_t *out_indices)
{
    for (size_t step; count; count -= step, values += step, out_indices += step) {
        step = size_min(count, BATCH);
        if (!make_room(dictionary, step))
            return false;
        size_t width = dictionary->is_fixed ? values->length : 0;
        bool is_good = dictionary->count > NEAR_COUNT
                           ? put_far(dictionary, values, step, out_indices)
                       : width == 4 ? put_near(dictionary, values, step, 4, out_indices)
                       : width == 8 ? put_near(dictionary, values, step, 8, out_indices)
                                    : put_near(dictionary, values, step, 0, out_indices);
        if (!is_good)
            return false;
    }
    return true;
}
