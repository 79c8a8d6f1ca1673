/* SPDX-License-Identifier: Apache-2.0
 *
 * Leaves of Arrow as JSON: what their origin says stands in fixed bytes.
 */
#include "app/cmd/files_internal.h"

static int64_t units_a_second(enum arrow_unit unit)
{
    static const int64_t units[] = {1, 1000, 1000000, 1000000000};
    return units[unit];
}

static void write_little_decimal(struct json_writer *json, struct span bytes, int32_t scale)
{
    enum { DECIMAL_BYTES_MAX = 32 };
    uint8_t turned[DECIMAL_BYTES_MAX];
    CHECK(bytes.length <= sizeof turned);
    for (size_t i = 0; i < bytes.length; i++)
        turned[i] = bytes.data[bytes.length - 1 - i];
    row_write_decimal(json, span_of(turned, bytes.length), scale);
}

static void write_date_ms(struct json_writer *json, int64_t value)
{
    enum { MS_A_DAY = 86400000 };
    if (value % MS_A_DAY) /* not what the format allows, but what stands there */
        row_write_timestamp(json, value, 1000, false);
    else
        row_write_date(json, value / MS_A_DAY);
}

static void write_part(struct json_writer *json, const char *name, int64_t value)
{
    json_write_key(json, name);
    json_write_i64(json, value);
}

/* The parts of an interval, which have no common unit. */
static void write_interval(struct json_writer *json, enum arrow_origin_kind kind,
                           const uint8_t *from)
{
    json_write_object_begin(json);
    if (kind != ARROW_ORIGIN_DAY_TIME)
        write_part(json, "months", get_le_signed(from, 4));
    if (kind == ARROW_ORIGIN_DAY_TIME) {
        write_part(json, "days", get_le_signed(from, 4));
        write_part(json, "milliseconds", get_le_signed(from + 4, 4));
    } else if (kind == ARROW_ORIGIN_MONTH_DAY_NANO) {
        write_part(json, "days", get_le_signed(from + 4, 4));
        write_part(json, "nanoseconds", get_le_signed(from + 8, 8));
    }
    json_write_object_end(json);
}

void row_write_arrow_leaf(struct json_writer *json, const void *context, uint32_t leaf,
                          const struct arrow_field *field, const struct arrow_array *array,
                          int64_t i)
{
    UNUSED(context);
    UNUSED(leaf);
    const struct arrow_origin *origin = field->origin;
    if (!origin || field->type != ARROW_FIXED) {
        row_write_plain_leaf(json, field, array, i);
        return;
    }
    struct span bytes = slot_bytes(field, array, i);
    switch (origin->kind) {
    case ARROW_ORIGIN_INT:
    case ARROW_ORIGIN_DURATION:
        json_write_i64(json, get_le_signed(bytes.data, (size_t)field->byte_width));
        break;
    case ARROW_ORIGIN_UINT:
        json_write_u64(json, get_le_unsigned(bytes.data, (size_t)field->byte_width));
        break;
    case ARROW_ORIGIN_HALF:
        row_write_half(json, get_le16(bytes.data));
        break;
    case ARROW_ORIGIN_DECIMAL:
        write_little_decimal(json, bytes, origin->scale);
        break;
    case ARROW_ORIGIN_DATE_MS:
        write_date_ms(json, get_le_signed(bytes.data, 8));
        break;
    case ARROW_ORIGIN_TIME:
        row_write_time(json, get_le_signed(bytes.data, (size_t)field->byte_width),
                       units_a_second(origin->unit));
        break;
    case ARROW_ORIGIN_TIMESTAMP:
        row_write_timestamp(json, get_le_signed(bytes.data, 8), units_a_second(origin->unit),
                            field->is_instant);
        break;
    case ARROW_ORIGIN_MONTHS:
    case ARROW_ORIGIN_DAY_TIME:
    case ARROW_ORIGIN_MONTH_DAY_NANO:
        write_interval(json, origin->kind, bytes.data);
        break;
    case ARROW_ORIGIN_SAME:
    case ARROW_ORIGIN_LARGE:
    case ARROW_ORIGIN_VIEW:
    case ARROW_ORIGIN_FIXED_LIST:
    case ARROW_ORIGIN_LIST_VIEW:
    case ARROW_ORIGIN_LARGE_LIST_VIEW:
        if (origin->extension && strcmp(origin->extension, "arrow.uuid") == 0 &&
            bytes.length == sizeof(struct uuid))
            row_write_uuid(json, bytes.data);
        else
            row_write_base64(json, bytes);
        break;
    }
}
