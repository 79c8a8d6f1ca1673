/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the C Data Interface share: the memory behind exported structs.
 *
 * A tree of exported structs has one memory, which each of them holds: children that were moved out
 * outlive their parents, on any thread. The last release frees it.
 */
#ifndef SLUICE_FORMAT_ARROW_C_INTERNAL_H
#define SLUICE_FORMAT_ARROW_C_INTERNAL_H

#include <stdatomic.h>

#include "format/arrow/arrow_internal.h"

struct c_memory {
    atomic_size_t holders;
    struct arena structs; /* those below the root, names, formats */
    struct arena buffers; /* the batch's */
};

struct c_memory *c_memory_create(void); /* no holders yet; NULL: no memory */
void c_memory_destroy(struct c_memory *memory);
void c_memory_release(struct c_memory *memory); /* by a holder */
enum status c_no_memory(struct error *err);

/* `count` zeroed structs of `bytes` and an array of their addresses; false: no memory. */
bool c_memory_children(struct c_memory *memory, size_t count, size_t bytes, void *out_children);

#endif
