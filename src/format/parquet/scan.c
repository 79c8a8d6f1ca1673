/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows that match, row group by row group: rule out, look at the filter's columns, read the rest
 * of the rows that are left.
 */
#include "format/parquet/prune_internal.h"

struct parquet_scan {
    const struct parquet_file *file;
    struct parquet_filter filter;
    uint64_t rows_left;
    bool skips_pruning;
    size_t group; /* the next */
    struct group_index index;
    struct parquet_scan_facts facts;
    struct arrow_schema condition_schema;
    struct parquet_reader *conditions; /* NULL: there are none */
    struct parquet_reader *wanted;
    struct arena arena;
    struct arena rows; /* of the row group at hand */
};

/* ---- the columns of the conditions ---- */

/* Text and bytes keep their dictionaries, so that each value is looked at once. */
static void keep_dictionaries(struct arrow_field *fields, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        fields[i].is_dictionary = fields[i].type == ARROW_UTF8 || fields[i].type == ARROW_BINARY;
        keep_dictionaries(fields[i].children, fields[i].child_count);
    }
}

static enum status open_conditions(struct parquet_scan *scan,
                                   const struct parquet_read_options *read, struct error *err)
{
    struct parquet_read_options options = {.schema = &scan->condition_schema,
                                           .keeps_physical = true,
                                           .skips_checksums = read->skips_checksums,
                                           .memory = read->memory};
    size_t count = scan->filter.count;
    const char **names = arena_alloc(&scan->arena, count * sizeof *names);
    if (!names)
        return error_set(err, STATUS_NO_MEMORY, "parquet: no memory for a scan");
    for (size_t i = 0; i < count; i++)
        names[i] = scan->file->leaves[scan->filter.conditions[i].leaf].path;
    struct arrow_schema selected;
    TRY(parquet_schema_select(scan->file, names, count, &scan->arena, &selected, err));
    TRY(arrow_schema_copy(&selected, &scan->arena, &scan->condition_schema, err));
    keep_dictionaries(scan->condition_schema.fields, scan->condition_schema.field_count);
    TRY(parquet_reader_create(scan->file, &options, &scan->conditions, err));
    scan->conditions->index = &scan->index;
    for (size_t i = 0; i < count; i++)
        if (scan->conditions->places[scan->filter.conditions[i].leaf] == UINT32_MAX)
            return error_set(err, STATUS_USAGE, "parquet: column %.100s cannot be found by name",
                             names[i]);
    return STATUS_OK;
}

/* The column of a leaf in a batch of the conditions' reader. */
static bool find_column(const struct binding *bindings, const struct arrow_array *columns,
                        uint32_t count, uint32_t leaf, const struct arrow_field **out_field,
                        const struct arrow_array **out_array)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct binding *binding = &bindings[i];
        if (!binding->node)
            continue;
        if (binding->children) {
            if (find_column(binding->children, columns[i].children, binding->field->child_count,
                            leaf, out_field, out_array))
                return true;
        } else if (binding->leaf == leaf) {
            *out_field = binding->field;
            *out_array = &columns[i];
            return true;
        }
    }
    return false;
}

static enum status apply_condition(struct parquet_scan *scan, const struct arrow_batch *batch,
                                   uint32_t number, uint8_t *matches, struct error *err)
{
    const struct parquet_condition *condition = &scan->filter.conditions[number];
    const struct arrow_field *field;
    const struct arrow_array *array;
    CHECK(find_column(scan->conditions->bindings, batch->columns, batch->schema->field_count,
                      condition->leaf, &field, &array));
    return condition_apply(scan->file, condition, field, array, matches, err);
}

/* The next term and those that it joins: clears what does not match. Each of those that OR joins
 * looks only at what the ones before it have left. */
static enum status apply_term(struct parquet_scan *scan, struct filter_walk *walk,
                              const struct arrow_batch *batch, uint8_t *matches, struct error *err)
{
    struct parquet_term term = filter_walk_next(walk);
    size_t count = (size_t)batch->length;
    enum status status = STATUS_OK;
    if (term.kind == PARQUET_TERM_CONDITION)
        return apply_condition(scan, batch, term.number, matches, err);
    if (term.kind == PARQUET_TERM_AND) {
        for (uint32_t i = 0; i < term.number; i++)
            TRY(apply_term(scan, walk, batch, matches, err));
        return STATUS_OK;
    }
    uint8_t *left = mem_copy(matches, count), *some = mem_alloc(count);
    if (!left || !some) {
        status = error_set(err, STATUS_NO_MEMORY, "parquet: no memory for a filter");
        goto done;
    }
    for (uint32_t i = 0; i < term.number; i++) {
        memcpy(some, left, count);
        TRY_OR_DONE(status, apply_term(scan, walk, batch, some, err));
        for (size_t row = 0; row < count; row++)
            left[row] &= !some[row];
    }
    for (size_t row = 0; row < count; row++)
        matches[row] &= !left[row];
done:
    mem_free(left);
    mem_free(some);
    return status;
}

static enum status apply_filter(struct parquet_scan *scan, const struct arrow_batch *batch,
                                uint8_t *matches, struct error *err)
{
    struct filter_walk walk;
    filter_walk_init(&walk, &scan->filter);
    return apply_term(scan, &walk, batch, matches, err);
}

/* ---- a row group ---- */

static size_t count_runs(const uint8_t *matches, size_t count)
{
    size_t runs = 0;
    for (size_t i = 0; i < count; i++)
        runs += matches[i] && !(i && matches[i - 1]);
    return runs;
}

/* Of the rows in `rows`, one byte each in `matches`, those that match. */
static size_t collect(const struct parquet_row_range *rows, size_t range_count,
                      const uint8_t *matches, struct parquet_row_range *out_rows)
{
    size_t count = 0;
    for (size_t i = 0; i < range_count; i++) {
        for (int64_t row = rows[i].first; row < rows[i].first + rows[i].count; row++) {
            struct parquet_row_range *last = count ? &out_rows[count - 1] : NULL;
            if (!*matches++)
                continue;
            if (last && last->first + last->count == row)
                last->count++;
            else
                out_rows[count++] = (struct parquet_row_range){.first = row, .count = 1};
        }
    }
    return count;
}

/* Looks at the rows that may match, and keeps those that do. */
static enum status match_rows(struct parquet_scan *scan, size_t group,
                              struct parquet_row_range **inout_rows, size_t *inout_count,
                              struct error *err)
{
    struct arrow_batch batch;
    TRY(parquet_reader_read_rows(scan->conditions, group, *inout_rows, *inout_count, &batch, err));
    size_t length = (size_t)batch.length, count = 0;
    uint8_t *matches = mem_alloc(length + 1);
    struct parquet_row_range *rows = NULL;
    enum status status = STATUS_OK;
    if (!matches) {
        status = error_set(err, STATUS_NO_MEMORY, "parquet: row group %zu: no memory", group);
        goto done;
    }
    memset(matches, 1, length);
    TRY_OR_DONE(status, apply_filter(scan, &batch, matches, err));
    rows =
        arena_alloc(&scan->rows, (count_runs(matches, length) + *inout_count + 1) * sizeof *rows);
    if (!rows) {
        status = error_set(err, STATUS_NO_MEMORY, "parquet: row group %zu: no memory", group);
        goto done;
    }
    count = collect(*inout_rows, *inout_count, matches, rows);
    scan->facts.read_row_count += length;
    *inout_rows = rows;
    *inout_count = count;
done:
    mem_free(matches);
    arrow_batch_deinit(&batch);
    return status;
}

/* Leaves of the rows as many as are still wanted. */
static void limit_rows(struct parquet_scan *scan, struct parquet_row_range *rows,
                       size_t *inout_count)
{
    size_t count = 0;
    for (; count < *inout_count && scan->rows_left; count++) {
        if ((uint64_t)rows[count].count > scan->rows_left)
            rows[count].count = (int64_t)scan->rows_left;
        scan->rows_left -= (uint64_t)rows[count].count;
    }
    *inout_count = count;
}

/* NOT_FOUND: none of its rows match. */
static enum status scan_group(struct parquet_scan *scan, size_t group,
                              struct arrow_batch *out_batch, struct error *err)
{
    static const struct parquet_filter everything;
    struct parquet_row_range *rows;
    size_t count;
    arena_clear(&scan->rows);
    TRY(prune_group(&scan->index, scan->skips_pruning ? &everything : &scan->filter, group,
                    &scan->rows, &rows, &count, &scan->facts, err));
    if (count && scan->conditions)
        TRY(match_rows(scan, group, &rows, &count, err));
    limit_rows(scan, rows, &count);
    if (!count)
        return error_set(err, STATUS_NOT_FOUND, "parquet: no rows");
    TRY(parquet_reader_read_rows(scan->wanted, group, rows, count, out_batch, err));
    scan->facts.match_count += (uint64_t)out_batch->length;
    return STATUS_OK;
}

/* ---- scans ---- */

enum status parquet_scan_create(const struct parquet_file *file,
                                const struct parquet_scan_options *options,
                                struct parquet_scan **out_scan, struct error *err)
{
    enum status status = STATUS_OK;
    TRY(filter_check(file, &options->filter, err));
    struct parquet_scan *scan = mem_alloc_zero(1, sizeof *scan);
    if (!scan)
        return error_set(err, STATUS_NO_MEMORY, "parquet: no memory for a scan");
    scan->file = file;
    scan->filter = options->filter;
    scan->skips_pruning = options->skips_pruning;
    scan->rows_left = options->rows_max ? options->rows_max : UINT64_MAX;
    group_index_init(&scan->index, file);
    if (scan->filter.count)
        TRY_OR_DONE(status, open_conditions(scan, &options->read, err));
    TRY_OR_DONE(status, parquet_reader_create(file, &options->read, &scan->wanted, err));
    scan->wanted->index = &scan->index;
    *out_scan = scan;
done:
    if (status != STATUS_OK)
        parquet_scan_destroy(scan);
    return status;
}

void parquet_scan_destroy(struct parquet_scan *scan)
{
    if (!scan)
        return;
    parquet_reader_destroy(scan->conditions);
    parquet_reader_destroy(scan->wanted);
    group_index_deinit(&scan->index);
    arena_deinit(&scan->rows);
    arena_deinit(&scan->arena);
    mem_free(scan);
}

const struct arrow_schema *parquet_scan_schema(const struct parquet_scan *scan)
{
    return parquet_reader_schema(scan->wanted);
}

enum status parquet_scan_next(struct parquet_scan *scan, struct arrow_batch *out_batch,
                              struct error *err)
{
    while (scan->group < scan->file->group_count && scan->rows_left) {
        enum status status = scan_group(scan, scan->group++, out_batch, err);
        if (status != STATUS_NOT_FOUND)
            return status;
    }
    return error_set(err, STATUS_NOT_FOUND, "parquet: no more rows");
}

struct parquet_scan_facts parquet_scan_facts(const struct parquet_scan *scan)
{
    struct parquet_scan_facts facts = scan->facts;
    const struct parquet_reader *readers[] = {scan->conditions, scan->wanted};
    for (size_t i = 0; i < COUNT_OF(readers); i++) {
        if (!readers[i])
            continue;
        facts.page_count += readers[i]->page_count;
        facts.page_fetch_count += readers[i]->fetches.count;
        facts.page_bytes += readers[i]->fetches.bytes;
    }
    return facts;
}
