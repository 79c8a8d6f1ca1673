/* SPDX-License-Identifier: Apache-2.0
 *
 * What a mirror may copy: synced bytes alone (L23), of files that stay as they are while one is
 * open (L17). A sealed segment that is not committed is never removed; the pin is for those that
 * are.
 */
#include "log/wal/wal_internal.h"

struct wal_segment_file {
    struct wal *wal;
    struct segment *segment;
    struct env_file *file;
};

/* Lock held. */
static bool extent_of(const struct wal *wal, struct segment *segment, struct wal_extent *out_extent)
{
    struct wal_extent extent = {.segment_id = segment->identity.id,
                                .bytes = segment->file_bytes,
                                .stored = segment->file_bytes,
                                .unit = UINT64_MAX,
                                .is_sealed = true,
                                .is_committed = segment->place == SEGMENT_COMMITTED};
    if (segment_is_open_ended(wal, segment)) { /* as it was when all of it counted */
        extent.bytes = segment->clean_bytes ? segment->clean_bytes : WAL_BLOCK;
        extent.unit = segment->clean_unit;
        extent.is_sealed = extent.is_committed = false;
        *out_extent = extent;
        return true;
    }
    if (segment->place == SEGMENT_ACTIVE) {
        if (segment != wal->writer.segment) /* it is being made */
            return false;
        extent.bytes = extent.stored = wal->synced_bytes;
        extent.unit = wal->synced_unit;
        extent.is_sealed = false;
        segment->clean_bytes = extent.bytes;
        segment->clean_unit = extent.unit;
    }
    *out_extent = extent;
    return true;
}

/* What a segment has that is not to be copied yet is above all ends. */
static void ends_limit(const struct segment *segment, uint64_t *inout_seqs)
{
    for (size_t i = 0; i < segment->run_count; i++) {
        const struct run *run = segment->runs[i];
        if (run->count > 0 && inout_seqs[run->group] >= run->first_seq)
            inout_seqs[run->group] = run->first_seq - 1;
    }
}

void wal_extents(struct wal *wal, uint64_t from_id, struct wal_extent *extents, size_t capacity,
                 size_t *out_count, uint64_t *synced_seqs)
{
    size_t count = 0;
    env_lock(wal->lock);
    for (uint32_t g = 0; synced_seqs && g < wal->group_count; g++)
        synced_seqs[g] = wal->groups[g].committed_seq;
    size_t at = wal->segment_count;
    while (at > 0 && wal->segments[at - 1]->identity.id >= from_id)
        at--;
    for (; at < wal->segment_count; at++) {
        struct wal_extent extent;
        if (!extent_of(wal, wal->segments[at], &extent))
            continue;
        if (synced_seqs && segment_is_open_ended(wal, wal->segments[at]))
            ends_limit(wal->segments[at], synced_seqs);
        if (count < capacity)
            extents[count] = extent;
        count++;
    }
    env_unlock(wal->lock);
    *out_count = count;
}

uint64_t wal_segment_newest(struct wal *wal, uint64_t *out_first_of_start)
{
    env_lock(wal->lock);
    uint64_t id = wal->segment_next - 1;
    *out_first_of_start = wal->first_of_start;
    env_unlock(wal->lock);
    return id;
}

void wal_segment_ends(struct wal *wal, uint64_t segment_id, uint64_t *inout_seqs)
{
    env_lock(wal->lock);
    const struct segment *segment = index_segment_find(wal, segment_id);
    for (size_t i = 0; segment && i < segment->run_count; i++) {
        const struct run *run = segment->runs[i];
        uint64_t last = run->count ? run_end(run) - 1 : 0;
        if (last > inout_seqs[run->group])
            inout_seqs[run->group] = last;
    }
    bool is_less = !segment || segment->is_compacted;
    for (uint32_t g = 0; is_less && g < wal->group_count; g++)
        if (wal->groups[g].reclaimed_seq > inout_seqs[g])
            inout_seqs[g] = wal->groups[g].reclaimed_seq;
    env_unlock(wal->lock);
}

enum status wal_segment_open(struct wal *wal, uint64_t segment_id,
                             struct wal_segment_file **out_file, struct error *err)
{
    struct wal_segment_file *file = mem_alloc_zero(1, sizeof *file);
    if (!file)
        return error_set(err, STATUS_NO_MEMORY, "log: out of memory");
    file->wal = wal;
    env_lock(wal->lock);
    struct segment *segment = index_segment_find(wal, segment_id);
    if (segment && !segment->is_going) {
        file->segment = segment;
        segment->pins++;
        segment->files++;
    }
    env_unlock(wal->lock);
    enum status status = file->segment
                             ? segment_open_for_reading(wal, segment, &file->file, err)
                             : error_set(err, STATUS_RECLAIMED, "log: segment %llu is gone",
                                         (unsigned long long)segment_id);
    if (status == STATUS_OK)
        *out_file = file;
    else
        wal_segment_close(file);
    return status;
}

enum status wal_segment_read(struct wal_segment_file *file, uint64_t offset, void *data,
                             size_t bytes, struct error *err)
{
    size_t got = 0;
    TRY(env_read(file->file, offset, data, bytes, &got, err));
    if (got < bytes)
        return error_set(err, STATUS_CORRUPT, "log: segment %llu ends at %llu",
                         (unsigned long long)file->segment->identity.id,
                         (unsigned long long)(offset + got));
    return STATUS_OK;
}

bool wal_segment_is_compacted(struct wal_segment_file *file, uint64_t *out_version)
{
    env_lock(file->wal->lock);
    bool is_compacted = file->segment->is_compacted; /* said before its file is another one */
    *out_version = file->segment->compacted_version;
    env_unlock(file->wal->lock);
    return is_compacted;
}

void wal_segment_close(struct wal_segment_file *file)
{
    if (!file)
        return;
    env_close(file->file);
    env_lock(file->wal->lock);
    if (file->segment) {
        file->segment->pins--;
        file->segment->files--;
    }
    env_unlock(file->wal->lock);
    mem_free(file);
}

uint64_t wal_state_version(struct wal *wal)
{
    env_lock(wal->lock);
    uint64_t version = wal->state_version;
    env_unlock(wal->lock);
    return version;
}
