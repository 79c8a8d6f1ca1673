/* SPDX-License-Identifier: Apache-2.0
 *
 * Page index and footer. Source: parquet.thrift, LogicalTypes.md, PageIndex.md.
 *
 * All column indexes, then all offset indexes, then the metadata: one region before the footer,
 * which readers fetch at once.
 */
#include "format/parquet/parquet_internal.h"
#include "format/parquet/thrift_internal.h"

enum { UNORDERED = 0, ASCENDING = 1, DESCENDING = 2 };

enum status writer_put(struct parquet_writer *writer, const void *data, size_t bytes,
                       struct error *err)
{
    if (bytes == 0)
        return STATUS_OK;
    TRY(sink_write(writer->sink, data, bytes, err));
    writer->offset += bytes;
    return STATUS_OK;
}

/* ---- page index ---- */

/* Bounds must be there for every page that has values, and none may hide a NaN. */
static bool has_column_index(const struct chunk_record *chunk)
{
    for (size_t i = 0; i < chunk->page_count; i++)
        if (chunk->pages[i].has_values && !chunk->pages[i].has_bounds)
            return false;
    return chunk->nan_count == 0;
}

static int boundary_order(enum value_order order, const struct chunk_record *chunk)
{
    const struct page_record *last = NULL;
    bool rises = true, falls = true;
    for (size_t i = 0; i < chunk->page_count; i++) {
        const struct page_record *page = &chunk->pages[i];
        if (!page->has_values)
            continue;
        if (last) {
            int min = value_compare(order, page->min, last->min);
            int max = value_compare(order, page->max, last->max);
            rises = rises && min >= 0 && max >= 0;
            falls = falls && min <= 0 && max <= 0;
        }
        last = page;
    }
    return rises ? ASCENDING : falls ? DESCENDING : UNORDERED;
}

static bool is_floating(enum parquet_physical type)
{
    return type == PARQUET_FLOAT || type == PARQUET_DOUBLE;
}

static void put_column_index(struct buf *out, const struct leaf *leaf,
                             const struct chunk_record *chunk)
{
    const struct page_record *pages = chunk->pages;
    size_t count = chunk->page_count;
    struct thrift thrift = thrift_to(out);
    thrift_list(&thrift, 1, THRIFT_TRUE, count);
    for (size_t i = 0; i < count; i++)
        thrift_element_bool(&thrift, !pages[i].has_values);
    thrift_list(&thrift, 2, THRIFT_BINARY, count);
    for (size_t i = 0; i < count; i++)
        thrift_element_binary(&thrift, pages[i].min);
    thrift_list(&thrift, 3, THRIFT_BINARY, count);
    for (size_t i = 0; i < count; i++)
        thrift_element_binary(&thrift, pages[i].max);
    thrift_i32(&thrift, 4, boundary_order(leaf->order, chunk));
    thrift_list(&thrift, 5, THRIFT_I64, count);
    for (size_t i = 0; i < count; i++)
        thrift_element_int(&thrift, pages[i].null_count);
    if (is_floating(leaf->type)) {
        thrift_list(&thrift, 8, THRIFT_I64, count);
        for (size_t i = 0; i < count; i++)
            thrift_element_int(&thrift, pages[i].nan_count);
    }
    thrift_end(&thrift);
}

static void put_offset_index(struct buf *out, const struct leaf *leaf,
                             const struct chunk_record *chunk)
{
    struct thrift thrift = thrift_to(out);
    thrift_list(&thrift, 1, THRIFT_STRUCT, chunk->page_count);
    for (size_t i = 0; i < chunk->page_count; i++) {
        const struct page_record *page = &chunk->pages[i];
        thrift_element_struct(&thrift);
        thrift_i64(&thrift, 1, (int64_t)(chunk->data_offset + page->offset));
        thrift_i32(&thrift, 2, (int32_t)page->bytes);
        thrift_i64(&thrift, 3, page->first_row);
        thrift_end(&thrift);
    }
    if (leaf->type == PARQUET_BYTE_ARRAY) {
        thrift_list(&thrift, 2, THRIFT_I64, chunk->page_count);
        for (size_t i = 0; i < chunk->page_count; i++)
            thrift_element_int(&thrift, chunk->pages[i].unencoded_bytes);
    }
    thrift_end(&thrift);
}

static enum status flush_buf(struct parquet_writer *writer, struct buf *buf, struct error *err)
{
    TRY(buf_status(buf, "parquet: footer", err));
    TRY(writer_put(writer, buf->data, buf->length, err));
    buf_clear(buf);
    return STATUS_OK;
}

static enum status write_indexes(struct parquet_writer *writer, bool is_columns, struct error *err)
{
    struct buf *out = &writer->scratches->body;
    buf_clear(out);
    for (struct group_record *group = writer->groups; group; group = group->next) {
        for (uint32_t i = 0; i < writer->leaf_count; i++) {
            struct chunk_record *chunk = &group->chunks[i];
            if (is_columns && !has_column_index(chunk))
                continue;
            uint64_t offset = writer->offset;
            if (is_columns)
                put_column_index(out, &writer->leaves[i], chunk);
            else
                put_offset_index(out, &writer->leaves[i], chunk);
            TRY(flush_buf(writer, out, err));
            *(is_columns ? &chunk->column_index_offset : &chunk->offset_index_offset) = offset;
            *(is_columns ? &chunk->column_index_bytes : &chunk->offset_index_bytes) =
                (uint32_t)(writer->offset - offset);
        }
    }
    return STATUS_OK;
}

enum status footer_write_bloom(struct parquet_writer *writer, const struct leaf *leaf,
                               struct chunk_record *chunk, struct error *err)
{
    struct buf *out = &writer->scratches->header;
    if (!leaf->bloom.length)
        return STATUS_OK;
    buf_clear(out);
    struct thrift thrift = thrift_to(out);
    thrift_i32(&thrift, 1, (int32_t)leaf->bloom.length);
    for (int id = 2; id <= 4; id++) { /* BLOCK, XXHASH, UNCOMPRESSED */
        thrift_struct(&thrift, id);
        thrift_empty_struct(&thrift, 1);
        thrift_end(&thrift);
    }
    thrift_end(&thrift);
    chunk->bloom_offset = writer->offset;
    TRY(flush_buf(writer, out, err));
    TRY(writer_put(writer, leaf->bloom.data, leaf->bloom.length, err));
    chunk->bloom_bytes = (uint32_t)(writer->offset - chunk->bloom_offset);
    return STATUS_OK;
}

/* ---- schema ---- */

/* What a column's annotation says, in the old and the new way; `logical` 0: there is none. */
struct annotation {
    int logical, converted; /* converted -1: the old way has no word for it */
    int unit;               /* times: field of the union TimeUnit */
    int bits;               /* integers */
    bool is_flag;           /* of instants, of signed integers */
};

enum { UNIT_MILLIS = 1, UNIT_MICROS = 2, UNIT_NANOS = 3 };

static struct annotation plain_annotation(const struct arrow_field *field)
{
    switch (field->type) {
    case ARROW_NULL:
        return (struct annotation){LOGICAL_UNKNOWN, -1, 0, 0, false};
    case ARROW_UTF8:
        return (struct annotation){LOGICAL_STRING, CONVERTED_UTF8, 0, 0, false};
    case ARROW_MAP:
        return (struct annotation){LOGICAL_MAP, CONVERTED_MAP, 0, 0, false};
    case ARROW_LIST:
        return (struct annotation){LOGICAL_LIST, CONVERTED_LIST, 0, 0, false};
    case ARROW_DATE32:
        return (struct annotation){LOGICAL_DATE, CONVERTED_DATE, 0, 0, false};
    case ARROW_TIMESTAMP_US:
        return (struct annotation){LOGICAL_TIMESTAMP, CONVERTED_TIMESTAMP_MICROS, UNIT_MICROS, 0,
                                   field->is_instant};
    default:
        return (struct annotation){0, -1, 0, 0, false};
    }
}

static struct annotation integer_annotation(const struct arrow_field *field, int bits)
{
    bool is_signed = field->origin->kind == ARROW_ORIGIN_INT;
    int first = is_signed ? CONVERTED_INT_8 : CONVERTED_UINT_8;
    return (struct annotation){LOGICAL_INTEGER, first + __builtin_ctz((unsigned)bits / 8), 0, bits,
                               is_signed};
}

/* Of extension types; any other is what it is kept as. */
static struct annotation extension_annotation(const struct arrow_field *field, const char *name)
{
    static const struct {
        const char *name;
        enum arrow_type type;
        struct annotation annotation;
    } extensions[] = {
        {"arrow.uuid", ARROW_FIXED, {LOGICAL_UUID, -1, 0, 0, false}},
        {PARQUET_EXTENSION_JSON, ARROW_UTF8, {LOGICAL_JSON, CONVERTED_JSON, 0, 0, false}},
        {PARQUET_EXTENSION_ENUM, ARROW_UTF8, {LOGICAL_ENUM, CONVERTED_ENUM, 0, 0, false}},
        {PARQUET_EXTENSION_BSON, ARROW_BINARY, {LOGICAL_BSON, CONVERTED_BSON, 0, 0, false}},
    };
    for (size_t i = 0; name && i < COUNT_OF(extensions); i++)
        if (strcmp(name, extensions[i].name) == 0 && field->type == extensions[i].type &&
            (field->type != ARROW_FIXED || field->byte_width == sizeof(struct uuid)))
            return extensions[i].annotation;
    return plain_annotation(field);
}

static struct annotation annotation_of(const struct arrow_field *field)
{
    static const int units[] = {[ARROW_SECONDS] = UNIT_MILLIS, /* kept in those */
                                [ARROW_MILLIS] = UNIT_MILLIS,
                                [ARROW_MICROS] = UNIT_MICROS,
                                [ARROW_NANOS] = UNIT_NANOS};
    static const int times[] = {-1, CONVERTED_TIME_MILLIS, CONVERTED_TIME_MICROS, -1};
    static const int timestamps[] = {-1, CONVERTED_TIMESTAMP_MILLIS, CONVERTED_TIMESTAMP_MICROS,
                                     -1};
    const struct arrow_origin *origin = field->origin;
    int unit = origin ? units[origin->unit] : 0;
    if (!origin)
        return plain_annotation(field);
    switch (origin->kind) {
    case ARROW_ORIGIN_INT:
    case ARROW_ORIGIN_UINT:
        return integer_annotation(field, field->byte_width * 8);
    case ARROW_ORIGIN_HALF:
        return (struct annotation){LOGICAL_FLOAT16, -1, 0, 0, false};
    case ARROW_ORIGIN_DECIMAL:
        return (struct annotation){LOGICAL_DECIMAL, CONVERTED_DECIMAL, 0, 0, false};
    case ARROW_ORIGIN_TIME:
        return (struct annotation){LOGICAL_TIME, times[unit], unit, 0, field->is_instant};
    case ARROW_ORIGIN_TIMESTAMP:
        return (struct annotation){LOGICAL_TIMESTAMP, timestamps[unit], unit, 0, field->is_instant};
    case ARROW_ORIGIN_MONTHS:
    case ARROW_ORIGIN_DAY_TIME:
    case ARROW_ORIGIN_MONTH_DAY_NANO:
        return (struct annotation){0, CONVERTED_INTERVAL, 0, 0, false};
    default:
        return extension_annotation(field, origin->extension);
    }
}

static void put_logical_type(struct thrift *thrift, const struct arrow_field *field,
                             const struct annotation *annotation)
{
    if (!annotation->logical)
        return;
    thrift_struct(thrift, 10);
    thrift_struct(thrift, annotation->logical);
    if (annotation->unit) {
        thrift_bool(thrift, 1, annotation->is_flag);
        thrift_struct(thrift, 2);
        thrift_empty_struct(thrift, annotation->unit);
        thrift_end(thrift);
    } else if (annotation->logical == LOGICAL_INTEGER) {
        thrift_byte(thrift, 1, (int8_t)annotation->bits);
        thrift_bool(thrift, 2, annotation->is_flag);
    } else if (annotation->logical == LOGICAL_DECIMAL) {
        thrift_i32(thrift, 1, field->origin->scale);
        thrift_i32(thrift, 2, field->origin->precision);
    }
    thrift_end(thrift);
    thrift_end(thrift);
}

static bool is_group(const struct arrow_field *field)
{
    return field->type == ARROW_STRUCT || field->type == ARROW_LIST || field->type == ARROW_MAP;
}

static uint32_t count_elements(const struct arrow_field *field)
{
    uint32_t count = field->type == ARROW_LIST || field->type == ARROW_MAP ? 2 : 1;
    for (uint32_t i = 0; i < field->child_count; i++)
        count += count_elements(&field->children[i]);
    return count;
}

static void put_element(struct thrift *thrift, const struct arrow_field *field, const char *name)
{
    static const char *const map_names[] = {"key", "value"};
    struct annotation annotation = annotation_of(field);
    bool is_repeating = field->type == ARROW_LIST || field->type == ARROW_MAP;
    thrift_element_struct(thrift);
    uint32_t width;
    if (!is_group(field))
        thrift_i32(thrift, 1, (int32_t)physical_type(field, &width));
    if (field->type == ARROW_FIXED)
        thrift_i32(thrift, 2, field->byte_width);
    thrift_i32(thrift, 3, field->is_nullable ? OPTIONAL : REQUIRED);
    thrift_binary(thrift, 4, span_of_text(name));
    if (is_group(field))
        thrift_i32(thrift, 5, is_repeating ? 1 : (int32_t)field->child_count);
    if (annotation.converted >= 0)
        thrift_i32(thrift, 6, annotation.converted);
    if (annotation.logical == LOGICAL_DECIMAL) {
        thrift_i32(thrift, 7, field->origin->scale);
        thrift_i32(thrift, 8, field->origin->precision);
    }
    if (field->field_id)
        thrift_i32(thrift, 9, field->field_id);
    put_logical_type(thrift, field, &annotation);
    thrift_end(thrift);
    if (is_repeating) { /* the group in between has no id */
        thrift_element_struct(thrift);
        thrift_i32(thrift, 3, REPEATED);
        thrift_binary(thrift, 4, span_of_text(field->type == ARROW_MAP ? "key_value" : "list"));
        thrift_i32(thrift, 5, (int32_t)field->child_count);
        thrift_end(thrift);
    }
    for (uint32_t i = 0; i < field->child_count; i++)
        put_element(thrift, &field->children[i],
                    field->type == ARROW_MAP    ? map_names[i]
                    : field->type == ARROW_LIST ? "element"
                                                : field->children[i].name);
}

static void put_schema(struct thrift *thrift, const struct arrow_schema *schema)
{
    uint32_t count = 1;
    for (uint32_t i = 0; i < schema->field_count; i++)
        count += count_elements(&schema->fields[i]);
    thrift_list(thrift, 2, THRIFT_STRUCT, count);
    thrift_element_struct(thrift);
    thrift_binary(thrift, 4, span_of_text("table"));
    thrift_i32(thrift, 5, (int32_t)schema->field_count);
    thrift_end(thrift);
    for (uint32_t i = 0; i < schema->field_count; i++)
        put_element(thrift, &schema->fields[i], schema->fields[i].name);
}

/* ---- row groups ---- */

static void put_path(struct thrift *thrift, const struct leaf *leaf)
{
    const char *names[PATH_NAMES_MAX];
    size_t count = leaf_path_names(leaf, names);
    thrift_list(thrift, 3, THRIFT_BINARY, count);
    for (size_t i = 0; i < count; i++)
        thrift_element_binary(thrift, span_of_text(names[i]));
}

static void put_statistics(struct thrift *thrift, const struct leaf *leaf,
                           const struct chunk_record *chunk)
{
    thrift_struct(thrift, 12);
    thrift_i64(thrift, 3, chunk->null_count);
    if (chunk->has_bounds) {
        thrift_binary(thrift, 5, chunk->max);
        thrift_binary(thrift, 6, chunk->min);
        thrift_bool(thrift, 7, chunk->is_max_exact);
        thrift_bool(thrift, 8, chunk->is_min_exact);
    }
    if (is_floating(leaf->type))
        thrift_i64(thrift, 9, chunk->nan_count);
    thrift_end(thrift);
}

static void put_encoding_stats(struct thrift *thrift, int page_type, int encoding, uint32_t count)
{
    thrift_element_struct(thrift);
    thrift_i32(thrift, 1, page_type);
    thrift_i32(thrift, 2, encoding);
    thrift_i32(thrift, 3, (int32_t)count);
    thrift_end(thrift);
}

static void put_size_statistics(struct thrift *thrift, const struct leaf *leaf,
                                const struct chunk_record *chunk)
{
    thrift_struct(thrift, 16);
    if (leaf->type == PARQUET_BYTE_ARRAY)
        thrift_i64(thrift, 1, chunk->unencoded_bytes);
    if (leaf->max_rep)
        thrift_list_i64(thrift, 2, chunk->rep_histogram, (size_t)leaf->max_rep + 1);
    if (leaf->max_def > 1)
        thrift_list_i64(thrift, 3, chunk->def_histogram, (size_t)leaf->max_def + 1);
    thrift_end(thrift);
}

static const int32_t codec_ids[] = {[PARQUET_UNCOMPRESSED] = CODEC_ID_UNCOMPRESSED,
                                    [PARQUET_ZSTD] = CODEC_ID_ZSTD,
                                    [PARQUET_SNAPPY] = CODEC_ID_SNAPPY,
                                    [PARQUET_GZIP] = CODEC_ID_GZIP,
                                    [PARQUET_LZ4_RAW] = CODEC_ID_LZ4_RAW};

/* The encodings of its pages; a dictionary's own page is PLAIN, levels are RLE. */
static bool has_encoding(const struct chunk_record *chunk, int encoding, bool has_levels)
{
    return chunk->pages_of[encoding] || (encoding == ENCODING_PLAIN && chunk->has_dictionary) ||
           (encoding == ENCODING_RLE && has_levels);
}

static void put_column_metadata(struct thrift *thrift, const struct parquet_writer *writer,
                                const struct leaf *leaf, const struct chunk_record *chunk)
{
    bool has_levels = leaf->max_def || leaf->max_rep;
    const uint32_t *pages_of = chunk->pages_of;
    size_t encodings = 0, kinds = 0;
    thrift_struct(thrift, 3);
    thrift_i32(thrift, 1, (int32_t)leaf->type);
    for (int i = 0; i < ENCODING_COUNT; i++) {
        kinds += pages_of[i] > 0;
        encodings += has_encoding(chunk, i, has_levels);
    }
    thrift_list(thrift, 2, THRIFT_I32, encodings);
    for (int i = 0; i < ENCODING_COUNT; i++)
        if (has_encoding(chunk, i, has_levels))
            thrift_element_int(thrift, i);
    put_path(thrift, leaf);
    thrift_i32(thrift, 4, codec_ids[writer->options.compression]);
    thrift_i64(thrift, 5, chunk->level_count);
    thrift_i64(thrift, 6, (int64_t)chunk->plain_bytes);
    thrift_i64(thrift, 7, (int64_t)chunk->stored_bytes);
    thrift_i64(thrift, 9, (int64_t)chunk->data_offset);
    if (chunk->has_dictionary)
        thrift_i64(thrift, 11, (int64_t)chunk->offset);
    put_statistics(thrift, leaf, chunk);
    thrift_list(thrift, 13, THRIFT_STRUCT, kinds + chunk->has_dictionary);
    if (chunk->has_dictionary)
        put_encoding_stats(thrift, PARQUET_PAGE_DICTIONARY, ENCODING_PLAIN, 1);
    for (int i = ENCODING_COUNT - 1; i >= 0; i--)
        if (pages_of[i])
            put_encoding_stats(thrift, leaf_page_type(leaf), i, pages_of[i]);
    if (chunk->bloom_bytes) {
        thrift_i64(thrift, 14, (int64_t)chunk->bloom_offset);
        thrift_i32(thrift, 15, (int32_t)chunk->bloom_bytes);
    }
    put_size_statistics(thrift, leaf, chunk);
    thrift_end(thrift);
}

static void put_chunk(struct thrift *thrift, const struct parquet_writer *writer,
                      const struct leaf *leaf, const struct chunk_record *chunk)
{
    thrift_element_struct(thrift);
    thrift_i64(thrift, 2, 0);
    put_column_metadata(thrift, writer, leaf, chunk);
    thrift_i64(thrift, 4, (int64_t)chunk->offset_index_offset);
    thrift_i32(thrift, 5, (int32_t)chunk->offset_index_bytes);
    if (chunk->column_index_bytes) {
        thrift_i64(thrift, 6, (int64_t)chunk->column_index_offset);
        thrift_i32(thrift, 7, (int32_t)chunk->column_index_bytes);
    }
    thrift_end(thrift);
}

static void put_group(struct thrift *thrift, const struct parquet_writer *writer,
                      const struct group_record *group, size_t ordinal)
{
    uint64_t plain_bytes = 0, stored_bytes = 0;
    thrift_element_struct(thrift);
    thrift_list(thrift, 1, THRIFT_STRUCT, writer->leaf_count);
    for (uint32_t i = 0; i < writer->leaf_count; i++) {
        put_chunk(thrift, writer, &writer->leaves[i], &group->chunks[i]);
        plain_bytes += group->chunks[i].plain_bytes;
        stored_bytes += group->chunks[i].stored_bytes;
    }
    thrift_i64(thrift, 2, (int64_t)plain_bytes);
    thrift_i64(thrift, 3, group->rows);
    if (writer->options.sorting_count) {
        thrift_list(thrift, 4, THRIFT_STRUCT, writer->options.sorting_count);
        for (size_t i = 0; i < writer->options.sorting_count; i++) {
            thrift_element_struct(thrift);
            thrift_i32(thrift, 1, (int32_t)writer->sorting[i].field);
            thrift_bool(thrift, 2, writer->sorting[i].is_descending);
            thrift_bool(thrift, 3, writer->sorting[i].is_nulls_first);
            thrift_end(thrift);
        }
    }
    thrift_i64(thrift, 5, (int64_t)group->chunks[0].offset);
    thrift_i64(thrift, 6, (int64_t)stored_bytes);
    if (ordinal <= INT16_MAX)
        thrift_i16(thrift, 7, (int16_t)ordinal);
    thrift_end(thrift);
}

static void put_file_metadata(struct buf *out, const struct parquet_writer *writer)
{
    struct thrift thrift = thrift_to(out);
    const struct parquet_key_value *pairs = (const void *)writer->metadata.data;
    size_t pair_count = writer->metadata.length / sizeof *pairs, ordinal = 0;
    thrift_i32(&thrift, 1, 1);
    put_schema(&thrift, &writer->schema);
    thrift_i64(&thrift, 3, writer->file_rows);
    thrift_list(&thrift, 4, THRIFT_STRUCT, writer->group_count);
    for (const struct group_record *group = writer->groups; group; group = group->next)
        put_group(&thrift, writer, group, ordinal++);
    if (pair_count)
        thrift_list(&thrift, 5, THRIFT_STRUCT, pair_count);
    for (size_t i = 0; i < pair_count; i++) {
        thrift_element_struct(&thrift);
        thrift_binary(&thrift, 1, span_of_text(pairs[i].key));
        thrift_binary(&thrift, 2, span_of_text(pairs[i].value));
        thrift_end(&thrift);
    }
    thrift_binary(&thrift, 6, span_of_text(writer->options.created_by));
    thrift_list(&thrift, 7, THRIFT_STRUCT, writer->leaf_count);
    for (uint32_t i = 0; i < writer->leaf_count; i++) {
        thrift_element_struct(&thrift);
        thrift_empty_struct(&thrift, 1); /* each type's own order */
        thrift_end(&thrift);
    }
    thrift_end(&thrift);
}

enum status footer_write(struct parquet_writer *writer, struct error *err)
{
    struct buf *out = &writer->scratches->body;
    TRY(write_indexes(writer, true, err));
    TRY(write_indexes(writer, false, err));
    buf_clear(out);
    put_file_metadata(out, writer);
    if (out->length > UINT32_MAX)
        return error_set(err, STATUS_TOO_LARGE, "parquet: a footer of %zu bytes", out->length);
    buf_put_le32(out, (uint32_t)out->length);
    buf_put(out, "PAR1", 4);
    return flush_buf(writer, out, err);
}
