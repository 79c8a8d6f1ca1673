/* SPDX-License-Identifier: Apache-2.0
 *
 * What annotations say, as Arrow types: the physical values of a batch become those of fields with
 * an origin. The counterpart of physical.c. Source: Parquet's LogicalTypes.md.
 */
#include "format/parquet/reader_internal.h"

enum { DECIMAL_BYTES = 16, WIDE_DECIMAL_BYTES = 32, DECIMAL_DIGITS = 38, WIDE_DECIMAL_DIGITS = 76 };

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
        if (leaf->precision < 1 || leaf->precision > WIDE_DECIMAL_DIGITS || leaf->scale < 0)
            break;
        origin->precision = leaf->precision;
        origin->scale = leaf->scale;
        keep_as(field, origin, ARROW_ORIGIN_DECIMAL,
                leaf->precision > DECIMAL_DIGITS ? WIDE_DECIMAL_BYTES : DECIMAL_BYTES);
        break;
    case PARQUET_KIND_TIME:
        keep_as(field, origin, ARROW_ORIGIN_TIME, leaf->unit == PARQUET_MILLIS ? 4 : 8);
        break;
    case PARQUET_KIND_TIMESTAMP:
        if (leaf->unit != PARQUET_NANOS)
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
    default:
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
    return field->type == ARROW_INT64   ? 8
           : field->type == ARROW_INT32 ? 4
           : field->type == ARROW_FIXED ? field->byte_width
                                        : 0;
}

/* Values of null slots are zero in what comes out. */
static enum status convert(const struct arrow_field *physical, const struct arrow_field *logical,
                           struct arena *arena, struct arrow_array *array, struct error *err)
{
    size_t width = (size_t)logical->byte_width;
    int32_t from_width = physical_width(physical);
    bool is_decimal = logical->origin->kind == ARROW_ORIGIN_DECIMAL;
    if (!is_decimal && from_width == logical->byte_width)
        return STATUS_OK;
    uint8_t *to = arena_alloc_zero(arena, (size_t)array->length + 1, width);
    if (!to)
        return error_set(err, STATUS_LIMIT, "parquet: column %.100s: no room for its values",
                         physical->name);
    for (int64_t i = 0; i < array->length; i++) {
        uint8_t *place = to + (size_t)i * width;
        if (!arrow_is_valid(array, i))
            continue;
        if (!is_decimal) /* little-endian: the first bytes are the number's */
            memcpy(place, (const uint8_t *)array->values + i * from_width, width);
        else if (!load_decimal(physical, array, i, place, width))
            return error_set(err, STATUS_CORRUPT,
                             "parquet: column %.100s: row %lld: more digits than its type has",
                             physical->name, (long long)i);
    }
    array->values = to;
    array->offsets = NULL;
    return STATUS_OK;
}

static enum status convert_fields(const struct arrow_field *physical,
                                  const struct arrow_field *logical, uint32_t count,
                                  struct arena *arena, struct arrow_array *arrays,
                                  struct error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        CHECK(!physical[i].is_dictionary);
        TRY(convert_fields(physical[i].children, logical[i].children, physical[i].child_count,
                           arena, arrays[i].children, err));
        if (!logical[i].child_count && logical[i].origin)
            TRY(convert(&physical[i], &logical[i], arena, &arrays[i], err));
    }
    return STATUS_OK;
}

enum status parquet_logical_batch(const struct parquet_file *file,
                                  const struct arrow_schema *schema, struct arrow_batch *batch,
                                  struct error *err)
{
    CHECK(batch->schema->field_count == file->schema.field_count);
    TRY(convert_fields(file->schema.fields, schema->fields, schema->field_count, &batch->arena,
                       batch->columns, err));
    batch->schema = schema;
    return STATUS_OK;
}
