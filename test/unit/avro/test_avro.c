/* SPDX-License-Identifier: Apache-2.0 */
#include "../unit.h"
#include "format/avro/avro.h"

static const char schema[] =
    "{\"type\":\"record\",\"name\":\"row\",\"namespace\":\"a.b\",\"fields\":["
    "{\"name\":\"n\",\"type\":\"long\",\"field-id\":1},"
    "{\"name\":\"s\",\"type\":[\"null\",\"string\"],\"default\":null,\"field-id\":2},"
    "{\"name\":\"list\",\"type\":{\"type\":\"array\",\"element-id\":9,\"items\":\"int\"},\"field-"
    "id\":3},"
    "{\"name\":\"m\",\"type\":{\"type\":\"map\",\"key-id\":7,\"value-id\":8,\"values\":\"double\"},"
    "\"field-id\":4},"
    "{\"name\":\"f\",\"type\":{\"type\":\"fixed\",\"name\":\"f4\",\"size\":4},\"field-id\":5},"
    "{\"name\":\"again\",\"type\":[\"null\",\"f4\"],\"field-id\":6},"
    "{\"name\":\"e\",\"type\":{\"type\":\"enum\",\"name\":\"en\",\"symbols\":[\"X\",\"Y\"]}},"
    "{\"name\":\"b\",\"type\":\"boolean\"}]}";

static void put_row(struct buf *out, int64_t n)
{
    avro_put_long(out, n);
    if (n % 3 == 0) {
        avro_put_long(out, 0);
    } else {
        avro_put_long(out, 1);
        avro_put_text(out, "text");
    }
    avro_put_long(out, -2); /* a run with its size: two ints of one byte */
    avro_put_long(out, 2);
    avro_put_long(out, 5);
    avro_put_long(out, -6);
    avro_put_long(out, 1);
    avro_put_long(out, 7);
    avro_put_long(out, 0);
    avro_put_long(out, 1);
    avro_put_text(out, "key");
    double value = 2.5;
    buf_put(out, &value, sizeof value);
    avro_put_long(out, 0);
    buf_put(out, "abcd", 4);
    avro_put_long(out, 1);
    buf_put(out, "wxyz", 4);
    avro_put_long(out, 1);
    buf_put_byte(out, 1);
}

static void write_file(struct buf *file, enum avro_codec codec, int64_t rows)
{
    struct error err;
    struct avro_writer *writer;
    const uint8_t sync[16] = {1, 2, 3};
    const struct avro_pair metadata[] = {{"format-version", "2"}, {"x", "y"}};
    uint64_t bytes;
    assert_ok(
        avro_writer_create(sink_to_buf(file), schema, codec, sync, metadata, 2, &writer, &err));
    for (int64_t n = 0; n < rows; n++) {
        put_row(avro_writer_record(writer), n);
        assert_ok(avro_writer_record_end(writer, &err));
    }
    assert_ok(avro_writer_finish(writer, &bytes, &err));
    assert_int_equal(bytes, file->length);
    avro_writer_destroy(writer);
}

static void check_row(const struct avro_value *row, int64_t n)
{
    int64_t number;
    struct span bytes;
    assert_true(avro_get_long(row, 1, &number) && number == n);
    assert_int_equal(avro_get_bytes(row, 2, &bytes), n % 3 != 0);
    const struct avro_value *list = avro_get(row, 3), *map = avro_get(row, 4);
    assert_int_equal(list->count, 3);
    assert_int_equal(list->items[1].integer, -6);
    assert_int_equal(list->items[2].integer, 7);
    assert_int_equal(map->count, 2);
    assert_true(span_equal(map->items[0].bytes, span_of_text("key")));
    assert_true(map->items[1].real == 2.5);
    assert_int_equal(map->type->fields[1].field_id, 8);
    assert_true(avro_get_bytes(row, 5, &bytes) && span_equal(bytes, span_of_text("abcd")));
    assert_true(avro_get_bytes(row, 6, &bytes) && span_equal(bytes, span_of_text("wxyz")));
    assert_int_equal(avro_get_named(row, "e")->integer, 1);
    assert_int_equal(avro_get_named(row, "b")->integer, 1);
    assert_null(avro_get(row, 99));
}

static void test_round_trip(void **state)
{
    (void)state;
    struct error err;
    for (int codec = AVRO_NULL_CODEC; codec <= AVRO_DEFLATE; codec++) {
        struct buf file;
        struct avro_reader *reader;
        struct arena arena;
        struct span value;
        const struct avro_value *row;
        buf_init(&file, 0);
        arena_init(&arena, 0);
        write_file(&file, (enum avro_codec)codec, 5000); /* several blocks */
        assert_ok(avro_reader_create(span_of(file.data, file.length), NULL, &reader, &err));
        assert_true(avro_reader_metadata(reader, "avro.codec", &value));
        assert_true(span_equal(value, span_of_text(codec ? "deflate" : "null")));
        assert_true(avro_reader_metadata(reader, "x", &value) && value.data[0] == 'y');
        assert_false(avro_reader_metadata(reader, "none", &value));
        for (int64_t n = 0; n < 5000; n++) {
            arena_clear(&arena);
            assert_ok(avro_reader_next(reader, &arena, &row, &err));
            check_row(row, n);
        }
        assert_status(STATUS_NOT_FOUND, avro_reader_next(reader, &arena, &row, &err));
        avro_reader_destroy(reader);
        arena_deinit(&arena);
        buf_deinit(&file);
    }
}

/* Reads to the end; any status but a crash is an answer. */
static enum status read_all(struct span file, size_t *out_rows)
{
    struct error err;
    struct avro_reader *reader;
    struct arena arena;
    const struct avro_value *row;
    *out_rows = 0;
    struct avro_limits limits = avro_limits_default();
    limits.block_bytes_max = 1 << 20;
    enum status status = avro_reader_create(file, &limits, &reader, &err);
    if (status != STATUS_OK)
        return status;
    arena_init(&arena, (size_t)64 << 20);
    while ((status = avro_reader_next(reader, &arena, &row, &err)) == STATUS_OK)
        (*out_rows)++;
    arena_deinit(&arena);
    avro_reader_destroy(reader);
    return status;
}

static void test_damage(void **state)
{
    (void)state;
    for (int codec = AVRO_NULL_CODEC; codec <= AVRO_DEFLATE; codec++) {
        struct buf file;
        size_t rows;
        buf_init(&file, 0);
        write_file(&file, (enum avro_codec)codec, 20);
        for (size_t n = 0; n < file.length; n++) { /* cut */
            uint8_t *copy = mem_copy(file.data, n ? n : 1);
            enum status status = read_all(span_of(copy, n), &rows);
            assert_true(status == STATUS_INVALID || status == STATUS_CORRUPT ||
                        (status == STATUS_NOT_FOUND && rows == 0));
            mem_free(copy);
        }
        for (size_t n = 0; n < file.length; n++) { /* every byte, some bits */
            for (unsigned flip = 1; flip < 256; flip = flip * 5 + 3) {
                file.data[n] ^= (uint8_t)flip;
                read_all(span_of(file.data, file.length), &rows);
                file.data[n] ^= (uint8_t)flip;
            }
        }
        buf_deinit(&file);
    }
}

/* A file of one block with this schema and data. */
static void build(struct buf *file, const char *type, int64_t records, const void *data,
                  size_t bytes)
{
    buf_init(file, 0);
    buf_put(file, "Obj\x01", 4);
    avro_put_long(file, 1);
    avro_put_text(file, "avro.schema");
    avro_put_text(file, type);
    avro_put_long(file, 0);
    buf_put(file, "0123456789abcdef", 16);
    avro_put_long(file, records);
    avro_put_bytes(file, data, bytes);
    buf_put(file, "0123456789abcdef", 16);
}

static void test_hostile_schemas(void **state)
{
    (void)state;
    static const struct {
        const char *schema;
        int64_t records;
        const char *data;
        size_t bytes;
        enum status expected;
    } cases[] = {
        /* refers to itself without a way out */
        {"{\"type\":\"record\",\"name\":\"r\",\"fields\":[{\"name\":\"x\",\"type\":\"r\"}]}", 1,
         "a", 1, STATUS_CORRUPT},
        /* 2^62 nulls */
        {"{\"type\":\"array\",\"items\":\"null\"}", 1, "\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\0", 10,
         STATUS_CORRUPT},
        /* counts that overflow when negated */
        {"{\"type\":\"array\",\"items\":\"int\"}", 1,
         "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\0\0", 12, STATUS_CORRUPT},
        {"\"null\"", INT64_MAX, "", 0, STATUS_CORRUPT},
        {"\"int\"", -1, "a", 1, STATUS_CORRUPT},
        {"\"int\"", 1, "\xff\xff\xff\xff\xff\x01", 6, STATUS_CORRUPT}, /* too wide for int */
        {"\"string\"", 1, "\x03", 1, STATUS_CORRUPT},                  /* length -2 */
        {"\"boolean\"", 1, "\x02", 1, STATUS_CORRUPT},
        {"[\"null\",\"int\"]", 1, "\x04", 1, STATUS_CORRUPT},
        {"[]", 1, "a", 1, STATUS_INVALID},
        {"\"nope\"", 1, "a", 1, STATUS_INVALID},
        {"{\"type\":\"fixed\",\"name\":\"f\",\"size\":-1}", 1, "a", 1, STATUS_INVALID},
        {"{\"type\":\"record\",\"name\":\"r\"}", 1, "a", 1, STATUS_INVALID},
        {"{}", 1, "a", 1, STATUS_INVALID},
        {"7", 1, "a", 1, STATUS_INVALID},
        {"{\"type\":{\"type\":{\"type\":\"int\"}}}", 1, "\x02", 1,
         STATUS_NOT_FOUND}, /* read to the end */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct buf file;
        size_t rows;
        build(&file, cases[i].schema, cases[i].records, cases[i].data, cases[i].bytes);
        enum status status = read_all(span_of(file.data, file.length), &rows);
        if (status != cases[i].expected)
            fail_msg("case %zu: %s", i, status_name(status));
        buf_deinit(&file);
    }
}

/* Thirty records, each with two fields of the one before: 2^30 values without a byte. */
static void test_exponential_schema(void **state)
{
    (void)state;
    struct buf text, file;
    size_t rows;
    buf_init(&text, 0);
    buf_put_text(&text, "{\"type\":\"record\",\"name\":\"top\",\"fields\":["
                        "{\"name\":\"n\",\"type\":\"int\"},{\"name\":\"z\",\"type\":[\"null\"");
    for (int i = 0; i < 28; i++) {
        buf_format(&text, ",{\"type\":\"record\",\"name\":\"r%d\",\"fields\":[", i);
        for (int field = 0; field < 2; field++) {
            buf_format(&text, "%s{\"name\":\"f%d\",\"type\":", field ? "," : "", field);
            if (i)
                buf_format(&text, "\"r%d\"}", i - 1);
            else
                buf_put_text(&text, "\"null\"}");
        }
        buf_put_text(&text, "]}");
    }
    buf_put_text(&text, "]}]}");
    buf_put_byte(&text, 0);
    build(&file, (const char *)text.data, 1, "\x02\x38", 2);
    assert_int_equal(read_all(span_of(file.data, file.length), &rows), STATUS_CORRUPT);
    buf_deinit(&text);
    buf_deinit(&file);
}

/* What a source is asked for lies within the file, and no more than a window is held. */
struct counted {
    struct span bytes;
    size_t largest;
    int reads_left; /* until one fails; negative: never */
};

static enum status read_counted(void *context, uint64_t offset, size_t bytes, void *place,
                                struct error *err)
{
    struct counted *counted = context;
    if (counted->reads_left-- == 0)
        return error_set(err, STATUS_IO, "the disk is gone");
    assert_true(offset <= counted->bytes.length && bytes <= counted->bytes.length - offset);
    counted->largest = bytes > counted->largest ? bytes : counted->largest;
    memcpy(place, counted->bytes.data + offset, bytes);
    return STATUS_OK;
}

static void test_sources(void **state)
{
    (void)state;
    struct error err;
    struct buf file;
    struct arena arena;
    enum { ROWS = 50000 };
    buf_init(&file, 0);
    arena_init(&arena, 0);
    write_file(&file, AVRO_NULL_CODEC, ROWS);
    assert_true(file.length > 1 << 20);
    bool is_done = false;
    for (int reads = 0; !is_done; reads += 7) {
        struct counted counted = {span_of(file.data, file.length), 0, reads};
        struct byte_source source = {read_counted, &counted, file.length};
        struct avro_reader *reader = NULL;
        const struct avro_value *row;
        int64_t n = 0;
        enum status status = avro_reader_open(source, NULL, &reader, &err);
        for (; status == STATUS_OK; n++) {
            arena_clear(&arena);
            status = avro_reader_next(reader, &arena, &row, &err);
            if (status == STATUS_OK && (n < 10 || n % 1000 == 0))
                check_row(row, n);
        }
        is_done = status == STATUS_NOT_FOUND;
        assert_true(is_done ? n == ROWS + 1 : status == STATUS_IO);
        assert_true(counted.largest < 200 << 10);
        avro_reader_destroy(reader);
    }
    arena_deinit(&arena);
    buf_deinit(&file);
}

static void test_memory_failures(void **state)
{
    (void)state;
    struct error err;
    struct buf file;
    buf_init(&file, 0);
    write_file(&file, AVRO_DEFLATE, 3);
    bool is_done = false;
    for (int64_t n = 0; !is_done; n++) {
        struct avro_reader *reader = NULL;
        struct arena arena;
        const struct avro_value *row = NULL;
        arena_init(&arena, 0);
        alloc_fail_after(n);
        enum status status =
            avro_reader_create(span_of(file.data, file.length), NULL, &reader, &err);
        if (status == STATUS_OK)
            status = avro_reader_next(reader, &arena, &row, &err);
        alloc_fail_after(-1);
        is_done = status == STATUS_OK;
        assert_true(is_done || status == STATUS_NO_MEMORY);
        avro_reader_destroy(reader);
        arena_deinit(&arena);
    }
    buf_deinit(&file);
}

/* Fields in another order, by alias and by default, symbols in another one, promotions. */
static const char other_schema[] =
    "{\"type\":\"record\",\"name\":\"row\",\"fields\":["
    "{\"name\":\"e\",\"type\":{\"type\":\"enum\",\"name\":\"en\",\"symbols\":[\"Y\",\"X\"]}},"
    "{\"name\":\"number\",\"aliases\":[\"n\"],\"type\":\"double\"},"
    "{\"name\":\"new\",\"type\":{\"type\":\"array\",\"items\":\"int\"},\"default\":[3,4]},"
    "{\"name\":\"m\",\"type\":{\"type\":\"map\",\"values\":\"double\"}},"
    "{\"name\":\"list\",\"type\":{\"type\":\"array\",\"items\":[\"null\",\"long\"]}}]}";

static void test_resolution_memory_failures(void **state)
{
    (void)state;
    struct error err;
    struct buf file;
    buf_init(&file, 0);
    write_file(&file, AVRO_NULL_CODEC, 2);
    bool is_done = false;
    for (int64_t n = 0; !is_done; n++) {
        struct avro_reader *reader = NULL;
        struct arena arena;
        const struct avro_value *row = NULL;
        assert_ok(avro_reader_create(span_of(file.data, file.length), NULL, &reader, &err));
        arena_init(&arena, 0);
        alloc_fail_after(n);
        enum status status = avro_reader_resolve(reader, span_of_text(other_schema), &err);
        for (int i = 0; status == STATUS_OK && i < 2; i++)
            status = avro_reader_next(reader, &arena, &row, &err);
        alloc_fail_after(-1);
        is_done = status == STATUS_OK;
        assert_true(is_done || status == STATUS_NO_MEMORY);
        if (is_done) {
            assert_int_equal(row->count, 5);
            assert_int_equal(row->items[0].integer, 0);
            assert_true(row->items[1].real == 1);
            assert_int_equal(row->items[2].items[1].integer, 4);
            assert_true(row->items[3].items[1].real == 2.5);
            assert_int_equal(row->items[4].items[1].integer, -6);
        }
        avro_reader_destroy(reader);
        arena_deinit(&arena);
    }
    buf_deinit(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_hostile_schemas),
        cmocka_unit_test(test_exponential_schema),
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_memory_failures),
        cmocka_unit_test(test_resolution_memory_failures),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
