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
void test_readers_beside_a_compaction(void **state);
void test_a_large_segment_is_left_active(void **state);
void test_failed_sync_while_copying_ahead(void **state);
void test_acks_of_consumers_last(void **state);
void test_consumers_are_limited(void **state);
void test_a_hold_keeps_what_is_not_acknowledged(void **state);
void test_a_lease_lapses(void **state);
void test_a_hold_gives_way(void **state);
void test_partition_groups(void **state);
void test_consumers_without_memory(void **state);

/* test_producers.c */
void test_eight_receipts_are_kept(void **state);
void test_an_idle_producer_expires(void **state);
void test_nobody_expires_while_the_log_is_closed(void **state);
void test_the_longest_idle_producer_gives_way(void **state);
void test_the_expired_are_bounded(void **state);
void test_producers_without_memory(void **state);

void test_many_groups(void **state);

/* test_backlog.c */
void test_a_table_is_limited(void **state);
void test_a_group_is_limited(void **state);
void test_a_refused_submission_counts_nothing(void **state);
void test_a_limit_says_when_to_come_back(void **state);

#endif
