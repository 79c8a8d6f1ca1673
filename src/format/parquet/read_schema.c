/* SPDX-License-Identifier: Apache-2.0
 *
 * Schema elements become Arrow fields, with the meaning of levels beside each. Source:
 * LogicalTypes.md, with its rules for the lists and maps of old writers.
 */
#include <inttypes.h>

#include "format/parquet/reader_internal.h"

enum { DEPTH_MAX = 64, DIGITS_MAX = 76 };

struct path {
    const struct path *up;
    const char *name;
};

struct levels {
    unsigned def, rep, slot_def;
};

struct builder {
    struct parquet_file *file;
    const struct schema_element *elements;
    size_t count, at;
    uint32_t leaf_count;
    struct error *err;
};

static enum status refuse(const struct builder *builder, enum status status, const char *what)
{
    size_t element = builder->at ? size_min(builder->at, builder->count) : 0;
    uint64_t at = element ? builder->elements[element - 1].at : builder->file->footer_offset;
    error_set(builder->err, status, "parquet: schema element %zu, byte %" PRIu64 ": %s",
              builder->at, at, what);
    return error_at(builder->err, at);
}

static enum status corrupt(const struct builder *builder, const char *what)
{
    return refuse(builder, STATUS_CORRUPT, what);
}

static enum status out_of_room(const struct builder *builder)
{
    return error_set(builder->err, STATUS_LIMIT, "parquet: schema: no room within %zu bytes",
                     builder->file->arena.bytes_max);
}

static enum status copy_name(struct builder *builder, struct span name, const char **out_name)
{
    if (name.length > ARROW_NAME_BYTES_MAX)
        return error_set(builder->err, STATUS_LIMIT,
                         "parquet: schema element %zu: a name of more than %d bytes", builder->at,
                         ARROW_NAME_BYTES_MAX);
    if (!utf8_is_valid(name.data, name.length) ||
        (name.length && memchr(name.data, 0, name.length)))
        return corrupt(builder, "a name that is none");
    *out_name = arena_copy_text(&builder->file->arena, (const char *)name.data, name.length);
    return *out_name ? STATUS_OK : out_of_room(builder);
}

static bool is_named(const struct schema_element *element, const char *name)
{
    return span_equal(element->name, span_of_text(name));
}

/* ---- leaves ---- */

static const char *path_text(struct builder *builder, const struct path *path)
{
    size_t length = 0;
    for (const struct path *at = path; at; at = at->up)
        length += strlen(at->name) + 1;
    char *text = arena_alloc(&builder->file->arena, length ? length : 1);
    if (!text)
        return NULL;
    char *end = text + length;
    for (const struct path *at = path; at; at = at->up) {
        size_t bytes = strlen(at->name);
        *--end = at == path ? '\0' : '.';
        end -= bytes;
        memcpy(end, at->name, bytes);
    }
    return text;
}

static void set_time(struct parquet_leaf *leaf, enum parquet_kind kind, enum parquet_unit unit,
                     bool is_utc)
{
    leaf->kind = kind;
    leaf->unit = unit;
    leaf->is_utc = is_utc;
}

static void set_integer(struct parquet_leaf *leaf, int32_t bits, bool is_unsigned)
{
    leaf->kind = PARQUET_KIND_INTEGER;
    leaf->bits = (uint8_t)bits;
    leaf->is_unsigned = is_unsigned;
}

static void set_extension(struct parquet_leaf *leaf, enum parquet_kind kind, const char *name)
{
    leaf->kind = kind;
    leaf->extension = name;
}

static void kind_of_converted(const struct schema_element *element, struct parquet_leaf *leaf)
{
    int converted = element->converted;
    if (converted == CONVERTED_UTF8)
        leaf->kind = PARQUET_KIND_STRING;
    else if (converted == CONVERTED_ENUM)
        set_extension(leaf, PARQUET_KIND_STRING, PARQUET_EXTENSION_ENUM);
    else if (converted == CONVERTED_JSON)
        set_extension(leaf, PARQUET_KIND_STRING, PARQUET_EXTENSION_JSON);
    else if (converted == CONVERTED_BSON)
        set_extension(leaf, PARQUET_KIND_OTHER, PARQUET_EXTENSION_BSON);
    else if (converted == CONVERTED_INTERVAL)
        leaf->kind = PARQUET_KIND_INTERVAL;
    else if (converted == CONVERTED_DATE)
        leaf->kind = PARQUET_KIND_DATE;
    else if (converted == CONVERTED_TIME_MILLIS || converted == CONVERTED_TIME_MICROS)
        set_time(leaf, PARQUET_KIND_TIME,
                 converted == CONVERTED_TIME_MILLIS ? PARQUET_MILLIS : PARQUET_MICROS, true);
    else if (converted == CONVERTED_TIMESTAMP_MILLIS || converted == CONVERTED_TIMESTAMP_MICROS)
        set_time(leaf, PARQUET_KIND_TIMESTAMP,
                 converted == CONVERTED_TIMESTAMP_MILLIS ? PARQUET_MILLIS : PARQUET_MICROS, true);
    else if (converted >= CONVERTED_UINT_8 && converted <= CONVERTED_UINT_64)
        set_integer(leaf, 8 << (converted - CONVERTED_UINT_8), true);
    else if (converted >= CONVERTED_INT_8 && converted <= CONVERTED_INT_64)
        set_integer(leaf, 8 << (converted - CONVERTED_INT_8), false);
    else if (converted == CONVERTED_DECIMAL)
        leaf->kind = PARQUET_KIND_DECIMAL;
    else if (converted >= 0)
        leaf->kind = PARQUET_KIND_OTHER;
}

static void kind_of_logical(const struct schema_element *element, struct parquet_leaf *leaf)
{
    enum parquet_unit unit = element->unit == 3   ? PARQUET_NANOS
                             : element->unit == 2 ? PARQUET_MICROS
                                                  : PARQUET_MILLIS;
    switch (element->logical) {
    case LOGICAL_STRING:
        leaf->kind = PARQUET_KIND_STRING;
        break;
    case LOGICAL_ENUM:
        set_extension(leaf, PARQUET_KIND_STRING, PARQUET_EXTENSION_ENUM);
        break;
    case LOGICAL_JSON:
        set_extension(leaf, PARQUET_KIND_STRING, PARQUET_EXTENSION_JSON);
        break;
    case LOGICAL_BSON:
        set_extension(leaf, PARQUET_KIND_OTHER, PARQUET_EXTENSION_BSON);
        break;
    case LOGICAL_DECIMAL:
        leaf->kind = PARQUET_KIND_DECIMAL;
        leaf->scale = element->logical_scale;
        leaf->precision = element->logical_precision;
        break;
    case LOGICAL_DATE:
        leaf->kind = PARQUET_KIND_DATE;
        break;
    case LOGICAL_TIME:
        set_time(leaf, PARQUET_KIND_TIME, unit, element->is_utc);
        break;
    case LOGICAL_TIMESTAMP:
        set_time(leaf, PARQUET_KIND_TIMESTAMP, unit, element->is_utc);
        break;
    case LOGICAL_INTEGER:
        set_integer(leaf, element->bits, !element->is_signed);
        break;
    case LOGICAL_UUID:
        leaf->kind = PARQUET_KIND_UUID;
        break;
    case LOGICAL_FLOAT16:
        leaf->kind = PARQUET_KIND_FLOAT16;
        break;
    default:
        leaf->kind = PARQUET_KIND_OTHER;
        leaf->annotation = element->logical == LOGICAL_UNKNOWN     ? "null"
                           : element->logical == LOGICAL_GEOMETRY  ? "geometry"
                           : element->logical == LOGICAL_GEOGRAPHY ? "geography"
                                                                   : NULL;
    }
}

/* An annotation on a type that cannot bear it is no annotation. */
static void drop_misplaced_kind(struct parquet_leaf *leaf)
{
    bool is_i32 = leaf->physical == PARQUET_INT32, is_i64 = leaf->physical == PARQUET_INT64;
    bool fits = true;
    if (leaf->kind == PARQUET_KIND_STRING)
        fits = leaf->physical == PARQUET_BYTE_ARRAY;
    else if (leaf->kind == PARQUET_KIND_DATE)
        fits = is_i32;
    else if (leaf->kind == PARQUET_KIND_TIMESTAMP)
        fits = is_i64;
    else if (leaf->kind == PARQUET_KIND_TIME)
        fits = leaf->unit == PARQUET_MILLIS ? is_i32 : is_i64;
    else if (leaf->kind == PARQUET_KIND_INTEGER)
        fits = leaf->bits == 64
                   ? is_i64
                   : is_i32 && (leaf->bits == 8 || leaf->bits == 16 || leaf->bits == 32);
    else if (leaf->kind == PARQUET_KIND_DECIMAL)
        fits = leaf->precision >= 1 && leaf->precision <= DIGITS_MAX && leaf->scale >= 0 &&
               (is_i32 || is_i64 || leaf->physical == PARQUET_FIXED ||
                leaf->physical == PARQUET_BYTE_ARRAY);
    else if (leaf->kind == PARQUET_KIND_INTERVAL)
        fits = leaf->physical == PARQUET_FIXED && leaf->width == PARQUET_INTERVAL_BYTES;
    if (leaf->extension)
        fits = leaf->physical == PARQUET_BYTE_ARRAY;
    if (!fits) {
        leaf->kind = PARQUET_KIND_OTHER;
        leaf->extension = NULL;
    }
}

static enum arrow_type arrow_type_of(const struct parquet_leaf *leaf)
{
    switch (leaf->physical) {
    case PARQUET_BOOLEAN:
        return ARROW_BOOL;
    case PARQUET_INT32:
        if (leaf->kind == PARQUET_KIND_INTEGER && leaf->is_unsigned && leaf->bits == 32)
            return ARROW_INT64;
        return leaf->kind == PARQUET_KIND_DATE ? ARROW_DATE32 : ARROW_INT32;
    case PARQUET_INT64:
        return leaf->kind == PARQUET_KIND_TIMESTAMP && leaf->unit != PARQUET_NANOS
                   ? ARROW_TIMESTAMP_US
                   : ARROW_INT64;
    case PARQUET_INT96:
        return ARROW_TIMESTAMP_US;
    case PARQUET_FLOAT:
        return ARROW_FLOAT;
    case PARQUET_DOUBLE:
        return ARROW_DOUBLE;
    case PARQUET_BYTE_ARRAY:
        return leaf->kind == PARQUET_KIND_STRING ? ARROW_UTF8 : ARROW_BINARY;
    case PARQUET_FIXED:
        return ARROW_FIXED;
    }
    return ARROW_NULL;
}

static enum status build_leaf(struct builder *builder, const struct schema_element *element,
                              struct levels levels, const struct path *path,
                              struct arrow_field *field, struct parquet_node *node)
{
    enum { WIDTH_MAX = 1 << 20 };
    struct parquet_leaf *leaf = &builder->file->leaves[builder->leaf_count++];
    if (element->physical < PARQUET_BOOLEAN || element->physical > PARQUET_FIXED)
        return corrupt(builder, "a type that is none");
    leaf->physical = (enum parquet_physical)element->physical;
    leaf->field = field;
    leaf->max_def = (uint8_t)levels.def;
    leaf->max_rep = (uint8_t)levels.rep;
    leaf->scale = element->scale;
    leaf->precision = element->precision;
    leaf->path = path_text(builder, path);
    if (!leaf->path)
        return out_of_room(builder);
    if (leaf->physical == PARQUET_FIXED) {
        if (element->width < 1 || element->width > WIDTH_MAX)
            return corrupt(builder, "a fixed width that is none");
        leaf->width = (uint32_t)element->width;
        field->byte_width = element->width;
    }
    leaf->is_zone_said = element->logical != 0;
    if (element->logical)
        kind_of_logical(element, leaf);
    else
        kind_of_converted(element, leaf);
    drop_misplaced_kind(leaf);
    field->type = arrow_type_of(leaf);
    field->is_instant =
        field->type == ARROW_TIMESTAMP_US && leaf->is_utc && leaf->physical == PARQUET_INT64;
    node->leaf_count = 1;
    return STATUS_OK;
}

/* ---- groups ---- */

static enum status build_field(struct builder *builder, struct levels above, unsigned depth,
                               const struct path *path, const char *name, struct arrow_field *field,
                               struct parquet_node *node);

static enum status build_content(struct builder *builder, const struct schema_element *element,
                                 struct levels levels, unsigned depth, const struct path *path,
                                 struct arrow_field *field, struct parquet_node *node);

static enum status make_children(struct builder *builder, uint32_t count, struct arrow_field *field,
                                 struct parquet_node *node)
{
    struct arena *arena = &builder->file->arena;
    field->children = arena_alloc_zero(arena, count, sizeof *field->children);
    node->children = arena_alloc_zero(arena, count, sizeof *node->children);
    field->child_count = count;
    return field->children && node->children ? STATUS_OK : out_of_room(builder);
}

static struct levels levels_of_elements(struct levels levels)
{
    return (struct levels){
        .def = levels.def + 1, .rep = levels.rep + 1, .slot_def = levels.def + 1};
}

/* Whether the repeated group of a list is itself the element, and not just around it. */
static bool is_element(const struct builder *builder, const struct schema_element *list,
                       const struct schema_element *repeated)
{
    static const char suffix[] = "_tuple";
    size_t length = list->name.length;
    if (repeated->child_count != 1 || is_named(repeated, "array"))
        return true;
    if (repeated->name.length == length + sizeof suffix - 1 &&
        (length == 0 || memcmp(repeated->name.data, list->name.data, length) == 0) &&
        memcmp(repeated->name.data + length, suffix, sizeof suffix - 1) == 0)
        return true;
    return builder->at < builder->count && builder->elements[builder->at].repetition == REPEATED;
}

/* Two levels or three; the builder stands at the repeated child. */
static enum status build_list(struct builder *builder, const struct schema_element *list,
                              struct levels levels, unsigned depth, const struct path *path,
                              struct arrow_field *field, struct parquet_node *node)
{
    const struct schema_element *repeated = &builder->elements[builder->at++];
    struct path step = {.up = path};
    TRY(copy_name(builder, repeated->name, &step.name));
    field->type = ARROW_LIST;
    TRY(make_children(builder, 1, field, node));
    levels = levels_of_elements(levels);
    if (repeated->child_count && !is_element(builder, list, repeated))
        return build_field(builder, levels, depth + 2, &step, "element", &field->children[0],
                           &node->children[0]);
    field->children[0].name = "element";
    field->children[0].field_id = repeated->field_id > 0 ? repeated->field_id : 0;
    return build_content(builder, repeated, levels, depth + 1, &step, &field->children[0],
                         &node->children[0]);
}

static enum status build_map(struct builder *builder, struct levels levels, unsigned depth,
                             const struct path *path, struct arrow_field *field,
                             struct parquet_node *node)
{
    const struct schema_element *repeated = &builder->elements[builder->at++];
    struct path step = {.up = path};
    TRY(copy_name(builder, repeated->name, &step.name));
    field->type = ARROW_MAP;
    TRY(make_children(builder, 2, field, node));
    levels = levels_of_elements(levels);
    TRY(build_field(builder, levels, depth + 2, &step, "key", &field->children[0],
                    &node->children[0]));
    field->children[0].is_nullable = false; /* whatever was declared, null keys are refused */
    return build_field(builder, levels, depth + 2, &step, "value", &field->children[1],
                       &node->children[1]);
}

static enum status build_struct(struct builder *builder, const struct schema_element *element,
                                struct levels levels, unsigned depth, const struct path *path,
                                struct arrow_field *field, struct parquet_node *node)
{
    if ((size_t)element->child_count > builder->count - builder->at)
        return corrupt(builder, "more children than there are elements");
    field->type = ARROW_STRUCT;
    TRY(make_children(builder, (uint32_t)element->child_count, field, node));
    for (uint32_t i = 0; i < field->child_count; i++)
        TRY(build_field(builder, levels, depth + 1, path, NULL, &field->children[i],
                        &node->children[i]));
    return STATUS_OK;
}

/* What a field is, apart from being optional or repeated. The builder stands behind `element`. */
static enum status build_content(struct builder *builder, const struct schema_element *element,
                                 struct levels levels, unsigned depth, const struct path *path,
                                 struct arrow_field *field, struct parquet_node *node)
{
    const struct schema_element *child =
        builder->at < builder->count ? &builder->elements[builder->at] : NULL;
    bool is_map = element->logical == LOGICAL_MAP || element->converted == CONVERTED_MAP ||
                  element->converted == CONVERTED_MAP_KEY_VALUE;
    bool is_list = element->logical == LOGICAL_LIST || element->converted == CONVERTED_LIST;
    bool is_repeating = element->child_count == 1 && child && child->repetition == REPEATED;
    enum status status;
    if (depth > size_min(builder->file->limits.depth_max, DEPTH_MAX))
        return error_set(builder->err, STATUS_LIMIT,
                         "parquet: schema element %zu: nested deeper than %zu", builder->at,
                         size_min(builder->file->limits.depth_max, DEPTH_MAX));
    node->field = field;
    node->def = (uint8_t)levels.def;
    node->slot_def = (uint8_t)levels.slot_def;
    node->slot_rep = (uint8_t)levels.rep;
    node->first_leaf = builder->leaf_count;
    if (element->child_count < 0 || (element->child_count == 0 && element->physical < 0))
        return refuse(builder, STATUS_UNSUPPORTED, "a group without columns");
    if (element->child_count == 0)
        status = build_leaf(builder, element, levels, path, field, node);
    else if (is_map && is_repeating && child->child_count == 2)
        status = build_map(builder, levels, depth, path, field, node);
    else if (is_list && is_repeating)
        status = build_list(builder, element, levels, depth, path, field, node);
    else
        status = build_struct(builder, element, levels, depth, path, field, node);
    node->leaf_count = builder->leaf_count - node->first_leaf;
    return status;
}

/* A repeated field without an annotation around it is a list that cannot be null. */
static enum status build_repeated(struct builder *builder, const struct schema_element *element,
                                  struct levels levels, unsigned depth, const struct path *path,
                                  struct arrow_field *field, struct parquet_node *node)
{
    field->type = ARROW_LIST;
    node->field = field;
    node->def = (uint8_t)levels.def;
    node->slot_def = (uint8_t)levels.slot_def;
    node->slot_rep = (uint8_t)levels.rep;
    node->first_leaf = builder->leaf_count;
    TRY(make_children(builder, 1, field, node));
    field->children[0].name = "element";
    TRY(build_content(builder, element, levels_of_elements(levels), depth + 1, path,
                      &field->children[0], &node->children[0]));
    node->leaf_count = builder->leaf_count - node->first_leaf;
    return STATUS_OK;
}

/* The next element and what is below it. `name`: instead of its own. */
static enum status build_field(struct builder *builder, struct levels above, unsigned depth,
                               const struct path *path, const char *name, struct arrow_field *field,
                               struct parquet_node *node)
{
    struct path step = {.up = path};
    struct levels levels = above;
    if (builder->at >= builder->count)
        return corrupt(builder, "the schema ends early");
    const struct schema_element *element = &builder->elements[builder->at++];
    TRY(copy_name(builder, element->name, &step.name));
    field->name = name ? name : step.name;
    field->field_id = element->field_id > 0 ? element->field_id : 0;
    if (element->repetition < REQUIRED || element->repetition > REPEATED)
        return corrupt(builder, "a repetition that is none");
    if (element->repetition == REPEATED)
        return build_repeated(builder, element, levels, depth, &step, field, node);
    field->is_nullable = element->repetition == OPTIONAL;
    node->is_optional = field->is_nullable;
    levels.def += field->is_nullable;
    return build_content(builder, element, levels, depth, &step, field, node);
}

enum status schema_build(struct parquet_file *file, const struct schema_element *elements,
                         size_t count, struct error *err)
{
    struct builder builder = {
        .file = file, .elements = elements, .count = count, .at = 1, .err = err};
    if (count == 0 || elements[0].child_count < 0 || (size_t)elements[0].child_count > count - 1)
        return corrupt(&builder, "no root");
    uint32_t fields = (uint32_t)elements[0].child_count;
    size_t leaves = 0;
    for (size_t i = 1; i < count; i++)
        leaves += elements[i].child_count == 0;
    file->schema.fields = arena_alloc_zero(&file->arena, fields, sizeof *file->schema.fields);
    file->nodes = arena_alloc_zero(&file->arena, fields, sizeof *file->nodes);
    file->leaves = arena_alloc_zero(&file->arena, leaves, sizeof *file->leaves);
    if (!file->schema.fields || !file->nodes || !file->leaves)
        return out_of_room(&builder);
    file->schema.field_count = fields;
    for (uint32_t i = 0; i < fields; i++)
        TRY(build_field(&builder, (struct levels){0}, 1, NULL, NULL, &file->schema.fields[i],
                        &file->nodes[i]));
    if (builder.at != count)
        return corrupt(&builder, "more elements than the root has children");
    file->leaf_count = builder.leaf_count;
    return STATUS_OK;
}
