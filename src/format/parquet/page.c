/* SPDX-License-Identifier: Apache-2.0
 *
 * Pages of a leaf: levels, values, compression, header. Source: parquet.thrift, Encodings.md.
 */
#include "format/parquet/parquet_internal.h"
#include "format/parquet/thrift_internal.h"

static enum status no_memory(const struct leaf *leaf, struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "parquet: column %.100s: no memory for a page",
                     leaf->field->name);
}

static enum status too_large(const struct leaf *leaf, size_t bytes, struct error *err)
{
    return error_set(err, STATUS_TOO_LARGE, "parquet: column %.100s: a page of %zu bytes",
                     leaf->field->name, bytes);
}

/* ---- levels ---- */

/* `has_length`: with their length in front, as v1 pages have them. */
static size_t put_level_section(struct buf *body, const struct buf *levels, uint8_t max,
                                bool has_length)
{
    size_t at = body->length;
    if (!max)
        return 0;
    if (has_length)
        buf_put_le32(body, 0);
    encode_levels(body, levels->data, levels->length, bits_needed(max));
    if (has_length && !body->failed)
        put_le32(body->data + at, (uint32_t)(body->length - at - 4));
    return body->length - at;
}

/* Most levels are the greatest: eight of those are counted at once. */
static void count_levels(int64_t *histogram, const struct buf *levels, uint8_t max)
{
    uint64_t pattern = max * UINT64_C(0x0101010101010101);
    const uint8_t *at = levels->data;
    const uint8_t *end = levels->length ? at + levels->length : at;
    while (at < end) {
        if (end - at >= 8 && get_le64(at) == pattern) {
            histogram[max] += 8;
            at += 8;
        } else {
            histogram[*at++]++;
        }
    }
}

/* The order of byte arrays by their first eight bytes, or all of a shorter one. */
static inline uint64_t entry_prefix(const struct leaf *leaf, uint32_t index)
{
    return __builtin_bswap64(dictionary_entry(&leaf->dictionary, index)->first);
}

/* Takes an entry into the extent; of byte arrays most are settled by their first bytes. */
static inline void see_entry(const struct leaf *leaf, uint32_t index, struct extent *extent,
                             uint64_t prefixes[2])
{
    if (leaf->order == ORDER_BYTE_ARRAY) {
        uint64_t prefix = entry_prefix(leaf, index);
        if (extent->is_set && prefix > prefixes[0] && prefix < prefixes[1])
            return;
        prefixes[0] = !extent->is_set || prefix < prefixes[0] ? prefix : prefixes[0];
        prefixes[1] = !extent->is_set || prefix > prefixes[1] ? prefix : prefixes[1];
    }
    extent_add(leaf->order, extent, dictionary_get(&leaf->dictionary, index));
}

/* What the page uses of the dictionary: its extent, and the greatest index. */
static bool look_at_entries(struct leaf *leaf, struct extent *extent, uint32_t *out_greatest)
{
    const uint32_t *indices = (const uint32_t *)(const void *)leaf->indices.data;
    size_t count = leaf->indices.length / sizeof *indices, entries = leaf->dictionary.count;
    uint64_t prefixes[2] = {0};
    *out_greatest = 0;
    buf_clear(&leaf->used);
    uint8_t *used = buf_extend(&leaf->used, (entries + 7) / 8 * 8);
    if (!used)
        return false;
    memset(used, 0, leaf->used.length);
    for (size_t i = 0; i < count; i++)
        used[indices[i]] = 1;
    for (size_t at = 0; at < entries; at += 8) {
        for (uint64_t word = get_le64(used + at); word; word &= word - 1) {
            uint32_t index = (uint32_t)at + (uint32_t)__builtin_ctzll(word) / 8;
            see_entry(leaf, index, extent, prefixes);
            *out_greatest = index;
        }
    }
    return true;
}

/* ---- header, compression ---- */

/* A page before it is sealed. */
struct raw_page {
    bool is_dictionary_page;
    int encoding;
    struct span body;
    size_t rep_bytes, def_bytes; /* v2: at the head of the body, never compressed */
    size_t values_at;            /* v1: behind the levels */
    int64_t levels;              /* of a dictionary: its entries */
    int64_t nulls, rows;         /* v2 */
};

static void put_page_header(struct buf *out, int type, const struct raw_page *page,
                            struct span stored, bool is_compressed)
{
    struct thrift thrift = thrift_to(out);
    thrift_i32(&thrift, 1, type);
    thrift_i32(&thrift, 2, (int32_t)page->body.length);
    thrift_i32(&thrift, 3, (int32_t)stored.length);
    thrift_i32(&thrift, 4, (int32_t)crc32_gzip(0, stored.data, stored.length));
    thrift_struct(&thrift, type == PARQUET_PAGE_DICTIONARY ? 7
                           : type == PARQUET_PAGE_DATA_V2  ? 8
                                                           : 5);
    thrift_i32(&thrift, 1, (int32_t)page->levels);
    if (type == PARQUET_PAGE_DATA_V2) {
        thrift_i32(&thrift, 2, (int32_t)page->nulls);
        thrift_i32(&thrift, 3, (int32_t)page->rows);
        thrift_i32(&thrift, 4, page->encoding);
        thrift_i32(&thrift, 5, (int32_t)page->def_bytes);
        thrift_i32(&thrift, 6, (int32_t)page->rep_bytes);
        thrift_bool(&thrift, 7, is_compressed);
    } else {
        thrift_i32(&thrift, 2, page->encoding);
    }
    if (type == PARQUET_PAGE_DATA) {
        thrift_i32(&thrift, 3, ENCODING_RLE);
        thrift_i32(&thrift, 4, ENCODING_RLE);
    }
    thrift_end(&thrift);
    thrift_end(&thrift);
}

/* Compresses to the end of scratch->packed. What is PLAIN becomes a frame of ours, unless libzstd's
 * was clearly smaller when a page was last made both ways. */
static enum status compress(struct page_scratch *scratch, struct leaf *leaf, bool is_plain,
                            struct span body, size_t values_at, struct error *err)
{
    enum { JUDGED_PAGES = 32, TOLERANCE = 16 };
    size_t start = scratch->packed.length;
    bool has_shape = is_plain && leaf->shape != ZSTD_ANY;
    bool is_judge = has_shape && leaf->shaped_pages++ % JUDGED_PAGES == 0;
    if (is_judge)
        leaf->is_framed = true;
    if (!has_shape || !leaf->is_framed)
        return codec_compress(scratch->compressor, body, &scratch->packed, err);
    if (!zstd_frame_put(&scratch->packed, leaf->shape, body, values_at)) {
        leaf->is_framed = !is_judge;
        return scratch->packed.failed
                   ? no_memory(leaf, err)
                   : codec_compress(scratch->compressor, body, &scratch->packed, err);
    }
    if (!is_judge)
        return STATUS_OK;
    buf_clear(&scratch->other);
    TRY(codec_compress(scratch->compressor, body, &scratch->other, err));
    leaf->is_framed =
        scratch->packed.length - start <= scratch->other.length + scratch->other.length / TOLERANCE;
    if (leaf->is_framed)
        return STATUS_OK;
    buf_truncate(&scratch->packed, start);
    buf_put(&scratch->packed, scratch->other.data, scratch->other.length);
    return scratch->packed.failed ? no_memory(leaf, err) : STATUS_OK;
}

/* The bytes as they are stored, in scratch->packed unless nothing is compressed. Only v2 pages can
 * stay as they are among compressed ones. */
static enum status pack_page(struct page_scratch *scratch, struct leaf *leaf,
                             const struct raw_page *page, bool is_v2, struct span *out_stored,
                             bool *out_is_compressed, struct error *err)
{
    size_t levels = page->rep_bytes + page->def_bytes;
    struct span values = span_of(page->body.data + levels, page->body.length - levels);
    *out_stored = page->body;
    *out_is_compressed = scratch->compressor && (!is_v2 || values.length);
    if (!*out_is_compressed)
        return STATUS_OK;
    buf_clear(&scratch->packed);
    buf_put(&scratch->packed, page->body.data, levels);
    TRY(compress(scratch, leaf, page->encoding == ENCODING_PLAIN, values, page->values_at, err));
    *out_is_compressed = !is_v2 || scratch->packed.length < page->body.length;
    if (*out_is_compressed)
        *out_stored = span_of(scratch->packed.data, scratch->packed.length);
    return STATUS_OK;
}

/* Compresses the page and makes its header in scratch->header. */
static enum status seal_page(struct page_scratch *scratch, struct leaf *leaf,
                             const struct raw_page *page, struct span *out_stored,
                             struct error *err)
{
    struct span stored;
    bool is_compressed;
    int type = page->is_dictionary_page ? PARQUET_PAGE_DICTIONARY : leaf_page_type(leaf);
    if (page->body.length > INT32_MAX || page->levels > INT32_MAX)
        return too_large(leaf, page->body.length, err);
    TRY(pack_page(scratch, leaf, page, type == PARQUET_PAGE_DATA_V2, &stored, &is_compressed, err));
    if (stored.length > INT32_MAX)
        return too_large(leaf, stored.length, err);
    buf_clear(&scratch->header);
    put_page_header(&scratch->header, type, page, stored, is_compressed);
    if (scratch->header.failed)
        return no_memory(leaf, err);
    leaf->record.plain_bytes += scratch->header.length + page->body.length;
    leaf->record.stored_bytes += scratch->header.length + stored.length;
    *out_stored = stored;
    return STATUS_OK;
}

enum status leaf_seal_dictionary(struct page_scratch *scratch, struct leaf *leaf, struct error *err)
{
    struct span stored;
    struct raw_page page = {.is_dictionary_page = true,
                            .encoding = ENCODING_PLAIN,
                            .body =
                                span_of(leaf->dictionary.page.data, leaf->dictionary.page.length),
                            .levels = leaf->dictionary.count};
    TRY(seal_page(scratch, leaf, &page, &stored, err));
    buf_put(&leaf->front, scratch->header.data, scratch->header.length);
    buf_put(&leaf->front, stored.data, stored.length);
    return leaf->front.failed ? no_memory(leaf, err) : STATUS_OK;
}

/* ---- values ---- */

/* Bytes of values as they would be stored. */
static enum status measure(struct page_scratch *scratch, struct leaf *leaf, bool is_plain,
                           const struct buf *values, size_t *out_bytes, struct error *err)
{
    if (values->failed)
        return no_memory(leaf, err);
    *out_bytes = values->length;
    if (!scratch->compressor)
        return STATUS_OK;
    buf_clear(&scratch->packed);
    TRY(compress(scratch, leaf, is_plain, span_of(values->data, values->length), 0, err));
    *out_bytes = scratch->packed.length;
    return STATUS_OK;
}

static void encode_page_indices(const struct leaf *leaf, unsigned width, struct buf *out)
{
    encode_indices(out, (const uint32_t *)(const void *)leaf->indices.data,
                   leaf->indices.length / sizeof(uint32_t), width);
}

/* Wide indices may take whole bytes: the compressor then sees values and finds what repeats, which
 * packed ones hide. It pays where they repeat, not where they are as random as they look: so one
 * page in some is made both ways. */
static enum status index_width(struct page_scratch *scratch, struct leaf *leaf, uint32_t greatest,
                               unsigned *out_width, struct error *err)
{
    enum { WIDE = 5, JUDGED_PAGES = 32 };
    unsigned width = greatest ? bits_needed(greatest) : 1, whole = (width + 7) / 8 * 8;
    size_t packed, loose;
    *out_width = width;
    if (width < WIDE || width == whole || !scratch->compressor)
        return STATUS_OK;
    if (leaf->wide_pages++ % JUDGED_PAGES == 0)
        leaf->judged_widths = 0;
    if (!(leaf->judged_widths >> width & 1)) {
        buf_clear(&scratch->trial);
        encode_page_indices(leaf, width, &scratch->trial);
        TRY(measure(scratch, leaf, false, &scratch->trial, &packed, err));
        buf_clear(&scratch->trial);
        encode_page_indices(leaf, whole, &scratch->trial);
        TRY(measure(scratch, leaf, false, &scratch->trial, &loose, err));
        leaf->judged_widths |= UINT32_C(1) << width;
        leaf->loose_widths &= ~(UINT32_C(1) << width);
        leaf->loose_widths |= (uint32_t)(loose < packed) << width;
    }
    *out_width = leaf->loose_widths >> width & 1 ? whole : width;
    return STATUS_OK;
}

static enum status put_indices(struct page_scratch *scratch, struct leaf *leaf,
                               struct extent *extent, struct error *err)
{
    uint32_t greatest;
    unsigned width;
    if (!look_at_entries(leaf, extent, &greatest))
        return no_memory(leaf, err);
    TRY(index_width(scratch, leaf, greatest, &width, err));
    buf_put_byte(&scratch->body, (uint8_t)width);
    encode_page_indices(leaf, width, &scratch->body);
    return STATUS_OK;
}

static enum status measure_encoding(struct page_scratch *scratch, struct leaf *leaf, int encoding,
                                    size_t *out_bytes, struct error *err)
{
    buf_clear(&scratch->body);
    encode_values(&scratch->body, encoding, leaf->type, leaf->width, (uint64_t)leaf->page_values,
                  span_of(leaf->plain.data, leaf->plain.length));
    return measure(scratch, leaf, encoding == ENCODING_PLAIN, &scratch->body, out_bytes, err);
}

/* How many times its size the dictionary will have at the chunk's end: as if half as many entries
 * came with each further value as came with those of the second half of this page. */
static double dictionary_growth(const struct leaf *leaf, double pages)
{
    const uint32_t *indices = (const uint32_t *)(const void *)leaf->indices.data;
    size_t half = leaf->indices.length / sizeof *indices / 2;
    uint32_t known = 0;
    for (size_t i = 0; i < half; i++) /* entries are numbered as they come */
        known = indices[i] >= known ? indices[i] + 1 : known;
    double fresh = (double)(leaf->dictionary.count - known) * 2 * (pages - 1) / 2;
    return 1 + fresh / leaf->dictionary.count;
}

enum status leaf_measure_dictionary(struct page_scratch *scratch, struct leaf *leaf, bool *out_pays,
                                    struct error *err)
{
    const uint32_t *indices = (const uint32_t *)(const void *)leaf->indices.data;
    struct extent ignored = {0};
    size_t entry_bytes, index_bytes, plain_bytes;
    double pages = (double)leaf->options->row_group_rows / (double)leaf->page_rows;
    leaf->is_measured = true;
    buf_clear(&scratch->body);
    TRY(put_indices(scratch, leaf, &ignored, err));
    TRY(measure(scratch, leaf, false, &scratch->body, &index_bytes, err));
    TRY(measure(scratch, leaf, false, &leaf->dictionary.page, &entry_bytes, err));
    buf_clear(&scratch->body);
    for (int64_t i = 0; i < leaf->page_values; i++) {
        struct span value = dictionary_get(&leaf->dictionary, indices[i]);
        buf_put_short(&scratch->body, value.data, value.length);
    }
    TRY(measure(scratch, leaf, true, &scratch->body, &plain_bytes, err));
    *out_pays = (double)entry_bytes * dictionary_growth(leaf, pages) + (double)index_bytes * pages <
                (double)plain_bytes * pages;
    return STATUS_OK;
}

/* The encoding of a chunk's pages without a dictionary: the one that makes the first of them
 * smallest, PLAIN unless another saves one byte in WORTH. */
static enum status choose_encoding(struct page_scratch *scratch, struct leaf *leaf,
                                   struct error *err)
{
    enum { WORTH = 32 };
    static const int candidates[] = {ENCODING_RLE, ENCODING_DELTA_BINARY_PACKED,
                                     ENCODING_DELTA_LENGTH_BYTE_ARRAY, ENCODING_DELTA_BYTE_ARRAY,
                                     ENCODING_BYTE_STREAM_SPLIT};
    size_t least, bytes;
    leaf->encoding = ENCODING_PLAIN;
    TRY(measure_encoding(scratch, leaf, ENCODING_PLAIN, &least, err));
    least -= least / WORTH;
    for (size_t i = 0; i < COUNT_OF(candidates); i++) {
        bool is_floats = leaf->type == PARQUET_FLOAT || leaf->type == PARQUET_DOUBLE;
        if (!encoding_fits(candidates[i], leaf->type) ||
            (candidates[i] == ENCODING_BYTE_STREAM_SPLIT && !is_floats)) /* read by few */
            continue;
        TRY(measure_encoding(scratch, leaf, candidates[i], &bytes, err));
        if (bytes >= least)
            continue;
        least = bytes;
        leaf->encoding = candidates[i];
    }
    leaf->is_encoding_chosen = true;
    return STATUS_OK;
}

/* ---- bounds ---- */

enum status leaf_keep_bounds(struct page_scratch *scratch, const struct leaf *leaf,
                             const struct extent *extent, struct page_record *page,
                             struct error *err)
{
    bool is_text = leaf->field->type == ARROW_UTF8;
    struct span max;
    struct span min = bound_lower(extent->min, BOUND_BYTES_MAX, is_text);
    buf_clear(&scratch->header);
    if (!bound_upper(extent->max, BOUND_BYTES_MAX, is_text, &scratch->header, &max))
        return STATUS_OK; /* one without the other helps nobody */
    uint8_t *copy = arena_alloc(&scratch->arena, min.length + max.length + 1);
    if (!copy)
        return no_memory(leaf, err);
    if (min.length)
        memcpy(copy, min.data, min.length);
    if (max.length)
        memcpy(copy + min.length, max.data, max.length);
    page->min = span_of(copy, min.length);
    page->max = span_of(copy + min.length, max.length);
    page->has_bounds = true;
    if (leaf->type == PARQUET_FLOAT || leaf->type == PARQUET_DOUBLE) {
        bound_fix_zero(leaf->order, copy, true);
        bound_fix_zero(leaf->order, copy + min.length, false);
    }
    return STATUS_OK;
}

/* ---- the page at hand ---- */

static void page_clear(struct leaf *leaf)
{
    leaf->chunk_rows += leaf->page_rows;
    buf_clear(&leaf->rep);
    buf_clear(&leaf->def);
    buf_clear(&leaf->indices);
    leaf->row_source = NULL;
    buf_clear(&leaf->plain);
    leaf->page_rows = leaf->page_levels = leaf->page_values = 0;
    leaf->page_nans = leaf->page_unencoded = 0;
}

/* What the chunk's record learns from the page at hand. */
static void count_page(struct leaf *leaf, const struct page_record *page, int encoding)
{
    struct chunk_record *record = &leaf->record;
    record->level_count += leaf->page_levels;
    record->null_count += page->null_count;
    record->nan_count += leaf->page_nans;
    record->unencoded_bytes += leaf->page_unencoded;
    record->pages_of[encoding]++;
    if (page->null_count == 0)
        record->def_histogram[leaf->max_def] += leaf->page_levels;
    else
        count_levels(record->def_histogram, &leaf->def, leaf->max_def);
    if (leaf->max_rep == 1) { /* a row begins with a zero, and no other is one */
        record->rep_histogram[0] += leaf->page_rows;
        record->rep_histogram[1] += leaf->page_levels - leaf->page_rows;
    } else {
        count_levels(record->rep_histogram, &leaf->rep, leaf->max_rep);
    }
}

/* The body of the page at hand, in scratch->body. */
static enum status make_page(struct page_scratch *scratch, struct leaf *leaf, bool is_dictionary,
                             struct extent *extent, struct raw_page *out_page, struct error *err)
{
    struct span plain = span_of(leaf->plain.data, leaf->plain.length);
    bool is_v2 = leaf_page_type(leaf) == PARQUET_PAGE_DATA_V2;
    *out_page = (struct raw_page){.encoding = ENCODING_RLE_DICTIONARY,
                                  .levels = leaf->page_levels,
                                  .nulls = leaf->page_levels - leaf->page_values,
                                  .rows = leaf->page_rows};
    if (!is_dictionary) {
        if (!leaf->is_encoding_chosen && leaf->page_values)
            TRY(choose_encoding(scratch, leaf, err));
        out_page->encoding = leaf->page_values ? leaf->encoding : ENCODING_PLAIN;
    }
    buf_clear(&scratch->body);
    size_t rep = put_level_section(&scratch->body, &leaf->rep, leaf->max_rep, !is_v2);
    size_t def = put_level_section(&scratch->body, &leaf->def, leaf->max_def, !is_v2);
    if (is_dictionary) {
        TRY(put_indices(scratch, leaf, extent, err));
    } else {
        extent_add_plain(leaf->order, leaf->width, extent, plain);
        encode_values(&scratch->body, out_page->encoding, leaf->type, leaf->width,
                      (uint64_t)leaf->page_values, plain);
    }
    if (scratch->body.failed)
        return no_memory(leaf, err);
    out_page->body = span_of(scratch->body.data, scratch->body.length);
    if (is_v2) {
        out_page->rep_bytes = rep;
        out_page->def_bytes = def;
    } else {
        out_page->values_at = rep + def;
    }
    return STATUS_OK;
}

/* Hashes of values that no dictionary keeps, for the chunk's Bloom filter. */
static void hash_values(struct leaf *leaf)
{
    struct span left = span_of(leaf->plain.data, leaf->plain.length);
    while (left.length) {
        struct span value = next_plain(&left, leaf->width);
        uint64_t hash = hash_xxh64(value.data, value.length);
        buf_put(&leaf->hashes, &hash, sizeof hash);
    }
}

enum status leaf_finish_page(struct page_scratch *scratch, struct leaf *leaf, struct error *err)
{
    /* Nothing but nulls: PLAIN says that without a dictionary. */
    bool is_dictionary = !leaf->is_plain && leaf->dictionary.count > 0;
    struct extent extent = {0};
    struct span stored;
    struct raw_page raw;
    struct page_record page = {.offset = leaf->chunk.length,
                               .first_row = leaf->chunk_rows,
                               .null_count = leaf->page_levels - leaf->page_values,
                               .nan_count = leaf->page_nans,
                               .unencoded_bytes = leaf->page_unencoded,
                               .has_values = leaf->page_values > 0};
    TRY(make_page(scratch, leaf, is_dictionary, &extent, &raw, err));
    TRY(seal_page(scratch, leaf, &raw, &stored, err));
    page.bytes = (uint32_t)(scratch->header.length + stored.length);
    buf_put(&leaf->chunk, scratch->header.data, scratch->header.length);
    buf_put(&leaf->chunk, stored.data, stored.length);
    if (leaf->has_bloom && !is_dictionary)
        hash_values(leaf);
    if (extent.is_set)
        TRY(leaf_keep_bounds(scratch, leaf, &extent, &page, err));
    extent_merge(leaf->order, &leaf->chunk_extent, &extent);
    buf_put(&leaf->pages, &page, sizeof page);
    count_page(leaf, &page, raw.encoding);
    page_clear(leaf);
    if (leaf->chunk.failed || leaf->pages.failed || leaf->hashes.failed ||
        leaf->chunk_extent.min.failed || leaf->chunk_extent.max.failed)
        return no_memory(leaf, err);
    return STATUS_OK;
}
