/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrow IPC, writing: batches, with their bodies on multiples of 64.
 *
 * A batch is walked twice: once to list nodes and buffers (and to compress), once to write the
 * bytes, because the metadata in front of the body holds every buffer's place.
 */
#include "format/arrow/ipc_internal.h"
#include "format/codec/codec.h"

enum { DEPTH_OF_SHARING = 256 }; /* how far back a buffer of the same bytes is looked for */

/* ---- batches ---- */

struct body_buffer {
    const void *data;
    size_t length;           /* as in memory */
    uint64_t offset, stored; /* place and length in the body */
    size_t packed;           /* where the compressed form starts in `body.packed` */
    bool is_plain;           /* in a body that is compressed: it is stored as it is, behind a -1 */
    size_t twin;             /* the number of the first buffer of these bytes, plus 1; 0: it is */
};

struct body {
    struct buf nodes;                    /* FieldNode structs */
    struct buf buffers;                  /* struct body_buffer */
    struct buf packed;                   /* compressed buffers, one after the other */
    struct codec_compressor *compressor; /* NULL: not compressed */
    struct arena scratch;                /* buffers that are other than the arrays' */
    struct buf view_counts;              /* of data buffers, for each column of views */
    enum status status;                  /* of what is listed so far: the first failure, whose */
    struct error *err;                   /* message is here */
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
    size_t count = body->buffers.length / sizeof *seen;
    size_t first = count > DEPTH_OF_SHARING ? count - DEPTH_OF_SHARING : 0;
    for (size_t i = first; buffer.length && i < count && !buffer.twin; i++)
        if (seen[i].data == data && seen[i].length == buffer.length)
            buffer.twin = seen[i].twin ? seen[i].twin : i + 1;
    buf_put(&body->buffers, &buffer, sizeof buffer);
}

static void list_node(struct body *body, int64_t length, int64_t null_count)
{
    buf_put_le64(&body->nodes, (uint64_t)length);
    buf_put_le64(&body->nodes, (uint64_t)null_count);
}

static void *take_scratch(struct body *body, int64_t count, size_t width)
{
    void *place = arena_alloc_zero(&body->scratch, (size_t)count + 1, width);
    if (!place && body->status == STATUS_OK)
        body->status = error_set(body->err, STATUS_NO_MEMORY, "arrow: no memory to write a batch");
    return place;
}

/* Indices in the width of the column's type. */
static void list_indices(struct body *body, const struct arrow_field *field,
                         const struct arrow_array *array)
{
    size_t width = dictionary_index_width(field);
    const int32_t *indices = array->values;
    if (width == sizeof *indices) {
        list_buffer(body, indices, array->length * (int64_t)sizeof *indices);
        return;
    }
    uint8_t *place = take_scratch(body, array->length, width);
    for (int64_t i = 0; place && i < array->length; i++) {
        uint64_t index = (uint64_t)indices[i];
        for (size_t byte = 0; byte < width; byte++)
            place[(size_t)i * width + byte] = (uint8_t)(index >> 8 * byte);
    }
    list_buffer(body, place, array->length * (int64_t)width);
}

/* ---- layouts that our arrays do not have ---- */

static void list_offsets(struct body *body, const struct arrow_field *field,
                         const struct arrow_array *array)
{
    int64_t count = array->length + 1;
    if (origin_kind(field) != ARROW_ORIGIN_LARGE) {
        list_buffer(body, array->offsets, count * (int64_t)sizeof(int32_t));
        return;
    }
    int64_t *offsets = take_scratch(body, count, sizeof *offsets);
    for (int64_t i = 0; offsets && i < count; i++)
        offsets[i] = array->offsets[i];
    list_buffer(body, offsets, count * (int64_t)sizeof *offsets);
}

/* Short values stand in their views, the others in one buffer. */
static void list_views(struct body *body, const struct arrow_array *array)
{
    enum { INLINE_BYTES_MAX = 12 };
    const uint8_t *values = array->values;
    int64_t n = array->length, bytes = array->offsets[n];
    uint8_t *views = take_scratch(body, n, ARROW_VIEW_BYTES);
    for (int64_t i = 0; views && i < n; i++) {
        uint8_t *view = views + i * ARROW_VIEW_BYTES;
        int32_t at = array->offsets[i], length = array->offsets[i + 1] - at;
        put_le32(view, (uint32_t)length);
        if (length)
            memcpy(view + 4, values + at,
                   (size_t)(length <= INLINE_BYTES_MAX ? length : 4)); /* or its first bytes */
        if (length > INLINE_BYTES_MAX)
            put_le32(view + 12, (uint32_t)at); /* of buffer 0 */
    }
    list_buffer(body, views, n * ARROW_VIEW_BYTES);
    buf_put_le64(&body->view_counts, bytes > 0);
    if (bytes)
        list_buffer(body, values, bytes);
}

/* Where the elements of each slot begin, then how many it has. */
static void list_places(struct body *body, const struct arrow_array *array, size_t width)
{
    int64_t n = array->length;
    for (int side = 0; side < 2; side++) {
        uint8_t *numbers = take_scratch(body, n, width);
        for (int64_t i = 0; numbers && i < n; i++) {
            int32_t first = array->offsets[i];
            int64_t number = side ? array->offsets[i + 1] - first : first;
            if (width == sizeof(int32_t))
                put_le32(numbers + (size_t)i * width, (uint32_t)number);
            else
                put_le64(numbers + (size_t)i * width, (uint64_t)number);
        }
        list_buffer(body, numbers, n * (int64_t)width);
    }
}

/* Elements of lists of a fixed size: null slots have such, too. */
static enum status fixed_elements(struct body *body, const struct arrow_field *field,
                                  const struct arrow_array *array,
                                  const struct arrow_array **out_elements)
{
    int32_t size = field->origin->list_size;
    const struct arrow_field *child = &field->children[0];
    struct array_run *runs = take_scratch(body, array->length, sizeof *runs);
    struct arrow_array *both = take_scratch(body, 2, sizeof *both);
    if (!runs || !both)
        return body->status;
    for (int64_t i = 0; i < array->length; i++) {
        int32_t first = array->offsets[i], count = array->offsets[i + 1] - first;
        bool is_valid = arrow_is_valid(array, i);
        if (count != (is_valid ? size : 0))
            return error_set(body->err, STATUS_INVALID,
                             "arrow: column %.100s: a list of other than %d elements", field->name,
                             (int)size);
        runs[i] = (struct array_run){.first = is_valid ? first : (int32_t)array->children[0].length,
                                     .count = size};
    }
    *out_elements = &array->children[0];
    if (!array->null_count || size == 0)
        return STATUS_OK;
    TRY(array_with_null(child, &array->children[0], size, &body->scratch, both, body->err));
    TRY(array_gather(child, both, runs, (size_t)array->length, &body->scratch, both + 1,
                     body->err));
    *out_elements = both + 1;
    return STATUS_OK;
}

static void list_array(struct body *body, const struct arrow_field *field,
                       const struct arrow_array *array);

static void list_list(struct body *body, const struct arrow_field *field,
                      const struct arrow_array *array)
{
    const struct arrow_array *elements = &array->children[0];
    size_t view_width = list_view_width(field);
    if (origin_kind(field) == ARROW_ORIGIN_FIXED_LIST)
        body->status = fixed_elements(body, field, array, &elements);
    else if (view_width)
        list_places(body, array, view_width);
    else
        list_offsets(body, field, array);
    list_array(body, &field->children[0], elements);
}

static void list_map(struct body *body, const struct arrow_field *field,
                     const struct arrow_array *array)
{
    list_offsets(body, field, array);
    list_node(body, array->children[0].length, 0);
    list_buffer(body, NULL, 0);
    for (uint32_t i = 0; i < field->child_count; i++)
        list_array(body, &field->children[i], &array->children[i]);
}

/* ---- columns ---- */

static void list_array(struct body *body, const struct arrow_field *field,
                       const struct arrow_array *array)
{
    enum arrow_layout layout = type_layout(field->type);
    int64_t n = array->length;
    if (body->status != STATUS_OK)
        return;
    list_node(body, n, array->null_count);
    if (layout == LAYOUT_NULL && !field->is_dictionary)
        return;
    list_buffer(body, array->validity, array->null_count ? bits_bytes(n) : 0);
    if (field->is_dictionary) {
        list_indices(body, field, array);
        return;
    }
    switch (layout) {
    case LAYOUT_BITS:
        list_buffer(body, array->values, bits_bytes(n));
        break;
    case LAYOUT_FIXED:
        list_buffer(body, array->values, n * type_width(field));
        break;
    case LAYOUT_BYTES:
        if (origin_kind(field) == ARROW_ORIGIN_VIEW) {
            list_views(body, array);
            break;
        }
        list_offsets(body, field, array);
        list_buffer(body, array->values, array->offsets[n]);
        break;
    case LAYOUT_LIST:
        if (field->type == ARROW_MAP)
            list_map(body, field, array);
        else
            list_list(body, field, array);
        break;
    case LAYOUT_STRUCT:
        for (uint32_t i = 0; i < field->child_count; i++)
            list_array(body, &field->children[i], &array->children[i]);
        break;
    default:
        break;
    }
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
    buffer->is_plain =
        buffer->length < WORTH_TRYING_BYTES || stored >= buffer->length + sizeof(int64_t);
    if (buffer->is_plain)
        buf_truncate(packed, buffer->packed);
    buffer->stored = buffer->is_plain ? buffer->length + sizeof(int64_t) : stored;
    return buf_status(packed, "arrow: compressing", err);
}

/* Gives every buffer its place. */
static enum status lay_out(struct body *body, struct error *err)
{
    struct body_buffer *buffers = (void *)body->buffers.data;
    size_t count = body->buffers.length / sizeof *buffers;
    for (size_t i = 0; i < count; i++) {
        struct body_buffer *buffer = &buffers[i];
        if (buffer->twin) {
            buffer->offset = buffers[buffer->twin - 1].offset;
            buffer->stored = buffers[buffer->twin - 1].stored;
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
    struct flat_slot slots[] = {FLAT_LONG(length), FLAT_OFFSET, FLAT_OFFSET, FLAT_ABSENT,
                                FLAT_ABSENT};
    struct flat_slot method[] = {
        FLAT_BYTE(writer->compression == ARROW_ZSTD ? IPC_CODEC_ZSTD : IPC_CODEC_LZ4),
        FLAT_BYTE(0)};
    slots[3].bytes = body->compressor ? 4 : 0;
    slots[4].bytes = body->view_counts.length ? 4 : 0;
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
    if (body->view_counts.length)
        flat_patch(flat, slots[4].at,
                   flat_structs(flat, body->view_counts.data, body->view_counts.length / 8, 8));
    return at;
}

static void write_body(const struct body *body, struct buf *out)
{
    const struct body_buffer *buffers = (const void *)body->buffers.data;
    for (size_t i = 0; i < body->buffers.length / sizeof *buffers; i++) {
        if (buffers[i].twin || !buffers[i].length)
            continue;
        bool is_packed = body->compressor && !buffers[i].is_plain;
        if (buffers[i].is_plain)
            buf_put_le64(out, UINT64_MAX);
        buf_put(out, is_packed ? body->packed.data + buffers[i].packed : buffers[i].data,
                is_packed ? buffers[i].stored : buffers[i].length);
        buf_pad(out, IPC_BODY_ALIGNMENT);
    }
}

static void body_clear(struct body *body)
{
    buf_clear(&body->nodes);
    buf_clear(&body->buffers);
    buf_clear(&body->packed);
    buf_clear(&body->view_counts);
    body->bytes = 0;
}

static enum status write_listed(struct batch_writer *writer, enum ipc_header type, int64_t length,
                                int64_t dictionary_id, bool is_delta,
                                const struct arrow_metadata *metadata, struct error *err)
{
    struct outgoing message;
    struct body *body = &writer->body;
    TRY(body->status);
    TRY(buf_status(&body->view_counts, "arrow: writing a batch", err));
    TRY(buf_status(&body->nodes, "arrow: writing a batch", err));
    TRY(buf_status(&body->buffers, "arrow: writing a batch", err));
    TRY(lay_out(body, err));
    outgoing_begin(&message, writer->out, type, metadata && metadata->count);
    if (type == IPC_DICTIONARY_BATCH) {
        struct flat_slot slots[] = {FLAT_LONG(dictionary_id), FLAT_OFFSET, FLAT_BYTE(is_delta)};
        flat_patch(&message.flat, message.header_at,
                   flat_table(&message.flat, slots, COUNT_OF(slots)));
        flat_patch(&message.flat, slots[1].at, write_record_batch(&message.flat, writer, length));
    } else {
        flat_patch(&message.flat, message.header_at,
                   write_record_batch(&message.flat, writer, length));
    }
    if (metadata && metadata->count)
        ipc_write_metadata(&message.flat, message.metadata_at, metadata);
    outgoing_end(&message, body->bytes);
    buf_reserve(writer->out, body->bytes);
    write_body(body, writer->out);
    return buf_status(writer->out, "arrow: writing a batch", err);
}

/* Ids follow the schema's order, outer before inner; messages need the inner dictionaries first. */
static enum status write_dictionaries(struct batch_writer *writer, const struct arrow_field *field,
                                      const struct arrow_array *array, struct error *err)
{
    int64_t id = field->is_dictionary ? ipc_take_dictionary_id(&writer->dictionaries, field) : 0;
    const struct arrow_array *values = field->is_dictionary ? array->dictionary : array;
    for (uint32_t i = 0; i < field->child_count; i++)
        TRY(write_dictionaries(writer, &field->children[i], &values->children[i], err));
    if (!field->is_dictionary)
        return STATUS_OK;
    struct arrow_field value_field = dictionary_value_field(field);
    body_clear(&writer->body);
    list_array(&writer->body, &value_field, values);
    return write_listed(writer, IPC_DICTIONARY_BATCH, values->length, id, false, NULL, err);
}

static enum status writer_init(struct batch_writer *writer, enum arrow_compression compression,
                               struct buf *out, struct error *err)
{
    *writer = (struct batch_writer){.body = {.err = err}, .out = out, .compression = compression};
    arena_init(&writer->body.scratch, 0);
    enum codec codec = compression == ARROW_ZSTD ? CODEC_ZSTD : CODEC_LZ4_FRAME;
    return compression == ARROW_UNCOMPRESSED
               ? STATUS_OK
               : codec_compressor_create(codec, 1, &writer->body.compressor, err);
}

/* `status`: of what was written since `start`. */
static enum status writer_end(struct batch_writer *writer, size_t start, enum status status)
{
    if (status != STATUS_OK)
        outgoing_take_back(writer->out, start);
    codec_compressor_destroy(writer->body.compressor);
    arena_deinit(&writer->body.scratch);
    buf_deinit(&writer->body.nodes);
    buf_deinit(&writer->body.buffers);
    buf_deinit(&writer->body.packed);
    buf_deinit(&writer->body.view_counts);
    return status;
}

static enum status write_record(struct batch_writer *writer, const struct arrow_schema *schema,
                                const struct arrow_batch *batch, struct error *err)
{
    body_clear(&writer->body);
    for (uint32_t i = 0; i < schema->field_count; i++)
        list_array(&writer->body, &schema->fields[i], &batch->columns[i]);
    return write_listed(writer, IPC_RECORD_BATCH, batch->length, 0, false, &batch->metadata, err);
}

enum status arrow_ipc_write_batch(const struct arrow_schema *schema,
                                  const struct arrow_batch *batch,
                                  enum arrow_compression compression, struct buf *out,
                                  struct error *err)
{
    struct batch_writer writer;
    size_t start = out->length;
    enum status status = writer_init(&writer, compression, out, err);
    for (uint32_t i = 0; status == STATUS_OK && i < schema->field_count; i++)
        status = write_dictionaries(&writer, &schema->fields[i], &batch->columns[i], err);
    if (status == STATUS_OK)
        status = write_record(&writer, schema, batch, err);
    return writer_end(&writer, start, status);
}

enum status ipc_write_record_batch(const struct arrow_schema *schema,
                                   const struct arrow_batch *batch,
                                   enum arrow_compression compression, struct buf *out,
                                   struct error *err)
{
    struct batch_writer writer;
    size_t start = out->length;
    enum status status = writer_init(&writer, compression, out, err);
    if (status == STATUS_OK)
        status = write_record(&writer, schema, batch, err);
    return writer_end(&writer, start, status);
}

enum status ipc_write_dictionary_batch(const struct arrow_field *field,
                                       const struct arrow_array *values, int64_t id, bool is_delta,
                                       enum arrow_compression compression, struct buf *out,
                                       struct error *err)
{
    struct batch_writer writer;
    size_t start = out->length;
    enum status status = writer_init(&writer, compression, out, err);
    if (status == STATUS_OK) {
        list_array(&writer.body, field, values);
        status =
            write_listed(&writer, IPC_DICTIONARY_BATCH, values->length, id, is_delta, NULL, err);
    }
    return writer_end(&writer, start, status);
}
