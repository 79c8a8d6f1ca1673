/* SPDX-License-Identifier: Apache-2.0
 *
 * Catalogs: which metadata file is a table's current one, and how it moves. One interface in the
 * shape of the Iceberg REST protocol (requirements and updates as its JSON objects); the SQL
 * implementation here plays the server's part itself: it applies the updates to the base that was
 * loaded, writes a new metadata file and swaps the location on condition that the base still
 * stands.
 *
 * Outcomes of a commit (E10, E12):
 *   OK               applied, and it lasts through a power cut
 *   CONFLICT         definitely not applied: the table moved, or a requirement does not hold
 *   UNKNOWN_OUTCOME  may be applied or not, now or later: load the table and look
 *   anything else    definitely not applied
 * Any thread; calls on one handle run one after another (a mutex is held over the database's I/O,
 * because a SQLite connection is one conversation).
 */
#ifndef SLUICE_LAKE_CATALOG_CATALOG_H
#define SLUICE_LAKE_CATALOG_CATALOG_H

#include "format/json/json.h"
#include "lake/store/store.h"

struct catalog;

/* `ns` is the dotted namespace ("otel", "a.b"). */
struct catalog_ident {
    const char *ns, *name;
};

/* A table's metadata as it stood. The tree is for reading; the next state comes from a commit. */
struct catalog_table {
    struct arena arena;            /* owns all below */
    const char *metadata_location; /* as the catalog spells it; the condition of a commit */
    struct json_value *metadata;
};

void catalog_table_deinit(struct catalog_table *table); /* accepts zeroed */

/* Reads and parses the metadata file at `location`, without a catalog; compressed ones too. CORRUPT
 * when it is missing or no metadata. */
enum status catalog_metadata_read(struct store *store, const char *location,
                                  struct catalog_table *out_table, struct error *err) MUST_CHECK;

/* ---- opening ---- */

struct catalog_sqlite_options {
    const char *path;         /* the database; made if missing, its directory must exist */
    const char *name;         /* catalog_name of all rows; NULL: "sluice" */
    uint64_t busy_timeout_ms; /* 0: 5,000; how long to wait for other programs' locks */
    bool only_looks;          /* none is made; where nothing can be written it is opened to read */
};

/* PyIceberg's SqlCatalog tables, with iceberg_type (V1) or without (V0), whichever is there; new
 * ones are V1. Borrows `env` and `store` for its life; `store` serves all tables of the catalog. A
 * damaged file opens too: calls answer CORRUPT for as long as it stands there. */
enum status catalog_open_sqlite(struct env *env, struct store *store,
                                const struct catalog_sqlite_options *options,
                                struct catalog **out_catalog, struct error *err) MUST_CHECK;
void catalog_close(struct catalog *catalog); /* accepts NULL */

/* Reads the whole catalog. CORRUPT: it is damaged itself, as against a table's metadata (E17); the
 * message names the file and says how. */
enum status catalog_check(struct catalog *catalog, struct error *err) MUST_CHECK;

/* Writes the whole catalog, as it stands, to a new file `path`; synced, but for its directory. */
enum status catalog_copy(struct catalog *catalog, const char *path, struct error *err) MUST_CHECK;

/* ---- namespaces and names ---- */

enum status catalog_namespace_create(struct catalog *catalog, const char *ns,
                                     struct error *err) MUST_CHECK; /* EXISTS */
/* Sorted, owned by `arena`; includes namespaces that only tables name. */
enum status catalog_namespace_list(struct catalog *catalog, struct arena *arena,
                                   const char ***out_names, size_t *out_count,
                                   struct error *err) MUST_CHECK;
enum status catalog_table_list(struct catalog *catalog, const char *ns, struct arena *arena,
                               const char ***out_names, size_t *out_count,
                               struct error *err) MUST_CHECK;

/* ---- tables ---- */

/* NOT_FOUND; CORRUPT or NOT_FOUND-in-store turned into CORRUPT when the metadata file cannot be
 * read (E17; the message names the file). Reads past every cache. */
enum status catalog_load(struct catalog *catalog, struct catalog_ident ident,
                         struct catalog_table *out_table, struct error *err) MUST_CHECK;

/* Writes `metadata` (a whole format-version 2 document) as the first
 * version. EXISTS; UNKNOWN_OUTCOME. Makes the namespace if it is missing. */
enum status catalog_create_table(struct catalog *catalog, struct catalog_ident ident,
                                 const struct json_value *metadata, struct catalog_table *out_table,
                                 struct error *err) MUST_CHECK;

/* Takes the table's row away, not its files. NOT_FOUND; UNKNOWN_OUTCOME. */
enum status catalog_drop_table(struct catalog *catalog, struct catalog_ident ident,
                               struct error *err) MUST_CHECK;

/* ---- changes ---- */

/* Requirements and updates of one commit, all in the change's arena. The functions that add set
 * `failed` when memory is out; catalog_commit then answers NO_MEMORY. */
struct catalog_change {
    struct arena arena;
    struct json_value *requirements, *updates; /* REST's objects */
    bool failed;
    int64_t timestamp_ms; /* the new last-updated-ms; raised to the base's where it is below (E9) */
};

void catalog_change_init(struct catalog_change *change, int64_t timestamp_ms);
void catalog_change_deinit(struct catalog_change *change); /* accepts zeroed */

void catalog_require_uuid(struct catalog_change *change, const char *uuid);
/* `snapshot_id` -1: the ref must not exist. */
void catalog_require_ref(struct catalog_change *change, const char *ref, int64_t snapshot_id);
/* Ours, checked against the base (which the swap then asserts): E9 and epochs. A NULL value: the
 * property must be missing. */
void catalog_require_last_sequence(struct catalog_change *change, int64_t last_sequence_number);
void catalog_require_last_updated(struct catalog_change *change, int64_t last_updated_ms);
void catalog_require_property(struct catalog_change *change, const char *key, const char *value);

/* Copies the snapshot object. */
void catalog_update_add_snapshot(struct catalog_change *change, const struct json_value *snapshot);
void catalog_update_set_ref(struct catalog_change *change, const char *ref, int64_t snapshot_id);
void catalog_update_set_property(struct catalog_change *change, const char *key, const char *value);
void catalog_update_remove_property(struct catalog_change *change, const char *key);
/* Any other update by its REST object, copied: add-schema, set-current-schema, add-spec, ... */
void catalog_update_add(struct catalog_change *change, const struct json_value *update);

/* `base` is what catalog_load or an earlier commit gave. On OK `out_table` holds the new state. */
enum status catalog_commit(struct catalog *catalog, struct catalog_ident ident,
                           const struct catalog_table *base, struct catalog_change *change,
                           struct catalog_table *out_table, struct error *err) MUST_CHECK;

/* Makes what was learned by reading `table` last (E10): one own synced write transaction that also
 * sees that the table still stands there, then metadata file and directories synced. CONFLICT: it
 * moved meanwhile, load again. */
enum status catalog_make_durable(struct catalog *catalog, struct catalog_ident ident,
                                 const struct catalog_table *table, struct error *err) MUST_CHECK;

/* For a table whose current metadata cannot be read (E17): the one before it, as the catalog
 * remembers it. Both locations are owned by `arena`. With `apply` the table is put back to it;
 * without, nothing is written. USAGE: the current metadata is good. CORRUPT: so is not the
 * previous. */
struct catalog_repair {
    const char *current, *previous;
    const char *damage; /* what is wrong with the current one */
};
enum status catalog_repair_table(struct catalog *catalog, struct catalog_ident ident, bool apply,
                                 struct arena *arena, struct catalog_repair *out_repair,
                                 struct error *err) MUST_CHECK;

/* What the SQL catalogs do with a change, also for tests: `metadata` is changed in place (its
 * nodes and the new ones in `arena`); `base_location` goes to the metadata-log. CONFLICT for a
 * requirement that does not hold, INVALID for an update that makes no sense. */
enum status catalog_change_check(const struct catalog_change *change,
                                 const struct json_value *metadata, struct error *err) MUST_CHECK;
enum status catalog_change_apply(const struct catalog_change *change, const char *base_location,
                                 struct arena *arena, struct json_value *metadata,
                                 struct error *err) MUST_CHECK;

#endif
