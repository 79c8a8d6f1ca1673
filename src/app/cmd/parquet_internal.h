/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of the parquet command.
 */
#ifndef SLUICE_APP_CMD_PARQUET_INTERNAL_H
#define SLUICE_APP_CMD_PARQUET_INTERNAL_H

#include "app/cmd/files_internal.h"
#include "format/parquet/parquet.h"

/* For a leaf_writer whose context is the file's leaves. */
void parquet_write_leaf(struct json_writer *json, const void *context, uint32_t number,
                        const struct arrow_field *field, const struct arrow_array *array,
                        int64_t i);

#endif
