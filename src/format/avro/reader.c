/* SPDX-License-Identifier: Apache-2.0
 *
 * Container file reader. A block is expanded whole, then its records are walked along the writer's
 * schema. What bounds a hostile file: a block holds at most AVRO_FREE_VALUES more records than
 * bytes, a record as many more values than AVRO_VALUES_A_BYTE for each byte its block still has
 * (types without bytes, referred to many times, would multiply); values nest to depth_max.
 *
 * A file in memory is walked where it lies. Of one behind a source, the header stays, and a window
 * holds the block at hand.
 */
#include "format/avro/avro_internal.h"
#include "format/codec/codec.h"

enum {
    SYNC_BYTES = 16,
    HEADER_ENTRIES_MAX = 10000,
    HEADER_BYTES_MIN = 1 << 14, /* read at first */
    HEADER_BYTES_MAX = 1 << 24,
    WINDOW_BYTES_MIN = 1 << 16,
    COUNT_BYTES_MAX = 20, /* of a block's two numbers */
};

enum stored_as { STORED_PLAIN, STORED_DEFLATE, STORED_SNAPPY, STORED_ZSTD };

struct header_entry {
    struct span key, value;
};

struct avro_reader {
    struct avro_limits limits;
    struct arena arena; /* types and header entries */
    const struct avro_type *type;
    const struct avro_type *wanted;     /* of a reader's schema; NULL: none */
    struct avro_resolution *resolution; /* with it */
    struct header_entry *entries;
    size_t entry_count;
    enum stored_as codec;
    const uint8_t *sync;
    struct byte_source source;  /* `read` NULL: the file is in memory */
    struct buf header, window;  /* with a source */
    struct cursor file;         /* behind the current block: in the file's memory, or the window */
    uint64_t file_bytes, ahead; /* of all; of those that `file` does not hold yet */
    uint64_t block_at;          /* where the current block begins */
    struct buf expanded;        /* codecs: the current block */
    struct cursor block;
    const uint8_t *block_start;
    int64_t records_left; /* in the current block */
    uint64_t values_left; /* of the current record */
};

struct avro_limits avro_limits_default(void)
{
    return (struct avro_limits){.block_bytes_max = (size_t)AVRO_RECORD_BYTES_MAX / 4 * 5,
                                .type_count_max = 65536,
                                .depth_max = 128};
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
    return reader->wanted ? reader->wanted : reader->type;
}

enum status avro_reader_resolve(struct avro_reader *reader, struct span schema, struct error *err)
{
    if (!reader->resolution && !(reader->resolution = avro_resolution_create()))
        return error_set(err, STATUS_NO_MEMORY, "Avro: no memory for a reader's schema");
    return avro_schema_parse(schema, &reader->limits, &reader->arena, &reader->wanted, err);
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
        if (count > HEADER_ENTRIES_MAX - reader->entry_count)
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

/* Magic, entries and sync mark; entries borrow the bytes. INVALID with `failed` in the cursor where
 * more bytes might help. */
static enum status scan_header(struct avro_reader *reader, struct error *err)
{
    const uint8_t *magic = cursor_take(&reader->file, 4);
    if (!magic || memcmp(magic, "Obj\x01", 4) != 0)
        return error_set(err, STATUS_INVALID, "not an Avro container file");
    TRY(read_entries(reader, err));
    reader->sync = cursor_take(&reader->file, SYNC_BYTES);
    return reader->sync ? STATUS_OK : error_set(err, STATUS_INVALID, "Avro header: ends too early");
}

static enum status understand_header(struct avro_reader *reader, struct error *err)
{
    static const char *const codecs[] = {[STORED_PLAIN] = "null",
                                         [STORED_DEFLATE] = "deflate",
                                         [STORED_SNAPPY] = "snappy",
                                         [STORED_ZSTD] = "zstandard"};
    struct span name = span_of_text(codecs[STORED_PLAIN]), schema;
    size_t codec = 0;
    avro_reader_metadata(reader, "avro.codec", &name);
    while (codec < COUNT_OF(codecs) && !span_equal(name, span_of_text(codecs[codec])))
        codec++;
    if (codec == COUNT_OF(codecs))
        return error_set(err, STATUS_UNSUPPORTED, "Avro codec \"%.*s\"",
                         (int)size_min(name.length, 32), (const char *)name.data);
    reader->codec = (enum stored_as)codec;
    if (!avro_reader_metadata(reader, "avro.schema", &schema))
        return error_set(err, STATUS_INVALID, "Avro header: no schema");
    return avro_schema_parse(schema, &reader->limits, &reader->arena, &reader->type, err);
}

/* From memory: all at once. From a source: in growing steps, until the header is whole. */
static enum status read_header(struct avro_reader *reader, struct error *err)
{
    if (!reader->source.read) {
        TRY(scan_header(reader, err));
        return understand_header(reader, err);
    }
    for (size_t wanted = HEADER_BYTES_MIN;; wanted *= 4) {
        size_t have = reader->header.length;
        size_t bytes = wanted < reader->file_bytes ? wanted : (size_t)reader->file_bytes;
        uint8_t *place = buf_extend(&reader->header, bytes - have);
        if (!place && bytes > have)
            return buf_status(&reader->header, "Avro header", err);
        if (bytes > have)
            TRY(byte_source_read(&reader->source, have, bytes - have, place, err));
        reader->file = cursor_of(reader->header.data, bytes);
        reader->entry_count = 0;
        arena_clear(&reader->arena);
        enum status status = scan_header(reader, err);
        if (status == STATUS_INVALID && reader->file.failed && bytes < reader->file_bytes &&
            bytes < HEADER_BYTES_MAX)
            continue;
        TRY(status);
        reader->ahead = reader->file_bytes - bytes;
        return understand_header(reader, err);
    }
}

static enum status create(struct span file, struct byte_source source,
                          const struct avro_limits *limits, struct avro_reader **out_reader,
                          struct error *err)
{
    struct avro_reader *reader = mem_alloc_zero(1, sizeof *reader);
    if (!reader)
        return error_set(err, STATUS_NO_MEMORY, "Avro reader: out of memory");
    reader->limits = limits ? *limits : avro_limits_default();
    reader->source = source;
    reader->file = cursor_of(file.data, file.length);
    reader->file_bytes = source.read ? source.file_bytes : file.length;
    arena_init(&reader->arena, (size_t)64 << 20);
    enum status status = read_header(reader, err);
    if (status == STATUS_OK)
        *out_reader = reader;
    else
        avro_reader_destroy(reader);
    return status;
}

enum status avro_reader_create(struct span file, const struct avro_limits *limits,
                               struct avro_reader **out_reader, struct error *err)
{
    return create(file, (struct byte_source){.read = NULL}, limits, out_reader, err);
}

enum status avro_reader_open(struct byte_source source, const struct avro_limits *limits,
                             struct avro_reader **out_reader, struct error *err)
{
    return create((struct span){0}, source, limits, out_reader, err);
}

void avro_reader_destroy(struct avro_reader *reader)
{
    if (!reader)
        return;
    avro_resolution_destroy(reader->resolution);
    arena_deinit(&reader->arena);
    buf_deinit(&reader->header);
    buf_deinit(&reader->window);
    buf_deinit(&reader->expanded);
    mem_free(reader);
}

/* ---- blocks ---- */

static enum status corrupt(const struct avro_reader *reader, const char *what, struct error *err)
{
    return error_set(
        err, STATUS_CORRUPT, "Avro block at byte %llu, %s byte %zu: %s",
        (unsigned long long)reader->block_at, reader->codec == STORED_PLAIN ? "data" : "expanded",
        reader->block_start ? (size_t)(reader->block.at - reader->block_start) : 0, what);
}

/* Makes the next `bytes` bytes of the file, or as many as it has, lie behind the cursor. */
static enum status fill(struct avro_reader *reader, size_t bytes, struct error *err)
{
    size_t have = cursor_left(&reader->file);
    if (have >= bytes || reader->ahead == 0)
        return STATUS_OK;
    size_t wanted = size_max(bytes, WINDOW_BYTES_MIN) - have;
    size_t more = wanted < reader->ahead ? wanted : (size_t)reader->ahead;
    if (have && reader->window.length) {
        memmove(reader->window.data, reader->file.at, have);
        buf_truncate(&reader->window, have);
    } else { /* the first bytes still lie in the header's buffer */
        buf_clear(&reader->window);
        buf_put(&reader->window, reader->file.at, have);
    }
    uint8_t *place = buf_extend(&reader->window, more);
    if (!place)
        return buf_status(&reader->window, "Avro block", err);
    TRY(byte_source_read(&reader->source, reader->file_bytes - reader->ahead, more, place, err));
    reader->ahead -= more;
    reader->file = cursor_of(reader->window.data, reader->window.length);
    return STATUS_OK;
}

/* Python's Avro writers (PyIceberg's too) cut the deflate data out of a zlib stream and leave three
 * of the four bytes of its checksum behind; some leave all four. */
static enum status expand_deflate(struct avro_reader *reader, struct span data, struct error *err)
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
    return status;
}

/* A snappy block and the CRC-32 of what it expands to, big-endian. */
static enum status expand_snappy(struct avro_reader *reader, struct span data, struct error *err)
{
    enum { CRC_BYTES = 4, GROWTH_MAX = 64 };
    struct cursor cursor = cursor_of(data.data, data.length);
    uint64_t bytes = cursor_get_varint(&cursor); /* snappy begins with it */
    if (cursor.failed || cursor_left(&cursor) < CRC_BYTES || bytes / GROWTH_MAX > data.length)
        return error_set(err, STATUS_INVALID, "snappy: cut off");
    if (bytes > reader->limits.block_bytes_max)
        return error_set(err, STATUS_TOO_LARGE, "snappy: expands to more than %zu bytes",
                         reader->limits.block_bytes_max);
    buf_clear(&reader->expanded);
    if (!buf_reserve_place(&reader->expanded, (size_t)bytes))
        return buf_status(&reader->expanded, "snappy", err);
    struct span packed = span_of(data.data, data.length - CRC_BYTES);
    TRY(codec_expand_exact(CODEC_SNAPPY, packed, reader->expanded.data, (size_t)bytes, err));
    reader->expanded.length = (size_t)bytes;
    uint32_t crc = crc32_gzip(0, reader->expanded.data, (size_t)bytes);
    if (__builtin_bswap32(get_le32(data.data + packed.length)) != crc)
        return error_set(err, STATUS_INVALID, "snappy: checksum does not match");
    return STATUS_OK;
}

static enum status expand_block(struct avro_reader *reader, struct span *inout_data,
                                struct error *err)
{
    enum status status = STATUS_OK;
    switch (reader->codec) {
    case STORED_PLAIN:
        return STATUS_OK;
    case STORED_DEFLATE:
        status = expand_deflate(reader, *inout_data, err);
        break;
    case STORED_SNAPPY:
        status = expand_snappy(reader, *inout_data, err);
        break;
    case STORED_ZSTD:
        buf_clear(&reader->expanded);
        status = codec_expand(CODEC_ZSTD, *inout_data, reader->limits.block_bytes_max,
                              &reader->expanded, err);
        break;
    }
    *inout_data = span_of(reader->expanded.data, reader->expanded.length);
    if (status == STATUS_OK)
        return STATUS_OK;
    if (status == STATUS_INVALID)
        err->status = STATUS_CORRUPT;
    return error_prefix(err, "Avro block at byte %llu", (unsigned long long)reader->block_at);
}

/* Count, bytes and mark of the next block. */
static enum status read_block(struct avro_reader *reader, int64_t *out_count, struct span *out_data,
                              struct error *err)
{
    struct cursor *file = &reader->file;
    reader->block_start = NULL;
    reader->block_at = reader->file_bytes - reader->ahead - cursor_left(file);
    TRY(fill(reader, COUNT_BYTES_MAX, err));
    int64_t count = cursor_get_zigzag(file), bytes = cursor_get_zigzag(file);
    if (file->failed || count < 0 || bytes < 0 ||
        (uint64_t)bytes > cursor_left(file) + reader->ahead)
        return corrupt(reader, "bad count or size", err);
    if ((uint64_t)bytes > reader->limits.block_bytes_max)
        return error_set(err, STATUS_TOO_LARGE, "Avro block at byte %llu: of %lld bytes",
                         (unsigned long long)reader->block_at, (long long)bytes);
    TRY(fill(reader, (size_t)bytes + SYNC_BYTES, err));
    *out_data = span_of(cursor_take(file, (size_t)bytes), (size_t)bytes);
    const uint8_t *sync = cursor_take(file, SYNC_BYTES);
    if (!sync || memcmp(sync, reader->sync, SYNC_BYTES) != 0)
        return corrupt(reader, "no sync mark behind it", err);
    *out_count = count;
    return STATUS_OK;
}

/* Opens the next block that has records; NOT_FOUND at the end of the file. */
static enum status open_block(struct avro_reader *reader, struct error *err)
{
    while (reader->records_left == 0) {
        int64_t count;
        struct span data;
        if (cursor_left(&reader->block))
            return corrupt(reader, "bytes behind its last record", err);
        if (cursor_left(&reader->file) == 0 && reader->ahead == 0)
            return error_set(err, STATUS_NOT_FOUND, "end of the Avro file");
        TRY(read_block(reader, &count, &data, err));
        TRY(expand_block(reader, &data, err));
        if ((uint64_t)count > AVRO_FREE_VALUES + data.length)
            return corrupt(reader, "more records than bytes", err);
        reader->block = cursor_of(data.data, data.length);
        reader->block_start = data.data;
        reader->records_left = count;
    }
    return STATUS_OK;
}

/* ---- values ---- */

static enum status decode(struct avro_reader *reader, const struct avro_type *type, uint32_t depth,
                          struct arena *arena, struct avro_value *out, struct error *err);

/* Where so many bytes were wanted. */
static enum status out_of_memory(const struct arena *arena, size_t bytes, struct error *err)
{
    if (arena->bytes_max && arena->bytes_total + bytes > arena->bytes_max)
        return error_set(err, STATUS_LIMIT, "Avro record: its values take more than %zu bytes",
                         arena->bytes_max);
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
        return out_of_memory(arena, type->field_count * sizeof *out->items, err);
    for (uint32_t i = 0; i < type->field_count; i++)
        TRY(decode(reader, type->fields[i].type, depth, arena, &out->items[i], err));
    out->count = type->field_count;
    return STATUS_OK;
}

/* Room for `more` items; arrays may come in many short runs, so it grows by doubling. */
static enum status grow_items(struct arena *arena, struct avro_value *out, uint64_t more,
                              uint32_t *inout_capacity, struct error *err)
{
    enum { ITEMS_MIN = 4 };
    if (out->count + more <= *inout_capacity)
        return STATUS_OK;
    size_t capacity =
        size_max(size_max(ITEMS_MIN, (size_t)*inout_capacity * 2), out->count + (size_t)more);
    struct avro_value *items = arena_alloc_zero(arena, capacity, sizeof *items);
    if (!items)
        return out_of_memory(arena, capacity * sizeof *items, err);
    if (out->count)
        memcpy(items, out->items, out->count * sizeof *items);
    out->items = items;
    *inout_capacity = (uint32_t)capacity;
    return STATUS_OK;
}

/* Of so many items, which are not all there in a hostile file, those that room is made for. */
static uint64_t likely_items(const struct avro_reader *reader, uint64_t count)
{
    uint64_t bytes = cursor_left(&reader->block);
    return count < bytes ? count : bytes;
}

/* Arrays and maps: runs of items until a run of none. */
static enum status decode_runs(struct avro_reader *reader, const struct avro_type *type,
                               uint32_t depth, struct arena *arena, struct avro_value *out,
                               struct error *err)
{
    uint32_t width = type->kind == AVRO_MAP ? 2 : 1, capacity = 0;
    for (uint64_t run; (run = read_count(&reader->block)) > 0 && !reader->block.failed;) {
        if (run > reader->values_left || run > INT32_MAX / 4 - out->count)
            return corrupt(reader, "an array of too many items", err);
        TRY(grow_items(arena, out, likely_items(reader, run * width), &capacity, err));
        for (uint64_t i = 0; i < run * width; i++) {
            TRY(grow_items(arena, out, 1, &capacity, err));
            TRY(decode(reader, type->fields[out->count % width].type, depth, arena,
                       &out->items[out->count], err));
            out->count++;
        }
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
        return out_of_memory(arena, bytes.length, err);
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
    reader->values_left++; /* one with its member */
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
        return out_of_memory(arena, sizeof *record, err);
    reader->values_left = AVRO_FREE_VALUES + AVRO_VALUES_A_BYTE * cursor_left(&reader->block);
    TRY(decode(reader, reader->type, 0, arena, record, err));
    reader->records_left--;
    if (reader->wanted)
        return avro_resolve(reader->resolution, record, reader->wanted, reader->limits.depth_max,
                            arena, out_record, err);
    *out_record = record;
    return STATUS_OK;
}
