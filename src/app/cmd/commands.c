/* SPDX-License-Identifier: Apache-2.0
 *
 * The one table of all commands: what runs them, the flags they take, and their help. A command
 * that has commands of its own ("tables list") stands before them, and runs them itself.
 */
#include "app/cmd/cmd_internal.h"

#define FLAG_JSON                                                                                  \
    {                                                                                              \
        "--json", NULL, "as JSON"                                                                  \
    }
#define FLAG_CONFIRM                                                                               \
    {                                                                                              \
        "--confirm", NULL, "do it; without, nothing is changed"                                    \
    }

static const char exit_of_asking[] = "0   done\n3   no server answers";
static const char exit_of_deciding[] =
    "0   decided\n2   wrong usage, or the lane is not halted\n"
    "3   there is no log, or no such table\n"
    "75  the lane or the directory is in use: try again\n"
    "86  the table cannot take the decision; the message says why\n"
    "87  the log no longer holds what would have to be "
    "published again";
/* Of what reads files, whatever their format. */
#define EXIT_OF_LIMITS                                                                             \
    "5   a limit is reached: a value, a page or a message larger than is read\n"                   \
    "6   a part of the format that is not supported\n"                                             \
    "71  out of memory\n"
static const char exit_of_reading[] = "0   done\n2   damage, or another format\n"
                                      "3   there is no such file\n" EXIT_OF_LIMITS
                                      "74  it could not be read, or standard output takes no more\n"
                                      "75  no room for what a pipe gives, below $TMPDIR or /tmp";
static const char exit_of_command[] = "that of the command";

static const struct command commands[] = {
    {
        .name = "serve",
        .arguments = "",
        .summary = "run the server",
        .run = cmd_serve,
        .about =
            "Takes OTLP over HTTP, makes each write durable on the log below --data-dir,\n"
            "answers, and publishes into tables. SIGTERM and SIGINT end it: what has begun is\n"
            "answered, what is there is published; after 10 s no further commit is begun, and\n"
            "what is left stays on the log.",
        .example = "sluice serve --data-dir ./sluice-data --publish-interval 30s",
        .exits = "0   after SIGTERM or SIGINT\n"
                 "2   settings that cannot work\n"
                 "4   a port is taken\n"
                 "74  a disk failed, at a sync for example: start it again, it recovers\n"
                 "75  another process uses the directory",
    },
    {
        .name = "demo",
        .arguments = "[--json] [--keep] [--items N]",
        .summary = "run a server, send it telemetry, report",
        .run = cmd_demo,
        .about = "A real server on real ports, and spans, logs and metrics for it. On a terminal\n"
                 "it keeps serving until Ctrl-C.",
        .flags = {{"--items", "N", "spans, and as many records, and half as many points; 100,000"},
                  {"--keep", NULL, "keep serving where there is no terminal, too"},
                  {"--json", NULL, "the report as one object; serves on with --keep only"}},
        .example = "sluice demo --items 10000 --data-dir /tmp/demo",
        .exits = "0   every row came into the tables\n"
                 "75  not all did within a minute\n"
                 "else as those of `sluice serve`",
    },
    {
        .name = "gen",
        .arguments = "[--profile P] [--items N] ... | --verify RECEIPTS",
        .summary = "generate load against a server; check what became of it",
        .run = cmd_gen,
        .about = "Sends telemetry whose every byte follows from a seed to --listen-address and\n"
                 "--otlp-http-port.",
        .flags = {{"--profile", "P",
                   "shop (spans), wild (spans of all shapes), logs or metrics; shop"},
                  {"--seed", "N", "every byte follows from it; 1"},
                  {"--items", "N", "spans, records or points to send; 100,000"},
                  {"--request-items", "N", "in one request; 1,000"},
                  {"--connections", "N", "at the same time; 4"},
                  {"--rate", "N", "items a second; as fast as it goes"},
                  {"--distinct", "N",
                   "bodies made beforehand and sent in turn; each is made for itself"},
                  {"--gzip", NULL, "bodies compressed"},
                  {"--commit", "MODE", "auto, wait_for, remote or force"},
                  {"--producer", "ID",
                   "with sequence numbers: a request is stored once, however often sent"},
                  {"--retries", "N",
                   "of one request: when the server puts it off, or, with --producer, is\n"
                   "lost; 200"},
                  {"--receipts", "FILE", "what the server answered, for --verify"},
                  {"--verify", "FILE",
                   "reads the tables and compares them with what the seed says"},
                  {"--json", NULL, "the report as one object"}},
        .example =
            "sluice gen --profile logs --items 2000 --commit force --receipts receipts.jsonl",
        .exits =
            "0   all was stored; --verify: all stands in the tables, once, as it was sent\n"
            "1   --verify: something does not\n"
            "2   the server refused\n"
            "2, 3, 6, 74  --verify: a table that the receipts concern cannot be read, or only\n"
            "    in part; what can be is compared all the same\n"
            "3   --verify: there are no tables\n"
            "74  the server was lost before all was stored\n"
            "75  the server put a request off, retry after retry",
    },
    {
        .name = "doctor",
        .arguments = "[--json]",
        .summary = "check settings, directories, ports and limits",
        .run = cmd_doctor,
        .about = "What a server needs, before one is started. It changes nothing.",
        .flags = {FLAG_JSON},
        .example = "sluice doctor --data-dir /var/lib/sluice",
        .exits = "0   all is good\n"
                 "1   something is not\n"
                 "2   settings that cannot work",
    },
    {
        .name = "status",
        .arguments = "[--json]",
        .summary = "what the running server does",
        .run = cmd_status,
        .about = "Asks the server at --listen-address and --api-port: ingest, log, and each\n"
                 "table's lane, with the command that resolves its halt. Counts are from the\n"
                 "server's start.",
        .flags = {FLAG_JSON},
        .example = "sluice status --api-port 8080",
        .exits = exit_of_asking,
    },
    {
        .name = "publish",
        .arguments = "[--once]",
        .summary = "publish what the log holds, without a server",
        .run = cmd_publish,
        .about =
            "Publishes everything that stands on the log below --data-dir now, says what went\n"
            "into each table, and ends. A table that contradicts what was published is read\n"
            "again for --publish-halt-confirm, then its lane halts.",
        .flags = {{"--once", NULL, "what it does anyway; for scripts that say so"}},
        .example = "sluice publish --once --data-dir ./sluice-data",
        .exits = "0   done\n"
                 "3   there is no log\n"
                 "75  a server uses the directory, or a table takes no commits now: try again\n"
                 "86  a lane is halted\n"
                 "87  one is, because the log no longer has what its table lacks\n"
                 "88  one is, because its table has the history of another log",
    },
    {
        .name = "tables",
        .arguments = "list | columns | rebind | repair",
        .summary = "the tables: names, columns, repairs",
        .run = cmd_tables,
        .about = "  list      names of the tables that are there\n"
                 "  columns   every column that Sluice's tables have\n"
                 "  rebind    goes on with the table that stands under the name now\n"
                 "  repair    goes back from metadata that cannot be read\n"
                 "\n"
                 "How publication into each goes, `sluice status` says.",
        .example = "sluice tables list --help",
        .exits = exit_of_command,
    },
    {
        .name = "tables list",
        .arguments = "[--json]",
        .summary = "names of the tables in the catalog below --data-dir, one a line",
        .about = "A server may be running meanwhile; `sluice status` says how publication goes.",
        .flags = {{"--json", NULL, "as an array"}},
        .example = "sluice tables list --data-dir ./sluice-data",
        .exits = "0   done\n"
                 "3   there is no catalog",
    },
    {
        .name = "tables columns",
        .arguments = "[TABLE] [--json]",
        .summary = "the columns of one table, or of all, as docs/tables.md has them",
        .about = "Of tables as Sluice creates them; it looks into no catalog.",
        .flags = {{"--json", NULL, "an array, one object a table"}},
        .example = "sluice tables columns otel.logs",
        .exits = "0   done\n"
                 "3   Sluice has no such table",
    },
    {
        .name = "tables rebind",
        .arguments = "TABLE --confirm --accept | --republish",
        .summary = "takes the table that stands under the name now as the lane's",
        .about = "For a lane that halted because its table was dropped or replaced. Without a\n"
                 "table one is created. A running server is asked to do it, else it is done below\n"
                 "--data-dir.",
        .flags = {FLAG_CONFIRM,
                  {"--accept", NULL, "what went into the old table counts as published"},
                  {"--republish", NULL,
                   "what the log still holds and this table does not is published again"}},
        .example = "sluice tables rebind otel.logs --confirm --republish",
        .exits = exit_of_deciding,
    },
    {
        .name = "tables repair",
        .arguments = "TABLE [--confirm]",
        .summary = "goes back to the metadata before the one that cannot be read",
        .about =
            "Says what is wrong; with --confirm the catalog is put back to the metadata\n"
            "before, and what came after it is given up. The lane stays halted: once the server\n"
            "runs again `sluice clear-halt` decides over the rows in between.",
        .flags = {FLAG_CONFIRM},
        .example = "sluice tables repair otel.logs",
        .exits = "0   done, or nothing to repair\n"
                 "3   there is no such table\n"
                 "74  the metadata before cannot be read either\n"
                 "75  a server uses the directory",
    },
    {
        .name = "watermark",
        .arguments = "[--json]",
        .summary = "up to where the lake is complete",
        .run = cmd_watermark,
        .about = "For each table the sequence number up to which all that the running server\n"
                 "acknowledged can be read.",
        .flags = {FLAG_JSON},
        .example = "until sluice watermark; do sleep 1; done",
        .exits = "0   nothing is behind\n"
                 "1   something is, or a table's lane has halted\n"
                 "3   no server answers",
    },
    {
        .name = "tail",
        .arguments = "TABLE [--from F] [--follow] [--json] ...",
        .summary = "rows of a running server's log, published or not",
        .run = cmd_tail,
        .about =
            "Asks the server at --listen-address and --log-port. Rows come in the order of the\n"
            "log; each line begins with GROUP/SEQ.INDEX, and has what is not empty.",
        .flags = {{"--from", "F",
                   "earliest (of what is still there), latest, SEQ or a cursor: rows behind it;\n"
                   "earliest, with --follow latest"},
                  {"--follow", NULL,
                   "wait for more, over restarts of the server of up to a minute"},
                  {"--rows", "N", "so many, then end"},
                  {"--group", "N", "of the log; 0"},
                  {"--json", NULL, "one object a line, all columns"}},
        .example = "sluice tail otel.logs --rows 3",
        .exits = "0   done\n"
                 "2   wrong usage\n"
                 "3   there is no such table\n"
                 "74  no server answers, or the log is damaged there\n"
                 "87  the log no longer has the rows behind --from\n"
                 "88  the cursor is of another log, or of another state of this one",
    },
    {
        .name = "export",
        .arguments = "TABLE --to FILE.ndjson | DIR [--consumer NAME] ...",
        .summary = "rows of a running server's log into files, each once",
        .run = cmd_export,
        .about = "Each row once, in the order of the log, whatever ends the command: what\n"
                 "counts stands in FILE.ndjson.state or DIR/_export.state, and the same command\n"
                 "goes on from there. What was written and does not count, a start removes.",
        .flags = {{"--to", "PLACE",
                   "lines of JSON where it ends in .ndjson, else a directory of Parquet files"},
                  {"--consumer", "NAME",
                   "with a lease: the log keeps what is not exported yet (docs/log_port.md)"},
                  {"--member", "I/N",
                   "one of N exports that share the consumer and its rows: every Nth entry"},
                  {"--from", "F",
                   "of a new export and consumer: earliest, latest, SEQ or a cursor; earliest"},
                  {"--skip-reclaimed", NULL,
                   "go on behind rows that the log no longer has, and say so"},
                  {"--follow", NULL, "wait for more, over restarts of the server"},
                  {"--group", "N", "of the log; 0"}},
        .example = "sluice export otel.logs --to export/logs --consumer lake",
        .exits = "0   done\n"
                 "2   wrong usage, or the state is of something else\n"
                 "3   there is no such table\n"
                 "4   the place holds something else\n"
                 "74  no server answers, the log is damaged there, or a disk failed\n"
                 "75  another process exports there\n"
                 "87  the log no longer has the rows that come next\n"
                 "88  the state is of another log, or of another state of this one; or the\n"
                 "    consumer is another one",
    },
    {
        .name = "backup",
        .arguments = "--to DIR",
        .summary = "copies the data directory of a running server",
        .run = cmd_backup,
        .about = "Log, catalog and what the lanes keep are of one moment. The tables' files are\n"
                 "copied where they stand in the data directory. Tables name their files by\n"
                 "absolute paths: the copy goes back to where the original was.",
        .flags = {{"--to", "DIR", "of the copy, where no log may be"}},
        .example = "sluice backup --to /mnt/backup/monday",
        .exits = "0   done\n"
                 "2   wrong usage\n"
                 "3   there is no log, or no server answers\n"
                 "4   there is a log in DIR already\n"
                 "74  something cannot be read or written\n"
                 "75  a table is being worked on for too long",
    },
    {
        .name = "log",
        .arguments = "ls | cat | repair | trim | fork | recover | adopt",
        .summary = "look at and mend the log",
        .run = cmd_log,
        .about = "  ls        its segment files\n"
                 "  cat       its entries\n"
                 "  repair    gives up entries that are damaged\n"
                 "  trim      gives up what no table takes\n"
                 "  fork      gives it a new identity\n"
                 "  recover   makes it anew from a mirror\n"
                 "  adopt     lets it go on after it was recovered elsewhere",
        .example = "sluice log ls --help",
        .exits = exit_of_command,
    },
    {
        .name = "log ls",
        .arguments = "[--json]",
        .summary = "the segment files of the log below --data-dir",
        .about = "A server may be running meanwhile.",
        .flags = {{"--json", NULL, "one object a line"}},
        .example = "sluice log ls --data-dir ./sluice-data",
        .exits = "0   done\n"
                 "3   there is no log",
    },
    {
        .name = "log cat",
        .arguments = "[--json]",
        .summary = "the entries that the log below --data-dir still holds, without their rows",
        .about = "A server may be running meanwhile. Columns: group/sequence number, term, type,\n"
                 "table, rows, bytes, requests, hash chain.",
        .flags = {{"--json", NULL, "one object a line"}},
        .example = "sluice log cat --json",
        .exits = "0   done\n"
                 "3   there is no log\n"
                 "74  it cannot be read to its end",
    },
    {
        .name = "log repair",
        .arguments = "[--confirm]",
        .summary = "gives up entries that are damaged",
        .about =
            "Reads every entry and names those that are damaged. With --confirm they count as\n"
            "void from then on, and `sluice clear-halt` can resolve the lanes that they\n"
            "halted.",
        .flags = {FLAG_CONFIRM},
        .example = "sluice log repair",
        .exits = "0   done\n"
                 "3   there is no log\n"
                 "75  a server uses the directory",
    },
    {
        .name = "log trim",
        .arguments = "--force [--table NAME] [--before SEQ]",
        .summary = "gives up rows that are not published",
        .about = "For a table that stands still for good and fills the log. What its lane has not\n"
                 "published is never published then, and the log may let go of it; the gap stands\n"
                 "in the summary of the table's next commit (sluice.<log>.0.trimmed). A lane that\n"
                 "is halted stays so. The server of --data-dir is asked to, if one runs.",
        .flags = {{"--table", "NAME", "of this table alone"},
                  {"--before", "SEQ", "entries of each group before it; all that are there"},
                  {"--force", NULL, "do it"}},
        .example = "sluice log trim --force --table otel.logs",
        .exits = "0   done\n"
                 "2   wrong usage\n"
                 "3   there is no log, or no such table\n"
                 "74  what is to be given up is damaged: sluice log repair first\n"
                 "75  the table is being worked on for too long",
    },
    {
        .name = "log fork",
        .arguments = "--confirm",
        .summary = "gives this log a new identity",
        .about = "For a log of which two copies have gone on. What this one holds above the last\n"
                 "position that it shares with each table goes on under the new identity, so that\n"
                 "nothing stands twice.",
        .flags = {{"--confirm", NULL, "do it"}},
        .example = "sluice log fork --confirm --data-dir ./sluice-data",
        .exits = "0   done\n"
                 "3   there is no log\n"
                 "75  a server uses the directory\n"
                 "86  the tables no longer tell where the copies part\n"
                 "88  a table knows more groups of this log than it has",
    },
    {
        .name = "log recover",
        .arguments = "[--mirror URL] [--log-id ID] [--apply]",
        .summary = "makes a log anew from its mirror",
        .about =
            "Says what the mirror has of the log, what of it is missing, and what the tables\n"
            "hold. With --apply it writes the log below --data-dir, where none may be. Stop the "
            "old\n"
            "server first, if it can be: one that still runs takes nothing any more a few seconds\n"
            "later, and is fenced when it comes back (`sluice log adopt`). Then start the server.",
        .flags = {{"--mirror", "URL", "of the mirror; mirror.url"},
                  {"--log-id", "ID", "which log, where the mirror has several"},
                  {"--apply", NULL, "do it"},
                  {"--without-tables", NULL, "although there is no catalog, and tables hold rows"},
                  {"--json", NULL, "one object"}},
        .example = "sluice log recover --mirror file:///mnt/mirror --data-dir ./sluice-data",
        .exits = "0   done, or it was done before\n"
                 "2   wrong usage\n"
                 "3   there is no mirror\n"
                 "4   there is a log below --data-dir already\n"
                 "74  the mirror cannot be read\n"
                 "75  a server, or another recovery, uses the directory\n"
                 "86  it was recovered elsewhere\n"
                 "88  what is there is another log's",
    },
    {
        .name = "log adopt",
        .arguments = "[--confirm] [--alone]",
        .summary = "lets a log go on that was recovered on another machine",
        .about = "What this log holds above the part that was recovered goes on under a new\n"
                 "identity, so that nothing is lost and nothing stands twice.",
        .flags = {FLAG_CONFIRM, {"--alone", NULL, "the recovered log never ran, and never will"}},
        .example = "sluice log adopt --confirm --data-dir ./sluice-data",
        .exits = "0   done\n"
                 "3   there is no log, or no table knows of a recovery\n"
                 "75  a server uses the directory\n"
                 "88  what was recovered is not this log's history",
    },
    {
        .name = "parquet",
        .arguments = "schema | meta | cat | head | explain | pages | verify FILE",
        .summary = "look into a Parquet file",
        .run = cmd_parquet,
        .about =
            "  schema    its columns\n"
            "  meta      row groups, columns and their statistics\n"
            "  cat       its rows, one JSON object a line\n"
            "  head      the first of them\n"
            "  explain   what a filter rules out, and what is read for the rest\n"
            "  pages     one line a page: where it lies, how it is encoded, what is said of it\n"
            "  verify    reads every page: checksums, levels, values, and whether what the file\n"
            "            says of them holds: sizes, counts, bounds, page indexes, Bloom filters,\n"
            "            order; and that each byte belongs to something",
        .flags = {{"--columns", "A,B",
                   "those alone (not schema, verify): a.b within structs,\n"
                   "a.element.b within lists, a.key and a.value.b within maps;\n"
                   "a name with a dot or a comma in double quotes, a quote twice"},
                  {"--where", "TEXT",
                   "the rows that match (cat, head, explain): conditions joined by and, or and\n"
                   "brackets, of =, !=, <, <=, >, >=, is null, is not null, in (...);\n"
                   "literals as the column wants them: 12, 1.5, true, 'text', x'00ff',\n"
                   "'2026-01-31T12:30:00Z'"},
                  {"--no-pruning", NULL, "looks at every row: the same rows, more slowly"},
                  {"--rows", "N", "so many at most (cat, explain: all; head: 10)"},
                  FLAG_JSON},
        .example = "sluice parquet head --rows 1 --columns time,body FILE",
        .exits = exit_of_reading,
    },
    {
        .name = "arrow",
        .arguments = "schema | cat | verify FILE...",
        .summary = "look into Arrow IPC files and streams",
        .run = cmd_arrow,
        .about = "  schema    their columns\n"
                 "  cat       their rows, one JSON object a line\n"
                 "  verify    reads everything and names the first wrong byte",
        .flags = {{"--columns", "A,B", "those alone (cat); a name with a comma in double quotes"},
                  {"--rows", "N", "so many at most (cat); all"},
                  FLAG_JSON},
        .example = "sluice arrow cat --rows 10 --columns time,body FILE",
        .exits = exit_of_reading,
    },
    {
        .name = "avro",
        .arguments = "schema | cat FILE...",
        .summary = "look into Avro container files",
        .run = cmd_avro,
        .about = "  schema    their schema\n"
                 "  cat       their rows, one JSON object a line",
        .flags = {{"--columns", "A,B", "those alone (cat); a name with a comma in double quotes"},
                  {"--rows", "N", "so many at most (cat); all"},
                  FLAG_JSON},
        .example = "sluice avro cat --rows 10 FILE",
        .exits = exit_of_reading,
    },
    {
        .name = "convert",
        .arguments = "IN OUT",
        .summary = "from one file format to another, by the endings",
        .run = cmd_convert,
        .about = "  .parquet                 Parquet\n"
                 "  .arrow .feather .ipc     Arrow IPC file\n"
                 "  .arrows                  Arrow IPC stream\n"
                 "  .ndjson .jsonl           JSON lines\n"
                 "  .csv                     comma-separated values\n"
                 "  .avro                    Avro object container file",
        .flags = {{"--compression", "NAME",
                   "Parquet: zstd (default), snappy, gzip, lz4, none;\n"
                   "Arrow: none (default), lz4, zstd; Avro: deflate (default), snappy, zstd, none"},
                  {"--encoding", "[COLUMN=]NAME",
                   "Parquet, may come again: auto (default), smallest, plain,\n"
                   "rle, delta, delta-length, delta-bytes, byte-stream-split"},
                  {"--bloom", "COLUMN", "Parquet, may come again: a Bloom filter"},
                  {"--page-version", "N", "Parquet: 1 (default) or 2"},
                  {"--row-group-rows", "N", "Parquet: 122,880"},
                  {"--page-rows", "N", "Parquet: 20,000; fewer let a look-up read less"},
                  {"--threads", "N", "Parquet: one a core, 64 at most"},
                  {"--no-arrow-schema", NULL,
                   "Parquet: types of Arrow are neither kept in it nor looked for"},
                  {"--from", "ENDING", "of IN, where its name has none: csv for /dev/stdin"},
                  {"--force", NULL, "replaces OUT"},
                  FLAG_JSON},
        .example = "sluice convert FILE.parquet FILE.arrow",
        .exits = "0   done\n2   damage, another format, or a type that OUT's format has not\n"
                 "3   there is no such file\n4   OUT is there already\n" EXIT_OF_LIMITS
                 "74  it could not be read, OUT not be written, or standard output takes no more\n"
                 "75  no room for OUT, or for what a pipe gives: a disk or a quota is full",
    },
    {
        .name = "config",
        .arguments = "check | show | reference",
        .summary = "check and show settings",
        .run = cmd_config,
        .about = "  check       says whether settings are good\n"
                 "  show        prints what holds, as a TOML file\n"
                 "  reference   prints docs/config.md",
        .example = "sluice config check --help",
        .exits = exit_of_command,
    },
    {
        .name = "config check",
        .arguments = "",
        .summary = "says whether file, environment and flags give settings that can work",
        .about = "Nothing is opened or changed.",
        .example = "sluice config check --config sluice.toml",
        .exits = "0   they are good\n"
                 "2   they are not; the message names the place",
    },
    {
        .name = "config show",
        .arguments = "[--json]",
        .summary = "prints the settings that hold, as a TOML file",
        .about = "Defaults < TOML file < environment < flags.",
        .flags = {{"--json", NULL, "as one object"}},
        .example = "sluice config show --config sluice.toml",
        .exits = "0   done\n"
                 "2   settings that cannot work",
    },
    {
        .name = "config reference",
        .arguments = "",
        .summary = "prints every setting with its default, range and meaning: docs/config.md",
        .about = "As a table in Markdown.",
        .example = "sluice config reference",
        .exits = "0   done",
    },
    {
        .name = "clear-halt",
        .arguments = "TABLE --confirm --accept | --republish | --from GROUP=SEQ",
        .summary = "decide over a halted lane",
        .run = cmd_clear_halt,
        .about =
            "`sluice status` says why a lane halted and which decision it asks for. Each\n"
            "becomes a commit of its own. Where a file was damaged there is nothing to decide:\n"
            "--accept has the lane go on if all fits, else it halts anew and says which\n"
            "decision is needed. A running server is asked to do it, else it is done below\n"
            "--data-dir.",
        .flags = {FLAG_CONFIRM,
                  {"--accept", NULL,
                   "what was published before counts as published; rows that were taken out\n"
                   "of the table since stay out"},
                  {"--republish", NULL,
                   "goes on from the newest commit that the table still has in its history;\n"
                   "what came after it is published again. The log must still hold that"},
                  {"--from", "GROUP=SEQ",
                   "entry SEQ of that group of the log (`sluice log cat`) and all before it\n"
                   "count as published; publication goes on with the next one, SEQ + 1"}},
        .example = "sluice clear-halt otel.logs --confirm --from 0=1200",
        .exits = exit_of_deciding,
    },
    {
        .name = "version",
        .arguments = "[--json]",
        .summary = "print the version",
        .run = cmd_version,
        .about = "As `sluice --version` does.",
        .flags = {FLAG_JSON},
        .example = "sluice version",
        .exits = "0   done",
    },
};

/* ---- look-up ---- */

const struct command *command_at(size_t index)
{
    return index < COUNT_OF(commands) ? &commands[index] : NULL;
}

const struct command *command_find(const char *name, const char *below)
{
    char whole[64];
    snprintf(whole, sizeof whole, "%s%s%s", name, below[0] ? " " : "", below);
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        if (strcmp(commands[i].name, whole) == 0)
            return &commands[i];
    }
    return NULL;
}

const struct command_flag *command_flag_at(const struct command *command, size_t index)
{
    const struct command_flag *flag = &command->flags[index];
    return index < COMMAND_FLAGS_MAX && flag->name ? flag : NULL;
}

/* ---- help ---- */

void command_list(struct buf *out)
{
    buf_put_text(out, "sluice: every write, once, in the lake\n\n"
                      "Usage: sluice COMMAND [arguments] [settings]\n\nCommands:\n");
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        if (!strchr(commands[i].name, ' '))
            buf_format(out, "  %-11s %s\n", commands[i].name, commands[i].summary);
    }
    buf_put_text(out, "\n`sluice COMMAND --help` says more of each.\n");
}

/* Lines of a text, all but the first behind a margin. */
static void put_lines(struct buf *out, const char *text, int margin)
{
    const char *end;
    while ((end = strchr(text, '\n'))) {
        buf_format(out, "%.*s\n%*s", (int)(end - text), text, margin, "");
        text = end + 1;
    }
    buf_format(out, "%s\n", text);
}

static void put_flag(struct buf *out, const struct command_flag *flag)
{
    enum { MARGIN = 23 };
    char name[32];
    snprintf(name, sizeof name, "%s%s%s", flag->name, flag->value ? " " : "",
             flag->value ? flag->value : "");
    buf_format(out, "  %-*s ", MARGIN - 3, name);
    put_lines(out, flag->help, MARGIN);
}

void command_help(const struct command *command, struct buf *out)
{
    const struct command_flag *flag;
    buf_format(out, "Usage: sluice %s%s%s\n\n%c%s.\n\n%s\n", command->name,
               command->arguments[0] ? " " : "", command->arguments, command->summary[0] - 32,
               command->summary + 1, command->about);
    for (size_t i = 0; (flag = command_flag_at(command, i)); i++) {
        buf_put_text(out, i ? "" : "\nFlags, beside the settings of `sluice --help`:\n");
        put_flag(out, flag);
    }
    if (!command_flag_at(command, 0))
        buf_put_text(out, "\nFlags: the settings of `sluice --help`.\n");
    buf_format(out, "\nExample:\n  %s\n\nExit code:\n  ", command->example);
    put_lines(out, command->exits, 2);
    if (command->exits != exit_of_command && !strstr(command->exits, "\n74 "))
        buf_put_text(out, "  74  standard output takes no more\n");
}
