/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SLUICE_FLOW_FOLLOW_INTERNAL_H
#define SLUICE_FLOW_FOLLOW_INTERNAL_H

#include "flow/follow/follow.h"
#include "net/http/http.h"

/* What an answer that is none of 200 and 204 comes to; BUSY: ask again. */
enum status refused_status(const struct http_response *response, struct error *err) MUST_CHECK;

#endif
