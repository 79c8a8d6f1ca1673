/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests for rows and entries of the log port: path, query and cursors.
 */
#include "flow/feed/feed_internal.h"

static void check(const struct row_ask *ask)
{
    CHECK(ask->member < ask->member_count && ask->member_count <= WAL_MEMBERS_MAX);
    CHECK(ask->rows_max > 0 && ask->bytes_max > 0 && ask->wait_ms <= FEED_WAIT_MS_MAX);
    CHECK(ask->table[0] || ask->has_consumer);
    CHECK(strlen(ask->after.log) == 0 || strlen(ask->after.log) == LOG_ID_TEXT_BYTES - 1);
    CHECK(!ask->after.has_index || (ask->after.seq > 0 && ask->after.index <= UINT32_MAX));
    CHECK(!ask->after.log[0] || ask->after.group == ask->group);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char route[] = "/v1/log/";
    struct http_head head;
    size_t used = 0;
    int code = 0;
    const char *why = NULL;
    struct row_ask ask;
    struct entry_ask entries;
    struct error err;
    if (http_parse_request(span_of(data, bytes), 16384, &head, &used, &code, &why) ==
            HTTP_PARSE_DONE &&
        head.path.length > strlen(route) && memcmp(head.path.data, route, strlen(route)) == 0) {
        if (row_ask_parse(&head, &ask, &err) == STATUS_OK)
            check(&ask);
        if (entry_ask_parse(&head, &entries, &err) == STATUS_OK)
            CHECK(entries.bytes_max > 0 && entries.after.seq < INT64_MAX);
    }
    return 0;
}
