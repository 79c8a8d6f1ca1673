/* SPDX-License-Identifier: Apache-2.0
 *
 * What the log's unit tests share: a directory of their own on the real file system, appends whose
 * payload says which entry it is, and a check of everything a scan gives back.
 */
#ifndef SLUICE_TEST_WAL_FIXTURE_H
#define SLUICE_TEST_WAL_FIXTURE_H

#include "../unit.h"
#include "log/wal/wal.h"

enum { FIXTURE_SEGMENT_BYTES = 64 << 10 };

struct fixture {
    char dir[256];
    struct wal_options options;
    struct wal *wal;
    uint32_t table;
};

static inline void fixture_remove_tree(const char *dir)
{
    static const char *const folders[] = {"active", "sealed", "committed", "spare", "state", ""};
    struct error err;
    for (size_t i = 0; i < COUNT_OF(folders); i++) {
        char path[PATH_BYTES_MAX], file[PATH_BYTES_MAX], **names;
        size_t count;
        struct arena arena;
        arena_init(&arena, 0);
        snprintf(path, sizeof path, "%s/%s", dir, folders[i]);
        if (files_list(env_real(), path, &arena, &names, &count, &err) == STATUS_OK) {
            for (size_t k = 0; k < count; k++) {
                if (path_join(file, path, names[k], &err) == STATUS_OK &&
                    env_remove(env_real(), file, &err) != STATUS_OK)
                    continue; /* a folder */
            }
        }
        arena_deinit(&arena);
        if (env_dir_remove(env_real(), path, &err) != STATUS_OK)
            continue;
    }
}

static inline void fixture_open(struct fixture *f)
{
    struct error err;
    assert_ok(wal_open(env_real(), &f->options, &f->wal, &err));
    assert_ok(wal_table_open(f->wal, "otel.logs", &f->table, &err));
}

/* A log with small segments in a fresh directory. */
static inline void fixture_init(struct fixture *f, const char *name)
{
    const char *base = getenv("TMPDIR");
    uint64_t random;
    env_random(env_real(), &random, sizeof random);
    snprintf(f->dir, sizeof f->dir, "%s/sluice-%s-%016llx", base ? base : "/tmp", name,
             (unsigned long long)random);
    f->options = wal_options_default(f->dir);
    f->options.segment_bytes = FIXTURE_SEGMENT_BYTES;
    f->options.budget_bytes = 64 << 20;
    f->wal = NULL;
    fixture_open(f);
}

static inline void fixture_deinit(struct fixture *f)
{
    wal_close(f->wal);
    fixture_remove_tree(f->dir);
}

static inline void fixture_payload(uint64_t number, uint8_t *out, size_t bytes)
{
    struct random random;
    random_init(&random, number);
    for (size_t i = 0; i < bytes; i++)
        out[i] = (uint8_t)random_next(&random);
    if (bytes >= 8)
        put_le64(out, number);
}

static inline enum status fixture_try(struct fixture *f, uint64_t number, size_t bytes,
                                      uint64_t *out_seq, struct error *err)
{
    uint8_t *payload = mem_alloc(bytes);
    assert_non_null(payload);
    fixture_payload(number, payload, bytes);
    struct wal_contribution contribution = {.rows = 1};
    struct wal_entry entry = {.type = WAL_DATA,
                              .table_id = f->table,
                              .rows = 1,
                              .contributions = &contribution,
                              .contribution_count = 1,
                              .payload = span_of(payload, bytes),
                              .payload_crc = crc32c(0, payload, bytes)};
    struct wal_submission submission = {
        .entries = &entry, .entry_count = 1, .durability = WAL_SYNCED};
    enum status status = wal_append(f->wal, &submission, err);
    mem_free(payload);
    if (out_seq)
        *out_seq = entry.seq;
    return status;
}

static inline uint64_t fixture_append(struct fixture *f, uint64_t number, size_t bytes)
{
    struct error err;
    uint64_t seq = 0;
    assert_ok(fixture_try(f, number, bytes, &seq, &err));
    return seq;
}

/* Scans all DATA of the table; each payload must be the one of its number. Returns how many, and
 * their numbers. */
static inline size_t fixture_scan(struct fixture *f, uint64_t *numbers, size_t most)
{
    struct error err;
    struct wal_scan *scan;
    struct wal_view view;
    size_t count = 0;
    enum status status;
    assert_ok(wal_scan_open(f->wal, 0, f->table, 0, &scan, &err));
    while ((status = wal_scan_next(scan, &view, &err)) == STATUS_OK) {
        uint8_t *expected = mem_alloc(view.payload.length);
        assert_non_null(expected);
        assert_true(count < most);
        numbers[count] = get_le64(view.payload.data);
        fixture_payload(numbers[count], expected, view.payload.length);
        assert_memory_equal(view.payload.data, expected, view.payload.length);
        assert_int_equal((uintptr_t)view.payload.data % 64, 0);
        mem_free(expected);
        count++;
    }
    if (status != STATUS_NOT_FOUND)
        fail_msg("scan: %s", err.message);
    wal_scan_close(scan);
    return count;
}

#endif
