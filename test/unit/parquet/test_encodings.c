/* SPDX-License-Identifier: Apache-2.0
 *
 * Encodings against their decoders, at the edges of blocks and numbers; Bloom filters.
 */
#include "../unit.h"
#include "format/parquet/bloom_internal.h"
#include "format/parquet/parquet_internal.h"
#include "format/parquet/reader_internal.h"

enum { COUNT_MAX = 400 };

static const size_t counts[] = {0, 1, 2, 31, 32, 33, 127, 128, 129, 130, 161, 257, 400};

/* Numbers of all sizes, with the greatest and least among them. */
static uint64_t some_number(struct random *random, unsigned kind)
{
    uint64_t any = random_next(random);
    switch (kind) {
    case 0:
        return any;
    case 1:
        return any & 1 ? UINT64_C(0x7fffffffffffffff) : UINT64_C(0x8000000000000000);
    case 2:
        return any & 1 ? 0x7fffffff : 0xffffffff80000000;
    case 3:
        return 1000000 + any % 100;
    default:
        return 42;
    }
}

static void test_delta_integers(void **state)
{
    (void)state;
    static uint8_t plain[COUNT_MAX * 8];
    static int64_t got64[COUNT_MAX];
    static int32_t got32[COUNT_MAX];
    struct random random;
    struct buf out = {0};
    random_init(&random, 1);
    for (unsigned kind = 0; kind < 5; kind++) {
        for (size_t c = 0; c < COUNT_OF(counts); c++) {
            for (uint32_t width = 4; width <= 8; width += 4) {
                size_t count = counts[c];
                for (size_t i = 0; i < count; i++) {
                    uint64_t number = some_number(&random, kind);
                    memcpy(plain + i * width, &number, width);
                }
                buf_clear(&out);
                encode_values(&out, ENCODING_DELTA_BINARY_PACKED,
                              width == 4 ? PARQUET_INT32 : PARQUET_INT64, width, count,
                              span_of(plain, count * width));
                struct cursor in = cursor_of(out.data, out.length);
                if (width == 4) {
                    assert_true(decode_delta_i32(&in, got32, count));
                    assert_memory_equal(got32, plain, count * width);
                } else {
                    assert_true(decode_delta_i64(&in, got64, count));
                    assert_memory_equal(got64, plain, count * width);
                }
                assert_int_equal(cursor_left(&in), 0);
            }
        }
    }
    buf_deinit(&out);
}

/* The vector of the format's own description of the encoding. */
static void test_delta_bytes_of_the_format(void **state)
{
    (void)state;
    static const int32_t values[] = {7, 5, 3, 1, 2, 3, 4, 5};
    static const uint8_t want[] = {0x80, 0x01, 0x04, 0x08, 0x0e, 0x03, 0x02, 0, 0,
                                   0,    0xc0, 0x3f, 0,    0,    0,    0,    0, 0};
    struct buf out = {0};
    encode_values(&out, ENCODING_DELTA_BINARY_PACKED, PARQUET_INT32, 4, COUNT_OF(values),
                  span_of((const uint8_t *)values, sizeof values));
    assert_int_equal(out.length, sizeof want);
    assert_memory_equal(out.data, want, sizeof want);
    buf_deinit(&out);
}

static void test_stream_split(void **state)
{
    (void)state;
    uint8_t plain[21 * 16], got[21 * 16];
    struct random random;
    struct buf out = {0};
    random_init(&random, 2);
    for (size_t i = 0; i < sizeof plain; i++)
        plain[i] = (uint8_t)random_next(&random);
    for (uint32_t width = 1; width <= 16; width++) {
        buf_clear(&out);
        encode_values(&out, ENCODING_BYTE_STREAM_SPLIT, PARQUET_FIXED, width, 21,
                      span_of(plain, 21 * (size_t)width));
        struct cursor in = cursor_of(out.data, out.length);
        assert_true(decode_stream_split(&in, width, got, 21));
        assert_memory_equal(got, plain, 21 * (size_t)width);
    }
    buf_deinit(&out);
}

/* ---- dictionaries ---- */

/* Values of few letters and lengths, many of which differ in one byte anywhere; each has the index
 * of the first like it. */
static void test_dictionary_tells_values_apart(void **state)
{
    (void)state;
    enum { VALUES = 3000, BYTES_MAX = 53 };
    static uint8_t bytes[VALUES][BYTES_MAX];
    static struct span values[VALUES];
    static uint32_t indices[VALUES];
    struct random random;
    struct dictionary dictionary;
    random_init(&random, 8);
    dictionary_init(&dictionary, false);
    for (int round = 0; round < 6; round++) {
        size_t length = 0, done = 0, seen = 0;
        for (size_t i = 0; i < VALUES; i++) {
            length = random_next(&random) % 3 ? length : random_next(&random) % (BYTES_MAX + 1);
            memset(bytes[i], i % 5 ? 0 : 'a', BYTES_MAX);
            for (unsigned changes = i % 7 ? 1 : 0; length && changes; changes--)
                bytes[i][random_next(&random) % length] ^= (uint8_t)(random_next(&random) % 3);
            values[i] = span_of(bytes[i], length);
        }
        while (done < VALUES) {
            size_t step = size_min(random_next(&random) % 400, VALUES - done);
            assert_true(dictionary_put(&dictionary, values + done, step, indices + done));
            done += step;
        }
        for (size_t i = 0; i < VALUES; i++) {
            assert_in_range(indices[i], 0, seen);
            seen += indices[i] == seen;
            assert_true(span_equal(dictionary_get(&dictionary, indices[i]), values[i]));
        }
        assert_int_equal(seen, dictionary.count);
        for (size_t i = 0; i < seen; i++)
            for (size_t j = 0; j < i; j++)
                assert_false(span_equal(dictionary_get(&dictionary, (uint32_t)i),
                                        dictionary_get(&dictionary, (uint32_t)j)));
        dictionary_clear(&dictionary);
    }
    dictionary_deinit(&dictionary);
}

/* Values that all have the hash 0, since one factor of its product is. */
static void test_dictionary_survives_equal_hashes(void **state)
{
    (void)state;
    enum { VALUES = 12 };
    const uint64_t seed = UINT64_C(0x7878787878787878), k0 = UINT64_C(0xa0761d6478bd642f);
    uint8_t bytes[VALUES][24];
    struct span values[VALUES];
    uint32_t indices[VALUES];
    struct dictionary dictionary;
    dictionary_init(&dictionary, false);
    dictionary.seed = seed;
    for (size_t i = 0; i < VALUES; i++) {
        size_t length = i < 4 ? 12 + i : i < 8 ? 16 : 24; /* length, end and middle differ */
        memset(bytes[i], 'x', sizeof bytes[i]);
        put_le64(bytes[i], seed);
        if (i < 8)
            bytes[i][length - 1] ^= (uint8_t)(i / 4 * i);
        else
            put_le64(bytes[i] + 16, seed ^ (k0 + length));
        bytes[i][15] ^= (uint8_t)(i >= 8 ? i : 0);
        values[i] = span_of(bytes[i], length);
    }
    for (int round = 0; round < 2; round++) {
        assert_true(dictionary_put(&dictionary, values, VALUES, indices));
        for (uint32_t i = 0; i < VALUES; i++)
            assert_int_equal(indices[i], i);
    }
    for (size_t i = 0; i < 16; i++) /* all in one row of slots */
        assert_int_equal(dictionary.slots[i] != 0, i < VALUES);
    dictionary_deinit(&dictionary);
}

/* ---- Bloom filters ---- */

static uint64_t hash_of(uint64_t number)
{
    return hash_xxh64(&number, sizeof number);
}

static void test_bloom_hash(void **state)
{
    (void)state;
    assert_true(hash_xxh64("", 0) == UINT64_C(0xef46db3751d8e999));
}

/* What was added is found at every size; what was not is found about once in a hundred times, also
 * after folding. */
static void test_bloom_finds(void **state)
{
    (void)state;
    static const uint64_t distinct[] = {1, 10, 1000, 50000};
    for (size_t d = 0; d < COUNT_OF(distinct); d++) {
        for (uint64_t room = distinct[d]; room <= distinct[d] * 64; room *= 64) {
            size_t bytes = bloom_bytes(room);
            uint8_t *filter = mem_alloc_zero(bytes, 1);
            uint64_t wrong = 0;
            assert_true((bytes & (bytes - 1)) == 0 && bytes >= BLOOM_BLOCK_BYTES);
            for (uint64_t i = 0; i < distinct[d]; i++)
                bloom_add(filter, bytes, hash_of(i));
            size_t folded = bloom_fold(filter, bytes);
            assert_true(folded <= bytes && folded <= bloom_bytes(distinct[d]) * 2);
            for (uint64_t i = 0; i < distinct[d]; i++)
                assert_true(bloom_has(filter, folded, hash_of(i)));
            for (uint64_t i = 0; i < 20000; i++)
                wrong += bloom_has(filter, folded, hash_of(i + 1000000));
            assert_in_range(wrong, 0, 20000 * 2 / 100);
            mem_free(filter);
        }
    }
}

/* Each width and many counts against bits that were looked at one by one, in memory that ends with
 * them; the scalar twins too, which other processors have. */
static void test_unpacking(void **state)
{
    (void)state;
    enum { COUNT = 100 };
    struct random random;
    uint32_t wanted[COUNT], got[COUNT];
    uint8_t small[COUNT];
    random_init(&random, 9);
    for (unsigned width = 1; width <= 32; width++) {
        for (size_t count = 0; count <= COUNT; count++) {
            size_t bytes = (count * width + 7) / 8 + random_below(&random, 4);
            uint8_t *bits = mem_alloc(bytes);
            uint32_t most = 0;
            assert_non_null(bits);
            for (size_t i = 0; i < bytes; i++)
                bits[i] = (uint8_t)random_next(&random);
            for (size_t i = 0; i < count; i++) {
                wanted[i] = 0;
                for (size_t b = 0, at = i * width; b < width; b++, at++)
                    wanted[i] |= (uint32_t)(bits[at / 8] >> at % 8 & 1) << b;
                most = wanted[i] > most ? wanted[i] : most;
            }
            assert_int_equal(unpack_u32(bits, bytes, width, got, count), most);
            assert_memory_equal(got, wanted, count * sizeof *got);
            assert_int_equal(unpack_u32_scalar(bits, bytes, width, got, count), most);
            assert_memory_equal(got, wanted, count * sizeof *got);
            for (int twin = 0; width == 1 && twin < 2; twin++) {
                (twin ? unpack_bits_scalar : unpack_bits)(bits, small, count);
                for (size_t i = 0; i < count; i++)
                    assert_int_equal(small[i], wanted[i]);
            }
            mem_free(bits);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_delta_integers),
        cmocka_unit_test(test_delta_bytes_of_the_format),
        cmocka_unit_test(test_stream_split),
        cmocka_unit_test(test_bloom_hash),
        cmocka_unit_test(test_bloom_finds),
        cmocka_unit_test(test_dictionary_tells_values_apart),
        cmocka_unit_test(test_dictionary_survives_equal_hashes),
        cmocka_unit_test(test_unpacking),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
