/* SPDX-License-Identifier: Apache-2.0
 *
 * A new SQLite catalog comes whole, under its name, or not at all. SQLite's own way leaves an empty
 * file beside a hot journal, and whoever finds that drops the journal: if a failed sync had kept
 * what was cut off, it is a damaged file from then on.
 */
#include <sqlite3.h>
#include <stdio.h>

#include "lake/catalog/catalog_internal.h"

/* The bytes of a catalog without tables, made in memory: sqlite3_free. */
static enum status empty_catalog(const char *vfs_name, const char *tables, unsigned char **out_data,
                                 sqlite3_int64 *out_bytes, struct error *err)
{
    sqlite3 *db = NULL;
    *out_data = NULL;
    int code =
        sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, vfs_name);
    if (code == SQLITE_OK)
        code = sqlite3_exec(db, tables, NULL, NULL, NULL);
    if (code == SQLITE_OK)
        *out_data = sqlite3_serialize(db, "main", out_bytes, 0);
    if (code == SQLITE_OK && !*out_data)
        code = SQLITE_NOMEM;
    sqlite3_close_v2(db);
    return code == SQLITE_OK
               ? STATUS_OK
               : error_set(err, code == SQLITE_NOMEM ? STATUS_NO_MEMORY : STATUS_INTERNAL, "%s",
                           sqlite3_errstr(code));
}

static void discard(struct env *env, const char *path)
{
    struct error ignored;
    enum status removed = env_remove(env, path, &ignored);
    UNUSED(removed);
}

/* What was left of earlier tries by processes that died: "<name>.<16 digits>.tmp". Whoever is alive
 * and has one taken tries again. Best effort. */
static void remove_tries(struct env *env, const char *path, const char *parent)
{
    struct error ignored;
    struct arena arena;
    char **names, victim[PATH_BYTES_MAX];
    size_t count = 0;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t length = strlen(name);
    arena_init(&arena, 0);
    if (files_list(env, parent, &arena, &names, &count, &ignored) != STATUS_OK)
        count = 0;
    for (size_t i = 0; i < count; i++) {
        if (strlen(names[i]) != length + strlen(".0123456789abcdef.tmp") ||
            strncmp(names[i], name, length) != 0 || names[i][length] != '.' ||
            strcmp(names[i] + length + 17, ".tmp") != 0 ||
            path_join(victim, parent, names[i], &ignored) != STATUS_OK)
            continue;
        discard(env, victim);
    }
    arena_deinit(&arena);
}

static enum status make(struct env *env, const char *path, const char *vfs_name, const char *tables,
                        struct error *err)
{
    struct env_stat stat;
    char temporary[PATH_BYTES_MAX], parent[PATH_BYTES_MAX];
    uint64_t random;
    unsigned char *data;
    sqlite3_int64 bytes;
    enum status status = env_path_stat(env, path, &stat, err);
    if (status != STATUS_NOT_FOUND)
        return status;
    path_parent(parent, path);
    remove_tries(env, path, parent);
    env_random(env, &random, sizeof random);
    int length =
        snprintf(temporary, sizeof temporary, "%s.%016llx.tmp", path, (unsigned long long)random);
    if (length < 0 || length >= PATH_BYTES_MAX)
        return error_set(err, STATUS_INVALID, "catalog %.200s: name too long", path);
    status = empty_catalog(vfs_name, tables, &data, &bytes, err);
    if (status == STATUS_OK)
        status = files_create(env, temporary, data, (size_t)bytes, err);
    sqlite3_free(data);
    if (status == STATUS_OK)
        status = env_rename_new(env, temporary, path, err);
    if (status != STATUS_OK)
        discard(env, temporary);
    if (status == STATUS_EXISTS) /* somebody else was quicker */
        return STATUS_OK;
    if (status == STATUS_OK)
        status = env_dir_sync(env, parent, err);
    return status == STATUS_OK ? status : error_prefix(err, "make the catalog %.200s", path);
}

enum status sqlite_catalog_make(struct env *env, const char *path, const char *vfs_name,
                                const char *tables, struct error *err)
{
    enum { TRIES = 3 };
    enum status status = STATUS_NOT_FOUND;
    for (int i = 0; i < TRIES && status == STATUS_NOT_FOUND; i++)
        status = make(env, path, vfs_name, tables, err);
    if (status == STATUS_NOT_FOUND) /* the directory: no answer about a table */
        err->status = status = STATUS_IO;
    return status;
}
