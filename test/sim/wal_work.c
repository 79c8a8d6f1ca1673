/* SPDX-License-Identifier: Apache-2.0
 *
 * What the workers do: append, submit, produce with numbers, scan, acknowledge, consume, seal and
 * idle.
 */
#include "sim/wal_model.h"

/* ---- submissions ---- */

struct request {
    struct wal_submission submission;
    struct wal_entry entries[3];
    struct wal_contribution contributions[3];
    char producer_id[16];
    uint64_t numbers[3];
    uint64_t order; /* among those of its worker and durability; 0: not checked */
    struct worker *worker;
    struct model *model;
    bool is_done;
    uint8_t *bytes[3];
};

static void request_done(struct wal_submission *submission, enum status status,
                         const struct error *err)
{
    struct request *request = CONTAINER_OF(submission, struct request, submission);
    struct model *model = request->model;
    bool is_synced = submission->durability == WAL_SYNCED;
    UNUSED(err);
    if (request->is_done)
        fail(model, "a submission was completed twice");
    request->is_done = true;
    model->outstanding--;
    if (request->order && status == STATUS_OK) {
        uint64_t *done = &request->worker->done[is_synced];
        if (request->order <= *done)
            fail(model, "completion %llu came after %llu", U(request->order), U(*done));
        *done = request->order;
    }
    for (uint32_t i = 0; i < submission->entry_count; i++) {
        struct item *item = &model->items[request->numbers[i]];
        const struct wal_entry *entry = &submission->entries[i];
        if (status == STATUS_OK) {
            item->state = is_synced ? ITEM_SYNCED : ITEM_WRITTEN;
            item_placed(model, request->numbers[i], entry->seq, submission->term, entry->chain,
                        is_synced);
        } else if (status != STATUS_IO && status != STATUS_UNKNOWN_OUTCOME) {
            item->state = ITEM_REFUSED;
            totals.refused++;
        }
    }
    totals.appended += status == STATUS_OK;
    for (uint32_t i = 0; i < submission->entry_count; i++)
        mem_free(request->bytes[i]);
    if (request->order)
        mem_free(request);
}

/* NULL: out of (simulated) memory. */
static struct request *request_make(struct worker *worker, uint32_t count, uint32_t producer,
                                    uint64_t sequence)
{
    struct model *model = worker->model;
    struct request *request = mem_alloc_zero(1, sizeof *request);
    if (!request)
        return NULL;
    request->model = model;
    request->worker = worker;
    request->submission = (struct wal_submission){.entries = request->entries,
                                                  .entry_count = count,
                                                  .done = request_done,
                                                  .durability = WAL_SYNCED};
    uint64_t submission = ++model->submissions;
    uint32_t group = (uint32_t)pick(model, model->groups);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t table = (uint32_t)pick(model, TABLES);
        if (table == model->stuck && pick(model, 4)) /* few are its rows */
            table = (table + 1) % TABLES;
        uint32_t bytes = 8 + (uint32_t)pick(model, pick(model, 8) ? 600 : 6000);
        uint8_t *payload = mem_alloc(bytes);
        if (!payload) {
            for (uint32_t k = 0; k < i; k++) {
                model->items[request->numbers[k]].state = ITEM_REFUSED;
                mem_free(request->bytes[k]);
            }
            mem_free(request);
            return NULL;
        }
        uint64_t number = item_add(model, (struct item){.table = table,
                                                        .group = group,
                                                        .bytes = bytes,
                                                        .submission = submission,
                                                        .producer = producer,
                                                        .producer_sequence = sequence});
        payload_fill(number, payload, bytes);
        request->numbers[i] = number;
        request->bytes[i] = payload;
        struct wal_contribution *contribution = &request->contributions[i];
        *contribution = (struct wal_contribution){.rows = 1 + (uint32_t)(number % 5)};
        if (producer) {
            int length =
                snprintf(request->producer_id, sizeof request->producer_id, "p%u", producer);
            contribution->producer = request->producer_id;
            contribution->producer_length = (uint8_t)length;
            contribution->producer_sequence = sequence;
            contribution->body_hash = body_hash(producer, sequence);
        }
        request->entries[i] = (struct wal_entry){.type = WAL_DATA,
                                                 .group = group,
                                                 .table_id = model->table_ids[table],
                                                 .schema_fingerprint = 77 + table,
                                                 .rows = contribution->rows,
                                                 .contributions = contribution,
                                                 .contribution_count = 1,
                                                 .payload = span_of(payload, bytes),
                                                 .payload_crc = crc32c(0, payload, bytes)};
    }
    model->outstanding++;
    return request;
}

static void do_append(struct worker *worker)
{
    struct model *model = worker->model;
    struct error err;
    struct request *request = request_make(worker, 1 + (uint32_t)pick(model, 3), 0, 0);
    if (!request)
        return;
    if (pick(model, 4) == 0)
        request->submission.durability = WAL_WRITTEN;
    enum status status = wal_append(model->wal, &request->submission, &err);
    if (!request->is_done)
        fail(model, "append returned %s before its completion", status_name(status));
    mem_free(request);
}

static void do_submit(struct worker *worker)
{
    struct model *model = worker->model;
    struct request *request = request_make(worker, 1 + (uint32_t)pick(model, 2), 0, 0);
    if (!request)
        return;
    enum wal_durability durability = pick(model, 3) ? WAL_SYNCED : WAL_WRITTEN;
    request->submission.durability = durability;
    request->order = ++worker->ordered[durability == WAL_SYNCED];
    wal_submit(model->wal, &request->submission);
}

/* ---- producers ---- */

static void receipts_check(struct model *model, uint32_t producer, uint64_t sequence,
                           const struct wal_receipt *receipts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t number = u64s_get(&model->synced_at[receipts[i].group], receipts[i].seq);
        if (number == 0)
            continue; /* durable, and never yet seen: the next scan will show it */
        const struct item *item = &model->items[number];
        if (item->producer != producer || item->producer_sequence != sequence ||
            item->term != receipts[i].term)
            fail(model, "the receipt of (%u, %llu) names item %llu of (%u, %llu)", producer,
                 U(sequence), U(number), item->producer, U(item->producer_sequence));
        totals.producers_checked++;
    }
    totals.repeats++;
}

static struct span producer_id(uint32_t number, char text[16])
{
    int length = snprintf(text, 16, "p%u", number);
    return span_of(text, (size_t)length);
}

/* It was told that it expired: not before its time, and another takes its place. */
static void producer_retire(struct model *model, struct producer_model *producer, uint64_t expected)
{
    int64_t idle_ns = env_mono_ns(sim_node_env(model->node)) - producer->seen_ns;
    int64_t keep_ns = (int64_t)model->options.keep_producers_ms * 1000000;
    bool knows_all = expected > producer->next; /* rot may have taken what it sent last */
    if (producer->next > 0 && idle_ns + 1000000 < keep_ns && (knows_all || !model->has_rot))
        fail(model, "p%u expired after %lld ns of %lld", producer->number, (long long)idle_ns,
             (long long)keep_ns);
    if (expected <= producer->next && !model->has_rot)
        fail(model, "p%u expired below %llu, and stored %llu", producer->number, U(expected),
             U(producer->next));
    model->retired[model->retired_count++] =
        (struct retired_model){.number = producer->number, .last = expected - 1};
    *producer = (struct producer_model){0};
    totals.expired++;
}

/* What an expired one stored is not stored again. After a crash it may be known again. */
static void retired_ask(struct model *model)
{
    struct wal_receipt receipts[16];
    uint32_t count;
    uint64_t expected;
    char text[16];
    if (model->retired_count == 0 || model->has_rot ||
        model->retired_count > 4 * model->options.producers_max)
        return;
    const struct retired_model *retired = &model->retired[pick(model, model->retired_count)];
    if (retired->last == 0)
        return;
    uint64_t sequence = 1 + pick(model, retired->last);
    struct span id = producer_id(retired->number, text);
    enum wal_producer_verdict verdict =
        wal_producer_begin(model->wal, id, sequence, body_hash(retired->number, sequence), receipts,
                           &count, &expected);
    if (verdict != WAL_PRODUCER_EXPIRED && verdict != WAL_PRODUCER_REPEAT &&
        verdict != WAL_PRODUCER_OLD)
        fail(model, "(%u, %llu) expired, and then got verdict %d", retired->number, U(sequence),
             (int)verdict);
    totals.expired_asked += verdict == WAL_PRODUCER_EXPIRED;
}

/* A repeat of what is known to be durable. */
static void produce_again(struct model *model, struct producer_model *producer)
{
    struct wal_receipt receipts[16];
    uint32_t count;
    uint64_t expected, back = pick(model, producer->next < 12 ? producer->next : 12);
    char text[16];
    uint64_t sequence = producer->next - back;
    struct span id = producer_id(producer->number, text);
    bool is_other = pick(model, 4) == 0;
    struct hash128 hash = body_hash(producer->number, sequence + (is_other ? 7 : 0));
    enum wal_producer_verdict verdict =
        wal_producer_begin(model->wal, id, sequence, hash, receipts, &count, &expected);
    if (verdict == WAL_PRODUCER_EXPIRED) {
        producer_retire(model, producer, expected);
        return;
    }
    /* One more may be durable than is known. */
    bool may_be_old = back > 6 || model->had_no_memory;
    bool is_right = (verdict == WAL_PRODUCER_OLD && may_be_old) ||
                    verdict == (is_other ? WAL_PRODUCER_MISMATCH : WAL_PRODUCER_REPEAT);
    if (!is_right && !model->has_rot)
        fail(model, "a repeat of (%u, %llu) got verdict %d", producer->number, U(sequence),
             (int)verdict);
    if (verdict == WAL_PRODUCER_REPEAT)
        receipts_check(model, producer->number, sequence, receipts, count);
    if (verdict == WAL_PRODUCER_NEW)
        wal_producer_abandon(model->wal, id, sequence);
}

/* The claim is held: stores the rows, or gives it back. */
static void produce_rows(struct worker *worker, struct producer_model *producer, struct span id,
                         int64_t began_ns)
{
    struct model *model = worker->model;
    struct error err;
    uint64_t sequence = producer->next + 1;
    struct request *request =
        request_make(worker, 1 + (uint32_t)pick(model, 2), producer->number, sequence);
    if (request && pick(model, 16) != 0) {
        if (wal_append(model->wal, &request->submission, &err) == STATUS_OK) {
            producer->next = sequence;
            producer->seen_ns = began_ns;
        }
        mem_free(request);
        return;
    }
    wal_producer_abandon(model->wal, id, sequence);
    if (!request)
        return;
    for (uint32_t i = 0; i < request->submission.entry_count; i++) {
        model->items[request->numbers[i]].state = ITEM_REFUSED;
        mem_free(request->bytes[i]);
    }
    model->outstanding--;
    mem_free(request);
}

static void produce_next(struct worker *worker, struct producer_model *producer)
{
    struct model *model = worker->model;
    struct wal_receipt receipts[16];
    uint32_t count;
    uint64_t expected, sequence = producer->next + 1;
    char text[16];
    struct span id = producer_id(producer->number, text);
    int64_t began_ns = env_mono_ns(sim_node_env(model->node));
    enum wal_producer_verdict verdict =
        wal_producer_begin(model->wal, id, sequence, body_hash(producer->number, sequence),
                           receipts, &count, &expected);
    switch (verdict) {
    case WAL_PRODUCER_NEW:
        produce_rows(worker, producer, id, began_ns);
        return;
    case WAL_PRODUCER_EXPIRED:
        producer_retire(model, producer, expected);
        return;
    case WAL_PRODUCER_REPEAT:
    case WAL_PRODUCER_OLD:
        receipts_check(model, producer->number, sequence, receipts, count);
        producer->next = sequence; /* it had been durable before the crash */
        return;
    case WAL_PRODUCER_FULL: /* or no memory for one more */
        if (producer->next > 0 && !model->has_rot)
            fail(model, "p%u is known, and one too many", producer->number);
        totals.full += model->options.producers_max < PRODUCERS;
        return;
    default:
        if (!model->has_rot)
            fail(model, "(%u, %llu) got verdict %d, expected %llu", producer->number, U(sequence),
                 (int)verdict, U(expected));
    }
}

static void do_produce(struct worker *worker)
{
    struct model *model = worker->model;
    uint32_t index = (uint32_t)pick(model, PRODUCERS);
    struct producer_model *producer = &model->producers[index];
    if (model->producer_busy[index])
        return; /* one request of a producer at a time */
    if (producer->number == 0 && model->producer_numbers == PRODUCER_IDS)
        return;
    model->producer_busy[index] = true;
    if (producer->number == 0)
        producer->number = ++model->producer_numbers;
    uint64_t choice = pick(model, 8);
    if (choice == 0)
        retired_ask(model);
    else if (choice < 4 && producer->next > 0)
        produce_again(model, producer);
    else if (producer->next < PRODUCED_MAX)
        produce_next(worker, producer);
    model->producer_busy[index] = false;
}

/* ---- scanning ---- */

/* A piece of a scan beside the writers: order, content, and only the synced prefix. */
static void do_scan(struct worker *worker)
{
    struct model *model = worker->model;
    struct error err;
    struct wal_scan *scan;
    uint32_t group = (uint32_t)pick(model, model->groups);
    uint32_t table = pick(model, 3) ? model->table_ids[pick(model, TABLES)] : 0;
    uint64_t after = wal_reclaimed_through(model->wal, group, table);
    uint64_t end = wal_synced_end(model->wal, group).seq;
    if (end > after)
        after += pick(model, end - after + 1);
    enum status status = wal_scan_open(model->wal, group, table, after, &scan, &err);
    if (status != STATUS_OK) {
        if (status != STATUS_RECLAIMED && status != STATUS_NO_MEMORY)
            fail(model, "scan: %s", err.message);
        return;
    }
    for (uint64_t left = pick(model, 30); left > 0; left--) {
        struct wal_view view;
        status = wal_scan_next(scan, &view, &err);
        if (status != STATUS_OK)
            break;
        if (view.seq <= after)
            fail(model, "scan went from %llu back to %llu", U(after), U(view.seq));
        after = view.seq;
        if (view.type == WAL_DATA)
            view_check(model, &view);
    }
    if (status != STATUS_OK && status != STATUS_NOT_FOUND && status != STATUS_NO_MEMORY &&
        !(status == STATUS_RECLAIMED) && !(status == STATUS_CORRUPT && model->has_rot))
        fail(model, "scan: %s", err.message);
    wal_scan_close(scan);
}

static void do_ack(struct worker *worker)
{
    struct model *model = worker->model;
    struct error err;
    struct wal_ack acks[GROUPS_MAX] = {0};
    uint64_t through[GROUPS_MAX];
    uint32_t table = (uint32_t)pick(model, TABLES);
    if (table == model->stuck)
        return;
    for (uint32_t g = 0; g < model->groups; g++) {
        uint64_t known = model->tried[table][g];
        uint64_t end = wal_synced_end(model->wal, g).seq;
        through[g] = end > known ? known + pick(model, end - known + 1) : known;
        if (through[g] > end)
            return; /* an attempt of a run whose end was cut: cannot be */
        acks[g].through.seq = through[g];
        acks[g].committed.seq = through[g];
        if (wal_chain_at(model->wal, g, through[g], &acks[g].through.chain, &err) != STATUS_OK)
            return;
        acks[g].committed.chain = acks[g].through.chain;
    }
    for (uint32_t g = 0; g < model->groups; g++)
        if (through[g] > model->tried[table][g])
            model->tried[table][g] = through[g];
    if (wal_ack_table(model->wal, model->table_ids[table], acks, &err) != STATUS_OK)
        return;
    totals.acks++;
    for (uint32_t g = 0; g < model->groups; g++)
        if (through[g] > model->through[table][g])
            model->through[table][g] = through[g];
}

void worker_main(void *context)
{
    struct worker *worker = context;
    struct model *model = worker->model;
    struct error err;
    for (uint32_t i = 0; i < model->ops; i++) {
        uint64_t choice = pick(model, 100);
        if (choice < 33)
            do_append(worker);
        else if (choice < 53)
            do_submit(worker);
        else if (choice < 67)
            do_produce(worker);
        else if (choice < 78)
            do_scan(worker);
        else if (choice < 86)
            do_ack(worker);
        else if (choice < 94)
            consumer_work(worker);
        else if (choice < 96) {
            enum status status = wal_seal(model->wal, &err);
            if (status != STATUS_OK && status != STATUS_NO_SPACE && status != STATUS_NO_MEMORY)
                fail(model, "seal: %s", err.message);
        } else {
            env_sleep_ms(sim_node_env(model->node), pick(model, 40));
        }
    }
}
