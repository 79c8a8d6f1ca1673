/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of JSON: what is accepted must be valid arrays, and the same whatever is read at once.
 */
#include "format/ndjson/ndjson.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

struct outcome {
    enum status status;
    uint64_t schema, rows, nulls;
};

static struct outcome read_all(const struct span *file, const struct ndjson_limits *limits)
{
    struct error err;
    struct ndjson_reader *reader;
    struct arrow_batch batch;
    struct outcome outcome = {0};
    outcome.status = ndjson_reader_create(byte_source_of_span(file), limits, &reader, &err);
    if (outcome.status != STATUS_OK)
        return outcome;
    const struct arrow_schema *schema = ndjson_reader_schema(reader);
    outcome.schema = arrow_schema_fingerprint(schema);
    while ((outcome.status = ndjson_reader_next(reader, &batch, &err)) == STATUS_OK) {
        outcome.rows += (uint64_t)batch.length;
        for (uint32_t i = 0; i < schema->field_count; i++) {
            CHECK(arrow_array_validate(&schema->fields[i], &batch.columns[i], &err) == STATUS_OK);
            outcome.nulls += (uint64_t)batch.columns[i].null_count;
        }
        arrow_batch_deinit(&batch);
    }
    ndjson_reader_destroy(reader);
    return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct span file = span_of(data, bytes);
    struct ndjson_limits limits = ndjson_limits_default();
    struct outcome whole = read_all(&file, &limits);
    limits.block_bytes = 7;
    limits.batch_rows = 2;
    struct outcome pieces = read_all(&file, &limits);
    CHECK(whole.status == pieces.status && whole.schema == pieces.schema);
    CHECK(whole.status != STATUS_NOT_FOUND ||
          (whole.rows == pieces.rows && whole.nulls == pieces.nulls));
    return 0;
}
