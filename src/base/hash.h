/* SPDX-License-Identifier: Apache-2.0
 *
 * Checksums and hashes. CRC32C is the Castagnoli polynomial (RFC 3720), `crc32c(0, ...)` starts a
 * run and its result continues it. CRC-32 (gzip polynomial) is what Parquet pages carry. XXH3 and
 * XXH64 are those of xxHash 0.8. SHA-256 is FIPS 180-4. Pure; any thread.
 */
#ifndef SLUICE_BASE_HASH_H
#define SLUICE_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(uint32_t crc, const void *data, size_t bytes);
uint32_t crc32_gzip(uint32_t crc, const void *data, size_t bytes);

struct hash128 {
    uint64_t low, high;
};

uint64_t hash64(const void *data, size_t bytes);                       /* XXH3, seed 0 */
uint64_t hash64_seeded(const void *data, size_t bytes, uint64_t seed); /* XXH3 */
uint64_t hash_xxh64(const void *data, size_t bytes);                   /* XXH64, seed 0 */
struct hash128 hash128(const void *data, size_t bytes);                /* XXH3, seed 0 */
struct hash128 hash128_seeded(const void *data, size_t bytes, uint64_t seed);

static inline bool hash128_equal(struct hash128 a, struct hash128 b)
{
    return a.low == b.low && a.high == b.high;
}

static inline struct hash128 hash128_add(struct hash128 a, struct hash128 b) /* modulo 2^128 */
{
    struct hash128 sum = {.low = a.low + b.low, .high = a.high + b.high};
    sum.high += sum.low < a.low;
    return sum;
}

static inline struct hash128 hash128_subtract(struct hash128 a, struct hash128 b)
{
    struct hash128 rest = {.low = a.low - b.low, .high = a.high - b.high};
    rest.high -= a.low < b.low;
    return rest;
}

enum { SHA256_BYTES = 32 };

struct sha256 {
    void *state; /* owned */
};

/* SHA-256 in pieces: init, update ..., then final, which also frees. abort frees without a result.
 */
bool sha256_init(struct sha256 *sha); /* false: out of memory */
void sha256_update(struct sha256 *sha, const void *data, size_t bytes);
void sha256_final(struct sha256 *sha, uint8_t out_digest[SHA256_BYTES]);
void sha256_abort(struct sha256 *sha);

#endif
