/* SPDX-License-Identifier: Apache-2.0
 *
 * The first pass: which columns there are, and which kinds of values they hold. Recursion is
 * bounded by the limit of depth, since each level of it is a level of columns.
 */
#include <math.h>

#include "format/ndjson/ndjson_internal.h"

enum { DIGITS_SURE = 15 }; /* so many fit into int64 and into a double */

bool read_named_number(struct span text, double *out_value)
{
    if (span_equal(text, span_of_text("NaN")))
        *out_value = (double)NAN;
    else if (span_equal(text, span_of_text("Infinity")))
        *out_value = (double)INFINITY;
    else if (span_equal(text, span_of_text("-Infinity")))
        *out_value = -(double)INFINITY;
    else
        return false;
    return true;
}

/* An integer too, if it has no point and no exponent. */
static unsigned kind_of_integer(struct span text)
{
    int64_t integer;
    uint64_t natural;
    if (json_number_to_i64(text, &integer))
        return KIND_INT | (integer < 0 ? KIND_NEGATIVE : 0);
    return json_number_to_u64(text, &natural) ? KIND_UINT : KIND_REAL;
}

static unsigned kind_of_number(struct span text)
{
    double real;
    bool has_point = false, has_exponent = false;
    for (size_t i = 0; i < text.length; i++) {
        has_point |= text.data[i] == '.';
        has_exponent |= (text.data[i] | 0x20) == 'e';
    }
    bool is_integer = !has_point && !has_exponent;
    if (!has_exponent && text.length <= DIGITS_SURE)
        return !is_integer ? KIND_REAL : KIND_INT | (text.data[0] == '-' ? KIND_NEGATIVE : 0);
    unsigned kind = is_integer ? kind_of_integer(text) : KIND_REAL;
    bool is_kept = json_number_to_double(text, &real) && double_keeps_digits(text, real);
    return kind | (is_kept ? 0 : KIND_LONG);
}

static unsigned kind_of(enum json_event event, struct span text)
{
    double named;
    switch (event) {
    case JSON_EVENT_OBJECT_BEGIN:
        return KIND_OBJECT;
    case JSON_EVENT_ARRAY_BEGIN:
        return KIND_LIST;
    case JSON_EVENT_STRING:
        return read_named_number(text, &named) ? KIND_NAMED : KIND_STRING;
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
    column->kinds |= (uint16_t)kind_of(event, json->text);
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
