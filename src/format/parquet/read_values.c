/* SPDX-License-Identifier: Apache-2.0
 *
 * The values of a page, laid end to end as Arrow has them; nulls are not among them yet.
 */
#include <inttypes.h>

#include "format/parquet/reader_internal.h"

static enum status corrupt(const struct leaf_reader *reader, const struct page *page,
                           struct error *err, const char *what)
{
    return page_fault(&reader->walk, page->offset, STATUS_CORRUPT, err, "%s: %s",
                      parquet_encoding_name(page->encoding), what);
}

static enum status out_of_room(const struct leaf_reader *reader, const struct page *page,
                               const struct buf *buf, struct error *err)
{
    struct error cause;
    enum status status = buf_status(buf, "values", &cause);
    if (status == STATUS_OK)
        status = STATUS_NO_MEMORY;
    return page_fault(&reader->walk, page->offset, status, err, "more than %zu bytes of values",
                      buf->bytes_max);
}

/* ---- byte arrays ---- */

/* Most values are short: so many bytes are copied whatever the length, and there must be as many at
 * both places. */
enum { COPY_SLACK = 32 };

static inline void copy_wide(uint8_t *to, const uint8_t *from, size_t bytes)
{
    memcpy(to, from, COPY_SLACK);
    if (__builtin_expect(bytes > COPY_SLACK, 0))
        memcpy(to + COPY_SLACK, from + COPY_SLACK, bytes - COPY_SLACK);
}

static size_t buf_room(const struct buf *buf)
{
    return buf->capacity - buf->length;
}

/* Room for `bytes` more; where memory must be had for them, for as many as the rest of the chunk is
 * likely to take. */
static bool reserve_bytes(struct leaf_reader *reader, struct buf *data, size_t bytes, size_t count)
{
    struct parquet_memory *pool = reader->walk.pool;
    size_t needed = data->length + bytes, slots = reader->slot_count + count, likely;
    if (data->data && data->capacity >= needed)
        return true;
    if (data == &reader->values.data && slots && SIZE_MUL(needed, reader->slots_likely, &likely)) {
        likely = likely / slots + likely / slots / 32;
        if (likely > needed && likely <= data->bytes_max &&
            pool_reserve(pool, data, likely - data->length))
            return true;
        data->failed = false;
    }
    if (pool_reserve(pool, data, bytes + COPY_SLACK))
        return true;
    data->failed = false;
    return pool_reserve(pool, data, bytes) && buf_reserve_place(data, bytes);
}

/* What was appended behind `start`, whose values end at `ends`, must be text where text is due. */
static enum status check_text(const struct leaf_reader *reader, const struct page *page,
                              const struct buf *data, size_t start, const int32_t *ends,
                              size_t count, struct error *err)
{
    if (!reader->is_text || data->length == start)
        return STATUS_OK;
    bool is_text = utf8_is_valid(data->data + start, data->length - start);
    for (size_t i = 0; is_text && i < count; i++)
        is_text = (size_t)ends[i] == data->length || (data->data[ends[i]] & 0xc0) != 0x80;
    return is_text ? STATUS_OK : corrupt(reader, page, err, "text that is not UTF-8");
}

static bool wants_all_values(const struct leaf_reader *reader)
{
    return !reader->rows || reader->watch;
}

bool leaf_next_values(struct value_walk *walk)
{
    const struct kept_run *runs = (const struct kept_run *)(const void *)walk->reader->runs.data;
    size_t end = walk->count;
    walk->first += walk->length;
    walk->is_wanted = walk->is_whole;
    if (!walk->is_whole && walk->run < walk->reader->run_count) {
        const struct kept_run *run = &runs[walk->run];
        walk->is_wanted = run->value == walk->first;
        end = walk->is_wanted ? run->value + run->values : run->value;
        walk->run += walk->is_wanted;
    }
    walk->length = end - walk->first;
    return walk->first < walk->count;
}

struct plain_copy {
    const uint8_t *at, *source_end, *data;
    uint8_t *to, *room_end;
    size_t left; /* bytes for values, when every length has its place */
};

static bool copy_plain(struct plain_copy *copy, int32_t *ends, size_t count)
{
    const uint8_t *at = copy->at, *source_end = copy->source_end, *data = copy->data;
    uint8_t *to = copy->to, *room_end = copy->room_end;
    size_t left = copy->left;
    for (size_t i = 0; i < count; i++) {
        size_t bytes = get_le32(at);
        at += 4;
        if (bytes > left)
            return false;
        if (source_end - at >= COPY_SLACK && room_end - to >= COPY_SLACK)
            copy_wide(to, at, bytes);
        else
            copy_short(to, at, bytes);
        left -= bytes;
        at += bytes;
        to += bytes;
        ends[i] = (int32_t)(to - data);
    }
    copy->at = at;
    copy->to = to;
    copy->left = left;
    return true;
}

static bool skip_plain(struct plain_copy *copy, int32_t *ends, size_t count)
{
    int32_t end = (int32_t)(copy->to - copy->data);
    for (size_t i = 0; i < count; i++) {
        size_t bytes = get_le32(copy->at);
        if (bytes > copy->left)
            return false;
        copy->left -= bytes;
        copy->at += 4 + bytes;
        ends[i] = end;
    }
    return true;
}

static enum status append_plain(struct leaf_reader *reader, const struct page *page,
                                struct cursor *in, struct buf *data, int32_t *ends, size_t count,
                                struct error *err)
{
    if (count > cursor_left(in) / 4)
        return corrupt(reader, page, err, "fewer values than there should be");
    struct plain_copy copy = {.left = cursor_left(in) - 4 * count};
    if (!reserve_bytes(reader, data, copy.left, count))
        return out_of_room(reader, page, data, err);
    copy.at = in->at;
    copy.source_end = in->at + cursor_left(in);
    copy.data = data->data;
    copy.to = data->data + data->length;
    copy.room_end = data->data + data->capacity;
    bool is_whole = data != &reader->values.data || wants_all_values(reader);
    struct value_walk walk = {.reader = reader, .count = count, .is_whole = is_whole};
    while (leaf_next_values(&walk))
        if (!(walk.is_wanted ? copy_plain(&copy, ends + walk.first, walk.length)
                             : skip_plain(&copy, ends + walk.first, walk.length)))
            return corrupt(reader, page, err, "a value that ends behind the page");
    data->length = (size_t)(copy.to - data->data);
    in->at = copy.at;
    return STATUS_OK;
}

/* Lengths as DELTA_BINARY_PACKED; summed and held against what may be. */
static enum status read_lengths(struct leaf_reader *reader, const struct page *page,
                                struct cursor *in, int32_t *lengths, size_t count,
                                uint64_t *out_sum, struct error *err)
{
    uint64_t sum = 0;
    bool is_negative = false;
    if (!decode_delta_i32(in, lengths, count))
        return corrupt(reader, page, err, "damaged lengths");
    for (size_t i = 0; i < count; i++) {
        is_negative |= lengths[i] < 0;
        sum += (uint32_t)lengths[i];
    }
    if (is_negative)
        return corrupt(reader, page, err, "a negative length");
    *out_sum = sum;
    return STATUS_OK;
}

static enum status append_delta_length(struct leaf_reader *reader, const struct page *page,
                                       struct cursor *in, struct buf *data, int32_t *ends,
                                       size_t count, struct error *err)
{
    uint64_t sum;
    TRY(read_lengths(reader, page, in, ends, count, &sum, err));
    if (sum > cursor_left(in))
        return corrupt(reader, page, err, "values that end behind the page");
    size_t at = data->length;
    buf_put(data, cursor_take(in, (size_t)sum), (size_t)sum);
    if (data->failed)
        return out_of_room(reader, page, data, err);
    for (size_t i = 0; i < count; i++) {
        at += (size_t)ends[i];
        ends[i] = (int32_t)at;
    }
    return STATUS_OK;
}

/* Each value begins with some bytes of the one before it. */
static enum status append_delta(struct leaf_reader *reader, const struct page *page,
                                struct cursor *in, struct buf *data, int32_t *ends, size_t count,
                                struct error *err)
{
    uint64_t sum, suffixes;
    struct buf *scratch = &reader->scratch_ends;
    size_t last = data->length, last_bytes = 0;
    buf_clear(scratch);
    int32_t *prefix =
        (int32_t *)(void *)pool_extend(reader->walk.pool, scratch, (count + 1) * sizeof *prefix);
    if (!prefix)
        return out_of_room(reader, page, scratch, err);
    TRY(read_lengths(reader, page, in, prefix, count, &sum, err));
    TRY(read_lengths(reader, page, in, ends, count, &suffixes, err));
    if (suffixes > cursor_left(in))
        return corrupt(reader, page, err, "values that end behind the page");
    for (size_t i = 0; i < count; i++) {
        size_t head = (size_t)prefix[i], tail = (size_t)ends[i], at = data->length;
        if (head > last_bytes)
            return corrupt(reader, page, err, "a prefix longer than the value before");
        if (!buf_reserve_place(data, head + tail))
            return out_of_room(reader, page, data, err);
        memcpy(data->data + at, data->data + last, head);
        copy_short(data->data + at + head, cursor_take(in, tail), tail);
        data->length += head + tail;
        last = at;
        last_bytes = head + tail;
        ends[i] = (int32_t)data->length;
    }
    return STATUS_OK;
}

static enum status append_bytes(struct leaf_reader *reader, const struct page *page,
                                struct cursor *in, struct buf *data, int32_t *ends, size_t count,
                                struct error *err)
{
    size_t start = data->length;
    switch (page->encoding) {
    case ENCODING_PLAIN:
        TRY(append_plain(reader, page, in, data, ends, count, err));
        break;
    case ENCODING_DELTA_LENGTH_BYTE_ARRAY:
        TRY(append_delta_length(reader, page, in, data, ends, count, err));
        break;
    case ENCODING_DELTA_BYTE_ARRAY:
        TRY(append_delta(reader, page, in, data, ends, count, err));
        break;
    default:
        return corrupt(reader, page, err, "not an encoding of this type");
    }
    return check_text(reader, page, data, start, ends, count, err);
}

/* ---- fixed-width values ---- */

static enum status read_rle_bools(struct leaf_reader *reader, const struct page *page,
                                  struct cursor *in, uint8_t *out, size_t count, struct error *err)
{
    if (count == 0 && cursor_left(in) == 0)
        return STATUS_OK;
    size_t bytes = cursor_get_le32(in);
    const uint8_t *runs = cursor_take(in, bytes);
    struct cursor section = cursor_of(runs, bytes);
    if (!runs || !decode_hybrid_u8(&section, 1, out, count))
        return corrupt(reader, page, err, "damaged runs");
    return STATUS_OK;
}

/* FIXED in DELTA_BYTE_ARRAY: as byte arrays, then held to the width. */
static enum status read_fixed_delta(struct leaf_reader *reader, const struct page *page,
                                    struct cursor *in, uint8_t *out, size_t count,
                                    struct error *err)
{
    struct buf data = {.bytes_max = reader->values.data.bytes_max}, ends = {0};
    size_t width = reader->physical_width;
    enum status status = STATUS_OK;
    int32_t *places = (int32_t *)(void *)buf_extend(&ends, (count + 1) * sizeof *places);
    if (!places) {
        status = out_of_room(reader, page, &ends, err);
        goto done;
    }
    TRY_OR_DONE(status, append_delta(reader, page, in, &data, places, count, err));
    for (size_t i = 0; i < count; i++)
        if ((size_t)places[i] != (i + 1) * width)
            TRY_OR_DONE(status, corrupt(reader, page, err, "a value of another width"));
    if (data.length)
        memcpy(out, data.data, data.length);
done:
    buf_deinit(&data);
    buf_deinit(&ends);
    return status;
}

/* Into `out`, physical_width bytes each. */
static enum status read_fixed(struct leaf_reader *reader, const struct page *page,
                              struct cursor *in, uint8_t *out, size_t count, struct error *err)
{
    enum parquet_physical physical = reader->walk.leaf->physical;
    size_t width = reader->physical_width, bytes;
    bool is_done = false;
    if (!SIZE_MUL(width, count, &bytes))
        return corrupt(reader, page, err, "more values than can be");
    if (page->encoding == ENCODING_PLAIN && physical == PARQUET_BOOLEAN) {
        is_done = decode_plain_bools(in, out, count);
    } else if (page->encoding == ENCODING_PLAIN) {
        const uint8_t *place = cursor_take(in, bytes);
        is_done = place != NULL;
        if (is_done && bytes)
            memcpy(out, place, bytes);
    } else if (page->encoding == ENCODING_RLE && physical == PARQUET_BOOLEAN) {
        return read_rle_bools(reader, page, in, out, count, err);
    } else if (page->encoding == ENCODING_DELTA_BINARY_PACKED && physical == PARQUET_INT32) {
        is_done = decode_delta_i32(in, (int32_t *)(void *)out, count);
    } else if (page->encoding == ENCODING_DELTA_BINARY_PACKED && physical == PARQUET_INT64) {
        is_done = decode_delta_i64(in, (int64_t *)(void *)out, count);
    } else if (page->encoding == ENCODING_BYTE_STREAM_SPLIT && physical != PARQUET_BOOLEAN &&
               physical != PARQUET_INT96) {
        is_done = decode_stream_split(in, width, out, count);
    } else if (page->encoding == ENCODING_DELTA_BYTE_ARRAY && physical == PARQUET_FIXED) {
        return read_fixed_delta(reader, page, in, out, count, err);
    } else {
        return corrupt(reader, page, err, "not an encoding of this type");
    }
    return is_done ? STATUS_OK : corrupt(reader, page, err, "fewer values than there should be");
}

/* ---- conversions ---- */

static bool convert_int96(const uint8_t *from, int64_t *out)
{
    enum { JULIAN_DAY_OF_1970 = 2440588 };
    static const int64_t us_a_day = INT64_C(86400000000);
    int64_t nanos = (int64_t)get_le64(from);
    int64_t days = (int64_t)(int32_t)get_le32(from + 8) - JULIAN_DAY_OF_1970;
    int64_t us = nanos / 1000 - (nanos % 1000 < 0);
    return !__builtin_mul_overflow(days, us_a_day, &days) && !__builtin_add_overflow(days, us, out);
}

static bool convert(enum conversion conversion, const uint8_t *from, uint8_t *to, size_t count)
{
    bool overflows = false;
    for (size_t i = 0; i < count; i++) {
        int64_t wide = 0;
        double real;
        float single;
        switch (conversion) {
        case CONVERT_I32_TO_I64:
            wide = (int32_t)get_le32(from + 4 * i);
            break;
        case CONVERT_U32_TO_I64:
            wide = (int64_t)get_le32(from + 4 * i);
            break;
        case CONVERT_FLOAT_TO_DOUBLE:
            memcpy(&single, from + 4 * i, sizeof single);
            real = (double)single;
            memcpy(&wide, &real, sizeof wide);
            break;
        case CONVERT_MILLIS:
            overflows |=
                __builtin_mul_overflow((int64_t)get_le64(from + 8 * i), INT64_C(1000), &wide);
            break;
        case CONVERT_INT96:
            overflows |= !convert_int96(from + 12 * i, &wide);
            break;
        case CONVERT_NONE:
            break;
        }
        put_le64(to + 8 * i, (uint64_t)wide);
    }
    return !overflows;
}

/* Into `out`, `width` bytes each. */
static enum status read_converted(struct leaf_reader *reader, const struct page *page,
                                  struct cursor *in, uint8_t *out, size_t count, struct error *err)
{
    size_t bytes;
    if (reader->conversion == CONVERT_NONE)
        return read_fixed(reader, page, in, out, count, err);
    buf_clear(&reader->scratch);
    if (!SIZE_MUL(count, (size_t)reader->physical_width, &bytes) ||
        !pool_extend(reader->walk.pool, &reader->scratch, bytes + 1))
        return out_of_room(reader, page, &reader->scratch, err);
    TRY(read_fixed(reader, page, in, reader->scratch.data, count, err));
    return convert(reader->conversion, reader->scratch.data, out, count)
               ? STATUS_OK
               : corrupt(reader, page, err, "a time out of range");
}

/* ---- dictionaries ---- */

static size_t longest(const int32_t *ends, size_t count)
{
    int32_t most = 0;
    for (size_t i = 0; i < count; i++)
        most = ends[i + 1] - ends[i] > most ? ends[i + 1] - ends[i] : most;
    return (size_t)most;
}

/* Of encodings whose values have one length; behind runs and deltas writers leave what they like.
 */
enum status leaf_check_end(const struct leaf_reader *reader, const struct page *page,
                           const struct cursor *in, struct error *err)
{
    bool is_exact =
        page->encoding == ENCODING_PLAIN || page->encoding == ENCODING_BYTE_STREAM_SPLIT;
    if (!reader->watch || !is_exact || !cursor_left(in))
        return STATUS_OK;
    return page_fault(&reader->walk, page->offset, STATUS_CORRUPT, err,
                      "%zu bytes behind the values", cursor_left(in));
}

enum status leaf_check_dictionary(const struct leaf_reader *reader, const struct page *page,
                                  size_t body_bytes, struct error *err)
{
    size_t bytes;
    if (page->encoding != ENCODING_PLAIN && page->encoding != ENCODING_PLAIN_DICTIONARY)
        return corrupt(reader, page, err, "not an encoding of dictionaries");
    /* Before memory is asked for: every value takes some of the page. */
    if (page->level_count > body_bytes * 8 ||
        !SIZE_MUL(page->level_count, (size_t)reader->width, &bytes))
        return corrupt(reader, page, err, "more values than bytes");
    return STATUS_OK;
}

enum status leaf_read_dictionary(struct leaf_reader *reader, const struct page *page,
                                 struct error *err)
{
    struct cursor in = cursor_of(page->body.data, page->body.length);
    struct values *to = &reader->dictionary;
    struct page plain = *page;
    size_t count = page->level_count, bytes;
    TRY(leaf_check_dictionary(reader, page, page->body.length, err));
    plain.encoding = ENCODING_PLAIN;
    if (reader->width) {
        bytes = count * reader->width;
        if (!pool_extend(reader->walk.pool, &to->data, bytes + 1))
            return out_of_room(reader, page, &to->data, err);
        TRY(read_converted(reader, &plain, &in, to->data.data, count, err));
    } else {
        int32_t *ends = (int32_t *)(void *)pool_extend(reader->walk.pool, &to->ends,
                                                       (count + 1) * sizeof *ends);
        if (!ends)
            return out_of_room(reader, page, &to->ends, err);
        buf_truncate(&to->ends, to->ends.length - sizeof *ends);
        TRY(append_bytes(reader, &plain, &in, &to->data, ends, count, err));
        reader->dictionary_entry_max = longest((const int32_t *)(const void *)to->ends.data, count);
    }
    TRY(leaf_check_end(reader, &plain, &in, err));
    reader->has_dictionary = true;
    reader->dictionary_count = reader->dictionary_page_count = count;
    return STATUS_OK;
}

static enum status read_indices(struct leaf_reader *reader, const struct page *page,
                                struct cursor *in, uint32_t *out, size_t count, struct error *err)
{
    uint32_t greatest = 0;
    if (count == 0)
        return STATUS_OK;
    if (!reader->has_dictionary)
        return corrupt(reader, page, err, "no dictionary before it");
    unsigned width = cursor_get_byte(in);
    if (in->failed || !decode_hybrid_u32(in, width, out, count, &greatest))
        return corrupt(reader, page, err, "damaged indices");
    if (greatest >= reader->dictionary_page_count)
        return page_fault(&reader->walk, page->offset, STATUS_CORRUPT, err,
                          "index %" PRIu32 " into a dictionary of %zu", greatest,
                          reader->dictionary_page_count);
    return leaf_need_entries(reader, (size_t)greatest + 1, err);
}

static void gather_fixed(const uint8_t *dictionary, size_t width, const uint32_t *indices,
                         uint8_t *out, size_t count)
{
    if (width == 8)
        for (size_t i = 0; i < count; i++)
            memcpy(out + 8 * i, dictionary + 8 * (size_t)indices[i], 8);
    else if (width == 4)
        for (size_t i = 0; i < count; i++)
            memcpy(out + 4 * i, dictionary + 4 * (size_t)indices[i], 4);
    else
        for (size_t i = 0; i < count; i++)
            copy_short(out + width * i, dictionary + width * indices[i], width);
}

static uint64_t sum_lengths(const int32_t *from, const uint32_t *indices, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (uint32_t)(from[indices[i] + 1] - from[indices[i]]);
    return sum;
}

enum { RUN = 8 };

static inline bool is_run(const uint32_t *indices)
{
    uint32_t differences = 0;
    for (int i = 1; i < RUN; i++)
        differences |= indices[i] ^ indices[0];
    return !differences;
}

/* Behind `to`, where there is room for the values and COPY_SLACK behind each of them. Returns where
 * they end. No value is longer than `most`, if that is a constant up to COPY_SLACK. */
__attribute__((always_inline)) static inline uint8_t *
gather_up_to(size_t most, const struct values *dictionary, const uint32_t *indices,
             const uint8_t *data, uint8_t *to, int32_t *ends, size_t count)
{
    const int32_t *from = (const int32_t *)(const void *)dictionary->ends.data;
    const uint8_t *bytes = dictionary->data.data;
    for (size_t i = 0; i < count; i++) {
        const int32_t *place = &from[indices[i]];
        const uint8_t *value = bytes + place[0];
        size_t length = (size_t)(place[1] - place[0]);
        if (i + RUN <= count && i % RUN == 0 && is_run(indices + i)) {
            uint8_t start[COPY_SLACK];
            memcpy(start, value, size_min(most, COPY_SLACK));
            for (int j = 0; j < RUN; j++) {
                memcpy(to, start, size_min(most, COPY_SLACK));
                if (most > COPY_SLACK && length > COPY_SLACK)
                    memcpy(to + COPY_SLACK, value + COPY_SLACK, length - COPY_SLACK);
                to += length;
                ends[i + (size_t)j] = (int32_t)(to - data);
            }
            i += RUN - 1;
            continue;
        }
        memcpy(to, value, size_min(most, COPY_SLACK));
        if (most > COPY_SLACK && length > COPY_SLACK)
            memcpy(to + COPY_SLACK, value + COPY_SLACK, length - COPY_SLACK);
        to += length;
        ends[i] = (int32_t)(to - data);
    }
    return to;
}

static uint8_t *gather_wide(const struct leaf_reader *reader, const uint32_t *indices,
                            const uint8_t *data, uint8_t *to, int32_t *ends, size_t count)
{
    if (reader->dictionary_entry_max <= 16)
        return gather_up_to(16, &reader->dictionary, indices, data, to, ends, count);
    if (reader->dictionary_entry_max <= COPY_SLACK)
        return gather_up_to(COPY_SLACK, &reader->dictionary, indices, data, to, ends, count);
    return gather_up_to(SIZE_MAX, &reader->dictionary, indices, data, to, ends, count);
}

/* The same where there is no more room than they take. */
static uint8_t *gather_narrow(const struct values *dictionary, const uint32_t *indices,
                              const uint8_t *data, uint8_t *to, int32_t *ends, size_t count)
{
    const int32_t *from = (const int32_t *)(const void *)dictionary->ends.data;
    for (size_t i = 0; i < count; i++) {
        size_t start = (size_t)from[indices[i]], length = (size_t)from[indices[i] + 1] - start;
        if (length)
            copy_short(to, dictionary->data.data + start, length);
        to += length;
        ends[i] = (int32_t)(to - data);
    }
    return to;
}

/* Some values at a time, so that room for the longest entry each is not much; where there is not
 * that much, for what they have. */
static enum status gather_stretch(struct leaf_reader *reader, const struct page *page,
                                  const uint32_t *indices, int32_t *ends, size_t count,
                                  struct error *err)
{
    enum { VALUES_A_STEP = 256, ENTRY_BYTES_MAX = 1024 };
    const struct values *dictionary = &reader->dictionary;
    const int32_t *from = (const int32_t *)(const void *)dictionary->ends.data;
    struct buf *data = &reader->values.data;
    bool is_reserved = false, has_slack = reader->dictionary_entry_max <= ENTRY_BYTES_MAX &&
                                          buf_room(&dictionary->data) >= COPY_SLACK;
    for (size_t i = 0, step; i < count; i += step) {
        step = size_min(count - i, VALUES_A_STEP);
        size_t room = step * reader->dictionary_entry_max + COPY_SLACK;
        if (!is_reserved && !(has_slack && buf_room(data) >= room)) {
            uint64_t sum = sum_lengths(from, indices + i, count - i);
            if (sum > INT32_MAX || !reserve_bytes(reader, data, (size_t)sum, count))
                return out_of_room(reader, page, data, err);
            is_reserved = true;
        }
        uint8_t *to = data->data + data->length;
        if (has_slack && buf_room(data) >= room)
            to = gather_wide(reader, indices + i, data->data, to, ends + i, step);
        else
            to = gather_narrow(dictionary, indices + i, data->data, to, ends + i, step);
        data->length = (size_t)(to - data->data);
    }
    return STATUS_OK;
}

static enum status gather_bytes(struct leaf_reader *reader, const struct page *page,
                                const uint32_t *indices, int32_t *ends, size_t count,
                                struct error *err)
{
    struct value_walk walk = {
        .reader = reader, .count = count, .is_whole = wants_all_values(reader)};
    while (leaf_next_values(&walk)) {
        int32_t end = (int32_t)reader->values.data.length;
        if (walk.is_wanted)
            TRY(gather_stretch(reader, page, indices + walk.first, ends + walk.first, walk.length,
                               err));
        for (size_t i = 0; !walk.is_wanted && i < walk.length; i++)
            ends[walk.first + i] = end;
    }
    return STATUS_OK;
}

/* ---- one page ---- */

static bool is_dictionary_encoding(int encoding)
{
    return encoding == ENCODING_RLE_DICTIONARY || encoding == ENCODING_PLAIN_DICTIONARY;
}

/* The dictionary is kept: values that came without one are new entries of it. */
static enum status read_kept(struct leaf_reader *reader, const struct page *page, struct cursor *in,
                             uint32_t *indices, size_t count, struct error *err)
{
    struct values *to = &reader->dictionary;
    if (is_dictionary_encoding(page->encoding))
        return read_indices(reader, page, in, indices, count, err);
    TRY(leaf_need_entries(reader, reader->dictionary_page_count, err));
    int32_t *ends =
        (int32_t *)(void *)pool_extend(reader->walk.pool, &to->ends, (count + 1) * sizeof *ends);
    if (!ends || reader->dictionary_count > INT32_MAX - count)
        return out_of_room(reader, page, &to->ends, err);
    buf_truncate(&to->ends, to->ends.length - sizeof *ends);
    TRY(append_bytes(reader, page, in, &to->data, ends, count, err));
    for (size_t i = 0; i < count; i++)
        indices[i] = (uint32_t)(reader->dictionary_count + i);
    reader->dictionary_count += count;
    return STATUS_OK;
}

/* Fixed-width values at `out`, byte arrays' ends at `ends`; the other is NULL. */
static enum status read_plain(struct leaf_reader *reader, const struct page *page,
                              struct cursor *in, uint8_t *out, int32_t *ends, size_t count,
                              struct error *err)
{
    struct buf *scratch = &reader->scratch_ends;
    if (!is_dictionary_encoding(page->encoding))
        return out ? read_converted(reader, page, in, out, count, err)
                   : append_bytes(reader, page, in, &reader->values.data, ends, count, err);
    buf_clear(scratch);
    uint32_t *indices =
        (uint32_t *)(void *)pool_extend(reader->walk.pool, scratch, (count + 1) * sizeof *indices);
    if (!indices)
        return out_of_room(reader, page, scratch, err);
    TRY(read_indices(reader, page, in, indices, count, err));
    size_t start = reader->values.data.length;
    if (!out && leaf_gather_in_place(reader, indices, ends, count))
        return reader->values.data.failed
                   ? out_of_room(reader, page, &reader->values.data, err)
                   : check_text(reader, page, &reader->values.data, start, ends, count, err);
    if (!out)
        return gather_bytes(reader, page, indices, ends, count, err);
    if (count)
        gather_fixed(reader->dictionary.data.data, reader->width, indices, out, count);
    return STATUS_OK;
}

enum status leaf_read_values(struct leaf_reader *reader, const struct page *page, struct cursor *in,
                             size_t count, struct error *err)
{
    size_t slot = reader->slot_count;
    if (reader->keeps_dictionary)
        return read_kept(reader, page, in, (uint32_t *)(void *)reader->indices.data + slot, count,
                         err);
    if (reader->width)
        return read_plain(reader, page, in, reader->values.data.data + slot * reader->width, NULL,
                          count, err);
    return read_plain(reader, page, in, NULL,
                      (int32_t *)(void *)reader->values.ends.data + 1 + slot, count, err);
}
