/* SPDX-License-Identifier: Apache-2.0
 *
 * Avro container files, in memory and behind a source: both answer alike.
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
    return 0;
}
