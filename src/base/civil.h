/* SPDX-License-Identifier: Apache-2.0
 *
 * Days since 1970-01-01 and their dates in the proleptic Gregorian calendar, both ways. Source:
 * Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms". Pure; any thread.
 */
#ifndef SLUICE_BASE_CIVIL_H
#define SLUICE_BASE_CIVIL_H

#include <stdbool.h>
#include <stdint.h>

struct civil_date {
    int64_t year;   /* astronomical: 0 is 1 BC */
    int month, day; /* from 1 */
};

/* Any day of an int64 but the outermost 719,468. */
struct civil_date civil_from_days(int64_t days);

bool civil_is_valid(struct civil_date date);   /* there is such a day */
int64_t civil_to_days(struct civil_date date); /* of a valid date, within 10^15 years */

#endif
