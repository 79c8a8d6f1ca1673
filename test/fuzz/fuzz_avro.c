/* SPDX-License-Identifier: Apache-2.0
 *
 * Avro container files, in memory and behind a source: both answer alike; and what becomes of them
 * as Arrow: arrays that pass validation. Read by its own schema, a file gives as many
 * records at most; and another schema does no harm.
 */
#include "format/avro/avro.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Reads to the end; returns how many records there were. */
static uint64_t read_all(struct avro_reader *reader)
{
    struct error err;
    struct arena arena;
    const struct avro_value *record;
    int64_t number;
    uint64_t count = 0;
    arena_init(&arena, 64 << 20);
    for (; avro_reader_next(reader, &arena, &record, &err) == STATUS_OK; count++) {
        avro_get_long(record, 1, &number);
        arena_clear(&arena);
    }
    arena_deinit(&arena);
    avro_reader_destroy(reader);
    return count;
}

static const char other_schema[] =
    "{\"type\":\"record\",\"name\":\"row\",\"fields\":["
    "{\"name\":\"e\",\"type\":{\"type\":\"enum\",\"name\":\"en\",\"symbols\":[\"Y\"],"
    "\"default\":\"Y\"},\"default\":\"Y\"},"
    "{\"name\":\"t\",\"aliases\":[\"n\",\"a\"],\"type\":[\"null\",\"double\",\"string\","
    "{\"type\":\"long\",\"logicalType\":\"timestamp-micros\"}],\"default\":null},"
    "{\"name\":\"list\",\"type\":{\"type\":\"array\",\"items\":[\"null\",\"long\"]},"
    "\"default\":[]}]}";

static void read_resolved(struct span file, const struct avro_limits *limits, uint64_t count)
{
    struct error err;
    for (int is_other = 0; is_other < 2; is_other++) {
        struct avro_reader *reader;
        struct span schema = span_of_text(other_schema);
        if (avro_reader_create(file, limits, &reader, &err) != STATUS_OK)
            return;
        if (!is_other)
            CHECK(avro_reader_metadata(reader, "avro.schema", &schema));
        enum status status = avro_reader_resolve(reader, schema, &err);
        CHECK(is_other ? status == STATUS_OK : status == STATUS_OK || status == STATUS_NO_MEMORY);
        if (status == STATUS_OK)
            CHECK(read_all(reader) <= count);
        else
            avro_reader_destroy(reader);
    }
}

static void read_rows(struct byte_source source, const struct avro_limits *limits, bool is_resolved)
{
    struct error err;
    struct avro_rows_options options = {.batch_rows = 100};
    if (is_resolved)
        options.reads_as = span_of_text(other_schema);
    struct avro_rows *rows;
    struct arrow_batch batch;
    if (avro_rows_open(source, limits, &options, &rows, &err) != STATUS_OK)
        return;
    const struct arrow_schema *schema = avro_rows_schema(rows);
    for (int i = 0; i < 20 && avro_rows_next(rows, &batch, &err) == STATUS_OK; i++) {
        for (uint32_t j = 0; j < schema->field_count; j++)
            CHECK(arrow_array_validate(&schema->fields[j], &batch.columns[j], &err) == STATUS_OK);
        arrow_batch_deinit(&batch);
    }
    avro_rows_close(rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct error err;
    struct span span = span_of(data, bytes);
    struct avro_limits limits = avro_limits_default();
    struct avro_reader *reader;
    limits.block_bytes_max = 1 << 20;
    enum status status = avro_reader_create(span, &limits, &reader, &err);
    uint64_t count = status == STATUS_OK ? read_all(reader) : 0;
    CHECK(avro_reader_open(byte_source_of_span(&span), &limits, &reader, &err) == status);
    CHECK(status != STATUS_OK || read_all(reader) == count);
    read_resolved(span, &limits, count);
    read_rows(byte_source_of_span(&span), &limits, false);
    read_rows(byte_source_of_span(&span), &limits, true);
    return 0;
}
