/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs on a pool's threads: each once, at once where there are threads, for many callers.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "../unit.h"
#include "os/os.h"

enum { JOBS_MAX = 300 };

struct jobs {
    struct executor executor;
    unsigned rounds;
    unsigned done[JOBS_MAX]; /* each written by its job alone */
};

static struct pool *make_pool(unsigned threads)
{
    struct error err;
    struct pool *pool;
    assert_ok(pool_create(env_real(), threads, &pool, &err));
    return pool;
}

static void do_job(void *context, unsigned index)
{
    struct jobs *jobs = context;
    jobs->done[index]++;
}

/* Runs of 0, 1, 2 ... jobs; what is wrong is counted when a run has returned. */
static void *run_many(void *context)
{
    struct jobs *jobs = context;
    unsigned wrong = 0;
    for (unsigned count = 0; count < jobs->rounds; count++) {
        memset(jobs->done, 0, sizeof jobs->done);
        jobs->executor.run(jobs->executor.context, count, do_job, jobs);
        for (unsigned i = 0; i < JOBS_MAX; i++)
            wrong += jobs->done[i] != (i < count);
    }
    jobs->rounds = wrong;
    return NULL;
}

static void test_each_job_once(void **state)
{
    (void)state;
    for (unsigned threads = 0; threads <= 5; threads++) {
        struct pool *pool = make_pool(threads);
        struct jobs jobs = {.executor = pool_executor(pool), .rounds = JOBS_MAX};
        assert_int_equal(jobs.executor.threads, threads ? threads : 1);
        run_many(&jobs);
        assert_int_equal(jobs.rounds, 0);
        pool_destroy(pool);
    }
    pool_destroy(NULL);
}

static void test_callers_share(void **state)
{
    (void)state;
    enum { CALLERS = 4 };
    static struct jobs jobs[CALLERS];
    pthread_t threads[CALLERS];
    struct pool *pool = make_pool(3);
    for (int i = 0; i < CALLERS; i++) {
        jobs[i] = (struct jobs){.executor = pool_executor(pool), .rounds = JOBS_MAX};
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, &jobs[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(jobs[i].rounds, 0);
    }
    pool_destroy(pool);
}

/* Each job waits until all of them run: with too few threads this would never end. */
static void meet(void *context, unsigned index)
{
    pthread_barrier_t *barrier = context;
    (void)index;
    pthread_barrier_wait(barrier);
}

static void test_jobs_run_at_once(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_barrier_t barrier;
    struct pool *pool = make_pool(THREADS);
    struct executor executor = pool_executor(pool);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int round = 0; round < 100; round++)
        executor.run(executor.context, THREADS, meet, &barrier);
    pthread_barrier_destroy(&barrier);
    pool_destroy(pool);
}

struct late {
    pthread_barrier_t barrier;
    pthread_t caller;
    atomic_bool is_done;
};

/* Both threads have a job; that of the other ends long after the caller's. */
static void be_late(void *context, unsigned index)
{
    struct late *late = context;
    const struct timespec pause = {.tv_nsec = 3000000};
    (void)index;
    pthread_barrier_wait(&late->barrier);
    if (pthread_equal(late->caller, pthread_self()))
        return;
    nanosleep(&pause, NULL);
    atomic_store(&late->is_done, true);
}

static void test_a_run_waits_for_its_jobs(void **state)
{
    (void)state;
    struct late late = {.caller = pthread_self()};
    struct pool *pool = make_pool(2);
    struct executor executor = pool_executor(pool);
    pthread_barrier_init(&late.barrier, NULL, 2);
    for (int round = 0; round < 10; round++) {
        atomic_store(&late.is_done, false);
        executor.run(executor.context, 2, be_late, &late);
        assert_true(atomic_load(&late.is_done));
    }
    pthread_barrier_destroy(&late.barrier);
    pool_destroy(pool);
}

static void test_no_memory_for_a_pool(void **state)
{
    (void)state;
    struct error err;
    struct pool *pool = NULL;
    for (int64_t n = 0; !pool; n++) {
        assert_true(n < 100);
        alloc_fail_after(n);
        enum status status = pool_create(env_real(), 3, &pool, &err);
        alloc_fail_after(-1);
        assert_true(status == (pool ? STATUS_OK : STATUS_NO_MEMORY));
    }
    pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_job_once),
        cmocka_unit_test(test_callers_share),
        cmocka_unit_test(test_jobs_run_at_once),
        cmocka_unit_test(test_a_run_waits_for_its_jobs),
        cmocka_unit_test(test_no_memory_for_a_pool),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
