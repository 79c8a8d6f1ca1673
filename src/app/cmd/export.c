/* SPDX-License-Identifier: Apache-2.0
 *
 * sluice export TABLE --to FILE.ndjson | DIR: what stands on a running server's log goes into a
 * file of lines, or into Parquet files, each row once, whatever ends the command.
 *
 * State stands beside the output: the cursor, and how far the output counts. A round:
 *
 *   1. rows are written behind what counts: lines at the end of the file; a Parquet file under a
 *      name that readers pass over, and renamed once it is whole
 *   2. all of it is synced, names too
 *   3. the state is replaced in one step and synced: from here on those rows count
 *   4. with a consumer: acknowledged
 *
 * A start cuts or removes what does not count. A second process is kept out by a lock; in that file
 * stands the name under which a member of a partition group owns its part.
 */
#include "app/cmd/export_internal.h"

enum {
    OWNER_BYTES = 16,
    WAIT_MS = 10000,
    STATE_BYTES_MAX = 64 << 10,
    STREAM_BYTES_A_FILE = 128 << 20,
    FILE_MS = 10000
};

struct export
{
    struct env *env;
    struct follow_options options;
    struct follow *follow;
    const char *table, *to;
    char member[24]; /* "1/3"; "": all rows */
    char owner[2 * OWNER_BYTES + 1];
    bool is_lines, does_follow, skips_reclaimed;
    char state_path[PATH_BYTES_MAX], part_path[PATH_BYTES_MAX], tmp_path[PATH_BYTES_MAX];
    char cursor[FOLLOW_CURSOR_BYTES]; /* of the state; "": there is none */
    uint64_t bytes, files;            /* what counts: of the lines; Parquet files */
    uint64_t rows;                    /* in this run */
    struct env_file *lock, *file;     /* file: the lines, or the Parquet file at hand */
    uint64_t offset;                  /* its end */
    struct rows_out out;              /* the Parquet file's; `state` NULL: none */
    struct arrow_schema schema;       /* of it */
    struct arena arena;               /* owns the schema */
    uint64_t stream_bytes;            /* of the pages in it */
    int64_t part_began_ns;
    char flags[FOLLOW_FLAGS_BYTES]; /* that were said last */
};

static enum status put(void *context, const void *data, size_t bytes, struct error *err)
{
    struct export *export = context;
    TRY(env_write(export->file, export->offset, data, bytes, err));
    export->offset += bytes;
    return STATUS_OK;
}

static struct sink sink_of(struct export *export)
{
    return (struct sink){.write = put, .context = export};
}

/* ---- state ---- */

static enum status state_save(struct export *export, struct error *err)
{
    struct buf text = {0};
    struct json_writer json;
    json_writer_init(&json, &text);
    json_write_object_begin(&json);
    json_write_key(&json, "table");
    json_write_text(&json, export->table);
    json_write_key(&json, "member");
    json_write_text(&json, export->member);
    json_write_key(&json, "cursor");
    json_write_text(&json, follow_cursor(export->follow));
    json_write_key(&json, export->is_lines ? "bytes" : "files");
    json_write_u64(&json, export->is_lines ? export->bytes : export->files);
    json_write_object_end(&json);
    buf_put_byte(&text, '\n');
    enum status status = buf_status(&text, "export", err);
    if (status == STATUS_OK)
        status = files_replace(export->env, export->state_path, text.data, text.length, err);
    buf_deinit(&text);
    return status;
}

static enum status state_read(struct export *export, struct error *err)
{
    struct buf text = {0};
    struct arena arena;
    struct json_value *json = NULL;
    int64_t count = 0;
    arena_init(&arena, 1 << 20);
    enum status status = files_read(export->env, export->state_path, STATE_BYTES_MAX, &text, err);
    if (status == STATUS_OK)
        status = json_parse(text.data, text.length, &arena, &json, err);
    const char *table = json_get_text(json, "table"), *cursor = json_get_text(json, "cursor");
    const char *member = json_get_text(json, "member");
    if (status == STATUS_OK &&
        (!table || !cursor || strlen(cursor) >= sizeof export->cursor ||
         !json_get_i64(json, export->is_lines ? "bytes" : "files", &count) || count < 0))
        status = error_set(err, STATUS_INVALID, "%.300s is no state of such an export",
                           export->state_path);
    else if (status == STATUS_OK && strcmp(table, export->table) != 0)
        status =
            error_set(err, STATUS_USAGE, "%.300s is of table %.100s", export->state_path, table);
    else if (status == STATUS_OK && strcmp(member ? member : "", export->member) != 0)
        status = error_set(err, STATUS_USAGE, "%.300s is of member %.20s", export->state_path,
                           member && member[0] ? member : "0/1");
    if (status == STATUS_OK) {
        snprintf(export->cursor, sizeof export->cursor, "%s", cursor);
        export->bytes = export->files = (uint64_t)count;
    }
    buf_deinit(&text);
    arena_deinit(&arena);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- Parquet files ---- */

static enum status part_begin(struct export *export, const struct arrow_schema *schema,
                              struct error *err)
{
    static const struct write_flags flags;
    char name[64];
    snprintf(name, sizeof name, "part-%08llu.parquet", (unsigned long long)export->files);
    TRY(path_join(export->part_path, export->to, name, err));
    snprintf(name, sizeof name, "_part-%08llu.parquet.tmp", (unsigned long long)export->files);
    TRY(path_join(export->tmp_path, export->to, name, err));
    arena_init(&export->arena, 0);
    TRY(arrow_schema_copy(schema, &export->arena, &export->schema, err));
    TRY(env_open(export->env, export->tmp_path, ENV_READ | ENV_WRITE | ENV_CREATE | ENV_TRUNCATE,
                 &export->file, err));
    export->offset = export->stream_bytes = 0;
    export->part_began_ns = env_mono_ns(export->env);
    return rows_out_open(FORMAT_PARQUET, &export->schema, &flags, sink_of(export), &export->out,
                         err);
}

static void part_close(struct export *export)
{
    if (export->out.state)
        export->out.close(export->out.state);
    export->out = (struct rows_out){0};
    env_close(export->file);
    export->file = NULL;
    arena_deinit(&export->arena);
}

/* Steps 2 and 3, if there is something. */
static enum status part_commit(struct export *export, struct error *err)
{
    if (!export->out.state)
        return STATUS_OK;
    TRY(export->out.finish(export->out.state, err));
    TRY(env_sync(export->file, err));
    part_close(export);
    TRY(env_rename(export->env, export->tmp_path, export->part_path, err));
    TRY(env_dir_sync(export->env, export->to, err));
    export->files++;
    return STATUS_OK;
}

/* ---- pages ---- */

static enum status write_batches(struct export *export, struct arrow_file *file,
                                 struct rows_out *out, struct error *err)
{
    enum status status = STATUS_OK;
    while (status == STATUS_OK) {
        struct arrow_batch batch = {0};
        status = arrow_file_next(file, &batch, err);
        if (status == STATUS_OK) {
            export->rows += (uint64_t)batch.length;
            status = out->write(out->state, &batch, err);
        }
        arrow_batch_deinit(&batch);
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status write_lines(struct export *export, struct arrow_file *file, struct error *err)
{
    static const struct write_flags flags;
    struct rows_out out = {0};
    export->offset = export->bytes;
    TRY(rows_out_open(FORMAT_NDJSON, arrow_file_schema(file), &flags, sink_of(export), &out, err));
    enum status status = write_batches(export, file, &out, err);
    if (status == STATUS_OK)
        status = out.finish(out.state, err);
    out.close(out.state);
    TRY(status);
    TRY(env_sync(export->file, err));
    export->bytes = export->offset;
    return STATUS_OK;
}

static enum status write_page(struct export *export, const struct follow_page *page,
                              struct error *err)
{
    struct byte_source source;
    struct arrow_file *file = NULL;
    enum status status = stream_open(&page->stream, &source, &file, err);
    if (status == STATUS_OK && export->is_lines)
        status = write_lines(export, file, err);
    else if (status == STATUS_OK && !export->out.state)
        status = part_begin(export, arrow_file_schema(file), err);
    if (status == STATUS_OK && !export->is_lines)
        status = write_batches(export, file, &export->out, err);
    export->stream_bytes += page->stream.length;
    arrow_file_close(file);
    return status;
}

/* Does a part that has rows go no further? */
static enum status is_other_schema(struct export *export, const struct follow_page *page,
                                   bool *out_is_other, struct error *err)
{
    struct byte_source source;
    struct arrow_file *file = NULL;
    if (!export->out.state || !page->rows)
        return STATUS_OK;
    enum status status = stream_open(&page->stream, &source, &file, err);
    if (status == STATUS_OK)
        *out_is_other = !arrow_schema_equal(arrow_file_schema(file), &export->schema);
    arrow_file_close(file);
    return status;
}

/* Steps 2 to 4. */
static enum status count(struct export *export, struct error *err)
{
    if (!export->is_lines)
        TRY(part_commit(export, err));
    TRY(state_save(export, err));
    return follow_acknowledge(export->follow, err);
}

/* Lines count at once. A Parquet file does when it is large, or nothing more comes for it now. */
static bool is_due(const struct export *export, const struct follow_page *page)
{
    int64_t age_ns = env_mono_ns(export->env) - export->part_began_ns;
    return export->is_lines || export->stream_bytes >= STREAM_BYTES_A_FILE || !page->rows ||
           (page->is_at_end && (!export->does_follow || age_ns >= (int64_t)FILE_MS * 1000000));
}

static enum status round_once(struct export *export, bool *out_is_over, struct error *err)
{
    struct follow_page page;
    char before[FOLLOW_CURSOR_BYTES];
    bool is_other = false;
    snprintf(before, sizeof before, "%s", follow_cursor(export->follow));
    TRY(follow_next(export->follow, export->does_follow ? WAIT_MS : 0, &page, err));
    TRY(is_other_schema(export, &page, &is_other, err));
    if (is_other) { /* what came before it counts up to there; then the page again */
        TRY(follow_begin(export->follow, before, err));
        return count(export, err);
    }
    if (page.rows)
        TRY(write_page(export, &page, err));
    bool has_moved = strcmp(before, page.cursor) != 0;
    if (is_due(export, &page) && (has_moved || export->out.state))
        TRY(count(export, err));
    if (strcmp(page.flags, export->flags) != 0)
        fprintf(stderr, "sluice: the consumer's lease: %s\n",
                page.flags[0] ? page.flags : "as asked");
    memcpy(export->flags, page.flags, sizeof export->flags);
    *out_is_over = page.is_at_end && !export->does_follow;
    return STATUS_OK;
}

/* ---- the beginning ---- */

static bool is_part_name(const char *name, const char *before, const char *after,
                         uint64_t *out_number)
{
    size_t length = strlen(name), head = strlen(before), tail = strlen(after);
    return length > head + tail && strncmp(name, before, head) == 0 &&
           strcmp(name + length - tail, after) == 0 &&
           parse_u64(name + head, length - head - tail, out_number);
}

/* Parquet files of ours that do not count, whole or not. */
static enum status remove_uncounted(struct export *export, struct error *err)
{
    struct arena arena;
    char **names = NULL, path[PATH_BYTES_MAX];
    size_t name_count = 0;
    arena_init(&arena, 0);
    enum status status = files_list(export->env, export->to, &arena, &names, &name_count, err);
    for (size_t i = 0; i < name_count && status == STATUS_OK; i++) {
        uint64_t number = UINT64_MAX;
        bool is_part = is_part_name(names[i], "part-", ".parquet", &number) ||
                       is_part_name(names[i], "_part-", ".parquet.tmp", &number);
        bool is_ours = strcmp(names[i], "_export.state") == 0 ||
                       strcmp(names[i], "_export.state.tmp") == 0 ||
                       strcmp(names[i], "_export.state.lock") == 0;
        if (!export->cursor[0] && !is_ours)
            status = error_set(err, STATUS_EXISTS, "%.300s holds other files, and no _export.state",
                               export->to);
        else if (is_part && number >= export->files)
            status = path_join(path, export->to, names[i], err);
        else
            continue;
        if (status == STATUS_OK)
            status = files_remove(export->env, path, err);
    }
    arena_deinit(&arena);
    return status;
}

static enum status open_lines(struct export *export, struct error *err)
{
    struct env_stat stat;
    char dir[PATH_BYTES_MAX];
    TRY(env_open(export->env, export->to, ENV_READ | ENV_WRITE | ENV_CREATE, &export->file, err));
    TRY(env_file_stat(export->file, &stat, err));
    if (!export->cursor[0] && stat.bytes)
        return error_set(err, STATUS_EXISTS, "%.300s is there, and no %.100s", export->to,
                         ".state beside it");
    if (stat.bytes < export->bytes)
        return error_set(err, STATUS_INVALID,
                         "%.200s has %llu bytes, and its state says %llu: put one of them back",
                         export->to, (unsigned long long)stat.bytes,
                         (unsigned long long)export->bytes);
    if (stat.bytes > export->bytes)
        TRY(env_truncate(export->file, export->bytes, err));
    path_parent(dir, export->to);
    return env_dir_sync(export->env, dir, err);
}

/* Made once, in the lock file, before the server hears of it: a restart is the same owner. */
static enum status take_owner(struct export *export, struct error *err)
{
    uint8_t random[OWNER_BYTES];
    size_t length = sizeof export->owner - 1, got = 0;
    TRY(env_read(export->lock, 0, export->owner, length, &got, err));
    if (got == length)
        return STATUS_OK;
    env_random(export->env, random, sizeof random);
    hex_encode(export->owner, random, sizeof random);
    TRY(env_write(export->lock, 0, export->owner, length, err));
    return env_sync(export->lock, err);
}

static enum status begin(struct export *export, const char *from, struct error *err)
{
    char lock_path[PATH_BYTES_MAX + 8];
    if (export->is_lines)
        snprintf(export->state_path, sizeof export->state_path, "%s.state", export->to);
    else
        TRY(path_join(export->state_path, export->to, "_export.state", err));
    if (!export->is_lines)
        TRY(files_make_dirs(export->env, export->to, err));
    snprintf(lock_path, sizeof lock_path, "%s.lock", export->state_path);
    TRY(env_open(export->env, lock_path, ENV_READ | ENV_WRITE | ENV_CREATE, &export->lock, err));
    if (env_lock_file(export->lock, err) != STATUS_OK)
        return error_prefix(err, "another process exports to %.300s", export->to);
    if (export->options.member_count)
        TRY(take_owner(export, err));
    TRY(follow_create(export->env, &export->options, &export->follow, err));
    TRY(state_read(export, err));
    TRY(export->is_lines ? open_lines(export, err) : remove_uncounted(export, err));
    if (export->cursor[0] && from)
        return error_set(err, STATUS_USAGE,
                         "%.300s says where to go on; --from is for a new export",
                         export->state_path);
    TRY(follow_begin(export->follow,
                     export->cursor[0]          ? export->cursor
                     : from                     ? from
                     : export->options.consumer ? NULL
                                                : "earliest",
                     err));
    return state_save(export, err);
}

/* Rows that the log does not have any more are in their table, and never here. */
static enum status skip_reclaimed(struct export *export, struct error *err)
{
    char behind[24];
    uint64_t last = follow_reclaimed_last(export->follow);
    if (export->skips_reclaimed &&
        last == 0) /* nobody said up to where: not from the begin again */
        return err->status;
    if (!export->skips_reclaimed) {
        struct error why = *err;
        return error_set(err, STATUS_RECLAIMED, "%.400s; --skip-reclaimed goes on behind them",
                         why.message);
    }
    fprintf(stderr, "sluice: %s; skipped\n", err->message);
    snprintf(behind, sizeof behind, "%llu", (unsigned long long)last);
    TRY(follow_begin(export->follow, behind, err));
    return count(export, err);
}

static enum status run(struct export *export, const char *from, struct error *err)
{
    bool is_over = false;
    TRY(begin(export, from, err));
    while (!is_over) {
        enum status status = round_once(export, &is_over, err);
        if (status == STATUS_RECLAIMED)
            status = skip_reclaimed(export, err);
        TRY(status);
    }
    return STATUS_OK;
}

/* "I/N". */
static bool take_member(struct invocation *invocation, struct export *export)
{
    struct follow_options *options = &export->options;
    const char *text = cmd_take_option(invocation, "--member");
    const char *slash = text ? strchr(text, '/') : NULL;
    uint64_t member = 0, count = 0;
    if (!text)
        return true;
    if (!slash || !parse_u64(text, (size_t)(slash - text), &member) ||
        !parse_u64(slash + 1, strlen(slash + 1), &count) || count < 2 || count > 32 ||
        member >= count || !options->consumer)
        return false;
    options->member = (uint32_t)member;
    options->member_count = (uint32_t)count;
    snprintf(export->member, sizeof export->member, "%u/%u", options->member,
             options->member_count);
    return true;
}

int cmd_export(struct invocation *invocation)
{
    struct error err;
    struct export export = {.env = invocation->env, .options = follow_options_default()};
    struct follow_options *options = &export.options;
    enum file_format format;
    uint64_t group = 0;
    const char *from = cmd_take_option(invocation, "--from");
    export.to = cmd_take_option(invocation, "--to");
    options->consumer = cmd_take_option(invocation, "--consumer");
    export.does_follow = cmd_take_flag(invocation, "--follow");
    export.skips_reclaimed = cmd_take_flag(invocation, "--skip-reclaimed");
    if (!cmd_take_number(invocation, "--group", &group))
        return 2;
    if (!take_member(invocation, &export))
        return cmd_usage("export: --member is I/N, N from 2 to 32 and I below it, with --consumer");
    if (invocation->argc < 1 || !export.to || group > UINT32_MAX)
        return cmd_usage("export: a table and --to are needed: sluice export otel.logs --to dir");
    if (!cmd_no_more_words(invocation, 1))
        return 2;
    options->address = invocation->settings.listen_address;
    options->port = (uint16_t)invocation->settings.log_port;
    options->table = export.table = invocation->argv[0];
    options->group = (uint32_t)group;
    options->owner = options->member_count ? export.owner : NULL;
    export.is_lines =
        format_of_path(export.to, &format, &err) == STATUS_OK && format == FORMAT_NDJSON;
    enum status status = run(&export, from, &err);
    part_close(&export);
    env_close(export.lock);
    if (status == STATUS_OK)
        printf("%llu rows; it goes on behind %s\n", (unsigned long long)export.rows,
               follow_cursor(export.follow));
    follow_destroy(export.follow);
    return status == STATUS_OK ? 0 : cmd_fail(&err);
}
