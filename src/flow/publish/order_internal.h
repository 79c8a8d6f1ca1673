/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of the rows of a range.
 */
#ifndef SLUICE_FLOW_PUBLISH_ORDER_H
#define SLUICE_FLOW_PUBLISH_ORDER_H

#include "flow/publish/publish_internal.h"

enum { ORDER_PARTITIONS_MAX = 8192 };

struct order_row {
    uint64_t keys[2];
    uint32_t partition, batch, row;
};

struct order {
    const struct range *range; /* borrowed */
    struct order_row *rows;
    size_t row_count;
    const struct iceberg_value *partitions[ORDER_PARTITIONS_MAX]; /* by ordinal, in the arena */
    uint32_t partition_count;
    int text_column; /* the first sort column where it is text compared in full; -1 */
    struct arena arena;
};

/* Rows of `range` by partition and sort columns. */
enum status order_create(const struct publish_table *definition, const struct binding *binding,
                         const struct range *range, struct order *out_order,
                         struct error *err) MUST_CHECK;
void order_deinit(struct order *order); /* accepts zeroed */

/* Looks through a dictionary: the array and row that hold the value. */
const struct arrow_array *order_cell(const struct arrow_field *field,
                                     const struct arrow_array *array, int64_t *inout_row);

#endif
