/* SPDX-License-Identifier: Apache-2.0
 *
 * What a footer says and readers do not need: read again from the footer's bytes, which were found
 * whole when the file was opened. Source: parquet.thrift.
 */
#include <inttypes.h>

#include "format/parquet/prune_internal.h"
#include "format/parquet/thrift_internal.h"

struct facts_read {
    struct cursor in;
    struct arena *arena;
    bool is_full; /* the arena */
};

static void *take(struct facts_read *read, size_t count, size_t size)
{
    void *place = arena_alloc_zero(read->arena, count + 1, size);
    read->is_full |= !place;
    return place;
}

static struct facts_read facts_read_of(const struct parquet_file *file, uint32_t at,
                                       struct arena *arena)
{
    return (struct facts_read){.in = cursor_of(file->footer.data + at, file->footer.length - at),
                               .arena = arena};
}

static void read_encodings(struct facts_read *read, int type, struct parquet_chunk_facts *facts)
{
    int inner;
    size_t count = thrift_read_list(&read->in, type, &inner);
    int32_t *encodings = take(read, count, sizeof *encodings);
    for (size_t i = 0; encodings && i < count; i++)
        encodings[i] = thrift_read_i32(&read->in, inner);
    facts->encodings = encodings;
    facts->encoding_count = encodings ? count : 0;
}

static void read_path(struct facts_read *read, int type, struct parquet_chunk_facts *facts)
{
    int inner;
    size_t count = thrift_read_list(&read->in, type, &inner);
    struct span *path = take(read, count, sizeof *path);
    for (size_t i = 0; path && i < count; i++)
        path[i] = thrift_read_binary(&read->in, inner);
    facts->path = path;
    facts->path_length = path ? count : 0;
}

static void read_encoding_stats(struct facts_read *read, int type,
                                struct parquet_chunk_facts *facts)
{
    struct cursor *in = &read->in;
    int inner;
    size_t count = thrift_read_list(in, type, &inner);
    struct parquet_encoding_stat *stats = take(read, count, sizeof *stats);
    for (size_t i = 0; stats && i < count && thrift_read_struct(in, inner); i++) {
        int id = 0, member;
        while ((member = thrift_read_field(in, &id)) != 0) {
            if (id == 1)
                stats[i].page_type = thrift_read_i32(in, member);
            else if (id == 2)
                stats[i].encoding = thrift_read_i32(in, member);
            else if (id == 3)
                stats[i].count = thrift_read_i64(in, member);
            else
                thrift_skip(in, member);
        }
    }
    facts->encoding_stats = stats;
    facts->encoding_stat_count = stats ? count : 0;
}

static void read_statistics(struct facts_read *read, int type, struct parquet_chunk_facts *facts)
{
    struct cursor *in = &read->in;
    int id = 0;
    if (!thrift_read_struct(in, type))
        return;
    while ((type = thrift_read_field(in, &id)) != 0) {
        if (id == 1)
            facts->old_max = thrift_read_binary(in, type);
        else if (id == 2)
            facts->old_min = thrift_read_binary(in, type);
        else if (id == 4)
            facts->distinct_count = thrift_read_i64(in, type);
        else
            thrift_skip(in, type);
    }
}

static struct parquet_histogram read_histogram(struct facts_read *read, int type)
{
    int inner;
    size_t count = thrift_read_list(&read->in, type, &inner);
    int64_t *counts = take(read, count, sizeof *counts);
    for (size_t i = 0; counts && i < count; i++)
        counts[i] = thrift_read_i64(&read->in, inner);
    return (struct parquet_histogram){.counts = counts, .count = counts ? count : 0};
}

static void read_sizes(struct facts_read *read, int type, struct parquet_chunk_facts *facts)
{
    int id = 0;
    if (!thrift_read_struct(&read->in, type))
        return;
    while ((type = thrift_read_field(&read->in, &id)) != 0) {
        if (id == 1)
            facts->unencoded_bytes = thrift_read_i64(&read->in, type);
        else if (id == 2)
            facts->rep = read_histogram(read, type);
        else if (id == 3)
            facts->def = read_histogram(read, type);
        else
            thrift_skip(&read->in, type);
    }
}

static void read_metadata(struct facts_read *read, int type, struct parquet_chunk_facts *facts)
{
    int id = 0;
    if (!thrift_read_struct(&read->in, type))
        return;
    while ((type = thrift_read_field(&read->in, &id)) != 0) {
        int64_t *number = id == 5    ? &facts->value_count
                          : id == 6  ? &facts->plain_bytes
                          : id == 7  ? &facts->stored_bytes
                          : id == 9  ? &facts->data_offset
                          : id == 10 ? &facts->index_page_offset
                          : id == 11 ? &facts->dictionary_offset
                          : id == 14 ? &facts->bloom_offset
                          : id == 15 ? &facts->bloom_bytes
                                     : NULL;
        if (number) {
            *number = thrift_read_i64(&read->in, type);
            facts->has_place_below_0 |= *number < 0;
        } else if (id == 2) {
            read_encodings(read, type, facts);
        } else if (id == 3) {
            read_path(read, type, facts);
        } else if (id == 12) {
            read_statistics(read, type, facts);
        } else if (id == 13) {
            read_encoding_stats(read, type, facts);
        } else if (id == 16) {
            read_sizes(read, type, facts);
        } else {
            thrift_skip(&read->in, type);
        }
    }
}

static enum status finish(const struct facts_read *read, const struct parquet_file *file,
                          size_t group, uint64_t at, struct error *err)
{
    if (read->is_full)
        return error_set(err, STATUS_LIMIT,
                         "parquet: row group %zu: no room for what is said of it", group);
    if (!read->in.failed)
        return STATUS_OK;
    at = file->footer_offset + (uint64_t)(read->in.at - file->footer.data);
    error_set(err, STATUS_CORRUPT, "parquet: footer, row group %zu, byte %" PRIu64 ": damaged",
              group, at);
    return error_at(err, at);
}

enum status parquet_chunk_facts_read(const struct parquet_file *file, size_t group, uint32_t leaf,
                                     struct arena *arena, struct parquet_chunk_facts *out_facts,
                                     struct error *err)
{
    uint32_t footer_at = file->groups[group].chunks[leaf].footer_at;
    struct facts_read read = facts_read_of(file, footer_at, arena);
    struct parquet_chunk_facts facts = {.at = file->footer_offset + footer_at,
                                        .file_offset = -1,
                                        .value_count = -1,
                                        .plain_bytes = -1,
                                        .stored_bytes = -1,
                                        .data_offset = -1,
                                        .index_page_offset = -1,
                                        .dictionary_offset = -1,
                                        .bloom_offset = -1,
                                        .bloom_bytes = -1,
                                        .offset_index_offset = -1,
                                        .offset_index_bytes = -1,
                                        .column_index_offset = -1,
                                        .column_index_bytes = -1,
                                        .distinct_count = -1,
                                        .unencoded_bytes = -1};
    int id = 0, type;
    while ((type = thrift_read_field(&read.in, &id)) != 0) {
        int64_t *number = id == 2   ? &facts.file_offset
                          : id == 4 ? &facts.offset_index_offset
                          : id == 5 ? &facts.offset_index_bytes
                          : id == 6 ? &facts.column_index_offset
                          : id == 7 ? &facts.column_index_bytes
                                    : NULL;
        if (number) {
            *number = thrift_read_i64(&read.in, type);
            facts.has_place_below_0 |= *number < 0;
        } else if (id == 3) {
            read_metadata(&read, type, &facts);
        } else {
            thrift_skip(&read.in, type);
        }
    }
    TRY(finish(&read, file, group, facts.at, err));
    *out_facts = facts;
    return STATUS_OK;
}

static void read_sort_keys(struct facts_read *read, int type, struct parquet_group_facts *facts)
{
    struct cursor *in = &read->in;
    int inner;
    size_t count = thrift_read_list(in, type, &inner);
    struct parquet_sort_key *keys = take(read, count, sizeof *keys);
    for (size_t i = 0; keys && i < count && thrift_read_struct(in, inner); i++) {
        int id = 0, member;
        while ((member = thrift_read_field(in, &id)) != 0) {
            if (id == 1)
                keys[i].leaf = thrift_read_i32(in, member);
            else if (id == 2)
                keys[i].is_descending = thrift_read_bool(in, member);
            else if (id == 3)
                keys[i].is_nulls_first = thrift_read_bool(in, member);
            else
                thrift_skip(in, member);
        }
    }
    facts->sort_keys = keys;
    facts->sort_key_count = keys ? count : 0;
}

enum status parquet_group_facts_read(const struct parquet_file *file, size_t group,
                                     struct arena *arena, struct parquet_group_facts *out_facts,
                                     struct error *err)
{
    struct facts_read read = facts_read_of(file, file->groups[group].footer_at, arena);
    struct parquet_group_facts facts = {.at = file->footer_offset + file->groups[group].footer_at,
                                        .plain_bytes = -1,
                                        .stored_bytes = -1,
                                        .file_offset = -1,
                                        .ordinal = -1};
    int id = 0, type;
    while ((type = thrift_read_field(&read.in, &id)) != 0) {
        int64_t *number = id == 2   ? &facts.plain_bytes
                          : id == 5 ? &facts.file_offset
                          : id == 6 ? &facts.stored_bytes
                          : id == 7 ? &facts.ordinal
                                    : NULL;
        if (number) {
            *number = thrift_read_i64(&read.in, type);
            facts.has_number_below_0 |= *number < 0;
        } else if (id == 4) {
            read_sort_keys(&read, type, &facts);
        } else {
            thrift_skip(&read.in, type);
        }
    }
    TRY(finish(&read, file, group, facts.at, err));
    *out_facts = facts;
    return STATUS_OK;
}
