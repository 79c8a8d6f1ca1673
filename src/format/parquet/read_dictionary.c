/* SPDX-License-Identifier: Apache-2.0
 *
 * A dictionary of which only the front is expanded. Writers add an entry when they first meet a
 * value, so that pages in the middle of a chunk refer to entries in front of them alone; a few of
 * them are read with as much of the dictionary as they refer to. Byte arrays that are not kept in
 * their dictionary are then taken from where they stand in the page.
 */
#include "format/parquet/reader_internal.h"

enum { BLOCK = 128 << 10 }; /* zstd expands no less at once (RFC 8878, 3.1.1.2.4) */

bool leaf_defers_dictionary(const struct leaf_reader *reader)
{
    int32_t codec = reader->walk.chunk->codec;
    return !reader->plan->is_whole && !reader->watch &&
           (codec == CODEC_ID_ZSTD || codec == CODEC_ID_UNCOMPRESSED);
}

static bool is_in_place(const struct leaf_reader *reader)
{
    return reader->walk.defers_dictionary && !reader->physical_width && !reader->keeps_dictionary;
}

enum status leaf_defer_dictionary(struct leaf_reader *reader, const struct page *page,
                                  struct error *err)
{
    TRY(leaf_check_dictionary(reader, page, page->plain_bytes, err));
    reader->deferred = *page;
    reader->is_deferred = true;
    reader->has_dictionary = true;
    reader->dictionary_page_count = page->level_count;
    reader->dictionary_count = 0;
    return STATUS_OK;
}

/* Bytes in which so many entries are likely to stand, if the others are not much shorter. */
static size_t likely_bytes(const struct page *page, size_t entries)
{
    uint64_t even = (uint64_t)page->plain_bytes * entries / page->level_count;
    uint64_t blocks = (even + even / 16) / BLOCK + 1;
    return blocks * BLOCK < page->plain_bytes ? (size_t)blocks * BLOCK : page->plain_bytes;
}

/* Byte arrays that stand within `bytes` whole, at most `most`; `starts`: where, or NULL. */
static size_t find_entries(struct span bytes, int32_t *starts, size_t most)
{
    size_t at = 0, count = 0;
    for (; count < most && bytes.length - at >= 4; count++) {
        size_t length = get_le32(bytes.data + at);
        if (length > bytes.length - at - 4)
            break;
        if (starts)
            starts[count] = (int32_t)at;
        at += 4 + length;
    }
    return count;
}

static enum status read_in_place(struct leaf_reader *reader, const struct page *page,
                                 struct error *err)
{
    struct buf *starts = &reader->dictionary.ends;
    size_t count = page->level_count;
    buf_clear(starts);
    int32_t *places =
        (int32_t *)(void *)pool_extend(reader->walk.pool, starts, (count + 1) * sizeof *places);
    if (!places)
        return page_fault(&reader->walk, page->offset, STATUS_LIMIT, err, "no room for %zu entries",
                          count);
    reader->entries = page->body;
    reader->dictionary_count = find_entries(page->body, places, count);
    return STATUS_OK;
}

/* The dictionary as if it ended with the last entry within its first `bytes`. */
static enum status read_front(struct leaf_reader *reader, size_t bytes, struct error *err)
{
    struct page page = reader->deferred;
    TRY(page_expand_front(&reader->walk, &page, bytes, &reader->front, err));
    if (is_in_place(reader))
        return read_in_place(reader, &page, err);
    if (bytes < page.plain_bytes)
        page.level_count = reader->physical_width
                               ? size_min(page.level_count, bytes / reader->physical_width)
                               : find_entries(page.body, NULL, page.level_count);
    buf_clear(&reader->dictionary.data);
    buf_truncate(&reader->dictionary.ends, reader->width ? 0 : sizeof(int32_t));
    TRY(leaf_read_dictionary(reader, &page, err));
    reader->dictionary_page_count = reader->deferred.level_count;
    return STATUS_OK;
}

/* Of what was deferred, as much as has so many entries, if it has them. */
static enum status read_deferred(struct leaf_reader *reader, size_t entries, struct error *err)
{
    size_t whole = reader->deferred.plain_bytes;
    size_t bytes = reader->dictionary_count ? whole : likely_bytes(&reader->deferred, entries);
    if (bytes < whole) {
        /* What is wrong with it, the whole of it tells. */
        enum status status = read_front(reader, bytes, err);
        if (status == STATUS_OK && entries <= reader->dictionary_count)
            return STATUS_OK;
    }
    reader->is_deferred = false;
    return read_front(reader, whole, err);
}

enum status leaf_need_entries(struct leaf_reader *reader, size_t entries, struct error *err)
{
    if (entries <= reader->dictionary_count)
        return STATUS_OK;
    if (reader->is_deferred)
        TRY(read_deferred(reader, entries, err));
    if (entries > reader->dictionary_count) /* it said that it has them */
        return page_fault(&reader->walk, reader->deferred.offset, STATUS_CORRUPT, err,
                          "a value that ends behind the page");
    return STATUS_OK;
}

bool leaf_gather_in_place(struct leaf_reader *reader, const uint32_t *indices, int32_t *ends,
                          size_t count)
{
    struct buf *data = &reader->values.data;
    const int32_t *starts = (const int32_t *)(const void *)reader->dictionary.ends.data;
    struct value_walk walk = {.reader = reader, .count = count, .is_whole = !reader->rows};
    if (!is_in_place(reader))
        return false;
    while (leaf_next_values(&walk)) {
        for (size_t i = walk.first; i < walk.first + walk.length; i++) {
            const uint8_t *at = reader->entries.data + starts[indices[i]];
            if (walk.is_wanted)
                buf_put(data, at + 4, get_le32(at));
            ends[i] = (int32_t)data->length;
        }
    }
    return true;
}
