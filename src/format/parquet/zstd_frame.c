/* SPDX-License-Identifier: Apache-2.0
 *
 * zstd frames of known shapes; zstd_frame_internal.h has their layout. Section numbers are RFC
 * 8878's.
 */
#include "format/parquet/zstd_frame_internal.h"

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

/* What all sequences of a block are. */
struct sequence {
    unsigned literals_code, literals_bits; /* the extra bits of the code are zeros */
    unsigned match_code;                   /* has no extra bits */
    unsigned offset;
};

/* 3.1.1.3.2: how many, modes, a symbol for each, the extra bits from the last to the first. */
static uint8_t *put_sequences(uint8_t *at, const struct sequence *sequence, size_t count,
                              bool has_offset)
{
    unsigned offset_value = has_offset ? 1 : sequence->offset + 3;
    unsigned offset_code = 31 - (unsigned)__builtin_clz(offset_value);
    if (count >= 0x80) /* and less than 0x7f00, as a block has no more */
        *at++ = (uint8_t)(0x80 + (count >> 8));
    *at++ = (uint8_t)count;
    if (!count)
        return at;
    *at++ = 1 << 6 | 1 << 4 | 1 << 2;
    *at++ = (uint8_t)sequence->literals_code;
    *at++ = (uint8_t)offset_code;
    *at++ = (uint8_t)sequence->match_code;
    uint64_t bits = 0;
    unsigned held = 0;
    for (size_t i = 0; i < count; i++) {
        held += sequence->literals_bits;
        bits |= (uint64_t)(offset_value - (1u << offset_code)) << held;
        for (held += offset_code; held >= 8; held -= 8, bits >>= 8)
            *at++ = (uint8_t)bits;
    }
    *at++ = (uint8_t)(bits | 1u << held); /* ends the stream */
    return at;
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
    WORD = 8,
    LOW_MAX = WORD - 3,   /* a match has 3 bytes at least */
    EXCEPTION_BYTES = 30, /* what a word with other high bytes is taken to cost */
    WORDS_MIN = 64,       /* in a frame */
    WORTH_NUMERATOR = 15, /* of 16: larger than that is not worth a frame */
};

/* How many low bytes of a word are to be literals; 0: no frame. */
static unsigned choose_low(const uint8_t *words, size_t count)
{
    size_t differ[2][WORD + 1] = {{0}}; /* by the bytes in which a word differs from the last */
    size_t least = count * WORD / 16 * WORTH_NUMERATOR, above = count - 1;
    unsigned best = 0;
    for (size_t i = 1; i < count; i++) {
        uint64_t change = get_le64(words + i * WORD) ^ get_le64(words + (i - 1) * WORD);
        differ[i % 2][(71 - (unsigned)__builtin_clzll(change | 1)) / 8]++;
    }
    for (unsigned low = 1; low <= LOW_MAX; low++) {
        above -= differ[0][low] + differ[1][low];
        size_t bytes = count * low + above * EXCEPTION_BYTES;
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
    const struct sequence sequence = {
        .literals_code = low, .match_code = WORD - low - 3, .offset = WORD};
    while (count) {
        size_t most = size_min(count, frame->has_offset ? BLOCK_BYTES_MAX / WORD : SHARED_OFFSETS);
        size_t same = 0, others = 0;
        uint8_t *literals = frame->at + LITERALS_AT;
        uint64_t last = get_le64(frame->plain - WORD), word;
        for (; same < most; same++, literals += low, last = word) {
            word = get_le64(frame->plain + same * WORD);
            if ((word ^ last) >> (8 * low))
                break;
            put_le64(literals, word);
        }
        for (; same + others < most; others++, literals += WORD, last = word) {
            word = get_le64(frame->plain + (same + others) * WORD);
            if (!((word ^ last) >> (8 * low)))
                break;
            put_le64(literals, word);
        }
        put_literals_block(frame, same * low + others * WORD, &sequence, same,
                           (same + others) * WORD);
        count -= same + others;
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
