/* SPDX-License-Identifier: Apache-2.0
 *
 * Deterministic OTLP request bodies (../docs/benchmarks.md lists the profiles). Everything about
 * request `index` follows from profile, seed, index, size and the time that is passed in.
 */
#include <stdio.h>

#include "app/cmd/cmd.h"
#include "format/wire/wire.h"

enum { SERVICES = 50, ROUTES = 20, TENANTS = 200, SERIES = 10000 };

static const int64_t day_ns = (int64_t)86400 * 1000000000;

/* What one body is made with: scratch buffers, one a nesting level. */
struct gen {
    struct random random;
    struct buf level[6];
    int64_t now_ns;
};

static void put_fixed64(struct buf *out, uint32_t number, uint64_t value)
{
    buf_put_varint(out, WIRE_KEY(number, WIRE_I64));
    buf_put_le64(out, value);
}

static void put_fixed32(struct buf *out, uint32_t number, uint32_t value)
{
    buf_put_varint(out, WIRE_KEY(number, WIRE_I32));
    buf_put_le32(out, value);
}

static void put_double(struct buf *out, uint32_t number, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_fixed64(out, number, bits);
}

static void put_text(struct buf *out, uint32_t number, const char *text)
{
    wire_put_bytes(out, number, span_of_text(text));
}

static void put_message(struct buf *out, uint32_t number, const struct buf *message)
{
    wire_put_bytes(out, number, span_of(message->data, message->length));
}

static void put_random_bytes(struct buf *out, uint32_t number, struct random *random, size_t bytes)
{
    uint8_t data[16];
    uint64_t a = random_next(random), b = random_next(random);
    memcpy(data, &a, 8);
    memcpy(data + 8, &b, 8);
    data[0] |= 1; /* never all zero */
    wire_put_bytes(out, number, span_of(data, bytes));
}

/* ---- attributes ---- */

static void put_pair(struct buf *out, uint32_t number, const char *key, const struct buf *value)
{
    uint8_t memory[512];
    struct buf pair = {.data = memory, .capacity = sizeof memory, .bytes_max = sizeof memory};
    put_text(&pair, 1, key);
    if (value->length + 8 < sizeof memory - pair.length) {
        put_message(&pair, 2, value);
        put_message(out, number, &pair);
        return;
    }
    struct buf large = {0};
    put_text(&large, 1, key);
    put_message(&large, 2, value);
    put_message(out, number, &large);
    buf_deinit(&large);
}

static void put_text_pair(struct buf *out, uint32_t number, const char *key, const char *text)
{
    struct buf value = {0};
    put_text(&value, 1, text);
    put_pair(out, number, key, &value);
    buf_deinit(&value);
}

static void put_int_pair(struct buf *out, uint32_t number, const char *key, uint64_t n)
{
    uint8_t memory[32];
    struct buf value = {.data = memory, .capacity = sizeof memory, .bytes_max = sizeof memory};
    wire_put_varint(&value, 3, n);
    put_pair(out, number, key, &value);
}

/* "before", the number, "after". */
static void put_name_pair(struct buf *out, uint32_t number, const char *key, const char *before,
                          uint64_t n, const char *after)
{
    char text[128];
    snprintf(text, sizeof text, "%s%llu%s", before, (unsigned long long)n, after);
    put_text_pair(out, number, key, text);
}

static void put_resource(struct gen *gen, struct buf *out, uint64_t service)
{
    struct buf *resource = &gen->level[5];
    buf_clear(resource);
    put_name_pair(resource, 1, "service.name", "service-", service, "");
    put_text_pair(resource, 1, "service.version", "1.4.2");
    put_name_pair(resource, 1, "host.name", "host-", service * 7 % 120, ".example.net");
    put_text_pair(resource, 1, "deployment.environment", service % 5 ? "production" : "staging");
    put_text_pair(resource, 1, "telemetry.sdk.language", service % 2 ? "java" : "go");
    put_name_pair(resource, 1, "k8s.pod.name", "pod-", service, "-7f9c");
    put_message(out, 1, resource);
}

static void put_scope(struct gen *gen, struct buf *out)
{
    struct buf *scope = &gen->level[5];
    buf_clear(scope);
    put_text(scope, 1, "io.example.instrumentation");
    put_text(scope, 2, "2.3.0");
    put_message(out, 1, scope);
}

static int64_t event_time(struct gen *gen)
{
    return gen->now_ns - (int64_t)random_below(&gen->random, (uint64_t)day_ns);
}

static void put_shop_attributes(struct gen *gen, struct buf *out, uint32_t number)
{
    struct random *random = &gen->random;
    uint64_t route = random_below(random, ROUTES);
    put_text_pair(out, number, "http.request.method", route % 3 ? "GET" : "POST");
    put_name_pair(out, number, "http.route", "/api/v1/resource-", route, "/{id}");
    put_int_pair(out, number, "http.response.status_code",
                 random_chance(random, 1, 50) ? 500 : 200);
    put_name_pair(out, number, "tenant.id", "tenant-", random_below(random, TENANTS), "");
    put_name_pair(out, number, "server.address", "10.0.0.", random_below(random, 250), "");
    put_int_pair(out, number, "server.port", 8080);
    put_text_pair(out, number, "network.protocol.version", "1.1");
    put_name_pair(out, number, "user.id", "user-", random_below(random, 100000), "");
    put_int_pair(out, number, "http.request.body.size", random_below(random, 65536));
    put_text_pair(out, number, "url.scheme", "https");
}

/* 30 attributes of mixed types, unique urls. */
static void put_wild_attributes(struct gen *gen, struct buf *out, uint32_t number)
{
    struct random *random = &gen->random;
    char key[32];
    put_name_pair(out, number, "url.full", "https://shop.example.net/item/", random_next(random),
                  "?ref=mail");
    for (int i = 0; i < 29; i++) {
        struct buf value = {0}, inner = {0};
        snprintf(key, sizeof key, "app.attribute.%02d", i);
        switch (i % 6) {
        case 0:
            wire_put_varint(&value, 3, random_next(random));
            break;
        case 1:
            put_double(&value, 4, (double)random_below(random, 1000000) / 997.0);
            break;
        case 2:
            wire_put_varint(&value, 2, random_below(random, 2));
            break;
        case 3:
            put_random_bytes(&value, 7, random, 16);
            break;
        case 4: /* an array of one string */
            buf_format(&inner, "tag-%llu", (unsigned long long)random_below(random, 1000));
            {
                struct buf any = {0}, array = {0};
                put_message(&any, 1, &inner);
                put_message(&array, 1, &any);
                put_message(&value, 5, &array);
                buf_deinit(&any);
                buf_deinit(&array);
            }
            break;
        default:
            buf_format(&inner, "value \xc3\xa9\xe2\x82\xac %llu",
                       (unsigned long long)random_next(random));
            put_message(&value, 1, &inner);
            break;
        }
        put_pair(out, number, key, &value);
        buf_deinit(&value);
        buf_deinit(&inner);
    }
}

/* ---- spans ---- */

static void put_events_and_links(struct gen *gen, struct buf *span, int64_t start_ns)
{
    struct random *random = &gen->random;
    struct buf *event = &gen->level[4];
    char stack[4096];
    buf_clear(event);
    put_fixed64(event, 1, (uint64_t)start_ns + 1000);
    put_text(event, 2, "exception");
    put_text_pair(event, 3, "exception.type", "java.lang.IllegalStateException");
    for (size_t i = 0; i < sizeof stack - 1; i++)
        stack[i] = "at com.example.Service.call(Service.java:42)\n"[i % 45];
    stack[sizeof stack - 1] = '\0';
    put_text_pair(event, 3, "exception.stacktrace", stack);
    put_message(span, 11, event);
    buf_clear(event);
    put_random_bytes(event, 1, random, 16);
    put_random_bytes(event, 2, random, 8);
    put_text_pair(event, 4, "link.kind", "follows");
    put_message(span, 13, event);
}

static void put_span(struct gen *gen, struct buf *out, const uint8_t trace_id[16], bool is_root,
                     bool is_wild)
{
    struct random *random = &gen->random;
    struct buf *span = &gen->level[3];
    int64_t start_ns = event_time(gen);
    buf_clear(span);
    wire_put_bytes(span, 1, span_of(trace_id, 16));
    put_random_bytes(span, 2, random, 8);
    if (!is_root)
        put_random_bytes(span, 4, random, 8);
    char name[64];
    snprintf(name, sizeof name, "GET /api/v1/resource-%llu",
             (unsigned long long)random_below(random, ROUTES));
    put_text(span, 5, name);
    wire_put_varint(span, 6, 1 + random_below(random, 5));
    put_fixed64(span, 7, (uint64_t)start_ns);
    put_fixed64(span, 8, (uint64_t)start_ns + random_below(random, 2000000000));
    if (is_wild)
        put_wild_attributes(gen, span, 9);
    else
        put_shop_attributes(gen, span, 9);
    if (is_wild && random_chance(random, 1, 10))
        put_events_and_links(gen, span, start_ns);
    if (random_chance(random, 1, 50)) {
        struct buf *status = &gen->level[4];
        buf_clear(status);
        put_text(status, 2, "upstream timed out");
        wire_put_varint(status, 3, 2);
        put_message(span, 15, status);
    }
    put_fixed32(span, 16, 0x101);
    put_message(out, 2, span);
}

static void put_traces(struct gen *gen, uint64_t items, bool is_wild, struct buf *out)
{
    struct random *random = &gen->random;
    struct buf *resource_spans = &gen->level[1], *scope_spans = &gen->level[2];
    uint8_t trace_id[16] = {0};
    uint64_t done = 0;
    while (done < items) {
        uint64_t here = 20 < items - done ? 20 : items - done;
        buf_clear(resource_spans);
        buf_clear(scope_spans);
        put_resource(gen, resource_spans, random_below(random, SERVICES));
        put_scope(gen, scope_spans);
        for (uint64_t i = 0; i < here; i++) {
            bool is_root = is_wild || i % 5 == 0;
            if (is_root) {
                uint64_t a = random_next(random), b = random_next(random) | 1;
                memcpy(trace_id, &a, 8);
                memcpy(trace_id + 8, &b, 8);
            }
            put_span(gen, scope_spans, trace_id, is_root, is_wild);
        }
        put_message(resource_spans, 2, scope_spans);
        put_message(out, 1, resource_spans);
        done += here;
    }
}

/* ---- logs ---- */

static void put_log_record(struct gen *gen, struct buf *out)
{
    static const char *const words[] = {"order", "payment", "stock", "user", "cache", "queue"};
    struct random *random = &gen->random;
    struct buf *record = &gen->level[3];
    struct buf *value = &gen->level[4];
    char body[160];
    int64_t time_ns = event_time(gen);
    unsigned severity = random_chance(random, 1, 20) ? 17 : 9;
    buf_clear(record);
    put_fixed64(record, 1, (uint64_t)time_ns);
    wire_put_varint(record, 2, severity);
    put_text(record, 3, severity == 17 ? "ERROR" : "INFO");
    snprintf(body, sizeof body,
             "%s %016llx handled by worker %llu in %llu microseconds, retrying the next one is not "
             "needed",
             words[random_below(random, COUNT_OF(words))], (unsigned long long)random_next(random),
             (unsigned long long)random_below(random, 64),
             (unsigned long long)random_below(random, 100000));
    buf_clear(value);
    put_text(value, 1, body);
    put_message(record, 5, value);
    put_shop_attributes(gen, record, 6);
    put_int_pair(record, 6, "thread.id", random_below(random, 64));
    if (random_chance(random, 3, 10)) {
        put_random_bytes(record, 9, random, 16);
        put_random_bytes(record, 10, random, 8);
    }
    put_fixed64(record, 11, (uint64_t)time_ns + 1000000);
    put_message(out, 2, record);
}

static void put_logs(struct gen *gen, uint64_t items, struct buf *out)
{
    struct buf *resource_logs = &gen->level[1], *scope_logs = &gen->level[2];
    uint64_t done = 0;
    while (done < items) {
        uint64_t here = 50 < items - done ? 50 : items - done;
        buf_clear(resource_logs);
        buf_clear(scope_logs);
        put_resource(gen, resource_logs, random_below(&gen->random, SERVICES));
        put_scope(gen, scope_logs);
        for (uint64_t i = 0; i < here; i++)
            put_log_record(gen, scope_logs);
        put_message(resource_logs, 2, scope_logs);
        put_message(out, 1, resource_logs);
        done += here;
    }
}

/* ---- metrics ---- */

static void put_point_head(struct gen *gen, struct buf *point, uint32_t attributes, uint64_t series)
{
    put_name_pair(point, attributes, "series.id", "series-", series, "");
    put_name_pair(point, attributes, "tenant.id", "tenant-", series % TENANTS, "");
    put_fixed64(point, 2, (uint64_t)(gen->now_ns - day_ns));
    put_fixed64(point, 3, (uint64_t)event_time(gen));
}

static void put_exemplar(struct gen *gen, struct buf *point, uint32_t number)
{
    struct buf exemplar = {0};
    put_fixed64(&exemplar, 2, (uint64_t)gen->now_ns);
    put_double(&exemplar, 3, 0.25);
    put_random_bytes(&exemplar, 4, &gen->random, 8);
    put_random_bytes(&exemplar, 5, &gen->random, 16);
    put_message(point, number, &exemplar);
    buf_deinit(&exemplar);
}

static void put_number_point(struct gen *gen, struct buf *data, bool is_int, uint64_t series)
{
    struct buf *point = &gen->level[4];
    buf_clear(point);
    put_point_head(gen, point, 7, series);
    if (is_int)
        put_fixed64(point, 6, random_below(&gen->random, 1000000));
    else
        put_double(point, 4, (double)random_below(&gen->random, 1000000) / 1024.0);
    if (random_chance(&gen->random, 1, 10))
        put_exemplar(gen, point, 5);
    put_message(data, 1, point);
}

static void put_histogram_point(struct gen *gen, struct buf *data, uint64_t series)
{
    struct buf *point = &gen->level[4];
    struct buf counts = {0}, bounds = {0};
    uint64_t total = 0;
    buf_clear(point);
    put_point_head(gen, point, 9, series);
    for (int i = 0; i < 16; i++) {
        uint64_t count = random_below(&gen->random, 100);
        double bound = (double)(1 << i);
        total += count;
        buf_put_le64(&counts, count);
        if (i < 15)
            buf_put(&bounds, &bound, sizeof bound);
    }
    put_fixed64(point, 4, total);
    put_double(point, 5, (double)total * 12.5);
    put_message(point, 6, &counts);
    put_message(point, 7, &bounds);
    put_double(point, 11, 0.5);
    put_double(point, 12, 30000.0);
    put_message(data, 1, point);
    buf_deinit(&counts);
    buf_deinit(&bounds);
}

static void put_exp_histogram_point(struct gen *gen, struct buf *data, uint64_t series)
{
    struct buf *point = &gen->level[4];
    struct buf counts = {0}, buckets = {0};
    uint64_t total = 0;
    buf_clear(point);
    put_point_head(gen, point, 1, series);
    for (int i = 0; i < 12; i++) {
        uint64_t count = random_below(&gen->random, 300);
        total += count;
        buf_put_varint(&counts, count);
    }
    wire_put_varint(&buckets, 1, 7); /* zigzag -4 */
    put_message(&buckets, 2, &counts);
    put_fixed64(point, 4, total + 1);
    put_double(point, 5, (double)total);
    wire_put_varint(point, 6, 6); /* zigzag 3 */
    put_fixed64(point, 7, 1);
    put_message(point, 8, &buckets);
    put_message(data, 1, point);
    buf_deinit(&counts);
    buf_deinit(&buckets);
}

static void put_summary_point(struct gen *gen, struct buf *data, uint64_t series)
{
    struct buf *point = &gen->level[4];
    struct buf quantile = {0};
    buf_clear(point);
    put_point_head(gen, point, 7, series);
    put_fixed64(point, 4, 1000);
    put_double(point, 5, 123456.75);
    for (int i = 0; i < 3; i++) {
        static const double quantiles[] = {0.5, 0.9, 0.99};
        buf_clear(&quantile);
        put_double(&quantile, 1, quantiles[i]);
        put_double(&quantile, 2, (double)random_below(&gen->random, 1000));
        put_message(point, 6, &quantile);
    }
    put_message(data, 1, point);
    buf_deinit(&quantile);
}

static void put_metric(struct gen *gen, struct buf *out, uint64_t kind, uint64_t series)
{
    static const char *const names[] = {"system.memory.usage", "http.server.requests",
                                        "http.server.duration", "rpc.latency", "gc.pause"};
    static const uint32_t fields[] = {5, 7, 9, 10, 11};
    struct buf *metric = &gen->level[3];
    struct buf data = {0};
    buf_clear(metric);
    put_text(metric, 1, names[kind]);
    put_text(metric, 2, "generated");
    put_text(metric, 3, kind == 0 ? "By" : "ms");
    if (kind < 2)
        put_number_point(gen, &data, kind == 1, series);
    else if (kind == 2)
        put_histogram_point(gen, &data, series);
    else if (kind == 3)
        put_exp_histogram_point(gen, &data, series);
    else
        put_summary_point(gen, &data, series);
    if (kind >= 1 && kind <= 3)
        wire_put_varint(&data, 2, 2); /* cumulative */
    if (kind == 1)
        wire_put_varint(&data, 3, 1);
    put_message(metric, fields[kind], &data);
    put_message(out, 2, metric);
    buf_deinit(&data);
}

static void put_metrics(struct gen *gen, uint64_t items, struct buf *out)
{
    struct buf *resource_metrics = &gen->level[1], *scope_metrics = &gen->level[2];
    uint64_t done = 0;
    while (done < items) {
        uint64_t here = 50 < items - done ? 50 : items - done;
        buf_clear(resource_metrics);
        buf_clear(scope_metrics);
        put_resource(gen, resource_metrics, random_below(&gen->random, SERVICES));
        put_scope(gen, scope_metrics);
        for (uint64_t i = 0; i < here; i++)
            put_metric(gen, scope_metrics, (done + i) % 5, random_below(&gen->random, SERIES));
        put_message(resource_metrics, 2, scope_metrics);
        put_message(out, 1, resource_metrics);
        done += here;
    }
}

void gen_body(enum gen_profile profile, uint64_t seed, uint64_t index, uint64_t items,
              int64_t now_ns, struct buf *out)
{
    struct gen gen = {.now_ns = now_ns};
    random_init(&gen.random, seed * 0x9e3779b97f4a7c15u + index * 2 + (uint64_t)profile * 7919);
    if (profile == GEN_LOGS)
        put_logs(&gen, items, out);
    else if (profile == GEN_METRICS)
        put_metrics(&gen, items, out);
    else
        put_traces(&gen, items, profile == GEN_WILD, out);
    for (size_t i = 0; i < COUNT_OF(gen.level); i++) {
        out->failed |= gen.level[i].failed;
        buf_deinit(&gen.level[i]);
    }
}

bool gen_profile_parse(const char *text, enum gen_profile *out_profile)
{
    for (int i = 0; i < GEN_PROFILE_COUNT; i++) {
        if (strcmp(gen_profile_name((enum gen_profile)i), text) == 0) {
            *out_profile = (enum gen_profile)i;
            return true;
        }
    }
    return false;
}

const char *gen_profile_name(enum gen_profile profile)
{
    static const char *const names[] = {"shop", "wild", "logs", "metrics"};
    return names[profile];
}

const char *gen_profile_path(enum gen_profile profile)
{
    static const char *const paths[] = {"/v1/traces", "/v1/traces", "/v1/logs", "/v1/metrics"};
    return paths[profile];
}
