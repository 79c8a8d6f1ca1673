/* SPDX-License-Identifier: Apache-2.0
 *
 * From a footer to a parquet_file. Source: parquet.thrift. Chunks are held against the file's
 * length and the schema here, so that what reads them later need not.
 */
#include <inttypes.h>

#include "format/parquet/prune_internal.h"
#include "format/parquet/thrift_internal.h"

struct parquet_limits parquet_limits_default(void)
{
    return (struct parquet_limits){.metadata_bytes_max = 256u << 20,
                                   .element_count_max = 100000,
                                   .depth_max = 64,
                                   .page_bytes_max = 1u << 30,
                                   .batch_bytes_max = (size_t)4 << 30};
}

const char *parquet_codec_name(int32_t codec)
{
    static const char *const names[] = {"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO",
                                        "BROTLI",       "LZ4",    "ZSTD", "LZ4_RAW"};
    return codec >= 0 && (size_t)codec < COUNT_OF(names) ? names[codec] : "?";
}

const char *parquet_encoding_name(int encoding)
{
    static const char *const names[] = {"PLAIN",
                                        "?",
                                        "PLAIN_DICTIONARY",
                                        "RLE",
                                        "BIT_PACKED",
                                        "DELTA_BINARY_PACKED",
                                        "DELTA_LENGTH_BYTE_ARRAY",
                                        "DELTA_BYTE_ARRAY",
                                        "RLE_DICTIONARY",
                                        "BYTE_STREAM_SPLIT"};
    return encoding >= 0 && (size_t)encoding < COUNT_OF(names) ? names[encoding] : "?";
}

const char *parquet_physical_name(enum parquet_physical physical)
{
    static const char *const names[] = {"BOOLEAN", "INT32",  "INT64",      "INT96",
                                        "FLOAT",   "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"};
    return (size_t)physical < COUNT_OF(names) ? names[physical] : "?";
}

struct footer {
    struct parquet_file *file;
    struct cursor in; /* over file->footer */
    struct schema_element *elements;
    size_t element_count;
    struct error *err;
};

/* Where the cursor stands in the footer, and in the file. */
static uint32_t footer_at(const struct footer *footer)
{
    return (uint32_t)(footer->in.at - footer->file->footer.data);
}

static uint64_t file_at(const struct footer *footer)
{
    return footer->file->footer_offset + footer_at(footer);
}

static enum status corrupt(const struct footer *footer, const char *what)
{
    error_set(footer->err, STATUS_CORRUPT, "parquet: footer, byte %" PRIu64 ": %s", file_at(footer),
              what);
    return error_at(footer->err, file_at(footer));
}

/* What stands at `at` of the footer says something wrong of a chunk. */
static enum status chunk_corrupt(const struct footer *footer, size_t group, uint32_t leaf,
                                 uint64_t at, const char *what)
{
    return chunk_fault(footer->file, group, leaf, at, STATUS_CORRUPT, footer->err, "%s", what);
}

/* Only memory can be missing, or the limit on it. */
static enum status out_of_room(const struct footer *footer)
{
    const struct arena *arena = &footer->file->arena;
    return error_set(footer->err, STATUS_LIMIT, "parquet: footer: no room within %zu bytes",
                     arena->bytes_max);
}

/* ---- schema elements ---- */

static int32_t read_unit(struct cursor *in, int type)
{
    int id = 0, member = 0;
    if (!thrift_read_struct(in, type))
        return 0;
    while ((type = thrift_read_field(in, &id)) != 0) {
        member = id;
        thrift_skip(in, type);
    }
    return member; /* 1 millis, 2 micros, 3 nanos */
}

/* The one member of LogicalType, and what is in it. */
static void read_logical_member(struct cursor *in, struct schema_element *element)
{
    bool is_decimal = element->logical == LOGICAL_DECIMAL;
    bool is_integer = element->logical == LOGICAL_INTEGER;
    bool is_time = element->logical == LOGICAL_TIME || element->logical == LOGICAL_TIMESTAMP;
    int id = 0, type;
    while ((type = thrift_read_field(in, &id)) != 0) {
        if (is_decimal && id == 1)
            element->logical_scale = thrift_read_i32(in, type);
        else if (is_decimal && id == 2)
            element->logical_precision = thrift_read_i32(in, type);
        else if (is_time && id == 1)
            element->is_utc = thrift_read_bool(in, type);
        else if (is_time && id == 2)
            element->unit = read_unit(in, type);
        else if (is_integer && id == 1)
            element->bits = thrift_read_i32(in, type);
        else if (is_integer && id == 2)
            element->is_signed = thrift_read_bool(in, type);
        else
            thrift_skip(in, type);
    }
}

static void read_logical(struct cursor *in, int type, struct schema_element *element)
{
    int id = 0;
    if (!thrift_read_struct(in, type))
        return;
    while ((type = thrift_read_field(in, &id)) != 0) {
        element->logical = id;
        if (thrift_read_struct(in, type))
            read_logical_member(in, element);
    }
}

void schema_element_read(struct cursor *in, struct schema_element *element)
{
    int id = 0, type;
    *element = (struct schema_element){.physical = -1, .converted = -1};
    while ((type = thrift_read_field(in, &id)) != 0) {
        int32_t *number = id == 1   ? &element->physical
                          : id == 2 ? &element->width
                          : id == 3 ? &element->repetition
                          : id == 5 ? &element->child_count
                          : id == 6 ? &element->converted
                          : id == 7 ? &element->scale
                          : id == 8 ? &element->precision
                          : id == 9 ? &element->field_id
                                    : NULL;
        if (number)
            *number = thrift_read_i32(in, type);
        else if (id == 4)
            element->name = thrift_read_binary(in, type);
        else if (id == 10)
            read_logical(in, type, element);
        else
            thrift_skip(in, type);
    }
}

static enum status read_schema(struct footer *footer, int type)
{
    int inner;
    footer->file->schema_at = footer_at(footer);
    size_t count = thrift_read_list(&footer->in, type, &inner);
    const struct parquet_limits *limits = &footer->file->limits;
    if (footer->in.failed || inner != THRIFT_STRUCT || footer->elements)
        return corrupt(footer, "no list of schema elements");
    if (count > limits->element_count_max)
        return error_set(footer->err, STATUS_LIMIT,
                         "parquet: footer: a schema of %zu elements, more than %u", count,
                         limits->element_count_max);
    footer->elements = mem_alloc_zero(count + 1, sizeof *footer->elements);
    if (!footer->elements)
        return error_set(footer->err, STATUS_NO_MEMORY, "parquet: footer: no memory");
    footer->element_count = count;
    for (size_t i = 0; i < count && !footer->in.failed; i++) {
        uint64_t at = file_at(footer);
        schema_element_read(&footer->in, &footer->elements[i]);
        footer->elements[i].at = at;
    }
    if (footer->in.failed)
        return corrupt(footer, "a damaged schema");
    return schema_build(footer->file, footer->elements, count, footer->err);
}

/* ---- row groups ---- */

static void read_statistics(struct cursor *in, int type, struct parquet_statistics *out)
{
    int id = 0;
    if (!thrift_read_struct(in, type))
        return;
    while ((type = thrift_read_field(in, &id)) != 0) {
        if (id == 3) {
            out->null_count = thrift_read_i64(in, type);
            out->has_null_count = true;
        } else if (id == 5) {
            out->max = thrift_read_binary(in, type);
            out->has_max = true;
        } else if (id == 6) {
            out->min = thrift_read_binary(in, type);
            out->has_min = true;
        } else if (id == 7) {
            out->is_max_exact = thrift_read_bool(in, type);
        } else if (id == 8) {
            out->is_min_exact = thrift_read_bool(in, type);
        } else if (id == 9) {
            out->nan_count = thrift_read_i64(in, type);
            out->has_nan_count = true;
        } else {
            thrift_skip(in, type);
        }
    }
}

/* ColumnMetaData as it comes; numbers that may be missing begin at -1. */
struct chunk_metadata {
    int64_t physical, codec, value_count, plain_bytes, bytes, data_offset, dictionary_offset;
    int64_t bloom_offset, bloom_bytes, file_path_seen;
    int64_t offset_index_offset, offset_index_bytes, column_index_offset, column_index_bytes;
};

static void read_encodings(struct cursor *in, int type, struct parquet_chunk *chunk)
{
    int inner;
    size_t count = thrift_read_list(in, type, &inner);
    for (size_t i = 0; i < count && !in->failed; i++) {
        int32_t encoding = thrift_read_i32(in, inner);
        if (encoding >= 0 && encoding < 32)
            chunk->encodings |= 1u << encoding;
    }
}

static void read_metadata(struct cursor *in, int type, struct chunk_metadata *metadata,
                          struct parquet_chunk *chunk)
{
    int id = 0;
    if (!thrift_read_struct(in, type))
        return;
    while ((type = thrift_read_field(in, &id)) != 0) {
        int64_t *number = id == 1    ? &metadata->physical
                          : id == 4  ? &metadata->codec
                          : id == 5  ? &metadata->value_count
                          : id == 6  ? &metadata->plain_bytes
                          : id == 7  ? &metadata->bytes
                          : id == 9  ? &metadata->data_offset
                          : id == 11 ? &metadata->dictionary_offset
                          : id == 14 ? &metadata->bloom_offset
                          : id == 15 ? &metadata->bloom_bytes
                                     : NULL;
        if (number)
            *number = thrift_read_i64(in, type);
        else if (id == 2)
            read_encodings(in, type, chunk);
        else if (id == 12)
            read_statistics(in, type, &chunk->statistics);
        else
            thrift_skip(in, type);
    }
}

/* A range of an index or filter; one that does not lie in the file is as good as none. */
static void keep_range(const struct footer *footer, int64_t offset, int64_t bytes,
                       uint64_t *out_offset, uint32_t *out_bytes)
{
    bool is_inside = offset >= MAGIC_BYTES && bytes >= 0 && bytes <= INT32_MAX &&
                     (uint64_t)offset <= footer->file->footer_offset &&
                     (uint64_t)bytes <= footer->file->footer_offset - (uint64_t)offset;
    *out_offset = is_inside ? (uint64_t)offset : 0;
    *out_bytes = is_inside ? (uint32_t)bytes : 0;
}

static enum status keep_chunk(struct footer *footer, const struct chunk_metadata *metadata,
                              uint32_t leaf, size_t group, struct parquet_chunk *chunk)
{
    int64_t start = metadata->data_offset;
    bool has_no_data = metadata->value_count == 0 && start < MAGIC_BYTES; /* arrow says 0 */
    chunk->has_dictionary =
        metadata->dictionary_offset > 0 && (metadata->dictionary_offset < start || has_no_data);
    if (chunk->has_dictionary)
        start = metadata->dictionary_offset;
    int64_t bytes = metadata->bytes;
    const char *what = NULL;
    if (has_no_data && !chunk->has_dictionary) {
        start = MAGIC_BYTES;
        bytes = 0;
    }
    if (metadata->file_path_seen)
        return error_set(footer->err, STATUS_UNSUPPORTED,
                         "parquet: column %.100s, row group %zu: lies in another file",
                         footer->file->leaves[leaf].path, group);
    if (metadata->physical != (int64_t)footer->file->leaves[leaf].physical)
        what = "its type is not the schema's";
    else if (metadata->value_count < 0 || bytes < 0 || metadata->codec < 0 ||
             metadata->codec > INT32_MAX)
        what = "its sizes make no sense";
    else if (start < MAGIC_BYTES || (uint64_t)start > footer->file->footer_offset ||
             (uint64_t)bytes > footer->file->footer_offset - (uint64_t)start)
        what = "its pages do not lie within the file";
    if (what)
        return chunk_corrupt(footer, group, leaf, footer->file->footer_offset + chunk->footer_at,
                             what);
    chunk->offset = (uint64_t)start;
    chunk->bytes = (uint64_t)bytes;
    chunk->plain_bytes = metadata->plain_bytes < 0 ? 0 : (uint64_t)metadata->plain_bytes;
    chunk->value_count = (uint64_t)metadata->value_count;
    chunk->codec = (int32_t)metadata->codec;
    keep_range(footer, metadata->bloom_offset, metadata->bloom_bytes, &chunk->bloom_offset,
               &chunk->bloom_bytes);
    keep_range(footer, metadata->offset_index_offset, metadata->offset_index_bytes,
               &chunk->offset_index_offset, &chunk->offset_index_bytes);
    keep_range(footer, metadata->column_index_offset, metadata->column_index_bytes,
               &chunk->column_index_offset, &chunk->column_index_bytes);
    return STATUS_OK;
}

static enum status read_chunk(struct footer *footer, size_t group, uint32_t leaf,
                              struct parquet_chunk *chunk)
{
    struct cursor *in = &footer->in;
    struct chunk_metadata metadata = {.physical = -1,
                                      .codec = -1,
                                      .value_count = -1,
                                      .bytes = -1,
                                      .data_offset = -1,
                                      .dictionary_offset = -1};
    int id = 0, type;
    chunk->footer_at = footer_at(footer);
    while ((type = thrift_read_field(in, &id)) != 0) {
        int64_t *number = id == 4   ? &metadata.offset_index_offset
                          : id == 5 ? &metadata.offset_index_bytes
                          : id == 6 ? &metadata.column_index_offset
                          : id == 7 ? &metadata.column_index_bytes
                                    : NULL;
        if (number)
            *number = thrift_read_i64(in, type);
        else if (id == 1)
            metadata.file_path_seen = thrift_read_binary(in, type).length > 0;
        else if (id == 3)
            read_metadata(in, type, &metadata, chunk);
        else
            thrift_skip(in, type);
    }
    if (in->failed)
        return chunk_corrupt(footer, group, leaf, file_at(footer), "a damaged column chunk");
    return keep_chunk(footer, &metadata, leaf, group, chunk);
}

static enum status read_chunks(struct footer *footer, int type, size_t ordinal,
                               struct parquet_group *group)
{
    int inner;
    size_t count = thrift_read_list(&footer->in, type, &inner);
    const struct parquet_file *file = footer->file;
    if (footer->in.failed || count != file->leaf_count || group->chunks ||
        (count && inner != THRIFT_STRUCT))
        return corrupt(footer, "a row group that has not a chunk a column");
    group->chunks = arena_alloc_zero(&footer->file->arena, count, sizeof *group->chunks);
    if (!group->chunks)
        return out_of_room(footer);
    for (uint32_t i = 0; i < count; i++)
        TRY(read_chunk(footer, ordinal, i, &group->chunks[i]));
    return STATUS_OK;
}

static enum status read_group(struct footer *footer, size_t ordinal, struct parquet_group *group)
{
    struct cursor *in = &footer->in;
    int id = 0, type;
    group->rows = -1;
    group->footer_at = footer_at(footer);
    while ((type = thrift_read_field(in, &id)) != 0) {
        if (id == 1) {
            TRY(read_chunks(footer, type, ordinal, group));
        } else if (id == 2) {
            int64_t bytes = thrift_read_i64(in, type);
            group->plain_bytes = bytes < 0 ? 0 : (uint64_t)bytes;
        } else if (id == 3) {
            group->rows = thrift_read_i64(in, type);
        } else {
            thrift_skip(in, type);
        }
    }
    if (in->failed || group->rows < 0 || (!group->chunks && footer->file->leaf_count))
        return corrupt(footer, "a damaged row group");
    return STATUS_OK;
}

static enum status read_groups(struct footer *footer, int type)
{
    int inner;
    struct parquet_file *file = footer->file;
    size_t count = thrift_read_list(&footer->in, type, &inner);
    if (!footer->elements || file->groups || footer->in.failed || (count && inner != THRIFT_STRUCT))
        return corrupt(footer, "no list of row groups");
    file->groups = arena_alloc_zero(&file->arena, count, sizeof *file->groups);
    if (!file->groups)
        return out_of_room(footer);
    file->group_count = count;
    for (size_t i = 0; i < count; i++)
        TRY(read_group(footer, i, &file->groups[i]));
    return STATUS_OK;
}

/* ---- the rest ---- */

static char *copy_text(struct footer *footer, struct span text)
{
    return arena_copy_text(&footer->file->arena, (const char *)text.data, text.length);
}

static enum status read_pairs(struct footer *footer, int type)
{
    int inner;
    struct parquet_file *file = footer->file;
    size_t count = thrift_read_list(&footer->in, type, &inner);
    file->pairs = arena_alloc_zero(&file->arena, count, sizeof *file->pairs);
    if (!file->pairs)
        return out_of_room(footer);
    file->pair_count = count;
    for (size_t i = 0; i < count && thrift_read_struct(&footer->in, inner); i++) {
        struct span texts[2] = {{0}};
        int id = 0, member;
        while ((member = thrift_read_field(&footer->in, &id)) != 0) {
            if (id == 1 || id == 2)
                texts[id - 1] = thrift_read_binary(&footer->in, member);
            else
                thrift_skip(&footer->in, member);
        }
        file->pairs[i].key = copy_text(footer, texts[0]);
        file->pairs[i].value = texts[1].data ? copy_text(footer, texts[1]) : NULL;
        if (!file->pairs[i].key || (texts[1].data && !file->pairs[i].value))
            return out_of_room(footer);
    }
    return footer->in.failed ? corrupt(footer, "damaged key-value pairs") : STATUS_OK;
}

/* One union a leaf; the bounds of a leaf whose order is another one, or not said, mean nothing. */
static void read_column_orders(struct footer *footer, int type)
{
    enum { TYPE_ORDER = 1 };
    int inner;
    struct parquet_file *file = footer->file;
    size_t count = thrift_read_list(&footer->in, type, &inner);
    for (size_t i = 0; i < count && thrift_read_struct(&footer->in, inner); i++) {
        int id = 0, member;
        while ((member = thrift_read_field(&footer->in, &id)) != 0) {
            if (count == file->leaf_count)
                file->leaves[i].has_type_order = id == TYPE_ORDER;
            thrift_skip(&footer->in, member);
        }
    }
}

/* `at`: where the footer says how many there are. */
static enum status check_rows(struct footer *footer, int64_t rows, uint64_t at)
{
    int64_t sum = 0;
    struct parquet_file *file = footer->file;
    for (size_t i = 0; i < file->group_count; i++)
        if (__builtin_add_overflow(sum, file->groups[i].rows, &sum))
            return corrupt(footer, "more rows than can be counted");
    if (rows != sum) {
        error_set(footer->err, STATUS_CORRUPT,
                  "parquet: footer, byte %" PRIu64 ": %" PRId64 " rows, %" PRId64
                  " in the row groups",
                  at, rows, sum);
        return error_at(footer->err, at);
    }
    file->row_count = rows;
    return STATUS_OK;
}

static enum status read_footer(struct footer *footer)
{
    struct cursor *in = &footer->in;
    struct parquet_file *file = footer->file;
    int64_t rows = -1;
    uint64_t rows_at = file_at(footer);
    int id = 0, type;
    while ((type = thrift_read_field(in, &id)) != 0) {
        if (id == 1) {
            file->version = thrift_read_i32(in, type);
        } else if (id == 2) {
            TRY(read_schema(footer, type));
        } else if (id == 3) {
            rows_at = file_at(footer);
            rows = thrift_read_i64(in, type);
        } else if (id == 4) {
            TRY(read_groups(footer, type));
        } else if (id == 5) {
            TRY(read_pairs(footer, type));
        } else if (id == 6) {
            file->created_by = copy_text(footer, thrift_read_binary(in, type));
            if (!file->created_by)
                return out_of_room(footer);
        } else if (id == 7) {
            read_column_orders(footer, type);
        } else {
            thrift_skip(in, type);
        }
    }
    if (in->failed || !footer->elements)
        return corrupt(footer, "damaged, or cut off");
    return check_rows(footer, rows, rows_at);
}

/* Where the footer lies; its bytes are the arena's. */
static enum status fetch_footer(struct parquet_file *file, struct error *err)
{
    uint8_t tail[TAIL_BYTES];
    uint64_t length = file->source.file_bytes;
    if (length < MAGIC_BYTES + TAIL_BYTES)
        return error_set(err, STATUS_CORRUPT, "parquet: %" PRIu64 " bytes are no file", length);
    TRY(file->source.read(file->source.context, length - TAIL_BYTES, TAIL_BYTES, tail, err));
    if (memcmp(tail + 4, "PARE", MAGIC_BYTES) == 0)
        return error_set(err, STATUS_UNSUPPORTED, "parquet: the footer is encrypted");
    if (memcmp(tail + 4, "PAR1", MAGIC_BYTES) != 0) {
        error_set(err, STATUS_CORRUPT, "parquet: no magic at byte %" PRIu64, length - MAGIC_BYTES);
        return error_at(err, length - MAGIC_BYTES);
    }
    uint32_t bytes = get_le32(tail);
    if (bytes > length - MAGIC_BYTES - TAIL_BYTES) {
        error_set(err, STATUS_CORRUPT,
                  "parquet: byte %" PRIu64 ": a footer of %u bytes in a file of %" PRIu64,
                  length - TAIL_BYTES, bytes, length);
        return error_at(err, length - TAIL_BYTES);
    }
    if (bytes > file->limits.metadata_bytes_max)
        return error_set(err, STATUS_LIMIT, "parquet: a footer of %u bytes", bytes);
    uint8_t *place = arena_alloc(&file->arena, (size_t)bytes + 1);
    if (!place)
        return error_set(err, STATUS_LIMIT, "parquet: no room for a footer of %u bytes", bytes);
    TRY(file->source.read(file->source.context, length - TAIL_BYTES - bytes, bytes, place, err));
    file->footer = span_of(place, bytes);
    file->footer_offset = length - TAIL_BYTES - bytes;
    return STATUS_OK;
}

enum status parquet_file_open(struct byte_source source, const struct parquet_limits *limits,
                              struct parquet_file **out_file, struct error *err)
{
    struct footer footer = {.err = err};
    enum status status = STATUS_OK;
    struct parquet_file *file = mem_alloc_zero(1, sizeof *file);
    if (!file)
        return error_set(err, STATUS_NO_MEMORY, "parquet: no memory to open a file");
    file->source = source;
    file->limits = *limits;
    arena_init(&file->arena, limits->metadata_bytes_max);
    TRY_OR_DONE(status, fetch_footer(file, err));
    footer.file = file;
    footer.in = cursor_of(file->footer.data, file->footer.length);
    TRY_OR_DONE(status, read_footer(&footer));
    *out_file = file;
done:
    mem_free(footer.elements);
    if (status != STATUS_OK)
        parquet_file_close(file);
    return status;
}

void parquet_file_close(struct parquet_file *file)
{
    if (!file)
        return;
    arena_deinit(&file->arena);
    mem_free(file);
}
