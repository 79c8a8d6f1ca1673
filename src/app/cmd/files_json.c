/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of the formats as JSON; see files_internal.h.
 */
#include <inttypes.h>

#include "app/cmd/files_internal.h"

/* ---- times ---- */

enum { TIME_TEXT_MAX = 64, SECONDS_A_DAY = 86400 };

static void put_date(struct buf *out, int64_t days)
{
    struct civil_date date = civil_from_days(days);
    buf_format(out, "%04" PRId64 "-%02d-%02d", date.year, date.month, date.day);
}

/* Without a fraction where the unit is a second. */
static void put_time_of_day(struct buf *out, int64_t of_day, int64_t units)
{
    int64_t seconds = of_day / units;
    int digits = units == 1000 ? 3 : units == 1000000 ? 6 : 9;
    buf_format(out, "%02d:%02d:%02d", (int)(seconds / 3600), (int)(seconds / 60 % 60),
               (int)(seconds % 60));
    if (units > 1)
        buf_format(out, ".%0*" PRId64, digits, of_day % units);
}

static int64_t floor_divide(int64_t value, int64_t by)
{
    return value / by - (value % by < 0);
}

void row_write_date(struct json_writer *json, int64_t days)
{
    uint8_t memory[TIME_TEXT_MAX];
    struct buf text = {.data = memory, .capacity = sizeof memory, .bytes_max = sizeof memory};
    put_date(&text, days);
    json_write_string(json, text.data, text.length);
}

void row_write_time(struct json_writer *json, int64_t value, int64_t units)
{
    uint8_t memory[TIME_TEXT_MAX];
    struct buf text = {.data = memory, .capacity = sizeof memory, .bytes_max = sizeof memory};
    if (floor_divide(value, units * SECONDS_A_DAY)) {
        json_write_i64(json, value);
        return;
    }
    put_time_of_day(&text, value, units);
    json_write_string(json, text.data, text.length);
}

void row_write_timestamp(struct json_writer *json, int64_t value, int64_t units, bool is_utc)
{
    uint8_t memory[TIME_TEXT_MAX];
    struct buf text = {.data = memory, .capacity = sizeof memory, .bytes_max = sizeof memory};
    int64_t a_day = units * SECONDS_A_DAY;
    put_date(&text, floor_divide(value, a_day));
    buf_put_byte(&text, 'T');
    put_time_of_day(&text, value % a_day + (value % a_day < 0 ? a_day : 0), units);
    if (is_utc)
        buf_put_byte(&text, 'Z');
    json_write_string(json, text.data, text.length);
}

/* ---- numbers ---- */

enum { DECIMAL_BYTES_MAX = 64, DECIMAL_DIGITS_MAX = 160, SCALE_MAX = 1000 };

/* The digits of a number of `count` words, least first, which it uses up; returns how many. From
 * the last digit on, written backwards from `end`. */
static int put_digits(uint32_t *words, int count, char *end)
{
    int digits = 0;
    while (count) {
        uint64_t rest = 0;
        for (int i = count; i-- > 0;) {
            uint64_t part = rest << 32 | words[i];
            words[i] = (uint32_t)(part / 10);
            rest = part % 10;
        }
        *--end = (char)('0' + (int)rest);
        digits++;
        while (count && words[count - 1] == 0)
            count--;
    }
    return digits;
}

static int load_magnitude(struct span bytes, bool is_negative, uint32_t *words)
{
    uint64_t carry = is_negative;
    int count = (int)((bytes.length + 3) / 4);
    for (int i = 0; i < count; i++) {
        uint32_t word = 0;
        for (size_t j = 0; j < 4; j++) {
            size_t at = (size_t)i * 4 + j; /* from the least byte on */
            uint8_t byte = at < bytes.length ? bytes.data[bytes.length - 1 - at]
                           : is_negative     ? 0xff
                                             : 0;
            word |= (uint32_t)byte << (8 * j);
        }
        carry += is_negative ? ~word : word;
        words[i] = (uint32_t)carry;
        carry >>= 32;
    }
    while (count && words[count - 1] == 0)
        count--;
    return count;
}

void row_write_decimal(struct json_writer *json, struct span bytes, int32_t scale)
{
    uint32_t words[DECIMAL_BYTES_MAX / 4];
    char digits[DECIMAL_DIGITS_MAX];
    if (bytes.length == 0 || bytes.length > DECIMAL_BYTES_MAX || scale > SCALE_MAX ||
        scale < -SCALE_MAX) {
        row_write_base64(json, bytes);
        return;
    }
    bool is_negative = bytes.data[0] & 0x80;
    int word_count = load_magnitude(bytes, is_negative, words);
    int count = put_digits(words, word_count, digits + sizeof digits);
    const char *first = digits + sizeof digits - count;
    struct buf text = {0};
    if (is_negative)
        buf_put_byte(&text, '-');
    if (count <= scale || count == 0)
        buf_put_byte(&text, '0');
    else
        buf_put(&text, first, (size_t)(scale > 0 ? count - scale : count));
    for (int32_t i = scale; i < 0 && count; i++)
        buf_put_byte(&text, '0');
    if (scale > 0) {
        buf_put_byte(&text, '.');
        for (int32_t i = count; i < scale; i++)
            buf_put_byte(&text, '0');
        int shown = count < scale ? count : scale;
        buf_put(&text, first + (count - shown), (size_t)shown);
    }
    json->out->failed |= text.failed;
    json_write_raw(json, text.data, text.length);
    buf_deinit(&text);
}

void row_write_half(struct json_writer *json, uint16_t half)
{
    json_write_double(json, arrow_half_value(half));
}

/* ---- bytes ---- */

void row_write_base64(struct json_writer *json, struct span bytes)
{
    char *text = mem_alloc(4 * ((bytes.length + 2) / 3) + 1);
    if (text)
        json_write_string(json, text, base64_encode(text, bytes.data, bytes.length));
    else
        json->out->failed = true;
    mem_free(text);
}

void row_write_uuid(struct json_writer *json, const uint8_t bytes[16])
{
    struct uuid uuid;
    char text[UUID_TEXT_BYTES];
    memcpy(&uuid, bytes, sizeof uuid);
    uuid_to_text(uuid, text);
    json_write_text(json, text);
}

/* ---- slots ---- */

struct span slot_bytes(const struct arrow_field *field, const struct arrow_array *array, int64_t i)
{
    const uint8_t *data = array->values;
    if (field->type == ARROW_FIXED)
        return span_of(data + i * field->byte_width, (size_t)field->byte_width);
    return span_of(data + array->offsets[i], (size_t)(array->offsets[i + 1] - array->offsets[i]));
}

void row_write_plain_leaf(struct json_writer *json, const struct arrow_field *field,
                          const struct arrow_array *array, int64_t i)
{
    struct span bytes;
    switch (field->type) {
    case ARROW_NULL:
        json_write_null(json);
        break;
    case ARROW_BOOL:
        json_write_bool(json, arrow_bit(array->values, i));
        break;
    case ARROW_INT32:
        json_write_i64(json, ((const int32_t *)array->values)[i]);
        break;
    case ARROW_DATE32:
        row_write_date(json, ((const int32_t *)array->values)[i]);
        break;
    case ARROW_INT64:
        json_write_i64(json, ((const int64_t *)array->values)[i]);
        break;
    case ARROW_TIMESTAMP_US:
        row_write_timestamp(json, ((const int64_t *)array->values)[i], 1000000, field->is_instant);
        break;
    case ARROW_FLOAT:
        json_write_double(json, (double)((const float *)array->values)[i]);
        break;
    case ARROW_DOUBLE:
        json_write_double(json, ((const double *)array->values)[i]);
        break;
    case ARROW_UTF8:
        bytes = slot_bytes(field, array, i);
        json_write_string(json, bytes.data, bytes.length);
        break;
    default:
        row_write_base64(json, slot_bytes(field, array, i));
        break;
    }
}

uint32_t count_leaves(const struct arrow_field *field)
{
    uint32_t count = field->child_count == 0;
    for (uint32_t i = 0; i < field->child_count; i++)
        count += count_leaves(&field->children[i]);
    return count;
}

/* The slot that stands for it: of a dictionary, the value. False: null. */
static bool resolve(const struct arrow_field *field, const struct arrow_array **inout_array,
                    int64_t *inout_i)
{
    if (!arrow_is_valid(*inout_array, *inout_i))
        return false;
    if (!field->is_dictionary)
        return field->type != ARROW_NULL;
    *inout_i = ((const int32_t *)(*inout_array)->values)[*inout_i];
    *inout_array = (*inout_array)->dictionary;
    return arrow_is_valid(*inout_array, *inout_i) && field->type != ARROW_NULL;
}

/* Maps whose keys are text are objects. */
static void write_map(struct json_writer *json, const struct leaf_writer *leaves, uint32_t leaf,
                      const struct arrow_field *field, const struct arrow_array *array, int64_t i)
{
    const struct arrow_field *key = &field->children[0], *value = &field->children[1];
    uint32_t value_leaf = leaf + count_leaves(key);
    bool is_object = key->type == ARROW_UTF8;
    if (is_object)
        json_write_object_begin(json);
    else
        json_write_array_begin(json);
    for (int64_t at = array->offsets[i]; at < array->offsets[i + 1]; at++) {
        const struct arrow_array *keys = &array->children[0];
        int64_t key_at = at;
        if (is_object && resolve(key, &keys, &key_at)) {
            struct span text = slot_bytes(key, keys, key_at);
            json_write_key_bytes(json, text.data, text.length);
        } else if (is_object) {
            json_write_key(json, ""); /* keys are never null, but a dictionary's value may be */
        } else {
            json_write_array_begin(json);
            row_write_slot(json, leaves, leaf, key, keys, at);
        }
        row_write_slot(json, leaves, value_leaf, value, &array->children[1], at);
        if (!is_object)
            json_write_array_end(json);
    }
    if (is_object)
        json_write_object_end(json);
    else
        json_write_array_end(json);
}

void row_write_slot(struct json_writer *json, const struct leaf_writer *leaves, uint32_t leaf,
                    const struct arrow_field *field, const struct arrow_array *array, int64_t i)
{
    if (!resolve(field, &array, &i)) {
        json_write_null(json);
    } else if (field->type == ARROW_STRUCT) {
        json_write_object_begin(json);
        for (uint32_t j = 0; j < field->child_count; j++) {
            json_write_key(json, field->children[j].name);
            row_write_slot(json, leaves, leaf, &field->children[j], &array->children[j], i);
            leaf += count_leaves(&field->children[j]);
        }
        json_write_object_end(json);
    } else if (field->type == ARROW_LIST) {
        json_write_array_begin(json);
        for (int64_t at = array->offsets[i]; at < array->offsets[i + 1]; at++)
            row_write_slot(json, leaves, leaf, &field->children[0], &array->children[0], at);
        json_write_array_end(json);
    } else if (field->type == ARROW_MAP) {
        write_map(json, leaves, leaf, field, array, i);
    } else {
        leaves->write(json, leaves->context, leaf, field, array, i);
    }
}
