/* SPDX-License-Identifier: Apache-2.0
 *
 * Leaves of Parquet files as JSON: what their annotation says stands in bytes of their physical
 * type. And members of the objects that speak of files.
 */
#include "app/cmd/parquet_internal.h"

/* ---- members ---- */

void parquet_write_number(struct json_writer *json, const char *name, int64_t value)
{
    if (value < 0)
        return;
    json_write_key(json, name);
    json_write_i64(json, value);
}

void parquet_write_text(struct json_writer *json, const char *name, const char *text)
{
    json_write_key(json, name);
    json_write_text(json, text);
}

void parquet_write_bool(struct json_writer *json, const char *name, bool value)
{
    json_write_key(json, name);
    json_write_bool(json, value);
}

/* ---- leaves ---- */

static int64_t units_a_second(enum parquet_unit unit)
{
    return unit == PARQUET_MILLIS ? 1000 : unit == PARQUET_MICROS ? 1000000 : 1000000000;
}

static void write_small_decimal(struct json_writer *json, int64_t value, int32_t scale)
{
    uint64_t bytes = __builtin_bswap64((uint64_t)value);
    row_write_decimal(json, span_of(&bytes, sizeof bytes), scale < 0 ? 0 : scale);
}

static void write_integer(struct json_writer *json, const struct parquet_leaf *leaf, int64_t value)
{
    switch (leaf->kind) {
    case PARQUET_KIND_TIME:
        row_write_time(json, value, units_a_second(leaf->unit));
        break;
    case PARQUET_KIND_TIMESTAMP:
        row_write_timestamp(json, value, units_a_second(leaf->unit), leaf->is_utc);
        break;
    case PARQUET_KIND_DECIMAL:
        write_small_decimal(json, value, leaf->scale);
        break;
    default:
        if (leaf->kind == PARQUET_KIND_INTEGER && leaf->is_unsigned)
            json_write_u64(json, (uint64_t)value);
        else
            json_write_i64(json, value);
        break;
    }
}

static void write_bytes(struct json_writer *json, const struct parquet_leaf *leaf,
                        struct span bytes)
{
    if (leaf->kind == PARQUET_KIND_DECIMAL)
        row_write_decimal(json, bytes, leaf->scale < 0 ? 0 : leaf->scale);
    else if (leaf->kind == PARQUET_KIND_UUID && bytes.length == sizeof(struct uuid))
        row_write_uuid(json, bytes.data);
    else if (leaf->kind == PARQUET_KIND_FLOAT16 && bytes.length == sizeof(uint16_t))
        row_write_half(json, get_le16(bytes.data));
    else
        row_write_base64(json, bytes);
}

void parquet_write_leaf(struct json_writer *json, const void *context, uint32_t number,
                        const struct arrow_field *field, const struct arrow_array *array, int64_t i)
{
    const struct parquet_leaf *leaf = ((const struct parquet_leaf *const *)context)[number];
    switch (field->type) {
    case ARROW_INT32:
        write_integer(json, leaf, ((const int32_t *)array->values)[i]);
        break;
    case ARROW_INT64:
        write_integer(json, leaf, ((const int64_t *)array->values)[i]);
        break;
    case ARROW_BINARY:
    case ARROW_FIXED:
        write_bytes(json, leaf, slot_bytes(field, array, i));
        break;
    case ARROW_TIMESTAMP_US: /* of milliseconds and INT96 too; the leaf knows the zone */
        row_write_timestamp(json, ((const int64_t *)array->values)[i], 1000000, leaf->is_utc);
        break;
    default:
        row_write_plain_leaf(json, field, array, i);
        break;
    }
}

/* ---- values as statistics have them ---- */

static void write_integer_plain(struct json_writer *json, const struct parquet_leaf *leaf,
                                struct span plain)
{
    bool is_unsigned = leaf->kind == PARQUET_KIND_INTEGER && leaf->is_unsigned;
    int64_t value = is_unsigned ? (int64_t)get_le_unsigned(plain.data, plain.length)
                                : get_le_signed(plain.data, plain.length);
    if (leaf->kind == PARQUET_KIND_DATE)
        row_write_date(json, value);
    else
        write_integer(json, leaf, value);
}

void parquet_write_plain(struct json_writer *json, const struct parquet_leaf *leaf,
                         struct span plain)
{
    size_t width = leaf->physical == PARQUET_BOOLEAN                                     ? 1
                   : leaf->physical == PARQUET_INT32 || leaf->physical == PARQUET_FLOAT  ? 4
                   : leaf->physical == PARQUET_INT64 || leaf->physical == PARQUET_DOUBLE ? 8
                                                                                         : 0;
    float single;
    double real;
    if (width && plain.length != width) { /* whatever it is */
        row_write_base64(json, plain);
    } else if (leaf->physical == PARQUET_BOOLEAN) {
        json_write_bool(json, plain.data[0] != 0);
    } else if (leaf->physical == PARQUET_INT32 || leaf->physical == PARQUET_INT64) {
        write_integer_plain(json, leaf, plain);
    } else if (leaf->physical == PARQUET_FLOAT) {
        memcpy(&single, plain.data, sizeof single);
        json_write_double(json, (double)single);
    } else if (leaf->physical == PARQUET_DOUBLE) {
        memcpy(&real, plain.data, sizeof real);
        json_write_double(json, real);
    } else if (leaf->kind == PARQUET_KIND_STRING && utf8_is_valid(plain.data, plain.length)) {
        json_write_string(json, plain.data, plain.length);
    } else {
        write_bytes(json, leaf, plain);
    }
}

void parquet_put_plain(struct buf *out, const struct parquet_leaf *leaf, struct span plain)
{
    enum { SHOWN_BYTES = 60 };
    struct json_writer json;
    size_t start = out->length;
    json_writer_init(&json, out);
    parquet_write_plain(&json, leaf, plain);
    if (out->failed || out->length - start <= SHOWN_BYTES)
        return;
    size_t end = start + SHOWN_BYTES;
    while (end > start && (out->data[end] & 0xc0) == 0x80) /* between code points */
        end--;
    buf_truncate(out, end);
    buf_put_text(out, "...");
}

void parquet_put_encodings(struct buf *out, uint32_t encodings)
{
    bool is_first = true;
    for (int i = 0; i < 10; i++) {
        if (!(encodings >> i & 1))
            continue;
        buf_format(out, "%s%s", is_first ? "" : ",", parquet_encoding_name(i));
        is_first = false;
    }
}

/* ---- columns ---- */

enum status parquet_choose(const struct parquet_file *file, const char *columns,
                           struct arena *arena, bool **out_leaves, struct error *err)
{
    const char **names;
    size_t count;
    bool *leaves = arena_alloc_zero(arena, file->leaf_count + (size_t)1, sizeof *leaves);
    if (!leaves)
        return error_set(err, STATUS_NO_MEMORY, "out of memory");
    if (columns) {
        TRY(columns_split(columns, arena, &names, &count, err));
        TRY(parquet_leaves_select(file, names, count, leaves, err));
    } else {
        memset(leaves, true, file->leaf_count);
    }
    *out_leaves = leaves;
    return STATUS_OK;
}
