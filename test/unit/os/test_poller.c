/* SPDX-License-Identifier: Apache-2.0
 *
 * A poller looks for events before it sleeps once they come close to each other, and stops when
 * they do not.
 */
#include <time.h>

#include "os/os.h"
#include "../unit.h"

enum { BUSY_US = 10000, QUICK_WAITS = 40, LONG_WAITS = 6 };

static struct os_poller *poller;

static int64_t clock_us(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Processor time of waits of 20 ms in which nothing happens. */
static int64_t idle_us(int waits)
{
    struct os_event event;
    int64_t before = clock_us(CLOCK_THREAD_CPUTIME_ID), began = clock_us(CLOCK_MONOTONIC);
    for (int i = 0; i < waits; i++)
        assert_int_equal(os_poller_wait(poller, 20, &event, 1), 0);
    assert_true(clock_us(CLOCK_MONOTONIC) - began >= waits * (int64_t)20000);
    return clock_us(CLOCK_THREAD_CPUTIME_ID) - before;
}

static void quick_events(void)
{
    struct os_event event;
    for (int i = 0; i < QUICK_WAITS; i++) {
        os_poller_wake(poller);
        assert_int_equal(os_poller_wait(poller, 1000, &event, 1), 0);
    }
}

static void test_it_looks_while_events_come_close(void **state)
{
    (void)state;
    struct error err;
    assert_ok(os_poller_create(&poller, &err));
    quick_events();
    int64_t asleep = idle_us(1);
    for (int i = 0; i < 4; i++) {
        int64_t other = idle_us(1);
        asleep = other < asleep ? other : asleep;
    }
    os_poller_busy_poll(poller, BUSY_US);
    assert_true(idle_us(1) < asleep + BUSY_US / 10); /* nothing came close yet */
    quick_events();
    int64_t looking = idle_us(1);
    for (int i = 0; i < 50 && looking < asleep + BUSY_US / 10;
         i++) { /* it gives way to whoever else runs */
        quick_events();
        looking = idle_us(1);
    }
    assert_true(looking >= asleep + BUSY_US / 10);
    idle_us(LONG_WAITS);
    assert_true(idle_us(1) < asleep + BUSY_US / 10); /* and nothing does any more */
    os_poller_destroy(poller);
}

static void later_main(void *context)
{
    env_sleep_ms(env_real(), 2);
    os_poller_wake(context);
}

static void test_an_event_ends_the_look(void **state)
{
    (void)state;
    struct error err;
    struct os_event event;
    assert_ok(os_poller_create(&poller, &err));
    os_poller_busy_poll(poller, BUSY_US);
    quick_events();
    for (int i = 0; i < 20; i++) {
        struct env_thread *thread;
        assert_ok(env_thread_start(env_real(), "later", later_main, poller, &thread, &err));
        int64_t began = clock_us(CLOCK_MONOTONIC);
        assert_int_equal(os_poller_wait(poller, 60000, &event, 1), 0);
        assert_true(clock_us(CLOCK_MONOTONIC) - began < 30000000);
        env_thread_join(thread);
    }
    os_poller_destroy(poller);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_looks_while_events_come_close),
        cmocka_unit_test(test_an_event_ends_the_look),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
