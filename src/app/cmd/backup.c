/* SPDX-License-Identifier: Apache-2.0
 *
 * sluice backup --to DIR: a copy of a running server's data directory. The server writes what has
 * to be of one moment (app/server/backup.c); this process copies the segments that go with it, and
 * then, where the tables stand in the data directory, their files: those that the copied catalog
 * leads to are there until somebody expires them.
 */
#include "app/cmd/cmd_internal.h"
#include "format/json/json.h"

enum { CHUNK_BYTES = 1 << 20 };

static enum status copy_bytes(struct env_file *from, struct env_file *to, uint64_t bytes,
                              struct error *err)
{
    uint8_t *chunk = mem_alloc(CHUNK_BYTES);
    enum status status = STATUS_OK;
    if (!chunk)
        return error_set(err, STATUS_NO_MEMORY, "backup: out of memory");
    for (uint64_t at = 0; status == STATUS_OK && at < bytes;) {
        size_t got = 0, wanted = bytes - at < CHUNK_BYTES ? (size_t)(bytes - at) : CHUNK_BYTES;
        status = env_read(from, at, chunk, wanted, &got, err);
        if (status == STATUS_OK && got == 0)
            status = error_set(err, STATUS_CORRUPT, "backup: a file ends at %llu of %llu bytes",
                               (unsigned long long)at, (unsigned long long)bytes);
        if (status == STATUS_OK)
            status = env_write(to, at, chunk, got, err);
        at += got;
    }
    mem_free(chunk);
    return status;
}

/* `bytes` UINT64_MAX: as long as it is. NOT_FOUND: `from` is not there. */
static enum status copy_file(struct env *env, const char *from, const char *to, uint64_t bytes,
                             struct error *err)
{
    struct env_file *source = NULL, *target = NULL;
    struct env_stat stat;
    enum status status = env_open(env, from, ENV_READ, &source, err);
    if (status == STATUS_OK && bytes == UINT64_MAX) {
        status = env_file_stat(source, &stat, err);
        bytes = status == STATUS_OK ? stat.bytes : 0;
    }
    if (status == STATUS_OK)
        status = env_open(env, to, ENV_WRITE | ENV_CREATE | ENV_TRUNCATE, &target, err);
    if (status == STATUS_OK)
        status = copy_bytes(source, target, bytes, err);
    if (status == STATUS_OK)
        status = env_sync(target, err);
    env_close(source);
    env_close(target);
    return status;
}

/* ---- segments ---- */

/* In the order in which a segment goes through them. */
static const char *const folders[] = {"active", "sealed", "committed"};

static enum status copy_segment(struct invocation *invocation, const char *to, uint64_t id,
                                uint64_t bytes, const char *folder, struct error *err)
{
    char name[64], from[PATH_BYTES_MAX], target[PATH_BYTES_MAX];
    enum status status = STATUS_NOT_FOUND;
    snprintf(name, sizeof name, "log/%s/%016llx.seg", folder, (unsigned long long)id);
    TRY(path_join(target, to, name, err));
    /* It is held, and moves forward through these. */
    for (size_t i = 0; i < COUNT_OF(folders) && status == STATUS_NOT_FOUND; i++) {
        snprintf(name, sizeof name, "log/%s/%016llx.seg", folders[i], (unsigned long long)id);
        TRY(path_join(from, invocation->settings.data_dir, name, err));
        status = copy_file(invocation->env, from, target, bytes, err);
    }
    return status;
}

static enum status copy_segments(struct invocation *invocation, const char *to, struct span told,
                                 size_t *out_count, struct error *err)
{
    struct arena arena;
    struct json_value *json;
    arena_init(&arena, 0);
    enum status status = json_parse(told.data, told.length, &arena, &json, err);
    const struct json_value *segments = status == STATUS_OK ? json_get(json, "segments") : NULL;
    if (status == STATUS_OK && !segments)
        status = error_set(err, STATUS_CORRUPT, "backup: the server did not name its segments");
    const struct json_value *item = segments ? segments->first : NULL;
    for (; status == STATUS_OK && item; item = item->next) {
        int64_t id = 0, bytes = 0;
        bool is_sealed = false, is_committed = false;
        if (!json_get_i64(item, "id", &id) || !json_get_i64(item, "bytes", &bytes) ||
            !json_get_bool(item, "is_sealed", &is_sealed) ||
            !json_get_bool(item, "is_committed", &is_committed))
            status = error_set(err, STATUS_CORRUPT, "backup: the server did not name its segments");
        else if (bytes > 0)
            status = copy_segment(invocation, to, (uint64_t)id, (uint64_t)bytes,
                                  folders[is_committed ? 2 : is_sealed], err);
        ++*out_count;
    }
    arena_deinit(&arena);
    return status;
}

/* ---- the tables' files ---- */

static enum status copy_tree(struct env *env, const char *from, const char *to, size_t *out_count,
                             struct error *err)
{
    struct arena arena;
    char **names;
    size_t count = 0;
    arena_init(&arena, 0);
    enum status status = files_list(env, from, &arena, &names, &count, err);
    if (status == STATUS_OK)
        status = files_make_dirs(env, to, err);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        char source[PATH_BYTES_MAX], target[PATH_BYTES_MAX];
        struct env_stat stat;
        status = path_join(source, from, names[i], err);
        if (status == STATUS_OK)
            status = path_join(target, to, names[i], err);
        if (status != STATUS_OK)
            break;
        status = env_path_stat(env, source, &stat, err);
        if (status == STATUS_OK)
            status = stat.is_directory ? copy_tree(env, source, target, out_count, err)
                                       : copy_file(env, source, target, UINT64_MAX, err);
        if (status == STATUS_NOT_FOUND) /* unfinished, or cleaned away meanwhile */
            status = STATUS_OK;
        else if (status == STATUS_OK && !stat.is_directory)
            ++*out_count;
    }
    arena_deinit(&arena);
    return status == STATUS_OK ? env_dir_sync(env, to, err) : status;
}

static enum status copy_folder(struct invocation *invocation, const char *to, const char *name,
                               size_t *out_count, struct error *err)
{
    char from[PATH_BYTES_MAX], target[PATH_BYTES_MAX];
    struct env_stat stat;
    TRY(path_join(from, invocation->settings.data_dir, name, err));
    TRY(path_join(target, to, name, err));
    if (env_path_stat(invocation->env, from, &stat, err) == STATUS_NOT_FOUND)
        return STATUS_OK;
    return copy_tree(invocation->env, from, target, out_count, err);
}

static enum status sync_folders(struct env *env, const char *to, struct error *err)
{
    static const char *const names[] = {
        "log/active", "log/sealed", "log/committed", "log/state", "log", "publish", ""};
    char path[PATH_BYTES_MAX];
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        TRY(path_join(path, to, names[i], err));
        TRY(env_dir_sync(env, path, err));
    }
    return STATUS_OK;
}

/* ---- the command ---- */

static enum status ask(struct invocation *invocation, const char *to, struct buf *out_body,
                       struct error *err)
{
    struct buf path = {0};
    int code = 0;
    buf_put_text(&path, "/v1/backup");
    if (to)
        buf_put_text(&path, "?to=");
    for (const char *text = to ? to : ""; *text; text++) {
        bool is_plain = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
                        (*text >= '0' && *text <= '9') || strchr("._-/", *text);
        buf_format(&path, is_plain ? "%c" : "%%%02X", (unsigned char)*text);
    }
    buf_put_byte(&path, '\0');
    enum status status = buf_status(&path, "request", err);
    if (status == STATUS_OK)
        status =
            cmd_ask_own_server(invocation, "POST", (const char *)path.data, out_body, &code, err);
    buf_deinit(&path);
    TRY(status);
    if (code == 200)
        return STATUS_OK;
    int length = (int)out_body->length;
    while (length > 0 && out_body->data[length - 1] == '\n')
        length--;
    return error_set(err,
                     code == 409   ? STATUS_EXISTS
                     : code == 503 ? STATUS_BUSY
                                   : STATUS_IO,
                     "%.*s", length, (const char *)out_body->data);
}

static enum status back_up(struct invocation *invocation, const char *to, size_t *out_segments,
                           size_t *out_files, struct error *err)
{
    struct buf told = {0}, ignored_body = {0};
    struct error ignored;
    enum status status = ask(invocation, to, &told, err);
    if (status == STATUS_OK) {
        status = copy_segments(invocation, to, span_of(told.data, told.length), out_segments, err);
        enum status ended = ask(invocation, NULL, &ignored_body, &ignored);
        UNUSED(ended); /* a server that is gone holds nothing */
    }
    buf_deinit(&told);
    buf_deinit(&ignored_body);
    TRY(status);
    if (!invocation->settings.warehouse[0])
        TRY(copy_folder(invocation, to, "warehouse", out_files, err));
    TRY(copy_folder(invocation, to, "deadletter", out_files, err));
    return sync_folders(invocation->env, to, err);
}

int cmd_backup(struct invocation *invocation)
{
    char to[PATH_BYTES_MAX];
    struct error err;
    size_t segments = 0, files = 0;
    const char *wanted = cmd_take_option(invocation, "--to");
    if (!wanted)
        return cmd_usage("--to DIR is needed");
    if (!cmd_no_more_words(invocation, 0))
        return 2;
    enum status status = os_absolute_path(wanted, to, &err);
    if (status == STATUS_OK)
        status = cmd_find_log(invocation, &err);
    if (status == STATUS_OK)
        status = back_up(invocation, to, &segments, &files, &err);
    if (status != STATUS_OK)
        return cmd_fail(&err);
    printf("%s: %zu segments, the catalog, what the lanes keep, %zu other files\n", to, segments,
           files);
    return 0;
}
