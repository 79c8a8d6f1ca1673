/* SPDX-License-Identifier: Apache-2.0
 *
 * One table of everything that can go wrong: its text, and the HTTP, gRPC and exit code by which it
 * leaves the process. A fallible function returns `enum status` and takes `struct error *err` last;
 * outputs stay untouched on failure. `err` is never NULL. The message says operation, object,
 * offset; each module boundary adds one prefix.
 */
#ifndef SLUICE_BASE_STATUS_H
#define SLUICE_BASE_STATUS_H

#include <stdbool.h>

/*        name         text                            HTTP gRPC exit */
#define STATUS_TABLE(X)                                                                            \
    X(OK, "ok", 200, 0, 0)                                                                         \
    X(INVALID, "invalid input", 400, 3, 2)                                                         \
    X(USAGE, "wrong usage", 400, 3, 2)                                                             \
    X(UNAUTHENTICATED, "not authenticated", 401, 16, 2)                                            \
    X(FORBIDDEN, "not permitted", 403, 7, 2)                                                       \
    X(NOT_FOUND, "not found", 404, 5, 3)                                                           \
    X(METHOD, "method not allowed", 405, 12, 2)                                                    \
    X(EXISTS, "already exists", 409, 6, 4)                                                         \
    X(CONFLICT, "conflict", 409, 10, 4)                                                            \
    X(TOO_LARGE, "too large", 413, 8, 5)                                                           \
    X(MEDIA_TYPE, "unsupported media type", 415, 3, 2)                                             \
    X(LIMIT, "limit reached", 429, 8, 5)                                                           \
    X(UNSUPPORTED, "not supported", 501, 12, 6)                                                    \
    X(BUSY, "busy", 503, 14, 75)                                                                   \
    X(NO_SPACE, "no space left", 503, 14, 75)                                                      \
    X(CLOSED, "closed", 503, 14, 75)                                                               \
    X(NO_MEMORY, "out of memory", 503, 14, 71)                                                     \
    X(TIMEOUT, "timed out", 504, 4, 75)                                                            \
    X(IO, "input/output error", 503, 14, 74)                                                       \
    X(TORN_TAIL, "torn tail", 500, 13, 74)                                                         \
    X(CORRUPT, "corrupt", 500, 15, 74)                                                             \
    X(UNKNOWN_OUTCOME, "outcome unknown", 503, 14, 75)                                             \
    X(FENCED, "fenced by a newer owner", 503, 9, 86)                                               \
    X(HALTED, "halted", 409, 9, 86)                                                                \
    X(RECLAIMED, "source range reclaimed", 410, 11, 87)                                            \
    X(IDENTITY, "share identity or group conflict", 409, 9, 88)                                    \
    X(INTERNAL, "internal error", 500, 13, 70)

enum status {
#define X(name, text, http, grpc, exit_code) STATUS_##name,
    STATUS_TABLE(X)
#undef X
        STATUS_COUNT
};

struct error {
    enum status status;
    int os_errno;   /* 0 if no system call failed */
    int64_t offset; /* of what is wrong in the file that is read; -1: not said */
    char message[480];
};

const char *status_name(enum status status); /* "NOT_FOUND" */
const char *status_text(enum status status);
int status_http_code(enum status status);
int status_grpc_code(enum status status);
int status_exit_code(enum status status);

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(text_at, first) __attribute__((format(printf, text_at, first)))

/* Sets status and message, os_errno 0, no offset; returns `status`, so that `return error_set(...)`
 * reads well. */
enum status error_set(struct error *err, enum status status, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* The same for a failed system call: picks NO_SPACE, NOT_FOUND, EXISTS, NO_MEMORY or IO from
 * `os_errno` and appends its text. */
enum status error_set_errno(struct error *err, int os_errno, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Says where in the file that is read. Returns err->status. */
enum status error_at(struct error *err, uint64_t offset);

/* Puts "prefix: " before the message. Returns err->status. */
enum status error_prefix(struct error *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* For code that owns nothing at this point; otherwise resources leave through one `done:`. */
#define TRY(expression)                                                                            \
    do {                                                                                           \
        enum status try_status_ = (expression);                                                    \
        if (__builtin_expect(try_status_ != STATUS_OK, 0))                                         \
            return try_status_;                                                                    \
    } while (0)

/* For code that owns something: on failure sets `variable` and goes to `done`. */
#define TRY_OR_DONE(variable, expression)                                                          \
    do {                                                                                           \
        (variable) = (expression);                                                                 \
        if (__builtin_expect((variable) != STATUS_OK, 0))                                          \
            goto done;                                                                             \
    } while (0)

#endif
