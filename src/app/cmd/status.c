/* SPDX-License-Identifier: Apache-2.0
 *
 * sluice status, watermark: what the running server says.
 */
#include "app/cmd/cmd_internal.h"
#include "format/json/json.h"

/* Fetches and parses /v1/status; the exit code otherwise. */
static int fetch(struct invocation *invocation, struct buf *text, struct arena *arena,
                 struct json_value **out_json)
{
    struct error err;
    int code = 0;
    enum status status = cmd_ask_server(invocation, "GET", "/v1/status", text, &code, &err);
    if (status == STATUS_OK && code != 200)
        status = error_set(&err, STATUS_IO, "the server answered %d", code);
    if (status == STATUS_OK)
        status = json_parse(text->data, text->length, arena, out_json, &err);
    return status == STATUS_OK ? 0 : cmd_fail(&err);
}

static long long number(const struct json_value *object, const char *key)
{
    int64_t value = 0;
    json_get_i64(object, key, &value);
    return value;
}

static void print_lanes(const struct json_value *lanes)
{
    for (const struct json_value *lane = lanes ? lanes->first : NULL; lane; lane = lane->next) {
        printf("lane     %-28s %-10s %10lld rows in %lld commits, %lld behind\n",
               json_get_text(lane, "table"), json_get_text(lane, "state"), number(lane, "rows"),
               number(lane, "commits"), number(lane, "lag_rows"));
        if (json_get_text(lane, "reason"))
            printf("         %s\n", json_get_text(lane, "reason"));
        if (json_get_text(lane, "remedy"))
            printf("         resolve: %s\n", json_get_text(lane, "remedy"));
        if (json_get_text(lane, "dropped_columns"))
            printf("         not stored, because the table has lost the column: %s\n",
                   json_get_text(lane, "dropped_columns"));
    }
}

/* Of a server that publishes another one's log. */
static void print_source(const struct json_value *json, const struct json_value *source)
{
    bool is_answering = false;
    json_get_bool(source, "is_answering", &is_answering);
    printf("sluice %s, publishes log %s, term %lld, of %s\n", json_get_text(json, "version"),
           json_get_text(source, "log"), number(source, "term"), json_get_text(source, "url"));
    printf("source   %s, %lld entries read, %lld looks failed\n",
           is_answering ? "answers" : "does not answer", number(source, "entries"),
           number(source, "failures"));
    if (json_get_text(source, "reason"))
        printf("         %s\n", json_get_text(source, "reason"));
}

static void print_status(const struct json_value *json)
{
    const struct json_value *log = json_get(json, "log"), *ingest = json_get(json, "ingest");
    const struct json_value *lanes = json_get(json, "lanes"), *source = json_get(json, "source");
    if (source) {
        print_source(json, source);
        print_lanes(lanes);
        return;
    }
    printf("sluice %s, log %s, term %lld\n", json_get_text(json, "version"),
           json_get_text(log, "id"), number(log, "term"));
    printf("ingest   %lld requests, %lld items, %lld rejected, %lld refused requests\n",
           number(ingest, "requests"), number(ingest, "items"), number(ingest, "rejected_items"),
           number(ingest, "refused_requests"));
    printf("log      %lld of %lld MiB allocated, %lld sealed and %lld committed segments\n",
           number(log, "allocated_bytes") >> 20, number(log, "budget_bytes") >> 20,
           number(log, "segments_sealed"), number(log, "segments_committed"));
    const char *from = json_get_text(json, "published_from");
    if (from && strcmp(from, "here") != 0)
        printf("publish  another server publishes this log, over the log port\n");
    const struct json_value *mirror = json_get(json, "mirror");
    if (mirror) {
        printf("mirror   %s, %lld bytes behind, %lld objects copied, %lld failures\n",
               json_get_text(mirror, "state"), number(mirror, "queue_bytes"),
               number(mirror, "uploads"), number(mirror, "failures"));
        if (json_get_text(mirror, "reason"))
            printf("         %s\n", json_get_text(mirror, "reason"));
    }
    const struct json_value *damage = json_get(log, "damage");
    for (const struct json_value *at = damage ? damage->first : NULL; at; at = at->next)
        printf("         damaged: entries %lld to %lld, %s\n", number(at, "seq_first"),
               number(at, "seq_last"), json_get_text(at, "where"));
    print_lanes(lanes);
}

int cmd_status(struct invocation *invocation)
{
    bool as_json = cmd_take_flag(invocation, "--json");
    struct buf text = {0};
    struct arena arena;
    struct json_value *json = NULL;
    if (!cmd_no_more_words(invocation, 0))
        return 2;
    arena_init(&arena, 0);
    int code = fetch(invocation, &text, &arena, &json);
    if (code == 0 && as_json)
        fwrite(text.data, 1, text.length, stdout);
    else if (code == 0)
        print_status(json);
    buf_deinit(&text);
    arena_deinit(&arena);
    return code;
}

int cmd_watermark(struct invocation *invocation)
{
    bool as_json = cmd_take_flag(invocation, "--json"), is_complete = true;
    struct buf text = {0}, out = {0};
    struct arena arena;
    struct json_value *json = NULL;
    struct json_writer writer;
    if (!cmd_no_more_words(invocation, 0))
        return 2;
    arena_init(&arena, 0);
    int code = fetch(invocation, &text, &arena, &json);
    json_writer_init(&writer, &out);
    if (code == 0) {
        const struct json_value *lanes = json_get(json, "lanes");
        json_write_object_begin(&writer);
        for (const struct json_value *lane = lanes ? lanes->first : NULL; lane; lane = lane->next) {
            const char *state = json_get_text(lane, "state");
            bool is_stopped = strcmp(state, "halted") == 0 || strcmp(state, "stood_down") == 0;
            is_complete &= number(lane, "lag_rows") == 0 && !is_stopped;
            json_write_key(&writer, json_get_text(lane, "table"));
            json_write_i64(&writer, number(lane, "committed_seq"));
            if (!as_json)
                printf("%-28s %s to %lld, %lld rows behind\n", json_get_text(lane, "table"),
                       is_stopped ? state : "complete", number(lane, "committed_seq"),
                       number(lane, "lag_rows"));
        }
        json_write_object_end(&writer);
        if (as_json)
            printf("%.*s\n", (int)out.length, (const char *)out.data);
    }
    buf_deinit(&text);
    buf_deinit(&out);
    arena_deinit(&arena);
    return code ? code : !is_complete;
}
