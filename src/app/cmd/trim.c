/* SPDX-License-Identifier: Apache-2.0
 *
 * sluice log trim: through the server that runs, or on the data directory itself.
 */
#include "app/cmd/cmd_internal.h"

static void tell(void *context, const struct publish_trim *trim)
{
    UNUSED(context);
    printf("%s: %llu rows in %llu entries are given up\n", trim->table,
           (unsigned long long)trim->rows, (unsigned long long)trim->entries);
}

static int trim_offline(struct invocation *invocation, const char *table, uint64_t before)
{
    struct error err;
    struct stack stack = {0};
    enum status status = cmd_stack_open(invocation, &stack, &err);
    if (status == STATUS_OK) {
        status = publisher_trim(stack.publisher, table, before, tell, NULL, &err);
        stack_close(&stack);
    }
    return status == STATUS_OK ? 0 : cmd_fail(&err);
}

int cmd_log_trim(struct invocation *invocation)
{
    struct error err;
    struct buf body = {0};
    char path[WAL_TABLE_NAME_MAX + 96];
    int code = 0;
    uint64_t before = 0;
    bool is_forced = cmd_take_flag(invocation, "--force");
    const char *table = cmd_take_option(invocation, "--table");
    if (!cmd_take_number(invocation, "--before", &before))
        return 2;
    if (!table && !before)
        return cmd_usage("--table NAME or --before SEQ is needed");
    if (!is_forced)
        return cmd_usage("this gives up rows that are in no table; repeat with --force");
    if (!cmd_no_more_words(invocation, 0))
        return 2;
    if (table && (strlen(table) > WAL_TABLE_NAME_MAX || strpbrk(table, "%&#? +")))
        return cmd_usage("--table %s: no table has that name", table);
    snprintf(path, sizeof path, "/v1/log/trim?before=%llu%s%s", (unsigned long long)before,
             table ? "&table=" : "", table ? table : "");
    enum status status = cmd_ask_own_server(invocation, "POST", path, &body, &code, &err);
    if (status == STATUS_NOT_FOUND) {
        buf_deinit(&body);
        return trim_offline(invocation, table, before);
    }
    if (status == STATUS_OK)
        fprintf(code == 200 ? stdout : stderr, "%s%.*s",
                code == 200 ? "" : "sluice: ", (int)body.length,
                body.length ? (const char *)body.data : "");
    buf_deinit(&body);
    if (status != STATUS_OK)
        return cmd_fail(&err);
    return cmd_exit_code_of(code);
}
