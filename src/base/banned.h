/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that nobody here may call: they write past ends, read numbers without saying what was
 * wrong, or keep hidden state. A use does not compile. Their headers come first, so that the names
 * are still there to be declared.
 */
#ifndef SLUICE_BASE_BANNED_H
#define SLUICE_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BANNED(name) banned_##name##_see_base_banned_h

#undef strcpy
#define strcpy(to, from) BANNED(strcpy) /* snprintf, arena_copy_text */
#undef strcat
#define strcat(to, from) BANNED(strcat)
#undef strncpy
#define strncpy(to, from, bytes) BANNED(strncpy)
#undef strncat
#define strncat(to, from, bytes) BANNED(strncat)
#undef sprintf
#define sprintf(...) BANNED(sprintf) /* snprintf, buf_format */
#undef vsprintf
#define vsprintf(to, format, args) BANNED(vsprintf)
#undef strtok
#define strtok(text, delimiters) BANNED(strtok)
#undef atoi
#define atoi(text) BANNED(atoi) /* parse_i64 */
#undef atol
#define atol(text) BANNED(atol)
#undef atof
#define atof(text) BANNED(atof)
#undef gmtime
#define gmtime(time) BANNED(gmtime) /* gmtime_r */
#undef localtime
#define localtime(time) BANNED(localtime)
#undef ctime
#define ctime(time) BANNED(ctime)
#undef asctime
#define asctime(time) BANNED(asctime)

#endif
