/* SPDX-License-Identifier: Apache-2.0
 *
 * An arena hands out memory that is given back all at once: a request, a plan, a JSON tree owns
 * one. Blocks double up to 1 MiB; `bytes_max` bounds the whole (0 = no bound). Owned by one thread.
 */
#ifndef SLUICE_BASE_ARENA_H
#define SLUICE_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena_block;
struct arena_adopted;

struct arena {
    struct arena_block *head;
    unsigned char *at, *end; /* free part of the newest block */
    size_t bytes_total, bytes_max;
    struct arena_adopted *adopted;
};

void arena_init(struct arena *arena, size_t bytes_max); /* allocates nothing yet */
void arena_deinit(struct arena *arena);                 /* accepts a zeroed arena */
void arena_clear(struct arena *arena);                  /* keeps the newest block for reuse */

/* 16-byte aligned; NULL when the bound or memory is reached. */
void *arena_alloc(struct arena *arena, size_t bytes);
void *arena_alloc_zero(struct arena *arena, size_t count, size_t bytes);
/* Takes memory of mem_alloc to be freed with the rest; `bytes` count like others. False: it was not
 * taken. */
bool arena_adopt(struct arena *arena, void *memory, size_t bytes);
/* The same for memory that `release` gives back. */
bool arena_adopt_through(struct arena *arena, void (*release)(void *context), void *context,
                         size_t bytes);
/* Calls `release` before the rest is freed, the latest first; `context` may lie in the arena.
 * False: it will not be called. */
bool arena_defer(struct arena *arena, void (*release)(void *context), void *context);
char *arena_copy_text(struct arena *arena, const char *text, size_t length); /* NUL-terminated */
char *arena_format(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
