/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of a segment file (docs/format/segment.md), encoded and decoded. Pure functions over
 * memory: nothing here reads a file. All numbers are little-endian; every checksum of a segment is
 * a CRC32C that starts from a seed made of log id, segment id and a salt drawn when the file was
 * begun, so that bytes left in a recycled file never verify (L10).
 */
#ifndef SLUICE_LOG_SEGMENT_INTERNAL_H
#define SLUICE_LOG_SEGMENT_INTERNAL_H

#include "log/wal/wal.h"

enum {
    WAL_BLOCK = 4096, /* units begin here (L7) */
    WAL_ALIGN = 64,   /* payloads and headers within a unit */
    SEGMENT_HEADER_FIXED = 128,
    GROUP_ROW_BYTES = 56,
    UNIT_HEADER_FIXED = 72,
    UNIT_ROW_BYTES = 24,
    RECORD_HEADER_FIXED = 136,
    RECORD_HEADER_MAX = RECORD_HEADER_FIXED + WAL_CONTRIBUTIONS_MAX * (37 + WAL_PRODUCER_ID_MAX),
    FOOTER_TRAILER_BYTES = 64,
};

/* Records of a segment alone, beside the entry types of wal.h (L4). */
enum record_type {
    RECORD_SCHEMA = 32,
    RECORD_TRUNCATE = 33,   /* at the head of a segment; range_last and chain: where it goes on */
    RECORD_HARD_STATE = 34, /* replication's: reserved in version 0 */
    RECORD_STATE = 35,      /* the same */
    RECORD_FOOTER = 36,
};

enum record_flags {
    RECORD_REPAIR = 1 /* a VOID that stands outside the chain, for a damaged range */
};

/* Whether what is stored is what was computed. A fuzzer looks at what lies behind the checksums. */
static inline bool sum_holds(uint64_t stored, uint64_t computed)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    (void)stored;
    (void)computed;
    return true;
#else
    return stored == computed;
#endif
}

static inline uint64_t align_up(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) / alignment * alignment;
}

struct segment_identity {
    struct log_id log_id;
    uint64_t id, salt;
};

uint32_t segment_seed(const struct segment_identity *identity);

/* Where a group stood at the end of the segment before (L15). */
struct group_row {
    uint32_t group;
    uint64_t first_seq, last_seq, chain, term, vote, commit;
};

struct segment_header {
    struct segment_identity identity;
    uint64_t previous_id; /* 0: none */
    uint64_t term, incarnation;
    int64_t created_wall_ns;
    uint32_t group_count; /* of the log */
    uint32_t row_count;
    uint32_t header_bytes; /* multiple of WAL_BLOCK */
};

/* Appends the header and its rows, padded to whole blocks. */
void segment_header_encode(struct buf *out, const struct segment_header *header,
                           const struct group_row *rows);
/* TORN_TAIL: `bytes` is too short for what the header declares (header_bytes is set in `out`).
 * CORRUPT: not this segment's header. */
enum status segment_header_decode(struct span bytes, uint64_t id, struct segment_header *out_header,
                                  struct error *err) MUST_CHECK;
void segment_header_row(struct span bytes, uint32_t index, struct group_row *out_row);

enum unit_kind { UNIT_DATA = 1, UNIT_FOOTER = 2 };

struct unit_header {
    uint64_t number; /* from 1 in each segment */
    uint64_t floor;  /* highest unit known synced when this one was submitted (L6) */
    uint64_t unit_bytes;
    uint32_t record_count;
    uint32_t kind;
    int64_t wall_ns;
    uint64_t salt;
};

struct unit_row {
    uint64_t offset; /* from the start of the unit; multiple of WAL_ALIGN */
    uint32_t header_bytes, payload_bytes, header_crc, payload_crc;
    uint32_t type;
};

/* Bytes of the unit header with its list, before the first record. */
static inline uint64_t unit_head_bytes(uint64_t record_count)
{
    return align_up(UNIT_HEADER_FIXED + record_count * UNIT_ROW_BYTES, WAL_ALIGN);
}

static inline uint64_t record_bytes(uint64_t header_bytes, uint64_t payload_bytes)
{
    return align_up(header_bytes, WAL_ALIGN) + align_up(payload_bytes, WAL_ALIGN);
}

/* Writes list rows first (unit_row_encode), then the header, which covers them. */
void unit_row_encode(uint8_t *unit, uint32_t index, const struct unit_row *row);
void unit_header_encode(uint8_t *unit, const struct unit_header *header, uint32_t seed);
/* Looks at the bytes of a possible unit. TORN_TAIL: more bytes are needed to tell (the list is
 * longer); CORRUPT: no unit of this segment. With `seed_of` 0 the salt in the unit itself is taken.
 */
enum status unit_header_decode(struct span bytes, const struct segment_identity *identity,
                               bool salt_is_known, struct unit_header *out_header) MUST_CHECK;
void unit_row_decode(const uint8_t *unit, uint32_t index, struct unit_row *out_row);
/* True if the rows stay within the unit, in order. */
bool unit_rows_are_sound(const uint8_t *unit, const struct unit_header *header);

struct record {
    uint8_t type;
    uint16_t flags;
    uint32_t header_bytes, payload_crc;
    struct log_id log_id;
    uint32_t group, table_id;
    uint64_t seq, term, chain_before, schema_fingerprint;
    uint32_t rows, contribution_count;
    int64_t time_min_us, time_max_us;
    uint64_t payload_bytes;
    uint64_t range_last; /* VOID: last seq it stands for; else seq */
    uint64_t nonce;      /* NOOP: 64 random bits */
    uint64_t chain;
};

uint32_t record_header_bytes(const struct wal_contribution *contributions, uint32_t count);
/* Writes header and contributions to `to`; computes header_bytes and, unless REPAIR, chain. Returns
 * the header's checksum. */
uint32_t record_encode(uint8_t *to, struct record *record,
                       const struct wal_contribution *contributions, uint32_t seed);
enum status record_decode(struct span bytes, uint32_t seed, struct record *out_record,
                          struct error *err) MUST_CHECK;
/* `out` has room for record->contribution_count; producers point into `bytes`. */
enum status record_contributions(struct span bytes, const struct record *record,
                                 struct wal_contribution *out, struct error *err) MUST_CHECK;

/* The end of a sealed file points back to its footer unit. */
void segment_trailer_encode(uint8_t to[FOOTER_TRAILER_BYTES],
                            const struct segment_identity *identity, uint64_t unit_offset,
                            uint64_t unit_bytes);
enum status segment_trailer_decode(const uint8_t from[FOOTER_TRAILER_BYTES], uint64_t id,
                                   struct segment_identity *out_identity, uint64_t *out_unit_offset,
                                   uint64_t *out_unit_bytes, struct error *err) MUST_CHECK;

#endif
