/* SPDX-License-Identifier: Apache-2.0
 *
 * The C data and stream interfaces: rows out and back in, who frees what and when, hostile structs.
 * Run under ASan it also shows that nothing is freed twice or never.
 */
#include <errno.h>

#include "arrow_sample.h"

enum { ROWS = 50 };

/* Rows in a batch that owns its memory. */
static struct arrow_batch owned_rows(const struct sample *sample)
{
    struct error err;
    struct arrow_row rows[ROWS];
    const struct arrow_batch *batches[] = {&sample->batch};
    struct arrow_batch out;
    for (uint32_t i = 0; i < ROWS; i++)
        rows[i] = (struct arrow_row){.row = i};
    assert_ok(arrow_gather(batches, 1, rows, ROWS, &out, &err));
    return out;
}

static void assert_same_rows(const struct arrow_batch *a, const struct arrow_batch *b)
{
    assert_int_equal(a->length, b->length);
    for (int64_t i = 0; i < a->length; i++)
        assert_rows_equal(a, i, b, i);
}

/* ---- out and in ---- */

static void test_rows_come_back(void **state)
{
    (void)state;
    struct error err;
    struct sample sample;
    struct ArrowSchema exported;
    struct ArrowArray array;
    struct arena arena = {0};
    struct arrow_schema fields_back;
    struct arrow_batch back;
    struct arrow_limits limits = arrow_limits_default();
    sample_init(&sample, ROWS);
    struct arrow_batch batch = owned_rows(&sample);
    const void *ids = batch.columns[N].values;
    assert_ok(arrow_c_export_schema(&schema, &exported, &err));
    assert_ok(arrow_c_import_schema(&exported, &limits, &arena, &fields_back, &err));
    exported.release(&exported);
    assert_null(exported.release);
    assert_true(arrow_schema_equal(&schema, &fields_back));
    assert_ok(arrow_c_export_batch(&batch, &array, &err));
    assert_null(batch.columns);
    assert_ptr_equal(array.children[N]->buffers[1], ids);
    assert_ok(arrow_c_import_batch(&array, &fields_back, &limits, &back, &err));
    assert_null(array.release);
    assert_ptr_equal(back.columns[N].values, ids);
    assert_same_rows(&back, &sample.batch);
    /* And once more, from what was taken over. */
    assert_ok(arrow_c_export_batch(&back, &array, &err));
    assert_ok(arrow_c_import_batch(&array, &fields_back, &limits, &back, &err));
    assert_same_rows(&back, &sample.batch);
    arrow_batch_deinit(&back);
    arena_deinit(&arena);
    sample_deinit(&sample);
}

static void test_children_move_out(void **state)
{
    (void)state;
    struct error err;
    struct sample sample;
    struct ArrowArray array;
    struct ArrowSchema exported;
    sample_init(&sample, ROWS);
    struct arrow_batch batch = owned_rows(&sample);
    assert_ok(arrow_c_export_batch(&batch, &array, &err));
    struct ArrowArray text = *array.children[TEXT], words = *array.children[SERVICE]->dictionary;
    struct ArrowArray moved = array;
    array.children[TEXT]->release = NULL;
    array.children[SERVICE]->dictionary->release = NULL;
    array.release = NULL; /* what was moved is not released: by nobody */
    moved.release(&moved);
    assert_null(moved.release);
    assert_int_equal(((const int32_t *)text.buffers[1])[0], 0);
    assert_memory_equal(text.buffers[2], "row 0", 5);
    text.release(&text);
    assert_null(text.release);
    assert_memory_equal(words.buffers[2], "service 0", 9);
    words.release(&words);
    assert_ok(arrow_c_export_schema(&schema, &exported, &err));
    struct ArrowSchema events = *exported.children[EVENTS];
    exported.children[EVENTS]->release = NULL;
    exported.release(&exported);
    assert_string_equal(events.format, "+l");
    assert_string_equal(events.children[0]->children[1]->children[0]->name, "entries");
    events.release(&events);
    sample_deinit(&sample);
}

static void test_formats(void **state)
{
    (void)state;
    static const struct arrow_origin origins[] = {
        {.kind = ARROW_ORIGIN_UINT},
        {.kind = ARROW_ORIGIN_DECIMAL, .precision = 38, .scale = -2},
        {.kind = ARROW_ORIGIN_TIME, .unit = ARROW_NANOS},
        {.kind = ARROW_ORIGIN_TIMESTAMP, .unit = ARROW_MILLIS, .timezone = "Asia/Tokyo"},
        {.kind = ARROW_ORIGIN_DURATION, .unit = ARROW_SECONDS},
        {.kind = ARROW_ORIGIN_MONTH_DAY_NANO},
    };
    static const int32_t widths[] = {4, 16, 8, 8, 8, 16};
    static const char *const formats[] = {"I",   "d:38,-2,128", "ttn", "tsm:Asia/Tokyo",
                                          "tDs", "tin"};
    struct error err;
    struct arrow_limits limits = arrow_limits_default();
    for (size_t i = 0; i < COUNT_OF(origins); i++) {
        struct ArrowSchema exported;
        struct arena arena = {0};
        struct arrow_schema back;
        struct arrow_field field = {.name = "c",
                                    .type = ARROW_FIXED,
                                    .is_instant = origins[i].timezone != NULL,
                                    .byte_width = widths[i],
                                    .origin = &origins[i]};
        struct arrow_schema one = {.fields = &field, .field_count = 1};
        assert_ok(arrow_c_export_schema(&one, &exported, &err));
        assert_string_equal(exported.children[0]->format, formats[i]);
        assert_ok(arrow_c_import_schema(&exported, &limits, &arena, &back, &err));
        assert_true(arrow_schema_equal(&one, &back));
        exported.release(&exported);
        arena_deinit(&arena);
    }
}

/* ---- streams ---- */

struct batches {
    const struct sample *sample;
    int left, closed;
    enum status at_end;
};

static enum status next_batch(void *context, struct arrow_batch *out_batch, struct error *err)
{
    struct batches *batches = context;
    if (batches->left == 0)
        return error_set(err, batches->at_end, "no more of them");
    batches->left--;
    *out_batch = owned_rows(batches->sample);
    return STATUS_OK;
}

static void close_batches(void *context)
{
    ((struct batches *)context)->closed++;
}

static void test_streams_come_back(void **state)
{
    (void)state;
    static const enum status ends[] = {STATUS_NOT_FOUND, STATUS_IO, STATUS_INVALID,
                                       STATUS_NO_MEMORY, STATUS_UNSUPPORTED};
    struct sample sample;
    struct error err;
    struct arrow_limits limits = arrow_limits_default();
    sample_init(&sample, ROWS);
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        struct ArrowArrayStream producer;
        struct arrow_c_stream *stream;
        struct arrow_batch batch, kept;
        struct batches batches = {.sample = &sample, .left = 2, .at_end = ends[i]};
        struct arrow_c_source source = {
            .next = next_batch, .close = close_batches, .context = &batches};
        assert_ok(arrow_c_export_stream(&schema, source, &producer, &err));
        assert_null(producer.get_last_error(&producer));
        assert_ok(arrow_c_stream_open(&producer, &limits, &stream, &err));
        assert_null(producer.release);
        assert_true(arrow_schema_equal(arrow_c_stream_schema(stream), &schema));
        assert_ok(arrow_c_stream_next(stream, &kept, &err));
        assert_ok(arrow_c_stream_next(stream, &batch, &err));
        arrow_batch_deinit(&batch);
        assert_status(ends[i], arrow_c_stream_next(stream, &batch, &err));
        if (ends[i] != STATUS_NOT_FOUND)
            assert_non_null(strstr(err.message, "producer: no more of them"));
        arrow_c_stream_close(stream);
        assert_int_equal(batches.closed, 1);
        assert_same_rows(&kept, &sample.batch); /* outlives its stream */
        arrow_batch_deinit(&kept);
        assert_status(STATUS_INVALID, arrow_c_stream_open(&producer, &limits, &stream, &err));
    }
    sample_deinit(&sample);
}

static void test_a_batch_of_another_schema_is_refused(void **state)
{
    (void)state;
    struct sample sample;
    struct error err;
    struct ArrowArrayStream producer;
    struct ArrowArray array;
    struct arrow_schema other = {.fields = fields, .field_count = 2};
    struct batches batches = {.sample = &sample, .left = 1, .at_end = STATUS_NOT_FOUND};
    struct arrow_c_source source = {.next = next_batch, .context = &batches};
    sample_init(&sample, ROWS);
    assert_ok(arrow_c_export_stream(&other, source, &producer, &err));
    assert_int_equal(producer.get_next(&producer, &array), EINVAL);
    assert_string_equal(producer.get_last_error(&producer), "arrow: a batch of another schema");
    assert_int_equal(producer.get_next(&producer, &array), 0);
    assert_null(array.release);
    producer.release(&producer);
    sample_deinit(&sample);
}

/* ---- arrays of others ---- */

static int released;

static void count_release(struct ArrowArray *array)
{
    array->release = NULL;
    released++;
}

static void count_schema_release(struct ArrowSchema *schema_struct)
{
    schema_struct->release = NULL;
    released++;
}

/* A struct of one column: texts, with all that can be said of them in reach. */
struct foreign {
    uint8_t bits[8];
    _Alignas(8) int32_t offsets[8];
    char text[32];
    const void *buffers[3], *row_buffers[1];
    struct ArrowArray column, rows, *columns[1];
    struct arrow_field field;
    struct arrow_schema schema;
};

static void foreign_init(struct foreign *foreign)
{
    static const int32_t offsets[] = {0, 2, 2, 5, 9};
    *foreign = (struct foreign){.bits = {0x0d}, .text = "aabbbcccc"};
    memcpy(foreign->offsets, offsets, sizeof offsets);
    foreign->buffers[0] = foreign->bits;
    foreign->buffers[1] = foreign->offsets;
    foreign->buffers[2] = foreign->text;
    foreign->column = (struct ArrowArray){.length = 4,
                                          .null_count = -1,
                                          .n_buffers = 3,
                                          .buffers = foreign->buffers,
                                          .release = count_release};
    foreign->columns[0] = &foreign->column;
    foreign->rows = (struct ArrowArray){.length = 4,
                                        .n_buffers = 1,
                                        .n_children = 1,
                                        .buffers = foreign->row_buffers,
                                        .children = foreign->columns,
                                        .release = count_release};
    foreign->field = (struct arrow_field){.name = "c", .type = ARROW_UTF8, .is_nullable = true};
    foreign->schema = (struct arrow_schema){.fields = &foreign->field, .field_count = 1};
    released = 0;
}

static enum status import(struct foreign *foreign, struct arrow_batch *out_batch, struct error *err)
{
    struct arrow_limits limits = arrow_limits_default();
    return arrow_c_import_batch(&foreign->rows, &foreign->schema, &limits, out_batch, err);
}

static void test_arrays_of_others_are_released_once(void **state)
{
    (void)state;
    struct error err;
    struct foreign foreign;
    struct arrow_batch batch;
    foreign_init(&foreign);
    assert_ok(import(&foreign, &batch, &err));
    assert_null(foreign.rows.release);
    assert_int_equal(released, 0);
    assert_int_equal(batch.columns[0].null_count, 1);
    assert_ptr_equal(batch.columns[0].values, foreign.text);
    assert_ptr_equal(batch.columns[0].offsets, foreign.offsets);
    arrow_batch_deinit(&batch);
    assert_int_equal(released, 1);
    foreign_init(&foreign); /* slices: of the rows, and of the column below them */
    foreign.rows.offset = 1, foreign.rows.length = 2;
    foreign.column.offset = 1, foreign.column.length = 3;
    assert_ok(import(&foreign, &batch, &err));
    assert_int_equal(batch.columns[0].length, 2);
    assert_int_equal(batch.columns[0].null_count, 0);
    assert_int_equal(batch.columns[0].offsets[2], 7);
    assert_memory_equal(batch.columns[0].values, "bbbcccc", 7);
    arrow_batch_deinit(&batch);
    assert_int_equal(released, 1);
    foreign_init(&foreign); /* no validity, and a count of nulls that is not known */
    foreign.buffers[0] = NULL;
    assert_ok(import(&foreign, &batch, &err));
    assert_null(batch.columns[0].validity);
    arrow_batch_deinit(&batch);
    foreign_init(&foreign); /* no rows, no buffers */
    foreign.rows.length = foreign.column.length = 0;
    memset(foreign.buffers, 0, sizeof foreign.buffers);
    assert_ok(import(&foreign, &batch, &err));
    assert_ok(arrow_array_validate(&foreign.field, &batch.columns[0], &err));
    arrow_batch_deinit(&batch);
}

static void refuses(struct foreign *foreign, enum status expected, const char *message)
{
    struct error err;
    struct arrow_batch batch;
    enum status status = import(foreign, &batch, &err);
    if (status != expected || !strstr(err.message, message))
        fail_msg("%s: %s instead of %s", status_name(status),
                 status == STATUS_OK ? "" : err.message, message);
    assert_int_equal(released, 0);
    assert_ptr_equal(foreign->rows.release, count_release); /* the caller's still */
    foreign_init(foreign);
}

static void test_structs_are_checked(void **state)
{
    (void)state;
    struct foreign f;
    foreign_init(&f);
#define REFUSES(change, message)                                                                   \
    do {                                                                                           \
        change;                                                                                    \
        refuses(&f, STATUS_INVALID, message);                                                      \
    } while (0)
    REFUSES(f.column.release = NULL, "column c: an array that is not there or was released");
    REFUSES(f.columns[0] = NULL, "column c: an array that is not there");
    REFUSES(f.rows.children = NULL, "another number of children");
    REFUSES(f.rows.n_children = 2, "another number of children");
    REFUSES(f.rows.n_children = -1, "another number of children");
    REFUSES(f.rows.length = -1, "bad length or offset");
    REFUSES(f.column.length = -1, "column c: bad length or offset");
    REFUSES(f.column.offset = -1, "column c: bad length or offset");
    REFUSES(f.column.offset = INT64_MAX, "column c: bad length or offset");
    REFUSES(f.column.length = INT64_MAX, "column c: bad length or offset");
    REFUSES(f.column.length = 3, "column c: fewer slots");
    REFUSES(f.rows.offset = 1, "column c: fewer slots");
    REFUSES(f.column.null_count = -2, "column c: bad count of nulls");
    REFUSES(f.column.null_count = 5, "column c: bad count of nulls");
    REFUSES(f.column.n_buffers = 2, "column c: another number of buffers");
    REFUSES(f.column.n_buffers = 4, "column c: another number of buffers");
    REFUSES(f.column.n_buffers = -1, "column c: another number of buffers");
    REFUSES(f.column.buffers = NULL, "column c: another number of buffers");
    REFUSES(f.column.n_children = 1, "column c: another number of children");
    REFUSES(f.column.dictionary = &f.rows, "column c: a dictionary");
    REFUSES((f.buffers[0] = NULL, f.column.null_count = 1), "column c: nulls without validity");
    REFUSES(f.buffers[1] = NULL, "column c: a buffer that is not there");
    REFUSES(f.buffers[2] = NULL, "column c: a buffer that is not there");
    REFUSES(f.offsets[0] = -1, "column c: offsets that fall");
    REFUSES(f.offsets[4] = -1, "column c: offsets that fall");
    REFUSES(f.offsets[2] = 6, "column c: offsets that fall");
    REFUSES(f.text[2] = (char)0xff, "column c: text that is not UTF-8");
    REFUSES(f.field.is_nullable = false, "column c: null in a column that has none");
    REFUSES((f.row_buffers[0] = f.bits, f.rows.null_count = 1), "a row that is null");
    REFUSES(f.field.is_dictionary = true, "column c: another number of buffers");
    f.rows.length = (int64_t)INT32_MAX + 1;
    refuses(&f, STATUS_LIMIT, "rows");
#undef REFUSES
}

/* ---- schemas of others ---- */

static void refuses_schema(const struct ArrowSchema *given, enum status expected,
                           const char *message)
{
    struct error err;
    struct arena arena = {0};
    struct arrow_schema out;
    struct arrow_limits limits = arrow_limits_default();
    enum status status = arrow_c_import_schema(given, &limits, &arena, &out, &err);
    if (status != expected || !strstr(err.message, message))
        fail_msg("%s: %s instead of %s", status_name(status),
                 status == STATUS_OK ? "" : err.message, message);
    arena_deinit(&arena);
}

static void refuses_format(const char *format, enum status expected, const char *message)
{
    struct ArrowSchema column = {.format = format, .name = "c", .release = count_schema_release};
    struct ArrowSchema *columns[] = {&column};
    struct ArrowSchema rows = {
        .format = "+s", .n_children = 1, .children = columns, .release = count_schema_release};
    refuses_schema(&rows, expected, message);
}

static void test_formats_are_checked(void **state)
{
    (void)state;
    static const char *const unknown[] = {
        "x",   "ii", "w:",  "w:x", "d:", "d:1", "d:1,2,3,4", "+w",    "+w:", "tt",   "ttx",
        "tsu", "ts", "tdx", "tiX", "+",  "+lx", "tDx",       "w:1,2", ":",   "d:,,", "ttuu"};
    static const char *const refused[] = {"w:0",        "w:99999999", "w:-1", "d:0,0",
                                          "d:77,0,256", "d:9,2,65",   "+w:-1"};
    refuses_format(NULL, STATUS_INVALID, "without a format");
    refuses_format("", STATUS_INVALID, "without a format");
    refuses_format("+l", STATUS_INVALID, "without its one child");
    refuses_format("+m", STATUS_INVALID, "without its one child");
    refuses_format("+ud:0", STATUS_UNSUPPORTED, "column c: type union is not read");
    refuses_format("+r", STATUS_INVALID, "runs without their ends or values");
    for (size_t i = 0; i < COUNT_OF(unknown); i++)
        refuses_format(unknown[i], STATUS_UNSUPPORTED, "column c: a type of format");
    for (size_t i = 0; i < COUNT_OF(refused); i++)
        refuses_format(refused[i], STATUS_UNSUPPORTED, "column c: ");
}

/* A schema that contains itself ends at the limit of depth. */
static void test_schema_structs_are_checked(void **state)
{
    (void)state;
    struct ArrowSchema *children[1];
    struct ArrowSchema rows = {
        .format = "+s", .n_children = 1, .children = children, .release = count_schema_release};
    struct ArrowSchema other = {.format = "c", .release = count_schema_release};
    children[0] = &rows;
    refuses_schema(&rows, STATUS_LIMIT, "nested deeper");
    rows.n_children = 5000; /* that many it may not say, even before they are looked at */
    refuses_schema(&rows, STATUS_LIMIT, "more than 4096 columns");
    rows.n_children = -1;
    refuses_schema(&rows, STATUS_INVALID, "a bad number of columns");
    rows.n_children = 1;
    rows.children = NULL;
    refuses_schema(&rows, STATUS_INVALID, "a bad number of columns");
    rows.children = children;
    children[0] = NULL;
    refuses_schema(&rows, STATUS_INVALID, "not there or was released");
    children[0] = &other;
    other.dictionary = &other;
    refuses_schema(&rows, STATUS_UNSUPPORTED, "a dictionary of a dictionary");
    other.format = "u";
    refuses_schema(&rows, STATUS_INVALID, "indices are no integers");
    other.dictionary = NULL;
    other.metadata = "\xff\xff\xff\xff";
    refuses_schema(&rows, STATUS_INVALID, "damaged metadata");
    other.metadata = "\1\0\0\0\xff\xff\xff\xff";
    refuses_schema(&rows, STATUS_INVALID, "damaged metadata");
    other.metadata = NULL;
    other.name = "\xff";
    refuses_schema(&rows, STATUS_INVALID, "bad column name");
    rows.format = "i";
    refuses_schema(&rows, STATUS_INVALID, "not a struct of columns");
    rows.release = NULL;
    refuses_schema(&rows, STATUS_INVALID, "released");
}

/* ---- memory ---- */

static enum status there_and_back(struct arrow_batch *batch, struct arena *arena, struct error *err)
{
    struct ArrowSchema exported;
    struct ArrowArray array;
    struct arrow_schema back;
    struct arrow_limits limits = arrow_limits_default();
    TRY(arrow_c_export_schema(batch->schema, &exported, err));
    enum status status = arrow_c_import_schema(&exported, &limits, arena, &back, err);
    exported.release(&exported);
    TRY(status);
    TRY(arrow_c_export_batch(batch, &array, err));
    status = arrow_c_import_batch(&array, &back, &limits, batch, err);
    if (status != STATUS_OK)
        array.release(&array);
    return status;
}

static void test_allocations_may_fail(void **state)
{
    (void)state;
    struct sample sample;
    bool is_done = false;
    sample_init(&sample, ROWS);
    for (int64_t n = 0; !is_done; n++) {
        struct error err;
        struct arena arena = {0};
        struct arrow_batch batch = owned_rows(&sample);
        alloc_fail_after(n);
        enum status status = there_and_back(&batch, &arena, &err);
        alloc_fail_after(-1);
        is_done = status == STATUS_OK;
        assert_true(is_done || status == STATUS_NO_MEMORY);
        if (is_done)
            assert_same_rows(&batch, &sample.batch);
        arrow_batch_deinit(&batch);
        arena_deinit(&arena);
        assert_true(n < 1000);
    }
    sample_deinit(&sample);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_come_back),
        cmocka_unit_test(test_children_move_out),
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_streams_come_back),
        cmocka_unit_test(test_a_batch_of_another_schema_is_refused),
        cmocka_unit_test(test_arrays_of_others_are_released_once),
        cmocka_unit_test(test_structs_are_checked),
        cmocka_unit_test(test_formats_are_checked),
        cmocka_unit_test(test_schema_structs_are_checked),
        cmocka_unit_test(test_allocations_may_fail),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
