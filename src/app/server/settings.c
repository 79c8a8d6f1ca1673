/* SPDX-License-Identifier: Apache-2.0
 *
 * Settings, all from SETTINGS_TABLE: defaults < TOML file < environment < flags.
 */
#include <stdio.h>

#include "app/server/server.h"

enum { LOG_SEGMENTS_LEAST = 8, OTLP_WORKERS_MAX = 1024, OTLP_BODY_BYTES_MAX = 1 << 30 };

#define X(field, section_name, key_name, kind_name, text, help_text)                               \
    {.section = section_name,                                                                      \
     .key = key_name,                                                                              \
     .default_text = text,                                                                         \
     .help = help_text,                                                                            \
     .kind = SETTING_##kind_name,                                                                  \
     .offset = offsetof(struct settings, field)},
static struct setting_info infos[] = {SETTINGS_TABLE(X)};
#undef X

static void fill_names(struct setting_info *info)
{
    if (info->flag[0])
        return;
    snprintf(info->flag, sizeof info->flag, "--%s%s%s", info->section, info->section[0] ? "-" : "",
             info->key);
    snprintf(info->environment, sizeof info->environment, "SLUICE_%s%s%s", info->section,
             info->section[0] ? "_" : "", info->key);
    for (char *c = info->flag; *c; c++)
        *c = *c == '_' ? '-' : *c;
    for (char *c = info->environment; *c; c++)
        *c = *c >= 'a' && *c <= 'z' ? (char)(*c - 32) : *c;
}

size_t settings_count(void)
{
    return COUNT_OF(infos);
}

const struct setting_info *settings_info(size_t index)
{
    CHECK(index < COUNT_OF(infos));
    fill_names(&infos[index]);
    return &infos[index];
}

void settings_init(struct settings *settings)
{
    struct error err;
    memset(settings, 0, sizeof *settings);
    for (size_t i = 0; i < settings_count(); i++) {
        const char *text = settings_info(i)->default_text;
        CHECK(settings_set(settings, i, text, strlen(text), &err) == STATUS_OK);
    }
}

enum status settings_set(struct settings *settings, size_t index, const char *text, size_t length,
                         struct error *err)
{
    const struct setting_info *info = settings_info(index);
    void *place = (char *)settings + info->offset;
    uint64_t value = 0;
    bool is_good = true;
    const char *wanted = "";
    switch (info->kind) {
    case SETTING_TEXT:
        if (length >= sizeof settings->data_dir)
            return error_set(err, STATUS_USAGE, "%s: longer than %zu bytes", info->key,
                             sizeof settings->data_dir - 1);
        memcpy(place, text, length);
        ((char *)place)[length] = '\0';
        return STATUS_OK;
    case SETTING_NUMBER:
        is_good = parse_u64(text, length, &value);
        wanted = "a whole number";
        break;
    case SETTING_BYTES:
        is_good = parse_bytes(text, length, &value);
        wanted = "a size such as 64MiB";
        break;
    case SETTING_DURATION:
        is_good = parse_duration_ms(text, length, &value);
        wanted = "a duration such as 10s";
        break;
    }
    if (!is_good)
        return error_set(err, STATUS_USAGE, "%s%s%s = %.*s: not %s", info->section,
                         info->section[0] ? "." : "", info->key, (int)size_min(length, 60), text,
                         wanted);
    memcpy(place, &value, sizeof value);
    return STATUS_OK;
}

void settings_get_text(const struct settings *settings, size_t index, struct buf *out)
{
    const struct setting_info *info = settings_info(index);
    const void *place = (const char *)settings + info->offset;
    uint64_t value;
    if (info->kind == SETTING_TEXT) {
        buf_put_text(out, place);
        return;
    }
    memcpy(&value, place, sizeof value);
    buf_format(out, "%llu%s", (unsigned long long)value,
               info->kind == SETTING_DURATION ? "ms" : "");
}

/* ---- TOML ---- */

static bool same_name(const struct setting_info *info, const char *section, struct span key)
{
    return strcmp(info->section, section) == 0 && span_equal(key, span_of_text(info->key));
}

static enum status unknown_key(const char *section, struct span key, struct error *err)
{
    char wanted[128], known[128];
    size_t nearest = 0;
    unsigned best = 100;
    snprintf(wanted, sizeof wanted, "%s%s%.*s", section, section[0] ? "." : "",
             (int)size_min(key.length, 60), (const char *)key.data);
    for (size_t i = 0; i < settings_count(); i++) {
        const struct setting_info *info = settings_info(i);
        snprintf(known, sizeof known, "%s%s%s", info->section, info->section[0] ? "." : "",
                 info->key);
        unsigned distance = text_distance(wanted, known, 99);
        if (distance < best) {
            best = distance;
            nearest = i;
        }
    }
    const struct setting_info *info = settings_info(nearest);
    return error_set(err, STATUS_USAGE, "unknown key %s; the nearest is %s%s%s", wanted,
                     info->section, info->section[0] ? "." : "", info->key);
}

static struct span trim(struct span text)
{
    while (text.length && (text.data[0] == ' ' || text.data[0] == '\t')) {
        text.data++;
        text.length--;
    }
    while (text.length &&
           (text.data[text.length - 1] == ' ' || text.data[text.length - 1] == '\t' ||
            text.data[text.length - 1] == '\r'))
        text.length--;
    return text;
}

/* The value without quotes and comment; false: malformed. */
static bool toml_value(struct span text, char *out, size_t capacity, size_t *out_length)
{
    size_t length = 0;
    if (text.length && text.data[0] == '"') {
        size_t i = 1;
        for (; i < text.length && text.data[i] != '"'; i++) {
            uint8_t c = text.data[i];
            if (c == '\\') {
                if (++i == text.length || (text.data[i] != '"' && text.data[i] != '\\'))
                    return false;
                c = text.data[i];
            }
            if (length == capacity)
                return false;
            out[length++] = (char)c;
        }
        if (i == text.length)
            return false;
        struct span rest = trim(span_of(text.data + i + 1, text.length - i - 1));
        *out_length = length;
        return rest.length == 0 || rest.data[0] == '#';
    }
    const uint8_t *hash = text.length ? memchr(text.data, '#', text.length) : NULL;
    text = trim(span_of(text.data, hash ? (size_t)(hash - text.data) : text.length));
    if (text.length == 0 || text.length > capacity)
        return false;
    for (size_t i = 0; i < text.length; i++) { /* TOML allows 1_000_000 */
        if (text.data[i] != '_')
            out[length++] = (char)text.data[i];
    }
    *out_length = length;
    return true;
}

static enum status toml_line(struct settings *settings, struct span line, char section[64],
                             struct error *err)
{
    char value[512];
    size_t length;
    if (line.length == 0 || line.data[0] == '#')
        return STATUS_OK;
    if (line.data[0] == '[') {
        const uint8_t *end = memchr(line.data, ']', line.length);
        size_t name_length = end ? (size_t)(end - line.data) - 1 : 64;
        if (name_length >= 64)
            return error_set(err, STATUS_USAGE, "malformed section");
        memcpy(section, line.data + 1, name_length);
        section[name_length] = '\0';
        return STATUS_OK;
    }
    const uint8_t *equals = memchr(line.data, '=', line.length);
    if (!equals)
        return error_set(err, STATUS_USAGE, "expected key = value");
    struct span key = trim(span_of(line.data, (size_t)(equals - line.data)));
    struct span rest = trim(span_of(equals + 1, line.length - (size_t)(equals + 1 - line.data)));
    for (size_t i = 0; i < settings_count(); i++) {
        if (!same_name(settings_info(i), section, key))
            continue;
        if (!toml_value(rest, value, sizeof value, &length))
            return error_set(err, STATUS_USAGE, "malformed value of %s", settings_info(i)->key);
        return settings_set(settings, i, value, length, err);
    }
    return unknown_key(section, key, err);
}

enum status settings_read_toml(struct settings *settings, const char *name, struct span text,
                               struct error *err)
{
    char section[64] = "";
    size_t at = 0;
    for (int number = 1; at < text.length; number++) {
        const uint8_t *line = text.data + at;
        const uint8_t *end = memchr(line, '\n', text.length - at);
        size_t length = end ? (size_t)(end - line) : text.length - at;
        if (toml_line(settings, trim(span_of(line, length)), section, err) != STATUS_OK)
            return error_prefix(err, "%s line %d", name, number);
        at += length + 1;
    }
    return STATUS_OK;
}

/* ---- environment, flags ---- */

enum status settings_read_environment(struct settings *settings, struct error *err)
{
    for (size_t i = 0; i < settings_count(); i++) {
        const char *value = os_environment(settings_info(i)->environment);
        if (value && settings_set(settings, i, value, strlen(value), err) != STATUS_OK)
            return error_prefix(err, "%s", settings_info(i)->environment);
    }
    return STATUS_OK;
}

/* Value of `flag` at argv[i] ("--x=v" or "--x v"); *out_used words. NULL: another flag. */
static const char *flag_value(const char *flag, int argc, char **argv, int i, int *out_used)
{
    size_t length = strlen(flag);
    if (strncmp(argv[i], flag, length) != 0)
        return NULL;
    if (argv[i][length] == '=') {
        *out_used = 1;
        return argv[i] + length + 1;
    }
    *out_used = 2;
    return argv[i][length] == '\0' && i + 1 < argc ? argv[i + 1] : NULL;
}

static enum status read_config_file(struct settings *settings, struct env *env, const char *path,
                                    struct error *err)
{
    struct buf text = {0};
    enum status status = files_read(env, path, 1 << 20, &text, err);
    if (status == STATUS_OK)
        status = settings_read_toml(settings, path, span_of(text.data, text.length), err);
    buf_deinit(&text);
    return status;
}

static enum status take_flag(struct settings *settings, int argc, char **argv, int at,
                             int *out_used, struct error *err)
{
    *out_used = 0;
    for (size_t i = 0; i < settings_count(); i++) {
        int used = 0;
        const char *value = flag_value(settings_info(i)->flag, argc, argv, at, &used);
        if (!value)
            continue;
        *out_used = used;
        return settings_set(settings, i, value, strlen(value), err);
    }
    return STATUS_OK;
}

enum status settings_load(struct settings *settings, struct env *env, int *inout_argc, char **argv,
                          struct error *err)
{
    const char *config = os_environment("SLUICE_CONFIG");
    int kept = 0, used = 0;
    settings_init(settings);
    for (int i = 0; i < *inout_argc; i++) {
        const char *value = flag_value("--config", *inout_argc, argv, i, &used);
        if (value)
            config = value;
    }
    if (config && config[0])
        TRY(read_config_file(settings, env, config, err));
    TRY(settings_read_environment(settings, err));
    for (int i = 0; i < *inout_argc; i += used ? used : 1) {
        used = 0;
        if (!flag_value("--config", *inout_argc, argv, i, &used))
            TRY(take_flag(settings, *inout_argc, argv, i, &used, err));
        if (!used)
            argv[kept++] = argv[i];
    }
    *inout_argc = kept;
    return settings_check(settings, err);
}

/* Nanoseconds of every duration, added to a clock, must fit 63 bits. */
static enum status check_durations(const struct settings *settings, struct error *err)
{
    const uint64_t ms_max = 36500 * (uint64_t)86400000;
    for (size_t i = 0; i < settings_count(); i++) {
        const struct setting_info *info = settings_info(i);
        uint64_t value;
        if (info->kind != SETTING_DURATION)
            continue;
        memcpy(&value, (const char *)settings + info->offset, sizeof value);
        if (value > ms_max)
            return error_set(err, STATUS_USAGE, "%s.%s is at most 36500d", info->section,
                             info->key);
    }
    return STATUS_OK;
}

enum status settings_check(const struct settings *settings, struct error *err)
{
    static const char *const levels[] = {"debug", "info", "warn", "error"};
    bool is_known = false;
    for (size_t i = 0; i < COUNT_OF(levels); i++)
        is_known |= strcmp(levels[i], settings->log_level) == 0;
    if (!is_known)
        return error_set(err, STATUS_USAGE, "log_level = %s: debug, info, warn or error",
                         settings->log_level);
    if (!os_is_address(settings->listen_address))
        return error_set(err, STATUS_USAGE, "listen_address = %.100s: not an IP address",
                         settings->listen_address);
    if (settings->otlp_http_port > 65535 || settings->api_port > 65535)
        return error_set(err, STATUS_USAGE, "ports go up to 65535");
    if (settings->otlp_http_port && settings->otlp_http_port == settings->api_port)
        return error_set(err, STATUS_USAGE, "otlp.http_port and api.port are the same: %llu",
                         (unsigned long long)settings->api_port);
    if (settings->log_segment_bytes < 1 << 20)
        return error_set(err, STATUS_USAGE, "log.segment_bytes is at least 1 MiB");
    if (settings->log_budget_bytes &&
        settings->log_budget_bytes / LOG_SEGMENTS_LEAST < settings->log_segment_bytes)
        return error_set(err, STATUS_USAGE,
                         "log.budget_bytes is at least %d times log.segment_bytes",
                         (int)LOG_SEGMENTS_LEAST);
    if (settings->otlp_workers > OTLP_WORKERS_MAX)
        return error_set(err, STATUS_USAGE, "otlp.workers is at most %d", (int)OTLP_WORKERS_MAX);
    if (settings->otlp_body_bytes_max < 1 || settings->otlp_body_bytes_max > OTLP_BODY_BYTES_MAX ||
        settings->otlp_expanded_bytes_max < 1 ||
        settings->otlp_expanded_bytes_max > OTLP_BODY_BYTES_MAX)
        return error_set(err, STATUS_USAGE,
                         "otlp.body_bytes_max and otlp.expanded_bytes_max are 1 byte to 1 GiB");
    TRY(check_durations(settings, err));
    if (settings->publish_zstd_level < 1 || settings->publish_zstd_level > 19)
        return error_set(err, STATUS_USAGE, "publish.zstd_level is 1 to 19");
    if (settings->publish_threads > PUBLISH_THREADS_MAX)
        return error_set(err, STATUS_USAGE, "publish.threads is %d at most", PUBLISH_THREADS_MAX);
    if (!settings->data_dir[0] || !settings->catalog_name[0])
        return error_set(err, STATUS_USAGE, "data_dir and publish.catalog_name must not be empty");
    return STATUS_OK;
}

void settings_print_help(struct buf *out)
{
    buf_put_text(out, "Settings (flag, default):\n");
    for (size_t i = 0; i < settings_count(); i++) {
        const struct setting_info *info = settings_info(i);
        buf_format(out, "  %-28s %-14s %s\n", info->flag,
                   info->default_text[0] ? info->default_text : "-", info->help);
    }
    buf_put_text(out, "  --config FILE                               "
                      "a TOML file; also SLUICE_CONFIG; each setting also as SLUICE_...\n");
}

void settings_print_reference(struct buf *out)
{
    buf_put_text(out,
                 "# Settings\n\nGenerated by `sluice config reference`. A later row of this list "
                 "wins: defaults, the TOML file (`--config`, `SLUICE_CONFIG`), environment, "
                 "flags.\n\n| TOML | Flag | Environment | Default | Meaning |\n"
                 "|---|---|---|---|---|\n");
    for (size_t i = 0; i < settings_count(); i++) {
        const struct setting_info *info = settings_info(i);
        buf_format(out, "| `%s%s%s` | `%s` | `%s` | `%s` | %s |\n", info->section,
                   info->section[0] ? "." : "", info->key, info->flag, info->environment,
                   info->default_text[0] ? info->default_text : "\"\"", info->help);
    }
}
