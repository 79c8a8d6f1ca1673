/* SPDX-License-Identifier: Apache-2.0
 *
 * Things of a list found by name or by id, in the time that it takes to sort them.
 */
#include <stdlib.h>

#include "format/parquet/reader_internal.h"

int span_order(struct span a, struct span b)
{
    size_t common = size_min(a.length, b.length);
    int order = common ? memcmp(a.data, b.data, common) : 0;
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

static int key_order(const struct sort_key *a, const struct sort_key *b)
{
    int order = (a->id > b->id) - (a->id < b->id);
    return order ? order : span_order(a->name, b->name);
}

static int compare_keys(const void *a, const void *b)
{
    const struct sort_key *left = a, *right = b;
    int order = key_order(left, right);
    return order ? order : (left->place > right->place) - (left->place < right->place);
}

void sort_keys(struct sort_key *keys, uint32_t count)
{
    if (count)
        qsort(keys, count, sizeof *keys, compare_keys);
}

struct sort_key *nodes_sort(const struct parquet_node *nodes, uint32_t count, bool is_by_id,
                            struct arena *arena)
{
    struct sort_key *keys = arena_alloc_zero(arena, (size_t)count + 1, sizeof *keys);
    for (uint32_t i = 0; keys && i < count; i++) {
        if (is_by_id)
            keys[i].id = nodes[i].field->field_id;
        else
            keys[i].name = span_of_text(nodes[i].field->name);
        keys[i].place = i;
    }
    if (keys)
        sort_keys(keys, count);
    return keys;
}

uint32_t find_key(const struct sort_key *keys, uint32_t count, const struct sort_key *wanted)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (key_order(&keys[middle], wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && key_order(&keys[low], wanted) == 0 ? low : count;
}
