/* SPDX-License-Identifier: Apache-2.0
 *
 * Which row goes where: partitions first, then the table's sort columns, ascending with nulls first
 * (E11). Keys are made once a row and compared as integers; only text that ties on its first bytes
 * is looked at again.
 */
#include <stdlib.h>

#include "flow/publish/order_internal.h"

/* ---- cells ---- */

const struct arrow_array *order_cell(const struct arrow_field *field,
                                     const struct arrow_array *array, int64_t *inout_row)
{
    if (!field->is_dictionary)
        return array;
    *inout_row = ((const int32_t *)array->values)[*inout_row];
    return array->dictionary;
}

/* One cell as a value; `row` is within the array, dictionaries looked through. */
static struct iceberg_value cell_value(const struct arrow_field *field,
                                       const struct arrow_array *array, int64_t row)
{
    struct iceberg_value value = {.type = ICEBERG_LONG, .is_null = !arrow_is_valid(array, row)};
    array = order_cell(field, array, &row);
    value.is_null |= !arrow_is_valid(array, row);
    switch (field->type) {
    case ARROW_BOOL:
        value.type = ICEBERG_BOOLEAN;
        value.integer = arrow_bit(array->values, row);
        break;
    case ARROW_INT32:
    case ARROW_DATE32:
        value.type = field->type == ARROW_INT32 ? ICEBERG_INT : ICEBERG_DATE;
        value.integer = ((const int32_t *)array->values)[row];
        break;
    case ARROW_INT64:
        value.integer = ((const int64_t *)array->values)[row];
        break;
    case ARROW_TIMESTAMP_US:
        value.type = field->is_instant ? ICEBERG_TIMESTAMPTZ : ICEBERG_TIMESTAMP;
        value.integer = ((const int64_t *)array->values)[row];
        break;
    case ARROW_DOUBLE:
        value.type = ICEBERG_DOUBLE;
        value.real = ((const double *)array->values)[row];
        break;
    case ARROW_UTF8:
    case ARROW_BINARY:
        value.type = field->type == ARROW_UTF8 ? ICEBERG_STRING : ICEBERG_BINARY;
        value.bytes = span_of((const uint8_t *)array->values + array->offsets[row],
                              (size_t)(array->offsets[row + 1] - array->offsets[row]));
        break;
    default:
        value.is_null = true;
        break;
    }
    return value;
}

/* ---- partitions ---- */

static bool same_partition(const struct iceberg_value *a, const struct iceberg_value *b,
                           uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (a[i].is_null != b[i].is_null || (!a[i].is_null && !iceberg_value_equal(&a[i], &b[i])))
            return false;
    }
    return true;
}

static enum status intern_partition(struct order *order, const struct iceberg_value *values,
                                    uint32_t count, uint32_t *out_partition, struct error *err)
{
    for (uint32_t i = order->partition_count; i > 0;
         i--) { /* rows come in time order: newest first */
        if (same_partition(order->partitions[i - 1], values, count)) {
            *out_partition = i - 1;
            return STATUS_OK;
        }
    }
    if (order->partition_count == ORDER_PARTITIONS_MAX)
        return error_set(err, STATUS_LIMIT, "one commit would touch more than %d partitions",
                         (int)ORDER_PARTITIONS_MAX);
    struct iceberg_value *copy = arena_alloc_zero(&order->arena, count + 1, sizeof *copy);
    if (!copy)
        return error_set(err, STATUS_NO_MEMORY, "partitions: out of memory");
    for (uint32_t i = 0; i < count; i++) {
        copy[i] = values[i];
        char *bytes = arena_copy_text(&order->arena, (const char *)values[i].bytes.data,
                                      values[i].bytes.length);
        if (!bytes)
            return error_set(err, STATUS_NO_MEMORY, "partitions: out of memory");
        copy[i].bytes.data = (const uint8_t *)bytes;
    }
    order->partitions[order->partition_count] = copy;
    *out_partition = order->partition_count++;
    return STATUS_OK;
}

static enum status partition_row(struct order *order, const struct binding *binding,
                                 const struct arrow_batch *batch, int64_t row,
                                 struct arena *scratch, uint32_t *out_partition, struct error *err)
{
    struct iceberg_value values[ICEBERG_PARTITION_FIELDS_MAX];
    for (uint32_t i = 0; i < binding->spec->field_count; i++) {
        int column = binding->partition_columns[i];
        struct iceberg_value value =
            cell_value(&binding->payload->fields[column], &batch->columns[column], row);
        TRY(iceberg_transform_apply(binding->spec->fields[i].transform, &value, scratch, &values[i],
                                    err));
    }
    return intern_partition(order, values, binding->spec->field_count, out_partition, err);
}

/* Consecutive rows of one day are the rule: remember the last source value range of a lone time
 * transform. */
static enum status assign_partitions(struct order *order, const struct binding *binding,
                                     const struct range *range, struct error *err)
{
    struct arena scratch;
    enum status status = STATUS_OK;
    size_t at = 0;
    arena_init(&scratch, 0);
    for (size_t b = 0; b < range->batch_count && status == STATUS_OK; b++) {
        const struct arrow_batch *batch = &range->batches[b].batch;
        for (int64_t row = 0; row < batch->length && status == STATUS_OK; row++, at++) {
            order->rows[at].batch = (uint32_t)b;
            order->rows[at].row = (uint32_t)row;
            status = partition_row(order, binding, batch, row, &scratch, &order->rows[at].partition,
                                   err);
        }
        arena_clear(&scratch);
    }
    arena_deinit(&scratch);
    return status;
}

/* ---- sort keys ---- */

static uint64_t text_prefix(struct span text)
{
    uint64_t prefix = 0;
    for (size_t i = 0; i < 8; i++)
        prefix = prefix << 8 | (i < text.length ? text.data[i] : 0);
    return prefix;
}

static uint64_t integer_key(const struct iceberg_value *value)
{
    return value->is_null ? 0 : (uint64_t)value->integer ^ ((uint64_t)1 << 63);
}

struct ranked {
    struct span text;
    bool is_null;
    uint32_t batch, index;
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->is_null != y->is_null)
        return x->is_null ? -1 : 1;
    size_t common = size_min(x->text.length, y->text.length);
    int order = common ? memcmp(x->text.data, y->text.data, common) : 0;
    if (order)
        return order;
    return x->text.length < y->text.length ? -1 : x->text.length > y->text.length;
}

/* Dictionary values are ranked once over all batches; rows then compare by rank. */
static enum status rank_dictionary(const struct range *range, int column, uint64_t **out_ranks,
                                   struct arena *arena, struct error *err)
{
    const struct arrow_field *field = &range->schema->fields[column];
    struct arrow_field value_field = *field;
    size_t total = 0, at = 0;
    value_field.is_dictionary = false;
    for (size_t b = 0; b < range->batch_count; b++)
        total += (size_t)range->batches[b].batch.columns[column].dictionary->length;
    struct ranked *all = mem_alloc_zero(total, sizeof *all);
    if (!all)
        return error_set(err, STATUS_NO_MEMORY, "sort: out of memory");
    enum status status = STATUS_OK;
    for (size_t b = 0; b < range->batch_count; b++) {
        const struct arrow_array *values = range->batches[b].batch.columns[column].dictionary;
        out_ranks[b] = arena_alloc_zero(arena, (size_t)values->length + 1, sizeof(uint64_t));
        if (!out_ranks[b]) {
            status = error_set(err, STATUS_NO_MEMORY, "sort: out of memory");
            goto done;
        }
        for (int64_t i = 0; i < values->length; i++) {
            struct iceberg_value value = cell_value(&value_field, values, i);
            all[at++] = (struct ranked){.text = value.bytes,
                                        .is_null = value.is_null,
                                        .batch = (uint32_t)b,
                                        .index = (uint32_t)i};
        }
    }
    qsort(all, total, sizeof *all, compare_ranked);
    uint64_t rank = 0;
    for (size_t i = 0; i < total; i++) {
        if (i && compare_ranked(&all[i - 1], &all[i]) != 0)
            rank++;
        out_ranks[all[i].batch][all[i].index] = rank + 1;
    }
done:
    mem_free(all);
    return status;
}

/* Key number `key` (0 or 1) of every row, of one sort column. */
static enum status make_keys(struct order *order, const struct range *range, int column,
                             unsigned key, struct error *err)
{
    const struct arrow_field *field = &range->schema->fields[column];
    bool is_text = field->type == ARROW_UTF8 || field->type == ARROW_BINARY;
    uint64_t **ranks = NULL;
    if (is_text && field->is_dictionary) {
        ranks = arena_alloc_zero(&order->arena, range->batch_count + 1, sizeof *ranks);
        if (!ranks)
            return error_set(err, STATUS_NO_MEMORY, "sort: out of memory");
        TRY(rank_dictionary(range, column, ranks, &order->arena, err));
    }
    for (size_t i = 0; i < order->row_count; i++) {
        struct order_row *row = &order->rows[i];
        const struct arrow_array *array = &range->batches[row->batch].batch.columns[column];
        if (ranks) {
            int32_t index = ((const int32_t *)array->values)[row->row];
            row->keys[key] = arrow_is_valid(array, row->row) ? ranks[row->batch][index] : 0;
            continue;
        }
        struct iceberg_value value = cell_value(field, array, row->row);
        row->keys[key] =
            is_text ? (value.is_null ? 0 : text_prefix(value.bytes)) : integer_key(&value);
    }
    if (is_text && !ranks && key == 0)
        order->text_column = column;
    return STATUS_OK;
}

static int compare_text(const struct order *order, const struct order_row *a,
                        const struct order_row *b)
{
    const struct arrow_field *field = &order->range->schema->fields[order->text_column];
    struct iceberg_value x = cell_value(
        field, &order->range->batches[a->batch].batch.columns[order->text_column], a->row);
    struct iceberg_value y = cell_value(
        field, &order->range->batches[b->batch].batch.columns[order->text_column], b->row);
    struct ranked left = {.text = x.bytes, .is_null = x.is_null};
    struct ranked right = {.text = y.bytes, .is_null = y.is_null};
    return compare_ranked(&left, &right);
}

/* The order of the log breaks ties, so that one range always gives the same files. */
static inline bool comes_first(const struct order *order, const struct order_row *a,
                               const struct order_row *b)
{
    if (a->partition != b->partition)
        return a->partition < b->partition;
    if (a->keys[0] != b->keys[0])
        return a->keys[0] < b->keys[0];
    if (order->text_column >= 0) {
        int text = compare_text(order, a, b);
        if (text)
            return text < 0;
    }
    if (a->keys[1] != b->keys[1])
        return a->keys[1] < b->keys[1];
    return a->batch != b->batch ? a->batch < b->batch : a->row < b->row;
}

static void insertion_sort(const struct order *order, struct order_row *rows, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct order_row row = rows[i];
        size_t j = i;
        for (; j > 0 && comes_first(order, &row, &rows[j - 1]); j--)
            rows[j] = rows[j - 1];
        rows[j] = row;
    }
}

/* Bottom-up merge sort: runs of 16, then doubled. Sorted input costs one pass a level. */
static void sort_rows(const struct order *order, struct order_row *rows, struct order_row *spare,
                      size_t count)
{
    enum { RUN = 16 };
    struct order_row *from = rows, *to = spare;
    for (size_t i = 0; i < count; i += RUN)
        insertion_sort(order, rows + i, size_min(RUN, count - i));
    for (size_t width = RUN; width < count; width *= 2) {
        for (size_t i = 0; i < count; i += 2 * width) {
            size_t middle = size_min(i + width, count), end = size_min(i + 2 * width, count);
            size_t left = i, right = middle;
            if (middle == end || !comes_first(order, &from[middle], &from[middle - 1])) {
                memcpy(to + i, from + i, (end - i) * sizeof *to);
                continue;
            }
            for (size_t out = i; out < end; out++) {
                bool take_right = left == middle ||
                                  (right < end && comes_first(order, &from[right], &from[left]));
                to[out] = from[take_right ? right++ : left++];
            }
        }
        struct order_row *swap = from;
        from = to;
        to = swap;
    }
    if (from != rows)
        memcpy(rows, from, count * sizeof *rows);
}

static int find_column(const struct arrow_schema *schema, const char *name)
{
    for (uint32_t i = 0; i < schema->field_count; i++) {
        if (strcmp(schema->fields[i].name, name) == 0)
            return (int)i;
    }
    return -1;
}

enum status order_create(const struct publish_table *definition, const struct binding *binding,
                         const struct range *range, struct order *out_order, struct error *err)
{
    struct order order = {.range = range, .text_column = -1, .row_count = (size_t)range->rows};
    enum status status = STATUS_OK;
    arena_init(&order.arena, 0);
    order.rows = mem_alloc_zero(order.row_count, sizeof *order.rows);
    struct order_row *spare = mem_alloc(order.row_count * sizeof *spare);
    if (!order.rows || !spare) {
        status = error_set(err, STATUS_NO_MEMORY, "sort: out of memory");
        goto done;
    }
    TRY_OR_DONE(status, assign_partitions(&order, binding, range, err));
    for (unsigned key = 0; key < 2 && key < definition->sort_column_count; key++) {
        int column = find_column(range->schema, definition->sort_columns[key]);
        if (column >= 0)
            TRY_OR_DONE(status, make_keys(&order, range, column, key, err));
    }
    sort_rows(&order, order.rows, spare, order.row_count);
done:
    mem_free(spare);
    if (status != STATUS_OK)
        order_deinit(&order);
    else
        *out_order = order;
    return status;
}

void order_deinit(struct order *order)
{
    mem_free(order->rows);
    arena_deinit(&order->arena);
    *order = (struct order){0};
}
