/* SPDX-License-Identifier: Apache-2.0
 *
 * Builders: growing columns, and the memo that turns repeated values into dictionary indices.
 *
 * Invariant, unless a buffer has failed: offsets holds length + 1 entries; values holds length
 * fixed values, or the bytes up to the last offset; validity is empty or holds ceil(length / 8)
 * bytes whose bits past `length` are zero.
 */
#include "format/arrow/arrow_internal.h"

enum { BUFFER_BYTES_MAX = INT32_MAX };

/* Open addressing over the dictionary's entries; a slot is the hash's upper half and index + 1. */
struct arrow_memo {
    uint64_t *slots;
    size_t mask; /* slot count - 1 */
    size_t count;
};

enum { MEMO_SLOTS_MIN = 64 };

static bool has_offsets(const struct arrow_builder *builder)
{
    enum arrow_layout layout = type_layout(builder->field->type);
    return !builder->field->is_dictionary && (layout == LAYOUT_BYTES || layout == LAYOUT_LIST);
}

static void put_first_offset(struct arrow_builder *builder)
{
    if (has_offsets(builder))
        buf_put_le32(&builder->offsets, 0);
}

/* 4 and 8 are the widths of nearly all; bytes and text have none in `values`. */
static int32_t null_bytes(const struct arrow_field *field)
{
    int32_t width = field->is_dictionary ? (int32_t)sizeof(int32_t) : type_width(field);
    if (width == 4 || width == 8)
        return width;
    return !field->is_dictionary && type_layout(field->type) == LAYOUT_BYTES ? 0 : -1;
}

static enum status init_dictionary(struct arrow_builder *builder, struct error *err)
{
    /* The values' field differs from ours in two flags, and lives as long as the builder. */
    struct {
        struct arrow_builder builder;
        struct arrow_field field;
    } *values = mem_alloc_zero(1, sizeof *values);
    if (!values)
        return error_set(err, STATUS_NO_MEMORY, "arrow: no memory for a dictionary builder");
    values->field = dictionary_value_field(builder->field);
    builder->dictionary = &values->builder;
    return arrow_builder_init(builder->dictionary, &values->field, err);
}

enum status arrow_builder_init(struct arrow_builder *builder, const struct arrow_field *field,
                               struct error *err)
{
    enum status status = STATUS_OK;
    *builder = (struct arrow_builder){.field = field, .null_bytes = null_bytes(field)};
    buf_init(&builder->validity, BUFFER_BYTES_MAX);
    buf_init(&builder->offsets, BUFFER_BYTES_MAX);
    buf_init(&builder->values, BUFFER_BYTES_MAX);
    if (field->is_dictionary) {
        TRY_OR_DONE(status, init_dictionary(builder, err));
    } else if (field->child_count) {
        builder->children = mem_alloc_zero(field->child_count, sizeof *builder->children);
        if (!builder->children) {
            status = error_set(err, STATUS_NO_MEMORY, "arrow: no memory for builders");
            goto done;
        }
        for (uint32_t i = 0; i < field->child_count; i++) {
            builder->child_count = i + 1;
            TRY_OR_DONE(status,
                        arrow_builder_init(&builder->children[i], &field->children[i], err));
        }
    }
    put_first_offset(builder);
    if (builder->offsets.failed)
        status = error_set(err, STATUS_NO_MEMORY, "arrow: no memory for builders");
done:
    if (status != STATUS_OK)
        arrow_builder_deinit(builder);
    return status;
}

void arrow_builder_deinit(struct arrow_builder *builder)
{
    for (uint32_t i = 0; i < builder->child_count; i++)
        arrow_builder_deinit(&builder->children[i]);
    mem_free(builder->children);
    if (builder->dictionary)
        arrow_builder_deinit(builder->dictionary);
    mem_free(builder->dictionary);
    if (builder->memo)
        mem_free(builder->memo->slots);
    mem_free(builder->memo);
    buf_deinit(&builder->validity);
    buf_deinit(&builder->offsets);
    buf_deinit(&builder->values);
    *builder = (struct arrow_builder){0};
}

void arrow_builder_clear(struct arrow_builder *builder)
{
    builder->length = builder->null_count = 0;
    buf_clear(&builder->validity);
    buf_clear(&builder->offsets);
    buf_clear(&builder->values);
    put_first_offset(builder);
    for (uint32_t i = 0; i < builder->child_count; i++)
        arrow_builder_clear(&builder->children[i]);
    if (builder->dictionary)
        arrow_builder_clear(builder->dictionary);
    if (builder->memo && builder->memo->count) {
        memset(builder->memo->slots, 0, (builder->memo->mask + 1) * sizeof *builder->memo->slots);
        builder->memo->count = 0;
    }
}

bool arrow_builder_failed(const struct arrow_builder *builder)
{
    if (builder->validity.failed || builder->offsets.failed || builder->values.failed)
        return true;
    for (uint32_t i = 0; i < builder->child_count; i++)
        if (arrow_builder_failed(&builder->children[i]))
            return true;
    return builder->dictionary && arrow_builder_failed(builder->dictionary);
}

size_t arrow_builder_bytes(const struct arrow_builder *builder)
{
    size_t bytes = builder->validity.length + builder->offsets.length + builder->values.length;
    for (uint32_t i = 0; i < builder->child_count; i++)
        bytes += arrow_builder_bytes(&builder->children[i]);
    return builder->dictionary ? bytes + arrow_builder_bytes(builder->dictionary) : bytes;
}

size_t arrow_builder_capacity(const struct arrow_builder *builder)
{
    size_t bytes =
        builder->validity.capacity + builder->offsets.capacity + builder->values.capacity;
    for (uint32_t i = 0; i < builder->child_count; i++)
        bytes += arrow_builder_capacity(&builder->children[i]);
    return builder->dictionary ? bytes + arrow_builder_capacity(builder->dictionary) : bytes;
}

/* ---- going back ---- */

static void truncate_buffer(struct buf *buf, size_t bytes)
{
    if (bytes > buf->length) /* failed before the mark: stays failed */
        return;
    buf_truncate(buf, bytes);
    buf->failed = false;
}

static void truncate_bits(struct buf *bits, int64_t length)
{
    truncate_buffer(bits, (size_t)bits_bytes(length));
    if ((length & 7) && bits->length == (size_t)bits_bytes(length))
        bits->data[length >> 3] &= (uint8_t)((1u << (length & 7)) - 1);
}

/* Offsets back to `length` slots; returns where the last of them ends, or -1 if they had failed
 * before: what they lead to is cut when they are, by whoever goes further back. */
static int32_t truncate_offsets(struct buf *offsets, int64_t length)
{
    size_t bytes = ((size_t)length + 1) * sizeof(int32_t);
    truncate_buffer(offsets, bytes);
    return offsets->length < bytes ? -1
                                   : (int32_t)get_le32(offsets->data + bytes - sizeof(int32_t));
}

/* Nulls among the first `length` slots, which have bits as all behind them. Mostly few go, and then
 * those are looked at. */
static int64_t nulls_left(const struct arrow_builder *builder, int64_t length)
{
    int64_t nulls = builder->null_count;
    if (builder->length - length > length)
        return bits_count_zero(builder->validity.data, length);
    for (int64_t i = length; i < builder->length; i++)
        nulls -= !arrow_bit(builder->validity.data, i);
    return nulls;
}

static void truncate_validity(struct arrow_builder *builder, int64_t length)
{
    struct buf *validity = &builder->validity;
    bool is_whole = validity->length == (size_t)bits_bytes(builder->length) && !validity->failed;
    int64_t nulls = is_whole ? nulls_left(builder, length) : -1;
    truncate_bits(validity, length);
    if (nulls < 0)
        nulls = validity->length ? bits_count_zero(validity->data, length) : 0;
    builder->null_count = nulls;
}

void arrow_builder_truncate(struct arrow_builder *builder, int64_t length)
{
    CHECK(length >= 0 && length <= builder->length);
    const struct arrow_field *field = builder->field;
    enum arrow_layout layout = field->is_dictionary ? LAYOUT_FIXED : type_layout(field->type);
    if (layout == LAYOUT_NULL)
        builder->null_count = length;
    else if (builder->validity.length || builder->validity.failed)
        truncate_validity(builder, length);
    builder->length = length;
    size_t width = field->is_dictionary ? sizeof(int32_t) : (size_t)type_width(field);
    switch (layout) {
    case LAYOUT_NULL:
        break;
    case LAYOUT_BITS:
        truncate_bits(&builder->values, length);
        break;
    case LAYOUT_FIXED:
        truncate_buffer(&builder->values, (size_t)length * width);
        break;
    case LAYOUT_BYTES: {
        int32_t end = truncate_offsets(&builder->offsets, length);
        if (end >= 0)
            truncate_buffer(&builder->values, (size_t)end);
        break;
    }
    case LAYOUT_LIST: {
        int32_t end = truncate_offsets(&builder->offsets, length);
        for (uint32_t i = 0; end >= 0 && i < builder->child_count; i++)
            if (builder->children[i].length >= end)
                arrow_builder_truncate(&builder->children[i], end);
        break;
    }
    case LAYOUT_STRUCT:
        for (uint32_t i = 0; i < builder->child_count; i++)
            if (builder->children[i].length >= length)
                arrow_builder_truncate(&builder->children[i], length);
        break;
    }
}

/* ---- nulls ---- */

/* Makes the validity bits that were not needed so far: all set. */
static void start_validity(struct arrow_builder *builder)
{
    size_t bytes = (size_t)bits_bytes(builder->length);
    uint8_t *bits = bytes ? buf_extend(&builder->validity, bytes) : NULL;
    if (!bits)
        return;
    memset(bits, 0xff, bytes);
    if (builder->length & 7)
        bits[bytes - 1] = (uint8_t)((1u << (builder->length & 7)) - 1);
}

static void push_null(struct arrow_builder *builder)
{
    if (!builder->validity.length && !builder->validity.failed)
        start_validity(builder);
    arrow_push_bit(&builder->validity, builder->length, false);
    builder->length++;
    builder->null_count++;
}

static void append_zero(struct arrow_builder *builder, bool is_null)
{
    const struct arrow_field *field = builder->field;
    enum arrow_layout layout = field->is_dictionary ? LAYOUT_FIXED : type_layout(field->type);
    size_t width = field->is_dictionary ? sizeof(int32_t) : (size_t)type_width(field);
    switch (layout) {
    case LAYOUT_NULL:
        builder->length++;
        builder->null_count++;
        return;
    case LAYOUT_BITS:
        arrow_push_bit(&builder->values, builder->length, false);
        break;
    case LAYOUT_FIXED: {
        uint8_t *place = buf_extend(&builder->values, width);
        if (place)
            memset(place, 0, width);
        break;
    }
    case LAYOUT_BYTES: {
        int32_t end = (int32_t)builder->values.length;
        buf_put(&builder->offsets, &end, sizeof end);
        break;
    }
    case LAYOUT_LIST: {
        int32_t end = (int32_t)builder->children[0].length;
        buf_put(&builder->offsets, &end, sizeof end);
        break;
    }
    case LAYOUT_STRUCT: /* a child that may not be null gets a zero; a dictionary has none to give
                         */
        for (uint32_t i = 0; i < builder->child_count; i++) {
            const struct arrow_field *child = &field->children[i];
            append_zero(&builder->children[i], child->is_nullable || child->is_dictionary);
        }
        break;
    }
    if (is_null)
        push_null(builder);
    else
        arrow_push_valid(builder);
}

void arrow_append_unusual_null(struct arrow_builder *builder)
{
    append_zero(builder, true);
}

/* Zeros up to `count` bits in all. */
static void extend_bits(struct buf *bits, int64_t count)
{
    size_t bytes = (size_t)bits_bytes(count);
    if (bytes <= bits->length)
        return;
    bytes -= bits->length;
    uint8_t *place = buf_extend(bits, bytes);
    if (place)
        memset(place, 0, bytes);
}

static void push_nulls(struct arrow_builder *builder, int64_t count)
{
    if (!builder->validity.length && !builder->validity.failed)
        start_validity(builder);
    extend_bits(&builder->validity, builder->length + count);
    builder->length += count;
    builder->null_count += count;
}

void arrow_append_many_zeros(struct arrow_builder *builder, int64_t count, bool is_null)
{
    const struct arrow_field *field = builder->field;
    enum arrow_layout layout = type_layout(field->type);
    CHECK(!field->is_dictionary);
    if (layout == LAYOUT_FIXED) {
        size_t bytes = (size_t)count * (size_t)type_width(field);
        uint8_t *place = buf_extend(&builder->values, bytes);
        if (place)
            memset(place, 0, bytes);
    } else if (layout == LAYOUT_BYTES || layout == LAYOUT_LIST) {
        int32_t end = layout == LAYOUT_BYTES ? (int32_t)builder->values.length
                                             : (int32_t)builder->children[0].length;
        int32_t *place =
            (int32_t *)(void *)buf_extend(&builder->offsets, (size_t)count * sizeof end);
        for (int64_t i = 0; place && i < count; i++)
            place[i] = end;
    } else {
        for (int64_t i = 0; i < count; i++)
            append_zero(builder, is_null);
        return;
    }
    if (is_null)
        push_nulls(builder, count);
    else
        arrow_push_valids(builder, count);
}

/* ---- slots of arrays ---- */

static void append_validity(struct arrow_builder *builder, const struct arrow_array *from,
                            int64_t first, int64_t count)
{
    if (!from->validity || !from->null_count) {
        arrow_push_valids(builder, count);
        return;
    }
    if (!builder->validity.length && !builder->validity.failed)
        start_validity(builder);
    extend_bits(&builder->validity, builder->length + count);
    if (!builder->validity.failed)
        bits_copy(builder->validity.data, builder->length, from->validity, first, count);
    for (int64_t i = first; i < first + count; i++)
        builder->null_count += !arrow_bit(from->validity, i);
    builder->length += count;
}

static enum status append_offsets(struct arrow_builder *builder, int64_t base, const int32_t *from,
                                  int64_t count, struct error *err)
{
    if (base + from[count] - from[0] > INT32_MAX)
        return error_set(err, STATUS_LIMIT, "arrow: column %.100s: more than 2^31 - 1 in a buffer",
                         builder->field->name);
    int32_t *place =
        (int32_t *)(void *)buf_extend(&builder->offsets, (size_t)count * sizeof *place);
    for (int64_t i = 0; place && i < count; i++)
        place[i] = (int32_t)(base + from[i + 1] - from[0]);
    return STATUS_OK;
}

static enum status append_list(struct arrow_builder *builder, const struct arrow_array *from,
                               int64_t first, int64_t count, struct error *err)
{
    const int32_t *offsets = from->offsets + first;
    TRY(append_offsets(builder, builder->children[0].length, offsets, count, err));
    for (uint32_t i = 0; i < builder->child_count; i++)
        TRY(builder_append_slots(&builder->children[i], &from->children[i], offsets[0],
                                 offsets[count] - offsets[0], err));
    return STATUS_OK;
}

static enum status append_values(struct arrow_builder *builder, const struct arrow_array *from,
                                 int64_t first, int64_t count, struct error *err)
{
    size_t width = (size_t)type_width(builder->field);
    const uint8_t *values = from->values;
    switch (type_layout(builder->field->type)) {
    case LAYOUT_NULL:
        return STATUS_OK;
    case LAYOUT_BITS:
        extend_bits(&builder->values, builder->length + count);
        if (!builder->values.failed)
            bits_copy(builder->values.data, builder->length, values, first, count);
        return STATUS_OK;
    case LAYOUT_FIXED:
        if (width)
            buf_put(&builder->values, values + (size_t)first * width, (size_t)count * width);
        return STATUS_OK;
    case LAYOUT_BYTES: {
        const int32_t *offsets = from->offsets + first;
        size_t bytes = (size_t)(offsets[count] - offsets[0]);
        TRY(append_offsets(builder, (int64_t)builder->values.length, offsets, count, err));
        if (bytes)
            buf_put(&builder->values, values + offsets[0], bytes);
        return STATUS_OK;
    }
    case LAYOUT_LIST:
        return append_list(builder, from, first, count, err);
    case LAYOUT_STRUCT:
        for (uint32_t i = 0; i < builder->child_count; i++)
            TRY(builder_append_slots(&builder->children[i], &from->children[i], first, count, err));
        return STATUS_OK;
    }
    return STATUS_OK;
}

enum status builder_append_slots(struct arrow_builder *builder, const struct arrow_array *from,
                                 int64_t first, int64_t count, struct error *err)
{
    CHECK(!builder->field->is_dictionary);
    if (count == 0)
        return STATUS_OK;
    if (builder->length + count > INT32_MAX)
        return error_set(err, STATUS_LIMIT, "arrow: column %.100s: more than 2^31 - 1 values",
                         builder->field->name);
    TRY(append_values(builder, from, first, count, err));
    if (builder->field->type == ARROW_NULL) {
        builder->length += count;
        builder->null_count += count;
    } else {
        append_validity(builder, from, first, count);
    }
    return STATUS_OK;
}

/* ---- memo ---- */

static bool memo_grow(struct arrow_memo *memo)
{
    size_t slot_count = memo->slots ? (memo->mask + 1) * 2 : MEMO_SLOTS_MIN;
    uint64_t *slots = mem_alloc_zero(slot_count, sizeof *slots);
    if (!slots)
        return false;
    /* A slot's place comes from the half of the hash that it keeps: no value is hashed again. */
    for (size_t i = 0; memo->slots && i <= memo->mask; i++) {
        if (!memo->slots[i])
            continue;
        size_t at = (size_t)(memo->slots[i] >> 32) & (slot_count - 1);
        while (slots[at])
            at = (at + 1) & (slot_count - 1);
        slots[at] = memo->slots[i];
    }
    mem_free(memo->slots);
    memo->slots = slots;
    memo->mask = slot_count - 1;
    return true;
}

static bool dictionary_has(const struct arrow_builder *dictionary, uint32_t index, const void *data,
                           size_t bytes)
{
    if (dictionary->field->type == ARROW_FIXED)
        return memcmp(dictionary->values.data + index * bytes, data, bytes) == 0;
    const uint8_t *offsets = dictionary->offsets.data + (size_t)index * sizeof(int32_t);
    uint32_t start = get_le32(offsets), end = get_le32(offsets + sizeof(int32_t));
    return end - start == bytes &&
           (bytes == 0 || memcmp(dictionary->values.data + start, data, bytes) == 0);
}

/* Adds to the dictionary alone; leaves it as it was if there is no room. */
static bool dictionary_add(struct arrow_builder *dictionary, const void *data, size_t bytes)
{
    int64_t length = dictionary->length;
    if (length >= INT32_MAX)
        return false;
    arrow_append_bytes(dictionary, data, bytes);
    if (!arrow_builder_failed(dictionary))
        return true;
    arrow_builder_truncate(dictionary, length);
    return false;
}

int32_t arrow_memo_index(struct arrow_builder *builder, const void *data, size_t bytes)
{
    struct arrow_memo *memo = builder->memo;
    if (!memo && !(memo = builder->memo = mem_alloc_zero(1, sizeof *memo)))
        return -1;
    if (memo->count * 2 >= memo->mask && !memo_grow(memo))
        return -1;
    /* The seed keeps the table's order from being known to whoever sends the values. */
    uint32_t hash = (uint32_t)(hash64_seeded(data, bytes, (uintptr_t)memo) >> 32);
    size_t at = hash & memo->mask;
    for (uint64_t slot; (slot = memo->slots[at]); at = (at + 1) & memo->mask) {
        uint32_t index = (uint32_t)slot - 1;
        if (slot >> 32 == hash && dictionary_has(builder->dictionary, index, data, bytes))
            return (int32_t)index;
    }
    int64_t index = builder->dictionary->length;
    if (!dictionary_add(builder->dictionary, data, bytes))
        return -1;
    memo->slots[at] = (uint64_t)hash << 32 | (uint64_t)(index + 1);
    memo->count++;
    return (int32_t)index;
}

void arrow_append_memo(struct arrow_builder *builder, const void *data, size_t bytes)
{
    int32_t index = arrow_memo_index(builder, data, bytes);
    if (index < 0) {
        builder->values.failed = true;
        index = 0;
    }
    arrow_append_index(builder, index);
}

/* ---- views ---- */

/* What empty buffers point to: a place, so that code may add a zero to it. */
static const uint64_t nothing[1];

enum status arrow_builder_view(const struct arrow_builder *builder, struct arena *arena,
                               struct arrow_array *out_array, struct error *err)
{
    struct arrow_array array = {
        .length = builder->length,
        .null_count = builder->null_count,
        .validity = builder->null_count ? builder->validity.data : NULL,
        .offsets = (const int32_t *)(const void *)builder->offsets.data,
        .values = builder->values.data ? builder->values.data : (const void *)nothing,
    };
    if (builder->child_count) {
        array.children = arena_alloc_zero(arena, builder->child_count, sizeof *array.children);
        if (!array.children)
            return error_set(err, STATUS_NO_MEMORY, "arrow: no memory for a view");
    }
    for (uint32_t i = 0; i < builder->child_count; i++) {
        TRY(arrow_builder_view(&builder->children[i], arena, &array.children[i], err));
        int64_t expected = type_layout(builder->field->type) == LAYOUT_STRUCT
                               ? builder->length
                               : builder->children[0].length;
        if (array.children[i].length != expected)
            return error_set(err, STATUS_INTERNAL,
                             "arrow: column %s has %lld values where %lld are due",
                             builder->field->children[i].name, (long long)array.children[i].length,
                             (long long)expected);
    }
    if (builder->dictionary) {
        array.dictionary = arena_alloc_zero(arena, 1, sizeof *array.dictionary);
        if (!array.dictionary)
            return error_set(err, STATUS_NO_MEMORY, "arrow: no memory for a view");
        TRY(arrow_builder_view(builder->dictionary, arena, array.dictionary, err));
    }
    *out_array = array;
    return STATUS_OK;
}

enum status arrow_builder_batch(const struct arrow_builder *builder,
                                const struct arrow_schema *schema, struct arrow_batch *out_batch,
                                struct error *err)
{
    struct arrow_batch batch = {.schema = schema, .length = builder->length};
    struct arrow_array rows;
    arena_init(&batch.arena, 0);
    enum status status = arrow_builder_view(builder, &batch.arena, &rows, err);
    if (status != STATUS_OK) {
        arrow_batch_deinit(&batch);
        return status;
    }
    batch.columns = rows.children;
    *out_batch = batch;
    return STATUS_OK;
}
