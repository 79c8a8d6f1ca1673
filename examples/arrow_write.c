/* SPDX-License-Identifier: Apache-2.0
 * arrow_write OUT: two batches of squares and their names become an Arrow IPC file.
 */
#include <stdio.h>

#include "format/arrow/arrow.h"
#include "os/os.h"

static struct arrow_field fields[] = {
    {.name = "square", .type = ARROW_INT64},
    {.name = "name", .type = ARROW_UTF8},
};
static const struct arrow_schema schema = {.fields = fields, .field_count = COUNT_OF(fields)};

static void append_row(struct arrow_builder *rows, int64_t i)
{
    char name[32];
    int length = snprintf(name, sizeof name, "the square of %d", (int)i);
    arrow_append_i64(&rows->children[0], i * i);
    arrow_append_bytes(&rows->children[1], name, (size_t)length);
    arrow_close_struct(rows);
}

static enum status write(const char *path, struct error *err)
{
    struct arrow_field row = {.type = ARROW_STRUCT, .children = fields, .child_count = 2};
    struct arrow_writer *writer = NULL;
    struct arrow_builder rows = {0};
    struct buf out = {0};
    enum status status;
    TRY_OR_DONE(status, arrow_builder_init(&rows, &row, err));
    TRY_OR_DONE(status, arrow_writer_create(&schema, ARROW_FILE, ARROW_ZSTD, sink_to_buf(&out),
                                            &writer, err));
    for (int64_t first = 0; first < 20; first += 10) {
        struct arrow_batch batch;
        for (int64_t i = first; i < first + 10; i++)
            append_row(&rows, i);
        TRY_OR_DONE(status, arrow_builder_batch(&rows, &schema, &batch, err));
        status = arrow_writer_write(writer, &batch, err);
        arrow_batch_deinit(&batch);
        arrow_builder_clear(&rows);
        TRY_OR_DONE(status, status);
    }
    TRY_OR_DONE(status, arrow_writer_finish(writer, err));
    TRY_OR_DONE(status, files_create(env_real(), path, out.data, out.length, err));
done:
    arrow_writer_destroy(writer);
    arrow_builder_deinit(&rows);
    buf_deinit(&out);
    return status;
}

int main(int argc, char **argv)
{
    struct error err = {.message = "usage: arrow_write OUT"};
    if (argc == 2 && write(argv[1], &err) == STATUS_OK)
        return 0;
    return fprintf(stderr, "%s\n", err.message), 1;
}
