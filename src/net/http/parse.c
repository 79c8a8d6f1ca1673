/* SPDX-License-Identifier: Apache-2.0
 *
 * Strict parsing of HTTP/1.1 messages. What RFC 9112 lets a server repair (bare LF, folded headers,
 * a length beside chunked) is refused: every such leniency has been a request-smuggling fault
 * somewhere. Pure functions over bytes from outside.
 */
#include "net/http/http_internal.h"

static const char *const token_extra = "!#$%&'*+-.^_`|~";

static bool is_token_char(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != 0 && strchr(token_extra, c) != NULL);
}

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : c;
}

bool http_name_is(struct span name, const char *lower_case)
{
    size_t length = strlen(lower_case);
    if (name.length != length)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (lower(name.data[i]) != (uint8_t)lower_case[i])
            return false;
    }
    return true;
}

struct span http_headers_get(const struct http_header *headers, size_t count,
                             const char *lower_case_name)
{
    for (size_t i = 0; i < count; i++) {
        if (http_name_is(headers[i].name, lower_case_name))
            return headers[i].value;
    }
    return (struct span){0};
}

struct span http_head_get(const struct http_head *head, const char *lower_case_name)
{
    return http_headers_get(head->headers, head->header_count, lower_case_name);
}

bool http_head_get_only(const struct http_head *head, const char *lower_case_name,
                        struct span *out_value)
{
    *out_value = http_head_get(head, lower_case_name);
    for (size_t i = 0; i < head->header_count; i++) {
        if (http_name_is(head->headers[i].name, lower_case_name) &&
            !span_equal(head->headers[i].value, *out_value))
            return false;
    }
    return true;
}

struct span http_response_get(const struct http_response *response, const char *lower_case_name)
{
    return http_headers_get(response->headers, response->header_count, lower_case_name);
}

struct span http_query_get(struct span query, const char *name)
{
    size_t length = strlen(name), at = 0;
    while (at < query.length) {
        const uint8_t *pair = query.data + at;
        const uint8_t *end = memchr(pair, '&', query.length - at);
        size_t pair_length = end ? (size_t)(end - pair) : query.length - at;
        if (pair_length >= length && memcmp(pair, name, length) == 0) {
            if (pair_length == length)
                return span_of(pair + length, 0);
            if (pair[length] == '=')
                return span_of(pair + length + 1, pair_length - length - 1);
        }
        at += pair_length + 1;
    }
    return (struct span){0};
}

bool http_query_text(struct span query, const char *name, char *out, size_t bytes)
{
    struct span value = http_query_get(query, name);
    size_t length = 0, i = 0;
    for (; i < value.length && length + 1 < bytes; i++) {
        uint8_t byte = value.data[i];
        if (byte == '%' && i + 2 < value.length &&
            hex_decode(&byte, 1, (const char *)value.data + i + 1, 2))
            i += 2;
        out[length++] = (char)byte;
    }
    out[length] = '\0';
    return length > 0 && i == value.length && strlen(out) == length;
}

void http_put_encoded(struct buf *out, const char *text)
{
    for (; *text; text++) {
        uint8_t byte = (uint8_t)*text;
        bool is_plain = (byte >= '0' && byte <= '9') ||
                        ((byte | 32) >= 'a' && (byte | 32) <= 'z') || byte == '.' || byte == '_' ||
                        byte == '-';
        if (is_plain)
            buf_put_byte(out, byte);
        else
            buf_format(out, "%%%02X", (unsigned)byte);
    }
}

/* The end of the head: the offset behind CRLF CRLF, or 0. */
static size_t find_head_end(struct span bytes)
{
    size_t at = 0;
    while (at + 4 <= bytes.length) {
        const uint8_t *cr = memchr(bytes.data + at, '\r', bytes.length - at - 3);
        if (!cr)
            return 0;
        at = (size_t)(cr - bytes.data);
        if (memcmp(cr, "\r\n\r\n", 4) == 0)
            return at + 4;
        at++;
    }
    return 0;
}

struct refusal {
    int code;
    const char *why;
};

#define REFUSE(number, text)                                                                       \
    do {                                                                                           \
        refusal->code = (number);                                                                  \
        refusal->why = (text);                                                                     \
        return false;                                                                              \
    } while (0)

/* One line without its CRLF; false where a CR or LF stands alone. */
static bool take_line(const uint8_t **at, const uint8_t *end, struct span *out_line)
{
    const uint8_t *line = *at, *lf = memchr(line, '\n', (size_t)(end - line));
    if (!lf || lf == line || lf[-1] != '\r')
        return false;
    *out_line = span_of(line, (size_t)(lf - 1 - line));
    *at = lf + 1;
    return memchr(line, '\r', out_line->length) == NULL;
}

static enum http_method method_of(struct span text)
{
    static const struct {
        const char *name;
        enum http_method method;
    } known[] = {{"GET", HTTP_GET},
                 {"HEAD", HTTP_HEAD},
                 {"POST", HTTP_POST},
                 {"PUT", HTTP_PUT},
                 {"DELETE", HTTP_DELETE}};
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        if (span_equal(text, span_of_text(known[i].name)))
            return known[i].method;
    }
    return HTTP_OTHER;
}

static bool parse_target(struct span target, struct http_head *head, struct refusal *refusal)
{
    static const char scheme[] = "http://";
    for (size_t i = 0; i < target.length; i++) {
        if (target.data[i] <= ' ' || target.data[i] >= 0x7f || target.data[i] == '#')
            REFUSE(400, "bad character in the request target");
    }
    if (target.length > sizeof scheme - 1 && memcmp(target.data, scheme, sizeof scheme - 1) == 0) {
        const uint8_t *rest = target.data + sizeof scheme - 1;
        size_t left = target.length - (sizeof scheme - 1);
        const uint8_t *slash = memchr(rest, '/', left);
        target = slash ? span_of(slash, left - (size_t)(slash - rest)) : span_of_text("/");
    }
    if (target.length == 0 || target.data[0] != '/')
        REFUSE(400, "request target must begin with a slash");
    const uint8_t *mark = memchr(target.data, '?', target.length);
    head->path = span_of(target.data, mark ? (size_t)(mark - target.data) : target.length);
    if (mark)
        head->query = span_of(mark + 1, target.length - head->path.length - 1);
    return true;
}

static bool parse_request_line(struct span line, struct http_head *head, struct refusal *refusal)
{
    const uint8_t *first = memchr(line.data, ' ', line.length);
    if (!first || first == line.data)
        REFUSE(400, "malformed request line");
    head->method_text = span_of(line.data, (size_t)(first - line.data));
    for (size_t i = 0; i < head->method_text.length; i++) {
        if (!is_token_char(head->method_text.data[i]))
            REFUSE(400, "bad character in the method");
    }
    head->method = method_of(head->method_text);
    const uint8_t *target = first + 1, *end = line.data + line.length;
    const uint8_t *second = memchr(target, ' ', (size_t)(end - target));
    if (!second)
        REFUSE(400, "malformed request line");
    struct span version = span_of(second + 1, (size_t)(end - second - 1));
    if (version.length != 8 || memcmp(version.data, "HTTP/", 5) != 0 || version.data[6] != '.')
        REFUSE(400, "malformed protocol version");
    if (version.data[5] != '1' || (version.data[7] != '0' && version.data[7] != '1'))
        REFUSE(505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    head->minor_version = version.data[7] - '0';
    return parse_target(span_of(target, (size_t)(second - target)), head, refusal);
}

static bool parse_header_line(struct span line, struct http_header *out_header)
{
    const uint8_t *colon = memchr(line.data, ':', line.length);
    if (!colon || colon == line.data)
        return false;
    out_header->name = span_of(line.data, (size_t)(colon - line.data));
    for (size_t i = 0; i < out_header->name.length; i++) {
        if (!is_token_char(out_header->name.data[i]))
            return false;
    }
    const uint8_t *start = colon + 1, *end = line.data + line.length;
    while (start < end && (*start == ' ' || *start == '\t'))
        start++;
    while (end > start && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    for (const uint8_t *at = start; at < end; at++) {
        if ((*at < ' ' && *at != '\t') || *at == 0x7f)
            return false;
    }
    out_header->value = span_of(start, (size_t)(end - start));
    return true;
}

static bool value_is(struct span value, const char *lower_case)
{
    return http_name_is(value, lower_case);
}

bool http_list_next(struct span *inout_list, struct span *out_element)
{
    const uint8_t *at = inout_list->data, *end = at + inout_list->length;
    while (at < end && (*at == ' ' || *at == '\t' || *at == ','))
        at++;
    const uint8_t *start = at;
    while (at < end && *at != ',')
        at++;
    *inout_list = span_of(at, (size_t)(end - at));
    while (at > start && (at[-1] == ' ' || at[-1] == '\t'))
        at--;
    *out_element = span_of(start, (size_t)(at - start));
    return at > start;
}

static bool list_has(struct span list, const char *lower_case)
{
    struct span element;
    while (http_list_next(&list, &element)) {
        if (value_is(element, lower_case))
            return true;
    }
    return false;
}

/* What the headers say about the framing of the message (RFC 9112 section 6.3). */
static bool interpret_headers(struct http_head *head, struct refusal *refusal)
{
    unsigned host_count = 0, coding_count = 0;
    for (size_t i = 0; i < head->header_count; i++) {
        struct http_header *header = &head->headers[i];
        if (http_name_is(header->name, "host")) {
            host_count++;
        } else if (http_name_is(header->name, "content-length")) {
            if (head->has_length)
                REFUSE(400, "more than one Content-Length");
            head->has_length = true;
            if (!parse_u64((const char *)header->value.data, header->value.length,
                           &head->content_length))
                REFUSE(400, "malformed Content-Length");
        } else if (http_name_is(header->name, "transfer-encoding")) {
            if (++coding_count > 1 || !value_is(header->value, "chunked"))
                REFUSE(501, "only the chunked transfer coding is known");
            head->is_chunked = true;
        } else if (http_name_is(header->name, "connection")) {
            head->wants_close |= list_has(header->value, "close");
        } else if (http_name_is(header->name, "expect")) {
            if (!value_is(header->value, "100-continue"))
                REFUSE(417, "unknown expectation");
            head->expects_continue = head->minor_version == 1;
        }
    }
    if (host_count > 1 || (host_count == 0 && head->minor_version == 1))
        REFUSE(400, "exactly one Host header is needed");
    if (head->is_chunked && head->has_length)
        REFUSE(400, "both Content-Length and Transfer-Encoding");
    if (head->is_chunked && head->minor_version == 0)
        REFUSE(400, "Transfer-Encoding in HTTP/1.0");
    head->wants_close |= head->minor_version == 0;
    return true;
}

bool http_parse_header_lines(const uint8_t **at, const uint8_t *end, struct http_header *headers,
                             size_t *out_count, bool *out_too_many)
{
    struct span line;
    *out_count = 0;
    *out_too_many = false;
    for (;;) {
        if (!take_line(at, end, &line))
            return false;
        if (line.length == 0)
            return true;
        if (*out_count == HTTP_HEADERS_MAX) {
            *out_too_many = true;
            return false;
        }
        if (!parse_header_line(line, &headers[*out_count]))
            return false;
        (*out_count)++;
    }
}

static bool parse_whole_head(struct span bytes, struct http_head *head, struct refusal *refusal)
{
    const uint8_t *at = bytes.data, *end = bytes.data + bytes.length;
    struct span line;
    bool is_too_many;
    if (!take_line(&at, end, &line))
        REFUSE(400, "malformed request line");
    if (!parse_request_line(line, head, refusal))
        return false;
    if (!http_parse_header_lines(&at, end, head->headers, &head->header_count, &is_too_many)) {
        if (is_too_many)
            REFUSE(431, "too many header fields");
        REFUSE(400, "malformed header field");
    }
    return interpret_headers(head, refusal);
}

static void move_span(struct span *span, struct span from, const uint8_t *to)
{
    size_t at = (size_t)((uintptr_t)span->data - (uintptr_t)from.data);
    if (at <= from.length) /* else it is a text of ours */
        span->data = to + at;
}

void http_head_move(struct http_head *head, struct span from, const uint8_t *to)
{
    move_span(&head->method_text, from, to);
    move_span(&head->path, from, to);
    move_span(&head->query, from, to);
    for (size_t i = 0; i < head->header_count; i++) {
        move_span(&head->headers[i].name, from, to);
        move_span(&head->headers[i].value, from, to);
    }
}

struct span http_peek_path(struct span bytes)
{
    struct http_head head = {0};
    struct refusal ignored;
    const uint8_t *first = memchr(bytes.data, ' ', bytes.length), *at = first ? first + 1 : NULL;
    const uint8_t *end = bytes.data + bytes.length, *target = at;
    while (at && at<end && * at> ' ' && *at < 0x7f)
        at++;
    if (!at || at == end || *at != ' ' ||
        !parse_target(span_of(target, (size_t)(at - target)), &head, &ignored))
        return (struct span){0};
    return head.path;
}

enum http_parse http_parse_request(struct span bytes, size_t bytes_max, struct http_head *out_head,
                                   size_t *out_bytes, int *out_code, const char **out_why)
{
    size_t head_bytes = find_head_end(bytes);
    struct refusal refusal = {.code = 431, .why = "request head too large"};
    if (head_bytes == 0 && bytes.length <= bytes_max) {
        /* A line that ends in a bare LF would wait for its time-out: say so at once. */
        const uint8_t *lf = bytes.length ? memchr(bytes.data, '\n', bytes.length) : NULL;
        if (!lf || (lf > bytes.data && lf[-1] == '\r'))
            return HTTP_PARSE_MORE;
        refusal = (struct refusal){.code = 400, .why = "bare line feed in the request head"};
    } else if (head_bytes != 0 && head_bytes <= bytes_max) {
        *out_head = (struct http_head){0};
        if (parse_whole_head(span_of(bytes.data, head_bytes), out_head, &refusal)) {
            *out_bytes = head_bytes;
            return HTTP_PARSE_DONE;
        }
    }
    *out_code = refusal.code;
    *out_why = refusal.why;
    return HTTP_PARSE_BAD;
}

enum chunk_state {
    CHUNK_SIZE,
    CHUNK_EXTENSION,
    CHUNK_SIZE_LF,
    CHUNK_DATA,
    CHUNK_DATA_CR,
    CHUNK_DATA_LF,
    CHUNK_TRAILER,
    CHUNK_TRAILER_LF
};

enum { CHUNK_LINE_MAX = 4096 };

static int hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A byte of a trailer, which is a header field. `digits` counts those of its line, `line_bytes`
 * those of all lines. */
static bool trailer_step(struct http_chunks *chunks, uint8_t c)
{
    if (c == '\r') {
        chunks->state = CHUNK_TRAILER_LF;
        return chunks->digits == 0 || chunks->has_colon;
    }
    bool is_name = !chunks->has_colon && c != ':';
    bool is_first = chunks->digits++ == 0;
    if (is_name)
        return is_token_char(c);
    if (chunks->has_colon)
        return (c >= ' ' || c == '\t') && c != 0x7f;
    chunks->has_colon = true;
    return !is_first;
}

/* One byte outside the data. False: malformed. `is_end` is set behind the last trailer. */
static bool chunk_step(struct http_chunks *chunks, uint8_t c, bool *is_end)
{
    switch ((enum chunk_state)chunks->state) {
    case CHUNK_SIZE: {
        int digit = hex_value(c);
        if (digit >= 0) {
            if (++chunks->digits > 15)
                return false;
            chunks->left = chunks->left << 4 | (uint64_t)digit;
            return true;
        }
        if (chunks->digits == 0)
            return false;
        chunks->line_bytes = 0;
        chunks->state = c == ';' ? CHUNK_EXTENSION : CHUNK_SIZE_LF;
        return c == ';' || c == '\r';
    }
    case CHUNK_EXTENSION:
        if (c == '\r')
            chunks->state = CHUNK_SIZE_LF;
        return c != '\n' && ++chunks->line_bytes < CHUNK_LINE_MAX;
    case CHUNK_SIZE_LF:
        chunks->line_bytes = 0;
        chunks->digits = 0;
        chunks->state = chunks->left ? CHUNK_DATA : CHUNK_TRAILER;
        return c == '\n';
    case CHUNK_DATA_CR:
        chunks->state = CHUNK_DATA_LF;
        return c == '\r';
    case CHUNK_DATA_LF:
        chunks->state = CHUNK_SIZE;
        return c == '\n';
    case CHUNK_TRAILER:
        return trailer_step(chunks, c) && ++chunks->line_bytes < CHUNK_LINE_MAX;
    case CHUNK_TRAILER_LF:
        *is_end = chunks->digits == 0;
        chunks->digits = 0;
        chunks->has_colon = false;
        chunks->state = CHUNK_TRAILER;
        return c == '\n';
    case CHUNK_DATA:
        break;
    }
    return false;
}

enum http_parse http_chunks_feed(struct http_chunks *chunks, const uint8_t *data, size_t bytes,
                                 size_t *out_used, struct buf *body, const char **out_why)
{
    size_t used = 0;
    bool is_end = false;
    while (used < bytes && !is_end) {
        if (chunks->state == CHUNK_DATA) {
            size_t part = bytes - used;
            if (part > chunks->left)
                part = (size_t)chunks->left;
            buf_put(body, data + used, part);
            if (body->failed) {
                *out_why = "body too large";
                return HTTP_PARSE_BAD;
            }
            used += part;
            chunks->left -= part;
            if (chunks->left == 0)
                chunks->state = CHUNK_DATA_CR;
        } else if (!chunk_step(chunks, data[used++], &is_end)) {
            *out_why = "malformed chunk";
            return HTTP_PARSE_BAD;
        }
    }
    *out_used = used;
    return is_end ? HTTP_PARSE_DONE : HTTP_PARSE_MORE;
}

const char *http_reason(int code)
{
    static const struct {
        int code;
        const char *reason;
    } reasons[] = {
        {100, "Continue"},
        {200, "OK"},
        {202, "Accepted"},
        {204, "No Content"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < COUNT_OF(reasons); i++) {
        if (reasons[i].code == code)
            return reasons[i].reason;
    }
    return "Unknown";
}
