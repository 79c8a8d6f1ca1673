/* SPDX-License-Identifier: Apache-2.0
 *
 * LZ4 frames and blocks through liblz4.
 */
#include <limits.h>
#include <lz4.h>
#include <lz4frame.h>

#include "format/codec/codec_internal.h"

static void *expand_create(enum codec codec)
{
    (void)codec;
    LZ4F_dctx *context;
    return LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)) ? NULL : context;
}

static void expand_reset(void *state)
{
    LZ4F_resetDecompressionContext(state);
}

static enum status expand_step(void *state, struct codec_step *step, struct error *err)
{
    size_t in_bytes = step->in_bytes, out_bytes = step->out_bytes;
    if (in_bytes == 0 && step->is_between)
        return STATUS_OK;
    size_t code = LZ4F_decompress(state, step->out, &out_bytes, step->in, &in_bytes, NULL);
    if (LZ4F_isError(code))
        return error_set(err, STATUS_INVALID, "lz4: %s", LZ4F_getErrorName(code));
    step->in += in_bytes;
    step->in_bytes -= in_bytes;
    step->out += out_bytes;
    step->out_bytes -= out_bytes;
    step->is_between = code == 0;
    return STATUS_OK;
}

static void expand_destroy(void *state)
{
    LZ4F_freeDecompressionContext(state);
}

const struct codec_expand_ops codec_lz4_expand = {
    .create = expand_create,
    .reset = expand_reset,
    .step = expand_step,
    .destroy = expand_destroy,
};

enum status codec_lz4_expand_block(struct span in, void *place, size_t bytes, struct error *err)
{
    int made = -1;
    if (in.length && in.length <= INT_MAX && bytes <= INT_MAX)
        made = LZ4_decompress_safe((const char *)in.data, place, (int)in.length, (int)bytes);
    if (made < 0 || (size_t)made != bytes)
        return error_set(err, STATUS_INVALID, "lz4: block does not expand to %zu bytes", bytes);
    return STATUS_OK;
}

/* ---- compressing ---- */

struct lz4 {
    LZ4F_preferences_t preferences;
};

static void *compress_create(enum codec codec, int level)
{
    (void)codec;
    struct lz4 *lz4 = mem_alloc_zero(1, sizeof *lz4);
    if (lz4)
        lz4->preferences.compressionLevel = level <= 1 ? 0 : level;
    return lz4;
}

static enum status compress(void *state, struct span in, struct buf *out, struct error *err)
{
    struct lz4 *lz4 = state;
    lz4->preferences.frameInfo.contentSize = in.length;
    size_t bound = LZ4F_compressFrameBound(in.length, &lz4->preferences);
    if (!buf_reserve(out, bound))
        return error_set(err, STATUS_NO_MEMORY, "lz4: no memory to compress %zu bytes", in.length);
    size_t code =
        LZ4F_compressFrame(out->data + out->length, bound, in.data, in.length, &lz4->preferences);
    if (LZ4F_isError(code))
        return error_set(err, STATUS_NO_MEMORY, "lz4: %s", LZ4F_getErrorName(code));
    out->length += code;
    return STATUS_OK;
}

const struct codec_compress_ops codec_lz4_compress = {
    .create = compress_create,
    .compress = compress,
    .destroy = mem_free,
};

/* A block has no header and no checksum: its reader knows the length. */
static enum status compress_block(void *state, struct span in, struct buf *out, struct error *err)
{
    int room = in.length <= LZ4_MAX_INPUT_SIZE ? LZ4_compressBound((int)in.length) : 0;
    const char *data = in.length ? (const char *)in.data : "";
    UNUSED(state);
    if (!room)
        return error_set(err, STATUS_TOO_LARGE, "lz4: a block of %zu bytes", in.length);
    if (!buf_reserve(out, (size_t)room))
        return error_set(err, STATUS_NO_MEMORY, "lz4: no memory to compress %zu bytes", in.length);
    int made = LZ4_compress_default(data, (char *)out->data + out->length, (int)in.length, room);
    CHECK(made > 0); /* there is room for the worst */
    out->length += (size_t)made;
    return STATUS_OK;
}

const struct codec_compress_ops codec_lz4_block_compress = {
    .create = compress_create,
    .compress = compress_block,
    .destroy = mem_free,
};
