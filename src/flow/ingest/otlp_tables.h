/* SPDX-License-Identifier: Apache-2.0
 *
 * The OTLP tables as data: one row a column. Schemas, builders, docs/tables.md and the tables'
 * column docs all come from here.
 */
#ifndef SLUICE_FLOW_INGEST_OTLP_TABLES_H
#define SLUICE_FLOW_INGEST_OTLP_TABLES_H

#include "flow/publish/publish.h"

/* Which message a value belongs to. Values of all but ROW repeat over many rows: their columns are
 * dictionaries with one value a resource, scope or metric, and share one index buffer a domain. */
enum otlp_domain { DOMAIN_ROW, DOMAIN_RESOURCE, DOMAIN_SCOPE, DOMAIN_METRIC, DOMAIN_COUNT };

enum otlp_kind {
    KIND_TIME, /* timestamptz, required */
    KIND_LONG,
    KIND_COUNT, /* the same; 0 where nothing is said */
    KIND_INT,
    KIND_DOUBLE,
    KIND_BOOL,
    KIND_TEXT,
    KIND_BINARY,
    KIND_MAP, /* map<string,string> with dictionary keys */
    KIND_LONGS,
    KIND_DOUBLES,
    KIND_EVENTS,
    KIND_LINKS,
    KIND_EXEMPLARS,
    KIND_QUANTILES,
};

struct otlp_column {
    const char *name;
    enum otlp_kind kind;
    enum otlp_domain domain;
    const char *source;
};

/* Columns in the order of the rows of otlp_tables.c; decoders name them by these. */
enum common_column { /* the first of every table */
                     COL_TIME,
                     COL_SERVICE_NAME,
                     COL_RESOURCE_ATTRIBUTES,
                     COL_RESOURCE_ATTRIBUTES_TYPES,
                     COL_RESOURCE_DROPPED,
                     COL_RESOURCE_SCHEMA_URL,
                     COL_RESOURCE_ENTITY_REFS,
                     COL_SCOPE_NAME,
                     COL_SCOPE_VERSION,
                     COL_SCOPE_ATTRIBUTES,
                     COL_SCOPE_ATTRIBUTES_TYPES,
                     COL_SCOPE_DROPPED,
                     COL_SCOPE_SCHEMA_URL,
                     COL_RAW,
                     COL_RECEIVED,
                     COL_COMMON_COUNT
};

enum logs_column {
    LOG_TIME_NANO = COL_COMMON_COUNT,
    LOG_OBSERVED_NANO,
    LOG_SEVERITY_NUMBER,
    LOG_SEVERITY_TEXT,
    LOG_BODY,
    LOG_BODY_TYPE,
    LOG_ATTRIBUTES,
    LOG_ATTRIBUTES_TYPES,
    LOG_DROPPED,
    LOG_FLAGS,
    LOG_TRACE_ID,
    LOG_SPAN_ID,
    LOG_EVENT_NAME,
    LOG_COLUMN_COUNT
};

enum spans_column {
    SPAN_TRACE_ID = COL_COMMON_COUNT,
    SPAN_SPAN_ID,
    SPAN_PARENT_SPAN_ID,
    SPAN_TRACE_STATE,
    SPAN_FLAGS,
    SPAN_NAME,
    SPAN_KIND,
    SPAN_START_NANO,
    SPAN_END_NANO,
    SPAN_ATTRIBUTES,
    SPAN_ATTRIBUTES_TYPES,
    SPAN_DROPPED,
    SPAN_EVENTS,
    SPAN_DROPPED_EVENTS,
    SPAN_LINKS,
    SPAN_DROPPED_LINKS,
    SPAN_STATUS_CODE,
    SPAN_STATUS_MESSAGE,
    SPAN_COLUMN_COUNT
};

enum metric_common_column { /* the next of every metrics table */
                            MET_NAME = COL_COMMON_COUNT,
                            MET_DESCRIPTION,
                            MET_UNIT,
                            MET_METADATA,
                            MET_METADATA_TYPES,
                            MET_START_NANO,
                            MET_TIME_NANO,
                            MET_ATTRIBUTES,
                            MET_ATTRIBUTES_TYPES,
                            MET_FLAGS,
                            MET_COMMON_COUNT
};

enum number_column { /* gauge and sum */
                     NUM_AS_DOUBLE = MET_COMMON_COUNT,
                     NUM_AS_INT,
                     NUM_EXEMPLARS,
                     GAUGE_COLUMN_COUNT,
                     SUM_TEMPORALITY = GAUGE_COLUMN_COUNT,
                     SUM_IS_MONOTONIC,
                     SUM_COLUMN_COUNT
};

enum histogram_column {
    HIST_COUNT = MET_COMMON_COUNT,
    HIST_SUM,
    HIST_MIN,
    HIST_MAX,
    HIST_TEMPORALITY,
    HIST_EXEMPLARS,
    HIST_BUCKET_COUNTS,
    HIST_EXPLICIT_BOUNDS,
    HIST_COLUMN_COUNT
};

enum exp_histogram_column { /* the first six as in histograms */
                            EXP_SCALE = HIST_BUCKET_COUNTS,
                            EXP_ZERO_COUNT,
                            EXP_ZERO_THRESHOLD,
                            EXP_POSITIVE_OFFSET,
                            EXP_POSITIVE_COUNTS,
                            EXP_NEGATIVE_OFFSET,
                            EXP_NEGATIVE_COUNTS,
                            EXP_COLUMN_COUNT
};

enum summary_column { SUMM_COUNT = MET_COMMON_COUNT, SUMM_SUM, SUMM_QUANTILES, SUMM_COLUMN_COUNT };

enum dead_letters_column { /* begins with `time` as all others do */
                           DEAD_TIME = COL_TIME,
                           DEAD_SIGNAL,
                           DEAD_ITEM,
                           DEAD_REASON,
                           DEAD_RAW,
                           DEAD_RECEIVED,
                           DEAD_COLUMN_COUNT
};

/* Children of the nested columns, in order. */
enum event_child { EVENT_TIME, EVENT_NAME, EVENT_ATTRIBUTES, EVENT_TYPES, EVENT_DROPPED };
enum link_child {
    LINK_TRACE_ID,
    LINK_SPAN_ID,
    LINK_STATE,
    LINK_ATTRIBUTES,
    LINK_TYPES,
    LINK_DROPPED,
    LINK_FLAGS
};
enum exemplar_child {
    EX_TIME,
    EX_AS_DOUBLE,
    EX_AS_INT,
    EX_SPAN_ID,
    EX_TRACE_ID,
    EX_ATTRIBUTES,
    EX_TYPES
};
enum quantile_child { QUANTILE_QUANTILE, QUANTILE_VALUE };

enum otlp_table_id {
    TABLE_LOGS,
    TABLE_SPANS,
    TABLE_GAUGE,
    TABLE_SUM,
    TABLE_HISTOGRAM,
    TABLE_EXP_HISTOGRAM,
    TABLE_SUMMARY,
    TABLE_DEAD_LETTERS,
    OTLP_TABLE_COUNT
};

enum { OTLP_COLUMNS_MAX = 48 };

struct otlp_table {
    struct publish_table publish; /* schema, sources, sort columns */
    const struct otlp_column *columns;
    uint32_t column_count;
    uint64_t fingerprint;
};

/* Built at the first call (any thread; the same afterwards). */
const struct otlp_table *otlp_table(enum otlp_table_id id);

#endif
