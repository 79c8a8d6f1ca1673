/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads that wait for work, over any env.
 */
#ifndef SLUICE_OS_POOL_H
#define SLUICE_OS_POOL_H

#include "os/env.h"

struct pool;

/* `threads` at once, that of the caller of a run among them: one less is started. At least 1. */
enum status pool_create(struct env *env, unsigned threads, struct pool **out_pool,
                        struct error *err) MUST_CHECK;
/* Joins the threads; no run may be under way. Accepts NULL. */
void pool_destroy(struct pool *pool);
/* As long as the pool. Several callers share its threads: each works on its own jobs meanwhile, so
 * that none waits for the others' to begin. */
struct executor pool_executor(struct pool *pool);

#endif
