/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "../unit.h"
#include "test_csv.h"

enum { COLUMNS_MAX = 16 };

/* Columns being built, and what they were written to. */
struct table {
    struct arrow_field fields[COLUMNS_MAX], row;
    struct arrow_schema schema;
    struct arrow_builder builder;
    struct buf file;
};

static void table_init(struct table *table, uint32_t count)
{
    struct error err;
    for (uint32_t i = 0; i < count; i++)
        table->fields[i].is_nullable = true;
    table->schema = (struct arrow_schema){.fields = table->fields, .field_count = count};
    table->row = (struct arrow_field){
        .name = "row", .type = ARROW_STRUCT, .children = table->fields, .child_count = count};
    assert_ok(arrow_builder_init(&table->builder, &table->row, &err));
    table->file = (struct buf){0};
}

static void table_deinit(struct table *table)
{
    arrow_builder_deinit(&table->builder);
    buf_deinit(&table->file);
}

static void add_null_row(struct table *table)
{
    for (uint32_t i = 0; i < table->schema.field_count; i++)
        arrow_append_null(&table->builder.children[i]);
    arrow_close_struct(&table->builder);
}

static enum status write_table(struct table *table, const struct csv_writer_options *options,
                               struct error *err)
{
    struct csv_writer *writer;
    struct arrow_batch batch;
    enum status status;
    TRY(csv_writer_create(&table->schema, options, sink_to_buf(&table->file), &writer, err));
    assert_int_equal(arrow_builder_batch(&table->builder, &table->schema, &batch, err), STATUS_OK);
    status = csv_writer_write(writer, &batch, err);
    if (status == STATUS_OK)
        status = csv_writer_finish(writer, err);
    arrow_batch_deinit(&batch);
    csv_writer_destroy(writer);
    return status;
}

static void check_file(struct table *table, const struct csv_writer_options *options,
                       const char *expected)
{
    struct error err;
    buf_clear(&table->file);
    assert_ok(write_table(table, options, &err));
    buf_put_byte(&table->file, '\0');
    assert_string_equal((const char *)table->file.data, expected);
}

static void append_text(struct arrow_builder *builder, const char *text)
{
    arrow_append_bytes(builder, text, strlen(text));
}

void test_writer_types(void **state)
{
    (void)state;
    struct table table = {
        .fields = {{.name = "n", .type = ARROW_NULL},
                   {.name = "b", .type = ARROW_BOOL},
                   {.name = "i", .type = ARROW_INT32},
                   {.name = "l", .type = ARROW_INT64},
                   {.name = "f", .type = ARROW_FLOAT},
                   {.name = "d", .type = ARROW_DOUBLE},
                   {.name = "day", .type = ARROW_DATE32},
                   {.name = "at", .type = ARROW_TIMESTAMP_US},
                   {.name = "utc", .type = ARROW_TIMESTAMP_US, .is_instant = true},
                   {.name = "s", .type = ARROW_UTF8},
                   {.name = "y", .type = ARROW_BINARY},
                   {.name = "x", .type = ARROW_FIXED, .byte_width = 2}}};
    table_init(&table, 12);
    struct arrow_builder *column = table.builder.children;
    arrow_append_null(&column[0]);
    arrow_append_bool(&column[1], true);
    arrow_append_i32(&column[2], INT32_MIN);
    arrow_append_i64(&column[3], INT64_MIN);
    arrow_append_float(&column[4], 0.1f);
    arrow_append_double(&column[5], 0.1);
    arrow_append_i32(&column[6], -1);
    arrow_append_i64(&column[7], -1);
    arrow_append_i64(&column[8], 1000000);
    append_text(&column[9], "text");
    append_text(&column[10], "ab");
    append_text(&column[11], "xy");
    arrow_close_struct(&table.builder);
    add_null_row(&table);
    check_file(&table, NULL,
               "n,b,i,l,f,d,day,at,utc,s,y,x\n"
               ",true,-2147483648,-9223372036854775808,0.1,0.1,1969-12-31,"
               "1969-12-31T23:59:59.999999,1970-01-01T00:00:01.000000Z,text,YWI=,eHk=\n"
               ",,,,,,,,,,,\n");
    struct csv_writer_options options = csv_writer_options_default();
    arrow_builder_truncate(&table.builder, 0);
    options.has_crlf = true;
    options.delimiter = '\t';
    check_file(&table, &options, "n\tb\ti\tl\tf\td\tday\tat\tutc\ts\ty\tx\r\n");
    options.has_header = false;
    check_file(&table, &options, "");
    table_deinit(&table);
}

void test_writer_quotes(void **state)
{
    (void)state;
    struct table table = {
        .fields = {{.name = "a,b", .type = ARROW_UTF8}, {.name = "", .type = ARROW_UTF8}}};
    static const char *const texts[] = {
        "",         "plain", "a,b",          "say \"hi\"", "\"", "a\nb",       "a\rb",
        " spaces ", "NA",    "\xef\xbb\xbf", "\"\"x\"",    ";",  "\xc3\xa9 e", "'"};
    table_init(&table, 2);
    for (size_t i = 0; i < COUNT_OF(texts); i += 2) {
        append_text(&table.builder.children[0], texts[i]);
        append_text(&table.builder.children[1], texts[i + 1]);
        arrow_close_struct(&table.builder);
    }
    check_file(&table, NULL,
               "\"a,b\",\"\"\n\"\",plain\n\"a,b\",\"say \"\"hi\"\"\"\n\"\"\"\",\"a\nb\"\n"
               "\"a\rb\", spaces \nNA,\"\xef\xbb\xbf\"\n\"\"\"\"\"x\"\"\",;\n\xc3\xa9 e,'\n");
    struct csv_writer_options options = csv_writer_options_default();
    options.null_text = "NA";
    options.delimiter = ';';
    arrow_builder_truncate(&table.builder, 0);
    append_text(&table.builder.children[0], "NA");
    append_text(&table.builder.children[1], "a;b");
    arrow_close_struct(&table.builder);
    add_null_row(&table);
    check_file(&table, &options, "a,b;\"\"\n\"NA\";\"a;b\"\nNA;NA\n");
    table_deinit(&table);
}

void test_writer_dictionaries(void **state)
{
    (void)state;
    struct table table = {.fields = {{.name = "a", .type = ARROW_UTF8, .is_dictionary = true}}};
    table_init(&table, 1);
    static const char *const texts[] = {"x", "y", "x"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        arrow_append_memo(&table.builder.children[0], texts[i], 1);
        arrow_close_struct(&table.builder);
    }
    add_null_row(&table);
    check_file(&table, NULL, "a\nx\ny\nx\n\n");
    table_deinit(&table);
}

static bool put_list(void *context, const struct arrow_field *field,
                     const struct arrow_array *array, int64_t i, struct buf *out)
{
    ++*(int *)context;
    if (field->type != ARROW_LIST)
        return false;
    for (int32_t at = array->offsets[i]; at < array->offsets[i + 1]; at++)
        buf_format(out, "%s%lld", at > array->offsets[i] ? "," : "",
                   (long long)((const int64_t *)array->children[0].values)[at]);
    return true;
}

void test_writer_callback(void **state)
{
    (void)state;
    int calls = 0;
    struct arrow_field element = {.name = "element", .type = ARROW_INT64, .is_nullable = true};
    struct table table = {
        .fields = {{.name = "l", .type = ARROW_LIST, .children = &element, .child_count = 1},
                   {.name = "i", .type = ARROW_INT64}}};
    struct csv_writer_options options = csv_writer_options_default();
    options.value = put_list;
    options.context = &calls;
    table_init(&table, 2);
    arrow_append_i64(&table.builder.children[0].children[0], 1);
    arrow_append_i64(&table.builder.children[0].children[0], 2);
    for (int64_t i = 0; i < 2; i++) { /* [1, 2], then [] */
        arrow_close_list(&table.builder.children[0]);
        arrow_append_i64(&table.builder.children[1], i);
        arrow_close_struct(&table.builder);
    }
    add_null_row(&table);
    check_file(&table, &options, "l,i\n\"1,2\",0\n\"\",1\n,\n");
    assert_int_equal(calls, 4);
    table_deinit(&table);
}

static bool decline(void *context, const struct arrow_field *field, const struct arrow_array *array,
                    int64_t i, struct buf *out)
{
    (void)context, (void)field, (void)array, (void)i, (void)out;
    return false;
}

static bool run_dry(void *context, const struct arrow_field *field, const struct arrow_array *array,
                    int64_t i, struct buf *out)
{
    (void)context, (void)field, (void)array, (void)i;
    return out->failed = true;
}

void test_writer_refuses(void **state)
{
    (void)state;
    struct error err;
    struct arrow_field child = {.name = "x", .type = ARROW_INT64, .is_nullable = true};
    const struct arrow_origin half = {.kind = ARROW_ORIGIN_HALF};
    struct table table = {
        .fields = {{.name = "s", .type = ARROW_STRUCT, .children = &child, .child_count = 1}}};
    struct table halves = {
        .fields = {{.name = "h", .type = ARROW_FIXED, .byte_width = 2, .origin = &half}}};
    struct table numbers = {
        .fields = {{.name = "a", .type = ARROW_INT64}, {.name = "b", .type = ARROW_INT64}}};
    struct csv_writer_options options = csv_writer_options_default();
    table_init(&table, 1);
    table_init(&halves, 1);
    table_init(&numbers, 2);
    arrow_append_i64(&table.builder.children[0].children[0], 1);
    arrow_close_struct(&table.builder.children[0]);
    arrow_close_struct(&table.builder);
    assert_status(STATUS_UNSUPPORTED, write_table(&table, NULL, &err));
    assert_string_equal(err.message, "csv: column s: struct has no form as text");
    assert_status(STATUS_UNSUPPORTED, write_table(&halves, NULL, &err));
    options.value = decline;
    assert_status(STATUS_UNSUPPORTED, write_table(&table, &options, &err));
    options.value = run_dry;
    assert_status(STATUS_NO_MEMORY, write_table(&table, &options, &err));
    options = csv_writer_options_default();
    options.value = decline;
    options.row_bytes_max = 4;
    for (int64_t i = 0; i < 2; i++) {
        arrow_append_i64(&numbers.builder.children[0], i * 99);
        arrow_append_i64(&numbers.builder.children[1], i * 9 + 1);
        arrow_close_struct(&numbers.builder);
    }
    assert_status(STATUS_LIMIT, write_table(&numbers, &options, &err));
    assert_string_equal(err.message, "csv: row 2, column b: more than 4 bytes");
    options.row_bytes_max = 5;
    assert_ok(write_table(&numbers, &options, &err));
    table_deinit(&numbers);
    options.null_text = "\n";
    assert_status(STATUS_USAGE, write_table(&table, &options, &err));
    table_deinit(&table);
    table_deinit(&halves);
}

/* What was written reads back as it was. */
void test_round_trip(void **state)
{
    (void)state;
    struct table table = {
        .fields = {{.name = "b", .type = ARROW_BOOL},
                   {.name = "i", .type = ARROW_INT64},
                   {.name = "d", .type = ARROW_DOUBLE},
                   {.name = "day", .type = ARROW_DATE32},
                   {.name = "at", .type = ARROW_TIMESTAMP_US},
                   {.name = "utc", .type = ARROW_TIMESTAMP_US, .is_instant = true},
                   {.name = "s", .type = ARROW_UTF8}}};
    static const double reals[] = {0.1, -1e300, 5e-324, 1.0 / 3, 123456789.125};
    static const char *const texts[] = {"", "a,\"b\"\r\n", "\n", "\"", "12"};
    table_init(&table, 7);
    for (int64_t i = 0; i < 5; i++) {
        struct arrow_builder *column = table.builder.children;
        arrow_append_bool(&column[0], i & 1);
        arrow_append_i64(&column[1], INT64_MIN + i);
        arrow_append_double(&column[2], reals[i]);
        arrow_append_i32(&column[3], (int32_t)i * 100000 - 300000);
        arrow_append_i64(&column[4], (i - 2) * 987654321987);
        arrow_append_i64(&column[5], (i - 2) * 123456789123456);
        append_text(&column[6], texts[i]);
        arrow_close_struct(&table.builder);
        add_null_row(&table);
    }
    struct error err;
    struct csv_reader *reader;
    struct arrow_batch batch, written;
    assert_ok(write_table(&table, NULL, &err));
    struct span file = span_of(table.file.data, table.file.length);
    assert_ok(csv_reader_create(byte_source_of_span(&file), NULL, &reader, &err));
    assert_true(arrow_schema_equal(csv_reader_schema(reader), &table.schema));
    assert_ok(csv_reader_next(reader, &batch, &err));
    assert_ok(arrow_builder_batch(&table.builder, &table.schema, &written, &err));
    struct buf a = {0}, b = {0}; /* the same payload: the same values */
    assert_ok(arrow_ipc_write_batch(&table.schema, &batch, ARROW_UNCOMPRESSED, &a, &err));
    assert_ok(arrow_ipc_write_batch(&table.schema, &written, ARROW_UNCOMPRESSED, &b, &err));
    assert_true(span_equal(span_of(a.data, a.length), span_of(b.data, b.length)));
    buf_deinit(&a);
    buf_deinit(&b);
    arrow_batch_deinit(&batch);
    arrow_batch_deinit(&written);
    csv_reader_destroy(reader);
    table_deinit(&table);
}
