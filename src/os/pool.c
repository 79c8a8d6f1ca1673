/* SPDX-License-Identifier: Apache-2.0
 *
 * A list of runs that have jobs left. Whoever has nothing to do takes the next job of the first;
 * the caller of a run takes of its own alone, and then waits for those that others took. A run
 * leaves the list with its last job taken, and its caller with the last one done: it lives on the
 * caller's stack.
 */
#include "os/pool.h"

struct pool_run {
    struct pool_run *next;
    void (*job)(void *job_context, unsigned index);
    void *job_context;
    unsigned count, taken, done;
};

struct pool {
    struct env *env;
    struct env_mutex *mutex; /* guards all below, and the runs */
    struct env_cond *has_jobs, *has_ended;
    struct pool_run *first;
    bool is_ending;
    struct env_thread **threads;
    unsigned thread_count;
};

static void take_off(struct pool *pool, const struct pool_run *run)
{
    struct pool_run **at = &pool->first;
    while (*at != run)
        at = &(*at)->next;
    *at = run->next;
}

/* Under the lock, which it leaves for the job. */
static void work_on(struct pool *pool, struct pool_run *run)
{
    unsigned index = run->taken++;
    if (run->taken == run->count)
        take_off(pool, run);
    env_unlock(pool->mutex);
    run->job(run->job_context, index);
    env_lock(pool->mutex);
    if (++run->done == run->count)
        env_broadcast(pool->has_ended);
}

static void work(void *context)
{
    struct pool *pool = context;
    env_lock(pool->mutex);
    while (!pool->is_ending) {
        if (pool->first)
            work_on(pool, pool->first);
        else
            env_wait(pool->has_jobs, pool->mutex, UINT64_MAX);
    }
    env_unlock(pool->mutex);
}

static void run_jobs(void *context, unsigned count, void (*job)(void *job_context, unsigned index),
                     void *job_context)
{
    struct pool *pool = context;
    struct pool_run run = {.job = job, .job_context = job_context, .count = count};
    if (!count)
        return;
    env_lock(pool->mutex);
    struct pool_run **last = &pool->first;
    while (*last)
        last = &(*last)->next;
    *last = &run;
    if (count > 1)
        env_broadcast(pool->has_jobs);
    while (run.taken < count)
        work_on(pool, &run);
    while (run.done < count)
        env_wait(pool->has_ended, pool->mutex, UINT64_MAX);
    env_unlock(pool->mutex);
}

/* ---- life ---- */

static enum status start(struct pool *pool, unsigned threads, struct error *err)
{
    struct env *env = pool->env;
    pool->mutex = env_mutex_create(env);
    pool->has_jobs = env_cond_create(env);
    pool->has_ended = env_cond_create(env);
    pool->threads = mem_alloc_zero(threads, sizeof(struct env_thread *));
    if (!pool->mutex || !pool->has_jobs || !pool->has_ended || !pool->threads)
        return error_set(err, STATUS_NO_MEMORY, "pool: out of memory");
    while (pool->thread_count + 1 < threads) {
        TRY(env_thread_start(env, "pool", work, pool, &pool->threads[pool->thread_count], err));
        pool->thread_count++;
    }
    return STATUS_OK;
}

enum status pool_create(struct env *env, unsigned threads, struct pool **out_pool,
                        struct error *err)
{
    struct pool *pool = mem_alloc_zero(1, sizeof *pool);
    if (!pool)
        return error_set(err, STATUS_NO_MEMORY, "pool: out of memory");
    pool->env = env;
    enum status status = start(pool, threads, err);
    if (status == STATUS_OK)
        *out_pool = pool;
    else
        pool_destroy(pool);
    return status;
}

void pool_destroy(struct pool *pool)
{
    if (!pool)
        return;
    if (pool->thread_count) {
        env_lock(pool->mutex);
        pool->is_ending = true;
        env_broadcast(pool->has_jobs);
        env_unlock(pool->mutex);
    }
    for (unsigned i = 0; i < pool->thread_count; i++)
        env_thread_join(pool->threads[i]);
    mem_free(pool->threads);
    env_cond_destroy(pool->has_ended);
    env_cond_destroy(pool->has_jobs);
    env_mutex_destroy(pool->mutex);
    mem_free(pool);
}

struct executor pool_executor(struct pool *pool)
{
    return (struct executor){run_jobs, pool, pool->thread_count + 1};
}
