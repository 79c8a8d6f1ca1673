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
    struct arrow_metadata footer;
    struct arrow_schema given, schema; /* of the batches; of what is written */
    struct written_dictionary *dictionaries;
    size_t dictionary_count, dictionary_at; /* in the schema; of the batch at hand */
    struct buf message;                     /* the one at hand */
    struct buf dictionary_blocks, blocks;   /* struct Block of File.fbs */
    uint64_t at;                            /* bytes written */
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

/* Dictionaries, but for those within others, and each with its place for an id. */
static size_t choose_dictionaries(struct arrow_field *fields, uint32_t count, bool is_within)
{
    size_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        fields[i].is_dictionary &= !is_within;
        fields[i].dictionary_key = 0;
        sum += (size_t)fields[i].is_dictionary +
               choose_dictionaries(fields[i].children, fields[i].child_count,
                                   is_within || fields[i].is_dictionary);
    }
    return sum;
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
    TRY_OR_DONE(status, arrow_schema_copy(schema, &writer->arena, &writer->schema, err));
    size_t count = choose_dictionaries(writer->schema.fields, writer->schema.field_count, false);
    writer->dictionaries =
        arena_alloc_zero(&writer->arena, count + 1, sizeof *writer->dictionaries);
    if (!writer->dictionaries) {
        status = error_set(err, STATUS_NO_MEMORY, "arrow: no memory for a writer");
        goto done;
    }
    writer->dictionary_count = count;
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
    for (size_t i = 0; i < writer->dictionary_count; i++)
        ipc_dictionary_deinit(&writer->dictionaries[i]);
    buf_deinit(&writer->message);
    buf_deinit(&writer->dictionary_blocks);
    buf_deinit(&writer->blocks);
    arena_deinit(&writer->arena);
    mem_free(writer);
}

static void note_block(const struct arrow_writer *writer, struct buf *blocks)
{
    uint64_t metadata_bytes = IPC_CONTINUATION_BYTES + (uint64_t)get_le32(writer->message.data + 4);
    buf_put_le64(blocks, writer->at);
    buf_put_le64(blocks, metadata_bytes); /* 4 bytes of it, and 4 of padding */
    buf_put_le64(blocks, writer->message.length - metadata_bytes);
}

static enum status settle_column(struct arrow_writer *writer, const struct arrow_field *given,
                                 const struct arrow_field *field, const struct arrow_array *from,
                                 struct arena *arena, struct arrow_array *column,
                                 struct error *err);

/* A dictionary without others in it, written as far as it was not. */
static enum status settle_dictionary(struct arrow_writer *writer, const struct arrow_field *given,
                                     const struct arrow_field *field, struct arena *arena,
                                     struct arrow_array *column, struct error *err)
{
    struct dictionary_change change;
    struct arrow_field given_values = dictionary_value_field(given);
    struct arrow_field values = dictionary_value_field(field);
    size_t at = writer->dictionary_at++;
    struct arrow_array *plain = arena_alloc(arena, sizeof *plain);
    if (!plain)
        return error_set(err, STATUS_NO_MEMORY, "arrow: no memory for a batch");
    TRY(arrow_plain_array(&given_values, column->dictionary, arena, plain, err));
    column->dictionary = plain;
    TRY(ipc_dictionary_settle(&writer->dictionaries[at], field, writer->container == ARROW_STREAM,
                              arena, column, &change, err));
    if (!change.is_needed)
        return STATUS_OK;
    buf_clear(&writer->message);
    TRY(ipc_write_dictionary_batch(&values, &change.values, (int64_t)at, change.is_delta,
                                   writer->compression, &writer->message, err));
    note_block(writer, &writer->dictionary_blocks);
    return put_message(writer, err);
}

static enum status settle_columns(struct arrow_writer *writer, const struct arrow_field *given,
                                  const struct arrow_field *fields, uint32_t count,
                                  const struct arrow_array *from, struct arena *arena,
                                  struct arrow_array **out_columns, struct error *err)
{
    struct arrow_array *columns = arena_alloc_zero(arena, (size_t)count + 1, sizeof *columns);
    if (!columns)
        return error_set(err, STATUS_NO_MEMORY, "arrow: no memory for a batch");
    for (uint32_t i = 0; i < count; i++)
        TRY(settle_column(writer, &given[i], &fields[i], &from[i], arena, &columns[i], err));
    *out_columns = columns;
    return STATUS_OK;
}

static enum status settle_column(struct arrow_writer *writer, const struct arrow_field *given,
                                 const struct arrow_field *field, const struct arrow_array *from,
                                 struct arena *arena, struct arrow_array *column, struct error *err)
{
    *column = *from;
    if (field->is_dictionary)
        return settle_dictionary(writer, given, field, arena, column, err);
    return field->child_count
               ? settle_columns(writer, given->children, field->children, field->child_count,
                                from->children, arena, &column->children, err)
               : STATUS_OK;
}

static enum status write_batch(struct arrow_writer *writer, const struct arrow_batch *batch,
                               struct arena *arena, struct error *err)
{
    struct arrow_batch settled = *batch;
    settled.schema = &writer->schema;
    writer->dictionary_at = 0;
    TRY(settle_columns(writer, writer->given.fields, writer->schema.fields,
                       writer->schema.field_count, batch->columns, arena, &settled.columns, err));
    buf_clear(&writer->message);
    TRY(ipc_write_record_batch(&writer->schema, &settled, writer->compression, &writer->message,
                               err));
    note_block(writer, &writer->blocks);
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

enum status arrow_writer_set_footer_metadata(struct arrow_writer *writer,
                                             const struct arrow_metadata *metadata,
                                             struct error *err)
{
    for (uint32_t i = 0; i < metadata->count; i++)
        if (arrow_metadata_add(&writer->footer, &writer->arena, metadata->pairs[i].key,
                               metadata->pairs[i].value) != STATUS_OK)
            return error_set(err, STATUS_NO_MEMORY, "arrow: no memory for metadata");
    return STATUS_OK;
}

static enum status put_footer(struct arrow_writer *writer, struct error *err)
{
    struct flat_writer flat;
    struct buf *out = &writer->message;
    uint8_t length[4];
    struct flat_slot slots[] = {FLAT_SHORT(IPC_METADATA_V5), FLAT_OFFSET, FLAT_OFFSET, FLAT_OFFSET,
                                FLAT_ABSENT};
    slots[4].bytes = writer->footer.count ? 4 : 0;
    buf_clear(out);
    flat_begin(&flat, out);
    flat_patch(&flat, 0, flat_table(&flat, slots, COUNT_OF(slots)));
    flat_patch(&flat, slots[1].at, ipc_write_schema_table(&flat, &writer->schema));
    const struct buf *blocks[] = {&writer->dictionary_blocks, &writer->blocks};
    for (size_t i = 0; i < COUNT_OF(blocks); i++)
        flat_patch(
            &flat, slots[2 + i].at,
            flat_structs(&flat, blocks[i]->data, blocks[i]->length / BLOCK_BYTES, BLOCK_BYTES));
    if (writer->footer.count)
        ipc_write_metadata(&flat, slots[4].at, &writer->footer);
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
    TRY(buf_status(&writer->dictionary_blocks, "arrow: writing a file", err));
    TRY(put(writer, end_mark, sizeof end_mark, err));
    return writer->container == ARROW_FILE ? put_footer(writer, err) : STATUS_OK;
}
