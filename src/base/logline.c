/* SPDX-License-Identifier: Apache-2.0
 *
 * Log lines.
 */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "base/base.h"

static _Atomic int least_level = LOG_INFO;

void log_set_level(enum log_level least)
{
    atomic_store(&least_level, (int)least);
}

void log_line(enum log_level level, const char *format, ...)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    if ((int)level < atomic_load_explicit(&least_level, memory_order_relaxed))
        return;
    char text[1024];
    time_t now = time(NULL);
    struct tm parts;
    gmtime_r(&now, &parts);
    size_t used = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ ", &parts);
    used += (size_t)snprintf(text + used, sizeof text - used, "%-5s ", names[level]);
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text + used, sizeof text - used - 1, format, args);
    va_end(args);
    text_make_line(text + used);
    used = size_min(used + (size_t)(length < 0 ? 0 : length), sizeof text - 2);
    text[used++] = '\n';
    fwrite(text, 1, used, stderr);
}
