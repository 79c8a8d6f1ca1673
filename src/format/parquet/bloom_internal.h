/* SPDX-License-Identifier: Apache-2.0
 *
 * Split block Bloom filters. Source: Parquet's BloomFilter.md; XXH64 with seed 0 over PLAIN bytes,
 * byte arrays without their length. A filter is a whole number of blocks of 32 bytes.
 */
#ifndef SLUICE_FORMAT_PARQUET_BLOOM_INTERNAL_H
#define SLUICE_FORMAT_PARQUET_BLOOM_INTERNAL_H

#include "base/base.h"

enum { BLOOM_BLOCK_BYTES = 32, BLOOM_BYTES_MAX = 128 << 20 };

/* Bytes (a power of two) of a filter that holds `distinct` values and is wrong about one in a
 * hundred others. */
size_t bloom_bytes(uint64_t distinct);
void bloom_add(uint8_t *filter, size_t bytes, uint64_t hash);
/* False: no such value was added. */
bool bloom_has(const uint8_t *filter, size_t bytes, uint64_t hash);
/* Halves a filter of a power of two as often as it stays right about 99 in a hundred; its bytes
 * then. */
size_t bloom_fold(uint8_t *filter, size_t bytes);

#endif
