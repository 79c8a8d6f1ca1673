/* SPDX-License-Identifier: Apache-2.0
 *
 * Pages as their headers and the page indexes say they are; nothing is expanded.
 */
#include <inttypes.h>

#include "format/parquet/thrift_internal.h"
#include "format/parquet/verify_internal.h"

/* What the pages so far say of the one at hand. */
struct page_list {
    const struct parquet_leaf *leaf;
    const struct chunk_bytes *chunk;
    int64_t next_row; /* -1: not known */
    size_t page;      /* of the indexes */
};

/* What the indexes say; they list pages of data, some writers not those without values. */
static void add_indexed(struct page_list *list, struct parquet_page_facts *facts)
{
    const struct offset_index *offsets = list->chunk->offsets;
    const struct column_index *index = list->chunk->index;
    while (offsets && list->page < offsets->count &&
           offsets->pages[list->page].offset < facts->offset)
        list->page++;
    if (!offsets || list->page == offsets->count ||
        offsets->pages[list->page].offset != facts->offset)
        return;
    facts->first_row = offsets->pages[list->page].first_row;
    facts->row_count = offsets->pages[list->page].row_count;
    if (!index || list->page >= index->count)
        return;
    const struct page_bounds *said = &index->pages[list->page];
    if (said->statistics.has_null_count)
        facts->null_count = said->statistics.null_count;
    facts->has_bounds = !said->is_null && said->statistics.has_min;
    facts->min = said->statistics.min;
    facts->max = said->statistics.max;
}

static void add_rows(struct page_list *list, const struct page_header *header,
                     struct parquet_page_facts *facts)
{
    if (!parquet_page_is_data(facts->type))
        return;
    facts->first_row = list->next_row;
    facts->row_count = header->rows >= 0          ? header->rows
                       : list->leaf->max_rep == 0 ? header->values
                                                  : -1;
    facts->null_count = header->nulls;
    add_indexed(list, facts);
    if (facts->first_row < 0 || facts->row_count < 0 ||
        __builtin_add_overflow(facts->first_row, facts->row_count, &list->next_row))
        list->next_row = -1;
}

enum status pages_visit(const struct parquet_file *file, const struct chunk_bytes *chunk,
                        enum status (*visit)(void *context, const struct parquet_page_facts *page,
                                             struct error *err),
                        void *context, struct error *err)
{
    struct page_list list = {.leaf = &file->leaves[chunk->leaf], .chunk = chunk};
    struct cursor in = cursor_of(chunk->bytes.data, chunk->bytes.length);
    while (cursor_left(&in)) {
        struct page_header header;
        const uint8_t *start = in.at;
        uint64_t offset = chunk->offset + (uint64_t)(start - chunk->bytes.data);
        if (!page_header_read(&in, &header))
            return chunk_fault(file, chunk->group, chunk->leaf, offset, STATUS_CORRUPT, err,
                               "a damaged page header");
        struct parquet_page_facts facts = {.offset = offset,
                                           .header_bytes = (uint32_t)(in.at - start),
                                           .stored_bytes = header.stored_bytes,
                                           .plain_bytes = header.plain_bytes,
                                           .type = header.type,
                                           .encoding = header.encoding,
                                           .values = header.values,
                                           .first_row = -1,
                                           .row_count = -1,
                                           .null_count = -1,
                                           .has_checksum = header.has_crc};
        const uint8_t *stored = cursor_take(&in, (size_t)header.stored_bytes);
        if (!stored)
            return chunk_fault(file, chunk->group, chunk->leaf, offset, STATUS_CORRUPT, err,
                               "a page of %d bytes ends behind its chunk", header.stored_bytes);
        facts.is_checksum_right =
            header.has_crc && chunk->checks_checksums &&
            crc32_gzip(0, stored, (size_t)header.stored_bytes) == (uint32_t)header.crc;
        add_rows(&list, &header, &facts);
        TRY(visit(context, &facts, err));
    }
    return STATUS_OK;
}

enum status chunk_fetch(const struct parquet_file *file, struct arena *arena,
                        struct chunk_bytes *inout_chunk, struct error *err)
{
    const struct parquet_chunk *chunk = &file->groups[inout_chunk->group].chunks[inout_chunk->leaf];
    const char *path = file->leaves[inout_chunk->leaf].path;
    struct fetches fetches = {0};
    if (chunk->bytes > file->limits.batch_bytes_max)
        return error_set(err, STATUS_LIMIT, "parquet: column %.100s: %" PRIu64 " bytes", path,
                         chunk->bytes);
    uint8_t *bytes = arena_alloc(arena, (size_t)chunk->bytes + 1);
    if (!bytes)
        return error_set(err, STATUS_NO_MEMORY, "parquet: column %.100s: no memory", path);
    TRY(file_fetch(file, &fetches, chunk->offset, (size_t)chunk->bytes, bytes, err));
    inout_chunk->offset = chunk->offset;
    inout_chunk->bytes = span_of(bytes, (size_t)chunk->bytes);
    return STATUS_OK;
}

/* Indexes are shown where they can be; that they are damaged is for others to say. */
static enum status read_indexes(const struct parquet_file *file, size_t group, uint32_t leaf,
                                struct arena *arena, struct offset_index *out_offsets,
                                struct column_index *out_index, struct error *err)
{
    struct fetches fetches = {0};
    enum status status = offset_index_read(file, group, leaf, &fetches, arena, out_offsets, err);
    if (status == STATUS_OK && out_offsets->count &&
        file->groups[group].chunks[leaf].column_index_bytes)
        status = column_index_read(file, group, leaf, &fetches, arena, out_index, err);
    if (status == STATUS_OK && out_index->count != out_offsets->count)
        *out_index = (struct column_index){.pages = NULL};
    return status == STATUS_CORRUPT ? STATUS_OK : status;
}

enum status parquet_file_pages(const struct parquet_file *file, size_t group, uint32_t leaf,
                               enum status (*visit)(void *context,
                                                    const struct parquet_page_facts *page,
                                                    struct error *err),
                               void *context, struct error *err)
{
    struct arena arena = {0};
    struct offset_index offsets = {.pages = NULL};
    struct column_index index = {.pages = NULL};
    struct chunk_bytes chunk = {.group = group,
                                .leaf = leaf,
                                .offsets = &offsets,
                                .index = &index,
                                .checks_checksums = true};
    CHECK(group < file->group_count && leaf < file->leaf_count);
    arena_init(&arena, 0); /* bounded by the limits of what is read into it */
    enum status status = read_indexes(file, group, leaf, &arena, &offsets, &index, err);
    if (status == STATUS_OK)
        status = chunk_fetch(file, &arena, &chunk, err);
    if (status == STATUS_OK)
        status = pages_visit(file, &chunk, visit, context, err);
    arena_deinit(&arena);
    return status;
}
