/* SPDX-License-Identifier: Apache-2.0
 *
 * Each byte of a file belongs to one of its parts: the magic, chunks, indexes, filters, the footer.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "format/parquet/thrift_internal.h"
#include "format/parquet/verify_internal.h"

struct part {
    uint64_t start, end;
    uint32_t leaf;
    size_t group;
    const char *what;
};

struct layout {
    const struct parquet_file *file;
    struct buf parts; /* struct part */
    struct error *err;
};

static enum status fault(const struct layout *layout, uint64_t offset, const char *what)
{
    error_set(layout->err, STATUS_CORRUPT, "parquet: byte %" PRIu64 ": %s", offset, what);
    return error_at(layout->err, offset);
}

static void add_part(struct layout *layout, uint64_t offset, uint64_t bytes, size_t group,
                     uint32_t leaf, const char *what)
{
    struct part part = {
        .start = offset, .end = offset + bytes, .leaf = leaf, .group = group, .what = what};
    if (bytes)
        buf_put(&layout->parts, &part, sizeof part);
}

/* Filters of old have no length in the footer: it is in front of them. */
static enum status add_bloom(struct layout *layout, size_t group, uint32_t leaf)
{
    const struct parquet_chunk *chunk = &layout->file->groups[group].chunks[leaf];
    struct fetches fetches = {0};
    struct bloom_place place;
    uint64_t bytes = chunk->bloom_bytes;
    if (!chunk->bloom_offset)
        return STATUS_OK;
    if (!bytes) {
        TRY(bloom_find(layout->file, group, leaf, &fetches, &place, layout->err));
        bytes = place.offset - chunk->bloom_offset + place.bytes;
    }
    add_part(layout, chunk->bloom_offset, bytes, group, leaf, "a Bloom filter");
    return STATUS_OK;
}

static enum status add_parts(struct layout *layout)
{
    const struct parquet_file *file = layout->file;
    add_part(layout, 0, MAGIC_BYTES, 0, 0, "the magic");
    for (size_t group = 0; group < file->group_count; group++) {
        for (uint32_t leaf = 0; leaf < file->leaf_count; leaf++) {
            const struct parquet_chunk *chunk = &file->groups[group].chunks[leaf];
            add_part(layout, chunk->offset, chunk->bytes, group, leaf, "a chunk");
            add_part(layout, chunk->column_index_offset, chunk->column_index_bytes, group, leaf,
                     "a column index");
            add_part(layout, chunk->offset_index_offset, chunk->offset_index_bytes, group, leaf,
                     "an offset index");
            TRY(add_bloom(layout, group, leaf));
        }
    }
    add_part(layout, file->footer_offset, file->footer.length + TAIL_BYTES, 0, 0, "the footer");
    return buf_status(&layout->parts, "parquet: parts of a file", layout->err);
}

static int compare_parts(const void *a, const void *b)
{
    const struct part *left = a, *right = b;
    if (left->start != right->start)
        return left->start < right->start ? -1 : 1;
    return (left->end > right->end) - (left->end < right->end);
}

/* Writers of old put a copy of what the footer says of a chunk behind it: one struct. */
static bool is_struct(const uint8_t *bytes, size_t count)
{
    struct cursor in = cursor_of(bytes, count);
    int id = 0, type;
    while ((type = thrift_read_field(&in, &id)) != 0)
        thrift_skip(&in, type);
    return !in.failed && cursor_left(&in) == 0;
}

static bool is_zero(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i])
            return false;
    return true;
}

/* Bytes that belong to nothing: parquet-java fills with zeros up to a block of HDFS in front of a
 * row group; a copy of a chunk's metadata stands where the chunk's file_offset says. */
static enum status check_gap(struct layout *layout, const struct part *before,
                             const struct part *behind)
{
    enum { STRUCT_BYTES_MAX = 1 << 20, BLOCK = 1 << 16 };
    const struct parquet_file *file = layout->file;
    uint64_t at = before->end, bytes = behind->start - before->end;
    bool may_be_copy = bytes <= STRUCT_BYTES_MAX && before->start >= MAGIC_BYTES;
    bool may_be_zeros = behind->leaf == 0 && behind->start < file->footer_offset;
    struct fetches fetches = {0};
    struct buf block = {0};
    size_t block_bytes = (size_t)(may_be_copy || bytes < BLOCK ? bytes : BLOCK);
    uint8_t *place = may_be_copy || may_be_zeros ? buf_extend(&block, block_bytes) : NULL;
    enum status status = STATUS_OK;
    bool is_good = place != NULL;
    TRY_OR_DONE(status, buf_status(&block, "parquet: bytes between parts", layout->err));
    if (may_be_copy && place) {
        TRY_OR_DONE(status, file_fetch(file, &fetches, at, block_bytes, place, layout->err));
        is_good = is_struct(place, block_bytes);
        may_be_zeros = may_be_zeros && !is_good;
    }
    while (may_be_zeros && place && at < behind->start) {
        size_t step = (size_t)(behind->start - at < BLOCK ? behind->start - at : BLOCK);
        step = size_min(step, block_bytes);
        TRY_OR_DONE(status, file_fetch(file, &fetches, at, step, place, layout->err));
        is_good = is_zero(place, step);
        may_be_zeros = is_good;
        at += step;
    }
    if (!is_good)
        status = fault(layout, before->end, "bytes that belong to no part of the file");
done:
    buf_deinit(&block);
    return status;
}

static enum status check_parts(struct layout *layout)
{
    struct part *parts = (void *)layout->parts.data;
    size_t count = layout->parts.length / sizeof *parts;
    qsort(parts, count, sizeof *parts, compare_parts);
    for (size_t i = 1; i < count; i++) {
        const struct part *before = &parts[i - 1], *at = &parts[i];
        if (at->start < before->end && at->end <= layout->file->footer_offset)
            return chunk_fault(layout->file, at->group, at->leaf, at->start, STATUS_CORRUPT,
                               layout->err, "%s lies over %s", at->what, before->what);
        if (at->start < before->end)
            return fault(layout, at->start, "the footer lies over what it speaks of");
        if (at->start > before->end)
            TRY(check_gap(layout, before, at));
    }
    return STATUS_OK;
}

static enum status check_magic(struct layout *layout)
{
    uint8_t magic[MAGIC_BYTES];
    struct fetches fetches = {0};
    TRY(file_fetch(layout->file, &fetches, 0, sizeof magic, magic, layout->err));
    for (size_t i = 0; i < sizeof magic; i++)
        if (magic[i] != (uint8_t) "PAR1"[i])
            return fault(layout, i, "no magic at the beginning");
    return STATUS_OK;
}

enum status parquet_file_verify_layout(const struct parquet_file *file, struct error *err)
{
    struct layout layout = {.file = file, .err = err};
    enum status status = check_magic(&layout);
    if (status == STATUS_OK)
        status = verify_schema(file, err);
    if (status == STATUS_OK)
        status = add_parts(&layout);
    if (status == STATUS_OK)
        status = check_parts(&layout);
    buf_deinit(&layout.parts);
    return status;
}
