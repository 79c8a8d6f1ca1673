/* SPDX-License-Identifier: Apache-2.0
 *
 * Row groups and pages that cannot hold a row that matches. Bounds may be wider than the values,
 * never narrower; of NaN they say nothing, so that a page may hold some unless it says that it has
 * none.
 */
#include "format/parquet/prune_internal.h"

struct pruner {
    struct group_index *index;
    const struct parquet_filter *filter;
    size_t group;
    struct fetches fetches; /* beside those of the index */
    struct arena *arena;    /* of the rows that come out */
    struct arena scratch;
    struct parquet_row_range *rows;
    size_t count;
    struct error *err;
};

static const struct parquet_leaf *leaf_of(const struct pruner *pruner,
                                          const struct parquet_condition *condition)
{
    return &pruner->index->file->leaves[condition->leaf];
}

static enum status out_of_room(const struct pruner *pruner)
{
    return error_set(pruner->err, STATUS_LIMIT, "parquet: row group %zu: no room for its index",
                     pruner->group);
}

/* ---- one condition against what is said of some values ---- */

/* The orders in which values between the bounds may stand to this one. */
static int possible_orders(const struct parquet_leaf *leaf, const struct parquet_value *min,
                           const struct parquet_value *max, const struct parquet_value *value)
{
    int low = value_order(leaf, min, value), high = value_order(leaf, max, value);
    int orders = low | high;
    if (low == ORDER_LESS && high == ORDER_GREATER)
        orders |= ORDER_SAME;
    return orders;
}

static bool may_match_bounds(const struct parquet_leaf *leaf,
                             const struct parquet_condition *condition,
                             const struct parquet_statistics *said)
{
    struct parquet_value min, max;
    int orders = operator_orders(condition->op);
    bool may_be_nan =
        value_class_of(leaf) == CLASS_REAL && !(said->has_nan_count && said->nan_count == 0);
    if (!leaf_has_bounds(leaf) || !said->has_min || !said->has_max ||
        !value_load(leaf, said->min, &min) || !value_load(leaf, said->max, &max))
        return true;
    if (!(value_order(leaf, &min, &max) & (ORDER_LESS | ORDER_SAME)))
        return true; /* no bounds, or NaN */
    for (size_t i = 0; i < condition->value_count; i++) {
        int possible = possible_orders(leaf, &min, &max, &condition->values[i]);
        if ((possible | (may_be_nan ? ORDER_NONE : 0)) & orders)
            return true;
    }
    return false;
}

/* Of `rows` values, nulls among them. */
static bool may_match(const struct parquet_leaf *leaf, const struct parquet_condition *condition,
                      const struct parquet_statistics *said, int64_t rows)
{
    bool is_all_null = said->has_null_count && said->null_count == rows;
    if (condition->op == PARQUET_IS_NULL)
        return leaf->max_def > 0 && !(said->has_null_count && said->null_count == 0);
    if (is_all_null)
        return false;
    return condition->op == PARQUET_IS_NOT_NULL || may_match_bounds(leaf, condition, said);
}

static bool may_match_page(const struct parquet_leaf *leaf,
                           const struct parquet_condition *condition,
                           const struct page_bounds *page, int64_t rows)
{
    if (page->is_null)
        return condition->op == PARQUET_IS_NULL;
    return may_match(leaf, condition, &page->statistics, rows);
}

/* ---- whole groups ---- */

static bool statistics_allow(const struct pruner *pruner)
{
    const struct parquet_group *group = &pruner->index->file->groups[pruner->group];
    for (size_t i = 0; i < pruner->filter->count; i++) {
        const struct parquet_condition *condition = &pruner->filter->conditions[i];
        if (!may_match(leaf_of(pruner, condition), condition,
                       &group->chunks[condition->leaf].statistics, group->rows))
            return false;
    }
    return true;
}

static enum status bloom_allows(struct pruner *pruner, const struct parquet_condition *condition,
                                bool *out_allows)
{
    const struct parquet_file *file = pruner->index->file;
    const struct parquet_chunk *chunk = &file->groups[pruner->group].chunks[condition->leaf];
    struct bloom_place place;
    bool may_have = false;
    *out_allows = true;
    if ((condition->op != PARQUET_EQUAL && condition->op != PARQUET_IN) || !chunk->bloom_offset)
        return STATUS_OK;
    TRY(bloom_find(file, pruner->group, condition->leaf, &pruner->fetches, &place, pruner->err));
    if (!place.bytes)
        return STATUS_OK;
    for (size_t i = 0; i < condition->value_count && !may_have; i++)
        TRY(bloom_ask(file, condition->leaf, &place, &condition->values[i], &pruner->fetches,
                      &may_have, pruner->err));
    *out_allows = may_have;
    return STATUS_OK;
}

static enum status blooms_allow(struct pruner *pruner, bool *out_allow)
{
    *out_allow = true;
    for (size_t i = 0; i < pruner->filter->count && *out_allow; i++)
        TRY(bloom_allows(pruner, &pruner->filter->conditions[i], out_allow));
    return STATUS_OK;
}

/* ---- pages ---- */

/* Appends rows to ranges that rise; those that touch become one. */
static void add_rows(struct parquet_row_range *ranges, size_t *inout_count, int64_t first,
                     int64_t end)
{
    struct parquet_row_range *last = *inout_count ? &ranges[*inout_count - 1] : NULL;
    if (first >= end)
        return;
    if (last && last->first + last->count == first)
        last->count = end - last->first;
    else
        ranges[(*inout_count)++] = (struct parquet_row_range){.first = first, .count = end - first};
}

/* Keeps of the rows at hand those that are among others. */
static enum status intersect(struct pruner *pruner, const struct parquet_row_range *others,
                             size_t other_count)
{
    const struct parquet_row_range *rows = pruner->rows;
    size_t count = 0, i = 0, j = 0;
    struct parquet_row_range *both =
        arena_alloc(pruner->arena, (pruner->count + other_count + 1) * sizeof *both);
    if (!both)
        return out_of_room(pruner);
    while (i < pruner->count && j < other_count) {
        int64_t a_end = rows[i].first + rows[i].count, b_end = others[j].first + others[j].count;
        int64_t first = rows[i].first > others[j].first ? rows[i].first : others[j].first;
        add_rows(both, &count, first, a_end < b_end ? a_end : b_end);
        i += a_end <= b_end;
        j += b_end <= a_end;
    }
    pruner->rows = both;
    pruner->count = count;
    return STATUS_OK;
}

static enum status prune_pages(struct pruner *pruner, const struct parquet_condition *condition)
{
    const struct parquet_file *file = pruner->index->file;
    const struct parquet_chunk *chunk = &file->groups[pruner->group].chunks[condition->leaf];
    const struct parquet_leaf *leaf = leaf_of(pruner, condition);
    struct offset_index offsets;
    struct column_index bounds;
    size_t count = 0;
    if (!chunk->column_index_bytes || !chunk->offset_index_bytes)
        return STATUS_OK;
    TRY(group_index_offsets(pruner->index, pruner->group, condition->leaf, &offsets, pruner->err));
    TRY(column_index_read(file, pruner->group, condition->leaf, &pruner->fetches, &pruner->scratch,
                          &bounds, pruner->err));
    if (bounds.count != offsets.count)
        return chunk_fault(file, pruner->group, condition->leaf, chunk->column_index_offset,
                           STATUS_CORRUPT, pruner->err,
                           "column index: %zu pages; the offset index has %zu", bounds.count,
                           offsets.count);
    struct parquet_row_range *rows =
        arena_alloc(&pruner->scratch, (bounds.count + 1) * sizeof *rows);
    if (!rows)
        return out_of_room(pruner);
    for (size_t i = 0; i < bounds.count; i++) {
        const struct page_place *page = &offsets.pages[i];
        if (may_match_page(leaf, condition, &bounds.pages[i], page->row_count))
            add_rows(rows, &count, page->first_row, page->first_row + page->row_count);
    }
    return intersect(pruner, rows, count);
}

/* ---- a group ---- */

static enum status start_with_all(struct pruner *pruner)
{
    pruner->rows = arena_alloc(pruner->arena, sizeof *pruner->rows);
    if (!pruner->rows)
        return out_of_room(pruner);
    add_rows(pruner->rows, &pruner->count, 0, pruner->index->file->groups[pruner->group].rows);
    return STATUS_OK;
}

static enum status prune(struct pruner *pruner, struct parquet_scan_facts *facts)
{
    bool is_allowed;
    TRY(start_with_all(pruner));
    if (!statistics_allow(pruner)) {
        facts->statistics_group_count++;
        pruner->count = 0;
        return STATUS_OK;
    }
    TRY(blooms_allow(pruner, &is_allowed));
    if (!is_allowed) {
        facts->bloom_group_count++;
        pruner->count = 0;
        return STATUS_OK;
    }
    for (size_t i = 0; i < pruner->filter->count && pruner->count; i++)
        TRY(prune_pages(pruner, &pruner->filter->conditions[i]));
    facts->index_group_count += !pruner->count;
    return STATUS_OK;
}

enum status prune_group(struct group_index *index, const struct parquet_filter *filter,
                        size_t group, struct arena *arena, struct parquet_row_range **out_rows,
                        size_t *out_count, struct parquet_scan_facts *inout_facts,
                        struct error *err)
{
    struct pruner pruner = {
        .index = index, .filter = filter, .group = group, .arena = arena, .err = err};
    struct parquet_scan_facts facts = *inout_facts;
    struct fetches before = index->fetches;
    arena_init(&pruner.scratch, index->file->limits.metadata_bytes_max);
    enum status status = prune(&pruner, &facts);
    arena_deinit(&pruner.scratch);
    if (status != STATUS_OK)
        return status;
    facts.group_count++;
    facts.row_count += (uint64_t)index->file->groups[group].rows;
    facts.index_fetch_count += pruner.fetches.count + index->fetches.count - before.count;
    facts.index_bytes += pruner.fetches.bytes + index->fetches.bytes - before.bytes;
    *inout_facts = facts;
    *out_rows = pruner.rows;
    *out_count = pruner.count;
    return STATUS_OK;
}

enum status parquet_filter_prune(const struct parquet_file *file,
                                 const struct parquet_filter *filter, size_t group,
                                 struct arena *arena, struct parquet_row_range **out_rows,
                                 size_t *out_count, struct parquet_scan_facts *inout_facts,
                                 struct error *err)
{
    struct group_index index;
    CHECK(group < file->group_count);
    TRY(filter_check(file, filter, err));
    group_index_init(&index, file);
    enum status status =
        prune_group(&index, filter, group, arena, out_rows, out_count, inout_facts, err);
    group_index_deinit(&index);
    return status;
}
