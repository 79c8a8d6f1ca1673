/* SPDX-License-Identifier: Apache-2.0
 *
 * Another server's log, over its log port. Questions go out over a few kept connections, each with
 * one question at a time. A look replaces the last one if it was asked for later; a thread "source"
 * takes one now and then, so that who asks without waiting sees the log move. What does not come,
 * or cannot be believed, is TIMEOUT: nothing is known.
 */
#include <stdio.h>

#include "flow/source/remote_internal.h"

enum { TROUBLE_NS = 1000000000 /* from then on silence is worth a word */ };

struct source_options source_options_default(const char *url, const char *path)
{
    return (struct source_options){.url = url,
                                   .path = path,
                                   .look_ms = 200,
                                   .answer_ms_max = 10000,
                                   .first_look_ms_max = 30000};
}

enum status remote_silent(const struct remote *remote, struct error *err, const char *what)
{
    return error_set(err, STATUS_TIMEOUT, "the log at %s: %s", remote->url, what);
}

/* ---- connections ---- */

/* NULL: none is kept. */
static struct http_client *client_kept(struct remote *remote)
{
    struct http_client *client = NULL;
    env_lock(remote->lock);
    if (remote->idle_count)
        client = remote->idle[--remote->idle_count];
    env_unlock(remote->lock);
    return client;
}

void question_end(struct question *question)
{
    struct remote *remote = question->remote;
    if (!question->client)
        return;
    env_lock(remote->lock);
    bool is_kept = remote->idle_count < CLIENTS_IDLE_MAX;
    if (is_kept)
        remote->idle[remote->idle_count++] = question->client;
    env_unlock(remote->lock);
    if (!is_kept)
        http_client_destroy(question->client);
    *question = (struct question){0};
}

/* ---- answers ---- */

/* "<log>/<incarnation>/<term>/<start>" of Sluice-Log. */
static bool parse_log(struct span text, struct log_id *out_log, uint64_t *out_start)
{
    const char *at = (const char *)text.data;
    const size_t id = LOG_ID_TEXT_BYTES - 1, start = 16;
    char hex[17] = "";
    if (text.length <= id + start + 1 || at[id] != '/' || at[text.length - start - 1] != '/')
        return false;
    memcpy(hex, at + text.length - start, start);
    return log_id_from_text(at, id, out_log) && look_chain(hex, out_start);
}

/* Pages of entries have checksums of their own. */
static bool is_whole(const struct http_response *response)
{
    char crc[9];
    snprintf(crc, sizeof crc, "%08x", crc32c(0, response->body.data, response->body.length));
    return (response->code == 200 && http_response_get(response, "sluice-entries").data) ||
           span_equal(http_response_get(response, "sluice-crc32c"), span_of_text(crc));
}

static const struct {
    const char *code;
    enum status status;
} refusals[] = {
    {"ERR_EXPORT_RANGE_RECLAIMED", STATUS_RECLAIMED},
    {"ERR_EXPORT_DAMAGED", STATUS_CORRUPT},
    {"ERR_EXPORT_NO_SCHEMA", STATUS_NOT_FOUND},
    {"ERR_EXPORT_PUBLISHED_HERE", STATUS_UNSUPPORTED},
};

static enum status refused(const struct remote *remote, const struct http_response *response,
                           struct error *err)
{
    struct arena arena;
    struct json_value *json = NULL;
    struct error ignored;
    enum status status = STATUS_TIMEOUT;
    arena_init(&arena, 1 << 20);
    if (json_parse(response->body.data, response->body.length, &arena, &json, &ignored) !=
        STATUS_OK)
        json = NULL;
    const char *code = json_get_text(json, "code"), *message = json_get_text(json, "message");
    for (size_t i = 0; code && message && i < COUNT_OF(refusals); i++)
        if (strcmp(code, refusals[i].code) == 0)
            status = refusals[i].status;
    error_set(err, status, "the log at %s answered %d: %.250s", remote->url, response->code,
              message ? message : "nothing that can be read");
    arena_deinit(&arena);
    return status;
}

static enum status other_log(const struct remote *remote, struct log_id found, struct error *err)
{
    char here[LOG_ID_TEXT_BYTES], there[LOG_ID_TEXT_BYTES];
    log_id_to_text(remote->source.log, here);
    log_id_to_text(found, there);
    return error_set(err, STATUS_IDENTITY,
                     "at %s is log %s now, and what is published from here is log %s (%s)",
                     remote->url, there, here, remote->path);
}

static enum status exchange_once(struct question *question, const char *method, const char *path,
                                 struct span body, struct error *err)
{
    char crc[9];
    snprintf(crc, sizeof crc, "%08x", crc32c(0, body.data, body.length));
    struct http_field field = {.name = "Sluice-Crc32c", .value = crc};
    return http_client_request(question->client, method, path, &field, body.length ? 1 : 0, body,
                               &question->response, err);
}

/* Everything that is asked and told may be said twice. A kept connection may have been closed there
 * since it was used. */
static enum status exchange(struct question *question, const char *method, const char *path,
                            struct span body, struct error *err)
{
    struct remote *remote = question->remote;
    enum status status = STATUS_CLOSED;
    question->client = client_kept(remote);
    if (question->client)
        status = exchange_once(question, method, path, body, err);
    if (status != STATUS_CLOSED && status != STATUS_IO)
        return status;
    http_client_destroy(question->client);
    question->client = NULL;
    TRY(http_client_create(remote->host, remote->port, remote->options.answer_ms_max,
                           &question->client, err));
    return exchange_once(question, method, path, body, err);
}

enum status question_ask(struct question *question, struct remote *remote, const char *method,
                         const char *path, struct span body, struct error *err)
{
    question_end(question);
    question->remote = remote;
    if (exchange(question, method, path, body, err) != STATUS_OK) {
        error_prefix(err, "the log at %s does not answer", remote->url);
        http_client_destroy(question->client);
        *question = (struct question){0};
        return err->status = STATUS_TIMEOUT;
    }
    if (!parse_log(http_response_get(&question->response, "sluice-log"), &question->log,
                   &question->start))
        return remote_silent(remote, err, "what answers is no log port of this version");
    if (!is_whole(&question->response))
        return remote_silent(remote, err, "an answer that does not verify");
    return question->response.code == 200 ? STATUS_OK : refused(remote, &question->response, err);
}

enum status question_ask_now(struct question *question, struct remote *remote, const char *path,
                             struct error *err)
{
    enum status status = question_ask(question, remote, "GET", path, (struct span){0}, err);
    if (status != STATUS_TIMEOUT && (!log_id_equal(question->log, remote->source.log) ||
                                     question->start != source_start(&remote->source)))
        return remote_silent(remote, err, "it was started again meanwhile");
    return status;
}

/* ---- looks ---- */

/* Whether a look is one to decide by. */
static enum status check_look(const struct remote *remote, const struct look *look,
                              struct error *err)
{
    if (remote->is_known && !log_id_equal(look->log, remote->source.log))
        return other_log(remote, look->log, err);
    if (remote->is_known && look->group_count != remote->source.group_count)
        return error_set(err, STATUS_IDENTITY, "the log at %s has %u groups, it had %u",
                         remote->url, look->group_count, remote->source.group_count);
    if (!look->is_published_elsewhere)
        return error_set(err, STATUS_UNSUPPORTED,
                         "the server at %s publishes its log itself; its publish.from has to be "
                         "\"log_port\"",
                         remote->url);
    for (uint32_t g = 0; g < look->group_count; g++) /* E12: of its own term */
        if (look->groups[g].end_term && look->groups[g].end_term != look->term)
            return remote_silent(remote, err, "it has not written anything since its start");
    return STATUS_OK;
}

static void note_silence(struct remote *remote, const struct error *err)
{
    env_lock(remote->lock);
    int64_t now_ns = env_mono_ns(remote->env);
    if (!remote->silent_since_ns)
        remote->silent_since_ns = now_ns;
    bool is_news = !remote->is_told && now_ns - remote->silent_since_ns >= TROUBLE_NS;
    remote->is_answering = false;
    remote->is_told |= is_news;
    remote->failures++;
    snprintf(remote->why, sizeof remote->why, "%s", err->message);
    env_unlock(remote->lock);
    if (is_news && remote->options.changed)
        remote->options.changed(err->message);
}

/* What was asked for before `now` came may be older than it, whenever that was answered. */
static bool is_older(const struct look *look, const struct look *now)
{
    if (look->ticket > now->came_at)
        return false;
    bool is_older = look->start != now->start || look->ticket < now->ticket;
    for (uint32_t g = 0; g < look->group_count && !is_older; g++)
        is_older = look->groups[g].end.seq < now->groups[g].end.seq;
    return is_older;
}

/* An older one goes. False: what is there was asked for earlier, and nobody can tell which is
 * younger. */
static bool take_look(struct remote *remote, struct look *look)
{
    env_lock(remote->lock);
    bool is_news = remote->is_told;
    struct look *old = look;
    bool is_taken = !remote->look || !is_older(look, remote->look);
    bool is_known = is_taken || remote->look->ticket > look->ticket;
    if (is_taken) {
        look->came_at = remote->tickets;
        old = remote->look;
        remote->look = look;
    }
    remote->is_answering = true;
    remote->is_told = false;
    remote->silent_since_ns = 0;
    remote->why[0] = '\0';
    remote->looked_ns = env_mono_ns(remote->env);
    remote->answered_wall_ms = env_wall_ns(remote->env) / 1000000;
    env_unlock(remote->lock);
    look_destroy(old);
    if (is_news && remote->options.changed)
        remote->options.changed(NULL);
    return is_known;
}

/* Any request that is answered as GET /v1/log is. */
enum status remote_look_by(struct remote *remote, const char *method, const char *path,
                           struct span body, struct error *err)
{
    struct question question = {0};
    struct look *look = NULL;
    env_lock(remote->lock);
    uint64_t ticket = ++remote->tickets;
    env_unlock(remote->lock);
    enum status status = question_ask(&question, remote, method, path, body, err);
    if (status == STATUS_OK &&
        look_parse(question.response.body, env_wall_ns(remote->env), &look, err) != STATUS_OK) {
        error_prefix(err, "the log at %s", remote->url);
        status = err->status = STATUS_TIMEOUT;
    }
    question_end(&question);
    if (status == STATUS_OK)
        status = check_look(remote, look, err);
    if (status != STATUS_OK && strcmp(method, "GET") == 0)
        note_silence(remote, err);
    if (status != STATUS_OK) {
        look_destroy(look);
        return status;
    }
    if (!remote->is_known) {
        remote->source.log = look->log;
        remote->source.group_count = look->group_count;
    }
    look->ticket = ticket;
    return take_look(remote, look)
               ? STATUS_OK
               : remote_silent(remote, err, "two of its answers have overtaken each other");
}

static enum status remote_refresh(struct source *source, struct error *err)
{
    return remote_look_by(remote_of(source), "GET", "/v1/log", (struct span){0}, err);
}

static void remote_main(void *context)
{
    struct remote *remote = context;
    env_lock(remote->lock);
    while (!remote->is_ending) {
        int64_t since_ns = env_mono_ns(remote->env) - remote->looked_ns;
        int64_t wait_ns = (int64_t)remote->options.look_ms * 1000000;
        if (remote->is_answering && since_ns < wait_ns) {
            env_wait(remote->wake, remote->lock, (uint64_t)(wait_ns - since_ns) / 1000000 + 1);
            continue;
        }
        struct error ignored;
        env_unlock(remote->lock);
        enum status status = remote_refresh(&remote->source, &ignored);
        env_lock(remote->lock);
        if (status != STATUS_OK && !remote->is_ending)
            env_wait(remote->wake, remote->lock, 2 * remote->options.look_ms);
    }
    env_unlock(remote->lock);
}

/* ---- what the last look says ---- */

/* Locks. */
static const struct look *look_begin(struct source *source)
{
    env_lock(remote_of(source)->lock);
    return remote_of(source)->look;
}

static void look_end(struct source *source)
{
    env_unlock(remote_of(source)->lock);
}

static uint64_t remote_start(struct source *source)
{
    const struct look *look = look_begin(source);
    uint64_t start = look ? look->start : 0;
    look_end(source);
    return start;
}

static uint64_t remote_term(struct source *source)
{
    const struct look *look = look_begin(source);
    uint64_t term = look ? look->term : 0;
    look_end(source);
    return term;
}

static uint64_t remote_incarnation(struct source *source)
{
    const struct look *look = look_begin(source);
    uint64_t incarnation = look ? look->incarnation : 0;
    look_end(source);
    return incarnation;
}

static uint64_t remote_fenced_by(struct source *source)
{
    const struct look *look = look_begin(source);
    uint64_t incarnation = look ? look->fenced_by : 0;
    look_end(source);
    return incarnation;
}

static bool remote_recovered_to(struct source *source, uint32_t group, struct wal_position *out)
{
    const struct look *look = look_begin(source);
    bool is_recovered = look && group < look->group_count && look->groups[group].is_recovered;
    if (is_recovered)
        *out = look->groups[group].recovered_to;
    look_end(source);
    return is_recovered;
}

static bool remote_recovered_without(struct source *source, size_t index, uint32_t *out_group,
                                     uint64_t *out_first, uint64_t *out_last)
{
    const struct look *look = look_begin(source);
    bool is_there = look && index < look->lost_count;
    if (is_there) {
        *out_group = look->lost[index].group;
        *out_first = look->lost[index].first;
        *out_last = look->lost[index].last;
    }
    look_end(source);
    return is_there;
}

static struct look_group group_of(struct source *source, uint32_t group)
{
    const struct look *look = look_begin(source);
    struct look_group found = {0};
    if (look && group < look->group_count)
        found = look->groups[group];
    look_end(source);
    return found;
}

static struct wal_position remote_end(struct source *source, uint32_t group)
{
    return group_of(source, group).end;
}

static struct wal_position remote_started(struct source *source, uint32_t group)
{
    return group_of(source, group).started;
}

/* A look tells the last one of all. */
static uint64_t remote_reclaimed_below(struct source *source, uint32_t group, uint64_t seq)
{
    uint64_t last = group_of(source, group).reclaimed_through;
    return last < seq ? last : seq;
}

/* ---- tables ---- */

static enum status remote_table_open(struct source *source, const char *name,
                                     uint32_t *out_table_id, struct error *err)
{
    struct remote *remote = remote_of(source);
    char *copy = mem_copy_text(name);
    if (!copy)
        return error_set(err, STATUS_NO_MEMORY, "source: out of memory");
    env_lock(remote->lock);
    uint32_t number = 0;
    for (uint32_t t = 0; t < remote->table_count && !number; t++)
        if (strcmp(remote->tables[t], name) == 0)
            number = t + 1;
    if (!number && remote->table_count < TABLES_MAX) {
        remote->tables[remote->table_count] = copy;
        number = ++remote->table_count;
        copy = NULL;
    }
    env_unlock(remote->lock);
    mem_free(copy);
    if (!number)
        return error_set(err, STATUS_LIMIT, "source: more than %d tables", (int)TABLES_MAX);
    *out_table_id = number;
    return STATUS_OK;
}

/* Of a number that remote_table_open gave out; lock held. */
static const struct look_table *table_of(const struct remote *remote, uint32_t table_id)
{
    CHECK(table_id > 0 && table_id <= remote->table_count);
    return look_table_of(remote->look, remote->tables[table_id - 1]);
}

const char *remote_table(struct remote *remote, uint32_t table_id, uint32_t *out_id)
{
    env_lock(remote->lock);
    const struct look_table *table = table_of(remote, table_id);
    const char *name = remote->tables[table_id - 1]; /* stays where it is */
    *out_id = table ? table->id : 0;
    env_unlock(remote->lock);
    return name;
}

uint32_t remote_table_number(struct remote *remote, uint32_t id)
{
    uint32_t number = 0;
    env_lock(remote->lock);
    for (uint32_t t = 1; t <= remote->table_count && !number; t++) {
        const struct look_table *table = table_of(remote, t);
        if (table && table->id == id)
            number = t;
    }
    env_unlock(remote->lock);
    return number;
}

/* False: the log does not have the table. */
static bool part_of(struct source *source, uint32_t table_id, uint32_t group, struct look_part *out)
{
    struct remote *remote = remote_of(source);
    env_lock(remote->lock);
    const struct look_table *table = table_of(remote, table_id);
    bool is_there = table && group < remote->look->group_count;
    if (is_there)
        *out = table->parts[group];
    env_unlock(remote->lock);
    return is_there;
}

static bool remote_ack_get(struct source *source, uint32_t table_id, uint32_t group,
                           struct wal_ack *out)
{
    struct look_part part;
    if (!part_of(source, table_id, group, &part) || !part.has_ack)
        return false;
    *out = part.ack;
    return true;
}

static struct wal_pending remote_lag(struct source *source, uint32_t table_id, uint32_t group)
{
    struct look_part part;
    return part_of(source, table_id, group, &part) ? part.pending : (struct wal_pending){0};
}

static bool remote_damage(struct source *source, uint32_t table_id, uint32_t group,
                          struct wal_damage *out)
{
    struct look_part part;
    if (!part_of(source, table_id, group, &part) || !part.is_damaged)
        return false;
    *out = part.damage;
    return true;
}

static bool remote_is_awaited(struct source *source, uint32_t table_id)
{
    struct remote *remote = remote_of(source);
    env_lock(remote->lock);
    const struct look_table *table = table_of(remote, table_id);
    bool is_awaited = table && table->is_awaited;
    env_unlock(remote->lock);
    return is_awaited;
}

/* ---- life ---- */

static bool remote_state(struct source *source, struct source_state *out)
{
    struct remote *remote = remote_of(source);
    env_lock(remote->lock);
    *out = (struct source_state){
        .is_answering = remote->is_answering,
        .answered_wall_ms = remote->answered_wall_ms,
        .failures_total = remote->failures,
        .entries_total = atomic_load(&remote->entries),
        .bytes_total = atomic_load(&remote->bytes),
    };
    memcpy(out->url, remote->url, sizeof out->url);
    memcpy(out->why, remote->why, sizeof out->why);
    env_unlock(remote->lock);
    return true;
}

static void remote_destroy(struct source *source)
{
    struct remote *remote = remote_of(source);
    if (remote->thread) {
        env_lock(remote->lock);
        remote->is_ending = true;
        env_broadcast(remote->wake);
        env_unlock(remote->lock);
        env_thread_join(remote->thread);
    }
    for (size_t i = 0; i < remote->idle_count; i++)
        http_client_destroy(remote->idle[i]);
    for (uint32_t t = 0; t < remote->table_count; t++)
        mem_free(remote->tables[t]);
    look_destroy(remote->look);
    env_cond_destroy(remote->wake);
    env_mutex_destroy(remote->lock);
    mem_free(remote);
}

const struct source_ops remote_ops = {
    .destroy = remote_destroy,
    .state = remote_state,
    .refresh = remote_refresh,
    .start = remote_start,
    .term = remote_term,
    .incarnation = remote_incarnation,
    .fenced_by = remote_fenced_by,
    .fence = remote_fence,
    .recovered_to = remote_recovered_to,
    .recovered_without = remote_recovered_without,
    .end = remote_end,
    .started = remote_started,
    .reclaimed_below = remote_reclaimed_below,
    .chain_at = remote_chain_at,
    .starts = remote_starts,
    .schema_get = remote_schema_get,
    .table_open = remote_table_open,
    .ack_get = remote_ack_get,
    .ack_table = remote_ack_table,
    .lag = remote_lag,
    .damage = remote_damage,
    .pending = remote_pending,
    .damage_above = remote_damage_above,
    .is_awaited = remote_is_awaited,
    .scan_open = remote_scan_open,
    .scan_next = remote_scan_next,
    .scan_close = remote_scan_close,
};

/* "http://HOST:PORT", a slash behind it or not; an IPv6 address in brackets. */
static enum status parse_url(const char *url, char out_host[64], uint16_t *out_port,
                             struct error *err)
{
    const char *host = strncmp(url, "http://", 7) == 0 ? url + 7 : "";
    const char *colon = strrchr(host, ':');
    size_t host_bytes = colon ? (size_t)(colon - host) : 0;
    size_t port_bytes = colon ? strcspn(colon + 1, "/") : 0;
    uint64_t port = 0;
    if (host_bytes > 2 && host[0] == '[' && host[host_bytes - 1] == ']') {
        host++;
        host_bytes -= 2;
    }
    if (host_bytes > 0 && host_bytes < 64)
        snprintf(out_host, 64, "%.*s", (int)host_bytes, host);
    if (strlen(url) >= SOURCE_URL_BYTES || host_bytes == 0 || host_bytes >= 64 ||
        !os_is_address(out_host) || !parse_u64(colon + 1, port_bytes, &port) || port == 0 ||
        port > 65535 || (colon[1 + port_bytes] && strcmp(colon + 1 + port_bytes, "/") != 0))
        return error_set(err, STATUS_INVALID,
                         "%.200s is no http://ADDRESS:PORT of a log port; the address is one of "
                         "IP, or localhost",
                         url);
    *out_port = (uint16_t)port;
    return STATUS_OK;
}

enum status source_url_check(const char *url, struct error *err)
{
    char host[64];
    uint16_t port;
    return parse_url(url, host, &port, err);
}

/* Nobody knows yet which log it is: somebody has to say it. */
static enum status meet(struct remote *remote, struct error *err)
{
    int64_t until_ns =
        env_mono_ns(remote->env) + (int64_t)remote->options.first_look_ms_max * 1000000;
    enum status status;
    while ((status = remote_refresh(&remote->source, err)) == STATUS_TIMEOUT &&
           env_mono_ns(remote->env) < until_ns && !os_signal_pending())
        env_sleep_ms(remote->env, remote->options.look_ms);
    TRY(status);
    return keep_save(remote->env, remote->path, remote->source.log, remote->source.group_count,
                     err);
}

static enum status open_remote(struct remote *remote, struct error *err)
{
    TRY(parse_url(remote->url, remote->host, &remote->port, err));
    enum status status =
        keep_load(remote->env, remote->path, &remote->source.log, &remote->source.group_count, err);
    remote->is_known = status == STATUS_OK;
    if (status == STATUS_NOT_FOUND)
        status = meet(remote, err);
    else if (status == STATUS_OK) {
        status = remote_refresh(&remote->source, err);
        status = status == STATUS_TIMEOUT ? STATUS_OK : status;
    }
    TRY(status);
    remote->is_known = true;
    return env_thread_start(remote->env, "source", remote_main, remote, &remote->thread, err);
}

static struct remote *remote_make(struct env *env, const struct source_options *options)
{
    struct remote *remote = mem_alloc_zero(1, sizeof *remote);
    if (!remote)
        return NULL;
    remote->source.ops = &remote_ops;
    remote->env = env;
    remote->options = *options;
    snprintf(remote->url, sizeof remote->url, "%s", options->url);
    snprintf(remote->path, sizeof remote->path, "%s", options->path);
    remote->lock = env_mutex_create(env);
    remote->wake = env_cond_create(env);
    if (remote->lock && remote->wake)
        return remote;
    remote_destroy(&remote->source);
    return NULL;
}

enum status source_probe(struct env *env, const char *url, struct error *err)
{
    struct source_options options = source_options_default(url, "");
    struct remote *remote = remote_make(env, &options);
    if (!remote)
        return error_set(err, STATUS_NO_MEMORY, "source: out of memory");
    enum status status = parse_url(url, remote->host, &remote->port, err);
    if (status == STATUS_OK)
        status = remote_refresh(&remote->source, err);
    remote_destroy(&remote->source);
    return status;
}

enum status source_remote_create(struct env *env, const struct source_options *options,
                                 struct source **out_source, struct error *err)
{
    struct remote *remote = remote_make(env, options);
    if (!remote)
        return error_set(err, STATUS_NO_MEMORY, "source: out of memory");
    enum status status = open_remote(remote, err);
    if (status != STATUS_OK) {
        remote_destroy(&remote->source);
        return status;
    }
    *out_source = &remote->source;
    return STATUS_OK;
}
