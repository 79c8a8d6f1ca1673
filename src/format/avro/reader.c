/* SPDX-License-Identifier: Apache-2.0
 *
 * Container file reader. A block is expanded whole, then its records are walked along the writer's
 * schema. What bounds a hostile file: a block never holds more records than bytes, an array never
 * more items than bytes are left, values nest to depth_max, and a record may not have many more
 * values than its block has bytes (types without bytes, referred to many times, would multiply).
 */
#include "format/avro/avro_internal.h"
#include "format/codec/codec.h"

enum { SYNC_BYTES = 16, HEADER_ENTRIES_MAX = 10000, FREE_VALUES = 100000 };

struct header_entry {
    struct span key, value;
};

struct avro_reader {
    struct avro_limits limits;
    struct arena arena; /* types and header entries */
    const struct avro_type *type;
    struct header_entry *entries;
    size_t entry_count;
    bool is_deflate;
    const uint8_t *sync;
    struct cursor file; /* behind the current block */
    size_t file_bytes;
    struct buf expanded; /* deflate: the current block */
    struct cursor block;
    int64_t records_left; /* in the current block */
    uint64_t values_left; /* of the current record */
};

struct avro_limits avro_limits_default(void)
{
    return (struct avro_limits){
        .block_bytes_max = (size_t)256 << 20, .type_count_max = 20000, .depth_max = 32};
}

/* ---- access ---- */

const struct avro_value *avro_get(const struct avro_value *record, int32_t field_id)
{
    if (!record || record->type->kind != AVRO_RECORD || field_id < 0)
        return NULL;
    for (uint32_t i = 0; i < record->count; i++) {
        if (record->type->fields[i].field_id == field_id)
            return record->items[i].type->kind == AVRO_NULL ? NULL : &record->items[i];
    }
    return NULL;
}

const struct avro_value *avro_get_named(const struct avro_value *record, const char *name)
{
    if (!record || record->type->kind != AVRO_RECORD)
        return NULL;
    for (uint32_t i = 0; i < record->count; i++) {
        if (strcmp(record->type->fields[i].name, name) == 0)
            return record->items[i].type->kind == AVRO_NULL ? NULL : &record->items[i];
    }
    return NULL;
}

bool avro_get_long(const struct avro_value *record, int32_t field_id, int64_t *out_value)
{
    const struct avro_value *value = avro_get(record, field_id);
    if (!value || (value->type->kind != AVRO_INT && value->type->kind != AVRO_LONG))
        return false;
    *out_value = value->integer;
    return true;
}

bool avro_get_bytes(const struct avro_value *record, int32_t field_id, struct span *out_bytes)
{
    const struct avro_value *value = avro_get(record, field_id);
    if (!value || (value->type->kind != AVRO_BYTES && value->type->kind != AVRO_STRING &&
                   value->type->kind != AVRO_FIXED))
        return false;
    *out_bytes = value->bytes;
    return true;
}

const struct avro_type *avro_reader_type(const struct avro_reader *reader)
{
    return reader->type;
}

bool avro_reader_metadata(const struct avro_reader *reader, const char *key, struct span *out_value)
{
    for (size_t i = 0; i < reader->entry_count; i++) {
        if (span_equal(reader->entries[i].key, span_of_text(key))) {
            *out_value = reader->entries[i].value;
            return true;
        }
    }
    return false;
}

/* ---- header ---- */

/* The item count of the next block of an array or map; 0 ends it. A negative count is followed by
 * the block's size in bytes, which we do not need. */
static uint64_t read_count(struct cursor *cursor)
{
    int64_t count = cursor_get_zigzag(cursor);
    if (count >= 0)
        return (uint64_t)count;
    cursor_get_zigzag(cursor);
    return 0 - (uint64_t)count;
}

static struct span read_bytes(struct cursor *cursor)
{
    int64_t length = cursor_get_zigzag(cursor);
    if (length < 0)
        cursor->failed = true;
    const uint8_t *place = cursor_take(cursor, cursor->failed ? 0 : (size_t)length);
    return place ? span_of(place, (size_t)length) : (struct span){0};
}

static enum status read_entries(struct avro_reader *reader, struct error *err)
{
    struct cursor *file = &reader->file;
    for (uint64_t count; (count = read_count(file)) > 0 && !file->failed;) {
        if (count > HEADER_ENTRIES_MAX - reader->entry_count || count > cursor_left(file))
            return error_set(err, STATUS_INVALID, "Avro header: too many entries");
        size_t total = reader->entry_count + (size_t)count;
        struct header_entry *entries = arena_alloc_zero(&reader->arena, total, sizeof *entries);
        if (!entries)
            return error_set(err, STATUS_NO_MEMORY, "Avro header: out of memory");
        if (reader->entry_count)
            memcpy(entries, reader->entries, reader->entry_count * sizeof *entries);
        reader->entries = entries;
        while (reader->entry_count < total && !file->failed) {
            struct header_entry *entry = &entries[reader->entry_count++];
            entry->key = read_bytes(file);
            entry->value = read_bytes(file);
        }
    }
    return STATUS_OK;
}

static enum status read_header(struct avro_reader *reader, struct error *err)
{
    const uint8_t *magic = cursor_take(&reader->file, 4);
    if (!magic || memcmp(magic, "Obj\x01", 4) != 0)
        return error_set(err, STATUS_INVALID, "not an Avro container file");
    TRY(read_entries(reader, err));
    reader->sync = cursor_take(&reader->file, SYNC_BYTES);
    if (!reader->sync)
        return error_set(err, STATUS_INVALID, "Avro header: ends too early");
    struct span codec = span_of_text("null"), schema;
    avro_reader_metadata(reader, "avro.codec", &codec);
    reader->is_deflate = span_equal(codec, span_of_text("deflate"));
    if (!reader->is_deflate && !span_equal(codec, span_of_text("null")))
        return error_set(err, STATUS_UNSUPPORTED, "Avro codec \"%.*s\"",
                         (int)size_min(codec.length, 32), (const char *)codec.data);
    if (!avro_reader_metadata(reader, "avro.schema", &schema))
        return error_set(err, STATUS_INVALID, "Avro header: no schema");
    return avro_schema_parse(schema, &reader->limits, &reader->arena, &reader->type, err);
}

enum status avro_reader_create(struct span file, const struct avro_limits *limits,
                               struct avro_reader **out_reader, struct error *err)
{
    struct avro_reader *reader = mem_alloc_zero(1, sizeof *reader);
    if (!reader)
        return error_set(err, STATUS_NO_MEMORY, "Avro reader: out of memory");
    reader->limits = limits ? *limits : avro_limits_default();
    reader->file = cursor_of(file.data, file.length);
    reader->file_bytes = file.length;
    arena_init(&reader->arena, (size_t)64 << 20);
    buf_init(&reader->expanded, 0);
    enum status status = read_header(reader, err);
    if (status == STATUS_OK)
        *out_reader = reader;
    else
        avro_reader_destroy(reader);
    return status;
}

void avro_reader_destroy(struct avro_reader *reader)
{
    if (!reader)
        return;
    arena_deinit(&reader->arena);
    buf_deinit(&reader->expanded);
    mem_free(reader);
}

/* ---- blocks ---- */

static enum status corrupt(const struct avro_reader *reader, const char *what, struct error *err)
{
    return error_set(err, STATUS_CORRUPT, "Avro block before byte %zu: %s",
                     reader->file_bytes - cursor_left(&reader->file), what);
}

/* Python's Avro writers (PyIceberg's too) cut the deflate data out of a zlib stream and leave three
 * of the four bytes of its checksum behind; some leave all four. */
static enum status expand_block(struct avro_reader *reader, struct span data, struct error *err)
{
    static const size_t leftovers[] = {0, 3, 4};
    enum status status = STATUS_INVALID;
    for (size_t i = 0; i < COUNT_OF(leftovers) && status == STATUS_INVALID; i++) {
        if (data.length < leftovers[i])
            break;
        buf_clear(&reader->expanded);
        status = codec_expand(CODEC_DEFLATE, span_of(data.data, data.length - leftovers[i]),
                              reader->limits.block_bytes_max, &reader->expanded, err);
    }
    if (status == STATUS_OK)
        return STATUS_OK;
    if (status == STATUS_INVALID)
        err->status = STATUS_CORRUPT;
    return error_prefix(err, "Avro block before byte %zu",
                        reader->file_bytes - cursor_left(&reader->file));
}

/* Opens the next block that has records; NOT_FOUND at the end of the file. */
static enum status open_block(struct avro_reader *reader, struct error *err)
{
    struct cursor *file = &reader->file;
    while (reader->records_left == 0) {
        if (cursor_left(&reader->block))
            return corrupt(reader, "bytes behind its last record", err);
        if (cursor_left(file) == 0)
            return error_set(err, STATUS_NOT_FOUND, "end of the Avro file");
        int64_t count = cursor_get_zigzag(file);
        struct span data = read_bytes(file);
        const uint8_t *sync = cursor_take(file, SYNC_BYTES);
        if (!sync || count < 0)
            return corrupt(reader, "ends too early", err);
        if (memcmp(sync, reader->sync, SYNC_BYTES) != 0)
            return corrupt(reader, "wrong sync marker", err);
        if (reader->is_deflate) {
            TRY(expand_block(reader, data, err));
            data = span_of(reader->expanded.data, reader->expanded.length);
        }
        if ((uint64_t)count > data.length)
            return corrupt(reader, "more records than bytes", err);
        reader->block = cursor_of(data.data, data.length);
        reader->records_left = count;
    }
    return STATUS_OK;
}

/* ---- values ---- */

static enum status decode(struct avro_reader *reader, const struct avro_type *type, uint32_t depth,
                          struct arena *arena, struct avro_value *out, struct error *err);

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "Avro record: out of memory");
}

static enum status decode_record(struct avro_reader *reader, const struct avro_type *type,
                                 uint32_t depth, struct arena *arena, struct avro_value *out,
                                 struct error *err)
{
    if (type->field_count > reader->values_left)
        return corrupt(reader, "a record of too many values", err);
    out->items = arena_alloc_zero(arena, type->field_count, sizeof *out->items);
    if (!out->items)
        return out_of_memory(err);
    for (uint32_t i = 0; i < type->field_count; i++)
        TRY(decode(reader, type->fields[i].type, depth, arena, &out->items[i], err));
    out->count = type->field_count;
    return STATUS_OK;
}

/* Arrays and maps: runs of items until a run of none. */
static enum status decode_runs(struct avro_reader *reader, const struct avro_type *type,
                               uint32_t depth, struct arena *arena, struct avro_value *out,
                               struct error *err)
{
    uint32_t width = type->kind == AVRO_MAP ? 2 : 1;
    for (uint64_t run; (run = read_count(&reader->block)) > 0 && !reader->block.failed;) {
        if (run > cursor_left(&reader->block) || run > UINT32_MAX / 4 - out->count)
            return corrupt(reader, "an array of more items than bytes", err);
        uint32_t total = out->count + (uint32_t)run * width;
        struct avro_value *items = arena_alloc_zero(arena, total, sizeof *items);
        if (!items)
            return out_of_memory(err);
        if (out->count)
            memcpy(items, out->items, out->count * sizeof *items);
        out->items = items;
        for (; out->count < total; out->count++)
            TRY(decode(reader, type->fields[out->count % width].type, depth, arena,
                       &items[out->count], err));
    }
    return STATUS_OK;
}

static enum status decode_bytes(struct avro_reader *reader, const struct avro_type *type,
                                struct arena *arena, struct avro_value *out, struct error *err)
{
    struct span bytes = {0};
    if (type->kind == AVRO_FIXED) {
        const uint8_t *place = cursor_take(&reader->block, type->fixed_bytes);
        bytes = span_of(place, place ? type->fixed_bytes : 0);
    } else {
        bytes = read_bytes(&reader->block);
    }
    char *copy = arena_copy_text(arena, (const char *)bytes.data, bytes.length);
    if (!copy)
        return out_of_memory(err);
    out->bytes = span_of(copy, bytes.length);
    return STATUS_OK;
}

static enum status decode_union(struct avro_reader *reader, const struct avro_type *type,
                                uint32_t depth, struct arena *arena, struct avro_value *out,
                                struct error *err)
{
    int64_t branch = cursor_get_zigzag(&reader->block);
    if (branch < 0 || branch >= type->field_count)
        return corrupt(reader, "a union's branch out of range", err);
    return decode(reader, type->fields[branch].type, depth, arena, out, err);
}

static int64_t decode_integer(struct cursor *block, enum avro_kind kind)
{
    if (kind == AVRO_BOOLEAN) {
        uint8_t byte = cursor_get_byte(block);
        block->failed |= byte > 1;
        return byte;
    }
    int64_t value = cursor_get_zigzag(block);
    if (kind != AVRO_LONG && (value < INT32_MIN || value > INT32_MAX))
        block->failed = true;
    return value;
}

static double decode_real(struct cursor *block, enum avro_kind kind)
{
    if (kind == AVRO_FLOAT) {
        uint32_t bits = cursor_get_le32(block);
        float value;
        memcpy(&value, &bits, sizeof value);
        return (double)value;
    }
    uint64_t bits = cursor_get_le64(block);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static enum status decode(struct avro_reader *reader, const struct avro_type *type, uint32_t depth,
                          struct arena *arena, struct avro_value *out, struct error *err)
{
    if (depth >= reader->limits.depth_max)
        return corrupt(reader, "values nested too deep", err);
    if (reader->values_left == 0)
        return corrupt(reader, "a record of too many values", err);
    reader->values_left--;
    out->type = type;
    switch (type->kind) {
    case AVRO_NULL:
        break;
    case AVRO_FLOAT:
    case AVRO_DOUBLE:
        out->real = decode_real(&reader->block, type->kind);
        break;
    case AVRO_BYTES:
    case AVRO_STRING:
    case AVRO_FIXED:
        TRY(decode_bytes(reader, type, arena, out, err));
        break;
    case AVRO_RECORD:
        TRY(decode_record(reader, type, depth + 1, arena, out, err));
        break;
    case AVRO_ARRAY:
    case AVRO_MAP:
        TRY(decode_runs(reader, type, depth + 1, arena, out, err));
        break;
    case AVRO_UNION:
        TRY(decode_union(reader, type, depth + 1, arena, out, err));
        break;
    case AVRO_ENUM:
        out->integer = decode_integer(&reader->block, AVRO_ENUM);
        if (out->integer < 0 || out->integer >= type->symbol_count)
            return corrupt(reader, "an enum's symbol out of range", err);
        break;
    case AVRO_BOOLEAN:
    case AVRO_INT:
    case AVRO_LONG:
        out->integer = decode_integer(&reader->block, type->kind);
        break;
    }
    return reader->block.failed ? corrupt(reader, "ends inside a value", err) : STATUS_OK;
}

enum status avro_reader_next(struct avro_reader *reader, struct arena *arena,
                             const struct avro_value **out_record, struct error *err)
{
    TRY(open_block(reader, err));
    struct avro_value *record = arena_alloc_zero(arena, 1, sizeof *record);
    if (!record)
        return out_of_memory(err);
    reader->values_left = FREE_VALUES + cursor_left(&reader->block);
    TRY(decode(reader, reader->type, 0, arena, record, err));
    reader->records_left--;
    *out_record = record;
    return STATUS_OK;
}
