/* SPDX-License-Identifier: Apache-2.0
 *
 * Seeds, replays and the report.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sim/sim_seeds.h"

static void usage(FILE *to, const char *name)
{
    fprintf(to,
            "usage: %s [--seed N | --seeds FIRST COUNT]\n"
            "\n"
            "  --seed N             replays one world and says what happened in it\n"
            "  --seeds FIRST COUNT  runs these (default 1 200)\n"
            "\n"
            "environment:\n"
            "  SIM_SHARE=N          runs COUNT / N seeds, from FIRST on, for builds that are slow; "
            "what\n"
            "                       so few of them never reached is reported, and fails nothing\n",
            name);
}

/* 1: all of them. 0: not a number. */
static uint64_t share_of_seeds(void)
{
    uint64_t share = 1;
    const char *text = getenv("SIM_SHARE");
    if (text && text[0] && !parse_u64(text, strlen(text), &share))
        return 0;
    return share;
}

static int report(const struct sim_program *program, bool is_share)
{
    bool is_ok = true;
    program->sum_up();
    printf("1..%zu\n", program->event_count + 1);
    printf("ok 1 - every seed kept every promise\n");
    for (size_t i = 0; i < program->event_count; i++) {
        uint64_t count = *program->events[i].count;
        is_ok &= count > 0 || is_share;
        printf("%sok %zu - %s: %llu%s\n", count > 0 || is_share ? "" : "not ", i + 2,
               program->events[i].name, U(count),
               count == 0 && is_share ? " (a share of the seeds)" : "");
    }
    return is_ok ? 0 : 1;
}

static bool run(const struct sim_program *program, uint64_t seed, bool is_one, bool is_replayed)
{
    uint64_t trace = program->run(seed, is_one);
    if (!is_replayed || program->run(seed, false) == trace)
        return true;
    printf("not ok - seed %llu does not replay\n", U(seed));
    return false;
}

int sim_program_main(const struct sim_program *program, int argc, char **argv)
{
    uint64_t first = 1, count = 200, share = share_of_seeds();
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage(stdout, program->name);
        return 0;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 3 && strcmp(argv[1], "--seed") == 0 && parse_u64(argv[2], strlen(argv[2]), &first))
        return run(program, first, true, true) ? 0 : 1;
    bool is_range = argc == 4 && strcmp(argv[1], "--seeds") == 0 &&
                    parse_u64(argv[2], strlen(argv[2]), &first) &&
                    parse_u64(argv[3], strlen(argv[3]), &count);
    if (share == 0 || (argc != 1 && !is_range)) {
        usage(stderr, program->name);
        return 2;
    }
    count = (count + share - 1) / share;
    for (uint64_t seed = first; seed < first + count; seed++) {
        bool is_replayed =
            seed < first + 3 || (program->replayed_every && seed % program->replayed_every == 1);
        if (!run(program, seed, false, is_replayed))
            return 1;
    }
    return report(program, share > 1);
}

void sim_counts_add(struct sim_counts *to, struct sim_counts from)
{
    uint64_t *a = (uint64_t *)(void *)to;
    const uint64_t *b = (const uint64_t *)(const void *)&from;
    for (size_t i = 0; i < sizeof from / sizeof *a; i++)
        a[i] += b[i];
}
