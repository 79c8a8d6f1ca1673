/* SPDX-License-Identifier: Apache-2.0
 *
 * UUID and log id text.
 */
#include "base/base.h"

struct uuid uuid_from_random(const uint8_t random_bytes[16])
{
    struct uuid uuid;
    memcpy(uuid.bytes, random_bytes, sizeof uuid.bytes);
    uuid.bytes[6] = (uint8_t)((uuid.bytes[6] & 0x0f) | 0x40);
    uuid.bytes[8] = (uint8_t)((uuid.bytes[8] & 0x3f) | 0x80);
    return uuid;
}

void uuid_to_text(struct uuid uuid, char out[UUID_TEXT_BYTES])
{
    static const uint8_t group_bytes[] = {4, 2, 2, 2, 6};
    size_t at = 0, from = 0;
    for (size_t i = 0; i < COUNT_OF(group_bytes); i++) {
        if (i)
            out[at++] = '-';
        hex_encode(out + at, uuid.bytes + from, group_bytes[i]);
        at += 2u * group_bytes[i];
        from += group_bytes[i];
    }
    out[at] = '\0';
}

bool uuid_from_text(const char *text, size_t length, struct uuid *out_uuid)
{
    char digits[32];
    if (length != UUID_TEXT_BYTES - 1)
        return false;
    size_t count = 0;
    for (size_t i = 0; i < length; i++) {
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (is_dash != (text[i] == '-'))
            return false;
        if (!is_dash)
            digits[count++] = text[i];
    }
    return hex_decode(out_uuid->bytes, sizeof out_uuid->bytes, digits, sizeof digits);
}

void log_id_to_text(struct log_id id, char out[LOG_ID_TEXT_BYTES])
{
    hex_encode(out, id.bytes, sizeof id.bytes);
    out[LOG_ID_TEXT_BYTES - 1] = '\0';
}

bool log_id_from_text(const char *text, size_t length, struct log_id *out_id)
{
    return hex_decode(out_id->bytes, sizeof out_id->bytes, text, length);
}
