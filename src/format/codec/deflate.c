/* SPDX-License-Identifier: Apache-2.0
 *
 * gzip, zlib and raw deflate through ISA-L's igzip.
 */
#include <isa-l/igzip_lib.h>

#include "format/codec/codec_internal.h"

/* Where we are in a member. The header is parsed here: igzip's own parser miscounts the checksum of
 * a header that arrives in pieces. */
enum inflate_place {
    BETWEEN,
    HEADER_FIXED, /* 10 bytes */
    HEADER_EXTRA_LENGTH,
    HEADER_EXTRA,
    HEADER_NAME,
    HEADER_COMMENT,
    HEADER_CHECKSUM,
    DATA, /* with its trailer */
};

enum { HAS_CHECKSUM = 2, HAS_EXTRA = 4, HAS_NAME = 8, HAS_COMMENT = 16, RESERVED = 0xe0 };

struct inflate {
    enum codec codec;
    enum inflate_place place;
    uint8_t header[10]; /* the fixed part, then each short field */
    uint8_t flags;
    uint32_t have, extra_left, checksum; /* of the header */
    struct inflate_state state;
};

static void *inflate_create(enum codec codec)
{
    struct inflate *inflate = mem_alloc_zero(1, sizeof *inflate);
    if (!inflate)
        return NULL;
    isal_inflate_init(&inflate->state);
    inflate->codec = codec;
    return inflate;
}

static void inflate_reset(void *state)
{
    struct inflate *inflate = state;
    inflate->place = BETWEEN;
}

static void start_member(struct inflate *inflate)
{
    isal_inflate_reset(&inflate->state);
    inflate->state.crc_flag = inflate->codec == CODEC_GZIP   ? ISAL_GZIP_NO_HDR_VER
                              : inflate->codec == CODEC_ZLIB ? ISAL_ZLIB
                                                             : ISAL_DEFLATE;
    inflate->place = inflate->codec == CODEC_GZIP ? HEADER_FIXED : DATA;
    inflate->have = inflate->checksum = 0;
}

/* The next part of the header that is there, in the order of RFC 1952. */
static void next_part(struct inflate *inflate)
{
    static const uint8_t flags[] = {[HEADER_EXTRA_LENGTH] = HAS_EXTRA,
                                    [HEADER_NAME] = HAS_NAME,
                                    [HEADER_EXTRA] = HAS_EXTRA,
                                    [HEADER_COMMENT] = HAS_COMMENT,
                                    [HEADER_CHECKSUM] = HAS_CHECKSUM};
    do
        inflate->place++;
    while (inflate->place != DATA && !(inflate->flags & flags[inflate->place]));
    inflate->have = 0;
}

static enum status header_fault(struct error *err, const char *what)
{
    return error_set(err, STATUS_INVALID, "gzip: %s", what);
}

/* One byte of the header. A byte at a time is enough: headers are short. */
static enum status take_header_byte(struct inflate *inflate, uint8_t byte, struct error *err)
{
    uint32_t checksum_before = inflate->checksum;
    inflate->checksum = crc32_gzip(inflate->checksum, &byte, 1);
    if (inflate->have < sizeof inflate->header)
        inflate->header[inflate->have++] = byte;
    switch (inflate->place) {
    case HEADER_FIXED:
        if (inflate->have < 10)
            return STATUS_OK;
        if (inflate->header[0] != 0x1f || inflate->header[1] != 0x8b)
            return header_fault(err, "no gzip header");
        inflate->flags = inflate->header[3];
        if (inflate->header[2] != 8 || inflate->flags & RESERVED)
            return header_fault(err, "unknown method or flags");
        break;
    case HEADER_EXTRA_LENGTH:
        if (inflate->have < 2)
            return STATUS_OK;
        inflate->extra_left = get_le16(inflate->header);
        next_part(inflate);
        if (inflate->extra_left)
            return STATUS_OK;
        break;
    case HEADER_EXTRA:
        if (--inflate->extra_left)
            return STATUS_OK;
        break;
    case HEADER_CHECKSUM:
        if (inflate->have == 1)
            inflate->extra_left = checksum_before & 0xffff; /* the sum does not cover itself */
        if (inflate->have < 2)
            return STATUS_OK;
        if (get_le16(inflate->header) != inflate->extra_left)
            return header_fault(err, "header checksum mismatch");
        break;
    default: /* name, comment */
        if (byte)
            return STATUS_OK;
        break;
    }
    next_part(inflate);
    return STATUS_OK;
}

static const char *inflate_fault(int code)
{
    switch (code) {
    case ISAL_INVALID_BLOCK:
        return "bad block";
    case ISAL_INVALID_SYMBOL:
        return "bad symbol";
    case ISAL_INVALID_LOOKBACK:
        return "distance before the start";
    case ISAL_INVALID_WRAPPER:
        return "bad header";
    case ISAL_UNSUPPORTED_METHOD:
        return "unknown method";
    case ISAL_INCORRECT_CHECKSUM:
        return "checksum mismatch";
    case ISAL_NEED_DICT:
        return "needs a dictionary";
    default:
        return "damaged";
    }
}

static enum status trailing_bytes(const struct inflate *inflate, struct error *err)
{
    return error_set(err, STATUS_INVALID, "%s: bytes behind the end", codec_name(inflate->codec));
}

static enum status inflate_step(void *state, struct codec_step *step, struct error *err)
{
    struct inflate *inflate = state;
    struct inflate_state *isal = &inflate->state;
    if (inflate->place == BETWEEN) {
        if (step->in_bytes == 0)
            return STATUS_OK;
        if (step->is_between && inflate->codec != CODEC_GZIP)
            return trailing_bytes(inflate, err);
        start_member(inflate);
        step->is_between = false;
    }
    while (inflate->place != DATA) {
        if (step->in_bytes == 0)
            return STATUS_OK;
        step->in_bytes--;
        TRY(take_header_byte(inflate, *step->in++, err));
    }
    uint32_t in_bytes = (uint32_t)size_min(step->in_bytes, 1u << 30);
    uint32_t out_bytes = (uint32_t)size_min(step->out_bytes, 1u << 30);
    isal->next_in = (uint8_t *)(uintptr_t)step->in; /* is only read */
    isal->avail_in = in_bytes;
    isal->next_out = step->out;
    isal->avail_out = out_bytes;
    int code = isal_inflate(isal);
    if (code < 0 || code == ISAL_NEED_DICT)
        return error_set(err, STATUS_INVALID, "%s: %s", codec_name(inflate->codec),
                         inflate_fault(code));
    step->in += in_bytes - isal->avail_in;
    step->in_bytes -= in_bytes - isal->avail_in;
    step->out += out_bytes - isal->avail_out;
    step->out_bytes -= out_bytes - isal->avail_out;
    if (isal->block_state == ISAL_BLOCK_FINISH) {
        /* igzip reads ahead, and gives back nothing. A gzip trailer is as long as that can be. */
        if (isal->read_in_length >= 8)
            return trailing_bytes(inflate, err);
        inflate->place = BETWEEN;
        step->is_between = true;
    }
    return STATUS_OK;
}

const struct codec_expand_ops codec_deflate_expand = {
    .create = inflate_create,
    .reset = inflate_reset,
    .step = inflate_step,
    .destroy = mem_free,
};

/* ---- compressing ---- */

struct deflate {
    uint16_t wrapper;
    struct isal_zstream stream;
    uint8_t level_memory[ISAL_DEF_LVL1_DEFAULT];
};

static void *deflate_create(enum codec codec, int level)
{
    (void)level;
    struct deflate *deflate = mem_alloc_zero(1, sizeof *deflate);
    if (!deflate)
        return NULL;
    deflate->wrapper = codec == CODEC_GZIP   ? IGZIP_GZIP
                       : codec == CODEC_ZLIB ? IGZIP_ZLIB
                                             : IGZIP_DEFLATE;
    return deflate;
}

static enum status deflate_compress(void *state, struct span in, struct buf *out, struct error *err)
{
    struct deflate *deflate = state;
    struct isal_zstream *stream = &deflate->stream;
    size_t start = out->length;
    isal_deflate_init(stream);
    stream->level = 1;
    stream->level_buf = deflate->level_memory;
    stream->level_buf_size = sizeof deflate->level_memory;
    stream->gzip_flag = deflate->wrapper;
    stream->next_in = (uint8_t *)(uintptr_t)in.data; /* is only read */
    size_t left = in.length;
    do {
        if (stream->avail_in == 0) {
            stream->avail_in = (uint32_t)size_min(left, 1u << 30);
            left -= stream->avail_in;
        }
        stream->end_of_stream = left == 0;
        size_t room = size_max(size_min(in.length / 2, 1u << 20), 4096);
        if (!buf_reserve(out, room)) {
            out->length = start;
            return buf_status(out, "compressing", err);
        }
        stream->next_out = out->data + out->length;
        stream->avail_out = (uint32_t)room;
        int code = isal_deflate(stream);
        if (code != COMP_OK) {
            out->length = start;
            return error_set(err, STATUS_INTERNAL, "deflate: code %d", code);
        }
        out->length += room - stream->avail_out;
    } while (stream->internal_state.state != ZSTATE_END);
    return STATUS_OK;
}

const struct codec_compress_ops codec_deflate_compress = {
    .create = deflate_create,
    .compress = deflate_compress,
    .destroy = mem_free,
};
