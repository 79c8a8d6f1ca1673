/* SPDX-License-Identifier: Apache-2.0
 *
 * The two halves of the iceberg module's test program.
 */
#ifndef SLUICE_TEST_ICEBERG_H
#define SLUICE_TEST_ICEBERG_H

#include "../unit.h"
#include "lake/iceberg/iceberg.h"

void test_hash_vectors(void **state);
void test_time_transforms(void **state);
void test_truncate(void **state);
void test_transform_text_and_types(void **state);
void test_values_in_order(void **state);
void test_values_encoded(void **state);
void test_bounds(void **state);
void test_partition_path(void **state);
void test_schema_json(void **state);
void test_schema_loses(void **state);
void test_schema_refused(void **state);
void test_schema_ids(void **state);
void test_schema_and_arrow(void **state);

#endif
