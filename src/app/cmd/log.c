/* SPDX-License-Identifier: Apache-2.0
 *
 * sluice log ls | cat | repair | fork | adopt, and the way to those in files of their own
 */
#include "app/cmd/cmd_internal.h"
#include "format/json/json.h"

static enum status open_log(struct invocation *invocation, bool is_read_only, struct wal **out_wal,
                            struct error *err)
{
    char dir[PATH_BYTES_MAX];
    TRY(path_join(dir, invocation->settings.data_dir, "log", err));
    struct wal_options options = wal_options_default(dir);
    options.is_read_only = is_read_only;
    options.segment_bytes = invocation->settings.log_segment_bytes;
    options.budget_bytes = invocation->settings.log_budget_bytes;
    return wal_open(invocation->env, &options, out_wal, err);
}

/* L23: what no later unit proves is not shown, and need not be lost. */
static void say_unproven(const struct wal *wal)
{
    uint64_t records = wal_recovery_report(wal).records_unproven;
    if (records)
        fprintf(stderr,
                "sluice: behind these stand %llu more records; a server that runs shows them "
                "soon, and if\nnone does the next one keeps what it finds whole\n",
                (unsigned long long)records);
}

/* Opens the log to look at it while a server may be writing: files that move during the look, and
 * damage that is only an entry which is not whole yet, are gone at another look. */
static enum status open_to_look(struct invocation *invocation, struct wal **out_wal,
                                struct error *err)
{
    enum { LOOKS = 5, BETWEEN_MS = 100 };
    struct wal_damage damage;
    for (int i = 1;; i++) {
        struct wal *wal = NULL;
        enum status status = open_log(invocation, true, &wal, err);
        bool is_doubtful =
            status == STATUS_NOT_FOUND || (status == STATUS_OK && wal_damage_at(wal, 0, &damage));
        if (!is_doubtful || i == LOOKS) {
            if (status == STATUS_OK) {
                *out_wal = wal;
                say_unproven(wal);
            }
            return status;
        }
        wal_close(wal);
        env_sleep_ms(invocation->env, BETWEEN_MS);
    }
}

static void list_segments(struct wal *wal, bool as_json)
{
    struct wal_segment_info info;
    for (size_t i = 0; wal_segment_at(wal, i, &info); i++) {
        if (as_json)
            printf("{\"id\":%llu,\"state\":\"%s\",\"path\":\"%s\",\"bytes\":%llu,"
                   "\"allocated_bytes\":%llu,\"entries\":%llu,\"is_cut\":%s,"
                   "\"is_compacted\":%s}\n",
                   (unsigned long long)info.id, info.state, info.path,
                   (unsigned long long)info.bytes, (unsigned long long)info.allocated_bytes,
                   (unsigned long long)info.entries, info.is_cut ? "true" : "false",
                   info.is_compacted ? "true" : "false");
        else
            printf("%-10s %12llu bytes %8llu entries  %s%s%s\n", info.state,
                   (unsigned long long)info.bytes, (unsigned long long)info.entries, info.path,
                   info.is_cut ? "  (a torn tail was cut)" : "",
                   info.is_compacted ? "  (compacted)" : "");
    }
}

static const char *type_name(enum wal_entry_type type)
{
    static const char *const names[] = {"?",    "DATA",  "VOID",      "CONFIG",
                                        "NOOP", "TABLE", "PRODUCERS", "CURSOR"};
    return (unsigned)type < COUNT_OF(names) ? names[type] : "?";
}

static enum status cat_group(struct wal *wal, uint32_t group, bool as_json, struct error *err)
{
    struct wal_scan *scan = NULL;
    struct wal_view view;
    enum status status;
    uint64_t after = wal_reclaimed_behind(wal, group, 0);
    TRY(wal_scan_open(wal, group, 0, after, &scan, err));
    for (;;) {
        status = wal_scan_next(scan, &view, err);
        if (status == STATUS_RECLAIMED) { /* a stuck table has more */
            uint64_t behind = wal_reclaimed_behind(wal, group, after);
            after = behind > after ? behind : after + 1; /* or of one that left meanwhile */
            status = wal_scan_seek(scan, after, err);
            if (status != STATUS_OK)
                break;
            continue;
        }
        if (status != STATUS_OK)
            break;
        after = view.seq;
        char table[WAL_TABLE_NAME_MAX + 1] = "";
        if (view.table_id && !wal_table_name(wal, view.table_id, table))
            table[0] = '\0';
        printf(
            as_json
                ? "{\"group\":%u,\"seq\":%llu,\"term\":%llu,\"type\":\"%s\",\"table\":\"%s\","
                  "\"rows\":%u,\"bytes\":%zu,\"contributions\":%u,\"chain\":\"%016llx\"}\n"
                : "%u/%-8llu term %-4llu %-9s %-28s %8u rows %10zu bytes %5u requests  %016llx\n",
            view.group, (unsigned long long)view.seq, (unsigned long long)view.term,
            type_name(view.type), table, view.rows, view.payload.length, view.contribution_count,
            (unsigned long long)view.chain);
    }
    wal_scan_close(scan);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static int look(struct invocation *invocation, bool is_list)
{
    struct error err;
    struct wal *wal = NULL;
    bool as_json = cmd_take_flag(invocation, "--json");
    if (!cmd_no_more_words(invocation, 0))
        return 2;
    enum status status = open_to_look(invocation, &wal, &err);
    if (status == STATUS_OK && is_list)
        list_segments(wal, as_json);
    for (uint32_t g = 0; status == STATUS_OK && !is_list && g < wal_group_count(wal); g++)
        status = cat_group(wal, g, as_json, &err);
    wal_close(wal);
    return status == STATUS_OK ? 0 : cmd_fail(&err);
}

/* A start reads what it needs; what a bit has flipped in since then shows only to who reads it all.
 */
static int repair(struct invocation *invocation)
{
    struct error err;
    struct wal *wal = NULL;
    struct wal_damage damage;
    uint64_t voided = 0, entries = 0;
    size_t count = 0;
    bool is_confirmed = cmd_take_flag(invocation, "--confirm");
    if (!cmd_no_more_words(invocation, 0))
        return 2;
    enum status status = cmd_find_log(invocation, &err);
    if (status == STATUS_OK)
        status = is_confirmed ? open_log(invocation, false, &wal, &err)
                              : open_to_look(invocation, &wal, &err);
    if (status == STATUS_BUSY)
        status = cmd_explain_busy(invocation, &err);
    if (status == STATUS_OK)
        status = wal_verify(wal, &entries, &err);
    for (; status == STATUS_OK && wal_damage_at(wal, count, &damage); count++)
        printf("group %u, entries %llu to %llu: %s\n", damage.group,
               (unsigned long long)damage.seq_first, (unsigned long long)damage.seq_last,
               damage.where);
    if (status == STATUS_OK && is_confirmed && count)
        status = wal_repair(wal, &voided, &err);
    wal_close(wal);
    if (status != STATUS_OK)
        return cmd_fail(&err);
    if (count == 0)
        printf("nothing was changed: all %llu entries are whole\n", (unsigned long long)entries);
    else if (is_confirmed)
        printf("%llu entries are void now\n", (unsigned long long)voided);
    else
        printf("nothing was changed; --confirm gives the entries above up\n");
    return 0;
}

static int fork_log(struct invocation *invocation)
{
    struct error err;
    struct stack stack = {0};
    struct log_id id;
    char text[LOG_ID_TEXT_BYTES];
    if (!cmd_take_flag(invocation, "--confirm"))
        return cmd_usage("log fork gives this log a new identity; repeat with --confirm");
    if (!cmd_no_more_words(invocation, 0))
        return 2;
    enum status status = cmd_stack_open(invocation, &stack, &err);
    if (status != STATUS_OK)
        return cmd_fail(&err);
    status = publisher_fork(stack.publisher, &id, &err);
    stack_close(&stack);
    if (status != STATUS_OK)
        return cmd_fail(&err);
    log_id_to_text(id, text);
    printf("this log goes on as %s\n", text);
    return 0;
}

static void tell_adoption(void *context, const struct publish_adoption *adoption)
{
    bool *is_confirmed = context;
    if (adoption->entries)
        printf("%s: %llu rows in %llu entries %s under the new id\n", adoption->table,
               (unsigned long long)adoption->rows, (unsigned long long)adoption->entries,
               *is_confirmed ? "go on" : "would go on");
}

static int adopt(struct invocation *invocation)
{
    struct error err;
    struct stack stack = {0};
    struct log_id id;
    char text[LOG_ID_TEXT_BYTES];
    bool is_confirmed = cmd_take_flag(invocation, "--confirm");
    bool is_alone = cmd_take_flag(invocation, "--alone");
    if (!cmd_no_more_words(invocation, 0))
        return 2;
    enum status status = cmd_stack_open(invocation, &stack, &err);
    if (status != STATUS_OK)
        return cmd_fail(&err);
    status = publisher_adopt(stack.publisher, is_confirmed, is_alone, tell_adoption, &is_confirmed,
                             &id, &err);
    stack_close(&stack);
    if (status != STATUS_OK)
        return cmd_fail(&err);
    if (is_confirmed)
        log_id_to_text(id, text);
    printf(is_confirmed ? "this log goes on as %s\n"
                        : "%snothing was changed; --confirm gives this log a new id\n",
           is_confirmed ? text : "");
    return 0;
}

int cmd_log(struct invocation *invocation)
{
    const char *what = invocation->argc > 0 ? invocation->argv[0] : "";
    invocation->argc -= invocation->argc > 0;
    invocation->argv++;
    if (strcmp(what, "ls") == 0)
        return look(invocation, true);
    if (strcmp(what, "cat") == 0)
        return look(invocation, false);
    if (strcmp(what, "repair") == 0)
        return repair(invocation);
    if (strcmp(what, "fork") == 0)
        return fork_log(invocation);
    if (strcmp(what, "adopt") == 0)
        return adopt(invocation);
    if (strcmp(what, "recover") == 0)
        return cmd_log_recover(invocation);
    if (strcmp(what, "trim") == 0)
        return cmd_log_trim(invocation);
    return cmd_usage("log ls, log cat, log repair, log trim, log fork, log recover or log adopt");
}
