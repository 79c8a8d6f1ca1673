/* SPDX-License-Identifier: Apache-2.0
 *
 * sluice demo: a real server on real ports, real requests, a short report. On a terminal it keeps
 * serving; otherwise it ends with exit code 0.
 */

#include "app/cmd/cmd_internal.h"

struct demo_part {
    enum gen_profile profile;
    uint64_t items;
    struct gen_report report;
};

static enum status send_part(struct invocation *invocation, uint16_t port, struct demo_part *part,
                             struct error *err)
{
    struct gen_options options = gen_options_default();
    options.profile = part->profile;
    options.items = part->items;
    options.connections = 2;
    options.address = invocation->settings.listen_address;
    options.port = port;
    options.producer = "demo";
    options.seed =
        (uint64_t)env_wall_ns(invocation->env); /* a second demo adds, it does not repeat */
    char producer[WAL_PRODUCER_ID_MAX];
    snprintf(producer, sizeof producer, "demo-%llx-%s", (unsigned long long)options.seed,
             gen_profile_name(part->profile));
    options.producer = producer;
    return gen_run(invocation->env, &options, &part->report, err);
}

/* Everything that was acknowledged is in the tables, or a minute has passed. */
static bool wait_published(struct invocation *invocation, struct server *server)
{
    int64_t deadline_ns = env_mono_ns(invocation->env) + (int64_t)60 * 1000000000;
    struct stack *stack = server_stack(server);
    for (;;) {
        uint64_t end = wal_synced_end(stack->wal, 0).seq, behind = 0;
        struct publish_lane_info lane;
        for (size_t i = 0; publisher_lane_at(stack->publisher, i, &lane); i++) {
            uint32_t table_id = 0;
            struct error err;
            if (wal_table_open(stack->wal, lane.table, &table_id, &err) == STATUS_OK)
                behind += wal_pending(stack->wal, 0, table_id, lane.committed.seq).rows;
        }
        UNUSED(end);
        if (behind == 0)
            return true;
        if (env_mono_ns(invocation->env) > deadline_ns)
            return false;
        env_sleep_ms(invocation->env, 50);
    }
}

struct demo_result {
    const struct demo_part *parts;
    size_t part_count;
    uint64_t published;
    double publish_seconds;
    char data_dir[PATH_BYTES_MAX];
    uint16_t otlp_port, api_port;
    const char *catalog_name;
};

static void print_json(const struct demo_result *result)
{
    uint64_t sent = 0;
    double seconds = 0;
    for (size_t i = 0; i < result->part_count; i++) {
        sent += result->parts[i].report.items;
        seconds += result->parts[i].report.seconds;
    }
    printf("{\"rows_sent\":%llu,\"rows_acknowledged\":%llu,\"rows_published\":%llu,"
           "\"rows_a_second\":%.0f,\"ack_p50_us\":%llu,\"ack_p99_us\":%llu,"
           "\"publish_seconds\":%.3f,\"data_dir\":\"%s\",\"catalog\":\"%s/catalog.db\","
           "\"catalog_name\":\"%s\",\"warehouse\":\"%s/warehouse\",\"otlp_http_port\":%u,"
           "\"api_port\":%u}\n",
           (unsigned long long)sent, (unsigned long long)sent,
           (unsigned long long)result->published, seconds > 0 ? (double)sent / seconds : 0,
           (unsigned long long)result->parts[0].report.p50_us,
           (unsigned long long)result->parts[0].report.p99_us, result->publish_seconds,
           result->data_dir, result->data_dir, result->catalog_name, result->data_dir,
           result->otlp_port, result->api_port);
}

static void print_text(const struct demo_result *result)
{
    printf("\n");
    for (size_t i = 0; i < result->part_count; i++) {
        const struct gen_report *report = &result->parts[i].report;
        printf("  %-8s %8llu rows sent and acknowledged, %9.0f rows/s, ack p50 %6.2f ms, p99 "
               "%6.2f ms\n",
               gen_profile_name(result->parts[i].profile), (unsigned long long)report->items,
               report->seconds > 0 ? (double)report->items / report->seconds : 0,
               (double)report->p50_us / 1000, (double)report->p99_us / 1000);
    }
    printf("\n  %llu rows stand in the tables, %.1f s after the last one was sent\n\n",
           (unsigned long long)result->published, result->publish_seconds);
    printf("  catalog    %s/catalog.db (SQL catalog, name \"%s\")\n", result->data_dir,
           result->catalog_name);
    printf("  tables     %s/warehouse/otel/{logs,spans,metrics_*}\n", result->data_dir);
    printf("  OTLP/HTTP  http://127.0.0.1:%u/v1/{logs,traces,metrics}\n", result->otlp_port);
    printf("  API        http://127.0.0.1:%u/{v1/status,metrics,healthz,readyz}\n",
           result->api_port);
    printf("\nPyIceberg:\n"
           "  from pyiceberg.catalog.sql import SqlCatalog\n"
           "  catalog = SqlCatalog(\"%s\", uri=\"sqlite:///%s/catalog.db\")\n"
           "  print(catalog.load_table(\"otel.logs\").scan(limit=10).to_pandas())\n"
           "\nDuckDB:\n"
           "  INSTALL iceberg; LOAD iceberg;\n"
           "  SELECT service_name, count(*) FROM iceberg_scan('%s/warehouse/otel/spans')\n"
           "  GROUP BY 1 ORDER BY 2 DESC;\n\n",
           result->catalog_name, result->data_dir, result->data_dir);
    fflush(stdout);
}

static uint64_t published_rows(struct server *server)
{
    struct publish_lane_info lane;
    uint64_t rows = 0;
    for (size_t i = 0; publisher_lane_at(server_stack(server)->publisher, i, &lane); i++)
        rows += lane.rows_total;
    return rows;
}

static enum status run_demo(struct invocation *invocation, struct server *server, uint64_t items,
                            bool as_json, struct error *err)
{
    struct demo_part parts[] = {
        {.profile = GEN_SHOP, .items = items},
        {.profile = GEN_LOGS, .items = items},
        {.profile = GEN_METRICS, .items = items / 2},
    };
    struct demo_result result = {
        .parts = parts,
        .part_count = COUNT_OF(parts),
        .otlp_port = server_otlp_port(server),
        .api_port = server_api_port(server),
        .catalog_name = invocation->settings.catalog_name,
    };
    TRY(os_absolute_path(invocation->settings.data_dir, result.data_dir, err));
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        TRY(send_part(invocation, result.otlp_port, &parts[i], err));
    int64_t sent_ns = env_mono_ns(invocation->env);
    if (!wait_published(invocation, server))
        return error_set(err, STATUS_TIMEOUT, "the rows did not reach the tables within a minute");
    result.publish_seconds = (double)(env_mono_ns(invocation->env) - sent_ns) / 1e9;
    result.published = published_rows(server);
    if (as_json)
        print_json(&result);
    else
        print_text(&result);
    return STATUS_OK;
}

int cmd_demo(struct invocation *invocation)
{
    struct error err;
    struct server *server = NULL;
    struct os_poller *poller = NULL;
    struct os_event events[4];
    uint64_t items = 100000;
    bool as_json = cmd_take_flag(invocation, "--json");
    bool must_keep = cmd_take_flag(invocation, "--keep") ||
                     (!as_json && os_is_terminal(OS_STDIN) && os_is_terminal(OS_STDOUT));
    if (!cmd_take_number(invocation, "--items", &items) || !cmd_no_more_words(invocation, 0))
        return 2;
    if (invocation->settings.source[0] || settings_is_elsewhere(&invocation->settings))
        return cmd_usage("a demo publishes a log of its own: without source and publish.from");
    invocation->settings.publish_interval_ms = 1000; /* nobody should have to wait for a demo */
    enum status status = os_poller_create(&poller, &err);
    if (status == STATUS_OK)
        status = os_signals_watch(poller, &err);
    if (status == STATUS_OK)
        status = server_start(invocation->env, &invocation->settings, &server, &err);
    if (status != STATUS_OK)
        cmd_explain_busy(invocation, &err);
    if (status == STATUS_OK)
        status = run_demo(invocation, server, items, as_json, &err);
    if (status == STATUS_OK && must_keep) {
        printf("Serving until Ctrl-C.\n");
        while (!os_signal_pending())
            os_poller_wait(poller, 1000, events, COUNT_OF(events));
    }
    server_stop(server);
    os_poller_destroy(poller);
    return status == STATUS_OK ? 0 : cmd_fail(&err);
}
