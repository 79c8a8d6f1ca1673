/* SPDX-License-Identifier: Apache-2.0
 *
 * 128-bit identities: UUIDs (RFC 9562, version 4) and log ids. The random bits come from
 * env_random.
 */
#ifndef SLUICE_BASE_UUID_H
#define SLUICE_BASE_UUID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct uuid {
    uint8_t bytes[16];
};

enum { UUID_TEXT_BYTES = 37 };   /* 8-4-4-4-12 and NUL */
enum { LOG_ID_TEXT_BYTES = 33 }; /* 32 hex digits and NUL */

/* A log's identity (L1). */
struct log_id {
    uint8_t bytes[16];
};

struct uuid uuid_from_random(const uint8_t random_bytes[16]); /* sets version and variant bits */
void uuid_to_text(struct uuid uuid, char out[UUID_TEXT_BYTES]);
bool uuid_from_text(const char *text, size_t length, struct uuid *out_uuid);
void log_id_to_text(struct log_id id, char out[LOG_ID_TEXT_BYTES]);
bool log_id_from_text(const char *text, size_t length, struct log_id *out_id);

static inline bool log_id_equal(struct log_id a, struct log_id b)
{
    return memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
}

#endif
