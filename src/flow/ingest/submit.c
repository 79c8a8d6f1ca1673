/* SPDX-License-Identifier: Apache-2.0
 *
 * Natural batching (L12): builders become a submission when the log is ready for more, so that a
 * lone request waits for nothing and many share one sync; and so that those who were just answered
 * and ask again share the next one (gather.h).
 *
 * submission_done runs on the log's thread, commit_waited on the publisher's and mirror_waited on
 * the mirror's; all only post a task.
 */
#include "flow/ingest/ingest_internal.h"

enum {
    IN_FLIGHT_MAX = 8,           /* submissions a worker may have under way */
    IN_FLIGHT_BYTES = 64 << 20,  /* or so many bytes of them */
    KEPT_BYTES = 16 << 20,       /* larger buffers are given back once they are empty */
    FLUSH_EARLY_BYTES = 2 << 20, /* worth a unit of its own while another is in flight */
    FLUSH_NOW_BYTES = 16 << 20,
    EARLY_IN_FLIGHT = 3,
    GATHERED_BYTES = 16 << 10, /* a request, at most, of those that are waited for */
};

static size_t builder_bytes(const struct ingest_worker *worker)
{
    size_t bytes = 0;
    for (int i = 0; i < OTLP_TABLE_COUNT; i++) {
        const struct otlp_batch *batch = worker->decoder.batches[i];
        if (batch && batch->rows)
            bytes += otlp_batch_bytes(batch);
    }
    return bytes;
}

bool ingest_worker_is_full(const struct ingest_worker *worker)
{
    return worker->in_flight >= IN_FLIGHT_MAX || worker->in_flight_bytes >= IN_FLIGHT_BYTES;
}

static struct ingest_submission *take_submission(struct ingest_worker *worker)
{
    struct ingest_submission *submission = worker->free_submissions;
    if (submission) {
        worker->free_submissions = submission->next;
        return submission;
    }
    submission = mem_alloc_zero(1, sizeof *submission);
    if (submission)
        submission->worker = worker;
    return submission;
}

static size_t payload_bytes(const struct ingest_submission *submission)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < submission->wal.entry_count; i++)
        bytes += submission->entries[i].payload.length;
    return bytes;
}

static void give_back(struct ingest_submission *submission)
{
    struct ingest_worker *worker = submission->worker;
    for (int i = 0; i < OTLP_TABLE_COUNT; i++) {
        if (submission->payloads[i].capacity > KEPT_BYTES)
            buf_deinit(&submission->payloads[i]);
    }
    submission->next = worker->free_submissions;
    worker->free_submissions = submission;
}

/* Room for the next rows. */
static void clear_builders(struct otlp_decoder *decoder)
{
    for (int i = 0; i < OTLP_TABLE_COUNT; i++) {
        if (decoder->batches[i] && decoder->batches[i]->rows)
            otlp_batch_clear(decoder->batches[i]);
    }
    otlp_decode_trim(decoder);
}

/* ---- completion ---- */

static void request_free(struct ingest_request *request)
{
    mem_free(request);
}

static void waiting_remove(struct ingest_request *request)
{
    struct ingest_request **link = &request->worker->waiting;
    while (*link != request)
        link = &(*link)->next;
    *link = request->next;
}

/* It is durable, and has not come as far as was asked for. */
static void answer_late(struct ingest_request *request)
{
    if (!request->has_producer)
        ingest_answer(request, "durable");
    else if (request->mode == MODE_REMOTE)
        ingest_answer_error(request, STATUS_TIMEOUT, "durable, but not in the mirror in time");
    else
        ingest_answer_error(request, STATUS_TIMEOUT,
                            "durable, but not committed to the table in time");
}

/* All that the request waited for is decided. */
static void waited_task(struct http_task *task)
{
    struct ingest_request *request = CONTAINER_OF(task, struct ingest_request, task);
    enum status status = (enum status)atomic_load(&request->wait_status);
    if (request->exchange && status == STATUS_RECLAIMED && request->mode == MODE_REMOTE) {
        /* The mirror passes over what tables have: it is never there, and another attempt would
         * find it no sooner. */
        waiting_remove(request);
        request->mode = MODE_FORCE;
        ingest_force(request);
        return;
    }
    if (request->exchange && status == STATUS_OK)
        ingest_answer(request, request->mode == MODE_REMOTE ? "remote" : "visible");
    else if (request->exchange)
        answer_late(request);
    waiting_remove(request);
    request_free(request);
}

static void waited(struct ingest_request *request, enum status status)
{
    if (status != STATUS_OK)
        atomic_store(&request->wait_status, (int)status);
    if (atomic_fetch_sub(&request->waits_left, 1) == 1)
        http_worker_post(request->worker->http, &request->task);
}

static void commit_waited(struct publish_waiter *waiter, enum status status)
{
    waited(waiter->context, status);
}

static void mirror_waited(struct mirror_waiter *waiter, enum status status)
{
    waited(waiter->context, status);
}

static void wait_begin(struct ingest_request *request)
{
    struct ingest_worker *worker = request->worker;
    struct ingest *ingest = worker->ingest;
    request->deadline_ns =
        env_mono_ns(ingest->env) + (int64_t)ingest->options.force_timeout_ms * 1000000;
    request->task.run = waited_task;
    request->next = worker->waiting;
    worker->waiting = request;
    atomic_store(&request->wait_status, STATUS_OK);
    atomic_store(&request->waits_left, 1);
}

void ingest_force(struct ingest_request *request)
{
    struct ingest *ingest = request->worker->ingest;
    wait_begin(request);                           /* held while the waits are being asked for */
    for (int i = 0; i < TABLE_DEAD_LETTERS; i++) { /* nobody waits for those (L27) */
        if (!request->rows[i])
            continue;
        atomic_fetch_add(&request->waits_left, 1);
        request->waiters[i] = (struct publish_waiter){.done = commit_waited, .context = request};
        publisher_wait(ingest->publisher, &request->waiters[i], ingest->table_ids[i],
                       request->group, request->seq[i]);
    }
    waited(request, STATUS_OK);
}

void ingest_remote(struct ingest_request *request, uint64_t seq)
{
    wait_begin(request);
    request->mirror_waiter = (struct mirror_waiter){.done = mirror_waited, .context = request};
    mirror_wait(request->worker->ingest->options.mirror, &request->mirror_waiter, request->group,
                seq);
}

/* Later than the deadline. A commit's wait goes on; the mirror's, which may be away for long, is
 * given up. */
static void expire_waiting(struct ingest_worker *worker)
{
    struct ingest *ingest = worker->ingest;
    int64_t now_ns = env_mono_ns(ingest->env);
    for (struct ingest_request *request = worker->waiting, *next; request; request = next) {
        next = request->next;
        if (!request->exchange || now_ns < request->deadline_ns)
            continue;
        answer_late(request);
        if (request->mode == MODE_REMOTE &&
            mirror_wait_cancel(ingest->options.mirror, &request->mirror_waiter)) {
            waiting_remove(request);
            request_free(request);
        }
    }
}

static void complete_request(struct ingest_request *request,
                             const struct ingest_submission *submission)
{
    if (submission->status != STATUS_OK) {
        ingest_answer_error(request, submission->status, submission->err.message);
        request_free(request);
        return;
    }
    uint64_t last_seq = 0; /* of all that shared the unit: none of them lasts without the others */
    request->term = submission->wal.term;
    for (uint32_t i = 0; i < submission->wal.entry_count; i++) {
        uint64_t seq = submission->entries[i].seq;
        last_seq = seq > last_seq ? seq : last_seq;
        if (submission->tables[i] >= 0)
            request->seq[submission->tables[i]] = seq;
    }
    ingest_count_stored(request);
    if (request->mode == MODE_FORCE) {
        ingest_force(request);
        return;
    }
    if (request->mode == MODE_REMOTE) {
        ingest_remote(request, last_seq);
        return;
    }
    ingest_answer(request, request->mode == MODE_AUTO ? "written" : "durable");
    request_free(request);
}

/* Gives the log what it is ready for. Unless it is better to wait for those who were just answered:
 * until when, or 0. */
static int64_t flush_next(struct ingest_worker *worker)
{
    if (!worker->requests || worker->in_flight >= EARLY_IN_FLIGHT)
        return 0;
    bool is_large = builder_bytes(worker) >= FLUSH_EARLY_BYTES;
    int64_t until_ns = 0;
    if (!is_large && worker->in_flight == 0)
        until_ns =
            gather_until(&worker->gather, env_mono_ns(worker->ingest->env), worker->request_count);
    if (is_large || (worker->in_flight == 0 && !until_ns))
        ingest_worker_flush(worker);
    return until_ns;
}

/* Of large requests the work is in taking them, and the disk had better write meanwhile. */
static void count_write(struct ingest_worker *worker, const struct ingest_submission *submission)
{
    int64_t now_ns = env_mono_ns(worker->ingest->env);
    uint32_t answered = 0;
    for (const struct ingest_request *request = submission->requests; request;
         request = request->next)
        answered += request->mode == MODE_AUTO || request->mode == MODE_WAIT_FOR;
    bool is_worth_it = submission->status == STATUS_OK && http_worker_may_look(worker->http) &&
                       payload_bytes(submission) <= (size_t)answered * GATHERED_BYTES;
    gather_wrote(&worker->gather, now_ns, now_ns - submission->begun_ns, is_worth_it ? answered : 0,
                 worker->request_count);
}

static void submission_task(struct http_task *task)
{
    struct ingest_submission *submission = CONTAINER_OF(task, struct ingest_submission, task);
    struct ingest_worker *worker = submission->worker;
    struct ingest_request *request = submission->requests;
    worker->in_flight--;
    worker->in_flight_bytes -= payload_bytes(submission);
    count_write(worker, submission);
    if (submission->status == STATUS_NO_SPACE)
        ingest_hurry_all(worker);
    flush_next(worker); /* the disk has work while these are answered */
    while (request) {
        struct ingest_request *next = request->next;
        complete_request(request, submission);
        request = next;
    }
    submission->requests = NULL;
    give_back(submission);
}

static void wake_task(struct http_task *task)
{
    atomic_store(&CONTAINER_OF(task, struct ingest_worker, wake)->is_woken, false);
}

/* Parked requests of all workers may go on now; the loop's round looks. A request that parks at
 * this moment is not missed: its worker sets `has_parked` and then asks the log once more. */
static void wake_parked(struct ingest *ingest)
{
    for (unsigned i = 0; i < ingest->options.worker_count; i++) {
        struct ingest_worker *worker = &ingest->workers[i];
        if (!atomic_load(&worker->has_parked) || atomic_exchange(&worker->is_woken, true))
            continue;
        worker->wake.run = wake_task;
        http_worker_post(worker->http, &worker->wake);
    }
}

static void submission_done(struct wal_submission *wal_submission, enum status status,
                            const struct error *err)
{
    struct ingest_submission *submission = wal_submission->context;
    submission->status = status;
    if (status != STATUS_OK)
        submission->err = *err;
    submission->task.run = submission_task;
    struct ingest *ingest = submission->worker->ingest;
    http_worker_post(submission->worker->http, &submission->task);
    wake_parked(ingest);
}

/* ---- submission ---- */

static void swap_buf(struct buf *a, struct buf *b)
{
    struct buf c = *a;
    *a = *b;
    *b = c;
}

static enum status encode_entry(struct ingest_worker *worker, struct ingest_submission *submission,
                                int table, struct error *err)
{
    struct otlp_batch *batch = worker->decoder.batches[table];
    struct buf *payload = &submission->payloads[table];
    struct wal_entry *entry = &submission->entries[submission->wal.entry_count];
    struct arrow_batch view;
    TRY(otlp_batch_view(batch, &view, err));
    buf_clear(payload);
    /* A queue at the disk makes bytes dearer than cycles (L38). */
    enum arrow_compression compression =
        worker->in_flight > 1 ? ARROW_LZ4_FRAME : ARROW_UNCOMPRESSED;
    enum status status =
        arrow_ipc_write_batch(batch->table->publish.schema, &view, compression, payload, err);
    arrow_batch_deinit(&view);
    TRY(status);
    swap_buf(&submission->contributions[table], &worker->contributions[table]);
    buf_clear(&worker->contributions[table]);
    *entry = (struct wal_entry){
        .type = WAL_DATA,
        .table_id = worker->ingest->table_ids[table],
        .schema_fingerprint = batch->table->fingerprint,
        .rows = (uint32_t)batch->rows,
        .contributions = (const void *)submission->contributions[table].data,
        .contribution_count =
            (uint32_t)(submission->contributions[table].length / sizeof(struct wal_contribution)),
        .payload = span_of(payload->data, payload->length),
        .payload_crc = crc32c(0, payload->data, payload->length),
    };
    otlp_batch_times(batch, &entry->time_min_us, &entry->time_max_us);
    submission->tables[submission->wal.entry_count++] = table;
    ingest_count(worker, COUNT_PAYLOAD_BYTES, payload->length);
    ingest_count(worker, COUNT_ENTRIES, 1);
    return STATUS_OK;
}

/* Requests without rows whose producer's number must last all the same (L29). */
static void encode_producers(struct ingest_worker *worker, struct ingest_submission *submission)
{
    struct buf *from = &worker->contributions[OTLP_TABLE_COUNT];
    struct buf *to = &submission->contributions[OTLP_TABLE_COUNT];
    if (from->length == 0)
        return;
    swap_buf(to, from);
    buf_clear(from);
    submission->entries[submission->wal.entry_count] = (struct wal_entry){
        .type = WAL_PRODUCERS,
        .contributions = (const void *)to->data,
        .contribution_count = (uint32_t)(to->length / sizeof(struct wal_contribution)),
    };
    submission->tables[submission->wal.entry_count++] = -1;
}

static void fail_all(struct ingest_worker *worker, enum status status, const char *message)
{
    while (worker->requests) {
        struct ingest_request *request = worker->requests;
        worker->requests = request->next;
        if (request->has_producer)
            wal_producer_abandon(worker->ingest->wal,
                                 span_of(request->producer, request->producer_length),
                                 request->producer_sequence);
        ingest_answer_error(request, status, message);
        request_free(request);
    }
    worker->requests_tail = &worker->requests;
    worker->request_count = 0;
    for (int i = 0; i <= OTLP_TABLE_COUNT; i++)
        buf_clear(&worker->contributions[i]);
}

void ingest_worker_flush(struct ingest_worker *worker)
{
    struct error err;
    enum status status = STATUS_OK;
    if (!worker->requests)
        return;
    struct ingest_submission *submission = take_submission(worker);
    if (!submission) {
        status = error_set(&err, STATUS_NO_MEMORY, "out of memory");
    } else {
        submission->wal =
            (struct wal_submission){.entries = submission->entries,
                                    .is_admitted = true, /* each request was asked for (room.c) */
                                    .done = submission_done,
                                    .context = submission};
        for (int i = 0; i < OTLP_TABLE_COUNT && status == STATUS_OK; i++) {
            if (worker->decoder.batches[i] && worker->decoder.batches[i]->rows)
                status = encode_entry(worker, submission, i, &err);
        }
        encode_producers(worker, submission);
    }
    clear_builders(&worker->decoder);
    if (status != STATUS_OK) {
        fail_all(worker, status, err.message);
        if (submission)
            give_back(submission);
        return;
    }
    submission->requests = worker->requests;
    submission->wal.durability = WAL_WRITTEN;
    for (struct ingest_request *request = worker->requests; request; request = request->next) {
        if (request->mode != MODE_AUTO) /* the strongest of those that share a write */
            submission->wal.durability = WAL_SYNCED;
    }
    worker->requests = NULL;
    worker->requests_tail = &worker->requests;
    worker->request_count = 0;
    worker->in_flight++;
    submission->begun_ns = env_mono_ns(worker->ingest->env);
    worker->in_flight_bytes += payload_bytes(submission);
    wal_submit(worker->ingest->wal, &submission->wal);
}

void ingest_worker_add(struct ingest_worker *worker, struct ingest_request *request)
{
    bool is_many = false;
    request->next = NULL;
    *worker->requests_tail = request;
    worker->requests_tail = &request->next;
    worker->request_count++;
    gather_came(&worker->gather, http_exchange_pause_ns(request->exchange));
    for (int i = 0; i <= OTLP_TABLE_COUNT; i++)
        is_many |= worker->contributions[i].length >=
                   WAL_CONTRIBUTIONS_MAX * sizeof(struct wal_contribution);
    if (is_many || builder_bytes(worker) >= FLUSH_NOW_BYTES)
        ingest_worker_flush(worker);
}

void ingest_worker_round(void *context, struct http_worker *http)
{
    UNUSED(context);
    struct ingest_worker *worker = http_worker_state(http);
    if (worker->waiting)
        expire_waiting(worker);
    unsigned parked = worker->parked_count;
    worker->parked_count = 0;
    for (unsigned i = 0; i < parked; i++) {
        struct http_exchange *exchange = worker->parked[i];
        worker->parked[i] = NULL;
        struct ingest_route **route = http_exchange_scratch(exchange);
        ingest_handle(*route, exchange);
    }
    if (parked && worker->parked_count == 0)
        atomic_store(&worker->has_parked, false);
    int64_t until_ns = flush_next(worker);
    if (until_ns)
        http_worker_round_by(http, until_ns);
}
