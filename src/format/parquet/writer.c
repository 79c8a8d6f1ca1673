/* SPDX-License-Identifier: Apache-2.0
 *
 * The writer: leaves of a schema, row groups, what the caller learns at the end.
 */
#include "format/parquet/parquet_internal.h"

struct parquet_options parquet_options_default(void)
{
    return (struct parquet_options){.compression = PARQUET_ZSTD,
                                    .zstd_level = 1,
                                    .own_zstd_frames = true,
                                    .row_group_rows = 122880,
                                    .row_group_bytes = (size_t)256 << 20,
                                    .row_group_plain_bytes = (uint64_t)512 << 20,
                                    .page_rows = 20000,
                                    .page_bytes = (size_t)1 << 20,
                                    .page_version = 1,
                                    .dictionary_bytes_max = (size_t)4 << 20,
                                    .created_by = "sluice version 0.1.0 (build 0)"};
}

static enum status no_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "parquet: no memory for a writer");
}

/* ---- schema ---- */

static bool is_leaf(const struct arrow_field *field)
{
    return field->child_count == 0;
}

static enum status check_field(const struct arrow_field *field, uint32_t depth, struct error *err)
{
    bool is_nested =
        field->type == ARROW_STRUCT || field->type == ARROW_LIST || field->type == ARROW_MAP;
    uint32_t due = field->type == ARROW_LIST ? 1 : field->type == ARROW_MAP ? 2 : 0;
    if (depth > NESTING_MAX)
        return error_set(err, STATUS_USAGE, "parquet: column %.100s: nested deeper than %d",
                         field->name, NESTING_MAX);
    if ((unsigned)field->type >= ARROW_TYPE_COUNT ||
        (field->type == ARROW_FIXED && field->byte_width < 1))
        return error_set(err, STATUS_USAGE, "parquet: column %.100s: not a type of Parquet",
                         field->name);
    if (is_nested != (field->child_count > 0) || (due && field->child_count != due))
        return error_set(err, STATUS_USAGE, "parquet: column %.100s: wrong number of children",
                         field->name);
    if (field->type == ARROW_MAP && field->children[0].is_nullable)
        return error_set(err, STATUS_USAGE, "parquet: column %.100s: keys that may be null",
                         field->name);
    for (uint32_t i = 0; i < field->child_count; i++)
        TRY(check_field(&field->children[i], depth + 1, err));
    return STATUS_OK;
}

static uint32_t count_leaves(const struct arrow_field *field)
{
    uint32_t count = is_leaf(field);
    for (uint32_t i = 0; i < field->child_count; i++)
        count += count_leaves(&field->children[i]);
    return count;
}

/* Walks down and makes a leaf at each end; `path` holds the steps so far. */
static enum status add_leaves(struct parquet_writer *writer, const struct arrow_field *field,
                              uint32_t child, struct path_step *path, uint32_t depth,
                              struct error *err)
{
    struct path_step *step = &path[depth];
    const struct path_step *parent = depth ? step - 1 : NULL;
    bool in_list = parent && parent->field->type != ARROW_STRUCT;
    step->field = field;
    step->child = child;
    step->null_def = (uint8_t)(parent ? parent->def + in_list : 0);
    step->def = (uint8_t)(step->null_def + field->is_nullable);
    step->rep = (uint8_t)(parent ? parent->rep + in_list : 0);
    for (uint32_t i = 0; i < field->child_count; i++)
        TRY(add_leaves(writer, &field->children[i], i, path, depth + 1, err));
    if (!is_leaf(field))
        return STATUS_OK;
    struct leaf *leaf = &writer->leaves[writer->leaf_count];
    leaf->path = arena_alloc(&writer->arena, (depth + 1) * sizeof *path);
    if (!leaf->path)
        return no_memory(err);
    memcpy(leaf->path, path, (depth + 1) * sizeof *path);
    leaf->path_length = depth + 1;
    leaf->field = field;
    leaf->max_def = step->def;
    leaf->max_rep = step->rep;
    leaf->type = physical_type(field, &leaf->width);
    leaf->order = physical_order(field, leaf->type);
    leaf->metrics.field_id = field->field_id;
    writer->leaf_count++; /* from here on destroy knows it */
    return leaf_init(leaf, &writer->options, err);
}

static enum status make_leaves(struct parquet_writer *writer, struct error *err)
{
    struct path_step path[NESTING_MAX + 1];
    uint32_t count = 0;
    if (writer->schema.field_count == 0)
        return error_set(err, STATUS_USAGE, "parquet: a schema without columns");
    for (uint32_t i = 0; i < writer->schema.field_count; i++) {
        TRY(check_field(&writer->schema.fields[i], 1, err));
        count += count_leaves(&writer->schema.fields[i]);
    }
    writer->leaves = mem_alloc_zero(count, sizeof *writer->leaves);
    if (!writer->leaves)
        return no_memory(err);
    for (uint32_t i = 0; i < writer->schema.field_count; i++)
        TRY(add_leaves(writer, &writer->schema.fields[i], i, path, 0, err));
    return STATUS_OK;
}

/* ---- options ---- */

static enum status copy_sorting(struct parquet_writer *writer, struct error *err)
{
    size_t count = writer->options.sorting_count;
    writer->sorting = arena_alloc_zero(&writer->arena, count, sizeof *writer->sorting);
    if (!writer->sorting)
        return no_memory(err);
    for (size_t i = 0; i < count; i++) {
        struct parquet_sorting_column column = writer->options.sorting[i];
        uint32_t leaf = 0;
        while (leaf < writer->leaf_count && writer->leaves[leaf].path[0].child != column.field)
            leaf++;
        if (leaf == writer->leaf_count || writer->leaves[leaf].path_length != 1)
            return error_set(err, STATUS_USAGE, "parquet: cannot be sorted by field %u",
                             column.field);
        column.field = leaf;
        writer->sorting[i] = column;
    }
    writer->options.sorting = NULL; /* the caller's */
    return STATUS_OK;
}

static const enum codec codecs[] = {[PARQUET_ZSTD] = CODEC_ZSTD,
                                    [PARQUET_SNAPPY] = CODEC_SNAPPY,
                                    [PARQUET_GZIP] = CODEC_GZIP,
                                    [PARQUET_LZ4_RAW] = CODEC_LZ4_BLOCK};

/* One a thread, but not more than leaves. */
static enum status make_scratches(struct parquet_writer *writer, struct error *err)
{
    const struct parquet_options *options = &writer->options;
    unsigned threads = options->executor.run ? options->executor.threads : 0;
    threads = threads < writer->leaf_count ? threads : writer->leaf_count;
    threads = threads ? threads : 1;
    writer->scratches = mem_alloc_zero(threads, sizeof *writer->scratches);
    writer->order = arena_alloc(&writer->arena, writer->leaf_count * sizeof *writer->order);
    if (!writer->scratches || !writer->order)
        return no_memory(err);
    while (writer->thread_count < threads) {
        struct page_scratch *scratch = &writer->scratches[writer->thread_count++];
        if (options->compression != PARQUET_UNCOMPRESSED)
            TRY(codec_compressor_create(codecs[options->compression], options->zstd_level,
                                        &scratch->compressor, err));
    }
    return STATUS_OK;
}

static void free_scratches(struct parquet_writer *writer)
{
    for (unsigned i = 0; i < writer->thread_count; i++) {
        struct page_scratch *scratch = &writer->scratches[i];
        codec_compressor_destroy(scratch->compressor);
        buf_deinit(&scratch->body);
        buf_deinit(&scratch->packed);
        buf_deinit(&scratch->other);
        buf_deinit(&scratch->trial);
        buf_deinit(&scratch->header);
        arena_deinit(&scratch->arena);
    }
    mem_free(writer->scratches);
}

static enum status copy_options(struct parquet_writer *writer, struct error *err)
{
    struct parquet_options *options = &writer->options;
    if ((unsigned)options->compression >= COUNT_OF(codecs))
        return error_set(err, STATUS_USAGE, "parquet: no such compression");
    if (options->page_version != 1 && options->page_version != 2)
        return error_set(err, STATUS_USAGE, "parquet: pages of version %d", options->page_version);
    if (options->row_group_rows < 1 || options->page_rows < 1 || !options->page_bytes ||
        !options->row_group_bytes || !options->row_group_plain_bytes || !options->created_by)
        return error_set(err, STATUS_USAGE, "parquet: an option of zero that must not be");
    options->created_by =
        arena_copy_text(&writer->arena, options->created_by, strlen(options->created_by));
    if (!options->created_by)
        return no_memory(err);
    for (size_t i = 0; i < options->metadata_count; i++)
        TRY(parquet_writer_add_metadata(writer, options->metadata[i].key,
                                        options->metadata[i].value, err));
    options->metadata = NULL; /* the caller's */
    if (options->arrow_schema)
        TRY(arrow_schema_keep(writer, options->arrow_schema, err));
    options->arrow_schema = NULL; /* the caller's */
    TRY(copy_sorting(writer, err));
    TRY(apply_column_options(writer, err));
    return make_scratches(writer, err);
}

/* ---- life ---- */

enum status parquet_writer_create(const struct arrow_schema *schema,
                                  const struct parquet_options *options, struct sink sink,
                                  struct parquet_writer **out_writer, struct error *err)
{
    enum status status;
    struct parquet_writer *writer = mem_alloc_zero(1, sizeof *writer);
    if (!writer)
        return no_memory(err);
    writer->options = *options;
    writer->sink = sink;
    TRY_OR_DONE(status, arrow_schema_copy(schema, &writer->arena, &writer->given, err));
    TRY_OR_DONE(status, arrow_schema_copy(schema, &writer->arena, &writer->schema, err));
    TRY_OR_DONE(status, physical_fields(writer->schema.fields, writer->schema.field_count,
                                        &writer->is_converting, err));
    TRY_OR_DONE(status, make_leaves(writer, err));
    TRY_OR_DONE(status, copy_options(writer, err));
    *out_writer = writer;
done:
    if (status != STATUS_OK)
        parquet_writer_destroy(writer);
    return status;
}

void parquet_writer_destroy(struct parquet_writer *writer)
{
    if (!writer)
        return;
    for (uint32_t i = 0; i < writer->leaf_count; i++)
        leaf_deinit(&writer->leaves[i]);
    mem_free(writer->leaves);
    free_scratches(writer);
    buf_deinit(&writer->metadata);
    arena_deinit(&writer->arena);
    mem_free(writer);
}

enum status parquet_writer_add_metadata(struct parquet_writer *writer, const char *key,
                                        const char *value, struct error *err)
{
    struct parquet_key_value pair = {.key = arena_copy_text(&writer->arena, key, strlen(key)),
                                     .value =
                                         arena_copy_text(&writer->arena, value, strlen(value))};
    if (!pair.key || !pair.value)
        return no_memory(err);
    buf_put(&writer->metadata, &pair, sizeof pair);
    return buf_status(&writer->metadata, "parquet: metadata", err);
}

int64_t parquet_writer_rows(const struct parquet_writer *writer)
{
    return writer->file_rows + writer->group_rows;
}

uint64_t writer_pending_bytes(const struct parquet_writer *writer)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < writer->leaf_count; i++)
        bytes += leaf_bytes(&writer->leaves[i]);
    return bytes;
}

uint64_t parquet_writer_bytes(const struct parquet_writer *writer)
{
    return writer->offset + writer_pending_bytes(writer);
}

/* ---- row groups ---- */

/* Alone, each chunk is sealed and written before the next. */
static enum status finish_chunks(struct parquet_writer *writer, struct group_record *group,
                                 struct error *err)
{
    uint32_t sealed = 0;
    enum status status = STATUS_OK;
    if (is_worth_spreading(writer, writer_pending_bytes(writer)))
        status = leaves_seal(writer, &sealed, err);
    for (uint32_t i = 0; i < writer->leaf_count; i++) {
        struct leaf *leaf = &writer->leaves[i];
        if (i >= sealed && status == STATUS_OK)
            status = leaf_seal_chunk(writer->scratches, leaf, err);
        TRY(status);
        TRY(leaf_put_chunk(writer, leaf, &group->chunks[i], err));
    }
    return STATUS_OK;
}

enum status writer_finish_group(struct parquet_writer *writer, struct error *err)
{
    struct group_record *group = arena_alloc_zero(&writer->arena, 1, sizeof *group);
    if (!group || !(group->chunks = arena_alloc_zero(&writer->arena, writer->leaf_count,
                                                     sizeof *group->chunks)))
        return no_memory(err);
    if (writer->offset == 0)
        TRY(writer_put(writer, "PAR1", 4, err));
    TRY(finish_chunks(writer, group, err));
    for (uint32_t i = 0; i < writer->leaf_count; i++)
        if (writer->leaves[i].has_bloom)
            TRY(footer_write_bloom(writer, &writer->leaves[i], &group->chunks[i], err));
    group->rows = writer->group_rows;
    if (writer->last_group)
        writer->last_group->next = group;
    else
        writer->groups = group;
    writer->last_group = group;
    writer->group_count++;
    writer->file_rows += writer->group_rows;
    writer->group_rows = 0;
    writer->group_bytes = 0;
    writer->is_ordered = false;
    return STATUS_OK;
}

/* A batch's field stands for ours if it has the same type and, where both have one, the same id,
 * else the same name. */
static bool fields_match(const struct arrow_field *ours, const struct arrow_field *theirs,
                         uint32_t count, bool has_names)
{
    for (uint32_t i = 0; i < count; i++) {
        bool is_same = ours[i].field_id && theirs[i].field_id
                           ? ours[i].field_id == theirs[i].field_id
                           : !has_names || strcmp(ours[i].name, theirs[i].name) == 0;
        if (!is_same || ours[i].type != theirs[i].type ||
            ours[i].byte_width != theirs[i].byte_width ||
            ours[i].is_instant != theirs[i].is_instant ||
            ours[i].child_count != theirs[i].child_count ||
            !arrow_origins_equal(ours[i].origin, theirs[i].origin) ||
            !fields_match(ours[i].children, theirs[i].children, ours[i].child_count,
                          ours[i].type == ARROW_STRUCT))
            return false;
    }
    return true;
}

/* The columns of `batch`, each in the type that the file has. */
static enum status make_columns(const struct parquet_writer *writer,
                                const struct arrow_batch *batch, struct arena *arena,
                                struct arrow_array **out_columns, struct error *err)
{
    uint32_t count = writer->schema.field_count;
    struct arrow_array *columns = arena_alloc_zero(arena, count, sizeof *columns);
    if (!columns)
        return no_memory(err);
    for (uint32_t i = 0; i < count; i++)
        TRY(physical_array(&writer->given.fields[i], &writer->schema.fields[i], &batch->columns[i],
                           arena, &columns[i], err));
    *out_columns = columns;
    return STATUS_OK;
}

enum status parquet_writer_write(struct parquet_writer *writer, const struct arrow_batch *batch,
                                 struct error *err)
{
    struct arena arena;
    struct arrow_array *columns = batch->columns;
    enum status status = STATUS_OK;
    if (batch->schema->field_count != writer->given.field_count ||
        !fields_match(writer->given.fields, batch->schema->fields, writer->given.field_count, true))
        return error_set(err, STATUS_INVALID, "parquet: a batch of another schema");
    arena_init(&arena, 0);
    if (writer->is_converting)
        status = make_columns(writer, batch, &arena, &columns, err);
    if (status == STATUS_OK)
        status = writer_append(writer, columns, batch->length, &arena, err);
    arena_deinit(&arena);
    return status;
}

/* ---- the end ---- */

static bool copy_bound(struct parquet_file_metrics *metrics, struct span from, struct span *out)
{
    uint8_t *copy = arena_alloc(&metrics->arena, from.length);
    if (copy && from.length)
        memcpy(copy, from.data, from.length);
    *out = span_of(copy, from.length);
    return copy != NULL;
}

/* Iceberg's bounds of the file, shorter than Parquet's. */
static enum status set_bounds(struct parquet_file_metrics *metrics, const struct leaf *leaf,
                              struct parquet_column_metrics *column, struct error *err)
{
    enum { CODE_POINTS_MAX = 16, BYTES_MAX = 16 };
    struct span min = span_of(leaf->file_extent.min.data, leaf->file_extent.min.length);
    struct span max = span_of(leaf->file_extent.max.data, leaf->file_extent.max.length), upper;
    bool is_text = leaf->field->type == ARROW_UTF8;
    struct buf grown = {0};
    if (!leaf->file_extent.is_set || leaf->max_rep || column->nan_count > 0 || leaf->field->origin)
        return STATUS_OK; /* types that Iceberg would bound otherwise are in no table */
    min = bound_lower(min, is_text ? code_points_bytes(min, CODE_POINTS_MAX) : BYTES_MAX, is_text);
    column->has_lower = true;
    column->has_upper =
        bound_upper(max, is_text ? code_points_bytes(max, CODE_POINTS_MAX) : BYTES_MAX, is_text,
                    &grown, &upper);
    bool is_whole = copy_bound(metrics, min, &column->lower) &&
                    (!column->has_upper || copy_bound(metrics, upper, &column->upper));
    buf_deinit(&grown);
    if (!is_whole)
        return no_memory(err);
    if (leaf->type == PARQUET_FLOAT || leaf->type == PARQUET_DOUBLE) {
        uint8_t value[8];
        for (int is_lower = 0; is_lower < 2; is_lower++) {
            struct span *bound = is_lower ? &column->lower : &column->upper;
            memcpy(value, bound->data, bound->length);
            bound_fix_zero(leaf->order, value, is_lower);
            if (!copy_bound(metrics, span_of(value, bound->length), bound))
                return no_memory(err);
        }
    }
    return STATUS_OK;
}

static enum status make_metrics(const struct parquet_writer *writer,
                                struct parquet_file_metrics *metrics, struct error *err)
{
    size_t at = 0;
    metrics->file_bytes = writer->offset;
    metrics->row_count = writer->file_rows;
    metrics->split_offsets =
        arena_alloc(&metrics->arena, writer->group_count * sizeof *metrics->split_offsets);
    metrics->columns =
        arena_alloc_zero(&metrics->arena, writer->leaf_count, sizeof *metrics->columns);
    if (!metrics->split_offsets || !metrics->columns)
        return no_memory(err);
    for (const struct group_record *group = writer->groups; group; group = group->next)
        metrics->split_offsets[at++] = (int64_t)group->chunks[0].offset;
    metrics->split_offset_count = at;
    metrics->column_count = writer->leaf_count;
    for (uint32_t i = 0; i < writer->leaf_count; i++) {
        const struct leaf *leaf = &writer->leaves[i];
        struct parquet_column_metrics *column = &metrics->columns[i];
        *column = leaf->metrics;
        if (leaf->type != PARQUET_FLOAT && leaf->type != PARQUET_DOUBLE)
            column->nan_count = -1;
        TRY(set_bounds(metrics, leaf, column, err));
    }
    return STATUS_OK;
}

void parquet_file_metrics_deinit(struct parquet_file_metrics *metrics)
{
    arena_deinit(&metrics->arena);
    *metrics = (struct parquet_file_metrics){0};
}

enum status parquet_writer_finish(struct parquet_writer *writer,
                                  struct parquet_file_metrics *out_metrics, struct error *err)
{
    struct parquet_file_metrics metrics = {0};
    if (writer->group_rows)
        TRY(writer_finish_group(writer, err));
    if (writer->offset == 0)
        TRY(writer_put(writer, "PAR1", 4, err));
    TRY(footer_write(writer, err));
    enum status status = make_metrics(writer, &metrics, err);
    if (status == STATUS_OK)
        *out_metrics = metrics;
    else
        parquet_file_metrics_deinit(&metrics);
    return status;
}
