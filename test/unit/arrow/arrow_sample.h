/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows in the shape of a span's, for the tests of the columns, and slots as text, for comparing
 * arrays whatever their layout.
 */
#ifndef SLUICE_TEST_ARROW_SAMPLE_H
#define SLUICE_TEST_ARROW_SAMPLE_H

#include "../unit.h"
#include "format/arrow/arrow.h"

/* Plain columns, a list of structs with a map in it, and resource columns whose dictionaries share
 * one index buffer. */
enum { N, TEXT, FLAG, ID, RESOURCE, SERVICE, EVENTS, FIELD_COUNT };
extern struct arrow_field fields[FIELD_COUNT];
extern const struct arrow_schema schema;

struct sample {
    struct arrow_builder builders[FIELD_COUNT];
    struct arrow_batch batch;
};

void append_attributes(struct arrow_builder *map, int64_t count, int64_t seed);
void append_row(struct arrow_builder *b, int64_t i);
void sample_init(struct sample *sample, int64_t rows);
void sample_view(struct sample *sample); /* the batch again, after further rows */
void sample_deinit(struct sample *sample);
void put_slot(struct buf *out, const struct arrow_field *field, const struct arrow_array *array,
              int64_t i);
void put_row(struct buf *out, const struct arrow_batch *batch, int64_t row);
void assert_rows_equal(const struct arrow_batch *a, int64_t row_a, const struct arrow_batch *b,
                       int64_t row_b);

/* ---- test_damage.c ---- */

void test_damage_is_refused_or_harmless(void **state);
void test_claimed_sizes_are_bounded(void **state);
void test_expansion_is_bounded(void **state);
void test_flatbuffers_are_checked(void **state);
void test_broken_arrays_are_refused(void **state);
void test_validate_names_the_fault(void **state);

/* ---- test_dictionaries.c ---- */

void test_files_have_each_value_once(void **state);
void test_grown_dictionaries_are_bounded(void **state);
void test_dictionary_allocations_may_fail(void **state);

/* ---- test_file.c ---- */

void test_streams_are_read_whole(void **state);
void test_golden_files_are_read(void **state);
void test_containers_are_told_apart(void **state);
void test_damaged_files_are_answered(void **state);
void test_file_allocations_may_fail(void **state);
void test_reads_may_fail(void **state);
void test_schemas_keep_origins(void **state);

#endif
