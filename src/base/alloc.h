/* SPDX-License-Identifier: Apache-2.0
 *
 * All heap memory. Sizes that come from outside are checked by the callers against their limits;
 * what is asked for here is owed by our own bounded structures. Running out is answered with NULL,
 * and tests make the nth allocation fail through alloc_fail_after. Any thread.
 */
#ifndef SLUICE_BASE_ALLOC_H
#define SLUICE_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *mem_alloc(size_t bytes) __attribute__((malloc));                    /* NULL: out of memory */
void *mem_alloc_zero(size_t count, size_t bytes) __attribute__((malloc)); /* checked product */
void *mem_alloc_aligned(size_t alignment, size_t bytes) __attribute__((malloc));
void *mem_resize(void *memory, size_t bytes); /* `memory` stays valid where NULL is returned */
void mem_free(void *memory);                  /* takes NULL, and every pointer from above */
char *mem_copy_text(const char *text);        /* returns owned */
void *mem_copy(const void *data, size_t bytes);

/* The `n`th allocation from now (0 = the next) fails, once; a negative `n` turns it off. */
void alloc_fail_after(int64_t n);
bool alloc_fail_is_due(void); /* the one that was asked for has not come yet */

#define SIZE_MUL(a, b, out) (!__builtin_mul_overflow((a), (b), (out)))
#define SIZE_ADD(a, b, out) (!__builtin_add_overflow((a), (b), (out)))

#endif
