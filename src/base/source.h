/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a reader of a format gets its bytes, at any offset: a file, an object, memory. The sink's
 * counterpart.
 */
#ifndef SLUICE_BASE_SOURCE_H
#define SLUICE_BASE_SOURCE_H

#include "base/bytes.h"
#include "base/status.h"

/* `read` fills `place` with exactly `bytes` bytes, which lie within `file_bytes`. */
struct byte_source {
    enum status (*read)(void *context, uint64_t offset, size_t bytes, void *place,
                        struct error *err);
    void *context;
    uint64_t file_bytes;
};

static inline MUST_CHECK enum status byte_source_read(const struct byte_source *source,
                                                      uint64_t offset, size_t bytes, void *place,
                                                      struct error *err)
{
    return source->read(source->context, offset, bytes, place, err);
}

struct byte_source
byte_source_of_span(const struct span *bytes); /* borrows `bytes` and what it names */

#endif
