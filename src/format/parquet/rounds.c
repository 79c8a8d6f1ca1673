/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows into row groups.
 *
 * A batch is cut into slices; after each the row group ends if it is full. Without threads a slice
 * goes to all leaves before the next is cut. Threads are given as many slices at once as cannot
 * fill the group, whatever their values: so it ends where it would end without them. What rows can
 * take at most follows from how long they are:
 *
 *  - a value is at most once in the dictionary and once in a page, which may turn it from an index
 *    back into what it was;
 *  - an encoding adds at most 10 bytes a value and 800 a page, levels take 2 bytes each, a
 *    compressor adds a sixth, a header takes 100 bytes.
 */
#include "format/parquet/parquet_internal.h"

enum {
    SLICE_ROWS = 8192, /* between looks at the row group's size */
    ROUND_SLICES = 32,
    /* What they can grow to: 1 + 7/6, (10 + 2 * 2) * 7/6, 800 * 7/6 + 100, all rounded up. */
    BYTE_GROWTH = 3,
    LEVEL_GROWTH = 18,
    PAGE_GROWTH = 1200,
    INDEX_BYTES = sizeof(uint32_t),
    PAGES_BESIDE = 8, /* of a leaf, for other reasons than that they are full */
};

/* The columns of a batch, and what the entries of their dictionaries take. */
struct given_columns {
    const struct arrow_array *columns;
    uint64_t **sizes;
    int64_t length;
};

static uint64_t rows_bytes(const struct parquet_writer *writer, const struct given_columns *given,
                           int64_t first, int64_t count)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < writer->schema.field_count; i++)
        bytes += column_bytes(&writer->schema.fields[i], &given->columns[i], given->sizes[i], first,
                              count);
    return bytes;
}

/* How many rows go into the group now, and their bytes; 0: it is to end before them. */
static int64_t slice_rows(const struct parquet_writer *writer, const struct given_columns *given,
                          int64_t row, uint64_t *out_bytes)
{
    const struct parquet_options *options = &writer->options;
    uint64_t most = options->row_group_plain_bytes;
    int64_t count = given->length - row, left = options->row_group_rows - writer->group_rows;
    count = count < SLICE_ROWS ? count : SLICE_ROWS;
    count = count < left ? count : left;
    while ((*out_bytes = rows_bytes(writer, given, row, count)) + writer->group_bytes > most) {
        if (writer->group_bytes > most / 2 || (count == 1 && writer->group_rows))
            return 0;
        if (count == 1)
            break;
        count /= 2;
    }
    return count;
}

/* ---- what they may become ---- */

uint64_t writer_pending_bytes_max(const struct parquet_writer *writer)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < writer->leaf_count; i++) {
        const struct leaf *leaf = &writer->leaves[i];
        uint64_t width = leaf->width ? leaf->width : INDEX_BYTES;
        uint64_t page = leaf->plain.length + (uint64_t)leaf->page_unencoded +
                        (uint64_t)leaf->page_values * width;
        bytes += leaf_bytes(leaf) + page * BYTE_GROWTH +
                 (uint64_t)leaf->page_levels * LEVEL_GROWTH + PAGES_BESIDE * PAGE_GROWTH;
    }
    return bytes;
}

uint64_t rows_growth_max(const struct parquet_writer *writer, const struct arrow_array *columns,
                         struct row_slice rows, uint64_t bytes)
{
    const struct parquet_options *options = &writer->options;
    uint64_t levels = 0, pages = 0;
    for (uint32_t i = 0; i < writer->leaf_count; i++) {
        const struct leaf *leaf = &writer->leaves[i];
        levels += leaf_levels_max(leaf, &columns[leaf->path[0].child], rows.first, rows.count);
        pages += (uint64_t)(rows.count / options->page_rows) + 1;
    }
    pages += (bytes + levels * INDEX_BYTES) / options->page_bytes + 1;
    return bytes * BYTE_GROWTH + levels * LEVEL_GROWTH + pages * PAGE_GROWTH;
}

/* ---- rounds ---- */

/* Cuts slices from `row` on; whether the group ends behind them in any case. */
static bool plan_round(struct parquet_writer *writer, const struct given_columns *given,
                       int64_t row, struct row_slice slices[ROUND_SLICES], struct round *round)
{
    const struct parquet_options *options = &writer->options;
    bool is_alone = writer->thread_count == 1;
    uint64_t most = is_alone ? 0 : writer_pending_bytes_max(writer);
    for (;;) {
        uint64_t bytes;
        struct row_slice slice = {row, slice_rows(writer, given, row, &bytes)};
        if (slice.count == 0)
            return true;
        slices[round->slice_count++] = slice;
        round->bytes += bytes;
        row += slice.count;
        writer->group_rows += slice.count;
        writer->group_bytes += bytes;
        if (writer->group_rows >= options->row_group_rows)
            return true;
        if (is_alone || row == given->length || round->slice_count == ROUND_SLICES)
            return false;
        most += rows_growth_max(writer, given->columns, slice, bytes);
        if (most >= options->row_group_bytes)
            return false;
    }
}

static enum status write_columns(struct parquet_writer *writer, const struct given_columns *given,
                                 struct error *err)
{
    for (uint32_t i = 0; i < writer->leaf_count; i++)
        leaf_forget_sources(&writer->leaves[i]);
    for (int64_t row = 0; row < given->length;) {
        struct row_slice slices[ROUND_SLICES];
        struct round round = {.columns = given->columns, .slices = slices};
        bool must_end = plan_round(writer, given, row, slices, &round);
        TRY(leaves_write(writer, &round, err));
        for (size_t i = 0; i < round.slice_count; i++)
            row += slices[i].count;
        if (must_end || writer_pending_bytes(writer) >= writer->options.row_group_bytes)
            TRY(writer_finish_group(writer, err));
    }
    return STATUS_OK;
}

enum status writer_append(struct parquet_writer *writer, const struct arrow_array *columns,
                          int64_t length, struct arena *arena, struct error *err)
{
    uint32_t count = writer->schema.field_count;
    struct given_columns given = {.columns = columns, .length = length};
    given.sizes = arena_alloc_zero(arena, count, sizeof *given.sizes);
    if (!given.sizes)
        return error_set(err, STATUS_NO_MEMORY, "parquet: no memory for a writer");
    for (uint32_t i = 0; i < count; i++)
        TRY(column_sizes(&writer->schema.fields[i], &columns[i], arena, &given.sizes[i], err));
    return write_columns(writer, &given, err);
}
