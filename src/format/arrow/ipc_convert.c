/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrow IPC, reading: buffers of types that tables do not have, made into those that ours have.
 * What is made counts against the limit of the body, since it may take more than what it came from.
 */
#include "format/arrow/ipc_internal.h"

static enum status too_long(struct batch_reader *batch)
{
    return error_set(batch->err, STATUS_LIMIT,
                     "arrow: column %.100s: more than 2^31 - 1 bytes or elements",
                     batch->field->name);
}

enum status convert_large_offsets(struct batch_reader *batch, int64_t length, const int32_t **out)
{
    static const int32_t zero[2];
    struct span span;
    int32_t *offsets;
    TRY(batch_take_buffer(batch, &span));
    if (length == 0 && span.length < sizeof(int64_t)) {
        *out = zero;
        return STATUS_OK;
    }
    if (span.length < ((uint64_t)length + 1) * sizeof(int64_t))
        return batch_fail(batch, NULL, "too few offsets");
    TRY(batch_make(batch, ((uint64_t)length + 1) * sizeof *offsets, &offsets));
    for (int64_t i = 0, last = 0; i <= length; i++) {
        const uint8_t *place = span.data + (size_t)i * sizeof(int64_t);
        int64_t offset = (int64_t)get_le64(place);
        if (offset < last)
            return batch_fail(batch, place, "offsets that fall");
        if (offset > INT32_MAX)
            return too_long(batch);
        offsets[i] = (int32_t)offset;
        last = offset;
    }
    *out = offsets;
    return STATUS_OK;
}

enum status convert_fixed_offsets(struct batch_reader *batch, int64_t length, int32_t size,
                                  const int32_t **out)
{
    int32_t *offsets;
    if (length * size > INT32_MAX)
        return too_long(batch);
    TRY(batch_make(batch, ((uint64_t)length + 1) * sizeof *offsets, &offsets));
    for (int64_t i = 0; i <= length; i++)
        offsets[i] = (int32_t)(i * size);
    *out = offsets;
    return STATUS_OK;
}

/* ---- views ---- */

enum { VIEW_BYTES = 16, VIEW_INLINE_BYTES = 12 };

/* The bytes of one view: within itself, or in one of the data buffers with its first four here. */
static enum status view_at(struct batch_reader *batch, const uint8_t *view,
                           const struct span *buffers, uint64_t buffer_count, struct span *out)
{
    uint32_t length = get_le32(view), index = get_le32(view + 8), offset = get_le32(view + 12);
    if (length > INT32_MAX)
        return batch_fail(batch, view, "a view of a bad length");
    *out = span_of(view + 4, length);
    if (length <= VIEW_INLINE_BYTES)
        return STATUS_OK;
    if (index >= buffer_count || offset > buffers[index].length ||
        length > buffers[index].length - offset)
        return batch_fail(batch, view, "a view outside its data");
    *out = span_of(buffers[index].data + offset, length);
    if (memcmp(out->data, view + 4, 4) != 0)
        return batch_fail(batch, view, "a view that begins unlike its data");
    return STATUS_OK;
}

static enum status take_view_buffers(struct batch_reader *batch, const struct span **out_buffers,
                                     uint64_t *out_count)
{
    if (batch->view_counts_left == 0)
        return batch_fail(batch, NULL, "no count of a view's data buffers");
    int64_t count = (int64_t)get_le64(batch->view_counts);
    if (count < 0 || count > (int64_t)(batch->buffer_count - batch->buffer_at))
        return batch_fail(batch, batch->view_counts, "too few buffers");
    batch->view_counts += 8;
    batch->view_counts_left--;
    *out_buffers = batch->taken + batch->buffer_at;
    *out_count = (uint64_t)count;
    for (int64_t i = 0; i < count; i++) {
        struct span span;
        TRY(batch_take_buffer(batch, &span));
    }
    return STATUS_OK;
}

enum status convert_views(struct batch_reader *batch, struct arrow_array *array)
{
    const struct span *buffers;
    struct span views, bytes;
    uint64_t buffer_count, total = 0;
    int32_t *offsets;
    uint8_t *data;
    TRY(batch_take_buffer(batch, &views));
    if (views.length < (uint64_t)array->length * VIEW_BYTES)
        return batch_fail(batch, NULL, "too few views");
    TRY(take_view_buffers(batch, &buffers, &buffer_count));
    TRY(batch_make(batch, ((uint64_t)array->length + 1) * sizeof *offsets, &offsets));
    offsets[0] = 0;
    for (int64_t i = 0; i < array->length; i++) {
        if (arrow_is_valid(array, i)) {
            TRY(view_at(batch, views.data + i * VIEW_BYTES, buffers, buffer_count, &bytes));
            total += bytes.length;
        }
        if (total > INT32_MAX)
            return too_long(batch);
        offsets[i + 1] = (int32_t)total;
    }
    TRY(batch_make(batch, total, &data));
    for (int64_t i = 0; i < array->length; i++) {
        if (!arrow_is_valid(array, i))
            continue;
        TRY(view_at(batch, views.data + i * VIEW_BYTES, buffers, buffer_count, &bytes));
        copy_short(data + offsets[i], bytes.data, bytes.length);
    }
    array->offsets = offsets;
    array->values = data;
    return STATUS_OK;
}

/* ---- dictionary indices ---- */

static int64_t index_at(const uint8_t *place, const struct arrow_origin *origin)
{
    bool is_signed = !origin->index_is_unsigned;
    switch (origin->index_bits) {
    case 8:
        return is_signed ? (int64_t)(int8_t)place[0] : (int64_t)place[0];
    case 16:
        return is_signed ? (int64_t)(int16_t)get_le16(place) : (int64_t)get_le16(place);
    case 32:
        return is_signed ? (int64_t)(int32_t)get_le32(place) : (int64_t)get_le32(place);
    default:
        return (int64_t)get_le64(place); /* those past 2^63 turn negative, and are refused alike */
    }
}

enum status convert_indices(struct batch_reader *batch, const struct arrow_origin *origin,
                            struct arrow_array *array)
{
    struct span span;
    int32_t *indices;
    size_t width = origin->index_bits / 8;
    TRY(batch_take_buffer(batch, &span));
    if (span.length < (uint64_t)array->length * width)
        return batch_fail(batch, NULL, "too few dictionary indices");
    TRY(batch_make(batch, (uint64_t)array->length * sizeof *indices, &indices));
    for (int64_t i = 0; i < array->length; i++) {
        const uint8_t *place = span.data + (size_t)i * width;
        bool is_valid = arrow_is_valid(array, i);
        int64_t index = is_valid ? index_at(place, origin) : 0;
        if (is_valid && (index < 0 || index >= array->dictionary->length))
            return batch_fail(batch, place, "dictionary index out of range");
        indices[i] = (int32_t)index;
    }
    array->values = indices;
    return STATUS_OK;
}
