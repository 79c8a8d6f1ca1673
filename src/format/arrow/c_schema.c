/* SPDX-License-Identifier: Apache-2.0
 *
 * The C Data Interface: schemas, outwards and inwards. A field's type is a text, "format"; one
 * table has those that are said in full by it, for both ways.
 */
#include "format/arrow/c_internal.h"

static const struct format {
    char text[4];
    enum arrow_type type;
    uint8_t width; /* of ARROW_FIXED */
    enum arrow_origin_kind kind;
} formats[] = {
    {"n", ARROW_NULL, 0, ARROW_ORIGIN_SAME},
    {"b", ARROW_BOOL, 0, ARROW_ORIGIN_SAME},
    {"i", ARROW_INT32, 0, ARROW_ORIGIN_SAME},
    {"l", ARROW_INT64, 0, ARROW_ORIGIN_SAME},
    {"f", ARROW_FLOAT, 0, ARROW_ORIGIN_SAME},
    {"g", ARROW_DOUBLE, 0, ARROW_ORIGIN_SAME},
    {"u", ARROW_UTF8, 0, ARROW_ORIGIN_SAME},
    {"z", ARROW_BINARY, 0, ARROW_ORIGIN_SAME},
    {"tdD", ARROW_DATE32, 0, ARROW_ORIGIN_SAME},
    {"+l", ARROW_LIST, 0, ARROW_ORIGIN_SAME},
    {"+s", ARROW_STRUCT, 0, ARROW_ORIGIN_SAME},
    {"+m", ARROW_MAP, 0, ARROW_ORIGIN_SAME},
    {"c", ARROW_FIXED, 1, ARROW_ORIGIN_INT},
    {"s", ARROW_FIXED, 2, ARROW_ORIGIN_INT},
    {"C", ARROW_FIXED, 1, ARROW_ORIGIN_UINT},
    {"S", ARROW_FIXED, 2, ARROW_ORIGIN_UINT},
    {"I", ARROW_FIXED, 4, ARROW_ORIGIN_UINT},
    {"L", ARROW_FIXED, 8, ARROW_ORIGIN_UINT},
    {"e", ARROW_FIXED, 2, ARROW_ORIGIN_HALF},
    {"tdm", ARROW_FIXED, 8, ARROW_ORIGIN_DATE_MS},
    {"tiM", ARROW_FIXED, 4, ARROW_ORIGIN_MONTHS},
    {"tiD", ARROW_FIXED, 8, ARROW_ORIGIN_DAY_TIME},
    {"tin", ARROW_FIXED, 16, ARROW_ORIGIN_MONTH_DAY_NANO},
    {"U", ARROW_UTF8, 0, ARROW_ORIGIN_LARGE},
    {"Z", ARROW_BINARY, 0, ARROW_ORIGIN_LARGE},
    {"+L", ARROW_LIST, 0, ARROW_ORIGIN_LARGE},
    {"vu", ARROW_UTF8, 0, ARROW_ORIGIN_VIEW},
    {"vz", ARROW_BINARY, 0, ARROW_ORIGIN_VIEW},
    {"+vl", ARROW_LIST, 0, ARROW_ORIGIN_LIST_VIEW},
    {"+vL", ARROW_LIST, 0, ARROW_ORIGIN_LARGE_LIST_VIEW},
};

static const char units[] = "smun"; /* as enum arrow_unit */

/* ---- out ---- */

static const char *find_format(const struct arrow_field *field, enum arrow_origin_kind kind)
{
    for (size_t i = 0; i < COUNT_OF(formats); i++)
        if (formats[i].type == field->type && formats[i].kind == kind &&
            (!formats[i].width || formats[i].width == field->byte_width))
            return formats[i].text;
    return NULL;
}

static const char *format_timestamp(struct arena *arena, const struct arrow_field *field,
                                    enum arrow_unit unit)
{
    const char *zone = field->origin && field->origin->timezone ? field->origin->timezone
                       : field->is_instant                      ? "UTC"
                                                                : "";
    return arena_format(arena, "ts%c:%s", units[unit], zone);
}

/* NULL: no memory. */
static const char *format_type(struct arena *arena, const struct arrow_field *field)
{
    const struct arrow_origin *origin = field->origin;
    enum arrow_origin_kind kind = origin_kind(field);
    switch (kind) {
    case ARROW_ORIGIN_DECIMAL:
        return arena_format(arena, "d:%d,%d,%d", (int)origin->precision, (int)origin->scale,
                            field->byte_width * 8);
    case ARROW_ORIGIN_TIME:
        return arena_format(arena, "tt%c", units[origin->unit]);
    case ARROW_ORIGIN_DURATION:
        return arena_format(arena, "tD%c", units[origin->unit]);
    case ARROW_ORIGIN_TIMESTAMP:
        return format_timestamp(arena, field, origin->unit);
    case ARROW_ORIGIN_LARGE: /* plain by now */
    case ARROW_ORIGIN_VIEW:
    case ARROW_ORIGIN_FIXED_LIST:
    case ARROW_ORIGIN_LIST_VIEW:
    case ARROW_ORIGIN_LARGE_LIST_VIEW:
        return find_format(field, ARROW_ORIGIN_SAME);
    case ARROW_ORIGIN_SAME:
        if (field->type == ARROW_TIMESTAMP_US)
            return format_timestamp(arena, field, ARROW_MICROS);
        if (field->type == ARROW_FIXED)
            return arena_format(arena, "w:%d", (int)field->byte_width);
        break;
    default:
        break;
    }
    return find_format(field, kind);
}

static void put_pair(struct buf *out, struct arrow_pair pair)
{
    buf_put_le32(out, (uint32_t)pair.key.length);
    buf_put(out, pair.key.data, pair.key.length);
    buf_put_le32(out, (uint32_t)pair.value.length);
    buf_put(out, pair.value.data, pair.value.length);
}

/* What was put goes to the schema; false: no memory. */
static bool keep_metadata(struct arena *arena, struct buf *bytes, const char **out_metadata)
{
    if (!bytes->failed)
        *out_metadata = arena_copy_text(arena, (const char *)bytes->data, bytes->length);
    buf_deinit(bytes);
    return *out_metadata;
}

/* A count of pairs, then their texts, each behind its length. */
static bool put_metadata(struct arena *arena, const struct arrow_field *field,
                         const char **out_metadata)
{
    struct field_pairs pairs;
    struct buf bytes = {0};
    field_pairs_init(&pairs, field);
    if (pairs.count == 0)
        return true;
    buf_put_le32(&bytes, (uint32_t)pairs.count);
    for (size_t i = 0; i < pairs.count; i++)
        put_pair(&bytes, field_pair_at(&pairs, i));
    return keep_metadata(arena, &bytes, out_metadata);
}

static bool put_schema_metadata(struct arena *arena, const struct arrow_metadata *metadata,
                                const char **out_metadata)
{
    struct buf bytes = {0};
    if (metadata->count == 0)
        return true;
    buf_put_le32(&bytes, metadata->count);
    for (uint32_t i = 0; i < metadata->count; i++)
        put_pair(&bytes, metadata->pairs[i]);
    return keep_metadata(arena, &bytes, out_metadata);
}

static void release_schema(struct ArrowSchema *schema)
{
    struct c_memory *memory = schema->private_data;
    for (int64_t i = 0; i < schema->n_children; i++)
        if (schema->children[i]->release)
            schema->children[i]->release(schema->children[i]);
    if (schema->dictionary && schema->dictionary->release)
        schema->dictionary->release(schema->dictionary);
    schema->release = NULL;
    c_memory_release(memory);
}

/* `name` must last as long as the memory. */
static void begin_schema(struct c_memory *memory, const char *format, const char *name,
                         bool is_nullable, struct ArrowSchema *out)
{
    *out = (struct ArrowSchema){.format = format,
                                .name = name,
                                .flags = is_nullable ? ARROW_FLAG_NULLABLE : 0,
                                .release = release_schema,
                                .private_data = memory};
    atomic_fetch_add(&memory->holders, 1);
}

static bool fill_schema(struct c_memory *memory, const struct arrow_field *field,
                        struct ArrowSchema *out);

static bool fill_children(struct c_memory *memory, const struct arrow_field *fields, uint32_t count,
                          struct ArrowSchema *out)
{
    if (!c_memory_children(memory, count, sizeof *out, &out->children))
        return false;
    out->n_children = count;
    for (uint32_t i = 0; i < count; i++)
        if (!fill_schema(memory, &fields[i], out->children[i]))
            return false;
    return true;
}

static bool fill_dictionary(struct c_memory *memory, const struct arrow_field *field,
                            struct ArrowSchema *out)
{
    struct arrow_field values = dictionary_value_field(field);
    struct arrow_origin origin;
    values.name = "";
    values.is_nullable = true;
    values.field_id = 0;
    if (field->origin) {
        origin = *field->origin;
        origin.extension = NULL; /* of the field, not of its values */
        origin.metadata.count = 0;
        values.origin = &origin;
    }
    out->dictionary = arena_alloc_zero(&memory->structs, 1, sizeof *out->dictionary);
    return out->dictionary && fill_schema(memory, &values, out->dictionary);
}

static bool fill_schema(struct c_memory *memory, const struct arrow_field *field,
                        struct ArrowSchema *out)
{
    struct arena *arena = &memory->structs;
    const char *name = arena_copy_text(arena, field->name, strlen(field->name));
    const char *format = field->is_dictionary ? "i" : format_type(arena, field);
    begin_schema(memory, format, name, field->is_nullable, out);
    if (!name || !format || !put_metadata(arena, field, &out->metadata))
        return false;
    if (field->is_dictionary && field->origin && field->origin->is_ordered)
        out->flags |= ARROW_FLAG_DICTIONARY_ORDERED;
    if (field->is_dictionary)
        return fill_dictionary(memory, field, out);
    if (field->origin && field->origin->has_sorted_keys)
        out->flags |= ARROW_FLAG_MAP_KEYS_SORTED;
    if (field->type != ARROW_MAP)
        return fill_children(memory, field->children, field->child_count, out);
    if (!c_memory_children(memory, 1, sizeof *out, &out->children))
        return false;
    out->n_children = 1;
    begin_schema(memory, "+s", "entries", false, out->children[0]);
    return fill_children(memory, field->children, field->child_count, out->children[0]);
}

enum status arrow_c_export_schema(const struct arrow_schema *schema, struct ArrowSchema *out_schema,
                                  struct error *err)
{
    struct ArrowSchema root;
    struct c_memory *memory = c_memory_create();
    if (!memory)
        return c_no_memory(err);
    begin_schema(memory, "+s", "", false, &root);
    if (!put_schema_metadata(&memory->structs, &schema->metadata, &root.metadata) ||
        !fill_children(memory, schema->fields, schema->field_count, &root)) {
        c_memory_destroy(memory);
        return c_no_memory(err);
    }
    *out_schema = root;
    return STATUS_OK;
}

/* ---- in ---- */

enum { TEXT_BYTES_MAX = 4096 };

static enum status invalid(const struct schema_making *making, const char *what)
{
    return error_set(making->err, STATUS_INVALID, "arrow: %s", what);
}

/* A text's bytes, or more than `bytes_max` of them. */
static struct span text_within(const char *text, size_t bytes_max)
{
    return span_of(text, text ? strnlen(text, bytes_max + 1) : 0);
}

static bool begins_with(struct span text, const char *prefix)
{
    return text.length >= strlen(prefix) && memcmp(text.data, prefix, strlen(prefix)) == 0;
}

/* The numbers behind the colon, at most `count` of them; how many there are, or 0. */
static size_t parse_numbers(struct span format, int64_t *out_numbers, size_t count)
{
    const char *text = (const char *)format.data, *end = text + format.length;
    const char *at = memchr(text, ':', format.length);
    for (size_t i = 0; at && i < count; i++) {
        const char *start = at + 1;
        at = memchr(start, ',', (size_t)(end - start));
        if (!parse_i64(start, (size_t)((at ? at : end) - start), &out_numbers[i]))
            return 0;
        if (!at)
            return i + 1;
    }
    return 0;
}

static enum status refuse(const struct schema_making *making, const struct arrow_field *field,
                          struct span format)
{
    if (begins_with(format, "+u"))
        return type_refuse(making, field, "type union is not read");
    return error_set(making->err, STATUS_UNSUPPORTED, "arrow: column %.100s: a type of format %.*s",
                     field->name, (int)size_min(format.length, 20), (const char *)format.data);
}

/* Formats that hold numbers, a unit, a zone. */
static enum status set_by_parts(const struct schema_making *making, struct span format,
                                struct arrow_field *field, struct arrow_origin *origin)
{
    int64_t numbers[3] = {0, 0, 128};
    size_t count = parse_numbers(format, numbers, COUNT_OF(numbers));
    const char *unit = format.length > 2 ? memchr(units, format.data[2], sizeof units - 1) : NULL;
    int64_t unit_number = unit ? unit - units : -1;
    if (begins_with(format, "d:") && count >= 2)
        return type_set_decimal(making, field, origin, numbers[0], numbers[1], numbers[2]);
    if (begins_with(format, "w:") && count == 1)
        return type_set_fixed(making, field, numbers[0]);
    if (begins_with(format, "+w:") && count == 1)
        return type_set_fixed_list(making, field, origin, numbers[0]);
    if (begins_with(format, "tt") && unit && format.length == 3)
        return type_set_time(making, field, origin, unit_number,
                             unit_number <= ARROW_MILLIS ? 32 : 64);
    if (begins_with(format, "tD") && unit && format.length == 3)
        return type_set_duration(making, field, origin, unit_number);
    if (begins_with(format, "ts") && unit && format.length >= 4 && format.data[3] == ':')
        return type_set_timestamp(making, field, origin, unit_number,
                                  span_of(format.data + 4, format.length - 4));
    return refuse(making, field, format);
}

static const struct format *find_row(struct span format)
{
    for (size_t i = 0; i < COUNT_OF(formats); i++)
        if (span_equal(format, span_of_text(formats[i].text)))
            return &formats[i];
    return NULL;
}

static enum status set_type(const struct schema_making *making, const struct ArrowSchema *schema,
                            struct arrow_field *field, struct arrow_origin *origin)
{
    enum { FORMAT_BYTES_MAX = 512 };
    struct span format = text_within(schema->format, FORMAT_BYTES_MAX);
    const struct format *row = find_row(format);
    if (format.length == 0 || format.length > FORMAT_BYTES_MAX)
        return invalid(making, "a column without a format, or with an endless one");
    if (!row)
        return set_by_parts(making, format, field, origin);
    if (row->kind != ARROW_ORIGIN_SAME)
        return type_keep(making, field, origin, row->type, row->width, row->kind);
    field->type = row->type;
    return STATUS_OK;
}

/* Of a dictionary, whose own format is that of its indices. */
static enum status set_dictionary(const struct schema_making *making,
                                  const struct ArrowSchema *schema, struct arrow_field *field,
                                  struct arrow_origin *origin)
{
    const struct format *row = find_row(text_within(schema->format, 1));
    bool is_plain = row && (row->type == ARROW_INT32 || row->type == ARROW_INT64);
    if (!is_plain && (!row || (row->kind != ARROW_ORIGIN_INT && row->kind != ARROW_ORIGIN_UINT)))
        return invalid(making, "a dictionary whose indices are no integers");
    if (schema->n_children || !schema->dictionary->release)
        return invalid(making, "a damaged dictionary");
    if (schema->dictionary->dictionary)
        return type_refuse(making, field, "a dictionary of a dictionary");
    int64_t bits = !is_plain ? row->width * 8 : row->type == ARROW_INT32 ? 32 : 64;
    field->is_dictionary = true;
    origin->is_ordered = making->takes_origins && schema->flags & ARROW_FLAG_DICTIONARY_ORDERED;
    return field_set_index(making, field, origin, bits, row->kind != ARROW_ORIGIN_UINT);
}

static enum status take_text(const struct schema_making *making, const char **inout_at,
                             struct span *out)
{
    int32_t length = (int32_t)get_le32(*inout_at);
    if (length < 0)
        return invalid(making, "damaged metadata");
    *out = span_of(*inout_at + 4, (size_t)length);
    *inout_at += 4 + (size_t)length;
    return STATUS_OK;
}

/* Pairs of a field, or with `metadata` of the schema. */
static enum status set_metadata(const struct schema_making *making,
                                const struct ArrowSchema *schema, struct arrow_field *field,
                                struct arrow_origin *origin, struct arrow_metadata *metadata)
{
    const char *at = schema->metadata;
    if (!at)
        return STATUS_OK;
    int32_t count = (int32_t)get_le32(at);
    if (count < 0)
        return invalid(making, "damaged metadata");
    at += 4;
    for (int32_t i = 0; i < count; i++) {
        struct span key, text;
        TRY(take_text(making, &at, &key));
        TRY(take_text(making, &at, &text));
        TRY(metadata ? schema_set_metadata(making, metadata, key, text)
                     : field_set_metadata(making, field, origin, key, text));
    }
    return STATUS_OK;
}

static enum status read_fields(struct schema_making *making, const struct ArrowSchema *parent,
                               uint32_t depth, struct arrow_field **out_fields,
                               uint32_t *out_count);

/* The fields below one: of a map those of the struct of its entries, which our schemas leave out.
 */
static enum status read_children(struct schema_making *making, const struct ArrowSchema *schema,
                                 uint32_t depth, struct arrow_field *field)
{
    const struct ArrowSchema *parent = schema;
    enum arrow_layout layout = type_layout(field->type);
    if (layout != LAYOUT_LIST && layout != LAYOUT_STRUCT)
        return schema->n_children ? invalid(making, "a column with children that has none")
                                  : STATUS_OK;
    if (layout == LAYOUT_LIST && (schema->n_children != 1 || !schema->children))
        return invalid(making, "a list or map without its one child");
    if (field->type == ARROW_MAP) {
        parent = schema->children[0];
        if (!parent || !parent->release || parent->dictionary || parent->n_children != 2 ||
            !span_equal(text_within(parent->format, 2), span_of_text("+s")))
            return invalid(making, "a map whose entries are not pairs");
    }
    TRY(read_fields(making, parent, depth, &field->children, &field->child_count));
    if (field->type == ARROW_MAP)
        field->children[0].is_nullable = false; /* whatever was declared, null keys are refused */
    return STATUS_OK;
}

static enum status read_field(struct schema_making *making, const struct ArrowSchema *schema,
                              uint32_t depth, struct arrow_field *field);

static bool has_format(const struct ArrowSchema *schema, const char *format)
{
    return span_equal(text_within(schema->format, strlen(format)), span_of_text(format));
}

/* Runs of equal values become a column of those values; its name and metadata stay. */
static enum status read_run_ends(struct schema_making *making, const struct ArrowSchema *schema,
                                 uint32_t depth, struct arrow_field *field)
{
    if (schema->n_children != 2 || !schema->children || schema->dictionary)
        return invalid(making, "runs without their ends or values");
    const struct ArrowSchema *ends = schema->children[0], *values = schema->children[1];
    if (!ends || !ends->release || ends->dictionary)
        return invalid(making, "runs without their ends");
    int64_t bits = has_format(ends, "s")   ? 16
                   : has_format(ends, "i") ? 32
                   : has_format(ends, "l") ? 64
                                           : 0;
    if (bits == 0)
        return invalid(making, "ends of runs that are no signed integers");
    if (values && values->release && has_format(values, "+r"))
        return error_set(making->err, STATUS_UNSUPPORTED, "arrow: runs of runs");
    TRY(read_field(making, values, depth, field));
    TRY(field_set_name(making, field, text_within(schema->name, TEXT_BYTES_MAX)));
    struct arrow_origin origin = {.kind = ARROW_ORIGIN_SAME};
    if (field->origin)
        origin = *field->origin;
    TRY(type_set_run_ends(making, field, &origin, bits));
    TRY(set_metadata(making, schema, field, &origin, NULL));
    return field_keep_origin(making, field, &origin);
}

static enum status read_field(struct schema_making *making, const struct ArrowSchema *schema,
                              uint32_t depth, struct arrow_field *field)
{
    struct arrow_origin origin = {.kind = ARROW_ORIGIN_SAME};
    if (!schema || !schema->release)
        return invalid(making, "a column that is not there or was released");
    if (has_format(schema, "+r"))
        return read_run_ends(making, schema, depth, field);
    const struct ArrowSchema *values = schema->dictionary ? schema->dictionary : schema;
    TRY(field_set_name(making, field, text_within(schema->name, TEXT_BYTES_MAX)));
    field->is_nullable = schema->flags & ARROW_FLAG_NULLABLE;
    if (schema->dictionary)
        TRY(set_dictionary(making, schema, field, &origin));
    TRY(set_type(making, values, field, &origin));
    origin.has_sorted_keys = making->takes_origins && field->type == ARROW_MAP &&
                             (values->flags & ARROW_FLAG_MAP_KEYS_SORTED);
    if (schema->dictionary)
        TRY(set_metadata(making, values, field, &origin, NULL));
    TRY(set_metadata(making, schema, field, &origin, NULL));
    TRY(field_keep_origin(making, field, &origin));
    return read_children(making, values, depth + 1, field);
}

static enum status read_fields(struct schema_making *making, const struct ArrowSchema *parent,
                               uint32_t depth, struct arrow_field **out_fields, uint32_t *out_count)
{
    struct arrow_field *fields;
    int64_t count = parent->n_children;
    if (count < 0 || count > UINT32_MAX || (count && !parent->children))
        return invalid(making, "a bad number of columns");
    TRY(fields_alloc(making, (uint32_t)count, depth, &fields));
    for (int64_t i = 0; i < count; i++)
        TRY(read_field(making, parent->children[i], depth, &fields[i]));
    *out_fields = fields;
    *out_count = (uint32_t)count;
    return STATUS_OK;
}

enum status arrow_c_import_schema(const struct ArrowSchema *schema,
                                  const struct arrow_limits *limits, struct arena *arena,
                                  struct arrow_schema *out_schema, struct error *err)
{
    struct arrow_schema result = {0};
    struct schema_making making = {.limits = limits,
                                   .arena = arena,
                                   .err = err,
                                   .takes_origins = true,
                                   .fields_left = limits->field_count_max};
    if (!schema->release)
        return invalid(&making, "a schema that was released");
    if (schema->dictionary || !span_equal(text_within(schema->format, 2), span_of_text("+s")))
        return invalid(&making, "a schema that is not a struct of columns");
    TRY(set_metadata(&making, schema, NULL, NULL, &result.metadata));
    TRY(read_fields(&making, schema, 1, &result.fields, &result.field_count));
    *out_schema = result;
    return STATUS_OK;
}
