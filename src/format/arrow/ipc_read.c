/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrow IPC, reading batches. Everything here faces bytes from outside: each buffer is checked
 * against the body, then what it holds against the other buffers (validate.c), and only then handed
 * out.
 *
 * Memory: the reader owns dictionaries, a batch owns its columns; both arenas are bounded by a
 * multiple of the body's limit, whatever the metadata says about sizes.
 */
#include "format/arrow/ipc_internal.h"
#include "format/codec/codec.h"

enum { DEPTH_OF_SHARING = 256 };

static enum status invalid(struct error *err, const char *what)
{
    return error_set(err, STATUS_INVALID, "arrow: %s", what);
}

/* ---- dictionaries of a schema ---- */

static size_t count_dictionaries(const struct arrow_field *fields, uint32_t count)
{
    size_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += (size_t)fields[i].is_dictionary +
               count_dictionaries(fields[i].children, fields[i].child_count);
    return sum;
}

static void list_dictionaries(struct arrow_reader *reader, const struct arrow_field *fields,
                              uint32_t count, bool is_inner)
{
    for (uint32_t i = 0; i < count; i++) {
        if (fields[i].is_dictionary) {
            size_t ordinal = reader->dictionary_count++;
            int64_t key = fields[i].dictionary_key;
            reader->dictionaries[ordinal] = (struct dictionary){
                .id = key ? key - 1 : (int64_t)ordinal, .field = &fields[i], .is_inner = is_inner};
        }
        list_dictionaries(reader, fields[i].children, fields[i].child_count,
                          is_inner || fields[i].is_dictionary);
    }
}

enum status arrow_reader_create(const struct arrow_schema *schema, struct span payload,
                                const struct arrow_limits *limits, struct arrow_reader **out_reader,
                                struct error *err)
{
    struct arrow_reader *reader = mem_alloc_zero(1, sizeof *reader);
    if (!reader)
        return error_set(err, STATUS_NO_MEMORY, "arrow: no memory for a reader");
    reader->schema = schema;
    reader->limits = *limits;
    reader->rest = payload;
    arena_init(&reader->arena, limits_memory_max(limits));
    reader->growth_left = limits_memory_max(limits);
    size_t count = count_dictionaries(schema->fields, schema->field_count);
    reader->dictionaries = mem_alloc_zero(count, sizeof *reader->dictionaries);
    if (!reader->dictionaries && count) {
        mem_free(reader);
        return error_set(err, STATUS_NO_MEMORY, "arrow: no memory for a reader");
    }
    list_dictionaries(reader, schema->fields, schema->field_count, false);
    *out_reader = reader;
    return STATUS_OK;
}

void arrow_reader_destroy(struct arrow_reader *reader)
{
    if (!reader)
        return;
    for (size_t i = 0; i < reader->dictionary_count; i++) {
        arena_deinit(&reader->dictionaries[i].arena);
        growing_values_deinit(&reader->dictionaries[i].grown);
    }
    arena_deinit(&reader->arena);
    mem_free(reader->dictionaries);
    mem_free(reader);
}

/* ---- one record batch ---- */

static enum status fail(struct batch_reader *batch, const void *place, const char *what)
{
    return making_fail(&batch->making, place, what);
}

/* The offset of a place in the message; of one in what was made of a buffer, that of the buffer. */
static size_t find_fault(const struct batch_reader *batch, const struct ipc_message *message)
{
    const uint8_t *start = message->flat.data - IPC_CONTINUATION_BYTES,
                  *place = batch->making.fault;
    if (place >= start && place < start + message->bytes)
        return (size_t)(place - start);
    for (uint32_t i = 0; place && i < batch->buffer_at; i++) {
        struct span taken = batch->taken[i];
        if (place >= taken.data && place < taken.data + taken.length)
            return (size_t)(batch->body.data - start) + get_le64(batch->buffers + (size_t)i * 16) +
                   (batch->codec == IPC_CODEC_NONE ? (size_t)(place - taken.data) : 0);
    }
    return 0;
}

static enum status take_node(struct batch_reader *batch, int64_t *out_length,
                             int64_t *out_null_count)
{
    if (batch->nodes_left == 0)
        return fail(batch, NULL, "too few nodes");
    int64_t length = (int64_t)get_le64(batch->nodes);
    int64_t null_count = (int64_t)get_le64(batch->nodes + 8);
    if (length < 0 || length > INT32_MAX || null_count < 0 || null_count > length)
        return fail(batch, batch->nodes, "bad node");
    batch->nodes += 16;
    batch->nodes_left--;
    *out_length = length;
    *out_null_count = null_count;
    return STATUS_OK;
}

/* A copy on a multiple of 16, since offsets and values are read as what they are. */
static enum status copy_aligned(struct batch_reader *batch, struct span from, struct span *out)
{
    uint8_t *copy = arena_alloc(batch->making.arena, from.length);
    if (!copy)
        return arena_no_memory(batch->making.arena, batch->making.err);
    memcpy(copy, from.data, from.length);
    *out = span_of(copy, from.length);
    return STATUS_OK;
}

static enum status expand(struct batch_reader *batch, struct span stored, struct span *out)
{
    if (stored.length < 8)
        return fail(batch, stored.data, "compressed buffer cut off");
    int64_t bytes = (int64_t)get_le64(stored.data);
    struct span packed = span_of(stored.data + 8, stored.length - 8);
    if (bytes == -1)
        return copy_aligned(batch, packed, out);
    if (bytes < 0)
        return fail(batch, stored.data, "bad length of a compressed buffer");
    TRY(making_charge(&batch->making, (uint64_t)bytes));
    /* No block of LZ4 grows by more, none of zstd: a claim past it takes no memory. */
    uint64_t growth_max = batch->codec == IPC_CODEC_ZSTD ? 1 << 16 : 1 << 8;
    if ((uint64_t)bytes / growth_max > packed.length)
        return fail(batch, stored.data, "bad length of a compressed buffer");
    uint8_t *place = arena_alloc(batch->making.arena, (size_t)bytes);
    if (!place)
        return arena_no_memory(batch->making.arena, batch->making.err);
    enum codec codec = batch->codec == IPC_CODEC_ZSTD ? CODEC_ZSTD : CODEC_LZ4_FRAME;
    batch->making.fault = stored.data;
    TRY(codec_expand_exact(codec, packed, place, (size_t)bytes, batch->making.err));
    batch->making.fault = NULL;
    *out = span_of(place, (size_t)bytes);
    return STATUS_OK;
}

/* What empty buffers point to: a place, so that code may add a zero to it. */
static const uint64_t nothing[1];

/* The next buffer: checked against the body, expanded and aligned. Those that were read before from
 * the same place are the same again, so that shared indices stay shared. */
static enum status take_buffer(struct batch_reader *batch, struct span *out)
{
    if (batch->buffer_at == batch->buffer_count)
        return fail(batch, NULL, "too few buffers");
    uint32_t at = batch->buffer_at++;
    const uint8_t *entry = batch->buffers + (size_t)at * 16;
    int64_t offset = (int64_t)get_le64(entry), length = (int64_t)get_le64(entry + 8);
    if (offset < 0 || length < 0 || (uint64_t)offset > batch->body.length ||
        (uint64_t)length > batch->body.length - (uint64_t)offset)
        return fail(batch, entry, "buffer outside the body");
    struct span span = span_of(batch->body.data + offset, (size_t)length);
    for (uint32_t i = at; length && i > 0 && at - i < DEPTH_OF_SHARING; i--) {
        if (memcmp(batch->buffers + (size_t)(i - 1) * 16, entry, 16) == 0) {
            *out = batch->taken[at] = batch->taken[i - 1];
            return STATUS_OK;
        }
    }
    if (length == 0)
        span = span_of(nothing, 0);
    else if (batch->codec != IPC_CODEC_NONE)
        TRY(expand(batch, span, &span));
    else if ((uintptr_t)span.data % 8)
        TRY(copy_aligned(batch, span, &span));
    *out = batch->taken[at] = span;
    return STATUS_OK;
}

/* A buffer that must hold at least `bytes`. */
static enum status take_values(struct batch_reader *batch, int64_t bytes, const void **out)
{
    struct span span;
    TRY(take_buffer(batch, &span));
    if (span.length < (uint64_t)bytes)
        return fail(batch, batch->buffers + (size_t)(batch->buffer_at - 1) * 16,
                    "buffer too short");
    *out = span.data;
    return STATUS_OK;
}

/* Offsets of `length` slots, the last of which must not pass `limit` (the caller knows it later).
 */
static enum status take_offsets(struct batch_reader *batch, int64_t length, const int32_t **out)
{
    static const int32_t zero[2];
    struct span span;
    bool is_large = origin_kind(batch->making.field) == ARROW_ORIGIN_LARGE;
    size_t width = is_large ? sizeof(int64_t) : sizeof(int32_t);
    TRY(take_buffer(batch, &span));
    if (length == 0 && span.length < width) {
        *out = zero;
        return STATUS_OK;
    }
    if (span.length < ((uint64_t)length + 1) * width)
        return fail(batch, NULL, "too few offsets");
    if (is_large)
        return convert_offsets(&batch->making, span.data, width, length, 0, out);
    *out = (const int32_t *)(const void *)span.data;
    return STATUS_OK;
}

static enum status take_view_buffers(struct batch_reader *batch, const struct span **out_buffers,
                                     uint64_t *out_count)
{
    if (batch->view_counts_left == 0)
        return fail(batch, NULL, "no count of a view's data buffers");
    int64_t count = (int64_t)get_le64(batch->view_counts);
    if (count < 0 || count > (int64_t)(batch->buffer_count - batch->buffer_at))
        return fail(batch, batch->view_counts, "too few buffers");
    batch->view_counts += 8;
    batch->view_counts_left--;
    *out_buffers = batch->taken + batch->buffer_at;
    *out_count = (uint64_t)count;
    for (int64_t i = 0; i < count; i++) {
        struct span span;
        TRY(take_buffer(batch, &span));
    }
    return STATUS_OK;
}

static enum status read_views(struct batch_reader *batch, struct arrow_array *array)
{
    const struct span *buffers;
    struct span views;
    uint64_t buffer_count;
    TRY(take_buffer(batch, &views));
    if (views.length < (uint64_t)array->length * ARROW_VIEW_BYTES)
        return fail(batch, NULL, "too few views");
    TRY(take_view_buffers(batch, &buffers, &buffer_count));
    return convert_views(&batch->making, views.data, buffers, buffer_count, array);
}

static enum status read_bytes(struct batch_reader *batch, struct arrow_array *array)
{
    struct span data;
    if (origin_kind(batch->making.field) == ARROW_ORIGIN_VIEW)
        return read_views(batch, array);
    TRY(take_offsets(batch, array->length, &array->offsets));
    TRY(take_buffer(batch, &data));
    int32_t end = array->offsets[array->length];
    if (end < 0 || (uint64_t)end > data.length)
        return fail(batch, &array->offsets[array->length], "offset past the data");
    array->values = data.data;
    return STATUS_OK;
}

static enum status read_array(struct batch_reader *batch, const struct arrow_field *field,
                              struct arrow_array *array);

static enum status read_children(struct batch_reader *batch, const struct arrow_field *field,
                                 struct arrow_array *array)
{
    array->children =
        arena_alloc_zero(batch->making.arena, field->child_count, sizeof *array->children);
    if (!array->children)
        return arena_no_memory(batch->making.arena, batch->making.err);
    for (uint32_t i = 0; i < field->child_count; i++)
        TRY(read_array(batch, &field->children[i], &array->children[i]));
    return STATUS_OK;
}

/* The children; `parent`: of their slots. */
static enum status read_below(struct batch_reader *batch, const struct parent *parent,
                              const struct arrow_field *field, struct arrow_array *array)
{
    const struct parent *around = batch->making.parent;
    batch->making.parent = parent;
    enum status status = read_children(batch, field, array);
    batch->making.parent = around;
    return status;
}

static enum status read_struct(struct batch_reader *batch, const struct arrow_field *field,
                               struct arrow_array *array)
{
    struct parent slots = {.array = array, .each = 1, .around = batch->making.parent};
    return read_below(batch, &slots, field, array);
}

/* The entries of a map: a struct that is never null and adds nothing. */
static enum status read_entries(struct batch_reader *batch, int64_t *out_length)
{
    int64_t null_count;
    struct span validity;
    TRY(take_node(batch, out_length, &null_count));
    TRY(take_buffer(batch, &validity));
    if (null_count)
        return fail(batch, validity.data, "null entry in a map");
    return STATUS_OK;
}

/* An array with its content checked. Within runs: the values that runs repeat, or a dictionary's.
 */
static enum status read_checked(struct batch_reader *batch, const struct arrow_field *field,
                                bool is_within_runs, struct arrow_array *array,
                                bool *out_is_canonical);

static enum status read_list_view(struct batch_reader *batch, const struct arrow_field *field,
                                  size_t width, struct arrow_array *array)
{
    const void *firsts, *counts;
    bool is_canonical; /* no matter: what is taken from it is */
    struct arrow_array elements = {0};
    TRY(take_values(batch, array->length * (int64_t)width, &firsts));
    TRY(take_values(batch, array->length * (int64_t)width, &counts));
    TRY(read_checked(batch, &field->children[0], false, &elements, &is_canonical));
    batch->making.field = field;
    return convert_list_view(&batch->making, field, firsts, counts, width, &elements, array);
}

static enum status read_list(struct batch_reader *batch, const struct arrow_field *field,
                             struct arrow_array *array)
{
    int64_t entries = 0;
    size_t view_width = list_view_width(field);
    if (view_width)
        return read_list_view(batch, field, view_width, array);
    if (origin_kind(field) == ARROW_ORIGIN_FIXED_LIST)
        TRY(convert_fixed_offsets(&batch->making, array->length, field->origin->list_size,
                                  &array->offsets));
    else
        TRY(take_offsets(batch, array->length, &array->offsets));
    if (field->type == ARROW_MAP)
        TRY(read_entries(batch, &entries));
    TRY(read_below(batch, NULL, field, array));
    if (field->type == ARROW_MAP &&
        (array->children[0].length != entries || array->children[1].length != entries))
        return fail(batch, NULL, "keys and values of different counts");
    return STATUS_OK;
}

static enum status take_indices(struct batch_reader *batch, const struct arrow_origin *origin,
                                struct arrow_array *array)
{
    struct span span;
    TRY(take_buffer(batch, &span));
    if (span.length < (uint64_t)array->length * (origin->index_bits / 8u))
        return fail(batch, NULL, "too few dictionary indices");
    return convert_indices(&batch->making, span.data, origin, array);
}

/* The dictionary in force; the fields of its values take their places in the schema's order too. */
static enum status read_dictionary_field(struct batch_reader *batch,
                                         const struct arrow_field *field, struct arrow_array *array)
{
    struct arrow_reader *reader = batch->reader;
    while (reader->dictionaries[batch->dictionary_at].field != field)
        batch->dictionary_at++;
    array->dictionary = reader->dictionaries[batch->dictionary_at].values;
    if (!array->dictionary)
        return error_set(batch->making.err, STATUS_INVALID,
                         "arrow: column %.100s: no dictionary yet", field->name);
    if (field->origin && field->origin->index_bits)
        return take_indices(batch, field->origin, array);
    TRY(take_values(batch, array->length * (int64_t)sizeof(int32_t), &array->values));
    return hide_indices(&batch->making, array);
}

/* The column itself has no buffers: its children have its ends and its values. */
static enum status read_run_ends(struct batch_reader *batch, const struct arrow_field *field,
                                 size_t width, struct arrow_array *array)
{
    int64_t length, null_count, end_count;
    struct span validity;
    const void *ends;
    bool is_canonical;
    struct arrow_array values = {0};
    TRY(take_node(batch, &length, &null_count));
    TRY(take_node(batch, &end_count, &null_count));
    if (null_count)
        return fail(batch, batch->nodes - 16, "runs without an end");
    TRY(take_buffer(batch, &validity));
    TRY(take_values(batch, end_count * (int64_t)width, &ends));
    const struct parent *around = batch->making.parent;
    batch->making.parent = NULL; /* the values have other slots */
    TRY(read_checked(batch, field, true, &values, &is_canonical));
    batch->making.parent = around;
    batch->making.field = field;
    if (values.length != end_count)
        return fail(batch, NULL, "another number of runs than of their values");
    return convert_run_ends(&batch->making, field, ends, width, &values, 0, length, array);
}

static enum status read_slots(struct batch_reader *batch, const struct arrow_field *field,
                              struct arrow_array *array);

static enum status read_array(struct batch_reader *batch, const struct arrow_field *field,
                              struct arrow_array *array)
{
    size_t width = run_end_width(field);
    batch->making.field = field;
    return width ? read_run_ends(batch, field, width, array) : read_slots(batch, field, array);
}

static enum status read_checked(struct batch_reader *batch, const struct arrow_field *field,
                                bool is_within_runs, struct arrow_array *array,
                                bool *out_is_canonical)
{
    struct array_checking checking = {.trusts_dictionaries = true};
    batch->making.field = field;
    TRY(is_within_runs ? read_slots(batch, field, array) : read_array(batch, field, array));
    enum status status = array_check(field, array, &checking, batch->making.err);
    batch->making.fault = checking.fault;
    *out_is_canonical = checking.is_canonical;
    return status;
}

static enum status read_slots(struct batch_reader *batch, const struct arrow_field *field,
                              struct arrow_array *array)
{
    struct span validity;
    int64_t null_count;
    TRY(take_node(batch, &array->length, &null_count));
    int64_t length = array->length;
    if (!field->is_dictionary && field->type == ARROW_NULL)
        return STATUS_OK;
    TRY(take_buffer(batch, &validity));
    if (validity.length == 0 && null_count)
        return fail(batch, batch->nodes - 16, "nulls without validity bits");
    if (validity.length && validity.length < (uint64_t)bits_bytes(length))
        return fail(batch, validity.data, "too few validity bits");
    array->validity = validity.length ? validity.data : NULL;
    if (field->is_dictionary)
        return read_dictionary_field(batch, field, array);
    switch (type_layout(field->type)) {
    case LAYOUT_BITS:
        return take_values(batch, bits_bytes(length), &array->values);
    case LAYOUT_FIXED:
        return take_values(batch, length * type_width(field), &array->values);
    case LAYOUT_BYTES:
        return read_bytes(batch, array);
    case LAYOUT_LIST:
        return read_list(batch, field, array);
    case LAYOUT_STRUCT:
        return read_struct(batch, field, array);
    case LAYOUT_NULL:
        break;
    }
    return STATUS_OK;
}

/* The same, mended where a client's habits differ from ours. */
static enum status read_column(struct batch_reader *batch, const struct arrow_field *field,
                               int64_t length, bool is_within_runs, struct arrow_array *out_array)
{
    struct arrow_array array = {0};
    bool is_canonical;
    TRY(read_checked(batch, field, is_within_runs, &array, &is_canonical));
    if (array.length != length)
        return error_set(batch->making.err, STATUS_INVALID,
                         "arrow: column %.100s: another length than its batch", field->name);
    if (!is_canonical)
        return array_copy_canonical(field, &array, batch->making.arena, out_array,
                                    batch->making.err);
    *out_array = array;
    return STATUS_OK;
}

static enum status read_compression(struct batch_reader *batch, struct flat_reader *flat,
                                    const struct flat_table *header)
{
    struct flat_table compression = flat_child(flat, header, 3);
    batch->codec = IPC_CODEC_NONE;
    if (!compression.at)
        return STATUS_OK;
    batch->codec = flat_number(flat, &compression, 0, 1, IPC_CODEC_LZ4);
    if ((batch->codec != IPC_CODEC_LZ4 && batch->codec != IPC_CODEC_ZSTD) ||
        flat_number(flat, &compression, 1, 1, 0) != 0)
        return error_set(batch->making.err, STATUS_UNSUPPORTED, "arrow: unknown compression");
    return STATUS_OK;
}

static enum status begin_batch(struct batch_reader *batch, struct ipc_message *message,
                               const struct flat_table *header, int64_t *out_length)
{
    struct flat_reader *flat = &message->flat;
    size_t body_bytes_max = batch->reader->limits.body_bytes_max;
    int64_t length = flat_number(flat, header, 0, 8, 0);
    struct flat_vector nodes = flat_vector(flat, header, 1, 16);
    struct flat_vector buffers = flat_vector(flat, header, 2, 16);
    struct flat_vector view_counts = flat_vector(flat, header, 4, 8);
    TRY(read_compression(batch, flat, header));
    if (flat->failed || !header->at)
        return invalid(batch->making.err, "damaged batch");
    if (message->body.length > body_bytes_max)
        return error_set(batch->making.err, STATUS_TOO_LARGE, "arrow: a body of %zu bytes",
                         message->body.length);
    /* Columns of nulls take no bytes: what has no weight must not have any number of rows. */
    if (length < 0 || length > INT32_MAX || (uint64_t)length > body_bytes_max)
        return invalid(batch->making.err, "bad number of rows");
    batch->body = message->body;
    batch->nodes = flat->data + nodes.at;
    batch->nodes_left = nodes.count;
    batch->buffers = flat->data + buffers.at;
    batch->buffer_count = buffers.count;
    batch->view_counts = flat->data + view_counts.at;
    batch->view_counts_left = view_counts.count;
    batch->making.bytes_left = body_bytes_max;
    batch->making.bytes_max = body_bytes_max;
    batch->taken = arena_alloc_zero(batch->making.arena, buffers.count, sizeof *batch->taken);
    if (!batch->taken)
        return arena_no_memory(batch->making.arena, batch->making.err);
    *out_length = length;
    return STATUS_OK;
}

static enum status end_batch(struct batch_reader *batch)
{
    batch->making.fault = NULL;
    if (batch->nodes_left || batch->buffer_at != batch->buffer_count)
        return invalid(batch->making.err, "more nodes or buffers than the schema has");
    return STATUS_OK;
}

static enum status read_dictionary_values(struct batch_reader *batch, struct ipc_message *message,
                                          const struct flat_table *data,
                                          const struct arrow_field *field,
                                          struct arrow_array **out_values)
{
    int64_t length;
    struct arrow_array *values = arena_alloc_zero(batch->making.arena, 1, sizeof *values);
    if (!values)
        return arena_no_memory(batch->making.arena, batch->making.err);
    TRY(begin_batch(batch, message, data, &length));
    TRY(read_column(batch, field, length, true, values));
    TRY(end_batch(batch));
    *out_values = values;
    return STATUS_OK;
}

/* What a delta makes of a dictionary that is not grown in place. Copies without end meet the bound
 * of an arena, or, where each dictionary has one of its own, that of all growth. */
static enum status join_values(struct arrow_reader *reader, const struct arrow_field *field,
                               const struct arrow_array *first, struct arena *arena,
                               struct arrow_array **inout_values, struct error *err)
{
    size_t bytes_before = arena->bytes_total;
    struct arrow_array *sum = arena_alloc_zero(arena, 1, sizeof *sum);
    if (!sum)
        return arena_no_memory(arena, err);
    enum status status = array_concat(field, first, *inout_values, arena, sum, err);
    if (status == STATUS_NO_MEMORY)
        return arena_no_memory(arena, err);
    TRY(status);
    size_t bytes = arena->bytes_total - bytes_before;
    if (reader->is_foreign && bytes > reader->growth_left)
        return error_set(err, STATUS_LIMIT,
                         "arrow: column %.100s: a dictionary that grows too often", field->name);
    reader->growth_left -= reader->is_foreign ? bytes : 0;
    *inout_values = sum;
    return STATUS_OK;
}

/* Nobody holds the values by then, nor do they hold others. */
static bool grows_in_place(const struct arrow_reader *reader, const struct dictionary *dictionary)
{
    const struct arrow_field *field = dictionary->field;
    return reader->is_foreign && !dictionary->is_inner &&
           count_dictionaries(field->children, field->child_count) == 0;
}

static enum status grow_values(struct arrow_reader *reader, const struct arrow_field *field,
                               struct dictionary *dictionary, struct arrow_array **inout_values,
                               struct error *err)
{
    struct growing_values *grown = &dictionary->grown;
    size_t bytes_max = limits_memory_max(&reader->limits);
    const struct arrow_array *first = dictionary->values;
    bool is_begun = grown->is_begun;
    dictionary->values = NULL; /* after a failure there are none */
    if (!is_begun)
        TRY(growing_values_append(grown, field, first, bytes_max, err));
    TRY(growing_values_append(grown, field, *inout_values, bytes_max, err));
    *inout_values = &grown->values;
    return STATUS_OK;
}

static enum status read_dictionary(struct arrow_reader *reader, struct ipc_message *message,
                                   struct batch_reader *batch, struct dictionary *dictionary,
                                   bool is_delta, struct arena *arena,
                                   struct arrow_array **out_values, struct error *err)
{
    struct flat_table data = flat_child(&message->flat, &message->header, 1);
    struct arrow_field field = dictionary_value_field(dictionary->field);
    struct arrow_array *values;
    field.is_nullable = reader->is_foreign; /* others put their null among the values */
    if (reader->refuses_replacement && dictionary->values && !is_delta)
        return error_set(err, STATUS_INVALID, "arrow: column %.100s: a second dictionary",
                         field.name);
    TRY(read_dictionary_values(batch, message, &data, &field, &values));
    if (is_delta && dictionary->values)
        TRY(grows_in_place(reader, dictionary)
                ? grow_values(reader, &field, dictionary, &values, err)
                : join_values(reader, &field, dictionary->values, arena, &values, err));
    *out_values = values;
    return STATUS_OK;
}

/* The values in force from now on, which `apart` has unless they were grown in place. */
static void keep_values(struct dictionary *dictionary, struct arrow_array *values,
                        const struct arena *apart)
{
    arena_deinit(&dictionary->arena);
    dictionary->arena = *apart;
    if (values == &dictionary->grown.values)
        arena_deinit(&dictionary->arena);
    else
        growing_values_deinit(&dictionary->grown);
    dictionary->values = values;
}

enum status ipc_dictionary_batch_read(struct arrow_reader *reader, struct ipc_message *message,
                                      void *memory, struct error *err)
{
    struct arena apart;
    struct arrow_array *values;
    struct flat_reader *flat = &message->flat;
    struct batch_reader batch = {.reader = reader, .making = {.arena = &reader->arena, .err = err}};
    int64_t id = flat_number(flat, &message->header, 0, 8, 0);
    bool is_delta = flat_number(flat, &message->header, 2, 1, 0) != 0;
    while (batch.dictionary_at < reader->dictionary_count &&
           reader->dictionaries[batch.dictionary_at].id != id)
        batch.dictionary_at++;
    reader->fault = 0;
    if (flat->failed || batch.dictionary_at == reader->dictionary_count) {
        mem_free(memory);
        return invalid(err, "a dictionary that no column has");
    }
    struct dictionary *dictionary = &reader->dictionaries[batch.dictionary_at];
    bool is_apart = reader->is_foreign && !dictionary->is_inner;
    arena_init(&apart, reader->arena.bytes_max);
    if (is_apart)
        batch.making.arena = &apart;
    enum status status = STATUS_OK;
    if (memory && !arena_adopt(batch.making.arena, memory, message->bytes)) {
        mem_free(memory);
        status = arena_no_memory(batch.making.arena, err);
    }
    if (status == STATUS_OK)
        status = read_dictionary(reader, message, &batch, dictionary, is_delta, batch.making.arena,
                                 &values, err);
    if (status != STATUS_OK) {
        reader->fault = find_fault(&batch, message);
        arena_deinit(&apart);
        return status;
    }
    if (is_apart)
        keep_values(dictionary, values, &apart);
    else
        dictionary->values = values;
    return STATUS_OK;
}

static enum status read_batch_metadata(struct batch_reader *batch, struct ipc_message *message,
                                       struct arrow_metadata *metadata)
{
    struct schema_reader reader = {.flat = &message->flat,
                                   .making = {.limits = &batch->reader->limits,
                                              .arena = batch->making.arena,
                                              .err = batch->making.err,
                                              .takes_origins = true}};
    return ipc_metadata_pairs_read(&reader, &message->root, 4, metadata);
}

enum status ipc_record_batch_read(struct arrow_reader *reader, struct ipc_message *message,
                                  struct arrow_batch *out_batch, struct error *err)
{
    const struct arrow_schema *schema = reader->schema;
    struct arrow_batch result = {.schema = schema};
    struct batch_reader batch = {.reader = reader, .making = {.arena = &result.arena, .err = err}};
    enum status status;
    arena_init(&result.arena, reader->arena.bytes_max);
    TRY_OR_DONE(status, begin_batch(&batch, message, &message->header, &result.length));
    result.columns = arena_alloc_zero(&result.arena, schema->field_count, sizeof *result.columns);
    if (!result.columns) {
        status = arena_no_memory(&result.arena, err);
        goto done;
    }
    for (uint32_t i = 0; i < schema->field_count; i++)
        TRY_OR_DONE(status, read_column(&batch, &schema->fields[i], result.length, false,
                                        &result.columns[i]));
    TRY_OR_DONE(status, end_batch(&batch));
    if (reader->is_foreign)
        TRY_OR_DONE(status, read_batch_metadata(&batch, message, &result.metadata));
    *out_batch = result;
done:
    if (status != STATUS_OK) {
        reader->fault = find_fault(&batch, message);
        arena_deinit(&result.arena);
    }
    return status;
}

enum status arrow_reader_next(struct arrow_reader *reader, struct arrow_batch *out_batch,
                              struct error *err)
{
    for (;;) {
        struct ipc_message message;
        TRY(ipc_message_read(reader->rest, &reader->limits, &message, err));
        if (message.type == IPC_RECORD_BATCH)
            TRY(ipc_record_batch_read(reader, &message, out_batch, err));
        else if (message.type == IPC_DICTIONARY_BATCH)
            TRY(ipc_dictionary_batch_read(reader, &message, NULL, err));
        else
            return invalid(err, "a message that is neither dictionary nor batch");
        reader->rest =
            span_of(reader->rest.data + message.bytes, reader->rest.length - message.bytes);
        if (message.type == IPC_RECORD_BATCH)
            return STATUS_OK;
    }
}
