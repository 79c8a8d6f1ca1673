/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the commands that read a server's log port.
 */
#ifndef SLUICE_APP_CMD_EXPORT_INTERNAL_H
#define SLUICE_APP_CMD_EXPORT_INTERNAL_H

#include "app/cmd/convert_internal.h"
#include "flow/follow/follow.h"

/* A page's stream, which is borrowed, as is `out_source`. */
enum status stream_open(const struct span *stream, struct byte_source *out_source,
                        struct arrow_file **out_file, struct error *err) MUST_CHECK;

#endif
