/* SPDX-License-Identifier: Apache-2.0
 *
 * The codes of docs/log_port.md as statuses.
 */
#include "flow/follow/follow_internal.h"
#include "format/json/json.h"

static const struct {
    const char *code;
    enum status status;
} codes[] = {
    {"ERR_EXPORT_RANGE_RECLAIMED", STATUS_RECLAIMED},
    {"ERR_EXPORT_OTHER_LOG", STATUS_IDENTITY},
    {"ERR_EXPORT_AHEAD", STATUS_IDENTITY},
    {"ERR_EXPORT_OTHER_HISTORY", STATUS_IDENTITY},
    {"ERR_EXPORT_CONSUMER_EXISTS", STATUS_IDENTITY},
    {"ERR_EXPORT_GROUP_CONFLICT", STATUS_IDENTITY},
    {"ERR_EXPORT_DAMAGED", STATUS_CORRUPT},
    {"ERR_EXPORT_NO_TABLE", STATUS_NOT_FOUND},
    {"ERR_EXPORT_NO_GROUP", STATUS_NOT_FOUND},
    {"ERR_EXPORT_NO_CONSUMER", STATUS_NOT_FOUND},
    {"ERR_EXPORT_LIMIT", STATUS_LIMIT},
};

enum status refused_status(const struct http_response *response, uint64_t *out_last,
                           struct error *err)
{
    struct arena arena;
    struct json_value *json = NULL;
    struct error ignored;
    enum status status = response->code == 503 ? STATUS_BUSY : STATUS_INVALID;
    arena_init(&arena, 1 << 20);
    if (json_parse(response->body.data, response->body.length, &arena, &json, &ignored) !=
        STATUS_OK)
        json = NULL;
    const char *code = json_get_text(json, "code"), *message = json_get_text(json, "message");
    const char *command = json_get_text(json, "command");
    for (size_t i = 0; code && i < COUNT_OF(codes); i++)
        if (strcmp(code, codes[i].code) == 0)
            status = codes[i].status;
    int64_t last = 0;
    if (status == STATUS_RECLAIMED && json_get_i64(json, "last", &last) && last > 0)
        *out_last = (uint64_t)last;
    if (code && message)
        error_set(err, status, "%s: %.360s%s%s", code, message, command ? "; to resolve it: " : "",
                  command ? command : "");
    else
        error_set(err, status, "the log port answered %d: is it one?", response->code);
    arena_deinit(&arena);
    return status;
}
