/* SPDX-License-Identifier: Apache-2.0
 *
 * OTLP protobuf -> columns. One decoder a worker; its batches are filled by request after request.
 *
 * A request whose framing is broken, so that nobody can tell its items, is refused whole, and what
 * it had appended is rolled back. What is wrong within an item touches that item alone: it is
 * rejected (bytes that are no message, nested too deeply), with its bytes kept in
 * otel.dead_letters, or stored with the message's bytes in _sluice_raw beside what columns can hold
 * (text that is not UTF-8, ids of wrong length, times beyond int64, keys that stand twice, unknown
 * fields). A resource or scope that cannot be stored takes the items below with it; a Metric of
 * which the points cannot be told is one item.
 *
 * Rules: text without presence is null where empty; keys that stand twice: the last value counts;
 * ids are lower-case hex; values of attributes are text with one type character a pair.
 */
#ifndef SLUICE_FLOW_INGEST_OTLP_DECODE_H
#define SLUICE_FLOW_INGEST_OTLP_DECODE_H

#include "flow/ingest/otlp_batch.h"
#include "format/wire/wire.h"

enum otlp_signal { SIGNAL_LOGS, SIGNAL_TRACES, SIGNAL_METRICS, SIGNAL_COUNT };

enum { OTLP_DEPTH_MAX = 64, OTLP_LEVELS_MAX = 4, OTLP_DAYS_MAX = 32 };
/* What small bytes on the wire may grow into: parts of one list, and of all lists of a request. */
enum { OTLP_LIST_MAX = 65536, OTLP_PARTS_MAX = 2000000 };

/* A usual pair is at most 258 bytes long, and is copied in steps of 32. */
enum { OTLP_ROOM = 258 + 32 };

/* A message that encloses the item, and the field by which it does. */
struct otlp_level {
    struct span message;
    uint32_t field;
    bool has_frame; /* decoder->frames[] holds the message without that field */
};

struct otlp_decoder {
    struct otlp_batch *batches[OTLP_TABLE_COUNT]; /* made when first needed */
    uint64_t hash_seed; /* so that nobody can choose which resources collide */
    uint64_t items_max;
    size_t bytes_max; /* of a batch, after a request */

    bool has_repaired_keys; /* an attribute's key was not UTF-8, once */

    /* of the request at hand */
    enum otlp_signal signal;
    struct span roomy;    /* the bytes of the body behind which OTLP_ROOM more may be read */
    uintptr_t prefetched; /* the body's bytes before this address were called for */
    int64_t received_us;
    uint64_t items, rejected, repaired, moved_times;
    char reject_reason[240]; /* the first one */
    uint64_t parts;
    bool is_too_many, is_too_large, is_out_of_memory;
    const uint8_t *malformed_at; /* the field around items that is broken; NULL: none */
    int64_t rows_before[OTLP_TABLE_COUNT];

    /* of the messages around the item */
    struct span resource, resource_schema_url, scope, scope_schema_url, metric;
    bool is_domain_raw[DOMAIN_COUNT]; /* something at that level that no column holds */
    uint64_t generation;              /* rises with every change of the above */
    uint64_t domain_generation[DOMAIN_COUNT];
    struct hash128 identities[DOMAIN_COUNT];
    uint64_t identity_generation[DOMAIN_COUNT];
    struct otlp_level levels[OTLP_LEVELS_MAX];
    struct buf frames[OTLP_LEVELS_MAX];
    uint32_t level_count;

    /* of the item */
    bool is_raw, is_malformed;
    const char *refusal;         /* why the item must be rejected; NULL: it need not */
    uint64_t refused_generation; /* of a resource or scope that was refused */
    struct buf pairs, pairs2;    /* struct span: attributes, and those of a nested message */
    struct buf children;         /* struct span: events, links, exemplars, ... */
    struct buf children2;
    struct buf longs, longs2; /* uint64_t: bucket counts, bounds */
    struct buf text, types, scratch, slots, merged[DOMAIN_COUNT];
};

void otlp_decoder_init(struct otlp_decoder *decoder, uint64_t hash_seed, uint64_t items_max,
                       size_t bytes_max);
void otlp_decoder_deinit(struct otlp_decoder *decoder);

/* Appends the rows of one request. INVALID (malformed), TOO_LARGE, NO_MEMORY: nothing was appended.
 * Otherwise `rejected` and `reject_reason` tell of items that were refused. */
enum status otlp_decode(struct otlp_decoder *decoder, enum otlp_signal signal, struct span body,
                        int64_t received_us, struct error *err) MUST_CHECK;
/* Empty tables that hold much give it back: what a large request needed is not kept for small ones.
 * Done by otlp_decode_rollback too. */
void otlp_decode_trim(struct otlp_decoder *decoder);
/* Takes back what the last request brought to otel.dead_letters. */
void otlp_decode_drop_dead_letters(struct otlp_decoder *decoder);
/* Takes back the rows of the last request. */
void otlp_decode_rollback(struct otlp_decoder *decoder);

/* ---- between the files of the decoder ---- */

/* The batch of a table with the resource, scope and (for metrics) metric of the item interned and
 * their indices appended for one more row; NULL: no memory, or rejected. */
struct otlp_batch *otlp_row_begin(struct otlp_decoder *decoder, enum otlp_table_id table,
                                  struct span item);
/* Rejects an item of which no row was begun: a message that cannot be read. */
void otlp_reject_malformed(struct otlp_decoder *decoder, struct span item);
/* Ends the row: time, receipt time, raw bytes. Rolls it back where the item is to be rejected. */
void otlp_row_end(struct otlp_decoder *decoder, struct otlp_batch *batch, struct span item,
                  uint64_t time_nano, uint64_t fallback_nano);

/* To call once the lists of the item at hand are filled: counts them, and refuses what is too long.
 */
void otlp_check_lists(struct otlp_decoder *decoder, struct otlp_batch *batch);
/* The same for one list of a nested message. */
void otlp_refuse_long(struct otlp_decoder *decoder, const struct buf *list);
void otlp_put_text(struct otlp_decoder *decoder, struct arrow_builder *builder, struct span text);
void otlp_put_text_or_null(struct otlp_decoder *decoder, struct arrow_builder *builder,
                           struct span text);
void otlp_put_id(struct otlp_decoder *decoder, struct arrow_builder *builder, struct span id,
                 size_t width);
/* The text itself, or a repaired copy in decoder->text. */
struct span otlp_clean_text(struct otlp_decoder *decoder, struct span text);

enum otlp_any_key {
    ANY_STRING = WIRE_KEY(1, WIRE_LEN),
    ANY_BOOL = WIRE_KEY(2, WIRE_VARINT),
    ANY_INT = WIRE_KEY(3, WIRE_VARINT),
    ANY_DOUBLE = WIRE_KEY(4, WIRE_I64),
    ANY_ARRAY = WIRE_KEY(5, WIRE_LEN),
    ANY_KVLIST = WIRE_KEY(6, WIRE_LEN),
    ANY_BYTES = WIRE_KEY(7, WIRE_LEN),
};

struct otlp_pair { /* KeyValue */
    struct span key, value;
    bool has_value;
};

struct otlp_pair otlp_parse_pair(struct otlp_decoder *decoder, struct span message);
/* An AnyValue as text; *out_type its character. */
void otlp_put_any(struct otlp_decoder *decoder, struct arrow_builder *builder, struct span any,
                  char *out_type);
/* KeyValue messages as a map and its types; one slot each. */
void otlp_put_attributes(struct otlp_decoder *decoder, struct arrow_builder *map,
                         struct arrow_builder *types, const struct buf *pairs);
/* The text of attribute `name` if it is there as a string; data NULL otherwise. */
struct span otlp_find_text_attribute(const struct buf *pairs, const char *name);

static inline void otlp_put_u64(struct otlp_decoder *decoder, struct arrow_builder *builder,
                                uint64_t value)
{
    if (__builtin_expect(value <= INT64_MAX, 1)) {
        arrow_append_i64(builder, (int64_t)value);
        return;
    }
    decoder->is_raw = true;
    arrow_append_null(builder);
}

/* Word by word: a copy of the whole would read two words that were just written as one, for which
 * the processor waits until both are in the cache. */
static inline void otlp_push_span(struct buf *list, struct span span)
{
    if (__builtin_expect(list->capacity - list->length < sizeof span, 0) &&
        !buf_reserve(list, sizeof span))
        return;
    uint8_t *place = list->data + list->length;
    memcpy(place, &span.data, sizeof span.data);
    memcpy(place + sizeof span.data, &span.length, sizeof span.length);
    list->length += sizeof span;
}

static inline size_t otlp_span_count(const struct buf *list)
{
    return list->length / sizeof(struct span);
}

static inline const struct span *otlp_spans(const struct buf *list)
{
    return (const struct span *)(const void *)list->data;
}

/* Their text is "NaN" like that of the usual one, which has no other bits. */
static inline bool otlp_is_odd_nan(uint64_t bits)
{
    const uint64_t usual = UINT64_C(0x7ff8) << 48, infinity = UINT64_C(0x7ff0) << 48;
    return (bits & INT64_MAX) > infinity && bits != usual;
}

/* Into columns that may lag. */
static inline void otlp_put_rare_text(struct otlp_decoder *decoder, struct otlp_batch *batch,
                                      uint32_t column, struct span text)
{
    if (text.length)
        otlp_put_text(decoder, otlp_reach(batch, column), text);
}

/* A list of nested messages: an element each, by `put`. */
static inline void otlp_put_rare_list(struct otlp_decoder *decoder, struct otlp_batch *batch,
                                      uint32_t column, const struct buf *messages,
                                      void (*put)(struct otlp_decoder *decoder,
                                                  struct arrow_builder *element,
                                                  struct span message))
{
    size_t count = otlp_span_count(messages);
    if (count == 0)
        return;
    struct arrow_builder *list = otlp_reach(batch, column);
    for (size_t i = 0; i < count; i++)
        put(decoder, &list->children[0], otlp_spans(messages)[i]);
    arrow_close_list(list);
}

static inline void otlp_put_rare_count(struct otlp_batch *batch, uint32_t column, uint64_t value)
{
    if (value & UINT32_MAX)
        arrow_append_i64(otlp_reach(batch, column), (int64_t)(value & UINT32_MAX));
}

static inline bool otlp_must_stop(const struct otlp_decoder *decoder)
{
    return decoder->malformed_at || decoder->is_too_many || decoder->is_too_large ||
           decoder->is_out_of_memory;
}

void otlp_decode_log_record(struct otlp_decoder *decoder, struct span item);
void otlp_decode_span(struct otlp_decoder *decoder, struct span item);
void otlp_decode_metric(struct otlp_decoder *decoder, struct span metric);

#endif
