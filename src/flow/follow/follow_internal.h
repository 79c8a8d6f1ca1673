/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SLUICE_FLOW_FOLLOW_INTERNAL_H
#define SLUICE_FLOW_FOLLOW_INTERNAL_H

#include "flow/follow/follow.h"
#include "net/http/http.h"

/* What an answer that is none of 200 and 204 comes to; BUSY: ask again. */
/* `*out_last`: of RECLAIMED, the last entry that is gone; else as it was. */
enum status refused_status(const struct http_response *response, uint64_t *out_last,
                           struct error *err) MUST_CHECK;

#endif
