/* SPDX-License-Identifier: Apache-2.0
 *
 * Leaves spread over threads.
 *
 * A thread takes the next leaf, those that take longest first, and does all that is to be done with
 * it: leaves share nothing, and what they need besides is their thread's. Which thread has which
 * leaf is left to chance, so nothing in the file may follow from it. Of failures the one counts
 * that the caller's thread alone would have met first.
 */
#include <stdatomic.h>

#include "format/parquet/parquet_internal.h"

enum { SPREAD_BYTES = 128 << 10 }; /* what is done sooner than threads are woken */

/* One pass over all leaves. */
struct spread {
    struct parquet_writer *writer;
    const struct round *round; /* NULL: chunks are sealed */
    atomic_uint next;          /* in the order of leaves */
};

/* ---- the order ---- */

struct weight {
    uint64_t bytes;
    uint32_t leaf;
};

static int compare_weights(const void *a, const void *b)
{
    const struct weight *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->leaf < y->leaf ? -1 : x->leaf > y->leaf;
}

/* Of the chunk before; of the first one, what the rows at hand say, or what there is of it. */
static uint64_t weigh(const struct parquet_writer *writer, const struct leaf *leaf,
                      const struct round *round)
{
    if (writer->group_count)
        return leaf->weight;
    if (!round)
        return leaf_bytes(leaf);
    const struct row_slice *slice = round->slices;
    return leaf_row_bytes(leaf, &round->columns[leaf->path[0].child], slice->first, slice->count) +
           (uint64_t)slice->count * (leaf->width ? leaf->width : sizeof(int32_t));
}

static enum status order_leaves(struct parquet_writer *writer, const struct round *round,
                                struct error *err)
{
    if (writer->is_ordered)
        return STATUS_OK;
    struct weight *weights = mem_alloc_zero(writer->leaf_count, sizeof *weights);
    if (!weights)
        return error_set(err, STATUS_NO_MEMORY, "parquet: no memory for an order of columns");
    for (uint32_t i = 0; i < writer->leaf_count; i++)
        weights[i] = (struct weight){weigh(writer, &writer->leaves[i], round), i};
    qsort(weights, writer->leaf_count, sizeof *weights, compare_weights);
    for (uint32_t i = 0; i < writer->leaf_count; i++)
        writer->order[i] = weights[i].leaf;
    mem_free(weights);
    writer->is_ordered = true;
    return STATUS_OK;
}

/* ---- work ---- */

static enum status write_slice(struct parquet_writer *writer, struct page_scratch *scratch,
                               const struct round *round, uint32_t leaf, size_t slice,
                               struct error *err)
{
    struct leaf *at = &writer->leaves[leaf];
    return leaf_write(scratch, at, &round->columns[at->path[0].child], round->slices[slice].first,
                      round->slices[slice].count, err);
}

static void note_failure(struct page_scratch *scratch, size_t slice, uint32_t leaf,
                         const struct error *err)
{
    bool is_first = scratch->failure.status == STATUS_OK || slice < scratch->failed_slice ||
                    (slice == scratch->failed_slice && leaf < scratch->failed_leaf);
    if (!is_first)
        return;
    scratch->failed_slice = slice;
    scratch->failed_leaf = leaf;
    scratch->failure = *err;
}

static void do_leaf(struct spread *spread, struct page_scratch *scratch, uint32_t leaf)
{
    struct parquet_writer *writer = spread->writer;
    size_t slices = spread->round ? spread->round->slice_count : 1;
    struct error err;
    for (size_t slice = 0; slice < slices; slice++) {
        enum status status = spread->round
                                 ? write_slice(writer, scratch, spread->round, leaf, slice, &err)
                                 : leaf_seal_chunk(scratch, &writer->leaves[leaf], &err);
        if (status != STATUS_OK) {
            note_failure(scratch, slice, leaf, &err);
            return;
        }
    }
}

static void do_leaves(void *context, unsigned thread)
{
    struct spread *spread = context;
    struct parquet_writer *writer = spread->writer;
    for (;;) {
        unsigned at = atomic_fetch_add_explicit(&spread->next, 1, memory_order_relaxed);
        if (at >= writer->leaf_count)
            return;
        do_leaf(spread, &writer->scratches[thread], writer->order[at]);
    }
}

/* The thread that met the first failure; NULL: there was none. */
static struct page_scratch *run_spread(struct parquet_writer *writer, const struct round *round)
{
    struct spread spread = {.writer = writer, .round = round};
    const struct executor *executor = &writer->options.executor;
    struct page_scratch *first = NULL;
    executor->run(executor->context, writer->thread_count, do_leaves, &spread);
    for (unsigned i = 0; i < writer->thread_count; i++) {
        struct page_scratch *scratch = &writer->scratches[i];
        if (scratch->failure.status == STATUS_OK)
            continue;
        if (first)
            note_failure(first, scratch->failed_slice, scratch->failed_leaf, &scratch->failure);
        else
            first = scratch;
    }
    return first;
}

bool is_worth_spreading(const struct parquet_writer *writer, uint64_t bytes)
{
    return writer->thread_count > 1 && bytes >= SPREAD_BYTES;
}

enum status leaves_write(struct parquet_writer *writer, const struct round *round,
                         struct error *err)
{
    if (is_worth_spreading(writer, round->bytes)) {
        TRY(order_leaves(writer, round, err));
        struct page_scratch *failed = run_spread(writer, round);
        if (failed)
            *err = failed->failure;
        return failed ? err->status : STATUS_OK;
    }
    for (size_t slice = 0; slice < round->slice_count; slice++)
        for (uint32_t i = 0; i < writer->leaf_count; i++)
            TRY(write_slice(writer, writer->scratches, round, i, slice, err));
    return STATUS_OK;
}

enum status leaves_seal(struct parquet_writer *writer, uint32_t *out_sealed, struct error *err)
{
    *out_sealed = 0;
    TRY(order_leaves(writer, NULL, err));
    struct page_scratch *failed = run_spread(writer, NULL);
    *out_sealed = failed ? failed->failed_leaf : writer->leaf_count;
    if (failed)
        *err = failed->failure;
    return failed ? err->status : STATUS_OK;
}
