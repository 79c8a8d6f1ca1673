/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers of Arrow's IPC format that reader and writer share. Source: Message.fbs, Schema.fbs.
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
    IPC_DATE = 8,
    IPC_TIMESTAMP = 10,
    IPC_LIST = 12,
    IPC_STRUCT = 13,
    IPC_FIXED_SIZE_BINARY = 15,
    IPC_MAP = 17,
};

/* Units of Date and Timestamp, precision of FloatingPoint, codecs of BodyCompression. */
enum { IPC_DAY = 0, IPC_MICROSECOND = 2, IPC_SINGLE = 1, IPC_DOUBLE = 2 };
enum { IPC_CODEC_NONE = -1, IPC_CODEC_LZ4 = 0, IPC_CODEC_ZSTD = 1 };

#define IPC_FIELD_ID_KEY "PARQUET:field_id"

/* The message at the start of `bytes`: its metadata and its body, in place. */
struct ipc_message {
    struct flat_reader flat;
    struct flat_table header;
    int64_t type; /* enum ipc_header, or one that we do not know */
    struct span body;
    size_t bytes; /* all of it */
};

/* NOT_FOUND: the end of the stream (its mark, or no bytes at all). */
enum status ipc_message_read(struct span bytes, const struct arrow_limits *limits,
                             struct ipc_message *out_message, struct error *err) MUST_CHECK;

#endif
