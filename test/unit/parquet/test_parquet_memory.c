/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of batches, and what fills it: it is used again, by nobody before its batch is released;
 * batches outlive their reader and are released by other threads. The values are held against a
 * reader that has nothing to use again.
 */
#include <pthread.h>

#include "../unit.h"
#include "format/parquet/parquet.h"
#include "format/parquet/reader_internal.h"

enum { GROUPS = 6, GROUP_ROWS = 4000 };

static struct arrow_field element = {.name = "element", .type = ARROW_UTF8, .is_nullable = true};
static struct arrow_field columns[] = {
    {.name = "id", .type = ARROW_INT64},
    {.name = "text", .type = ARROW_UTF8, .is_nullable = true},
    {.name = "list",
     .type = ARROW_LIST,
     .is_nullable = true,
     .children = &element,
     .child_count = 1},
};
static const struct arrow_schema schema = {.fields = columns, .field_count = COUNT_OF(columns)};

static void append_row(struct arrow_builder *of, struct random *random, int row)
{
    char text[96];
    uint64_t number = random_next(random);
    arrow_append_i64(&of[0], (int64_t)number);
    memset(text, 'a' + row % 26, sizeof text);
    if (number % 9 == 0)
        arrow_append_null(&of[1]);
    else /* of some groups long, of some short */
        arrow_append_bytes(&of[1], text, number % (row / GROUP_ROWS % 2 ? sizeof text : 5));
    if (number % 7 == 0) {
        arrow_append_null(&of[2]);
        return;
    }
    for (uint64_t i = 0; i < number % 4; i++)
        arrow_append_bytes(&of[2].children[0], text, number % 31);
    arrow_close_list(&of[2]);
}

static struct buf make_file(void)
{
    struct error err;
    struct buf out = {0};
    struct random random;
    struct arrow_field root = {
        .name = "", .type = ARROW_STRUCT, .children = columns, .child_count = COUNT_OF(columns)};
    struct arrow_builder builder;
    struct arrow_batch batch;
    struct parquet_file_metrics metrics;
    struct parquet_writer *writer;
    struct parquet_options options = parquet_options_default();
    options.page_rows = 1000;
    options.row_group_rows = GROUP_ROWS;
    random_init(&random, 7);
    assert_ok(arrow_builder_init(&builder, &root, &err));
    for (int i = 0; i < GROUPS * GROUP_ROWS; i++) {
        append_row(builder.children, &random, i);
        arrow_close_struct(&builder);
    }
    assert_ok(arrow_builder_batch(&builder, &schema, &batch, &err));
    assert_ok(parquet_writer_create(&schema, &options, sink_to_buf(&out), &writer, &err));
    assert_ok(parquet_writer_write(writer, &batch, &err));
    assert_ok(parquet_writer_finish(writer, &metrics, &err));
    parquet_file_metrics_deinit(&metrics);
    parquet_writer_destroy(writer);
    arrow_batch_deinit(&batch);
    arrow_builder_deinit(&builder);
    return out;
}

struct world {
    struct buf bytes;
    struct span span;
    struct parquet_file *file;
    struct buf wanted[GROUPS]; /* of each group, as IPC */
};

static struct parquet_reader *open_reader(const struct world *world)
{
    struct error err;
    struct parquet_reader *reader;
    const struct parquet_read_options options = {.schema = &schema};
    assert_ok(parquet_reader_create(world->file, &options, &reader, &err));
    return reader;
}

static struct arrow_batch read_group(struct parquet_reader *reader, size_t group)
{
    struct error err;
    struct arrow_batch batch;
    assert_ok(parquet_reader_read(reader, group, &batch, &err));
    return batch;
}

static struct buf bytes_of(const struct arrow_batch *batch)
{
    struct error err;
    struct buf out = {0};
    assert_ok(arrow_ipc_write_batch(&schema, batch, ARROW_UNCOMPRESSED, &out, &err));
    return out;
}

static bool is_group(const struct world *world, const struct arrow_batch *batch, size_t group)
{
    const struct buf *wanted = &world->wanted[group];
    struct buf bytes = bytes_of(batch);
    bool is_it =
        bytes.length == wanted->length && memcmp(bytes.data, wanted->data, bytes.length) == 0;
    buf_deinit(&bytes);
    return is_it;
}

static int setup(void **state)
{
    struct error err;
    struct parquet_limits limits = parquet_limits_default();
    struct world *world = mem_alloc_zero(1, sizeof *world);
    assert_non_null(world);
    world->bytes = make_file();
    world->span = span_of(world->bytes.data, world->bytes.length);
    assert_ok(parquet_file_open(byte_source_of_span(&world->span), &limits, &world->file, &err));
    assert_int_equal(world->file->group_count, GROUPS);
    for (size_t i = 0; i < GROUPS; i++) {
        struct parquet_reader *reader = open_reader(world);
        struct arrow_batch batch = read_group(reader, i);
        world->wanted[i] = bytes_of(&batch);
        arrow_batch_deinit(&batch);
        parquet_reader_destroy(reader);
    }
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    for (size_t i = 0; i < GROUPS; i++)
        buf_deinit(&world->wanted[i]);
    parquet_file_close(world->file);
    buf_deinit(&world->bytes);
    mem_free(world);
    return 0;
}

/* The same block again, which nobody else was given meanwhile; none where it is much too large. */
static void test_memory_is_used_again(void **state)
{
    (void)state;
    enum { BYTES = 20000 };
    struct parquet_memory *pool = parquet_memory_create(1 << 20);
    struct arena arena = {0};
    struct buf buf = {0};
    assert_non_null(pool);
    assert_true(pool_reserve(pool, &buf, BYTES));
    void *place = buf.data;
    assert_true(pool_lend(pool, &buf, &arena));
    assert_null(buf.data);
    assert_true(pool_reserve(pool, &buf, BYTES));
    assert_ptr_not_equal(buf.data, place);
    buf_deinit(&buf);
    arena_deinit(&arena);
    void *others = mem_alloc(BYTES);
    assert_ptr_not_equal(others, place);
    assert_true(pool_reserve(pool, &buf, BYTES / 4));
    assert_ptr_not_equal(buf.data, place);
    buf_deinit(&buf);
    assert_true(pool_reserve(pool, &buf, BYTES - 1000));
    assert_ptr_equal(buf.data, place);
    mem_free(others);
    pool_give(pool, &buf);
    parquet_memory_destroy(pool);
}

/* Any number of batches, in any order; some longer than the reader. */
static void test_batches_keep_their_memory(void **state)
{
    const struct world *world = *state;
    struct random random;
    random_init(&random, 11);
    for (int round = 0; round < 20; round++) {
        struct parquet_reader *reader = open_reader(world);
        struct arrow_batch held[4] = {{0}};
        size_t groups[COUNT_OF(held)] = {0};
        for (int i = 0; i < 30; i++) {
            size_t at = random_below(&random, COUNT_OF(held));
            if (held[at].columns)
                assert_true(is_group(world, &held[at], groups[at]));
            arrow_batch_deinit(&held[at]);
            groups[at] = random_below(&random, GROUPS);
            held[at] = read_group(reader, groups[at]);
        }
        parquet_reader_destroy(reader);
        for (size_t i = 0; i < COUNT_OF(held); i++) {
            if (held[i].columns)
                assert_true(is_group(world, &held[i], groups[i]));
            arrow_batch_deinit(&held[i]);
        }
    }
}

/* Several readers in turns over memory of the caller, which goes before the last batch does. */
static void test_readers_share_memory(void **state)
{
    enum { READERS = 3 };
    struct error err;
    const struct world *world = *state;
    struct arrow_batch held[READERS] = {{0}};
    struct parquet_reader *readers[READERS];
    struct parquet_read_options options = {.schema = &schema,
                                           .memory = parquet_memory_create(1 << 20)};
    assert_non_null(options.memory);
    for (size_t i = 0; i < READERS; i++)
        assert_ok(parquet_reader_create(world->file, &options, &readers[i], &err));
    for (size_t i = 0; i < 40; i++) {
        size_t at = i % READERS;
        if (held[at].columns)
            assert_true(is_group(world, &held[at], (i - READERS) % GROUPS));
        arrow_batch_deinit(&held[at]);
        held[at] = read_group(readers[at], i % GROUPS);
    }
    for (size_t i = 0; i < READERS; i++)
        parquet_reader_destroy(readers[i]);
    parquet_memory_destroy(options.memory);
    for (size_t i = 40 - READERS; i < 40; i++) {
        assert_true(is_group(world, &held[i % READERS], i % GROUPS));
        arrow_batch_deinit(&held[i % READERS]);
    }
}

struct handing {
    const struct world *world;
    struct arrow_batch batch;
    size_t group;
    bool is_right; /* set by the thread */
};

static void *release(void *context)
{
    struct handing *handing = context;
    handing->is_right = is_group(handing->world, &handing->batch, handing->group);
    arrow_batch_deinit(&handing->batch);
    return NULL;
}

/* The reader goes while two of its batches are still looked at. */
static void test_other_threads_release(void **state)
{
    enum { BATCHES = 24, AT_ONCE = 3 };
    const struct world *world = *state;
    struct parquet_reader *reader = open_reader(world);
    struct handing handings[BATCHES];
    pthread_t threads[BATCHES];
    for (size_t i = 0; i < BATCHES; i++) {
        if (i >= AT_ONCE)
            assert_int_equal(pthread_join(threads[i - AT_ONCE], NULL), 0);
        handings[i] = (struct handing){
            .world = world, .batch = read_group(reader, i % GROUPS), .group = i % GROUPS};
        assert_int_equal(pthread_create(&threads[i], NULL, release, &handings[i]), 0);
    }
    parquet_reader_destroy(reader);
    for (size_t i = BATCHES - AT_ONCE; i < BATCHES; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (size_t i = 0; i < BATCHES; i++)
        assert_true(handings[i].is_right);
}

/* ---- values of a dictionary ---- */

enum { ENTRIES = 40, VALUES = 20000 };

static struct arrow_field text_column = {.name = "t", .type = ARROW_UTF8, .is_nullable = true};
static const struct arrow_schema text_schema = {.fields = &text_column, .field_count = 1};

/* Runs of one entry and entries in any order; -1 is a null. */
static void choose(struct random *random, int *entries)
{
    for (int i = 0, run = 0; i < VALUES; i++, run--) {
        if (run <= 0)
            run = random_chance(random, 1, 8) ? 1 + (int)random_below(random, 60) : 1;
        entries[i] = run > 1 && i ? entries[i - 1] : (int)random_below(random, ENTRIES + 1) - 1;
    }
}

static struct buf make_texts(const char *text, size_t most, const int *entries)
{
    struct error err;
    struct buf out = {0};
    struct arrow_field root = {
        .name = "", .type = ARROW_STRUCT, .children = &text_column, .child_count = 1};
    struct arrow_builder builder;
    struct arrow_batch batch;
    struct parquet_file_metrics metrics;
    struct parquet_writer *writer;
    struct parquet_options options = parquet_options_default();
    options.page_rows = 3000;
    assert_ok(arrow_builder_init(&builder, &root, &err));
    for (int i = 0; i < VALUES; i++) {
        size_t length = entries[i] < 0 ? 0 : most - (size_t)entries[i] * most / ENTRIES;
        if (entries[i] < 0)
            arrow_append_null(&builder.children[0]);
        else
            arrow_append_bytes(&builder.children[0], text + entries[i], length);
        arrow_close_struct(&builder);
    }
    assert_ok(arrow_builder_batch(&builder, &text_schema, &batch, &err));
    assert_ok(parquet_writer_create(&text_schema, &options, sink_to_buf(&out), &writer, &err));
    assert_ok(parquet_writer_write(writer, &batch, &err));
    assert_ok(parquet_writer_finish(writer, &metrics, &err));
    parquet_file_metrics_deinit(&metrics);
    parquet_writer_destroy(writer);
    arrow_batch_deinit(&batch);
    arrow_builder_deinit(&builder);
    return out;
}

/* Around the lengths to which values are copied without asking for theirs. */
static void test_lengths_of_values(void **state)
{
    (void)state;
    static const size_t longest[] = {1, 15, 16, 17, 31, 32, 33, 64, 300, 1024, 1025, 3000};
    static char text[3000 + ENTRIES];
    static int entries[VALUES];
    struct error err;
    struct random random;
    struct parquet_limits limits = parquet_limits_default();
    const struct parquet_read_options options = {0};
    random_init(&random, 5);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('!' + random_below(&random, 90));
    for (size_t l = 0; l < COUNT_OF(longest); l++) {
        struct parquet_file *file;
        struct parquet_reader *reader;
        choose(&random, entries);
        struct buf bytes = make_texts(text, longest[l], entries);
        struct span span = span_of(bytes.data, bytes.length);
        assert_ok(parquet_file_open(byte_source_of_span(&span), &limits, &file, &err));
        assert_true(file->groups[0].chunks[0].has_dictionary);
        assert_ok(parquet_reader_create(file, &options, &reader, &err));
        struct arrow_batch batch = read_group(reader, 0);
        const struct arrow_array *array = &batch.columns[0];
        for (int i = 0; i < VALUES; i++) {
            size_t length = (size_t)(array->offsets[i + 1] - array->offsets[i]);
            assert_int_equal(arrow_is_valid(array, i), entries[i] >= 0);
            if (entries[i] < 0)
                assert_int_equal(length, 0);
            else if (length != longest[l] - (size_t)entries[i] * longest[l] / ENTRIES ||
                     memcmp((const char *)array->values + array->offsets[i], text + entries[i],
                            length) != 0)
                fail_msg("value %d of those up to %zu bytes", i, longest[l]);
        }
        arrow_batch_deinit(&batch);
        parquet_reader_destroy(reader);
        parquet_file_close(file);
        buf_deinit(&bytes);
    }
}

/* A buffer with a bound never gets more room than that, whatever there is to use again. */
static void test_bounds_hold(void **state)
{
    (void)state;
    struct parquet_memory *pool = parquet_memory_create(1 << 20);
    struct random random;
    random_init(&random, 3);
    assert_non_null(pool);
    for (int i = 0; i < 2000; i++) {
        size_t bytes = 1 + random_below(&random, 40000), max = 1 + random_below(&random, 40000);
        struct buf buf = {.bytes_max = max};
        bool is_had = pool_reserve(pool, &buf, bytes);
        assert_int_equal(is_had, bytes <= max);
        assert_true(buf.capacity <= max && (!is_had || buf.capacity >= bytes));
        if (is_had)
            memset(buf.data, 0xa5, buf.capacity);
        pool_give(pool, &buf);
        assert_null(buf.data);
    }
    parquet_memory_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_used_again),
        cmocka_unit_test_setup_teardown(test_batches_keep_their_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_readers_share_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_threads_release, setup, teardown),
        cmocka_unit_test(test_bounds_hold),
        cmocka_unit_test(test_lengths_of_values),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
