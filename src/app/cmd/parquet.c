/* SPDX-License-Identifier: Apache-2.0
 *
 * sluice parquet schema | meta | cat | head | explain | pages | verify FILE
 */
#include <inttypes.h>

#include "app/cmd/parquet_internal.h"

/* ---- rows ---- */

/* Columns of a file, with the file's leaf for each of theirs. */
struct chosen_leaves {
    struct arrow_schema schema;
    const struct parquet_leaf **leaves;
    struct arena arena;
};

static enum status choose_leaves(const struct parquet_file *file, const char *columns,
                                 struct chosen_leaves *out, struct error *err)
{
    bool *is_chosen;
    uint32_t count = 0;
    TRY(parquet_choose(file, columns, &out->arena, &is_chosen, err));
    TRY(parquet_schema_of_leaves(file, is_chosen, &out->arena, &out->schema, err));
    out->leaves = arena_alloc(&out->arena, (file->leaf_count + (size_t)1) * sizeof *out->leaves);
    if (!out->leaves)
        return error_set(err, STATUS_NO_MEMORY, "out of memory");
    for (uint32_t i = 0; i < file->leaf_count; i++)
        if (is_chosen[i])
            out->leaves[count++] = &file->leaves[i];
    return STATUS_OK;
}

static enum status print_batch(const struct chosen_leaves *chosen, const struct arrow_batch *batch,
                               struct row_printer *printer, struct error *err)
{
    const struct leaf_writer leaves = {.write = parquet_write_leaf, .context = chosen->leaves};
    for (int64_t i = 0; i < batch->length; i++) {
        row_begin(printer);
        json_write_object_begin(&printer->json);
        for (uint32_t j = 0, leaf = 0; j < batch->schema->field_count; j++) {
            const struct arrow_field *field = &batch->schema->fields[j];
            json_write_key(&printer->json, field->name);
            row_write_slot(&printer->json, &leaves, leaf, field, &batch->columns[j], i);
            leaf += count_leaves(field);
        }
        json_write_object_end(&printer->json);
        TRY(row_end(printer, err));
    }
    return STATUS_OK;
}

/* What is asked of a file's rows. */
struct query {
    const char *columns, *where; /* NULL: all */
    uint64_t rows;               /* at most */
    bool skips_pruning;
};

/* A scan with what it borrows. */
struct opened_query {
    struct chosen_leaves chosen;
    struct parquet_scan *scan;
    struct arena arena;
};

static void close_query(struct opened_query *opened)
{
    parquet_scan_destroy(opened->scan);
    arena_deinit(&opened->chosen.arena);
    arena_deinit(&opened->arena);
}

static enum status open_query(const struct parquet_file *file, const struct query *query,
                              struct opened_query *out, struct error *err)
{
    struct parquet_scan_options options = {
        .read = {.schema = &out->chosen.schema, .keeps_physical = true},
        .rows_max = query->rows,
        .skips_pruning = query->skips_pruning};
    *out = (struct opened_query){.scan = NULL};
    enum status status = choose_leaves(file, query->columns, &out->chosen, err);
    if (status == STATUS_OK && query->where)
        status = parquet_filter_parse(query->where, file, &out->arena, &options.filter, err);
    if (status == STATUS_OK)
        status = parquet_scan_create(file, &options, &out->scan, err);
    if (status != STATUS_OK)
        close_query(out);
    return status;
}

static enum status print_rows(const struct parquet_file *file, const struct query *query,
                              struct error *err)
{
    struct opened_query opened;
    struct row_printer printer = {.out = {0}};
    struct arrow_batch batch;
    enum status status = STATUS_NOT_FOUND;
    TRY(open_query(file, query, &opened, err));
    while (query->rows && (status = parquet_scan_next(opened.scan, &batch, err)) == STATUS_OK) {
        status = print_batch(&opened.chosen, &batch, &printer, err);
        arrow_batch_deinit(&batch);
        if (status != STATUS_OK)
            break;
    }
    close_query(&opened);
    return rows_finish(&printer, status == STATUS_NOT_FOUND ? STATUS_OK : status, err);
}

/* ---- explain ---- */

static void write_facts(struct buf *out, const struct parquet_scan_facts *facts)
{
    const struct {
        const char *name;
        uint64_t value;
    } members[] = {
        {"row_groups", facts->group_count},
        {"row_groups_ruled_out_by_statistics", facts->statistics_group_count},
        {"row_groups_ruled_out_by_bloom_filters", facts->bloom_group_count},
        {"row_groups_ruled_out_by_page_indexes", facts->index_group_count},
        {"rows", facts->row_count},
        {"rows_looked_at", facts->read_row_count},
        {"rows_matching", facts->match_count},
        {"pages_decoded", facts->page_count},
        {"index_reads", facts->index_fetch_count},
        {"index_bytes", facts->index_bytes},
        {"page_reads", facts->page_fetch_count},
        {"page_bytes", facts->page_bytes},
    };
    struct json_writer json;
    json_writer_init(&json, out);
    json_write_object_begin(&json);
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        json_write_key(&json, members[i].name);
        json_write_u64(&json, members[i].value);
    }
    json_write_object_end(&json);
    buf_put_byte(out, '\n');
}

static void put_facts(struct buf *out, const struct parquet_scan_facts *facts)
{
    buf_format(out,
               "%" PRIu64 " of %" PRIu64 " rows match; %" PRIu64 " were looked at\n"
               "%" PRIu64 " row groups, of which %" PRIu64 " were ruled out by statistics, %" PRIu64
               " by Bloom filters, %" PRIu64 " by page indexes\n",
               facts->match_count, facts->row_count, facts->read_row_count, facts->group_count,
               facts->statistics_group_count, facts->bloom_group_count, facts->index_group_count);
    buf_format(out,
               "%" PRIu64 " pages decoded; %" PRIu64 " bytes of pages in %" PRIu64
               " reads, %" PRIu64 " bytes of indexes and filters in %" PRIu64 "\n",
               facts->page_count, facts->page_bytes, facts->page_fetch_count, facts->index_bytes,
               facts->index_fetch_count);
}

/* Reads what `cat` would read, and says what that was. */
static enum status explain(const struct parquet_file *file, const struct query *query, bool as_json,
                           struct error *err)
{
    struct opened_query opened;
    struct arrow_batch batch;
    enum status status = STATUS_NOT_FOUND;
    TRY(open_query(file, query, &opened, err));
    while (query->rows && (status = parquet_scan_next(opened.scan, &batch, err)) == STATUS_OK)
        arrow_batch_deinit(&batch);
    struct parquet_scan_facts facts = parquet_scan_facts(opened.scan);
    close_query(&opened);
    if (status != STATUS_NOT_FOUND)
        return status;
    struct buf out = {0};
    if (as_json)
        write_facts(&out, &facts);
    else
        put_facts(&out, &facts);
    cmd_print(&out);
    return STATUS_OK;
}

/* ---- the command ---- */

enum word { SCHEMA, META, CAT, HEAD, EXPLAIN, PAGES, VERIFY, WORD_COUNT };

struct request {
    enum word word;
    bool as_json;
    struct query query;
};

static enum status look(void *context, struct byte_source source, struct error *err)
{
    const struct request *request = context;
    struct parquet_limits limits = parquet_limits_default();
    struct parquet_file *file;
    enum status status = STATUS_OK;
    TRY(parquet_file_open(source, &limits, &file, err));
    switch (request->word) {
    case SCHEMA:
        parquet_print_schema(file, request->as_json);
        break;
    case META:
        status = parquet_print_meta(file, request->query.columns, request->as_json, err);
        break;
    case VERIFY:
        status = parquet_verify(file, err);
        if (status == STATUS_OK)
            printf("%" PRId64 " rows in %zu row groups and %u columns are whole\n", file->row_count,
                   file->group_count, file->leaf_count);
        break;
    case PAGES:
        status = parquet_print_pages(file, request->query.columns, request->as_json, err);
        break;
    case EXPLAIN:
        status = explain(file, &request->query, request->as_json, err);
        break;
    default:
        status = print_rows(file, &request->query, err);
        break;
    }
    parquet_file_close(file);
    return status;
}

/* Flags that only some words have. */
enum { HAS_COLUMNS = 1, HAS_ROWS = 2 };

static const struct {
    const char *name;
    unsigned has;
} words[WORD_COUNT] = {
    [SCHEMA] = {"schema", 0},
    [META] = {"meta", HAS_COLUMNS},
    [CAT] = {"cat", HAS_COLUMNS | HAS_ROWS},
    [HEAD] = {"head", HAS_COLUMNS | HAS_ROWS},
    [EXPLAIN] = {"explain", HAS_COLUMNS | HAS_ROWS},
    [PAGES] = {"pages", HAS_COLUMNS},
    [VERIFY] = {"verify", 0},
};

static bool has_its_flags(const struct request *request, bool has_rows)
{
    const struct query *query = &request->query;
    const struct {
        const char *name;
        bool is_given;
        unsigned needs;
    } flags[] = {{"--columns", query->columns, HAS_COLUMNS},
                 {"--where", query->where, HAS_ROWS},
                 {"--rows", has_rows, HAS_ROWS},
                 {"--no-pruning", query->skips_pruning, HAS_ROWS}};
    for (size_t i = 0; i < COUNT_OF(flags); i++)
        if (flags[i].is_given && !(words[request->word].has & flags[i].needs)) {
            cmd_usage("parquet %s has no %s", words[request->word].name, flags[i].name);
            return false;
        }
    return true;
}

int cmd_parquet(struct invocation *invocation)
{
    enum { HEAD_ROWS = 10 };
    struct request request = {.as_json = cmd_take_flag(invocation, "--json")};
    uint64_t rows = UINT64_MAX; /* not said */
    request.query.columns = cmd_take_option(invocation, "--columns");
    request.query.where = cmd_take_option(invocation, "--where");
    request.query.skips_pruning = cmd_take_flag(invocation, "--no-pruning");
    if (!cmd_take_number(invocation, "--rows", &rows))
        return 2;
    const char *what = invocation->argc > 0 ? invocation->argv[0] : "";
    while (request.word < WORD_COUNT && strcmp(what, words[request.word].name) != 0)
        request.word++;
    if (request.word == WORD_COUNT || invocation->argc < 2)
        return cmd_usage("parquet schema, meta, cat, head, explain, pages or verify, and a file");
    if (!cmd_no_more_words(invocation, 2) || !has_its_flags(&request, rows != UINT64_MAX))
        return 2;
    request.query.rows = request.word == HEAD && rows == UINT64_MAX ? HEAD_ROWS : rows;
    if (request.word == VERIFY && request.as_json)
        return parquet_verify_as_json(invocation, 1);
    return input_each(invocation, 1, look, &request);
}
