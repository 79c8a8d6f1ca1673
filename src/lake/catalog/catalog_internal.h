/* SPDX-License-Identifier: Apache-2.0
 *
 * Between the files of the catalog module: what a kind of catalog supplies, metadata files, and
 * SQLite's view of struct env.
 */
#ifndef SLUICE_LAKE_CATALOG_CATALOG_INTERNAL_H
#define SLUICE_LAKE_CATALOG_CATALOG_INTERNAL_H

#include "lake/catalog/catalog.h"

struct catalog_ops {
    void (*close)(struct catalog *catalog);
    enum status (*check)(struct catalog *catalog, struct error *err);
    enum status (*copy)(struct catalog *catalog, const char *path, struct error *err);
    enum status (*namespace_create)(struct catalog *catalog, const char *ns, struct error *err);
    enum status (*namespace_list)(struct catalog *catalog, struct arena *arena,
                                  const char ***out_names, size_t *out_count, struct error *err);
    enum status (*table_list)(struct catalog *catalog, const char *ns, struct arena *arena,
                              const char ***out_names, size_t *out_count, struct error *err);
    enum status (*load)(struct catalog *catalog, struct catalog_ident ident,
                        struct catalog_table *out_table, struct error *err);
    enum status (*create_table)(struct catalog *catalog, struct catalog_ident ident,
                                const struct json_value *metadata, struct catalog_table *out_table,
                                struct error *err);
    enum status (*drop_table)(struct catalog *catalog, struct catalog_ident ident,
                              struct error *err);
    enum status (*commit)(struct catalog *catalog, struct catalog_ident ident,
                          const struct catalog_table *base, struct catalog_change *change,
                          struct catalog_table *out_table, struct error *err);
    enum status (*make_durable)(struct catalog *catalog, struct catalog_ident ident,
                                const struct catalog_table *table, struct error *err);
    /* The locations that the catalog has for the table; `previous` "" if none. */
    enum status (*locations)(struct catalog *catalog, struct catalog_ident ident,
                             struct arena *arena, const char **out_current,
                             const char **out_previous, struct error *err);
    enum status (*put_back)(struct catalog *catalog, struct catalog_ident ident,
                            const char *current, const char *previous, struct arena *arena,
                            struct error *err);
};

struct catalog {
    const struct catalog_ops *ops;
    struct env *env;
    struct store *store;
};

/* ---- metadata files ---- */

/* Writes `metadata` durably under a new name, numbered after `base_location` (NULL: 0); the name is
 * owned by `arena`. */
enum status catalog_metadata_write(struct env *env, struct store *store,
                                   const struct json_value *metadata, const char *base_location,
                                   struct arena *arena, const char **out_location,
                                   struct error *err) MUST_CHECK;
/* Points metadata/version-hint.text at it, for readers that open a plain directory. Best effort. */
void catalog_metadata_hint(struct store *store, const char *location);
/* After a commit that lasts: deletes the metadata files that have left the metadata-log, where the
 * table says so (write.metadata.delete-after-commit.enabled). Best effort. */
void catalog_metadata_clean(struct store *store, const struct json_value *before,
                            const struct json_value *after, const char *location);

/* ---- SQLite over struct env ---- */

struct sqlite_vfs;

/* Registers a VFS of its own name; borrows `env`. Destroy it after its last connection. */
enum status sqlite_vfs_create(struct env *env, struct sqlite_vfs **out_vfs,
                              struct error *err) MUST_CHECK;
void sqlite_vfs_destroy(struct sqlite_vfs *vfs); /* accepts NULL */
const char *sqlite_vfs_name(const struct sqlite_vfs *vfs);

/* Makes a catalog file with the tables of that SQL, unless something is there already. */
enum status sqlite_catalog_make(struct env *env, const char *path, const char *vfs_name,
                                const char *tables, struct error *err) MUST_CHECK;

#endif
