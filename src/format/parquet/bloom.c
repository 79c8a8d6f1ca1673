/* SPDX-License-Identifier: Apache-2.0
 *
 * Split block Bloom filters: a value sets one bit in each of the eight words of one block.
 */
#include "format/parquet/bloom_internal.h"

enum { WORDS = BLOOM_BLOCK_BYTES / 4, BITS_A_VALUE_TENTHS = 105 };

static const double WRONG_MAX = 0.01;

size_t bloom_bytes(uint64_t distinct)
{
    size_t bytes = BLOOM_BLOCK_BYTES;
    while (bytes < BLOOM_BYTES_MAX && bytes * 8 * 10 / BITS_A_VALUE_TENTHS < distinct)
        bytes *= 2;
    return bytes;
}

static inline size_t block_of(size_t bytes, uint64_t hash)
{
    return (size_t)((hash >> 32) * (bytes / BLOOM_BLOCK_BYTES) >> 32) * BLOOM_BLOCK_BYTES;
}

static inline uint32_t bit_of(unsigned word, uint64_t hash)
{
    static const uint32_t salts[WORDS] = {0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
                                          0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31};
    return UINT32_C(1) << (((uint32_t)hash * salts[word]) >> 27);
}

void bloom_add(uint8_t *filter, size_t bytes, uint64_t hash)
{
    uint8_t *block = filter + block_of(bytes, hash);
    for (unsigned i = 0; i < WORDS; i++)
        put_le32(block + i * 4, get_le32(block + i * 4) | bit_of(i, hash));
}

bool bloom_has(const uint8_t *filter, size_t bytes, uint64_t hash)
{
    const uint8_t *block = filter + block_of(bytes, hash);
    for (unsigned i = 0; i < WORDS; i++)
        if (!(get_le32(block + i * 4) & bit_of(i, hash)))
            return false;
    return true;
}

/* How often a filter of half the size would be wrong about a value that it does not hold: the share
 * of bits set in each word of a block, multiplied, over all blocks. */
static double wrong_when_halved(const uint8_t *filter, size_t bytes)
{
    double sum = 0;
    for (size_t at = 0; at < bytes; at += (size_t)2 * BLOOM_BLOCK_BYTES) {
        double wrong = 1;
        for (unsigned i = 0; i < WORDS; i++) {
            uint32_t word =
                get_le32(filter + at + i * 4) | get_le32(filter + at + BLOOM_BLOCK_BYTES + i * 4);
            wrong *= __builtin_popcount(word) / 32.0;
        }
        sum += wrong;
    }
    return sum / (double)(bytes / BLOOM_BLOCK_BYTES / 2);
}

size_t bloom_fold(uint8_t *filter, size_t bytes)
{
    while (bytes > BLOOM_BLOCK_BYTES && wrong_when_halved(filter, bytes) <= WRONG_MAX) {
        bytes /= 2;
        for (size_t at = 0; at < bytes; at += 8) { /* blocks 2 i and 2 i + 1 become block i */
            size_t from = at / BLOOM_BLOCK_BYTES * 2 * BLOOM_BLOCK_BYTES + at % BLOOM_BLOCK_BYTES;
            put_le64(filter + at,
                     get_le64(filter + from) | get_le64(filter + from + BLOOM_BLOCK_BYTES));
        }
    }
    return bytes;
}
