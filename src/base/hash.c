/* SPDX-License-Identifier: Apache-2.0
 *
 * Hashes behind one face: ISA-L for CRCs, xxHash for the rest, OpenSSL for SHA-256.
 */
#include <isa-l/crc.h>
#include <openssl/evp.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/base.h"

uint32_t crc32c(uint32_t crc, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    crc = ~crc;
    while (bytes > 0) { /* ISA-L takes an int and a pointer that it does not write through */
        size_t part = size_min(bytes, (size_t)1 << 30);
        crc = crc32_iscsi((unsigned char *)(uintptr_t)at, (int)part, crc);
        at += part;
        bytes -= part;
    }
    return ~crc;
}

uint32_t crc32_gzip(uint32_t crc, const void *data, size_t bytes)
{
    return crc32_gzip_refl(crc, data, bytes);
}

uint64_t hash64(const void *data, size_t bytes)
{
    return XXH3_64bits(data, bytes);
}

uint64_t hash64_seeded(const void *data, size_t bytes, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, bytes, seed);
}

uint64_t hash_xxh64(const void *data, size_t bytes)
{
    return XXH64(data, bytes, 0);
}

struct hash128 hash128(const void *data, size_t bytes)
{
    XXH128_hash_t hash = XXH3_128bits(data, bytes);
    return (struct hash128){.low = hash.low64, .high = hash.high64};
}

struct hash128 hash128_seeded(const void *data, size_t bytes, uint64_t seed)
{
    XXH128_hash_t hash = XXH3_128bits_withSeed(data, bytes, seed);
    return (struct hash128){.low = hash.low64, .high = hash.high64};
}

bool sha256_init(struct sha256 *sha)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (!context || EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(context);
        return false;
    }
    sha->state = context;
    return true;
}

void sha256_update(struct sha256 *sha, const void *data, size_t bytes)
{
    CHECK(EVP_DigestUpdate(sha->state, data, bytes) == 1);
}

void sha256_final(struct sha256 *sha, uint8_t out_digest[SHA256_BYTES])
{
    unsigned int length = 0;
    CHECK(EVP_DigestFinal_ex(sha->state, out_digest, &length) == 1 && length == SHA256_BYTES);
    sha256_abort(sha);
}

void sha256_abort(struct sha256 *sha)
{
    EVP_MD_CTX_free(sha->state);
    sha->state = NULL;
}
