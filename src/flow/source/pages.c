/* SPDX-License-Identifier: Apache-2.0
 *
 * A scan of another server's log: pages of frames (docs/log_port.md). All pages of a scan are of
 * one start of that log, each goes on from the chain where the one before ended, and each frame is
 * checked: its checksums, log, group and table, and that numbers rise. Payloads are borrowed from
 * the page. Thread: the one that has it.
 */
#include <stdio.h>

#include "flow/frames/frames.h"
#include "flow/source/remote_internal.h"

enum { PAGE_BYTES = 8 << 20 };

struct remote_scan {
    struct source_scan scan;
    struct remote *remote;
    struct question question; /* of the page at hand */
    uint32_t group, table_id, id;
    char name[WAL_TABLE_NAME_MAX + 1];
    struct wal_position after;
    uint64_t start, term;
    struct span rest;
    uint64_t frames_left;
    bool is_at_end;
};

static void put_path(const struct remote_scan *scan, struct buf *path)
{
    buf_format(path, "/v1/log/%u/entries?after=%llu&max_bytes=%u", scan->group,
               (unsigned long long)scan->after.seq, scan->table_id ? PAGE_BYTES : 1);
    if (scan->after.chain)
        buf_format(path, "&chain=%016llx", (unsigned long long)scan->after.chain);
    if (scan->table_id) {
        buf_put_text(path, "&table=");
        http_put_encoded(path, scan->name);
    }
    buf_put_byte(path, '\0');
}

static bool header_number(const struct http_response *response, const char *name, uint64_t *out)
{
    struct span text = http_response_get(response, name);
    return text.data && parse_u64((const char *)text.data, text.length, out);
}

static enum status read_page(struct remote_scan *scan, struct error *err)
{
    struct question *question = &scan->question;
    struct buf path = {0};
    uint64_t is_at_end = 0;
    question_end(question);
    put_path(scan, &path);
    enum status status = buf_status(&path, "source", err);
    if (status == STATUS_OK)
        status = question_ask_now(question, scan->remote, (const char *)path.data, err);
    buf_deinit(&path);
    TRY(status);
    if (scan->start && question->start != scan->start)
        return remote_silent(scan->remote, err, "the log was started again while it was read");
    if (!header_number(&question->response, "sluice-entries", &scan->frames_left) ||
        !header_number(&question->response, "sluice-at-end", &is_at_end) ||
        (!is_at_end && scan->frames_left == 0))
        return remote_silent(scan->remote, err, "its answer is no page of entries");
    scan->start = question->start;
    scan->rest = question->response.body;
    scan->is_at_end = is_at_end;
    return STATUS_OK;
}

/* What a frame says has to follow what was read. */
static bool does_fit(const struct remote_scan *scan, const struct wal_view *view)
{
    return view->group == scan->group && view->seq > scan->after.seq && view->term >= scan->term &&
           (!scan->table_id || view->table_id == scan->id);
}

enum status remote_scan_open(struct source *source, uint32_t group, uint32_t table_id,
                             struct wal_position after, struct source_scan **out, struct error *err)
{
    struct remote *remote = remote_of(source);
    struct remote_scan *scan = mem_alloc_zero(1, sizeof *scan);
    if (!scan)
        return error_set(err, STATUS_TIMEOUT, "source: out of memory");
    scan->scan.ops = &remote_ops;
    scan->remote = remote;
    scan->group = group;
    scan->table_id = table_id;
    scan->after = after;
    enum status status = STATUS_OK;
    if (table_id) {
        const char *name = remote_table(remote, table_id, &scan->id);
        snprintf(scan->name, sizeof scan->name, "%s", name);
        scan->is_at_end = scan->id == 0; /* the last look says so: it has no entries */
    }
    if (!scan->is_at_end)
        status = read_page(scan, err);
    if (status != STATUS_OK) {
        remote_scan_close(&scan->scan);
        return status;
    }
    *out = &scan->scan;
    return STATUS_OK;
}

enum status remote_scan_next(struct source_scan *source_scan, struct wal_view *out,
                             struct error *err)
{
    struct remote_scan *scan = CONTAINER_OF(source_scan, struct remote_scan, scan);
    struct wal_view view;
    if (scan->frames_left == 0 && scan->rest.length)
        return remote_silent(scan->remote, err, "its page holds more than it says");
    if (scan->frames_left == 0 && scan->is_at_end)
        return error_set(err, STATUS_NOT_FOUND, "log scan: at the end");
    if (scan->frames_left == 0)
        TRY(read_page(scan, err));
    if (scan->frames_left == 0)
        return error_set(err, STATUS_NOT_FOUND, "log scan: at the end");
    if (frame_next(&scan->rest, scan->remote->source.log, &view, err) != STATUS_OK)
        return remote_silent(scan->remote, err, "a frame that does not verify");
    if (!does_fit(scan, &view))
        return remote_silent(scan->remote, err, "an entry that was not asked for");
    scan->frames_left--;
    scan->after = (struct wal_position){.seq = view.seq, .chain = view.chain};
    scan->term = view.term;
    atomic_fetch_add_explicit(&scan->remote->entries, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&scan->remote->bytes, view.payload.length, memory_order_relaxed);
    view.table_id =
        scan->table_id ? scan->table_id : remote_table_number(scan->remote, view.table_id);
    *out = view;
    return STATUS_OK;
}

void remote_scan_close(struct source_scan *source_scan)
{
    struct remote_scan *scan = CONTAINER_OF(source_scan, struct remote_scan, scan);
    question_end(&scan->question);
    mem_free(scan);
}
