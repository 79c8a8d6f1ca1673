/* SPDX-License-Identifier: Apache-2.0
 *
 * A range of the log for one table: entries read, copied out of the log's view, decoded and
 * verified. A range ends at its byte limit or where the payloads' schema changes, so that one range
 * is one schema (TB13). Its digest (E2) is what later tells our commit from any other.
 */
#include "flow/publish/publish_internal.h"

/* Payloads may be small for what they become: so many times the limit of their bytes may stand in
 * memory, and so many rows. An entry that is larger comes alone. */
enum { EXPANDED_FACTOR = 2, ROWS_MAX = 500000 };

static bool grow(void **array, size_t *capacity, size_t count, size_t bytes)
{
    if (count < *capacity)
        return true;
    size_t next = *capacity ? *capacity * 2 : 64;
    void *memory = mem_resize(*array, next * bytes);
    if (!memory)
        return false;
    *array = memory;
    *capacity = next;
    return true;
}

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "range: out of memory");
}

/* The first entry decides the schema of the range. */
static enum status take_schema(struct lane *lane, struct range *range, uint64_t fingerprint,
                               struct error *err)
{
    struct arrow_limits limits = arrow_limits_default();
    struct buf message = {0};
    size_t used = 0;
    range->schema = arena_alloc_zero(&range->arena, 1, sizeof *range->schema);
    if (!range->schema)
        return out_of_memory(err);
    enum status status = source_schema_get(lane->publisher->source, fingerprint, &message, err);
    if (status == STATUS_OK)
        status = arrow_ipc_read_schema(span_of(message.data, message.length), &limits,
                                       &range->arena, range->schema, &used, err);
    buf_deinit(&message);
    if (status != STATUS_OK)
        return error_prefix(err, "schema %016llx", (unsigned long long)fingerprint);
    range->fingerprint = fingerprint;
    return STATUS_OK;
}

static enum status decode_entry(struct range *range, const struct wal_view *view, size_t index,
                                struct error *err)
{
    struct arrow_limits limits = arrow_limits_default();
    struct buf *payload = &range->payloads[index];
    uint64_t rows = 0;
    limits.body_bytes_max = (size_t)1 << 30;
    buf_put(payload, view->payload.data, view->payload.length);
    TRY(buf_status(payload, "range", err));
    TRY(arrow_reader_create(range->schema, span_of(payload->data, payload->length), &limits,
                            &range->readers[index], err));
    for (;;) {
        size_t capacity = range->batch_capacity;
        if (!grow((void **)&range->batches, &capacity, range->batch_count, sizeof *range->batches))
            return out_of_memory(err);
        range->batch_capacity = capacity;
        struct range_batch *batch = &range->batches[range->batch_count];
        *batch = (struct range_batch){
            .group = view->group, .seq = view->seq, .first_index = (uint32_t)rows};
        enum status status = arrow_reader_next(range->readers[index], &batch->batch, err);
        if (status == STATUS_NOT_FOUND)
            break;
        TRY(status);
        range->batch_count++;
        range->expanded_bytes += batch->batch.arena.bytes_total;
        rows += (uint64_t)batch->batch.length;
    }
    if (rows != view->rows)
        return error_set(err, STATUS_CORRUPT, "entry %u/%llu has %llu rows, its header says %u",
                         view->group, (unsigned long long)view->seq, (unsigned long long)rows,
                         view->rows);
    return STATUS_OK;
}

static enum status add_entry(struct range *range, const struct wal_view *view, struct sha256 *sha,
                             struct error *err)
{
    size_t index = range->entry_count;
    size_t capacity = range->entry_capacity, readers_capacity = range->entry_capacity;
    if (!grow((void **)&range->payloads, &capacity, index, sizeof *range->payloads) ||
        !grow((void **)&range->readers, &readers_capacity, index, sizeof(struct arrow_reader *)))
        return out_of_memory(err);
    range->entry_capacity = capacity;
    range->payloads[index] = (struct buf){0};
    range->readers[index] = NULL;
    range->entry_count++;
    enum status status = decode_entry(range, view, index, err);
    if (status != STATUS_OK)
        return error_prefix(err, "entry %u/%llu", view->group, (unsigned long long)view->seq);
    uint8_t line[4 + 8 + 4 + 4 + 8];
    put_le32(line, view->group);
    put_le64(line + 4, view->seq);
    put_le32(line + 12, view->rows);
    put_le32(line + 16, view->payload_crc);
    put_le64(line + 20, view->chain);
    sha256_update(sha, line, sizeof line);
    range->rows += view->rows;
    range->bytes += view->payload.length;
    range->to.at[view->group] = (struct wal_position){.seq = view->seq, .chain = view->chain};
    return STATUS_OK;
}

static bool is_full(const struct range *range, const struct wal_view *next, uint64_t bytes_max)
{
    if (next->schema_fingerprint != range->fingerprint)
        return true;
    return range->entry_count && (range->bytes + next->payload.length > bytes_max ||
                                  range->expanded_bytes > EXPANDED_FACTOR * bytes_max ||
                                  range->rows + next->rows > ROWS_MAX);
}

/* Reads one group until its end, the limit or another schema; *out_is_full in the last two cases.
 */
static enum status read_group(struct lane *lane, uint32_t group, struct wal_position after,
                              uint64_t bytes_max, struct range *range, struct sha256 *sha,
                              bool *out_is_full, struct error *err)
{
    struct source_scan *scan = NULL;
    struct wal_view view;
    enum status status;
    TRY(source_scan_open(lane->publisher->source, group, lane->table_id, after, &scan, err));
    for (;;) {
        status = source_scan_next(scan, &view, err);
        if (status == STATUS_NOT_FOUND) {
            status = STATUS_OK;
            break;
        }
        TRY_OR_DONE(status, status);
        if (view.type != WAL_DATA)
            continue;
        if (!range->fingerprint)
            TRY_OR_DONE(status, take_schema(lane, range, view.schema_fingerprint, err));
        *out_is_full = is_full(range, &view, bytes_max);
        if (*out_is_full)
            break;
        TRY_OR_DONE(status, add_entry(range, &view, sha, err));
    }
done:
    source_scan_close(scan);
    return status;
}

enum status range_read(struct lane *lane, const struct positions *from, uint64_t bytes_max,
                       struct range *out_range, struct error *err)
{
    struct range range = {.to = *from};
    struct sha256 sha = {0};
    uint8_t digest[SHA256_BYTES];
    bool is_at_limit = false;
    enum status status = STATUS_OK;
    arena_init(&range.arena, 0);
    if (!sha256_init(&sha))
        return out_of_memory(err);
    for (uint32_t group = 0; group < from->count && !is_at_limit && status == STATUS_OK; group++) {
        struct wal_position after = from->at[group];
        const struct checkpoint *checkpoint = &lane->checkpoint;
        struct wal_ack ack;
        /* Nothing of ours lies between committed and through (E7). */
        if (checkpoint->exists && checkpoint->through.at[group].seq > after.seq &&
            position_equal(checkpoint->committed.at[group], from->at[group]))
            after = checkpoint->through.at[group];
        if (source_ack_get(lane->publisher->source, lane->table_id, group, &ack) &&
            ack.through.seq > after.seq && position_equal(ack.committed, from->at[group]))
            after = ack.through;
        status = read_group(lane, group, after, bytes_max, &range, &sha, &is_at_limit, err);
    }
    if (status != STATUS_OK) {
        sha256_abort(&sha);
        range_deinit(&range);
        return status;
    }
    sha256_final(&sha, digest);
    hex_encode(range.digest, digest, sizeof digest);
    *out_range = range;
    return STATUS_OK;
}

void range_deinit(struct range *range)
{
    for (size_t i = 0; i < range->batch_count; i++)
        arrow_batch_deinit(&range->batches[i].batch);
    for (size_t i = 0; i < range->entry_count; i++) {
        arrow_reader_destroy(range->readers[i]);
        buf_deinit(&range->payloads[i]);
    }
    mem_free(range->batches);
    mem_free(range->payloads);
    mem_free(range->readers);
    arena_deinit(&range->arena);
    *range = (struct range){0};
}
