/* SPDX-License-Identifier: Apache-2.0
 *
 * Snappy blocks through libsnappy.
 */
#include <snappy-c.h>

#include "format/codec/codec_internal.h"

enum status codec_snappy_expand_block(struct span in, void *place, size_t bytes, struct error *err)
{
    const char *data = (const char *)in.data;
    size_t made = 0;
    if (!in.length || snappy_uncompressed_length(data, in.length, &made) != SNAPPY_OK ||
        made != bytes || snappy_uncompress(data, in.length, place, &made) != SNAPPY_OK ||
        made != bytes)
        return error_set(err, STATUS_INVALID, "snappy: block does not expand to %zu bytes", bytes);
    return STATUS_OK;
}

/* ---- compressing ---- */

static void *compress_create(enum codec codec, int level)
{
    static char nothing;
    UNUSED(codec);
    UNUSED(level);
    return &nothing; /* no state, and no levels */
}

static enum status compress(void *state, struct span in, struct buf *out, struct error *err)
{
    size_t made = snappy_max_compressed_length(in.length);
    const char *data = in.length ? (const char *)in.data : "";
    UNUSED(state);
    if (!buf_reserve(out, made) ||
        snappy_compress(data, in.length, (char *)out->data + out->length, &made) != SNAPPY_OK)
        return error_set(err, STATUS_NO_MEMORY, "snappy: no memory to compress %zu bytes",
                         in.length);
    out->length += made;
    return STATUS_OK;
}

static void compress_destroy(void *state)
{
    UNUSED(state);
}

const struct codec_compress_ops codec_snappy_compress = {
    .create = compress_create, .compress = compress, .destroy = compress_destroy};
