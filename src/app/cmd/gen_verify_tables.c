/* SPDX-License-Identifier: Apache-2.0
 *
 * gen --verify, the tables' half: the current snapshot's data files, row group by row group, less
 * what position deletes took away.
 */
#include <stdlib.h>

#include "app/cmd/verify_internal.h"

struct verify_delete {
    uint64_t path_hash;
    int64_t row;
    int64_t sequence_number; /* applies to data files up to it */
};

static const char *const position_names[VERIFY_POSITION_COUNT] = {"_sluice_log", "_sluice_group",
                                                                  "_sluice_seq", "_sluice_index"};

/* ---- columns ---- */

static const struct arrow_field *find_field(const struct arrow_schema *schema, const char *name)
{
    for (uint32_t i = 0; i < schema->field_count; i++)
        if (strcmp(schema->fields[i].name, name) == 0)
            return &schema->fields[i];
    return NULL;
}

/* Our columns under the ids that the table gives them; every one may be missing in a file, which
 * is then not of our rows. */
static enum status choose_columns(struct verify_table *to, struct error *err)
{
    struct arrow_schema theirs;
    const struct arrow_schema *ours = to->definition->schema;
    uint32_t count = 0;
    TRY(iceberg_schema_to_arrow(to->table->schema, &to->arena, &theirs, err));
    struct arrow_field *fields =
        arena_alloc_zero(&to->arena, ours->field_count + VERIFY_POSITION_COUNT, sizeof *fields);
    to->sources = arena_alloc_zero(&to->arena, ours->field_count + 1, sizeof *to->sources);
    if (!fields || !to->sources)
        return error_set(err, STATUS_NO_MEMORY, "verify: out of memory");
    for (uint32_t i = 0; i < ours->field_count; i++) {
        const struct arrow_field *field = find_field(&theirs, ours->fields[i].name);
        if (!field)
            continue;
        to->sources[count] = i;
        fields[count++] = *field;
    }
    to->column_count = count;
    for (int i = 0; i < VERIFY_POSITION_COUNT; i++) {
        const struct arrow_field *field = find_field(&theirs, position_names[i]);
        if (!field)
            return error_set(err, STATUS_INVALID, "%s.%s has no column %s", to->definition->ns,
                             to->definition->name, position_names[i]);
        if (i == VERIFY_LOG ? field->type != ARROW_UTF8
                            : field->type != ARROW_INT32 && field->type != ARROW_INT64)
            return error_set(err, STATUS_INVALID, "%s.%s: column %s has another type",
                             to->definition->ns, to->definition->name, position_names[i]);
        fields[count] = *field;
        if (i != VERIFY_LOG) /* others may promote what is int; it widens as it is read */
            fields[count].type = ARROW_INT64;
        count++;
    }
    for (uint32_t i = 0; i < count; i++)
        fields[i].is_nullable = true;
    to->wanted = (struct arrow_schema){.fields = fields, .field_count = count};
    return STATUS_OK;
}

/* ---- files ---- */

struct remote {
    struct store *store;
    const char *uri;
};

static enum status read_remote(void *context, uint64_t offset, size_t bytes, void *place,
                               struct error *err)
{
    const struct remote *remote = context;
    struct buf out = {0};
    enum status status = store_get_range(remote->store, remote->uri, offset, bytes, &out, err);
    if (status == STATUS_OK && bytes)
        memcpy(place, out.data, bytes);
    buf_deinit(&out);
    return status;
}

static bool has_ids(const struct arrow_field *fields, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (fields[i].field_id || has_ids(fields[i].children, fields[i].child_count))
            return true;
    return false;
}

static bool is_parquet(const struct iceberg_live_file *live)
{
    return !live->file.format || strcmp(live->file.format, "PARQUET") == 0;
}

/* One row group of an open file, or all of them (`only` UINT32_MAX). */
static enum status read_file(struct stack *stack, const struct iceberg_live_file *live,
                             const struct arrow_schema *wanted, uint32_t only,
                             enum status (*each)(void *context, uint32_t group,
                                                 const struct arrow_batch *batch,
                                                 struct error *err),
                             void *context, struct error *err)
{
    struct remote remote = {.store = stack->store, .uri = live->file.path};
    struct byte_source source = {
        .read = read_remote, .context = &remote, .file_bytes = (uint64_t)live->file.file_bytes};
    struct parquet_limits limits = parquet_limits_default();
    struct parquet_read_options options = {.schema = wanted};
    struct parquet_file *file = NULL;
    struct parquet_reader *reader = NULL;
    enum status status = STATUS_OK;
    TRY_OR_DONE(status, parquet_file_open(source, &limits, &file, err));
    /* Files that were brought in without ids: the tables' name mapping is that of their names. */
    options.binds_by_id = has_ids(file->schema.fields, file->schema.field_count);
    TRY_OR_DONE(status, parquet_reader_create(file, &options, &reader, err));
    for (size_t i = 0; i < file->group_count; i++) {
        struct arrow_batch batch;
        if (only != UINT32_MAX && only != i)
            continue;
        TRY_OR_DONE(status, parquet_reader_read(reader, i, &batch, err));
        status = each(context, (uint32_t)i, &batch, err);
        arrow_batch_deinit(&batch);
        if (status != STATUS_OK)
            goto done;
    }
done:
    parquet_reader_destroy(reader);
    parquet_file_close(file);
    return status == STATUS_OK ? STATUS_OK : error_prefix(err, "%.200s", live->file.path);
}

/* ---- position deletes ---- */

enum { DELETE_PATH_ID = 2147483546, DELETE_ROW_ID = 2147483545 };

struct delete_collecting {
    struct buf *deletes;
    int64_t sequence_number;
};

static enum status collect_deletes(void *context, uint32_t group, const struct arrow_batch *batch,
                                   struct error *err)
{
    struct delete_collecting *collecting = context;
    const struct arrow_array *paths = &batch->columns[0], *rows = &batch->columns[1];
    (void)group;
    for (int64_t i = 0; i < batch->length; i++) {
        const uint8_t *text = (const uint8_t *)paths->values + paths->offsets[i];
        struct verify_delete delete = {
            .path_hash = hash64(text, (size_t)(paths->offsets[i + 1] - paths->offsets[i])),
            .row = ((const int64_t *)rows->values)[i],
            .sequence_number = collecting->sequence_number};
        buf_put(collecting->deletes, &delete, sizeof delete);
    }
    return buf_status(collecting->deletes, "position deletes", err);
}

static int compare_deletes(const void *a, const void *b)
{
    const struct verify_delete *x = a, *y = b;
    if (x->path_hash != y->path_hash)
        return x->path_hash < y->path_hash ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static enum status load_deletes(struct stack *stack, struct verify_table *table, struct error *err)
{
    static struct arrow_field fields[] = {
        {.name = "file_path", .type = ARROW_UTF8, .field_id = DELETE_PATH_ID},
        {.name = "pos", .type = ARROW_INT64, .field_id = DELETE_ROW_ID}};
    const struct arrow_schema wanted = {.fields = fields, .field_count = COUNT_OF(fields)};
    for (size_t i = 0; i < table->plan.file_count && table->plan.delete_file_count; i++) {
        const struct iceberg_live_file *live = &table->plan.files[i];
        struct delete_collecting collecting = {.deletes = &table->deletes,
                                               .sequence_number = live->sequence_number};
        if (live->file.content == ICEBERG_EQUALITY_DELETES)
            return error_set(err, STATUS_UNSUPPORTED, "%s.%s has equality deletes",
                             table->definition->ns, table->definition->name);
        if (live->file.content != ICEBERG_POSITION_DELETES)
            continue;
        if (!is_parquet(live))
            return error_set(err, STATUS_UNSUPPORTED,
                             "%s.%s has position deletes in %s (a deletion vector?): %.200s",
                             table->definition->ns, table->definition->name, live->file.format,
                             live->file.path);
        TRY(read_file(stack, live, &wanted, UINT32_MAX, collect_deletes, &collecting, err));
    }
    if (table->deletes.length)
        qsort(table->deletes.data, table->deletes.length / sizeof(struct verify_delete),
              sizeof(struct verify_delete), compare_deletes);
    return STATUS_OK;
}

/* Marks the rows [first, first + count) of a file that are deleted. */
static bool mark_deletes(const struct verify_table *table, const struct iceberg_live_file *live,
                         int64_t first, int64_t count, uint8_t *bits)
{
    const struct verify_delete *deletes = (const void *)table->deletes.data;
    size_t total = table->deletes.length / sizeof *deletes, low = 0, high = total;
    struct verify_delete wanted = {.path_hash = hash64(live->file.path, strlen(live->file.path)),
                                   .row = first};
    bool has_any = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_deletes(&deletes[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < total && deletes[low].path_hash == wanted.path_hash; low++) {
        int64_t row = deletes[low].row - first;
        if (row >= count)
            break;
        if (row < 0 || deletes[low].sequence_number < live->sequence_number)
            continue;
        bits[row >> 3] |= (uint8_t)(1u << (row & 7));
        has_any = true;
    }
    return has_any;
}

/* ---- scanning ---- */

struct scan {
    const struct verify_table *table;
    const struct iceberg_live_file *live;
    struct verify_place place;
    int64_t first; /* row in the file, of the group at hand */
    verify_batch_fn each;
    void *context;
};

static enum status scan_batch(void *context, uint32_t group, const struct arrow_batch *batch,
                              struct error *err)
{
    struct scan *scan = context;
    uint8_t *bits = NULL;
    bool has_deletes = false;
    scan->place.group = group;
    if (scan->table->deletes.length) {
        bits = mem_alloc_zero((size_t)batch->length / 8 + 1, 1);
        if (!bits)
            return error_set(err, STATUS_NO_MEMORY, "verify: out of memory");
        has_deletes = mark_deletes(scan->table, scan->live, scan->first, batch->length, bits);
    }
    enum status status =
        scan->each(scan->context, scan->place, batch, has_deletes ? bits : NULL, err);
    scan->first += batch->length;
    mem_free(bits);
    return status;
}

enum status verify_table_scan(struct stack *stack, const struct verify_table *table,
                              uint32_t table_index, verify_batch_fn each,
                              verify_unchecked_fn unchecked, void *context, struct error *err)
{
    for (uint32_t i = 0; i < table->plan.file_count; i++) {
        struct scan scan = {.table = table,
                            .live = &table->plan.files[i],
                            .place = {.table = table_index, .file = i},
                            .each = each,
                            .context = context};
        if (scan.live->file.content != ICEBERG_DATA)
            continue;
        enum status status =
            is_parquet(scan.live)
                ? read_file(stack, scan.live, &table->wanted, UINT32_MAX, scan_batch, &scan, err)
                : error_set(err, STATUS_UNSUPPORTED, "%.200s is %s", scan.live->file.path,
                            scan.live->file.format);
        if (status != STATUS_OK)
            TRY(unchecked(context, table->definition, err));
    }
    return STATUS_OK;
}

enum status verify_group_read(struct stack *stack, const struct verify_table *table,
                              struct verify_place place, verify_batch_fn each, void *context,
                              struct error *err)
{
    struct scan scan = {.table = table,
                        .live = &table->plan.files[place.file],
                        .place = place,
                        .each = each,
                        .context = context};
    return read_file(stack, scan.live, &table->wanted, place.group, scan_batch, &scan, err);
}

/* ---- opening ---- */

enum status verify_table_open(struct stack *stack, const struct publish_table *definition,
                              struct verify_table *out_table, struct error *err)
{
    struct catalog_ident ident = {.ns = definition->ns, .name = definition->name};
    struct iceberg_plan_options options = {0};
    struct verify_table table = {.definition = definition};
    enum status status = iceberg_table_load(stack->catalog, ident, &table.table, err);
    *out_table = (struct verify_table){.definition = definition};
    if (status != STATUS_OK)
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    arena_init(&table.arena, 0);
    TRY_OR_DONE(status, choose_columns(&table, err));
    if (table.table->current)
        TRY_OR_DONE(status, iceberg_plan_create(stack->store, table.table, table.table->current,
                                                &options, &table.plan, err));
    TRY_OR_DONE(status, load_deletes(stack, &table, err));
    *out_table = table;
done:
    if (status != STATUS_OK)
        verify_table_close(&table);
    return status;
}

void verify_table_close(struct verify_table *table)
{
    iceberg_plan_deinit(&table->plan);
    iceberg_table_destroy(table->table);
    buf_deinit(&table->deletes);
    arena_deinit(&table->arena);
    *table = (struct verify_table){0};
}

/* ---- cells ---- */

static void put_cells(struct buf *out, const struct arrow_field *field,
                      const struct arrow_array *array, int64_t first, int64_t end)
{
    buf_put_le32(out, (uint32_t)(end - first));
    for (int64_t i = first; i < end; i++)
        for (uint32_t j = 0; j < field->child_count; j++)
            verify_put_cell(out, &field->children[j], &array->children[j], i);
}

static void put_real(struct buf *out, double real)
{
    uint64_t bits;
    if (real != real)
        real = __builtin_nan("");
    memcpy(&bits, &real, sizeof bits);
    buf_put_le64(out, bits);
}

void verify_put_cell(struct buf *out, const struct arrow_field *field,
                     const struct arrow_array *array, int64_t i)
{
    bool is_valid = field->type != ARROW_NULL && arrow_is_valid(array, i);
    buf_put_byte(out, is_valid);
    if (!is_valid)
        return;
    if (field->is_dictionary) {
        i = ((const int32_t *)array->values)[i];
        array = array->dictionary;
    }
    switch (field->type) {
    case ARROW_BOOL:
        buf_put_le64(out, arrow_bit(array->values, i));
        break;
    case ARROW_INT32:
    case ARROW_DATE32:
        buf_put_le64(out, (uint64_t)(int64_t)((const int32_t *)array->values)[i]);
        break;
    case ARROW_INT64:
    case ARROW_TIMESTAMP_US:
        buf_put_le64(out, (uint64_t)((const int64_t *)array->values)[i]);
        break;
    case ARROW_FLOAT:
        put_real(out, (double)((const float *)array->values)[i]);
        break;
    case ARROW_DOUBLE:
        put_real(out, ((const double *)array->values)[i]);
        break;
    case ARROW_UTF8:
    case ARROW_BINARY:
        buf_put_le32(out, (uint32_t)(array->offsets[i + 1] - array->offsets[i]));
        buf_put(out, (const uint8_t *)array->values + array->offsets[i],
                (size_t)(array->offsets[i + 1] - array->offsets[i]));
        break;
    case ARROW_FIXED:
        buf_put(out, (const uint8_t *)array->values + i * field->byte_width,
                (size_t)field->byte_width);
        break;
    case ARROW_LIST:
    case ARROW_MAP:
        put_cells(out, field, array, array->offsets[i], array->offsets[i + 1]);
        break;
    case ARROW_STRUCT:
        put_cells(out, field, array, i, i + 1);
        break;
    default:
        break;
    }
}
