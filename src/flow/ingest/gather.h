/* SPDX-License-Identifier: Apache-2.0
 *
 * Group commit for clients that wait for their answer: whoever was just answered mostly asks again
 * at once, and who does shares the next write, if that waits for him. Two clients that take turns
 * at the disk would wait for each other's write and their own. How many come again is learnt, and
 * nobody waits longer than a write takes on average, nor than 2 ms, nor for those who send at their
 * own pace.
 *
 * Pure: the time is given. One a worker, on its thread.
 */
#ifndef SLUICE_FLOW_INGEST_GATHER_H
#define SLUICE_FLOW_INGEST_GATHER_H

#include <stdint.h>

struct gather {
    int64_t write_ns; /* how long a write takes, on average */
    double returns;   /* of the requests, the share whose client had just been answered */
    int64_t until_ns; /* of the last write: how long its clients may take to come again */
    uint32_t wanted;  /* requests that are there by then */
};

/* A request came, `pause_ns` after its client was answered last. */
void gather_came(struct gather *gather, int64_t pause_ns);
/* A write took `took_ns`; `answered` requests of it are being answered, and `waiting` others are
 * there. */
void gather_wrote(struct gather *gather, int64_t now_ns, int64_t took_ns, uint32_t answered,
                  uint32_t waiting);
/* The log is free, and `waiting` requests are there: until when to wait for more; 0: no longer. */
int64_t gather_until(const struct gather *gather, int64_t now_ns, uint32_t waiting);

#endif
