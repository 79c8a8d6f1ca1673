/* SPDX-License-Identifier: Apache-2.0
 *
 * Sockets and epoll.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "os/os.h"

static enum status parse_address(const char *address, uint16_t port,
                                 struct sockaddr_storage *out_address, socklen_t *out_length,
                                 struct error *err)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    if (strcmp(address, "localhost") == 0)
        address = "127.0.0.1";
    memset(out_address, 0, sizeof *out_address);
    if (inet_pton(AF_INET, address, &v4.sin_addr) == 1) {
        memcpy(out_address, &v4, sizeof v4);
        *out_length = sizeof v4;
    } else if (inet_pton(AF_INET6, address, &v6.sin6_addr) == 1) {
        memcpy(out_address, &v6, sizeof v6);
        *out_length = sizeof v6;
    } else {
        return error_set(err, STATUS_INVALID, "not an IP address: %.100s", address);
    }
    return STATUS_OK;
}

bool os_is_address(const char *address)
{
    struct sockaddr_storage ignored;
    socklen_t length;
    struct error err;
    return parse_address(address, 0, &ignored, &length, &err) == STATUS_OK;
}

enum status os_listen(const char *address, uint16_t port, struct os_socket *out_socket,
                      uint16_t *out_port, struct error *err)
{
    struct sockaddr_storage where;
    socklen_t length;
    TRY(parse_address(address, port, &where, &length, err));
    int fd = socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_set_errno(err, errno, "socket");
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&where, length) != 0 || listen(fd, 1024) != 0 ||
        getsockname(fd, (struct sockaddr *)&where, &length) != 0) {
        int code = errno;
        close(fd);
        return error_set_errno(err, code, "listen on %s port %u", address, port);
    }
    in_port_t bound = where.ss_family == AF_INET
                          ? ((struct sockaddr_in *)(void *)&where)->sin_port
                          : ((struct sockaddr_in6 *)(void *)&where)->sin6_port;
    *out_port = ntohs(bound);
    out_socket->fd = fd;
    return STATUS_OK;
}

enum status os_accept(struct os_socket listener, struct os_socket *out_socket, struct error *err)
{
    int fd;
    do
        fd = accept4(listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE)
            return error_set(err, STATUS_LIMIT, "accept: out of file descriptors");
        return error_set_errno(err, errno, "accept");
    }
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    out_socket->fd = fd;
    return STATUS_OK;
}

enum status os_connect(const char *address, uint16_t port, uint64_t timeout_ms,
                       struct os_socket *out_socket, struct error *err)
{
    struct sockaddr_storage where;
    socklen_t length;
    TRY(parse_address(address, port, &where, &length, err));
    int fd = socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return error_set_errno(err, errno, "socket");
    struct timeval wait = {.tv_sec = (time_t)(timeout_ms / 1000),
                           .tv_usec = (suseconds_t)(timeout_ms % 1000) * 1000};
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    int result;
    do
        result = connect(fd, (struct sockaddr *)&where, length);
    while (result != 0 && errno == EINTR);
    if (result != 0) {
        int code = errno;
        close(fd);
        if (code == EINPROGRESS)
            return error_set(err, STATUS_TIMEOUT, "connect to %s port %u: timed out", address,
                             port);
        return error_set_errno(err, code, "connect to %s port %u", address, port);
    }
    out_socket->fd = fd;
    return STATUS_OK;
}

static enum status transfer_error(struct error *err, const char *what)
{
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return error_set(err, STATUS_BUSY, "%s: would block", what);
    if (errno == EPIPE || errno == ECONNRESET)
        return error_set(err, STATUS_CLOSED, "%s: the peer closed the connection", what);
    return error_set_errno(err, errno, "%s", what);
}

enum status os_recv(struct os_socket socket, void *data, size_t bytes, size_t *out_bytes,
                    struct error *err)
{
    ssize_t got;
    do
        got = recv(socket.fd, data, bytes, 0);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return transfer_error(err, "receive");
    *out_bytes = (size_t)got;
    return STATUS_OK;
}

enum status os_send(struct os_socket socket, const void *data, size_t bytes, size_t *out_bytes,
                    struct error *err)
{
    ssize_t sent;
    do
        sent = send(socket.fd, data, bytes, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return transfer_error(err, "send");
    *out_bytes = (size_t)sent;
    return STATUS_OK;
}

void os_shutdown_write(struct os_socket socket)
{
    shutdown(socket.fd, SHUT_WR);
}

void os_close(struct os_socket socket)
{
    if (socket.fd >= 0)
        close(socket.fd);
}

/* Of the last waits, more or less: how many ended within `busy_poll_ns`. */
enum { QUICK_MAX = 32, QUICK_ENOUGH = 16, QUICK_LOST = 8 };

struct os_poller {
    int epoll_fd, wake_fd;
    int64_t busy_poll_ns; /* 0: it sleeps at once */
    int quick;
};

enum status os_poller_create(struct os_poller **out_poller, struct error *err)
{
    struct os_poller *poller = mem_alloc_zero(1, sizeof *poller);
    if (!poller)
        return error_set(err, STATUS_NO_MEMORY, "poller: out of memory");
    poller->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    poller->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (poller->epoll_fd < 0 || poller->wake_fd < 0 ||
        epoll_ctl(poller->epoll_fd, EPOLL_CTL_ADD, poller->wake_fd, &event) != 0) {
        int code = errno;
        os_poller_destroy(poller);
        return error_set_errno(err, code, "poller");
    }
    *out_poller = poller;
    return STATUS_OK;
}

void os_poller_destroy(struct os_poller *poller)
{
    if (!poller)
        return;
    if (poller->epoll_fd >= 0)
        close(poller->epoll_fd);
    if (poller->wake_fd >= 0)
        close(poller->wake_fd);
    mem_free(poller);
}

static struct epoll_event epoll_event_of(unsigned interest, void *context)
{
    struct epoll_event event = {.data.ptr = context};
    if (interest & OS_READABLE)
        event.events |= EPOLLIN | EPOLLRDHUP;
    if (interest & OS_WRITABLE)
        event.events |= EPOLLOUT;
    return event;
}

enum status os_poller_add(struct os_poller *poller, struct os_socket socket, unsigned interest,
                          void *context, struct error *err)
{
    struct epoll_event event = epoll_event_of(interest, context);
    CHECK(context != NULL);
    if (epoll_ctl(poller->epoll_fd, EPOLL_CTL_ADD, socket.fd, &event) != 0)
        return error_set_errno(err, errno, "poll a socket");
    return STATUS_OK;
}

void os_poller_change(struct os_poller *poller, struct os_socket socket, unsigned interest,
                      void *context)
{
    struct epoll_event event = epoll_event_of(interest, context);
    CHECK(epoll_ctl(poller->epoll_fd, EPOLL_CTL_MOD, socket.fd, &event) == 0);
}

void os_poller_remove(struct os_poller *poller, struct os_socket socket)
{
    epoll_ctl(poller->epoll_fd, EPOLL_CTL_DEL, socket.fd, NULL);
}

void os_poller_busy_poll(struct os_poller *poller, uint64_t busy_poll_us)
{
    poller->busy_poll_ns = (int64_t)busy_poll_us * 1000;
}

static int64_t mono_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Lets all others run first. */
static int look(const struct os_poller *poller, int64_t until_ns, struct epoll_event *ready,
                int capacity)
{
    for (;;) {
        int count = epoll_wait(poller->epoll_fd, ready, capacity, 0);
        if (count || mono_ns() > until_ns)
            return count;
        sched_yield();
    }
}

static int wait_ready(struct os_poller *poller, int timeout_ms, struct epoll_event *ready,
                      int capacity)
{
    if (!poller->busy_poll_ns)
        return epoll_wait(poller->epoll_fd, ready, capacity, timeout_ms);
    int64_t until_ns = mono_ns() + poller->busy_poll_ns;
    int count = poller->quick >= QUICK_ENOUGH ? look(poller, until_ns, ready, capacity) : 0;
    if (count == 0)
        count = epoll_wait(poller->epoll_fd, ready, capacity, timeout_ms);
    if (mono_ns() <= until_ns)
        poller->quick += poller->quick < QUICK_MAX;
    else
        poller->quick = poller->quick > QUICK_LOST ? poller->quick - QUICK_LOST : 0;
    return count;
}

enum { READY_MAX = 128 };

static size_t take_ready(struct os_poller *poller, const struct epoll_event *ready, int count,
                         struct os_event *events)
{
    size_t used = 0;
    for (int i = 0; i < count; i++) {
        if (!ready[i].data.ptr) {
            uint64_t value;
            ssize_t got = read(poller->wake_fd, &value, sizeof value);
            UNUSED(got);
            continue;
        }
        unsigned bits = 0;
        bits |= ready[i].events & EPOLLIN ? OS_READABLE : 0;
        bits |= ready[i].events & EPOLLOUT ? OS_WRITABLE : 0;
        bits |= ready[i].events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP) ? OS_CLOSED : 0;
        events[used++] = (struct os_event){.context = ready[i].data.ptr, .ready = bits};
    }
    return used;
}

size_t os_poller_wait(struct os_poller *poller, int timeout_ms, struct os_event *events,
                      size_t capacity)
{
    struct epoll_event ready[READY_MAX];
    int count = wait_ready(poller, timeout_ms, ready, (int)size_min(capacity, READY_MAX));
    return take_ready(poller, ready, count, events);
}

size_t os_poller_look(struct os_poller *poller, int64_t until_ns, struct os_event *events,
                      size_t capacity)
{
    struct epoll_event ready[READY_MAX];
    int count = look(poller, until_ns, ready, (int)size_min(capacity, READY_MAX));
    return take_ready(poller, ready, count, events);
}

void os_poller_wake(struct os_poller *poller)
{
    uint64_t one = 1;
    ssize_t written = write(poller->wake_fd, &one, sizeof one);
    UNUSED(written);
}

static volatile sig_atomic_t pending_signal;
static struct os_poller *signal_poller;

static void on_signal(int number)
{
    int saved = errno;
    pending_signal = number;
    if (signal_poller)
        os_poller_wake(signal_poller);
    errno = saved;
}

enum status os_signals_watch(struct os_poller *poller, struct error *err)
{
    struct sigaction action = {.sa_handler = on_signal};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&action.sa_mask);
    signal_poller = poller;
    if (sigaction(SIGTERM, &action, NULL) != 0 || sigaction(SIGINT, &action, NULL) != 0 ||
        sigaction(SIGPIPE, &ignore, NULL) != 0 || sigaction(SIGXFSZ, &ignore, NULL) != 0)
        return error_set_errno(err, errno, "watch signals");
    return STATUS_OK;
}

int os_signal_pending(void)
{
    return pending_signal;
}

bool os_is_terminal(int fd)
{
    return isatty(fd) == 1;
}

unsigned os_cpu_count(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (unsigned)count : 1;
}

uint64_t os_file_limit_raise(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 1024;
    struct rlimit wanted = {.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
    if (limit.rlim_cur < limit.rlim_max && setrlimit(RLIMIT_NOFILE, &wanted) == 0)
        limit.rlim_cur = limit.rlim_max;
    return limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : (uint64_t)limit.rlim_cur;
}

void os_memory_trim(void)
{
    malloc_trim(0);
}

uint64_t os_memory_resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long total = 0, resident = 0;
    if (!file)
        return 0;
    int fields = fscanf(file, "%lu %lu", &total, &resident);
    fclose(file);
    return fields == 2 ? (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

int os_process_id(void)
{
    return getpid();
}

const char *os_environment(const char *name)
{
    return getenv(name);
}

const char *os_environment_at(size_t index)
{
    return environ[index];
}
