/* SPDX-License-Identifier: Apache-2.0
 *
 * A table that takes nothing, on a real disk and under real threads: others append, acknowledge and
 * read while segments are compacted (L26).
 */
#include <stdatomic.h>

#include "wal_fixture.h"
#include "wal_tests.h"

enum { FLOWING_ROWS = 1500, STUCK_EVERY = 50, STUCK_ROWS = FLOWING_ROWS / STUCK_EVERY };

static struct {
    struct fixture fixture;
    uint32_t flowing;
    atomic_ullong last_seq; /* of the flowing table's rows */
    atomic_int failed;
    atomic_bool is_over;
} world;

static uint64_t put(uint32_t table, uint64_t number, size_t bytes)
{
    uint8_t payload[8000];
    struct error err;
    fixture_payload(number, payload, bytes);
    struct wal_contribution contribution = {.rows = 1};
    struct wal_entry entry = {.type = WAL_DATA,
                              .table_id = table,
                              .rows = 1,
                              .contributions = &contribution,
                              .contribution_count = 1,
                              .payload = span_of(payload, bytes),
                              .payload_crc = crc32c(0, payload, bytes)};
    struct wal_submission submission = {
        .entries = &entry, .entry_count = 1, .durability = WAL_SYNCED};
    enum status status = wal_append(world.fixture.wal, &submission, &err);
    for (int i = 0; i < 1000 && status == STATUS_NO_SPACE; i++) { /* the keeper is slow */
        env_sleep_ms(env_real(), 10);
        status = wal_append(world.fixture.wal, &submission, &err);
    }
    if (status != STATUS_OK)
        atomic_fetch_add(&world.failed, 1);
    return entry.seq;
}

static void take(void)
{
    struct wal *wal = world.fixture.wal;
    struct error err;
    struct wal_ack ack = {.through.seq = atomic_load(&world.last_seq)};
    if (wal_chain_at(wal, 0, ack.through.seq, &ack.through.chain, &err) != STATUS_OK)
        return;
    ack.committed = ack.through;
    if (wal_ack_table(wal, world.flowing, &ack, &err) != STATUS_OK)
        atomic_fetch_add(&world.failed, 1);
}

/* All rows of the stuck table, again and again; whatever else is asked about must be there or gone.
 */
static void read_on(void *context)
{
    UNUSED(context);
    struct wal *wal = world.fixture.wal;
    for (uint64_t round = 0; !atomic_load(&world.is_over); round++) {
        struct wal_scan *scan;
        struct wal_view view;
        struct error err;
        uint64_t count = 0, chain, term, last = atomic_load(&world.last_seq);
        uint64_t at = last ? round * 7919 % last + 1 : 1;
        enum status status = wal_scan_open(wal, 0, world.fixture.table, 0, &scan, &err);
        while (status == STATUS_OK && (status = wal_scan_next(scan, &view, &err)) == STATUS_OK)
            if (get_le64(view.payload.data) != ++count)
                atomic_fetch_add(&world.failed, 1);
        if (status != STATUS_NOT_FOUND)
            atomic_fetch_add(&world.failed, 1);
        wal_scan_close(scan);
        status = wal_term_at(wal, 0, at, &term, &err);
        if (status != STATUS_OK && status != STATUS_NOT_FOUND)
            atomic_fetch_add(&world.failed, 1);
        status = wal_chain_at(wal, 0, at, &chain, &err);
        if (status != STATUS_OK && status != STATUS_NOT_FOUND)
            atomic_fetch_add(&world.failed, 1);
    }
}

static uint64_t on_disk(const struct fixture *f)
{
    static const char *const folders[] = {"active", "sealed", "committed", "spare", "state"};
    uint64_t bytes = 0;
    for (size_t i = 0; i < COUNT_OF(folders); i++) {
        char path[PATH_BYTES_MAX], file[PATH_BYTES_MAX], **names;
        size_t count;
        struct arena arena;
        struct env_stat stat;
        struct error err;
        arena_init(&arena, 0);
        snprintf(path, sizeof path, "%s/%s", f->dir, folders[i]);
        assert_ok(files_list(env_real(), path, &arena, &names, &count, &err));
        for (size_t k = 0; k < count; k++) {
            assert_ok(path_join(file, path, names[k], &err));
            if (env_path_stat(env_real(), file, &stat, &err) == STATUS_OK)
                bytes += stat.allocated_bytes;
        }
        arena_deinit(&arena);
    }
    return bytes;
}

static void is_settled(struct fixture *f, uint64_t stuck)
{
    struct wal_damage damage;
    struct error err;
    uint64_t entries;
    static uint64_t numbers[STUCK_ROWS + 1];
    for (int i = 0; i < 100 && on_disk(f) != wal_usage(f->wal).allocated_bytes; i++)
        env_sleep_ms(env_real(), 50);
    assert_int_equal(on_disk(f), wal_usage(f->wal).allocated_bytes);
    assert_ok(wal_verify(f->wal, &entries, &err));
    assert_false(wal_damage_at(f->wal, 0, &damage));
    assert_int_equal(fixture_scan(f, numbers, COUNT_OF(numbers)), stuck);
}

void test_readers_beside_a_compaction(void **state)
{
    (void)state;
    struct fixture *f = &world.fixture;
    struct error err;
    struct env_thread *readers[2];
    fixture_init(f, "compact");
    wal_close(f->wal);
    f->options.segment_bytes = 512 << 10;
    f->options.budget_bytes = 6 << 20;
    f->options.keep_committed_ms = 0;
    fixture_open(f);
    assert_ok(wal_table_open(f->wal, "otel.traces", &world.flowing, &err));
    for (size_t i = 0; i < COUNT_OF(readers); i++)
        assert_ok(env_thread_start(env_real(), "read", read_on, NULL, &readers[i], &err));
    for (uint64_t i = 1; i <= FLOWING_ROWS; i++) {
        atomic_store(&world.last_seq, put(world.flowing, FLOWING_ROWS + i, 8000));
        if (i % STUCK_EVERY == 0)
            put(f->table, i / STUCK_EVERY, 100);
        if (i % 20 == 0)
            take();
    }
    atomic_store(&world.is_over, true);
    for (size_t i = 0; i < COUNT_OF(readers); i++)
        env_thread_join(readers[i]);
    assert_int_equal(atomic_load(&world.failed), 0); /* twice the budget flowed by */
    assert_true(wal_usage(f->wal).segments_compacted > 5);
    is_settled(f, STUCK_ROWS);
    assert_true(wal_pinned_bytes(f->wal, f->table) < 3 << 20);
    wal_close(f->wal);
    fixture_open(f);
    assert_int_equal(wal_recovery_report(f->wal).damaged_ranges, 0);
    is_settled(f, STUCK_ROWS);
    fixture_deinit(f);
}
