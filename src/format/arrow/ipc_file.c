/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrow IPC, reading: whole streams and files through a source, one message at a time.
 *
 * A file is read by its footer: dictionaries first, since they may stand behind their first use,
 * then the batches in the footer's order. Blocks that lie over each other could make a small file
 * many times its size: together they may not be longer than what lies before the footer.
 */
#include "format/arrow/ipc_internal.h"

enum {
    MAGIC_BYTES = 6,
    HEAD_BYTES = 8,               /* magic and padding */
    TAIL_BYTES = 4 + MAGIC_BYTES, /* the footer's length, magic */
    BLOCK_BYTES = 24,             /* i64 offset, i32 metadata, 4 bytes of padding, i64 body */
    GROWTH_FACTOR = 256,          /* bytes that deltas may copy for each byte of dictionary read */
};

static const char magic[MAGIC_BYTES] = "ARROW1";

struct block {
    uint64_t offset, metadata_bytes, body_bytes;
};

struct arrow_file {
    struct byte_source source;
    struct arrow_limits limits;
    struct arrow_schema schema;
    struct arrow_metadata metadata; /* of the footer */
    struct arena arena;             /* of schema, metadata and blocks */
    struct arrow_reader *reader;
    struct arrow_file_facts facts;
    uint64_t at, end;     /* stream: the next message, the source's end; file: end: the footer */
    struct block *blocks; /* file: the dictionaries, then the batches */
    size_t dictionary_count, block_count, block_at;
};

static enum status invalid(struct error *err, const char *what)
{
    return error_set(err, STATUS_INVALID, "arrow: %s", what);
}

static enum status at_byte(struct error *err, const char *what, uint64_t offset)
{
    return error_prefix(err, "%s at byte %llu", what, (unsigned long long)offset);
}

/* ---- messages ---- */

/* Metadata and body of the message at `offset` in one piece of memory, which the caller owns.
 * NOT_FOUND at the mark of the end, or where `end` is reached. */
static enum status load(const struct arrow_file *file, uint64_t offset, uint64_t end,
                        struct ipc_message *out_message, uint8_t **out_memory, struct error *err)
{
    enum { PREFIX = IPC_CONTINUATION_BYTES };
    uint8_t prefix[PREFIX], *memory = NULL;
    uint32_t metadata_bytes;
    struct ipc_message message;
    enum status status;
    if (offset == end)
        return error_set(err, STATUS_NOT_FOUND, "arrow: end of stream");
    if (end - offset < PREFIX)
        return invalid(err, "message cut off");
    uint64_t left = end - offset - PREFIX;
    TRY(byte_source_read(&file->source, offset, PREFIX, prefix, err));
    TRY(ipc_prefix_read(prefix, left, &file->limits, &metadata_bytes, err));
    left -= metadata_bytes;
    if (!(memory = mem_alloc(PREFIX + (size_t)metadata_bytes)))
        return error_set(err, STATUS_NO_MEMORY, "arrow: no memory for a message");
    memcpy(memory, prefix, PREFIX);
    TRY_OR_DONE(status, byte_source_read(&file->source, offset + PREFIX, metadata_bytes,
                                         memory + PREFIX, err));
    TRY_OR_DONE(status, ipc_metadata_read(span_of(memory + PREFIX, metadata_bytes), left,
                                          &file->limits, &message, err));
    if (message.body.length > file->limits.body_bytes_max) {
        status =
            error_set(err, STATUS_TOO_LARGE, "arrow: a body of %zu bytes", message.body.length);
        goto done;
    }
    uint8_t *whole = mem_resize(memory, message.bytes);
    if (!whole) {
        status = error_set(err, STATUS_NO_MEMORY, "arrow: no memory for a message");
        goto done;
    }
    memory = whole;
    message.flat.data = memory + PREFIX;
    message.body.data = memory + PREFIX + metadata_bytes;
    if (message.body.length)
        TRY_OR_DONE(status,
                    byte_source_read(&file->source, offset + PREFIX + metadata_bytes,
                                     message.body.length, memory + PREFIX + metadata_bytes, err));
    *out_message = message;
    *out_memory = memory;
    return STATUS_OK;
done:
    mem_free(memory);
    return status;
}

static enum status read_schema_message(struct arrow_file *file, uint64_t offset,
                                       struct arrow_schema *out_schema, uint64_t *out_next,
                                       struct error *err)
{
    struct ipc_message message;
    uint8_t *memory = NULL;
    enum status status = load(file, offset, file->end, &message, &memory, err);
    if (status == STATUS_NOT_FOUND)
        status = invalid(err, "no schema");
    else if (status == STATUS_OK && message.type != IPC_SCHEMA)
        status = invalid(err, "the first message is not a schema");
    else if (status == STATUS_OK)
        status = ipc_schema_read(&message.flat, &message.header, &file->limits, true, &file->arena,
                                 out_schema, err);
    if (status == STATUS_OK)
        *out_next = offset + message.bytes;
    mem_free(memory);
    return status == STATUS_OK ? STATUS_OK : at_byte(err, "schema", offset);
}

/* ---- the footer ---- */

static enum status read_block(const struct arrow_file *file, const uint8_t *from,
                              uint64_t *inout_sum, struct block *out)
{
    int64_t offset = (int64_t)get_le64(from), body = (int64_t)get_le64(from + 16);
    int32_t metadata = (int32_t)get_le32(from + 8);
    if (offset < HEAD_BYTES || offset % 8 || metadata < IPC_CONTINUATION_BYTES || body < 0 ||
        (uint64_t)offset > file->end || (uint64_t)metadata > file->end - (uint64_t)offset ||
        (uint64_t)body > file->end - (uint64_t)offset - (uint64_t)metadata)
        return STATUS_INVALID;
    *out = (struct block){(uint64_t)offset, (uint64_t)metadata, (uint64_t)body};
    *inout_sum += (uint64_t)metadata + (uint64_t)body;
    return *inout_sum <= file->end - HEAD_BYTES ? STATUS_OK : STATUS_INVALID;
}

static enum status read_blocks(struct arrow_file *file, const struct flat_reader *flat,
                               const struct flat_vector *vector, const char *what,
                               uint64_t *inout_sum, struct error *err)
{
    for (uint32_t i = 0; i < vector->count; i++) {
        const uint8_t *from = flat->data + vector->at + (size_t)i * BLOCK_BYTES;
        if (read_block(file, from, inout_sum, &file->blocks[file->block_count]) != STATUS_OK)
            return error_set(
                err, STATUS_INVALID, "arrow: byte %llu: a block that is no place for %s %u",
                (unsigned long long)(file->end + vector->at + (size_t)i * BLOCK_BYTES), what, i);
        file->block_count++;
    }
    return STATUS_OK;
}

static enum status parse_footer(struct arrow_file *file, struct span bytes, struct error *err)
{
    struct flat_reader flat = {.data = bytes.data,
                               .length = bytes.length,
                               .tables_left = file->limits.field_count_max * 8 + 1024};
    struct flat_table root = flat_root(&flat);
    int64_t version = flat_number(&flat, &root, 0, 2, 0);
    struct flat_table schema = flat_child(&flat, &root, 1);
    struct flat_vector dictionaries = flat_vector(&flat, &root, 2, BLOCK_BYTES);
    struct flat_vector batches = flat_vector(&flat, &root, 3, BLOCK_BYTES);
    uint64_t sum = 0;
    if (flat.failed || !schema.at)
        return invalid(err, "damaged footer");
    if (version != IPC_METADATA_V5 && version != IPC_METADATA_V4)
        return error_set(err, STATUS_UNSUPPORTED, "arrow: metadata version %d", (int)version);
    TRY(ipc_schema_read(&flat, &schema, &file->limits, true, &file->arena, &file->schema, err));
    file->blocks = arena_alloc_zero(&file->arena, (size_t)dictionaries.count + batches.count + 1,
                                    sizeof *file->blocks);
    if (!file->blocks)
        return error_set(err, STATUS_NO_MEMORY, "arrow: no memory for a footer");
    TRY(read_blocks(file, &flat, &dictionaries, "dictionary", &sum, err));
    file->dictionary_count = file->block_count;
    TRY(read_blocks(file, &flat, &batches, "record batch", &sum, err));
    struct schema_reader reader = {
        .flat = &flat,
        .making = {
            .limits = &file->limits, .arena = &file->arena, .err = err, .takes_origins = true}};
    return ipc_metadata_pairs_read(&reader, &root, 4, &file->metadata);
}

/* Whether the mark of the end lies behind all messages; `first` is where the schema ends. */
static enum status find_end_mark(struct arrow_file *file, uint64_t first, struct error *err)
{
    uint8_t mark[IPC_CONTINUATION_BYTES];
    uint64_t end = first;
    for (size_t i = 0; i < file->block_count; i++) {
        const struct block *block = &file->blocks[i];
        uint64_t block_end = block->offset + block->metadata_bytes + block->body_bytes;
        end = block_end > end ? block_end : end;
    }
    if (file->end - end < sizeof mark)
        return STATUS_OK;
    TRY(byte_source_read(&file->source, end, sizeof mark, mark, err));
    file->facts.has_end_mark = get_le32(mark) == UINT32_MAX && get_le32(mark + 4) == 0;
    return STATUS_OK;
}

static enum status load_footer(struct arrow_file *file, struct error *err)
{
    uint8_t tail[TAIL_BYTES];
    uint64_t tail_at = file->source.file_bytes - TAIL_BYTES;
    TRY(byte_source_read(&file->source, tail_at, sizeof tail, tail, err));
    if (memcmp(tail + 4, magic, MAGIC_BYTES) != 0) {
        invalid(err, "no magic: the file was cut off, or is damaged");
        return at_byte(err, "end", tail_at + 4);
    }
    uint32_t bytes = get_le32(tail);
    if (bytes == 0 || bytes > tail_at - HEAD_BYTES) {
        invalid(err, "the footer's length does not fit into the file");
        return at_byte(err, "end", tail_at);
    }
    if (bytes > file->limits.metadata_bytes_max)
        return error_set(err, STATUS_TOO_LARGE, "arrow: a footer of %u bytes", bytes);
    uint8_t *footer = mem_alloc(bytes);
    if (!footer)
        return error_set(err, STATUS_NO_MEMORY, "arrow: no memory for a footer");
    file->end = tail_at - bytes;
    enum status status = byte_source_read(&file->source, file->end, bytes, footer, err);
    if (status == STATUS_OK)
        status = parse_footer(file, span_of(footer, bytes), err);
    mem_free(footer);
    return status == STATUS_OK ? STATUS_OK : at_byte(err, "footer", file->end);
}

/* The stream's own schema, which nothing is read by. Polars puts it there without the framing of a
 * message; then it is not looked at. */
static enum status check_first_schema(struct arrow_file *file, uint64_t *out_next,
                                      struct error *err)
{
    struct arrow_schema first;
    TRY(read_schema_message(file, HEAD_BYTES, &first, out_next, err));
    if (arrow_schema_equal(&first, &file->schema))
        return STATUS_OK;
    invalid(err, "another schema than the footer's");
    return at_byte(err, "schema", HEAD_BYTES);
}

static enum status open_as_file(struct arrow_file *file, struct error *err)
{
    uint8_t prefix[4];
    uint64_t next = HEAD_BYTES;
    file->facts.container = ARROW_FILE;
    if (file->source.file_bytes < HEAD_BYTES + TAIL_BYTES)
        return invalid(err, "the file was cut off");
    TRY(load_footer(file, err));
    TRY(byte_source_read(&file->source, HEAD_BYTES, sizeof prefix, prefix, err));
    if (get_le32(prefix) == UINT32_MAX)
        TRY(check_first_schema(file, &next, err));
    return find_end_mark(file, next, err);
}

/* ---- opening ---- */

static enum status open_container(struct arrow_file *file, struct error *err)
{
    uint8_t head[HEAD_BYTES] = {0};
    size_t bytes = size_min(sizeof head, (size_t)file->source.file_bytes);
    TRY(byte_source_read(&file->source, 0, bytes, head, err));
    if (memcmp(head, magic, MAGIC_BYTES) == 0)
        TRY(open_as_file(file, err));
    else if (get_le32(head) == UINT32_MAX)
        TRY(read_schema_message(file, 0, &file->schema, &file->at, err));
    else
        return invalid(err, "neither an Arrow file nor an Arrow stream");
    TRY(arrow_reader_create(&file->schema, span_of(NULL, 0), &file->limits, &file->reader, err));
    file->reader->is_foreign = true;
    file->reader->refuses_replacement = file->facts.container == ARROW_FILE;
    return STATUS_OK;
}

enum status arrow_file_open(struct byte_source source, const struct arrow_limits *limits,
                            struct arrow_file **out_file, struct error *err)
{
    struct arrow_file *file = mem_alloc_zero(1, sizeof *file);
    if (!file)
        return error_set(err, STATUS_NO_MEMORY, "arrow: no memory for a file");
    file->source = source;
    file->limits = *limits;
    file->end = source.file_bytes;
    arena_init(&file->arena,
               4 * limits->metadata_bytes_max + (size_t)limits->field_count_max * 512);
    enum status status = open_container(file, err);
    if (status == STATUS_OK)
        *out_file = file;
    else
        arrow_file_close(file);
    return status;
}

void arrow_file_close(struct arrow_file *file)
{
    if (!file)
        return;
    arrow_reader_destroy(file->reader);
    arena_deinit(&file->arena);
    mem_free(file);
}

const struct arrow_schema *arrow_file_schema(const struct arrow_file *file)
{
    return &file->schema;
}

const struct arrow_metadata *arrow_file_footer_metadata(const struct arrow_file *file)
{
    return &file->metadata;
}

struct arrow_file_facts arrow_file_facts(const struct arrow_file *file)
{
    return file->facts;
}

/* ---- batches ---- */

/* Says which message it was, and where the wrong byte is. */
static enum status name_message(const struct arrow_file *file, int64_t type, uint64_t offset,
                                struct error *err)
{
    const struct arrow_file_facts *facts = &file->facts;
    bool is_batch = type == IPC_RECORD_BATCH;
    if (file->reader->fault)
        error_prefix(err, "wrong at byte %llu", (unsigned long long)(offset + file->reader->fault));
    return error_prefix(
        err, "%s %llu at byte %llu", is_batch ? "record batch" : "dictionary",
        (unsigned long long)(is_batch ? facts->batch_count : facts->dictionary_count),
        (unsigned long long)offset);
}

static enum status read_batch(struct arrow_file *file, struct ipc_message *message, uint8_t *memory,
                              struct arrow_batch *out_batch, struct error *err)
{
    struct arrow_batch batch;
    enum status status = ipc_record_batch_read(file->reader, message, &batch, err);
    if (status == STATUS_OK && !arena_adopt(&batch.arena, memory, message->bytes)) {
        status = error_set(err, STATUS_LIMIT, "arrow: no memory for a batch within its limit");
        arrow_batch_deinit(&batch);
    }
    if (status != STATUS_OK) {
        mem_free(memory);
        return status;
    }
    file->facts.batch_count++;
    file->facts.row_count += (uint64_t)batch.length;
    *out_batch = batch;
    return STATUS_OK;
}

/* Takes `memory`. `out_batch` is filled where the message was one. */
static enum status read_message(struct arrow_file *file, struct ipc_message *message,
                                uint8_t *memory, uint64_t offset, struct arrow_batch *out_batch,
                                struct error *err)
{
    enum status status;
    int64_t type = message->type;
    file->reader->fault = 0;
    if (type == IPC_RECORD_BATCH) {
        status = read_batch(file, message, memory, out_batch, err);
    } else if (type == IPC_DICTIONARY_BATCH) {
        file->reader->growth_left += GROWTH_FACTOR * (uint64_t)message->bytes;
        status = ipc_dictionary_batch_read(file->reader, message, memory, err);
        if (status == STATUS_OK)
            file->facts.dictionary_count++;
    } else {
        mem_free(memory);
        invalid(err, "neither a dictionary nor a batch");
        return at_byte(err, "message", offset);
    }
    return status == STATUS_OK ? STATUS_OK : name_message(file, type, offset, err);
}

static enum status next_of_stream(struct arrow_file *file, struct arrow_batch *out_batch,
                                  struct error *err)
{
    for (;;) {
        struct ipc_message message;
        uint8_t *memory;
        enum status status = load(file, file->at, file->end, &message, &memory, err);
        if (status == STATUS_NOT_FOUND)
            file->facts.has_end_mark = file->at != file->end;
        if (status != STATUS_OK)
            return status == STATUS_NOT_FOUND ? status : at_byte(err, "message", file->at);
        int64_t type = message.type;
        size_t bytes = message.bytes;
        TRY(read_message(file, &message, memory, file->at, out_batch, err));
        file->at += bytes;
        if (type == IPC_RECORD_BATCH)
            return STATUS_OK;
    }
}

static enum status next_of_file(struct arrow_file *file, struct arrow_batch *out_batch,
                                struct error *err)
{
    while (file->block_at < file->block_count) {
        const struct block *block = &file->blocks[file->block_at];
        uint64_t end = block->offset + block->metadata_bytes + block->body_bytes;
        int64_t expected =
            file->block_at < file->dictionary_count ? IPC_DICTIONARY_BATCH : IPC_RECORD_BATCH;
        struct ipc_message message;
        uint8_t *memory;
        enum status status = load(file, block->offset, end, &message, &memory, err);
        if (status == STATUS_NOT_FOUND)
            status = invalid(err, "a block without a message");
        if (status == STATUS_OK &&
            (message.type != expected || message.body.length != block->body_bytes ||
             message.bytes != end - block->offset)) {
            mem_free(memory);
            status = invalid(err, "another message than the footer says");
        }
        if (status != STATUS_OK)
            return at_byte(err, "message", block->offset);
        TRY(read_message(file, &message, memory, block->offset, out_batch, err));
        file->block_at++;
        if (expected == IPC_RECORD_BATCH)
            return STATUS_OK;
    }
    return error_set(err, STATUS_NOT_FOUND, "arrow: end of file");
}

enum status arrow_file_next(struct arrow_file *file, struct arrow_batch *out_batch,
                            struct error *err)
{
    return file->facts.container == ARROW_FILE ? next_of_file(file, out_batch, err)
                                               : next_of_stream(file, out_batch, err);
}
