/* SPDX-License-Identifier: Apache-2.0
 *
 * Source: parquet.thrift, Encodings.md, Thrift's compact protocol. v1 data pages, PLAIN and
 * dictionary values, zstd or none. Bytes are not trusted: whatever does not fit sets `why`.
 */
#include "sim/parquet_look.h"

#include <stdlib.h>
#include <zstd.h>

enum {
    T_TRUE = 1,
    T_FALSE,
    T_BYTE,
    T_I16,
    T_I32,
    T_I64,
    T_DOUBLE,
    T_BINARY,
    T_LIST,
    T_SET,
    T_MAP,
    T_STRUCT
};

/* ---- Thrift ---- */

static int64_t get_zigzag(struct cursor *in)
{
    uint64_t raw = cursor_get_varint(in);
    return (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
}

static struct span get_binary(struct cursor *in)
{
    size_t length = (size_t)cursor_get_varint(in);
    const uint8_t *data = cursor_take(in, length);
    return span_of(data, data ? length : 0);
}

/* The next field of a struct: its type; 0 at the end. */
static int get_field(struct cursor *in, int *inout_id)
{
    uint8_t head = cursor_get_byte(in);
    if (in->failed || head == 0)
        return 0;
    *inout_id = head >> 4 ? *inout_id + (head >> 4) : (int)get_zigzag(in);
    return head & 15;
}

static uint64_t get_list(struct cursor *in, int *out_type)
{
    uint8_t head = cursor_get_byte(in);
    *out_type = head & 15;
    return head >> 4 == 15 ? cursor_get_varint(in) : head >> 4;
}

static void skip(struct cursor *in, int type, int depth)
{
    int id = 0, inner;
    uint64_t count;
    if (depth > 20)
        in->failed = true;
    if (in->failed)
        return;
    switch (type) {
    case T_TRUE:
    case T_FALSE:
        return;
    case T_BYTE:
        cursor_get_byte(in);
        return;
    case T_I16:
    case T_I32:
    case T_I64:
        cursor_get_varint(in);
        return;
    case T_DOUBLE:
        cursor_take(in, 8);
        return;
    case T_BINARY:
        get_binary(in);
        return;
    case T_LIST:
        for (count = get_list(in, &inner); count > 0 && !in->failed; count--)
            if (inner == T_TRUE || inner == T_FALSE)
                cursor_get_byte(in);
            else
                skip(in, inner, depth + 1);
        return;
    case T_STRUCT:
        while ((inner = get_field(in, &id)) != 0)
            skip(in, inner, depth + 1);
        return;
    default:
        in->failed = true;
    }
}

/* ---- footer ---- */

static struct cursor footer_of(const struct parquet_look *look)
{
    return cursor_of(look->file.data + look->file.length - 8 - look->footer_bytes,
                     look->footer_bytes);
}

bool parquet_look_open(struct parquet_look *look, struct span file)
{
    *look = (struct parquet_look){.file = file};
    size_t length = file.length;
    if (length < 12 || memcmp(file.data, "PAR1", 4) != 0 ||
        memcmp(file.data + length - 4, "PAR1", 4) != 0) {
        look->why = "no magic at both ends";
        return false;
    }
    look->footer_bytes = get_le32(file.data + length - 8);
    if (look->footer_bytes > length - 12) {
        look->why = "the footer is longer than the file";
        return false;
    }
    struct cursor in = footer_of(look);
    int id = 0, type;
    look->rows = -1;
    while ((type = get_field(&in, &id)) != 0) {
        if (id == 3 && type == T_I64)
            look->rows = get_zigzag(&in);
        else
            skip(&in, type, 0);
    }
    if (in.failed || look->rows < 0)
        look->why = "the footer cannot be read";
    return !look->why;
}

bool parquet_look_metadata(struct parquet_look *look, const char *key, char *out, size_t bytes)
{
    struct cursor in = footer_of(look);
    int id = 0, type, inner;
    while ((type = get_field(&in, &id)) != 0) {
        if (id != 5 || type != T_LIST) {
            skip(&in, type, 0);
            continue;
        }
        for (uint64_t count = get_list(&in, &inner); count > 0 && !in.failed; count--) {
            struct span pair[2] = {{0}};
            int member = 0, member_type;
            while ((member_type = get_field(&in, &member)) != 0) {
                if (member_type == T_BINARY && (member == 1 || member == 2))
                    pair[member - 1] = get_binary(&in);
                else
                    skip(&in, member_type, 0);
            }
            if (!span_equal(pair[0], span_of_text(key)) || pair[1].length >= bytes)
                continue;
            memcpy(out, pair[1].data, pair[1].length);
            out[pair[1].length] = '\0';
            return true;
        }
    }
    return false;
}

/* ---- pages ---- */

struct column {
    int64_t *values, *dictionary;
    uint64_t count, capacity, dictionary_count;
    const char *why;
};

struct page {
    int64_t kind, plain_bytes, packed_bytes, values, encoding;
};

static struct page get_page(struct cursor *in)
{
    struct page page = {.kind = -1};
    int id = 0, type;
    while ((type = get_field(in, &id)) != 0) {
        if (id == 1)
            page.kind = get_zigzag(in);
        else if (id == 2)
            page.plain_bytes = get_zigzag(in);
        else if (id == 3)
            page.packed_bytes = get_zigzag(in);
        else if ((id == 5 || id == 7) && type == T_STRUCT) {
            int member = 0, member_type;
            while ((member_type = get_field(in, &member)) != 0) {
                if (member == 1)
                    page.values = get_zigzag(in);
                else if (member == 2)
                    page.encoding = get_zigzag(in);
                else
                    skip(in, member_type, 0);
            }
        } else {
            skip(in, type, 0);
        }
    }
    return page;
}

static void take_value(struct column *column, int64_t value)
{
    if (column->count == column->capacity)
        column->why = "more values than rows";
    else
        column->values[column->count++] = value;
}

static void take_index(struct column *column, uint64_t index)
{
    if (index >= column->dictionary_count)
        column->why = "an index beyond the dictionary";
    else
        take_value(column, column->dictionary[index]);
}

/* Runs of equal values and of bit-packed ones (Encodings.md, RLE_DICTIONARY). */
static void take_indices(struct column *column, struct cursor *in, uint64_t count)
{
    unsigned width = cursor_get_byte(in);
    if (width > 32)
        column->why = "wide indices";
    while (count > 0 && !column->why && !in->failed) {
        uint64_t head = cursor_get_varint(in);
        if (!(head & 1)) {
            const uint8_t *bytes = cursor_take(in, (width + 7) / 8);
            uint64_t value = 0, run = head >> 1;
            for (unsigned i = 0; bytes && i < (width + 7) / 8; i++)
                value |= (uint64_t)bytes[i] << (8 * i);
            for (; run > 0 && count > 0 && !column->why; run--, count--)
                take_index(column, value);
            continue;
        }
        uint64_t groups = head >> 1;
        if (groups > (1 << 20))
            column->why = "a long run";
        const uint8_t *bits = column->why ? NULL : cursor_take(in, (size_t)(groups * width));
        for (uint64_t i = 0; bits && i < groups * 8 && count > 0 && !column->why; i++, count--) {
            uint64_t value = 0;
            for (unsigned b = 0; b < width; b++)
                value |= (uint64_t)(bits[(i * width + b) / 8] >> ((i * width + b) % 8) & 1) << b;
            take_index(column, value);
        }
    }
}

static void take_page(struct column *column, const struct page *page, struct cursor in)
{
    uint64_t count = (uint64_t)page->values;
    if (page->kind == 2) { /* a dictionary */
        column->dictionary = realloc(column->dictionary, (size_t)(count + 1) * sizeof(int64_t));
        CHECK(column->dictionary);
        for (column->dictionary_count = 0; column->dictionary_count < count && !in.failed;)
            column->dictionary[column->dictionary_count++] = (int64_t)cursor_get_le64(&in);
    } else if (page->kind == 0 && page->encoding == 0) {
        for (; count > 0 && !in.failed && !column->why; count--)
            take_value(column, (int64_t)cursor_get_le64(&in));
    } else if (page->kind == 0 && (page->encoding == 8 || page->encoding == 2)) {
        take_indices(column, &in, count);
    } else {
        column->why = "a page that this reader does not know";
    }
    if (in.failed && !column->why)
        column->why = "a page is too short";
}

/* The pages of one chunk: `values` of them from `offset`. */
static void take_chunk(struct column *column, struct span file, int64_t codec, uint64_t offset,
                       uint64_t values)
{
    uint64_t wanted = column->count + values;
    column->dictionary_count = 0;
    if (offset >= file.length)
        column->why = "a chunk beyond the file";
    while (column->count < wanted && !column->why) {
        struct cursor in = cursor_of(file.data + offset, file.length - offset);
        struct page page = get_page(&in);
        const uint8_t *bytes = cursor_take(&in, (size_t)page.packed_bytes);
        if (!bytes || page.plain_bytes < 0 || page.plain_bytes > (1 << 28) || page.values < 0 ||
            page.values > (1 << 24)) {
            column->why = "a page header that makes no sense";
            return;
        }
        offset = (uint64_t)(in.at - file.data);
        size_t plain_bytes = (size_t)page.plain_bytes;
        uint8_t *plain = malloc(plain_bytes + 1);
        CHECK(plain);
        size_t got = codec == 6
                         ? ZSTD_decompress(plain, plain_bytes, bytes, (size_t)page.packed_bytes)
                         : plain_bytes;
        if (codec == 0 && page.plain_bytes == page.packed_bytes)
            memcpy(plain, bytes, plain_bytes);
        else if (codec != 6 || ZSTD_isError(got) || got != plain_bytes)
            column->why = "a page does not expand";
        if (!column->why)
            take_page(column, &page, cursor_of(plain, plain_bytes));
        free(plain);
    }
}

/* ColumnMetaData: reads the chunk if it is `name`'s. */
static void take_metadata(struct column *column, struct span file, struct cursor *in,
                          const char *name)
{
    int64_t codec = -1, values = -1, data = -1, dictionary = -1, kind = -1;
    bool is_it = false;
    int id = 0, type, inner;
    while ((type = get_field(in, &id)) != 0) {
        if (id == 3 && type == T_LIST) {
            uint64_t parts = get_list(in, &inner);
            is_it = parts == 1 && span_equal(get_binary(in), span_of_text(name));
            for (; parts > 1; parts--)
                get_binary(in);
            continue;
        }
        int64_t *to = id == 1    ? &kind
                      : id == 4  ? &codec
                      : id == 5  ? &values
                      : id == 9  ? &data
                      : id == 11 ? &dictionary
                                 : NULL;
        if (to)
            *to = get_zigzag(in);
        else
            skip(in, type, 0);
    }
    if (!is_it || in->failed)
        return;
    int64_t start = dictionary > 0 && dictionary < data ? dictionary : data;
    if (kind != 2 || start < 4 || values < 0)
        column->why = "the column is not a chunk of INT64";
    else
        take_chunk(column, file, codec, (uint64_t)start, (uint64_t)values);
}

static void take_group(struct column *column, struct span file, struct cursor *in, const char *name)
{
    int id = 0, type, inner;
    while ((type = get_field(in, &id)) != 0) {
        if (id != 1 || type != T_LIST) {
            skip(in, type, 0);
            continue;
        }
        for (uint64_t count = get_list(in, &inner); count > 0 && !in->failed; count--) {
            int member = 0, member_type;
            while ((member_type = get_field(in, &member)) != 0) {
                if (member == 3 && member_type == T_STRUCT)
                    take_metadata(column, file, in, name);
                else
                    skip(in, member_type, 0);
            }
        }
    }
}

int64_t *parquet_look_i64(struct parquet_look *look, const char *name)
{
    struct column column = {.capacity = (uint64_t)look->rows};
    struct cursor in = footer_of(look);
    int id = 0, type, inner;
    column.values = malloc((size_t)(look->rows + 1) * sizeof(int64_t));
    CHECK(column.values);
    while ((type = get_field(&in, &id)) != 0) {
        if (id != 4 || type != T_LIST) {
            skip(&in, type, 0);
            continue;
        }
        for (uint64_t count = get_list(&in, &inner); count > 0 && !in.failed; count--)
            take_group(&column, look->file, &in, name);
    }
    if (in.failed && !column.why)
        column.why = "the footer cannot be read";
    if (column.count != column.capacity && !column.why)
        column.why = "fewer values than rows";
    free(column.dictionary);
    if (!column.why)
        return column.values;
    free(column.values);
    look->why = column.why;
    return NULL;
}
