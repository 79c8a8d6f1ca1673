/* SPDX-License-Identifier: Apache-2.0 */
#include "../unit.h"
#include "format/arrow/flatbuf_internal.h"
#include "format/arrow/arrow.h"

/* A schema in the shape of a span's: plain columns, a list of structs with a map in it, and
 * resource columns whose dictionaries share one index buffer. */
static struct arrow_field attribute_children[2] = {
    {.name = "key", .type = ARROW_UTF8, .is_dictionary = true, .field_id = 11},
    {.name = "value", .type = ARROW_UTF8, .is_nullable = true, .field_id = 12},
};
static struct arrow_field event_children[2] = {
    {.name = "time", .type = ARROW_TIMESTAMP_US, .is_instant = true, .field_id = 15},
    {.name = "attributes",
     .type = ARROW_MAP,
     .is_nullable = true,
     .children = attribute_children,
     .child_count = 2,
     .field_id = 16},
};
static struct arrow_field event_element[1] = {
    {.name = "element",
     .type = ARROW_STRUCT,
     .children = event_children,
     .child_count = 2,
     .field_id = 14},
};
static struct arrow_field fields[] = {
    {.name = "n", .type = ARROW_INT64, .field_id = 1},
    {.name = "text", .type = ARROW_UTF8, .is_nullable = true, .field_id = 2},
    {.name = "flag", .type = ARROW_BOOL, .is_nullable = true, .field_id = 3},
    {.name = "id", .type = ARROW_FIXED, .byte_width = 3, .is_nullable = true, .field_id = 4},
    {.name = "resource",
     .type = ARROW_MAP,
     .is_nullable = true,
     .is_dictionary = true,
     .children = attribute_children,
     .child_count = 2,
     .field_id = 5},
    {.name = "service",
     .type = ARROW_UTF8,
     .is_nullable = true,
     .is_dictionary = true,
     .field_id = 6},
    {.name = "events",
     .type = ARROW_LIST,
     .is_nullable = true,
     .children = event_element,
     .child_count = 1,
     .field_id = 7},
};
enum { N, TEXT, FLAG, ID, RESOURCE, SERVICE, EVENTS, FIELD_COUNT };
static const struct arrow_schema schema = {.fields = fields, .field_count = FIELD_COUNT};

struct sample {
    struct arrow_builder builders[FIELD_COUNT];
    struct arrow_batch batch;
};

static void append_attributes(struct arrow_builder *map, int64_t count, int64_t seed)
{
    char text[64];
    for (int64_t i = 0; i < count; i++) {
        int length = snprintf(text, sizeof text, "key%d", (int)i);
        arrow_append_memo(&map->children[0], text, (size_t)length);
        length = snprintf(text, sizeof text, "value%d", (int)(seed % 5));
        if ((seed + i) % 4)
            arrow_append_bytes(&map->children[1], text, (size_t)length);
        else
            arrow_append_null(&map->children[1]);
    }
    arrow_close_list(map);
}

static void append_row(struct arrow_builder *b, int64_t i)
{
    char text[32];
    size_t length = (size_t)snprintf(text, sizeof text, "row %d", (int)i);
    arrow_append_i64(&b[N], i);
    if (i % 3 == 1) {
        arrow_append_null(&b[TEXT]);
        arrow_append_null(&b[FLAG]);
        arrow_append_null(&b[ID]);
        arrow_append_null(&b[EVENTS]);
    } else {
        arrow_append_bytes(&b[TEXT], text, length);
        arrow_append_bool(&b[FLAG], i % 2);
        arrow_append_bytes(&b[ID], "abc", 3);
        struct arrow_builder *event = &b[EVENTS].children[0];
        for (int64_t e = 0; e < i % 4; e++) {
            arrow_append_i64(&event->children[0], i * 1000 + e);
            if (e == 2)
                arrow_append_null(&event->children[1]);
            else
                append_attributes(&event->children[1], e, i);
            arrow_close_struct(event);
        }
        arrow_close_list(&b[EVENTS]);
    }
    if (i % 5 == 0) {
        append_attributes(b[RESOURCE].dictionary, i % 3, i);
        length = (size_t)snprintf(text, sizeof text, "service %d", (int)i);
        arrow_append_bytes(b[SERVICE].dictionary, text, length);
    }
    arrow_append_index(&b[RESOURCE], (int32_t)(b[RESOURCE].dictionary->length - 1));
}

static void sample_view(struct sample *sample)
{
    struct error err;
    arrow_batch_deinit(&sample->batch);
    sample->batch = (struct arrow_batch){.schema = &schema, .length = sample->builders[N].length};
    sample->batch.columns =
        arena_alloc_zero(&sample->batch.arena, FIELD_COUNT, sizeof *sample->batch.columns);
    struct arrow_array *columns = sample->batch.columns;
    for (int i = 0; i < FIELD_COUNT; i++)
        assert_ok(
            arrow_builder_view(&sample->builders[i], &sample->batch.arena, &columns[i], &err));
    columns[SERVICE].values = columns[RESOURCE].values;
    columns[SERVICE].length = columns[RESOURCE].length;
    for (int i = 0; i < FIELD_COUNT; i++)
        assert_ok(arrow_array_validate(&fields[i], &columns[i], &err));
}

static void sample_init(struct sample *sample, int64_t rows)
{
    struct error err;
    *sample = (struct sample){0};
    for (int i = 0; i < FIELD_COUNT; i++)
        assert_ok(arrow_builder_init(&sample->builders[i], &fields[i], &err));
    for (int64_t i = 0; i < rows; i++)
        append_row(sample->builders, i);
    sample_view(sample);
}

static void sample_deinit(struct sample *sample)
{
    for (int i = 0; i < FIELD_COUNT; i++)
        arrow_builder_deinit(&sample->builders[i]);
    arrow_batch_deinit(&sample->batch);
}

/* ---- one slot as text, for comparing arrays whatever their layout ---- */

static void put_slot(struct buf *out, const struct arrow_field *field,
                     const struct arrow_array *array, int64_t i)
{
    if (!arrow_is_valid(array, i)) {
        buf_put_text(out, "null");
        return;
    }
    if (field->is_dictionary) {
        struct arrow_field values = *field;
        values.is_dictionary = false;
        put_slot(out, &values, array->dictionary, ((const int32_t *)array->values)[i]);
        return;
    }
    switch (field->type) {
    case ARROW_INT64:
    case ARROW_TIMESTAMP_US:
        buf_format(out, "%lld", (long long)((const int64_t *)array->values)[i]);
        break;
    case ARROW_BOOL:
        buf_put_text(out, arrow_bit(array->values, i) ? "true" : "false");
        break;
    case ARROW_FIXED:
        buf_put(out, (const char *)array->values + i * field->byte_width,
                (size_t)field->byte_width);
        break;
    case ARROW_UTF8:
        buf_format(out, "'%.*s'", array->offsets[i + 1] - array->offsets[i],
                   (const char *)array->values + array->offsets[i]);
        break;
    default: {
        int64_t first = field->type == ARROW_STRUCT ? i : array->offsets[i];
        int64_t end = field->type == ARROW_STRUCT ? i + 1 : array->offsets[i + 1];
        buf_put_text(out, "[");
        for (int64_t slot = first; slot < end; slot++) {
            for (uint32_t child = 0; child < field->child_count; child++) {
                put_slot(out, &field->children[child], &array->children[child], slot);
                buf_put_text(out, ",");
            }
        }
        buf_put_text(out, "]");
    }
    }
}

static void put_row(struct buf *out, const struct arrow_batch *batch, int64_t row)
{
    for (uint32_t i = 0; i < FIELD_COUNT; i++) {
        put_slot(out, &fields[i], &batch->columns[i], row);
        buf_put_text(out, ";");
    }
    buf_put_byte(out, 0);
}

static void assert_rows_equal(const struct arrow_batch *a, int64_t row_a,
                              const struct arrow_batch *b, int64_t row_b)
{
    struct buf text_a = {0}, text_b = {0};
    put_row(&text_a, a, row_a);
    put_row(&text_b, b, row_b);
    assert_string_equal(text_a.data, text_b.data);
    buf_deinit(&text_a);
    buf_deinit(&text_b);
}

/* ---- tests ---- */

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

/* Reads everything that a payload holds and looks at each value. */
static enum status read_all(struct span bytes, struct buf *text, struct error *err)
{
    struct arrow_limits limits = arrow_limits_default();
    struct arena arena = {0};
    struct arrow_schema got;
    struct arrow_reader *reader = NULL;
    size_t used;
    limits.body_bytes_max = 1 << 20;
    enum status status = arrow_ipc_read_schema(bytes, &limits, &arena, &got, &used, err);
    if (status == STATUS_OK)
        status = arrow_reader_create(&got, span_of(bytes.data + used, bytes.length - used), &limits,
                                     &reader, err);
    while (status == STATUS_OK) {
        struct arrow_batch batch;
        status = arrow_reader_next(reader, &batch, err);
        if (status != STATUS_OK)
            break;
        for (uint32_t i = 0; i < got.field_count; i++)
            for (int64_t row = 0; row < batch.length; row++)
                put_slot(text, &got.fields[i], &batch.columns[i], row);
        arrow_batch_deinit(&batch);
    }
    arrow_reader_destroy(reader);
    arena_deinit(&arena);
    return status;
}

/* TA20: a damaged stream is refused or read, and never read past its end. Each copy is a block of
 * its own, so that the sanitizer sees a step outside. */
static void test_damage_is_refused_or_harmless(void **state)
{
    (void)state;
    struct error err;
    for (int compression = ARROW_UNCOMPRESSED; compression <= ARROW_ZSTD; compression += 2) {
        struct sample sample;
        struct buf out = {0}, text = {0};
        sample_init(&sample, 10);
        assert_ok(arrow_ipc_write_schema(&schema, &out, &err));
        assert_ok(arrow_ipc_write_batch(&schema, &sample.batch, (enum arrow_compression)compression,
                                        &out, &err));
        assert_status(STATUS_NOT_FOUND, read_all(span_of(out.data, out.length), &text, &err));
        for (size_t length = 0; length < out.length; length++) {
            uint8_t *copy = mem_copy(out.data, length);
            buf_clear(&text);
            assert_true(read_all(span_of(copy, length), &text, &err) != STATUS_OK);
            mem_free(copy);
        }
        for (size_t at = 0; at < out.length * 8; at++) {
            uint8_t *copy = mem_copy(out.data, out.length);
            copy[at / 8] ^= (uint8_t)(1u << (at % 8));
            buf_clear(&text);
            assert_true(read_all(span_of(copy, out.length), &text, &err) != STATUS_OK);
            mem_free(copy);
        }
        for (size_t at = 0; at < out.length; at++) { /* one byte removed, and bytes of all ones */
            uint8_t *copy = mem_copy(out.data, out.length - 1);
            memmove(copy + at, out.data + at + 1, out.length - 1 - at);
            buf_clear(&text);
            (void)read_all(span_of(copy, out.length - 1), &text, &err);
            memcpy(copy, out.data, out.length - 1);
            memset(copy + at, 0xff, size_min(8, out.length - 1 - at));
            (void)read_all(span_of(copy, out.length - 1), &text, &err);
            mem_free(copy);
        }
        buf_deinit(&out);
        buf_deinit(&text);
        sample_deinit(&sample);
    }
}

/* The RecordBatch message, behind the dictionaries. */
static size_t last_body(const struct buf *out)
{
    size_t body = 0;
    for (size_t at = 0; at < out->length;) {
        body = at + 8 + get_le32(out->data + at + 4);
        size_t root = at + 8 + get_le32(out->data + at + 8);
        size_t vtable = root - get_le32(out->data + root);
        at = body + get_le64(out->data + root + get_le16(out->data + vtable + 4 + 2 * 3));
    }
    return body;
}

static enum status read_next(const struct buf *payload, const struct arrow_limits *limits)
{
    struct error err;
    struct arrow_reader *reader;
    struct arrow_batch got;
    assert_ok(arrow_reader_create(&schema, span_of(payload->data, payload->length), limits, &reader,
                                  &err));
    enum status status = arrow_reader_next(reader, &got, &err);
    if (status == STATUS_OK)
        arrow_batch_deinit(&got);
    arrow_reader_destroy(reader);
    return status;
}

/* TA20: what a compressed buffer claims to become. */
static void test_claimed_sizes_are_bounded(void **state)
{
    (void)state;
    struct error err;
    struct sample sample;
    struct arrow_limits limits = arrow_limits_default();
    sample_init(&sample, 100);
    for (int compression = ARROW_LZ4_FRAME; compression <= ARROW_ZSTD; compression++) {
        struct buf out = {0};
        assert_ok(arrow_ipc_write_batch(&schema, &sample.batch, (enum arrow_compression)compression,
                                        &out, &err));
        uint8_t *claim = out.data + last_body(&out); /* of `n`, 800 bytes */
        assert_int_equal(get_le64(claim), 800);
        static const struct {
            int64_t claim;
            enum status status;
        } cases[] = {
            {INT64_C(1) << 62, STATUS_TOO_LARGE},
            {INT64_MAX, STATUS_TOO_LARGE},
            {-2, STATUS_INVALID},
            {INT64_MIN, STATUS_INVALID},
            {799, STATUS_INVALID},
            {801, STATUS_INVALID},
            {-1, STATUS_INVALID},
            {800, STATUS_OK},
        };
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
            put_le64(claim, (uint64_t)cases[i].claim);
            assert_status(cases[i].status, read_next(&out, &limits));
        }
        buf_deinit(&out);
    }
    sample_deinit(&sample);
}

static void test_expansion_is_bounded(void **state)
{
    (void)state;
    struct error err;
    static int64_t zeros[2000];
    static struct arrow_field numbers[] = {{.name = "a", .type = ARROW_INT64},
                                           {.name = "b", .type = ARROW_INT64}};
    static const struct arrow_schema two = {.fields = numbers, .field_count = 2};
    struct arrow_array columns[] = {{.length = 1000, .values = zeros},
                                    {.length = 1000, .values = zeros + 1000}};
    struct arrow_batch batch = {.schema = &two, .length = 1000, .columns = columns}, got;
    struct arrow_limits limits = arrow_limits_default();
    struct buf out = {0};
    assert_ok(arrow_ipc_write_batch(&two, &batch, ARROW_ZSTD, &out, &err));
    for (size_t bytes = 15999; bytes <= 16000; bytes++) { /* both columns together */
        struct arrow_reader *reader;
        limits.body_bytes_max = bytes;
        assert_ok(arrow_reader_create(&two, span_of(out.data, out.length), &limits, &reader, &err));
        enum status status = arrow_reader_next(reader, &got, &err);
        assert_int_equal(status, bytes == 16000 ? STATUS_OK : STATUS_TOO_LARGE);
        if (status == STATUS_OK)
            arrow_batch_deinit(&got);
        arrow_reader_destroy(reader);
    }
    buf_deinit(&out);
}

/* A slot that points out of its table, or a table out of its buffer, is a fault. */
static void test_flatbuffers_are_checked(void **state)
{
    (void)state;
    /* root -> 12; vtable at 4: 6 bytes, table of 12, slot 0 at 4; table at 12 -> vtable. */
    static const uint8_t whole[24] = {12, 0, 0, 0, 6, 0, 12, 0, 4, 0, 0, 0,
                                      8,  0, 0, 0, 1, 2, 3,  4, 5, 6, 7, 8};
    static const struct {
        size_t at;
        uint8_t byte;
    } faults[] = {
        {0, 0},   /* no root */
        {0, 21},  /* root behind the end */
        {4, 2},   /* vtable too short for its own header */
        {4, 5},   /* of an odd size */
        {4, 200}, /* longer than the buffer */
        {6, 3},   /* table shorter than its way back */
        {6, 13},  /* longer than the buffer */
        {6, 11},  /* the slot's eight bytes do not fit */
        {8, 3},   /* the slot lies in the way back */
        {8, 5},   /* and here it ends outside */
        {12, 13}, /* vtable before the buffer */
    };
    for (size_t i = 0; i <= COUNT_OF(faults); i++) {
        uint8_t *copy = mem_copy(whole, sizeof whole);
        if (i < COUNT_OF(faults))
            copy[faults[i].at] = faults[i].byte;
        struct flat_reader reader = {.data = copy, .length = sizeof whole, .tables_left = 10};
        struct flat_table table = flat_root(&reader);
        int64_t number = flat_number(&reader, &table, 0, 8, -1);
        assert_int_equal(reader.failed, i < COUNT_OF(faults));
        assert_true(i < COUNT_OF(faults) || number == 0x0807060504030201);
        assert_int_equal(flat_number(&reader, &table, 1, 8, -1), -1);
        mem_free(copy);
    }
}

/* Arrays that break a rule, written as they are: the reader refuses each. */
static void test_broken_arrays_are_refused(void **state)
{
    (void)state;
    struct error err;
    struct arrow_limits limits = arrow_limits_default();
    int32_t numbers[11];
    static const uint8_t key_bits[] = {0xfe, 0xff}, no_bits[] = {0, 0};
    static const char text[200] = "\xff\xff\xff\xff";
    for (int fault = 0; fault < 8; fault++) {
        struct sample sample;
        struct buf out = {0};
        sample_init(&sample, 10);
        struct arrow_array *columns = sample.batch.columns;
        struct arrow_array *attributes = columns[RESOURCE].dictionary;
        memcpy(numbers, columns[TEXT].offsets, sizeof numbers);
        switch (fault) {
        case 0: /* nothing is wrong */
            break;
        case 1:
            numbers[5] = numbers[6] + 1;
            columns[TEXT].offsets = numbers;
            break;
        case 2:
            columns[TEXT].values = text;
            break;
        case 3:
            memcpy(numbers, columns[RESOURCE].values, 10 * sizeof *numbers);
            numbers[4] = (int32_t)attributes->length;
            columns[RESOURCE].values = columns[SERVICE].values = numbers;
            break;
        case 4: /* a key that is null */
            attributes->children[0].validity = key_bits;
            attributes->children[0].null_count = 1;
            break;
        case 5: /* a required column with a null */
            columns[N].validity = key_bits;
            columns[N].null_count = 1;
            break;
        case 6: /* one column shorter than the batch */
            columns[FLAG].length = 9;
            columns[FLAG].validity = NULL;
            columns[FLAG].null_count = 0;
            break;
        case 7: /* a null in the dictionary itself */
            columns[SERVICE].dictionary->validity = no_bits;
            columns[SERVICE].dictionary->null_count = 2;
            break;
        }
        assert_ok(arrow_ipc_write_batch(&schema, &sample.batch, ARROW_UNCOMPRESSED, &out, &err));
        enum status status = read_next(&out, &limits);
        if (status != (fault ? STATUS_INVALID : STATUS_OK))
            fail_msg("fault %d: %s", fault, status_name(status));
        buf_deinit(&out);
        sample_deinit(&sample);
    }
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

static void test_validate_names_the_fault(void **state)
{
    (void)state;
    struct error err;
    struct sample sample;
    sample_init(&sample, 10);
    struct arrow_array *columns = sample.batch.columns;

    int32_t indices[10] = {0};
    indices[9] = 2; /* there are two entries */
    struct arrow_array array = columns[SERVICE];
    array.values = indices;
    assert_status(STATUS_INVALID, arrow_array_validate(&fields[SERVICE], &array, &err));
    indices[9] = -1;
    assert_status(STATUS_INVALID, arrow_array_validate(&fields[SERVICE], &array, &err));
    indices[9] = 1;
    assert_ok(arrow_array_validate(&fields[SERVICE], &array, &err));

    int32_t offsets[11];
    array = columns[TEXT];
    memcpy(offsets, array.offsets, sizeof offsets);
    array.offsets = offsets;
    assert_ok(arrow_array_validate(&fields[TEXT], &array, &err));
    offsets[3]++; /* now row 1, a null, is still empty, but row 3 begins later */
    assert_ok(arrow_array_validate(&fields[TEXT], &array, &err));
    offsets[3] = offsets[4] + 1;
    assert_status(STATUS_INVALID, arrow_array_validate(&fields[TEXT], &array, &err));
    offsets[3] = -1;
    assert_status(STATUS_INVALID, arrow_array_validate(&fields[TEXT], &array, &err));

    uint8_t valid[2] = {0xff, 0xfe};
    array = columns[N];
    array.validity = valid;
    assert_status(STATUS_INVALID, arrow_array_validate(&fields[N], &array, &err));

    array = columns[EVENTS];
    memcpy(offsets, array.offsets, sizeof offsets);
    array.offsets = offsets;
    offsets[10]++;
    assert_status(STATUS_INVALID, arrow_array_validate(&fields[EVENTS], &array, &err));
    sample_deinit(&sample);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_builders_build),
        cmocka_unit_test(test_truncate_is_as_if_never_appended),
        cmocka_unit_test(test_clear_forgets_dictionaries),
        cmocka_unit_test(test_failed_appends_are_taken_back),
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
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
