/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches into Parquet, as the flags want it.
 */
#include "app/cmd/convert_internal.h"
#include "format/parquet/parquet.h"

static enum status write_parquet(void *state, const struct arrow_batch *batch, struct error *err)
{
    return parquet_writer_write(state, batch, err);
}

static enum status finish_parquet(void *state, struct error *err)
{
    struct parquet_file_metrics metrics;
    TRY(parquet_writer_finish(state, &metrics, err));
    parquet_file_metrics_deinit(&metrics);
    return STATUS_OK;
}

static void close_parquet(void *state)
{
    parquet_writer_destroy(state);
}

static const char *const compressions[] = {
    [PARQUET_UNCOMPRESSED] = "none", [PARQUET_ZSTD] = "zstd",   [PARQUET_SNAPPY] = "snappy",
    [PARQUET_GZIP] = "gzip",         [PARQUET_LZ4_RAW] = "lz4", [PARQUET_LZ4_RAW + 1] = NULL};

static const char *const encodings[] = {
    [PARQUET_VALUES_AUTO] = "auto",
    [PARQUET_VALUES_SMALLEST] = "smallest",
    [PARQUET_VALUES_PLAIN] = "plain",
    [PARQUET_VALUES_RLE] = "rle",
    [PARQUET_VALUES_DELTA_BINARY_PACKED] = "delta",
    [PARQUET_VALUES_DELTA_LENGTH_BYTE_ARRAY] = "delta-length",
    [PARQUET_VALUES_DELTA_BYTE_ARRAY] = "delta-bytes",
    [PARQUET_VALUES_BYTE_STREAM_SPLIT] = "byte-stream-split",
    [PARQUET_VALUES_BYTE_STREAM_SPLIT + 1] = NULL,
};

/* ---- columns ---- */

/* A step of a path, bare or in quotes with each quote twice, that is `name`; what follows it, or
 * NULL. */
static const char *skip_step(const char *path, const char *name)
{
    size_t length = strlen(name);
    const char *at = path;
    if (strncmp(path, name, length) == 0 && (path[length] == '.' || !path[length]))
        return path + length;
    if (*at++ != '"')
        return NULL;
    for (; *name && *at == *name; name++, at++)
        if (*name == '"' && *++at != '"')
            return NULL;
    return !*name && at[0] == '"' && (at[1] == '.' || !at[1]) ? at + 1 : NULL;
}

static bool put_path(const struct arrow_field *field, const char *name, const char *path,
                     struct buf *out);

/* What stands behind a field's own step: "", or ".key.a". False, and `out` as it was, if nothing is
 * there. */
static bool put_steps_below(const struct arrow_field *field, const char *path, struct buf *out)
{
    static const char *const pair[] = {"key", "value"};
    bool is_list = field->type == ARROW_LIST, is_map = field->type == ARROW_MAP;
    if (!*path)
        return true;
    if (is_list || is_map) {
        const char *inner = is_list ? "list" : "key_value", *behind = skip_step(path + 1, inner);
        buf_format(out, ".%s", inner);
        path = behind ? behind : path; /* the format's own paths have it */
    }
    for (uint32_t i = 0; *path && i < field->child_count; i++) {
        const struct arrow_field *child = &field->children[i];
        size_t length = out->length;
        buf_put_byte(out, '.');
        if (put_path(child, is_list ? "element" : is_map ? pair[i] : child->name, path + 1, out))
            return true;
        buf_truncate(out, length);
    }
    return !*path;
}

static bool put_path(const struct arrow_field *field, const char *name, const char *path,
                     struct buf *out)
{
    const char *behind = skip_step(path, name);
    size_t length = out->length;
    if (!behind)
        return false;
    buf_put_text(out, name);
    if (put_steps_below(field, behind, out))
        return true;
    buf_truncate(out, length);
    return false;
}

/* The path of the format's own ("l.list.element") for one as --columns takes it ("l.element"). One
 * of no column stays as it is, for the writer to name. */
static enum status find_path(const struct arrow_schema *schema, const char *path,
                             struct arena *arena, const char **out_path, struct error *err)
{
    struct buf out = {0};
    bool is_found = false;
    for (uint32_t i = 0; !is_found && i < schema->field_count; i++)
        is_found = put_path(&schema->fields[i], schema->fields[i].name, path, &out);
    const char *found =
        is_found && !out.failed ? arena_copy_text(arena, (const char *)out.data, out.length) : path;
    bool has_memory = found && !out.failed;
    buf_deinit(&out);
    if (!has_memory)
        return error_set(err, STATUS_NO_MEMORY, "out of memory");
    *out_path = found;
    return STATUS_OK;
}

/* ---- flags ---- */

/* "NAME", of the whole file, or "COLUMN=NAME". */
static enum status take_encoding(const struct arrow_schema *schema, const char *text,
                                 struct arena *arena, struct buf *columns,
                                 struct parquet_options *options, struct error *err)
{
    const char *equals = strrchr(text, '=');
    struct parquet_column_options column = {0};
    int number;
    TRY(find_name("--encoding", encodings, equals ? equals + 1 : text, &number, err));
    if (!equals) {
        options->values = (enum parquet_values)number;
        return STATUS_OK;
    }
    column.values = (enum parquet_values)number;
    const char *path = arena_copy_text(arena, text, (size_t)(equals - text));
    if (!path)
        return error_set(err, STATUS_NO_MEMORY, "out of memory");
    TRY(find_path(schema, path, arena, &column.path, err));
    buf_put(columns, &column, sizeof column);
    return buf_status(columns, "columns", err);
}

/* `columns`: struct parquet_column_options, which `options` borrows. */
static enum status take_flags(const struct arrow_schema *schema, const struct write_flags *flags,
                              struct arena *arena, struct buf *columns,
                              struct parquet_options *options, struct error *err)
{
    int number = PARQUET_ZSTD;
    if (flags->compression)
        TRY(find_name("--compression", compressions, flags->compression, &number, err));
    options->compression = (enum parquet_compression)number;
    options->created_by = "sluice version " SLUICE_VERSION " (build release)";
    if (flags->page_version)
        options->page_version = (int)flags->page_version;
    if (flags->row_group_rows)
        options->row_group_rows = (int64_t)flags->row_group_rows;
    if (flags->page_rows)
        options->page_rows = (int64_t)flags->page_rows;
    options->executor = flags->executor;
    options->arrow_schema = flags->no_arrow_schema ? NULL : flags->original;
    for (size_t i = 0; i < flags->encoding_count; i++)
        TRY(take_encoding(schema, flags->encodings[i], arena, columns, options, err));
    for (size_t i = 0; i < flags->bloom_count; i++) {
        struct parquet_column_options column = {.has_bloom = true};
        TRY(find_path(schema, flags->blooms[i], arena, &column.path, err));
        buf_put(columns, &column, sizeof column);
    }
    TRY(buf_status(columns, "columns", err));
    options->columns = (const void *)columns->data;
    options->column_count = columns->length / sizeof *options->columns;
    return STATUS_OK;
}

static bool is_plain_text(struct span text)
{
    return utf8_is_valid(text.data, text.length) &&
           !(text.length && memchr(text.data, 0, text.length));
}

/* Pairs that are text, as a footer has them; the schema is the writer's. */
static enum status add_pairs(const struct arrow_metadata *metadata, struct parquet_writer *writer,
                             struct error *err)
{
    struct arena arena;
    enum status status = STATUS_OK;
    arena_init(&arena, 0);
    for (uint32_t i = 0; status == STATUS_OK && i < metadata->count; i++) {
        struct arrow_pair pair = metadata->pairs[i];
        if (!is_plain_text(pair.key) || !is_plain_text(pair.value) ||
            span_equal(pair.key, span_of_text(PARQUET_ARROW_SCHEMA_KEY)))
            continue;
        const char *key = arena_copy_text(&arena, (const char *)pair.key.data, pair.key.length);
        const char *value =
            arena_copy_text(&arena, (const char *)pair.value.data, pair.value.length);
        status = key && value ? parquet_writer_add_metadata(writer, key, value, err)
                              : error_set(err, STATUS_NO_MEMORY, "out of memory");
    }
    arena_deinit(&arena);
    return status;
}

/* What has no form in Parquet, in words of its own: a file, or a group of columns, of none. */
static enum status check_columns(const struct arrow_field *fields, uint32_t count,
                                 const struct arrow_field *above, struct error *err)
{
    if (count == 0 && above)
        return error_set(err, STATUS_USAGE, "Parquet: column %.100s: a struct needs a member",
                         above->name);
    if (count == 0)
        return error_set(err, STATUS_USAGE, "Parquet: a file needs a column");
    for (uint32_t i = 0; i < count; i++)
        if (fields[i].type == ARROW_STRUCT || fields[i].child_count)
            TRY(check_columns(fields[i].children, fields[i].child_count, &fields[i], err));
    return STATUS_OK;
}

enum status parquet_out_open(const struct arrow_schema *schema, const struct write_flags *flags,
                             struct sink sink, struct rows_out *out_rows, struct error *err)
{
    struct parquet_options options = parquet_options_default();
    struct parquet_writer *writer;
    struct buf columns = {0};
    struct arena arena;
    TRY(check_columns(schema->fields, schema->field_count, NULL, err));
    arena_init(&arena, 0);
    enum status status = take_flags(schema, flags, &arena, &columns, &options, err);
    if (status == STATUS_OK)
        status = parquet_writer_create(schema, &options, sink, &writer, err);
    if (status == STATUS_OK && (status = add_pairs(&schema->metadata, writer, err)) != STATUS_OK)
        parquet_writer_destroy(writer);
    buf_deinit(&columns);
    arena_deinit(&arena);
    if (status != STATUS_OK)
        return status;
    *out_rows = (struct rows_out){write_parquet, finish_parquet, close_parquet, writer};
    return STATUS_OK;
}
