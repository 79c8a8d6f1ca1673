/* SPDX-License-Identifier: Apache-2.0
 *
 * base/alloc for simulated programs: it stands in front of libbase's. What a node's fibers allocate
 * is in a list of the node's and goes back when the node crashes, as a process's memory does; and
 * an allocation may fail as the seed decides.
 */
#include <stdlib.h>

#include "sim/sim_internal.h"

enum { MARK = 0x51a11c, HEADER_BYTES = 64 };

struct memory {
    struct memory *next, **back;
    struct sim_node *owner;
    void *raw;
    size_t bytes;
    unsigned mark;
};

_Static_assert(sizeof(struct memory) <= HEADER_BYTES, "header of an allocation");

static struct memory *memory_of(void *pointer)
{
    struct memory *memory = (struct memory *)(void *)((char *)pointer - HEADER_BYTES);
    CHECK(memory->mark == MARK);
    return memory;
}

static void *allocate(size_t alignment, size_t bytes)
{
    if (sim_current && sim_fault(sim_current, sim_current->faults.alloc_fails)) {
        sim_current->sim->counts.allocs_failed++;
        return NULL;
    }
    size_t lead = alignment > HEADER_BYTES ? alignment : HEADER_BYTES;
    char *raw = aligned_alloc(lead, (lead + bytes + lead - 1) / lead * lead);
    if (!raw)
        return NULL;
    struct memory *memory = (struct memory *)(void *)(raw + lead - HEADER_BYTES);
    *memory = (struct memory){.owner = sim_current, .raw = raw, .bytes = bytes, .mark = MARK};
    if (sim_current) {
        memory->next = sim_current->memory;
        memory->back = &sim_current->memory;
        if (memory->next)
            memory->next->back = &memory->next;
        sim_current->memory = memory;
    }
    return raw + lead;
}

void mem_free(void *pointer)
{
    if (!pointer)
        return;
    struct memory *memory = memory_of(pointer);
    if (memory->owner) {
        *memory->back = memory->next;
        if (memory->next)
            memory->next->back = memory->back;
    }
    memory->mark = 0;
    free(memory->raw);
}

void memory_drop(struct sim_node *node)
{
    while (node->memory) {
        struct memory *next = node->memory->next;
        node->memory->mark = 0;
        free(node->memory->raw);
        node->memory = next;
    }
}

void *mem_alloc(size_t bytes)
{
    return allocate(16, bytes);
}

void *mem_alloc_zero(size_t count, size_t bytes)
{
    size_t total;
    if (!SIZE_MUL(count, bytes, &total))
        return NULL;
    void *memory = allocate(16, total);
    if (memory)
        memset(memory, 0, total);
    return memory;
}

void *mem_alloc_aligned(size_t alignment, size_t bytes)
{
    return allocate(alignment, bytes);
}

void *mem_resize(void *pointer, size_t bytes)
{
    void *wider = allocate(16, bytes);
    if (!wider || !pointer)
        return wider;
    size_t before = memory_of(pointer)->bytes;
    memcpy(wider, pointer, before < bytes ? before : bytes);
    mem_free(pointer);
    return wider;
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

void alloc_fail_after(int64_t n)
{
    UNUSED(n); /* the seed decides: sim_faults.alloc_fails */
}

bool alloc_fail_is_due(void)
{
    return false;
}
