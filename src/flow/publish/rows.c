/* SPDX-License-Identifier: Apache-2.0
 *
 * A range becomes data files: rows in order, one open writer at a time, each file synced before the
 * descriptor names it (E8 step 3). Files are named by the record's random prefix, so that what a
 * crash leaves behind can be told from everything else.
 */
#include <stdio.h>

#include "flow/publish/order_internal.h"

enum { CHUNK_ROWS = 32768 };

/* What is at hand while one range is written. */
struct writing {
    struct lane *lane;
    const struct binding *binding;
    const struct range *range;
    const struct order *order;
    struct record *record;
    const struct arrow_batch **batches; /* of the range, for arrow_gather */
    struct buf columns;                 /* struct parquet_column_options */
    char data_uri[STORE_URI_BYTES_MAX];
    char log_text[LOG_ID_TEXT_BYTES];
};

/* ---- columns as the table wants them ---- */

/* Where the rows of a chunk stand; NULL: out of memory. */
static struct position *positions_of(const struct writing *writing, const struct order_row *rows,
                                     size_t count, struct arena *arena)
{
    struct position *positions = arena_alloc_zero(arena, count + 1, sizeof *positions);
    for (size_t i = 0; positions && i < count; i++) {
        const struct range_batch *batch = &writing->range->batches[rows[i].batch];
        positions[i] = (struct position){
            .seq = batch->seq, .group = batch->group, .index = batch->first_index + rows[i].row};
    }
    return positions;
}

static bool widen(const struct arrow_array *from, struct arena *arena,
                  struct arrow_array *out_array)
{
    int64_t *values = arena_alloc_zero(arena, (size_t)from->length + 1, sizeof *values);
    if (!values)
        return false;
    for (int64_t i = 0; i < from->length; i++)
        values[i] = ((const int32_t *)from->values)[i];
    *out_array = *from;
    out_array->values = values;
    return true;
}

/* An array of ours as the table's field wants it: fields that were dropped left out, others in the
 * table's order. */
static bool arrange_array(const struct arrow_field *field, const struct bound_column *column,
                          const struct arrow_array *from, struct arena *arena,
                          struct arrow_array *out_array)
{
    *out_array = *from;
    if (column->is_as_it_is)
        return true;
    if (column->is_widened)
        return widen(from, arena, out_array);
    out_array->children = arena_alloc_zero(arena, field->child_count, sizeof *out_array->children);
    bool is_made = out_array->children;
    for (uint32_t i = 0; i < field->child_count && is_made; i++)
        is_made = arrange_array(&field->children[i], &column->children[i],
                                &from->children[column->children[i].source], arena,
                                &out_array->children[i]);
    return is_made;
}

/* The rows of one chunk as the table wants them. `gathered` has the payload's columns. */
static enum status arrange(const struct writing *writing, const struct arrow_batch *gathered,
                           const struct order_row *rows, struct arrow_batch *out, struct error *err)
{
    const struct binding *binding = writing->binding;
    int payload_count = (int)binding->payload->field_count;
    out->schema = &binding->schema;
    out->length = gathered->length;
    out->columns = arena_alloc_zero(&out->arena, binding->schema.field_count, sizeof *out->columns);
    const struct position *positions =
        positions_of(writing, rows, (size_t)out->length, &out->arena);
    bool is_made = out->columns && positions;
    for (uint32_t i = 0; i < binding->schema.field_count && is_made; i++) {
        const struct bound_column *column = &binding->columns[i];
        if (column->source >= payload_count) {
            struct arrow_array place = {0};
            is_made = positions_column(column->source - payload_count, writing->log_text, positions,
                                       (size_t)out->length, &out->arena, &place);
            out->columns[i] = place;
            if (is_made && column->is_widened)
                is_made = widen(&place, &out->arena, &out->columns[i]);
        } else {
            is_made =
                arrange_array(&binding->schema.fields[i], column,
                              &gathered->columns[column->source], &out->arena, &out->columns[i]);
        }
    }
    return is_made ? STATUS_OK : error_set(err, STATUS_NO_MEMORY, "rows: out of memory");
}

/* ---- files ---- */

static enum status write_chunk(const struct writing *writing, struct parquet_writer *parquet,
                               const struct order_row *rows, size_t count, struct hash128 *row_sum,
                               struct error *err)
{
    struct arrow_batch gathered = {0}, arranged = {0};
    struct arrow_row *places = mem_alloc(count * sizeof *places);
    enum status status = STATUS_OK;
    arena_init(&arranged.arena, 0);
    if (!places) {
        status = error_set(err, STATUS_NO_MEMORY, "rows: out of memory");
        goto done;
    }
    for (size_t i = 0; i < count; i++)
        places[i] = (struct arrow_row){.batch = rows[i].batch, .row = rows[i].row};
    TRY_OR_DONE(status, arrow_gather(writing->batches, writing->range->batch_count, places, count,
                                     &gathered, err));
    TRY_OR_DONE(status, arrange(writing, &gathered, rows, &arranged, err));
    TRY_OR_DONE(status, rows_sum(&writing->binding->schema, &arranged, row_sum, err));
    status = parquet_writer_write(parquet, &arranged, err);
done:
    mem_free(places);
    arrow_batch_deinit(&gathered);
    arena_deinit(&arranged.arena);
    return status;
}

/* What the manifest wants to know, copied into the record. */
static enum status note_file(const struct writing *writing, const char *uri, uint32_t partition,
                             const struct parquet_file_metrics *metrics,
                             struct iceberg_data_file *file, struct error *err)
{
    struct arena *arena = &writing->record->arena;
    uint32_t fields = writing->binding->spec->field_count;
    struct iceberg_value *values = arena_alloc_zero(arena, fields + 1, sizeof *values);
    struct iceberg_column_metrics *columns =
        arena_alloc_zero(arena, metrics->column_count, sizeof *columns);
    int64_t *splits = arena_alloc_zero(arena, metrics->split_offset_count + 1, sizeof *splits);
    char *path = arena_copy_text(arena, uri, strlen(uri));
    if (!values || !columns || !splits || !path)
        return error_set(err, STATUS_NO_MEMORY, "rows: out of memory");
    for (uint32_t i = 0; i < fields; i++) {
        values[i] = writing->order->partitions[partition][i];
        char *bytes =
            arena_copy_text(arena, (const char *)values[i].bytes.data, values[i].bytes.length);
        if (!bytes)
            return error_set(err, STATUS_NO_MEMORY, "rows: out of memory");
        values[i].bytes.data = (const uint8_t *)bytes;
    }
    memcpy(splits, metrics->split_offsets, metrics->split_offset_count * sizeof *splits);
    for (size_t i = 0; i < metrics->column_count; i++) {
        const struct parquet_column_metrics *from = &metrics->columns[i];
        columns[i] = (struct iceberg_column_metrics){.field_id = from->field_id,
                                                     .column_bytes = from->column_bytes,
                                                     .value_count = from->value_count,
                                                     .null_count = from->null_count,
                                                     .nan_count = from->nan_count};
        if (from->has_lower && from->has_upper) {
            const char *lower =
                arena_copy_text(arena, (const char *)from->lower.data, from->lower.length);
            const char *upper =
                arena_copy_text(arena, (const char *)from->upper.data, from->upper.length);
            if (!lower || !upper)
                return error_set(err, STATUS_NO_MEMORY, "rows: out of memory");
            columns[i].lower = span_of(lower, from->lower.length);
            columns[i].upper = span_of(upper, from->upper.length);
        }
    }
    *file = (struct iceberg_data_file){
        .content = ICEBERG_DATA,
        .path = path,
        .format = "PARQUET",
        .spec_id = writing->binding->spec_id,
        .partition = values,
        .record_count = metrics->row_count,
        .file_bytes = (int64_t)metrics->file_bytes,
        .columns = columns,
        .column_count = (uint32_t)metrics->column_count,
        .split_offsets = splits,
        .split_count = (uint32_t)metrics->split_offset_count,
        .sort_order_id = writing->binding->sort_order_id,
    };
    return STATUS_OK;
}

/* Where the table's rows are in our order: up to the first sort column that it has dropped. */
static size_t sorting_columns(const struct writing *writing,
                              struct parquet_sorting_column out_columns[4])
{
    const struct publish_table *definition = writing->lane->definition;
    const struct binding *binding = writing->binding;
    size_t used = 0;
    for (size_t s = 0; s == used && s < definition->sort_column_count && s < 4; s++) {
        for (uint32_t i = 0; i < binding->schema.field_count; i++) {
            int source = binding_source(binding, binding->schema.fields[i].field_id);
            if (source >= 0 &&
                strcmp(binding->payload->fields[source].name, definition->sort_columns[s]) == 0)
                out_columns[used++] =
                    (struct parquet_sorting_column){.field = i, .is_nulls_first = true};
        }
    }
    return used;
}

static bool is_by_id(const struct writing *writing)
{
    const struct publish_table *definition = writing->lane->definition;
    size_t length = definition->sort_column_count ? strlen(definition->sort_columns[0]) : 0;
    return length > 3 && strcmp(definition->sort_columns[0] + length - 3, "_id") == 0;
}

static struct parquet_options file_options(const struct writing *writing,
                                           struct parquet_sorting_column sorting[4])
{
    const struct publish_options *settings = &writing->lane->publisher->options;
    struct parquet_options options = parquet_options_default();
    options.zstd_level = settings->zstd_level;
    options.row_group_rows = settings->row_group_rows;
    /* A look-up decodes whole pages. */
    options.page_rows = is_by_id(writing) ? 2000 : settings->page_rows;
    options.created_by = settings->created_by;
    options.sorting = sorting;
    options.sorting_count = sorting_columns(writing, sorting);
    options.columns = (const void *)writing->columns.data;
    options.column_count = writing->columns.length / sizeof *options.columns;
    return options;
}

static enum status file_uri(const struct writing *writing, uint32_t partition, size_t number,
                            char out_uri[STORE_URI_BYTES_MAX], struct error *err)
{
    struct buf path = {0};
    enum status status = STATUS_OK;
    if (writing->binding->spec->field_count) {
        status = iceberg_partition_path(writing->binding->spec,
                                        writing->order->partitions[partition], &path, err);
        buf_put_byte(&path, '/');
    }
    buf_format(&path, "%s-%05zu.parquet", writing->record->prefix, number);
    buf_put_byte(&path, '\0');
    if (status == STATUS_OK)
        status = buf_status(&path, "file name", err);
    if (status == STATUS_OK)
        status = store_uri_join(writing->data_uri, (const char *)path.data, out_uri, err);
    buf_deinit(&path);
    return status;
}

/* Rows [from, to) of the order, which are one partition, as one file. */
static enum status write_file(const struct writing *writing, size_t from, size_t to,
                              struct error *err)
{
    struct record *record = writing->record;
    const struct order_row *rows = writing->order->rows;
    struct parquet_sorting_column sorting[4];
    struct parquet_options options = file_options(writing, sorting);
    struct parquet_file_metrics metrics = {0};
    struct parquet_writer *parquet = NULL;
    struct store_writer *object = NULL;
    struct hash128 row_sum = {0};
    char uri[STORE_URI_BYTES_MAX], sum_text[33];
    uint64_t bytes = 0;
    enum status status;
    TRY_OR_DONE(status, file_uri(writing, rows[from].partition, record->file_count, uri, err));
    TRY_OR_DONE(status, store_create(writing->lane->publisher->store, uri, &object, err));
    TRY_OR_DONE(status, parquet_writer_create(&writing->binding->schema, &options,
                                              store_writer_sink(object), &parquet, err));
    for (size_t at = from; at < to; at += CHUNK_ROWS)
        TRY_OR_DONE(status, write_chunk(writing, parquet, rows + at, size_min(CHUNK_ROWS, to - at),
                                        &row_sum, err));
    hash128_to_text(row_sum, sum_text);
    TRY_OR_DONE(status, parquet_writer_add_metadata(parquet, "sluice.row-sum", sum_text, err));
    TRY_OR_DONE(status, parquet_writer_finish(parquet, &metrics, err));
    struct store_writer *finished = object;
    object = NULL;
    TRY_OR_DONE(status, store_writer_finish(finished, &bytes, err));
    if (bytes != metrics.file_bytes || metrics.row_count != (int64_t)(to - from)) {
        status = error_set(err, STATUS_INTERNAL, "%s: %llu bytes stored, %llu written", uri,
                           (unsigned long long)bytes, (unsigned long long)metrics.file_bytes);
        goto done;
    }
    TRY_OR_DONE(status, note_file(writing, uri, rows[from].partition, &metrics,
                                  &record->files[record->file_count], err));
    record->file_count++;
    record->row_sum = hash128_add(record->row_sum, row_sum);
done:
    parquet_writer_destroy(parquet);
    store_writer_abort(object);
    parquet_file_metrics_deinit(&metrics);
    return status;
}

static enum status write_all(struct writing *writing, struct error *err)
{
    const struct order *order = writing->order;
    struct record *record = writing->record;
    record->files =
        arena_alloc_zero(&record->arena, order->partition_count + 1, sizeof *record->files);
    if (!record->files)
        return error_set(err, STATUS_NO_MEMORY, "rows: out of memory");
    size_t from = 0;
    while (from < order->row_count) {
        size_t to = from;
        while (to < order->row_count && order->rows[to].partition == order->rows[from].partition)
            to++;
        TRY(write_file(writing, from, to, err));
        from = to;
    }
    return STATUS_OK;
}

/* The columns that the table wants Bloom filters of, as Iceberg's writers are told. */
static enum status find_blooms(struct writing *writing, const struct iceberg_table *table,
                               struct error *err)
{
    for (uint32_t i = 0; i < writing->binding->schema.field_count; i++) {
        const char *name = writing->binding->schema.fields[i].name;
        struct parquet_column_options column = {.path = name, .has_bloom = true};
        struct buf key = {0};
        buf_format(&key, "write.parquet.bloom-filter-enabled.column.%s", name);
        buf_put_byte(&key, '\0');
        const char *value =
            key.failed ? NULL : iceberg_table_property(table, (const char *)key.data);
        if (value && strcmp(value, "true") == 0)
            buf_put(&writing->columns, &column, sizeof column);
        writing->columns.failed |= key.failed;
        buf_deinit(&key);
    }
    return buf_status(&writing->columns, "Bloom filters", err);
}

/* Ids in order repeat side by side, where compression finds them; a dictionary takes as much room,
 * and a look-up would expand it for one of its entries. */
static enum status spare_id_dictionary(struct writing *writing, struct error *err)
{
    struct parquet_sorting_column sorting[4];
    if (is_by_id(writing) && sorting_columns(writing, sorting)) {
        struct parquet_column_options column = {
            .path = writing->binding->schema.fields[sorting[0].field].name,
            .values = PARQUET_VALUES_PLAIN};
        buf_put(&writing->columns, &column, sizeof column);
    }
    return buf_status(&writing->columns, "columns", err);
}

enum status rows_write(struct lane *lane, const struct iceberg_table *table,
                       const struct binding *binding, const struct range *range,
                       struct record *record, struct error *err)
{
    struct order *order = mem_alloc_zero(1, sizeof *order);
    struct writing writing = {
        .lane = lane, .binding = binding, .range = range, .order = order, .record = record};
    enum status status;
    writing.batches = mem_alloc((range->batch_count + 1) * sizeof(struct arrow_batch *));
    if (!writing.batches || !order) {
        status = error_set(err, STATUS_NO_MEMORY, "rows: out of memory");
        goto done;
    }
    for (size_t i = 0; i < range->batch_count; i++)
        writing.batches[i] = &range->batches[i].batch;
    log_id_to_text(lane->publisher->log, writing.log_text);
    TRY_OR_DONE(status, iceberg_table_data_location(table, writing.data_uri, err));
    TRY_OR_DONE(status, find_blooms(&writing, table, err));
    TRY_OR_DONE(status, spare_id_dictionary(&writing, err));
    TRY_OR_DONE(status, order_create(lane->definition, binding, range, order, err));
    status = write_all(&writing, err);
    record->rows = range->rows;
    record->spec_id = binding->spec_id;
    record->schema_id = binding->schema_id;
    record->partition_count = binding->spec->field_count;
done:
    if (order)
        order_deinit(order);
    mem_free(order);
    mem_free(writing.batches);
    buf_deinit(&writing.columns);
    return status;
}
