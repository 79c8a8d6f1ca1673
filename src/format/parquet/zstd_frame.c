/* SPDX-License-Identifier: Apache-2.0
 *
 * zstd frames of known shapes; zstd_frame_internal.h has their layout. Section numbers are RFC
 * 8878's.
 */
#include <math.h>

#include "format/parquet/zstd_frame_internal.h"
#include "format/parquet/zstd_fse_internal.h"

enum {
    BLOCK_BYTES_MAX = 128 << 10, /* expanded, 3.1.1.2.3 */
    FRAME_BYTES_MAX = 8 << 20,   /* a window that all decoders have, 3.1.1.1.2 */
    BLOCK_RAW = 0,
    BLOCK_COMPRESSED = 2,
    SHARED_OFFSETS = 16, /* sequences of the block that gives the offset */
};

/* ---- frames and blocks ---- */

/* `out` has room for all of it: twice the body, and what a block's literals take meanwhile. */
struct frame {
    uint8_t *at;
    uint8_t *block;       /* header of the last one */
    const uint8_t *plain; /* what the next block becomes */
    bool has_offset;      /* a block gave it */
};

enum { ROOM_BYTES = 3 * BLOCK_BYTES_MAX };

static struct frame frame_begin(uint8_t *place, struct span body)
{
    static const uint8_t magic[] = {0x28, 0xb5, 0x2f, 0xfd, 0xa0};
    memcpy(place, magic, sizeof magic);
    put_le32(place + sizeof magic, (uint32_t)body.length);
    return (struct frame){.at = place + sizeof magic + 4, .plain = body.data};
}

/* The header of a block whose content is there, or follows; `at` is its end. */
static void end_block(struct frame *frame, uint8_t *at, uint32_t type)
{
    uint32_t bytes = (uint32_t)(at - frame->at - 3);
    uint32_t header = type << 1 | bytes << 3;
    frame->at[0] = (uint8_t)header;
    frame->at[1] = (uint8_t)(header >> 8);
    frame->at[2] = (uint8_t)(header >> 16);
    frame->block = frame->at;
    frame->at = at;
}

static void put_raw(struct frame *frame, size_t bytes)
{
    while (bytes) {
        size_t part = size_min(bytes, BLOCK_BYTES_MAX);
        memcpy(frame->at + 3, frame->plain, part);
        frame->plain += part;
        bytes -= part;
        end_block(frame, frame->at + 3 + part, BLOCK_RAW);
    }
}

static void frame_end(struct frame *frame)
{
    frame->block[0] |= 1; /* the last one */
}

/* ---- sections of a compressed block ---- */

/* Raw literals, 3.1.1.3.1.1: size and format before them. */
static uint8_t *put_raw_header(uint8_t *at, size_t count)
{
    if (count < 1 << 5) {
        *at++ = (uint8_t)(count << 3);
    } else if (count < 1 << 12) {
        *at++ = (uint8_t)(count << 4 | 1 << 2);
        *at++ = (uint8_t)(count >> 4);
    } else {
        *at++ = (uint8_t)(count << 4 | 3 << 2);
        *at++ = (uint8_t)(count >> 4);
        *at++ = (uint8_t)(count >> 12);
    }
    return at;
}

enum { WORD = 8, MATCH_MIN = 3, LOW_MAX = WORD - MATCH_MIN };

/* What all sequences of a block are; or, of words, how many literals each has. */
struct sequence {
    unsigned literals_code, literals_bits; /* the extra bits of the code are zeros */
    unsigned match_code;                   /* has no extra bits */
    unsigned offset;
    const uint8_t *lengths; /* NULL: all as above; of up to 16 literals the code is their count */
};

struct offset_bits {
    unsigned code; /* how many bits, too */
    uint64_t value;
};

/* All the same: a symbol for each mode, the extra bits from the last to the first. */
static uint8_t *put_same_sequences(uint8_t *at, const struct sequence *sequence, size_t count,
                                   struct offset_bits offset)
{
    *at++ = 1 << 6 | 1 << 4 | 1 << 2;
    *at++ = (uint8_t)sequence->literals_code;
    *at++ = (uint8_t)offset.code;
    *at++ = (uint8_t)sequence->match_code;
    struct bits bits = {.at = at};
    for (size_t i = 0; i < count; i++) {
        put_bits(&bits, 0, sequence->literals_bits);
        put_bits(&bits, offset.value, offset.code);
        flush_bits(&bits);
    }
    put_bits(&bits, 1, 1); /* ends the stream */
    return end_bits(&bits);
}

/* A code, and for each symbol and state the state that says the one and goes on to the other. */
struct length_code {
    struct fse_state states[FSE_STATES];
    uint8_t before[LOW_MAX + 1][FSE_STATES];
};

static void make_length_code(const unsigned shares[FSE_SYMBOLS], struct length_code *code)
{
    fse_make_states(shares, code->states);
    for (size_t i = 0; i < FSE_STATES; i++) {
        const struct fse_state *state = &code->states[i];
        for (size_t next = state->base; next < state->base + ((size_t)1 << state->bits); next++)
            code->before[state->symbol][next] = (uint8_t)i;
    }
}

/* Goes a symbol back. */
static inline size_t step_back(const struct length_code *code, struct bits *bits, size_t symbol,
                               size_t next)
{
    size_t now = code->before[symbol][next];
    put_bits(bits, next - code->states[now].base, code->states[now].bits);
    return now;
}

/* Words of several lengths, 3.1.1.3.2.2: FSE codes for literals and matches, which say the same. */
static uint8_t *put_mixed_sequences(uint8_t *at, const uint8_t *lengths, size_t count,
                                    const unsigned shares[FSE_SYMBOLS], struct offset_bits offset)
{
    struct length_code literals, matches;
    unsigned mirrored[FSE_SYMBOLS] = {0};
    for (size_t length = 0; length <= LOW_MAX; length++)
        mirrored[LOW_MAX - length] = shares[length];
    make_length_code(shares, &literals);
    make_length_code(mirrored, &matches);
    *at++ = 2 << 6 | 1 << 4 | 2 << 2;
    struct bits bits = {.at = at};
    fse_put_shares(&bits, shares);
    put_bits(&bits, offset.code, 8);
    flush_bits(&bits);
    fse_put_shares(&bits, mirrored);
    size_t last = lengths[count - 1];
    size_t literals_state = literals.before[last][0];
    size_t match_state = matches.before[LOW_MAX - last][0];
    put_bits(&bits, offset.value, offset.code);
    for (size_t i = count - 1; i-- > 0;) {
        match_state = step_back(&matches, &bits, (size_t)LOW_MAX - lengths[i], match_state);
        literals_state = step_back(&literals, &bits, lengths[i], literals_state);
        put_bits(&bits, offset.value, offset.code);
        flush_bits(&bits);
    }
    flush_bits(&bits);
    put_bits(&bits, match_state, FSE_LOG);
    put_bits(&bits, literals_state, FSE_LOG);
    put_bits(&bits, 1, 1);
    return end_bits(&bits);
}

/* 3.1.1.3.2. */
static uint8_t *put_sequences(uint8_t *at, const struct sequence *sequence, size_t count,
                              bool has_offset)
{
    unsigned shares[FSE_SYMBOLS], offset_value = has_offset ? 1 : sequence->offset + 3;
    unsigned code = 31 - (unsigned)__builtin_clz(offset_value);
    struct offset_bits offset = {.code = code, .value = offset_value - (1u << code)};
    struct sequence same = *sequence;
    if (count >= 0x80) /* and less than 0x7f00, as a block has no more */
        *at++ = (uint8_t)(0x80 + (count >> 8));
    *at++ = (uint8_t)count;
    if (!count)
        return at;
    if (sequence->lengths && fse_share(sequence->lengths, count, shares))
        return put_mixed_sequences(at, sequence->lengths, count, shares, offset);
    if (sequence->lengths) {
        same.literals_code = sequence->lengths[0];
        same.match_code = LOW_MAX - same.literals_code;
    }
    return put_same_sequences(at, &same, count, offset);
}

/* Ends a block whose literals section ends at `at`, and which becomes `bytes`: raw, if so it is no
 * larger. */
static void put_block(struct frame *frame, uint8_t *at, const struct sequence *sequence,
                      size_t count, size_t bytes)
{
    at = put_sequences(at, sequence, count, frame->has_offset);
    if ((size_t)(at - frame->at) - 3 >= bytes) {
        put_raw(frame, bytes);
        return;
    }
    end_block(frame, at, BLOCK_COMPRESSED);
    frame->plain += bytes;
    frame->has_offset = frame->has_offset || count > 0;
}

/* The same for `count` sequences and `literals` that are at `frame->at` + LITERALS_AT. */
enum { LITERALS_AT = 6 };

static void put_literals_block(struct frame *frame, size_t literals,
                               const struct sequence *sequence, size_t count, size_t bytes)
{
    uint8_t *raw = frame->at + LITERALS_AT, *packed = raw + literals + 8;
    uint8_t *end = zstd_put_huffman(packed, raw, literals), *at = frame->at + 3;
    if (end) {
        memmove(at, packed, (size_t)(end - packed));
        at += end - packed;
    } else {
        at = put_raw_header(at, literals);
        memmove(at, raw, literals);
        at += literals;
    }
    put_block(frame, at, sequence, count, bytes);
}

/* ---- words ---- */

enum {
    EXCEPTION_BYTES = 30, /* what a word that ends a block is taken to cost */
    WORDS_MIN = 64,       /* in a frame */
    WORTH_NUMERATOR = 15, /* of 16: larger than that is not worth a frame */
};

/* In how many of its low bytes a word differs from the one before; at least one. */
static inline unsigned changed_bytes(uint64_t word, uint64_t last)
{
    return (71 - (unsigned)__builtin_clzll((word ^ last) | 1)) / 8;
}

/* About how many bytes words take whose `low` low bytes are literals always. Those of several
 * lengths must be worth the time, and that their literals are less alike. */
static double words_bytes(const size_t differ[WORD + 1], unsigned low)
{
    enum { WORTH = 16 };
    double count = 0, within = 0, bytes = 0;
    bool is_mixed = false;
    for (unsigned length = 1; length <= LOW_MAX; length++)
        count += (double)differ[length];
    for (unsigned length = 1; length <= LOW_MAX; length++) {
        within += (double)differ[length];
        if (length < low || within == 0)
            continue;
        bytes += within * length + within * 2 * log2(count / within) / 8;
        is_mixed = is_mixed || length > low;
        within = 0;
    }
    for (unsigned length = LOW_MAX + 1; length <= WORD; length++)
        bytes += (double)differ[length] * EXCEPTION_BYTES;
    return is_mixed ? bytes + bytes / WORTH : bytes;
}

/* How many low bytes of a word are to be literals at least; 0: no frame. */
static unsigned choose_low(const uint8_t *words, size_t count)
{
    size_t differ[2][WORD + 1] = {{0}}; /* words by changed_bytes; two, not to wait for the last */
    double least = (double)count * WORD / 16 * WORTH_NUMERATOR;
    unsigned best = 0;
    for (size_t i = 1; i < count; i++)
        differ[i % 2]
              [changed_bytes(get_le64(words + i * WORD), get_le64(words + (i - 1) * WORD))]++;
    for (unsigned length = 1; length <= WORD; length++)
        differ[0][length] += differ[1][length];
    for (unsigned low = 1; low <= LOW_MAX; low++) {
        double bytes = words_bytes(differ[0], low);
        if (bytes >= least)
            continue;
        least = bytes;
        best = low;
    }
    return best;
}

/* The first word is behind. */
static void put_words(struct frame *frame, size_t count, unsigned low)
{
    uint8_t lengths[BLOCK_BYTES_MAX / WORD];
    const struct sequence sequence = {.offset = WORD, .lengths = lengths};
    while (count) {
        size_t most = size_min(count, frame->has_offset ? BLOCK_BYTES_MAX / WORD : SHARED_OFFSETS);
        size_t near = 0, far = 0;
        uint8_t *literals = frame->at + LITERALS_AT;
        uint64_t last = get_le64(frame->plain - WORD), word;
        for (; near < most; near++, last = word) {
            word = get_le64(frame->plain + near * WORD);
            unsigned length = changed_bytes(word, last);
            if (length > LOW_MAX)
                break;
            lengths[near] = (uint8_t)(length > low ? length : low);
            put_le64(literals, word);
            literals += lengths[near];
        }
        for (; near + far < most; far++, literals += WORD, last = word) {
            word = get_le64(frame->plain + (near + far) * WORD);
            if (changed_bytes(word, last) <= LOW_MAX)
                break;
            put_le64(literals, word);
        }
        put_literals_block(frame, (size_t)(literals - frame->at) - LITERALS_AT, &sequence, near,
                           (near + far) * WORD);
        count -= near + far;
    }
}

/* ---- ids ---- */

enum { ID_LENGTH = 4, IDS_MIN = 64 };

/* The literals section of `count` ids, a multiple of four: 3.1.1.3.1. */
static uint8_t *put_id_literals(uint8_t *at, const uint8_t *ids, size_t count, size_t bytes)
{
    enum { WEIGHTS = 'f', TREE = 1 + WEIGHTS / 2, JUMPS = 6, STREAMS = 4 };
    size_t stream = count / STREAMS * bytes / 2 + 1, literals = count * bytes;
    uint64_t header = 2 | 3 << 2 | literals << 4 | (TREE + JUMPS + STREAMS * stream) << 22;
    put_le32(at, (uint32_t)header);
    at[4] = (uint8_t)(header >> 32);
    at += 5;
    /* The tree, 4.2.1.1: weights of 4 bits, the first in the upper half; that of 'f' follows. */
    memset(at, 0, TREE);
    *at = 127 + WEIGHTS;
    for (size_t digit = '0'; digit <= '9'; digit += 2)
        at[1 + digit / 2] = 0x11;
    at[1 + 'a' / 2] = 0x01;
    at[1 + 'b' / 2] = at[1 + 'd' / 2] = 0x11;
    at += TREE;
    for (size_t i = 0; i < STREAMS - 1; i++, at += 2)
        put_le16(at, (uint16_t)stream);
    for (size_t i = 0; i < STREAMS;
         i++, at += stream, ids += count / STREAMS * (bytes + ID_LENGTH)) {
        if (!zstd_pack_ids(at, ids, count / STREAMS, bytes))
            return NULL;
        at[stream - 1] = 1; /* ends the stream */
    }
    return at;
}

/* Ids with raw literals: the first ones, and up to three that are left. */
static void put_raw_ids(struct frame *frame, size_t count, size_t bytes,
                        const struct sequence *sequence, bool is_last)
{
    uint8_t *literals = frame->at + LITERALS_AT;
    for (size_t i = 0; i < count; i++, literals += bytes)
        memcpy(literals, frame->plain + i * (bytes + ID_LENGTH), bytes);
    put_literals_block(frame, count * bytes, sequence, count - is_last,
                       count * (bytes + ID_LENGTH) - (is_last ? ID_LENGTH : 0));
}

/* The first length is behind; each id is followed by that of the next. */
static bool put_ids(struct frame *frame, size_t count, size_t bytes)
{
    const struct sequence sequence = {.literals_code = bytes == 16 ? 16 : 22,
                                      .literals_bits = bytes == 16 ? 1 : 3,
                                      .match_code = ID_LENGTH - 3,
                                      .offset = (unsigned)bytes + ID_LENGTH};
    size_t unit = bytes + ID_LENGTH, most = BLOCK_BYTES_MAX / unit / 4 * 4;
    put_raw_ids(frame, SHARED_OFFSETS, bytes, &sequence, false);
    count -= SHARED_OFFSETS;
    for (size_t part; count >= 4; count -= part) {
        part = size_min(count, most) / 4 * 4;
        bool is_last = part == count;
        uint8_t *at = put_id_literals(frame->at + 3, frame->plain, part, bytes);
        if (!at)
            return false;
        put_block(frame, at, &sequence, part - is_last, part * unit - (is_last ? ID_LENGTH : 0));
    }
    if (count)
        put_raw_ids(frame, count, bytes, &sequence, true);
    return true;
}

/* Whether all are of one length; 0: not, or of none of ours. */
static size_t length_of_ids(struct span plain)
{
    size_t bytes = plain.length >= ID_LENGTH ? get_le32(plain.data) : 0;
    if ((bytes != 16 && bytes != 32) || plain.length % (bytes + ID_LENGTH) != 0)
        return 0;
    for (size_t at = 0; at < plain.length; at += bytes + ID_LENGTH)
        if (get_le32(plain.data + at) != bytes)
            return 0;
    return bytes;
}

/* ---- frames ---- */

bool zstd_frame_put(struct buf *out, enum zstd_shape shape, struct span body, size_t values_at)
{
    struct span plain = span_of(body.data + values_at, body.length - values_at);
    size_t id_bytes = shape == ZSTD_IDS ? length_of_ids(plain) : 0;
    size_t id_count = id_bytes ? plain.length / (id_bytes + ID_LENGTH) : 0;
    size_t word_count = shape == ZSTD_WORDS ? plain.length / WORD : 0;
    unsigned low = word_count >= WORDS_MIN ? choose_low(plain.data, word_count) : 0;
    if ((!low && id_count < IDS_MIN) || body.length > FRAME_BYTES_MAX ||
        !buf_reserve(out, 2 * body.length + ROOM_BYTES))
        return false;
    struct frame frame = frame_begin(out->data + out->length, body);
    put_raw(&frame, values_at + (low ? WORD : ID_LENGTH));
    if (low)
        put_words(&frame, word_count - 1, low);
    else if (!put_ids(&frame, id_count, id_bytes))
        return false;
    frame_end(&frame);
    out->length = (size_t)(frame.at - out->data);
    return true;
}
