/* SPDX-License-Identifier: Apache-2.0
 *
 * A client of a server's log port (docs/log_port.md): pages of one table's rows in order, from a
 * cursor on, over restarts of the server. What it hands out is at least once; who keeps the cursor
 * with the rows has each exactly once.
 *
 * Blocking; one thread at a time.
 */
#ifndef SLUICE_FLOW_FOLLOW_FOLLOW_H
#define SLUICE_FLOW_FOLLOW_FOLLOW_H

#include "os/os.h"

enum { FOLLOW_CURSOR_BYTES = 136, FOLLOW_FLAGS_BYTES = 80 };

struct follow_options {
    const char *address; /* of the server's log port; text is borrowed for the follower's life */
    uint16_t port;
    const char *table;
    uint32_t group;
    const char *consumer;          /* NULL: without a lease */
    uint32_t member, member_count; /* of the consumer's partition group: entries whose number
                                      modulo the count is the member; count 0: all of them */
    const char *owner;             /* who the consumer, or that member, belongs to; NULL: "" */
    uint64_t ttl_ms;               /* of the lease; default 300,000 */
    uint64_t bytes_max;            /* of a page, as the log stores it; default 4 MiB */
    uint64_t retry_ms_min, retry_ms_max; /* back-off while no server answers; 50 and 5,000 */
    uint64_t give_up_ms;                 /* after so long without an answer; default 30,000 */
};

struct follow_options follow_options_default(void);

struct follow;

/* One page. `stream` is an Arrow IPC stream, borrowed until the next call. */
struct follow_page {
    struct span stream; /* empty: no rows; the cursor may have moved all the same */
    uint64_t rows;
    char cursor[FOLLOW_CURSOR_BYTES];
    char flags[FOLLOW_FLAGS_BYTES]; /* what the lease lacks, as the server says it; "" */
    bool is_at_end;                 /* the log had nothing behind it */
};

enum status follow_create(struct env *env, const struct follow_options *options,
                          struct follow **out_follow, struct error *err) MUST_CHECK;
void follow_destroy(struct follow *follow); /* accepts NULL */

/* Where to begin: "earliest" (what is still there), "latest", a cursor or SEQ. With a consumer,
 * NULL: where he has acknowledged up to. Makes the consumer, if one is named. Statuses as
 * follow_next. */
enum status follow_begin(struct follow *follow, const char *from, struct error *err) MUST_CHECK;
const char *follow_cursor(const struct follow *follow);

/* The next page, waiting up to `wait_ms` for rows. Asks again while no server answers, or one that
 * is busy. IO: none did for give_up_ms. RECLAIMED: entries behind the cursor are gone, the message
 * says which; IDENTITY: the log is not the one, or not in the state, that the cursor is of, or the
 * consumer is another; CORRUPT: entries are damaged; NOT_FOUND: no such table; INVALID. */
enum status follow_next(struct follow *follow, uint64_t wait_ms, struct follow_page *out_page,
                        struct error *err) MUST_CHECK;
/* Of the last RECLAIMED: the last entry of those that are gone; follow_begin there goes on behind
 * them.
 */
uint64_t follow_reclaimed_last(const struct follow *follow);
/* Tells the server that all up to the cursor was taken over durably. With no consumer, nothing. */
enum status follow_acknowledge(struct follow *follow, struct error *err) MUST_CHECK;

#endif
