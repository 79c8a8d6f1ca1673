/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the tables that a request touches have room on the log. A request is refused whole, with
 * the time after which it is worth trying again, before anything of it is stored; what shares a
 * submission with it never is on its account (L27). Runs on the worker that decodes the request.
 */
#include "flow/ingest/ingest_internal.h"

static bool is_touched(const struct ingest_worker *worker, int table)
{
    const struct otlp_batch *batch = worker->decoder.batches[table];
    return batch && batch->rows > worker->decoder.rows_before[table];
}

static enum status check_lane(struct ingest_worker *worker, int table, struct error *err)
{
    return publisher_check(worker->ingest->publisher, worker->ingest->table_ids[table], err);
}

/* What waits in the builder to be submitted counts, too. */
static enum status check_limit(struct ingest_worker *worker, int table, uint64_t *out_retry_ms,
                               struct error *err)
{
    struct ingest *ingest = worker->ingest;
    return wal_admit_rows(ingest->wal, 0, ingest->table_ids[table],
                          otlp_batch_bytes(worker->decoder.batches[table]), out_retry_ms, err);
}

enum status ingest_check_lanes(struct ingest_worker *worker, struct error *err)
{
    for (int i = 0; i < TABLE_DEAD_LETTERS; i++) {
        if (is_touched(worker, i))
            TRY(check_lane(worker, i, err));
    }
    return STATUS_OK;
}

/* Rows of a table whose lane stands still would in the end leave no room in the log for the others:
 * from half of the budget on they are refused. */
static enum status refuse_halted(struct ingest_worker *worker, int table, struct error *err)
{
    struct wal *wal = worker->ingest->wal;
    uint32_t id = worker->ingest->table_ids[table];
    worker->retry_ms = wal_drain_ms(wal, id, wal_table_backlog(wal, id).bytes);
    error_prefix(err, "half of the log is used");
    return err->status = STATUS_NO_SPACE;
}

void ingest_hurry_all(struct ingest_worker *worker)
{
    struct ingest *ingest = worker->ingest;
    for (int i = 0; i < OTLP_TABLE_COUNT; i++)
        if (wal_table_backlog(ingest->wal, ingest->table_ids[i]).bytes)
            publisher_hurry(ingest->publisher, ingest->table_ids[i]);
}

/* What is in the way is published now: of the table, and where the group has a limit, of all. */
static void hurry(struct ingest_worker *worker, int table)
{
    struct ingest *ingest = worker->ingest;
    if (wal_group_backlog(ingest->wal, 0).limit > 0)
        ingest_hurry_all(worker);
    publisher_hurry(ingest->publisher, ingest->table_ids[table]);
}

enum status ingest_check_room(struct ingest_worker *worker, struct error *err)
{
    enum { FILLED_PERCENT = 50 };
    bool is_filled = wal_is_filled(worker->ingest->wal, FILLED_PERCENT);
    for (int i = 0; i < TABLE_DEAD_LETTERS; i++) {
        if (!is_touched(worker, i))
            continue;
        if (is_filled && check_lane(worker, i, err) == STATUS_HALTED)
            return refuse_halted(worker, i, err);
        if (check_limit(worker, i, &worker->retry_ms, err) != STATUS_OK) {
            hurry(worker, i);
            return err->status;
        }
    }
    return STATUS_OK;
}

bool ingest_may_store_dead_letters(struct ingest_worker *worker)
{
    struct error ignored;
    uint64_t retry_ms;
    return check_lane(worker, TABLE_DEAD_LETTERS, &ignored) == STATUS_OK &&
           check_limit(worker, TABLE_DEAD_LETTERS, &retry_ms, &ignored) == STATUS_OK;
}
