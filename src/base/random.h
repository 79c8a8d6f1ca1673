/* SPDX-License-Identifier: Apache-2.0
 *
 * A seeded generator (xoshiro256**, Blackman and Vigna 2018) for simulation, load generation and
 * jitter; never for identities, which come from env_random. Owned by one thread.
 */
#ifndef SLUICE_BASE_RANDOM_H
#define SLUICE_BASE_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct random {
    uint64_t state[4];
};

void random_init(struct random *random, uint64_t seed);
uint64_t random_next(struct random *random);
uint64_t random_below(struct random *random, uint64_t bound);           /* [0, bound), bound > 0 */
bool random_chance(struct random *random, uint64_t count, uint64_t of); /* count in `of` */
struct random random_fork(struct random *random, uint64_t stream);      /* own stream for a part */

#endif
