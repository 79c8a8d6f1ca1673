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
    FORMAT_AVRO,
    FORMAT_COUNT
};

/* Of a line of text, read or written. No value takes less than two, a comma too. */
enum { LINE_BYTES_MAX = 256 << 20, LINE_VALUES_MAX = LINE_BYTES_MAX / 2 };

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
    const struct arrow_metadata *footer; /* of an Arrow file; NULL: none */
    const struct arrow_schema *original; /* as Arrow had it, with dictionaries; NULL: it had not */
};

/* What the rows are for, and how they are wanted. */
struct read_flags {
    enum file_format to; /* dictionaries stay such for Arrow alone */
    bool no_arrow_schema;
};

enum status rows_in_open(enum file_format format, const struct read_flags *flags,
                         struct byte_source source, struct rows_in *out_rows,
                         struct error *err) MUST_CHECK;

/* ---- convert_write.c ---- */

struct rows_out {
    enum status (*write)(void *state, const struct arrow_batch *batch, struct error *err);
    enum status (*finish)(void *state, struct error *err);
    void (*close)(void *state); /* after finish, or instead */
    void *state;
};

enum { COLUMN_FLAGS_MAX = 64 };

/* How OUT is wanted; what is NULL or 0 was not said. */
struct write_flags {
    const char *compression; /* as the format names them */
    uint8_t random[16];      /* Avro's marks between blocks */
    /* Parquet alone */
    const char *encodings[COLUMN_FLAGS_MAX]; /* "NAME" or "COLUMN=NAME" */
    size_t encoding_count;
    const char *blooms[COLUMN_FLAGS_MAX]; /* columns */
    size_t bloom_count;
    uint64_t page_version, row_group_rows, page_rows;
    uint64_t threads;         /* 0: as many as there are cores */
    struct executor executor; /* of so many, where there is more than one */
    bool no_arrow_schema;
    const struct arrow_schema *original; /* to be kept in the file; NULL: none */
    /* Arrow files alone */
    const struct arrow_metadata *footer; /* NULL: none */
};

/* USAGE for a flag that the format has not. */
enum status rows_out_open(enum file_format format, const struct arrow_schema *schema,
                          const struct write_flags *flags, struct sink sink,
                          struct rows_out *out_rows, struct error *err) MUST_CHECK;
/* The number of a flag's value in a list that NULL ends; USAGE, with the list, for another. */
enum status find_name(const char *flag, const char *const *names, const char *name, int *out_number,
                      struct error *err) MUST_CHECK;

/* ---- convert_parquet.c ---- */

enum status parquet_out_open(const struct arrow_schema *schema, const struct write_flags *flags,
                             struct sink sink, struct rows_out *out_rows,
                             struct error *err) MUST_CHECK;

#endif
