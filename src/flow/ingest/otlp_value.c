/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of OTLP: text, ids, AnyValue, attributes. Anything that a column cannot give back exactly
 * sets decoder->is_raw.
 */
#include <stdio.h>

#include "flow/ingest/otlp_decode.h"

/* Replaces what is not UTF-8 by U+FFFD, in `out`. */
static void repair_utf8(struct span text, struct buf *out)
{
    size_t at = 0;
    while (at < text.length) {
        size_t step = utf8_sequence(text.data + at, text.length - at);
        if (step)
            buf_put(out, text.data + at, step);
        else
            buf_put(out, "\xef\xbf\xbd", 3);
        at += step ? step : 1;
    }
}

/* The text itself, or a repaired copy in decoder->text. */
static struct span clean_text(struct otlp_decoder *decoder, struct span text)
{
    if (__builtin_expect(text_is_valid(text.data, text.length), 1))
        return text;
    decoder->is_raw = true;
    buf_clear(&decoder->text);
    repair_utf8(text, &decoder->text);
    return span_of(decoder->text.data, decoder->text.length);
}

void otlp_put_text(struct otlp_decoder *decoder, struct arrow_builder *builder, struct span text)
{
    text = clean_text(decoder, text);
    arrow_append_bytes(builder, text.data, text.length);
}

void otlp_put_text_or_null(struct otlp_decoder *decoder, struct arrow_builder *builder,
                           struct span text)
{
    if (text.length == 0)
        arrow_append_null(builder);
    else
        otlp_put_text(decoder, builder, text);
}

void otlp_put_id(struct otlp_decoder *decoder, struct arrow_builder *builder, struct span id,
                 size_t width)
{
    char hex[32];
    if (id.length == width) {
        hex_encode(hex, id.data, width);
        arrow_append_bytes(builder, hex, 2 * width);
        return;
    }
    decoder->is_raw |= id.length != 0;
    arrow_append_null(builder);
}

void otlp_put_u64(struct otlp_decoder *decoder, struct arrow_builder *builder, uint64_t value)
{
    if (__builtin_expect(value <= INT64_MAX, 1)) {
        arrow_append_i64(builder, (int64_t)value);
        return;
    }
    decoder->is_raw = true;
    arrow_append_null(builder);
}

/* ---- AnyValue ---- */

enum any_key {
    ANY_STRING = WIRE_KEY(1, WIRE_LEN),
    ANY_BOOL = WIRE_KEY(2, WIRE_VARINT),
    ANY_INT = WIRE_KEY(3, WIRE_VARINT),
    ANY_DOUBLE = WIRE_KEY(4, WIRE_I64),
    ANY_ARRAY = WIRE_KEY(5, WIRE_LEN),
    ANY_KVLIST = WIRE_KEY(6, WIRE_LEN),
    ANY_BYTES = WIRE_KEY(7, WIRE_LEN),
};

/* The member of the oneof that counts: the last one. key 0: none is set. */
static struct wire_field any_member(struct otlp_decoder *decoder, struct span any)
{
    struct wire wire = wire_of(any);
    struct wire_field field, member = {0};
    /* Nearly all are one string shorter than 128 bytes. */
    if (any.length >= 2 && any.data[0] == ANY_STRING && any.data[1] == any.length - 2 &&
        any.length < 130) {
        member.key = ANY_STRING;
        member.bytes = span_of(any.data + 2, any.length - 2);
        return member;
    }
    while (wire_next(&wire, &field)) {
        switch (field.key) {
        case ANY_STRING:
        case ANY_BOOL:
        case ANY_INT:
        case ANY_DOUBLE:
        case ANY_ARRAY:
        case ANY_KVLIST:
        case ANY_BYTES:
            decoder->is_raw |= member.key != 0; /* the earlier one is lost to columns */
            member = field;
            break;
        default:
            decoder->is_raw = true;
            break;
        }
    }
    decoder->is_malformed |= wire.is_malformed;
    return member;
}

static void put_json_text(struct otlp_decoder *decoder, struct buf *out, struct span text)
{
    static const char hex[] = "0123456789abcdef";
    text = clean_text(decoder, text);
    buf_put_byte(out, '"');
    size_t clean_from = 0;
    for (size_t i = 0; i < text.length; i++) {
        uint8_t c = text.data[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        buf_put(out, text.data + clean_from, i - clean_from);
        clean_from = i + 1;
        if (c == '"' || c == '\\') {
            buf_put_byte(out, '\\');
            buf_put_byte(out, c);
        } else {
            buf_put_text(out, "\\u00");
            buf_put_byte(out, (uint8_t)hex[c >> 4]);
            buf_put_byte(out, (uint8_t)hex[c & 15]);
        }
    }
    buf_put(out, text.data + clean_from, text.length - clean_from);
    buf_put_byte(out, '"');
}

static void put_base64(struct buf *out, struct span bytes)
{
    uint8_t *place = buf_extend(out, (bytes.length + 2) / 3 * 4);
    if (place)
        base64_encode((char *)place, bytes.data, bytes.length);
}

static void put_json_double(struct buf *out, double value)
{
    char text[DOUBLE_TEXT_MAX];
    size_t length = double_to_text(text, value);
    bool is_word = (text[0] == '-' ? text[1] : text[0]) > '9';
    if (is_word)
        buf_put_byte(out, '"');
    buf_put(out, text, length);
    if (is_word)
        buf_put_byte(out, '"');
    else if (length == 2 && memcmp(text, "-0", 2) == 0)
        buf_put_text(out, ".0"); /* "-0" is an integer, and loses its sign, in most JSON readers */
}

static void put_json_any(struct otlp_decoder *decoder, struct buf *out, struct span any,
                         unsigned depth);

static void put_json_array(struct otlp_decoder *decoder, struct buf *out, struct span array,
                           unsigned depth)
{
    struct wire wire = wire_of(array);
    struct wire_field field;
    bool is_first = true;
    buf_put_text(out, "{\"values\":[");
    while (wire_next(&wire, &field)) {
        if (field.key != WIRE_KEY(1, WIRE_LEN)) {
            decoder->is_raw = true;
            continue;
        }
        if (!is_first)
            buf_put_byte(out, ',');
        is_first = false;
        put_json_any(decoder, out, field.bytes, depth + 1);
    }
    decoder->is_malformed |= wire.is_malformed;
    buf_put_text(out, "]}");
}

struct key_value {
    struct span key, value;
    bool has_value;
};

static struct key_value parse_key_value(struct otlp_decoder *decoder, struct span pair)
{
    struct wire wire = wire_of(pair);
    struct wire_field field;
    struct key_value result = {.key = {.data = (const uint8_t *)""}};
    const uint8_t *bytes = pair.data;
    /* Nearly all are a key and a value, each shorter than 128 bytes. */
    if (pair.length >= 4 && bytes[0] == WIRE_KEY(1, WIRE_LEN) && bytes[1] < 128 &&
        (size_t)bytes[1] + 4 <= pair.length && bytes[2 + bytes[1]] == WIRE_KEY(2, WIRE_LEN) &&
        bytes[3 + bytes[1]] < 128 && (size_t)bytes[1] + bytes[3 + bytes[1]] + 4 == pair.length) {
        size_t key_length = bytes[1];
        return (struct key_value){
            .key = span_of(bytes + 2, key_length),
            .value = span_of(bytes + 4 + key_length, pair.length - 4 - key_length),
            .has_value = true,
        };
    }
    while (wire_next(&wire, &field)) {
        if (field.key == WIRE_KEY(1, WIRE_LEN)) {
            result.key = field.bytes;
        } else if (field.key == WIRE_KEY(2, WIRE_LEN)) {
            decoder->is_raw |= result.has_value;
            result.value = field.bytes;
            result.has_value = true;
        } else {
            decoder->is_raw = true;
        }
    }
    decoder->is_malformed |= wire.is_malformed;
    return result;
}

static void put_json_kvlist(struct otlp_decoder *decoder, struct buf *out, struct span list,
                            unsigned depth)
{
    struct wire wire = wire_of(list);
    struct wire_field field;
    bool is_first = true;
    buf_put_text(out, "{\"values\":[");
    while (wire_next(&wire, &field)) {
        if (field.key != WIRE_KEY(1, WIRE_LEN)) {
            decoder->is_raw = true;
            continue;
        }
        struct key_value pair = parse_key_value(decoder, field.bytes);
        buf_put_text(out, is_first ? "{\"key\":" : ",{\"key\":");
        is_first = false;
        put_json_text(decoder, out, pair.key);
        if (pair.has_value) {
            buf_put_text(out, ",\"value\":");
            put_json_any(decoder, out, pair.value, depth + 1);
        }
        buf_put_byte(out, '}');
    }
    decoder->is_malformed |= wire.is_malformed;
    buf_put_text(out, "]}");
}

static void put_json_any(struct otlp_decoder *decoder, struct buf *out, struct span any,
                         unsigned depth)
{
    char digits[I64_TEXT_MAX];
    if (depth > OTLP_DEPTH_MAX) {
        decoder->refusal = "values are nested deeper than 64 levels";
        return;
    }
    struct wire_field member = any_member(decoder, any);
    switch (member.key) {
    case ANY_STRING:
        buf_put_text(out, "{\"stringValue\":");
        put_json_text(decoder, out, member.bytes);
        break;
    case ANY_BOOL:
        buf_put_text(out, member.value ? "{\"boolValue\":true" : "{\"boolValue\":false");
        break;
    case ANY_INT: /* OTLP/JSON: 64-bit integers are strings */
        buf_put_text(out, "{\"intValue\":\"");
        buf_put(out, digits, i64_to_text(digits, (int64_t)member.value));
        buf_put_byte(out, '"');
        break;
    case ANY_DOUBLE:
        buf_put_text(out, "{\"doubleValue\":");
        put_json_double(out, wire_double(member.value));
        break;
    case ANY_ARRAY:
        buf_put_text(out, "{\"arrayValue\":");
        put_json_array(decoder, out, member.bytes, depth);
        break;
    case ANY_KVLIST:
        buf_put_text(out, "{\"kvlistValue\":");
        put_json_kvlist(decoder, out, member.bytes, depth);
        break;
    case ANY_BYTES:
        buf_put_text(out, "{\"bytesValue\":\"");
        put_base64(out, member.bytes);
        buf_put_byte(out, '"');
        break;
    default:
        buf_put_byte(out, '{');
        break;
    }
    buf_put_byte(out, '}');
}

void otlp_put_any(struct otlp_decoder *decoder, struct arrow_builder *builder, struct span any,
                  char *out_type)
{
    char digits[DOUBLE_TEXT_MAX];
    struct wire_field member = any_member(decoder, any);
    struct buf *scratch = &decoder->scratch;
    switch (member.key) {
    case ANY_STRING:
        *out_type = 's';
        otlp_put_text(decoder, builder, member.bytes);
        return;
    case ANY_INT:
        *out_type = 'i';
        arrow_append_bytes(builder, digits, i64_to_text(digits, (int64_t)member.value));
        return;
    case ANY_DOUBLE:
        *out_type = 'd';
        arrow_append_bytes(builder, digits, double_to_text(digits, wire_double(member.value)));
        return;
    case ANY_BOOL:
        *out_type = 'b';
        arrow_append_bytes(builder, member.value ? "true" : "false", member.value ? 4 : 5);
        return;
    case ANY_BYTES:
        *out_type = 'y';
        buf_clear(scratch);
        put_base64(scratch, member.bytes);
        break;
    case ANY_ARRAY:
    case ANY_KVLIST:
        *out_type = member.key == ANY_ARRAY ? 'a' : 'k';
        buf_clear(scratch);
        put_json_any(decoder, scratch, any, 1);
        break;
    default:
        *out_type = 'n';
        arrow_append_null(builder);
        return;
    }
    builder->values.failed |= scratch->failed;
    arrow_append_bytes(builder, scratch->data, scratch->length);
}

/* ---- attributes ---- */

enum { FEW_PAIRS = 64 };

/* For many pairs, and for any with a key that stands twice: slots[] maps a key to its last place.
 */
static uint32_t *last_places(struct otlp_decoder *decoder, const struct key_value *pairs,
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

static bool is_last_place(const struct otlp_decoder *decoder, const struct key_value *pairs,
                          const uint32_t *slots, uint32_t mask, uint32_t i)
{
    uint32_t slot =
        (uint32_t)hash64_seeded(pairs[i].key.data, pairs[i].key.length, decoder->hash_seed) & mask;
    while (!span_equal(pairs[slots[slot]].key, pairs[i].key))
        slot = (slot + 1) & mask;
    return slots[slot] == i;
}

/* Exporters send the same keys in the same order again and again: the key that stood at this place
 * in the slot before is tried first, without hashing. */
static bool put_expected_key(struct arrow_builder *map, struct span key, size_t place)
{
    struct arrow_builder *keys = &map->children[0];
    const struct arrow_builder *dictionary = keys->dictionary;
    const int32_t *slots = (const int32_t *)(const void *)map->offsets.data;
    const int32_t *values = (const int32_t *)(const void *)dictionary->offsets.data;
    const int32_t *indices = (const int32_t *)(const void *)keys->values.data;
    if (map->length == 0 || slots[map->length - 1] + (int64_t)place >= slots[map->length])
        return false;
    int32_t index = indices[(size_t)slots[map->length - 1] + place];
    int32_t start = values[index];
    if ((size_t)(values[index + 1] - start) != key.length ||
        !equal_short(dictionary->values.data + start, key.data, key.length))
        return false;
    arrow_append_index(keys, index);
    return true;
}

/* The usual pair, without a detour: a key that is expected here, and a short string that is valid.
 * The buffers have room: put_reserve saw to it. */
static bool put_usual_pair(struct otlp_decoder *decoder, struct arrow_builder *map,
                           const struct key_value *pair, size_t place)
{
    struct arrow_builder *values = &map->children[1];
    const uint8_t *any = pair->value.data;
    size_t length = pair->value.length;
    if (length < 2 || length >= 130 || any[0] != ANY_STRING || any[1] != length - 2 ||
        !text_is_valid(any + 2, length - 2) || !put_expected_key(map, pair->key, place))
        return false;
    copy_short(values->values.data + values->values.length, any + 2, length - 2);
    values->values.length += length - 2;
    put_le32(values->offsets.data + values->offsets.length, (uint32_t)values->values.length);
    values->offsets.length += sizeof(int32_t);
    arrow_push_valid(values);
    decoder->types.data[decoder->types.length++] = 's';
    return true;
}

/* Room for the strings of `count` pairs in all buffers that put_usual_pair writes to. */
static bool put_reserve(struct otlp_decoder *decoder, struct arrow_builder *map, size_t count)
{
    struct arrow_builder *values = &map->children[1];
    return values->values.length < INT32_MAX / 2 && buf_reserve(&decoder->types, count) &&
           buf_reserve(&values->offsets, count * sizeof(int32_t)) &&
           buf_reserve(&values->values, count * 128);
}

static void put_pair(struct otlp_decoder *decoder, struct arrow_builder *map,
                     const struct key_value *pair, size_t place)
{
    char type = 'n';
    struct arrow_builder *keys = &map->children[0];
    if (!keys->field->is_dictionary) {
        otlp_put_text(decoder, keys, pair->key);
    } else if (!put_expected_key(map, pair->key, place)) {
        struct span key = clean_text(decoder, pair->key);
        arrow_append_memo(keys, key.data, key.length);
    }
    if (pair->has_value)
        otlp_put_any(decoder, &map->children[1], pair->value, &type);
    else
        arrow_append_null(&map->children[1]);
    buf_put_byte(&decoder->types, (uint8_t)type);
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

static void put_many_pairs(struct otlp_decoder *decoder, struct arrow_builder *map,
                           const struct key_value *pairs, size_t count)
{
    uint32_t mask = 0, *slots = last_places(decoder, pairs, count, &mask);
    if (!slots) {
        map->offsets.failed = true;
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (is_last_place(decoder, pairs, slots, mask, i))
            put_pair(decoder, map, &pairs[i], i);
        else
            decoder->is_raw = true; /* a key that stands again further on */
    }
}

void otlp_put_attributes(struct otlp_decoder *decoder, struct arrow_builder *map,
                         struct arrow_builder *types, const struct buf *pairs)
{
    const struct span *spans = otlp_spans(pairs);
    size_t count = otlp_span_count(pairs);
    struct key_value few[FEW_PAIRS], *parsed = few;
    if (count > FEW_PAIRS) {
        parsed = mem_alloc(count * sizeof *parsed);
        if (!parsed) {
            map->offsets.failed = true;
            return;
        }
    }
    for (size_t i = 0; i < count; i++)
        parsed[i] = parse_key_value(decoder, spans[i]);
    int64_t start = map->children[0].length;
    bool is_plain = count <= FEW_PAIRS && map->children[0].field->is_dictionary;
    buf_clear(&decoder->types);
    bool has_room = is_plain && put_reserve(decoder, map, count);
    for (size_t i = 0; i < count && is_plain; i++) {
        if (!has_room || !put_usual_pair(decoder, map, &parsed[i], i)) {
            put_pair(decoder, map, &parsed[i], i);
            has_room = put_reserve(decoder, map, count - i);
        }
    }
    if (is_plain && !arrow_builder_failed(&map->children[0]) && has_twin(map, (size_t)start)) {
        arrow_builder_truncate(&map->children[0], start);
        arrow_builder_truncate(&map->children[1], start);
        buf_clear(&decoder->types);
        is_plain = false;
    }
    if (!is_plain)
        put_many_pairs(decoder, map, parsed, count);
    if (parsed != few)
        mem_free(parsed);
    arrow_close_list(map);
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
