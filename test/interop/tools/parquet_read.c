/* SPDX-License-Identifier: Apache-2.0
 *
 * parquet_read IN OUT [dictionary] [names=a,b.c] [schema=ARROW] [ids] [nocrc] [batch_bytes=N]: a
 * Parquet file becomes an Arrow stream of a batch a row group, each validated; what is known of the
 * leaves goes to stdout as JSON. `schema`: a stream whose schema is wanted.
 */
#include <string.h>

#include "format/parquet/parquet.h"
#include "tool.h"

struct arguments {
    bool keeps_dictionaries;
    const char *names[64];
    size_t name_count;
    const char *schema_path;
    struct parquet_read_options options;
    struct parquet_limits limits;
};

static void take_names(struct arguments *arguments, char *list)
{
    char *rest = NULL;
    for (char *name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
        arguments->names[arguments->name_count++] = name;
}

static void take_argument(struct arguments *arguments, char *argument)
{
    if (strcmp(argument, "dictionary") == 0)
        arguments->keeps_dictionaries = true;
    else if (strcmp(argument, "ids") == 0)
        arguments->options.binds_by_id = true;
    else if (strcmp(argument, "nocrc") == 0)
        arguments->options.skips_checksums = true;
    else if (strncmp(argument, "batch_bytes=", 12) == 0)
        arguments->limits.batch_bytes_max = (size_t)atoll(argument + 12);
    else if (strncmp(argument, "schema=", 7) == 0)
        arguments->schema_path = argument + 7;
    else if (strncmp(argument, "names=", 6) == 0)
        take_names(arguments, argument + 6);
    else {
        fprintf(stderr, "parquet_read: what is %s?\n", argument);
        exit(2);
    }
}

static void keep_dictionaries(struct arrow_field *fields, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (fields[i].type == ARROW_UTF8 || fields[i].type == ARROW_BINARY)
            fields[i].is_dictionary = true;
        keep_dictionaries(fields[i].children, fields[i].child_count);
    }
}

static void print_leaves(const struct parquet_file *file)
{
    printf("{\"rows\":%lld,\"groups\":%zu,\"created_by\":\"%s\",\"leaves\":[",
           (long long)file->row_count, file->group_count, file->created_by ? file->created_by : "");
    for (uint32_t i = 0; i < file->leaf_count; i++) {
        const struct parquet_leaf *leaf = &file->leaves[i];
        printf("%s{\"path\":\"%s\",\"physical\":\"%s\",\"kind\":%d,\"unit\":%d,\"utc\":%d,"
               "\"unsigned\":%d,\"bits\":%d,\"precision\":%d,\"scale\":%d,\"encodings\":[",
               i ? "," : "", leaf->path, parquet_physical_name(leaf->physical), (int)leaf->kind,
               (int)leaf->unit, leaf->is_utc, leaf->is_unsigned, leaf->bits, leaf->precision,
               leaf->scale);
        bool is_first = true;
        for (int e = 0; e < 10; e++) {
            if (file->group_count == 0 || !(file->groups[0].chunks[i].encodings >> e & 1))
                continue;
            printf("%s\"%s\"", is_first ? "" : ",", parquet_encoding_name(e));
            is_first = false;
        }
        printf("]}");
    }
    printf("]}\n");
}

/* A wanted schema may have every type, ours alone the short way. */
static struct arrow_schema read_schema(const char *path, struct arena *arena)
{
    struct error err;
    struct arrow_file *file;
    struct arrow_schema schema;
    struct arrow_limits limits = arrow_limits_default();
    struct buf bytes = tool_read_file(path);
    struct span span = span_of(bytes.data, bytes.length);
    DIE_UNLESS_OK(arrow_file_open(byte_source_of_span(&span), &limits, &file, &err));
    DIE_UNLESS_OK(arrow_schema_copy(arrow_file_schema(file), arena, &schema, &err));
    arrow_file_close(file);
    buf_deinit(&bytes);
    return schema;
}

static void write_groups(const struct parquet_file *file, struct parquet_reader *reader,
                         struct buf *out)
{
    struct error err;
    struct arrow_writer *writer;
    const struct arrow_schema *schema = parquet_reader_schema(reader);
    DIE_UNLESS_OK(arrow_writer_create(schema, ARROW_STREAM, ARROW_UNCOMPRESSED, sink_to_buf(out),
                                      &writer, &err));
    for (size_t i = 0; i < file->group_count; i++) {
        struct arrow_batch batch;
        DIE_UNLESS_OK(parquet_reader_read(reader, i, &batch, &err));
        for (uint32_t j = 0; j < schema->field_count; j++)
            DIE_UNLESS_OK(arrow_array_validate(&schema->fields[j], &batch.columns[j], &err));
        DIE_UNLESS_OK(arrow_writer_write(writer, &batch, &err));
        arrow_batch_deinit(&batch);
    }
    DIE_UNLESS_OK(arrow_writer_finish(writer, &err));
    arrow_writer_destroy(writer);
}

/* The same with dictionaries as they are. */
static void write_groups_as_ours(const struct parquet_file *file, struct parquet_reader *reader,
                                 struct buf *out)
{
    struct error err;
    const struct arrow_schema *schema = parquet_reader_schema(reader);
    DIE_UNLESS_OK(arrow_ipc_write_schema(schema, out, &err));
    for (size_t i = 0; i < file->group_count; i++) {
        struct arrow_batch batch;
        DIE_UNLESS_OK(parquet_reader_read(reader, i, &batch, &err));
        for (uint32_t j = 0; j < schema->field_count; j++)
            DIE_UNLESS_OK(arrow_array_validate(&schema->fields[j], &batch.columns[j], &err));
        DIE_UNLESS_OK(arrow_ipc_write_batch(schema, &batch, ARROW_UNCOMPRESSED, out, &err));
        arrow_batch_deinit(&batch);
    }
    buf_put_le32(out, UINT32_MAX);
    buf_put_le32(out, 0);
}

int main(int argc, char **argv)
{
    struct error err;
    struct arguments arguments = {.limits = parquet_limits_default()};
    struct arena arena = {0};
    struct parquet_file *file;
    struct parquet_reader *reader;
    struct arrow_schema schema;
    struct buf out = {0};
    if (argc < 3) {
        fprintf(stderr, "usage: parquet_read IN OUT [option]...\n");
        return 2;
    }
    for (int i = 3; i < argc; i++)
        take_argument(&arguments, argv[i]);
    struct buf in = tool_read_file(argv[1]);
    struct span bytes = span_of(in.data, in.length);
    DIE_UNLESS_OK(parquet_file_open(byte_source_of_span(&bytes), &arguments.limits, &file, &err));
    if (arguments.schema_path) {
        schema = read_schema(arguments.schema_path, &arena);
    } else if (arguments.name_count) {
        DIE_UNLESS_OK(parquet_schema_select(file, arguments.names, arguments.name_count, &arena,
                                            &schema, &err));
    } else {
        DIE_UNLESS_OK(arrow_schema_copy(&file->schema, &arena, &schema, &err));
    }
    if (arguments.keeps_dictionaries)
        keep_dictionaries(schema.fields, schema.field_count);
    arguments.options.schema = &schema;
    arguments.options.keeps_physical = !arguments.schema_path;
    DIE_UNLESS_OK(parquet_reader_create(file, &arguments.options, &reader, &err));
    if (arguments.schema_path)
        write_groups(file, reader, &out);
    else
        write_groups_as_ours(file, reader, &out);
    print_leaves(file);
    tool_write_file(argv[2], &out);
    parquet_reader_destroy(reader);
    parquet_file_close(file);
    return 0;
}
