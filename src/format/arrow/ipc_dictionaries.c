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

static struct span bytes_at(const struct arrow_field *field, const struct arrow_array *array,
                            int64_t i)
{
    const uint8_t *values = array->values;
    size_t width = (size_t)type_width(field);
    if (type_layout(field->type) == LAYOUT_FIXED)
        return span_of(values + (size_t)i * width, width);
    return span_of(values + array->offsets[i], (size_t)(array->offsets[i + 1] - array->offsets[i]));
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

static bool slot_equal(const struct arrow_field *field, const struct arrow_array *a, int64_t i,
                       const struct arrow_array *b, int64_t j)
{
    if (field->type == ARROW_NULL)
        return true;
    if (!arrow_is_valid(a, i) || !arrow_is_valid(b, j))
        return arrow_is_valid(a, i) == arrow_is_valid(b, j);
    switch (type_layout(field->type)) {
    case LAYOUT_BITS:
        return arrow_bit(a->values, i) == arrow_bit(b->values, j);
    case LAYOUT_FIXED:
    case LAYOUT_BYTES:
        return span_equal(bytes_at(field, a, i), bytes_at(field, b, j));
    case LAYOUT_LIST: {
        int32_t count = a->offsets[i + 1] - a->offsets[i];
        if (count != b->offsets[j + 1] - b->offsets[j])
            return false;
        for (uint32_t child = 0; child < field->child_count; child++)
            for (int32_t k = 0; k < count; k++)
                if (!slot_equal(&field->children[child], &a->children[child], a->offsets[i] + k,
                                &b->children[child], b->offsets[j] + k))
                    return false;
        return true;
    }
    default:
        for (uint32_t child = 0; child < field->child_count; child++)
            if (!slot_equal(&field->children[child], &a->children[child], i, &b->children[child],
                            j))
                return false;
        return true;
    }
}

/* Equal of equal slots. */
static uint64_t slot_hash(const struct arrow_field *field, const struct arrow_array *array,
                          int64_t i, uint64_t seed)
{
    int32_t count = 0;
    bool bit;
    if (field->type == ARROW_NULL || !arrow_is_valid(array, i))
        return hash64_seeded(NULL, 0, ~seed);
    switch (type_layout(field->type)) {
    case LAYOUT_BITS:
        bit = arrow_bit(array->values, i);
        return hash64_seeded(&bit, sizeof bit, seed);
    case LAYOUT_FIXED:
    case LAYOUT_BYTES: {
        struct span bytes = bytes_at(field, array, i);
        return hash64_seeded(bytes.data, bytes.length, seed);
    }
    case LAYOUT_LIST:
        count = array->offsets[i + 1] - array->offsets[i];
        seed = hash64_seeded(&count, sizeof count, seed);
        for (uint32_t child = 0; child < field->child_count; child++)
            for (int32_t k = 0; k < count; k++)
                seed = slot_hash(&field->children[child], &array->children[child],
                                 array->offsets[i] + k, seed);
        return seed;
    default:
        for (uint32_t child = 0; child < field->child_count; child++)
            seed = slot_hash(&field->children[child], &array->children[child], i, seed);
        return seed;
    }
}

/* ---- what a file's dictionary has not yet ---- */

struct unifying {
    struct written_dictionary *dictionary;
    const struct arrow_field *field; /* of the values */
    const struct arrow_array *fresh;
    struct array_run *added; /* of `fresh`, one value each */
    size_t added_count;
};

static bool has_value_at(const struct unifying *unifying, uint32_t index,
                         const struct arrow_array *array, int64_t i)
{
    const struct arrow_array *old = &unifying->dictionary->written.values;
    if (index < old->length)
        return slot_equal(unifying->field, old, index, array, i);
    return slot_equal(unifying->field, unifying->fresh,
                      unifying->added[index - (size_t)old->length].first, array, i);
}

/* Where the value stands, or would. */
static uint32_t *find_slot(const struct unifying *unifying, const struct arrow_array *array,
                           int64_t i)
{
    const struct written_dictionary *dictionary = unifying->dictionary;
    size_t mask = dictionary->slot_count - 1;
    size_t at = (size_t)slot_hash(unifying->field, array, i, (uintptr_t)dictionary) & mask;
    while (dictionary->slots[at] && !has_value_at(unifying, dictionary->slots[at] - 1, array, i))
        at = (at + 1) & mask;
    return &dictionary->slots[at];
}

/* A table with room for `count` values. */
static bool make_slots(struct written_dictionary *dictionary, size_t count)
{
    size_t slot_count = 64;
    while (slot_count < count * 2)
        slot_count *= 2;
    uint32_t *slots = mem_alloc_zero(slot_count, sizeof *slots);
    if (!slots)
        return false;
    mem_free(dictionary->slots);
    dictionary->slots = slots;
    dictionary->slot_count = slot_count;
    dictionary->listed = 0;
    return true;
}

/* Those written so far that the table has not yet. */
static void list_written(const struct unifying *unifying)
{
    struct written_dictionary *dictionary = unifying->dictionary;
    const struct arrow_array *old = &dictionary->written.values;
    for (; dictionary->listed < old->length; dictionary->listed++) {
        uint32_t *slot = find_slot(unifying, old, dictionary->listed);
        *slot = *slot ? *slot : dictionary->listed + 1; /* a dictionary may have a value twice */
    }
}

/* The index of a fresh value, which is added if it has none. */
static int32_t index_of(struct unifying *unifying, int64_t i)
{
    size_t next = (size_t)unifying->dictionary->written.values.length + unifying->added_count;
    uint32_t *slot = find_slot(unifying, unifying->fresh, i);
    if (!*slot) {
        unifying->added[unifying->added_count++] =
            (struct array_run){.first = (int32_t)i, .count = 1};
        *slot = (uint32_t)next + 1;
    }
    return (int32_t)(*slot - 1);
}

static enum status unify(struct written_dictionary *dictionary, const struct arrow_field *field,
                         struct arena *arena, struct arrow_array *column,
                         struct dictionary_change *change, struct error *err)
{
    struct unifying unifying = {
        .dictionary = dictionary, .field = field, .fresh = column->dictionary};
    size_t fresh = (size_t)column->dictionary->length;
    size_t sum = fresh + (size_t)dictionary->written.values.length;
    int32_t *map = arena_alloc(arena, (fresh + 1) * sizeof *map);
    int32_t *indices = arena_alloc_zero(arena, (size_t)column->length + 1, sizeof *indices);
    unifying.added = arena_alloc(arena, (fresh + 1) * sizeof *unifying.added);
    if (!map || !indices || !unifying.added)
        return out_of_memory(err);
    if (sum > INT32_MAX)
        return error_set(err, STATUS_LIMIT,
                         "arrow: column %.100s: a dictionary of more than 2^31 - 1 values",
                         field->name);
    if ((!dictionary->slots || dictionary->slot_count < sum * 2) && !make_slots(dictionary, sum))
        return out_of_memory(err);
    list_written(&unifying);
    for (size_t i = 0; i < fresh; i++)
        map[i] = index_of(&unifying, (int64_t)i);
    dictionary->listed += (uint32_t)unifying.added_count;
    for (int64_t i = 0; i < column->length; i++)
        if (arrow_is_valid(column, i))
            indices[i] = map[((const int32_t *)column->values)[i]];
    column->values = indices;
    *change = (struct dictionary_change){.is_needed = unifying.added_count > 0, .is_delta = true};
    if (!change->is_needed)
        return STATUS_OK;
    TRY(array_gather(field, column->dictionary, unifying.added, unifying.added_count, arena,
                     &change->values, err));
    return growing_values_append(&dictionary->written, field, &change->values, 0, err);
}

/* ---- settling ---- */

static enum status replace(struct written_dictionary *dictionary, const struct arrow_field *field,
                           const struct arrow_array *values, struct dictionary_change *change,
                           struct error *err)
{
    growing_values_deinit(&dictionary->written);
    TRY(growing_values_append(&dictionary->written, field, values, 0, err));
    dictionary->is_written = true;
    *change = (struct dictionary_change){.is_needed = true, .values = *values};
    return STATUS_OK;
}

static enum status append_rest(struct written_dictionary *dictionary,
                               const struct arrow_field *field, const struct arrow_array *values,
                               struct arena *arena, struct dictionary_change *change,
                               struct error *err)
{
    int64_t known = dictionary->written.values.length;
    struct array_run rest = {.first = (int32_t)known, .count = (int32_t)(values->length - known)};
    *change = (struct dictionary_change){.is_needed = true, .is_delta = true};
    TRY(array_gather(field, values, &rest, 1, arena, &change->values, err));
    return growing_values_append(&dictionary->written, field, &change->values, 0, err);
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

enum status ipc_dictionary_settle(struct written_dictionary *dictionary,
                                  const struct arrow_field *field, bool may_replace,
                                  struct arena *arena, struct arrow_array *column,
                                  struct dictionary_change *out_change, struct error *err)
{
    struct arrow_field value_field = dictionary_value_field(field);
    const struct arrow_array *old = &dictionary->written.values, *fresh = column->dictionary;
    int64_t common = fresh->length < old->length ? fresh->length : old->length;
    value_field.is_nullable = true;
    *out_change = (struct dictionary_change){.is_needed = false};
    if (!dictionary->is_written)
        TRY(replace(dictionary, &value_field, fresh, out_change, err));
    else if (slots_equal(&value_field, old, fresh, common))
        TRY(fresh->length > common
                ? append_rest(dictionary, &value_field, fresh, arena, out_change, err)
                : STATUS_OK);
    else if (may_replace)
        TRY(replace(dictionary, &value_field, fresh, out_change, err));
    else if (field->origin && field->origin->is_ordered)
        return error_set(err, STATUS_UNSUPPORTED,
                         "arrow: column %.100s: an ordered dictionary that changes, in a file",
                         field->name);
    else
        TRY(unify(dictionary, &value_field, arena, column, out_change, err));
    return check_indices(field, column, err);
}

void ipc_dictionary_deinit(struct written_dictionary *dictionary)
{
    mem_free(dictionary->slots);
    growing_values_deinit(&dictionary->written);
}
