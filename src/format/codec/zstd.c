/* SPDX-License-Identifier: Apache-2.0
 *
 * zstd through libzstd.
 */
#include <zstd.h>

#include "format/codec/codec_internal.h"

enum { WINDOW_LOG_MAX = 23 }; /* 8 MiB, RFC 9659 */

static enum status fault(size_t code, struct error *err)
{
    return error_set(err, STATUS_INVALID, "zstd: %s", ZSTD_getErrorName(code));
}

static void *expand_create(enum codec codec)
{
    (void)codec;
    ZSTD_DCtx *context = ZSTD_createDCtx();
    if (context)
        (void)ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
    return context;
}

static void expand_reset(void *state)
{
    (void)ZSTD_DCtx_reset(state, ZSTD_reset_session_only);
}

static enum status expand_step(void *state, struct codec_step *step, struct error *err)
{
    ZSTD_inBuffer in = {.src = step->in, .size = step->in_bytes};
    ZSTD_outBuffer out = {.dst = step->out, .size = step->out_bytes};
    if (step->in_bytes == 0 && step->is_between) /* it would take this for a new frame */
        return STATUS_OK;
    size_t code = ZSTD_decompressStream(state, &out, &in);
    if (ZSTD_isError(code))
        return fault(code, err);
    step->in += in.pos;
    step->in_bytes -= in.pos;
    step->out += out.pos;
    step->out_bytes -= out.pos;
    step->is_between = code == 0;
    return STATUS_OK;
}

static void expand_destroy(void *state)
{
    ZSTD_freeDCtx(state);
}

const struct codec_expand_ops codec_zstd_expand = {
    .create = expand_create,
    .reset = expand_reset,
    .step = expand_step,
    .destroy = expand_destroy,
};

enum status codec_zstd_expand_exact(struct span in, void *place, size_t bytes, struct error *err)
{
    size_t code = ZSTD_decompress(place, bytes, in.data, in.length);
    if (ZSTD_isError(code))
        return fault(code, err);
    if (code != bytes || in.length == 0)
        return error_set(err, STATUS_INVALID, "zstd: block does not expand to %zu bytes", bytes);
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
