/* SPDX-License-Identifier: Apache-2.0 */
#include "../unit.h"
#include "format/codec/codec.h"

static const enum codec all_codecs[] = {CODEC_GZIP, CODEC_ZLIB, CODEC_DEFLATE, CODEC_ZSTD,
                                        CODEC_LZ4_FRAME};

/* Repeats that compress, with noise in between that does not. */
static struct buf sample(size_t bytes)
{
    struct buf out = {0};
    struct random random;
    random_init(&random, 7);
    while (out.length < bytes) {
        uint64_t noise = random_next(&random);
        buf_put(&out, &noise, random_below(&random, 8));
        buf_put_text(&out, "the same words again; ");
    }
    buf_truncate(&out, bytes);
    return out;
}

static struct buf compressed(enum codec codec, const struct buf *in)
{
    struct error err;
    struct codec_compressor *compressor;
    struct buf out = {0};
    assert_ok(codec_compressor_create(codec, 0, &compressor, &err));
    assert_ok(codec_compress(compressor, span_of(in->data, in->length), &out, &err));
    codec_compressor_destroy(compressor);
    return out;
}

static void test_round_trip(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 100, 65536, 1000000};
    struct error err;
    for (size_t c = 0; c < COUNT_OF(all_codecs); c++) {
        for (size_t s = 0; s < COUNT_OF(sizes); s++) {
            struct buf in = sample(sizes[s]), out = {0};
            struct buf packed = compressed(all_codecs[c], &in);
            assert_ok(codec_expand(all_codecs[c], span_of(packed.data, packed.length), sizes[s],
                                   &out, &err));
            assert_int_equal(out.length, sizes[s]);
            if (sizes[s])
                assert_memory_equal(out.data, in.data, sizes[s]);
            uint8_t *place = mem_alloc(sizes[s] + 1);
            struct span span = span_of(packed.data, packed.length);
            assert_ok(codec_expand_exact(all_codecs[c], span, place, sizes[s], &err));
            if (sizes[s])
                assert_memory_equal(place, in.data, sizes[s]);
            assert_status(STATUS_INVALID,
                          codec_expand_exact(all_codecs[c], span, place, sizes[s] + 1, &err));
            if (sizes[s])
                assert_status(STATUS_INVALID,
                              codec_expand_exact(all_codecs[c], span, place, sizes[s] - 1, &err));
            mem_free(place);
            buf_deinit(&in);
            buf_deinit(&packed);
            buf_deinit(&out);
        }
    }
}

/* Blocks that share an expander, also behind a damaged one and a stream that was left. */
static void test_raw_blocks(void **state)
{
    (void)state;
    static const enum codec codecs[] = {CODEC_LZ4_BLOCK, CODEC_SNAPPY};
    static const size_t sizes[] = {0, 1, 100, 65536, 1000000};
    struct error err;
    for (size_t c = 0; c < COUNT_OF(codecs); c++) {
        for (size_t s = 0; s < COUNT_OF(sizes); s++) {
            struct buf in = sample(sizes[s]);
            struct buf packed = compressed(codecs[c], &in);
            struct span span = span_of(packed.data, packed.length);
            uint8_t *place = mem_alloc(sizes[s] + 1);
            assert_ok(codec_expand_exact(codecs[c], span, place, sizes[s], &err));
            if (sizes[s])
                assert_memory_equal(place, in.data, sizes[s]);
            assert_status(STATUS_INVALID,
                          codec_expand_exact(codecs[c], span, place, sizes[s] + 1, &err));
            mem_free(place);
            buf_deinit(&in);
            buf_deinit(&packed);
        }
    }
}

/* The front of a frame, at every length that lies at a block's edge or beside it, and what is wrong
 * behind it does not matter. */
static void test_front_of_a_block(void **state)
{
    (void)state;
    enum { BLOCK = 128 << 10, BYTES = 3 * BLOCK + 1000 };
    struct error err;
    struct codec_expander *expander;
    static uint8_t place[BYTES + 1];
    struct buf in = sample(BYTES), packed = compressed(CODEC_ZSTD, &in);
    struct span span = span_of(packed.data, packed.length);
    assert_ok(codec_expander_create(CODEC_ZSTD, SIZE_MAX, &expander, &err));
    for (size_t edge = 0; edge <= BYTES + BLOCK; edge += BLOCK) {
        for (size_t near = 0; near < 3; near++) {
            size_t bytes = size_min(size_min(edge, BYTES) + near, BYTES + 1);
            memset(place, 0, sizeof place);
            if (bytes > BYTES) {
                assert_status(STATUS_INVALID,
                              codec_expander_front(expander, span, place, bytes, &err));
                continue;
            }
            assert_ok(codec_expander_front(expander, span, place, bytes, &err));
            assert_memory_equal(place, in.data, bytes);
            assert_true(bytes == BYTES || !place[bytes]);
        }
    }
    assert_ok(codec_expander_front(expander, span_of(packed.data, packed.length * 7 / 8), place,
                                   BLOCK, &err));
    assert_memory_equal(place, in.data, BLOCK);
    assert_status(STATUS_INVALID,
                  codec_expander_front(expander, span_of(packed.data, 9), place, 1, &err));
    assert_status(STATUS_INVALID,
                  codec_expander_front(expander, span_of(packed.data, 0), place, 1, &err));
    assert_ok(codec_expander_exact(expander, span, place, BYTES, &err));
    assert_memory_equal(place, in.data, BYTES);
    codec_expander_destroy(expander);
    buf_deinit(&in);
    buf_deinit(&packed);
}

static void test_blocks_by_one_expander(void **state)
{
    (void)state;
    struct error err;
    struct codec_expander *expander;
    uint8_t place[3000];
    struct buf out = {0};
    assert_ok(codec_expander_create(CODEC_ZSTD, sizeof place, &expander, &err));
    for (size_t bytes = 0; bytes < sizeof place; bytes += 997) {
        struct buf in = sample(bytes), packed = compressed(CODEC_ZSTD, &in);
        struct span span = span_of(packed.data, packed.length);
        assert_ok(codec_expander_exact(expander, span, place, bytes, &err));
        if (bytes)
            assert_memory_equal(place, in.data, bytes);
        assert_status(STATUS_INVALID, codec_expander_exact(expander, span, place, bytes + 1, &err));
        assert_ok(
            codec_expander_feed(expander, span_of(packed.data, packed.length - 1), &out, &err));
        assert_ok(codec_expander_exact(expander, span, place, bytes, &err));
        span.length--;
        assert_status(STATUS_INVALID, codec_expander_exact(expander, span, place, bytes, &err));
        buf_deinit(&in);
        buf_deinit(&packed);
    }
    codec_expander_destroy(expander);
    assert_ok(codec_expander_create(CODEC_GZIP, sizeof place, &expander, &err));
    assert_status(STATUS_USAGE, codec_expander_exact(expander, span_of(place, 1), place, 1, &err));
    codec_expander_destroy(expander);
    buf_deinit(&out);
}

static void test_any_pieces(void **state)
{
    (void)state;
    struct error err;
    struct buf in = sample(20000);
    for (size_t c = 0; c < COUNT_OF(all_codecs); c++) {
        struct buf packed = compressed(all_codecs[c], &in);
        struct codec_expander *expander;
        assert_ok(codec_expander_create(all_codecs[c], in.length, &expander, &err));
        for (size_t piece = 1; piece < 4000; piece = piece * 3 + 1) {
            struct buf out = {0};
            codec_expander_reset(expander, in.length);
            for (size_t at = 0; at < packed.length; at += piece) {
                if (at)
                    assert_status(STATUS_INVALID, codec_expander_finish(expander, &err));
                assert_ok(codec_expander_feed(
                    expander, span_of(packed.data + at, size_min(piece, packed.length - at)), &out,
                    &err));
            }
            assert_ok(codec_expander_finish(expander, &err));
            assert_int_equal(out.length, in.length);
            assert_memory_equal(out.data, in.data, in.length);
            buf_deinit(&out);
        }
        codec_expander_destroy(expander);
        buf_deinit(&packed);
    }
    buf_deinit(&in);
}

static void test_many_members(void **state)
{
    (void)state;
    struct error err;
    for (size_t c = 0; c < COUNT_OF(all_codecs); c++) {
        struct buf in = sample(3000), out = {0}, twice = {0};
        struct buf packed = compressed(all_codecs[c], &in);
        bool may_repeat = all_codecs[c] != CODEC_ZLIB && all_codecs[c] != CODEC_DEFLATE;
        buf_put(&twice, packed.data, packed.length);
        buf_put(&twice, packed.data, packed.length);
        for (size_t piece = 1; piece < twice.length; piece = piece * 2 + 1) {
            struct codec_expander *expander;
            enum status status = STATUS_OK;
            buf_clear(&out);
            assert_ok(codec_expander_create(all_codecs[c], 6000, &expander, &err));
            for (size_t at = 0; at < twice.length && status == STATUS_OK; at += piece)
                status = codec_expander_feed(
                    expander, span_of(twice.data + at, size_min(piece, twice.length - at)), &out,
                    &err);
            assert_int_equal(status, may_repeat ? STATUS_OK : STATUS_INVALID);
            if (may_repeat) {
                assert_ok(codec_expander_finish(expander, &err));
                assert_int_equal(out.length, 6000);
                assert_memory_equal(out.data + 3000, in.data, 3000);
            }
            codec_expander_destroy(expander);
        }
        buf_truncate(&twice, packed.length);
        buf_put_text(&twice, "junk");
        buf_clear(&out);
        assert_status(STATUS_INVALID, codec_expand(all_codecs[c], span_of(twice.data, twice.length),
                                                   1 << 20, &out, &err));
        buf_deinit(&in);
        buf_deinit(&packed);
        buf_deinit(&twice);
        buf_deinit(&out);
    }
}

/* TA15: a small body that becomes a large one is stopped at the limit, with memory bounded by it.
 */
static void test_bomb_stops_at_the_limit(void **state)
{
    (void)state;
    struct error err;
    enum { BOMB_BYTES = 200 << 20, LIMIT_BYTES = 1 << 20 };
    struct buf zeros = {0};
    memset(buf_extend(&zeros, BOMB_BYTES), 0, BOMB_BYTES);
    for (size_t c = 0; c < COUNT_OF(all_codecs); c++) {
        struct buf packed = compressed(all_codecs[c], &zeros), out = {0};
        struct span span = span_of(packed.data, packed.length);
        buf_put_text(&out, "before");
        assert_status(STATUS_TOO_LARGE, codec_expand(all_codecs[c], span, LIMIT_BYTES, &out, &err));
        assert_int_equal(out.length, 6);
        assert_true(out.capacity < 4 * LIMIT_BYTES);
        buf_deinit(&packed);
        buf_deinit(&out);
    }
    buf_deinit(&zeros);
}

static void test_limit_is_exact(void **state)
{
    (void)state;
    struct error err;
    struct buf in = sample(70000);
    for (size_t c = 0; c < COUNT_OF(all_codecs); c++) {
        struct buf packed = compressed(all_codecs[c], &in), out = {0};
        struct span span = span_of(packed.data, packed.length);
        assert_status(STATUS_TOO_LARGE, codec_expand(all_codecs[c], span, 69999, &out, &err));
        assert_ok(codec_expand(all_codecs[c], span, 70000, &out, &err));
        buf_deinit(&packed);
        buf_deinit(&out);
    }
    struct buf out = {0};
    assert_status(STATUS_TOO_LARGE,
                  codec_expand(CODEC_NONE, span_of(in.data, in.length), 69999, &out, &err));
    assert_ok(codec_expand(CODEC_NONE, span_of(in.data, in.length), 70000, &out, &err));
    assert_ok(codec_expand(CODEC_NONE, span_of(NULL, 0), 0, &out, &err));
    assert_status(STATUS_INVALID, codec_expand(CODEC_GZIP, span_of(NULL, 0), 10, &out, &err));
    buf_deinit(&out);
    buf_deinit(&in);
}

static void test_damage(void **state)
{
    (void)state;
    struct error err;
    struct buf in = sample(2000);
    for (size_t c = 0; c < COUNT_OF(all_codecs); c++) {
        struct buf packed = compressed(all_codecs[c], &in), out = {0};
        for (size_t length = 0; length < packed.length; length++) {
            uint8_t *copy = mem_copy(packed.data, length);
            assert_status(STATUS_INVALID,
                          codec_expand(all_codecs[c], span_of(copy, length), 4000, &out, &err));
            mem_free(copy);
        }
        for (size_t at = 0; at < packed.length * 8; at++) {
            uint8_t *copy = mem_copy(packed.data, packed.length);
            copy[at / 8] ^= (uint8_t)(1u << (at % 8));
            enum status status =
                codec_expand(all_codecs[c], span_of(copy, packed.length), 4000, &out, &err);
            if (status == STATUS_OK)
                buf_clear(&out); /* a bit that carries nothing: a time, a name, a flag */
            else
                assert_true(status == STATUS_INVALID || status == STATUS_TOO_LARGE);
            mem_free(copy);
        }
        buf_deinit(&packed);
        buf_deinit(&out);
    }
    buf_deinit(&in);
}

/* A gzip member as others write it: with extra field, name, comment and header checksum. */
static void test_gzip_header_fields(void **state)
{
    (void)state;
    struct error err;
    struct buf out = {0}, member = {0};
    static const uint8_t header[] = {0x1f, 0x8b, 8, 0x1e, 0, 0, 0, 0, 0, 255};
    buf_put(&member, header, sizeof header);
    buf_put_le16(&member, 4);
    buf_put(&member, "extr", 4);
    buf_put(&member, "name", 5);
    buf_put(&member, "comment", 8);
    buf_put_le16(&member, (uint16_t)crc32_gzip(0, member.data, member.length));
    static const uint8_t stored[] = {1, 5, 0, 0xfa, 0xff, 'h', 'e', 'l', 'l', 'o'};
    buf_put(&member, stored, sizeof stored);
    buf_put_le32(&member, crc32_gzip(0, "hello", 5));
    buf_put_le32(&member, 5);
    for (size_t piece = 1; piece <= member.length; piece++) {
        struct codec_expander *expander;
        buf_clear(&out);
        assert_ok(codec_expander_create(CODEC_GZIP, 100, &expander, &err));
        for (size_t at = 0; at < member.length; at += piece)
            assert_ok(codec_expander_feed(
                expander, span_of(member.data + at, size_min(piece, member.length - at)), &out,
                &err));
        assert_ok(codec_expander_finish(expander, &err));
        assert_int_equal(out.length, 5);
        assert_memory_equal(out.data, "hello", 5);
        codec_expander_destroy(expander);
    }
    buf_deinit(&member);
    buf_deinit(&out);
}

static void test_names(void **state)
{
    (void)state;
    enum codec codec;
    assert_true(codec_from_name("GZIP", 4, &codec) && codec == CODEC_GZIP);
    assert_true(codec_from_name("deflate", 7, &codec) && codec == CODEC_ZLIB);
    assert_false(codec_from_name("gzi", 3, &codec));
    assert_false(codec_from_name("br", 2, &codec));
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    struct error err;
    struct buf in = sample(5000);
    for (size_t c = 0; c < COUNT_OF(all_codecs); c++) {
        struct buf packed = compressed(all_codecs[c], &in);
        for (int64_t n = 0; n < 6; n++) {
            struct buf out = {0};
            alloc_fail_after(n);
            enum status status =
                codec_expand(all_codecs[c], span_of(packed.data, packed.length), 5000, &out, &err);
            alloc_fail_after(-1);
            assert_true(status == STATUS_OK || (status == STATUS_NO_MEMORY && out.length == 0));
            buf_deinit(&out);
        }
        buf_deinit(&packed);
    }
    buf_deinit(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_raw_blocks),
        cmocka_unit_test(test_front_of_a_block),
        cmocka_unit_test(test_blocks_by_one_expander),
        cmocka_unit_test(test_any_pieces),
        cmocka_unit_test(test_many_members),
        cmocka_unit_test(test_bomb_stops_at_the_limit),
        cmocka_unit_test(test_limit_is_exact),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_gzip_header_fields),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
