/* SPDX-License-Identifier: Apache-2.0
 *
 * Entries of a log on the wire, as docs/log_port.md says: one frame each, its header and its
 * payload under a checksum. Pure; nothing here trusts the bytes.
 */
#ifndef SLUICE_FLOW_FRAMES_FRAMES_H
#define SLUICE_FLOW_FRAMES_FRAMES_H

#include "log/wal/wal.h"

enum { FRAME_HEADER_BYTES = 100 };

/* Appends the entry, without its contributions. */
void frame_put(struct buf *out, struct log_id log, const struct wal_view *view);
/* Takes the next frame off the bytes. The view borrows its payload from them, and has no
 * contributions. NOT_FOUND: there is none; INVALID: what is there is no frame of this log, or was
 * changed on its way. */
enum status frame_next(struct span *inout_bytes, struct log_id log, struct wal_view *out_view,
                       struct error *err) MUST_CHECK;

#endif
