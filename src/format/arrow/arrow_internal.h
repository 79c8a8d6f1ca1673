/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of this module: how the types are laid out, and what a check may forgive.
 */
#ifndef SLUICE_FORMAT_ARROW_ARROW_INTERNAL_H
#define SLUICE_FORMAT_ARROW_ARROW_INTERNAL_H

#include "format/arrow/arrow.h"

enum arrow_layout {
    LAYOUT_NULL,
    LAYOUT_BITS,
    LAYOUT_FIXED, /* type_width bytes a slot */
    LAYOUT_BYTES, /* offsets and bytes */
    LAYOUT_LIST,  /* offsets and children: list, map */
    LAYOUT_STRUCT,
};

/* Bytes of a fixed-width value of `type`; 0 for the others. */
static inline int32_t type_width(const struct arrow_field *field)
{
    switch (field->type) {
    case ARROW_INT32:
    case ARROW_FLOAT:
    case ARROW_DATE32:
        return 4;
    case ARROW_INT64:
    case ARROW_DOUBLE:
    case ARROW_TIMESTAMP_US:
        return 8;
    case ARROW_FIXED:
        return field->byte_width;
    default:
        return 0;
    }
}

/* The layout of the field's type, as if it were no dictionary. */
static inline enum arrow_layout type_layout(enum arrow_type type)
{
    switch (type) {
    case ARROW_NULL:
        return LAYOUT_NULL;
    case ARROW_BOOL:
        return LAYOUT_BITS;
    case ARROW_UTF8:
    case ARROW_BINARY:
        return LAYOUT_BYTES;
    case ARROW_LIST:
    case ARROW_MAP:
        return LAYOUT_LIST;
    case ARROW_STRUCT:
        return LAYOUT_STRUCT;
    default:
        return LAYOUT_FIXED;
    }
}

static inline int64_t bits_bytes(int64_t count)
{
    return (count + 7) / 8;
}

/* Zero bits among the first `count`. */
int64_t bits_count_zero(const uint8_t *bits, int64_t count);
/* Copies bits into a zeroed `out`. */
void bits_copy(uint8_t *out, int64_t out_at, const uint8_t *bits, int64_t at, int64_t count);

const char *arrow_type_name(enum arrow_type type);

/* The field as its own dictionary's values: same type, no dictionary, not nullable. */
static inline struct arrow_field dictionary_value_field(const struct arrow_field *field)
{
    struct arrow_field values = *field;
    values.is_dictionary = false;
    values.is_nullable = false;
    values.dictionary_key = 0;
    return values;
}

/* Bytes of an index of a dictionary outside; in our arrays it has 4. */
static inline size_t dictionary_index_width(const struct arrow_field *field)
{
    return field->origin && field->origin->index_bits ? field->origin->index_bits / 8u
                                                      : sizeof(int32_t);
}

struct array_checking {
    bool trusts_dictionaries; /* in: their values were checked before */
    bool is_canonical;        /* out */
    const void *fault;        /* out, on failure: the first wrong byte; NULL: not one place */
};

/* What arrow_array_validate does, but what is merely unusual (offsets that do not begin at 0, bytes
 * behind null slots) is answered through `checking`, so that a reader can mend it. */
enum status array_check(const struct arrow_field *field, struct arrow_array *array,
                        struct array_checking *checking, struct error *err) MUST_CHECK;

/* ---- metadata of fields ---- */

#define ARROW_FIELD_ID_KEY "PARQUET:field_id"
#define ARROW_EXTENSION_KEY "ARROW:extension:name"

/* What stands for a field outside: its id and its extension's name, where it has them, then its
 * metadata. */
struct field_pairs {
    const struct arrow_field *field;
    size_t count;
    char id_text[I64_TEXT_MAX + 1];
};
void field_pairs_init(struct field_pairs *pairs, const struct arrow_field *field);
struct arrow_pair field_pair_at(const struct field_pairs *pairs, size_t i);

/* ---- schemas from outside ---- */

/* What a reader of schemas carries along. */
struct schema_making {
    const struct arrow_limits *limits;
    struct arena *arena;
    struct error *err;
    bool takes_origins; /* types that tables do not have, too; else they are refused */
    uint32_t fields_left;
};

/* types.c. A field has its name before its type. `origin` is zeroed to begin with, filled where
 * there is something to say, and goes into the field with field_keep_origin. */
enum status type_refuse(const struct schema_making *making, const struct arrow_field *field,
                        const char *what); /* UNSUPPORTED */
enum status schema_no_memory(const struct schema_making *making);
/* A type that is kept as `type`, with `kind` for an origin. */
enum status type_keep(const struct schema_making *making, struct arrow_field *field,
                      struct arrow_origin *origin, enum arrow_type type, int64_t byte_width,
                      enum arrow_origin_kind kind) MUST_CHECK;
enum status type_set_int(const struct schema_making *making, struct arrow_field *field,
                         struct arrow_origin *origin, int64_t bits, bool is_signed) MUST_CHECK;
enum status type_set_decimal(const struct schema_making *making, struct arrow_field *field,
                             struct arrow_origin *origin, int64_t precision, int64_t scale,
                             int64_t bits) MUST_CHECK;
/* `unit`: as enum arrow_unit, if it is one. */
enum status type_set_time(const struct schema_making *making, struct arrow_field *field,
                          struct arrow_origin *origin, int64_t unit, int64_t bits) MUST_CHECK;
enum status type_set_duration(const struct schema_making *making, struct arrow_field *field,
                              struct arrow_origin *origin, int64_t unit) MUST_CHECK;
enum status type_set_timestamp(const struct schema_making *making, struct arrow_field *field,
                               struct arrow_origin *origin, int64_t unit,
                               struct span zone) MUST_CHECK;
enum status type_set_fixed(const struct schema_making *making, struct arrow_field *field,
                           int64_t width) MUST_CHECK;
/* `field` is that of the values that the runs repeat. */
enum status type_set_run_ends(const struct schema_making *making, const struct arrow_field *field,
                              struct arrow_origin *origin, int64_t bits) MUST_CHECK;
enum status type_set_fixed_list(const struct schema_making *making, struct arrow_field *field,
                                struct arrow_origin *origin, int64_t size) MUST_CHECK;
enum status field_set_name(const struct schema_making *making, struct arrow_field *field,
                           struct span name) MUST_CHECK;
enum status field_set_index(const struct schema_making *making, const struct arrow_field *field,
                            struct arrow_origin *origin, int64_t bits, bool is_signed) MUST_CHECK;
/* Takes from a pair what there is a place for, and keeps the others as they are. */
enum status field_set_metadata(const struct schema_making *making, struct arrow_field *field,
                               struct arrow_origin *origin, struct span key,
                               struct span text) MUST_CHECK;
enum status schema_set_metadata(const struct schema_making *making, struct arrow_metadata *metadata,
                                struct span key, struct span text) MUST_CHECK;
enum status field_keep_origin(const struct schema_making *making, struct arrow_field *field,
                              const struct arrow_origin *origin) MUST_CHECK;
/* Zeroed fields at `depth`, within the limits. */
enum status fields_alloc(struct schema_making *making, uint32_t count, uint32_t depth,
                         struct arrow_field **out_fields) MUST_CHECK;

/* ---- arrays from outside ---- */

/* What a reader of arrays carries along. */
/* What a child's slots belong to, `each` of them to one of the parent's: a null there says nothing
 * about them. */
struct parent {
    const struct arrow_array *array;
    int64_t each;
    const struct parent *around; /* what the parent's slots belong to; NULL: only themselves */
};

static inline bool is_below_null(const struct parent *parent, int64_t slot)
{
    for (; parent; parent = parent->around) {
        slot /= parent->each;
        if (slot < parent->array->length && !arrow_is_valid(parent->array, slot))
            return true;
    }
    return false;
}

struct array_making {
    struct arena *arena; /* of what is made */
    struct error *err;
    const struct arrow_field *field; /* being read; NULL: none in particular */
    const struct parent *parent;     /* of the slots that are read; NULL: none */
    const void *fault;               /* the first wrong byte of what is read; NULL: unknown */
    uint64_t bytes_left;             /* that may still be made of others */
    size_t bytes_max;                /* for the message when they are used up */
};

/* INVALID, at `place` (or NULL). */
enum status making_fail(struct array_making *making, const void *place, const char *what);
enum status making_too_long(struct array_making *making); /* LIMIT */
/* LIMIT where the arena's bound is near, else NO_MEMORY. */
enum status arena_no_memory(const struct arena *arena, struct error *err);
enum status making_charge(struct array_making *making, uint64_t bytes) MUST_CHECK;
/* What a batch within the limits may take; 0: any. */
size_t limits_memory_max(const struct arrow_limits *limits);
/* Memory for what is made of other bytes. `out_place`: the address of a pointer. */
enum status making_alloc(struct array_making *making, uint64_t bytes, void *out_place) MUST_CHECK;

/* convert.c: what a field with an origin has instead of 32-bit offsets, bytes, indices. The caller
 * has checked that there are as many bytes as slots need. */
enum { ARROW_VIEW_BYTES = 16 };

/* `length` + 1 offsets of 4 or 8 bytes, counted from `base`. */
enum status convert_offsets(struct array_making *making, const uint8_t *from, size_t width,
                            int64_t length, int64_t base, const int32_t **out) MUST_CHECK;
enum status convert_fixed_offsets(struct array_making *making, int64_t length, int32_t size,
                                  const int32_t **out) MUST_CHECK;
/* Length and validity of `array` are there already, and below its dictionary. */
enum status convert_views(struct array_making *making, const uint8_t *views,
                          const struct span *buffers, uint64_t buffer_count,
                          struct arrow_array *array) MUST_CHECK;
enum status convert_indices(struct array_making *making, const uint8_t *from,
                            const struct arrow_origin *origin,
                            struct arrow_array *array) MUST_CHECK;
/* Slots below a null whose 32-bit index is none become null. */
enum status hide_indices(struct array_making *making, struct arrow_array *array) MUST_CHECK;

/* convert_slots.c: slots that lie elsewhere than at their place. The arrays that they are taken
 * from must have passed array_check. */

/* A list whose slots name their first element and how many it has, each in `width` bytes, in any
 * order. Length and validity of `array` are there already. */
enum status convert_list_view(struct array_making *making, const struct arrow_field *field,
                              const uint8_t *firsts, const uint8_t *counts, size_t width,
                              const struct arrow_array *elements,
                              struct arrow_array *array) MUST_CHECK;
/* Slots `first` to `first + length` of runs of equal values: run i ends before slot `ends`[i], a
 * number of `width` bytes. */
enum status convert_run_ends(struct array_making *making, const struct arrow_field *field,
                             const uint8_t *ends, size_t width, const struct arrow_array *values,
                             int64_t first, int64_t length, struct arrow_array *array) MUST_CHECK;

static inline enum arrow_origin_kind origin_kind(const struct arrow_field *field)
{
    return field->origin ? field->origin->kind : ARROW_ORIGIN_SAME;
}

/* Bytes of a number of a list view; 0: it is none. */
static inline size_t list_view_width(const struct arrow_field *field)
{
    enum arrow_origin_kind kind = origin_kind(field);
    return kind == ARROW_ORIGIN_LIST_VIEW ? 4 : kind == ARROW_ORIGIN_LARGE_LIST_VIEW ? 8 : 0;
}

/* Bytes of the end of a run; 0: there are none. */
static inline size_t run_end_width(const struct arrow_field *field)
{
    return field->origin ? field->origin->run_end_bits / 8u : 0;
}

/* ---- builders ---- */

/* Slots of an array of the builder's type, without dictionaries in it; it must have passed
 * array_check. LIMIT past 2^31 - 1 of anything; no memory shows as after other appends. */
enum status builder_append_slots(struct arrow_builder *builder, const struct arrow_array *from,
                                 int64_t first, int64_t count, struct error *err) MUST_CHECK;

/* Values that grow at their end: what is there is not copied for each addition. */
struct growing_values {
    struct arrow_field field; /* of the values; none of it is a dictionary */
    struct arrow_builder builder;
    struct arrow_array values; /* a view of the builder */
    struct arena arena;        /* of the view's structs */
    bool is_begun;
};

/* Appends `more`, of the type `field`, whose children are borrowed from the first call on. LIMIT
 * past `bytes_max` (0: none) or 2^31 - 1 values. After a failure there are no values. */
enum status growing_values_append(struct growing_values *growing, const struct arrow_field *field,
                                  const struct arrow_array *more, size_t bytes_max,
                                  struct error *err) MUST_CHECK;
void growing_values_deinit(struct growing_values *growing); /* leaves it zeroed, accepts such */

/* ---- whole arrays ---- */

/* A canonical copy, owned by `arena`; `from` need only pass array_check. */
enum status array_copy_canonical(const struct arrow_field *field, const struct arrow_array *from,
                                 struct arena *arena, struct arrow_array *out_array,
                                 struct error *err) MUST_CHECK;

/* `count` slots from `first` on, of one of several arrays. */
struct array_run {
    uint32_t source;
    int32_t first, count;
};

/* The slots of `runs`, none of them empty, one after the other; `from` need only pass array_check.
 * LIMIT when a buffer would pass 2^31 - 1 bytes. */
enum status array_gather(const struct arrow_field *field, const struct arrow_array *from,
                         struct array_run *runs, size_t count, struct arena *arena,
                         struct arrow_array *out_array, struct error *err) MUST_CHECK;

/* The array with `count` null slots behind it (zeros, where the field is not nullable), owned by
 * `arena`. */
enum status array_with_null(const struct arrow_field *field, const struct arrow_array *from,
                            int64_t count, struct arena *arena, struct arrow_array *out_array,
                            struct error *err) MUST_CHECK;

/* Two arrays laid end to end, owned by `arena`. */
enum status array_concat(const struct arrow_field *field, const struct arrow_array *first,
                         const struct arrow_array *second, struct arena *arena,
                         struct arrow_array *out_array, struct error *err) MUST_CHECK;

#endif
