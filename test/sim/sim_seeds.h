/* SPDX-License-Identifier: Apache-2.0
 *
 * What programs have in common that run one simulated world a seed:
 *
 *   PROGRAM [--seeds FIRST COUNT]   (default 1 200)
 *   PROGRAM --seed N                replays one, with what happened
 *   SIM_SHARE=N                     runs one of N of the seeds (slow builds); what must happen at
 *                                   least once is then reported, and not demanded
 *
 * A broken promise ends the program, with the seed. TAP: one line for the promises, and one for
 * each event that must have been met.
 */
#ifndef SLUICE_TEST_SIM_SEEDS_H
#define SLUICE_TEST_SIM_SEEDS_H

#include "sim/sim.h"

#define U(x) ((unsigned long long)(x))

struct sim_event {
    const char *name;
    const uint64_t *count; /* over all seeds */
};

struct sim_program {
    const char *name;
    uint64_t (*run)(uint64_t seed, bool is_verbose); /* returns the trace: equal in a replay */
    void (*sum_up)(void);                            /* prints a line that begins with # */
    const struct sim_event *events;
    size_t event_count;
    uint64_t replayed_every; /* besides the first three; 0: those alone */
};

int sim_program_main(const struct sim_program *program, int argc, char **argv);
void sim_counts_add(struct sim_counts *to, struct sim_counts from);

#endif
