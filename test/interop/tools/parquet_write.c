/* SPDX-License-Identifier: Apache-2.0
 *
 * parquet_write IN OUT [name=number]...: an Arrow stream becomes a Parquet file; what the writer
 * says about it goes to stdout as JSON. Names: zstd level row_group_rows row_group_bytes page_rows
 * page_bytes dictionary page_version values (enum parquet_values) own_frames sort (field + 1,
 * negative: descending).
 */
#include <string.h>

#include "format/parquet/parquet.h"
#include "tool.h"

static void set_option(struct parquet_options *options, struct parquet_sorting_column *sorting,
                       const char *argument)
{
    const char *equals = strchr(argument, '=');
    long long number = equals ? atoll(equals + 1) : 0;
#define IS(name) (strncmp(argument, name "=", sizeof name) == 0)
    if (IS("zstd"))
        options->compression = number ? PARQUET_ZSTD : PARQUET_UNCOMPRESSED;
    else if (IS("level"))
        options->zstd_level = (int)number;
    else if (IS("own_frames"))
        options->own_zstd_frames = number;
    else if (IS("row_group_rows"))
        options->row_group_rows = number;
    else if (IS("row_group_bytes"))
        options->row_group_bytes = (size_t)number;
    else if (IS("page_rows"))
        options->page_rows = number;
    else if (IS("page_bytes"))
        options->page_bytes = (size_t)number;
    else if (IS("dictionary"))
        options->dictionary_bytes_max = (size_t)number;
    else if (IS("row_group_plain_bytes"))
        options->row_group_plain_bytes = (uint64_t)number;
    else if (IS("page_version"))
        options->page_version = (int)number;
    else if (IS("values"))
        options->values = (enum parquet_values)number;
    else if (IS("sort")) {
        *sorting = (struct parquet_sorting_column){.field = (uint32_t)llabs(number) - 1,
                                                   .is_descending = number < 0,
                                                   .is_nulls_first = true};
        options->sorting = sorting;
        options->sorting_count = 1;
    } else {
        fprintf(stderr, "parquet_write: what is %s?\n", argument);
        exit(2);
    }
}

static void print_bound(const char *name, bool is_there, struct span bound)
{
    if (!is_there)
        return;
    printf(", \"%s\": \"", name);
    for (size_t i = 0; i < bound.length; i++)
        printf("%02x", bound.data[i]);
    printf("\"");
}

static void print_metrics(const struct parquet_file_metrics *metrics)
{
    printf("{\"bytes\": %llu, \"rows\": %lld, \"splits\": [",
           (unsigned long long)metrics->file_bytes, (long long)metrics->row_count);
    for (size_t i = 0; i < metrics->split_offset_count; i++)
        printf("%s%lld", i ? ", " : "", (long long)metrics->split_offsets[i]);
    printf("], \"columns\": [");
    for (size_t i = 0; i < metrics->column_count; i++) {
        const struct parquet_column_metrics *column = &metrics->columns[i];
        printf("%s{\"id\": %d, \"bytes\": %lld, \"values\": %lld, \"nulls\": %lld, \"nans\": %lld",
               i ? ", " : "", (int)column->field_id, (long long)column->column_bytes,
               (long long)column->value_count, (long long)column->null_count,
               (long long)column->nan_count);
        print_bound("lower", column->has_lower, column->lower);
        print_bound("upper", column->has_upper, column->upper);
        printf("}");
    }
    printf("]}\n");
}

int main(int argc, char **argv)
{
    struct error err;
    struct buf out = {0};
    struct parquet_options options = parquet_options_default();
    struct parquet_sorting_column sorting;
    struct parquet_writer *writer;
    struct parquet_file_metrics metrics;
    if (argc < 3) {
        fprintf(stderr, "usage: parquet_write IN OUT [name=number]...\n");
        return 2;
    }
    for (int i = 3; i < argc; i++)
        set_option(&options, &sorting, argv[i]);
    struct buf in = tool_read_file(argv[1]);
    struct tool_stream *stream = tool_read_stream(span_of(in.data, in.length));
    DIE_UNLESS_OK(
        parquet_writer_create(&stream->schema, &options, sink_to_buf(&out), &writer, &err));
    DIE_UNLESS_OK(parquet_writer_add_metadata(writer, "purpose", "test", &err));
    for (size_t i = 0; i < stream->batch_count; i++)
        DIE_UNLESS_OK(parquet_writer_write(writer, &stream->batches[i], &err));
    DIE_UNLESS_OK(parquet_writer_finish(writer, &metrics, &err));
    parquet_writer_destroy(writer);
    print_metrics(&metrics);
    tool_write_file(argv[2], &out);
    return 0;
}
