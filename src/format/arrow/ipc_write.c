/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrow IPC, writing: messages with their bodies on multiples of 64.
 *
 * A batch is walked twice: once to list nodes and buffers (and to compress), once to write the
 * bytes, because the metadata in front of the body holds every buffer's place.
 */
#include "format/arrow/ipc_internal.h"
#include "format/codec/codec.h"

/* ---- messages ---- */

struct message {
    struct flat_writer flat;
    size_t start;                    /* of the message in the output */
    size_t header_at, body_bytes_at; /* to be patched */
};

static void message_begin(struct message *message, struct buf *out, enum ipc_header type)
{
    struct flat_slot slots[] = {FLAT_SHORT(IPC_METADATA_V5), FLAT_BYTE(type), FLAT_OFFSET,
                                FLAT_LONG(0)};
    buf_pad(out, IPC_CONTINUATION_BYTES);
    message->start = out->length;
    buf_put_le32(out, UINT32_MAX);
    buf_put_le32(out, 0);
    flat_begin(&message->flat, out);
    flat_patch(&message->flat, 0, flat_table(&message->flat, slots, COUNT_OF(slots)));
    message->header_at = slots[2].at;
    message->body_bytes_at = slots[3].at;
}

/* Pads, so that what follows lies on a multiple of 64, and fills in both sizes. */
static void message_end(struct message *message, uint64_t body_bytes)
{
    struct buf *out = message->flat.out;
    buf_pad(out, IPC_BODY_ALIGNMENT);
    if (out->failed)
        return;
    size_t metadata_bytes = out->length - message->start - IPC_CONTINUATION_BYTES;
    put_le32(out->data + message->start + 4, (uint32_t)metadata_bytes);
    put_le64(out->data + message->flat.start + message->body_bytes_at, body_bytes);
}

/* Outputs stay as they were: what was written since `start` goes, and so does a failure of it. */
static void take_back(struct buf *out, size_t start)
{
    buf_truncate(out, start);
    out->failed = false;
}

/* ---- schema ---- */

static size_t write_type(struct flat_writer *flat, const struct arrow_field *field)
{
    switch (field->type) {
    case ARROW_INT32:
    case ARROW_INT64: {
        struct flat_slot slots[] = {FLAT_INT(field->type == ARROW_INT32 ? 32 : 64), FLAT_BYTE(1)};
        return flat_table(flat, slots, COUNT_OF(slots));
    }
    case ARROW_FLOAT:
    case ARROW_DOUBLE: {
        struct flat_slot slots[] = {
            FLAT_SHORT(field->type == ARROW_FLOAT ? IPC_SINGLE : IPC_DOUBLE)};
        return flat_table(flat, slots, COUNT_OF(slots));
    }
    case ARROW_DATE32: {
        struct flat_slot slots[] = {FLAT_SHORT(IPC_DAY)};
        return flat_table(flat, slots, COUNT_OF(slots));
    }
    case ARROW_TIMESTAMP_US: {
        struct flat_slot slots[] = {FLAT_SHORT(IPC_MICROSECOND), FLAT_OFFSET};
        size_t at = flat_table(flat, slots, field->is_instant ? 2 : 1);
        if (field->is_instant)
            flat_patch(flat, slots[1].at, flat_string(flat, "UTC"));
        return at;
    }
    case ARROW_FIXED: {
        struct flat_slot slots[] = {FLAT_INT(field->byte_width)};
        return flat_table(flat, slots, COUNT_OF(slots));
    }
    case ARROW_MAP: {
        struct flat_slot slots[] = {FLAT_BYTE(0)};
        return flat_table(flat, slots, COUNT_OF(slots));
    }
    default:
        return flat_table(flat, NULL, 0);
    }
}

static enum ipc_type type_id(enum arrow_type type)
{
    static const uint8_t ids[ARROW_TYPE_COUNT] = {
        [ARROW_NULL] = IPC_NULL,
        [ARROW_BOOL] = IPC_BOOL,
        [ARROW_INT32] = IPC_INT,
        [ARROW_INT64] = IPC_INT,
        [ARROW_FLOAT] = IPC_FLOATING_POINT,
        [ARROW_DOUBLE] = IPC_FLOATING_POINT,
        [ARROW_DATE32] = IPC_DATE,
        [ARROW_TIMESTAMP_US] = IPC_TIMESTAMP,
        [ARROW_UTF8] = IPC_UTF8,
        [ARROW_BINARY] = IPC_BINARY,
        [ARROW_FIXED] = IPC_FIXED_SIZE_BINARY,
        [ARROW_LIST] = IPC_LIST,
        [ARROW_STRUCT] = IPC_STRUCT,
        [ARROW_MAP] = IPC_MAP,
    };
    return ids[type];
}

static size_t write_dictionary_encoding(struct flat_writer *flat, int64_t id)
{
    struct flat_slot index_type[] = {FLAT_INT(32), FLAT_BYTE(1)};
    struct flat_slot encoding[] = {FLAT_LONG(id), FLAT_OFFSET, FLAT_BYTE(0)};
    size_t at = flat_table(flat, encoding, COUNT_OF(encoding));
    flat_patch(flat, encoding[1].at, flat_table(flat, index_type, COUNT_OF(index_type)));
    return at;
}

static size_t write_metadata(struct flat_writer *flat, int32_t field_id)
{
    struct flat_slot pair[] = {FLAT_OFFSET, FLAT_OFFSET};
    char text[I64_TEXT_MAX + 1] = {0};
    i64_to_text(text, field_id);
    size_t at = flat_offsets(flat, 1);
    flat_patch(flat, at + 4, flat_table(flat, pair, COUNT_OF(pair)));
    flat_patch(flat, pair[0].at, flat_string(flat, IPC_FIELD_ID_KEY));
    flat_patch(flat, pair[1].at, flat_string(flat, text));
    return at;
}

struct schema_writer {
    struct flat_writer *flat;
    int64_t dictionaries; /* seen so far */
};

static int64_t take_dictionary_id(int64_t *dictionaries, const struct arrow_field *field)
{
    int64_t ordinal = (*dictionaries)++;
    return field->dictionary_key ? field->dictionary_key - 1 : ordinal;
}

static size_t write_field(struct schema_writer *schema, const struct arrow_field *field);

static void write_children(struct schema_writer *schema, size_t slot_at,
                           const struct arrow_field *children, uint32_t count)
{
    size_t vector = flat_offsets(schema->flat, count);
    flat_patch(schema->flat, slot_at, vector);
    for (uint32_t i = 0; i < count; i++)
        flat_patch(schema->flat, vector + 4 + (size_t)i * 4, write_field(schema, &children[i]));
}

static size_t write_field(struct schema_writer *schema, const struct arrow_field *field)
{
    struct flat_writer *flat = schema->flat;
    struct flat_slot slots[] = {FLAT_OFFSET,
                                FLAT_BYTE(field->is_nullable),
                                FLAT_BYTE(type_id(field->type)),
                                FLAT_OFFSET,
                                FLAT_ABSENT,
                                FLAT_OFFSET,
                                FLAT_ABSENT};
    slots[4].bytes = field->is_dictionary ? 4 : 0;
    slots[6].bytes = field->field_id ? 4 : 0;
    size_t at = flat_table(flat, slots, COUNT_OF(slots));
    flat_patch(flat, slots[0].at, flat_string(flat, field->name));
    flat_patch(flat, slots[3].at, write_type(flat, field));
    if (field->is_dictionary) {
        int64_t id = take_dictionary_id(&schema->dictionaries, field);
        flat_patch(flat, slots[4].at, write_dictionary_encoding(flat, id));
    }
    if (field->field_id)
        flat_patch(flat, slots[6].at, write_metadata(flat, field->field_id));
    if (field->type == ARROW_MAP) {
        /* The struct between a map and its two children is ours to make up. */
        char name[] = "entries";
        struct arrow_field entries = {.name = name,
                                      .type = ARROW_STRUCT,
                                      .children = field->children,
                                      .child_count = field->child_count};
        write_children(schema, slots[5].at, &entries, 1);
    } else {
        write_children(schema, slots[5].at, field->children, field->child_count);
    }
    return at;
}

enum status arrow_ipc_write_schema(const struct arrow_schema *schema, struct buf *out,
                                   struct error *err)
{
    struct message message;
    size_t start = out->length;
    message_begin(&message, out, IPC_SCHEMA);
    struct schema_writer writer = {.flat = &message.flat};
    struct flat_slot slots[] = {FLAT_SHORT(0), FLAT_OFFSET};
    flat_patch(&message.flat, message.header_at, flat_table(&message.flat, slots, COUNT_OF(slots)));
    write_children(&writer, slots[1].at, schema->fields, schema->field_count);
    message_end(&message, 0);
    enum status status = buf_status(out, "arrow: writing a schema", err);
    if (status != STATUS_OK)
        take_back(out, start);
    return status;
}

/* ---- batches ---- */

struct body_buffer {
    const void *data;
    size_t length;           /* as in memory */
    uint64_t offset, stored; /* place and length in the body */
    size_t packed;           /* where the compressed form starts in `body.packed`; stored != 0 */
    bool is_again;           /* the same bytes were placed before */
};

struct body {
    struct buf nodes;                    /* FieldNode structs */
    struct buf buffers;                  /* struct body_buffer */
    struct buf packed;                   /* compressed buffers, one after the other */
    struct codec_compressor *compressor; /* NULL: not compressed */
    uint64_t bytes;
};

struct batch_writer {
    struct body body;
    struct buf *out;
    enum arrow_compression compression;
    int64_t dictionaries;
};

static void list_buffer(struct body *body, const void *data, int64_t length)
{
    struct body_buffer buffer = {.data = data, .length = length > 0 ? (size_t)length : 0};
    const struct body_buffer *seen = (const void *)body->buffers.data;
    for (size_t i = 0; buffer.length && i < body->buffers.length / sizeof *seen; i++) {
        if (seen[i].data == data && seen[i].length == buffer.length) {
            buffer = seen[i];
            buffer.is_again = true;
            break;
        }
    }
    buf_put(&body->buffers, &buffer, sizeof buffer);
}

static void list_node(struct body *body, int64_t length, int64_t null_count)
{
    buf_put_le64(&body->nodes, (uint64_t)length);
    buf_put_le64(&body->nodes, (uint64_t)null_count);
}

static void list_array(struct body *body, const struct arrow_field *field,
                       const struct arrow_array *array)
{
    enum arrow_layout layout = field->is_dictionary ? LAYOUT_FIXED : type_layout(field->type);
    int64_t width = field->is_dictionary ? (int64_t)sizeof(int32_t) : type_width(field);
    int64_t n = array->length;
    list_node(body, n, array->null_count);
    if (layout == LAYOUT_NULL)
        return;
    list_buffer(body, array->validity, array->null_count ? bits_bytes(n) : 0);
    switch (layout) {
    case LAYOUT_BITS:
        list_buffer(body, array->values, bits_bytes(n));
        break;
    case LAYOUT_FIXED:
        list_buffer(body, array->values, n * width);
        break;
    case LAYOUT_BYTES:
        list_buffer(body, array->offsets, (n + 1) * (int64_t)sizeof(int32_t));
        list_buffer(body, array->values, array->offsets[n]);
        break;
    case LAYOUT_LIST:
        list_buffer(body, array->offsets, (n + 1) * (int64_t)sizeof(int32_t));
        if (field->type == ARROW_MAP) {
            list_node(body, array->children[0].length, 0);
            list_buffer(body, NULL, 0);
        }
        break;
    default:
        break;
    }
    if (!field->is_dictionary)
        for (uint32_t i = 0; i < field->child_count; i++)
            list_array(body, &field->children[i], &array->children[i]);
}

/* Small buffers, and those that do not shrink, are stored as they are: -1 instead of a length. */
static enum status pack_buffer(struct body *body, struct body_buffer *buffer, struct error *err)
{
    enum { WORTH_TRYING_BYTES = 64 };
    struct buf *packed = &body->packed;
    buffer->packed = packed->length;
    buf_put_le64(packed, buffer->length);
    if (buffer->length >= WORTH_TRYING_BYTES)
        TRY(codec_compress(body->compressor, span_of(buffer->data, buffer->length), packed, err));
    size_t stored = packed->length - buffer->packed;
    if (buffer->length < WORTH_TRYING_BYTES || stored >= buffer->length + sizeof(int64_t)) {
        buf_truncate(packed, buffer->packed);
        buf_put_le64(packed, UINT64_MAX);
        buf_put(packed, buffer->data, buffer->length);
    }
    buffer->stored = packed->length - buffer->packed;
    return buf_status(packed, "arrow: compressing", err);
}

/* Gives every buffer its place. */
static enum status lay_out(struct body *body, struct error *err)
{
    struct body_buffer *buffers = (void *)body->buffers.data;
    size_t count = body->buffers.length / sizeof *buffers;
    for (size_t i = 0; i < count; i++) {
        struct body_buffer *buffer = &buffers[i];
        if (buffer->is_again) { /* listed with its first twin's fields, before that had a place */
            size_t twin = 0;
            while (buffers[twin].data != buffer->data || buffers[twin].length != buffer->length)
                twin++;
            buffer->offset = buffers[twin].offset;
            buffer->stored = buffers[twin].stored;
            continue;
        }
        buffer->offset = body->bytes;
        buffer->stored = buffer->length;
        if (body->compressor && buffer->length)
            TRY(pack_buffer(body, buffer, err));
        body->bytes +=
            (buffer->stored + IPC_BODY_ALIGNMENT - 1) / IPC_BODY_ALIGNMENT * IPC_BODY_ALIGNMENT;
    }
    return STATUS_OK;
}

static size_t write_record_batch(struct flat_writer *flat, const struct batch_writer *writer,
                                 int64_t length)
{
    const struct body *body = &writer->body;
    const struct body_buffer *buffers = (const void *)body->buffers.data;
    size_t count = body->buffers.length / sizeof *buffers;
    struct flat_slot slots[] = {FLAT_LONG(length), FLAT_OFFSET, FLAT_OFFSET, FLAT_ABSENT};
    struct flat_slot method[] = {
        FLAT_BYTE(writer->compression == ARROW_ZSTD ? IPC_CODEC_ZSTD : IPC_CODEC_LZ4),
        FLAT_BYTE(0)};
    slots[3].bytes = body->compressor ? 4 : 0;
    size_t at = flat_table(flat, slots, COUNT_OF(slots));
    flat_patch(flat, slots[1].at,
               flat_structs(flat, body->nodes.data, body->nodes.length / 16, 16));
    flat_patch(flat, slots[2].at, flat_structs(flat, NULL, 0, 16));
    size_t vector = flat->out->length - 4;
    for (size_t i = 0; i < count; i++) {
        buf_put_le64(flat->out, buffers[i].offset);
        buf_put_le64(flat->out, buffers[i].stored);
    }
    if (!flat->out->failed)
        put_le32(flat->out->data + vector, (uint32_t)count);
    if (body->compressor)
        flat_patch(flat, slots[3].at, flat_table(flat, method, COUNT_OF(method)));
    return at;
}

static void write_body(const struct body *body, struct buf *out)
{
    const struct body_buffer *buffers = (const void *)body->buffers.data;
    for (size_t i = 0; i < body->buffers.length / sizeof *buffers; i++) {
        if (buffers[i].is_again || !buffers[i].length)
            continue;
        const void *data =
            body->compressor ? body->packed.data + buffers[i].packed : buffers[i].data;
        buf_put(out, data, buffers[i].stored);
        buf_pad(out, IPC_BODY_ALIGNMENT);
    }
}

static void body_clear(struct body *body)
{
    buf_clear(&body->nodes);
    buf_clear(&body->buffers);
    buf_clear(&body->packed);
    body->bytes = 0;
}

static enum status write_listed(struct batch_writer *writer, enum ipc_header type, int64_t length,
                                int64_t dictionary_id, struct error *err)
{
    struct message message;
    struct body *body = &writer->body;
    TRY(buf_status(&body->nodes, "arrow: writing a batch", err));
    TRY(buf_status(&body->buffers, "arrow: writing a batch", err));
    TRY(lay_out(body, err));
    message_begin(&message, writer->out, type);
    if (type == IPC_DICTIONARY_BATCH) {
        struct flat_slot slots[] = {FLAT_LONG(dictionary_id), FLAT_OFFSET, FLAT_BYTE(0)};
        flat_patch(&message.flat, message.header_at,
                   flat_table(&message.flat, slots, COUNT_OF(slots)));
        flat_patch(&message.flat, slots[1].at, write_record_batch(&message.flat, writer, length));
    } else {
        flat_patch(&message.flat, message.header_at,
                   write_record_batch(&message.flat, writer, length));
    }
    message_end(&message, body->bytes);
    buf_reserve(writer->out, body->bytes);
    write_body(body, writer->out);
    return buf_status(writer->out, "arrow: writing a batch", err);
}

/* Ids follow the schema's order, outer before inner; messages need the inner dictionaries first. */
static enum status write_dictionaries(struct batch_writer *writer, const struct arrow_field *field,
                                      const struct arrow_array *array, struct error *err)
{
    int64_t id = field->is_dictionary ? take_dictionary_id(&writer->dictionaries, field) : 0;
    const struct arrow_array *values = field->is_dictionary ? array->dictionary : array;
    for (uint32_t i = 0; i < field->child_count; i++)
        TRY(write_dictionaries(writer, &field->children[i], &values->children[i], err));
    if (!field->is_dictionary)
        return STATUS_OK;
    struct arrow_field value_field = dictionary_value_field(field);
    body_clear(&writer->body);
    list_array(&writer->body, &value_field, values);
    return write_listed(writer, IPC_DICTIONARY_BATCH, values->length, id, err);
}

enum status arrow_ipc_write_batch(const struct arrow_schema *schema,
                                  const struct arrow_batch *batch,
                                  enum arrow_compression compression, struct buf *out,
                                  struct error *err)
{
    struct batch_writer writer = {.out = out, .compression = compression};
    size_t start = out->length;
    enum status status = STATUS_OK;
    if (compression != ARROW_UNCOMPRESSED) {
        enum codec codec = compression == ARROW_ZSTD ? CODEC_ZSTD : CODEC_LZ4_FRAME;
        TRY_OR_DONE(status, codec_compressor_create(codec, 1, &writer.body.compressor, err));
    }
    for (uint32_t i = 0; i < schema->field_count; i++)
        TRY_OR_DONE(status,
                    write_dictionaries(&writer, &schema->fields[i], &batch->columns[i], err));
    body_clear(&writer.body);
    for (uint32_t i = 0; i < schema->field_count; i++)
        list_array(&writer.body, &schema->fields[i], &batch->columns[i]);
    TRY_OR_DONE(status, write_listed(&writer, IPC_RECORD_BATCH, batch->length, 0, err));
done:
    if (status != STATUS_OK)
        take_back(out, start);
    codec_compressor_destroy(writer.body.compressor);
    buf_deinit(&writer.body.nodes);
    buf_deinit(&writer.body.buffers);
    buf_deinit(&writer.body.packed);
    return status;
}
