/* SPDX-License-Identifier: Apache-2.0
 *
 * Bit-packed values, least significant bit first: eight at a time where the processor has AVX2,
 * else each from the eight bytes it begins in. Both give the same (test_encodings). Nothing is read
 * behind `bytes`, which hold `count` values at least.
 */
#include "format/parquet/reader_internal.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* ---- one at a time ---- */

uint32_t unpack_u32_scalar(const uint8_t *bits, size_t bytes, unsigned width, uint32_t *out,
                           size_t count)
{
    const uint64_t mask = (UINT64_C(1) << width) - 1;
    size_t fast = count_fast(bytes, width, count), at = 0;
    uint32_t greatest = 0;
    for (size_t i = 0; i < fast; i++, at += width) {
        out[i] = (uint32_t)(get_le64(bits + (at >> 3)) >> (at & 7) & mask);
        greatest = out[i] > greatest ? out[i] : greatest;
    }
    for (size_t i = fast; i < count; i++, at += width) {
        out[i] = (uint32_t)(load_up_to_8(bits + (at >> 3), bytes - (at >> 3)) >> (at & 7) & mask);
        greatest = out[i] > greatest ? out[i] : greatest;
    }
    return greatest;
}

/* Eight bits become eight bytes. */
static uint64_t spread_bits(uint8_t bits)
{
    uint64_t word = bits * UINT64_C(0x0101010101010101) & UINT64_C(0x8040201008040201);
    return (word + UINT64_C(0x7f7f7f7f7f7f7f7f)) >> 7 & UINT64_C(0x0101010101010101);
}

void unpack_bits_scalar(const uint8_t *bits, uint8_t *out, size_t count)
{
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        put_le64(out + i, spread_bits(bits[i >> 3]));
    for (; i < count; i++)
        out[i] = bits[i >> 3] >> (i & 7) & 1;
}

/* ---- many at a time ---- */

#if defined(__x86_64__)

enum { WIDTH_MAX = 25 }; /* with seven bits before it, the widest value within four bytes */

/* Which four bytes each of four values begins in, of which the first begins at bit `first`. */
static void fill_places(unsigned first, unsigned width, uint8_t places[16], uint32_t shifts[4])
{
    for (unsigned i = 0; i < 4; i++) {
        unsigned at = first + i * width;
        for (unsigned j = 0; j < 4; j++)
            places[4 * i + j] = (uint8_t)((at >> 3) + j);
        shifts[i] = at & 7;
    }
}

/* Eight values take `width` bytes; four of them are in each half of the register. Returns how many
 * were done. */
__attribute__((target("avx2"))) static size_t unpack_u32_avx2(const uint8_t *bits, size_t bytes,
                                                              unsigned width, uint32_t *out,
                                                              size_t count, uint32_t *out_greatest)
{
    uint8_t places[32];
    uint32_t shifts[8], greatest[8];
    const size_t half = width / 2, needed = half + 16;
    size_t i = 0;
    fill_places(0, width, places, shifts);
    fill_places(4 * width % 8, width, places + 16, shifts + 4);
    const __m256i place = _mm256_loadu_si256((const __m256i *)(const void *)places);
    const __m256i shift = _mm256_loadu_si256((const __m256i *)(const void *)shifts);
    const __m256i mask = _mm256_set1_epi32((int)((UINT32_C(1) << width) - 1));
    __m256i most = _mm256_setzero_si256();
    for (; count - i >= 8 && bytes >= needed; i += 8, bits += width, bytes -= width) {
        const __m128i low = _mm_loadu_si128((const __m128i *)(const void *)bits);
        const __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(bits + half));
        __m256i values = _mm256_shuffle_epi8(_mm256_set_m128i(high, low), place);
        values = _mm256_and_si256(_mm256_srlv_epi32(values, shift), mask);
        most = _mm256_max_epu32(most, values);
        _mm256_storeu_si256((__m256i *)(void *)(out + i), values);
    }
    _mm256_storeu_si256((__m256i *)(void *)greatest, most);
    *out_greatest = 0;
    for (int j = 0; j < 8; j++)
        *out_greatest = greatest[j] > *out_greatest ? greatest[j] : *out_greatest;
    return i;
}

/* A byte for each of 32 bits: the one it lies in, of which the others are masked out. */
__attribute__((target("avx2"))) static size_t unpack_bits_avx2(const uint8_t *bits, uint8_t *out,
                                                               size_t count)
{
    const __m256i place = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2,
                                           2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
    const __m256i bit = _mm256_set1_epi64x((long long)UINT64_C(0x8040201008040201));
    const __m256i one = _mm256_set1_epi8(1);
    size_t i = 0;
    for (; count - i >= 32; i += 32) {
        __m256i word = _mm256_set1_epi32((int)get_le32(bits + i / 8));
        word = _mm256_and_si256(_mm256_shuffle_epi8(word, place), bit);
        word = _mm256_and_si256(_mm256_cmpeq_epi8(word, bit), one);
        _mm256_storeu_si256((__m256i *)(void *)(out + i), word);
    }
    return i;
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}

#else

enum { WIDTH_MAX = 0 };

static size_t unpack_u32_avx2(const uint8_t *bits, size_t bytes, unsigned width, uint32_t *out,
                              size_t count, uint32_t *out_greatest)
{
    (void)bits, (void)bytes, (void)width, (void)out, (void)count;
    *out_greatest = 0;
    return 0;
}

static size_t unpack_bits_avx2(const uint8_t *bits, uint8_t *out, size_t count)
{
    (void)bits, (void)out, (void)count;
    return 0;
}

static bool has_avx2(void)
{
    return false;
}

#endif

/* ---- either ---- */

uint32_t unpack_u32(const uint8_t *bits, size_t bytes, unsigned width, uint32_t *out, size_t count)
{
    uint32_t greatest = 0, others;
    size_t done = 0;
    if (width <= WIDTH_MAX && count >= 8 && has_avx2())
        done = unpack_u32_avx2(bits, bytes, width, out, count, &greatest);
    others = unpack_u32_scalar(bits + done / 8 * width, bytes - done / 8 * width, width, out + done,
                               count - done);
    return others > greatest ? others : greatest;
}

void unpack_bits(const uint8_t *bits, uint8_t *out, size_t count)
{
    size_t done = count >= 32 && has_avx2() ? unpack_bits_avx2(bits, out, count) : 0;
    unpack_bits_scalar(bits + done / 8, out + done, count - done);
}
