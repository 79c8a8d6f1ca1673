/* SPDX-License-Identifier: Apache-2.0
 *
 * Parquet files from outside: whatever the reader accepts is an Arrow batch that keeps every rule.
 * Each file is read as it is and with its dictionaries kept; the first of its columns alone too;
 * and through filters on each of its first leaves and on any of them, whose rows are the same with
 * pruning off if what the file says of its values holds.
 */
#include "format/parquet/parquet.h"

enum { GROUPS_MAX = 8, FILTERS_MAX = 4 };

static void read_groups(const struct parquet_file *file, const struct parquet_read_options *options)
{
    struct error err;
    struct parquet_reader *reader;
    if (parquet_reader_create(file, options, &reader, &err) != STATUS_OK)
        return;
    const struct arrow_schema *schema = parquet_reader_schema(reader);
    for (size_t i = 0; i < file->group_count && i < GROUPS_MAX; i++) {
        struct arrow_batch batch;
        if (parquet_reader_read(reader, i, &batch, &err) != STATUS_OK)
            continue;
        for (uint32_t j = 0; j < schema->field_count; j++)
            CHECK(arrow_array_validate(&schema->fields[j], &batch.columns[j], &err) == STATUS_OK);
        arrow_batch_deinit(&batch);
    }
    parquet_reader_destroy(reader);
}

static void keep_dictionaries(struct arrow_field *fields, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        fields[i].is_dictionary = fields[i].type == ARROW_UTF8 || fields[i].type == ARROW_BINARY;
        keep_dictionaries(fields[i].children, fields[i].child_count);
    }
}

/* Rows that match; -1: it failed. */
static int64_t count_matches(const struct parquet_file *file, const struct parquet_filter *filter,
                             bool skips_pruning)
{
    struct error err;
    struct parquet_scan *scan;
    struct arrow_batch batch;
    struct parquet_scan_options options = {
        .filter = *filter, .read = {.skips_checksums = true}, .skips_pruning = skips_pruning};
    int64_t count = 0;
    enum status status;
    if (parquet_scan_create(file, &options, &scan, &err) != STATUS_OK)
        return -1;
    while ((status = parquet_scan_next(scan, &batch, &err)) == STATUS_OK) {
        for (uint32_t j = 0; j < batch.schema->field_count; j++)
            CHECK(arrow_array_validate(&batch.schema->fields[j], &batch.columns[j], &err) ==
                  STATUS_OK);
        count += batch.length;
        arrow_batch_deinit(&batch);
    }
    parquet_scan_destroy(scan);
    return status == STATUS_NOT_FOUND ? count : -1;
}

static void check_filter(const struct parquet_file *file, const struct parquet_filter *filter,
                         bool is_true)
{
    int64_t pruned = count_matches(file, filter, false);
    int64_t whole = is_true && pruned >= 0 ? count_matches(file, filter, true) : -1;
    CHECK(whole < 0 || pruned == whole);
}

static enum status pass_page(void *context, const struct parquet_page_facts *page,
                             struct error *err)
{
    UNUSED(context);
    UNUSED(page);
    UNUSED(err);
    return STATUS_OK;
}

/* Whatever is said of these, it is an answer. */
static void inspect(const struct parquet_file *file)
{
    struct error err;
    (void)!parquet_file_verify_layout(file, &err);
    for (size_t i = 0; i < file->group_count && i < GROUPS_MAX; i++)
        for (uint32_t leaf = 0; leaf < file->leaf_count && leaf < FILTERS_MAX; leaf++)
            (void)!parquet_file_pages(file, i, leaf, pass_page, NULL, &err);
}

static void scan_leaves(const struct parquet_file *file)
{
    struct error err;
    const struct parquet_value value = {.integer = 5, .real = 5, .bytes = span_of("k05", 3)};
    struct parquet_condition any[FILTERS_MAX * 2];
    struct parquet_term terms[COUNT_OF(any) + 1];
    uint32_t count = 0;
    bool is_true = file->group_count <= GROUPS_MAX;
    inspect(file);
    for (size_t i = 0; is_true && i < file->group_count; i++)
        is_true = parquet_file_verify(file, i, &err) == STATUS_OK;
    for (uint32_t i = 0; i < file->leaf_count && i < FILTERS_MAX; i++) {
        for (int op = PARQUET_EQUAL; op <= PARQUET_IS_NULL; op++) {
            struct parquet_condition condition = {.leaf = i,
                                                  .op = (enum parquet_operator)op,
                                                  .values = &value,
                                                  .value_count = op < PARQUET_IS_NULL};
            check_filter(file, &(struct parquet_filter){.conditions = &condition, .count = 1},
                         is_true);
            if (op != PARQUET_EQUAL && op != PARQUET_IS_NULL)
                continue;
            any[count] = condition;
            terms[count + 1] = (struct parquet_term){PARQUET_TERM_CONDITION, count};
            count++;
        }
    }
    terms[0] = (struct parquet_term){PARQUET_TERM_OR, count};
    if (count)
        check_filter(file, &(struct parquet_filter){any, count, terms, count + 1}, is_true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct error err;
    struct span span = span_of(data, bytes);
    struct arena arena;
    struct arrow_schema schema;
    struct parquet_file *file;
    struct parquet_limits limits = parquet_limits_default();
    struct parquet_read_options options = {.skips_checksums = true};
    bool was_arrow;
    limits.metadata_bytes_max = 1 << 20;
    limits.element_count_max = 64;
    limits.page_bytes_max = 1 << 18;
    limits.batch_bytes_max = 1 << 20;
    if (parquet_file_open(byte_source_of_span(&span), &limits, &file, &err) != STATUS_OK)
        return 0;
    arena_init(&arena, 0);
    read_groups(file, &options);
    if (arrow_schema_copy(&file->schema, &arena, &schema, &err) == STATUS_OK) {
        keep_dictionaries(schema.fields, schema.field_count);
        options.schema = &schema;
        options.keeps_physical = true;
        read_groups(file, &options);
        schema.field_count = schema.field_count ? 1 : 0;
        read_groups(file, &options);
        options.keeps_physical = false;
        if (parquet_original_schema(file, &arena, &schema, &was_arrow, &err) == STATUS_OK)
            read_groups(file, &options);
    }
    scan_leaves(file);
    arena_deinit(&arena);
    parquet_file_close(file);
    return 0;
}
