/* SPDX-License-Identifier: Apache-2.0
 *
 * Group commit: clients that wait for their answer come to share one write, those that send at
 * their own pace are never kept waiting.
 */
#include "base/base.h"
#include "flow/ingest/gather.h"
#include "../unit.h"

enum { WRITE_US = 200, TURN_US = 5, CLIENTS_MAX = 64 };

/* A server that does one thing at a time beside its disk. */
struct world {
    struct gather gather;
    int64_t now_us, arrives_us[CLIENTS_MAX]; /* when each client's next request is there */
    int64_t answered_us[CLIENTS_MAX];
    bool is_waiting[CLIENTS_MAX], is_writing[CLIENTS_MAX];
    uint32_t clients, waiting;
    int64_t writes, written, held_us;
};

static void receive(struct world *world)
{
    for (uint32_t i = 0; i < world->clients; i++) {
        if (world->is_waiting[i] || world->is_writing[i] || world->arrives_us[i] > world->now_us)
            continue;
        world->is_waiting[i] = true;
        world->waiting++;
        gather_came(&world->gather, (world->now_us - world->answered_us[i]) * 1000);
    }
}

/* Takes requests until they are worth a write. */
static void gather_requests(struct world *world)
{
    for (;; world->now_us++) {
        receive(world);
        if (world->waiting == 0)
            continue;
        if (!gather_until(&world->gather, world->now_us * 1000, world->waiting))
            return;
        world->held_us++;
    }
}

static void write_all(struct world *world)
{
    int64_t began_us = world->now_us;
    for (uint32_t i = 0; i < world->clients; i++) {
        world->is_writing[i] = world->is_waiting[i];
        world->is_waiting[i] = false;
    }
    uint32_t written = world->waiting;
    world->waiting = 0;
    for (; world->now_us < began_us + WRITE_US; world->now_us++)
        receive(world);
    gather_wrote(&world->gather, world->now_us * 1000, WRITE_US * 1000, written, world->waiting);
    world->writes++;
    world->written += written;
}

/* `pause_us`: before a client that was answered asks again; those beyond `at_once` take longer. */
static void run(struct world *world, uint32_t clients, uint32_t at_once, int64_t pause_us,
                int writes)
{
    world->clients = clients;
    for (uint32_t i = 0; i < clients; i++)
        world->arrives_us[i] = i % 2 ? WRITE_US / 2 : 0; /* they begin by taking turns */
    for (int w = 0; w < writes; w++) {
        gather_requests(world);
        write_all(world);
        int64_t next_us = world->now_us;
        for (uint32_t i = 0; i < clients; i++) {
            if (!world->is_writing[i])
                continue;
            world->is_writing[i] = false;
            next_us += TURN_US;
            world->answered_us[i] = world->now_us;
            world->arrives_us[i] = next_us + (i < at_once ? 0 : pause_us);
        }
    }
}

static void test_clients_that_wait_share_a_write(void **state)
{
    (void)state;
    static const uint32_t counts[] = {1, 2, 4, 16, 32};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        struct world world = {0};
        run(&world, counts[i], counts[i], 0, 100);
        int64_t before = world.written;
        run(&world, counts[i], counts[i], 0, 100);
        assert_true(world.written - before >= 98 * (int64_t)counts[i]);
    }
}

/* One that went away, or does something else first, is not waited for every time. */
static void test_one_that_does_not_come_back(void **state)
{
    (void)state;
    struct world world = {0};
    run(&world, 16, 15, 100 * WRITE_US, 400);
    int64_t held_us = world.held_us, written = world.written;
    run(&world, 16, 15, 100 * WRITE_US, 400);
    assert_true(world.written - written >= 395 * 15);
    assert_true(world.held_us - held_us <= 400 * (15 * TURN_US + 30));
}

static void test_nobody_waits_for_those_who_take_their_time(void **state)
{
    (void)state;
    static const int64_t pauses_us[] = {3 * WRITE_US, 50 * WRITE_US};
    for (size_t i = 0; i < COUNT_OF(pauses_us); i++) {
        struct world world = {0};
        run(&world, 8, 0, pauses_us[i], 300);
        assert_true(world.held_us <= 2 * WRITE_US); /* of 60 ms */
    }
}

/* They stop coming back at once: it is noticed within some writes, and each of those waits no
 * longer than a write takes. */
static void test_it_is_unlearnt(void **state)
{
    (void)state;
    struct world world = {0};
    run(&world, 16, 16, 0, 200);
    int64_t held_us = world.held_us;
    run(&world, 16, 0, 10 * WRITE_US, 50);
    assert_true(world.held_us - held_us <= 12 * WRITE_US);
    held_us = world.held_us;
    run(&world, 16, 0, 10 * WRITE_US, 50);
    assert_true(world.held_us == held_us);
}

/* A write that takes ten seconds says nothing of clients, and one of them is gone meanwhile. */
static void test_a_write_that_takes_for_ever(void **state)
{
    (void)state;
    struct gather gather = {0};
    int64_t now_ns = 0;
    for (int i = 0; i < 200; i++)
        gather_came(&gather, i < 2 ? INT64_MAX : 1000);
    for (int i = 0; i < 200; i++) {
        now_ns += WRITE_US * 1000;
        gather_wrote(&gather, now_ns, WRITE_US * 1000, 16, 0);
        for (int k = 0; k < 16; k++)
            gather_came(&gather, 10000);
    }
    assert_true(gather_until(&gather, now_ns, 1) > now_ns);
    now_ns += INT64_C(10000000000);
    gather_wrote(&gather, now_ns, INT64_C(10000000000), 16, 0);
    int64_t until_ns = gather_until(&gather, now_ns, 1);
    assert_true(until_ns > now_ns && until_ns <= now_ns + 2 * 1000 * 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clients_that_wait_share_a_write),
        cmocka_unit_test(test_one_that_does_not_come_back),
        cmocka_unit_test(test_nobody_waits_for_those_who_take_their_time),
        cmocka_unit_test(test_it_is_unlearnt),
        cmocka_unit_test(test_a_write_that_takes_for_ever),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
