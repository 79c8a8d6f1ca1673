/* SPDX-License-Identifier: Apache-2.0
 *
 * B5 over HTTP: OTLP log records of one size, durably acknowledged. Each connection has one request
 * in flight; one thread serves them all. Latency is from the first byte sent to the last one read,
 * after a quarter of the time to warm up.
 *
 *   bench_acks PORT CONNECTIONS ROWS_A_REQUEST ROW_BYTES SECONDS
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "format/wire/wire.h"
#include "latency.h"

enum { DISTINCT_MAX = 64, DISTINCT_BYTES = 64 << 20, ANSWER_BYTES = 16 << 10 };

struct connection {
    int fd;
    const struct buf *request;
    size_t sent, got;
    double began;
    char answer[ANSWER_BYTES];
};

static _Noreturn void die(const char *what)
{
    perror(what);
    exit(1);
}

static void put_record(struct random *random, size_t bytes, struct buf *out)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct buf text = {0}, value = {0};
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    for (size_t i = 0; i < bytes; i++)
        buf_put_byte(&text, (uint8_t)letters[random_next(random) % 64]);
    wire_put_bytes(&value, 1, span_of(text.data, text.length));
    buf_put_byte(out, 1 << 3 | 1); /* time_unix_nano, fixed64 */
    buf_put_le64(out, (uint64_t)time.tv_sec * 1000000000);
    wire_put_bytes(out, 5, span_of(value.data, value.length));
    buf_deinit(&text);
    buf_deinit(&value);
}

/* An ExportLogsServiceRequest of one resource and one scope, with its head. */
static void make_request(struct random *random, long rows, size_t bytes, struct buf *out)
{
    struct buf scope = {0}, resource = {0}, body = {0};
    for (long i = 0; i < rows; i++) {
        struct buf record = {0};
        put_record(random, bytes, &record);
        wire_put_bytes(&scope, 2, span_of(record.data, record.length));
        buf_deinit(&record);
    }
    wire_put_bytes(&resource, 2, span_of(scope.data, scope.length));
    wire_put_bytes(&body, 1, span_of(resource.data, resource.length));
    buf_format(out,
               "POST /v1/logs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-protobuf"
               "\r\nContent-Length: %zu\r\n\r\n",
               body.length);
    buf_put(out, body.data, body.length);
    buf_deinit(&scope);
    buf_deinit(&resource);
    buf_deinit(&body);
}

static int dial(long port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

/* All of it, or as much as the socket takes. */
static void send_on(struct connection *connection)
{
    while (connection->sent < connection->request->length) {
        ssize_t n =
            send(connection->fd, connection->request->data + connection->sent,
                 connection->request->length - connection->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0)
            die("send");
        connection->sent += (size_t)n;
    }
}

static void next_request(struct connection *connection, const struct buf *request)
{
    connection->request = request;
    connection->sent = connection->got = 0;
    connection->began = seconds_now();
    send_on(connection);
}

/* True: the answer is whole. */
static bool receive_on(struct connection *connection)
{
    ssize_t n = recv(connection->fd, connection->answer + connection->got,
                     ANSWER_BYTES - 1 - connection->got, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return false;
    if (n <= 0)
        die("recv");
    connection->got += (size_t)n;
    connection->answer[connection->got] = '\0';
    const char *end = strstr(connection->answer, "\r\n\r\n");
    const char *length = strcasestr(connection->answer, "\r\ncontent-length:");
    if (!end || !length)
        return false;
    size_t whole = (size_t)(end - connection->answer) + 4 + strtoul(length + 17, NULL, 10);
    if (connection->got < whole)
        return false;
    if (strncmp(connection->answer, "HTTP/1.1 200", 12) != 0) {
        fprintf(stderr, "%.300s\n", connection->answer);
        exit(1);
    }
    return true;
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: bench_acks PORT CONNECTIONS ROWS_A_REQUEST ROW_BYTES SECONDS\n");
        return 2;
    }
    long port = strtol(argv[1], NULL, 10), count = strtol(argv[2], NULL, 10);
    long rows = strtol(argv[3], NULL, 10);
    struct latency latency;
    struct random random;
    struct buf requests[DISTINCT_MAX] = {0};
    size_t bytes = strtoul(argv[4], NULL, 10), distinct = 0;
    random_init(&random, 1);
    do
        make_request(&random, rows, bytes, &requests[distinct]);
    while (++distinct < DISTINCT_MAX && distinct * requests[0].length < DISTINCT_BYTES);
    int poll = epoll_create1(0);
    size_t made = 0;
    struct connection *connections = mem_alloc_zero((size_t)count, sizeof *connections);
    if (poll < 0 || !connections)
        die("epoll");
    latency_begin(&latency, strtod(argv[5], NULL));
    for (long i = 0; i < count; i++) {
        connections[i].fd = dial(port);
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET,
                                    .data.ptr = &connections[i]};
        if (epoll_ctl(poll, EPOLL_CTL_ADD, connections[i].fd, &event) != 0)
            die("epoll_ctl");
        next_request(&connections[i], &requests[made++ % distinct]);
    }
    while (seconds_now() < latency.end) {
        struct epoll_event events[256];
        int ready = epoll_wait(poll, events, 256, 1000);
        for (int i = 0; i < ready; i++) {
            struct connection *connection = events[i].data.ptr;
            send_on(connection);
            if (!receive_on(connection))
                continue;
            latency_add(&latency, connection->began);
            next_request(connection, &requests[made++ % distinct]);
        }
    }
    latency_print(&latency, (unsigned long)rows);
    return 0;
}
