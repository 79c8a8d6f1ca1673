/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes of rejected items while the lane of otel.dead_letters stands still (L27): files instead of
 * the log, which they would fill. A file holds one signal's items one behind the other, each
 * wrapped as field 1 of an export request, so that the file is itself an OTLP request (of at most
 * 8 MiB, unless what one request brought is larger). Up to a limit of bytes in the directory; not
 * synced, since nobody was promised these items.
 */
#ifndef SLUICE_FLOW_INGEST_DEAD_LETTERS_H
#define SLUICE_FLOW_INGEST_DEAD_LETTERS_H

#include "os/os.h"

struct dead_letters;

/* `dir` need not exist; what lies there already counts. */
enum status dead_letters_create(struct env *env, const char *dir, uint64_t bytes_max,
                                struct dead_letters **out_letters, struct error *err) MUST_CHECK;
void dead_letters_destroy(struct dead_letters *letters); /* accepts NULL */
/* `items` are an export request's; `signal` is 0 to 2 and `name` that signal's. Any thread. False:
 * none is kept, for the limit or because the disk refuses, which is asked again after a second. */
bool dead_letters_keep(struct dead_letters *letters, unsigned signal, const char *name,
                       struct span items);

#endif
