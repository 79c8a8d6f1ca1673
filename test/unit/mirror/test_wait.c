/* SPDX-License-Identifier: Apache-2.0
 *
 * The mirror's own threads, and who waits for them.
 */
#include <stdatomic.h>

#include "mirror_fixture.h"
#include "mirror_tests.h"

struct waited {
    struct mirror_waiter waiter;
    _Atomic int status; /* -1: not yet */
};

static void waited_done(struct mirror_waiter *waiter, enum status status)
{
    atomic_store(&CONTAINER_OF(waiter, struct waited, waiter)->status, (int)status);
}

static void wait_for(struct mirrored *m, struct waited *waited, uint64_t seq)
{
    *waited = (struct waited){.waiter.done = waited_done, .status = -1};
    mirror_wait(m->mirror, &waited->waiter, 0, seq);
}

static int wait_status(struct waited *waited)
{
    for (int i = 0; i < 2000 && atomic_load(&waited->status) < 0; i++)
        env_sleep_ms(env_real(), 5);
    return atomic_load(&waited->status);
}

void test_waiters(void **state)
{
    struct error err;
    struct mirrored m;
    struct waited waited, other;
    (void)state;
    mirrored_init(&m, "mirror");
    mirrored_close(&m);
    m.options.interval_ms = 3600000; /* who waits does not wait for it */
    fixture_open(&m.log);
    mirrored_open(&m);
    assert_ok(mirror_start(m.mirror, &err));
    for (uint64_t i = 0; i < 50; i++) {
        uint64_t seq = fixture_append(&m.log, i, 5000);
        wait_for(&m, &waited, seq);
        assert_int_equal(wait_status(&waited), STATUS_OK);
        assert_true(mirror_confirmed(m.mirror, 0) >= seq);
    }
    uint64_t last = wal_synced_end(m.log.wal, 0).seq;
    wait_for(&m, &waited, last);
    assert_int_equal(atomic_load(&waited.status), STATUS_OK); /* at once */
    wait_for(&m, &waited, last + 100);
    wait_for(&m, &other, last + 100);
    assert_true(mirror_wait_cancel(m.mirror, &other.waiter));
    assert_false(mirror_wait_cancel(m.mirror, &other.waiter));
    assert_int_equal(atomic_load(&waited.status), -1);
    mirror_stop(m.mirror, 1000);
    assert_int_equal(atomic_load(&waited.status), STATUS_CLOSED);
    assert_int_equal(atomic_load(&other.status), -1);
    wait_for(&m, &waited, last + 100);
    assert_int_equal(atomic_load(&waited.status), STATUS_CLOSED);
    mirrored_deinit(&m);
}

/* All of a segment may be in its tables, and the segment gone, between two plans: whoever waits for
 * it to be in the mirror must not be told that it is. */
void test_waiters_of_what_is_gone(void **state)
{
    struct error err;
    struct mirrored m;
    struct waited lost, kept;
    (void)state;
    for (int has_begun = 0; has_begun < 2; has_begun++) {
        mirrored_init(&m, "mirror");
        mirrored_close(&m);
        m.log.options.keep_committed_ms = 0;
        fixture_open(&m.log);
        mirrored_open(&m);
        fixture_append(&m.log, 1, 1000);
        if (has_begun)
            assert_ok(mirror_run_once(m.mirror, &err));
        assert_ok(wal_seal(m.log.wal, &err));
        wait_for(&m, &lost, fixture_append(&m.log, 2, 1000));
        assert_ok(wal_seal(m.log.wal, &err));
        struct wal_ack ack = {.through = wal_synced_end(m.log.wal, 0)};
        ack.committed = ack.through;
        assert_ok(wal_ack_table(m.log.wal, m.log.table, &ack, &err));
        for (int i = 0; i < 400; i++) { /* until neither is there */
            struct wal_usage usage = wal_usage(m.log.wal);
            if (usage.segments_sealed + usage.segments_committed == 0)
                break;
            env_sleep_ms(env_real(), 5);
        }
        wait_for(&m, &kept, fixture_append(&m.log, 3, 1000));
        assert_ok(mirror_run_once(m.mirror, &err));
        assert_int_equal(atomic_load(&kept.status), STATUS_OK);
        assert_int_equal(atomic_load(&lost.status), STATUS_RECLAIMED);
        mirrored_deinit(&m);
    }
}

/* A stop copies what is synced first. */
void test_stop_copies(void **state)
{
    struct error err;
    struct mirrored m;
    (void)state;
    mirrored_init(&m, "mirror");
    mirrored_close(&m);
    m.options.interval_ms = 3600000;
    fixture_open(&m.log);
    mirrored_open(&m);
    assert_ok(mirror_start(m.mirror, &err));
    uint64_t seq = 0;
    for (uint64_t i = 0; i < 100; i++)
        seq = fixture_append(&m.log, i, 2000);
    mirror_stop(m.mirror, 10000);
    assert_true(mirror_confirmed(m.mirror, 0) >= seq);
    mirrored_deinit(&m);
}

/* Refused, those who wait are told so. */
void test_refused_waiters(void **state)
{
    struct error err;
    struct mirrored m;
    struct waited waited;
    char path[400];
    (void)state;
    mirrored_init(&m, "mirror");
    snprintf(path, sizeof path, "%s/head", m.url);
    assert_ok(files_make_dirs(env_real(), m.url, &err));
    assert_ok(files_replace(env_real(), path, "x", 1, &err));
    wait_for(&m, &waited, fixture_append(&m.log, 1, 100));
    assert_ok(mirror_start(m.mirror, &err));
    assert_int_equal(wait_status(&waited), STATUS_HALTED);
    wait_for(&m, &waited, 1);
    assert_int_equal(wait_status(&waited), STATUS_HALTED);
    mirrored_deinit(&m);
}
