/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands: one file each. A command gets the words behind its name with the settings' flags
 * already taken out, and returns the exit code.
 */
#ifndef SLUICE_APP_CMD_INTERNAL_H
#define SLUICE_APP_CMD_INTERNAL_H

#include <stdio.h>

#include "app/cmd/cmd.h"
#include "app/server/server.h"

struct invocation {
    struct env *env;
    struct settings settings;
    int argc; /* behind the command's name */
    char **argv;
};

/* ---- the table of commands ---- */

enum { COMMAND_FLAGS_MAX = 16 };

struct command_flag {
    const char *name, *value, *help; /* "--items", "N" or NULL; lines of the help after the first
                                        stand below it */
};

struct command {
    const char *name; /* "tables", or "tables list": one that `tables` runs */
    const char *arguments, *summary, *about, *example, *exits;
    int (*run)(struct invocation *invocation); /* NULL: the command in front of it does */
    struct command_flag flags[COMMAND_FLAGS_MAX];
};

const struct command *command_at(size_t index); /* NULL behind the last */
/* `below` may be ""; NULL if there is none. */
const struct command *command_find(const char *name, const char *below);
const struct command_flag *command_flag_at(const struct command *command, size_t index);
void command_list(struct buf *out);
void command_help(const struct command *command, struct buf *out);

int cmd_serve(struct invocation *invocation);
int cmd_demo(struct invocation *invocation);
int cmd_gen(struct invocation *invocation);
int cmd_status(struct invocation *invocation);
int cmd_watermark(struct invocation *invocation);
int cmd_backup(struct invocation *invocation);
int cmd_doctor(struct invocation *invocation);
int cmd_publish(struct invocation *invocation);
int cmd_tables(struct invocation *invocation);
int cmd_tail(struct invocation *invocation);
int cmd_export(struct invocation *invocation);
int cmd_log(struct invocation *invocation);
int cmd_log_recover(struct invocation *invocation); /* the words behind "log recover" */
int cmd_log_trim(struct invocation *invocation);
int cmd_parquet(struct invocation *invocation);
int cmd_arrow(struct invocation *invocation);
int cmd_avro(struct invocation *invocation);
int cmd_convert(struct invocation *invocation);
int cmd_config(struct invocation *invocation);
int cmd_clear_halt(struct invocation *invocation);
int cmd_version(struct invocation *invocation);

/* Prints "sluice: <message>" to stderr; returns the status' exit code. */
int cmd_fail(const struct error *err);
int cmd_usage(const char *format, ...) PRINTF_LIKE(1, 2);

/* Takes `--name` out of the words; true if it was there. */
bool cmd_take_flag(struct invocation *invocation, const char *name);
/* Takes `--name VALUE` or `--name=VALUE`; NULL if absent. */
const char *cmd_take_option(struct invocation *invocation, const char *name);
/* The same as a number; false (and a message) for anything else. */
bool cmd_take_number(struct invocation *invocation, const char *name, uint64_t *inout_value);
/* Complains about words that are left, from index `from`; true if there are none. */
bool cmd_no_more_words(const struct invocation *invocation, int from);

void cmd_print(struct buf *text); /* to stdout, then frees */

/* NOT_FOUND: the data directory holds no log, which its name mistyped would otherwise get. */
enum status cmd_find_log(struct invocation *invocation, struct error *err) MUST_CHECK;
/* Opens what is there for a one-job command; NOT_FOUND as above. */
enum status cmd_stack_open(struct invocation *invocation, struct stack *out_stack,
                           struct error *err) MUST_CHECK;
/* The same for the store and the catalog alone, beside a server. */
enum status cmd_lake_open(struct invocation *invocation, struct stack *out_stack,
                          struct error *err) MUST_CHECK;
/* Does another process use the data directory? *out_pid is 0 where the system does not tell. */
bool cmd_find_user(struct invocation *invocation, int *out_pid);
/* Says who has the data directory, where that is why it could not be opened. Returns err->status.
 */
enum status cmd_explain_busy(struct invocation *invocation, struct error *err);

/* The exit code for what the server answered (status.h): the same as this process would give that
 * had done it itself. */
int cmd_exit_code_of(int http_code);

/* Asks the running server; NOT_FOUND when none listens. Appends the body; the code is returned. */
enum status cmd_ask_server(struct invocation *invocation, const char *method, const char *path,
                           struct buf *out_body, int *out_code, struct error *err) MUST_CHECK;

/* The same of what changes something: only if that server is the one of --data-dir. NOT_FOUND, too:
 * one answers, and nobody uses the directory. BUSY: another process does. */
enum status cmd_ask_own_server(struct invocation *invocation, const char *method, const char *path,
                               struct buf *out_body, int *out_code, struct error *err) MUST_CHECK;

/* ---- load generation ---- */

struct gen_options {
    enum gen_profile profile;
    uint64_t seed, items, request_items;
    uint64_t connections;
    uint64_t retries;        /* of one request */
    uint64_t items_a_second; /* 0: flat out */
    const char *producer;    /* NULL: none; connection i uses "<producer>-<i>" */
    const char *commit;      /* NULL: the default */
    bool with_gzip;
    uint64_t
        distinct; /* 0: each body is new; else so many, made before the clock starts, in turn */
    const char *address;
    uint16_t port;
    bool with_progress;
    const char *receipts_path; /* NULL: not kept; else one JSON line a request */
};

/* Latencies: from when a request was sent, or, where the run is paced, from when it was due, so
 * that a stall counts for all whom it kept waiting. */
struct gen_report {
    uint64_t requests, items, body_bytes, failed_requests, retries;
    uint64_t uncommitted_requests; /* `force`: durable only, the server's time-out came first */
    double seconds;
    uint64_t p50_us, p90_us, p99_us, p999_us, max_us;
};

struct gen_options gen_options_default(void);
/* Sends it all; the first request that is refused, lost, or put off once too often ends it: OK says
 * that everything was stored. IO: the server was lost. BUSY: it put a request off to the end. */
enum status gen_run(struct env *env, const struct gen_options *options,
                    struct gen_report *out_report, struct error *err) MUST_CHECK;

/* sluice gen --verify: the exit code. */
int gen_verify(struct invocation *invocation, const char *receipts_path, bool as_json);

#endif
