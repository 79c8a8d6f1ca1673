/* SPDX-License-Identifier: Apache-2.0
 * parquet_columns FILE NAME...: those columns of a Parquet file, a row a line; of the others
 * nothing is read. Long integers and texts are printed, for nulls and other types a question mark.
 */
#include <stdio.h>

#include "format/parquet/parquet.h"
#include "os/os.h"

static void print_slot(const struct arrow_field *field, const struct arrow_array *array, int64_t i)
{
    const int32_t *ends = array->offsets;
    if (arrow_is_valid(array, i) && field->type == ARROW_INT64)
        printf("%lld\t", ((const long long *)array->values)[i]);
    else if (arrow_is_valid(array, i) && field->type == ARROW_UTF8)
        printf("%.*s\t", ends[i + 1] - ends[i], (const char *)array->values + ends[i]);
    else
        printf("?\t");
}

static enum status print(const char *path, char **names, size_t count, struct error *err)
{
    struct buf bytes = {0};
    struct arena arena = {0};
    struct arrow_schema wanted;
    struct parquet_file *file = NULL;
    struct parquet_reader *reader = NULL;
    struct parquet_limits limits = parquet_limits_default();
    struct parquet_read_options options = {.schema = &wanted, .keeps_physical = true};
    enum status status;
    TRY_OR_DONE(status, files_read(env_real(), path, UINT32_MAX, &bytes, err));
    struct span span = span_of(bytes.data, bytes.length);
    TRY_OR_DONE(status, parquet_file_open(byte_source_of_span(&span), &limits, &file, err));
    TRY_OR_DONE(status, parquet_schema_select(file, (const char *const *)names, count, &arena,
                                              &wanted, err));
    TRY_OR_DONE(status, parquet_reader_create(file, &options, &reader, err));
    for (size_t group = 0; group < file->group_count; group++) {
        struct arrow_batch batch;
        TRY_OR_DONE(status, parquet_reader_read(reader, group, &batch, err));
        for (int64_t i = 0; i < batch.length; i++, putchar('\n'))
            for (uint32_t j = 0; j < wanted.field_count; j++)
                print_slot(&wanted.fields[j], &batch.columns[j], i);
        arrow_batch_deinit(&batch);
    }
done:
    parquet_reader_destroy(reader);
    parquet_file_close(file);
    arena_deinit(&arena);
    buf_deinit(&bytes);
    return status;
}

int main(int argc, char **argv)
{
    struct error err = {.message = "usage: parquet_columns FILE NAME..."};
    if (argc > 2 && print(argv[1], argv + 2, (size_t)argc - 2, &err) == STATUS_OK)
        return 0;
    return fprintf(stderr, "%s\n", err.message), 1;
}
