/* SPDX-License-Identifier: Apache-2.0
 *
 * sluice log recover (L25, L35, L36).
 *
 * The log is put together in <data_dir>/log.recover and becomes <data_dir>/log by one rename, so
 * that a run that was interrupted leaves nothing behind that the next one does not begin anew. The
 * file `began` there is locked by the run, and keeps the incarnation that it took in the mirror's
 * head, so that the next run takes the same.
 */
#include "app/cmd/recover_internal.h"

static const char began_name[] = "began";

/* ---- the directories ---- */

static enum status empty_directory(struct env *env, const char *dir, bool with_began,
                                   struct error *err)
{
    static const char *const folders[] = {"active", "sealed", "committed", "spare", "state", ""};
    for (size_t f = 0; f < COUNT_OF(folders); f++) {
        struct arena arena;
        char folder[PATH_BYTES_MAX], path[PATH_BYTES_MAX], **names;
        size_t count = 0;
        struct env_stat stat;
        TRY(path_join(folder, dir, folders[f], err));
        if (env_path_stat(env, folder, &stat, err) == STATUS_NOT_FOUND)
            continue;
        arena_init(&arena, 0);
        enum status status = files_list(env, folder, &arena, &names, &count, err);
        for (size_t i = 0; status == STATUS_OK && i < count; i++) {
            bool is_kept = !folders[f][0] && !with_began && strcmp(names[i], began_name) == 0;
            status = is_kept ? STATUS_OK : path_join(path, folder, names[i], err);
            if (status == STATUS_OK && !is_kept)
                status = env_remove(env, path, err);
        }
        arena_deinit(&arena);
        TRY(status);
        if (folders[f][0])
            TRY(env_dir_remove(env, folder, err));
    }
    return STATUS_OK;
}

/* The log that is there: *out_is_done if it came out of this mirror before. */
static enum status check_target(struct recovery *recovery, bool *out_is_done, struct error *err)
{
    struct invocation *invocation = recovery->invocation;
    struct wal_options options = wal_options_default(recovery->target);
    struct wal *wal = NULL;
    struct wal_position end;
    struct env_stat stat;
    char text[LOG_ID_TEXT_BYTES];
    int pid;
    *out_is_done = false;
    enum status status = env_path_stat(invocation->env, recovery->target, &stat, err);
    if (status == STATUS_NOT_FOUND)
        return STATUS_OK;
    TRY(status);
    if (cmd_find_user(invocation, &pid))
        return error_set(err, STATUS_BUSY, "another sluice process is using %s",
                         invocation->settings.data_dir);
    options.is_read_only = true;
    status = wal_open(invocation->env, &options, &wal, err);
    if (status != STATUS_OK)
        return error_set(err, STATUS_EXISTS, "%.200s is there, and no whole log: put it aside",
                         recovery->target);
    log_id_to_text(wal_log_id(wal), text);
    bool is_same = log_id_equal(wal_log_id(wal), recovery->plan->head.log_id);
    if (!is_same)
        status = error_set(err, STATUS_IDENTITY, "%.200s is log %s, not the one of the mirror",
                           recovery->target, text);
    else if (!wal_recovered_to(wal, 0, &end))
        status = error_set(err, STATUS_EXISTS,
                           "%.200s is this log itself, and was never recovered: put it aside first",
                           recovery->target);
    else if (recovery->plan->incarnation > wal_incarnation(wal))
        status = error_set(err, STATUS_FENCED,
                           "%.200s is incarnation %llu of this log, and the mirror knows %llu: it "
                           "was recovered elsewhere; sluice log adopt",
                           recovery->target, (unsigned long long)wal_incarnation(wal),
                           (unsigned long long)recovery->plan->incarnation);
    else
        recovery_say_done(recovery, wal);
    wal_close(wal);
    *out_is_done = status == STATUS_OK;
    return status;
}

/* ---- the incarnation ---- */

static enum status began_read(struct recovery *recovery, struct env_file *file,
                              uint64_t *out_incarnation, struct error *err)
{
    char text[160] = "", id[64] = "", token[64] = "", want[LOG_ID_TEXT_BYTES];
    unsigned long long incarnation = 0;
    size_t got;
    TRY(env_read(file, 0, text, sizeof text - 1, &got, err));
    log_id_to_text(recovery->plan->head.log_id, want);
    bool is_ours = sscanf(text, "%63s %llu %63s", id, &incarnation, token) == 3 &&
                   strcmp(id, want) == 0 && strlen(token) == sizeof recovery->token - 1;
    *out_incarnation = is_ours ? incarnation : 0;
    if (is_ours)
        memcpy(recovery->token, token, sizeof recovery->token);
    return STATUS_OK;
}

static enum status began_write(struct recovery *recovery, struct env_file *file, struct error *err)
{
    char text[160], id[LOG_ID_TEXT_BYTES];
    log_id_to_text(recovery->plan->head.log_id, id);
    int length = snprintf(text, sizeof text, "%s %llu %s\n", id,
                          (unsigned long long)recovery->restore.incarnation, recovery->token);
    TRY(env_write(file, 0, text, (size_t)length, err)); /* the same, where a run was interrupted */
    return env_sync(file, err);
}

/* One above all that the mirror has seen, or that a recovery took; what an interrupted run took is
 * taken again. */
static enum status choose_incarnation(struct recovery *recovery, struct env_file *began,
                                      struct error *err)
{
    const struct mirror_plan *plan = recovery->plan;
    uint8_t random[(sizeof recovery->token - 1) / 2];
    uint64_t before, taken = plan->claimed > plan->incarnation ? plan->claimed : plan->incarnation;
    TRY(began_read(recovery, began, &before, err));
    bool is_ours = before && before >= plan->incarnation;
    recovery->restore.incarnation = is_ours ? before : taken + 1;
    recovery->incarnation_before = plan->incarnation;
    if (is_ours)
        return STATUS_OK;
    env_random(recovery->invocation->env, random, sizeof random);
    hex_encode(recovery->token, random, sizeof random);
    return STATUS_OK;
}

static bool is_same_list(const struct mirror_plan *a, const struct mirror_plan *b)
{
    bool is_same = a->range_count == b->range_count && a->state_count == b->state_count;
    for (size_t i = 0; is_same && i < a->range_count; i++)
        is_same = mirror_header_is_of(&a->ranges[i], &b->ranges[i]);
    for (size_t i = 0; is_same && i < a->state_count; i++)
        is_same = mirror_header_is_of(&a->states[i], &b->states[i]);
    return is_same;
}

/* From here on the old server confirms nothing. What it had confirmed since the list was taken
 * makes the fetched directory worthless. */
static enum status take_mirror(struct recovery *recovery, struct env_file *began,
                               bool *out_is_fetched, struct error *err)
{
    struct mirror_plan *now = NULL;
    struct env *env = recovery->invocation->env;
    struct log_id id = recovery->plan->head.log_id;
    uint64_t incarnation = recovery->restore.incarnation;
    TRY(began_write(recovery, began, err));
    TRY(env_dir_sync(env, recovery->scratch, err));
    enum status status =
        mirror_claim(recovery->store, recovery->plan, incarnation, recovery->token, err);
    if (status == STATUS_BUSY) /* the next run takes another */
        TRY(env_truncate(began, 0, err));
    TRY(status);
    TRY(mirror_head_raise(env, recovery->store, recovery->plan, incarnation, err));
    TRY(mirror_plan_create(recovery->store, &id, &now, err));
    if (now->incarnation > incarnation) {
        mirror_plan_destroy(now);
        return error_set(err, STATUS_BUSY, "another recovery of this log began meanwhile");
    }
    *out_is_fetched = is_same_list(recovery->plan, now);
    mirror_plan_destroy(*out_is_fetched ? now : recovery->plan);
    if (!*out_is_fetched)
        recovery->plan = now;
    return STATUS_OK;
}

/* ---- what tables say ---- */

static enum status add_known(struct recovery *recovery, const char *table, uint32_t group,
                             struct wal_position position, struct error *err)
{
    if (recovery->known_count == recovery->known_capacity) {
        size_t wider = recovery->known_capacity ? recovery->known_capacity * 2 : 16;
        struct wal_known_position *moved = mem_resize(recovery->known, wider * sizeof *moved);
        if (!moved)
            return error_set(err, STATUS_NO_MEMORY, "log recover: out of memory");
        recovery->known = moved;
        recovery->known_capacity = wider;
    }
    recovery->known[recovery->known_count++] =
        (struct wal_known_position){.table = table, .group = group, .position = position};
    return STATUS_OK;
}

static enum status ask_table(struct recovery *recovery, struct stack *lake, const char *name,
                             uint32_t group_count, struct error *err)
{
    enum { GROUPS_MAX = 64 };
    struct wal_position positions[GROUPS_MAX] = {0};
    struct log_id log = recovery->plan->head.log_id;
    uint64_t incarnation = 0;
    size_t length = strlen(name);
    char *ns = arena_alloc_zero(&recovery->arena, 2 * length + 2, 1);
    const char *dot = strrchr(name, '.');
    if (!ns)
        return error_set(err, STATUS_NO_MEMORY, "log recover: out of memory");
    if (!dot)
        return STATUS_OK;
    memcpy(ns, name, (size_t)(dot - name));
    char *copy = ns + length + 1;
    memcpy(copy, name, length);
    enum status status =
        publish_table_positions(lake->catalog, (struct catalog_ident){ns, copy + (dot - name) + 1},
                                log, group_count, positions, &incarnation, err);
    if (status == STATUS_NOT_FOUND)
        return STATUS_OK;
    if (status != STATUS_OK)
        return error_prefix(err, "%s", name);
    if (incarnation > recovery->restore.incarnation)
        return error_set(err, STATUS_FENCED,
                         "%s was taken over by incarnation %llu of this log, which the mirror does "
                         "not know: is it the right one?",
                         name, (unsigned long long)incarnation);
    for (uint32_t g = 0; g < group_count; g++)
        if (positions[g].seq)
            TRY(add_known(recovery, copy, g, positions[g], err));
    return STATUS_OK;
}

static enum status ask_tables(struct recovery *recovery, struct wal *wal, struct error *err)
{
    struct stack lake = {0};
    struct env_stat stat;
    char path[PATH_BYTES_MAX], name[2 * WAL_TABLE_NAME_MAX + 2];
    size_t count;
    const struct publish_table *tables = ingest_tables(&count);
    TRY(stack_catalog_path(&recovery->invocation->settings, path, err));
    recovery->has_catalog = env_path_stat(recovery->invocation->env, path, &stat, err) == STATUS_OK;
    if (!recovery->has_catalog)
        return STATUS_OK;
    TRY(cmd_lake_open(recovery->invocation, &lake, err));
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        snprintf(name, sizeof name, "%s.%s", tables[i].ns, tables[i].name);
        status = ask_table(recovery, &lake, name, wal_group_count(wal), err);
    }
    for (uint32_t id = 1; status == STATUS_OK && id <= wal_table_count(wal); id++) {
        bool is_asked = false;
        if (!wal_table_name(wal, id, name) || !name[0])
            continue;
        for (size_t i = 0; i < count && !is_asked; i++) {
            size_t length = strlen(tables[i].ns);
            is_asked = strncmp(name, tables[i].ns, length) == 0 && name[length] == '.' &&
                       strcmp(name + length + 1, tables[i].name) == 0;
        }
        if (!is_asked)
            status = ask_table(recovery, &lake, name, wal_group_count(wal), err);
    }
    stack_close(&lake);
    return status;
}

/* Without their positions numbers would be given out again that tables know (L25). */
static enum status check_tables(const struct recovery *recovery, struct wal *wal, bool may_lack,
                                struct error *err)
{
    char name[WAL_TABLE_NAME_MAX + 1];
    if (recovery->has_catalog || may_lack || !recovery->is_applied)
        return STATUS_OK;
    for (uint32_t id = 1; id <= wal_table_count(wal); id++) {
        for (uint32_t g = 0; g < wal_group_count(wal); g++) {
            struct wal_ack ack;
            if (wal_ack_get(wal, id, g, &ack) && ack.committed.seq && wal_table_name(wal, id, name))
                return error_set(err, STATUS_USAGE,
                                 "%s holds rows of this log, and there is no catalog: put it back, "
                                 "or give --publish-catalog-path; --without-tables does without",
                                 name);
        }
    }
    return STATUS_OK;
}

/* ---- the log ---- */

static enum status open_scratch(struct recovery *recovery, bool is_read_only, struct wal **out_wal,
                                struct error *err)
{
    struct wal_options options = wal_options_default(recovery->scratch);
    struct wal_restore *restore = &recovery->restore;
    mirror_plan_prove(recovery->plan, restore);
    restore->known = recovery->known;
    restore->known_count = recovery->known_count;
    options.is_read_only = is_read_only;
    options.restore = restore;
    options.segment_bytes = recovery->invocation->settings.log_segment_bytes;
    options.budget_bytes = recovery->invocation->settings.log_budget_bytes;
    options.keep_producers_ms = recovery->invocation->settings.log_keep_producers_ms;
    return wal_open(recovery->invocation->env, &options, out_wal, err);
}

static enum status look(struct recovery *recovery, bool may_lack_tables, struct error *err)
{
    struct wal *wal = NULL;
    recovery->known_count = 0;
    TRY(open_scratch(recovery, true, &wal, err));
    enum status status = ask_tables(recovery, wal, err);
    if (status == STATUS_OK)
        status = check_tables(recovery, wal, may_lack_tables, err);
    wal_close(wal);
    return status;
}

static enum status say(struct recovery *recovery, struct error *err)
{
    struct wal *wal = NULL;
    TRY(open_scratch(recovery, true, &wal, err));
    recovery_say(recovery, wal);
    wal_close(wal);
    return STATUS_OK;
}

static enum status apply(struct recovery *recovery, struct error *err)
{
    struct env *env = recovery->invocation->env;
    struct wal *wal = NULL;
    uint64_t voided;
    char parent[PATH_BYTES_MAX];
    TRY(open_scratch(recovery, false, &wal, err));
    enum status status = wal_repair(wal, &voided, err);
    wal_close(wal);
    TRY(status);
    TRY(env_dir_sync(env, recovery->scratch, err));
    TRY(env_rename_new(env, recovery->scratch, recovery->target, err));
    path_parent(parent, recovery->target);
    return env_dir_sync(env, parent, err);
}

static enum status fetch(struct recovery *recovery, struct error *err)
{
    struct env *env = recovery->invocation->env;
    TRY(empty_directory(env, recovery->scratch, false, err));
    return mirror_fetch(env, recovery->store, recovery->plan, recovery->scratch, err);
}

static enum status run(struct recovery *recovery, bool may_lack_tables, struct env_file *began,
                       struct error *err)
{
    if (env_lock_file(began, err) == STATUS_BUSY)
        return error_set(err, STATUS_BUSY, "another recovery is at work in %s", recovery->scratch);
    TRY(choose_incarnation(recovery, began, err));
    TRY(fetch(recovery, err));
    TRY(look(recovery, may_lack_tables, err)); /* what cannot come to an end takes nothing away */
    if (recovery->is_applied) {
        bool is_fetched;
        TRY(take_mirror(recovery, began, &is_fetched, err));
        if (!is_fetched)
            TRY(fetch(recovery, err));
        TRY(look(recovery, may_lack_tables, err)); /* no commit of the old server is missed */
    }
    TRY(say(recovery, err));
    return recovery->is_applied ? apply(recovery, err) : STATUS_OK;
}

/* A plan leaves no trace; where a run was interrupted, its choice stays. */
static enum status work(struct recovery *recovery, bool may_lack_tables, struct error *err)
{
    struct env *env = recovery->invocation->env;
    struct env_file *began = NULL;
    struct env_stat stat;
    char path[PATH_BYTES_MAX];
    struct error ignored;
    const char *data_dir = recovery->invocation->settings.data_dir;
    bool had_data = env_path_stat(env, data_dir, &stat, &ignored) == STATUS_OK;
    TRY(path_join(path, recovery->scratch, began_name, err));
    bool had_began = env_path_stat(env, path, &stat, &ignored) == STATUS_OK;
    TRY(files_make_dirs(env, recovery->scratch, err));
    TRY(env_open(env, path, ENV_READ | ENV_WRITE | ENV_CREATE, &began, err));
    enum status status = run(recovery, may_lack_tables, began, err);
    if (!recovery->is_applied && status != STATUS_BUSY) {
        enum status cleared = empty_directory(env, recovery->scratch, !had_began, &ignored);
        if (cleared == STATUS_OK && !had_began)
            cleared = env_dir_remove(env, recovery->scratch, &ignored);
        if (cleared == STATUS_OK && !had_data)
            cleared = env_dir_remove(env, data_dir, &ignored);
        UNUSED(cleared);
    }
    env_close(began);
    return status;
}

static enum status recover(struct recovery *recovery, const struct log_id *wanted,
                           bool may_lack_tables, struct error *err)
{
    struct invocation *invocation = recovery->invocation;
    bool is_done = false;
    TRY(path_join(recovery->target, invocation->settings.data_dir, "log", err));
    TRY(path_join(recovery->scratch, invocation->settings.data_dir, "log.recover", err));
    TRY(store_open(invocation->env, recovery->url, &recovery->store, err));
    TRY(mirror_plan_create(recovery->store, wanted, &recovery->plan, err));
    TRY(check_target(recovery, &is_done, err));
    return is_done ? STATUS_OK : work(recovery, may_lack_tables, err);
}

int cmd_log_recover(struct invocation *invocation)
{
    struct recovery recovery = {.invocation = invocation};
    struct log_id wanted;
    struct error err;
    recovery.is_applied = cmd_take_flag(invocation, "--apply");
    recovery.as_json = cmd_take_flag(invocation, "--json");
    bool may_lack_tables = cmd_take_flag(invocation, "--without-tables");
    recovery.url = cmd_take_option(invocation, "--mirror");
    const char *id = cmd_take_option(invocation, "--log-id");
    if (!recovery.url && invocation->settings.mirror_url[0])
        recovery.url = invocation->settings.mirror_url;
    if (!recovery.url)
        return cmd_usage("--mirror URL is needed");
    if (id && !log_id_from_text(id, strlen(id), &wanted))
        return cmd_usage("--log-id %s: 32 hex digits are needed", id);
    if (!cmd_no_more_words(invocation, 0))
        return 2;
    arena_init(&recovery.arena, 0);
    enum status status = recover(&recovery, id ? &wanted : NULL, may_lack_tables, &err);
    mirror_plan_destroy(recovery.plan);
    store_close(recovery.store);
    mem_free(recovery.known);
    arena_deinit(&recovery.arena);
    if (status != STATUS_OK)
        return cmd_fail(&err);
    if (!recovery.as_json && !recovery.is_applied)
        printf("nothing was changed; --apply writes %s\n", recovery.target);
    else if (!recovery.as_json)
        printf("next: sluice serve on %s, with the settings that the old server had\n",
               invocation->settings.data_dir);
    return 0;
}
