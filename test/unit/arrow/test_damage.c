/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes and arrays that are not what they claim to be: each is refused, and nothing is read
 * outside.
 */
#include "arrow_sample.h"
#include "format/arrow/flatbuf_internal.h"

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
void test_damage_is_refused_or_harmless(void **state)
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
void test_claimed_sizes_are_bounded(void **state)
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

void test_expansion_is_bounded(void **state)
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
void test_flatbuffers_are_checked(void **state)
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
void test_broken_arrays_are_refused(void **state)
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

void test_validate_names_the_fault(void **state)
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
