/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole streams and files. golden/ holds one of each as pyarrow wrote it: three rows in two batches
 * of utf8, list, map, a dictionary with uint8 indices, utf8 views, a fixed list, large utf8 and
 * timestamps in milliseconds; the file with zstd bodies.
 */
#include "arrow_sample.h"

static struct buf read_golden(const char *name)
{
    struct buf out = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/%s", GOLDEN, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    for (int byte; (byte = fgetc(file)) != EOF;)
        buf_put_byte(&out, (uint8_t)byte);
    fclose(file);
    return out;
}

/* Reads to the end. */
static enum status read_source(struct byte_source source, struct arrow_file_facts *out_facts,
                               struct error *err)
{
    struct arrow_file *file;
    struct arrow_limits limits = arrow_limits_default();
    limits.body_bytes_max = 1 << 20;
    TRY(arrow_file_open(source, &limits, &file, err));
    enum status status;
    for (;;) {
        struct arrow_batch batch;
        status = arrow_file_next(file, &batch, err);
        if (status != STATUS_OK)
            break;
        arrow_batch_deinit(&batch);
    }
    *out_facts = arrow_file_facts(file);
    arrow_file_close(file);
    return status;
}

static enum status read_bytes(const void *data, size_t bytes, struct arrow_file_facts *out_facts,
                              struct error *err)
{
    struct span span = span_of(data, bytes);
    return read_source(byte_source_of_span(&span), out_facts, err);
}

void test_streams_are_read_whole(void **state)
{
    (void)state;
    struct error err;
    struct sample sample;
    struct buf out = {0};
    struct arrow_file *file;
    struct arrow_batch batch;
    struct arrow_limits limits = arrow_limits_default();
    sample_init(&sample, 50);
    assert_ok(arrow_ipc_write_schema(&schema, &out, &err));
    for (int i = 0; i < 3; i++) /* each with its dictionaries, which replace those before */
        assert_ok(arrow_ipc_write_batch(&schema, &sample.batch, ARROW_ZSTD, &out, &err));
    buf_put_le32(&out, UINT32_MAX);
    buf_put_le32(&out, 0);
    struct span span = span_of(out.data, out.length);
    assert_ok(arrow_file_open(byte_source_of_span(&span), &limits, &file, &err));
    assert_true(arrow_schema_equal(arrow_file_schema(file), &schema));
    for (int i = 0; i < 3; i++) {
        assert_ok(arrow_file_next(file, &batch, &err));
        for (int64_t row = 0; row < batch.length; row++)
            assert_rows_equal(&batch, row, &sample.batch, row);
        arrow_batch_deinit(&batch);
    }
    assert_status(STATUS_NOT_FOUND, arrow_file_next(file, &batch, &err));
    struct arrow_file_facts facts = arrow_file_facts(file);
    assert_true(facts.container == ARROW_STREAM && facts.has_end_mark);
    assert_int_equal(facts.row_count, 150);
    assert_int_equal(facts.batch_count, 3);
    arrow_file_close(file);
    assert_status(STATUS_NOT_FOUND, read_bytes(out.data, out.length - 8, &facts, &err));
    assert_false(facts.has_end_mark);
    buf_deinit(&out);
    sample_deinit(&sample);
}

static void assert_type(const struct arrow_field *field, const char *expected)
{
    struct buf text = {0};
    arrow_type_describe(field, &text);
    buf_put_byte(&text, 0);
    assert_string_equal((const char *)text.data, expected);
    buf_deinit(&text);
}

void test_golden_files_are_read(void **state)
{
    (void)state;
    static const char *const types[] = {
        "utf8",      "list",    "map",        "dictionary[uint8, utf8]",
        "utf8_view", "list[2]", "large_utf8", "timestamp[ms]"};
    for (int i = 0; i < 2; i++) {
        struct error err;
        struct buf bytes = read_golden(i ? "types.arrow" : "types.arrows");
        struct span span = span_of(bytes.data, bytes.length);
        struct arrow_limits limits = arrow_limits_default();
        struct arrow_file *file;
        struct arrow_batch batch;
        assert_ok(arrow_file_open(byte_source_of_span(&span), &limits, &file, &err));
        const struct arrow_schema *got = arrow_file_schema(file);
        assert_int_equal(got->field_count, COUNT_OF(types));
        for (uint32_t field = 0; field < got->field_count; field++)
            assert_type(&got->fields[field], types[field]);
        assert_ok(arrow_file_next(file, &batch, &err));
        assert_int_equal(batch.length, 2);
        const struct arrow_array *views = &batch.columns[4], *pairs = &batch.columns[5];
        assert_memory_equal(views->values, "zzzzzzzzzzzzzz", 14);
        assert_true(views->offsets[1] == 14 && views->offsets[2] == 14 &&
                    !arrow_is_valid(views, 1));
        assert_true(pairs->offsets[1] == 2 && pairs->offsets[2] == 2 && !arrow_is_valid(pairs, 1));
        assert_int_equal(((const int32_t *)batch.columns[3].values)[0], 0);
        assert_int_equal(get_le64(batch.columns[7].values), 1);
        arrow_batch_deinit(&batch);
        arrow_file_close(file);
        struct arrow_file_facts facts;
        assert_status(STATUS_NOT_FOUND, read_bytes(bytes.data, bytes.length, &facts, &err));
        assert_true(facts.container == (i ? ARROW_FILE : ARROW_STREAM) && facts.has_end_mark);
        assert_true(facts.row_count == 3 && facts.batch_count == 2 && facts.dictionary_count == 1);
        buf_deinit(&bytes);
    }
}

void test_containers_are_told_apart(void **state)
{
    (void)state;
    static const char *const others[] = {"", "A", "PAR1PAR1PAR1", "ARROW1", "ARROW2\0\0........"};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        struct error err;
        struct arrow_file_facts facts;
        assert_status(STATUS_INVALID, read_bytes(others[i], strlen(others[i]), &facts, &err));
    }
}

/* Each byte cut off, each bit turned: an answer, whose message says where. */
void test_damaged_files_are_answered(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct error err;
        struct arrow_file_facts facts;
        struct buf bytes = read_golden(i ? "types.arrow" : "types.arrows");
        for (size_t length = 0; length < bytes.length; length++) {
            uint8_t *copy = mem_copy(bytes.data, length ? length : 1);
            enum status status = read_bytes(copy, length, &facts, &err);
            assert_true(status == STATUS_INVALID || (i == 0 && status == STATUS_NOT_FOUND));
            mem_free(copy);
        }
        for (size_t at = 0; at < bytes.length * 8; at++) {
            bytes.data[at / 8] ^= (uint8_t)(1u << (at % 8));
            enum status status = read_bytes(bytes.data, bytes.length, &facts, &err);
            assert_true(status != STATUS_NO_MEMORY && status != STATUS_OK);
            if (status == STATUS_INVALID && at / 8 >= 8)
                assert_non_null(strstr(err.message, "byte"));
            bytes.data[at / 8] ^= (uint8_t)(1u << (at % 8));
        }
        buf_deinit(&bytes);
    }
}

void test_file_allocations_may_fail(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct error err;
        struct arrow_file_facts facts;
        struct buf bytes = read_golden(i ? "types.arrow" : "types.arrows");
        bool is_done = false;
        for (int64_t n = 0; !is_done; n++) {
            alloc_fail_after(n);
            enum status status = read_bytes(bytes.data, bytes.length, &facts, &err);
            alloc_fail_after(-1);
            is_done = status == STATUS_NOT_FOUND;
            assert_true(is_done || status == STATUS_NO_MEMORY);
        }
        buf_deinit(&bytes);
    }
}

struct failing {
    struct span bytes;
    int reads_left;
};

static enum status read_failing(void *context, uint64_t offset, size_t bytes, void *place,
                                struct error *err)
{
    struct failing *failing = context;
    if (failing->reads_left-- == 0)
        return error_set(err, STATUS_IO, "the disk is gone");
    assert_true(offset <= failing->bytes.length && bytes <= failing->bytes.length - offset);
    memcpy(place, failing->bytes.data + offset, bytes);
    return STATUS_OK;
}

void test_reads_may_fail(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct error err;
        struct arrow_file_facts facts;
        struct buf bytes = read_golden(i ? "types.arrow" : "types.arrows");
        enum status status = STATUS_IO;
        for (int n = 0; status == STATUS_IO; n++) {
            struct failing failing = {span_of(bytes.data, bytes.length), n};
            status = read_source((struct byte_source){read_failing, &failing, bytes.length}, &facts,
                                 &err);
        }
        assert_int_equal(status, STATUS_NOT_FOUND);
        buf_deinit(&bytes);
    }
}

void test_schemas_keep_origins(void **state)
{
    (void)state;
    struct error err;
    struct arena arena = {0};
    struct arrow_schema copy;
    struct arrow_origin stamp = {.kind = ARROW_ORIGIN_TIMESTAMP,
                                 .unit = ARROW_NANOS,
                                 .timezone = "Asia/Tokyo",
                                 .extension = "x.y"};
    struct arrow_origin half = {.kind = ARROW_ORIGIN_HALF};
    struct arrow_field two[] = {
        {.name = "a", .type = ARROW_FIXED, .byte_width = 8, .is_instant = true, .origin = &stamp},
        {.name = "b", .type = ARROW_FIXED, .byte_width = 2, .origin = &half},
    };
    struct arrow_schema from = {.fields = two, .field_count = 2};
    assert_ok(arrow_schema_copy(&from, &arena, &copy, &err));
    assert_true(arrow_schema_equal(&from, &copy));
    assert_type(&copy.fields[0], "timestamp[ns, Asia/Tokyo]");
    assert_type(&copy.fields[1], "float16");
    stamp.timezone = NULL;
    assert_false(arrow_schema_equal(&from, &copy));
    assert_string_equal(copy.fields[0].origin->timezone, "Asia/Tokyo");
    arena_deinit(&arena);
}
