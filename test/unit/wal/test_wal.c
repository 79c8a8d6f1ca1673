/* SPDX-License-Identifier: Apache-2.0
 *
 * The log's API on the real file system, and its format against the golden files.
 */
#include "wal_fixture.h"
#include "wal_tests.h"

const char *wal_test_source_dir = ".";

static void test_reopen_gives_back_what_was_written(void **state)
{
    (void)state;
    static uint64_t numbers[1024];
    struct fixture f;
    fixture_init(&f, "reopen");
    for (uint64_t i = 1; i <= 300; i++)
        assert_true(fixture_append(&f, i, 20 + i * 7 % 3000) > 0);
    assert_int_equal(fixture_scan(&f, numbers, COUNT_OF(numbers)), 300);
    uint64_t term = wal_term(f.wal);
    struct wal_position end = wal_synced_end(f.wal, 0);
    wal_close(f.wal);
    fixture_open(&f);
    assert_true(wal_term(f.wal) > term);
    assert_true(wal_synced_end(f.wal, 0).seq > end.seq);
    assert_int_equal(fixture_scan(&f, numbers, COUNT_OF(numbers)), 300);
    for (uint64_t i = 0; i < 300; i++)
        assert_int_equal(numbers[i], i + 1);
    assert_int_equal(wal_recovery_report(f.wal).tails_cut, 0);
    struct error err;
    uint64_t chain;
    assert_ok(wal_chain_at(f.wal, 0, end.seq, &chain, &err));
    assert_true(chain == end.chain);
    fixture_deinit(&f);
}

static void test_second_process_is_refused(void **state)
{
    (void)state;
    struct fixture f;
    struct wal *other;
    struct error err;
    fixture_init(&f, "busy");
    assert_status(STATUS_BUSY, wal_open(env_real(), &f.options, &other, &err));
    struct wal_options options = f.options;
    options.is_read_only = true;
    assert_ok(wal_open(env_real(), &options, &other, &err)); /* looking is free */
    wal_close(other);
    wal_close(f.wal);
    options = f.options;
    options.group_count = 3;
    assert_status(STATUS_INVALID, wal_open(env_real(), &options, &other, &err));
    fixture_open(&f);
    fixture_deinit(&f);
}

static void test_tables_and_schemas_last(void **state)
{
    (void)state;
    struct fixture f;
    struct error err;
    struct buf message = {0};
    uint32_t spans, again;
    char name[WAL_TABLE_NAME_MAX + 1];
    fixture_init(&f, "tables");
    assert_ok(wal_table_open(f.wal, "otel.spans", &spans, &err));
    assert_int_equal(spans, 2);
    assert_ok(wal_schema_add(f.wal, 42, span_of_text("a schema"), &err));
    uint8_t payload[16] = "rows";
    struct wal_entry entry = {.type = WAL_DATA,
                              .table_id = spans,
                              .schema_fingerprint = 42,
                              .rows = 4,
                              .payload = span_of(payload, sizeof payload),
                              .payload_crc = crc32c(0, payload, sizeof payload)};
    struct wal_submission submission = {
        .entries = &entry, .entry_count = 1, .durability = WAL_SYNCED};
    assert_ok(wal_append(f.wal, &submission, &err));
    entry.schema_fingerprint = 43;
    assert_status(STATUS_INVALID, wal_append(f.wal, &submission, &err));
    entry.schema_fingerprint = 42;
    entry.payload_crc ^= 1;
    assert_status(STATUS_INVALID, wal_append(f.wal, &submission, &err));
    wal_close(f.wal);
    fixture_open(&f);
    assert_ok(wal_table_open(f.wal, "otel.spans", &again, &err));
    assert_int_equal(again, spans);
    assert_true(wal_table_name(f.wal, 2, name));
    assert_string_equal(name, "otel.spans");
    assert_false(wal_table_name(f.wal, 3, name));
    assert_ok(wal_schema_get(f.wal, 42, &message, &err));
    assert_int_equal(message.length, 8);
    assert_memory_equal(message.data, "a schema", 8);
    assert_status(STATUS_NOT_FOUND, wal_schema_get(f.wal, 43, &message, &err));
    buf_deinit(&message);
    fixture_deinit(&f);
}

static void test_pending_and_acks(void **state)
{
    (void)state;
    struct fixture f;
    struct error err;
    uint64_t seqs[200];
    fixture_init(&f, "pending");
    for (uint64_t i = 0; i < 200; i++)
        seqs[i] = fixture_append(&f, i, 1000);
    for (uint64_t i = 0; i < 200; i += 13) {
        struct wal_pending pending = wal_pending(f.wal, 0, f.table, seqs[i]);
        assert_int_equal(pending.entries, 199 - i);
        assert_int_equal(pending.rows, 199 - i);
        assert_int_equal(pending.bytes, (199 - i) * 1000);
        assert_int_equal(pending.last_seq, i == 199 ? 0 : seqs[199]);
    }
    struct wal_ack ack = {0}, known;
    assert_false(wal_ack_get(f.wal, f.table, 0, &known));
    ack.through.seq = seqs[150];
    assert_ok(wal_chain_at(f.wal, 0, seqs[150], &ack.through.chain, &err));
    ack.committed = ack.through;
    assert_ok(wal_ack_table(f.wal, f.table, &ack, &err));
    struct wal_ack older = {.through = {.seq = seqs[3], .chain = 1}};
    assert_ok(wal_ack_table(f.wal, f.table, &older, &err));
    struct wal_ack beyond = {.through = {.seq = seqs[199] + 1000}};
    assert_status(STATUS_CONFLICT, wal_ack_table(f.wal, f.table, &beyond, &err));
    wal_close(f.wal);
    fixture_open(&f);
    assert_true(wal_ack_get(f.wal, f.table, 0, &known));
    assert_true(known.through.seq == seqs[150] && known.through.chain == ack.through.chain);
    fixture_deinit(&f);
}

/* Segments whose rows are all acknowledged are moved, swept and recycled; what is left is exact. */
static void test_retention_gives_room_back(void **state)
{
    (void)state;
    struct fixture f;
    struct error err;
    fixture_init(&f, "retention");
    wal_close(f.wal);
    f.options.keep_committed_ms = 0;
    f.options.budget_bytes = 16 * FIXTURE_SEGMENT_BYTES;
    fixture_open(&f);
    uint64_t first = fixture_append(&f, 1, 100);
    for (uint64_t i = 0; i < 800; i++) {
        uint64_t seq = 0;
        enum status status = fixture_try(&f, i, 3000, &seq, &err);
        if (status != STATUS_OK) {
            assert_int_equal(status, STATUS_NO_SPACE);
            uint64_t retry_ms = 0;
            /* The keeper may have made room since. */
            if (wal_admit(f.wal, 60000, &retry_ms, &err) != STATUS_OK)
                assert_in_range(retry_ms, 100, 60000);
        }
        if (status != STATUS_OK || i % 100 == 99) {
            struct wal_ack ack = {.through = wal_synced_end(f.wal, 0)};
            ack.committed = ack.through;
            assert_ok(wal_ack_table(f.wal, f.table, &ack, &err));
            env_sleep_ms(env_real(), 20);
        }
    }
    for (int i = 0; i < 200 && wal_reclaimed_through(f.wal, 0, f.table) < first; i++)
        env_sleep_ms(env_real(), 20);
    struct wal_usage usage = wal_usage(f.wal);
    assert_true(usage.allocated_bytes <= usage.budget_bytes);
    assert_true(wal_reclaimed_through(f.wal, 0, f.table) >= first);
    struct wal_scan *scan;
    assert_status(STATUS_RECLAIMED, wal_scan_open(f.wal, 0, f.table, 0, &scan, &err));
    fixture_deinit(&f);
}

static void test_open_scan_pins(void **state)
{
    (void)state;
    struct fixture f;
    struct error err;
    struct wal_scan *scan;
    struct wal_view view;
    fixture_init(&f, "pins");
    wal_close(f.wal);
    f.options.keep_committed_ms = 0;
    fixture_open(&f);
    for (uint64_t i = 1; i <= 100; i++)
        fixture_append(&f, i, 2000);
    assert_ok(wal_scan_open(f.wal, 0, f.table, 0, &scan, &err));
    struct wal_ack ack = {.through = wal_synced_end(f.wal, 0)};
    ack.committed = ack.through;
    assert_ok(wal_seal(f.wal, &err));
    assert_ok(wal_ack_table(f.wal, f.table, &ack, &err));
    env_sleep_ms(env_real(), 100);
    for (uint64_t i = 1; i <= 100; i++) {
        assert_ok(wal_scan_next(scan, &view, &err));
        assert_int_equal(get_le64(view.payload.data), i);
    }
    assert_status(STATUS_NOT_FOUND, wal_scan_next(scan, &view, &err));
    wal_scan_close(scan);
    fixture_deinit(&f);
}

static void test_fork_changes_identity(void **state)
{
    (void)state;
    static uint64_t numbers[64];
    struct fixture f;
    struct error err;
    struct log_id id, before;
    struct wal_ack known;
    fixture_init(&f, "fork");
    for (uint64_t i = 1; i <= 10; i++)
        fixture_append(&f, i, 500);
    struct wal_ack ack = {.through = wal_synced_end(f.wal, 0)};
    ack.committed = ack.through;
    assert_ok(wal_ack_table(f.wal, f.table, &ack, &err));
    before = wal_log_id(f.wal);
    assert_ok(wal_fork(f.wal, &id, &err));
    assert_false(log_id_equal(before, id));
    fixture_append(&f, 11, 500);
    wal_close(f.wal);
    fixture_open(&f);
    assert_true(log_id_equal(wal_log_id(f.wal), id));
    assert_int_equal(fixture_scan(&f, numbers, COUNT_OF(numbers)), 11);
    assert_true(wal_ack_get(f.wal, f.table, 0, &known));
    assert_int_equal(known.committed.seq, 0);
    assert_true(known.through.seq == ack.through.seq);
    fixture_deinit(&f);
}

/* ---- threads ---- */

struct appender {
    struct fixture *fixture;
    uint64_t first;
};

static void appender_main(void *context)
{
    struct appender *appender = context;
    for (uint64_t i = 0; i < 200; i++)
        fixture_append(appender->fixture, appender->first + i, 200);
}

static void test_group_commit_of_many_threads(void **state)
{
    (void)state;
    enum { THREADS = 16 };
    static uint64_t numbers[THREADS * 200 + 1];
    static bool seen[THREADS * 1000 + 1000];
    struct fixture f;
    struct error err;
    struct appender appenders[THREADS];
    struct env_thread *threads[THREADS];
    fixture_init(&f, "threads");
    for (uint64_t i = 0; i < THREADS; i++) {
        appenders[i] = (struct appender){.fixture = &f, .first = (i + 1) * 1000};
        assert_ok(env_thread_start(env_real(), "append", appender_main, &appenders[i], &threads[i],
                                   &err));
    }
    for (uint64_t i = 0; i < THREADS; i++)
        env_thread_join(threads[i]);
    assert_int_equal(fixture_scan(&f, numbers, COUNT_OF(numbers)), THREADS * 200);
    uint64_t last[THREADS + 1] = {0};
    for (size_t i = 0; i < THREADS * 200; i++) {
        assert_false(seen[numbers[i]]);
        seen[numbers[i]] = true;
        assert_true(numbers[i] > last[numbers[i] / 1000]); /* each thread's own order */
        last[numbers[i] / 1000] = numbers[i];
    }
    struct wal_usage usage = wal_usage(f.wal);
    assert_true(usage.units_written < THREADS * 200); /* they shared syncs */
    fixture_deinit(&f);
}

static void test_wait_sees_progress(void **state)
{
    (void)state;
    struct fixture f;
    uint64_t ticket = 0;
    fixture_init(&f, "wait");
    wal_wait(f.wal, &ticket, 1000);
    assert_true(ticket > 0);
    uint64_t before = ticket;
    wal_wait(f.wal, &ticket, 10);
    assert_int_equal(ticket, before);
    fixture_append(&f, 1, 10);
    wal_wait(f.wal, &ticket, 1000);
    assert_true(ticket > before);
    fixture_deinit(&f);
}

/* Each allocation of an append, a scan and an open fails once: an error, never a lost entry. */
static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    static uint64_t numbers[512];
    struct fixture f;
    struct error err;
    uint64_t stored = 0;
    fixture_init(&f, "alloc");
    for (int64_t n = 0; n < 12; n++) {
        alloc_fail_after(n);
        uint8_t payload[8];
        put_le64(payload, stored + 1);
        struct wal_entry entry = {.type = WAL_DATA,
                                  .table_id = f.table,
                                  .rows = 1,
                                  .payload = span_of(payload, 8),
                                  .payload_crc = crc32c(0, payload, 8)};
        struct wal_submission submission = {
            .entries = &entry, .entry_count = 1, .durability = WAL_SYNCED};
        enum status status = wal_append(f.wal, &submission, &err);
        alloc_fail_after(-1);
        assert_true(status == STATUS_OK || status == STATUS_NO_MEMORY);
        stored += status == STATUS_OK;
    }
    assert_int_equal(fixture_scan(&f, numbers, COUNT_OF(numbers)), stored);
    wal_close(f.wal);
    for (int64_t n = 0; n < 160; n += n < 16 ? 1 : 5) {
        struct wal *wal = NULL;
        alloc_fail_after(n);
        enum status status = wal_open(env_real(), &f.options, &wal, &err);
        alloc_fail_after(-1);
        assert_true(status == STATUS_OK || status == STATUS_NO_MEMORY);
        wal_close(wal);
    }
    fixture_open(&f);
    assert_int_equal(fixture_scan(&f, numbers, COUNT_OF(numbers)), stored);
    fixture_deinit(&f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reopen_gives_back_what_was_written),
        cmocka_unit_test(test_second_process_is_refused),
        cmocka_unit_test(test_tables_and_schemas_last),
        cmocka_unit_test(test_pending_and_acks),
        cmocka_unit_test(test_retention_gives_room_back),
        cmocka_unit_test(test_open_scan_pins),
        cmocka_unit_test(test_fork_changes_identity),
        cmocka_unit_test(test_group_commit_of_many_threads),
        cmocka_unit_test(test_wait_sees_progress),
        cmocka_unit_test(test_every_allocation_may_fail),
        cmocka_unit_test(test_golden_log_opens),
        cmocka_unit_test(test_golden_segment_is_encoded_the_same),
        cmocka_unit_test(test_retry_follows_the_drain),
        cmocka_unit_test(test_format_refuses_what_is_not_it),
        cmocka_unit_test(test_many_threads_copy_ahead),
        cmocka_unit_test(test_readers_beside_a_compaction),
        cmocka_unit_test(test_a_large_segment_is_left_active),
        cmocka_unit_test(test_failed_sync_while_copying_ahead),
        cmocka_unit_test(test_acks_of_consumers_last),
        cmocka_unit_test(test_consumers_are_limited),
        cmocka_unit_test(test_a_hold_keeps_what_is_not_acknowledged),
        cmocka_unit_test(test_a_lease_lapses),
        cmocka_unit_test(test_a_hold_gives_way),
        cmocka_unit_test(test_partition_groups),
        cmocka_unit_test(test_consumers_without_memory),
        cmocka_unit_test(test_eight_receipts_are_kept),
        cmocka_unit_test(test_an_idle_producer_expires),
        cmocka_unit_test(test_nobody_expires_while_the_log_is_closed),
        cmocka_unit_test(test_the_longest_idle_producer_gives_way),
        cmocka_unit_test(test_the_expired_are_bounded),
        cmocka_unit_test(test_producers_without_memory),
        cmocka_unit_test(test_many_groups),
        cmocka_unit_test(test_a_table_is_limited),
        cmocka_unit_test(test_a_group_is_limited),
        cmocka_unit_test(test_a_refused_submission_counts_nothing),
        cmocka_unit_test(test_a_limit_says_when_to_come_back),
    };
    if (argc > 1)
        wal_test_source_dir = argv[1];
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
