/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits of single tables and groups: what counts, who is refused, and for how long.
 */
#include "wal_fixture.h"
#include "wal_tests.h"

enum { LIMIT = 20000, ENTRY = 3000 };

static uint64_t table_bytes(struct fixture *f, uint32_t table)
{
    return wal_table_backlog(f->wal, table).bytes;
}

static enum status append(struct fixture *f, uint32_t group, uint32_t table, size_t bytes,
                          bool is_admitted, struct error *err)
{
    static uint8_t payload[LIMIT * 4];
    assert_true(bytes <= sizeof payload);
    struct wal_contribution contribution = {.rows = 1};
    struct wal_entry entry = {.type = WAL_DATA,
                              .group = group,
                              .table_id = table,
                              .rows = 1,
                              .contributions = &contribution,
                              .contribution_count = 1,
                              .payload = span_of(payload, bytes),
                              .payload_crc = crc32c(0, payload, bytes)};
    struct wal_submission submission = {
        .entries = &entry, .entry_count = 1, .durability = WAL_SYNCED, .is_admitted = is_admitted};
    return wal_append(f->wal, &submission, err);
}

static void acknowledge(struct fixture *f, uint32_t table, uint32_t groups)
{
    struct wal_ack acks[2];
    struct error err;
    for (uint32_t g = 0; g < groups; g++) {
        acks[g].through = wal_synced_end(f->wal, g);
        acks[g].committed = acks[g].through;
    }
    assert_ok(wal_ack_table(f->wal, table, acks, &err));
}

static void reopen(struct fixture *f)
{
    wal_close(f->wal);
    fixture_open(f);
}

void test_a_table_is_limited(void **state)
{
    (void)state;
    struct fixture f;
    struct error err;
    uint32_t other;
    uint64_t retry_ms = 0;
    fixture_init(&f, "limits");
    f.options.table_bytes_max = LIMIT;
    reopen(&f);
    assert_ok(wal_table_open(f.wal, "otel.spans", &other, &err));
    for (int i = 0; i < LIMIT / ENTRY; i++)
        assert_ok(append(&f, 0, f.table, ENTRY, false, &err));
    assert_status(STATUS_NO_SPACE, append(&f, 0, f.table, ENTRY, false, &err));
    assert_non_null(strstr(err.message, "otel.logs has 18000 bytes that are not published yet, "
                                        "its limit is 20000"));
    assert_status(STATUS_NO_SPACE, wal_admit_rows(f.wal, 0, f.table, ENTRY, &retry_ms, &err));
    assert_int_equal(retry_ms, 1000); /* nobody knows yet */
    assert_int_equal(table_bytes(&f, f.table), LIMIT / ENTRY * ENTRY);
    assert_int_equal(wal_table_backlog(f.wal, f.table).refused, 2);
    assert_ok(append(&f, 0, f.table, LIMIT % ENTRY, false, &err)); /* to the last byte */
    assert_ok(append(&f, 0, other, LIMIT, false, &err));           /* nobody else's concern */
    assert_ok(append(&f, 0, f.table, 1, true, &err));              /* asked before */
    assert_int_equal(table_bytes(&f, f.table), LIMIT + 1);
    reopen(&f);
    assert_int_equal(table_bytes(&f, f.table), LIMIT + 1);
    assert_status(STATUS_NO_SPACE, append(&f, 0, f.table, 1, false, &err));
    acknowledge(&f, f.table, 1);
    assert_int_equal(table_bytes(&f, f.table), 0);
    assert_int_equal(table_bytes(&f, other), LIMIT);
    assert_ok(append(&f, 0, f.table, 2 * LIMIT, false, &err)); /* nothing in front of it */
    assert_status(STATUS_NO_SPACE, append(&f, 0, f.table, 1, false, &err));
    wal_table_limit(f.wal, f.table, 3 * LIMIT);
    assert_ok(append(&f, 0, f.table, LIMIT, false, &err));
    assert_status(STATUS_NO_SPACE, append(&f, 0, f.table, 1, false, &err));
    wal_table_limit(f.wal, f.table, 0);
    assert_ok(append(&f, 0, f.table, LIMIT, false, &err));
    assert_int_equal(wal_table_backlog(f.wal, other).limit, LIMIT);
    fixture_deinit(&f);
}

void test_a_group_is_limited(void **state)
{
    (void)state;
    struct fixture f;
    struct error err;
    uint32_t other;
    fixture_init(&f, "group-limits");
    wal_close(f.wal);
    fixture_remove_tree(f.dir);
    f.options.group_count = 2;
    f.options.group_bytes_max = LIMIT;
    fixture_open(&f);
    assert_ok(wal_table_open(f.wal, "otel.spans", &other, &err));
    assert_ok(append(&f, 1, f.table, LIMIT / 2, false, &err));
    assert_ok(append(&f, 1, other, LIMIT / 2, false, &err));
    assert_status(STATUS_NO_SPACE, append(&f, 1, other, 1, false, &err));
    assert_non_null(strstr(err.message, "group 1 has 20000 bytes"));
    assert_int_equal(wal_group_backlog(f.wal, 1).refused, 1);
    assert_ok(append(&f, 0, other, LIMIT, false, &err));
    acknowledge(&f, f.table, 2);
    assert_int_equal(wal_group_backlog(f.wal, 1).bytes, LIMIT / 2);
    assert_ok(append(&f, 1, other, LIMIT / 2, false, &err));
    reopen(&f);
    assert_int_equal(wal_group_backlog(f.wal, 0).bytes, LIMIT);
    assert_int_equal(wal_group_backlog(f.wal, 1).bytes, LIMIT);
    acknowledge(&f, other, 2);
    assert_int_equal(wal_group_backlog(f.wal, 0).bytes, 0);
    assert_int_equal(wal_group_backlog(f.wal, 1).bytes, 0);
    fixture_deinit(&f);
}

/* One entry too much refuses all of its submission, and nothing of it counts. */
void test_a_refused_submission_counts_nothing(void **state)
{
    (void)state;
    static uint8_t payload[LIMIT];
    struct fixture f;
    struct error err;
    uint32_t other;
    fixture_init(&f, "limits-whole");
    assert_ok(wal_table_open(f.wal, "otel.spans", &other, &err));
    wal_table_limit(f.wal, f.table, LIMIT);
    struct wal_contribution contribution = {.rows = 1};
    struct wal_entry entries[3];
    for (int i = 0; i < 3; i++)
        entries[i] = (struct wal_entry){.type = WAL_DATA,
                                        .table_id = i ? f.table : other,
                                        .rows = 1,
                                        .contributions = &contribution,
                                        .contribution_count = 1,
                                        .payload = span_of(payload, LIMIT * 2 / 3),
                                        .payload_crc = crc32c(0, payload, LIMIT * 2 / 3)};
    struct wal_submission submission = {
        .entries = entries, .entry_count = 3, .durability = WAL_SYNCED};
    assert_status(STATUS_NO_SPACE, wal_append(f.wal, &submission, &err));
    assert_int_equal(table_bytes(&f, f.table), 0);
    assert_int_equal(table_bytes(&f, other), 0);
    assert_int_equal(wal_group_backlog(f.wal, 0).bytes, 0);
    submission.entry_count = 2;
    assert_ok(wal_append(f.wal, &submission, &err));
    assert_int_equal(table_bytes(&f, f.table), LIMIT * 2 / 3);
    fixture_deinit(&f);
}

/* Who is refused is told how long the table's own publication takes for what is in his way. */
void test_a_limit_says_when_to_come_back(void **state)
{
    (void)state;
    struct fixture f;
    struct error err;
    uint64_t retry_ms = 0;
    fixture_init(&f, "limits-retry");
    wal_table_limit(f.wal, f.table, LIMIT);
    assert_ok(append(&f, 0, f.table, LIMIT, false, &err));
    env_sleep_ms(env_real(), 1100);
    acknowledge(&f, f.table, 1); /* 20,000 bytes in 1.1 seconds and a little */
    assert_ok(append(&f, 0, f.table, LIMIT, false, &err));
    assert_status(STATUS_NO_SPACE, wal_admit_rows(f.wal, 0, f.table, 2 * LIMIT, &retry_ms, &err));
    assert_in_range(retry_ms, 2150, 6000);
    assert_in_range(wal_drain_ms(f.wal, f.table, LIMIT), 1050, 3000);
    /* While it has nothing, its acks move on with others' rows; that does not make it slow. */
    uint32_t other;
    assert_ok(wal_table_open(f.wal, "otel.spans", &other, &err));
    acknowledge(&f, f.table, 1);
    uint64_t before_ms = wal_drain_ms(f.wal, f.table, LIMIT);
    for (int i = 0; i < 3; i++) {
        assert_ok(append(&f, 0, other, 1, false, &err));
        env_sleep_ms(env_real(), 1100);
        acknowledge(&f, f.table, 1);
    }
    assert_ok(append(&f, 0, f.table, LIMIT, false, &err));
    assert_in_range(wal_drain_ms(f.wal, f.table, LIMIT), 1, 2 * before_ms);
    fixture_deinit(&f);
}
