/* SPDX-License-Identifier: Apache-2.0
 *
 * Segment bytes: headers of segment, unit and record, and the trailer of a sealed file. Offsets are
 * those of docs/format/segment.md. A decoder trusts nothing before its checksum has held, and
 * checks ranges even then.
 */
#include "log/wal/segment_internal.h"

static const uint8_t segment_magic[8] = {'S', 'L', 'U', 'I', 'C', 'E', 'S', 'G'};
static const uint8_t trailer_magic[8] = {'S', 'L', 'U', 'I', 'C', 'E', 'E', 'N'};
enum {
    UNIT_MAGIC = 0x4e554c53,   /* "SLUN" */
    RECORD_MAGIC = 0x4e454c53, /* "SLEN" */
    FORMAT_VERSION = 0,
    SEGMENT_CRC_AT = 124,
    UNIT_CRC_AT = 68,
    RECORD_CHAINED_BYTES = 120, /* of a record header, what the chain covers */
    RECORD_CRC_AT = 128,
    TRAILER_CRC_AT = 60,
    CONTRIBUTION_FIXED = 37,
    SEGMENT_HEADER_MAX = 256 << 20,
};

uint32_t segment_seed(const struct segment_identity *identity)
{
    uint8_t bytes[32];
    memcpy(bytes, identity->log_id.bytes, 16);
    put_le64(bytes + 16, identity->id);
    put_le64(bytes + 24, identity->salt);
    return crc32c(0, bytes, sizeof bytes);
}

/* A checksum over bytes in which its own field counts as zero. */
static uint32_t crc_around(uint32_t seed, const uint8_t *bytes, size_t length, size_t crc_at)
{
    static const uint8_t zero[4];
    uint32_t crc = crc32c(seed, bytes, crc_at);
    crc = crc32c(crc, zero, sizeof zero);
    return crc32c(crc, bytes + crc_at + 4, length - crc_at - 4);
}

/* ---- segment header ---- */

void segment_header_encode(struct buf *out, const struct segment_header *header,
                           const struct group_row *rows)
{
    size_t start = out->length;
    size_t body = SEGMENT_HEADER_FIXED + (size_t)header->row_count * GROUP_ROW_BYTES;
    size_t bytes = (size_t)align_up(body, WAL_BLOCK);
    uint8_t *at = buf_extend(out, bytes);
    if (!at)
        return;
    memset(at, 0, bytes);
    memcpy(at, segment_magic, 8);
    put_le32(at + 8, FORMAT_VERSION);
    put_le32(at + 12, (uint32_t)bytes);
    memcpy(at + 16, header->identity.log_id.bytes, 16);
    put_le64(at + 32, header->identity.id);
    put_le64(at + 40, header->identity.salt);
    put_le64(at + 48, header->previous_id);
    put_le64(at + 56, (uint64_t)header->created_wall_ns);
    put_le64(at + 64, header->term);
    put_le64(at + 72, header->incarnation);
    put_le32(at + 80, header->group_count);
    put_le32(at + 84, header->row_count);
    for (uint32_t i = 0; i < header->row_count; i++) {
        uint8_t *to = at + SEGMENT_HEADER_FIXED + (size_t)i * GROUP_ROW_BYTES;
        put_le32(to, rows[i].group);
        put_le64(to + 8, rows[i].first_seq);
        put_le64(to + 16, rows[i].last_seq);
        put_le64(to + 24, rows[i].chain);
        put_le64(to + 32, rows[i].term);
        put_le64(to + 40, rows[i].vote);
        put_le64(to + 48, rows[i].commit);
    }
    at = out->data + start;
    put_le32(at + SEGMENT_CRC_AT,
             crc_around(segment_seed(&header->identity), at, bytes, SEGMENT_CRC_AT));
}

enum status segment_header_decode(struct span bytes, uint64_t id, struct segment_header *out_header,
                                  struct error *err)
{
    const uint8_t *at = bytes.data;
    if (bytes.length < WAL_BLOCK || memcmp(at, segment_magic, 8) != 0)
        return error_set(err, STATUS_CORRUPT, "segment header: no magic");
    struct segment_header header = {
        .header_bytes = get_le32(at + 12),
        .identity = {.id = get_le64(at + 32), .salt = get_le64(at + 40)},
        .previous_id = get_le64(at + 48),
        .created_wall_ns = (int64_t)get_le64(at + 56),
        .term = get_le64(at + 64),
        .incarnation = get_le64(at + 72),
        .group_count = get_le32(at + 80),
        .row_count = get_le32(at + 84),
    };
    memcpy(header.identity.log_id.bytes, at + 16, 16);
    uint64_t body = SEGMENT_HEADER_FIXED + (uint64_t)header.row_count * GROUP_ROW_BYTES;
    if (header.header_bytes != align_up(body, WAL_BLOCK) ||
        header.header_bytes > SEGMENT_HEADER_MAX || header.row_count > header.group_count)
        return error_set(err, STATUS_CORRUPT, "segment header: impossible length");
    if (header.identity.id != id)
        return error_set(err, STATUS_CORRUPT, "segment header: of segment %llu",
                         (unsigned long long)header.identity.id);
    if (bytes.length < header.header_bytes) {
        out_header->header_bytes = header.header_bytes;
        return error_set(err, STATUS_TORN_TAIL, "segment header: cut off");
    }
    if (!sum_holds(get_le32(at + SEGMENT_CRC_AT), crc_around(segment_seed(&header.identity), at,
                                                             header.header_bytes, SEGMENT_CRC_AT)))
        return error_set(err, STATUS_CORRUPT, "segment header: checksum");
    if (get_le32(at + 8) != FORMAT_VERSION)
        return error_set(err, STATUS_UNSUPPORTED, "segment header: version %u", get_le32(at + 8));
    *out_header = header;
    return STATUS_OK;
}

void segment_header_row(struct span bytes, uint32_t index, struct group_row *out_row)
{
    const uint8_t *at = bytes.data + SEGMENT_HEADER_FIXED + (size_t)index * GROUP_ROW_BYTES;
    *out_row = (struct group_row){
        .group = get_le32(at),
        .first_seq = get_le64(at + 8),
        .last_seq = get_le64(at + 16),
        .chain = get_le64(at + 24),
        .term = get_le64(at + 32),
        .vote = get_le64(at + 40),
        .commit = get_le64(at + 48),
    };
}

/* ---- units ---- */

void unit_row_encode(uint8_t *unit, uint32_t index, const struct unit_row *row)
{
    uint8_t *to = unit + UNIT_HEADER_FIXED + (size_t)index * UNIT_ROW_BYTES;
    put_le32(to, (uint32_t)(row->offset / WAL_ALIGN));
    put_le32(to + 4, row->header_bytes);
    put_le32(to + 8, row->payload_bytes);
    put_le32(to + 12, row->header_crc);
    put_le32(to + 16, row->payload_crc);
    put_le32(to + 20, row->type);
}

void unit_row_decode(const uint8_t *unit, uint32_t index, struct unit_row *out_row)
{
    const uint8_t *at = unit + UNIT_HEADER_FIXED + (size_t)index * UNIT_ROW_BYTES;
    *out_row = (struct unit_row){
        .offset = (uint64_t)get_le32(at) * WAL_ALIGN,
        .header_bytes = get_le32(at + 4),
        .payload_bytes = get_le32(at + 8),
        .header_crc = get_le32(at + 12),
        .payload_crc = get_le32(at + 16),
        .type = get_le32(at + 20),
    };
}

void unit_header_encode(uint8_t *unit, const struct unit_header *header, uint32_t seed)
{
    put_le32(unit, UNIT_MAGIC);
    put_le32(unit + 4, FORMAT_VERSION);
    put_le64(unit + 8, header->number);
    put_le64(unit + 16, header->floor);
    put_le64(unit + 24, header->unit_bytes);
    put_le32(unit + 32, header->record_count);
    put_le32(unit + 36, header->kind);
    put_le64(unit + 40, (uint64_t)header->wall_ns);
    put_le64(unit + 48, header->salt);
    memset(unit + 56, 0, UNIT_HEADER_FIXED - 56);
    size_t covered = UNIT_HEADER_FIXED + (size_t)header->record_count * UNIT_ROW_BYTES;
    put_le32(unit + UNIT_CRC_AT, crc_around(seed, unit, covered, UNIT_CRC_AT));
}

enum status unit_header_decode(struct span bytes, const struct segment_identity *identity,
                               bool salt_is_known, struct unit_header *out_header)
{
    const uint8_t *at = bytes.data;
    if (bytes.length < UNIT_HEADER_FIXED || get_le32(at) != UNIT_MAGIC ||
        get_le32(at + 4) != FORMAT_VERSION)
        return STATUS_CORRUPT;
    struct unit_header header = {
        .number = get_le64(at + 8),
        .floor = get_le64(at + 16),
        .unit_bytes = get_le64(at + 24),
        .record_count = get_le32(at + 32),
        .kind = get_le32(at + 36),
        .wall_ns = (int64_t)get_le64(at + 40),
        .salt = get_le64(at + 48),
    };
    struct segment_identity own = *identity;
    if (salt_is_known && header.salt != identity->salt)
        return STATUS_CORRUPT;
    own.salt = header.salt;
    uint64_t covered = UNIT_HEADER_FIXED + (uint64_t)header.record_count * UNIT_ROW_BYTES;
    if (header.unit_bytes % WAL_BLOCK != 0 || header.unit_bytes < covered || header.number == 0 ||
        header.floor >= header.number || (header.kind != UNIT_DATA && header.kind != UNIT_FOOTER))
        return STATUS_CORRUPT;
    if (bytes.length < covered) {
        out_header->record_count = header.record_count;
        return STATUS_TORN_TAIL;
    }
    if (!sum_holds(get_le32(at + UNIT_CRC_AT),
                   crc_around(segment_seed(&own), at, (size_t)covered, UNIT_CRC_AT)))
        return STATUS_CORRUPT;
    *out_header = header;
    return STATUS_OK;
}

bool unit_rows_are_sound(const uint8_t *unit, const struct unit_header *header)
{
    uint64_t least = unit_head_bytes(header->record_count);
    for (uint32_t i = 0; i < header->record_count; i++) {
        struct unit_row row;
        unit_row_decode(unit, i, &row);
        if (row.offset < least || row.header_bytes < RECORD_HEADER_FIXED ||
            row.header_bytes > RECORD_HEADER_MAX)
            return false;
        least = row.offset + record_bytes(row.header_bytes, row.payload_bytes);
        if (least > header->unit_bytes)
            return false;
    }
    return true;
}

/* ---- records ---- */

uint32_t record_header_bytes(const struct wal_contribution *contributions, uint32_t count)
{
    uint32_t bytes = RECORD_HEADER_FIXED;
    for (uint32_t i = 0; i < count; i++)
        bytes += CONTRIBUTION_FIXED + contributions[i].producer_length;
    return bytes;
}

static void contributions_encode(uint8_t *to, const struct wal_contribution *contributions,
                                 uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct wal_contribution *from = &contributions[i];
        put_le32(to, from->first_row);
        put_le32(to + 4, from->rows);
        put_le32(to + 8, from->rejected);
        put_le64(to + 12, from->body_hash.low);
        put_le64(to + 20, from->body_hash.high);
        put_le64(to + 28, from->producer_sequence);
        to[36] = from->producer_length;
        if (from->producer_length)
            memcpy(to + CONTRIBUTION_FIXED, from->producer, from->producer_length);
        to += CONTRIBUTION_FIXED + from->producer_length;
    }
}

/* L5: covers the fixed part up to the chain itself, and the contributions; not the segment, so that
 * a copy of the entry on another node has the same chain. */
static uint64_t record_chain(const uint8_t *header, uint32_t header_bytes, uint64_t chain_before)
{
    uint64_t chain = hash64_seeded(header, RECORD_CHAINED_BYTES, chain_before);
    if (header_bytes > RECORD_HEADER_FIXED)
        chain =
            hash64_seeded(header + RECORD_HEADER_FIXED, header_bytes - RECORD_HEADER_FIXED, chain);
    return chain;
}

uint32_t record_encode(uint8_t *to, struct record *record,
                       const struct wal_contribution *contributions, uint32_t seed)
{
    record->header_bytes = record_header_bytes(contributions, record->contribution_count);
    put_le32(to, RECORD_MAGIC);
    put_le32(to + 4, record->header_bytes);
    to[8] = record->type;
    to[9] = FORMAT_VERSION;
    put_le16(to + 10, record->flags);
    put_le32(to + 12, record->payload_crc);
    memcpy(to + 16, record->log_id.bytes, 16);
    put_le32(to + 32, record->group);
    put_le32(to + 36, record->table_id);
    put_le64(to + 40, record->seq);
    put_le64(to + 48, record->term);
    put_le64(to + 56, record->chain_before);
    put_le64(to + 64, record->schema_fingerprint);
    put_le32(to + 72, record->rows);
    put_le32(to + 76, record->contribution_count);
    put_le64(to + 80, (uint64_t)record->time_min_us);
    put_le64(to + 88, (uint64_t)record->time_max_us);
    put_le64(to + 96, record->payload_bytes);
    put_le64(to + 104, record->range_last);
    put_le64(to + 112, record->nonce);
    contributions_encode(to + RECORD_HEADER_FIXED, contributions, record->contribution_count);
    bool is_chained = record->seq != 0 && !(record->flags & RECORD_REPAIR);
    if (is_chained)
        record->chain = record_chain(to, record->header_bytes, record->chain_before);
    put_le64(to + 120, record->chain);
    put_le64(to + RECORD_CRC_AT, 0);
    uint32_t crc = crc_around(seed, to, record->header_bytes, RECORD_CRC_AT);
    put_le32(to + RECORD_CRC_AT, crc);
    return crc;
}

enum status record_decode(struct span bytes, uint32_t seed, struct record *out_record,
                          struct error *err)
{
    const uint8_t *at = bytes.data;
    if (bytes.length < RECORD_HEADER_FIXED || get_le32(at) != RECORD_MAGIC)
        return error_set(err, STATUS_CORRUPT, "entry header: no magic");
    struct record record = {
        .header_bytes = get_le32(at + 4),
        .type = at[8],
        .flags = get_le16(at + 10),
        .payload_crc = get_le32(at + 12),
        .group = get_le32(at + 32),
        .table_id = get_le32(at + 36),
        .seq = get_le64(at + 40),
        .term = get_le64(at + 48),
        .chain_before = get_le64(at + 56),
        .schema_fingerprint = get_le64(at + 64),
        .rows = get_le32(at + 72),
        .contribution_count = get_le32(at + 76),
        .time_min_us = (int64_t)get_le64(at + 80),
        .time_max_us = (int64_t)get_le64(at + 88),
        .payload_bytes = get_le64(at + 96),
        .range_last = get_le64(at + 104),
        .nonce = get_le64(at + 112),
        .chain = get_le64(at + 120),
    };
    memcpy(record.log_id.bytes, at + 16, 16);
    if (record.header_bytes < RECORD_HEADER_FIXED || record.header_bytes > RECORD_HEADER_MAX ||
        record.header_bytes > bytes.length || record.contribution_count > WAL_CONTRIBUTIONS_MAX)
        return error_set(err, STATUS_CORRUPT, "entry header: impossible length");
    if (!sum_holds(get_le32(at + RECORD_CRC_AT),
                   crc_around(seed, at, record.header_bytes, RECORD_CRC_AT)))
        return error_set(err, STATUS_CORRUPT, "entry header: checksum");
    if (at[9] != FORMAT_VERSION)
        return error_set(err, STATUS_UNSUPPORTED, "entry header: version %u", at[9]);
    if (record.seq != 0 && !(record.flags & RECORD_REPAIR) &&
        !sum_holds(record.chain, record_chain(at, record.header_bytes, record.chain_before)))
        return error_set(err, STATUS_CORRUPT, "entry header: chain");
    *out_record = record;
    return STATUS_OK;
}

enum status record_contributions(struct span bytes, const struct record *record,
                                 struct wal_contribution *out, struct error *err)
{
    struct cursor cursor = cursor_of(bytes.data, record->header_bytes);
    cursor_take(&cursor, RECORD_HEADER_FIXED);
    for (uint32_t i = 0; i < record->contribution_count; i++) {
        struct wal_contribution *to = &out[i];
        to->first_row = cursor_get_le32(&cursor);
        to->rows = cursor_get_le32(&cursor);
        to->rejected = cursor_get_le32(&cursor);
        to->body_hash.low = cursor_get_le64(&cursor);
        to->body_hash.high = cursor_get_le64(&cursor);
        to->producer_sequence = cursor_get_le64(&cursor);
        to->producer_length = cursor_get_byte(&cursor);
        to->producer = (const char *)cursor_take(&cursor, to->producer_length);
        if (cursor.failed || to->producer_length > WAL_PRODUCER_ID_MAX)
            return error_set(err, STATUS_CORRUPT, "entry header: contribution %u", i);
    }
    return STATUS_OK;
}

/* ---- trailer ---- */

void segment_trailer_encode(uint8_t to[FOOTER_TRAILER_BYTES],
                            const struct segment_identity *identity, uint64_t unit_offset,
                            uint64_t unit_bytes)
{
    memset(to, 0, FOOTER_TRAILER_BYTES);
    memcpy(to, trailer_magic, 8);
    put_le64(to + 8, unit_offset);
    put_le64(to + 16, unit_bytes);
    put_le64(to + 24, identity->id);
    put_le64(to + 32, identity->salt);
    memcpy(to + 40, identity->log_id.bytes, 16);
    put_le32(to + TRAILER_CRC_AT, crc32c(segment_seed(identity), to, TRAILER_CRC_AT));
}

enum status segment_trailer_decode(const uint8_t from[FOOTER_TRAILER_BYTES], uint64_t id,
                                   struct segment_identity *out_identity, uint64_t *out_unit_offset,
                                   uint64_t *out_unit_bytes, struct error *err)
{
    struct segment_identity identity = {.id = get_le64(from + 24), .salt = get_le64(from + 32)};
    memcpy(identity.log_id.bytes, from + 40, 16);
    if (memcmp(from, trailer_magic, 8) != 0 || identity.id != id ||
        !sum_holds(get_le32(from + TRAILER_CRC_AT),
                   crc32c(segment_seed(&identity), from, TRAILER_CRC_AT)))
        return error_set(err, STATUS_CORRUPT, "segment trailer");
    *out_identity = identity;
    *out_unit_offset = get_le64(from + 8);
    *out_unit_bytes = get_le64(from + 16);
    return STATUS_OK;
}
