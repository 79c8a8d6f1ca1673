/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrow IPC, writing: dictionaries of one batch after the other. Source: Arrow Columnar Format 1.5,
 * "Dictionary Messages", and of files: no replacement, only deltas.
 *
 * What was written is kept, and compared by value: the memory of a batch's dictionary may be that
 * of another one by the time of the next batch.
 */
#include "format/arrow/ipc_internal.h"

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "arrow: no memory for a dictionary");
}

/* ---- equality ---- */

static bool bits_equal(const uint8_t *a, const uint8_t *b, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (arrow_bit(a, i) != arrow_bit(b, i))
            return false;
    return true;
}

static bool validity_equal(const struct arrow_array *a, const struct arrow_array *b, int64_t count)
{
    for (int64_t i = 0; (a->validity || b->validity) && i < count; i++)
        if (arrow_is_valid(a, i) != arrow_is_valid(b, i))
            return false;
    return true;
}

static bool bytes_equal(const void *a, const void *b, size_t bytes)
{
    return bytes == 0 || memcmp(a, b, bytes) == 0;
}

/* The first `count` slots; of columns without dictionaries. */
static bool slots_equal(const struct arrow_field *field, const struct arrow_array *a,
                        const struct arrow_array *b, int64_t count)
{
    enum arrow_layout layout = type_layout(field->type);
    if (layout == LAYOUT_NULL || count == 0)
        return true;
    if (!validity_equal(a, b, count))
        return false;
    if (layout == LAYOUT_BITS)
        return bits_equal(a->values, b->values, count);
    if (layout == LAYOUT_FIXED)
        return bytes_equal(a->values, b->values, (size_t)count * (size_t)type_width(field));
    if (layout != LAYOUT_STRUCT) {
        if (!bytes_equal(a->offsets, b->offsets, ((size_t)count + 1) * sizeof *a->offsets))
            return false;
        count = a->offsets[count];
    }
    if (layout == LAYOUT_BYTES)
        return bytes_equal(a->values, b->values, (size_t)count);
    for (uint32_t i = 0; i < field->child_count; i++)
        if (!slots_equal(&field->children[i], &a->children[i], &b->children[i], count))
            return false;
    return true;
}

/* ---- what a file's dictionary has not yet ---- */

struct unifying {
    struct written_dictionary *written;
    const struct arrow_field *field; /* of the values */
    const struct arrow_array *fresh;
    struct array_run *added; /* of `fresh`, one value each */
    size_t added_count;
};

static bool is_hashed(const struct arrow_field *field)
{
    enum arrow_layout layout = type_layout(field->type);
    return layout == LAYOUT_FIXED || layout == LAYOUT_BYTES;
}

static struct span bytes_at(const struct arrow_field *field, const struct arrow_array *array,
                            int64_t i)
{
    const uint8_t *values = array->values;
    size_t width = (size_t)type_width(field);
    if (type_layout(field->type) == LAYOUT_FIXED)
        return span_of(values + (size_t)i * width, width);
    return span_of(values + array->offsets[i], (size_t)(array->offsets[i + 1] - array->offsets[i]));
}

static struct span value_at(const struct unifying *unifying, uint32_t index)
{
    const struct arrow_array *old = &unifying->written->values;
    return index < old->length ? bytes_at(unifying->field, old, index)
                               : bytes_at(unifying->field, unifying->fresh,
                                          unifying->added[index - (size_t)old->length].first);
}

/* Where the value stands, or would. */
static uint32_t *find_slot(const struct unifying *unifying, struct span value)
{
    const struct written_dictionary *written = unifying->written;
    size_t mask = written->slot_count - 1;
    size_t at = (size_t)hash64_seeded(value.data, value.length, (uintptr_t)written) & mask;
    while (written->slots[at] && !span_equal(value_at(unifying, written->slots[at] - 1), value))
        at = (at + 1) & mask;
    return &written->slots[at];
}

static bool has_null_at(const struct unifying *unifying, uint32_t index)
{
    const struct arrow_array *old = &unifying->written->values;
    return index < old->length
               ? !arrow_is_valid(old, index)
               : !arrow_is_valid(unifying->fresh,
                                 unifying->added[index - (size_t)old->length].first);
}

/* A table with room for `count` values that has those so far. */
static bool make_slots(const struct unifying *unifying, size_t count)
{
    struct written_dictionary *written = unifying->written;
    size_t slot_count = 64, known = (size_t)written->values.length + unifying->added_count;
    while (slot_count < count * 2)
        slot_count *= 2;
    uint32_t *slots = mem_alloc_zero(slot_count, sizeof *slots);
    if (!slots)
        return false;
    mem_free(written->slots);
    written->slots = slots;
    written->slot_count = slot_count;
    written->null_index = -1;
    for (uint32_t i = 0; i < known; i++) {
        if (has_null_at(unifying, i)) {
            written->null_index = (int32_t)i;
            continue;
        }
        uint32_t *slot = find_slot(unifying, value_at(unifying, i));
        *slot = *slot ? *slot : i + 1; /* a dictionary may have a value twice */
    }
    return true;
}

/* The index of a fresh value, which is added if it has none. */
static int32_t index_of(struct unifying *unifying, int64_t i)
{
    struct written_dictionary *written = unifying->written;
    uint32_t next = (uint32_t)((size_t)written->values.length + unifying->added_count);
    uint32_t *slot = NULL;
    if (is_hashed(unifying->field) && arrow_is_valid(unifying->fresh, i)) {
        slot = find_slot(unifying, bytes_at(unifying->field, unifying->fresh, i));
        if (*slot)
            return (int32_t)(*slot - 1);
        *slot = next + 1;
    } else if (is_hashed(unifying->field)) {
        if (written->null_index >= 0)
            return written->null_index;
        written->null_index = (int32_t)next;
    }
    unifying->added[unifying->added_count++] = (struct array_run){.first = (int32_t)i, .count = 1};
    return (int32_t)next;
}

static enum status keep_sum(struct written_dictionary *written, const struct arrow_field *field,
                            const struct arrow_array *more, struct error *err)
{
    struct arena arena;
    struct arrow_array sum;
    arena_init(&arena, 0);
    enum status status = array_concat(field, &written->values, more, &arena, &sum, err);
    if (status != STATUS_OK) {
        arena_deinit(&arena);
        return status;
    }
    arena_deinit(&written->arena);
    written->arena = arena;
    written->values = sum;
    return STATUS_OK;
}

static enum status unify(struct written_dictionary *written, const struct arrow_field *field,
                         struct arena *arena, struct arrow_array *column,
                         struct dictionary_change *change, struct error *err)
{
    struct unifying unifying = {.written = written, .field = field, .fresh = column->dictionary};
    size_t fresh = (size_t)column->dictionary->length, old = (size_t)written->values.length;
    int32_t *map = arena_alloc(arena, (fresh + 1) * sizeof *map);
    int32_t *indices = arena_alloc_zero(arena, (size_t)column->length + 1, sizeof *indices);
    unifying.added = arena_alloc(arena, (fresh + 1) * sizeof *unifying.added);
    if (!map || !indices || !unifying.added)
        return out_of_memory(err);
    if (fresh + old > INT32_MAX)
        return error_set(err, STATUS_LIMIT,
                         "arrow: column %.100s: a dictionary of more than 2^31 - 1 values",
                         field->name);
    if (is_hashed(field) && (!written->slots || written->slot_count < (fresh + old) * 2) &&
        !make_slots(&unifying, fresh + old))
        return out_of_memory(err);
    for (size_t i = 0; i < fresh; i++)
        map[i] = index_of(&unifying, (int64_t)i);
    for (int64_t i = 0; i < column->length; i++)
        if (arrow_is_valid(column, i))
            indices[i] = map[((const int32_t *)column->values)[i]];
    column->values = indices;
    *change = (struct dictionary_change){.is_needed = unifying.added_count > 0, .is_delta = true};
    if (!change->is_needed)
        return STATUS_OK;
    TRY(array_gather(field, column->dictionary, unifying.added, unifying.added_count, arena,
                     &change->values, err));
    return keep_sum(written, field, &change->values, err);
}

/* ---- settling ---- */

static enum status replace(struct written_dictionary *written, const struct arrow_field *field,
                           const struct arrow_array *values, struct dictionary_change *change,
                           struct error *err)
{
    written->values = (struct arrow_array){0};
    arena_deinit(&written->arena);
    arena_init(&written->arena, 0);
    TRY(array_copy_canonical(field, values, &written->arena, &written->values, err));
    written->is_written = true;
    *change = (struct dictionary_change){.is_needed = true, .values = *values};
    return STATUS_OK;
}

static enum status append_rest(struct written_dictionary *written, const struct arrow_field *field,
                               const struct arrow_array *values, struct arena *arena,
                               struct dictionary_change *change, struct error *err)
{
    struct array_run rest = {.first = (int32_t)written->values.length,
                             .count = (int32_t)(values->length - written->values.length)};
    *change = (struct dictionary_change){.is_needed = true, .is_delta = true};
    TRY(array_gather(field, values, &rest, 1, arena, &change->values, err));
    mem_free(written->slots); /* a table of fewer values */
    written->slots = NULL;
    return keep_sum(written, field, &change->values, err);
}

/* Indices may be narrower outside. */
static enum status check_indices(const struct arrow_field *field, const struct arrow_array *column,
                                 struct error *err)
{
    size_t width = dictionary_index_width(field);
    if (width >= sizeof(int32_t))
        return STATUS_OK;
    bool is_signed = !field->origin->index_is_unsigned;
    int32_t limit = (int32_t)(1u << (8 * width - is_signed));
    for (int64_t i = 0; i < column->length; i++)
        if (arrow_is_valid(column, i) && ((const int32_t *)column->values)[i] >= limit)
            return error_set(err, STATUS_LIMIT,
                             "arrow: column %.100s: more than the %d values of a dictionary that "
                             "its indices can name",
                             field->name, (int)limit);
    return STATUS_OK;
}

enum status ipc_dictionary_settle(struct written_dictionary *written,
                                  const struct arrow_field *field, bool may_replace,
                                  struct arena *arena, struct arrow_array *column,
                                  struct dictionary_change *out_change, struct error *err)
{
    struct arrow_field value_field = dictionary_value_field(field);
    const struct arrow_array *old = &written->values, *fresh = column->dictionary;
    int64_t common = fresh->length < old->length ? fresh->length : old->length;
    value_field.is_nullable = true;
    *out_change = (struct dictionary_change){.is_needed = false};
    if (!written->is_written)
        TRY(replace(written, &value_field, fresh, out_change, err));
    else if (slots_equal(&value_field, old, fresh, common))
        TRY(fresh->length > common
                ? append_rest(written, &value_field, fresh, arena, out_change, err)
                : STATUS_OK);
    else if (may_replace)
        TRY(replace(written, &value_field, fresh, out_change, err));
    else if (field->origin && field->origin->is_ordered)
        return error_set(err, STATUS_UNSUPPORTED,
                         "arrow: column %.100s: an ordered dictionary that changes, in a file",
                         field->name);
    else
        TRY(unify(written, &value_field, arena, column, out_change, err));
    return check_indices(field, column, err);
}

void ipc_dictionary_deinit(struct written_dictionary *written)
{
    mem_free(written->slots);
    arena_deinit(&written->arena);
}
