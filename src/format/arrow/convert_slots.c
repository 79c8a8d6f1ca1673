/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays whose slots lie elsewhere than at their place, made into plain ones: list views and
 * run-end encoding. A few bytes of them may name many slots, and each of those be long, so that
 * what comes out counts against the limit of what is made.
 */
#include "format/arrow/arrow_internal.h"

enum { ARENA_SLACK = 64 * 1024 }; /* what an arena may take at once for little */

static enum status gather_within(struct array_making *making, const struct arrow_field *field,
                                 const struct arrow_array *from, struct array_run *runs,
                                 size_t count, struct arrow_array *out)
{
    struct arena *arena = making->arena;
    size_t bytes_max = arena->bytes_max, before = arena->bytes_total, most;
    bool is_bound = SIZE_ADD(before + ARENA_SLACK, (size_t)making->bytes_left, &most) &&
                    (bytes_max == 0 || most < bytes_max);
    if (is_bound)
        arena->bytes_max = most;
    enum status status = array_gather(field, from, runs, count, arena, out, making->err);
    arena->bytes_max = bytes_max;
    if (status == STATUS_NO_MEMORY)
        return is_bound ? making_charge(making, making->bytes_left + 1)
                        : arena_no_memory(arena, making->err);
    TRY(status);
    uint64_t taken = arena->bytes_total - before;
    return making_charge(making, taken < making->bytes_left ? taken : making->bytes_left);
}

/* Memory for runs while they are needed: NULL with `status` set. */
static struct array_run *runs_alloc(struct array_making *making, int64_t count,
                                    enum status *out_status)
{
    struct array_run *runs = NULL;
    *out_status = making_charge(making, (uint64_t)count * sizeof *runs);
    if (*out_status == STATUS_OK && !(runs = mem_alloc(((size_t)count + 1) * sizeof *runs)))
        *out_status = arena_no_memory(making->arena, making->err);
    return runs;
}

/* ---- list views ---- */

static enum status list_runs(struct array_making *making, const uint8_t *firsts,
                             const uint8_t *counts, size_t width,
                             const struct arrow_array *elements, const struct arrow_array *array,
                             int32_t *offsets, struct array_run *runs, size_t *out_count)
{
    int64_t total = 0;
    *out_count = 0;
    offsets[0] = 0;
    for (int64_t i = 0; i < array->length; i++) {
        const uint8_t *place = firsts + (size_t)i * width;
        int64_t first = get_le_signed(place, width);
        int64_t count = get_le_signed(counts + (size_t)i * width, width);
        if (!arrow_is_valid(array, i))
            count = 0; /* whatever it says */
        else if (first < 0 || count < 0 || first > elements->length ||
                 count > elements->length - first)
            return making_fail(making, place, "a list outside its elements");
        total += count;
        if (total > INT32_MAX)
            return making_too_long(making);
        if (count)
            runs[(*out_count)++] =
                (struct array_run){.first = (int32_t)first, .count = (int32_t)count};
        offsets[i + 1] = (int32_t)total;
    }
    return STATUS_OK;
}

enum status convert_list_view(struct array_making *making, const struct arrow_field *field,
                              const uint8_t *firsts, const uint8_t *counts, size_t width,
                              const struct arrow_array *elements, struct arrow_array *array)
{
    enum status status;
    size_t count;
    int32_t *offsets;
    TRY(making_alloc(making, ((uint64_t)array->length + 1) * sizeof *offsets, &offsets));
    array->offsets = offsets;
    array->children = arena_alloc_zero(making->arena, 1, sizeof *array->children);
    if (!array->children)
        return arena_no_memory(making->arena, making->err);
    struct array_run *runs = runs_alloc(making, array->length, &status);
    if (!runs)
        return status;
    status = list_runs(making, firsts, counts, width, elements, array, offsets, runs, &count);
    if (status == STATUS_OK)
        status =
            gather_within(making, &field->children[0], elements, runs, count, &array->children[0]);
    mem_free(runs);
    return status;
}

/* ---- run-end encoding ---- */

/* One run a slot: each is a value of its own in what comes out. */
static enum status value_runs(struct array_making *making, const uint8_t *ends, size_t width,
                              int64_t end_count, int64_t first, int64_t length,
                              struct array_run *runs)
{
    int64_t last = 0, done = 0;
    for (int64_t i = 0; i < end_count; i++) {
        const uint8_t *place = ends + (size_t)i * width;
        int64_t end = get_le_signed(place, width);
        if (end <= last)
            return making_fail(making, place, "ends of runs that do not rise");
        last = end;
        for (; done < length && first + done < end; done++)
            runs[done] = (struct array_run){.first = (int32_t)i, .count = 1};
    }
    return done == length ? STATUS_OK
                          : making_fail(making, NULL, "runs that end before their column");
}

enum status convert_run_ends(struct array_making *making, const struct arrow_field *field,
                             const uint8_t *ends, size_t width, const struct arrow_array *values,
                             int64_t first, int64_t length, struct arrow_array *array)
{
    enum status status;
    struct array_run *runs = runs_alloc(making, length, &status);
    if (!runs)
        return status;
    status = value_runs(making, ends, width, values->length, first, length, runs);
    if (status == STATUS_OK)
        status = gather_within(making, field, values, runs, (size_t)length, array);
    mem_free(runs);
    return status;
}
