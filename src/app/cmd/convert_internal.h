/* SPDX-License-Identifier: Apache-2.0
 *
 * What `convert` reads and writes: batches, whatever the format. The format is the ending of a
 * file's name.
 */
#ifndef SLUICE_APP_CMD_CONVERT_INTERNAL_H
#define SLUICE_APP_CMD_CONVERT_INTERNAL_H

#include "app/cmd/files_internal.h"

enum file_format {
    FORMAT_PARQUET,
    FORMAT_ARROW,
    FORMAT_ARROW_STREAM,
    FORMAT_NDJSON,
    FORMAT_CSV,
    FORMAT_COUNT
};

/* USAGE, with the endings that are known. */
enum status format_of_path(const char *path, enum file_format *out_format,
                           struct error *err) MUST_CHECK;

/* ---- convert_read.c ---- */

struct rows_in {
    const struct arrow_schema *schema; /* lives until the close */
    /* NOT_FOUND at the end; the batch ends before the next call. */
    enum status (*next)(void *state, struct arrow_batch *out_batch, struct error *err);
    void (*close)(void *state);
    void *state;
};

enum status rows_in_open(enum file_format format, struct byte_source source,
                         struct rows_in *out_rows, struct error *err) MUST_CHECK;

/* ---- convert_write.c ---- */

struct rows_out {
    enum status (*write)(void *state, const struct arrow_batch *batch, struct error *err);
    enum status (*finish)(void *state, struct error *err);
    void (*close)(void *state); /* after finish, or instead */
    void *state;
};

/* `compression`: as the format names them; NULL: its default. USAGE for one that it has not. */
enum status rows_out_open(enum file_format format, const struct arrow_schema *schema,
                          const char *compression, struct sink sink, struct rows_out *out_rows,
                          struct error *err) MUST_CHECK;

#endif
