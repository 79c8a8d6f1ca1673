/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows lie in the order of the columns that the row group says it is sorted by.
 */
#include <inttypes.h>

#include "format/parquet/verify_internal.h"

struct sorted_column {
    struct leaf_reader reader;
    const struct parquet_leaf *leaf;
    bool is_descending, is_nulls_first;
};

static bool has_value(const struct sorted_column *column, size_t row)
{
    return !column->leaf->max_def || column->reader.def.data[row] == column->leaf->max_def;
}

/* ORDER_NONE: nobody can say, since one of them is NaN, or the type has no order. */
static int order_of_rows(const struct sorted_column *column, size_t a, size_t b)
{
    struct parquet_value left, right;
    bool has_left = has_value(column, a), has_right = has_value(column, b);
    if (!has_left || !has_right)
        return has_left == has_right                 ? ORDER_SAME
               : has_right == column->is_nulls_first ? ORDER_LESS
                                                     : ORDER_GREATER;
    if (!value_load(column->leaf, verify_slot(&column->reader, a), &left) ||
        !value_load(column->leaf, verify_slot(&column->reader, b), &right))
        return ORDER_NONE;
    int order = value_order(column->leaf, &left, &right);
    if (!column->is_descending || order == ORDER_SAME || order == ORDER_NONE)
        return order;
    return order == ORDER_LESS ? ORDER_GREATER : ORDER_LESS;
}

static enum status check_rows(const struct parquet_file *file, size_t group, uint64_t at,
                              const struct sorted_column *columns, size_t count, struct error *err)
{
    for (int64_t row = 1; row < file->groups[group].rows; row++) {
        int order = ORDER_SAME;
        size_t i = 0;
        for (; i < count && order == ORDER_SAME; i++)
            order = order_of_rows(&columns[i], (size_t)row - 1, (size_t)row);
        if (order != ORDER_GREATER)
            continue;
        error_set(err, STATUS_CORRUPT,
                  "parquet: column %.120s, row group %zu, byte %" PRIu64 ": row %" PRId64
                  " lies before the one in front of it, in the order that is said",
                  columns[i - 1].leaf->path, group, at, row);
        return error_at(err, at);
    }
    return STATUS_OK;
}

/* Values and levels stay, in memory of their own; the dictionary and the like do not. */
static enum status read_column(const struct parquet_file *file, struct chunk_bytes *chunk,
                               size_t bytes_max, struct leaf_reader *out_reader, struct error *err)
{
    struct arena arena;
    struct leaf_reader reader = {.slot_count = 0};
    arena_init(&arena, 0); /* bounded by the limits of what is read into it */
    enum status status = chunk_fetch(file, &arena, chunk, err);
    if (status == STATUS_OK)
        status = verify_read_leaf(file, chunk, bytes_max, NULL, NULL, &reader, err);
    *out_reader =
        (struct leaf_reader){.values = reader.values, .def = reader.def, .width = reader.width};
    reader.values = (struct values){.data = {0}};
    reader.def = (struct buf){0};
    leaf_reader_deinit(&reader);
    arena_deinit(&arena);
    return status;
}

static size_t kept_bytes(const struct leaf_reader *reader)
{
    return reader->values.data.length + reader->values.ends.length + reader->def.length;
}

static enum status key_fault(size_t group, const struct parquet_group_facts *facts, int32_t leaf,
                             const char *what, struct error *err)
{
    error_set(err, STATUS_CORRUPT,
              "parquet: row group %zu, byte %" PRIu64 ": sorted by column %d, %s", group, facts->at,
              leaf, what);
    return error_at(err, facts->at);
}

/* The columns up to the first within a list, which has no order of rows. */
static enum status read_columns(const struct parquet_file *file, size_t group,
                                const struct parquet_group_facts *facts, bool *is_used,
                                struct sorted_column *columns, size_t *out_count, struct error *err)
{
    size_t bytes_left = file->limits.batch_bytes_max;
    for (size_t i = 0; i < facts->sort_key_count; i++) {
        const struct parquet_sort_key *key = &facts->sort_keys[i];
        struct sorted_column *column = &columns[i];
        struct chunk_bytes chunk = {.group = group, .leaf = (uint32_t)key->leaf};
        if (key->leaf < 0 || (uint32_t)key->leaf >= file->leaf_count)
            return key_fault(group, facts, key->leaf, "which is none", err);
        if (is_used[key->leaf])
            return key_fault(group, facts, key->leaf, "which comes twice", err);
        is_used[key->leaf] = true;
        column->leaf = &file->leaves[key->leaf];
        column->is_descending = key->is_descending;
        column->is_nulls_first = key->is_nulls_first;
        if (column->leaf->max_rep)
            return STATUS_OK;
        *out_count = i + 1;
        TRY(read_column(file, &chunk, bytes_left, &column->reader, err));
        bytes_left -= size_min(bytes_left, kept_bytes(&column->reader));
    }
    return STATUS_OK;
}

static enum status check_group(const struct parquet_file *file, size_t group, struct arena *arena,
                               struct error *err)
{
    struct parquet_group_facts facts;
    size_t count = 0;
    TRY(parquet_group_facts_read(file, group, arena, &facts, err));
    if (!facts.sort_key_count)
        return STATUS_OK;
    if (facts.sort_key_count > file->leaf_count) {
        error_set(err, STATUS_CORRUPT,
                  "parquet: row group %zu, byte %" PRIu64 ": sorted by more columns than there are",
                  group, facts.at);
        return error_at(err, facts.at);
    }
    struct sorted_column *columns = arena_alloc_zero(arena, facts.sort_key_count, sizeof *columns);
    bool *is_used = arena_alloc_zero(arena, file->leaf_count, sizeof *is_used);
    if (!columns || !is_used)
        return error_set(err, STATUS_NO_MEMORY, "parquet: row group %zu: no memory", group);
    enum status status = read_columns(file, group, &facts, is_used, columns, &count, err);
    if (status == STATUS_OK)
        status = check_rows(file, group, facts.at, columns, count, err);
    for (size_t i = 0; i < count; i++)
        leaf_reader_deinit(&columns[i].reader);
    return status;
}

enum status verify_sort_keys(const struct parquet_file *file, size_t group, struct error *err)
{
    struct arena arena;
    arena_init(&arena, 0); /* the footer it is made of is bounded */
    enum status status = check_group(file, group, &arena, err);
    arena_deinit(&arena);
    return status;
}
