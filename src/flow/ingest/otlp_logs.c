/* SPDX-License-Identifier: Apache-2.0
 *
 * LogRecord (opentelemetry/proto/logs/v1/logs.proto) -> a row of otel.logs.
 */
#include "flow/ingest/otlp_decode.h"

/* In two parts, each of which is small enough for the compiler to clear in line. */
struct log_record {
    struct log_texts {
        struct span severity_text, body, trace_id, span_id, event_name;
    } texts;
    struct log_numbers {
        uint64_t time_nano, observed_nano, severity_number, dropped, flags;
        bool has_body;
    } numbers;
};

static void parse(struct otlp_decoder *decoder, struct span item, struct log_record *record)
{
    struct wire wire = wire_of(item);
    struct wire_field field;
    record->texts = (struct log_texts){0};
    record->numbers = (struct log_numbers){0};
    buf_clear(&decoder->pairs);
    buf_clear(&decoder->pairs2);
    buf_clear(&decoder->children2);
    while (wire_next(&wire, &field)) {
        switch (field.key) {
        case WIRE_KEY(1, WIRE_I64):
            record->numbers.time_nano = field.value;
            break;
        case WIRE_KEY(2, WIRE_VARINT):
            record->numbers.severity_number = field.value;
            break;
        case WIRE_KEY(3, WIRE_LEN):
            record->texts.severity_text = field.bytes;
            break;
        case WIRE_KEY(5, WIRE_LEN):
            decoder->is_raw |= record->numbers.has_body;
            record->texts.body = field.bytes;
            record->numbers.has_body = true;
            break;
        case WIRE_KEY(6, WIRE_LEN):
            otlp_push_span(&decoder->pairs, field.bytes);
            break;
        case WIRE_KEY(7, WIRE_VARINT):
            record->numbers.dropped = field.value;
            break;
        case WIRE_KEY(8, WIRE_I32):
            record->numbers.flags = field.value;
            break;
        case WIRE_KEY(9, WIRE_LEN):
            record->texts.trace_id = field.bytes;
            break;
        case WIRE_KEY(10, WIRE_LEN):
            record->texts.span_id = field.bytes;
            break;
        case WIRE_KEY(11, WIRE_I64):
            record->numbers.observed_nano = field.value;
            break;
        case WIRE_KEY(12, WIRE_LEN):
            record->texts.event_name = field.bytes;
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
    struct log_record record;
    struct otlp_batch *batch = otlp_row_begin(decoder, TABLE_LOGS, item);
    if (!batch)
        return;
    struct arrow_builder *columns = batch->columns;
    parse(decoder, item, &record);
    otlp_check_lists(decoder, batch);
    otlp_put_u64(decoder, &columns[LOG_TIME_NANO], record.numbers.time_nano);
    otlp_put_u64(decoder, &columns[LOG_OBSERVED_NANO], record.numbers.observed_nano);
    arrow_append_i32(&columns[LOG_SEVERITY_NUMBER], (int32_t)record.numbers.severity_number);
    otlp_put_text_or_null(decoder, &columns[LOG_SEVERITY_TEXT], record.texts.severity_text);
    if (record.numbers.has_body) {
        char type = 'n';
        otlp_put_any(decoder, &columns[LOG_BODY], record.texts.body, &type);
        arrow_append_bytes(&columns[LOG_BODY_TYPE], &type, 1);
    } else {
        arrow_append_null(&columns[LOG_BODY]);
        arrow_append_null(&columns[LOG_BODY_TYPE]);
    }
    otlp_put_attributes(decoder, &columns[LOG_ATTRIBUTES], &columns[LOG_ATTRIBUTES_TYPES],
                        &decoder->pairs);
    otlp_put_rare_count(batch, LOG_DROPPED, record.numbers.dropped);
    arrow_append_i64(&columns[LOG_FLAGS], (int64_t)record.numbers.flags);
    otlp_put_id(decoder, &columns[LOG_TRACE_ID], record.texts.trace_id, 16);
    otlp_put_id(decoder, &columns[LOG_SPAN_ID], record.texts.span_id, 8);
    otlp_put_rare_text(decoder, batch, LOG_EVENT_NAME, record.texts.event_name);
    otlp_row_end(decoder, batch, item, record.numbers.time_nano, record.numbers.observed_nano);
}
