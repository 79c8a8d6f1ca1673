/* SPDX-License-Identifier: Apache-2.0
 *
 * Just enough of a Parquet reader for the simulation's model: one required INT64 column and the
 * footer's metadata. Written from the format's specification, and shares nothing with the writer.
 */
#ifndef SLUICE_TEST_PARQUET_LOOK_H
#define SLUICE_TEST_PARQUET_LOOK_H

#include "base/base.h"

struct parquet_look {
    struct span file;
    uint64_t footer_bytes;
    int64_t rows;
    const char *why; /* what is wrong with the file */
};

/* False, with `why`: not a whole Parquet file. Borrows the bytes. */
bool parquet_look_open(struct parquet_look *look, struct span file);
/* The values of a top-level INT64 column without nulls, `rows` of them, in the file's order;
 * malloc'ed. NULL, with `why`, where they cannot be read. */
int64_t *parquet_look_i64(struct parquet_look *look, const char *column);
/* The value of a key of the footer; false if it is not there or does not fit. */
bool parquet_look_metadata(struct parquet_look *look, const char *key, char *out, size_t bytes);

#endif
