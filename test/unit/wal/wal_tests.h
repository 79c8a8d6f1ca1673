/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of the other files of this program.
 */
#ifndef SLUICE_TEST_WAL_TESTS_H
#define SLUICE_TEST_WAL_TESTS_H

extern const char *wal_test_source_dir; /* where golden/ is */

void test_golden_log_opens(void **state);
void test_golden_segment_is_encoded_the_same(void **state);
void test_retry_follows_the_drain(void **state);
void test_format_refuses_what_is_not_it(void **state);
void test_many_threads_copy_ahead(void **state);
void test_failed_sync_while_copying_ahead(void **state);

#endif
