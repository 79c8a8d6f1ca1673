/* SPDX-License-Identifier: Apache-2.0
 *
 * From Arrow rows to levels and values (Dremel's shredding), a leaf at a time.
 *
 * The walk goes down the leaf's path with ranges of slots, as long as they can be, and splits them
 * where a null or a list boundary asks for it. Levels are put down as the walk meets slots; values
 * are noted as ranges, which grow while they are neighbours, and are appended when they end.
 */
#include "format/parquet/parquet_internal.h"

enum { ENTRY_SHARE = 16 }; /* of a dictionary's bytes, what one entry is taken to have at most */

struct shredder {
    struct leaf *leaf;
    bool under_dictionary; /* of a nested type: slots of the leaf's array come again and again */
    const struct path_step *null_at;  /* a null where none may be */
    const struct arrow_array *values; /* the range noted */
    int64_t first, count;
};

/* ---- values ---- */

static void append_noted(struct shredder *shredder)
{
    if (shredder->count)
        leaf_append_values(shredder->leaf, shredder->values, shredder->first, shredder->count,
                           shredder->under_dictionary);
    shredder->count = 0;
}

static void note_values(struct shredder *shredder, const struct arrow_array *array, int64_t first,
                        int64_t count)
{
    if (shredder->count && shredder->values == array &&
        shredder->first + shredder->count == first) {
        shredder->count += count;
        return;
    }
    append_noted(shredder);
    shredder->values = array;
    shredder->first = first;
    shredder->count = count;
}

/* ---- levels ---- */

/* `count` slots, the first of which has repetition level `rep`, the others `rest`. */
static void put_levels(struct leaf *leaf, int64_t count, uint8_t rep, uint8_t rest, uint8_t def)
{
    uint8_t *place;
    if (leaf->max_rep && (place = buf_extend(&leaf->rep, (size_t)count))) {
        place[0] = rep;
        memset(place + 1, rest, (size_t)count - 1);
    }
    if (leaf->max_def && (place = buf_extend(&leaf->def, (size_t)count)))
        memset(place, def, (size_t)count);
    leaf->page_levels += count;
}

static void put_null(struct shredder *shredder, const struct path_step *step, uint8_t rep)
{
    if (!step->field->is_nullable)
        shredder->null_at = step;
    put_levels(shredder->leaf, 1, rep, rep, step->null_def);
}

static void shred_leaf(struct shredder *shredder, const struct path_step *step,
                       const struct arrow_array *array, int64_t first, int64_t count, uint8_t rep)
{
    struct leaf *leaf = shredder->leaf;
    size_t at = leaf->def.length;
    put_levels(leaf, count, rep, leaf->max_rep ? step->rep : 0, step->def);
    if (array->validity) {
        uint8_t *def =
            leaf->max_def && leaf->def.length == at + (size_t)count ? leaf->def.data + at : NULL;
        for (int64_t i = 0; i < count; i++) {
            bool is_null = !arrow_is_valid(array, first + i);
            if (is_null && !step->field->is_nullable)
                shredder->null_at = step;
            if (def)
                def[i] = (uint8_t)(def[i] - (is_null && step->field->is_nullable));
        }
    }
    note_values(shredder, array, first, count);
}

static void shred(struct shredder *shredder, uint32_t depth, const struct arrow_array *array,
                  int64_t first, int64_t count, uint8_t rep);

/* Rows of a list of plain values, each with some: the first of them until one is null or empty. How
 * many; `inout_rep` is that of the next. */
static int64_t shred_full_rows(struct shredder *shredder, uint32_t depth,
                               const struct arrow_array *array, int64_t first, int64_t count,
                               uint8_t *inout_rep)
{
    struct leaf *leaf = shredder->leaf;
    const struct path_step *step = &leaf->path[depth];
    const struct arrow_array *elements = &array->children[step[1].child];
    const int32_t *offsets = array->offsets + first;
    int64_t rows = 0;
    if (depth + 2 != leaf->path_length || elements->validity)
        return 0;
    while (rows < count && offsets[rows] < offsets[rows + 1] &&
           (!array->validity || arrow_is_valid(array, first + rows)))
        rows++;
    if (!rows)
        return 0;
    size_t at = leaf->rep.length;
    int64_t values = offsets[rows] - offsets[0];
    put_levels(leaf, values, *inout_rep, step[1].rep, step[1].def);
    *inout_rep = step->rep;
    if (leaf->rep.length == at + (size_t)values)
        for (int64_t i = 1; i < rows; i++)
            leaf->rep.data[at + (size_t)(offsets[i] - offsets[0])] = step->rep;
    note_values(shredder, elements, offsets[0], values);
    leaf->row_values = offsets[rows] - offsets[rows - 1];
    return rows;
}

static void shred_list(struct shredder *shredder, uint32_t depth, const struct arrow_array *array,
                       int64_t first, int64_t count, uint8_t rep)
{
    const struct path_step *step = &shredder->leaf->path[depth];
    const struct arrow_array *elements = &array->children[step[1].child];
    for (int64_t i = first; i < first + count; i++, rep = step->rep) {
        i += shred_full_rows(shredder, depth, array, i, first + count - i, &rep);
        if (i == first + count)
            break;
        int32_t start = array->offsets[i], end = array->offsets[i + 1];
        if (!arrow_is_valid(array, i))
            put_null(shredder, step, rep);
        else if (start == end)
            put_levels(shredder->leaf, 1, rep, rep, step->def);
        else
            shred(shredder, depth + 1, elements, start, end - start, rep);
        shredder->leaf->row_values = end > start ? end - start : 1;
    }
}

static void shred_struct(struct shredder *shredder, uint32_t depth, const struct arrow_array *array,
                         int64_t first, int64_t count, uint8_t rep)
{
    const struct path_step *step = &shredder->leaf->path[depth];
    const struct arrow_array *child = &array->children[step[1].child];
    if (!array->validity) {
        shred(shredder, depth + 1, child, first, count, rep);
        return;
    }
    for (int64_t i = first, end = first + count; i < end; rep = step->rep) {
        int64_t run = i;
        while (run < end && arrow_is_valid(array, run))
            run++;
        if (run > i) {
            shred(shredder, depth + 1, child, i, run - i, rep);
            i = run;
        } else {
            put_null(shredder, step, rep);
            i++;
        }
    }
}

/* Slots of a dictionary of lists, maps, structs: each is one of its entries. */
static void shred_entries(struct shredder *shredder, uint32_t depth,
                          const struct arrow_array *array, int64_t first, int64_t count,
                          uint8_t rep)
{
    const struct path_step *step = &shredder->leaf->path[depth];
    const int32_t *indices = array->values;
    shredder->under_dictionary = true;
    for (int64_t i = first; i < first + count; i++, rep = step->rep) {
        if (arrow_is_valid(array, i))
            shred(shredder, depth, array->dictionary, indices[i], 1, rep);
        else
            put_null(shredder, step, rep);
    }
}

/* `rep` is the first slot's; the others repeat at the innermost list above them, which is what
 * `step->rep` says. */
static void shred(struct shredder *shredder, uint32_t depth, const struct arrow_array *array,
                  int64_t first, int64_t count, uint8_t rep)
{
    const struct path_step *step = &shredder->leaf->path[depth];
    if (depth + 1 == shredder->leaf->path_length)
        shred_leaf(shredder, step, array, first, count, rep);
    else if (array->dictionary)
        shred_entries(shredder, depth, array, first, count, rep);
    else if (step->field->type == ARROW_STRUCT)
        shred_struct(shredder, depth, array, first, count, rep);
    else
        shred_list(shredder, depth, array, first, count, rep);
}

enum status leaf_shred(struct leaf *leaf, const struct arrow_array *column, int64_t first,
                       int64_t count, struct error *err)
{
    struct shredder shredder = {.leaf = leaf};
    shred(&shredder, 0, column, first, count, 0);
    append_noted(&shredder);
    leaf->page_rows += count;
    if (shredder.null_at)
        return error_set(err, STATUS_INVALID, "parquet: column %.100s: null in a required column",
                         shredder.null_at->field->name);
    if (leaf->failed || leaf->rep.failed || leaf->def.failed || leaf->indices.failed ||
        leaf->plain.failed)
        return error_set(err, STATUS_NO_MEMORY, "parquet: column %.100s: no memory for a page",
                         leaf->field->name);
    return STATUS_OK;
}

uint64_t leaf_row_bytes(const struct leaf *leaf, const struct arrow_array *column, int64_t first,
                        int64_t count)
{
    const struct arrow_array *array = column;
    int64_t end = first + count;
    bool is_any = false; /* under a dictionary a row may be any entry */
    if (leaf->width)
        return 0;
    for (uint32_t depth = 0;; depth++) {
        if (array->dictionary) {
            array = array->dictionary;
            is_any = true;
        }
        if (depth + 1 == leaf->path_length)
            break;
        if (!is_any && leaf->path[depth].field->type != ARROW_STRUCT) {
            end = array->offsets[end];
            first = array->offsets[first];
        }
        array = &array->children[leaf->path[depth + 1].child];
    }
    if (!is_any)
        return (uint64_t)(array->offsets[end] - array->offsets[first]);
    /* An entry is rarely more than a part of them all; and only PLAIN repeats its bytes. */
    return leaf->is_plain ? (uint64_t)array->offsets[array->length] / ENTRY_SHARE * (uint64_t)count
                          : 0;
}

uint64_t leaf_levels_max(const struct leaf *leaf, const struct arrow_array *column, int64_t first,
                         int64_t count)
{
    const struct arrow_array *array = column;
    uint64_t levels = (uint64_t)count;
    for (uint32_t depth = 0; depth + 1 < leaf->path_length; depth++) {
        if (array->dictionary)
            return LEVELS_UNKNOWN;
        if (leaf->path[depth].field->type != ARROW_STRUCT) {
            int64_t end = array->offsets[first + count];
            first = array->offsets[first];
            count = end - first;
            levels += (uint64_t)count;
        }
        array = &array->children[leaf->path[depth + 1].child];
    }
    return levels;
}
