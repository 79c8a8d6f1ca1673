/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SLUICE_BASE_DOUBLE_INTERNAL_H
#define SLUICE_BASE_DOUBLE_INTERNAL_H

#include <stdint.h>

enum { DOUBLE_POW10_MIN = -292, DOUBLE_POW10_MAX = 324 };

extern const uint64_t double_pow10[DOUBLE_POW10_MAX - DOUBLE_POW10_MIN + 1][2];

#endif
