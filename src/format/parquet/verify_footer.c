/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes, places and encodings that the footer says of chunks and row groups. Source:
 * parquet.thrift (ColumnMetaData, RowGroup).
 */
#include <inttypes.h>

#include "format/parquet/verify_internal.h"

enum { ENCODINGS = 16 };

/* What the headers of a chunk's pages add up to. */
struct page_sums {
    int64_t plain_bytes, stored_bytes; /* with headers */
    int64_t pages[PARQUET_PAGE_TYPES][ENCODINGS];
    int64_t dictionary_at, data_at; /* the first ones; -1: none */
};

static enum status add_page(void *context, const struct parquet_page_facts *page, struct error *err)
{
    struct page_sums *sums = context;
    UNUSED(err);
    bool is_dictionary = page->type == PARQUET_PAGE_DICTIONARY;
    bool is_data = parquet_page_is_data(page->type);
    sums->plain_bytes += (int64_t)page->header_bytes + page->plain_bytes;
    sums->stored_bytes += (int64_t)page->header_bytes + page->stored_bytes;
    if (is_dictionary && sums->dictionary_at < 0)
        sums->dictionary_at = (int64_t)page->offset;
    if (is_data && sums->data_at < 0)
        sums->data_at = (int64_t)page->offset;
    if ((is_data || is_dictionary) && page->encoding >= 0 && page->encoding < ENCODINGS)
        sums->pages[page->type][page->encoding]++;
    return STATUS_OK;
}

/* No reader uses it: 0 by the format's advice. parquet-java has the first page of data, ClickHouse
 * and Polars the end, where Polars has a copy of the metadata; with a dictionary Polars takes its
 * end from the first page of data. */
static bool is_file_offset(const struct checker *checker)
{
    const struct parquet_chunk_facts *facts = &checker->facts;
    int64_t start = (int64_t)checker->chunk->offset, at = facts->file_offset, data_end;
    if (at <= 0 || at == start || at == facts->data_offset || at == start + facts->stored_bytes)
        return true;
    return !__builtin_add_overflow(facts->data_offset, facts->stored_bytes, &data_end) &&
           at == data_end;
}

static enum status check_sizes(const struct checker *checker, const struct page_sums *sums)
{
    const struct parquet_chunk_facts *facts = &checker->facts;
    int64_t start = (int64_t)checker->chunk->offset;
    if (facts->stored_bytes != sums->stored_bytes)
        return checker_wrong_count(checker, facts->at, "is its size", sums->stored_bytes,
                                   facts->stored_bytes);
    if (facts->plain_bytes != sums->plain_bytes)
        return checker_wrong_count(checker, facts->at, "is its size, not compressed",
                                   sums->plain_bytes, facts->plain_bytes);
    if (sums->dictionary_at >= 0 && facts->dictionary_offset > 0 &&
        facts->dictionary_offset != sums->dictionary_at)
        return checker_wrong_count(checker, facts->at, "is where its dictionary is",
                                   sums->dictionary_at, facts->dictionary_offset);
    if (sums->data_at >= 0 && facts->data_offset != sums->data_at &&
        (facts->dictionary_offset > 0 || facts->data_offset != start))
        return checker_wrong_count(checker, facts->at, "is where its first data page is",
                                   sums->data_at, facts->data_offset);
    return is_file_offset(checker) ? STATUS_OK
                                   : checker_wrong_count(checker, facts->at, "is where it begins",
                                                         start, facts->file_offset);
}

static bool is_in_list(const struct parquet_chunk_facts *facts, int32_t encoding)
{
    for (size_t i = 0; i < facts->encoding_count; i++)
        if (facts->encodings[i] == encoding)
            return true;
    return false;
}

static bool is_dictionary_encoding(int32_t encoding)
{
    return encoding == ENCODING_PLAIN_DICTIONARY || encoding == ENCODING_RLE_DICTIONARY;
}

/* Both names of a dictionary's encoding are one: writers mix them. */
static int64_t pages_of(const struct page_sums *sums, int32_t type, int32_t encoding)
{
    bool is_either = type == PARQUET_PAGE_DICTIONARY
                         ? encoding == ENCODING_PLAIN || encoding == ENCODING_PLAIN_DICTIONARY
                         : is_dictionary_encoding(encoding);
    if (type < 0 || type >= PARQUET_PAGE_TYPES || encoding < 0 || encoding >= ENCODINGS)
        return 0;
    if (!is_either)
        return sums->pages[type][encoding];
    return sums->pages[type][ENCODING_PLAIN_DICTIONARY] +
           sums->pages[type]
                      [type == PARQUET_PAGE_DICTIONARY ? ENCODING_PLAIN : ENCODING_RLE_DICTIONARY];
}

/* Every encoding of pages of data is in the list; DuckDB has not that of the dictionary's own page.
 * What else is there can only be that of levels, or of dictionaries, which writers name by habit.
 */
static enum status check_encodings(const struct checker *checker, const struct page_sums *sums)
{
    const struct parquet_chunk_facts *facts = &checker->facts;
    for (size_t i = 0; i < facts->encoding_count; i++)
        if (facts->encodings[i] < 0 || facts->encodings[i] >= ENCODING_COUNT)
            return checker_fault(checker, facts->at, "an encoding that is none");
    for (int32_t encoding = 0; encoding < ENCODINGS; encoding++) {
        int64_t pages = 0;
        for (int32_t type = 0; type < PARQUET_PAGE_TYPES; type++)
            pages += type == PARQUET_PAGE_DICTIONARY ? 0 : sums->pages[type][encoding];
        bool has_other_name =
            is_dictionary_encoding(encoding) && (is_in_list(facts, ENCODING_PLAIN_DICTIONARY) ||
                                                 is_in_list(facts, ENCODING_RLE_DICTIONARY));
        if (pages && !is_in_list(facts, encoding) && !has_other_name)
            return chunk_fault(checker->file, checker->bytes.group, checker->bytes.leaf, facts->at,
                               STATUS_CORRUPT, checker->err,
                               "pages in %s, which is not among its encodings",
                               parquet_encoding_name(encoding));
        bool is_habit = encoding == ENCODING_PLAIN || encoding == ENCODING_RLE ||
                        encoding == ENCODING_BIT_PACKED || is_dictionary_encoding(encoding);
        if (!pages && !is_habit && is_in_list(facts, encoding))
            return chunk_fault(checker->file, checker->bytes.group, checker->bytes.leaf, facts->at,
                               STATUS_CORRUPT, checker->err,
                               "no pages in %s, which is among its encodings",
                               parquet_encoding_name(encoding));
    }
    return STATUS_OK;
}

/* Counts of pages by kind and encoding, which tell whether all of a chunk is in a dictionary. */
static enum status check_encoding_stats(const struct checker *checker, const struct page_sums *sums)
{
    const struct parquet_chunk_facts *facts = &checker->facts;
    int64_t said = 0, is = 0;
    if (!facts->encoding_stat_count)
        return STATUS_OK;
    for (size_t i = 0; i < facts->encoding_stat_count; i++) {
        const struct parquet_encoding_stat *of = &facts->encoding_stats[i];
        int64_t pages = pages_of(sums, of->page_type, of->encoding);
        if (of->page_type == PARQUET_PAGE_DATA &&
            pages == 0) /* so pyarrow calls those of version 2 */
            pages = pages_of(sums, PARQUET_PAGE_DATA_V2, of->encoding);
        if (pages != of->count)
            return chunk_fault(checker->file, checker->bytes.group, checker->bytes.leaf, facts->at,
                               STATUS_CORRUPT, checker->err,
                               "%" PRId64 " pages of kind %d in %s, not %" PRId64, pages,
                               of->page_type, parquet_encoding_name(of->encoding), of->count);
        said += of->count;
    }
    for (int type = 0; type < PARQUET_PAGE_TYPES; type++)
        for (int encoding = 0; encoding < ENCODINGS; encoding++)
            is += sums->pages[type][encoding];
    return said == is
               ? STATUS_OK
               : checker_wrong_count(checker, facts->at, "pages counted by encoding", is, said);
}

static enum status check_path(const struct checker *checker)
{
    const struct parquet_chunk_facts *facts = &checker->facts;
    const char *at = checker->about->path;
    size_t left = strlen(at);
    for (size_t i = 0; i < facts->path_length; i++) {
        struct span name = facts->path[i];
        bool has_more = i + 1 < facts->path_length;
        if (name.length > left || memcmp(at, name.data, name.length) != 0 ||
            at[name.length] != (has_more ? '.' : '\0'))
            return checker_fault(checker, facts->at, "its path is not the schema's");
        at += name.length + has_more;
        left -= name.length + has_more;
    }
    return facts->path_length ? STATUS_OK : checker_fault(checker, facts->at, "no path");
}

/* What the footer says lies somewhere, and the reader passed over, because it cannot. */
static enum status check_ranges(const struct checker *checker)
{
    const struct parquet_chunk_facts *facts = &checker->facts;
    const struct parquet_chunk *chunk = checker->chunk;
    const struct {
        const char *what;
        int64_t offset, bytes;
        bool is_kept;
    } ranges[] = {
        {"a column index", facts->column_index_offset, facts->column_index_bytes,
         chunk->column_index_bytes > 0},
        {"an offset index", facts->offset_index_offset, facts->offset_index_bytes,
         chunk->offset_index_bytes > 0},
        {"a Bloom filter", facts->bloom_offset, facts->bloom_bytes, chunk->bloom_offset > 0},
    };
    for (size_t i = 0; i < COUNT_OF(ranges); i++) {
        bool is_said = ranges[i].offset > 0 || ranges[i].bytes > 0;
        if (is_said && !ranges[i].is_kept)
            return chunk_fault(checker->file, checker->bytes.group, checker->bytes.leaf, facts->at,
                               STATUS_CORRUPT, checker->err,
                               "%s of %" PRId64 " bytes at %" PRId64 ", which is no place",
                               ranges[i].what, ranges[i].bytes, ranges[i].offset);
    }
    return STATUS_OK;
}

enum status verify_chunk_facts(struct checker *checker)
{
    struct page_sums sums = {.dictionary_at = -1, .data_at = -1};
    TRY(check_path(checker));
    if (checker->facts.has_place_below_0)
        return checker_fault(checker, checker->facts.at, "a place or a length below 0");
    TRY(check_ranges(checker));
    TRY(pages_visit(checker->file, &checker->bytes, add_page, &sums, checker->err));
    TRY(check_sizes(checker, &sums));
    TRY(check_encodings(checker, &sums));
    return check_encoding_stats(checker, &sums);
}

/* ---- row groups ---- */

static enum status group_fault(size_t group, uint64_t at, const char *what, int64_t is,
                               int64_t said, struct error *err)
{
    error_set(err, STATUS_CORRUPT,
              "parquet: row group %zu, byte %" PRIu64 ": %" PRId64 " is %s, not %" PRId64, group,
              at, is, what, said);
    return error_at(err, at);
}

static enum status check_group(const struct parquet_file *file, size_t group, struct arena *arena,
                               struct error *err)
{
    struct parquet_group_facts facts;
    struct parquet_chunk_facts chunk, first = {.data_offset = -1};
    int64_t plain_bytes = 0, stored_bytes = 0;
    TRY(parquet_group_facts_read(file, group, arena, &facts, err));
    if (facts.has_number_below_0) {
        error_set(err, STATUS_CORRUPT,
                  "parquet: row group %zu, byte %" PRIu64
                  ": a place, a length or an ordinal below 0",
                  group, facts.at);
        return error_at(err, facts.at);
    }
    for (uint32_t leaf = 0; leaf < file->leaf_count; leaf++) {
        TRY(parquet_chunk_facts_read(file, group, leaf, arena, &chunk, err));
        plain_bytes += chunk.plain_bytes; /* of pages that were counted */
        stored_bytes += chunk.stored_bytes;
        first = leaf ? first : chunk;
    }
    if (facts.plain_bytes != plain_bytes)
        return group_fault(group, facts.at, "its size, not compressed", plain_bytes,
                           facts.plain_bytes, err);
    if (facts.stored_bytes >= 0 && facts.stored_bytes != stored_bytes)
        return group_fault(group, facts.at, "its size", stored_bytes, facts.stored_bytes, err);
    if (facts.ordinal >= 0 && facts.ordinal != (int64_t)group)
        return group_fault(group, facts.at, "its ordinal", (int64_t)group, facts.ordinal, err);
    if (file->leaf_count && facts.file_offset > 0 && facts.file_offset != first.data_offset &&
        (uint64_t)facts.file_offset != file->groups[group].chunks[0].offset)
        return group_fault(group, facts.at, "where it begins",
                           (int64_t)file->groups[group].chunks[0].offset, facts.file_offset, err);
    return STATUS_OK;
}

enum status verify_group_facts(const struct parquet_file *file, size_t group, struct error *err)
{
    struct arena arena;
    arena_init(&arena, 0); /* the footer it is made of is bounded */
    enum status status = check_group(file, group, &arena, err);
    arena_deinit(&arena);
    return status;
}
