/* SPDX-License-Identifier: Apache-2.0
 *
 * A write unit between the queue and the disk: shared by draft.c, which makes it, and writer.c,
 * which writes it.
 */
#ifndef SLUICE_LOG_WRITER_INTERNAL_H
#define SLUICE_LOG_WRITER_INTERNAL_H

#include "log/wal/wal_internal.h"

/* One record of a unit. */
struct written {
    struct record record;
    uint64_t offset; /* in the draft's memory; in the unit once that is finished */
    uint32_t header_crc;
    uint64_t previous_term; /* of the group, to go back to */
    struct control *control;
};

/* The submissions that share a unit. */
struct batch {
    struct wal_submission *head, *tail;
    uint64_t records, bytes; /* records without their list */
    size_t footer_bytes;
};

struct draft {
    struct batch batch;
    struct unit_buffer *buffer;
    uint64_t records_at, at; /* in the buffer's memory: the first record, the end of the last */
    struct written *written; /* schemas too */
    size_t written_count, written_capacity;
    uint64_t *schemas; /* first used in this unit, in order */
    size_t schema_count, schema_capacity, schemas_put;
};

static inline uint64_t unit_bytes_for(const struct batch *batch)
{
    return align_up(unit_head_bytes(batch->records) + batch->bytes, WAL_BLOCK);
}

/* Adds the submission's cost to `batch`, and its new schemas to the draft. False: out of memory.
 * Lock held. */
bool draft_cost(struct wal *wal, struct draft *draft, const struct wal_submission *submission,
                struct batch *batch);
/* The records of draft->batch. False: out of memory; draft_undo. The lead held. */
bool draft_encode(struct wal *wal, struct draft *draft);
/* List and header; memory for the index. False: out of memory; draft_undo. The lead held. */
bool draft_finish(struct wal *wal, struct draft *draft);
/* The groups' tails go back to before this unit. */
void draft_undo(struct wal *wal, struct draft *draft);
void draft_clear(struct draft *draft); /* for the next unit; the buffer has been given away */

/* Makes what was copied ahead, and what else is queued and fits, the draft to write. False: nothing
 * was. The lead and the lock held. */
bool draft_take_ahead(struct wal *wal);

#endif
