/* SPDX-License-Identifier: Apache-2.0
 *
 * Leases: what consumers hold of the log (L31-L33). Between leases.c and the files that keep
 * segments and write state/.
 */
#ifndef SLUICE_LOG_LEASES_INTERNAL_H
#define SLUICE_LOG_LEASES_INTERNAL_H

#include "log/wal/wal.h"

struct segment;

struct lease_member {
    bool has_joined;
    uint64_t term, seq; /* acknowledged up to here */
    char owner[WAL_OWNER_MAX + 1];
};

/* What state/ holds of a consumer. Changes under the state long lock and the lock, once it is
 * synced. */
struct lease_state {
    char name[WAL_CONSUMER_NAME_MAX + 1];
    uint32_t table_id, group, member_count;
    uint64_t ttl_ms;
    uint64_t held_from; /* entries of the table above it are held */
    bool is_released;   /* by nobody renewing it, or for space; until the next ack */
    struct lease_member members[WAL_MEMBERS_MAX];
};

/* The rest is guarded by the lock alone. */
struct lease {
    struct lease_state state;
    bool is_retaken; /* released in state/, and renewed since */
    int64_t until_ns[WAL_MEMBERS_MAX];
};

void lease_encode(const struct lease_state *state, struct buf *out);
/* False: no such thing was written. */
bool lease_decode(struct cursor *cursor, uint32_t group_count, struct lease_state *out_state);
/* Makes it what is known of its name; lock held, or no threads. False: out of memory, or too many.
 */
bool lease_set(struct wal *wal, const struct lease_state *state);
void lease_forget(struct wal *wal, struct span name);
void leases_deinit(struct wal *wal);

/* From where on the table's entries in the group are held; UINT64_MAX: they are not. Lock held. */
uint64_t leases_held_from(const struct wal *wal, uint32_t group, uint32_t table_id);
/* Does a hold want something of this segment? Lock held. */
bool leases_need(const struct wal *wal, const struct segment *segment);
/* The two ways a hold ends without its consumer; state held, lock not. What is given up is synced
 * before anything goes. */
enum status leases_lapse(struct wal *wal, struct error *err) MUST_CHECK;
/* only_published: of tables that have all their rows from the segment. */
enum status leases_release(struct wal *wal, const struct segment *segment, bool only_published,
                           struct error *err) MUST_CHECK;

#endif
