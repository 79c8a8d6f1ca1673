/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrow IPC, reading: the types of fields. Those that tables have become ours; the others keep
 * their bytes and get an origin, if the caller takes such.
 */
#include "format/arrow/ipc_internal.h"

static enum status refuse(const struct schema_reader *reader, const struct arrow_field *field,
                          const char *what)
{
    return error_set(reader->err, STATUS_UNSUPPORTED, "arrow: column %.100s: %s", field->name,
                     what);
}

/* A type that is kept as `type`, with `kind` for an origin. */
static enum status keep(const struct schema_reader *reader, struct arrow_field *field,
                        enum arrow_type type, int64_t byte_width, enum arrow_origin_kind kind,
                        struct arrow_origin *origin)
{
    field->type = type;
    field->byte_width = (int32_t)byte_width;
    origin->kind = kind;
    if (reader->takes_origins)
        return STATUS_OK;
    struct buf name = {0};
    struct arrow_field named = *field;
    named.origin = origin;
    arrow_type_describe(&named, &name);
    buf_put_byte(&name, '\0');
    enum status status = name.failed
                             ? error_set(reader->err, STATUS_NO_MEMORY, "arrow: no memory")
                             : error_set(reader->err, STATUS_UNSUPPORTED,
                                         "arrow: column %.100s: type %.100s, which no table has",
                                         field->name, (const char *)name.data);
    buf_deinit(&name);
    return status;
}

static enum status read_int(const struct schema_reader *reader, const struct flat_table *type,
                            struct arrow_field *field, struct arrow_origin *origin)
{
    int64_t bits = flat_number(reader->flat, type, 0, 4, 0);
    bool is_signed = flat_number(reader->flat, type, 1, 1, 0) != 0;
    if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
        return refuse(reader, field, "integers of this width");
    if (!is_signed || bits < 32)
        return keep(reader, field, ARROW_FIXED, bits / 8,
                    is_signed ? ARROW_ORIGIN_INT : ARROW_ORIGIN_UINT, origin);
    field->type = bits == 32 ? ARROW_INT32 : ARROW_INT64;
    return STATUS_OK;
}

static enum status read_float(const struct schema_reader *reader, const struct flat_table *type,
                              struct arrow_field *field, struct arrow_origin *origin)
{
    int64_t precision = flat_number(reader->flat, type, 0, 2, IPC_HALF);
    if (precision == IPC_HALF)
        return keep(reader, field, ARROW_FIXED, 2, ARROW_ORIGIN_HALF, origin);
    if (precision != IPC_SINGLE && precision != IPC_DOUBLE)
        return refuse(reader, field, "floats of this precision");
    field->type = precision == IPC_SINGLE ? ARROW_FLOAT : ARROW_DOUBLE;
    return STATUS_OK;
}

static enum status read_decimal(const struct schema_reader *reader, const struct flat_table *type,
                                struct arrow_field *field, struct arrow_origin *origin)
{
    int64_t precision = flat_number(reader->flat, type, 0, 4, 0);
    int64_t scale = flat_number(reader->flat, type, 1, 4, 0);
    int64_t bits = flat_number(reader->flat, type, 2, 4, 128);
    if ((bits != 32 && bits != 64 && bits != 128 && bits != 256) || precision < 1 ||
        precision > 76 || scale < -76 || scale > 76)
        return refuse(reader, field, "decimals of this width, precision or scale");
    origin->precision = (int32_t)precision;
    origin->scale = (int32_t)scale;
    return keep(reader, field, ARROW_FIXED, bits / 8, ARROW_ORIGIN_DECIMAL, origin);
}

static enum status read_unit(const struct schema_reader *reader, const struct flat_table *type,
                             const struct arrow_field *field, int64_t absent,
                             struct arrow_origin *origin)
{
    int64_t unit = flat_number(reader->flat, type, 0, 2, absent);
    if (unit < ARROW_SECONDS || unit > ARROW_NANOS)
        return refuse(reader, field, "times in this unit");
    origin->unit = (enum arrow_unit)unit;
    return STATUS_OK;
}

static enum status read_time(const struct schema_reader *reader, const struct flat_table *type,
                             struct arrow_field *field, struct arrow_origin *origin)
{
    TRY(read_unit(reader, type, field, IPC_MILLISECOND, origin));
    int64_t bits = flat_number(reader->flat, type, 1, 4, 32);
    if (bits != (origin->unit <= ARROW_MILLIS ? 32 : 64))
        return refuse(reader, field, "times of this width");
    return keep(reader, field, ARROW_FIXED, bits / 8, ARROW_ORIGIN_TIME, origin);
}

static enum status read_timestamp(struct schema_reader *reader, const struct flat_table *type,
                                  struct arrow_field *field, struct arrow_origin *origin)
{
    enum { ZONE_BYTES_MAX = 256 };
    struct span zone = flat_text(reader->flat, type, 1);
    TRY(read_unit(reader, type, field, 0, origin));
    field->is_instant = zone.length > 0;
    if (zone.length && !span_equal(zone, span_of_text("UTC")) && reader->takes_origins) {
        if (zone.length > ZONE_BYTES_MAX || !utf8_is_valid(zone.data, zone.length))
            return refuse(reader, field, "this time zone");
        origin->timezone = arena_copy_text(reader->arena, (const char *)zone.data, zone.length);
        if (!origin->timezone)
            return error_set(reader->err, STATUS_NO_MEMORY, "arrow: no memory for a schema");
    }
    if (origin->unit != ARROW_MICROS)
        return keep(reader, field, ARROW_FIXED, 8, ARROW_ORIGIN_TIMESTAMP, origin);
    field->type = ARROW_TIMESTAMP_US;
    return STATUS_OK;
}

static enum status read_interval(const struct schema_reader *reader, const struct flat_table *type,
                                 struct arrow_field *field, struct arrow_origin *origin)
{
    static const struct {
        enum arrow_origin_kind kind;
        int32_t bytes;
    } kinds[] = {
        [IPC_YEAR_MONTH] = {ARROW_ORIGIN_MONTHS, 4},
        [IPC_DAY_TIME] = {ARROW_ORIGIN_DAY_TIME, 8},
        [IPC_MONTH_DAY_NANO] = {ARROW_ORIGIN_MONTH_DAY_NANO, 16},
    };
    int64_t unit = flat_number(reader->flat, type, 0, 2, IPC_YEAR_MONTH);
    if (unit < 0 || unit >= (int64_t)COUNT_OF(kinds))
        return refuse(reader, field, "intervals in this unit");
    return keep(reader, field, ARROW_FIXED, kinds[unit].bytes, kinds[unit].kind, origin);
}

static enum status read_fixed(const struct schema_reader *reader, const struct flat_table *type,
                              struct arrow_field *field)
{
    enum { FIXED_BYTES_MAX = 1 << 16 };
    int64_t width = flat_number(reader->flat, type, 0, 4, 0);
    if (width < 1 || width > FIXED_BYTES_MAX)
        return refuse(reader, field, "fixed binary of this width");
    field->type = ARROW_FIXED;
    field->byte_width = (int32_t)width;
    return STATUS_OK;
}

static enum status read_fixed_list(const struct schema_reader *reader,
                                   const struct flat_table *type, struct arrow_field *field,
                                   struct arrow_origin *origin)
{
    int64_t size = flat_number(reader->flat, type, 0, 4, 0);
    if (size < 0)
        return refuse(reader, field, "fixed lists of this size");
    origin->list_size = (int32_t)size;
    return keep(reader, field, ARROW_LIST, 0, ARROW_ORIGIN_FIXED_LIST, origin);
}

/* Types whose id says it all. */
static bool read_plain(int64_t id, struct arrow_field *field)
{
    static const struct {
        int64_t id;
        enum arrow_type type;
    } plain[] = {
        {IPC_NULL, ARROW_NULL},     {IPC_BOOL, ARROW_BOOL}, {IPC_UTF8, ARROW_UTF8},
        {IPC_BINARY, ARROW_BINARY}, {IPC_LIST, ARROW_LIST}, {IPC_STRUCT, ARROW_STRUCT},
        {IPC_MAP, ARROW_MAP},
    };
    for (size_t i = 0; i < COUNT_OF(plain); i++) {
        if (plain[i].id == id) {
            field->type = plain[i].type;
            return true;
        }
    }
    return false;
}

static enum status refuse_id(const struct schema_reader *reader, const struct arrow_field *field,
                             int64_t id)
{
    switch (id) {
    case IPC_UNION:
        return refuse(reader, field, "type union is not read");
    case IPC_RUN_END_ENCODED:
        return refuse(reader, field, "type run_end_encoded is not read");
    case IPC_LIST_VIEW:
        return refuse(reader, field, "type list_view is not read");
    case IPC_LARGE_LIST_VIEW:
        return refuse(reader, field, "type large_list_view is not read");
    default:
        return error_set(reader->err, STATUS_UNSUPPORTED, "arrow: column %.100s: type %d",
                         field->name, (int)id);
    }
}

static enum status read_by_id(struct schema_reader *reader, int64_t id,
                              const struct flat_table *type, struct arrow_field *field,
                              struct arrow_origin *origin)
{
    switch (id) {
    case IPC_INT:
        return read_int(reader, type, field, origin);
    case IPC_FLOATING_POINT:
        return read_float(reader, type, field, origin);
    case IPC_DECIMAL:
        return read_decimal(reader, type, field, origin);
    case IPC_DATE:
        if (flat_number(reader->flat, type, 0, 2, IPC_MILLISECOND) != IPC_DAY)
            return keep(reader, field, ARROW_FIXED, 8, ARROW_ORIGIN_DATE_MS, origin);
        field->type = ARROW_DATE32;
        return STATUS_OK;
    case IPC_TIME:
        return read_time(reader, type, field, origin);
    case IPC_TIMESTAMP:
        return read_timestamp(reader, type, field, origin);
    case IPC_DURATION:
        TRY(read_unit(reader, type, field, IPC_MILLISECOND, origin));
        return keep(reader, field, ARROW_FIXED, 8, ARROW_ORIGIN_DURATION, origin);
    case IPC_INTERVAL:
        return read_interval(reader, type, field, origin);
    case IPC_FIXED_SIZE_BINARY:
        return read_fixed(reader, type, field);
    case IPC_FIXED_SIZE_LIST:
        return read_fixed_list(reader, type, field, origin);
    case IPC_LARGE_UTF8:
        return keep(reader, field, ARROW_UTF8, 0, ARROW_ORIGIN_LARGE, origin);
    case IPC_LARGE_BINARY:
        return keep(reader, field, ARROW_BINARY, 0, ARROW_ORIGIN_LARGE, origin);
    case IPC_LARGE_LIST:
        return keep(reader, field, ARROW_LIST, 0, ARROW_ORIGIN_LARGE, origin);
    case IPC_UTF8_VIEW:
        return keep(reader, field, ARROW_UTF8, 0, ARROW_ORIGIN_VIEW, origin);
    case IPC_BINARY_VIEW:
        return keep(reader, field, ARROW_BINARY, 0, ARROW_ORIGIN_VIEW, origin);
    default:
        return read_plain(id, field) ? STATUS_OK : refuse_id(reader, field, id);
    }
}

enum status ipc_type_read(struct schema_reader *reader, const struct flat_table *table,
                          struct arrow_field *field, struct arrow_origin *origin)
{
    struct flat_reader *flat = reader->flat;
    struct flat_table type = flat_child(flat, table, 3);
    TRY(read_by_id(reader, flat_number(flat, table, 2, 1, 0), &type, field, origin));
    return flat->failed || !type.at ? error_set(reader->err, STATUS_INVALID, "arrow: damaged type")
                                    : STATUS_OK;
}
