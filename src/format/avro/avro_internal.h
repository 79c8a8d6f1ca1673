/* SPDX-License-Identifier: Apache-2.0
 *
 * Between the files of the avro module.
 */
#ifndef SLUICE_FORMAT_AVRO_AVRO_INTERNAL_H
#define SLUICE_FORMAT_AVRO_AVRO_INTERNAL_H

#include "format/avro/avro.h"

/* The type tree of a schema's JSON, owned by `arena`. Names may refer to enclosing types, so the
 * graph can have circles; walkers bound their depth. */
enum status avro_schema_parse(struct span json, const struct avro_limits *limits,
                              struct arena *arena, const struct avro_type **out_type,
                              struct error *err) MUST_CHECK;

/* resolve.c: a value as a reader's schema wants it; owned by `arena`, it borrows what it was made
 * of.
 */
enum status avro_resolve(const struct avro_value *from, const struct avro_type *to,
                         uint32_t depth_max, struct arena *arena,
                         const struct avro_value **out_value, struct error *err) MUST_CHECK;

#endif
