/* SPDX-License-Identifier: Apache-2.0
 *
 * Apache Iceberg tables, format version 2: schemas, partition transforms, manifests, snapshots.
 * Source: the Iceberg table specification (v2); what its readers demand beyond it is said where it
 * is done.
 *
 * A commit is: data files (written and synced by the caller) -> manifests -> manifest list ->
 * catalog. Files are never overwritten and names never reused; every object written for a commit
 * that definitely failed is garbage, and nothing is deleted here. Unknown members of the metadata
 * survive.
 *
 * A table handle is one immutable state; a commit yields a new handle. Pure but for the calls that
 * take a store or catalog. An object belongs to one thread at a time; a handle that is only read
 * may be shared.
 */
#ifndef SLUICE_LAKE_ICEBERG_ICEBERG_H
#define SLUICE_LAKE_ICEBERG_ICEBERG_H

#include "format/arrow/arrow.h"
#include "format/json/json.h"
#include "lake/catalog/catalog.h"
#include "lake/store/store.h"

/* ---- schema ---- */

enum iceberg_type {
    ICEBERG_BOOLEAN,
    ICEBERG_INT,
    ICEBERG_LONG,
    ICEBERG_FLOAT,
    ICEBERG_DOUBLE,
    ICEBERG_DATE,        /* days */
    ICEBERG_TIME,        /* microseconds */
    ICEBERG_TIMESTAMP,   /* microseconds, no zone */
    ICEBERG_TIMESTAMPTZ, /* microseconds, an instant */
    ICEBERG_STRING,
    ICEBERG_UUID,
    ICEBERG_BINARY,
    ICEBERG_FIXED,
    ICEBERG_DECIMAL,
    ICEBERG_STRUCT,
    ICEBERG_LIST, /* children: "element" */
    ICEBERG_MAP,  /* children: "key", "value" */
};

struct iceberg_field {
    int32_t id; /* 0: not assigned yet */
    const char *name;
    enum iceberg_type type;
    bool is_required;
    uint32_t fixed_bytes;     /* ICEBERG_FIXED */
    uint8_t precision, scale; /* ICEBERG_DECIMAL */
    const char *doc;          /* or NULL */
    struct iceberg_field *children;
    uint32_t child_count;
};

struct iceberg_schema {
    int32_t schema_id;
    struct iceberg_field *fields;
    uint32_t field_count;
    const int32_t *identifier_ids;
    uint32_t identifier_count;
};

/* Everything is owned by `arena`. INVALID for what is no v2 schema, UNSUPPORTED for types of v3. */
enum status iceberg_schema_parse(const struct json_value *json, struct arena *arena,
                                 struct iceberg_schema *out_schema, struct error *err) MUST_CHECK;
enum status iceberg_schema_to_json(const struct iceberg_schema *schema, struct arena *arena,
                                   struct json_value **out_json, struct error *err) MUST_CHECK;
/* Gives every field with id 0 the next id after *last_id, level by level as the Java library does.
 */
void iceberg_schema_assign_ids(struct iceberg_schema *schema, int32_t *last_id);
/* The field with that id at any depth, or the top-level field of that name; NULL. */
const struct iceberg_field *iceberg_schema_find(const struct iceberg_schema *schema, int32_t id);
const struct iceberg_field *iceberg_schema_find_name(const struct iceberg_schema *schema,
                                                     const char *name);
/* Whether a field of `earlier`, at any depth, is not in `later` or of a type that it was not merely
 * widened to (int to long, float to double). By id. */
bool iceberg_schema_loses(const struct iceberg_schema *earlier, const struct iceberg_schema *later);
/* How the table's rows look in Arrow, with field ids on every node. Our Arrow has no time, uuid and
 * decimal: an optional top-level column that has one in it is left out (a file without it reads as
 * null), a required one is UNSUPPORTED and named. */
enum status iceberg_schema_to_arrow(const struct iceberg_schema *schema, struct arena *arena,
                                    struct arrow_schema *out_schema, struct error *err) MUST_CHECK;
/* The reverse, for creating a table from what is ingested: ids are taken where given, else 0. */
enum status iceberg_schema_from_arrow(const struct arrow_schema *from, struct arena *arena,
                                      struct iceberg_schema *out_schema,
                                      struct error *err) MUST_CHECK;
const char *iceberg_type_name(enum iceberg_type type); /* "long", "fixed", "struct" */

/* ---- values and transforms ---- */

/* A single value of a primitive type. `integer`: boolean, int, long, date, time, timestamps;
 * `bytes`: string, uuid, binary, fixed, decimal (unscaled, big-endian two's complement). */
struct iceberg_value {
    enum iceberg_type type;
    bool is_null;
    int64_t integer;
    double real;       /* float, double */
    struct span bytes; /* borrowed */
};

enum iceberg_transform_kind {
    ICEBERG_IDENTITY,
    ICEBERG_BUCKET,
    ICEBERG_TRUNCATE,
    ICEBERG_YEAR,
    ICEBERG_MONTH,
    ICEBERG_DAY,
    ICEBERG_HOUR,
    ICEBERG_VOID,
    ICEBERG_TRANSFORM_UNKNOWN, /* of others: its table can be read, not written */
};

struct iceberg_transform {
    enum iceberg_transform_kind kind;
    uint32_t width; /* bucket, truncate */
};

/* "day", "bucket[16]". What is not known is ICEBERG_TRANSFORM_UNKNOWN, as the specification asks.
 */
struct iceberg_transform iceberg_transform_parse(const char *text);
void iceberg_transform_to_text(struct iceberg_transform transform, char out[32]);
/* INVALID where the transform does not apply to the type. */
enum status iceberg_transform_result(struct iceberg_transform transform, enum iceberg_type source,
                                     enum iceberg_type *out_type, struct error *err) MUST_CHECK;
/* Null in, null out. Truncated bytes borrow the source's; a truncated decimal is made in `arena`.
 */
enum status iceberg_transform_apply(struct iceberg_transform transform,
                                    const struct iceberg_value *value, struct arena *arena,
                                    struct iceberg_value *out_value, struct error *err) MUST_CHECK;
/* The time transforms of microseconds, quickly: floor to year, month, day or hour since 1970. */
int64_t iceberg_transform_micros(enum iceberg_transform_kind kind, int64_t micros);
uint32_t iceberg_hash(const struct iceberg_value *value); /* murmur3, of a non-null primitive */

bool iceberg_value_equal(const struct iceberg_value *a, const struct iceberg_value *b);
/* In the order of the type (bytes unsigned); nulls first. Both of one type. */
int iceberg_value_compare(const struct iceberg_value *a, const struct iceberg_value *b);

/* Single-value serialisation ("Appendix D: binary"), the form of bounds. */
void iceberg_value_encode(const struct iceberg_value *value, struct buf *out);
enum status iceberg_value_decode(enum iceberg_type type, struct span bytes,
                                 struct iceberg_value *out_value, struct error *err) MUST_CHECK;

/* Bounds of text and bytes are cut to 16 code points or bytes. `lower` is a prefix (borrowed). The
 * upper bound is the prefix with its last incrementable part raised, in `arena`; false: there is
 * none, leave the bound out. */
enum { ICEBERG_BOUND_LENGTH = 16 };
struct span iceberg_bound_lower(enum iceberg_type type, struct span value);
bool iceberg_bound_upper(enum iceberg_type type, struct span value, struct arena *arena,
                         struct span *out_bound);

/* ---- partitioning, sorting ---- */

enum { ICEBERG_PARTITION_FIELDS_MAX = 32 };

struct iceberg_partition_field {
    int32_t source_id, field_id; /* field_id 0 at creation: assigned from 1000 */
    const char *name;            /* [A-Za-z_][A-Za-z0-9_]* */
    struct iceberg_transform transform;
};

struct iceberg_spec {
    int32_t spec_id;
    struct iceberg_partition_field *fields;
    uint32_t field_count;
};

struct iceberg_sort_field {
    int32_t source_id;
    struct iceberg_transform transform;
    bool is_descending, nulls_last;
};

struct iceberg_sort_order {
    int32_t order_id; /* 0: unsorted */
    struct iceberg_sort_field *fields;
    uint32_t field_count;
};

/* "day=2026-11-29/bucket=3": decoration of paths; values are escaped for URIs of file systems. */
enum status iceberg_partition_path(const struct iceberg_spec *spec,
                                   const struct iceberg_value *values, struct buf *out,
                                   struct error *err) MUST_CHECK;

/* ---- tables ---- */

struct iceberg_snapshot {
    int64_t snapshot_id;
    int64_t parent_id; /* -1: none */
    int64_t sequence_number, timestamp_ms;
    int32_t schema_id; /* -1: not said */
    const char *manifest_list;
    const char *operation; /* "append", ...; "" if missing */
    const struct json_value *summary;
};

/* Parsed views over the metadata document. */
struct iceberg_table {
    struct catalog_table base; /* owns everything below */
    const char *ns, *name;
    int32_t format_version;
    const char *uuid, *location; /* location without a slash at its end */
    int64_t last_sequence_number, last_updated_ms;
    int32_t last_column_id, current_schema_id, default_spec_id, default_sort_order_id;
    struct iceberg_schema *schemas;
    uint32_t schema_count;
    const struct iceberg_schema *schema; /* current */
    struct iceberg_spec *specs;
    uint32_t spec_count;
    const struct iceberg_spec *spec; /* default */
    struct iceberg_sort_order *sort_orders;
    uint32_t sort_order_count;
    const struct iceberg_sort_order *sort_order; /* default */
    struct iceberg_snapshot *snapshots;
    uint32_t snapshot_count;
    const struct iceberg_snapshot *current; /* refs.main; NULL: no snapshot */
    const struct json_value *properties;    /* object or NULL */
};

struct iceberg_pair {        /* a property or a summary entry */
    const char *key, *value; /* value NULL: remove, or require missing */
};

struct iceberg_table_options {
    const struct iceberg_schema *schema; /* fields with id 0 get ids */
    /* source_id refers to ids of `schema`, so fields used here need ids given; NULL: unpartitioned
     */
    const struct iceberg_spec *spec;
    const struct iceberg_sort_order *sort_order; /* NULL: unsorted; its order_id becomes 1 */
    const struct iceberg_pair *properties;
    size_t property_count;
    const char *location;   /* NULL: <store root>/<ns>/<name> */
    bool with_name_mapping; /* writes schema.name-mapping.default for imported files */
};

/* EXISTS: load it instead. UNKNOWN_OUTCOME: load, and see whose it is. */
enum status iceberg_table_create(struct env *env, struct catalog *catalog, struct store *store,
                                 struct catalog_ident ident,
                                 const struct iceberg_table_options *options,
                                 struct iceberg_table **out_table, struct error *err) MUST_CHECK;
/* NOT_FOUND, CORRUPT (E17). UNSUPPORTED for format version 3. */
enum status iceberg_table_load(struct catalog *catalog, struct catalog_ident ident,
                               struct iceberg_table **out_table, struct error *err) MUST_CHECK;
/* From a metadata file alone; such a table can be read, not committed to. */
enum status iceberg_table_open(struct store *store, const char *metadata_uri,
                               struct iceberg_table **out_table, struct error *err) MUST_CHECK;
void iceberg_table_destroy(struct iceberg_table *table); /* accepts NULL */

const char *iceberg_table_property(const struct iceberg_table *table,
                                   const char *key); /* or NULL */
const struct iceberg_schema *iceberg_table_schema(const struct iceberg_table *table, int32_t id);
const struct iceberg_spec *iceberg_table_spec(const struct iceberg_table *table, int32_t id);
const struct iceberg_snapshot *iceberg_table_snapshot(const struct iceberg_table *table,
                                                      int64_t id);
const char *iceberg_snapshot_summary(const struct iceberg_snapshot *snapshot, const char *key);
/* Where new data files go: write.data.path or <location>/data; metadata: write.metadata.path or
 * <location>/metadata. Both without a slash at the end. */
enum status iceberg_table_data_location(const struct iceberg_table *table,
                                        char out_uri[STORE_URI_BYTES_MAX],
                                        struct error *err) MUST_CHECK;
enum status iceberg_table_metadata_location(const struct iceberg_table *table,
                                            char out_uri[STORE_URI_BYTES_MAX],
                                            struct error *err) MUST_CHECK;

/* What a commit is conditioned on (E9). */
struct iceberg_base {
    char uuid[UUID_TEXT_BYTES];
    int64_t snapshot_id; /* of main; -1: none */
    int64_t last_sequence_number, last_updated_ms;
};

void iceberg_table_base(const struct iceberg_table *table, struct iceberg_base *out_base);
bool iceberg_base_equal(const struct iceberg_base *a, const struct iceberg_base *b);

/* ---- files ---- */

enum iceberg_content { ICEBERG_DATA, ICEBERG_POSITION_DELETES, ICEBERG_EQUALITY_DELETES };

/* Of one leaf column. Counts -1: not known, left out. For leaves under lists and maps give no
 * bounds; for columns with NaN give neither. Bounds in single-value serialisation. */
struct iceberg_column_metrics {
    int32_t field_id;
    int64_t column_bytes, value_count, null_count, nan_count;
    struct span lower, upper; /* data NULL: none; an empty string's bound has data */
};

struct iceberg_data_file {
    enum iceberg_content content;
    const char *path;   /* URI, canonical for files we write */
    const char *format; /* "PARQUET"; NULL: the same */
    int32_t spec_id;
    const struct iceberg_value *partition; /* one for each field of the spec */
    int64_t record_count, file_bytes;      /* exact */
    const struct iceberg_column_metrics *columns;
    uint32_t column_count;
    const int64_t *split_offsets; /* ascending; of row groups */
    uint32_t split_count;
    int32_t sort_order_id; /* -1: not said; 0 unsorted */
};

/* ---- committing ---- */

/* An append; without files the empty snapshot of a takeover (E5). The same struct with the same
 * snapshot id may be committed again; `attempt` must be new each time (E9, E12). */
struct iceberg_append {
    int64_t snapshot_id;     /* random, positive: iceberg_snapshot_id_create */
    struct uuid attempt;     /* random: names this attempt's manifests, list and metadata file */
    uint32_t attempt_number; /* in the list's name: snap-<id>-<number>-<uuid>.avro */
    int64_t now_ms;          /* raised to the base's last-updated-ms */
    const struct iceberg_data_file *files;
    size_t file_count;
    const struct iceberg_pair *summary; /* own keys, beside the counts written here */
    size_t summary_count;
    const struct iceberg_pair *properties; /* to set; value NULL: to remove */
    size_t property_count;
    /* More conditions than `table`'s whole base, which is always one. */
    const struct iceberg_base *require_base;       /* or NULL */
    const struct iceberg_pair *require_properties; /* value NULL: must be missing */
    size_t require_property_count;
};

int64_t iceberg_snapshot_id_create(struct env *env);

/* The new snapshot has sequence number table->last_sequence_number + 1 and parent table->current.
 * Files must be of the current schema and known specs. Statuses as catalog.h says of commits. */
enum status iceberg_append_commit(struct env *env, struct catalog *catalog, struct store *store,
                                  const struct iceberg_table *table,
                                  const struct iceberg_append *append,
                                  struct iceberg_table **out_table, struct error *err) MUST_CHECK;

/* Properties, schema and whatever else a catalog_change holds, without a snapshot; the uuid is
 * required, the base asserted. */
enum status iceberg_change_commit(struct catalog *catalog, const struct iceberg_table *table,
                                  struct catalog_change *change, struct iceberg_table **out_table,
                                  struct error *err) MUST_CHECK;

/* Makes a state learned by reading last (E10): the catalog's row, metadata, and the current
 * snapshot's list; CONFLICT: the table moved, load again. */
enum status iceberg_table_make_durable(struct catalog *catalog, struct store *store,
                                       const struct iceberg_table *table,
                                       struct error *err) MUST_CHECK;
/* Before a commit on top of foreign snapshots (E10): syncs the list, and the manifests and data
 * files that came after sequence number `above`. */
enum status iceberg_table_sync_foreign(struct store *store, const struct iceberg_table *table,
                                       int64_t above_sequence_number, struct error *err) MUST_CHECK;

/* ---- planning ---- */

struct iceberg_live_file {
    struct iceberg_data_file file;
    int64_t snapshot_id;     /* that added it */
    int64_t sequence_number; /* data sequence number */
    int64_t file_sequence_number;
    const char *manifest_path;
};

struct iceberg_plan {
    struct arena arena; /* owns all below */
    struct iceberg_live_file *files;
    size_t file_count;
    size_t delete_file_count; /* of them with content other than data */
    uint64_t record_count;    /* of data files */
};

struct iceberg_plan_options {
    bool with_metrics;             /* also read column counts and bounds */
    int64_t above_sequence_number; /* only files added after it; 0: all */
    size_t file_count_max;         /* LIMIT beyond; 0: 10 million */
};

/* The live files of a snapshot of the table. */
enum status iceberg_plan_create(struct store *store, const struct iceberg_table *table,
                                const struct iceberg_snapshot *snapshot,
                                const struct iceberg_plan_options *options,
                                struct iceberg_plan *out_plan, struct error *err) MUST_CHECK;
void iceberg_plan_deinit(struct iceberg_plan *plan); /* accepts zeroed */

#endif
