/* SPDX-License-Identifier: Apache-2.0
 *
 * Metric (opentelemetry/proto/metrics/v1/metrics.proto) -> rows of the five otel.metrics_* tables,
 * one a data point.
 */
#include "flow/ingest/otlp_decode.h"

enum metric_data {
    DATA_GAUGE = 5,
    DATA_SUM = 7,
    DATA_HISTOGRAM = 9,
    DATA_EXP_HISTOGRAM = 10,
    DATA_SUMMARY = 11
};

/* What encloses the data points of one Metric. */
struct metric_context {
    uint32_t data_field; /* metric_data */
    struct span data, first_point;
    size_t point_count;
    uint64_t temporality;
    bool is_monotonic;
};

/* A data point of any type: the numbers of the fields differ, their meanings do not. What only
 * exponential histograms have stands apart, for each point begins with all of it set to 0. */
struct point {
    uint64_t start_nano, time_nano, flags;
    uint64_t count, value_bits; /* of histograms and summaries; of gauges and sums */
    uint64_t sum_bits, min_bits, max_bits;
    bool has_double, has_int, has_sum, has_min, has_max;
};

struct exp_point {
    uint64_t zero_count, zero_threshold_bits;
    int64_t scale;
    struct span positive, negative;
    bool has_positive, has_negative;
};

static void put_double_or_null(struct arrow_builder *builder, bool is_there, uint64_t bits)
{
    if (is_there)
        arrow_append_double(builder, wire_double(bits));
    else
        arrow_append_null(builder);
}

static void put_rare_double(struct otlp_batch *batch, uint32_t column, bool is_there, uint64_t bits)
{
    if (is_there)
        arrow_append_double(otlp_reach(batch, column), wire_double(bits));
}

/* ---- repeated numbers ---- */

static void push_fixed(struct otlp_decoder *decoder, struct buf *list,
                       const struct wire_field *field)
{
    if ((field->key & 7) == WIRE_I64) {
        buf_put(list, &field->value, sizeof field->value);
    } else if (field->bytes.length % 8 == 0) {
        /* As much as may be there: a list that is full and failed is too long, not out of memory.
         */
        size_t room = list->bytes_max - list->length;
        buf_put(list, field->bytes.data, size_min(field->bytes.length, room));
        list->failed |= field->bytes.length > room;
    } else {
        decoder->is_malformed = true;
    }
}

/* Those of one byte or two, up to the first that is longer, into room that is there: without a
 * branch that nobody can predict. */
static void push_short_varints(struct buf *list, struct wire *wire)
{
    const uint8_t *at = wire->at, *end = wire->end;
    uint8_t *place = list->data + list->length;
    while (end - at >= 2) {
        uint32_t first = at[0], second = at[1], more = first >> 7;
        if (more & second >> 7)
            break;
        uint64_t value = (first & 0x7f) | (second & 0x7f & (0 - more)) << 7;
        memcpy(place, &value, sizeof value);
        place += sizeof value;
        at += 1 + more;
    }
    list->length = (size_t)(place - list->data);
    wire->at = at;
}

static void push_varints(struct otlp_decoder *decoder, struct buf *list,
                         const struct wire_field *field)
{
    if ((field->key & 7) == WIRE_VARINT) {
        buf_put(list, &field->value, sizeof field->value);
        return;
    }
    struct wire wire = wire_of(field->bytes);
    uint64_t value;
    size_t bytes_most = field->bytes.length * sizeof value;
    if (bytes_most && bytes_most <= list->bytes_max - list->length && buf_reserve(list, bytes_most))
        push_short_varints(list, &wire);
    while (wire.at < wire.end && wire_varint(&wire, &value))
        buf_put(list, &value, sizeof value);
    decoder->is_malformed |= wire.is_malformed;
}

/* Appends fixed 64-bit values to the element of a list, and closes the slot. */
static void put_fixed_list(struct arrow_builder *list, const struct buf *values)
{
    struct arrow_builder *element = &list->children[0];
    buf_put(&element->values, values->data, values->length);
    arrow_push_valids(element, (int64_t)(values->length / sizeof(uint64_t)));
    arrow_close_list(list);
}

static void put_counts(struct otlp_decoder *decoder, struct arrow_builder *list, struct buf *values)
{
    uint64_t *counts = (uint64_t *)(void *)values->data, all = 0;
    size_t count = values->length / sizeof *counts;
    for (size_t i = 0; i < count; i++)
        all |= counts[i];
    if (all > INT64_MAX) {
        decoder->is_raw = true;
        for (size_t i = 0; i < count; i++)
            counts[i] = counts[i] > INT64_MAX ? INT64_MAX : counts[i];
    }
    put_fixed_list(list, values);
}

static void put_buckets(struct otlp_decoder *decoder, struct arrow_builder *offset,
                        struct arrow_builder *counts, struct span message)
{
    struct wire wire = wire_of(message);
    struct wire_field field;
    int64_t start = 0;
    buf_clear(&decoder->longs);
    while (wire_next(&wire, &field)) {
        if (field.key == WIRE_KEY(1, WIRE_VARINT))
            start = wire_zigzag(field.value & UINT32_MAX);
        else if (field.key >> 3 == 2 &&
                 ((field.key & 7) == WIRE_LEN || (field.key & 7) == WIRE_VARINT))
            push_varints(decoder, &decoder->longs, &field);
        else
            decoder->is_raw = true;
    }
    decoder->is_malformed |= wire.is_malformed;
    otlp_refuse_long(decoder, &decoder->longs);
    arrow_append_i32(offset, (int32_t)start);
    put_counts(decoder, counts, &decoder->longs);
}

/* ---- exemplars, quantiles ---- */

static void put_exemplar(struct otlp_decoder *decoder, struct arrow_builder *element,
                         struct span message)
{
    struct wire wire = wire_of(message);
    struct wire_field field;
    uint64_t time_nano = 0, bits = 0;
    bool has_double = false, has_int = false;
    struct span span_id = {0}, trace_id = {0};
    struct arrow_builder *children = element->children;
    buf_clear(&decoder->pairs2);
    while (wire_next(&wire, &field)) {
        switch (field.key) {
        case WIRE_KEY(2, WIRE_I64):
            time_nano = field.value;
            break;
        case WIRE_KEY(3, WIRE_I64):
        case WIRE_KEY(6, WIRE_I64):
            decoder->is_raw |= has_double | has_int;
            has_double = field.key == WIRE_KEY(3, WIRE_I64);
            has_int = !has_double;
            bits = field.value;
            break;
        case WIRE_KEY(4, WIRE_LEN):
            span_id = field.bytes;
            break;
        case WIRE_KEY(5, WIRE_LEN):
            trace_id = field.bytes;
            break;
        case WIRE_KEY(7, WIRE_LEN):
            otlp_push_span(&decoder->pairs2, field.bytes);
            break;
        default:
            decoder->is_raw = true;
            break;
        }
    }
    decoder->is_malformed |= wire.is_malformed;
    otlp_refuse_long(decoder, &decoder->pairs2);
    otlp_put_u64(decoder, &children[EX_TIME], time_nano);
    put_double_or_null(&children[EX_AS_DOUBLE], has_double, bits);
    if (has_int)
        arrow_append_i64(&children[EX_AS_INT], (int64_t)bits);
    else
        arrow_append_null(&children[EX_AS_INT]);
    otlp_put_id(decoder, &children[EX_SPAN_ID], span_id, 8);
    otlp_put_id(decoder, &children[EX_TRACE_ID], trace_id, 16);
    otlp_put_attributes(decoder, &children[EX_ATTRIBUTES], &children[EX_TYPES], &decoder->pairs2);
    arrow_close_struct(element);
}

static void put_quantiles(struct otlp_decoder *decoder, struct arrow_builder *list)
{
    for (size_t i = 0; i < otlp_span_count(&decoder->children); i++) {
        struct wire wire = wire_of(otlp_spans(&decoder->children)[i]);
        struct wire_field field;
        uint64_t quantile = 0, value = 0;
        while (wire_next(&wire, &field)) {
            if (field.key == WIRE_KEY(1, WIRE_I64))
                quantile = field.value;
            else if (field.key == WIRE_KEY(2, WIRE_I64))
                value = field.value;
            else
                decoder->is_raw = true;
        }
        decoder->is_malformed |= wire.is_malformed;
        struct arrow_builder *element = &list->children[0];
        arrow_append_double(&element->children[QUANTILE_QUANTILE], wire_double(quantile));
        arrow_append_double(&element->children[QUANTILE_VALUE], wire_double(value));
        arrow_close_struct(element);
    }
    arrow_close_list(list);
}

/* ---- data points ---- */

static void clear_lists(struct otlp_decoder *decoder)
{
    buf_clear(&decoder->pairs);
    buf_clear(&decoder->pairs2);
    buf_clear(&decoder->children);
    buf_clear(&decoder->children2);
    buf_clear(&decoder->longs);
    buf_clear(&decoder->longs2);
}

static void put_point_common(struct otlp_decoder *decoder, struct otlp_batch *batch,
                             const struct point *point)
{
    struct arrow_builder *columns = batch->columns;
    otlp_check_lists(decoder, batch);
    otlp_put_u64(decoder, &columns[MET_START_NANO], point->start_nano);
    otlp_put_u64(decoder, &columns[MET_TIME_NANO], point->time_nano);
    otlp_put_attributes(decoder, &columns[MET_ATTRIBUTES], &columns[MET_ATTRIBUTES_TYPES],
                        &decoder->pairs);
    otlp_put_rare_count(batch, MET_FLAGS, point->flags);
}

static void set_number(struct otlp_decoder *decoder, struct point *point, bool is_double,
                       uint64_t bits)
{
    decoder->is_raw |= point->has_double | point->has_int;
    point->has_double = is_double;
    point->has_int = !is_double;
    point->value_bits = bits;
}

static void decode_number(struct otlp_decoder *decoder, const struct metric_context *metric,
                          struct span item)
{
    bool is_sum = metric->data_field == DATA_SUM;
    struct otlp_batch *batch = otlp_row_begin(decoder, is_sum ? TABLE_SUM : TABLE_GAUGE, item);
    if (!batch)
        return;
    struct wire wire = wire_of(item);
    struct wire_field field;
    struct point point = {0};
    clear_lists(decoder);
    while (wire_next(&wire, &field)) {
        switch (field.key) {
        case WIRE_KEY(2, WIRE_I64):
            point.start_nano = field.value;
            break;
        case WIRE_KEY(3, WIRE_I64):
            point.time_nano = field.value;
            break;
        case WIRE_KEY(4, WIRE_I64):
        case WIRE_KEY(6, WIRE_I64):
            set_number(decoder, &point, field.key == WIRE_KEY(4, WIRE_I64), field.value);
            break;
        case WIRE_KEY(5, WIRE_LEN):
            otlp_push_span(&decoder->children, field.bytes);
            break;
        case WIRE_KEY(7, WIRE_LEN):
            otlp_push_span(&decoder->pairs, field.bytes);
            break;
        case WIRE_KEY(8, WIRE_VARINT):
            point.flags = field.value;
            break;
        default:
            decoder->is_raw = true;
            break;
        }
    }
    decoder->is_malformed |= wire.is_malformed;
    struct arrow_builder *columns = batch->columns;
    put_point_common(decoder, batch, &point);
    put_rare_double(batch, NUM_AS_DOUBLE, point.has_double, point.value_bits);
    if (point.has_int)
        arrow_append_i64(otlp_reach(batch, NUM_AS_INT), (int64_t)point.value_bits);
    otlp_put_rare_list(decoder, batch, NUM_EXEMPLARS, &decoder->children, put_exemplar);
    if (is_sum) {
        arrow_append_i32(&columns[SUM_TEMPORALITY], (int32_t)metric->temporality);
        arrow_append_bool(&columns[SUM_IS_MONOTONIC], metric->is_monotonic);
    }
    otlp_row_end(decoder, batch, item, point.time_nano, point.start_nano);
}

static void put_histogram_common(struct otlp_decoder *decoder, struct otlp_batch *batch,
                                 const struct metric_context *metric, const struct point *point)
{
    struct arrow_builder *columns = batch->columns;
    put_point_common(decoder, batch, point);
    otlp_put_u64(decoder, &columns[HIST_COUNT], point->count);
    put_rare_double(batch, HIST_SUM, point->has_sum, point->sum_bits);
    put_rare_double(batch, HIST_MIN, point->has_min, point->min_bits);
    put_rare_double(batch, HIST_MAX, point->has_max, point->max_bits);
    arrow_append_i32(&columns[HIST_TEMPORALITY], (int32_t)metric->temporality);
    otlp_put_rare_list(decoder, batch, HIST_EXEMPLARS, &decoder->children, put_exemplar);
}

static void set_optional(bool *out_has, uint64_t *out_bits, uint64_t bits)
{
    *out_has = true;
    *out_bits = bits;
}

static void decode_histogram(struct otlp_decoder *decoder, const struct metric_context *metric,
                             struct span item)
{
    struct otlp_batch *batch = otlp_row_begin(decoder, TABLE_HISTOGRAM, item);
    if (!batch)
        return;
    struct wire wire = wire_of(item);
    struct wire_field field;
    struct point point = {0};
    clear_lists(decoder);
    while (wire_next(&wire, &field)) {
        switch (field.key) {
        case WIRE_KEY(2, WIRE_I64):
            point.start_nano = field.value;
            break;
        case WIRE_KEY(3, WIRE_I64):
            point.time_nano = field.value;
            break;
        case WIRE_KEY(4, WIRE_I64):
            point.count = field.value;
            break;
        case WIRE_KEY(5, WIRE_I64):
            set_optional(&point.has_sum, &point.sum_bits, field.value);
            break;
        case WIRE_KEY(6, WIRE_LEN):
        case WIRE_KEY(6, WIRE_I64):
            push_fixed(decoder, &decoder->longs, &field);
            break;
        case WIRE_KEY(7, WIRE_LEN):
        case WIRE_KEY(7, WIRE_I64):
            push_fixed(decoder, &decoder->longs2, &field);
            break;
        case WIRE_KEY(8, WIRE_LEN):
            otlp_push_span(&decoder->children, field.bytes);
            break;
        case WIRE_KEY(9, WIRE_LEN):
            otlp_push_span(&decoder->pairs, field.bytes);
            break;
        case WIRE_KEY(10, WIRE_VARINT):
            point.flags = field.value;
            break;
        case WIRE_KEY(11, WIRE_I64):
            set_optional(&point.has_min, &point.min_bits, field.value);
            break;
        case WIRE_KEY(12, WIRE_I64):
            set_optional(&point.has_max, &point.max_bits, field.value);
            break;
        default:
            decoder->is_raw = true;
            break;
        }
    }
    decoder->is_malformed |= wire.is_malformed;
    put_histogram_common(decoder, batch, metric, &point);
    put_counts(decoder, &batch->columns[HIST_BUCKET_COUNTS], &decoder->longs);
    put_fixed_list(&batch->columns[HIST_EXPLICIT_BOUNDS], &decoder->longs2);
    otlp_row_end(decoder, batch, item, point.time_nano, point.start_nano);
}

static void decode_exp_histogram(struct otlp_decoder *decoder, const struct metric_context *metric,
                                 struct span item)
{
    struct otlp_batch *batch = otlp_row_begin(decoder, TABLE_EXP_HISTOGRAM, item);
    if (!batch)
        return;
    struct wire wire = wire_of(item);
    struct wire_field field;
    struct point point = {0};
    struct exp_point exp = {0};
    clear_lists(decoder);
    while (wire_next(&wire, &field)) {
        switch (field.key) {
        case WIRE_KEY(1, WIRE_LEN):
            otlp_push_span(&decoder->pairs, field.bytes);
            break;
        case WIRE_KEY(2, WIRE_I64):
            point.start_nano = field.value;
            break;
        case WIRE_KEY(3, WIRE_I64):
            point.time_nano = field.value;
            break;
        case WIRE_KEY(4, WIRE_I64):
            point.count = field.value;
            break;
        case WIRE_KEY(5, WIRE_I64):
            set_optional(&point.has_sum, &point.sum_bits, field.value);
            break;
        case WIRE_KEY(6, WIRE_VARINT):
            exp.scale = wire_zigzag(field.value & UINT32_MAX);
            break;
        case WIRE_KEY(7, WIRE_I64):
            exp.zero_count = field.value;
            break;
        case WIRE_KEY(8, WIRE_LEN):
            decoder->is_raw |= exp.has_positive;
            exp.positive = field.bytes;
            exp.has_positive = true;
            break;
        case WIRE_KEY(9, WIRE_LEN):
            decoder->is_raw |= exp.has_negative;
            exp.negative = field.bytes;
            exp.has_negative = true;
            break;
        case WIRE_KEY(10, WIRE_VARINT):
            point.flags = field.value;
            break;
        case WIRE_KEY(11, WIRE_LEN):
            otlp_push_span(&decoder->children, field.bytes);
            break;
        case WIRE_KEY(12, WIRE_I64):
            set_optional(&point.has_min, &point.min_bits, field.value);
            break;
        case WIRE_KEY(13, WIRE_I64):
            set_optional(&point.has_max, &point.max_bits, field.value);
            break;
        case WIRE_KEY(14, WIRE_I64):
            exp.zero_threshold_bits = field.value;
            break;
        default:
            decoder->is_raw = true;
            break;
        }
    }
    decoder->is_malformed |= wire.is_malformed;
    struct arrow_builder *columns = batch->columns;
    put_histogram_common(decoder, batch, metric, &point);
    arrow_append_i32(&columns[EXP_SCALE], (int32_t)exp.scale);
    otlp_put_u64(decoder, &columns[EXP_ZERO_COUNT], exp.zero_count);
    arrow_append_double(&columns[EXP_ZERO_THRESHOLD], wire_double(exp.zero_threshold_bits));
    if (exp.has_positive)
        put_buckets(decoder, otlp_reach(batch, EXP_POSITIVE_OFFSET),
                    otlp_reach(batch, EXP_POSITIVE_COUNTS), exp.positive);
    if (exp.has_negative)
        put_buckets(decoder, otlp_reach(batch, EXP_NEGATIVE_OFFSET),
                    otlp_reach(batch, EXP_NEGATIVE_COUNTS), exp.negative);
    otlp_row_end(decoder, batch, item, point.time_nano, point.start_nano);
}

static void decode_summary(struct otlp_decoder *decoder, const struct metric_context *metric,
                           struct span item)
{
    UNUSED(metric);
    struct otlp_batch *batch = otlp_row_begin(decoder, TABLE_SUMMARY, item);
    if (!batch)
        return;
    struct wire wire = wire_of(item);
    struct wire_field field;
    struct point point = {0};
    clear_lists(decoder);
    while (wire_next(&wire, &field)) {
        switch (field.key) {
        case WIRE_KEY(2, WIRE_I64):
            point.start_nano = field.value;
            break;
        case WIRE_KEY(3, WIRE_I64):
            point.time_nano = field.value;
            break;
        case WIRE_KEY(4, WIRE_I64):
            point.count = field.value;
            break;
        case WIRE_KEY(5, WIRE_I64):
            point.sum_bits = field.value;
            break;
        case WIRE_KEY(6, WIRE_LEN):
            otlp_push_span(&decoder->children, field.bytes);
            break;
        case WIRE_KEY(7, WIRE_LEN):
            otlp_push_span(&decoder->pairs, field.bytes);
            break;
        case WIRE_KEY(8, WIRE_VARINT):
            point.flags = field.value;
            break;
        default:
            decoder->is_raw = true;
            break;
        }
    }
    decoder->is_malformed |= wire.is_malformed;
    struct arrow_builder *columns = batch->columns;
    put_point_common(decoder, batch, &point);
    otlp_put_u64(decoder, &columns[SUMM_COUNT], point.count);
    arrow_append_double(&columns[SUMM_SUM], wire_double(point.sum_bits));
    put_quantiles(decoder, &columns[SUMM_QUANTILES]);
    otlp_row_end(decoder, batch, item, point.time_nano, point.start_nano);
}

/* ---- the metric ---- */

/* Lays one more field of the header behind those that *header holds; without a copy where they lie
 * end to end in the message. */
static void join_header(struct buf *copy, struct span *header, struct span field)
{
    if (header->length == 0) {
        *header = field;
    } else if (header->data + header->length == field.data) {
        header->length += field.length;
    } else {
        if (header->data != copy->data)
            buf_put(copy, header->data, header->length);
        buf_put(copy, field.data, field.length);
        *header = span_of(copy->data, copy->length);
    }
}

/* Reads a Metric's header into decoder->metric (its bytes but for the data), and finds its data. */
static bool read_metric(struct otlp_decoder *decoder, struct span message,
                        struct metric_context *metric)
{
    struct wire wire = wire_of(message);
    struct wire_field field;
    struct buf *copy = &decoder->merged[DOMAIN_METRIC];
    struct span header = {0};
    bool is_raw = false;
    buf_clear(copy);
    while (wire_next(&wire, &field)) {
        uint32_t number = field.key >> 3;
        bool is_length = (field.key & 7) == WIRE_LEN;
        if (is_length && (number <= 3 || number == 12)) {
            join_header(copy, &header, span_of(field.start, (size_t)(wire.at - field.start)));
        } else if (is_length &&
                   (number == DATA_GAUGE || number == DATA_SUM || number == DATA_HISTOGRAM ||
                    number == DATA_EXP_HISTOGRAM || number == DATA_SUMMARY)) {
            is_raw |= metric->data_field != 0;
            metric->data_field = number;
            metric->data = field.bytes;
            /* Here, where both words are in registers; see otlp_push_span. */
            decoder->levels[3] = (struct otlp_level){.message = field.bytes, .field = 1};
        } else {
            is_raw = true;
        }
    }
    decoder->is_malformed |= wire.is_malformed;
    decoder->is_out_of_memory |= copy->failed;
    decoder->metric = header;
    decoder->is_domain_raw[DOMAIN_METRIC] = is_raw;
    return !decoder->is_malformed;
}

static bool read_data(struct otlp_decoder *decoder, struct metric_context *metric)
{
    struct wire wire = wire_of(metric->data);
    struct wire_field field;
    while (wire_next(&wire, &field)) {
        if (field.key == WIRE_KEY(1, WIRE_LEN)) {
            if (metric->point_count++ == 0)
                metric->first_point = field.bytes;
            continue;
        }
        if (field.key == WIRE_KEY(2, WIRE_VARINT) && metric->data_field != DATA_GAUGE &&
            metric->data_field != DATA_SUMMARY)
            metric->temporality = field.value;
        else if (field.key == WIRE_KEY(3, WIRE_VARINT) && metric->data_field == DATA_SUM)
            metric->is_monotonic = field.value != 0;
        else
            decoder->is_domain_raw[DOMAIN_METRIC] = true;
    }
    decoder->is_malformed |= wire.is_malformed;
    return !decoder->is_malformed;
}

void otlp_decode_metric(struct otlp_decoder *decoder, struct span message)
{
    typedef void (*point_fn)(struct otlp_decoder *, const struct metric_context *, struct span);
    struct metric_context metric = {0};
    point_fn decode_point;
    if (!read_metric(decoder, message, &metric) || !read_data(decoder, &metric)) {
        otlp_reject_malformed(decoder, message);
        return;
    }
    decoder->domain_generation[DOMAIN_METRIC] = ++decoder->generation;
    switch (metric.data_field) {
    case DATA_GAUGE:
    case DATA_SUM:
        decode_point = decode_number;
        break;
    case DATA_HISTOGRAM:
        decode_point = decode_histogram;
        break;
    case DATA_EXP_HISTOGRAM:
        decode_point = decode_exp_histogram;
        break;
    case DATA_SUMMARY:
        decode_point = decode_summary;
        break;
    default:
        return; /* a metric without data has no points to store */
    }
    decoder->levels[2] = (struct otlp_level){.message = message, .field = metric.data_field};
    decoder->level_count = 4;
    struct wire wire = wire_of(metric.data);
    struct wire_field field;
    if (metric.point_count == 1) {
        decode_point(decoder, &metric, metric.first_point);
        return;
    }
    while (wire_next(&wire, &field)) {
        if (field.key == WIRE_KEY(1, WIRE_LEN))
            decode_point(decoder, &metric, field.bytes);
        if (otlp_must_stop(decoder))
            return;
    }
}
