/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of the parquet command.
 */
#ifndef SLUICE_APP_CMD_PARQUET_INTERNAL_H
#define SLUICE_APP_CMD_PARQUET_INTERNAL_H

#include "app/cmd/files_internal.h"
#include "format/parquet/parquet.h"

/* Members of an object; of a number below 0, which is not said, none. */
void parquet_write_number(struct json_writer *json, const char *name, int64_t value);
void parquet_write_text(struct json_writer *json, const char *name, const char *text);
void parquet_write_bool(struct json_writer *json, const char *name, bool value);

/* For a leaf_writer whose context are pointers to leaves of the file. */
void parquet_write_leaf(struct json_writer *json, const void *context, uint32_t number,
                        const struct arrow_field *field, const struct arrow_array *array,
                        int64_t i);
/* A value as statistics have it: PLAIN, byte arrays without length; as text not too long. */
void parquet_write_plain(struct json_writer *json, const struct parquet_leaf *leaf,
                         struct span plain);
void parquet_put_plain(struct buf *out, const struct parquet_leaf *leaf, struct span plain);
void parquet_put_encodings(struct buf *out, uint32_t encodings);

/* The leaves of a list of columns, as parquet_leaves_select has them; NULL: all. Owned by `arena`.
 */
enum status parquet_choose(const struct parquet_file *file, const char *columns,
                           struct arena *arena, bool **out_leaves, struct error *err) MUST_CHECK;

void parquet_print_schema(const struct parquet_file *file, bool as_json);
enum status parquet_print_meta(const struct parquet_file *file, const char *columns, bool as_json,
                               struct error *err) MUST_CHECK;
enum status parquet_print_pages(const struct parquet_file *file, const char *columns, bool as_json,
                                struct error *err) MUST_CHECK;
enum status parquet_verify(const struct parquet_file *file, struct error *err) MUST_CHECK;
/* Each file that the words from index `from` name; the exit code of the first that failed. */
int parquet_verify_as_json(const struct invocation *invocation, int from);

#endif
