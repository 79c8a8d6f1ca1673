/* SPDX-License-Identifier: Apache-2.0
 *
 * sluice gen --verify RECEIPTS: whether the rows of every receipt stand in the tables, once, as the
 * seed says.
 *
 * 1. The receipts name (group, seq, first row, rows); each row has a place in one array.
 * 2. The tables are scanned once: a row of one of the receipts is counted at its place and leaves
 *    the hash of its cells there.
 * 3. Each request is made again from profile, seed and number, decoded as the server does it, and
 *    its rows hashed. When the server received it only the table knows: that is taken from there.
 * 4. A row that differs is read again, to name the column.
 *
 * Memory: about 40 bytes a row.
 */
#include <stdarg.h>
#include <stdlib.h>

#include "app/cmd/verify_internal.h"
#include "format/json/json.h"

enum { TABLES_MAX = 16, NAMED_MAX = 10, RECEIPTS_A_REQUEST_MAX = TABLES_MAX };

struct receipt {
    uint64_t log_hash, seq;
    uint32_t group, first, rows;
    uint64_t slot; /* of its first row */
};

struct request {
    uint64_t index, items;
    size_t first_receipt, receipt_count;
};

struct row_state {
    struct hash128 hash; /* of the last one seen */
    int64_t received_us;
    struct verify_place place;
    uint32_t count;
};

struct verify {
    struct stack stack;
    enum gen_profile profile;
    uint64_t seed;
    int64_t base_ns;
    struct buf receipts, requests; /* struct receipt, struct request */
    const struct receipt **order;  /* by position in the log */
    size_t receipt_count;
    struct row_state *rows;
    uint64_t row_count;
    struct verify_table tables[TABLES_MAX];
    uint32_t table_count;
    struct buf cells; /* of the row at hand */

    uint64_t found, missing, repeated, different, foreign, without_receipt;
    struct buf named;     /* texts of differences, NUL after each */
    struct buf unchecked; /* of tables and files that could not be read */
    uint32_t named_count;
    enum status worst; /* of those that concern the receipts: the first */

    /* of the request at hand */
    const struct request *request;
    size_t receipts_used;
    bool lacks_receipts;
};

static void name_difference(struct verify *verify, const char *format, ...) PRINTF_LIKE(2, 3);

static void name_difference(struct verify *verify, const char *format, ...)
{
    char text[512];
    va_list args;
    if (verify->named_count++ >= NAMED_MAX)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    buf_put(&verify->named, text, strlen(text) + 1);
}

/* Can rows of the profile stand in the table? */
static bool is_concerned(const struct verify *verify, const struct publish_table *definition)
{
    const char *signal = gen_profile_path(verify->profile) + strlen("/v1/");
    if (strcmp(signal, "traces") == 0)
        signal = "spans";
    return strncmp(definition->name, signal, strlen(signal)) == 0;
}

/* A table, or a file of one, that cannot be read keeps nobody from checking the others. */
static enum status note_unchecked(void *context, const struct publish_table *definition,
                                  struct error *err)
{
    struct verify *verify = context;
    bool is_concern = is_concerned(verify, definition);
    char text[600];
    if (err->status == STATUS_NO_MEMORY)
        return err->status;
    if (is_concern && verify->worst == STATUS_OK)
        verify->worst = err->status;
    snprintf(text, sizeof text, "%s.%s could not be checked%s: %.400s", definition->ns,
             definition->name, is_concern ? "" : " (these receipts do not concern it)",
             err->message);
    buf_put(&verify->unchecked, text, strlen(text) + 1);
    return STATUS_OK;
}

/* ---- receipts ---- */

/* "<log>/<group>/<term>/<seq>;first=<n>;rows=<n>" */
static bool parse_receipt(const char *text, struct receipt *out)
{
    unsigned long long term, seq;
    unsigned group, first, rows;
    int end = 0;
    const char *slash = strchr(text, '/');
    if (!slash ||
        sscanf(slash, "/%u/%llu/%llu;first=%u;rows=%u%n", &group, &term, &seq, &first, &rows,
               &end) != 5 ||
        slash[end] != '\0')
        return false;
    *out = (struct receipt){.log_hash = hash64(text, (size_t)(slash - text)),
                            .seq = seq,
                            .group = group,
                            .first = first,
                            .rows = rows};
    return true;
}

static bool parse_line(struct verify *verify, const struct json_value *line)
{
    int64_t index, items;
    struct request request = {.first_receipt = verify->receipts.length / sizeof(struct receipt)};
    const struct json_value *list = json_get(line, "receipts");
    if (!json_get_i64(line, "request", &index) || !json_get_i64(line, "items", &items) || !list ||
        list->type != JSON_ARRAY || index < 0 || items < 1)
        return false;
    request.index = (uint64_t)index;
    request.items = (uint64_t)items;
    for (const struct json_value *at = list->first; at; at = at->next) {
        struct receipt receipt;
        if (at->type != JSON_STRING || !parse_receipt(at->text, &receipt))
            return false;
        receipt.slot = verify->row_count;
        verify->row_count += receipt.rows;
        buf_put(&verify->receipts, &receipt, sizeof receipt);
        request.receipt_count++;
    }
    buf_put(&verify->requests, &request, sizeof request);
    return request.receipt_count <= RECEIPTS_A_REQUEST_MAX;
}

static bool parse_head(struct verify *verify, const struct json_value *line)
{
    const struct json_value *seed = json_get(line, "seed");
    const char *profile = json_get_text(line, "profile");
    if (!profile || !seed || seed->type != JSON_NUMBER ||
        !json_number_to_u64(span_of(seed->text, seed->length), &verify->seed) ||
        !gen_profile_parse(profile, &verify->profile) ||
        !json_get_i64(line, "base_unix_nano", &verify->base_ns))
        return false;
    return true;
}

static enum status read_receipts(struct verify *verify, const char *path, struct error *err)
{
    static const uint64_t bytes_max = UINT64_C(4) << 30;
    struct buf text = {0};
    struct arena arena;
    unsigned long long number = 0;
    arena_init(&arena, 16 << 20);
    enum status status = files_read(verify->stack.env, path, bytes_max, &text, err);
    for (size_t at = 0; status == STATUS_OK && at < text.length;) {
        const uint8_t *end = memchr(text.data + at, '\n', text.length - at);
        size_t length = end ? (size_t)(end - text.data) - at : text.length - at;
        struct json_value *line;
        number++;
        arena_clear(&arena);
        status = json_parse(text.data + at, length, &arena, &line, err);
        if (status == STATUS_OK &&
            !(number == 1 ? parse_head(verify, line) : parse_line(verify, line)))
            status = error_set(err, STATUS_INVALID, "not a line of gen --receipts");
        if (status != STATUS_OK)
            error_prefix(err, "%s, line %llu", path, number);
        at += length + 1;
    }
    if (status == STATUS_OK && number == 0)
        status = error_set(err, STATUS_INVALID, "%s is empty", path);
    if (status == STATUS_OK)
        status = buf_status(&verify->receipts, "receipts", err);
    if (status == STATUS_OK)
        status = buf_status(&verify->requests, "receipts", err);
    arena_deinit(&arena);
    buf_deinit(&text);
    return status;
}

static int compare_positions(const struct receipt *x, const struct receipt *y)
{
    if (x->log_hash != y->log_hash)
        return x->log_hash < y->log_hash ? -1 : 1;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->seq != y->seq)
        return x->seq < y->seq ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static int compare_receipts(const void *a, const void *b)
{
    return compare_positions(*(const struct receipt *const *)a, *(const struct receipt *const *)b);
}

static enum status index_receipts(struct verify *verify, struct error *err)
{
    const struct receipt *receipts = (const void *)verify->receipts.data;
    verify->receipt_count = verify->receipts.length / sizeof *receipts;
    verify->order = mem_alloc_zero(verify->receipt_count + 1, sizeof(void *));
    verify->rows = mem_alloc_zero((size_t)verify->row_count + 1, sizeof *verify->rows);
    if (!verify->order || !verify->rows)
        return error_set(err, STATUS_NO_MEMORY, "no memory for %llu rows",
                         (unsigned long long)verify->row_count);
    for (size_t i = 0; i < verify->receipt_count; i++)
        verify->order[i] = &receipts[i];
    qsort(verify->order, verify->receipt_count, sizeof(void *), compare_receipts);
    return STATUS_OK;
}

/* The receipt that a position in the log belongs to, or NULL. */
static const struct receipt *find_receipt(const struct verify *verify, const struct receipt *place)
{
    size_t low = 0, high = verify->receipt_count;
    while (low < high) { /* the first one behind it */
        size_t middle = low + (high - low) / 2;
        if (compare_positions(verify->order[middle], place) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    const struct receipt *found = low ? verify->order[low - 1] : NULL;
    if (!found || found->log_hash != place->log_hash || found->group != place->group ||
        found->seq != place->seq || place->first - found->first >= found->rows)
        return NULL;
    return found;
}

/* ---- rows ---- */

/* The cells of the columns that the table has, of a batch of it or of the definition's. */
static struct span put_row(struct verify *verify, const struct verify_table *table,
                           const struct arrow_batch *batch, bool is_ours, int64_t row)
{
    buf_clear(&verify->cells);
    for (uint32_t i = 0; i < table->column_count; i++) {
        uint32_t at = is_ours ? table->sources[i] : i;
        verify_put_cell(&verify->cells, &batch->schema->fields[at], &batch->columns[at], row);
    }
    return span_of(verify->cells.data, verify->cells.length);
}

static uint32_t find_column(const struct arrow_schema *schema, const char *name)
{
    uint32_t at = 0;
    while (at < schema->field_count && strcmp(schema->fields[at].name, name) != 0)
        at++;
    return at;
}

/* Where a row came from; false: not from a log of ours. */
static bool read_position(const struct verify_table *table, const struct arrow_batch *batch,
                          int64_t row, struct receipt *out)
{
    const struct arrow_array *columns = batch->columns + table->column_count;
    for (int i = 0; i < VERIFY_POSITION_COUNT; i++)
        if (!arrow_is_valid(&columns[i], row))
            return false;
    const int32_t *ends = columns[VERIFY_LOG].offsets;
    const char *text = (const char *)columns[VERIFY_LOG].values + ends[row];
    int64_t group = ((const int64_t *)columns[VERIFY_GROUP].values)[row];
    int64_t index = ((const int64_t *)columns[VERIFY_INDEX].values)[row];
    if (group < 0 || group > UINT32_MAX || index < 0 || index > UINT32_MAX)
        return false;
    *out = (struct receipt){.log_hash = hash64(text, (size_t)(ends[row + 1] - ends[row])),
                            .group = (uint32_t)group,
                            .seq = (uint64_t)((const int64_t *)columns[VERIFY_SEQ].values)[row],
                            .first = (uint32_t)index};
    return true;
}

static enum status note_rows(void *context, struct verify_place first,
                             const struct arrow_batch *batch, const uint8_t *is_deleted,
                             struct error *err)
{
    struct verify *verify = context;
    const struct verify_table *table = &verify->tables[first.table];
    uint32_t received = find_column(batch->schema, "_sluice_received");
    for (int64_t i = 0; i < batch->length; i++) {
        struct receipt place;
        if (is_deleted && arrow_bit(is_deleted, i))
            continue;
        const struct receipt *receipt =
            read_position(table, batch, i, &place) ? find_receipt(verify, &place) : NULL;
        if (!receipt) {
            verify->foreign++;
            continue;
        }
        struct row_state *state = &verify->rows[receipt->slot + (place.first - receipt->first)];
        struct span cells = put_row(verify, table, batch, false, i);
        state->hash = hash128(cells.data, cells.length);
        state->place = first;
        state->place.row = (uint32_t)i;
        state->count++;
        if (received < batch->schema->field_count)
            state->received_us = ((const int64_t *)batch->columns[received].values)[i];
    }
    return buf_status(&verify->cells, "a row", err);
}

/* ---- comparing ---- */

struct naming {
    struct verify *verify;
    const struct arrow_batch *ours;
    int64_t our_row;
    const char *column;
};

static enum status name_column(void *context, struct verify_place first,
                               const struct arrow_batch *batch, const uint8_t *is_deleted,
                               struct error *err)
{
    struct naming *naming = context;
    const struct verify_table *table = &naming->verify->tables[first.table];
    (void)is_deleted;
    (void)err;
    for (uint32_t i = 0; i < table->column_count && !naming->column; i++) {
        uint32_t at = table->sources[i];
        struct buf theirs = {0}, ours = {0};
        verify_put_cell(&theirs, &batch->schema->fields[i], &batch->columns[i], first.row);
        verify_put_cell(&ours, &naming->ours->schema->fields[at], &naming->ours->columns[at],
                        naming->our_row);
        if (!span_equal(span_of(theirs.data, theirs.length), span_of(ours.data, ours.length)))
            naming->column = batch->schema->fields[i].name;
        buf_deinit(&theirs);
        buf_deinit(&ours);
    }
    return STATUS_OK;
}

/* The decoder's definitions are copies. */
static bool is_same(const struct publish_table *a, const struct publish_table *b)
{
    return strcmp(a->ns, b->ns) == 0 && strcmp(a->name, b->name) == 0;
}

static void note_different(struct verify *verify, const struct publish_table *definition,
                           const struct receipt *receipt, uint32_t row,
                           const struct row_state *state, const struct arrow_batch *ours)
{
    struct error err;
    const struct verify_table *table = &verify->tables[state->place.table];
    struct naming naming = {.verify = verify, .ours = ours, .our_row = row};
    verify->different++;
    if (!is_same(table->definition, definition))
        naming.column = "it stands in another table";
    else if (verify->named_count < NAMED_MAX)
        (void)!verify_group_read(&verify->stack, table, state->place, name_column, &naming, &err);
    name_difference(verify, "request %llu: row %u of entry %llu in %s.%s is not what was sent: %s",
                    (unsigned long long)verify->request->index, receipt->first + row,
                    (unsigned long long)receipt->seq, table->definition->ns,
                    table->definition->name, naming.column ? naming.column : "a column");
}

static const struct verify_table *find_table(const struct verify *verify,
                                             const struct publish_table *definition)
{
    for (uint32_t i = 0; i < verify->table_count; i++)
        if (is_same(verify->tables[i].definition, definition))
            return &verify->tables[i];
    return NULL;
}

/* Rows that were sent and that no receipt stands for. */
static void note_without_receipt(struct verify *verify, const struct publish_table *definition,
                                 int64_t rows)
{
    verify->different += (uint64_t)rows;
    verify->lacks_receipts = true;
    name_difference(verify, "request %llu: no receipt for %lld rows of %s.%s",
                    (unsigned long long)verify->request->index, (long long)rows, definition->ns,
                    definition->name);
}

/* The batch of a table is what the next receipt stands for; a table without rows has neither. */
static enum status compare_batch(void *context, const struct publish_table *definition,
                                 const struct arrow_batch *batch, struct error *err)
{
    struct verify *verify = context;
    const struct request *request = verify->request;
    const struct verify_table *table = find_table(verify, definition);
    if (verify->receipts_used == request->receipt_count) {
        note_without_receipt(verify, definition, batch->length);
        return STATUS_OK;
    }
    const struct receipt *receipt = (const struct receipt *)(const void *)verify->receipts.data +
                                    request->first_receipt + verify->receipts_used++;
    if ((int64_t)receipt->rows != batch->length || !table) {
        name_difference(verify, "request %llu: a receipt of %u rows for %lld in %s.%s",
                        (unsigned long long)request->index, receipt->rows, (long long)batch->length,
                        definition->ns, definition->name);
        verify->different += receipt->rows;
        return STATUS_OK;
    }
    for (uint32_t i = 0; i < receipt->rows; i++) {
        const struct row_state *state = &verify->rows[receipt->slot + i];
        if (state->count == 0)
            continue;
        struct span cells = put_row(verify, table, batch, true, i);
        if (is_same(verify->tables[state->place.table].definition, definition) &&
            hash128_equal(state->hash, hash128(cells.data, cells.length)))
            verify->found++;
        else
            note_different(verify, definition, receipt, i, state, batch);
    }
    return buf_status(&verify->cells, "a row", err);
}

static void count_rows(struct verify *verify, const struct receipt *receipt,
                       int64_t *inout_received_us, bool *inout_is_known)
{
    for (uint32_t i = 0; i < receipt->rows; i++) {
        const struct row_state *state = &verify->rows[receipt->slot + i];
        if (state->count && !*inout_is_known) {
            *inout_received_us = state->received_us;
            *inout_is_known = true;
        }
        if (state->count == 1)
            continue;
        verify->missing += state->count == 0;
        verify->repeated += state->count > 1;
        name_difference(verify, "request %llu: row %u of entry %llu in group %u stands %u times",
                        (unsigned long long)verify->request->index, receipt->first + i,
                        (unsigned long long)receipt->seq, receipt->group, state->count);
    }
}

static enum status compare_request(struct verify *verify, const struct request *request,
                                   struct buf *body, struct error *err)
{
    const struct receipt *receipts = (const void *)verify->receipts.data;
    int64_t received_us = 0;
    uint64_t rejected;
    bool is_known = false;
    verify->request = request;
    verify->receipts_used = 0;
    verify->lacks_receipts = false;
    for (size_t i = 0; i < request->receipt_count; i++)
        count_rows(verify, &receipts[request->first_receipt + i], &received_us, &is_known);
    /* When it was received is not known where no row stands; then rows are only counted. */
    buf_clear(body);
    gen_body(verify->profile, verify->seed, request->index, request->items, verify->base_ns, body);
    TRY(buf_status(body, "a request", err));
    TRY(ingest_decode(gen_profile_path(verify->profile) + strlen("/v1/"),
                      span_of(body->data, body->length), received_us, &rejected, compare_batch,
                      verify, err));
    verify->without_receipt += verify->lacks_receipts && request->receipt_count == 0;
    if (verify->receipts_used != request->receipt_count)
        name_difference(verify, "request %llu: more receipts than it has tables",
                        (unsigned long long)request->index);
    return STATUS_OK;
}

/* ---- all of it ---- */

static enum status run(struct verify *verify, const char *path, struct error *err)
{
    size_t definition_count;
    struct buf body = {0};
    const struct publish_table *definitions = ingest_tables(&definition_count);
    enum status status = STATUS_OK;
    TRY(read_receipts(verify, path, err));
    TRY(index_receipts(verify, err));
    CHECK(definition_count <= TABLES_MAX);
    for (size_t i = 0; i < definition_count; i++) {
        if (verify_table_open(&verify->stack, &definitions[i], &verify->tables[i], err) !=
            STATUS_OK)
            TRY(note_unchecked(verify, &definitions[i], err));
        verify->table_count++;
    }
    for (uint32_t i = 0; i < verify->table_count; i++)
        if (verify->tables[i].table)
            TRY(verify_table_scan(&verify->stack, &verify->tables[i], i, note_rows, note_unchecked,
                                  verify, err));
    const struct request *requests = (const void *)verify->requests.data;
    for (size_t i = 0; i < verify->requests.length / sizeof *requests && status == STATUS_OK; i++)
        status = compare_request(verify, &requests[i], &body, err);
    buf_deinit(&body);
    return status;
}

static void print_texts(struct json_writer *writer, const char *key, const struct buf *texts)
{
    const char *at = (const char *)texts->data, *end = at ? at + texts->length : at;
    json_write_key(writer, key);
    json_write_array_begin(writer);
    for (; at < end; at += strlen(at) + 1)
        json_write_text(writer, at);
    json_write_array_end(writer);
}

static void put_texts(struct buf *out, const struct buf *texts)
{
    const char *at = (const char *)texts->data, *end = at ? at + texts->length : at;
    for (; at < end; at += strlen(at) + 1)
        buf_format(out, "%s\n", at);
}

static void print_result(const struct verify *verify, bool as_json)
{
    struct buf out = {0};
    struct json_writer writer;
    const struct {
        const char *name;
        uint64_t value;
    } counts[] = {{"requests", verify->requests.length / sizeof(struct request)},
                  {"requests_without_receipt", verify->without_receipt},
                  {"rows", verify->row_count},
                  {"equal", verify->found},
                  {"missing", verify->missing},
                  {"repeated", verify->repeated},
                  {"different", verify->different},
                  {"other_rows", verify->foreign}};
    json_writer_init(&writer, &out);
    json_write_object_begin(&writer);
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        json_write_key(&writer, counts[i].name);
        json_write_u64(&writer, counts[i].value);
    }
    print_texts(&writer, "differences", &verify->named);
    print_texts(&writer, "unchecked", &verify->unchecked);
    json_write_object_end(&writer);
    buf_put_text(&out, "\n");
    if (!as_json) {
        buf_clear(&out);
        buf_format(&out,
                   "%llu requests, %llu rows: %llu equal, %llu missing, %llu repeated, %llu "
                   "different; %llu other rows in the tables\n",
                   (unsigned long long)counts[0].value, (unsigned long long)verify->row_count,
                   (unsigned long long)verify->found, (unsigned long long)verify->missing,
                   (unsigned long long)verify->repeated, (unsigned long long)verify->different,
                   (unsigned long long)verify->foreign);
        put_texts(&out, &verify->named);
        put_texts(&out, &verify->unchecked);
    }
    cmd_print(&out);
}

int gen_verify(struct invocation *invocation, const char *receipts_path, bool as_json)
{
    struct error err;
    struct verify verify = {.named_count = 0};
    enum status status = cmd_lake_open(invocation, &verify.stack, &err);
    if (status == STATUS_OK)
        status = run(&verify, receipts_path, &err);
    if (status == STATUS_OK)
        print_result(&verify, as_json);
    for (uint32_t i = 0; i < verify.table_count; i++)
        verify_table_close(&verify.tables[i]);
    stack_close(&verify.stack);
    buf_deinit(&verify.receipts);
    buf_deinit(&verify.requests);
    buf_deinit(&verify.cells);
    buf_deinit(&verify.named);
    buf_deinit(&verify.unchecked);
    mem_free(verify.order);
    mem_free(verify.rows);
    if (status != STATUS_OK)
        return cmd_fail(&err);
    if (verify.worst != STATUS_OK)
        return status_exit_code(verify.worst);
    return verify.named_count ? 1 : 0;
}
