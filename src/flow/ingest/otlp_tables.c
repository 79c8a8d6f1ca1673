/* SPDX-License-Identifier: Apache-2.0
 *
 * The columns of the OTLP tables. Field ids are given by position: top-level columns first, nested
 * fields behind them, so that a table we create and one that another engine copies agree.
 */
#include "flow/ingest/otlp_tables.h"

#include <threads.h>

/* "resource" and "scope" stand for the Resource and InstrumentationScope messages, "item" for the
 * LogRecord, Span or data point, "metric" for the Metric. */
#define COMMON_COLUMNS                                                                             \
    {"time", KIND_TIME, DOMAIN_ROW,                                                                \
     "event time: the item's time if plausible, else observed, else receipt"},                     \
        {"service_name", KIND_TEXT, DOMAIN_RESOURCE, "resource.attributes[service.name]"},         \
        {"resource_attributes", KIND_MAP, DOMAIN_RESOURCE, "resource.attributes"},                 \
        {"resource_attributes_types", KIND_TEXT, DOMAIN_RESOURCE,                                  \
         "types of resource.attributes, one character a pair"},                                    \
        {"resource_dropped_attributes_count", KIND_LONG, DOMAIN_RESOURCE,                          \
         "resource.dropped_attributes_count"},                                                     \
        {"resource_schema_url", KIND_TEXT, DOMAIN_RESOURCE, "schema_url beside the resource"},     \
        {"resource_entity_refs", KIND_TEXT, DOMAIN_RESOURCE,                                       \
         "resource.entity_refs as a JSON array"},                                                  \
        {"scope_name", KIND_TEXT, DOMAIN_SCOPE, "scope.name"},                                     \
        {"scope_version", KIND_TEXT, DOMAIN_SCOPE, "scope.version"},                               \
        {"scope_attributes", KIND_MAP, DOMAIN_SCOPE, "scope.attributes"},                          \
        {"scope_attributes_types", KIND_TEXT, DOMAIN_SCOPE, "types of scope.attributes"},          \
        {"scope_dropped_attributes_count", KIND_LONG, DOMAIN_SCOPE,                                \
         "scope.dropped_attributes_count"},                                                        \
        {"scope_schema_url", KIND_TEXT, DOMAIN_SCOPE, "schema_url beside the scope"},              \
        {"_sluice_raw", KIND_BINARY, DOMAIN_ROW,                                                   \
         "the message as sent, wrapped up to its resource, where columns cannot give it back"},    \
    {                                                                                              \
        "_sluice_received", KIND_TIME, DOMAIN_ROW, "when the request arrived"                      \
    }

static const struct otlp_column logs_columns[] = {
    COMMON_COLUMNS,
    {"time_unix_nano", KIND_LONG, DOMAIN_ROW, "item.time_unix_nano"},
    {"observed_time_unix_nano", KIND_LONG, DOMAIN_ROW, "item.observed_time_unix_nano"},
    {"severity_number", KIND_INT, DOMAIN_ROW, "item.severity_number"},
    {"severity_text", KIND_TEXT, DOMAIN_ROW, "item.severity_text"},
    {"body", KIND_TEXT, DOMAIN_ROW, "item.body"},
    {"body_type", KIND_TEXT, DOMAIN_ROW, "type of item.body"},
    {"attributes", KIND_MAP, DOMAIN_ROW, "item.attributes"},
    {"attributes_types", KIND_TEXT, DOMAIN_ROW, "types of item.attributes"},
    {"dropped_attributes_count", KIND_COUNT, DOMAIN_ROW, "item.dropped_attributes_count"},
    {"flags", KIND_LONG, DOMAIN_ROW, "item.flags"},
    {"trace_id", KIND_TEXT, DOMAIN_ROW, "item.trace_id, hex"},
    {"span_id", KIND_TEXT, DOMAIN_ROW, "item.span_id, hex"},
    {"event_name", KIND_TEXT, DOMAIN_ROW, "item.event_name"},
};
_Static_assert(COUNT_OF(logs_columns) == LOG_COLUMN_COUNT, "logs columns");

static const struct otlp_column spans_columns[] = {
    COMMON_COLUMNS,
    {"trace_id", KIND_TEXT, DOMAIN_ROW, "item.trace_id, hex"},
    {"span_id", KIND_TEXT, DOMAIN_ROW, "item.span_id, hex"},
    {"parent_span_id", KIND_TEXT, DOMAIN_ROW, "item.parent_span_id, hex"},
    {"trace_state", KIND_TEXT, DOMAIN_ROW, "item.trace_state"},
    {"flags", KIND_LONG, DOMAIN_ROW, "item.flags"},
    {"name", KIND_TEXT, DOMAIN_ROW, "item.name"},
    {"kind", KIND_INT, DOMAIN_ROW, "item.kind"},
    {"start_time_unix_nano", KIND_LONG, DOMAIN_ROW, "item.start_time_unix_nano"},
    {"end_time_unix_nano", KIND_LONG, DOMAIN_ROW, "item.end_time_unix_nano"},
    {"attributes", KIND_MAP, DOMAIN_ROW, "item.attributes"},
    {"attributes_types", KIND_TEXT, DOMAIN_ROW, "types of item.attributes"},
    {"dropped_attributes_count", KIND_COUNT, DOMAIN_ROW, "item.dropped_attributes_count"},
    {"events", KIND_EVENTS, DOMAIN_ROW, "item.events"},
    {"dropped_events_count", KIND_COUNT, DOMAIN_ROW, "item.dropped_events_count"},
    {"links", KIND_LINKS, DOMAIN_ROW, "item.links"},
    {"dropped_links_count", KIND_COUNT, DOMAIN_ROW, "item.dropped_links_count"},
    {"status_code", KIND_INT, DOMAIN_ROW, "item.status.code"},
    {"status_message", KIND_TEXT, DOMAIN_ROW, "item.status.message"},
};
_Static_assert(COUNT_OF(spans_columns) == SPAN_COLUMN_COUNT, "spans columns");

#define METRIC_COLUMNS                                                                             \
    COMMON_COLUMNS, {"name", KIND_TEXT, DOMAIN_METRIC, "metric.name"},                             \
        {"description", KIND_TEXT, DOMAIN_METRIC, "metric.description"},                           \
        {"unit", KIND_TEXT, DOMAIN_METRIC, "metric.unit"},                                         \
        {"metadata", KIND_MAP, DOMAIN_METRIC, "metric.metadata"},                                  \
        {"metadata_types", KIND_TEXT, DOMAIN_METRIC, "types of metric.metadata"},                  \
        {"start_time_unix_nano", KIND_LONG, DOMAIN_ROW, "item.start_time_unix_nano"},              \
        {"time_unix_nano", KIND_LONG, DOMAIN_ROW, "item.time_unix_nano"},                          \
        {"attributes", KIND_MAP, DOMAIN_ROW, "item.attributes"},                                   \
        {"attributes_types", KIND_TEXT, DOMAIN_ROW, "types of item.attributes"},                   \
    {                                                                                              \
        "flags", KIND_COUNT, DOMAIN_ROW, "item.flags"                                              \
    }

#define NUMBER_COLUMNS                                                                             \
    METRIC_COLUMNS, {"as_double", KIND_DOUBLE, DOMAIN_ROW, "item.as_double"},                      \
        {"as_int", KIND_LONG, DOMAIN_ROW, "item.as_int"},                                          \
    {                                                                                              \
        "exemplars", KIND_EXEMPLARS, DOMAIN_ROW, "item.exemplars"                                  \
    }

static const struct otlp_column gauge_columns[] = {NUMBER_COLUMNS};
_Static_assert(COUNT_OF(gauge_columns) == GAUGE_COLUMN_COUNT, "gauge columns");

static const struct otlp_column sum_columns[] = {
    NUMBER_COLUMNS,
    {"aggregation_temporality", KIND_INT, DOMAIN_ROW, "metric.sum.aggregation_temporality"},
    {"is_monotonic", KIND_BOOL, DOMAIN_ROW, "metric.sum.is_monotonic"},
};
_Static_assert(COUNT_OF(sum_columns) == SUM_COLUMN_COUNT, "sum columns");

#define HISTOGRAM_COLUMNS                                                                          \
    METRIC_COLUMNS, {"count", KIND_LONG, DOMAIN_ROW, "item.count"},                                \
        {"sum", KIND_DOUBLE, DOMAIN_ROW, "item.sum"},                                              \
        {"min", KIND_DOUBLE, DOMAIN_ROW, "item.min"},                                              \
        {"max", KIND_DOUBLE, DOMAIN_ROW, "item.max"},                                              \
        {"aggregation_temporality", KIND_INT, DOMAIN_ROW,                                          \
         "metric.<data>.aggregation_temporality"},                                                 \
    {                                                                                              \
        "exemplars", KIND_EXEMPLARS, DOMAIN_ROW, "item.exemplars"                                  \
    }

static const struct otlp_column histogram_columns[] = {
    HISTOGRAM_COLUMNS,
    {"bucket_counts", KIND_LONGS, DOMAIN_ROW, "item.bucket_counts"},
    {"explicit_bounds", KIND_DOUBLES, DOMAIN_ROW, "item.explicit_bounds"},
};
_Static_assert(COUNT_OF(histogram_columns) == HIST_COLUMN_COUNT, "histogram columns");

static const struct otlp_column exp_histogram_columns[] = {
    HISTOGRAM_COLUMNS,
    {"scale", KIND_INT, DOMAIN_ROW, "item.scale"},
    {"zero_count", KIND_LONG, DOMAIN_ROW, "item.zero_count"},
    {"zero_threshold", KIND_DOUBLE, DOMAIN_ROW, "item.zero_threshold"},
    {"positive_offset", KIND_INT, DOMAIN_ROW, "item.positive.offset"},
    {"positive_bucket_counts", KIND_LONGS, DOMAIN_ROW, "item.positive.bucket_counts"},
    {"negative_offset", KIND_INT, DOMAIN_ROW, "item.negative.offset"},
    {"negative_bucket_counts", KIND_LONGS, DOMAIN_ROW, "item.negative.bucket_counts"},
};
_Static_assert(COUNT_OF(exp_histogram_columns) == EXP_COLUMN_COUNT, "exp_histogram columns");

static const struct otlp_column summary_columns[] = {
    METRIC_COLUMNS,
    {"count", KIND_LONG, DOMAIN_ROW, "item.count"},
    {"sum", KIND_DOUBLE, DOMAIN_ROW, "item.sum"},
    {"quantile_values", KIND_QUANTILES, DOMAIN_ROW, "item.quantile_values"},
};
_Static_assert(COUNT_OF(summary_columns) == SUMM_COLUMN_COUNT, "summary columns");

static const struct otlp_column dead_letters_columns[] = {
    {"time", KIND_TIME, DOMAIN_ROW, "when the request arrived"},
    {"signal", KIND_TEXT, DOMAIN_ROW, "logs, traces or metrics"},
    {"item", KIND_LONG, DOMAIN_ROW, "which item of the request it was, from 0"},
    {"reason", KIND_TEXT, DOMAIN_ROW, "why it was rejected"},
    {"_sluice_raw", KIND_BINARY, DOMAIN_ROW,
     "the message as sent, wrapped up to its resource; null where many large ones came at once"},
    {"_sluice_received", KIND_TIME, DOMAIN_ROW, "when the request arrived"},
};
_Static_assert(COUNT_OF(dead_letters_columns) == DEAD_COLUMN_COUNT, "dead_letters columns");

static const char *const sort_logs[] = {"service_name", "time"};
static const char *const sort_spans[] = {"trace_id", "start_time_unix_nano"};
static const char *const sort_metrics[] = {"name", "time"};
static const char *const sort_dead_letters[] = {"time", "item"};

static const struct {
    const char *name;
    const struct otlp_column *columns;
    uint32_t column_count;
    const char *const *sort;
} definitions[OTLP_TABLE_COUNT] = {
    [TABLE_LOGS] = {"logs", logs_columns, LOG_COLUMN_COUNT, sort_logs},
    [TABLE_SPANS] = {"spans", spans_columns, SPAN_COLUMN_COUNT, sort_spans},
    [TABLE_GAUGE] = {"metrics_gauge", gauge_columns, GAUGE_COLUMN_COUNT, sort_metrics},
    [TABLE_SUM] = {"metrics_sum", sum_columns, SUM_COLUMN_COUNT, sort_metrics},
    [TABLE_HISTOGRAM] = {"metrics_histogram", histogram_columns, HIST_COLUMN_COUNT, sort_metrics},
    [TABLE_EXP_HISTOGRAM] = {"metrics_exp_histogram", exp_histogram_columns, EXP_COLUMN_COUNT,
                             sort_metrics},
    [TABLE_SUMMARY] = {"metrics_summary", summary_columns, SUMM_COLUMN_COUNT, sort_metrics},
    [TABLE_DEAD_LETTERS] = {"dead_letters", dead_letters_columns, DEAD_COLUMN_COUNT,
                            sort_dead_letters},
};

/* A nested field of a struct child: name and kind. */
struct child {
    const char *name;
    enum otlp_kind kind;
};

static const struct child event_children[] = {
    {"time_unix_nano", KIND_LONG},
    {"name", KIND_TEXT},
    {"attributes", KIND_MAP},
    {"attributes_types", KIND_TEXT},
    {"dropped_attributes_count", KIND_LONG},
};
static const struct child link_children[] = {
    {"trace_id", KIND_TEXT},
    {"span_id", KIND_TEXT},
    {"trace_state", KIND_TEXT},
    {"attributes", KIND_MAP},
    {"attributes_types", KIND_TEXT},
    {"dropped_attributes_count", KIND_LONG},
    {"flags", KIND_LONG},
};
static const struct child exemplar_children[] = {
    {"time_unix_nano", KIND_LONG},
    {"as_double", KIND_DOUBLE},
    {"as_int", KIND_LONG},
    {"span_id", KIND_TEXT},
    {"trace_id", KIND_TEXT},
    {"filtered_attributes", KIND_MAP},
    {"filtered_attributes_types", KIND_TEXT},
};
static const struct child quantile_children[] = {{"quantile", KIND_DOUBLE}, {"value", KIND_DOUBLE}};

static struct arena schema_arena;
static struct otlp_table tables[OTLP_TABLE_COUNT];
static once_flag once = ONCE_FLAG_INIT;

static void *owned(size_t count, size_t bytes)
{
    void *memory = arena_alloc_zero(&schema_arena, count, bytes);
    CHECK(memory != NULL); /* a few KiB at start-up */
    return memory;
}

static struct arrow_field *children_of(struct arrow_field *field, uint32_t count)
{
    field->children = owned(count, sizeof *field->children);
    field->child_count = count;
    return field->children;
}

static void make_field(struct arrow_field *field, const char *name, enum otlp_kind kind);

static void make_struct_list(struct arrow_field *field, const struct child *parts, uint32_t count)
{
    field->type = ARROW_LIST;
    struct arrow_field *element = children_of(field, 1);
    *element = (struct arrow_field){.name = "element", .type = ARROW_STRUCT, .is_nullable = false};
    struct arrow_field *children = children_of(element, count);
    for (uint32_t i = 0; i < count; i++)
        make_field(&children[i], parts[i].name, parts[i].kind);
}

static void make_number_list(struct arrow_field *field, enum arrow_type type)
{
    field->type = ARROW_LIST;
    *children_of(field, 1) = (struct arrow_field){.name = "element", .type = type};
}

static void make_field(struct arrow_field *field, const char *name, enum otlp_kind kind)
{
    *field = (struct arrow_field){.name = name, .is_nullable = true};
    switch (kind) {
    case KIND_TIME:
        field->type = ARROW_TIMESTAMP_US;
        field->is_instant = true;
        field->is_nullable = false;
        break;
    case KIND_LONG:
    case KIND_COUNT:
        field->type = ARROW_INT64;
        break;
    case KIND_INT:
        field->type = ARROW_INT32;
        break;
    case KIND_DOUBLE:
        field->type = ARROW_DOUBLE;
        break;
    case KIND_BOOL:
        field->type = ARROW_BOOL;
        break;
    case KIND_TEXT:
        field->type = ARROW_UTF8;
        break;
    case KIND_BINARY:
        field->type = ARROW_BINARY;
        break;
    case KIND_MAP: {
        field->type = ARROW_MAP;
        struct arrow_field *pair = children_of(field, 2);
        pair[0] = (struct arrow_field){.name = "key", .type = ARROW_UTF8, .is_dictionary = true};
        pair[1] = (struct arrow_field){.name = "value", .type = ARROW_UTF8, .is_nullable = true};
        break;
    }
    case KIND_LONGS:
        make_number_list(field, ARROW_INT64);
        break;
    case KIND_DOUBLES:
        make_number_list(field, ARROW_DOUBLE);
        break;
    case KIND_EVENTS:
        make_struct_list(field, event_children, COUNT_OF(event_children));
        break;
    case KIND_LINKS:
        make_struct_list(field, link_children, COUNT_OF(link_children));
        break;
    case KIND_EXEMPLARS:
        make_struct_list(field, exemplar_children, COUNT_OF(exemplar_children));
        break;
    case KIND_QUANTILES:
        make_struct_list(field, quantile_children, COUNT_OF(quantile_children));
        break;
    }
}

/* Level by level, as Iceberg assigns fresh ids. */
static void assign_ids(struct arrow_field *fields, uint32_t count, int32_t *last_id)
{
    for (uint32_t i = 0; i < count; i++)
        fields[i].field_id = ++*last_id;
    for (uint32_t i = 0; i < count; i++)
        assign_ids(fields[i].children, fields[i].child_count, last_id);
}

static void build_table(enum otlp_table_id id)
{
    struct otlp_table *table = &tables[id];
    uint32_t count = definitions[id].column_count;
    struct arrow_schema *schema = owned(1, sizeof *schema);
    const char **sources = owned(count, sizeof *sources);
    CHECK(count <= OTLP_COLUMNS_MAX);
    schema->fields = owned(count, sizeof *schema->fields);
    schema->field_count = count;
    table->columns = definitions[id].columns;
    table->column_count = count;
    for (uint32_t i = 0; i < count; i++) {
        const struct otlp_column *column = &table->columns[i];
        make_field(&schema->fields[i], column->name, column->kind);
        if (column->domain != DOMAIN_ROW) {
            schema->fields[i].is_dictionary = true;
            if (column->kind == KIND_MAP) /* a dictionary of maps needs none inside */
                schema->fields[i].children[0].is_dictionary = false;
        }
        sources[i] = column->source;
    }
    int32_t last_id = 0;
    assign_ids(schema->fields, count, &last_id);
    table->fingerprint = arrow_schema_fingerprint(schema);
    table->publish = (struct publish_table){
        .ns = "otel",
        .name = definitions[id].name,
        .schema = schema,
        .sources = sources,
        .time_column = "time",
        .sort_columns = definitions[id].sort,
        .sort_column_count = 2,
    };
}

static void build_all(void)
{
    arena_init(&schema_arena, 0);
    for (int id = 0; id < OTLP_TABLE_COUNT; id++)
        build_table((enum otlp_table_id)id);
}

const struct otlp_table *otlp_table(enum otlp_table_id id)
{
    call_once(&once, build_all);
    return &tables[id];
}
