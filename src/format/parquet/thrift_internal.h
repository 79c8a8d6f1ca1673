/* SPDX-License-Identifier: Apache-2.0
 *
 * Thrift's compact protocol. Writing: fields of a struct must come in rising order; errors gather
 * in the buf. Reading: bytes are hostile; what does not fit sets the cursor's `failed` and reads as
 * nothing.
 */
#ifndef SLUICE_FORMAT_PARQUET_THRIFT_INTERNAL_H
#define SLUICE_FORMAT_PARQUET_THRIFT_INTERNAL_H

#include "base/base.h"

enum thrift_type {
    THRIFT_TRUE = 1,
    THRIFT_FALSE = 2,
    THRIFT_BYTE = 3,
    THRIFT_I16 = 4,
    THRIFT_I32 = 5,
    THRIFT_I64 = 6,
    THRIFT_BINARY = 8,
    THRIFT_LIST = 9,
    THRIFT_STRUCT = 12,
};

enum { THRIFT_DEPTH_MAX = 12 };

struct thrift {
    struct buf *out;
    int depth;
    int last[THRIFT_DEPTH_MAX]; /* the field before, in each open struct */
};

struct thrift thrift_to(struct buf *out); /* opens the outermost struct */
void thrift_end(struct thrift *thrift);   /* closes the innermost open struct */

void thrift_bool(struct thrift *thrift, int id, bool value);
void thrift_byte(struct thrift *thrift, int id, int8_t value);
void thrift_i16(struct thrift *thrift, int id, int16_t value);
void thrift_i32(struct thrift *thrift, int id, int32_t value);
void thrift_i64(struct thrift *thrift, int id, int64_t value);
void thrift_binary(struct thrift *thrift, int id, struct span value);
void thrift_struct(struct thrift *thrift, int id); /* then fields, then thrift_end */
void thrift_empty_struct(struct thrift *thrift, int id);
void thrift_list(struct thrift *thrift, int id, enum thrift_type element, size_t count);

/* Elements of the list just begun. */
void thrift_element_struct(struct thrift *thrift); /* then fields, then thrift_end */
void thrift_element_bool(struct thrift *thrift, bool value);
void thrift_element_int(struct thrift *thrift, int64_t value); /* i16, i32, i64 */
void thrift_element_binary(struct thrift *thrift, struct span value);
void thrift_list_i64(struct thrift *thrift, int id, const int64_t *values, size_t count);

/* ---- reading ---- */

/* The next field of a struct: its type, and its id (which the caller starts at 0); 0: the struct is
 * over, or the cursor has failed. */
int thrift_read_field(struct cursor *in, int *inout_id);
/* The value of a field of `type`; another type than is asked for fails. */
bool thrift_read_bool(struct cursor *in, int type);
int64_t thrift_read_i64(struct cursor *in, int type); /* any integer */
int32_t thrift_read_i32(struct cursor *in, int type);
struct span thrift_read_binary(struct cursor *in, int type);
bool thrift_read_struct(struct cursor *in, int type); /* its fields follow */
/* How many elements follow; never more than bytes are left. */
size_t thrift_read_list(struct cursor *in, int type, int *out_element);
/* Steps over a value: linear in its bytes, at any nesting up to a limit. */
void thrift_skip(struct cursor *in, int type);

#endif
