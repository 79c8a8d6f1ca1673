/* SPDX-License-Identifier: Apache-2.0
 *
 * What annotations say, as Arrow types: the physical values of a batch become those of fields with
 * an origin. The counterpart of physical.c. Source: Parquet's LogicalTypes.md.
 */
#include "format/parquet/reader_internal.h"

enum {
    DECIMAL_BYTES = 16,
    WIDE_DECIMAL_BYTES = 32,
    DECIMAL_DIGITS = 38, /* in 16 bytes */
    INTERVAL_BYTES = 16, /* of Arrow's months, days and nanoseconds */
    MS_A_DAY = 86400000,
};

/* ---- fields ---- */

static void keep_as(struct arrow_field *field, struct arrow_origin *origin,
                    enum arrow_origin_kind kind, int32_t width)
{
    field->type = ARROW_FIXED;
    field->byte_width = width;
    field->origin = origin;
    origin->kind = kind;
}

/* Leaves the field as it is where its Arrow type says all, or where there is none for it. */
static void set_logical(const struct parquet_leaf *leaf, struct arrow_field *field,
                        struct arrow_origin *origin)
{
    static const enum arrow_unit units[] = {ARROW_MILLIS, ARROW_MICROS, ARROW_NANOS};
    origin->unit = units[leaf->unit];
    switch (leaf->kind) {
    case PARQUET_KIND_INTEGER:
        if (leaf->is_unsigned)
            keep_as(field, origin, ARROW_ORIGIN_UINT, leaf->bits / 8);
        else if (leaf->bits < 32)
            keep_as(field, origin, ARROW_ORIGIN_INT, leaf->bits / 8);
        break;
    case PARQUET_KIND_DECIMAL:
        origin->precision = leaf->precision;
        origin->scale = leaf->scale;
        keep_as(field, origin, ARROW_ORIGIN_DECIMAL,
                leaf->precision > DECIMAL_DIGITS ? WIDE_DECIMAL_BYTES : DECIMAL_BYTES);
        break;
    case PARQUET_KIND_TIME:
        keep_as(field, origin, ARROW_ORIGIN_TIME, leaf->unit == PARQUET_MILLIS ? 4 : 8);
        field->is_instant = leaf->is_utc;
        break;
    case PARQUET_KIND_TIMESTAMP:
        if (leaf->unit == PARQUET_MICROS)
            break;
        keep_as(field, origin, ARROW_ORIGIN_TIMESTAMP, 8);
        field->is_instant = leaf->is_utc;
        break;
    case PARQUET_KIND_UUID:
        if (leaf->physical != PARQUET_FIXED || leaf->width != sizeof(struct uuid))
            break;
        origin->extension = "arrow.uuid";
        keep_as(field, origin, ARROW_ORIGIN_SAME, (int32_t)leaf->width);
        break;
    case PARQUET_KIND_FLOAT16:
        if (leaf->physical == PARQUET_FIXED && leaf->width == sizeof(uint16_t))
            keep_as(field, origin, ARROW_ORIGIN_HALF, sizeof(uint16_t));
        break;
    case PARQUET_KIND_INTERVAL:
        keep_as(field, origin, ARROW_ORIGIN_MONTH_DAY_NANO, INTERVAL_BYTES);
        break;
    default:
        if (!leaf->extension)
            break;
        origin->extension = leaf->extension;
        origin->kind = ARROW_ORIGIN_SAME;
        field->origin = origin;
        break;
    }
}

static enum status make_logical(const struct parquet_file *file, struct arrow_field *fields,
                                uint32_t count, uint32_t *inout_leaf, struct arena *arena,
                                struct error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        if (fields[i].child_count) {
            TRY(make_logical(file, fields[i].children, fields[i].child_count, inout_leaf, arena,
                             err));
            continue;
        }
        struct arrow_origin *origin = arena_alloc_zero(arena, 1, sizeof *origin);
        if (!origin)
            return error_set(err, STATUS_NO_MEMORY, "parquet: no memory for a schema");
        set_logical(&file->leaves[(*inout_leaf)++], &fields[i], origin);
    }
    return STATUS_OK;
}

enum status parquet_logical_schema(const struct parquet_file *file, struct arena *arena,
                                   struct arrow_schema *out_schema, struct error *err)
{
    struct arrow_schema schema;
    uint32_t leaf = 0;
    TRY(arrow_schema_copy(&file->schema, arena, &schema, err));
    TRY(make_logical(file, schema.fields, schema.field_count, &leaf, arena, err));
    CHECK(leaf == file->leaf_count);
    *out_schema = schema;
    return STATUS_OK;
}

/* ---- values ---- */

/* Big-endian two's complement of any length in `width` little-endian bytes. False: it has more. */
static bool turn_decimal(struct span from, uint8_t *to, size_t width)
{
    uint8_t fill = from.length && from.data[0] & 0x80 ? 0xff : 0;
    for (size_t i = 0; i < width; i++)
        to[i] = i < from.length ? from.data[from.length - 1 - i] : fill;
    for (size_t i = width; i < from.length; i++) {
        if (from.data[from.length - 1 - i] != fill)
            return false;
    }
    return (to[width - 1] & 0x80) == (fill & 0x80);
}

/* A decimal is an integer of the host's order, or big-endian bytes. */
static bool load_decimal(const struct arrow_field *physical, const struct arrow_array *array,
                         int64_t i, uint8_t *to, size_t width)
{
    if (physical->type == ARROW_INT32 || physical->type == ARROW_INT64) {
        int64_t value = physical->type == ARROW_INT32 ? ((const int32_t *)array->values)[i]
                                                      : ((const int64_t *)array->values)[i];
        uint64_t turned = __builtin_bswap64((uint64_t)value);
        return turn_decimal(span_of(&turned, sizeof turned), to, width);
    }
    const uint8_t *bytes = array->values;
    if (physical->type == ARROW_FIXED)
        return turn_decimal(span_of(bytes + i * physical->byte_width, (size_t)physical->byte_width),
                            to, width);
    return turn_decimal(
        span_of(bytes + array->offsets[i], (size_t)(array->offsets[i + 1] - array->offsets[i])), to,
        width);
}

static int32_t physical_width(const struct arrow_field *field)
{
    return field->type == ARROW_INT64 || field->type == ARROW_TIMESTAMP_US ? 8
           : field->type == ARROW_INT32 || field->type == ARROW_DATE32     ? 4
           : field->type == ARROW_FIXED                                    ? field->byte_width
                                                                           : 0;
}

/* Months and days of 4 bytes and milliseconds become those and nanoseconds. */
static bool load_interval(const uint8_t *from, uint8_t *to)
{
    enum { NS_A_MS = 1000000 };
    if (get_le32(from) > INT32_MAX || get_le32(from + 4) > INT32_MAX)
        return false;
    memcpy(to, from, 8);
    put_le64(to + 8, (uint64_t)get_le32(from + 8) * NS_A_MS);
    return true;
}

/* Parquet has no seconds: milliseconds stand for them. */
static bool is_in_seconds(const struct arrow_field *logical)
{
    enum arrow_origin_kind kind = logical->origin->kind;
    return (kind == ARROW_ORIGIN_TIME || kind == ARROW_ORIGIN_TIMESTAMP) &&
           logical->origin->unit == ARROW_SECONDS;
}

static bool load_seconds(const uint8_t *from, uint8_t *to, size_t width)
{
    enum { MS_A_SECOND = 1000 };
    int64_t millis = get_le_signed(from, width);
    uint8_t seconds[8];
    put_le64(seconds, (uint64_t)(millis / MS_A_SECOND));
    memcpy(to, seconds, width);
    return millis % MS_A_SECOND == 0;
}

static bool load_value(const struct arrow_field *physical, const struct arrow_field *logical,
                       const struct arrow_array *array, int64_t i, uint8_t *to)
{
    size_t width = (size_t)logical->byte_width;
    const uint8_t *from = array->values;
    if (logical->origin->kind == ARROW_ORIGIN_DECIMAL)
        return load_decimal(physical, array, i, to, width);
    from += i * physical_width(physical);
    if (logical->origin->kind == ARROW_ORIGIN_MONTH_DAY_NANO)
        return load_interval(from, to);
    if (is_in_seconds(logical))
        return load_seconds(from, to, width);
    if (logical->origin->kind == ARROW_ORIGIN_DATE_MS) {
        put_le64(to, (uint64_t)(get_le_signed(from, 4) * MS_A_DAY));
        return true;
    }
    memcpy(to, from, width); /* little-endian: the first bytes are the number's */
    return true;
}

enum status logical_convert(const struct parquet_leaf *leaf, const struct arrow_field *logical,
                            struct arena *arena, struct arrow_array *array, struct error *err)
{
    const struct arrow_field *physical = leaf->field;
    size_t width = (size_t)logical->byte_width;
    if (logical->origin->kind != ARROW_ORIGIN_DECIMAL && !is_in_seconds(logical) &&
        physical_width(physical) == (int32_t)width)
        return STATUS_OK;
    uint8_t *to = arena_alloc_zero(arena, (size_t)array->length + 1, width);
    if (!to)
        return error_set(err, STATUS_LIMIT, "parquet: column %.100s: no room for its values",
                         leaf->path);
    for (int64_t i = 0; i < array->length; i++) {
        if (arrow_is_valid(array, i) &&
            !load_value(physical, logical, array, i, to + (size_t)i * width))
            return error_set(err, STATUS_CORRUPT,
                             "parquet: column %.100s: row %lld: more than its type can hold",
                             leaf->path, (long long)i);
    }
    array->values = to;
    array->offsets = NULL;
    return STATUS_OK;
}

/* ---- which leaf can be given as what ---- */

static bool is_whole_number(const struct parquet_leaf *leaf)
{
    return leaf->kind == PARQUET_KIND_NONE || leaf->kind == PARQUET_KIND_INTEGER ||
           leaf->kind == PARQUET_KIND_OTHER;
}

static bool zones_match(const struct parquet_leaf *leaf, const struct arrow_field *wanted)
{
    return leaf->physical == PARQUET_INT96 || !leaf->is_zone_said ||
           leaf->is_utc == wanted->is_instant;
}

/* A type that says it all. */
static bool becomes_plain(const struct parquet_leaf *leaf, const struct arrow_field *wanted)
{
    bool is_bytes = leaf->physical == PARQUET_BYTE_ARRAY && leaf->kind != PARQUET_KIND_DECIMAL;
    switch (wanted->type) {
    case ARROW_INT32:
    case ARROW_INT64:
        return is_whole_number(leaf) && !(leaf->is_unsigned && leaf->bits == 64);
    case ARROW_TIMESTAMP_US:
        return zones_match(leaf, wanted);
    case ARROW_UTF8:
        return is_bytes && leaf->kind != PARQUET_KIND_OTHER;
    case ARROW_BINARY:
        return is_bytes;
    case ARROW_FIXED:
        return leaf->kind == PARQUET_KIND_NONE || leaf->kind == PARQUET_KIND_UUID ||
               leaf->kind == PARQUET_KIND_OTHER;
    default:
        return true;
    }
}

static bool units_match(const struct parquet_leaf *leaf, const struct arrow_origin *origin)
{
    static const enum arrow_unit units[] = {ARROW_MILLIS, ARROW_MICROS, ARROW_NANOS};
    return units[leaf->unit] == origin->unit ||
           (leaf->unit == PARQUET_MILLIS && origin->unit == ARROW_SECONDS);
}

bool logical_matches(const struct parquet_leaf *leaf, const struct arrow_field *wanted,
                     bool *out_converts)
{
    const struct arrow_origin *origin = wanted->origin;
    *out_converts = wanted->type == ARROW_FIXED && origin && origin->kind != ARROW_ORIGIN_SAME;
    if (!*out_converts)
        return becomes_plain(leaf, wanted);
    switch (origin->kind) {
    case ARROW_ORIGIN_INT:
    case ARROW_ORIGIN_UINT:
        return leaf->kind == PARQUET_KIND_INTEGER && leaf->bits == wanted->byte_width * 8 &&
               leaf->is_unsigned == (origin->kind == ARROW_ORIGIN_UINT);
    case ARROW_ORIGIN_HALF:
        return leaf->kind == PARQUET_KIND_FLOAT16;
    case ARROW_ORIGIN_DECIMAL:
        return leaf->kind == PARQUET_KIND_DECIMAL && leaf->scale == origin->scale &&
               leaf->precision <= origin->precision;
    case ARROW_ORIGIN_TIME:
        return leaf->kind == PARQUET_KIND_TIME && units_match(leaf, origin);
    case ARROW_ORIGIN_TIMESTAMP:
        return leaf->kind == PARQUET_KIND_TIMESTAMP && units_match(leaf, origin) &&
               zones_match(leaf, wanted);
    case ARROW_ORIGIN_DATE_MS:
        return leaf->kind == PARQUET_KIND_DATE;
    case ARROW_ORIGIN_DURATION:
        return leaf->physical == PARQUET_INT64 && is_whole_number(leaf) &&
               !(leaf->is_unsigned && leaf->bits == 64);
    case ARROW_ORIGIN_MONTH_DAY_NANO:
        return leaf->kind == PARQUET_KIND_INTERVAL;
    default:
        return false;
    }
}

void logical_describe(const struct parquet_leaf *leaf, struct buf *out)
{
    struct arrow_field field = *leaf->field;
    struct arrow_origin origin = {.kind = ARROW_ORIGIN_SAME};
    set_logical(leaf, &field, &origin);
    arrow_type_describe(&field, out);
}
