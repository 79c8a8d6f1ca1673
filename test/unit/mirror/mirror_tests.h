/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of the other files of this program.
 */
#ifndef SLUICE_TEST_MIRROR_TESTS_H
#define SLUICE_TEST_MIRROR_TESTS_H

void test_object(void **state);
void test_names(void **state);
void test_head(void **state);
void test_waiters(void **state);
void test_waiters_of_what_is_gone(void **state);
void test_stop_copies(void **state);
void test_refused_waiters(void **state);

#endif
