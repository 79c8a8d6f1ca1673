/* SPDX-License-Identifier: Apache-2.0 */
#include "../rows_text.h"
#include "format/csv/csv.h"
#include "test_csv.h"

/* Schema and rows as text, or the message. */
enum status read_text(struct span file, const struct csv_reader_options *options, struct buf *out,
                      struct error *err)
{
    struct csv_reader *reader;
    struct arrow_batch batch;
    enum status status = csv_reader_create(byte_source_of_span(&file), options, &reader, err);
    if (status != STATUS_OK)
        return status;
    const struct arrow_schema *schema = csv_reader_schema(reader);
    put_fields(out, schema->fields, schema->field_count);
    buf_put_text(out, " | ");
    while ((status = csv_reader_next(reader, &batch, err)) == STATUS_OK) {
        assert_true(batch.schema == schema);
        put_batch(out, &batch);
        arrow_batch_deinit(&batch);
    }
    csv_reader_destroy(reader);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

void check_read(const char *file, const struct csv_reader_options *options, const char *expected)
{
    struct error err;
    struct buf out = {0};
    assert_ok(read_text(span_of_text(file), options, &out, &err));
    buf_put_byte(&out, '\0');
    assert_string_equal((const char *)out.data, expected);
    buf_deinit(&out);
}

static void check(const char *file, const char *expected)
{
    check_read(file, NULL, expected);
}

static void check_fails(const char *file, const struct csv_reader_options *options,
                        enum status expected, const char *message)
{
    struct error err;
    struct buf out = {0};
    assert_status(expected, read_text(span_of_text(file), options, &out, &err));
    assert_string_equal(err.message, message);
    buf_deinit(&out);
}

static void test_types(void **state)
{
    (void)state;
    check("b,i,d,s,n\ntrue,-5,1.5,t,\nfalse,9223372036854775807,2e3,u,\n",
          "b bool, i int64, d double, s utf8, n utf8 | "
          "true, -5, 1.5, 't', null; false, 9223372036854775807, 2000, 'u', null; ");
    check("a,b,c\n\"1\",\"true\",\"2024-02-29\"\n,,\n",
          "a int64, b bool, c date32 | 1, true, 19782; null, null, null; ");
    check("a\ntrue\n1\n", "a utf8 | 'true'; '1'; ");
    check("a\n1\n2024-01-01\n", "a utf8 | '1'; '2024-01-01'; ");
    check("a\n1\n\"\"\n", "a utf8 | '1'; ''; ");
}

static void test_numbers(void **state)
{
    (void)state;
    check("a,b,c,d\n1,NaN,.5,9223372036854775808\n-0.25,-Infinity,5.,1\n1e-3,Infinity,-.5e+1,2\n",
          "a double, b double, c double, d uint64 | 1, NaN, 0.5, 9223372036854775808; "
          "-0.25, -Infinity, 5, 1; 0.001, Infinity, -5, 2; ");
    static const char *const texts[] = {"007", "+1",  "1e999", "0x10", "1_000", "-",  ".",    "1e",
                                        "1e+", "--1", "1 ",    " 1",   "inf",   "e5", "1.2.3"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        char file[64], expected[64];
        snprintf(file, sizeof file, "a\n%s\n", texts[i]);
        snprintf(expected, sizeof expected, "a utf8 | '%s'; ", texts[i]);
        check(file, expected);
    }
    check("a\n0\n-9223372036854775808\n", "a int64 | 0; -9223372036854775808; ");
    check("a\n0\n18446744073709551615\n\n", "a uint64 | 0; 18446744073709551615; null; ");
    check("a\n-1\n18446744073709551615\n", "a utf8 | '-1'; '18446744073709551615'; ");
    check("a\n9007199254740993\n1.5\n", "a utf8 | '9007199254740993'; '1.5'; ");
    check("a\n9007199254740992\n1.5\n", "a double | 9007199254740992; 1.5; ");
    check("a\n3.14159265358979323846\n", "a utf8 | '3.14159265358979323846'; ");
    check("a\n12345678901234567890.25\nNaN\n", "a utf8 | '12345678901234567890.25'; 'NaN'; ");
    check("a\n0.10000000000000001\n", "a double | 0.1; ");
    check("a\n0\n-0\n", "a double | 0; -0; ");
}

static void test_dates(void **state)
{
    (void)state;
    check("a\n1970-01-01\n1969-12-31\n0000-03-01\n9999-12-31\n2000-02-29\n",
          "a date32 | 0; -1; -719468; 2932896; 11016; ");
    static const char *const texts[] = {"2023-02-29", "1900-02-29", "2024-13-01", "2024-00-01",
                                        "2024-01-00", "2024-01-32", "2024-1-01",  "2024.01.01",
                                        "2024-01-0x", "-024-01-01", "2024/01/01"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        char file[64], expected[64];
        snprintf(file, sizeof file, "a\n%s\n", texts[i]);
        snprintf(expected, sizeof expected, "a utf8 | '%s'; ", texts[i]);
        check(file, expected);
    }
}

static void test_timestamps(void **state)
{
    (void)state;
    check("a,b\n1970-01-01T00:00:01,1970-01-01 00:00:00Z\n"
          "1969-12-31 23:59:59.5,1970-01-01T01:00:00.000001+01:00\n"
          "1970-01-01T00:00:00.123456000,1969-12-31T22:30:00-01:30\n",
          "a timestamp[us], b timestamp[us, UTC] | 1000000, 0; -500000, 1; 123456, 0; ");
    check("a\n1970-01-01T00:00:00\n1970-01-01T00:00:00Z\n",
          "a utf8 | '1970-01-01T00:00:00'; '1970-01-01T00:00:00Z'; ");
    static const char *const ends[] = {
        "T24:00:00",         "T00:60:00",   "T00:00:60",        "T00:00",          "T00:00:00.",
        "T00:00:00.1234567", "T00:00:00+1", "T00:00:00+24:00",  "T00:00:00+01:60", "T00:00:00Zx",
        "T00:00:00.Z",       "t00:00:00",   "T00:00:00.1+0100", "T0x:00:00",       "T00-00:00"};
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        char file[64], expected[64];
        snprintf(file, sizeof file, "a\n2024-01-01%s\n", ends[i]);
        snprintf(expected, sizeof expected, "a utf8 | '2024-01-01%s'; ", ends[i]);
        check(file, expected);
    }
}

static void test_quotes(void **state)
{
    (void)state;
    check("a,b\n\"x,y\",\"say \"\"hi\"\"\"\n\"\",\"line 1\r\nline 2\n\"\"\"\r\n\"\"\"\",z\n",
          "a utf8, b utf8 | 'x,y', 'say \"hi\"'; '', 'line 1\r\nline 2\n\"'; '\"', 'z'; ");
    check("\"a,\"\"1\"\"\"\n1\n", "a,\"1\" int64 | 1; ");
    check_fails("a,b\n1,2\nx\"y,2\n", NULL, STATUS_INVALID,
                "csv: line 3: field 1: a quote in a field without quotes");
    check_fails("a,b\n1,2\n1,\"x\"y\n", NULL, STATUS_INVALID,
                "csv: line 3: field 2: text behind the closing quote");
    check_fails("a,b\n1,2\n1,\"x\n\n\n", NULL, STATUS_INVALID,
                "csv: line 3: field 2: quotes without an end");
    check_fails("a,b\r1,2\r", NULL, STATUS_INVALID,
                "csv: line 1: field 2: a carriage return without a line feed");
    check_fails("a,b\n\"x\ny\",1\n3\n", NULL, STATUS_INVALID,
                "csv: line 4: 1 fields where the first row has 2");
}

static void test_nulls(void **state)
{
    (void)state;
    struct csv_reader_options options = csv_reader_options_default();
    check("a,b\n,\"\"\n1,x\n", "a int64, b utf8 | null, ''; 1, 'x'; ");
    options.null_text = "NA";
    check_read("a,b\nNA,\n1,\"NA\"\n", &options, "a int64, b utf8 | null, ''; 1, 'NA'; ");
    options.null_text = "a,b";
    check_fails("a\n", &options, STATUS_USAGE,
                "csv: the text for null has a delimiter, a quote or a line's end in it");
}

static void test_lines(void **state)
{
    (void)state;
    struct csv_reader_options options = csv_reader_options_default();
    check("\xef\xbb\xbf"
          "a,b\r\n\r\n1,2\r\n\n3,4",
          "a int64, b int64 | 1, 2; 3, 4; ");
    check("\n\na\n1\n\n2\n", "a int64 | 1; null; 2; "); /* of one column it is a null */
    check("a\n", "a utf8 | ");
    check_fails("", NULL, STATUS_INVALID, "csv: no header: the file is empty");
    check_fails("\n\n", NULL, STATUS_INVALID, "csv: no header: the file is empty");
    options.has_header = false;
    check_read("", &options, " | ");
    check_read("\n1\n", &options, "column_1 int64 | null; 1; ");
    check_read("\n\n", &options, "column_1 utf8 | null; null; ");
    check_read("\n1,x\n", &options, "column_1 int64, column_2 utf8 | 1, 'x'; ");
    options.delimiter = ';';
    check_read("1;x,y\n", &options, "column_1 int64, column_2 utf8 | 1, 'x,y'; ");
    options.delimiter = '"';
    check_fails("1\n", &options, STATUS_USAGE,
                "csv: the delimiter is a byte of ASCII, no quote and no line's end");
    check_fails("a,b\n1,2\n1,2,3\n", NULL, STATUS_INVALID,
                "csv: line 3: 3 fields where the first row has 2");
    check_fails("a,b\n1,\xc3\n", NULL, STATUS_INVALID, "csv: line 2: text that is not UTF-8");
}

static void test_names(void **state)
{
    (void)state;
    check("a,a,,a,a_2,column_3\n1,2,3,4,5,6\n",
          "a int64, a_2 int64, column_3 int64, a_3 int64, a_2_2 int64, column_3_2 int64 | "
          "1, 2, 3, 4, 5, 6; ");
    struct error err;
    struct buf file = {0}, out = {0};
    for (int i = 0; i < 16384; i++)
        buf_put_text(&file, i ? ",a" : "a");
    assert_ok(read_text(span_of(file.data, file.length), NULL, &out, &err));
    buf_put_text(&file, ",a");
    assert_status(STATUS_LIMIT, read_text(span_of(file.data, file.length), NULL, &out, &err));
    assert_string_equal(err.message, "csv: line 1: 16385 columns; the limit is 16384");
    buf_deinit(&file);
    buf_deinit(&out);
    const char with_nul[] = "a,b\0c\n";
    struct csv_reader *reader;
    struct span bytes = span_of(with_nul, sizeof with_nul - 1);
    assert_status(STATUS_INVALID,
                  csv_reader_create(byte_source_of_span(&bytes), NULL, &reader, &err));
}

static void test_limits(void **state)
{
    (void)state;
    struct csv_reader_options options = csv_reader_options_default();
    options.row_bytes_max = 8;
    check_fails("a,b\n1,2\n1,234567890\n", &options, STATUS_LIMIT,
                "csv: line 3: more than 8 bytes");
    check_fails("a,b\n1,\"2\n3456789\n\"\n", &options, STATUS_LIMIT,
                "csv: line 2: more than 8 bytes");
    options = csv_reader_options_default();
    options.name_bytes_max = 3;
    check_fails("abc,abcd\n", &options, STATUS_LIMIT,
                "csv: the name of column 2 has more than 3 bytes");
    options = csv_reader_options_default();
    options.batch_rows = 2;
    check_read("a\n1\n2\n3\n4\n5\n", &options, "a int64 | 1; 2; 3; 4; 5; ");
    options = csv_reader_options_default();
    options.batch_values = 1;
    options.batch_bytes = 1;
    check_read("a\n1\n2\n3\n", &options, "a int64 | 1; 2; 3; ");
}

static void test_any_block_size(void **state)
{
    (void)state;
    const char *file = "\xef\xbb\xbf"
                       "a,b\r\n1,\"two \"\"lines\"\"\r\nin one\"\r\n\n,\"a longer row than all\n\n"
                       "the other rows, of three lines\"\n22,";
    struct csv_reader_options options = csv_reader_options_default();
    for (size_t bytes = 1; bytes < 80; bytes++) {
        options.block_bytes = bytes;
        check_read(file, &options,
                   "a int64, b utf8 | 1, 'two \"lines\"\r\nin one'; "
                   "null, 'a longer row than all\n\nthe other rows, of three lines'; 22, null; ");
    }
}

static const char sample[] = "a,b,c,d,\n"
                             "1,\"x \"\"\xc3\xa9\"\"\",2024-01-02,true,1.5\r\n"
                             "-20,,,false,-2e-3\n"
                             ",\"two\nlines\",1999-12-31,,NaN\n";

static void test_damage(void **state)
{
    (void)state;
    struct error err;
    size_t length = sizeof sample - 1;
    for (size_t n = 0; n <= length; n++) { /* cut */
        struct buf out = {0};
        uint8_t *copy = mem_copy(sample, n ? n : 1);
        enum status status = read_text(span_of(copy, n), NULL, &out, &err);
        assert_true(status == STATUS_OK || status == STATUS_INVALID);
        mem_free(copy);
        buf_deinit(&out);
    }
    for (size_t bit = 0; bit < length * 8; bit++) {
        struct buf out = {0};
        uint8_t *copy = mem_copy(sample, length);
        copy[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        enum status status = read_text(span_of(copy, length), NULL, &out, &err);
        assert_true(status == STATUS_OK || status == STATUS_INVALID);
        mem_free(copy);
        buf_deinit(&out);
    }
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    struct error err;
    enum status status;
    int64_t n = 0;
    do {
        struct csv_reader *reader = NULL;
        struct arrow_batch batch;
        struct span file = span_of(sample, sizeof sample - 1);
        alloc_fail_after(n++);
        status = csv_reader_create(byte_source_of_span(&file), NULL, &reader, &err);
        if (status == STATUS_OK)
            status = csv_reader_next(reader, &batch, &err);
        alloc_fail_after(-1);
        assert_true(status == STATUS_OK || status == STATUS_NO_MEMORY ||
                    status == STATUS_LIMIT); /* of a builder's offsets, which have one */
        if (status == STATUS_OK)
            arrow_batch_deinit(&batch);
        csv_reader_destroy(reader);
    } while (status != STATUS_OK);
    assert_true(n > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_timestamps),
        cmocka_unit_test(test_quotes),
        cmocka_unit_test(test_nulls),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_any_block_size),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_memory_runs_out),
        cmocka_unit_test(test_writer_types),
        cmocka_unit_test(test_writer_quotes),
        cmocka_unit_test(test_writer_dictionaries),
        cmocka_unit_test(test_writer_callback),
        cmocka_unit_test(test_writer_refuses),
        cmocka_unit_test(test_round_trip),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
