/* SPDX-License-Identifier: Apache-2.0
 *
 * What the benchmarks share: clocks, and dying with a message.
 */
#ifndef SLUICE_BENCH_MEASURE_H
#define SLUICE_BENCH_MEASURE_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "os/os.h"

static inline _Noreturn void fail(const struct error *err)
{
    fprintf(stderr, "%s\n", err->message);
    exit(1);
}

static inline void must(enum status status, const struct error *err)
{
    if (status != STATUS_OK)
        fail(err);
}

static inline double seconds_now(void)
{
    return (double)env_mono_ns(env_real()) / 1e9;
}

/* Of the process. */
static inline double cpu_seconds(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return 0;
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

#endif
