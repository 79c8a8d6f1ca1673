/* SPDX-License-Identifier: Apache-2.0
 *
 * What a file says of its values, held against them: a filter that believes it must not lose a row.
 */
#include <inttypes.h>
#include <math.h>

#include "format/parquet/bloom_internal.h"
#include "format/parquet/verify_internal.h"

enum status checker_fault(const struct checker *checker, uint64_t offset, const char *what)
{
    return chunk_fault(checker->file, checker->bytes.group, checker->bytes.leaf, offset,
                       STATUS_CORRUPT, checker->err, "%s", what);
}

enum status checker_wrong_count(const struct checker *checker, uint64_t offset, const char *what,
                                int64_t is, int64_t said)
{
    return chunk_fault(checker->file, checker->bytes.group, checker->bytes.leaf, offset,
                       STATUS_CORRUPT, checker->err, "%" PRId64 " %s, not %" PRId64, is, what,
                       said);
}

static struct bounds bounds_of(const struct checker *checker, const struct parquet_statistics *said)
{
    struct bounds bounds = {.is_said = false};
    bounds.is_said = leaf_has_bounds(checker->about) && said->has_min && said->has_max &&
                     value_load(checker->about, said->min, &bounds.min) &&
                     value_load(checker->about, said->max, &bounds.max) &&
                     value_order(checker->about, &bounds.min, &bounds.max) != ORDER_NONE;
    return bounds;
}

/* The bounds of old are those of signed numbers alone: of anything else writers did not agree on an
 * order, and their readers pass over them. */
static struct bounds old_bounds_of(const struct checker *checker, struct span min, struct span max)
{
    const struct parquet_leaf *leaf = checker->about;
    bool is_number = (leaf->physical == PARQUET_INT32 || leaf->physical == PARQUET_INT64 ||
                      leaf->physical == PARQUET_FLOAT || leaf->physical == PARQUET_DOUBLE) &&
                     value_class_of(leaf) != CLASS_UNSIGNED && leaf->kind != PARQUET_KIND_OTHER;
    struct bounds bounds = {.is_said = false};
    bounds.is_said = is_number && min.data && max.data && value_load(leaf, min, &bounds.min) &&
                     value_load(leaf, max, &bounds.max) &&
                     value_order(leaf, &bounds.min, &bounds.max) != ORDER_NONE;
    return bounds;
}

/* ---- values ---- */

struct span verify_slot(const struct leaf_reader *reader, size_t slot)
{
    const uint8_t *data = reader->values.data.data;
    const int32_t *ends = (const int32_t *)(const void *)reader->values.ends.data;
    if (reader->width)
        return span_of(data + slot * reader->width, reader->width);
    size_t bytes = (size_t)(ends[slot + 1] - ends[slot]);
    return span_of(bytes ? data + ends[slot] : (const uint8_t *)"", bytes);
}

static bool is_within(const struct checker *checker, struct bounds *bounds,
                      const struct parquet_value *value)
{
    if (!bounds->is_said)
        return true;
    int low = value_order(checker->about, value, &bounds->min);
    int high = value_order(checker->about, value, &bounds->max);
    bounds->has_min |= low == ORDER_SAME;
    bounds->has_max |= high == ORDER_SAME;
    return low != ORDER_LESS && high != ORDER_GREATER;
}

/* What is said of a page, and what was found in it. */
struct page_check {
    const struct page *page;
    const struct page_bounds *indexed; /* by the column index; NULL: it has none */
    struct page_statistics header;
    struct bounds bounds, header_bounds, old_bounds;
    struct null_counts nulls;
    int64_t values, nans; /* without nulls */
};

static enum status check_value(struct checker *checker, struct page_check *check, struct span plain)
{
    const struct page *page = check->page;
    struct parquet_value value;
    if (checker->bloom.length && !bloom_has(checker->bloom.data, checker->bloom.length,
                                            hash_xxh64(plain.data, plain.length)))
        return checker_fault(checker, page->offset, "a value that the Bloom filter has not");
    if (checker->facts.distinct_count >= 0)
        verify_add_distinct(checker, plain);
    if (!value_load(checker->about, plain, &value))
        return STATUS_OK;
    if (value_class_of(checker->about) == CLASS_REAL && isnan(value.real)) {
        check->nans++;
        return STATUS_OK;
    }
    if (!is_within(checker, &check->bounds, &value))
        return checker_fault(checker, page->offset,
                             "a value that is not within the page's bounds in the column index");
    if (!is_within(checker, &check->header_bounds, &value) ||
        !is_within(checker, &check->old_bounds, &value))
        return checker_fault(checker, page->offset,
                             "a value that is not within the bounds in the page's header");
    if (!is_within(checker, &checker->bounds, &value))
        return checker_fault(checker, page->offset,
                             "a value that is not within the column's bounds");
    if (!is_within(checker, &checker->old_bounds, &value))
        return checker_fault(checker, page->offset,
                             "a value that is not within the column's bounds of the old kind");
    return STATUS_OK;
}

/* ---- pages ---- */

/* Pages of no values are stepped over; the index may have them. */
static enum status check_place(struct checker *checker, const struct leaf_reader *reader,
                               const struct page *page)
{
    const struct offset_index *offsets = &checker->offsets;
    if (!offsets->count)
        return STATUS_OK;
    while (checker->page < offsets->count && offsets->pages[checker->page].row_count == 0 &&
           offsets->pages[checker->page].offset < page->offset)
        checker->page++;
    if (checker->page == offsets->count)
        return checker_fault(checker, page->offset, "a page that the offset index has not");
    const struct page_place *place = &offsets->pages[checker->page];
    if (place->offset != page->offset || place->bytes != page->bytes)
        return checker_fault(checker, page->offset,
                             "a page at another place than the offset index says");
    if (place->first_row != reader->row_at)
        return checker_wrong_count(checker, page->offset, "is the page's first row", reader->row_at,
                                   place->first_row);
    if (checker->about->max_rep && reader->rep.data[reader->level_count])
        return checker_fault(checker, page->offset, "a page that begins in the middle of a row");
    return STATUS_OK;
}

/* Bounds rise or fall from page to page, if the index says so. */
static enum status check_order(struct checker *checker, const struct page_bounds *bounds,
                               const struct page *page)
{
    enum { RISING = 1, FALLING = 2 };
    const struct page_bounds *last = checker->last;
    int64_t order = checker->index.boundary_order;
    if (bounds->is_null || !bounds->statistics.has_min)
        return STATUS_OK;
    checker->last = bounds;
    if (!last || (order != RISING && order != FALLING))
        return STATUS_OK;
    struct bounds a = bounds_of(checker, &last->statistics);
    struct bounds b = bounds_of(checker, &bounds->statistics);
    int wrong = order == RISING ? ORDER_GREATER : ORDER_LESS;
    if (a.is_said && b.is_said &&
        (value_order(checker->about, &a.min, &b.min) == wrong ||
         value_order(checker->about, &a.max, &b.max) == wrong))
        return checker_fault(checker, page->offset,
                             "bounds in another order than the column index says");
    return STATUS_OK;
}

static enum status check_counts(const struct checker *checker,
                                const struct parquet_statistics *said,
                                const struct null_counts *nulls, int64_t nans, uint64_t offset)
{
    if (said->has_null_count)
        TRY(verify_null_count(checker, offset, said->null_count, nulls));
    if (said->has_nan_count && said->nan_count != nans &&
        value_class_of(checker->about) == CLASS_REAL)
        return checker_wrong_count(checker, offset, "NaN", nans, said->nan_count);
    return STATUS_OK;
}

/* Counts in the header of a page of version 2, and the statistics of either. */
static enum status check_header(const struct checker *checker, const struct leaf_reader *reader,
                                const struct page_check *check, size_t levels)
{
    const struct page *page = check->page;
    const struct page_statistics *header = &check->header;
    int64_t rows = (int64_t)levels;
    if (checker->about->max_rep)
        rows -= (int64_t)count_levels_from(reader->rep.data + reader->level_count, levels, 1);
    if (page->row_count >= 0 && page->row_count != rows)
        return checker_wrong_count(checker, page->offset, "rows in a page", rows, page->row_count);
    if (page->null_count >= 0)
        TRY(verify_null_count(checker, page->offset, page->null_count, &check->nulls));
    TRY(check_counts(checker, &header->said, &check->nulls, check->nans, page->offset));
    if (header->distinct_count > check->values)
        return checker_wrong_count(checker, page->offset, "values that may differ", check->values,
                                   header->distinct_count);
    TRY(verify_old_bounds(checker, page->offset, header->old_min, header->old_max));
    return verify_bounds(checker, page->offset, &header->said, check->values, check->nans);
}

static enum status check_indexed(struct checker *checker, const struct page_check *check,
                                 size_t levels)
{
    const struct page_bounds *said = check->indexed;
    if (!said)
        return STATUS_OK;
    if (said->is_null != (check->nulls.levels == (int64_t)levels))
        return checker_fault(checker, check->page->offset,
                             said->is_null
                                 ? "values where the column index says that there are none"
                                 : "no values where the column index says that there are some");
    struct parquet_statistics bounds = said->statistics;
    bounds.has_min = bounds.has_max = !said->is_null;
    TRY(verify_bounds(checker, checker->chunk->column_index_offset, &bounds, check->values,
                      check->nans));
    TRY(check_counts(checker, &said->statistics, &check->nulls, check->nans, check->page->offset));
    return check_order(checker, said, check->page);
}

static enum status begin_check(const struct checker *checker, const struct page *page,
                               struct page_check *check)
{
    *check = (struct page_check){.page = page, .header = {.distinct_count = -1}};
    if (checker->chunk->column_index_bytes && checker->page == checker->index.count)
        return checker_fault(checker, page->offset, "a page that the column index has not");
    if (checker->chunk->column_index_bytes)
        check->indexed = &checker->index.pages[checker->page];
    if (check->indexed && !check->indexed->is_null)
        check->bounds = bounds_of(checker, &check->indexed->statistics);
    if (!page->statistics.data)
        return STATUS_OK;
    if (!verify_read_statistics(page->statistics, &check->header))
        return checker_fault(checker, page->offset, "damaged statistics in a page's header");
    check->header_bounds = bounds_of(checker, &check->header.said);
    check->old_bounds = old_bounds_of(checker, check->header.old_min, check->header.old_max);
    return STATUS_OK;
}

static enum status check_page(void *context, const struct leaf_reader *reader,
                              const struct page *page, size_t levels)
{
    struct checker *checker = context;
    struct page_check check;
    uint8_t max_def = checker->about->max_def;
    const uint8_t *def = max_def ? reader->def.data + reader->level_count : NULL;
    TRY(verify_dictionary(checker, reader));
    TRY(check_place(checker, reader, page));
    TRY(begin_check(checker, page, &check));
    for (size_t i = 0; i < levels; i++)
        if (!def || def[i] == max_def)
            TRY(check_value(checker, &check, verify_slot(reader, reader->slot_count + i)));
    check.nulls = verify_count_nulls(checker, def, levels);
    check.values = (int64_t)levels - check.nulls.levels;
    TRY(check_indexed(checker, &check, levels));
    TRY(check_header(checker, reader, &check, levels));
    TRY(verify_page_sizes(checker, reader, page, levels));
    checker->nulls.levels += check.nulls.levels;
    checker->nulls.slots += check.nulls.slots;
    checker->nulls.own += check.nulls.own;
    checker->value_count += check.values;
    checker->nan_count += check.nans;
    checker->page++;
    return STATUS_OK;
}

/* ---- chunks ---- */

static enum status load_bloom(struct checker *checker)
{
    struct fetches fetches = {0};
    struct bloom_place place;
    if (!checker->chunk->bloom_offset || checker->about->physical == PARQUET_BOOLEAN)
        return STATUS_OK;
    TRY(bloom_find(checker->file, checker->bytes.group, checker->bytes.leaf, &fetches, &place,
                   checker->err));
    uint8_t *filter = arena_alloc(&checker->arena, place.bytes + 1);
    if (!filter)
        return error_set(checker->err, STATUS_LIMIT, "parquet: column %.100s: no room for a filter",
                         checker->about->path);
    if (place.bytes && checker->chunk->bloom_bytes &&
        place.offset - checker->chunk->bloom_offset + place.bytes != checker->chunk->bloom_bytes)
        return checker_fault(checker, checker->chunk->bloom_offset,
                             "a Bloom filter of another length than the footer says");
    checker->bloom = span_of(filter, place.bytes);
    return file_fetch(checker->file, &fetches, place.offset, place.bytes, filter, checker->err);
}

static enum status load_indexes(struct checker *checker)
{
    struct fetches fetches = {0};
    TRY(group_index_offsets(checker->places, checker->bytes.group, checker->bytes.leaf,
                            &checker->offsets, checker->err));
    checker->page_count = checker->offsets.count;
    if (!checker->chunk->column_index_bytes)
        return verify_load_sizes(checker);
    TRY(column_index_read(checker->file, checker->bytes.group, checker->bytes.leaf, &fetches,
                          &checker->arena, &checker->index, checker->err));
    if (!checker->chunk->offset_index_bytes)
        checker->page_count = checker->index.count;
    if (checker->index.count != checker->page_count)
        return checker_fault(checker, checker->chunk->column_index_offset,
                             "column index: another count of pages than the offset index");
    return verify_load_sizes(checker);
}

enum status verify_read_leaf(const struct parquet_file *file, const struct chunk_bytes *chunk,
                             size_t bytes_max,
                             enum status (*watch)(void *context, const struct leaf_reader *reader,
                                                  const struct page *page, size_t levels),
                             void *context, struct leaf_reader *out_reader, struct error *err)
{
    static const struct parquet_row_range none;
    const struct parquet_leaf *leaf = &file->leaves[chunk->leaf];
    struct codec_expander *zstd = NULL;
    struct page_piece piece = {.offset = chunk->offset,
                               .length = chunk->bytes.length,
                               .bytes = chunk->bytes,
                               .row_count = file->groups[chunk->group].rows};
    struct planned_leaf plan = {.pieces = &piece, .count = 1, .is_whole = true};
    *out_reader = (struct leaf_reader){
        .walk = {.file = file,
                 .leaf = leaf,
                 .chunk = &file->groups[chunk->group].chunks[chunk->leaf],
                 .group = chunk->group,
                 .zstd = &zstd,
                 .expanded_bytes_max = file->limits.batch_bytes_max},
        .physical_width = leaf_physical_width(leaf),
        .width = leaf_physical_width(leaf),
        .reads_values = true,
        .plan = &plan,
        .watch = watch,
        .watch_context = context,
        .rows = watch ? &none : NULL, /* each page is looked at, and dropped */
    };
    enum status status = leaf_reader_read(out_reader, bytes_max, err);
    codec_expander_destroy(zstd);
    out_reader->walk.zstd = NULL;
    out_reader->plan = NULL;
    return status;
}

static enum status read_pages(struct checker *checker)
{
    struct leaf_reader reader;
    enum status status =
        verify_read_leaf(checker->file, &checker->bytes, checker->file->limits.batch_bytes_max,
                         check_page, checker, &reader, checker->err);
    leaf_reader_deinit(&reader);
    return status;
}

static enum status check_chunk(struct checker *checker)
{
    const struct parquet_statistics *said = &checker->chunk->statistics;
    TRY(parquet_chunk_facts_read(checker->file, checker->bytes.group, checker->bytes.leaf,
                                 &checker->arena, &checker->facts, checker->err));
    checker->bounds = bounds_of(checker, said);
    checker->old_bounds = old_bounds_of(checker, checker->facts.old_min, checker->facts.old_max);
    TRY(chunk_fetch(checker->file, &checker->arena, &checker->bytes, checker->err));
    TRY(verify_chunk_facts(checker));
    TRY(load_bloom(checker));
    TRY(load_indexes(checker));
    TRY(read_pages(checker));
    while (checker->page < checker->offsets.count &&
           checker->offsets.pages[checker->page].row_count == 0)
        checker->page++;
    if (checker->page < checker->offsets.count)
        return checker_fault(checker, checker->chunk->offset_index_offset,
                             "offset index: more pages than there are");
    if (checker->page < checker->index.count)
        return checker_fault(checker, checker->chunk->column_index_offset,
                             "column index: more pages than there are");
    TRY(check_counts(checker, said, &checker->nulls, checker->nan_count, checker->chunk->offset));
    TRY(verify_bounds(checker, checker->facts.at, said, checker->value_count, checker->nan_count));
    TRY(verify_old_bounds(checker, checker->facts.at, checker->facts.old_min,
                          checker->facts.old_max));
    TRY(verify_distinct_count(checker));
    if (checker->bounds.is_said && ((said->is_min_exact && !checker->bounds.has_min) ||
                                    (said->is_max_exact && !checker->bounds.has_max)))
        return checker_fault(checker, checker->chunk->offset,
                             "a bound that is said to be exact, and no value has it");
    return verify_chunk_sizes(checker);
}

static enum status check_leaf(const struct parquet_file *file, size_t group, uint32_t leaf,
                              struct group_index *places, struct error *err)
{
    struct checker checker = {.file = file,
                              .about = &file->leaves[leaf],
                              .chunk = &file->groups[group].chunks[leaf],
                              .bytes = {.group = group, .leaf = leaf},
                              .places = places,
                              .err = err};
    arena_init(&checker.arena, 0); /* bounded by the limits of what is read into it */
    verify_find_leaf(&checker);
    enum status status = check_chunk(&checker);
    buf_deinit(&checker.hashes);
    arena_deinit(&checker.arena);
    return status;
}

enum status parquet_file_verify(const struct parquet_file *file, size_t group, struct error *err)
{
    struct group_index places;
    CHECK(group < file->group_count);
    group_index_init(&places, file);
    enum status status = STATUS_OK;
    for (uint32_t leaf = 0; leaf < file->leaf_count && status == STATUS_OK; leaf++)
        status = check_leaf(file, group, leaf, &places, err);
    group_index_deinit(&places);
    if (status == STATUS_OK)
        status = verify_group_facts(file, group, err);
    return status == STATUS_OK ? verify_sort_keys(file, group, err) : status;
}
