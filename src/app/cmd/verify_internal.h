/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of `gen --verify`.
 */
#ifndef SLUICE_APP_CMD_VERIFY_INTERNAL_H
#define SLUICE_APP_CMD_VERIFY_INTERNAL_H

#include "app/cmd/cmd_internal.h"
#include "format/parquet/parquet.h"

/* Where a row stands. */
struct verify_place {
    uint32_t table, file, group, row;
};

/* The position columns, last in every batch: text, then int64 even where the table has int32. */
enum { VERIFY_LOG, VERIFY_GROUP, VERIFY_SEQ, VERIFY_INDEX, VERIFY_POSITION_COUNT };

struct verify_table {
    const struct publish_table *definition;
    struct iceberg_table *table; /* NULL: not there */
    struct iceberg_plan plan;
    struct arrow_schema
        wanted;            /* the definition's columns that the table has, then the positions */
    uint32_t *sources;     /* of each, but the positions: its place in the definition */
    uint32_t column_count; /* without the positions */
    struct buf deletes;    /* struct verify_delete, sorted */
    struct arena arena;
};

/* A table that is not in the catalog leaves `out_table->table` NULL and is no failure. */
enum status verify_table_open(struct stack *stack, const struct publish_table *definition,
                              struct verify_table *out_table, struct error *err) MUST_CHECK;
void verify_table_close(struct verify_table *table); /* accepts zeroed */

/* `is_deleted`: a bit a row, or NULL. */
typedef enum status (*verify_batch_fn)(void *context, struct verify_place first,
                                       const struct arrow_batch *batch, const uint8_t *is_deleted,
                                       struct error *err);
/* Told of what cannot be read; OK: go on with the rest. */
typedef enum status (*verify_unchecked_fn)(void *context, const struct publish_table *definition,
                                           struct error *err);
enum status verify_table_scan(struct stack *stack, const struct verify_table *table,
                              uint32_t table_index, verify_batch_fn each,
                              verify_unchecked_fn unchecked, void *context,
                              struct error *err) MUST_CHECK;
/* One row group again. */
enum status verify_group_read(struct stack *stack, const struct verify_table *table,
                              struct verify_place place, verify_batch_fn each, void *context,
                              struct error *err) MUST_CHECK;

/* One cell's value in bytes that are the same for equal values, whatever holds them: integers of
 * any width, dictionaries or not. */
void verify_put_cell(struct buf *out, const struct arrow_field *field,
                     const struct arrow_array *array, int64_t i);

#endif
