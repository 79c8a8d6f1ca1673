/* SPDX-License-Identifier: Apache-2.0
 *
 * LogRecord (opentelemetry/proto/logs/v1/logs.proto) -> a row of otel.logs.
 */
#include "flow/ingest/otlp_decode.h"

struct log_record {
    uint64_t time_nano, observed_nano, severity_number, dropped, flags;
    struct span severity_text, body, trace_id, span_id, event_name;
    bool has_body;
};

static void parse(struct otlp_decoder *decoder, struct span item, struct log_record *record)
{
    struct wire wire = wire_of(item);
    struct wire_field field;
    buf_clear(&decoder->pairs);
    buf_clear(&decoder->pairs2);
    buf_clear(&decoder->children2);
    while (wire_next(&wire, &field)) {
        switch (field.key) {
        case WIRE_KEY(1, WIRE_I64):
            record->time_nano = field.value;
            break;
        case WIRE_KEY(2, WIRE_VARINT):
            record->severity_number = field.value;
            break;
        case WIRE_KEY(3, WIRE_LEN):
            record->severity_text = field.bytes;
            break;
        case WIRE_KEY(5, WIRE_LEN):
            decoder->is_raw |= record->has_body;
            record->body = field.bytes;
            record->has_body = true;
            break;
        case WIRE_KEY(6, WIRE_LEN):
            otlp_push_span(&decoder->pairs, field.bytes);
            break;
        case WIRE_KEY(7, WIRE_VARINT):
            record->dropped = field.value;
            break;
        case WIRE_KEY(8, WIRE_I32):
            record->flags = field.value;
            break;
        case WIRE_KEY(9, WIRE_LEN):
            record->trace_id = field.bytes;
            break;
        case WIRE_KEY(10, WIRE_LEN):
            record->span_id = field.bytes;
            break;
        case WIRE_KEY(11, WIRE_I64):
            record->observed_nano = field.value;
            break;
        case WIRE_KEY(12, WIRE_LEN):
            record->event_name = field.bytes;
            break;
        default:
            decoder->is_raw = true;
            break;
        }
    }
    decoder->is_malformed |= wire.is_malformed;
}

void otlp_decode_log_record(struct otlp_decoder *decoder, struct span item)
{
    struct log_record record = {0};
    struct otlp_batch *batch = otlp_row_begin(decoder, TABLE_LOGS, item);
    if (!batch)
        return;
    struct arrow_builder *columns = batch->columns;
    parse(decoder, item, &record);
    otlp_check_lists(decoder, batch);
    otlp_put_u64(decoder, &columns[LOG_TIME_NANO], record.time_nano);
    otlp_put_u64(decoder, &columns[LOG_OBSERVED_NANO], record.observed_nano);
    arrow_append_i32(&columns[LOG_SEVERITY_NUMBER], (int32_t)record.severity_number);
    otlp_put_text_or_null(decoder, &columns[LOG_SEVERITY_TEXT], record.severity_text);
    if (record.has_body) {
        char type = 'n';
        otlp_put_any(decoder, &columns[LOG_BODY], record.body, &type);
        arrow_append_bytes(&columns[LOG_BODY_TYPE], &type, 1);
    } else {
        arrow_append_null(&columns[LOG_BODY]);
        arrow_append_null(&columns[LOG_BODY_TYPE]);
    }
    otlp_put_attributes(decoder, &columns[LOG_ATTRIBUTES], &columns[LOG_ATTRIBUTES_TYPES],
                        &decoder->pairs);
    otlp_put_rare_count(batch, LOG_DROPPED, record.dropped);
    arrow_append_i64(&columns[LOG_FLAGS], (int64_t)record.flags);
    otlp_put_id(decoder, &columns[LOG_TRACE_ID], record.trace_id, 16);
    otlp_put_id(decoder, &columns[LOG_SPAN_ID], record.span_id, 8);
    otlp_put_rare_text(decoder, batch, LOG_EVENT_NAME, record.event_name);
    otlp_row_end(decoder, batch, item, record.time_nano, record.observed_nano);
}
