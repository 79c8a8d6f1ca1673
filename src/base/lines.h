/* SPDX-License-Identifier: Apache-2.0
 *
 * The lines of a source, read block by block. A line ends with LF or CRLF; the last one may end
 * with the source. A UTF-8 byte order mark at the start is passed over. Memory: two lines of the
 * longest length that is allowed, and a block; time is linear in what was read. Owned by one
 * thread.
 */
#ifndef SLUICE_BASE_LINES_H
#define SLUICE_BASE_LINES_H

#include "base/buf.h"
#include "base/source.h"

struct line_reader {
    struct byte_source source;
    size_t block_bytes, line_bytes_max;
    uint64_t offset;        /* of the source: what was read so far */
    uint64_t number;        /* of the last line handed out, from 1 */
    struct buf block;       /* the line, and what was read behind it */
    size_t start, at, next; /* in `block`: the line, how far its end was sought, the next line */
};

/* `block_bytes` are read at once; a line has `line_bytes_max` bytes at most. Borrows the source's
 * context. */
void line_reader_init(struct line_reader *reader, struct byte_source source, size_t block_bytes,
                      size_t line_bytes_max);
void line_reader_deinit(struct line_reader *reader); /* accepts zeroed */
void line_reader_rewind(struct line_reader *reader); /* to the first line again; keeps memory */

/* The next line without its end, valid until the next call. NOT_FOUND at the end of the source,
 * LIMIT with the line's number for a line that is too long, and what the source answers. */
enum status line_reader_next(struct line_reader *reader, struct span *out_line,
                             struct error *err) MUST_CHECK;

/* The last line again, its end, and the line behind it: for what goes on past a line's end. The
 * span begins with the same bytes, but may lie elsewhere. Statuses as above; the limit counts for
 * the whole. */
enum status line_reader_extend(struct line_reader *reader, struct span *out_line,
                               struct error *err) MUST_CHECK;

#endif
