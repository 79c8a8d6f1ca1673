/* SPDX-License-Identifier: Apache-2.0
 *
 * avro_read IN OUT [schema=ARROW] [as=AVRO] [ids] [rows=N]: an Avro container file becomes an Arrow
 * stream, each batch validated. `schema`: a stream whose schema is wanted; `as`: a reader's schema
 * in JSON; `rows`: of a batch.
 */
#include <string.h>

#include "format/avro/avro.h"
#include "tool.h"

int main(int argc, char **argv)
{
    struct error err;
    struct avro_rows_options options = {0};
    struct avro_rows *rows;
    struct arrow_batch batch;
    struct buf out = {0};
    if (argc < 3) {
        fprintf(stderr, "usage: avro_read IN OUT [option]...\n");
        return 2;
    }
    for (int i = 3; i < argc; i++) {
        if (strncmp(argv[i], "schema=", 7) == 0) {
            struct buf wanted = tool_read_file(argv[i] + 7);
            options.schema = &tool_read_stream(span_of(wanted.data, wanted.length))->schema;
        } else if (strncmp(argv[i], "as=", 3) == 0) {
            struct buf json = tool_read_file(argv[i] + 3);
            options.reads_as = span_of(json.data, json.length);
        } else if (strncmp(argv[i], "rows=", 5) == 0) {
            options.batch_rows = atoll(argv[i] + 5);
        } else {
            options.binds_by_id = strcmp(argv[i], "ids") == 0;
        }
    }
    struct buf in = tool_read_file(argv[1]);
    struct span bytes = span_of(in.data, in.length);
    DIE_UNLESS_OK(avro_rows_open(byte_source_of_span(&bytes), NULL, &options, &rows, &err));
    const struct arrow_schema *schema = avro_rows_schema(rows);
    DIE_UNLESS_OK(arrow_ipc_write_schema(schema, &out, &err));
    enum status status;
    while ((status = avro_rows_next(rows, &batch, &err)) == STATUS_OK) {
        for (uint32_t i = 0; i < schema->field_count; i++)
            DIE_UNLESS_OK(arrow_array_validate(&schema->fields[i], &batch.columns[i], &err));
        DIE_UNLESS_OK(arrow_ipc_write_batch(schema, &batch, ARROW_UNCOMPRESSED, &out, &err));
        arrow_batch_deinit(&batch);
    }
    if (status != STATUS_NOT_FOUND)
        DIE_UNLESS_OK(status);
    buf_put_le32(&out, UINT32_MAX);
    buf_put_le32(&out, 0);
    tool_write_file(argv[2], &out);
    avro_rows_close(rows);
    return 0;
}
