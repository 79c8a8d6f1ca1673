/* SPDX-License-Identifier: Apache-2.0
 *
 * Schemas: names of types, deep copy, equality, fingerprint.
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

static const char *unit_name(enum arrow_unit unit)
{
    static const char *const names[] = {"s", "ms", "us", "ns"};
    return names[unit];
}

static void describe_timestamp(const struct arrow_field *field, enum arrow_unit unit,
                               struct buf *out)
{
    const char *zone = field->origin && field->origin->timezone ? field->origin->timezone
                       : field->is_instant                      ? "UTC"
                                                                : NULL;
    buf_format(out, "timestamp[%s%s%s]", unit_name(unit), zone ? ", " : "", zone ? zone : "");
}

static void describe_origin(const struct arrow_field *field, struct buf *out)
{
    const struct arrow_origin *origin = field->origin;
    int bits = field->byte_width * 8;
    switch (origin->kind) {
    case ARROW_ORIGIN_INT:
        buf_format(out, "int%d", bits);
        break;
    case ARROW_ORIGIN_UINT:
        buf_format(out, "uint%d", bits);
        break;
    case ARROW_ORIGIN_HALF:
        buf_put_text(out, "float16");
        break;
    case ARROW_ORIGIN_DECIMAL:
        buf_format(out, "decimal%d[%d, %d]", bits, (int)origin->precision, (int)origin->scale);
        break;
    case ARROW_ORIGIN_DATE_MS:
        buf_put_text(out, "date64");
        break;
    case ARROW_ORIGIN_TIME:
        buf_format(out, "time%d[%s]", bits, unit_name(origin->unit));
        break;
    case ARROW_ORIGIN_TIMESTAMP:
        describe_timestamp(field, origin->unit, out);
        break;
    case ARROW_ORIGIN_DURATION:
        buf_format(out, "duration[%s]", unit_name(origin->unit));
        break;
    case ARROW_ORIGIN_MONTHS:
        buf_put_text(out, "interval[months]");
        break;
    case ARROW_ORIGIN_DAY_TIME:
        buf_put_text(out, "interval[day_time]");
        break;
    case ARROW_ORIGIN_MONTH_DAY_NANO:
        buf_put_text(out, "interval[month_day_nano]");
        break;
    case ARROW_ORIGIN_LARGE:
        buf_format(out, "large_%s", arrow_type_name(field->type));
        break;
    case ARROW_ORIGIN_VIEW:
        buf_format(out, "%s_view", arrow_type_name(field->type));
        break;
    case ARROW_ORIGIN_FIXED_LIST:
        buf_format(out, "list[%d]", (int)origin->list_size);
        break;
    case ARROW_ORIGIN_LIST_VIEW:
        buf_put_text(out, "list_view");
        break;
    case ARROW_ORIGIN_LARGE_LIST_VIEW:
        buf_put_text(out, "large_list_view");
        break;
    case ARROW_ORIGIN_SAME:
        break;
    }
}

void arrow_type_describe(const struct arrow_field *field, struct buf *out)
{
    const struct arrow_origin *origin = field->origin;
    if (origin && origin->run_end_bits)
        buf_format(out, "run_end_encoded[int%d, ", origin->run_end_bits);
    if (field->is_dictionary)
        buf_format(out, "dictionary[%sint%d, ", origin && origin->index_is_unsigned ? "u" : "",
                   origin && origin->index_bits ? origin->index_bits : 32);
    if (origin && origin->kind != ARROW_ORIGIN_SAME)
        describe_origin(field, out);
    else if (field->type == ARROW_TIMESTAMP_US)
        describe_timestamp(field, ARROW_MICROS, out);
    else if (field->type == ARROW_FIXED)
        buf_format(out, "fixed[%d]", (int)field->byte_width);
    else
        buf_put_text(out, arrow_type_name(field->type));
    if (field->is_dictionary)
        buf_put_byte(out, ']');
    if (origin && origin->run_end_bits)
        buf_put_byte(out, ']');
}

/* ---- metadata ---- */

enum status arrow_metadata_add(struct arrow_metadata *metadata, struct arena *arena,
                               struct span key, struct span value)
{
    uint32_t count = metadata->count;
    if ((count & (count - 1)) == 0) { /* none, or a power of two */
        struct arrow_pair *pairs =
            arena_alloc(arena, (size_t)size_max(1, count * 2) * sizeof *pairs);
        if (!pairs)
            return STATUS_NO_MEMORY;
        if (count)
            memcpy(pairs, metadata->pairs, count * sizeof *pairs);
        metadata->pairs = pairs;
    }
    const char *key_copy = arena_copy_text(arena, (const char *)key.data, key.length);
    const char *value_copy = arena_copy_text(arena, (const char *)value.data, value.length);
    if (!key_copy || !value_copy)
        return STATUS_NO_MEMORY;
    metadata->pairs[metadata->count++] =
        (struct arrow_pair){span_of(key_copy, key.length), span_of(value_copy, value.length)};
    return STATUS_OK;
}

static bool copy_metadata(const struct arrow_metadata *from, struct arena *arena,
                          struct arrow_metadata *to)
{
    *to = (struct arrow_metadata){0};
    for (uint32_t i = 0; i < from->count; i++)
        if (arrow_metadata_add(to, arena, from->pairs[i].key, from->pairs[i].value) != STATUS_OK)
            return false;
    return true;
}

void field_pairs_init(struct field_pairs *pairs, const struct arrow_field *field)
{
    const struct arrow_origin *origin = field->origin;
    *pairs = (struct field_pairs){.field = field, .count = field->field_id != 0};
    i64_to_text(pairs->id_text, field->field_id);
    if (origin)
        pairs->count += (size_t)(origin->extension != NULL) + origin->metadata.count;
}

struct arrow_pair field_pair_at(const struct field_pairs *pairs, size_t i)
{
    const struct arrow_field *field = pairs->field;
    if (field->field_id && i-- == 0)
        return (struct arrow_pair){span_of_text(ARROW_FIELD_ID_KEY), span_of_text(pairs->id_text)};
    if (field->origin->extension && i-- == 0)
        return (struct arrow_pair){span_of_text(ARROW_EXTENSION_KEY),
                                   span_of_text(field->origin->extension)};
    return field->origin->metadata.pairs[i];
}

/* ---- copies ---- */

static const struct arrow_origin *copy_origin(const struct arrow_origin *from, struct arena *arena)
{
    struct arrow_origin *copy = arena_alloc(arena, sizeof *copy);
    if (!copy)
        return NULL;
    *copy = *from;
    if (from->timezone)
        copy->timezone = arena_copy_text(arena, from->timezone, strlen(from->timezone));
    if (from->extension)
        copy->extension = arena_copy_text(arena, from->extension, strlen(from->extension));
    if ((from->timezone && !copy->timezone) || (from->extension && !copy->extension))
        return NULL;
    return copy_metadata(&from->metadata, arena, &copy->metadata) ? copy : NULL;
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
        if (from[i].origin && !(fields[i].origin = copy_origin(from[i].origin, arena)))
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
    struct arrow_schema copy = {.field_count = from->field_count};
    if (!copy_fields(from->fields, from->field_count, arena, &copy.fields) ||
        !copy_metadata(&from->metadata, arena, &copy.metadata))
        return error_set(err, STATUS_NO_MEMORY, "arrow: no memory for a schema");
    *out_schema = copy;
    return STATUS_OK;
}

static bool is_deeper(const struct arrow_field *field, uint32_t levels)
{
    bool is = levels == 0;
    for (uint32_t i = 0; !is && i < field->child_count; i++)
        is = is_deeper(&field->children[i], levels - 1);
    return is;
}

enum status arrow_schema_check_depth(const struct arrow_schema *schema, struct error *err)
{
    for (uint32_t i = 0; i < schema->field_count; i++)
        if (is_deeper(&schema->fields[i], ARROW_DEPTH_MAX))
            return error_set(err, STATUS_LIMIT, "column %.100s: nested deeper than %d levels",
                             schema->fields[i].name, ARROW_DEPTH_MAX);
    return STATUS_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

enum status arrow_fields_check_names(const struct arrow_field *fields, uint32_t count,
                                     struct error *err)
{
    enum status status = STATUS_OK;
    const char **names = mem_alloc(((size_t)count + 1) * sizeof *names);
    if (!names)
        return error_set(err, STATUS_NO_MEMORY, "no memory for names");
    for (uint32_t i = 0; i < count; i++)
        names[i] = fields[i].name;
    qsort(names, count, sizeof *names, compare_names);
    for (uint32_t i = 1; i < count && status == STATUS_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status = error_set(err, STATUS_INVALID, "two columns named %.100s", names[i]);
    mem_free(names);
    return status;
}

static bool texts_equal(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

bool arrow_origins_equal(const struct arrow_origin *a, const struct arrow_origin *b)
{
    static const struct arrow_origin plain = {.kind = ARROW_ORIGIN_SAME};
    a = a ? a : &plain;
    b = b ? b : &plain;
    return a == b ||
           (a->kind == b->kind && a->unit == b->unit && a->precision == b->precision &&
            a->scale == b->scale && a->list_size == b->list_size &&
            a->index_bits == b->index_bits && a->index_is_unsigned == b->index_is_unsigned &&
            a->is_ordered == b->is_ordered && a->run_end_bits == b->run_end_bits &&
            texts_equal(a->timezone, b->timezone) && texts_equal(a->extension, b->extension));
}

static bool fields_equal(const struct arrow_field *a, const struct arrow_field *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (a[i].type != b[i].type || a[i].is_nullable != b[i].is_nullable ||
            a[i].is_dictionary != b[i].is_dictionary || a[i].is_instant != b[i].is_instant ||
            a[i].byte_width != b[i].byte_width || a[i].field_id != b[i].field_id ||
            a[i].child_count != b[i].child_count || strcmp(a[i].name, b[i].name) != 0 ||
            !arrow_origins_equal(a[i].origin, b[i].origin) ||
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
