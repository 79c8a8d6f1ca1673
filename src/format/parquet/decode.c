/* SPDX-License-Identifier: Apache-2.0
 *
 * The encodings, reading. Source: Encodings.md. Bytes are hostile: nothing is read behind the
 * cursor's end, and no loop is longer than the count that is asked for or the bytes that are there.
 */
#include "format/parquet/reader_internal.h"

/* ---- bit-packed values, least significant bit first ---- */

static void unpack_u8(const uint8_t *bits, size_t bytes, unsigned width, uint8_t *out, size_t count)
{
    const uint64_t mask = (UINT64_C(1) << width) - 1;
    if (width == 1) {
        unpack_bits(bits, out, count);
        return;
    }
    size_t fast = count_fast(bytes, width, count), at = 0;
    for (size_t i = 0; i < fast; i++, at += width)
        out[i] = (uint8_t)(get_le64(bits + (at >> 3)) >> (at & 7) & mask);
    for (size_t i = fast; i < count; i++, at += width)
        out[i] = (uint8_t)(load_up_to_8(bits + (at >> 3), bytes - (at >> 3)) >> (at & 7) & mask);
}

static uint64_t unpack_wide(const uint8_t *bits, size_t bytes, size_t at, unsigned width)
{
    unsigned shift = at & 7;
    size_t first = at >> 3;
    uint64_t word = load_up_to_8(bits + first, bytes - first) >> shift;
    if (shift + width > 64)
        word |= (uint64_t)bits[first + 8] << (64 - shift);
    return width == 64 ? word : word & ((UINT64_C(1) << width) - 1);
}

static size_t packed_bytes(size_t count, unsigned width)
{
    return count / 8 * width + (count % 8 * width + 7) / 8;
}

/* ---- RLE / bit-packed hybrid ---- */

struct run {
    size_t count;
    const uint8_t *bits; /* NULL: `value` again and again */
    size_t bytes;        /* that may be read from `bits` on; the run's and what follows it */
    uint32_t value;
};

/* The next run, cut to `left` values. The padding of the last packed one need not be there. */
static bool next_run(struct cursor *in, unsigned width, size_t left, struct run *out)
{
    uint64_t head = cursor_get_varint(in);
    if (head & 1) {
        uint64_t groups = head >> 1, groups_left = left / 8 + (left % 8 > 0);
        groups = groups < groups_left ? groups : groups_left;
        out->count = size_min((size_t)groups * 8, left);
        out->bytes = cursor_left(in);
        size_t taken = size_min((size_t)groups * width, out->bytes);
        out->bits = cursor_take(in, taken);
        return !in->failed && taken >= packed_bytes(out->count, width);
    }
    unsigned bytes = (width + 7) / 8;
    const uint8_t *place = cursor_take(in, bytes);
    if (!place)
        return false;
    out->bits = NULL;
    out->value = (uint32_t)load_up_to_8(place, bytes);
    out->count = size_min(head >> 1 < SIZE_MAX ? (size_t)(head >> 1) : SIZE_MAX, left);
    return (uint64_t)out->value >> width == 0;
}

bool decode_hybrid_u8(struct cursor *in, unsigned width, uint8_t *out, size_t count)
{
    struct run run;
    if (width > 8)
        return false;
    for (size_t at = 0; at < count; at += run.count) {
        if (!next_run(in, width, count - at, &run))
            return false;
        if (run.bits && width)
            unpack_u8(run.bits, run.bytes, width, out + at, run.count);
        else
            memset(out + at, run.bits ? 0 : (int)run.value, run.count);
    }
    return true;
}

bool decode_hybrid_u32(struct cursor *in, unsigned width, uint32_t *out, size_t count,
                       uint32_t *out_greatest)
{
    struct run run;
    uint32_t greatest = 0;
    if (width > 32)
        return false;
    for (size_t at = 0; at < count; at += run.count) {
        if (!next_run(in, width, count - at, &run))
            return false;
        if (run.bits && width) {
            uint32_t most = unpack_u32(run.bits, run.bytes, width, out + at, run.count);
            greatest = most > greatest ? most : greatest;
            continue;
        }
        uint32_t value = run.bits ? 0 : run.value;
        greatest = value > greatest && run.count ? value : greatest;
        for (size_t i = 0; i < run.count; i++)
            out[at + i] = value;
    }
    *out_greatest = greatest;
    return true;
}

bool decode_bit_packed(struct cursor *in, unsigned width, uint8_t *out, size_t count)
{
    if (width > 8 || count > SIZE_MAX / 8)
        return false;
    const uint8_t *bits = cursor_take(in, packed_bytes(count, width));
    size_t at = 0;
    if (!bits)
        return false;
    for (size_t i = 0; i < count; i++) {
        unsigned value = 0;
        for (unsigned b = 0; b < width; b++, at++)
            value = value << 1 | ((unsigned)bits[at >> 3] >> (7 - (at & 7)) & 1);
        out[i] = (uint8_t)value;
    }
    return true;
}

/* ---- DELTA_BINARY_PACKED ---- */

struct delta {
    size_t per_miniblock, miniblocks;
    uint64_t value;
};

static bool read_delta_header(struct cursor *in, struct delta *delta, size_t count)
{
    enum { BLOCK_MAX = 1 << 20 };
    uint64_t block = cursor_get_varint(in), miniblocks = cursor_get_varint(in);
    uint64_t total = cursor_get_varint(in);
    delta->value = (uint64_t)cursor_get_zigzag(in);
    if (in->failed || total != count || block == 0 || block > BLOCK_MAX || miniblocks == 0 ||
        block % miniblocks || block / miniblocks % 8)
        return false;
    delta->miniblocks = (size_t)miniblocks;
    delta->per_miniblock = (size_t)(block / miniblocks);
    return true;
}

static void put_number(void *out, size_t width, size_t at, uint64_t value)
{
    if (width == 4)
        put_le32((uint8_t *)out + at * 4, (uint32_t)value);
    else
        put_le64((uint8_t *)out + at * 8, value);
}

/* One miniblock of `count` values; what pads it need not be there. Arithmetic wraps. */
static bool read_miniblock(struct cursor *in, struct delta *delta, unsigned bits, uint64_t least,
                           void *out, size_t width, size_t at, size_t count)
{
    if (bits > 64)
        return false;
    size_t bytes = size_min(delta->per_miniblock / 8 * bits, cursor_left(in));
    const uint8_t *packed = cursor_take(in, bytes);
    if (bytes < packed_bytes(count, bits))
        return false;
    for (size_t i = 0; i < count; i++) {
        uint64_t step = bits ? unpack_wide(packed, bytes, i * bits, bits) : 0;
        delta->value += least + step;
        put_number(out, width, at + i, delta->value);
    }
    return true;
}

static bool decode_delta(struct cursor *in, void *out, size_t width, size_t count)
{
    struct delta delta;
    if (count == 0 && cursor_left(in) == 0)
        return true;
    if (!read_delta_header(in, &delta, count))
        return false;
    if (count)
        put_number(out, width, 0, delta.value);
    for (size_t at = 1; at < count;) {
        uint64_t least = (uint64_t)cursor_get_zigzag(in);
        const uint8_t *widths = cursor_take(in, delta.miniblocks);
        if (!widths)
            return false;
        for (size_t i = 0; i < delta.miniblocks && at < count; i++) {
            size_t values = size_min(delta.per_miniblock, count - at);
            if (!read_miniblock(in, &delta, widths[i], least, out, width, at, values))
                return false;
            at += values;
        }
    }
    return true;
}

bool decode_delta_i32(struct cursor *in, int32_t *out, size_t count)
{
    return decode_delta(in, out, sizeof *out, count);
}

bool decode_delta_i64(struct cursor *in, int64_t *out, size_t count)
{
    return decode_delta(in, out, sizeof *out, count);
}

/* ---- others ---- */

bool decode_stream_split(struct cursor *in, size_t width, uint8_t *out, size_t count)
{
    size_t bytes;
    if (!SIZE_MUL(width, count, &bytes) || bytes != cursor_left(in))
        return false;
    const uint8_t *streams = cursor_take(in, bytes);
    for (size_t j = 0; j < width; j++)
        for (size_t i = 0; i < count; i++)
            out[i * width + j] = streams[j * count + i];
    return true;
}

bool decode_plain_bools(struct cursor *in, uint8_t *out, size_t count)
{
    const uint8_t *bits = cursor_take(in, count / 8 + (count % 8 > 0));
    if (bits)
        unpack_bits(bits, out, count);
    return bits != NULL;
}
