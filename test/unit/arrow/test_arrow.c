/* SPDX-License-Identifier: Apache-2.0 */
#include "arrow_sample.h"

static void test_builders_build(void **state)
{
    (void)state;
    struct sample sample;
    struct buf text = {0};
    sample_init(&sample, 9);
    put_row(&text, &sample.batch, 7);
    assert_string_equal(text.data, "7;null;null;null;['key0','value0','key1','value0',];"
                                   "'service 5';null;");
    buf_clear(&text);
    put_row(&text, &sample.batch, 3);
    assert_string_equal(text.data, "3;'row 3';true;abc;[];'service 0';"
                                   "[[3000,[],],[3001,['key0','value3',],],[3002,null,],];");
    assert_int_equal(sample.batch.columns[TEXT].null_count, 3);
    assert_null(sample.batch.columns[N].validity);
    assert_int_equal(
        sample.batch.columns[EVENTS].children[0].children[1].children[0].dictionary->length, 1);
    buf_deinit(&text);
    sample_deinit(&sample);
}

static void test_truncate_is_as_if_never_appended(void **state)
{
    (void)state;
    for (int64_t rows = 0; rows <= 40; rows++) {
        struct sample whole, cut;
        sample_init(&whole, rows);
        sample_init(&cut, 40);
        for (int i = 0; i < FIELD_COUNT; i++)
            arrow_builder_truncate(&cut.builders[i], i == SERVICE ? 0 : rows);
        sample_view(&cut);
        for (int64_t row = 0; row < rows; row++)
            assert_rows_equal(&whole.batch, row, &cut.batch, row);
        /* And what is appended next lands where it should. */
        arrow_append_null(&cut.builders[TEXT]);
        arrow_append_bool(&cut.builders[FLAG], false);
        assert_int_equal(cut.builders[TEXT].length, rows + 1);
        assert_false(arrow_bit(cut.builders[TEXT].validity.data, rows));
        assert_false(arrow_bit(cut.builders[FLAG].values.data, rows));
        arrow_builder_truncate(&cut.builders[TEXT], rows);
        arrow_builder_truncate(&cut.builders[FLAG], rows);
        for (int i = 0; i < FIELD_COUNT; i++)
            assert_int_equal(whole.builders[i].null_count, cut.builders[i].null_count);
        sample_deinit(&whole);
        sample_deinit(&cut);
    }
}

static void test_clear_forgets_dictionaries(void **state)
{
    (void)state;
    struct error err;
    struct arrow_builder builder;
    assert_ok(arrow_builder_init(&builder, &fields[SERVICE], &err));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 1000; i++) {
            char text[16];
            int length = snprintf(text, sizeof text, "%d", i % 300);
            arrow_append_memo(&builder, text, (size_t)length);
        }
        arrow_append_memo(&builder, "", 0);
        assert_int_equal(builder.dictionary->length, 301);
        assert_int_equal(((int32_t *)(void *)builder.values.data)[999], 99);
        assert_false(arrow_builder_failed(&builder));
        arrow_builder_clear(&builder);
        assert_int_equal(builder.dictionary->length, 0);
        assert_int_equal(builder.length, 0);
    }
    arrow_builder_deinit(&builder);
}

static void test_failed_appends_are_taken_back(void **state)
{
    (void)state;
    struct error err;
    /* Small bounds stand in for 2^31 - 1. */
    struct arrow_builder builder;
    assert_ok(arrow_builder_init(&builder, &fields[TEXT], &err));
    builder.values.bytes_max = 10;
    arrow_append_bytes(&builder, "12345678", 8);
    arrow_append_bytes(&builder, "123456789", 9);
    arrow_append_bytes(&builder, "1", 1);
    assert_true(arrow_builder_failed(&builder));
    arrow_builder_truncate(&builder, 1);
    assert_false(arrow_builder_failed(&builder));
    assert_int_equal(builder.values.length, 8);
    arrow_builder_deinit(&builder);

    assert_ok(arrow_builder_init(&builder, &fields[SERVICE], &err));
    builder.dictionary->values.bytes_max = 10;
    arrow_append_memo(&builder, "12345678", 8);
    arrow_append_memo(&builder, "12345678x", 9);
    assert_true(arrow_builder_failed(&builder));
    assert_int_equal(builder.dictionary->length, 1);
    arrow_builder_truncate(&builder, 1);
    arrow_append_memo(&builder, "ab", 2);
    assert_false(arrow_builder_failed(&builder));
    assert_int_equal(((int32_t *)(void *)builder.values.data)[1], 1);
    arrow_builder_deinit(&builder);
}

/* An item is taken back behind a failure, then the whole request, to the rows of the one before. */
static void test_going_back_twice_past_lost_offsets(void **state)
{
    (void)state;
    struct error err;
    struct arrow_builder builder;
    struct arrow_field field = {.name = "t", .type = ARROW_UTF8, .is_nullable = true};
    assert_ok(arrow_builder_init(&builder, &field, &err));
    for (int i = 0; i < 20; i++)
        arrow_append_bytes(&builder, "text", 4);
    builder.offsets.bytes_max = builder.offsets.length; /* no room from here on */
    for (int i = 0; i < 5; i++)
        arrow_append_bytes(&builder, "lost", 4);
    assert_true(arrow_builder_failed(&builder));
    arrow_builder_truncate(&builder, 24);
    arrow_builder_truncate(&builder, 20);
    assert_false(arrow_builder_failed(&builder));
    assert_int_equal(builder.values.length, 80);
    builder.offsets.bytes_max = 0;
    arrow_append_bytes(&builder, "next", 4);
    assert_int_equal(((int32_t *)(void *)builder.offsets.data)[21], 84);
    assert_memory_equal(builder.values.data + 76, "textnext", 8);
    arrow_builder_deinit(&builder);
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    struct error err;
    for (int64_t n = 0; n < 400; n++) {
        struct arrow_builder builders[FIELD_COUNT] = {0};
        struct buf out = {0};
        struct arena arena = {0};
        struct arrow_array columns[FIELD_COUNT];
        bool is_whole = true;
        alloc_fail_after(n);
        for (int i = 0; i < FIELD_COUNT && is_whole; i++)
            is_whole = arrow_builder_init(&builders[i], &fields[i], &err) == STATUS_OK;
        for (int64_t i = 0; i < 10 && is_whole; i++)
            append_row(builders, i);
        for (int i = 0; i < FIELD_COUNT && is_whole; i++)
            is_whole = !arrow_builder_failed(&builders[i]);
        for (int i = 0; i < FIELD_COUNT && is_whole; i++)
            is_whole = arrow_builder_view(&builders[i], &arena, &columns[i], &err) == STATUS_OK;
        if (is_whole) {
            columns[SERVICE].length = columns[RESOURCE].length;
            columns[SERVICE].values = columns[RESOURCE].values;
            struct arrow_batch batch = {.schema = &schema, .length = 10, .columns = columns}, got;
            const struct arrow_batch *batches[] = {&batch};
            struct arrow_row rows[] = {{0, 3}, {0, 2}};
            struct arrow_reader *reader = NULL;
            struct arrow_limits limits = arrow_limits_default();
            if (arrow_gather(batches, 1, rows, 2, &got, &err) == STATUS_OK) {
                arrow_batch_deinit(&got);
                if (arrow_ipc_write_batch(&schema, &batch, ARROW_ZSTD, &out, &err) == STATUS_OK &&
                    arrow_reader_create(&schema, span_of(out.data, out.length), &limits, &reader,
                                        &err) == STATUS_OK &&
                    arrow_reader_next(reader, &got, &err) == STATUS_OK)
                    arrow_batch_deinit(&got);
            }
            arrow_reader_destroy(reader);
        }
        alloc_fail_after(-1);
        for (int i = 0; i < FIELD_COUNT; i++)
            if (builders[i].field)
                arrow_builder_deinit(&builders[i]);
        arena_deinit(&arena);
        buf_deinit(&out);
    }
}

static void test_struct_null_keeps_children_in_step(void **state)
{
    (void)state;
    struct error err;
    static struct arrow_field children[] = {
        {.name = "required", .type = ARROW_INT64},
        {.name = "optional", .type = ARROW_UTF8, .is_nullable = true},
        {.name = "dictionary", .type = ARROW_UTF8, .is_dictionary = true},
    };
    static const struct arrow_field field = {.name = "s",
                                             .type = ARROW_STRUCT,
                                             .is_nullable = true,
                                             .children = children,
                                             .child_count = 3};
    struct arrow_builder builder;
    struct arena arena = {0};
    struct arrow_array array;
    assert_ok(arrow_builder_init(&builder, &field, &err));
    arrow_append_null(&builder);
    arrow_append_i64(&builder.children[0], 7);
    arrow_append_null(&builder.children[1]);
    arrow_append_memo(&builder.children[2], "x", 1);
    arrow_close_struct(&builder);
    assert_ok(arrow_builder_view(&builder, &arena, &array, &err));
    assert_ok(arrow_array_validate(&field, &array, &err));
    assert_int_equal(array.children[0].null_count, 0);
    assert_int_equal(array.children[2].null_count, 1);
    arrow_append_i64(&builder.children[0], 8);
    assert_status(STATUS_INTERNAL, arrow_builder_view(&builder, &arena, &array, &err));
    arrow_builder_deinit(&builder);
    arena_deinit(&arena);
}

static void test_schema_travels(void **state)
{
    (void)state;
    struct error err;
    struct arrow_limits limits = arrow_limits_default();
    struct buf out = {0}, again = {0};
    struct arena arena = {0};
    struct arrow_schema got, copy;
    size_t used;
    assert_ok(arrow_ipc_write_schema(&schema, &out, &err));
    assert_int_equal(out.length % 8, 0);
    assert_ok(
        arrow_ipc_read_schema(span_of(out.data, out.length), &limits, &arena, &got, &used, &err));
    assert_int_equal(used, out.length);
    assert_true(arrow_schema_equal(&schema, &got));
    assert_true(arrow_schema_fingerprint(&schema) == arrow_schema_fingerprint(&got));
    assert_ok(arrow_schema_copy(&got, &arena, &copy, &err));
    assert_ok(arrow_ipc_write_schema(&copy, &again, &err));
    assert_int_equal(again.length, out.length);
    assert_memory_equal(again.data, out.data, out.length);
    /* What this schema hashes to is in logs: it never changes. */
    assert_true(arrow_schema_fingerprint(&schema) == 0xf28541f1f7303913u);
    copy.fields[1].is_nullable = false;
    assert_false(arrow_schema_equal(&schema, &copy));
    assert_true(arrow_schema_fingerprint(&schema) != arrow_schema_fingerprint(&copy));
    limits.field_count_max = 3;
    assert_status(STATUS_LIMIT, arrow_ipc_read_schema(span_of(out.data, out.length), &limits,
                                                      &arena, &got, &used, &err));
    limits.field_count_max = 100;
    limits.depth_max = 2;
    assert_status(STATUS_LIMIT, arrow_ipc_read_schema(span_of(out.data, out.length), &limits,
                                                      &arena, &got, &used, &err));
    buf_deinit(&out);
    buf_deinit(&again);
    arena_deinit(&arena);
}

static void test_batch_travels(void **state)
{
    (void)state;
    struct error err;
    struct sample sample;
    sample_init(&sample, 100);
    for (int compression = ARROW_UNCOMPRESSED; compression <= ARROW_ZSTD; compression++) {
        for (size_t shift = 0; shift < 9; shift += 4) { /* aligned or not */
            struct arrow_limits limits = arrow_limits_default();
            struct buf out = {0}, moved = {0};
            struct arrow_reader *reader;
            struct arrow_batch got;
            assert_ok(arrow_ipc_write_batch(&schema, &sample.batch,
                                            (enum arrow_compression)compression, &out, &err));
            buf_extend(&moved, shift);
            buf_put(&moved, out.data, out.length);
            assert_ok(arrow_reader_create(&schema, span_of(moved.data + shift, out.length), &limits,
                                          &reader, &err));
            assert_ok(arrow_reader_next(reader, &got, &err));
            assert_int_equal(got.length, 100);
            assert_true(got.columns[SERVICE].values == got.columns[RESOURCE].values);
            for (int64_t row = 0; row < 100; row++)
                assert_rows_equal(&sample.batch, row, &got, row);
            arrow_batch_deinit(&got);
            assert_status(STATUS_NOT_FOUND, arrow_reader_next(reader, &got, &err));
            arrow_reader_destroy(reader);
            buf_deinit(&out);
            buf_deinit(&moved);
        }
    }
    sample_deinit(&sample);
}

static void test_body_lies_on_64(void **state)
{
    (void)state;
    struct error err;
    struct sample sample;
    struct buf out = {0};
    sample_init(&sample, 50);
    assert_ok(arrow_ipc_write_batch(&schema, &sample.batch, ARROW_UNCOMPRESSED, &out, &err));
    for (size_t at = 0; at < out.length;) {
        assert_int_equal(get_le32(out.data + at), UINT32_MAX);
        size_t body = at + 8 + get_le32(out.data + at + 4);
        assert_int_equal(body % 64, 0);
        size_t root = at + 8 + get_le32(out.data + at + 8);
        size_t vtable = root - get_le32(out.data + root);
        at = body + get_le64(out.data + root + get_le16(out.data + vtable + 4 + 2 * 3));
        assert_int_equal(at % 64, 0);
    }
    buf_deinit(&out);
    sample_deinit(&sample);
}

static void test_gather_mixes_batches(void **state)
{
    (void)state;
    struct error err;
    struct sample a, b;
    sample_init(&a, 33);
    sample_init(&b, 70);
    const struct arrow_batch *batches[] = {&a.batch, &b.batch, &a.batch};
    struct arrow_row rows[300];
    struct random random;
    random_init(&random, 1);
    for (int round = 0; round < 20; round++) {
        size_t count = (size_t)random_below(&random, COUNT_OF(rows) + 1);
        for (size_t i = 0; i < count; i++) {
            rows[i].batch = (uint32_t)random_below(&random, 3);
            rows[i].row = (uint32_t)random_below(&random, rows[i].batch == 1 ? 70 : 33);
            if (i && random_chance(&random, 1, 2) && rows[i - 1].row < 32)
                rows[i] = (struct arrow_row){rows[i - 1].batch, rows[i - 1].row + 1};
        }
        struct arrow_batch got;
        assert_ok(arrow_gather(batches, 3, rows, count, &got, &err));
        for (int i = 0; i < FIELD_COUNT; i++)
            assert_ok(arrow_array_validate(&fields[i], &got.columns[i], &err));
        for (size_t i = 0; i < count; i++)
            assert_rows_equal(batches[rows[i].batch], rows[i].row, &got, (int64_t)i);
        assert_true(got.columns[SERVICE].values == got.columns[RESOURCE].values);
        /* The first batch is there twice; its dictionary is laid down once. */
        assert_true(got.columns[SERVICE].dictionary->length <=
                    a.batch.columns[SERVICE].dictionary->length +
                        b.batch.columns[SERVICE].dictionary->length);
        arrow_batch_deinit(&got);
    }
    sample_deinit(&a);
    sample_deinit(&b);
}

/* TB16: what would pass 2^31 - 1 is refused before a byte is copied. */
static void test_gather_has_a_limit(void **state)
{
    (void)state;
    struct error err;
    static struct arrow_field field = {.name = "t", .type = ARROW_BINARY};
    static const struct arrow_schema one = {.fields = &field, .field_count = 1};
    static const int32_t offsets[] = {0, INT32_MAX};
    struct arrow_array column = {.length = 1, .offsets = offsets, .values = ""};
    struct arrow_batch batch = {.schema = &one, .length = 1, .columns = &column}, got;
    const struct arrow_batch *batches[] = {&batch};
    static const struct arrow_row rows[2] = {{0, 0}, {0, 0}};
    assert_status(STATUS_LIMIT, arrow_gather(batches, 1, rows, 2, &got, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_builders_build),
        cmocka_unit_test(test_truncate_is_as_if_never_appended),
        cmocka_unit_test(test_clear_forgets_dictionaries),
        cmocka_unit_test(test_failed_appends_are_taken_back),
        cmocka_unit_test(test_going_back_twice_past_lost_offsets),
        cmocka_unit_test(test_every_allocation_may_fail),
        cmocka_unit_test(test_struct_null_keeps_children_in_step),
        cmocka_unit_test(test_schema_travels),
        cmocka_unit_test(test_batch_travels),
        cmocka_unit_test(test_body_lies_on_64),
        cmocka_unit_test(test_gather_mixes_batches),
        cmocka_unit_test(test_gather_has_a_limit),
        cmocka_unit_test(test_claimed_sizes_are_bounded),
        cmocka_unit_test(test_expansion_is_bounded),
        cmocka_unit_test(test_flatbuffers_are_checked),
        cmocka_unit_test(test_broken_arrays_are_refused),
        cmocka_unit_test(test_validate_names_the_fault),
        cmocka_unit_test(test_damage_is_refused_or_harmless),
        cmocka_unit_test(test_streams_are_read_whole),
        cmocka_unit_test(test_golden_files_are_read),
        cmocka_unit_test(test_containers_are_told_apart),
        cmocka_unit_test(test_damaged_files_are_answered),
        cmocka_unit_test(test_file_allocations_may_fail),
        cmocka_unit_test(test_files_have_each_value_once),
        cmocka_unit_test(test_grown_dictionaries_are_bounded),
        cmocka_unit_test(test_dictionary_allocations_may_fail),
        cmocka_unit_test(test_reads_may_fail),
        cmocka_unit_test(test_schemas_keep_origins),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
