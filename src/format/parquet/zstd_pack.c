/* SPDX-License-Identifier: Apache-2.0
 *
 * Hexadecimal digits as Huffman codes of 4 bits, as a zstd decoder reads them: from the end.
 */
#include "format/parquet/zstd_frame_internal.h"

enum { ID_LENGTH = 4 };

bool zstd_pack_ids_scalar(uint8_t *out, const uint8_t *ids, size_t count, size_t bytes)
{
    unsigned faults = 0;
    out += count * bytes / 2;
    for (size_t i = 0; i < count; i++, ids += bytes + ID_LENGTH) {
        for (size_t j = 0; j < bytes; j += 2) {
            unsigned packed = 0;
            for (size_t k = j; k < j + 2; k++) {
                unsigned digit = ids[k] - (unsigned)'0', letter = ids[k] - (unsigned)'a';
                faults |= digit > 9 && letter > 5;
                packed = packed << 4 | ((digit <= 9 ? digit : letter + 10) & 15);
            }
            *--out = (uint8_t)packed;
        }
    }
    return !faults;
}

#if defined __x86_64__
#include <tmmintrin.h>

/* Sixteen digits to eight bytes. */
__attribute__((target("ssse3"))) static inline __m128i pack_16(const uint8_t *text, __m128i *valid)
{
    const __m128i backwards =
        _mm_setr_epi8(14, 12, 10, 8, 6, 4, 2, 0, -1, -1, -1, -1, -1, -1, -1, -1);
    __m128i chars = _mm_loadu_si128((const __m128i *)(const void *)text);
    __m128i digit = _mm_sub_epi8(chars, _mm_set1_epi8('0'));
    __m128i letter = _mm_sub_epi8(chars, _mm_set1_epi8('a'));
    __m128i is_digit = _mm_cmpeq_epi8(_mm_min_epu8(digit, _mm_set1_epi8(9)), digit);
    __m128i is_letter = _mm_cmpeq_epi8(_mm_min_epu8(letter, _mm_set1_epi8(5)), letter);
    letter = _mm_andnot_si128(is_digit, _mm_add_epi8(letter, _mm_set1_epi8(10)));
    __m128i nibbles = _mm_or_si128(_mm_and_si128(is_digit, digit), letter);
    *valid = _mm_and_si128(*valid, _mm_or_si128(is_digit, is_letter));
    /* The even ones times 16 and the odd ones. */
    return _mm_shuffle_epi8(_mm_maddubs_epi16(nibbles, _mm_set1_epi16(1 << 8 | 16)), backwards);
}

__attribute__((target("ssse3"))) static bool pack_ids_ssse3(uint8_t *out, const uint8_t *ids,
                                                            size_t count, size_t bytes)
{
    __m128i valid = _mm_set1_epi8(-1);
    out += count * bytes / 2;
    for (size_t i = 0; i < count; i++, ids += bytes + ID_LENGTH) {
        for (size_t j = 0; j < bytes; j += 16) {
            out -= 8;
            _mm_storel_epi64((__m128i *)(void *)out, pack_16(ids + j, &valid));
        }
    }
    return _mm_movemask_epi8(valid) == 0xffff;
}

bool zstd_pack_ids(uint8_t *out, const uint8_t *ids, size_t count, size_t bytes)
{
    return __builtin_cpu_supports("ssse3") ? pack_ids_ssse3(out, ids, count, bytes)
                                           : zstd_pack_ids_scalar(out, ids, count, bytes);
}
#else
bool zstd_pack_ids(uint8_t *out, const uint8_t *ids, size_t count, size_t bytes)
{
    return zstd_pack_ids_scalar(out, ids, count, bytes);
}
#endif
