/* SPDX-License-Identifier: Apache-2.0
 *
 * Settings, all from SETTINGS_TABLE: defaults < TOML file < environment < flags.
 */
#include <stdio.h>

#include "app/server/server_internal.h"

enum { LOG_SEGMENTS_LEAST = 8, LOG_BLOCK_BYTES = 4096 };
enum { VALUE_BYTES_MAX = sizeof((struct settings *)0)->data_dir }; /* as of every TEXT */

#define X(field, section_name, key_name, kind_name, text, least_text, most_text, help_text)        \
    {.section = section_name,                                                                      \
     .key = key_name,                                                                              \
     .default_text = text,                                                                         \
     .least = least_text,                                                                          \
     .most = most_text,                                                                            \
     .help = help_text,                                                                            \
     .kind = SETTING_##kind_name,                                                                  \
     .offset = offsetof(struct settings, field)},
static struct setting_info infos[] = {SETTINGS_TABLE(X)};
#undef X

static void fill_names(struct setting_info *info)
{
    if (info->flag[0])
        return;
    snprintf(info->name, sizeof info->name, "%s%s%s", info->section, info->section[0] ? "." : "",
             info->key);
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

static bool parse_value(enum setting_kind kind, const char *text, size_t length, uint64_t *out)
{
    return kind == SETTING_NUMBER  ? parse_u64(text, length, out)
           : kind == SETTING_BYTES ? parse_bytes(text, length, out)
                                   : parse_duration_ms(text, length, out);
}

static uint64_t bound(const struct setting_info *info, const char *text)
{
    uint64_t value = 0;
    CHECK(parse_value(info->kind, text, strlen(text), &value));
    return value;
}

enum status settings_set(struct settings *settings, size_t index, const char *text, size_t length,
                         struct error *err)
{
    static const char *const wanted[] = {"text", "a whole number", "a size such as 64MiB",
                                         "a duration with its unit such as 10s"};
    const struct setting_info *info = settings_info(index);
    void *place = (char *)settings + info->offset;
    int shown = (int)size_min(length, 60);
    uint64_t value = 0;
    if (info->kind == SETTING_TEXT) {
        if (length >= VALUE_BYTES_MAX)
            return error_set(err, STATUS_USAGE, "%s: longer than %d bytes", info->name,
                             VALUE_BYTES_MAX - 1);
        memcpy(place, text, length);
        ((char *)place)[length] = '\0';
        return STATUS_OK;
    }
    if (!parse_value(info->kind, text, length, &value))
        return error_set(err, STATUS_USAGE, "%s = %.*s: not %s", info->name, shown, text,
                         wanted[info->kind]);
    if (value < bound(info, info->least) || value > bound(info, info->most))
        return error_set(err, STATUS_USAGE, "%s = %.*s: the range is %s to %s", info->name, shown,
                         text, info->least, info->most);
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

/* A file as far as it has been read. */
struct toml {
    struct settings *settings;
    char section[64];
    int line;
    int key_lines[COUNT_OF(infos)];     /* where each stands; 0: nowhere yet */
    int section_lines[COUNT_OF(infos)]; /* the same, by the first setting of a section */
};

static enum status given_before(const char *what, const char *name, int line, struct error *err)
{
    return error_set(err, STATUS_USAGE, "%s %s stands on line %d already", what, name, line);
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

static bool is_blank_or_comment(struct span text)
{
    text = trim(text);
    return text.length == 0 || text.data[0] == '#';
}

static enum status toml_section(struct toml *toml, struct span line, struct error *err)
{
    const uint8_t *end = memchr(line.data, ']', line.length);
    if (!end || !is_blank_or_comment(span_of(end + 1, line.length - (size_t)(end + 1 - line.data))))
        return error_set(err, STATUS_USAGE, "malformed section");
    struct span name = trim(span_of(line.data + 1, (size_t)(end - line.data) - 1));
    snprintf(toml->section, sizeof toml->section, "%.*s", (int)size_min(name.length, 63),
             (const char *)name.data);
    struct text_nearest nearest = text_nearest_to(toml->section);
    for (size_t i = 0; i < settings_count(); i++) {
        const char *known = settings_info(i)->section;
        if (!known[0])
            continue;
        if (!span_equal(name, span_of_text(known))) {
            text_nearest_offer(&nearest, known);
            continue;
        }
        if (toml->section_lines[i])
            return given_before("section", known, toml->section_lines[i], err);
        toml->section_lines[i] = toml->line;
        return STATUS_OK;
    }
    return error_set(err, STATUS_USAGE, "unknown section %s; the nearest is %s", toml->section,
                     nearest.name);
}

static enum status toml_key(struct toml *toml, struct span key, struct span rest, struct error *err)
{
    char name[128], value[VALUE_BYTES_MAX];
    size_t length;
    snprintf(name, sizeof name, "%s%s%.*s", toml->section, toml->section[0] ? "." : "",
             (int)size_min(key.length, 60), (const char *)key.data);
    struct text_nearest nearest = text_nearest_to(name);
    for (size_t i = 0; i < settings_count(); i++) {
        const char *known = settings_info(i)->name;
        if (strcmp(name, known) != 0) {
            text_nearest_offer(&nearest, known);
            continue;
        }
        if (toml->key_lines[i])
            return given_before("key", known, toml->key_lines[i], err);
        toml->key_lines[i] = toml->line;
        if (!toml_value(rest, value, sizeof value, &length))
            return error_set(err, STATUS_USAGE, "malformed value of %s", known);
        return settings_set(toml->settings, i, value, length, err);
    }
    return error_set(err, STATUS_USAGE, "unknown key %s; the nearest is %s", name, nearest.name);
}

static enum status toml_line(struct toml *toml, struct span line, struct error *err)
{
    if (is_blank_or_comment(line))
        return STATUS_OK;
    if (line.data[0] == '[')
        return toml_section(toml, line, err);
    const uint8_t *equals = memchr(line.data, '=', line.length);
    if (!equals)
        return error_set(err, STATUS_USAGE, "expected key = value");
    return toml_key(toml, trim(span_of(line.data, (size_t)(equals - line.data))),
                    trim(span_of(equals + 1, line.length - (size_t)(equals + 1 - line.data))), err);
}

enum status settings_read_toml(struct settings *settings, const char *name, struct span text,
                               struct error *err)
{
    struct toml toml = {.settings = settings};
    size_t at = 0;
    for (toml.line = 1; at < text.length; toml.line++) {
        const uint8_t *line = text.data + at;
        const uint8_t *end = memchr(line, '\n', text.length - at);
        size_t length = end ? (size_t)(end - line) : text.length - at;
        if (toml_line(&toml, trim(span_of(line, length)), err) != STATUS_OK)
            return error_prefix(err, "%s:%d", name, toml.line);
        at += length + 1;
    }
    return STATUS_OK;
}

/* ---- environment, flags ---- */

/* Variables that are not meant for the server and yet have its prefix: the project's own, and
 * those by which Kubernetes describes services ("SLUICE_SERVICE_HOST", "SLUICE_PORT_4318_TCP"). */
static bool is_of_others(const char *name, const char *value)
{
    static const char *const known[] = {"SLUICE_CONFIG", "SLUICE_CACHE",     "SLUICE_BINARY",
                                        "SLUICE_SEED",   "SLUICE_LAKE_TOOL", "SLUICE_DEEP"};
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        if (strcmp(name, known[i]) == 0)
            return true;
    }
    const char *port = strstr(name, "_PORT_");
    return strstr(name, "_SERVICE_HOST") || strstr(name, "_SERVICE_PORT") ||
           strncmp(value, "tcp://", 6) == 0 || strncmp(value, "udp://", 6) == 0 ||
           (port && port[6] >= '0' && port[6] <= '9');
}

static enum status set_variable(struct settings *settings, const char *name, const char *value,
                                struct error *err)
{
    struct text_nearest nearest = text_nearest_to(name);
    for (size_t i = 0; i < settings_count(); i++) {
        const char *known = settings_info(i)->environment;
        if (strcmp(name, known) != 0) {
            text_nearest_offer(&nearest, known);
            continue;
        }
        if (settings_set(settings, i, value, strlen(value), err) != STATUS_OK)
            return error_prefix(err, "%s", name);
        return STATUS_OK;
    }
    if (is_of_others(name, value))
        return STATUS_OK;
    return error_set(err, STATUS_USAGE, "unknown environment variable %.100s; the nearest is %s",
                     name, nearest.name);
}

enum status settings_read_environment(struct settings *settings, struct error *err)
{
    static const char prefix[] = "SLUICE_";
    const char *text;
    for (size_t i = 0; (text = os_environment_at(i)); i++) {
        char name[128];
        const char *equals = strchr(text, '=');
        if (!equals || strncmp(text, prefix, sizeof prefix - 1) != 0)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
        TRY(set_variable(settings, name, equals + 1, err));
    }
    return STATUS_OK;
}

/* Value of `flag` at argv[i] ("--x=v" or "--x v"); *out_used words. NULL: another flag, or none:
 * the next flag is no value. */
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
    return argv[i][length] == '\0' && i + 1 < argc && strncmp(argv[i + 1], "--", 2) != 0
               ? argv[i + 1]
               : NULL;
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
        if (settings_set(settings, i, value, strlen(value), err) != STATUS_OK)
            return error_prefix(err, "%s", settings_info(i)->flag);
        return STATUS_OK;
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

bool settings_is_elsewhere(const struct settings *settings)
{
    return strcmp(settings->publish_from, "log_port") == 0;
}

static enum status check_places(const struct settings *settings, struct error *err)
{
    if (!settings_is_elsewhere(settings) && strcmp(settings->publish_from, "here") != 0)
        return error_set(err, STATUS_USAGE, "publish.from = %.100s: here or log_port",
                         settings->publish_from);
    if (!settings->source[0])
        return STATUS_OK;
    if (source_url_check(settings->source, err) != STATUS_OK) {
        err->status = STATUS_USAGE;
        return error_prefix(err, "source");
    }
    if (settings_is_elsewhere(settings))
        return error_set(err, STATUS_USAGE,
                         "source and publish.from = log_port: one of the two servers publishes");
    if (settings->mirror_url[0])
        return error_set(err, STATUS_USAGE, "source and mirror.url: the log has its mirror there");
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
    if (settings->otlp_http_port && settings->otlp_http_port == settings->api_port)
        return error_set(err, STATUS_USAGE, "otlp.http_port and api.port are the same: %llu",
                         (unsigned long long)settings->api_port);
    if (settings->log_segment_bytes % LOG_BLOCK_BYTES != 0)
        return error_set(err, STATUS_USAGE, "log.segment_bytes = %llu: not a multiple of %d",
                         (unsigned long long)settings->log_segment_bytes, LOG_BLOCK_BYTES);
    if (settings->log_budget_bytes &&
        settings->log_budget_bytes / LOG_SEGMENTS_LEAST < settings->log_segment_bytes)
        return error_set(err, STATUS_USAGE,
                         "log.budget_bytes is at least %d times log.segment_bytes",
                         (int)LOG_SEGMENTS_LEAST);
    TRY(limits_check(settings, err));
    if (!settings->data_dir[0] || !settings->catalog_name[0])
        return error_set(err, STATUS_USAGE, "data_dir and publish.catalog_name must not be empty");
    return check_places(settings, err);
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
                 "# Settings\n\nGenerated by `sluice config reference`. A later one of these wins: "
                 "defaults, the TOML file (`--config`, `SLUICE_CONFIG`), environment, flags. A "
                 "duration needs its unit (`ms`, `s`, `m`, `h`, `d`), a size without one is in "
                 "bytes (`KiB`, `MiB`, `GiB`, `TiB`; `KB`, ...). In the file, `a.b` is the key `b` "
                 "of the section `[a]`.\n\n"
                 "| TOML | Flag | Environment | Default | Range | Meaning |\n"
                 "|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < settings_count(); i++) {
        const struct setting_info *info = settings_info(i);
        buf_format(out, "| `%s` | `%s` | `%s` | `%s` | %s%s%s | %s |\n", info->name, info->flag,
                   info->environment, info->default_text[0] ? info->default_text : "\"\"",
                   info->least, info->least[0] ? " to " : "", info->most, info->help);
    }
}
