/* SPDX-License-Identifier: Apache-2.0
 *
 * zstd through libzstd.
 */
#include <inttypes.h>
#include <zstd.h>

#include "format/codec/codec_internal.h"

enum {
    WINDOW_LOG_MAX = 23,   /* 8 MiB, RFC 9659 */
    HEADER_BYTES_MAX = 18, /* of a frame, RFC 8878 section 3.1.1 */
};

static enum status fault(size_t code, struct error *err)
{
    return error_set(err, STATUS_INVALID, "zstd: %s", ZSTD_getErrorName(code));
}

/* libzstd has two decoders: one for a frame that lies in memory whole, one for streams. They differ
 * over damaged frames, and the answer must not depend on how a body was cut: so frames start with a
 * single byte here, which only the second takes. That one believes a frame's declared size where
 * its last block is empty, so it is compared here. */
struct expand {
    ZSTD_DCtx *context;
    uint8_t header[HEADER_BYTES_MAX];
    size_t header_bytes;
    uint64_t bytes; /* of this frame, expanded */
};

static void *expand_create(enum codec codec)
{
    (void)codec;
    struct expand *expand = mem_alloc_zero(1, sizeof *expand);
    if (!expand)
        return NULL;
    expand->context = ZSTD_createDCtx();
    if (!expand->context) {
        mem_free(expand);
        return NULL;
    }
    (void)ZSTD_DCtx_setParameter(expand->context, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
    return expand;
}

static void expand_reset(void *state)
{
    struct expand *expand = state;
    expand->header_bytes = 0;
    expand->bytes = 0;
    (void)ZSTD_DCtx_reset(expand->context, ZSTD_reset_session_only);
}

static enum status end_frame(struct expand *expand, struct error *err)
{
    uint64_t declared = ZSTD_getFrameContentSize(expand->header, expand->header_bytes);
    uint64_t bytes = expand->bytes;
    expand->header_bytes = 0;
    expand->bytes = 0;
    if (declared != ZSTD_CONTENTSIZE_UNKNOWN && declared != bytes)
        return error_set(err, STATUS_INVALID, "zstd: frame holds %" PRIu64 " bytes, not %" PRIu64,
                         bytes, declared);
    return STATUS_OK;
}

static enum status expand_step(void *state, struct codec_step *step, struct error *err)
{
    struct expand *expand = state;
    bool is_start = expand->header_bytes == 0;
    ZSTD_inBuffer in = {.src = step->in, .size = is_start ? 1 : step->in_bytes};
    ZSTD_outBuffer out = {.dst = step->out, .size = step->out_bytes};
    if (step->in_bytes == 0 && is_start) /* it would take this for a new frame */
        return STATUS_OK;
    size_t code = ZSTD_decompressStream(expand->context, &out, &in);
    if (ZSTD_isError(code))
        return fault(code, err);
    size_t header_bytes = size_min(in.pos, sizeof expand->header - expand->header_bytes);
    memcpy(expand->header + expand->header_bytes, step->in, header_bytes);
    expand->header_bytes += header_bytes;
    expand->bytes += out.pos;
    step->in += in.pos;
    step->in_bytes -= in.pos;
    step->out += out.pos;
    step->out_bytes -= out.pos;
    step->is_between = code == 0;
    return step->is_between ? end_frame(expand, err) : STATUS_OK;
}

static void expand_destroy(void *state)
{
    struct expand *expand = state;
    ZSTD_freeDCtx(expand->context);
    mem_free(expand);
}

const struct codec_expand_ops codec_zstd_expand = {
    .create = expand_create,
    .reset = expand_reset,
    .step = expand_step,
    .destroy = expand_destroy,
};

enum status codec_zstd_expand_exact(void *state, struct span in, void *place, size_t bytes,
                                    struct error *err)
{
    struct expand *expand = state;
    size_t code = expand ? ZSTD_decompressDCtx(expand->context, place, bytes, in.data, in.length)
                         : ZSTD_decompress(place, bytes, in.data, in.length);
    if (ZSTD_isError(code))
        return fault(code, err);
    if (code != bytes || in.length == 0)
        return error_set(err, STATUS_INVALID, "zstd: block does not expand to %zu bytes", bytes);
    return STATUS_OK;
}

enum status codec_zstd_expand_front(void *state, struct span in, void *place, size_t bytes,
                                    struct error *err)
{
    struct expand *expand = state;
    ZSTD_inBuffer from = {.src = in.data, .size = in.length};
    ZSTD_outBuffer to = {.dst = place, .size = bytes};
    while (to.pos < bytes) {
        size_t before = from.pos + to.pos;
        size_t code = ZSTD_decompressStream(expand->context, &to, &from);
        if (ZSTD_isError(code))
            return fault(code, err);
        if (from.pos + to.pos == before)
            return error_set(err, STATUS_INVALID, "zstd: block ends before %zu bytes", bytes);
    }
    return STATUS_OK;
}

/* ---- compressing ---- */

static void *compress_create(enum codec codec, int level)
{
    (void)codec;
    ZSTD_CCtx *context = ZSTD_createCCtx();
    if (context)
        (void)ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
    return context;
}

static enum status compress(void *state, struct span in, struct buf *out, struct error *err)
{
    size_t bound = ZSTD_compressBound(in.length);
    if (ZSTD_isError(bound) || !buf_reserve(out, bound))
        return error_set(err, STATUS_NO_MEMORY, "zstd: no memory to compress %zu bytes", in.length);
    size_t code = ZSTD_compress2(state, out->data + out->length, bound, in.data, in.length);
    if (ZSTD_isError(code))
        return error_set(err, STATUS_NO_MEMORY, "zstd: %s", ZSTD_getErrorName(code));
    out->length += code;
    return STATUS_OK;
}

static void compress_destroy(void *state)
{
    ZSTD_freeCCtx(state);
}

const struct codec_compress_ops codec_zstd_compress = {
    .create = compress_create,
    .compress = compress,
    .destroy = compress_destroy,
};
