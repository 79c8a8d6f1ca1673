/* SPDX-License-Identifier: Apache-2.0
 *
 * Dictionaries that change from batch to batch, through a file and back.
 */
#include "arrow_sample.h"

enum { WORD, BOOL, LIST, STRUCT, COLUMN_COUNT };

static struct arrow_field text = {.name = "element", .type = ARROW_UTF8, .is_nullable = true};
static struct arrow_field members[] = {
    {.name = "number", .type = ARROW_INT64, .is_nullable = true},
    {.name = "texts", .type = ARROW_LIST, .is_nullable = true, .children = &text, .child_count = 1},
};
static struct arrow_field columns[COLUMN_COUNT] = {
    {.name = "word", .type = ARROW_UTF8, .is_nullable = true, .is_dictionary = true},
    {.name = "bool", .type = ARROW_BOOL, .is_nullable = true, .is_dictionary = true},
    {.name = "list",
     .type = ARROW_LIST,
     .is_nullable = true,
     .is_dictionary = true,
     .children = &text,
     .child_count = 1},
    {.name = "struct",
     .type = ARROW_STRUCT,
     .is_nullable = true,
     .is_dictionary = true,
     .children = members,
     .child_count = COUNT_OF(members)},
};
static const struct arrow_schema changing = {.fields = columns, .field_count = COLUMN_COUNT};
static const struct arrow_field root = {
    .name = "rows", .type = ARROW_STRUCT, .children = columns, .child_count = COLUMN_COUNT};

static int text_width; /* of the texts in lists, at least */

static void append_texts(struct arrow_builder *list, int64_t count, int64_t number)
{
    char word[256];
    for (int64_t i = 0; i < count; i++) {
        int length = snprintf(word, sizeof word, "%0*lld", text_width, (long long)(number + i));
        arrow_append_bytes(&list->children[0], word, (size_t)length);
    }
    arrow_close_list(list);
}

/* A dictionary of three values, the second of which is the first of the next batch; five rows. */
static void append_batch(struct arrow_builder *rows, int64_t number)
{
    for (int64_t i = number; i < number + 2; i++) {
        char word[32];
        int length = snprintf(word, sizeof word, "word %lld", (long long)i);
        arrow_append_bytes(rows->children[WORD].dictionary, word, (size_t)length);
        arrow_append_bool(rows->children[BOOL].dictionary, i % 2);
        append_texts(rows->children[LIST].dictionary, i % 3, i);
        struct arrow_builder *structs = rows->children[STRUCT].dictionary;
        arrow_append_i64(&structs->children[0], i);
        append_texts(&structs->children[1], 2, i);
        arrow_close_struct(structs);
    }
    for (int column = 0; column < COLUMN_COUNT; column++) {
        arrow_append_null(rows->children[column].dictionary);
        for (int32_t row = 0; row < 4; row++)
            arrow_append_index(&rows->children[column], row % 3);
        arrow_append_null(&rows->children[column]);
    }
    for (int row = 0; row < 5; row++)
        arrow_close_struct(rows);
}

static enum status make_batch(struct arrow_builder *rows, int64_t number, struct arrow_batch *batch,
                              struct error *err)
{
    arrow_builder_clear(rows);
    append_batch(rows, number);
    return arrow_builder_failed(rows) ? error_set(err, STATUS_NO_MEMORY, "rows")
                                      : arrow_builder_batch(rows, &changing, batch, err);
}

static enum status write_batches(enum arrow_container container, int64_t count, struct buf *out,
                                 struct error *err)
{
    struct arrow_builder rows;
    struct arrow_writer *writer;
    TRY(arrow_builder_init(&rows, &root, err));
    enum status status =
        arrow_writer_create(&changing, container, ARROW_ZSTD, sink_to_buf(out), &writer, err);
    if (status != STATUS_OK) {
        arrow_builder_deinit(&rows);
        return status;
    }
    for (int64_t i = 0; status == STATUS_OK && i < count; i++) {
        struct arrow_batch batch;
        status = make_batch(&rows, i, &batch, err);
        if (status != STATUS_OK)
            break;
        status = arrow_writer_write(writer, &batch, err);
        arrow_batch_deinit(&batch);
    }
    if (status == STATUS_OK)
        status = arrow_writer_finish(writer, err);
    arrow_writer_destroy(writer);
    arrow_builder_deinit(&rows);
    return status;
}

/* `out_lengths`: of the dictionaries in the end. */
static enum status read_batches(const struct buf *bytes, const struct arrow_limits *limits,
                                int64_t out_lengths[COLUMN_COUNT], struct error *err)
{
    struct arrow_file *file;
    struct span span = span_of(bytes->data, bytes->length);
    TRY(arrow_file_open(byte_source_of_span(&span), limits, &file, err));
    struct arrow_batch batch;
    enum status status;
    while ((status = arrow_file_next(file, &batch, err)) == STATUS_OK) {
        for (int column = 0; column < COLUMN_COUNT; column++)
            out_lengths[column] = batch.columns[column].dictionary->length;
        arrow_batch_deinit(&batch);
    }
    arrow_file_close(file);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static void assert_slots_equal(const struct arrow_field *field, const struct arrow_array *a,
                               const struct arrow_array *b)
{
    struct buf text_a = {0}, text_b = {0};
    for (int64_t i = 0; i < b->length; i++) {
        put_slot(&text_a, field, a, i);
        put_slot(&text_b, field, b, i);
    }
    assert_int_equal(text_a.length, text_b.length);
    assert_memory_equal(text_a.data, text_b.data, text_a.length);
    buf_deinit(&text_a);
    buf_deinit(&text_b);
}

static void assert_rows_come_back(const struct buf *bytes, int64_t count)
{
    struct error err;
    struct arrow_file *file;
    struct arrow_builder rows;
    struct arrow_limits limits = arrow_limits_default();
    struct span span = span_of(bytes->data, bytes->length);
    assert_ok(arrow_builder_init(&rows, &root, &err));
    assert_ok(arrow_file_open(byte_source_of_span(&span), &limits, &file, &err));
    for (int64_t i = 0; i < count; i++) {
        struct arrow_batch got, expected;
        assert_ok(arrow_file_next(file, &got, &err));
        assert_ok(make_batch(&rows, i, &expected, &err));
        assert_int_equal(got.length, expected.length);
        for (int column = 0; column < COLUMN_COUNT; column++)
            assert_slots_equal(&columns[column], &got.columns[column], &expected.columns[column]);
        arrow_batch_deinit(&expected);
        arrow_batch_deinit(&got);
    }
    arrow_file_close(file);
    arrow_builder_deinit(&rows);
}

void test_files_have_each_value_once(void **state)
{
    (void)state;
    enum { BATCHES = 200 };
    static const int64_t expected[COLUMN_COUNT] = {[WORD] = BATCHES + 2,
                                                   [BOOL] = 3,
                                                   [LIST] = BATCHES + 1 - (BATCHES / 3 + 1) + 2,
                                                   [STRUCT] = BATCHES + 2};
    for (int container = ARROW_STREAM; container <= ARROW_FILE; container++) {
        struct error err;
        struct buf out = {0};
        int64_t lengths[COLUMN_COUNT] = {0};
        struct arrow_limits limits = arrow_limits_default();
        assert_ok(write_batches((enum arrow_container)container, BATCHES, &out, &err));
        assert_rows_come_back(&out, BATCHES);
        assert_ok(read_batches(&out, &limits, lengths, &err));
        for (int column = 0; column < COLUMN_COUNT; column++)
            assert_int_equal(lengths[column], container == ARROW_FILE ? expected[column] : 3);
        buf_deinit(&out);
    }
}

void test_grown_dictionaries_are_bounded(void **state)
{
    (void)state;
    struct error err;
    struct buf out = {0};
    int64_t lengths[COLUMN_COUNT];
    struct arrow_limits limits = arrow_limits_default();
    text_width = 200;
    assert_ok(write_batches(ARROW_FILE, 200, &out, &err));
    text_width = 0;
    limits.metadata_bytes_max = 1 << 15;
    limits.body_bytes_max = 1 << 16;
    assert_ok(read_batches(&out, &limits, lengths, &err));
    limits.body_bytes_max = 1 << 13;
    assert_status(STATUS_LIMIT, read_batches(&out, &limits, lengths, &err));
    assert_non_null(strstr(err.message, "a dictionary of more than"));
    buf_deinit(&out);
}

void test_dictionary_allocations_may_fail(void **state)
{
    (void)state;
    for (int container = ARROW_STREAM; container <= ARROW_FILE; container++) {
        struct error err;
        struct arrow_limits limits = arrow_limits_default();
        int64_t lengths[COLUMN_COUNT];
        bool is_done = false;
        for (int64_t n = 0; !is_done; n++) {
            struct buf out = {0};
            alloc_fail_after(n);
            enum status status = write_batches((enum arrow_container)container, 4, &out, &err);
            if (status == STATUS_OK)
                status = read_batches(&out, &limits, lengths, &err);
            alloc_fail_after(-1);
            is_done = status == STATUS_OK;
            assert_true(is_done || status == STATUS_NO_MEMORY);
            buf_deinit(&out);
        }
    }
}
