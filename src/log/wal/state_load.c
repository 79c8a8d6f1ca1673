/* SPDX-License-Identifier: Apache-2.0
 *
 * state/, reading: the newest checkpoint with its changes, or the older one and both files'
 * changes.
 */
#include <stdlib.h>

#include "log/wal/state_internal.h"

static const uint64_t state_bytes_max = (uint64_t)4 << 30;

/* ---- base: decoding ---- */

static enum status corrupt(struct error *err, const char *what)
{
    return error_set(err, STATUS_CORRUPT, "checkpoint: %s", what);
}

static enum status no_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "checkpoint: out of memory");
}

static enum status get_identity(struct wal *wal, struct cursor *cursor, uint32_t count,
                                struct error *err)
{
    if (count == 0 || count > cursor_left(cursor) / 24)
        return corrupt(err, "identities");
    wal->identities = mem_alloc_zero(count, sizeof *wal->identities);
    if (!wal->identities)
        return no_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *id = cursor_take(cursor, 16);
        memcpy(wal->identities[i].log_id.bytes, id, 16);
        wal->identities[i].first_segment = cursor_get_le64(cursor);
    }
    wal->identity_count = count;
    return STATUS_OK;
}

static enum status get_groups(struct wal *wal, struct cursor *cursor, struct error *err)
{
    if (wal->group_count == 0 || wal->group_count > cursor_left(cursor) / 16)
        return corrupt(err, "groups");
    wal->groups = mem_alloc_zero(wal->group_count, sizeof *wal->groups);
    if (!wal->groups)
        return no_memory(err);
    for (uint32_t g = 0; g < wal->group_count; g++) {
        wal->groups[g].state_seq = cursor_get_le64(cursor);
        wal->groups[g].state_chain = cursor_get_le64(cursor);
    }
    return STATUS_OK;
}

static void get_ack(struct cursor *cursor, struct wal_ack *out)
{
    out->committed.seq = cursor_get_le64(cursor);
    out->committed.chain = cursor_get_le64(cursor);
    out->through.seq = cursor_get_le64(cursor);
    out->through.chain = cursor_get_le64(cursor);
}

static enum status get_tables(struct wal *wal, struct cursor *cursor, struct error *err)
{
    uint32_t count = cursor_get_le32(cursor);
    for (uint32_t i = 0; i < count; i++) {
        uint16_t length = cursor_get_le16(cursor);
        const uint8_t *name = cursor_take(cursor, length);
        bool has_acks = cursor_get_byte(cursor);
        if (!name || length > WAL_TABLE_NAME_MAX)
            return corrupt(err, "table");
        struct table *table = mem_alloc_zero(1, sizeof *table);
        char *copy = mem_alloc(length + 1u);
        struct wal_ack *acks = has_acks ? mem_alloc_zero(wal->group_count, sizeof *acks) : NULL;
        if (!table || !copy || (has_acks && !acks)) {
            mem_free(table);
            mem_free(copy);
            mem_free(acks);
            return no_memory(err);
        }
        memcpy(copy, name, length);
        copy[length] = '\0';
        *table = (struct table){.name = copy, .acks = acks};
        for (uint32_t g = 0; acks && g < wal->group_count; g++)
            get_ack(cursor, &acks[g]);
        if (!table_add(wal, table)) {
            mem_free(copy);
            mem_free(acks);
            mem_free(table);
            return no_memory(err);
        }
    }
    return STATUS_OK;
}

static enum status get_reclaimed(struct wal *wal, struct cursor *cursor, struct error *err)
{
    uint32_t count = cursor_get_le32(cursor);
    for (uint32_t i = 0; i < count && !cursor->failed; i++) {
        uint32_t group = cursor_get_le32(cursor);
        uint64_t first = cursor_get_le64(cursor), last = cursor_get_le64(cursor);
        if (group >= wal->group_count || first == 0 || last < first)
            return corrupt(err, "reclaimed range");
        if (!reclaimed_add(wal, group, first, last))
            return no_memory(err);
    }
    return STATUS_OK;
}

static enum status get_floors(struct wal *wal, struct cursor *cursor, struct error *err)
{
    uint32_t count = cursor_get_le32(cursor);
    for (uint32_t i = 0; i < count && !cursor->failed; i++) {
        uint32_t table_id = cursor_get_le32(cursor), group = cursor_get_le32(cursor);
        uint64_t seq = cursor_get_le64(cursor);
        if (group >= wal->group_count)
            return corrupt(err, "floor");
        if (!floor_raise(wal, table_id, group, seq))
            return no_memory(err);
    }
    return STATUS_OK;
}

static enum status get_segments(struct wal *wal, struct cursor *cursor, struct error *err)
{
    uint32_t count = cursor_get_le32(cursor);
    if (count > cursor_left(cursor) / 8)
        return corrupt(err, "segments");
    wal->expected = mem_alloc_zero(count, sizeof *wal->expected);
    if (!wal->expected)
        return no_memory(err);
    for (uint32_t i = 0; i < count; i++)
        wal->expected[i] = cursor_get_le64(cursor);
    wal->expected_count = count;
    return STATUS_OK;
}

static enum status get_voids(struct wal *wal, struct cursor *cursor, struct error *err)
{
    uint32_t count = cursor_get_le32(cursor);
    for (uint32_t i = 0; i < count && !cursor->failed; i++) {
        struct void_range range = {.group = cursor_get_le32(cursor)};
        range.first = cursor_get_le64(cursor);
        range.last = cursor_get_le64(cursor);
        range.chain = cursor_get_le64(cursor);
        range.term = cursor_get_le64(cursor);
        if (cursor->failed || range.group >= wal->group_count || range.first == 0 ||
            range.last < range.first)
            return corrupt(err, "void");
        if (!void_add(wal, &range))
            return no_memory(err);
    }
    return STATUS_OK;
}

static void get_mark(struct wal *wal, struct cursor *cursor)
{
    wal->mark.id = cursor_get_le64(cursor);
    wal->mark.bytes = cursor_get_le64(cursor);
    wal->mark.floor = cursor_get_le64(cursor);
}

static enum status get_lease(struct wal *wal, struct cursor *cursor, struct error *err)
{
    struct lease_state lease;
    if (!lease_decode(cursor, wal->group_count, &lease))
        return corrupt(err, "lease");
    return lease_set(wal, &lease) ? STATUS_OK : no_memory(err);
}

static enum status get_leases(struct wal *wal, struct cursor *cursor, struct error *err)
{
    uint32_t count = cursor_get_le32(cursor);
    for (uint32_t i = 0; i < count; i++)
        TRY(get_lease(wal, cursor, err));
    return STATUS_OK;
}

static enum status get_base(struct wal *wal, struct cursor *cursor, struct error *err)
{
    wal->group_count = cursor_get_le32(cursor);
    uint32_t identities = cursor_get_le32(cursor);
    wal->incarnation = cursor_get_le64(cursor);
    wal->term = cursor_get_le64(cursor);
    wal->covers = cursor_get_le64(cursor);
    wal->segment_next = cursor_get_le64(cursor);
    TRY(get_identity(wal, cursor, identities, err));
    TRY(get_groups(wal, cursor, err));
    TRY(get_tables(wal, cursor, err));
    TRY(get_reclaimed(wal, cursor, err));
    TRY(get_floors(wal, cursor, err));
    TRY(get_segments(wal, cursor, err));
    TRY(get_voids(wal, cursor, err));
    TRY(producers_decode(&wal->producers, cursor, err));
    if (cursor_left(cursor) > 0) /* the first logs did not say it */
        get_mark(wal, cursor);
    if (cursor_left(cursor) > 0)
        TRY(get_leases(wal, cursor, err));
    if (cursor_left(cursor) > 0)
        TRY(producers_times_decode(&wal->producers, cursor, err));
    if (cursor_left(cursor) > 0)
        TRY(restored_decode(wal, cursor, err));
    if (cursor_left(cursor) > 0)
        TRY(commits_decode(wal, cursor, err));
    if (cursor->failed || cursor_left(cursor) != 0)
        return corrupt(err, "length");
    return STATUS_OK;
}

/* ---- deltas ---- */

static void forget_expected(struct wal *wal, uint64_t id)
{
    for (size_t i = 0; i < wal->expected_count; i++) {
        if (wal->expected[i] != id)
            continue;
        memmove(&wal->expected[i], &wal->expected[i + 1],
                (wal->expected_count - i - 1) * sizeof *wal->expected);
        wal->expected_count--;
        return;
    }
}

enum status state_apply_ack(struct wal *wal, uint32_t table_id, const struct wal_ack *acks,
                            struct error *err)
{
    struct table *table = wal->tables[table_id - 1];
    if (!table->acks)
        table->acks = mem_alloc_zero(wal->group_count, sizeof *acks);
    if (!table->acks)
        return no_memory(err);
    for (uint32_t g = 0; g < wal->group_count; g++) {
        if (acks[g].committed.seq >= table->acks[g].committed.seq)
            table->acks[g].committed = acks[g].committed;
        if (acks[g].through.seq >= table->acks[g].through.seq)
            table->acks[g].through = acks[g].through;
    }
    return STATUS_OK;
}

static enum status get_delta_ack(struct wal *wal, struct cursor *cursor, struct error *err)
{
    uint32_t table_id = cursor_get_le32(cursor);
    if (table_id == 0 || cursor_left(cursor) != (size_t)wal->group_count * 32)
        return corrupt(err, "ack");
    if (table_id > WAL_TABLES_MAX)
        return corrupt(err, "ack");
    /* Should its name be damaged here, the TABLE entry brings it. */
    if (!table_put(wal, table_id, (struct span){0}))
        return no_memory(err);
    struct wal_ack *acks = mem_alloc_zero(wal->group_count, sizeof *acks);
    if (!acks)
        return no_memory(err);
    for (uint32_t g = 0; g < wal->group_count; g++)
        get_ack(cursor, &acks[g]);
    enum status status = state_apply_ack(wal, table_id, acks, err);
    mem_free(acks);
    return status;
}

static enum status get_delta_table(struct wal *wal, struct cursor *cursor, struct error *err)
{
    uint32_t table_id = cursor_get_le32(cursor);
    size_t length = cursor_left(cursor);
    const uint8_t *name = cursor_take(cursor, length);
    if (table_id == 0 || table_id > WAL_TABLES_MAX || length > WAL_TABLE_NAME_MAX)
        return corrupt(err, "table");
    return table_put(wal, table_id, span_of(name, length)) ? STATUS_OK : no_memory(err);
}

static enum status get_delta(struct wal *wal, struct cursor *cursor, struct error *err)
{
    uint32_t kind = cursor_get_le32(cursor);
    if (kind == DELTA_ACK)
        return get_delta_ack(wal, cursor, err);
    if (kind == DELTA_TABLE)
        return get_delta_table(wal, cursor, err);
    if (kind == DELTA_MARK) {
        get_mark(wal, cursor);
        return STATUS_OK;
    }
    if (kind == DELTA_LEASE)
        return get_lease(wal, cursor, err);
    if (kind == DELTA_LEASE_GONE) {
        lease_forget(wal, span_of(cursor->at, cursor_left(cursor)));
        return STATUS_OK;
    }
    if (kind == DELTA_FENCED) {
        wal->fenced_by = cursor_get_le64(cursor);
        return STATUS_OK;
    }
    if (kind == DELTA_COMPACT) {
        TRY(get_reclaimed(wal, cursor, err));
        return get_floors(wal, cursor, err);
    }
    if (kind == DELTA_PRODUCERS_GONE)
        return producers_expired_decode(&wal->producers, cursor, err);
    if (kind != DELTA_RECLAIM)
        return corrupt(err, "unknown record");
    uint64_t id = cursor_get_le64(cursor);
    forget_expected(wal, id);
    if (wal->mark.id == id)
        wal->mark.id = 0;
    TRY(get_reclaimed(wal, cursor, err));
    return get_floors(wal, cursor, err);
}

/* ---- loading ---- */

/* The record at `offset`; false if none verifies there. */
static bool record_at(struct span file, uint64_t offset, uint64_t number, uint64_t *out_index,
                      enum record_kind *out_kind, struct span *out_body)
{
    if (offset + STATE_HEADER_BYTES > file.length)
        return false;
    const uint8_t *header = file.data + offset;
    uint64_t body = get_le64(header + 24);
    if (get_le32(header) != STATE_MAGIC || get_le32(header + 4) != STATE_VERSION ||
        get_le64(header + 8) != number ||
        !sum_holds(get_le32(header + STATE_CRC_AT), crc32c(0, header, STATE_CRC_AT)) ||
        body > file.length - offset - STATE_HEADER_BYTES ||
        !sum_holds(get_le32(header + 36), crc32c(0, header + STATE_HEADER_BYTES, (size_t)body)))
        return false;
    *out_index = get_le64(header + 16);
    *out_kind = get_le32(header + 32);
    *out_body = span_of(header + STATE_HEADER_BYTES, (size_t)body);
    return true;
}

/* Applies every delta that verifies. A damaged one is passed over: each holds whole values, and
 * only the last, unsynced one can be torn. */
static enum status load_deltas(struct wal *wal, struct span file, uint64_t number,
                               struct error *err)
{
    uint64_t offset = 0, index, least = 1;
    enum record_kind kind;
    struct span body;
    while (offset < file.length) {
        if (!record_at(file, offset, number, &index, &kind, &body)) {
            offset += WAL_BLOCK;
            continue;
        }
        if (kind == STATE_DELTA && index >= least) {
            struct cursor cursor = cursor_of(body.data, body.length);
            TRY(get_delta(wal, &cursor, err));
            least = index + 1;
        }
        offset += align_up(STATE_HEADER_BYTES + body.length, WAL_BLOCK);
    }
    return STATUS_OK;
}

static enum status read_state(struct wal *wal, uint64_t number, struct buf *out, struct error *err)
{
    char path[PATH_BYTES_MAX];
    state_path(wal, number, path);
    return files_read(wal->env, path, state_bytes_max, out, err);
}

static bool has_base(const struct buf *file, uint64_t number, struct span *out_body)
{
    uint64_t index;
    enum record_kind kind;
    return record_at(span_of(file->data, file->length), 0, number, &index, &kind, out_body) &&
           kind == STATE_BASE;
}

/* Nothing else says what the log is, which tables it has and what they have taken. */
static enum status both_damaged(struct wal *wal, uint64_t before, uint64_t number,
                                struct error *err)
{
    char older[PATH_BYTES_MAX], newer[PATH_BYTES_MAX];
    state_path(wal, before, older);
    state_path(wal, number, newer);
    return error_set(err, STATUS_CORRUPT,
                     "log: damaged: %.130s%s%.130s; without one of them the log cannot be opened: "
                     "put both aside, and what log/state holds in a copy of this data directory "
                     "in their place",
                     before == number ? "" : older, before == number ? "" : " and ", newer);
}

static enum status load_newest(struct wal *wal, const uint64_t *numbers, size_t count,
                               struct error *err)
{
    struct buf newest = {0}, older = {0};
    struct span body;
    enum status status;
    uint64_t number = numbers[count - 1];
    TRY_OR_DONE(status, read_state(wal, number, &newest, err));
    if (has_base(&newest, number, &body)) {
        struct cursor cursor = cursor_of(body.data, body.length);
        TRY_OR_DONE(status, get_base(wal, &cursor, err));
    } else {
        if (count < 2) {
            status = both_damaged(wal, number, number, err);
            goto done;
        }
        uint64_t before = numbers[count - 2];
        TRY_OR_DONE(status, read_state(wal, before, &older, err));
        if (!has_base(&older, before, &body)) {
            status = both_damaged(wal, before, number, err);
            goto done;
        }
        struct cursor cursor = cursor_of(body.data, body.length);
        TRY_OR_DONE(status, get_base(wal, &cursor, err));
        TRY_OR_DONE(status, load_deltas(wal, span_of(older.data, older.length), before, err));
    }
    status = load_deltas(wal, span_of(newest.data, newest.length), number, err);
done:
    buf_deinit(&newest);
    buf_deinit(&older);
    return status;
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

enum status state_list(struct wal *wal, struct arena *arena, uint64_t **out_numbers,
                       size_t *out_count, struct error *err)
{
    char dir[PATH_BYTES_MAX], path[PATH_BYTES_MAX], **names;
    size_t count, used = 0;
    wal_path(wal, dir, "state", NULL, 0);
    TRY(files_list(wal->env, dir, arena, &names, &count, err));
    uint64_t *numbers = arena_alloc_zero(arena, count + 1, sizeof *numbers);
    if (!numbers)
        return no_memory(err);
    for (size_t i = 0; i < count; i++) {
        if (strlen(names[i]) == 22 && strcmp(names[i] + 16, ".state") == 0 &&
            hex_u64(names[i], 16, &numbers[used])) {
            used++;
        } else if (!wal->options.is_read_only) {
            /* An unfinished checkpoint. */
            TRY(path_join(path, dir, names[i], err));
            TRY(env_remove(wal->env, path, err));
        }
    }
    qsort(numbers, used, sizeof *numbers, compare_u64);
    *out_numbers = numbers;
    *out_count = used;
    return STATUS_OK;
}

enum status state_load(struct wal *wal, bool *out_is_new, struct error *err)
{
    struct arena arena;
    uint64_t *numbers = NULL;
    size_t count = 0;
    enum status status;
    char path[PATH_BYTES_MAX];
    arena_init(&arena, 0);
    TRY_OR_DONE(status, state_list(wal, &arena, &numbers, &count, err));
    *out_is_new = count == 0;
    if (count > 0) {
        TRY_OR_DONE(status, load_newest(wal, numbers, count, err));
        wal->state_number = numbers[count - 1];
    }
    for (size_t i = 0; i < count; i++) {
        state_path(wal, numbers[i], path);
        wal->state_allocated += wal_allocated(wal->env, path);
    }
    wal->allocated_bytes += wal->state_allocated;
done:
    arena_deinit(&arena);
    return status;
}
