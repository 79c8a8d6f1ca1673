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
static struct bounds old_bounds_of(const struct checker *checker)
{
    const struct parquet_leaf *leaf = checker->about;
    const struct parquet_chunk_facts *facts = &checker->facts;
    bool is_number = (leaf->physical == PARQUET_INT32 || leaf->physical == PARQUET_INT64 ||
                      leaf->physical == PARQUET_FLOAT || leaf->physical == PARQUET_DOUBLE) &&
                     value_class_of(leaf) != CLASS_UNSIGNED && leaf->kind != PARQUET_KIND_OTHER;
    struct bounds bounds = {.is_said = false};
    bounds.is_said = is_number && facts->old_min.data && facts->old_max.data &&
                     value_load(leaf, facts->old_min, &bounds.min) &&
                     value_load(leaf, facts->old_max, &bounds.max) &&
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

static enum status check_value(struct checker *checker, struct bounds *page_bounds,
                               struct span plain, const struct page *page, int64_t *inout_nans)
{
    struct parquet_value value;
    if (checker->bloom.length && !bloom_has(checker->bloom.data, checker->bloom.length,
                                            hash_xxh64(plain.data, plain.length)))
        return checker_fault(checker, page->offset, "a value that the Bloom filter has not");
    if (!value_load(checker->about, plain, &value))
        return STATUS_OK;
    if (value_class_of(checker->about) == CLASS_REAL && isnan(value.real)) {
        ++*inout_nans;
        return STATUS_OK;
    }
    if (!is_within(checker, page_bounds, &value))
        return checker_fault(checker, page->offset,
                             "a value that is not within the page's bounds in the column index");
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

/* Under lists some writers count the nulls of leaves, some every level without a value. */
static enum status check_counts(const struct checker *checker,
                                const struct parquet_statistics *said, int64_t nulls, int64_t nans,
                                uint64_t offset)
{
    bool is_wrong = checker->about->max_rep ? said->null_count > nulls : said->null_count != nulls;
    if (said->has_null_count && is_wrong)
        return checker_wrong_count(checker, offset, "nulls", nulls, said->null_count);
    if (said->has_nan_count && said->nan_count != nans &&
        value_class_of(checker->about) == CLASS_REAL)
        return checker_wrong_count(checker, offset, "NaN", nans, said->nan_count);
    return STATUS_OK;
}

/* What the header of a page of version 2 says. */
static enum status check_header(const struct checker *checker, const struct leaf_reader *reader,
                                const struct page *page, size_t levels, int64_t nulls)
{
    int64_t rows = (int64_t)levels;
    if (checker->about->max_rep)
        rows -= (int64_t)count_levels_from(reader->rep.data + reader->level_count, levels, 1);
    if (page->row_count >= 0 && page->row_count != rows)
        return checker_wrong_count(checker, page->offset, "rows in a page", rows, page->row_count);
    struct parquet_statistics said = {.has_null_count = page->null_count >= 0,
                                      .null_count = page->null_count};
    return check_counts(checker, &said, nulls, 0, page->offset);
}

static enum status check_page(void *context, const struct leaf_reader *reader,
                              const struct page *page, size_t levels)
{
    struct checker *checker = context;
    const struct page_bounds *said = NULL;
    struct bounds bounds = {.is_said = false};
    uint8_t max_def = checker->about->max_def;
    const uint8_t *def = max_def ? reader->def.data + reader->level_count : NULL;
    int64_t nans = 0, nulls = 0;
    TRY(check_place(checker, reader, page));
    if (checker->index.count)
        said = &checker->index.pages[checker->page];
    if (said && !said->is_null)
        bounds = bounds_of(checker, &said->statistics);
    for (size_t i = 0; i < levels; i++) {
        if (def && def[i] < max_def)
            nulls++;
        else
            TRY(check_value(checker, &bounds, verify_slot(reader, reader->slot_count + i), page,
                            &nans));
    }
    if (said && said->is_null != (nulls == (int64_t)levels))
        return checker_fault(checker, page->offset,
                             said->is_null
                                 ? "values where the column index says that there are none"
                                 : "no values where the column index says that there are some");
    if (said) {
        TRY(check_counts(checker, &said->statistics, nulls, nans, page->offset));
        TRY(check_order(checker, said, page));
    }
    TRY(check_header(checker, reader, page, levels, nulls));
    TRY(verify_page_sizes(checker, reader, page, levels));
    checker->null_count += nulls;
    checker->nan_count += nans;
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
    if (!checker->chunk->column_index_bytes || !checker->offsets.count)
        return verify_load_sizes(checker);
    TRY(column_index_read(checker->file, checker->bytes.group, checker->bytes.leaf, &fetches,
                          &checker->arena, &checker->index, checker->err));
    if (checker->index.count != checker->offsets.count)
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
    checker->old_bounds = old_bounds_of(checker);
    TRY(chunk_fetch(checker->file, &checker->arena, &checker->bytes, checker->err));
    TRY(verify_chunk_facts(checker));
    TRY(load_bloom(checker));
    TRY(load_indexes(checker));
    TRY(read_pages(checker));
    while (checker->page < checker->offsets.count &&
           checker->offsets.pages[checker->page].row_count == 0)
        checker->page++;
    if (checker->offsets.count && checker->page < checker->offsets.count)
        return checker_fault(checker, checker->chunk->offset_index_offset,
                             "offset index: more pages than there are");
    TRY(check_counts(checker, said, checker->null_count, checker->nan_count,
                     checker->chunk->offset));
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
    enum status status = check_chunk(&checker);
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
