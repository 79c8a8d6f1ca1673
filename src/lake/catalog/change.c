/* SPDX-License-Identifier: Apache-2.0
 *
 * Building a change, and checking its requirements against a table's metadata. The requirements
 * that begin with "sluice-" are ours: servers of the REST protocol do not know them, there they are
 * checked against the base before it is sent.
 */
#include "lake/catalog/catalog_internal.h"

enum { CHANGE_BYTES_MAX = 64 << 20 };

void catalog_change_init(struct catalog_change *change, int64_t timestamp_ms)
{
    *change = (struct catalog_change){.timestamp_ms = timestamp_ms};
    arena_init(&change->arena, CHANGE_BYTES_MAX);
    change->requirements = json_new_array(&change->arena);
    change->updates = json_new_array(&change->arena);
    change->failed = !change->requirements || !change->updates;
}

void catalog_change_deinit(struct catalog_change *change)
{
    arena_deinit(&change->arena);
    *change = (struct catalog_change){0};
}

/* An object with `kind_key`: kind, appended to `list`; NULL (and failed) without memory. */
static struct json_value *add_object(struct catalog_change *change, struct json_value *list,
                                     const char *kind_key, const char *kind)
{
    struct json_value *object = json_new_object(&change->arena);
    if (change->failed ||
        !json_set(&change->arena, object, kind_key, json_new_text(&change->arena, kind)) ||
        !json_append(list, object)) {
        change->failed = true;
        return NULL;
    }
    return object;
}

static void set_member(struct catalog_change *change, struct json_value *object, const char *key,
                       struct json_value *value)
{
    if (!json_set(&change->arena, object, key, value))
        change->failed = true;
}

static struct json_value *add_requirement(struct catalog_change *change, const char *type)
{
    return add_object(change, change->requirements, "type", type);
}

static struct json_value *add_update(struct catalog_change *change, const char *action)
{
    return add_object(change, change->updates, "action", action);
}

static struct json_value *id_or_null(struct catalog_change *change, int64_t id)
{
    return id < 0 ? json_new_null(&change->arena) : json_new_i64(&change->arena, id);
}

void catalog_require_uuid(struct catalog_change *change, const char *uuid)
{
    struct json_value *object = add_requirement(change, "assert-table-uuid");
    set_member(change, object, "uuid", json_new_text(&change->arena, uuid));
}

void catalog_require_ref(struct catalog_change *change, const char *ref, int64_t snapshot_id)
{
    struct json_value *object = add_requirement(change, "assert-ref-snapshot-id");
    set_member(change, object, "ref", json_new_text(&change->arena, ref));
    set_member(change, object, "snapshot-id", id_or_null(change, snapshot_id));
}

void catalog_require_last_sequence(struct catalog_change *change, int64_t last_sequence_number)
{
    struct json_value *object = add_requirement(change, "sluice-assert-last-sequence-number");
    set_member(change, object, "value", json_new_i64(&change->arena, last_sequence_number));
}

void catalog_require_last_updated(struct catalog_change *change, int64_t last_updated_ms)
{
    struct json_value *object = add_requirement(change, "sluice-assert-last-updated-ms");
    set_member(change, object, "value", json_new_i64(&change->arena, last_updated_ms));
}

void catalog_require_property(struct catalog_change *change, const char *key, const char *value)
{
    struct json_value *object = add_requirement(change, "sluice-assert-property");
    set_member(change, object, "key", json_new_text(&change->arena, key));
    set_member(change, object, "value",
               value ? json_new_text(&change->arena, value) : json_new_null(&change->arena));
}

void catalog_update_add_snapshot(struct catalog_change *change, const struct json_value *snapshot)
{
    struct json_value *object = add_update(change, "add-snapshot");
    set_member(change, object, "snapshot", json_copy(&change->arena, snapshot));
}

void catalog_update_set_ref(struct catalog_change *change, const char *ref, int64_t snapshot_id)
{
    struct json_value *object = add_update(change, "set-snapshot-ref");
    set_member(change, object, "ref-name", json_new_text(&change->arena, ref));
    set_member(change, object, "type", json_new_text(&change->arena, "branch"));
    set_member(change, object, "snapshot-id", json_new_i64(&change->arena, snapshot_id));
}

void catalog_update_set_property(struct catalog_change *change, const char *key, const char *value)
{
    /* One update holds all that follow one another. */
    struct json_value *object = change->failed ? NULL : change->updates->last;
    const char *action = json_get_text(object, "action");
    if (!action || strcmp(action, "set-properties") != 0) {
        object = add_update(change, "set-properties");
        set_member(change, object, "updates", json_new_object(&change->arena));
    }
    set_member(change, json_get(object, "updates"), key, json_new_text(&change->arena, value));
}

void catalog_update_remove_property(struct catalog_change *change, const char *key)
{
    struct json_value *object = add_update(change, "remove-properties");
    struct json_value *removals = json_new_array(&change->arena);
    if (!json_append(removals, json_new_text(&change->arena, key)))
        change->failed = true;
    else
        set_member(change, object, "removals", removals);
}

void catalog_update_add(struct catalog_change *change, const struct json_value *update)
{
    struct json_value *copy = json_copy(&change->arena, update);
    if (change->failed || !json_append(change->updates, copy))
        change->failed = true;
}

/* ---- requirements ---- */

static enum status mismatch(const char *what, struct error *err)
{
    return error_set(err, STATUS_CONFLICT, "the table's %s is not the expected one", what);
}

/* The snapshot of a ref, or -1. Old metadata has only current-snapshot-id for main. */
static int64_t ref_snapshot(const struct json_value *metadata, const char *ref)
{
    int64_t id = -1;
    if (json_get_i64(json_get(json_get(metadata, "refs"), ref), "snapshot-id", &id))
        return id;
    if (strcmp(ref, "main") == 0)
        json_get_i64(metadata, "current-snapshot-id", &id);
    return id;
}

/* Whether both are numbers of equal value, or (for `b` null) `a` is missing. */
static bool same_number(const struct json_value *metadata, const char *key,
                        const struct json_value *expected)
{
    int64_t a, b;
    return json_get_i64(metadata, key, &a) && json_value_i64(expected, &b) && a == b;
}

static enum status check_ref(const struct json_value *requirement,
                             const struct json_value *metadata, struct error *err)
{
    const char *ref = json_get_text(requirement, "ref");
    int64_t expected = -1;
    if (!ref)
        return error_set(err, STATUS_INVALID, "assert-ref-snapshot-id without ref");
    json_get_i64(requirement, "snapshot-id", &expected);
    if (ref_snapshot(metadata, ref) == expected)
        return STATUS_OK;
    return error_set(err, STATUS_CONFLICT, "ref %.100s is not at snapshot %lld but at %lld", ref,
                     (long long)expected, (long long)ref_snapshot(metadata, ref));
}

static enum status check_property(const struct json_value *requirement,
                                  const struct json_value *metadata, struct error *err)
{
    const char *key = json_get_text(requirement, "key");
    const char *expected = json_get_text(requirement, "value");
    if (!key)
        return error_set(err, STATUS_INVALID, "sluice-assert-property without key");
    const char *value = json_get_text(json_get(metadata, "properties"), key);
    if (value && expected ? strcmp(value, expected) == 0 : !value && !expected)
        return STATUS_OK;
    return error_set(err, STATUS_CONFLICT, "property %.150s is \"%.100s\", not \"%.100s\"", key,
                     value ? value : "(missing)", expected ? expected : "(missing)");
}

static enum status check_one(const struct json_value *requirement,
                             const struct json_value *metadata, struct error *err)
{
    static const struct {
        const char *type, *member, *key;
    } numbers[] = {
        {"assert-last-assigned-field-id", "last-assigned-field-id", "last-column-id"},
        {"assert-current-schema-id", "current-schema-id", "current-schema-id"},
        {"assert-last-assigned-partition-id", "last-assigned-partition-id", "last-partition-id"},
        {"assert-default-spec-id", "default-spec-id", "default-spec-id"},
        {"assert-default-sort-order-id", "default-sort-order-id", "default-sort-order-id"},
        {"sluice-assert-last-sequence-number", "value", "last-sequence-number"},
        {"sluice-assert-last-updated-ms", "value", "last-updated-ms"},
    };
    const char *type = json_get_text(requirement, "type");
    if (!type)
        return error_set(err, STATUS_INVALID, "requirement without type");
    if (strcmp(type, "assert-ref-snapshot-id") == 0)
        return check_ref(requirement, metadata, err);
    if (strcmp(type, "sluice-assert-property") == 0)
        return check_property(requirement, metadata, err);
    if (strcmp(type, "assert-table-uuid") == 0) {
        const char *uuid = json_get_text(metadata, "table-uuid");
        const char *expected = json_get_text(requirement, "uuid");
        bool is_same = uuid && expected && strcasecmp(uuid, expected) == 0;
        return is_same ? STATUS_OK : mismatch("uuid", err);
    }
    if (strcmp(type, "assert-create") == 0)
        return error_set(err, STATUS_CONFLICT, "the table exists");
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        if (strcmp(type, numbers[i].type) == 0)
            return same_number(metadata, numbers[i].key, json_get(requirement, numbers[i].member))
                       ? STATUS_OK
                       : mismatch(numbers[i].key, err);
    }
    return error_set(err, STATUS_INVALID, "unknown requirement \"%.100s\"", type);
}

enum status catalog_change_check(const struct catalog_change *change,
                                 const struct json_value *metadata, struct error *err)
{
    for (const struct json_value *at = change->requirements->first; at; at = at->next)
        TRY(check_one(at, metadata, err));
    return STATUS_OK;
}
