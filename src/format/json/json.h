/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON, strictly RFC 8259: a pull reader over bytes in memory, a writer into a buffer, and a small
 * tree that keeps number text, member order and members nobody knows, so that a document of others
 * can be changed and written back without loss.
 *
 * Invariants: nesting is bounded (JSON_DEPTH_MAX), strings are valid UTF-8 unless the reader is
 * told to keep bad ones, nothing recurses on input deeper than the bound. Pure; an object belongs
 * to one thread at a time.
 */
#ifndef SLUICE_FORMAT_JSON_JSON_H
#define SLUICE_FORMAT_JSON_JSON_H

#include "base/base.h"

/* Room for an Avro schema of ARROW_DEPTH_MAX levels of columns, each of which takes up to five. */
enum { JSON_DEPTH_MAX = 192 };
_Static_assert(JSON_DEPTH_MAX % 64 == 0, "json_bits has whole words");

struct json_bits { /* bit d: of the container at depth d */
    uint64_t words[JSON_DEPTH_MAX / 64];
};

/* ---- pull reader ---- */

enum json_event {
    JSON_EVENT_OBJECT_BEGIN,
    JSON_EVENT_OBJECT_END,
    JSON_EVENT_ARRAY_BEGIN,
    JSON_EVENT_ARRAY_END,
    JSON_EVENT_KEY,    /* text: the member's name; its value comes next */
    JSON_EVENT_STRING, /* text: without quotes and escapes */
    JSON_EVENT_NUMBER, /* text: as written */
    JSON_EVENT_TRUE,
    JSON_EVENT_FALSE,
    JSON_EVENT_NULL,
    JSON_EVENT_END, /* the document is over; stays so */
};

struct json_reader {
    const uint8_t *start, *at, *end; /* borrowed */
    struct buf scratch;              /* strings that had escapes */
    struct json_bits object_bits;    /* it is an object */
    uint32_t depth;
    uint8_t state;
    bool keep_bad_utf8; /* set after init: bad UTF-8 and lone surrogates do not fail, see
                           text_is_bad */

    /* of the event last returned */
    struct span text;    /* KEY, STRING, NUMBER; valid until the next call */
    size_t token_offset; /* of its first byte */
    bool text_is_bad;    /* keep_bad_utf8: the text is not UTF-8 (bytes as sent; a lone surrogate as
                          * its three bytes) */
};

void json_reader_init(struct json_reader *reader, const void *data,
                      size_t bytes);                 /* borrows data */
void json_reader_deinit(struct json_reader *reader); /* accepts zeroed */

/* INVALID with the offset in the message for what is not JSON, LIMIT beyond JSON_DEPTH_MAX. */
enum status json_reader_next(struct json_reader *reader, enum json_event *out_event,
                             struct error *err) MUST_CHECK;

/* Passes over the rest of a value: call it after its first event (or after KEY, before the value).
 * After a scalar's event it does nothing. */
enum status json_reader_skip(struct json_reader *reader, enum json_event first,
                             struct error *err) MUST_CHECK;

/* Bytes read so far: the end of the last token. A slice from a BEGIN's token_offset to here after
 * its END is that value as it was sent. */
static inline size_t json_reader_offset(const struct json_reader *reader)
{
    return (size_t)(reader->at - reader->start);
}

/* Numbers as text: false unless the text is an integer ("1.0" and "1e2" count) within range. */
bool json_number_to_i64(struct span text, int64_t *out_value);
bool json_number_to_u64(struct span text, uint64_t *out_value);
bool json_number_to_double(struct span text, double *out_value); /* nearest; false: not a number */

/* ---- writer ---- */

/* Compact. Calls must form one value; commas and colons are put in. The buffer's `failed` is
 * checked by the caller with buf_status. */
struct json_writer {
    struct buf *out;            /* borrowed */
    struct json_bits more_bits; /* something was written in it */
    uint32_t depth;
    bool after_key;
};

void json_writer_init(struct json_writer *writer, struct buf *out);
void json_write_object_begin(struct json_writer *writer);
void json_write_object_end(struct json_writer *writer);
void json_write_array_begin(struct json_writer *writer);
void json_write_array_end(struct json_writer *writer);
void json_write_key(struct json_writer *writer, const char *key);
void json_write_key_bytes(struct json_writer *writer, const void *key, size_t bytes);
/* Bytes that are no UTF-8 become U+FFFD, one for each: callers who must not lose them check first.
 */
void json_write_string(struct json_writer *writer, const void *text, size_t bytes);
void json_write_text(struct json_writer *writer, const char *text);
void json_write_i64(struct json_writer *writer, int64_t value);
void json_write_u64(struct json_writer *writer, uint64_t value);
/* Shortest; NaN and infinities, which JSON has not, as the strings "NaN", "Infinity", "-Infinity"
 * (the protobuf JSON mapping). */
void json_write_double(struct json_writer *writer, double value);
void json_write_bool(struct json_writer *writer, bool value);
void json_write_null(struct json_writer *writer);
void json_write_raw(struct json_writer *writer, const void *json,
                    size_t bytes); /* one value, trusted */

/* ---- tree ---- */

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/* Children are a list in document order. A value is in at most one container. */
struct json_value {
    enum json_type type;
    bool boolean;
    uint32_t count;  /* of children */
    const char *key; /* as a member: its name, NUL-terminated */
    size_t key_length;
    const char *text; /* STRING: NUL-terminated, NULs inside possible; NUMBER: as written */
    size_t length;
    struct json_value *first, *last; /* children */
    struct json_value *next;         /* sibling */
};

/* Everything is owned by `arena`, whose bound is the limit of the tree (NO_MEMORY past it). */
enum status json_parse(const void *data, size_t bytes, struct arena *arena,
                       struct json_value **out_value, struct error *err) MUST_CHECK;
void json_write_value(struct json_writer *writer, const struct json_value *value);
enum status json_serialize(const struct json_value *value, struct buf *out,
                           struct error *err) MUST_CHECK;

/* The member of that name (the last of several), or NULL; `object` may be NULL or no object. */
struct json_value *json_get(const struct json_value *object, const char *key);
struct json_value *json_at(const struct json_value *array, size_t index); /* NULL past the end */
/* NULL unless the member is a string without NULs inside. */
const char *json_get_text(const struct json_value *object, const char *key);
/* False when the member is missing or of another type; *out stays. */
bool json_get_i64(const struct json_value *object, const char *key, int64_t *out_value);
bool json_get_bool(const struct json_value *object, const char *key, bool *out_value);
bool json_value_i64(const struct json_value *value, int64_t *out_value);

/* Makers return NULL when the arena is full; setters given a NULL value answer false, so that
 * `json_set(arena, o, "k", json_new_text(arena, t))` needs one check. Text is copied. */
struct json_value *json_new_object(struct arena *arena);
struct json_value *json_new_array(struct arena *arena);
struct json_value *json_new_text(struct arena *arena, const char *text);
struct json_value *json_new_string(struct arena *arena, const void *text, size_t bytes);
struct json_value *json_new_i64(struct arena *arena, int64_t value);
struct json_value *json_new_bool(struct arena *arena, bool value);
struct json_value *json_new_null(struct arena *arena);
struct json_value *json_copy(struct arena *arena, const struct json_value *value); /* deep */

/* Replaces the member in its place, or adds it at the end; takes `value` into the tree. */
bool json_set(struct arena *arena, struct json_value *object, const char *key,
              struct json_value *value) MUST_CHECK;
bool json_append(struct json_value *array, struct json_value *value) MUST_CHECK;
bool json_remove(struct json_value *object, const char *key); /* true if it was there */
/* Removes the `count` first children. */
void json_remove_first(struct json_value *array, size_t count);
/* Removes one child by identity; true if it was there. */
bool json_remove_child(struct json_value *container, const struct json_value *child);

bool json_equal(const struct json_value *a, const struct json_value *b); /* members in any order;
                                                                          * numbers by text */

#endif
