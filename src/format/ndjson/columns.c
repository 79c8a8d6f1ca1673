/* SPDX-License-Identifier: Apache-2.0
 *
 * The tree of columns, and the fields that it becomes.
 */
#include "format/ndjson/ndjson_internal.h"

enum { SLOTS_MIN = 64, PATH_BYTES = 200 };

enum status columns_init(struct columns *columns, const struct ndjson_limits *limits,
                         struct error *err)
{
    *columns = (struct columns){.limits = limits, .mask = SLOTS_MIN - 1};
    arena_init(&columns->arena, 0);
    columns->root = arena_alloc_zero(&columns->arena, 1, sizeof *columns->root);
    columns->slots = mem_alloc_zero(SLOTS_MIN, sizeof(struct column *));
    if (columns->root && columns->slots)
        return STATUS_OK;
    columns_deinit(columns);
    return error_set(err, STATUS_NO_MEMORY, "no memory for columns");
}

void columns_deinit(struct columns *columns)
{
    mem_free(columns->slots);
    arena_deinit(&columns->arena);
    *columns = (struct columns){0};
}

/* ---- by name ---- */

/* The parent's address keeps the order of the slots from being known to whoever names members. */
static size_t slot_of(const struct columns *columns, const struct column *parent, struct span name)
{
    return (size_t)hash64_seeded(name.data, name.length, (uintptr_t)parent) & columns->mask;
}

static struct span name_of(const struct column *column)
{
    return span_of(column->name, column->name_bytes);
}

struct column *columns_find(const struct columns *columns, const struct column *parent,
                            struct column *expected, struct span name)
{
    if (expected && span_equal(name_of(expected), name))
        return expected;
    size_t at = slot_of(columns, parent, name);
    for (struct column *column; (column = columns->slots[at]); at = (at + 1) & columns->mask)
        if (column->parent == parent && span_equal(name_of(column), name))
            return column;
    return NULL;
}

static void put_slot(struct columns *columns, struct column *column)
{
    size_t at = slot_of(columns, column->parent, name_of(column));
    while (columns->slots[at])
        at = (at + 1) & columns->mask;
    columns->slots[at] = column;
}

static bool grow_slots(struct columns *columns)
{
    struct column **old = columns->slots;
    size_t old_count = columns->mask + 1;
    struct column **slots = mem_alloc_zero(old_count * 2, sizeof(struct column *));
    if (!slots)
        return false;
    columns->slots = slots;
    columns->mask = old_count * 2 - 1;
    for (size_t i = 0; i < old_count; i++)
        if (old[i])
            put_slot(columns, old[i]);
    mem_free(old);
    return true;
}

/* ---- growth ---- */

/* "a.b[].c", of the column and a name behind it; cut to what a message has room for. */
static void put_path(struct buf *path, const struct column *column)
{
    if (!column->parent)
        return;
    put_path(path, column->parent);
    if (column->parent->first == column && (column->parent->kinds & KIND_LIST))
        buf_put_text(path, "[]");
    else
        buf_format(path, "%s%.*s", path->length ? "." : "", PATH_BYTES / 2, column->name);
}

static enum status over_limit(const struct column *parent, struct span name, const char *what,
                              size_t limit, struct error *err)
{
    struct buf path = {0};
    put_path(&path, parent);
    if (parent->kinds & KIND_LIST)
        buf_put_text(&path, "[]");
    else
        buf_format(&path, "%s%.*s", path.length ? "." : "",
                   (int)size_min(name.length, PATH_BYTES / 2), (const char *)name.data);
    size_t skipped = path.length > PATH_BYTES ? path.length - PATH_BYTES : 0;
    error_set(err, STATUS_LIMIT, "column %s%.*s: %s %zu", skipped ? "..." : "",
              (int)(path.length - skipped), path.data ? (const char *)path.data + skipped : "",
              what, limit);
    buf_deinit(&path);
    return STATUS_LIMIT;
}

static enum status check_limits(const struct columns *columns, const struct column *parent,
                                struct span name, struct error *err)
{
    const struct ndjson_limits *limits = columns->limits;
    if (name.length > limits->name_bytes_max)
        return over_limit(parent, name, "its name has more bytes than", limits->name_bytes_max,
                          err);
    if (parent->depth >= limits->depth_max)
        return over_limit(parent, name, "columns are nested deeper than", limits->depth_max, err);
    if (columns->count >= limits->column_count_max)
        return over_limit(parent, name, "more columns than", limits->column_count_max, err);
    return STATUS_OK;
}

enum status columns_add(struct columns *columns, struct column *parent, struct span name,
                        struct column **out_column, struct error *err)
{
    TRY(check_limits(columns, parent, name, err));
    if (name.length && memchr(name.data, 0, name.length))
        return error_set(err, STATUS_INVALID, "a member's name with a NUL in it");
    struct column *column = arena_alloc_zero(&columns->arena, 1, sizeof *column);
    char *copy = arena_copy_text(&columns->arena, (const char *)name.data, name.length);
    if (!column || !copy || ((columns->count + 1) * 2 > columns->mask && !grow_slots(columns)))
        return error_set(err, STATUS_NO_MEMORY, "no memory for columns");
    column->name = copy;
    column->name_bytes = name.length;
    column->parent = parent;
    column->depth = parent->depth + 1;
    column->index = parent->child_count++;
    if (parent->last)
        parent->last->next = column;
    else
        parent->first = column;
    parent->last = column;
    columns->count++;
    put_slot(columns, column);
    *out_column = column;
    return STATUS_OK;
}

/* ---- fields ---- */

static bool is_only(unsigned kinds, unsigned allowed)
{
    return (kinds & ~allowed) == 0;
}

bool column_is_mixed(const struct column *column)
{
    enum {
        NUMBERS = KIND_INT | KIND_NEGATIVE | KIND_UINT | KIND_REAL | KIND_LONG,
    };
    unsigned kinds = column->kinds;
    return !is_only(kinds, NUMBERS | KIND_NAMED) && !is_only(kinds, KIND_STRING | KIND_NAMED) &&
           (kinds & (kinds - 1)) != 0;
}

static enum arrow_type type_of_numbers(unsigned kinds)
{
    bool has_numbers = kinds & ~(unsigned)KIND_NAMED;
    if (is_only(kinds, KIND_INT | KIND_NEGATIVE | KIND_LONG) && (kinds & KIND_INT))
        return ARROW_INT64;
    if (is_only(kinds, KIND_INT | KIND_UINT | KIND_LONG) && (kinds & KIND_UINT))
        return ARROW_FIXED;
    return has_numbers && !(kinds & KIND_LONG) ? ARROW_DOUBLE : ARROW_UTF8;
}

static enum arrow_type type_of(const struct column *column)
{
    if (column_is_mixed(column))
        return ARROW_UTF8;
    switch (column->kinds) {
    case 0:
        return ARROW_NULL;
    case KIND_BOOL:
        return ARROW_BOOL;
    case KIND_LIST:
        return ARROW_LIST;
    case KIND_OBJECT:
        return column->child_count ? ARROW_STRUCT : ARROW_UTF8;
    default:
        return column->kinds & KIND_STRING ? ARROW_UTF8 : type_of_numbers(column->kinds);
    }
}

static enum status make_fields(struct columns *columns, struct column *parent,
                               struct arrow_field **out_fields, struct error *err)
{
    struct arrow_field *fields =
        arena_alloc_zero(&columns->arena, parent->child_count, sizeof *fields);
    if (!fields)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a schema");
    parent->slot_values = 1;
    for (struct column *column = parent->first; column; column = column->next) {
        struct arrow_field *field = &fields[column->index];
        *field = (struct arrow_field){
            .name = column->name, .type = type_of(column), .is_nullable = true};
        if (field->type == ARROW_FIXED)
            arrow_set_uint64(field);
        if (field->type == ARROW_LIST || field->type == ARROW_STRUCT) {
            TRY(make_fields(columns, column, &field->children, err));
            field->child_count = column->child_count;
        }
        if (field->type != ARROW_STRUCT) /* a null list has no elements */
            column->slot_values = 1;
        parent->slot_values += column->slot_values;
    }
    *out_fields = fields;
    return STATUS_OK;
}

enum status columns_make_schema(struct columns *columns, struct arrow_schema *out_schema,
                                struct error *err)
{
    struct arrow_schema schema = {.field_count = columns->root->child_count};
    TRY(make_fields(columns, columns->root, &schema.fields, err));
    *out_schema = schema;
    return STATUS_OK;
}
