/* SPDX-License-Identifier: Apache-2.0
 *
 * A chunk's Bloom filter in the file: its header, then one block a question. Source:
 * BloomFilter.md, parquet.thrift (BloomFilterHeader).
 */
#include <math.h>

#include "format/parquet/bloom_internal.h"
#include "format/parquet/prune_internal.h"
#include "format/parquet/thrift_internal.h"

enum { HEADER_BYTES_MAX = 64 };

/* The one member of a union that has but one that is known: 1. */
static bool read_is_first(struct cursor *in, int type)
{
    int id = 0, member = 0;
    if (!thrift_read_struct(in, type))
        return false;
    while ((type = thrift_read_field(in, &id)) != 0) {
        member = id;
        thrift_skip(in, type);
    }
    return member == 1;
}

enum status bloom_find(const struct parquet_file *file, size_t group, uint32_t leaf,
                       struct fetches *fetches, struct bloom_place *out_place, struct error *err)
{
    const struct parquet_chunk *chunk = &file->groups[group].chunks[leaf];
    uint8_t header[HEADER_BYTES_MAX];
    uint64_t left = file->source.file_bytes - chunk->bloom_offset;
    size_t length = left < sizeof header ? (size_t)left : sizeof header;
    struct cursor in = cursor_of(header, length);
    bool is_known = true;
    int64_t bytes = -1;
    int id = 0, type;
    TRY(file_fetch(file, fetches, chunk->bloom_offset, length, header, err));
    while ((type = thrift_read_field(&in, &id)) != 0) {
        if (id == 1)
            bytes = thrift_read_i64(&in, type);
        else if (id <= 4) /* algorithm, hash, compression */
            is_known = read_is_first(&in, type) && is_known;
        else
            thrift_skip(&in, type);
    }
    uint64_t header_bytes = (uint64_t)(in.at - header);
    if (in.failed || bytes < 0 || (uint64_t)bytes > left - header_bytes ||
        (chunk->bloom_bytes && header_bytes + (uint64_t)bytes > chunk->bloom_bytes))
        return chunk_fault(file, group, leaf, chunk->bloom_offset, STATUS_CORRUPT, err,
                           "a damaged Bloom filter");
    bool is_usable = is_known && bytes >= BLOOM_BLOCK_BYTES && bytes <= BLOOM_BYTES_MAX &&
                     bytes % BLOOM_BLOCK_BYTES == 0;
    *out_place = (struct bloom_place){.offset = chunk->bloom_offset + header_bytes,
                                      .bytes = is_usable ? (size_t)bytes : 0};
    return STATUS_OK;
}

/* A value as PLAIN has it in `out` or where it is. False: its bytes cannot be known. */
static bool plain_of(const struct parquet_leaf *leaf, const struct parquet_value *value,
                     uint8_t out[8], struct span *out_plain)
{
    float narrow = (float)value->real;
    switch (leaf->physical) {
    case PARQUET_INT32:
        put_le32(out, (uint32_t)value->integer);
        *out_plain = span_of(out, 4);
        return true;
    case PARQUET_INT64:
        put_le64(out, (uint64_t)value->integer);
        *out_plain = span_of(out, 8);
        return true;
    case PARQUET_FLOAT:
        memcpy(out, &narrow, sizeof narrow);
        *out_plain = span_of(out, sizeof narrow);
        return true;
    case PARQUET_DOUBLE:
        memcpy(out, &value->real, sizeof value->real);
        *out_plain = span_of(out, sizeof value->real);
        return true;
    case PARQUET_BYTE_ARRAY:
    case PARQUET_FIXED:
        *out_plain = value->bytes;
        return value_class_of(leaf) == CLASS_BYTES;
    default: /* booleans have no filter */
        return false;
    }
}

/* No value of the column's can be this one. */
static bool cannot_be(const struct parquet_leaf *leaf, const struct parquet_value *value)
{
    if (leaf->physical == PARQUET_FLOAT && (double)(float)value->real != value->real)
        return true;
    if (leaf->physical == PARQUET_INT32)
        return value_class_of(leaf) == CLASS_UNSIGNED
                   ? value->integer < 0 || value->integer > UINT32_MAX
                   : value->integer < INT32_MIN || value->integer > INT32_MAX;
    return value_class_of(leaf) == CLASS_REAL && isnan(value->real);
}

enum status bloom_ask(const struct parquet_file *file, uint32_t leaf,
                      const struct bloom_place *place, const struct parquet_value *value,
                      struct fetches *fetches, bool *out_may_have, struct error *err)
{
    const struct parquet_leaf *about = &file->leaves[leaf];
    struct parquet_value asked = *value;
    bool may_have = false, has_twin = value_class_of(about) == CLASS_REAL && value->real == 0;
    for (int i = 0; i <= has_twin && !may_have; i++) { /* zeros of both signs are equal */
        uint8_t block[BLOOM_BLOCK_BYTES], memory[8];
        struct span plain;
        if (cannot_be(about, &asked))
            break;
        if (!plain_of(about, &asked, memory, &plain)) {
            may_have = true;
            break;
        }
        uint64_t hash = hash_xxh64(plain.data, plain.length);
        uint64_t number = (hash >> 32) * (place->bytes / BLOOM_BLOCK_BYTES) >> 32;
        TRY(file_fetch(file, fetches, place->offset + number * BLOOM_BLOCK_BYTES, sizeof block,
                       block, err));
        may_have = bloom_has(block, sizeof block, hash);
        asked.real = -asked.real;
    }
    *out_may_have = may_have;
    return STATUS_OK;
}
