/* SPDX-License-Identifier: Apache-2.0
 *
 * The C Data Interface, inwards: arrays of other libraries as batches, and streams of them. Each
 * array is looked at through a window of its slots, since it may be a slice, and be the child of
 * slices. What a window shows that is laid out like ours stays where it is; the rest is copied.
 * Then the values are checked as those of every reader are (validate.c).
 */
#include <errno.h>

#include "format/arrow/c_internal.h"

/* No slot of any width at such an index overflows an address. */
enum { SLOTS_MAX_BITS = 45 };

/* What empty buffers point to. */
static const uint64_t nothing[2];

/* ---- structs ---- */

static enum status check_struct(struct array_making *making, const struct ArrowArray *array,
                                int64_t buffer_count, int64_t child_count, bool has_dictionary)
{
    if (!array || !array->release)
        return making_fail(making, NULL, "an array that is not there or was released");
    if (array->length < 0 || array->offset < 0 || array->length >> SLOTS_MAX_BITS ||
        array->offset >> SLOTS_MAX_BITS)
        return making_fail(making, NULL, "bad length or offset");
    if (array->null_count < -1 || array->null_count > array->length)
        return making_fail(making, NULL, "bad count of nulls");
    if (array->n_buffers != buffer_count || (buffer_count && !array->buffers))
        return making_fail(making, NULL, "another number of buffers than its type has");
    if (array->n_children != child_count || (child_count && !array->children))
        return making_fail(making, NULL, "another number of children than its type has");
    if (has_dictionary != (array->dictionary != NULL))
        return making_fail(making, NULL, has_dictionary ? "no dictionary" : "a dictionary");
    return STATUS_OK;
}

/* The first of `length` slots from `start` on, in the array's buffers. */
static enum status place_window(struct array_making *making, const struct ArrowArray *array,
                                int64_t start, int64_t length, int64_t *out_at)
{
    if (start > array->length || length > array->length - start)
        return making_fail(making, NULL, "fewer slots than what it belongs to says");
    *out_at = array->offset + start;
    return STATUS_OK;
}

/* ---- buffers ---- */

/* `count` values of `width` bytes, from the one at index `at` on. */
static enum status take_values(struct array_making *making, const void *buffer, int64_t at,
                               int64_t count, int64_t width, const void **out)
{
    uint8_t *copy;
    *out = nothing;
    if (count == 0)
        return STATUS_OK;
    if (!buffer)
        return making_fail(making, NULL, "a buffer that is not there");
    const uint8_t *from = (const uint8_t *)buffer + at * width;
    *out = from;
    if ((uintptr_t)from % 8 == 0)
        return STATUS_OK;
    TRY(making_alloc(making, (uint64_t)(count * width), &copy));
    memcpy(copy, from, (size_t)(count * width));
    *out = copy;
    return STATUS_OK;
}

static enum status take_bits(struct array_making *making, const void *buffer, int64_t at,
                             int64_t count, const void **out)
{
    uint8_t *copy;
    if (at % 8 == 0 || !buffer || count == 0)
        return take_values(making, buffer, at / 8, bits_bytes(count), 1, out);
    TRY(making_alloc(making, (uint64_t)bits_bytes(count), &copy));
    memset(copy, 0, (size_t)bits_bytes(count));
    bits_copy(copy, 0, buffer, at, count);
    *out = copy;
    return STATUS_OK;
}

static enum status take_validity(struct array_making *making, const struct ArrowArray *array,
                                 int64_t at, struct arrow_array *out)
{
    const void *bits = NULL;
    if (!array->buffers[0] && array->null_count > 0)
        return making_fail(making, NULL, "nulls without validity bits");
    if (array->buffers[0] && array->null_count != 0)
        TRY(take_bits(making, array->buffers[0], at, out->length, &bits));
    out->validity = bits;
    return STATUS_OK;
}

/* Offsets from 0 on, and the elements that they cover. */
static enum status take_offsets(struct array_making *making, const struct ArrowArray *array,
                                int64_t at, struct arrow_array *out, int64_t *out_first,
                                int64_t *out_count)
{
    size_t width = origin_kind(making->field) == ARROW_ORIGIN_LARGE ? 8 : 4;
    out->offsets = (const int32_t *)(const void *)nothing;
    *out_first = *out_count = 0;
    if (out->length == 0)
        return STATUS_OK;
    if (!array->buffers[1])
        return making_fail(making, NULL, "a buffer that is not there");
    const uint8_t *from = (const uint8_t *)array->buffers[1] + (size_t)at * width;
    int64_t first = get_le_signed(from, width);
    int64_t last = get_le_signed(from + (size_t)out->length * width, width);
    if (first < 0 || last < first)
        return making_fail(making, from, "offsets that fall");
    if (last - first > INT32_MAX)
        return making_too_long(making);
    *out_first = first;
    *out_count = last - first;
    if (first > 0 || width != sizeof(int32_t) || (uintptr_t)from % 8 != 0)
        return convert_offsets(making, from, width, out->length, first, &out->offsets);
    out->offsets = (const int32_t *)(const void *)from;
    return STATUS_OK;
}

/* ---- arrays ---- */

static enum status read_views(struct array_making *making, const struct ArrowArray *array,
                              int64_t at, struct arrow_array *out)
{
    enum { BUFFERS_BESIDE_DATA = 3 }; /* validity, views; at the end the lengths of the others */
    uint64_t count = (uint64_t)(array->n_buffers - BUFFERS_BESIDE_DATA);
    const int64_t *lengths = array->buffers[array->n_buffers - 1];
    struct span *data;
    const void *views;
    if (count && !lengths)
        return making_fail(making, NULL, "no lengths of a view's data buffers");
    if (count > INT32_MAX)
        return making_too_long(making);
    TRY(making_alloc(making, count * sizeof *data, &data));
    for (uint64_t i = 0; i < count; i++) {
        int64_t length = (int64_t)get_le64(&lengths[i]);
        data[i] = span_of(array->buffers[i + 2], (size_t)length);
        if (length < 0 || (length && !data[i].data))
            return making_fail(making, NULL, "bad length of a view's data buffer");
    }
    TRY(take_values(making, array->buffers[1], at, out->length, ARROW_VIEW_BYTES, &views));
    return convert_views(making, views, data, count, out);
}

static enum status read_bytes(struct array_making *making, const struct ArrowArray *array,
                              int64_t at, struct arrow_array *out)
{
    int64_t first, count;
    if (origin_kind(making->field) == ARROW_ORIGIN_VIEW)
        return read_views(making, array, at, out);
    TRY(take_offsets(making, array, at, out, &first, &count));
    return take_values(making, array->buffers[2], first, count, 1, &out->values);
}

static enum status read_array(struct array_making *making, const struct arrow_field *field,
                              const struct ArrowArray *array, int64_t start, int64_t length,
                              struct arrow_array *out);

static enum status read_children(struct array_making *making, const struct arrow_field *field,
                                 const struct ArrowArray *array, int64_t start, int64_t length,
                                 struct arrow_array *out)
{
    out->children = arena_alloc_zero(making->arena, field->child_count, sizeof *out->children);
    if (!out->children)
        return arena_no_memory(making->arena, making->err);
    for (uint32_t i = 0; i < field->child_count; i++)
        TRY(read_array(making, &field->children[i], array->children[i], start, length,
                       &out->children[i]));
    return STATUS_OK;
}

/* The struct of a map's entries, which adds nothing and is never null. */
static enum status read_entries(struct array_making *making, const struct arrow_field *field,
                                const struct ArrowArray *entries, int64_t start, int64_t length,
                                struct arrow_array *out)
{
    int64_t at;
    struct arrow_array pairs = {.length = length};
    TRY(check_struct(making, entries, 1, 2, false));
    TRY(place_window(making, entries, start, length, &at));
    TRY(take_validity(making, entries, at, &pairs));
    if (pairs.validity && bits_count_zero(pairs.validity, length))
        return making_fail(making, pairs.validity, "null entry in a map");
    return read_children(making, field, entries, at, length, out);
}

/* Slots of an array with their values checked. Within runs: the values that runs repeat, or a
 * dictionary's. */
static enum status read_checked(struct array_making *making, const struct arrow_field *field,
                                const struct ArrowArray *array, int64_t start, int64_t length,
                                bool is_within_runs, struct arrow_array *out,
                                bool *out_is_canonical);

/* All of them, to take others from. */
static enum status read_source(struct array_making *making, const struct arrow_field *field,
                               const struct ArrowArray *array, bool is_within_runs,
                               struct arrow_array *out)
{
    bool is_canonical; /* no matter: what is taken from it is */
    if (!array || !array->release)
        return making_fail(making, NULL, "an array that is not there or was released");
    return read_checked(making, field, array, 0, array->length, is_within_runs, out, &is_canonical);
}

static enum status read_list_view(struct array_making *making, const struct arrow_field *field,
                                  const struct ArrowArray *array, int64_t at, size_t width,
                                  struct arrow_array *out)
{
    const void *firsts, *counts;
    struct arrow_array elements = {0};
    TRY(take_values(making, array->buffers[1], at, out->length, (int64_t)width, &firsts));
    TRY(take_values(making, array->buffers[2], at, out->length, (int64_t)width, &counts));
    TRY(read_source(making, &field->children[0], array->children[0], false, &elements));
    making->field = field;
    return convert_list_view(making, field, firsts, counts, width, &elements, out);
}

static enum status read_list(struct array_making *making, const struct arrow_field *field,
                             const struct ArrowArray *array, int64_t at, struct arrow_array *out)
{
    int64_t first, count;
    size_t view_width = list_view_width(field);
    if (view_width)
        return read_list_view(making, field, array, at, view_width, out);
    if (origin_kind(field) == ARROW_ORIGIN_FIXED_LIST) {
        int32_t size = field->origin->list_size;
        TRY(convert_fixed_offsets(making, out->length, size, &out->offsets));
        if (__builtin_mul_overflow(at, size, &first))
            return making_fail(making, NULL, "bad length or offset");
        count = out->length * size;
    } else {
        TRY(take_offsets(making, array, at, out, &first, &count));
    }
    if (field->type == ARROW_MAP)
        return read_entries(making, field, array->children[0], first, count, out);
    return read_children(making, field, array, first, count, out);
}

static enum status read_column(struct array_making *making, const struct arrow_field *field,
                               const struct ArrowArray *array, int64_t start, int64_t length,
                               bool is_within_runs, struct arrow_array *out);

static enum status read_dictionary(struct array_making *making, const struct arrow_field *field,
                                   const struct ArrowArray *array, int64_t at,
                                   struct arrow_array *out)
{
    struct arrow_field values = dictionary_value_field(field);
    int64_t width = field->origin && field->origin->index_bits ? field->origin->index_bits / 8 : 0;
    const void *indices;
    values.is_nullable = true; /* others put their null among the values */
    out->dictionary = arena_alloc_zero(making->arena, 1, sizeof *out->dictionary);
    if (!out->dictionary)
        return arena_no_memory(making->arena, making->err);
    TRY(read_column(making, &values, array->dictionary, 0, array->dictionary->length, true,
                    out->dictionary));
    making->field = field;
    if (!width)
        return take_values(making, array->buffers[1], at, out->length, sizeof(int32_t),
                           &out->values);
    TRY(take_values(making, array->buffers[1], at, out->length, width, &indices));
    return convert_indices(making, indices, field->origin, out);
}

/* How many buffers and children an array of the field has. */
static void count_parts(const struct arrow_field *field, const struct ArrowArray *array,
                        int64_t *out_buffers, int64_t *out_children)
{
    static const uint8_t buffers[] = {
        [LAYOUT_NULL] = 0,  [LAYOUT_BITS] = 2, [LAYOUT_FIXED] = 2,
        [LAYOUT_BYTES] = 3, [LAYOUT_LIST] = 2, [LAYOUT_STRUCT] = 1,
    };
    enum arrow_layout layout = field->is_dictionary ? LAYOUT_FIXED : type_layout(field->type);
    *out_buffers = buffers[layout];
    *out_children = field->is_dictionary ? 0 : field->type == ARROW_MAP ? 1 : field->child_count;
    if (layout == LAYOUT_LIST && origin_kind(field) == ARROW_ORIGIN_FIXED_LIST)
        *out_buffers = 1;
    if (list_view_width(field))
        *out_buffers = 3;
    if (layout == LAYOUT_BYTES && origin_kind(field) == ARROW_ORIGIN_VIEW && array &&
        array->n_buffers > *out_buffers)
        *out_buffers = array->n_buffers; /* as many as hold its bytes */
}

static enum status read_run_ends(struct array_making *making, const struct arrow_field *field,
                                 const struct ArrowArray *array, int64_t start, int64_t length,
                                 size_t width, struct arrow_array *out)
{
    int64_t at;
    const void *ends;
    struct arrow_array values = {0};
    TRY(check_struct(making, array, 0, 2, false));
    TRY(place_window(making, array, start, length, &at));
    if (length > INT32_MAX)
        return making_too_long(making);
    const struct ArrowArray *last = array->children[0];
    TRY(check_struct(making, last, 2, 0, false));
    if (last->null_count > 0)
        return making_fail(making, NULL, "runs without an end");
    TRY(take_values(making, last->buffers[1], last->offset, last->length, (int64_t)width, &ends));
    TRY(read_source(making, field, array->children[1], true, &values));
    making->field = field;
    if (values.length != last->length)
        return making_fail(making, NULL, "another number of runs than of their values");
    return convert_run_ends(making, field, ends, width, &values, at, length, out);
}

static enum status read_slots(struct array_making *making, const struct arrow_field *field,
                              const struct ArrowArray *array, int64_t start, int64_t length,
                              struct arrow_array *out);

static enum status read_array(struct array_making *making, const struct arrow_field *field,
                              const struct ArrowArray *array, int64_t start, int64_t length,
                              struct arrow_array *out)
{
    size_t width = run_end_width(field);
    making->field = field;
    return width ? read_run_ends(making, field, array, start, length, width, out)
                 : read_slots(making, field, array, start, length, out);
}

static enum status read_checked(struct array_making *making, const struct arrow_field *field,
                                const struct ArrowArray *array, int64_t start, int64_t length,
                                bool is_within_runs, struct arrow_array *out,
                                bool *out_is_canonical)
{
    struct array_checking checking = {.trusts_dictionaries = true};
    making->field = field;
    TRY(is_within_runs ? read_slots(making, field, array, start, length, out)
                       : read_array(making, field, array, start, length, out));
    TRY(array_check(field, out, &checking, making->err));
    *out_is_canonical = checking.is_canonical;
    return STATUS_OK;
}

static enum status read_slots(struct array_making *making, const struct arrow_field *field,
                              const struct ArrowArray *array, int64_t start, int64_t length,
                              struct arrow_array *out)
{
    int64_t at, buffer_count, child_count;
    count_parts(field, array, &buffer_count, &child_count);
    TRY(check_struct(making, array, buffer_count, child_count, field->is_dictionary));
    TRY(place_window(making, array, start, length, &at));
    if (length > INT32_MAX)
        return making_too_long(making);
    out->length = length;
    if (buffer_count == 0)
        return STATUS_OK;
    TRY(take_validity(making, array, at, out));
    if (field->is_dictionary)
        return read_dictionary(making, field, array, at, out);
    switch (type_layout(field->type)) {
    case LAYOUT_BITS:
        return take_bits(making, array->buffers[1], at, length, &out->values);
    case LAYOUT_FIXED:
        return take_values(making, array->buffers[1], at, length, type_width(field), &out->values);
    case LAYOUT_BYTES:
        return read_bytes(making, array, at, out);
    case LAYOUT_LIST:
        return read_list(making, field, array, at, out);
    default:
        return read_children(making, field, array, at, length, out);
    }
}

/* The same, copied where they are not laid out as ours. */
static enum status read_column(struct array_making *making, const struct arrow_field *field,
                               const struct ArrowArray *array, int64_t start, int64_t length,
                               bool is_within_runs, struct arrow_array *out)
{
    struct arrow_array read = {0};
    bool is_canonical;
    TRY(read_checked(making, field, array, start, length, is_within_runs, &read, &is_canonical));
    if (!is_canonical)
        return array_copy_canonical(field, &read, making->arena, out, making->err);
    *out = read;
    return STATUS_OK;
}

/* ---- batches ---- */

static void release_moved(void *context)
{
    struct ArrowArray *array = context;
    array->release(array);
}

static enum status read_rows(struct array_making *making, const struct ArrowArray *array,
                             struct arrow_batch *batch)
{
    struct arrow_array rows = {0};
    uint32_t count = batch->schema->field_count;
    TRY(check_struct(making, array, 1, count, false));
    if (array->length > INT32_MAX)
        return error_set(making->err, STATUS_LIMIT, "arrow: a batch of %lld rows",
                         (long long)array->length);
    rows.length = array->length;
    TRY(take_validity(making, array, array->offset, &rows));
    if (rows.validity && bits_count_zero(rows.validity, rows.length))
        return making_fail(making, rows.validity, "a row that is null");
    batch->length = array->length;
    batch->columns = arena_alloc_zero(making->arena, count, sizeof *batch->columns);
    if (!batch->columns)
        return arena_no_memory(making->arena, making->err);
    for (uint32_t i = 0; i < count; i++)
        TRY(read_column(making, &batch->schema->fields[i], array->children[i], array->offset,
                        array->length, false, &batch->columns[i]));
    return STATUS_OK;
}

enum status arrow_c_import_batch(struct ArrowArray *array, const struct arrow_schema *schema,
                                 const struct arrow_limits *limits, struct arrow_batch *out_batch,
                                 struct error *err)
{
    struct arrow_batch batch = {.schema = schema};
    struct array_making making = {.arena = &batch.arena,
                                  .err = err,
                                  .bytes_left = limits->body_bytes_max,
                                  .bytes_max = limits->body_bytes_max};
    arena_init(&batch.arena, limits_memory_max(limits));
    enum status status = read_rows(&making, array, &batch);
    if (status == STATUS_OK) {
        struct ArrowArray *moved = arena_alloc(&batch.arena, sizeof *moved);
        if (moved && arena_defer(&batch.arena, release_moved, moved)) {
            *moved = *array;
            array->release = NULL;
            *out_batch = batch;
            return STATUS_OK;
        }
        status = arena_no_memory(&batch.arena, err);
    }
    arena_deinit(&batch.arena);
    return status;
}

/* ---- streams ---- */

struct arrow_c_stream {
    struct ArrowArrayStream producer;
    struct arrow_limits limits;
    struct arrow_schema schema;
    struct arena arena; /* of the schema */
};

static enum status fail_of_producer(struct ArrowArrayStream *producer, int code, struct error *err)
{
    enum status status = code == EINVAL   ? STATUS_INVALID
                         : code == ENOMEM ? STATUS_NO_MEMORY
                         : code == ENOSYS ? STATUS_UNSUPPORTED
                                          : STATUS_IO;
    const char *message = producer->get_last_error(producer);
    return error_set(err, status, "arrow: the stream's producer: %.400s",
                     message ? message : "no message");
}

static enum status read_schema(struct arrow_c_stream *stream, struct ArrowArrayStream *producer,
                               struct error *err)
{
    struct ArrowSchema schema = {.release = NULL};
    int code = producer->get_schema(producer, &schema);
    if (code)
        return fail_of_producer(producer, code, err);
    enum status status =
        arrow_c_import_schema(&schema, &stream->limits, &stream->arena, &stream->schema, err);
    if (schema.release)
        schema.release(&schema);
    return status;
}

enum status arrow_c_stream_open(struct ArrowArrayStream *producer,
                                const struct arrow_limits *limits,
                                struct arrow_c_stream **out_stream, struct error *err)
{
    if (!producer->release || !producer->get_schema || !producer->get_next ||
        !producer->get_last_error)
        return error_set(err, STATUS_INVALID, "arrow: a stream that was released");
    struct arrow_c_stream *stream = mem_alloc_zero(1, sizeof *stream);
    if (!stream)
        return error_set(err, STATUS_NO_MEMORY, "arrow: no memory for a stream");
    stream->limits = *limits;
    enum status status = read_schema(stream, producer, err);
    if (status != STATUS_OK) {
        arena_deinit(&stream->arena);
        mem_free(stream);
        return status;
    }
    stream->producer = *producer;
    producer->release = NULL;
    *out_stream = stream;
    return STATUS_OK;
}

void arrow_c_stream_close(struct arrow_c_stream *stream)
{
    if (!stream)
        return;
    stream->producer.release(&stream->producer);
    arena_deinit(&stream->arena);
    mem_free(stream);
}

const struct arrow_schema *arrow_c_stream_schema(const struct arrow_c_stream *stream)
{
    return &stream->schema;
}

enum status arrow_c_stream_next(struct arrow_c_stream *stream, struct arrow_batch *out_batch,
                                struct error *err)
{
    struct ArrowArray array = {.release = NULL};
    int code = stream->producer.get_next(&stream->producer, &array);
    if (code)
        return fail_of_producer(&stream->producer, code, err);
    if (!array.release)
        return error_set(err, STATUS_NOT_FOUND, "arrow: end of stream");
    enum status status =
        arrow_c_import_batch(&array, &stream->schema, &stream->limits, out_batch, err);
    if (status != STATUS_OK)
        array.release(&array);
    return status;
}
