/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of this test program.
 */
#ifndef SLUICE_TEST_CSV_H
#define SLUICE_TEST_CSV_H

#include "format/csv/csv.h"

/* Schema and rows as text, in the form of rows_text.h. */
enum status read_text(struct span file, const struct csv_reader_options *options, struct buf *out,
                      struct error *err) MUST_CHECK;
void check_read(const char *file, const struct csv_reader_options *options, const char *expected);

void test_writer_types(void **state);
void test_writer_quotes(void **state);
void test_writer_dictionaries(void **state);
void test_writer_callback(void **state);
void test_writer_refuses(void **state);
void test_round_trip(void **state);

#endif
