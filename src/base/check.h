/* SPDX-License-Identifier: Apache-2.0
 *
 * CHECK guards our own invariants, in release builds too: it prints the place and aborts. Bytes
 * that come from disk, peers or users get a status, never a CHECK.
 */
#ifndef SLUICE_BASE_CHECK_H
#define SLUICE_BASE_CHECK_H

#include <stddef.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (__builtin_expect(!(condition), 0))                                                     \
            check_failed(#condition, __FILE__, __LINE__);                                          \
    } while (0)

_Noreturn void check_failed(const char *condition, const char *file, int line);

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define CONTAINER_OF(pointer, type, member)                                                        \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))
#define UNUSED(x) ((void)(x))

static inline size_t size_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t size_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

#endif
