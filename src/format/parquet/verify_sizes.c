/* SPDX-License-Identifier: Apache-2.0
 *
 * Size statistics: bytes of byte arrays as they are, levels by their height, of chunks in the
 * footer, of pages in the page indexes. Source: parquet.thrift (SizeStatistics, ColumnIndex,
 * OffsetIndex).
 */
#include <inttypes.h>

#include "format/parquet/thrift_internal.h"
#include "format/parquet/verify_internal.h"

static enum status out_of_room(const struct checker *checker)
{
    return error_set(checker->err, STATUS_LIMIT, "parquet: column %.100s: no room for sizes",
                     checker->about->path);
}

/* A list of numbers, into `out` if that is asked for. */
static bool read_list(struct checker *checker, struct cursor *in, int type,
                      struct parquet_histogram *out)
{
    int inner;
    size_t count = thrift_read_list(in, type, &inner);
    int64_t *counts = arena_alloc_zero(&checker->arena, count + 1, sizeof *counts);
    for (size_t i = 0; counts && i < count; i++)
        counts[i] = thrift_read_i64(in, inner);
    *out = (struct parquet_histogram){.counts = counts, .count = counts ? count : 0};
    return counts != NULL;
}

struct wanted_list {
    int id; /* of its field */
    struct parquet_histogram *out;
};

/* Lists of an index; nothing may stand behind it. */
static enum status read_lists(struct checker *checker, struct span bytes, uint64_t at,
                              const struct wanted_list *wanted, size_t count)
{
    struct cursor in = cursor_of(bytes.data, bytes.length);
    int id = 0, type;
    if (!bytes.length)
        return STATUS_OK;
    while ((type = thrift_read_field(&in, &id)) != 0) {
        size_t which = 0;
        while (which < count && wanted[which].id != id)
            which++;
        if (which == count)
            thrift_skip(&in, type);
        else if (!read_list(checker, &in, type, wanted[which].out))
            return out_of_room(checker);
    }
    if (in.failed)
        return checker_fault(checker, at, "a damaged page index");
    if (cursor_left(&in))
        return checker_fault(checker, at + bytes.length - cursor_left(&in),
                             "a page index that ends before its length says");
    return STATUS_OK;
}

/* As many as there are pages, each `levels` long. */
static enum status check_length(const struct checker *checker, uint64_t at,
                                const struct parquet_histogram *list, size_t levels)
{
    if (list->count && list->count != checker->page_count * levels)
        return checker_wrong_count(checker, at, "sizes in the page index",
                                   (int64_t)(checker->page_count * levels), (int64_t)list->count);
    return STATUS_OK;
}

enum status verify_load_sizes(struct checker *checker)
{
    struct page_sizes *said = &checker->said_sizes;
    const struct wanted_list of_offsets[] = {{2, &said->unencoded_bytes}};
    const struct wanted_list of_index[] = {{6, &said->rep}, {7, &said->def}};
    uint64_t offsets_at = checker->chunk->offset_index_offset;
    uint64_t index_at = checker->chunk->column_index_offset;
    size_t rep_levels = (size_t)checker->about->max_rep + 1;
    size_t def_levels = (size_t)checker->about->max_def + 1;
    TRY(read_lists(checker, checker->offsets.bytes, offsets_at, of_offsets, COUNT_OF(of_offsets)));
    TRY(read_lists(checker, checker->index.bytes, index_at, of_index, COUNT_OF(of_index)));
    TRY(check_length(checker, offsets_at, &said->unencoded_bytes, 1));
    TRY(check_length(checker, index_at, &said->rep, rep_levels));
    return check_length(checker, index_at, &said->def, def_levels);
}

static void count_levels(const uint8_t *levels, size_t count, int64_t out[LEVEL_COUNT])
{
    if (!levels)
        out[0] += (int64_t)count;
    for (size_t i = 0; levels && i < count; i++)
        out[levels[i]]++;
}

/* `said`: as many as there are levels, or nothing. */
static enum status check_histogram(const struct checker *checker, uint64_t at, const char *what,
                                   const int64_t *said, size_t levels,
                                   const int64_t is[LEVEL_COUNT])
{
    for (size_t i = 0; said && i < levels; i++)
        if (said[i] != is[i])
            return chunk_fault(checker->file, checker->bytes.group, checker->bytes.leaf, at,
                               STATUS_CORRUPT, checker->err,
                               "%" PRId64 " %s levels of %zu, not %" PRId64, is[i], what, i,
                               said[i]);
    return STATUS_OK;
}

/* Of DELTA_BYTE_ARRAY Arrow's C++ library counts what is not in the value before. */
static bool counts_suffixes(const struct checker *checker, int encoding)
{
    static const char prefix[] = "parquet-cpp-arrow";
    const char *by = checker->file->created_by;
    return encoding == ENCODING_DELTA_BYTE_ARRAY && by &&
           strncmp(by, prefix, sizeof prefix - 1) == 0;
}

enum status verify_page_sizes(struct checker *checker, const struct leaf_reader *reader,
                              const struct page *page, size_t levels)
{
    const struct page_sizes *said = &checker->said_sizes;
    struct sizes sizes = {0}, *sum = &checker->sizes;
    size_t max_def = checker->about->max_def, max_rep = checker->about->max_rep;
    bool is_bytes = checker->about->physical == PARQUET_BYTE_ARRAY;
    const int32_t *ends = (const int32_t *)(const void *)reader->values.ends.data;
    count_levels(max_def ? reader->def.data + reader->level_count : NULL, levels, sizes.def);
    count_levels(max_rep ? reader->rep.data + reader->level_count : NULL, levels, sizes.rep);
    if (is_bytes)
        sizes.unencoded_bytes = ends[reader->slot_count + levels] - ends[reader->slot_count];
    if (said->unencoded_bytes.count && is_bytes && !counts_suffixes(checker, page->encoding) &&
        said->unencoded_bytes.counts[checker->page] != sizes.unencoded_bytes)
        return checker_wrong_count(
            checker, page->offset, "bytes of values in a page, by the offset index",
            sizes.unencoded_bytes, said->unencoded_bytes.counts[checker->page]);
    if (said->rep.count)
        TRY(check_histogram(checker, page->offset, "repetition",
                            said->rep.counts + checker->page * (max_rep + 1), max_rep + 1,
                            sizes.rep));
    if (said->def.count)
        TRY(check_histogram(checker, page->offset, "definition",
                            said->def.counts + checker->page * (max_def + 1), max_def + 1,
                            sizes.def));
    sum->unencoded_bytes += sizes.unencoded_bytes;
    for (size_t i = 0; i < LEVEL_COUNT; i++) {
        sum->def[i] += sizes.def[i];
        sum->rep[i] += sizes.rep[i];
    }
    return STATUS_OK;
}

static bool has_suffixes(const struct checker *checker)
{
    for (size_t i = 0; i < checker->facts.encoding_count; i++)
        if (counts_suffixes(checker, checker->facts.encodings[i]))
            return true;
    return false;
}

static enum status check_chunk_histogram(const struct checker *checker, const char *what,
                                         const struct parquet_histogram *said, size_t levels,
                                         const int64_t is[LEVEL_COUNT])
{
    uint64_t at = checker->facts.at;
    if (said->count && said->count != levels)
        return checker_wrong_count(checker, at, "levels to count", (int64_t)levels,
                                   (int64_t)said->count);
    return check_histogram(checker, at, what, said->count ? said->counts : NULL, levels, is);
}

enum status verify_chunk_sizes(const struct checker *checker)
{
    const struct parquet_chunk_facts *facts = &checker->facts;
    const struct sizes *sizes = &checker->sizes;
    if (facts->unencoded_bytes >= 0 && checker->about->physical == PARQUET_BYTE_ARRAY &&
        !has_suffixes(checker) && facts->unencoded_bytes != sizes->unencoded_bytes)
        return checker_wrong_count(checker, facts->at, "bytes of values", sizes->unencoded_bytes,
                                   facts->unencoded_bytes);
    TRY(check_chunk_histogram(checker, "repetition", &facts->rep,
                              (size_t)checker->about->max_rep + 1, sizes->rep));
    return check_chunk_histogram(checker, "definition", &facts->def,
                                 (size_t)checker->about->max_def + 1, sizes->def);
}
