/* SPDX-License-Identifier: Apache-2.0
 *
 * Span (opentelemetry/proto/trace/v1/trace.proto) -> a row of otel.spans.
 */
#include "flow/ingest/otlp_decode.h"

/* In three parts, each of which is small enough for the compiler to clear in line. */
struct span_record {
    struct span_texts {
        struct span trace_id, span_id, parent_id, trace_state, name;
    } texts;
    struct span_numbers {
        uint64_t flags, kind, start_nano, end_nano, dropped, dropped_events, dropped_links;
    } numbers;
    struct span_status {
        struct span message;
        uint64_t code;
        bool is_there;
    } status;
};

static void parse_status(struct otlp_decoder *decoder, struct span message,
                         struct span_status *status)
{
    struct wire wire = wire_of(message);
    struct wire_field field;
    decoder->is_raw |= status->is_there;
    status->is_there = true;
    while (wire_next(&wire, &field)) {
        if (field.key == WIRE_KEY(2, WIRE_LEN))
            status->message = field.bytes;
        else if (field.key == WIRE_KEY(3, WIRE_VARINT))
            status->code = field.value;
        else
            decoder->is_raw = true;
    }
    decoder->is_malformed |= wire.is_malformed;
}

static void parse(struct otlp_decoder *decoder, struct span item, struct span_record *record)
{
    struct wire wire = wire_of(item);
    struct wire_field field;
    record->texts = (struct span_texts){0};
    record->numbers = (struct span_numbers){0};
    record->status = (struct span_status){0};
    buf_clear(&decoder->pairs);
    buf_clear(&decoder->pairs2);
    buf_clear(&decoder->children);
    buf_clear(&decoder->children2);
    while (wire_next(&wire, &field)) {
        switch (field.key) {
        case WIRE_KEY(1, WIRE_LEN):
            record->texts.trace_id = field.bytes;
            break;
        case WIRE_KEY(2, WIRE_LEN):
            record->texts.span_id = field.bytes;
            break;
        case WIRE_KEY(3, WIRE_LEN):
            record->texts.trace_state = field.bytes;
            break;
        case WIRE_KEY(4, WIRE_LEN):
            record->texts.parent_id = field.bytes;
            break;
        case WIRE_KEY(5, WIRE_LEN):
            record->texts.name = field.bytes;
            break;
        case WIRE_KEY(6, WIRE_VARINT):
            record->numbers.kind = field.value;
            break;
        case WIRE_KEY(7, WIRE_I64):
            record->numbers.start_nano = field.value;
            break;
        case WIRE_KEY(8, WIRE_I64):
            record->numbers.end_nano = field.value;
            break;
        case WIRE_KEY(9, WIRE_LEN):
            otlp_push_span(&decoder->pairs, field.bytes);
            break;
        case WIRE_KEY(10, WIRE_VARINT):
            record->numbers.dropped = field.value;
            break;
        case WIRE_KEY(11, WIRE_LEN):
            otlp_push_span(&decoder->children, field.bytes);
            break;
        case WIRE_KEY(12, WIRE_VARINT):
            record->numbers.dropped_events = field.value;
            break;
        case WIRE_KEY(13, WIRE_LEN):
            otlp_push_span(&decoder->children2, field.bytes);
            break;
        case WIRE_KEY(14, WIRE_VARINT):
            record->numbers.dropped_links = field.value;
            break;
        case WIRE_KEY(15, WIRE_LEN):
            parse_status(decoder, field.bytes, &record->status);
            break;
        case WIRE_KEY(16, WIRE_I32):
            record->numbers.flags = field.value;
            break;
        default:
            decoder->is_raw = true;
            break;
        }
    }
    decoder->is_malformed |= wire.is_malformed;
}

static void put_event(struct otlp_decoder *decoder, struct arrow_builder *element,
                      struct span message)
{
    struct wire wire = wire_of(message);
    struct wire_field field;
    uint64_t time_nano = 0, dropped = 0;
    struct span name = {0};
    struct arrow_builder *children = element->children;
    buf_clear(&decoder->pairs2);
    while (wire_next(&wire, &field)) {
        switch (field.key) {
        case WIRE_KEY(1, WIRE_I64):
            time_nano = field.value;
            break;
        case WIRE_KEY(2, WIRE_LEN):
            name = field.bytes;
            break;
        case WIRE_KEY(3, WIRE_LEN):
            otlp_push_span(&decoder->pairs2, field.bytes);
            break;
        case WIRE_KEY(4, WIRE_VARINT):
            dropped = field.value;
            break;
        default:
            decoder->is_raw = true;
            break;
        }
    }
    decoder->is_malformed |= wire.is_malformed;
    otlp_refuse_long(decoder, &decoder->pairs2);
    otlp_put_u64(decoder, &children[EVENT_TIME], time_nano);
    otlp_put_text_or_null(decoder, &children[EVENT_NAME], name);
    otlp_put_attributes(decoder, &children[EVENT_ATTRIBUTES], &children[EVENT_TYPES],
                        &decoder->pairs2);
    arrow_append_i64(&children[EVENT_DROPPED], (int64_t)(dropped & UINT32_MAX));
    arrow_close_struct(element);
}

static void put_link(struct otlp_decoder *decoder, struct arrow_builder *element,
                     struct span message)
{
    struct wire wire = wire_of(message);
    struct wire_field field;
    uint64_t dropped = 0, flags = 0;
    struct span trace_id = {0}, span_id = {0}, trace_state = {0};
    struct arrow_builder *children = element->children;
    buf_clear(&decoder->pairs2);
    while (wire_next(&wire, &field)) {
        switch (field.key) {
        case WIRE_KEY(1, WIRE_LEN):
            trace_id = field.bytes;
            break;
        case WIRE_KEY(2, WIRE_LEN):
            span_id = field.bytes;
            break;
        case WIRE_KEY(3, WIRE_LEN):
            trace_state = field.bytes;
            break;
        case WIRE_KEY(4, WIRE_LEN):
            otlp_push_span(&decoder->pairs2, field.bytes);
            break;
        case WIRE_KEY(5, WIRE_VARINT):
            dropped = field.value;
            break;
        case WIRE_KEY(6, WIRE_I32):
            flags = field.value;
            break;
        default:
            decoder->is_raw = true;
            break;
        }
    }
    decoder->is_malformed |= wire.is_malformed;
    otlp_refuse_long(decoder, &decoder->pairs2);
    otlp_put_id(decoder, &children[LINK_TRACE_ID], trace_id, 16);
    otlp_put_id(decoder, &children[LINK_SPAN_ID], span_id, 8);
    otlp_put_text_or_null(decoder, &children[LINK_STATE], trace_state);
    otlp_put_attributes(decoder, &children[LINK_ATTRIBUTES], &children[LINK_TYPES],
                        &decoder->pairs2);
    arrow_append_i64(&children[LINK_DROPPED], (int64_t)(dropped & UINT32_MAX));
    arrow_append_i64(&children[LINK_FLAGS], (int64_t)flags);
    arrow_close_struct(element);
}

void otlp_decode_span(struct otlp_decoder *decoder, struct span item)
{
    struct span_record record;
    struct otlp_batch *batch = otlp_row_begin(decoder, TABLE_SPANS, item);
    if (!batch)
        return;
    struct arrow_builder *columns = batch->columns;
    parse(decoder, item, &record);
    otlp_check_lists(decoder, batch);
    otlp_put_id(decoder, &columns[SPAN_TRACE_ID], record.texts.trace_id, 16);
    otlp_put_id(decoder, &columns[SPAN_SPAN_ID], record.texts.span_id, 8);
    otlp_put_id(decoder, &columns[SPAN_PARENT_SPAN_ID], record.texts.parent_id, 8);
    otlp_put_rare_text(decoder, batch, SPAN_TRACE_STATE, record.texts.trace_state);
    arrow_append_i64(&columns[SPAN_FLAGS], (int64_t)record.numbers.flags);
    otlp_put_text_or_null(decoder, &columns[SPAN_NAME], record.texts.name);
    arrow_append_i32(&columns[SPAN_KIND], (int32_t)record.numbers.kind);
    otlp_put_u64(decoder, &columns[SPAN_START_NANO], record.numbers.start_nano);
    otlp_put_u64(decoder, &columns[SPAN_END_NANO], record.numbers.end_nano);
    otlp_put_attributes(decoder, &columns[SPAN_ATTRIBUTES], &columns[SPAN_ATTRIBUTES_TYPES],
                        &decoder->pairs);
    otlp_put_rare_count(batch, SPAN_DROPPED, record.numbers.dropped);
    otlp_put_rare_list(decoder, batch, SPAN_EVENTS, &decoder->children, put_event);
    otlp_put_rare_count(batch, SPAN_DROPPED_EVENTS, record.numbers.dropped_events);
    otlp_put_rare_list(decoder, batch, SPAN_LINKS, &decoder->children2, put_link);
    otlp_put_rare_count(batch, SPAN_DROPPED_LINKS, record.numbers.dropped_links);
    if (record.status.is_there)
        arrow_append_i32(otlp_reach(batch, SPAN_STATUS_CODE), (int32_t)record.status.code);
    otlp_put_rare_text(decoder, batch, SPAN_STATUS_MESSAGE, record.status.message);
    otlp_row_end(decoder, batch, item, record.numbers.start_nano, record.numbers.end_nano);
}
