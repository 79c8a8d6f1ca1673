/* SPDX-License-Identifier: Apache-2.0
 *
 * sluice doctor: checks what a server needs before one is started, and leaves nothing behind. Exit
 * code 1 if anything is wrong.
 */
#include "app/cmd/cmd_internal.h"
#include "flow/source/source.h"
#include "format/json/json.h"

#define PROBE_NAME "sluice-doctor.tmp"

struct findings {
    struct json_writer *writer; /* NULL: text */
    bool is_bad;
};

static void find(struct findings *findings, bool is_good, const char *what, const char *detail)
{
    findings->is_bad |= !is_good;
    if (!findings->writer) {
        printf("%-5s %-10s %s\n", is_good ? "ok" : "BAD", what, detail);
        return;
    }
    json_write_object_begin(findings->writer);
    json_write_key(findings->writer, "check");
    json_write_text(findings->writer, what);
    json_write_key(findings->writer, "is_good");
    json_write_bool(findings->writer, is_good);
    json_write_key(findings->writer, "detail");
    json_write_text(findings->writer, detail);
    json_write_object_end(findings->writer);
}

/* A directory, or, where it is not there, the nearest one above it, in which it would be made. */
static enum status find_directory(struct invocation *invocation, const char *wanted,
                                  char out_dir[PATH_BYTES_MAX], struct error *err)
{
    struct env_stat stat;
    char parent[PATH_BYTES_MAX];
    TRY(os_absolute_path(wanted, out_dir, err));
    enum status status;
    while ((status = env_path_stat(invocation->env, out_dir, &stat, err)) == STATUS_NOT_FOUND) {
        path_parent(parent, out_dir);
        snprintf(out_dir, PATH_BYTES_MAX, "%s", parent);
    }
    if (status == STATUS_OK && !stat.is_directory)
        return error_set(err, STATUS_INVALID, "%s is no directory", out_dir);
    return status;
}

/* Makes a file and removes it. */
static enum status try_writing(struct invocation *invocation, const char *dir, struct error *err)
{
    char path[PATH_BYTES_MAX];
    TRY(path_join(path, dir, PROBE_NAME, err));
    TRY(files_replace(invocation->env, path, "x", 1, err));
    return files_remove(invocation->env, path, err);
}

/* Can what is below `dir` be made and removed there? False: nothing more is worth a look. */
static bool check_directory(struct invocation *invocation, struct findings *findings,
                            const char *dir, struct error *err)
{
    const char *data_dir = invocation->settings.data_dir;
    char detail[PATH_BYTES_MAX + 80];
    struct env_volume volume;
    struct env_stat stat;
    bool is_there = env_path_stat(invocation->env, data_dir, &stat, err) == STATUS_OK;
    enum status status = try_writing(invocation, dir, err);
    snprintf(detail, sizeof detail, "%.500s%s", data_dir,
             is_there ? "" : " is not there; the server would create it");
    find(findings, status == STATUS_OK, "data dir", status == STATUS_OK ? detail : err->message);
    if (status != STATUS_OK || env_volume_stat(invocation->env, dir, &volume, err) != STATUS_OK)
        return status == STATUS_OK;
    snprintf(detail, sizeof detail, "%llu of %llu MiB free",
             (unsigned long long)(volume.bytes_free >> 20),
             (unsigned long long)(volume.bytes_total >> 20));
    find(findings, volume.bytes_free > volume.bytes_total / 20, "volume", detail);
    return true;
}

/* What one synced write costs here decides what an acknowledgement costs. */
static void measure_sync(struct invocation *invocation, struct findings *findings, const char *dir)
{
    enum { WRITES = 20, BYTES = 4096 };
    static const uint8_t zeros[BYTES];
    char path[PATH_BYTES_MAX], detail[160];
    struct env_file *file = NULL;
    struct error err;
    int64_t best_ns = INT64_MAX;
    enum status status = path_join(path, dir, PROBE_NAME, &err);
    if (status == STATUS_OK)
        status =
            env_open(invocation->env, path, ENV_WRITE | ENV_CREATE | ENV_TRUNCATE, &file, &err);
    if (status == STATUS_OK)
        status = env_allocate(file, (uint64_t)WRITES * BYTES, &err);
    for (int i = 0; i < WRITES && status == STATUS_OK; i++) {
        int64_t began_ns = env_mono_ns(invocation->env);
        status = env_write(file, (uint64_t)i * BYTES, zeros, BYTES, &err);
        if (status == STATUS_OK)
            status = env_sync(file, &err);
        int64_t elapsed_ns = env_mono_ns(invocation->env) - began_ns;
        best_ns = elapsed_ns < best_ns ? elapsed_ns : best_ns;
    }
    env_close(file);
    if (status == STATUS_OK)
        status = files_remove(invocation->env, path, &err);
    snprintf(detail, sizeof detail, "a synced write of 4 KiB takes %.3f ms at best",
             (double)best_ns / 1e6);
    find(findings, status == STATUS_OK, "sync", status == STATUS_OK ? detail : err.message);
}

/* Can objects be written there? Where it is a directory, no more is left behind than there was. */
static void check_store(struct invocation *invocation, struct findings *findings, const char *what,
                        const char *uri)
{
    char dir[PATH_BYTES_MAX];
    struct store *store = NULL;
    struct error err;
    enum status status = store_open(invocation->env, uri, &store, &err);
    const char *path = status == STATUS_OK ? store_root(store) + strlen("file://") : NULL;
    bool is_file = path && strncmp(store_root(store), "file://", strlen("file://")) == 0;
    if (is_file)
        status = find_directory(invocation, path, dir, &err);
    if (status == STATUS_OK && is_file)
        status = try_writing(invocation, dir, &err);
    store_close(store);
    find(findings, status == STATUS_OK, what, status == STATUS_OK ? uri : err.message);
}

/* A copy on the same volume does not outlive it. */
static void check_mirror(struct invocation *invocation, struct findings *findings)
{
    const char *url = invocation->settings.mirror_url;
    char here[PATH_BYTES_MAX], there[PATH_BYTES_MAX], path[PATH_BYTES_MAX];
    struct env_stat mirror, data;
    struct error err;
    if (!url[0])
        return;
    check_store(invocation, findings, "mirror", url);
    snprintf(path, sizeof path, "%s", strncmp(url, "file://", 7) == 0 ? url + 7 : url);
    if (find_directory(invocation, path, there, &err) == STATUS_OK &&
        find_directory(invocation, invocation->settings.data_dir, here, &err) == STATUS_OK &&
        env_path_stat(invocation->env, there, &mirror, &err) == STATUS_OK &&
        env_path_stat(invocation->env, here, &data, &err) == STATUS_OK &&
        mirror.device == data.device)
        find(findings, true, "mirror",
             "it is on the volume of the data directory, and would be lost with it");
    if (!invocation->settings.catalog_path[0] || !invocation->settings.warehouse[0])
        find(findings, true, "mirror",
             "it does not keep what a table has, and catalog or warehouse are in the data "
             "directory: publish.catalog_path, publish.warehouse");
}

static void check_stores(struct invocation *invocation, struct findings *findings)
{
    char uri[PATH_BYTES_MAX];
    struct error err;
    if (settings_is_elsewhere(&invocation->settings))
        find(findings, true, "publish",
             "another server publishes this log: who reaches the log port can let go of rows");
    else if (stack_warehouse_uri(&invocation->settings, uri, &err) == STATUS_OK)
        check_store(invocation, findings, "warehouse", uri);
    else
        find(findings, false, "warehouse", err.message);
    check_mirror(invocation, findings);
}

/* The server that runs on this very directory; 0: none answers. What it says of itself must agree
 * with who holds the directory's lock. */
static int find_server(struct invocation *invocation, int64_t *out_otlp_port, int64_t *out_log_port)
{
    struct buf text = {0};
    struct arena arena;
    struct json_value *json;
    struct error err;
    int code = 0, user, server = 0;
    int64_t pid = 0;
    if (!cmd_find_user(invocation, &user))
        return 0;
    arena_init(&arena, 0);
    if (cmd_ask_server(invocation, "GET", "/v1/status", &text, &code, &err) == STATUS_OK &&
        code == 200 && json_parse(text.data, text.length, &arena, &json, &err) == STATUS_OK &&
        json_get_i64(json, "pid", &pid) && json_get_i64(json, "otlp_http_port", out_otlp_port) &&
        json_get_i64(json, "log_port", out_log_port) && (user == 0 || user == pid))
        server = (int)pid;
    arena_deinit(&arena);
    buf_deinit(&text);
    return server;
}

static void check_port(struct invocation *invocation, struct findings *findings, const char *name,
                       uint64_t port, int server)
{
    const char *address = invocation->settings.listen_address;
    struct error err;
    char detail[200];
    enum status status = STATUS_OK;
    if (server) {
        snprintf(detail, sizeof detail,
                 "%s port %llu is in use by the server of this directory, "
                 "pid %d",
                 address, (unsigned long long)port, server);
    } else {
        status = http_address_check(address, (uint16_t)port, &err);
        snprintf(detail, sizeof detail, "%s port %llu is free", address, (unsigned long long)port);
    }
    find(findings, status == STATUS_OK, name, status == STATUS_OK ? detail : err.message);
}

static void check_ports(struct invocation *invocation, struct findings *findings)
{
    const struct settings *settings = &invocation->settings;
    int64_t served = -1, served_log = -1;
    int server = settings->api_port ? find_server(invocation, &served, &served_log) : 0;
    bool is_otlp = server && served == (int64_t)settings->otlp_http_port;
    bool is_log = server && served_log == (int64_t)settings->log_port;
    check_port(invocation, findings, "api port", settings->api_port, server);
    if (settings->source[0])
        return;
    check_port(invocation, findings, "otlp port", settings->otlp_http_port, is_otlp ? server : 0);
    check_port(invocation, findings, "log port", settings->log_port, is_log ? server : 0);
}

/* Does a log port answer there, of a log that is published from elsewhere? */
static void check_source(struct invocation *invocation, struct findings *findings)
{
    struct error err;
    if (!invocation->settings.source[0])
        return;
    enum status status = source_probe(invocation->env, invocation->settings.source, &err);
    find(findings, status == STATUS_OK, "source",
         status == STATUS_OK ? invocation->settings.source : err.message);
}

/* Reads it whole, where there is one. */
static void check_catalog(struct invocation *invocation, struct findings *findings)
{
    struct stack stack = {0};
    struct env_stat stat;
    struct error err;
    char path[PATH_BYTES_MAX];
    if (stack_catalog_path(&invocation->settings, path, &err) != STATUS_OK ||
        env_path_stat(invocation->env, path, &stat, &err) == STATUS_NOT_FOUND)
        return;
    enum status status = cmd_lake_open(invocation, &stack, &err);
    if (status == STATUS_OK) {
        status = catalog_check(stack.catalog, &err);
        stack_close(&stack);
    }
    find(findings, status == STATUS_OK, "catalog", status == STATUS_OK ? path : err.message);
}

int cmd_doctor(struct invocation *invocation)
{
    bool as_json = cmd_take_flag(invocation, "--json");
    char dir[PATH_BYTES_MAX];
    struct error err;
    struct buf text = {0};
    struct json_writer writer;
    struct findings findings = {.writer = as_json ? &writer : NULL};
    if (!cmd_no_more_words(invocation, 0))
        return 2;
    json_writer_init(&writer, &text);
    if (as_json)
        json_write_array_begin(&writer);
    find(&findings, true, "settings", "loaded and consistent");
    if (find_directory(invocation, invocation->settings.data_dir, dir, &err) != STATUS_OK)
        find(&findings, false, "data dir", err.message);
    else if (check_directory(invocation, &findings, dir, &err))
        measure_sync(invocation, &findings, dir);
    check_source(invocation, &findings);
    check_catalog(invocation, &findings);
    check_stores(invocation, &findings);
    check_ports(invocation, &findings);
    if (as_json) {
        json_write_array_end(&writer);
        buf_put_byte(&text, '\n');
    }
    cmd_print(&text);
    return findings.is_bad;
}
