/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of each type's values, and conditions on values at hand. Source: LogicalTypes.md,
 * parquet.thrift (TypeDefinedOrder).
 */
#include <math.h>

#include "format/parquet/prune_internal.h"

enum { HALF_BYTES = 2 };

static bool is_half(const struct parquet_leaf *leaf)
{
    return leaf->kind == PARQUET_KIND_FLOAT16 && leaf->physical == PARQUET_FIXED &&
           leaf->width == HALF_BYTES;
}

enum value_class value_class_of(const struct parquet_leaf *leaf)
{
    bool is_unsigned = leaf->kind == PARQUET_KIND_INTEGER && leaf->is_unsigned;
    switch (leaf->physical) {
    case PARQUET_FLOAT:
    case PARQUET_DOUBLE:
        return CLASS_REAL;
    case PARQUET_BYTE_ARRAY:
    case PARQUET_FIXED:
        return leaf->kind == PARQUET_KIND_DECIMAL ? CLASS_DECIMAL
               : is_half(leaf)                    ? CLASS_REAL
                                                  : CLASS_BYTES;
    default:
        return is_unsigned ? CLASS_UNSIGNED : CLASS_SIGNED;
    }
}

bool leaf_has_bounds(const struct parquet_leaf *leaf)
{
    return leaf->has_type_order && leaf->physical != PARQUET_INT96 &&
           leaf->kind != PARQUET_KIND_FLOAT16 && leaf->kind != PARQUET_KIND_INTERVAL &&
           leaf->kind != PARQUET_KIND_OTHER;
}

/* ---- order ---- */

static int order_of(bool is_less, bool is_greater)
{
    return is_less ? ORDER_LESS : is_greater ? ORDER_GREATER : ORDER_SAME;
}

static int order_bytes(struct span a, struct span b)
{
    size_t common = size_min(a.length, b.length);
    int result = common ? memcmp(a.data, b.data, common) : 0;
    return result ? order_of(result < 0, true) : order_of(a.length<b.length, a.length> b.length);
}

/* Without the bytes in front that only repeat the sign. */
static struct span trim_sign(struct span bytes, uint8_t fill)
{
    while (bytes.length > 1 && bytes.data[0] == fill && !((bytes.data[1] ^ fill) & 0x80))
        bytes = span_of(bytes.data + 1, bytes.length - 1);
    return bytes;
}

/* Two's complement, big-endian, of any lengths; of none it is 0. */
static int order_decimals(struct span a, struct span b)
{
    bool a_negative = a.length && a.data[0] & 0x80, b_negative = b.length && b.data[0] & 0x80;
    static const uint8_t zero = 0;
    if (a_negative != b_negative)
        return order_of(a_negative, b_negative);
    a = trim_sign(a.length ? a : span_of(&zero, 1), a_negative ? 0xff : 0);
    b = trim_sign(b.length ? b : span_of(&zero, 1), a_negative ? 0xff : 0);
    if (a.length != b.length)
        return order_of((a.length < b.length) != a_negative, true);
    return order_bytes(a, b);
}

int value_order(const struct parquet_leaf *leaf, const struct parquet_value *a,
                const struct parquet_value *b)
{
    switch (value_class_of(leaf)) {
    case CLASS_SIGNED:
        return order_of(a->integer<b->integer, a->integer> b->integer);
    case CLASS_UNSIGNED:
        return order_of((uint64_t)a->integer<(uint64_t)b->integer, (uint64_t)a->integer>(uint64_t)
                            b->integer);
    case CLASS_REAL:
        if (isnan(a->real) || isnan(b->real))
            return ORDER_NONE;
        return order_of(a->real<b->real, a->real> b->real);
    case CLASS_DECIMAL:
        return order_decimals(a->bytes, b->bytes);
    case CLASS_BYTES:
        break;
    }
    return order_bytes(a->bytes, b->bytes);
}

int operator_orders(enum parquet_operator op)
{
    switch (op) {
    case PARQUET_EQUAL:
    case PARQUET_IN:
        return ORDER_SAME;
    case PARQUET_NOT_EQUAL:
        return ORDER_LESS | ORDER_GREATER | ORDER_NONE;
    case PARQUET_LESS:
        return ORDER_LESS;
    case PARQUET_LESS_EQUAL:
        return ORDER_LESS | ORDER_SAME;
    case PARQUET_GREATER:
        return ORDER_GREATER;
    case PARQUET_GREATER_EQUAL:
        return ORDER_GREATER | ORDER_SAME;
    case PARQUET_IS_NULL:
    case PARQUET_IS_NOT_NULL:
        break;
    }
    return 0;
}

/* ---- values in PLAIN form ---- */

static double load_half(const uint8_t *data)
{
    unsigned half = get_le16(data), exponent = half >> 10 & 31, fraction = half & 1023;
    double value = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
                   : exponent     ? ldexp(1024 + fraction, (int)exponent - 25)
                                  : ldexp(fraction, -24);
    return half & 0x8000 ? -value : value;
}

static double load_float(const uint8_t *data)
{
    float value;
    memcpy(&value, data, sizeof value);
    return (double)value;
}

static double load_double(const uint8_t *data)
{
    double value;
    memcpy(&value, data, sizeof value);
    return value;
}

bool value_load(const struct parquet_leaf *leaf, struct span plain, struct parquet_value *out_value)
{
    bool is_unsigned = value_class_of(leaf) == CLASS_UNSIGNED;
    struct parquet_value value = {.bytes = plain};
    size_t bytes = plain.length;
    switch (leaf->physical) {
    case PARQUET_BOOLEAN:
        if (bytes != 1)
            return false;
        value.integer = plain.data[0] != 0;
        break;
    case PARQUET_INT32:
    case PARQUET_INT64:
        if (bytes != (leaf->physical == PARQUET_INT32 ? sizeof(int32_t) : sizeof(int64_t)))
            return false;
        value.integer = is_unsigned ? (int64_t)get_le_unsigned(plain.data, bytes)
                                    : get_le_signed(plain.data, bytes);
        break;
    case PARQUET_FLOAT:
        if (bytes != sizeof(float))
            return false;
        value.real = load_float(plain.data);
        break;
    case PARQUET_DOUBLE:
        if (bytes != sizeof(double))
            return false;
        value.real = load_double(plain.data);
        break;
    case PARQUET_INT96:
        return false;
    case PARQUET_BYTE_ARRAY:
    case PARQUET_FIXED:
        if (is_half(leaf) && bytes == HALF_BYTES)
            value.real = load_half(plain.data);
        else if (is_half(leaf) || (leaf->kind == PARQUET_KIND_DECIMAL && bytes == 0))
            return false;
        break;
    }
    *out_value = value;
    return true;
}

/* ---- values in Arrow's form ---- */

static struct parquet_value load_slot(const struct parquet_leaf *leaf,
                                      const struct arrow_field *field,
                                      const struct arrow_array *array, size_t i)
{
    struct parquet_value value = {.integer = 0};
    const uint8_t *bytes = array->values;
    switch (field->type) {
    case ARROW_BOOL:
        value.integer = arrow_bit(array->values, (int64_t)i);
        break;
    case ARROW_INT32:
    case ARROW_DATE32:
        value.integer = ((const int32_t *)array->values)[i];
        if (value_class_of(leaf) == CLASS_UNSIGNED)
            value.integer = (uint32_t)value.integer;
        break;
    case ARROW_TIMESTAMP_US:
        value.integer = ((const int64_t *)array->values)[i];
        if (leaf->physical == PARQUET_INT64 && leaf->unit == PARQUET_MILLIS)
            value.integer /= 1000; /* which it is a multiple of */
        break;
    case ARROW_FLOAT:
        value.real = load_float(bytes + i * sizeof(float));
        break;
    case ARROW_DOUBLE:
        value.real = load_double(bytes + i * sizeof(double));
        break;
    case ARROW_UTF8:
    case ARROW_BINARY:
        value.bytes =
            span_of(bytes + array->offsets[i], (size_t)(array->offsets[i + 1] - array->offsets[i]));
        break;
    case ARROW_FIXED:
        value.bytes = span_of(bytes + i * leaf->width, leaf->width);
        if (is_half(leaf))
            value.real = load_half(value.bytes.data);
        break;
    default: /* ARROW_INT64; leaves have no other type */
        value.integer = ((const int64_t *)array->values)[i];
        break;
    }
    return value;
}

static bool value_matches(const struct parquet_leaf *leaf,
                          const struct parquet_condition *condition, int orders,
                          const struct parquet_value *value)
{
    for (size_t i = 0; i < condition->value_count; i++)
        if (value_order(leaf, value, &condition->values[i]) & orders)
            return true;
    return false;
}

static enum status apply_to_dictionary(const struct parquet_leaf *leaf,
                                       const struct parquet_condition *condition,
                                       const struct arrow_field *field,
                                       const struct arrow_array *array, uint8_t *inout_matches,
                                       struct error *err)
{
    const struct arrow_array *dictionary = array->dictionary;
    const int32_t *indices = array->values;
    int orders = operator_orders(condition->op);
    uint8_t *entries = mem_alloc((size_t)dictionary->length + 1);
    if (!entries)
        return error_set(err, STATUS_NO_MEMORY, "parquet: column %.100s: no memory", leaf->path);
    for (size_t i = 0; i < (size_t)dictionary->length; i++) {
        struct parquet_value value = load_slot(leaf, field, dictionary, i);
        entries[i] = value_matches(leaf, condition, orders, &value);
    }
    for (int64_t i = 0; i < array->length; i++)
        inout_matches[i] &= arrow_is_valid(array, i) && entries[indices[i]];
    mem_free(entries);
    return STATUS_OK;
}

enum status condition_apply(const struct parquet_file *file,
                            const struct parquet_condition *condition,
                            const struct arrow_field *field, const struct arrow_array *array,
                            uint8_t *inout_matches, struct error *err)
{
    const struct parquet_leaf *leaf = &file->leaves[condition->leaf];
    int orders = operator_orders(condition->op);
    if (condition->op == PARQUET_IS_NULL || condition->op == PARQUET_IS_NOT_NULL) {
        for (int64_t i = 0; i < array->length; i++)
            inout_matches[i] &= arrow_is_valid(array, i) == (condition->op == PARQUET_IS_NOT_NULL);
        return STATUS_OK;
    }
    if (field->is_dictionary)
        return apply_to_dictionary(leaf, condition, field, array, inout_matches, err);
    for (int64_t i = 0; i < array->length; i++) {
        if (!inout_matches[i])
            continue;
        struct parquet_value value = load_slot(leaf, field, array, (size_t)i);
        inout_matches[i] =
            arrow_is_valid(array, i) && value_matches(leaf, condition, orders, &value);
    }
    return STATUS_OK;
}

/* ---- filters ---- */

/* The term at `*inout_at` and those that it joins. */
static bool check_terms(const struct parquet_filter *filter, size_t *inout_at, unsigned depth)
{
    if (*inout_at >= filter->term_count || depth > FILTER_DEPTH_MAX)
        return false;
    const struct parquet_term *term = &filter->terms[(*inout_at)++];
    if (term->kind == PARQUET_TERM_CONDITION)
        return term->number < filter->count;
    for (uint32_t i = 0; i < term->number; i++)
        if (!check_terms(filter, inout_at, depth + 1))
            return false;
    return term->number > 0;
}

enum status filter_check(const struct parquet_file *file, const struct parquet_filter *filter,
                         struct error *err)
{
    for (size_t i = 0; i < filter->count; i++) {
        const struct parquet_condition *condition = &filter->conditions[i];
        bool has_value = condition->op < PARQUET_IS_NULL;
        if (condition->leaf >= file->leaf_count || file->leaves[condition->leaf].max_rep ||
            (condition->op != PARQUET_IN && condition->value_count != (size_t)has_value))
            return error_set(err, STATUS_USAGE,
                             "parquet: condition %zu of a filter: none that "
                             "can be",
                             i);
    }
    size_t at = 0;
    if (filter->term_count && (!check_terms(filter, &at, 0) || at != filter->term_count))
        return error_set(err, STATUS_USAGE, "parquet: the terms of a filter are not one");
    return STATUS_OK;
}

void filter_walk_init(struct filter_walk *walk, const struct parquet_filter *filter)
{
    *walk = (struct filter_walk){.filter = filter};
}

struct parquet_term filter_walk_next(struct filter_walk *walk)
{
    const struct parquet_filter *filter = walk->filter;
    size_t at = walk->at++;
    if (filter->term_count)
        return filter->terms[at];
    if (at == 0)
        return (struct parquet_term){PARQUET_TERM_AND, (uint32_t)filter->count};
    return (struct parquet_term){PARQUET_TERM_CONDITION, (uint32_t)(at - 1)};
}

enum status parquet_filter_leaf(const struct parquet_file *file, struct span path,
                                uint32_t *out_leaf, struct error *err)
{
    uint32_t found = UINT32_MAX;
    const char *text = (const char *)path.data;
    int shown = (int)size_min(path.length, 100);
    for (uint32_t i = 0; i < file->leaf_count; i++) {
        if (!span_equal(span_of_text(file->leaves[i].path), path))
            continue;
        if (found != UINT32_MAX)
            return error_set(err, STATUS_USAGE, "parquet: two columns are called %.*s", shown,
                             text);
        found = i;
    }
    if (found == UINT32_MAX)
        return error_set(err, STATUS_NOT_FOUND, "parquet: no column %.*s with values of its own",
                         shown, text);
    if (file->leaves[found].max_rep)
        return error_set(err, STATUS_USAGE,
                         "parquet: column %.*s lies in a list or a map, whose rows have no one "
                         "value",
                         shown, text);
    *out_leaf = found;
    return STATUS_OK;
}
