/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers of Arrow's IPC format that reader and writer share, and what the files of the reader
 * share. Source: Message.fbs, Schema.fbs.
 */
#ifndef SLUICE_FORMAT_ARROW_IPC_INTERNAL_H
#define SLUICE_FORMAT_ARROW_IPC_INTERNAL_H

#include "format/arrow/arrow_internal.h"
#include "format/arrow/flatbuf_internal.h"

enum {
    IPC_CONTINUATION_BYTES = 8, /* FFFFFFFF and the metadata's size */
    IPC_METADATA_V5 = 4,
    IPC_METADATA_V4 = 3,
    IPC_BODY_ALIGNMENT = 64,
};

enum ipc_header {
    IPC_SCHEMA = 1,
    IPC_DICTIONARY_BATCH = 2,
    IPC_RECORD_BATCH = 3,
};

enum ipc_type {
    IPC_NULL = 1,
    IPC_INT = 2,
    IPC_FLOATING_POINT = 3,
    IPC_BINARY = 4,
    IPC_UTF8 = 5,
    IPC_BOOL = 6,
    IPC_DECIMAL = 7,
    IPC_DATE = 8,
    IPC_TIME = 9,
    IPC_TIMESTAMP = 10,
    IPC_INTERVAL = 11,
    IPC_LIST = 12,
    IPC_STRUCT = 13,
    IPC_UNION = 14,
    IPC_FIXED_SIZE_BINARY = 15,
    IPC_FIXED_SIZE_LIST = 16,
    IPC_MAP = 17,
    IPC_DURATION = 18,
    IPC_LARGE_BINARY = 19,
    IPC_LARGE_UTF8 = 20,
    IPC_LARGE_LIST = 21,
    IPC_RUN_END_ENCODED = 22,
    IPC_BINARY_VIEW = 23,
    IPC_UTF8_VIEW = 24,
    IPC_LIST_VIEW = 25,
    IPC_LARGE_LIST_VIEW = 26,
};

/* Units of Date, Timestamp and the like (as enum arrow_unit), of Interval; precision of
 * FloatingPoint, codecs of BodyCompression. */
enum { IPC_DAY = 0, IPC_MILLISECOND = 1, IPC_MICROSECOND = 2 };
enum { IPC_YEAR_MONTH = 0, IPC_DAY_TIME = 1, IPC_MONTH_DAY_NANO = 2 };
enum { IPC_HALF = 0, IPC_SINGLE = 1, IPC_DOUBLE = 2 };
enum { IPC_CODEC_NONE = -1, IPC_CODEC_LZ4 = 0, IPC_CODEC_ZSTD = 1 };

/* ---- messages ---- */

/* The message at the start of `bytes`: its metadata and its body, in place. */
struct ipc_message {
    struct flat_reader flat;
    struct flat_table root, header; /* Message, and what it is about */
    int64_t type;                   /* enum ipc_header, or one that we do not know */
    struct span body;
    size_t bytes; /* all of it */
};

/* NOT_FOUND: the end of the stream (its mark, or no bytes at all). */
enum status ipc_message_read(struct span bytes, const struct arrow_limits *limits,
                             struct ipc_message *out_message, struct error *err) MUST_CHECK;

/* The two halves of it, for bytes that come one after the other. `left`: bytes behind what is
 * given. `out_message` has no body yet, but its length; `metadata` must stay. */
enum status ipc_prefix_read(const uint8_t prefix[IPC_CONTINUATION_BYTES], uint64_t left,
                            const struct arrow_limits *limits, uint32_t *out_metadata_bytes,
                            struct error *err) MUST_CHECK;
enum status ipc_metadata_read(struct span metadata, uint64_t left,
                              const struct arrow_limits *limits, struct ipc_message *out_message,
                              struct error *err) MUST_CHECK;

/* ---- schemas ---- */

struct schema_reader {
    struct schema_making making;
    struct flat_reader *flat;
    int64_t dictionaries; /* seen so far */
    int64_t *ids;         /* of them */
};

/* A Schema table, of a message or a footer. */
enum status ipc_schema_read(struct flat_reader *flat, const struct flat_table *table,
                            const struct arrow_limits *limits, bool takes_origins,
                            struct arena *arena, struct arrow_schema *out_schema,
                            struct error *err) MUST_CHECK;

/* Pairs in a slot of a table, owned by the schema's arena. */
enum status ipc_metadata_pairs_read(struct schema_reader *reader, const struct flat_table *table,
                                    uint32_t slot, struct arrow_metadata *metadata) MUST_CHECK;

/* The type of a Field table. */
enum status ipc_type_read(struct schema_reader *reader, const struct flat_table *table,
                          struct arrow_field *field, struct arrow_origin *origin) MUST_CHECK;

/* ---- writing ---- */

/* A message on its way out. */
struct outgoing {
    struct flat_writer flat;
    size_t start;                                 /* of the message in the output */
    size_t header_at, body_bytes_at, metadata_at; /* to be patched */
};

void outgoing_begin(struct outgoing *message, struct buf *out, enum ipc_header type,
                    bool has_metadata);
/* A vector of pairs, referred to from a slot. */
void ipc_write_metadata(struct flat_writer *flat, size_t slot_at,
                        const struct arrow_metadata *metadata);
/* Pads, so that what follows lies on a multiple of 64, and fills in both sizes. */
void outgoing_end(struct outgoing *message, uint64_t body_bytes);
/* Outputs stay as they were: what was written since `start` goes, and so does a failure of it. */
void outgoing_take_back(struct buf *out, size_t start);
/* The table Schema, of messages and footers; returns its position. */
size_t ipc_write_schema_table(struct flat_writer *flat, const struct arrow_schema *schema);
int64_t ipc_take_dictionary_id(int64_t *dictionaries, const struct arrow_field *field);

/* One message each; `values` are of the type `field`, and have no dictionary in them. */
enum status ipc_write_dictionary_batch(const struct arrow_field *field,
                                       const struct arrow_array *values, int64_t id, bool is_delta,
                                       enum arrow_compression compression, struct buf *out,
                                       struct error *err) MUST_CHECK;
enum status ipc_write_record_batch(const struct arrow_schema *schema,
                                   const struct arrow_batch *batch,
                                   enum arrow_compression compression, struct buf *out,
                                   struct error *err) MUST_CHECK;

/* ipc_dictionaries.c: what a stream or file has of its dictionaries so far, in the schema's order.
 */
struct written_dictionary {
    struct growing_values written;
    bool is_written;
    uint32_t *slots;   /* file: open addressing, the number of a value plus 1; NULL: not made yet */
    size_t slot_count; /* a power of two */
    uint32_t listed;   /* the first values, which `slots` has */
};

/* What has to be written before a batch may refer to `column->dictionary`. */
struct dictionary_change {
    bool is_needed, is_delta;
    struct arrow_array values;
};

/* Brings what was written and a column of the next batch together: in a file, indices that have
 * other values by now are replaced. What is made is owned by `arena`. */
enum status ipc_dictionary_settle(struct written_dictionary *dictionary,
                                  const struct arrow_field *field, bool may_replace,
                                  struct arena *arena, struct arrow_array *column,
                                  struct dictionary_change *out_change,
                                  struct error *err) MUST_CHECK;
void ipc_dictionary_deinit(struct written_dictionary *dictionary);

/* ---- batches ---- */

/* Where a field's dictionary stands; in the order of the schema, outer before inner. */
struct dictionary {
    int64_t id;
    const struct arrow_field *field;
    struct arrow_array *values;  /* NULL: none yet */
    bool is_inner;               /* within the values of another */
    struct arena arena;          /* of values, where the reader is foreign */
    struct growing_values grown; /* the same once there was a delta, if no dictionary is in them */
};

struct arrow_reader {
    const struct arrow_schema *schema; /* borrowed */
    struct arrow_limits limits;
    struct span rest; /* of the payload */
    struct dictionary *dictionaries;
    size_t dictionary_count;
    struct arena arena;
    bool is_foreign; /* of arrow_file: nulls in dictionaries, metadata of batches; dictionaries are
                      * kept while in force, since batches end before the next call */
    bool refuses_replacement; /* of dictionaries, as files do */
    uint64_t growth_left;     /* bytes that deltas may still copy; with is_foreign */
    size_t fault; /* after a failure: the wrong byte's offset in its message; 0: unknown */
};

/* Into `out_batch`, which borrows the message; into the reader. */
enum status ipc_record_batch_read(struct arrow_reader *reader, struct ipc_message *message,
                                  struct arrow_batch *out_batch, struct error *err) MUST_CHECK;
/* `memory` (or NULL) holds the message and is taken, whatever comes of it. */
enum status ipc_dictionary_batch_read(struct arrow_reader *reader, struct ipc_message *message,
                                      void *memory, struct error *err) MUST_CHECK;

/* One batch while it is read. */
struct batch_reader {
    struct arrow_reader *reader;
    struct array_making making; /* its limit: that of the body, expanded */
    struct span body;
    const uint8_t *nodes, *buffers; /* of 16 bytes each */
    const uint8_t *view_counts;     /* of 8 bytes each */
    uint32_t nodes_left, buffer_count, buffer_at, view_counts_left;
    struct span *taken;   /* buffers so far, so that equal ones stay one */
    int64_t codec;        /* IPC_CODEC_* */
    size_t dictionary_at; /* the next one in the schema's order */
};

#endif
