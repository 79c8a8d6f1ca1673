/* SPDX-License-Identifier: Apache-2.0
 *
 * OTLP bodies: the first byte chooses the signal. What is decoded must be arrays that the verifier
 * accepts, and survive being written and read as an entry's payload.
 */
#include "flow/ingest/ingest.h"

static enum status use(void *context, const struct publish_table *table,
                       const struct arrow_batch *batch, struct error *err)
{
    struct buf payload = {0};
    struct arrow_limits limits = arrow_limits_default();
    struct arrow_reader *reader = NULL;
    struct arrow_batch back;
    (void)context;
    limits.body_bytes_max = (size_t)1 << 30;
    CHECK(arrow_ipc_write_batch(table->schema, batch, ARROW_UNCOMPRESSED, &payload, err) ==
          STATUS_OK);
    CHECK(arrow_reader_create(table->schema, span_of(payload.data, payload.length), &limits,
                              &reader, err) == STATUS_OK);
    CHECK(arrow_reader_next(reader, &back, err) == STATUS_OK && back.length == batch->length);
    arrow_batch_deinit(&back);
    arrow_reader_destroy(reader);
    buf_deinit(&payload);
    return STATUS_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char *const signals[] = {"logs", "traces", "metrics"};
    struct error err;
    uint64_t rejected;
    if (bytes == 0)
        return 0;
    if (ingest_decode(signals[data[0] % 3], span_of(data + 1, bytes - 1), 1795882011596044,
                      &rejected, use, NULL, &err) != STATUS_OK)
        CHECK(err.status == STATUS_INVALID || err.status == STATUS_TOO_LARGE);
    return 0;
}
