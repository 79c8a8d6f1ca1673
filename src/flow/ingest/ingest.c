/* SPDX-License-Identifier: Apache-2.0
 *
 * The module's life: tables and schemas made known to the log, workers, counters.
 */
#include "flow/ingest/ingest_internal.h"

static const int64_t refusal_told_ns = 10 * (int64_t)1000000000;

struct ingest_options ingest_options_default(void)
{
    return (struct ingest_options){
        .expanded_bytes_max = 32 << 20,
        .items_max = 500000,
        .entry_bytes_max = 64 << 20,
        .force_timeout_ms = 30000,
        .dead_letter_bytes = 64 << 20,
        .worker_count = 1,
    };
}

const struct publish_table *ingest_tables(size_t *out_count)
{
    static struct publish_table tables[OTLP_TABLE_COUNT];
    for (int i = 0; i < OTLP_TABLE_COUNT; i++)
        tables[i] = otlp_table((enum otlp_table_id)i)->publish;
    *out_count = OTLP_TABLE_COUNT;
    return tables;
}

static enum status register_tables(struct ingest *ingest, struct error *err)
{
    struct buf message = {0};
    enum status status = STATUS_OK;
    for (int i = 0; i < OTLP_TABLE_COUNT && status == STATUS_OK; i++) {
        const struct otlp_table *table = otlp_table((enum otlp_table_id)i);
        char name[WAL_TABLE_NAME_MAX + 1];
        size_t ns_length = strlen(table->publish.ns);
        memcpy(name, table->publish.ns, ns_length);
        name[ns_length] = '.';
        memcpy(name + ns_length + 1, table->publish.name, strlen(table->publish.name) + 1);
        buf_clear(&message);
        status = arrow_ipc_write_schema(table->publish.schema, &message, err);
        if (status == STATUS_OK)
            status = wal_schema_add(ingest->wal, table->fingerprint,
                                    span_of(message.data, message.length), err);
        if (status == STATUS_OK)
            status = wal_table_open(ingest->wal, name, &ingest->table_ids[i], err);
    }
    buf_deinit(&message);
    return status;
}

static enum status make_workers(struct ingest *ingest, struct error *err)
{
    unsigned count = ingest->options.worker_count;
    ingest->workers = mem_alloc_zero(count, sizeof *ingest->workers);
    if (!ingest->workers)
        return error_set(err, STATUS_NO_MEMORY, "ingest: out of memory");
    for (unsigned i = 0; i < count; i++) {
        struct ingest_worker *worker = &ingest->workers[i];
        worker->ingest = ingest;
        worker->requests_tail = &worker->requests;
        otlp_decoder_init(&worker->decoder, ingest->hash_seed, ingest->options.items_max,
                          ingest->options.entry_bytes_max);
        TRY(codec_expander_create(CODEC_GZIP, ingest->options.expanded_bytes_max, &worker->expander,
                                  err));
    }
    return STATUS_OK;
}

enum status ingest_create(struct env *env, const struct ingest_options *options, struct wal *wal,
                          struct publisher *publisher, struct ingest **out_ingest,
                          struct error *err)
{
    static const char *const paths[SIGNAL_COUNT] = {"/v1/logs", "/v1/traces", "/v1/metrics"};
    struct ingest *ingest = mem_alloc_zero(1, sizeof *ingest);
    if (!ingest)
        return error_set(err, STATUS_NO_MEMORY, "ingest: out of memory");
    ingest->env = env;
    ingest->options = *options;
    ingest->wal = wal;
    ingest->publisher = publisher;
    env_random(env, &ingest->hash_seed, sizeof ingest->hash_seed);
    enum status status = register_tables(ingest, err);
    if (status == STATUS_OK && options->dead_letter_dir)
        status = dead_letters_create(env, options->dead_letter_dir, options->dead_letter_bytes,
                                     &ingest->dead_letters, err);
    if (status == STATUS_OK)
        status = make_workers(ingest, err);
    if (status != STATUS_OK) {
        ingest_destroy(ingest);
        return status;
    }
    for (int i = 0; i < SIGNAL_COUNT; i++) {
        ingest->route_contexts[i] =
            (struct ingest_route){.ingest = ingest, .signal = (enum otlp_signal)i};
        ingest->routes[i] = (struct http_route){.method = HTTP_POST,
                                                .path = paths[i],
                                                .run = ingest_handle,
                                                .admit = ingest_admit,
                                                .refuse = ingest_refuse,
                                                .context = &ingest->route_contexts[i]};
    }
    *out_ingest = ingest;
    return STATUS_OK;
}

static void submission_destroy(struct ingest_submission *submission)
{
    for (int i = 0; i < OTLP_TABLE_COUNT; i++)
        buf_deinit(&submission->payloads[i]);
    for (int i = 0; i <= OTLP_TABLE_COUNT; i++)
        buf_deinit(&submission->contributions[i]);
    mem_free(submission);
}

void ingest_destroy(struct ingest *ingest)
{
    if (!ingest)
        return;
    for (unsigned i = 0; ingest->workers && i < ingest->options.worker_count; i++) {
        struct ingest_worker *worker = &ingest->workers[i];
        otlp_decoder_deinit(&worker->decoder);
        codec_expander_destroy(worker->expander);
        buf_deinit(&worker->expanded);
        for (int t = 0; t <= OTLP_TABLE_COUNT; t++)
            buf_deinit(&worker->contributions[t]);
        while (worker->free_submissions) {
            struct ingest_submission *next = worker->free_submissions->next;
            submission_destroy(worker->free_submissions);
            worker->free_submissions = next;
        }
    }
    dead_letters_destroy(ingest->dead_letters);
    mem_free(ingest->workers);
    mem_free(ingest);
}

static void *worker_start(void *context, struct http_worker *http, unsigned index)
{
    struct ingest *ingest = context;
    CHECK(index < ingest->options.worker_count);
    ingest->workers[index].http = http;
    return &ingest->workers[index];
}

void ingest_attach(struct ingest *ingest, struct http_options *options)
{
    options->routes = ingest->routes;
    options->route_count = SIGNAL_COUNT;
    options->worker_start = worker_start;
    options->worker_round = ingest_worker_round;
    options->context = ingest;
    options->worker_count = ingest->options.worker_count;
}

uint64_t ingest_ack_bucket_us(size_t index)
{
    return (uint64_t)50 << index;
}

void ingest_count_refused(struct ingest_worker *worker, const char *why)
{
    struct ingest *ingest = worker->ingest;
    int64_t now_ns = env_mono_ns(ingest->env), told_ns = atomic_load(&ingest->refusal_told_ns);
    ingest_count(worker, COUNT_REFUSED_REQUESTS, 1);
    if (!ingest->options.refusing || (told_ns && now_ns - told_ns < refusal_told_ns) ||
        !atomic_compare_exchange_strong(&ingest->refusal_told_ns, &told_ns, now_ns))
        return;
    ingest->options.refusing(why, ingest_stats(ingest).refused_requests);
}

struct ingest_stats ingest_stats(struct ingest *ingest)
{
    struct ingest_stats stats = {0};
    uint64_t sums[COUNTER_COUNT] = {0};
    for (unsigned i = 0; i < ingest->options.worker_count; i++) {
        struct ingest_worker *worker = &ingest->workers[i];
        for (int c = 0; c < COUNTER_COUNT; c++)
            sums[c] += atomic_load_explicit(&worker->counters[c], memory_order_relaxed);
        for (int b = 0; b < ACK_BUCKETS; b++)
            stats.ack_buckets[b] +=
                atomic_load_explicit(&worker->ack_buckets[b], memory_order_relaxed);
    }
    stats.requests = sums[COUNT_REQUESTS];
    stats.items = sums[COUNT_ITEMS];
    stats.rows = sums[COUNT_ROWS];
    stats.rejected_items = sums[COUNT_REJECTED_ITEMS];
    stats.repaired_items = sums[COUNT_REPAIRED_ITEMS];
    stats.moved_times = sums[COUNT_MOVED_TIMES];
    stats.dead_letters_lost = sums[COUNT_DEAD_LETTERS_LOST];
    stats.refused_requests = sums[COUNT_REFUSED_REQUESTS];
    stats.bad_requests = sums[COUNT_BAD_REQUESTS];
    stats.repeats = sums[COUNT_REPEATS];
    stats.body_bytes = sums[COUNT_BODY_BYTES];
    stats.expanded_bytes = sums[COUNT_EXPANDED_BYTES];
    stats.payload_bytes = sums[COUNT_PAYLOAD_BYTES];
    stats.entries = sums[COUNT_ENTRIES];
    stats.ack_ns_sum = sums[COUNT_ACK_NS];
    stats.acks = sums[COUNT_ACKS];
    return stats;
}

enum status ingest_decode(const char *signal, struct span body, int64_t received_us,
                          uint64_t *out_rejected, ingest_batch_fn each, void *context,
                          struct error *err)
{
    static const char *const names[SIGNAL_COUNT] = {"logs", "traces", "metrics"};
    struct ingest_options options = ingest_options_default();
    struct otlp_decoder decoder;
    int index = 0;
    while (index < SIGNAL_COUNT && strcmp(names[index], signal) != 0)
        index++;
    if (index == SIGNAL_COUNT)
        return error_set(err, STATUS_USAGE, "unknown signal %s", signal);
    otlp_decoder_init(&decoder, 0, options.items_max, options.entry_bytes_max);
    enum status status = otlp_decode(&decoder, (enum otlp_signal)index, body, received_us, err);
    uint64_t rejected = decoder.rejected;
    for (int i = 0; i < OTLP_TABLE_COUNT && status == STATUS_OK; i++) {
        struct arrow_batch view;
        if (!decoder.batches[i] || decoder.batches[i]->rows == 0)
            continue;
        status = otlp_batch_view(decoder.batches[i], &view, err);
        if (status == STATUS_OK) {
            status = each(context, &decoder.batches[i]->table->publish, &view, err);
            arrow_batch_deinit(&view);
        }
    }
    otlp_decoder_deinit(&decoder);
    if (status == STATUS_OK)
        *out_rejected = rejected;
    return status;
}
