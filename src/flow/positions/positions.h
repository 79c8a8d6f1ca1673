/* SPDX-License-Identifier: Apache-2.0
 *
 * The columns by which a row says where it stands on the log: the same four behind every table's
 * own, in the table and on the log port. Pure.
 */
#ifndef SLUICE_FLOW_POSITIONS_POSITIONS_H
#define SLUICE_FLOW_POSITIONS_POSITIONS_H

#include "format/arrow/arrow.h"

/* The places of position_fields. */
enum { POSITION_LOG, POSITION_GROUP, POSITION_SEQ, POSITION_INDEX, POSITION_FIELDS };

/* _sluice_log (dictionary), _sluice_group, _sluice_seq, _sluice_index. */
extern const struct arrow_field position_fields[POSITION_FIELDS];

struct position {
    uint64_t seq;
    uint32_t group, index; /* of the row in its entry */
};

/* The payload's fields, then these. Borrows names and children; the array is owned by `arena`.
 * False: out of memory. */
bool positions_schema(const struct arrow_schema *payload, struct arena *arena,
                      struct arrow_schema *out_schema);
/* One of the columns for rows that stand there; its buffers are owned by `arena`, but for
 * `log_text`, which is borrowed. False: out of memory. */
bool positions_column(int which, const char log_text[LOG_ID_TEXT_BYTES],
                      const struct position *rows, size_t count, struct arena *arena,
                      struct arrow_array *out_array);

#endif
