/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts under one data directory, in the order in which they need each other: log or source,
 * store, catalog, publisher.
 */
#include <stdio.h>
#include <stdlib.h>

#include "app/server/server_internal.h"

/* Readers cut a file's URI where a fragment or a query would begin. */
static enum status check_uri(const char *uri, struct error *err)
{
    const char *bad = strpbrk(uri, "#?");
    if (bad)
        return error_set(err, STATUS_INVALID,
                         "warehouse %.300s: '%c' in its path; PyIceberg and others could not read "
                         "the tables",
                         uri, *bad);
    return STATUS_OK;
}

enum status stack_warehouse_uri(const struct settings *settings, char out[PATH_BYTES_MAX],
                                struct error *err)
{
    char absolute[PATH_BYTES_MAX];
    if (settings->warehouse[0]) {
        TRY(check_uri(settings->warehouse, err));
        snprintf(out, PATH_BYTES_MAX, "%s", settings->warehouse);
        return STATUS_OK;
    }
    TRY(os_absolute_path(settings->data_dir, absolute, err));
    TRY(check_uri(absolute, err));
    if (snprintf(out, PATH_BYTES_MAX, "file://%s/warehouse", absolute) >= PATH_BYTES_MAX)
        return error_set(err, STATUS_INVALID, "path too long: %.200s", absolute);
    return STATUS_OK;
}

enum status stack_catalog_path(const struct settings *settings, char out[PATH_BYTES_MAX],
                               struct error *err)
{
    if (settings->catalog_path[0])
        return os_absolute_path(settings->catalog_path, out, err);
    return path_join(out, settings->data_dir, "catalog.db", err);
}

static enum status open_log(struct stack *stack, struct error *err)
{
    const struct settings *settings = &stack->settings;
    char dir[PATH_BYTES_MAX];
    TRY(path_join(dir, settings->data_dir, "log", err));
    struct wal_options options = wal_options_default(dir);
    options.segment_bytes = settings->log_segment_bytes;
    options.seal_after_ms = settings->log_seal_after_ms;
    options.budget_bytes = settings->log_budget_bytes;
    options.table_bytes_max = settings->log_table_bytes;
    options.group_bytes_max = settings->log_group_bytes;
    options.keep_committed_ms = settings->log_keep_committed_ms;
    options.keep_producers_ms = settings->log_keep_producers_ms;
    return wal_open(stack->env, &options, &stack->wal, err);
}

static void source_changed(const char *why)
{
    if (why)
        log_line(LOG_WARN, "nothing is published until it answers: %s", why);
    else
        log_line(LOG_INFO, "the log that is published answers again");
}

/* Publication's files are of one log: the one of this directory, or one elsewhere. */
static enum status check_directory(struct stack *stack, const char *name, const char *why,
                                   struct error *err)
{
    char path[PATH_BYTES_MAX];
    struct env_stat stat;
    TRY(path_join(path, stack->settings.data_dir, name, err));
    if (env_path_stat(stack->env, path, &stat, err) != STATUS_NOT_FOUND)
        return error_set(err, STATUS_IDENTITY, "%.300s %s", stack->settings.data_dir, why);
    return STATUS_OK;
}

static enum status open_source(struct stack *stack, struct error *err)
{
    const struct settings *settings = &stack->settings;
    char path[PATH_BYTES_MAX];
    if (!settings->source[0]) {
        TRY(check_directory(stack, "source",
                            "is of a server that publishes another one's log: --source is needed",
                            err));
        TRY(open_log(stack, err));
        return source_local_create(stack->wal, &stack->source, err);
    }
    TRY(check_directory(stack, "log",
                        "holds a log of its own; --source needs another data directory", err));
    TRY(path_join(path, settings->data_dir, "source", err));
    struct source_options options = source_options_default(settings->source, path);
    options.changed = source_changed;
    return source_remote_create(stack->env, &options, &stack->source, err);
}

static enum status open_lake(struct stack *stack, bool only_looks, struct error *err)
{
    char uri[PATH_BYTES_MAX], path[PATH_BYTES_MAX];
    TRY(stack_warehouse_uri(&stack->settings, uri, err));
    TRY(store_open(stack->env, uri, &stack->store, err));
    TRY(stack_catalog_path(&stack->settings, path, err));
    struct catalog_sqlite_options options = {
        .path = path, .name = stack->settings.catalog_name, .only_looks = only_looks};
    return catalog_open_sqlite(stack->env, stack->store, &options, &stack->catalog, err);
}

static void lane_changed(const char *table, enum publish_state state, const char *reason,
                         const char *remedy)
{
    if (state == PUBLISH_HALTED || state == PUBLISH_STOOD_DOWN)
        log_line(LOG_ERROR, "%s %s: %s; to resolve it: %s", table,
                 state == PUBLISH_HALTED ? "halted" : "stood down", reason, remedy);
    else if (state == PUBLISH_RETRYING)
        log_line(LOG_WARN, "%s is not published, and tried again: %s", table, reason);
    else
        log_line(LOG_INFO, "%s is published again", table);
}

static void lane_dropped(const char *table, const char *columns)
{
    if (columns[0])
        log_line(LOG_WARN, "%s has lost columns to others, their values are not stored: %s", table,
                 columns);
    else
        log_line(LOG_INFO, "%s has all its columns again", table);
}

static enum status open_publisher(struct stack *stack, struct error *err)
{
    const struct settings *settings = &stack->settings;
    char dir[PATH_BYTES_MAX];
    size_t table_count;
    const struct publish_table *tables = ingest_tables(&table_count);
    TRY(path_join(dir, settings->data_dir, "publish", err));
    struct publish_options options = publish_options_default(dir);
    options.is_elsewhere = settings_is_elsewhere(settings);
    options.interval_ms = settings->publish_interval_ms;
    options.bytes = settings->publish_bytes;
    uint64_t least = limits_least(settings);
    if (least && least / 2 < options.bytes) /* nobody is to wait for the interval at a limit */
        options.bytes = least / 2;
    options.range_bytes_max = settings->publish_range_bytes;
    options.writers = size_max(os_cpu_count() / 2, 1);
    options.threads = settings->publish_threads
                          ? settings->publish_threads
                          : size_min(options.writers + 2, PUBLISH_THREADS_MAX);
    options.zstd_level = (int)settings->publish_zstd_level;
    options.halt_confirm_ms = settings->publish_halt_confirm_ms;
    options.changed = lane_changed;
    options.dropped = lane_dropped;
    options.created_by = "sluice version " SLUICE_VERSION " (build release)";
    TRY(publisher_create(stack->env, &options, stack->source, stack->catalog, stack->store, tables,
                         table_count, &stack->publisher, err));
    if (stack->wal)
        limits_apply(settings, stack->wal);
    return STATUS_OK;
}

enum status stack_open(struct env *env, const struct settings *settings, struct stack *out_stack,
                       struct error *err)
{
    struct stack stack = {.env = env, .settings = *settings};
    char uri[PATH_BYTES_MAX];
    TRY(stack_warehouse_uri(settings, uri, err)); /* before anything is made */
    TRY(files_make_dirs(env, settings->data_dir, err));
    enum status status = open_source(&stack, err);
    if (status == STATUS_OK && !settings_is_elsewhere(settings))
        status = open_lake(&stack, false, err);
    if (status == STATUS_OK)
        status = open_publisher(&stack, err);
    if (status != STATUS_OK) {
        stack_close(&stack);
        return status;
    }
    *out_stack = stack;
    return STATUS_OK;
}

enum status stack_open_lake(struct env *env, const struct settings *settings,
                            struct stack *out_stack, struct error *err)
{
    struct stack stack = {.env = env, .settings = *settings};
    enum status status = open_lake(&stack, true, err);
    if (status != STATUS_OK) {
        stack_close(&stack);
        return status;
    }
    *out_stack = stack;
    return STATUS_OK;
}

void stack_close(struct stack *stack)
{
    publisher_destroy(stack->publisher);
    source_destroy(stack->source);
    catalog_close(stack->catalog);
    store_close(stack->store);
    wal_close(stack->wal);
    *stack = (struct stack){0};
}
