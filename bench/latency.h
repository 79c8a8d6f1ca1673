/* SPDX-License-Identifier: Apache-2.0
 *
 * How long acknowledgements took, between the end of a warm-up and the end of the run.
 */
#ifndef SLUICE_BENCH_LATENCY_H
#define SLUICE_BENCH_LATENCY_H

#include "measure.h"

struct latency {
    double warm, end; /* as seconds_now */
    struct buf times; /* float, microseconds */
};

/* Warms up for a quarter of `seconds`, then counts. */
static inline void latency_begin(struct latency *latency, double seconds)
{
    *latency = (struct latency){.warm = seconds_now() + seconds / 4};
    latency->end = latency->warm + seconds;
}

static inline void latency_add(struct latency *latency, double began)
{
    double done = seconds_now();
    float took = (float)((done - began) * 1e6);
    if (began >= latency->warm && done < latency->end)
        buf_put(&latency->times, &took, sizeof took);
}

static inline int latency_by_size(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

static inline void latency_print(const struct latency *latency, unsigned long rows_each)
{
    size_t acks = latency->times.length / sizeof(float);
    float *sorted = (float *)(void *)latency->times.data;
    if (acks == 0) {
        fprintf(stderr, "nothing was acknowledged in time\n");
        exit(1);
    }
    qsort(sorted, acks, sizeof *sorted, latency_by_size);
    printf("{\"rows_a_second\":%.0f,\"p50_us\":%.0f,\"p99_us\":%.0f}\n",
           (double)acks * (double)rows_each / (latency->end - latency->warm),
           (double)sorted[acks / 2], (double)sorted[acks * 99 / 100]);
}

#endif
