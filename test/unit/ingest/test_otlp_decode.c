/* SPDX-License-Identifier: Apache-2.0
 *
 * The decoder's rows from request to request: what repeats is recognised, what fails leaves
 * nothing.
 */
#include "../unit.h"
#include "flow/ingest/otlp_decode.h"

static const int64_t NOON_US = 1795882011596044;

struct fixture {
    struct otlp_decoder decoder;
    struct buf body; /* of an ExportMetricsServiceRequest */
    struct buf metrics;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    otlp_decoder_init(&fixture->decoder, 7, 1000, (size_t)1 << 24);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    otlp_decoder_deinit(&fixture->decoder);
    buf_deinit(&fixture->body);
    buf_deinit(&fixture->metrics);
    free(fixture);
    return 0;
}

static void put_nested(struct buf *out, uint32_t number, const struct buf *message)
{
    wire_put_bytes(out, number, span_of(message->data, message->length));
}

/* A gauge of one point; `depth` arrays around the value of its attribute. */
static void put_gauge_in(struct fixture *fixture, const char *name, const char *unit, int depth)
{
    struct buf value = {0}, pair = {0}, point = {0}, data = {0}, metric = {0};
    wire_put_bytes(&value, 1, span_of_text("x"));
    for (int i = 0; i < depth; i++) {
        struct buf array = {0}, outer = {0};
        put_nested(&array, 1, &value);
        put_nested(&outer, 5, &array);
        buf_deinit(&array);
        buf_deinit(&value);
        value = outer;
    }
    wire_put_bytes(&pair, 1, span_of_text("key"));
    put_nested(&pair, 2, &value);
    put_nested(&point, 7, &pair);
    put_nested(&data, 1, &point);
    wire_put_bytes(&metric, 1, span_of_text(name));
    if (unit)
        wire_put_bytes(&metric, 3, span_of_text(unit));
    put_nested(&metric, 5, &data);
    put_nested(&fixture->metrics, 2, &metric);
    struct buf *all[] = {&value, &pair, &point, &data, &metric};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        buf_deinit(all[i]);
}

static void put_gauge(struct fixture *fixture, const char *name, int depth)
{
    put_gauge_in(fixture, name, NULL, depth);
}

/* Wraps what was put into a request, and decodes it. */
static enum status decode(struct fixture *fixture, int64_t received_us, struct error *err)
{
    struct buf resource = {0};
    put_nested(&resource, 2, &fixture->metrics);
    buf_clear(&fixture->body);
    put_nested(&fixture->body, 1, &resource);
    buf_deinit(&resource);
    buf_clear(&fixture->metrics);
    return otlp_decode(&fixture->decoder, SIGNAL_METRICS,
                       span_of(fixture->body.data, fixture->body.length), received_us, err);
}

static void check_names(struct fixture *fixture, const char *const *names, int64_t count)
{
    struct error err;
    struct arrow_batch view;
    assert_ok(otlp_batch_view(fixture->decoder.batches[TABLE_GAUGE], &view, &err));
    assert_int_equal(view.length, count);
    const struct arrow_array *column = &view.columns[MET_NAME], *values = column->dictionary;
    for (int64_t i = 0; i < count; i++) {
        int32_t index = ((const int32_t *)column->values)[i];
        assert_in_range(index, 0, values->length - 1);
        size_t length = (size_t)(values->offsets[index + 1] - values->offsets[index]);
        assert_int_equal(length, strlen(names[i]));
        assert_memory_equal((const char *)values->values + values->offsets[index], names[i],
                            length);
    }
    arrow_batch_deinit(&view);
}

static void check_received(struct fixture *fixture, const int64_t *times, int64_t count)
{
    const struct arrow_builder *column =
        &fixture->decoder.batches[TABLE_GAUGE]->columns[COL_RECEIVED];
    assert_int_equal(column->length, count);
    assert_memory_equal(column->values.data, times, (size_t)count * sizeof *times);
}

static void test_metrics_that_repeat(void **state)
{
    struct fixture *fixture = *state;
    struct error err;
    char wide[400], wider[400];
    memset(wide, 'w', sizeof wide);
    memset(wider, 'w', sizeof wider);
    wide[300] = wider[301] = '\0';
    const char *names[] = {"aa", "aa", "bb", "aa", wide, wide, "aa", wider, wide, "", "", "bb"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        put_gauge(fixture, names[i], 0);
    assert_ok(decode(fixture, NOON_US, &err));
    check_names(fixture, names, COUNT_OF(names));
    otlp_batch_clear(fixture->decoder.batches[TABLE_GAUGE]);
    const char *again[] = {"bb", "bb", "aa"};
    for (size_t i = 0; i < COUNT_OF(again); i++)
        put_gauge(fixture, again[i], 0);
    assert_ok(decode(fixture, NOON_US, &err));
    check_names(fixture, again, COUNT_OF(again));
}

/* One header may be how another begins. */
static void test_metrics_that_begin_alike(void **state)
{
    struct fixture *fixture = *state;
    struct error err;
    struct arrow_batch view;
    for (int i = 0; i < 6; i++)
        put_gauge_in(fixture, "aa", i % 2 ? "s" : NULL, 0);
    assert_ok(decode(fixture, NOON_US, &err));
    assert_ok(otlp_batch_view(fixture->decoder.batches[TABLE_GAUGE], &view, &err));
    for (int i = 0; i < 6; i++)
        assert_int_equal(arrow_is_valid(&view.columns[MET_UNIT], i), i % 2);
    arrow_batch_deinit(&view);
}

static void test_request_that_fails(void **state)
{
    struct fixture *fixture = *state;
    struct error err;
    const char *names[] = {"aa", "cc", "bb"};
    const int64_t times[] = {NOON_US, NOON_US + 2, NOON_US + 2};
    put_gauge(fixture, "aa", 0);
    assert_ok(decode(fixture, NOON_US, &err));
    put_gauge(fixture, "cc", 0);
    buf_put_text(&fixture->metrics, "\x12\x7f!"); /* longer than what is there */
    assert_status(STATUS_INVALID, decode(fixture, NOON_US + 1, &err));
    check_names(fixture, names, 1);
    put_gauge(fixture, "cc", 0);
    put_gauge(fixture, "bb", 0);
    assert_ok(decode(fixture, NOON_US + 2, &err));
    check_names(fixture, names, 3);
    check_received(fixture, times, 3);
    otlp_decode_rollback(&fixture->decoder);
    check_names(fixture, names, 1);
    check_received(fixture, times, 1);
}

static void test_item_that_is_rejected(void **state)
{
    struct fixture *fixture = *state;
    struct error err;
    const char *names[] = {"aa", "aa", "bb"};
    const int64_t times[] = {NOON_US, NOON_US, NOON_US};
    put_gauge(fixture, "aa", 0);
    put_gauge(fixture, "bb", OTLP_DEPTH_MAX + 1);
    put_gauge(fixture, "aa", 0);
    put_gauge(fixture, "bb", 1);
    assert_ok(decode(fixture, NOON_US, &err));
    assert_int_equal(fixture->decoder.rejected, 1);
    check_names(fixture, names, 3);
    check_received(fixture, times, 3);
}

/* From an empty decoder on: a request of one row, then one of three while the nth allocation fails.
 */
static enum status decode_with_failure(struct fixture *fixture, struct span three, int64_t n,
                                       bool *out_has_failed)
{
    struct error err;
    otlp_decoder_deinit(&fixture->decoder);
    otlp_decoder_init(&fixture->decoder, 7, 1000, (size_t)1 << 24);
    put_gauge(fixture, "aa", 0);
    assert_ok(decode(fixture, NOON_US, &err));
    alloc_fail_after(n);
    enum status status = otlp_decode(&fixture->decoder, SIGNAL_METRICS, three, NOON_US + 1, &err);
    *out_has_failed = !alloc_fail_is_due();
    alloc_fail_after(-1);
    return status;
}

static void test_no_memory(void **state)
{
    struct fixture *fixture = *state;
    struct error err;
    const char *names[] = {"aa", "aa", "bb", "aa"};
    const int64_t times[] = {NOON_US, NOON_US + 1, NOON_US + 1, NOON_US + 1};
    bool has_failed = true;
    put_gauge(fixture, "aa", 1);
    buf_put_text(&fixture->metrics, "\x12\x02*\x7f"); /* a metric whose data is longer than it is */
    put_gauge(fixture, "bb", 1);
    buf_put_text(&fixture->metrics, "\x12\x06*\x04\n\x02:\x7f"); /* and a point's attribute */
    put_gauge(fixture, "aa", 0);
    assert_ok(decode(fixture, NOON_US, &err));
    assert_int_equal(fixture->decoder.rejected, 2);
    struct buf body = fixture->body;
    struct span three = span_of(body.data, body.length);
    fixture->body = (struct buf){0};
    for (int64_t n = 0; has_failed; n++) {
        enum status status = decode_with_failure(fixture, three, n, &has_failed);
        if (status != STATUS_OK) {
            assert_true(has_failed);
            assert_int_equal(status, STATUS_NO_MEMORY);
            check_names(fixture, names, 1);
            check_received(fixture, times, 1);
            assert_ok(otlp_decode(&fixture->decoder, SIGNAL_METRICS, three, NOON_US + 1, &err));
        }
        check_names(fixture, names, 4);
        check_received(fixture, times, 4);
    }
    buf_deinit(&body);
}

static void test_bucket_counts(void **state)
{
    struct fixture *fixture = *state;
    struct error err;
    static const int64_t counts[] = {0, 127, 128, 16383, 16384, 1, INT64_MAX, 300, 5};
    struct buf packed = {0}, buckets = {0}, point = {0}, data = {0}, metric = {0};
    for (size_t i = 0; i < COUNT_OF(counts); i++)
        buf_put_varint(&packed, (uint64_t)counts[i]);
    put_nested(&buckets, 2, &packed);
    put_nested(&point, 8, &buckets);
    put_nested(&data, 1, &point);
    put_nested(&metric, 10, &data);
    put_nested(&fixture->metrics, 2, &metric);
    assert_ok(decode(fixture, NOON_US, &err));
    const struct arrow_builder *column =
        &fixture->decoder.batches[TABLE_EXP_HISTOGRAM]->columns[EXP_POSITIVE_COUNTS].children[0];
    assert_int_equal(column->length, COUNT_OF(counts));
    assert_memory_equal(column->values.data, counts, sizeof counts);
    struct buf *all[] = {&packed, &buckets, &point, &data, &metric};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        buf_deinit(all[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_metrics_that_repeat, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_metrics_that_begin_alike, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_request_that_fails, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_item_that_is_rejected, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bucket_counts, set_up, tear_down),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
