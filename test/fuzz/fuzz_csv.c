/* SPDX-License-Identifier: Apache-2.0
 *
 * CSV: what is accepted must be valid arrays, and what is written of them must read back and be
 * written again to the same bytes. A second reading settles names and numbers first: "1.0" is
 * written as 1, which is an integer when it is read.
 */
#include "format/csv/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* From one file to the other; returns whether it was CSV. */
static bool rewrite(struct span from, const struct csv_reader_options *options, struct buf *to)
{
    struct error err;
    struct csv_reader *reader;
    struct csv_writer *writer;
    struct arrow_batch batch;
    enum status status = csv_reader_create(byte_source_of_span(&from), options, &reader, &err);
    if (status != STATUS_OK)
        return false;
    const struct arrow_schema *schema = csv_reader_schema(reader);
    CHECK(csv_writer_create(schema, NULL, sink_to_buf(to), &writer, &err) == STATUS_OK);
    while ((status = csv_reader_next(reader, &batch, &err)) == STATUS_OK) {
        for (uint32_t i = 0; i < schema->field_count; i++)
            CHECK(arrow_array_validate(&schema->fields[i], &batch.columns[i], &err) == STATUS_OK);
        CHECK(csv_writer_write(writer, &batch, &err) == STATUS_OK);
        arrow_batch_deinit(&batch);
    }
    CHECK(csv_writer_finish(writer, &err) == STATUS_OK);
    csv_writer_destroy(writer);
    csv_reader_destroy(reader);
    return status == STATUS_NOT_FOUND;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct csv_reader_options options = csv_reader_options_default();
    struct buf files[3] = {0};
    options.block_bytes = 7;
    options.batch_rows = 2;
    if (rewrite(span_of(data, bytes), &options, &files[0])) {
        CHECK(rewrite(span_of(files[0].data, files[0].length), &options, &files[1]));
        CHECK(rewrite(span_of(files[1].data, files[1].length), NULL, &files[2]));
        CHECK(span_equal(span_of(files[1].data, files[1].length),
                         span_of(files[2].data, files[2].length)));
    }
    for (size_t i = 0; i < 3; i++)
        buf_deinit(&files[i]);
    return 0;
}
