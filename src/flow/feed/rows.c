/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /v1/log/<group>/rows: checks the cursor against this log, renews the lease, answers with a
 * page, or lets the request wait for one. Runs on the worker that owns the exchange; who waits
 * stands in that worker's list.
 */
#include <stdio.h>

#include "flow/feed/feed_internal.h"

struct waiting {
    struct waiting *next;
    struct http_exchange *exchange;
    struct row_ask ask;
    int64_t until_ns;
};

/* ---- a page ---- */

static void respond_page(struct feed *feed, const struct row_ask *ask,
                         struct http_exchange *exchange, const struct page *page)
{
    char cursor[POSITION_TEXT_BYTES], end[POSITION_TEXT_BYTES], rows[24], flags[80] = "";
    struct wal_consumer consumer;
    position_text(feed->wal, ask->group, page->term, page->seq, cursor);
    position_text(feed->wal, ask->group, page->end_term, page->end_seq, end);
    snprintf(rows, sizeof rows, "%llu", (unsigned long long)page->rows);
    if (ask->has_consumer) /* as it stands now: a long poll may have outlived it */
        flags_text(wal_consumer_get(feed->wal, ask->consumer, &consumer) ? &consumer : NULL, flags);
    struct http_field fields[] = {{"Sluice-Cursor", cursor},
                                  {"Sluice-Log-End", end},
                                  {"Sluice-Rows", rows},
                                  {"Sluice-Flags", flags}};
    atomic_fetch_add_explicit(&feed->pages, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&feed->rows, page->rows, memory_order_relaxed);
    atomic_fetch_add_explicit(&feed->bytes, page->body.length, memory_order_relaxed);
    http_respond(exchange, page->rows ? 200 : 204,
                 page->rows ? "application/vnd.apache.arrow.stream" : NULL,
                 span_of(page->body.data, page->body.length), fields,
                 flags[0] ? COUNT_OF(fields) : COUNT_OF(fields) - 1);
}

static void refuse_page(struct feed *feed, const struct row_ask *ask,
                        struct http_exchange *exchange, const struct error *err)
{
    uint64_t after = ask->after.has_index ? ask->after.seq - 1 : ask->after.seq;
    if (err->status == STATUS_RECLAIMED)
        refuse_reclaimed(feed, exchange, ask->group, ask->table_id, after);
    else if (err->status == STATUS_CORRUPT)
        refuse_damaged(feed, exchange, ask->group, ask->table_id, after, err);
    else
        refuse_status(feed, exchange, err);
}

/* Answers, unless there is nothing and the request may still wait: then from where there was
 * nothing on. */
static bool answer(struct feed *feed, struct row_ask *ask, struct http_exchange *exchange,
                   bool may_wait)
{
    struct page page;
    struct error err;
    if (http_worker_answer_bytes(http_exchange_worker(exchange)) > FEED_ANSWER_BYTES_MAX) {
        refuse(feed, exchange, 503, "ERR_EXPORT_UNAVAILABLE",
               "too many pages are under way to clients that do not take them");
        return true;
    }
    if (page_read(feed, ask, &page, &err) != STATUS_OK) {
        refuse_page(feed, ask, exchange, &err);
        return true;
    }
    bool is_answer = page.rows || page.is_at_limit || !may_wait;
    if (is_answer)
        respond_page(feed, ask, exchange, &page);
    ask->after.seq = page.seq;
    ask->after.term = page.term;
    ask->after.has_index = false;
    page_deinit(&page);
    return is_answer;
}

/* ---- waiting ---- */

static bool wait_begin(struct feed_worker *worker, const struct row_ask *ask,
                       struct http_exchange *exchange)
{
    struct feed *feed = worker->feed;
    struct waiting *waiting =
        worker->waiting_count < FEED_WAITING_MAX ? mem_alloc_zero(1, sizeof *waiting) : NULL;
    if (!waiting)
        return false;
    *waiting =
        (struct waiting){.next = worker->waiting,
                         .exchange = exchange,
                         .ask = *ask,
                         .until_ns = env_mono_ns(feed->env) + (int64_t)ask->wait_ms * 1000000};
    worker->waiting = waiting;
    worker->waiting_count++;
    env_lock(feed->lock);
    feed->waiting++;
    env_signal(feed->work);
    env_unlock(feed->lock);
    return true;
}

void rows_look(struct feed_worker *worker)
{
    struct feed *feed = worker->feed;
    int64_t now_ns = env_mono_ns(feed->env);
    bool is_stopping = atomic_load(&feed->is_stopping);
    uint32_t answered = 0;
    for (struct waiting **link = &worker->waiting; *link;) {
        struct waiting *waiting = *link;
        struct row_ask *ask = &waiting->ask;
        bool is_over = is_stopping || now_ns >= waiting->until_ns;
        bool may_have = wal_pending(feed->wal, ask->group, ask->table_id, ask->after.seq).entries;
        if ((!is_over && !may_have) || !answer(feed, ask, waiting->exchange, !is_over)) {
            link = &waiting->next;
            continue;
        }
        *link = waiting->next;
        mem_free(waiting);
        answered++;
    }
    worker->waiting_count -= answered;
    env_lock(feed->lock);
    feed->waiting -= answered;
    env_unlock(feed->lock);
}

void rows_forget(struct feed_worker *worker)
{
    while (worker->waiting) {
        struct waiting *next = worker->waiting->next;
        mem_free(worker->waiting);
        worker->waiting = next;
    }
}

/* ---- a request ---- */

/* Can this log go on from there? False: it has answered. */
static bool check_cursor(struct feed *feed, const struct row_ask *ask,
                         struct http_exchange *exchange)
{
    char log[LOG_ID_TEXT_BYTES];
    struct refusal refusal;
    struct error ignored;
    uint64_t term = ask->after.term;
    log_id_to_text(wal_log_id(feed->wal), log);
    if (ask->after.log[0] && strcmp(ask->after.log, log) != 0) {
        refusal_begin(&refusal, 409, "ERR_EXPORT_OTHER_LOG",
                      "the cursor is of log %s, and this is %s", ask->after.log, log);
        put_text(&refusal.json, "asked", ask->after.log);
        put_text(&refusal.json, "log", log);
        refusal_end(&refusal, feed, exchange);
        return false;
    }
    if (ask->after.seq > wal_synced_end(feed->wal, ask->group).seq) {
        refuse_ahead(feed, exchange, ask->group, ask->after.seq);
        return false;
    }
    if (ask->after.term && ask->after.seq &&
        wal_term_at(feed->wal, ask->group, ask->after.seq, &term, &ignored) == STATUS_OK &&
        term != ask->after.term) {
        refuse_other_history(feed, exchange, ask->group, ask->after.seq, ask->after.term);
        return false;
    }
    return true;
}

/* Renews the lease, and fills in what the consumer knows. False: it has answered. */
static bool take_consumer(struct feed *feed, struct row_ask *ask, struct http_exchange *exchange)
{
    struct wal_consumer consumer;
    struct wal_consumer_key key = {.name = ask->consumer,
                                   .owner = ask->owner,
                                   .member = ask->member,
                                   .member_count = ask->member_count};
    if (!ask->has_consumer)
        return true;
    enum wal_consumer_verdict verdict = wal_consumer_renew(feed->wal, &key, &consumer);
    if (verdict == WAL_CONSUMER_UNKNOWN) {
        if (ask->table[0]) /* NO_LEASE */
            return true;
        return !refuse_verdict(feed, exchange, &key, verdict, NULL);
    }
    if (refuse_verdict(feed, exchange, &key, verdict, &consumer))
        return false;
    bool is_same = consumer.group == ask->group &&
                   (!ask->table[0] || wal_table_find(feed->wal, ask->table) == consumer.table_id);
    if (!is_same)
        return !refuse_verdict(feed, exchange, &key, WAL_CONSUMER_OTHER, &consumer);
    ask->table_id = consumer.table_id;
    if (!ask->has_after) {
        ask->after.seq = consumer.members[ask->member].seq;
        ask->after.term = consumer.members[ask->member].term;
    }
    return true;
}

void handle_rows(void *context, struct http_exchange *exchange)
{
    struct feed *feed = context;
    struct row_ask ask;
    struct error err;
    if (row_ask_parse(http_exchange_head(exchange), &ask, &err) != STATUS_OK) {
        refuse_status(feed, exchange, &err);
        return;
    }
    if (ask.group >= wal_group_count(feed->wal)) {
        refuse(feed, exchange, 404, "ERR_EXPORT_NO_GROUP", "group %u of %u", ask.group,
               wal_group_count(feed->wal));
        return;
    }
    if (!take_consumer(feed, &ask, exchange))
        return;
    if (!ask.table_id)
        ask.table_id = wal_table_find(feed->wal, ask.table);
    if (!ask.table_id) {
        refuse(feed, exchange, 404, "ERR_EXPORT_NO_TABLE", "the log has no table %s", ask.table);
        return;
    }
    if (!check_cursor(feed, &ask, exchange))
        return;
    bool may_wait = ask.wait_ms > 0 && !atomic_load(&feed->is_stopping);
    if (answer(feed, &ask, exchange, may_wait))
        return;
    struct feed_worker *worker = http_worker_state(http_exchange_worker(exchange));
    if (!wait_begin(worker, &ask, exchange))
        refuse(feed, exchange, 429, "ERR_EXPORT_LIMIT", "too many wait already");
}
