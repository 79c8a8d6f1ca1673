/* SPDX-License-Identifier: Apache-2.0
 *
 * sluice COMMAND ...: finds the command, reads settings, runs it.
 */
#include <stdarg.h>

#include "app/cmd/cmd_internal.h"

int cmd_fail(const struct error *err)
{
    fprintf(stderr, "sluice: %s\n", err->message);
    return status_exit_code(err->status);
}

int cmd_usage(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("sluice: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return status_exit_code(STATUS_USAGE);
}

static void take_word(struct invocation *invocation, int at, int count)
{
    for (int i = at; i + count < invocation->argc; i++)
        invocation->argv[i] = invocation->argv[i + count];
    invocation->argc -= count;
}

bool cmd_take_flag(struct invocation *invocation, const char *name)
{
    for (int i = 0; i < invocation->argc; i++) {
        if (strcmp(invocation->argv[i], name) == 0) {
            take_word(invocation, i, 1);
            return true;
        }
    }
    return false;
}

const char *cmd_take_option(struct invocation *invocation, const char *name)
{
    size_t length = strlen(name);
    for (int i = 0; i < invocation->argc; i++) {
        const char *word = invocation->argv[i];
        if (strncmp(word, name, length) != 0)
            continue;
        if (word[length] == '=') {
            take_word(invocation, i, 1);
            return word + length + 1;
        }
        if (word[length] == '\0' && i + 1 < invocation->argc) {
            const char *value = invocation->argv[i + 1];
            take_word(invocation, i, 2);
            return value;
        }
    }
    return NULL;
}

bool cmd_take_number(struct invocation *invocation, const char *name, uint64_t *inout_value)
{
    const char *text = cmd_take_option(invocation, name);
    if (!text || parse_u64(text, strlen(text), inout_value))
        return true;
    cmd_usage("%s %s: a whole number is needed", name, text);
    return false;
}

bool cmd_no_more_words(const struct invocation *invocation, int from)
{
    if (invocation->argc <= from)
        return true;
    const char *word = invocation->argv[from];
    if (strncmp(word, "--", 2) == 0)
        cmd_usage("%s: once is enough", word); /* unknown ones were refused before */
    else
        cmd_usage("unexpected word: %s", word);
    return false;
}

void cmd_print(struct buf *text)
{
    if (text->length) /* without, there may be no bytes to point to */
        fwrite(text->data, 1, text->length, stdout);
    fflush(stdout);
    buf_deinit(text);
}

int cmd_version(struct invocation *invocation)
{
    bool as_json = cmd_take_flag(invocation, "--json");
    if (!cmd_no_more_words(invocation, 0))
        return 2;
    printf(as_json ? "{\"version\":\"%s\"}\n" : "sluice %s\n", SLUICE_VERSION);
    return 0;
}

/* ---- which command, and are its words known? ---- */

static int help(void)
{
    struct buf text = {0};
    command_list(&text);
    buf_put_byte(&text, '\n');
    settings_print_help(&text);
    cmd_print(&text);
    return 0;
}

static int help_of(const struct command *command)
{
    struct buf text = {0};
    command_help(command, &text);
    cmd_print(&text);
    return 0;
}

static int short_help(void)
{
    struct buf text = {0};
    command_list(&text);
    fwrite(text.data, 1, text.length, stderr);
    buf_deinit(&text);
    return status_exit_code(STATUS_USAGE);
}

static int unknown_command(const char *name)
{
    const struct command *command;
    struct text_nearest nearest = text_nearest_to(name);
    for (size_t i = 0; (command = command_at(i)); i++) {
        if (command->run)
            text_nearest_offer(&nearest, command->name);
    }
    text_nearest_offer(&nearest, "--help");
    text_nearest_offer(&nearest, "--version");
    return cmd_usage("no command %s; the nearest is %s (sluice --help lists all)", name,
                     nearest.name);
}

/* The command below `name` that the words ask for; else `name` itself. */
static const struct command *find_below(const char *name, const struct invocation *invocation)
{
    for (int i = 0; i < invocation->argc; i++) {
        const struct command *below = command_find(name, invocation->argv[i]);
        if (below)
            return below;
    }
    return command_find(name, "");
}

static bool is_settings_flag(const char *name, struct text_nearest *nearest)
{
    bool is_known = strcmp(name, "--config") == 0;
    for (size_t i = 0; i < settings_count(); i++) {
        is_known |= strcmp(name, settings_info(i)->flag) == 0;
        text_nearest_offer(nearest, settings_info(i)->flag);
    }
    text_nearest_offer(nearest, "--config");
    text_nearest_offer(nearest, "--help");
    return is_known;
}

/* One flag among the words; *out_used words are it and its value. False and a message if it is
 * unknown or without its value. */
static bool check_flag(const struct command *command, const char *word, const char *next,
                       int *out_used)
{
    char name[64];
    bool has_value = strchr(word, '=') != NULL;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    struct text_nearest nearest = text_nearest_to(name);
    const struct command_flag *flag;
    *out_used = 1;
    for (size_t i = 0; (flag = command_flag_at(command, i)); i++) {
        if (strcmp(name, flag->name) != 0) {
            text_nearest_offer(&nearest, flag->name);
            continue;
        }
        if (!flag->value && has_value) {
            cmd_usage("%s takes no value", name);
            return false;
        }
        if (flag->value && !has_value) {
            *out_used = 2;
            if (!next || strncmp(next, "--", 2) == 0) {
                cmd_usage("%s needs a value: %s %s", name, name, flag->value);
                return false;
            }
        }
        return true;
    }
    if (is_settings_flag(name, &nearest)) /* those with their values are gone by now */
        cmd_usage("%s needs a value", name);
    else
        cmd_usage("%s is no flag of %s; the nearest is %s (sluice %s --help lists all)", name,
                  command->name, nearest.name, command->name);
    return false;
}

static bool check_flags(const struct command *command, const struct invocation *invocation)
{
    int used = 1;
    for (int i = 0; i < invocation->argc; i += used) {
        const char *word = invocation->argv[i];
        const char *next = i + 1 < invocation->argc ? invocation->argv[i + 1] : NULL;
        used = 1;
        if (word[0] == '-' && word[1] && !check_flag(command, word, next, &used))
            return false;
    }
    return true;
}

static enum log_level level_of(const char *name)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    for (int i = 0; i < 4; i++) {
        if (strcmp(names[i], name) == 0)
            return (enum log_level)i;
    }
    return LOG_INFO;
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int run(int argc, char **argv)
{
    struct error err;
    struct invocation invocation = {.env = env_real()};
    if (argc < 2)
        return short_help();
    const char *name = argv[1];
    bool wants_help = is_help(name) || strcmp(name, "help") == 0;
    if (wants_help && argc == 2)
        return help();
    if (wants_help) { /* help COMMAND */
        name = argv[2];
        argc--;
        argv++;
    }
    if (strcmp(name, "--version") == 0)
        name = "version";
    invocation.argc = argc - 2;
    invocation.argv = argv + 2;
    const struct command *command = command_find(name, "");
    if (!command || !command->run)
        return unknown_command(name);
    wants_help |= cmd_take_flag(&invocation, "--help") || cmd_take_flag(&invocation, "-h");
    if (wants_help)
        return help_of(find_below(name, &invocation));
    if (settings_load(&invocation.settings, invocation.env, &invocation.argc, invocation.argv,
                      &err) != STATUS_OK)
        return cmd_fail(&err);
    if (!check_flags(find_below(name, &invocation), &invocation))
        return status_exit_code(STATUS_USAGE);
    log_set_level(level_of(invocation.settings.log_level));
    return command->run(&invocation);
}

/* No command looks at what it prints; a stream keeps that it failed. */
int main(int argc, char **argv)
{
    struct error err;
    os_standard_files_hold();
    int exit_code = run(argc, argv);
    bool is_printed = fflush(stdout) == 0;
    if (exit_code || (is_printed && !ferror(stdout)))
        return exit_code;
    error_set(&err, STATUS_IO, "standard output takes no more");
    return cmd_fail(&err);
}
