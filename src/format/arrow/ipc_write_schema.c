/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrow IPC, writing: the frame of a message, and schemas. A field with an origin is written as
 * what it was, where its buffers are those of that type.
 */
#include "format/arrow/ipc_internal.h"

/* ---- messages ---- */

void outgoing_begin(struct outgoing *message, struct buf *out, enum ipc_header type,
                    bool has_metadata)
{
    struct flat_slot slots[] = {FLAT_SHORT(IPC_METADATA_V5), FLAT_BYTE(type), FLAT_OFFSET,
                                FLAT_LONG(0), FLAT_ABSENT};
    slots[4].bytes = has_metadata ? 4 : 0;
    buf_pad(out, IPC_CONTINUATION_BYTES);
    message->start = out->length;
    buf_put_le32(out, UINT32_MAX);
    buf_put_le32(out, 0);
    flat_begin(&message->flat, out);
    flat_patch(&message->flat, 0, flat_table(&message->flat, slots, COUNT_OF(slots)));
    message->header_at = slots[2].at;
    message->body_bytes_at = slots[3].at;
    message->metadata_at = slots[4].at;
}

void outgoing_end(struct outgoing *message, uint64_t body_bytes)
{
    struct buf *out = message->flat.out;
    buf_pad(out, IPC_BODY_ALIGNMENT);
    if (out->failed)
        return;
    size_t metadata_bytes = out->length - message->start - IPC_CONTINUATION_BYTES;
    put_le32(out->data + message->start + 4, (uint32_t)metadata_bytes);
    put_le64(out->data + message->flat.start + message->body_bytes_at, body_bytes);
}

void outgoing_take_back(struct buf *out, size_t start)
{
    buf_truncate(out, start);
    out->failed = false;
}

/* ---- schema ---- */

static size_t write_int(struct flat_writer *flat, int bits, bool is_signed)
{
    struct flat_slot slots[] = {FLAT_INT(bits), FLAT_BYTE(is_signed)};
    return flat_table(flat, slots, COUNT_OF(slots));
}

static size_t write_short(struct flat_writer *flat, int value)
{
    struct flat_slot slots[] = {FLAT_SHORT(value)};
    return flat_table(flat, slots, COUNT_OF(slots));
}

static size_t write_timestamp(struct flat_writer *flat, const struct arrow_field *field,
                              enum arrow_unit unit)
{
    struct flat_slot slots[] = {FLAT_SHORT(unit), FLAT_OFFSET};
    size_t at = flat_table(flat, slots, field->is_instant ? 2 : 1);
    const char *zone = field->origin && field->origin->timezone ? field->origin->timezone : "UTC";
    if (field->is_instant)
        flat_patch(flat, slots[1].at, flat_string(flat, zone));
    return at;
}

/* What an origin says beyond the type; kinds that our type says as well are written as that. */
static const struct {
    enum arrow_origin_kind kind;
    enum ipc_type type;
} original_types[] = {
    {ARROW_ORIGIN_INT, IPC_INT},
    {ARROW_ORIGIN_UINT, IPC_INT},
    {ARROW_ORIGIN_HALF, IPC_FLOATING_POINT},
    {ARROW_ORIGIN_DECIMAL, IPC_DECIMAL},
    {ARROW_ORIGIN_DATE_MS, IPC_DATE},
    {ARROW_ORIGIN_TIME, IPC_TIME},
    {ARROW_ORIGIN_TIMESTAMP, IPC_TIMESTAMP},
    {ARROW_ORIGIN_DURATION, IPC_DURATION},
    {ARROW_ORIGIN_MONTHS, IPC_INTERVAL},
    {ARROW_ORIGIN_DAY_TIME, IPC_INTERVAL},
    {ARROW_ORIGIN_MONTH_DAY_NANO, IPC_INTERVAL},
    {ARROW_ORIGIN_FIXED_LIST, IPC_FIXED_SIZE_LIST},
};

/* Those whose number says it all. */
static const struct {
    enum arrow_origin_kind kind;
    enum arrow_type type;
    enum ipc_type id;
} other_layouts[] = {
    {ARROW_ORIGIN_LARGE, ARROW_UTF8, IPC_LARGE_UTF8},
    {ARROW_ORIGIN_LARGE, ARROW_BINARY, IPC_LARGE_BINARY},
    {ARROW_ORIGIN_LARGE, ARROW_LIST, IPC_LARGE_LIST},
    {ARROW_ORIGIN_VIEW, ARROW_UTF8, IPC_UTF8_VIEW},
    {ARROW_ORIGIN_VIEW, ARROW_BINARY, IPC_BINARY_VIEW},
    {ARROW_ORIGIN_LIST_VIEW, ARROW_LIST, IPC_LIST_VIEW},
    {ARROW_ORIGIN_LARGE_LIST_VIEW, ARROW_LIST, IPC_LARGE_LIST_VIEW},
};

static size_t write_original_type(struct flat_writer *flat, const struct arrow_field *field)
{
    const struct arrow_origin *origin = field->origin;
    int bits = field->byte_width * 8;
    struct flat_slot decimal[] = {FLAT_INT(origin->precision), FLAT_INT(origin->scale),
                                  FLAT_INT(bits)};
    struct flat_slot time[] = {FLAT_SHORT(origin->unit), FLAT_INT(bits)};
    struct flat_slot list_size[] = {FLAT_INT(origin->list_size)};
    switch (origin->kind) {
    case ARROW_ORIGIN_FIXED_LIST:
        return flat_table(flat, list_size, COUNT_OF(list_size));
    case ARROW_ORIGIN_HALF:
        return write_short(flat, IPC_HALF);
    case ARROW_ORIGIN_DECIMAL:
        return flat_table(flat, decimal, COUNT_OF(decimal));
    case ARROW_ORIGIN_DATE_MS:
        return write_short(flat, IPC_MILLISECOND);
    case ARROW_ORIGIN_TIME:
        return flat_table(flat, time, COUNT_OF(time));
    case ARROW_ORIGIN_TIMESTAMP:
        return write_timestamp(flat, field, origin->unit);
    case ARROW_ORIGIN_DURATION:
        return write_short(flat, (int)origin->unit);
    case ARROW_ORIGIN_MONTHS:
        return write_short(flat, IPC_YEAR_MONTH);
    case ARROW_ORIGIN_DAY_TIME:
        return write_short(flat, IPC_DAY_TIME);
    case ARROW_ORIGIN_MONTH_DAY_NANO:
        return write_short(flat, IPC_MONTH_DAY_NANO);
    default:
        return write_int(flat, bits, origin->kind == ARROW_ORIGIN_INT);
    }
}

static size_t write_plain_type(struct flat_writer *flat, const struct arrow_field *field)
{
    struct flat_slot width[] = {FLAT_INT(field->byte_width)};
    struct flat_slot keys_sorted[] = {FLAT_BYTE(field->origin && field->origin->has_sorted_keys)};
    switch (field->type) {
    case ARROW_INT32:
    case ARROW_INT64:
        return write_int(flat, field->type == ARROW_INT32 ? 32 : 64, true);
    case ARROW_FLOAT:
    case ARROW_DOUBLE:
        return write_short(flat, field->type == ARROW_FLOAT ? IPC_SINGLE : IPC_DOUBLE);
    case ARROW_DATE32:
        return write_short(flat, IPC_DAY);
    case ARROW_TIMESTAMP_US:
        return write_timestamp(flat, field, ARROW_MICROS);
    case ARROW_FIXED:
        return flat_table(flat, width, COUNT_OF(width));
    case ARROW_MAP:
        return flat_table(flat, keys_sorted, COUNT_OF(keys_sorted));
    default:
        return flat_table(flat, NULL, 0);
    }
}

/* The number of the field's type in the union, and its table. */
static enum ipc_type type_id(const struct arrow_field *field, bool *out_is_original)
{
    static const uint8_t ids[ARROW_TYPE_COUNT] = {
        [ARROW_NULL] = IPC_NULL,
        [ARROW_BOOL] = IPC_BOOL,
        [ARROW_INT32] = IPC_INT,
        [ARROW_INT64] = IPC_INT,
        [ARROW_FLOAT] = IPC_FLOATING_POINT,
        [ARROW_DOUBLE] = IPC_FLOATING_POINT,
        [ARROW_DATE32] = IPC_DATE,
        [ARROW_TIMESTAMP_US] = IPC_TIMESTAMP,
        [ARROW_UTF8] = IPC_UTF8,
        [ARROW_BINARY] = IPC_BINARY,
        [ARROW_FIXED] = IPC_FIXED_SIZE_BINARY,
        [ARROW_LIST] = IPC_LIST,
        [ARROW_STRUCT] = IPC_STRUCT,
        [ARROW_MAP] = IPC_MAP,
    };
    *out_is_original = false;
    for (size_t i = 0; field->origin && i < COUNT_OF(original_types); i++) {
        if (original_types[i].kind == field->origin->kind) {
            *out_is_original = true;
            return original_types[i].type;
        }
    }
    for (size_t i = 0; field->origin && i < COUNT_OF(other_layouts); i++)
        if (other_layouts[i].kind == field->origin->kind && other_layouts[i].type == field->type)
            return other_layouts[i].id;
    return ids[field->type];
}

static size_t write_dictionary_encoding(struct flat_writer *flat, const struct arrow_field *field,
                                        int64_t id)
{
    const struct arrow_origin *origin = field->origin;
    int bits = (int)dictionary_index_width(field) * 8;
    bool is_signed = !origin || !origin->index_bits || !origin->index_is_unsigned;
    struct flat_slot index_type[] = {FLAT_INT(bits), FLAT_BYTE(is_signed)};
    struct flat_slot encoding[] = {FLAT_LONG(id), FLAT_OFFSET,
                                   FLAT_BYTE(origin && origin->is_ordered)};
    size_t at = flat_table(flat, encoding, COUNT_OF(encoding));
    flat_patch(flat, encoding[1].at, flat_table(flat, index_type, COUNT_OF(index_type)));
    return at;
}

/* The ith of a vector of pairs. */
static void write_pair(struct flat_writer *flat, size_t vector_at, size_t i, struct arrow_pair pair)
{
    struct flat_slot slots[] = {FLAT_OFFSET, FLAT_OFFSET};
    flat_patch(flat, vector_at + 4 + i * 4, flat_table(flat, slots, COUNT_OF(slots)));
    flat_patch(flat, slots[0].at, flat_bytes(flat, pair.key));
    flat_patch(flat, slots[1].at, flat_bytes(flat, pair.value));
}

static void write_field_pairs(struct flat_writer *flat, size_t slot_at,
                              const struct field_pairs *pairs)
{
    size_t vector = flat_offsets(flat, pairs->count);
    flat_patch(flat, slot_at, vector);
    for (size_t i = 0; i < pairs->count; i++)
        write_pair(flat, vector, i, field_pair_at(pairs, i));
}

struct schema_writer {
    struct flat_writer *flat;
    int64_t dictionaries; /* seen so far */
};

int64_t ipc_take_dictionary_id(int64_t *dictionaries, const struct arrow_field *field)
{
    int64_t ordinal = (*dictionaries)++;
    return field->dictionary_key ? field->dictionary_key - 1 : ordinal;
}

static size_t write_field(struct schema_writer *schema, const struct arrow_field *field);

static void write_children(struct schema_writer *schema, size_t slot_at,
                           const struct arrow_field *children, uint32_t count)
{
    size_t vector = flat_offsets(schema->flat, count);
    flat_patch(schema->flat, slot_at, vector);
    for (uint32_t i = 0; i < count; i++)
        flat_patch(schema->flat, vector + 4 + (size_t)i * 4, write_field(schema, &children[i]));
}

static size_t write_field(struct schema_writer *schema, const struct arrow_field *field)
{
    struct flat_writer *flat = schema->flat;
    bool is_original;
    struct field_pairs pairs;
    field_pairs_init(&pairs, field);
    struct flat_slot slots[] = {FLAT_OFFSET,
                                FLAT_BYTE(field->is_nullable),
                                FLAT_BYTE(type_id(field, &is_original)),
                                FLAT_OFFSET,
                                FLAT_ABSENT,
                                FLAT_OFFSET,
                                FLAT_ABSENT};
    slots[4].bytes = field->is_dictionary ? 4 : 0;
    slots[6].bytes = pairs.count ? 4 : 0;
    size_t at = flat_table(flat, slots, COUNT_OF(slots));
    flat_patch(flat, slots[0].at, flat_string(flat, field->name));
    flat_patch(flat, slots[3].at,
               is_original ? write_original_type(flat, field) : write_plain_type(flat, field));
    if (field->is_dictionary) {
        int64_t id = ipc_take_dictionary_id(&schema->dictionaries, field);
        flat_patch(flat, slots[4].at, write_dictionary_encoding(flat, field, id));
    }
    if (pairs.count)
        write_field_pairs(flat, slots[6].at, &pairs);
    if (field->type == ARROW_MAP) {
        /* The struct between a map and its two children is ours to make up. */
        char name[] = "entries";
        struct arrow_field entries = {.name = name,
                                      .type = ARROW_STRUCT,
                                      .children = field->children,
                                      .child_count = field->child_count};
        write_children(schema, slots[5].at, &entries, 1);
    } else {
        write_children(schema, slots[5].at, field->children, field->child_count);
    }
    return at;
}

void ipc_write_metadata(struct flat_writer *flat, size_t slot_at,
                        const struct arrow_metadata *metadata)
{
    size_t vector = flat_offsets(flat, metadata->count);
    flat_patch(flat, slot_at, vector);
    for (uint32_t i = 0; i < metadata->count; i++)
        write_pair(flat, vector, i, metadata->pairs[i]);
}

size_t ipc_write_schema_table(struct flat_writer *flat, const struct arrow_schema *schema)
{
    struct schema_writer writer = {.flat = flat};
    const struct arrow_metadata *metadata = &schema->metadata;
    struct flat_slot slots[] = {FLAT_SHORT(0), FLAT_OFFSET, FLAT_ABSENT};
    slots[2].bytes = metadata->count ? 4 : 0;
    size_t at = flat_table(flat, slots, COUNT_OF(slots));
    write_children(&writer, slots[1].at, schema->fields, schema->field_count);
    if (metadata->count)
        ipc_write_metadata(flat, slots[2].at, metadata);
    return at;
}

enum status arrow_ipc_write_schema(const struct arrow_schema *schema, struct buf *out,
                                   struct error *err)
{
    struct outgoing message;
    size_t start = out->length;
    outgoing_begin(&message, out, IPC_SCHEMA, false);
    flat_patch(&message.flat, message.header_at, ipc_write_schema_table(&message.flat, schema));
    outgoing_end(&message, 0);
    enum status status = buf_status(out, "arrow: writing a schema", err);
    if (status != STATUS_OK)
        outgoing_take_back(out, start);
    return status;
}
