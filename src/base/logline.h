/* SPDX-License-Identifier: Apache-2.0
 *
 * Log lines of the process, written to stderr by server/ and cmd/ alone; libraries return errors.
 * One line is one write: time, level, message. Any thread.
 */
#ifndef SLUICE_BASE_LOGLINE_H
#define SLUICE_BASE_LOGLINE_H

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

void log_set_level(enum log_level least);
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
