/* SPDX-License-Identifier: Apache-2.0
 *
 * Some rows of a page: the levels and slots of the others are taken back, in place. Rows come in
 * order, and so do the ranges that are wanted, so that each of both is looked at once.
 */
#include "format/parquet/reader_internal.h"

/* Where the next kept level and slot go, both counted from the page's first. */
struct cut {
    struct leaf_reader *reader;
    size_t level, slot, value_count;
    size_t data_end; /* of byte arrays */
};

/* The first wanted row from `row` on; those that are asked for never fall. INT64_MAX: none. */
static int64_t next_wanted(struct leaf_reader *reader, int64_t row)
{
    while (reader->rows_left && reader->rows->first + reader->rows->count <= row) {
        reader->rows++;
        reader->rows_left--;
    }
    if (!reader->rows_left)
        return INT64_MAX;
    return reader->rows->first > row ? reader->rows->first : row;
}

static void move_levels(struct cut *cut, struct buf *levels, size_t first, size_t count)
{
    uint8_t *page = levels->data + cut->reader->level_count;
    if (count && first != cut->level)
        memmove(page + cut->level, page + first, count);
}

static void move_bytes(struct cut *cut, size_t first, size_t count)
{
    struct values *values = &cut->reader->values;
    int32_t *ends = (int32_t *)(void *)values->ends.data + cut->reader->slot_count;
    size_t start = (size_t)ends[first], bytes = (size_t)ends[first + count] - start;
    int32_t shift = (int32_t)(start - cut->data_end);
    if (bytes && shift)
        memmove(values->data.data + cut->data_end, values->data.data + start, bytes);
    for (size_t i = 1; i <= count; i++)
        ends[cut->slot + i] = ends[first + i] - shift;
    cut->data_end += bytes;
}

static void move_slots(struct cut *cut, size_t first, size_t count)
{
    struct leaf_reader *reader = cut->reader;
    if (!reader->reads_values || count == 0)
        return;
    if (!reader->keeps_dictionary && !reader->width) {
        move_bytes(cut, first, count);
        return;
    }
    size_t width = reader->keeps_dictionary ? sizeof(int32_t) : reader->width;
    struct buf *slots = reader->keeps_dictionary ? &reader->indices : &reader->values.data;
    uint8_t *page = slots->data + reader->slot_count * width;
    if (first != cut->slot)
        memmove(page + cut->slot * width, page + first * width, count * width);
}

/* Keeps a run of levels with its slots. */
static void keep_run(struct cut *cut, size_t level, size_t levels, size_t slot, size_t slots)
{
    struct leaf_reader *reader = cut->reader;
    uint8_t max_def = reader->walk.leaf->max_def;
    if (max_def)
        move_levels(cut, &reader->def, level, levels);
    if (reader->walk.leaf->max_rep)
        move_levels(cut, &reader->rep, level, levels);
    move_slots(cut, slot, slots);
    const uint8_t *def = max_def ? reader->def.data + reader->level_count + cut->level : NULL;
    for (size_t i = 0; i < levels; i++)
        cut->value_count += !def || def[i] == max_def;
    cut->level += levels;
    cut->slot += slots;
}

/* A level is a row. */
static void keep_flat(struct cut *cut, size_t levels)
{
    struct leaf_reader *reader = cut->reader;
    int64_t end = reader->row_at + (int64_t)levels;
    int64_t row = next_wanted(reader, reader->row_at);
    while (row < end) {
        int64_t stop = reader->rows->first + reader->rows->count;
        size_t first = (size_t)(row - reader->row_at);
        size_t count = (size_t)((stop < end ? stop : end) - row);
        keep_run(cut, first, count, first, count);
        row = next_wanted(reader, row + (int64_t)count);
    }
}

/* A row begins where the repetition level is 0; the page may begin within the row before. */
static void keep_nested(struct cut *cut, size_t levels)
{
    struct leaf_reader *reader = cut->reader;
    const uint8_t *rep = reader->rep.data + reader->level_count;
    const uint8_t *def = reader->def.data + reader->level_count;
    int64_t row = reader->row_at - 1;
    size_t slot = 0;
    for (size_t level = 0; level < levels;) {
        size_t first = level, first_slot = slot;
        row += rep[level] == 0;
        do
            slot += def[level++] >= reader->slot_def;
        while (level < levels && rep[level] != 0);
        if (next_wanted(reader, row) == row)
            keep_run(cut, first, level - first, first_slot, slot - first_slot);
    }
}

static void truncate(struct cut *cut)
{
    struct leaf_reader *reader = cut->reader;
    size_t slots = reader->slot_count + cut->slot, levels = reader->level_count + cut->level;
    if (reader->walk.leaf->max_def)
        buf_truncate(&reader->def, levels);
    if (reader->walk.leaf->max_rep)
        buf_truncate(&reader->rep, levels);
    if (!reader->reads_values)
        return;
    if (reader->keeps_dictionary) {
        buf_truncate(&reader->indices, slots * sizeof(int32_t));
    } else if (reader->width) {
        buf_truncate(&reader->values.data, slots * reader->width);
    } else {
        buf_truncate(&reader->values.ends, (slots + 1) * sizeof(int32_t));
        buf_truncate(&reader->values.data, cut->data_end);
    }
}

void leaf_keep_rows(struct leaf_reader *reader, size_t levels, size_t slots)
{
    struct cut cut = {.reader = reader};
    const int32_t *ends = (const int32_t *)(const void *)reader->values.ends.data;
    bool has_bytes = reader->reads_values && !reader->keeps_dictionary && !reader->width;
    cut.data_end = has_bytes ? (size_t)ends[reader->slot_count] : 0;
    if (reader->walk.leaf->max_rep)
        keep_nested(&cut, levels);
    else
        keep_flat(&cut, levels);
    if (cut.level < levels || cut.slot < slots)
        truncate(&cut);
    reader->level_count += cut.level;
    reader->slot_count += cut.slot;
    reader->null_count += cut.slot - cut.value_count;
}
