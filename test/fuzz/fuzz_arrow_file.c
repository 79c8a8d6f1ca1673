/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrow files and streams of others: what the reader accepts must be whole, so that each array
 * passes the checks once more.
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct error err;
    struct buf text = {0};
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
    while (arrow_file_next(file, &batch, &err) == STATUS_OK) {
        for (uint32_t i = 0; i < schema->field_count; i++)
            CHECK(has_dictionary(&schema->fields[i]) ||
                  arrow_array_validate(&schema->fields[i], &batch.columns[i], &err) == STATUS_OK);
        arrow_batch_deinit(&batch);
    }
    arrow_file_close(file);
    buf_deinit(&text);
    return 0;
}
