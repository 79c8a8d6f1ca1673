/* SPDX-License-Identifier: Apache-2.0
 *
 * The walk through a request, shared by the three signals: ResourceX { resource 1, scope_x 2,
 * schema_url 3 } around ScopeX { scope 1, items 2, schema_url 3 }. Fields may come in any order, so
 * each level is read twice: once for what it says, once for what it holds.
 */
#include "flow/ingest/otlp_decode.h"

#include <stdio.h>

/* How far in front of the walk the body is called for. */
enum { AHEAD_BYTES = 4096, AHEAD_BYTES_MAX = 65536 };

void otlp_decoder_init(struct otlp_decoder *decoder, uint64_t hash_seed, uint64_t items_max,
                       size_t bytes_max)
{
    *decoder = (struct otlp_decoder){
        .hash_seed = hash_seed, .items_max = items_max, .bytes_max = bytes_max};
    struct buf *lists[] = {&decoder->pairs, &decoder->pairs2, &decoder->children,
                           &decoder->children2};
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        buf_init(lists[i], OTLP_LIST_MAX * sizeof(struct span));
    buf_init(&decoder->longs, OTLP_LIST_MAX * sizeof(uint64_t));
    buf_init(&decoder->longs2, OTLP_LIST_MAX * sizeof(uint64_t));
}

void otlp_refuse_long(struct otlp_decoder *decoder, const struct buf *list)
{
    decoder->parts += list->length / sizeof(uint64_t);
    if (list->failed)
        decoder->refusal = "a list has more than 65536 parts";
    decoder->is_too_many |= decoder->parts > 2 * (uint64_t)OTLP_PARTS_MAX;
}

void otlp_check_lists(struct otlp_decoder *decoder, struct otlp_batch *batch)
{
    struct buf *lists[] = {&decoder->pairs,     &decoder->pairs2, &decoder->children,
                           &decoder->children2, &decoder->longs,  &decoder->longs2};
    size_t bytes = 0;
    bool is_failed = false;
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        bytes += lists[i]->length;
        is_failed |= lists[i]->failed;
    }
    decoder->parts += bytes / sizeof(uint64_t);
    decoder->is_too_many |= decoder->parts > 2 * (uint64_t)OTLP_PARTS_MAX;
    for (size_t i = 0; is_failed && i < COUNT_OF(lists); i++) {
        if (lists[i]->failed && lists[i]->capacity == lists[i]->bytes_max)
            decoder->refusal = "a list has more than 65536 parts";
        else
            batch->is_failed |= lists[i]->failed;
    }
}

void otlp_decoder_deinit(struct otlp_decoder *decoder)
{
    struct buf *bufs[] = {&decoder->pairs,     &decoder->pairs2, &decoder->children,
                          &decoder->children2, &decoder->longs,  &decoder->longs2,
                          &decoder->text,      &decoder->types,  &decoder->scratch,
                          &decoder->slots};
    for (size_t i = 0; i < COUNT_OF(bufs); i++)
        buf_deinit(bufs[i]);
    for (int i = 0; i < DOMAIN_COUNT; i++)
        buf_deinit(&decoder->merged[i]);
    for (int i = 0; i < OTLP_LEVELS_MAX; i++)
        buf_deinit(&decoder->frames[i]);
    for (int i = 0; i < OTLP_TABLE_COUNT; i++)
        otlp_batch_destroy(decoder->batches[i]);
}

/* ---- what encloses the items ---- */

/* Calls for the bytes before `end` unless that was done. The walk goes from item to item in hops
 * that no hardware foresees. */
static inline void prefetch_until(struct otlp_decoder *decoder, const uint8_t *end, size_t ahead)
{
    uintptr_t to = (uintptr_t)end + ahead;
    for (; decoder->prefetched < to; decoder->prefetched += 64)
        __builtin_prefetch((const void *)decoder->prefetched, 0, 2);
}

/* One level of the request: the singular message 1, the text 3, and whether anything else is there.
 * False: what stands around the items is broken, and with it the request. */
static bool read_level(struct otlp_decoder *decoder, struct span message, enum otlp_domain domain,
                       struct span *out_inner, struct span *out_schema_url)
{
    struct wire wire = wire_of(message);
    struct wire_field field;
    bool is_raw = false;
    *out_inner = *out_schema_url = (struct span){0};
    while (wire_next(&wire, &field)) {
        if (domain == DOMAIN_SCOPE)
            prefetch_until(decoder, wire.at, AHEAD_BYTES);
        if (field.key == WIRE_KEY(1, WIRE_LEN)) {
            if (out_inner->data) { /* twice: protobuf merges, and merging is laying end to end */
                struct buf *merged = &decoder->merged[domain];
                if (out_inner->data != merged->data) {
                    buf_clear(merged);
                    buf_put(merged, out_inner->data, out_inner->length);
                }
                decoder->is_too_many |= merged->failed;
                buf_put(merged, field.bytes.data, field.bytes.length);
                field.bytes = span_of(merged->data, merged->length);
                is_raw = true;
            }
            *out_inner = field.bytes;
        } else if (field.key == WIRE_KEY(3, WIRE_LEN)) {
            *out_schema_url = field.bytes;
        } else if (field.key != WIRE_KEY(2, WIRE_LEN)) {
            is_raw = true;
        }
    }
    decoder->is_domain_raw[domain] = is_raw;
    decoder->domain_generation[domain] = ++decoder->generation;
    if (wire.is_malformed)
        decoder->malformed_at = field.start;
    return !wire.is_malformed;
}

static void put_u32(struct arrow_builder *builder, uint64_t value)
{
    arrow_append_i64(builder, (int64_t)(value & UINT32_MAX));
}

static void put_json_field(struct buf *out, const char *name, struct span text)
{
    buf_format(out, "%s\"%s\":\"", out->data[out->length - 1] == '{' ? "" : ",", name);
    for (size_t i = 0; i < text.length; i++) {
        if (text.data[i] == '"' || text.data[i] == '\\' || text.data[i] < 0x20)
            buf_format(out, "\\u%04x", text.data[i]);
        else
            buf_put_byte(out, text.data[i]);
    }
    buf_put_byte(out, '"');
}

static void put_json_strings(struct buf *out, const char *name, struct span ref, uint32_t number)
{
    struct wire wire = wire_of(ref);
    struct wire_field field;
    bool is_first = true;
    while (wire_next(&wire, &field)) {
        if (field.key != WIRE_KEY(number, WIRE_LEN))
            continue;
        if (is_first)
            buf_format(out, "%s\"%s\":[", out->data[out->length - 1] == '{' ? "" : ",", name);
        else
            buf_put_byte(out, ',');
        is_first = false;
        struct buf one = {0};
        buf_put_byte(&one, '{');
        put_json_field(&one, "", field.bytes);
        buf_put(out, one.data + 4, one.length - 4); /* behind {"": */
        out->failed |= one.failed;
        buf_deinit(&one);
    }
    if (!is_first)
        buf_put_byte(out, ']');
}

/* Entity references as the JSON array that OTLP/JSON would send. */
static void put_entity_refs(struct otlp_decoder *decoder, struct arrow_builder *builder,
                            const struct buf *refs)
{
    struct buf json = {0};
    const struct span *spans = otlp_spans(refs);
    if (otlp_span_count(refs) == 0) {
        arrow_append_null(builder);
        return;
    }
    for (size_t i = 0; i < otlp_span_count(refs); i++) {
        struct wire wire = wire_of(spans[i]);
        struct wire_field field;
        struct span schema_url = {0}, type = {0};
        while (wire_next(&wire, &field)) {
            if (field.key == WIRE_KEY(1, WIRE_LEN))
                schema_url = field.bytes;
            else if (field.key == WIRE_KEY(2, WIRE_LEN))
                type = field.bytes;
            else if (field.key != WIRE_KEY(3, WIRE_LEN) && field.key != WIRE_KEY(4, WIRE_LEN))
                decoder->is_raw = true;
        }
        decoder->is_malformed |= wire.is_malformed;
        buf_put_text(&json, i == 0 ? "[{" : ",{");
        if (schema_url.length)
            put_json_field(&json, "schemaUrl", schema_url);
        if (type.length)
            put_json_field(&json, "type", type);
        put_json_strings(&json, "idKeys", spans[i], 3);
        put_json_strings(&json, "descriptionKeys", spans[i], 4);
        buf_put_byte(&json, '}');
    }
    buf_put_byte(&json, ']');
    if (json.failed)
        builder->values.failed = true;
    else
        otlp_put_text(decoder, builder, span_of(json.data, json.length));
    buf_deinit(&json);
}

static void append_resource(struct otlp_decoder *decoder, struct otlp_batch *batch)
{
    struct wire wire = wire_of(decoder->resource);
    struct wire_field field;
    uint64_t dropped = 0;
    struct arrow_builder *columns = batch->columns;
    buf_clear(&decoder->pairs2);
    buf_clear(&decoder->children2);
    while (wire_next(&wire, &field)) {
        switch (field.key) {
        case WIRE_KEY(1, WIRE_LEN):
            otlp_push_span(&decoder->pairs2, field.bytes);
            break;
        case WIRE_KEY(2, WIRE_VARINT):
            dropped = field.value;
            break;
        case WIRE_KEY(3, WIRE_LEN):
            otlp_push_span(&decoder->children2, field.bytes);
            break;
        default:
            decoder->is_raw = true;
            break;
        }
    }
    decoder->is_malformed |= wire.is_malformed;
    otlp_check_lists(decoder, batch);
    otlp_put_text_or_null(decoder, &columns[COL_SERVICE_NAME],
                          otlp_find_text_attribute(&decoder->pairs2, "service.name"));
    otlp_put_attributes(decoder, &columns[COL_RESOURCE_ATTRIBUTES],
                        &columns[COL_RESOURCE_ATTRIBUTES_TYPES], &decoder->pairs2);
    put_u32(&columns[COL_RESOURCE_DROPPED], dropped);
    otlp_put_text_or_null(decoder, &columns[COL_RESOURCE_SCHEMA_URL], decoder->resource_schema_url);
    put_entity_refs(decoder, &columns[COL_RESOURCE_ENTITY_REFS], &decoder->children2);
}

static void append_scope(struct otlp_decoder *decoder, struct otlp_batch *batch)
{
    struct wire wire = wire_of(decoder->scope);
    struct wire_field field;
    uint64_t dropped = 0;
    struct span name = {0}, version = {0};
    struct arrow_builder *columns = batch->columns;
    buf_clear(&decoder->pairs2);
    while (wire_next(&wire, &field)) {
        switch (field.key) {
        case WIRE_KEY(1, WIRE_LEN):
            name = field.bytes;
            break;
        case WIRE_KEY(2, WIRE_LEN):
            version = field.bytes;
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
    otlp_check_lists(decoder, batch);
    otlp_put_text_or_null(decoder, &columns[COL_SCOPE_NAME], name);
    otlp_put_text_or_null(decoder, &columns[COL_SCOPE_VERSION], version);
    otlp_put_attributes(decoder, &columns[COL_SCOPE_ATTRIBUTES],
                        &columns[COL_SCOPE_ATTRIBUTES_TYPES], &decoder->pairs2);
    put_u32(&columns[COL_SCOPE_DROPPED], dropped);
    otlp_put_text_or_null(decoder, &columns[COL_SCOPE_SCHEMA_URL], decoder->scope_schema_url);
}

/* `metric` without its data points was read by otlp_metrics.c into a header of its own. */
static void append_metric(struct otlp_decoder *decoder, struct otlp_batch *batch)
{
    struct wire wire = wire_of(decoder->metric);
    struct wire_field field;
    struct span texts[3] = {{0}};
    struct arrow_builder *columns = batch->columns;
    buf_clear(&decoder->pairs2);
    while (wire_next(&wire, &field)) {
        uint32_t number = field.key >> 3;
        if ((field.key & 7) == WIRE_LEN && number >= 1 && number <= 3)
            texts[number - 1] = field.bytes;
        else if (field.key == WIRE_KEY(12, WIRE_LEN))
            otlp_push_span(&decoder->pairs2, field.bytes);
    }
    otlp_check_lists(decoder, batch);
    otlp_put_text_or_null(decoder, &columns[MET_NAME], texts[0]);
    otlp_put_text_or_null(decoder, &columns[MET_DESCRIPTION], texts[1]);
    otlp_put_text_or_null(decoder, &columns[MET_UNIT], texts[2]);
    otlp_put_attributes(decoder, &columns[MET_METADATA], &columns[MET_METADATA_TYPES],
                        &decoder->pairs2);
}

static struct hash128 domain_identity(const struct otlp_decoder *decoder, enum otlp_domain domain)
{
    struct span message = decoder->metric, beside = {0};
    if (domain == DOMAIN_RESOURCE) {
        message = decoder->resource;
        beside = decoder->resource_schema_url;
    } else if (domain == DOMAIN_SCOPE) {
        message = decoder->scope;
        beside = decoder->scope_schema_url;
    }
    struct hash128 first = hash128_seeded(message.data, message.length, decoder->hash_seed);
    if (beside.length == 0)
        return first;
    struct hash128 second =
        hash128_seeded(beside.data, beside.length, decoder->hash_seed ^ message.length);
    return hash128_add(first, (struct hash128){second.low ^ (second.high << 1), second.high});
}

/* The same, reckoned once for all the tables that the message has rows in. */
static struct hash128 identity_at_hand(struct otlp_decoder *decoder, enum otlp_domain domain)
{
    if (decoder->identity_generation[domain] != decoder->domain_generation[domain]) {
        decoder->identities[domain] = domain_identity(decoder, domain);
        decoder->identity_generation[domain] = decoder->domain_generation[domain];
    }
    return decoder->identities[domain];
}

/* Is the metric at hand the one that the table's last row was of? Exporters that send each point as
 * a metric of its own repeat its header again and again. */
static inline bool is_last_metric(const struct otlp_decoder *decoder,
                                  const struct otlp_batch *batch)
{
    return decoder->metric.length == batch->last_metric_length && batch->last_metric_length &&
           memcmp(decoder->metric.data, batch->last_metric, batch->last_metric_length) == 0;
}

static void keep_last_metric(const struct otlp_decoder *decoder, struct otlp_batch *batch)
{
    batch->last_metric_length = 0;
    if (decoder->metric.length == 0 || decoder->metric.length > sizeof batch->last_metric)
        return;
    memcpy(batch->last_metric, decoder->metric.data, decoder->metric.length);
    batch->last_metric_length = decoder->metric.length;
}

/* Bytes within the item at hand, or what it stands in, that are no message touch nothing else. */
static void refuse_malformed(struct otlp_decoder *decoder)
{
    if (decoder->is_malformed && !decoder->refusal)
        decoder->refusal = "its bytes are not well-formed protobuf";
    decoder->is_malformed = false;
}

/* Makes sure that the message at hand of a domain has an ordinal in this batch. */
static bool intern(struct otlp_decoder *decoder, struct otlp_batch *batch, enum otlp_domain domain)
{
    static void (*const append[DOMAIN_COUNT])(struct otlp_decoder *, struct otlp_batch *) = {
        NULL, append_resource, append_scope, append_metric};
    if (batch->generation[domain] == decoder->domain_generation[domain])
        return true;
    struct otlp_memo *memo = &batch->memos[domain];
    if (domain == DOMAIN_METRIC && is_last_metric(decoder, batch)) {
        batch->generation[domain] = decoder->domain_generation[domain];
        return true;
    }
    struct hash128 key = identity_at_hand(decoder, domain);
    int32_t ordinal = otlp_memo_find(memo, key);
    if (ordinal < 0) {
        bool was_raw = decoder->is_raw;
        decoder->is_raw = decoder->is_domain_raw[domain];
        append[domain](decoder, batch);
        refuse_malformed(decoder);
        if (!decoder->refusal)
            ordinal = otlp_memo_add(memo, key, decoder->is_raw);
        decoder->is_raw = was_raw;
        if (ordinal < 0) {
            batch->is_failed |= !decoder->refusal;
            if (decoder->refusal)
                decoder->refused_generation = decoder->domain_generation[domain];
            return false;
        }
    }
    batch->current[domain] = ordinal;
    if (domain == DOMAIN_METRIC)
        keep_last_metric(decoder, batch);
    batch->generation[domain] = decoder->domain_generation[domain];
    return true;
}

/* ---- rows ---- */

static struct otlp_batch *make_batch(struct otlp_decoder *decoder, enum otlp_table_id table)
{
    struct error ignored;
    if (otlp_batch_create(table, &decoder->batches[table], &ignored) != STATUS_OK)
        decoder->is_out_of_memory = true;
    return decoder->batches[table];
}

static inline struct otlp_batch *batch_of(struct otlp_decoder *decoder, enum otlp_table_id table)
{
    struct otlp_batch *batch = decoder->batches[table];
    return __builtin_expect(batch != NULL, 1) ? batch : make_batch(decoder, table);
}

/* The message around an item without the field that holds it; made once for all its items. */
static const struct buf *frame_of(struct otlp_decoder *decoder, uint32_t index)
{
    struct otlp_level *level = &decoder->levels[index];
    struct buf *frame = &decoder->frames[index];
    struct wire wire = wire_of(level->message);
    struct wire_field field;
    if (level->has_frame)
        return frame;
    buf_clear(frame);
    while (wire_next(&wire, &field)) {
        if (field.key != WIRE_KEY(level->field, WIRE_LEN))
            buf_put(frame, field.start, (size_t)(wire.at - field.start));
    }
    level->has_frame = !frame->failed;
    return frame;
}

static uint64_t varint_bytes(uint64_t value)
{
    uint64_t bytes = 1;
    for (; value >= 0x80; value >>= 7)
        bytes++;
    return bytes;
}

/* The item as sent with all that encloses it, up to the ResourceLogs, -Spans or -Metrics message.
 * False, and nothing done: a large resource around many such items must not grow without bound. */
static bool put_raw(struct otlp_decoder *decoder, struct arrow_builder *builder, struct span item,
                    size_t bytes_max)
{
    uint64_t lengths[OTLP_LEVELS_MAX + 1]; /* of the message at each level, and of the item */
    const struct buf *frames[OTLP_LEVELS_MAX];
    struct buf *out = &decoder->scratch;
    uint32_t count = decoder->level_count;
    lengths[count] = item.length;
    for (uint32_t i = count; i > 0; i--) {
        const struct otlp_level *level = &decoder->levels[i - 1];
        frames[i - 1] = frame_of(decoder, i - 1);
        lengths[i - 1] = frames[i - 1]->length + varint_bytes(WIRE_KEY(level->field, WIRE_LEN)) +
                         varint_bytes(lengths[i]) + lengths[i];
        builder->values.failed |= frames[i - 1]->failed;
    }
    if (builder->values.length + lengths[0] > bytes_max)
        return false;
    buf_clear(out);
    for (uint32_t i = 0; i < count; i++) {
        buf_put(out, frames[i]->data, frames[i]->length);
        buf_put_varint(out, WIRE_KEY(decoder->levels[i].field, WIRE_LEN));
        buf_put_varint(out, lengths[i + 1]);
    }
    buf_put(out, item.data, item.length);
    builder->values.failed |= out->failed;
    arrow_append_bytes(builder, out->data, out->length);
    return true;
}

/* Keeps the bytes of an item that no table can hold. */
static void put_dead_letter(struct otlp_decoder *decoder, struct span item)
{
    static const char *const signals[SIGNAL_COUNT] = {"logs", "traces", "metrics"};
    struct otlp_batch *batch = batch_of(decoder, TABLE_DEAD_LETTERS);
    if (!batch)
        return;
    arrow_append_i64(&batch->columns[DEAD_TIME], decoder->received_us);
    otlp_put_text(decoder, &batch->columns[DEAD_SIGNAL], span_of_text(signals[decoder->signal]));
    arrow_append_i64(&batch->columns[DEAD_ITEM], (int64_t)(decoder->items - 1));
    otlp_put_text(decoder, &batch->columns[DEAD_REASON], span_of_text(decoder->refusal));
    if (!put_raw(decoder, &batch->columns[DEAD_RAW], item, decoder->bytes_max / 4))
        arrow_append_null(&batch->columns[DEAD_RAW]);
    arrow_append_i64(&batch->columns[DEAD_RECEIVED], decoder->received_us);
    batch->rows++;
}

static void note_rejected(struct otlp_decoder *decoder, struct span item)
{
    put_dead_letter(decoder, item);
    if (decoder->rejected++ == 0)
        snprintf(decoder->reject_reason, sizeof decoder->reject_reason, "item %llu: %s",
                 (unsigned long long)(decoder->items - 1), decoder->refusal);
}

/* Takes back what the row at hand has come to. A table that lacks something of the rows before, for
 * want of memory, fails the request: afterwards nothing would tell. */
static void reject(struct otlp_decoder *decoder, struct otlp_batch *batch, struct span item)
{
    decoder->is_out_of_memory |= otlp_batch_failed(batch);
    otlp_batch_drop_row(batch);
    note_rejected(decoder, item);
}

/* Begins an item; false: it is one too many. */
static bool item_begin(struct otlp_decoder *decoder)
{
    decoder->is_raw = false;
    decoder->refusal = NULL;
    if (++decoder->items > decoder->items_max)
        decoder->is_too_many = true;
    return !decoder->is_too_many;
}

void otlp_reject_malformed(struct otlp_decoder *decoder, struct span item)
{
    if (!item_begin(decoder)) {
        decoder->is_malformed = false;
        return;
    }
    refuse_malformed(decoder);
    note_rejected(decoder, item);
}

struct otlp_batch *otlp_row_begin(struct otlp_decoder *decoder, enum otlp_table_id table,
                                  struct span item)
{
    struct otlp_batch *batch = batch_of(decoder, table);
    bool is_raw = false;
    decoder->longs.length = decoder->longs2.length = 0;
    if (!item_begin(decoder) || !batch)
        return NULL;
    enum otlp_domain last = table >= TABLE_GAUGE ? DOMAIN_METRIC : DOMAIN_SCOPE;
    for (enum otlp_domain domain = DOMAIN_RESOURCE; domain <= last; domain++) {
        if (decoder->refused_generation == decoder->domain_generation[domain])
            decoder->refusal = "what encloses it was refused";
        if (decoder->refusal || !intern(decoder, batch, domain)) {
            if (decoder->refusal) /* of all items below; none of them can be kept */
                reject(decoder, batch, item);
            return NULL;
        }
        int32_t ordinal = batch->current[domain];
        buf_put(&batch->indices[domain], &ordinal, sizeof ordinal);
        is_raw |= batch->memos[domain].is_raw[ordinal] | decoder->is_domain_raw[domain];
    }
    decoder->is_raw = is_raw;
    return batch;
}

static bool is_plausible(uint64_t nano, int64_t received_us)
{
    const int64_t day_us = 86400 * (int64_t)1000000;
    if (nano == 0 || nano / 1000 > INT64_MAX / 2)
        return false;
    int64_t us = (int64_t)(nano / 1000);
    return us >= received_us - 5 * 365 * day_us && us <= received_us + day_us;
}

void otlp_row_end(struct otlp_decoder *decoder, struct otlp_batch *batch, struct span item,
                  uint64_t time_nano, uint64_t fallback_nano)
{
    if (__builtin_expect(decoder->is_malformed || decoder->refusal, 0)) {
        refuse_malformed(decoder);
        reject(decoder, batch, item);
        return;
    }
    int64_t time_us = decoder->received_us;
    if (is_plausible(time_nano, decoder->received_us))
        time_us = (int64_t)(time_nano / 1000);
    else if (is_plausible(fallback_nano, decoder->received_us))
        time_us = (int64_t)(fallback_nano / 1000);
    arrow_append_i64(&batch->columns[COL_TIME], time_us);
    if (decoder->is_raw) {
        decoder->repaired++;
        decoder->is_too_large |=
            !put_raw(decoder, otlp_reach(batch, COL_RAW), item, decoder->bytes_max);
    }
    batch->rows++;
}

/* ---- the request ---- */

static void decode_scope(struct otlp_decoder *decoder, enum otlp_signal signal, struct span message)
{
    static void (*const decode_item[SIGNAL_COUNT])(struct otlp_decoder *, struct span) = {
        otlp_decode_log_record, otlp_decode_span, otlp_decode_metric};
    struct wire wire = wire_of(message);
    struct wire_field field;
    if (!read_level(decoder, message, DOMAIN_SCOPE, &decoder->scope, &decoder->scope_schema_url))
        return;
    decoder->levels[1] = (struct otlp_level){.message = message, .field = 2};
    size_t ahead = size_min(message.length, AHEAD_BYTES_MAX) + AHEAD_BYTES;
    while (wire_next(&wire, &field)) {
        if (field.key != WIRE_KEY(2, WIRE_LEN))
            continue;
        decoder->level_count = 2;
        /* While this scope is decoded, for the next one: it may be as long. */
        prefetch_until(decoder, wire.at, ahead);
        decode_item[signal](decoder, field.bytes);
        if (otlp_must_stop(decoder))
            return;
    }
}

static void decode_resource(struct otlp_decoder *decoder, enum otlp_signal signal,
                            struct span message)
{
    struct wire wire = wire_of(message);
    struct wire_field field;
    if (!read_level(decoder, message, DOMAIN_RESOURCE, &decoder->resource,
                    &decoder->resource_schema_url))
        return;
    decoder->levels[0] = (struct otlp_level){.message = message, .field = 2};
    while (wire_next(&wire, &field)) {
        if (field.key == WIRE_KEY(2, WIRE_LEN))
            decode_scope(decoder, signal, field.bytes);
        if (otlp_must_stop(decoder))
            return;
    }
}

/* Rows of one request fall into at most OTLP_DAYS_MAX partitions: beyond its fullest days, the
 * receipt time stands for the item's. */
static void bound_days(struct otlp_decoder *decoder, struct otlp_batch *batch, int64_t from)
{
    enum { SLOTS = 4096 };
    const int64_t day_us = 86400 * (int64_t)1000000;
    int64_t *times = (int64_t *)(void *)batch->columns[COL_TIME].values.data;
    int64_t earliest = INT64_MAX, latest = INT64_MIN;
    for (int64_t i = from; i < batch->rows; i++) {
        earliest = times[i] < earliest ? times[i] : earliest;
        latest = times[i] > latest ? times[i] : latest;
    }
    if (latest / day_us - earliest / day_us < OTLP_DAYS_MAX)
        return;
    static _Thread_local struct {
        int64_t day, count;
    } days[SLOTS]; /* five years and a day of days are fewer than SLOTS */
    int64_t first = decoder->received_us / day_us - 5 * 365 - 1;
    size_t used = 0;
    for (int64_t i = from; i < batch->rows; i++) {
        int64_t slot = times[i] / day_us - first;
        CHECK(slot >= 0 && slot < SLOTS);
        used += days[slot].count++ == 0;
    }
    int64_t least = 1;
    while (used > OTLP_DAYS_MAX) { /* raise the bar until few enough days pass it */
        least++;
        used = 0;
        for (size_t i = 0; i < SLOTS; i++)
            used += days[i].count >= least;
        if (used == 0) { /* ties: let the first of them pass */
            size_t passed = 0;
            for (size_t i = 0; i < SLOTS; i++) {
                if (days[i].count >= least - 1 && days[i].count > 0 && ++passed > OTLP_DAYS_MAX)
                    days[i].count = 0;
            }
            least--;
            break;
        }
    }
    for (int64_t i = from; least > 1 && i < batch->rows; i++) {
        int64_t slot = times[i] / day_us - first;
        if (days[slot].count < least && times[i] / day_us != decoder->received_us / day_us) {
            times[i] = decoder->received_us;
            decoder->moved_times++;
        }
    }
    memset(days, 0, sizeof days);
}

void otlp_decode_drop_dead_letters(struct otlp_decoder *decoder)
{
    if (decoder->batches[TABLE_DEAD_LETTERS])
        otlp_batch_truncate(decoder->batches[TABLE_DEAD_LETTERS],
                            decoder->rows_before[TABLE_DEAD_LETTERS]);
}

void otlp_decode_trim(struct otlp_decoder *decoder)
{
    enum { KEPT_BYTES = 48 << 20 };
    for (int i = 0; i < OTLP_TABLE_COUNT; i++) {
        struct otlp_batch *batch = decoder->batches[i];
        if (!batch || batch->rows || otlp_batch_capacity(batch) <= KEPT_BYTES)
            continue;
        otlp_batch_destroy(batch);
        decoder->batches[i] = NULL; /* made again when it is needed */
    }
}

void otlp_decode_rollback(struct otlp_decoder *decoder)
{
    for (int i = 0; i < OTLP_TABLE_COUNT; i++) {
        if (decoder->batches[i])
            otlp_batch_truncate(decoder->batches[i], decoder->rows_before[i]);
    }
    otlp_decode_trim(decoder);
}

/* The receipt time of all rows of the request at once. */
static void put_received(const struct otlp_decoder *decoder, struct otlp_batch *batch)
{
    struct arrow_builder *builder = &batch->columns[COL_RECEIVED];
    int64_t count = batch->rows - builder->length;
    uint8_t *place = buf_extend(&builder->values, (size_t)count * sizeof(int64_t));
    for (int64_t i = 0; place && i < count; i++)
        put_le64(place + i * 8, (uint64_t)decoder->received_us);
    arrow_push_valids(builder, count);
}

static enum status check_batches(struct otlp_decoder *decoder, struct error *err)
{
    for (int i = 0; i < OTLP_TABLE_COUNT; i++) {
        struct otlp_batch *batch = decoder->batches[i];
        if (!batch)
            continue;
        if (i != TABLE_DEAD_LETTERS) /* which has another column there */
            put_received(decoder, batch);
        otlp_batch_complete(batch);
        if (otlp_batch_failed(batch)) /* though no row may have come through */
            return error_set(err, STATUS_NO_MEMORY, "out of memory for %lld rows",
                             (long long)batch->rows);
        if (batch->rows == decoder->rows_before[i])
            continue;
        if (otlp_batch_bytes(batch) > decoder->bytes_max)
            return error_set(err, STATUS_TOO_LARGE, "the request's rows take more than %zu bytes",
                             decoder->bytes_max);
        bound_days(decoder, batch, decoder->rows_before[i]);
    }
    return STATUS_OK;
}

enum status otlp_decode(struct otlp_decoder *decoder, enum otlp_signal signal, struct span body,
                        int64_t received_us, struct error *err)
{
    struct wire wire = wire_of(body);
    struct wire_field field;
    decoder->signal = signal;
    decoder->roomy = span_of(body.data, body.length > OTLP_ROOM ? body.length - OTLP_ROOM : 0);
    decoder->prefetched = (uintptr_t)body.data;
    decoder->received_us = received_us;
    decoder->items = decoder->rejected = decoder->repaired = decoder->moved_times = 0;
    decoder->reject_reason[0] = '\0';
    decoder->is_malformed = decoder->is_too_many = decoder->is_too_large = false;
    decoder->is_out_of_memory = false;
    decoder->malformed_at = NULL;
    decoder->parts = 0;
    for (int i = 0; i < OTLP_TABLE_COUNT; i++)
        decoder->rows_before[i] = decoder->batches[i] ? decoder->batches[i]->rows : 0;
    while (!otlp_must_stop(decoder) && wire_next(&wire, &field)) {
        if (field.key == WIRE_KEY(1, WIRE_LEN))
            decode_resource(decoder, signal, field.bytes);
    }
    if (wire.is_malformed)
        decoder->malformed_at = field.start;
    enum status status = STATUS_OK;
    if (decoder->malformed_at)
        status = error_set(err, STATUS_INVALID,
                           "the body is not a well-formed protobuf message: the field at byte %zu "
                           "is broken",
                           (size_t)(decoder->malformed_at - body.data));
    else if (decoder->is_too_many)
        status = error_set(err, STATUS_TOO_LARGE,
                           "the request has more than %llu items, or %d attributes and other parts",
                           (unsigned long long)decoder->items_max, (int)OTLP_PARTS_MAX);
    else if (decoder->is_too_large)
        status = error_set(err, STATUS_TOO_LARGE, "the request's rows take more than %zu bytes",
                           decoder->bytes_max);
    else if (decoder->is_out_of_memory)
        status = error_set(err, STATUS_NO_MEMORY, "out of memory for the request's rows");
    else
        status = check_batches(decoder, err);
    if (status != STATUS_OK)
        otlp_decode_rollback(decoder);
    return status;
}
