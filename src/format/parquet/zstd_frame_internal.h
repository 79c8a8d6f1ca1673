/* SPDX-License-Identifier: Apache-2.0
 *
 * zstd frames laid out by what is known of a page, without a search for matches. Any decoder of
 * RFC 8878 reads them; libzstd makes the pages whose shape is another.
 *
 * A frame (section 3.1.1): magic, descriptor 0xa0 (a single segment, a content size of 4 bytes, no
 * checksum, no dictionary), content size, blocks. What stands in front of the values (levels of v1
 * pages) and the first of them are raw blocks (3.1.1.2).
 *
 * The others are compressed blocks (3.1.1.3) of sequences of a kind: LL literals, then a match of
 * ML bytes that lies as far back as a value and its like are apart. Where all are the same, the
 * three symbol modes are RLE (3.1.1.3.2.1), which leaves nothing of a sequence in the bit stream
 * but the extra bits of its codes. The first such block gives the offset; those behind it repeat it
 * (offset value 1, 3.1.1.5: no bits).
 *
 * Words (int64): LL = the low bytes up to the last that differs from the word before, n at least;
 * ML = the high bytes above, 8 - LL. FSE codes (4.1) for both where LL is not always n. A word that
 * differs in more than 5 bytes ends its block as 8 literals behind the last sequence. n is that of
 * 1 to 5 which makes the page smallest. The literals have a Huffman code (4.2) where that makes
 * them clearly smaller, as the highest of the n bytes often does.
 *
 * Ids (byte arrays of 16 or 32 of [0-9a-f]): LL = the id, ML = 4, the length of the next one, which
 * is that of this one. Sixteen symbols of equal weight have Huffman codes of 4 bits, in the order
 * of the symbols (4.2.1): packed nibbles, backwards, in four streams.
 *
 * Section 3.1.1.2.4: a compressed block is smaller than what it becomes, else it is a raw one.
 */
#ifndef SLUICE_FORMAT_PARQUET_ZSTD_FRAME_INTERNAL_H
#define SLUICE_FORMAT_PARQUET_ZSTD_FRAME_INTERNAL_H

#include "base/base.h"

enum zstd_shape { ZSTD_ANY, ZSTD_WORDS, ZSTD_IDS };

/* Appends a frame of `body`, whose values in PLAIN begin at `values_at`. False, and nothing
 * appended: they have not the shape, are too few, or there is no memory (out->failed). */
bool zstd_frame_put(struct buf *out, enum zstd_shape shape, struct span body, size_t values_at);

/* A literals section of a Huffman code for `literals` at `at`, where there is room for twice as
 * many and 1 KiB; its end. NULL: it would not be clearly smaller than they are. */
enum { ZSTD_HUFFMAN_MIN = 2048, ZSTD_HUFFMAN_MAX = 128 << 10 };
uint8_t *zstd_put_huffman(uint8_t *at, const uint8_t *literals, size_t count);

/* Packs `count` ids of `bytes` hexadecimal digits, each 4 bytes behind the end of the one before,
 * so that the last byte is the first two digits: `count` x `bytes` / 2 bytes at `out`. False: other
 * digits. The second one is for processors without what the first one uses; they give the same. */
bool zstd_pack_ids(uint8_t *out, const uint8_t *ids, size_t count, size_t bytes);
bool zstd_pack_ids_scalar(uint8_t *out, const uint8_t *ids, size_t count, size_t bytes);

#endif
