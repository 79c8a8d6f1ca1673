/* SPDX-License-Identifier: Apache-2.0
 *
 * The log under simulated faults, against a model that shares no code with it.
 *
 *   sim_wal [--seeds FIRST COUNT]     (default 1 200)
 *   sim_wal --seed N                  replays one, with what happened
 *
 * Each seed is one world: small segments, a few workers that append, submit, produce with sequence
 * numbers, acknowledge, seal, scan and idle; a run ends cleanly, by a kill, by the engine's own
 * exit or by a power cut; then the log is opened again on what is left and everything is checked:
 *
 *   - a synced entry is there until its table acknowledged it, at its seq, with its chain and bytes
 *   - so is an entry that any scan ever showed (L23), and a written one unless power was lost
 *   - a submission is there whole or not at all; nothing is there twice; nothing refused is there
 *   - no (term, seq) and no synced seq is ever used for anything else (L3)
 *   - completions come in the order of submission within a durability
 *   - a producer's number is stored once, and a repeat gets the receipt of the entry that holds it
 *   - an acknowledgement that returned is still known; nothing unacknowledged is reclaimed
 *   - what bit rot took is named, and nothing else is missing
 *   - the allocated bytes reported are those of the files
 *
 * A failure prints the seed. TAP: one line for each property that must have been exercised.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/wal/wal.h"
#include "sim/sim.h"

enum { TABLES = 3, GROUPS_MAX = 3, PRODUCERS = 4, WORKERS_MAX = 4, PRODUCED_MAX = 512 };

static const char dir[] = "/data/log";

enum item_state { ITEM_UNKNOWN, ITEM_WRITTEN, ITEM_SYNCED, ITEM_REFUSED };

/* One DATA entry that was ever submitted; its number is in its payload. */
struct item {
    uint32_t table, group, bytes;
    uint64_t submission;
    enum item_state state;
    uint64_t seq, term, chain;
    bool is_durable;   /* synced, or seen by a scan */
    bool is_lost;      /* named as damaged; expected no more */
    bool is_gone;      /* was not there after a start: must never come back */
    bool is_present;   /* in the scan under way */
    uint32_t producer; /* index + 1 */
    uint64_t producer_sequence;
};

struct u64s {
    uint64_t *values;
    size_t count, capacity;
};

struct producer_model {
    uint64_t next; /* lowest number not known to be durable */
};

struct model {
    uint64_t seed;
    bool is_verbose;
    struct sim *sim;
    struct sim_node *node;
    struct wal_options options;
    struct wal *wal;
    uint32_t groups, workers, ops;
    struct item *items; /* by number; 0 unused */
    size_t item_count, item_capacity;
    uint64_t submissions;
    struct u64s synced_at[GROUPS_MAX];  /* number by seq, once durable */
    struct u64s written_at[GROUPS_MAX]; /* number by seq, last written acknowledgement */
    uint32_t table_ids[TABLES];
    uint64_t through[TABLES][GROUPS_MAX], tried[TABLES][GROUPS_MAX];
    struct producer_model producers[PRODUCERS];
    bool producer_busy[PRODUCERS];
    uint64_t term_last;
    bool has_rot, is_power_lost;
    uint64_t outstanding;
};

static struct totals {
    uint64_t seeds, runs, appended, cut, voided, refused, damaged, dropped, repeats, scanned, acks,
        reclaimed, forks, verified, open_refused, written_lost, producers_checked;
    struct sim_counts sim;
} totals;

__attribute__((format(printf, 2, 3))) _Noreturn static void fail(const struct model *model,
                                                                 const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("# seed %llu: ", (unsigned long long)model->seed);
    vprintf(format, args);
    printf("\n# replay: sim_wal --seed %llu\n", (unsigned long long)model->seed);
    fflush(stdout);
    va_end(args);
    exit(1);
}

#define U(x) ((unsigned long long)(x))

static void say(const struct model *model, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void say(const struct model *model, const char *format, ...)
{
    va_list args;
    if (!model->is_verbose)
        return;
    va_start(args, format);
    printf("# ");
    vprintf(format, args);
    printf("\n");
    va_end(args);
}

static uint64_t pick(struct model *model, uint64_t bound)
{
    return random_below(sim_random(model->sim), bound);
}

/* ---- items ---- */

static uint64_t u64s_get(const struct u64s *list, uint64_t at)
{
    return at < list->count ? list->values[at] : 0;
}

static void u64s_set(struct u64s *list, uint64_t at, uint64_t value)
{
    if (at >= list->capacity) {
        size_t capacity = (size_t)at * 2 + 64;
        list->values = realloc(list->values, capacity * sizeof *list->values);
        CHECK(list->values);
        memset(list->values + list->capacity, 0,
               (capacity - list->capacity) * sizeof *list->values);
        list->capacity = capacity;
    }
    if (at >= list->count)
        list->count = (size_t)at + 1;
    list->values[at] = value;
}

static uint64_t item_add(struct model *model, struct item item)
{
    if (model->item_count == model->item_capacity) {
        model->item_capacity = model->item_capacity ? model->item_capacity * 2 : 256;
        model->items = realloc(model->items, model->item_capacity * sizeof item);
        CHECK(model->items);
    }
    model->items[model->item_count] = item;
    return model->item_count++;
}

static void payload_fill(uint64_t number, uint8_t *to, uint32_t bytes)
{
    uint64_t word = number * 0x9e3779b97f4a7c15u;
    for (uint32_t i = 0; i < bytes; i++) {
        to[i] = (uint8_t)(word >> 56);
        word = word * 6364136223846793005u + 1442695040888963407u;
    }
    put_le64(to, number);
}

static bool payload_holds(uint64_t number, struct span payload)
{
    uint64_t word = number * 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < payload.length; i++) {
        if (i >= 8 && payload.data[i] != (uint8_t)(word >> 56))
            return false;
        word = word * 6364136223846793005u + 1442695040888963407u;
    }
    return true;
}

static struct hash128 body_hash(uint32_t producer, uint64_t sequence)
{
    return (struct hash128){.low = producer * 1000003u + sequence, .high = ~sequence};
}

/* The entry was acknowledged or seen at this place. */
static void item_placed(struct model *model, uint64_t number, uint64_t seq, uint64_t term,
                        uint64_t chain, bool is_durable)
{
    struct item *item = &model->items[number];
    if (item->seq && item->is_durable &&
        (item->seq != seq || item->term != term || item->chain != chain))
        fail(model, "item %llu moved from seq %llu to %llu", U(number), U(item->seq), U(seq));
    uint64_t written = u64s_get(&model->written_at[item->group], seq);
    if (written && written != number && model->items[written].term == term)
        fail(model, "(term %llu, seq %llu) was given to items %llu and %llu", U(term), U(seq),
             U(written), U(number));
    uint64_t synced = u64s_get(&model->synced_at[item->group], seq);
    if (synced && synced != number)
        fail(model, "synced seq %llu of item %llu was given to item %llu", U(seq), U(synced),
             U(number));
    item->seq = seq;
    item->term = term;
    item->chain = chain;
    item->is_durable |= is_durable;
    u64s_set(is_durable ? &model->synced_at[item->group] : &model->written_at[item->group], seq,
             number);
}

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

struct worker {
    struct model *model;
    uint32_t index;
    uint64_t ordered[2], done[2];
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

static void do_produce(struct worker *worker)
{
    struct model *model = worker->model;
    uint32_t index = (uint32_t)pick(model, PRODUCERS);
    struct producer_model *producer = &model->producers[index];
    struct wal_receipt receipts[16];
    uint32_t count;
    uint64_t expected;
    char id[16];
    if (model->producer_busy[index])
        return; /* one request of a producer at a time */
    model->producer_busy[index] = true;
    int length = snprintf(id, sizeof id, "p%u", index + 1);
    uint64_t sequence = producer->next + 1;
    bool is_repeat = producer->next > 0 && pick(model, 3) == 0;
    if (is_repeat)
        sequence = 1 + producer->next - 1 - pick(model, producer->next < 12 ? producer->next : 12);
    if (sequence == 0 || sequence > PRODUCED_MAX)
        goto out;
    bool is_other = is_repeat && pick(model, 4) == 0;
    struct hash128 hash = body_hash(index + 1, sequence + (is_other ? 7 : 0));
    enum wal_producer_verdict verdict = wal_producer_begin(
        model->wal, span_of(id, (size_t)length), sequence, hash, receipts, &count, &expected);
    if (is_repeat) {
        bool is_right = verdict == WAL_PRODUCER_OLD ||
                        verdict == (is_other ? WAL_PRODUCER_MISMATCH : WAL_PRODUCER_REPEAT);
        if (!is_right && !model->has_rot)
            fail(model, "a repeat of (%u, %llu) got verdict %d", index + 1, U(sequence),
                 (int)verdict);
        if (verdict == WAL_PRODUCER_REPEAT)
            receipts_check(model, index + 1, sequence, receipts, count);
        if (verdict == WAL_PRODUCER_NEW)
            wal_producer_abandon(model->wal, span_of(id, (size_t)length), sequence);
        goto out;
    }
    if (verdict == WAL_PRODUCER_REPEAT || verdict == WAL_PRODUCER_OLD) {
        receipts_check(model, index + 1, sequence, receipts, count);
        producer->next = sequence; /* it had been durable before the crash */
        goto out;
    }
    if (verdict == WAL_PRODUCER_GAP && model->has_rot)
        goto out;
    if (verdict == WAL_PRODUCER_FULL)
        goto out; /* no memory for one more */
    if (verdict != WAL_PRODUCER_NEW)
        fail(model, "(%u, %llu) got verdict %d, expected %llu", index + 1, U(sequence),
             (int)verdict, U(expected));
    struct request *request =
        request_make(worker, 1 + (uint32_t)pick(model, 2), index + 1, sequence);
    if (!request || pick(model, 16) == 0) {
        wal_producer_abandon(model->wal, span_of(id, (size_t)length), sequence);
        if (request) {
            for (uint32_t i = 0; i < request->submission.entry_count; i++) {
                model->items[request->numbers[i]].state = ITEM_REFUSED;
                mem_free(request->bytes[i]);
            }
            model->outstanding--;
            mem_free(request);
        }
        goto out;
    }
    struct error err;
    enum status status = wal_append(model->wal, &request->submission, &err);
    if (status == STATUS_OK)
        producer->next = sequence;
    mem_free(request);
out:
    model->producer_busy[index] = false;
}

/* ---- scanning ---- */

static void view_check(struct model *model, const struct wal_view *view)
{
    uint64_t number = view->payload.length >= 8 ? get_le64(view->payload.data) : 0;
    if (number == 0 || number >= model->item_count)
        fail(model, "group %u seq %llu holds nothing that was written", view->group, U(view->seq));
    struct item *item = &model->items[number];
    if (!payload_holds(number, view->payload) || item->bytes != view->payload.length ||
        item->group != view->group || model->table_ids[item->table] != view->table_id ||
        view->rows != 1 + (uint32_t)(number % 5) || view->contribution_count != 1)
        fail(model, "item %llu came back changed", U(number));
    if (item->state == ITEM_REFUSED)
        fail(model, "item %llu was refused and is there", U(number));
    if (item->is_gone)
        fail(model, "item %llu was gone and came back", U(number));
    item_placed(model, number, view->seq, view->term, view->chain, true);
    item->is_present = true;
    totals.scanned++;
}

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

/* ---- the whole, after each start ---- */

static bool is_damaged(struct model *model, uint32_t group, uint64_t seq)
{
    struct wal_damage damage;
    for (size_t i = 0; wal_damage_at(model->wal, i, &damage); i++)
        if (damage.group == group && damage.seq_first <= seq && damage.seq_last >= seq)
            return true;
    return false;
}

/* Reads all of a group; damage is passed over. False: memory ran out (simulated). */
static bool group_read(struct model *model, uint32_t group)
{
    struct error err;
    struct wal_scan *scan;
    struct wal_view view;
    for (uint32_t t = 0; t < TABLES; t++) {
        uint64_t after;
        enum status status;
        do { /* the keeper may reclaim between the question and the scan, which then pins */
            after = wal_reclaimed_through(model->wal, group, model->table_ids[t]);
            status = wal_scan_open(model->wal, group, model->table_ids[t], after, &scan, &err);
        } while (status == STATUS_RECLAIMED);
        if (status == STATUS_NO_MEMORY)
            return false;
        if (status != STATUS_OK)
            fail(model, "scan: %s", err.message);
        while ((status = wal_scan_next(scan, &view, &err)) != STATUS_NOT_FOUND) {
            if (status == STATUS_OK) {
                if (view.seq <= after)
                    fail(model, "scan went from %llu back to %llu", U(after), U(view.seq));
                after = view.seq;
                view_check(model, &view);
                continue;
            }
            if (status == STATUS_NO_MEMORY) {
                wal_scan_close(scan);
                return false;
            }
            if (status != STATUS_CORRUPT || !model->has_rot)
                fail(model, "scan: %s", err.message);
            struct wal_damage damage;
            uint64_t to = UINT64_MAX;
            for (size_t i = 0; wal_damage_at(model->wal, i, &damage); i++)
                if (damage.group == group && damage.seq_last > after && damage.seq_last < to)
                    to = damage.seq_last;
            if (to == UINT64_MAX)
                fail(model, "a scan says corrupt and no range is named");
            after = to;
            if (wal_scan_seek(scan, after, &err) != STATUS_OK)
                fail(model, "seek: %s", err.message);
        }
        wal_scan_close(scan);
    }
    return true;
}

static void item_missing(struct model *model, uint64_t number)
{
    struct item *item = &model->items[number];
    bool was_promised = item->state == ITEM_SYNCED || item->is_durable ||
                        (item->state == ITEM_WRITTEN && !model->is_power_lost);
    if (item->is_lost)
        return;
    if (!was_promised) {
        totals.written_lost += item->state == ITEM_WRITTEN;
        item->state = ITEM_UNKNOWN;
        item->is_gone = true;
        return;
    }
    if (item->seq <= model->tried[item->table][item->group] &&
        item->seq <=
            wal_reclaimed_through(model->wal, item->group, model->table_ids[item->table])) {
        totals.reclaimed++;
        return;
    }
    if (model->has_rot && is_damaged(model, item->group, item->seq)) {
        item->is_lost = true;
        return;
    }
    fail(model, "item %llu (group %u seq %llu table %u, state %d) is lost", U(number), item->group,
         U(item->seq), item->table, (int)item->state);
}

static void items_check(struct model *model)
{
    uint64_t produced[PRODUCERS + 1][PRODUCED_MAX + 1];
    memset(produced, 0, sizeof produced);
    for (size_t number = 1; number < model->item_count; number++) {
        struct item *item = &model->items[number];
        if (!item->is_present) {
            item_missing(model, number);
            continue;
        }
        uint64_t *holder = &produced[item->producer][item->producer_sequence];
        if (item->producer && *holder && *holder != item->submission)
            fail(model, "(%u, %llu) is stored twice", item->producer, U(item->producer_sequence));
        *holder = item->submission;
        /* The rest of its submission is there too, or was reclaimed, or lost and named. */
        for (size_t k = number; k-- > 1 && model->items[k].submission == item->submission;) {
            struct item *other = &model->items[k];
            uint64_t seq = item->seq - (number - k); /* entries of one follow each other */
            bool is_reclaimed = seq <= model->tried[other->table][other->group] &&
                                seq <= wal_reclaimed_through(model->wal, other->group,
                                                             model->table_ids[other->table]);
            if (other->is_present || other->is_lost || other->is_durable || is_reclaimed)
                continue;
            if (!model->has_rot)
                fail(model, "items %llu and %llu of one submission parted", U(k), U(number));
        }
    }
}

static void acks_check(struct model *model)
{
    for (uint32_t t = 0; t < TABLES; t++) {
        for (uint32_t g = 0; g < model->groups; g++) {
            struct wal_ack ack = {0};
            bool is_there = wal_ack_get(model->wal, model->table_ids[t], g, &ack);
            if (ack.through.seq < model->through[t][g])
                fail(model, "table %u group %u: ack %llu went back to %llu (%d)", t, g,
                     U(model->through[t][g]), U(ack.through.seq), is_there);
            if (ack.through.seq > model->tried[t][g])
                fail(model, "table %u group %u: ack %llu was never given", t, g,
                     U(ack.through.seq));
            model->through[t][g] = ack.through.seq;
        }
    }
}

/* False if (simulated) memory ran out on the way. */
static bool check_all(struct model *model)
{
    for (size_t number = 1; number < model->item_count; number++)
        model->items[number].is_present = false;
    uint64_t entries;
    struct error err;
    if (model->has_rot && wal_verify(model->wal, &entries, &err) != STATUS_OK)
        return false;
    for (uint32_t group = 0; group < model->groups; group++)
        if (!group_read(model, group))
            return false;
    items_check(model);
    acks_check(model);
    totals.verified++;
    if (!model->has_rot)
        return true;
    struct wal_damage damage;
    bool has_damage = wal_damage_at(model->wal, 0, &damage);
    uint64_t voided = 0;
    if (!has_damage)
        return true;
    totals.damaged++;
    for (size_t number = 1; number < model->item_count; number++) {
        struct item *item = &model->items[number];
        if (item->seq && is_damaged(model, item->group, item->seq))
            item->is_lost = true;
    }
    enum status status = wal_repair(model->wal, &voided, &err);
    say(model, "repair: %s, %llu voided", status_name(status), U(voided));
    if (status == STATUS_OK && wal_damage_at(model->wal, 0, &damage))
        fail(model, "damage is left after a repair: %s", damage.where);
    totals.voided += voided;
    return true;
}

static void sum_files(void *context, const char *path, const struct env_stat *stat)
{
    UNUSED(path);
    *(uint64_t *)context += stat->allocated_bytes;
}

/* L37: exact, once the keeper has come to rest. */
static void budget_check(struct model *model)
{
    for (int attempt = 0; attempt < 50; attempt++) {
        uint64_t files = 0, reported = wal_usage(model->wal).allocated_bytes;
        sim_each_file(model->node, dir, sum_files, &files);
        if (files == reported)
            return;
        env_sleep_ms(sim_node_env(model->node), 20);
    }
    uint64_t files = 0;
    sim_each_file(model->node, dir, sum_files, &files);
    if (sim_node_faults(model->node)->alloc_fails == 0)
        fail(model, "budget: %llu reported, %llu on disk", U(wal_usage(model->wal).allocated_bytes),
             U(files));
}

/* ---- a run ---- */

static void worker_main(void *context)
{
    struct worker *worker = context;
    struct model *model = worker->model;
    struct error err;
    for (uint32_t i = 0; i < model->ops; i++) {
        uint64_t choice = pick(model, 100);
        if (choice < 35)
            do_append(worker);
        else if (choice < 55)
            do_submit(worker);
        else if (choice < 70)
            do_produce(worker);
        else if (choice < 82)
            do_scan(worker);
        else if (choice < 90)
            do_ack(worker);
        else if (choice < 92) {
            enum status status = wal_seal(model->wal, &err);
            if (status != STATUS_OK && status != STATUS_NO_SPACE && status != STATUS_NO_MEMORY)
                fail(model, "seal: %s", err.message);
        } else {
            env_sleep_ms(sim_node_env(model->node), pick(model, 40));
        }
    }
}

static bool tables_open(struct model *model, struct error *err)
{
    for (uint32_t t = 0; t < TABLES; t++) {
        char name[16];
        uint32_t id;
        snprintf(name, sizeof name, "ns.t%u", t);
        if (wal_table_open(model->wal, name, &id, err) != STATUS_OK)
            return false;
        if (model->table_ids[t] && model->table_ids[t] != id)
            fail(model, "table %s was %u and is %u", name, model->table_ids[t], id);
        model->table_ids[t] = id;
        if (wal_schema_add(model->wal, 77 + t, span_of_text("schema of some table"), err) !=
            STATUS_OK)
            return false;
    }
    return true;
}

static void run_main(void *context)
{
    struct model *model = context;
    struct env *env = sim_node_env(model->node);
    struct worker workers[WORKERS_MAX];
    struct env_thread *threads[WORKERS_MAX] = {0};
    struct error err;
    enum status status = wal_open(env, &model->options, &model->wal, &err);
    if (status != STATUS_OK) {
        say(model, "open: %s: %s", status_name(status), err.message);
        const struct sim_faults *faults = sim_node_faults(model->node);
        bool is_sync = status == STATUS_IO && (faults->sync_fails || faults->dir_sync_fails);
        if (status != STATUS_NO_SPACE && status != STATUS_NO_MEMORY &&
            status != STATUS_UNKNOWN_OUTCOME && !is_sync)
            fail(model, "open: %s: %s", status_name(status), err.message);
        totals.open_refused++;
        model->wal = NULL;
        return;
    }
    struct wal_recovery report = wal_recovery_report(model->wal);
    totals.cut += report.tails_cut;
    totals.dropped += report.segments_dropped;
    say(model, "open: term %llu, %llu segments, %llu entries, %llu cut, %llu damaged",
        U(wal_term(model->wal)), U(report.segments), U(report.entries), U(report.tails_cut),
        U(report.damaged_ranges));
    if (wal_term(model->wal) <= model->term_last)
        fail(model, "term %llu after %llu", U(wal_term(model->wal)), U(model->term_last));
    model->term_last = wal_term(model->wal);
    if (tables_open(model, &err)) {
        if (check_all(model))
            model->is_power_lost = false;
        for (uint32_t i = 0; i < model->workers; i++) {
            workers[i] = (struct worker){.model = model, .index = i};
            if (env_thread_start(env, "worker", worker_main, &workers[i], &threads[i], &err) !=
                STATUS_OK)
                threads[i] = NULL;
        }
        for (uint32_t i = 0; i < model->workers; i++)
            env_thread_join(threads[i]);
        budget_check(model);
    }
    wal_close(model->wal);
    model->wal = NULL;
    if (model->outstanding)
        fail(model, "%llu submissions were never completed", U(model->outstanding));
}

/* ---- a world ---- */

struct listing {
    char paths[256][96];
    uint64_t bytes[256];
    size_t count;
};

static void list_sealed(void *context, const char *path, const struct env_stat *stat)
{
    struct listing *listing = context;
    bool is_sealed = strstr(path, "/sealed/") || strstr(path, "/committed/");
    if (!is_sealed || listing->count == COUNT_OF(listing->paths) || stat->bytes == 0)
        return;
    snprintf(listing->paths[listing->count], sizeof listing->paths[0], "%s", path);
    listing->bytes[listing->count++] = stat->bytes;
}

static void list_state(void *context, const char *path, const struct env_stat *stat)
{
    struct listing *listing = context;
    if (!strstr(path, ".state") || listing->count == COUNT_OF(listing->paths))
        return;
    snprintf(listing->paths[listing->count], sizeof listing->paths[0], "%s", path);
    listing->bytes[listing->count++] = stat->bytes < 4096 ? stat->bytes : 4096;
}

static void rot(struct model *model)
{
    static struct listing listing;
    listing.count = 0;
    sim_each_file(model->node, dir, list_sealed, &listing);
    if (listing.count == 0)
        return;
    size_t at = (size_t)pick(model, listing.count);
    uint64_t offset = pick(model, listing.bytes[at]);
    if (sim_flip_bit(model->node, listing.paths[at], offset, (unsigned)pick(model, 8))) {
        model->has_rot = true;
        say(model, "rot: %s at %llu", listing.paths[at], U(offset));
    }
}

/* The newest checkpoint's base, once it has an older one beside it. */
static bool rot_state(struct model *model)
{
    static struct listing listing;
    size_t newest = 0;
    listing.count = 0;
    sim_each_file(model->node, dir, list_state, &listing);
    if (listing.count != 2)
        return false;
    for (size_t i = 1; i < listing.count; i++)
        if (strcmp(listing.paths[i], listing.paths[newest]) > 0)
            newest = i;
    say(model, "rot: %s", listing.paths[newest]);
    return sim_flip_bit(model->node, listing.paths[newest], pick(model, 64), 1);
}

static void faults_choose(struct model *model)
{
    struct sim_faults *faults = sim_node_faults(model->node);
    *faults = (struct sim_faults){.switches = pick(model, 3) ? 16384 : 1024};
    if (pick(model, 4) == 0)
        faults->sync_fails = 1 + (uint32_t)pick(model, 400);
    if (pick(model, 8) == 0)
        faults->dir_sync_fails = 1 + (uint32_t)pick(model, 300);
    if (pick(model, 5) == 0)
        faults->write_no_space = 1 + (uint32_t)pick(model, 1500);
    if (pick(model, 5) == 0)
        faults->allocate_no_space = 1 + (uint32_t)pick(model, 20000);
    if (pick(model, 8) == 0)
        faults->alloc_fails = 1 + (uint32_t)pick(model, 300);
    if (pick(model, 4) == 0)
        faults->clock_steps = 1 + (uint32_t)pick(model, 3000);
}

static void options_choose(struct model *model)
{
    struct wal_options *options = &model->options;
    *options = wal_options_default(dir);
    options->group_count = model->groups;
    options->segment_bytes = (16 + 4 * pick(model, 13)) << 10;
    options->budget_bytes = options->segment_bytes * (10 + pick(model, 40));
    options->unit_bytes_max = (16 + 16 * pick(model, 8)) << 10;
    options->seal_after_ms = 20 + pick(model, 400);
    options->keep_committed_ms = pick(model, 3) ? 0 : 200;
    options->keep_committed_percent = (uint32_t)pick(model, 50);
}

static void world(struct model *model)
{
    model->groups = 1 + (uint32_t)pick(model, GROUPS_MAX);
    model->workers = 1 + (uint32_t)pick(model, WORKERS_MAX);
    options_choose(model);
    uint64_t roomy = model->options.budget_bytes * 2 + (8 << 20);
    uint64_t volume = pick(model, 4) ? roomy : model->options.budget_bytes / 2 + (1 << 17);
    model->node = sim_node_create(model->sim, volume);
    item_add(model, (struct item){0});
    bool may_rot = pick(model, 4) == 0, may_rot_state = !may_rot && pick(model, 4) == 0;
    uint64_t rounds = 2 + pick(model, 5);
    for (uint64_t round = 0; round <= rounds; round++) {
        bool is_last = round == rounds;
        struct sim_faults *faults = sim_node_faults(model->node);
        model->ops = 5 + (uint32_t)pick(model, 60);
        memset(model->producer_busy, 0, sizeof model->producer_busy);
        model->outstanding = 0;
        faults_choose(model);
        if (is_last) {
            *faults = (struct sim_faults){.switches = 4096};
            sim_node_volume(model->node, roomy);
        } else if (pick(model, 8)) {
            enum sim_end how = pick(model, 4) ? SIM_POWER_CUT : SIM_KILLED;
            sim_crash_at(model->node, how, 1 + pick(model, pick(model, 3) ? 150 : 1500));
        }
        enum sim_end end = sim_run(model->node, run_main, model);
        totals.runs++;
        say(model, "run %llu ended: %d (%s)", U(round), (int)end,
            end == SIM_EXITED ? sim_exit_reason(model->node) : "");
        if (end == SIM_STUCK)
            fail(model, "nobody can go on");
        if (end == SIM_EXITED && sim_exit_code(model->node) != 74)
            fail(model, "exit code %d", sim_exit_code(model->node));
        if (is_last && end != SIM_ENDED)
            fail(model, "ended by itself without a fault: %s", sim_exit_reason(model->node));
        if (end == SIM_POWER_CUT)
            model->is_power_lost = true;
        if (end != SIM_ENDED && end != SIM_POWER_CUT && pick(model, 3) == 0) {
            sim_power_cut(model->node);
            model->is_power_lost = true;
        }
        if (may_rot && pick(model, 2))
            rot(model);
        if (may_rot_state && rot_state(model))
            may_rot_state = false;
    }
}

static void counts_add(struct sim_counts *to, struct sim_counts from)
{
    uint64_t *a = (uint64_t *)(void *)to;
    const uint64_t *b = (const uint64_t *)(const void *)&from;
    for (size_t i = 0; i < sizeof from / sizeof *a; i++)
        a[i] += b[i];
}

static uint64_t run_seed(uint64_t seed, bool is_verbose)
{
    struct model model = {.seed = seed, .is_verbose = is_verbose, .sim = sim_create(seed)};
    world(&model);
    uint64_t trace = sim_trace(model.sim);
    counts_add(&totals.sim, sim_counts(model.sim));
    totals.seeds++;
    sim_destroy(model.sim);
    free(model.items);
    for (uint32_t g = 0; g < GROUPS_MAX; g++) {
        free(model.synced_at[g].values);
        free(model.written_at[g].values);
    }
    return trace;
}

static const struct {
    const char *name;
    const uint64_t *count;
} must_happen[] = {
    {"power cuts", &totals.sim.power_cuts},
    {"kills", &totals.sim.kills},
    {"exits after a failed sync", &totals.sim.exits},
    {"pending writes kept", &totals.sim.ops_kept},
    {"pending writes lost", &totals.sim.ops_lost},
    {"pending writes torn", &totals.sim.ops_torn},
    {"pending writes turned to garbage", &totals.sim.ops_garbage},
    {"names lost", &totals.sim.names_lost},
    {"renames that left both names", &totals.sim.renames_doubled},
    {"failed syncs", &totals.sim.syncs_failed},
    {"no space, injected", &totals.sim.no_space},
    {"no space, volume full", &totals.sim.volume_full},
    {"failed allocations", &totals.sim.allocs_failed},
    {"clock steps", &totals.sim.clock_steps},
    {"flipped bits", &totals.sim.bits_flipped},
    {"tails cut", &totals.cut},
    {"segments dropped unused", &totals.dropped},
    {"damage named", &totals.damaged},
    {"entries voided", &totals.voided},
    {"submissions refused", &totals.refused},
    {"written entries lost with the power", &totals.written_lost},
    {"entries reclaimed", &totals.reclaimed},
    {"receipts repeated", &totals.repeats},
    {"receipts compared", &totals.producers_checked},
};

int main(int argc, char **argv)
{
    uint64_t first = 1, count = 200;
    bool is_one = false;
    if (argc == 3 && strcmp(argv[1], "--seed") == 0) {
        is_one = parse_u64(argv[2], strlen(argv[2]), &first);
        count = 1;
    } else if (argc == 4 && strcmp(argv[1], "--seeds") == 0 &&
               parse_u64(argv[2], strlen(argv[2]), &first) &&
               parse_u64(argv[3], strlen(argv[3]), &count)) {
        is_one = false;
    } else if (argc != 1) {
        fprintf(stderr, "usage: sim_wal [--seed N | --seeds FIRST COUNT]\n");
        return 2;
    }
    for (uint64_t seed = first; seed < first + count; seed++) {
        uint64_t trace = run_seed(seed, is_one);
        if (is_one || seed < first + 3) {
            uint64_t again = run_seed(seed, false);
            if (trace != again) {
                printf("# seed %llu does not replay\n", U(seed));
                return 1;
            }
        }
    }
    printf("# %llu seeds, %llu runs, %llu submissions, %llu scanned, %llu checks of all\n",
           U(totals.seeds), U(totals.runs), U(totals.appended), U(totals.scanned),
           U(totals.verified));
    if (is_one)
        return 0;
    bool is_ok = true;
    printf("1..%zu\n", COUNT_OF(must_happen) + 1);
    printf("ok 1 - every seed kept every promise\n");
    for (size_t i = 0; i < COUNT_OF(must_happen); i++) {
        bool happened = *must_happen[i].count > 0;
        is_ok &= happened;
        printf("%sok %zu - %s: %llu\n", happened ? "" : "not ", i + 2, must_happen[i].name,
               U(*must_happen[i].count));
    }
    return is_ok ? 0 : 1;
}
