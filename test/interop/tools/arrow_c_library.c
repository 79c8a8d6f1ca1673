/* SPDX-License-Identifier: Apache-2.0
 *
 * A library that test_arrow_c.py loads: batches and streams through our structs and back, and Arrow
 * files as streams. Each function returns a status's exit code, and its message in `out_message`.
 */
#include <stdio.h>

#include "format/arrow/arrow.h"

#define EXPORTED __attribute__((visibility("default")))

enum { MESSAGE_BYTES = 512 };

EXPORTED int copy_schema(struct ArrowSchema *in, struct ArrowSchema *out,
                         char out_message[MESSAGE_BYTES]);
EXPORTED int copy_batch(struct ArrowSchema *schema, struct ArrowArray *in, struct ArrowArray *out,
                        char out_message[MESSAGE_BYTES]);
EXPORTED int copy_stream(struct ArrowArrayStream *in, struct ArrowArrayStream *out,
                         char out_message[MESSAGE_BYTES]);
EXPORTED int open_arrow(const char *path, struct ArrowArrayStream *out,
                        char out_message[MESSAGE_BYTES]);

static int answer(enum status status, const struct error *err, char out_message[MESSAGE_BYTES])
{
    snprintf(out_message, MESSAGE_BYTES, "%s", status == STATUS_OK ? "" : err->message);
    return status_exit_code(status);
}

/* ---- copies ---- */

EXPORTED int copy_schema(struct ArrowSchema *in, struct ArrowSchema *out,
                         char out_message[MESSAGE_BYTES])
{
    struct error err;
    struct arena arena = {0};
    struct arrow_schema schema;
    struct arrow_limits limits = arrow_limits_default();
    enum status status = arrow_c_import_schema(in, &limits, &arena, &schema, &err);
    if (status == STATUS_OK)
        status = arrow_c_export_schema(&schema, out, &err);
    arena_deinit(&arena);
    return answer(status, &err, out_message);
}

EXPORTED int copy_batch(struct ArrowSchema *schema, struct ArrowArray *in, struct ArrowArray *out,
                        char out_message[MESSAGE_BYTES])
{
    struct error err;
    struct arena arena = {0};
    struct arrow_schema fields;
    struct arrow_batch batch;
    struct arrow_limits limits = arrow_limits_default();
    enum status status = arrow_c_import_schema(schema, &limits, &arena, &fields, &err);
    if (status == STATUS_OK)
        status = arrow_c_import_batch(in, &fields, &limits, &batch, &err);
    for (uint32_t i = 0; status == STATUS_OK && i < fields.field_count; i++)
        if (!batch.columns[i].dictionary) /* whose values may be null, here */
            status = arrow_array_validate(&fields.fields[i], &batch.columns[i], &err);
    if (status == STATUS_OK)
        status = arrow_c_export_batch(&batch, out, &err);
    arena_deinit(&arena);
    return answer(status, &err, out_message);
}

static enum status next_of_stream(void *context, struct arrow_batch *out_batch, struct error *err)
{
    return arrow_c_stream_next(context, out_batch, err);
}

static void close_stream(void *context)
{
    arrow_c_stream_close(context);
}

EXPORTED int copy_stream(struct ArrowArrayStream *in, struct ArrowArrayStream *out,
                         char out_message[MESSAGE_BYTES])
{
    struct error err;
    struct arrow_c_stream *stream;
    struct arrow_limits limits = arrow_limits_default();
    enum status status = arrow_c_stream_open(in, &limits, &stream, &err);
    if (status == STATUS_OK) {
        struct arrow_c_source source = {
            .next = next_of_stream, .close = close_stream, .context = stream};
        status = arrow_c_export_stream(arrow_c_stream_schema(stream), source, out, &err);
    }
    return answer(status, &err, out_message);
}

/* ---- files ---- */

static enum status read_at(void *context, uint64_t offset, size_t bytes, void *place,
                           struct error *err)
{
    FILE *file = context;
    if (fseek(file, (long)offset, SEEK_SET) != 0 || fread(place, 1, bytes, file) != bytes)
        return error_set(err, STATUS_IO, "reading a file");
    return STATUS_OK;
}

/* Stays open as long as the process. */
static struct byte_source open_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    CHECK(file && fseek(file, 0, SEEK_END) == 0);
    return (struct byte_source){
        .read = read_at, .context = file, .file_bytes = (uint64_t)ftell(file)};
}

EXPORTED int open_arrow(const char *path, struct ArrowArrayStream *out,
                        char out_message[MESSAGE_BYTES])
{
    struct error err;
    struct arrow_file *file;
    struct arrow_limits limits = arrow_limits_default();
    enum status status = arrow_file_open(open_file(path), &limits, &file, &err);
    if (status == STATUS_OK)
        status = arrow_c_export_file(file, out, &err);
    return answer(status, &err, out_message);
}
