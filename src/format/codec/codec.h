/* SPDX-License-Identifier: Apache-2.0
 *
 * Compression behind one face. Expanding is a stream with a limit that holds while it expands, so
 * that a small body which would become a large one stops at the limit. Sources: RFC 1951 (deflate),
 * RFC 1950 (zlib), RFC 1952 (gzip), RFC 8878 (zstd), LZ4 frame format 1.6, LZ4 block
 * format, snappy's format_description.txt. No global state; an
 * object belongs to one thread at a time.
 */
#ifndef SLUICE_FORMAT_CODEC_CODEC_H
#define SLUICE_FORMAT_CODEC_CODEC_H

#include "base/base.h"

enum codec {
    CODEC_NONE, /* bytes as they are; limits hold too */
    CODEC_GZIP, /* one member or many */
    CODEC_ZLIB,
    CODEC_DEFLATE,   /* raw RFC 1951, as in Avro */
    CODEC_ZSTD,      /* one frame or many; windows of at most 8 MiB (RFC 9659) */
    CODEC_LZ4_FRAME, /* one frame or many */
    CODEC_LZ4_BLOCK, /* raw, as in Parquet: expanded by codec_expand_exact alone */
    CODEC_SNAPPY,    /* the same */
    CODEC_COUNT
};

/* The codec of an HTTP content coding: "identity", "gzip", "x-gzip", "deflate" (zlib), "zstd",
 * "lz4", in any case. */
bool codec_from_name(const char *name, size_t length, enum codec *out_codec);
const char *codec_name(enum codec codec);

/* ---- expanding ---- */

struct codec_expander;

/* `bytes_max`: of all output. USAGE for codecs of whole blocks. */
enum status codec_expander_create(enum codec codec, size_t bytes_max,
                                  struct codec_expander **out_expander,
                                  struct error *err) MUST_CHECK;

/* Takes all of `in` and appends what it yields to `out`. TOO_LARGE at the limit, of which at most
 * one block more was expanded; INVALID for damage. After a failure only reset and destroy are left.
 */
enum status codec_expander_feed(struct codec_expander *expander, struct span in, struct buf *out,
                                struct error *err) MUST_CHECK;

/* INVALID where the stream was cut off in the middle, or nothing was fed to it (a zero-length body
 * is not a compressed one). */
enum status codec_expander_finish(struct codec_expander *expander, struct error *err) MUST_CHECK;

void codec_expander_reset(struct codec_expander *expander, size_t bytes_max); /* for a new stream */
void codec_expander_destroy(struct codec_expander *expander);                 /* accepts NULL */

/* A whole stream at once: create, feed, finish. */
enum status codec_expand(enum codec codec, struct span in, size_t bytes_max, struct buf *out,
                         struct error *err) MUST_CHECK;

/* Into exactly `bytes` bytes at `place`: a block whose length is known. INVALID for any other
 * length. */
enum status codec_expand_exact(enum codec codec, struct span in, void *place, size_t bytes,
                               struct error *err) MUST_CHECK;

/* The same by an expander of zstd, whose memory many blocks share; what it was fed before is
 * forgotten. USAGE for other codecs. */
enum status codec_expander_exact(struct codec_expander *expander, struct span in, void *place,
                                 size_t bytes, struct error *err) MUST_CHECK;

/* By an expander of zstd: the first `bytes` of what `in` becomes, and little more is expanded. What
 * stands behind them is not looked at. INVALID where there are fewer. */
enum status codec_expander_front(struct codec_expander *expander, struct span in, void *place,
                                 size_t bytes, struct error *err) MUST_CHECK;

/* ---- compressing ---- */

struct codec_compressor;

/* `level`: as the codec counts them; 0 is its default. gzip, zlib, deflate know 1. */
enum status codec_compressor_create(enum codec codec, int level,
                                    struct codec_compressor **out_compressor,
                                    struct error *err) MUST_CHECK;

/* Appends one whole stream to `out`: a frame, a member, a block. The compressor keeps its memory
 * for the next. */
enum status codec_compress(struct codec_compressor *compressor, struct span in, struct buf *out,
                           struct error *err) MUST_CHECK;

void codec_compressor_destroy(struct codec_compressor *compressor); /* accepts NULL */

#endif
