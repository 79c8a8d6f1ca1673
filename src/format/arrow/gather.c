/* SPDX-License-Identifier: Apache-2.0
 *
 * Gather: rows from many batches into a new one.
 *
 * Rows become runs (source, first, count), so that neighbours are copied together, and lists turn
 * the runs of their slots into runs of their elements. What comes out is canonical whatever went
 * in: offsets from 0, nothing behind null slots.
 */
#include "format/arrow/arrow_internal.h"

struct runs {
    struct array_run *items;
    size_t count;
    int64_t slots; /* sum of their counts */
};

/* An index buffer that was made: columns that share one in all sources share it again. */
struct shared_indices {
    struct shared_indices *next;
    const struct runs *runs;
    const struct arrow_array *const *sources;
    const int32_t *bases;
    const void *values;
};

struct gather {
    size_t source_count;
    struct arena *arena;  /* of the result */
    struct arena scratch; /* of the call */
    struct shared_indices *shared;
    struct error *err;
};

static enum status no_memory(struct gather *gather)
{
    return error_set(gather->err, STATUS_NO_MEMORY, "arrow: no memory to gather");
}

static enum status too_long(struct gather *gather, const struct arrow_field *field)
{
    return error_set(gather->err, STATUS_LIMIT,
                     "arrow: gathering %s: more than 2^31 - 1 in a buffer", field->name);
}

int64_t bits_count_zero(const uint8_t *bits, int64_t count)
{
    int64_t ones = 0, at = 0;
    for (; at + 64 <= count; at += 64)
        ones += __builtin_popcountll(get_le64(bits + at / 8));
    for (; at + 8 <= count; at += 8)
        ones += __builtin_popcount(bits[at / 8]);
    if (at < count)
        ones += __builtin_popcount(bits[at / 8] & ((1u << (count - at)) - 1));
    return count - ones;
}

void bits_copy(uint8_t *out, int64_t out_at, const uint8_t *bits, int64_t at, int64_t count)
{
    while (count && (out_at & 7)) {
        out[out_at >> 3] |= (uint8_t)(arrow_bit(bits, at) << (out_at & 7));
        out_at++, at++, count--;
    }
    unsigned shift = (unsigned)(at & 7);
    for (; count >= 8; count -= 8, at += 8, out_at += 8) {
        unsigned low = (unsigned)bits[at >> 3] >> shift;
        unsigned high = shift ? (unsigned)bits[(at >> 3) + 1] << (8 - shift) : 0;
        out[out_at >> 3] = (uint8_t)(low | high);
    }
    for (; count; count--, at++, out_at++)
        out[out_at >> 3] |= (uint8_t)(arrow_bit(bits, at) << (out_at & 7));
}

static void set_bits(uint8_t *out, int64_t at, int64_t count)
{
    for (; count && (at & 7); at++, count--)
        out[at >> 3] |= (uint8_t)(1u << (at & 7));
    memset(out + (at >> 3), 0xff, (size_t)(count >> 3));
    at += count & ~(int64_t)7;
    for (count &= 7; count; at++, count--)
        out[at >> 3] |= (uint8_t)(1u << (at & 7));
}

static enum status gather_validity(struct gather *gather, const struct arrow_array *const *sources,
                                   const struct runs *runs, struct arrow_array *out)
{
    bool has_nulls = false;
    for (size_t i = 0; i < gather->source_count; i++)
        has_nulls = has_nulls || (sources[i]->validity && sources[i]->null_count);
    if (!has_nulls)
        return STATUS_OK;
    uint8_t *bits = arena_alloc_zero(gather->arena, (size_t)bits_bytes(runs->slots) + 1, 1);
    if (!bits)
        return no_memory(gather);
    int64_t at = 0;
    for (size_t i = 0; i < runs->count; i++) {
        const struct array_run *run = &runs->items[i];
        const struct arrow_array *source = sources[run->source];
        if (source->validity)
            bits_copy(bits, at, source->validity, run->first, run->count);
        else
            set_bits(bits, at, run->count);
        at += run->count;
    }
    out->null_count = bits_count_zero(bits, runs->slots);
    out->validity = out->null_count ? bits : NULL;
    return STATUS_OK;
}

static enum status gather_bits(struct gather *gather, const struct arrow_array *const *sources,
                               const struct runs *runs, struct arrow_array *out)
{
    size_t bytes = (size_t)bits_bytes(runs->slots);
    uint8_t *bits = arena_alloc_zero(gather->arena, bytes + 1, 1);
    if (!bits)
        return no_memory(gather);
    int64_t at = 0;
    for (size_t i = 0; i < runs->count; i++) {
        const struct array_run *run = &runs->items[i];
        bits_copy(bits, at, sources[run->source]->values, run->first, run->count);
        at += run->count;
    }
    for (size_t i = 0; out->validity && i < bytes; i++)
        bits[i] &= out->validity[i];
    out->values = bits;
    return STATUS_OK;
}

static void zero_null_slots(uint8_t *values, size_t width, const struct arrow_array *out)
{
    for (int64_t i = 0; out->validity && i < out->length; i++)
        if (!arrow_bit(out->validity, i))
            memset(values + (size_t)i * width, 0, width);
}

static enum status gather_fixed(struct gather *gather, const struct arrow_field *field,
                                const struct arrow_array *const *sources, const struct runs *runs,
                                struct arrow_array *out)
{
    size_t width = (size_t)type_width(field);
    uint8_t *values = arena_alloc(gather->arena, (size_t)runs->slots * width);
    if (!values)
        return no_memory(gather);
    uint8_t *at = values;
    for (size_t i = 0; i < runs->count; i++) {
        const struct array_run *run = &runs->items[i];
        const uint8_t *from =
            (const uint8_t *)sources[run->source]->values + (size_t)run->first * width;
        if (width == 8 && run->count == 1)
            memcpy(at, from, 8);
        else if (run->count && width)
            memcpy(at, from, (size_t)run->count * width);
        at += (size_t)run->count * width;
    }
    zero_null_slots(values, width, out);
    out->values = values;
    return STATUS_OK;
}

/* Offsets of the result; `out_end` is the last. A null slot is empty. */
static enum status gather_offsets(struct gather *gather, const struct arrow_field *field,
                                  const struct arrow_array *const *sources, const struct runs *runs,
                                  struct arrow_array *out)
{
    int32_t *offsets = arena_alloc(gather->arena, ((size_t)runs->slots + 1) * sizeof *offsets);
    if (!offsets)
        return no_memory(gather);
    int64_t end = 0;
    int32_t *at = offsets;
    *at++ = 0;
    for (size_t i = 0; i < runs->count; i++) {
        const struct array_run *run = &runs->items[i];
        const struct arrow_array *source = sources[run->source];
        for (int64_t slot = run->first; slot < (int64_t)run->first + run->count; slot++) {
            if (arrow_is_valid(source, slot))
                end += source->offsets[slot + 1] - source->offsets[slot];
            if (end > INT32_MAX)
                return too_long(gather, field);
            *at++ = (int32_t)end;
        }
    }
    out->offsets = offsets;
    return STATUS_OK;
}

/* Runs of the elements of the slots in `runs`; also the byte ranges of strings. */
static enum status element_runs(struct gather *gather, const struct arrow_array *const *sources,
                                const struct runs *runs, int64_t slots, struct runs *out_runs)
{
    size_t count = 0;
    for (size_t i = 0; i < runs->count; i++)
        count += sources[runs->items[i].source]->validity ? (size_t)runs->items[i].count : 1;
    struct array_run *items = arena_alloc(&gather->scratch, count * sizeof *items);
    if (!items)
        return no_memory(gather);
    struct array_run *last = NULL;
    size_t made = 0;
    for (size_t i = 0; i < runs->count; i++) {
        struct array_run run = runs->items[i];
        const struct arrow_array *source = sources[run.source];
        int32_t step = source->validity ? 1 : run.count;
        for (int32_t end = run.first + run.count; run.first < end; run.first += step) {
            int32_t first = source->offsets[run.first];
            int32_t elements = source->offsets[run.first + step] - first;
            if (elements == 0 || !arrow_is_valid(source, run.first))
                continue;
            if (last && last->source == run.source && last->first + last->count == first) {
                last->count += elements;
            } else {
                last = &items[made++];
                *last = (struct array_run){.source = run.source, .first = first, .count = elements};
            }
        }
    }
    *out_runs = (struct runs){.items = items, .count = made, .slots = slots};
    return STATUS_OK;
}

static enum status gather_bytes(struct gather *gather, const struct arrow_field *field,
                                const struct arrow_array *const *sources, const struct runs *runs,
                                struct arrow_array *out)
{
    struct runs bytes;
    TRY(gather_offsets(gather, field, sources, runs, out));
    TRY(element_runs(gather, sources, runs, out->offsets[runs->slots], &bytes));
    uint8_t *values = arena_alloc(gather->arena, (size_t)bytes.slots);
    if (!values)
        return no_memory(gather);
    uint8_t *at = values;
    for (size_t i = 0; i < bytes.count; i++) {
        const struct array_run *run = &bytes.items[i];
        memcpy(at, (const uint8_t *)sources[run->source]->values + run->first, (size_t)run->count);
        at += run->count;
    }
    out->values = values;
    return STATUS_OK;
}

static enum status gather_array(struct gather *gather, const struct arrow_field *field,
                                const struct arrow_array *const *sources, const struct runs *runs,
                                struct arrow_array *out);

static enum status gather_children(struct gather *gather, const struct arrow_field *field,
                                   const struct arrow_array *const *sources,
                                   const struct runs *runs, struct arrow_array *out)
{
    out->children = arena_alloc_zero(gather->arena, field->child_count, sizeof *out->children);
    if (!out->children)
        return no_memory(gather);
    for (uint32_t child = 0; child < field->child_count; child++) {
        const struct arrow_array **children =
            arena_alloc(&gather->scratch, gather->source_count * sizeof *children);
        if (!children)
            return no_memory(gather);
        for (size_t i = 0; i < gather->source_count; i++)
            children[i] = &sources[i]->children[child];
        TRY(gather_array(gather, &field->children[child], children, runs, &out->children[child]));
    }
    return STATUS_OK;
}

static enum status gather_list(struct gather *gather, const struct arrow_field *field,
                               const struct arrow_array *const *sources, const struct runs *runs,
                               struct arrow_array *out)
{
    struct runs *elements = arena_alloc(&gather->scratch, sizeof *elements);
    if (!elements)
        return no_memory(gather);
    TRY(gather_offsets(gather, field, sources, runs, out));
    TRY(element_runs(gather, sources, runs, out->offsets[runs->slots], elements));
    return gather_children(gather, field, sources, elements, out);
}

/* ---- dictionaries ---- */

static bool is_same_dictionary(const struct arrow_array *a, const struct arrow_array *b)
{
    return a == b || (a->length == b->length && a->values == b->values &&
                      a->offsets == b->offsets && a->children == b->children);
}

/* Lays the dictionaries of the sources that are used end to end; `bases` says where each begins. */
static enum status gather_values(struct gather *gather, const struct arrow_field *field,
                                 const struct arrow_array *const *sources, const struct runs *runs,
                                 int32_t *bases, struct arrow_array *out)
{
    size_t count = gather->source_count;
    const struct arrow_array **values = arena_alloc(&gather->scratch, count * sizeof *values);
    bool *is_used = arena_alloc_zero(&gather->scratch, count, sizeof *is_used);
    struct runs *whole = arena_alloc_zero(&gather->scratch, 1, sizeof *whole);
    out->dictionary = arena_alloc_zero(gather->arena, 1, sizeof *out->dictionary);
    if (!values || !is_used || !whole || !out->dictionary ||
        !(whole->items = arena_alloc(&gather->scratch, count * sizeof *whole->items)))
        return no_memory(gather);
    for (size_t i = 0; i < runs->count; i++)
        is_used[runs->items[i].source] = true;
    for (size_t i = 0; i < count; i++) {
        values[i] = sources[i]->dictionary;
        size_t twin = whole->count;
        while (is_used[i] && twin &&
               !is_same_dictionary(values[i], values[whole->items[twin - 1].source]))
            twin--;
        if (!is_used[i] || values[i]->length == 0) {
            bases[i] = 0;
        } else if (twin) {
            bases[i] = bases[whole->items[twin - 1].source];
        } else {
            bases[i] = (int32_t)whole->slots;
            whole->items[whole->count++] =
                (struct array_run){.source = (uint32_t)i, .count = (int32_t)values[i]->length};
            whole->slots += values[i]->length;
            if (whole->slots > INT32_MAX)
                return too_long(gather, field);
        }
    }
    struct arrow_field value_field = dictionary_value_field(field);
    return gather_array(gather, &value_field, values, whole, out->dictionary);
}

static const struct shared_indices *find_shared(const struct gather *gather,
                                                const struct arrow_array *const *sources,
                                                const struct runs *runs, const int32_t *bases)
{
    for (const struct shared_indices *seen = gather->shared; seen; seen = seen->next) {
        size_t i = 0;
        while (seen->runs == runs && i < gather->source_count && seen->bases[i] == bases[i] &&
               seen->sources[i]->values == sources[i]->values &&
               seen->sources[i]->validity == sources[i]->validity)
            i++;
        if (seen->runs == runs && i == gather->source_count)
            return seen;
    }
    return NULL;
}

static enum status gather_dictionary(struct gather *gather, const struct arrow_field *field,
                                     const struct arrow_array *const *sources,
                                     const struct runs *runs, struct arrow_array *out)
{
    int32_t *bases = arena_alloc(&gather->scratch, gather->source_count * sizeof *bases);
    if (!bases)
        return no_memory(gather);
    TRY(gather_values(gather, field, sources, runs, bases, out));
    const struct shared_indices *seen = find_shared(gather, sources, runs, bases);
    if (seen) {
        out->values = seen->values;
        return STATUS_OK;
    }
    int32_t *indices = arena_alloc(gather->arena, (size_t)runs->slots * sizeof *indices);
    struct shared_indices *shared = arena_alloc(&gather->scratch, sizeof *shared);
    if (!indices || !shared)
        return no_memory(gather);
    int32_t *at = indices;
    for (size_t i = 0; i < runs->count; i++) {
        const struct array_run *run = &runs->items[i];
        const int32_t *from = (const int32_t *)sources[run->source]->values + run->first;
        int32_t base = bases[run->source];
        for (int32_t j = 0; j < run->count; j++) /* a null slot's may be anything */
            at[j] = (int32_t)((uint32_t)from[j] + (uint32_t)base);
        at += run->count;
    }
    zero_null_slots((uint8_t *)indices, sizeof *indices, out);
    out->values = indices;
    *shared = (struct shared_indices){.next = gather->shared,
                                      .runs = runs,
                                      .sources = sources,
                                      .bases = bases,
                                      .values = indices};
    gather->shared = shared;
    return STATUS_OK;
}

static enum status gather_array(struct gather *gather, const struct arrow_field *field,
                                const struct arrow_array *const *sources, const struct runs *runs,
                                struct arrow_array *out)
{
    *out = (struct arrow_array){.length = runs->slots};
    if (!field->is_dictionary && field->type == ARROW_NULL) {
        out->null_count = runs->slots;
        return STATUS_OK;
    }
    TRY(gather_validity(gather, sources, runs, out));
    if (field->is_dictionary)
        return gather_dictionary(gather, field, sources, runs, out);
    switch (type_layout(field->type)) {
    case LAYOUT_BITS:
        return gather_bits(gather, sources, runs, out);
    case LAYOUT_BYTES:
        return gather_bytes(gather, field, sources, runs, out);
    case LAYOUT_LIST:
        return gather_list(gather, field, sources, runs, out);
    case LAYOUT_STRUCT:
        return gather_children(gather, field, sources, runs, out);
    default:
        return gather_fixed(gather, field, sources, runs, out);
    }
}

/* ---- whole batches ---- */

static enum status row_runs(struct gather *gather, const struct arrow_row *rows, size_t row_count,
                            struct runs *out_runs)
{
    struct array_run *items = arena_alloc(&gather->scratch, row_count * sizeof *items);
    if (!items)
        return no_memory(gather);
    size_t count = 0;
    for (size_t i = 0; i < row_count; i++) {
        struct array_run *last = count ? &items[count - 1] : NULL;
        if (last && last->source == rows[i].batch &&
            (uint32_t)(last->first + last->count) == rows[i].row)
            last->count++;
        else
            items[count++] = (struct array_run){
                .source = rows[i].batch, .first = (int32_t)rows[i].row, .count = 1};
    }
    *out_runs = (struct runs){.items = items, .count = count, .slots = (int64_t)row_count};
    return STATUS_OK;
}

enum status arrow_gather(const struct arrow_batch *const *batches, size_t batch_count,
                         const struct arrow_row *rows, size_t row_count,
                         struct arrow_batch *out_batch, struct error *err)
{
    CHECK(batch_count > 0);
    const struct arrow_schema *schema = batches[0]->schema;
    struct arrow_batch batch = {.schema = schema, .length = (int64_t)row_count};
    struct gather gather = {.source_count = batch_count, .arena = &batch.arena, .err = err};
    struct runs runs;
    enum status status = STATUS_OK;
    if (row_count > INT32_MAX)
        return error_set(err, STATUS_LIMIT, "arrow: gathering %zu rows", row_count);
    batch.columns = arena_alloc_zero(&batch.arena, schema->field_count, sizeof *batch.columns);
    if (!batch.columns) {
        status = no_memory(&gather);
        goto done;
    }
    TRY_OR_DONE(status, row_runs(&gather, rows, row_count, &runs));
    for (uint32_t column = 0; column < schema->field_count; column++) {
        const struct arrow_array **sources =
            arena_alloc(&gather.scratch, batch_count * sizeof *sources);
        if (!sources) {
            status = no_memory(&gather);
            goto done;
        }
        for (size_t i = 0; i < batch_count; i++)
            sources[i] = &batches[i]->columns[column];
        TRY_OR_DONE(status, gather_array(&gather, &schema->fields[column], sources, &runs,
                                         &batch.columns[column]));
    }
    *out_batch = batch;
done:
    arena_deinit(&gather.scratch);
    if (status != STATUS_OK)
        arena_deinit(&batch.arena);
    return status;
}

static enum status gather_one(const struct arrow_field *field,
                              const struct arrow_array *const *sources, size_t source_count,
                              struct runs *runs, struct arena *arena, struct arrow_array *out_array,
                              struct error *err)
{
    struct gather gather = {.source_count = source_count, .arena = arena, .err = err};
    struct arrow_array array;
    for (size_t i = 0; i < runs->count; i++)
        runs->slots += runs->items[i].count;
    enum status status = runs->slots > INT32_MAX
                             ? too_long(&gather, field)
                             : gather_array(&gather, field, sources, runs, &array);
    if (status == STATUS_OK)
        *out_array = array;
    arena_deinit(&gather.scratch);
    return status;
}

enum status array_gather(const struct arrow_field *field, const struct arrow_array *from,
                         struct array_run *items, size_t count, struct arena *arena,
                         struct arrow_array *out_array, struct error *err)
{
    struct runs runs = {.items = items, .count = count};
    return gather_one(field, &from, 1, &runs, arena, out_array, err);
}

enum status array_concat(const struct arrow_field *field, const struct arrow_array *first,
                         const struct arrow_array *second, struct arena *arena,
                         struct arrow_array *out_array, struct error *err)
{
    const struct arrow_array *sources[] = {first, second};
    struct array_run items[COUNT_OF(sources)];
    struct runs runs = {.items = items};
    for (size_t i = 0; i < COUNT_OF(sources); i++)
        if (sources[i]->length)
            items[runs.count++] =
                (struct array_run){.source = (uint32_t)i, .count = (int32_t)sources[i]->length};
    return gather_one(field, sources, COUNT_OF(sources), &runs, arena, out_array, err);
}

enum status array_with_null(const struct arrow_field *field, const struct arrow_array *from,
                            int64_t count, struct arena *arena, struct arrow_array *out_array,
                            struct error *err)
{
    struct arrow_builder builder = {0};
    struct arrow_array nulls;
    TRY(arrow_builder_init(&builder, field, err));
    if (!field->is_dictionary)
        arrow_append_many_zeros(&builder, count, field->is_nullable);
    for (int64_t i = 0; field->is_dictionary && i < count; i++)
        arrow_append_null(&builder);
    enum status status = arrow_builder_failed(&builder)
                             ? error_set(err, STATUS_NO_MEMORY, "arrow: no memory for nulls")
                             : arrow_builder_view(&builder, arena, &nulls, err);
    if (status == STATUS_OK)
        status = array_concat(field, from, &nulls, arena, out_array, err);
    arrow_builder_deinit(&builder);
    return status;
}

enum status array_copy_canonical(const struct arrow_field *field, const struct arrow_array *from,
                                 struct arena *arena, struct arrow_array *out_array,
                                 struct error *err)
{
    struct array_run whole = {.count = (int32_t)from->length};
    return array_gather(field, from, &whole, from->length > 0, arena, out_array, err);
}
