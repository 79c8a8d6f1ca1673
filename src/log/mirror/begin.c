/* SPDX-License-Identifier: Apache-2.0
 *
 * What is in the mirror at a start. What is there is only taken for this log's if it can be: a
 * mirror that knows of segments, or of bytes in them, that this log does not have is that of a
 * later state of it (the data directory is an old copy), and is refused, because what is written to
 * it would stand for other entries.
 */
#include <stdlib.h>

#include "log/mirror/mirror_internal.h"

struct listing {
    struct mirror *mirror;
    struct mirror_header *names; /* ranges of this incarnation */
    size_t count, capacity;
    uint64_t state_number;
    uint64_t highest; /* incarnation */
    bool has_lower;
};

struct span mirror_name_of(const struct mirror *mirror, const struct store_object *object)
{
    const char *root = store_root(mirror->store);
    size_t length = strlen(root);
    if (strncmp(object->uri, root, length) != 0 || object->uri[length] != '/')
        return (struct span){0};
    return span_of_text(object->uri + length + 1);
}

static enum status listing_add(void *context, const struct store_object *object, struct error *err)
{
    struct listing *listing = context;
    struct mirror *mirror = listing->mirror;
    struct mirror_header name;
    if (!mirror_name_parse(mirror_name_of(mirror, object), &name))
        return STATUS_OK;
    listing->has_lower |= name.incarnation < mirror->incarnation;
    if (name.incarnation > listing->highest)
        listing->highest = name.incarnation;
    if (name.kind == MIRROR_STATE) {
        if (name.id > listing->state_number)
            listing->state_number = name.id;
        return STATUS_OK;
    }
    if (!mirror_hold(mirror, name.id) || !mirror_grow((void **)&listing->names, &listing->capacity,
                                                      listing->count, sizeof *listing->names))
        return error_set(err, STATUS_NO_MEMORY, "mirror: out of memory");
    bool is_whole = object->bytes == MIRROR_HEADER_BYTES + name.to - name.from;
    if (name.incarnation == mirror->incarnation && is_whole)
        listing->names[listing->count++] = name;
    return STATUS_OK;
}

static int compare_ranges(const void *a, const void *b)
{
    const struct mirror_header *left = a, *right = b;
    if (left->id != right->id)
        return left->id < right->id ? -1 : 1;
    if (left->from != right->from)
        return left->from < right->from ? -1 : 1;
    return left->to < right->to ? -1 : left->to > right->to;
}

/* ---- head ---- */

static enum status halted(const struct mirror *mirror, const char *why, struct error *err)
{
    return error_set(err, STATUS_HALTED, "the mirror %.200s is refused: %s",
                     store_root(mirror->store), why);
}

/* Nothing may go on here, in the tables as little as in the mirror (L36). */
static enum status recovered_elsewhere(struct mirror *mirror, uint64_t incarnation,
                                       struct error *err)
{
    TRY(wal_fence(mirror->wal, incarnation, err));
    return halted(mirror, "this log was recovered elsewhere, and goes on there", err);
}

static enum status head_read(struct mirror *mirror, struct mirror_head *out_head, struct error *err)
{
    struct buf text = {0};
    enum status status = store_get(mirror->store, "head", MIRROR_HEAD_BYTES_MAX, &text, err);
    if (status == STATUS_OK)
        status = mirror_head_decode(span_of(text.data, text.length), out_head, err);
    buf_deinit(&text);
    if (status == STATUS_CORRUPT || status == STATUS_UNSUPPORTED || status == STATUS_LIMIT)
        return halted(mirror, "its head is none of ours", err);
    TRY(status);
    if (!log_id_equal(out_head->log_id, mirror->log_id))
        return halted(mirror, "its head is another log's", err);
    if (out_head->incarnation > mirror->incarnation)
        return recovered_elsewhere(mirror, out_head->incarnation, err);
    return STATUS_OK;
}

static bool is_our_head(const struct mirror *mirror, const struct mirror_head *head)
{
    return head->incarnation == mirror->incarnation && head->writer == mirror->writer;
}

enum status mirror_head_check(struct mirror *mirror, struct error *err)
{
    struct mirror_head head;
    TRY(head_read(mirror, &head, err));
    if (head.incarnation == mirror->incarnation && head.writer != mirror->writer)
        return halted(mirror,
                      "another server began to write to it as this log: one of the two is a copy; "
                      "stop that one, and start the other again",
                      err);
    return STATUS_OK;
}

static enum status head_put(struct mirror *mirror, struct error *err)
{
    struct buf text = {0};
    struct mirror_head head = {.log_id = mirror->log_id,
                               .incarnation = mirror->incarnation,
                               .group_count = mirror->group_count,
                               .writer = mirror->writer,
                               .made_ms = env_wall_ns(mirror->env) / 1000000};
    mirror_head_encode(&text, &head);
    enum status status = buf_status(&text, "mirror: head", err);
    if (status == STATUS_OK)
        status = store_put(mirror->store, "head", text.data, text.length, err);
    buf_deinit(&text);
    return status;
}

/* ---- what its ranges hold ---- */

/* The end of what `ranges` hold without a gap. */
static uint64_t covered(const struct mirror_header *ranges, size_t count)
{
    uint64_t end = 0;
    for (size_t i = 0; i < count && ranges[i].from <= end; i++)
        end = ranges[i].to > end ? ranges[i].to : end;
    return end;
}

/* The segment's first bytes tell it from all others: its header has a random number. */
static enum status is_same_segment(struct mirror *mirror, const struct mirror_header *first,
                                   bool *out_is_same, struct error *err)
{
    struct buf theirs = {0};
    uint8_t ours[MIRROR_HEAD_PREFIX];
    char name[MIRROR_NAME_BYTES];
    struct wal_segment_file *file = NULL;
    size_t bytes = first->to < sizeof ours ? (size_t)first->to : sizeof ours;
    mirror_name_put(first, name);
    TRY(wal_segment_open(mirror->wal, first->id, &file, err));
    enum status status = wal_segment_read(file, 0, ours, bytes, err);
    wal_segment_close(file);
    if (status == STATUS_OK)
        status = store_get_range(mirror->store, name, MIRROR_HEADER_BYTES, bytes, &theirs, err);
    if (status == STATUS_OK)
        *out_is_same = memcmp(theirs.data, ours, bytes) == 0;
    buf_deinit(&theirs);
    return status;
}

static const struct wal_extent *find_extent(const struct wal_extent *extents, size_t count,
                                            uint64_t segment_id)
{
    for (size_t i = 0; i < count; i++)
        if (extents[i].segment_id == segment_id)
            return &extents[i];
    return NULL;
}

static enum status progress_add(struct mirror *mirror, uint64_t segment_id, uint64_t planned,
                                struct error *err)
{
    if (!mirror_grow((void **)&mirror->progress, &mirror->progress_capacity, mirror->progress_count,
                     sizeof *mirror->progress))
        return error_set(err, STATUS_NO_MEMORY, "mirror: out of memory");
    mirror->progress[mirror->progress_count++] =
        (struct progress){.segment_id = segment_id, .planned = planned};
    return STATUS_OK;
}

/* One segment's ranges: what they hold is confirmed, what lies behind a gap goes, unless the place
 * is not ours yet. */
static enum status take_segment(struct mirror *mirror, const struct mirror_header *ranges,
                                size_t count, const struct wal_extent *extent, uint64_t known_id,
                                bool is_ours, struct error *err)
{
    char name[MIRROR_NAME_BYTES], directory[MIRROR_NAME_BYTES];
    uint64_t end = covered(ranges, count);
    bool is_same = true;
    bool is_too_new = ranges[0].id > known_id;
    if (!extent && !is_too_new)
        return STATUS_OK; /* reclaimed here, or lost */
    if (is_too_new || ranges[count - 1].to > extent->stored)
        return halted(mirror,
                      "it knows more of this log than the data directory, which is an old "
                      "copy, or has lost its end; recover from it, or name another URL",
                      err);
    if (extent->is_committed)
        return STATUS_OK;
    if (end > 0) {
        enum status status = is_same_segment(mirror, &ranges[0], &is_same, err);
        if (status == STATUS_RECLAIMED) /* since the extents were listed */
            return STATUS_OK;
        TRY(status);
    }
    if (!is_same)
        return halted(mirror, "it holds another segment of the same number", err);
    for (size_t i = 0; i < count && is_ours; i++) {
        if (ranges[i].from <= end)
            continue;
        mirror_name_put(&ranges[i], name);
        TRY(store_delete(mirror->store, name, err));
    }
    if (end == 0)
        return STATUS_OK;
    mirror_name_put(&ranges[0], name);
    memcpy(directory, name, sizeof name);
    *strrchr(directory, '/') = '\0';
    /* Whoever wrote it may have ended before its name was made to last. */
    TRY(store_sync_prefix(mirror->store, directory, err));
    return progress_add(mirror, ranges[0].id, end, err);
}

static enum status take_all(struct mirror *mirror, const struct listing *listing,
                            const struct wal_extent *extents, size_t extent_count, bool is_ours,
                            struct error *err)
{
    uint64_t first_id, known_id = wal_segment_newest(mirror->wal, &first_id);
    if (!mirror->has_written)
        known_id = first_id - 1;
    for (size_t i = 0, next; i < listing->count; i = next) {
        for (next = i + 1; next < listing->count && listing->names[next].id == listing->names[i].id;
             next++)
            continue;
        TRY(take_segment(mirror, &listing->names[i], next - i,
                         find_extent(extents, extent_count, listing->names[i].id), known_id,
                         is_ours, err));
    }
    return STATUS_OK;
}

static enum status look(struct mirror *mirror, bool *out_is_ours, struct error *err)
{
    struct listing listing = {.mirror = mirror};
    struct wal_extent *extents = NULL;
    struct mirror_head head;
    size_t extent_count = 0;
    enum status status = head_read(mirror, &head, err);
    *out_is_ours = status == STATUS_OK && is_our_head(mirror, &head);
    mirror->progress_count = 0;
    if (status == STATUS_NOT_FOUND)
        status = STATUS_OK;
    TRY(status);
    TRY_OR_DONE(status, store_list(mirror->store, "segments/", listing_add, &listing, err));
    TRY_OR_DONE(status, store_list(mirror->store, "state/", listing_add, &listing, err));
    if (listing.highest > mirror->incarnation)
        TRY_OR_DONE(status, recovered_elsewhere(mirror, listing.highest, err));
    if (listing.count)
        qsort(listing.names, listing.count, sizeof *listing.names, compare_ranges);
    extents = mirror_extents(mirror, 0, &extent_count, NULL);
    status = extents ? take_all(mirror, &listing, extents, extent_count, *out_is_ours, err)
                     : error_set(err, STATUS_NO_MEMORY, "mirror: out of memory");
    mirror->state_number = listing.state_number;
    mirror->has_lower = listing.has_lower;
done:
    mem_free(extents);
    mem_free(listing.names);
    return status;
}

/* From when the head is ours nobody else confirms anything, so that the second look sees all that
 * anybody did. The first is for a place that is not to be taken from somebody who knows more. */
enum status mirror_begin(struct mirror *mirror, struct error *err)
{
    bool is_ours;
    TRY(look(mirror, &is_ours, err));
    if (!is_ours) {
        TRY(head_put(mirror, err));
        TRY(look(mirror, &is_ours, err));
    }
    if (!is_ours)
        return error_set(err, STATUS_CONFLICT, "mirror: its head was replaced meanwhile");
    mirror->has_written = true;
    return STATUS_OK;
}
