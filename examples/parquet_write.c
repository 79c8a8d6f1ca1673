/* SPDX-License-Identifier: Apache-2.0
 * parquet_write OUT: three rows of a number, a text and a list become a Parquet file. */
#include <stdio.h>

#include "format/parquet/parquet.h"
#include "os/os.h"

static struct arrow_field element = {.name = "element", .type = ARROW_DOUBLE};
static struct arrow_field fields[] = {
    {.name = "id", .type = ARROW_INT64},
    {.name = "name", .type = ARROW_UTF8},
    {.name = "readings", .type = ARROW_LIST, .children = &element, .child_count = 1},
};
static const struct arrow_field row = {.type = ARROW_STRUCT, .children = fields, .child_count = 3};
static const struct arrow_schema schema = {.fields = fields, .field_count = 3};

static void append_rows(struct arrow_builder *rows)
{
    for (int64_t i = 0; i < 3; i++) {
        arrow_append_i64(&rows->children[0], i);
        arrow_append_bytes(&rows->children[1], "sensor", 6);
        for (double j = 0; j < (double)i; j++)
            arrow_append_double(&rows->children[2].children[0], j / 2);
        arrow_close_list(&rows->children[2]);
        arrow_close_struct(rows);
    }
}

static enum status write(const char *path, struct error *err)
{
    struct parquet_options options = parquet_options_default();
    struct parquet_file_metrics metrics = {0};
    struct parquet_writer *writer = NULL;
    struct arrow_builder rows = {0};
    struct arrow_batch batch = {0};
    struct buf out = {0};
    enum status status;
    TRY_OR_DONE(status, arrow_builder_init(&rows, &row, err));
    append_rows(&rows);
    TRY_OR_DONE(status, arrow_builder_batch(&rows, &schema, &batch, err));
    TRY_OR_DONE(status, parquet_writer_create(&schema, &options, sink_to_buf(&out), &writer, err));
    TRY_OR_DONE(status, parquet_writer_write(writer, &batch, err));
    TRY_OR_DONE(status, parquet_writer_finish(writer, &metrics, err));
    TRY_OR_DONE(status, files_create(env_real(), path, out.data, out.length, err));
done:
    parquet_file_metrics_deinit(&metrics);
    parquet_writer_destroy(writer);
    arrow_batch_deinit(&batch);
    arrow_builder_deinit(&rows);
    buf_deinit(&out);
    return status;
}

int main(int argc, char **argv)
{
    struct error err = {.message = "usage: parquet_write OUT"};
    bool is_done = argc == 2 && write(argv[1], &err) == STATUS_OK;
    return is_done ? 0 : (fprintf(stderr, "%s\n", err.message), 1);
}
