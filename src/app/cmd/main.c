/* SPDX-License-Identifier: Apache-2.0
 *
 * sluice COMMAND ...: finds the command, reads settings, runs it.
 */
#include <stdarg.h>

#include "app/cmd/cmd_internal.h"

static const struct command commands[] = {
    {"serve", "", "run the server", cmd_serve, NULL},
    {"demo", "[--json] [--keep] [--items N]", "run a server, send it telemetry, report", cmd_demo,
     NULL},
    {"gen", "[--profile P] [--items N] ... | --verify RECEIPTS",
     "generate load against a server; check what became of it", cmd_gen,
     "  --profile P          shop (spans), wild (spans of all shapes), logs or metrics; shop\n"
     "  --seed N             every byte follows from it; 1\n"
     "  --items N            spans, records or points to send; 100,000\n"
     "  --request-items N    in one request; 1,000\n"
     "  --connections N      at the same time; 4\n"
     "  --rate N             items a second; as fast as it goes\n"
     "  --distinct N         bodies made beforehand and sent in turn; each is made for itself\n"
     "  --gzip               bodies compressed\n"
     "  --commit MODE        auto, wait_for or force\n"
     "  --producer ID        with sequence numbers: a request is stored once, however often sent\n"
     "  --receipts FILE      what the server answered, for --verify\n"
     "  --verify FILE        reads the tables and compares them with what the seed says\n"
     "  --json               the report as one object\n"},
    {"doctor", "[--json]", "check settings, directories, ports and limits", cmd_doctor, NULL},
    {"status", "[--json]", "what the running server does", cmd_status, NULL},
    {"publish", "[--once]", "publish what the log holds, without a server", cmd_publish, NULL},
    {"tables", "list | columns | rebind TABLE ... | repair TABLE", "tables and their lanes",
     cmd_tables, NULL},
    {"watermark", "[--json]", "up to where the lake is complete", cmd_watermark, NULL},
    {"log", "ls | cat | repair --confirm | fork --confirm", "look at and mend the log", cmd_log,
     NULL},
    {"parquet", "schema | meta | cat | head | verify FILE", "look into a Parquet file", cmd_parquet,
     "  --columns A,B        those alone (cat, head)\n"
     "  --rows N             so many (head); 10\n"
     "  --json               as JSON\n"},
    {"arrow", "schema | cat | verify FILE...", "look into Arrow IPC files and streams", cmd_arrow,
     "  --rows N             so many at most (cat); all\n"
     "  --json               as JSON\n"},
    {"avro", "schema | cat FILE...", "look into Avro container files", cmd_avro,
     "  --rows N             so many at most (cat); all\n"
     "  --json               as JSON\n"},
    {"config", "check | show | reference", "settings", cmd_config, NULL},
    {"clear-halt", "TABLE --confirm --accept | --republish | --from GROUP=SEQ",
     "decide over a halted lane", cmd_clear_halt, NULL},
    {"version", "", "print the version", cmd_version, NULL},
};

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
    cmd_usage("unexpected word: %s", invocation->argv[from]);
    return false;
}

void cmd_print(struct buf *text)
{
    fwrite(text->data, 1, text->length, stdout);
    fflush(stdout);
    buf_deinit(text);
}

enum status cmd_stack_open(struct invocation *invocation, struct stack *out_stack,
                           struct error *err)
{
    char dir[PATH_BYTES_MAX];
    struct arena arena;
    char **names;
    size_t count;
    TRY(path_join(dir, invocation->settings.data_dir, "log", err));
    arena_init(&arena, 0);
    enum status status = files_list(invocation->env, dir, &arena, &names, &count, err);
    arena_deinit(&arena);
    if (status != STATUS_OK)
        return error_prefix(err, "%s holds no log", invocation->settings.data_dir);
    return stack_open(invocation->env, &invocation->settings, out_stack, err);
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

int cmd_version(struct invocation *invocation)
{
    if (!cmd_no_more_words(invocation, 0))
        return 2;
    printf("sluice %s\n", SLUICE_VERSION);
    return 0;
}

static int help(void)
{
    struct buf text = {0};
    buf_put_text(&text,
                 "sluice: every write, once, in the lake\n\nUsage: sluice COMMAND [settings] "
                 "[arguments]\n\nCommands:\n");
    for (size_t i = 0; i < COUNT_OF(commands); i++)
        buf_format(&text, "  %-11s %-52s %s\n", commands[i].name, commands[i].arguments,
                   commands[i].help);
    buf_put_byte(&text, '\n');
    settings_print_help(&text);
    cmd_print(&text);
    return 0;
}

static int command_help(const struct command *command)
{
    struct buf text = {0};
    buf_format(&text, "Usage: sluice %s %s\n\n%s. Beside the settings of sluice --help:\n\n%s",
               command->name, command->arguments, command->help, command->options);
    cmd_print(&text);
    return 0;
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

static int unknown_command(const char *name)
{
    const struct command *nearest = &commands[0];
    for (size_t i = 1; i < COUNT_OF(commands); i++) {
        if (text_distance(name, commands[i].name, 20) < text_distance(name, nearest->name, 20))
            nearest = &commands[i];
    }
    return cmd_usage("no command %s; the nearest is %s (sluice --help lists all)", name,
                     nearest->name);
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

int main(int argc, char **argv)
{
    struct error err;
    struct invocation invocation = {.env = env_real()};
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0)
        return help();
    const struct command *command = find_command(argv[1]);
    if (!command)
        return unknown_command(argv[1]);
    invocation.argc = argc - 2;
    invocation.argv = argv + 2;
    if (cmd_take_flag(&invocation, "--help"))
        return command->options ? command_help(command) : help();
    if (settings_load(&invocation.settings, invocation.env, &invocation.argc, invocation.argv,
                      &err) != STATUS_OK)
        return cmd_fail(&err);
    log_set_level(level_of(invocation.settings.log_level));
    return command->run(&invocation);
}
