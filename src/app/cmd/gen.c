/* SPDX-License-Identifier: Apache-2.0
 *
 * sluice gen: sends generated telemetry over several connections, paced or flat out, and reports
 * what the answers took. Each connection is a thread with one blocking client.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "app/cmd/cmd_internal.h"
#include "format/codec/codec.h"
#include "format/wire/wire.h"

enum { SAMPLES_MAX = 4 << 20, DISTINCT_MAX = 1024, REQUEST_ITEMS_MAX = 10000000 };

struct gen_options gen_options_default(void)
{
    return (struct gen_options){
        .profile = GEN_SHOP,
        .seed = 1,
        .items = 100000,
        .request_items = 1000,
        .connections = 4,
        .retries = 200,
        .address = "127.0.0.1",
        .port = 4318,
    };
}

struct run {
    struct env *env;
    const struct gen_options *options;
    int64_t start_ns, base_wall_ns;
    uint64_t request_count;
    struct buf *made; /* options->distinct bodies, as they are sent; or NULL */
    _Atomic uint64_t next_request, requests_done, items, body_bytes, failed, retries;
    _Atomic uint64_t uncommitted; /* `force`: stored, but no table had it in time */
    _Atomic bool must_stop;
    struct env_mutex *lock; /* guards err and receipts */
    struct error err;
    FILE *receipts;
};

struct sender {
    struct run *run;
    uint64_t index;
    struct env_thread *thread;
    uint32_t *samples_us;
    size_t sample_count, sample_capacity;
    uint64_t producer_sequence;
};

static void note_sample(struct sender *sender, int64_t elapsed_ns)
{
    if (sender->sample_count == sender->sample_capacity) {
        size_t capacity = sender->sample_capacity ? sender->sample_capacity * 2 : 1024;
        uint32_t *samples = mem_resize(sender->samples_us, capacity * sizeof *samples);
        if (!samples || capacity > SAMPLES_MAX)
            return;
        sender->samples_us = samples;
        sender->sample_capacity = capacity;
    }
    sender->samples_us[sender->sample_count++] = (uint32_t)(elapsed_ns / 1000);
}

static void fail_run(struct run *run, const struct error *err)
{
    env_lock(run->lock);
    if (!atomic_exchange(&run->must_stop, true))
        run->err = *err;
    env_unlock(run->lock);
    atomic_fetch_add(&run->failed, 1);
}

static void note_receipts(struct run *run, uint64_t request, uint64_t items,
                          const struct http_response *response)
{
    if (!run->receipts)
        return;
    env_lock(run->lock);
    fprintf(run->receipts, "{\"request\":%llu,\"items\":%llu,\"receipts\":[",
            (unsigned long long)request, (unsigned long long)items);
    bool is_first = true;
    for (size_t i = 0; i < response->header_count; i++) {
        if (!http_name_is(response->headers[i].name, "sluice-receipt"))
            continue;
        fprintf(run->receipts, "%s\"%.*s\"", is_first ? "" : ",",
                (int)response->headers[i].value.length,
                (const char *)response->headers[i].value.data);
        is_first = false;
    }
    fputs("]}\n", run->receipts);
    fflush(run->receipts);
    env_unlock(run->lock);
}

static uint64_t retry_after_ms(const struct http_response *response)
{
    struct span text = http_response_get(response, "retry-after");
    uint64_t seconds = 0;
    if (!text.data || !parse_u64((const char *)text.data, text.length, &seconds) || seconds > 60)
        return 200;
    return seconds * 1000;
}

struct request {
    struct http_field fields[6];
    size_t field_count;
    char producer[WAL_PRODUCER_ID_MAX + 1], sequence[24];
    struct span body;
};

static void make_fields(struct sender *sender, struct request *request)
{
    const struct gen_options *options = sender->run->options;
    request->field_count = 0;
    request->fields[request->field_count++] =
        (struct http_field){"Content-Type", "application/x-protobuf"};
    if (options->with_gzip)
        request->fields[request->field_count++] = (struct http_field){"Content-Encoding", "gzip"};
    if (options->commit)
        request->fields[request->field_count++] =
            (struct http_field){"Sluice-Commit", options->commit};
    if (!options->producer)
        return;
    snprintf(request->producer, sizeof request->producer, "%s-%llu", options->producer,
             (unsigned long long)sender->index);
    snprintf(request->sequence, sizeof request->sequence, "%llu",
             (unsigned long long)++sender->producer_sequence);
    request->fields[request->field_count++] =
        (struct http_field){"Sluice-Producer", request->producer};
    request->fields[request->field_count++] =
        (struct http_field){"Sluice-Sequence", request->sequence};
}

/* Is it text that a terminal can be given? */
static bool is_printable(struct span text)
{
    for (size_t i = 0; i < text.length; i++) {
        if (text.data[i] < ' ' || text.data[i] == 0x7f)
            return false;
    }
    return utf8_is_valid(text.data, text.length);
}

/* What an answer says: the message of a google.rpc.Status { code 1, message 2 }, or plain text. */
static void set_refusal(struct error *err, const struct http_response *response, enum status status)
{
    struct wire wire = wire_of(response->body);
    struct wire_field field;
    struct span message = {0};
    while (wire_next(&wire, &field)) {
        if (field.key == WIRE_KEY(2, WIRE_LEN))
            message = field.bytes;
    }
    if (wire.is_malformed || !message.length)
        message = response->body;
    while (message.length && message.data[message.length - 1] == '\n')
        message.length--;
    if (message.length && is_printable(message))
        error_set(err, status, "the server answered %d: %.*s", response->code,
                  (int)size_min(message.length, 300), (const char *)message.data);
    else
        error_set(err, status, "the server answered %d and %zu bytes that are no text",
                  response->code, response->body.length);
}

/* Is the same request worth sending again? */
static bool is_retryable(const struct gen_options *options, enum status status,
                         const struct http_response *response)
{
    if (status != STATUS_OK) /* the outcome is unknown: safe only with a producer's sequence */
        return options->producer != NULL;
    return response->code == 429 || response->code == 503 ||
           (response->code == 504 && options->producer);
}

/* One code for all ways to lose a server; an answer that is no HTTP is not among them. */
static void set_lost(struct error *err, enum status status)
{
    if (status == STATUS_CLOSED || status == STATUS_TIMEOUT)
        err->status = STATUS_IO;
}

static void note_stored(struct sender *sender, uint64_t index, uint64_t items,
                        const struct http_response *response)
{
    struct run *run = sender->run;
    struct span boundary = http_response_get(response, "sluice-boundary");
    const char *mode = run->options->commit ? run->options->commit : "";
    const char *wanted = strcmp(mode, "force") == 0    ? "visible"
                         : strcmp(mode, "remote") == 0 ? "remote"
                                                       : NULL;
    if (wanted && !span_equal(boundary, span_of_text(wanted)))
        atomic_fetch_add(&run->uncommitted, 1);
    note_receipts(run, index, items, response);
}

/* Sends one request, due at `due_ns`, until it is stored. False: the run has failed, by this
 * request or by another. */
static bool send_request(struct sender *sender, struct http_client *client, uint64_t index,
                         uint64_t items, struct span body, int64_t due_ns)
{
    struct run *run = sender->run;
    const struct gen_options *options = run->options;
    struct request request = {.body = body};
    struct http_response response;
    struct error err;
    make_fields(sender, &request);
    for (uint64_t attempt = 0; !atomic_load(&run->must_stop); attempt++) {
        int64_t began_ns = env_mono_ns(run->env);
        began_ns = began_ns < due_ns ? began_ns : due_ns;
        enum status status =
            http_client_request(client, "POST", gen_profile_path(options->profile), request.fields,
                                request.field_count, body, &response, &err);
        if (status == STATUS_OK && response.code == 200) {
            note_sample(sender, env_mono_ns(run->env) - began_ns);
            note_stored(sender, index, items, &response);
            return true;
        }
        bool is_again = is_retryable(options, status, &response);
        if (is_again && attempt < options->retries) {
            atomic_fetch_add(&run->retries, 1);
            env_sleep_ms(run->env, status == STATUS_OK ? retry_after_ms(&response) : 200);
            continue;
        }
        if (status == STATUS_OK)
            set_refusal(&err, &response, is_again ? STATUS_BUSY : STATUS_INVALID);
        else
            set_lost(&err, status);
        if (is_again)
            error_prefix(&err, "given up after %llu retries", (unsigned long long)attempt);
        fail_run(run, &err);
        return false;
    }
    return false;
}

/* Waits until a request is due and returns when that was; INT64_MAX: as soon as it can be. */
static int64_t wait_for_turn(struct run *run, uint64_t index)
{
    const struct gen_options *options = run->options;
    if (!options->items_a_second)
        return INT64_MAX;
    double due_s = (double)index * (double)options->request_items / (double)options->items_a_second;
    int64_t due_ns = run->start_ns + (int64_t)(due_s * 1e9);
    int64_t now_ns = env_mono_ns(run->env);
    if (due_ns > now_ns)
        env_sleep_ms(run->env, (uint64_t)((due_ns - now_ns) / 1000000));
    return due_ns;
}

/* The body of a request, in one of the buffers; false without memory. */
static bool make_body(const struct run *run, struct codec_compressor *compressor, uint64_t index,
                      uint64_t items, struct buf *body, struct buf *packed, struct error *err)
{
    buf_clear(body);
    buf_clear(packed);
    gen_body(run->options->profile, run->options->seed, index, items, run->base_wall_ns, body);
    if (buf_status(body, "gen: a request", err) != STATUS_OK)
        return false;
    return !compressor ||
           codec_compress(compressor, span_of(body->data, body->length), packed, err) == STATUS_OK;
}

static enum status make_compressor(const struct gen_options *options,
                                   struct codec_compressor **out_compressor, struct error *err)
{
    return options->with_gzip ? codec_compressor_create(CODEC_GZIP, 1, out_compressor, err)
                              : STATUS_OK;
}

static enum status make_all(struct run *run, struct error *err)
{
    const struct gen_options *options = run->options;
    struct codec_compressor *compressor = NULL;
    struct buf body = {0};
    if (!options->distinct)
        return STATUS_OK;
    run->made = mem_alloc_zero((size_t)options->distinct, sizeof *run->made);
    if (!run->made)
        return error_set(err, STATUS_NO_MEMORY, "gen: out of memory");
    enum status status = make_compressor(options, &compressor, err);
    for (uint64_t i = 0; i < options->distinct && status == STATUS_OK; i++) {
        struct buf *made = &run->made[i];
        if (!make_body(run, compressor, i, options->request_items, compressor ? &body : made,
                       compressor ? made : &body, err))
            status = err->status;
    }
    codec_compressor_destroy(compressor);
    buf_deinit(&body);
    return status;
}

static void send_all(struct sender *sender, struct http_client *client)
{
    struct run *run = sender->run;
    const struct gen_options *options = run->options;
    struct buf body = {0}, packed = {0};
    struct codec_compressor *compressor = NULL;
    struct error err;
    if (make_compressor(options, &compressor, &err) != STATUS_OK) {
        fail_run(run, &err);
        return;
    }
    for (;;) {
        uint64_t index = atomic_fetch_add(&run->next_request, 1);
        if (index >= run->request_count || atomic_load(&run->must_stop))
            break;
        uint64_t items = options->items - index * options->request_items;
        items = items < options->request_items ? items : options->request_items;
        const struct buf *sent = compressor ? &packed : &body;
        if (run->made && items == options->request_items) {
            sent = &run->made[index % options->distinct];
        } else if (!make_body(run, compressor, index, items, &body, &packed, &err)) {
            fail_run(run, &err);
            break;
        }
        struct span bytes = span_of(sent->data, sent->length);
        if (!send_request(sender, client, index, items, bytes, wait_for_turn(run, index)))
            break;
        atomic_fetch_add(&run->requests_done, 1);
        atomic_fetch_add(&run->items, items);
        atomic_fetch_add(&run->body_bytes, bytes.length);
    }
    codec_compressor_destroy(compressor);
    buf_deinit(&body);
    buf_deinit(&packed);
}

static void sender_main(void *context)
{
    struct sender *sender = context;
    struct run *run = sender->run;
    struct http_client *client = NULL;
    struct error err;
    if (http_client_create(run->options->address, run->options->port, 60000, &client, &err) !=
        STATUS_OK)
        fail_run(run, &err);
    else
        send_all(sender, client);
    http_client_destroy(client);
}

static void show_progress(struct run *run)
{
    uint64_t shown = 0;
    while (shown < run->request_count && !atomic_load(&run->must_stop)) {
        env_sleep_ms(run->env, 200);
        shown = atomic_load(&run->requests_done);
        unsigned width =
            run->request_count ? (unsigned)((double)shown * 40 / (double)run->request_count) : 40;
        fprintf(stderr, "\r[%-40.*s] %llu items", (int)width,
                "########################################",
                (unsigned long long)atomic_load(&run->items));
    }
    fputc('\n', stderr);
}

static int compare_samples(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void fill_latencies(struct sender *senders, uint64_t count, struct gen_report *report)
{
    size_t total = 0, at = 0;
    for (uint64_t i = 0; i < count; i++)
        total += senders[i].sample_count;
    uint32_t *all = mem_alloc((total + 1) * sizeof *all);
    for (uint64_t i = 0; i < count; i++) {
        if (all && senders[i].sample_count)
            memcpy(all + at, senders[i].samples_us, senders[i].sample_count * sizeof *all);
        at += senders[i].sample_count;
    }
    if (all && total) {
        qsort(all, total, sizeof *all, compare_samples);
        report->p50_us = all[total / 2];
        report->p90_us = all[total * 9 / 10];
        report->p99_us = all[total * 99 / 100];
        report->p999_us = all[total * 999 / 1000];
        report->max_us = all[total - 1];
    }
    mem_free(all);
}

static void fill_report(struct run *run, struct sender *senders, uint64_t count,
                        struct gen_report *out_report)
{
    *out_report = (struct gen_report){
        .requests = atomic_load(&run->requests_done),
        .items = atomic_load(&run->items),
        .body_bytes = atomic_load(&run->body_bytes),
        .failed_requests = atomic_load(&run->failed),
        .retries = atomic_load(&run->retries),
        .uncommitted_requests = atomic_load(&run->uncommitted),
        .seconds = (double)(env_mono_ns(run->env) - run->start_ns) / 1e9,
    };
    if (senders)
        fill_latencies(senders, count, out_report);
}

enum status gen_run(struct env *env, const struct gen_options *options,
                    struct gen_report *out_report, struct error *err)
{
    struct run run = {.env = env, .options = options};
    struct sender *senders = mem_alloc_zero((size_t)options->connections, sizeof *senders);
    uint64_t started = 0;
    enum status status = STATUS_OK;
    run.request_count = options->items / options->request_items;
    run.request_count += options->items % options->request_items != 0;
    run.lock = env_mutex_create(env);
    run.base_wall_ns = env_wall_ns(env);
    status = make_all(&run, err);
    run.start_ns = env_mono_ns(env);
    if (status == STATUS_OK && options->receipts_path &&
        !(run.receipts = fopen(options->receipts_path, "we")))
        status = error_set_errno(err, errno, "open %s", options->receipts_path);
    if (run.receipts) /* what the bodies follow from, for --verify */
        fprintf(run.receipts, "{\"profile\":\"%s\",\"seed\":%llu,\"base_unix_nano\":%lld}\n",
                gen_profile_name(options->profile), (unsigned long long)options->seed,
                (long long)run.base_wall_ns);
    if (!senders || !run.lock)
        status = error_set(err, STATUS_NO_MEMORY, "gen: out of memory");
    for (; status == STATUS_OK && started < options->connections; started++) {
        senders[started].run = &run;
        senders[started].index = started;
        status = env_thread_start(env, "gen", sender_main, &senders[started],
                                  &senders[started].thread, err);
    }
    if (status == STATUS_OK && options->with_progress)
        show_progress(&run);
    for (uint64_t i = 0; i < started; i++)
        env_thread_join(senders[i].thread);
    if (status == STATUS_OK && atomic_load(&run.failed)) {
        *err = run.err;
        status = error_prefix(err, "%llu of %llu items are stored",
                              (unsigned long long)atomic_load(&run.items),
                              (unsigned long long)options->items);
    }
    fill_report(&run, senders, started, out_report);
    for (uint64_t i = 0; i < started; i++)
        mem_free(senders[i].samples_us);
    for (uint64_t i = 0; run.made && i < options->distinct; i++)
        buf_deinit(&run.made[i]);
    mem_free(run.made);
    if (run.receipts)
        fclose(run.receipts);
    env_mutex_destroy(run.lock);
    mem_free(senders);
    return status;
}

static void print_report(const struct gen_options *options, const struct gen_report *report,
                         bool as_json)
{
    double rate = report->seconds > 0 ? (double)report->items / report->seconds : 0;
    printf(as_json
               ? "{\"profile\":\"%s\",\"seed\":%llu,\"requests\":%llu,\"items\":%llu,"
                 "\"body_bytes\":%llu,\"retries\":%llu,\"seconds\":%.3f,\"items_a_second\":%.0f,"
                 "\"ack_p50_us\":%llu,\"ack_p90_us\":%llu,\"ack_p99_us\":%llu,"
                 "\"ack_p999_us\":%llu,\"ack_max_us\":%llu"
               : "profile %s, seed %llu: %llu requests, %llu items, %llu bytes, %llu retries\n"
                 "%.3f s, %.0f items/s; ack p50 %llu us, p90 %llu us, p99 %llu us, p99.9 %llu us, "
                 "max %llu us",
           gen_profile_name(options->profile), (unsigned long long)options->seed,
           (unsigned long long)report->requests, (unsigned long long)report->items,
           (unsigned long long)report->body_bytes, (unsigned long long)report->retries,
           report->seconds, rate, (unsigned long long)report->p50_us,
           (unsigned long long)report->p90_us, (unsigned long long)report->p99_us,
           (unsigned long long)report->p999_us, (unsigned long long)report->max_us);
    if (as_json)
        printf(",\"uncommitted_requests\":%llu}", (unsigned long long)report->uncommitted_requests);
    fputs("\n", stdout);
    if (report->uncommitted_requests)
        fprintf(stderr,
                "sluice: %llu of %llu requests are durable, but no table had them before the "
                "server's time-out\n",
                (unsigned long long)report->uncommitted_requests,
                (unsigned long long)report->requests);
}

static bool is_commit_mode(const char *text)
{
    static const char *const modes[] = {"auto", "wait_for", "remote", "force"};
    for (size_t i = 0; i < COUNT_OF(modes); i++)
        if (strcmp(text, modes[i]) == 0)
            return true;
    return false;
}

int cmd_gen(struct invocation *invocation)
{
    struct error err;
    struct gen_options options = gen_options_default();
    struct gen_report report;
    bool as_json = cmd_take_flag(invocation, "--json");
    const char *verify_path = cmd_take_option(invocation, "--verify");
    if (verify_path)
        return cmd_no_more_words(invocation, 0) ? gen_verify(invocation, verify_path, as_json) : 2;
    const char *profile = cmd_take_option(invocation, "--profile");
    options.address = invocation->settings.listen_address;
    options.port = (uint16_t)invocation->settings.otlp_http_port;
    options.producer = cmd_take_option(invocation, "--producer");
    options.commit = cmd_take_option(invocation, "--commit");
    options.receipts_path = cmd_take_option(invocation, "--receipts");
    options.with_gzip = cmd_take_flag(invocation, "--gzip");
    options.with_progress = os_is_terminal(OS_STDERR);
    if (!cmd_take_number(invocation, "--seed", &options.seed) ||
        !cmd_take_number(invocation, "--items", &options.items) ||
        !cmd_take_number(invocation, "--request-items", &options.request_items) ||
        !cmd_take_number(invocation, "--connections", &options.connections) ||
        !cmd_take_number(invocation, "--rate", &options.items_a_second) ||
        !cmd_take_number(invocation, "--distinct", &options.distinct) ||
        !cmd_take_number(invocation, "--retries", &options.retries) ||
        !cmd_no_more_words(invocation, 0))
        return 2;
    if (options.commit && !is_commit_mode(options.commit))
        return cmd_usage("--commit %s: auto, wait_for, remote or force", options.commit);
    if (profile && !gen_profile_parse(profile, &options.profile))
        return cmd_usage("--profile %s: shop, wild, logs or metrics", profile);
    if (!options.request_items || options.request_items > REQUEST_ITEMS_MAX)
        return cmd_usage("--request-items is 1 to %d", REQUEST_ITEMS_MAX);
    if (!options.connections || options.connections > 1024)
        return cmd_usage("--connections is 1 to 1024");
    if (options.distinct > DISTINCT_MAX)
        return cmd_usage("--distinct is at most %d", DISTINCT_MAX);
    if (options.distinct && options.receipts_path)
        return cmd_usage("--receipts needs bodies that differ; leave out --distinct");
    enum status status = gen_run(invocation->env, &options, &report, &err);
    if (status != STATUS_OK)
        return cmd_fail(&err);
    print_report(&options, &report, as_json);
    return 0;
}
