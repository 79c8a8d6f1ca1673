/* SPDX-License-Identifier: Apache-2.0
 *
 * What the interop tools share: whole files in and out, and dying with a message.
 */
#ifndef SLUICE_TEST_INTEROP_TOOL_H
#define SLUICE_TEST_INTEROP_TOOL_H

#include <stdio.h>
#include <stdlib.h>

#include "format/arrow/arrow.h"

#define DIE_UNLESS_OK(expression)                                                                  \
    do {                                                                                           \
        enum status status_ = (expression);                                                        \
        if (status_ != STATUS_OK) {                                                                \
            fprintf(stderr, "%s: %s\n", status_name(status_), err.message);                        \
            exit(status_exit_code(status_));                                                       \
        }                                                                                          \
    } while (0)

static inline struct buf tool_read_file(const char *path)
{
    struct buf bytes = {0};
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(1);
    }
    char chunk[1 << 16];
    for (size_t count; (count = fread(chunk, 1, sizeof chunk, file)) > 0;)
        buf_put(&bytes, chunk, count);
    fclose(file);
    return bytes;
}

static inline void tool_write_file(const char *path, const struct buf *bytes)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes->data, 1, bytes->length, file) != bytes->length || fclose(file)) {
        perror(path);
        exit(1);
    }
}

/* All batches of an Arrow stream; they live as long as the process. */
struct tool_stream {
    struct arena arena;
    struct arrow_schema schema;
    struct arrow_batch *batches;
    size_t batch_count;
};

static inline struct tool_stream *tool_read_stream(struct span bytes)
{
    struct tool_stream *stream = mem_alloc_zero(1, sizeof *stream);
    struct arrow_limits limits = arrow_limits_default();
    struct arrow_reader *reader;
    struct error err;
    size_t used;
    DIE_UNLESS_OK(
        arrow_ipc_read_schema(bytes, &limits, &stream->arena, &stream->schema, &used, &err));
    DIE_UNLESS_OK(arrow_reader_create(
        &stream->schema, span_of(bytes.data + used, bytes.length - used), &limits, &reader, &err));
    for (;;) {
        struct arrow_batch batch;
        enum status status = arrow_reader_next(reader, &batch, &err);
        if (status == STATUS_NOT_FOUND)
            return stream; /* the reader stays: the batches are its */
        DIE_UNLESS_OK(status);
        stream->batches =
            mem_resize(stream->batches, (stream->batch_count + 1) * sizeof *stream->batches);
        stream->batches[stream->batch_count++] = batch;
    }
}

#endif
