/* SPDX-License-Identifier: Apache-2.0
 *
 * xoshiro256** seeded through splitmix64.
 */
#include "base/base.h"

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

void random_init(struct random *random, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        random->state[i] = splitmix(&seed);
}

uint64_t random_next(struct random *random)
{
    uint64_t *s = random->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t random_below(struct random *random, uint64_t bound)
{
    CHECK(bound > 0);
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)(((wide)random_next(random) * bound) >> 64);
}

bool random_chance(struct random *random, uint64_t count, uint64_t of)
{
    return random_below(random, of) < count;
}

struct random random_fork(struct random *random, uint64_t stream)
{
    struct random fork;
    random_init(&fork, random_next(random) ^ (stream * 0x9e3779b97f4a7c15u));
    return fork;
}
