/* SPDX-License-Identifier: Apache-2.0
 *
 * Between the files of the iceberg module: manifests and manifest lists.
 */
#ifndef SLUICE_LAKE_ICEBERG_ICEBERG_INTERNAL_H
#define SLUICE_LAKE_ICEBERG_ICEBERG_INTERNAL_H

#include "format/avro/avro.h"
#include "lake/iceberg/iceberg.h"

enum { ICEBERG_MANIFEST_BYTES_MAX = 1 << 30 };

/* ---- schema ---- */

enum status iceberg_field_copy(const struct iceberg_field *from, uint32_t count,
                               struct arena *arena, struct iceberg_field **out_fields,
                               struct error *err) MUST_CHECK;
int32_t iceberg_fields_highest_id(const struct iceberg_field *fields, uint32_t count); /* or 0 */

/* ---- table ---- */

/* Builds the views over `base`, which it takes, also on failure. */
enum status iceberg_table_from_metadata(struct catalog_table *base, struct catalog_ident ident,
                                        struct iceberg_table **out_table,
                                        struct error *err) MUST_CHECK;
enum status iceberg_spec_to_json(const struct iceberg_spec *spec, struct arena *arena,
                                 struct json_value **out_fields, struct error *err) MUST_CHECK;
/* The type of a partition field's values; false where the source column is in no schema any more.
 */
bool iceberg_partition_type(const struct iceberg_table *table,
                            const struct iceberg_partition_field *field,
                            const struct iceberg_field **out_source, enum iceberg_type *out_type);

/* ---- manifest lists ---- */

struct partition_summary {
    bool contains_null;
    int contains_nan;         /* -1: not said */
    struct span lower, upper; /* data NULL: none */
};

/* A row of a manifest list. Counts are -1 where an old list does not say. */
struct manifest_file {
    const char *path;
    int64_t length;
    int32_t spec_id;
    int32_t content; /* 0 data, 1 deletes */
    int64_t sequence_number, min_sequence_number, added_snapshot_id;
    int64_t added_files, existing_files, deleted_files;
    int64_t added_rows, existing_rows, deleted_rows;
    const struct partition_summary *partitions; /* NULL: not said */
    uint32_t partition_count;
    struct span key_metadata; /* data NULL: none */
};

enum status iceberg_list_read(struct store *store, const char *uri, struct arena *arena,
                              struct manifest_file **out_files, size_t *out_count,
                              struct error *err) MUST_CHECK;

struct list_header {
    int64_t snapshot_id, parent_id, sequence_number; /* parent -1: none */
};

enum status iceberg_list_write(struct env *env, struct store *store, const char *uri,
                               const struct list_header *header, const struct manifest_file *files,
                               size_t count, struct error *err) MUST_CHECK;

/* ---- manifests ---- */

enum manifest_status { MANIFEST_EXISTING = 0, MANIFEST_ADDED = 1, MANIFEST_DELETED = 2 };

struct manifest_entry {
    enum manifest_status status;
    int64_t snapshot_id, sequence_number, file_sequence_number; /* inherited ones filled in */
    struct iceberg_data_file file;
    struct span key_metadata; /* data NULL: none */
};

/* Called for each entry; what it points at lies in the arena given to read. Anything but OK ends
 * it. */
typedef enum status (*manifest_entry_fn)(void *context, const struct manifest_entry *entry,
                                         struct error *err);

enum status iceberg_manifest_read(struct store *store, const struct iceberg_table *table,
                                  const struct manifest_file *manifest, bool with_metrics,
                                  struct arena *arena, manifest_entry_fn each, void *context,
                                  struct error *err) MUST_CHECK;

/* Writes one data manifest of files of one spec. ADDED entries leave their sequence numbers to be
 * inherited, others carry theirs. The row for the list (its strings in `arena`). */
struct manifest_options {
    const struct iceberg_table *table;
    const struct iceberg_spec *spec;
    int64_t snapshot_id, sequence_number; /* of the snapshot that adds it */
};

/* Whether the unscaled value, of any width, fits the bytes that the precision gives it. */
bool iceberg_decimal_fits(struct span unscaled, uint32_t precision);

enum status iceberg_manifest_write(struct env *env, struct store *store, const char *uri,
                                   const struct manifest_options *options,
                                   const struct manifest_entry *entries, size_t count,
                                   struct arena *arena, struct manifest_file *out_file,
                                   struct error *err) MUST_CHECK;

/* Streams Avro records into a new object: the common part of both kinds of file. */
struct iceberg_avro_file {
    struct store_writer *object;
    struct avro_writer *avro;
};

enum status iceberg_avro_create(struct env *env, struct store *store, const char *uri,
                                const char *schema, const struct avro_pair *metadata,
                                size_t metadata_count, struct iceberg_avro_file *out_file,
                                struct error *err) MUST_CHECK;
enum status iceberg_avro_finish(struct iceberg_avro_file *file, uint64_t *out_bytes,
                                struct error *err) MUST_CHECK; /* durable; closes in any case */
void iceberg_avro_abort(struct iceberg_avro_file *file);       /* accepts a finished one */

static inline void avro_put_optional_bytes(struct buf *out, struct span bytes)
{
    avro_put_long(out, bytes.data ? 1 : 0);
    if (bytes.data)
        avro_put_bytes(out, bytes.data, bytes.length);
}

static inline void avro_put_optional_long(struct buf *out, bool is_there, int64_t value)
{
    avro_put_long(out, is_there ? 1 : 0);
    if (is_there)
        avro_put_long(out, value);
}

#endif
