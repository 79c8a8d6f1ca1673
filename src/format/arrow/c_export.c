/* SPDX-License-Identifier: Apache-2.0
 *
 * The C Data Interface, outwards: batches as ArrowArray without a copy of a buffer, and streams of
 * them.
 */
#include <errno.h>

#include "format/arrow/c_internal.h"

/* ---- memory ---- */

struct c_memory *c_memory_create(void)
{
    struct c_memory *memory = mem_alloc_zero(1, sizeof *memory);
    if (memory)
        arena_init(&memory->structs, 0);
    return memory;
}

void c_memory_destroy(struct c_memory *memory)
{
    arena_deinit(&memory->structs);
    arena_deinit(&memory->buffers);
    mem_free(memory);
}

void c_memory_release(struct c_memory *memory)
{
    if (atomic_fetch_sub(&memory->holders, 1) == 1)
        c_memory_destroy(memory);
}

enum status c_no_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "arrow: no memory to export");
}

bool c_memory_children(struct c_memory *memory, size_t count, size_t bytes, void *out_children)
{
    uint8_t *structs = arena_alloc_zero(&memory->structs, count, bytes);
    void **addresses = arena_alloc_zero(&memory->structs, count, sizeof *addresses);
    if (!structs || !addresses)
        return false;
    for (size_t i = 0; i < count; i++)
        addresses[i] = structs + i * bytes;
    memcpy(out_children, &addresses, sizeof addresses);
    return true;
}

/* ---- arrays ---- */

static void release_array(struct ArrowArray *array)
{
    struct c_memory *memory = array->private_data;
    for (int64_t i = 0; i < array->n_children; i++)
        if (array->children[i]->release)
            array->children[i]->release(array->children[i]);
    if (array->dictionary && array->dictionary->release)
        array->dictionary->release(array->dictionary);
    array->release = NULL;
    c_memory_release(memory);
}

/* An array with room for its buffers, all of them NULL. */
static bool begin_array(struct c_memory *memory, int64_t length, int64_t null_count,
                        int64_t buffer_count, struct ArrowArray *out)
{
    *out = (struct ArrowArray){.length = length,
                               .null_count = null_count,
                               .n_buffers = buffer_count,
                               .release = release_array,
                               .private_data = memory};
    out->buffers = arena_alloc_zero(&memory->structs, (size_t)buffer_count, sizeof *out->buffers);
    atomic_fetch_add(&memory->holders, 1);
    return out->buffers;
}

static bool fill_array(struct c_memory *memory, const struct arrow_field *field,
                       const struct arrow_array *array, struct ArrowArray *out);

static bool fill_children(struct c_memory *memory, const struct arrow_field *fields,
                          const struct arrow_array *arrays, uint32_t count, struct ArrowArray *out)
{
    if (!c_memory_children(memory, count, sizeof *out, &out->children))
        return false;
    out->n_children = count;
    for (uint32_t i = 0; i < count; i++)
        if (!fill_array(memory, &fields[i], &arrays[i], out->children[i]))
            return false;
    return true;
}

/* A map's child is the struct of its entries, which our arrays leave out. */
static bool fill_entries(struct c_memory *memory, const struct arrow_field *field,
                         const struct arrow_array *array, struct ArrowArray *out)
{
    if (!c_memory_children(memory, 1, sizeof *out, &out->children))
        return false;
    out->n_children = 1;
    return begin_array(memory, array->children[0].length, 0, 1, out->children[0]) &&
           fill_children(memory, field->children, array->children, field->child_count,
                         out->children[0]);
}

static bool fill_dictionary(struct c_memory *memory, const struct arrow_field *field,
                            const struct arrow_array *array, struct ArrowArray *out)
{
    struct arrow_field values = dictionary_value_field(field);
    out->dictionary = arena_alloc_zero(&memory->structs, 1, sizeof *out->dictionary);
    out->buffers[1] = array->values;
    return out->dictionary && fill_array(memory, &values, array->dictionary, out->dictionary);
}

static bool fill_array(struct c_memory *memory, const struct arrow_field *field,
                       const struct arrow_array *array, struct ArrowArray *out)
{
    static const int64_t buffer_counts[] = {
        [LAYOUT_NULL] = 0,  [LAYOUT_BITS] = 2, [LAYOUT_FIXED] = 2,
        [LAYOUT_BYTES] = 3, [LAYOUT_LIST] = 2, [LAYOUT_STRUCT] = 1,
    };
    enum arrow_layout layout = field->is_dictionary ? LAYOUT_FIXED : type_layout(field->type);
    if (!begin_array(memory, array->length, array->null_count, buffer_counts[layout], out))
        return false;
    if (layout == LAYOUT_NULL)
        return true;
    out->buffers[0] = array->null_count ? array->validity : NULL;
    if (field->is_dictionary)
        return fill_dictionary(memory, field, array, out);
    switch (layout) {
    case LAYOUT_BYTES:
        out->buffers[1] = array->offsets;
        out->buffers[2] = array->values;
        return true;
    case LAYOUT_LIST:
        out->buffers[1] = array->offsets;
        if (field->type == ARROW_MAP)
            return fill_entries(memory, field, array, out);
        return fill_children(memory, field->children, array->children, field->child_count, out);
    case LAYOUT_STRUCT:
        return fill_children(memory, field->children, array->children, field->child_count, out);
    default:
        out->buffers[1] = array->values;
        return true;
    }
}

enum status arrow_c_export_batch(struct arrow_batch *batch, struct ArrowArray *out_array,
                                 struct error *err)
{
    struct ArrowArray array;
    const struct arrow_schema *schema = batch->schema;
    struct c_memory *memory = c_memory_create();
    if (!memory)
        return c_no_memory(err);
    if (!begin_array(memory, batch->length, 0, 1, &array) ||
        !fill_children(memory, schema->fields, batch->columns, schema->field_count, &array)) {
        c_memory_destroy(memory);
        return c_no_memory(err);
    }
    memory->buffers = batch->arena;
    *batch = (struct arrow_batch){0};
    *out_array = array;
    return STATUS_OK;
}

/* ---- streams ---- */

struct exported_stream {
    struct arrow_c_source source;
    struct arrow_schema schema;
    struct arena arena; /* of the schema */
    struct error err;   /* the last one */
};

static int code_of(enum status status)
{
    switch (status) {
    case STATUS_OK:
        return 0;
    case STATUS_INVALID:
    case STATUS_CORRUPT:
        return EINVAL;
    case STATUS_NO_MEMORY:
        return ENOMEM;
    case STATUS_UNSUPPORTED:
        return ENOSYS;
    default:
        return EIO;
    }
}

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    struct exported_stream *exported = stream->private_data;
    return code_of(arrow_c_export_schema(&exported->schema, out, &exported->err));
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    struct exported_stream *exported = stream->private_data;
    struct arrow_c_source *source = &exported->source;
    struct arrow_batch batch;
    enum status status = source->next(source->context, &batch, &exported->err);
    if (status == STATUS_NOT_FOUND) {
        out->release = NULL; /* the end */
        return 0;
    }
    if (status != STATUS_OK)
        return code_of(status);
    if (arrow_schema_equal(batch.schema, &exported->schema))
        status = arrow_c_export_batch(&batch, out, &exported->err);
    else
        status = error_set(&exported->err, STATUS_INVALID, "arrow: a batch of another schema");
    if (status != STATUS_OK)
        arrow_batch_deinit(&batch);
    return code_of(status);
}

static const char *get_last_error(struct ArrowArrayStream *stream)
{
    const struct exported_stream *exported = stream->private_data;
    return exported->err.message[0] ? exported->err.message : NULL;
}

static void release_stream(struct ArrowArrayStream *stream)
{
    struct exported_stream *exported = stream->private_data;
    if (exported->source.close)
        exported->source.close(exported->source.context);
    arena_deinit(&exported->arena);
    mem_free(exported);
    stream->release = NULL;
}

enum status arrow_c_export_stream(const struct arrow_schema *schema, struct arrow_c_source source,
                                  struct ArrowArrayStream *out_stream, struct error *err)
{
    struct exported_stream *exported = mem_alloc_zero(1, sizeof *exported);
    if (!exported)
        return c_no_memory(err);
    exported->source = source;
    enum status status = arrow_schema_copy(schema, &exported->arena, &exported->schema, err);
    if (status != STATUS_OK) {
        arena_deinit(&exported->arena);
        mem_free(exported);
        return status;
    }
    *out_stream = (struct ArrowArrayStream){.get_schema = get_schema,
                                            .get_next = get_next,
                                            .get_last_error = get_last_error,
                                            .release = release_stream,
                                            .private_data = exported};
    return STATUS_OK;
}

/* ---- files as streams ---- */

/* Copies of the dictionaries at and below a field: those in force belong to the file. */
static enum status own_dictionaries(const struct arrow_field *field, struct arrow_array *array,
                                    struct arena *arena, struct error *err)
{
    if (field->is_dictionary) {
        struct arrow_field values = dictionary_value_field(field);
        const struct arrow_array *borrowed = array->dictionary;
        array->dictionary = arena_alloc_zero(arena, 1, sizeof *array->dictionary);
        return array->dictionary
                   ? array_copy_canonical(&values, borrowed, arena, array->dictionary, err)
                   : c_no_memory(err);
    }
    for (uint32_t i = 0; i < field->child_count; i++)
        TRY(own_dictionaries(&field->children[i], &array->children[i], arena, err));
    return STATUS_OK;
}

static enum status next_of_file(void *context, struct arrow_batch *out_batch, struct error *err)
{
    struct arrow_batch batch;
    TRY(arrow_file_next(context, &batch, err));
    enum status status = STATUS_OK;
    for (uint32_t i = 0; status == STATUS_OK && i < batch.schema->field_count; i++)
        status = own_dictionaries(&batch.schema->fields[i], &batch.columns[i], &batch.arena, err);
    if (status == STATUS_OK)
        *out_batch = batch;
    else
        arrow_batch_deinit(&batch);
    return status;
}

static void close_file(void *context)
{
    arrow_file_close(context);
}

enum status arrow_c_export_file(struct arrow_file *file, struct ArrowArrayStream *out_stream,
                                struct error *err)
{
    struct arrow_c_source source = {.next = next_of_file, .close = close_file, .context = file};
    return arrow_c_export_stream(arrow_file_schema(file), source, out_stream, err);
}
