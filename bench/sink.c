/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_sink: takes what a peer exports over HTTP/1.1 and answers 200, as cheaply as can be: a
 * thread a connection reads and forgets. Prints its port; runs until it is ended. Bodies carry
 * their length.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 18 };

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\n"
                             "Content-Length: 0\r\n\r\n";

/* The bytes that head and body take together; 0: the head is not whole yet. */
static size_t request_bytes(char *data, size_t bytes)
{
    static const char name[] = "\r\ncontent-length:";
    data[bytes] = '\0';
    char *end = strstr(data, "\r\n\r\n");
    if (!end)
        return 0;
    size_t head = (size_t)(end - data) + 4, body = 0;
    for (char *at = data; at < end; at++) {
        if (!strncasecmp(at, name, sizeof name - 1))
            body = strtoull(at + sizeof name - 1, NULL, 10);
    }
    return head + body;
}

static void *serve(void *context)
{
    int connection = (int)(intptr_t)context;
    char *buffer = malloc(BUFFER_BYTES + 1);
    size_t held = 0;
    ssize_t got;
    while (buffer && (got = read(connection, buffer + held, BUFFER_BYTES - held)) > 0) {
        held += (size_t)got;
        size_t whole;
        while (held && (whole = request_bytes(buffer, held))) {
            while (held < whole) { /* the rest of a body; what was read of it may go */
                whole -= held;
                got = read(connection, buffer, whole < BUFFER_BYTES ? whole : BUFFER_BYTES);
                if (got <= 0)
                    goto done;
                held = (size_t)got;
            }
            held -= whole;
            memmove(buffer, buffer + whole, held);
            if (write(connection, answer, sizeof answer - 1) != (ssize_t)sizeof answer - 1)
                goto done;
        }
        if (held == BUFFER_BYTES)
            break; /* no head is so long */
    }
done:
    free(buffer);
    close(connection);
    return NULL;
}

int main(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), connection;
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) ||
        listen(listener, 64) || getsockname(listener, (struct sockaddr *)&address, &length)) {
        perror("bench_sink");
        return 1;
    }
    printf("%u\n", (unsigned)ntohs(address.sin_port));
    fflush(stdout);
    while ((connection = accept(listener, NULL, NULL)) >= 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)connection))
            close(connection);
        else
            pthread_detach(thread);
    }
    return 1;
}
