/* SPDX-License-Identifier: Apache-2.0
 *
 * Which bytes some rows of a row group take: the pages that hold them, by the offset index, with
 * the dictionary in front; ranges that lie close together are fetched as one.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "format/parquet/reader_internal.h"

enum { GAP_BYTES_MAX = 16 << 10 }; /* cheaper to read than to ask again behind it */

struct planner {
    struct parquet_reader *reader;
    struct parquet_plan *plan;
    struct error *err;
};

static enum status out_of_room(const struct planner *planner)
{
    return error_set(planner->err, STATUS_LIMIT, "parquet: row group %zu: no room for a plan",
                     planner->plan->group);
}

static enum status plan_whole(const struct planner *planner, const struct parquet_chunk *chunk,
                              struct planned_leaf *leaf)
{
    const struct parquet_plan *plan = planner->plan;
    leaf->pieces = arena_alloc_zero(&planner->plan->arena, 1, sizeof *leaf->pieces);
    if (!leaf->pieces)
        return out_of_room(planner);
    leaf->is_whole = true;
    leaf->count = 1;
    leaf->pieces[0] =
        (struct page_piece){.offset = chunk->offset,
                            .length = chunk->bytes,
                            .row_count = planner->reader->file->groups[plan->group].rows};
    return STATUS_OK;
}

/* Pages that hold wanted rows, behind what lies in front of the first page: the dictionary. */
static enum status plan_pages(const struct planner *planner, const struct parquet_chunk *chunk,
                              const struct offset_index *offsets, struct planned_leaf *leaf)
{
    const struct parquet_plan *plan = planner->plan;
    const struct parquet_row_range *rows = plan->rows, *end = rows + plan->row_range_count;
    leaf->pieces =
        arena_alloc_zero(&planner->plan->arena, offsets->count + 1, sizeof *leaf->pieces);
    if (!leaf->pieces)
        return out_of_room(planner);
    uint64_t front = offsets->pages[0].offset - chunk->offset;
    if (front)
        leaf->pieces[leaf->count++] = (struct page_piece){.offset = chunk->offset, .length = front};
    for (size_t i = 0; i < offsets->count && rows < end; i++) {
        const struct page_place *page = &offsets->pages[i];
        while (rows < end && rows->first + rows->count <= page->first_row)
            rows++;
        if (rows == end || rows->first >= page->first_row + page->row_count)
            continue;
        leaf->pieces[leaf->count++] = (struct page_piece){.offset = page->offset,
                                                          .length = page->bytes,
                                                          .first_row = page->first_row,
                                                          .row_count = page->row_count};
    }
    return STATUS_OK;
}

static enum status plan_leaf(const struct planner *planner, size_t place)
{
    struct parquet_reader *reader = planner->reader;
    struct parquet_plan *plan = planner->plan;
    uint32_t leaf = reader->leaves[place];
    const struct parquet_chunk *chunk = &reader->file->groups[plan->group].chunks[leaf];
    struct offset_index offsets = {.count = 0};
    if (plan->row_count < reader->file->groups[plan->group].rows)
        TRY(group_index_offsets(reader->index, plan->group, leaf, &offsets, planner->err));
    if (!offsets.count)
        return plan_whole(planner, chunk, &plan->leaves[place]);
    return plan_pages(planner, chunk, &offsets, &plan->leaves[place]);
}

/* ---- ranges ---- */

struct placed_piece {
    struct page_piece *piece;
    uint32_t leaf;
};

static int compare_pieces(const void *a, const void *b)
{
    const struct page_piece *x = ((const struct placed_piece *)a)->piece;
    const struct page_piece *y = ((const struct placed_piece *)b)->piece;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Goes through the pieces by offset and lays them into ranges. */
static void merge_pieces(struct parquet_plan *plan, struct placed_piece *pieces, size_t count)
{
    struct parquet_range *last = NULL;
    qsort(pieces, count, sizeof *pieces, compare_pieces);
    for (size_t i = 0; i < count; i++) {
        struct page_piece *piece = pieces[i].piece;
        uint64_t end = piece->offset + piece->length;
        if (!last || piece->offset > last->offset + last->bytes + GAP_BYTES_MAX) {
            last = &plan->ranges[plan->range_count++];
            *last = (struct parquet_range){.offset = piece->offset, .leaf = pieces[i].leaf};
        }
        if (end > last->offset + last->bytes)
            last->bytes = end - last->offset;
        piece->range = plan->range_count - 1;
    }
}

static enum status plan_ranges(const struct planner *planner)
{
    struct parquet_reader *reader = planner->reader;
    struct parquet_plan *plan = planner->plan;
    size_t count = 0, at = 0;
    uint64_t sum = 0;
    for (size_t i = 0; i < reader->leaf_count; i++)
        count += plan->leaves[i].count;
    struct placed_piece *pieces = arena_alloc(&plan->arena, (count + 1) * sizeof *pieces);
    plan->ranges = arena_alloc(&plan->arena, (count + 1) * sizeof *plan->ranges);
    if (!pieces || !plan->ranges)
        return out_of_room(planner);
    for (size_t i = 0; i < reader->leaf_count; i++)
        for (size_t j = 0; j < plan->leaves[i].count; j++)
            pieces[at++] = (struct placed_piece){.piece = &plan->leaves[i].pieces[j],
                                                 .leaf = reader->leaves[i]};
    merge_pieces(plan, pieces, count);
    for (size_t i = 0; i < plan->range_count; i++)
        sum += plan->ranges[i].bytes;
    if (sum > reader->file->limits.batch_bytes_max)
        return error_set(planner->err, STATUS_LIMIT,
                         "parquet: row group %zu: %" PRIu64 " bytes to read for a batch within %zu",
                         plan->group, sum, reader->file->limits.batch_bytes_max);
    return STATUS_OK;
}

enum status parquet_reader_plan_rows(struct parquet_reader *reader, size_t group,
                                     const struct parquet_row_range *rows, size_t count,
                                     struct parquet_plan *out_plan, struct error *err)
{
    struct parquet_plan plan = {.group = group, .rows = rows, .row_range_count = count};
    struct planner planner = {.reader = reader, .plan = &plan, .err = err};
    enum status status = STATUS_OK;
    CHECK(group < reader->file->group_count);
    for (size_t i = 0; i < count; i++) {
        int64_t before = i ? rows[i - 1].first + rows[i - 1].count : 0;
        CHECK(rows[i].first >= before && rows[i].count > 0 &&
              rows[i].count <= reader->file->groups[group].rows - rows[i].first);
        plan.row_count += rows[i].count;
    }
    arena_init(&plan.arena, reader->file->limits.metadata_bytes_max);
    plan.leaves = arena_alloc_zero(&plan.arena, reader->leaf_count + 1, sizeof *plan.leaves);
    if (!plan.leaves) {
        status = out_of_room(&planner);
        goto done;
    }
    for (size_t i = 0; i < reader->leaf_count && count; i++)
        TRY_OR_DONE(status, plan_leaf(&planner, i));
    TRY_OR_DONE(status, plan_ranges(&planner));
    *out_plan = plan;
done:
    if (status != STATUS_OK)
        parquet_plan_deinit(&plan);
    return status;
}

void parquet_plan_deinit(struct parquet_plan *plan)
{
    arena_deinit(&plan->arena);
    *plan = (struct parquet_plan){0};
}

/* ---- decode, fetch ---- */

enum status parquet_reader_decode_rows(struct parquet_reader *reader, struct parquet_plan *plan,
                                       const struct span *ranges, struct arrow_batch *out_batch,
                                       struct error *err)
{
    for (size_t i = 0; i < plan->range_count; i++)
        CHECK(ranges[i].length == plan->ranges[i].bytes);
    for (size_t i = 0; i < reader->leaf_count; i++)
        for (size_t j = 0; j < plan->leaves[i].count; j++) {
            struct page_piece *piece = &plan->leaves[i].pieces[j];
            const struct parquet_range *range = &plan->ranges[piece->range];
            piece->bytes = span_of(ranges[piece->range].data + (piece->offset - range->offset),
                                   (size_t)piece->length);
        }
    return group_assemble(reader, plan, out_batch, err);
}

enum status parquet_reader_read_rows(struct parquet_reader *reader, size_t group,
                                     const struct parquet_row_range *rows, size_t count,
                                     struct arrow_batch *out_batch, struct error *err)
{
    struct parquet_plan plan = {.group = 0};
    struct span *spans;
    struct buf *bytes;
    enum status status;
    TRY(parquet_reader_plan_rows(reader, group, rows, count, &plan, err));
    spans = mem_alloc_zero(plan.range_count + 1, sizeof *spans);
    bytes = mem_alloc_zero(plan.range_count + 1, sizeof *bytes);
    status = STATUS_OK;
    for (size_t i = 0; i < plan.range_count; i++) {
        const struct parquet_range *range = &plan.ranges[i];
        if (!spans || !bytes || !pool_reserve(reader->pool, &bytes[i], (size_t)range->bytes + 1)) {
            status = error_set(err, STATUS_NO_MEMORY, "parquet: row group %zu: no memory", group);
            goto done;
        }
        spans[i] = span_of(bytes[i].data, (size_t)range->bytes);
        status = file_fetch(reader->file, &reader->fetches, range->offset, (size_t)range->bytes,
                            bytes[i].data, err);
        if (status != STATUS_OK) {
            error_prefix(err, "parquet: column %.100s, row group %zu",
                         reader->file->leaves[range->leaf].path, group);
            goto done;
        }
    }
    status = parquet_reader_decode_rows(reader, &plan, spans, out_batch, err);
done:
    for (size_t i = 0; bytes && i < plan.range_count; i++)
        pool_give(reader->pool, &bytes[i]);
    mem_free(bytes);
    mem_free(spans);
    parquet_plan_deinit(&plan);
    return status;
}
