/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /v1/log of docs/log_port.md as a look. Whatever is missing is a fault, and never zero: who
 * decides by a look takes it for the log's word.
 */
#include <stdio.h>

#include "flow/source/remote_internal.h"

enum { LOOK_BYTES_MAX = 64 << 20 };

bool look_get_u64(const struct json_value *json, const char *key, uint64_t *out)
{
    int64_t value;
    if (!json_get_i64(json, key, &value) || value < 0)
        return false;
    *out = (uint64_t)value;
    return true;
}

bool look_chain(const char *text, uint64_t *out)
{
    return text && hex_u64(text, strlen(text), out);
}

static bool get_position(const struct json_value *json, const char *key, struct wal_position *out)
{
    const struct json_value *position = json_get(json, key);
    return position && look_get_u64(position, "seq", &out->seq) &&
           look_chain(json_get_text(position, "chain"), &out->chain);
}

bool look_pending(const struct json_value *json, struct wal_pending *out)
{
    const struct json_value *pending = json_get(json, "pending");
    int64_t oldest_ns;
    if (!pending || !look_get_u64(pending, "entries", &out->entries) ||
        !look_get_u64(pending, "rows", &out->rows) ||
        !look_get_u64(pending, "bytes", &out->bytes) ||
        !look_get_u64(pending, "last_seq", &out->last_seq) ||
        !json_get_i64(pending, "oldest_ns", &oldest_ns))
        return false;
    out->oldest_wall_ns = oldest_ns;
    return true;
}

bool look_damage(const struct json_value *json, uint32_t group, struct wal_damage *out,
                 bool *out_is_there)
{
    const struct json_value *damage = json_get(json, "damage");
    const char *where = json_get_text(damage, "where");
    *out_is_there = damage != NULL;
    if (!damage)
        return true;
    out->group = group;
    snprintf(out->where, sizeof out->where, "%s", where ? where : "");
    return where && look_get_u64(damage, "first", &out->seq_first) &&
           look_get_u64(damage, "last", &out->seq_last);
}

static bool is_group(const struct json_value *json, uint32_t wanted)
{
    uint64_t group;
    return look_get_u64(json, "group", &group) && group == wanted;
}

static bool read_group(const struct json_value *json, uint32_t number, struct look_group *group)
{
    if (!is_group(json, number) || !get_position(json, "end", &group->end) ||
        !look_get_u64(json_get(json, "end"), "term", &group->end_term) ||
        !get_position(json, "started", &group->started) ||
        !look_get_u64(json, "reclaimed_through", &group->reclaimed_through))
        return false;
    group->is_recovered = json_get(json, "recovered_to") != NULL;
    return group->started.seq <= group->end.seq &&
           (!group->is_recovered || get_position(json, "recovered_to", &group->recovered_to));
}

static bool read_part(const struct json_value *json, uint32_t number, int64_t clock_ns,
                      struct look_part *part)
{
    part->has_ack = json_get(json, "committed") || json_get(json, "through");
    if (part->has_ack && (!get_position(json, "committed", &part->ack.committed) ||
                          !get_position(json, "through", &part->ack.through)))
        return false;
    if (!is_group(json, number) || !look_pending(json, &part->pending) ||
        !look_damage(json, number, &part->damage, &part->is_damaged))
        return false;
    if (part->pending.oldest_wall_ns)
        part->pending.oldest_wall_ns =
            (int64_t)((uint64_t)part->pending.oldest_wall_ns + (uint64_t)clock_ns);
    return true;
}

static bool read_table(const struct json_value *json, struct look *look, struct look_table *table)
{
    const struct json_value *groups = json_get(json, "groups");
    const char *name = json_get_text(json, "name");
    uint64_t id;
    if (!name || strlen(name) > WAL_TABLE_NAME_MAX || !look_get_u64(json, "id", &id) || id == 0 ||
        id > UINT32_MAX || !json_get_bool(json, "is_awaited", &table->is_awaited) || !groups ||
        groups->count != look->group_count)
        return false;
    table->name = arena_copy_text(&look->arena, name, strlen(name));
    table->parts = arena_alloc_zero(&look->arena, look->group_count, sizeof *table->parts);
    table->id = (uint32_t)id;
    if (!table->name || !table->parts)
        return false;
    const struct json_value *at = groups->first;
    for (uint32_t g = 0; g < look->group_count; g++, at = at->next)
        if (!read_part(at, g, look->clock_ns, &table->parts[g]))
            return false;
    return true;
}

static bool read_lost(const struct json_value *json, struct look_lost *lost)
{
    uint64_t group;
    if (!look_get_u64(json, "group", &group) || group > UINT32_MAX ||
        !look_get_u64(json, "first", &lost->first) || !look_get_u64(json, "last", &lost->last))
        return false;
    lost->group = (uint32_t)group;
    return true;
}

static bool read_log(const struct json_value *json, int64_t now_wall_ns, struct look *look)
{
    int64_t now_ns;
    const char *log = json_get_text(json, "log"), *from = json_get_text(json, "published_from");
    if (!log || !log_id_from_text(log, strlen(log), &look->log) || !from ||
        !look_get_u64(json, "incarnation", &look->incarnation) ||
        !look_get_u64(json, "term", &look->term) ||
        !look_chain(json_get_text(json, "start"), &look->start) ||
        !look_get_u64(json, "fenced_by", &look->fenced_by) ||
        !json_get_i64(json, "now_ns", &now_ns))
        return false;
    look->clock_ns = now_wall_ns ? (int64_t)((uint64_t)now_wall_ns - (uint64_t)now_ns) : 0;
    look->is_published_elsewhere = strcmp(from, "log_port") == 0;
    return true;
}

static bool is_array(const struct json_value *json)
{
    return json && json->type == JSON_ARRAY;
}

static bool read_all(const struct json_value *json, int64_t now_wall_ns, struct look *look)
{
    const struct json_value *groups = json_get(json, "groups"), *tables = json_get(json, "tables"),
                            *lost = json_get(json, "recovered_without"), *at;
    if (!is_array(groups) || !is_array(tables) || !is_array(lost) || groups->count == 0 ||
        groups->count > SOURCE_GROUPS_MAX || !read_log(json, now_wall_ns, look))
        return false;
    look->group_count = groups->count;
    look->table_count = tables->count;
    look->lost_count = lost->count;
    look->groups = arena_alloc_zero(&look->arena, groups->count, sizeof *look->groups);
    look->tables = arena_alloc_zero(&look->arena, tables->count + 1, sizeof *look->tables);
    look->lost = arena_alloc_zero(&look->arena, lost->count + 1, sizeof *look->lost);
    if (!look->groups || !look->tables || !look->lost)
        return false;
    at = groups->first;
    for (uint32_t g = 0; g < look->group_count; g++, at = at->next)
        if (!read_group(at, g, &look->groups[g]))
            return false;
    at = tables->first;
    for (uint32_t t = 0; t < look->table_count; t++, at = at->next)
        if (!read_table(at, look, &look->tables[t]))
            return false;
    at = lost->first;
    for (size_t i = 0; i < look->lost_count; i++, at = at->next)
        if (!read_lost(at, &look->lost[i]))
            return false;
    return true;
}

enum status look_parse(struct span json, int64_t now_wall_ns, struct look **out_look,
                       struct error *err)
{
    struct json_value *root = NULL;
    struct arena arena;
    struct look *look = mem_alloc_zero(1, sizeof *look);
    if (!look)
        return error_set(err, STATUS_NO_MEMORY, "look: out of memory");
    arena_init(&look->arena, LOOK_BYTES_MAX);
    arena_init(&arena, LOOK_BYTES_MAX);
    enum status status = json_parse(json.data, json.length, &arena, &root, err);
    if (status == STATUS_OK && !read_all(root, now_wall_ns, look))
        status = error_set(err, STATUS_INVALID, "its answer is not what a publisher needs");
    arena_deinit(&arena);
    if (status != STATUS_OK) {
        look_destroy(look);
        return status;
    }
    *out_look = look;
    return STATUS_OK;
}

void look_destroy(struct look *look)
{
    if (!look)
        return;
    arena_deinit(&look->arena);
    mem_free(look);
}

const struct look_table *look_table_of(const struct look *look, const char *name)
{
    for (uint32_t t = 0; look && t < look->table_count; t++)
        if (strcmp(look->tables[t].name, name) == 0)
            return &look->tables[t];
    return NULL;
}
