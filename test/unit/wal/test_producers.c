/* SPDX-License-Identifier: Apache-2.0
 *
 * Idempotent producers (L28-L30): receipts over restarts and reclaimed segments, and how producers
 * expire.
 */
#include "wal_fixture.h"
#include "wal_tests.h"

struct asked {
    enum wal_producer_verdict verdict;
    struct wal_receipt receipts[16];
    uint32_t count;
    uint64_t expected;
};

static struct hash128 hash_of(uint64_t sequence)
{
    return (struct hash128){.low = sequence, .high = ~sequence};
}

static struct asked ask(struct fixture *f, const char *id, uint64_t sequence, struct hash128 hash)
{
    struct asked asked = {0};
    asked.verdict = wal_producer_begin(f->wal, span_of_text(id), sequence, hash, asked.receipts,
                                       &asked.count, &asked.expected);
    return asked;
}

static enum wal_producer_verdict verdict_of(struct fixture *f, const char *id, uint64_t sequence)
{
    struct asked asked = ask(f, id, sequence, hash_of(sequence));
    if (asked.verdict == WAL_PRODUCER_NEW)
        wal_producer_abandon(f->wal, span_of_text(id), sequence);
    return asked.verdict;
}

/* A request with rows for `tables` tables; none: all of its items were rejected. */
static void store(struct fixture *f, const char *id, uint64_t sequence, uint32_t tables)
{
    struct error err;
    uint8_t payload[8] = {1};
    struct wal_entry entries[4];
    struct wal_contribution contribution = {.rows = tables > 0,
                                            .rejected = (uint32_t)sequence,
                                            .body_hash = hash_of(sequence),
                                            .producer = id,
                                            .producer_length = (uint8_t)strlen(id),
                                            .producer_sequence = sequence};
    for (uint32_t i = 0; i < tables; i++) {
        char name[16];
        snprintf(name, sizeof name, "otel.t%u", i);
        entries[i] = (struct wal_entry){.type = WAL_DATA,
                                        .rows = 1,
                                        .contributions = &contribution,
                                        .contribution_count = 1,
                                        .payload = span_of(payload, sizeof payload),
                                        .payload_crc = crc32c(0, payload, sizeof payload)};
        assert_ok(wal_table_open(f->wal, name, &entries[i].table_id, &err));
    }
    if (tables == 0)
        entries[0] = (struct wal_entry){
            .type = WAL_PRODUCERS, .contributions = &contribution, .contribution_count = 1};
    struct wal_submission submission = {
        .entries = entries, .entry_count = tables ? tables : 1, .durability = WAL_SYNCED};
    assert_int_equal(ask(f, id, sequence, hash_of(sequence)).verdict, WAL_PRODUCER_NEW);
    assert_ok(wal_append(f->wal, &submission, &err));
}

/* Every segment that holds something of a producer goes. */
static void reclaim_all(struct fixture *f)
{
    struct error err;
    uint64_t end = wal_synced_end(f->wal, 0).seq;
    struct wal_ack ack = {.through = wal_synced_end(f->wal, 0)};
    ack.committed = ack.through;
    assert_ok(wal_seal(f->wal, &err));
    for (uint32_t table = 1; table <= wal_table_count(f->wal); table++)
        assert_ok(wal_ack_table(f->wal, table, &ack, &err));
    for (int i = 0; i < 500 && wal_reclaimed_through(f->wal, 0, 0) < end; i++)
        env_sleep_ms(env_real(), 10);
    assert_true(wal_reclaimed_through(f->wal, 0, 0) >= end);
}

static void reopen(struct fixture *f)
{
    wal_close(f->wal);
    fixture_open(f);
}

static void start(struct fixture *f, const char *name, uint64_t keep_ms, uint32_t most)
{
    fixture_init(f, name);
    f->options.keep_committed_ms = 0;
    f->options.keep_producers_ms = keep_ms;
    f->options.producers_max = most;
    reopen(f);
}

static void receipts_check(struct fixture *f, uint64_t last)
{
    for (uint64_t sequence = 1; sequence <= last; sequence++) {
        struct asked asked = ask(f, "p", sequence, hash_of(sequence));
        uint32_t tables = (uint32_t)(sequence % 4);
        if (last - sequence >= 8) {
            assert_int_equal(asked.verdict, WAL_PRODUCER_OLD);
            continue;
        }
        assert_int_equal(asked.verdict, WAL_PRODUCER_REPEAT);
        assert_int_equal(asked.count, tables ? tables : 1);
        for (uint32_t i = 0; i < asked.count; i++) {
            assert_int_equal(asked.receipts[i].rejected, sequence);
            assert_int_equal(asked.receipts[i].rows, tables > 0);
            assert_int_equal(asked.receipts[i].seq, asked.receipts[0].seq + i);
        }
        assert_int_equal(ask(f, "p", sequence, hash_of(99)).verdict, WAL_PRODUCER_MISMATCH);
    }
    struct asked gap = ask(f, "p", last + 2, hash_of(last + 2));
    assert_int_equal(gap.verdict, WAL_PRODUCER_GAP);
    assert_int_equal(gap.expected, last + 1);
}

/* The last eight, with as many receipts as the request had tables, whatever became of the files. */
void test_eight_receipts_are_kept(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, "receipts", 3600000, 100);
    for (uint64_t sequence = 1; sequence <= 21; sequence++) {
        store(&f, "p", sequence, (uint32_t)(sequence % 4));
        receipts_check(&f, sequence);
        if (sequence % 5 == 0)
            reopen(&f);
    }
    reclaim_all(&f);
    receipts_check(&f, 21);
    reopen(&f);
    reclaim_all(&f);
    reopen(&f);
    receipts_check(&f, 21);
    store(&f, "p", 22, 1);
    fixture_deinit(&f);
}

void test_an_idle_producer_expires(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, "expiry", 1200, 100);
    store(&f, "idle", 1, 2);
    store(&f, "idle", 2, 0);
    store(&f, "busy", 1, 1);
    assert_int_equal(verdict_of(&f, "idle", 2), WAL_PRODUCER_REPEAT);
    int64_t began_ns = env_mono_ns(env_real());
    for (int i = 0; i < 500 && wal_usage(f.wal).producers_expired == 0; i++) {
        env_sleep_ms(env_real(), 10);
        assert_int_equal(verdict_of(&f, "busy", 1), WAL_PRODUCER_REPEAT);
    }
    assert_in_range(env_mono_ns(env_real()) - began_ns, 1100000000, 4000000000);
    for (int turn = 0; turn < 3; turn++) {
        for (uint64_t sequence = 1; sequence <= 4; sequence++) {
            struct asked asked = ask(&f, "idle", sequence, hash_of(sequence));
            assert_int_equal(asked.verdict, WAL_PRODUCER_EXPIRED);
            assert_int_equal(asked.expected, 3);
        }
        struct wal_usage usage = wal_usage(f.wal);
        assert_int_equal(usage.producers, 1);
        assert_int_equal(usage.producers_remembered, 1);
        if (turn == 1)
            reclaim_all(&f);
        reopen(&f);
        assert_int_equal(verdict_of(&f, "busy", 1), WAL_PRODUCER_REPEAT);
    }
    fixture_deinit(&f);
}

/* The time in which the log is closed does not count. */
void test_nobody_expires_while_the_log_is_closed(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, "closed", 1000, 100);
    store(&f, "p", 1, 1);
    for (int i = 0; i < 3; i++) {
        wal_close(f.wal);
        env_sleep_ms(env_real(), 500);
        fixture_open(&f);
        assert_int_equal(verdict_of(&f, "p", 1), WAL_PRODUCER_REPEAT);
    }
    fixture_deinit(&f);
}

void test_the_longest_idle_producer_gives_way(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, "full", 700, 2);
    store(&f, "a", 1, 1);
    store(&f, "b", 1, 1);
    assert_int_equal(verdict_of(&f, "c", 1), WAL_PRODUCER_FULL);
    env_sleep_ms(env_real(), 400);
    assert_int_equal(verdict_of(&f, "b", 1), WAL_PRODUCER_REPEAT);
    env_sleep_ms(env_real(), 400);
    store(&f, "c", 1, 1); /* whether or not the keeper has come by */
    assert_int_equal(verdict_of(&f, "a", 2), WAL_PRODUCER_EXPIRED);
    assert_int_equal(verdict_of(&f, "b", 1), WAL_PRODUCER_REPEAT);
    assert_int_equal(verdict_of(&f, "d", 1), WAL_PRODUCER_FULL);
    fixture_deinit(&f);
}

/* Four times as many expired ones are remembered as there may be producers. */
void test_the_expired_are_bounded(void **state)
{
    (void)state;
    enum { MOST = 25, REMEMBERED = 4 * MOST, ALL = 8 * MOST };
    struct fixture f;
    char id[16];
    start(&f, "bounded", 100, MOST);
    for (int i = 0; i < ALL; i++) {
        snprintf(id, sizeof id, "p%d", i);
        for (int k = 0; k < 500 && verdict_of(&f, id, 1) == WAL_PRODUCER_FULL; k++)
            env_sleep_ms(env_real(), 5);
        store(&f, id, 1, 1);
    }
    for (int i = 0; i < 500 && wal_usage(f.wal).producers > 0; i++)
        env_sleep_ms(env_real(), 10);
    for (int turn = 0; turn < 2; turn++) {
        assert_int_equal(wal_usage(f.wal).producers_remembered, REMEMBERED);
        for (int i = 0; i < ALL; i++) {
            snprintf(id, sizeof id, "p%d", i);
            assert_int_equal(verdict_of(&f, id, 1),
                             i < ALL - REMEMBERED ? WAL_PRODUCER_NEW : WAL_PRODUCER_EXPIRED);
        }
        reopen(&f);
    }
    fixture_deinit(&f);
}

void test_producers_without_memory(void **state)
{
    (void)state;
    struct fixture f;
    char id[16];
    int64_t refused = 0;
    start(&f, "no-memory", 60000, 1000);
    for (int i = 0; i < 200; i++) {
        snprintf(id, sizeof id, "p%d", i);
        alloc_fail_after(i % 3);
        enum wal_producer_verdict verdict = verdict_of(&f, id, 1);
        alloc_fail_after(-1);
        assert_true(verdict == WAL_PRODUCER_NEW || verdict == WAL_PRODUCER_FULL);
        refused += verdict == WAL_PRODUCER_FULL;
        store(&f, id, 1, 1);
    }
    assert_true(refused > 0);
    assert_int_equal(wal_usage(f.wal).producers, 200);
    fixture_deinit(&f);
}
