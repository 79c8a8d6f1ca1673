/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames of ours through both of libzstd's decoders, which must give back every byte.
 */
#include "../unit.h"
#include "format/codec/codec.h"
#include "format/parquet/zstd_frame_internal.h"

enum { BODY_BYTES = 3 << 20 };

static uint8_t body[BODY_BYTES];

/* Whether a frame was made of the body; it is one that expands to it. */
static bool round_trip(enum zstd_shape shape, size_t values_at, size_t bytes, size_t *out_bytes)
{
    struct error err;
    struct buf frame = {0}, expanded = {0};
    static uint8_t place[BODY_BYTES];
    buf_put(&frame, "before", 6);
    bool is_made = zstd_frame_put(&frame, shape, span_of(body, bytes), values_at);
    if (!is_made) {
        assert_int_equal(frame.length, 6);
    } else {
        struct span in = span_of(frame.data + 6, frame.length - 6);
        assert_int_equal(codec_expand(CODEC_ZSTD, in, BODY_BYTES, &expanded, &err), STATUS_OK);
        assert_int_equal(expanded.length, bytes);
        assert_memory_equal(expanded.data, body, bytes);
        assert_int_equal(codec_expand_exact(CODEC_ZSTD, in, place, bytes, &err), STATUS_OK);
        assert_memory_equal(place, body, bytes);
    }
    if (out_bytes)
        *out_bytes = frame.length - 6;
    buf_deinit(&frame);
    buf_deinit(&expanded);
    return is_made;
}

static size_t put_prefix(struct random *random, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        body[i] = (uint8_t)random_next(random);
    return bytes;
}

/* ---- words ---- */

static const size_t word_counts[] = {0,   1,   2,    16,   17,    63,    64,    65,
                                     100, 333, 4097, 5000, 16384, 16385, 20000, 131072};
static const size_t prefixes[] = {0, 1, 6, 2506, (128 << 10) + 1};

static uint64_t some_word(struct random *random, unsigned kind, size_t i)
{
    uint64_t any = random_next(random);
    switch (kind) {
    case 0: /* as random as can be: no frame */
        return any;
    case 1: /* few bytes, one value in 50 of the extremes */
        return any % 50 == 0 ? (any & 64 ? UINT64_C(1) << 63 : UINT64_MAX >> 1) : any & 0xffff;
    case 2: /* times */
        return UINT64_C(1767225600000000000) + i * 86400000 + any % 2000000000;
    case 3: /* all the same */
        return UINT64_C(0xfedcba9876543210);
    case 4: /* runs of values with other high bytes */
        return i / 37 << 40 | (any & 0xff);
    case 5: /* a value and its negative in turn */
        return any % 30 ? any & 0xff : ~(any & 0xff);
    case 6: /* codes from here on: bytes that differ in their kind */
        return any % 10000;
    case 7: /* few symbols */
        return any % 60;
    case 8: /* each half as often as the one before: longer codes than there may be */
        return (uint64_t)__builtin_ctzll(any | UINT64_C(1) << 40);
    case 9: /* the same over all symbols */
        return (uint64_t)(255 - __builtin_ctzll(any | UINT64_C(1) << 40)) << 8 | (any >> 40 & 0xff);
    default: /* exceptions one behind the other */
        return i % 300 < 9 ? any : any & 0xffffff;
    }
}

static void test_words(void **state)
{
    (void)state;
    struct random random;
    static const size_t percents[] = {188, 80, 35, 156}; /* of a byte a value */
    size_t made = 0, frame_bytes;
    random_init(&random, 3);
    for (unsigned kind = 0; kind <= 10; kind++) {
        for (size_t c = 0; c < COUNT_OF(word_counts); c++) {
            for (size_t p = 0; p < COUNT_OF(prefixes); p++) {
                size_t count = word_counts[c], at = put_prefix(&random, prefixes[p]);
                for (size_t i = 0; i < count; i++)
                    put_le64(body + at + i * 8, some_word(&random, kind, i));
                bool is_made = round_trip(ZSTD_WORDS, at, at + count * 8, &frame_bytes);
                assert_int_equal(is_made, count >= 64 && kind != 0);
                if (is_made && (kind == 1 || kind == 3) && count > 1000)
                    assert_in_range(frame_bytes, 1, at + count * (kind == 1 ? 4 : 2));
                if (is_made && kind == 2 && count >= 4096) /* 4 bytes each, now and then 5 */
                    assert_in_range(frame_bytes, 1, at + count * 46 / 10);
                if (is_made && kind >= 6 && kind <= 9 && count >= 4096)
                    assert_in_range(frame_bytes, 1, at + count * percents[kind - 6] / 100);
                made += is_made;
            }
        }
    }
    assert_int_equal(made, 10 * 10 * COUNT_OF(prefixes));
}

/* ---- ids ---- */

static const size_t id_counts[] = {0,    1,    2,    3,    15,   16,    63,   64,   65,
                                   66,   67,   68,   100,  101,  3640,  3656, 3657, 6552,
                                   6568, 6569, 6570, 6571, 6572, 20000, 40001};

static size_t put_ids(struct random *random, size_t at, size_t count, size_t bytes)
{
    for (size_t i = 0; i < count; i++) {
        put_le32(body + at, (uint32_t)bytes);
        at += 4;
        for (size_t j = 0; j < bytes; j++)
            body[at++] = (uint8_t) "0123456789abcdef"[random_next(random) % 16];
    }
    return at;
}

static void test_ids(void **state)
{
    (void)state;
    struct random random;
    size_t frame_bytes;
    random_init(&random, 4);
    for (size_t c = 0; c < COUNT_OF(id_counts); c++) {
        for (size_t p = 0; p < COUNT_OF(prefixes); p++) {
            for (size_t bytes = 16; bytes <= 32; bytes += 16) {
                size_t at = put_prefix(&random, prefixes[p]), count = id_counts[c];
                size_t end = put_ids(&random, at, count, bytes);
                assert_int_equal(round_trip(ZSTD_IDS, at, end, &frame_bytes), count >= 64);
                if (count >= 3640)
                    assert_in_range(frame_bytes, 1, at + count * bytes / 2 + count / 2 + 1000);
            }
        }
    }
}

/* One thing that is not as it should be: no frame. */
static void test_other_shapes(void **state)
{
    (void)state;
    static const char others[] = "/:`gAFG@ \xb0\xe1\xff";
    struct random random;
    random_init(&random, 5);
    for (size_t bytes = 16; bytes <= 32; bytes += 16) {
        size_t end = put_ids(&random, 0, 1000, bytes), unit = bytes + 4;
        assert_true(round_trip(ZSTD_IDS, 0, end, NULL));
        for (size_t i = 0; i < sizeof others; i++) {     /* the NUL too */
            size_t id = 16 + random_next(&random) % 984; /* those before have raw literals */
            size_t at = id * unit + 4 + random_next(&random) % bytes;
            uint8_t kept = body[at];
            body[at] = (uint8_t)others[i];
            assert_false(round_trip(ZSTD_IDS, 0, end, NULL));
            body[at] = kept;
        }
        body[999 * unit] ^= 1; /* a length */
        assert_false(round_trip(ZSTD_IDS, 0, end, NULL));
        body[999 * unit] ^= 1;
        assert_false(round_trip(ZSTD_IDS, 0, end - 1, NULL));
        assert_true(round_trip(ZSTD_IDS, 0, end - unit, NULL));
        assert_false(round_trip(ZSTD_ANY, 0, end, NULL));
    }
    size_t end = put_ids(&random, 0, 1000, 16); /* lengths that change on the way */
    end = put_ids(&random, end, 1000, 32);
    assert_false(round_trip(ZSTD_IDS, 0, end, NULL));
    end = put_ids(&random, 0, 1000, 15);
    assert_false(round_trip(ZSTD_IDS, 0, end, NULL));
}

static void test_packing_is_one(void **state)
{
    (void)state;
    enum { IDS = 100 };
    uint8_t one[IDS * 16], other[IDS * 16];
    struct random random;
    random_init(&random, 6);
    for (int round = 0; round < 2000; round++) {
        size_t bytes = round & 1 ? 16 : 32, count = random_next(&random) % (IDS + 1);
        put_ids(&random, 0, count, bytes);
        if (count && round % 3 == 0)
            body[4 + random_next(&random) % (count * (bytes + 4) - 4)] =
                (uint8_t)random_next(&random);
        bool is_good = zstd_pack_ids(one, body + 4, count, bytes);
        assert_int_equal(zstd_pack_ids_scalar(other, body + 4, count, bytes), is_good);
        if (is_good)
            assert_memory_equal(one, other, count * bytes / 2);
    }
}

/* Bodies of all kinds, with damage: what becomes a frame expands to it. */
static void test_random(void **state)
{
    (void)state;
    struct random random;
    size_t made = 0;
    random_init(&random, 7);
    for (int round = 0; round < 1500; round++) {
        size_t at = put_prefix(&random, random_next(&random) % 40);
        size_t end = at, count = random_next(&random) % 3000;
        unsigned kind = (unsigned)(random_next(&random) % 14);
        bool is_ids = kind > 10;
        if (is_ids)
            end = put_ids(&random, at, count, kind == 13 ? 32 : 16);
        for (size_t i = 0; i < count && !is_ids; i++, end += 8)
            put_le64(body + end, some_word(&random, kind, i));
        for (unsigned damage = random_next(&random) % 4 == 0; damage && end > at; damage--)
            body[at + random_next(&random) % (end - at)] = (uint8_t)random_next(&random);
        made += round_trip(is_ids ? ZSTD_IDS : ZSTD_WORDS, at, end, NULL);
    }
    assert_in_range(made, 700, 1500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_other_shapes), cmocka_unit_test(test_packing_is_one),
        cmocka_unit_test(test_random),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
