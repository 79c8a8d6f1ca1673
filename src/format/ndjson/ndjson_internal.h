/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of this module: the tree of columns that the first pass grows and the second
 * one walks.
 */
#ifndef SLUICE_FORMAT_NDJSON_NDJSON_INTERNAL_H
#define SLUICE_FORMAT_NDJSON_NDJSON_INTERNAL_H

#include "format/json/json.h"
#include "format/ndjson/ndjson.h"

/* Kinds of values that a column has had; nulls are none. */
enum {
    KIND_BOOL = 1,
    KIND_INT = 2,      /* fits int64 */
    KIND_NEGATIVE = 4, /* such an integer below zero */
    KIND_UINT = 8,     /* fits uint64 alone */
    KIND_REAL = 16,
    KIND_STRING = 32,
    KIND_NAMED = 64, /* "NaN", "Infinity", "-Infinity" */
    KIND_LIST = 128,
    KIND_OBJECT = 256,
    KIND_LONG = 512, /* a number that a double does not keep */
};

struct column {
    const char *name;
    size_t name_bytes;
    struct column *parent;              /* NULL: the root, which stands for the lines themselves */
    struct column *first, *last, *next; /* members in order, or the one element; sibling */
    uint32_t index, child_count, depth; /* among its siblings; of the root: 0 */
    uint32_t slot_values;               /* columns that a null of it has to fill, itself too */
    uint16_t kinds;
};

struct columns {
    const struct ndjson_limits *limits; /* borrowed */
    struct arena arena;
    struct column *root;
    struct column **slots; /* of (parent, name); open addressing */
    size_t mask;           /* slot count - 1 */
    uint32_t count;        /* without the root */
};

enum status columns_init(struct columns *columns, const struct ndjson_limits *limits,
                         struct error *err) MUST_CHECK;
void columns_deinit(struct columns *columns); /* accepts zeroed */

/* The member of that name or NULL. `expected` is looked at first and may be NULL. */
struct column *columns_find(const struct columns *columns, const struct column *parent,
                            struct column *expected, struct span name);

/* A new member, or the element, of `parent`. INVALID for a name that has a NUL. */
enum status columns_add(struct columns *columns, struct column *parent, struct span name,
                        struct column **out_column, struct error *err) MUST_CHECK;

/* The doubles that JSON has as strings alone. */
bool read_named_number(struct span text, double *out_value);

/* Whether its values become text because they are of several kinds. */
bool column_is_mixed(const struct column *column);

/* The fields of the root's members; counts slot_values. Owned by the columns. */
enum status columns_make_schema(struct columns *columns, struct arrow_schema *out_schema,
                                struct error *err) MUST_CHECK;

/* What a line holds, into the columns. The reader is at the line's start. */
enum status infer_line(struct columns *columns, struct json_reader *json,
                       struct error *err) MUST_CHECK;

#endif
