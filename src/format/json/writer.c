/* SPDX-License-Identifier: Apache-2.0
 *
 * The writer. Nesting beyond JSON_DEPTH_MAX marks the buffer as failed, because what is nested may
 * come from outside.
 */
#include <math.h>

#include "format/json/json.h"

void json_writer_init(struct json_writer *writer, struct buf *out)
{
    *writer = (struct json_writer){.out = out};
}

/* The comma before a value or key, unless it is the first of its container or follows its key. */
static void before_item(struct json_writer *writer)
{
    if (writer->after_key) {
        writer->after_key = false;
        return;
    }
    if (writer->depth == 0 || writer->depth > JSON_DEPTH_MAX)
        return;
    uint64_t bit = (uint64_t)1 << (writer->depth - 1) % 64;
    uint64_t *word = &writer->more_bits.words[(writer->depth - 1) / 64];
    if (*word & bit)
        buf_put_byte(writer->out, ',');
    *word |= bit;
}

static void begin(struct json_writer *writer, uint8_t bracket)
{
    before_item(writer);
    if (writer->depth >= JSON_DEPTH_MAX)
        writer->out->failed = true;
    else
        writer->more_bits.words[writer->depth / 64] &= ~((uint64_t)1 << writer->depth % 64);
    writer->depth++;
    buf_put_byte(writer->out, bracket);
}

static void end(struct json_writer *writer, uint8_t bracket)
{
    CHECK(writer->depth > 0 && !writer->after_key);
    writer->depth--;
    buf_put_byte(writer->out, bracket);
}

void json_write_object_begin(struct json_writer *writer)
{
    begin(writer, '{');
}

void json_write_object_end(struct json_writer *writer)
{
    end(writer, '}');
}

void json_write_array_begin(struct json_writer *writer)
{
    begin(writer, '[');
}

void json_write_array_end(struct json_writer *writer)
{
    end(writer, ']');
}

static void put_escape(struct buf *out, uint8_t c)
{
    static const char letters[32] = {
        ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    static const char digits[] = "0123456789abcdef";
    buf_put_byte(out, '\\');
    if (c >= 0x20) {
        buf_put_byte(out, c);
    } else if (letters[c]) {
        buf_put_byte(out, (uint8_t)letters[c]);
    } else {
        buf_put(out, "u00", 3);
        buf_put_byte(out, (uint8_t)digits[c >> 4]);
        buf_put_byte(out, (uint8_t)digits[c & 15]);
    }
}

static void put_quoted(struct buf *out, const uint8_t *text, size_t bytes)
{
    buf_put_byte(out, '"');
    size_t start = 0, at = 0;
    while (at < bytes) {
        uint8_t c = text[at];
        size_t sequence = c < 0x80 ? 1 : utf8_sequence(text + at, bytes - at);
        if (sequence && c >= 0x20 && c != '"' && c != '\\') {
            at += sequence;
            continue;
        }
        buf_put(out, text + start, at - start);
        if (sequence)
            put_escape(out, c);
        else
            buf_put(out, "\xef\xbf\xbd", 3);
        start = ++at;
    }
    buf_put(out, text + start, at - start);
    buf_put_byte(out, '"');
}

void json_write_key_bytes(struct json_writer *writer, const void *key, size_t bytes)
{
    CHECK(!writer->after_key);
    before_item(writer);
    put_quoted(writer->out, bytes ? key : "", bytes);
    buf_put_byte(writer->out, ':');
    writer->after_key = true;
}

void json_write_key(struct json_writer *writer, const char *key)
{
    json_write_key_bytes(writer, key, strlen(key));
}

void json_write_string(struct json_writer *writer, const void *text, size_t bytes)
{
    before_item(writer);
    put_quoted(writer->out, bytes ? text : "", bytes);
}

void json_write_text(struct json_writer *writer, const char *text)
{
    json_write_string(writer, text, strlen(text));
}

void json_write_i64(struct json_writer *writer, int64_t value)
{
    char text[I64_TEXT_MAX];
    before_item(writer);
    buf_put(writer->out, text, i64_to_text(text, value));
}

void json_write_u64(struct json_writer *writer, uint64_t value)
{
    char text[U64_TEXT_MAX];
    before_item(writer);
    buf_put(writer->out, text, u64_to_text(text, value));
}

void json_write_double(struct json_writer *writer, double value)
{
    char text[DOUBLE_TEXT_MAX];
    size_t length = double_to_text(text, value);
    if (isfinite(value))
        json_write_raw(writer, text, length);
    else
        json_write_string(writer, text, length);
}

void json_write_bool(struct json_writer *writer, bool value)
{
    json_write_raw(writer, value ? "true" : "false", value ? 4 : 5);
}

void json_write_null(struct json_writer *writer)
{
    json_write_raw(writer, "null", 4);
}

void json_write_raw(struct json_writer *writer, const void *json, size_t bytes)
{
    before_item(writer);
    buf_put(writer->out, json, bytes);
}
