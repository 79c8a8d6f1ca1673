/* SPDX-License-Identifier: Apache-2.0
 *
 * B13: what many groups, tables and producers cost that are idle. B9: a start with many sealed
 * segments.
 *
 *   bench_wal_many DIR groups GROUPS SEGMENTS EACH   segments with entries of EACH of the groups,
 *                                                    which take turns
 *   bench_wal_many DIR sealed SEGMENTS BYTES         segments of 8 entries of that size
 *   bench_wal_many DIR idle GROUPS TABLES SECONDS
 *   bench_wal_many DIR producers PRODUCERS
 *
 * DIR is made. Prints a JSON line. Heap bytes are malloc's own, after the log was opened again,
 * less what was there before.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "measure.h"
#include "log/wal/wal.h"

static struct error err;
static struct wal_options options;

static double heap_mib(void)
{
    struct mallinfo2 info = mallinfo2();
    return (double)(info.uordblks + info.hblkhd) / (1 << 20);
}

static struct wal *log_open(void)
{
    struct wal *wal = NULL;
    must(wal_open(env_real(), &options, &wal, &err), &err);
    return wal;
}

/* One entry in each of `count` groups from `first` on, in one unit. */
static void turn_append(struct wal *wal, uint32_t table, uint32_t first, uint32_t count,
                        size_t bytes)
{
    struct wal_entry *entries = calloc(count, sizeof *entries);
    uint8_t *payload = calloc(1, bytes);
    if (!entries || !payload)
        exit(1);
    for (uint32_t i = 0; i < count; i++)
        entries[i] = (struct wal_entry){.type = WAL_DATA,
                                        .group = (first + i) % options.group_count,
                                        .table_id = table,
                                        .rows = 1,
                                        .payload = span_of(payload, bytes),
                                        .payload_crc = crc32c(0, payload, bytes)};
    struct wal_submission submission = {
        .entries = entries, .entry_count = count, .durability = WAL_SYNCED};
    must(wal_append(wal, &submission, &err), &err);
    free(payload);
    free(entries);
}

/* First and last of every group, as often as takes a while; nanoseconds a group. */
static double ends_ns(struct wal *wal)
{
    enum { TURNS = 20 };
    uint64_t sum = 0;
    double began = seconds_now();
    for (int turn = 0; turn < TURNS; turn++)
        for (uint32_t g = 0; g < options.group_count; g++)
            sum += wal_retained_from(wal, g) + wal_synced_end(wal, g).seq;
    double spent = seconds_now() - began;
    if (sum == 0)
        exit(1);
    return spent / TURNS / options.group_count * 1e9;
}

static void groups_run(const char *name, uint32_t groups, uint32_t segments, uint32_t each,
                       size_t bytes)
{
    uint32_t table;
    options.group_count = groups;
    options.segment_bytes = 1 << 20;
    while (options.segment_bytes < (uint64_t)each * (1024 + bytes))
        options.segment_bytes *= 2;
    options.budget_bytes = (uint64_t)1 << 50;
    struct wal *wal = log_open();
    must(wal_table_open(wal, "bench.rows", &table, &err), &err);
    for (uint32_t i = 0; i < segments; i++) {
        turn_append(wal, table, i * each, each, bytes);
        must(wal_seal(wal, &err), &err);
    }
    wal_close(wal);
    malloc_trim(0);
    double before = heap_mib(), began = seconds_now();
    wal = log_open();
    double start_ms = (seconds_now() - began) * 1e3, after = heap_mib();
    struct wal_recovery report = wal_recovery_report(wal);
    struct wal_segment_info info;
    double sealed_mib = 0;
    for (size_t i = 0; wal_segment_at(wal, i, &info); i++)
        sealed_mib += strcmp(info.state, "sealed") == 0 ? (double)info.bytes / (1 << 20) : 0;
    printf("{\"case\":\"%s\",\"groups\":%u,\"segments\":%llu,\"entries_a_segment\":%u,"
           "\"sealed_mib\":%.0f,"
           "\"entries\":%llu,\"start_ms\":%.1f,\"read_mib\":%.1f,\"index_mib\":%.1f,"
           "\"ends_ns_a_group\":%.0f}\n",
           name, groups, (unsigned long long)report.segments, each, sealed_mib,
           (unsigned long long)report.entries, start_ms, (double)report.bytes_read / (1 << 20),
           after - before, ends_ns(wal));
    wal_close(wal);
}

static void idle_run(uint32_t groups, uint32_t tables, uint32_t seconds)
{
    char name[32];
    uint32_t id;
    options.group_count = groups;
    double before = heap_mib();
    struct wal *wal = log_open();
    double began = seconds_now();
    for (uint32_t i = 0; i < tables; i++) {
        snprintf(name, sizeof name, "bench.t%u", i);
        must(wal_table_open(wal, name, &id, &err), &err);
    }
    double made = seconds_now() - began;
    wal_close(wal);
    malloc_trim(0);
    began = seconds_now();
    wal = log_open();
    double start_ms = (seconds_now() - began) * 1e3;
    env_sleep_ms(env_real(), 2000);
    double cpu = cpu_seconds();
    env_sleep_ms(env_real(), (uint64_t)seconds * 1000);
    printf("{\"case\":\"B13 idle\",\"groups\":%u,\"tables\":%u,\"heap_mib\":%.1f,\"start_ms\":%.1f,"
           "\"tables_made_a_second\":%.0f,\"idle_percent_of_a_core\":%.3f}\n",
           groups, tables, heap_mib() - before, start_ms, tables / made,
           (cpu_seconds() - cpu) / seconds * 100);
    wal_close(wal);
}

static void producers_run(uint32_t producers)
{
    enum { SEQUENCES = 10 };
    struct wal_receipt receipts[16];
    uint32_t table, count;
    uint64_t expected;
    options.producers_max = producers;
    struct wal *wal = log_open();
    must(wal_table_open(wal, "bench.rows", &table, &err), &err);
    for (uint64_t sequence = 1; sequence <= SEQUENCES; sequence++) {
        for (uint32_t first = 0; first < producers; first += WAL_CONTRIBUTIONS_MAX) {
            static char ids[WAL_CONTRIBUTIONS_MAX][24];
            static struct wal_contribution contributions[WAL_CONTRIBUTIONS_MAX];
            uint32_t n = 0;
            for (; n < WAL_CONTRIBUTIONS_MAX && first + n < producers; n++) {
                snprintf(ids[n], sizeof ids[n], "producer-%011u", first + n);
                contributions[n] = (struct wal_contribution){.first_row = n,
                                                             .rows = 1,
                                                             .producer = ids[n],
                                                             .producer_length = 20,
                                                             .producer_sequence = sequence};
                if (wal_producer_begin(wal, span_of_text(ids[n]), sequence, (struct hash128){0},
                                       receipts, &count, &expected) != WAL_PRODUCER_NEW)
                    exit(1);
            }
            struct wal_entry entry = {.type = WAL_DATA,
                                      .table_id = table,
                                      .rows = n,
                                      .contributions = contributions,
                                      .contribution_count = n};
            struct wal_submission submission = {
                .entries = &entry, .entry_count = 1, .durability = WAL_SYNCED};
            must(wal_append(wal, &submission, &err), &err);
        }
    }
    double began = seconds_now();
    wal_close(wal);
    double close_ms = (seconds_now() - began) * 1e3;
    malloc_trim(0);
    double before = heap_mib();
    began = seconds_now();
    wal = log_open();
    double start_ms = (seconds_now() - began) * 1e3, after = heap_mib();
    printf("{\"case\":\"producers\",\"producers\":%llu,\"heap_mib\":%.1f,\"bytes_each\":%.0f,"
           "\"close_ms\":%.0f,\"start_ms\":%.0f}\n",
           (unsigned long long)wal_usage(wal).producers, after - before,
           (after - before) * (1 << 20) / producers, close_ms, start_ms);
    wal_close(wal);
}

static int usage(void)
{
    fprintf(stderr, "usage: bench_wal_many DIR groups GROUPS SEGMENTS EACH\n"
                    "       bench_wal_many DIR sealed SEGMENTS BYTES\n"
                    "       bench_wal_many DIR idle GROUPS TABLES SECONDS\n"
                    "       bench_wal_many DIR producers PRODUCERS\n");
    return 2;
}

int main(int argc, char **argv)
{
    uint64_t numbers[3] = {0};
    if (argc < 4 || argc > 6)
        return usage();
    for (int i = 3; i < argc; i++)
        if (!parse_u64(argv[i], strlen(argv[i]), &numbers[i - 3]) || numbers[i - 3] > UINT32_MAX)
            return usage();
    must(files_make_dirs(env_real(), argv[1], &err), &err);
    options = wal_options_default(argv[1]);
    uint32_t a = (uint32_t)numbers[0], b = (uint32_t)numbers[1], c = (uint32_t)numbers[2];
    if (strcmp(argv[2], "groups") == 0 && argc == 6)
        groups_run("B13 groups", a, b, c, 8);
    else if (strcmp(argv[2], "sealed") == 0 && argc == 5)
        groups_run("B9 sealed", 1, a, 8, b);
    else if (strcmp(argv[2], "idle") == 0 && argc == 6)
        idle_run(a, b, c);
    else if (strcmp(argv[2], "producers") == 0 && argc == 4)
        producers_run(a);
    else
        return usage();
    return 0;
}
