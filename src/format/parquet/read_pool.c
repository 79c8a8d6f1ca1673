/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that a reader uses again. Fresh pages cost as much as decoding into them, so what a batch
 * was made of comes back when the batch is released, for the row groups to come.
 *
 * One thread at a time takes blocks; any thread may bring them back, onto a list that only grows
 * until a taker takes the whole of it. The pool lives until it is destroyed, its readers are gone
 * and the last block is back; from when it is destroyed on, what comes back is freed.
 */
#include <stdatomic.h>

#include "format/parquet/reader_internal.h"

/* Sizes are in classes, eight between one power of two and the next. */
enum {
    BLOCK_SHIFT_MIN = 12,
    BLOCK_SHIFT_MAX = 40,
    BLOCK_BYTES_MIN = 1 << BLOCK_SHIFT_MIN,
    CLASS_COUNT = (BLOCK_SHIFT_MAX - BLOCK_SHIFT_MIN) * 8,
    CLASSES_ABOVE = 8, /* a block may be twice as large as it need be */
};

/* Lies at the start of memory that nobody uses. */
struct pool_block {
    struct pool_block *next;
    size_t bytes;
};

struct parquet_memory {
    _Atomic size_t owner_count; /* who made it, every reader, and every block that is lent */
    _Atomic(struct pool_block *) returned;
    _Atomic size_t kept_bytes;
    atomic_bool is_closed;
    size_t kept_bytes_max;
    struct pool_block *kept[CLASS_COUNT]; /* of who takes; each at least as large as its class */
};

struct parquet_memory *parquet_memory_create(size_t bytes_max)
{
    struct parquet_memory *pool = mem_alloc_zero(1, sizeof *pool);
    if (!pool)
        return NULL;
    atomic_init(&pool->owner_count, 1);
    pool->kept_bytes_max = bytes_max;
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

static void free_kept(struct parquet_memory *pool)
{
    for (size_t i = 0; i < CLASS_COUNT; i++) {
        free_blocks(pool->kept[i]);
        pool->kept[i] = NULL;
    }
}

void pool_share(struct parquet_memory *pool)
{
    atomic_fetch_add(&pool->owner_count, 1);
}

void pool_leave(struct parquet_memory *pool)
{
    if (!pool || atomic_fetch_sub(&pool->owner_count, 1) > 1)
        return;
    free_kept(pool);
    free_blocks(atomic_load(&pool->returned));
    mem_free(pool);
}

void parquet_memory_destroy(struct parquet_memory *pool)
{
    if (!pool)
        return;
    atomic_store(&pool->is_closed, true);
    free_kept(pool);
    free_blocks(atomic_exchange(&pool->returned, NULL));
    pool_leave(pool);
}

/* ---- taking ---- */

/* To an eighth of the power of two below, so that what is nearly alike is alike. */
static size_t round_up(size_t bytes)
{
    size_t step = (size_t)1 << (63 - __builtin_clzll(bytes | 8) - 3);
    return (bytes + step - 1) & ~(step - 1);
}

/* The class that `bytes` reach, of BLOCK_BYTES_MIN at least. */
static size_t class_of(size_t bytes)
{
    unsigned shift = (unsigned)(63 - __builtin_clzll(bytes));
    size_t class = (shift - BLOCK_SHIFT_MIN) * 8 + (bytes >> (shift - 3) & 7);
    return size_min(class, CLASS_COUNT - 1);
}

static void collect_returned(struct parquet_memory *pool)
{
    struct pool_block *block = atomic_exchange(&pool->returned, NULL);
    while (block) {
        struct pool_block *next = block->next, **kept = &pool->kept[class_of(block->bytes)];
        block->next = *kept;
        *kept = block;
        block = next;
    }
}

/* A block from `bytes`, which is a class, to `bytes_max`; of the smallest class that has one. */
static struct pool_block *take_block(struct parquet_memory *pool, size_t bytes, size_t bytes_max)
{
    size_t first = class_of(bytes);
    if (atomic_load_explicit(&pool->returned, memory_order_relaxed))
        collect_returned(pool);
    for (size_t i = first; i < CLASS_COUNT && i <= first + CLASSES_ABOVE; i++) {
        struct pool_block *block = pool->kept[i];
        if (!block || block->bytes > bytes_max || block->bytes < bytes)
            continue;
        pool->kept[i] = block->next;
        atomic_fetch_sub(&pool->kept_bytes, block->bytes);
        return block;
    }
    return NULL;
}

bool pool_reserve(struct parquet_memory *pool, struct buf *buf, size_t bytes)
{
    size_t limit = buf->bytes_max ? buf->bytes_max : SIZE_MAX / 4, needed;
    if (buf->capacity - buf->length >= bytes)
        return !buf->failed;
    if (!pool || buf->failed || !SIZE_ADD(buf->length, bytes, &needed) ||
        needed < BLOCK_BYTES_MIN || needed > limit)
        return buf_reserve(buf, bytes);
    size_t rounded = round_up(size_max(needed, size_min(buf->capacity + buf->capacity / 2, limit)));
    struct pool_block *block = take_block(pool, rounded, limit);
    if (!block) /* buf_reserve would take no more than is asked for */
        return buf_reserve(buf, size_min(rounded, limit) - buf->length);
    struct buf old = *buf;
    buf->capacity = block->bytes;
    buf->data = (uint8_t *)block;
    if (old.length)
        memcpy(buf->data, old.data, old.length);
    pool_give(pool, &old);
    return true;
}

uint8_t *pool_extend(struct parquet_memory *pool, struct buf *buf, size_t bytes)
{
    return pool_reserve(pool, buf, bytes) ? buf_extend(buf, bytes) : NULL;
}

/* ---- bringing back ---- */

static void give(struct parquet_memory *pool, void *memory, size_t bytes)
{
    if (bytes < BLOCK_BYTES_MIN || atomic_load(&pool->is_closed)) {
        mem_free(memory);
        return;
    }
    if (atomic_fetch_add(&pool->kept_bytes, bytes) >
        pool->kept_bytes_max - size_min(bytes, pool->kept_bytes_max)) {
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

void pool_give(struct parquet_memory *pool, struct buf *buf)
{
    if (!pool || !buf->data) {
        buf_deinit(buf);
        return;
    }
    give(pool, buf->data, buf->capacity);
    *buf = (struct buf){0};
}

struct loan {
    struct parquet_memory *pool;
    void *memory;
    size_t bytes;
};

static void end_loan(void *context)
{
    const struct loan *loan = context;
    give(loan->pool, loan->memory, loan->bytes);
    pool_leave(loan->pool);
}

bool pool_lend(struct parquet_memory *pool, struct buf *buf, struct arena *arena)
{
    struct loan *loan = arena_alloc(arena, sizeof *loan);
    if (!loan || !arena_adopt_through(arena, end_loan, loan, buf->capacity))
        return false;
    *loan = (struct loan){.pool = pool, .memory = buf->data, .bytes = buf->capacity};
    pool_share(pool);
    *buf = (struct buf){0};
    return true;
}
