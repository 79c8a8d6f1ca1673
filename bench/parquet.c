/* SPDX-License-Identifier: Apache-2.0
 *
 * B3 and B4: Parquet files written from Arrow batches in memory, and read into them. One thread,
 * unless a writer is given more.
 * Every mode does its work once to warm up (first_seconds) and then as often as is asked; it prints
 * one JSON line. scripts/benchlib/peers.py does the same with other programs, in the same words.
 *
 * usage: bench_parquet write IN.arrow OUT.parquet ROW_GROUP_ROWS REPEATS [THREADS]
 *        bench_parquet grow IN.arrow OUT.parquet ROW_GROUP_ROWS COPIES [THREADS]
 *                                                one file, the rows as often
 *        bench_parquet scan IN.parquet REPEATS [COLUMN...]
 *        bench_parquet lookup IN.parquet COLUMN VALUE...                  opened anew for each
 */
#include <stdio.h>
#include <stdlib.h>

#include "measure.h"
#include "format/arrow/arrow.h"
#include "format/parquet/parquet.h"
#include "os/os.h"

enum { RUNS_MAX = 256, BATCHES_MAX = 4096 };

/* ---- time and memory ---- */

/* What the runs took, the warm-up first. */
struct runs {
    double wall[RUNS_MAX], cpu[RUNS_MAX];
    int count;
    double began_wall, began_cpu;
    double rss_before_mib;
};

static double status_mib(const char *name)
{
    char line[256];
    double kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, name, strlen(name)) == 0)
            kib = strtod(line + strlen(name) + 1, NULL);
    }
    if (file)
        fclose(file);
    return kib / 1024;
}

/* The peak counts from here on. */
static void runs_init(struct runs *runs)
{
    memset(runs, 0, sizeof *runs);
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (file) {
        fputs("5\n", file);
        fclose(file);
    }
    runs->rss_before_mib = status_mib("VmRSS");
}

static void run_begin(struct runs *runs)
{
    runs->began_cpu = cpu_seconds();
    runs->began_wall = (double)env_mono_ns(env_real()) / 1e9;
}

static void run_end(struct runs *runs)
{
    CHECK(runs->count < RUNS_MAX);
    runs->wall[runs->count] = (double)env_mono_ns(env_real()) / 1e9 - runs->began_wall;
    runs->cpu[runs->count++] = cpu_seconds() - runs->began_cpu;
}

static void print_list(const char *name, const double *values, int count)
{
    printf(",\"%s\":[", name);
    for (int i = 0; i < count; i++)
        printf("%s%.6f", i ? "," : "", values[i]);
    printf("]");
}

/* With one run there was no warm-up. */
static void runs_print(const struct runs *runs, int64_t rows, uint64_t file_bytes)
{
    int warm = runs->count > 1;
    printf("{\"rows\":%lld,\"file_bytes\":%llu,\"first_seconds\":%.6f", (long long)rows,
           (unsigned long long)file_bytes, runs->wall[0]);
    print_list("seconds", runs->wall + warm, runs->count - warm);
    print_list("cpu_seconds", runs->cpu + warm, runs->count - warm);
    printf(",\"rss_before_mib\":%.1f,\"peak_over_mib\":%.1f}\n", runs->rss_before_mib,
           status_mib("VmHWM") - runs->rss_before_mib);
}

/* ---- files ---- */

struct source_file {
    struct env_file *file;
    struct byte_source source;
};

static enum status read_source(void *context, uint64_t offset, size_t bytes, void *place,
                               struct error *err)
{
    for (size_t got = 0, step = 0; got < bytes; got += step) {
        TRY(env_read(context, offset + got, (uint8_t *)place + got, bytes - got, &step, err));
        if (step == 0)
            return error_set(err, STATUS_IO, "the file became shorter");
    }
    return STATUS_OK;
}

static void source_open(const char *path, struct source_file *out)
{
    struct error err;
    struct env_stat stat;
    must(env_open(env_real(), path, ENV_READ, &out->file, &err), &err);
    must(env_file_stat(out->file, &stat, &err), &err);
    out->source = (struct byte_source){read_source, out->file, stat.bytes};
}

struct target_file {
    struct env_file *file;
    uint64_t bytes;
};

static enum status write_target(void *context, const void *data, size_t bytes, struct error *err)
{
    struct target_file *target = context;
    TRY(env_write(target->file, target->bytes, data, bytes, err));
    target->bytes += bytes;
    return STATUS_OK;
}

/* ---- writing ---- */

struct input {
    struct source_file source;
    struct arrow_file *file;
    struct arrow_batch batches[BATCHES_MAX];
    int count;
    int64_t rows;
};

/* All batches of a file without dictionaries, each of which owns its memory. */
static struct input *input_load(const char *path)
{
    struct error err;
    struct arrow_limits limits = arrow_limits_default();
    struct input *input = mem_alloc_zero(1, sizeof *input);
    CHECK(input);
    source_open(path, &input->source);
    must(arrow_file_open(input->source.source, &limits, &input->file, &err), &err);
    enum status status;
    while ((status = arrow_file_next(input->file, &input->batches[input->count], &err)) ==
           STATUS_OK) {
        input->rows += input->batches[input->count++].length;
        CHECK(input->count < BATCHES_MAX);
    }
    CHECK(arrow_file_facts(input->file).dictionary_count == 0);
    if (status != STATUS_NOT_FOUND)
        fail(&err);
    return input;
}

static void input_free(struct input *input)
{
    for (int i = 0; i < input->count; i++)
        arrow_batch_deinit(&input->batches[i]);
    arrow_file_close(input->file);
    env_close(input->source.file);
    mem_free(input);
}

/* The batches `copies` times over, as one file. */
static void write_rows(const struct input *input, struct target_file *target,
                       int64_t row_group_rows, int copies, struct pool *pool)
{
    struct error err;
    struct parquet_options options = parquet_options_default();
    struct parquet_file_metrics metrics;
    struct parquet_writer *writer;
    options.row_group_rows = row_group_rows;
    if (pool)
        options.executor = pool_executor(pool);
    must(parquet_writer_create(arrow_file_schema(input->file), &options,
                               (struct sink){write_target, target}, &writer, &err),
         &err);
    for (int copy = 0; copy < copies; copy++) {
        for (int i = 0; i < input->count; i++)
            must(parquet_writer_write(writer, &input->batches[i], &err), &err);
    }
    must(parquet_writer_finish(writer, &metrics, &err), &err);
    parquet_file_metrics_deinit(&metrics);
    parquet_writer_destroy(writer);
}

/* Each time into a file of no bytes. */
static void bench_write(const char *in, const char *out, int64_t row_group_rows, int repeats,
                        int copies, unsigned threads)
{
    struct error err;
    struct runs runs;
    struct target_file target = {0};
    struct input *input = input_load(in);
    struct pool *pool = NULL;
    if (threads > 1)
        must(pool_create(env_real(), threads, &pool, &err), &err);
    must(env_open(env_real(), out, ENV_WRITE | ENV_CREATE, &target.file, &err), &err);
    runs_init(&runs);
    for (int i = 0; i <= repeats; i++) {
        target.bytes = 0;
        must(env_truncate(target.file, 0, &err), &err);
        run_begin(&runs);
        write_rows(input, &target, row_group_rows, copies, pool);
        run_end(&runs);
    }
    env_close(target.file);
    runs_print(&runs, input->rows * copies, target.bytes);
    pool_destroy(pool);
    input_free(input);
}

/* ---- reading ---- */

/* Of all runs: as the allocators of the peers keep theirs. */
static struct parquet_memory *memory;

/* An opened file, and a reader of some of its columns (none named: of all). */
struct table {
    struct source_file source;
    struct parquet_file *file;
    struct parquet_reader *reader;
    struct arrow_schema schema;
    struct arena arena; /* of the schema */
};

static void table_open(const char *path, struct table *out)
{
    struct error err;
    struct parquet_limits limits = parquet_limits_default();
    memset(out, 0, sizeof *out);
    source_open(path, &out->source);
    must(parquet_file_open(out->source.source, &limits, &out->file, &err), &err);
}

static void table_choose(struct table *table, const char *const *columns, size_t count)
{
    struct error err;
    struct parquet_read_options options = {.memory = memory};
    if (count) {
        must(
            parquet_schema_select(table->file, columns, count, &table->arena, &table->schema, &err),
            &err);
        options.schema = &table->schema;
    }
    must(parquet_reader_create(table->file, &options, &table->reader, &err), &err);
}

static void table_close(struct table *table)
{
    parquet_reader_destroy(table->reader);
    parquet_file_close(table->file);
    arena_deinit(&table->arena);
    env_close(table->source.file);
}

static void bench_scan(const char *path, int repeats, const char *const *columns, size_t count)
{
    struct error err;
    struct runs runs;
    struct table table;
    int64_t rows = 0;
    uint64_t bytes = 0;
    runs_init(&runs);
    for (int i = 0; i <= repeats; i++) {
        rows = 0;
        run_begin(&runs);
        table_open(path, &table);
        table_choose(&table, columns, count);
        for (size_t group = 0; group < table.file->group_count; group++) {
            struct arrow_batch batch;
            must(parquet_reader_read(table.reader, group, &batch, &err), &err);
            rows += batch.length;
            arrow_batch_deinit(&batch);
        }
        bytes = table.source.source.file_bytes;
        table_close(&table);
        run_end(&runs);
    }
    runs_print(&runs, rows, bytes);
}

/* ---- looking up ---- */

static const char *const lookup_method = "filtered scan: statistics, Bloom filters, page index";

/* All columns of the rows that match, into batches that are dropped. */
static int64_t lookup(const char *path, const char *column, struct span value)
{
    struct error err;
    struct table table;
    struct parquet_scan *scan;
    struct arrow_batch batch;
    const struct parquet_value wanted = {.bytes = value};
    struct parquet_condition condition = {.op = PARQUET_EQUAL, .values = &wanted, .value_count = 1};
    int64_t rows = 0;
    table_open(path, &table);
    must(parquet_filter_leaf(table.file, span_of_text(column), &condition.leaf, &err), &err);
    CHECK(table.file->leaves[condition.leaf].physical == PARQUET_BYTE_ARRAY);
    const struct parquet_scan_options options = {.filter = {.conditions = &condition, .count = 1},
                                                 .read = {.memory = memory}};
    must(parquet_scan_create(table.file, &options, &scan, &err), &err);
    enum status status;
    while ((status = parquet_scan_next(scan, &batch, &err)) == STATUS_OK) {
        rows += batch.length;
        arrow_batch_deinit(&batch);
    }
    if (status != STATUS_NOT_FOUND)
        fail(&err);
    parquet_scan_destroy(scan);
    table_close(&table);
    return rows;
}

static void bench_lookup(const char *path, const char *column, char **values, int count)
{
    struct runs runs;
    int64_t rows = 0;
    runs_init(&runs);
    for (int i = 0; i < count && i < RUNS_MAX; i++) {
        run_begin(&runs);
        rows += lookup(path, column, span_of_text(values[i]));
        run_end(&runs);
    }
    runs_print(&runs, rows, 0);
}

static int64_t number(const char *text)
{
    int64_t value;
    if (!parse_i64(text, strlen(text), &value) || value < 0 || value > INT32_MAX) {
        fprintf(stderr, "bench_parquet: %s is not a number\n", text);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    int words = argc - 2;
    memory = parquet_memory_create(256 << 20);
    CHECK(memory);
    bool is_written = strcmp(mode, "write") == 0 || strcmp(mode, "grow") == 0;
    unsigned threads = is_written && words == 5 ? (unsigned)number(argv[6]) : 1;
    if (strcmp(mode, "write") == 0 && (words == 4 || words == 5))
        bench_write(argv[2], argv[3], number(argv[4]), (int)number(argv[5]), 1, threads);
    else if (strcmp(mode, "grow") == 0 && (words == 4 || words == 5))
        bench_write(argv[2], argv[3], number(argv[4]), 0, (int)number(argv[5]), threads);
    else if (strcmp(mode, "scan") == 0 && words >= 2)
        bench_scan(argv[2], (int)number(argv[3]), (const char *const *)argv + 4, (size_t)words - 2);
    else if (strcmp(mode, "lookup") == 0 && words >= 3)
        bench_lookup(argv[2], argv[3], argv + 4, words - 2);
    else if (strcmp(mode, "lookup-method") == 0)
        printf("%s\n", lookup_method);
    else
        return 2;
    return 0;
}
