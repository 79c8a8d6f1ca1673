/* SPDX-License-Identifier: Apache-2.0
 *
 * What C can tell about filters: each operator by type with pruning and without, rows by ranges,
 * texts that are no filters, damage of every kind. That others' files give the right rows is
 * test/interop's to show. Takes the folder of test/fuzz/corpus/parquet as its argument.
 */
#include <math.h>

#include "../unit.h"
#include "format/parquet/parquet.h"
#include "format/parquet/reader_internal.h"

static const char *corpus;

static struct buf load(const char *name)
{
    char path[1024];
    struct buf bytes = {0};
    snprintf(path, sizeof path, "%s/%s", corpus, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    uint8_t chunk[4096];
    for (size_t count; (count = fread(chunk, 1, sizeof chunk, file)) > 0;)
        buf_put(&bytes, chunk, count);
    fclose(file);
    return bytes;
}

/* ---- a file of our own: 60 rows in pages of 7, two row groups ---- */

enum { ROWS = 60, PREFIX = 70 };

static struct arrow_origin unsigned_origin = {.kind = ARROW_ORIGIN_UINT};
static struct arrow_origin decimal_origin = {
    .kind = ARROW_ORIGIN_DECIMAL, .precision = 10, .scale = 2};
static struct arrow_field member = {.name = "a", .type = ARROW_INT64, .is_nullable = true};
static struct arrow_field element = {.name = "element", .type = ARROW_UTF8, .is_nullable = true};

enum { ID, I32, U32, REAL, TEXT, BYTES, DAY, TIME, FLAG, DEC, STRUCT, LIST, COLUMN_COUNT };

static struct arrow_field columns[COLUMN_COUNT] = {
    [ID] = {.name = "id", .type = ARROW_INT64},
    [I32] = {.name = "i32", .type = ARROW_INT32, .is_nullable = true},
    [U32] = {.name = "u32", .type = ARROW_FIXED, .byte_width = 4, .origin = &unsigned_origin},
    [REAL] = {.name = "f", .type = ARROW_DOUBLE},
    [TEXT] = {.name = "t", .type = ARROW_UTF8},
    [BYTES] = {.name = "b", .type = ARROW_BINARY},
    [DAY] = {.name = "day", .type = ARROW_DATE32},
    [TIME] = {.name = "ts", .type = ARROW_TIMESTAMP_US, .is_instant = true},
    [FLAG] = {.name = "flag", .type = ARROW_BOOL},
    [DEC] = {.name = "dec", .type = ARROW_FIXED, .byte_width = 16, .origin = &decimal_origin},
    [STRUCT] = {.name = "s",
                .type = ARROW_STRUCT,
                .is_nullable = true,
                .children = &member,
                .child_count = 1},
    [LIST] = {.name = "l",
              .type = ARROW_LIST,
              .is_nullable = true,
              .children = &element,
              .child_count = 1},
};

static const struct arrow_schema schema = {.fields = columns, .field_count = COLUMN_COUNT};

static void text_of(int i, char out[PREFIX + 3])
{
    memset(out, 'p', PREFIX);
    snprintf(out + PREFIX, 3, "%02d", i);
}

static void append_numbers(struct arrow_builder *of, int i)
{
    uint8_t bytes[16];
    uint32_t large = UINT32_MAX - (uint32_t)i;
    int64_t cents = (i - 30) * 25;
    arrow_append_i64(&of[ID], i);
    if (i % 5 == 0)
        arrow_append_null(&of[I32]);
    else
        arrow_append_i32(&of[I32], i - 30);
    arrow_append_bytes(&of[U32], &large, sizeof large);
    arrow_append_double(&of[REAL], i % 10 == 3 ? (double)NAN : i % 10 == 4 ? -0.0 : i / 2.0);
    arrow_append_i32(&of[DAY], i - 30);
    arrow_append_i64(&of[TIME], (i - 30) * INT64_C(1000000) + 1);
    arrow_append_bool(&of[FLAG], i >= 30);
    memset(bytes, cents < 0 ? 0xff : 0, sizeof bytes);
    put_le64(bytes, (uint64_t)cents);
    arrow_append_bytes(&of[DEC], bytes, sizeof bytes);
}

static void append_row(struct arrow_builder *of, int i)
{
    char text[PREFIX + 3];
    const uint8_t bytes[] = {(uint8_t)i, 0xff};
    append_numbers(of, i);
    text_of(i, text);
    arrow_append_bytes(&of[TEXT], text, sizeof text - 1);
    arrow_append_bytes(&of[BYTES], bytes, sizeof bytes);
    if (i % 6 == 0) {
        arrow_append_null(&of[STRUCT]);
    } else {
        if (i % 4 == 1)
            arrow_append_null(&of[STRUCT].children[0]);
        else
            arrow_append_i64(&of[STRUCT].children[0], i);
        arrow_close_struct(&of[STRUCT]);
    }
    if (i % 7 == 0) {
        arrow_append_null(&of[LIST]);
    } else {
        for (int j = 0; j < i % 3; j++)
            arrow_append_bytes(&of[LIST].children[0], text + PREFIX - j, (size_t)j + 2);
        arrow_close_list(&of[LIST]);
    }
}

static struct buf make_file(int rows)
{
    struct error err;
    struct buf out = {0};
    struct arrow_field root = {
        .name = "", .type = ARROW_STRUCT, .children = columns, .child_count = COLUMN_COUNT};
    struct arrow_builder builder;
    struct arrow_batch batch;
    struct parquet_file_metrics metrics;
    struct parquet_writer *writer;
    struct parquet_options options = parquet_options_default();
    options.page_rows = 7;
    options.row_group_rows = 30;
    options.compression = PARQUET_UNCOMPRESSED;
    assert_ok(arrow_builder_init(&builder, &root, &err));
    for (int i = 0; i < rows; i++) {
        append_row(builder.children, i);
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

static struct parquet_file *open_file(const struct span *bytes)
{
    struct error err;
    struct parquet_file *file;
    struct parquet_limits limits = parquet_limits_default();
    assert_ok(parquet_file_open(byte_source_of_span(bytes), &limits, &file, &err));
    return file;
}

/* ---- filters ---- */

/* The ids of the rows that match. */
static size_t find(const struct parquet_file *file, const char *where, bool skips_pruning,
                   int64_t out_ids[ROWS], struct parquet_scan_facts *out_facts)
{
    struct error err;
    struct arena arena = {0};
    struct parquet_scan *scan;
    struct arrow_batch batch;
    struct parquet_scan_options options = {.skips_pruning = skips_pruning};
    size_t count = 0;
    assert_ok(parquet_filter_parse(where, file, &arena, &options.filter, &err));
    assert_ok(parquet_scan_create(file, &options, &scan, &err));
    enum status status;
    while ((status = parquet_scan_next(scan, &batch, &err)) == STATUS_OK) {
        for (uint32_t i = 0; i < COLUMN_COUNT; i++)
            assert_ok(arrow_array_validate(&batch.schema->fields[i], &batch.columns[i], &err));
        memcpy(out_ids + count, batch.columns[ID].values, (size_t)batch.length * sizeof *out_ids);
        count += (size_t)batch.length;
        arrow_batch_deinit(&batch);
    }
    assert_int_equal(status, STATUS_NOT_FOUND);
    *out_facts = parquet_scan_facts(scan);
    assert_int_equal(out_facts->match_count, count);
    parquet_scan_destroy(scan);
    arena_deinit(&arena);
    return count;
}

#define P10 "pppppppppp"
#define P70 P10 P10 P10 P10 P10 P10 P10

static void test_operators_by_type(void **state)
{
    (void)state;
    static const struct {
        const char *where;
        size_t count;
    } cases[] = {
        {"id >= 10 and id < 20", 10},
        {"id <> 5", 59},
        {"id > 9223372036854775806", 0},
        {"i32 is null", 12},
        {"i32 IS NOT NULL", 48},
        {"i32 != -29", 47},
        {"i32 < 0", 24},
        {"i32 in (-29, 29, 7, 1000)", 3},
        {"i32 = 3000000000", 0},
        {"u32 > 4294967290", 5},
        {"u32 <= 2147483647", 0},
        {"u32 = 4294967236", 1},
        {"f = 0", 7},
        {"f = -0.0", 7},
        {"f != 0", 53},
        {"f > 20", 15},
        {"f = nan", 0},
        {"f != nan", 60},
        {"f <= inf", 54},
        {"f < -1e300", 0},
        {"t = '" P70 "07'", 1},
        {"t > '" P70 "57'", 2},
        {"t < '" P70 "'", 0},
        {"t >= '" P70 "'", 60},
        {"b = x'05ff'", 1},
        {"b < x'03'", 3},
        {"b in (x'', x'3bff', X'3BFF')", 1},
        {"day < '1970-01-01'", 30},
        {"day = '1969-12-02'", 1},
        {"ts >= '1970-01-01T00:00:00Z'", 30},
        {"ts < '1969-12-31 23:59:31'", 1},
        {"ts = '1970-01-01T01:00:05.000001+01:00'", 1},
        {"flag = true", 30},
        {"flag < true", 30},
        {"flag != false and id < 31", 1},
        {"dec >= 7.25", 1},
        {"dec < -7.25", 1},
        {"dec = 0.000", 1},
        {"dec in (.25, -0.25, 3)", 3},
        {"s.a = 7", 1},
        {"s.a is null", 25},
        {"s.a is not null and i32 is null and f > 20", 2},
        {"\"s\".\"a\" = 7", 1},
        {"id = 3 or id = 50", 2},
        {"id < 2 or id > 57 and flag = true", 4},
        {"(id < 2 or id > 57) and flag = true", 2},
        {"flag = true and (id < 2 OR id > 57)", 2},
        {"i32 is null or i32 > 25", 16},
        {"((id = 1))", 1},
        {"id = 1 or (id = 2 or (id = 3 and (f > 100 or id = 3)))", 3},
        {"b = x'05ff' or t = '" P70 "07' or s.a = 7 or id in (5, 9)", 3},
        {"s.a is null or s.a is not null", 60},
        {"(id = 1 or id = 2) and (id = 2 or id = 3) and (id = 3 or id = 4)", 0},
    };
    struct buf bytes = make_file(ROWS);
    struct span span = span_of(bytes.data, bytes.length);
    struct parquet_file *file = open_file(&span);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int64_t ids[ROWS], same[ROWS];
        struct parquet_scan_facts facts;
        size_t count = find(file, cases[i].where, false, ids, &facts);
        if (count != cases[i].count)
            fail_msg("%s: %zu rows", cases[i].where, count);
        assert_int_equal(find(file, cases[i].where, true, same, &facts), count);
        assert_int_equal(facts.read_row_count, ROWS);
        assert_memory_equal(ids, same, count * sizeof *ids);
    }
    parquet_file_close(file);
    buf_deinit(&bytes);
}

static void test_what_is_read(void **state)
{
    (void)state;
    int64_t ids[ROWS];
    struct parquet_scan_facts facts;
    struct buf bytes = make_file(ROWS);
    struct span span = span_of(bytes.data, bytes.length);
    struct parquet_file *file = open_file(&span);
    assert_int_equal(find(file, "id = 40", false, ids, &facts), 1);
    assert_int_equal(facts.group_count, 2);
    assert_int_equal(facts.statistics_group_count, 1);
    assert_int_equal(facts.read_row_count, 7); /* rows 37 to 43 */
    assert_int_equal(facts.page_count, 1 + COLUMN_COUNT);
    assert_int_equal(find(file, "id = 40 and s.a = 3", false, ids, &facts), 0);
    assert_int_equal(facts.page_count, 0);
    assert_int_equal(find(file, "id in (8, 9) and f = 3.25", false, ids, &facts), 0);
    assert_int_equal(facts.page_count, 2); /* of the conditions alone */
    assert_int_equal(find(file, "id = 3 or id = 40", false, ids, &facts), 2);
    assert_int_equal(facts.read_row_count, 14); /* a page of each group */
    assert_int_equal(find(file, "id = 40 and s.a = 3 or id = 3 and s.a > 50", false, ids, &facts),
                     0);
    assert_int_equal(facts.statistics_group_count, 2);
    assert_int_equal(facts.page_bytes + facts.index_bytes, 0);
    assert_int_equal(find(file, "(id = 2 or id = 24) and (id = 10 or id = 16)", false, ids, &facts),
                     0);
    assert_int_equal(facts.index_group_count, 1);
    assert_int_equal(facts.page_count, 0);
    assert_int_equal(find(file, "id < 0", false, ids, &facts), 0);
    assert_int_equal(facts.page_bytes + facts.index_bytes, 0);
    parquet_file_close(file);
    buf_deinit(&bytes);
}

static void test_texts_that_are_no_filters(void **state)
{
    (void)state;
    static const struct {
        const char *where;
        enum status status;
        const char *said;
    } cases[] = {
        {"", STATUS_INVALID, "byte 0: the name of a column is missing"},
        {"id", STATUS_INVALID, "byte 2: an operator is missing"},
        {"id =", STATUS_INVALID, "byte 4: column id wants an integer"},
        {"id = 1 and", STATUS_INVALID, "byte 10: the name of a column"},
        {"id = 1 id = 2", STATUS_INVALID, "byte 7: \"and\", \"or\" or the end"},
        {"id = 1 or", STATUS_INVALID, "byte 9: the name of a column"},
        {"or id = 1", STATUS_NOT_FOUND, "byte 0: parquet: no column or"},
        {"(id = 1", STATUS_INVALID, "byte 7: ) is missing"},
        {"(id = 1 or id = 2", STATUS_INVALID, "byte 17: ) is missing"},
        {"id = 1)", STATUS_INVALID, "byte 6: \"and\", \"or\" or the end"},
        {"()", STATUS_INVALID, "byte 1: the name of a column"},
        {"((((((((((((((((((((((((((((((((id=1", STATUS_INVALID, "byte 31: brackets too deep"},
        {"id = 9223372036854775808", STATUS_INVALID, "an integer of 64 bits"},
        {"id = '1'", STATUS_INVALID, "an integer"},
        {"id in ()", STATUS_INVALID, "byte 7: column id wants"},
        {"id in (1", STATUS_INVALID, "byte 8: ) is missing"},
        {"id is 1", STATUS_INVALID, "byte 6: null is missing"},
        {"id ! 1", STATUS_INVALID, "byte 3: neither a name"},
        {"\"id = 1", STATUS_INVALID, "byte 0: a quote that is not closed"},
        {"\"id\" = \"1\"", STATUS_INVALID, "byte 7: column id wants"},
        {"u32 = -1", STATUS_INVALID, "an integer from 0 on"},
        {"f = 1.5.5", STATUS_INVALID, "a number"},
        {"f = 0x10", STATUS_INVALID, "a number"},
        {"f = 1e999", STATUS_INVALID, "a number"},
        {"t = x'61g1'", STATUS_INVALID, "byte 4: x'...'"},
        {"b = x'123'", STATUS_INVALID, "an even number"},
        {"day = '1970-02-30'", STATUS_INVALID, "a date"},
        {"day = '1970-01-01x'", STATUS_INVALID, "a date"},
        {"ts = '1970-01-01T24:00:00Z'", STATUS_INVALID, "a time such as"},
        {"ts = '1970-01-01T00:00:00.1234567Z'", STATUS_INVALID, "not finer"},
        {"ts = '999999-01-01'", STATUS_INVALID, "a time such as"},
        {"dec = 1.005", STATUS_INVALID, "no more digits"},
        {"dec = 1e5", STATUS_INVALID, "a decimal"},
        {"flag = 1", STATUS_INVALID, "true or false"},
        {"i32 = null", STATUS_INVALID, "write is null"},
        {"s = 1", STATUS_NOT_FOUND, "byte 0: parquet: no column s with values"},
        {"id=1 and l.list.element = 'x'", STATUS_USAGE, "byte 9: parquet: column l.list.element"},
    };
    struct error err;
    struct buf bytes = make_file(ROWS);
    struct span span = span_of(bytes.data, bytes.length);
    struct parquet_file *file = open_file(&span);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = {0};
        struct parquet_filter filter;
        enum status status = parquet_filter_parse(cases[i].where, file, &arena, &filter, &err);
        if (status != cases[i].status || !strstr(err.message, cases[i].said))
            fail_msg("%s: %s: %s", cases[i].where, status_name(status),
                     status == STATUS_OK ? "" : err.message);
        arena_deinit(&arena);
    }
    struct parquet_value one = {.integer = 1};
    struct parquet_condition conditions[] = {
        {.leaf = 0, .op = PARQUET_EQUAL},
        {.leaf = 0, .op = PARQUET_IS_NULL, .values = &one, .value_count = 1},
        {.leaf = file->leaf_count, .op = PARQUET_IS_NULL},
        {.leaf = file->leaf_count - 1, .op = PARQUET_IS_NULL}, /* in a list */
    };
    for (size_t i = 0; i < COUNT_OF(conditions); i++) {
        struct parquet_scan_options options = {
            .filter = {.conditions = &conditions[i], .count = 1}};
        struct parquet_scan *scan;
        assert_status(STATUS_USAGE, parquet_scan_create(file, &options, &scan, &err));
    }
    conditions[0] = (struct parquet_condition){.op = PARQUET_IS_NULL};
    const struct parquet_term terms[][3] = {
        {{PARQUET_TERM_CONDITION, 1}},                              /* a condition that is none */
        {{PARQUET_TERM_OR, 0}},                                     /* of nothing */
        {{PARQUET_TERM_OR, 2}, {PARQUET_TERM_CONDITION, 0}},        /* of less than it says */
        {{PARQUET_TERM_CONDITION, 0}, {PARQUET_TERM_CONDITION, 0}}, /* two filters */
    };
    const size_t counts[] = {1, 1, 2, 2};
    for (size_t i = 0; i < COUNT_OF(terms); i++) {
        struct parquet_scan_options options = {.filter = {conditions, 1, terms[i], counts[i]}};
        struct parquet_scan *scan;
        assert_status(STATUS_USAGE, parquet_scan_create(file, &options, &scan, &err));
    }
    parquet_file_close(file);
    buf_deinit(&bytes);
}

/* ---- filters by chance ---- */

/* A filter as text, and the rows that it must give, one bit each. */
struct chance {
    struct random random;
    const char *const *conditions;
    const uint64_t *rows; /* of each condition alone */
    size_t count;
    struct buf text;
};

static uint64_t some_filter(struct chance *chance, unsigned depth)
{
    struct random *random = &chance->random;
    if (depth == 0 || random_chance(random, 1, 4)) {
        size_t i = random_below(random, chance->count);
        buf_format(&chance->text, "%s", chance->conditions[i]);
        return chance->rows[i];
    }
    bool is_or = random_chance(random, 1, 2);
    uint64_t rows = is_or ? 0 : UINT64_MAX;
    for (uint64_t i = 0, joined = 1 + random_below(random, 3); i < joined; i++) {
        buf_format(&chance->text, "%s(", i == 0 ? "" : is_or ? " or " : " and ");
        uint64_t some = some_filter(chance, depth - 1);
        buf_format(&chance->text, ")");
        rows = is_or ? rows | some : rows & some;
    }
    return rows;
}

static uint64_t find_rows(const struct parquet_file *file, const char *where, bool skips_pruning)
{
    struct parquet_scan_facts facts;
    int64_t ids[ROWS];
    uint64_t rows = 0;
    size_t count = find(file, where, skips_pruning, ids, &facts);
    for (size_t i = 0; i < count; i++)
        rows |= UINT64_C(1) << ids[i];
    return rows;
}

/* Of ours, all of whose pages and groups say what is in them. */
static void test_filters_by_chance(void **state)
{
    (void)state;
    static const char *const conditions[] = {
        "id < 3",
        "id >= 55",
        "id in (2, 13, 29, 30, 44)",
        "id != 31",
        "i32 is null",
        "i32 > 20",
        "i32 < -25",
        "i32 is not null",
        "f = nan",
        "f >= 29",
        "f = 0",
        "t > '" P70 "57'",
        "t = '" P70 "07'",
        "b < x'03'",
        "flag = true",
        "flag = false",
        "s.a is null",
        "s.a in (7, 45, 59)",
        "day = '1969-12-02'",
        "dec > 1000",
    };
    uint64_t rows[COUNT_OF(conditions)];
    struct buf bytes = make_file(ROWS);
    struct span span = span_of(bytes.data, bytes.length);
    struct parquet_file *file = open_file(&span);
    struct chance chance = {.conditions = conditions, .rows = rows, .count = COUNT_OF(conditions)};
    random_init(&chance.random, 17);
    for (size_t i = 0; i < COUNT_OF(conditions); i++)
        rows[i] = find_rows(file, conditions[i], true);
    for (int i = 0; i < 400; i++) {
        buf_clear(&chance.text);
        uint64_t wanted = some_filter(&chance, 4) & ((UINT64_C(1) << ROWS) - 1);
        buf_put_byte(&chance.text, 0);
        const char *where = (const char *)chance.text.data;
        if (chance.text.failed || find_rows(file, where, false) != wanted ||
            find_rows(file, where, true) != wanted)
            fail_msg("%s", where);
    }
    buf_deinit(&chance.text);
    parquet_file_close(file);
    buf_deinit(&bytes);
}

/* ---- rows by ranges ---- */

/* The batch as bytes, however it came about. */
static struct buf bytes_of(const struct arrow_batch *batch, const struct arrow_row *rows,
                           size_t count)
{
    struct error err;
    struct arrow_batch copy;
    struct buf out = {0};
    const struct arrow_batch *batches[] = {batch};
    assert_ok(arrow_gather(batches, 1, rows, count, &copy, &err));
    assert_ok(arrow_ipc_write_batch(batch->schema, &copy, ARROW_UNCOMPRESSED, &out, &err));
    arrow_batch_deinit(&copy);
    return out;
}

/* Some rows of a group against the same rows of the whole. */
static void check_ranges(struct parquet_reader *reader, size_t group,
                         const struct arrow_batch *whole, struct random *random)
{
    struct error err;
    struct parquet_row_range ranges[64];
    struct arrow_row wanted[1024], all[1024];
    size_t range_count = 0, count = 0;
    uint64_t step = 1 + random_below(random, 20);
    for (int64_t at = (int64_t)random_below(random, step);
         at < whole->length && range_count < 64;) {
        int64_t length = 1 + (int64_t)random_below(random, step);
        length = length < whole->length - at ? length : whole->length - at;
        ranges[range_count++] = (struct parquet_row_range){.first = at, .count = length};
        for (int64_t i = 0; i < length; i++) {
            all[count] = (struct arrow_row){.row = (uint32_t)count};
            wanted[count++] = (struct arrow_row){.row = (uint32_t)(at + i)};
        }
        at += length + (int64_t)random_below(random, step);
    }
    struct arrow_batch some;
    assert_ok(parquet_reader_read_rows(reader, group, ranges, range_count, &some, &err));
    assert_int_equal(some.length, count);
    for (uint32_t i = 0; i < some.schema->field_count; i++)
        assert_ok(arrow_array_validate(&some.schema->fields[i], &some.columns[i], &err));
    struct buf is = bytes_of(&some, all, count), should_be = bytes_of(whole, wanted, count);
    assert_int_equal(is.length, should_be.length);
    assert_memory_equal(is.data, should_be.data, is.length);
    buf_deinit(&is);
    buf_deinit(&should_be);
    arrow_batch_deinit(&some);
}

static void check_file(const struct span *bytes, struct random *random)
{
    struct error err;
    struct parquet_read_options options = {.schema = NULL};
    struct parquet_file *file = open_file(bytes);
    struct parquet_reader *reader;
    assert_ok(parquet_reader_create(file, &options, &reader, &err));
    for (size_t group = 0; group < file->group_count; group++) {
        struct arrow_batch whole;
        assert_ok(parquet_reader_read(reader, group, &whole, &err));
        for (int round = 0; round < 200; round++)
            check_ranges(reader, group, &whole, random);
        assert_ok(parquet_file_verify(file, group, &err));
        arrow_batch_deinit(&whole);
    }
    assert_ok(parquet_file_verify_layout(file, &err));
    parquet_reader_destroy(reader);
    parquet_file_close(file);
}

static void test_rows_by_ranges(void **state)
{
    (void)state;
    static const char *const files[] = {
        "bloom_index",  "byte_stream_split_v2",
        "codec_zstd",   "delta_byte_array_v2",
        "dict_v1",      "int96",
        "nested_l_v1",  "nested_ll_v2",
        "nested_m_v1",  "nested_st_v2",
        "ours_nested",  "rle_v2",
        "no_rows",      "plain_v1",
        "nested_ll_v1", "dict_v2",
    };
    struct random random;
    struct buf ours = make_file(ROWS);
    struct span span = span_of(ours.data, ours.length);
    random_init(&random, 5);
    check_file(&span, &random);
    buf_deinit(&ours);
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        struct buf bytes = load(files[i]);
        span = span_of(bytes.data, bytes.length);
        check_file(&span, &random);
        buf_deinit(&bytes);
    }
}

/* ---- damage ---- */

static enum status scan_file(const struct parquet_file *file, struct parquet_filter filter,
                             struct error *err)
{
    struct parquet_scan_options options = {.filter = filter, .read = {.skips_checksums = true}};
    struct parquet_scan *scan = NULL;
    struct arrow_batch batch;
    struct error bad;
    enum status status;
    TRY(parquet_scan_create(file, &options, &scan, err));
    while ((status = parquet_scan_next(scan, &batch, err)) == STATUS_OK) {
        for (uint32_t i = 0; i < batch.schema->field_count; i++)
            if (arrow_array_validate(&batch.schema->fields[i], &batch.columns[i], &bad) !=
                STATUS_OK)
                fail_msg("accepted, but: %s", bad.message);
        arrow_batch_deinit(&batch);
    }
    parquet_scan_destroy(scan);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* A condition on each leaf alone, which some rows match, then all of them, then any, then
 * everything that the file says. */
static enum status scan_all(struct span bytes, struct error *err)
{
    enum { LEAVES_MAX = 64 };
    static const uint8_t text[] = "k05";
    const struct parquet_value value = {
        .integer = 5, .real = 5, .bytes = {.data = text, .length = 3}};
    struct parquet_condition conditions[LEAVES_MAX];
    struct parquet_term terms[LEAVES_MAX + 1];
    struct parquet_limits limits = parquet_limits_default();
    struct parquet_file *file = NULL;
    size_t count = 0;
    enum status status = STATUS_OK;
    limits.metadata_bytes_max = limits.page_bytes_max = limits.batch_bytes_max = 1 << 20;
    TRY(parquet_file_open(byte_source_of_span(&bytes), &limits, &file, err));
    for (uint32_t i = 0; i < file->leaf_count && count < LEAVES_MAX; i++) {
        if (file->leaves[i].max_rep)
            continue;
        conditions[count] =
            (struct parquet_condition){.leaf = i,
                                       .op = count % 2 ? PARQUET_LESS_EQUAL : PARQUET_EQUAL,
                                       .values = &value,
                                       .value_count = 1};
        count++;
    }
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = scan_file(file, (struct parquet_filter){&conditions[i], 1, NULL, 0}, err);
    if (status == STATUS_OK)
        status = scan_file(file, (struct parquet_filter){conditions, count, NULL, 0}, err);
    terms[0] = (struct parquet_term){PARQUET_TERM_OR, (uint32_t)count};
    for (uint32_t i = 0; i < count; i++)
        terms[i + 1] = (struct parquet_term){PARQUET_TERM_CONDITION, i};
    if (status == STATUS_OK && count)
        status = scan_file(file, (struct parquet_filter){conditions, count, terms, count + 1}, err);
    if (status == STATUS_OK)
        status = parquet_file_verify_layout(file, err);
    for (size_t i = 0; i < file->group_count && status == STATUS_OK; i++)
        status = parquet_file_verify(file, i, err);
    parquet_file_close(file);
    return status;
}

/* In memory of its own length, so that a sanitizer sees the byte behind. */
static enum status scan_copy(const struct buf *bytes, size_t length)
{
    struct error err;
    uint8_t *copy = mem_alloc(length + !length);
    if (length)
        memcpy(copy, bytes->data, length);
    enum status status = scan_all(span_of(copy, length), &err);
    mem_free(copy);
    return status;
}

static void test_every_damage_is_answered(void **state)
{
    (void)state;
    static const char *const files[] = {"bloom_index", "ours_nested", "stats", ""};
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        struct error err;
        struct buf bytes = *files[i] ? load(files[i]) : make_file(9);
        assert_ok(scan_all(span_of(bytes.data, bytes.length), &err));
        for (size_t length = 0; length < bytes.length; length++)
            assert_int_not_equal(STATUS_OK, scan_copy(&bytes, length));
        for (size_t at = 0; at < bytes.length; at++)
            for (unsigned bit = 0; bit < 8; bit++) {
                bytes.data[at] ^= (uint8_t)(1u << bit);
                (void)!scan_copy(&bytes, bytes.length);
                bytes.data[at] ^= (uint8_t)(1u << bit);
            }
        buf_deinit(&bytes);
    }
}

/* An empty one, where writers of old have copies of what the footer says of a chunk. */
static void put_struct_before_footer(struct buf *bytes)
{
    enum { TAIL = 8 };
    size_t behind = get_le32(bytes->data + bytes->length - TAIL) + TAIL;
    buf_put_byte(bytes, 0);
    uint8_t *place = bytes->data + bytes->length - 1 - behind;
    memmove(place + 1, place, behind);
    *place = 0;
}

static void test_no_memory_is_answered(void **state)
{
    (void)state;
    static const char *const files[] = {"bloom_index", "plain_v1"};
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        struct error err;
        struct buf bytes = load(files[i]);
        put_struct_before_footer(&bytes);
        int64_t passed = 0; /* in a row: some allocations may fail, and nothing is lost */
        for (int64_t n = 0; passed < 50; n++) {
            alloc_fail_after(n);
            enum status status = scan_all(span_of(bytes.data, bytes.length), &err);
            alloc_fail_after(-1);
            passed = status == STATUS_OK ? passed + 1 : 0;
            if (status != STATUS_OK && status != STATUS_NO_MEMORY && status != STATUS_LIMIT)
                fail_msg("%s, allocation %d: %s", files[i], (int)n, err.message);
            assert_true(n < 5000);
        }
        buf_deinit(&bytes);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operators_by_type),
        cmocka_unit_test(test_what_is_read),
        cmocka_unit_test(test_texts_that_are_no_filters),
        cmocka_unit_test(test_filters_by_chance),
        cmocka_unit_test(test_rows_by_ranges),
        cmocka_unit_test(test_every_damage_is_answered),
        cmocka_unit_test(test_no_memory_is_answered),
    };
    corpus = argc > 1 ? argv[1] : "test/fuzz/corpus/parquet";
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
