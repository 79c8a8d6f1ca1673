/* SPDX-License-Identifier: Apache-2.0
 *
 * sluice parquet meta: what the footer says of row groups and columns.
 */
#include <inttypes.h>

#include "app/cmd/parquet_internal.h"

struct meta {
    const struct parquet_file *file;
    const bool *is_chosen; /* a leaf each */
    struct arena arena;    /* of the facts of the row group at hand */
};

/* ---- JSON ---- */

static void write_range(struct json_writer *json, const char *name, uint64_t offset, uint32_t bytes)
{
    if (!offset)
        return;
    json_write_key(json, name);
    json_write_object_begin(json);
    parquet_write_number(json, "offset", (int64_t)offset);
    if (bytes)
        parquet_write_number(json, "bytes", bytes);
    json_write_object_end(json);
}

static void write_histogram(struct json_writer *json, const char *name,
                            const struct parquet_histogram *histogram)
{
    if (!histogram->count)
        return;
    json_write_key(json, name);
    json_write_array_begin(json);
    for (size_t i = 0; i < histogram->count; i++)
        json_write_i64(json, histogram->counts[i]);
    json_write_array_end(json);
}

static void write_statistics(struct json_writer *json, const struct parquet_leaf *leaf,
                             const struct parquet_chunk *chunk,
                             const struct parquet_chunk_facts *facts)
{
    const struct parquet_statistics *said = &chunk->statistics;
    if (said->has_null_count)
        parquet_write_number(json, "nulls", said->null_count);
    parquet_write_number(json, "distinct", facts->distinct_count);
    if (said->has_nan_count)
        parquet_write_number(json, "nan", said->nan_count);
    if (said->has_min) {
        json_write_key(json, "min");
        parquet_write_plain(json, leaf, said->min);
        parquet_write_bool(json, "min_exact", said->is_min_exact);
    }
    if (said->has_max) {
        json_write_key(json, "max");
        parquet_write_plain(json, leaf, said->max);
        parquet_write_bool(json, "max_exact", said->is_max_exact);
    }
}

static void write_chunk(struct json_writer *json, const struct parquet_leaf *leaf,
                        const struct parquet_chunk *chunk, const struct parquet_chunk_facts *facts)
{
    struct buf encodings = {0};
    parquet_put_encodings(&encodings, chunk->encodings);
    json_write_object_begin(json);
    parquet_write_text(json, "path", leaf->path);
    parquet_write_text(json, "codec", parquet_codec_name(chunk->codec));
    json_write_key(json, "encodings");
    json_write_string(json, encodings.data, encodings.length);
    parquet_write_number(json, "offset", (int64_t)chunk->offset);
    parquet_write_number(json, "bytes", (int64_t)chunk->bytes);
    parquet_write_number(json, "plain_bytes", facts->plain_bytes);
    parquet_write_number(json, "unencoded_bytes", facts->unencoded_bytes);
    parquet_write_number(json, "values", (int64_t)chunk->value_count);
    write_statistics(json, leaf, chunk, facts);
    if (chunk->has_dictionary)
        parquet_write_number(json, "dictionary_offset", facts->dictionary_offset);
    parquet_write_number(json, "data_offset", facts->data_offset);
    write_range(json, "column_index", chunk->column_index_offset, chunk->column_index_bytes);
    write_range(json, "offset_index", chunk->offset_index_offset, chunk->offset_index_bytes);
    write_range(json, "bloom_filter", chunk->bloom_offset, chunk->bloom_bytes);
    write_histogram(json, "repetition_levels", &facts->rep);
    write_histogram(json, "definition_levels", &facts->def);
    json_write_object_end(json);
    buf_deinit(&encodings);
}

static void write_sort_keys(struct json_writer *json, const struct parquet_file *file,
                            const struct parquet_group_facts *facts)
{
    if (!facts->sort_key_count)
        return;
    json_write_key(json, "sorted_by");
    json_write_array_begin(json);
    for (size_t i = 0; i < facts->sort_key_count; i++) {
        const struct parquet_sort_key *key = &facts->sort_keys[i];
        bool is_column = key->leaf >= 0 && (uint32_t)key->leaf < file->leaf_count;
        json_write_object_begin(json);
        parquet_write_text(json, "path", is_column ? file->leaves[key->leaf].path : "?");
        parquet_write_bool(json, "descending", key->is_descending);
        parquet_write_bool(json, "nulls_first", key->is_nulls_first);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

static enum status write_group(struct json_writer *json, struct meta *meta, size_t group,
                               struct error *err)
{
    const struct parquet_file *file = meta->file;
    struct parquet_group_facts facts;
    arena_clear(&meta->arena);
    TRY(parquet_group_facts_read(file, group, &meta->arena, &facts, err));
    json_write_object_begin(json);
    parquet_write_number(json, "rows", file->groups[group].rows);
    parquet_write_number(json, "bytes", facts.stored_bytes);
    parquet_write_number(json, "plain_bytes", facts.plain_bytes);
    write_sort_keys(json, file, &facts);
    json_write_key(json, "columns");
    json_write_array_begin(json);
    for (uint32_t i = 0; i < file->leaf_count; i++) {
        struct parquet_chunk_facts chunk;
        if (!meta->is_chosen[i])
            continue;
        TRY(parquet_chunk_facts_read(file, group, i, &meta->arena, &chunk, err));
        write_chunk(json, &file->leaves[i], &file->groups[group].chunks[i], &chunk);
    }
    json_write_array_end(json);
    json_write_object_end(json);
    return STATUS_OK;
}

static enum status write_meta(struct buf *out, struct meta *meta, struct error *err)
{
    const struct parquet_file *file = meta->file;
    struct json_writer json;
    json_writer_init(&json, out);
    json_write_object_begin(&json);
    parquet_write_text(&json, "created_by", file->created_by ? file->created_by : "");
    parquet_write_number(&json, "version", file->version);
    parquet_write_number(&json, "rows", file->row_count);
    parquet_write_number(&json, "footer_offset", (int64_t)file->footer_offset);
    json_write_key(&json, "metadata");
    json_write_object_begin(&json);
    for (size_t i = 0; i < file->pair_count; i++) {
        json_write_key(&json, file->pairs[i].key);
        json_write_text(&json, file->pairs[i].value ? file->pairs[i].value : "");
    }
    json_write_object_end(&json);
    json_write_key(&json, "row_groups");
    json_write_array_begin(&json);
    for (size_t i = 0; i < file->group_count; i++)
        TRY(write_group(&json, meta, i, err));
    json_write_array_end(&json);
    json_write_object_end(&json);
    buf_put_byte(out, '\n');
    return STATUS_OK;
}

/* ---- text ---- */

static void put_range(struct buf *out, const char *name, uint64_t offset, uint32_t bytes)
{
    if (!offset)
        return;
    buf_format(out, ", %s at %" PRIu64, name, offset);
    if (bytes)
        buf_format(out, "+%u", bytes);
}

static void put_statistics(struct buf *out, const struct parquet_leaf *leaf,
                           const struct parquet_chunk *chunk,
                           const struct parquet_chunk_facts *facts)
{
    const struct parquet_statistics *said = &chunk->statistics;
    if (said->has_null_count)
        buf_format(out, ", %" PRId64 " nulls", said->null_count);
    if (facts->distinct_count >= 0)
        buf_format(out, ", %" PRId64 " distinct", facts->distinct_count);
    if (said->has_nan_count && said->nan_count)
        buf_format(out, ", %" PRId64 " NaN", said->nan_count);
    if (said->has_min) {
        buf_put_text(out, said->is_min_exact ? ", min " : ", min at least ");
        parquet_put_plain(out, leaf, said->min);
    }
    if (said->has_max) {
        buf_put_text(out, said->is_max_exact ? ", max " : ", max at most ");
        parquet_put_plain(out, leaf, said->max);
    }
}

static void put_chunk(struct buf *out, const struct parquet_leaf *leaf,
                      const struct parquet_chunk *chunk, const struct parquet_chunk_facts *facts)
{
    buf_format(out, "  %-40s %10" PRIu64 " values %12" PRIu64 " bytes  %s ", leaf->path,
               chunk->value_count, chunk->bytes, parquet_codec_name(chunk->codec));
    parquet_put_encodings(out, chunk->encodings);
    buf_format(out, "\n    %" PRId64 " bytes not compressed", facts->plain_bytes);
    put_statistics(out, leaf, chunk, facts);
    buf_format(out, "\n    at %" PRIu64, chunk->offset);
    put_range(out, "column index", chunk->column_index_offset, chunk->column_index_bytes);
    put_range(out, "offset index", chunk->offset_index_offset, chunk->offset_index_bytes);
    put_range(out, "Bloom filter", chunk->bloom_offset, chunk->bloom_bytes);
    buf_put_byte(out, '\n');
}

static enum status put_group(struct buf *out, struct meta *meta, size_t group, struct error *err)
{
    const struct parquet_file *file = meta->file;
    struct parquet_group_facts facts;
    arena_clear(&meta->arena);
    TRY(parquet_group_facts_read(file, group, &meta->arena, &facts, err));
    buf_format(out, "row group %zu: %" PRId64 " rows, %" PRId64 " bytes not compressed", group,
               file->groups[group].rows, facts.plain_bytes);
    for (size_t i = 0; i < facts.sort_key_count; i++) {
        const struct parquet_sort_key *key = &facts.sort_keys[i];
        bool is_column = key->leaf >= 0 && (uint32_t)key->leaf < file->leaf_count;
        buf_format(out, "%s%s%s%s", i ? ", " : "; sorted by ",
                   is_column ? file->leaves[key->leaf].path : "?",
                   key->is_descending ? " descending" : "",
                   key->is_nulls_first ? " (nulls first)" : "");
    }
    buf_put_byte(out, '\n');
    for (uint32_t i = 0; i < file->leaf_count; i++) {
        struct parquet_chunk_facts chunk;
        if (!meta->is_chosen[i])
            continue;
        TRY(parquet_chunk_facts_read(file, group, i, &meta->arena, &chunk, err));
        put_chunk(out, &file->leaves[i], &file->groups[group].chunks[i], &chunk);
    }
    return STATUS_OK;
}

static enum status put_meta(struct buf *out, struct meta *meta, struct error *err)
{
    const struct parquet_file *file = meta->file;
    buf_format(out, "%s\n%" PRId64 " rows, %zu row groups, %u columns\n",
               file->created_by ? file->created_by : "(not said by what)", file->row_count,
               file->group_count, file->leaf_count);
    for (size_t i = 0; i < file->pair_count; i++)
        buf_format(out, "  %s = %.200s\n", file->pairs[i].key,
                   file->pairs[i].value ? file->pairs[i].value : "");
    for (size_t i = 0; i < file->group_count; i++)
        TRY(put_group(out, meta, i, err));
    return STATUS_OK;
}

enum status parquet_print_meta(const struct parquet_file *file, const char *columns, bool as_json,
                               struct error *err)
{
    struct meta meta = {.file = file};
    struct buf out = {0};
    struct arena arena;
    bool *is_chosen;
    arena_init(&arena, 0);
    arena_init(&meta.arena, 0);
    enum status status = parquet_choose(file, columns, &arena, &is_chosen, err);
    if (status == STATUS_OK) {
        meta.is_chosen = is_chosen;
        status = as_json ? write_meta(&out, &meta, err) : put_meta(&out, &meta, err);
    }
    if (status == STATUS_OK)
        cmd_print(&out);
    buf_deinit(&out);
    arena_deinit(&meta.arena);
    arena_deinit(&arena);
    return status;
}
