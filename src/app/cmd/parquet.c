/* SPDX-License-Identifier: Apache-2.0
 *
 * sluice parquet schema | meta | cat | head | explain | verify FILE
 */
#include <inttypes.h>

#include "app/cmd/parquet_internal.h"

/* ---- schema ---- */

static const char *kind_name(enum parquet_kind kind)
{
    static const char *const names[] = {"",          "string",  "integer", "date",    "time",
                                        "timestamp", "decimal", "uuid",    "float16", "other"};
    return (size_t)kind < COUNT_OF(names) ? names[kind] : "other";
}

static const char *unit_name(enum parquet_unit unit)
{
    return unit == PARQUET_MILLIS ? "ms" : unit == PARQUET_MICROS ? "us" : "ns";
}

static void put_kind(struct buf *out, const struct parquet_leaf *leaf)
{
    buf_put_text(out, kind_name(leaf->kind));
    if (leaf->kind == PARQUET_KIND_INTEGER)
        buf_format(out, "(%d,%s)", leaf->bits, leaf->is_unsigned ? "unsigned" : "signed");
    else if (leaf->kind == PARQUET_KIND_TIME || leaf->kind == PARQUET_KIND_TIMESTAMP)
        buf_format(out, "(%s%s)", unit_name(leaf->unit), leaf->is_utc ? ",utc" : "");
    else if (leaf->kind == PARQUET_KIND_DECIMAL)
        buf_format(out, "(%d,%d)", (int)leaf->precision, (int)leaf->scale);
}

static void put_tree(struct buf *out, const struct arrow_field *field,
                     const struct parquet_leaf **inout_leaf, int depth)
{
    static const char *const groups[ARROW_TYPE_COUNT] = {
        [ARROW_STRUCT] = "struct", [ARROW_LIST] = "list", [ARROW_MAP] = "map"};
    buf_format(out, "%*s%s: ", depth * 2, "", field->name);
    if (field->child_count) {
        buf_put_text(out, groups[field->type]);
    } else {
        const struct parquet_leaf *leaf = (*inout_leaf)++;
        buf_put_text(out, parquet_physical_name(leaf->physical));
        if (leaf->physical == PARQUET_FIXED)
            buf_format(out, "(%u)", leaf->width);
        if (leaf->kind != PARQUET_KIND_NONE) {
            buf_put_byte(out, ' ');
            put_kind(out, leaf);
        }
    }
    buf_put_text(out, field->is_nullable ? "" : " required");
    if (field->field_id)
        buf_format(out, " #%d", (int)field->field_id);
    buf_put_byte(out, '\n');
    for (uint32_t i = 0; i < field->child_count; i++)
        put_tree(out, &field->children[i], inout_leaf, depth + 1);
}

static void write_leaves(struct json_writer *writer, const struct parquet_file *file)
{
    json_write_array_begin(writer);
    for (uint32_t i = 0; i < file->leaf_count; i++) {
        const struct parquet_leaf *leaf = &file->leaves[i];
        struct buf kind = {0};
        put_kind(&kind, leaf);
        json_write_object_begin(writer);
        json_write_key(writer, "path");
        json_write_text(writer, leaf->path);
        json_write_key(writer, "type");
        json_write_text(writer, parquet_physical_name(leaf->physical));
        json_write_key(writer, "kind");
        json_write_string(writer, kind.data, kind.length);
        json_write_key(writer, "field_id");
        json_write_i64(writer, leaf->field->field_id);
        json_write_key(writer, "max_definition");
        json_write_i64(writer, leaf->max_def);
        json_write_key(writer, "max_repetition");
        json_write_i64(writer, leaf->max_rep);
        json_write_object_end(writer);
        buf_deinit(&kind);
    }
    json_write_array_end(writer);
}

static void print_schema(const struct parquet_file *file, bool as_json)
{
    struct buf out = {0};
    struct json_writer writer;
    const struct parquet_leaf *leaf = file->leaves;
    json_writer_init(&writer, &out);
    if (as_json) {
        write_leaves(&writer, file);
        buf_put_byte(&out, '\n');
    }
    for (uint32_t i = 0; i < file->schema.field_count && !as_json; i++)
        put_tree(&out, &file->schema.fields[i], &leaf, 0);
    cmd_print(&out);
}

/* ---- meta ---- */

static void put_encodings(struct buf *out, uint32_t encodings)
{
    bool is_first = true;
    for (int i = 0; i < 10; i++) {
        if (!(encodings >> i & 1))
            continue;
        buf_format(out, "%s%s", is_first ? "" : ",", parquet_encoding_name(i));
        is_first = false;
    }
}

static void write_chunk(struct json_writer *writer, const struct parquet_leaf *leaf,
                        const struct parquet_chunk *chunk)
{
    struct buf encodings = {0};
    put_encodings(&encodings, chunk->encodings);
    json_write_object_begin(writer);
    json_write_key(writer, "path");
    json_write_text(writer, leaf->path);
    json_write_key(writer, "codec");
    json_write_text(writer, parquet_codec_name(chunk->codec));
    json_write_key(writer, "encodings");
    json_write_string(writer, encodings.data, encodings.length);
    json_write_key(writer, "offset");
    json_write_u64(writer, chunk->offset);
    json_write_key(writer, "bytes");
    json_write_u64(writer, chunk->bytes);
    json_write_key(writer, "values");
    json_write_u64(writer, chunk->value_count);
    if (chunk->statistics.has_null_count) {
        json_write_key(writer, "nulls");
        json_write_i64(writer, chunk->statistics.null_count);
    }
    json_write_object_end(writer);
    buf_deinit(&encodings);
}

static void write_meta(struct json_writer *writer, const struct parquet_file *file)
{
    json_write_object_begin(writer);
    json_write_key(writer, "created_by");
    json_write_text(writer, file->created_by ? file->created_by : "");
    json_write_key(writer, "rows");
    json_write_i64(writer, file->row_count);
    json_write_key(writer, "metadata");
    json_write_object_begin(writer);
    for (size_t i = 0; i < file->pair_count; i++) {
        json_write_key(writer, file->pairs[i].key);
        json_write_text(writer, file->pairs[i].value ? file->pairs[i].value : "");
    }
    json_write_object_end(writer);
    json_write_key(writer, "row_groups");
    json_write_array_begin(writer);
    for (size_t i = 0; i < file->group_count; i++) {
        json_write_object_begin(writer);
        json_write_key(writer, "rows");
        json_write_i64(writer, file->groups[i].rows);
        json_write_key(writer, "columns");
        json_write_array_begin(writer);
        for (uint32_t j = 0; j < file->leaf_count; j++)
            write_chunk(writer, &file->leaves[j], &file->groups[i].chunks[j]);
        json_write_array_end(writer);
        json_write_object_end(writer);
    }
    json_write_array_end(writer);
    json_write_object_end(writer);
}

static void put_meta(struct buf *out, const struct parquet_file *file)
{
    buf_format(out, "%s\n%" PRId64 " rows, %zu row groups, %u columns\n",
               file->created_by ? file->created_by : "(not said by what)", file->row_count,
               file->group_count, file->leaf_count);
    for (size_t i = 0; i < file->pair_count; i++)
        buf_format(out, "  %s = %.200s\n", file->pairs[i].key,
                   file->pairs[i].value ? file->pairs[i].value : "");
    for (size_t i = 0; i < file->group_count; i++) {
        buf_format(out, "row group %zu: %" PRId64 " rows\n", i, file->groups[i].rows);
        for (uint32_t j = 0; j < file->leaf_count; j++) {
            const struct parquet_chunk *chunk = &file->groups[i].chunks[j];
            buf_format(out, "  %-40s %10" PRIu64 " values %12" PRIu64 " bytes  %s ",
                       file->leaves[j].path, chunk->value_count, chunk->bytes,
                       parquet_codec_name(chunk->codec));
            put_encodings(out, chunk->encodings);
            buf_put_byte(out, '\n');
        }
    }
}

static void print_meta(const struct parquet_file *file, bool as_json)
{
    struct buf out = {0};
    struct json_writer writer;
    json_writer_init(&writer, &out);
    if (as_json) {
        write_meta(&writer, file);
        buf_put_byte(&out, '\n');
    } else {
        put_meta(&out, file);
    }
    cmd_print(&out);
}

/* ---- rows ---- */

static enum status print_batch(const struct parquet_file *file, const struct chosen_columns *chosen,
                               const struct arrow_batch *batch, struct row_printer *printer,
                               struct error *err)
{
    const struct leaf_writer leaves = {.write = parquet_write_leaf, .context = file->leaves};
    for (int64_t i = 0; i < batch->length; i++) {
        row_begin(printer);
        json_write_object_begin(&printer->json);
        for (uint32_t j = 0; j < batch->schema->field_count; j++) {
            json_write_key(&printer->json, batch->schema->fields[j].name);
            row_write_slot(&printer->json, &leaves, chosen->first_leaves[j],
                           &batch->schema->fields[j], &batch->columns[j], i);
        }
        json_write_object_end(&printer->json);
        TRY(row_end(printer, err));
    }
    return STATUS_OK;
}

/* What is asked of a file's rows. */
struct query {
    const char *columns, *where; /* NULL: all */
    uint64_t rows;               /* at most; 0: all */
    bool skips_pruning;
};

/* A scan with what it borrows. */
struct opened_query {
    struct chosen_columns chosen;
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
    enum status status = columns_choose(&file->schema, query->columns, &out->chosen, err);
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
    enum status status;
    TRY(open_query(file, query, &opened, err));
    while ((status = parquet_scan_next(opened.scan, &batch, err)) == STATUS_OK) {
        status = print_batch(file, &opened.chosen, &batch, &printer, err);
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
    enum status status;
    TRY(open_query(file, query, &opened, err));
    while ((status = parquet_scan_next(opened.scan, &batch, err)) == STATUS_OK)
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

/* ---- verify ---- */

static enum status verify_group(const struct parquet_file *file, struct parquet_reader *reader,
                                size_t group, struct error *err)
{
    struct arrow_batch batch;
    TRY(parquet_reader_read(reader, group, &batch, err));
    enum status status = STATUS_OK;
    for (uint32_t i = 0; status == STATUS_OK && i < batch.schema->field_count; i++)
        status = arrow_array_validate(&batch.schema->fields[i], &batch.columns[i], err);
    arrow_batch_deinit(&batch);
    return status == STATUS_OK ? parquet_file_verify(file, group, err) : status;
}

static enum status verify(const struct parquet_file *file, bool as_json, struct error *err)
{
    struct parquet_read_options options = {.schema = NULL};
    struct parquet_reader *reader;
    TRY(parquet_reader_create(file, &options, &reader, err));
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < file->group_count; i++)
        status = verify_group(file, reader, i, err);
    parquet_reader_destroy(reader);
    if (status == STATUS_OK)
        printf(as_json ? "{\"rows\":%" PRId64 ",\"row_groups\":%zu,\"columns\":%u}\n"
                       : "%" PRId64 " rows in %zu row groups and %u columns are whole\n",
               file->row_count, file->group_count, file->leaf_count);
    return status;
}

/* ---- the command ---- */

enum word { SCHEMA, META, CAT, HEAD, EXPLAIN, VERIFY, WORD_COUNT };

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
        print_schema(file, request->as_json);
        break;
    case META:
        print_meta(file, request->as_json);
        break;
    case VERIFY:
        status = verify(file, request->as_json, err);
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

int cmd_parquet(struct invocation *invocation)
{
    static const char *const words[WORD_COUNT] = {"schema", "meta",    "cat",
                                                  "head",   "explain", "verify"};
    struct request request = {.as_json = cmd_take_flag(invocation, "--json")};
    uint64_t rows = 10;
    request.query.columns = cmd_take_option(invocation, "--columns");
    request.query.where = cmd_take_option(invocation, "--where");
    request.query.skips_pruning = cmd_take_flag(invocation, "--no-pruning");
    if (!cmd_take_number(invocation, "--rows", &rows))
        return 2;
    const char *what = invocation->argc > 0 ? invocation->argv[0] : "";
    while (request.word < WORD_COUNT && strcmp(what, words[request.word]) != 0)
        request.word++;
    if (request.word == WORD_COUNT || invocation->argc < 2)
        return cmd_usage("parquet schema, meta, cat, head, explain or verify, and a file");
    if (!cmd_no_more_words(invocation, 2))
        return 2;
    if (request.word == HEAD && rows == 0)
        return 0;
    request.query.rows = request.word == HEAD ? rows : 0;
    return input_each(invocation, 1, look, &request);
}
