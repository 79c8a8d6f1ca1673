/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes: KeyValue messages -> one slot of a map, and its types.
 *
 * Exporters send the same keys in the same order again and again, with short values. Such a pair is
 * usual: the key that stood at this place of the slot before is compared, not looked up, and the
 * value is copied in wide steps past its end, into room that was made for the whole slot. What is
 * unusual about a pair costs that pair alone a detour.
 */
#include "flow/ingest/otlp_decode.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    FEW_PAIRS = 64,
    VALUE_BYTES_MAX = 127, /* of a usual one, as text */
    COPY_STEP = 32
};

/* ---- usual pairs ---- */

/* Copies text of at most VALUE_BYTES_MAX bytes; up to COPY_STEP bytes more are read and written.
 * False: it is not ASCII. */
static inline bool copy_ascii(uint8_t *to, const uint8_t *from, size_t bytes)
{
#ifdef __SSE2__
    uint32_t high = 0;
    for (size_t at = 0;;) {
        __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(from + at));
        __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(from + at + 16));
        _mm_storeu_si128((__m128i *)(void *)(to + at), a);
        _mm_storeu_si128((__m128i *)(void *)(to + at + 16), b);
        uint32_t bits = (uint32_t)_mm_movemask_epi8(a) | (uint32_t)_mm_movemask_epi8(b) << 16;
        if (bytes - at <= COPY_STEP)
            return !(high | (bits & (uint32_t)((UINT64_C(1) << (bytes - at)) - 1)));
        high |= bits;
        at += COPY_STEP;
    }
#else
    copy_short(to, from, bytes);
    uint8_t high = 0;
    for (size_t i = 0; i < bytes; i++)
        high |= from[i];
    return !(high & 0x80);
#endif
}

/* Where the pairs of one slot go. Nothing counts before usual_end. */
struct usual {
    struct arrow_builder *keys, *values;
    struct buf *types;
    const int32_t *expected, *expected_end; /* key indices of the slot before, from this place on */
    const uint8_t *key_bytes;
    const int32_t *key_offsets;
    uint8_t *value, *value_start, *type;
    int32_t *index, *offset;
    int64_t count;
};

/* Was there a key at this place of the slot before? Not if anything of it is lost. */
static bool has_expected_key(const struct arrow_builder *map, size_t place)
{
    const int32_t *slots = (const int32_t *)(const void *)map->offsets.data;
    return map->length > 0 && !map->offsets.failed && !map->children[0].values.failed &&
           slots[map->length - 1] + (int64_t)place < slots[map->length];
}

/* Room for `count` usual pairs; false if there is none. */
static bool usual_begin(struct usual *usual, struct otlp_decoder *decoder,
                        struct arrow_builder *map, size_t place, size_t count)
{
    struct arrow_builder *keys = &map->children[0], *values = &map->children[1];
    if (values->values.length > INT32_MAX / 2 || !buf_reserve(&decoder->types, count) ||
        !buf_reserve(&keys->values, count * sizeof(int32_t)) ||
        !buf_reserve(&values->offsets, count * sizeof(int32_t)) ||
        !buf_reserve(&values->values, count * VALUE_BYTES_MAX + COPY_STEP))
        return false;
    const int32_t *slots = (const int32_t *)(const void *)map->offsets.data;
    int32_t *indices = (int32_t *)(void *)keys->values.data;
    *usual = (struct usual){
        .keys = keys,
        .values = values,
        .types = &decoder->types,
        .key_bytes = keys->dictionary->values.data,
        .key_offsets = (const int32_t *)(const void *)keys->dictionary->offsets.data,
        .value = values->values.data + values->values.length,
        .value_start = values->values.data,
        .type = decoder->types.data + decoder->types.length,
        .index = indices + keys->length,
        .offset = (int32_t *)(void *)(values->offsets.data + values->offsets.length),
    };
    if (has_expected_key(map, place)) {
        usual->expected = indices + slots[map->length - 1] + place;
        usual->expected_end = indices + slots[map->length];
    }
    return true;
}

static void usual_end(struct usual *usual)
{
    struct arrow_builder *keys = usual->keys, *values = usual->values;
    size_t count = (size_t)usual->count;
    keys->values.length += count * sizeof(int32_t);
    arrow_push_valids(keys, usual->count);
    values->values.length = (size_t)(usual->value - usual->value_start);
    values->offsets.length += count * sizeof(int32_t);
    arrow_push_valids(values, usual->count);
    usual->types->length += count;
}

/* The value of a usual pair as text; returns its length, or SIZE_MAX if it is not a usual one. */
static inline size_t put_usual_value(uint8_t *to, const uint8_t *any, size_t length, uint8_t *type)
{
    uint64_t number;
    struct wire wire = {.at = any + 1, .end = any + length};
    if (__builtin_expect(length < 2, 0))
        return SIZE_MAX;
    switch (any[0]) {
    case ANY_STRING:
        *type = 's';
        if (any[1] != length - 2 ||
            (!copy_ascii(to, any + 2, length - 2) && !utf8_is_valid(any + 2, length - 2)))
            return SIZE_MAX;
        return length - 2;
    case ANY_INT:
        *type = 'i';
        return wire_varint(&wire, &number) && wire.at == wire.end
                   ? i64_to_text((char *)to, (int64_t)number)
                   : SIZE_MAX;
    case ANY_DOUBLE:
        *type = 'd';
        return length == 9 && !otlp_is_odd_nan(get_le64(any + 1))
                   ? double_to_text((char *)to, wire_double(get_le64(any + 1)))
                   : SIZE_MAX;
    case ANY_BOOL:
        *type = 'b';
        memcpy(to, any[1] ? "true\0\0\0" : "false\0\0", 8);
        return length == 2 && any[1] <= 1 ? 5 - (size_t)any[1] : SIZE_MAX;
    case ANY_BYTES:
        *type = 'y';
        return any[1] == length - 2 && length - 2 <= VALUE_BYTES_MAX / 4 * 3
                   ? base64_encode((char *)to, any + 2, length - 2)
                   : SIZE_MAX;
    default:
        return SIZE_MAX;
    }
}

/* False, and nothing done: not a usual pair. */
static inline bool put_usual_pair(struct usual *usual, struct span pair)
{
    const uint8_t *bytes = pair.data;
    if (usual->expected == usual->expected_end || pair.length < 4 ||
        bytes[0] != WIRE_KEY(1, WIRE_LEN))
        return false;
    size_t key_length = bytes[1], value_at = key_length + 4;
    if (key_length >= 128 || value_at > pair.length ||
        bytes[key_length + 2] != WIRE_KEY(2, WIRE_LEN) || bytes[key_length + 3] >= 128 ||
        value_at + bytes[key_length + 3] != pair.length)
        return false;
    int32_t index = *usual->expected, start = usual->key_offsets[index];
    if ((size_t)(usual->key_offsets[index + 1] - start) != key_length ||
        !equal_short(usual->key_bytes + start, bytes + 2, key_length))
        return false;
    size_t length =
        put_usual_value(usual->value, bytes + value_at, pair.length - value_at, usual->type);
    if (length == SIZE_MAX)
        return false;
    usual->value += length;
    *usual->offset++ = (int32_t)(usual->value - usual->value_start);
    *usual->index++ = index;
    usual->expected++;
    usual->type++;
    usual->count++;
    return true;
}

/* May OTLP_ROOM bytes be read from its start on? */
static inline bool has_room(const struct otlp_decoder *decoder, struct span pair)
{
    return (uintptr_t)pair.data - (uintptr_t)decoder->roomy.data < decoder->roomy.length;
}

/* ---- any pair ---- */

static bool is_expected_key(const struct arrow_builder *map, struct span key, size_t place,
                            int32_t *out_index)
{
    const struct arrow_builder *keys = &map->children[0], *dictionary = keys->dictionary;
    const int32_t *slots = (const int32_t *)(const void *)map->offsets.data;
    const int32_t *values = (const int32_t *)(const void *)dictionary->offsets.data;
    if (!has_expected_key(map, place))
        return false;
    int32_t index =
        ((const int32_t *)(const void *)keys->values.data)[(size_t)slots[map->length - 1] + place];
    *out_index = index;
    return (size_t)(values[index + 1] - values[index]) == key.length &&
           equal_short(dictionary->values.data + values[index], key.data, key.length);
}

/* Returns whether the key is the one that stood at this place in the slot before. */
static bool put_pair(struct otlp_decoder *decoder, struct arrow_builder *map,
                     const struct otlp_pair *pair, size_t place)
{
    char type = 'n';
    int32_t index;
    struct arrow_builder *keys = &map->children[0];
    bool is_expected = keys->field->is_dictionary && is_expected_key(map, pair->key, place, &index);
    if (is_expected) {
        arrow_append_index(keys, index);
    } else if (keys->field->is_dictionary) {
        struct span key = otlp_clean_text(decoder, pair->key);
        decoder->has_repaired_keys |= key.data != pair->key.data;
        arrow_append_memo(keys, key.data, key.length);
    } else {
        otlp_put_text(decoder, keys, pair->key);
    }
    if (pair->has_value)
        otlp_put_any(decoder, &map->children[1], pair->value, &type);
    else
        arrow_append_null(&map->children[1]);
    buf_put_byte(&decoder->types, (uint8_t)type);
    return is_expected;
}

/* Does a key stand twice in the slot that begins at `start`? Dictionary indices are equal where
 * keys are. */
static bool has_twin(const struct arrow_builder *map, size_t start)
{
    const struct arrow_builder *keys = &map->children[0];
    const int32_t *indices = (const int32_t *)(const void *)keys->values.data;
    bool is_found = false; /* without a way out: the compiler makes vectors of it */
    for (size_t i = start + 1; i < (size_t)keys->length && !is_found; i++)
        for (size_t j = start; j < i; j++)
            is_found |= indices[i] == indices[j];
    return is_found;
}

/* False, and nothing done: keys stand twice. */
static bool put_few_pairs(struct otlp_decoder *decoder, struct arrow_builder *map,
                          const struct span *pairs, size_t count)
{
    struct usual usual;
    int64_t start = map->children[0].length;
    if (count == 0)
        return true;
    bool are_expected = true;
    for (size_t i = 0; i < count; i++) {
        if (usual_begin(&usual, decoder, map, i, count - i)) {
            while (i < count && has_room(decoder, pairs[i]) && put_usual_pair(&usual, pairs[i]))
                i++;
            usual_end(&usual);
        }
        if (i < count) {
            struct otlp_pair pair = otlp_parse_pair(decoder, pairs[i]);
            are_expected &= put_pair(decoder, map, &pair, i);
        }
    }
    /* The slot before has no twins, and neither has a part of it; but for keys that became equal
     * when they were repaired. */
    if ((are_expected && !decoder->has_repaired_keys) || arrow_builder_failed(&map->children[0]) ||
        !has_twin(map, (size_t)start))
        return true;
    arrow_builder_truncate(&map->children[0], start);
    arrow_builder_truncate(&map->children[1], start);
    buf_clear(&decoder->types);
    return false;
}

/* ---- many pairs, and those with a key that stands twice ---- */

/* slots[] maps a key to its last place. */
static uint32_t *last_places(struct otlp_decoder *decoder, const struct otlp_pair *pairs,
                             size_t count, uint32_t *out_mask)
{
    uint32_t slot_count = 32;
    while (slot_count < count * 2)
        slot_count *= 2;
    buf_clear(&decoder->slots);
    uint32_t *slots =
        (uint32_t *)(void *)buf_extend(&decoder->slots, slot_count * sizeof(uint32_t));
    if (!slots)
        return NULL;
    memset(slots, 0xff, slot_count * sizeof *slots);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot =
            (uint32_t)hash64_seeded(pairs[i].key.data, pairs[i].key.length, decoder->hash_seed) &
            (slot_count - 1);
        while (slots[slot] != UINT32_MAX && !span_equal(pairs[slots[slot]].key, pairs[i].key))
            slot = (slot + 1) & (slot_count - 1);
        slots[slot] = i;
    }
    *out_mask = slot_count - 1;
    return slots;
}

static bool is_last_place(const struct otlp_decoder *decoder, const struct otlp_pair *pairs,
                          const uint32_t *slots, uint32_t mask, uint32_t i)
{
    uint32_t slot =
        (uint32_t)hash64_seeded(pairs[i].key.data, pairs[i].key.length, decoder->hash_seed) & mask;
    while (!span_equal(pairs[slots[slot]].key, pairs[i].key))
        slot = (slot + 1) & mask;
    return slots[slot] == i;
}

static void put_many_pairs(struct otlp_decoder *decoder, struct arrow_builder *map,
                           const struct span *messages, size_t count)
{
    uint32_t mask = 0, *slots = NULL;
    if (count == 0)
        return;
    struct otlp_pair *pairs = mem_alloc(count * sizeof *pairs);
    for (size_t i = 0; pairs && i < count; i++)
        pairs[i] = otlp_parse_pair(decoder, messages[i]);
    if (pairs)
        slots = last_places(decoder, pairs, count, &mask);
    map->offsets.failed |= !slots;
    for (uint32_t i = 0; slots && i < count; i++) {
        if (is_last_place(decoder, pairs, slots, mask, i))
            put_pair(decoder, map, &pairs[i], i);
        else
            decoder->is_raw = true; /* a key that stands again further on */
    }
    mem_free(pairs);
}

void otlp_put_attributes(struct otlp_decoder *decoder, struct arrow_builder *map,
                         struct arrow_builder *types, const struct buf *pairs)
{
    const struct span *spans = otlp_spans(pairs);
    size_t count = otlp_span_count(pairs);
    bool are_few = count <= FEW_PAIRS && map->children[0].field->is_dictionary;
    buf_clear(&decoder->types);
    if (!are_few || !put_few_pairs(decoder, map, spans, count))
        put_many_pairs(decoder, map, spans, count);
    arrow_close_list(map);
    types->values.failed |= decoder->types.failed;
    arrow_append_bytes(types, decoder->types.data, decoder->types.length);
}

struct span otlp_find_text_attribute(const struct buf *pairs, const char *name)
{
    const struct span *spans = otlp_spans(pairs);
    struct span found = {0};
    for (size_t i = 0; i < otlp_span_count(pairs); i++) {
        struct wire wire = wire_of(spans[i]);
        struct wire_field field;
        struct span key = {0}, value = {0};
        while (wire_next(&wire, &field)) {
            if (field.key == WIRE_KEY(1, WIRE_LEN))
                key = field.bytes;
            else if (field.key == WIRE_KEY(2, WIRE_LEN))
                value = field.bytes;
        }
        if (!span_equal(key, span_of_text(name)))
            continue;
        found = (struct span){0};
        wire = wire_of(value);
        while (wire_next(&wire, &field)) {
            if (field.key == ANY_STRING)
                found = field.bytes;
        }
    }
    return found;
}
