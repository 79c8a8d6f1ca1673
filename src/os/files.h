/* SPDX-License-Identifier: Apache-2.0
 *
 * What many callers do with files, said once, over any env.
 */
#ifndef SLUICE_OS_FILES_H
#define SLUICE_OS_FILES_H

#include "os/env.h"

enum { PATH_BYTES_MAX = 1024 };

/* "a/b" into `out`; INVALID if it does not fit. */
enum status path_join(char out[PATH_BYTES_MAX], const char *a, const char *b,
                      struct error *err) MUST_CHECK;

/* Makes `path` and its missing parents. All of them are synced into their parent directories, those
 * that were there too, where we may. */
enum status files_make_dirs(struct env *env, const char *path, struct error *err) MUST_CHECK;

/* The whole file, at most `bytes_max` (LIMIT), appended to `out`. */
enum status files_read(struct env *env, const char *path, uint64_t bytes_max, struct buf *out,
                       struct error *err) MUST_CHECK;

/* Replaces `path` by `data` so that a crash leaves the old or the new: "<path>.tmp" written and
 * synced, renamed, the directory synced. One writer a path. */
enum status files_replace(struct env *env, const char *path, const void *data, size_t bytes,
                          struct error *err) MUST_CHECK;

/* Writes a new file and syncs it, not its directory. EXISTS if it is there. */
enum status files_create(struct env *env, const char *path, const void *data, size_t bytes,
                         struct error *err) MUST_CHECK;

/* Removes the name and syncs its directory; a missing file is fine. */
enum status files_remove(struct env *env, const char *path, struct error *err) MUST_CHECK;

/* The absolute form of a path of the real file system, which need not exist. */
enum status os_absolute_path(const char *path, char out[PATH_BYTES_MAX],
                             struct error *err) MUST_CHECK;

/* Puts what is left of a real pipe into a file without a name, below $TMPDIR or /tmp, for which the
 * handle stands then. LIMIT: more than `bytes_max`. */
enum status os_file_spool(struct env_file *file, uint64_t bytes_max, struct error *err) MUST_CHECK;

/* The mode of the file `like`, where it is there; else that of new files (0666 less the umask). A
 * file system without modes is fine. By the thread that makes files. */
enum status os_file_mode_as(const char *path, const char *like, struct error *err) MUST_CHECK;

/* From here on SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU and SIGXFSZ remove `path`, there or not,
 * before they end the process. NULL: nothing any more. One path at a time, copied; by the thread
 * that began the process. Signals that are ignored, or watched (os_signals_watch), stay so. */
void os_remove_at_signals(const char *path);

/* Standard input, output and error that are closed are opened onto what only fails, so that no file
 * gets their numbers, and what is printed with it. First of all. */
void os_standard_files_hold(void);

/* The directory part of `path` ("." if none). */
void path_parent(char out[PATH_BYTES_MAX], const char *path);

/* All names of a directory, sorted; owned by `arena`. */
enum status files_list(struct env *env, const char *dir, struct arena *arena, char ***out_names,
                       size_t *out_count, struct error *err) MUST_CHECK;

#endif
