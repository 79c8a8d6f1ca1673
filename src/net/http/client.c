/* SPDX-License-Identifier: Apache-2.0
 *
 * A blocking client over one kept-alive connection. It never repeats a request: whether a write
 * that got no answer may be sent again is for the caller to know.
 */
#include <stdio.h>

#include "net/http/http_internal.h"

enum { RESPONSE_HEAD_MAX = 64 * 1024, RESPONSE_BODY_MAX = 512 << 20, READ_BYTES = 64 * 1024 };

struct http_client {
    char address[64];
    uint16_t port;
    uint64_t timeout_ms;
    struct os_socket socket;
    struct buf out, in, body;
};

enum status http_client_create(const char *address, uint16_t port, uint64_t timeout_ms,
                               struct http_client **out_client, struct error *err)
{
    struct http_client *client = mem_alloc_zero(1, sizeof *client);
    if (!client)
        return error_set(err, STATUS_NO_MEMORY, "http client: out of memory");
    snprintf(client->address, sizeof client->address, "%s", address);
    client->port = port;
    client->timeout_ms = timeout_ms;
    client->socket = OS_SOCKET_NONE;
    buf_init(&client->body, RESPONSE_BODY_MAX);
    *out_client = client;
    return STATUS_OK;
}

static void disconnect(struct http_client *client)
{
    os_close(client->socket);
    client->socket = OS_SOCKET_NONE;
    buf_clear(&client->in);
}

void http_client_destroy(struct http_client *client)
{
    if (!client)
        return;
    disconnect(client);
    buf_deinit(&client->out);
    buf_deinit(&client->in);
    buf_deinit(&client->body);
    mem_free(client);
}

static enum status send_all(struct http_client *client, struct span bytes, struct error *err)
{
    size_t at = 0;
    while (at < bytes.length) {
        size_t sent = 0;
        enum status status =
            os_send(client->socket, bytes.data + at, bytes.length - at, &sent, err);
        if (status == STATUS_BUSY)
            return error_set(err, STATUS_TIMEOUT, "send: timed out");
        TRY(status);
        at += sent;
    }
    return STATUS_OK;
}

/* Appends what the socket gives to `in`; CLOSED at the end of the stream. */
static enum status read_more(struct http_client *client, struct error *err)
{
    size_t got = 0;
    if (!buf_reserve(&client->in, READ_BYTES))
        return buf_status(&client->in, "http answer", err);
    enum status status =
        os_recv(client->socket, client->in.data + client->in.length, READ_BYTES, &got, err);
    if (status == STATUS_BUSY)
        return error_set(err, STATUS_TIMEOUT, "receive: timed out");
    TRY(status);
    if (got == 0)
        return error_set(err, STATUS_CLOSED, "the server closed the connection");
    client->in.length += got;
    return STATUS_OK;
}

static void consume(struct http_client *client, size_t bytes)
{
    memmove(client->in.data, client->in.data + bytes, client->in.length - bytes);
    buf_truncate(&client->in, client->in.length - bytes);
}

static enum status malformed(struct error *err)
{
    return error_set(err, STATUS_INVALID, "malformed HTTP answer");
}

/* The head of the answer; its bytes move to the front of `out`, which is free by then. */
static enum status read_head(struct http_client *client, struct http_response *response,
                             struct error *err)
{
    const uint8_t *end = NULL;
    for (;;) {
        end = client->in.length ? memmem(client->in.data, client->in.length, "\r\n\r\n", 4) : NULL;
        if (end)
            break;
        if (client->in.length > RESPONSE_HEAD_MAX)
            return malformed(err);
        TRY(read_more(client, err));
    }
    size_t head_bytes = (size_t)(end - client->in.data) + 4;
    buf_clear(&client->out);
    buf_put(&client->out, client->in.data, head_bytes);
    consume(client, head_bytes);
    TRY(buf_status(&client->out, "http answer", err));
    const uint8_t *at = client->out.data, *stop = at + head_bytes;
    const uint8_t *line_end = memmem(at, head_bytes, "\r\n", 2);
    uint64_t code;
    if (line_end - at < 12 || memcmp(at, "HTTP/1.", 7) != 0 ||
        !parse_u64((const char *)at + 9, 3, &code))
        return malformed(err);
    at = line_end + 2;
    bool is_too_many;
    if (!http_parse_header_lines(&at, stop, response->headers, &response->header_count,
                                 &is_too_many))
        return malformed(err);
    response->code = (int)code;
    return STATUS_OK;
}

static enum status read_body(struct http_client *client, const char *method,
                             struct http_response *response, struct error *err)
{
    buf_clear(&client->body);
    struct span coding = http_response_get(response, "transfer-encoding");
    struct span length_text = http_response_get(response, "content-length");
    if (strcmp(method, "HEAD") == 0 || response->code == 204 || response->code == 304)
        return STATUS_OK;
    if (coding.data) {
        struct http_chunks chunks = {0};
        for (;;) {
            size_t used = 0;
            const char *why = NULL;
            enum http_parse parse = http_chunks_feed(&chunks, client->in.data, client->in.length,
                                                     &used, &client->body, &why);
            if (parse == HTTP_PARSE_BAD)
                return malformed(err);
            consume(client, used);
            if (parse == HTTP_PARSE_DONE)
                return STATUS_OK;
            TRY(read_more(client, err));
        }
    }
    uint64_t length = 0;
    if (!length_text.data ||
        !parse_u64((const char *)length_text.data, length_text.length, &length))
        return malformed(err);
    while (client->in.length < length && length <= RESPONSE_BODY_MAX)
        TRY(read_more(client, err));
    if (length > RESPONSE_BODY_MAX)
        return malformed(err);
    buf_put(&client->body, client->in.data, (size_t)length);
    consume(client, (size_t)length);
    return buf_status(&client->body, "http answer", err);
}

static enum status exchange_once(struct http_client *client, const char *method, struct span body,
                                 struct http_response *out_response, struct error *err)
{
    TRY(send_all(client, span_of(client->out.data, client->out.length), err));
    TRY(send_all(client, body, err));
    do {
        *out_response = (struct http_response){0};
        TRY(read_head(client, out_response, err));
    } while (out_response->code == 100);
    TRY(read_body(client, method, out_response, err));
    out_response->body = span_of(client->body.data, client->body.length);
    return STATUS_OK;
}

enum status http_client_request(struct http_client *client, const char *method, const char *path,
                                const struct http_field *fields, size_t field_count,
                                struct span body, struct http_response *out_response,
                                struct error *err)
{
    if (client->socket.fd < 0)
        TRY(os_connect(client->address, client->port, client->timeout_ms, &client->socket, err));
    buf_clear(&client->out);
    buf_format(&client->out, "%s %s HTTP/1.1\r\nHost: %s:%u\r\nContent-Length: %zu\r\n", method,
               path, client->address, client->port, body.length);
    for (size_t i = 0; i < field_count; i++)
        buf_format(&client->out, "%s: %s\r\n", fields[i].name, fields[i].value);
    buf_put_text(&client->out, "\r\n");
    TRY(buf_status(&client->out, "http request", err));
    enum status status = exchange_once(client, method, body, out_response, err);
    if (status != STATUS_OK)
        disconnect(client);
    else if (http_name_is(http_response_get(out_response, "connection"), "close"))
        disconnect(client);
    return status;
}
