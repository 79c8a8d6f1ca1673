/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "../unit.h"
#include "format/json/json.h"

static enum status read_all(const char *text, size_t bytes, bool keep_bad, struct error *err)
{
    struct json_reader reader;
    enum json_event event;
    json_reader_init(&reader, text, bytes);
    reader.keep_bad_utf8 = keep_bad;
    enum status status;
    do
        status = json_reader_next(&reader, &event, err);
    while (status == STATUS_OK && event != JSON_EVENT_END);
    json_reader_deinit(&reader);
    return status;
}

static void test_grammar(void **state)
{
    (void)state;
    struct error err;
    static const char *const good[] = {
        "0",
        "-0",
        "1.5e+10",
        "\"\"",
        " [ ] ",
        "{}",
        "[1,2,{\"a\":[null,true,false]}]",
        "1E5",
        "\"\\u0041\\n\\\"\\/\\ud83d\\ude00\"",
        "{\"a\":1,\"a\":2}",
        "\t\r\n1\n",
        "\"\x7f\"",
    };
    static const char *const bad[] = {
        "",
        " ",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "+1",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "{\"a\" 1}",
        "[1 2]",
        "nul",
        "truex",
        "1 2",
        "\"\x01\"",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"abc",
        "\"\\",
        "[",
        "{\"a\":",
        "]",
        "\"\\ud800\"",
        "\"\\udc00\\ud800\"",
        "'a'",
        "NaN",
        "\"\xff\"",
        "\"\xc0\x80\"",
        "[}",
        "{\"a\"}",
        ("\xef\xbb\xbf"
         "1"),
        "/**/1",
        "\"a\nb\"",
        "0x1",
        "--1",
        "1e+",
        "[,1]",
        "{,}",
    };
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        if (read_all(good[i], strlen(good[i]), false, &err) != STATUS_OK)
            fail_msg("%s: %s", good[i], err.message);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        if (read_all(bad[i], strlen(bad[i]), false, &err) != STATUS_INVALID)
            fail_msg("accepted: %s", bad[i]);
    }
}

static void test_every_prefix_fails(void **state)
{
    (void)state;
    struct error err;
    static const char text[] = "{\"a\":[1.5e3,\"x\\u00e9\\n\"],\"b\":{\"c\":null,\"d\":true}}";
    for (size_t n = 0; n + 1 < sizeof text; n++) {
        char *copy = mem_copy(text, n ? n : 1); /* exact memory, so that ASan sees a read past it */
        assert_int_equal(read_all(copy, n, false, &err), STATUS_INVALID);
        mem_free(copy);
    }
    assert_ok(read_all(text, sizeof text - 1, false, &err));
}

static void test_depth(void **state)
{
    (void)state;
    struct error err;
    char text[2 * JSON_DEPTH_MAX + 2];
    memset(text, '[', JSON_DEPTH_MAX);
    memset(text + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
    assert_ok(read_all(text, sizeof text - 2, false, &err));
    memset(text, '[', JSON_DEPTH_MAX + 1);
    memset(text + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
    assert_status(STATUS_LIMIT, read_all(text, sizeof text, false, &err));
}

/* TA4: the caller that wants to keep bad bytes sees them, marked. */
static void test_bad_utf8_kept(void **state)
{
    (void)state;
    struct error err;
    struct json_reader reader;
    enum json_event event;
    static const char text[] = "[\"before-\xff\xfe-after\",\"\\ud800x\",\"fine\"]";
    json_reader_init(&reader, text, sizeof text - 1);
    reader.keep_bad_utf8 = true;
    assert_ok(json_reader_next(&reader, &event, &err));
    assert_ok(json_reader_next(&reader, &event, &err));
    assert_true(reader.text_is_bad);
    assert_true(span_equal(reader.text, span_of_text("before-\xff\xfe-after")));
    assert_ok(json_reader_next(&reader, &event, &err));
    assert_true(reader.text_is_bad);
    assert_true(span_equal(reader.text, span_of_text("\xed\xa0\x80x")));
    assert_ok(json_reader_next(&reader, &event, &err));
    assert_false(reader.text_is_bad);
    json_reader_deinit(&reader);
}

static void test_skip_and_slices(void **state)
{
    (void)state;
    struct error err;
    struct json_reader reader;
    enum json_event event;
    static const char text[] = "{\"a\": {\"b\":[1,[2]], \"c\":{}} , \"d\":7}";
    json_reader_init(&reader, text, sizeof text - 1);
    assert_ok(json_reader_next(&reader, &event, &err));
    assert_ok(json_reader_next(&reader, &event, &err));
    assert_int_equal(event, JSON_EVENT_KEY);
    assert_ok(json_reader_next(&reader, &event, &err));
    size_t start = reader.token_offset;
    assert_ok(json_reader_skip(&reader, event, &err));
    assert_memory_equal(text + start, "{\"b\":[1,[2]], \"c\":{}}", 21);
    assert_int_equal(json_reader_offset(&reader), start + 21);
    assert_ok(json_reader_next(&reader, &event, &err));
    assert_int_equal(event, JSON_EVENT_KEY);
    assert_ok(json_reader_skip(&reader, event, &err));
    assert_ok(json_reader_next(&reader, &event, &err));
    assert_int_equal(event, JSON_EVENT_OBJECT_END);
    assert_ok(json_reader_next(&reader, &event, &err));
    assert_int_equal(event, JSON_EVENT_END);
    json_reader_deinit(&reader);
}

static void test_numbers(void **state)
{
    (void)state;
    int64_t i;
    uint64_t u;
    double d;
#define N(text) span_of_text(text)
    assert_true(json_number_to_i64(N("646586703926004764"), &i) && i == 646586703926004764);
    assert_true(json_number_to_i64(N("-9223372036854775808"), &i) && i == INT64_MIN);
    assert_false(json_number_to_i64(N("-9223372036854775809"), &i));
    assert_false(json_number_to_i64(N("9223372036854775808"), &i));
    assert_true(json_number_to_u64(N("18446744073709551615"), &u) && u == UINT64_MAX);
    assert_false(json_number_to_u64(N("18446744073709551616"), &u));
    assert_false(json_number_to_u64(N("-1"), &u));
    assert_true(json_number_to_u64(N("-0"), &u) && u == 0);
    assert_true(json_number_to_i64(N("1.20e1"), &i) && i == 12);
    assert_true(json_number_to_i64(N("1.0"), &i) && i == 1);
    assert_true(json_number_to_i64(N("1200e-2"), &i) && i == 12);
    assert_true(json_number_to_i64(N("100200"), &i) && i == 100200);
    assert_true(json_number_to_i64(N("0.00"), &i) && i == 0);
    assert_true(json_number_to_i64(N("0e999999999999"), &i) && i == 0);
    assert_false(json_number_to_i64(N("1e999999999999"), &i));
    assert_false(json_number_to_i64(N("1.5"), &i));
    assert_false(json_number_to_i64(N("12e-3"), &i));
    assert_true(json_number_to_double(N("0.1"), &d) && d == 0.1);
    assert_true(json_number_to_double(N("-0"), &d) && d == 0 && signbit(d));
    assert_false(json_number_to_double(N("1e400"), &d));
    assert_true(
        json_number_to_double(
            N("1.00000000000000011102230246251565404236316680908203125000000000000000000001"),
            &d) &&
        d > 1);
#undef N
}

static void test_writer(void **state)
{
    (void)state;
    struct error err;
    struct buf out;
    struct json_writer writer;
    buf_init(&out, 0);
    json_writer_init(&writer, &out);
    json_write_object_begin(&writer);
    json_write_key(&writer, "a\"b");
    json_write_array_begin(&writer);
    json_write_i64(&writer, INT64_MIN);
    json_write_u64(&writer, UINT64_MAX);
    json_write_double(&writer, 0.1);
    json_write_double(&writer, -0.0);
    json_write_double(&writer, (double)NAN);
    json_write_double(&writer, (double)-INFINITY);
    json_write_bool(&writer, true);
    json_write_null(&writer);
    json_write_array_end(&writer);
    json_write_key(&writer, "s");
    json_write_string(&writer, "\x01\n\\\xff\xc3\xa9", 6);
    json_write_key(&writer, "o");
    json_write_object_begin(&writer);
    json_write_object_end(&writer);
    json_write_object_end(&writer);
    assert_ok(buf_status(&out, "test", &err));
    buf_put_byte(&out, 0);
    assert_string_equal(
        (char *)out.data,
        "{\"a\\\"b\":[-9223372036854775808,18446744073709551615,0.1,-0,\"NaN\","
        "\"-Infinity\",true,null],\"s\":\"\\u0001\\n\\\\\xef\xbf\xbd\xc3\xa9\",\"o\":{}}");
    buf_clear(&out);
    json_writer_init(&writer, &out);
    for (int i = 0; i <= JSON_DEPTH_MAX; i++)
        json_write_array_begin(&writer);
    assert_true(out.failed);
    buf_deinit(&out);
}

static void test_tree_keeps_and_edits(void **state)
{
    (void)state;
    struct error err;
    struct arena arena;
    struct buf out;
    struct json_value *tree;
    static const char text[] =
        "{\"z\":1.50,\"unknown\":{\"x\":[1e2,\"\\u0000\"]},\"a\":[1,2,3],\"n\":null}";
    arena_init(&arena, 0);
    buf_init(&out, 0);
    assert_ok(json_parse(text, sizeof text - 1, &arena, &tree, &err));
    assert_ok(json_serialize(tree, &out, &err));
    assert_int_equal(out.length, sizeof text - 1);
    assert_memory_equal(out.data, text, out.length);
    struct json_value *copy = json_copy(&arena, tree);
    assert_non_null(copy);
    assert_true(json_equal(copy, tree));

    assert_true(json_set(&arena, tree, "z", json_new_text(&arena, "first")));
    assert_true(json_set(&arena, tree, "new", json_new_i64(&arena, -7)));
    assert_true(json_remove(tree, "n"));
    assert_false(json_remove(tree, "n"));
    struct json_value *list = json_get(tree, "a");
    json_remove_first(list, 2);
    assert_true(json_append(list, json_new_bool(&arena, true)));
    assert_false(json_equal(copy, tree));
    buf_clear(&out);
    assert_ok(json_serialize(tree, &out, &err));
    buf_put_byte(&out, 0);
    assert_string_equal((char *)out.data, "{\"z\":\"first\",\"unknown\":{\"x\":[1e2,\"\\u0000\"]},"
                                          "\"a\":[3,true],\"new\":-7}");
    int64_t number;
    assert_true(json_get_i64(tree, "new", &number) && number == -7);
    assert_false(json_get_i64(tree, "z", &number));
    assert_null(json_get_text(json_at(json_get(json_get(tree, "unknown"), "x"), 1), "k"));
    assert_false(json_set(&arena, tree, "k", NULL));
    while (json_get(tree, "a")->count)
        json_remove_first(json_get(tree, "a"), 1);
    assert_true(json_append(json_get(tree, "a"), json_new_null(&arena)));
    buf_deinit(&out);
    arena_deinit(&arena);
}

static void test_memory_failures(void **state)
{
    (void)state;
    struct error err;
    static const char text[] = "{\"a\":[\"\\n\",1,{\"b\":\"c\"}]}";
    for (int64_t n = 0;; n++) {
        struct arena arena;
        struct json_value *tree = NULL;
        arena_init(&arena, 0);
        alloc_fail_after(n);
        enum status status = json_parse(text, sizeof text - 1, &arena, &tree, &err);
        alloc_fail_after(-1);
        arena_deinit(&arena);
        if (status == STATUS_OK)
            break;
        assert_int_equal(status, STATUS_NO_MEMORY);
        assert_null(tree);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grammar),         cmocka_unit_test(test_every_prefix_fails),
        cmocka_unit_test(test_depth),           cmocka_unit_test(test_bad_utf8_kept),
        cmocka_unit_test(test_skip_and_slices), cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_writer),          cmocka_unit_test(test_tree_keeps_and_edits),
        cmocka_unit_test(test_memory_failures),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
