/* SPDX-License-Identifier: Apache-2.0
 *
 * Some rows of a page. Where they lie is found from its levels, so that values of other rows need
 * not be copied; behind the decoding the levels and slots of the others are taken back, in place.
 * Rows come in order, and so do the ranges that are wanted, so that each of both is looked at once.
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

static const struct kept_run *runs_of(const struct leaf_reader *reader)
{
    return (const struct kept_run *)(const void *)reader->runs.data;
}

/* Where the row begins that lies `rows` behind the one at `level`; the page's end if it has none.
 */
static size_t skip_rows(const struct leaf_reader *reader, size_t level, size_t levels,
                        uint64_t rows)
{
    enum { STEP = 128 };
    if (!reader->walk.leaf->max_rep)
        return rows < levels - level ? level + (size_t)rows : levels;
    const uint8_t *rep = reader->rep.data + reader->level_count;
    level++;
    for (size_t begun; level < levels && levels - level >= STEP; level += STEP) {
        begun = STEP - count_levels_from(rep + level, STEP, 1);
        if (begun >= rows)
            break;
        rows -= begun;
    }
    for (; level < levels; level++)
        if (!rep[level] && --rows == 0)
            break;
    return level < levels ? level : levels;
}

/* Slots and values among some levels of the page. */
static void count_both(const struct leaf_reader *reader, size_t first, size_t count,
                       size_t *out_slots, size_t *out_values)
{
    uint8_t max = reader->walk.leaf->max_def;
    *out_slots = *out_values = count;
    if (!max)
        return;
    const uint8_t *def = reader->def.data + reader->level_count + first;
    *out_values = count_levels_from(def, count, max);
    if (reader->slot_def && *out_values < count)
        *out_slots = count_levels_from(def, count, reader->slot_def);
}

bool leaf_find_runs(struct leaf_reader *reader, size_t levels)
{
    struct kept_run at = {0}; /* what lies before the level at hand, counted in slots and values */
    /* A page may begin within the row before. */
    bool is_within = levels && reader->walk.leaf->max_rep && reader->rep.data[reader->level_count];
    int64_t row = reader->row_at - is_within;
    buf_clear(&reader->runs);
    reader->run_count = 0;
    while (at.level < levels) {
        int64_t wanted = next_wanted(reader, row);
        bool is_wanted = wanted == row;
        if (wanted == INT64_MAX)
            break;
        int64_t stop = is_wanted ? reader->rows->first + reader->rows->count : wanted;
        at.levels = skip_rows(reader, at.level, levels, (uint64_t)(stop - row)) - at.level;
        count_both(reader, at.level, at.levels, &at.slots, &at.values);
        if (is_wanted) {
            buf_put(&reader->runs, &at, sizeof at);
            reader->run_count++;
        }
        at.level += at.levels;
        at.slot += at.slots;
        at.value += at.values;
        row = stop;
    }
    return !reader->runs.failed;
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

static void keep_run(struct cut *cut, const struct kept_run *run)
{
    struct leaf_reader *reader = cut->reader;
    if (reader->walk.leaf->max_def)
        move_levels(cut, &reader->def, run->level, run->levels);
    if (reader->walk.leaf->max_rep)
        move_levels(cut, &reader->rep, run->level, run->levels);
    move_slots(cut, run->slot, run->slots);
    cut->value_count += run->values;
    cut->level += run->levels;
    cut->slot += run->slots;
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
    for (size_t i = 0; i < reader->run_count; i++)
        keep_run(&cut, &runs_of(reader)[i]);
    if (cut.level < levels || cut.slot < slots)
        truncate(&cut);
    reader->level_count += cut.level;
    reader->slot_count += cut.slot;
    reader->null_count += cut.slot - cut.value_count;
}
