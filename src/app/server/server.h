/* SPDX-License-Identifier: Apache-2.0
 *
 * The server: settings, wiring of all modules, lifecycle, the admin API and metrics.
 * server_start gives a running server with its threads; server_stop drains it. One a process.
 */
#ifndef SLUICE_APP_SERVER_SERVER_H
#define SLUICE_APP_SERVER_SERVER_H

#include "flow/feed/feed.h"
#include "flow/ingest/ingest.h"
#include "flow/publish/publish.h"
#include "flow/source/source.h"
#include "log/mirror/mirror.h"
#include "net/http/http.h"

#define SLUICE_VERSION "0.1.0"

/* ---- settings: one table makes fields, TOML keys, flags, environment and the reference page ----
 */

/*  field, TOML section, key, kind, default, least, most, help; "", "" of a TEXT */
#define SETTINGS_TABLE(X)                                                                          \
    X(data_dir, "", "data_dir", TEXT, "./sluice-data", "", "",                                     \
      "where the log, the catalog and the publisher's state live")                                 \
    X(listen_address, "", "listen_address", TEXT, "127.0.0.1", "", "",                             \
      "IP address of all listeners")                                                               \
    X(source, "", "source", TEXT, "", "", "",                                                      \
      "http://ADDRESS:PORT of another server's log port: its log is published from here, and "     \
      "this "                                                                                      \
      "server has none; empty: a log of its own")                                                  \
    X(log_level, "", "log_level", TEXT, "info", "", "", "debug, info, warn or error")              \
    X(otlp_http_port, "otlp", "http_port", NUMBER, "4318", "0", "65535",                           \
      "OTLP over HTTP; 0 picks a free port")                                                       \
    X(otlp_workers, "otlp", "workers", NUMBER, "0", "0", "1024",                                   \
      "threads that serve OTLP; 0: one a core")                                                    \
    X(otlp_busy_poll_us, "otlp", "busy_poll_us", NUMBER, "300", "0", "1000",                       \
      "microseconds that a worker looks for its next event before it sleeps, while events come "   \
      "that close; 0: never, and no write waits for those who were just answered")                 \
    X(otlp_body_bytes_max, "otlp", "body_bytes_max", BYTES, "16MiB", "1KiB", "1GiB",               \
      "largest request body on the wire")                                                          \
    X(otlp_expanded_bytes_max, "otlp", "expanded_bytes_max", BYTES, "32MiB", "1KiB", "1GiB",       \
      "largest request body when expanded")                                                        \
    X(otlp_memory_bytes, "otlp", "memory_bytes", BYTES, "128MiB", "1MiB", "1TiB",                  \
      "memory of all request bodies together")                                                     \
    X(otlp_force_timeout_ms, "otlp", "force_timeout", DURATION, "30s", "1ms", "36500d",            \
      "how long commit=force waits for the table, and commit=remote for the mirror")               \
    X(otlp_dead_letter_bytes, "otlp", "dead_letter_bytes", BYTES, "64MiB", "0", "1TiB",            \
      "of rejected items in <data_dir>/deadletter while their table stands still")                 \
    X(api_port, "api", "port", NUMBER, "8080", "0", "65535",                                       \
      "admin API, health and metrics; 0 picks a port")                                             \
    X(log_segment_bytes, "log", "segment_bytes", BYTES, "64MiB", "1MiB", "64GiB",                  \
      "size of a segment file; a start after a kill holds one in memory")                          \
    X(log_seal_after_ms, "log", "seal_after", DURATION, "60s", "10ms", "36500d",                   \
      "age at which a segment is sealed")                                                          \
    X(log_budget_bytes, "log", "budget_bytes", BYTES, "0", "0", "1024TiB",                         \
      "disk space of the log; 0: the smaller of 50 GiB and half the volume")                       \
    X(log_table_bytes, "log", "table_bytes", BYTES, "0", "0", "1024TiB",                           \
      "unpublished rows of a table from which on more are refused; 0: no limit")                   \
    X(log_group_bytes, "log", "group_bytes", BYTES, "0", "0", "1024TiB",                           \
      "the same, of all tables of a group of the log together")                                    \
    X(log_table_limits, "log", "table_limits", TEXT, "", "", "",                                   \
      "of single tables in place of table_bytes: otel.spans=8GiB, otel.logs=0")                    \
    X(log_keep_committed_ms, "log", "keep_committed", DURATION, "24h", "0", "36500d",              \
      "how long published segments are kept")                                                      \
    X(log_keep_producers_ms, "log", "keep_producers", DURATION, "7d", "1s", "36500d",              \
      "how long an idle Sluice-Producer is known, in time that the log is open")                   \
    X(log_port, "log", "port", NUMBER, "7800", "0", "65535",                                       \
      "log port: rows and leases for consumers; 0 picks a free port")                              \
    X(mirror_url, "mirror", "url", TEXT, "", "", "",                                               \
      "where a copy of the log is kept, below its id; empty: nowhere")                             \
    X(mirror_interval_ms, "mirror", "interval", DURATION, "1s", "1ms", "36500d",                   \
      "what is synced is copied after this long; commit=remote does not wait for it")              \
    X(mirror_uploads, "mirror", "uploads", NUMBER, "4", "1", "64",                                 \
      "objects copied at the same time")                                                           \
    X(publish_from, "publish", "from", TEXT, "here", "", "",                                       \
      "here, or log_port: another server publishes this log (its source) and lets go of it")       \
    X(warehouse, "publish", "warehouse", TEXT, "", "", "",                                         \
      "where tables are written; empty: <data_dir>/warehouse")                                     \
    X(catalog_name, "publish", "catalog_name", TEXT, "sluice", "", "",                             \
      "catalog_name of our tables in the SQL catalog; readers use the same")                       \
    X(catalog_path, "publish", "catalog_path", TEXT, "", "", "",                                   \
      "file of the SQL catalog; empty: <data_dir>/catalog.db")                                     \
    X(publish_interval_ms, "publish", "interval", DURATION, "10s", "10ms", "36500d",               \
      "rows wait at most this long")                                                               \
    X(publish_bytes, "publish", "bytes", BYTES, "128MiB", "1KiB", "1024TiB",                       \
      "so many pending bytes publish at once")                                                     \
    X(publish_range_bytes, "publish", "range_bytes", BYTES, "64MiB", "64KiB", "16GiB",             \
      "of the log in one commit")                                                                  \
    X(publish_threads, "publish", "threads", NUMBER, "0", "0", "64", "0: half the cores, and two") \
    X(publish_zstd_level, "publish", "zstd_level", NUMBER, "1", "1", "19", "of Parquet pages")     \
    X(publish_halt_confirm_ms, "publish", "halt_confirm", DURATION, "30s", "0", "36500d",          \
      "how long a contradiction is looked at again before a lane halts")

enum setting_kind { SETTING_TEXT, SETTING_NUMBER, SETTING_BYTES, SETTING_DURATION };

/* TEXT fields are char arrays, all others uint64_t. */
#define SETTING_FIELD_TEXT(name) char name[512];
#define SETTING_FIELD_NUMBER(name) uint64_t name;
#define SETTING_FIELD_BYTES(name) uint64_t name;
#define SETTING_FIELD_DURATION(name) uint64_t name;

struct settings {
#define X(field, section, key, kind, text, least, most, help) SETTING_FIELD_##kind(field)
    SETTINGS_TABLE(X)
#undef X
};

struct setting_info {
    const char *section, *key, *default_text, *least, *most, *help;
    enum setting_kind kind;
    size_t offset;
    char name[64];        /* "otlp.http_port" */
    char flag[64];        /* "--otlp-http-port" */
    char environment[64]; /* "SLUICE_OTLP_HTTP_PORT" */
};

size_t settings_count(void);
const struct setting_info *settings_info(size_t index);

void settings_init(struct settings *settings); /* defaults */
/* The value's text as a user would write it. */
void settings_get_text(const struct settings *settings, size_t index, struct buf *out);
/* USAGE for what is no such value, or outside the setting's range. */
enum status settings_set(struct settings *settings, size_t index, const char *text, size_t length,
                         struct error *err) MUST_CHECK;
/* A TOML subset: [section], key = "text" | number | true | false, # comments. Unknown keys and
 * sections are errors that name the nearest known one, and what is given twice is one too; messages
 * begin with `name`:line. */
enum status settings_read_toml(struct settings *settings, const char *name, struct span text,
                               struct error *err) MUST_CHECK;
/* SLUICE_... that is no setting is an error, but for what Kubernetes gives its containers beside a
 * service named sluice, and what the project's scripts and tests are told by. */
enum status settings_read_environment(struct settings *settings, struct error *err) MUST_CHECK;
/* Takes every flag that names a setting, and --config FILE before all others, out of argv; the rest
 * stays in place and order. Defaults < file < environment < flags. */
enum status settings_load(struct settings *settings, struct env *env, int *inout_argc, char **argv,
                          struct error *err) MUST_CHECK;
/* Another server publishes this one's log. */
bool settings_is_elsewhere(const struct settings *settings);
/* Values that contradict each other. */
enum status settings_check(const struct settings *settings, struct error *err) MUST_CHECK;
void settings_print_help(struct buf *out);      /* for --help */
void settings_print_reference(struct buf *out); /* docs/config.md */

/* ---- server ---- */

struct server;

/* The parts under one data directory, without listeners: for one-job commands. */
struct stack {
    struct env *env;
    struct settings settings;
    struct wal *wal; /* NULL: the log is elsewhere (`source`) */
    struct source *source;
    struct store *store;     /* these two NULL: */
    struct catalog *catalog; /* the log is published from elsewhere */
    struct publisher *publisher;
};

/* BUSY: another process has the data directory. */
enum status stack_open(struct env *env, const struct settings *settings, struct stack *out_stack,
                       struct error *err) MUST_CHECK;
/* "file:///abs/path" of the warehouse. INVALID: one that readers could not follow. */
enum status stack_warehouse_uri(const struct settings *settings, char out[PATH_BYTES_MAX],
                                struct error *err) MUST_CHECK;
enum status stack_catalog_path(const struct settings *settings, char out[PATH_BYTES_MAX],
                               struct error *err) MUST_CHECK;
/* The store and the catalog alone, to read tables while a server may be running. */
enum status stack_open_lake(struct env *env, const struct settings *settings,
                            struct stack *out_stack, struct error *err) MUST_CHECK;
void stack_close(struct stack *stack); /* accepts zeroed */

enum status server_start(struct env *env, const struct settings *settings,
                         struct server **out_server, struct error *err) MUST_CHECK;
/* Answers what has begun, publishes what is there, closes everything; after 10 s it begins nothing
 * more. Accepts NULL. */
void server_stop(struct server *server);

uint16_t server_otlp_port(const struct server *server);
uint16_t server_api_port(const struct server *server);
uint16_t server_log_port(const struct server *server);
struct stack *server_stack(struct server *server);
struct ingest *server_ingest(struct server *server);

/* ---- what it says of itself ---- */

void server_put_status(struct server *server, struct buf *out);  /* JSON */
void server_put_metrics(struct server *server, struct buf *out); /* Prometheus text */
/* Not ready: *out_why says it. */
bool server_is_ready(struct server *server, struct buf *out_why);

/* An operator's decision, applied while the server runs: "clear-halt" or "rebind". */
enum status server_resolve(struct server *server, const char *what, const char *table,
                           const char *decision, struct error *err) MUST_CHECK;
/* "accept", "republish", "from=GROUP=SEQ". */
enum status decision_parse(const char *text, enum publish_decision *out_decision,
                           uint32_t *out_group, uint64_t *out_seq, struct error *err) MUST_CHECK;

#endif
