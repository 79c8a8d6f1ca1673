/* SPDX-License-Identifier: Apache-2.0
 *
 * Between the files that make Arrow of Avro and the other way.
 */
#ifndef SLUICE_FORMAT_AVRO_ARROW_INTERNAL_H
#define SLUICE_FORMAT_AVRO_ARROW_INTERNAL_H

#include "format/avro/avro_arrow.h"

static inline bool avro_is_logical(const struct avro_type *type, const char *name)
{
    return type->logical_type && strcmp(type->logical_type, name) == 0;
}

/* The type of what is not null; the union itself where it has several. */
const struct avro_type *avro_some_type(const struct avro_type *type, bool *out_is_nullable);
bool avro_is_map(const struct avro_type *type);
const struct avro_field *avro_map_fields(const struct avro_type *type); /* key, value */

#endif
