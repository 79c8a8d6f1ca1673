/* SPDX-License-Identifier: Apache-2.0
 *
 * sluice clear-halt, tables, publish: decisions over lanes. With a server running they go through
 * its API; otherwise this process opens the data directory itself.
 */
#include "app/cmd/cmd_internal.h"
#include "format/json/json.h"

/* --accept, --republish or --from G=S, with --confirm; false and a message otherwise. */
static bool take_decision(struct invocation *invocation, char out_decision[64])
{
    bool is_confirmed = cmd_take_flag(invocation, "--confirm");
    bool is_accept = cmd_take_flag(invocation, "--accept");
    bool is_republish = cmd_take_flag(invocation, "--republish");
    const char *from = cmd_take_option(invocation, "--from");
    if (is_accept + is_republish + (from != NULL) != 1) {
        cmd_usage("one of --accept, --republish and --from GROUP=SEQ is needed");
        return false;
    }
    if (!is_confirmed) {
        cmd_usage("this decides which rows the table keeps; repeat with --confirm");
        return false;
    }
    snprintf(out_decision, 64, "%s%s",
             is_accept      ? "accept"
             : is_republish ? "republish"
                            : "from=",
             from ? from : "");
    return true;
}

static int resolve_offline(struct invocation *invocation, bool is_rebind, const char *table,
                           const char *decision_text)
{
    struct error err;
    struct stack stack = {0};
    enum publish_decision decision;
    uint32_t group;
    uint64_t seq;
    enum status status = decision_parse(decision_text, &decision, &group, &seq, &err);
    if (status == STATUS_OK)
        status = cmd_stack_open(invocation, &stack, &err);
    if (status == STATUS_OK) {
        status = is_rebind
                     ? publisher_rebind(stack.publisher, table, decision, &err)
                     : publisher_clear_halt(stack.publisher, table, decision, group, seq, &err);
        stack_close(&stack);
    }
    if (status != STATUS_OK)
        return cmd_fail(&err);
    printf("%s goes on\n", table);
    return 0;
}

int cmd_exit_code_of(int http_code)
{
    switch (http_code) {
    case 200:
        return 0;
    case 400:
        return status_exit_code(STATUS_USAGE);
    case 404:
        return status_exit_code(STATUS_NOT_FOUND);
    case 410:
        return status_exit_code(STATUS_RECLAIMED);
    case 500:
        return status_exit_code(STATUS_CORRUPT);
    case 501:
        return status_exit_code(STATUS_UNSUPPORTED);
    case 503:
    case 504:
        return status_exit_code(STATUS_BUSY);
    default:
        return status_exit_code(STATUS_HALTED);
    }
}

static enum status ask_server(struct invocation *invocation, bool is_rebind, const char *table,
                              const char *decision, struct buf *out_body, int *out_code,
                              struct error *err)
{
    struct buf path = {0};
    buf_format(&path, "/v1/lanes/%s?table=", is_rebind ? "rebind" : "clear-halt");
    http_put_encoded(&path, table);
    buf_format(&path, "&decision=%s", decision);
    buf_put_byte(&path, '\0');
    enum status status = buf_status(&path, "request", err);
    if (status == STATUS_OK)
        status = cmd_ask_own_server(invocation, "POST", (const char *)path.data, out_body, out_code,
                                    err);
    buf_deinit(&path);
    return status;
}

static int resolve(struct invocation *invocation, bool is_rebind)
{
    struct error err;
    struct buf body = {0};
    char decision[64];
    int code = 0;
    enum publish_decision parsed;
    uint32_t group;
    uint64_t seq;
    if (!take_decision(invocation, decision))
        return 2;
    if (invocation->argc != 1)
        return cmd_usage("a table is needed, such as otel.logs");
    const char *table = invocation->argv[0];
    if (decision_parse(decision, &parsed, &group, &seq, &err) != STATUS_OK)
        return cmd_fail(&err);
    enum status status = ask_server(invocation, is_rebind, table, decision, &body, &code, &err);
    if (status == STATUS_NOT_FOUND) {
        buf_deinit(&body);
        return resolve_offline(invocation, is_rebind, table, decision);
    }
    if (status != STATUS_OK) {
        buf_deinit(&body);
        return cmd_fail(&err);
    }
    fprintf(code == 200 ? stdout : stderr, "%s%.*s",
            code == 200 ? "" : "sluice: ", (int)body.length,
            body.length ? (const char *)body.data : "");
    buf_deinit(&body);
    return cmd_exit_code_of(code);
}

int cmd_clear_halt(struct invocation *invocation)
{
    return resolve(invocation, false);
}

/* docs/tables.md, or of it the one table without the head of the page. */
static int columns(const char *wanted, bool as_json)
{
    enum { TABLES_MAX = 32 };
    char names[TABLES_MAX][WAL_TABLE_NAME_MAX + 1];
    struct buf text = {0};
    struct error err;
    size_t count;
    const struct publish_table *tables = ingest_tables(&count);
    if (!wanted) {
        (as_json ? publish_print_columns_json : publish_print_columns)(tables, count, &text);
        cmd_print(&text);
        return 0;
    }
    struct text_nearest nearest = text_nearest_to(wanted);
    CHECK(count <= TABLES_MAX);
    for (size_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "%s.%s", tables[i].ns, tables[i].name);
        text_nearest_offer(&nearest, names[i]);
        if (strcmp(names[i], wanted) != 0)
            continue;
        if (as_json) {
            publish_print_columns_json(&tables[i], 1, &text);
            cmd_print(&text);
            return 0;
        }
        publish_print_columns(&tables[i], 1, &text);
        buf_put_byte(&text, '\0');
        const char *begin = text.failed ? NULL : strstr((const char *)text.data, "## ");
        fputs(begin ? begin : "", stdout);
        buf_deinit(&text);
        return 0;
    }
    error_set(&err, STATUS_NOT_FOUND, "no table %.100s; the nearest is %s", wanted, nearest.name);
    return cmd_fail(&err);
}

static void print_names(const char **names, size_t count, bool as_json)
{
    struct buf text = {0};
    struct json_writer json;
    json_writer_init(&json, &text);
    if (as_json)
        json_write_array_begin(&json);
    for (size_t i = 0; i < count; i++) {
        char name[WAL_TABLE_NAME_MAX + 1];
        snprintf(name, sizeof name, "otel.%s", names[i]);
        if (as_json)
            json_write_text(&json, name);
        else
            buf_format(&text, "%s\n", name);
    }
    if (as_json) {
        json_write_array_end(&json);
        buf_put_byte(&text, '\n');
    }
    cmd_print(&text);
}

static int list(struct invocation *invocation)
{
    struct error err;
    struct stack stack = {0};
    struct arena arena;
    const char **names = NULL;
    size_t count = 0;
    bool as_json = cmd_take_flag(invocation, "--json");
    if (!cmd_no_more_words(invocation, 0))
        return 2;
    if (cmd_lake_open(invocation, &stack, &err) != STATUS_OK)
        return cmd_fail(&err);
    arena_init(&arena, 0);
    enum status status = catalog_table_list(stack.catalog, "otel", &arena, &names, &count, &err);
    if (status == STATUS_OK)
        print_names(names, count, as_json);
    arena_deinit(&arena);
    stack_close(&stack);
    return status == STATUS_OK ? 0 : cmd_fail(&err);
}

/* tables repair TABLE [--confirm]: back to the metadata before the one that cannot be read (E17).
 * The lane's halt is cleared by clear-halt afterwards, which also decides over the rows in between.
 */
static int repair(struct invocation *invocation)
{
    struct error err;
    struct stack stack = {0};
    struct arena arena;
    struct catalog_repair repair;
    char ns[WAL_TABLE_NAME_MAX + 1];
    bool is_confirmed = cmd_take_flag(invocation, "--confirm");
    const char *dot = invocation->argc == 1 ? strrchr(invocation->argv[0], '.') : NULL;
    if (!dot)
        return cmd_usage("a table is needed, such as otel.logs");
    snprintf(ns, sizeof ns, "%.*s", (int)(dot - invocation->argv[0]), invocation->argv[0]);
    enum status status = cmd_stack_open(invocation, &stack, &err);
    if (status != STATUS_OK)
        return cmd_fail(&err);
    if (!stack.catalog) {
        stack_close(&stack);
        return cmd_usage("this log is published from elsewhere (publish.from): repair its tables "
                         "where they are published");
    }
    arena_init(&arena, 0);
    status = catalog_repair_table(stack.catalog, (struct catalog_ident){ns, dot + 1}, is_confirmed,
                                  &arena, &repair, &err);
    if (status == STATUS_OK)
        printf("%s\n%s %s\n%s", repair.damage, is_confirmed ? "went back to" : "would go back to",
               repair.previous,
               is_confirmed ? "" : "nothing was changed; --confirm gives up what came after it\n");
    arena_deinit(&arena);
    stack_close(&stack);
    if (status == STATUS_NOT_FOUND)
        error_prefix(&err, "%s", invocation->argv[0]);
    if (status == STATUS_USAGE) { /* good metadata, which is what the caller wanted */
        printf("%s\n", err.message);
        return 0;
    }
    return status == STATUS_OK ? 0 : cmd_fail(&err);
}

int cmd_tables(struct invocation *invocation)
{
    const char *what = invocation->argc > 0 ? invocation->argv[0] : "";
    invocation->argc -= invocation->argc > 0;
    invocation->argv++;
    if (strcmp(what, "columns") == 0) {
        bool as_json = cmd_take_flag(invocation, "--json");
        return cmd_no_more_words(invocation, 1)
                   ? columns(invocation->argc ? invocation->argv[0] : NULL, as_json)
                   : 2;
    }
    if (strcmp(what, "list") == 0)
        return list(invocation);
    if (strcmp(what, "rebind") == 0)
        return resolve(invocation, true);
    if (strcmp(what, "repair") == 0)
        return repair(invocation);
    return cmd_usage("tables list, columns [TABLE], repair TABLE [--confirm] or rebind TABLE "
                     "--confirm --accept | --republish");
}

/* What a run of the publisher did to each table. */
static void print_published(struct publisher *publisher)
{
    struct publish_lane_info lane;
    for (size_t i = 0; publisher_lane_at(publisher, i, &lane); i++) {
        if (lane.remedy[0])
            printf("%-28s is halted, %llu rows are not published: %s; to resolve it: %s\n",
                   lane.table, (unsigned long long)lane.lag_rows, lane.reason, lane.remedy);
        else if (lane.commits_total)
            printf("%-28s %llu rows in %llu files, snapshot %lld\n", lane.table,
                   (unsigned long long)lane.rows_total, (unsigned long long)lane.files_total,
                   (long long)lane.snapshot_id);
        else if (lane.lag_rows)
            printf("%-28s %llu rows are not published: %s\n", lane.table,
                   (unsigned long long)lane.lag_rows, lane.reason);
        else
            printf("%-28s nothing to publish\n", lane.table);
    }
}

int cmd_publish(struct invocation *invocation)
{
    struct error err;
    struct stack stack = {0};
    cmd_take_flag(invocation, "--once");
    if (!cmd_no_more_words(invocation, 0))
        return 2;
    enum status status = cmd_stack_open(invocation, &stack, &err);
    if (status == STATUS_OK) {
        status = publisher_run_once(stack.publisher, &err);
        print_published(stack.publisher);
        stack_close(&stack);
    }
    return status == STATUS_OK ? 0 : cmd_fail(&err);
}
