/* SPDX-License-Identifier: Apache-2.0
 *
 * What a lane keeps on disk, beside the table: <table>.journal (an intent or a descriptor),
 * <table>.checkpoint, <table>.halt, <table>.doubt. Each is one line with kind, format version,
 * length and CRC32C, then a JSON document (docs/format/journal.md), replaced as a whole: written,
 * synced, renamed, its directory synced. A file that does not verify is CORRUPT, never taken for
 * missing.
 */
#include <stdio.h>

#include "flow/publish/publish_internal.h"

enum { JOURNAL_VERSION = 0, FILE_BYTES_MAX = 64 << 20 };

void record_deinit(struct record *record)
{
    arena_deinit(&record->arena);
    *record = (struct record){0};
}

static enum status path_of(const struct lane *lane, const char *kind, char out[PATH_BYTES_MAX],
                           struct error *err)
{
    char name[WAL_TABLE_NAME_MAX + 32];
    snprintf(name, sizeof name, "%s.%s", lane->name, kind);
    return path_join(out, lane->publisher->state_dir, name, err);
}

static enum status damaged(const struct lane *lane, const char *kind, struct error *err)
{
    char path[PATH_BYTES_MAX];
    TRY(path_of(lane, kind, path, err));
    return error_set(err, STATUS_CORRUPT, "%s is damaged", path);
}

static enum status save_file(struct lane *lane, const char *kind, const struct buf *json,
                             struct error *err)
{
    char path[PATH_BYTES_MAX];
    struct buf file = {0};
    TRY(buf_status(json, kind, err));
    TRY(path_of(lane, kind, path, err));
    buf_format(&file, "sluice-%s %d %zu %08x\n", kind, (int)JOURNAL_VERSION, json->length,
               crc32c(0, json->data, json->length));
    buf_put(&file, json->data, json->length);
    enum status status = buf_status(&file, kind, err);
    if (status == STATUS_OK)
        status = files_replace(lane->publisher->env, path, file.data, file.length, err);
    buf_deinit(&file);
    return status == STATUS_OK ? STATUS_OK : error_prefix(err, "%s of %s", kind, lane->name);
}

/* NOT_FOUND; CORRUPT. */
static enum status load_file(struct lane *lane, const char *kind, struct arena *arena,
                             struct json_value **out_json, struct error *err)
{
    char path[PATH_BYTES_MAX], found_kind[32] = "";
    struct buf file = {0};
    size_t length = 0;
    int version = -1, header = 0;
    unsigned crc = 0;
    TRY(path_of(lane, kind, path, err));
    enum status status = files_read(lane->publisher->env, path, FILE_BYTES_MAX, &file, err);
    if (status != STATUS_OK) {
        buf_deinit(&file);
        return status == STATUS_LIMIT ? damaged(lane, kind, err) : status;
    }
    buf_put_byte(&file, '\0');
    status = buf_status(&file, path, err);
    if (status != STATUS_OK) {
        buf_deinit(&file);
        return status;
    }
    bool is_whole = file.length > 1 &&
                    sscanf((char *)file.data, "sluice-%31s %d %zu %x\n%n", found_kind, &version,
                           &length, &crc, &header) == 4 &&
                    strcmp(found_kind, kind) == 0 && version == JOURNAL_VERSION &&
                    (size_t)header + length + 1 == file.length &&
                    crc32c(0, file.data + header, length) == crc;
    if (is_whole)
        status = json_parse(file.data + header, length, arena, out_json, err);
    if (!is_whole || (status != STATUS_OK && status != STATUS_NO_MEMORY))
        status = damaged(lane, kind, err);
    buf_deinit(&file);
    return status;
}

static enum status remove_file(struct lane *lane, const char *kind, struct error *err)
{
    char path[PATH_BYTES_MAX];
    TRY(path_of(lane, kind, path, err));
    return files_remove(lane->publisher->env, path, err);
}

/* ---- pieces ---- */

static void put_text(struct json_writer *writer, const char *key, const char *text)
{
    json_write_key(writer, key);
    json_write_text(writer, text);
}

static void put_i64(struct json_writer *writer, const char *key, int64_t value)
{
    json_write_key(writer, key);
    json_write_i64(writer, value);
}

static void put_positions(struct json_writer *writer, const char *key,
                          const struct positions *positions)
{
    struct buf text = {0};
    positions_to_text(positions, &text);
    json_write_key(writer, key);
    json_write_string(writer, text.data, text.length);
    writer->out->failed |= text.failed;
    buf_deinit(&text);
}

static void put_epoch(struct json_writer *writer, struct epoch epoch)
{
    char text[48];
    epoch_to_text(epoch, text);
    put_text(writer, "epoch", text);
}

static bool get_text(const struct json_value *json, const char *key, char *out, size_t bytes)
{
    const char *text = json_get_text(json, key);
    return text && (size_t)snprintf(out, bytes, "%s", text) < bytes;
}

static bool get_positions(const struct lane *lane, const struct json_value *json, const char *key,
                          struct positions *out)
{
    const char *text = json_get_text(json, key);
    return text && positions_from_text(text, out) && out->count == lane->publisher->group_count;
}

static bool get_epoch(const struct json_value *json, struct epoch *out)
{
    const char *text = json_get_text(json, "epoch");
    return text && epoch_from_text(text, out);
}

/* ---- checkpoint ---- */

enum status checkpoint_save(struct lane *lane, const struct checkpoint *checkpoint,
                            struct error *err)
{
    struct buf json = {0};
    struct json_writer writer;
    json_writer_init(&writer, &json);
    json_write_object_begin(&writer);
    put_text(&writer, "owner", checkpoint->owner);
    put_text(&writer, "uuid", checkpoint->uuid);
    put_epoch(&writer, checkpoint->epoch);
    put_positions(&writer, "committed", &checkpoint->committed);
    put_positions(&writer, "through", &checkpoint->through);
    put_i64(&writer, "snapshot-id", checkpoint->snapshot_id);
    put_i64(&writer, "sequence", checkpoint->sequence);
    json_write_object_end(&writer);
    enum status status = save_file(lane, "checkpoint", &json, err);
    buf_deinit(&json);
    TRY(status);
    lane->checkpoint = *checkpoint;
    lane->checkpoint.exists = true;
    return STATUS_OK;
}

enum status checkpoint_load(struct lane *lane, struct error *err)
{
    struct checkpoint checkpoint = {.exists = true};
    struct json_value *json = NULL;
    struct arena arena;
    arena_init(&arena, FILE_BYTES_MAX);
    enum status status = load_file(lane, "checkpoint", &arena, &json, err);
    if (status == STATUS_NOT_FOUND) {
        lane->checkpoint = (struct checkpoint){.snapshot_id = -1};
        status = STATUS_OK;
    } else if (status == STATUS_OK) {
        if (!get_text(json, "owner", checkpoint.owner, sizeof checkpoint.owner) ||
            !get_text(json, "uuid", checkpoint.uuid, sizeof checkpoint.uuid) ||
            !get_epoch(json, &checkpoint.epoch) ||
            !get_positions(lane, json, "committed", &checkpoint.committed) ||
            !get_positions(lane, json, "through", &checkpoint.through) ||
            !json_get_i64(json, "snapshot-id", &checkpoint.snapshot_id) ||
            !json_get_i64(json, "sequence", &checkpoint.sequence))
            status = damaged(lane, "checkpoint", err);
        else
            lane->checkpoint = checkpoint;
    }
    arena_deinit(&arena);
    return status;
}

/* ---- data files in a descriptor ---- */

static void put_hex(struct json_writer *writer, const char *key, struct span bytes)
{
    char few[256], *text = few;
    if (bytes.length * 2 + 1 > sizeof few)
        return; /* bounds are short; a longer one can be left out */
    hex_encode(text, bytes.data, bytes.length);
    json_write_key(writer, key);
    json_write_string(writer, text, bytes.length * 2);
}

static void put_value(struct json_writer *writer, const struct iceberg_value *value)
{
    struct buf bytes = {0};
    iceberg_value_encode(value, &bytes);
    uint8_t *text = mem_alloc(bytes.length * 2 + 1);
    if (text && !bytes.failed)
        hex_encode((char *)text, bytes.data, bytes.length);
    else
        writer->out->failed = true;
    json_write_string(writer, text, text ? bytes.length * 2 : 0);
    mem_free(text);
    buf_deinit(&bytes);
}

static void put_file(struct json_writer *writer, const struct iceberg_data_file *file,
                     uint32_t partition_count)
{
    json_write_object_begin(writer);
    put_text(writer, "path", file->path);
    put_i64(writer, "records", file->record_count);
    put_i64(writer, "bytes", file->file_bytes);
    put_i64(writer, "sort-order", file->sort_order_id);
    json_write_key(writer, "partition");
    json_write_array_begin(writer);
    for (uint32_t i = 0; i < partition_count; i++) {
        json_write_array_begin(writer);
        json_write_i64(writer, file->partition[i].type);
        if (file->partition[i].is_null)
            json_write_null(writer);
        else
            put_value(writer, &file->partition[i]);
        json_write_array_end(writer);
    }
    json_write_array_end(writer);
    json_write_key(writer, "splits");
    json_write_array_begin(writer);
    for (uint32_t i = 0; i < file->split_count; i++)
        json_write_i64(writer, file->split_offsets[i]);
    json_write_array_end(writer);
    json_write_key(writer, "columns");
    json_write_array_begin(writer);
    for (uint32_t i = 0; i < file->column_count; i++) {
        const struct iceberg_column_metrics *column = &file->columns[i];
        json_write_object_begin(writer);
        put_i64(writer, "id", column->field_id);
        put_i64(writer, "bytes", column->column_bytes);
        put_i64(writer, "values", column->value_count);
        put_i64(writer, "nulls", column->null_count);
        put_i64(writer, "nans", column->nan_count);
        if (column->lower.data)
            put_hex(writer, "lower", column->lower);
        if (column->upper.data)
            put_hex(writer, "upper", column->upper);
        json_write_object_end(writer);
    }
    json_write_array_end(writer);
    json_write_object_end(writer);
}

/* Where a descriptor's parts go while it is read, and whether memory ran out on the way, which is
 * no damage. */
struct reading {
    struct arena *arena;
    bool is_out_of_memory;
};

static void *take(struct reading *reading, size_t bytes)
{
    void *memory = arena_alloc_zero(reading->arena, 1, bytes);
    reading->is_out_of_memory |= !memory;
    return memory;
}

static char *take_text(struct reading *reading, const char *text)
{
    char *copy = take(reading, strlen(text) + 1);
    if (copy)
        memcpy(copy, text, strlen(text));
    return copy;
}

static bool get_hex(const struct json_value *json, const char *key, struct reading *reading,
                    struct span *out_bytes)
{
    const char *text = json_get_text(json, key);
    if (!text)
        return true;
    size_t bytes = strlen(text) / 2;
    uint8_t *data = take(reading, bytes + 1);
    if (!data || !hex_decode(data, bytes, text, strlen(text)))
        return false;
    *out_bytes = span_of(data, bytes);
    return true;
}

static bool get_columns(const struct json_value *json, struct reading *reading,
                        struct iceberg_data_file *file)
{
    const struct json_value *array = json_get(json, "columns");
    if (!array || array->type != JSON_ARRAY)
        return false;
    struct iceberg_column_metrics *columns = take(reading, array->count * sizeof *columns);
    if (!columns)
        return false;
    uint32_t i = 0;
    for (const struct json_value *item = array->first; item; item = item->next, i++) {
        int64_t id;
        if (!json_get_i64(item, "id", &id) ||
            !json_get_i64(item, "bytes", &columns[i].column_bytes) ||
            !json_get_i64(item, "values", &columns[i].value_count) ||
            !json_get_i64(item, "nulls", &columns[i].null_count) ||
            !json_get_i64(item, "nans", &columns[i].nan_count) ||
            !get_hex(item, "lower", reading, &columns[i].lower) ||
            !get_hex(item, "upper", reading, &columns[i].upper))
            return false;
        columns[i].field_id = (int32_t)id;
    }
    file->columns = columns;
    file->column_count = array->count;
    return true;
}

static bool get_partition(const struct json_value *json, struct reading *reading,
                          struct iceberg_data_file *file)
{
    const struct json_value *array = json_get(json, "partition");
    if (!array || array->type != JSON_ARRAY)
        return false;
    struct iceberg_value *values = take(reading, (array->count + 1) * sizeof *values);
    if (!values)
        return false;
    uint32_t i = 0;
    for (const struct json_value *item = array->first; item; item = item->next, i++) {
        const struct json_value *type = json_at(item, 0), *value = json_at(item, 1);
        int64_t number;
        if (!type || !value || !json_value_i64(type, &number))
            return false;
        struct error ignored;
        uint8_t *bytes = take(reading, value->length / 2 + 1);
        values[i].type = (enum iceberg_type)number;
        values[i].is_null = value->type == JSON_NULL;
        if (values[i].is_null)
            continue;
        if (value->type != JSON_STRING || !bytes ||
            !hex_decode(bytes, value->length / 2, value->text, value->length) ||
            iceberg_value_decode(values[i].type, span_of(bytes, value->length / 2), &values[i],
                                 &ignored) != STATUS_OK)
            return false;
    }
    file->partition = values;
    return true;
}

static bool get_splits(const struct json_value *json, struct reading *reading,
                       struct iceberg_data_file *file)
{
    const struct json_value *array = json_get(json, "splits");
    if (!array || array->type != JSON_ARRAY)
        return false;
    int64_t *splits = take(reading, (array->count + 1) * sizeof *splits);
    uint32_t i = 0;
    for (const struct json_value *item = array->first; item && splits; item = item->next) {
        if (!json_value_i64(item, &splits[i++]))
            return false;
    }
    file->split_offsets = splits;
    file->split_count = array->count;
    return splits != NULL;
}

static bool get_file(const struct json_value *json, struct reading *reading, int32_t spec_id,
                     struct iceberg_data_file *file)
{
    const char *path = json_get_text(json, "path");
    int64_t order;
    *file = (struct iceberg_data_file){
        .content = ICEBERG_DATA, .format = "PARQUET", .spec_id = spec_id};
    if (!path || !json_get_i64(json, "records", &file->record_count) ||
        !json_get_i64(json, "bytes", &file->file_bytes) ||
        !json_get_i64(json, "sort-order", &order))
        return false;
    file->path = take_text(reading, path);
    file->sort_order_id = (int32_t)order;
    return file->path && get_partition(json, reading, file) && get_splits(json, reading, file) &&
           get_columns(json, reading, file);
}

/* ---- record ---- */

static void put_descriptor(struct json_writer *writer, const struct record *record)
{
    char row_sum[33], attempt[UUID_TEXT_BYTES];
    hash128_to_text(record->row_sum, row_sum);
    put_positions(writer, "to", &record->to);
    put_text(writer, "digest", record->digest);
    put_text(writer, "row-sum", row_sum);
    put_i64(writer, "rows", (int64_t)record->rows);
    put_i64(writer, "snapshot-id", record->snapshot_id);
    put_i64(writer, "spec-id", record->spec_id);
    put_i64(writer, "partition-fields", record->partition_count);
    put_i64(writer, "schema-id", record->schema_id);
    put_text(writer, "base-uuid", record->base.uuid);
    put_i64(writer, "base-snapshot-id", record->base.snapshot_id);
    put_i64(writer, "base-sequence", record->base.last_sequence_number);
    put_i64(writer, "base-updated-ms", record->base.last_updated_ms);
    json_write_key(writer, "attempts");
    json_write_array_begin(writer);
    for (uint32_t i = 0; i < record->attempt_count; i++) {
        uuid_to_text(record->attempts[i], attempt);
        json_write_text(writer, attempt);
    }
    json_write_array_end(writer);
    json_write_key(writer, "files");
    json_write_array_begin(writer);
    for (size_t i = 0; i < record->file_count; i++) {
        put_file(writer, &record->files[i], record->partition_count);
    }
    json_write_array_end(writer);
}

enum status record_save(struct lane *lane, const struct record *record, struct error *err)
{
    struct buf json = {0};
    struct json_writer writer;
    json_writer_init(&writer, &json);
    json_write_object_begin(&writer);
    put_text(&writer, "state", record->is_descriptor ? "descriptor" : "intent");
    put_text(&writer, "owner", record->owner);
    put_text(&writer, "uuid", record->uuid);
    put_epoch(&writer, record->epoch);
    put_positions(&writer, "from", &record->from);
    put_text(&writer, "prefix", record->prefix);
    if (record->is_descriptor)
        put_descriptor(&writer, record);
    json_write_object_end(&writer);
    enum status status = save_file(lane, "journal", &json, err);
    buf_deinit(&json);
    return status;
}

static bool get_descriptor(const struct lane *lane, const struct json_value *json,
                           struct reading *reading, struct record *record)
{
    const struct json_value *files = json_get(json, "files"),
                            *attempts = json_get(json, "attempts");
    const char *row_sum = json_get_text(json, "row-sum");
    int64_t rows, spec_id, schema_id, partition_count;
    if (!files || files->type != JSON_ARRAY || !attempts || attempts->type != JSON_ARRAY ||
        attempts->count > ATTEMPTS_MAX || !row_sum ||
        !hash128_from_text(row_sum, &record->row_sum) ||
        !get_positions(lane, json, "to", &record->to) ||
        !get_text(json, "digest", record->digest, sizeof record->digest) ||
        !json_get_i64(json, "rows", &rows) ||
        !json_get_i64(json, "snapshot-id", &record->snapshot_id) ||
        !json_get_i64(json, "spec-id", &spec_id) || !json_get_i64(json, "schema-id", &schema_id) ||
        !json_get_i64(json, "partition-fields", &partition_count) ||
        !get_text(json, "base-uuid", record->base.uuid, sizeof record->base.uuid) ||
        !json_get_i64(json, "base-snapshot-id", &record->base.snapshot_id) ||
        !json_get_i64(json, "base-sequence", &record->base.last_sequence_number) ||
        !json_get_i64(json, "base-updated-ms", &record->base.last_updated_ms))
        return false;
    record->rows = (uint64_t)rows;
    record->spec_id = (int32_t)spec_id;
    record->schema_id = (int32_t)schema_id;
    record->partition_count = (uint32_t)partition_count;
    for (const struct json_value *item = attempts->first; item; item = item->next) {
        if (item->type != JSON_STRING ||
            !uuid_from_text(item->text, item->length, &record->attempts[record->attempt_count++]))
            return false;
    }
    record->files = take(reading, (files->count + 1) * sizeof *record->files);
    for (const struct json_value *item = files->first; item; item = item->next) {
        if (!record->files ||
            !get_file(item, reading, record->spec_id, &record->files[record->file_count++]))
            return false;
    }
    return record->files != NULL;
}

enum status record_load(struct lane *lane, struct error *err)
{
    struct record record = {.exists = true};
    struct reading reading = {.arena = &record.arena};
    struct json_value *json = NULL;
    struct arena arena;
    arena_init(&arena, (size_t)4 * FILE_BYTES_MAX);
    enum status status = load_file(lane, "journal", &arena, &json, err);
    if (status == STATUS_NOT_FOUND) {
        record = (struct record){0};
        status = STATUS_OK;
    } else if (status == STATUS_OK) {
        const char *state = json_get_text(json, "state");
        record.is_descriptor = state && strcmp(state, "descriptor") == 0;
        if (!state || !get_text(json, "owner", record.owner, sizeof record.owner) ||
            !get_text(json, "uuid", record.uuid, sizeof record.uuid) ||
            !get_epoch(json, &record.epoch) || !get_positions(lane, json, "from", &record.from) ||
            !get_text(json, "prefix", record.prefix, sizeof record.prefix) ||
            (record.is_descriptor && !get_descriptor(lane, json, &reading, &record)))
            status =
                reading.is_out_of_memory
                    ? error_set(err, STATUS_NO_MEMORY, "journal of %s: out of memory", lane->name)
                    : damaged(lane, "journal", err);
    }
    arena_deinit(&arena);
    if (status != STATUS_OK) {
        record_deinit(&record);
        return status;
    }
    record_deinit(&lane->record);
    lane->record = record;
    return STATUS_OK;
}

enum status record_remove(struct lane *lane, struct error *err)
{
    TRY(remove_file(lane, "journal", err));
    record_deinit(&lane->record);
    return STATUS_OK;
}

/* ---- halt ---- */

static const char *const causes[CAUSE_COUNT] = {[CAUSE_TABLE] = "table",
                                                [CAUSE_DAMAGE] = "damage",
                                                [CAUSE_RECLAIMED] = "reclaimed",
                                                [CAUSE_IDENTITY] = "identity"};

enum status halt_save(struct lane *lane, struct error *err)
{
    struct buf json = {0};
    struct json_writer writer;
    json_writer_init(&writer, &json);
    json_write_object_begin(&writer);
    put_text(&writer, "state", lane->state == PUBLISH_STOOD_DOWN ? "stood-down" : "halted");
    put_text(&writer, "cause", causes[lane->halt_cause]);
    put_text(&writer, "reason", lane->reason);
    put_text(&writer, "remedy", lane->remedy);
    json_write_object_end(&writer);
    enum status status = save_file(lane, "halt", &json, err);
    buf_deinit(&json);
    return status;
}

enum status halt_load(struct lane *lane, struct error *err)
{
    struct json_value *json = NULL;
    struct arena arena;
    arena_init(&arena, FILE_BYTES_MAX);
    enum status status = load_file(lane, "halt", &arena, &json, err);
    if (status == STATUS_OK) {
        const char *state = json_get_text(json, "state");
        lane->state =
            state && strcmp(state, "stood-down") == 0 ? PUBLISH_STOOD_DOWN : PUBLISH_HALTED;
        const char *cause = json_get_text(json, "cause");
        lane->halt_cause = CAUSE_TABLE;
        for (int i = 0; cause && i < CAUSE_COUNT; i++)
            if (strcmp(cause, causes[i]) == 0)
                lane->halt_cause = (enum halt_cause)i;
        get_text(json, "reason", lane->reason, sizeof lane->reason);
        get_text(json, "remedy", lane->remedy, sizeof lane->remedy);
    }
    arena_deinit(&arena);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status halt_remove(struct lane *lane, struct error *err)
{
    return remove_file(lane, "halt", err);
}

/* ---- doubt ---- */

enum status doubt_save(struct lane *lane, struct error *err)
{
    struct buf json = {0};
    struct json_writer writer;
    json_writer_init(&writer, &json);
    json_write_object_begin(&writer);
    put_i64(&writer, "missing-sequence", lane->lost_sequence);
    json_write_object_end(&writer);
    enum status status = save_file(lane, "doubt", &json, err);
    if (status == STATUS_OK)
        lane->kept_sequence = lane->lost_sequence;
    buf_deinit(&json);
    return status;
}

enum status doubt_load(struct lane *lane, struct error *err)
{
    struct json_value *json = NULL;
    struct arena arena;
    arena_init(&arena, FILE_BYTES_MAX);
    enum status status = load_file(lane, "doubt", &arena, &json, err);
    if (status == STATUS_OK && !json_get_i64(json, "missing-sequence", &lane->lost_sequence))
        status = damaged(lane, "doubt", err);
    lane->kept_sequence = lane->lost_sequence;
    arena_deinit(&arena);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status doubt_remove(struct lane *lane, struct error *err)
{
    TRY(remove_file(lane, "doubt", err));
    lane->lost_sequence = lane->kept_sequence = 0;
    return STATUS_OK;
}

/* ---- trim ---- */

enum status gaps_save(struct lane *lane, struct error *err)
{
    struct buf json = {0};
    struct json_writer writer;
    json_writer_init(&writer, &json);
    json_write_object_begin(&writer);
    json_write_key(&writer, "gaps");
    json_write_array_begin(&writer);
    for (size_t i = 0; i < lane->gap_count; i++) {
        const struct gap *gap = &lane->gaps[i];
        json_write_object_begin(&writer);
        put_i64(&writer, "group", gap->group);
        put_i64(&writer, "first", (int64_t)gap->first);
        put_i64(&writer, "last", (int64_t)gap->last);
        json_write_key(&writer, "is-told");
        json_write_bool(&writer, gap->is_told);
        json_write_object_end(&writer);
    }
    json_write_array_end(&writer);
    json_write_object_end(&writer);
    enum status status = save_file(lane, "trim", &json, err);
    buf_deinit(&json);
    return status;
}

enum status gaps_load(struct lane *lane, struct error *err)
{
    struct json_value *json = NULL;
    struct arena arena;
    arena_init(&arena, FILE_BYTES_MAX);
    enum status status = load_file(lane, "trim", &arena, &json, err);
    const struct json_value *gaps = status == STATUS_OK ? json_get(json, "gaps") : NULL;
    for (const struct json_value *item = gaps ? gaps->first : NULL; item && status == STATUS_OK;
         item = item->next) {
        int64_t group, first, last;
        struct gap gap = {0};
        if (!json_get_i64(item, "group", &group) || !json_get_i64(item, "first", &first) ||
            !json_get_i64(item, "last", &last) || !json_get_bool(item, "is-told", &gap.is_told)) {
            status = damaged(lane, "trim", err);
            break;
        }
        gap.group = (uint32_t)group;
        gap.first = (uint64_t)first;
        gap.last = (uint64_t)last;
        status = gaps_add(lane, &gap, err);
    }
    arena_deinit(&arena);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}
