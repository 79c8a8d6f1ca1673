/* SPDX-License-Identifier: Apache-2.0
 *
 * The resume rules: a page that did not come whole is asked for again, from the same cursor; a
 * refusal is final, but for one of a server that is busy or gone.
 */
#include <stdio.h>

#include "flow/follow/follow_internal.h"
#include "format/json/json.h"

enum { ANSWER_MS = 60000, PATH_BYTES = 1200 };

struct follow {
    struct env *env;
    struct follow_options options;
    struct http_client *client;
    char cursor[FOLLOW_CURSOR_BYTES]; /* "": not begun */
    uint64_t reclaimed_last;
};

struct follow_options follow_options_default(void)
{
    return (struct follow_options){.address = "127.0.0.1",
                                   .port = 7800,
                                   .ttl_ms = 300000,
                                   .bytes_max = 4 << 20,
                                   .retry_ms_min = 50,
                                   .retry_ms_max = 5000,
                                   .give_up_ms = 30000};
}

enum status follow_create(struct env *env, const struct follow_options *options,
                          struct follow **out_follow, struct error *err)
{
    struct follow *follow = mem_alloc_zero(1, sizeof *follow);
    if (!follow)
        return error_set(err, STATUS_NO_MEMORY, "follow: out of memory");
    follow->env = env;
    follow->options = *options;
    enum status status =
        http_client_create(options->address, options->port, ANSWER_MS, &follow->client, err);
    if (status != STATUS_OK) {
        mem_free(follow);
        return status;
    }
    *out_follow = follow;
    return STATUS_OK;
}

void follow_destroy(struct follow *follow)
{
    if (!follow)
        return;
    http_client_destroy(follow->client);
    mem_free(follow);
}

const char *follow_cursor(const struct follow *follow)
{
    return follow->cursor;
}

uint64_t follow_reclaimed_last(const struct follow *follow)
{
    return follow->reclaimed_last;
}

/* ---- asking ---- */

static bool is_worth_repeating(enum status status)
{
    return status == STATUS_IO || status == STATUS_CLOSED || status == STATUS_TIMEOUT ||
           status == STATUS_BUSY;
}

static enum status ask_once(struct follow *follow, const char *method, const char *path,
                            struct span body, struct http_response *response, struct error *err)
{
    TRY(http_client_request(follow->client, method, path, NULL, 0, body, response, err));
    return response->code == 200 || response->code == 204
               ? STATUS_OK
               : refused_status(response, &follow->reclaimed_last, err);
}

/* Everything that is asked here may be asked twice. */
static enum status ask(struct follow *follow, const char *method, const char *path,
                       struct span body, struct http_response *response, struct error *err)
{
    const struct follow_options *options = &follow->options;
    int64_t began_ns = env_mono_ns(follow->env);
    uint64_t pause_ms = options->retry_ms_min;
    for (;;) {
        enum status status = ask_once(follow, method, path, body, response, err);
        if (!is_worth_repeating(status))
            return status;
        uint64_t spent_ms = (uint64_t)(env_mono_ns(follow->env) - began_ns) / 1000000;
        if (spent_ms >= options->give_up_ms) {
            error_prefix(err, "no answer from the log port at %s port %u for %llu ms",
                         options->address, options->port, (unsigned long long)spent_ms);
            return err->status = STATUS_IO;
        }
        env_sleep_ms(follow->env, pause_ms);
        pause_ms = pause_ms * 2 < options->retry_ms_max ? pause_ms * 2 : options->retry_ms_max;
    }
}

static enum status ask_json(struct follow *follow, const char *method, const char *path,
                            struct span body, struct arena *arena, struct json_value **out_json,
                            struct error *err)
{
    struct http_response response;
    TRY(ask(follow, method, path, body, &response, err));
    return json_parse(response.body.data, response.body.length, arena, out_json, err);
}

static enum status set_cursor(struct follow *follow, const char *cursor, struct error *err)
{
    if (!cursor || !cursor[0] || strlen(cursor) >= sizeof follow->cursor)
        return error_set(err, STATUS_INVALID, "the log port gave no cursor");
    snprintf(follow->cursor, sizeof follow->cursor, "%s", cursor);
    return STATUS_OK;
}

/* ---- the beginning ---- */

/* What names the asker, in a body. */
static void write_member(struct follow *follow, struct json_writer *writer)
{
    const struct follow_options *options = &follow->options;
    char member[32];
    if (options->member_count) {
        snprintf(member, sizeof member, "%u/%u", options->member, options->member_count);
        json_write_key(writer, "member");
        json_write_text(writer, member);
    }
    if (options->owner) {
        json_write_key(writer, "owner");
        json_write_text(writer, options->owner);
    }
}

static enum status put_consumer(struct follow *follow, const char *from, struct arena *arena,
                                struct error *err)
{
    char path[PATH_BYTES];
    struct json_value *json = NULL;
    struct buf body = {0};
    struct json_writer writer;
    uint64_t seq;
    json_writer_init(&writer, &body);
    json_write_object_begin(&writer);
    json_write_key(&writer, "table");
    json_write_text(&writer, follow->options.table);
    json_write_key(&writer, "group");
    json_write_u64(&writer, follow->options.group);
    json_write_key(&writer, "ttl_ms");
    json_write_u64(&writer, follow->options.ttl_ms);
    write_member(follow, &writer);
    if (from && (strcmp(from, "earliest") == 0 || strcmp(from, "latest") == 0)) {
        json_write_key(&writer, "start");
        json_write_text(&writer, from);
    } else if (from && parse_u64(from, strlen(from), &seq)) {
        json_write_key(&writer, "start");
        json_write_u64(&writer, seq);
    }
    json_write_object_end(&writer);
    snprintf(path, sizeof path, "/v1/consumers/%s", follow->options.consumer);
    enum status status = buf_status(&body, "follow", err);
    if (status == STATUS_OK)
        status = ask_json(follow, "PUT", path, span_of(body.data, body.length), arena, &json, err);
    buf_deinit(&body);
    TRY(status);
    return set_cursor(follow, json_get_text(json, "cursor"), err);
}

/* A cursor of this log from what is none: "earliest" and "latest" of the table, or SEQ. */
static enum status look_up(struct follow *follow, const char *from, struct arena *arena,
                           struct error *err)
{
    bool is_latest = strcmp(from, "latest") == 0;
    struct json_value *json = NULL;
    int64_t seq = 0;
    char cursor[FOLLOW_CURSOR_BYTES];
    TRY(ask_json(follow, "GET", "/v1/log", (struct span){0}, arena, &json, err));
    const struct json_value *groups = json_get(json, "groups"), *tables = json_get(json, "tables");
    const struct json_value *end = json_get(json_at(groups, follow->options.group), "end");
    const struct json_value *table = tables ? tables->first : NULL;
    while (table && strcmp(follow->options.table,
                           json_get_text(table, "name") ? json_get_text(table, "name") : "") != 0)
        table = table->next;
    const struct json_value *floor =
        json_at(json_get(table, "reclaimed_through"), follow->options.group);
    if (!table || !floor || !end || !json_get_i64(end, "seq", &seq))
        return error_set(err, STATUS_NOT_FOUND, "the log has no table %.250s, or no group %u",
                         follow->options.table, follow->options.group);
    const char *log = json_get_text(json, "log");
    if (!log || (!is_latest && !json_value_i64(floor, &seq)))
        return error_set(err, STATUS_INVALID, "the log port's answer is no table's");
    if (is_latest || strcmp(from, "earliest") == 0)
        snprintf(cursor, sizeof cursor, "%.64s/%u/0/%lld", log, follow->options.group,
                 (long long)seq);
    else
        snprintf(cursor, sizeof cursor, "%.64s/%u/0/%.40s", log, follow->options.group, from);
    return set_cursor(follow, cursor, err);
}

enum status follow_begin(struct follow *follow, const char *from, struct error *err)
{
    struct arena arena;
    enum status status = STATUS_OK;
    const char *consumer = follow->options.consumer;
    arena_init(&arena, 16 << 20);
    if (consumer)
        status = put_consumer(follow, from, &arena, err);
    else if (!from)
        from = "earliest";
    /* A consumer's cursor is where he was, but for a place that was named. */
    bool is_word = from && (strcmp(from, "earliest") == 0 || strcmp(from, "latest") == 0);
    if (status == STATUS_OK && from && strchr(from, '/'))
        status = set_cursor(follow, from, err);
    else if (status == STATUS_OK && from && !(is_word && consumer))
        status = look_up(follow, from, &arena, err);
    arena_deinit(&arena);
    return status;
}

/* ---- pages ---- */

static bool is_plain(uint8_t byte)
{
    return (byte >= '0' && byte <= '9') || ((byte | 32) >= 'a' && (byte | 32) <= 'z') ||
           byte == '.' || byte == '_' || byte == '-' || byte == '/';
}

static void put_query_text(struct buf *out, const char *name, const char *text)
{
    buf_format(out, "&%s=", name);
    for (const char *at = text; *at; at++) {
        if (is_plain((uint8_t)*at))
            buf_put_byte(out, (uint8_t)*at);
        else
            buf_format(out, "%%%02X", (unsigned)(uint8_t)*at);
    }
}

/* The text of a header, or "". */
static void header_text(const struct http_response *response, const char *name, char *out,
                        size_t bytes)
{
    struct span value = http_response_get(response, name);
    size_t length = value.data && value.length < bytes ? value.length : 0;
    if (length)
        memcpy(out, value.data, length);
    out[length] = '\0';
}

/* Cursors of one place: the term of an entry that is gone is known to who read it alone. */
static bool is_same_place(const char *cursor, const char *end)
{
    unsigned long long group, seq, end_group, end_seq;
    int used = 0, end_used = 0;
    return sscanf(cursor, "%*[^/]/%llu/%*u/%llu%n", &group, &seq, &used) == 2 && !cursor[used] &&
           sscanf(end, "%*[^/]/%llu/%*u/%llu%n", &end_group, &end_seq, &end_used) == 2 &&
           !end[end_used] && group == end_group && seq == end_seq;
}

enum status follow_next(struct follow *follow, uint64_t wait_ms, struct follow_page *out_page,
                        struct error *err)
{
    const struct follow_options *options = &follow->options;
    struct follow_page page = {0};
    struct http_response response;
    struct buf path = {0};
    char rows[24], end[FOLLOW_CURSOR_BYTES];
    buf_format(&path, "/v1/log/%u/rows?wait_ms=%llu&max_bytes=%llu", options->group,
               (unsigned long long)wait_ms, (unsigned long long)options->bytes_max);
    put_query_text(&path, "table", options->table);
    put_query_text(&path, "after", follow->cursor);
    if (options->consumer)
        put_query_text(&path, "consumer", options->consumer);
    if (options->consumer && options->owner)
        put_query_text(&path, "owner", options->owner);
    if (options->member_count)
        buf_format(&path, "&member=%u/%u", options->member, options->member_count);
    buf_put_byte(&path, '\0');
    enum status status = buf_status(&path, "follow", err);
    if (status == STATUS_OK)
        status = ask(follow, "GET", (const char *)path.data, (struct span){0}, &response, err);
    buf_deinit(&path);
    TRY(status);
    header_text(&response, "sluice-cursor", page.cursor, sizeof page.cursor);
    header_text(&response, "sluice-log-end", end, sizeof end);
    header_text(&response, "sluice-rows", rows, sizeof rows);
    header_text(&response, "sluice-flags", page.flags, sizeof page.flags);
    page.is_at_end = is_same_place(page.cursor, end);
    if (!parse_u64(rows, strlen(rows), &page.rows) || (page.rows > 0) != (response.code == 200))
        return error_set(err, STATUS_INVALID, "the log port's answer is no page");
    TRY(set_cursor(follow, page.cursor, err));
    page.stream = response.body;
    *out_page = page;
    return STATUS_OK;
}

enum status follow_acknowledge(struct follow *follow, struct error *err)
{
    struct http_response response;
    struct json_writer writer;
    struct buf body = {0};
    char path[PATH_BYTES];
    unsigned long long group, term, seq;
    const char *slash = strchr(follow->cursor, '/');
    if (!follow->options.consumer)
        return STATUS_OK;
    if (!slash || sscanf(slash, "/%llu/%llu/%llu", &group, &term, &seq) != 3)
        return STATUS_OK; /* nothing was read yet */
    snprintf(path, sizeof path, "/v1/consumers/%s/ack", follow->options.consumer);
    json_writer_init(&writer, &body);
    json_write_object_begin(&writer);
    json_write_key(&writer, "term");
    json_write_u64(&writer, term);
    json_write_key(&writer, "seq");
    json_write_u64(&writer, seq);
    write_member(follow, &writer);
    json_write_object_end(&writer);
    enum status status = buf_status(&body, "follow", err);
    if (status == STATUS_OK)
        status = ask(follow, "POST", path, span_of(body.data, body.length), &response, err);
    buf_deinit(&body);
    return status;
}
