/* SPDX-License-Identifier: Apache-2.0
 *
 * The cut of a backup: what has to be of one moment is written into the backup's directory by the
 * server itself, while its lanes stand still, so that no table in the copied catalog is ahead of
 * the log's and the lanes' copies, nor behind what they have acknowledged. The segments that go
 * with it are named and held; `sluice backup` copies their files, and gives them back.
 *
 * A hold lasts until the next cut, until it is given back, or for an hour after which somebody asks
 * for the status. Thread: the API's one worker.
 */
#include <stdio.h>
#include <stdlib.h>

#include "app/server/server_internal.h"
#include "format/json/json.h"

enum { PAUSE_MS = 10000, CUTS = 5, EXTENTS_MAX = 65536 };
static const int64_t hold_ns = (int64_t)3600 * 1000000000;

struct backup {
    struct wal_extent *extents; /* what is to be copied */
    struct wal_segment_file **files;
    size_t count;
    int64_t since_ns;
};

static void give_back(struct backup *backup)
{
    for (size_t i = 0; i < backup->count; i++)
        wal_segment_close(backup->files[i]);
    backup->count = 0;
}

void server_backup_end(struct server *server)
{
    struct backup *backup = server->backup;
    if (!backup)
        return;
    give_back(backup);
    mem_free(backup->files);
    mem_free(backup->extents);
    mem_free(backup);
    server->backup = NULL;
}

void server_backup_expire(struct server *server)
{
    if (server->backup && env_mono_ns(server->env) - server->backup->since_ns > hold_ns)
        server_backup_end(server);
}

/* ---- the cut ---- */

static bool is_among(const struct wal_extent *extents, size_t count, const struct wal_extent *one)
{
    for (size_t i = 0; i < count; i++)
        if (extents[i].segment_id == one->segment_id)
            return extents[i].is_committed == one->is_committed;
    return false;
}

/* Was a segment compacted that the checkpoint tells the whole of? From here on none is. */
static bool has_less(const struct backup *backup, uint64_t version)
{
    uint64_t compacted;
    for (size_t i = 0; i < backup->count; i++)
        if (wal_segment_is_compacted(backup->files[i], &compacted) && compacted > version)
            return true;
    return false;
}

/* RECLAIMED: one of them is on its way out. */
static enum status hold_files(struct wal *wal, struct backup *backup, size_t count,
                              struct error *err)
{
    mem_free(backup->files);
    backup->files = mem_alloc_zero(count, sizeof *backup->files);
    if (!backup->files)
        return error_set(err, STATUS_NO_MEMORY, "backup: out of memory");
    for (; backup->count < count; backup->count++)
        TRY(wal_segment_open(wal, backup->extents[backup->count].segment_id,
                             &backup->files[backup->count], err));
    return STATUS_OK;
}

/* Checkpoint and extents of which each segment is either told of or copied. BUSY: they moved
 * meanwhile. */
static enum status cut_once(struct wal *wal, struct backup *backup, struct wal_extent *before,
                            struct buf *out_state, struct error *err)
{
    size_t before_count, all;
    uint64_t covers, version = wal_state_version(wal);
    buf_clear(out_state);
    wal_extents(wal, 0, before, EXTENTS_MAX, &before_count, NULL);
    TRY(wal_state_image(wal, true, out_state, &covers, err));
    wal_extents(wal, 0, backup->extents, EXTENTS_MAX, &all, NULL);
    bool is_steady = before_count <= EXTENTS_MAX && all <= EXTENTS_MAX;
    for (size_t i = 0; i < before_count && is_steady; i++)
        is_steady = is_among(backup->extents, all, &before[i]);
    enum status status = is_steady ? hold_files(wal, backup, all, err) : STATUS_RECLAIMED;
    if (status == STATUS_OK && has_less(backup, version))
        status = STATUS_RECLAIMED;
    return status != STATUS_RECLAIMED
               ? status
               : error_set(err, STATUS_BUSY, "backup: the log's files move too fast; try again");
}

static enum status cut_log(struct server *server, struct backup *backup, struct buf *out_state,
                           struct error *err)
{
    struct wal_extent *before = mem_alloc_zero(EXTENTS_MAX, sizeof *before);
    enum status status = STATUS_BUSY;
    backup->extents = mem_alloc_zero(EXTENTS_MAX, sizeof *backup->extents);
    if (!before || !backup->extents)
        status = error_set(err, STATUS_NO_MEMORY, "backup: out of memory");
    for (int i = 0; i < CUTS && status == STATUS_BUSY; i++) {
        give_back(backup);
        status = cut_once(server->stack.wal, backup, before, out_state, err);
    }
    mem_free(before);
    return status;
}

static enum status put_file(struct env *env, const char *to, const char *name, struct span bytes,
                            struct error *err)
{
    char path[PATH_BYTES_MAX];
    TRY(path_join(path, to, name, err));
    return files_create(env, path, bytes.data, bytes.length, err);
}

/* What the lanes keep: small files, each replaced as a whole. */
static enum status copy_lanes(struct server *server, const char *to, struct error *err)
{
    struct env *env = server->env;
    char from[PATH_BYTES_MAX], path[PATH_BYTES_MAX], **names;
    struct arena arena;
    size_t count = 0;
    TRY(path_join(from, server->stack.settings.data_dir, "publish", err));
    arena_init(&arena, 0);
    enum status status = files_list(env, from, &arena, &names, &count, err);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        struct buf bytes = {0};
        if (strcmp(names[i], "lock") == 0)
            continue;
        status = path_join(path, from, names[i], err);
        if (status == STATUS_OK)
            status = files_read(env, path, 1 << 30, &bytes, err);
        if (status == STATUS_OK)
            status = put_file(env, to, names[i], span_of(bytes.data, bytes.length), err);
        buf_deinit(&bytes);
    }
    arena_deinit(&arena);
    return status;
}

static enum status make_folders(struct env *env, const char *to, struct error *err)
{
    static const char *const folders[] = {"log/active",    "log/sealed", "log/state",
                                          "log/committed", "log/spare",  "publish"};
    char path[PATH_BYTES_MAX];
    struct env_stat stat;
    TRY(path_join(path, to, "log", err));
    if (env_path_stat(env, path, &stat, err) == STATUS_OK)
        return error_set(err, STATUS_EXISTS, "%.300s is there already", path);
    for (size_t i = 0; i < COUNT_OF(folders); i++) {
        TRY(path_join(path, to, folders[i], err));
        TRY(files_make_dirs(env, path, err));
    }
    return STATUS_OK;
}

static enum status cut(struct server *server, const char *to, struct error *err)
{
    char path[PATH_BYTES_MAX];
    struct buf state = {0};
    TRY(path_join(path, to, "publish", err));
    enum status status = cut_log(server, server->backup, &state, err);
    if (status == STATUS_OK && server->stack.catalog) /* else others have lanes and catalog */
        status = copy_lanes(server, path, err);
    if (status == STATUS_OK)
        status = put_file(server->env, to, "log/state/0000000000000000.state",
                          span_of(state.data, state.length), err);
    if (status == STATUS_OK)
        status = path_join(path, to, "catalog.db", err);
    if (status == STATUS_OK && server->stack.catalog)
        status = catalog_copy(server->stack.catalog, path, err);
    buf_deinit(&state);
    return status;
}

static enum status begin(struct server *server, const char *to, struct error *err)
{
    if (to[0] != '/')
        return error_set(err, STATUS_INVALID, "backup: %.200s is no absolute path", to);
    if (!server->stack.wal)
        return error_set(err, STATUS_UNSUPPORTED, "backup: this server has no log");
    server_backup_end(server);
    TRY(make_folders(server->env, to, err));
    server->backup = mem_alloc_zero(1, sizeof *server->backup);
    if (!server->backup)
        return error_set(err, STATUS_NO_MEMORY, "backup: out of memory");
    server->backup->since_ns = env_mono_ns(server->env);
    TRY(publisher_pause(server->stack.publisher, PAUSE_MS, err));
    enum status status = cut(server, to, err);
    publisher_resume(server->stack.publisher);
    return status;
}

/* ---- API ---- */

static void answer(struct http_exchange *exchange, const struct backup *backup)
{
    struct buf body = {0};
    struct json_writer json;
    json_writer_init(&json, &body);
    json_write_object_begin(&json);
    json_write_key(&json, "segments");
    json_write_array_begin(&json);
    for (size_t i = 0; i < backup->count; i++) {
        json_write_object_begin(&json);
        json_write_key(&json, "id");
        json_write_u64(&json, backup->extents[i].segment_id);
        json_write_key(&json, "bytes");
        json_write_u64(&json, backup->extents[i].bytes);
        json_write_key(&json, "is_sealed");
        json_write_bool(&json, backup->extents[i].is_sealed);
        json_write_key(&json, "is_committed");
        json_write_bool(&json, backup->extents[i].is_committed);
        json_write_object_end(&json);
    }
    json_write_array_end(&json);
    json_write_object_end(&json);
    buf_put_byte(&body, '\n');
    server_respond_json(exchange, &body);
}

/* POST /v1/backup?to=DIR: the cut; without `to`: what it held is given back. */
void server_handle_backup(void *context, struct http_exchange *exchange)
{
    struct server *server = context;
    const struct http_head *head = http_exchange_head(exchange);
    char to[PATH_BYTES_MAX];
    struct error err;
    if (http_head_get(head, "origin").data) { /* a page in somebody's browser, not an operator */
        http_respond_text(exchange, 403, "backups are not taken from web pages");
        return;
    }
    if (!http_query_text(head->query, "to", to, sizeof to)) {
        server_backup_end(server);
        http_respond_text(exchange, 200, "done");
        return;
    }
    if (begin(server, to, &err) == STATUS_OK) {
        answer(exchange, server->backup);
        return;
    }
    server_backup_end(server);
    http_respond_text(exchange, status_http_code(err.status), "%s", err.message);
}
