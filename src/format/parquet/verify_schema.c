/* SPDX-License-Identifier: Apache-2.0
 *
 * Annotations of the old and of the new kind say the same, of a type that can bear them. Source:
 * LogicalTypes.md.
 */
#include <inttypes.h>

#include "format/parquet/thrift_internal.h"
#include "format/parquet/verify_internal.h"

static enum status fault(uint64_t at, size_t number, const char *what, struct error *err)
{
    error_set(err, STATUS_CORRUPT, "parquet: schema element %zu, byte %" PRIu64 ": %s", number, at,
              what);
    return error_at(err, at);
}

/* What the old kind has for an annotation of the new; -1: nothing. An instant and a local time are
 * one to the old kind, which many writers say of both. */
static int32_t converted_of(const struct schema_element *element)
{
    static const int32_t plain[] = {
        [LOGICAL_STRING] = CONVERTED_UTF8, [LOGICAL_MAP] = CONVERTED_MAP,
        [LOGICAL_LIST] = CONVERTED_LIST,   [LOGICAL_ENUM] = CONVERTED_ENUM,
        [LOGICAL_DATE] = CONVERTED_DATE,   [LOGICAL_DECIMAL] = CONVERTED_DECIMAL,
        [LOGICAL_JSON] = CONVERTED_JSON,   [LOGICAL_BSON] = CONVERTED_BSON};
    bool is_millis = element->unit == 1, is_micros = element->unit == 2;
    if (element->logical == LOGICAL_TIME)
        return is_millis ? CONVERTED_TIME_MILLIS : is_micros ? CONVERTED_TIME_MICROS : -1;
    if (element->logical == LOGICAL_TIMESTAMP)
        return is_millis ? CONVERTED_TIMESTAMP_MILLIS : is_micros ? CONVERTED_TIMESTAMP_MICROS : -1;
    if (element->logical == LOGICAL_INTEGER) {
        int32_t step = element->bits == 8    ? 0
                       : element->bits == 16 ? 1
                       : element->bits == 32 ? 2
                                             : 3;
        return (element->is_signed ? CONVERTED_INT_8 : CONVERTED_UINT_8) + step;
    }
    bool is_plain = element->logical >= 0 && (size_t)element->logical < COUNT_OF(plain) &&
                    (plain[element->logical] || element->logical == LOGICAL_STRING);
    return is_plain ? plain[element->logical] : -1;
}

static bool is_known(int32_t logical)
{
    return logical >= LOGICAL_STRING && logical <= LOGICAL_FLOAT16 && logical != 9;
}

static enum status check_element(const struct schema_element *element, uint64_t at, size_t number,
                                 struct error *err)
{
    bool is_old_map =
        element->logical == LOGICAL_MAP && element->converted == CONVERTED_MAP_KEY_VALUE;
    bool is_decimal =
        element->logical == LOGICAL_DECIMAL && element->converted == CONVERTED_DECIMAL;
    if (element->converted < -1 || element->converted > CONVERTED_INTERVAL)
        return fault(at, number, "a converted type that is none", err);
    if (element->logical == LOGICAL_INTEGER && element->bits != 8 && element->bits != 16 &&
        element->bits != 32 && element->bits != 64)
        return fault(at, number, "an integer of a width that is none", err);
    if ((element->logical == LOGICAL_TIME || element->logical == LOGICAL_TIMESTAMP) &&
        (element->unit < 1 || element->unit > 3))
        return fault(at, number, "a time of a unit that is none", err);
    if (is_known(element->logical) && element->converted >= 0 && !is_old_map &&
        element->converted != converted_of(element))
        return fault(at, number, "its converted type is not its logical type's", err);
    if (is_decimal && (element->scale != element->logical_scale ||
                       element->precision != element->logical_precision))
        return fault(at, number, "a decimal whose digits are not its logical type's", err);
    return STATUS_OK;
}

/* What the reader took for no annotation, since the type cannot bear it. */
static bool is_misplaced(const struct schema_element *element, const struct parquet_leaf *leaf)
{
    bool is_kind = element->logical == LOGICAL_STRING || element->logical == LOGICAL_ENUM ||
                   element->logical == LOGICAL_JSON || element->logical == LOGICAL_DATE ||
                   element->logical == LOGICAL_TIME || element->logical == LOGICAL_TIMESTAMP ||
                   element->logical == LOGICAL_INTEGER || element->logical == LOGICAL_DECIMAL;
    bool is_old =
        element->logical == 0 && element->converted >= 0 && element->converted <= CONVERTED_JSON;
    return (is_kind || is_old) && leaf->kind == PARQUET_KIND_OTHER;
}

static enum status check_leaf(const struct schema_element *element, const struct parquet_leaf *leaf,
                              uint64_t at, size_t number, struct error *err)
{
    if (is_misplaced(element, leaf))
        return fault(at, number, "an annotation that its type cannot bear", err);
    if ((leaf->kind == PARQUET_KIND_UUID &&
         (leaf->physical != PARQUET_FIXED || leaf->width != 16)) ||
        (leaf->kind == PARQUET_KIND_FLOAT16 &&
         (leaf->physical != PARQUET_FIXED || leaf->width != 2)))
        return fault(at, number, "an annotation that its type cannot bear", err);
    if (leaf->kind == PARQUET_KIND_DECIMAL &&
        (leaf->precision < 1 || leaf->scale < 0 || leaf->scale > leaf->precision ||
         (leaf->physical == PARQUET_INT32 && leaf->precision > 9) ||
         (leaf->physical == PARQUET_INT64 && leaf->precision > 18)))
        return fault(at, number, "a decimal whose digits its type cannot hold", err);
    return STATUS_OK;
}

/* One a leaf, if any are said: readers pass over the bounds of all leaves where it is not so. */
static enum status check_column_orders(const struct parquet_file *file, struct error *err)
{
    enum { COLUMN_ORDERS = 7 };
    struct cursor in = cursor_of(file->footer.data, file->footer.length);
    int id = 0, type, inner;
    while ((type = thrift_read_field(&in, &id)) != 0 && id != COLUMN_ORDERS)
        thrift_skip(&in, type);
    uint64_t at = file->footer_offset + (uint64_t)(in.at - file->footer.data);
    size_t count = type ? thrift_read_list(&in, type, &inner) : file->leaf_count;
    if (count == file->leaf_count)
        return STATUS_OK;
    error_set(err, STATUS_CORRUPT,
              "parquet: footer, byte %" PRIu64 ": orders of %zu columns, of which there are %u", at,
              count, file->leaf_count);
    return error_at(err, at);
}

enum status verify_schema(const struct parquet_file *file, struct error *err)
{
    struct cursor in =
        cursor_of(file->footer.data + file->schema_at, file->footer.length - file->schema_at);
    uint32_t leaf = 0;
    int inner;
    size_t count = thrift_read_list(&in, THRIFT_LIST, &inner);
    for (size_t i = 0; i < count; i++) {
        struct schema_element element;
        uint64_t at = file->footer_offset + (uint64_t)(in.at - file->footer.data);
        schema_element_read(&in, &element);
        TRY(check_element(&element, at, i, err));
        if (i && element.child_count == 0 && leaf < file->leaf_count)
            TRY(check_leaf(&element, &file->leaves[leaf++], at, i, err));
    }
    return check_column_orders(file, err);
}
