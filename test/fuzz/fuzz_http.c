/* SPDX-License-Identifier: Apache-2.0
 *
 * Request heads and chunked bodies. The first byte is where a chunked body is cut in two: the
 * pieces must give what the whole gives.
 */
#include "net/http/http.h"

static void heads(const uint8_t *data, size_t bytes)
{
    struct http_head head;
    size_t used = 0;
    int code = 0;
    const char *why = NULL;
    switch (http_parse_request(span_of(data, bytes), 16384, &head, &used, &code, &why)) {
    case HTTP_PARSE_DONE:
        CHECK(used <= bytes && head.path.length > 0 && head.path.data[0] == '/');
        CHECK(!(head.is_chunked && head.has_length));
        http_head_get(&head, "content-type");
        http_query_get(head.query, "commit");
        CHECK(span_equal(http_peek_path(span_of(data, bytes)), head.path));
        break;
    case HTTP_PARSE_BAD:
        http_peek_path(span_of(data, bytes));
        CHECK(code >= 400 && why);
        break;
    case HTTP_PARSE_MORE:
        CHECK(bytes <= 16384);
        break;
    }
}

static enum http_parse feed(struct http_chunks *chunks, const uint8_t *data, size_t bytes,
                            size_t *out_used, struct buf *body)
{
    const char *why = NULL;
    return http_chunks_feed(chunks, data, bytes, out_used, body, &why);
}

static void chunked(const uint8_t *data, size_t bytes)
{
    if (bytes == 0)
        return;
    size_t cut = data[0] % bytes, length = bytes - 1, used = 0, first = 0, second = 0;
    struct http_chunks whole = {0}, parts = {0};
    struct buf a = {0}, b = {0};
    cut = cut > length ? length : cut;
    enum http_parse once = feed(&whole, data + 1, length, &used, &a);
    enum http_parse twice = feed(&parts, data + 1, cut, &first, &b);
    if (twice == HTTP_PARSE_MORE)
        twice = feed(&parts, data + 1 + first, length - first, &second, &b);
    CHECK(once == twice && a.length == b.length);
    if (a.length)
        CHECK(memcmp(a.data, b.data, a.length) == 0);
    buf_deinit(&a);
    buf_deinit(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    heads(data, bytes);
    chunked(data, bytes);
    return 0;
}
