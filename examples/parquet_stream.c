/* SPDX-License-Identifier: Apache-2.0
 *
 * A library of one function, parquet_stream_open: the rows of a Parquet file for another library in
 * the same process, through the Arrow C stream interface. README.md has the other side.
 */
#include "format/parquet/parquet.h"
#include "os/os.h"

__attribute__((visibility("default"))) int parquet_stream_open(const char *path,
                                                               struct ArrowArrayStream *out_stream);

struct rows {
    struct buf bytes;
    struct span span;
    struct parquet_file *file;
    struct parquet_reader *reader;
    size_t group; /* the next one */
};

static void close_rows(void *context)
{
    struct rows *rows = context;
    parquet_reader_destroy(rows->reader);
    parquet_file_close(rows->file);
    buf_deinit(&rows->bytes);
    mem_free(rows);
}

static enum status next_group(void *context, struct arrow_batch *out_batch, struct error *err)
{
    struct rows *rows = context;
    if (rows->group == rows->file->group_count)
        return error_set(err, STATUS_NOT_FOUND, "no more rows");
    return parquet_reader_read(rows->reader, rows->group++, out_batch, err);
}

/* 0, or the exit code of what went wrong. */
int parquet_stream_open(const char *path, struct ArrowArrayStream *out_stream)
{
    struct error err;
    struct parquet_limits limits = parquet_limits_default();
    struct parquet_read_options options = {.schema = NULL}; /* all columns */
    struct rows *rows = mem_alloc_zero(1, sizeof *rows);
    struct arrow_c_source source = {.next = next_group, .close = close_rows, .context = rows};
    enum status status = STATUS_NO_MEMORY;
    if (!rows)
        return status_exit_code(status);
    TRY_OR_DONE(status, files_read(env_real(), path, UINT32_MAX, &rows->bytes, &err));
    rows->span = span_of(rows->bytes.data, rows->bytes.length);
    TRY_OR_DONE(status,
                parquet_file_open(byte_source_of_span(&rows->span), &limits, &rows->file, &err));
    TRY_OR_DONE(status, parquet_reader_create(rows->file, &options, &rows->reader, &err));
    TRY_OR_DONE(status, arrow_c_export_stream(parquet_reader_schema(rows->reader), source,
                                              out_stream, &err));
    return 0; /* the stream has the rows now */
done:
    close_rows(rows);
    return status_exit_code(status);
}
