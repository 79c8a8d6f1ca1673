/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics beside the places of bounds: their form, counts of nulls and of values that differ,
 * the order of a dictionary. Source: parquet.thrift (Statistics, ColumnIndex,
 * DictionaryPageHeader).
 */
#include <math.h>
#include <stdlib.h>

#include "format/parquet/bloom_internal.h"
#include "format/parquet/thrift_internal.h"
#include "format/parquet/verify_internal.h"

bool verify_read_statistics(struct span bytes, struct page_statistics *out_statistics)
{
    struct cursor in = cursor_of(bytes.data, bytes.length);
    struct page_statistics of = {.distinct_count = -1};
    int id = 0, type;
    while ((type = thrift_read_field(&in, &id)) != 0) {
        struct span *bound = id == 1   ? &of.old_max
                             : id == 2 ? &of.old_min
                             : id == 5 ? &of.said.max
                             : id == 6 ? &of.said.min
                                       : NULL;
        if (bound)
            *bound = thrift_read_binary(&in, type);
        else if (id == 3)
            of.said.null_count = thrift_read_i64(&in, type);
        else if (id == 4)
            of.distinct_count = thrift_read_i64(&in, type);
        else
            thrift_skip(&in, type);
        of.said.has_null_count |= id == 3;
        of.said.has_max |= id == 5;
        of.said.has_min |= id == 6;
    }
    *out_statistics = of;
    return !in.failed;
}

/* ---- bounds ---- */

/* Bytes without an order of numbers may be cut, as text is. */
static bool may_be_cut(const struct parquet_leaf *leaf, bool is_exact)
{
    return leaf->physical == PARQUET_FIXED && !is_exact && value_class_of(leaf) == CLASS_BYTES &&
           leaf->kind != PARQUET_KIND_FLOAT16 && leaf->kind != PARQUET_KIND_INTERVAL;
}

static enum status check_bound(const struct checker *checker, uint64_t at, struct span bound,
                               bool is_exact, int64_t value_count, int64_t nan_count)
{
    const struct parquet_leaf *leaf = checker->about;
    uint32_t width = leaf_physical_width(leaf);
    struct parquet_value value;
    bool is_of_nothing = bound.length == 0 && value_count == 0;
    if (width && bound.length != width && !is_of_nothing &&
        (bound.length > width || !may_be_cut(leaf, is_exact)))
        return chunk_fault(checker->file, checker->bytes.group, checker->bytes.leaf, at,
                           STATUS_CORRUPT, checker->err,
                           "a bound of %zu bytes, where values have %u", bound.length, width);
    if (value_count && !nan_count && value_class_of(leaf) == CLASS_REAL &&
        value_load(leaf, bound, &value) && isnan(value.real))
        return checker_fault(checker, at, "NaN as a bound of numbers");
    return STATUS_OK;
}

enum status verify_bounds(const struct checker *checker, uint64_t at,
                          const struct parquet_statistics *said, int64_t value_count,
                          int64_t nan_count)
{
    if (said->has_min)
        TRY(check_bound(checker, at, said->min, said->is_min_exact, value_count, nan_count));
    if (said->has_max)
        TRY(check_bound(checker, at, said->max, said->is_max_exact, value_count, nan_count));
    return STATUS_OK;
}

enum status verify_old_bounds(const struct checker *checker, uint64_t at, struct span min,
                              struct span max)
{
    const struct parquet_statistics said = {
        .min = min, .max = max, .has_min = min.data != NULL, .has_max = max.data != NULL};
    return verify_bounds(checker, at, &said, 0, 0);
}

/* ---- nulls ---- */

/* Nodes beside each other have rising leaves. */
static const struct parquet_node *find_leaf(const struct parquet_node *nodes, uint32_t count,
                                            uint32_t leaf)
{
    while (count > 1) {
        uint32_t half = count / 2;
        bool is_behind = nodes[half].first_leaf <= leaf;
        nodes += is_behind ? half : 0;
        count = is_behind ? count - half : half;
    }
    return nodes->children ? find_leaf(nodes->children, nodes->field->child_count, leaf) : nodes;
}

void verify_find_leaf(struct checker *checker)
{
    const struct parquet_file *file = checker->file;
    const struct parquet_node *node =
        find_leaf(file->nodes, file->schema.field_count, checker->bytes.leaf);
    checker->slot_def = node->slot_def;
    checker->is_optional = node->is_optional;
}

struct null_counts verify_count_nulls(const struct checker *checker, const uint8_t *def,
                                      size_t levels)
{
    struct null_counts nulls = {0};
    unsigned max_def = checker->about->max_def;
    for (size_t i = 0; def && i < levels; i++) {
        nulls.levels += def[i] < max_def;
        nulls.slots += def[i] < max_def && def[i] >= checker->slot_def;
        nulls.own += checker->is_optional && def[i] + 1u == max_def;
    }
    return nulls;
}

enum status verify_null_count(const struct checker *checker, uint64_t at, int64_t said,
                              const struct null_counts *nulls)
{
    bool has_lists = checker->about->max_rep > 0;
    bool is_right =
        said == nulls->levels || (has_lists && (said == nulls->slots || said == nulls->own));
    return is_right ? STATUS_OK : checker_wrong_count(checker, at, "nulls", nulls->levels, said);
}

/* ---- values that differ ---- */

static int compare_hashes(const void *a, const void *b)
{
    uint64_t left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return (left > right) - (left < right);
}

/* Leaves one of each. */
static size_t drop_equal_hashes(struct buf *hashes)
{
    uint8_t *data = hashes->data;
    size_t count = hashes->length / sizeof(uint64_t), kept = 0;
    if (count)
        qsort(data, count, sizeof(uint64_t), compare_hashes);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || memcmp(data + i * 8, data + (kept - 1) * 8, 8) != 0)
            memmove(data + kept++ * 8, data + i * 8, 8);
    buf_truncate(hashes, kept * sizeof(uint64_t));
    return kept;
}

void verify_add_distinct(struct checker *checker, struct span plain)
{
    enum { HASHES_MAX = 16 << 20 };
    struct buf *hashes = &checker->hashes;
    uint64_t hash = hash_xxh64(plain.data, plain.length);
    if (hashes->length / sizeof hash == HASHES_MAX && drop_equal_hashes(hashes) > HASHES_MAX / 2)
        checker->facts.distinct_count = -1;
    else
        buf_put(hashes, &hash, sizeof hash);
}

/* Zeros of either sign are one number to some writers, as are all NaN. */
enum status verify_distinct_count(struct checker *checker)
{
    int64_t said = checker->facts.distinct_count;
    bool is_real = value_class_of(checker->about) == CLASS_REAL;
    if (said < 0)
        return STATUS_OK;
    TRY(buf_status(&checker->hashes, "parquet: values that differ", checker->err));
    int64_t is = (int64_t)drop_equal_hashes(&checker->hashes);
    return (is_real ? said <= is : said == is)
               ? STATUS_OK
               : checker_wrong_count(checker, checker->facts.at, "values that differ", is, said);
}

/* ---- dictionaries ---- */

static struct span entry_at(const struct leaf_reader *reader, size_t i)
{
    const struct values *entries = &reader->dictionary;
    const int32_t *ends = (const int32_t *)(const void *)entries->ends.data;
    if (reader->physical_width)
        return span_of(entries->data.data + i * reader->physical_width, reader->physical_width);
    size_t bytes = (size_t)(ends[i + 1] - ends[i]);
    return span_of(bytes ? entries->data.data + ends[i] : (const uint8_t *)"", bytes);
}

enum status verify_dictionary(struct checker *checker, const struct leaf_reader *reader)
{
    const struct parquet_leaf *leaf = checker->about;
    struct parquet_value last, value;
    if (checker->has_seen_dictionary || !reader->has_dictionary)
        return STATUS_OK;
    checker->has_seen_dictionary = true;
    if (!reader->walk.has_sorted_dictionary || !leaf_has_bounds(leaf))
        return STATUS_OK;
    for (size_t i = 0; i < reader->dictionary_page_count; i++, last = value) {
        if (!value_load(leaf, entry_at(reader, i), &value))
            return STATUS_OK;
        if (i && value_order(leaf, &last, &value) == ORDER_GREATER)
            return chunk_fault(checker->file, checker->bytes.group, checker->bytes.leaf,
                               reader->walk.dictionary_at, STATUS_CORRUPT, checker->err,
                               "a dictionary that is said to be sorted, and entry %zu is not", i);
    }
    return STATUS_OK;
}
