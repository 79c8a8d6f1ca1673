/* SPDX-License-Identifier: Apache-2.0
 *
 * arrow_copy IN OUT none|lz4|zstd copy|reverse: reads an Arrow stream and writes it again, as it is
 * or gathered into one batch with the rows in the reverse order.
 */
#include <string.h>

#include "tool.h"

static struct arrow_batch reversed(const struct tool_stream *stream)
{
    struct error err;
    struct arrow_batch out;
    size_t count = 0, at = 0;
    const struct arrow_batch **batches = mem_alloc((stream->batch_count + 1) * sizeof *batches);
    for (size_t i = 0; i < stream->batch_count; i++) {
        batches[i] = &stream->batches[i];
        count += (size_t)stream->batches[i].length;
    }
    struct arrow_row *rows = mem_alloc((count + 1) * sizeof *rows);
    for (size_t i = stream->batch_count; i-- > 0;)
        for (int64_t row = stream->batches[i].length; row-- > 0;)
            rows[at++] = (struct arrow_row){.batch = (uint32_t)i, .row = (uint32_t)row};
    DIE_UNLESS_OK(arrow_gather(batches, stream->batch_count, rows, count, &out, &err));
    mem_free(batches);
    mem_free(rows);
    return out;
}

static void share_indices(const struct arrow_schema *schema, struct arrow_batch *batch)
{
    struct arrow_array *columns = batch->columns;
    size_t bytes = (size_t)batch->length * sizeof(int32_t);
    for (uint32_t i = 0; i < schema->field_count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (columns[i].dictionary && columns[j].dictionary &&
                memcmp(columns[i].values, columns[j].values, bytes) == 0)
                columns[i].values = columns[j].values;
}

int main(int argc, char **argv)
{
    struct error err;
    struct buf out = {0};
    if (argc != 5) {
        fprintf(stderr, "usage: arrow_copy IN OUT none|lz4|zstd copy|share|reverse\n");
        return 2;
    }
    enum arrow_compression compression = strcmp(argv[3], "lz4") == 0    ? ARROW_LZ4_FRAME
                                         : strcmp(argv[3], "zstd") == 0 ? ARROW_ZSTD
                                                                        : ARROW_UNCOMPRESSED;
    struct buf in = tool_read_file(argv[1]);
    struct tool_stream *stream = tool_read_stream(span_of(in.data, in.length));
    DIE_UNLESS_OK(arrow_ipc_write_schema(&stream->schema, &out, &err));
    if (strcmp(argv[4], "reverse") == 0) {
        struct arrow_batch batch = reversed(stream);
        for (uint32_t i = 0; i < stream->schema.field_count; i++)
            DIE_UNLESS_OK(arrow_array_validate(&stream->schema.fields[i], &batch.columns[i], &err));
        DIE_UNLESS_OK(arrow_ipc_write_batch(&stream->schema, &batch, compression, &out, &err));
        arrow_batch_deinit(&batch);
    } else {
        for (size_t i = 0; i < stream->batch_count; i++) {
            if (strcmp(argv[4], "share") == 0)
                share_indices(&stream->schema, &stream->batches[i]);
            DIE_UNLESS_OK(arrow_ipc_write_batch(&stream->schema, &stream->batches[i], compression,
                                                &out, &err));
        }
    }
    buf_put_le32(&out, UINT32_MAX);
    buf_put_le32(&out, 0);
    tool_write_file(argv[2], &out);
    return 0;
}
