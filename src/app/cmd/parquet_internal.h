/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of the parquet command.
 */
#ifndef SLUICE_APP_CMD_PARQUET_INTERNAL_H
#define SLUICE_APP_CMD_PARQUET_INTERNAL_H

#include "app/cmd/cmd_internal.h"
#include "format/json/json.h"
#include "format/parquet/parquet.h"

/* Leaves of the file at and below a field. */
uint32_t parquet_count_leaves(const struct arrow_field *field);
/* One slot of a field as JSON; `leaves` begins with the file's first one below the field. */
void parquet_write_value(struct json_writer *writer, const struct parquet_leaf *leaves,
                         const struct arrow_field *field, const struct arrow_array *array,
                         int64_t i);

#endif
