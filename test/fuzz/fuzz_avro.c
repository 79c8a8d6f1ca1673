/* SPDX-License-Identifier: Apache-2.0
 *
 * Avro container files.
 */
#include "format/avro/avro.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct error err;
    struct avro_limits limits = avro_limits_default();
    struct avro_reader *reader = NULL;
    struct arena arena;
    limits.block_bytes_max = 1 << 20;
    arena_init(&arena, 64 << 20);
    if (avro_reader_create(span_of(data, bytes), &limits, &reader, &err) == STATUS_OK) {
        const struct avro_value *record;
        int64_t number;
        while (avro_reader_next(reader, &arena, &record, &err) == STATUS_OK) {
            avro_get_long(record, 1, &number);
            arena_clear(&arena);
        }
    }
    avro_reader_destroy(reader);
    arena_deinit(&arena);
    return 0;
}
