/* SPDX-License-Identifier: Apache-2.0
 *
 * A schema's JSON as a tree of types. Named types are entered before their fields are read, so that
 * a field may refer to the record it is in; the nesting of definitions is bounded here, the nesting
 * of values by the reader.
 */
#include "format/avro/avro_internal.h"
#include "format/json/json.h"

enum { NAME_CHAINS = 1024 };

struct named_type {
    const char *space, *name; /* "" and "name", or "ns" and "name" */
    struct avro_type *type;
    struct named_type *next;
};

struct schema_parser {
    struct arena *arena;
    const struct avro_limits *limits;
    struct named_type *names[NAME_CHAINS]; /* by a hash of the name, the last one first */
    uint32_t type_count, depth;
};

static const struct {
    const char *name;
    enum avro_kind kind;
} kinds[] = {
    {"null", AVRO_NULL},    {"boolean", AVRO_BOOLEAN}, {"int", AVRO_INT},
    {"long", AVRO_LONG},    {"float", AVRO_FLOAT},     {"double", AVRO_DOUBLE},
    {"bytes", AVRO_BYTES},  {"string", AVRO_STRING},   {"record", AVRO_RECORD},
    {"error", AVRO_RECORD}, {"enum", AVRO_ENUM},       {"array", AVRO_ARRAY},
    {"map", AVRO_MAP},      {"fixed", AVRO_FIXED},
};

static enum status invalid(const char *what, struct error *err)
{
    return error_set(err, STATUS_INVALID, "Avro schema: %s", what);
}

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "Avro schema: out of memory");
}

static enum status new_type(struct schema_parser *parser, enum avro_kind kind,
                            struct avro_type **out_type, struct error *err)
{
    if (++parser->type_count > parser->limits->type_count_max)
        return error_set(err, STATUS_LIMIT, "Avro schema: more than %u types",
                         parser->limits->type_count_max);
    struct avro_type *type = arena_alloc_zero(parser->arena, 1, sizeof *type);
    if (!type)
        return out_of_memory(err);
    type->kind = kind;
    *out_type = type;
    return STATUS_OK;
}

static enum status new_fields(struct schema_parser *parser, struct avro_type *type, uint32_t count,
                              struct error *err)
{
    type->fields = arena_alloc_zero(parser->arena, count, sizeof *type->fields);
    if (!type->fields)
        return out_of_memory(err);
    type->field_count = count;
    for (uint32_t i = 0; i < count; i++)
        type->fields[i].field_id = -1;
    return STATUS_OK;
}

static int32_t read_id(const struct json_value *object, const char *key)
{
    int64_t id;
    return json_get_i64(object, key, &id) && id >= 0 && id <= INT32_MAX ? (int32_t)id : -1;
}

static struct named_type **chain_of(struct schema_parser *parser, const char *name)
{
    uint64_t hash = hash64_seeded(name, strlen(name), (uintptr_t)parser->arena);
    return &parser->names[hash % NAME_CHAINS];
}

/* A name with dots is a full one; another one is looked for in `space`, then in none. */
static struct avro_type *find_name(struct schema_parser *parser, const char *space,
                                   const char *name)
{
    const char *dot = strrchr(name, '.'), *last = dot ? dot + 1 : name;
    struct avro_type *bare = NULL;
    for (const struct named_type *at = *chain_of(parser, last); at; at = at->next) {
        if (strcmp(at->name, last) != 0)
            continue;
        if (dot ? strncmp(at->space, name, (size_t)(dot - name)) == 0 &&
                      strlen(at->space) == (size_t)(dot - name)
                : strcmp(at->space, space) == 0)
            return at->type;
        if (!dot && !*at->space && !bare)
            bare = at->type;
    }
    return bare;
}

static enum status read_aliases(struct schema_parser *parser, const struct json_value *json,
                                const char ***out_aliases, uint32_t *out_count, struct error *err)
{
    const struct json_value *aliases = json_get(json, "aliases");
    if (!aliases || aliases->type != JSON_ARRAY)
        return STATUS_OK;
    *out_aliases = arena_alloc_zero(parser->arena, (size_t)aliases->count + 1, sizeof(char *));
    if (!*out_aliases)
        return out_of_memory(err);
    for (const struct json_value *alias = aliases->first; alias; alias = alias->next)
        if (alias->type == JSON_STRING)
            (*out_aliases)[(*out_count)++] = alias->text;
    return STATUS_OK;
}

/* Enters the type under its full name; *out_space is the namespace for what lies inside. */
static enum status enter_name(struct schema_parser *parser, const struct json_value *json,
                              const char *outer_space, struct avro_type *type,
                              const char **out_space, struct error *err)
{
    const char *name = json_get_text(json, "name"), *space = json_get_text(json, "namespace");
    if (!name) /* an empty one is what Polars gives its records */
        return invalid("a type without a name", err);
    const char *dot = strrchr(name, '.');
    if (dot)
        space = arena_copy_text(parser->arena, name, (size_t)(dot - name));
    else if (!space)
        space = outer_space;
    if (!space)
        return out_of_memory(err);
    struct named_type *entry = arena_alloc_zero(parser->arena, 1, sizeof *entry);
    if (!entry)
        return out_of_memory(err);
    type->name = dot ? dot + 1 : name;
    struct named_type **chain = chain_of(parser, type->name);
    *entry = (struct named_type){.space = space, .name = type->name, .type = type, .next = *chain};
    *chain = entry;
    *out_space = space;
    return read_aliases(parser, json, &type->aliases, &type->alias_count, err);
}

static enum status parse_type(struct schema_parser *parser, const struct json_value *json,
                              const char *space, const struct avro_type **out_type,
                              struct error *err);

static enum status parse_record(struct schema_parser *parser, const struct json_value *json,
                                const char *space, struct avro_type *type, struct error *err)
{
    const struct json_value *fields = json_get(json, "fields");
    if (!fields || fields->type != JSON_ARRAY)
        return invalid("a record without fields", err);
    TRY(new_fields(parser, type, fields->count, err));
    struct avro_field *out = type->fields;
    for (const struct json_value *field = fields->first; field; field = field->next, out++) {
        const struct json_value *field_type = json_get(field, "type");
        out->name = json_get_text(field, "name");
        out->original_name = json_get_text(field, "iceberg-field-name");
        if (!out->name || !field_type)
            return invalid("a field without name or type", err);
        out->field_id = read_id(field, "field-id");
        out->default_value = json_get(field, "default");
        TRY(read_aliases(parser, field, &out->aliases, &out->alias_count, err));
        TRY(parse_type(parser, field_type, space, &out->type, err));
    }
    return STATUS_OK;
}

static enum status parse_enum(struct schema_parser *parser, const struct json_value *json,
                              struct avro_type *type, struct error *err)
{
    const struct json_value *symbols = json_get(json, "symbols");
    if (!symbols || symbols->type != JSON_ARRAY)
        return invalid("an enum without symbols", err);
    type->symbols = arena_alloc_zero(parser->arena, symbols->count, sizeof *type->symbols);
    if (!type->symbols)
        return out_of_memory(err);
    for (const struct json_value *symbol = symbols->first; symbol; symbol = symbol->next) {
        if (symbol->type != JSON_STRING)
            return invalid("an enum's symbol is not a string", err);
        type->symbols[type->symbol_count++] = symbol->text;
    }
    type->default_symbol = json_get_text(json, "default");
    return STATUS_OK;
}

static enum status parse_array_or_map(struct schema_parser *parser, const struct json_value *json,
                                      const char *space, struct avro_type *type, struct error *err)
{
    bool is_map = type->kind == AVRO_MAP;
    const struct json_value *item = json_get(json, is_map ? "values" : "items");
    if (!item)
        return invalid("an array or map without its item type", err);
    TRY(new_fields(parser, type, is_map ? 2 : 1, err));
    if (is_map) {
        struct avro_type *key;
        TRY(new_type(parser, AVRO_STRING, &key, err));
        type->fields[0] =
            (struct avro_field){.name = "key", .field_id = read_id(json, "key-id"), .type = key};
        type->fields[1].field_id = read_id(json, "value-id");
    } else {
        type->fields[0].field_id = read_id(json, "element-id");
    }
    return parse_type(parser, item, space, &type->fields[is_map].type, err);
}

static enum status parse_union(struct schema_parser *parser, const struct json_value *json,
                               const char *space, const struct avro_type **out_type,
                               struct error *err)
{
    struct avro_type *type;
    TRY(new_type(parser, AVRO_UNION, &type, err));
    TRY(new_fields(parser, type, json->count, err));
    if (json->count == 0)
        return invalid("an empty union", err);
    struct avro_field *out = type->fields;
    for (const struct json_value *branch = json->first; branch; branch = branch->next, out++) {
        if (branch->type == JSON_ARRAY)
            return invalid("a union in a union", err);
        TRY(parse_type(parser, branch, space, &out->type, err));
    }
    *out_type = type;
    return STATUS_OK;
}

static enum status parse_name(struct schema_parser *parser, const char *name, const char *space,
                              const struct avro_type **out_type, struct error *err)
{
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        if (kinds[i].kind >= AVRO_RECORD || strcmp(kinds[i].name, name) != 0)
            continue;
        struct avro_type *type;
        TRY(new_type(parser, kinds[i].kind, &type, err));
        *out_type = type;
        return STATUS_OK;
    }
    const struct avro_type *named = find_name(parser, space, name);
    if (!named)
        return error_set(err, STATUS_INVALID, "Avro schema: unknown type \"%.100s\"", name);
    *out_type = named;
    return STATUS_OK;
}

/* An object whose "type" is a string. */
static enum status parse_object(struct schema_parser *parser, const struct json_value *json,
                                const char *space, const struct avro_type **out_type,
                                struct error *err)
{
    const char *kind_name = json_get_text(json, "type");
    size_t row = 0;
    while (row < COUNT_OF(kinds) && strcmp(kinds[row].name, kind_name) != 0)
        row++;
    if (row == COUNT_OF(kinds))
        return parse_name(parser, kind_name, space, out_type, err);
    struct avro_type *type;
    TRY(new_type(parser, kinds[row].kind, &type, err));
    type->logical_type = json_get_text(json, "logicalType");
    bool is_utc;
    type->is_local =
        (type->logical_type && strncmp(type->logical_type, "local-", strlen("local-")) == 0) ||
        (json_get_bool(json, "adjust-to-utc", &is_utc) && !is_utc);
    int64_t number;
    if (json_get_i64(json, "precision", &number) && number > 0 && number <= INT32_MAX)
        type->precision = (int32_t)number;
    if (json_get_i64(json, "scale", &number) && number >= 0 && number <= INT32_MAX)
        type->scale = (int32_t)number;
    if (type->kind == AVRO_RECORD || type->kind == AVRO_ENUM || type->kind == AVRO_FIXED)
        TRY(enter_name(parser, json, space, type, &space, err));
    switch (type->kind) {
    case AVRO_RECORD:
        TRY(parse_record(parser, json, space, type, err));
        break;
    case AVRO_ENUM:
        TRY(parse_enum(parser, json, type, err));
        break;
    case AVRO_ARRAY:
    case AVRO_MAP:
        TRY(parse_array_or_map(parser, json, space, type, err));
        break;
    case AVRO_FIXED:
        if (!json_get_i64(json, "size", &number) || number < 0 || number > 1 << 20)
            return invalid("a fixed without a fitting size", err);
        type->fixed_bytes = (uint32_t)number;
        break;
    default:
        break;
    }
    *out_type = type;
    return STATUS_OK;
}

static enum status parse_type(struct schema_parser *parser, const struct json_value *json,
                              const char *space, const struct avro_type **out_type,
                              struct error *err)
{
    if (parser->depth >= parser->limits->depth_max)
        return error_set(err, STATUS_LIMIT, "Avro schema: nested deeper than %u",
                         parser->limits->depth_max);
    parser->depth++;
    enum status status;
    const struct json_value *inner = json_get(json, "type");
    if (json->type == JSON_STRING)
        status = parse_name(parser, json->text, space, out_type, err);
    else if (json->type == JSON_ARRAY)
        status = parse_union(parser, json, space, out_type, err);
    else if (inner && inner->type == JSON_STRING && json_get_text(json, "type"))
        status = parse_object(parser, json, space, out_type, err);
    else if (inner) /* {"type": {...}}: a wrapper that some writers leave */
        status = parse_type(parser, inner, space, out_type, err);
    else
        status = invalid("not a type", err);
    parser->depth--;
    return status;
}

enum status avro_schema_parse(struct span json, const struct avro_limits *limits,
                              struct arena *arena, const struct avro_type **out_type,
                              struct error *err)
{
    struct schema_parser parser = {.arena = arena, .limits = limits};
    struct json_value *tree;
    if (json_parse(json.data, json.length, arena, &tree, err) != STATUS_OK)
        return error_prefix(err, "Avro schema");
    return parse_type(&parser, tree, "", out_type, err);
}
