/* SPDX-License-Identifier: Apache-2.0
 *
 * The first pass: which columns there are, and which kinds of values they hold. Recursion is
 * bounded by the limit of depth, since each level of it is a level of columns.
 */
#include "format/ndjson/ndjson_internal.h"

enum {
    INT_DIGITS_SURE = 18,   /* so many fit into int64 */
    REAL_DIGITS_SURE = 300, /* so many, without an exponent, into a double */
};

static uint8_t kind_of_number(struct span text)
{
    int64_t integer;
    double real;
    bool has_point = false, has_exponent = false;
    for (size_t i = 0; i < text.length; i++) {
        has_point |= text.data[i] == '.';
        has_exponent |= (text.data[i] | 0x20) == 'e';
    }
    if (!has_point && !has_exponent &&
        (text.length <= INT_DIGITS_SURE || json_number_to_i64(text, &integer)))
        return KIND_INT;
    if (!has_exponent && text.length <= REAL_DIGITS_SURE)
        return KIND_REAL;
    return json_number_to_double(text, &real) ? KIND_REAL : KIND_HUGE;
}

static uint8_t kind_of(enum json_event event, struct span text)
{
    switch (event) {
    case JSON_EVENT_OBJECT_BEGIN:
        return KIND_OBJECT;
    case JSON_EVENT_ARRAY_BEGIN:
        return KIND_LIST;
    case JSON_EVENT_STRING:
        return KIND_STRING;
    case JSON_EVENT_NUMBER:
        return kind_of_number(text);
    case JSON_EVENT_TRUE:
    case JSON_EVENT_FALSE:
        return KIND_BOOL;
    default:
        return 0;
    }
}

static enum status infer_members(struct columns *columns, struct column *column,
                                 struct json_reader *json, struct error *err);

static enum status infer_elements(struct columns *columns, struct column *column,
                                  struct json_reader *json, struct error *err);

/* The value whose first event it is. Of what is mixed nothing inside matters any more. */
static enum status infer_value(struct columns *columns, struct column *column,
                               struct json_reader *json, enum json_event event, struct error *err)
{
    column->kinds |= kind_of(event, json->text);
    if (column_is_mixed(column))
        return json_reader_skip(json, event, err);
    if (event == JSON_EVENT_OBJECT_BEGIN)
        return infer_members(columns, column, json, err);
    if (event == JSON_EVENT_ARRAY_BEGIN)
        return infer_elements(columns, column, json, err);
    return STATUS_OK;
}

static enum status infer_members(struct columns *columns, struct column *column,
                                 struct json_reader *json, struct error *err)
{
    struct column *expected = column->first;
    for (;;) {
        enum json_event event;
        TRY(json_reader_next(json, &event, err));
        if (event == JSON_EVENT_OBJECT_END)
            return STATUS_OK;
        struct column *member = columns_find(columns, column, expected, json->text);
        if (!member)
            TRY(columns_add(columns, column, json->text, &member, err));
        expected = member->next;
        TRY(json_reader_next(json, &event, err));
        TRY(infer_value(columns, member, json, event, err));
    }
}

static enum status infer_elements(struct columns *columns, struct column *column,
                                  struct json_reader *json, struct error *err)
{
    struct column *element = column->first;
    if (!element)
        TRY(columns_add(columns, column, span_of_text("element"), &element, err));
    for (;;) {
        enum json_event event;
        TRY(json_reader_next(json, &event, err));
        if (event == JSON_EVENT_ARRAY_END)
            return STATUS_OK;
        TRY(infer_value(columns, element, json, event, err));
    }
}

enum status infer_line(struct columns *columns, struct json_reader *json, struct error *err)
{
    enum json_event event;
    TRY(json_reader_next(json, &event, err));
    if (event != JSON_EVENT_OBJECT_BEGIN)
        return error_set(err, STATUS_INVALID, "the line is no JSON object");
    TRY(infer_members(columns, columns->root, json, err));
    return json_reader_next(json, &event, err); /* nothing but the end may follow */
}
