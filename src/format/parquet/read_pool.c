/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that a reader uses again. Fresh pages cost as much as decoding into them, so what a batch
 * was made of comes back when the batch is released, for the row groups to come.
 *
 * The reader's thread alone takes blocks; any thread may bring them back, onto a list that only
 * grows until the reader's thread takes the whole of it. The pool lives until the reader is gone
 * and the last block is back; from when the reader is gone on, what comes back is freed.
 */
#include <stdatomic.h>

#include "format/parquet/reader_internal.h"

enum { BLOCK_BYTES_MIN = 4096, KEPT_BYTES_MAX = 256 << 20 };

/* Lies at the start of memory that nobody uses. */
struct pool_block {
    struct pool_block *next;
    size_t bytes;
};

struct block_pool {
    _Atomic size_t owner_count; /* the reader, and every block that is lent */
    _Atomic(struct pool_block *) returned;
    _Atomic size_t kept_bytes;
    atomic_bool is_closed;
    struct pool_block *kept; /* of the reader's thread */
};

struct block_pool *pool_create(void)
{
    struct block_pool *pool = mem_alloc_zero(1, sizeof *pool);
    if (pool)
        atomic_init(&pool->owner_count, 1);
    return pool;
}

static void free_blocks(struct pool_block *block)
{
    while (block) {
        struct pool_block *next = block->next;
        mem_free(block);
        block = next;
    }
}

static void drop_owner(struct block_pool *pool)
{
    if (atomic_fetch_sub(&pool->owner_count, 1) > 1)
        return;
    free_blocks(atomic_load(&pool->returned));
    mem_free(pool);
}

void pool_close(struct block_pool *pool)
{
    if (!pool)
        return;
    atomic_store(&pool->is_closed, true);
    free_blocks(pool->kept);
    free_blocks(atomic_exchange(&pool->returned, NULL));
    drop_owner(pool);
}

/* ---- taking ---- */

/* To an eighth of the power of two below, so that what is nearly alike is alike. */
static size_t round_up(size_t bytes)
{
    size_t step = (size_t)1 << (63 - __builtin_clzll(bytes | 8) - 3);
    return (bytes + step - 1) & ~(step - 1);
}

static void collect_returned(struct block_pool *pool)
{
    struct pool_block **end = &pool->kept;
    struct pool_block *returned = atomic_exchange(&pool->returned, NULL);
    while (*end)
        end = &(*end)->next;
    *end = returned;
}

/* The smallest block from `bytes` to `bytes_max`. */
static struct pool_block *take_block(struct block_pool *pool, size_t bytes, size_t bytes_max)
{
    struct pool_block **best = NULL;
    if (atomic_load_explicit(&pool->returned, memory_order_relaxed))
        collect_returned(pool);
    for (struct pool_block **at = &pool->kept; *at; at = &(*at)->next)
        if ((*at)->bytes >= bytes && (*at)->bytes <= bytes_max &&
            (!best || (*at)->bytes < (*best)->bytes))
            best = at;
    if (!best)
        return NULL;
    struct pool_block *block = *best;
    *best = block->next;
    atomic_fetch_sub(&pool->kept_bytes, block->bytes);
    return block;
}

bool pool_reserve(struct block_pool *pool, struct buf *buf, size_t bytes)
{
    size_t limit = buf->bytes_max ? buf->bytes_max : SIZE_MAX / 2;
    if (!pool || buf->data || bytes < BLOCK_BYTES_MIN || bytes > limit || bytes > SIZE_MAX / 4)
        return buf_reserve(buf, bytes);
    size_t rounded = size_min(round_up(bytes), limit);
    struct pool_block *block = take_block(pool, bytes, size_min(rounded + rounded / 4, limit));
    if (!block) /* buf_reserve would take no more than is asked for */
        return buf_reserve(buf, rounded);
    buf->capacity = block->bytes;
    buf->data = (uint8_t *)block;
    return true;
}

/* ---- bringing back ---- */

static void give(struct block_pool *pool, void *memory, size_t bytes)
{
    if (bytes < BLOCK_BYTES_MIN || atomic_load(&pool->is_closed)) {
        mem_free(memory);
        return;
    }
    if (atomic_fetch_add(&pool->kept_bytes, bytes) >
        KEPT_BYTES_MAX - size_min(bytes, KEPT_BYTES_MAX)) {
        atomic_fetch_sub(&pool->kept_bytes, bytes);
        mem_free(memory);
        return;
    }
    struct pool_block *block = memory;
    block->bytes = bytes;
    block->next = atomic_load(&pool->returned);
    while (!atomic_compare_exchange_weak(&pool->returned, &block->next, block))
        continue;
}

void pool_give(struct block_pool *pool, struct buf *buf)
{
    if (!pool || !buf->data) {
        buf_deinit(buf);
        return;
    }
    give(pool, buf->data, buf->capacity);
    *buf = (struct buf){0};
}

struct loan {
    struct block_pool *pool;
    void *memory;
    size_t bytes;
};

static void end_loan(void *context)
{
    const struct loan *loan = context;
    give(loan->pool, loan->memory, loan->bytes);
    drop_owner(loan->pool);
}

bool pool_lend(struct block_pool *pool, struct buf *buf, struct arena *arena)
{
    struct loan *loan = arena_alloc(arena, sizeof *loan);
    if (!loan || !arena_adopt_through(arena, end_loan, loan, buf->capacity))
        return false;
    *loan = (struct loan){.pool = pool, .memory = buf->data, .bytes = buf->capacity};
    atomic_fetch_add(&pool->owner_count, 1);
    *buf = (struct buf){0};
    return true;
}
