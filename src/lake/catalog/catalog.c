/* SPDX-License-Identifier: Apache-2.0
 *
 * The way from a call to the kind of catalog behind it.
 */
#include "lake/catalog/catalog_internal.h"

void catalog_table_deinit(struct catalog_table *table)
{
    arena_deinit(&table->arena);
    *table = (struct catalog_table){0};
}

void catalog_close(struct catalog *catalog)
{
    if (catalog)
        catalog->ops->close(catalog);
}

enum status catalog_check(struct catalog *catalog, struct error *err)
{
    return catalog->ops->check(catalog, err);
}

enum status catalog_copy(struct catalog *catalog, const char *path, struct error *err)
{
    return catalog->ops->copy(catalog, path, err);
}

/* Names become path segments and parts of dotted namespaces: refuse what would change their
 * meaning. */
static enum status check_name(const char *kind, const char *name, bool is_dotted, struct error *err)
{
    bool segment_empty = true;
    for (const char *at = name; *at; at++) {
        if (*at == '/' || (unsigned char)*at < 0x20 ||
            (*at == '.' && (!is_dotted || segment_empty)))
            return error_set(err, STATUS_INVALID, "%s name \"%.200s\"", kind, name);
        segment_empty = *at == '.';
    }
    if (segment_empty || strlen(name) > 255)
        return error_set(err, STATUS_INVALID, "%s name \"%.200s\"", kind, name);
    return STATUS_OK;
}

static enum status check_ident(struct catalog_ident ident, struct error *err)
{
    TRY(check_name("namespace", ident.ns, true, err));
    return check_name("table", ident.name, false, err);
}

enum status catalog_namespace_create(struct catalog *catalog, const char *ns, struct error *err)
{
    TRY(check_name("namespace", ns, true, err));
    return catalog->ops->namespace_create(catalog, ns, err);
}

enum status catalog_namespace_list(struct catalog *catalog, struct arena *arena,
                                   const char ***out_names, size_t *out_count, struct error *err)
{
    return catalog->ops->namespace_list(catalog, arena, out_names, out_count, err);
}

enum status catalog_table_list(struct catalog *catalog, const char *ns, struct arena *arena,
                               const char ***out_names, size_t *out_count, struct error *err)
{
    return catalog->ops->table_list(catalog, ns, arena, out_names, out_count, err);
}

enum status catalog_load(struct catalog *catalog, struct catalog_ident ident,
                         struct catalog_table *out_table, struct error *err)
{
    TRY(check_ident(ident, err));
    if (catalog->ops->load(catalog, ident, out_table, err) != STATUS_OK)
        return error_prefix(err, "load table %.100s.%.100s", ident.ns, ident.name);
    return STATUS_OK;
}

enum status catalog_create_table(struct catalog *catalog, struct catalog_ident ident,
                                 const struct json_value *metadata, struct catalog_table *out_table,
                                 struct error *err)
{
    TRY(check_ident(ident, err));
    if (catalog->ops->create_table(catalog, ident, metadata, out_table, err) != STATUS_OK)
        return error_prefix(err, "create table %.100s.%.100s", ident.ns, ident.name);
    return STATUS_OK;
}

enum status catalog_drop_table(struct catalog *catalog, struct catalog_ident ident,
                               struct error *err)
{
    TRY(check_ident(ident, err));
    if (catalog->ops->drop_table(catalog, ident, err) != STATUS_OK)
        return error_prefix(err, "drop table %.100s.%.100s", ident.ns, ident.name);
    return STATUS_OK;
}

enum status catalog_commit(struct catalog *catalog, struct catalog_ident ident,
                           const struct catalog_table *base, struct catalog_change *change,
                           struct catalog_table *out_table, struct error *err)
{
    TRY(check_ident(ident, err));
    enum status status = change->failed ? error_set(err, STATUS_NO_MEMORY, "out of memory")
                                        : catalog_change_check(change, base->metadata, err);
    if (status == STATUS_OK)
        status = catalog->ops->commit(catalog, ident, base, change, out_table, err);
    if (status != STATUS_OK)
        return error_prefix(err, "commit to table %.100s.%.100s", ident.ns, ident.name);
    return STATUS_OK;
}

enum status catalog_make_durable(struct catalog *catalog, struct catalog_ident ident,
                                 const struct catalog_table *table, struct error *err)
{
    TRY(check_ident(ident, err));
    if (catalog->ops->make_durable(catalog, ident, table, err) != STATUS_OK)
        return error_prefix(err, "confirm table %.100s.%.100s", ident.ns, ident.name);
    return STATUS_OK;
}

enum status catalog_repair_table(struct catalog *catalog, struct catalog_ident ident, bool apply,
                                 struct arena *arena, struct catalog_repair *out_repair,
                                 struct error *err)
{
    struct catalog_repair repair = {0};
    struct catalog_table table = {0};
    struct error damage;
    TRY(catalog->ops->locations(catalog, ident, arena, &repair.current, &repair.previous, err));
    if (catalog_metadata_read(catalog->store, repair.current, &table, &damage) == STATUS_OK) {
        catalog_table_deinit(&table);
        return error_set(err, STATUS_USAGE, "%s.%s: its metadata is good, nothing to repair",
                         ident.ns, ident.name);
    }
    repair.damage = arena_copy_text(arena, damage.message, strlen(damage.message));
    if (!repair.previous[0])
        return error_set(err, STATUS_CORRUPT,
                         "%s.%s: %.200s; the catalog knows no metadata before it", ident.ns,
                         ident.name, damage.message);
    if (catalog_metadata_read(catalog->store, repair.previous, &table, &damage) != STATUS_OK)
        return error_set(err, STATUS_CORRUPT,
                         "%s.%s: neither can the metadata before it be read: put a copy of the "
                         "warehouse back; or drop the table from the catalog, then sluice tables "
                         "rebind %s.%s --confirm --republish makes it anew of what the log still "
                         "has: %.200s",
                         ident.ns, ident.name, ident.ns, ident.name, damage.message);
    catalog_table_deinit(&table);
    if (!repair.damage)
        return error_set(err, STATUS_NO_MEMORY, "out of memory");
    if (apply) {
        TRY(catalog->ops->put_back(catalog, ident, repair.current, repair.previous, arena, err));
        catalog_metadata_hint(catalog->store, repair.previous);
    }
    *out_repair = repair;
    return STATUS_OK;
}
