/* SPDX-License-Identifier: Apache-2.0
 *
 * The columns that are wanted, found among those that are there; plan, fetch, decode.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "format/parquet/reader_internal.h"

/* ---- binding ---- */

enum { MEMORY_BYTES_MAX = 256 << 20 };

struct binder {
    struct parquet_reader *reader;
    struct error *err;
};

static enum status invalid(const struct binder *binder, const struct arrow_field *field,
                           const char *what)
{
    return error_set(binder->err, STATUS_INVALID, "parquet: column %.100s: %s", field->name, what);
}

static enum status out_of_memory(const struct binder *binder)
{
    return error_set(binder->err, STATUS_NO_MEMORY, "parquet: no memory for a reader");
}

/* The fields of a group of the file, to be found one after the other. */
struct lookup {
    const struct parquet_node *nodes;
    uint32_t count, next; /* the one behind that which was found last: most often it is right */
    struct sort_key *by_name, *by_id; /* NULL until they are needed */
};

static bool is_wanted(const struct parquet_node *node, const struct arrow_field *wanted,
                      bool is_by_id)
{
    return is_by_id ? node->field->field_id == wanted->field_id
                    : strcmp(node->field->name, wanted->name) == 0;
}

/* The first of the group that is it; NULL: none is. */
static enum status find_node(struct binder *binder, struct lookup *lookup,
                             const struct arrow_field *wanted, const struct parquet_node **out_node)
{
    bool is_by_id = binder->reader->options.binds_by_id && wanted->field_id;
    struct sort_key **sorted = is_by_id ? &lookup->by_id : &lookup->by_name;
    struct sort_key key = {.place = 0};
    *out_node = NULL;
    if (lookup->next < lookup->count && is_wanted(&lookup->nodes[lookup->next], wanted, is_by_id)) {
        *out_node = &lookup->nodes[lookup->next++];
        return STATUS_OK;
    }
    if (!*sorted)
        *sorted = nodes_sort(lookup->nodes, lookup->count, is_by_id, &binder->reader->arena);
    if (!*sorted)
        return out_of_memory(binder);
    if (is_by_id)
        key.id = wanted->field_id;
    else
        key.name = span_of_text(wanted->name);
    uint32_t at = find_key(*sorted, lookup->count, &key);
    if (at == lookup->count)
        return STATUS_OK;
    *out_node = &lookup->nodes[(*sorted)[at].place];
    lookup->next = (*sorted)[at].place + 1;
    return STATUS_OK;
}

/* How the file's values become those of the wanted type; false: they do not. */
static bool find_conversion(const struct parquet_leaf *leaf, const struct arrow_field *wanted,
                            enum conversion *out_conversion)
{
    enum arrow_type type = leaf->field->type;
    bool is_bytes = type == ARROW_UTF8 || type == ARROW_BINARY;
    *out_conversion = CONVERT_NONE;
    if (leaf->physical == PARQUET_INT96)
        *out_conversion = CONVERT_INT96;
    else if (type == ARROW_TIMESTAMP_US && leaf->unit == PARQUET_MILLIS)
        *out_conversion = CONVERT_MILLIS;
    else if (leaf->physical == PARQUET_INT32 && type == ARROW_INT64)
        *out_conversion = CONVERT_U32_TO_I64;
    if (type == ARROW_INT32 && wanted->type == ARROW_INT64) {
        *out_conversion = CONVERT_I32_TO_I64;
        return true;
    }
    if (type == ARROW_FLOAT && wanted->type == ARROW_DOUBLE) {
        *out_conversion = CONVERT_FLOAT_TO_DOUBLE;
        return true;
    }
    if (is_bytes && (wanted->type == ARROW_UTF8 || wanted->type == ARROW_BINARY))
        return true;
    return type == wanted->type &&
           (type != ARROW_FIXED || leaf->width == (uint32_t)wanted->byte_width);
}

static enum status bind_leaf(struct binder *binder, const struct arrow_field *wanted,
                             const struct parquet_leaf *leaf, struct binding *binding)
{
    const struct parquet_read_options *options = &binder->reader->options;
    struct buf there = {0}, here = {0};
    bool matches = options->keeps_physical || !options->schema ||
                   logical_matches(leaf, wanted, &binding->converts);
    if (binding->converts)
        binding->conversion = leaf->physical == PARQUET_INT32 && leaf->field->type == ARROW_INT64
                                  ? CONVERT_U32_TO_I64
                                  : CONVERT_NONE;
    else
        matches = matches && find_conversion(leaf, wanted, &binding->conversion);
    if (matches)
        return STATUS_OK;
    logical_describe(leaf, &there);
    arrow_type_describe(wanted, &here);
    buf_put_byte(&there, 0);
    buf_put_byte(&here, 0);
    enum status status =
        there.failed || here.failed
            ? out_of_memory(binder)
            : error_set(binder->err, STATUS_INVALID,
                        "parquet: column %.100s: another type in the file, %s instead of %s",
                        wanted->name, (const char *)there.data, (const char *)here.data);
    buf_deinit(&there);
    buf_deinit(&here);
    return status;
}

static enum status bind(struct binder *binder, const struct arrow_field *wanted,
                        const struct parquet_node *node, struct binding *binding);

/* A field that the file does not have is null with all below it. */
static enum status bind_missing(struct binder *binder, const struct arrow_field *wanted,
                                struct binding *binding)
{
    *binding = (struct binding){.field = wanted};
    if (!wanted->is_nullable)
        return invalid(binder, wanted, "required, and not in the file");
    return STATUS_OK;
}

static enum status bind_children(struct binder *binder, const struct arrow_field *wanted,
                                 const struct parquet_node *node, struct binding *binding)
{
    bool is_struct = wanted->type == ARROW_STRUCT, has_any = false;
    struct lookup lookup = {.nodes = node->children, .count = node->field->child_count};
    if (!is_struct && wanted->child_count != node->field->child_count)
        return invalid(binder, wanted, "another count of children");
    binding->children =
        arena_alloc_zero(&binder->reader->arena, wanted->child_count, sizeof *binding->children);
    if (!binding->children)
        return out_of_memory(binder);
    for (uint32_t i = 0; i < wanted->child_count; i++) {
        const struct arrow_field *child = &wanted->children[i];
        const struct parquet_node *found = &node->children[i];
        if (is_struct)
            TRY(find_node(binder, &lookup, child, &found));
        struct binding *to = &binding->children[i];
        if (!found) {
            TRY(bind_missing(binder, child, to));
            continue;
        }
        TRY(bind(binder, child, found, to));
        if (!has_any)
            binding->leaf = to->leaf;
        has_any = true;
    }
    if (!has_any) /* its levels are still to be known */
        binder->reader->places[binding->leaf] = 0;
    return STATUS_OK;
}

static enum status bind(struct binder *binder, const struct arrow_field *wanted,
                        const struct parquet_node *node, struct binding *binding)
{
    const struct parquet_file *file = binder->reader->file;
    bool is_nested = node->children != NULL;
    *binding = (struct binding){.field = wanted, .node = node, .leaf = node->first_leaf};
    if (is_nested && node->field->type != wanted->type)
        return invalid(binder, wanted, "another type in the file");
    if (wanted->is_dictionary && wanted->type != ARROW_UTF8 && wanted->type != ARROW_BINARY)
        return error_set(binder->err, STATUS_USAGE,
                         "parquet: column %.100s: only text and binary are kept as dictionaries",
                         wanted->name);
    if (is_nested)
        return bind_children(binder, wanted, node, binding);
    TRY(bind_leaf(binder, wanted, &file->leaves[node->first_leaf], binding));
    binder->reader->places[node->first_leaf] = 0; /* numbered later */
    return STATUS_OK;
}

static enum status bind_all(struct binder *binder)
{
    struct parquet_reader *reader = binder->reader;
    const struct parquet_file *file = reader->file;
    const struct arrow_schema *schema = reader->schema;
    size_t leaves = file->leaf_count;
    struct lookup lookup = {.nodes = file->nodes, .count = file->schema.field_count};
    reader->bindings =
        arena_alloc_zero(&reader->arena, schema->field_count, sizeof *reader->bindings);
    reader->places = arena_alloc(&reader->arena, (leaves + 1) * sizeof *reader->places);
    reader->leaves = arena_alloc(&reader->arena, (leaves + 1) * sizeof *reader->leaves);
    if (!reader->bindings || !reader->places || !reader->leaves)
        return out_of_memory(binder);
    for (size_t i = 0; i < leaves; i++)
        reader->places[i] = UINT32_MAX;
    for (uint32_t i = 0; i < schema->field_count; i++) {
        const struct arrow_field *wanted = &schema->fields[i];
        const struct parquet_node *node;
        TRY(find_node(binder, &lookup, wanted, &node));
        TRY(node ? bind(binder, wanted, node, &reader->bindings[i])
                 : bind_missing(binder, wanted, &reader->bindings[i]));
    }
    for (uint32_t i = 0; i < leaves; i++) {
        if (reader->places[i] == UINT32_MAX)
            continue;
        reader->places[i] = (uint32_t)reader->leaf_count;
        reader->leaves[reader->leaf_count++] = i;
    }
    return STATUS_OK;
}

enum status parquet_reader_create(const struct parquet_file *file,
                                  const struct parquet_read_options *options,
                                  struct parquet_reader **out_reader, struct error *err)
{
    struct parquet_reader *reader = mem_alloc_zero(1, sizeof *reader);
    struct binder binder = {.reader = reader, .err = err};
    if (!reader)
        return error_set(err, STATUS_NO_MEMORY, "parquet: no memory for a reader");
    reader->file = file;
    reader->options = *options;
    reader->index = &reader->own_index;
    group_index_init(&reader->own_index, file);
    reader->pool = options->memory ? options->memory : parquet_memory_create(MEMORY_BYTES_MAX);
    if (options->memory)
        pool_share(reader->pool);
    reader->schema = options->schema ? options->schema : &file->schema;
    enum status status = reader->pool ? bind_all(&binder) : out_of_memory(&binder);
    if (status == STATUS_OK)
        *out_reader = reader;
    else
        parquet_reader_destroy(reader);
    return status;
}

void parquet_reader_destroy(struct parquet_reader *reader)
{
    if (!reader)
        return;
    codec_expander_destroy(reader->zstd);
    if (reader->options.memory)
        pool_leave(reader->pool);
    else
        parquet_memory_destroy(reader->pool);
    group_index_deinit(&reader->own_index);
    arena_deinit(&reader->arena);
    mem_free(reader);
}

const struct arrow_schema *parquet_reader_schema(const struct parquet_reader *reader)
{
    return reader->schema;
}

/* ---- plan, fetch, decode ---- */

size_t parquet_reader_range_count(const struct parquet_reader *reader)
{
    return reader->leaf_count;
}

void parquet_reader_plan(const struct parquet_reader *reader, size_t group,
                         struct parquet_range *out_ranges)
{
    CHECK(group < reader->file->group_count);
    for (size_t i = 0; i < reader->leaf_count; i++) {
        uint32_t leaf = reader->leaves[i];
        const struct parquet_chunk *chunk = &reader->file->groups[group].chunks[leaf];
        out_ranges[i] =
            (struct parquet_range){.offset = chunk->offset, .bytes = chunk->bytes, .leaf = leaf};
    }
}

/* The whole chunks of a group, whose bytes are at hand, as a plan. */
static bool plan_of_chunks(struct parquet_reader *reader, size_t group, const struct span *ranges,
                           struct parquet_plan *plan)
{
    const struct parquet_group *chunks = &reader->file->groups[group];
    size_t count = reader->leaf_count + 1;
    plan->group = group;
    plan->row_count = chunks->rows;
    plan->leaves = arena_alloc_zero(&plan->arena, count, sizeof *plan->leaves);
    struct page_piece *pieces = arena_alloc_zero(&plan->arena, count, sizeof *pieces);
    if (!plan->leaves || !pieces)
        return false;
    for (size_t i = 0; i < reader->leaf_count; i++) {
        const struct parquet_chunk *chunk = &chunks->chunks[reader->leaves[i]];
        CHECK(ranges[i].length == chunk->bytes);
        pieces[i] = (struct page_piece){.offset = chunk->offset,
                                        .length = chunk->bytes,
                                        .bytes = ranges[i],
                                        .row_count = chunks->rows};
        plan->leaves[i] = (struct planned_leaf){.pieces = &pieces[i], .count = 1, .is_whole = true};
    }
    return true;
}

enum status parquet_reader_decode(struct parquet_reader *reader, size_t group,
                                  const struct span *ranges, struct arrow_batch *out_batch,
                                  struct error *err)
{
    struct parquet_plan plan = {.group = group};
    CHECK(group < reader->file->group_count);
    enum status status = plan_of_chunks(reader, group, ranges, &plan)
                             ? group_assemble(reader, &plan, out_batch, err)
                             : error_set(err, STATUS_NO_MEMORY, "parquet: no memory for a plan");
    parquet_plan_deinit(&plan);
    return status;
}

static enum status fetch(struct parquet_reader *reader, const struct parquet_range *range,
                         size_t group, struct buf *out_bytes, struct error *err)
{
    const char *path = reader->file->leaves[range->leaf].path;
    if (range->bytes > SIZE_MAX / 2)
        return error_set(err, STATUS_LIMIT, "parquet: column %.100s: too large", path);
    if (!pool_reserve(reader->pool, out_bytes, (size_t)range->bytes + 1))
        return error_set(err, STATUS_NO_MEMORY, "parquet: column %.100s: no memory", path);
    out_bytes->length = (size_t)range->bytes;
    if (file_fetch(reader->file, &reader->fetches, range->offset, out_bytes->length,
                   out_bytes->data, err) != STATUS_OK)
        return error_prefix(err, "parquet: column %.100s, row group %zu", path, group);
    return STATUS_OK;
}

/* Chunks that overlap could each be as large as the file. */
static enum status check_ranges(const struct parquet_reader *reader, size_t group,
                                const struct parquet_range *ranges, struct error *err)
{
    const struct parquet_file *file = reader->file;
    uint64_t sum = 0;
    for (size_t i = 0; i < reader->leaf_count; i++) {
        if (ranges[i].bytes > file->source.file_bytes - sum)
            return error_set(err, STATUS_CORRUPT,
                             "parquet: column %.100s, row group %zu, byte %" PRIu64
                             ": with the columns before it, more bytes than the file has",
                             file->leaves[ranges[i].leaf].path, group, ranges[i].offset);
        sum += ranges[i].bytes;
    }
    if (sum > file->limits.batch_bytes_max)
        return error_set(err, STATUS_LIMIT,
                         "parquet: row group %zu: %" PRIu64 " bytes to read for a batch within %zu",
                         group, sum, file->limits.batch_bytes_max);
    return STATUS_OK;
}

enum status parquet_reader_read(struct parquet_reader *reader, size_t group,
                                struct arrow_batch *out_batch, struct error *err)
{
    size_t count = reader->leaf_count;
    struct parquet_range *ranges = mem_alloc((count + 1) * sizeof *ranges);
    struct span *spans = mem_alloc_zero(count + 1, sizeof *spans);
    struct buf *bytes = mem_alloc_zero(count + 1, sizeof *bytes);
    enum status status = STATUS_OK;
    if (!ranges || !spans || !bytes) {
        status = error_set(err, STATUS_NO_MEMORY, "parquet: no memory for a plan");
        goto done;
    }
    parquet_reader_plan(reader, group, ranges);
    TRY_OR_DONE(status, check_ranges(reader, group, ranges, err));
    for (size_t i = 0; i < count; i++) {
        TRY_OR_DONE(status, fetch(reader, &ranges[i], group, &bytes[i], err));
        spans[i] = span_of(bytes[i].data, bytes[i].length);
    }
    status = parquet_reader_decode(reader, group, spans, out_batch, err);
done:
    for (size_t i = 0; bytes && i < count; i++)
        pool_give(reader->pool, &bytes[i]);
    mem_free(bytes);
    mem_free(spans);
    mem_free(ranges);
    return status;
}
