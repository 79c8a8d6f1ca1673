/* SPDX-License-Identifier: Apache-2.0
 *
 * Schemas and their JSON ("Appendix C: JSON serialization" of the specification).
 */
#include <stdio.h>

#include "lake/iceberg/iceberg_internal.h"

enum {
    FIELD_ID_MAX = 2147483447, /* higher ones are reserved */
    FIXED_BYTES_MAX = 1 << 20,
};

static const struct {
    const char *name;
    enum iceberg_type type;
    bool is_in_json; /* the name alone is the type's JSON */
} types[] = {
    {"boolean", ICEBERG_BOOLEAN, true},
    {"int", ICEBERG_INT, true},
    {"long", ICEBERG_LONG, true},
    {"float", ICEBERG_FLOAT, true},
    {"double", ICEBERG_DOUBLE, true},
    {"date", ICEBERG_DATE, true},
    {"time", ICEBERG_TIME, true},
    {"timestamp", ICEBERG_TIMESTAMP, true},
    {"timestamptz", ICEBERG_TIMESTAMPTZ, true},
    {"string", ICEBERG_STRING, true},
    {"uuid", ICEBERG_UUID, true},
    {"binary", ICEBERG_BINARY, true},
    {"fixed", ICEBERG_FIXED, false},
    {"decimal", ICEBERG_DECIMAL, false},
    {"struct", ICEBERG_STRUCT, false},
    {"list", ICEBERG_LIST, false},
    {"map", ICEBERG_MAP, false},
};

const char *iceberg_type_name(enum iceberg_type type)
{
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        if (types[i].type == type)
            return types[i].name;
    }
    return "?";
}

static enum status invalid(const char *what, const char *name, struct error *err)
{
    return error_set(err, STATUS_INVALID, "schema: %s: \"%.100s\"", what, name ? name : "");
}

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "schema: out of memory");
}

/* ---- parsing ---- */

static enum status parse_type(const struct json_value *json, struct arena *arena,
                              struct iceberg_field *field, struct error *err);

static const char *after_prefix(const char *text, const char *prefix)
{
    size_t length = strlen(prefix);
    return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

/* Reads digits at *at, with spaces around them, up to `end`; moves *at behind that. */
static bool take_number(const char **at, char end, uint64_t *out_value)
{
    const char *start = *at + strspn(*at, " ");
    size_t digits = strspn(start, "0123456789");
    const char *stop = start + digits + strspn(start + digits, " ");
    if (*stop != end || !parse_u64(start, digits, out_value))
        return false;
    *at = stop + 1;
    return true;
}

/* "fixed[16]", "decimal(38, 0)" and the plain names. */
static enum status parse_type_name(const char *name, struct iceberg_field *field, struct error *err)
{
    uint64_t first, second;
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        if (types[i].is_in_json && strcmp(name, types[i].name) == 0) {
            field->type = types[i].type;
            return STATUS_OK;
        }
    }
    const char *at = after_prefix(name, "fixed[");
    if (at && take_number(&at, ']', &first) && !*at && first > 0 && first <= FIXED_BYTES_MAX) {
        field->type = ICEBERG_FIXED;
        field->fixed_bytes = (uint32_t)first;
        return STATUS_OK;
    }
    at = after_prefix(name, "decimal(");
    if (at && take_number(&at, ',', &first) && take_number(&at, ')', &second) && !*at &&
        first >= 1 && first <= 38 && second <= first) {
        field->type = ICEBERG_DECIMAL;
        field->precision = (uint8_t)first;
        field->scale = (uint8_t)second;
        return STATUS_OK;
    }
    return error_set(err, STATUS_UNSUPPORTED, "schema: type \"%.100s\"", name);
}

static enum status read_id(const struct json_value *json, const char *key, int32_t *out_id,
                           struct error *err)
{
    int64_t id;
    if (!json_get_i64(json, key, &id) || id < 0 || id > FIELD_ID_MAX)
        return invalid("no fitting id", key, err);
    *out_id = (int32_t)id;
    return STATUS_OK;
}

static enum status parse_fields(const struct json_value *json, struct arena *arena,
                                struct iceberg_field **out_fields, uint32_t *out_count,
                                struct error *err)
{
    const struct json_value *list = json_get(json, "fields");
    if (!list || list->type != JSON_ARRAY)
        return invalid("a struct without fields", NULL, err);
    struct iceberg_field *fields = arena_alloc_zero(arena, list->count, sizeof *fields);
    if (!fields)
        return out_of_memory(err);
    struct iceberg_field *field = fields;
    for (const struct json_value *at = list->first; at; at = at->next, field++) {
        const struct json_value *type = json_get(at, "type");
        field->name = json_get_text(at, "name");
        field->doc = json_get_text(at, "doc");
        if (!field->name || !type || !json_get_bool(at, "required", &field->is_required))
            return invalid("a field lacks name, type or required", field->name, err);
        TRY(read_id(at, "id", &field->id, err));
        TRY(parse_type(type, arena, field, err));
    }
    *out_fields = fields;
    *out_count = list->count;
    return STATUS_OK;
}

/* The child of a list or map that its container describes with "<name>", "<name>-id" and
 * "<name>-required". */
static enum status parse_child(const struct json_value *json, const char *name, bool has_required,
                               struct arena *arena, struct iceberg_field *child, struct error *err)
{
    char id_key[24], required_key[24];
    snprintf(id_key, sizeof id_key, "%s-id", name);
    snprintf(required_key, sizeof required_key, "%s-required", name);
    const struct json_value *type = json_get(json, name);
    child->name = name;
    child->is_required = true;
    if (!type || (has_required && !json_get_bool(json, required_key, &child->is_required)))
        return invalid("a list or map lacks a part", name, err);
    TRY(read_id(json, id_key, &child->id, err));
    return parse_type(type, arena, child, err);
}

static enum status parse_type(const struct json_value *json, struct arena *arena,
                              struct iceberg_field *field, struct error *err)
{
    if (json->type == JSON_STRING)
        return parse_type_name(json->text, field, err);
    const char *kind = json_get_text(json, "type");
    if (kind && strcmp(kind, "struct") == 0) {
        field->type = ICEBERG_STRUCT;
        return parse_fields(json, arena, &field->children, &field->child_count, err);
    }
    bool is_list = kind && strcmp(kind, "list") == 0;
    if (!is_list && !(kind && strcmp(kind, "map") == 0))
        return invalid("unknown nested type", kind, err);
    field->type = is_list ? ICEBERG_LIST : ICEBERG_MAP;
    field->child_count = is_list ? 1 : 2;
    field->children = arena_alloc_zero(arena, field->child_count, sizeof *field->children);
    if (!field->children)
        return out_of_memory(err);
    if (is_list)
        return parse_child(json, "element", true, arena, &field->children[0], err);
    TRY(parse_child(json, "key", false, arena, &field->children[0], err));
    return parse_child(json, "value", true, arena, &field->children[1], err);
}

enum status iceberg_schema_parse(const struct json_value *json, struct arena *arena,
                                 struct iceberg_schema *out_schema, struct error *err)
{
    struct iceberg_schema schema = {0};
    int64_t id = 0;
    json_get_i64(json, "schema-id", &id);
    if (id < 0 || id > INT32_MAX)
        return invalid("bad schema-id", NULL, err);
    schema.schema_id = (int32_t)id;
    TRY(parse_fields(json, arena, &schema.fields, &schema.field_count, err));
    const struct json_value *identifiers = json_get(json, "identifier-field-ids");
    if (identifiers && identifiers->type == JSON_ARRAY && identifiers->count) {
        int32_t *ids = arena_alloc_zero(arena, identifiers->count, sizeof *ids);
        if (!ids)
            return out_of_memory(err);
        for (const struct json_value *at = identifiers->first; at; at = at->next) {
            if (!json_value_i64(at, &id) || id < 0 || id > FIELD_ID_MAX)
                return invalid("bad identifier-field-ids", NULL, err);
            ids[schema.identifier_count++] = (int32_t)id;
        }
        schema.identifier_ids = ids;
    }
    *out_schema = schema;
    return STATUS_OK;
}

/* ---- writing; a NULL anywhere means that the arena is full ---- */

static struct json_value *fields_to_json(const struct iceberg_field *fields, uint32_t count,
                                         struct arena *arena);

static bool set_child(struct arena *arena, struct json_value *object,
                      const struct iceberg_field *child, bool has_required);

static struct json_value *type_to_json(const struct iceberg_field *field, struct arena *arena)
{
    char text[32];
    struct json_value *object;
    switch (field->type) {
    case ICEBERG_FIXED:
        snprintf(text, sizeof text, "fixed[%u]", field->fixed_bytes);
        return json_new_text(arena, text);
    case ICEBERG_DECIMAL:
        snprintf(text, sizeof text, "decimal(%u, %u)", field->precision, field->scale);
        return json_new_text(arena, text);
    case ICEBERG_STRUCT:
    case ICEBERG_LIST:
    case ICEBERG_MAP:
        break;
    default:
        return json_new_text(arena, iceberg_type_name(field->type));
    }
    object = json_new_object(arena);
    bool is_whole =
        json_set(arena, object, "type", json_new_text(arena, iceberg_type_name(field->type)));
    if (field->type == ICEBERG_STRUCT)
        is_whole = is_whole && json_set(arena, object, "fields",
                                        fields_to_json(field->children, field->child_count, arena));
    else if (field->type == ICEBERG_LIST)
        is_whole = is_whole && set_child(arena, object, &field->children[0], true);
    else
        is_whole = is_whole && set_child(arena, object, &field->children[0], false) &&
                   set_child(arena, object, &field->children[1], true);
    return is_whole ? object : NULL;
}

static bool set_child(struct arena *arena, struct json_value *object,
                      const struct iceberg_field *child, bool has_required)
{
    char id_key[24], required_key[24];
    snprintf(id_key, sizeof id_key, "%s-id", child->name);
    snprintf(required_key, sizeof required_key, "%s-required", child->name);
    return json_set(arena, object, id_key, json_new_i64(arena, child->id)) &&
           json_set(arena, object, child->name, type_to_json(child, arena)) &&
           (!has_required ||
            json_set(arena, object, required_key, json_new_bool(arena, child->is_required)));
}

static struct json_value *fields_to_json(const struct iceberg_field *fields, uint32_t count,
                                         struct arena *arena)
{
    struct json_value *list = json_new_array(arena);
    for (uint32_t i = 0; i < count && list; i++) {
        struct json_value *object = json_new_object(arena);
        bool is_whole =
            json_set(arena, object, "id", json_new_i64(arena, fields[i].id)) &&
            json_set(arena, object, "name", json_new_text(arena, fields[i].name)) &&
            json_set(arena, object, "required", json_new_bool(arena, fields[i].is_required)) &&
            json_set(arena, object, "type", type_to_json(&fields[i], arena)) &&
            (!fields[i].doc || json_set(arena, object, "doc", json_new_text(arena, fields[i].doc)));
        if (!is_whole || !json_append(list, object))
            return NULL;
    }
    return list;
}

enum status iceberg_schema_to_json(const struct iceberg_schema *schema, struct arena *arena,
                                   struct json_value **out_json, struct error *err)
{
    struct json_value *object = json_new_object(arena);
    bool is_whole = json_set(arena, object, "type", json_new_text(arena, "struct")) &&
                    json_set(arena, object, "schema-id", json_new_i64(arena, schema->schema_id)) &&
                    json_set(arena, object, "fields",
                             fields_to_json(schema->fields, schema->field_count, arena));
    if (is_whole && schema->identifier_count) {
        struct json_value *ids = json_new_array(arena);
        for (uint32_t i = 0; i < schema->identifier_count && is_whole; i++)
            is_whole = json_append(ids, json_new_i64(arena, schema->identifier_ids[i]));
        is_whole = is_whole && json_set(arena, object, "identifier-field-ids", ids);
    }
    if (!is_whole)
        return out_of_memory(err);
    *out_json = object;
    return STATUS_OK;
}

/* ---- ids, copies, lookups ---- */

static void assign_level(struct iceberg_field *fields, uint32_t count, int32_t *last_id)
{
    for (uint32_t i = 0; i < count; i++) {
        if (fields[i].id == 0)
            fields[i].id = ++*last_id;
    }
    for (uint32_t i = 0; i < count; i++)
        assign_level(fields[i].children, fields[i].child_count, last_id);
}

int32_t iceberg_fields_highest_id(const struct iceberg_field *fields, uint32_t count)
{
    int32_t highest = 0;
    for (uint32_t i = 0; i < count; i++) {
        int32_t below = iceberg_fields_highest_id(fields[i].children, fields[i].child_count);
        highest = fields[i].id > highest ? fields[i].id : highest;
        highest = below > highest ? below : highest;
    }
    return highest;
}

void iceberg_schema_assign_ids(struct iceberg_schema *schema, int32_t *last_id)
{
    int32_t highest = iceberg_fields_highest_id(schema->fields, schema->field_count);
    if (*last_id < highest)
        *last_id = highest;
    assign_level(schema->fields, schema->field_count, last_id);
}

enum status iceberg_field_copy(const struct iceberg_field *from, uint32_t count,
                               struct arena *arena, struct iceberg_field **out_fields,
                               struct error *err)
{
    struct iceberg_field *fields = arena_alloc_zero(arena, count, sizeof *fields);
    if (!fields)
        return out_of_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        fields[i] = from[i];
        fields[i].name = arena_copy_text(arena, from[i].name, strlen(from[i].name));
        if (from[i].doc)
            fields[i].doc = arena_copy_text(arena, from[i].doc, strlen(from[i].doc));
        if (!fields[i].name || (from[i].doc && !fields[i].doc))
            return out_of_memory(err);
        TRY(iceberg_field_copy(from[i].children, from[i].child_count, arena, &fields[i].children,
                               err));
    }
    *out_fields = fields;
    return STATUS_OK;
}

static const struct iceberg_field *find_id(const struct iceberg_field *fields, uint32_t count,
                                           int32_t id)
{
    for (uint32_t i = 0; i < count; i++) {
        if (fields[i].id == id)
            return &fields[i];
        const struct iceberg_field *below = find_id(fields[i].children, fields[i].child_count, id);
        if (below)
            return below;
    }
    return NULL;
}

const struct iceberg_field *iceberg_schema_find(const struct iceberg_schema *schema, int32_t id)
{
    return find_id(schema->fields, schema->field_count, id);
}

static bool is_kept(const struct iceberg_field *field, const struct iceberg_schema *later)
{
    const struct iceberg_field *now = iceberg_schema_find(later, field->id);
    if (!now)
        return false;
    if ((field->type == ICEBERG_INT && now->type == ICEBERG_LONG) ||
        (field->type == ICEBERG_FLOAT && now->type == ICEBERG_DOUBLE))
        return true;
    bool is_same = field->type == now->type && field->fixed_bytes == now->fixed_bytes &&
                   field->precision == now->precision && field->scale == now->scale;
    for (uint32_t i = 0; i < field->child_count && is_same; i++)
        is_same = is_kept(&field->children[i], later);
    return is_same;
}

bool iceberg_schema_loses(const struct iceberg_schema *earlier, const struct iceberg_schema *later)
{
    bool is_whole = true;
    for (uint32_t i = 0; i < earlier->field_count && is_whole; i++)
        is_whole = is_kept(&earlier->fields[i], later);
    return !is_whole;
}

const struct iceberg_field *iceberg_schema_find_name(const struct iceberg_schema *schema,
                                                     const char *name)
{
    for (uint32_t i = 0; i < schema->field_count; i++) {
        if (strcmp(schema->fields[i].name, name) == 0)
            return &schema->fields[i];
    }
    return NULL;
}
