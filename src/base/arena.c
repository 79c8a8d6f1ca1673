/* SPDX-License-Identifier: Apache-2.0
 *
 * Bump allocation in a chain of blocks, newest first.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/base.h"

enum { ARENA_ALIGN = 16, ARENA_BLOCK_MIN = 4096, ARENA_BLOCK_MAX = 1 << 20 };

struct arena_block {
    struct arena_block *next;
    size_t bytes; /* of data */
    _Alignas(ARENA_ALIGN) unsigned char data[];
};

void arena_init(struct arena *arena, size_t bytes_max)
{
    *arena = (struct arena){.bytes_max = bytes_max};
}

struct arena_adopted { /* lies in the arena itself */
    struct arena_adopted *next;
    void (*release)(void *context);
    void *context;
};

static void free_chain(struct arena_block *block)
{
    while (block) {
        struct arena_block *next = block->next;
        mem_free(block);
        block = next;
    }
}

static void free_adopted(struct arena *arena)
{
    for (; arena->adopted; arena->adopted = arena->adopted->next)
        arena->adopted->release(arena->adopted->context);
}

void arena_deinit(struct arena *arena)
{
    free_adopted(arena);
    free_chain(arena->head);
    *arena = (struct arena){0};
}

void arena_clear(struct arena *arena)
{
    struct arena_block *block = arena->head;
    free_adopted(arena);
    if (!block)
        return;
    free_chain(block->next);
    block->next = NULL;
    arena->at = block->data;
    arena->end = block->data + block->bytes;
    arena->bytes_total = block->bytes;
}

static void *alloc_slow(struct arena *arena, size_t bytes)
{
    size_t block_bytes =
        arena->head ? size_min(arena->head->bytes * 2, ARENA_BLOCK_MAX) : ARENA_BLOCK_MIN;
    block_bytes = size_max(block_bytes, bytes);
    if (arena->bytes_max && arena->bytes_total + block_bytes > arena->bytes_max) {
        block_bytes = bytes;
        if (arena->bytes_total + block_bytes > arena->bytes_max)
            return NULL;
    }
    struct arena_block *block = mem_alloc(sizeof *block + block_bytes);
    if (!block)
        return NULL;
    block->bytes = block_bytes;
    arena->bytes_total += block_bytes;
    block->next = arena->head;
    arena->head = block;
    arena->at = block->data + bytes;
    arena->end = block->data + block_bytes;
    return block->data;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 4)
        return NULL;
    size_t rounded = (bytes + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    if ((size_t)(arena->end - arena->at) < rounded || !arena->at)
        return alloc_slow(arena, rounded);
    void *memory = arena->at;
    arena->at += rounded;
    return memory;
}

void *arena_alloc_zero(struct arena *arena, size_t count, size_t bytes)
{
    size_t total;
    if (!SIZE_MUL(count, bytes, &total))
        return NULL;
    void *memory = arena_alloc(arena, total);
    if (memory && total)
        memset(memory, 0, total);
    return memory;
}

bool arena_defer(struct arena *arena, void (*release)(void *context), void *context)
{
    struct arena_adopted *adopted = arena_alloc(arena, sizeof *adopted);
    if (!adopted)
        return false;
    *adopted =
        (struct arena_adopted){.next = arena->adopted, .release = release, .context = context};
    arena->adopted = adopted;
    return true;
}

bool arena_adopt_through(struct arena *arena, void (*release)(void *context), void *context,
                         size_t bytes)
{
    if (arena->bytes_max &&
        bytes > arena->bytes_max - size_min(arena->bytes_total, arena->bytes_max))
        return false;
    if (!arena_defer(arena, release, context))
        return false;
    arena->bytes_total += bytes;
    return true;
}

bool arena_adopt(struct arena *arena, void *memory, size_t bytes)
{
    return arena_adopt_through(arena, mem_free, memory, bytes);
}

char *arena_copy_text(struct arena *arena, const char *text, size_t length)
{
    char *copy = arena_alloc(arena, length + 1);
    if (copy) {
        if (length)
            memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

char *arena_format(struct arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        return NULL;
    char *text = arena_alloc(arena, (size_t)length + 1);
    if (!text)
        return NULL;
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}
