/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a writer of a format puts its bytes, in order: a file, an upload, a buffer.
 */
#ifndef SLUICE_BASE_SINK_H
#define SLUICE_BASE_SINK_H

#include "base/buf.h"
#include "base/status.h"

struct sink {
    enum status (*write)(void *context, const void *data, size_t bytes, struct error *err);
    void *context;
};

static inline MUST_CHECK enum status sink_write(struct sink sink, const void *data, size_t bytes,
                                                struct error *err)
{
    return sink.write(sink.context, data, bytes, err);
}

struct sink sink_to_buf(struct buf *buf); /* borrows `buf` */

#endif
