/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of one OTLP table under construction. Columns of the row domain have a builder with a slot a
 * row; columns of the other domains have a builder with a slot a distinct resource, scope or
 * metric, and the domain one int32 index a row, shared by all its columns.
 */
#ifndef SLUICE_FLOW_INGEST_OTLP_BATCH_H
#define SLUICE_FLOW_INGEST_OTLP_BATCH_H

#include "flow/ingest/otlp_tables.h"

/* Columns that most rows leave null, zero or empty are appended to only where a row says something:
 * they lag behind until otlp_reach or otlp_batch_complete. So does COL_RECEIVED, which is the same
 * in all rows of a request, until its end. */

/* What a domain has seen: identity -> ordinal. */
struct otlp_memo {
    struct hash128 *keys; /* by ordinal */
    bool *is_raw;         /* by ordinal: columns cannot give this value back */
    int32_t count, capacity;
    int32_t *slots; /* open addressing, -1 free */
    uint32_t slot_count;
};

enum { LAST_METRIC_BYTES_MAX = 256 };

struct otlp_batch {
    const struct otlp_table *table;
    struct arrow_field fields[OTLP_COLUMNS_MAX]; /* of the builders: without the outer dictionary */
    struct arrow_builder columns[OTLP_COLUMNS_MAX];
    struct buf indices[DOMAIN_COUNT];
    struct otlp_memo memos[DOMAIN_COUNT];
    int32_t current[DOMAIN_COUNT];              /* ordinal of the message at hand */
    uint64_t generation[DOMAIN_COUNT];          /* of the decoder, when `current` was set */
    uint8_t last_metric[LAST_METRIC_BYTES_MAX]; /* that current[DOMAIN_METRIC] stands for */
    size_t last_metric_length;                  /* 0: not known */
    int64_t rows;
    bool is_failed; /* a memo found no memory */
};

enum status otlp_batch_create(enum otlp_table_id id, struct otlp_batch **out_batch,
                              struct error *err) MUST_CHECK;
void otlp_batch_destroy(struct otlp_batch *batch); /* accepts NULL */
void otlp_batch_clear(struct otlp_batch *batch);   /* keeps memory */
/* Back to a mark at which nothing had failed. */
void otlp_batch_truncate(struct otlp_batch *batch, int64_t rows);
/* Takes back what was appended for the row at hand, in time that depends on that alone. What has
 * failed before stays failed. */
void otlp_batch_drop_row(struct otlp_batch *batch);
void otlp_batch_complete(struct otlp_batch *batch); /* at the end of a request: nothing lags */
/* Brings a column of the row domain up to the row at hand. */
void otlp_batch_catch_up(struct otlp_batch *batch, uint32_t column);
bool otlp_batch_failed(const struct otlp_batch *batch);
size_t otlp_batch_bytes(const struct otlp_batch *batch);
size_t otlp_batch_capacity(const struct otlp_batch *batch); /* what it holds, used or not */

/* The builder of a column that may lag, ready for the row at hand. */
static inline struct arrow_builder *otlp_reach(struct otlp_batch *batch, uint32_t column)
{
    if (batch->columns[column].length < batch->rows)
        otlp_batch_catch_up(batch, column);
    return &batch->columns[column];
}

/* The ordinal of `key`, or -1 with *out_is_new: append one slot to each column of the domain, then
 * call otlp_memo_add. */
int32_t otlp_memo_find(const struct otlp_memo *memo, struct hash128 key);
int32_t otlp_memo_add(struct otlp_memo *memo, struct hash128 key, bool is_raw); /* -1: no memory */

/* A value of a column of text or bytes; NULL data: null. Until the next append. */
struct span otlp_batch_bytes_at(const struct otlp_batch *batch, uint32_t column, int64_t row);
/* A view over everything; borrows the batch. `out_batch` is owned by the caller. */
enum status otlp_batch_view(const struct otlp_batch *batch, struct arrow_batch *out_batch,
                            struct error *err) MUST_CHECK;
/* Smallest and largest `time`; 0, 0 without rows. */
void otlp_batch_times(const struct otlp_batch *batch, int64_t *out_min_us, int64_t *out_max_us);

#endif
