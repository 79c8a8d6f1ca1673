/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches of OTLP rows. Thread: the HTTP worker that owns the batch.
 */
#include "flow/ingest/otlp_batch.h"

enum status otlp_batch_create(enum otlp_table_id id, struct otlp_batch **out_batch,
                              struct error *err)
{
    struct otlp_batch *batch = mem_alloc_zero(1, sizeof *batch);
    if (!batch)
        return error_set(err, STATUS_NO_MEMORY, "otlp batch: out of memory");
    batch->table = otlp_table(id);
    for (uint32_t i = 0; i < batch->table->column_count; i++) {
        batch->fields[i] = batch->table->publish.schema->fields[i];
        batch->fields[i].is_dictionary = false;
        enum status status = arrow_builder_init(&batch->columns[i], &batch->fields[i], err);
        if (status != STATUS_OK) {
            otlp_batch_destroy(batch);
            return status;
        }
    }
    *out_batch = batch;
    return STATUS_OK;
}

static void memo_clear(struct otlp_memo *memo)
{
    memo->count = 0;
    if (memo->slots)
        memset(memo->slots, 0xff, memo->slot_count * sizeof *memo->slots);
}

void otlp_batch_destroy(struct otlp_batch *batch)
{
    if (!batch)
        return;
    for (uint32_t i = 0; i < OTLP_COLUMNS_MAX; i++)
        arrow_builder_deinit(&batch->columns[i]);
    for (int d = 0; d < DOMAIN_COUNT; d++) {
        buf_deinit(&batch->indices[d]);
        mem_free(batch->memos[d].keys);
        mem_free(batch->memos[d].is_raw);
        mem_free(batch->memos[d].slots);
    }
    mem_free(batch);
}

void otlp_batch_clear(struct otlp_batch *batch)
{
    for (uint32_t i = 0; i < batch->table->column_count; i++)
        arrow_builder_clear(&batch->columns[i]);
    for (int d = 0; d < DOMAIN_COUNT; d++) {
        buf_clear(&batch->indices[d]);
        memo_clear(&batch->memos[d]);
        batch->generation[d] = 0;
    }
    batch->last_metric_length = 0;
    batch->rows = 0;
    batch->is_failed = false;
}

/* What a row that says nothing has there. */
static bool is_null_when_absent(enum otlp_kind kind)
{
    return kind != KIND_COUNT && kind != KIND_EVENTS && kind != KIND_LINKS &&
           kind != KIND_EXEMPLARS;
}

void otlp_batch_catch_up(struct otlp_batch *batch, uint32_t column)
{
    struct arrow_builder *builder = &batch->columns[column];
    arrow_append_many_zeros(builder, batch->rows - builder->length,
                            is_null_when_absent(batch->table->columns[column].kind));
}

void otlp_batch_complete(struct otlp_batch *batch)
{
    for (uint32_t i = 0; i < batch->table->column_count; i++)
        if (batch->table->columns[i].domain == DOMAIN_ROW)
            otlp_reach(batch, i);
}

/* Where a column of the domain is to end that has `rows` rows: its slots without an ordinal are
 * those of a message that failed half-way. */
static int64_t column_end(const struct otlp_batch *batch, uint32_t column, int64_t rows)
{
    enum otlp_domain domain = batch->table->columns[column].domain;
    return domain == DOMAIN_ROW ? rows : batch->memos[domain].count;
}

static void truncate_indices(struct otlp_batch *batch, int64_t rows)
{
    for (int d = DOMAIN_RESOURCE; d < DOMAIN_COUNT; d++) {
        if (batch->indices[d].length > (size_t)rows * sizeof(int32_t))
            buf_truncate(&batch->indices[d], (size_t)rows * sizeof(int32_t));
    }
}

/* Bits that were to begin and found no memory: at the mark none were needed. */
static void forget_failure(struct arrow_builder *builder)
{
    if (builder->validity.length == 0)
        builder->validity.failed = false;
    for (uint32_t i = 0; i < builder->child_count; i++)
        forget_failure(&builder->children[i]);
}

void otlp_batch_truncate(struct otlp_batch *batch, int64_t rows)
{
    for (uint32_t i = 0; i < batch->table->column_count; i++) {
        int64_t end = column_end(batch, i, rows);
        forget_failure(&batch->columns[i]);
        if (end <= batch->columns[i].length) /* else it lags */
            arrow_builder_truncate(&batch->columns[i], end);
    }
    truncate_indices(batch, rows);
    for (int d = DOMAIN_RESOURCE; d < DOMAIN_COUNT; d++)
        batch->indices[d].failed = false;
    batch->rows = rows;
    batch->is_failed = false;
}

void otlp_batch_drop_row(struct otlp_batch *batch)
{
    for (uint32_t i = 0; i < batch->table->column_count; i++) {
        int64_t end = column_end(batch, i, batch->rows);
        if (end <= batch->columns[i].length) /* half an element of a list may stand there */
            arrow_builder_truncate(&batch->columns[i], end);
    }
    truncate_indices(batch, batch->rows);
}

bool otlp_batch_failed(const struct otlp_batch *batch)
{
    bool is_failed = batch->is_failed;
    for (uint32_t i = 0; i < batch->table->column_count; i++)
        is_failed |= arrow_builder_failed(&batch->columns[i]);
    for (int d = 0; d < DOMAIN_COUNT; d++)
        is_failed |= batch->indices[d].failed;
    return is_failed;
}

struct span otlp_batch_bytes_at(const struct otlp_batch *batch, uint32_t column, int64_t row)
{
    const struct arrow_builder *builder = &batch->columns[column];
    const int32_t *offsets = (const int32_t *)(const void *)builder->offsets.data;
    if (builder->validity.length && !arrow_bit(builder->validity.data, row))
        return (struct span){0};
    return span_of(builder->values.data + offsets[row], (size_t)(offsets[row + 1] - offsets[row]));
}

size_t otlp_batch_bytes(const struct otlp_batch *batch)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < batch->table->column_count; i++)
        bytes += arrow_builder_bytes(&batch->columns[i]);
    for (int d = 0; d < DOMAIN_COUNT; d++)
        bytes += batch->indices[d].length;
    return bytes;
}

size_t otlp_batch_capacity(const struct otlp_batch *batch)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < batch->table->column_count; i++)
        bytes += arrow_builder_capacity(&batch->columns[i]);
    for (int d = 0; d < DOMAIN_COUNT; d++)
        bytes += batch->indices[d].capacity;
    return bytes;
}

int32_t otlp_memo_find(const struct otlp_memo *memo, struct hash128 key)
{
    if (!memo->slots)
        return -1;
    uint32_t mask = memo->slot_count - 1;
    for (uint32_t slot = (uint32_t)key.low & mask;; slot = (slot + 1) & mask) {
        int32_t ordinal = memo->slots[slot];
        if (ordinal < 0)
            return -1;
        if (hash128_equal(memo->keys[ordinal], key))
            return ordinal;
    }
}

static bool memo_grow(struct otlp_memo *memo)
{
    int32_t capacity = memo->capacity ? memo->capacity * 2 : 64;
    struct hash128 *keys = mem_resize(memo->keys, (size_t)capacity * sizeof *keys);
    if (!keys)
        return false;
    memo->keys = keys;
    bool *is_raw = mem_resize(memo->is_raw, (size_t)capacity * sizeof *is_raw);
    if (!is_raw)
        return false;
    memo->is_raw = is_raw;
    uint32_t slot_count = (uint32_t)capacity * 2;
    int32_t *slots = mem_resize(memo->slots, slot_count * sizeof *slots);
    if (!slots)
        return false;
    memo->slots = slots;
    memo->slot_count = slot_count;
    memo->capacity = capacity;
    memset(slots, 0xff, slot_count * sizeof *slots);
    for (int32_t i = 0; i < memo->count; i++) {
        uint32_t slot = (uint32_t)keys[i].low & (slot_count - 1);
        while (slots[slot] >= 0)
            slot = (slot + 1) & (slot_count - 1);
        slots[slot] = i;
    }
    return true;
}

int32_t otlp_memo_add(struct otlp_memo *memo, struct hash128 key, bool is_raw)
{
    if (memo->count == memo->capacity && !memo_grow(memo))
        return -1;
    uint32_t mask = memo->slot_count - 1, slot = (uint32_t)key.low & mask;
    while (memo->slots[slot] >= 0)
        slot = (slot + 1) & mask;
    memo->slots[slot] = memo->count;
    memo->keys[memo->count] = key;
    memo->is_raw[memo->count] = is_raw;
    return memo->count++;
}

/* Readers differ on nulls within a dictionary, so the slots say it: a bitmap over the rows from the
 * dictionary's, whose null entries become empty values that nobody refers to. */
static bool lift_nulls(struct arrow_array *column, struct arrow_array *values, struct arena *arena)
{
    const int32_t *indices = column->values;
    uint8_t *bits;
    if (!values->validity)
        return true;
    bits = arena_alloc_zero(arena, ((size_t)column->length + 7) / 8 + 1, 1);
    if (!bits)
        return false;
    for (int64_t i = 0; i < column->length; i++) {
        bool is_valid = arrow_is_valid(values, indices[i]);
        bits[i >> 3] |= (uint8_t)(is_valid << (i & 7));
        column->null_count += !is_valid;
    }
    column->validity = bits;
    values->validity = NULL;
    values->null_count = 0;
    return true;
}

enum status otlp_batch_view(const struct otlp_batch *batch, struct arrow_batch *out_batch,
                            struct error *err)
{
    uint32_t count = batch->table->column_count;
    struct arrow_batch view = {.schema = batch->table->publish.schema, .length = batch->rows};
    arena_init(&view.arena, 0);
    view.columns = arena_alloc_zero(&view.arena, count, sizeof *view.columns);
    struct arrow_array *values = arena_alloc_zero(&view.arena, count, sizeof *values);
    enum status status = STATUS_OK;
    if (!view.columns || !values)
        status = error_set(err, STATUS_NO_MEMORY, "otlp batch: out of memory");
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        enum otlp_domain domain = batch->table->columns[i].domain;
        if (domain == DOMAIN_ROW) {
            status = arrow_builder_view(&batch->columns[i], &view.arena, &view.columns[i], err);
            continue;
        }
        status = arrow_builder_view(&batch->columns[i], &view.arena, &values[i], err);
        view.columns[i] = (struct arrow_array){
            .length = batch->rows, .values = batch->indices[domain].data, .dictionary = &values[i]};
        if (status == STATUS_OK && !lift_nulls(&view.columns[i], &values[i], &view.arena))
            status = error_set(err, STATUS_NO_MEMORY, "otlp batch: out of memory");
    }
    if (status != STATUS_OK) {
        arrow_batch_deinit(&view);
        return status;
    }
    *out_batch = view;
    return STATUS_OK;
}

void otlp_batch_times(const struct otlp_batch *batch, int64_t *out_min_us, int64_t *out_max_us)
{
    const int64_t *times = (const int64_t *)(const void *)batch->columns[COL_TIME].values.data;
    int64_t min = batch->rows ? times[0] : 0, max = min;
    for (int64_t i = 1; i < batch->rows; i++) {
        min = times[i] < min ? times[i] : min;
        max = times[i] > max ? times[i] : max;
    }
    *out_min_us = min;
    *out_max_us = max;
}
