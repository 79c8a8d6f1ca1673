/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of a source. What is left of a block moves to its front before the next is read behind it;
 * a line moves at most once, so that long lines cost no more than short ones.
 */
#include "base/base.h"

static const uint8_t byte_order_mark[3] = {0xef, 0xbb, 0xbf};

void line_reader_init(struct line_reader *reader, struct byte_source source, size_t block_bytes,
                      size_t line_bytes_max)
{
    *reader = (struct line_reader){.source = source,
                                   .block_bytes = size_max(block_bytes, 1),
                                   .line_bytes_max = line_bytes_max};
    buf_init(&reader->block, 0);
}

void line_reader_deinit(struct line_reader *reader)
{
    buf_deinit(&reader->block);
    *reader = (struct line_reader){0};
}

void line_reader_rewind(struct line_reader *reader)
{
    buf_clear(&reader->block);
    reader->offset = reader->number = 0;
    reader->start = reader->at = reader->next = 0;
}

static enum status skip_mark(struct line_reader *reader, struct error *err)
{
    uint8_t head[sizeof byte_order_mark];
    if (reader->source.file_bytes < sizeof head)
        return STATUS_OK;
    TRY(byte_source_read(&reader->source, 0, sizeof head, head, err));
    if (memcmp(head, byte_order_mark, sizeof head) == 0)
        reader->offset = sizeof head;
    return STATUS_OK;
}

/* One block more behind what there is of the line. */
static enum status fill(struct line_reader *reader, struct error *err)
{
    struct buf *block = &reader->block;
    if (reader->start) {
        block->length -= reader->start;
        memmove(block->data, block->data + reader->start, block->length);
        reader->at -= reader->start;
        reader->start = 0;
    }
    uint64_t left = reader->source.file_bytes - reader->offset;
    size_t bytes = left < reader->block_bytes ? (size_t)left : reader->block_bytes;
    if (!buf_reserve_place(block, bytes))
        return buf_status(block, "lines", err);
    TRY(byte_source_read(&reader->source, reader->offset, bytes, block->data + block->length, err));
    block->length += bytes;
    reader->offset += bytes;
    return STATUS_OK;
}

/* The end of the line from `at` on. */
static enum status find_end(struct line_reader *reader, struct span *out_line, struct error *err)
{
    struct buf *block = &reader->block;
    const uint8_t *end = NULL;
    for (;;) {
        size_t left = block->length - reader->at;
        end = left ? memchr(block->data + reader->at, '\n', left) : NULL;
        reader->at = end ? (size_t)(end - block->data) : block->length;
        if (reader->at - reader->start > reader->line_bytes_max)
            return error_set(err, STATUS_LIMIT, "line %llu: more than %zu bytes",
                             (unsigned long long)(reader->number + 1), reader->line_bytes_max);
        if (end || reader->offset == reader->source.file_bytes)
            break;
        TRY(fill(reader, err));
    }
    size_t bytes = reader->at - reader->start;
    const uint8_t *line = block->data + reader->start;
    if (bytes && line[bytes - 1] == '\r')
        bytes--;
    reader->next = reader->at + (end != NULL);
    reader->number++;
    *out_line = span_of(line, bytes);
    return STATUS_OK;
}

static bool is_over(const struct line_reader *reader)
{
    return reader->next == reader->block.length && reader->offset == reader->source.file_bytes;
}

enum status line_reader_next(struct line_reader *reader, struct span *out_line, struct error *err)
{
    if (reader->offset == 0)
        TRY(skip_mark(reader, err));
    if (is_over(reader))
        return error_set(err, STATUS_NOT_FOUND, "no more lines");
    reader->start = reader->at = reader->next;
    return find_end(reader, out_line, err);
}

enum status line_reader_extend(struct line_reader *reader, struct span *out_line, struct error *err)
{
    if (is_over(reader))
        return error_set(err, STATUS_NOT_FOUND, "no more lines");
    reader->at = reader->next;
    return find_end(reader, out_line, err);
}
