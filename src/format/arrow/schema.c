/* SPDX-License-Identifier: Apache-2.0
 *
 * Schemas: deep copy, equality, fingerprint.
 */
#include "format/arrow/arrow_internal.h"

static const char *const type_names[ARROW_TYPE_COUNT] = {
    [ARROW_NULL] = "null",     [ARROW_BOOL] = "bool",   [ARROW_INT32] = "int32",
    [ARROW_INT64] = "int64",   [ARROW_FLOAT] = "float", [ARROW_DOUBLE] = "double",
    [ARROW_DATE32] = "date32", [ARROW_UTF8] = "utf8",   [ARROW_TIMESTAMP_US] = "timestamp[us]",
    [ARROW_BINARY] = "binary", [ARROW_FIXED] = "fixed", [ARROW_LIST] = "list",
    [ARROW_STRUCT] = "struct", [ARROW_MAP] = "map",
};

const char *arrow_type_name(enum arrow_type type)
{
    return (unsigned)type < ARROW_TYPE_COUNT ? type_names[type] : "unknown";
}

static bool copy_fields(const struct arrow_field *from, uint32_t count, struct arena *arena,
                        struct arrow_field **out_fields)
{
    struct arrow_field *fields = arena_alloc_zero(arena, count, sizeof *fields);
    if (!fields)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        fields[i] = from[i];
        fields[i].name = arena_copy_text(arena, from[i].name, strlen(from[i].name));
        if (!fields[i].name)
            return false;
        fields[i].children = NULL;
        if (from[i].child_count &&
            !copy_fields(from[i].children, from[i].child_count, arena, &fields[i].children))
            return false;
    }
    *out_fields = fields;
    return true;
}

enum status arrow_schema_copy(const struct arrow_schema *from, struct arena *arena,
                              struct arrow_schema *out_schema, struct error *err)
{
    struct arrow_field *fields;
    if (!copy_fields(from->fields, from->field_count, arena, &fields))
        return error_set(err, STATUS_NO_MEMORY, "arrow: no memory for a schema");
    *out_schema = (struct arrow_schema){.fields = fields, .field_count = from->field_count};
    return STATUS_OK;
}

static bool fields_equal(const struct arrow_field *a, const struct arrow_field *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (a[i].type != b[i].type || a[i].is_nullable != b[i].is_nullable ||
            a[i].is_dictionary != b[i].is_dictionary || a[i].is_instant != b[i].is_instant ||
            a[i].byte_width != b[i].byte_width || a[i].field_id != b[i].field_id ||
            a[i].child_count != b[i].child_count || strcmp(a[i].name, b[i].name) != 0 ||
            !fields_equal(a[i].children, b[i].children, a[i].child_count))
            return false;
    }
    return true;
}

bool arrow_schema_equal(const struct arrow_schema *a, const struct arrow_schema *b)
{
    return a == b ||
           (a->field_count == b->field_count && fields_equal(a->fields, b->fields, a->field_count));
}

/* Each field is a fixed-size record that binds its name by hash, chained into what came before. The
 * bytes below are stored in logs: they must never change. */
static uint64_t fingerprint_fields(uint64_t seed, const struct arrow_field *fields, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct arrow_field *field = &fields[i];
        uint8_t record[40];
        put_le64(record, hash64(field->name, strlen(field->name)));
        put_le64(record + 8, (uint64_t)field->dictionary_key);
        put_le32(record + 16, (uint32_t)field->type);
        put_le32(record + 20, (uint32_t)field->byte_width);
        put_le32(record + 24, (uint32_t)field->field_id);
        put_le32(record + 28, field->child_count);
        put_le64(record + 32, (uint64_t)field->is_nullable | (uint64_t)field->is_dictionary << 1 |
                                  (uint64_t)field->is_instant << 2);
        seed = hash64_seeded(record, sizeof record, seed);
        seed = fingerprint_fields(seed, field->children, field->child_count);
    }
    return seed;
}

uint64_t arrow_schema_fingerprint(const struct arrow_schema *schema)
{
    uint64_t hash = fingerprint_fields(schema->field_count, schema->fields, schema->field_count);
    return hash ? hash : 1;
}

void arrow_batch_deinit(struct arrow_batch *batch)
{
    arena_deinit(&batch->arena);
    *batch = (struct arrow_batch){0};
}
