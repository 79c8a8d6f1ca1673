/* SPDX-License-Identifier: Apache-2.0
 *
 * Literals of zstd blocks under a Huffman code of their own. Section numbers are RFC 8878's: 4.2
 * the code and its description, 4.1 the FSE code in which the description is written.
 */
#include "format/parquet/zstd_frame_internal.h"
#include "format/parquet/zstd_fse_internal.h"

enum {
    SYMBOLS = 256,
    BITS_MAX = 11,    /* of a code, 4.2.1 */
    DIRECT_MAX = 128, /* weights that can be written without FSE, 4.2.1.1 */
    TREE_BYTES_MAX = 128,
};

/* ---- the code ---- */

struct code {
    uint8_t lengths[SYMBOLS];
    uint16_t codes[SYMBOLS];
    unsigned bits; /* the greatest length */
    unsigned last; /* the greatest symbol that is there */
};

static void count_symbols(const uint8_t *literals, size_t count, uint32_t counts[SYMBOLS])
{
    uint32_t parts[4][SYMBOLS]; /* one after the other would wait for the same place */
    size_t i = 0;
    memset(parts, 0, sizeof parts);
    for (; i + 4 <= count; i += 4)
        for (size_t j = 0; j < 4; j++)
            parts[j][literals[i + j]]++;
    for (; i < count; i++)
        parts[0][literals[i]]++;
    for (size_t s = 0; s < SYMBOLS; s++)
        counts[s] = parts[0][s] + parts[1][s] + parts[2][s] + parts[3][s];
}

/* Symbols by their counts, the rarest first; how many there are. */
static size_t sort_symbols(const uint32_t counts[SYMBOLS], uint8_t sorted[SYMBOLS])
{
    size_t count = 0;
    for (size_t s = 0; s < SYMBOLS; s++) {
        if (!counts[s])
            continue;
        size_t at = count++;
        for (; at && counts[sorted[at - 1]] > counts[s]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = (uint8_t)s;
    }
    return count;
}

/* Huffman's lengths: the two rarest trees are joined until there is one. Two queues, since joined
 * ones come in order. */
static void make_lengths(const uint32_t counts[SYMBOLS], const uint8_t *sorted, size_t count,
                         uint8_t lengths[SYMBOLS])
{
    uint32_t sums[2 * SYMBOLS];
    uint16_t parents[2 * SYMBOLS];
    uint8_t depths[2 * SYMBOLS];
    size_t leaf = 0, joined = count, root = 2 * count - 2;
    for (size_t i = 0; i < count; i++)
        sums[i] = counts[sorted[i]];
    for (size_t next = count; next <= root; next++) {
        sums[next] = 0;
        for (int side = 0; side < 2; side++) {
            bool is_leaf = leaf < count && (joined == next || sums[leaf] <= sums[joined]);
            size_t child = is_leaf ? leaf++ : joined++;
            sums[next] += sums[child];
            parents[child] = (uint16_t)next;
        }
    }
    depths[root] = 0;
    for (size_t i = root; i-- > 0;)
        depths[i] = (uint8_t)(depths[parents[i]] + 1);
    for (size_t i = 0; i < count; i++)
        lengths[sorted[i]] = depths[i];
}

/* No length above BITS_MAX, and the code complete: rare symbols get longer ones until there is room
 * for those that were cut, and what is left over then shortens others. */
static void limit_lengths(const uint8_t *sorted, size_t count, uint8_t lengths[SYMBOLS])
{
    const uint32_t whole = 1u << BITS_MAX;
    uint32_t used = 0;
    for (size_t i = 0; i < count; i++) {
        uint8_t *length = &lengths[sorted[i]];
        *length = (uint8_t)size_min(*length, BITS_MAX);
        used += whole >> *length;
    }
    for (size_t i = 0; used > whole; i = (i + 1) % count) {
        uint8_t *length = &lengths[sorted[i]];
        if (*length < BITS_MAX)
            used -= whole >> ++*length;
    }
    for (size_t i = count; used < whole; i = i ? i : count) {
        uint8_t *length = &lengths[sorted[--i]];
        if (used + (whole >> *length) <= whole)
            used += whole >> (*length)--;
    }
}

/* 4.2.1.3: the longest codes are the least numbers, and those of a length in the symbols' order. */
static void make_codes(struct code *code)
{
    uint16_t next[BITS_MAX + 1] = {0}, counts[BITS_MAX + 1] = {0}, first = 0;
    code->bits = code->last = 0;
    for (unsigned s = 0; s < SYMBOLS; s++) {
        unsigned length = code->lengths[s];
        counts[length]++;
        code->bits = length > code->bits ? length : code->bits;
        code->last = length ? s : code->last;
    }
    for (unsigned length = code->bits; length; length--) {
        next[length] = first;
        first = (uint16_t)((first + counts[length]) / 2);
    }
    for (unsigned s = 0; s < SYMBOLS; s++)
        if (code->lengths[s])
            code->codes[s] = next[code->lengths[s]]++;
}

/* ---- its description ---- */

/* The state that says `weight` and from which `next` is reached; without a next one the first,
 * which asks for most bits, so that a decoder finds there are none. */
static size_t find_state(const struct fse_state *states, uint8_t weight, size_t next, bool has_next)
{
    for (size_t i = 0;; i++)
        if (states[i].symbol == weight &&
            (!has_next ||
             (next >= states[i].base && next < states[i].base + ((size_t)1 << states[i].bits))))
            return i;
}

/* 4.2.1.2: two states in turn, from the last weight to the first. NULL: too long. */
static uint8_t *put_fse_weights(uint8_t *at, const uint8_t *weights, size_t count)
{
    struct fse_state states[FSE_STATES];
    unsigned shares[FSE_SYMBOLS];
    size_t state[2] = {0};
    struct bits bits = {.at = at + 1};
    if (!fse_share(weights, count, shares))
        return NULL;
    fse_put_shares(&bits, shares);
    fse_make_states(shares, states);
    for (size_t i = count; i-- > 0;) {
        bool has_next = i + 2 < count;
        size_t now = find_state(states, weights[i], state[i % 2], has_next);
        if (has_next)
            put_bits(&bits, state[i % 2] - states[now].base, states[now].bits);
        flush_bits(&bits);
        state[i % 2] = now;
    }
    put_bits(&bits, state[1], FSE_LOG);
    put_bits(&bits, state[0], FSE_LOG);
    put_bits(&bits, 1, 1);
    uint8_t *end = end_bits(&bits);
    *at = (uint8_t)(end - at - 1);
    return end - at - 1 < TREE_BYTES_MAX ? end : NULL;
}

/* 4.2.1.1; the last symbol's weight follows from the others. */
static uint8_t *put_tree(uint8_t *at, const struct code *code)
{
    uint8_t weights[SYMBOLS + 1] = {0};
    for (size_t s = 0; s < code->last; s++)
        weights[s] = code->lengths[s] ? (uint8_t)(code->bits + 1 - code->lengths[s]) : 0;
    if (code->last > DIRECT_MAX)
        return put_fse_weights(at, weights, code->last);
    *at++ = (uint8_t)(127 + code->last);
    for (size_t s = 0; s < code->last; s += 2)
        *at++ = (uint8_t)(weights[s] << 4 | weights[s + 1]);
    return at;
}

/* ---- literals ---- */

/* From the last to the first, as a decoder reads from the end. */
static uint8_t *put_stream(uint8_t *at, const uint8_t *literals, size_t count,
                           const struct code *code)
{
    struct bits bits = {.at = at};
    for (; count % 4; count--)
        put_bits(&bits, code->codes[literals[count - 1]], code->lengths[literals[count - 1]]);
    flush_bits(&bits);
    for (; count; count -= 4) {
        for (size_t i = 1; i <= 4; i++)
            put_bits(&bits, code->codes[literals[count - i]], code->lengths[literals[count - i]]);
        flush_bits(&bits);
    }
    put_bits(&bits, 1, 1);
    return end_bits(&bits);
}

static bool make_code(const uint8_t *literals, size_t count, struct code *code)
{
    enum { WORTH_NUMERATOR = 15, WORTH_DENOMINATOR = 16 };
    uint32_t counts[SYMBOLS];
    uint8_t sorted[SYMBOLS];
    size_t bits = 0;
    count_symbols(literals, count, counts);
    size_t symbols = sort_symbols(counts, sorted);
    if (symbols < 2)
        return false;
    memset(code, 0, sizeof *code);
    make_lengths(counts, sorted, symbols, code->lengths);
    limit_lengths(sorted, symbols, code->lengths);
    make_codes(code);
    for (size_t s = 0; s < SYMBOLS; s++)
        bits += (size_t)counts[s] * code->lengths[s];
    return bits / 8 + TREE_BYTES_MAX < count / WORTH_DENOMINATOR * WORTH_NUMERATOR;
}

uint8_t *zstd_put_huffman(uint8_t *at, const uint8_t *literals, size_t count)
{
    enum { HEADER = 5, JUMPS = 6, STREAMS = 4 };
    struct code code;
    size_t part = (count + STREAMS - 1) / STREAMS;
    if (count < ZSTD_HUFFMAN_MIN || count > ZSTD_HUFFMAN_MAX || !make_code(literals, count, &code))
        return NULL;
    uint8_t *jumps = put_tree(at + HEADER, &code);
    if (!jumps)
        return NULL;
    uint8_t *end = jumps + JUMPS;
    for (size_t i = 0; i < STREAMS; i++) { /* 3.1.1.3.1.6: the last is as long as is left */
        uint8_t *begin = end;
        end = put_stream(begin, literals + i * part, i + 1 < STREAMS ? part : count - i * part,
                         &code);
        if (i + 1 < STREAMS)
            put_le16(jumps + 2 * i, (uint16_t)(end - begin));
    }
    uint64_t header = 2 | 3 << 2 | (uint64_t)count << 4 | (uint64_t)(end - at - HEADER) << 22;
    put_le32(at, (uint32_t)header);
    at[4] = (uint8_t)(header >> 32);
    return end;
}
