/* SPDX-License-Identifier: Apache-2.0
 *
 * The Arrow schema that a file's columns had, kept beside Parquet's own under the key ARROW:schema:
 * an encapsulated Schema message in base64, as Arrow's libraries write and read it. It never says
 * how bytes are read: to a column that the file's own schema has it adds what that has no words
 * for, and what does not fit the column is passed over. Source: Arrow's
 * cpp/src/parquet/arrow/schema.cc; there is no other specification.
 */
#include "format/parquet/parquet_internal.h"
#include "format/parquet/reader_internal.h"

static enum status no_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "parquet: no memory for an Arrow schema");
}

static enum arrow_origin_kind kind_of(const struct arrow_field *field)
{
    return field->origin ? field->origin->kind : ARROW_ORIGIN_SAME;
}

static bool is_bytes(const struct arrow_field *field)
{
    return field->type == ARROW_UTF8 || field->type == ARROW_BINARY;
}

/* ---- writing ---- */

/* What other readers answer with an error is said as what they have: list views as lists, intervals
 * of all three parts as the bytes that Parquet has of them, and dictionaries as such of text or
 * bytes alone. */
static void say_simply_one(struct arrow_field *field, struct arrow_origin *origin)
{
    if (origin->kind == ARROW_ORIGIN_LARGE_LIST_VIEW)
        origin->kind = ARROW_ORIGIN_LARGE;
    else if (origin->kind == ARROW_ORIGIN_LIST_VIEW ||
             (origin->kind == ARROW_ORIGIN_VIEW && field->is_dictionary))
        origin->kind = ARROW_ORIGIN_SAME;
    if (origin->kind != ARROW_ORIGIN_MONTH_DAY_NANO)
        return;
    origin->kind = ARROW_ORIGIN_SAME;
    field->byte_width = PARQUET_INTERVAL_BYTES;
}

static enum status say_simply(struct arrow_field *fields, uint32_t count, struct arena *arena,
                              struct error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        struct arrow_field *field = &fields[i];
        TRY(say_simply(field->children, field->child_count, arena, err));
        field->is_dictionary = field->is_dictionary && is_bytes(field);
        field->dictionary_key = 0;
        if (!field->origin)
            continue;
        struct arrow_origin *origin = arena_alloc(arena, sizeof *origin);
        if (!origin)
            return no_memory(err);
        *origin = *field->origin;
        say_simply_one(field, origin);
        field->origin = origin;
    }
    return STATUS_OK;
}

static bool is_same_shape(const struct arrow_field *a, const struct arrow_field *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (a[i].type != b[i].type || a[i].byte_width != b[i].byte_width ||
            a[i].child_count != b[i].child_count || strcmp(a[i].name, b[i].name) != 0 ||
            !is_same_shape(a[i].children, b[i].children, a[i].child_count))
            return false;
    return true;
}

enum status arrow_schema_keep(struct parquet_writer *writer, const struct arrow_schema *schema,
                              struct error *err)
{
    struct arrow_schema said;
    struct buf message = {0}, text = {0};
    if (schema->field_count != writer->given.field_count ||
        !is_same_shape(schema->fields, writer->given.fields, schema->field_count))
        return error_set(err, STATUS_USAGE, "parquet: an Arrow schema of other columns");
    TRY(arrow_schema_copy(schema, &writer->arena, &said, err));
    TRY(say_simply(said.fields, said.field_count, &writer->arena, err));
    enum status status = arrow_ipc_write_schema(&said, &message, err);
    if (status == STATUS_OK && buf_reserve(&text, (message.length + 2) / 3 * 4 + 1)) {
        text.length = base64_encode((char *)text.data, message.data, message.length);
        buf_put_byte(&text, 0);
    }
    if (status == STATUS_OK)
        status = buf_status(&text, "parquet: an Arrow schema", err);
    if (status == STATUS_OK)
        status = parquet_writer_add_metadata(writer, PARQUET_ARROW_SCHEMA_KEY,
                                             (const char *)text.data, err);
    buf_deinit(&message);
    buf_deinit(&text);
    return status;
}

/* ---- reading ---- */

struct merging {
    const struct parquet_file *file;
    struct arena *arena;
    struct error *err;
    uint32_t leaf; /* the next one of the file */
};

/* Indices of fewer bits could name fewer values than the row groups together have, and nobody
 * keeps the values in their order. */
static void take_dictionary(const struct arrow_field *given, struct arrow_field *field,
                            struct arrow_origin *origin)
{
    if (!given->is_dictionary || !is_bytes(field) || given->type != field->type)
        return;
    field->is_dictionary = true;
    if (!given->origin || given->origin->index_bits < 32)
        return;
    origin->index_bits = given->origin->index_bits;
    origin->index_is_unsigned = given->origin->index_is_unsigned;
}

static void take_fixed(struct arrow_field *field, struct arrow_origin *origin,
                       const struct arrow_field *given)
{
    field->type = ARROW_FIXED;
    field->byte_width = given->byte_width;
    origin->kind = kind_of(given);
    origin->unit = given->origin->unit;
}

static bool is_timestamp(const struct arrow_field *field)
{
    return field->type == ARROW_TIMESTAMP_US || kind_of(field) == ARROW_ORIGIN_TIMESTAMP;
}

/* Parquet has no seconds: they are kept in milliseconds. */
static bool were_seconds(const struct arrow_field *field, const struct arrow_field *given)
{
    return kind_of(given) == kind_of(field) && field->origin->unit == ARROW_MILLIS &&
           given->origin->unit == ARROW_SECONDS;
}

static void take_time(const struct arrow_field *given, struct arrow_field *field,
                      struct arrow_origin *origin)
{
    if (is_timestamp(field) && is_timestamp(given) && field->is_instant == given->is_instant) {
        origin->timezone = given->origin ? given->origin->timezone : NULL;
        if (kind_of(field) == ARROW_ORIGIN_TIMESTAMP && were_seconds(field, given))
            origin->unit = ARROW_SECONDS;
    }
    if (kind_of(field) == ARROW_ORIGIN_TIME && were_seconds(field, given))
        origin->unit = ARROW_SECONDS;
    if (field->type == ARROW_DATE32 && kind_of(given) == ARROW_ORIGIN_DATE_MS)
        take_fixed(field, origin, given);
}

static void take_leaf(const struct parquet_leaf *leaf, const struct arrow_field *given,
                      struct arrow_field *field, struct arrow_origin *origin)
{
    enum arrow_origin_kind kind = kind_of(given);
    take_dictionary(given, field, origin);
    take_time(given, field, origin);
    if (is_bytes(field) && given->type == field->type &&
        (kind == ARROW_ORIGIN_LARGE || kind == ARROW_ORIGIN_VIEW))
        origin->kind = kind;
    if (kind == ARROW_ORIGIN_DURATION && leaf->physical == PARQUET_INT64 &&
        field->type == ARROW_INT64 && !field->origin)
        take_fixed(field, origin, given);
    if (kind == ARROW_ORIGIN_DECIMAL && kind_of(field) == kind &&
        given->origin->precision == origin->precision && given->origin->scale == origin->scale)
        field->byte_width = given->byte_width;
}

static void take_list(const struct arrow_field *given, const struct arrow_field *field,
                      struct arrow_origin *origin)
{
    origin->has_sorted_keys = field->type == ARROW_MAP && given->origin->has_sorted_keys;
    if (field->type != ARROW_LIST)
        return;
    origin->kind = given->origin->kind;
    origin->list_size = given->origin->list_size;
}

static enum status merge_fields(struct merging *merging, const struct arrow_field *given,
                                bool have_names, struct arrow_field *fields, uint32_t count);

static enum status merge_field(struct merging *merging, const struct arrow_field *given,
                               struct arrow_field *field, const struct parquet_leaf *leaf)
{
    struct arrow_origin *origin = arena_alloc_zero(merging->arena, 1, sizeof *origin);
    if (!origin)
        return no_memory(merging->err);
    if (field->origin)
        *origin = *field->origin;
    if (leaf)
        take_leaf(leaf, given, field, origin);
    else if (given->origin)
        take_list(given, field, origin);
    if (given->origin) {
        bool is_storage = given->type == field->type && given->byte_width == field->byte_width &&
                          given->origin->kind == origin->kind;
        const char *extension = given->origin->extension;
        if (is_storage && !origin->extension)
            origin->extension = extension;
        /* Of an extension that the column is not, nothing. */
        if (!extension || (origin->extension && strcmp(origin->extension, extension) == 0))
            origin->metadata = given->origin->metadata;
    }
    if (given->origin || field->origin)
        field->origin = origin;
    return STATUS_OK;
}

static enum status merge_nested(struct merging *merging, const struct arrow_field *given,
                                struct arrow_field *field)
{
    bool is_struct = field->type == ARROW_STRUCT;
    if (given && (given->type != field->type || given->child_count != field->child_count))
        given = NULL;
    TRY(merge_fields(merging, given ? given->children : NULL, is_struct, field->children,
                     field->child_count));
    for (uint32_t i = 0; given && !is_struct && i < field->child_count; i++)
        field->children[i].name = given->children[i].name;
    return given ? merge_field(merging, given, field, NULL) : STATUS_OK;
}

/* `given` NULL: nothing is known of them. Parts of lists and maps are told by their place alone. */
static enum status merge_fields(struct merging *merging, const struct arrow_field *given,
                                bool have_names, struct arrow_field *fields, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct arrow_field *field = &fields[i];
        const struct arrow_field *from = given ? &given[i] : NULL;
        if (from && have_names && strcmp(from->name, field->name) != 0)
            from = NULL;
        if (field->child_count) {
            TRY(merge_nested(merging, from, field));
            continue;
        }
        const struct parquet_leaf *leaf = &merging->file->leaves[merging->leaf++];
        if (from && from->child_count == 0)
            TRY(merge_field(merging, from, field, leaf));
    }
    return STATUS_OK;
}

static const char *find_text(const struct parquet_file *file)
{
    for (size_t i = 0; i < file->pair_count; i++)
        if (strcmp(file->pairs[i].key, PARQUET_ARROW_SCHEMA_KEY) == 0)
            return file->pairs[i].value;
    return NULL;
}

/* The schema that a message has, read as the head of a stream. */
static enum status read_message(const struct parquet_file *file, struct span message,
                                struct arena *arena, struct arrow_schema *out_schema,
                                struct error *err)
{
    struct arrow_limits limits = arrow_limits_default();
    struct arrow_file *stream;
    limits.field_count_max = file->limits.element_count_max;
    TRY(arrow_file_open(byte_source_of_span(&message), &limits, &stream, err));
    enum status status = arrow_schema_copy(arrow_file_schema(stream), arena, out_schema, err);
    arrow_file_close(stream);
    return status;
}

enum { PREFIX_BYTES = 8, MESSAGE_ALIGNMENT = 8 }; /* a mark, and how many bytes follow */

/* Some writers leave out the mark in front, some the padding behind. False: it has no length. */
static bool frame_message(uint8_t *message, size_t bytes, size_t *out_bytes)
{
    bool has_mark = bytes >= PREFIX_BYTES && get_le32(message) == UINT32_MAX;
    size_t prefix = has_mark ? PREFIX_BYTES : PREFIX_BYTES / 2;
    if (bytes < prefix || get_le32(message + prefix - 4) > bytes - prefix)
        return false;
    size_t length = get_le32(message + prefix - 4);
    size_t padded = (length + MESSAGE_ALIGNMENT - 1) / MESSAGE_ALIGNMENT * MESSAGE_ALIGNMENT;
    memmove(message + PREFIX_BYTES, message + prefix, length);
    memset(message + PREFIX_BYTES + length, 0, padded - length);
    put_le32(message, UINT32_MAX);
    put_le32(message + 4, (uint32_t)padded);
    *out_bytes = PREFIX_BYTES + padded;
    return true;
}

static enum status read_given(const struct parquet_file *file, const char *text,
                              struct arena *arena, struct arrow_schema *out_schema,
                              struct error *err)
{
    size_t length = strlen(text), bytes;
    uint8_t *message = mem_alloc(length / 4 * 3 + PREFIX_BYTES + MESSAGE_ALIGNMENT);
    enum status status = STATUS_INVALID;
    if (!message)
        return no_memory(err);
    if (base64_decode(message, text, length, &bytes) && frame_message(message, bytes, &bytes))
        status = read_message(file, span_of(message, bytes), arena, out_schema, err);
    mem_free(message);
    return status;
}

enum status parquet_original_schema(const struct parquet_file *file, struct arena *arena,
                                    struct arrow_schema *out_schema, bool *out_was_arrow,
                                    struct error *err)
{
    struct merging merging = {.file = file, .arena = arena, .err = err};
    struct arrow_schema schema, given;
    const char *text = find_text(file);
    TRY(parquet_logical_schema(file, arena, &schema, err));
    enum status status = text ? read_given(file, text, arena, &given, err) : STATUS_NOT_FOUND;
    if (status == STATUS_NO_MEMORY)
        return status;
    bool was_arrow = status == STATUS_OK && given.field_count == schema.field_count;
    if (was_arrow)
        TRY(merge_fields(&merging, given.fields, true, schema.fields, schema.field_count));
    *out_was_arrow = was_arrow;
    *out_schema = schema;
    return STATUS_OK;
}
