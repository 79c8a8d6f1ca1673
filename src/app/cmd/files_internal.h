/* SPDX-License-Identifier: Apache-2.0
 *
 * What the commands share that look into files of the formats: opening them, and rows as JSON, one
 * a line. Numbers are numbers (decimals with all their digits), times ISO 8601, bytes base64, maps
 * with text keys objects (others arrays of pairs), NaN and the infinities text.
 */
#ifndef SLUICE_APP_CMD_FILES_INTERNAL_H
#define SLUICE_APP_CMD_FILES_INTERNAL_H

#include "app/cmd/cmd_internal.h"
#include "format/arrow/arrow.h"
#include "format/json/json.h"

/* ---- files ---- */

struct input {
    struct env_file *file;
    struct byte_source source; /* borrows `file` */
};

/* A file, or a pipe, which is read to its end first. INVALID for what is neither. */
enum status input_open(struct env *env, const char *path, struct input *out_input,
                       struct error *err) MUST_CHECK;
void input_close(struct input *input);

struct arrow_limits files_arrow_limits(void); /* of what commands read */

/* cmd_fail for a file that the user names: damage in it is an answer (2), not a failure of ours. */
int fail_of_file(const struct error *err);

/* Members of an object that say what is wrong: "status", "error", "offset" (null: none). */
void files_write_failure(struct json_writer *json, const struct error *err);

/* Looks into each file that the words from index `from` name, in order. A failure is printed with
 * the file's name, and does not keep from the files behind it. The exit code of the first one. */
int input_each(const struct invocation *invocation, int from,
               enum status (*look)(void *context, struct byte_source source, struct error *err),
               void *context);

/* ---- columns ---- */

/* The names of a list: "a,b"; commas within double quotes part nothing. The quotes stay. */
enum status columns_split(const char *list, struct arena *arena, const char ***out_names,
                          size_t *out_count, struct error *err) MUST_CHECK;

/* Whole columns of a schema, in its order. */
struct chosen_columns {
    struct arrow_schema schema;
    uint32_t *indices;      /* of each, in the schema that they were chosen from */
    uint32_t *first_leaves; /* of each: how many leaves are in front of it */
    struct arena arena;     /* owns all of it but names and children, which are borrowed */
};

/* Those of a list of names ("a,b"; a name in double quotes may have commas, and a quote twice); all
 * of them without a list. NOT_FOUND if one is not there. */
enum status columns_choose(const struct arrow_schema *schema, const char *list,
                           struct chosen_columns *out_chosen, struct error *err) MUST_CHECK;

/* ---- rows ---- */

/* Rows on their way to stdout, or to a sink; zeroed to begin with. */
struct row_printer {
    struct buf out;
    struct json_writer json; /* of the row at hand */
    struct sink sink;        /* `write` NULL: stdout */
};

void row_begin(struct row_printer *printer); /* then one value into `json`, then ..._end */
enum status row_end(struct row_printer *printer, struct error *err) MUST_CHECK;
/* The first `count` rows of a batch whose leaves are Arrow's. */
enum status rows_print_batch(struct row_printer *printer, const struct arrow_batch *batch,
                             int64_t count, struct error *err) MUST_CHECK;
enum status rows_flush(struct row_printer *printer, struct error *err) MUST_CHECK;
/* Prints what is left, and frees. `status`: of what came before; it stays if it is not OK. */
enum status rows_finish(struct row_printer *printer, enum status status,
                        struct error *err) MUST_CHECK;

/* ---- values ---- */

/* `units` a second: 1, 1000, ... 1,000,000,000. */
void row_write_date(struct json_writer *json, int64_t days);
void row_write_time(struct json_writer *json, int64_t value,
                    int64_t units); /* since midnight; a
                                     * number if it is no time of day */
void row_write_timestamp(struct json_writer *json, int64_t value, int64_t units, bool is_utc);
/* Two's complement, big-endian; of at most 64 bytes, longer ones are base64. A scale below 0 adds
 * zeros. */
void row_write_decimal(struct json_writer *json, struct span bytes, int32_t scale);
void row_write_half(struct json_writer *json, uint16_t half); /* IEEE 754 binary16 */
void row_write_base64(struct json_writer *json, struct span bytes);
void row_write_uuid(struct json_writer *json, const uint8_t bytes[16]);

/* How a value without children is written; `leaf` counts such fields in the order of the schema. */
struct leaf_writer {
    void (*write)(struct json_writer *json, const void *context, uint32_t leaf,
                  const struct arrow_field *field, const struct arrow_array *array, int64_t i);
    const void *context;
};

/* Leaves at and below a field. */
uint32_t count_leaves(const struct arrow_field *field);
/* One slot of a field; `leaf` is the number of the first one at or below it. */
void row_write_slot(struct json_writer *json, const struct leaf_writer *leaves, uint32_t leaf,
                    const struct arrow_field *field, const struct arrow_array *array, int64_t i);
/* A slot of utf8, binary, fixed. */
struct span slot_bytes(const struct arrow_field *field, const struct arrow_array *array, int64_t i);
/* A leaf as its Arrow type and its origin say; for a leaf_writer. */
void row_write_arrow_leaf(struct json_writer *json, const void *context, uint32_t leaf,
                          const struct arrow_field *field, const struct arrow_array *array,
                          int64_t i);
/* A leaf as its Arrow type alone says. */
void row_write_plain_leaf(struct json_writer *json, const struct arrow_field *field,
                          const struct arrow_array *array, int64_t i);

#endif
