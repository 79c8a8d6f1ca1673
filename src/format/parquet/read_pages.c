/* SPDX-License-Identifier: Apache-2.0
 *
 * The pages of a chunk, one after the other: header, checksum, expanding. Source: parquet.thrift,
 * Compression.md.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "format/parquet/reader_internal.h"
#include "format/parquet/thrift_internal.h"

enum status page_fault(const struct page_walk *walk, uint64_t offset, enum status status,
                       struct error *err, const char *format, ...)
{
    char what[200];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    error_set(err, status, "parquet: column %.120s, row group %zu, byte %" PRIu64 ": %s",
              walk->leaf->path, walk->group, offset, what);
    return error_at(err, offset);
}

/* ---- header ---- */

static struct span skip_struct(struct cursor *in)
{
    const uint8_t *start = in->at;
    thrift_skip(in, THRIFT_STRUCT);
    return in->failed ? (struct span){0} : span_of(start, (size_t)(in->at - start));
}

static void read_details(struct cursor *in, int type, int kind, struct page_header *header)
{
    int id = 0;
    if (!thrift_read_struct(in, type))
        return;
    header->has_details = true;
    while ((type = thrift_read_field(in, &id)) != 0) {
        bool is_v2 = kind == 8;
        if (id == 1)
            header->values = thrift_read_i32(in, type);
        else if (id == (is_v2 ? 4 : 2))
            header->encoding = thrift_read_i32(in, type);
        else if (kind == 5 && id == 3)
            header->def_encoding = thrift_read_i32(in, type);
        else if (kind == 5 && id == 4)
            header->rep_encoding = thrift_read_i32(in, type);
        else if (is_v2 && id == 2)
            header->nulls = thrift_read_i32(in, type);
        else if (is_v2 && id == 3)
            header->rows = thrift_read_i32(in, type);
        else if (is_v2 && id == 5)
            header->def_bytes = thrift_read_i32(in, type);
        else if (is_v2 && id == 6)
            header->rep_bytes = thrift_read_i32(in, type);
        else if (is_v2 && id == 7)
            header->is_stored = !thrift_read_bool(in, type);
        else if (kind == 7 && id == 3)
            header->is_sorted = type == THRIFT_TRUE;
        else if (type == THRIFT_STRUCT && id == (is_v2 ? 8 : 5))
            header->statistics = skip_struct(in);
        else
            thrift_skip(in, type);
    }
}

bool page_header_read(struct cursor *in, struct page_header *header)
{
    int id = 0, type;
    *header = (struct page_header){.type = -1,
                                   .plain_bytes = -1,
                                   .stored_bytes = -1,
                                   .encoding = -1,
                                   .rows = -1,
                                   .nulls = -1,
                                   .def_encoding = ENCODING_RLE,
                                   .rep_encoding = ENCODING_RLE};
    while ((type = thrift_read_field(in, &id)) != 0) {
        if (id == 1) {
            header->type = thrift_read_i32(in, type);
        } else if (id == 2) {
            header->plain_bytes = thrift_read_i32(in, type);
        } else if (id == 3) {
            header->stored_bytes = thrift_read_i32(in, type);
        } else if (id == 4) {
            header->crc = thrift_read_i32(in, type);
            header->has_crc = true;
        } else if ((id == 5 && header->type == PARQUET_PAGE_DATA) ||
                   (id == 7 && header->type == PARQUET_PAGE_DICTIONARY) ||
                   (id == 8 && header->type == PARQUET_PAGE_DATA_V2)) {
            read_details(in, type, id, header);
        } else {
            thrift_skip(in, type);
        }
    }
    return !in->failed && header->plain_bytes >= 0 && header->stored_bytes >= 0 &&
           header->values >= 0 && header->def_bytes >= 0 && header->rep_bytes >= 0;
}

/* ---- expanding ---- */

/* The "LZ4" of old: blocks, each behind its two lengths in big-endian, or one block without. */
static enum status expand_hadoop(struct span stored, uint8_t *place, size_t bytes,
                                 struct error *err)
{
    struct cursor in = cursor_of(stored.data, stored.length);
    size_t at = 0;
    while (cursor_left(&in) >= 8) {
        size_t plain = __builtin_bswap32(cursor_get_le32(&in));
        size_t packed = __builtin_bswap32(cursor_get_le32(&in));
        const uint8_t *block = cursor_take(&in, packed);
        if (!block || plain > bytes - at ||
            codec_expand_exact(CODEC_LZ4_BLOCK, span_of(block, packed), place + at, plain, err) !=
                STATUS_OK)
            break;
        at += plain;
        if (at == bytes && cursor_left(&in) == 0)
            return STATUS_OK;
    }
    return codec_expand_exact(CODEC_LZ4_BLOCK, stored, place, bytes, err);
}

/* `whole`: what all of it becomes; zstd stops behind `bytes`. */
static enum status expand_zstd(struct codec_expander **zstd, struct span stored, uint8_t *place,
                               size_t bytes, size_t whole, struct error *err)
{
    if (!*zstd)
        TRY(codec_expander_create(CODEC_ZSTD, SIZE_MAX, zstd, err));
    return bytes < whole ? codec_expander_front(*zstd, stored, place, bytes, err)
                         : codec_expander_exact(*zstd, stored, place, bytes, err);
}

static enum status expand_codec(const struct page_walk *walk, struct span stored, uint8_t *place,
                                size_t bytes, size_t whole, struct error *err)
{
    int32_t number = walk->chunk->codec;
    switch (number) {
    case CODEC_ID_SNAPPY:
        return codec_expand_exact(CODEC_SNAPPY, stored, place, bytes, err);
    case CODEC_ID_GZIP:
        return codec_expand_exact(CODEC_GZIP, stored, place, bytes, err);
    case CODEC_ID_LZ4_HADOOP:
        return expand_hadoop(stored, place, bytes, err);
    case CODEC_ID_ZSTD:
        return expand_zstd(walk->zstd, stored, place, bytes, whole, err);
    case CODEC_ID_LZ4_RAW:
        return codec_expand_exact(CODEC_LZ4_BLOCK, stored, place, bytes, err);
    default:
        return error_set(err, STATUS_UNSUPPORTED, "codec %s (%d)", parquet_codec_name(number),
                         (int)number);
    }
}

/* The first `bytes` of the `whole` that `stored` becomes; fewer than all of zstd alone. */
static enum status expand_into(struct page_walk *walk, const struct page *page, struct span stored,
                               size_t bytes, size_t whole, struct buf *into, struct span *out_body,
                               struct error *err)
{
    struct error cause;
    buf_clear(into);
    *out_body = span_of(stored.data, 0); /* nothing, but somewhere */
    if (bytes == 0)
        return STATUS_OK;
    if (bytes > walk->expanded_bytes_max - walk->expanded_bytes)
        return page_fault(walk, page->offset, STATUS_LIMIT, err,
                          "the pages expand to more than %" PRIu64 " bytes",
                          walk->expanded_bytes_max);
    walk->expanded_bytes += bytes;
    if (!pool_extend(walk->pool, into, bytes))
        return page_fault(walk, page->offset, STATUS_NO_MEMORY, err, "no memory for %zu bytes",
                          bytes);
    enum status status = expand_codec(walk, stored, into->data, bytes, whole, &cause);
    if (status != STATUS_OK)
        return page_fault(walk, page->offset, status == STATUS_INVALID ? STATUS_CORRUPT : status,
                          err, "%.150s", cause.message);
    *out_body = span_of(into->data, bytes);
    return STATUS_OK;
}

static enum status expand(struct page_walk *walk, const struct page *page, bool is_stored,
                          struct span stored, size_t bytes, struct span *out_body,
                          struct error *err)
{
    if (walk->chunk->codec != CODEC_ID_UNCOMPRESSED && !is_stored)
        return expand_into(walk, page, stored, bytes, bytes, &walk->expanded, out_body, err);
    if (stored.length != bytes)
        return page_fault(walk, page->offset, STATUS_CORRUPT, err,
                          "a page that is not compressed has %zu bytes, not %zu", stored.length,
                          bytes);
    *out_body = stored;
    return STATUS_OK;
}

enum status page_expand_front(struct page_walk *walk, struct page *page, size_t bytes,
                              struct buf *front, struct error *err)
{
    if (walk->chunk->codec != CODEC_ID_UNCOMPRESSED)
        return expand_into(walk, page, page->body, bytes, page->plain_bytes, front, &page->body,
                           err);
    TRY(expand(walk, page, true, page->body, page->plain_bytes, &page->body, err));
    page->body.length = bytes;
    return STATUS_OK;
}

/* ---- the walk ---- */

static enum status fill_page(struct page_walk *walk, const struct page_header *header,
                             struct span stored, struct page *page, struct error *err)
{
    size_t levels = 0;
    page->level_count = (size_t)header->values;
    page->row_count = header->rows;
    page->null_count = header->nulls;
    page->encoding = header->encoding;
    page->def_encoding = header->def_encoding;
    page->rep_encoding = header->rep_encoding;
    page->is_dictionary = header->type == PARQUET_PAGE_DICTIONARY;
    page->is_v2 = header->type == PARQUET_PAGE_DATA_V2;
    page->statistics = header->statistics;
    if (page->is_dictionary) {
        walk->has_sorted_dictionary = header->is_sorted;
        walk->dictionary_at = page->offset;
    }
    if (page->is_v2) {
        size_t rep = (size_t)header->rep_bytes, def = (size_t)header->def_bytes;
        levels = rep + def;
        if (levels > stored.length || levels > (size_t)header->plain_bytes)
            return page_fault(walk, page->offset, STATUS_CORRUPT, err,
                              "levels of %zu bytes in a page of %zu", levels, stored.length);
        page->rep = span_of(stored.data, rep);
        page->def = span_of(stored.data + rep, def);
    }
    if (page->is_dictionary && walk->defers_dictionary) {
        page->body = stored;
        page->plain_bytes = (size_t)header->plain_bytes;
        return STATUS_OK;
    }
    return expand(walk, page, header->is_stored,
                  span_of(stored.data + levels, stored.length - levels),
                  (size_t)header->plain_bytes - levels, &page->body, err);
}

enum status page_next(struct page_walk *walk, struct page *out_page, struct error *err)
{
    struct page_header header;
    while (cursor_left(&walk->in)) {
        struct page page = {.offset = walk->offset + (uint64_t)(walk->in.at - walk->start)};
        if (!page_header_read(&walk->in, &header))
            return page_fault(walk, page.offset, STATUS_CORRUPT, err, "a damaged page header");
        const uint8_t *stored = cursor_take(&walk->in, (size_t)header.stored_bytes);
        if (!stored)
            return page_fault(walk, page.offset, STATUS_CORRUPT, err,
                              "a page of %d bytes ends behind its chunk", header.stored_bytes);
        if (!parquet_page_is_data(header.type) && header.type != PARQUET_PAGE_DICTIONARY)
            continue;
        if (!header.has_details)
            return page_fault(walk, page.offset, STATUS_CORRUPT, err,
                              "a page header without its particulars");
        if ((size_t)header.plain_bytes > walk->file->limits.page_bytes_max)
            return page_fault(walk, page.offset, STATUS_LIMIT, err, "a page of %d bytes",
                              header.plain_bytes);
        if (header.has_crc && !walk->skips_checksums &&
            crc32_gzip(0, stored, (size_t)header.stored_bytes) != (uint32_t)header.crc)
            return page_fault(walk, page.offset, STATUS_CORRUPT, err,
                              "the page's checksum is not its bytes'");
        bool is_dictionary = header.type == PARQUET_PAGE_DICTIONARY, was_begun = walk->has_begun;
        walk->has_begun = true;
        if (is_dictionary && was_begun)
            return page_fault(walk, page.offset, STATUS_CORRUPT, err,
                              "a second dictionary, or one behind values");
        if (is_dictionary ? walk->skips_dictionary : header.values == 0)
            continue;
        page.bytes = walk->offset + (uint64_t)(walk->in.at - walk->start) - page.offset;
        TRY(fill_page(walk, &header, span_of(stored, (size_t)header.stored_bytes), &page, err));
        *out_page = page;
        return STATUS_OK;
    }
    return error_set(err, STATUS_NOT_FOUND, "parquet: the end of the chunk");
}
