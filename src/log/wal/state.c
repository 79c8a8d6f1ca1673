/* SPDX-License-Identifier: Apache-2.0
 *
 * state/: what must outlive reclaimed segments (L15) — identities, positions, tables,
 * acknowledgements, reclaim floors, voided ranges, producers, leases. A checkpoint file is one base
 * record, replaced as a whole
 * ("N.state.new", synced, renamed, directory synced), and small records appended and synced one by
 * one. The two newest checkpoints are kept, and a segment is reclaimed only once both hold its
 * state, so that one damaged file loses nothing. Layout: docs/format/checkpoint.md.
 *
 * Invariant: memory changes after the bytes are synced, never before. Runs under the state long
 * lock.
 */
#include "log/wal/state_internal.h"

static void begin_record(struct buf *out)
{
    uint8_t *header = buf_extend(out, STATE_HEADER_BYTES);
    if (header)
        memset(header, 0, STATE_HEADER_BYTES);
}

/* Fills the header in front of the body that was appended, and pads to a block. */
static void end_record(struct buf *out, uint64_t number, uint64_t index, enum record_kind kind)
{
    if (out->failed)
        return;
    size_t body = out->length - STATE_HEADER_BYTES;
    uint8_t *header = out->data;
    put_le32(header, STATE_MAGIC);
    put_le32(header + 4, STATE_VERSION);
    put_le64(header + 8, number);
    put_le64(header + 16, index);
    put_le64(header + 24, body);
    put_le32(header + 32, kind);
    put_le32(header + 36, crc32c(0, header + STATE_HEADER_BYTES, body));
    put_le32(header + STATE_CRC_AT, crc32c(0, header, STATE_CRC_AT));
    buf_pad(out, WAL_BLOCK);
}

/* ---- base: encoding ---- */

static void put_tables(const struct wal *wal, struct buf *out)
{
    buf_put_le32(out, (uint32_t)wal->table_count);
    for (size_t i = 0; i < wal->table_count; i++) {
        const struct table *table = wal->tables[i];
        buf_put_le16(out, (uint16_t)strlen(table->name));
        buf_put_text(out, table->name);
        buf_put_byte(out, table->acks != NULL);
        for (uint32_t g = 0; table->acks && g < wal->group_count; g++) {
            buf_put_le64(out, table->acks[g].committed.seq);
            buf_put_le64(out, table->acks[g].committed.chain);
            buf_put_le64(out, table->acks[g].through.seq);
            buf_put_le64(out, table->acks[g].through.chain);
        }
    }
}

/* A copy's checkpoint: committed segments are gone there, or not. */
enum image { IMAGE_NONE, IMAGE_LIVE, IMAGE_WHOLE };

static bool is_gone(const struct segment *segment, enum image image)
{
    return image == IMAGE_LIVE && segment->place == SEGMENT_COMMITTED;
}

static void put_range(uint32_t group, uint64_t first, uint64_t last, struct buf *out)
{
    buf_put_le32(out, group);
    buf_put_le64(out, first);
    buf_put_le64(out, last);
}

static void put_floor(uint32_t table_id, uint32_t group, uint64_t seq, struct buf *out)
{
    buf_put_le32(out, table_id);
    buf_put_le32(out, group);
    buf_put_le64(out, seq);
}

static void put_reclaimed(const struct wal *wal, enum image image, struct buf *out)
{
    uint32_t ranges = (uint32_t)wal->reclaimed_count, floors = (uint32_t)wal->floor_count;
    for (size_t i = 0; i < wal->segment_count; i++) {
        const struct segment *segment = wal->segments[i];
        if (!is_gone(segment, image))
            continue;
        floors += (uint32_t)segment->table_count;
        for (size_t r = 0; r < segment->run_count; r++)
            ranges += segment->runs[r]->count > 0;
    }
    buf_put_le32(out, ranges);
    for (size_t i = 0; i < wal->reclaimed_count; i++)
        put_range(wal->reclaimed[i].group, wal->reclaimed[i].first, wal->reclaimed[i].last, out);
    for (size_t i = 0; i < wal->segment_count; i++) {
        const struct segment *segment = wal->segments[i];
        for (size_t r = 0; is_gone(segment, image) && r < segment->run_count; r++) {
            const struct run *run = segment->runs[r];
            if (run->count > 0)
                put_range(run->group, run->first_seq, run_end(run) - 1, out);
        }
    }
    buf_put_le32(out, floors);
    for (size_t i = 0; i < wal->floor_count; i++)
        put_floor(wal->floors[i].table_id, wal->floors[i].group, wal->floors[i].seq, out);
    for (size_t i = 0; i < wal->segment_count; i++) {
        const struct segment *segment = wal->segments[i];
        for (size_t t = 0; is_gone(segment, image) && t < segment->table_count; t++)
            put_floor(segment->tables[t].table_id, segment->tables[t].group,
                      segment->tables[t].last_seq, out);
    }
}

static void put_segments(const struct wal *wal, enum image image, struct buf *out)
{
    uint32_t count = 0;
    for (size_t i = 0; i < wal->segment_count; i++)
        count += wal->segments[i]->place != SEGMENT_ACTIVE && !is_gone(wal->segments[i], image);
    buf_put_le32(out, count);
    for (size_t i = 0; i < wal->segment_count; i++)
        if (wal->segments[i]->place != SEGMENT_ACTIVE && !is_gone(wal->segments[i], image))
            buf_put_le64(out, wal->segments[i]->identity.id);
}

static uint64_t covered_now(const struct wal *wal)
{
    uint64_t covers = 0;
    for (size_t i = 0; i < wal->segment_count; i++) {
        if (segment_is_open_ended(wal, wal->segments[i]))
            break;
        if (wal->segments[i]->place != SEGMENT_ACTIVE)
            covers = wal->segments[i]->identity.id;
    }
    return covers > wal->covers ? covers : wal->covers;
}

static void put_mark(const struct mark *mark, struct buf *out)
{
    buf_put_le64(out, mark->id);
    buf_put_le64(out, mark->bytes);
    buf_put_le64(out, mark->floor);
}

static void put_base(const struct wal *wal, enum image image, struct buf *out)
{
    static const struct mark no_mark;
    buf_put_le32(out, wal->group_count);
    buf_put_le32(out, (uint32_t)wal->identity_count);
    buf_put_le64(out, wal->incarnation);
    buf_put_le64(out, wal->term);
    buf_put_le64(out, covered_now(wal));
    buf_put_le64(out, wal->segment_next);
    for (size_t i = 0; i < wal->identity_count; i++) {
        buf_put(out, wal->identities[i].log_id.bytes, 16);
        buf_put_le64(out, wal->identities[i].first_segment);
    }
    for (uint32_t g = 0; g < wal->group_count; g++) {
        buf_put_le64(out, wal->groups[g].committed_seq);
        buf_put_le64(out, wal->groups[g].committed_chain);
    }
    put_tables(wal, out);
    put_reclaimed(wal, image, out);
    put_segments(wal, image, out);
    buf_put_le32(out, (uint32_t)wal->void_count);
    for (size_t i = 0; i < wal->void_count; i++) {
        buf_put_le32(out, wal->voids[i].group);
        buf_put_le64(out, wal->voids[i].first);
        buf_put_le64(out, wal->voids[i].last);
        buf_put_le64(out, wal->voids[i].chain);
        buf_put_le64(out, wal->voids[i].term);
    }
    producers_encode(&wal->producers, out);
    put_mark(image ? &no_mark : &wal->mark, out);
    buf_put_le32(out, (uint32_t)wal->lease_count);
    for (size_t i = 0; i < wal->lease_count; i++)
        lease_encode(&wal->leases[i]->state, out);
    producers_times_encode(&wal->producers, wal_clock_ms(wal), out);
    restored_encode(wal, out);
    commits_encode(wal, out);
}

/* ---- writing ---- */

static enum status no_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "checkpoint: out of memory");
}

/* All files of state/ have `now` bytes together. */
static void account(struct wal *wal, uint64_t now)
{
    env_lock(wal->lock);
    wal->allocated_bytes += now - wal->state_allocated;
    wal->state_allocated = now;
    env_unlock(wal->lock);
}

/* The current one has. */
static void account_current(struct wal *wal)
{
    struct env_stat stat;
    struct error ignored;
    if (env_file_stat(wal->state_file, &stat, &ignored) != STATUS_OK)
        return;
    account(wal, wal->state_allocated + stat.allocated_bytes - wal->state_file_allocated);
    wal->state_file_allocated = stat.allocated_bytes;
}

/* Writes the base to a file of its own. On NO_SPACE nothing is left of it. */
static enum status write_base(struct wal *wal, const struct buf *base, uint64_t number,
                              struct env_file **out_file, struct error *err)
{
    char path[PATH_BYTES_MAX], final_path[PATH_BYTES_MAX], dir[PATH_BYTES_MAX];
    struct env_file *file = NULL;
    enum status status;
    wal_path(wal, path, "state", "%016llx.state.new", number);
    state_path(wal, number, final_path);
    wal_path(wal, dir, "state", NULL, 0);
    TRY(env_open(wal->env, path, ENV_READ | ENV_WRITE | ENV_CREATE | ENV_TRUNCATE, &file, err));
    TRY_OR_DONE(status, env_allocate(file, base->length + STATE_SLACK, err));
    TRY_OR_DONE(status, env_write(file, 0, base->data, base->length, err));
    TRY_OR_DONE(status, env_sync(file, err));
    TRY_OR_DONE(status, env_rename(wal->env, path, final_path, err));
    status = env_dir_sync(wal->env, dir, err);
    if (status == STATUS_OK) {
        *out_file = file;
        return STATUS_OK;
    }
    /* Which of the two checkpoints a start would find is unknown: the caller ends the process. */
    err->status = status = STATUS_IO;
done:
    env_close(file);
    if (status == STATUS_NO_SPACE) {
        struct error ignored;
        if (env_remove(wal->env, path, &ignored) != STATUS_OK)
            return status; /* found and removed by the next start */
    }
    return status;
}

/* The state need not be held for an image. */
static enum status encode_base(struct wal *wal, uint64_t number, enum image image, struct buf *out,
                               uint64_t *out_covers, struct error *err)
{
    size_t room = 64 << 10;
    for (;;) {
        buf_clear(out);
        if (!buf_reserve(out, room))
            return no_memory(err);
        /* Appends beyond what was reserved would allocate under the lock: measure and come back. */
        begin_record(out);
        env_lock(wal->lock);
        put_base(wal, image, out);
        *out_covers = covered_now(wal);
        env_unlock(wal->lock);
        if (out->failed)
            return no_memory(err);
        if (out->length <= room)
            break;
        room = out->length + out->length / 8;
    }
    end_record(out, number, 0, STATE_BASE);
    return buf_status(out, "checkpoint", err);
}

enum status wal_state_image(struct wal *wal, bool is_whole, struct buf *out, uint64_t *out_covers,
                            struct error *err)
{
    return encode_base(wal, 0, is_whole ? IMAGE_WHOLE : IMAGE_LIVE, out, out_covers, err);
}

/* Removes all but the two newest. What cannot be removed now is counted and goes with the next. */
static void retire_older(struct wal *wal)
{
    char path[PATH_BYTES_MAX];
    uint64_t *numbers, kept = 0;
    size_t count;
    struct arena arena;
    struct error ignored;
    arena_init(&arena, 0);
    if (state_list(wal, &arena, &numbers, &count, &ignored) != STATUS_OK)
        count = 0;
    for (size_t i = 0; i < count; i++) {
        state_path(wal, numbers[i], path);
        if (i + 2 < count && env_remove(wal->env, path, &ignored) == STATUS_OK)
            continue;
        uint64_t bytes = wal_allocated(wal->env, path);
        kept += bytes;
        if (numbers[i] == wal->state_number)
            wal->state_file_allocated = bytes;
    }
    arena_deinit(&arena);
    if (count > 0)
        account(wal, kept);
}

enum status state_checkpoint(struct wal *wal, struct error *err)
{
    struct buf base = {0};
    struct env_file *file = NULL;
    enum status status;
    uint64_t number = wal->state_number + 1, covers = 0;
    TRY_OR_DONE(status, encode_base(wal, number, IMAGE_NONE, &base, &covers, err));
    do
        status = write_base(wal, &base, number, &file, err);
    while (status == STATUS_NO_SPACE && spare_sacrifice(wal));
    if (status == STATUS_IO)
        wal_die(wal, err);
    if (status != STATUS_OK)
        goto done;
    /* It is the newest on the disk: from here on nothing may go to the one before. */
    env_close(wal->state_file);
    wal->state_file = file;
    env_lock(wal->lock);
    wal->covers_before = wal->state_number ? wal->covers : covers;
    wal->covers = covers;
    env_unlock(wal->lock);
    wal->state_number = number;
    wal->state_bytes = wal->state_base_bytes = base.length;
    wal->state_records = 1;
    retire_older(wal);
done:
    buf_deinit(&base);
    return status;
}

bool state_wants_checkpoint(const struct wal *wal)
{
    uint64_t deltas = wal->state_bytes - wal->state_base_bytes;
    uint64_t enough =
        wal->state_base_bytes > DELTAS_LEAST_BYTES ? wal->state_base_bytes : DELTAS_LEAST_BYTES;
    return !wal->state_file || deltas > enough;
}

bool state_is_large(const struct wal *wal)
{
    return wal->state_allocated > 2 * (wal->state_base_bytes + STATE_SLACK + WAL_BLOCK);
}

static enum status append_delta(struct wal *wal, struct buf *record, struct error *err)
{
    if (!wal->state_file)
        TRY(state_checkpoint(wal, err));
    end_record(record, wal->state_number, wal->state_records, STATE_DELTA);
    TRY(buf_status(record, "checkpoint", err));
    enum status status;
    do {
        status = env_allocate(wal->state_file,
                              align_up(wal->state_bytes + record->length, STATE_SLACK), err);
    } while (status == STATUS_NO_SPACE && spare_sacrifice(wal));
    if (status == STATUS_OK)
        status = env_write(wal->state_file, wal->state_bytes, record->data, record->length, err);
    if (status == STATUS_OK)
        status = env_sync(wal->state_file, err);
    if (status == STATUS_NO_SPACE) {
        /* What that file holds beyond its last record is unknown now: the next one begins anew. */
        account_current(wal);
        env_close(wal->state_file);
        wal->state_file = NULL;
        return status;
    }
    if (status == STATUS_IO)
        wal_die(wal, err);
    TRY(status);
    wal->state_bytes += record->length;
    wal->state_records++;
    account_current(wal);
    if (get_le32(record->data + STATE_HEADER_BYTES) != DELTA_MARK) {
        env_lock(wal->lock);
        wal->state_version++;
        env_unlock(wal->lock);
    }
    return STATUS_OK;
}

enum status state_put_ack(struct wal *wal, uint32_t table_id, const struct wal_ack *acks,
                          struct error *err)
{
    struct buf record = {0};
    begin_record(&record);
    buf_put_le32(&record, DELTA_ACK);
    buf_put_le32(&record, table_id);
    for (uint32_t g = 0; g < wal->group_count; g++) {
        buf_put_le64(&record, acks[g].committed.seq);
        buf_put_le64(&record, acks[g].committed.chain);
        buf_put_le64(&record, acks[g].through.seq);
        buf_put_le64(&record, acks[g].through.chain);
    }
    enum status status = buf_status(&record, "ack", err);
    if (status == STATUS_OK)
        status = append_delta(wal, &record, err);
    buf_deinit(&record);
    TRY(status);
    env_lock(wal->lock);
    backlog_let_go(wal, table_id, acks);
    status = state_apply_ack(wal, table_id, acks, err);
    if (status != STATUS_OK)
        backlog_recount(wal);
    env_unlock(wal->lock);
    return status;
}

enum status state_put_table(struct wal *wal, uint32_t table_id, const char *name, struct error *err)
{
    struct buf record = {0};
    begin_record(&record);
    buf_put_le32(&record, DELTA_TABLE);
    buf_put_le32(&record, table_id);
    buf_put_text(&record, name);
    enum status status = buf_status(&record, "table", err);
    if (status == STATUS_OK)
        status = append_delta(wal, &record, err);
    buf_deinit(&record);
    return status;
}

enum status state_put_lease(struct wal *wal, const struct lease_state *lease, struct error *err)
{
    struct buf record = {0};
    begin_record(&record);
    buf_put_le32(&record, DELTA_LEASE);
    lease_encode(lease, &record);
    enum status status = buf_status(&record, "lease", err);
    if (status == STATUS_OK)
        status = append_delta(wal, &record, err);
    buf_deinit(&record);
    return status;
}

enum status state_put_lease_gone(struct wal *wal, const char *name, struct error *err)
{
    struct buf record = {0};
    begin_record(&record);
    buf_put_le32(&record, DELTA_LEASE_GONE);
    buf_put_text(&record, name);
    enum status status = buf_status(&record, "lease", err);
    if (status == STATUS_OK)
        status = append_delta(wal, &record, err);
    buf_deinit(&record);
    return status;
}

enum status state_put_mark(struct wal *wal, const struct mark *mark, struct error *err)
{
    struct buf record = {0};
    begin_record(&record);
    buf_put_le32(&record, DELTA_MARK);
    put_mark(mark, &record);
    enum status status = buf_status(&record, "mark", err);
    if (status == STATUS_OK)
        status = append_delta(wal, &record, err);
    buf_deinit(&record);
    env_lock(wal->lock);
    if (status == STATUS_OK)
        wal->mark = *mark;
    env_unlock(wal->lock);
    return status;
}

enum status state_put_fence(struct wal *wal, uint64_t incarnation, struct error *err)
{
    struct buf record = {0};
    begin_record(&record);
    buf_put_le32(&record, DELTA_FENCED);
    buf_put_le64(&record, incarnation);
    enum status status = buf_status(&record, "fence", err);
    if (status == STATUS_OK)
        status = append_delta(wal, &record, err);
    buf_deinit(&record);
    return status;
}

enum status state_put_expired(struct wal *wal, uint64_t clock_ms, const struct producer **batch,
                              size_t count, struct error *err)
{
    struct buf record = {0};
    begin_record(&record);
    buf_put_le32(&record, DELTA_PRODUCERS_GONE);
    buf_put_le64(&record, clock_ms);
    buf_put_le32(&record, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        buf_put_byte(&record, batch[i]->id_length);
        buf_put(&record, batch[i]->id, batch[i]->id_length);
        buf_put_le64(&record, batch[i]->last);
    }
    enum status status = buf_status(&record, "expired producers", err);
    if (status == STATUS_OK)
        status = append_delta(wal, &record, err);
    buf_deinit(&record);
    return status;
}

enum status state_put_compact(struct wal *wal, const struct leavings *leavings, struct error *err)
{
    struct buf record = {0};
    begin_record(&record);
    buf_put_le32(&record, DELTA_COMPACT);
    buf_put_le32(&record, (uint32_t)leavings->range_count);
    for (size_t i = 0; i < leavings->range_count; i++)
        put_range(leavings->ranges[i].group, leavings->ranges[i].first, leavings->ranges[i].last,
                  &record);
    buf_put_le32(&record, (uint32_t)leavings->floor_count);
    for (size_t i = 0; i < leavings->floor_count; i++)
        put_floor(leavings->floors[i].table_id, leavings->floors[i].group, leavings->floors[i].seq,
                  &record);
    enum status status = buf_status(&record, "compaction", err);
    if (status == STATUS_OK)
        status = append_delta(wal, &record, err);
    buf_deinit(&record);
    return status;
}

enum status state_put_reclaim(struct wal *wal, const struct segment *segment, struct error *err)
{
    struct buf record = {0};
    begin_record(&record);
    buf_put_le32(&record, DELTA_RECLAIM);
    buf_put_le64(&record, segment->identity.id);
    uint32_t used = 0;
    for (size_t i = 0; i < segment->run_count; i++)
        used += segment->runs[i]->count > 0;
    buf_put_le32(&record, used);
    for (size_t i = 0; i < segment->run_count; i++) {
        const struct run *run = segment->runs[i];
        if (run->count == 0)
            continue;
        put_range(run->group, run->first_seq, run_end(run) - 1, &record);
    }
    buf_put_le32(&record, (uint32_t)segment->table_count);
    for (size_t i = 0; i < segment->table_count; i++) {
        put_floor(segment->tables[i].table_id, segment->tables[i].group,
                  segment->tables[i].last_seq, &record);
    }
    enum status status = buf_status(&record, "reclaim", err);
    if (status == STATUS_OK)
        status = append_delta(wal, &record, err);
    buf_deinit(&record);
    env_lock(wal->lock);
    if (status == STATUS_OK && wal->mark.id == segment->identity.id)
        wal->mark.id = 0;
    env_unlock(wal->lock);
    return status;
}
