/* SPDX-License-Identifier: Apache-2.0
 *
 * Compressed bodies from outside. The first byte picks the codec, the second the size of the
 * pieces; in pieces or whole, the answer must be the same, and never more than the limit.
 */
#include "format/codec/codec.h"

enum { LIMIT_BYTES = 1 << 18 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct error err;
    struct buf whole = {0}, pieces = {0};
    struct codec_expander *expander;
    if (bytes < 2)
        return 0;
    enum codec codec = (enum codec)(data[0] % CODEC_COUNT);
    size_t piece = (size_t)data[1] + 1;
    struct span in = span_of(data + 2, bytes - 2);
    enum status status = codec_expand(codec, in, LIMIT_BYTES, &whole, &err);
    CHECK(whole.length <= LIMIT_BYTES);
    if (codec_expander_create(codec, LIMIT_BYTES, &expander, &err) == STATUS_OK) {
        enum status got = STATUS_OK;
        for (size_t at = 0; at < in.length && got == STATUS_OK; at += piece)
            got = codec_expander_feed(
                expander, span_of(in.data + at, size_min(piece, in.length - at)), &pieces, &err);
        if (got == STATUS_OK)
            got = codec_expander_finish(expander, &err);
        CHECK((got == STATUS_OK) == (status == STATUS_OK));
        CHECK(status != STATUS_OK ||
              (pieces.length == whole.length &&
               (whole.length == 0 || memcmp(pieces.data, whole.data, whole.length) == 0)));
        codec_expander_destroy(expander);
    }
    if (status == STATUS_OK && in.length) {
        uint8_t *place = mem_alloc(whole.length + 1);
        /* libzstd's decoder for whole frames refuses empty compressed blocks, its other takes them
         */
        if (place && codec_expand_exact(codec, in, place, whole.length, &err) == STATUS_OK)
            CHECK(whole.length == 0 || memcmp(place, whole.data, whole.length) == 0);
        else
            CHECK(!place || whole.length == 0 || codec == CODEC_ZSTD);
        mem_free(place);
    }
    buf_deinit(&whole);
    buf_deinit(&pieces);
    return 0;
}
