/* SPDX-License-Identifier: Apache-2.0
 *
 * Records of a container file into Arrow batches. What is wanted is bound to what the file has
 * once; a record then goes down that plan.
 */
#include "format/avro/arrow_internal.h"

enum { BATCH_ROWS = 16384, BATCH_BYTES = 32 << 20 };

/* What AVRO_RECORD_VALUES_MAX values take, texts of them too. */
static const size_t record_bytes_max = (size_t)3 << 30;

/* A wanted field and where its values come from. */
struct column {
    const struct arrow_field *field;
    const struct avro_type *type; /* of what is not null; NULL: the file has it not */
    uint32_t place;               /* among the items of the record around it */
    struct column *children;      /* as the field's */
};

struct avro_rows {
    struct avro_reader *reader;
    struct avro_rows_options options;
    struct arrow_schema schema; /* of the batches */
    struct arrow_field root;    /* the same as a struct */
    struct arrow_field file;    /* what the file has, as a struct */
    struct column column;       /* of the root */
    bool is_bare;               /* the records are no records: one column has them */
    struct arrow_builder builder;
    struct arena arena;   /* of schema and plan */
    struct arena records; /* of the record at hand */
};

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "Avro: no memory for rows");
}

static enum status wrong(const struct arrow_field *field, const char *what, struct error *err)
{
    return error_set(err, STATUS_INVALID, "Avro: column %.100s: %s", field->name, what);
}

/* ---- binding ---- */

/* Whether values of `from` can be given as `to`. */
static bool can_become(const struct arrow_field *from, const struct arrow_field *to)
{
    if (from->type == to->type && from->byte_width == to->byte_width)
        return arrow_origins_equal(from->origin, to->origin) && from->is_instant == to->is_instant;
    if (from->origin || to->origin)
        return false;
    switch (from->type) {
    case ARROW_NULL:
        return to->is_nullable;
    case ARROW_INT32:
        return to->type == ARROW_INT64 || to->type == ARROW_FLOAT || to->type == ARROW_DOUBLE;
    case ARROW_INT64:
        return to->type == ARROW_FLOAT || to->type == ARROW_DOUBLE;
    case ARROW_FLOAT:
        return to->type == ARROW_DOUBLE;
    case ARROW_UTF8:
        return to->type == ARROW_BINARY;
    case ARROW_BINARY:
        return to->type == ARROW_UTF8;
    default:
        return false;
    }
}

/* `fields` are those of the file's own schema for a record's or map's `theirs`. */
static const struct arrow_field *find(const struct avro_rows *rows,
                                      const struct arrow_field *wanted,
                                      const struct arrow_field *theirs, uint32_t *inout_place)
{
    uint32_t count = theirs->child_count, first = *inout_place < count ? *inout_place : 0;
    for (uint32_t i = 0; i < count; i++) { /* most stand at the same place as theirs */
        uint32_t place = first + i < count ? first + i : first + i - count;
        const struct arrow_field *field = &theirs->children[place];
        *inout_place = place;
        if (rows->options.binds_by_id && wanted->field_id ? field->field_id == wanted->field_id
                                                          : strcmp(field->name, wanted->name) == 0)
            return field;
    }
    return NULL;
}

static enum status bind(struct avro_rows *rows, const struct arrow_field *wanted,
                        const struct arrow_field *theirs, const struct avro_type *type,
                        struct column *column, struct error *err);

/* The type of a union's member. */
static const struct avro_type *member_type(const struct avro_type *type, uint32_t member)
{
    uint32_t at = 0;
    for (uint32_t left = member;; at++) {
        if (type->fields[at].type->kind != AVRO_NULL && left-- == 0)
            return type->fields[at].type;
    }
}

static const struct avro_type *child_type(const struct avro_type *type, uint32_t place)
{
    return type->kind == AVRO_UNION ? member_type(type, place)
           : avro_is_map(type)      ? avro_map_fields(type)[place].type
                                    : type->fields[place].type;
}

/* Binds the children of a struct, list or map. */
static enum status bind_children(struct avro_rows *rows, const struct arrow_field *theirs,
                                 struct column *column, struct error *err)
{
    const struct arrow_field *wanted = column->field;
    column->children =
        arena_alloc_zero(&rows->arena, (size_t)wanted->child_count + 1, sizeof *column->children);
    if (!column->children)
        return out_of_memory(err);
    for (uint32_t i = 0; i < wanted->child_count; i++) {
        struct column *child = &column->children[i];
        const struct arrow_field *found = &theirs->children[i];
        child->place = i;
        if (wanted->type == ARROW_STRUCT)
            found = find(rows, &wanted->children[i], theirs, &child->place);
        const struct avro_type *type = NULL;
        if (found)
            type = rows->is_bare && theirs == &rows->file ? avro_reader_type(rows->reader)
                                                          : child_type(column->type, child->place);
        TRY(bind(rows, &wanted->children[i], found, type, child, err));
    }
    return STATUS_OK;
}

/* `theirs` is the file's field as Arrow; NULL: there is none. */
static enum status bind(struct avro_rows *rows, const struct arrow_field *wanted,
                        const struct arrow_field *theirs, const struct avro_type *type,
                        struct column *column, struct error *err)
{
    bool is_nullable;
    column->field = wanted;
    if (!theirs)
        return wanted->is_nullable ? STATUS_OK
                                   : wrong(wanted, "required, and not in the file", err);
    if (!can_become(theirs, wanted))
        return wrong(wanted, "another type than is wanted", err);
    column->type = avro_some_type(type, &is_nullable);
    return wanted->child_count ? bind_children(rows, theirs, column, err) : STATUS_OK;
}

/* ---- values ---- */

static enum status append(const struct column *column, const struct avro_value *value,
                          struct arrow_builder *builder, struct error *err);

/* Two's complement, big-endian of any length, as little-endian of `width`. */
static bool decimal_bytes(struct span from, uint8_t *to, size_t width)
{
    uint8_t sign = from.length && from.data[0] & 0x80 ? 0xff : 0;
    for (; from.length > width; from = span_of(from.data + 1, from.length - 1))
        if (from.data[0] != sign)
            return false;
    if (from.length == width && (from.data[0] & 0x80) != (sign & 0x80))
        return false;
    memset(to, sign, width);
    for (size_t i = 0; i < from.length; i++)
        to[i] = from.data[from.length - 1 - i];
    return true;
}

static enum status append_fixed(const struct column *column, const struct avro_value *value,
                                struct arrow_builder *builder, struct error *err)
{
    enum { WIDTH_MAX = 32 };
    uint8_t bytes[WIDTH_MAX];
    const struct arrow_field *field = column->field;
    size_t width = (size_t)field->byte_width;
    if (column->type->kind == AVRO_INT || column->type->kind == AVRO_LONG) {
        put_le64(bytes, (uint64_t)value->integer);
        arrow_append_bytes(builder, bytes, width);
    } else if (field->origin && field->origin->kind == ARROW_ORIGIN_DECIMAL) {
        if (!decimal_bytes(value->bytes, bytes, width))
            return wrong(field, "a decimal of too many bytes", err);
        arrow_append_bytes(builder, bytes, width);
    } else {
        arrow_append_bytes(builder, value->bytes.data, width);
    }
    return STATUS_OK;
}

static enum status append_text(const struct column *column, const struct avro_value *value,
                               struct arrow_builder *builder, struct error *err)
{
    struct span text = value->bytes;
    if (column->type->kind == AVRO_ENUM)
        text = span_of_text(column->type->symbols[value->integer]);
    if (column->field->type == ARROW_UTF8 && !utf8_is_valid(text.data, text.length))
        return wrong(column->field, "text that is no UTF-8", err);
    arrow_append_bytes(builder, text.data, text.length);
    return STATUS_OK;
}

/* An Avro map's items are key, value, key, ...; an array of records stands for one, too. */
static enum status append_map(const struct column *column, const struct avro_value *value,
                              struct arrow_builder *builder, struct error *err)
{
    bool is_flat = column->type->kind == AVRO_MAP;
    uint32_t count = is_flat ? value->count / 2 : value->count;
    for (uint32_t i = 0; i < count; i++) {
        const struct avro_value *pair =
            is_flat ? value->items + (size_t)i * 2 : value->items[i].items;
        for (uint32_t side = 0; side < 2; side++)
            TRY(append(&column->children[side], &pair[side], &builder->children[side], err));
    }
    arrow_close_list(builder);
    return STATUS_OK;
}

static enum status append_struct(const struct column *column, const struct avro_value *value,
                                 struct arrow_builder *builder, struct error *err)
{
    for (uint32_t i = 0; i < column->field->child_count; i++) {
        const struct column *child = &column->children[i];
        TRY(append(child, child->type ? &value->items[child->place] : NULL, &builder->children[i],
                   err));
    }
    arrow_close_struct(builder);
    return STATUS_OK;
}

/* One member has the value; the others are null. */
static enum status append_member(const struct column *column, const struct avro_value *value,
                                 struct arrow_builder *builder, struct error *err)
{
    uint32_t member = 0;
    for (uint32_t i = 0; column->type->fields[i].type != value->type; i++)
        member += column->type->fields[i].type->kind != AVRO_NULL;
    for (uint32_t i = 0; i < column->field->child_count; i++) {
        const struct column *child = &column->children[i];
        bool has_it = child->type && child->place == member;
        TRY(append(child, has_it ? value : NULL, &builder->children[i], err));
    }
    arrow_close_struct(builder);
    return STATUS_OK;
}

static enum status append_some(const struct column *column, const struct avro_value *value,
                               struct arrow_builder *builder, struct error *err)
{
    bool is_real = column->type->kind == AVRO_FLOAT || column->type->kind == AVRO_DOUBLE;
    double real = is_real ? value->real : (double)value->integer;
    switch (column->field->type) {
    case ARROW_BOOL:
        arrow_append_bool(builder, value->integer != 0);
        return STATUS_OK;
    case ARROW_INT32:
    case ARROW_DATE32:
        arrow_append_i32(builder, (int32_t)value->integer);
        return STATUS_OK;
    case ARROW_INT64:
    case ARROW_TIMESTAMP_US:
        arrow_append_i64(builder, value->integer);
        return STATUS_OK;
    case ARROW_FLOAT:
        arrow_append_float(builder, is_real ? (float)real : (float)value->integer);
        return STATUS_OK;
    case ARROW_DOUBLE:
        arrow_append_double(builder, real);
        return STATUS_OK;
    case ARROW_UTF8:
    case ARROW_BINARY:
        return append_text(column, value, builder, err);
    case ARROW_FIXED:
        return append_fixed(column, value, builder, err);
    case ARROW_MAP:
        return append_map(column, value, builder, err);
    case ARROW_STRUCT:
        return column->type->kind == AVRO_UNION ? append_member(column, value, builder, err)
                                                : append_struct(column, value, builder, err);
    case ARROW_LIST:
        for (uint32_t i = 0; i < value->count; i++)
            TRY(append(&column->children[0], &value->items[i], &builder->children[0], err));
        arrow_close_list(builder);
        return STATUS_OK;
    default:
        arrow_append_null(builder);
        return STATUS_OK;
    }
}

/* `value` NULL: the file has no such field. */
static enum status append(const struct column *column, const struct avro_value *value,
                          struct arrow_builder *builder, struct error *err)
{
    if (value && value->type->kind != AVRO_NULL)
        return append_some(column, value, builder, err);
    if (!column->field->is_nullable)
        return wrong(column->field, "null where none is wanted", err);
    arrow_append_null(builder);
    return STATUS_OK;
}

/* ---- rows ---- */

static struct arrow_field struct_of(const struct arrow_schema *schema)
{
    return (struct arrow_field){.name = "record",
                                .type = ARROW_STRUCT,
                                .children = schema->fields,
                                .child_count = schema->field_count};
}

static enum status make_plan(struct avro_rows *rows, struct error *err)
{
    const struct avro_type *type = avro_reader_type(rows->reader);
    struct arrow_schema file;
    TRY(avro_arrow_schema(type, &rows->arena, &file, err));
    rows->is_bare = type->kind != AVRO_RECORD;
    rows->schema = rows->options.schema ? *rows->options.schema : file;
    rows->file = struct_of(&file);
    rows->root = struct_of(&rows->schema);
    rows->column = (struct column){.field = &rows->root, .type = type};
    TRY(bind_children(rows, &rows->file, &rows->column, err));
    return arrow_builder_init(&rows->builder, &rows->root, err);
}

enum status avro_rows_open(struct byte_source source, const struct avro_limits *limits,
                           const struct avro_rows_options *options, struct avro_rows **out_rows,
                           struct error *err)
{
    enum status status;
    struct avro_rows *rows = mem_alloc_zero(1, sizeof *rows);
    if (!rows)
        return out_of_memory(err);
    if (options)
        rows->options = *options;
    if (!rows->options.batch_rows)
        rows->options.batch_rows = BATCH_ROWS;
    arena_init(&rows->records, record_bytes_max);
    TRY_OR_DONE(status, avro_reader_open(source, limits, &rows->reader, err));
    if (rows->options.reads_as.length)
        TRY_OR_DONE(status, avro_reader_resolve(rows->reader, rows->options.reads_as, err));
    TRY_OR_DONE(status, make_plan(rows, err));
    *out_rows = rows;
    return STATUS_OK;
done:
    avro_rows_close(rows);
    return status;
}

void avro_rows_close(struct avro_rows *rows)
{
    if (!rows)
        return;
    arrow_builder_deinit(&rows->builder);
    avro_reader_destroy(rows->reader);
    arena_deinit(&rows->records);
    arena_deinit(&rows->arena);
    mem_free(rows);
}

const struct arrow_schema *avro_rows_schema(const struct avro_rows *rows)
{
    return &rows->schema;
}

static enum status append_record(struct avro_rows *rows, struct error *err)
{
    const struct avro_value *record;
    arena_clear(&rows->records);
    TRY(avro_reader_next(rows->reader, &rows->records, &record, err));
    if (!rows->is_bare)
        return append(&rows->column, record, &rows->builder, err);
    for (uint32_t i = 0; i < rows->root.child_count; i++) {
        const struct column *column = &rows->column.children[i];
        TRY(append(column, column->type ? record : NULL, &rows->builder.children[i], err));
    }
    arrow_close_struct(&rows->builder);
    return STATUS_OK;
}

enum status avro_rows_next(struct avro_rows *rows, struct arrow_batch *out_batch, struct error *err)
{
    enum { LOOK_ROWS = 256 }; /* between looks at the batch's size */
    enum status status = STATUS_OK;
    arrow_builder_clear(&rows->builder);
    while (rows->builder.length < rows->options.batch_rows) {
        status = append_record(rows, err);
        if (status != STATUS_OK)
            break;
        bool is_time = rows->builder.length % LOOK_ROWS == 0;
        if (is_time && arrow_builder_bytes(&rows->builder) > BATCH_BYTES)
            break;
    }
    if (status != STATUS_OK && (status != STATUS_NOT_FOUND || rows->builder.length == 0))
        return status;
    if (arrow_builder_failed(&rows->builder))
        return error_set(err, STATUS_LIMIT, "Avro: a batch of more than 2 GiB, or no memory");
    return arrow_builder_batch(&rows->builder, &rows->schema, out_batch, err);
}
