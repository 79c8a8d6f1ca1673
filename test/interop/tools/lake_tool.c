/* SPDX-License-Identifier: Apache-2.0
 *
 * Drives the lake modules from tests in other languages: one command a run, its input as a JSON
 * file, its answer as JSON on stdout, a failure as "STATUS: message" on stderr and the status's
 * exit code.
 *
 *   lake_tool create|append|change|plan|show|durable|foreign|list|drop DB ROOT CATALOG NS TABLE
 * [FILE]
 */
#include <stdio.h>
#include <stdlib.h>

#include "lake/iceberg/iceberg.h"

struct tool {
    struct env *env;
    struct store *store;
    struct catalog *catalog;
    struct catalog_ident ident;
    struct arena arena;
    struct json_value *input;
};

static enum status invalid(const char *what, struct error *err)
{
    return error_set(err, STATUS_INVALID, "input: %s", what);
}

/* ---- create ---- */

static enum status read_spec(struct tool *tool, const struct iceberg_schema *schema,
                             struct iceberg_spec *spec, struct error *err)
{
    const struct json_value *list = json_get(tool->input, "partition");
    uint32_t count = list ? list->count : 0;
    spec->fields = arena_alloc_zero(&tool->arena, count, sizeof *spec->fields);
    for (const struct json_value *at = list ? list->first : NULL; at; at = at->next) {
        struct iceberg_partition_field *field = &spec->fields[spec->field_count++];
        const struct iceberg_field *source =
            iceberg_schema_find_name(schema, json_get_text(at, "source"));
        if (!source)
            return invalid("partition source", err);
        field->source_id = source->id;
        field->name = json_get_text(at, "name");
        field->transform = iceberg_transform_parse(json_get_text(at, "transform"));
    }
    return STATUS_OK;
}

static enum status read_order(struct tool *tool, const struct iceberg_schema *schema,
                              struct iceberg_sort_order *order, struct error *err)
{
    const struct json_value *list = json_get(tool->input, "sort");
    uint32_t count = list ? list->count : 0;
    order->fields = arena_alloc_zero(&tool->arena, count, sizeof *order->fields);
    for (const struct json_value *at = list ? list->first : NULL; at; at = at->next) {
        struct iceberg_sort_field *field = &order->fields[order->field_count++];
        const struct iceberg_field *source =
            iceberg_schema_find_name(schema, json_get_text(at, "source"));
        if (!source)
            return invalid("sort source", err);
        field->source_id = source->id;
        json_get_bool(at, "descending", &field->is_descending);
    }
    return STATUS_OK;
}

/* The members of an object of strings as pairs; null values become NULL. */
static struct iceberg_pair *read_pairs(struct tool *tool, const char *key, size_t *out_count)
{
    const struct json_value *object = json_get(tool->input, key);
    uint32_t count = object ? object->count : 0;
    struct iceberg_pair *pairs = arena_alloc_zero(&tool->arena, count, sizeof *pairs);
    *out_count = 0;
    for (const struct json_value *at = object ? object->first : NULL; at; at = at->next)
        pairs[(*out_count)++] =
            (struct iceberg_pair){at->key, at->type == JSON_STRING ? at->text : NULL};
    return pairs;
}

static enum status run_create(struct tool *tool, struct iceberg_table **out_table,
                              struct error *err)
{
    struct iceberg_schema schema;
    struct iceberg_spec spec = {0};
    struct iceberg_sort_order order = {0};
    int32_t last_id = 0;
    struct iceberg_table_options options = {
        .schema = &schema, .spec = &spec, .sort_order = &order, .with_name_mapping = true};
    TRY(iceberg_schema_parse(json_get(tool->input, "schema"), &tool->arena, &schema, err));
    iceberg_schema_assign_ids(&schema, &last_id);
    TRY(read_spec(tool, &schema, &spec, err));
    TRY(read_order(tool, &schema, &order, err));
    options.properties = read_pairs(tool, "properties", &options.property_count);
    options.location = json_get_text(tool->input, "location");
    return iceberg_table_create(tool->env, tool->catalog, tool->store, tool->ident, &options,
                                out_table, err);
}

/* ---- append ---- */

static enum status read_value(struct tool *tool, const struct json_value *json,
                              enum iceberg_type type, struct iceberg_value *out, struct error *err)
{
    *out = (struct iceberg_value){.type = type, .is_null = json->type == JSON_NULL};
    if (json->type == JSON_BOOL)
        out->integer = json->boolean;
    if (json->type == JSON_NUMBER && !json_value_i64(json, &out->integer) &&
        !json_number_to_double(span_of(json->text, json->length), &out->real))
        return invalid("partition value", err);
    if (json->type == JSON_STRING && type == ICEBERG_STRING) {
        out->bytes = span_of(json->text, json->length);
    } else if (json->type == JSON_STRING) {
        uint8_t *bytes = arena_alloc(&tool->arena, json->length / 2 + 1);
        if (!hex_decode(bytes, json->length / 2, json->text, json->length))
            return invalid("hex", err);
        out->bytes = span_of(bytes, json->length / 2);
    }
    return STATUS_OK;
}

static struct span read_hex(struct tool *tool, const struct json_value *object, const char *key)
{
    const struct json_value *text = json_get(object, key);
    if (!text || text->type != JSON_STRING)
        return (struct span){0};
    uint8_t *bytes = arena_alloc(&tool->arena, text->length / 2 + 1);
    return hex_decode(bytes, text->length / 2, text->text, text->length)
               ? span_of(bytes, text->length / 2)
               : (struct span){0};
}

static void read_columns(struct tool *tool, const struct json_value *json,
                         struct iceberg_data_file *file)
{
    const struct json_value *list = json_get(json, "columns");
    uint32_t count = list ? list->count : 0;
    struct iceberg_column_metrics *columns = arena_alloc_zero(&tool->arena, count, sizeof *columns);
    file->columns = columns;
    for (const struct json_value *at = list ? list->first : NULL; at; at = at->next) {
        struct iceberg_column_metrics *column = &columns[file->column_count++];
        int64_t id = 0;
        column->column_bytes = column->value_count = column->null_count = column->nan_count = -1;
        json_get_i64(at, "id", &id);
        json_get_i64(at, "bytes", &column->column_bytes);
        json_get_i64(at, "values", &column->value_count);
        json_get_i64(at, "nulls", &column->null_count);
        json_get_i64(at, "nans", &column->nan_count);
        column->field_id = (int32_t)id;
        column->lower = read_hex(tool, at, "lower");
        column->upper = read_hex(tool, at, "upper");
    }
}

static enum status read_file(struct tool *tool, const struct iceberg_table *table,
                             const struct json_value *json, struct iceberg_data_file *file,
                             struct error *err)
{
    char *uri = arena_alloc(&tool->arena, STORE_URI_BYTES_MAX);
    const struct json_value *at = json_get(json, "partition");
    struct iceberg_value *values =
        arena_alloc_zero(&tool->arena, table->spec->field_count, sizeof *values);
    TRY(store_uri_canonical(tool->store, json_get_text(json, "path"), uri, err));
    file->path = uri;
    file->partition = values;
    file->spec_id = table->default_spec_id;
    file->sort_order_id = table->default_sort_order_id;
    json_get_i64(json, "records", &file->record_count);
    json_get_i64(json, "size", &file->file_bytes);
    at = at ? at->first : NULL;
    for (uint32_t i = 0; i < table->spec->field_count; i++, at = at->next) {
        const struct iceberg_partition_field *field = &table->spec->fields[i];
        enum iceberg_type type;
        if (!at)
            return invalid("partition values", err);
        TRY(iceberg_transform_result(field->transform,
                                     iceberg_schema_find(table->schema, field->source_id)->type,
                                     &type, err));
        TRY(read_value(tool, at, type, &values[i], err));
    }
    read_columns(tool, json, file);
    const struct json_value *splits = json_get(json, "splits");
    int64_t *offsets = arena_alloc_zero(&tool->arena, splits ? splits->count : 0, sizeof *offsets);
    file->split_offsets = offsets;
    for (at = splits ? splits->first : NULL; at; at = at->next)
        json_value_i64(at, &offsets[file->split_count++]);
    return STATUS_OK;
}

static enum status run_append(struct tool *tool, struct iceberg_table **out_table,
                              struct error *err)
{
    const struct json_value *list = json_get(tool->input, "files");
    struct iceberg_table *table;
    struct iceberg_append append = {.now_ms = env_wall_ns(tool->env) / 1000000,
                                    .attempt_number = 1,
                                    .snapshot_id = iceberg_snapshot_id_create(tool->env)};
    uint8_t random[16];
    TRY(iceberg_table_load(tool->catalog, tool->ident, &table, err));
    env_random(tool->env, random, sizeof random);
    append.attempt = uuid_from_random(random);
    json_get_i64(tool->input, "snapshot-id", &append.snapshot_id);
    append.summary = read_pairs(tool, "summary", &append.summary_count);
    append.properties = read_pairs(tool, "properties", &append.property_count);
    append.require_properties = read_pairs(tool, "require", &append.require_property_count);
    struct iceberg_data_file *files =
        arena_alloc_zero(&tool->arena, list ? list->count : 0, sizeof *files);
    append.files = files;
    enum status status = STATUS_OK;
    for (const struct json_value *at = list ? list->first : NULL; at; at = at->next)
        TRY_OR_DONE(status, read_file(tool, table, at, &files[append.file_count++], err));
    status = iceberg_append_commit(tool->env, tool->catalog, tool->store, table, &append, out_table,
                                   err);
done:
    iceberg_table_destroy(table);
    return status;
}

/* ---- the others ---- */

static enum status run_change(struct tool *tool, struct iceberg_table **out_table,
                              struct error *err)
{
    struct iceberg_table *table;
    struct catalog_change change;
    TRY(iceberg_table_load(tool->catalog, tool->ident, &table, err));
    catalog_change_init(&change, env_wall_ns(tool->env) / 1000000);
    const struct json_value *updates = json_get(tool->input, "updates");
    for (const struct json_value *at = updates ? updates->first : NULL; at; at = at->next)
        catalog_update_add(&change, at);
    enum status status = iceberg_change_commit(tool->catalog, table, &change, out_table, err);
    catalog_change_deinit(&change);
    iceberg_table_destroy(table);
    return status;
}

static void write_metrics(struct json_writer *writer, const struct iceberg_data_file *file)
{
    json_write_key(writer, "columns");
    json_write_array_begin(writer);
    for (uint32_t i = 0; i < file->column_count; i++) {
        const struct iceberg_column_metrics *column = &file->columns[i];
        char digits[512];
        json_write_array_begin(writer);
        json_write_i64(writer, column->field_id);
        json_write_i64(writer, column->value_count);
        json_write_i64(writer, column->null_count);
        const struct span bounds[] = {column->lower, column->upper};
        for (int b = 0; b < 2; b++) {
            size_t length = size_min(bounds[b].length, 256);
            hex_encode(digits, bounds[b].data, length);
            if (bounds[b].data)
                json_write_string(writer, digits, 2 * length);
            else
                json_write_null(writer);
        }
        json_write_array_end(writer);
    }
    json_write_array_end(writer);
}

static void write_plan(struct json_writer *writer, const struct iceberg_plan *plan,
                       const struct iceberg_table *table)
{
    struct buf path;
    struct error err;
    buf_init(&path, 0);
    json_write_array_begin(writer);
    for (size_t i = 0; i < plan->file_count; i++) {
        const struct iceberg_live_file *live = &plan->files[i];
        const struct iceberg_spec *spec = iceberg_table_spec(table, live->file.spec_id);
        buf_clear(&path);
        json_write_object_begin(writer);
        json_write_key(writer, "path");
        json_write_text(writer, live->file.path);
        json_write_key(writer, "records");
        json_write_i64(writer, live->file.record_count);
        json_write_key(writer, "size");
        json_write_i64(writer, live->file.file_bytes);
        json_write_key(writer, "content");
        json_write_i64(writer, (int64_t)live->file.content);
        json_write_key(writer, "sequence");
        json_write_i64(writer, live->sequence_number);
        json_write_key(writer, "snapshot");
        json_write_i64(writer, live->snapshot_id);
        json_write_key(writer, "partition");
        if (iceberg_partition_path(spec, live->file.partition, &path, &err) == STATUS_OK)
            json_write_string(writer, path.data, path.length);
        else
            json_write_null(writer);
        write_metrics(writer, &live->file);
        json_write_object_end(writer);
    }
    json_write_array_end(writer);
    buf_deinit(&path);
}

static void write_table(struct json_writer *writer, const struct iceberg_table *table)
{
    json_write_object_begin(writer);
    json_write_key(writer, "metadata-location");
    json_write_text(writer, table->base.metadata_location);
    json_write_key(writer, "snapshot-id");
    json_write_i64(writer, table->current ? table->current->snapshot_id : -1);
    json_write_key(writer, "sequence");
    json_write_i64(writer, table->last_sequence_number);
    json_write_key(writer, "metadata");
    json_write_value(writer, table->base.metadata);
    json_write_object_end(writer);
}

static enum status run_plan(struct tool *tool, struct buf *out, struct error *err)
{
    struct iceberg_table *table;
    struct iceberg_plan plan = {0};
    struct iceberg_plan_options options = {.with_metrics = true};
    struct json_writer writer;
    json_writer_init(&writer, out);
    TRY(iceberg_table_load(tool->catalog, tool->ident, &table, err));
    enum status status = STATUS_OK;
    if (table->current)
        status = iceberg_plan_create(tool->store, table, table->current, &options, &plan, err);
    if (status == STATUS_OK)
        write_plan(&writer, &plan, table);
    iceberg_plan_deinit(&plan);
    iceberg_table_destroy(table);
    return status;
}

static enum status run_durable(struct tool *tool, bool is_foreign, struct iceberg_table **out_table,
                               struct error *err)
{
    struct iceberg_table *table;
    TRY(iceberg_table_load(tool->catalog, tool->ident, &table, err));
    enum status status = is_foreign
                             ? iceberg_table_sync_foreign(tool->store, table, 0, err)
                             : iceberg_table_make_durable(tool->catalog, tool->store, table, err);
    if (status == STATUS_OK)
        *out_table = table;
    else
        iceberg_table_destroy(table);
    return status;
}

static enum status run_list(struct tool *tool, struct buf *out, struct error *err)
{
    const char **names, **tables;
    size_t count, table_count;
    struct json_writer writer;
    json_writer_init(&writer, out);
    TRY(catalog_namespace_list(tool->catalog, &tool->arena, &names, &count, err));
    json_write_object_begin(&writer);
    for (size_t i = 0; i < count; i++) {
        TRY(catalog_table_list(tool->catalog, names[i], &tool->arena, &tables, &table_count, err));
        json_write_key(&writer, names[i]);
        json_write_array_begin(&writer);
        for (size_t t = 0; t < table_count; t++)
            json_write_text(&writer, tables[t]);
        json_write_array_end(&writer);
    }
    json_write_object_end(&writer);
    return STATUS_OK;
}

static enum status run(struct tool *tool, const char *command, struct buf *out, struct error *err)
{
    struct iceberg_table *table = NULL;
    struct json_writer writer;
    if (strcmp(command, "plan") == 0)
        return run_plan(tool, out, err);
    if (strcmp(command, "list") == 0)
        return run_list(tool, out, err);
    if (strcmp(command, "drop") == 0)
        return catalog_drop_table(tool->catalog, tool->ident, err);
    if (strcmp(command, "create") == 0)
        TRY(run_create(tool, &table, err));
    else if (strcmp(command, "append") == 0)
        TRY(run_append(tool, &table, err));
    else if (strcmp(command, "change") == 0)
        TRY(run_change(tool, &table, err));
    else if (strcmp(command, "durable") == 0 || strcmp(command, "foreign") == 0)
        TRY(run_durable(tool, strcmp(command, "foreign") == 0, &table, err));
    else if (strcmp(command, "show") == 0)
        TRY(iceberg_table_load(tool->catalog, tool->ident, &table, err));
    else
        return error_set(err, STATUS_USAGE, "unknown command %s", command);
    json_writer_init(&writer, out);
    write_table(&writer, table);
    iceberg_table_destroy(table);
    return STATUS_OK;
}

static enum status read_input(struct tool *tool, const char *path, struct error *err)
{
    struct buf text;
    buf_init(&text, 0);
    enum status status = files_read(tool->env, path, 1 << 30, &text, err);
    if (status == STATUS_OK)
        status = json_parse(text.data, text.length, &tool->arena, &tool->input, err);
    buf_deinit(&text);
    return status;
}

int main(int argc, char **argv)
{
    struct error err;
    struct tool tool = {.env = env_real()};
    struct buf out;
    if (argc < 7) {
        fprintf(stderr, "usage: lake_tool COMMAND DB ROOT CATALOG NS TABLE [FILE]\n");
        return status_exit_code(STATUS_USAGE);
    }
    struct catalog_sqlite_options options = {.path = argv[2], .name = argv[4]};
    tool.ident = (struct catalog_ident){.ns = argv[5], .name = argv[6]};
    arena_init(&tool.arena, 0);
    buf_init(&out, 0);
    enum status status;
    TRY_OR_DONE(status, store_open(tool.env, argv[3], &tool.store, &err));
    TRY_OR_DONE(status, catalog_open_sqlite(tool.env, tool.store, &options, &tool.catalog, &err));
    if (argc > 7)
        TRY_OR_DONE(status, read_input(&tool, argv[7], &err));
    TRY_OR_DONE(status, run(&tool, argv[1], &out, &err));
    fwrite(out.data, 1, out.length, stdout);
    putchar('\n');
done:
    if (status != STATUS_OK)
        fprintf(stderr, "%s: %s\n", status_name(status), err.message);
    catalog_close(tool.catalog);
    store_close(tool.store);
    arena_deinit(&tool.arena);
    buf_deinit(&out);
    return status_exit_code(status);
}
