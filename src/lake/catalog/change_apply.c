/* SPDX-License-Identifier: Apache-2.0
 *
 * Applying the updates of a change to a table's metadata, as a REST catalog's server does:
 * snapshots and refs with their logs, schemas, specs and orders with reuse of equal ones,
 * properties. Source: Iceberg specification "Table Metadata Fields" and the REST catalog's
 * TableUpdate.
 *
 * Members that nothing here knows stay as they are; null members at the top go, because the Java
 * library fails on them. Nothing is checked that a reader would not check too.
 */
#include "lake/catalog/catalog_internal.h"

enum { PREVIOUS_VERSIONS_MAX = 100, FIRST_PARTITION_ID = 1000 };

struct applier {
    struct arena *arena;
    struct json_value *metadata;
    int64_t timestamp_ms;                                   /* the new last-updated-ms */
    int64_t added_schema_id, added_spec_id, added_order_id; /* -1: none yet; what "-1" refers to */
};

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "metadata: out of memory");
}

static enum status missing(const char *action, const char *member, struct error *err)
{
    return error_set(err, STATUS_INVALID, "update %s: no fitting %s", action, member);
}

static enum status set_value(struct applier *to, struct json_value *object, const char *key,
                             struct json_value *value, struct error *err)
{
    return json_set(to->arena, object, key, value) ? STATUS_OK : out_of_memory(err);
}

static enum status set_number(struct applier *to, const char *key, int64_t value, struct error *err)
{
    return set_value(to, to->metadata, key, json_new_i64(to->arena, value), err);
}

/* The member of that type at the top, made (empty) if it is missing or null. */
static enum status need(struct applier *to, const char *key, enum json_type type,
                        struct json_value **out_value, struct error *err)
{
    struct json_value *value = json_get(to->metadata, key);
    if (!value || value->type == JSON_NULL) {
        value = type == JSON_ARRAY ? json_new_array(to->arena) : json_new_object(to->arena);
        TRY(set_value(to, to->metadata, key, value, err));
    }
    if (value->type != type)
        return error_set(err, STATUS_CORRUPT, "metadata: %s is of the wrong type", key);
    *out_value = value;
    return STATUS_OK;
}

/* The element of a list whose `key` is that number; NULL. */
static struct json_value *find_by_id(const struct json_value *list, const char *key, int64_t id)
{
    int64_t value;
    for (struct json_value *at = list ? list->first : NULL; at; at = at->next) {
        if (json_get_i64(at, key, &value) && value == id)
            return at;
    }
    return NULL;
}

static struct json_value *find_snapshot(const struct applier *to, int64_t id)
{
    return find_by_id(json_get(to->metadata, "snapshots"), "snapshot-id", id);
}

/* ---- snapshots and refs ---- */

static enum status add_snapshot(struct applier *to, const struct json_value *update,
                                struct error *err)
{
    const struct json_value *snapshot = json_get(update, "snapshot");
    struct json_value *list;
    int64_t id, sequence = 0, last = 0, timestamp;
    if (!json_get_i64(snapshot, "snapshot-id", &id) || id < 0 ||
        !json_get_i64(snapshot, "timestamp-ms", &timestamp) ||
        !json_get_i64(snapshot, "sequence-number", &sequence))
        return missing("add-snapshot", "snapshot", err);
    if (find_snapshot(to, id))
        return error_set(err, STATUS_CONFLICT, "snapshot %lld is in the table already",
                         (long long)id);
    json_get_i64(to->metadata, "last-sequence-number", &last);
    if (sequence <= last)
        return error_set(err, STATUS_CONFLICT, "snapshot's sequence number %lld is not above %lld",
                         (long long)sequence, (long long)last);
    TRY(need(to, "snapshots", JSON_ARRAY, &list, err));
    if (!json_append(list, json_copy(to->arena, snapshot)))
        return out_of_memory(err);
    if (timestamp > to->timestamp_ms)
        to->timestamp_ms = timestamp;
    return set_number(to, "last-sequence-number", sequence, err);
}

static enum status log_main(struct applier *to, int64_t snapshot_id, struct error *err)
{
    struct json_value *list, *entry = json_new_object(to->arena);
    TRY(need(to, "snapshot-log", JSON_ARRAY, &list, err));
    if (!json_set(to->arena, entry, "timestamp-ms", json_new_i64(to->arena, to->timestamp_ms)) ||
        !json_set(to->arena, entry, "snapshot-id", json_new_i64(to->arena, snapshot_id)) ||
        !json_append(list, entry))
        return out_of_memory(err);
    return set_number(to, "current-snapshot-id", snapshot_id, err);
}

static enum status set_ref(struct applier *to, const struct json_value *update, struct error *err)
{
    static const char *const copied[] = {"type", "max-ref-age-ms", "max-snapshot-age-ms",
                                         "min-snapshots-to-keep"};
    const char *name = json_get_text(update, "ref-name");
    int64_t id, current = -1;
    struct json_value *refs, *ref = json_new_object(to->arena);
    if (!name || !json_get_i64(update, "snapshot-id", &id) || !find_snapshot(to, id))
        return missing("set-snapshot-ref", "ref-name or snapshot-id", err);
    TRY(need(to, "refs", JSON_OBJECT, &refs, err));
    TRY(set_value(to, ref, "snapshot-id", json_new_i64(to->arena, id), err));
    for (size_t i = 0; i < COUNT_OF(copied); i++) {
        const struct json_value *member = json_get(update, copied[i]);
        if (member && member->type != JSON_NULL)
            TRY(set_value(to, ref, copied[i], json_copy(to->arena, member), err));
    }
    /* What an earlier setting keeps of the ref (ages, counts) stays where the update is silent. */
    const struct json_value *old = json_get(refs, name);
    for (size_t i = 0; i < COUNT_OF(copied); i++) {
        const struct json_value *member = json_get(old, copied[i]);
        if (member && !json_get(ref, copied[i]))
            TRY(set_value(to, ref, copied[i], json_copy(to->arena, member), err));
    }
    TRY(set_value(to, refs, name, ref, err));
    json_get_i64(to->metadata, "current-snapshot-id", &current);
    return strcmp(name, "main") == 0 && current != id ? log_main(to, id, err) : STATUS_OK;
}

static void remove_ref_named(struct applier *to, const char *name)
{
    json_remove(json_get(to->metadata, "refs"), name);
    if (strcmp(name, "main") == 0)
        json_remove(to->metadata, "current-snapshot-id");
}

static enum status remove_ref(struct applier *to, const struct json_value *update,
                              struct error *err)
{
    const char *name = json_get_text(update, "ref-name");
    if (!name)
        return missing("remove-snapshot-ref", "ref-name", err);
    if (json_get(to->metadata, "refs"))
        remove_ref_named(to, name);
    return STATUS_OK;
}

/* Entries of a list that name a snapshot by `key` and that is the one removed. */
static void remove_entries(struct json_value *list, int64_t snapshot_id)
{
    struct json_value *entry;
    while ((entry = find_by_id(list, "snapshot-id", snapshot_id)))
        json_remove_child(list, entry);
}

/* History before a removed snapshot would tell of states in the wrong order: it goes too. */
static void trim_snapshot_log(struct json_value *log, int64_t snapshot_id)
{
    struct json_value *entry;
    while (log && (entry = find_by_id(log, "snapshot-id", snapshot_id))) {
        while (log->first != entry)
            json_remove_first(log, 1);
        json_remove_first(log, 1);
    }
}

static void remove_snapshot(struct applier *to, int64_t id)
{
    struct json_value *refs = json_get(to->metadata, "refs");
    for (struct json_value *ref = refs ? refs->first : NULL, *next; ref; ref = next) {
        int64_t at;
        next = ref->next;
        if (json_get_i64(ref, "snapshot-id", &at) && at == id)
            remove_ref_named(to, ref->key);
    }
    remove_entries(json_get(to->metadata, "snapshots"), id);
    remove_entries(json_get(to->metadata, "statistics"), id);
    remove_entries(json_get(to->metadata, "partition-statistics"), id);
    trim_snapshot_log(json_get(to->metadata, "snapshot-log"), id);
}

static enum status remove_snapshots(struct applier *to, const struct json_value *update,
                                    struct error *err)
{
    const struct json_value *ids = json_get(update, "snapshot-ids");
    if (!ids || ids->type != JSON_ARRAY)
        return missing("remove-snapshots", "snapshot-ids", err);
    for (const struct json_value *at = ids->first; at; at = at->next) {
        int64_t id;
        if (!json_value_i64(at, &id))
            return missing("remove-snapshots", "snapshot-ids", err);
        remove_snapshot(to, id);
    }
    return STATUS_OK;
}

/* ---- schemas, specs, orders ---- */

static int64_t highest_field_id(const struct json_value *type)
{
    static const char *const keys[] = {"id", "element-id", "key-id", "value-id"};
    int64_t highest = 0, id;
    if (type->type == JSON_OBJECT) {
        for (size_t i = 0; i < COUNT_OF(keys); i++) {
            if (json_get_i64(type, keys[i], &id) && id > highest)
                highest = id;
        }
    }
    for (const struct json_value *child = type->first; child; child = child->next) {
        bool is_nested = child->type == JSON_OBJECT || child->type == JSON_ARRAY;
        if (is_nested && (id = highest_field_id(child)) > highest)
            highest = id;
    }
    return highest;
}

/* Adds `item` to the list under `list_key` with the next free id, or finds the equal one (ids
 * apart). `body_key` is what makes two of them equal. */
static enum status add_numbered(struct applier *to, const char *list_key, const char *id_key,
                                const char *body_key, const struct json_value *item,
                                int64_t first_id, int64_t *out_id, struct error *err)
{
    struct json_value *list, *body = json_get(item, body_key);
    if (!item || item->type != JSON_OBJECT || !body)
        return missing("add", id_key, err);
    TRY(need(to, list_key, JSON_ARRAY, &list, err));
    int64_t next = first_id, id;
    for (const struct json_value *at = list->first; at; at = at->next) {
        const struct json_value *other = json_get(at, body_key);
        if (!json_get_i64(at, id_key, &id))
            continue;
        if (other && json_equal(other, body)) {
            *out_id = id;
            return STATUS_OK;
        }
        next = id >= next ? id + 1 : next;
    }
    struct json_value *copy = json_copy(to->arena, item);
    if (!copy || !json_set(to->arena, copy, id_key, json_new_i64(to->arena, next)) ||
        !json_append(list, copy))
        return out_of_memory(err);
    *out_id = next;
    return STATUS_OK;
}

static enum status raise_number(struct applier *to, const char *key, int64_t value,
                                struct error *err)
{
    int64_t old = 0;
    return json_get_i64(to->metadata, key, &old) && old >= value ? STATUS_OK
                                                                 : set_number(to, key, value, err);
}

static enum status add_schema(struct applier *to, const struct json_value *update,
                              struct error *err)
{
    const struct json_value *schema = json_get(update, "schema");
    TRY(add_numbered(to, "schemas", "schema-id", "fields", schema, 0, &to->added_schema_id, err));
    return raise_number(to, "last-column-id", highest_field_id(json_get(schema, "fields")), err);
}

static enum status add_spec(struct applier *to, const struct json_value *update, struct error *err)
{
    const struct json_value *spec = json_get(update, "spec"), *fields = json_get(spec, "fields");
    TRY(add_numbered(to, "partition-specs", "spec-id", "fields", spec, 0, &to->added_spec_id, err));
    int64_t highest = FIRST_PARTITION_ID - 1, id;
    for (const struct json_value *field = fields->first; field; field = field->next) {
        if (json_get_i64(field, "field-id", &id) && id > highest)
            highest = id;
    }
    return raise_number(to, "last-partition-id", highest, err);
}

static enum status add_order(struct applier *to, const struct json_value *update, struct error *err)
{
    return add_numbered(to, "sort-orders", "order-id", "fields", json_get(update, "sort-order"), 1,
                        &to->added_order_id, err);
}

/* The id given by the update, -1 meaning the one added last; it must be in the list. */
static enum status set_default(struct applier *to, const struct json_value *update,
                               const char *member, int64_t added_id, const char *list_key,
                               const char *id_key, const char *target, struct error *err)
{
    int64_t id;
    if (!json_get_i64(update, member, &id))
        return missing(target, member, err);
    if (id == -1)
        id = added_id;
    if (!find_by_id(json_get(to->metadata, list_key), id_key, id))
        return missing(target, member, err);
    return set_number(to, target, id, err);
}

static enum status set_current_schema(struct applier *to, const struct json_value *update,
                                      struct error *err)
{
    return set_default(to, update, "schema-id", to->added_schema_id, "schemas", "schema-id",
                       "current-schema-id", err);
}

static enum status set_default_spec(struct applier *to, const struct json_value *update,
                                    struct error *err)
{
    return set_default(to, update, "spec-id", to->added_spec_id, "partition-specs", "spec-id",
                       "default-spec-id", err);
}

static enum status set_default_order(struct applier *to, const struct json_value *update,
                                     struct error *err)
{
    return set_default(to, update, "sort-order-id", to->added_order_id, "sort-orders", "order-id",
                       "default-sort-order-id", err);
}

/* ---- the rest ---- */

static enum status assign_uuid(struct applier *to, const struct json_value *update,
                               struct error *err)
{
    const char *uuid = json_get_text(update, "uuid");
    struct uuid parsed;
    if (!uuid || !uuid_from_text(uuid, strlen(uuid), &parsed))
        return missing("assign-uuid", "uuid", err);
    return set_value(to, to->metadata, "table-uuid", json_new_text(to->arena, uuid), err);
}

static enum status upgrade_format(struct applier *to, const struct json_value *update,
                                  struct error *err)
{
    int64_t wanted, old = 0;
    json_get_i64(to->metadata, "format-version", &old);
    if (!json_get_i64(update, "format-version", &wanted) || wanted < old)
        return missing("upgrade-format-version", "format-version", err);
    if (wanted != old)
        return error_set(err, STATUS_UNSUPPORTED, "upgrade of the format version from %lld to %lld",
                         (long long)old, (long long)wanted);
    return STATUS_OK;
}

static enum status set_location(struct applier *to, const struct json_value *update,
                                struct error *err)
{
    const char *location = json_get_text(update, "location");
    if (!location)
        return missing("set-location", "location", err);
    return set_value(to, to->metadata, "location", json_new_text(to->arena, location), err);
}

static enum status set_properties(struct applier *to, const struct json_value *update,
                                  struct error *err)
{
    const struct json_value *updates = json_get(update, "updates");
    struct json_value *properties;
    if (!updates || updates->type != JSON_OBJECT)
        return missing("set-properties", "updates", err);
    TRY(need(to, "properties", JSON_OBJECT, &properties, err));
    for (const struct json_value *at = updates->first; at; at = at->next) {
        if (at->type != JSON_STRING)
            return missing("set-properties", "value (a string)", err);
        TRY(set_value(to, properties, at->key, json_new_string(to->arena, at->text, at->length),
                      err));
    }
    return STATUS_OK;
}

static enum status remove_properties(struct applier *to, const struct json_value *update,
                                     struct error *err)
{
    const struct json_value *removals = json_get(update, "removals");
    struct json_value *properties = json_get(to->metadata, "properties");
    if (!removals || removals->type != JSON_ARRAY)
        return missing("remove-properties", "removals", err);
    for (const struct json_value *at = removals->first; at && properties; at = at->next) {
        if (at->type == JSON_STRING)
            json_remove(properties, at->text);
    }
    return STATUS_OK;
}

static enum status set_statistics(struct applier *to, const struct json_value *update,
                                  struct error *err)
{
    const struct json_value *statistics = json_get(update, "statistics");
    struct json_value *list;
    int64_t id;
    if (!json_get_i64(statistics, "snapshot-id", &id))
        return missing("set-statistics", "statistics", err);
    TRY(need(to, "statistics", JSON_ARRAY, &list, err));
    remove_entries(list, id);
    return json_append(list, json_copy(to->arena, statistics)) ? STATUS_OK : out_of_memory(err);
}

static enum status remove_statistics(struct applier *to, const struct json_value *update,
                                     struct error *err)
{
    int64_t id;
    if (!json_get_i64(update, "snapshot-id", &id))
        return missing("remove-statistics", "snapshot-id", err);
    remove_entries(json_get(to->metadata, "statistics"), id);
    return STATUS_OK;
}

static enum status apply_one(struct applier *to, const struct json_value *update, struct error *err)
{
    static const struct {
        const char *action;
        enum status (*apply)(struct applier *to, const struct json_value *update,
                             struct error *err);
    } actions[] = {
        {"add-snapshot", add_snapshot},
        {"set-snapshot-ref", set_ref},
        {"set-properties", set_properties},
        {"remove-properties", remove_properties},
        {"remove-snapshots", remove_snapshots},
        {"remove-snapshot-ref", remove_ref},
        {"add-schema", add_schema},
        {"set-current-schema", set_current_schema},
        {"add-spec", add_spec},
        {"set-default-spec", set_default_spec},
        {"add-sort-order", add_order},
        {"set-default-sort-order", set_default_order},
        {"assign-uuid", assign_uuid},
        {"upgrade-format-version", upgrade_format},
        {"set-location", set_location},
        {"set-statistics", set_statistics},
        {"remove-statistics", remove_statistics},
    };
    const char *action = json_get_text(update, "action");
    for (size_t i = 0; action && i < COUNT_OF(actions); i++) {
        if (strcmp(action, actions[i].action) == 0)
            return actions[i].apply(to, update, err);
    }
    return error_set(err, STATUS_INVALID, "unknown update \"%.100s\"", action ? action : "");
}

static void remove_nulls(struct json_value *metadata)
{
    for (struct json_value *at = metadata->first, *next; at; at = next) {
        next = at->next;
        if (at->type == JSON_NULL)
            json_remove_child(metadata, at);
    }
}

/* Where the state before this one is: kept for as many versions as the table says. */
static enum status log_previous(struct applier *to, const char *base_location, int64_t base_ms,
                                struct error *err)
{
    struct json_value *list, *entry = json_new_object(to->arena);
    const char *setting =
        json_get_text(json_get(to->metadata, "properties"), "write.metadata.previous-versions-max");
    uint64_t kept = PREVIOUS_VERSIONS_MAX;
    if (setting && (!parse_u64(setting, strlen(setting), &kept) || kept == 0))
        kept = 1;
    TRY(need(to, "metadata-log", JSON_ARRAY, &list, err));
    if (!json_set(to->arena, entry, "timestamp-ms", json_new_i64(to->arena, base_ms)) ||
        !json_set(to->arena, entry, "metadata-file", json_new_text(to->arena, base_location)) ||
        !json_append(list, entry))
        return out_of_memory(err);
    if (list->count > kept)
        json_remove_first(list, list->count - (size_t)kept);
    return STATUS_OK;
}

enum status catalog_change_apply(const struct catalog_change *change, const char *base_location,
                                 struct arena *arena, struct json_value *metadata,
                                 struct error *err)
{
    int64_t base_ms = 0;
    json_get_i64(metadata, "last-updated-ms", &base_ms);
    struct applier to = {
        .arena = arena,
        .metadata = metadata,
        .timestamp_ms = change->timestamp_ms > base_ms ? change->timestamp_ms : base_ms,
        .added_schema_id = -1,
        .added_spec_id = -1,
        .added_order_id = -1,
    };
    remove_nulls(metadata);
    for (const struct json_value *at = change->updates->first; at; at = at->next)
        TRY(apply_one(&to, at, err));
    if (base_location)
        TRY(log_previous(&to, base_location, base_ms, err));
    return set_number(&to, "last-updated-ms", to.timestamp_ms, err);
}
