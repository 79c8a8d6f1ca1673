/* SPDX-License-Identifier: Apache-2.0
 *
 * Which type of a file fits to which of a reader's schema. Source: Avro 1.12 specification, "Schema
 * Resolution", "Aliases" and "Logical Types". Each pair of types is matched once; pairs are found
 * as values come, since types may lie within themselves.
 */
#include "format/avro/arrow_internal.h"
#include "format/avro/avro_internal.h"

enum { PAIRS_MIN = 64 };

struct pair {
    const struct avro_type *from, *to;
    struct avro_match match;
};

struct avro_resolution {
    struct arena arena;  /* of pairs */
    struct pair **slots; /* open addressing */
    size_t slot_count;   /* a power of two, or 0 */
    size_t pair_count;
};

/* ---- single types ---- */

static bool is_one_of(const char *const *names, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++) {
        const char *dot = strrchr(names[i], '.');
        if (strcmp(dot ? dot + 1 : names[i], name) == 0)
            return true;
    }
    return false;
}

static bool is_promoted(enum avro_kind from, enum avro_kind to)
{
    switch (to) {
    case AVRO_LONG:
        return from == AVRO_INT;
    case AVRO_FLOAT:
        return from == AVRO_INT || from == AVRO_LONG;
    case AVRO_DOUBLE:
        return from == AVRO_INT || from == AVRO_LONG || from == AVRO_FLOAT;
    case AVRO_STRING:
        return from == AVRO_BYTES;
    case AVRO_BYTES:
        return from == AVRO_STRING;
    default:
        return false;
    }
}

struct time_type {
    const char *name;
    enum avro_kind kind;
    char family;
    int64_t per_second; /* of a date: 0 */
};

static const struct time_type *time_type(const struct avro_type *type)
{
    static const struct time_type types[] = {
        {"date", AVRO_INT, 'd', 0},
        {"time-millis", AVRO_INT, 't', 1000},
        {"time-micros", AVRO_LONG, 't', 1000000},
        {"timestamp-millis", AVRO_LONG, 's', 1000},
        {"timestamp-micros", AVRO_LONG, 's', 1000000},
        {"timestamp-nanos", AVRO_LONG, 's', 1000000000},
        {"local-timestamp-millis", AVRO_LONG, 's', 1000},
        {"local-timestamp-micros", AVRO_LONG, 's', 1000000},
        {"local-timestamp-nanos", AVRO_LONG, 's', 1000000000},
    };
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (type->kind == types[i].kind && avro_is_logical(type, types[i].name))
            return &types[i];
    return NULL;
}

static bool is_decimal(const struct avro_type *type)
{
    return (type->kind == AVRO_BYTES || type->kind == AVRO_FIXED) &&
           avro_is_logical(type, "decimal") && type->precision > 0 &&
           type->scale <= type->precision;
}

/* Decimals as Iceberg widens them, to more digits at the same scale; times to a finer unit. Where
 * only one side has such a type, the other one's values are taken as they are. */
static bool logical_fits(const struct avro_type *from, const struct avro_type *to,
                         int64_t *out_factor)
{
    const struct time_type *old = time_type(from), *new = time_type(to);
    *out_factor = 1;
    if (is_decimal(from) && is_decimal(to))
        return from->scale == to->scale && from->precision <= to->precision;
    if (!old || !new)
        return true;
    if (old->family != new->family || old->per_second > new->per_second)
        return false;
    *out_factor = old->per_second ? new->per_second / old->per_second : 1;
    return true;
}

/* Names without their namespaces, as the specification has it. */
static bool fits(const struct avro_type *from, const struct avro_type *to, int64_t *out_factor)
{
    if (!logical_fits(from, to, out_factor))
        return false;
    if (from->kind != to->kind)
        return is_promoted(from->kind, to->kind);
    if (from->kind != AVRO_RECORD && from->kind != AVRO_ENUM && from->kind != AVRO_FIXED)
        return true;
    bool is_named =
        strcmp(from->name, to->name) == 0 || is_one_of(to->aliases, to->alias_count, from->name);
    return is_named && from->fixed_bytes == to->fixed_bytes;
}

/* ---- names in order ---- */

struct named {
    const char *name;
    uint32_t place;
};

static int compare_named(const void *a, const void *b)
{
    const struct named *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    return order ? order : (left->place > right->place) - (left->place < right->place);
}

/* The first place of that name, or AVRO_NO_PLACE. */
static uint32_t find_place(const struct named *sorted, uint32_t count, const char *name)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strcmp(sorted[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && strcmp(sorted[low].name, name) == 0 ? sorted[low].place : AVRO_NO_PLACE;
}

static uint32_t find_field(const struct named *sorted, uint32_t count, const struct avro_field *to)
{
    uint32_t place = find_place(sorted, count, to->name);
    for (uint32_t i = 0, named = place; named == AVRO_NO_PLACE && i < to->alias_count; i++) {
        const char *dot = strrchr(to->aliases[i], '.');
        uint32_t other = find_place(sorted, count, dot ? dot + 1 : to->aliases[i]);
        place = other < place ? other : place;
    }
    return place;
}

/* ---- pairs ---- */

/* The file's fields for each of the reader's. */
static void match_fields(const struct avro_type *from, const struct avro_type *to,
                         const struct named *sorted, uint32_t *places)
{
    for (uint32_t i = 0; i < to->field_count; i++)
        places[i] = find_field(sorted, from->field_count, &to->fields[i]);
}

/* The reader's symbols for each of the file's. */
static void match_symbols(const struct avro_type *from, const struct avro_type *to,
                          const struct named *sorted, uint32_t *places)
{
    uint32_t other = to->default_symbol ? find_place(sorted, to->symbol_count, to->default_symbol)
                                        : AVRO_NO_PLACE;
    for (uint32_t i = 0; i < from->symbol_count; i++) {
        places[i] = find_place(sorted, to->symbol_count, from->symbols[i]);
        places[i] = places[i] == AVRO_NO_PLACE ? other : places[i];
    }
}

static bool match_names(struct avro_resolution *resolution, const struct avro_type *from,
                        const struct avro_type *to, uint32_t **out_places)
{
    bool is_record = to->kind == AVRO_RECORD;
    uint32_t count = is_record ? from->field_count : to->symbol_count;
    uint32_t place_count = is_record ? to->field_count : from->symbol_count;
    uint32_t *places = arena_alloc(&resolution->arena, ((size_t)place_count + 1) * sizeof *places);
    struct named *sorted = mem_alloc(((size_t)count + 1) * sizeof *sorted);
    if (places && sorted) {
        for (uint32_t i = 0; i < count; i++)
            sorted[i] = (struct named){is_record ? from->fields[i].name : to->symbols[i], i};
        qsort(sorted, count, sizeof *sorted, compare_named);
        (is_record ? match_fields : match_symbols)(from, to, sorted, places);
        *out_places = places;
    }
    bool is_done = places && sorted;
    mem_free(sorted);
    return is_done;
}

static struct pair *make_pair(struct avro_resolution *resolution, const struct avro_type *from,
                              const struct avro_type *to)
{
    struct pair *pair = arena_alloc_zero(&resolution->arena, 1, sizeof *pair);
    if (!pair)
        return NULL;
    *pair = (struct pair){.from = from, .to = to, .match = {.factor = 1}};
    struct avro_match *match = &pair->match;
    if (to->kind != AVRO_UNION && fits(from, to, &match->factor))
        match->type = to;
    for (uint32_t i = 0; to->kind == AVRO_UNION && !match->type && i < to->field_count; i++)
        if (fits(from, to->fields[i].type, &match->factor))
            match->type = to->fields[i].type;
    bool has_names =
        match->type && (match->type->kind == AVRO_RECORD || match->type->kind == AVRO_ENUM);
    return !has_names || match_names(resolution, from, match->type, &match->places) ? pair : NULL;
}

static struct pair **find_slot(const struct avro_resolution *resolution,
                               const struct avro_type *from, const struct avro_type *to)
{
    const struct avro_type *key[] = {from, to};
    size_t mask = resolution->slot_count - 1;
    size_t at = (size_t)hash64(key, sizeof key) & mask;
    while (resolution->slots[at] &&
           (resolution->slots[at]->from != from || resolution->slots[at]->to != to))
        at = (at + 1) & mask;
    return &resolution->slots[at];
}

static bool make_room(struct avro_resolution *resolution)
{
    struct avro_resolution grown = *resolution;
    if (resolution->pair_count * 2 < resolution->slot_count)
        return true;
    grown.slot_count = resolution->slot_count ? resolution->slot_count * 2 : PAIRS_MIN;
    grown.slots = mem_alloc_zero(grown.slot_count, sizeof *grown.slots);
    if (!grown.slots)
        return false;
    for (size_t i = 0; i < resolution->slot_count; i++) {
        struct pair *pair = resolution->slots[i];
        if (pair)
            *find_slot(&grown, pair->from, pair->to) = pair;
    }
    mem_free(resolution->slots);
    resolution->slots = grown.slots;
    resolution->slot_count = grown.slot_count;
    return true;
}

const struct avro_match *avro_match_types(struct avro_resolution *resolution,
                                          const struct avro_type *from, const struct avro_type *to)
{
    if (!make_room(resolution))
        return NULL;
    struct pair **slot = find_slot(resolution, from, to);
    if (!*slot) {
        *slot = make_pair(resolution, from, to);
        resolution->pair_count += *slot != NULL;
    }
    return *slot ? &(*slot)->match : NULL;
}

struct avro_resolution *avro_resolution_create(void)
{
    struct avro_resolution *resolution = mem_alloc_zero(1, sizeof *resolution);
    if (resolution)
        arena_init(&resolution->arena, (size_t)64 << 20);
    return resolution;
}

void avro_resolution_destroy(struct avro_resolution *resolution)
{
    if (!resolution)
        return;
    arena_deinit(&resolution->arena);
    mem_free(resolution->slots);
    mem_free(resolution);
}
