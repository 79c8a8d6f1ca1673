/* SPDX-License-Identifier: Apache-2.0
 *
 * Which files are alive in a snapshot, and making sure that what others wrote lasts.
 */
#include "lake/iceberg/iceberg_internal.h"

enum { FILES_MAX_DEFAULT = 10000000 };

struct planner {
    struct iceberg_plan *plan;
    const struct iceberg_plan_options *options;
    const struct manifest_file *manifest;
    size_t capacity, count_max;
};

static enum status add_file(void *context, const struct manifest_entry *entry, struct error *err)
{
    struct planner *planner = context;
    struct iceberg_plan *plan = planner->plan;
    int64_t above = planner->options->above_sequence_number;
    if (entry->status == MANIFEST_DELETED || (above > 0 && entry->file_sequence_number <= above))
        return STATUS_OK;
    if (plan->file_count == planner->count_max)
        return error_set(err, STATUS_LIMIT, "more than %zu files", planner->count_max);
    if (plan->file_count == planner->capacity) {
        size_t capacity = planner->capacity ? planner->capacity * 2 : 256;
        struct iceberg_live_file *files = arena_alloc_zero(&plan->arena, capacity, sizeof *files);
        if (!files)
            return error_set(err, STATUS_NO_MEMORY, "plan: out of memory");
        if (plan->file_count)
            memcpy(files, plan->files, plan->file_count * sizeof *files);
        plan->files = files;
        planner->capacity = capacity;
    }
    plan->files[plan->file_count++] =
        (struct iceberg_live_file){.file = entry->file,
                                   .snapshot_id = entry->snapshot_id,
                                   .sequence_number = entry->sequence_number,
                                   .file_sequence_number = entry->file_sequence_number,
                                   .manifest_path = planner->manifest->path};
    if (entry->file.content == ICEBERG_DATA)
        plan->record_count += (uint64_t)entry->file.record_count;
    else
        plan->delete_file_count++;
    return STATUS_OK;
}

enum status iceberg_plan_create(struct store *store, const struct iceberg_table *table,
                                const struct iceberg_snapshot *snapshot,
                                const struct iceberg_plan_options *options,
                                struct iceberg_plan *out_plan, struct error *err)
{
    static const struct iceberg_plan_options defaults = {0};
    struct iceberg_plan plan = {0};
    struct planner planner = {.plan = &plan, .options = options ? options : &defaults};
    struct manifest_file *manifests;
    size_t count;
    enum status status;
    planner.count_max =
        planner.options->file_count_max ? planner.options->file_count_max : FILES_MAX_DEFAULT;
    arena_init(&plan.arena, 0);
    if (!snapshot->manifest_list) {
        status = error_set(err, STATUS_UNSUPPORTED, "snapshot %lld has no manifest list",
                           (long long)snapshot->snapshot_id);
        goto done;
    }
    TRY_OR_DONE(status, iceberg_list_read(store, snapshot->manifest_list, &plan.arena, &manifests,
                                          &count, err));
    for (size_t i = 0; i < count; i++) {
        bool is_live = manifests[i].added_files != 0 || manifests[i].existing_files != 0;
        /* Nothing in a manifest is newer than the manifest. */
        bool is_old = manifests[i].sequence_number <= planner.options->above_sequence_number &&
                      planner.options->above_sequence_number > 0;
        if (!is_live || is_old)
            continue;
        planner.manifest = &manifests[i];
        TRY_OR_DONE(status, iceberg_manifest_read(store, table, &manifests[i],
                                                  planner.options->with_metrics, &plan.arena,
                                                  add_file, &planner, err));
    }
    *out_plan = plan;
done:
    if (status != STATUS_OK)
        arena_deinit(&plan.arena);
    return status;
}

void iceberg_plan_deinit(struct iceberg_plan *plan)
{
    arena_deinit(&plan->arena);
    *plan = (struct iceberg_plan){0};
}

/* ---- durability ---- */

enum status iceberg_table_make_durable(struct catalog *catalog, struct store *store,
                                       const struct iceberg_table *table, struct error *err)
{
    struct catalog_ident ident = {.ns = table->ns, .name = table->name};
    TRY(catalog_make_durable(catalog, ident, &table->base, err));
    if (table->current && table->current->manifest_list)
        TRY(store_sync_object(store, table->current->manifest_list, err));
    return STATUS_OK;
}

static enum status sync_file(void *context, const struct manifest_entry *entry, struct error *err)
{
    struct store *store = context;
    /* Entries that were there before are in manifests of their own snapshots too. */
    return entry->status == MANIFEST_ADDED ? store_sync_object(store, entry->file.path, err)
                                           : STATUS_OK;
}

enum status iceberg_table_sync_foreign(struct store *store, const struct iceberg_table *table,
                                       int64_t above_sequence_number, struct error *err)
{
    struct manifest_file *manifests;
    struct arena arena, entries;
    size_t count;
    enum status status = STATUS_OK;
    if (!table->current || !table->current->manifest_list)
        return STATUS_OK;
    arena_init(&arena, 0);
    arena_init(&entries, 0);
    TRY_OR_DONE(status, iceberg_list_read(store, table->current->manifest_list, &arena, &manifests,
                                          &count, err));
    TRY_OR_DONE(status, store_sync_object(store, table->current->manifest_list, err));
    for (size_t i = 0; i < count; i++) {
        if (manifests[i].sequence_number <= above_sequence_number)
            continue;
        TRY_OR_DONE(status, store_sync_object(store, manifests[i].path, err));
        TRY_OR_DONE(status, iceberg_manifest_read(store, table, &manifests[i], false, &entries,
                                                  sync_file, store, err));
        arena_clear(&entries);
    }
done:
    arena_deinit(&arena);
    arena_deinit(&entries);
    return status;
}
