/* SPDX-License-Identifier: Apache-2.0
 *
 * What a caller wants of single columns, found by their paths.
 */
#include "format/parquet/parquet_internal.h"

size_t leaf_path_names(const struct leaf *leaf, const char *names[PATH_NAMES_MAX])
{
    const char *name = leaf->path[0].field->name;
    size_t count = 0;
    for (uint32_t i = 0; i < leaf->path_length; i++) {
        enum arrow_type type = leaf->path[i].field->type;
        names[count++] = name;
        if (type == ARROW_MAP || type == ARROW_LIST)
            names[count++] = type == ARROW_MAP ? "key_value" : "list";
        if (i + 1 < leaf->path_length)
            name = type == ARROW_LIST  ? "element"
                   : type == ARROW_MAP ? leaf->path[i + 1].child ? "value" : "key"
                                       : leaf->path[i + 1].field->name;
    }
    return count;
}

/* Whether the leaf is the path ("a.b"), or lies below it. Names may have dots. */
static bool is_at(const struct leaf *leaf, const char *path)
{
    const char *names[PATH_NAMES_MAX];
    size_t count = leaf_path_names(leaf, names);
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(names[i]);
        if (strncmp(path, names[i], length) != 0)
            return false;
        path += length;
        if (!*path)
            return true;
        if (*path++ != '.')
            return false;
    }
    return false;
}

/* Our encodings by the format's numbers. */
static const int encodings[] = {
    [PARQUET_VALUES_AUTO] = ENCODING_PLAIN,
    [PARQUET_VALUES_SMALLEST] = ENCODING_PLAIN,
    [PARQUET_VALUES_PLAIN] = ENCODING_PLAIN,
    [PARQUET_VALUES_RLE] = ENCODING_RLE,
    [PARQUET_VALUES_DELTA_BINARY_PACKED] = ENCODING_DELTA_BINARY_PACKED,
    [PARQUET_VALUES_DELTA_LENGTH_BYTE_ARRAY] = ENCODING_DELTA_LENGTH_BYTE_ARRAY,
    [PARQUET_VALUES_DELTA_BYTE_ARRAY] = ENCODING_DELTA_BYTE_ARRAY,
    [PARQUET_VALUES_BYTE_STREAM_SPLIT] = ENCODING_BYTE_STREAM_SPLIT,
};

static void set_encoding(struct leaf *leaf, enum parquet_values values)
{
    leaf->encoding = encodings[values];
    leaf->is_encoding_measured = values == PARQUET_VALUES_SMALLEST;
    leaf->has_own_encoding = values >= PARQUET_VALUES_PLAIN;
}

static enum status apply(struct parquet_writer *writer, const struct parquet_column_options *column,
                         struct error *err)
{
    uint32_t found = 0;
    if ((unsigned)column->values >= COUNT_OF(encodings))
        return error_set(err, STATUS_USAGE, "parquet: no such encoding");
    for (uint32_t i = 0; i < writer->leaf_count; i++) {
        struct leaf *leaf = &writer->leaves[i];
        if (!is_at(leaf, column->path))
            continue;
        found++;
        if (!encoding_fits(encodings[column->values], leaf->type))
            return error_set(err, STATUS_USAGE, "parquet: column %.100s: not an encoding of %s",
                             column->path, parquet_physical_name(leaf->type));
        if (column->values != PARQUET_VALUES_AUTO)
            set_encoding(leaf, column->values);
        leaf->has_bloom = leaf->type != PARQUET_BOOLEAN && (leaf->has_bloom || column->has_bloom);
    }
    if (!found)
        return error_set(err, STATUS_USAGE, "parquet: no column %.100s", column->path);
    return STATUS_OK;
}

enum status apply_column_options(struct parquet_writer *writer, struct error *err)
{
    const struct parquet_options *options = &writer->options;
    if ((unsigned)options->values >= COUNT_OF(encodings))
        return error_set(err, STATUS_USAGE, "parquet: no such encoding");
    for (uint32_t i = 0; i < writer->leaf_count; i++)
        if (encoding_fits(encodings[options->values], writer->leaves[i].type))
            set_encoding(&writer->leaves[i], options->values);
    for (size_t i = 0; i < options->column_count; i++)
        TRY(apply(writer, &options->columns[i], err));
    for (uint32_t i = 0; i < writer->leaf_count; i++)
        leaf_begin(&writer->leaves[i]);
    writer->options.columns = NULL; /* the caller's */
    return STATUS_OK;
}
