/* SPDX-License-Identifier: Apache-2.0
 *
 * Leaves: pages and chunks.
 *
 * A chunk starts with a dictionary, unless the chunk before found that it does not pay. After
 * SAMPLE_VALUES values more than half of which are new, or where the dictionary passes its bound,
 * the rest is PLAIN. A page is of one kind; only a page that was not finished is turned from
 * indices into values.
 */
#include "format/parquet/parquet_internal.h"
#include "format/parquet/thrift_internal.h"

/* UNPACK_FACTOR: a page of indices stays one where its values would take so many times a page. */
enum { SAMPLE_VALUES = 2048, STEP_ROWS = 1024, UNPACK_FACTOR = 16 };

enum status leaf_init(struct leaf *leaf, const struct parquet_options *options, struct error *err)
{
    leaf->options = options;
    dictionary_init(&leaf->dictionary, leaf->width != 0);
    leaf->is_plain = leaf->type == PARQUET_BOOLEAN || options->dictionary_bytes_max == 0;
    leaf->is_unlucky = leaf->is_plain;
    leaf->record.def_histogram = mem_alloc_zero((size_t)leaf->max_def + 1, sizeof(int64_t));
    leaf->record.rep_histogram = mem_alloc_zero((size_t)leaf->max_rep + 1, sizeof(int64_t));
    if (!leaf->record.def_histogram || !leaf->record.rep_histogram)
        return error_set(err, STATUS_NO_MEMORY, "parquet: no memory for a column");
    return STATUS_OK;
}

void leaf_deinit(struct leaf *leaf)
{
    struct buf *bufs[] = {&leaf->rep,   &leaf->def,   &leaf->indices, &leaf->plain,
                          &leaf->chunk, &leaf->pages, &leaf->remap,   &leaf->used};
    for (size_t i = 0; i < COUNT_OF(bufs); i++)
        buf_deinit(bufs[i]);
    dictionary_deinit(&leaf->dictionary);
    owned_extent_deinit(&leaf->chunk_extent);
    owned_extent_deinit(&leaf->file_extent);
    mem_free(leaf->record.def_histogram);
    mem_free(leaf->record.rep_histogram);
}

size_t leaf_bytes(const struct leaf *leaf)
{
    return leaf->chunk.length + leaf->dictionary.page.length + leaf->plain.length +
           leaf->indices.length / 2 + leaf->def.length / 8;
}

static enum status no_memory(const struct leaf *leaf, struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "parquet: column %.100s: no memory for a page",
                     leaf->field->name);
}

/* ---- from dictionary to PLAIN ---- */

/* The indices of the page at hand become values again. */
static void unpack_page(struct leaf *leaf)
{
    for (size_t at = 0; at < leaf->indices.length; at += sizeof(uint32_t)) {
        struct span value = dictionary_get(&leaf->dictionary, get_le32(leaf->indices.data + at));
        if (!leaf->width)
            buf_put_le32(&leaf->plain, (uint32_t)value.length);
        buf_put(&leaf->plain, value.data, value.length);
    }
    buf_clear(&leaf->indices);
    buf_clear(&leaf->used);
    leaf->is_plain = true;
}

static void give_up_dictionary(struct leaf *leaf)
{
    unpack_page(leaf);
    if (leaf->record.dictionary_pages == 0) {
        dictionary_clear(&leaf->dictionary);
        leaf->is_unlucky = true;
    }
}

/* Whether more than half of the values so far were new. */
static void judge_dictionary(struct leaf *leaf)
{
    if (leaf->is_plain || leaf->is_sampled)
        return;
    bool is_huge = (uint64_t)leaf->page_unencoded / UNPACK_FACTOR > leaf->options->page_bytes;
    if ((int64_t)leaf->dictionary.count * 2 > leaf->chunk_values && !is_huge)
        give_up_dictionary(leaf);
    else if (leaf->chunk_values >= SAMPLE_VALUES)
        leaf->is_sampled = true;
}

/* ---- pages ---- */

static void put_level_section(struct buf *body, const struct buf *levels, uint8_t max)
{
    if (!max)
        return;
    size_t at = body->length;
    buf_put_le32(body, 0);
    encode_levels(body, levels->data, levels->length, bits_needed(max));
    if (!body->failed)
        put_le32(body->data + at, (uint32_t)(body->length - at - 4));
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

/* What the page uses of the dictionary: its extent, and the greatest index. */
static uint32_t look_at_entries(const struct leaf *leaf, struct extent *extent)
{
    const uint32_t *used = (const uint32_t *)(const void *)leaf->used.data;
    uint32_t greatest = 0;
    for (size_t i = 0; i < leaf->used.length / sizeof *used; i++) {
        greatest = used[i] > greatest ? used[i] : greatest;
        extent_add(leaf->order, extent, dictionary_get(&leaf->dictionary, used[i]));
    }
    return greatest;
}

/* Wide indices take whole bytes: the compressor then sees values, and finds what repeats. */
static unsigned index_width(uint32_t greatest)
{
    unsigned width = bits_needed(greatest);
    if (width >= 5)
        width = (width + 7) / 8 * 8;
    return width ? width : 1;
}

/* The values of the page at hand, appended to `body`. */
static void put_values(const struct leaf *leaf, struct buf *body, bool is_dictionary,
                       struct extent *extent)
{
    if (is_dictionary) {
        unsigned width = index_width(look_at_entries(leaf, extent));
        buf_put_byte(body, (uint8_t)width);
        encode_indices(body, (const uint32_t *)(const void *)leaf->indices.data,
                       leaf->indices.length / sizeof(uint32_t), width);
    } else {
        struct span plain = span_of(leaf->plain.data, leaf->plain.length);
        extent_add_plain(leaf->order, leaf->width, extent, plain);
        if (leaf->type == PARQUET_BOOLEAN)
            encode_bits(body, leaf->plain.data, leaf->plain.length);
        else
            buf_put(body, plain.data, plain.length);
    }
}

static void put_page_header(struct buf *out, bool is_dictionary_page, bool is_plain,
                            int64_t value_count, size_t plain_bytes, struct span stored)
{
    struct thrift thrift = thrift_to(out);
    thrift_i32(&thrift, 1, is_dictionary_page ? PAGE_DICTIONARY : PAGE_DATA);
    thrift_i32(&thrift, 2, (int32_t)plain_bytes);
    thrift_i32(&thrift, 3, (int32_t)stored.length);
    thrift_i32(&thrift, 4, (int32_t)crc32_gzip(0, stored.data, stored.length));
    thrift_struct(&thrift, is_dictionary_page ? 7 : 5);
    thrift_i32(&thrift, 1, (int32_t)value_count);
    thrift_i32(&thrift, 2, is_plain ? ENCODING_PLAIN : ENCODING_RLE_DICTIONARY);
    if (!is_dictionary_page) {
        thrift_i32(&thrift, 3, ENCODING_RLE);
        thrift_i32(&thrift, 4, ENCODING_RLE);
    }
    thrift_end(&thrift);
    thrift_end(&thrift);
}

/* Compresses `body` and makes its header in writer->header. */
static enum status seal_page(struct parquet_writer *writer, struct leaf *leaf, struct span body,
                             bool is_dictionary_page, bool is_plain, int64_t value_count,
                             struct span *out_stored, struct error *err)
{
    if (body.length > INT32_MAX || value_count > INT32_MAX)
        return error_set(err, STATUS_TOO_LARGE, "parquet: column %.100s: a page of %zu bytes",
                         leaf->field->name, body.length);
    struct span stored = body;
    if (writer->compressor) {
        buf_clear(&writer->packed);
        TRY(codec_compress(writer->compressor, body, &writer->packed, err));
        stored = span_of(writer->packed.data, writer->packed.length);
        if (stored.length > INT32_MAX)
            return error_set(err, STATUS_TOO_LARGE, "parquet: column %.100s: a page of %zu bytes",
                             leaf->field->name, stored.length);
    }
    buf_clear(&writer->header);
    put_page_header(&writer->header, is_dictionary_page, is_plain, value_count, body.length,
                    stored);
    if (writer->header.failed)
        return no_memory(leaf, err);
    leaf->record.plain_bytes += writer->header.length + body.length;
    leaf->record.stored_bytes += writer->header.length + stored.length;
    *out_stored = stored;
    return STATUS_OK;
}

/* A copy that lives as long as the writer, which keeps it for the page index. */
static enum status keep_bounds(struct parquet_writer *writer, const struct leaf *leaf,
                               const struct extent *extent, struct page_record *page,
                               struct error *err)
{
    bool is_text = leaf->field->type == ARROW_UTF8;
    struct span max;
    struct span min = bound_lower(extent->min, BOUND_BYTES_MAX, is_text);
    buf_clear(&writer->header);
    if (!bound_upper(extent->max, BOUND_BYTES_MAX, is_text, &writer->header, &max))
        return STATUS_OK; /* one without the other helps nobody */
    uint8_t *copy = arena_alloc(&writer->arena, min.length + max.length + 1);
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

static void page_clear(struct leaf *leaf)
{
    leaf->chunk_rows += leaf->page_rows;
    buf_clear(&leaf->rep);
    buf_clear(&leaf->def);
    buf_clear(&leaf->indices);
    buf_clear(&leaf->used);
    buf_clear(&leaf->plain);
    leaf->page_rows = leaf->page_levels = leaf->page_values = 0;
    leaf->page_nans = leaf->page_unencoded = 0;
}

/* What the chunk's record learns from the page at hand. */
static void count_page(struct leaf *leaf, const struct page_record *page, bool is_dictionary)
{
    struct chunk_record *record = &leaf->record;
    record->level_count += leaf->page_levels;
    record->null_count += page->null_count;
    record->nan_count += leaf->page_nans;
    record->unencoded_bytes += leaf->page_unencoded;
    record->dictionary_pages += is_dictionary;
    record->plain_pages += !is_dictionary;
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

static enum status finish_page(struct parquet_writer *writer, struct leaf *leaf, struct error *err)
{
    judge_dictionary(leaf);
    if (leaf->plain.failed) /* half unpacked: no values to look at */
        return no_memory(leaf, err);
    /* Nothing but nulls: PLAIN says that without a dictionary. */
    bool is_dictionary = !leaf->is_plain && leaf->dictionary.count > 0;
    struct extent extent = {0};
    struct span stored;
    struct page_record page = {.offset = leaf->chunk.length,
                               .first_row = leaf->chunk_rows,
                               .null_count = leaf->page_levels - leaf->page_values,
                               .nan_count = leaf->page_nans,
                               .unencoded_bytes = leaf->page_unencoded,
                               .has_values = leaf->page_values > 0};
    buf_clear(&writer->body);
    put_level_section(&writer->body, &leaf->rep, leaf->max_rep);
    put_level_section(&writer->body, &leaf->def, leaf->max_def);
    put_values(leaf, &writer->body, is_dictionary, &extent);
    if (writer->body.failed)
        return no_memory(leaf, err);
    TRY(seal_page(writer, leaf, span_of(writer->body.data, writer->body.length), false,
                  !is_dictionary, leaf->page_levels, &stored, err));
    page.bytes = (uint32_t)(writer->header.length + stored.length);
    buf_put(&leaf->chunk, writer->header.data, writer->header.length);
    buf_put(&leaf->chunk, stored.data, stored.length);
    if (extent.is_set)
        TRY(keep_bounds(writer, leaf, &extent, &page, err));
    extent_merge(leaf->order, &leaf->chunk_extent, &extent);
    buf_put(&leaf->pages, &page, sizeof page);
    count_page(leaf, &page, is_dictionary);
    page_clear(leaf);
    if (leaf->chunk.failed || leaf->pages.failed || leaf->chunk_extent.min.failed ||
        leaf->chunk_extent.max.failed)
        return no_memory(leaf, err);
    return STATUS_OK;
}

/* ---- rows ---- */

/* Rows that fit the page: not so many that it would become much larger than it should. */
static int64_t step_rows(const struct leaf *leaf, const struct arrow_array *column, int64_t first,
                         int64_t count)
{
    int64_t step = count < STEP_ROWS ? count : STEP_ROWS;
    int64_t left = leaf->options->page_rows - leaf->page_rows;
    step = step < left ? step : left;
    while (step > 1 && leaf_row_bytes(leaf, column, first, step) > leaf->options->page_bytes)
        step /= 2;
    return step;
}

enum status leaf_write(struct parquet_writer *writer, struct leaf *leaf,
                       const struct arrow_array *column, int64_t first, int64_t count,
                       struct error *err)
{
    for (int64_t end = first + count; first < end;) {
        int64_t step = step_rows(leaf, column, first, end - first);
        TRY(leaf_shred(leaf, column, first, step, err));
        first += step;
        if (leaf->chunk_values >= SAMPLE_VALUES)
            judge_dictionary(leaf);
        bool is_over =
            !leaf->is_plain && leaf->dictionary.page.length > leaf->options->dictionary_bytes_max;
        if (is_over || leaf->page_rows >= leaf->options->page_rows ||
            leaf->plain.length + leaf->indices.length >= leaf->options->page_bytes)
            TRY(finish_page(writer, leaf, err));
        if (is_over)
            leaf->is_plain = true;
    }
    return STATUS_OK;
}

/* ---- chunks ---- */

static enum status put_dictionary_page(struct parquet_writer *writer, struct leaf *leaf,
                                       struct error *err)
{
    struct span body = span_of(leaf->dictionary.page.data, leaf->dictionary.page.length), stored;
    TRY(seal_page(writer, leaf, body, true, true, leaf->dictionary.count, &stored, err));
    TRY(writer_put(writer, writer->header.data, writer->header.length, err));
    return writer_put(writer, stored.data, stored.length, err);
}

/* Least and greatest of the chunk, cut where they are long. A chunk with a NaN has none: readers
 * differ in where they order it. */
static enum status keep_chunk_bounds(struct parquet_writer *writer, struct leaf *leaf,
                                     struct chunk_record *record, struct error *err)
{
    struct page_record bounds = {0};
    if (!leaf->chunk_extent.is_set || record->nan_count)
        return STATUS_OK;
    struct extent extent = {
        .is_set = true,
        .min = span_of(leaf->chunk_extent.min.data, leaf->chunk_extent.min.length),
        .max = span_of(leaf->chunk_extent.max.data, leaf->chunk_extent.max.length)};
    TRY(keep_bounds(writer, leaf, &extent, &bounds, err));
    record->has_bounds = bounds.has_bounds;
    record->min = bounds.min;
    record->max = bounds.max;
    record->is_min_exact = extent.min.length <= BOUND_BYTES_MAX;
    record->is_max_exact = extent.max.length <= BOUND_BYTES_MAX;
    return STATUS_OK;
}

static enum status keep_record(struct parquet_writer *writer, struct leaf *leaf,
                               struct chunk_record *record, struct error *err)
{
    size_t def_bytes = ((size_t)leaf->max_def + 1) * sizeof(int64_t);
    size_t rep_bytes = ((size_t)leaf->max_rep + 1) * sizeof(int64_t);
    record->def_histogram = arena_alloc(&writer->arena, def_bytes);
    record->rep_histogram = arena_alloc(&writer->arena, rep_bytes);
    record->pages = arena_alloc(&writer->arena, leaf->pages.length);
    if (!record->def_histogram || !record->rep_histogram || !record->pages)
        return no_memory(leaf, err);
    memcpy(record->def_histogram, leaf->record.def_histogram, def_bytes);
    memcpy(record->rep_histogram, leaf->record.rep_histogram, rep_bytes);
    memcpy(record->pages, leaf->pages.data, leaf->pages.length);
    record->page_count = leaf->pages.length / sizeof *record->pages;
    return keep_chunk_bounds(writer, leaf, record, err);
}

/* The file's sums, for the manifest. */
static void count_chunk(struct leaf *leaf, const struct chunk_record *record)
{
    struct extent extent = {
        .is_set = leaf->chunk_extent.is_set,
        .min = span_of(leaf->chunk_extent.min.data, leaf->chunk_extent.min.length),
        .max = span_of(leaf->chunk_extent.max.data, leaf->chunk_extent.max.length)};
    extent_merge(leaf->order, &leaf->file_extent, &extent);
    leaf->metrics.column_bytes += (int64_t)record->stored_bytes;
    leaf->metrics.value_count += record->level_count;
    leaf->metrics.null_count += record->null_count;
    leaf->metrics.nan_count += record->nan_count;
}

static void chunk_clear(struct leaf *leaf)
{
    int64_t *def = leaf->record.def_histogram, *rep = leaf->record.rep_histogram;
    memset(def, 0, ((size_t)leaf->max_def + 1) * sizeof *def);
    memset(rep, 0, ((size_t)leaf->max_rep + 1) * sizeof *rep);
    leaf->record = (struct chunk_record){.def_histogram = def, .rep_histogram = rep};
    buf_clear(&leaf->chunk);
    buf_clear(&leaf->pages);
    dictionary_clear(&leaf->dictionary);
    owned_extent_clear(&leaf->chunk_extent);
    leaf->remap_source = NULL; /* it names entries of the dictionary that was */
    leaf->chunk_rows = leaf->chunk_values = 0;
    leaf->is_plain = leaf->is_unlucky;
    leaf->is_sampled = false;
}

enum status leaf_finish_chunk(struct parquet_writer *writer, struct leaf *leaf,
                              struct chunk_record *out_record, struct error *err)
{
    if (leaf->page_rows)
        TRY(finish_page(writer, leaf, err));
    uint64_t offset = writer->offset;
    if (leaf->record.dictionary_pages)
        TRY(put_dictionary_page(writer, leaf, err));
    uint64_t data_offset = writer->offset;
    TRY(writer_put(writer, leaf->chunk.data, leaf->chunk.length, err));
    struct chunk_record record = leaf->record;
    record.offset = offset;
    record.data_offset = data_offset;
    record.has_dictionary = leaf->record.dictionary_pages > 0;
    TRY(keep_record(writer, leaf, &record, err));
    count_chunk(leaf, &record);
    if (leaf->file_extent.min.failed || leaf->file_extent.max.failed)
        return no_memory(leaf, err);
    chunk_clear(leaf);
    *out_record = record;
    return STATUS_OK;
}
