/* SPDX-License-Identifier: Apache-2.0
 *
 * The face of the codecs: names, the loop that expands under a limit, compressors.
 */
#include <strings.h>

#include "format/codec/codec_internal.h"

static const char *const names[CODEC_COUNT] = {
    [CODEC_NONE] = "identity",   [CODEC_GZIP] = "gzip",     [CODEC_ZLIB] = "zlib",
    [CODEC_DEFLATE] = "deflate", [CODEC_ZSTD] = "zstd",     [CODEC_LZ4_FRAME] = "lz4",
    [CODEC_LZ4_BLOCK] = "lz4",   [CODEC_SNAPPY] = "snappy",
};

const char *codec_name(enum codec codec)
{
    return (unsigned)codec < CODEC_COUNT ? names[codec] : "unknown";
}

bool codec_from_name(const char *name, size_t length, enum codec *out_codec)
{
    static const struct {
        const char *name;
        enum codec codec;
    } codings[] = {
        {"identity", CODEC_NONE}, {"gzip", CODEC_GZIP}, {"x-gzip", CODEC_GZIP},
        {"deflate", CODEC_ZLIB},  {"zstd", CODEC_ZSTD}, {"lz4", CODEC_LZ4_FRAME},
    };
    for (size_t i = 0; i < COUNT_OF(codings); i++) {
        if (strlen(codings[i].name) == length && strncasecmp(codings[i].name, name, length) == 0) {
            *out_codec = codings[i].codec;
            return true;
        }
    }
    return false;
}

/* ---- expanding ---- */

struct codec_expander {
    enum codec codec;
    const struct codec_expand_ops *ops; /* NULL: CODEC_NONE */
    void *state;
    size_t bytes_max, bytes; /* of output */
    bool is_between, is_fed;
};

static const struct codec_expand_ops *expand_ops(enum codec codec)
{
    switch (codec) {
    case CODEC_GZIP:
    case CODEC_ZLIB:
    case CODEC_DEFLATE:
        return &codec_deflate_expand;
    case CODEC_ZSTD:
        return &codec_zstd_expand;
    case CODEC_LZ4_FRAME:
        return &codec_lz4_expand;
    default:
        return NULL;
    }
}

enum status codec_expander_create(enum codec codec, size_t bytes_max,
                                  struct codec_expander **out_expander, struct error *err)
{
    if (codec == CODEC_LZ4_BLOCK || codec == CODEC_SNAPPY)
        return error_set(err, STATUS_USAGE, "%s: blocks are no streams", codec_name(codec));
    struct codec_expander *expander = mem_alloc_zero(1, sizeof *expander);
    if (!expander)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory to expand", codec_name(codec));
    expander->codec = codec;
    expander->bytes_max = bytes_max;
    expander->ops = expand_ops(codec);
    if (expander->ops && !(expander->state = expander->ops->create(codec))) {
        mem_free(expander);
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory to expand", codec_name(codec));
    }
    *out_expander = expander;
    return STATUS_OK;
}

void codec_expander_reset(struct codec_expander *expander, size_t bytes_max)
{
    if (expander->ops)
        expander->ops->reset(expander->state);
    expander->bytes_max = bytes_max;
    expander->bytes = 0;
    expander->is_between = expander->is_fed = false;
}

void codec_expander_destroy(struct codec_expander *expander)
{
    if (!expander)
        return;
    if (expander->ops)
        expander->ops->destroy(expander->state);
    mem_free(expander);
}

static enum status too_large(const struct codec_expander *expander, struct error *err)
{
    return error_set(err, STATUS_TOO_LARGE, "%s: expands to more than %zu bytes",
                     codec_name(expander->codec), expander->bytes_max);
}

/* One step; at most one byte over the limit is made, and then refused. */
static enum status expand_step(struct codec_expander *expander, struct codec_step *step,
                               size_t chunk_bytes, struct buf *out, bool *out_is_full,
                               struct error *err)
{
    size_t left = expander->bytes_max - expander->bytes;
    size_t room = size_min(chunk_bytes, left < SIZE_MAX ? left + 1 : left);
    size_t in_bytes = step->in_bytes;
    if (!buf_reserve(out, room))
        return buf_status(out, "expanding", err);
    step->out = out->data + out->length;
    step->out_bytes = room;
    TRY(expander->ops->step(expander->state, step, err));
    size_t made = room - step->out_bytes;
    if (made > left)
        return too_large(expander, err);
    if (made == 0 && in_bytes && step->in_bytes == in_bytes)
        return error_set(err, STATUS_INVALID, "%s: damaged", codec_name(expander->codec));
    out->length += made;
    expander->bytes += made;
    *out_is_full = step->out_bytes == 0;
    return STATUS_OK;
}

enum status codec_expander_feed(struct codec_expander *expander, struct span in, struct buf *out,
                                struct error *err)
{
    enum { CHUNK_BYTES_MIN = 16 << 10, CHUNK_BYTES_MAX = 1 << 20 };
    struct codec_step step = {
        .in = in.data, .in_bytes = in.length, .is_between = expander->is_between};
    size_t start = out->length;
    enum status status = STATUS_OK;
    if (in.length == 0)
        return STATUS_OK;
    expander->is_fed = true;
    if (!expander->ops) {
        if (in.length > expander->bytes_max - expander->bytes)
            return too_large(expander, err);
        buf_put(out, in.data, in.length);
        expander->bytes += in.length;
        return buf_status(out, "expanding", err);
    }
    size_t chunk_bytes = size_max(size_min(in.length, CHUNK_BYTES_MAX / 4) * 4, CHUNK_BYTES_MIN);
    bool is_full = true;
    while (step.in_bytes || is_full)
        TRY_OR_DONE(status, expand_step(expander, &step, chunk_bytes, out, &is_full, err));
    expander->is_between = step.is_between;
done:
    if (status != STATUS_OK)
        buf_truncate(out, start);
    return status;
}

enum status codec_expander_finish(struct codec_expander *expander, struct error *err)
{
    if (expander->ops && !expander->is_between)
        return error_set(err, STATUS_INVALID, "%s: %s", codec_name(expander->codec),
                         expander->is_fed ? "cut off, or followed by other bytes" : "empty");
    return STATUS_OK;
}

enum status codec_expand(enum codec codec, struct span in, size_t bytes_max, struct buf *out,
                         struct error *err)
{
    struct codec_expander *expander;
    size_t start = out->length;
    TRY(codec_expander_create(codec, bytes_max, &expander, err));
    enum status status = codec_expander_feed(expander, in, out, err);
    if (status == STATUS_OK)
        status = codec_expander_finish(expander, err);
    if (status != STATUS_OK)
        buf_truncate(out, start);
    codec_expander_destroy(expander);
    return status;
}

enum status codec_expand_exact(enum codec codec, struct span in, void *place, size_t bytes,
                               struct error *err)
{
    const struct codec_expand_ops *ops = expand_ops(codec);
    struct codec_step step = {
        .in = in.data, .in_bytes = in.length, .out = place, .out_bytes = bytes};
    uint8_t spare; /* a byte too many shows itself here */
    enum status status = STATUS_OK;
    if (codec == CODEC_ZSTD)
        return codec_zstd_expand_exact(NULL, in, place, bytes, err);
    if (codec == CODEC_LZ4_BLOCK)
        return codec_lz4_expand_block(in, place, bytes, err);
    if (codec == CODEC_SNAPPY)
        return codec_snappy_expand_block(in, place, bytes, err);
    if (!ops) {
        if (in.length != bytes)
            return error_set(err, STATUS_INVALID, "stored block has another length");
        if (bytes)
            memcpy(place, in.data, bytes);
        return STATUS_OK;
    }
    void *state = ops->create(codec);
    if (!state)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory to expand", codec_name(codec));
    bool is_over = false;
    while (step.in_bytes && !is_over) {
        size_t in_bytes = step.in_bytes, out_bytes = step.out_bytes;
        if (step.out_bytes == 0) { /* only a trailer may be left */
            step.out = &spare;
            step.out_bytes = out_bytes = 1;
            TRY_OR_DONE(status, ops->step(state, &step, err));
            is_over = step.out_bytes == 0;
            step.out_bytes = 0;
            is_over = is_over || step.in_bytes == in_bytes;
            continue;
        }
        TRY_OR_DONE(status, ops->step(state, &step, err));
        is_over = step.in_bytes == in_bytes && step.out_bytes == out_bytes;
    }
    if (is_over || step.out_bytes || !step.is_between)
        status = error_set(err, STATUS_INVALID, "%s: block does not expand to %zu bytes",
                           codec_name(codec), bytes);
done:
    ops->destroy(state);
    return status;
}

static enum status begin_block(struct codec_expander *expander, struct error *err)
{
    if (expander->codec != CODEC_ZSTD)
        return error_set(err, STATUS_USAGE, "%s: no block by an expander",
                         codec_name(expander->codec));
    codec_expander_reset(expander, expander->bytes_max);
    return STATUS_OK;
}

enum status codec_expander_exact(struct codec_expander *expander, struct span in, void *place,
                                 size_t bytes, struct error *err)
{
    TRY(begin_block(expander, err));
    return codec_zstd_expand_exact(expander->state, in, place, bytes, err);
}

enum status codec_expander_front(struct codec_expander *expander, struct span in, void *place,
                                 size_t bytes, struct error *err)
{
    TRY(begin_block(expander, err));
    return codec_zstd_expand_front(expander->state, in, place, bytes, err);
}

/* ---- compressing ---- */

struct codec_compressor {
    const struct codec_compress_ops *ops;
    void *state;
};

enum status codec_compressor_create(enum codec codec, int level,
                                    struct codec_compressor **out_compressor, struct error *err)
{
    const struct codec_compress_ops *ops = NULL;
    switch (codec) {
    case CODEC_GZIP:
    case CODEC_ZLIB:
    case CODEC_DEFLATE:
        ops = &codec_deflate_compress;
        break;
    case CODEC_ZSTD:
        ops = &codec_zstd_compress;
        break;
    case CODEC_LZ4_FRAME:
        ops = &codec_lz4_compress;
        break;
    case CODEC_LZ4_BLOCK:
        ops = &codec_lz4_block_compress;
        break;
    case CODEC_SNAPPY:
        ops = &codec_snappy_compress;
        break;
    default:
        break;
    }
    struct codec_compressor *compressor = mem_alloc_zero(1, sizeof *compressor);
    if (!compressor)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory to compress", codec_name(codec));
    compressor->ops = ops;
    if (ops && !(compressor->state = ops->create(codec, level))) {
        mem_free(compressor);
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory to compress", codec_name(codec));
    }
    *out_compressor = compressor;
    return STATUS_OK;
}

enum status codec_compress(struct codec_compressor *compressor, struct span in, struct buf *out,
                           struct error *err)
{
    if (compressor->ops)
        return compressor->ops->compress(compressor->state, in, out, err);
    buf_put(out, in.data, in.length);
    return buf_status(out, "copying", err);
}

void codec_compressor_destroy(struct codec_compressor *compressor)
{
    if (!compressor)
        return;
    if (compressor->ops)
        compressor->ops->destroy(compressor->state);
    mem_free(compressor);
}
