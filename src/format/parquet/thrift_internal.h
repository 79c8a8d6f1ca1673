/* SPDX-License-Identifier: Apache-2.0
 *
 * Thrift's compact protocol, writing. Fields of a struct must come in rising order. Errors gather
 * in the buf.
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

#endif
