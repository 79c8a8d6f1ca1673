/* SPDX-License-Identifier: Apache-2.0
 *
 * Row groups and pages that cannot hold a row that matches. Bounds may be wider than the values,
 * never narrower; of NaN they say nothing, so that a page may hold some unless it says that it has
 * none. What is known of a condition is only ever that no row meets it; so AND may be met where all
 * that it joins may be, OR where one may be, and rows are those of all or of any.
 */
#include "format/parquet/prune_internal.h"

/* Rising, apart from each other. */
struct rows {
    struct parquet_row_range *ranges;
    size_t count;
};

struct pruner {
    struct group_index *index;
    const struct parquet_filter *filter;
    size_t group;
    struct fetches fetches; /* beside those of the index */
    struct arena scratch;
    bool *may_hold;               /* each condition, for some row of the group */
    struct column_index *indexes; /* that were read; of the first condition on each leaf */
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

/* What statistics say of every condition, and Bloom filters of those that are still asked for. */
static enum status may_term_hold(struct pruner *pruner, struct filter_walk *walk, bool is_asked,
                                 bool asks_blooms, bool *out_may)
{
    struct parquet_term term = filter_walk_next(walk);
    bool *may = &pruner->may_hold[term.number], is_or = term.kind == PARQUET_TERM_OR, may_one;
    if (term.kind == PARQUET_TERM_CONDITION) {
        const struct parquet_condition *condition = &pruner->filter->conditions[term.number];
        if (is_asked && asks_blooms && *may)
            TRY(bloom_allows(pruner, condition, may));
        *out_may = *may;
        return STATUS_OK;
    }
    *out_may = !is_or;
    for (uint32_t i = 0; i < term.number; i++) {
        TRY(may_term_hold(pruner, walk, is_asked && *out_may != is_or, asks_blooms, &may_one));
        *out_may = is_or ? *out_may || may_one : *out_may && may_one;
    }
    return STATUS_OK;
}

static enum status may_filter_hold(struct pruner *pruner, bool asks_blooms, bool *out_may)
{
    struct filter_walk walk;
    filter_walk_init(&walk, pruner->filter);
    return may_term_hold(pruner, &walk, true, asks_blooms, out_may);
}

static void ask_statistics(struct pruner *pruner)
{
    const struct parquet_group *group = &pruner->index->file->groups[pruner->group];
    for (size_t i = 0; i < pruner->filter->count; i++) {
        const struct parquet_condition *condition = &pruner->filter->conditions[i];
        pruner->may_hold[i] = may_match(leaf_of(pruner, condition), condition,
                                        &group->chunks[condition->leaf].statistics, group->rows);
    }
}

/* ---- rows ---- */

/* Appends rows to ranges that rise; those that touch or overlap become one. */
static void add_rows(struct rows *rows, int64_t first, int64_t end)
{
    struct parquet_row_range *last = rows->count ? &rows->ranges[rows->count - 1] : NULL;
    if (first >= end)
        return;
    if (last && last->first + last->count >= first) {
        if (end > last->first + last->count)
            last->count = end - last->first;
        return;
    }
    rows->ranges[rows->count++] = (struct parquet_row_range){.first = first, .count = end - first};
}

static enum status make_rows(struct pruner *pruner, size_t count_max, struct rows *out_rows)
{
    *out_rows = (struct rows){
        .ranges = arena_alloc(&pruner->scratch, (count_max + 1) * sizeof *out_rows->ranges)};
    return out_rows->ranges ? STATUS_OK : out_of_room(pruner);
}

static enum status all_rows(struct pruner *pruner, struct rows *out_rows)
{
    TRY(make_rows(pruner, 1, out_rows));
    add_rows(out_rows, 0, pruner->index->file->groups[pruner->group].rows);
    return STATUS_OK;
}

static int64_t end_of(const struct parquet_row_range *range)
{
    return range->first + range->count;
}

static enum status intersect(struct pruner *pruner, struct rows a, struct rows b,
                             struct rows *out_rows)
{
    TRY(make_rows(pruner, a.count + b.count, out_rows));
    for (size_t i = 0, j = 0; i < a.count && j < b.count;) {
        const struct parquet_row_range *one = &a.ranges[i], *other = &b.ranges[j];
        int64_t one_end = end_of(one), other_end = end_of(other);
        add_rows(out_rows, one->first > other->first ? one->first : other->first,
                 one_end < other_end ? one_end : other_end);
        i += one_end <= other_end;
        j += other_end <= one_end;
    }
    return STATUS_OK;
}

static enum status unite(struct pruner *pruner, struct rows a, struct rows b, struct rows *out_rows)
{
    TRY(make_rows(pruner, a.count + b.count, out_rows));
    for (size_t i = 0, j = 0; i < a.count || j < b.count;) {
        bool is_a = j == b.count || (i < a.count && a.ranges[i].first <= b.ranges[j].first);
        const struct parquet_row_range *next = is_a ? &a.ranges[i++] : &b.ranges[j++];
        add_rows(out_rows, next->first, end_of(next));
    }
    return STATUS_OK;
}

/* ---- pages ---- */

/* Each is read once. */
static enum status read_column_index(struct pruner *pruner, uint32_t leaf,
                                     struct column_index *out_index)
{
    const struct parquet_condition *conditions = pruner->filter->conditions;
    size_t first = 0;
    while (conditions[first].leaf != leaf)
        first++;
    struct column_index *index = &pruner->indexes[first];
    if (!index->pages)
        TRY(column_index_read(pruner->index->file, pruner->group, leaf, &pruner->fetches,
                              &pruner->scratch, index, pruner->err));
    *out_index = *index;
    return STATUS_OK;
}

/* The rows of the pages that may hold one that meets the condition. */
static enum status prune_pages(struct pruner *pruner, const struct parquet_condition *condition,
                               struct rows *out_rows)
{
    const struct parquet_file *file = pruner->index->file;
    const struct parquet_chunk *chunk = &file->groups[pruner->group].chunks[condition->leaf];
    const struct parquet_leaf *leaf = leaf_of(pruner, condition);
    struct offset_index offsets;
    struct column_index bounds;
    if (!chunk->column_index_bytes || !chunk->offset_index_bytes)
        return all_rows(pruner, out_rows);
    TRY(group_index_offsets(pruner->index, pruner->group, condition->leaf, &offsets, pruner->err));
    TRY(read_column_index(pruner, condition->leaf, &bounds));
    if (bounds.count != offsets.count)
        return chunk_fault(file, pruner->group, condition->leaf, chunk->column_index_offset,
                           STATUS_CORRUPT, pruner->err,
                           "column index: %zu pages; the offset index has %zu", bounds.count,
                           offsets.count);
    TRY(make_rows(pruner, bounds.count, out_rows));
    for (size_t i = 0; i < bounds.count; i++) {
        const struct page_place *page = &offsets.pages[i];
        if (may_match_page(leaf, condition, &bounds.pages[i], page->row_count))
            add_rows(out_rows, page->first_row, page->first_row + page->row_count);
    }
    return STATUS_OK;
}

/* Where it is not asked for, the walk only goes on, and there are no rows. */
static enum status rows_of_term(struct pruner *pruner, struct filter_walk *walk, bool is_asked,
                                struct rows *out_rows)
{
    struct parquet_term term = filter_walk_next(walk);
    struct rows rows = {0}, one;
    if (term.kind == PARQUET_TERM_CONDITION) {
        *out_rows = rows;
        if (!is_asked || !pruner->may_hold[term.number])
            return STATUS_OK;
        return prune_pages(pruner, &pruner->filter->conditions[term.number], out_rows);
    }
    bool is_or = term.kind == PARQUET_TERM_OR;
    if (is_asked && !is_or)
        TRY(all_rows(pruner, &rows));
    for (uint32_t i = 0; i < term.number; i++) {
        bool is_one_asked = is_asked && (is_or || rows.count);
        TRY(rows_of_term(pruner, walk, is_one_asked, &one));
        if (is_one_asked)
            TRY(is_or ? unite(pruner, rows, one, &rows) : intersect(pruner, rows, one, &rows));
    }
    *out_rows = rows;
    return STATUS_OK;
}

/* ---- a group ---- */

static enum status prune(struct pruner *pruner, struct parquet_scan_facts *facts,
                         struct rows *out_rows)
{
    struct filter_walk walk;
    size_t count = pruner->filter->count;
    bool may;
    *out_rows = (struct rows){0};
    pruner->may_hold = arena_alloc(&pruner->scratch, count + 1);
    pruner->indexes = arena_alloc_zero(&pruner->scratch, count, sizeof *pruner->indexes);
    if (!pruner->may_hold || !pruner->indexes)
        return out_of_room(pruner);
    ask_statistics(pruner);
    TRY(may_filter_hold(pruner, false, &may));
    facts->statistics_group_count += !may;
    if (!may)
        return STATUS_OK;
    TRY(may_filter_hold(pruner, true, &may));
    facts->bloom_group_count += !may;
    if (!may)
        return STATUS_OK;
    filter_walk_init(&walk, pruner->filter);
    TRY(rows_of_term(pruner, &walk, true, out_rows));
    facts->index_group_count += !out_rows->count;
    return STATUS_OK;
}

enum status prune_group(struct group_index *index, const struct parquet_filter *filter,
                        size_t group, struct arena *arena, struct parquet_row_range **out_rows,
                        size_t *out_count, struct parquet_scan_facts *inout_facts,
                        struct error *err)
{
    struct pruner pruner = {.index = index, .filter = filter, .group = group, .err = err};
    struct parquet_scan_facts facts = *inout_facts;
    struct fetches before = index->fetches;
    arena_init(&pruner.scratch, index->file->limits.metadata_bytes_max);
    struct rows rows;
    struct parquet_row_range *copy = NULL;
    enum status status = prune(&pruner, &facts, &rows);
    if (status == STATUS_OK) {
        copy = arena_alloc(arena, (rows.count + 1) * sizeof *copy);
        if (!copy)
            status = out_of_room(&pruner);
        else if (rows.count)
            memcpy(copy, rows.ranges, rows.count * sizeof *copy);
    }
    arena_deinit(&pruner.scratch);
    if (status != STATUS_OK)
        return status;
    facts.group_count++;
    facts.row_count += (uint64_t)index->file->groups[group].rows;
    facts.index_fetch_count += pruner.fetches.count + index->fetches.count - before.count;
    facts.index_bytes += pruner.fetches.bytes + index->fetches.bytes - before.bytes;
    *inout_facts = facts;
    *out_rows = copy;
    *out_count = rows.count;
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
