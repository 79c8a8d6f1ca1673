/* SPDX-License-Identifier: Apache-2.0
 *
 * The mirror: a copy of the log's synced bytes in an object store, from which `log recover` makes a
 * data directory anew (L35). docs/format/mirror.md gives names and bytes.
 */
#ifndef SLUICE_LOG_MIRROR_MIRROR_H
#define SLUICE_LOG_MIRROR_MIRROR_H

#include "lake/store/store.h"
#include "log/wal/wal.h"

/* ---- names and bytes; pure ---- */

enum {
    MIRROR_HEADER_BYTES = 96,
    MIRROR_RANGE_BYTES_MAX = 8 << 20, /* of a range's body, as we write it */
    MIRROR_NAME_BYTES = 112,          /* of a name below the log's root, with its NUL */
    MIRROR_HEAD_BYTES_MAX = 4096,
};

enum mirror_kind { MIRROR_RANGE = 1, MIRROR_STATE = 2 };

enum { MIRROR_IS_END = 1 }; /* flag of a range: `to` is the end of a sealed segment's file */

struct mirror_header {
    enum mirror_kind kind;
    uint32_t flags;
    struct log_id log_id;
    uint64_t id;       /* of the segment; of a state its number */
    uint64_t from, to; /* of a state 0 and the body's bytes */
    uint64_t incarnation;
    uint64_t floor; /* of a state: covers */
    int64_t made_ns;
    uint32_t body_crc;
};

void mirror_header_encode(uint8_t out[MIRROR_HEADER_BYTES], const struct mirror_header *header);
/* CORRUPT; UNSUPPORTED: a later version. */
enum status mirror_header_decode(struct span bytes, struct mirror_header *out_header,
                                 struct error *err) MUST_CHECK;
/* The header of `object`, whose body it also checks. CORRUPT. */
enum status mirror_object_check(struct span object, struct mirror_header *out_header,
                                struct error *err) MUST_CHECK;

/* What a name says; the other fields stay 0. */
void mirror_name_put(const struct mirror_header *header, char out[MIRROR_NAME_BYTES]);
/* `name` is below the log's root. False: none of ours. */
bool mirror_name_parse(struct span name, struct mirror_header *out_header);
/* Whether the header is what such a name stands for. */
bool mirror_header_is_of(const struct mirror_header *header, const struct mirror_header *name);

/* "<url>/<log id>"; INVALID if it does not fit. */
enum status mirror_root(const char *url, struct log_id id, char out[STORE_URI_BYTES_MAX],
                        struct error *err) MUST_CHECK;

struct mirror_head {
    struct log_id log_id;
    uint64_t incarnation;
    uint32_t group_count;
    int64_t made_ms;
};

void mirror_head_encode(struct buf *out, const struct mirror_head *head);
/* CORRUPT: no head of a mirror; UNSUPPORTED: a later version. */
enum status mirror_head_decode(struct span text, struct mirror_head *out_head,
                               struct error *err) MUST_CHECK;

#endif
