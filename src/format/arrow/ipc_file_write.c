/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrow IPC, writing: whole streams and files. Source: Arrow Columnar Format 1.5, "IPC Streaming
 * Format" and "IPC File Format"; File.fbs.
 */
#include "format/arrow/ipc_internal.h"

enum { MAGIC_BYTES = 6, HEAD_BYTES = 8, BLOCK_BYTES = 24 };

static const char magic[HEAD_BYTES] = "ARROW1\0";

struct arrow_writer {
    enum arrow_container container;
    enum arrow_compression compression;
    struct sink sink;
    struct arrow_schema given, schema; /* of the batches; the same without dictionaries */
    bool has_dictionaries;
    struct buf message, blocks; /* the one at hand; struct Block of File.fbs */
    uint64_t at;                /* bytes written */
    struct arena arena;
};

static enum status put(struct arrow_writer *writer, const void *data, size_t bytes,
                       struct error *err)
{
    TRY(sink_write(writer->sink, data, bytes, err));
    writer->at += bytes;
    return STATUS_OK;
}

static enum status put_message(struct arrow_writer *writer, struct error *err)
{
    return put(writer, writer->message.data, writer->message.length, err);
}

static enum status begin(struct arrow_writer *writer, struct error *err)
{
    if (writer->container == ARROW_FILE)
        TRY(put(writer, magic, sizeof magic, err));
    TRY(arrow_ipc_write_schema(&writer->schema, &writer->message, err));
    return put_message(writer, err);
}

enum status arrow_writer_create(const struct arrow_schema *schema, enum arrow_container container,
                                enum arrow_compression compression, struct sink sink,
                                struct arrow_writer **out_writer, struct error *err)
{
    TRY(arrow_schema_check_depth(schema, err));
    struct arrow_writer *writer = mem_alloc_zero(1, sizeof *writer);
    enum status status;
    if (!writer)
        return error_set(err, STATUS_NO_MEMORY, "arrow: no memory for a writer");
    writer->container = container;
    writer->compression = compression;
    writer->sink = sink;
    arena_init(&writer->arena, 0);
    TRY_OR_DONE(status, arrow_schema_copy(schema, &writer->arena, &writer->given, err));
    TRY_OR_DONE(status, arrow_plain_schema(schema, &writer->arena, &writer->schema,
                                           &writer->has_dictionaries, err));
    TRY_OR_DONE(status, begin(writer, err));
    *out_writer = writer;
    return STATUS_OK;
done:
    arrow_writer_destroy(writer);
    return status;
}

void arrow_writer_destroy(struct arrow_writer *writer)
{
    if (!writer)
        return;
    buf_deinit(&writer->message);
    buf_deinit(&writer->blocks);
    arena_deinit(&writer->arena);
    mem_free(writer);
}

static void note_block(struct arrow_writer *writer)
{
    uint64_t metadata_bytes = IPC_CONTINUATION_BYTES + (uint64_t)get_le32(writer->message.data + 4);
    buf_put_le64(&writer->blocks, writer->at);
    buf_put_le64(&writer->blocks, metadata_bytes); /* 4 bytes of it, and 4 of padding */
    buf_put_le64(&writer->blocks, writer->message.length - metadata_bytes);
}

static enum status write_batch(struct arrow_writer *writer, const struct arrow_batch *batch,
                               struct arena *arena, struct error *err)
{
    struct arrow_batch plain = *batch;
    uint32_t count = writer->schema.field_count;
    plain.schema = &writer->schema;
    plain.columns = arena_alloc_zero(arena, (size_t)count + 1, sizeof *plain.columns);
    if (!plain.columns)
        return error_set(err, STATUS_NO_MEMORY, "arrow: no memory for a batch");
    for (uint32_t i = 0; i < count; i++)
        TRY(arrow_plain_array(&writer->given.fields[i], &batch->columns[i], arena,
                              &plain.columns[i], err));
    buf_clear(&writer->message);
    TRY(arrow_ipc_write_batch(&writer->schema, &plain, writer->compression, &writer->message, err));
    note_block(writer);
    return put_message(writer, err);
}

enum status arrow_writer_write(struct arrow_writer *writer, const struct arrow_batch *batch,
                               struct error *err)
{
    struct arena arena;
    if (!arrow_schema_equal(&writer->given, batch->schema))
        return error_set(err, STATUS_INVALID, "arrow: a batch of another schema");
    arena_init(&arena, 0);
    enum status status = write_batch(writer, batch, &arena, err);
    arena_deinit(&arena);
    return status;
}

static enum status put_footer(struct arrow_writer *writer, struct error *err)
{
    struct flat_writer flat;
    struct buf *out = &writer->message;
    uint8_t length[4];
    struct flat_slot slots[] = {FLAT_SHORT(IPC_METADATA_V5), FLAT_OFFSET, FLAT_OFFSET, FLAT_OFFSET};
    buf_clear(out);
    flat_begin(&flat, out);
    flat_patch(&flat, 0, flat_table(&flat, slots, COUNT_OF(slots)));
    flat_patch(&flat, slots[1].at, ipc_write_schema_table(&flat, &writer->schema));
    flat_patch(&flat, slots[2].at, flat_structs(&flat, NULL, 0, BLOCK_BYTES));
    flat_patch(
        &flat, slots[3].at,
        flat_structs(&flat, writer->blocks.data, writer->blocks.length / BLOCK_BYTES, BLOCK_BYTES));
    TRY(buf_status(out, "arrow: writing a footer", err));
    put_le32(length, (uint32_t)out->length);
    TRY(put_message(writer, err));
    TRY(put(writer, length, sizeof length, err));
    return put(writer, magic, MAGIC_BYTES, err);
}

enum status arrow_writer_finish(struct arrow_writer *writer, struct error *err)
{
    uint8_t end_mark[IPC_CONTINUATION_BYTES] = {0xff, 0xff, 0xff, 0xff};
    TRY(buf_status(&writer->blocks, "arrow: writing a file", err));
    TRY(put(writer, end_mark, sizeof end_mark, err));
    return writer->container == ARROW_FILE ? put_footer(writer, err) : STATUS_OK;
}
