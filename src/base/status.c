/* SPDX-License-Identifier: Apache-2.0
 *
 * The status table and error messages. Pure functions; any thread.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/base.h"

static const struct {
    const char *name, *text;
    int http, grpc, exit_code;
} status_rows[STATUS_COUNT] = {
#define X(name, text, http, grpc, exit_code) {#name, text, http, grpc, exit_code},
    STATUS_TABLE(X)
#undef X
};

const char *status_name(enum status status)
{
    CHECK((unsigned)status < STATUS_COUNT);
    return status_rows[status].name;
}

const char *status_text(enum status status)
{
    CHECK((unsigned)status < STATUS_COUNT);
    return status_rows[status].text;
}

int status_http_code(enum status status)
{
    CHECK((unsigned)status < STATUS_COUNT);
    return status_rows[status].http;
}

int status_grpc_code(enum status status)
{
    CHECK((unsigned)status < STATUS_COUNT);
    return status_rows[status].grpc;
}

int status_exit_code(enum status status)
{
    CHECK((unsigned)status < STATUS_COUNT);
    return status_rows[status].exit_code;
}

enum status error_set(struct error *err, enum status status, const char *format, ...)
{
    char text[sizeof err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    text_make_line(text);
    memcpy(err->message, text, sizeof text);
    err->status = status;
    err->os_errno = 0;
    err->offset = -1;
    return status;
}

enum status error_set_errno(struct error *err, int os_errno, const char *format, ...)
{
    char text[sizeof err->message];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length < 0)
        length = 0;
    size_t used = size_min((size_t)length, sizeof text - 1);
    snprintf(text + used, sizeof text - used, ": %s", strerror(os_errno));
    text_make_line(text);
    memcpy(err->message, text, sizeof text);
    err->os_errno = os_errno;
    err->offset = -1;
    switch (os_errno) {
    case ENOSPC:
    case EDQUOT:
        err->status = STATUS_NO_SPACE;
        break;
    case ENOENT:
        err->status = STATUS_NOT_FOUND;
        break;
    case EEXIST:
        err->status = STATUS_EXISTS;
        break;
    case ENOMEM:
        err->status = STATUS_NO_MEMORY;
        break;
    case EWOULDBLOCK:
        err->status = STATUS_BUSY;
        break;
    default:
        err->status = STATUS_IO;
        break;
    }
    return err->status;
}

enum status error_at(struct error *err, uint64_t offset)
{
    err->offset = offset <= INT64_MAX ? (int64_t)offset : -1;
    return err->status;
}

enum status error_prefix(struct error *err, const char *format, ...)
{
    char text[sizeof err->message];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length < 0)
        length = 0;
    size_t used = size_min((size_t)length, sizeof text - 1);
    size_t room = sizeof text - used;
    /* A message that no longer fits loses its end, never its beginning. */
    int more = snprintf(text + used, room, ": %s", err->message);
    UNUSED(more);
    text_make_line(text);
    memcpy(err->message, text, sizeof text);
    return err->status;
}

_Noreturn void check_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "sluice: invariant broken: %s (%s:%d)\n", condition, file, line);
    fflush(stderr);
    __builtin_trap();
}
