/* SPDX-License-Identifier: Apache-2.0
 *
 * The running server and its admin API. Threads: the log's, the publisher's, the OTLP workers, one
 * API worker, the log port's. An operator's decision waits until nobody works on its lane.
 */
#include <stdio.h>

#include "app/server/server_internal.h"

/* A log that has failed takes nothing more; the workers write that to those who wait (L24). */
enum { LAST_ANSWERS_MS = 200 };

enum { STOP_MS = 10000, READY_BYTES = 1 << 20 /* a usual request */ };

/* Files that connections leave to the log, the tables and the catalog: without one the log cannot
 * seal, which ends the process. */
enum { KEPT_FILES = 256, API_CONNECTIONS_MAX = 64, LOG_CONNECTIONS_MAX = 512 };

/* How long the mirror may take to copy what is left. */
enum { MIRROR_STOP_MS = 5000 };

/* How long the log port may take to send what it has begun. */
enum { LOG_STOP_MS = 2000 };

/* ---- API ---- */

static void respond_buf(struct http_exchange *exchange, int code, const char *type,
                        struct buf *body)
{
    if (body->failed)
        http_respond_text(exchange, 503, "out of memory");
    else
        http_respond(exchange, code, type, span_of(body->data, body->length), NULL, 0);
    buf_deinit(body);
}

static void handle_health(void *context, struct http_exchange *exchange)
{
    UNUSED(context);
    http_respond_text(exchange, 200, "alive");
}

static void handle_ready(void *context, struct http_exchange *exchange)
{
    struct buf why = {0};
    bool is_ready = server_is_ready(context, &why);
    if (is_ready)
        buf_put_text(&why, "ready\n");
    respond_buf(exchange, is_ready ? 200 : 503, "text/plain; charset=utf-8", &why);
}

void server_respond_json(struct http_exchange *exchange, struct buf *body)
{
    respond_buf(exchange, 200, "application/json", body);
}

static void handle_status(void *context, struct http_exchange *exchange)
{
    struct buf body = {0};
    server_backup_expire(context);
    server_put_status(context, &body);
    server_respond_json(exchange, &body);
}

static void handle_metrics(void *context, struct http_exchange *exchange)
{
    struct buf body = {0};
    server_put_metrics(context, &body);
    respond_buf(exchange, 200, "text/plain; version=0.0.4; charset=utf-8", &body);
}

/* POST /v1/lanes/clear-halt?table=otel.logs&decision=accept, and /v1/lanes/rebind */
static void handle_resolve(void *context, struct http_exchange *exchange)
{
    struct server *server = context;
    const struct http_head *head = http_exchange_head(exchange);
    char table[1024], decision[64]; /* names that no table can have are answered by name */
    struct error err;
    bool is_rebind = span_equal(head->path, span_of_text("/v1/lanes/rebind"));
    if (http_head_get(head, "origin").data) { /* a page in somebody's browser, not an operator */
        http_respond_text(exchange, 403, "decisions are not taken from web pages");
        return;
    }
    if (!http_query_text(head->query, "table", table, sizeof table) ||
        !http_query_text(head->query, "decision", decision, sizeof decision)) {
        http_respond_text(exchange, 400, "table= and decision= are needed");
        return;
    }
    if (server_resolve(server, is_rebind ? "rebind" : "clear-halt", table, decision, &err) !=
        STATUS_OK) {
        http_respond_text(exchange, status_http_code(err.status), "%s", err.message);
        return;
    }
    http_respond_text(exchange, 200, "%s goes on", table);
}

static void tell_trim(void *context, const struct publish_trim *trim)
{
    buf_format(context, "%s: %llu rows in %llu entries are given up\n", trim->table,
               (unsigned long long)trim->rows, (unsigned long long)trim->entries);
    log_line(LOG_WARN, "log trim: %s gives up %llu rows in %llu entries", trim->table,
             (unsigned long long)trim->rows, (unsigned long long)trim->entries);
}

/* POST /v1/log/trim?table=otel.logs&before=SEQ; either may be left out, before=0 is none. */
static void handle_trim(void *context, struct http_exchange *exchange)
{
    struct server *server = context;
    const struct http_head *head = http_exchange_head(exchange);
    char table[1024] = "", text[32] = "0";
    uint64_t before = 0;
    struct buf body = {0};
    struct error err;
    if (http_head_get(head, "origin").data) { /* a page in somebody's browser, not an operator */
        http_respond_text(exchange, 403, "decisions are not taken from web pages");
        return;
    }
    bool has_table = http_query_text(head->query, "table", table, sizeof table);
    bool has_before = http_query_text(head->query, "before", text, sizeof text);
    if ((has_before && !parse_u64(text, strlen(text), &before)) || (!has_table && !before)) {
        http_respond_text(exchange, 400, "table= or before= is needed");
        return;
    }
    if (publisher_trim(server->stack.publisher, has_table ? table : NULL, before, tell_trim, &body,
                       &err) != STATUS_OK) {
        buf_deinit(&body);
        http_respond_text(exchange, status_http_code(err.status), "%s", err.message);
        return;
    }
    if (body.length == 0)
        buf_put_text(&body, "nothing is given up\n");
    respond_buf(exchange, 200, "text/plain; charset=utf-8", &body);
}

enum status decision_parse(const char *text, enum publish_decision *out_decision,
                           uint32_t *out_group, uint64_t *out_seq, struct error *err)
{
    *out_group = 0;
    *out_seq = 0;
    if (strcmp(text, "accept") == 0) {
        *out_decision = PUBLISH_ACCEPT;
        return STATUS_OK;
    }
    if (strcmp(text, "republish") == 0) {
        *out_decision = PUBLISH_REPUBLISH;
        return STATUS_OK;
    }
    uint64_t group = 0;
    const char *equals = strncmp(text, "from=", 5) == 0 ? strchr(text + 5, '=') : NULL;
    if (!equals || !parse_u64(text + 5, (size_t)(equals - text - 5), &group) ||
        !parse_u64(equals + 1, strlen(equals + 1), out_seq) || group > UINT32_MAX)
        return error_set(err, STATUS_USAGE, "decision %.40s: accept, republish or from=GROUP=SEQ",
                         text);
    *out_group = (uint32_t)group;
    *out_decision = PUBLISH_FROM;
    return STATUS_OK;
}

enum status server_resolve(struct server *server, const char *what, const char *table,
                           const char *decision_text, struct error *err)
{
    struct publisher *publisher = server->stack.publisher;
    enum publish_decision decision;
    uint32_t group;
    uint64_t seq;
    bool is_rebind = strcmp(what, "rebind") == 0;
    TRY(decision_parse(decision_text, &decision, &group, &seq, err));
    if (is_rebind && decision == PUBLISH_FROM)
        return error_set(err, STATUS_USAGE, "rebind: accept or republish");
    enum status status = is_rebind
                             ? publisher_rebind(publisher, table, decision, err)
                             : publisher_clear_halt(publisher, table, decision, group, seq, err);
    if (status == STATUS_OK)
        log_line(LOG_WARN, "%s %s: decided %s", what, table, decision_text);
    return status;
}

bool server_is_ready(struct server *server, struct buf *out_why)
{
    bool is_ready = true;
    struct publish_lane_info lane;
    for (size_t i = 0; publisher_lane_at(server->stack.publisher, i, &lane); i++) {
        if (lane.state != PUBLISH_HALTED && lane.state != PUBLISH_STOOD_DOWN)
            continue;
        is_ready = false;
        text_make_line(lane.reason);
        text_make_line(lane.remedy);
        buf_format(out_why, "%s is halted: %s\n  resolve: %s\n", lane.table, lane.reason,
                   lane.remedy);
    }
    struct error err;
    uint64_t retry_ms;
    struct source_state source;
    if (source_state(server->stack.source, &source) && !source.is_answering) {
        is_ready = false;
        text_make_line(source.why);
        buf_format(out_why, "nothing is published: %s\n", source.why);
    }
    if (server->stack.wal &&
        wal_admit(server->stack.wal, READY_BYTES, &retry_ms, &err) != STATUS_OK) {
        is_ready = false;
        buf_format(out_why, "writes are refused: %s\n", err.message);
    }
    return is_ready;
}

/* ---- life ---- */

static void log_recovery(const struct server *server)
{
    struct wal_recovery recovery = wal_recovery_report(server->stack.wal);
    char id[LOG_ID_TEXT_BYTES];
    log_id_to_text(wal_log_id(server->stack.wal), id);
    log_line(LOG_INFO, "log %s, term %llu: %llu segments, %llu entries read, %llu tails cut", id,
             (unsigned long long)wal_term(server->stack.wal), (unsigned long long)recovery.segments,
             (unsigned long long)recovery.entries, (unsigned long long)recovery.tails_cut);
    struct wal_damage damage;
    for (size_t i = 0; wal_damage_at(server->stack.wal, i, &damage); i++)
        log_line(LOG_ERROR, "damage in the log: group %u, entries %llu-%llu: %s", damage.group,
                 (unsigned long long)damage.seq_first, (unsigned long long)damage.seq_last,
                 damage.where);
}

/* What clients of OTLP may take of the process's open files, a worker. */
static unsigned connections_max(uint64_t file_limit, unsigned worker_count, unsigned wanted)
{
    uint64_t all = file_limit > 2 * KEPT_FILES ? file_limit - KEPT_FILES : file_limit / 2;
    uint64_t share = all / worker_count;
    return share < 1 ? 1 : share < wanted ? (unsigned)share : wanted;
}

static void refusing(const char *why, uint64_t refused_total)
{
    log_line(LOG_WARN, "requests are refused (%llu so far): %s", (unsigned long long)refused_total,
             why);
}

static void mirror_changed(const char *why, bool is_refused)
{
    if (is_refused)
        log_line(LOG_ERROR, "nothing is mirrored any more: %s", why);
    else if (why)
        log_line(LOG_WARN, "the mirror is behind, and tried again: %s", why);
    else
        log_line(LOG_INFO, "the mirror goes on");
}

static enum status start_mirror(struct server *server, struct error *err)
{
    const struct settings *settings = &server->stack.settings;
    struct mirror_options options = mirror_options_default(settings->mirror_url);
    if (!settings->mirror_url[0])
        return STATUS_OK;
    options.interval_ms = settings->mirror_interval_ms;
    options.uploads = (unsigned)settings->mirror_uploads;
    options.changed = mirror_changed;
    if (!settings->catalog_path[0] || !settings->warehouse[0])
        log_line(LOG_WARN, "the mirror does not keep what a table has, and catalog or warehouse "
                           "are in the data directory, and lost with it");
    TRY(mirror_create(server->env, &options, server->stack.wal, &server->mirror, err));
    return mirror_start(server->mirror, err);
}

static enum status start_ingest(struct server *server, struct error *err)
{
    const struct settings *settings = &server->stack.settings;
    struct ingest_options options = ingest_options_default();
    char dead_letter_dir[PATH_BYTES_MAX];
    TRY(path_join(dead_letter_dir, settings->data_dir, "deadletter", err));
    options.dead_letter_dir = dead_letter_dir;
    options.dead_letter_bytes = settings->otlp_dead_letter_bytes;
    options.expanded_bytes_max = (size_t)settings->otlp_expanded_bytes_max;
    options.force_timeout_ms = settings->otlp_force_timeout_ms;
    options.mirror = server->mirror;
    options.refusing = refusing;
    options.worker_count =
        settings->otlp_workers ? (unsigned)settings->otlp_workers : os_cpu_count();
    TRY(ingest_create(server->stack.env, &options, server->stack.wal, server->stack.publisher,
                      &server->ingest, err));
    struct http_options http = http_options_default();
    http.address = settings->listen_address;
    http.port = (uint16_t)settings->otlp_http_port;
    http.busy_poll_us = settings->otlp_busy_poll_us;
    http.body_bytes_max = (size_t)settings->otlp_body_bytes_max;
    http.body_budget_bytes = settings->otlp_memory_bytes;
    ingest_attach(server->ingest, &http);
    http.connections_max =
        connections_max(server->file_limit, options.worker_count, http.connections_max);
    return http_server_start(server->stack.env, &http, &server->otlp, err);
}

static enum status start_api(struct server *server, struct error *err)
{
    const struct http_route routes[API_ROUTE_COUNT] = {
        {.method = HTTP_GET, .path = "/healthz", .run = handle_health, .context = server},
        {.method = HTTP_GET, .path = "/readyz", .run = handle_ready, .context = server},
        {.method = HTTP_GET, .path = "/v1/status", .run = handle_status, .context = server},
        {.method = HTTP_GET, .path = "/metrics", .run = handle_metrics, .context = server},
        {.method = HTTP_GET,
         .path = "/v1/receipts/*",
         .run = server_handle_receipt,
         .context = server},
        {.method = HTTP_POST,
         .path = "/v1/lanes/clear-halt",
         .run = handle_resolve,
         .context = server},
        {.method = HTTP_POST, .path = "/v1/lanes/rebind", .run = handle_resolve, .context = server},
        {.method = HTTP_POST, .path = "/v1/log/trim", .run = handle_trim, .context = server},
        {.method = HTTP_POST, .path = "/v1/backup", .run = server_handle_backup, .context = server},
    };
    memcpy(server->routes, routes, sizeof routes);
    struct http_options http = http_options_default();
    http.address = server->stack.settings.listen_address;
    http.port = (uint16_t)server->stack.settings.api_port;
    http.connections_max = connections_max(server->file_limit, 8, API_CONNECTIONS_MAX);
    http.routes = server->routes;
    http.route_count = API_ROUTE_COUNT;
    return http_server_start(server->stack.env, &http, &server->api, err);
}

static bool is_awaited(void *context, uint32_t table_id)
{
    return publisher_is_awaited(context, table_id);
}

static void acknowledged(void *context, uint32_t table_id)
{
    publisher_acknowledged(context, table_id);
}

static enum status start_feed(struct server *server, struct error *err)
{
    struct http_options http = http_options_default();
    struct feed_options options = {
        .is_published_elsewhere = settings_is_elsewhere(&server->stack.settings),
        .is_awaited = is_awaited,
        .acknowledged = acknowledged,
        .context = server->stack.publisher,
    };
    TRY(feed_create(server->env, server->stack.wal, &options, &server->feed, err));
    feed_attach(server->feed, &http);
    http.address = server->stack.settings.listen_address;
    http.port = (uint16_t)server->stack.settings.log_port;
    http.connections_max = connections_max(server->file_limit, 8, LOG_CONNECTIONS_MAX);
    return http_server_start(server->env, &http, &server->log, err);
}

/* Before anything is made: a start that cannot succeed leaves no log behind. Where there is one,
 * who uses it tells more than who has the ports. */
static enum status check_addresses(struct env *env, const struct settings *settings,
                                   struct error *err)
{
    char dir[PATH_BYTES_MAX];
    struct env_stat stat;
    if (settings->source[0])
        return http_address_check(settings->listen_address, (uint16_t)settings->api_port, err);
    TRY(path_join(dir, settings->data_dir, "log", err));
    if (env_path_stat(env, dir, &stat, err) == STATUS_OK)
        return STATUS_OK;
    TRY(http_address_check(settings->listen_address, (uint16_t)settings->otlp_http_port, err));
    if (settings->api_port && settings->api_port == settings->otlp_http_port)
        return error_set(err, STATUS_INVALID, "OTLP/HTTP and the API cannot share port %llu",
                         (unsigned long long)settings->api_port);
    if (settings->log_port && (settings->log_port == settings->otlp_http_port ||
                               settings->log_port == settings->api_port))
        return error_set(err, STATUS_INVALID, "the log port and another cannot share port %llu",
                         (unsigned long long)settings->log_port);
    TRY(http_address_check(settings->listen_address, (uint16_t)settings->api_port, err));
    return http_address_check(settings->listen_address, (uint16_t)settings->log_port, err);
}

/* What a server with a log of its own has beside publication. */
static enum status start_log(struct server *server, struct error *err)
{
    log_recovery(server);
    TRY(start_mirror(server, err));
    TRY(start_ingest(server, err));
    return start_feed(server, err);
}

enum status server_start(struct env *env, const struct settings *settings,
                         struct server **out_server, struct error *err)
{
    TRY(check_addresses(env, settings, err));
    struct server *server = mem_alloc_zero(1, sizeof *server);
    if (!server)
        return error_set(err, STATUS_NO_MEMORY, "server: out of memory");
    server->env = env;
    server->started_wall_ns = env_wall_ns(env);
    server->file_limit = os_file_limit_raise();
    enum status status = stack_open(env, settings, &server->stack, err);
    if (status == STATUS_OK)
        status = publisher_start(server->stack.publisher, err);
    if (status == STATUS_OK && server->stack.wal)
        status = start_log(server, err);
    if (status == STATUS_OK) /* it looks at all of the above */
        status = start_api(server, err);
    if (status != STATUS_OK) {
        server_stop(server);
        return status;
    }
    os_fatal_exit_delay(LAST_ANSWERS_MS);
    *out_server = server;
    return STATUS_OK;
}

void server_stop(struct server *server)
{
    if (!server)
        return;
    os_fatal_exit_delay(0);
    int64_t began_ns = env_mono_ns(server->env);
    if (server->mirror) /* who waits for a store that is away gets his answer */
        mirror_hurry(server->mirror);
    if (server->otlp)
        http_server_drain(server->otlp, STOP_MS);
    uint64_t spent_ms = (uint64_t)(env_mono_ns(server->env) - began_ns) / 1000000;
    struct source_state source;
    bool is_silent =
        server->stack.source && source_state(server->stack.source, &source) && !source.is_answering;
    if (server->stack.publisher)
        publisher_stop(server->stack.publisher, !is_silent,
                       spent_ms < STOP_MS ? STOP_MS - spent_ms : 0);
    http_server_destroy(server->api);
    server_backup_end(server);
    if (server->feed)
        feed_stop(server->feed);
    if (server->log)
        http_server_drain(server->log, LOG_STOP_MS);
    http_server_destroy(server->log); /* it reads the log */
    feed_destroy(server->feed);
    if (server->mirror) /* it reads the log, and its callbacks post to the workers */
        mirror_stop(server->mirror, MIRROR_STOP_MS);
    mirror_destroy(server->mirror);
    struct wal *wal = server->stack.wal;
    server->stack.wal = NULL;
    stack_close(&server->stack);
    wal_close(wal); /* before the workers go: its callbacks post to them */
    http_server_destroy(server->otlp);
    ingest_destroy(server->ingest);
    mem_free(server);
}

uint16_t server_otlp_port(const struct server *server)
{
    return server->otlp ? http_server_port(server->otlp) : 0;
}

uint16_t server_api_port(const struct server *server)
{
    return http_server_port(server->api);
}

uint16_t server_log_port(const struct server *server)
{
    return server->log ? http_server_port(server->log) : 0;
}

struct stack *server_stack(struct server *server)
{
    return &server->stack;
}

struct ingest *server_ingest(struct server *server)
{
    return server->ingest;
}
