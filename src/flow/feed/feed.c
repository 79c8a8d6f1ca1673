/* SPDX-License-Identifier: Apache-2.0
 *
 * The log port's life: its routes, its workers' states, the thread that wakes long polls
 */
#include <stdio.h>

#include "flow/feed/feed_internal.h"

/* How often long polls are looked at: at most, while the log moves; at least, for their ends. */
enum { LOOK_MS_LEAST = 5, LOOK_MS_MOST = 100 };

/* ---- long polls ---- */

static void look_task(struct http_task *task)
{
    struct feed_worker *worker = CONTAINER_OF(task, struct feed_worker, task);
    atomic_store(&worker->is_posted, false);
    rows_look(worker);
}

static void post_all(struct feed *feed)
{
    for (size_t i = 0; i < FEED_WORKERS; i++) {
        struct feed_worker *worker = &feed->workers[i];
        if (worker->http && !atomic_exchange(&worker->is_posted, true))
            http_worker_post(worker->http, &worker->task);
    }
}

static void feed_main(void *context)
{
    struct feed *feed = context;
    uint64_t ticket = 0;
    for (;;) {
        env_lock(feed->lock);
        while (feed->waiting == 0 && !feed->is_ending)
            env_wait(feed->work, feed->lock, UINT64_MAX);
        bool is_ending = feed->is_ending;
        env_unlock(feed->lock);
        if (is_ending)
            return;
        wal_wait(feed->wal, &ticket, LOOK_MS_MOST);
        post_all(feed);
        env_sleep_ms(feed->env, LOOK_MS_LEAST);
    }
}

static void *worker_start(void *context, struct http_worker *http, unsigned index)
{
    struct feed *feed = context;
    struct feed_worker *worker = &feed->workers[index];
    worker->feed = feed;
    worker->task.run = look_task;
    worker->http = http;
    return worker;
}

/* Who began to wait while the feed was being stopped. */
static void worker_round(void *context, struct http_worker *http)
{
    struct feed *feed = context;
    struct feed_worker *worker = http_worker_state(http);
    if (worker->waiting && atomic_load(&feed->is_stopping))
        rows_look(worker);
}

/* ---- life ---- */

static void refuse_head(void *context, struct http_exchange *exchange, int code, const char *why)
{
    refuse(context, exchange, code,
           code == 503   ? "ERR_EXPORT_UNAVAILABLE"
           : code == 405 ? "ERR_EXPORT_NO_PAGE"
                         : "ERR_EXPORT_BAD_REQUEST",
           "%s", why);
}

static void set_routes(struct feed *feed)
{
    static const struct {
        enum http_method method;
        const char *path;
        http_run_fn run;
    } routes[FEED_ROUTES] = {
        {HTTP_GET, "/v1/log", handle_log},
        {HTTP_GET, "/v1/log/*", handle_below_log},
        {HTTP_GET, "/v1/consumers", handle_consumers},
        {HTTP_GET, "/v1/consumers/*", handle_consumer},
        {HTTP_PUT, "/v1/consumers/*", handle_consumer_put},
        {HTTP_POST, "/v1/consumers/*", handle_consumer_post},
        {HTTP_DELETE, "/v1/consumers/*", handle_consumer_delete},
        {HTTP_POST, "/v1/publication/*", handle_publication},
    };
    for (size_t i = 0; i < FEED_ROUTES; i++)
        feed->routes[i] = (struct http_route){.method = routes[i].method,
                                              .path = routes[i].path,
                                              .run = routes[i].run,
                                              .refuse = refuse_head,
                                              .context = feed};
}

enum status feed_create(struct env *env, struct wal *wal, const struct feed_options *options,
                        struct feed **out_feed, struct error *err)
{
    struct feed *feed = mem_alloc_zero(1, sizeof *feed);
    if (!feed)
        return error_set(err, STATUS_NO_MEMORY, "log port: out of memory");
    feed->env = env;
    feed->wal = wal;
    if (options)
        feed->options = *options;
    env_random(env, &feed->start, sizeof feed->start);
    feed->started = mem_alloc_zero(wal_group_count(wal), sizeof *feed->started);
    for (uint32_t group = 0; feed->started && group < wal_group_count(wal); group++)
        feed->started[group] = wal_synced_end(wal, group);
    feed->lock = env_mutex_create(env);
    feed->work = env_cond_create(env);
    set_routes(feed);
    enum status status = feed->lock && feed->work && feed->started
                             ? env_thread_start(env, "feed", feed_main, feed, &feed->thread, err)
                             : error_set(err, STATUS_NO_MEMORY, "log port: out of memory");
    if (status != STATUS_OK) {
        feed_destroy(feed);
        return status;
    }
    *out_feed = feed;
    return STATUS_OK;
}

void feed_attach(struct feed *feed, struct http_options *inout_options)
{
    inout_options->worker_count = FEED_WORKERS;
    inout_options->body_bytes_max = FEED_BODY_BYTES_MAX;
    inout_options->body_budget_bytes = (uint64_t)FEED_BODY_BYTES_MAX * 256;
    inout_options->routes = feed->routes;
    inout_options->route_count = FEED_ROUTES;
    inout_options->worker_start = worker_start;
    inout_options->worker_round = worker_round;
    inout_options->context = feed;
}

/* The thread posts to workers, which are gone before the feed is. */
static void thread_end(struct feed *feed)
{
    if (!feed->thread)
        return;
    env_lock(feed->lock);
    feed->is_ending = true;
    env_signal(feed->work);
    env_unlock(feed->lock);
    env_thread_join(feed->thread);
    feed->thread = NULL;
}

void feed_stop(struct feed *feed)
{
    atomic_store(&feed->is_stopping, true);
    thread_end(feed);
    post_all(feed);
}

void feed_destroy(struct feed *feed)
{
    if (!feed)
        return;
    thread_end(feed);
    for (size_t i = 0; i < FEED_WORKERS; i++)
        rows_forget(&feed->workers[i]);
    env_cond_destroy(feed->work);
    env_mutex_destroy(feed->lock);
    mem_free(feed->started);
    mem_free(feed);
}

struct feed_stats feed_stats(const struct feed *feed)
{
    struct feed_stats stats = {.pages = atomic_load(&feed->pages),
                               .rows = atomic_load(&feed->rows),
                               .bytes = atomic_load(&feed->bytes),
                               .refusals = atomic_load(&feed->refusals)};
    env_lock(feed->lock);
    stats.waiting = feed->waiting;
    env_unlock(feed->lock);
    return stats;
}
