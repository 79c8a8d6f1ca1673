/* SPDX-License-Identifier: Apache-2.0
 *
 * Columns from and to other libraries in the same process, without a copy where the layout allows.
 * Part of arrow.h. Source: Arrow Columnar Format 1.5, "The Arrow C data interface" and "The Arrow C
 * stream interface"; the three structs below are theirs, under the guards that other headers have.
 *
 * Who owns: a struct is released by whoever holds it, once, through its `release`, which sets
 * `release` to NULL; it is moved by copying it and setting the `release` of the old place to NULL.
 * What we export may be released, children apart from their parents, by any thread. Functions that
 * take a struct move it; on failure it stays with the caller.
 *
 * What cannot be checked: buffers carry no lengths here, nor do strings of metadata. That a buffer
 * is as long as lengths, offsets and the format say is the producer's word; everything else is
 * verified.
 */
#ifndef SLUICE_FORMAT_ARROW_ARROW_C_H
#define SLUICE_FORMAT_ARROW_ARROW_C_H

#include "format/arrow/arrow_file.h"

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

#endif

/* ---- out ---- */

/* The schema as a struct of its fields. Fields go out as arrow_writer writes them: with an origin
 * as what they were, large and view types and lists of a fixed size as the plain ones that they
 * have become; but dictionaries as dictionaries, of int32 indices. */
enum status arrow_c_export_schema(const struct arrow_schema *schema, struct ArrowSchema *out_schema,
                                  struct error *err) MUST_CHECK;

/* Takes the batch (it is zeroed), whose arena must own all that its arrays point to: the buffers go
 * out as they are, and live until the last of the structs is released. */
enum status arrow_c_export_batch(struct arrow_batch *batch, struct ArrowArray *out_array,
                                 struct error *err) MUST_CHECK;

/* Where the batches of a stream come from. */
struct arrow_c_source {
    /* The next batch, which owns its memory; NOT_FOUND at the end. */
    enum status (*next)(void *context, struct arrow_batch *out_batch, struct error *err);
    void (*close)(void *context); /* at the end of the stream's life; NULL: nothing to do */
    void *context;
};

/* Copies `schema`, which all batches must have. The stream calls the source from whichever thread
 * calls the stream, one at a time. Statuses leave it as EINVAL (INVALID, CORRUPT), ENOMEM, ENOSYS
 * (UNSUPPORTED) and EIO, their messages through get_last_error. */
enum status arrow_c_export_stream(const struct arrow_schema *schema, struct arrow_c_source source,
                                  struct ArrowArrayStream *out_stream,
                                  struct error *err) MUST_CHECK;

/* The batches of an Arrow file or stream from where it is. Takes the file, and closes it; its
 * source must outlive the stream. Batches get copies of the file's dictionaries, since they outlive
 * them. */
enum status arrow_c_export_file(struct arrow_file *file, struct ArrowArrayStream *out_stream,
                                struct error *err) MUST_CHECK;

/* ---- in ---- */

/* The fields of a struct; copies, and leaves `schema` to the caller. Takes every type that
 * arrow_file_open takes, and dictionaries that columns share; INVALID for what is no schema,
 * UNSUPPORTED with the column and the type for unions, run ends, list views. */
enum status arrow_c_import_schema(const struct ArrowSchema *schema,
                                  const struct arrow_limits *limits, struct arena *arena,
                                  struct arrow_schema *out_schema, struct error *err) MUST_CHECK;

/* A struct array as a batch of a schema that was imported with it, which the batch borrows. Takes
 * the array: it is released when the batch is deinited. Buffers are used where they lie if they are
 * laid out as ours are (no offset, on multiples of 8, nothing behind null slots); others are
 * copied, within what the limits allow a message to become. INVALID, with the column, for arrays
 * that are not of that schema or that arrow_array_validate would refuse (unlike ours, dictionaries
 * may hold nulls); LIMIT for more than 2^31 - 1 rows, elements or bytes in a column. */
enum status arrow_c_import_batch(struct ArrowArray *array, const struct arrow_schema *schema,
                                 const struct arrow_limits *limits, struct arrow_batch *out_batch,
                                 struct error *err) MUST_CHECK;

struct arrow_c_stream;

/* Takes the stream. */
enum status arrow_c_stream_open(struct ArrowArrayStream *stream, const struct arrow_limits *limits,
                                struct arrow_c_stream **out_stream, struct error *err) MUST_CHECK;
void arrow_c_stream_close(struct arrow_c_stream *stream); /* accepts NULL; releases */

/* Lives as long as the stream; batches borrow it. */
const struct arrow_schema *arrow_c_stream_schema(const struct arrow_c_stream *stream);
/* As arrow_c_import_batch; NOT_FOUND at the end. IO and the like with the producer's message. */
enum status arrow_c_stream_next(struct arrow_c_stream *stream, struct arrow_batch *out_batch,
                                struct error *err) MUST_CHECK;

#endif
