/* SPDX-License-Identifier: Apache-2.0
 *
 * FSE codes of zstd (RFC 8878, 4.1) of few symbols and 64 states, and the bits that they are
 * written in: the first in the lowest place.
 */
#ifndef SLUICE_FORMAT_PARQUET_ZSTD_FSE_INTERNAL_H
#define SLUICE_FORMAT_PARQUET_ZSTD_FSE_INTERNAL_H

#include "base/base.h"

/* ---- bits ---- */

struct bits {
    uint8_t *at; /* eight bytes from here on are written over */
    uint64_t word;
    unsigned held;
};

static inline void put_bits(struct bits *bits, uint64_t value, unsigned count)
{
    bits->word |= value << bits->held;
    bits->held += count;
}

static inline void flush_bits(struct bits *bits)
{
    put_le64(bits->at, bits->word);
    bits->at += bits->held / 8;
    bits->word >>= bits->held & ~7u;
    bits->held &= 7;
}

static inline uint8_t *end_bits(struct bits *bits)
{
    flush_bits(bits);
    return bits->at + (bits->held > 0);
}

/* ---- codes ---- */

enum { FSE_LOG = 6, FSE_STATES = 1 << FSE_LOG, FSE_SYMBOLS = 12 };

/* Shares of the states by how often the symbols come, in sum FSE_STATES, at least one for what is
 * there. False: it is all alike, or there is none. */
bool fse_share(const uint8_t *symbols, size_t count, unsigned shares[FSE_SYMBOLS]);

/* The description of a code, 4.1.1; ends with a byte. */
void fse_put_shares(struct bits *bits, const unsigned shares[FSE_SYMBOLS]);

/* What a decoder does in a state: says the symbol, and goes on to `base` and what `bits` bits say.
 */
struct fse_state {
    uint8_t symbol, bits, base;
};

void fse_make_states(const unsigned shares[FSE_SYMBOLS], struct fse_state states[FSE_STATES]);

#endif
