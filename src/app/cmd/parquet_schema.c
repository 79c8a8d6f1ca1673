/* SPDX-License-Identifier: Apache-2.0
 *
 * sluice parquet schema: the columns of a file as a tree.
 */
#include <inttypes.h>

#include "app/cmd/parquet_internal.h"

static const char *kind_name(const struct parquet_leaf *leaf)
{
    static const char *const names[] = {
        [PARQUET_KIND_NONE] = "",           [PARQUET_KIND_STRING] = "string",
        [PARQUET_KIND_INTEGER] = "integer", [PARQUET_KIND_DATE] = "date",
        [PARQUET_KIND_TIME] = "time",       [PARQUET_KIND_TIMESTAMP] = "timestamp",
        [PARQUET_KIND_DECIMAL] = "decimal", [PARQUET_KIND_UUID] = "uuid",
        [PARQUET_KIND_FLOAT16] = "float16", [PARQUET_KIND_INTERVAL] = "interval",
        [PARQUET_KIND_OTHER] = "other",
    };
    const char *dot = leaf->extension ? strchr(leaf->extension, '.') : NULL;
    return dot ? dot + 1 : leaf->annotation ? leaf->annotation : names[leaf->kind];
}

static const char *unit_name(enum parquet_unit unit)
{
    return unit == PARQUET_MILLIS ? "ms" : unit == PARQUET_MICROS ? "us" : "ns";
}

static void put_kind(struct buf *out, const struct parquet_leaf *leaf)
{
    buf_put_text(out, kind_name(leaf));
    if (leaf->kind == PARQUET_KIND_INTEGER)
        buf_format(out, "(%d,%s)", leaf->bits, leaf->is_unsigned ? "unsigned" : "signed");
    else if (leaf->kind == PARQUET_KIND_TIME || leaf->kind == PARQUET_KIND_TIMESTAMP)
        buf_format(out, "(%s%s)", unit_name(leaf->unit), leaf->is_utc ? ",utc" : "");
    else if (leaf->kind == PARQUET_KIND_DECIMAL)
        buf_format(out, "(%d,%d)", (int)leaf->precision, (int)leaf->scale);
}

static void put_tree(struct buf *out, const struct arrow_field *field,
                     const struct parquet_leaf **inout_leaf, int depth)
{
    static const char *const groups[ARROW_TYPE_COUNT] = {
        [ARROW_STRUCT] = "struct", [ARROW_LIST] = "list", [ARROW_MAP] = "map"};
    buf_format(out, "%*s%s: ", depth * 2, "", field->name);
    if (field->child_count) {
        buf_put_text(out, groups[field->type]);
    } else {
        const struct parquet_leaf *leaf = (*inout_leaf)++;
        buf_put_text(out, parquet_physical_name(leaf->physical));
        if (leaf->physical == PARQUET_FIXED)
            buf_format(out, "(%u)", leaf->width);
        if (leaf->kind != PARQUET_KIND_NONE) {
            buf_put_byte(out, ' ');
            put_kind(out, leaf);
        }
    }
    buf_put_text(out, field->is_nullable ? "" : " required");
    if (field->field_id)
        buf_format(out, " #%d", (int)field->field_id);
    buf_put_byte(out, '\n');
    for (uint32_t i = 0; i < field->child_count; i++)
        put_tree(out, &field->children[i], inout_leaf, depth + 1);
}

static void write_leaves(struct json_writer *writer, const struct parquet_file *file)
{
    json_write_array_begin(writer);
    for (uint32_t i = 0; i < file->leaf_count; i++) {
        const struct parquet_leaf *leaf = &file->leaves[i];
        struct buf kind = {0};
        put_kind(&kind, leaf);
        json_write_object_begin(writer);
        parquet_write_text(writer, "path", leaf->path);
        parquet_write_text(writer, "type", parquet_physical_name(leaf->physical));
        json_write_key(writer, "kind");
        json_write_string(writer, kind.data, kind.length);
        json_write_key(writer, "field_id");
        if (leaf->field->field_id)
            json_write_i64(writer, leaf->field->field_id);
        else
            json_write_null(writer);
        parquet_write_number(writer, "max_definition", leaf->max_def);
        parquet_write_number(writer, "max_repetition", leaf->max_rep);
        json_write_object_end(writer);
        buf_deinit(&kind);
    }
    json_write_array_end(writer);
}

void parquet_print_schema(const struct parquet_file *file, bool as_json)
{
    struct buf out = {0};
    struct json_writer writer;
    const struct parquet_leaf *leaf = file->leaves;
    json_writer_init(&writer, &out);
    if (as_json) {
        write_leaves(&writer, file);
        buf_put_byte(&out, '\n');
    }
    for (uint32_t i = 0; i < file->schema.field_count && !as_json; i++)
        put_tree(&out, &file->schema.fields[i], &leaf, 0);
    cmd_print(&out);
}
