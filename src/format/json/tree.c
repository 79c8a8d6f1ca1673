/* SPDX-License-Identifier: Apache-2.0
 *
 * The tree: values are lists of children in an arena. Parsing keeps its own stack; writing, copying
 * and comparing recurse, to the depth that parsing allows.
 */
#include "format/json/json.h"

/* ---- parsing ---- */

static void append_child(struct json_value *container, struct json_value *child)
{
    child->next = NULL;
    if (container->last)
        container->last->next = child;
    else
        container->first = child;
    container->last = child;
    container->count++;
}

static struct json_value *new_value(struct arena *arena, enum json_type type)
{
    struct json_value *value = arena_alloc_zero(arena, 1, sizeof *value);
    if (value)
        value->type = type;
    return value;
}

/* The value that `event` begins; NULL when the arena is full. */
static struct json_value *value_of_event(const struct json_reader *reader, enum json_event event,
                                         struct arena *arena)
{
    static const enum json_type types[] = {
        [JSON_EVENT_OBJECT_BEGIN] = JSON_OBJECT, [JSON_EVENT_ARRAY_BEGIN] = JSON_ARRAY,
        [JSON_EVENT_STRING] = JSON_STRING,       [JSON_EVENT_NUMBER] = JSON_NUMBER,
        [JSON_EVENT_TRUE] = JSON_BOOL,           [JSON_EVENT_FALSE] = JSON_BOOL,
        [JSON_EVENT_NULL] = JSON_NULL,
    };
    struct json_value *value = new_value(arena, types[event]);
    if (!value)
        return NULL;
    value->boolean = event == JSON_EVENT_TRUE;
    if (event == JSON_EVENT_STRING || event == JSON_EVENT_NUMBER) {
        value->length = reader->text.length;
        value->text = arena_copy_text(arena, (const char *)reader->text.data, value->length);
        if (!value->text)
            return NULL;
    }
    return value;
}

static enum status arena_full(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "JSON tree: out of memory");
}

enum status json_parse(const void *data, size_t bytes, struct arena *arena,
                       struct json_value **out_value, struct error *err)
{
    struct json_value *stack[JSON_DEPTH_MAX], *root = NULL;
    const char *key = NULL;
    size_t key_length = 0;
    uint32_t depth = 0;
    struct json_reader reader;
    enum status status;
    json_reader_init(&reader, data, bytes);
    for (;;) {
        enum json_event event;
        TRY_OR_DONE(status, json_reader_next(&reader, &event, err));
        if (event == JSON_EVENT_END)
            break;
        if (event == JSON_EVENT_OBJECT_END || event == JSON_EVENT_ARRAY_END) {
            depth--;
            continue;
        }
        if (event == JSON_EVENT_KEY) {
            key_length = reader.text.length;
            key = arena_copy_text(arena, (const char *)reader.text.data, key_length);
            if (!key) {
                status = arena_full(err);
                goto done;
            }
            continue;
        }
        struct json_value *value = value_of_event(&reader, event, arena);
        if (!value) {
            status = arena_full(err);
            goto done;
        }
        if (depth == 0) {
            root = value;
        } else {
            if (stack[depth - 1]->type == JSON_OBJECT) {
                value->key = key;
                value->key_length = key_length;
            }
            append_child(stack[depth - 1], value);
        }
        if (event == JSON_EVENT_OBJECT_BEGIN || event == JSON_EVENT_ARRAY_BEGIN)
            stack[depth++] = value;
    }
    *out_value = root;
done:
    json_reader_deinit(&reader);
    return status;
}

/* ---- writing ---- */

void json_write_value(struct json_writer *writer, const struct json_value *value)
{
    switch (value->type) {
    case JSON_NULL:
        json_write_null(writer);
        return;
    case JSON_BOOL:
        json_write_bool(writer, value->boolean);
        return;
    case JSON_NUMBER:
        json_write_raw(writer, value->text, value->length);
        return;
    case JSON_STRING:
        json_write_string(writer, value->text, value->length);
        return;
    case JSON_ARRAY:
        json_write_array_begin(writer);
        for (const struct json_value *child = value->first; child; child = child->next)
            json_write_value(writer, child);
        json_write_array_end(writer);
        return;
    case JSON_OBJECT:
        json_write_object_begin(writer);
        for (const struct json_value *child = value->first; child; child = child->next) {
            json_write_key_bytes(writer, child->key, child->key_length);
            json_write_value(writer, child);
        }
        json_write_object_end(writer);
        return;
    }
}

enum status json_serialize(const struct json_value *value, struct buf *out, struct error *err)
{
    struct json_writer writer;
    json_writer_init(&writer, out);
    json_write_value(&writer, value);
    return buf_status(out, "JSON document", err);
}

/* ---- reading ---- */

static bool has_key(const struct json_value *member, const char *key, size_t length)
{
    return member->key_length == length && memcmp(member->key, key, length) == 0;
}

struct json_value *json_get(const struct json_value *object, const char *key)
{
    if (!object || object->type != JSON_OBJECT)
        return NULL;
    size_t length = strlen(key);
    struct json_value *found = NULL;
    for (struct json_value *member = object->first; member; member = member->next) {
        if (has_key(member, key, length))
            found = member;
    }
    return found;
}

struct json_value *json_at(const struct json_value *array, size_t index)
{
    if (!array || array->type != JSON_ARRAY)
        return NULL;
    struct json_value *child = array->first;
    while (child && index--)
        child = child->next;
    return child;
}

const char *json_get_text(const struct json_value *object, const char *key)
{
    const struct json_value *value = json_get(object, key);
    if (!value || value->type != JSON_STRING || strlen(value->text) != value->length)
        return NULL;
    return value->text;
}

bool json_value_i64(const struct json_value *value, int64_t *out_value)
{
    return value && value->type == JSON_NUMBER &&
           json_number_to_i64(span_of(value->text, value->length), out_value);
}

bool json_get_i64(const struct json_value *object, const char *key, int64_t *out_value)
{
    return json_value_i64(json_get(object, key), out_value);
}

bool json_get_bool(const struct json_value *object, const char *key, bool *out_value)
{
    const struct json_value *value = json_get(object, key);
    if (!value || value->type != JSON_BOOL)
        return false;
    *out_value = value->boolean;
    return true;
}

/* ---- making and changing ---- */

struct json_value *json_new_object(struct arena *arena)
{
    return new_value(arena, JSON_OBJECT);
}

struct json_value *json_new_array(struct arena *arena)
{
    return new_value(arena, JSON_ARRAY);
}

static struct json_value *new_with_text(struct arena *arena, enum json_type type, const char *text,
                                        size_t bytes)
{
    struct json_value *value = new_value(arena, type);
    if (!value)
        return NULL;
    value->length = bytes;
    value->text = arena_copy_text(arena, text, bytes);
    return value->text ? value : NULL;
}

struct json_value *json_new_string(struct arena *arena, const void *text, size_t bytes)
{
    return new_with_text(arena, JSON_STRING, text, bytes);
}

struct json_value *json_new_text(struct arena *arena, const char *text)
{
    return new_with_text(arena, JSON_STRING, text, strlen(text));
}

struct json_value *json_new_i64(struct arena *arena, int64_t value)
{
    char text[I64_TEXT_MAX];
    size_t length = i64_to_text(text, value);
    return new_with_text(arena, JSON_NUMBER, text, length);
}

struct json_value *json_new_bool(struct arena *arena, bool boolean)
{
    struct json_value *value = new_value(arena, JSON_BOOL);
    if (value)
        value->boolean = boolean;
    return value;
}

struct json_value *json_new_null(struct arena *arena)
{
    return new_value(arena, JSON_NULL);
}

struct json_value *json_copy(struct arena *arena, const struct json_value *value)
{
    struct json_value *copy = value->type == JSON_STRING || value->type == JSON_NUMBER
                                  ? new_with_text(arena, value->type, value->text, value->length)
                                  : new_value(arena, value->type);
    if (!copy)
        return NULL;
    copy->boolean = value->boolean;
    for (const struct json_value *child = value->first; child; child = child->next) {
        struct json_value *child_copy = json_copy(arena, child);
        if (!child_copy)
            return NULL;
        if (value->type == JSON_OBJECT) {
            child_copy->key_length = child->key_length;
            child_copy->key = arena_copy_text(arena, child->key, child->key_length);
            if (!child_copy->key)
                return NULL;
        }
        append_child(copy, child_copy);
    }
    return copy;
}

bool json_set(struct arena *arena, struct json_value *object, const char *key,
              struct json_value *value)
{
    if (!object || !value)
        return false;
    CHECK(object->type == JSON_OBJECT && !value->key && !value->next);
    size_t length = strlen(key);
    value->key_length = length;
    value->key = arena_copy_text(arena, key, length);
    if (!value->key)
        return false;
    struct json_value *old = json_get(object, key);
    if (!old) {
        append_child(object, value);
        return true;
    }
    struct json_value **link = &object->first;
    while (*link != old)
        link = &(*link)->next;
    value->next = old->next;
    *link = value;
    if (object->last == old)
        object->last = value;
    old->next = NULL;
    return true;
}

bool json_append(struct json_value *array, struct json_value *value)
{
    if (!array || !value)
        return false;
    CHECK(array->type == JSON_ARRAY && !value->next);
    append_child(array, value);
    return true;
}

bool json_remove_child(struct json_value *container, const struct json_value *child)
{
    struct json_value *before = NULL;
    for (struct json_value *at = container->first; at; before = at, at = at->next) {
        if (at != child)
            continue;
        if (before)
            before->next = at->next;
        else
            container->first = at->next;
        if (container->last == at)
            container->last = before;
        container->count--;
        at->next = NULL;
        return true;
    }
    return false;
}

bool json_remove(struct json_value *object, const char *key)
{
    bool was_there = false;
    struct json_value *member;
    while ((member = json_get(object, key)))
        was_there = json_remove_child(object, member);
    return was_there;
}

void json_remove_first(struct json_value *array, size_t count)
{
    for (; count && array->first; count--)
        json_remove_child(array, array->first);
}

static bool members_equal(const struct json_value *a, const struct json_value *b)
{
    for (const struct json_value *member = a->first; member; member = member->next) {
        const struct json_value *other = json_get(b, member->key);
        if (!other || !json_equal(member, other))
            return false;
    }
    return true;
}

bool json_equal(const struct json_value *a, const struct json_value *b)
{
    if (a->type != b->type || a->count != b->count)
        return false;
    switch (a->type) {
    case JSON_NULL:
        return true;
    case JSON_BOOL:
        return a->boolean == b->boolean;
    case JSON_NUMBER:
    case JSON_STRING:
        return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
    case JSON_OBJECT:
        return members_equal(a, b);
    case JSON_ARRAY:
        break;
    }
    const struct json_value *left = a->first, *right = b->first;
    for (; left && right; left = left->next, right = right->next) {
        if (!json_equal(left, right))
            return false;
    }
    return true;
}
