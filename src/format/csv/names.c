/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of columns: none empty, none twice.
 */
#include "format/csv/csv_internal.h"

/* Open addressing. `count` is the suffix that was last given to the name: to begin behind it keeps
 * a thousand columns of one name from being a million looks. */
struct name_slot {
    const char *name;
    uint32_t count;
};

struct names {
    struct name_slot *slots;
    size_t mask;
};

static struct name_slot *find_slot(const struct names *names, const char *name)
{
    size_t at = (size_t)hash64_seeded(name, strlen(name), (uintptr_t)names->slots) & names->mask;
    while (names->slots[at].name && strcmp(names->slots[at].name, name) != 0)
        at = (at + 1) & names->mask;
    return &names->slots[at];
}

/* The name itself or with the first suffix that makes it its own. NULL: no memory. */
static const char *add_name(struct names *names, struct arena *arena, const char *wanted)
{
    struct name_slot *first = find_slot(names, wanted), *slot = first;
    const char *name = wanted;
    while (slot->name) {
        name = arena_format(arena, "%s_%u", wanted, ++first->count);
        if (!name)
            return NULL;
        slot = find_slot(names, name);
    }
    *slot = (struct name_slot){.name = name, .count = 1};
    return name;
}

static enum status make_name(const struct csv_value *value, uint32_t i, size_t name_bytes_max,
                             struct arena *arena, const char **out_name, struct error *err)
{
    if (value && value->text.length > name_bytes_max)
        return error_set(err, STATUS_LIMIT, "csv: the name of column %u has more than %zu bytes",
                         i + 1, name_bytes_max);
    if (value && value->text.length && memchr(value->text.data, 0, value->text.length))
        return error_set(err, STATUS_INVALID, "csv: the name of column %u has a NUL in it", i + 1);
    if (value && value->text.length)
        *out_name = arena_copy_text(arena, (const char *)value->text.data, value->text.length);
    else
        *out_name = arena_format(arena, "column_%u", i + 1);
    return STATUS_OK;
}

enum status csv_make_names(const struct csv_value *values, uint32_t count, size_t name_bytes_max,
                           struct arena *arena, const char **out_names, struct error *err)
{
    enum status status = STATUS_OK;
    struct names names = {.mask = 1};
    while (names.mask < (size_t)count * 2)
        names.mask = names.mask * 2 + 1;
    names.slots = mem_alloc_zero(names.mask + 1, sizeof *names.slots);
    for (uint32_t i = 0; names.slots && i < count; i++) {
        const char *name = NULL;
        TRY_OR_DONE(status,
                    make_name(values ? &values[i] : NULL, i, name_bytes_max, arena, &name, err));
        out_names[i] = name ? add_name(&names, arena, name) : NULL;
        if (!out_names[i])
            break;
    }
    if (!names.slots || (count && !out_names[count - 1]))
        status = error_set(err, STATUS_NO_MEMORY, "csv: no memory for names");
done:
    mem_free(names.slots);
    return status;
}
