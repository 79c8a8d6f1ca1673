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

/* match.c: how the types of a file and those of a reader's schema, which both outlive it, match. */
struct avro_resolution;

#define AVRO_NO_PLACE UINT32_MAX

struct avro_match {
    const struct avro_type *type; /* what values become, a branch of a union; NULL: does not fit */
    int64_t factor;               /* of integers: to a finer unit of time */
    uint32_t *places; /* record: for each field, that of the file; enum: for each symbol of the
                       * file, ours, or the default's; or AVRO_NO_PLACE */
};

struct avro_resolution *avro_resolution_create(void);             /* NULL: no memory */
void avro_resolution_destroy(struct avro_resolution *resolution); /* accepts NULL */
/* Lives as long as the resolution. NULL: no memory. */
const struct avro_match *avro_match_types(struct avro_resolution *resolution,
                                          const struct avro_type *from, const struct avro_type *to);

/* resolve.c: a value as a reader's schema wants it; owned by `arena`, it borrows what it was made
 * of.
 */
enum status avro_resolve(struct avro_resolution *resolution, const struct avro_value *from,
                         const struct avro_type *to, uint32_t depth_max, struct arena *arena,
                         const struct avro_value **out_value, struct error *err) MUST_CHECK;

#endif
