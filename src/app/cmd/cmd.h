/* SPDX-License-Identifier: Apache-2.0
 *
 * What others may use of the commands: the deterministic load generator's bodies, for benchmarks.
 */
#ifndef SLUICE_APP_CMD_CMD_H
#define SLUICE_APP_CMD_CMD_H

#include "base/base.h"

enum gen_profile { GEN_SHOP, GEN_WILD, GEN_LOGS, GEN_METRICS, GEN_PROFILE_COUNT };

bool gen_profile_parse(const char *text, enum gen_profile *out_profile);
const char *gen_profile_name(enum gen_profile profile);
const char *gen_profile_path(enum gen_profile profile); /* "/v1/traces" */

/* The body of request number `index`: the same for the same profile, seed, size and `now_ns`. */
void gen_body(enum gen_profile profile, uint64_t seed, uint64_t index, uint64_t items,
              int64_t now_ns, struct buf *out);

#endif
