/* SPDX-License-Identifier: Apache-2.0
 *
 * The dictionary of a column chunk: open addressing over the values of its page.
 */
#include "format/parquet/parquet_internal.h"

enum { SLOTS_MIN = 256 };

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

/* Multiply-fold, sixteen bytes a step; the last step overlaps. Values are short, and a call for
 * each would cost more than the hash. */
static inline uint64_t hash_value(const uint8_t *data, size_t bytes, uint64_t seed)
{
    static const uint64_t k0 = UINT64_C(0xa0761d6478bd642f), k1 = UINT64_C(0xe7037ed1a0b428db);
    uint64_t a, b;
    if (bytes >= 8) {
        const uint8_t *last = data + bytes - 8;
        for (; bytes > 16; bytes -= 16, data += 16)
            seed = fold(get_le64(data) ^ k1, get_le64(data + 8) ^ seed);
        a = bytes > 8 ? get_le64(data) : bytes;
        b = get_le64(last);
    } else if (bytes >= 4) {
        a = get_le32(data);
        b = get_le32(data + bytes - 4);
    } else {
        a = bytes ? (uint64_t)data[0] << 16 | (uint64_t)data[bytes / 2] << 8 | data[bytes - 1] : 0;
        b = 0;
    }
    return fold(a ^ k1, fold(b ^ seed, k0 ^ bytes));
}

static bool grow(struct dictionary *dictionary)
{
    size_t slot_count = dictionary->slots ? (dictionary->mask + 1) * 2 : SLOTS_MIN;
    uint64_t *slots = mem_alloc_zero(slot_count, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; dictionary->slots && i <= dictionary->mask; i++) {
        if (!dictionary->slots[i])
            continue;
        size_t at = (size_t)(dictionary->slots[i] >> 32) & (slot_count - 1);
        while (slots[at])
            at = (at + 1) & (slot_count - 1);
        slots[at] = dictionary->slots[i];
    }
    mem_free(dictionary->slots);
    dictionary->slots = slots;
    dictionary->mask = slot_count - 1;
    return true;
}

static bool add(struct dictionary *dictionary, struct span value)
{
    if (value.length > UINT32_MAX || dictionary->page.length > UINT32_MAX - 8 - value.length)
        return false;
    if (!dictionary->is_fixed)
        buf_put_le32(&dictionary->page, (uint32_t)value.length);
    struct dictionary_entry entry = {.start = (uint32_t)dictionary->page.length,
                                     .bytes = (uint32_t)value.length};
    buf_put(&dictionary->page, value.data, value.length);
    buf_put(&dictionary->entries, &entry, sizeof entry);
    return !dictionary->page.failed && !dictionary->entries.failed;
}

static inline bool is_equal(const uint8_t *a, const uint8_t *b, size_t bytes)
{
    if (bytes > 16)
        return memcmp(a, b, bytes) == 0;
    if (bytes >= 8)
        return get_le64(a) == get_le64(b) && get_le64(a + bytes - 8) == get_le64(b + bytes - 8);
    if (bytes >= 4)
        return get_le32(a) == get_le32(b) && get_le32(a + bytes - 4) == get_le32(b + bytes - 4);
    for (size_t i = 0; i < bytes; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

static bool put_one(struct dictionary *dictionary, struct span value, uint64_t hash,
                    uint32_t *out_index)
{
    size_t at = hash & dictionary->mask;
    for (uint64_t slot; (slot = dictionary->slots[at]); at = (at + 1) & dictionary->mask) {
        if (slot >> 32 != hash)
            continue;
        struct span known = dictionary_get(dictionary, (uint32_t)slot - 1);
        if (known.length == value.length && is_equal(known.data, value.data, value.length)) {
            *out_index = (uint32_t)slot - 1;
            return true;
        }
    }
    if (!add(dictionary, value))
        return false;
    *out_index = dictionary->count++;
    dictionary->slots[at] = hash << 32 | dictionary->count;
    return true;
}

bool dictionary_put(struct dictionary *dictionary, const struct span *values, size_t count,
                    uint32_t *out_indices)
{
    /* All hashes first: the table's misses then overlap. */
    enum { BATCH = 64 };
    uint64_t hashes[BATCH];
    while (count) {
        size_t batch = size_min(count, BATCH);
        while ((dictionary->count + batch) * 2 >= dictionary->mask)
            if (!grow(dictionary))
                return false;
        for (size_t i = 0; i < batch; i++) {
            hashes[i] = hash_value(values[i].data, values[i].length, dictionary->seed) >> 32;
            __builtin_prefetch(&dictionary->slots[hashes[i] & dictionary->mask]);
        }
        for (size_t i = 0; i < batch; i++)
            if (!put_one(dictionary, values[i], hashes[i], &out_indices[i]))
                return false;
        values += batch;
        out_indices += batch;
        count -= batch;
    }
    return true;
}
