/* SPDX-License-Identifier: Apache-2.0
 *
 * The SQL catalog of PyIceberg's and Iceberg Java's JdbcCatalog layout, in SQLite. A commit writes
 * the metadata file first, synced, and then swaps the location in one transaction.
 *
 * journal_mode=DELETE and synchronous=EXTRA: when COMMIT answers OK, the removed journal is durable
 * too, so the transaction cannot be undone by a power cut. When COMMIT fails for another reason
 * than a lock, the journal may be gone or not: UNKNOWN_OUTCOME, and the connection is dropped,
 * because what its cache holds is no longer what the file says.
 *
 * A damaged file is CORRUPT at every call, and is opened anew at the next: a good copy that is put
 * in its place serves at once.
 */
#include <sqlite3.h>

#include "lake/catalog/catalog_internal.h"

struct sqlite_catalog {
    struct catalog base;
    struct sqlite_vfs *vfs;
    struct env_mutex *mutex; /* one conversation at a time; leaf, held over I/O (see catalog.h) */
    char *path, *name;
    int busy_timeout_ms;
    sqlite3 *db;            /* guarded by mutex; NULL: open at the next call */
    uint64_t device, inode; /* of the file that db has open; 0, 0: never opened */
    bool has_iceberg_type;  /* guarded by mutex; V1 layout */
    bool only_looks,
        must_exist;  /* guarded by mutex; a missing file is a fault, not a new catalog */
    bool is_damaged; /* guarded by mutex; seen in this conversation */
};

static struct sqlite_catalog *sqlite_of(struct catalog *base)
{
    return CONTAINER_OF(base, struct sqlite_catalog, base);
}

static const char create_tables[] =
    "CREATE TABLE IF NOT EXISTS iceberg_tables ("
    "catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, "
    "table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), "
    "previous_metadata_location VARCHAR(1000), iceberg_type VARCHAR(5), "
    "PRIMARY KEY (catalog_name, table_namespace, table_name));"
    "CREATE TABLE IF NOT EXISTS iceberg_namespace_properties ("
    "catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL, "
    "property_key VARCHAR(255) NOT NULL, property_value VARCHAR(1000) NOT NULL, "
    "PRIMARY KEY (catalog_name, namespace, property_key));";

/* ---- statements ---- */

static enum status damaged(struct sqlite_catalog *catalog, const char *how, struct error *err)
{
    catalog->is_damaged = true;
    return error_set(err, STATUS_CORRUPT,
                     "catalog %.150s: damaged (%.200s); a good copy has to be put in its place",
                     catalog->path, how);
}

static enum status fail(struct sqlite_catalog *catalog, const char *what, struct error *err)
{
    int code = sqlite3_errcode(catalog->db);
    enum status status;
    switch (code) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        status = STATUS_BUSY;
        break;
    case SQLITE_NOMEM:
        status = STATUS_NO_MEMORY;
        break;
    case SQLITE_FULL:
        status = STATUS_NO_SPACE;
        break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return damaged(catalog, sqlite3_errmsg(catalog->db), err);
    default:
        status = STATUS_IO;
        break;
    }
    return error_set(err, status, "catalog %.150s: %s: %s (%d)", catalog->path, what,
                     sqlite3_errmsg(catalog->db), sqlite3_extended_errcode(catalog->db));
}

static enum status run(struct sqlite_catalog *catalog, const char *sql, struct error *err)
{
    if (sqlite3_exec(catalog->db, sql, NULL, NULL, NULL) == SQLITE_OK)
        return STATUS_OK;
    return fail(catalog, sql, err);
}

/* Statements with text parameters, NULL for SQL NULL. Returned owned: sqlite3_finalize. */
static enum status prepare(struct sqlite_catalog *catalog, const char *sql,
                           const char *const *parameters, int count, sqlite3_stmt **out_statement,
                           struct error *err)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(catalog->db, sql, -1, &statement, NULL) != SQLITE_OK)
        return fail(catalog, "prepare", err);
    for (int i = 0; i < count; i++) {
        int code = parameters[i]
                       ? sqlite3_bind_text(statement, i + 1, parameters[i], -1, SQLITE_TRANSIENT)
                       : sqlite3_bind_null(statement, i + 1);
        if (code != SQLITE_OK) {
            enum status status = fail(catalog, "bind", err);
            sqlite3_finalize(statement);
            return status;
        }
    }
    *out_statement = statement;
    return STATUS_OK;
}

/* Runs a statement without rows; *out_changed the number of rows it touched (may be NULL). EXISTS
 * for a broken key. */
static enum status execute(struct sqlite_catalog *catalog, const char *sql,
                           const char *const *parameters, int count, int *out_changed,
                           struct error *err)
{
    sqlite3_stmt *statement;
    TRY(prepare(catalog, sql, parameters, count, &statement, err));
    enum status status = STATUS_OK;
    int code = sqlite3_step(statement);
    if (code == SQLITE_CONSTRAINT)
        status = error_set(err, STATUS_EXISTS, "already in the catalog");
    else if (code != SQLITE_DONE)
        status = fail(catalog, "write", err);
    else if (out_changed)
        *out_changed = sqlite3_changes(catalog->db);
    sqlite3_finalize(statement);
    return status;
}

/* The texts of the first column, owned by `arena`. */
static enum status query_texts(struct sqlite_catalog *catalog, const char *sql,
                               const char *const *parameters, int count, struct arena *arena,
                               const char ***out_texts, size_t *out_count, struct error *err)
{
    sqlite3_stmt *statement;
    const char **texts = NULL;
    size_t used = 0, capacity = 0;
    TRY(prepare(catalog, sql, parameters, count, &statement, err));
    enum status status = STATUS_OK;
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        if (used == capacity) {
            capacity = capacity ? capacity * 2 : 16;
            const char **more = arena_alloc(arena, capacity * sizeof *more);
            if (more && used)
                memcpy(more, texts, used * sizeof *more);
            texts = more;
        }
        const char *text = (const char *)sqlite3_column_text(statement, 0);
        char *copy =
            texts ? arena_copy_text(arena, text ? text : "", text ? strlen(text) : 0) : NULL;
        if (!copy) {
            status = error_set(err, STATUS_NO_MEMORY, "catalog: out of memory");
            break;
        }
        texts[used++] = copy;
    }
    if (status == STATUS_OK && code != SQLITE_DONE)
        status = fail(catalog, "read", err);
    sqlite3_finalize(statement);
    if (status == STATUS_OK) {
        *out_texts = texts;
        *out_count = used;
    }
    return status;
}

/* The number in the first column of the first row. */
static enum status query_number(struct sqlite_catalog *catalog, const char *sql, int64_t *out_value,
                                struct error *err)
{
    sqlite3_stmt *statement;
    TRY(prepare(catalog, sql, NULL, 0, &statement, err));
    enum status status = STATUS_OK;
    if (sqlite3_step(statement) == SQLITE_ROW)
        *out_value = sqlite3_column_int64(statement, 0);
    else
        status = fail(catalog, "read", err);
    sqlite3_finalize(statement);
    return status;
}

/* ---- connection and transactions ---- */

static void disconnect(struct sqlite_catalog *catalog)
{
    sqlite3_close(catalog->db);
    catalog->db = NULL;
}

static void rollback(struct sqlite_catalog *catalog)
{
    struct error ignored;
    /* Where even this fails, the next connection rolls the journal back. */
    if (!sqlite3_get_autocommit(catalog->db) && run(catalog, "ROLLBACK", &ignored) != STATUS_OK)
        disconnect(catalog);
}

/* Does the path still name the file that is open? Whoever renames a backup over it, or removes it,
 * would otherwise have us commit into a file that nobody else sees. */
static bool is_in_place(struct sqlite_catalog *catalog)
{
    struct env_stat stat;
    struct error ignored;
    return env_path_stat(catalog->base.env, catalog->path, &stat, &ignored) == STATUS_OK &&
           stat.device == catalog->device && stat.inode == catalog->inode;
}

/* BUSY at COMMIT leaves the transaction open and nothing applied; everything else is unknown. */
static enum status commit_transaction(struct sqlite_catalog *catalog, struct error *err)
{
    enum status status = run(catalog, "COMMIT", err);
    if (status == STATUS_OK && catalog->inode && !is_in_place(catalog)) {
        disconnect(catalog);
        return error_set(err, STATUS_UNKNOWN_OUTCOME,
                         "catalog %.200s: replaced by another file during a commit", catalog->path);
    }
    if (status == STATUS_BUSY) {
        rollback(catalog);
    } else if (status != STATUS_OK) {
        err->status = status = STATUS_UNKNOWN_OUTCOME;
        disconnect(catalog);
    }
    return status;
}

static enum status table_count(struct sqlite_catalog *catalog, int64_t *out_count,
                               struct error *err)
{
    return query_number(catalog,
                        "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN "
                        "('iceberg_tables', 'iceberg_namespace_properties')",
                        out_count, err);
}

static enum status ensure_tables(struct sqlite_catalog *catalog, struct error *err)
{
    int64_t count;
    TRY(table_count(catalog, &count, err));
    if (count < 2) {
        TRY(run(catalog, "BEGIN IMMEDIATE", err));
        if (sqlite3_exec(catalog->db, create_tables, NULL, NULL, NULL) != SQLITE_OK) {
            enum status status = fail(catalog, "make its tables", err);
            rollback(catalog);
            return status;
        }
        TRY(commit_transaction(catalog, err));
    }
    int64_t has_column;
    TRY(query_number(catalog,
                     "SELECT count(*) FROM pragma_table_info('iceberg_tables') "
                     "WHERE name = 'iceberg_type'",
                     &has_column, err));
    catalog->has_iceberg_type = has_column > 0;
    return STATUS_OK;
}

/* A database in WAL mode cannot even be opened without shared memory, and SQLite's message does not
 * say so: look at its header (byte 18: the version that is needed to write; 2 is WAL). */
static bool is_wal_database(struct sqlite_catalog *catalog)
{
    struct error ignored;
    struct env_file *file;
    uint8_t version = 0;
    size_t got = 0;
    if (env_open(catalog->base.env, catalog->path, ENV_READ, &file, &ignored) != STATUS_OK)
        return false;
    enum status status = env_read(file, 18, &version, 1, &got, &ignored);
    env_close(file);
    return status == STATUS_OK && got == 1 && version == 2;
}

static enum status connect(struct sqlite_catalog *catalog, struct error *err)
{
    struct env_stat stat;
    if (catalog->db && is_in_place(catalog))
        return STATUS_OK;
    if (catalog->db)
        disconnect(catalog); /* what stands there now is the catalog */
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    if (!catalog->must_exist)
        flags |= SQLITE_OPEN_CREATE;
    else if (env_path_stat(catalog->base.env, catalog->path, &stat, err) != STATUS_OK)
        return error_set(err, STATUS_IO, "catalog %.200s: the file is gone", catalog->path);
    int code = sqlite3_open_v2(catalog->path, &catalog->db, flags, sqlite_vfs_name(catalog->vfs));
    if (code == SQLITE_CANTOPEN && catalog->only_looks) {
        sqlite3_close_v2(catalog->db);
        code =
            sqlite3_open_v2(catalog->path, &catalog->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX,
                            sqlite_vfs_name(catalog->vfs));
    }
    if (!catalog->db)
        return error_set(err, STATUS_NO_MEMORY, "catalog %.200s: out of memory", catalog->path);
    enum status status = code == SQLITE_OK ? STATUS_OK : fail(catalog, "open", err);
    if (status == STATUS_OK) {
        sqlite3_busy_timeout(catalog->db, catalog->busy_timeout_ms);
        status = sqlite3_exec(catalog->db,
                              "PRAGMA temp_store=MEMORY; PRAGMA mmap_size=0; "
                              "PRAGMA synchronous=EXTRA; PRAGMA journal_mode=DELETE",
                              NULL, NULL, NULL) == SQLITE_OK
                     ? STATUS_OK
                     : fail(catalog, "open", err);
    }
    if (status == STATUS_OK)
        status = ensure_tables(catalog, err);
    if (status == STATUS_OK)
        status = env_path_stat(catalog->base.env, catalog->path, &stat, err);
    if (status == STATUS_OK) {
        catalog->device = stat.device;
        catalog->inode = stat.inode;
    }
    if (status == STATUS_IO && is_wal_database(catalog))
        status =
            error_set(err, STATUS_IO,
                      "catalog %.200s: is in WAL mode, which needs shared memory; change it with "
                      "PRAGMA journal_mode=DELETE",
                      catalog->path);
    if (status != STATUS_OK)
        disconnect(catalog);
    return status;
}

static void leave(struct sqlite_catalog *catalog)
{
    if (catalog->is_damaged) /* its cache may outlast the damage */
        disconnect(catalog);
    catalog->is_damaged = false;
    env_unlock(catalog->mutex);
}

/* Takes the conversation; on failure it is not taken. */
static enum status enter(struct sqlite_catalog *catalog, struct error *err)
{
    env_lock(catalog->mutex);
    enum status status = connect(catalog, err);
    if (status != STATUS_OK)
        leave(catalog);
    return status;
}

/* Indexes against tables too: through a damaged index a table is not found. */
static enum status sqlite_check(struct catalog *base, struct error *err)
{
    struct sqlite_catalog *catalog = sqlite_of(base);
    struct arena arena;
    const char **texts;
    size_t count;
    TRY(enter(catalog, err));
    arena_init(&arena, 0);
    enum status status =
        query_texts(catalog, "PRAGMA integrity_check(1)", NULL, 0, &arena, &texts, &count, err);
    if (status == STATUS_OK && (count == 0 || strcmp(texts[0], "ok") != 0))
        status = damaged(catalog, count ? texts[0] : "no answer", err);
    arena_deinit(&arena);
    leave(catalog);
    return status;
}

static enum status sqlite_copy(struct catalog *base, const char *path, struct error *err)
{
    struct sqlite_catalog *catalog = sqlite_of(base);
    struct env_file *file = NULL;
    TRY(enter(catalog, err));
    enum status status = execute(catalog, "VACUUM INTO ?1", &path, 1, NULL, err);
    leave(catalog);
    TRY(status);
    TRY(env_open(base->env, path, ENV_READ | ENV_WRITE, &file, err));
    status = env_sync(file, err);
    env_close(file);
    return status;
}

/* ---- namespaces ---- */

static enum status insert_namespace(struct sqlite_catalog *catalog, const char *ns,
                                    int *out_changed, struct error *err)
{
    const char *parameters[] = {catalog->name, ns};
    return execute(catalog,
                   "INSERT INTO iceberg_namespace_properties "
                   "(catalog_name, namespace, property_key, property_value) "
                   "SELECT ?1, ?2, 'exists', 'true' WHERE NOT EXISTS (SELECT 1 FROM "
                   "iceberg_namespace_properties WHERE catalog_name = ?1 AND namespace = ?2)",
                   parameters, 2, out_changed, err);
}

static enum status sqlite_namespace_create(struct catalog *base, const char *ns, struct error *err)
{
    struct sqlite_catalog *catalog = sqlite_of(base);
    int changed = 0;
    TRY(enter(catalog, err));
    enum status status = run(catalog, "BEGIN IMMEDIATE", err);
    if (status == STATUS_OK) {
        status = insert_namespace(catalog, ns, &changed, err);
        if (status == STATUS_OK && changed == 0)
            status = error_set(err, STATUS_EXISTS, "namespace %.200s exists", ns);
        if (status == STATUS_OK)
            status = commit_transaction(catalog, err);
        else
            rollback(catalog);
    }
    leave(catalog);
    return status;
}

static enum status sqlite_namespace_list(struct catalog *base, struct arena *arena,
                                         const char ***out_names, size_t *out_count,
                                         struct error *err)
{
    struct sqlite_catalog *catalog = sqlite_of(base);
    const char *parameters[] = {catalog->name};
    TRY(enter(catalog, err));
    enum status status =
        query_texts(catalog,
                    "SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = ?1 "
                    "UNION SELECT table_namespace FROM iceberg_tables WHERE catalog_name = ?1 "
                    "ORDER BY 1",
                    parameters, 1, arena, out_names, out_count, err);
    leave(catalog);
    return status;
}

/* Rows of views (V1) are none of ours. */
static const char *type_filter(const struct sqlite_catalog *catalog)
{
    return catalog->has_iceberg_type ? " AND (iceberg_type = 'TABLE' OR iceberg_type IS NULL)" : "";
}

/* `sql` with the filter at its end. */
static enum status with_filter(const struct sqlite_catalog *catalog, const char *sql,
                               struct arena *arena, const char **out_sql, struct error *err)
{
    const char *text = arena_format(arena, "%s%s", sql, type_filter(catalog));
    if (!text)
        return error_set(err, STATUS_NO_MEMORY, "catalog: out of memory");
    *out_sql = text;
    return STATUS_OK;
}

static enum status sqlite_table_list(struct catalog *base, const char *ns, struct arena *arena,
                                     const char ***out_names, size_t *out_count, struct error *err)
{
    struct sqlite_catalog *catalog = sqlite_of(base);
    const char *parameters[] = {catalog->name, ns}, *sql = NULL;
    TRY(enter(catalog, err));
    enum status status = with_filter(
        catalog,
        "SELECT table_name FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ?",
        arena, &sql, err);
    if (status == STATUS_OK) {
        sql = arena_format(arena, "%s ORDER BY 1", sql);
        status = sql ? query_texts(catalog, sql, parameters, 2, arena, out_names, out_count, err)
                     : error_set(err, STATUS_NO_MEMORY, "catalog: out of memory");
    }
    leave(catalog);
    return status;
}

/* ---- tables ---- */

/* The row's metadata_location, owned by `arena`. */
static enum status find_location(struct sqlite_catalog *catalog, struct catalog_ident ident,
                                 struct arena *arena, const char **out_location, struct error *err)
{
    const char *parameters[] = {catalog->name, ident.ns, ident.name}, *sql = NULL, **texts;
    size_t count;
    TRY(with_filter(catalog,
                    "SELECT metadata_location FROM iceberg_tables "
                    "WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?",
                    arena, &sql, err));
    TRY(query_texts(catalog, sql, parameters, 3, arena, &texts, &count, err));
    if (count == 0)
        return error_set(err, STATUS_NOT_FOUND, "no such table");
    if (!texts[0][0])
        return error_set(err, STATUS_CORRUPT, "the catalog has no metadata location for it");
    *out_location = texts[0];
    return STATUS_OK;
}

static enum status sqlite_load(struct catalog *base, struct catalog_ident ident,
                               struct catalog_table *out_table, struct error *err)
{
    struct sqlite_catalog *catalog = sqlite_of(base);
    struct arena arena;
    const char *location;
    arena_init(&arena, 0);
    enum status status = enter(catalog, err);
    if (status == STATUS_OK) {
        status = find_location(catalog, ident, &arena, &location, err);
        leave(catalog);
    }
    if (status == STATUS_OK)
        status = catalog_metadata_read(base->store, location, out_table, err);
    arena_deinit(&arena);
    return status;
}

/* Ends a write: COMMIT where `status` is OK, ROLLBACK where it is not. */
static enum status finish_write(struct sqlite_catalog *catalog, enum status status,
                                struct error *err)
{
    if (status == STATUS_OK)
        return commit_transaction(catalog, err);
    rollback(catalog);
    return status;
}

static enum status insert_table(struct sqlite_catalog *catalog, struct catalog_ident ident,
                                const char *location, struct error *err)
{
    const char *parameters[] = {catalog->name, ident.ns, ident.name, location, "TABLE"};
    TRY(run(catalog, "BEGIN IMMEDIATE", err));
    enum status status = insert_namespace(catalog, ident.ns, NULL, err);
    if (status == STATUS_OK && catalog->has_iceberg_type)
        status = execute(catalog,
                         "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, "
                         "metadata_location, iceberg_type) VALUES (?, ?, ?, ?, ?)",
                         parameters, 5, NULL, err);
    else if (status == STATUS_OK)
        status = execute(catalog,
                         "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, "
                         "metadata_location) VALUES (?, ?, ?, ?)",
                         parameters, 4, NULL, err);
    return finish_write(catalog, status, err);
}

static enum status sqlite_create_table(struct catalog *base, struct catalog_ident ident,
                                       const struct json_value *metadata,
                                       struct catalog_table *out_table, struct error *err)
{
    struct sqlite_catalog *catalog = sqlite_of(base);
    struct catalog_table table = {0};
    const char *location = NULL;
    arena_init(&table.arena, 0);
    table.metadata = json_copy(&table.arena, metadata);
    enum status status =
        table.metadata ? enter(catalog, err) : error_set(err, STATUS_NO_MEMORY, "out of memory");
    if (status == STATUS_OK) {
        status = find_location(catalog, ident, &table.arena, &location, err);
        leave(catalog);
        if (status == STATUS_OK)
            status = error_set(err, STATUS_EXISTS, "already in the catalog");
        else if (status == STATUS_NOT_FOUND)
            status = STATUS_OK;
    }
    if (status == STATUS_OK)
        status = catalog_metadata_write(base->env, base->store, metadata, NULL, &table.arena,
                                        &table.metadata_location, err);
    if (status == STATUS_OK)
        status = enter(catalog, err);
    if (status == STATUS_OK) {
        status = insert_table(catalog, ident, table.metadata_location, err);
        leave(catalog);
    }
    if (status == STATUS_OK) {
        catalog_metadata_hint(base->store, table.metadata_location);
        *out_table = table;
    } else {
        catalog_table_deinit(&table);
    }
    return status;
}

static enum status sqlite_drop_table(struct catalog *base, struct catalog_ident ident,
                                     struct error *err)
{
    struct sqlite_catalog *catalog = sqlite_of(base);
    const char *parameters[] = {catalog->name, ident.ns, ident.name}, *sql = NULL;
    struct arena arena;
    int changed = 0;
    arena_init(&arena, 0);
    enum status status = enter(catalog, err);
    if (status == STATUS_OK) {
        status = run(catalog, "BEGIN IMMEDIATE", err);
        if (status == STATUS_OK) {
            status = with_filter(catalog,
                                 "DELETE FROM iceberg_tables WHERE catalog_name = ? "
                                 "AND table_namespace = ? AND table_name = ?",
                                 &arena, &sql, err);
            if (status == STATUS_OK)
                status = execute(catalog, sql, parameters, 3, &changed, err);
            if (status == STATUS_OK && changed == 0)
                status = error_set(err, STATUS_NOT_FOUND, "no such table");
            status = finish_write(catalog, status, err);
        }
        leave(catalog);
    }
    arena_deinit(&arena);
    return status;
}

/* ---- commits ---- */

static enum status swap_location(struct sqlite_catalog *catalog, struct catalog_ident ident,
                                 const char *from, const char *to, struct arena *arena,
                                 struct error *err)
{
    const char *parameters[] = {to, from, catalog->name, ident.ns, ident.name, from}, *sql = NULL;
    int changed = 0;
    TRY(with_filter(
        catalog,
        "UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ? "
        "WHERE catalog_name = ? AND table_namespace = ? AND table_name = ? "
        "AND metadata_location = ?",
        arena, &sql, err));
    TRY(run(catalog, "BEGIN IMMEDIATE", err));
    enum status status = execute(catalog, sql, parameters, 6, &changed, err);
    if (status == STATUS_OK && changed == 0)
        status = error_set(err, STATUS_CONFLICT, "the table has moved on from %.200s", from);
    return finish_write(catalog, status, err);
}

static enum status sqlite_commit(struct catalog *base, struct catalog_ident ident,
                                 const struct catalog_table *from, struct catalog_change *change,
                                 struct catalog_table *out_table, struct error *err)
{
    struct sqlite_catalog *catalog = sqlite_of(base);
    struct catalog_table table = {0};
    enum status status;
    arena_init(&table.arena, 0);
    table.metadata = json_copy(&table.arena, from->metadata);
    if (!table.metadata) {
        status = error_set(err, STATUS_NO_MEMORY, "out of memory");
        goto done;
    }
    TRY_OR_DONE(status, catalog_change_apply(change, from->metadata_location, &table.arena,
                                             table.metadata, err));
    TRY_OR_DONE(status, catalog_metadata_write(base->env, base->store, table.metadata,
                                               from->metadata_location, &table.arena,
                                               &table.metadata_location, err));
    TRY_OR_DONE(status, enter(catalog, err));
    status = swap_location(catalog, ident, from->metadata_location, table.metadata_location,
                           &table.arena, err);
    leave(catalog);
    if (status == STATUS_OK) {
        catalog_metadata_hint(base->store, table.metadata_location);
        catalog_metadata_clean(base->store, from->metadata, table.metadata,
                               table.metadata_location);
        *out_table = table;
    }
done:
    if (status != STATUS_OK)
        catalog_table_deinit(&table);
    return status;
}

static enum status sqlite_locations(struct catalog *base, struct catalog_ident ident,
                                    struct arena *arena, const char **out_current,
                                    const char **out_previous, struct error *err)
{
    struct sqlite_catalog *catalog = sqlite_of(base);
    const char *parameters[] = {catalog->name, ident.ns, ident.name}, *sql = NULL, **texts;
    size_t count = 0;
    TRY(enter(catalog, err));
    enum status status = find_location(catalog, ident, arena, out_current, err);
    if (status == STATUS_OK)
        status = with_filter(catalog,
                             "SELECT coalesce(previous_metadata_location, '') FROM iceberg_tables "
                             "WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?",
                             arena, &sql, err);
    if (status == STATUS_OK)
        status = query_texts(catalog, sql, parameters, 3, arena, &texts, &count, err);
    leave(catalog);
    if (status == STATUS_OK)
        *out_previous = count ? texts[0] : "";
    return status;
}

static enum status sqlite_put_back(struct catalog *base, struct catalog_ident ident,
                                   const char *current, const char *previous, struct arena *arena,
                                   struct error *err)
{
    struct sqlite_catalog *catalog = sqlite_of(base);
    TRY(enter(catalog, err));
    enum status status = swap_location(catalog, ident, current, previous, arena, err);
    leave(catalog);
    return status;
}

/* A write transaction that changes nothing but the file's change counter: setting user_version to
 * what it is writes page 1 in any case, while an UPDATE to equal values would write no page at all.
 * Its syncs and the sync of the removed journal cover what earlier writers left in the page cache.
 */
static enum status write_through(struct sqlite_catalog *catalog, struct catalog_ident ident,
                                 const char *location, struct arena *arena, struct error *err)
{
    const char *found, *sql = NULL;
    int64_t version;
    TRY(run(catalog, "BEGIN IMMEDIATE", err));
    enum status status = find_location(catalog, ident, arena, &found, err);
    if (status == STATUS_OK && strcmp(found, location) != 0)
        status = error_set(err, STATUS_CONFLICT, "the table has moved on from %.200s", location);
    if (status == STATUS_OK)
        status = query_number(catalog, "PRAGMA user_version", &version, err);
    if (status == STATUS_OK) {
        sql = arena_format(arena, "PRAGMA user_version=%lld", (long long)version);
        status = sql ? run(catalog, sql, err) : error_set(err, STATUS_NO_MEMORY, "out of memory");
    }
    return finish_write(catalog, status, err);
}

static enum status sqlite_make_durable(struct catalog *base, struct catalog_ident ident,
                                       const struct catalog_table *table, struct error *err)
{
    struct sqlite_catalog *catalog = sqlite_of(base);
    struct arena arena;
    arena_init(&arena, 0);
    enum status status = enter(catalog, err);
    if (status == STATUS_OK) {
        status = write_through(catalog, ident, table->metadata_location, &arena, err);
        leave(catalog);
    }
    if (status == STATUS_OK)
        status = store_sync_object(base->store, table->metadata_location, err);
    arena_deinit(&arena);
    return status;
}

/* ---- life ---- */

static void sqlite_close(struct catalog *base)
{
    struct sqlite_catalog *catalog = sqlite_of(base);
    disconnect(catalog);
    sqlite_vfs_destroy(catalog->vfs);
    env_mutex_destroy(catalog->mutex);
    mem_free(catalog->path);
    mem_free(catalog->name);
    mem_free(catalog);
}

static const struct catalog_ops sqlite_ops = {
    .close = sqlite_close,
    .check = sqlite_check,
    .copy = sqlite_copy,
    .namespace_create = sqlite_namespace_create,
    .namespace_list = sqlite_namespace_list,
    .table_list = sqlite_table_list,
    .load = sqlite_load,
    .create_table = sqlite_create_table,
    .drop_table = sqlite_drop_table,
    .commit = sqlite_commit,
    .make_durable = sqlite_make_durable,
    .locations = sqlite_locations,
    .put_back = sqlite_put_back,
};

enum status catalog_open_sqlite(struct env *env, struct store *store,
                                const struct catalog_sqlite_options *options,
                                struct catalog **out_catalog, struct error *err)
{
    struct sqlite_catalog *catalog = mem_alloc_zero(1, sizeof *catalog);
    if (!catalog)
        return error_set(err, STATUS_NO_MEMORY, "open catalog: out of memory");
    catalog->base = (struct catalog){.ops = &sqlite_ops, .env = env, .store = store};
    catalog->busy_timeout_ms = options->busy_timeout_ms ? (int)options->busy_timeout_ms : 5000;
    catalog->path = mem_copy_text(options->path);
    catalog->name = mem_copy_text(options->name ? options->name : "sluice");
    catalog->mutex = env_mutex_create(env);
    enum status status = catalog->path && catalog->name && catalog->mutex
                             ? sqlite_vfs_create(env, &catalog->vfs, err)
                             : error_set(err, STATUS_NO_MEMORY, "open catalog: out of memory");
    catalog->only_looks = catalog->must_exist = options->only_looks;
    if (status == STATUS_OK && !options->only_looks)
        status = sqlite_catalog_make(env, catalog->path, sqlite_vfs_name(catalog->vfs),
                                     create_tables, err);
    if (status == STATUS_OK) {
        status = enter(catalog, err);
        if (status == STATUS_OK)
            leave(catalog);
        catalog->must_exist = true;
    }
    if (status == STATUS_OK || status == STATUS_CORRUPT)
        *out_catalog = &catalog->base;
    else
        sqlite_close(&catalog->base);
    return status == STATUS_CORRUPT ? STATUS_OK : status;
}
