/* SPDX-License-Identifier: Apache-2.0
 *
 * SQLite in the simulated world: its memory goes with the process that allocated it, its random
 * numbers come from the seed. Without this a crash leaves connections behind for good, and journals
 * hold bytes that no replay has.
 */
#ifndef SLUICE_TEST_SIM_SQLITE_H
#define SLUICE_TEST_SIM_SQLITE_H

#include <stddef.h>
#include <stdint.h>

void sim_sqlite_init(void); /* once, before anything else touches SQLite */
void sim_sqlite_seed(uint64_t seed);
/* The process is gone: so is what it allocated, and its VFSs. Returns how many blocks there were;
 * after an orderly end that is a leak. */
size_t sim_sqlite_drop(void);

#endif
