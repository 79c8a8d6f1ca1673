/* SPDX-License-Identifier: Apache-2.0
 *
 * TCP sockets, readiness polling, wake-ups and signals. Non-blocking unless said. A socket is a
 * file descriptor in a one-field struct; -1 is none.
 */
#ifndef SLUICE_OS_SOCKET_H
#define SLUICE_OS_SOCKET_H

#include "base/base.h"

struct os_socket {
    int fd;
};

#define OS_SOCKET_NONE ((struct os_socket){-1})

/* Listens on `address` ("127.0.0.1", "::1"), port 0 picks one; SO_REUSEPORT, so that each worker
 * has its own. */
enum status os_listen(const char *address, uint16_t port, struct os_socket *out_socket,
                      uint16_t *out_port, struct error *err) MUST_CHECK;

/* BUSY when no connection waits; LIMIT when the process is out of descriptors. */
enum status os_accept(struct os_socket listener, struct os_socket *out_socket,
                      struct error *err) MUST_CHECK;

/* Connects, blocking up to `timeout_ms`; the socket is then blocking, with that send and receive
 * time-out a call. */
enum status os_connect(const char *address, uint16_t port, uint64_t timeout_ms,
                       struct os_socket *out_socket, struct error *err) MUST_CHECK;

/* *out_bytes 0 = the peer closed its side; BUSY = would block; TIMEOUT on a blocking socket. */
enum status os_recv(struct os_socket socket, void *data, size_t bytes, size_t *out_bytes,
                    struct error *err) MUST_CHECK;
/* Sends some; BUSY = would block. Never raises SIGPIPE. */
enum status os_send(struct os_socket socket, const void *data, size_t bytes, size_t *out_bytes,
                    struct error *err) MUST_CHECK;
bool os_is_address(const char *address); /* an IP address, or localhost */
void os_shutdown_write(struct os_socket socket);
void os_close(struct os_socket socket); /* accepts none */

/* Readiness, level-triggered. One thread waits; others may only wake it. */
struct os_poller;

enum os_ready { OS_READABLE = 1, OS_WRITABLE = 2, OS_CLOSED = 4 };

struct os_event {
    void *context;
    unsigned ready;
};

enum status os_poller_create(struct os_poller **out_poller, struct error *err) MUST_CHECK;
void os_poller_destroy(struct os_poller *poller); /* accepts NULL */
/* `interest` of 0 leaves the socket in without events but errors. */
enum status os_poller_add(struct os_poller *poller, struct os_socket socket, unsigned interest,
                          void *context, struct error *err) MUST_CHECK;
void os_poller_change(struct os_poller *poller, struct os_socket socket, unsigned interest,
                      void *context);
void os_poller_remove(struct os_poller *poller, struct os_socket socket);
/* Once events come within `busy_poll_us` of a wait's begin, waits look for them for so long, giving
 * way to whoever else would run, before they sleep: a processor that sleeps takes tens of
 * microseconds to wake. At first 0: never. */
void os_poller_busy_poll(struct os_poller *poller, uint64_t busy_poll_us);
/* Waits up to `timeout_ms` (-1: for ever), or busy_poll_us longer, fills `events`, returns their
 * count. A wake alone gives 0. */
size_t os_poller_wait(struct os_poller *poller, int timeout_ms, struct os_event *events,
                      size_t capacity);
/* The same without sleep, until `until_ns` of the monotonic clock. */
size_t os_poller_look(struct os_poller *poller, int64_t until_ns, struct os_event *events,
                      size_t capacity);
void os_poller_wake(struct os_poller *poller); /* any thread, and signal handlers */

/* SIGTERM and SIGINT set a flag and wake `poller` (once a process). SIGPIPE and SIGXFSZ are
 * ignored: calls that meet them fail instead. */
enum status os_signals_watch(struct os_poller *poller, struct error *err) MUST_CHECK;
int os_signal_pending(void); /* 0, or the signal's number */

enum { OS_STDIN = 0, OS_STDOUT = 1, OS_STDERR = 2 };
bool os_is_terminal(int fd);
unsigned os_cpu_count(void);
uint64_t os_memory_resident_bytes(void);
int os_process_id(void);
/* Gives memory that was freed, by any thread, back to the system. */
void os_memory_trim(void);
/* Raises the soft limit of open files to the hard one; returns what then holds. */
uint64_t os_file_limit_raise(void);
const char *os_environment(const char *name); /* NULL if unset; borrowed from the process */
/* "NAME=value" number `index`, NULL behind the last, where a walk from 0 ends. */
const char *os_environment_at(size_t index);

#endif
