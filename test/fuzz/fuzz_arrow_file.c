/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrow files and streams of others: what the reader accepts must be whole, so that each array
 * passes the checks once more; and written again, as a stream and as a file, it is read back.
 */
#include "format/arrow/arrow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* But for dictionaries, which others may put nulls into. */
static bool has_dictionary(const struct arrow_field *field)
{
    bool found = field->is_dictionary;
    for (uint32_t i = 0; i < field->child_count; i++)
        found |= has_dictionary(&field->children[i]);
    return found;
}

/* What the writer took. */
struct copy {
    struct buf bytes;
    struct arrow_writer *writer; /* NULL: it refused */
    uint64_t rows;
};

static void copy_begin(struct copy *copy, const struct arrow_schema *schema,
                       enum arrow_container container)
{
    struct error err;
    if (arrow_writer_create(schema, container, ARROW_UNCOMPRESSED, sink_to_buf(&copy->bytes),
                            &copy->writer, &err) != STATUS_OK)
        copy->writer = NULL;
}

static void copy_batch(struct copy *copy, const struct arrow_batch *batch)
{
    struct error err;
    if (!copy->writer)
        return;
    copy->rows += (uint64_t)batch->length;
    if (arrow_writer_write(copy->writer, batch, &err) == STATUS_OK)
        return;
    arrow_writer_destroy(copy->writer);
    copy->writer = NULL;
}

static void copy_end(struct copy *copy)
{
    struct error err;
    struct arrow_file *file;
    struct arrow_batch batch;
    struct arrow_limits limits = arrow_limits_default();
    limits.body_bytes_max = (size_t)1 << 30;
    if (copy->writer) {
        CHECK(arrow_writer_finish(copy->writer, &err) == STATUS_OK);
        struct span span = span_of(copy->bytes.data, copy->bytes.length);
        CHECK(arrow_file_open(byte_source_of_span(&span), &limits, &file, &err) == STATUS_OK);
        enum status status;
        while ((status = arrow_file_next(file, &batch, &err)) == STATUS_OK)
            arrow_batch_deinit(&batch);
        CHECK(status == STATUS_NOT_FOUND && arrow_file_facts(file).row_count == copy->rows);
        arrow_file_close(file);
    }
    arrow_writer_destroy(copy->writer);
    buf_deinit(&copy->bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct error err;
    struct buf text = {0};
    struct copy copies[2] = {0};
    struct span span = span_of(data, bytes);
    struct arrow_limits limits = arrow_limits_default();
    struct arrow_file *file;
    struct arrow_batch batch;
    limits.body_bytes_max = 1 << 18;
    limits.field_count_max = 64;
    if (arrow_file_open(byte_source_of_span(&span), &limits, &file, &err) != STATUS_OK)
        return 0;
    const struct arrow_schema *schema = arrow_file_schema(file);
    for (uint32_t i = 0; i < schema->field_count; i++)
        arrow_type_describe(&schema->fields[i], &text);
    copy_begin(&copies[0], schema, ARROW_STREAM);
    copy_begin(&copies[1], schema, ARROW_FILE);
    while (arrow_file_next(file, &batch, &err) == STATUS_OK) {
        for (uint32_t i = 0; i < schema->field_count; i++)
            CHECK(has_dictionary(&schema->fields[i]) ||
                  arrow_array_validate(&schema->fields[i], &batch.columns[i], &err) == STATUS_OK);
        copy_batch(&copies[0], &batch);
        copy_batch(&copies[1], &batch);
        arrow_batch_deinit(&batch);
    }
    copy_end(&copies[0]);
    copy_end(&copies[1]);
    arrow_file_close(file);
    buf_deinit(&text);
    return 0;
}
