/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of OTLP: text, ids, AnyValue. Anything that a column cannot give back exactly sets
 * decoder->is_raw.
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
struct span otlp_clean_text(struct otlp_decoder *decoder, struct span text)
{
    if (__builtin_expect(text_is_valid(text.data, text.length), 1))
        return text;
    decoder->is_raw = true;
    buf_clear(&decoder->text);
    repair_utf8(text, &decoder->text);
    decoder->is_out_of_memory |= decoder->text.failed;
    return span_of(decoder->text.data, decoder->text.length);
}

void otlp_put_text(struct otlp_decoder *decoder, struct arrow_builder *builder, struct span text)
{
    text = otlp_clean_text(decoder, text);
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

/* ---- AnyValue ---- */

/* The member of the oneof that counts: the last one. key 0: none is set. */
static struct wire_field any_member(struct otlp_decoder *decoder, struct span any)
{
    struct wire wire = wire_of(any);
    struct wire_field field, member = {0};
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
    text = otlp_clean_text(decoder, text);
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

struct otlp_pair otlp_parse_pair(struct otlp_decoder *decoder, struct span pair)
{
    struct wire wire = wire_of(pair);
    struct wire_field field;
    struct otlp_pair result = {.key = {.data = (const uint8_t *)""}};
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
        struct otlp_pair pair = otlp_parse_pair(decoder, field.bytes);
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
        decoder->is_raw |= otlp_is_odd_nan(member.value);
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
        decoder->is_raw |= otlp_is_odd_nan(member.value);
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
