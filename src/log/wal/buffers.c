/* SPDX-License-Identifier: Apache-2.0
 *
 * Write buffers, kept for a while after the write: lanes read what was just written from here
 * instead of from the file (L38). Up to WAL_RECENT_BYTES of the newest synced units are held; a
 * reader keeps a reference and the bytes outlive their place in the list. Guarded by the engine's
 * lock, apart from the bytes themselves, which nobody changes once they are published.
 */
#include "log/wal/wal_internal.h"

enum { BUFFERS_KEPT_FREE = 4 };

struct unit_buffer *unit_buffer_take(struct wal *wal, size_t bytes)
{
    struct unit_buffer *buffer = NULL;
    env_lock(wal->lock);
    for (struct unit_buffer **at = &wal->free_buffers; *at; at = &(*at)->next) {
        /* One that is far too large is left for those who need it. */
        if ((*at)->capacity < bytes || (*at)->capacity / 8 > bytes)
            continue;
        buffer = *at;
        *at = buffer->next;
        break;
    }
    env_unlock(wal->lock);
    if (!buffer) {
        buffer = mem_alloc_zero(1, sizeof *buffer);
        if (!buffer)
            return NULL;
        buffer->capacity = (size_t)align_up(bytes + bytes / 4, 64 << 10);
        buffer->base = mem_alloc_aligned(WAL_BLOCK, buffer->capacity);
        if (!buffer->base) {
            mem_free(buffer);
            return NULL;
        }
    }
    buffer->data = buffer->base;
    buffer->length = bytes;
    buffer->references = 1;
    buffer->next = NULL;
    return buffer;
}

static void buffer_destroy(struct unit_buffer *buffer)
{
    mem_free(buffer->base);
    mem_free(buffer);
}

void unit_buffer_release(struct wal *wal, struct unit_buffer *buffer)
{
    if (--buffer->references > 0)
        return;
    size_t kept = 0;
    for (struct unit_buffer *free = wal->free_buffers; free; free = free->next)
        kept++;
    if (kept >= BUFFERS_KEPT_FREE) {
        /* The oldest free one goes; it has waited longest for its size to be asked for. */
        struct unit_buffer **last = &wal->free_buffers;
        while ((*last)->next)
            last = &(*last)->next;
        buffer_destroy(*last);
        *last = NULL;
    }
    buffer->next = wal->free_buffers;
    wal->free_buffers = buffer;
}

void unit_buffer_publish(struct wal *wal, struct unit_buffer *buffer)
{
    buffer->next = NULL;
    if (wal->recent_tail)
        wal->recent_tail->next = buffer;
    else
        wal->recent_head = buffer;
    wal->recent_tail = buffer;
    wal->recent_bytes += buffer->capacity;
    while (wal->recent_bytes > WAL_RECENT_BYTES) {
        struct unit_buffer *oldest = wal->recent_head;
        wal->recent_head = oldest->next;
        if (!wal->recent_head)
            wal->recent_tail = NULL;
        wal->recent_bytes -= oldest->capacity;
        unit_buffer_release(wal, oldest);
    }
}

struct unit_buffer *unit_buffer_find(struct wal *wal, uint64_t segment_id, uint64_t offset,
                                     uint64_t bytes)
{
    for (struct unit_buffer *buffer = wal->recent_head; buffer; buffer = buffer->next) {
        if (buffer->segment_id != segment_id || offset < buffer->offset ||
            offset + bytes > buffer->offset + buffer->length)
            continue;
        buffer->references++;
        return buffer;
    }
    return NULL;
}

void unit_buffers_deinit(struct wal *wal)
{
    struct unit_buffer *lists[] = {wal->recent_head, wal->free_buffers};
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        while (lists[i]) {
            struct unit_buffer *next = lists[i]->next;
            buffer_destroy(lists[i]);
            lists[i] = next;
        }
    }
    wal->recent_head = wal->recent_tail = wal->free_buffers = NULL;
}
