/* SPDX-License-Identifier: Apache-2.0
 *
 * OTLP/HTTP (opentelemetry.io, "OTLP Specification" 1.5): what a request must be, and every answer.
 * Retryable are 429, 502, 503 and 504, and carry Retry-After where waiting helps; everything that
 * would fail again the same way is another 4xx. Bodies of answers are in the request's encoding.
 * Thread: the HTTP worker's.
 */
#include <stdio.h>

#include "flow/ingest/ingest_internal.h"
#include "format/wire/wire.h"

static const char protobuf_type[] = "application/x-protobuf";
static const char json_type[] = "application/json";
static const char repeat_reason[] = "rejected when this request was first stored";

/* ---- answers ---- */

static bool is_media_type(struct span value, const char *type)
{
    size_t length = 0;
    while (length < value.length && value.data[length] != ';' && value.data[length] != ' ')
        length++;
    return http_name_is(span_of(value.data, length), type);
}

/* The text of a JSON string. */
static void put_json_text(struct buf *out, const char *text)
{
    for (; *text; text++) {
        uint8_t c = (uint8_t)*text;
        if (c < ' ' || c == '"' || c == '\\')
            buf_format(out, "\\u%04x", c);
        else
            buf_put_byte(out, c);
    }
}

/* google.rpc.Status { code 1, message 2 }, in the request's encoding where that is known. */
static void answer_status(struct http_exchange *exchange, enum status status, int code,
                          const char *message, uint64_t retry_ms)
{
    struct buf body = {0};
    char retry_text[24];
    struct http_field retry = {.name = "Retry-After", .value = retry_text};
    struct span asked = http_head_get(http_exchange_head(exchange), "content-type");
    bool is_json = asked.data && is_media_type(asked, json_type);
    snprintf(retry_text, sizeof retry_text, "%llu", (unsigned long long)((retry_ms + 999) / 1000));
    if (is_json) {
        buf_format(&body, "{\"code\":%d,\"message\":\"", status_grpc_code(status));
        put_json_text(&body, message);
        buf_put_text(&body, "\"}");
    } else {
        wire_put_varint(&body, 1, (uint64_t)status_grpc_code(status));
        wire_put_bytes(&body, 2, span_of_text(message));
    }
    http_respond(exchange, code, is_json ? json_type : protobuf_type,
                 span_of(body.data, body.failed ? 0 : body.length), &retry, retry_ms > 0);
    buf_deinit(&body);
}

/* A limit that is reached (429) does not go away by waiting. */
static bool is_worth_a_retry(int code)
{
    return code == 503;
}

static void refuse(struct ingest_worker *worker, struct http_exchange *exchange,
                   const struct error *err)
{
    int code = status_http_code(err->status);
    if (code < 500 && code != 429)
        ingest_count(worker, COUNT_BAD_REQUESTS, 1);
    else
        ingest_count_refused(worker, err->message);
    uint64_t retry_ms = worker->retry_ms ? worker->retry_ms : 1000;
    answer_status(exchange, err->status, code, err->message, is_worth_a_retry(code) ? retry_ms : 0);
}

/* What the HTTP server refuses before this module sees it. */
void ingest_refuse(void *context, struct http_exchange *exchange, int code, const char *why)
{
    static const struct {
        int code;
        enum status status;
    } known[] = {{405, STATUS_UNSUPPORTED}, {408, STATUS_TIMEOUT},     {413, STATUS_TOO_LARGE},
                 {431, STATUS_TOO_LARGE},   {501, STATUS_UNSUPPORTED}, {503, STATUS_BUSY}};
    struct ingest_worker *worker = http_worker_state(http_exchange_worker(exchange));
    enum status status = STATUS_INVALID;
    UNUSED(context);
    for (size_t i = 0; i < COUNT_OF(known); i++)
        status = known[i].code == code ? known[i].status : status;
    if (code == 503)
        ingest_count_refused(worker, why);
    else
        ingest_count(worker, COUNT_BAD_REQUESTS, 1);
    answer_status(exchange, status, code, why, is_worth_a_retry(code) ? 1000 : 0);
}

static void count_ack(struct ingest_worker *worker, int64_t elapsed_ns)
{
    size_t bucket = 0;
    while (bucket < ACK_BUCKETS - 1 && elapsed_ns > (int64_t)ingest_ack_bucket_us(bucket) * 1000)
        bucket++;
    atomic_fetch_add_explicit(&worker->ack_buckets[bucket], 1, memory_order_relaxed);
    ingest_count(worker, COUNT_ACK_NS, (uint64_t)elapsed_ns);
    ingest_count(worker, COUNT_ACKS, 1);
}

/* ExportXServiceResponse { partial_success 1 { rejected 1, error_message 2 } } */
static void put_response(struct buf *body, uint64_t rejected, const char *reason)
{
    struct buf partial = {0};
    if (rejected == 0)
        return;
    wire_put_varint(&partial, 1, rejected);
    wire_put_bytes(&partial, 2, span_of_text(reason));
    wire_put_bytes(body, 1, span_of(partial.data, partial.length));
    body->failed |= partial.failed;
    buf_deinit(&partial);
}

enum { RECEIPT_TEXT_BYTES = 160 };

struct receipts {
    char texts[OTLP_TABLE_COUNT + 16][RECEIPT_TEXT_BYTES];
    struct http_field fields[OTLP_TABLE_COUNT + 18];
    size_t count;
};

static char *put_number(char *at, const char *before, uint64_t value)
{
    size_t length = strlen(before);
    memcpy(at, before, length);
    return at + length + u64_to_text(at + length, value);
}

static void add_receipt(struct receipts *receipts, struct log_id log, uint32_t group, uint64_t term,
                        uint64_t seq, uint32_t first_row, uint32_t rows)
{
    char *text = receipts->texts[receipts->count];
    log_id_to_text(log, text);
    char *at = put_number(text + LOG_ID_TEXT_BYTES - 1, "/", group);
    at = put_number(at, "/", term);
    at = put_number(at, "/", seq);
    at = put_number(at, ";first=", first_row);
    *put_number(at, ";rows=", rows) = '\0';
    receipts->fields[receipts->count++] = (struct http_field){"Sluice-Receipt", text};
}

static void answer_stored(struct http_exchange *exchange, struct receipts *receipts,
                          const char *boundary, uint64_t rejected, const char *reason)
{
    struct buf body = {0};
    put_response(&body, rejected, reason);
    receipts->fields[receipts->count++] = (struct http_field){"Sluice-Boundary", boundary};
    http_respond(exchange, 200, protobuf_type, span_of(body.data, body.failed ? 0 : body.length),
                 receipts->fields, receipts->count);
    buf_deinit(&body);
}

/* Before the answer: whoever has it may look. */
void ingest_count_stored(const struct ingest_request *request)
{
    struct ingest_worker *worker = request->worker;
    ingest_count(worker, COUNT_REQUESTS, 1);
    ingest_count(worker, COUNT_ITEMS, request->items);
    ingest_count(worker, COUNT_ROWS, request->items - request->rejected);
    ingest_count(worker, COUNT_REJECTED_ITEMS, request->rejected);
    ingest_count(worker, COUNT_REPAIRED_ITEMS, request->repaired);
    ingest_count(worker, COUNT_MOVED_TIMES, request->moved_times);
}

void ingest_answer(struct ingest_request *request, const char *boundary)
{
    struct ingest_worker *worker = request->worker;
    struct receipts receipts = {.count = 0};
    for (int i = 0; i < OTLP_TABLE_COUNT; i++) {
        if (request->rows[i])
            add_receipt(&receipts, wal_log_id(worker->ingest->wal), request->group, request->term,
                        request->seq[i], request->first_row[i], request->rows[i]);
    }
    if (request->mode == MODE_WAIT_FOR)
        count_ack(worker,
                  env_mono_ns(worker->ingest->env) - http_exchange_started_ns(request->exchange));
    answer_stored(request->exchange, &receipts, boundary, request->rejected,
                  request->reject_reason);
    request->exchange = NULL;
}

void ingest_answer_error(struct ingest_request *request, enum status status, const char *message)
{
    int code = status_http_code(status);
    ingest_count_refused(request->worker, message);
    answer_status(request->exchange, status, code, message, is_worth_a_retry(code) ? 1000 : 0);
    request->exchange = NULL;
}

/* ---- what a request asks for ---- */

struct ask {
    enum ingest_mode mode;
    enum codec codec;
    bool has_producer;
    struct span producer;
    uint64_t sequence;
};

static enum status get_only(const struct http_head *head, const char *name, struct span *out_value,
                            struct error *err)
{
    if (http_head_get_only(head, name, out_value))
        return STATUS_OK;
    return error_set(err, STATUS_INVALID, "the header %s stands twice, with two values", name);
}

static enum status read_mode(const struct ingest *ingest, const struct http_head *head,
                             enum ingest_mode *out_mode, struct error *err)
{
    struct span header, text = http_query_get(head->query, "commit");
    TRY(get_only(head, "sluice-commit", &header, err));
    if (!text.data)
        text = header;
    if (!text.data || span_equal(text, span_of_text("wait_for"))) {
        *out_mode = MODE_WAIT_FOR;
    } else if (span_equal(text, span_of_text("auto"))) {
        *out_mode = MODE_AUTO;
    } else if (span_equal(text, span_of_text("force"))) {
        if (!ingest->publisher)
            return error_set(err, STATUS_HALTED, "commit=force: this server does not publish");
        *out_mode = MODE_FORCE;
    } else if (span_equal(text, span_of_text("remote"))) {
        if (!ingest->options.mirror)
            return error_set(err, STATUS_HALTED, "commit=remote: this server has no mirror");
        TRY(mirror_check(ingest->options.mirror, err));
        *out_mode = MODE_REMOTE;
    } else {
        return error_set(err, STATUS_INVALID,
                         "commit=%.*s: the modes are auto, wait_for, remote and force",
                         (int)size_min(text.length, 40), (const char *)text.data);
    }
    return STATUS_OK;
}

static enum status read_producer(const struct http_head *head, struct ask *ask, struct error *err)
{
    struct span producer, sequence, session;
    TRY(get_only(head, "sluice-producer", &producer, err));
    TRY(get_only(head, "sluice-sequence", &sequence, err));
    TRY(get_only(head, "sluice-session", &session, err));
    if (!producer.data && !sequence.data)
        return STATUS_OK;
    if (!producer.data || !sequence.data)
        return error_set(err, STATUS_INVALID,
                         "Sluice-Producer and Sluice-Sequence only go together");
    if (producer.length == 0 || producer.length > WAL_PRODUCER_ID_MAX)
        return error_set(err, STATUS_INVALID, "Sluice-Producer has 1 to %d bytes",
                         (int)WAL_PRODUCER_ID_MAX);
    if (!parse_u64((const char *)sequence.data, sequence.length, &ask->sequence) ||
        ask->sequence == 0)
        return error_set(err, STATUS_INVALID, "Sluice-Sequence is a whole number from 1");
    if (session.data && !span_equal(session, producer))
        return error_set(err, STATUS_INVALID,
                         "Sluice-Session differs from Sluice-Producer, which decides the order");
    ask->has_producer = true;
    ask->producer = producer;
    return STATUS_OK;
}

/* The body's coding: one, over all headers of that name and the lists in them. */
static enum status read_codings(const struct http_head *head, enum codec *out_codec,
                                struct error *err)
{
    unsigned count = 0;
    *out_codec = CODEC_NONE;
    for (size_t i = 0; i < head->header_count; i++) {
        struct span list = head->headers[i].value, name;
        if (!http_name_is(head->headers[i].name, "content-encoding"))
            continue;
        while (http_list_next(&list, &name)) {
            enum codec codec;
            if (!codec_from_name((const char *)name.data, name.length, &codec) ||
                (codec != CODEC_NONE && codec != CODEC_GZIP))
                return error_set(err, STATUS_MEDIA_TYPE,
                                 "Content-Encoding must be identity or gzip");
            if (count++ && (codec != CODEC_NONE || *out_codec != CODEC_NONE))
                return error_set(err, STATUS_MEDIA_TYPE,
                                 "Content-Encoding must be one: identity or gzip");
            *out_codec = codec;
        }
    }
    return STATUS_OK;
}

static enum status read_ask(const struct ingest *ingest, const struct http_head *head,
                            struct ask *ask, struct error *err)
{
    struct span type;
    TRY(get_only(head, "content-type", &type, err));
    if (!type.data || !is_media_type(type, protobuf_type))
        return error_set(err, STATUS_MEDIA_TYPE, "Content-Type must be %s", protobuf_type);
    TRY(read_codings(head, &ask->codec, err));
    TRY(read_mode(ingest, head, &ask->mode, err));
    return read_producer(head, ask, err);
}

bool ingest_admit(void *context, struct http_exchange *exchange)
{
    struct ingest_route *route = context;
    struct ingest_worker *worker = http_worker_state(http_exchange_worker(exchange));
    const struct http_head *head = http_exchange_head(exchange);
    struct ask ask = {0};
    struct error err;
    uint64_t retry_ms = 1000;
    if (read_ask(route->ingest, head, &ask, &err) != STATUS_OK) {
        refuse(worker, exchange, &err);
        return false;
    }
    enum status status = STATUS_OK;
    if (ingest_worker_is_full(worker))
        status = error_set(&err, STATUS_BUSY, "the log is behind; try again");
    else
        status = wal_admit(route->ingest->wal, head->content_length, &retry_ms, &err);
    if (status == STATUS_OK)
        return true;
    if (status == STATUS_NO_SPACE)
        ingest_hurry_all(worker);
    ingest_count_refused(worker, err.message);
    answer_status(exchange, status, status_http_code(status), err.message, retry_ms);
    return false;
}

/* ---- handling ---- */

static enum status expand_body(struct ingest_worker *worker, enum codec codec, struct span body,
                               struct span *out_body, struct error *err)
{
    size_t limit = worker->ingest->options.expanded_bytes_max;
    ingest_count(worker, COUNT_BODY_BYTES, body.length);
    if (codec == CODEC_NONE) {
        *out_body = body;
    } else {
        codec_expander_reset(worker->expander, limit);
        buf_clear(&worker->expanded);
        TRY(codec_expander_feed(worker->expander, body, &worker->expanded, err));
        TRY(codec_expander_finish(worker->expander, err));
        *out_body = span_of(worker->expanded.data, worker->expanded.length);
    }
    ingest_count(worker, COUNT_EXPANDED_BYTES, out_body->length);
    if (out_body->length > limit)
        return error_set(err, STATUS_TOO_LARGE, "the body has more than %zu bytes", limit);
    return STATUS_OK;
}

/* A repeat asks no less than the first did: it waits until what was stored is visible, or in the
 * mirror. */
static enum status wait_repeat(struct ingest_worker *worker, struct http_exchange *exchange,
                               const struct ask *ask, const struct wal_receipt *stored,
                               uint32_t count, struct error *err)
{
    struct ingest *ingest = worker->ingest;
    uint64_t last_seq = 0;
    for (uint32_t i = 0; i < count && ask->mode == MODE_FORCE; i++) {
        if (stored[i].rows && stored[i].table_id != ingest->table_ids[TABLE_DEAD_LETTERS])
            TRY(publisher_check(ingest->publisher, stored[i].table_id, err));
    }
    struct ingest_request *request = mem_alloc_zero(1, sizeof *request);
    if (!request)
        return error_set(err, STATUS_NO_MEMORY, "out of memory");
    request->worker = worker;
    request->exchange = exchange;
    request->mode = ask->mode;
    request->has_producer = true;
    request->producer_sequence = ask->sequence;
    snprintf(request->reject_reason, sizeof request->reject_reason, "%s", repeat_reason);
    for (uint32_t i = 0; i < count; i++) {
        request->rejected = size_max(request->rejected, stored[i].rejected);
        last_seq = stored[i].seq > last_seq ? stored[i].seq : last_seq;
        for (int table = 0; table < OTLP_TABLE_COUNT; table++) {
            if (ingest->table_ids[table] != stored[i].table_id || !stored[i].rows)
                continue;
            request->term = stored[i].term;
            request->group = stored[i].group;
            request->seq[table] = stored[i].seq;
            request->first_row[table] = stored[i].first_row;
            request->rows[table] = stored[i].rows;
        }
    }
    ingest_count(worker, COUNT_REPEATS, 1);
    if (ask->mode == MODE_REMOTE)
        ingest_remote(request, last_seq);
    else
        ingest_force(request);
    return STATUS_OK;
}

/* The same bytes mean something else on another path. */
static bool is_of_signal(const struct ingest *ingest, const struct wal_receipt *receipt,
                         enum otlp_signal signal)
{
    static const enum otlp_signal signals[TABLE_DEAD_LETTERS] = {
        [TABLE_LOGS] = SIGNAL_LOGS,         [TABLE_SPANS] = SIGNAL_TRACES,
        [TABLE_GAUGE] = SIGNAL_METRICS,     [TABLE_SUM] = SIGNAL_METRICS,
        [TABLE_HISTOGRAM] = SIGNAL_METRICS, [TABLE_EXP_HISTOGRAM] = SIGNAL_METRICS,
        [TABLE_SUMMARY] = SIGNAL_METRICS,
    };
    for (int t = 0; t < TABLE_DEAD_LETTERS; t++)
        if (ingest->table_ids[t] == receipt->table_id && receipt->rows)
            return signals[t] == signal;
    return true;
}

/* True: the exchange is answered or parked, and nothing is to be stored. */
static bool settle_repeat(struct ingest_worker *worker, struct http_exchange *exchange,
                          struct ingest_route *route, const struct ask *ask, struct hash128 hash)
{
    struct wal_receipt stored[16];
    struct receipts receipts = {.count = 0};
    struct error err;
    uint32_t count = 0;
    uint64_t expected = 0, rejected = 0;
    enum wal_producer_verdict verdict = wal_producer_begin(
        worker->ingest->wal, ask->producer, ask->sequence, hash, stored, &count, &expected);
    for (uint32_t i = 0; verdict == WAL_PRODUCER_REPEAT && i < count; i++)
        if (!is_of_signal(worker->ingest, &stored[i], route->signal))
            verdict = WAL_PRODUCER_MISMATCH;
    switch (verdict) {
    case WAL_PRODUCER_NEW:
        return false;
    case WAL_PRODUCER_REPEAT:
        if (ask->mode == MODE_FORCE || ask->mode == MODE_REMOTE) {
            if (wait_repeat(worker, exchange, ask, stored, count, &err) == STATUS_OK)
                return true;
            break;
        }
        for (uint32_t i = 0; i < count; i++) {
            if (stored[i].rows)
                add_receipt(&receipts, wal_log_id(worker->ingest->wal), stored[i].group,
                            stored[i].term, stored[i].seq, stored[i].first_row, stored[i].rows);
            rejected = stored[i].rejected > rejected ? stored[i].rejected : rejected;
        }
        ingest_count(worker, COUNT_REPEATS, 1);
        answer_stored(exchange, &receipts, "durable", rejected, repeat_reason);
        return true;
    case WAL_PRODUCER_OLD:
        ingest_count(worker, COUNT_REPEATS, 1);
        receipts.fields[receipts.count++] = (struct http_field){"Sluice-Duplicate", "true"};
        answer_stored(exchange, &receipts, "durable", 0, "");
        return true;
    case WAL_PRODUCER_IN_FLIGHT:
        if (worker->parked_count < COUNT_OF(worker->parked)) {
            struct ingest_route **place = http_exchange_scratch(exchange);
            *place = route;
            worker->parked[worker->parked_count++] = exchange;
            atomic_store(&worker->has_parked, true);
            return true;
        }
        error_set(&err, STATUS_BUSY, "an earlier request of this producer is being written");
        break;
    case WAL_PRODUCER_MISMATCH:
        error_set(&err, STATUS_CONFLICT,
                  "producer_mismatch: sequence %llu was stored with another body or path: a new "
                  "body goes under a new Sluice-Sequence, next %llu",
                  (unsigned long long)ask->sequence, (unsigned long long)expected);
        break;
    case WAL_PRODUCER_GAP:
        error_set(&err, STATUS_CONFLICT,
                  "producer_gap: sequence %llu, expected %llu: send the next body with "
                  "Sluice-Sequence: %llu",
                  (unsigned long long)ask->sequence, (unsigned long long)expected,
                  (unsigned long long)expected);
        break;
    case WAL_PRODUCER_UNCERTAIN:
        error_set(&err, STATUS_CONFLICT,
                  "producer_uncertain: the log was recovered from its mirror; of this producer it "
                  "has all sequences below %llu, later ones may be lost or in the tables: the "
                  "next request may have any number from there on",
                  (unsigned long long)expected);
        break;
    case WAL_PRODUCER_EXPIRED:
        error_set(&err, STATUS_CONFLICT,
                  "producer_expired: idle for longer than log.keep_producers; its sequences below "
                  "%llu were stored: go on under another Sluice-Producer, from Sluice-Sequence: 1",
                  (unsigned long long)expected);
        break;
    case WAL_PRODUCER_FULL:
        error_set(&err, STATUS_LIMIT,
                  "too many producers, none idle for log.keep_producers: send under a known "
                  "Sluice-Producer, or without one");
        break;
    }
    refuse(worker, exchange, &err);
    return true;
}

/* Notes what each table got of this request. False: out of memory. */
static bool add_contributions(struct ingest_worker *worker, struct ingest_request *request)
{
    const struct otlp_decoder *decoder = &worker->decoder;
    struct wal_contribution contribution = {
        .rejected = (uint32_t)request->rejected,
        .body_hash = request->body_hash,
        .producer = request->producer,
        .producer_length = request->producer_length,
        .producer_sequence = request->producer_sequence,
    };
    bool has_rows = false, is_failed = false;
    for (int i = 0; i < OTLP_TABLE_COUNT; i++) {
        const struct otlp_batch *batch = decoder->batches[i];
        if (!batch || batch->rows == decoder->rows_before[i])
            continue;
        contribution.first_row = request->first_row[i] = (uint32_t)decoder->rows_before[i];
        contribution.rows = request->rows[i] = (uint32_t)(batch->rows - decoder->rows_before[i]);
        buf_put(&worker->contributions[i], &contribution, sizeof contribution);
        is_failed |= worker->contributions[i].failed;
        has_rows = true;
    }
    if (!has_rows) {
        contribution.first_row = contribution.rows = 0;
        buf_put(&worker->contributions[OTLP_TABLE_COUNT], &contribution, sizeof contribution);
        is_failed |= worker->contributions[OTLP_TABLE_COUNT].failed;
    }
    return !is_failed;
}

static struct ingest_request *make_request(struct ingest_worker *worker,
                                           struct http_exchange *exchange, enum otlp_signal signal,
                                           const struct ask *ask, struct hash128 hash)
{
    struct ingest_request *request = mem_alloc_zero(1, sizeof *request);
    if (!request)
        return NULL;
    request->worker = worker;
    request->exchange = exchange;
    request->signal = signal;
    request->mode = ask->mode;
    request->body_hash = hash;
    request->has_producer = ask->has_producer;
    if (ask->has_producer) {
        memcpy(request->producer, ask->producer.data, ask->producer.length);
        request->producer_length = (uint8_t)ask->producer.length;
        request->producer_sequence = ask->sequence;
    }
    request->items = worker->decoder.items;
    request->rejected = worker->decoder.rejected;
    request->repaired = worker->decoder.repaired;
    request->moved_times = worker->decoder.moved_times;
    memcpy(request->reject_reason, worker->decoder.reject_reason, sizeof request->reject_reason);
    return request;
}

static bool has_dead_letters(const struct otlp_decoder *decoder)
{
    const struct otlp_batch *batch = decoder->batches[TABLE_DEAD_LETTERS];
    return batch && batch->rows > decoder->rows_before[TABLE_DEAD_LETTERS];
}

/* Their bytes go to files of their own; what those cannot take is counted. */
static void put_dead_letters_aside(struct ingest_worker *worker, enum otlp_signal signal)
{
    static const char *const names[SIGNAL_COUNT] = {"logs", "traces", "metrics"};
    struct ingest *ingest = worker->ingest;
    const struct otlp_batch *batch = worker->decoder.batches[TABLE_DEAD_LETTERS];
    struct buf items = {0};
    uint64_t count = 0, lost = 0;
    for (int64_t row = worker->decoder.rows_before[TABLE_DEAD_LETTERS]; row < batch->rows; row++) {
        struct span item = otlp_batch_bytes_at(batch, DEAD_RAW, row);
        if (item.length)
            wire_put_bytes(&items, 1, item);
        count += item.length > 0;
        lost += !item.length;
    }
    if (items.failed || !ingest->dead_letters ||
        !dead_letters_keep(ingest->dead_letters, (unsigned)signal, names[signal],
                           span_of(items.data, items.length)))
        lost += count;
    buf_deinit(&items);
    ingest_count(worker, COUNT_DEAD_LETTERS_LOST, lost);
}

/* While their lane stands still, or has as much on the log as it may, rejected items do not go
 * there (L27). */
static void settle_dead_letters(struct ingest_worker *worker, enum otlp_signal signal)
{
    if (!has_dead_letters(&worker->decoder) || ingest_may_store_dead_letters(worker))
        return;
    put_dead_letters_aside(worker, signal);
    otlp_decode_drop_dead_letters(&worker->decoder);
}

/* Decodes into the builders and queues the request. On failure nothing of it is left there. */
static enum status store(struct ingest_worker *worker, struct http_exchange *exchange,
                         enum otlp_signal signal, const struct ask *ask, struct span body,
                         struct hash128 hash, struct error *err)
{
    struct otlp_decoder *decoder = &worker->decoder;
    int64_t received_us = env_wall_ns(worker->ingest->env) / 1000;
    TRY(otlp_decode(decoder, signal, body, received_us, err));
    enum status status = ask->mode == MODE_FORCE ? ingest_check_lanes(worker, err) : STATUS_OK;
    if (status == STATUS_OK)
        status = ingest_check_room(worker, err);
    struct ingest_request *request = NULL;
    if (status == STATUS_OK) {
        request = make_request(worker, exchange, signal, ask, hash);
        if (!request)
            status = error_set(err, STATUS_NO_MEMORY, "out of memory");
    }
    if (status != STATUS_OK) {
        otlp_decode_rollback(decoder);
        return status;
    }
    settle_dead_letters(worker, signal);
    if (decoder->items == decoder->rejected && !has_dead_letters(decoder) &&
        !ask->has_producer) { /* nothing to store */
        ingest_count_stored(request);
        ingest_answer(request, "durable");
        mem_free(request);
        return STATUS_OK;
    }
    CHECK(add_contributions(worker, request)); /* 1,024 small structs, kept for ever */
    http_exchange_release_body(exchange);
    ingest_worker_add(worker, request);
    return STATUS_OK;
}

void ingest_handle(void *context, struct http_exchange *exchange)
{
    struct ingest_route *route = context;
    struct ingest_worker *worker = http_worker_state(http_exchange_worker(exchange));
    struct ask ask = {0};
    struct span body;
    struct error err;
    worker->retry_ms = 0;
    if (read_ask(route->ingest, http_exchange_head(exchange), &ask, &err) != STATUS_OK ||
        expand_body(worker, ask.codec, http_exchange_body(exchange), &body, &err) != STATUS_OK) {
        refuse(worker, exchange, &err);
        return;
    }
    struct hash128 hash = hash128(body.data, body.length);
    if (ask.has_producer && settle_repeat(worker, exchange, route, &ask, hash))
        return;
    if (store(worker, exchange, route->signal, &ask, body, hash, &err) != STATUS_OK) {
        if (ask.has_producer) /* a refused body consumes no number (L29) */
            wal_producer_abandon(worker->ingest->wal, ask.producer, ask.sequence);
        refuse(worker, exchange, &err);
    }
}
