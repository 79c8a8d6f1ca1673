/* SPDX-License-Identifier: Apache-2.0
 *
 * sluice convert IN OUT: from one format to another, by the endings of the names. The output
 * appears whole, under its name, or not at all; signals that end the process take it with them.
 */
#include "app/cmd/convert_internal.h"

static const struct {
    const char *ending;
    enum file_format format;
} endings[] = {
    {".parquet", FORMAT_PARQUET},     {".arrow", FORMAT_ARROW},
    {".feather", FORMAT_ARROW},       {".ipc", FORMAT_ARROW},
    {".arrows", FORMAT_ARROW_STREAM}, {".ndjson", FORMAT_NDJSON},
    {".jsonl", FORMAT_NDJSON},        {".csv", FORMAT_CSV},
    {".avro", FORMAT_AVRO},
};

enum status format_of_path(const char *path, enum file_format *out_format, struct error *err)
{
    size_t length = strlen(path);
    struct buf list = {0};
    for (size_t i = 0; i < COUNT_OF(endings); i++) {
        size_t bytes = strlen(endings[i].ending);
        if (length > bytes && strcmp(path + length - bytes, endings[i].ending) == 0) {
            *out_format = endings[i].format;
            return STATUS_OK;
        }
    }
    for (size_t i = 0; i < COUNT_OF(endings); i++)
        buf_format(&list, "%s%s", i ? ", " : "", endings[i].ending);
    buf_put_byte(&list, '\0');
    error_set(err, STATUS_USAGE, "%.200s: the ending says the format: %s", path,
              list.failed ? "" : (const char *)list.data);
    buf_deinit(&list);
    return STATUS_USAGE;
}

/* ---- the output ---- */

struct output {
    struct env *env;
    struct env_file *file;
    uint64_t at;
    const char *path;
    char temporary[PATH_BYTES_MAX];
};

static enum status write_output(void *context, const void *data, size_t bytes, struct error *err)
{
    struct output *output = context;
    TRY(env_write(output->file, output->at, data, bytes, err));
    output->at += bytes;
    return STATUS_OK;
}

static enum status output_open(struct env *env, const char *path, struct output *out_output,
                               struct error *err)
{
    uint64_t random;
    *out_output = (struct output){.env = env, .path = path};
    env_random(env, &random, sizeof random);
    if (snprintf(out_output->temporary, PATH_BYTES_MAX, "%s.%016llx.tmp", path,
                 (unsigned long long)random) >= PATH_BYTES_MAX)
        return error_set(err, STATUS_USAGE, "%.200s: name too long", path);
    os_remove_at_signals(out_output->temporary);
    enum status status =
        env_open(env, out_output->temporary, ENV_WRITE | ENV_CREATE | ENV_EXCLUSIVE | ENV_PRIVATE,
                 &out_output->file, err);
    if (status != STATUS_OK)
        os_remove_at_signals(NULL);
    return status;
}

/* `status`: of what was written. */
static enum status output_close(struct output *output, bool must_replace, enum status status,
                                struct error *err)
{
    struct error ignored;
    char parent[PATH_BYTES_MAX];
    if (status == STATUS_OK)
        status = os_file_mode_as(output->temporary, output->path, err);
    if (status == STATUS_OK)
        status = env_sync(output->file, err);
    env_close(output->file);
    if (status == STATUS_OK && must_replace)
        status = env_rename(output->env, output->temporary, output->path, err);
    else if (status == STATUS_OK)
        status = env_rename_new(output->env, output->temporary, output->path, err);
    if (status == STATUS_EXISTS)
        error_set(err, STATUS_EXISTS, "%.200s is there already; --force replaces it", output->path);
    path_parent(parent, output->path);
    if (status == STATUS_OK) {
        status = env_dir_sync(output->env, parent, err);
    } else {
        enum status removed = env_remove(output->env, output->temporary, &ignored);
        UNUSED(removed);
    }
    os_remove_at_signals(NULL);
    return status;
}

/* ---- the command ---- */

enum { THREADS_MAX = 64 };

struct conversion {
    enum file_format from, to;
    struct write_flags flags;
    const char *from_name; /* of `from`, as was said; NULL: by IN's name */
    bool must_replace;
    uint64_t rows;
};

static enum status copy_rows(struct conversion *conversion, struct rows_in *in,
                             struct rows_out *out, struct error *err)
{
    enum status status = STATUS_OK;
    while (status == STATUS_OK) {
        struct arrow_batch batch;
        status = in->next(in->state, &batch, err);
        if (status != STATUS_OK)
            break;
        conversion->rows += (uint64_t)batch.length;
        status = out->write(out->state, &batch, err);
        arrow_batch_deinit(&batch);
    }
    return status == STATUS_NOT_FOUND ? out->finish(out->state, err) : status;
}

static enum status convert(struct conversion *conversion, struct rows_in *in, struct output *output,
                           struct error *err)
{
    struct rows_out out;
    struct sink sink = {.write = write_output, .context = output};
    conversion->flags.footer = in->footer;
    conversion->flags.original = in->original;
    TRY(rows_out_open(conversion->to, in->schema, &conversion->flags, sink, &out, err));
    enum status status = copy_rows(conversion, in, &out, err);
    out.close(out.state);
    return status;
}

static enum status convert_file(struct env *env, struct conversion *conversion, const char *from,
                                const char *to, struct error *err)
{
    struct input input;
    struct rows_in in;
    struct output output;
    TRY(input_open(env, from, &input, err));
    struct read_flags flags = {conversion->to, conversion->flags.no_arrow_schema};
    enum status status = rows_in_open(conversion->from, &flags, input.source, &in, err);
    if (status == STATUS_OK) {
        status = output_open(env, to, &output, err);
        if (status == STATUS_OK) {
            status = convert(conversion, &in, &output, err);
            status = output_close(&output, conversion->must_replace, status, err);
        }
        in.close(in.state);
    } else {
        error_prefix(err, "%.200s", from);
    }
    input_close(&input);
    return status;
}

/* `name`: an ending, for files whose names have none; NULL: not said. */
static enum status format_of_input(const char *path, const char *name, enum file_format *out_format,
                                   struct error *err)
{
    char as_path[64];
    if (!name)
        return format_of_path(path, out_format, err);
    snprintf(as_path, sizeof as_path, "--from .%s", name[0] == '.' ? name + 1 : name);
    return format_of_path(as_path, out_format, err);
}

/* With threads for a format that spreads its work. */
static enum status convert_with_threads(struct env *env, struct conversion *conversion,
                                        const char *from, const char *to, struct error *err)
{
    struct write_flags *flags = &conversion->flags;
    uint64_t threads = flags->threads ? flags->threads : os_cpu_count();
    struct pool *pool = NULL;
    TRY(format_of_input(from, conversion->from_name, &conversion->from, err));
    TRY(format_of_path(to, &conversion->to, err));
    if (flags->no_arrow_schema && conversion->from != FORMAT_PARQUET &&
        conversion->to != FORMAT_PARQUET)
        return error_set(err, STATUS_USAGE, "--no-arrow-schema: only Parquet has it");
    if (conversion->to == FORMAT_PARQUET && threads > 1) {
        TRY(pool_create(env, (unsigned)(threads < THREADS_MAX ? threads : THREADS_MAX), &pool,
                        err));
        flags->executor = pool_executor(pool);
    }
    enum status status = convert_file(env, conversion, from, to, err);
    pool_destroy(pool);
    return status;
}

/* All values of a flag that may come again. */
static bool take_all(struct invocation *invocation, const char *name, const char **values,
                     size_t *out_count)
{
    const char *value;
    while ((value = cmd_take_option(invocation, name)) != NULL) {
        if (*out_count == COLUMN_FLAGS_MAX) {
            cmd_usage("%s: more than %d times", name, COLUMN_FLAGS_MAX);
            return false;
        }
        values[(*out_count)++] = value;
    }
    return true;
}

/* A number from 1 to `max`; what is not said stays 0. */
static bool take_count(struct invocation *invocation, const char *name, uint64_t max,
                       uint64_t *inout_count)
{
    const char *text = cmd_take_option(invocation, name);
    uint64_t count;
    if (!text)
        return true;
    if (parse_u64(text, strlen(text), &count) && count >= 1 && count <= max) {
        *inout_count = count;
        return true;
    }
    cmd_usage("%s %s: a whole number from 1 to %llu is needed", name, text,
              (unsigned long long)max);
    return false;
}

static bool take_write_flags(struct invocation *invocation, struct write_flags *flags)
{
    flags->compression = cmd_take_option(invocation, "--compression");
    flags->no_arrow_schema = cmd_take_flag(invocation, "--no-arrow-schema");
    return take_all(invocation, "--encoding", flags->encodings, &flags->encoding_count) &&
           take_all(invocation, "--bloom", flags->blooms, &flags->bloom_count) &&
           take_count(invocation, "--page-version", 2, &flags->page_version) &&
           take_count(invocation, "--row-group-rows", INT32_MAX, &flags->row_group_rows) &&
           take_count(invocation, "--page-rows", INT32_MAX, &flags->page_rows) &&
           take_count(invocation, "--threads", THREADS_MAX, &flags->threads);
}

int cmd_convert(struct invocation *invocation)
{
    struct error err;
    struct conversion conversion = {0};
    bool as_json = cmd_take_flag(invocation, "--json");
    conversion.must_replace = cmd_take_flag(invocation, "--force");
    conversion.from_name = cmd_take_option(invocation, "--from");
    if (!take_write_flags(invocation, &conversion.flags))
        return 2;
    env_random(invocation->env, conversion.flags.random, sizeof conversion.flags.random);
    if (invocation->argc < 2)
        return cmd_usage("convert IN OUT");
    if (!cmd_no_more_words(invocation, 2))
        return 2;
    if (convert_with_threads(invocation->env, &conversion, invocation->argv[0], invocation->argv[1],
                             &err) != STATUS_OK)
        return fail_of_file(&err);
    if (as_json)
        printf("{\"rows\":%llu}\n", (unsigned long long)conversion.rows);
    else
        printf("%llu rows\n", (unsigned long long)conversion.rows);
    return 0;
}
