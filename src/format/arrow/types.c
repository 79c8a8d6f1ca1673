/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields as schemas from outside describe them, whatever the encoding of the schema. Types that
 * tables have become ours; the others keep their bytes and get an origin, if the caller takes such.
 */
#include "format/arrow/arrow_internal.h"

enum { ZONE_BYTES_MAX = 256, EXTENSION_BYTES_MAX = 256, PAIRS_MAX = 4096 };

enum status type_refuse(const struct schema_making *making, const struct arrow_field *field,
                        const char *what)
{
    return error_set(making->err, STATUS_UNSUPPORTED, "arrow: column %.100s: %s", field->name,
                     what);
}

enum status schema_no_memory(const struct schema_making *making)
{
    return error_set(making->err, STATUS_NO_MEMORY, "arrow: no memory for a schema");
}

/* ---- types ---- */

enum status type_keep(const struct schema_making *making, struct arrow_field *field,
                      struct arrow_origin *origin, enum arrow_type type, int64_t byte_width,
                      enum arrow_origin_kind kind)
{
    field->type = type;
    field->byte_width = (int32_t)byte_width;
    origin->kind = kind;
    if (making->takes_origins)
        return STATUS_OK;
    struct buf name = {0};
    struct arrow_field named = *field;
    named.origin = origin;
    arrow_type_describe(&named, &name);
    buf_put_byte(&name, '\0');
    enum status status = name.failed
                             ? error_set(making->err, STATUS_NO_MEMORY, "arrow: no memory")
                             : error_set(making->err, STATUS_UNSUPPORTED,
                                         "arrow: column %.100s: type %.100s, which no table has",
                                         field->name, (const char *)name.data);
    buf_deinit(&name);
    return status;
}

enum status type_set_int(const struct schema_making *making, struct arrow_field *field,
                         struct arrow_origin *origin, int64_t bits, bool is_signed)
{
    if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
        return type_refuse(making, field, "integers of this width");
    if (!is_signed || bits < 32)
        return type_keep(making, field, origin, ARROW_FIXED, bits / 8,
                         is_signed ? ARROW_ORIGIN_INT : ARROW_ORIGIN_UINT);
    field->type = bits == 32 ? ARROW_INT32 : ARROW_INT64;
    return STATUS_OK;
}

void arrow_set_uint64(struct arrow_field *field)
{
    static const struct arrow_origin origin = {.kind = ARROW_ORIGIN_UINT};
    field->type = ARROW_FIXED;
    field->byte_width = sizeof(uint64_t);
    field->origin = &origin;
}

enum status type_set_decimal(const struct schema_making *making, struct arrow_field *field,
                             struct arrow_origin *origin, int64_t precision, int64_t scale,
                             int64_t bits)
{
    if ((bits != 32 && bits != 64 && bits != 128 && bits != 256) || precision < 1 ||
        precision > 76 || scale < -76 || scale > 76)
        return type_refuse(making, field, "decimals of this width, precision or scale");
    origin->precision = (int32_t)precision;
    origin->scale = (int32_t)scale;
    return type_keep(making, field, origin, ARROW_FIXED, bits / 8, ARROW_ORIGIN_DECIMAL);
}

static enum status set_unit(const struct schema_making *making, const struct arrow_field *field,
                            struct arrow_origin *origin, int64_t unit)
{
    if (unit < ARROW_SECONDS || unit > ARROW_NANOS)
        return type_refuse(making, field, "times in this unit");
    origin->unit = (enum arrow_unit)unit;
    return STATUS_OK;
}

enum status type_set_time(const struct schema_making *making, struct arrow_field *field,
                          struct arrow_origin *origin, int64_t unit, int64_t bits)
{
    TRY(set_unit(making, field, origin, unit));
    if (bits != (origin->unit <= ARROW_MILLIS ? 32 : 64))
        return type_refuse(making, field, "times of this width");
    return type_keep(making, field, origin, ARROW_FIXED, bits / 8, ARROW_ORIGIN_TIME);
}

enum status type_set_duration(const struct schema_making *making, struct arrow_field *field,
                              struct arrow_origin *origin, int64_t unit)
{
    TRY(set_unit(making, field, origin, unit));
    return type_keep(making, field, origin, ARROW_FIXED, 8, ARROW_ORIGIN_DURATION);
}

enum status type_set_timestamp(const struct schema_making *making, struct arrow_field *field,
                               struct arrow_origin *origin, int64_t unit, struct span zone)
{
    TRY(set_unit(making, field, origin, unit));
    field->is_instant = zone.length > 0;
    if (zone.length && !span_equal(zone, span_of_text("UTC")) && making->takes_origins) {
        if (zone.length > ZONE_BYTES_MAX || !utf8_is_valid(zone.data, zone.length))
            return type_refuse(making, field, "this time zone");
        origin->timezone = arena_copy_text(making->arena, (const char *)zone.data, zone.length);
        if (!origin->timezone)
            return schema_no_memory(making);
    }
    if (origin->unit != ARROW_MICROS)
        return type_keep(making, field, origin, ARROW_FIXED, 8, ARROW_ORIGIN_TIMESTAMP);
    field->type = ARROW_TIMESTAMP_US;
    return STATUS_OK;
}

enum status type_set_fixed(const struct schema_making *making, struct arrow_field *field,
                           int64_t width)
{
    enum { FIXED_BYTES_MAX = 1 << 16 };
    if (width < 1 || width > FIXED_BYTES_MAX)
        return type_refuse(making, field, "fixed binary of this width");
    field->type = ARROW_FIXED;
    field->byte_width = (int32_t)width;
    return STATUS_OK;
}

enum status type_set_run_ends(const struct schema_making *making, const struct arrow_field *field,
                              struct arrow_origin *origin, int64_t bits)
{
    if (bits != 16 && bits != 32 && bits != 64)
        return type_refuse(making, field, "ends of runs of this width");
    if (run_end_width(field))
        return type_refuse(making, field, "runs of runs");
    if (!making->takes_origins)
        return type_refuse(making, field, "type run_end_encoded, which no table has");
    origin->run_end_bits = (uint8_t)bits;
    return STATUS_OK;
}

enum status type_set_fixed_list(const struct schema_making *making, struct arrow_field *field,
                                struct arrow_origin *origin, int64_t size)
{
    if (size < 0 || size > INT32_MAX)
        return type_refuse(making, field, "fixed lists of this size");
    origin->list_size = (int32_t)size;
    return type_keep(making, field, origin, ARROW_LIST, 0, ARROW_ORIGIN_FIXED_LIST);
}

/* ---- the rest of a field ---- */

enum status field_set_name(const struct schema_making *making, struct arrow_field *field,
                           struct span name)
{
    if (name.length > ARROW_NAME_BYTES_MAX)
        return error_set(making->err, STATUS_LIMIT, "arrow: a column's name of more than %d bytes",
                         ARROW_NAME_BYTES_MAX);
    if (!utf8_is_valid(name.data, name.length) ||
        (name.length && memchr(name.data, 0, name.length)))
        return error_set(making->err, STATUS_INVALID, "arrow: bad column name");
    field->name = arena_copy_text(making->arena, (const char *)name.data, name.length);
    return field->name ? STATUS_OK : schema_no_memory(making);
}

enum status field_set_index(const struct schema_making *making, const struct arrow_field *field,
                            struct arrow_origin *origin, int64_t bits, bool is_signed)
{
    if (bits == 32 && is_signed)
        return STATUS_OK;
    if (!making->takes_origins || (bits != 8 && bits != 16 && bits != 32 && bits != 64))
        return type_refuse(making, field, "dictionary indices other than int32");
    origin->index_bits = (uint8_t)bits;
    origin->index_is_unsigned = !is_signed;
    return STATUS_OK;
}

enum status schema_set_metadata(const struct schema_making *making, struct arrow_metadata *metadata,
                                struct span key, struct span text)
{
    if (!making->takes_origins)
        return STATUS_OK;
    if (metadata->count == PAIRS_MAX)
        return error_set(making->err, STATUS_LIMIT, "arrow: more than %d pairs of metadata",
                         PAIRS_MAX);
    return arrow_metadata_add(metadata, making->arena, key, text) == STATUS_OK
               ? STATUS_OK
               : schema_no_memory(making);
}

static bool is_field_id(struct span key, struct span text, int32_t *out_id)
{
    int64_t id;
    if (!span_equal(key, span_of_text(ARROW_FIELD_ID_KEY)) || !text.length ||
        !parse_i64((const char *)text.data, text.length, &id) || id <= 0 || id > INT32_MAX)
        return false;
    *out_id = (int32_t)id;
    return true;
}

static bool is_extension_name(struct span key, struct span text)
{
    return span_equal(key, span_of_text(ARROW_EXTENSION_KEY)) && text.length &&
           text.length <= EXTENSION_BYTES_MAX && utf8_is_valid(text.data, text.length) &&
           !memchr(text.data, 0, text.length);
}

enum status field_set_metadata(const struct schema_making *making, struct arrow_field *field,
                               struct arrow_origin *origin, struct span key, struct span text)
{
    if (is_field_id(key, text, &field->field_id))
        return STATUS_OK;
    if (!is_extension_name(key, text))
        return schema_set_metadata(making, &origin->metadata, key, text);
    if (!making->takes_origins)
        return STATUS_OK;
    origin->extension = arena_copy_text(making->arena, (const char *)text.data, text.length);
    return origin->extension ? STATUS_OK : schema_no_memory(making);
}

enum status field_keep_origin(const struct schema_making *making, struct arrow_field *field,
                              const struct arrow_origin *origin)
{
    if (origin->kind == ARROW_ORIGIN_SAME && !origin->timezone && !origin->extension &&
        !origin->index_bits && !origin->is_ordered && !origin->has_sorted_keys &&
        !origin->run_end_bits && !origin->metadata.count)
        return STATUS_OK;
    struct arrow_origin *kept = arena_alloc(making->arena, sizeof *kept);
    if (!kept)
        return schema_no_memory(making);
    *kept = *origin;
    field->origin = kept;
    return STATUS_OK;
}

enum status fields_alloc(struct schema_making *making, uint32_t count, uint32_t depth,
                         struct arrow_field **out_fields)
{
    if (depth > making->limits->depth_max)
        return error_set(making->err, STATUS_LIMIT, "arrow: columns nested deeper than %u",
                         making->limits->depth_max);
    if (count > making->fields_left)
        return error_set(making->err, STATUS_LIMIT, "arrow: more than %u columns",
                         making->limits->field_count_max);
    making->fields_left -= count;
    struct arrow_field *fields = arena_alloc_zero(making->arena, count, sizeof *fields);
    if (!fields)
        return schema_no_memory(making);
    *out_fields = fields;
    return STATUS_OK;
}
