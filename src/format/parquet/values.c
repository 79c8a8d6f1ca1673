/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of Arrow slots into the page at hand: as PLAIN bytes, or as indices of the chunk's
 * dictionary.
 *
 * An Arrow dictionary's entry (or a slot below a dictionary of lists, maps or structs, which comes
 * again as often as its entry) is looked up in ours once a batch; `remap` knows the rest.
 */
#include <math.h>

#include "format/parquet/parquet_internal.h"

/* The slots of a range that are not null, as slots of the array that has the values. */
struct slots {
    const struct arrow_array *array, *source;
    const int32_t *indices; /* NULL: the slots are the source's */
    int64_t at, end;
};

enum { BATCH = 256 };

/* The next slots, at most `most` or BATCH, in `scratch` unless they lie somewhere already; 0 at the
 * end. */
static size_t next_slots(struct slots *slots, int64_t most, int32_t scratch[BATCH],
                         const int32_t **out_slots)
{
    size_t count = 0;
    *out_slots = scratch;
    if (!slots->array->validity) {
        count = size_min((size_t)(slots->end - slots->at), size_min((size_t)most, BATCH));
        if (slots->indices)
            *out_slots = slots->indices + slots->at;
        else
            for (size_t i = 0; i < count; i++)
                scratch[i] = (int32_t)slots->at + (int32_t)i;
        slots->at += (int64_t)count;
        return count;
    }
    for (; slots->at < slots->end && count < BATCH; slots->at++) {
        scratch[count] = slots->indices ? slots->indices[slots->at] : (int32_t)slots->at;
        count += arrow_is_valid(slots->array, slots->at);
    }
    return count;
}

static void get_values(const struct leaf *leaf, const struct arrow_array *source,
                       const int32_t *slots, size_t count, struct span *out)
{
    const uint8_t *values = source->values;
    const int32_t *offsets = source->offsets;
    size_t width = leaf->width;
    if (width) {
        for (size_t i = 0; i < count; i++)
            out[i] = span_of(values + (size_t)slots[i] * width, width);
    } else {
        for (size_t i = 0; i < count; i++) {
            const int32_t *ends = offsets + slots[i];
            out[i] = span_of(values + ends[0], (size_t)(ends[1] - ends[0]));
        }
    }
}

/* What the page learns of values besides the values. */
static void count_values(struct leaf *leaf, const struct span *values, size_t count)
{
    if (leaf->type == PARQUET_BYTE_ARRAY) {
        int64_t bytes = 0;
        for (size_t i = 0; i < count; i++)
            bytes += (int64_t)values[i].length;
        leaf->page_unencoded += bytes;
    } else if (leaf->type == PARQUET_DOUBLE) {
        for (size_t i = 0; i < count; i++) {
            double value;
            memcpy(&value, values[i].data, sizeof value);
            leaf->page_nans += isnan(value) != 0;
        }
    } else if (leaf->type == PARQUET_FLOAT) {
        for (size_t i = 0; i < count; i++) {
            float value;
            memcpy(&value, values[i].data, sizeof value);
            leaf->page_nans += isnan(value) != 0;
        }
    }
    leaf->page_values += (int64_t)count;
    leaf->chunk_values += (int64_t)count;
}

/* ---- PLAIN ---- */

static void append_bools(struct leaf *leaf, const struct arrow_array *source, const int32_t *slots,
                         size_t count)
{
    uint8_t *place = buf_extend(&leaf->plain, count);
    for (size_t i = 0; place && i < count; i++)
        place[i] = arrow_bit(source->values, slots[i]);
    leaf->page_values += (int64_t)count;
    leaf->chunk_values += (int64_t)count;
}

static void append_plain(struct leaf *leaf, struct slots *slots)
{
    int32_t scratch[BATCH];
    const int32_t *batch;
    struct span values[BATCH];
    for (size_t count; (count = next_slots(slots, BATCH, scratch, &batch)) > 0;) {
        if (leaf->type == PARQUET_BOOLEAN) {
            append_bools(leaf, slots->source, batch, count);
            continue;
        }
        get_values(leaf, slots->source, batch, count, values);
        count_values(leaf, values, count);
        for (size_t i = 0; i < count; i++) {
            uint32_t bytes = (uint32_t)values[i].length;
            if (!leaf->width)
                buf_put(&leaf->plain, &bytes, sizeof bytes);
            buf_put(&leaf->plain, values[i].data, bytes);
        }
    }
}

/* ---- indices ---- */

/* Whether `count` values are those that stand `distance` values before them. */
static bool is_repeated(const struct leaf *leaf, const struct arrow_array *source, int64_t at,
                        int64_t distance, int64_t count)
{
    const uint8_t *values = source->values;
    size_t width = leaf->width;
    if (width)
        return memcmp(values + (size_t)at * width, values + (size_t)(at - distance) * width,
                      (size_t)count * width) == 0;
    const int32_t *ends = source->offsets + at, *before = ends - distance;
    int32_t shift = ends[0] - before[0], differ = ends[count] - before[count] - shift;
    if (differ)
        return false;
    for (int64_t i = 1; i < count; i++)
        differ |= ends[i] - before[i] - shift;
    size_t bytes = (size_t)(ends[count] - ends[0]);
    return !differ && (!bytes || memcmp(values + ends[0], values + before[0], bytes) == 0);
}

/* The values from the slots' place on that are those of the row before, and so on: maps come with
 * the same keys row by row, and rows of one resource one after the other. */
static int64_t count_repeated(const struct leaf *leaf, const struct slots *slots)
{
    int64_t row = leaf->row_values, left = slots->end - slots->at, count = row;
    int64_t many = row < BATCH ? BATCH / row * row : row;
    if (leaf->row_source != slots->source || leaf->row_to != slots->at ||
        slots->at - leaf->row_from < row || left < row ||
        !is_repeated(leaf, slots->source, slots->at, row, row))
        return 0;
    while (left - count >= many && is_repeated(leaf, slots->source, slots->at + count, row, many))
        count += many;
    while (left - count >= row && is_repeated(leaf, slots->source, slots->at + count, row, row))
        count += row;
    return count;
}

/* As indices, those of the row before over and over. */
static void append_repeated(struct leaf *leaf, struct slots *slots, int64_t count)
{
    size_t row = (size_t)leaf->row_values * sizeof(uint32_t);
    size_t bytes = (size_t)count * sizeof(uint32_t);
    uint8_t *place = buf_extend(&leaf->indices, bytes);
    for (size_t done = 0, step; place && done < bytes; done += step) {
        step = size_min(bytes - done, row + done);
        memcpy(place + done, place - row, step);
    }
    if (leaf->type == PARQUET_BYTE_ARRAY)
        leaf->page_unencoded +=
            slots->source->offsets[slots->at + count] - slots->source->offsets[slots->at];
    leaf->page_values += count;
    leaf->chunk_values += count;
    slots->at += count;
    leaf->row_to += count;
}

/* Whether rows are to be compared with those before. */
static bool has_repeated_rows(const struct leaf *leaf, const struct slots *slots)
{
    return !leaf->has_other_rows && !slots->indices && !slots->array->validity &&
           leaf->type != PARQUET_FLOAT && leaf->type != PARQUET_DOUBLE;
}

/* Appends repeated rows, as many as there are; at most how many slots to look up then. A row that
 * is another costs as much as many look-ups, and the look-ups of rows that come one by one do not
 * overlap: with more than a few of them the chunk's rows are no longer compared. */
static int64_t append_rows(struct leaf *leaf, struct slots *slots)
{
    enum { MISSES_FREE = 64, VALUES_A_MISS = 32 };
    if (!has_repeated_rows(leaf, slots))
        return BATCH;
    int64_t count = count_repeated(leaf, slots);
    if (count)
        append_repeated(leaf, slots, count);
    leaf->row_misses++;
    leaf->has_other_rows = leaf->row_misses > MISSES_FREE + leaf->chunk_values / VALUES_A_MISS;
    return leaf->row_values;
}

/* The slots up to the place are the last that were looked up. */
static void note_rows(struct leaf *leaf, const struct slots *slots, size_t count)
{
    int64_t from = slots->at - (int64_t)count;
    if (leaf->row_source != slots->source || leaf->row_to != from)
        leaf->row_from = from;
    leaf->row_source = slots->indices || slots->array->validity ? NULL : slots->source;
    leaf->row_to = slots->at;
}

static void append_looked_up(struct leaf *leaf, struct slots *slots)
{
    int32_t scratch[BATCH];
    const int32_t *batch;
    struct span values[BATCH];
    uint32_t indices[BATCH];
    for (size_t count;;) {
        count = next_slots(slots, append_rows(leaf, slots), scratch, &batch);
        if (!count)
            return;
        get_values(leaf, slots->source, batch, count, values);
        if (!dictionary_put(&leaf->dictionary, values, count, indices)) {
            leaf->failed = true;
            return;
        }
        count_values(leaf, values, count);
        buf_put(&leaf->indices, indices, count * sizeof *indices);
        note_rows(leaf, slots, count);
    }
}

/* Makes `remap` speak of `source`. */
static bool start_remap(struct leaf *leaf, const struct arrow_array *source)
{
    if (leaf->remap_source == source)
        return true;
    size_t bytes = (size_t)source->length * sizeof(uint32_t);
    buf_clear(&leaf->remap);
    uint8_t *place = buf_extend(&leaf->remap, bytes);
    if (!place && bytes)
        return false;
    if (bytes)
        memset(place, 0xff, bytes);
    leaf->remap_source = source;
    return true;
}

static void append_remapped(struct leaf *leaf, struct slots *slots)
{
    int32_t scratch[BATCH];
    const int32_t *batch;
    uint32_t indices[BATCH];
    struct span value, values[BATCH];
    if (!start_remap(leaf, slots->source)) {
        leaf->failed = true;
        return;
    }
    uint32_t *remap = (uint32_t *)(void *)leaf->remap.data;
    for (size_t count; (count = next_slots(slots, BATCH, scratch, &batch)) > 0;) {
        for (size_t i = 0; i < count; i++) {
            indices[i] = remap[batch[i]];
            if (indices[i] != UINT32_MAX)
                continue;
            get_values(leaf, slots->source, &batch[i], 1, &value);
            if (!dictionary_put(&leaf->dictionary, &value, 1, &indices[i])) {
                leaf->failed = true;
                return;
            }
            remap[batch[i]] = indices[i];
        }
        for (size_t i = 0; i < count; i++)
            values[i] = dictionary_get(&leaf->dictionary, indices[i]);
        count_values(leaf, values, count);
        buf_put(&leaf->indices, indices, count * sizeof *indices);
    }
}

/* Fixed-width values without nulls are what PLAIN is made of. */
static bool append_whole(struct leaf *leaf, const struct slots *slots)
{
    if (slots->indices || slots->array->validity || !leaf->width || leaf->type == PARQUET_BOOLEAN ||
        leaf->type == PARQUET_DOUBLE || leaf->type == PARQUET_FLOAT)
        return false;
    size_t count = (size_t)(slots->end - slots->at);
    buf_put(&leaf->plain, (const uint8_t *)slots->source->values + (size_t)slots->at * leaf->width,
            count * leaf->width);
    leaf->page_values += (int64_t)count;
    leaf->chunk_values += (int64_t)count;
    return true;
}

void leaf_append_values(struct leaf *leaf, const struct arrow_array *array, int64_t first,
                        int64_t count, bool is_repeating)
{
    struct slots slots = {.array = array, .source = array, .at = first, .end = first + count};
    if (array->dictionary) {
        slots.source = array->dictionary;
        slots.indices = array->values;
    }
    if (!leaf->is_plain && (slots.indices || is_repeating))
        append_remapped(leaf, &slots);
    else if (!leaf->is_plain)
        append_looked_up(leaf, &slots);
    else if (!append_whole(leaf, &slots))
        append_plain(leaf, &slots);
}
