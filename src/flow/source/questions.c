/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions to another server's log that come up now and then, and what it is told: an
 * acknowledgement, a fence. An answer that does not say what was asked for is none.
 */
#include <stdio.h>

#include "flow/source/remote_internal.h"

static enum status ask_json(struct remote *remote, const char *path, struct arena *arena,
                            struct json_value **out_json, struct error *err)
{
    struct question question = {0};
    enum status status = question_ask_now(&question, remote, path, err);
    if (status == STATUS_OK &&
        json_parse(question.response.body.data, question.response.body.length, arena, out_json,
                   err) != STATUS_OK)
        status = remote_silent(remote, err, "its answer is no JSON");
    question_end(&question);
    return status;
}

/* What stands at a place, and what of a table (0: none) behind it. */
static enum status ask_place(struct remote *remote, uint32_t group, uint64_t seq, uint32_t table_id,
                             struct arena *arena, struct json_value **out_json, struct error *err)
{
    struct buf path = {0};
    uint32_t id;
    buf_format(&path, "/v1/log/%u/position?seq=%llu", group, (unsigned long long)seq);
    if (table_id) {
        buf_put_text(&path, "&table=");
        http_put_encoded(&path, remote_table(remote, table_id, &id));
    }
    buf_put_byte(&path, '\0');
    enum status status = path.failed
                             ? remote_silent(remote, err, "out of memory")
                             : ask_json(remote, (const char *)path.data, arena, out_json, err);
    buf_deinit(&path);
    TRY(status);
    uint64_t said_group, said_seq;
    if (!look_get_u64(*out_json, "group", &said_group) || said_group != group ||
        !look_get_u64(*out_json, "seq", &said_seq) || said_seq != seq)
        return remote_silent(remote, err, "its answer is of another place");
    return STATUS_OK;
}

enum status remote_chain_at(struct source *source, uint32_t group, uint64_t seq, uint64_t *out,
                            struct error *err)
{
    struct remote *remote = remote_of(source);
    struct json_value *json = NULL;
    struct arena arena;
    arena_init(&arena, 1 << 16);
    enum status status = ask_place(remote, group, seq, 0, &arena, &json, err);
    const struct json_value *chain = json_get(json, "chain");
    if (status == STATUS_OK && chain && chain->type == JSON_NULL)
        status = error_set(err, STATUS_NOT_FOUND, "log: group %u: nothing tells the chain at %llu",
                           group, (unsigned long long)seq);
    else if (status == STATUS_OK && !look_chain(json_get_text(json, "chain"), out))
        status = remote_silent(remote, err, "its answer names no chain");
    arena_deinit(&arena);
    return status;
}

/* *out_json NULL: the log does not have the table. */
static enum status ask_behind(struct source *source, uint32_t table_id, uint32_t group,
                              uint64_t after, struct arena *arena, struct json_value **out_json,
                              struct error *err)
{
    uint32_t id;
    *out_json = NULL;
    remote_table(remote_of(source), table_id, &id);
    return id ? ask_place(remote_of(source), group, after, table_id, arena, out_json, err)
              : STATUS_OK;
}

enum status remote_pending(struct source *source, uint32_t table_id, uint32_t group, uint64_t after,
                           struct wal_pending *out, struct error *err)
{
    struct json_value *json;
    struct arena arena;
    struct wal_pending pending = {0};
    arena_init(&arena, 1 << 16);
    enum status status = ask_behind(source, table_id, group, after, &arena, &json, err);
    if (status == STATUS_OK && json && !look_pending(json, &pending))
        status = remote_silent(remote_of(source), err, "its answer does not say what is pending");
    arena_deinit(&arena);
    if (status == STATUS_OK)
        *out = pending;
    return status;
}

enum status remote_damage_above(struct source *source, uint32_t table_id, uint32_t group,
                                uint64_t after, struct wal_damage *out, bool *out_is_there,
                                struct error *err)
{
    struct json_value *json;
    struct arena arena;
    bool is_there = false;
    arena_init(&arena, 1 << 16);
    enum status status = ask_behind(source, table_id, group, after, &arena, &json, err);
    if (status == STATUS_OK && json && !look_damage(json, group, out, &is_there))
        status = remote_silent(remote_of(source), err, "its answer does not say what is damaged");
    arena_deinit(&arena);
    if (status == STATUS_OK)
        *out_is_there = is_there;
    return status;
}

static bool take_starts(const struct json_value *json, uint64_t after, struct buf *out)
{
    const struct json_value *starts = json_get(json, "starts");
    if (!starts || starts->type != JSON_ARRAY)
        return false;
    for (const struct json_value *at = starts->first; at; at = at->next) {
        struct wal_position position;
        if (!look_get_u64(at, "seq", &position.seq) || position.seq <= after ||
            !look_chain(json_get_text(at, "chain"), &position.chain))
            return false;
        after = position.seq;
        buf_put(out, &position, sizeof position);
    }
    return true;
}

enum status remote_starts(struct source *source, uint32_t group, uint64_t after, uint64_t last,
                          struct buf *out, struct error *err)
{
    struct remote *remote = remote_of(source);
    enum status status = STATUS_OK;
    while (status == STATUS_OK && after < last) {
        struct json_value *json = NULL;
        struct arena arena;
        uint64_t through = 0;
        char path[128];
        snprintf(path, sizeof path, "/v1/log/%u/starts?after=%llu&last=%llu", group,
                 (unsigned long long)after, (unsigned long long)last);
        arena_init(&arena, 16 << 20);
        status = ask_json(remote, path, &arena, &json, err);
        if (status == STATUS_OK &&
            (!take_starts(json, after, out) || !look_get_u64(json, "through", &through) ||
             through <= after || out->failed))
            status = remote_silent(remote, err, "its answer names no starts");
        arena_deinit(&arena);
        after = through;
    }
    return status;
}

enum status remote_schema_get(struct source *source, uint64_t fingerprint, struct buf *out,
                              struct error *err)
{
    struct remote *remote = remote_of(source);
    struct question question = {0};
    char path[64];
    snprintf(path, sizeof path, "/v1/log/schemas/%016llx", (unsigned long long)fingerprint);
    enum status status = question_ask_now(&question, remote, path, err);
    if (status == STATUS_OK) {
        buf_put(out, question.response.body.data, question.response.body.length);
        status = buf_status(out, "schema", err);
    }
    question_end(&question);
    return status;
}

/* ---- what it is told ---- */

static void put_told_position(struct json_writer *json, const char *key, struct wal_position at)
{
    char chain[17];
    snprintf(chain, sizeof chain, "%016llx", (unsigned long long)at.chain);
    json_write_key(json, key);
    json_write_object_begin(json);
    json_write_key(json, "seq");
    json_write_u64(json, at.seq);
    json_write_key(json, "chain");
    json_write_text(json, chain);
    json_write_object_end(json);
}

static void tell_begin(const struct remote *remote, struct json_writer *json, struct buf *body)
{
    char log[LOG_ID_TEXT_BYTES];
    log_id_to_text(remote->source.log, log);
    json_writer_init(json, body);
    json_write_object_begin(json);
    json_write_key(json, "log");
    json_write_text(json, log);
}

static enum status tell_end(struct remote *remote, const char *what, struct json_writer *json,
                            struct buf *body, struct error *err)
{
    struct buf path = {0};
    json_write_object_end(json);
    buf_put_text(&path, "/v1/publication/");
    http_put_encoded(&path, what);
    buf_put_byte(&path, '\0');
    enum status status = path.failed || body->failed
                             ? remote_silent(remote, err, "out of memory")
                             : remote_look_by(remote, "POST", (const char *)path.data,
                                              span_of(body->data, body->length), err);
    buf_deinit(&path);
    buf_deinit(body);
    return status;
}

enum status remote_ack_table(struct source *source, uint32_t table_id, const struct wal_ack *acks,
                             struct error *err)
{
    struct remote *remote = remote_of(source);
    struct buf body = {0};
    struct json_writer json;
    uint32_t id;
    const char *name = remote_table(remote, table_id, &id);
    if (!id) /* it holds nothing of it */
        return STATUS_OK;
    tell_begin(remote, &json, &body);
    json_write_key(&json, "groups");
    json_write_array_begin(&json);
    for (uint32_t g = 0; g < source->group_count; g++) {
        json_write_object_begin(&json);
        json_write_key(&json, "group");
        json_write_u64(&json, g);
        put_told_position(&json, "committed", acks[g].committed);
        put_told_position(&json, "through", acks[g].through);
        json_write_object_end(&json);
    }
    json_write_array_end(&json);
    return tell_end(remote, name, &json, &body, err);
}

enum status remote_fence(struct source *source, uint64_t incarnation, struct error *err)
{
    struct remote *remote = remote_of(source);
    struct buf body = {0};
    struct json_writer json;
    tell_begin(remote, &json, &body);
    json_write_key(&json, "incarnation");
    json_write_u64(&json, incarnation);
    return tell_end(remote, "fence", &json, &body, err);
}
