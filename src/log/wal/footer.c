/* SPDX-License-Identifier: Apache-2.0
 *
 * The footer of a sealed segment (L16): all that a start needs to know of it, so that sealed bytes
 * cost their footers only. It is one unit whose single record holds the body laid out in
 * docs/format/segment.md; a trailer in the last 64 bytes of the file points back to it.
 */
#include "log/wal/wal_internal.h"

enum { FOOTER_IS_CUT = 1, FOOTER_IS_COMPACTED = 2 };

/* A run or a table row may be empty: made for a unit that then could not be written. */
static uint32_t runs_used(const struct segment *segment)
{
    uint32_t used = 0;
    for (size_t i = 0; i < segment->run_count; i++)
        used += segment->runs[i]->count > 0;
    return used;
}

static uint32_t tables_used(const struct segment *segment)
{
    uint32_t used = 0;
    for (size_t i = 0; i < segment->table_count; i++)
        used += segment->tables[i].entries > 0;
    return used;
}

/* Where the group stood at the segment's end: of one that is compacted its first footer said so. */
static struct group_row end_of(const struct wal *wal, const struct segment *segment, uint32_t group)
{
    for (uint32_t i = 0; i < segment->end_count; i++)
        if (segment->ends[i].group == group)
            return segment->ends[i];
    return (struct group_row){.last_seq = wal->groups[group].synced_seq,
                              .chain = wal->groups[group].synced_chain,
                              .term = wal->groups[group].term};
}

static void put_groups(const struct wal *wal, const struct segment *segment, struct buf *out)
{
    for (size_t i = 0; i < segment->run_count; i++) {
        const struct run *run = segment->runs[i];
        if (run->count == 0)
            continue;
        struct group_row end = end_of(wal, segment, run->group);
        buf_put_le32(out, run->group);
        buf_put_le32(out, 0);
        buf_put_le64(out, run->first_seq);
        buf_put_le64(out, end.last_seq);
        buf_put_le64(out, end.chain);
        buf_put_le64(out, end.term);
        buf_put_le64(out, 0); /* vote, commit: replication's */
        buf_put_le64(out, 0);
    }
}

static void put_tables(const struct segment *segment, struct buf *out)
{
    for (size_t i = 0; i < segment->table_count; i++) {
        const struct segment_table *table = &segment->tables[i];
        if (table->entries == 0)
            continue;
        buf_put_le32(out, table->group);
        buf_put_le32(out, table->table_id);
        buf_put_le64(out, table->first_seq);
        buf_put_le64(out, table->last_seq);
        buf_put_le64(out, table->entries);
        buf_put_le64(out, table->rows);
        buf_put_le64(out, table->bytes);
        buf_put_le64(out, (uint64_t)table->time_min_us);
        buf_put_le64(out, (uint64_t)table->time_max_us);
    }
}

static void put_schemas(const struct wal *wal, const struct segment *segment, struct buf *out)
{
    for (size_t i = 0; i < segment->schema_count; i++) {
        const struct schema *schema = schema_find(wal, segment->schemas[i]);
        CHECK(schema);
        buf_put_le64(out, schema->fingerprint);
        buf_put_le32(out, (uint32_t)schema->length);
        buf_put(out, schema->message, schema->length);
    }
}

static void put_runs(const struct segment *segment, struct buf *out)
{
    for (size_t i = 0; i < segment->run_count; i++) {
        const struct run *run = segment->runs[i];
        uint32_t at = 0, age_ms = 0;
        if (run->count == 0)
            continue;
        buf_put_le32(out, run->group);
        buf_put_le32(out, run->count);
        buf_put_le64(out, run->first_seq);
        for (uint32_t k = 0; k < run->count; k++) {
            const struct index_entry *entry = &run->entries[k];
            if (segment->is_compacted)
                buf_put_varint(out, k ? run_seq(run, k) - run_seq(run, k - 1) - 1 : 0);
            buf_put_byte(out, (uint8_t)(entry->type | (entry->has_producers ? 0x80 : 0)));
            buf_put_varint(out, entry->at - at);
            buf_put_varint(out, entry->header_bytes);
            buf_put_varint(out, entry->payload_bytes);
            buf_put_varint(out, entry->table_id);
            buf_put_varint(out, entry->rows);
            buf_put_zigzag(out, (int64_t)entry->age_ms - age_ms);
            at = entry->at;
            age_ms = entry->age_ms;
        }
    }
}

static void put_body(const struct wal *wal, const struct segment *segment, uint64_t unit_offset,
                     uint64_t unit_number, int64_t wall_ns, struct buf *out)
{
    buf_put_le32(out, 0); /* version */
    buf_put_le32(out, (segment->is_cut ? FOOTER_IS_CUT : 0) |
                          (segment->is_compacted ? FOOTER_IS_COMPACTED : 0));
    buf_put_le64(out, unit_offset);
    buf_put_le64(out, unit_number - 1);
    buf_put_le64(out, (uint64_t)wall_ns);
    buf_put_le64(out, (uint64_t)segment->created_wall_ns);
    buf_put_le64(out, segment->term);
    buf_put_le32(out, runs_used(segment));
    buf_put_le32(out, tables_used(segment));
    buf_put_le32(out, (uint32_t)segment->schema_count);
    buf_put_le32(out, (uint32_t)segment->void_count);
    buf_put_le32(out, truncations_put(wal, segment->identity.id, NULL));
    buf_put_le32(out, 0); /* HARD_STATE records */
    put_groups(wal, segment, out);
    truncations_put(wal, segment->identity.id, out);
    put_tables(segment, out);
    put_schemas(wal, segment, out);
    for (size_t i = 0; i < segment->void_count; i++) {
        buf_put_le32(out, segment->voids[i].group);
        buf_put_le64(out, segment->voids[i].first);
        buf_put_le64(out, segment->voids[i].last);
        buf_put_le64(out, segment->voids[i].chain);
        buf_put_le64(out, segment->voids[i].term);
    }
    put_runs(segment, out);
}

void footer_encode(const struct wal *wal, const struct segment *segment, uint64_t unit_offset,
                   uint64_t unit_number, int64_t wall_ns, uint64_t bytes_least, struct buf *out)
{
    uint64_t record_at = unit_head_bytes(1);
    uint64_t body_at = record_at + align_up(RECORD_HEADER_FIXED, WAL_ALIGN);
    uint8_t *head = buf_extend(out, (size_t)body_at);
    if (!head)
        return;
    memset(head, 0, (size_t)body_at);
    put_body(wal, segment, unit_offset, unit_number, wall_ns, out);
    uint64_t body_bytes = out->length - body_at;
    uint64_t unit_bytes =
        align_up(align_up(out->length, WAL_ALIGN) + FOOTER_TRAILER_BYTES, WAL_BLOCK);
    if (unit_bytes < bytes_least)
        unit_bytes = bytes_least;
    uint8_t *rest = buf_extend(out, (size_t)(unit_bytes - out->length));
    if (!rest)
        return;
    memset(rest, 0, (size_t)(out->data + unit_bytes - rest));

    uint32_t seed = segment_seed(&segment->identity);
    struct record record = {
        .type = RECORD_FOOTER,
        .log_id = segment->identity.log_id,
        .payload_crc = crc32c(0, out->data + body_at, (size_t)body_bytes),
        .payload_bytes = body_bytes,
    };
    struct unit_row row = {.offset = record_at,
                           .payload_bytes = (uint32_t)body_bytes,
                           .payload_crc = record.payload_crc,
                           .type = RECORD_FOOTER};
    row.header_crc = record_encode(out->data + record_at, &record, NULL, seed);
    row.header_bytes = record.header_bytes;
    unit_row_encode(out->data, 0, &row);
    unit_header_encode(out->data,
                       &(struct unit_header){.number = unit_number,
                                             .floor = unit_number - 1,
                                             .unit_bytes = unit_bytes,
                                             .record_count = 1,
                                             .kind = UNIT_FOOTER,
                                             .wall_ns = wall_ns,
                                             .salt = segment->identity.salt},
                       seed);
    segment_trailer_encode(out->data + unit_bytes - FOOTER_TRAILER_BYTES, &segment->identity,
                           unit_offset, unit_bytes);
}

/* ---- decoding ---- */

static enum status bad(struct error *err, const char *what)
{
    return error_set(err, STATUS_CORRUPT, "footer: %s", what);
}

static enum status get_tables(const struct wal *wal, struct segment *segment, struct cursor *cursor,
                              uint32_t count, struct error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t group = cursor_get_le32(cursor), table_id = cursor_get_le32(cursor);
        if (cursor->failed || group >= wal->group_count)
            return bad(err, "table row");
        struct segment_table *table = segment_table_get(segment, group, table_id);
        if (!table)
            return error_set(err, STATUS_NO_MEMORY, "footer: out of memory");
        table->first_seq = cursor_get_le64(cursor);
        table->last_seq = cursor_get_le64(cursor);
        table->entries = cursor_get_le64(cursor);
        table->rows = cursor_get_le64(cursor);
        table->bytes = cursor_get_le64(cursor);
        table->time_min_us = (int64_t)cursor_get_le64(cursor);
        table->time_max_us = (int64_t)cursor_get_le64(cursor);
    }
    return STATUS_OK;
}

enum { TRUNCATION_BYTES = 28 };

/* Once all of the footer is known to hold. */
static enum status take_truncates(struct wal *wal, struct segment *segment, struct cursor rows,
                                  uint32_t count, struct error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        struct truncation row = {.group = cursor_get_le32(&rows), .segment = segment->identity.id};
        row.after = cursor_get_le64(&rows);
        row.chain = cursor_get_le64(&rows);
        row.term = cursor_get_le64(&rows);
        if (row.group >= wal->group_count)
            return bad(err, "truncation");
        if (!truncation_add(wal, &row))
            return error_set(err, STATUS_NO_MEMORY, "footer: out of memory");
        segment->has_state = true;
    }
    return STATUS_OK;
}

static enum status get_schemas(struct wal *wal, struct segment *segment, struct cursor *cursor,
                               uint32_t count, struct error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t fingerprint = cursor_get_le64(cursor);
        uint32_t length = cursor_get_le32(cursor);
        const uint8_t *message = cursor_take(cursor, length);
        if (!message || fingerprint == 0)
            return bad(err, "schema");
        if (!schema_put(wal, fingerprint, span_of(message, length)) ||
            !grow((void **)&segment->schemas, &segment->schema_capacity, segment->schema_count,
                  sizeof *segment->schemas))
            return error_set(err, STATUS_NO_MEMORY, "footer: out of memory");
        segment->schemas[segment->schema_count++] = fingerprint;
    }
    return STATUS_OK;
}

static enum status get_voids(const struct wal *wal, struct segment *segment, struct cursor *cursor,
                             uint32_t count, struct error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        struct void_range range = {.group = cursor_get_le32(cursor)};
        range.first = cursor_get_le64(cursor);
        range.last = cursor_get_le64(cursor);
        range.chain = cursor_get_le64(cursor);
        range.term = cursor_get_le64(cursor);
        if (cursor->failed || range.group >= wal->group_count || range.first == 0 ||
            range.last < range.first)
            return bad(err, "void row");
        if (!grow((void **)&segment->voids, &segment->void_capacity, segment->void_count,
                  sizeof *segment->voids))
            return error_set(err, STATUS_NO_MEMORY, "footer: out of memory");
        segment->voids[segment->void_count++] = range;
        segment->has_state = true;
        segment->entry_count++;
    }
    return STATUS_OK;
}

/* Links the entry into its table's chain; the table's totals came from the footer already. */
static bool link_entry(struct segment *segment, struct run *run, uint32_t index)
{
    struct index_entry *entry = &run->entries[index];
    if (entry->type != WAL_DATA)
        return true;
    struct segment_table *table = segment_table_find(segment, run->group, entry->table_id);
    if (!table)
        return false;
    if (run_seq(run, index) == table->first_seq)
        table->first = index;
    else
        run->entries[table->last].next = index;
    table->last = index;
    return true;
}

/* A table's row says what its entries add up to: whoever follows the links counts on where they
 * end. */
static bool row_is_true(const struct segment *segment, const struct segment_table *row)
{
    struct segment_table sum = {0};
    const struct run *run = segment_run_find(segment, row->group);
    uint32_t index = row->first;
    if (row->entries == 0 || !run || row->entries > run->count ||
        run_seq(run, row->last) != row->last_seq || run_seq(run, index) != row->first_seq)
        return row->entries == 0;
    for (;; index = run->entries[index].next) {
        const struct index_entry *entry = &run->entries[index];
        if (entry->type != WAL_DATA || entry->table_id != row->table_id)
            return false;
        sum.entries++;
        sum.rows += entry->rows;
        sum.bytes += entry->payload_bytes;
        if (index == row->last)
            break;
        if (entry->next <= index)
            return false;
    }
    return sum.entries == row->entries && sum.rows == row->rows && sum.bytes == row->bytes;
}

static enum status get_run(const struct wal *wal, struct segment *segment, struct cursor *cursor,
                           struct error *err)
{
    uint32_t group = cursor_get_le32(cursor), count = cursor_get_le32(cursor);
    uint64_t first_seq = cursor_get_le64(cursor);
    if (cursor->failed || group >= wal->group_count || first_seq == 0 ||
        count > cursor_left(cursor) / 7)
        return bad(err, "run");
    if (segment_run_find(segment, group))
        return bad(err, "a group's second run");
    struct run *run = segment_run_get(segment, group);
    struct index_entry *entries = run ? mem_alloc_zero(count, sizeof(struct index_entry)) : NULL;
    if (!entries)
        return error_set(err, STATUS_NO_MEMORY, "footer: out of memory");
    run->entries = entries;
    run->capacity = run->count = count;
    run->first_seq = first_seq;
    if (segment->is_compacted && !(run->steps = mem_alloc_zero(count, sizeof *run->steps)))
        return error_set(err, STATUS_NO_MEMORY, "footer: out of memory");
    uint64_t at = 0, step = 0;
    int64_t age_ms = 0;
    for (uint32_t i = 0; i < count; i++, step++) {
        if (run->steps) {
            uint64_t left_out = cursor_get_varint(cursor);
            if (left_out > UINT32_MAX || (i == 0 && left_out))
                return bad(err, "step");
            step += left_out;
            run->steps[i] = (uint32_t)step;
        }
        uint8_t type = cursor_get_byte(cursor);
        at += cursor_get_varint(cursor);
        uint64_t header_bytes = cursor_get_varint(cursor);
        uint64_t payload_bytes = cursor_get_varint(cursor);
        uint64_t table_id = cursor_get_varint(cursor), rows = cursor_get_varint(cursor);
        age_ms += cursor_get_zigzag(cursor);
        if (cursor->failed || at > UINT32_MAX || step > UINT32_MAX ||
            header_bytes > RECORD_HEADER_MAX ||
            (header_bytes < RECORD_HEADER_FIXED && type != ENTRY_LOST) ||
            payload_bytes > UINT32_MAX || table_id > UINT32_MAX || rows > UINT32_MAX ||
            at * WAL_ALIGN + record_bytes(header_bytes, payload_bytes) > segment->data_end ||
            first_seq + step < first_seq)
            return bad(err, "entry");
        run->entries[i] = (struct index_entry){.at = (uint32_t)at,
                                               .header_bytes = (uint32_t)header_bytes,
                                               .payload_bytes = (uint32_t)payload_bytes,
                                               .table_id = (uint32_t)table_id,
                                               .rows = (uint32_t)rows,
                                               .age_ms = (uint32_t)age_ms,
                                               .type = type & 0x7f,
                                               .has_producers = (type & 0x80) != 0};
        if ((type & 0x80) || (type & 0x7f) == WAL_TABLE)
            segment->has_state = true;
        if (!link_entry(segment, run, i))
            return bad(err, "entry of a table without a row");
    }
    segment->entry_count += count;
    return STATUS_OK;
}

static enum status find_body(const struct segment *segment, struct span unit,
                             struct cursor *out_body, struct error *err)
{
    struct unit_header header;
    struct unit_row row;
    struct record record;
    if (unit_header_decode(unit, &segment->identity, true, &header) != STATUS_OK ||
        header.kind != UNIT_FOOTER || header.record_count != 1 || header.unit_bytes > unit.length ||
        !unit_rows_are_sound(unit.data, &header))
        return bad(err, "unit header");
    unit_row_decode(unit.data, 0, &row);
    TRY(record_decode(span_of(unit.data + row.offset, row.header_bytes),
                      segment_seed(&segment->identity), &record, err));
    const uint8_t *body = unit.data + row.offset + align_up(row.header_bytes, WAL_ALIGN);
    if (record.type != RECORD_FOOTER || record.payload_bytes != row.payload_bytes ||
        !sum_holds(record.payload_crc, crc32c(0, body, row.payload_bytes)))
        return bad(err, "checksum");
    *out_body = cursor_of(body, row.payload_bytes);
    return STATUS_OK;
}

bool footer_is_compacted(const struct segment *segment, struct span unit)
{
    struct cursor cursor = {0};
    struct error ignored;
    if (find_body(segment, unit, &cursor, &ignored) != STATUS_OK)
        return false;
    cursor_get_le32(&cursor); /* version */
    return cursor_get_le32(&cursor) & FOOTER_IS_COMPACTED;
}

/* The chain at the end of each group. */
static enum status get_ends(struct segment *segment, const uint8_t *rows, uint32_t groups,
                            struct error *err)
{
    struct group_row *ends = mem_alloc_zero(groups, sizeof *ends);
    if (!ends)
        return error_set(err, STATUS_NO_MEMORY, "footer: out of memory");
    for (uint32_t i = 0; i < groups; i++) {
        const uint8_t *at = rows + (size_t)i * GROUP_ROW_BYTES;
        ends[i] = (struct group_row){.group = get_le32(at),
                                     .first_seq = get_le64(at + 8),
                                     .last_seq = get_le64(at + 16),
                                     .chain = get_le64(at + 24),
                                     .term = get_le64(at + 32)};
    }
    mem_free(segment->ends);
    segment->ends = ends;
    segment->end_count = groups;
    return STATUS_OK;
}

enum status footer_decode_ends(struct segment *segment, struct span unit, uint64_t *out_number,
                               struct error *err)
{
    enum { COUNTS_AT = 48, COUNTS_BYTES = 24 };
    struct cursor cursor = {0};
    TRY(find_body(segment, unit, &cursor, err));
    cursor_take(&cursor, COUNTS_AT);
    uint32_t groups = cursor_get_le32(&cursor);
    cursor_take(&cursor, COUNTS_BYTES - 4);
    const uint8_t *rows = cursor_take(&cursor, (size_t)groups * GROUP_ROW_BYTES);
    if (!rows)
        return bad(err, "group rows");
    *out_number = get_le64(unit.data + 8);
    return get_ends(segment, rows, groups, err);
}

static enum status get_body(struct wal *wal, struct segment *segment, struct span unit,
                            struct error *err)
{
    struct cursor cursor = {0};
    TRY(find_body(segment, unit, &cursor, err));
    uint32_t version = cursor_get_le32(&cursor), flags = cursor_get_le32(&cursor);
    segment->data_end = cursor_get_le64(&cursor);
    cursor_get_le64(&cursor); /* last unit */
    segment->sealed_wall_ns = (int64_t)cursor_get_le64(&cursor);
    segment->created_wall_ns = (int64_t)cursor_get_le64(&cursor);
    segment->term = cursor_get_le64(&cursor);
    uint32_t groups = cursor_get_le32(&cursor), tables = cursor_get_le32(&cursor);
    uint32_t schemas = cursor_get_le32(&cursor), voids = cursor_get_le32(&cursor);
    uint32_t truncates = cursor_get_le32(&cursor), hard_states = cursor_get_le32(&cursor);
    if (cursor.failed || version != 0 || hard_states || (truncates && !wal->needs_commit))
        return error_set(err, STATUS_UNSUPPORTED, "footer: version %u", version);
    segment->is_cut = flags & FOOTER_IS_CUT;
    segment->is_compacted = flags & FOOTER_IS_COMPACTED;
    const uint8_t *rows = cursor_take(&cursor, (size_t)groups * GROUP_ROW_BYTES);
    if (!rows)
        return bad(err, "group rows");
    struct cursor truncations = cursor;
    if (!cursor_take(&cursor, (size_t)truncates * TRUNCATION_BYTES))
        return bad(err, "truncations");
    TRY(get_tables(wal, segment, &cursor, tables, err));
    TRY(get_schemas(wal, segment, &cursor, schemas, err));
    TRY(get_voids(wal, segment, &cursor, voids, err));
    for (uint32_t i = 0; i < groups; i++)
        TRY(get_run(wal, segment, &cursor, err));
    if (cursor.failed || cursor_left(&cursor) != 0)
        return bad(err, "length");
    for (size_t i = 0; i < segment->table_count; i++)
        if (!row_is_true(segment, &segment->tables[i]))
            return bad(err, "a table's row and its entries differ");
    segment_trim(segment);
    TRY(get_ends(segment, rows, groups, err)); /* for recovery to go on from */
    return take_truncates(wal, segment, truncations, truncates, err);
}

enum status footer_decode(struct wal *wal, struct segment *segment, struct span unit,
                          struct error *err)
{
    enum status status = get_body(wal, segment, unit, err);
    if (status != STATUS_OK)
        segment_forget(segment);
    return status;
}
