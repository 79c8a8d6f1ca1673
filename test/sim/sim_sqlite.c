/* SPDX-License-Identifier: Apache-2.0
 *
 * SQLite's allocator as a list of blocks. One thread, one simulated process at a time; what SQLite
 * allocates while it initialises itself is kept for ever.
 */
#include "sim/sim_sqlite.h"

#include <sqlite3.h>
#include <stdlib.h>

#include "sim/sim_internal.h"

enum { FAULTS_SHARE = 32 }; /* SQLite allocates that much more often than the rest */

struct block {
    struct block *next, **back;
    size_t bytes, unused; /* keeps what follows on 16 bytes */
};

static struct block *blocks;

static struct block *block_of(void *pointer)
{
    return (struct block *)pointer - 1;
}

static void *block_alloc(int bytes)
{
    if (sim_current && sim_fault(sim_current, sim_current->faults.alloc_fails / FAULTS_SHARE)) {
        sim_current->sim->counts.allocs_failed++;
        return NULL;
    }
    struct block *block = sim_malloc(sizeof *block + (size_t)bytes);
    *block = (struct block){.next = blocks, .back = &blocks, .bytes = (size_t)bytes};
    if (blocks)
        blocks->back = &block->next;
    blocks = block;
    return block + 1;
}

static void block_free(void *pointer)
{
    struct block *block = block_of(pointer);
    *block->back = block->next;
    if (block->next)
        block->next->back = block->back;
    free(block);
}

static int block_size(void *pointer)
{
    return pointer ? (int)block_of(pointer)->bytes : 0;
}

static void *block_resize(void *pointer, int bytes)
{
    void *wider = block_alloc(bytes);
    if (!wider)
        return NULL;
    size_t before = block_of(pointer)->bytes;
    memcpy(wider, pointer, before < (size_t)bytes ? before : (size_t)bytes);
    block_free(pointer);
    return wider;
}

static int block_round(int bytes)
{
    return (bytes + 7) & ~7;
}

static int block_init(void *unused)
{
    UNUSED(unused);
    return SQLITE_OK;
}

static void block_shutdown(void *unused)
{
    UNUSED(unused);
}

void sim_sqlite_init(void)
{
    static const sqlite3_mem_methods methods = {
        .xMalloc = block_alloc,
        .xFree = block_free,
        .xRealloc = block_resize,
        .xSize = block_size,
        .xRoundup = block_round,
        .xInit = block_init,
        .xShutdown = block_shutdown,
    };
    CHECK(sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) == SQLITE_OK);
    CHECK(sqlite3_initialize() == SQLITE_OK);
    blocks = NULL; /* those are the library's own */
}

void sim_sqlite_seed(uint64_t seed)
{
    int number = (int)(seed % 0x7fffffff) + 1;
    sqlite3_test_control(SQLITE_TESTCTRL_PRNG_SEED, number, (sqlite3 *)NULL);
}

size_t sim_sqlite_drop(void)
{
    size_t count = 0;
    for (sqlite3_vfs *vfs = sqlite3_vfs_find(NULL), *next; vfs; vfs = next) {
        next = vfs->pNext;
        if (strncmp(vfs->zName, "sluice-", 7) == 0)
            sqlite3_vfs_unregister(vfs);
    }
    for (; blocks; count++)
        block_free(blocks + 1);
    return count;
}
