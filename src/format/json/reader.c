/* SPDX-License-Identifier: Apache-2.0
 *
 * The pull reader: one token a call, a bit for each open container, no recursion. Strings without
 * escapes are handed out as slices of the input; the others are decoded into `scratch`.
 */
#include "format/json/json.h"

enum reader_state {
    STATE_VALUE,       /* a value must follow */
    STATE_FIRST_VALUE, /* after '[': a value or ']' */
    STATE_FIRST_KEY,   /* after '{': a key or '}' */
    STATE_KEY,         /* after ',' in an object */
    STATE_AFTER,       /* after a value: ',', an end, or the end of the document */
    STATE_DONE,
};

void json_reader_init(struct json_reader *reader, const void *data, size_t bytes)
{
    const uint8_t *start = bytes ? data : (const uint8_t *)"";
    *reader = (struct json_reader){.start = start, .at = start, .end = start + bytes};
    buf_init(&reader->scratch, 0);
}

void json_reader_deinit(struct json_reader *reader)
{
    buf_deinit(&reader->scratch);
    *reader = (struct json_reader){0};
}

static enum status fail(const struct json_reader *reader, const char *what, struct error *err)
{
    return error_set(err, STATUS_INVALID, "JSON at byte %zu: %s", json_reader_offset(reader), what);
}

static void skip_space(struct json_reader *reader)
{
    const uint8_t *at = reader->at, *end = reader->end;
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    reader->at = at;
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* ---- strings ---- */

static int hex_value(uint8_t c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Four hex digits at `at`; -1 if they are not. */
static int32_t read_hex4(const uint8_t *at, const uint8_t *end)
{
    if (end - at < 4)
        return -1;
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_value(at[i]);
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* A lone surrogate gets the three bytes it would have; the UTF-8 check behind this finds it. */
static void put_code_point(struct buf *out, uint32_t c)
{
    if (c < 0x80) {
        buf_put_byte(out, (uint8_t)c);
    } else if (c < 0x800) {
        buf_put_byte(out, (uint8_t)(0xc0 | c >> 6));
        buf_put_byte(out, (uint8_t)(0x80 | (c & 0x3f)));
    } else if (c < 0x10000) {
        buf_put_byte(out, (uint8_t)(0xe0 | c >> 12));
        buf_put_byte(out, (uint8_t)(0x80 | (c >> 6 & 0x3f)));
        buf_put_byte(out, (uint8_t)(0x80 | (c & 0x3f)));
    } else {
        buf_put_byte(out, (uint8_t)(0xf0 | c >> 18));
        buf_put_byte(out, (uint8_t)(0x80 | (c >> 12 & 0x3f)));
        buf_put_byte(out, (uint8_t)(0x80 | (c >> 6 & 0x3f)));
        buf_put_byte(out, (uint8_t)(0x80 | (c & 0x3f)));
    }
}

/* At the 'u' of an escape. Moves reader->at past it, and past the second half of a pair. */
static bool read_unicode_escape(struct json_reader *reader)
{
    int32_t high = read_hex4(reader->at + 1, reader->end);
    if (high < 0)
        return false;
    reader->at += 5;
    uint32_t point = (uint32_t)high;
    if (high >= 0xd800 && high < 0xdc00 && reader->end - reader->at >= 6 && reader->at[0] == '\\' &&
        reader->at[1] == 'u') {
        int32_t low = read_hex4(reader->at + 2, reader->end);
        if (low >= 0xdc00 && low < 0xe000) {
            point = 0x10000 + ((uint32_t)(high - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
            reader->at += 6;
        }
    }
    put_code_point(&reader->scratch, point);
    return true;
}

static bool read_escape(struct json_reader *reader)
{
    static const char plain[] = "\"\\/", letters[] = "bfnrt", controls[] = "\b\f\n\r\t";
    if (reader->at == reader->end)
        return false;
    uint8_t c = *reader->at;
    if (c == 'u')
        return read_unicode_escape(reader);
    const char *place = c ? strchr(letters, c) : NULL;
    if (place)
        c = (uint8_t)controls[place - letters];
    else if (!c || !strchr(plain, c))
        return false;
    buf_put_byte(&reader->scratch, c);
    reader->at++;
    return true;
}

/* The next byte that ends a run of plain ones: a quote, a backslash, a control, or the end. */
static const uint8_t *find_special(const uint8_t *at, const uint8_t *end)
{
    while (at < end && *at != '"' && *at != '\\' && *at >= 0x20)
        at++;
    return at;
}

static enum status check_utf8(struct json_reader *reader, struct error *err)
{
    reader->text_is_bad = !utf8_is_valid(reader->text.data, reader->text.length);
    if (reader->text_is_bad && !reader->keep_bad_utf8)
        return error_set(err, STATUS_INVALID, "JSON at byte %zu: string is not valid UTF-8",
                         reader->token_offset);
    return STATUS_OK;
}

static enum status read_string(struct json_reader *reader, struct error *err)
{
    const uint8_t *start = ++reader->at;
    reader->at = find_special(start, reader->end);
    if (reader->at < reader->end && *reader->at == '"') {
        reader->text = span_of(start, (size_t)(reader->at++ - start));
        return check_utf8(reader, err);
    }
    buf_clear(&reader->scratch);
    for (;;) {
        buf_put(&reader->scratch, start, (size_t)(reader->at - start));
        if (reader->at == reader->end)
            return fail(reader, "string without end", err);
        if (*reader->at == '"')
            break;
        if (*reader->at != '\\')
            return fail(reader, "control character in a string", err);
        reader->at++;
        if (!read_escape(reader))
            return fail(reader, "bad escape", err);
        start = reader->at;
        reader->at = find_special(start, reader->end);
    }
    reader->at++;
    TRY(buf_status(&reader->scratch, "JSON string", err));
    reader->text = span_of(reader->scratch.data, reader->scratch.length);
    if (!reader->text.data)
        reader->text.data = (const uint8_t *)"";
    return check_utf8(reader, err);
}

/* ---- other tokens ---- */

static enum status read_number(struct json_reader *reader, struct error *err)
{
    const uint8_t *at = reader->at, *end = reader->end;
    if (at < end && *at == '-')
        at++;
    if (at == end || !is_digit(*at))
        return fail(reader, "a value is expected here", err);
    if (*at == '0')
        at++;
    else
        while (at < end && is_digit(*at))
            at++;
    if (at < end && *at == '.') {
        const uint8_t *digits = ++at;
        while (at < end && is_digit(*at))
            at++;
        if (at == digits)
            return fail(reader, "no digits after the decimal point", err);
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < end && (*at == '+' || *at == '-'))
            at++;
        const uint8_t *digits = at;
        while (at < end && is_digit(*at))
            at++;
        if (at == digits)
            return fail(reader, "no digits in the exponent", err);
    }
    reader->text = span_of(reader->at, (size_t)(at - reader->at));
    reader->at = at;
    return STATUS_OK;
}

static enum status read_word(struct json_reader *reader, const char *word, struct error *err)
{
    size_t length = strlen(word);
    if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, word, length) != 0)
        return fail(reader, "a value is expected here", err);
    reader->at += length;
    return STATUS_OK;
}

static enum status open_container(struct json_reader *reader, bool is_object, struct error *err)
{
    if (reader->depth == JSON_DEPTH_MAX)
        return error_set(err, STATUS_LIMIT, "JSON at byte %zu: nested deeper than %d",
                         json_reader_offset(reader), JSON_DEPTH_MAX);
    uint64_t bit = (uint64_t)1 << reader->depth % 64;
    uint64_t *word = &reader->object_bits.words[reader->depth++ / 64];
    *word = is_object ? *word | bit : *word & ~bit;
    reader->state = is_object ? STATE_FIRST_KEY : STATE_FIRST_VALUE;
    reader->at++;
    return STATUS_OK;
}

static bool in_object(const struct json_reader *reader)
{
    uint32_t at = reader->depth - 1;
    return reader->depth && (reader->object_bits.words[at / 64] >> at % 64 & 1);
}

static enum json_event close_container(struct json_reader *reader)
{
    enum json_event event = in_object(reader) ? JSON_EVENT_OBJECT_END : JSON_EVENT_ARRAY_END;
    reader->depth--;
    reader->state = STATE_AFTER;
    reader->at++;
    return event;
}

static enum status read_value(struct json_reader *reader, enum json_event *out_event,
                              struct error *err)
{
    if (reader->at == reader->end)
        return fail(reader, "the document ends too early", err);
    enum json_event event;
    switch (*reader->at) {
    case '{':
        event = JSON_EVENT_OBJECT_BEGIN;
        TRY(open_container(reader, true, err));
        *out_event = event;
        return STATUS_OK;
    case '[':
        event = JSON_EVENT_ARRAY_BEGIN;
        TRY(open_container(reader, false, err));
        *out_event = event;
        return STATUS_OK;
    case '"':
        event = JSON_EVENT_STRING;
        TRY(read_string(reader, err));
        break;
    case 't':
        event = JSON_EVENT_TRUE;
        TRY(read_word(reader, "true", err));
        break;
    case 'f':
        event = JSON_EVENT_FALSE;
        TRY(read_word(reader, "false", err));
        break;
    case 'n':
        event = JSON_EVENT_NULL;
        TRY(read_word(reader, "null", err));
        break;
    default:
        event = JSON_EVENT_NUMBER;
        TRY(read_number(reader, err));
        break;
    }
    reader->state = STATE_AFTER;
    *out_event = event;
    return STATUS_OK;
}

/* A key and its colon. */
static enum status read_key(struct json_reader *reader, enum json_event *out_event,
                            struct error *err)
{
    if (reader->at == reader->end || *reader->at != '"')
        return fail(reader, "a member's name is expected here", err);
    TRY(read_string(reader, err));
    skip_space(reader);
    if (reader->at == reader->end || *reader->at != ':')
        return fail(reader, "a colon is expected here", err);
    reader->at++;
    reader->state = STATE_VALUE;
    *out_event = JSON_EVENT_KEY;
    return STATUS_OK;
}

enum status json_reader_next(struct json_reader *reader, enum json_event *out_event,
                             struct error *err)
{
    reader->text = (struct span){0};
    reader->text_is_bad = false;
    skip_space(reader);
    if (reader->state == STATE_AFTER) {
        if (reader->depth == 0) {
            if (reader->at != reader->end)
                return fail(reader, "something follows the document", err);
            reader->state = STATE_DONE;
        } else if (reader->at == reader->end) {
            return fail(reader, "the document ends too early", err);
        } else if (*reader->at == ',') {
            reader->at++;
            skip_space(reader);
            reader->state = in_object(reader) ? STATE_KEY : STATE_VALUE;
        } else if (*reader->at != (in_object(reader) ? '}' : ']')) {
            return fail(reader, "a comma or an end is expected here", err);
        }
    }
    reader->token_offset = json_reader_offset(reader);
    switch ((enum reader_state)reader->state) {
    case STATE_DONE:
        *out_event = JSON_EVENT_END;
        return STATUS_OK;
    case STATE_AFTER:
        *out_event = close_container(reader);
        return STATUS_OK;
    case STATE_FIRST_KEY:
    case STATE_FIRST_VALUE:
        if (reader->at < reader->end && *reader->at == (in_object(reader) ? '}' : ']')) {
            *out_event = close_container(reader);
            return STATUS_OK;
        }
        if (reader->state == STATE_FIRST_VALUE)
            return read_value(reader, out_event, err);
        return read_key(reader, out_event, err);
    case STATE_KEY:
        return read_key(reader, out_event, err);
    case STATE_VALUE:
        break;
    }
    return read_value(reader, out_event, err);
}

enum status json_reader_skip(struct json_reader *reader, enum json_event first, struct error *err)
{
    enum json_event event = first;
    if (event == JSON_EVENT_KEY)
        TRY(json_reader_next(reader, &event, err));
    if (event != JSON_EVENT_OBJECT_BEGIN && event != JSON_EVENT_ARRAY_BEGIN)
        return STATUS_OK;
    uint32_t outside = reader->depth - 1;
    while (reader->depth > outside)
        TRY(json_reader_next(reader, &event, err));
    return STATUS_OK;
}
