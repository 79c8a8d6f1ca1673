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

struct array_checking {
    bool trusts_dictionaries; /* in: their values were checked before */
    bool is_canonical;        /* out */
    const void *fault;        /* out, on failure: the first wrong byte; NULL: not one place */
};

/* What arrow_array_validate does, but what is merely unusual (offsets that do not begin at 0, bytes
 * behind null slots) is answered through `checking`, so that a reader can mend it. */
enum status array_check(const struct arrow_field *field, struct arrow_array *array,
                        struct array_checking *checking, struct error *err) MUST_CHECK;

/* A canonical copy, owned by `arena`; `from` need only pass array_check. */
enum status array_copy_canonical(const struct arrow_field *field, const struct arrow_array *from,
                                 struct arena *arena, struct arrow_array *out_array,
                                 struct error *err) MUST_CHECK;

/* Two arrays laid end to end, owned by `arena`. */
enum status array_concat(const struct arrow_field *field, const struct arrow_array *first,
                         const struct arrow_array *second, struct arena *arena,
                         struct arrow_array *out_array, struct error *err) MUST_CHECK;

#endif
