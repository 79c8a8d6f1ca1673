/* SPDX-License-Identifier: Apache-2.0
 *
 * A leaf of one row group: levels and values of all its pages, until every level that the footer
 * promised is there, or of those that hold the wanted rows. Values are spread to their slots page
 * by page, from the back, in place; then what is not wanted is dropped.
 */
#include <inttypes.h>

#include "format/parquet/reader_internal.h"

static enum status corrupt(const struct leaf_reader *reader, const struct page *page,
                           struct error *err, const char *what)
{
    return page_fault(&reader->walk, page->offset, STATUS_CORRUPT, err, "%s", what);
}

static enum status out_of_room(const struct leaf_reader *reader, uint64_t offset, struct error *err)
{
    return page_fault(&reader->walk, offset, STATUS_LIMIT, err,
                      "no room for %zu values within the limit of a batch", reader->levels_wanted);
}

static void values_deinit(struct parquet_memory *pool, struct values *values)
{
    pool_give(pool, &values->data);
    pool_give(pool, &values->ends);
}

void leaf_reader_drop_values(struct leaf_reader *reader)
{
    values_deinit(reader->walk.pool, &reader->values);
    values_deinit(reader->walk.pool, &reader->dictionary);
    pool_give(reader->walk.pool, &reader->indices);
}

/* What only a page at hand needs. */
static void drop_scratch(struct leaf_reader *reader)
{
    pool_give(reader->walk.pool, &reader->walk.expanded);
    pool_give(reader->walk.pool, &reader->front);
    pool_give(reader->walk.pool, &reader->scratch);
    pool_give(reader->walk.pool, &reader->scratch_ends);
    pool_give(reader->walk.pool, &reader->runs);
}

void leaf_reader_deinit(struct leaf_reader *reader)
{
    drop_scratch(reader);
    leaf_reader_drop_values(reader);
    pool_give(reader->walk.pool, &reader->rep);
    pool_give(reader->walk.pool, &reader->def);
    *reader = (struct leaf_reader){0};
}

uint32_t leaf_physical_width(const struct parquet_leaf *leaf)
{
    switch (leaf->physical) {
    case PARQUET_BOOLEAN:
        return 1;
    case PARQUET_INT32:
    case PARQUET_FLOAT:
        return 4;
    case PARQUET_INT64:
    case PARQUET_DOUBLE:
        return 8;
    case PARQUET_INT96:
        return 12;
    case PARQUET_BYTE_ARRAY:
        return 0;
    case PARQUET_FIXED:
        return leaf->width;
    }
    return 0;
}

/* ---- levels ---- */

static unsigned bit_width(unsigned value)
{
    unsigned width = 0;
    for (; value; value >>= 1)
        width++;
    return width;
}

static bool levels_in_range(const uint8_t *levels, size_t count, unsigned max)
{
    uint8_t greatest = 0;
    for (size_t i = 0; i < count; i++)
        greatest = levels[i] > greatest ? levels[i] : greatest;
    return greatest <= max;
}

/* The section of one kind of levels, from a v1 body or of its own; appended to `out`. */
static enum status read_levels(struct leaf_reader *reader, const struct page *page,
                               struct cursor *body, struct span own, int encoding, unsigned max,
                               struct buf *out, struct error *err)
{
    struct cursor section = cursor_of(own.data, own.length);
    unsigned width = bit_width(max);
    size_t count = page->level_count;
    bool is_read;
    if (max == 0)
        return STATUS_OK;
    uint8_t *levels = pool_extend(reader->walk.pool, out, count);
    if (!levels && count)
        return out_of_room(reader, page->offset, err);
    if (!page->is_v2 && encoding == ENCODING_BIT_PACKED) {
        is_read = decode_bit_packed(body, width, levels, count);
    } else if (!page->is_v2 && encoding != ENCODING_RLE) {
        return corrupt(reader, page, err, "levels of an unknown encoding");
    } else {
        if (!page->is_v2) {
            size_t bytes = cursor_get_le32(body);
            const uint8_t *runs = cursor_take(body, bytes);
            section = cursor_of(runs, runs ? bytes : 0);
        }
        is_read = !body->failed && decode_hybrid_u8(&section, width, levels, count);
    }
    if (!is_read || !levels_in_range(levels, count, max))
        return corrupt(reader, page, err, "damaged levels");
    return STATUS_OK;
}

/* Counted in bytes for a while, so that many are looked at at once. */
size_t count_levels_from(const uint8_t *levels, size_t count, uint8_t least)
{
    enum { WHILE = 128 };
    size_t found = 0, i = 0;
    for (; count - i >= WHILE; i += WHILE) {
        uint8_t some = 0;
        for (size_t j = 0; j < WHILE; j++)
            some = (uint8_t)(some + (levels[i + j] >= least));
        found += some;
    }
    for (; i < count; i++)
        found += levels[i] >= least;
    return found;
}

/* How many of a page's levels are slots, and how many of those values. No level is above the
 * maximum. */
static void count_slots(const struct leaf_reader *reader, const uint8_t *def, size_t count,
                        size_t *out_slots, size_t *out_values)
{
    uint8_t max = reader->walk.leaf->max_def, slot_def = reader->slot_def;
    size_t values = max ? count_levels_from(def, count, max) : count;
    *out_values = values;
    *out_slots = slot_def && values < count ? count_levels_from(def, count, slot_def) : count;
}

/* ---- from values to slots ---- */

static void spread_fixed(uint8_t *at, size_t width, const uint8_t *def, uint8_t max, size_t slots,
                         size_t values)
{
    for (size_t i = slots; i-- > 0 && values <= i;) {
        if (def[i] == max)
            memmove(at + i * width, at + --values * width, width);
        else
            memset(at + i * width, 0, width);
    }
}

static void spread_u64(uint64_t *at, const uint8_t *def, uint8_t max, size_t slots, size_t values)
{
    for (size_t i = slots; i-- > 0 && values <= i;)
        at[i] = def[i] == max ? at[--values] : 0;
}

static void spread_u32(uint32_t *at, const uint8_t *def, uint8_t max, size_t slots, size_t values)
{
    for (size_t i = slots; i-- > 0 && values <= i;)
        at[i] = def[i] == max ? at[--values] : 0;
}

/* A null ends where the value before it ends. */
static void spread_ends(int32_t *at, const uint8_t *def, uint8_t max, size_t slots, size_t values,
                        int32_t start)
{
    for (size_t i = slots; i-- > 0 && values <= i;) {
        at[i] = values ? at[values - 1] : start;
        values -= def[i] == max;
    }
}

static void spread(struct leaf_reader *reader, const uint8_t *def, size_t slots, size_t values,
                   int32_t start)
{
    uint8_t max = reader->walk.leaf->max_def;
    size_t first = reader->slot_count, width = reader->width;
    uint8_t *data = reader->values.data.data;
    if (slots == values)
        return;
    if (reader->keeps_dictionary)
        spread_u32((uint32_t *)(void *)reader->indices.data + first, def, max, slots, values);
    else if (width == 0)
        spread_ends((int32_t *)(void *)reader->values.ends.data + 1 + first, def, max, slots,
                    values, start);
    else if (width == 8)
        spread_u64((uint64_t *)(void *)data + first, def, max, slots, values);
    else if (width == 4)
        spread_u32((uint32_t *)(void *)data + first, def, max, slots, values);
    else
        spread_fixed(data + first * width, width, def, max, slots, values);
}

/* The definition levels of the slots alone. */
static const uint8_t *compact_def(struct leaf_reader *reader, const uint8_t *def, size_t levels,
                                  size_t slots)
{
    if (slots == levels)
        return def;
    buf_clear(&reader->scratch);
    uint8_t *out = pool_extend(reader->walk.pool, &reader->scratch, slots + 1);
    size_t at = 0;
    for (size_t i = 0; out && i < levels; i++) {
        out[at] = def[i];
        at += def[i] >= reader->slot_def;
    }
    return out;
}

/* ---- pages ---- */

static bool extend_slots(struct leaf_reader *reader, size_t slots)
{
    struct buf *buf = reader->keeps_dictionary ? &reader->indices
                      : reader->width          ? &reader->values.data
                                               : &reader->values.ends;
    size_t width = reader->keeps_dictionary || !reader->width ? sizeof(int32_t) : reader->width;
    size_t bytes;
    return SIZE_MUL(slots, width, &bytes) && pool_extend(reader->walk.pool, buf, bytes);
}

/* Rows that begin in the last `count` levels. */
static int64_t count_rows(const struct leaf_reader *reader, size_t count)
{
    if (!reader->walk.leaf->max_rep)
        return (int64_t)count;
    return (int64_t)(count - count_levels_from(reader->rep.data + reader->level_count, count, 1));
}

/* `is_first`: of its piece, which begins with a row. */
static enum status read_data_page(struct leaf_reader *reader, const struct page *page,
                                  bool is_first, struct error *err)
{
    const struct parquet_leaf *leaf = reader->walk.leaf;
    struct cursor body = cursor_of(page->body.data, page->body.length);
    size_t count = page->level_count, slots, values;
    int32_t start = (int32_t)reader->values.data.length;
    if (count > reader->levels_wanted - reader->levels_seen)
        return corrupt(reader, page, err, "more values than the footer says");
    TRY(read_levels(reader, page, &body, page->rep, page->rep_encoding, leaf->max_rep, &reader->rep,
                    err));
    TRY(read_levels(reader, page, &body, page->def, page->def_encoding, leaf->max_def, &reader->def,
                    err));
    if (leaf->max_rep && is_first && count && reader->rep.data[reader->level_count])
        return corrupt(reader, page, err, "the first row begins in its middle");
    const uint8_t *def = leaf->max_def ? reader->def.data + reader->level_count : NULL;
    count_slots(reader, def, count, &slots, &values);
    if (reader->rows && !leaf_find_runs(reader, count))
        return out_of_room(reader, page->offset, err);
    if (reader->reads_values) {
        if (!extend_slots(reader, slots))
            return out_of_room(reader, page->offset, err);
        TRY(leaf_read_values(reader, page, &body, values, err));
        TRY(leaf_check_end(reader, page, &body, err));
        def = slots == values ? def : compact_def(reader, def, count, slots);
        if (slots != values && !def)
            return out_of_room(reader, page->offset, err);
        spread(reader, def, slots, values, start);
    }
    if (reader->watch)
        TRY(reader->watch(reader->watch_context, reader, page, count));
    int64_t rows = count_rows(reader, count);
    reader->levels_seen += count;
    reader->page_count++;
    if (reader->rows) {
        leaf_keep_rows(reader, count, slots);
    } else {
        reader->level_count += count;
        reader->slot_count += slots;
        reader->null_count += slots - values;
    }
    reader->row_at += rows;
    return STATUS_OK;
}

/* Room for what is promised, but not for more than the bytes at hand are likely to hold: a run that
 * comes again and again takes a byte for a thousand levels. */
static void reserve(struct leaf_reader *reader)
{
    size_t likely = size_min(reader->slots_likely, reader->walk.chunk->bytes * 2048 + 1024);
    size_t width = reader->keeps_dictionary || !reader->width ? sizeof(int32_t) : reader->width;
    struct buf *slots = reader->keeps_dictionary ? &reader->indices
                        : reader->width          ? &reader->values.data
                                                 : &reader->values.ends;
    struct parquet_memory *pool = reader->walk.pool;
    bool has_room = !reader->walk.leaf->max_def || pool_reserve(pool, &reader->def, likely);
    has_room =
        has_room && (!reader->walk.leaf->max_rep || pool_reserve(pool, &reader->rep, likely));
    has_room =
        has_room && (!reader->reads_values || pool_reserve(pool, slots, (likely + 1) * width));
    if (!has_room) /* it was only likely */
        reader->def.failed = reader->rep.failed = slots->failed = false;
}

/* Every buffer is bounded: together they hold a batch, and no offset passes 31 bits. */
static bool set_limits(struct leaf_reader *reader, size_t bytes_max)
{
    size_t width = reader->keeps_dictionary || !reader->width ? sizeof(int32_t) : reader->width;
    size_t levels = !!reader->walk.leaf->max_def + (size_t) !!reader->walk.leaf->max_rep;
    size_t needed;
    size_t data_max = size_min(bytes_max, INT32_MAX);
    reader->rep.bytes_max = reader->def.bytes_max = bytes_max;
    reader->indices.bytes_max = reader->values.ends.bytes_max = bytes_max;
    reader->values.data.bytes_max = reader->width ? bytes_max : data_max;
    reader->dictionary.data.bytes_max = reader->width ? bytes_max : data_max;
    reader->dictionary.ends.bytes_max = bytes_max;
    reader->scratch.bytes_max = reader->scratch_ends.bytes_max = bytes_max;
    return reader->levels_wanted <= INT32_MAX &&
           SIZE_MUL(reader->slots_likely, width + levels, &needed) && needed <= bytes_max;
}

static bool begin_ends(struct buf *ends)
{
    int32_t zero = 0;
    buf_put(ends, &zero, sizeof zero);
    return !ends->failed;
}

/* What the footer or the offset index says of the rows of a piece. */
static enum status check_rows(const struct leaf_reader *reader, const struct page_piece *piece,
                              struct error *err)
{
    int64_t rows = reader->row_at - piece->first_row;
    if (rows == piece->row_count)
        return STATUS_OK;
    if (reader->plan->is_whole)
        return page_fault(&reader->walk, piece->offset, STATUS_CORRUPT, err,
                          "%" PRId64 " rows in a row group of %" PRId64, rows, piece->row_count);
    return page_fault(&reader->walk, piece->offset, STATUS_CORRUPT, err,
                      "%" PRId64 " rows in a page; the offset index says %" PRId64, rows,
                      piece->row_count);
}

static enum status read_piece(struct leaf_reader *reader, const struct page_piece *piece,
                              struct error *err)
{
    struct page page;
    bool is_whole = reader->plan->is_whole, is_first = true;
    reader->walk.in = cursor_of(piece->bytes.data, piece->bytes.length);
    reader->walk.start = piece->bytes.data;
    reader->walk.offset = piece->offset;
    reader->row_at = piece->first_row;
    while (!is_whole || reader->levels_seen < reader->levels_wanted) {
        enum status status = page_next(&reader->walk, &page, err);
        if (status == STATUS_NOT_FOUND && !is_whole)
            break;
        if (status == STATUS_NOT_FOUND)
            return page_fault(&reader->walk, piece->offset + piece->length, STATUS_CORRUPT, err,
                              "the chunk ends after %zu of %zu values", reader->levels_seen,
                              reader->levels_wanted);
        if (status != STATUS_OK)
            return status;
        if (page.is_dictionary) {
            TRY(reader->walk.defers_dictionary ? leaf_defer_dictionary(reader, &page, err)
                                               : leaf_read_dictionary(reader, &page, err));
            continue;
        }
        TRY(read_data_page(reader, &page, is_first, err));
        is_first = false;
    }
    return check_rows(reader, piece, err);
}

enum status leaf_reader_read(struct leaf_reader *reader, size_t bytes_max, struct error *err)
{
    const struct parquet_chunk *chunk = reader->walk.chunk;
    reader->levels_wanted = chunk->value_count < SIZE_MAX ? (size_t)chunk->value_count : SIZE_MAX;
    if (!reader->rows)
        reader->slots_likely = reader->levels_wanted;
    if (!set_limits(reader, bytes_max))
        return out_of_room(reader, chunk->offset, err);
    reader->walk.skips_dictionary = !reader->reads_values;
    reader->walk.defers_dictionary = leaf_defers_dictionary(reader);
    reserve(reader);
    if (!reader->width &&
        (!begin_ends(&reader->dictionary.ends) || !begin_ends(&reader->values.ends)))
        return out_of_room(reader, chunk->offset, err);
    for (size_t i = 0; i < reader->plan->count; i++)
        TRY(read_piece(reader, &reader->plan->pieces[i], err));
    drop_scratch(reader);
    return STATUS_OK;
}
