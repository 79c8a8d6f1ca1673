/* SPDX-License-Identifier: Apache-2.0
 *
 * Manifest lists. Source: specification, "Manifest Lists"; the Avro schema as the Java library
 * writes it for version 2. Lists of others are read by field id; what version 1 did not have has
 * its default.
 */
#include <stdio.h>

#include "lake/iceberg/iceberg_internal.h"

static const char list_schema[] =
    "{\"type\":\"record\",\"name\":\"manifest_file\",\"fields\":["
    "{\"name\":\"manifest_path\",\"type\":\"string\",\"field-id\":500},"
    "{\"name\":\"manifest_length\",\"type\":\"long\",\"field-id\":501},"
    "{\"name\":\"partition_spec_id\",\"type\":\"int\",\"field-id\":502},"
    "{\"name\":\"content\",\"type\":\"int\",\"field-id\":517},"
    "{\"name\":\"sequence_number\",\"type\":\"long\",\"field-id\":515},"
    "{\"name\":\"min_sequence_number\",\"type\":\"long\",\"field-id\":516},"
    "{\"name\":\"added_snapshot_id\",\"type\":\"long\",\"field-id\":503},"
    "{\"name\":\"added_files_count\",\"type\":\"int\",\"field-id\":504},"
    "{\"name\":\"existing_files_count\",\"type\":\"int\",\"field-id\":505},"
    "{\"name\":\"deleted_files_count\",\"type\":\"int\",\"field-id\":506},"
    "{\"name\":\"added_rows_count\",\"type\":\"long\",\"field-id\":512},"
    "{\"name\":\"existing_rows_count\",\"type\":\"long\",\"field-id\":513},"
    "{\"name\":\"deleted_rows_count\",\"type\":\"long\",\"field-id\":514},"
    "{\"name\":\"partitions\",\"type\":[\"null\",{\"type\":\"array\",\"items\":{\"type\":"
    "\"record\","
    "\"name\":\"r508\",\"fields\":["
    "{\"name\":\"contains_null\",\"type\":\"boolean\",\"field-id\":509},"
    "{\"name\":\"contains_nan\",\"type\":[\"null\",\"boolean\"],\"default\":null,\"field-id\":518},"
    "{\"name\":\"lower_bound\",\"type\":[\"null\",\"bytes\"],\"default\":null,\"field-id\":510},"
    "{\"name\":\"upper_bound\",\"type\":[\"null\",\"bytes\"],\"default\":null,\"field-id\":511}]},"
    "\"element-id\":508}],\"default\":null,\"field-id\":507},"
    "{\"name\":\"key_metadata\",\"type\":[\"null\",\"bytes\"],\"default\":null,\"field-id\":519}]}";

/* ---- writing ---- */

static int64_t known(int64_t count)
{
    return count < 0 ? 0 : count;
}

/* An empty list of summaries for an unpartitioned table, never a missing one: strict engines want
 * it as the Java library writes it. */
static void put_partitions(struct buf *out, const struct manifest_file *file)
{
    avro_put_long(out, file->partitions ? 1 : 0);
    if (!file->partitions)
        return;
    if (file->partition_count)
        avro_put_long(out, file->partition_count);
    for (uint32_t i = 0; i < file->partition_count; i++) {
        const struct partition_summary *summary = &file->partitions[i];
        buf_put_byte(out, summary->contains_null);
        avro_put_long(out, summary->contains_nan >= 0 ? 1 : 0);
        if (summary->contains_nan >= 0)
            buf_put_byte(out, summary->contains_nan > 0);
        avro_put_optional_bytes(out, summary->lower);
        avro_put_optional_bytes(out, summary->upper);
    }
    avro_put_long(out, 0);
}

static void put_file(struct buf *out, const struct manifest_file *file)
{
    avro_put_text(out, file->path);
    avro_put_long(out, file->length);
    avro_put_long(out, file->spec_id);
    avro_put_long(out, file->content);
    avro_put_long(out, file->sequence_number);
    avro_put_long(out, file->min_sequence_number);
    avro_put_long(out, file->added_snapshot_id);
    avro_put_long(out, known(file->added_files));
    avro_put_long(out, known(file->existing_files));
    avro_put_long(out, known(file->deleted_files));
    avro_put_long(out, known(file->added_rows));
    avro_put_long(out, known(file->existing_rows));
    avro_put_long(out, known(file->deleted_rows));
    put_partitions(out, file);
    avro_put_optional_bytes(out, file->key_metadata);
}

enum status iceberg_list_write(struct env *env, struct store *store, const char *uri,
                               const struct list_header *header, const struct manifest_file *files,
                               size_t count, struct error *err)
{
    char snapshot[24], parent[24] = "null", sequence[24];
    struct iceberg_avro_file file = {0};
    uint64_t bytes;
    enum status status;
    snprintf(snapshot, sizeof snapshot, "%lld", (long long)header->snapshot_id);
    snprintf(sequence, sizeof sequence, "%lld", (long long)header->sequence_number);
    if (header->parent_id >= 0)
        snprintf(parent, sizeof parent, "%lld", (long long)header->parent_id);
    const struct avro_pair metadata[] = {
        {"snapshot-id", snapshot},
        {"parent-snapshot-id", parent},
        {"sequence-number", sequence},
        {"format-version", "2"},
    };
    TRY_OR_DONE(status, iceberg_avro_create(env, store, uri, list_schema, metadata,
                                            COUNT_OF(metadata), &file, err));
    for (size_t i = 0; i < count; i++) {
        put_file(avro_writer_record(file.avro), &files[i]);
        TRY_OR_DONE(status, avro_writer_record_end(file.avro, err));
    }
    status = iceberg_avro_finish(&file, &bytes, err);
done:
    iceberg_avro_abort(&file);
    return status == STATUS_OK ? STATUS_OK : error_prefix(err, "write manifest list %.200s", uri);
}

/* ---- reading ---- */

static enum status copy_bytes(struct span from, struct arena *arena, struct span *out,
                              struct error *err)
{
    char *copy = arena_copy_text(arena, (const char *)from.data, from.length);
    if (!copy)
        return error_set(err, STATUS_NO_MEMORY, "manifest list: out of memory");
    *out = span_of(copy, from.length);
    return STATUS_OK;
}

static enum status read_partitions(const struct avro_value *list, struct arena *arena,
                                   struct manifest_file *file, struct error *err)
{
    if (!list || list->type->kind != AVRO_ARRAY)
        return STATUS_OK;
    struct partition_summary *partitions = arena_alloc_zero(arena, list->count, sizeof *partitions);
    if (!partitions)
        return error_set(err, STATUS_NO_MEMORY, "manifest list: out of memory");
    for (uint32_t i = 0; i < list->count; i++) {
        const struct avro_value *record = &list->items[i];
        const struct avro_value *has_null = avro_get(record, 509), *has_nan = avro_get(record, 518);
        struct span bound;
        partitions[i].contains_null = !has_null || has_null->integer;
        partitions[i].contains_nan = has_nan ? has_nan->integer != 0 : -1;
        if (avro_get_bytes(record, 510, &bound))
            TRY(copy_bytes(bound, arena, &partitions[i].lower, err));
        if (avro_get_bytes(record, 511, &bound))
            TRY(copy_bytes(bound, arena, &partitions[i].upper, err));
    }
    file->partitions = partitions;
    file->partition_count = list->count;
    return STATUS_OK;
}

static enum status read_file(const struct avro_value *record, struct arena *arena,
                             struct manifest_file *file, struct error *err)
{
    struct span path, key_metadata;
    int64_t spec_id = 0, content = 0;
    file->added_files = file->existing_files = file->deleted_files = -1;
    file->added_rows = file->existing_rows = file->deleted_rows = -1;
    const struct {
        int32_t field_id;
        int64_t *number;
    } numbers[] = {
        {501, &file->length},
        {502, &spec_id},
        {517, &content},
        {515, &file->sequence_number},
        {516, &file->min_sequence_number},
        {503, &file->added_snapshot_id},
        {504, &file->added_files},
        {505, &file->existing_files},
        {506, &file->deleted_files},
        {512, &file->added_rows},
        {513, &file->existing_rows},
        {514, &file->deleted_rows},
    };
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        avro_get_long(record, numbers[i].field_id, numbers[i].number);
    if (!avro_get_bytes(record, 500, &path) || memchr(path.data, 0, path.length) ||
        file->length < 0 || spec_id < 0 || spec_id > INT32_MAX || content < 0 || content > 1)
        return error_set(err, STATUS_CORRUPT,
                         "a row without fitting path, length, spec or content");
    file->path = arena_copy_text(arena, (const char *)path.data, path.length);
    if (!file->path)
        return error_set(err, STATUS_NO_MEMORY, "manifest list: out of memory");
    file->spec_id = (int32_t)spec_id;
    file->content = (int32_t)content;
    if (avro_get_bytes(record, 519, &key_metadata))
        TRY(copy_bytes(key_metadata, arena, &file->key_metadata, err));
    return read_partitions(avro_get(record, 507), arena, file, err);
}

static enum status grow(struct manifest_file **files, size_t count, size_t *capacity,
                        struct arena *arena, struct error *err)
{
    if (count < *capacity)
        return STATUS_OK;
    size_t wanted = *capacity ? *capacity * 2 : 32;
    struct manifest_file *more = arena_alloc_zero(arena, wanted, sizeof *more);
    if (!more)
        return error_set(err, STATUS_NO_MEMORY, "manifest list: out of memory");
    if (count)
        memcpy(more, *files, count * sizeof *more);
    *files = more;
    *capacity = wanted;
    return STATUS_OK;
}

enum status iceberg_list_read(struct store *store, const char *uri, struct arena *arena,
                              struct manifest_file **out_files, size_t *out_count,
                              struct error *err)
{
    struct buf bytes;
    struct arena records;
    struct avro_reader *reader = NULL;
    struct manifest_file *files = NULL;
    const struct avro_value *record;
    size_t count = 0, capacity = 0;
    enum status status;
    buf_init(&bytes, 0);
    arena_init(&records, 0);
    TRY_OR_DONE(status, store_get(store, uri, ICEBERG_MANIFEST_BYTES_MAX, &bytes, err));
    TRY_OR_DONE(status, avro_reader_create(span_of(bytes.data, bytes.length), NULL, &reader, err));
    while ((status = avro_reader_next(reader, &records, &record, err)) == STATUS_OK) {
        TRY_OR_DONE(status, grow(&files, count, &capacity, arena, err));
        TRY_OR_DONE(status, read_file(record, arena, &files[count++], err));
        arena_clear(&records);
    }
    if (status == STATUS_NOT_FOUND) { /* its end */
        *out_files = files;
        *out_count = count;
        status = STATUS_OK;
    }
done:
    /* Not there, or not what it should be: the table is damaged, not our input. */
    if (status == STATUS_NOT_FOUND || status == STATUS_INVALID)
        err->status = status = STATUS_CORRUPT;
    avro_reader_destroy(reader);
    arena_deinit(&records);
    buf_deinit(&bytes);
    return status == STATUS_OK ? STATUS_OK : error_prefix(err, "manifest list %.200s", uri);
}
