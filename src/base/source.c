/* SPDX-License-Identifier: Apache-2.0
 *
 * A source over memory.
 */
#include "base/base.h"

static enum status span_source_read(void *context, uint64_t offset, size_t bytes, void *place,
                                    struct error *err)
{
    const struct span *span = context;
    if (offset > span->length || bytes > span->length - offset)
        return error_set(err, STATUS_IO, "read past the end");
    if (bytes)
        memcpy(place, span->data + offset, bytes);
    return STATUS_OK;
}

struct byte_source byte_source_of_span(const struct span *bytes)
{
    union { /* the context is not written through */
        const struct span *in;
        void *out;
    } context = {.in = bytes};
    return (struct byte_source){
        .read = span_source_read, .context = context.out, .file_bytes = bytes->length};
}
