/* SPDX-License-Identifier: Apache-2.0
 *
 * The RLE / bit-packed hybrid of levels and dictionary indices, and packed booleans. Source:
 * Parquet's Encodings.md.
 */
#include "format/parquet/parquet_internal.h"

enum { GROUP = 8 }; /* values that are packed together */

unsigned bits_needed(uint32_t value)
{
    return value ? 32u - (unsigned)__builtin_clz(value) : 0;
}

/* Levels are bytes, indices are words; one encoder serves both, specialised by the constant. */
static inline __attribute__((always_inline)) uint32_t load(const void *values, size_t i,
                                                           bool is_bytes)
{
    return is_bytes ? ((const uint8_t *)values)[i] : ((const uint32_t *)values)[i];
}

/* Whether the eight values from `i` on are the same. */
static inline __attribute__((always_inline)) bool is_same_group(const void *values, size_t i,
                                                                bool is_bytes)
{
    if (is_bytes) {
        uint64_t word = get_le64((const uint8_t *)values + i);
        return word == (word << 8 | word >> 56);
    }
    const uint8_t *at = (const uint8_t *)values + i * sizeof(uint32_t);
    uint64_t pair = get_le64(at);
    return !((pair ^ (pair << 32 | pair >> 32)) | (pair ^ get_le64(at + 8)) |
             (pair ^ get_le64(at + 16)) | (pair ^ get_le64(at + 24)));
}

static inline __attribute__((always_inline)) size_t run_length(const void *values, size_t i,
                                                               size_t count, bool is_bytes)
{
    size_t end = i + GROUP;
    uint32_t value = load(values, i, is_bytes);
    while (end + GROUP <= count && load(values, end, is_bytes) == value &&
           is_same_group(values, end, is_bytes))
        end += GROUP;
    while (end < count && load(values, end, is_bytes) == value)
        end++;
    return end - i;
}

static void put_run(struct buf *out, uint32_t value, size_t count, unsigned width)
{
    uint8_t bytes[4];
    put_le32(bytes, value);
    buf_put_varint(out, (uint64_t)count << 1);
    buf_put(out, bytes, (width + 7) / 8);
}

/* Packs `count` values, the last group filled with zeros. */
static inline __attribute__((always_inline)) void
put_packed(struct buf *out, const void *values, size_t count, unsigned width, bool is_bytes)
{
    size_t groups = (count + GROUP - 1) / GROUP;
    buf_put_varint(out, (uint64_t)groups << 1 | 1);
    uint8_t *at = buf_extend(out, groups * width);
    if (!at)
        return;
    size_t i = 0;
    if (is_bytes && width == 1) {
        for (; i + 8 <= count; i += 8) /* gathers the lowest bit of eight bytes */
            *at++ =
                (uint8_t)(get_le64((const uint8_t *)values + i) * UINT64_C(0x0102040810204080) >>
                          56);
    } else if (width % 8 == 0) { /* four bytes at a time, as long as there is room for them */
        size_t bytes = width / 8;
        for (; i < count && i * bytes + 4 <= groups * width; i++, at += bytes)
            put_le32(at, load(values, i, is_bytes));
    }
    uint8_t *end = out->data + out->length;
    /* Eight values are `width` bytes: two words, the second of which may reach into what follows.
     */
    for (; width < 16 && width % 8 && i + GROUP <= count && end - at >= 16; i += GROUP) {
        uint64_t low = 0, high = 0;
        for (size_t j = 0; j < GROUP / 2; j++) {
            low |= (uint64_t)load(values, i + j, is_bytes) << (j * width);
            high |= (uint64_t)load(values, i + GROUP / 2 + j, is_bytes) << (j * width);
        }
        put_le64(at, low | high << (4 * width));
        put_le64(at + 8, high >> (64 - 4 * width));
        at += width;
    }
    uint64_t bits = 0;
    unsigned held = 0;
    for (; i < groups * GROUP; i++) {
        bits |= (uint64_t)(i < count ? load(values, i, is_bytes) : 0) << held;
        for (held += width; held >= 8; held -= 8) {
            *at++ = (uint8_t)bits;
            bits >>= 8;
        }
    }
    CHECK(at == end);
}

static inline __attribute__((always_inline)) void
encode(struct buf *out, const void *values, size_t count, unsigned width, bool is_bytes)
{
    size_t step = is_bytes ? 1 : sizeof(uint32_t);
    size_t packed = 0; /* values from here on wait to be packed */
    /* A run is worth it from a whole group on; what is in front of it completes the one before. */
    for (size_t i = 0; i + GROUP <= count;) {
        if (!is_same_group(values, i, is_bytes)) {
            i += GROUP;
            continue;
        }
        size_t run = run_length(values, i, count, is_bytes);
        if (i > packed)
            put_packed(out, (const uint8_t *)values + packed * step, i - packed, width, is_bytes);
        put_run(out, load(values, i, is_bytes), run, width);
        i += run;
        packed = i;
    }
    if (packed < count)
        put_packed(out, (const uint8_t *)values + packed * step, count - packed, width, is_bytes);
}

void encode_levels(struct buf *out, const uint8_t *levels, size_t count, unsigned width)
{
    encode(out, levels, count, width, true);
}

void encode_indices(struct buf *out, const uint32_t *indices, size_t count, unsigned width)
{
    encode(out, indices, count, width, false);
}

void encode_bits(struct buf *out, const uint8_t *bools, size_t count)
{
    uint8_t *at = buf_extend(out, (count + 7) / 8);
    if (!at)
        return;
    memset(at, 0, (count + 7) / 8);
    for (size_t i = 0; i < count; i++)
        at[i / 8] |= (uint8_t)(bools[i] << (i % 8));
}
