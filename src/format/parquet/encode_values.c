/* SPDX-License-Identifier: Apache-2.0
 *
 * Values in the encodings beside PLAIN and dictionaries: DELTA_BINARY_PACKED, the two DELTA ones of
 * byte arrays, BYTE_STREAM_SPLIT, RLE of booleans. Source: Parquet's Encodings.md. What comes in is
 * PLAIN (booleans a byte each), as a page collects it.
 */
#include "format/parquet/parquet_internal.h"

/* Values of a block and of a miniblock; a miniblock is a multiple of 32. */
enum { BLOCK = 128, MINIBLOCK = 32, MINIBLOCKS = BLOCK / MINIBLOCK };

/* ---- DELTA_BINARY_PACKED ---- */

struct delta_encoder {
    struct buf *out;
    bool is_narrow; /* arithmetic of 32 bits */
    bool has_begun;
    uint64_t count, last;
    int64_t deltas[BLOCK];
    size_t held;
};

static struct delta_encoder delta_begin(struct buf *out, bool is_narrow, uint64_t count)
{
    buf_put_varint(out, BLOCK);
    buf_put_varint(out, MINIBLOCKS);
    buf_put_varint(out, count);
    return (struct delta_encoder){.out = out, .is_narrow = is_narrow, .count = count};
}

static inline uint64_t zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

/* MINIBLOCK values of `width` bits each, the least significant bit first. */
static void pack_miniblock(uint8_t *out, const uint64_t *values, unsigned width)
{
    uint64_t bits = 0;
    unsigned held = 0;
    for (size_t i = 0; i < MINIBLOCK; i++) {
        bits |= values[i] << held;
        held += width;
        if (held < 64)
            continue;
        put_le64(out, bits);
        out += 8;
        held -= 64;
        bits = held ? values[i] >> (width - held) : 0;
    }
    for (; held; held -= 8, bits >>= 8) /* 32 values end on a byte */
        *out++ = (uint8_t)bits;
}

static void put_block(struct delta_encoder *encoder)
{
    uint64_t packed[BLOCK] = {0};
    uint8_t widths[MINIBLOCKS] = {0};
    size_t count = encoder->held;
    int64_t least = encoder->deltas[0];
    for (size_t i = 1; i < count; i++)
        least = encoder->deltas[i] < least ? encoder->deltas[i] : least;
    for (size_t mini = 0; mini * MINIBLOCK < count; mini++) {
        size_t end = size_min(count, (mini + 1) * MINIBLOCK);
        uint64_t all = 0;
        for (size_t i = mini * MINIBLOCK; i < end; i++) {
            packed[i] = (uint64_t)encoder->deltas[i] - (uint64_t)least;
            all |= packed[i];
        }
        widths[mini] = (uint8_t)(all ? 64 - __builtin_clzll(all) : 0);
    }
    buf_put_varint(encoder->out, zigzag(least));
    buf_put(encoder->out, widths, sizeof widths);
    for (size_t mini = 0; mini * MINIBLOCK < count; mini++) {
        uint8_t *place = buf_extend(encoder->out, (size_t)widths[mini] * MINIBLOCK / 8);
        if (place && widths[mini])
            pack_miniblock(place, packed + mini * MINIBLOCK, widths[mini]);
    }
    encoder->held = 0;
}

static inline void delta_put(struct delta_encoder *encoder, int64_t value)
{
    uint64_t delta = (uint64_t)value - encoder->last;
    encoder->last = (uint64_t)value;
    if (!encoder->has_begun) {
        buf_put_varint(encoder->out, zigzag(value));
        encoder->has_begun = true;
        return;
    }
    encoder->deltas[encoder->held++] =
        encoder->is_narrow ? (int32_t)(uint32_t)delta : (int64_t)delta;
    if (encoder->held == BLOCK)
        put_block(encoder);
}

static void delta_end(struct delta_encoder *encoder)
{
    if (!encoder->has_begun)
        buf_put_varint(encoder->out, 0);
    if (encoder->held)
        put_block(encoder);
}

static void encode_delta(struct buf *out, uint32_t width, struct span plain)
{
    struct delta_encoder encoder = delta_begin(out, width == 4, plain.length / width);
    const uint8_t *end = plain.data + plain.length;
    if (width == 4)
        for (const uint8_t *at = plain.data; at < end; at += 4)
            delta_put(&encoder, (int32_t)get_le32(at));
    else
        for (const uint8_t *at = plain.data; at < end; at += 8)
            delta_put(&encoder, (int64_t)get_le64(at));
    delta_end(&encoder);
}

/* ---- byte arrays ---- */

static void encode_delta_length(struct buf *out, uint64_t count, struct span plain)
{
    struct delta_encoder lengths = delta_begin(out, true, count);
    for (struct span left = plain; left.length;)
        delta_put(&lengths, (int64_t)next_plain(&left, 0).length);
    delta_end(&lengths);
    for (struct span left = plain; left.length;) {
        struct span value = next_plain(&left, 0);
        buf_put_short(out, value.data, value.length);
    }
}

static size_t common_prefix(struct span a, struct span b)
{
    size_t count = size_min(a.length, b.length), at = 0;
    for (; at + 8 <= count; at += 8) {
        uint64_t differ = get_le64(a.data + at) ^ get_le64(b.data + at);
        if (differ)
            return at + (size_t)__builtin_ctzll(differ) / 8;
    }
    while (at < count && a.data[at] == b.data[at])
        at++;
    return at;
}

/* What each value shares with the one before, then the rest as DELTA_LENGTH_BYTE_ARRAY. */
static void encode_delta_bytes(struct buf *out, uint64_t count, uint32_t width, struct span plain)
{
    struct buf rests = {0};
    struct span last = {0};
    struct delta_encoder prefixes = delta_begin(out, true, count);
    for (struct span left = plain; left.length;) {
        struct span value = next_plain(&left, width);
        size_t shared = common_prefix(last, value);
        delta_put(&prefixes, (int64_t)shared);
        buf_put_le32(&rests, (uint32_t)(value.length - shared));
        buf_put_short(&rests, value.data + shared, value.length - shared);
        last = value;
    }
    delta_end(&prefixes);
    if (rests.failed)
        out->failed = true;
    else
        encode_delta_length(out, count, span_of(rests.data, rests.length));
    buf_deinit(&rests);
}

/* ---- BYTE_STREAM_SPLIT ---- */

static void encode_stream_split(struct buf *out, uint32_t width, struct span plain)
{
    size_t count = plain.length / width;
    uint8_t *place = buf_extend(out, plain.length);
    for (uint32_t byte = 0; place && byte < width; byte++, place += count)
        for (size_t i = 0; i < count; i++)
            place[i] = plain.data[i * width + byte];
}

/* ---- any ---- */

static void encode_rle_bools(struct buf *out, struct span bools)
{
    size_t at = out->length;
    buf_put_le32(out, 0);
    encode_levels(out, bools.data, bools.length, 1);
    if (!out->failed)
        put_le32(out->data + at, (uint32_t)(out->length - at - 4));
}

void encode_values(struct buf *out, int encoding, enum parquet_physical type, uint32_t width,
                   uint64_t count, struct span plain)
{
    switch (encoding) {
    case ENCODING_RLE:
        encode_rle_bools(out, plain);
        break;
    case ENCODING_DELTA_BINARY_PACKED:
        encode_delta(out, width, plain);
        break;
    case ENCODING_DELTA_LENGTH_BYTE_ARRAY:
        encode_delta_length(out, count, plain);
        break;
    case ENCODING_DELTA_BYTE_ARRAY:
        encode_delta_bytes(out, count, width, plain);
        break;
    case ENCODING_BYTE_STREAM_SPLIT:
        encode_stream_split(out, width, plain);
        break;
    default:
        CHECK(encoding == ENCODING_PLAIN);
        if (type == PARQUET_BOOLEAN)
            encode_bits(out, plain.data, plain.length);
        else
            buf_put(out, plain.data, plain.length);
    }
}

bool encoding_fits(int encoding, enum parquet_physical type)
{
    switch (encoding) {
    case ENCODING_RLE:
        return type == PARQUET_BOOLEAN;
    case ENCODING_DELTA_BINARY_PACKED:
        return type == PARQUET_INT32 || type == PARQUET_INT64;
    case ENCODING_DELTA_LENGTH_BYTE_ARRAY:
        return type == PARQUET_BYTE_ARRAY;
    case ENCODING_DELTA_BYTE_ARRAY:
        return type == PARQUET_BYTE_ARRAY || type == PARQUET_FIXED;
    case ENCODING_BYTE_STREAM_SPLIT:
        return type != PARQUET_BOOLEAN && type != PARQUET_BYTE_ARRAY;
    default:
        return encoding == ENCODING_PLAIN;
    }
}
