/* SPDX-License-Identifier: Apache-2.0
 *
 * One segment after another: the floor unit of an idle writer, sealing, and opening the next. All
 * of it under the lead. Order (L16): footer, end of file, sync, rename to sealed/, directory syncs;
 * only then is the next file named and its header synced, and only then is anything written into
 * it. A failed sync anywhere here ends the process (L24).
 */
#include "log/wal/wal_internal.h"

static void block_encode(struct wal *wal, struct record *record, uint8_t *to)
{
    const struct writer *writer = &wal->writer;
    uint32_t seed = segment_seed(&writer->segment->identity);
    memset(to, 0, WAL_BLOCK);
    if (record) {
        struct unit_row row = {.offset = unit_head_bytes(1), .type = record->type};
        row.header_crc = record_encode(to + row.offset, record, NULL, seed);
        row.header_bytes = record->header_bytes;
        unit_row_encode(to, 0, &row);
    }
    unit_header_encode(to,
                       &(struct unit_header){.number = writer->unit_next,
                                             .floor = writer->floor,
                                             .unit_bytes = WAL_BLOCK,
                                             .record_count = record ? 1 : 0,
                                             .kind = UNIT_DATA,
                                             .wall_ns = env_wall_ns(wal->env),
                                             .salt = writer->segment->identity.salt},
                       seed);
}

enum status writer_put_block(struct wal *wal, struct record *record, struct error *err)
{
    struct writer *writer = &wal->writer;
    struct unit_buffer *buffer = unit_buffer_take(wal, WAL_BLOCK);
    if (!buffer)
        return error_set(err, STATUS_NO_MEMORY, "log: no memory for a unit");
    block_encode(wal, record, buffer->data);
    enum status status = env_write(writer->file, writer->offset, buffer->data, WAL_BLOCK, err);
    env_lock(wal->lock);
    unit_buffer_release(wal, buffer);
    env_unlock(wal->lock);
    if (status != STATUS_OK) {
        writer->must_cut = true;
        return status;
    }
    status = env_sync(writer->file, err);
    if (status != STATUS_OK) {
        writer->must_cut = true; /* if it was for space */
        return status;
    }
    writer->floor = writer->unit_next++;
    writer->offset += WAL_BLOCK;
    env_lock(wal->lock);
    wal->counters.units_written++;
    wal->counters.syncs++;
    wal->counters.bytes_written += WAL_BLOCK;
    wal->synced_unit = writer->floor;
    wal->synced_bytes = writer->offset;
    writer_room_publish(wal);
    env_unlock(wal->lock);
    return STATUS_OK;
}

enum status writer_floor(struct wal *wal, struct error *err)
{
    struct writer *writer = &wal->writer;
    writer->needs_floor = false;
    if (!writer->segment || writer->must_cut ||
        writer->offset + WAL_BLOCK + writer->footer_bytes + FOOTER_BYTES_LEAST >
            writer->segment->file_bytes)
        return STATUS_OK; /* the seal that is due will say it */
    return writer_put_block(wal, NULL, err);
}

/* Remembers which groups this segment changed, for the header of the next (L15). */
static enum status rows_remember(struct wal *wal, const struct segment *segment, struct error *err)
{
    struct writer *writer = &wal->writer;
    struct group_row *rows = mem_alloc_zero(segment->run_count, sizeof *rows);
    if (!rows)
        return error_set(err, STATUS_NO_MEMORY, "log: no memory to seal");
    uint32_t used = 0;
    for (size_t i = 0; i < segment->run_count; i++) {
        const struct run *run = segment->runs[i];
        if (run->count == 0)
            continue;
        rows[used++] = (struct group_row){.group = run->group,
                                          .first_seq = run->first_seq,
                                          .last_seq = wal->groups[run->group].synced_seq,
                                          .chain = wal->groups[run->group].synced_chain,
                                          .term = wal->groups[run->group].term};
    }
    mem_free(writer->next_rows);
    writer->next_rows = rows;
    writer->next_row_count = used;
    return STATUS_OK;
}

/* Footer, end of file, sync. The file is complete under either name after this. */
static enum status seal_bytes(struct wal *wal, struct segment *segment, struct error *err)
{
    struct writer *writer = &wal->writer;
    struct buf footer = {0};
    struct env_stat stat = {0};
    enum status status;
    int64_t wall_ns = env_wall_ns(wal->env);
    segment->is_cut |= writer->must_cut;
    footer_encode(wal, segment, writer->offset, writer->unit_next, wall_ns, 0, &footer);
    TRY_OR_DONE(status, buf_status(&footer, "log: footer", err));
    TRY_OR_DONE(status, env_write(writer->file, writer->offset, footer.data, footer.length, err));
    TRY_OR_DONE(status, env_truncate(writer->file, writer->offset + footer.length, err));
    TRY_OR_DONE(status, env_sync(writer->file, err));
    TRY_OR_DONE(status, env_file_stat(writer->file, &stat, err));
    env_lock(wal->lock);
    segment->sealed_wall_ns = wall_ns;
    segment->data_end = writer->offset;
    wal->allocated_bytes += stat.allocated_bytes - segment->allocated_bytes;
    segment->file_bytes = stat.bytes;
    segment->allocated_bytes = stat.allocated_bytes;
    wal->counters.bytes_written += footer.length;
    wal->counters.syncs++;
    env_unlock(wal->lock);
done:
    buf_deinit(&footer);
    return status;
}

enum status writer_seal(struct wal *wal, struct error *err)
{
    struct writer *writer = &wal->writer;
    struct segment *segment = writer->segment;
    if (!segment)
        return STATUS_OK;
    char from[PATH_BYTES_MAX], to[PATH_BYTES_MAX], from_dir[PATH_BYTES_MAX], to_dir[PATH_BYTES_MAX];
    wal_segment_path(wal, segment->identity.id, SEGMENT_ACTIVE, from);
    wal_segment_path(wal, segment->identity.id, SEGMENT_SEALED, to);
    path_parent(from_dir, from);
    path_parent(to_dir, to);
    TRY(rows_remember(wal, segment, err));
    enum status status = seal_bytes(wal, segment, err);
    if (status == STATUS_OK)
        status = env_rename(wal->env, from, to, err);
    if (status == STATUS_OK)
        status = env_dir_sync(wal->env, to_dir, err);
    if (status == STATUS_OK)
        status = env_dir_sync(wal->env, from_dir, err);
    if (status == STATUS_IO)
        wal_die(wal, err); /* L24: what the file or the directory holds is unknown now */
    if (status != STATUS_OK)
        return error_prefix(err, "log: seal");
    env_close(writer->direct);
    env_close(writer->file);
    env_lock(wal->lock);
    segment->place = SEGMENT_SEALED;
    segment_trim(segment);
    writer->file = writer->direct = NULL;
    writer->segment = NULL;
    writer->must_cut = writer->needs_floor = false;
    wal->has_large_units = writer->offset / writer->unit_next >= WAL_LARGE_UNIT;
    writer->previous_id = segment->identity.id;
    writer_room_publish(wal);
    wal_poke(wal);
    env_unlock(wal->lock);
    return STATUS_OK;
}

/* ---- the next segment ---- */

/* A spare for the taking, out of the list; false if none may be taken. Lock held. */
static bool spare_take(struct wal *wal, bool is_control, struct spare *out_spare)
{
    size_t least = is_control ? 0 : WAL_CONTROL_SPARES;
    if (wal->spare_count <= least)
        return false;
    size_t best = 0;
    for (size_t i = 1; i < wal->spare_count; i++)
        if (wal->spares[i].is_written && !wal->spares[best].is_written)
            best = i;
    *out_spare = wal->spares[best];
    wal->spares[best] = wal->spares[--wal->spare_count];
    wal->allocated_bytes -= out_spare->allocated_bytes;
    return true;
}

enum status file_zero_fill(struct env_file *file, uint64_t bytes, struct error *err)
{
    enum { CHUNK = 1 << 20, CHUNKS_BETWEEN_SYNCS = 4 };
    static const uint8_t zeros[CHUNK] __attribute__((aligned(WAL_BLOCK)));
    uint64_t chunks = 0;
    for (uint64_t at = 0; at < bytes; at += CHUNK) {
        size_t part = bytes - at < CHUNK ? (size_t)(bytes - at) : CHUNK;
        TRY(env_write(file, at, zeros, part, err));
        /* In small pieces, so that the syncs of units beside it never wait behind all of it. */
        if (++chunks % CHUNKS_BETWEEN_SYNCS == 0 || at + CHUNK >= bytes)
            TRY(env_sync(file, err));
    }
    return STATUS_OK;
}

/* A file of at least `bytes` under the segment's active name: a spare if there is one, else new. */
static enum status file_obtain(struct wal *wal, uint64_t id, uint64_t bytes, bool is_control,
                               struct env_file **out_file, bool *out_is_written, struct error *err)
{
    struct spare spare = {0};
    char path[PATH_BYTES_MAX], from[PATH_BYTES_MAX];
    struct env_file *file = NULL;
    enum status status;
    wal_segment_path(wal, id, SEGMENT_ACTIVE, path);
    env_lock(wal->lock);
    bool has_spare = spare_take(wal, false, &spare);
    bool may_grow = has_spare || is_control || writer_may_grow(wal, bytes);
    env_unlock(wal->lock);
    if (!may_grow)
        return error_set(err, STATUS_NO_SPACE, "log: budget reached");
    if (!has_spare) {
        status =
            env_open(wal->env, path, ENV_READ | ENV_WRITE | ENV_CREATE | ENV_EXCLUSIVE, &file, err);
        if (status == STATUS_OK)
            status = env_allocate(file, bytes, err);
        if (status == STATUS_OK) {
            *out_file = file;
            return STATUS_OK;
        }
        env_close(file);
        struct error ignored;
        if (env_remove(wal->env, path, &ignored) != STATUS_OK)
            return status; /* an empty segment: the next start drops it */
        env_lock(wal->lock);
        has_spare = is_control && status == STATUS_NO_SPACE && spare_take(wal, true, &spare);
        env_unlock(wal->lock);
        if (!has_spare)
            return status;
    }
    spare_path(wal, &spare, from);
    TRY(env_rename(wal->env, from, path, err));
    TRY(env_open(wal->env, path, ENV_READ | ENV_WRITE, &file, err));
    if (spare.bytes < bytes)
        status = env_allocate(file, bytes, err);
    else
        status = STATUS_OK;
    if (status == STATUS_OK) {
        *out_file = file;
        *out_is_written = spare.is_written && spare.bytes >= bytes;
        return STATUS_OK;
    }
    env_close(file);
    struct error ignored;
    if (env_remove(wal->env, path, &ignored) != STATUS_OK)
        return status;
    return status;
}

/* The rows of all groups: those that changed as they are, for the others where they stand. */
static bool rows_complete(struct wal *wal)
{
    struct writer *writer = &wal->writer;
    struct group_row *rows = mem_alloc_zero(wal->group_count, sizeof *rows);
    uint32_t count = 0, at = 0; /* of those that changed, which are in order of their groups */
    if (!rows)
        return false;
    for (uint32_t g = 0; g < wal->group_count; g++) {
        const struct group *group = &wal->groups[g];
        if (at < writer->next_row_count && writer->next_rows[at].group == g)
            rows[count++] = writer->next_rows[at++];
        else if (group->synced_seq)
            rows[count++] = (struct group_row){.group = g,
                                               .last_seq = group->synced_seq,
                                               .chain = group->synced_chain,
                                               .term = group->term};
    }
    mem_free(writer->next_rows);
    writer->next_rows = rows;
    writer->next_row_count = count;
    return true;
}

/* Where groups are few, all of them in each: the header takes a block anyway, and the newest
 * segment then says what a lost one must have held. Else those changed since, and all in every 64th
 * and in the first of a start (L15). */
static enum status header_encode(struct wal *wal, struct segment *segment, struct buf *out,
                                 struct error *err)
{
    enum { FEW_GROUPS = 64 };
    struct writer *writer = &wal->writer;
    struct segment_header header = {.identity = segment->identity,
                                    .previous_id = segment->previous_id,
                                    .term = wal->term,
                                    .incarnation = wal->incarnation,
                                    .created_wall_ns = segment->created_wall_ns,
                                    .group_count = wal->group_count};
    bool is_complete =
        wal->group_count <= FEW_GROUPS || !writer->next_rows || segment->identity.id % 64 == 0;
    if (is_complete && !rows_complete(wal))
        return error_set(err, STATUS_NO_MEMORY, "log: no memory for a segment");
    header.row_count = writer->next_row_count;
    segment_header_encode(out, &header, writer->next_rows);
    TRY(buf_status(out, "log: segment header", err));
    if (!segment_chains_set(segment, writer->next_rows, header.row_count))
        return error_set(err, STATUS_NO_MEMORY, "log: no memory for a segment");
    return STATUS_OK;
}

static enum status header_write(struct wal *wal, struct env_file *file, const struct buf *header,
                                struct error *err)
{
    char dir[PATH_BYTES_MAX];
    TRY(env_write(file, 0, header->data, header->length, err));
    TRY(env_sync(file, err));
    wal_path(wal, dir, "active", NULL, 0);
    TRY(env_dir_sync(wal->env, dir, err));
    wal_path(wal, dir, "spare", NULL, 0);
    return env_dir_sync(wal->env, dir, err);
}

static struct segment *segment_begin(struct wal *wal)
{
    struct segment *segment = segment_create(wal->segment_next);
    if (!segment)
        return NULL;
    segment->identity.log_id = wal_log_id_of_segment(wal, segment->identity.id);
    env_random(wal->env, &segment->identity.salt, sizeof segment->identity.salt);
    segment->previous_id = wal->writer.previous_id;
    segment->term = wal->term;
    segment->created_wall_ns = env_wall_ns(wal->env);
    return segment;
}

/* A second handle for writes that are durable when they return. Nothing depends on it. */
static struct env_file *direct_open(struct wal *wal, const struct segment *segment)
{
    struct env_file *file = NULL;
    struct error ignored;
    char path[PATH_BYTES_MAX];
    if (wal->writer.has_no_direct)
        return NULL;
    wal_segment_path(wal, segment->identity.id, SEGMENT_ACTIVE, path);
    enum status status =
        env_open(wal->env, path, ENV_WRITE | ENV_DIRECT | ENV_DSYNC, &file, &ignored);
    return status == STATUS_OK ? file : NULL;
}

/* Says durably that the segment is there. A full volume does without: a start then takes the loss
 * of this file for one that was never written to. Lock held, but for the I/O. */
static void mark_begin(struct wal *wal, const struct segment *segment)
{
    struct error ignored;
    struct mark mark = {.id = segment->identity.id, .bytes = segment->file_bytes};
    wal_state_acquire(wal);
    env_unlock(wal->lock);
    enum status status = state_put_mark(wal, &mark, &ignored);
    UNUSED(status);
    env_lock(wal->lock);
    wal->synced_unit = 0;
    wal_state_release(wal);
}

enum status writer_open_segment(struct wal *wal, bool is_control, uint64_t bytes_least,
                                struct error *err)
{
    struct writer *writer = &wal->writer;
    struct buf header = {0};
    struct env_stat stat = {0};
    struct env_file *file = NULL;
    bool is_written = false;
    enum status status;
    struct segment *segment = segment_begin(wal);
    if (!segment)
        return error_set(err, STATUS_NO_MEMORY, "log: no memory for a segment");
    env_lock(wal->lock);
    wal->segment_next++; /* a number is used once, even if this comes to nothing */
    env_unlock(wal->lock);
    TRY_OR_DONE(status, header_encode(wal, segment, &header, err));
    uint64_t bytes =
        align_up(header.length + bytes_least + 2 * FOOTER_BYTES_LEAST, WAL_BLOCK); /* L19 */
    if (bytes < wal->options.segment_bytes)
        bytes = wal->options.segment_bytes;
    TRY_OR_DONE(status,
                file_obtain(wal, segment->identity.id, bytes, is_control, &file, &is_written, err));
    status = header_write(wal, file, &header, err);
    if (status == STATUS_IO)
        wal_die(wal, err);
    if (status == STATUS_OK)
        status = env_file_stat(file, &stat, err);
    segment->file_bytes = stat.bytes;
    segment->allocated_bytes = stat.allocated_bytes;
    struct env_file *direct = status == STATUS_OK ? direct_open(wal, segment) : NULL;
    env_lock(wal->lock);
    if (status == STATUS_OK && !index_segment_add(wal, segment))
        status = error_set(err, STATUS_NO_MEMORY, "log: no memory for a segment");
    if (status == STATUS_OK) {
        mark_begin(wal, segment);
        int64_t now = env_mono_ns(wal->env);
        writer->segment = segment;
        writer->file = file;
        writer->direct = direct;
        writer->offset = wal->synced_bytes = header.length;
        writer->filled = is_written ? segment->file_bytes : header.length;
        writer->unit_next = 1;
        writer->floor = 0;
        writer->needs_floor = writer->must_cut = false;
        writer->retry_ns = 0;
        writer->opened_ns = writer->synced_ns = now;
        writer->footer_bytes = 0;
        writer_room_publish(wal);
        wal_poke(wal); /* the keeper makes the spare good */
        segment = NULL;
        file = direct = NULL;
    }
    env_unlock(wal->lock);
    env_close(direct);
    if (file) {
        char path[PATH_BYTES_MAX];
        struct error ignored;
        wal_segment_path(wal, segment->identity.id, SEGMENT_ACTIVE, path);
        if (env_remove(wal->env, path, &ignored) != STATUS_OK)
            goto done; /* an empty segment: the next start drops it */
    }
done:
    env_close(file);
    segment_destroy(segment);
    buf_deinit(&header);
    return status == STATUS_OK ? status : error_prefix(err, "log: new segment");
}
