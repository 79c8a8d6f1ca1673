/* SPDX-License-Identifier: Apache-2.0
 *
 * Columns by name. Names are sorted, and so are the fields of each group that they lead into, so
 * that many of both take no more than that.
 */
#include <stdlib.h>

#include "format/parquet/reader_internal.h"

/* A wanted name as steps from the root on. */
struct wanted {
    const char *name; /* as it was given */
    struct span *steps;
    size_t step_count;
    bool was_found;
};

struct selection {
    const struct parquet_file *file;
    struct wanted *wanted;
    size_t count;
    bool *leaves; /* found so far, one each */
    struct arena arena;
};

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "parquet: no memory for a schema");
}

/* ---- names ---- */

/* The next step of a name, in quotes or up to a dot; NULL: a quote without its other one, or more
 * behind it than a dot. `out` has room for all of the name. */
static const char *take_step(const char *at, char *out, struct span *out_step)
{
    size_t length = 0;
    if (*at != '"') {
        while (*at && *at != '.')
            out[length++] = *at++;
    } else {
        for (at++; *at && (*at != '"' || at[1] == '"'); at++) {
            out[length++] = *at;
            at += *at == '"';
        }
        if (*at++ != '"')
            return NULL;
    }
    *out_step = span_of(out, length);
    return *at == '.' || *at == '\0' ? at : NULL;
}

/* A name that cannot be taken apart has no steps: it may still be a column's. */
static bool split_name(struct selection *selection, const char *name, struct wanted *wanted)
{
    size_t length = strlen(name);
    char *text = arena_alloc(&selection->arena, length + 1);
    struct span *steps = arena_alloc_zero(&selection->arena, length / 2 + 2, sizeof *steps);
    size_t count = 0;
    const char *at = name;
    if (!text || !steps)
        return false;
    for (bool is_over = false; !is_over; at++) {
        if (count == length / 2 + 1) { /* dots behind one another */
            count = 0;
            break;
        }
        at = take_step(at, text, &steps[count]);
        if (!at) {
            count = 0;
            break;
        }
        text += steps[count++].length;
        is_over = *at == '\0';
    }
    *wanted = (struct wanted){.name = name, .steps = steps, .step_count = count};
    return true;
}

static int compare_wanted(const void *a, const void *b)
{
    const struct wanted *left = a, *right = b;
    size_t common = size_min(left->step_count, right->step_count);
    int order = 0;
    for (size_t i = 0; i < common && order == 0; i++)
        order = span_order(left->steps[i], right->steps[i]);
    return order ? order
                 : (left->step_count > right->step_count) - (left->step_count < right->step_count);
}

/* ---- the fields of groups ---- */

static void mark(struct selection *selection, uint32_t first, uint32_t count)
{
    memset(selection->leaves + first, true, count);
}

static bool select_among(struct selection *selection, const struct parquet_node *nodes,
                         uint32_t count, struct wanted *wanted, size_t wanted_count, size_t depth);

/* Names that agree in the first `depth` steps, and in the one that leads to `node`. */
static bool select_node(struct selection *selection, const struct parquet_node *node,
                        struct wanted *wanted, size_t count, size_t depth)
{
    size_t whole = 0; /* the shorter ones come first */
    for (; whole < count && wanted[whole].step_count == depth + 1; whole++)
        wanted[whole].was_found = true;
    if (whole)
        mark(selection, node->first_leaf, node->leaf_count);
    return whole == count || !node->children ||
           select_among(selection, node->children, node->field->child_count, wanted + whole,
                        count - whole, depth + 1);
}

static bool select_among(struct selection *selection, const struct parquet_node *nodes,
                         uint32_t count, struct wanted *wanted, size_t wanted_count, size_t depth)
{
    struct sort_key *sorted = nodes_sort(nodes, count, false, &selection->arena);
    if (!sorted)
        return false;
    for (size_t from = 0, to; from < wanted_count; from = to) {
        struct span step = wanted[from].steps[depth];
        for (to = from + 1; to < wanted_count; to++)
            if (span_order(wanted[to].steps[depth], step) != 0)
                break;
        for (uint32_t i = find_key(sorted, count, &(struct sort_key){.name = step});
             i < count && span_order(sorted[i].name, step) == 0; i++)
            if (!select_node(selection, &nodes[sorted[i].place], wanted + from, to - from, depth))
                return false;
    }
    return true;
}

/* ---- what is left ---- */

static struct sort_key *sort_paths(struct selection *selection)
{
    const struct parquet_file *file = selection->file;
    struct sort_key *keys =
        arena_alloc_zero(&selection->arena, file->leaf_count + (size_t)1, sizeof *keys);
    for (uint32_t i = 0; keys && i < file->leaf_count; i++)
        keys[i] = (struct sort_key){.name = span_of_text(file->leaves[i].path), .place = i};
    if (keys)
        sort_keys(keys, file->leaf_count);
    return keys;
}

/* Names that are a column's as they stand, dots and all, or a leaf's path. */
static bool select_rest(struct selection *selection)
{
    const struct parquet_file *file = selection->file;
    uint32_t field_count = file->schema.field_count, at;
    struct sort_key *fields = NULL, *paths = NULL;
    for (size_t i = 0; i < selection->count; i++) {
        struct wanted *wanted = &selection->wanted[i];
        struct sort_key key = {.name = span_of_text(wanted->name)};
        if (wanted->was_found)
            continue;
        if (!fields) {
            fields = nodes_sort(file->nodes, field_count, false, &selection->arena);
            paths = sort_paths(selection);
            if (!fields || !paths)
                return false;
        }
        at = find_key(fields, field_count, &key);
        if (at < field_count) {
            const struct parquet_node *node = &file->nodes[fields[at].place];
            mark(selection, node->first_leaf, node->leaf_count);
            wanted->was_found = true;
            continue;
        }
        at = find_key(paths, file->leaf_count, &key);
        wanted->was_found = at < file->leaf_count;
        if (wanted->was_found)
            mark(selection, paths[at].place, 1);
    }
    return true;
}

enum status parquet_leaves_select(const struct parquet_file *file, const char *const *names,
                                  size_t count, bool *inout_leaves, struct error *err)
{
    struct selection selection = {.file = file, .count = count};
    enum status status = STATUS_OK;
    arena_init(&selection.arena, 0); /* the names and the schema are bounded */
    selection.wanted = arena_alloc_zero(&selection.arena, count + 1, sizeof *selection.wanted);
    selection.leaves =
        arena_alloc_zero(&selection.arena, file->leaf_count + (size_t)1, sizeof *selection.leaves);
    bool has_memory = selection.wanted && selection.leaves;
    for (size_t i = 0; has_memory && i < count; i++)
        has_memory = split_name(&selection, names[i], &selection.wanted[i]);
    size_t first = 0;
    if (has_memory && count)
        qsort(selection.wanted, count, sizeof *selection.wanted, compare_wanted);
    while (has_memory && first < count && selection.wanted[first].step_count == 0)
        first++;
    has_memory = has_memory &&
                 select_among(&selection, file->nodes, file->schema.field_count,
                              selection.wanted + first, count - first, 0) &&
                 select_rest(&selection);
    if (!has_memory)
        status = out_of_memory(err);
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        if (!selection.wanted[i].was_found)
            status = error_set(err, STATUS_NOT_FOUND, "parquet: no column %.100s",
                               selection.wanted[i].name);
    for (uint32_t i = 0; status == STATUS_OK && i < file->leaf_count; i++)
        inout_leaves[i] |= selection.leaves[i];
    arena_deinit(&selection.arena);
    return status;
}

/* ---- the schema of some leaves ---- */

static bool has_marked(const struct parquet_node *node, const bool *leaves)
{
    for (uint32_t i = 0; i < node->leaf_count; i++)
        if (leaves[node->first_leaf + i])
            return true;
    return false;
}

/* A map keeps its key whole, without which its values say nothing, and its value whole if only the
 * key was asked for. */
static void complete_maps(const struct parquet_node *nodes, uint32_t count, bool *leaves)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct parquet_node *node = &nodes[i];
        bool is_map = node->field->type == ARROW_MAP;
        if (!node->children || !has_marked(node, leaves))
            continue;
        for (uint32_t j = 0; is_map && j < node->field->child_count; j++) {
            const struct parquet_node *child = &node->children[j];
            if (j == 0 || !has_marked(child, leaves))
                memset(leaves + child->first_leaf, true, child->leaf_count);
        }
        complete_maps(node->children, node->field->child_count, leaves);
    }
}

static bool copy_fields(const struct parquet_node *nodes, uint32_t count, const bool *leaves,
                        struct arena *arena, struct arrow_field **out_fields, uint32_t *out_count)
{
    uint32_t kept = 0;
    struct arrow_field *to = arena_alloc_zero(arena, count, sizeof *to);
    if (!to)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct parquet_node *node = &nodes[i];
        if (!has_marked(node, leaves))
            continue;
        to[kept] = *node->field;
        if (node->children && !copy_fields(node->children, node->field->child_count, leaves, arena,
                                           &to[kept].children, &to[kept].child_count))
            return false;
        kept++;
    }
    *out_fields = to;
    *out_count = kept;
    return true;
}

enum status parquet_schema_of_leaves(const struct parquet_file *file, bool *inout_leaves,
                                     struct arena *arena, struct arrow_schema *out_schema,
                                     struct error *err)
{
    struct arrow_schema schema = {0};
    complete_maps(file->nodes, file->schema.field_count, inout_leaves);
    if (!copy_fields(file->nodes, file->schema.field_count, inout_leaves, arena, &schema.fields,
                     &schema.field_count))
        return out_of_memory(err);
    *out_schema = schema;
    return STATUS_OK;
}

enum status parquet_schema_select(const struct parquet_file *file, const char *const *names,
                                  size_t count, struct arena *arena,
                                  struct arrow_schema *out_schema, struct error *err)
{
    bool *leaves = mem_alloc_zero((size_t)file->leaf_count + 1, sizeof *leaves);
    if (!leaves)
        return out_of_memory(err);
    enum status status = parquet_leaves_select(file, names, count, leaves, err);
    if (status == STATUS_OK)
        status = parquet_schema_of_leaves(file, leaves, arena, out_schema, err);
    mem_free(leaves);
    return status;
}
