/* SPDX-License-Identifier: Apache-2.0
 *
 * A log as if it were another server's, over a network that fails: every question may go
 * unanswered, every acknowledgement or its answer be lost, and what is not asked anew is of an
 * older look.
 */
#ifndef SLUICE_TEST_FLAKY_SOURCE_H
#define SLUICE_TEST_FLAKY_SOURCE_H

#include "base/base.h"
#include "flow/source/source.h"

/* `fails` questions of 65536 have no answer, as long as *is_calm is false. */
enum status flaky_source_create(struct wal *wal, uint64_t seed, uint32_t fails, const bool *is_calm,
                                uint64_t *silences, struct source **out_source,
                                struct error *err) MUST_CHECK;

#endif
