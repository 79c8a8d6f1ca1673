/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "test_iceberg.h"

static struct iceberg_value integer(enum iceberg_type type, int64_t value)
{
    return (struct iceberg_value){.type = type, .integer = value};
}

static struct iceberg_value bytes(enum iceberg_type type, const char *data, size_t length)
{
    return (struct iceberg_value){.type = type, .bytes = span_of(data, length)};
}

/* Specification, Appendix B; date as the reference implementation does it. */
void test_hash_vectors(void **state)
{
    (void)state;
    const struct {
        struct iceberg_value value;
        int32_t hash;
    } cases[] = {
        {integer(ICEBERG_INT, 34), 2017239379},
        {integer(ICEBERG_LONG, 34), 2017239379},
        {integer(ICEBERG_DATE, 17486), -653330422},
        {integer(ICEBERG_TIMESTAMP, INT64_C(1510871468000000)), -2047944441},
        {integer(ICEBERG_TIMESTAMPTZ, INT64_C(1510871468000001)), -1207196810},
        {bytes(ICEBERG_STRING, "iceberg", 7), 1210000089},
        {bytes(ICEBERG_BINARY, "\x00\x01\x02\x03", 4), -188683207},
        {bytes(ICEBERG_UUID, "\xf7\x9c\x3e\x09\x67\x7c\x4b\xbd\xa4\x79\x3f\x34\x9c\xb7\x85\xe7",
               16),
         1488055340},
        {bytes(ICEBERG_DECIMAL, "\x05\x8c", 2), -500754589},         /* 14.20 */
        {bytes(ICEBERG_DECIMAL, "\x00\x00\x05\x8c", 4), -500754589}, /* as fixed: not minimal */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal((int32_t)iceberg_hash(&cases[i].value), cases[i].hash);
}

static int64_t apply(const char *text, struct iceberg_value value)
{
    struct error err;
    struct arena arena;
    struct iceberg_value out = {0};
    arena_init(&arena, 0);
    assert_ok(iceberg_transform_apply(iceberg_transform_parse(text), &value, &arena, &out, &err));
    arena_deinit(&arena);
    return out.integer;
}

void test_time_transforms(void **state)
{
    (void)state;
    static const struct {
        int64_t micros, year, month, day, hour;
    } cases[] = {
        {0, 0, 0, 0, 0},
        {-1, -1, -1, -1, -1},
        {INT64_C(1510871468000000), 47, 574, 17486, 419686}, /* 2017-11-16T22:31:08 */
        {INT64_C(951782399999999), 30, 361, 11015, 264383}, /* 2000-02-28 at its last microsecond */
        {INT64_C(951868799999999), 30, 361, 11016, 264407}, /* 2000-02-29 */
        {INT64_C(951868800000000), 30, 362, 11017, 264408}, /* 2000-03-01 */
        {INT64_C(-86400000000), -1, -1, -1, -24},
        {INT64_C(-62135596800000000), -1969, -23628, -719162, -17259888}, /* year 1 */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct iceberg_value time = integer(ICEBERG_TIMESTAMPTZ, cases[i].micros);
        struct iceberg_value date = integer(ICEBERG_DATE, cases[i].day);
        assert_int_equal(apply("year", time), cases[i].year);
        assert_int_equal(apply("month", time), cases[i].month);
        assert_int_equal(apply("day", time), cases[i].day);
        assert_int_equal(apply("hour", time), cases[i].hour);
        assert_int_equal(apply("year", date), cases[i].year);
        assert_int_equal(apply("month", date), cases[i].month);
    }
    iceberg_transform_micros(ICEBERG_YEAR, INT64_MIN);
    iceberg_transform_micros(ICEBERG_MONTH, INT64_MAX);
    assert_int_equal(apply("bucket[16]", bytes(ICEBERG_STRING, "iceberg", 7)), 1210000089 % 16);
    assert_int_equal(apply("bucket[100]", bytes(ICEBERG_BINARY, "\x00\x01\x02\x03", 4)),
                     (-188683207 & 0x7fffffff) % 100);
}

static void assert_truncated(struct iceberg_value value, const char *text, const char *expected,
                             size_t length)
{
    struct error err;
    struct arena arena;
    struct iceberg_value out;
    arena_init(&arena, 0);
    assert_ok(iceberg_transform_apply(iceberg_transform_parse(text), &value, &arena, &out, &err));
    assert_int_equal(out.bytes.length, length);
    assert_memory_equal(out.bytes.data, expected, length);
    arena_deinit(&arena);
}

void test_truncate(void **state)
{
    (void)state;
    assert_int_equal(apply("truncate[10]", integer(ICEBERG_INT, 1)), 0);
    assert_int_equal(apply("truncate[10]", integer(ICEBERG_INT, -1)), -10);
    assert_int_equal(apply("truncate[10]", integer(ICEBERG_LONG, -11)), -20);
    assert_int_equal(apply("truncate[10]", integer(ICEBERG_LONG, INT64_MAX)), INT64_MAX - 7);
    apply("truncate[10]", integer(ICEBERG_LONG, INT64_MIN)); /* wraps, defined */
    apply("truncate[10]", integer(ICEBERG_INT, INT32_MIN));
    assert_truncated(bytes(ICEBERG_STRING, "iceberg", 7), "truncate[3]", "ice", 3);
    assert_truncated(bytes(ICEBERG_STRING, "i\xc3\xa9\xe2\x82\xac!", 7), "truncate[3]",
                     "i\xc3\xa9\xe2\x82\xac", 6);
    assert_truncated(bytes(ICEBERG_STRING, "ab", 2), "truncate[3]", "ab", 2);
    assert_truncated(bytes(ICEBERG_BINARY, "\x01\xff\x03", 3), "truncate[2]", "\x01\xff", 2);
    assert_truncated(bytes(ICEBERG_DECIMAL, "\x29\x81", 2), "truncate[50]", "\x29\x68",
                     2);                                                                /* 10625 */
    assert_truncated(bytes(ICEBERG_DECIMAL, "\xff", 1), "truncate[10]", "\xf6", 1);     /* -1 */
    assert_truncated(bytes(ICEBERG_DECIMAL, "\x80", 1), "truncate[10]", "\xff\x7e", 2); /* -128 */
    struct error err;
    struct iceberg_value out, odd = bytes(ICEBERG_DECIMAL, "", 0);
    assert_status(STATUS_INVALID, iceberg_transform_apply(iceberg_transform_parse("truncate[2]"),
                                                          &odd, NULL, &out, &err));
}

void test_transform_text_and_types(void **state)
{
    (void)state;
    static const char *const known[] = {"identity", "void", "year",       "month",
                                        "day",      "hour", "bucket[16]", "truncate[4]"};
    static const char *const unknown[] = {"bucket[0]",  "bucket[]",     "bucket[4",
                                          "bucket[4]x", "truncate[-1]", "zorder",
                                          "",           "days",         "bucket[99999999999]"};
    char text[32];
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        iceberg_transform_to_text(iceberg_transform_parse(known[i]), text);
        assert_string_equal(text, known[i]);
    }
    for (size_t i = 0; i < COUNT_OF(unknown); i++)
        assert_int_equal(iceberg_transform_parse(unknown[i]).kind, ICEBERG_TRANSFORM_UNKNOWN);
    static const struct {
        const char *transform;
        enum iceberg_type source;
        bool fits;
        enum iceberg_type result;
    } cases[] = {
        {"day", ICEBERG_TIMESTAMPTZ, true, ICEBERG_DATE},
        {"day", ICEBERG_LONG, false, 0},
        {"hour", ICEBERG_DATE, false, 0},
        {"hour", ICEBERG_TIMESTAMP, true, ICEBERG_INT},
        {"bucket[2]", ICEBERG_DOUBLE, false, 0},
        {"bucket[2]", ICEBERG_UUID, true, ICEBERG_INT},
        {"truncate[2]", ICEBERG_STRING, true, ICEBERG_STRING},
        {"truncate[2]", ICEBERG_DATE, false, 0},
        {"identity", ICEBERG_MAP, false, 0},
        {"void", ICEBERG_FLOAT, true, ICEBERG_FLOAT},
        {"zorder", ICEBERG_INT, false, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct error err;
        enum iceberg_type type = ICEBERG_MAP;
        enum status status = iceberg_transform_result(iceberg_transform_parse(cases[i].transform),
                                                      cases[i].source, &type, &err);
        assert_int_equal(status == STATUS_OK, cases[i].fits);
        if (cases[i].fits)
            assert_int_equal(type, cases[i].result);
    }
}

void test_values_in_order(void **state)
{
    (void)state;
    const struct iceberg_value null = {.type = ICEBERG_INT, .is_null = true};
    const struct iceberg_value ordered[][2] = {
        {null, integer(ICEBERG_INT, INT32_MIN)},
        {integer(ICEBERG_LONG, -1), integer(ICEBERG_LONG, 0)},
        {bytes(ICEBERG_STRING, "a", 1), bytes(ICEBERG_STRING, "ab", 2)},
        {bytes(ICEBERG_STRING, "a", 1), bytes(ICEBERG_STRING, "\xc3\xa9", 2)},
        {bytes(ICEBERG_DECIMAL, "\xff", 1), bytes(ICEBERG_DECIMAL, "\x00", 1)},
        {bytes(ICEBERG_DECIMAL, "\x80", 1), bytes(ICEBERG_DECIMAL, "\xff\x81", 2)},
        {bytes(ICEBERG_DECIMAL, "\x7f", 1), bytes(ICEBERG_DECIMAL, "\x00\x80", 2)},
    };
    for (size_t i = 0; i < COUNT_OF(ordered); i++) {
        assert_true(iceberg_value_compare(&ordered[i][0], &ordered[i][1]) < 0);
        assert_true(iceberg_value_compare(&ordered[i][1], &ordered[i][0]) > 0);
        assert_false(iceberg_value_equal(&ordered[i][0], &ordered[i][1]));
        assert_true(iceberg_value_equal(&ordered[i][0], &ordered[i][0]));
    }
    struct iceberg_value nan = {.type = ICEBERG_DOUBLE, .real = (double)NAN};
    struct iceberg_value one = {.type = ICEBERG_DOUBLE, .real = 1};
    assert_true(iceberg_value_equal(&nan, &nan));
    assert_false(iceberg_value_equal(&nan, &one));
    assert_true(iceberg_value_equal(&null, &null));
}

void test_values_encoded(void **state)
{
    (void)state;
    struct error err;
    struct iceberg_value floating = {.type = ICEBERG_FLOAT, .real = 1.5};
    const struct {
        struct iceberg_value value;
        size_t length;
    } cases[] = {
        {integer(ICEBERG_BOOLEAN, 1), 1},     {integer(ICEBERG_INT, -5), 4},
        {integer(ICEBERG_DATE, -1), 4},       {integer(ICEBERG_LONG, INT64_MIN), 8},
        {integer(ICEBERG_TIMESTAMPTZ, 7), 8}, {floating, 4},
        {bytes(ICEBERG_STRING, "abc", 3), 3}, {bytes(ICEBERG_UUID, "0123456789abcdef", 16), 16},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct buf out;
        struct iceberg_value back;
        buf_init(&out, 0);
        iceberg_value_encode(&cases[i].value, &out);
        assert_int_equal(out.length, cases[i].length);
        assert_ok(
            iceberg_value_decode(cases[i].value.type, span_of(out.data, out.length), &back, &err));
        assert_true(iceberg_value_equal(&back, &cases[i].value));
        buf_deinit(&out);
    }
    struct iceberg_value value;
    assert_ok(iceberg_value_decode(ICEBERG_LONG, span_of("\xfb\xff\xff\xff", 4), &value, &err));
    assert_int_equal(value.integer, -5); /* a promoted column's old bound */
    assert_status(STATUS_INVALID,
                  iceberg_value_decode(ICEBERG_INT, span_of("12345678", 8), &value, &err));
    assert_status(STATUS_INVALID,
                  iceberg_value_decode(ICEBERG_UUID, span_of("1", 1), &value, &err));
}

void test_bounds(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, 0);
    static const struct {
        enum iceberg_type type;
        const char *value, *lower, *upper; /* upper NULL: none */
    } cases[] = {
        {ICEBERG_STRING, "short", "short", "short"},
        {ICEBERG_STRING, "", "", ""},
        {ICEBERG_STRING, "0123456789abcdef", "0123456789abcdef", "0123456789abcdef"},
        {ICEBERG_STRING, "0123456789abcdefg", "0123456789abcdef", "0123456789abcdeg"},
        /* U+007F becomes two bytes, U+D7FF skips the surrogates, U+10FFFF cannot be raised. */
        {ICEBERG_STRING, "0123456789abcde\x7fz", "0123456789abcde\x7f", "0123456789abcde\xc2\x80"},
        {ICEBERG_STRING, "0123456789abcde\xed\x9f\xbfz", "0123456789abcde\xed\x9f\xbf",
         "0123456789abcde\xee\x80\x80"},
        {ICEBERG_STRING, "0123456789abcde\xf4\x8f\xbf\xbfz", "0123456789abcde\xf4\x8f\xbf\xbf",
         "0123456789abcdf"},
        {ICEBERG_STRING,
         "\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf"
         "\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf"
         "\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf"
         "\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf",
         "\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf"
         "\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf"
         "\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf"
         "\xf4\x8f\xbf\xbf",
         NULL},
        {ICEBERG_BINARY, "0123456789abcde\xff\x01", "0123456789abcde\xff", "0123456789abcdf"},
        {ICEBERG_BINARY, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
         "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct span value = span_of_text(cases[i].value), upper;
        assert_true(
            span_equal(iceberg_bound_lower(cases[i].type, value), span_of_text(cases[i].lower)));
        bool has_upper = iceberg_bound_upper(cases[i].type, value, &arena, &upper);
        assert_int_equal(has_upper, cases[i].upper != NULL);
        if (has_upper && !span_equal(upper, span_of_text(cases[i].upper)))
            fail_msg("upper bound of case %zu", i);
        if (has_upper)
            assert_non_null(upper.data);
    }
    arena_deinit(&arena);
}

void test_partition_path(void **state)
{
    (void)state;
    struct error err;
    struct buf out;
    struct iceberg_partition_field fields[] = {
        {1, 1000, "time_hour", {ICEBERG_HOUR, 0}},
        {2, 1001, "name", {ICEBERG_IDENTITY, 0}},
        {3, 1002, "none", {ICEBERG_BUCKET, 4}},
    };
    struct iceberg_spec spec = {.fields = fields, .field_count = 3};
    struct iceberg_value values[] = {integer(ICEBERG_INT, -1),
                                     bytes(ICEBERG_STRING, "a/../b %", 8),
                                     {.type = ICEBERG_INT, .is_null = true}};
    buf_init(&out, 0);
    assert_ok(iceberg_partition_path(&spec, values, &out, &err));
    buf_put_byte(&out, 0);
    assert_string_equal((char *)out.data, "time_hour=1969-12-31-23/name=a_.._b__/none=null");
    buf_deinit(&out);
}

/* ---- schemas ---- */

static const char schema_text[] =
    "{\"type\":\"struct\",\"schema-id\":4,\"fields\":["
    "{\"id\":1,\"name\":\"a\",\"required\":true,\"type\":\"long\",\"doc\":\"d\"},"
    "{\"id\":2,\"name\":\"f\",\"required\":false,\"type\":\"fixed[16]\"},"
    "{\"id\":3,\"name\":\"n\",\"required\":false,\"type\":\"decimal(38, 2)\"},"
    "{\"id\":4,\"name\":\"m\",\"required\":false,\"type\":{\"type\":\"map\",\"key-id\":5,"
    "\"key\":\"string\",\"value-id\":6,\"value\":{\"type\":\"list\",\"element-id\":7,"
    "\"element\":{\"type\":\"struct\",\"fields\":[{\"id\":8,\"name\":\"x\",\"required\":false,"
    "\"type\":\"timestamptz\"}]},\"element-required\":true},\"value-required\":false}}],"
    "\"identifier-field-ids\":[1]}";

void test_schema_json(void **state)
{
    (void)state;
    struct error err;
    struct arena arena;
    struct json_value *tree, *back;
    struct iceberg_schema schema;
    struct buf out;
    arena_init(&arena, 0);
    buf_init(&out, 0);
    assert_ok(json_parse(schema_text, strlen(schema_text), &arena, &tree, &err));
    assert_ok(iceberg_schema_parse(tree, &arena, &schema, &err));
    assert_ok(iceberg_schema_to_json(&schema, &arena, &back, &err));
    assert_ok(json_serialize(back, &out, &err));
    buf_put_byte(&out, 0);
    assert_string_equal((char *)out.data, schema_text);
    assert_string_equal(iceberg_schema_find(&schema, 8)->name, "x");
    assert_int_equal(iceberg_schema_find_name(&schema, "m")->id, 4);
    assert_null(iceberg_schema_find_name(&schema, "x"));
    assert_null(iceberg_schema_find(&schema, 9));
    buf_deinit(&out);
    arena_deinit(&arena);
}

void test_schema_loses(void **state)
{
    (void)state;
    struct iceberg_field nested[] = {{.id = 3, .name = "x", .type = ICEBERG_INT},
                                     {.id = 4, .name = "y", .type = ICEBERG_STRING}};
    struct iceberg_field fields[] = {
        {.id = 1, .name = "n", .type = ICEBERG_INT},
        {.id = 2, .name = "s", .type = ICEBERG_STRUCT, .children = nested, .child_count = 2}};
    struct iceberg_field nested_later[] = {nested[1], nested[0]}, later_fields[3];
    struct iceberg_schema earlier = {.fields = fields, .field_count = 2};
    struct iceberg_schema later = {.fields = later_fields, .field_count = 3};
    later_fields[0] = (struct iceberg_field){.id = 9, .name = "new", .type = ICEBERG_DATE};
    later_fields[1] = fields[1];
    later_fields[1].children = nested_later;
    later_fields[2] = fields[0];
    assert_false(iceberg_schema_loses(&earlier, &later)); /* added and moved */
    assert_true(iceberg_schema_loses(&later, &earlier));
    later_fields[2].name = "m";
    later_fields[2].type = nested_later[1].type = ICEBERG_LONG;
    assert_false(iceberg_schema_loses(&earlier, &later)); /* renamed, widened */
    later_fields[2].type = ICEBERG_STRING;
    assert_true(iceberg_schema_loses(&earlier, &later));
    later_fields[2].type = ICEBERG_LONG;
    later_fields[1].child_count = 1;
    assert_true(iceberg_schema_loses(&earlier, &later)); /* a nested field is gone */
}

void test_schema_refused(void **state)
{
    (void)state;
    static const struct {
        const char *field;
        enum status expected;
    } cases[] = {
        {"{\"id\":1,\"name\":\"a\",\"required\":true,\"type\":\"timestamp_ns\"}",
         STATUS_UNSUPPORTED},
        {"{\"id\":1,\"name\":\"a\",\"required\":true,\"type\":\"fixed[0]\"}", STATUS_UNSUPPORTED},
        {"{\"id\":1,\"name\":\"a\",\"required\":true,\"type\":\"decimal(39, 0)\"}",
         STATUS_UNSUPPORTED},
        {"{\"id\":1,\"name\":\"a\",\"required\":true,\"type\":\"fixed[-1]\"}", STATUS_UNSUPPORTED},
        {"{\"id\":1,\"name\":\"a\",\"required\":true,\"type\":\"decimal(9)\"}", STATUS_UNSUPPORTED},
        {"{\"id\":1,\"name\":\"a\",\"type\":\"int\"}", STATUS_INVALID},
        {"{\"id\":-1,\"name\":\"a\",\"required\":true,\"type\":\"int\"}", STATUS_INVALID},
        {"{\"id\":2147483600,\"name\":\"a\",\"required\":true,\"type\":\"int\"}", STATUS_INVALID},
        {"{\"id\":1,\"name\":\"a\",\"required\":true,\"type\":{\"type\":\"list\"}}",
         STATUS_INVALID},
        {"{\"id\":1,\"name\":\"a\",\"required\":true,\"type\":{\"type\":7}}", STATUS_INVALID},
        {"{\"id\":1,\"name\":\"a\",\"required\":true,\"type\":[]}", STATUS_INVALID},
        {"7", STATUS_INVALID},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct error err;
        struct arena arena;
        struct json_value *tree;
        struct iceberg_schema schema;
        char text[512];
        arena_init(&arena, 0);
        snprintf(text, sizeof text, "{\"type\":\"struct\",\"fields\":[%s]}", cases[i].field);
        assert_ok(json_parse(text, strlen(text), &arena, &tree, &err));
        enum status status = iceberg_schema_parse(tree, &arena, &schema, &err);
        if (status != cases[i].expected)
            fail_msg("%s: %s", cases[i].field, status_name(status));
        arena_deinit(&arena);
    }
}

/* Level by level: siblings before what is in them. */
void test_schema_ids(void **state)
{
    (void)state;
    struct iceberg_field element[] = {{.name = "x"}, {.name = "y", .id = 20}};
    struct iceberg_field list[] = {
        {.name = "element", .type = ICEBERG_STRUCT, .children = element, .child_count = 2}};
    struct iceberg_field map[] = {{.name = "key"}, {.name = "value"}};
    struct iceberg_field fields[] = {
        {.name = "l", .type = ICEBERG_LIST, .children = list, .child_count = 1},
        {.name = "m", .type = ICEBERG_MAP, .children = map, .child_count = 2},
        {.name = "z"},
    };
    struct iceberg_schema schema = {.fields = fields, .field_count = 3};
    int32_t last_id = 3;
    iceberg_schema_assign_ids(&schema, &last_id);
    assert_int_equal(fields[0].id, 21); /* above the highest that is taken */
    assert_int_equal(fields[2].id, 23);
    assert_int_equal(list[0].id, 24);
    assert_int_equal(element[0].id, 25);
    assert_int_equal(element[1].id, 20);
    assert_int_equal(map[0].id, 26);
    assert_int_equal(map[1].id, 27);
    assert_int_equal(last_id, 27);
}

void test_schema_and_arrow(void **state)
{
    (void)state;
    struct error err;
    struct arena arena;
    struct json_value *tree;
    struct iceberg_schema schema, back;
    struct arrow_schema arrow;
    arena_init(&arena, 0);
    assert_ok(json_parse(schema_text, strlen(schema_text), &arena, &tree, &err));
    assert_ok(iceberg_schema_parse(tree, &arena, &schema, &err));
    assert_ok(iceberg_schema_to_arrow(&schema, &arena, &arrow, &err));
    assert_int_equal(arrow.field_count, 3); /* the decimal is optional and left out */
    assert_int_equal(arrow.fields[1].byte_width, 16);
    const struct arrow_field *map = &arrow.fields[2];
    assert_int_equal(map->type, ARROW_MAP);
    assert_int_equal(map->children[0].field_id, 5);
    assert_false(map->children[0].is_nullable);
    const struct arrow_field *leaf = &map->children[1].children[0].children[0];
    assert_true(leaf->type == ARROW_TIMESTAMP_US && leaf->is_instant && leaf->field_id == 8);
    assert_ok(iceberg_schema_from_arrow(&arrow, &arena, &back, &err));
    assert_string_equal(back.fields[2].children[1].children[0].name, "element");
    assert_int_equal(back.fields[2].children[1].children[0].children[0].type, ICEBERG_TIMESTAMPTZ);
    assert_true(back.fields[0].is_required && back.fields[0].id == 1);
    schema.fields[2].is_required = true;
    assert_status(STATUS_UNSUPPORTED, iceberg_schema_to_arrow(&schema, &arena, &arrow, &err));
    assert_non_null(strstr(err.message, "column n"));
    arrow.fields[0].type = ARROW_NULL;
    assert_status(STATUS_UNSUPPORTED, iceberg_schema_from_arrow(&arrow, &arena, &back, &err));
    arena_deinit(&arena);
}
