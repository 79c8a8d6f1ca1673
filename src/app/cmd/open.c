/* SPDX-License-Identifier: Apache-2.0
 *
 * How commands come to the data directory, and to the server that has it.
 */
#include "app/cmd/cmd_internal.h"
#include "format/json/json.h"

/* ---- who has it? ---- */

/* The process that holds flock on a file, as Linux lists them; 0 if it does not say. */
static int lock_holder(struct env *env, uint64_t inode)
{
    enum { LOCKS_BYTES_MAX = 1 << 18 };
    struct env_file *file = NULL;
    struct error ignored;
    struct buf text = {0};
    size_t bytes = 0;
    int holder = 0;
    char *list = (char *)buf_extend(&text, LOCKS_BYTES_MAX);
    if (!list || env_open(env, "/proc/locks", ENV_READ, &file, &ignored) != STATUS_OK ||
        env_read(file, 0, list, LOCKS_BYTES_MAX - 1, &bytes, &ignored) != STATUS_OK)
        bytes = 0;
    if (list)
        list[bytes] = '\0';
    for (const char *line = list; bytes && line && *line; line = strchr(line, '\n')) {
        int pid;
        unsigned long long locked;
        line += *line == '\n';
        if (sscanf(line, "%*s FLOCK %*s %*s %d %*x:%*x:%llu", &pid, &locked) == 2 &&
            locked == inode && pid > 0)
            holder = pid;
    }
    env_close(file);
    buf_deinit(&text);
    return holder;
}

/* Does another process hold the lock of the log (docs/format/segment.md), or of what is published
 * from elsewhere? */
static bool is_locked(struct invocation *invocation, const char *name, uint64_t *out_inode)
{
    char path[PATH_BYTES_MAX];
    struct env_file *file = NULL;
    struct env_stat stat;
    struct error err;
    if (path_join(path, invocation->settings.data_dir, name, &err) != STATUS_OK ||
        env_open(invocation->env, path, ENV_READ | ENV_WRITE, &file, &err) != STATUS_OK)
        return false;
    bool is_busy = env_lock_file(file, &err) == STATUS_BUSY;
    if (is_busy && env_file_stat(file, &stat, &err) == STATUS_OK)
        *out_inode = stat.inode;
    env_close(file);
    return is_busy;
}

bool cmd_find_user(struct invocation *invocation, int *out_pid)
{
    uint64_t inode = 0;
    *out_pid = 0;
    if (!is_locked(invocation, invocation->settings.source[0] ? "publish/lock" : "log/lock",
                   &inode))
        return false;
    *out_pid = lock_holder(invocation->env, inode);
    return true;
}

enum status cmd_explain_busy(struct invocation *invocation, struct error *err)
{
    const char *dir = invocation->settings.data_dir;
    int pid;
    if (err->status != STATUS_BUSY || !cmd_find_user(invocation, &pid))
        return err->status;
    if (pid)
        return error_set(err, STATUS_BUSY, "another sluice process, pid %d, is using %s", pid, dir);
    return error_set(err, STATUS_BUSY, "another sluice process is using %s", dir);
}

/* ---- opening, asking ---- */

enum status cmd_find_log(struct invocation *invocation, struct error *err)
{
    char dir[PATH_BYTES_MAX];
    struct arena arena;
    char **names;
    size_t count;
    TRY(path_join(dir, invocation->settings.data_dir, "log", err));
    arena_init(&arena, 0);
    enum status status = files_list(invocation->env, dir, &arena, &names, &count, err);
    arena_deinit(&arena);
    if (status == STATUS_OK)
        return STATUS_OK;
    struct error ignored;
    struct env_stat stat;
    TRY(path_join(dir, invocation->settings.data_dir, "source", err));
    if (env_path_stat(invocation->env, dir, &stat, &ignored) == STATUS_OK)
        return error_set(err, status,
                         "%.300s is of a server that publishes another one's log, and holds none: "
                         "ask the server that has it, or give --source",
                         invocation->settings.data_dir);
    return error_prefix(err, "%s holds no log", invocation->settings.data_dir);
}

enum status cmd_stack_open(struct invocation *invocation, struct stack *out_stack,
                           struct error *err)
{
    if (!invocation->settings.source[0])
        TRY(cmd_find_log(invocation, err));
    if (stack_open(invocation->env, &invocation->settings, out_stack, err) != STATUS_OK)
        return cmd_explain_busy(invocation, err);
    return STATUS_OK;
}

enum status cmd_lake_open(struct invocation *invocation, struct stack *out_stack, struct error *err)
{
    char path[PATH_BYTES_MAX];
    struct env_stat stat;
    TRY(stack_catalog_path(&invocation->settings, path, err));
    if (env_path_stat(invocation->env, path, &stat, err) != STATUS_OK)
        return invocation->settings.catalog_path[0]
                   ? error_prefix(err, "%s is no catalog", path)
                   : error_prefix(err, "%s holds no catalog", invocation->settings.data_dir);
    return stack_open_lake(invocation->env, &invocation->settings, out_stack, err);
}

enum status cmd_ask_server(struct invocation *invocation, const char *method, const char *path,
                           struct buf *out_body, int *out_code, struct error *err)
{
    struct http_client *client = NULL;
    struct http_response response;
    const struct settings *settings = &invocation->settings;
    TRY(http_client_create(settings->listen_address, (uint16_t)settings->api_port, 60000, &client,
                           err));
    enum status status =
        http_client_request(client, method, path, NULL, 0, (struct span){0}, &response, err);
    if (status == STATUS_OK) {
        buf_put(out_body, response.body.data, response.body.length);
        *out_code = response.code;
    } else if (status == STATUS_IO) {
        status = error_set(err, STATUS_NOT_FOUND, "no server answers at %s port %llu",
                           settings->listen_address, (unsigned long long)settings->api_port);
    }
    http_client_destroy(client);
    return status;
}

/* Of the process that serves the API there. */
static enum status ask_pid(struct invocation *invocation, int64_t *out_pid, struct error *err)
{
    const struct settings *settings = &invocation->settings;
    struct buf text = {0};
    struct arena arena;
    struct json_value *json;
    int code = 0;
    arena_init(&arena, 0);
    enum status status = cmd_ask_server(invocation, "GET", "/v1/status", &text, &code, err);
    if (status == STATUS_OK &&
        (code != 200 || json_parse(text.data, text.length, &arena, &json, err) != STATUS_OK ||
         !json_get_i64(json, "pid", out_pid)))
        status = error_set(err, STATUS_CORRUPT, "what answers at %s port %llu is no sluice server",
                           settings->listen_address, (unsigned long long)settings->api_port);
    arena_deinit(&arena);
    buf_deinit(&text);
    return status;
}

enum status cmd_ask_own_server(struct invocation *invocation, const char *method, const char *path,
                               struct buf *out_body, int *out_code, struct error *err)
{
    const struct settings *settings = &invocation->settings;
    uint64_t inode = 0;
    int64_t pid = 0;
    TRY(ask_pid(invocation, &pid, err));
    if (!is_locked(invocation, "log/lock", &inode) &&
        !is_locked(invocation, "publish/lock", &inode))
        return error_set(err, STATUS_NOT_FOUND,
                         "the server at %s port %llu, pid %lld, is not that of %.200s",
                         settings->listen_address, (unsigned long long)settings->api_port,
                         (long long)pid, settings->data_dir);
    int user = lock_holder(invocation->env, inode);
    if (user && user != pid)
        return error_set(err, STATUS_BUSY,
                         "the server at %s port %llu, pid %lld, is not that of %.200s, which is "
                         "pid %d: give its --api-port",
                         settings->listen_address, (unsigned long long)settings->api_port,
                         (long long)pid, settings->data_dir, user);
    return cmd_ask_server(invocation, method, path, out_body, out_code, err);
}
