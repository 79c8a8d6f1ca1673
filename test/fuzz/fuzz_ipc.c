/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrow streams from outside: whatever the reader accepts, the rest of the program must be able to
 * use. So each batch is gathered, written again, and written as Parquet.
 */
#include "format/parquet/parquet.h"

static enum status discard(void *context, const void *data, size_t bytes, struct error *err)
{
    (void)context;
    (void)data;
    (void)bytes;
    (void)err;
    return STATUS_OK;
}

static void use_batch(const struct arrow_batch *batch, struct parquet_writer *writer)
{
    struct error err;
    struct arrow_batch gathered;
    struct buf out = {0};
    uint32_t count = (uint32_t)(batch->length < 1000 ? batch->length : 1000);
    struct arrow_row *rows = mem_alloc((count + 1) * sizeof *rows);
    for (uint32_t i = 0; rows && i < count; i++)
        rows[i] = (struct arrow_row){.row = count - 1 - i};
    if (rows && arrow_gather(&batch, 1, rows, count, &gathered, &err) == STATUS_OK) {
        for (uint32_t i = 0; i < batch->schema->field_count; i++)
            CHECK(arrow_array_validate(&batch->schema->fields[i], &gathered.columns[i], &err) ==
                  STATUS_OK);
        arrow_batch_deinit(&gathered);
    }
    mem_free(rows);
    CHECK(arrow_ipc_write_batch(batch->schema, batch, ARROW_UNCOMPRESSED, &out, &err) == STATUS_OK);
    if (writer)
        CHECK(parquet_writer_write(writer, batch, &err) == STATUS_OK);
    buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct error err;
    struct arena arena = {0};
    struct arrow_limits limits = arrow_limits_default();
    struct arrow_schema schema;
    struct arrow_reader *reader;
    struct parquet_writer *writer = NULL;
    struct parquet_options options = parquet_options_default();
    size_t used;
    limits.body_bytes_max = 1 << 18;
    limits.field_count_max = 64;
    options.page_rows = 16;
    if (arrow_ipc_read_schema(span_of(data, bytes), &limits, &arena, &schema, &used, &err) ==
            STATUS_OK &&
        arrow_reader_create(&schema, span_of(data + used, bytes - used), &limits, &reader, &err) ==
            STATUS_OK) {
        struct arrow_batch batch;
        if (parquet_writer_create(&schema, &options, (struct sink){.write = discard}, &writer,
                                  &err) != STATUS_OK)
            writer = NULL;
        while (arrow_reader_next(reader, &batch, &err) == STATUS_OK) {
            use_batch(&batch, writer);
            arrow_batch_deinit(&batch);
        }
        parquet_writer_destroy(writer);
        arrow_reader_destroy(reader);
    }
    arena_deinit(&arena);
    return 0;
}
