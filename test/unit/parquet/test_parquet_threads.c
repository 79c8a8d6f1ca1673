/* SPDX-License-Identifier: Apache-2.0
 *
 * A writer with threads: the same bytes as without, the same failures, and row groups that end at
 * the same rows because what rows can grow to was not guessed too low.
 */
#include <math.h>
#include <pthread.h>

#include "../unit.h"
#include "format/parquet/parquet_internal.h"
#include "os/os.h"

enum { ROWS = 30000, THREADS_MAX = 4 };

/* ---- rows of many shapes ---- */

static struct arrow_field pair_children[2] = {
    {.name = "key", .type = ARROW_UTF8},
    {.name = "value", .type = ARROW_UTF8, .is_nullable = true},
};
static struct arrow_field text_element = {
    .name = "element", .type = ARROW_UTF8, .is_nullable = true};
static struct arrow_field number_element = {.name = "element", .type = ARROW_INT64};
static struct arrow_field point_children[2] = {
    {.name = "x", .type = ARROW_DOUBLE, .is_nullable = true},
    {.name = "path",
     .type = ARROW_LIST,
     .is_nullable = true,
     .children = &number_element,
     .child_count = 1},
};
static struct arrow_field fields[] = {
    {.name = "id", .type = ARROW_UTF8},
    {.name = "n", .type = ARROW_INT64},
    {.name = "noise", .type = ARROW_INT64, .is_nullable = true},
    {.name = "word", .type = ARROW_UTF8, .is_nullable = true},
    {.name = "memo", .type = ARROW_UTF8, .is_nullable = true, .is_dictionary = true},
    {.name = "flag", .type = ARROW_BOOL},
    {.name = "small", .type = ARROW_INT32},
    {.name = "double", .type = ARROW_DOUBLE, .is_nullable = true},
    {.name = "byte", .type = ARROW_FIXED, .byte_width = 1},
    {.name = "texts",
     .type = ARROW_LIST,
     .is_nullable = true,
     .children = &text_element,
     .child_count = 1},
    {.name = "pairs", .type = ARROW_MAP, .children = pair_children, .child_count = 2},
    {.name = "point",
     .type = ARROW_STRUCT,
     .is_nullable = true,
     .children = point_children,
     .child_count = 2},
};
enum { ID, N, NOISE, WORD, MEMO, FLAG, SMALL, DOUBLE, BYTE, TEXTS, PAIRS, POINT, FIELD_COUNT };
static const struct arrow_schema schema = {.fields = fields, .field_count = FIELD_COUNT};

struct sample {
    struct arrow_builder builders[FIELD_COUNT];
    struct arrow_batch batch;
};

static void append_nested(struct arrow_builder *b, struct random *random)
{
    char text[40];
    if (random_chance(random, 1, 6))
        arrow_append_null(&b[TEXTS]);
    else {
        for (uint64_t i = random_below(random, 4); i > 0; i--)
            arrow_append_bytes(&b[TEXTS].children[0], "some text or other",
                               random_below(random, 19));
        arrow_close_list(&b[TEXTS]);
    }
    for (uint64_t i = 0; i < 3; i++) {
        int length = snprintf(text, sizeof text, "key %d", (int)i);
        arrow_append_bytes(&b[PAIRS].children[0], text, (size_t)length);
        length = snprintf(text, sizeof text, "value %d", (int)random_below(random, 1000));
        arrow_append_bytes(&b[PAIRS].children[1], text, (size_t)length);
    }
    arrow_close_list(&b[PAIRS]);
    if (random_chance(random, 1, 9)) {
        arrow_append_null(&b[POINT]);
        return;
    }
    arrow_append_double(&b[POINT].children[0], (double)random_below(random, 50) / 4);
    for (uint64_t i = random_below(random, 3); i > 0; i--)
        arrow_append_i64(&b[POINT].children[1].children[0], (int64_t)random_below(random, 99));
    arrow_close_list(&b[POINT].children[1]);
    arrow_close_struct(&b[POINT]);
}

static void append_row(struct arrow_builder *b, struct random *random, int row)
{
    char text[40];
    uint64_t noise = random_next(random);
    uint8_t byte = (uint8_t)noise;
    int length = snprintf(text, sizeof text, "%016llx%016llx", (unsigned long long)noise,
                          (unsigned long long)random_next(random));
    arrow_append_bytes(&b[ID], text, (size_t)length);
    arrow_append_i64(&b[N], row);
    if (noise % 11 == 0)
        arrow_append_null(&b[NOISE]);
    else
        arrow_append_i64(&b[NOISE], (int64_t)noise);
    length = snprintf(text, sizeof text, "word %d", (int)(noise % 400));
    if (noise % 13 == 0) {
        arrow_append_null(&b[WORD]);
        arrow_append_null(&b[MEMO]);
    } else {
        arrow_append_bytes(&b[WORD], text, (size_t)length);
        arrow_append_memo(&b[MEMO], text, (size_t)length);
    }
    arrow_append_bool(&b[FLAG], noise & 32);
    arrow_append_i32(&b[SMALL], (int32_t)(noise % 3000));
    arrow_append_double(&b[DOUBLE], row == 12345 ? (double)NAN : (double)(noise % 7777));
    arrow_append_bytes(&b[BYTE], &byte, 1);
    append_nested(b, random);
}

static void sample_init(struct sample *sample, uint64_t seed, int rows)
{
    struct error err;
    struct random random;
    *sample = (struct sample){0};
    random_init(&random, seed);
    for (int i = 0; i < FIELD_COUNT; i++)
        assert_ok(arrow_builder_init(&sample->builders[i], &fields[i], &err));
    for (int row = 0; row < rows; row++)
        append_row(sample->builders, &random, row);
    sample->batch = (struct arrow_batch){.schema = &schema, .length = rows};
    sample->batch.columns =
        arena_alloc_zero(&sample->batch.arena, FIELD_COUNT, sizeof *sample->batch.columns);
    for (int i = 0; i < FIELD_COUNT; i++)
        assert_ok(arrow_builder_view(&sample->builders[i], &sample->batch.arena,
                                     &sample->batch.columns[i], &err));
}

static void sample_deinit(struct sample *sample)
{
    for (int i = 0; i < FIELD_COUNT; i++)
        arrow_builder_deinit(&sample->builders[i]);
    arrow_batch_deinit(&sample->batch);
}

/* ---- executors ---- */

/* No threads: the last job first, so that all the work is one's for whom none was meant. */
static void run_backwards(void *context, unsigned count,
                          void (*job)(void *job_context, unsigned index), void *job_context)
{
    (void)context;
    while (count-- > 0)
        job(job_context, count);
}

static const struct executor backwards = {.run = run_backwards, .threads = 3};

static struct pool *make_pool(unsigned threads)
{
    struct error err;
    struct pool *pool;
    assert_ok(pool_create(env_real(), threads, &pool, &err));
    assert_int_equal(pool_executor(pool).threads, threads ? threads : 1);
    return pool;
}

/* ---- the same bytes ---- */

static enum status write_file(const struct sample *sample, int times,
                              const struct parquet_options *options, struct sink sink,
                              struct parquet_file_metrics *metrics, struct error *err)
{
    struct parquet_writer *writer = NULL;
    enum status status = parquet_writer_create(&schema, options, sink, &writer, err);
    for (int i = 0; status == STATUS_OK && i < times; i++)
        status = parquet_writer_write(writer, &sample->batch, err);
    if (status == STATUS_OK)
        status = parquet_writer_finish(writer, metrics, err);
    if (writer)
        parquet_writer_destroy(writer);
    return status;
}

/* The bytes, and how many row groups there are. */
static struct buf write_with(const struct sample *sample, int times, struct parquet_options options,
                             struct executor executor, size_t *out_groups)
{
    struct error err;
    struct buf out = {0};
    struct parquet_file_metrics metrics;
    options.executor = executor;
    assert_ok(write_file(sample, times, &options, sink_to_buf(&out), &metrics, &err));
    *out_groups = metrics.split_offset_count;
    parquet_file_metrics_deinit(&metrics);
    return out;
}

/* All rows of a file, as IPC. */
static struct buf rows_of(const struct buf *file_bytes)
{
    struct error err;
    struct buf out = {0};
    struct parquet_file *file;
    struct parquet_reader *reader;
    struct parquet_limits limits = parquet_limits_default();
    const struct parquet_read_options options = {.schema = &schema};
    struct span span = span_of(file_bytes->data, file_bytes->length);
    assert_ok(parquet_file_open(byte_source_of_span(&span), &limits, &file, &err));
    assert_ok(parquet_reader_create(file, &options, &reader, &err));
    for (size_t group = 0; group < file->group_count; group++) {
        struct arrow_batch batch;
        assert_ok(parquet_reader_read(reader, group, &batch, &err));
        assert_ok(arrow_ipc_write_batch(&schema, &batch, ARROW_UNCOMPRESSED, &out, &err));
        arrow_batch_deinit(&batch);
    }
    parquet_reader_destroy(reader);
    parquet_file_close(file);
    return out;
}

/* Of gzip the rows: igzip does not always make the same stream of the same bytes, not even without
 * threads. */
static void check_files(const struct buf *a, const struct buf *b, bool is_gzip)
{
    struct buf a_rows = is_gzip ? rows_of(a) : *a, b_rows = is_gzip ? rows_of(b) : *b;
    assert_int_equal(a_rows.length, b_rows.length);
    assert_memory_equal(a_rows.data, b_rows.data, a_rows.length);
    if (is_gzip) {
        buf_deinit(&a_rows);
        buf_deinit(&b_rows);
    }
}

static void check_same(const struct sample *sample, int times,
                       const struct parquet_options *options, size_t groups_min)
{
    size_t groups, others;
    struct buf alone = write_with(sample, times, *options, (struct executor){0}, &groups);
    assert_true(groups >= groups_min);
    for (unsigned threads = 0; threads <= THREADS_MAX; threads += 1 + threads / 2) {
        struct pool *pool = make_pool(threads);
        struct buf spread =
            write_with(sample, times, *options, threads ? pool_executor(pool) : backwards, &others);
        assert_int_equal(others, groups);
        check_files(&spread, &alone, options->compression == PARQUET_GZIP);
        buf_deinit(&spread);
        pool_destroy(pool);
    }
    buf_deinit(&alone);
}

static void test_same_bytes_of_each_codec(void **state)
{
    (void)state;
    static const struct parquet_column_options columns[] = {
        {.path = "id", .has_bloom = true},
        {.path = "word", .has_bloom = true},
        {.path = "pairs", .has_bloom = true},
        {.path = "n", .values = PARQUET_VALUES_DELTA_BINARY_PACKED},
    };
    struct sample sample;
    sample_init(&sample, 1, ROWS);
    for (int codec = PARQUET_UNCOMPRESSED; codec <= PARQUET_LZ4_RAW; codec++) {
        struct parquet_options options = parquet_options_default();
        options.compression = (enum parquet_compression)codec;
        options.row_group_rows = 13000 - codec;
        options.page_rows = 3000;
        options.values = codec % 2 ? PARQUET_VALUES_SMALLEST : PARQUET_VALUES_AUTO;
        options.page_version = 1 + codec % 2;
        options.columns = columns;
        options.column_count = COUNT_OF(columns);
        check_same(&sample, 2, &options, 5);
    }
    sample_deinit(&sample);
}

/* Groups that end because of what stands in them: as it is encoded, or as it is. */
static void test_same_row_groups(void **state)
{
    (void)state;
    struct sample sample;
    sample_init(&sample, 2, ROWS);
    for (int mode = 0; mode < 4; mode++) {
        struct parquet_options options = parquet_options_default();
        options.compression = mode % 2 ? PARQUET_LZ4_RAW : PARQUET_UNCOMPRESSED;
        options.row_group_rows = 1 << 20;
        if (mode < 2)
            options.row_group_bytes = (size_t)9 << 20; /* at first many slices fit surely */
        else if (mode == 2)
            options.row_group_bytes = (size_t)1 << 20; /* never two */
        else
            options.row_group_plain_bytes = 3000000;
        check_same(&sample, mode < 2 ? 7 : 3, &options, mode < 2 ? 2 : 3);
    }
    sample_deinit(&sample);
}

/* Batches too small to be given away, and a group of them that is not. */
static void test_small_batches(void **state)
{
    (void)state;
    struct sample sample;
    struct parquet_options options = parquet_options_default();
    sample_init(&sample, 3, 150);
    options.row_group_rows = 4000;
    options.page_rows = 100000;
    check_same(&sample, 100, &options, 4);
    sample_deinit(&sample);
}

/* Maps as entries of a dictionary, of which nobody counts how many levels they make. */
static void test_a_dictionary_of_maps(void **state)
{
    (void)state;
    static int32_t indices[ROWS];
    struct sample sample;
    struct parquet_options options = parquet_options_default();
    sample_init(&sample, 9, ROWS);
    struct arrow_array entries = sample.batch.columns[PAIRS];
    entries.length = 500;
    for (int i = 0; i < ROWS; i++)
        indices[i] = i * 7 % 500;
    sample.batch.columns[PAIRS] =
        (struct arrow_array){.length = ROWS, .values = indices, .dictionary = &entries};
    options.row_group_rows = 17000;
    check_same(&sample, 2, &options, 3);
    sample_deinit(&sample);
}

/* ---- what rows can grow to ---- */

static void check_growth(const struct sample *sample, const struct parquet_options *options)
{
    struct error err;
    struct buf out = {0};
    struct random random;
    struct parquet_writer *writer;
    random_init(&random, 17);
    assert_ok(parquet_writer_create(&schema, options, sink_to_buf(&out), &writer, &err));
    for (int64_t row = 0, count; row < sample->batch.length; row += count) {
        struct arrow_array columns[FIELD_COUNT];
        uint64_t bytes = 0, most = writer_pending_bytes_max(writer);
        count = 1 + (int64_t)random_below(&random, 900);
        count = count < sample->batch.length - row ? count : sample->batch.length - row;
        for (int i = 0; i < FIELD_COUNT; i++) {
            struct arena arena = {0};
            uint64_t *sizes;
            columns[i] = sample->batch.columns[i];
            assert_ok(column_sizes(&fields[i], &columns[i], &arena, &sizes, &err));
            bytes += column_bytes(&fields[i], &columns[i], sizes, row, count);
            arena_deinit(&arena);
        }
        struct row_slice slice = {row, count};
        struct round round = {columns, &slice, 1, bytes};
        most += rows_growth_max(writer, columns, slice, bytes);
        assert_ok(leaves_write(writer, &round, &err));
        assert_true(writer_pending_bytes(writer) <= most);
        assert_true(most < (uint64_t)1 << 32); /* and it is a bound worth having */
    }
    parquet_writer_destroy(writer);
    assert_int_equal(out.length, 0);
    buf_deinit(&out);
}

static void test_growth_is_bounded(void **state)
{
    (void)state;
    struct sample sample;
    sample_init(&sample, 4, 7000);
    for (int mode = 0; mode < 24; mode++) {
        struct parquet_options options = parquet_options_default();
        options.compression = (enum parquet_compression)(mode % 5);
        options.values = mode % 3 ? PARQUET_VALUES_AUTO : PARQUET_VALUES_SMALLEST;
        options.page_rows = mode % 4 ? 20000 : 40;
        options.page_bytes = mode % 7 ? (size_t)1 << 20 : 500;
        options.dictionary_bytes_max = mode % 2 ? (size_t)4 << 20 : 3000;
        check_growth(&sample, &options);
    }
    sample_deinit(&sample);
}

/* ---- the same failures ---- */

static const struct executor executor_none;

/* Nulls where none may be, in several columns: the one that is met first without threads. */
static void test_first_failure_counts(void **state)
{
    (void)state;
    enum { PLACES = 3 };
    static const int columns[PLACES] = {FLAG, ID, BYTE};
    static const int64_t rows[][PLACES] = {{20000, 20001, 20002},
                                           {9000, 17000, 20000},
                                           {29000, 20000, 7000},
                                           {100, 100, 100},
                                           {29000, 29999, 29500}};
    struct sample sample;
    sample_init(&sample, 5, ROWS);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        static uint8_t bits[PLACES][(ROWS + 7) / 8];
        struct error alone, err;
        memset(bits, 0xff, sizeof bits);
        for (int place = 0; place < PLACES; place++) {
            struct arrow_array *array = &sample.batch.columns[columns[place]];
            bits[place][rows[i][place] / 8] &= (uint8_t) ~(1 << (rows[i][place] % 8));
            array->validity = bits[place];
            array->null_count = 1;
        }
        for (int threads = 0; threads <= THREADS_MAX; threads++) {
            struct buf out = {0};
            struct parquet_options options = parquet_options_default();
            struct parquet_file_metrics metrics;
            struct pool *pool = make_pool((unsigned)threads);
            options.executor = threads ? pool_executor(pool) : executor_none;
            assert_status(STATUS_INVALID, write_file(&sample, 1, &options, sink_to_buf(&out),
                                                     &metrics, threads ? &err : &alone));
            assert_true(!threads || strcmp(err.message, alone.message) == 0);
            pool_destroy(pool);
            buf_deinit(&out);
        }
    }
    sample_deinit(&sample);
}

struct failing_sink {
    struct buf out;
    size_t bytes_left;
    pthread_t thread;
};

static enum status fail_write(void *context, const void *data, size_t bytes, struct error *err)
{
    struct failing_sink *sink = context;
    assert_true(pthread_equal(sink->thread, pthread_self()));
    if (sink->bytes_left < bytes)
        return error_set(err, STATUS_NO_SPACE, "the volume is full");
    sink->bytes_left -= bytes;
    buf_put(&sink->out, data, bytes);
    return STATUS_OK;
}

static void test_a_sink_that_fails(void **state)
{
    (void)state;
    enum { STEPS = 9 };
    struct sample sample;
    struct pool *pool = make_pool(3);
    size_t groups;
    sample_init(&sample, 6, ROWS);
    struct buf whole = write_with(&sample, 1, parquet_options_default(), executor_none, &groups);
    for (size_t step = 0; step < STEPS; step++) {
        size_t bytes = whole.length / STEPS * step + 3;
        struct failing_sink sinks[2] = {{.bytes_left = bytes}, {.bytes_left = bytes}};
        for (int i = 0; i < 2; i++) {
            struct error err;
            struct parquet_options options = parquet_options_default();
            struct parquet_file_metrics metrics;
            options.executor = i ? pool_executor(pool) : executor_none;
            sinks[i].thread = pthread_self();
            assert_status(STATUS_NO_SPACE,
                          write_file(&sample, 1, &options, (struct sink){fail_write, &sinks[i]},
                                     &metrics, &err));
        }
        assert_int_equal(sinks[0].out.length, sinks[1].out.length);
        if (sinks[0].out.length)
            assert_memory_equal(sinks[0].out.data, sinks[1].out.data, sinks[0].out.length);
        buf_deinit(&sinks[0].out);
        buf_deinit(&sinks[1].out);
    }
    buf_deinit(&whole);
    pool_destroy(pool);
    sample_deinit(&sample);
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    struct sample sample;
    struct pool *pool = make_pool(3);
    bool has_passed = false;
    sample_init(&sample, 7, 2000);
    for (int64_t n = 0; !has_passed; n += 1 + n / 8) {
        struct error err;
        struct buf out = {0};
        struct parquet_file_metrics metrics = {0};
        struct parquet_options options = parquet_options_default();
        options.executor = pool_executor(pool);
        options.page_rows = 300;
        assert_true(n < 100000);
        alloc_fail_after(n);
        enum status status = write_file(&sample, 2, &options, sink_to_buf(&out), &metrics, &err);
        alloc_fail_after(-1);
        assert_true(status == STATUS_OK || status == STATUS_NO_MEMORY);
        has_passed = status == STATUS_OK && n > 1000;
        parquet_file_metrics_deinit(&metrics);
        buf_deinit(&out);
    }
    pool_destroy(pool);
    sample_deinit(&sample);
}

/* ---- writers that share threads ---- */

struct sharer {
    const struct sample *sample;
    struct executor executor;
    struct buf out;
    bool is_ok;
};

static void *write_shared(void *context)
{
    struct sharer *sharer = context;
    struct error err;
    struct parquet_file_metrics metrics;
    struct parquet_options options = parquet_options_default();
    options.row_group_rows = 9000;
    options.executor = sharer->executor;
    sharer->is_ok = write_file(sharer->sample, 2, &options, sink_to_buf(&sharer->out), &metrics,
                               &err) == STATUS_OK;
    if (sharer->is_ok)
        parquet_file_metrics_deinit(&metrics);
    return NULL;
}

static void test_writers_share_a_pool(void **state)
{
    (void)state;
    enum { SHARERS = 3 };
    struct sample sample;
    pthread_t threads[SHARERS];
    struct sharer sharers[SHARERS];
    struct pool *pool = make_pool(2);
    sample_init(&sample, 8, ROWS);
    for (int i = 0; i < SHARERS; i++) {
        sharers[i] = (struct sharer){.sample = &sample, .executor = pool_executor(pool)};
        assert_int_equal(pthread_create(&threads[i], NULL, write_shared, &sharers[i]), 0);
    }
    for (int i = 0; i < SHARERS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(sharers[i].is_ok);
        assert_int_equal(sharers[i].out.length, sharers[0].out.length);
        assert_memory_equal(sharers[i].out.data, sharers[0].out.data, sharers[0].out.length);
    }
    for (int i = 0; i < SHARERS; i++)
        buf_deinit(&sharers[i].out);
    pool_destroy(pool);
    sample_deinit(&sample);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bytes_of_each_codec),
        cmocka_unit_test(test_same_row_groups),
        cmocka_unit_test(test_small_batches),
        cmocka_unit_test(test_a_dictionary_of_maps),
        cmocka_unit_test(test_growth_is_bounded),
        cmocka_unit_test(test_first_failure_counts),
        cmocka_unit_test(test_a_sink_that_fails),
        cmocka_unit_test(test_every_allocation_may_fail),
        cmocka_unit_test(test_writers_share_a_pool),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
