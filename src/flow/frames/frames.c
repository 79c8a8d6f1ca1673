/* SPDX-License-Identifier: Apache-2.0
 *
 * The layout stands in docs/log_port.md; numbers are little-endian.
 */
#include "flow/frames/frames.h"

enum { FRAME_VERSION = 0 };

static const uint8_t magic[4] = {'S', 'L', 'E', 'N'};

enum {
    AT_VERSION = 4,
    AT_TYPE = 6,
    AT_GROUP = 8,
    AT_TABLE = 12,
    AT_LOG = 16,
    AT_SEQ = 32,
    AT_TERM = 40,
    AT_CHAIN = 48,
    AT_FINGERPRINT = 56,
    AT_TIME_MIN = 64,
    AT_TIME_MAX = 72,
    AT_ROWS = 80,
    AT_PAYLOAD_CRC = 84,
    AT_PAYLOAD_BYTES = 88,
    AT_CRC = 96,
};

void frame_put(struct buf *out, struct log_id log, const struct wal_view *view)
{
    uint8_t header[FRAME_HEADER_BYTES] = {0};
    memcpy(header, magic, sizeof magic);
    put_le16(header + AT_VERSION, FRAME_VERSION);
    put_le16(header + AT_TYPE, (uint16_t)view->type);
    put_le32(header + AT_GROUP, view->group);
    put_le32(header + AT_TABLE, view->table_id);
    memcpy(header + AT_LOG, log.bytes, sizeof log.bytes);
    put_le64(header + AT_SEQ, view->seq);
    put_le64(header + AT_TERM, view->term);
    put_le64(header + AT_CHAIN, view->chain);
    put_le64(header + AT_FINGERPRINT, view->schema_fingerprint);
    put_le64(header + AT_TIME_MIN, (uint64_t)view->time_min_us);
    put_le64(header + AT_TIME_MAX, (uint64_t)view->time_max_us);
    put_le32(header + AT_ROWS, view->rows);
    put_le32(header + AT_PAYLOAD_CRC, view->payload_crc);
    put_le64(header + AT_PAYLOAD_BYTES, view->payload.length);
    put_le32(header + AT_CRC, crc32c(0, header, AT_CRC));
    buf_put(out, header, sizeof header);
    if (view->payload.length)
        buf_put(out, view->payload.data, view->payload.length);
}

static enum status wrong(struct error *err, const char *what)
{
    return error_set(err, STATUS_INVALID, "entry frame: %s", what);
}

enum status frame_next(struct span *inout_bytes, struct log_id log, struct wal_view *out_view,
                       struct error *err)
{
    const uint8_t *header = inout_bytes->data;
    if (inout_bytes->length == 0)
        return error_set(err, STATUS_NOT_FOUND, "entry frame: at the end");
    if (inout_bytes->length < FRAME_HEADER_BYTES)
        return wrong(err, "cut in its header");
    if (memcmp(header, magic, sizeof magic) != 0 || get_le16(header + AT_VERSION) != FRAME_VERSION)
        return wrong(err, "it does not begin like one");
    if (crc32c(0, header, AT_CRC) != get_le32(header + AT_CRC))
        return wrong(err, "checksum of its header");
    if (memcmp(header + AT_LOG, log.bytes, sizeof log.bytes) != 0)
        return wrong(err, "of another log");
    uint64_t bytes = get_le64(header + AT_PAYLOAD_BYTES);
    if (bytes > inout_bytes->length - FRAME_HEADER_BYTES)
        return wrong(err, "cut in its payload");
    struct wal_view view = {
        .type = (enum wal_entry_type)get_le16(header + AT_TYPE),
        .group = get_le32(header + AT_GROUP),
        .table_id = get_le32(header + AT_TABLE),
        .rows = get_le32(header + AT_ROWS),
        .seq = get_le64(header + AT_SEQ),
        .term = get_le64(header + AT_TERM),
        .chain = get_le64(header + AT_CHAIN),
        .schema_fingerprint = get_le64(header + AT_FINGERPRINT),
        .time_min_us = (int64_t)get_le64(header + AT_TIME_MIN),
        .time_max_us = (int64_t)get_le64(header + AT_TIME_MAX),
        .payload = span_of(header + FRAME_HEADER_BYTES, (size_t)bytes),
        .payload_crc = get_le32(header + AT_PAYLOAD_CRC),
    };
    if (view.type < WAL_DATA || view.type > WAL_CURSOR || view.seq == 0)
        return wrong(err, "no entry has such a header");
    if (crc32c(0, view.payload.data, view.payload.length) != view.payload_crc)
        return wrong(err, "checksum of its payload");
    *inout_bytes = span_of(header + FRAME_HEADER_BYTES + bytes,
                           inout_bytes->length - FRAME_HEADER_BYTES - (size_t)bytes);
    *out_view = view;
    return STATUS_OK;
}
