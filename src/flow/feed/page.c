/* SPDX-License-Identifier: Apache-2.0
 *
 * One page: entries of one table and one schema, from the synced prefix (L23), whole, in order, as
 * an Arrow IPC stream. Entries are copied out of the log's view and decoded; their rows are
 * gathered into few batches, each with its dictionaries, and the columns of their positions behind
 * their own.
 */
#include <stdio.h>

#include "flow/feed/feed_internal.h"

enum { CHUNK_ROWS = 32768 };

struct page_entry {
    struct buf payload; /* a copy: the log's view ends */
    struct arrow_reader *reader;
};

struct page_batch {
    struct arrow_batch batch;
    uint64_t seq;
    uint32_t first_index; /* of its row 0 in the entry */
    uint32_t first_row;   /* the first one that is wanted */
};

/* What a page is made of. */
struct making {
    struct feed *feed;
    const struct row_ask *ask;
    struct buf entries, batches; /* struct page_entry, struct page_batch */
    uint64_t rows, bytes;        /* bytes: of payloads, passed over or not */
    uint64_t fingerprint;        /* 0: no entry yet */
    struct arrow_schema payload, schema;
    struct arena arena; /* owns the schemas */
    char log_text[LOG_ID_TEXT_BYTES];
    uint64_t term, seq; /* of the last entry that was looked at; 0: none */
};

static struct page_batch *batch_at(const struct making *making, size_t i)
{
    return (struct page_batch *)(void *)making->batches.data + i;
}

static size_t batch_count(const struct making *making)
{
    return making->batches.length / sizeof(struct page_batch);
}

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "page: out of memory");
}

static void making_deinit(struct making *making)
{
    struct page_entry *entries = (struct page_entry *)(void *)making->entries.data;
    for (size_t i = 0; i < batch_count(making); i++)
        arrow_batch_deinit(&batch_at(making, i)->batch);
    for (size_t i = 0; i < making->entries.length / sizeof *entries; i++) {
        arrow_reader_destroy(entries[i].reader);
        buf_deinit(&entries[i].payload);
    }
    buf_deinit(&making->batches);
    buf_deinit(&making->entries);
    arena_deinit(&making->arena);
}

/* ---- entries ---- */

/* The first entry decides. */
static enum status take_schema(struct making *making, uint64_t fingerprint, struct error *err)
{
    struct arrow_limits limits = arrow_limits_default();
    struct buf message = {0};
    size_t used = 0;
    enum status status = wal_schema_get(making->feed->wal, fingerprint, &message, err);
    if (status == STATUS_OK)
        status = arrow_ipc_read_schema(span_of(message.data, message.length), &limits,
                                       &making->arena, &making->payload, &used, err);
    buf_deinit(&message);
    TRY(status);
    if (!positions_schema(&making->payload, &making->arena, &making->schema))
        return out_of_memory(err);
    making->fingerprint = fingerprint;
    return STATUS_OK;
}

static enum status add_batches(struct making *making, struct arrow_reader *reader,
                               const struct wal_view *view, uint32_t skipped, struct error *err)
{
    uint64_t index = 0;
    for (;;) {
        struct page_batch batch = {.seq = view->seq, .first_index = (uint32_t)index};
        enum status status = arrow_reader_next(reader, &batch.batch, err);
        if (status == STATUS_NOT_FOUND)
            break;
        TRY(status);
        uint64_t count = (uint64_t)batch.batch.length;
        batch.first_row = skipped > index ? (uint32_t)(skipped - index) : 0;
        if (batch.first_row > count)
            batch.first_row = (uint32_t)count;
        buf_put(&making->batches, &batch, sizeof batch);
        if (making->batches.failed) {
            arrow_batch_deinit(&batch.batch);
            return out_of_memory(err);
        }
        making->rows += count - batch.first_row;
        index += count;
    }
    if (index != view->rows)
        return error_set(err, STATUS_INTERNAL, "entry %u/%llu has %llu rows, its header says %u",
                         view->group, (unsigned long long)view->seq, (unsigned long long)index,
                         view->rows);
    return STATUS_OK;
}

static enum status add_entry(struct making *making, const struct wal_view *view, uint32_t skipped,
                             struct error *err)
{
    struct arrow_limits limits = arrow_limits_default();
    struct page_entry entry = {0};
    limits.body_bytes_max = (size_t)1 << 30;
    buf_put(&entry.payload, view->payload.data, view->payload.length);
    TRY(buf_status(&entry.payload, "page", err));
    enum status status =
        arrow_reader_create(&making->payload, span_of(entry.payload.data, entry.payload.length),
                            &limits, &entry.reader, err);
    if (status == STATUS_OK)
        buf_put(&making->entries, &entry, sizeof entry);
    if (status != STATUS_OK || making->entries.failed) {
        arrow_reader_destroy(entry.reader);
        buf_deinit(&entry.payload);
        return status == STATUS_OK ? out_of_memory(err) : status;
    }
    return add_batches(making, entry.reader, view, skipped, err);
}

/* Does the page end in front of this entry? It takes one in any case. */
static bool is_full(const struct making *making, const struct wal_view *view)
{
    const struct row_ask *ask = making->ask;
    bool has_entry = making->fingerprint != 0;
    bool is_too_much = making->bytes + view->payload.length > ask->bytes_max;
    return has_entry ? is_too_much || making->rows + view->rows > ask->rows_max ||
                           view->schema_fingerprint != making->fingerprint
                     : making->bytes > 0 && is_too_much;
}

/* One entry of the table. */
static enum status look_at(struct making *making, const struct wal_view *view, bool *out_is_full,
                           struct error *err)
{
    const struct row_ask *ask = making->ask;
    bool is_ours = view->seq % ask->member_count == ask->member;
    bool is_partly = ask->after.has_index && view->seq == ask->after.seq;
    uint64_t skipped = is_partly ? ask->after.index + 1 : 0;
    if (is_full(making, view)) {
        *out_is_full = true;
        return STATUS_OK;
    }
    if (is_ours && skipped < view->rows) {
        if (!making->fingerprint)
            TRY(take_schema(making, view->schema_fingerprint, err));
        TRY(add_entry(making, view, (uint32_t)skipped, err));
    }
    making->bytes += view->payload.length;
    making->seq = view->seq;
    making->term = view->term;
    return STATUS_OK;
}

/* Reads up to a limit, the end, or damage; *out_is_end: there was no further entry. */
static enum status read_entries(struct making *making, bool *out_is_end, struct error *err)
{
    const struct row_ask *ask = making->ask;
    struct wal_scan *scan = NULL;
    struct wal_view view;
    bool is_at_limit = false;
    uint64_t after = ask->after.has_index ? ask->after.seq - 1 : ask->after.seq;
    TRY(wal_scan_open(making->feed->wal, ask->group, ask->table_id, after, &scan, err));
    enum status status = STATUS_OK;
    while (status == STATUS_OK && !is_at_limit) {
        status = wal_scan_next(scan, &view, err);
        if (status == STATUS_OK && view.type == WAL_DATA)
            status = look_at(making, &view, &is_at_limit, err);
    }
    wal_scan_close(scan);
    *out_is_end = status == STATUS_NOT_FOUND;
    bool has_progress = making->seq > 0 && status == STATUS_CORRUPT; /* the next page says it */
    return *out_is_end || has_progress ? STATUS_OK : status;
}

/* ---- rows ---- */

static enum status write_chunk(const struct making *making, const struct arrow_row *rows,
                               size_t count, const struct arrow_batch *const *batches,
                               struct buf *out, struct error *err)
{
    struct arrow_batch gathered = {0},
                       whole = {.schema = &making->schema, .length = (int64_t)count};
    struct position *positions = NULL;
    uint32_t own = making->payload.field_count;
    enum status status;
    arena_init(&whole.arena, 0);
    TRY_OR_DONE(status, arrow_gather(batches, batch_count(making), rows, count, &gathered, err));
    whole.columns =
        arena_alloc_zero(&whole.arena, making->schema.field_count, sizeof *whole.columns);
    positions = arena_alloc_zero(&whole.arena, count, sizeof *positions);
    bool is_made = whole.columns && positions;
    for (size_t i = 0; is_made && i < count; i++) {
        const struct page_batch *batch = batch_at(making, rows[i].batch);
        positions[i] = (struct position){.seq = batch->seq,
                                         .group = making->ask->group,
                                         .index = batch->first_index + rows[i].row};
    }
    for (uint32_t i = 0; is_made && i < own; i++)
        whole.columns[i] = gathered.columns[i];
    for (int i = 0; is_made && i < POSITION_FIELDS; i++)
        is_made = positions_column(i, making->log_text, positions, count, &whole.arena,
                                   &whole.columns[own + (uint32_t)i]);
    status =
        is_made ? arrow_ipc_write_batch(&making->schema, &whole, making->ask->compression, out, err)
                : out_of_memory(err);
done:
    arrow_batch_deinit(&gathered);
    arena_deinit(&whole.arena);
    return status;
}

static enum status write_rows(const struct making *making, struct buf *out, struct error *err)
{
    static const uint8_t end_of_stream[8] = {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0};
    size_t count = batch_count(making), used = 0;
    const struct arrow_batch **batches = mem_alloc(count * sizeof(struct arrow_batch *));
    struct arrow_row *rows = mem_alloc(CHUNK_ROWS * sizeof *rows);
    enum status status =
        batches && rows ? arrow_ipc_write_schema(&making->schema, out, err) : out_of_memory(err);
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        batches[i] = &batch_at(making, i)->batch;
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        const struct page_batch *batch = batch_at(making, i);
        for (int64_t row = batch->first_row; status == STATUS_OK && row < batch->batch.length;
             row++) {
            rows[used++] = (struct arrow_row){.batch = (uint32_t)i, .row = (uint32_t)row};
            if (used < CHUNK_ROWS)
                continue;
            status = write_chunk(making, rows, used, batches, out, err);
            used = 0;
        }
    }
    if (status == STATUS_OK && used)
        status = write_chunk(making, rows, used, batches, out, err);
    buf_put(out, end_of_stream, sizeof end_of_stream);
    mem_free(batches);
    mem_free(rows);
    return status == STATUS_OK ? buf_status(out, "page", err) : status;
}

/* 0 where nothing tells it. */
static uint64_t term_of(struct wal *wal, uint32_t group, uint64_t seq)
{
    struct error ignored;
    uint64_t term = 0;
    if (seq == 0 || wal_term_at(wal, group, seq, &term, &ignored) != STATUS_OK)
        return 0;
    return term;
}

enum status page_read(struct feed *feed, const struct row_ask *ask, struct page *out_page,
                      struct error *err)
{
    struct making making = {.feed = feed, .ask = ask};
    struct page page = {0};
    bool is_end = false;
    enum status status;
    arena_init(&making.arena, 0);
    log_id_to_text(wal_log_id(feed->wal), making.log_text);
    /* The end first: entries of the table up to it are all seen by a scan that is opened later. */
    page.end_seq = wal_synced_end(feed->wal, ask->group).seq;
    page.end_term = term_of(feed->wal, ask->group, page.end_seq);
    TRY_OR_DONE(status, read_entries(&making, &is_end, err));
    page.rows = making.rows;
    page.is_at_limit = !is_end;
    page.seq = making.seq ? making.seq : ask->after.seq;
    page.term = making.seq ? making.term : ask->after.term;
    if (is_end && page.end_seq > page.seq) {
        page.seq = page.end_seq;
        page.term = page.end_term;
    }
    if (page.term == 0)
        page.term = term_of(feed->wal, ask->group, page.seq);
    if (making.rows)
        status = write_rows(&making, &page.body, err);
done:
    making_deinit(&making);
    if (status == STATUS_OK)
        *out_page = page;
    else
        buf_deinit(&page.body);
    return status;
}

void page_deinit(struct page *page)
{
    buf_deinit(&page->body);
}
