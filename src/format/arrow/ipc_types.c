/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrow IPC, reading: the types of fields, out of the tables that describe them.
 */
#include "format/arrow/ipc_internal.h"

static enum status read_int(const struct schema_reader *reader, const struct flat_table *type,
                            struct arrow_field *field, struct arrow_origin *origin)
{
    return type_set_int(&reader->making, field, origin, flat_number(reader->flat, type, 0, 4, 0),
                        flat_number(reader->flat, type, 1, 1, 0) != 0);
}

static enum status read_float(const struct schema_reader *reader, const struct flat_table *type,
                              struct arrow_field *field, struct arrow_origin *origin)
{
    int64_t precision = flat_number(reader->flat, type, 0, 2, IPC_HALF);
    if (precision == IPC_HALF)
        return type_keep(&reader->making, field, origin, ARROW_FIXED, 2, ARROW_ORIGIN_HALF);
    if (precision != IPC_SINGLE && precision != IPC_DOUBLE)
        return type_refuse(&reader->making, field, "floats of this precision");
    field->type = precision == IPC_SINGLE ? ARROW_FLOAT : ARROW_DOUBLE;
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
        return type_refuse(&reader->making, field, "intervals in this unit");
    return type_keep(&reader->making, field, origin, ARROW_FIXED, kinds[unit].bytes,
                     kinds[unit].kind);
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
    if (id == IPC_UNION)
        return type_refuse(&reader->making, field, "type union is not read");
    return error_set(reader->making.err, STATUS_UNSUPPORTED, "arrow: column %.100s: type %d",
                     field->name, (int)id);
}

static enum status read_by_id(struct schema_reader *reader, int64_t id,
                              const struct flat_table *type, struct arrow_field *field,
                              struct arrow_origin *origin)
{
    const struct schema_making *making = &reader->making;
    struct flat_reader *flat = reader->flat;
    switch (id) {
    case IPC_INT:
        return read_int(reader, type, field, origin);
    case IPC_FLOATING_POINT:
        return read_float(reader, type, field, origin);
    case IPC_DECIMAL:
        return type_set_decimal(making, field, origin, flat_number(flat, type, 0, 4, 0),
                                flat_number(flat, type, 1, 4, 0),
                                flat_number(flat, type, 2, 4, 128));
    case IPC_DATE:
        if (flat_number(flat, type, 0, 2, IPC_MILLISECOND) != IPC_DAY)
            return type_keep(making, field, origin, ARROW_FIXED, 8, ARROW_ORIGIN_DATE_MS);
        field->type = ARROW_DATE32;
        return STATUS_OK;
    case IPC_TIME:
        return type_set_time(making, field, origin, flat_number(flat, type, 0, 2, IPC_MILLISECOND),
                             flat_number(flat, type, 1, 4, 32));
    case IPC_TIMESTAMP:
        return type_set_timestamp(making, field, origin, flat_number(flat, type, 0, 2, 0),
                                  flat_text(flat, type, 1));
    case IPC_DURATION:
        return type_set_duration(making, field, origin,
                                 flat_number(flat, type, 0, 2, IPC_MILLISECOND));
    case IPC_INTERVAL:
        return read_interval(reader, type, field, origin);
    case IPC_MAP:
        field->type = ARROW_MAP;
        origin->has_sorted_keys = making->takes_origins && flat_number(flat, type, 0, 1, 0) != 0;
        return STATUS_OK;
    case IPC_FIXED_SIZE_BINARY:
        return type_set_fixed(making, field, flat_number(flat, type, 0, 4, 0));
    case IPC_FIXED_SIZE_LIST:
        return type_set_fixed_list(making, field, origin, flat_number(flat, type, 0, 4, 0));
    case IPC_LARGE_UTF8:
        return type_keep(making, field, origin, ARROW_UTF8, 0, ARROW_ORIGIN_LARGE);
    case IPC_LARGE_BINARY:
        return type_keep(making, field, origin, ARROW_BINARY, 0, ARROW_ORIGIN_LARGE);
    case IPC_LARGE_LIST:
        return type_keep(making, field, origin, ARROW_LIST, 0, ARROW_ORIGIN_LARGE);
    case IPC_LIST_VIEW:
        return type_keep(making, field, origin, ARROW_LIST, 0, ARROW_ORIGIN_LIST_VIEW);
    case IPC_LARGE_LIST_VIEW:
        return type_keep(making, field, origin, ARROW_LIST, 0, ARROW_ORIGIN_LARGE_LIST_VIEW);
    case IPC_UTF8_VIEW:
        return type_keep(making, field, origin, ARROW_UTF8, 0, ARROW_ORIGIN_VIEW);
    case IPC_BINARY_VIEW:
        return type_keep(making, field, origin, ARROW_BINARY, 0, ARROW_ORIGIN_VIEW);
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
    return flat->failed || !type.at
               ? error_set(reader->making.err, STATUS_INVALID, "arrow: damaged type")
               : STATUS_OK;
}
