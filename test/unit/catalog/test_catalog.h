/* SPDX-License-Identifier: Apache-2.0
 *
 * The two halves of the catalog's test program.
 */
#ifndef SLUICE_TEST_CATALOG_H
#define SLUICE_TEST_CATALOG_H

#include "../unit.h"
#include "lake/catalog/catalog.h"

extern const char test_metadata[]; /* a small table's document; its location is "/nowhere/t" */

void test_requirements(void **state);
void test_apply_snapshots(void **state);
void test_apply_removals(void **state);
void test_apply_schemas(void **state);
void test_apply_refuses(void **state);
void test_change_without_memory(void **state);

#endif
