/* SPDX-License-Identifier: Apache-2.0
 *
 * Container file writer: records collect in one buffer, which becomes a block when it is full.
 */
#include "format/avro/avro_internal.h"
#include "format/codec/codec.h"

enum { BLOCK_BYTES = 64 * 1024, SYNC_BYTES = 16 };

struct avro_writer {
    struct sink sink;
    enum avro_codec codec;
    struct codec_compressor *compressor; /* NULL: codec null */
    uint8_t sync[SYNC_BYTES];
    struct buf records; /* of the open block */
    struct buf out;     /* what goes to the sink next */
    struct buf compressed;
    int64_t record_count; /* in the open block */
    uint64_t bytes_total;
};

static const struct {
    const char *name;
    enum codec codec;
} codecs[] = {[AVRO_NULL_CODEC] = {"null", CODEC_DEFLATE},
              [AVRO_DEFLATE] = {"deflate", CODEC_DEFLATE},
              [AVRO_SNAPPY] = {"snappy", CODEC_SNAPPY},
              [AVRO_ZSTANDARD] = {"zstandard", CODEC_ZSTD}};

static enum status flush_out(struct avro_writer *writer, struct error *err)
{
    TRY(buf_status(&writer->out, "Avro block", err));
    TRY(sink_write(writer->sink, writer->out.data, writer->out.length, err));
    writer->bytes_total += writer->out.length;
    buf_clear(&writer->out);
    return STATUS_OK;
}

static enum status write_header(struct avro_writer *writer, const char *schema,
                                const struct avro_pair *metadata, size_t count, struct error *err)
{
    struct buf *out = &writer->out;
    buf_put(out, "Obj\x01", 4);
    avro_put_long(out, (int64_t)count + 2);
    avro_put_text(out, "avro.schema");
    avro_put_text(out, schema);
    /* Always said: some readers take a missing codec for gzip. */
    avro_put_text(out, "avro.codec");
    avro_put_text(out, codecs[writer->codec].name);
    for (size_t i = 0; i < count; i++) {
        avro_put_text(out, metadata[i].key);
        avro_put_text(out, metadata[i].value);
    }
    avro_put_long(out, 0);
    buf_put(out, writer->sync, SYNC_BYTES);
    return flush_out(writer, err);
}

enum status avro_writer_create(struct sink sink, const char *schema, enum avro_codec codec,
                               const uint8_t sync[16], const struct avro_pair *metadata,
                               size_t metadata_count, struct avro_writer **out_writer,
                               struct error *err)
{
    struct avro_writer *writer = mem_alloc_zero(1, sizeof *writer);
    if (!writer)
        return error_set(err, STATUS_NO_MEMORY, "Avro writer: out of memory");
    writer->sink = sink;
    writer->codec = codec;
    memcpy(writer->sync, sync, SYNC_BYTES);
    buf_init(&writer->records, 0);
    buf_init(&writer->out, 0);
    buf_init(&writer->compressed, 0);
    enum status status = STATUS_OK;
    if (codec != AVRO_NULL_CODEC)
        status = codec_compressor_create(codecs[codec].codec, 0, &writer->compressor, err);
    if (status == STATUS_OK)
        status = write_header(writer, schema, metadata, metadata_count, err);
    if (status == STATUS_OK)
        *out_writer = writer;
    else
        avro_writer_destroy(writer);
    return status;
}

struct buf *avro_writer_record(struct avro_writer *writer)
{
    return &writer->records;
}

static enum status write_block(struct avro_writer *writer, struct error *err)
{
    if (writer->record_count == 0)
        return STATUS_OK;
    struct span data = span_of(writer->records.data, writer->records.length);
    if (writer->compressor) {
        uint32_t crc = crc32_gzip(0, data.data, data.length);
        buf_clear(&writer->compressed);
        TRY(codec_compress(writer->compressor, data, &writer->compressed, err));
        for (int shift = 24; writer->codec == AVRO_SNAPPY && shift >= 0; shift -= 8)
            buf_put_byte(&writer->compressed, (uint8_t)(crc >> shift)); /* big-endian */
        TRY(buf_status(&writer->compressed, "Avro block", err));
        data = span_of(writer->compressed.data, writer->compressed.length);
    }
    avro_put_long(&writer->out, writer->record_count);
    avro_put_bytes(&writer->out, data.data, data.length);
    buf_put(&writer->out, writer->sync, SYNC_BYTES);
    writer->record_count = 0;
    buf_clear(&writer->records);
    return flush_out(writer, err);
}

enum status avro_writer_record_end(struct avro_writer *writer, struct error *err)
{
    TRY(buf_status(&writer->records, "Avro record", err));
    writer->record_count++;
    bool is_full =
        writer->records.length >= BLOCK_BYTES || writer->record_count >= AVRO_FREE_VALUES;
    return is_full ? write_block(writer, err) : STATUS_OK;
}

enum status avro_writer_finish(struct avro_writer *writer, uint64_t *out_bytes, struct error *err)
{
    TRY(write_block(writer, err));
    *out_bytes = writer->bytes_total;
    return STATUS_OK;
}

void avro_writer_destroy(struct avro_writer *writer)
{
    if (!writer)
        return;
    codec_compressor_destroy(writer->compressor);
    buf_deinit(&writer->records);
    buf_deinit(&writer->out);
    buf_deinit(&writer->compressed);
    mem_free(writer);
}
