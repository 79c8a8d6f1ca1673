/* SPDX-License-Identifier: Apache-2.0
 *
 * B5 (a): durable acknowledgements of the log engine, in process, beside the disk's own loop.
 * B9: how long a start takes, after a kill with much unpublished and with many sealed segments.
 *
 *   bench_wal DIR [--seconds S] [--rows BYTES] [--producers N] [--submit 1]   B5
 *   bench_wal DIR --recovery MIB                                 B9
 *
 * DIR is made, and must be on a disk. Prints one JSON line a case. Producers are threads that call
 * wal_append; with --submit, N submissions are in flight and each is handed in again, from its
 * completion, by wal_submit: what a server does.
 *
 * The loop writes as many bytes a sync as the engine did, over a preallocated file that was filled
 * once, from one thread, and goes on where it was: pwrite + fdatasync, and one O_DIRECT | O_DSYNC
 * write. (Over the same few megabytes again and again a disk is faster than any log finds it.)
 * Engine and loop take turns, because a disk's speed drifts; what is printed are medians over the
 * turns, and the ratio is that of syncs a second to the faster of the two loops. The engine is
 * warmed up until it writes into recycled segments, as it does once a log has gone round its
 * budget.
 */
#include <fcntl.h>
#include <ftw.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"
#include "log/wal/wal.h"

enum {
    TURNS = 7,
    PRODUCERS_MAX = 256,
    SAMPLES_MAX = 1 << 20, /* of all producers */
    SAMPLES_EACH = 1 << 17,
    LOOP_FILE_BYTES = 512 << 20,
    LOOP_WRITE_MAX = 64 << 20,
    ACK_EVERY_MS = 100,
};

static struct error err;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double percentile(double *values, size_t count, unsigned percent)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, by_value);
    return values[(count - 1) * percent / 100];
}

static double load_now(void)
{
    double load = 0;
    return getloadavg(&load, 1) == 1 ? load : 0;
}

/* Bytes written to the device that holds `dir`, by everybody; 0 if it cannot be told. */
static uint64_t disk_bytes_written(const char *dir)
{
    struct stat stat_buffer;
    char line[256];
    uint64_t bytes = 0;
    FILE *stats = fopen("/proc/diskstats", "r");
    if (!stats || stat(dir, &stat_buffer) != 0)
        return 0;
    while (fgets(line, sizeof line, stats)) {
        unsigned major_number, minor_number;
        unsigned long long sectors;
        if (sscanf(line, "%u %u %*s %*u %*u %*u %*u %*u %*u %llu", &major_number, &minor_number,
                   &sectors) == 3 &&
            major_number == major(stat_buffer.st_dev) && minor_number == minor(stat_buffer.st_dev))
            bytes = (uint64_t)sectors * 512;
    }
    fclose(stats);
    return bytes;
}

/* ---- the disk's own loop ---- */

struct loop {
    double syncs_a_second, p50_us, p99_us;
};

static void loop_file_make(const char *path, uint8_t *data)
{
    enum { CHUNK = 1 << 20 };
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || posix_fallocate(file, 0, LOOP_FILE_BYTES) != 0) {
        perror(path);
        exit(1);
    }
    memset(data, 0, CHUNK);
    for (off_t at = 0; at < LOOP_FILE_BYTES; at += CHUNK)
        if (pwrite(file, data, CHUNK, at) != CHUNK) {
            perror(path);
            exit(1);
        }
    if (fsync(file) != 0)
        exit(1);
    close(file);
}

static struct loop loop_run(const char *path, uint8_t *data, size_t bytes, bool is_direct,
                            double seconds)
{
    static double samples[SAMPLES_MAX];
    size_t count = 0;
    static off_t at;
    int file = open(path, O_RDWR | (is_direct ? O_DIRECT | O_DSYNC : 0));
    if (file < 0)
        return (struct loop){0}; /* no direct access here */
    double began = seconds_now(), before = began, now = began;
    while (now - began < seconds && count < SAMPLES_MAX) {
        if (at + (off_t)bytes > LOOP_FILE_BYTES)
            at = 0;
        if (pwrite(file, data, bytes, at) != (ssize_t)bytes || (!is_direct && fdatasync(file))) {
            perror(path);
            exit(1);
        }
        at += (off_t)bytes;
        now = seconds_now();
        samples[count++] = (now - before) * 1e6;
        before = now;
    }
    close(file);
    return (struct loop){.syncs_a_second = (double)count / (now - began),
                         .p50_us = percentile(samples, count, 50),
                         .p99_us = percentile(samples, count, 99)};
}

/* ---- the engine ---- */

struct producer {
    struct env_thread *thread;
    double *samples; /* microseconds */
    size_t count;
    /* with --submit */
    struct wal_submission submission;
    struct wal_entry entry;
    struct wal_contribution contribution;
    double before;
};

struct bench {
    const char *dir;
    struct wal *wal;
    uint32_t table;
    uint8_t *payload;
    size_t bytes;
    uint32_t producer_count;
    struct producer producers[PRODUCERS_MAX];
    bool is_submit;
    uint32_t crc;
    atomic_bool is_over;
    atomic_uint in_flight;
};

static struct bench bench;

static enum status row_append(struct wal *wal, const uint8_t *payload, size_t bytes, uint32_t crc,
                              struct error *error)
{
    struct wal_contribution contribution = {.rows = 1};
    struct wal_entry entry = {.type = WAL_DATA,
                              .table_id = bench.table,
                              .rows = 1,
                              .contributions = &contribution,
                              .contribution_count = 1,
                              .payload = span_of(payload, bytes),
                              .payload_crc = crc};
    struct wal_submission submission = {
        .entries = &entry, .entry_count = 1, .durability = WAL_SYNCED};
    return wal_append(wal, &submission, error);
}

static void producer_submit(struct producer *producer);

static void producer_done(struct wal_submission *submission, enum status status,
                          const struct error *error)
{
    struct producer *producer = CONTAINER_OF(submission, struct producer, submission);
    double now = seconds_now();
    if (status != STATUS_OK) {
        fprintf(stderr, "submit: %s\n", error->message);
        exit(1);
    }
    if (producer->count < SAMPLES_EACH)
        producer->samples[producer->count++] = (now - producer->before) * 1e6;
    if (atomic_load(&bench.is_over))
        atomic_fetch_sub(&bench.in_flight, 1);
    else
        producer_submit(producer);
}

static void producer_submit(struct producer *producer)
{
    producer->before = seconds_now();
    producer->contribution = (struct wal_contribution){.rows = 1};
    producer->entry = (struct wal_entry){.type = WAL_DATA,
                                         .table_id = bench.table,
                                         .rows = 1,
                                         .contributions = &producer->contribution,
                                         .contribution_count = 1,
                                         .payload = span_of(bench.payload, bench.bytes),
                                         .payload_crc = bench.crc};
    producer->submission = (struct wal_submission){.entries = &producer->entry,
                                                   .entry_count = 1,
                                                   .durability = WAL_SYNCED,
                                                   .done = producer_done};
    wal_submit(bench.wal, &producer->submission);
}

static void producer_main(void *context)
{
    struct producer *producer = context;
    struct error error;
    double before = seconds_now();
    while (!atomic_load_explicit(&bench.is_over, memory_order_relaxed)) {
        if (row_append(bench.wal, bench.payload, bench.bytes, bench.crc, &error) != STATUS_OK) {
            fprintf(stderr, "append: %s\n", error.message);
            exit(1);
        }
        double now = seconds_now();
        if (producer->count < SAMPLES_EACH)
            producer->samples[producer->count++] = (now - before) * 1e6;
        before = now;
    }
}

static void engine_open(const char *dir, uint64_t budget_bytes)
{
    struct wal_options options = wal_options_default(dir);
    options.budget_bytes = budget_bytes;
    options.keep_committed_ms = 0;
    must(wal_open(env_real(), &options, &bench.wal, &err), &err);
    must(wal_table_open(bench.wal, "bench.rows", &bench.table, &err), &err);
}

static void all_acknowledge(void)
{
    struct wal_position end = wal_synced_end(bench.wal, 0);
    struct wal_ack ack = {.committed = end, .through = end};
    must(wal_ack_table(bench.wal, bench.table, &ack, &err), &err);
}

/* Runs the producers for a while, with a publisher's acknowledgements beside them. */
static double engine_run(double seconds)
{
    atomic_store(&bench.is_over, false);
    for (uint32_t i = 0; i < bench.producer_count; i++)
        bench.producers[i].count = 0;
    double began = seconds_now();
    atomic_store(&bench.in_flight, bench.producer_count);
    for (uint32_t i = 0; i < bench.producer_count; i++)
        if (bench.is_submit)
            producer_submit(&bench.producers[i]);
        else
            must(env_thread_start(env_real(), "producer", producer_main, &bench.producers[i],
                                  &bench.producers[i].thread, &err),
                 &err);
    while (seconds_now() - began < seconds) {
        env_sleep_ms(env_real(), ACK_EVERY_MS);
        all_acknowledge();
    }
    atomic_store(&bench.is_over, true);
    for (uint32_t i = 0; i < bench.producer_count && !bench.is_submit; i++)
        env_thread_join(bench.producers[i].thread);
    while (bench.is_submit && atomic_load(&bench.in_flight) > 0)
        env_sleep_ms(env_real(), 1);
    return seconds_now() - began;
}

/* ---- one case of B5 ---- */

struct turn {
    double acks_a_second, cpu_us_an_ack, syncs_a_second, p50_us, p99_us, written, disk_written,
        unit_bytes;
    struct loop loops[2];
};

static struct turn turn_run(const char *loop_path, uint8_t *loop_data, double seconds)
{
    static double samples[SAMPLES_MAX];
    size_t count = 0;
    uint64_t acks = 0, disk_before = disk_bytes_written(bench.dir);
    struct wal_usage before = wal_usage(bench.wal);
    double cpu_before = cpu_seconds();
    double spent = engine_run(seconds), cpu = cpu_seconds() - cpu_before;
    struct wal_usage after = wal_usage(bench.wal);
    uint64_t disk_after = disk_bytes_written(bench.dir);
    for (uint32_t i = 0; i < bench.producer_count; i++) {
        const struct producer *producer = &bench.producers[i];
        acks += producer->count;
        for (size_t k = 0; k < producer->count && count < SAMPLES_MAX; k++)
            samples[count++] = producer->samples[k];
    }
    double payload = (double)(after.payload_bytes_written - before.payload_bytes_written);
    double units = (double)(after.units_written - before.units_written);
    double entries = (double)(after.entries_written - before.entries_written);
    struct turn turn = {
        .acks_a_second = (double)acks / spent,
        .cpu_us_an_ack = cpu / (double)acks * 1e6,
        .syncs_a_second = units / spent,
        .p50_us = percentile(samples, count, 50),
        .p99_us = percentile(samples, count, 99),
        .written = (double)(after.bytes_written - before.bytes_written) / payload,
        .disk_written = (double)(disk_after - disk_before) / payload,
        .unit_bytes = (double)(bench.bytes + 256) * entries / units,
    };
    size_t bytes = ((size_t)turn.unit_bytes + 4095) / 4096 * 4096;
    for (int i = 0; i < 2; i++)
        turn.loops[i] = loop_run(loop_path, loop_data, bytes, i == 1, seconds / 2);
    return turn;
}

static double median_of(const double *first, size_t stride)
{
    double values[TURNS];
    for (size_t i = 0; i < TURNS; i++)
        values[i] = *(const double *)(const void *)((const char *)first + i * stride);
    return percentile(values, TURNS, 50);
}

static void case_run(size_t bytes, uint32_t producer_count, double seconds)
{
    char log_dir[PATH_BYTES_MAX], loop_path[PATH_BYTES_MAX];
    struct turn turns[TURNS];
    double ratios[TURNS];
    bench.bytes = bytes;
    bench.producer_count = producer_count;
    bench.payload = mem_alloc_aligned(64, bytes);
    uint8_t *loop_data = mem_alloc_aligned(4096, LOOP_WRITE_MAX);
    if (!bench.payload || !loop_data)
        exit(1);
    memset(bench.payload, 0x5a, bytes);
    bench.crc = crc32c(0, bench.payload, bytes);
    snprintf(log_dir, sizeof log_dir, "%s/log-%zu-%u", bench.dir, bytes, producer_count);
    snprintf(loop_path, sizeof loop_path, "%s/loop", bench.dir);
    loop_file_make(loop_path, loop_data);
    memset(loop_data, 0x5a, LOOP_WRITE_MAX);
    engine_open(log_dir, (uint64_t)2 << 30);
    engine_run(seconds);
    for (int i = 0; i < TURNS; i++) {
        turns[i] = turn_run(loop_path, loop_data, seconds);
        double fastest = turns[i].loops[0].syncs_a_second;
        if (turns[i].loops[1].syncs_a_second > fastest)
            fastest = turns[i].loops[1].syncs_a_second;
        ratios[i] = turns[i].syncs_a_second / fastest;
    }
    wal_close(bench.wal);
    unlink(loop_path);
    mem_free(bench.payload);
    mem_free(loop_data);
#define MEDIAN(field) median_of(&turns[0].field, sizeof turns[0])
    printf("{\"case\":\"B5a%s\",\"row_bytes\":%zu,\"producers\":%u,\"acks_a_second\":%.0f,\"cpu_us_"
           "an_ack\":%.1f,"
           "\"p50_us\":%.0f,\"p99_us\":%.0f,\"bytes_written_over_payload\":%.3f,"
           "\"disk_written_over_payload\":%.3f,\"bytes_a_sync\":%.0f,\"syncs_a_second\":%.0f,"
           "\"loop_fdatasync\":%.0f,\"loop_fdatasync_p50_us\":%.0f,\"loop_dsync\":%.0f,"
           "\"loop_dsync_p50_us\":%.0f,\"ratio_to_loop\":%.3f,\"load\":%.1f}\n",
           bench.is_submit ? " submit" : "", bytes, producer_count, MEDIAN(acks_a_second),
           MEDIAN(cpu_us_an_ack), MEDIAN(p50_us), MEDIAN(p99_us), MEDIAN(written),
           MEDIAN(disk_written), MEDIAN(unit_bytes), MEDIAN(syncs_a_second),
           MEDIAN(loops[0].syncs_a_second), MEDIAN(loops[0].p50_us),
           MEDIAN(loops[1].syncs_a_second), MEDIAN(loops[1].p50_us),
           median_of(ratios, sizeof ratios[0]), load_now());
#undef MEDIAN
    fflush(stdout);
}

/* ---- B9: starts ---- */

/* Fills a log in a process of its own, which then ends as by a kill. */
static void fill_and_die(const char *dir, uint64_t bytes, uint64_t segment_bytes)
{
    enum { ROW = 128 << 10 };
    pid_t child = fork();
    if (child == 0) {
        struct wal_options options = wal_options_default(dir);
        options.budget_bytes = 4 * bytes + 16 * segment_bytes;
        options.segment_bytes = segment_bytes;
        uint8_t *payload = mem_alloc_aligned(64, ROW);
        if (!payload)
            _exit(1);
        memset(payload, 0x5a, ROW);
        must(wal_open(env_real(), &options, &bench.wal, &err), &err);
        must(wal_table_open(bench.wal, "bench.rows", &bench.table, &err), &err);
        for (uint64_t done = 0; done < bytes; done += ROW)
            must(row_append(bench.wal, payload, ROW, crc32c(0, payload, ROW), &err), &err);
        _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        exit(1);
}

/* Drops what the page cache has of a folder's files. */
static void cache_drop(const char *dir, const char *folder)
{
    char path[PATH_BYTES_MAX], file_path[2 * PATH_BYTES_MAX], **names;
    struct arena arena;
    size_t count = 0;
    arena_init(&arena, 0);
    snprintf(path, sizeof path, "%s/%s", dir, folder);
    must(files_list(env_real(), path, &arena, &names, &count, &err), &err);
    for (size_t i = 0; i < count; i++) {
        snprintf(file_path, sizeof file_path, "%s/%s", path, names[i]);
        int file = open(file_path, O_RDONLY);
        if (file < 0 || fdatasync(file) != 0 || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) != 0)
            exit(1);
        close(file);
    }
    arena_deinit(&arena);
}

static int tree_remove(const char *path, const struct stat *stat_buffer, int kind, struct FTW *at)
{
    UNUSED(stat_buffer);
    UNUSED(kind);
    UNUSED(at);
    return remove(path);
}

static void recovery_run(const char *name, uint64_t bytes, uint64_t segment_bytes, bool is_cold)
{
    char dir[PATH_BYTES_MAX];
    snprintf(dir, sizeof dir, "%s/%s-%s", bench.dir, name, is_cold ? "cold" : "warm");
    fill_and_die(dir, bytes, segment_bytes);
    if (is_cold) {
        cache_drop(dir, "active");
        cache_drop(dir, "sealed");
    }
    struct wal_options options = wal_options_default(dir);
    options.budget_bytes = 4 * bytes + 16 * segment_bytes;
    options.segment_bytes = segment_bytes;
    double began = seconds_now();
    must(wal_open(env_real(), &options, &bench.wal, &err), &err);
    double spent = seconds_now() - began;
    struct wal_recovery report = wal_recovery_report(bench.wal);
    printf("{\"case\":\"B9 %s\",\"is_cold\":%s,\"unpublished_mib\":%llu,\"segments\":%llu,"
           "\"entries\":%llu,\"start_ms\":%.1f,\"read_mib\":%.1f,"
           "\"gib_a_second\":%.2f,\"load\":%.1f}\n",
           name, is_cold ? "true" : "false", (unsigned long long)bytes >> 20,
           (unsigned long long)report.segments, (unsigned long long)report.entries, spent * 1e3,
           (double)report.bytes_read / (1 << 20), (double)bytes / spent / (1 << 30), load_now());
    fflush(stdout);
    wal_close(bench.wal);
    if (nftw(dir, tree_remove, 8, FTW_DEPTH | FTW_PHYS) != 0)
        perror(dir);
}

/* ---- main ---- */

static int usage(void)
{
    fprintf(stderr,
            "usage: bench_wal DIR [--seconds S] [--rows BYTES] [--producers N] [--submit 1]\n"
            "       bench_wal DIR --recovery MIB\n");
    return 2;
}

int main(int argc, char **argv)
{
    static const size_t all_rows[] = {1 << 10, 4 << 10, 128 << 10, 1 << 20};
    static const uint32_t all_producers[] = {1, 16, 64, 256};
    uint64_t seconds = 1, rows = 0, producers = 0, submit = 0, recovery_mib = 0;
    if (argc < 2 || argc % 2 != 0 || argv[1][0] == '-')
        return usage();
    for (int i = 2; i < argc; i += 2) {
        uint64_t *to = strcmp(argv[i], "--seconds") == 0     ? &seconds
                       : strcmp(argv[i], "--rows") == 0      ? &rows
                       : strcmp(argv[i], "--producers") == 0 ? &producers
                       : strcmp(argv[i], "--submit") == 0    ? &submit
                       : strcmp(argv[i], "--recovery") == 0  ? &recovery_mib
                                                             : NULL;
        if (!to || !parse_u64(argv[i + 1], strlen(argv[i + 1]), to) || *to == 0)
            return usage();
    }
    if (producers > PRODUCERS_MAX || rows > LOOP_FILE_BYTES / 2)
        return usage();
    bench.dir = argv[1];
    bench.is_submit = submit > 0;
    must(files_make_dirs(env_real(), bench.dir, &err), &err);
    if (recovery_mib) {
        for (int is_cold = 0; is_cold < 2; is_cold++) {
            recovery_run("active", recovery_mib << 20, (recovery_mib + 64) << 20, is_cold);
            recovery_run("sealed", recovery_mib << 20, 64 << 20, is_cold);
        }
        return 0;
    }
    for (size_t i = 0; i < PRODUCERS_MAX; i++) {
        bench.producers[i].samples = calloc(SAMPLES_EACH, sizeof(double));
        if (!bench.producers[i].samples)
            return 1;
    }
    for (size_t r = 0; r < COUNT_OF(all_rows); r++)
        for (size_t p = 0; p < COUNT_OF(all_producers); p++)
            if ((rows == 0 || rows == all_rows[r]) &&
                (producers == 0 || producers == all_producers[p]))
                case_run(all_rows[r], all_producers[p], (double)seconds);
    return 0;
}
