/* SPDX-License-Identifier: Apache-2.0
 *
 * Heap memory with one hook for tests.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/base.h"

static _Atomic int64_t fail_countdown = -1;

static bool must_fail(void)
{
    if (__builtin_expect(atomic_load_explicit(&fail_countdown, memory_order_relaxed) < 0, 1))
        return false;
    return atomic_fetch_sub(&fail_countdown, 1) == 0;
}

void alloc_fail_after(int64_t n)
{
    atomic_store(&fail_countdown, n);
}

bool alloc_fail_is_due(void)
{
    return atomic_load(&fail_countdown) >= 0;
}

void *mem_alloc(size_t bytes)
{
    return must_fail() ? NULL : malloc(bytes ? bytes : 1);
}

void *mem_alloc_zero(size_t count, size_t bytes)
{
    return must_fail() ? NULL : calloc(count ? count : 1, bytes ? bytes : 1);
}

void *mem_alloc_aligned(size_t alignment, size_t bytes)
{
    size_t rounded;
    if (must_fail() || !SIZE_ADD(bytes, alignment - 1, &rounded))
        return NULL;
    rounded -= rounded % alignment;
    return aligned_alloc(alignment, rounded ? rounded : alignment);
}

void *mem_resize(void *memory, size_t bytes)
{
    return must_fail() ? NULL : realloc(memory, bytes ? bytes : 1);
}

void mem_free(void *memory)
{
    free(memory);
}

void *mem_copy(const void *data, size_t bytes)
{
    void *copy = mem_alloc(bytes);
    if (copy && bytes)
        memcpy(copy, data, bytes);
    return copy;
}

char *mem_copy_text(const char *text)
{
    return mem_copy(text, strlen(text) + 1);
}
