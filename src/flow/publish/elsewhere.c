/* SPDX-License-Identifier: Apache-2.0
 *
 * The publisher of a log that is published from another machine: no lane works here, no catalog is
 * open. What stands in the tables is what the other one has acknowledged to the log; those who wait
 * for it are told by that. Threads: any; lanes change under publisher->lock.
 */
#include <stdio.h>

#include "flow/publish/publish_internal.h"

enum status publisher_must_be_here(const struct publisher *publisher, struct error *err)
{
    if (!publisher->options.is_elsewhere)
        return STATUS_OK;
    return error_set(err, STATUS_UNSUPPORTED,
                     "this log is published from elsewhere (publish.from): ask the server that "
                     "publishes it, or use --publish-from here where its catalog can be reached");
}

enum status publisher_must_have_log(const struct publisher *publisher, struct error *err)
{
    struct source_state state;
    if (!source_state(publisher->source, &state))
        return publisher_must_be_here(publisher, err);
    return error_set(err, STATUS_UNSUPPORTED,
                     "the log is at %s: run this there, with --publish-from here and the catalog "
                     "and warehouse of the tables",
                     state.url);
}

void publisher_acknowledged(struct publisher *publisher, uint32_t table_id)
{
    struct lane *lane = publisher_lane_of(publisher, table_id);
    if (!lane)
        return;
    env_lock(publisher->lock);
    lane->info.acked_wall_ms = env_wall_ns(publisher->env) / 1000000;
    lane->is_demanded = false;
    env_unlock(publisher->lock);
    lane_wake_waiters(lane);
}

bool publisher_is_awaited(struct publisher *publisher, uint32_t table_id)
{
    struct lane *lane = publisher_lane_of(publisher, table_id);
    if (!lane)
        return false;
    env_lock(publisher->lock);
    bool is_awaited = lane->is_demanded || lane->waiters;
    env_unlock(publisher->lock);
    return is_awaited;
}

bool lane_is_acknowledged(struct lane *lane, uint32_t group, uint64_t seq)
{
    struct wal_ack ack;
    return source_ack_get(lane->publisher->source, lane->table_id, group, &ack) &&
           ack.committed.seq >= seq;
}
