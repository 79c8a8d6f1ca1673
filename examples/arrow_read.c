/* SPDX-License-Identifier: Apache-2.0
 *
 * arrow_read FILE: the columns of an Arrow IPC stream or file, then its batches with the number of
 * nulls in each column.
 */
#include <inttypes.h>
#include <stdio.h>

#include "format/arrow/arrow.h"
#include "os/os.h"

static void print_schema(const struct arrow_schema *schema)
{
    for (uint32_t i = 0; i < schema->field_count; i++) {
        struct buf type = {0};
        arrow_type_describe(&schema->fields[i], &type);
        printf("%s: %.*s\n", schema->fields[i].name, (int)type.length, (const char *)type.data);
        buf_deinit(&type);
    }
}

static enum status print(const char *path, struct error *err)
{
    struct buf bytes = {0};
    struct arrow_batch batch;
    struct arrow_file *file = NULL;
    struct arrow_limits limits = arrow_limits_default();
    enum status status;
    TRY_OR_DONE(status, files_read(env_real(), path, UINT32_MAX, &bytes, err));
    struct span span = span_of(bytes.data, bytes.length);
    TRY_OR_DONE(status, arrow_file_open(byte_source_of_span(&span), &limits, &file, err));
    print_schema(arrow_file_schema(file));
    while ((status = arrow_file_next(file, &batch, err)) == STATUS_OK) {
        printf("%" PRId64 " rows, nulls:", batch.length);
        for (uint32_t i = 0; i < batch.schema->field_count; i++)
            printf(" %" PRId64, batch.columns[i].null_count);
        printf("\n");
        arrow_batch_deinit(&batch);
    }
    if (status == STATUS_NOT_FOUND) /* the end */
        status = STATUS_OK;
done:
    arrow_file_close(file);
    buf_deinit(&bytes);
    return status;
}

int main(int argc, char **argv)
{
    struct error err;
    if (argc == 2 && print(argv[1], &err) == STATUS_OK)
        return 0;
    fprintf(stderr, "%s\n", argc == 2 ? err.message : "usage: arrow_read FILE");
    return 1;
}
