/* SPDX-License-Identifier: Apache-2.0
 *
 * The page index: where the pages of a chunk are, and what bounds their values have. Source:
 * PageIndex.md, parquet.thrift (OffsetIndex, ColumnIndex). Both are hostile: what they say of
 * places is held against the chunk here.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "format/parquet/prune_internal.h"
#include "format/parquet/thrift_internal.h"

enum status file_fetch(const struct parquet_file *file, struct fetches *fetches, uint64_t offset,
                       size_t bytes, void *place, struct error *err)
{
    fetches->count++;
    fetches->bytes += bytes;
    return byte_source_read(&file->source, offset, bytes, place, err);
}

enum status chunk_fault(const struct parquet_file *file, size_t group, uint32_t leaf,
                        uint64_t offset, enum status status, struct error *err, const char *format,
                        ...)
{
    char what[200];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    error_set(err, status, "parquet: column %.120s, row group %zu, byte %" PRIu64 ": %s",
              file->leaves[leaf].path, group, offset, what);
    return error_at(err, offset);
}

/* An index being read. */
struct index_read {
    const struct parquet_file *file;
    const struct parquet_chunk *chunk;
    size_t group;
    uint32_t leaf;
    uint64_t offset;
    struct cursor in;
    struct span bytes; /* all that it goes over */
    struct arena *arena;
    struct error *err;
};

static enum status fault(const struct index_read *read, enum status status, const char *what)
{
    return chunk_fault(read->file, read->group, read->leaf, read->offset, status, read->err, "%s",
                       what);
}

static enum status begin(struct index_read *read, uint32_t bytes, struct fetches *fetches)
{
    uint8_t *place = arena_alloc(read->arena, (size_t)bytes + 1);
    if (!place)
        return fault(read, STATUS_LIMIT, "no room for a page index");
    read->in = cursor_of(place, bytes);
    read->bytes = span_of(place, bytes);
    if (file_fetch(read->file, fetches, read->offset, bytes, place, read->err) != STATUS_OK)
        return error_prefix(read->err, "parquet: column %.100s, row group %zu, page index",
                            read->file->leaves[read->leaf].path, read->group);
    return STATUS_OK;
}

static struct index_read index_read_of(const struct parquet_file *file, size_t group, uint32_t leaf,
                                       uint64_t offset, struct arena *arena, struct error *err)
{
    return (struct index_read){.file = file,
                               .chunk = &file->groups[group].chunks[leaf],
                               .group = group,
                               .leaf = leaf,
                               .offset = offset,
                               .arena = arena,
                               .err = err};
}

/* ---- offset index ---- */

static void read_place(struct cursor *in, int type, struct page_place *place)
{
    int id = 0;
    int64_t offset = -1, bytes = -1, first_row = -1;
    if (!thrift_read_struct(in, type))
        return;
    while ((type = thrift_read_field(in, &id)) != 0) {
        if (id == 1)
            offset = thrift_read_i64(in, type);
        else if (id == 2)
            bytes = thrift_read_i32(in, type);
        else if (id == 3)
            first_row = thrift_read_i64(in, type);
        else
            thrift_skip(in, type);
    }
    in->failed |= offset < 0 || bytes < 0 || first_row < 0;
    if (!in->failed)
        *place = (struct page_place){
            .offset = (uint64_t)offset, .bytes = (uint64_t)bytes, .first_row = first_row};
}

/* Pages rise through the chunk, apart from each other; their rows are those of the row group. */
static enum status check_places(struct index_read *read, struct page_place *pages, size_t count)
{
    const struct parquet_chunk *chunk = read->chunk;
    uint64_t at = chunk->offset, chunk_end = chunk->offset + chunk->bytes;
    int64_t rows = read->file->groups[read->group].rows;
    if (count ? pages[0].first_row != 0 : rows != 0)
        return fault(read, STATUS_CORRUPT, "offset index: the first rows are in no page");
    for (size_t i = 0; i < count; i++) {
        int64_t end = i + 1 < count ? pages[i + 1].first_row : rows;
        if (pages[i].offset < at || pages[i].offset > chunk_end ||
            pages[i].bytes > chunk_end - pages[i].offset)
            return chunk_fault(read->file, read->group, read->leaf, read->offset, STATUS_CORRUPT,
                               read->err,
                               "offset index: page %zu lies behind the one after it, or not in "
                               "its chunk",
                               i);
        if (end < pages[i].first_row || pages[i].first_row > rows)
            return chunk_fault(read->file, read->group, read->leaf, read->offset, STATUS_CORRUPT,
                               read->err, "offset index: the first row of page %zu is none", i);
        pages[i].row_count = end - pages[i].first_row;
        at = pages[i].offset + pages[i].bytes;
    }
    return STATUS_OK;
}

static enum status read_offsets(struct index_read *read, struct offset_index *out_offsets)
{
    struct cursor *in = &read->in;
    struct page_place *pages = NULL;
    size_t count = 0;
    int id = 0, type, inner;
    while ((type = thrift_read_field(in, &id)) != 0) {
        if (id != 1 || pages) {
            thrift_skip(in, type);
            continue;
        }
        count = thrift_read_list(in, type, &inner);
        pages = arena_alloc_zero(read->arena, count + 1, sizeof *pages);
        if (!pages)
            return fault(read, STATUS_LIMIT, "no room for a page index");
        for (size_t i = 0; i < count && !in->failed; i++)
            read_place(in, inner, &pages[i]);
    }
    if (in->failed || !pages)
        return fault(read, STATUS_CORRUPT, "a damaged offset index");
    TRY(check_places(read, pages, count));
    *out_offsets = (struct offset_index){.pages = pages, .count = count, .bytes = read->bytes};
    return STATUS_OK;
}

enum status offset_index_read(const struct parquet_file *file, size_t group, uint32_t leaf,
                              struct fetches *fetches, struct arena *arena,
                              struct offset_index *out_offsets, struct error *err)
{
    const struct parquet_chunk *chunk = &file->groups[group].chunks[leaf];
    struct index_read read =
        index_read_of(file, group, leaf, chunk->offset_index_offset, arena, err);
    if (!chunk->offset_index_bytes)
        return STATUS_OK;
    TRY(begin(&read, chunk->offset_index_bytes, fetches));
    return read_offsets(&read, out_offsets);
}

void group_index_init(struct group_index *index, const struct parquet_file *file)
{
    *index = (struct group_index){.file = file};
    arena_init(&index->arena, file->limits.metadata_bytes_max);
}

void group_index_deinit(struct group_index *index)
{
    arena_deinit(&index->arena);
    *index = (struct group_index){0};
}

static enum status begin_group(struct group_index *index, size_t group, struct error *err)
{
    size_t leaves = index->file->leaf_count;
    arena_clear(&index->arena);
    index->group = group;
    index->offsets = arena_alloc_zero(&index->arena, leaves + 1, sizeof *index->offsets);
    index->is_read = arena_alloc_zero(&index->arena, leaves + 1, sizeof *index->is_read);
    if (index->offsets && index->is_read)
        return STATUS_OK;
    index->offsets = NULL;
    return error_set(err, STATUS_LIMIT, "parquet: row group %zu: no room for page indexes", group);
}

enum status group_index_offsets(struct group_index *index, size_t group, uint32_t leaf,
                                struct offset_index *out_offsets, struct error *err)
{
    if (!index->offsets || index->group != group)
        TRY(begin_group(index, group, err));
    if (!index->is_read[leaf])
        TRY(offset_index_read(index->file, group, leaf, &index->fetches, &index->arena,
                              &index->offsets[leaf], err));
    index->is_read[leaf] = true;
    *out_offsets = index->offsets[leaf];
    return STATUS_OK;
}

/* ---- column index ---- */

/* The lists of a column index as they come; `count` of the first one. */
struct column_lists {
    struct page_bounds *pages;
    size_t count;
    bool is_seen[9]; /* by field id */
};

static void read_element(struct cursor *in, int id, int type, struct page_bounds *page)
{
    struct parquet_statistics *statistics = &page->statistics;
    if (id == 1) {
        page->is_null = cursor_get_byte(in) == THRIFT_TRUE;
    } else if (id == 2) {
        statistics->min = thrift_read_binary(in, type);
    } else if (id == 3) {
        statistics->max = thrift_read_binary(in, type);
    } else if (id == 5) {
        statistics->null_count = thrift_read_i64(in, type);
        statistics->has_null_count = true;
    } else {
        statistics->nan_count = thrift_read_i64(in, type);
        statistics->has_nan_count = true;
    }
}

static enum status read_list(struct index_read *read, int id, int type, struct column_lists *lists)
{
    int inner;
    size_t count = thrift_read_list(&read->in, type, &inner);
    if (!lists->pages) {
        lists->count = count;
        lists->pages = arena_alloc_zero(read->arena, count + 1, sizeof *lists->pages);
        if (!lists->pages)
            return fault(read, STATUS_LIMIT, "no room for a page index");
    }
    if (count != lists->count || lists->is_seen[id])
        return fault(read, STATUS_CORRUPT, "column index: lists of different lengths");
    lists->is_seen[id] = true;
    for (size_t i = 0; i < count && !read->in.failed; i++)
        read_element(&read->in, id, inner, &lists->pages[i]);
    return STATUS_OK;
}

/* Bounds of pages with values must be some of the leaf's type, the lower one not above the other;
 * those of a page that says NaN are none. */
static enum status check_bounds(const struct index_read *read, struct page_bounds *pages,
                                size_t count)
{
    const struct parquet_leaf *leaf = &read->file->leaves[read->leaf];
    if (!leaf_has_bounds(leaf))
        return STATUS_OK;
    for (size_t i = 0; i < count; i++) {
        struct parquet_statistics *said = &pages[i].statistics;
        struct parquet_value min, max;
        if (pages[i].is_null)
            continue;
        if (!value_load(leaf, said->min, &min) || !value_load(leaf, said->max, &max))
            return chunk_fault(read->file, read->group, read->leaf, read->offset, STATUS_CORRUPT,
                               read->err,
                               "column index: the bounds of page %zu are none of its type", i);
        int order = value_order(leaf, &min, &max);
        if (order == ORDER_GREATER)
            return chunk_fault(
                read->file, read->group, read->leaf, read->offset, STATUS_CORRUPT, read->err,
                "column index: the lower bound of page %zu is above the upper one", i);
        said->has_min = said->has_max = order != ORDER_NONE;
    }
    return STATUS_OK;
}

enum status column_index_read(const struct parquet_file *file, size_t group, uint32_t leaf,
                              struct fetches *fetches, struct arena *arena,
                              struct column_index *out_index, struct error *err)
{
    const struct parquet_chunk *chunk = &file->groups[group].chunks[leaf];
    struct index_read read =
        index_read_of(file, group, leaf, chunk->column_index_offset, arena, err);
    struct column_lists lists = {.pages = NULL};
    int64_t boundary_order = 0;
    int id = 0, type;
    TRY(begin(&read, chunk->column_index_bytes, fetches));
    while ((type = thrift_read_field(&read.in, &id)) != 0) {
        if (id == 1 || id == 2 || id == 3 || id == 5 || id == 8)
            TRY(read_list(&read, id, type, &lists));
        else if (id == 4)
            boundary_order = thrift_read_i64(&read.in, type);
        else
            thrift_skip(&read.in, type);
    }
    if (read.in.failed || !lists.is_seen[1] || !lists.is_seen[2] || !lists.is_seen[3])
        return fault(&read, STATUS_CORRUPT, "a damaged column index");
    TRY(check_bounds(&read, lists.pages, lists.count));
    *out_index = (struct column_index){.pages = lists.pages,
                                       .count = lists.count,
                                       .boundary_order = boundary_order,
                                       .bytes = read.bytes};
    return STATUS_OK;
}
