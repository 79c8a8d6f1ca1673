/* SPDX-License-Identifier: Apache-2.0
 *
 * B1: OTLP protobuf bodies in memory -> columns, every field kept. One thread; bodies are made
 * before the timer starts. Prints one JSON line. usage: bench_decode PROFILE [--write DIR]
 */
#include <stdio.h>
#include <stdlib.h>

#include "app/cmd/cmd.h"
#include "flow/ingest/otlp_decode.h"
#include "os/os.h"

enum { BODIES = 64, ITEMS = 1000, ROUNDS = 8 };

static void write_bodies(const char *dir, const struct buf *bodies)
{
    struct error err;
    char path[PATH_BYTES_MAX];
    for (int i = 0; i < BODIES; i++) {
        snprintf(path, sizeof path, "%s/%02d.bin", dir, i);
        if (files_replace(env_real(), path, bodies[i].data, bodies[i].length, &err) != STATUS_OK)
            exit(1);
    }
}

int main(int argc, char **argv)
{
    struct error err;
    struct otlp_decoder decoder;
    struct buf bodies[BODIES] = {{0}};
    enum gen_profile profile;
    size_t bytes = 0;
    double best = 1e9;
    if (argc < 2 || !gen_profile_parse(argv[1], &profile))
        return 2;
    enum otlp_signal signal = profile == GEN_LOGS      ? SIGNAL_LOGS
                              : profile == GEN_METRICS ? SIGNAL_METRICS
                                                       : SIGNAL_TRACES;
    int64_t now_ns = env_wall_ns(env_real());
    for (uint64_t i = 0; i < BODIES; i++) {
        gen_body(profile, 42, i, ITEMS, now_ns, &bodies[i]);
        bytes += bodies[i].length;
    }
    if (argc == 4) {
        write_bodies(argv[3], bodies);
        return 0;
    }
    otlp_decoder_init(&decoder, 7, 1 << 20, (size_t)1 << 30);
    for (int round = 0; round < ROUNDS; round++) {
        int64_t began_ns = env_mono_ns(env_real());
        for (int i = 0; i < BODIES; i++) {
            if (otlp_decode(&decoder, signal, span_of(bodies[i].data, bodies[i].length),
                            now_ns / 1000, &err) != STATUS_OK) {
                fprintf(stderr, "%s\n", err.message);
                return 1;
            }
            for (int t = 0; t < OTLP_TABLE_COUNT && i % 8 == 7; t++) {
                if (decoder.batches[t])
                    otlp_batch_clear(decoder.batches[t]);
            }
        }
        double seconds = (double)(env_mono_ns(env_real()) - began_ns) / 1e9;
        best = seconds < best ? seconds : best;
    }
    printf("{\"profile\":\"%s\",\"mb_a_second\":%.1f,\"items_a_second\":%.0f,\"bytes_an_item\":%."
           "1f}\n",
           argv[1], (double)bytes / best / 1e6, (double)BODIES * ITEMS / best,
           (double)bytes / BODIES / ITEMS);
    otlp_decoder_deinit(&decoder);
    for (int i = 0; i < BODIES; i++)
        buf_deinit(&bodies[i]);
    return 0;
}
