/* SPDX-License-Identifier: Apache-2.0
 *
 * A sink over a buffer.
 */
#include "base/base.h"

static enum status buf_sink_write(void *context, const void *data, size_t bytes, struct error *err)
{
    struct buf *buf = context;
    buf_put(buf, data, bytes);
    return buf_status(buf, "write to memory", err);
}

struct sink sink_to_buf(struct buf *buf)
{
    return (struct sink){.write = buf_sink_write, .context = buf};
}
