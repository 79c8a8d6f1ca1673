/* SPDX-License-Identifier: Apache-2.0
 *
 * Recovery (L20-L23), before anything is served. Segments are taken in order of their numbers:
 *
 *   sealed, committed   header and footer; if the footer does not verify, the whole file is walked,
 *                       and what is damaged is named, nothing is cut
 *   active              walked whole: a unit counts whole or not at all
 *
 * Decision for a unit that is damaged or missing, F being the highest floor in any surviving unit,
 * or in the checkpoint's mark of that segment:
 *
 *   number <= F         CORRUPT: it was synced once. Entries that verify alone are kept,
 *                       the rest is a damaged range; what follows is read on
 *   number >  F         TORN_TAIL: cut here; later segments are dropped (nothing in them
 *                       was acknowledged)
 *
 * An active segment is never written to again but for its footer. What was read past F came from a
 * page cache that may not be the disk (L22): it is read once more, past the cache, and if that
 * cannot be done, or gives something else, what counts is copied to a new file. Everything is
 * synced before wal_recover returns.
 */
#include <stdio.h>

#include "log/wal/recover_internal.h"

/* ---- headers and footers ---- */

struct header_rows {
    struct group_row *items;
    uint32_t count;
};

static enum status header_load(struct wal *wal, struct segment *segment, const char *path,
                               struct header_rows *out_rows, uint64_t *out_bytes, struct error *err)
{
    struct env_file *file = NULL;
    struct buf bytes = {0};
    struct segment_header header = {0};
    enum status status;
    size_t wanted = WAL_BLOCK, got;
    TRY(env_open(wal->env, path, ENV_READ, &file, err));
    for (;;) {
        buf_clear(&bytes);
        uint8_t *place = buf_extend(&bytes, wanted);
        if (!place) {
            status = recover_no_memory(err);
            goto done;
        }
        TRY_OR_DONE(status, env_read(file, 0, place, wanted, &got, err));
        wal->recovery.bytes_read += got;
        status = segment_header_decode(span_of(place, got), segment->identity.id, &header, err);
        if (status != STATUS_TORN_TAIL || header.header_bytes <= wanted)
            break;
        wanted = header.header_bytes;
    }
    if (status == STATUS_TORN_TAIL)
        status = error_set(err, STATUS_CORRUPT, "segment header: cut off");
    if (status != STATUS_OK)
        goto done;
    segment->identity = header.identity;
    segment->previous_id = header.previous_id;
    segment->term = header.term;
    segment->created_wall_ns = header.created_wall_ns;
    out_rows->items = mem_alloc_zero(header.row_count, sizeof *out_rows->items);
    if (!out_rows->items) {
        status = recover_no_memory(err);
        goto done;
    }
    for (uint32_t i = 0; i < header.row_count; i++)
        segment_header_row(span_of(bytes.data, bytes.length), i, &out_rows->items[i]);
    out_rows->count = header.row_count;
    *out_bytes = header.header_bytes;
done:
    env_close(file);
    buf_deinit(&bytes);
    return status;
}

enum status recover_suspect(struct wal *wal, uint32_t group, uint64_t after, uint64_t chain,
                            struct error *err)
{
    uint64_t known = wal->groups[group].known_seq, here;
    struct error ignored;
    bool is_same = chain_read(wal, group, after, &here, &ignored) == STATUS_OK && here == chain;
    if (is_same || after <= known ||
        damage_add(wal, group, known + 1, after, "what replaced some of these is lost"))
        return STATUS_OK;
    return recover_no_memory(err);
}

/* Is there another history than what is here? A truncation may be lost with its segment; then what
 * does not count is suspect. */
static enum status row_compare(struct wal *wal, const struct segment *segment,
                               const struct group_row *row, struct error *err)
{
    const struct group *group = &wal->groups[row->group];
    const struct segment *before =
        wal->segment_count ? wal->segments[wal->segment_count - 1] : NULL;
    if (!wal->needs_commit || group->synced_seq <= group->known_seq)
        return STATUS_OK;
    if (row->last_seq < group->synced_seq) {
        struct truncation truncation = {.group = row->group,
                                        .after = row->last_seq,
                                        .chain = row->chain,
                                        .term = row->term,
                                        .segment = segment->identity.id};
        TRY(recover_suspect(wal, row->group, row->last_seq, row->chain, err));
        if (!truncation_add(wal, &truncation))
            return recover_no_memory(err);
        truncations_apply(wal, segment->identity.id, NULL);
        return STATUS_OK;
    }
    const struct seq_range *hole = reclaimed_from(wal, row->group, group->synced_seq + 1);
    bool is_reclaimed = hole && hole->first <= group->synced_seq + 1 && hole->last >= row->last_seq;
    bool is_there = before && before->identity.id == segment->previous_id;
    bool is_same = row->last_seq == group->synced_seq ? row->chain == group->synced_chain
                                                      : is_reclaimed || is_there;
    return is_same || damage_add(wal, row->group, group->known_seq + 1, row->last_seq,
                                 "a segment is lost that may have replaced these")
               ? STATUS_OK
               : recover_no_memory(err);
}

/* What the header says of the groups at the end of the segment before. */
static enum status rows_replay(struct wal *wal, struct segment *segment,
                               const struct header_rows *rows, struct error *err)
{
    char where[80];
    snprintf(where, sizeof where, "before segment %llu", (unsigned long long)segment->identity.id);
    if (!segment_chains_set(segment, rows->items, rows->count))
        return recover_no_memory(err);
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct group_row *row = &rows->items[i];
        if (row->group >= wal->group_count)
            return error_set(err, STATUS_CORRUPT, "log: segment header names group %u", row->group);
        TRY(row_compare(wal, segment, row, err));
        TRY(recover_group_jump(wal, row->group, row->last_seq + 1, row->chain, where, err));
        if (row->term > wal->groups[row->group].term)
            wal->groups[row->group].term = row->term;
    }
    if (segment->term > wal->term)
        wal->term = segment->term;
    return STATUS_OK;
}

/* Tables and producers of a footered segment that no checkpoint holds. */
static enum status footer_state_replay(struct wal *wal, struct segment *segment, const char *path,
                                       struct error *err)
{
    struct env_file *file = NULL;
    struct entry_bytes bytes = {0};
    enum status status = STATUS_OK;
    for (size_t r = 0; r < segment->run_count && status == STATUS_OK; r++) {
        const struct run *run = segment->runs[r];
        for (uint32_t i = 0; i < run->count && status == STATUS_OK; i++) {
            const struct index_entry *entry = &run->entries[i];
            struct record record;
            bool is_state = entry->type == WAL_TABLE || entry->has_producers;
            if (!is_state || run_seq(run, i) <= wal->groups[run->group].state_seq)
                continue;
            if (!file)
                TRY_OR_DONE(status, env_open(wal->env, path, ENV_READ, &file, err));
            status =
                entry_read(segment, entry, file, entry->type == WAL_TABLE, &bytes, &record, err);
            if (status == STATUS_CORRUPT) {
                char where[160];
                snprintf(where, sizeof where, "segment %llu: %.100s",
                         (unsigned long long)segment->identity.id, err->message);
                uint64_t seq = run_seq(run, i);
                status = damage_add(wal, run->group, seq, seq, where) ? STATUS_OK
                                                                      : recover_no_memory(err);
                continue;
            }
            if (status == STATUS_OK)
                status = recover_state_replay(
                    wal, &record, span_of(bytes.data, record.header_bytes),
                    span_of(bytes.data + align_up(record.header_bytes, WAL_ALIGN),
                            entry->type == WAL_TABLE ? entry->payload_bytes : 0),
                    err);
        }
    }
done:
    env_close(file);
    entry_bytes_deinit(&bytes);
    return status;
}

static enum status footer_read(struct wal *wal, struct segment *segment, const char *path,
                               struct error *err)
{
    struct env_file *file = NULL;
    uint8_t trailer[FOOTER_TRAILER_BYTES];
    struct segment_identity identity;
    struct buf unit = {0};
    enum status status;
    uint64_t offset, bytes;
    size_t got;
    if (segment->file_bytes < WAL_BLOCK)
        return error_set(err, STATUS_CORRUPT, "footer: the file is too short");
    TRY(env_open(wal->env, path, ENV_READ, &file, err));
    TRY_OR_DONE(status, env_read(file, segment->file_bytes - sizeof trailer, trailer,
                                 sizeof trailer, &got, err));
    TRY_OR_DONE(status, segment_trailer_decode(trailer, segment->identity.id, &identity, &offset,
                                               &bytes, err));
    if (offset + bytes != segment->file_bytes || bytes > segment->file_bytes) {
        status = error_set(err, STATUS_CORRUPT, "footer: not at the end of the file");
        goto done;
    }
    uint8_t *place = buf_extend(&unit, (size_t)bytes);
    if (!place) {
        status = recover_no_memory(err);
        goto done;
    }
    TRY_OR_DONE(status, env_read(file, offset, place, (size_t)bytes, &got, err));
    wal->recovery.bytes_read += got;
    segment->identity = identity;
    status = footer_decode(wal, segment, span_of(place, got), err);
done:
    env_close(file);
    buf_deinit(&unit);
    return status;
}

/* What lies before and between its entries was reclaimed, or is lost. */
static enum status run_replay(struct wal *wal, const struct run *run, const char *where,
                              struct error *err)
{
    for (uint32_t i = 0; i < run->count; i++) {
        uint64_t seq = run_seq(run, i);
        TRY(recover_group_jump(wal, run->group, seq, 0, where, err));
        if (run->entries[i].type == ENTRY_LOST && !damage_add(wal, run->group, seq, seq, where))
            return recover_no_memory(err);
        wal->groups[run->group].synced_seq = seq;
    }
    wal->recovery.entries += run->count;
    return STATUS_OK;
}

/* The groups go on from where the footer says; its runs enter the groups. */
static enum status footer_replay(struct wal *wal, struct segment *segment, struct error *err)
{
    char where[80];
    snprintf(where, sizeof where, "before segment %llu", (unsigned long long)segment->identity.id);
    for (uint32_t i = 0; i < segment->end_count; i++) {
        const struct group_row *end = &segment->ends[i];
        struct run *run =
            end->group < wal->group_count ? segment_run_find(segment, end->group) : NULL;
        if (!run)
            return error_set(err, STATUS_CORRUPT, "log: footer of segment %llu",
                             (unsigned long long)segment->identity.id);
        struct group *group = &wal->groups[end->group];
        if (run->count == 0)
            continue;
        if (run->first_seq <= group->synced_seq)
            return error_set(err, STATUS_CORRUPT, "log: group %u seq %llu comes twice (%s)",
                             end->group, (unsigned long long)run->first_seq, where);
        if (!group_run_attach(group, run))
            return recover_no_memory(err);
        TRY(run_replay(wal, run, where, err));
        /* Lost entries behind the last that survived are a range too. */
        TRY(recover_group_jump(wal, end->group, end->last_seq + 1, end->chain, where, err));
        group->synced_chain = end->chain;
        group->told = (struct wal_position){.seq = end->last_seq, .chain = end->chain};
        group->term = end->term;
        if (end->term > wal->term)
            wal->term = end->term;
    }
    for (size_t i = 0; i < segment->table_count; i++)
        if (segment->tables[i].table_id > wal->table_count &&
            segment->tables[i].table_id <= WAL_TABLES_MAX &&
            !table_put(wal, segment->tables[i].table_id, (struct span){0}))
            return recover_no_memory(err);
    for (size_t i = 0; i < segment->void_count; i++)
        TRY(recover_void_replay(wal, &segment->voids[i], err));
    return STATUS_OK;
}

/* ---- sealing what a crash left active ---- */

static enum status copy_bytes(struct wal *wal, const char *path, const uint8_t *data,
                              uint64_t bytes, const struct buf *footer, struct error *err)
{
    struct env_file *file = NULL;
    enum status status;
    struct env_slice slices[2] = {{.data = data, .bytes = (size_t)bytes},
                                  {.data = footer->data, .bytes = footer->length}};
    TRY(env_open(wal->env, path, ENV_READ | ENV_WRITE | ENV_CREATE, &file, err));
    TRY_OR_DONE(status, env_allocate(file, bytes + footer->length, err));
    TRY_OR_DONE(status, env_writev(file, 0, slices, 2, err));
    TRY_OR_DONE(status, env_truncate(file, bytes + footer->length, err));
    status = env_sync(file, err);
done:
    env_close(file);
    return status;
}

/* L22: what counts goes to a file of its own. A full volume gives up a spare for it (L18). */
static enum status seal_copy(struct wal *wal, const struct walk *walk, const struct buf *footer,
                             struct error *err)
{
    char copy[PATH_BYTES_MAX], to[PATH_BYTES_MAX], from[PATH_BYTES_MAX], dir[PATH_BYTES_MAX];
    uint64_t id = walk->segment->identity.id;
    enum status status;
    wal_path(wal, copy, "sealed", "%016llx.seg.new", id);
    wal_segment_path(wal, id, SEGMENT_SEALED, to);
    wal_segment_path(wal, id, SEGMENT_ACTIVE, from);
    do
        status = copy_bytes(wal, copy, walk->data, walk->end, footer, err);
    while (status == STATUS_NO_SPACE && spare_sacrifice(wal));
    TRY(status);
    TRY(env_rename(wal->env, copy, to, err));
    path_parent(dir, to);
    TRY(env_dir_sync(wal->env, dir, err));
    return files_remove(wal->env, from, err);
}

/* Where what counts and no floor proves begins. */
static uint64_t proven_end(const struct walk *walk)
{
    for (size_t i = 0; i < walk->unit_count; i++)
        if (walk->units[i].header.number > walk->floor)
            return walk->units[i].offset < walk->end ? walk->units[i].offset : walk->end;
    return walk->end;
}

/* L22: the disk, asked past the page cache, gives back what counts from `offset` on; then a sync is
 * all that is missing. False if it gives something else, or cannot be asked. */
static bool is_on_disk(struct wal *wal, const struct walk *walk, uint64_t offset)
{
    enum { CHUNK = 1 << 20 };
    char path[PATH_BYTES_MAX];
    struct env_file *file = NULL;
    struct error ignored;
    if (offset == walk->end)
        return true;
    uint8_t *chunk = mem_alloc_aligned(WAL_BLOCK, CHUNK);
    wal_segment_path(wal, walk->segment->identity.id, SEGMENT_ACTIVE, path);
    bool is_same =
        chunk && env_open(wal->env, path, ENV_READ | ENV_DIRECT, &file, &ignored) == STATUS_OK;
    while (is_same && offset < walk->end) {
        size_t wanted = size_min((size_t)(walk->end - offset), CHUNK), got;
        is_same = env_read(file, offset, chunk, (size_t)align_up(wanted, WAL_BLOCK), &got,
                           &ignored) == STATUS_OK &&
                  got >= wanted && memcmp(chunk, walk->data + offset, wanted) == 0;
        offset += wanted;
    }
    env_close(file);
    mem_free(chunk);
    return is_same;
}

static enum status seal_in_place(struct wal *wal, const struct walk *walk, const struct buf *footer,
                                 struct error *err)
{
    char from[PATH_BYTES_MAX], to[PATH_BYTES_MAX], dir[PATH_BYTES_MAX];
    struct env_file *file = NULL;
    enum status status;
    wal_segment_path(wal, walk->segment->identity.id, SEGMENT_ACTIVE, from);
    wal_segment_path(wal, walk->segment->identity.id, SEGMENT_SEALED, to);
    TRY(env_open(wal->env, from, ENV_READ | ENV_WRITE, &file, err));
    /* The footer's floor says that all of it is durable: it is, before the footer can be. */
    if (proven_end(walk) < walk->end)
        TRY_OR_DONE(status, env_sync(file, err));
    TRY_OR_DONE(status, env_write(file, walk->end, footer->data, footer->length, err));
    TRY_OR_DONE(status, env_truncate(file, walk->end + footer->length, err));
    TRY_OR_DONE(status, env_sync(file, err));
    TRY_OR_DONE(status, env_rename(wal->env, from, to, err));
    path_parent(dir, to);
    TRY_OR_DONE(status, env_dir_sync(wal->env, dir, err));
    path_parent(dir, from);
    status = env_dir_sync(wal->env, dir, err);
done:
    env_close(file);
    return status;
}

static enum status seal_recovered(struct walk *walk, struct error *err)
{
    struct wal *wal = walk->wal;
    struct segment *segment = walk->segment;
    struct buf footer = {0};
    struct env_stat stat;
    char path[PATH_BYTES_MAX];
    enum status status;
    segment->is_cut = walk->is_cut;
    segment->data_end = walk->end;
    segment->sealed_wall_ns = env_wall_ns(wal->env);
    footer_encode(wal, segment, walk->end, walk->last + 1, segment->sealed_wall_ns, 0, &footer);
    TRY_OR_DONE(status, buf_status(&footer, "log: footer", err));
    status = is_on_disk(wal, walk, proven_end(walk)) ? seal_in_place(wal, walk, &footer, err)
                                                     : seal_copy(wal, walk, &footer, err);
    if (status != STATUS_OK)
        goto done;
    wal_segment_path(wal, segment->identity.id, SEGMENT_SEALED, path);
    TRY_OR_DONE(status, env_path_stat(wal->env, path, &stat, err));
    segment->place = SEGMENT_SEALED;
    segment->file_bytes = stat.bytes;
    segment->allocated_bytes = stat.allocated_bytes;
    wal->recovery.tails_cut += walk->is_cut;
done:
    buf_deinit(&footer);
    return status;
}

/* ---- segments in order ---- */

struct named {
    uint64_t id;
    enum segment_place place;
};

static enum status name_remove(struct wal *wal, const struct named *named, struct error *err)
{
    char path[PATH_BYTES_MAX];
    if (wal->options.is_read_only)
        return STATUS_OK;
    wal_segment_path(wal, named->id, named->place, path);
    return files_remove(wal->env, path, err);
}

static enum status keep(struct wal *wal, struct segment *segment, struct error *err)
{
    if (!index_segment_add(wal, segment))
        return recover_no_memory(err);
    wal->recovery.segments++;
    return STATUS_OK;
}

/* Sealed bytes: the footer, or all of it if that does not verify. */
static enum status load_sealed(struct wal *wal, struct segment *segment, const char *path,
                               bool is_last, bool has_header, uint64_t header_bytes,
                               struct error *err)
{
    struct walk walk = {.wal = wal, .segment = segment, .is_salted = has_header};
    enum status status = footer_read(wal, segment, path, err);
    if (status == STATUS_OK) {
        truncations_apply(wal, segment->identity.id, segment);
        TRY(footer_replay(wal, segment, err));
        segment_ends_drop(segment);
        return wal->needs_commit ? STATUS_OK : footer_state_replay(wal, segment, path, err);
    }
    if (status != STATUS_CORRUPT)
        return status;
    snprintf(segment->problem, sizeof segment->problem, "%.110s", err->message);
    segment->data_end = segment->file_bytes;
    status = walk_file(&walk, path, has_header ? header_bytes : WAL_BLOCK, err);
    /* The header of the next segment says where the groups stood; without one only the size does.
     */
    if (status == STATUS_OK && is_last && !walk.has_footer) {
        walk.lost_bytes += walk.bytes > walk.end ? walk.bytes - walk.end : 0;
        status = walk_tail_bound(&walk, err);
    }
    walk_deinit(&walk);
    return status;
}

static enum status load_active(struct wal *wal, struct segment *segment, const char *path,
                               bool is_last, bool has_header, uint64_t header_bytes,
                               bool *out_is_cut, bool *out_is_unused, struct error *err)
{
    struct walk walk = {
        .wal = wal, .segment = segment, .may_cut = is_last, .is_salted = has_header};
    if (segment->identity.id == wal->mark.id)
        walk.mark = &wal->mark;
    enum status status = walk_file(&walk, path, has_header ? header_bytes : WAL_BLOCK, err);
    bool is_unused = status == STATUS_OK && !has_header && walk.unit_count == 0;
    if (is_unused) {
        /* Named, but its header was never synced: nothing was ever written to it. Should there
         * have been more, mark_check says so. */
        *out_is_unused = true;
        walk_deinit(&walk);
        return STATUS_OK;
    }
    if (status == STATUS_OK && walk.may_cut && !walk.has_footer)
        status = walk_tail_bound(&walk, err);
    if (status == STATUS_OK && !wal->options.is_read_only)
        status = seal_recovered(&walk, err);
    *out_is_cut = walk.is_cut;
    walk_deinit(&walk);
    return status;
}

static enum status segment_load(struct wal *wal, const struct named *named, bool is_last,
                                bool is_last_of_all, bool *out_is_cut, struct error *err)
{
    char path[PATH_BYTES_MAX];
    struct env_stat stat;
    uint64_t header_bytes = 0;
    struct header_rows rows = {0};
    struct segment *segment = segment_create(named->id);
    if (!segment)
        return recover_no_memory(err);
    segment->identity.log_id = wal_log_id_of_segment(wal, named->id);
    segment->place = named->place;
    wal_segment_path(wal, named->id, named->place, path);
    enum status status;
    TRY_OR_DONE(status, env_path_stat(wal->env, path, &stat, err));
    segment->file_bytes = stat.bytes;
    segment->allocated_bytes = stat.allocated_bytes;
    segment->data_end = stat.bytes;
    status = header_load(wal, segment, path, &rows, &header_bytes, err);
    bool has_header = status == STATUS_OK, is_unused = false;
    if (!has_header && status != STATUS_CORRUPT)
        goto done;
    if (!has_header)
        snprintf(segment->problem, sizeof segment->problem, "%.110s", err->message);
    if (has_header &&
        !log_id_equal(segment->identity.log_id, wal_log_id_of_segment(wal, named->id))) {
        status = error_set(err, STATUS_CORRUPT, "log: segment %llu belongs to another log",
                           (unsigned long long)named->id);
        goto done;
    }
    truncations_apply(wal, named->id - 1, NULL);
    if (has_header)
        TRY_OR_DONE(status, rows_replay(wal, segment, &rows, err));
    truncations_apply(wal, named->id, segment);
    if (named->place == SEGMENT_ACTIVE)
        status = load_active(wal, segment, path, is_last, has_header, header_bytes, out_is_cut,
                             &is_unused, err);
    else
        status = load_sealed(wal, segment, path, is_last_of_all, has_header, header_bytes, err);
    if (status == STATUS_OK && is_unused) {
        wal->recovery.segments_dropped++;
        status = name_remove(wal, named, err);
        goto done;
    }
    if (status == STATUS_OK)
        status = keep(wal, segment, err);
    if (status == STATUS_OK)
        segment = NULL;
done:
    mem_free(rows.items);
    if (segment) {
        /* Its runs may be in the groups already. */
        struct segment *failed = segment;
        if (index_segment_add(wal, failed))
            index_segment_drop(wal, failed);
    }
    return status;
}

/* ---- directories ---- */

struct names {
    struct named *items;
    size_t count, capacity;
};

static bool number_of(const char *name, const char *suffix, uint64_t *out_number)
{
    return strlen(name) == 16 + strlen(suffix) && strcmp(name + 16, suffix) == 0 &&
           hex_u64(name, 16, out_number);
}

/* One name a segment: after an interrupted move the later place wins. */
static enum status names_add(struct wal *wal, struct names *names, struct named named,
                             struct error *err)
{
    for (size_t i = 0; i < names->count; i++) {
        if (names->items[i].id != named.id)
            continue;
        TRY(name_remove(wal, &names->items[i], err));
        names->items[i].place = named.place; /* listed active, sealed, committed */
        return STATUS_OK;
    }
    if (!grow((void **)&names->items, &names->capacity, names->count, sizeof *names->items))
        return recover_no_memory(err);
    size_t at = names->count++;
    for (; at > 0 && names->items[at - 1].id > named.id; at--)
        names->items[at] = names->items[at - 1];
    names->items[at] = named;
    return STATUS_OK;
}

static enum status spare_found(struct wal *wal, const char *dir, const char *name,
                               struct error *err)
{
    struct spare spare = {0};
    char path[PATH_BYTES_MAX];
    struct env_stat stat;
    TRY(path_join(path, dir, name, err));
    spare.is_written = number_of(name, ".spare", &spare.number);
    TRY(env_path_stat(wal->env, path, &stat, err));
    bool is_spare = spare.is_written || number_of(name, ".blank", &spare.number);
    /* L17: an interrupted rename leaves a segment with a second name here. */
    if (!is_spare || stat.link_count != 1 || stat.bytes < wal->options.segment_bytes / 2)
        return wal->options.is_read_only ? STATUS_OK : files_remove(wal->env, path, err);
    spare.bytes = stat.bytes;
    spare.allocated_bytes = stat.allocated_bytes;
    if (spare.number >= wal->spare_next)
        wal->spare_next = spare.number + 1;
    return spare_add(wal, &spare) ? STATUS_OK : recover_no_memory(err);
}

static enum status folder_list(struct wal *wal, enum segment_place place, struct names *names,
                               struct error *err)
{
    struct arena arena;
    char dir[PATH_BYTES_MAX], path[PATH_BYTES_MAX], **found;
    size_t count;
    arena_init(&arena, 0);
    wal_path(wal, dir, segment_folder(place), NULL, 0);
    enum status status = files_list(wal->env, dir, &arena, &found, &count, err);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        struct named named = {.place = place};
        if (number_of(found[i], ".seg", &named.id)) {
            status = names_add(wal, names, named, err);
        } else if (!wal->options.is_read_only) {
            status = path_join(path, dir, found[i], err);
            if (status == STATUS_OK)
                status = files_remove(wal->env, path, err); /* an interrupted copy */
        }
    }
    arena_deinit(&arena);
    return status;
}

static enum status spares_list(struct wal *wal, struct error *err)
{
    struct arena arena;
    char dir[PATH_BYTES_MAX], **found;
    size_t count;
    arena_init(&arena, 0);
    wal_path(wal, dir, "spare", NULL, 0);
    enum status status = files_list(wal->env, dir, &arena, &found, &count, err);
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        status = spare_found(wal, dir, found[i], err);
    arena_deinit(&arena);
    return status;
}

/* Segments that the checkpoint counts as present and that are not: their entries show as holes. */
static void missing_count(struct wal *wal, const struct names *names)
{
    for (size_t i = 0; i < wal->expected_count; i++) {
        bool is_there = false;
        for (size_t k = 0; k < names->count && !is_there; k++)
            is_there = names->items[k].id == wal->expected[i];
        wal->recovery.segments_missing += !is_there;
    }
}

/* The newest segment that was written to is gone, or nothing of it can be read: its entries are
 * damage of unknown extent, in any group. */
static enum status mark_check(struct wal *wal, struct error *err)
{
    char where[80];
    for (size_t i = 0; i < wal->segment_count; i++)
        if (wal->segments[i]->identity.id == wal->mark.id)
            return STATUS_OK;
    if (wal->mark.id == 0)
        return STATUS_OK;
    snprintf(where, sizeof where, "segment %llu: not there, or nothing in it",
             (unsigned long long)wal->mark.id);
    for (uint32_t g = 0; g < wal->group_count; g++)
        TRY(recover_tail_lost(wal, g, wal->mark.bytes, where, err));
    wal->recovery.segments_missing++;
    wal->mark.id = 0; /* the groups' positions tell of it from here on */
    return STATUS_OK;
}

static enum status segments_load(struct wal *wal, const struct names *names, struct error *err)
{
    bool is_cut = false;
    for (size_t i = 0; i < names->count; i++) {
        const struct named *named = &names->items[i];
        if (named->id >= wal->segment_next)
            wal->segment_next = named->id + 1;
        if (wal->options.restore && wal_restore_is_done_with(wal, named->id)) {
            TRY(name_remove(wal, named, err));
            continue;
        }
        if (is_cut) {
            TRY(name_remove(wal, named, err)); /* L21 */
            wal->recovery.segments_dropped++;
            continue;
        }
        /* A sealed successor proves that this one was whole once: nothing of it may be cut. */
        bool has_sealed_after = false;
        for (size_t k = i + 1; k < names->count; k++)
            has_sealed_after |= names->items[k].place != SEGMENT_ACTIVE;
        TRY(segment_load(wal, named, !has_sealed_after, i + 1 == names->count, &is_cut, err));
    }
    return STATUS_OK;
}

/* The farthest position of each group that a table was acknowledged to; seq 0: none was. */
static void acked_ends(const struct wal *wal, struct wal_position *ends)
{
    for (size_t i = 0; i < wal->table_count; i++) {
        const struct wal_ack *acks = wal->tables[i]->acks;
        for (uint32_t g = 0; acks && g < wal->group_count; g++)
            if (acks[g].through.seq > ends[g].seq)
                ends[g] = acks[g].through;
    }
}

/* Checkpoint and acknowledgements may know of more than the files that are left; no number of that
 * is given out again (L3). */
static enum status state_catch_up(struct wal *wal, struct error *err)
{
    struct wal_position *ends = mem_alloc_zero(wal->group_count, sizeof *ends);
    enum status status = STATUS_OK;
    if (!ends)
        return recover_no_memory(err);
    acked_ends(wal, ends);
    for (uint32_t g = 0; g < wal->group_count && status == STATUS_OK; g++) {
        struct group *group = &wal->groups[g];
        status = recover_group_jump(wal, g, group->state_seq + 1, group->state_chain,
                                    "known to the checkpoint alone", err);
        if (status == STATUS_OK)
            status = recover_group_jump(wal, g, ends[g].seq + 1, ends[g].chain,
                                        "known to acknowledgements alone", err);
        group->seq = group->synced_seq;
        group->chain = group->synced_chain;
    }
    mem_free(ends);
    return status;
}

static enum status voids_settle(struct wal *wal, struct error *err)
{
    for (size_t i = 0; i < wal->void_count; i++) {
        if (!damage_clear(wal, wal->voids[i].group, wal->voids[i].first, wal->voids[i].last))
            return recover_no_memory(err);
        wal->recovery.entries_voided += wal->voids[i].last - wal->voids[i].first + 1;
    }
    wal->recovery.damaged_ranges = wal->damage_count;
    return STATUS_OK;
}

enum status wal_recover(struct wal *wal, struct error *err)
{
    struct names names = {0};
    enum status status;
    TRY_OR_DONE(status, spares_list(wal, err));
    TRY_OR_DONE(status, folder_list(wal, SEGMENT_ACTIVE, &names, err));
    TRY_OR_DONE(status, folder_list(wal, SEGMENT_SEALED, &names, err));
    TRY_OR_DONE(status, folder_list(wal, SEGMENT_COMMITTED, &names, err));
    missing_count(wal, &names);
    TRY_OR_DONE(status, segments_load(wal, &names, err));
    truncations_apply(wal, UINT64_MAX, NULL);
    TRY_OR_DONE(status, mark_check(wal, err));
    TRY_OR_DONE(status, state_catch_up(wal, err));
    TRY_OR_DONE(status, voids_settle(wal, err));
    if (wal->segment_count > 0)
        wal->writer.previous_id = wal->segments[wal->segment_count - 1]->identity.id;
done:
    mem_free(names.items);
    return status == STATUS_OK ? status : error_prefix(err, "log: recovery of %.200s", wal->dir);
}
