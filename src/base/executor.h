/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads that a library may use without owning any: whoever has some lends them.
 */
#ifndef SLUICE_BASE_EXECUTOR_H
#define SLUICE_BASE_EXECUTOR_H

struct executor {
    /* Calls job(job_context, i) once for each i below `count`, at once or one after the other, on
     * any threads, the caller's among them; returns when all have returned. Any thread, several at
     * once; not from a job. */
    void (*run)(void *context, unsigned count, void (*job)(void *job_context, unsigned index),
                void *job_context);
    void *context;
    unsigned threads; /* how many jobs it runs at once; 0 or 1: the caller's thread does it alone,
                       * and `run` is not called */
};

#endif
