/* SPDX-License-Identifier: Apache-2.0
 *
 * Names and bytes of the mirror's objects, as in docs/format/mirror.md. Nothing here does I/O.
 */
#include <inttypes.h>
#include <stdio.h>

#include "format/json/json.h"
#include "log/mirror/mirror.h"

static const uint8_t magic[8] = {'S', 'L', 'U', 'I', 'C', 'E', 'M', 'R'};
static const char format_name[] = "sluice mirror";
enum { VERSION = 0, BODY_CRC_AT = 88, CRC_AT = 92, ID_DIGITS = 20, OFFSET_DIGITS = 16 };

void mirror_header_encode(uint8_t out[MIRROR_HEADER_BYTES], const struct mirror_header *header)
{
    memcpy(out, magic, sizeof magic);
    put_le32(out + 8, VERSION);
    put_le32(out + 12, MIRROR_HEADER_BYTES);
    put_le32(out + 16, header->kind);
    put_le32(out + 20, header->flags);
    memcpy(out + 24, header->log_id.bytes, sizeof header->log_id.bytes);
    put_le64(out + 40, header->id);
    put_le64(out + 48, header->from);
    put_le64(out + 56, header->to);
    put_le64(out + 64, header->incarnation);
    put_le64(out + 72, header->floor);
    put_le64(out + 80, (uint64_t)header->made_ns);
    put_le32(out + BODY_CRC_AT, header->body_crc);
    put_le32(out + CRC_AT, crc32c(0, out, CRC_AT));
}

enum status mirror_header_decode(struct span bytes, struct mirror_header *out_header,
                                 struct error *err)
{
    const uint8_t *at = bytes.data;
    if (bytes.length < MIRROR_HEADER_BYTES || memcmp(at, magic, sizeof magic) != 0)
        return error_set(err, STATUS_CORRUPT, "mirror: no object of a mirror");
    if (get_le32(at + CRC_AT) != crc32c(0, at, CRC_AT))
        return error_set(err, STATUS_CORRUPT, "mirror: checksum of a header");
    if (get_le32(at + 8) != VERSION)
        return error_set(err, STATUS_UNSUPPORTED, "mirror: version %u", get_le32(at + 8));
    struct mirror_header header = {
        .flags = get_le32(at + 20),
        .id = get_le64(at + 40),
        .from = get_le64(at + 48),
        .to = get_le64(at + 56),
        .incarnation = get_le64(at + 64),
        .floor = get_le64(at + 72),
        .made_ns = (int64_t)get_le64(at + 80),
        .body_crc = get_le32(at + BODY_CRC_AT),
    };
    memcpy(header.log_id.bytes, at + 24, sizeof header.log_id.bytes);
    uint32_t kind = get_le32(at + 16);
    if (get_le32(at + 12) != MIRROR_HEADER_BYTES || (kind != MIRROR_RANGE && kind != MIRROR_STATE))
        return error_set(err, STATUS_CORRUPT, "mirror: impossible header");
    if (header.to < header.from)
        return error_set(err, STATUS_CORRUPT, "mirror: a range of less than nothing");
    header.kind = (enum mirror_kind)kind;
    *out_header = header;
    return STATUS_OK;
}

enum status mirror_object_check(struct span object, struct mirror_header *out_header,
                                struct error *err)
{
    struct mirror_header header;
    TRY(mirror_header_decode(object, &header, err));
    if (object.length - MIRROR_HEADER_BYTES != header.to - header.from)
        return error_set(err, STATUS_CORRUPT, "mirror: %zu bytes, not %" PRIu64, object.length,
                         MIRROR_HEADER_BYTES + header.to - header.from);
    const uint8_t *body = object.data + MIRROR_HEADER_BYTES;
    if (crc32c(0, body, object.length - MIRROR_HEADER_BYTES) != header.body_crc)
        return error_set(err, STATUS_CORRUPT, "mirror: checksum of a body");
    *out_header = header;
    return STATUS_OK;
}

/* ---- names ---- */

void mirror_name_put(const struct mirror_header *header, char out[MIRROR_NAME_BYTES])
{
    if (header->kind == MIRROR_STATE)
        snprintf(out, MIRROR_NAME_BYTES, "state/%020" PRIu64 ".%" PRIu64, header->id,
                 header->incarnation);
    else
        snprintf(out, MIRROR_NAME_BYTES,
                 "segments/%020" PRIu64 "/%016" PRIu64 "-%016" PRIu64 ".%" PRIu64, header->id,
                 header->from, header->to, header->incarnation);
}

static bool skip(struct span *text, const char *wanted)
{
    size_t length = strlen(wanted);
    if (text->length < length || memcmp(text->data, wanted, length) != 0)
        return false;
    text->data += length;
    text->length -= length;
    return true;
}

static bool skip_number(struct span *text, size_t digits, uint64_t *out_number)
{
    if (text->length < digits || !parse_u64((const char *)text->data, digits, out_number))
        return false;
    text->data += digits;
    text->length -= digits;
    return true;
}

bool mirror_name_parse(struct span name, struct mirror_header *out_header)
{
    struct mirror_header header = {.kind = MIRROR_RANGE};
    struct span at = name;
    char canonical[MIRROR_NAME_BYTES];
    if (skip(&at, "state/")) {
        header.kind = MIRROR_STATE;
        if (!skip_number(&at, ID_DIGITS, &header.id))
            return false;
    } else if (!skip(&at, "segments/") || !skip_number(&at, ID_DIGITS, &header.id) ||
               !skip(&at, "/") || !skip_number(&at, OFFSET_DIGITS, &header.from) ||
               !skip(&at, "-") || !skip_number(&at, OFFSET_DIGITS, &header.to) ||
               header.to <= header.from) {
        return false;
    }
    if (!skip(&at, ".") || at.length == 0 || !skip_number(&at, at.length, &header.incarnation))
        return false;
    mirror_name_put(&header, canonical);
    if (!span_equal(name, span_of_text(canonical)))
        return false;
    *out_header = header;
    return true;
}

bool mirror_header_is_of(const struct mirror_header *header, const struct mirror_header *name)
{
    bool is_same = header->kind == name->kind && header->id == name->id &&
                   header->incarnation == name->incarnation;
    return is_same &&
           (header->kind == MIRROR_STATE || (header->from == name->from && header->to == name->to));
}

enum status mirror_root(const char *url, struct log_id id, char out[STORE_URI_BYTES_MAX],
                        struct error *err)
{
    char text[LOG_ID_TEXT_BYTES];
    log_id_to_text(id, text);
    return store_uri_join(url, text, out, err);
}

/* ---- head ---- */

void mirror_head_encode(struct buf *out, const struct mirror_head *head)
{
    char id[LOG_ID_TEXT_BYTES], writer[17];
    struct json_writer json;
    log_id_to_text(head->log_id, id);
    json_writer_init(&json, out);
    json_write_object_begin(&json);
    json_write_key(&json, "format");
    json_write_text(&json, format_name);
    json_write_key(&json, "version");
    json_write_u64(&json, VERSION);
    json_write_key(&json, "log_id");
    json_write_text(&json, id);
    json_write_key(&json, "incarnation");
    json_write_u64(&json, head->incarnation);
    json_write_key(&json, "groups");
    json_write_u64(&json, head->group_count);
    json_write_key(&json, "writer");
    snprintf(writer, sizeof writer, "%016" PRIx64, head->writer);
    json_write_text(&json, writer);
    json_write_key(&json, "made_ms");
    json_write_i64(&json, head->made_ms);
    json_write_object_end(&json);
    buf_put_byte(out, '\n');
}

enum status mirror_head_decode(struct span text, struct mirror_head *out_head, struct error *err)
{
    struct arena arena;
    struct json_value *value = NULL;
    int64_t version, incarnation, groups;
    struct mirror_head head = {0};
    arena_init(&arena, 64 << 10);
    enum status status = json_parse(text.data, text.length, &arena, &value, err);
    if (status == STATUS_NO_MEMORY)
        goto done;
    const char *format = status == STATUS_OK ? json_get_text(value, "format") : NULL;
    const char *id = status == STATUS_OK ? json_get_text(value, "log_id") : NULL;
    const char *writer = status == STATUS_OK ? json_get_text(value, "writer") : NULL;
    uint64_t number = 0;
    if (!format || strcmp(format, format_name) != 0 || !json_get_i64(value, "version", &version))
        status = error_set(err, STATUS_CORRUPT, "mirror: no head of a mirror");
    else if (version != VERSION)
        status = error_set(err, STATUS_UNSUPPORTED, "mirror: version %" PRId64, version);
    else if (!id || !log_id_from_text(id, strlen(id), &head.log_id) ||
             !json_get_i64(value, "incarnation", &incarnation) || incarnation < 1 ||
             !json_get_i64(value, "groups", &groups) || groups < 1 || groups > UINT32_MAX ||
             !json_get_i64(value, "made_ms", &head.made_ms) ||
             (writer && !hex_u64(writer, strlen(writer), &number)))
        status = error_set(err, STATUS_CORRUPT, "mirror: a head without what it should tell");
    if (status != STATUS_OK)
        goto done;
    head.incarnation = (uint64_t)incarnation;
    head.group_count = (uint32_t)groups;
    head.writer = number;
    *out_head = head;
done:
    arena_deinit(&arena);
    return status;
}
