/* SPDX-License-Identifier: Apache-2.0
 *
 * What C can tell about the Parquet reader: damage of every kind is answered with a status, limits
 * hold, old schemas have the right shape. That values come out as others wrote them is
 * test/interop's to show. Takes the folder of test/fuzz/corpus/parquet as its argument.
 */
#include <time.h>

#include "../unit.h"
#include "format/parquet/parquet.h"
#include "format/parquet/reader_internal.h"
#include "format/parquet/thrift_internal.h"

static const char *corpus;

static struct buf load(const char *name)
{
    char path[1024];
    struct buf bytes = {0};
    snprintf(path, sizeof path, "%s/%s", corpus, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    uint8_t chunk[4096];
    for (size_t count; (count = fread(chunk, 1, sizeof chunk, file)) > 0;)
        buf_put(&bytes, chunk, count);
    fclose(file);
    return bytes;
}

static void keep_dictionaries(struct arrow_field *fields, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        fields[i].is_dictionary = fields[i].type == ARROW_UTF8 || fields[i].type == ARROW_BINARY;
        keep_dictionaries(fields[i].children, fields[i].child_count);
    }
}

static enum status read_groups(const struct parquet_file *file, const struct arrow_schema *schema,
                               bool keeps_physical, bool skips_checksums, struct error *err)
{
    struct parquet_read_options options = {
        .schema = schema, .keeps_physical = keeps_physical, .skips_checksums = skips_checksums};
    struct parquet_reader *reader = NULL;
    struct error bad;
    enum status status = STATUS_OK;
    TRY_OR_DONE(status, parquet_reader_create(file, &options, &reader, err));
    for (size_t i = 0; i < file->group_count; i++) {
        struct arrow_batch batch;
        TRY_OR_DONE(status, parquet_reader_read(reader, i, &batch, err));
        for (uint32_t j = 0; j < schema->field_count; j++)
            if (arrow_array_validate(&schema->fields[j], &batch.columns[j], &bad) != STATUS_OK)
                fail_msg("accepted, but: %s", bad.message);
        arrow_batch_deinit(&batch);
    }
done:
    parquet_reader_destroy(reader);
    return status;
}

/* Reads everything, with dictionaries kept and without, and as the annotations say; a batch that is
 * accepted must be one. */
static enum status read_all(struct span file_bytes, bool skips_checksums, struct error *err)
{
    struct parquet_limits limits = parquet_limits_default();
    struct parquet_file *file = NULL;
    struct arena arena = {0};
    struct arrow_schema kept, logical;
    enum status status = STATUS_OK;
    bool was_arrow;
    limits.metadata_bytes_max = limits.page_bytes_max = limits.batch_bytes_max = 1 << 20;
    TRY_OR_DONE(status, parquet_file_open(byte_source_of_span(&file_bytes), &limits, &file, err));
    TRY_OR_DONE(status, read_groups(file, &file->schema, true, skips_checksums, err));
    TRY_OR_DONE(status, arrow_schema_copy(&file->schema, &arena, &kept, err));
    keep_dictionaries(kept.fields, kept.field_count);
    TRY_OR_DONE(status, read_groups(file, &kept, true, skips_checksums, err));
    TRY_OR_DONE(status, parquet_original_schema(file, &arena, &logical, &was_arrow, err));
    status = read_groups(file, &logical, false, skips_checksums, err);
done:
    parquet_file_close(file);
    arena_deinit(&arena);
    return status;
}

static const char *const files[] = {
    "arrow_schema",
    "byte_stream_split_v2",
    "codec_gzip",
    "codec_lz4",
    "codec_snappy",
    "codec_zstd",
    "delta_binary_packed_v1",
    "delta_byte_array_v2",
    "delta_length_byte_array_v1",
    "dict_v1",
    "dict_v2",
    "int96",
    "nested_l_v1",
    "nested_ll_v2",
    "nested_m_v1",
    "nested_st_v2",
    "no_rows",
    "ours_flat",
    "ours_nested",
    "plain_v1",
    "rle_v1",
    "rle_v2",
    "stats",
};

static void test_whole_files_are_read(void **state)
{
    (void)state;
    struct error err;
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        struct buf bytes = load(files[i]);
        assert_ok(read_all(span_of(bytes.data, bytes.length), false, &err));
        buf_deinit(&bytes);
    }
}

/* Each in memory of its own length, so that a sanitizer sees the byte behind. */
static enum status read_copy(const struct buf *bytes, size_t length, bool skips_checksums)
{
    struct error err;
    uint8_t *copy = mem_alloc(length + !length);
    if (length)
        memcpy(copy, bytes->data, length);
    enum status status = read_all(span_of(copy, length), skips_checksums, &err);
    mem_free(copy);
    return status;
}

static void test_every_truncation_is_answered(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        struct buf bytes = load(files[i]);
        for (size_t length = 0; length < bytes.length; length++)
            assert_int_not_equal(STATUS_OK, read_copy(&bytes, length, true));
        buf_deinit(&bytes);
    }
}

/* Without checksums, so that the damage is seen by what decodes. */
static void test_every_bit_flip_is_answered(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        struct buf bytes = load(files[i]);
        for (size_t at = 0; at < bytes.length; at++)
            for (unsigned bit = 0; bit < 8; bit++) {
                bytes.data[at] ^= (uint8_t)(1u << bit);
                (void)!read_copy(&bytes, bytes.length, true);
                bytes.data[at] ^= (uint8_t)(1u << bit);
            }
        buf_deinit(&bytes);
    }
}

/* With checksums, a flip in the pages of a file that has them is always seen. */
static void test_checksums_see_every_flip(void **state)
{
    (void)state;
    struct error err;
    struct parquet_limits limits = parquet_limits_default();
    struct parquet_file *file;
    struct buf bytes = load("ours_flat");
    struct span span = span_of(bytes.data, bytes.length);
    assert_ok(parquet_file_open(byte_source_of_span(&span), &limits, &file, &err));
    for (uint32_t i = 0; i < file->leaf_count; i++) {
        const struct parquet_chunk *chunk = &file->groups[0].chunks[i];
        for (size_t at = (size_t)chunk->offset; at < chunk->offset + chunk->bytes; at++) {
            bytes.data[at] ^= 0x10;
            enum status status = read_all(span, false, &err);
            if (status == STATUS_OK) /* a header's field that says nothing about the values */
                assert_int_equal(read_all(span, true, &err), STATUS_OK);
            else if (!strstr(err.message, file->leaves[i].path) ||
                     !strstr(err.message, "row group 0, byte "))
                fail_msg("byte %zu: %s", at, err.message);
            bytes.data[at] ^= 0x10;
        }
    }
    parquet_file_close(file);
    buf_deinit(&bytes);
}

static void test_random_damage_is_answered(void **state)
{
    (void)state;
    struct random random;
    random_init(&random, 11);
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        struct buf bytes = load(files[i]);
        for (int round = 0; round < 300; round++) {
            uint8_t saved[8];
            size_t places[8];
            for (int j = 0; j < 8; j++) {
                places[j] = (size_t)random_below(&random, bytes.length);
                saved[j] = bytes.data[places[j]];
                bytes.data[places[j]] = (uint8_t)random_next(&random);
            }
            (void)!read_copy(&bytes, bytes.length, true);
            for (int j = 8; j-- > 0;)
                bytes.data[places[j]] = saved[j];
        }
        buf_deinit(&bytes);
    }
}

static void test_no_memory_is_answered(void **state)
{
    (void)state;
    struct error err;
    const char *const some[] = {"ours_nested", "dict_v1", "delta_byte_array_v2", "codec_zstd",
                                "arrow_schema"};
    for (size_t i = 0; i < COUNT_OF(some); i++) {
        struct buf bytes = load(some[i]);
        bool has_failed = true;
        for (int64_t n = 0; has_failed; n++) {
            alloc_fail_after(n);
            enum status status = read_all(span_of(bytes.data, bytes.length), false, &err);
            has_failed = !alloc_fail_is_due();
            alloc_fail_after(-1);
            if (status != STATUS_OK &&
                (!has_failed || (status != STATUS_NO_MEMORY && status != STATUS_LIMIT)))
                fail_msg("%s, allocation %d: %s", some[i], (int)n, err.message);
            assert_true(n < 1000);
        }
        buf_deinit(&bytes);
    }
}

/* ---- limits ---- */

static void test_limits_hold(void **state)
{
    (void)state;
    struct error err;
    struct parquet_file *file;
    struct parquet_reader *reader;
    struct arrow_batch batch;
    struct parquet_read_options options = {0};
    struct buf bytes = load("ours_nested");
    struct span span = span_of(bytes.data, bytes.length);
    struct parquet_limits limits = parquet_limits_default();
    limits.metadata_bytes_max = 200;
    assert_status(STATUS_LIMIT,
                  parquet_file_open(byte_source_of_span(&span), &limits, &file, &err));
    limits = parquet_limits_default();
    limits.element_count_max = 3;
    assert_status(STATUS_LIMIT,
                  parquet_file_open(byte_source_of_span(&span), &limits, &file, &err));
    limits = parquet_limits_default();
    limits.depth_max = 2;
    assert_status(STATUS_LIMIT,
                  parquet_file_open(byte_source_of_span(&span), &limits, &file, &err));
    for (size_t max = 1; max < 1 << 14; max *= 4) {
        limits = parquet_limits_default();
        limits.batch_bytes_max = max;
        assert_ok(parquet_file_open(byte_source_of_span(&span), &limits, &file, &err));
        assert_ok(parquet_reader_create(file, &options, &reader, &err));
        enum status status = parquet_reader_read(reader, 0, &batch, &err);
        if (status == STATUS_OK) {
            assert_true(batch.arena.bytes_total <= max);
            arrow_batch_deinit(&batch);
        } else {
            assert_int_equal(status, STATUS_LIMIT);
            assert_true(max < 1 << 13);
        }
        parquet_reader_destroy(reader);
        parquet_file_close(file);
    }
    limits = parquet_limits_default();
    limits.page_bytes_max = 3;
    assert_ok(parquet_file_open(byte_source_of_span(&span), &limits, &file, &err));
    assert_ok(parquet_reader_create(file, &options, &reader, &err));
    assert_status(STATUS_LIMIT, parquet_reader_read(reader, 0, &batch, &err));
    parquet_reader_destroy(reader);
    parquet_file_close(file);
    buf_deinit(&bytes);
}

/* ---- files made by hand: what no writer would write ---- */

/* `columns` required INT32 columns c0, c1, ... of `rows` rows in one row group. Their chunks lie
 * one behind the other, or all at the same place. */
struct made {
    uint32_t columns;
    int64_t rows;
    int codec;
    struct span pages; /* of every chunk */
    bool overlaps;
};

static void put_made_columns(struct thrift *footer, const struct made *made)
{
    char name[24];
    thrift_list(footer, 2, THRIFT_STRUCT, made->columns + 1);
    thrift_element_struct(footer);
    thrift_binary(footer, 4, span_of_text("root"));
    thrift_i32(footer, 5, (int32_t)made->columns);
    thrift_end(footer);
    for (uint32_t i = 0; i < made->columns; i++) {
        snprintf(name, sizeof name, "c%u", i);
        thrift_element_struct(footer);
        thrift_i32(footer, 1, PARQUET_INT32);
        thrift_i32(footer, 3, REQUIRED);
        thrift_binary(footer, 4, span_of_text(name));
        thrift_end(footer);
    }
    thrift_i64(footer, 3, made->rows);
}

static struct buf make_file(const struct made *made)
{
    struct buf bytes = {0}, metadata = {0};
    struct thrift footer = thrift_to(&metadata);
    int64_t chunk_bytes = (int64_t)made->pages.length;
    buf_put_text(&bytes, "PAR1");
    for (uint32_t i = 0; i < (made->overlaps ? 1 : made->columns); i++)
        buf_put(&bytes, made->pages.data, made->pages.length);
    thrift_i32(&footer, 1, 1);
    put_made_columns(&footer, made);
    thrift_list(&footer, 4, THRIFT_STRUCT, 1);
    thrift_element_struct(&footer);
    thrift_list(&footer, 1, THRIFT_STRUCT, made->columns);
    for (uint32_t i = 0; i < made->columns; i++) {
        thrift_element_struct(&footer);
        thrift_struct(&footer, 3);
        thrift_i32(&footer, 1, PARQUET_INT32);
        thrift_i32(&footer, 4, made->codec);
        thrift_i64(&footer, 5, made->rows);
        thrift_i64(&footer, 6, chunk_bytes);
        thrift_i64(&footer, 7, chunk_bytes);
        thrift_i64(&footer, 9, MAGIC_BYTES + (made->overlaps ? 0 : i * chunk_bytes));
        thrift_end(&footer);
        thrift_end(&footer);
    }
    thrift_i64(&footer, 3, made->rows);
    thrift_end(&footer);
    thrift_end(&footer);
    buf_put(&bytes, metadata.data, metadata.length);
    buf_put_le32(&bytes, (uint32_t)metadata.length);
    buf_put_text(&bytes, "PAR1");
    assert_false(bytes.failed || metadata.failed);
    buf_deinit(&metadata);
    return bytes;
}

static void put_page(struct buf *out, int type, int values, size_t plain_bytes, struct span stored)
{
    struct thrift header = thrift_to(out);
    thrift_i32(&header, 1, type);
    thrift_i32(&header, 2, (int32_t)plain_bytes);
    thrift_i32(&header, 3, (int32_t)stored.length);
    thrift_struct(&header, type == PARQUET_PAGE_DATA ? 5 : 7);
    thrift_i32(&header, 1, values);
    thrift_i32(&header, 2, ENCODING_PLAIN);
    if (type == PARQUET_PAGE_DATA) {
        thrift_i32(&header, 3, ENCODING_RLE);
        thrift_i32(&header, 4, ENCODING_RLE);
    }
    thrift_end(&header);
    thrift_end(&header);
    buf_put(out, stored.data, stored.length);
}

static size_t fetched_bytes;

static enum status read_counted(void *context, uint64_t offset, size_t bytes, void *place,
                                struct error *err)
{
    const struct span *file = context;
    (void)err;
    fetched_bytes += bytes;
    memcpy(place, file->data + offset, bytes);
    return STATUS_OK;
}

/* Reads the one row group; `fetched_bytes` tells how much of its chunks was asked for. */
static enum status read_made(const struct made *made, size_t batch_bytes_max, struct error *out_err)
{
    struct error err;
    struct buf bytes = make_file(made);
    struct span span = span_of(bytes.data, bytes.length);
    struct byte_source source = {.read = read_counted, .context = &span, .file_bytes = span.length};
    struct parquet_limits limits = parquet_limits_default();
    struct parquet_read_options options = {0};
    struct parquet_file *file;
    struct parquet_reader *reader;
    struct arrow_batch batch;
    limits.batch_bytes_max = batch_bytes_max;
    assert_ok(parquet_file_open(source, &limits, &file, &err));
    assert_ok(parquet_reader_create(file, &options, &reader, &err));
    fetched_bytes = 0;
    enum status status = parquet_reader_read(reader, 0, &batch, &err);
    *out_err = err;
    if (status == STATUS_OK) {
        assert_int_equal(((const int32_t *)batch.columns[made->columns - 1].values)[0], 7);
        arrow_batch_deinit(&batch);
    }
    parquet_reader_destroy(reader);
    parquet_file_close(file);
    buf_deinit(&bytes);
    return status;
}

static const uint8_t seven[] = {7, 0, 0, 0};

/* What was quadratic took 20 s. */
static void test_wide_files_take_linear_time(void **state)
{
    (void)state;
    enum { COLUMNS = 80000, SECONDS_MAX = 5 };
    struct error err;
    struct buf pages = {0};
    put_page(&pages, PARQUET_PAGE_DATA, 1, sizeof seven, span_of(seven, sizeof seven));
    struct made made = {.columns = COLUMNS, .rows = 1, .pages = span_of(pages.data, pages.length)};
    clock_t began = clock();
    assert_ok(read_made(&made, (size_t)1 << 30, &err));
    assert_true((clock() - began) / CLOCKS_PER_SEC < SECONDS_MAX);
    buf_deinit(&pages);
}

static void test_chunks_that_overlap(void **state)
{
    (void)state;
    enum { FILLING_BYTES = 100000 };
    struct error err;
    struct buf pages = {0};
    put_page(&pages, PARQUET_PAGE_DATA, 1, sizeof seven, span_of(seven, sizeof seven));
    assert_non_null(memset(buf_extend(&pages, FILLING_BYTES), 0, FILLING_BYTES));
    struct made made = {.columns = 1, .rows = 1, .pages = span_of(pages.data, pages.length)};
    assert_ok(read_made(&made, 1 << 20, &err));
    assert_status(STATUS_LIMIT, read_made(&made, FILLING_BYTES / 2, &err));
    assert_int_equal(fetched_bytes, 0);
    made.columns = 3;
    assert_ok(read_made(&made, 1 << 20, &err));
    made.overlaps = true;
    assert_status(STATUS_CORRUPT, read_made(&made, 1 << 20, &err));
    assert_non_null(strstr(err.message, "column c1, row group 0, byte 4: with the columns before"));
    assert_int_equal(fetched_bytes, 0);
    buf_deinit(&pages);
}

static void test_pages_of_no_values_are_not_expanded(void **state)
{
    (void)state;
    struct error err;
    struct buf pages = {0}, plain = {0};
    struct codec_compressor *compressor;
    assert_ok(codec_compressor_create(CODEC_ZSTD, 0, &compressor, &err));
    put_page(&pages, PARQUET_PAGE_DATA, 0, 1 << 24, span_of_text("no frame"));
    assert_ok(codec_compress(compressor, span_of(seven, sizeof seven), &plain, &err));
    put_page(&pages, PARQUET_PAGE_DATA, 1, sizeof seven, span_of(plain.data, plain.length));
    struct made made = {.columns = 1,
                        .rows = 1,
                        .codec = CODEC_ID_ZSTD,
                        .pages = span_of(pages.data, pages.length)};
    assert_ok(read_made(&made, 1 << 20, &err));
    codec_compressor_destroy(compressor);
    buf_deinit(&plain);
    buf_deinit(&pages);
}

/* Each page has one value and a mebibyte behind it. */
static void test_what_pages_expand_to_is_bounded(void **state)
{
    (void)state;
    enum { PAGES = 4, PAGE_BYTES = 1 << 20 };
    struct error err;
    struct buf pages = {0}, stored = {0};
    struct codec_compressor *compressor;
    uint8_t *plain = mem_alloc_zero(PAGE_BYTES, 1);
    plain[0] = 7;
    assert_ok(codec_compressor_create(CODEC_ZSTD, 0, &compressor, &err));
    assert_ok(codec_compress(compressor, span_of(plain, PAGE_BYTES), &stored, &err));
    for (int i = 0; i < PAGES; i++)
        put_page(&pages, PARQUET_PAGE_DATA, 1, PAGE_BYTES, span_of(stored.data, stored.length));
    struct made made = {.columns = 1,
                        .rows = PAGES,
                        .codec = CODEC_ID_ZSTD,
                        .pages = span_of(pages.data, pages.length)};
    assert_ok(read_made(&made, PAGES * PAGE_BYTES, &err));
    assert_status(STATUS_LIMIT, read_made(&made, PAGES * PAGE_BYTES - 1, &err));
    assert_non_null(strstr(err.message, "the pages expand to more than"));
    made.columns = 2; /* they count together */
    assert_status(STATUS_LIMIT, read_made(&made, PAGES * PAGE_BYTES, &err));
    codec_compressor_destroy(compressor);
    mem_free(plain);
    buf_deinit(&stored);
    buf_deinit(&pages);
}

/* The levels of a chunk, or its values too. */
static enum status read_chunk(const struct buf *pages, int codec, bool reads_values,
                              struct error *err)
{
    struct parquet_group group = {.rows = 1};
    struct parquet_file file = {
        .limits = parquet_limits_default(), .groups = &group, .group_count = 1};
    struct parquet_leaf column = {.path = "c", .physical = PARQUET_INT32};
    struct parquet_chunk chunk = {.bytes = pages->length, .value_count = 1, .codec = codec};
    struct codec_expander *zstd = NULL;
    struct page_piece piece = {
        .length = pages->length, .bytes = span_of(pages->data, pages->length), .row_count = 1};
    struct planned_leaf plan = {.pieces = &piece, .count = 1, .is_whole = true};
    struct leaf_reader reader = {.walk = {.file = &file,
                                          .zstd = &zstd,
                                          .leaf = &column,
                                          .chunk = &chunk,
                                          .expanded_bytes_max = 1 << 20},
                                 .physical_width = 4,
                                 .width = 4,
                                 .plan = &plan,
                                 .reads_values = reads_values};
    enum status status = leaf_reader_read(&reader, 1 << 20, err);
    leaf_reader_deinit(&reader);
    codec_expander_destroy(zstd);
    return status;
}

static void test_dictionaries_come_first_and_once(void **state)
{
    (void)state;
    struct error err;
    struct buf pages = {0};
    struct span value = span_of(seven, sizeof seven);
    put_page(&pages, PARQUET_PAGE_DICTIONARY, 1, sizeof seven, value);
    size_t one_bytes = pages.length;
    put_page(&pages, PARQUET_PAGE_DATA, 1, sizeof seven, value);
    assert_ok(read_chunk(&pages, CODEC_ID_UNCOMPRESSED, true, &err));
    assert_ok(read_chunk(&pages, CODEC_ID_UNCOMPRESSED, false, &err));
    buf_truncate(&pages, one_bytes);
    put_page(&pages, PARQUET_PAGE_DICTIONARY, 1, sizeof seven, value);
    put_page(&pages, PARQUET_PAGE_DATA, 1, sizeof seven, value);
    assert_status(STATUS_CORRUPT, read_chunk(&pages, CODEC_ID_UNCOMPRESSED, true, &err));
    assert_status(STATUS_CORRUPT, read_chunk(&pages, CODEC_ID_UNCOMPRESSED, false, &err));
    buf_clear(&pages);
    put_page(&pages, PARQUET_PAGE_DATA, 0, 0, span_of(seven, 0));
    put_page(&pages, PARQUET_PAGE_DICTIONARY, 1, sizeof seven, value);
    put_page(&pages, PARQUET_PAGE_DATA, 1, sizeof seven, value);
    assert_status(STATUS_CORRUPT, read_chunk(&pages, CODEC_ID_UNCOMPRESSED, true, &err));
    assert_non_null(strstr(err.message, "a second dictionary, or one behind values"));
    buf_deinit(&pages);
}

static void test_dictionaries_that_are_not_wanted_are_not_expanded(void **state)
{
    (void)state;
    struct error err;
    struct buf pages = {0}, stored = {0};
    struct codec_compressor *compressor;
    assert_ok(codec_compressor_create(CODEC_ZSTD, 0, &compressor, &err));
    assert_ok(codec_compress(compressor, span_of(seven, sizeof seven), &stored, &err));
    put_page(&pages, PARQUET_PAGE_DICTIONARY, 1, 1 << 19, span_of_text("no frame"));
    put_page(&pages, PARQUET_PAGE_DATA, 1, sizeof seven, span_of(stored.data, stored.length));
    assert_status(STATUS_CORRUPT, read_chunk(&pages, CODEC_ID_ZSTD, true, &err));
    assert_ok(read_chunk(&pages, CODEC_ID_ZSTD, false, &err));
    codec_compressor_destroy(compressor);
    buf_deinit(&stored);
    buf_deinit(&pages);
}

/* ---- schemas of old writers; names as in LogicalTypes.md ---- */

enum { LIST = CONVERTED_LIST, MAP = CONVERTED_MAP, NOT_CONVERTED = -1 };

static struct schema_element group(const char *name, int repetition, int children, int converted)
{
    return (struct schema_element){.name = span_of_text(name),
                                   .physical = -1,
                                   .repetition = repetition,
                                   .child_count = children,
                                   .converted = converted};
}

static struct schema_element number(const char *name, int repetition)
{
    return (struct schema_element){.name = span_of_text(name),
                                   .physical = PARQUET_INT32,
                                   .repetition = repetition,
                                   .converted = -1};
}

static void describe(const struct arrow_field *field, struct buf *out)
{
    static const char *const names[] = {[ARROW_INT32] = "int",
                                        [ARROW_LIST] = "list",
                                        [ARROW_STRUCT] = "struct",
                                        [ARROW_MAP] = "map"};
    buf_format(out, "%s%s", names[field->type], field->is_nullable ? "?" : "");
    for (uint32_t i = 0; i < field->child_count; i++) {
        buf_format(out, "%c%s:", i ? ',' : '<', field->children[i].name);
        describe(&field->children[i], out);
    }
    buf_put_text(out, field->child_count ? ">" : "");
}

static void assert_shape(const char *shape, unsigned def, unsigned rep,
                         const struct schema_element *elements, size_t count)
{
    struct error err;
    struct buf text = {0};
    struct parquet_file file = {.limits = parquet_limits_default()};
    struct schema_element all[8] = {group("root", REQUIRED, 1, NOT_CONVERTED)};
    memcpy(all + 1, elements, count * sizeof *elements);
    assert_ok(schema_build(&file, all, count + 1, &err));
    describe(&file.schema.fields[0], &text);
    buf_put_byte(&text, 0);
    assert_string_equal((const char *)text.data, shape);
    assert_int_equal(file.leaves[0].max_def, def);
    assert_int_equal(file.leaves[0].max_rep, rep);
    buf_deinit(&text);
    arena_deinit(&file.arena);
}

#define SHAPE(shape, def, rep, ...)                                                                \
    do {                                                                                           \
        const struct schema_element elements_[] = {__VA_ARGS__};                                   \
        assert_shape(shape, def, rep, elements_, COUNT_OF(elements_));                             \
    } while (0)

/* Nothing is marked unless all of them are; what was marked stays. */
static void test_names_that_are_not_all_there(void **state)
{
    (void)state;
    struct error err;
    struct buf bytes = load("ours_flat");
    struct span span = span_of(bytes.data, bytes.length);
    struct parquet_limits limits = parquet_limits_default();
    struct parquet_file *file;
    assert_ok(parquet_file_open(byte_source_of_span(&span), &limits, &file, &err));
    assert_true(file->leaf_count > 2);
    const char *names[] = {file->leaves[1].path, "not there"};
    bool *leaves = mem_alloc_zero(file->leaf_count, sizeof *leaves);
    leaves[2] = true;
    assert_int_equal(STATUS_NOT_FOUND, parquet_leaves_select(file, names, 2, leaves, &err));
    for (uint32_t i = 0; i < file->leaf_count; i++)
        assert_int_equal(i == 2, leaves[i]);
    assert_ok(parquet_leaves_select(file, names, 1, leaves, &err));
    for (uint32_t i = 0; i < file->leaf_count; i++)
        assert_int_equal(i == 1 || i == 2, leaves[i]);
    mem_free(leaves);
    parquet_file_close(file);
    buf_deinit(&bytes);
}

static void test_lists_and_maps_of_old(void **state)
{
    (void)state;
    SHAPE("list?<element:int?>", 3, 1, group("l", OPTIONAL, 1, LIST),
          group("list", REPEATED, 1, NOT_CONVERTED), number("element", OPTIONAL));
    SHAPE("list?<element:int>", 2, 1, group("l", OPTIONAL, 1, LIST), number("element", REPEATED));
    SHAPE("list?<element:struct<a:int,b:int?>>", 2, 1, group("l", OPTIONAL, 1, LIST),
          group("element", REPEATED, 2, NOT_CONVERTED), number("a", REQUIRED),
          number("b", OPTIONAL));
    SHAPE("list<element:struct<x:int>>", 1, 1, group("l", REQUIRED, 1, LIST),
          group("array", REPEATED, 1, NOT_CONVERTED), number("x", REQUIRED));
    SHAPE("list<element:struct<x:int>>", 1, 1, group("l", REQUIRED, 1, LIST),
          group("l_tuple", REPEATED, 1, NOT_CONVERTED), number("x", REQUIRED));
    SHAPE("list<element:int>", 1, 1, group("l", REQUIRED, 1, LIST),
          group("bag", REPEATED, 1, NOT_CONVERTED), number("x", REQUIRED));
    SHAPE("list<element:list<element:int>>", 2, 2, group("l", REQUIRED, 1, LIST),
          group("array", REPEATED, 1, LIST), number("array", REPEATED));
    SHAPE("list<element:int>", 1, 1, number("n", REPEATED));
    SHAPE("list<element:struct<a:int>>", 1, 1, group("g", REPEATED, 1, NOT_CONVERTED),
          number("a", REQUIRED));
    SHAPE("map?<key:int,value:int?>", 2, 1, group("m", OPTIONAL, 1, MAP),
          group("map", REPEATED, 2, 2), number("key", REQUIRED), number("value", OPTIONAL));
    SHAPE("map<key:int,value:int?>", 1, 1, group("m", REQUIRED, 1, 2),
          group("map", REPEATED, 2, NOT_CONVERTED), number("k", REQUIRED), number("v", OPTIONAL));
    SHAPE("map<key:int,value:int>", 2, 1, group("m", REQUIRED, 1, MAP),
          group("key_value", REPEATED, 2, NOT_CONVERTED), number("k", OPTIONAL),
          number("v", REQUIRED));
    SHAPE("struct<x:int>", 0, 0, group("l", REQUIRED, 1, LIST), number("x", REQUIRED));
}

static void test_schemas_that_lie(void **state)
{
    (void)state;
    struct error err;
    static struct schema_element deep[10001];
    deep[0] = group("root", REQUIRED, 1, NOT_CONVERTED);
    for (size_t i = 1; i < COUNT_OF(deep) - 1; i++)
        deep[i] = group("g", i % 2 ? OPTIONAL : REPEATED, 1, NOT_CONVERTED);
    deep[10000] = number("x", REQUIRED);
    struct parquet_file file = {.limits = parquet_limits_default()};
    assert_status(STATUS_LIMIT, schema_build(&file, deep, COUNT_OF(deep), &err));
    struct schema_element short_of[] = {group("root", REQUIRED, 2, NOT_CONVERTED),
                                        number("x", REQUIRED)};
    assert_status(STATUS_CORRUPT, schema_build(&file, short_of, 2, &err));
    short_of[0].child_count = 1;
    short_of[1].repetition = 3;
    assert_status(STATUS_CORRUPT, schema_build(&file, short_of, 2, &err));
    short_of[1] = group("g", OPTIONAL, 0, NOT_CONVERTED);
    assert_status(STATUS_UNSUPPORTED, schema_build(&file, short_of, 2, &err));
    short_of[1] = group("g", OPTIONAL, INT32_MAX, NOT_CONVERTED);
    assert_status(STATUS_CORRUPT, schema_build(&file, short_of, 2, &err));
    arena_deinit(&file.arena);
}

/* ---- encodings ---- */

static void test_delta_vector(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {0x80, 0x01, 0x04, 0x08, 0x0e, 0x03, 0x02, 0, 0,
                                    0,    0xc0, 0x3f, 0,    0,    0,    0,    0, 0};
    static const int64_t wanted[] = {7, 5, 3, 1, 2, 3, 4, 5};
    int64_t got[8];
    int32_t narrow[8];
    struct cursor in = cursor_of(bytes, sizeof bytes);
    assert_true(decode_delta_i64(&in, got, 8));
    assert_memory_equal(got, wanted, sizeof wanted);
    in = cursor_of(bytes, sizeof bytes);
    assert_true(decode_delta_i32(&in, narrow, 8));
    assert_int_equal(narrow[7], 5);
    in = cursor_of(bytes, sizeof bytes);
    assert_false(decode_delta_i64(&in, got, 7)); /* another count than is said */
    in = cursor_of(bytes, 10);
    assert_false(decode_delta_i64(&in, got, 8));
}

/* BIT_PACKED of Encodings.md: 0..7 in three bits each. */
static void test_bit_packed_vector(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {0x05, 0x39, 0x77};
    uint8_t got[8];
    struct cursor in = cursor_of(bytes, sizeof bytes);
    assert_true(decode_bit_packed(&in, 3, got, 8));
    for (uint8_t i = 0; i < 8; i++)
        assert_int_equal(got[i], i);
    in = cursor_of(bytes, 2);
    assert_false(decode_bit_packed(&in, 3, got, 8));
}

static void test_runs_that_lie(void **state)
{
    (void)state;
    uint8_t got[64];
    uint32_t wide[64], most;
    static const uint8_t value_too_wide[] = {0x10, 0x04}; /* eight times 4, in two bits */
    static const uint8_t endless[] = {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x01};
    static const uint8_t empty_runs[] = {0x00, 0x01, 0x00, 0x01};
    struct cursor in = cursor_of(value_too_wide, sizeof value_too_wide);
    assert_false(decode_hybrid_u8(&in, 2, got, 8));
    in = cursor_of(endless, sizeof endless);
    assert_true(decode_hybrid_u8(&in, 1, got, 64));
    assert_int_equal(got[63], 1);
    in = cursor_of(empty_runs, sizeof empty_runs);
    assert_false(decode_hybrid_u32(&in, 1, wide, 8, &most));
    in = cursor_of(empty_runs, 0);
    assert_false(decode_hybrid_u32(&in, 1, wide, 1, &most));
    assert_true(decode_hybrid_u32(&in, 1, wide, 0, &most) || in.failed);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_files_are_read),
        cmocka_unit_test(test_every_truncation_is_answered),
        cmocka_unit_test(test_every_bit_flip_is_answered),
        cmocka_unit_test(test_checksums_see_every_flip),
        cmocka_unit_test(test_random_damage_is_answered),
        cmocka_unit_test(test_no_memory_is_answered),
        cmocka_unit_test(test_limits_hold),
        cmocka_unit_test(test_wide_files_take_linear_time),
        cmocka_unit_test(test_chunks_that_overlap),
        cmocka_unit_test(test_pages_of_no_values_are_not_expanded),
        cmocka_unit_test(test_what_pages_expand_to_is_bounded),
        cmocka_unit_test(test_dictionaries_come_first_and_once),
        cmocka_unit_test(test_dictionaries_that_are_not_wanted_are_not_expanded),
        cmocka_unit_test(test_names_that_are_not_all_there),
        cmocka_unit_test(test_lists_and_maps_of_old),
        cmocka_unit_test(test_schemas_that_lie),
        cmocka_unit_test(test_delta_vector),
        cmocka_unit_test(test_bit_packed_vector),
        cmocka_unit_test(test_runs_that_lie),
    };
    corpus = argc > 1 ? argv[1] : "test/fuzz/corpus/parquet";
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
