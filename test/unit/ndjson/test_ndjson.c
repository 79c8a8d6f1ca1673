/* SPDX-License-Identifier: Apache-2.0 */
#include "../rows_text.h"
#include "format/ndjson/ndjson.h"

/* Schema and rows as text, or the message. */
static enum status read_text(struct span file, const struct ndjson_limits *limits, struct buf *out,
                             struct error *err)
{
    struct ndjson_reader *reader;
    struct arrow_batch batch;
    enum status status = ndjson_reader_create(byte_source_of_span(&file), limits, &reader, err);
    if (status != STATUS_OK)
        return status;
    const struct arrow_schema *schema = ndjson_reader_schema(reader);
    put_fields(out, schema->fields, schema->field_count);
    buf_put_text(out, " | ");
    while ((status = ndjson_reader_next(reader, &batch, err)) == STATUS_OK) {
        assert_true(batch.schema == schema);
        put_batch(out, &batch);
        arrow_batch_deinit(&batch);
    }
    ndjson_reader_destroy(reader);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static void check_with(const char *file, const struct ndjson_limits *limits, const char *expected)
{
    struct error err;
    struct buf out = {0};
    assert_ok(read_text(span_of_text(file), limits, &out, &err));
    buf_put_byte(&out, '\0');
    assert_string_equal((const char *)out.data, expected);
    buf_deinit(&out);
}

static void check(const char *file, const char *expected)
{
    check_with(file, NULL, expected);
}

static void check_fails(const char *file, const struct ndjson_limits *limits, enum status expected,
                        const char *message)
{
    struct error err;
    struct buf out = {0};
    assert_status(expected, read_text(span_of_text(file), limits, &out, &err));
    assert_string_equal(err.message, message);
    buf_deinit(&out);
}

static void test_types(void **state)
{
    (void)state;
    check("{\"b\":true,\"i\":-5,\"d\":1.5,\"s\":\"t\",\"n\":null}\n"
          "{\"b\":false,\"i\":9223372036854775807,\"d\":2e3,\"s\":\"\",\"n\":null}",
          "b bool, i int64, d double, s utf8, n null | "
          "true, -5, 1.5, 't', null; false, 9223372036854775807, 2000, '', null; ");
    check("{\"a\":[1,2],\"o\":{\"x\":1,\"y\":{\"z\":\"q\"}}}\n{\"a\":[],\"o\":{\"y\":{}}}\n"
          "{\"a\":null,\"o\":null}\n{}\n{\"a\":[null,3]}",
          "a list{element int64}, o struct{x int64, y struct{z utf8}} | "
          "[1, 2], {1, {'q'}}; [], {null, {null}}; null, null; null, null; [null, 3], null; ");
    check("{\"l\":[[1],[2.5]],\"p\":[{\"a\":1},{\"b\":[]}]}",
          "l list{element list{element double}}, "
          "p list{element struct{a int64, b list{element null}}} | "
          "[[1], [2.5]], [{1, null}, {null, []}]; ");
    check("", " | ");
    check("\n  \n\r\n", " | ");
    check("{}\n{}", " | ; ; ");
}

static void test_numbers(void **state)
{
    (void)state;
    check("{\"a\":1}\n{\"a\":0.5}\n{\"a\":9007199254740992}",
          "a double | 1; 0.5; 9007199254740992; ");
    check("{\"a\":1}\n{\"a\":0.5}\n{\"a\":9007199254740993}",
          "a utf8 | '1'; '0.5'; '9007199254740993'; ");
    check("{\"a\":0}\n{\"a\":18446744073709551615}\n{}",
          "a uint64 | 0; 18446744073709551615; null; ");
    check("{\"a\":[18446744073709551615,9007199254740993]}",
          "a list{element uint64} | [18446744073709551615, 9007199254740993]; ");
    check("{\"a\":-1}\n{\"a\":18446744073709551615}", "a utf8 | '-1'; '18446744073709551615'; ");
    check("{\"a\":18446744073709551616}", "a double | 1.8446744073709552e+19; ");
    check("{\"a\":18446744073709551617}", "a utf8 | '18446744073709551617'; ");
    check("{\"a\":3.14159265358979323846}\n{\"a\":1}", "a utf8 | '3.14159265358979323846'; '1'; ");
    check("{\"a\":9223372036854775808}\n{\"a\":-9223372036854775808}",
          "a double | 9.223372036854776e+18; -9.223372036854776e+18; ");
    check("{\"a\":-9223372036854775808}", "a int64 | -9223372036854775808; ");
    check("{\"a\":1.0}\n{\"a\":1E2}", "a double | 1; 100; ");
    check("{\"a\":1e999}\n{\"a\":5}", "a utf8 | '1e999'; '5'; "); /* no double holds it */
    char longest[700], expected[700];
    memset(longest, 0, sizeof longest);
    memcpy(longest, "{\"a\":1", 6);
    memset(longest + 6, '0', 400);
    memcpy(longest + 406, "}", 2);
    snprintf(expected, sizeof expected, "a utf8 | '%.401s'; ", longest + 5);
    check(longest, expected);
}

static void test_named_numbers(void **state)
{
    (void)state;
    check("{\"a\":1.5}\n{\"a\":\"NaN\"}\n{\"a\":\"Infinity\"}\n{\"a\":\"-Infinity\"}\n{\"a\":null}",
          "a double | 1.5; NaN; Infinity; -Infinity; null; ");
    check("{\"a\":[{\"b\":\"NaN\"},{\"b\":2}]}",
          "a list{element struct{b double}} | [{NaN}, {2}]; ");
    check("{\"a\":\"NaN\"}\n{\"a\":\"Infinity\"}", "a utf8 | 'NaN'; 'Infinity'; ");
    check("{\"a\":1}\n{\"a\":\"NaN\"}\n{\"a\":\"x\"}", "a utf8 | '1'; 'NaN'; 'x'; ");
    check("{\"a\":9007199254740993}\n{\"a\":\"NaN\"}", "a utf8 | '9007199254740993'; 'NaN'; ");
    check("{\"a\":\"NaN\"}\n{\"a\":[1]}", "a utf8 | 'NaN'; '[1]'; ");
}

static void test_mixtures_are_text(void **state)
{
    (void)state;
    check(
        "{\"a\":1}\n{\"a\":\"x\"}\n{\"a\":null}\n{\"a\": {\"k\": [1, \"\\u00e9\"]} }\n{\"a\":true}",
        "a utf8 | '1'; 'x'; null; '{\"k\": [1, \"\\u00e9\"]}'; 'true'; ");
    check("{\"a\":{\"k\":1}}\n{\"a\":[1]}", "a utf8 | '{\"k\":1}'; '[1]'; ");
    check("{\"a\":[1,\"x\",[2]]}", "a list{element utf8} | ['1', 'x', '[2]']; ");
    check("{\"a\":true}\n{\"a\":0}", "a utf8 | 'true'; '0'; ");
    check("{\"a\":{}}\n{\"a\":null}\n{\"b\":[{}]}",
          "a utf8, b list{element utf8} | '{}', null; null, null; null, ['{}']; ");
}

static void test_lines(void **state)
{
    (void)state;
    check("\xef\xbb\xbf{\"a\":1}\r\n\r\n \t\n{\"a\":2}\r", "a int64 | 1; 2; ");
    check("{\"a\":\"\\\"\\\\\\n\\ud83d\\ude00\"}", "a utf8 | '\"\\\n\xf0\x9f\x98\x80'; ");
    check("{\"\":1,\"b c\":2}", " int64, b c int64 | 1, 2; ");
}

static void test_last_of_duplicates_wins(void **state)
{
    (void)state;
    check("{\"a\":1,\"b\":5,\"a\":2}\n{\"a\":3,\"a\":null}\n{\"a\":null,\"a\":null,\"a\":4}",
          "a int64, b int64 | 2, 5; null, null; 4, null; ");
    check("{\"a\":[1,2],\"a\":[3]}\n{\"a\":[4]}", "a list{element int64} | [3]; [4]; ");
    check("{\"o\":{\"x\":\"long\"},\"o\":{\"y\":[\"q\"],\"y\":[]}}\n{\"o\":{\"x\":\"z\"}}",
          "o struct{x utf8, y list{element utf8}} | {null, []}; {'z', null}; ");
}

static void test_order_and_many_columns(void **state)
{
    (void)state;
    struct error err;
    struct buf file = {0}, out = {0};
    for (int row = 0; row < 3; row++) {
        buf_put_text(&file, "{");
        for (int i = 0; i < 1000; i++) /* in another order each time */
            buf_format(&file, "%s\"c%d\":%d", i ? "," : "", (i * (row * 2 + 1)) % 1000, row);
        buf_put_text(&file, "}\n");
    }
    assert_ok(read_text(span_of(file.data, file.length), NULL, &out, &err));
    assert_memory_equal(out.data, "c0 int64, c1 int64, c2 int64, ", 30);
    buf_deinit(&file);
    buf_deinit(&out);
}

static void test_any_block_size(void **state)
{
    (void)state;
    const char *file = "\xef\xbb\xbf{\"a\":1,\"s\":\"one\"}\r\n\n{\"a\":22,\"s\":\"two \\n\"}\n"
                       "{\"s\":\"three and a longer line than all the others\"}";
    struct ndjson_limits limits = ndjson_limits_default();
    for (size_t bytes = 1; bytes < 80; bytes++) {
        limits.block_bytes = bytes;
        check_with(file, &limits,
                   "a int64, s utf8 | 1, 'one'; 22, 'two \n'; "
                   "null, 'three and a longer line than all the others'; ");
    }
}

static size_t count_batches(const char *file, const struct ndjson_limits *limits)
{
    struct error err;
    struct ndjson_reader *reader;
    struct arrow_batch batch;
    struct span bytes = span_of_text(file);
    size_t count = 0;
    assert_ok(ndjson_reader_create(byte_source_of_span(&bytes), limits, &reader, &err));
    for (; ndjson_reader_next(reader, &batch, &err) == STATUS_OK; count++)
        arrow_batch_deinit(&batch);
    ndjson_reader_destroy(reader);
    return count;
}

static void test_batches(void **state)
{
    (void)state;
    const char *file = "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n{\"a\":4}\n{\"a\":5}\n";
    struct ndjson_limits limits = ndjson_limits_default();
    assert_int_equal(count_batches(file, &limits), 1);
    limits.batch_rows = 2;
    assert_int_equal(count_batches(file, &limits), 3);
    check_with(file, &limits, "a int64 | 1; 2; 3; 4; 5; ");
    limits = ndjson_limits_default();
    limits.batch_bytes = 1;
    assert_int_equal(count_batches(file, &limits), 5);
    limits = ndjson_limits_default();
    limits.batch_values = 4;
    assert_int_equal(count_batches(file, &limits), 2);
}

static void test_limits(void **state)
{
    (void)state;
    struct ndjson_limits limits = ndjson_limits_default();
    limits.line_bytes_max = 10;
    check_fails("{\"a\":1}\n{\"a\":12345}", &limits, STATUS_LIMIT,
                "ndjson: line 2: more than 10 bytes");
    limits = ndjson_limits_default();
    limits.column_count_max = 3;
    check_with("{\"a\":[1],\"b\":2}", &limits, "a list{element int64}, b int64 | [1], 2; ");
    check_fails("{\"a\":[1]}\n{\"b\":{\"c\":2}}", &limits, STATUS_LIMIT,
                "ndjson: line 2: column b.c: more columns than 3");
    limits = ndjson_limits_default();
    limits.depth_max = 3;
    check_with("{\"a\":{\"b\":{\"c\":1}}}", &limits, "a struct{b struct{c int64}} | {{1}}; ");
    check_fails("{\"a\":{\"b\":[{\"c\":1}]}}", &limits, STATUS_LIMIT,
                "ndjson: line 1: column a.b[].c: columns are nested deeper than 3");
    check_fails("{\"a\":[[[1]]]}", &limits, STATUS_LIMIT,
                "ndjson: line 1: column a[][][]: columns are nested deeper than 3");
    limits.name_bytes_max = 4;
    check_fails("{\"long!\":1}", &limits, STATUS_LIMIT,
                "ndjson: line 1: column long!: its name has more bytes than 4");
    limits = ndjson_limits_default();
    limits.line_values_max = 5;
    check_fails("{\"a\":[1,2]}\n{\"a\":[1,2,3,4,5]}", &limits, STATUS_LIMIT,
                "ndjson: line 2: more than 5 values");
}

static void test_deep_text(void **state)
{
    (void)state;
    struct error err;
    struct buf file = {0}, out = {0};
    buf_put_text(&file, "{\"a\":1}\n{\"a\":"); /* text from the second line on: not too deep */
    for (int i = 0; i < 50; i++)
        buf_put_text(&file, "[");
    for (int i = 0; i < 50; i++)
        buf_put_text(&file, "]");
    buf_put_text(&file, "}");
    assert_ok(read_text(span_of(file.data, file.length), NULL, &out, &err));
    buf_clear(&out);
    buf_clear(&file);
    buf_put_text(&file, "{\"a\":"); /* and here it is */
    for (int i = 0; i < 50; i++)
        buf_put_text(&file, "[");
    assert_status(STATUS_LIMIT, read_text(span_of(file.data, file.length), NULL, &out, &err));
    buf_deinit(&file);
    buf_deinit(&out);
}

static void test_faults_name_the_line(void **state)
{
    (void)state;
    check_fails("{\"a\":1}\n\n[1]\n", NULL, STATUS_INVALID,
                "ndjson: line 3: the line is no JSON object");
    check_fails("{\"a\":1}\n{\"a\":x}\n", NULL, STATUS_INVALID,
                "ndjson: line 2: JSON at byte 5: a value is expected here");
    check_fails("{\"a\":1} {}\n", NULL, STATUS_INVALID,
                "ndjson: line 1: JSON at byte 8: something follows the document");
    check_fails("{\"a\":1", NULL, STATUS_INVALID,
                "ndjson: line 1: JSON at byte 6: the document ends too early");
    check_fails("{\"a\":\"\xff\"}", NULL, STATUS_INVALID,
                "ndjson: line 1: JSON at byte 5: string is not valid UTF-8");
    check_fails("{\"a\\u0000\":1}", NULL, STATUS_INVALID,
                "ndjson: line 1: a member's name with a NUL in it");
}

/* A source that answers something else when it is read again. */
struct changing {
    const char *first, *second;
    size_t starts;
};

static enum status read_changing(void *context, uint64_t offset, size_t bytes, void *place,
                                 struct error *err)
{
    struct changing *changing = context;
    (void)err;
    changing->starts += offset == 0 && bytes > 3; /* three: the byte order mark is looked for */
    memcpy(place, (changing->starts > 1 ? changing->second : changing->first) + offset, bytes);
    return STATUS_OK;
}

static void test_source_that_changes(void **state)
{
    (void)state;
    static const char *const others[] = {"{\"a\":1.}",   "{\"a\":[]}", "{\"a\":{}}", "{\"b\":12}",
                                         "{\"a\":\"\"}", "[\"a\",12]", "{\"a\":.5}", "{\"a\":1.5}"};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        struct error err;
        struct ndjson_reader *reader;
        struct arrow_batch batch;
        struct changing changing = {.first = "{\"a\":12}", .second = others[i]};
        struct byte_source source = {
            .read = read_changing, .context = &changing, .file_bytes = strlen(changing.first)};
        assert_ok(ndjson_reader_create(source, NULL, &reader, &err));
        assert_status(STATUS_INVALID, ndjson_reader_next(reader, &batch, &err));
        ndjson_reader_destroy(reader);
    }
}

static const char sample[] =
    "{\"a\":1,\"b\":\"x\\u00e9\",\"c\":[1.5,null],\"d\":{\"e\":true,\"f\":[{\"g\":\"h\"}]}}\n"
    "{\"a\":-20,\"c\":[],\"d\":null,\"a\":3}\r\n"
    "{\"b\":7,\"d\":{\"f\":[]}}\n";

static void test_damage(void **state)
{
    (void)state;
    struct error err;
    size_t length = sizeof sample - 1;
    for (size_t n = 0; n <= length; n++) { /* cut */
        struct buf out = {0};
        uint8_t *copy = mem_copy(sample, n ? n : 1);
        enum status status = read_text(span_of(copy, n), NULL, &out, &err);
        assert_true(status == STATUS_OK || status == STATUS_INVALID);
        mem_free(copy);
        buf_deinit(&out);
    }
    for (size_t bit = 0; bit < length * 8; bit++) {
        struct buf out = {0};
        uint8_t *copy = mem_copy(sample, length);
        copy[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        enum status status = read_text(span_of(copy, length), NULL, &out, &err);
        assert_true(status == STATUS_OK || status == STATUS_INVALID);
        mem_free(copy);
        buf_deinit(&out);
    }
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    struct error err;
    enum status status;
    int64_t n = 0;
    do {
        struct ndjson_reader *reader = NULL;
        struct arrow_batch batch;
        struct span file = span_of(sample, sizeof sample - 1);
        alloc_fail_after(n++);
        status = ndjson_reader_create(byte_source_of_span(&file), NULL, &reader, &err);
        if (status == STATUS_OK)
            status = ndjson_reader_next(reader, &batch, &err);
        alloc_fail_after(-1);
        assert_true(status == STATUS_OK || status == STATUS_NO_MEMORY ||
                    status == STATUS_LIMIT); /* of a builder's offsets, which have one */
        if (status == STATUS_OK)
            arrow_batch_deinit(&batch);
        ndjson_reader_destroy(reader);
    } while (status != STATUS_OK);
    assert_true(n > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_named_numbers),
        cmocka_unit_test(test_mixtures_are_text),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_last_of_duplicates_wins),
        cmocka_unit_test(test_order_and_many_columns),
        cmocka_unit_test(test_any_block_size),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_deep_text),
        cmocka_unit_test(test_faults_name_the_line),
        cmocka_unit_test(test_source_that_changes),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_memory_runs_out),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
