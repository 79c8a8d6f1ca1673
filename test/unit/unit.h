/* SPDX-License-Identifier: Apache-2.0
 *
 * What every unit test program needs: cmocka, TAP output, and status assertions that print the
 * message.
 */
#ifndef SLUICE_TEST_UNIT_H
#define SLUICE_TEST_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/base.h"

/* Evaluates a fallible call that takes `err` as its last argument and asserts STATUS_OK. */
#define assert_ok(expression)                                                                      \
    do {                                                                                           \
        enum status status_ = (expression);                                                        \
        if (status_ != STATUS_OK)                                                                  \
            fail_msg("%s: %s: %s", #expression, status_name(status_), err.message);                \
    } while (0)

#define assert_status(expected, expression)                                                        \
    do {                                                                                           \
        enum status status_ = (expression);                                                        \
        if (status_ != (expected))                                                                 \
            fail_msg("%s: got %s, expected %s", #expression, status_name(status_), #expected);     \
    } while (0)

#endif
