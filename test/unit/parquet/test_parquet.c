/* SPDX-License-Identifier: Apache-2.0
 *
 * What C can tell about the Parquet writer; that others read its files is test/interop's to show.
 */
#include "../unit.h"
#include "format/parquet/parquet_internal.h"

/* ---- encodings ---- */

static uint32_t read_varint(const uint8_t **at)
{
    uint32_t value = 0;
    unsigned shift = 0;
    for (; **at & 0x80; (*at)++, shift += 7)
        value |= (uint32_t)(**at & 0x7f) << shift;
    value |= (uint32_t) * *at << shift;
    (*at)++;
    return value;
}

/* A plain reader of the hybrid, bit by bit. */
static void read_hybrid(const struct buf *in, uint32_t *out, size_t count, unsigned width)
{
    const uint8_t *at = in->data;
    size_t done = 0;
    while (done < count) {
        uint32_t header = read_varint(&at);
        if (header & 1) {
            for (size_t i = 0; i < (size_t)(header >> 1) * 8; i++) {
                uint32_t value = 0;
                for (unsigned bit = 0; bit < width; bit++)
                    value |= (uint32_t)arrow_bit(at, (int64_t)(i * width + bit)) << bit;
                if (done < count)
                    out[done++] = value;
                else
                    assert_int_equal(value, 0);
            }
            at += (size_t)(header >> 1) * width;
        } else {
            uint32_t value = 0;
            memcpy(&value, at, (width + 7) / 8);
            at += (width + 7) / 8;
            for (uint32_t i = 0; i < header >> 1; i++)
                out[done++] = value;
        }
    }
    assert_int_equal(done, count);
    assert_ptr_equal(at, in->data + in->length);
}

static void test_hybrid_round_trip(void **state)
{
    (void)state;
    enum { COUNT_MAX = 700 };
    static uint32_t values[COUNT_MAX], got[COUNT_MAX];
    static uint8_t levels[COUNT_MAX];
    struct random random;
    struct buf out = {0};
    random_init(&random, 3);
    for (unsigned width = 1; width <= 32; width++) {
        for (int round = 0; round < 100; round++) {
            size_t count = (size_t)random_below(&random, COUNT_MAX) + 1;
            for (size_t i = 0; i < count; i++) {
                bool is_same = i && random_chance(&random, (uint64_t)round % 20, 20);
                values[i] = is_same
                                ? values[i - 1]
                                : (uint32_t)(random_next(&random) & ((UINT64_C(1) << width) - 1));
                levels[i] = (uint8_t)values[i];
            }
            buf_clear(&out);
            encode_indices(&out, values, count, width);
            /* A block of its own, so that a byte too far is seen. */
            read_hybrid(&out, got, count, width);
            assert_memory_equal(got, values, count * sizeof *got);
            if (width > 8)
                continue;
            buf_clear(&out);
            encode_levels(&out, levels, count, width);
            read_hybrid(&out, got, count, width);
            assert_memory_equal(got, values, count * sizeof *got);
        }
    }
    buf_deinit(&out);
}

static void test_hybrid_prefers_runs(void **state)
{
    (void)state;
    static uint8_t levels[100000];
    struct buf out = {0};
    encode_levels(&out, levels, sizeof levels, 1);
    assert_true(out.length <= 4);
    buf_deinit(&out);
}

/* ---- bounds ---- */

static void test_bounds_hold(void **state)
{
    (void)state;
    struct random random;
    random_init(&random, 9);
    static const char *const letters[] = {
        "a", "\x7f", "é", "߿", "\xed\x9f\xbf", "\xef\xbf\xbf", "\xf4\x8f\xbf\xbf", "z"};
    for (int round = 0; round < 20000; round++) {
        struct buf text = {0}, grown = {0};
        for (uint64_t i = random_below(&random, 12); i > 0; i--)
            buf_put_text(&text, letters[random_below(&random, COUNT_OF(letters))]);
        struct span value = span_of(text.data, text.length), upper;
        size_t bytes_max = (size_t)random_below(&random, 14);
        struct span lower = bound_lower(value, bytes_max, true);
        assert_true(lower.length <= bytes_max && utf8_is_valid(lower.data, lower.length));
        assert_true(value_compare(ORDER_BYTE_ARRAY, lower, value) <= 0);
        if (bound_upper(value, bytes_max, true, &grown, &upper)) {
            assert_true(utf8_is_valid(upper.data, upper.length));
            assert_true(value_compare(ORDER_BYTE_ARRAY, upper, value) >= 0);
            assert_true(upper.length <= bytes_max + 1);
        }
        buf_deinit(&text);
        buf_deinit(&grown);
    }
}

/* Strings that begin alike, against comparing each with each. */
static void test_extent_of_strings(void **state)
{
    (void)state;
    struct random random;
    random_init(&random, 4);
    for (int round = 0; round < 5000; round++) {
        struct buf plain = {0};
        struct extent extent = {0}, slow = {0};
        for (uint64_t i = random_below(&random, 6) + 1; i > 0; i--) {
            char text[16] = "aaaaaaaaaaaaaaa";
            size_t length = (size_t)random_below(&random, 12);
            text[random_below(&random, 12)] = (char)('a' + random_below(&random, 3) * 100);
            buf_put_le32(&plain, (uint32_t)length);
            buf_put(&plain, text, length);
        }
        extent_add_plain(ORDER_BYTE_ARRAY, 0, &extent, span_of(plain.data, plain.length));
        for (size_t at = 0; at < plain.length; at += 4 + get_le32(plain.data + at))
            extent_add(ORDER_BYTE_ARRAY, &slow,
                       span_of(plain.data + at + 4, get_le32(plain.data + at)));
        assert_true(span_equal(extent.min, slow.min) && span_equal(extent.max, slow.max));
        buf_deinit(&plain);
    }
}

/* ---- files ---- */

static struct arrow_field map_children[2] = {
    {.name = "key", .type = ARROW_UTF8, .field_id = 11},
    {.name = "value", .type = ARROW_UTF8, .is_nullable = true, .field_id = 12},
};
static struct arrow_field fields[] = {
    {.name = "n", .type = ARROW_INT64, .field_id = 1},
    {.name = "word", .type = ARROW_UTF8, .is_nullable = true, .is_dictionary = true, .field_id = 2},
    {.name = "double", .type = ARROW_DOUBLE, .is_nullable = true, .field_id = 3},
    {.name = "pairs",
     .type = ARROW_MAP,
     .is_nullable = true,
     .children = map_children,
     .child_count = 2,
     .field_id = 4},
    {.name = "flag", .type = ARROW_BOOL, .field_id = 5},
};
enum { N, WORD, DOUBLE, PAIRS, FLAG, FIELD_COUNT };
static const struct arrow_schema schema = {.fields = fields, .field_count = FIELD_COUNT};

struct sample {
    struct arrow_builder builders[FIELD_COUNT];
    struct arrow_batch batch;
};

static void sample_init(struct sample *sample, int64_t first, int64_t rows)
{
    struct error err;
    struct arrow_builder *b = sample->builders;
    *sample = (struct sample){0};
    for (int i = 0; i < FIELD_COUNT; i++)
        assert_ok(arrow_builder_init(&b[i], &fields[i], &err));
    for (int64_t i = first; i < first + rows; i++) {
        char text[32];
        int length = snprintf(text, sizeof text, "word %d", (int)(i % 7));
        arrow_append_i64(&b[N], i);
        arrow_append_memo(&b[WORD], text, (size_t)length);
        if (i % 3)
            arrow_append_double(&b[DOUBLE], (double)i / 2);
        else
            arrow_append_null(&b[DOUBLE]);
        for (int64_t pair = 0; pair < i % 3; pair++) {
            arrow_append_bytes(&b[PAIRS].children[0], text, (size_t)length);
            arrow_append_null(&b[PAIRS].children[1]);
        }
        arrow_close_list(&b[PAIRS]);
        arrow_append_bool(&b[FLAG], i % 2);
    }
    sample->batch = (struct arrow_batch){.schema = &schema, .length = rows};
    sample->batch.columns =
        arena_alloc_zero(&sample->batch.arena, FIELD_COUNT, sizeof *sample->batch.columns);
    for (int i = 0; i < FIELD_COUNT; i++)
        assert_ok(arrow_builder_view(&b[i], &sample->batch.arena, &sample->batch.columns[i], &err));
}

static void sample_deinit(struct sample *sample)
{
    for (int i = 0; i < FIELD_COUNT; i++)
        arrow_builder_deinit(&sample->builders[i]);
    arrow_batch_deinit(&sample->batch);
}

static enum status write_file(const struct arrow_batch *batch, int times, struct sink sink,
                              struct parquet_file_metrics *metrics, struct error *err)
{
    struct parquet_options options = parquet_options_default();
    struct parquet_writer *writer = NULL;
    struct parquet_sorting_column sorting = {.field = N};
    struct parquet_key_value pair = {"a key", "a value"};
    enum status status;
    options.row_group_rows = 60;
    options.page_rows = 11;
    options.dictionary_bytes_max = 70;
    options.sorting = &sorting;
    options.sorting_count = options.metadata_count = 1;
    options.metadata = &pair;
    options.arrow_schema = &schema;
    status = parquet_writer_create(&schema, &options, sink, &writer, err);
    for (int i = 0; status == STATUS_OK && i < times; i++)
        status = parquet_writer_write(writer, batch, err);
    if (status == STATUS_OK)
        status = parquet_writer_finish(writer, metrics, err);
    if (writer)
        parquet_writer_destroy(writer);
    return status;
}

static void test_metrics_add_up(void **state)
{
    (void)state;
    struct error err;
    struct sample sample;
    struct buf out = {0}, again = {0};
    struct parquet_file_metrics metrics;
    sample_init(&sample, 0, 100);
    assert_ok(write_file(&sample.batch, 3, sink_to_buf(&out), &metrics, &err));
    assert_int_equal(metrics.file_bytes, out.length);
    assert_int_equal(metrics.row_count, 300);
    assert_int_equal(metrics.split_offset_count, 5);
    assert_int_equal(metrics.split_offsets[0], 4);
    assert_int_equal(metrics.column_count, 6);
    const struct parquet_column_metrics *n = &metrics.columns[N];
    assert_true(n->has_lower && get_le64(n->lower.data) == 0);
    assert_true(n->has_upper && get_le64(n->upper.data) == 99);
    assert_int_equal(n->nan_count, -1);
    assert_int_equal(metrics.columns[DOUBLE].null_count, 3 * 34);
    assert_int_equal(metrics.columns[DOUBLE].nan_count, 0);
    const struct parquet_column_metrics *value = &metrics.columns[PAIRS + 1];
    assert_int_equal(value->field_id, 12);
    assert_int_equal(value->value_count, 3 * (33 * 3 + 34)); /* an empty map is a level too */
    assert_int_equal(value->null_count, value->value_count);
    assert_false(value->has_lower || value->has_upper);
    assert_memory_equal(metrics.columns[WORD].upper.data, "word 6", 6);
    parquet_file_metrics_deinit(&metrics);
    /* The same rows make the same bytes, wherever memory lies. */
    assert_ok(write_file(&sample.batch, 3, sink_to_buf(&again), &metrics, &err));
    assert_int_equal(again.length, out.length);
    assert_memory_equal(again.data, out.data, out.length);
    parquet_file_metrics_deinit(&metrics);
    buf_deinit(&out);
    buf_deinit(&again);
    sample_deinit(&sample);
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    struct error err;
    struct sample sample;
    bool has_failed = true;
    sample_init(&sample, 0, 100);
    for (int64_t n = 0; has_failed; n++) {
        struct buf out = {0};
        struct parquet_file_metrics metrics = {0};
        assert_true(n < 5000);
        alloc_fail_after(n);
        enum status status = write_file(&sample.batch, 2, sink_to_buf(&out), &metrics, &err);
        has_failed = !alloc_fail_is_due();
        alloc_fail_after(-1);
        /* A failure may strike a buffer that was only growing ahead; else the file is whole. */
        assert_int_equal(status, has_failed && status != STATUS_OK ? STATUS_NO_MEMORY : STATUS_OK);
        assert_true(status != STATUS_OK || out.length == metrics.file_bytes);
        parquet_file_metrics_deinit(&metrics);
        buf_deinit(&out);
    }
    sample_deinit(&sample);
}

struct failing_sink {
    int writes_left;
};

static enum status fail_write(void *context, const void *data, size_t bytes, struct error *err)
{
    struct failing_sink *sink = context;
    (void)data;
    (void)bytes;
    if (sink->writes_left-- > 0)
        return STATUS_OK;
    return error_set(err, STATUS_NO_SPACE, "the volume is full");
}

static void test_every_write_may_fail(void **state)
{
    (void)state;
    struct error err;
    struct sample sample;
    enum status status = STATUS_NO_SPACE;
    sample_init(&sample, 0, 100);
    for (int n = 0; status != STATUS_OK; n++) {
        struct failing_sink failing = {.writes_left = n};
        struct parquet_file_metrics metrics = {0};
        assert_true(n < 1000);
        status = write_file(&sample.batch, 1, (struct sink){fail_write, &failing}, &metrics, &err);
        assert_true(status == STATUS_OK || status == STATUS_NO_SPACE);
        parquet_file_metrics_deinit(&metrics);
    }
    sample_deinit(&sample);
}

static enum status create(struct arrow_field *field, uint32_t count)
{
    struct error err;
    struct buf out = {0};
    struct parquet_writer *writer;
    struct parquet_options options = parquet_options_default();
    struct arrow_schema one = {.fields = field, .field_count = count};
    enum status status = parquet_writer_create(&one, &options, sink_to_buf(&out), &writer, &err);
    if (status == STATUS_OK)
        parquet_writer_destroy(writer);
    assert_int_equal(out.length, 0);
    return status;
}

static void test_schemas_are_checked(void **state)
{
    (void)state;
    struct arrow_field deep[40];
    for (uint32_t i = 0; i < COUNT_OF(deep); i++)
        deep[i] = (struct arrow_field){.name = "element",
                                       .type = ARROW_LIST,
                                       .child_count = 1,
                                       .children = i + 1 < COUNT_OF(deep) ? &deep[i + 1] : NULL};
    deep[39] = (struct arrow_field){.name = "element", .type = ARROW_INT64};
    struct arrow_field null = {.name = "x", .type = ARROW_NULL};
    struct arrow_field hollow = {.name = "x", .type = ARROW_STRUCT};
    struct arrow_field keys[2] = {{.name = "key", .type = ARROW_UTF8, .is_nullable = true},
                                  {.name = "value", .type = ARROW_UTF8}};
    struct arrow_field map = {.name = "x", .type = ARROW_MAP, .children = keys, .child_count = 2};
    assert_status(STATUS_USAGE, create(NULL, 0));
    assert_status(STATUS_USAGE, create(deep, 1));
    assert_status(STATUS_USAGE, create(&null, 1));
    assert_status(STATUS_USAGE, create(&hollow, 1));
    assert_status(STATUS_USAGE, create(&map, 1));
    assert_status(STATUS_OK, create(deep + 10, 1));
}

static void test_null_where_none_may_be(void **state)
{
    (void)state;
    struct error err;
    struct sample sample;
    struct buf out = {0};
    struct parquet_file_metrics metrics;
    static const uint8_t bits[] = {0xff, 0xfb, 0xff};
    for (int column = 0; column < FIELD_COUNT; column++) {
        sample_init(&sample, 1, 20);
        struct arrow_array *array = &sample.batch.columns[column];
        if (column == PAIRS)
            array = &array->children[0]; /* a key */
        array->validity = bits;
        array->null_count = 1;
        if (column == WORD || column == DOUBLE)
            assert_ok(write_file(&sample.batch, 1, sink_to_buf(&out), &metrics, &err));
        else
            assert_status(STATUS_INVALID,
                          write_file(&sample.batch, 1, sink_to_buf(&out), &metrics, &err));
        if (column == WORD || column == DOUBLE)
            parquet_file_metrics_deinit(&metrics);
        sample_deinit(&sample);
    }
    buf_deinit(&out);
}

static void test_other_schemas_are_refused(void **state)
{
    (void)state;
    struct error err;
    struct sample sample;
    struct buf out = {0};
    struct parquet_file_metrics metrics;
    struct arrow_field other[FIELD_COUNT];
    struct arrow_schema other_schema = {.fields = other, .field_count = FIELD_COUNT};
    sample_init(&sample, 0, 5);
    sample.batch.schema = &other_schema;
    for (int change = 0; change < 4; change++) {
        memcpy(other, fields, sizeof fields);
        other_schema.field_count = FIELD_COUNT - (change == 0);
        if (change == 1)
            other[N].type = ARROW_TIMESTAMP_US;
        else if (change == 2)
            other[N].field_id = 9;
        else if (change == 3)
            other[N].name = "other"; /* the id is the same: another name is as good */
        if (change < 3)
            assert_status(STATUS_INVALID,
                          write_file(&sample.batch, 1, sink_to_buf(&out), &metrics, &err));
        else
            assert_ok(write_file(&sample.batch, 1, sink_to_buf(&out), &metrics, &err));
    }
    parquet_file_metrics_deinit(&metrics);
    buf_deinit(&out);
    sample_deinit(&sample);
}

/* A dictionary in one batch, none in the next, and another at the very same address after that, are
 * the same to the file as three plain ones. */
static void test_dictionaries_come_and_go(void **state)
{
    (void)state;
    static const char *const words[3][2] = {{"a", "b"}, {"b", "c"}, {"x", "a"}};
    static struct arrow_field field = {.name = "w", .type = ARROW_UTF8};
    static const struct arrow_schema one = {.fields = &field, .field_count = 1};
    static const int32_t indices[] = {1, 0, 1, 1};
    struct error err;
    struct buf files[2] = {0};
    for (int mode = 0; mode < 2; mode++) {
        struct parquet_options options = parquet_options_default();
        struct parquet_writer *writer;
        struct parquet_file_metrics metrics;
        struct arrow_array dictionary;
        assert_ok(parquet_writer_create(&one, &options, sink_to_buf(&files[mode]), &writer, &err));
        for (int round = 0; round < 3; round++) {
            char bytes[5] = "";
            int32_t offsets[] = {0, 1, 2, 3, 4};
            bool is_plain = mode == 1 || round == 1;
            for (int i = 0; i < 4; i++)
                bytes[i] = words[round][is_plain ? indices[i] : i % 2][0];
            dictionary = (struct arrow_array){
                .length = is_plain ? 4 : 2, .offsets = offsets, .values = bytes};
            struct arrow_array column = {.length = 4, .values = indices, .dictionary = &dictionary};
            struct arrow_batch batch = {
                .schema = &one, .length = 4, .columns = is_plain ? &dictionary : &column};
            assert_ok(parquet_writer_write(writer, &batch, &err));
        }
        assert_ok(parquet_writer_finish(writer, &metrics, &err));
        assert_int_equal(metrics.columns[0].upper.data[0], 'x');
        parquet_file_metrics_deinit(&metrics);
        parquet_writer_destroy(writer);
    }
    assert_int_equal(files[0].length, files[1].length);
    assert_memory_equal(files[0].data, files[1].data, files[0].length);
    buf_deinit(&files[0]);
    buf_deinit(&files[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hybrid_round_trip),
        cmocka_unit_test(test_hybrid_prefers_runs),
        cmocka_unit_test(test_bounds_hold),
        cmocka_unit_test(test_extent_of_strings),
        cmocka_unit_test(test_metrics_add_up),
        cmocka_unit_test(test_every_allocation_may_fail),
        cmocka_unit_test(test_every_write_may_fail),
        cmocka_unit_test(test_schemas_are_checked),
        cmocka_unit_test(test_null_where_none_may_be),
        cmocka_unit_test(test_other_schemas_are_refused),
        cmocka_unit_test(test_dictionaries_come_and_go),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
