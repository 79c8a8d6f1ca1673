/* SPDX-License-Identifier: Apache-2.0
 *
 * sluice clear-halt, tables, publish: decisions over lanes. With a server running they go through
 * its API; otherwise this process opens the data directory itself.
 */
#include "app/cmd/cmd_internal.h"

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

static int resolve(struct invocation *invocation, bool is_rebind)
{
    struct error err;
    struct buf body = {0};
    char decision[64], path[512];
    int code = 0;
    if (!take_decision(invocation, decision))
        return 2;
    if (invocation->argc != 1)
        return cmd_usage("a table is needed, such as otel.logs");
    const char *table = invocation->argv[0];
    snprintf(path, sizeof path, "/v1/lanes/%s?table=%s&decision=%s",
             is_rebind ? "rebind" : "clear-halt", table, decision);
    enum status status = cmd_ask_server(invocation, "POST", path, &body, &code, &err);
    if (status == STATUS_NOT_FOUND) {
        buf_deinit(&body);
        return resolve_offline(invocation, is_rebind, table, decision);
    }
    if (status != STATUS_OK) {
        buf_deinit(&body);
        return cmd_fail(&err);
    }
    fwrite(body.data, 1, body.length, code == 200 ? stdout : stderr);
    buf_deinit(&body);
    return code == 200 ? 0 : status_exit_code(STATUS_HALTED);
}

int cmd_clear_halt(struct invocation *invocation)
{
    return resolve(invocation, false);
}

/* docs/tables.md */
static void print_columns(void)
{
    struct buf text = {0};
    size_t count;
    const struct publish_table *tables = ingest_tables(&count);
    publish_print_columns(tables, count, &text);
    cmd_print(&text);
}

static int list(struct invocation *invocation)
{
    struct error err;
    struct stack stack = {0};
    struct arena arena;
    const char **names = NULL;
    size_t count = 0;
    if (cmd_stack_open(invocation, &stack, &err) != STATUS_OK)
        return cmd_fail(&err);
    arena_init(&arena, 0);
    enum status status = catalog_table_list(stack.catalog, "otel", &arena, &names, &count, &err);
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        printf("otel.%s\n", names[i]);
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
    arena_init(&arena, 0);
    status = catalog_repair_table(stack.catalog, (struct catalog_ident){ns, dot + 1}, is_confirmed,
                                  &arena, &repair, &err);
    if (status == STATUS_OK)
        printf("%s\n%s %s\n%s", repair.damage, is_confirmed ? "went back to" : "would go back to",
               repair.previous,
               is_confirmed ? "" : "nothing was changed; --confirm gives up what came after it\n");
    arena_deinit(&arena);
    stack_close(&stack);
    return status == STATUS_OK ? 0 : cmd_fail(&err);
}

int cmd_tables(struct invocation *invocation)
{
    const char *what = invocation->argc > 0 ? invocation->argv[0] : "";
    invocation->argc -= invocation->argc > 0;
    invocation->argv++;
    if (strcmp(what, "columns") == 0 && cmd_no_more_words(invocation, 0)) {
        print_columns();
        return 0;
    }
    if (strcmp(what, "list") == 0)
        return cmd_no_more_words(invocation, 0) ? list(invocation) : 2;
    if (strcmp(what, "rebind") == 0)
        return resolve(invocation, true);
    if (strcmp(what, "repair") == 0)
        return repair(invocation);
    return cmd_usage(
        "tables list, columns, repair TABLE [--confirm] or rebind TABLE --confirm --accept");
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
        stack_close(&stack);
    }
    return status == STATUS_OK ? 0 : cmd_fail(&err);
}
