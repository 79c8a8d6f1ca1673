/* SPDX-License-Identifier: Apache-2.0
 *
 * Which log a remote source is, kept beside what lanes keep of it: a server that answers at the
 * same place with another log is refused, and a start needs no answer. One line with kind, format
 * version, length and CRC32C, then a JSON document, as in docs/format/journal.md.
 */
#include <stdio.h>

#include "flow/source/remote_internal.h"

enum { KEEP_VERSION = 0, KEEP_BYTES_MAX = 4096 };

static bool parse(struct buf *file, struct log_id *out_log, uint32_t *out_group_count)
{
    struct arena arena;
    struct json_value *json = NULL;
    struct error ignored;
    size_t length = 0;
    int version = -1, header = 0;
    unsigned crc = 0;
    uint64_t groups = 0;
    buf_put_byte(file, '\0');
    if (file->failed || file->length < 2 ||
        sscanf((char *)file->data, "sluice-source %d %zu %x\n%n", &version, &length, &crc,
               &header) != 3 ||
        version != KEEP_VERSION || (size_t)header + length + 1 != file->length ||
        crc32c(0, file->data + header, length) != crc)
        return false;
    arena_init(&arena, 1 << 16);
    bool is_good = json_parse(file->data + header, length, &arena, &json, &ignored) == STATUS_OK;
    const char *log = json_get_text(json, "log");
    is_good = is_good && log && log_id_from_text(log, strlen(log), out_log) &&
              look_get_u64(json, "groups", &groups) && groups > 0 && groups <= SOURCE_GROUPS_MAX;
    *out_group_count = (uint32_t)groups;
    arena_deinit(&arena);
    return is_good;
}

enum status keep_load(struct env *env, const char *path, struct log_id *out_log,
                      uint32_t *out_group_count, struct error *err)
{
    struct buf file = {0};
    enum status status = files_read(env, path, KEEP_BYTES_MAX, &file, err);
    if (status == STATUS_LIMIT || (status == STATUS_OK && !parse(&file, out_log, out_group_count)))
        status = error_set(err, STATUS_CORRUPT,
                           "%s is damaged; if the log at the source is the one that was published "
                           "from here, remove the file",
                           path);
    buf_deinit(&file);
    return status;
}

enum status keep_save(struct env *env, const char *path, struct log_id log, uint32_t group_count,
                      struct error *err)
{
    char id[LOG_ID_TEXT_BYTES], json[96], file[192];
    log_id_to_text(log, id);
    int length = snprintf(json, sizeof json, "{\"log\":\"%s\",\"groups\":%u}", id, group_count);
    int bytes = snprintf(file, sizeof file, "sluice-source %d %d %08x\n%s", (int)KEEP_VERSION,
                         length, crc32c(0, json, (size_t)length), json);
    return files_replace(env, path, file, (size_t)bytes, err);
}
