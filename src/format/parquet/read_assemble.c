/* SPDX-License-Identifier: Apache-2.0
 *
 * A row group becomes a batch: leaves are read, and lists, maps and structs are made of their
 * levels. Several leaves speak of the same list; the first one is believed, and the others must
 * agree with it.
 */
#include <inttypes.h>

#include "format/parquet/reader_internal.h"

struct assembly {
    struct parquet_reader *reader;
    const struct parquet_plan *plan;
    struct leaf_reader *leaves; /* one a leaf that is read */
    size_t level_bytes;         /* that those at hand keep */
    uint64_t expanded_bytes;    /* of pages, of all that were read */
    struct arrow_batch *batch;
    struct error *err;
};

static const struct parquet_leaf *leaf_of(const struct assembly *assembly, uint32_t leaf)
{
    return &assembly->reader->file->leaves[leaf];
}

static enum status fault(const struct assembly *assembly, uint32_t leaf, enum status status,
                         const char *what)
{
    const struct parquet_chunk *chunk =
        &assembly->reader->file->groups[assembly->plan->group].chunks[leaf];
    return error_set(assembly->err, status,
                     "parquet: column %.120s, row group %zu, byte %" PRIu64 ": %s",
                     leaf_of(assembly, leaf)->path, assembly->plan->group, chunk->offset, what);
}

/* What the batch may still take. Never 0, which would be no limit. */
static size_t bytes_left(const struct assembly *assembly)
{
    size_t max = assembly->reader->file->limits.batch_bytes_max;
    size_t used = assembly->batch->arena.bytes_total + assembly->level_bytes;
    return used < max ? max - used : 1;
}

static void *take_room(const struct assembly *assembly, size_t bytes)
{
    return arena_alloc(&assembly->batch->arena, bytes);
}

static enum status out_of_room(const struct assembly *assembly)
{
    return error_set(assembly->err, STATUS_LIMIT,
                     "parquet: row group %zu: no room for a batch within %zu bytes",
                     assembly->plan->group, assembly->reader->file->limits.batch_bytes_max);
}

/* ---- leaves ---- */

/* Reads leaf number `leaf` of the file, once. `binding`: NULL, only its levels are wanted. */
static enum status read_leaf(struct assembly *assembly, uint32_t leaf,
                             const struct binding *binding, struct leaf_reader **out_leaf)
{
    struct parquet_reader *reader = assembly->reader;
    uint32_t place = reader->places[leaf];
    struct leaf_reader *to = &assembly->leaves[place];
    *out_leaf = to;
    if (to->walk.file && binding) /* its values are given away */
        return fault(assembly, leaf, STATUS_INVALID, "wanted twice within one column");
    if (to->walk.file)
        return STATUS_OK;
    to->walk = (struct page_walk){
        .file = reader->file,
        .leaf = leaf_of(assembly, leaf),
        .chunk = &reader->file->groups[assembly->plan->group].chunks[leaf],
        .group = assembly->plan->group,
        .zstd = &reader->zstd,
        .pool = reader->pool,
        .skips_checksums = reader->options.skips_checksums,
        .expanded_bytes_max = reader->file->limits.batch_bytes_max - assembly->expanded_bytes};
    to->conversion = binding ? binding->conversion : CONVERT_NONE;
    to->physical_width = leaf_physical_width(to->walk.leaf);
    to->width = to->conversion == CONVERT_NONE ? to->physical_width : 8;
    to->is_text = binding && binding->field->type == ARROW_UTF8;
    to->keeps_dictionary = binding && binding->field->is_dictionary;
    to->reads_values = binding != NULL;
    to->slot_def = binding ? binding->node->slot_def : 0;
    to->plan = &assembly->plan->leaves[place];
    to->rows = assembly->plan->rows;
    to->rows_left = assembly->plan->row_range_count;
    to->slots_likely = (size_t)assembly->plan->row_count;
    TRY(leaf_reader_read(to, bytes_left(assembly), assembly->err));
    assembly->expanded_bytes += to->walk.expanded_bytes;
    reader->page_count += to->page_count;
    assembly->level_bytes += to->def.capacity + to->rep.capacity;
    return STATUS_OK;
}

static void set_bit(uint8_t *bits, size_t at)
{
    bits[at >> 3] |= (uint8_t)(1u << (at & 7));
}

/* The validity of the node's slots by a leaf's levels; NULL where none is null. */
static enum status make_validity(const struct assembly *assembly, const struct parquet_node *node,
                                 const struct leaf_reader *leaf, struct arrow_array *array)
{
    size_t count = (size_t)array->length, slot = 0;
    uint8_t *bits = arena_alloc_zero(&assembly->batch->arena, count / 8 + 1, 1);
    const uint8_t *def = leaf->def.data, *rep = leaf->rep.data;
    bool has_rep = leaf->walk.leaf->max_rep > node->slot_rep;
    if (!bits)
        return out_of_room(assembly);
    for (size_t i = 0; i < leaf->level_count; i++) {
        if (def[i] < node->slot_def || (has_rep && rep[i] > node->slot_rep))
            continue;
        bits[slot >> 3] |= (uint8_t)((def[i] >= node->def) << (slot & 7));
        slot++;
    }
    CHECK(slot == count);
    array->validity = bits;
    return STATUS_OK;
}

/* A null of the field itself, not of what is around it. */
static bool has_own_null(const struct parquet_node *node, const struct leaf_reader *leaf)
{
    if (!node->is_optional)
        return false;
    for (size_t i = 0; i < leaf->level_count; i++)
        if (leaf->def.data[i] == node->def - 1 && node->def - 1 >= node->slot_def)
            return true;
    return false;
}

static enum status assemble_nulls(struct assembly *assembly, const struct binding *binding,
                                  const struct leaf_reader *leaf, struct arrow_array *array)
{
    if (!array->null_count)
        return STATUS_OK;
    /* Nulls that come from around it are not its own. */
    if (!binding->field->is_nullable && has_own_null(binding->node, leaf))
        return fault(assembly, binding->leaf, STATUS_INVALID, "a null where none is wanted");
    return make_validity(assembly, binding->node, leaf, array);
}

/* The buffer's memory becomes the batch's, until that is released; or, where it is much more than
 * what is in it, other memory does. */
static void *take_buf(const struct assembly *assembly, struct buf *buf)
{
    struct parquet_memory *pool = assembly->reader->pool;
    struct buf copy = {0};
    if (!buf->length)
        return take_room(assembly, 1);
    if (buf->capacity - buf->length > buf->length / 2) {
        if (!pool_reserve(pool, &copy, buf->length))
            return NULL;
        memcpy(copy.data, buf->data, buf->length);
        copy.length = buf->length;
        buf = &copy;
    }
    void *memory = buf->data;
    if (pool_lend(pool, buf, &assembly->batch->arena))
        return memory;
    buf_deinit(&copy);
    return NULL;
}

static const void *pack_bools(const struct assembly *assembly, const struct buf *bytes)
{
    uint8_t *bits = arena_alloc_zero(&assembly->batch->arena, bytes->length / 8 + 1, 1);
    for (size_t i = 0; bits && i < bytes->length; i++)
        if (bytes->data[i])
            set_bit(bits, i);
    return bits;
}

static enum status take_values(const struct assembly *assembly, struct leaf_reader *leaf,
                               struct arrow_array *array)
{
    if (leaf->keeps_dictionary) {
        array->values = take_buf(assembly, &leaf->indices);
        array->dictionary = arena_alloc_zero(&assembly->batch->arena, 1, sizeof *array);
        if (!array->dictionary || !array->values)
            return out_of_room(assembly);
        array->dictionary->length = (int64_t)leaf->dictionary_count;
        array->dictionary->offsets = take_buf(assembly, &leaf->dictionary.ends);
        array->dictionary->values = take_buf(assembly, &leaf->dictionary.data);
        return array->dictionary->offsets && array->dictionary->values ? STATUS_OK
                                                                       : out_of_room(assembly);
    }
    if (!leaf->width) {
        array->offsets = take_buf(assembly, &leaf->values.ends);
        if (!array->offsets)
            return out_of_room(assembly);
    }
    array->values = leaf->walk.leaf->physical == PARQUET_BOOLEAN
                        ? pack_bools(assembly, &leaf->values.data)
                        : take_buf(assembly, &leaf->values.data);
    return array->values ? STATUS_OK : out_of_room(assembly);
}

static enum status assemble_leaf(struct assembly *assembly, const struct binding *binding,
                                 struct arrow_array *array)
{
    struct leaf_reader *leaf;
    TRY(read_leaf(assembly, binding->leaf, binding, &leaf));
    array->length = (int64_t)leaf->slot_count;
    array->null_count = (int64_t)leaf->null_count;
    TRY(assemble_nulls(assembly, binding, leaf, array));
    TRY(take_values(assembly, leaf, array));
    leaf_reader_drop_values(leaf);
    if (!binding->converts)
        return STATUS_OK;
    return logical_convert(leaf->walk.leaf, binding->field, &assembly->batch->arena, array,
                           assembly->err);
}

/* ---- what the file does not have ---- */

static enum status assemble_missing(const struct assembly *assembly,
                                    const struct arrow_field *field, int64_t length,
                                    struct arrow_array *array)
{
    struct arena *arena = &assembly->batch->arena;
    size_t count = (size_t)length, width = (size_t)field->byte_width;
    *array = (struct arrow_array){.length = length, .null_count = length};
    if (field->type == ARROW_NULL)
        return STATUS_OK;
    if (field->type != ARROW_FIXED || field->is_dictionary)
        width = 8; /* at least */
    array->validity = arena_alloc_zero(arena, count / 8 + 1, 1);
    array->values = arena_alloc_zero(arena, count + 1, width);
    array->offsets = arena_alloc_zero(arena, count + 1, sizeof(int32_t));
    array->children = arena_alloc_zero(arena, field->child_count, sizeof *array->children);
    if (!array->validity || !array->values || !array->offsets || !array->children)
        return out_of_room(assembly);
    if (field->is_dictionary) {
        struct arrow_field values = *field;
        values.is_dictionary = false;
        array->dictionary = arena_alloc_zero(arena, 1, sizeof *array->dictionary);
        if (!array->dictionary)
            return out_of_room(assembly);
        return assemble_missing(assembly, &values, 0, array->dictionary);
    }
    for (uint32_t i = 0; i < field->child_count; i++)
        TRY(assemble_missing(assembly, &field->children[i],
                             field->type == ARROW_STRUCT ? length : 0, &array->children[i]));
    return STATUS_OK;
}

/* ---- lists and structs ---- */

static uint8_t level_at(const struct buf *levels, uint8_t max, size_t i)
{
    return max ? levels->data[i] : 0;
}

/* The same where every entry counts for both. */
static bool levels_equal(const struct leaf_reader *a, const struct leaf_reader *b, uint8_t def_max)
{
    const uint8_t *x = a->def.data, *y = b->def.data;
    unsigned differences = 0;
    if (a->level_count != b->level_count || a->level_count == 0)
        return a->level_count == b->level_count;
    if (a->walk.leaf->max_rep && memcmp(a->rep.data, b->rep.data, a->level_count) != 0)
        return false;
    for (size_t i = 0; i < a->level_count; i++) {
        uint8_t one = x[i] < def_max ? x[i] : def_max, other = y[i] < def_max ? y[i] : def_max;
        differences |= (unsigned)(one ^ other);
    }
    return !differences;
}

/* Whether two leaves say the same about the node: the same slots, nulls and elements. */
static bool leaves_agree(const struct parquet_node *node, const struct leaf_reader *a,
                         const struct leaf_reader *b)
{
    bool is_list = node->field->type != ARROW_STRUCT;
    unsigned rep_max = node->slot_rep + (unsigned)is_list, def_max = node->def + (unsigned)is_list;
    uint8_t a_rep = a->walk.leaf->max_rep, b_rep = b->walk.leaf->max_rep;
    uint8_t a_def = a->walk.leaf->max_def, b_def = b->walk.leaf->max_def;
    size_t i = 0, j = 0;
    if (a_def && b_def && a_rep == b_rep && a_rep <= rep_max)
        return levels_equal(a, b, (uint8_t)def_max);
    for (;; i++, j++) {
        while (i < a->level_count && level_at(&a->rep, a_rep, i) > rep_max)
            i++;
        while (j < b->level_count && level_at(&b->rep, b_rep, j) > rep_max)
            j++;
        if (i == a->level_count || j == b->level_count)
            return i == a->level_count && j == b->level_count;
        unsigned x = level_at(&a->def, a_def, i), y = level_at(&b->def, b_def, j);
        if (level_at(&a->rep, a_rep, i) != level_at(&b->rep, b_rep, j) ||
            (x < def_max ? x : def_max) != (y < def_max ? y : def_max))
            return false;
    }
}

static enum status assemble(struct assembly *assembly, const struct binding *binding,
                            struct arrow_array *array);

/* Children that are in the file, the leaf that speaks for all of them among them or not. */
static enum status assemble_children(struct assembly *assembly, const struct binding *binding,
                                     struct arrow_array *array, struct leaf_reader **out_levels)
{
    uint32_t count = binding->field->child_count;
    struct leaf_reader *levels, *other;
    array->children = arena_alloc_zero(&assembly->batch->arena, count, sizeof *array->children);
    if (!array->children)
        return out_of_room(assembly);
    for (uint32_t i = 0; i < count; i++)
        if (binding->children[i].node)
            TRY(assemble(assembly, &binding->children[i], &array->children[i]));
    TRY(read_leaf(assembly, binding->leaf, NULL, &levels));
    for (uint32_t i = 0; i < count; i++) {
        const struct binding *child = &binding->children[i];
        if (!child->node || child->leaf == binding->leaf)
            continue;
        TRY(read_leaf(assembly, child->leaf, NULL, &other));
        if (!leaves_agree(binding->node, levels, other))
            return fault(assembly, child->leaf, STATUS_CORRUPT,
                         "its levels contradict those of the column beside it");
    }
    *out_levels = levels;
    return STATUS_OK;
}

/* The children that the file does not have; then all must have `length` slots. */
static enum status complete_children(struct assembly *assembly, const struct binding *binding,
                                     int64_t length, struct arrow_array *array)
{
    for (uint32_t i = 0; i < binding->field->child_count; i++) {
        if (!binding->children[i].node)
            TRY(assemble_missing(assembly, &binding->field->children[i], length,
                                 &array->children[i]));
        if (array->children[i].length != length)
            return fault(assembly, binding->leaf, STATUS_CORRUPT,
                         "its levels contradict those of the column beside it");
    }
    return STATUS_OK;
}

/* Slots and elements of a list by its level leaf. False: the levels contradict themselves. */
static bool count_elements(const struct parquet_node *node, const struct leaf_reader *leaf,
                           int32_t *offsets, size_t *out_slots, size_t *out_nulls,
                           size_t *out_elements)
{
    size_t slots = 0, elements = 0, nulls = 0;
    unsigned element_def = node->def + 1u;
    bool is_open = false; /* the slot at hand has elements */
    for (size_t i = 0; i < leaf->level_count; i++) {
        uint8_t def = leaf->def.data[i], rep = leaf->rep.data[i];
        if (rep > node->slot_rep + 1)
            continue;
        bool is_element = def >= element_def;
        if (rep <= node->slot_rep && def >= node->slot_def) {
            if (offsets)
                offsets[slots] = (int32_t)elements;
            slots++;
            nulls += def < node->def;
            is_open = is_element;
        } else if (rep <= node->slot_rep) {
            is_open = false;
        } else if (!is_open || !is_element) {
            return false;
        }
        elements += is_element;
    }
    if (offsets)
        offsets[slots] = (int32_t)elements;
    *out_slots = slots;
    *out_nulls = nulls;
    *out_elements = elements;
    return true;
}

/* The same where every entry is an element and a row has at least one: they begin where a row does.
 * False: it is not so. */
static bool count_full_lists(const struct parquet_node *node, const struct leaf_reader *leaf,
                             int32_t *offsets, size_t slots)
{
    const uint8_t *rep = leaf->rep.data;
    const uint64_t ones = UINT64_C(0x0101010101010101);
    size_t count = leaf->level_count, i = 0, at = 0;
    if (node->slot_rep || node->slot_def || leaf->walk.leaf->max_rep != 1 ||
        leaf->slot_def != node->def + 1 || leaf->slot_count != count)
        return false;
    for (; count - i >= 8; i += 8)
        for (uint64_t rows = ~get_le64(rep + i) & ones; rows && at < slots; rows &= rows - 1)
            offsets[at++] = (int32_t)(i + (size_t)__builtin_ctzll(rows) / 8);
    for (; i < count; i++)
        if (!rep[i] && at < slots)
            offsets[at++] = (int32_t)i;
    offsets[at] = (int32_t)count;
    return at == slots && (count == 0 || offsets[0] == 0);
}

/* Elements that a null slot of such a type has where that is written, in lists of a fixed size
 * within such lists. */
static uint64_t fixed_elements(const struct arrow_field *field)
{
    enum { FAR_TOO_MANY = INT32_MAX };
    bool is_fixed = field->origin && field->origin->kind == ARROW_ORIGIN_FIXED_LIST;
    uint64_t most = 1;
    for (uint32_t i = 0; i < field->child_count; i++) {
        uint64_t count = fixed_elements(&field->children[i]);
        most = count > most ? count : most;
    }
    if (is_fixed)
        most *= (uint64_t)field->origin->list_size;
    return most < FAR_TOO_MANY ? most : FAR_TOO_MANY;
}

/* What a file says of its lists' size holds for none of its bytes. */
static enum status check_fixed_list(const struct assembly *assembly, const struct binding *binding,
                                    const struct arrow_array *array)
{
    const struct parquet_file *file = assembly->reader->file;
    const struct arrow_origin *origin = binding->field->origin;
    if (!origin || origin->kind != ARROW_ORIGIN_FIXED_LIST)
        return STATUS_OK;
    for (int64_t i = 0; i < array->length; i++)
        if (arrow_is_valid(array, i) &&
            array->offsets[i + 1] - array->offsets[i] != origin->list_size)
            return fault(assembly, binding->leaf, STATUS_CORRUPT,
                         "a list of another size than all are said to have");
    uint64_t bytes = fixed_elements(binding->field) * sizeof(uint64_t);
    if (bytes && (uint64_t)array->null_count > file->limits.batch_bytes_max / bytes)
        return fault(assembly, binding->leaf, STATUS_LIMIT,
                     "null lists of a fixed size that would take more than a batch may");
    return STATUS_OK;
}

static enum status assemble_list(struct assembly *assembly, const struct binding *binding,
                                 struct arrow_array *array)
{
    static const char damage[] = "its levels contradict themselves";
    struct leaf_reader *leaf;
    size_t slots = (size_t)assembly->batch->length, nulls, elements;
    TRY(assemble_children(assembly, binding, array, &leaf));
    /* Lists of the rows are as many as these: the leaf was held against them. */
    if ((binding->node->slot_rep || binding->node->slot_def) &&
        !count_elements(binding->node, leaf, NULL, &slots, &nulls, &elements))
        return fault(assembly, binding->leaf, STATUS_CORRUPT, damage);
    int32_t *offsets = take_room(assembly, (slots + 1) * sizeof *offsets);
    if (!offsets)
        return out_of_room(assembly);
    if (count_full_lists(binding->node, leaf, offsets, slots)) {
        elements = leaf->level_count;
        nulls = 0;
    } else if (!count_elements(binding->node, leaf, offsets, &slots, &nulls, &elements)) {
        return fault(assembly, binding->leaf, STATUS_CORRUPT, damage);
    }
    array->length = (int64_t)slots;
    array->null_count = (int64_t)nulls;
    array->offsets = offsets;
    TRY(assemble_nulls(assembly, binding, leaf, array));
    TRY(check_fixed_list(assembly, binding, array));
    return complete_children(assembly, binding, (int64_t)elements, array);
}

static enum status assemble_struct(struct assembly *assembly, const struct binding *binding,
                                   struct arrow_array *array)
{
    struct leaf_reader *leaf;
    const struct parquet_node *node = binding->node;
    TRY(assemble_children(assembly, binding, array, &leaf));
    uint8_t max_rep = leaf->walk.leaf->max_rep, max_def = leaf->walk.leaf->max_def;
    for (size_t i = 0; i < leaf->level_count; i++) {
        uint8_t def = level_at(&leaf->def, max_def, i);
        if (def < node->slot_def || level_at(&leaf->rep, max_rep, i) > node->slot_rep)
            continue;
        array->length++;
        array->null_count += def < node->def;
    }
    TRY(assemble_nulls(assembly, binding, leaf, array));
    return complete_children(assembly, binding, array->length, array);
}

static enum status assemble(struct assembly *assembly, const struct binding *binding,
                            struct arrow_array *array)
{
    if (binding->field->type == ARROW_STRUCT)
        return assemble_struct(assembly, binding, array);
    if (binding->field->type == ARROW_LIST || binding->field->type == ARROW_MAP)
        return assemble_list(assembly, binding, array);
    return assemble_leaf(assembly, binding, array);
}

/* ---- the batch ---- */

static void drop_leaves(struct assembly *assembly, const struct parquet_node *node)
{
    for (uint32_t i = 0; i < node->leaf_count; i++) {
        uint32_t place = assembly->reader->places[node->first_leaf + i];
        struct leaf_reader *leaf = place == UINT32_MAX ? NULL : &assembly->leaves[place];
        if (!leaf)
            continue;
        assembly->level_bytes -= leaf->def.capacity + leaf->rep.capacity;
        leaf_reader_deinit(leaf);
    }
}

static enum status assemble_columns(struct assembly *assembly)
{
    const struct parquet_reader *reader = assembly->reader;
    struct arrow_batch *batch = assembly->batch;
    batch->columns =
        arena_alloc_zero(&batch->arena, reader->schema->field_count, sizeof *batch->columns);
    if (!batch->columns)
        return out_of_room(assembly);
    for (uint32_t i = 0; i < reader->schema->field_count; i++) {
        const struct binding *binding = &reader->bindings[i];
        if (!binding->node) {
            TRY(assemble_missing(assembly, binding->field, batch->length, &batch->columns[i]));
            continue;
        }
        TRY(assemble(assembly, binding, &batch->columns[i]));
        if (batch->columns[i].length != batch->length)
            return fault(assembly, binding->leaf, STATUS_CORRUPT, "another count of rows");
        drop_leaves(assembly, binding->node);
    }
    return STATUS_OK;
}

enum status group_assemble(struct parquet_reader *reader, const struct parquet_plan *plan,
                           struct arrow_batch *out_batch, struct error *err)
{
    struct arrow_batch batch = {.schema = reader->schema, .length = plan->row_count};
    struct assembly assembly = {.reader = reader, .plan = plan, .batch = &batch, .err = err};
    enum status status;
    if (batch.length > INT32_MAX)
        return error_set(err, STATUS_LIMIT, "parquet: row group %zu: %" PRId64 " rows", plan->group,
                         batch.length);
    assembly.leaves = mem_alloc_zero(reader->leaf_count + 1, sizeof *assembly.leaves);
    if (!assembly.leaves)
        return error_set(err, STATUS_NO_MEMORY, "parquet: no memory to read a row group");
    arena_init(&batch.arena, reader->file->limits.batch_bytes_max);
    status = assemble_columns(&assembly);
    for (size_t i = 0; i < reader->leaf_count; i++)
        leaf_reader_deinit(&assembly.leaves[i]);
    mem_free(assembly.leaves);
    if (status == STATUS_OK)
        *out_batch = batch;
    else
        arrow_batch_deinit(&batch);
    return status;
}
