/* SPDX-License-Identifier: Apache-2.0
 *
 * What a codec gives to codec.c: one step of expanding, one whole stream of compressing.
 */
#ifndef SLUICE_FORMAT_CODEC_CODEC_INTERNAL_H
#define SLUICE_FORMAT_CODEC_CODEC_INTERNAL_H

#include "format/codec/codec.h"

/* One step: takes from `in`, puts to `out`. */
struct codec_step {
    const uint8_t *in;
    size_t in_bytes;
    uint8_t *out;
    size_t out_bytes;
    bool is_between; /* in and out: at the end of a frame, so that the stream may end here */
};

struct codec_expand_ops {
    void *(*create)(enum codec codec); /* NULL: out of memory */
    void (*reset)(void *state);
    /* Advances the pointers of `step`; INVALID with a message for damage. Called with in_bytes 0 to
     * drain what is held back. */
    enum status (*step)(void *state, struct codec_step *step, struct error *err);
    void (*destroy)(void *state);
};

struct codec_compress_ops {
    void *(*create)(enum codec codec, int level);
    enum status (*compress)(void *state, struct span in, struct buf *out, struct error *err);
    void (*destroy)(void *state);
};

extern const struct codec_expand_ops codec_deflate_expand, codec_zstd_expand, codec_lz4_expand;
extern const struct codec_compress_ops codec_deflate_compress, codec_zstd_compress,
    codec_lz4_compress, codec_lz4_block_compress, codec_snappy_compress;

/* zstd into memory of known size, without stream buffers. `state`: of codec_zstd_expand, or NULL.
 */
enum status codec_zstd_expand_exact(void *state, struct span in, void *place, size_t bytes,
                                    struct error *err) MUST_CHECK;
enum status codec_zstd_expand_front(void *state, struct span in, void *place, size_t bytes,
                                    struct error *err) MUST_CHECK;
/* Raw blocks. */
enum status codec_lz4_expand_block(struct span in, void *place, size_t bytes,
                                   struct error *err) MUST_CHECK;
enum status codec_snappy_expand_block(struct span in, void *place, size_t bytes,
                                      struct error *err) MUST_CHECK;

#endif
