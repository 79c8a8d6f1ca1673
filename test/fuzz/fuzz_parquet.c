/* SPDX-License-Identifier: Apache-2.0
 *
 * Parquet files from outside: whatever the reader accepts is an Arrow batch that keeps every rule.
 * Each file is read as it is and with its dictionaries kept; the first of its columns alone too.
 */
#include "format/parquet/parquet.h"

enum { GROUPS_MAX = 8 };

static void read_groups(const struct parquet_file *file, const struct parquet_read_options *options)
{
    struct error err;
    struct parquet_reader *reader;
    if (parquet_reader_create(file, options, &reader, &err) != STATUS_OK)
        return;
    const struct arrow_schema *schema = parquet_reader_schema(reader);
    for (size_t i = 0; i < file->group_count && i < GROUPS_MAX; i++) {
        struct arrow_batch batch;
        if (parquet_reader_read(reader, i, &batch, &err) != STATUS_OK)
            continue;
        for (uint32_t j = 0; j < schema->field_count; j++)
            CHECK(arrow_array_validate(&schema->fields[j], &batch.columns[j], &err) == STATUS_OK);
        arrow_batch_deinit(&batch);
    }
    parquet_reader_destroy(reader);
}

static void keep_dictionaries(struct arrow_field *fields, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        fields[i].is_dictionary = fields[i].type == ARROW_UTF8 || fields[i].type == ARROW_BINARY;
        keep_dictionaries(fields[i].children, fields[i].child_count);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct error err;
    struct span span = span_of(data, bytes);
    struct arena arena;
    struct arrow_schema schema;
    struct parquet_file *file;
    struct parquet_limits limits = parquet_limits_default();
    struct parquet_read_options options = {.skips_checksums = true};
    limits.metadata_bytes_max = 1 << 20;
    limits.element_count_max = 64;
    limits.page_bytes_max = 1 << 18;
    limits.batch_bytes_max = 1 << 20;
    if (parquet_file_open(byte_source_of_span(&span), &limits, &file, &err) != STATUS_OK)
        return 0;
    arena_init(&arena, 0);
    read_groups(file, &options);
    if (arrow_schema_copy(&file->schema, &arena, &schema, &err) == STATUS_OK) {
        keep_dictionaries(schema.fields, schema.field_count);
        options.schema = &schema;
        read_groups(file, &options);
        schema.field_count = schema.field_count ? 1 : 0;
        read_groups(file, &options);
    }
    arena_deinit(&arena);
    parquet_file_close(file);
    return 0;
}
