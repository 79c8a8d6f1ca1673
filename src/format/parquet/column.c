/* SPDX-License-Identifier: Apache-2.0
 *
 * Leaves: when pages and chunks begin and end.
 *
 * A chunk starts with a dictionary, unless the chunk before found that it does not pay. After
 * SAMPLE_VALUES values too many of which are new, or where the dictionary passes its bound, the
 * rest is PLAIN; of values of a fixed width the first page is measured both ways, too. A page is of
 * one kind; only a page that was not finished is turned from indices into values.
 */
#include "format/parquet/bloom_internal.h"
#include "format/parquet/parquet_internal.h"

/* UNPACK_FACTOR: a page of indices stays one where its values would take so many times a page. */
enum { SAMPLE_VALUES = 2048, STEP_ROWS = 1024, UNPACK_FACTOR = 16 };

enum status leaf_init(struct leaf *leaf, const struct parquet_options *options, struct error *err)
{
    leaf->options = options;
    leaf->row_values = 1;
    dictionary_init(&leaf->dictionary, leaf->width != 0);
    leaf->record.def_histogram = mem_alloc_zero((size_t)leaf->max_def + 1, sizeof(int64_t));
    leaf->record.rep_histogram = mem_alloc_zero((size_t)leaf->max_rep + 1, sizeof(int64_t));
    if (!leaf->record.def_histogram || !leaf->record.rep_histogram)
        return error_set(err, STATUS_NO_MEMORY, "parquet: no memory for a column");
    return STATUS_OK;
}

/* A chunk begins with a dictionary unless it cannot, or that is known not to pay. */
static void begin_chunk(struct leaf *leaf)
{
    leaf->is_plain = leaf->is_unlucky;
    leaf->row_misses = 0;
    leaf->has_other_rows = false;
    leaf->is_sampled = false;
    leaf->is_encoding_chosen = !leaf->is_encoding_measured;
}

void leaf_begin(struct leaf *leaf)
{
    if (leaf->options->compression == PARQUET_ZSTD && leaf->options->own_zstd_frames)
        leaf->shape = leaf->type == PARQUET_INT64        ? ZSTD_WORDS
                      : leaf->type == PARQUET_BYTE_ARRAY ? ZSTD_IDS
                                                         : ZSTD_ANY;
    leaf->is_unlucky = leaf->type == PARQUET_BOOLEAN || leaf->options->dictionary_bytes_max == 0 ||
                       leaf->has_own_encoding;
    begin_chunk(leaf);
}

void leaf_deinit(struct leaf *leaf)
{
    struct buf *bufs[] = {&leaf->rep,    &leaf->def,   &leaf->indices, &leaf->plain,
                          &leaf->chunk,  &leaf->pages, &leaf->remap,   &leaf->used,
                          &leaf->hashes, &leaf->bloom, &leaf->front};
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
    leaf->is_plain = true;
}

static void give_up_dictionary(struct leaf *leaf)
{
    unpack_page(leaf);
    if (leaf->record.pages_of[ENCODING_RLE_DICTIONARY] == 0) {
        dictionary_clear(&leaf->dictionary);
        leaf->is_unlucky = true;
    }
}

/* Whether more than half of the values so far were new; of those of a fixed width, which are
 * measured later, nearly all. */
static void judge_dictionary(struct leaf *leaf)
{
    if (leaf->is_plain || leaf->is_sampled)
        return;
    bool is_huge = (uint64_t)leaf->page_unencoded / UNPACK_FACTOR > leaf->options->page_bytes;
    int64_t most = leaf->width ? leaf->chunk_values / 10 * 9 : leaf->chunk_values / 2;
    if (leaf->dictionary.count > most && !is_huge)
        give_up_dictionary(leaf);
    else if (leaf->chunk_values >= SAMPLE_VALUES)
        leaf->is_sampled = true;
}

static enum status finish_page(struct page_scratch *scratch, struct leaf *leaf, struct error *err)
{
    bool pays = true;
    judge_dictionary(leaf);
    if (!leaf->is_plain && leaf->width && !leaf->is_measured && leaf->page_values)
        TRY(leaf_measure_dictionary(scratch, leaf, &pays, err));
    if (!pays)
        give_up_dictionary(leaf);
    if (leaf->plain.failed) /* half unpacked: no values to look at */
        return no_memory(leaf, err);
    return leaf_finish_page(scratch, leaf, err);
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

enum status leaf_write(struct page_scratch *scratch, struct leaf *leaf,
                       const struct arrow_array *column, int64_t first, int64_t count,
                       struct error *err)
{
    for (int64_t end = first + count; first < end;) {
        int64_t step = step_rows(leaf, column, first, end - first);
        if (!leaf->is_plain &&
            leaf_row_bytes(leaf, column, first, step) > leaf->options->dictionary_bytes_max) {
            if (leaf->page_rows) /* it would be past its bound: not worth a copy */
                TRY(finish_page(scratch, leaf, err));
            leaf->is_plain = true;
        }
        TRY(leaf_shred(leaf, column, first, step, err));
        first += step;
        if (leaf->chunk_values >= SAMPLE_VALUES)
            judge_dictionary(leaf);
        bool is_over =
            !leaf->is_plain && leaf->dictionary.page.length > leaf->options->dictionary_bytes_max;
        if (is_over || leaf->page_rows >= leaf->options->page_rows ||
            leaf->plain.length + leaf->indices.length >= leaf->options->page_bytes)
            TRY(finish_page(scratch, leaf, err));
        if (is_over)
            leaf->is_plain = true;
    }
    return STATUS_OK;
}

/* ---- chunks ---- */

/* Least and greatest of the chunk, cut where they are long. A chunk with a NaN has none: readers
 * differ in where they order it. */
static enum status keep_chunk_bounds(struct page_scratch *scratch, struct leaf *leaf,
                                     struct chunk_record *record, struct error *err)
{
    struct page_record bounds = {0};
    if (!leaf->chunk_extent.is_set || record->nan_count)
        return STATUS_OK;
    struct extent extent = {
        .is_set = true,
        .min = span_of(leaf->chunk_extent.min.data, leaf->chunk_extent.min.length),
        .max = span_of(leaf->chunk_extent.max.data, leaf->chunk_extent.max.length)};
    TRY(leaf_keep_bounds(scratch, leaf, &extent, &bounds, err));
    record->has_bounds = bounds.has_bounds;
    record->min = bounds.min;
    record->max = bounds.max;
    record->is_min_exact = extent.min.length <= BOUND_BYTES_MAX;
    record->is_max_exact = extent.max.length <= BOUND_BYTES_MAX;
    return STATUS_OK;
}

static enum status keep_record(struct page_scratch *scratch, struct leaf *leaf,
                               struct chunk_record *record, struct error *err)
{
    size_t def_bytes = ((size_t)leaf->max_def + 1) * sizeof(int64_t);
    size_t rep_bytes = ((size_t)leaf->max_rep + 1) * sizeof(int64_t);
    record->def_histogram = arena_alloc(&scratch->arena, def_bytes);
    record->rep_histogram = arena_alloc(&scratch->arena, rep_bytes);
    record->pages = arena_alloc(&scratch->arena, leaf->pages.length);
    if (!record->def_histogram || !record->rep_histogram || !record->pages)
        return no_memory(leaf, err);
    memcpy(record->def_histogram, leaf->record.def_histogram, def_bytes);
    memcpy(record->rep_histogram, leaf->record.rep_histogram, rep_bytes);
    memcpy(record->pages, leaf->pages.data, leaf->pages.length);
    record->page_count = leaf->pages.length / sizeof *record->pages;
    return keep_chunk_bounds(scratch, leaf, record, err);
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
    leaf->weight = record->plain_bytes + (uint64_t)record->unencoded_bytes +
                   (uint64_t)record->level_count * sizeof(uint64_t);
}

static void chunk_clear(struct leaf *leaf)
{
    int64_t *def = leaf->record.def_histogram, *rep = leaf->record.rep_histogram;
    memset(def, 0, ((size_t)leaf->max_def + 1) * sizeof *def);
    memset(rep, 0, ((size_t)leaf->max_rep + 1) * sizeof *rep);
    leaf->record = (struct chunk_record){.def_histogram = def, .rep_histogram = rep};
    buf_clear(&leaf->chunk);
    buf_deinit(&leaf->front); /* dictionaries come and go */
    buf_clear(&leaf->pages);
    buf_clear(&leaf->hashes);
    dictionary_clear(&leaf->dictionary);
    owned_extent_clear(&leaf->chunk_extent);
    leaf_forget_sources(leaf); /* they name entries of the dictionary that was */
    leaf->chunk_rows = leaf->chunk_values = 0;
    begin_chunk(leaf);
}

/* Zeros of both signs are equal, and who asks for one of them finds the other. */
static void add_other_zero(const struct leaf *leaf, uint8_t *filter, size_t bytes)
{
    const struct arrow_origin *origin = leaf->field->origin;
    bool is_half = origin && origin->kind == ARROW_ORIGIN_HALF;
    if (leaf->type != PARQUET_FLOAT && leaf->type != PARQUET_DOUBLE && !is_half)
        return;
    uint8_t zero[sizeof(double)] = {0}, negative[sizeof(double)] = {0};
    negative[leaf->width - 1] = 0x80;
    uint64_t hashes[] = {hash_xxh64(zero, leaf->width), hash_xxh64(negative, leaf->width)};
    for (size_t i = 0; i < COUNT_OF(hashes); i++)
        if (bloom_has(filter, bytes, hashes[i]))
            bloom_add(filter, bytes, hashes[1 - i]);
}

/* The chunk's Bloom filter in leaf->bloom: of the dictionary's entries and of what is PLAIN. It is
 * made for as many distinct values as there are hashes, and folded to what it needs. */
static enum status make_bloom(struct leaf *leaf, struct error *err)
{
    bool has_dictionary = leaf->record.pages_of[ENCODING_RLE_DICTIONARY] > 0;
    size_t hashes = leaf->hashes.length / sizeof(uint64_t);
    size_t entries = has_dictionary ? leaf->dictionary.count : 0;
    buf_clear(&leaf->bloom);
    if (hashes + entries == 0)
        return STATUS_OK;
    size_t bytes = bloom_bytes(hashes + entries);
    uint8_t *filter = buf_extend(&leaf->bloom, bytes);
    if (!filter)
        return no_memory(leaf, err);
    memset(filter, 0, bytes);
    for (size_t i = 0; i < hashes; i++)
        bloom_add(filter, bytes, get_le64(leaf->hashes.data + i * sizeof(uint64_t)));
    for (size_t i = 0; i < entries; i++) {
        struct span value = dictionary_get(&leaf->dictionary, (uint32_t)i);
        bloom_add(filter, bytes, hash_xxh64(value.data, value.length));
    }
    add_other_zero(leaf, filter, bytes);
    buf_truncate(&leaf->bloom, bloom_fold(filter, bytes));
    return STATUS_OK;
}

enum status leaf_seal_chunk(struct page_scratch *scratch, struct leaf *leaf, struct error *err)
{
    if (leaf->page_rows)
        TRY(finish_page(scratch, leaf, err));
    if (leaf->record.pages_of[ENCODING_RLE_DICTIONARY] > 0)
        TRY(leaf_seal_dictionary(scratch, leaf, err));
    return leaf->has_bloom ? make_bloom(leaf, err) : STATUS_OK;
}

enum status leaf_put_chunk(struct parquet_writer *writer, struct leaf *leaf,
                           struct chunk_record *out_record, struct error *err)
{
    struct chunk_record record = leaf->record;
    record.has_dictionary = leaf->front.length > 0;
    record.offset = writer->offset;
    TRY(writer_put(writer, leaf->front.data, leaf->front.length, err));
    record.data_offset = writer->offset;
    TRY(writer_put(writer, leaf->chunk.data, leaf->chunk.length, err));
    TRY(keep_record(writer->scratches, leaf, &record, err));
    count_chunk(leaf, &record);
    if (leaf->file_extent.min.failed || leaf->file_extent.max.failed)
        return no_memory(leaf, err);
    chunk_clear(leaf);
    *out_record = record;
    return STATUS_OK;
}
