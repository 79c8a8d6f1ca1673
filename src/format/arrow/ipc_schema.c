/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrow IPC, reading: the framing of messages, and schemas. Everything here faces bytes from
 * outside.
 */
#include "format/arrow/ipc_internal.h"

struct arrow_limits arrow_limits_default(void)
{
    return (struct arrow_limits){.metadata_bytes_max = 16u << 20,
                                 .body_bytes_max = 1u << 30,
                                 .field_count_max = 4096,
                                 .depth_max = ARROW_DEPTH_MAX};
}

static enum status invalid(struct error *err, const char *what)
{
    return error_set(err, STATUS_INVALID, "arrow: %s", what);
}

enum status ipc_prefix_read(const uint8_t prefix[IPC_CONTINUATION_BYTES], uint64_t left,
                            const struct arrow_limits *limits, uint32_t *out_metadata_bytes,
                            struct error *err)
{
    if (get_le32(prefix) != UINT32_MAX)
        return invalid(err, "no message here");
    uint32_t metadata_bytes = get_le32(prefix + 4);
    if (metadata_bytes == 0) {
        if (left)
            return invalid(err, "bytes behind the end of the stream");
        return error_set(err, STATUS_NOT_FOUND, "arrow: end of stream");
    }
    if (metadata_bytes > limits->metadata_bytes_max)
        return error_set(err, STATUS_TOO_LARGE, "arrow: metadata of %u bytes", metadata_bytes);
    if (metadata_bytes % 8 || metadata_bytes > left)
        return invalid(err, "message cut off");
    *out_metadata_bytes = metadata_bytes;
    return STATUS_OK;
}

enum status ipc_metadata_read(struct span metadata, uint64_t left,
                              const struct arrow_limits *limits, struct ipc_message *out_message,
                              struct error *err)
{
    struct ipc_message message = {.flat = {.data = metadata.data,
                                           .length = metadata.length,
                                           .tables_left = limits->field_count_max * 8 + 1024}};
    struct flat_reader *flat = &message.flat;
    struct flat_table root = flat_root(flat);
    int64_t version = flat_number(flat, &root, 0, 2, 0);
    message.type = flat_number(flat, &root, 1, 1, 0);
    message.root = root;
    message.header = flat_child(flat, &root, 2);
    int64_t body_bytes = flat_number(flat, &root, 3, 8, 0);
    if (flat->failed || !message.header.at)
        return invalid(err, "damaged metadata");
    if (version != IPC_METADATA_V5 && version != IPC_METADATA_V4)
        return error_set(err, STATUS_UNSUPPORTED, "arrow: metadata version %d", (int)version);
    if (body_bytes < 0 || (uint64_t)body_bytes > left)
        return invalid(err, "body cut off");
    message.body = span_of(NULL, (size_t)body_bytes);
    message.bytes = IPC_CONTINUATION_BYTES + metadata.length + (size_t)body_bytes;
    *out_message = message;
    return STATUS_OK;
}

enum status ipc_message_read(struct span bytes, const struct arrow_limits *limits,
                             struct ipc_message *out_message, struct error *err)
{
    uint32_t metadata_bytes;
    if (bytes.length == 0)
        return error_set(err, STATUS_NOT_FOUND, "arrow: end of stream");
    if (bytes.length < IPC_CONTINUATION_BYTES)
        return invalid(err, "message cut off");
    size_t left = bytes.length - IPC_CONTINUATION_BYTES;
    TRY(ipc_prefix_read(bytes.data, left, limits, &metadata_bytes, err));
    struct span metadata = span_of(bytes.data + IPC_CONTINUATION_BYTES, metadata_bytes);
    TRY(ipc_metadata_read(metadata, left - metadata_bytes, limits, out_message, err));
    out_message->body.data = metadata.data + metadata.length;
    return STATUS_OK;
}

/* ---- schema ---- */

static enum status read_index_type(const struct schema_reader *reader,
                                   const struct flat_table *encoding,
                                   const struct arrow_field *field, struct arrow_origin *origin)
{
    struct flat_table type = flat_child(reader->flat, encoding, 1);
    if (!type.at)
        return STATUS_OK;
    int64_t bits = flat_number(reader->flat, &type, 0, 4, 0);
    bool is_signed = flat_number(reader->flat, &type, 1, 1, 0) != 0;
    return field_set_index(&reader->making, field, origin, bits, is_signed);
}

static enum status read_dictionary(struct schema_reader *reader, const struct flat_table *table,
                                   struct arrow_field *field, struct arrow_origin *origin)
{
    struct flat_reader *flat = reader->flat;
    struct flat_table encoding = flat_child(flat, table, 4);
    if (!encoding.at)
        return flat->failed ? invalid(reader->making.err, "damaged dictionary encoding")
                            : STATUS_OK;
    int64_t id = flat_number(flat, &encoding, 0, 8, 0);
    TRY(read_index_type(reader, &encoding, field, origin));
    origin->is_ordered = reader->making.takes_origins && flat_number(flat, &encoding, 2, 1, 0) != 0;
    if (id < 0 || id == INT64_MAX)
        return type_refuse(&reader->making, field, "this dictionary id");
    for (int64_t i = 0; i < reader->dictionaries; i++)
        if (reader->ids[i] == id)
            return type_refuse(&reader->making, field, "a dictionary shared with another column");
    int64_t ordinal = reader->dictionaries++;
    reader->ids[ordinal] = id;
    field->is_dictionary = true;
    field->dictionary_key = id == ordinal ? 0 : id + 1;
    return STATUS_OK;
}

static enum status read_metadata(struct schema_reader *reader, const struct flat_table *table,
                                 struct arrow_field *field, struct arrow_origin *origin)
{
    struct flat_reader *flat = reader->flat;
    struct flat_vector pairs = flat_vector(flat, table, 6, 4);
    for (uint32_t i = 0; !flat->failed && i < pairs.count; i++) {
        struct flat_table pair = flat_element(flat, &pairs, i);
        TRY(field_set_metadata(&reader->making, field, origin, flat_text(flat, &pair, 0),
                               flat_text(flat, &pair, 1)));
    }
    return STATUS_OK;
}

static enum status read_field(struct schema_reader *reader, const struct flat_table *table,
                              uint32_t depth, struct arrow_field *field);

static enum status read_fields(struct schema_reader *reader, const struct flat_vector *vector,
                               uint32_t depth, struct arrow_field **out_fields)
{
    struct arrow_field *fields;
    TRY(fields_alloc(&reader->making, vector->count, depth, &fields));
    for (uint32_t i = 0; i < vector->count; i++) {
        struct flat_table table = flat_element(reader->flat, vector, i);
        TRY(read_field(reader, &table, depth, &fields[i]));
    }
    *out_fields = fields;
    return STATUS_OK;
}

/* A map's one child is the struct of its entries, which our schemas leave out. */
static enum status skip_entries(struct schema_reader *reader, struct flat_vector *children)
{
    struct flat_reader *flat = reader->flat;
    if (children->count != 1)
        return invalid(reader->making.err, "a map without entries");
    struct flat_table entries = flat_element(flat, children, 0);
    int64_t type = flat_number(flat, &entries, 2, 1, 0);
    *children = flat_vector(flat, &entries, 5, 4);
    if (flat->failed || type != IPC_STRUCT || children->count != 2)
        return invalid(reader->making.err, "a map whose entries are not pairs");
    return STATUS_OK;
}

/* Runs of equal values become a column of those values; its name and metadata stay. */
static enum status read_run_ends(struct schema_reader *reader, const struct flat_table *table,
                                 uint32_t depth, struct arrow_field *field)
{
    struct flat_reader *flat = reader->flat;
    struct flat_vector children = flat_vector(flat, table, 5, 4);
    if (flat->failed || children.count != 2)
        return invalid(reader->making.err, "runs without their ends or values");
    struct flat_table ends = flat_element(flat, &children, 0);
    struct flat_table values = flat_element(flat, &children, 1);
    struct flat_table type = flat_child(flat, &ends, 3);
    int64_t bits = flat_number(flat, &type, 0, 4, 0);
    if (flat->failed || flat_number(flat, &ends, 2, 1, 0) != IPC_INT ||
        flat_child(flat, &ends, 4).at || flat_number(flat, &type, 1, 1, 0) == 0)
        return invalid(reader->making.err, "ends of runs that are no signed integers");
    if (flat_number(flat, &values, 2, 1, 0) == IPC_RUN_END_ENCODED)
        return error_set(reader->making.err, STATUS_UNSUPPORTED, "arrow: runs of runs");
    TRY(read_field(reader, &values, depth, field));
    TRY(field_set_name(&reader->making, field, flat_text(flat, table, 0)));
    struct arrow_origin origin = {.kind = ARROW_ORIGIN_SAME};
    if (field->origin)
        origin = *field->origin;
    TRY(type_set_run_ends(&reader->making, field, &origin, bits));
    TRY(read_metadata(reader, table, field, &origin));
    return field_keep_origin(&reader->making, field, &origin);
}

static enum status read_field(struct schema_reader *reader, const struct flat_table *table,
                              uint32_t depth, struct arrow_field *field)
{
    struct flat_reader *flat = reader->flat;
    if (flat_number(flat, table, 2, 1, 0) == IPC_RUN_END_ENCODED)
        return read_run_ends(reader, table, depth, field);
    struct arrow_origin origin = {.kind = ARROW_ORIGIN_SAME};
    TRY(field_set_name(&reader->making, field, flat_text(flat, table, 0)));
    field->is_nullable = flat_number(flat, table, 1, 1, 0) != 0;
    TRY(ipc_type_read(reader, table, field, &origin));
    TRY(read_dictionary(reader, table, field, &origin));
    TRY(read_metadata(reader, table, field, &origin));
    TRY(field_keep_origin(&reader->making, field, &origin));
    struct flat_vector children = flat_vector(flat, table, 5, 4);
    if (field->type == ARROW_MAP)
        TRY(skip_entries(reader, &children));
    enum arrow_layout layout = type_layout(field->type);
    if (flat->failed || (layout != LAYOUT_LIST && layout != LAYOUT_STRUCT && children.count) ||
        (field->type == ARROW_LIST && children.count != 1))
        return invalid(reader->making.err, "damaged column");
    field->child_count = children.count;
    if (children.count)
        TRY(read_fields(reader, &children, depth + 1, &field->children));
    if (field->type == ARROW_MAP)
        field->children[0].is_nullable = false; /* whatever was declared, null keys are refused */
    return STATUS_OK;
}

enum status ipc_metadata_pairs_read(struct schema_reader *reader, const struct flat_table *table,
                                    uint32_t slot, struct arrow_metadata *metadata)
{
    struct flat_reader *flat = reader->flat;
    struct flat_vector pairs = flat_vector(flat, table, slot, 4);
    for (uint32_t i = 0; !flat->failed && i < pairs.count; i++) {
        struct flat_table pair = flat_element(flat, &pairs, i);
        TRY(schema_set_metadata(&reader->making, metadata, flat_text(flat, &pair, 0),
                                flat_text(flat, &pair, 1)));
    }
    return flat->failed ? invalid(reader->making.err, "damaged metadata") : STATUS_OK;
}

enum status ipc_schema_read(struct flat_reader *flat, const struct flat_table *table,
                            const struct arrow_limits *limits, bool takes_origins,
                            struct arena *arena, struct arrow_schema *out_schema, struct error *err)
{
    if (flat_number(flat, table, 0, 2, 0) != 0)
        return error_set(err, STATUS_UNSUPPORTED, "arrow: big-endian data");
    struct flat_vector fields = flat_vector(flat, table, 1, 4);
    struct arrow_schema schema = {.field_count = fields.count};
    struct schema_reader reader = {.flat = flat,
                                   .making = {.limits = limits,
                                              .arena = arena,
                                              .err = err,
                                              .takes_origins = takes_origins,
                                              .fields_left = limits->field_count_max}};
    reader.ids = mem_alloc_zero((size_t)limits->field_count_max + 1, sizeof *reader.ids);
    if (!reader.ids)
        return schema_no_memory(&reader.making);
    enum status status = flat->failed ? invalid(err, "damaged schema")
                                      : read_fields(&reader, &fields, 1, &schema.fields);
    if (status == STATUS_OK)
        status = ipc_metadata_pairs_read(&reader, table, 2, &schema.metadata);
    mem_free(reader.ids);
    if (status != STATUS_OK)
        return status;
    if (flat->failed)
        return invalid(err, "damaged schema");
    *out_schema = schema;
    return STATUS_OK;
}

enum status arrow_ipc_read_schema(struct span bytes, const struct arrow_limits *limits,
                                  struct arena *arena, struct arrow_schema *out_schema,
                                  size_t *out_bytes_read, struct error *err)
{
    struct ipc_message message;
    enum status status = ipc_message_read(bytes, limits, &message, err);
    if (status == STATUS_NOT_FOUND)
        return invalid(err, "no schema");
    if (status != STATUS_OK)
        return status;
    if (message.type != IPC_SCHEMA)
        return invalid(err, "the first message is not a schema");
    TRY(ipc_schema_read(&message.flat, &message.header, limits, false, arena, out_schema, err));
    *out_bytes_read = message.bytes;
    return STATUS_OK;
}
