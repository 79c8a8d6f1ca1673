/* SPDX-License-Identifier: Apache-2.0
 *
 * FSE codes: how states are shared among symbols, written down, and laid out. Section numbers are
 * RFC 8878's.
 */
#include "format/parquet/zstd_fse_internal.h"

bool fse_share(const uint8_t *symbols, size_t count, unsigned shares[FSE_SYMBOLS])
{
    size_t counts[FSE_SYMBOLS] = {0}, most = 0;
    unsigned sum = 0;
    if (!count)
        return false;
    for (size_t i = 0; i < count; i++)
        counts[symbols[i]]++;
    for (size_t s = 0; s < FSE_SYMBOLS; s++) {
        shares[s] = (unsigned)((counts[s] * FSE_STATES + count / 2) / count);
        shares[s] += counts[s] && !shares[s];
        sum += shares[s];
        most = counts[s] > counts[most] ? s : most;
    }
    shares[most] += FSE_STATES - sum; /* modulo 2^32: may be less, but many have few */
    return counts[most] < count && shares[most] && shares[most] < FSE_STATES;
}

/* 4.1.1: the shares. Each takes as many bits as what is left to share asks for, small ones one less
 * where there are fewer values than numbers; behind a zero stands how many more there are. */
void fse_put_shares(struct bits *bits, const unsigned shares[FSE_SYMBOLS])
{
    unsigned left = FSE_STATES;
    put_bits(bits, FSE_LOG - 5, 4);
    for (size_t s = 0; left; s++) {
        unsigned width = 32 - (unsigned)__builtin_clz(left + 1), value = shares[s] + 1;
        unsigned spare = (1u << width) - (left + 2);
        if (value < spare)
            put_bits(bits, value, width - 1);
        else
            put_bits(bits, value < 1u << (width - 1) ? value : value + spare, width);
        left -= shares[s];
        if (!shares[s]) {
            size_t zeros = 0;
            while (!shares[s + 1 + zeros])
                zeros++;
            s += zeros;
            for (; zeros >= 3; zeros -= 3)
                put_bits(bits, 3, 2);
            put_bits(bits, zeros, 2);
        }
        flush_bits(bits);
    }
    bits->held = (bits->held + 7) / 8 * 8;
    flush_bits(bits);
}

/* 4.1.2 */
void fse_make_states(const unsigned shares[FSE_SYMBOLS], struct fse_state states[FSE_STATES])
{
    unsigned next[FSE_SYMBOLS], at = 0;
    for (size_t s = 0; s < FSE_SYMBOLS; s++) {
        next[s] = shares[s];
        for (unsigned i = 0; i < shares[s]; i++) {
            states[at].symbol = (uint8_t)s;
            at = (at + FSE_STATES / 2 + FSE_STATES / 8 + 3) % FSE_STATES;
        }
    }
    for (size_t i = 0; i < FSE_STATES; i++) {
        unsigned number = next[states[i].symbol]++;
        unsigned bits = FSE_LOG - (31 - (unsigned)__builtin_clz(number));
        states[i].bits = (uint8_t)bits;
        states[i].base = (uint8_t)((number << bits) - FSE_STATES);
    }
}
