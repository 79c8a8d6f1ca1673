/* SPDX-License-Identifier: Apache-2.0
 *
 * Between state.c, which writes state/, and state_load.c, which reads it.
 */
#ifndef SLUICE_LOG_STATE_INTERNAL_H
#define SLUICE_LOG_STATE_INTERNAL_H

#include "log/wal/wal_internal.h"

enum {
    STATE_MAGIC = 0x54534c53, /* "SLST" */
    STATE_VERSION = 0,
    STATE_HEADER_BYTES = 64,
    STATE_CRC_AT = 60,
    STATE_SLACK = 64 << 10, /* blocks reserved behind the last record */
    DELTA_ACK = 1,
    DELTA_RECLAIM = 2,
    DELTA_TABLE = 3,
    DELTA_MARK = 4,
    DELTA_LEASE = 5,
    DELTA_LEASE_GONE = 6,
    DELTA_PRODUCERS_GONE = 7,
    DELTA_FENCED = 8,
    DELTA_COMPACT = 9,
    DELTAS_LEAST_BYTES = 1 << 20, /* of deltas before a new base is worth it */
};

enum record_kind { STATE_BASE = 1, STATE_DELTA = 2 };

static inline void state_path(const struct wal *wal, uint64_t number, char out[PATH_BYTES_MAX])
{
    wal_path(wal, out, "state", "%016llx.state", number);
}

/* The numbers of the checkpoints that are there, rising, in `arena`. */
enum status state_list(struct wal *wal, struct arena *arena, uint64_t **out_numbers,
                       size_t *out_count, struct error *err) MUST_CHECK;
/* Acks are monotone in `through`; a later record holds the newer truth. Lock held, or no threads.
 */
enum status state_apply_ack(struct wal *wal, uint32_t table_id, const struct wal_ack *acks,
                            struct error *err) MUST_CHECK;

#endif
