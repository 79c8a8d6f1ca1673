/* SPDX-License-Identifier: Apache-2.0
 *
 * A log whose entries count when wal_commit says so, under simulated faults: one worker a group
 * appends, commits, takes suffixes back, acknowledges, produces with sequence numbers and scans;
 * runs end cleanly, by a kill, by the engine's own exit or by a power cut. Usage: sim_seeds.h.
 *
 *   - nobody sees what was not committed; what was is there, in its place, with its chain
 *   - what was synced and not taken back is there after each start, to be committed
 *   - what was taken back never comes back, whoever still holds the segment it stood in, and
 *     whatever became of the one that says so; what an interrupted truncation takes, it takes whole
 *   - no (term, seq) is there twice (L3)
 *   - a producer's number counts once its entry does, and is free again when that is taken back
 *   - a table is known once its entry counts
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/wal/wal.h"
#include "sim/sim_seeds.h"

enum { GROUPS = 2, TABLES = 2, SEQS_MAX = 4096, NUMBERS_MAX = 8192, BYTES_MAX = 3000 };

static const char dir[] = "/data/log";

struct totals {
    uint64_t seeds, runs, appended, committed, truncated, interrupted, cut_after_all,
        left_after_all, refused, scanned, repeats, freed, acks, reclaimed, tails, tail_entries,
        conflicts, open_refused, kept, held_back;
    struct sim_counts sim;
} totals;

/* What stands at a seq, as far as its group was told. */
struct item {
    uint64_t number; /* in its payload; 0: not a row of ours */
    uint64_t chain, term, sequence;
    uint32_t table;
};

enum fate { FATE_NONE, FATE_PLACED, FATE_MAYBE, FATE_GONE };

struct group_model {
    struct item items[SEQS_MAX]; /* by seq */
    uint64_t terms[SEQS_MAX];    /* the last one in which something stood there (L3) */
    uint64_t end;                /* of the items; entries of starts may stand above */
    uint64_t committed, tried;   /* returned; begun */
    uint64_t through[TABLES];    /* acks begun */
    bool is_truncating;          /* begun, and no answer */
    uint64_t after;
    /* The producer's numbers: the last that counts, that of an entry which does not, and that of
     * one which may be there. */
    uint64_t sequence, claimed, maybe, maybe_number;
};

struct model {
    uint64_t seed;
    bool is_verbose;
    struct sim *sim;
    struct sim_node *node;
    struct wal_options options;
    struct wal *wal;
    uint32_t table_ids[TABLES], ops;
    uint32_t stuck; /* a table that takes nothing; TABLES: all of them; above: none */
    struct group_model groups[GROUPS];
    uint8_t fates[NUMBERS_MAX];
    uint64_t numbers, term_last;
    bool had_no_memory; /* a receipt may have been lost for that */
};

struct worker {
    struct model *model;
    uint32_t g;
};

_Noreturn static void fail(const struct model *model, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void say(const struct model *model, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

_Noreturn static void fail(const struct model *model, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("not ok - seed %llu: ", U(model->seed));
    vprintf(format, args);
    printf("\n# replay: sim_wal_commit --seed %llu\n", U(model->seed));
    fflush(stdout);
    va_end(args);
    exit(1);
}

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

/* ---- rows ---- */

static size_t payload_of(uint64_t number, uint8_t to[BYTES_MAX])
{
    struct random random;
    random_init(&random, number);
    size_t bytes = 8 + (size_t)random_below(&random, random_below(&random, 4) ? 200 : 2900);
    for (size_t i = 8; i < bytes; i++)
        to[i] = (uint8_t)random_next(&random);
    put_le64(to, number);
    return bytes;
}

static struct span producer_of(uint32_t g)
{
    return span_of_text(g ? "one" : "nought");
}

/* Claims the producer's next number; 0: none. */
static uint64_t claim(struct model *model, uint32_t g)
{
    struct group_model *group = &model->groups[g];
    struct wal_receipt receipts[16];
    uint32_t count;
    uint64_t expected, sequence = group->sequence + 1;
    if (group->claimed || pick(model, 3))
        return 0;
    enum wal_producer_verdict verdict =
        wal_producer_begin(model->wal, producer_of(g), sequence, (struct hash128){sequence, g},
                           receipts, &count, &expected);
    say(model, "group %u: number %llu: %d (%llu expected)", g, U(sequence), (int)verdict,
        U(expected));
    bool is_maybe = group->maybe == sequence;
    /* A start knows less of what was committed: what counted may wait to count again. */
    if (verdict == WAL_PRODUCER_IN_FLIGHT && wal_synced_end(model->wal, g).seq < group->committed)
        return 0;
    if (is_maybe && verdict == WAL_PRODUCER_IN_FLIGHT)
        return 0;
    group->maybe = 0;
    if (is_maybe && verdict == WAL_PRODUCER_REPEAT) {
        group->sequence = sequence;
        return 0;
    }
    if (verdict == WAL_PRODUCER_FULL) /* memory is short */
        return 0;
    if (verdict != WAL_PRODUCER_NEW)
        fail(model, "group %u: number %llu is %d", g, U(sequence), (int)verdict);
    if (is_maybe) /* that was not it */
        model->fates[group->maybe_number] = FATE_GONE;
    return sequence;
}

static void append(struct model *model, uint32_t g)
{
    struct group_model *group = &model->groups[g];
    struct error err;
    uint8_t payload[BYTES_MAX];
    if (group->end + 200 > SEQS_MAX || model->numbers + 2 > NUMBERS_MAX)
        return;
    uint64_t number = ++model->numbers;
    size_t bytes = payload_of(number, payload);
    uint32_t table = (uint32_t)pick(model, TABLES);
    uint64_t sequence = claim(model, g);
    struct wal_contribution contribution = {.rows = 1};
    if (sequence) {
        struct span id = producer_of(g);
        contribution.producer = (const char *)id.data;
        contribution.producer_length = (uint8_t)id.length;
        contribution.producer_sequence = sequence;
        contribution.body_hash = (struct hash128){sequence, g};
    }
    struct wal_entry entry = {.type = WAL_DATA,
                              .group = g,
                              .table_id = model->table_ids[table],
                              .rows = 1,
                              .contributions = &contribution,
                              .contribution_count = 1,
                              .payload = span_of(payload, bytes),
                              .payload_crc = crc32c(0, payload, bytes)};
    struct wal_submission submission = {
        .entries = &entry, .entry_count = 1, .durability = WAL_SYNCED};
    model->fates[number] = FATE_MAYBE;
    if (sequence) {
        group->maybe = sequence;
        group->maybe_number = number;
    }
    enum status status = wal_append(model->wal, &submission, &err);
    if (status != STATUS_OK) {
        if (status != STATUS_UNKNOWN_OUTCOME && status != STATUS_IO) {
            model->fates[number] = FATE_GONE;
            group->maybe = sequence ? 0 : group->maybe;
        }
        totals.refused++;
        return;
    }
    say(model, "group %u: row %llu of table %u at %llu, number %llu", g, U(number), table,
        U(entry.seq), U(sequence));
    if (entry.seq <= group->end)
        fail(model, "group %u: seq %llu after %llu", g, U(entry.seq), U(group->end));
    if (submission.term <= group->terms[entry.seq])
        fail(model, "group %u: seq %llu of term %llu again", g, U(entry.seq), U(submission.term));
    group->terms[entry.seq] = submission.term;
    memset(&group->items[group->end + 1], 0, (entry.seq - group->end) * sizeof *group->items);
    group->items[entry.seq] = (struct item){.number = number,
                                            .chain = entry.chain,
                                            .term = submission.term,
                                            .sequence = sequence,
                                            .table = table};
    model->fates[number] = FATE_PLACED;
    group->end = entry.seq;
    if (model->term_last < submission.term)
        model->term_last = submission.term;
    if (sequence) {
        group->claimed = sequence;
        group->maybe = 0;
    }
    totals.appended++;
}

/* ---- what is seen ---- */

static void view_check(struct model *model, uint32_t g, uint32_t table, const struct wal_view *view)
{
    struct group_model *group = &model->groups[g];
    uint8_t payload[BYTES_MAX];
    uint64_t number = view->payload.length >= 8 ? get_le64(view->payload.data) : 0;
    if (number == 0 || number > model->numbers || view->seq >= SEQS_MAX)
        fail(model, "group %u seq %llu: nobody wrote %llu", g, U(view->seq), U(number));
    size_t bytes = payload_of(number, payload);
    if (bytes != view->payload.length || memcmp(payload, view->payload.data, bytes) != 0)
        fail(model, "group %u seq %llu: other bytes", g, U(view->seq));
    if (view->seq > group->tried)
        fail(model, "group %u seq %llu is seen and committed up to %llu", g, U(view->seq),
             U(group->tried));
    struct item *item = &group->items[view->seq];
    if (model->fates[number] == FATE_MAYBE) { /* it did get there */
        if (view->seq > group->end)
            memset(&group->items[group->end + 1], 0, (view->seq - group->end) * sizeof *item);
        else if (item->number)
            fail(model, "group %u seq %llu: row %llu where %llu was", g, U(view->seq), U(number),
                 U(item->number));
        *item = (struct item){
            .number = number, .chain = view->chain, .term = view->term, .table = table};
        if (view->contribution_count && view->contributions[0].producer_length)
            item->sequence = view->contributions[0].producer_sequence;
        model->fates[number] = FATE_PLACED;
        if (group->terms[view->seq] < view->term)
            group->terms[view->seq] = view->term;
        if (view->seq > group->end)
            group->end = view->seq;
    }
    if (item->number != number || item->chain != view->chain || item->term != view->term)
        fail(model, "group %u seq %llu: row %llu (fate %u) where %llu was", g, U(view->seq),
             U(number), model->fates[number], U(item->number));
}

/* All rows of a table up to the end of what counts, from where they are kept. */
static void table_check(struct model *model, uint32_t g, uint32_t table)
{
    struct group_model *group = &model->groups[g];
    struct wal_scan *scan;
    struct wal_view view;
    struct error err;
    uint64_t end = wal_synced_end(model->wal, g).seq;
    uint64_t floor = wal_reclaimed_through(model->wal, g, model->table_ids[table]);
    uint64_t after = floor;
    if (floor > group->through[table])
        fail(model, "group %u table %u: reclaimed up to %llu", g, table, U(floor));
    totals.reclaimed += floor > 0;
    if (wal_scan_open(model->wal, g, model->table_ids[table], floor, &scan, &err) != STATUS_OK)
        return; /* memory, or reclaimed meanwhile */
    enum status status;
    while ((status = wal_scan_next(scan, &view, &err)) == STATUS_OK) {
        view_check(model, g, table, &view);
        for (uint64_t seq = after + 1; seq < view.seq; seq++)
            if (group->items[seq].number && group->items[seq].table == table)
                fail(model, "group %u: seq %llu is not there", g, U(seq));
        after = view.seq;
        uint64_t chain = 0;
        if (wal_chain_at(model->wal, g, after, &chain, &err) == STATUS_OK && chain != view.chain)
            fail(model, "group %u: the chain at %llu is another", g, U(after));
        totals.scanned++;
    }
    wal_scan_close(scan);
    if (status != STATUS_NOT_FOUND)
        return;
    for (uint64_t seq = after + 1; seq <= end && seq <= group->end; seq++)
        if (group->items[seq].number && group->items[seq].table == table)
            fail(model, "group %u: seq %llu is not there, in front of %llu", g, U(seq), U(end));
}

/* The producer's last number that counts is known, with its place. */
static void producer_check(struct model *model, uint32_t g)
{
    struct group_model *group = &model->groups[g];
    struct wal_receipt receipts[16];
    uint32_t count;
    uint64_t expected, seq = wal_synced_end(model->wal, g).seq;
    while (seq > 0 && (seq > group->end || group->items[seq].sequence == 0))
        seq--;
    if (seq == 0)
        return;
    uint64_t sequence = group->items[seq].sequence;
    enum wal_producer_verdict verdict =
        wal_producer_begin(model->wal, producer_of(g), sequence, (struct hash128){sequence, g},
                           receipts, &count, &expected);
    bool is_lost = model->had_no_memory && verdict == WAL_PRODUCER_OLD;
    if (!is_lost && (verdict != WAL_PRODUCER_REPEAT || count != 1 || receipts[0].seq != seq))
        fail(model, "group %u: number %llu, counted at %llu, is %d, with %u receipts (%llu)", g,
             U(sequence), U(seq), (int)verdict, count, U(receipts[0].seq));
    if (group->sequence < sequence)
        group->sequence = sequence;
    totals.repeats++;
}

/* The producer's last number that counts is held by an entry, and so is the next, or by nobody. */
static void numbers_settle(struct group_model *group, uint64_t committed)
{
    group->claimed = 0;
    for (uint64_t seq = 1; seq <= group->end; seq++)
        if (group->items[seq].sequence > group->sequence && seq <= committed)
            group->sequence = group->items[seq].sequence;
        else if (group->items[seq].sequence && seq > committed)
            group->claimed = group->items[seq].sequence;
}

static bool commit_blindly(struct model *model, uint32_t g, uint64_t through)
{
    struct group_model *group = &model->groups[g];
    struct error err;
    if (through > group->tried)
        group->tried = through;
    enum status status = wal_commit(model->wal, g, through, &err);
    say(model, "group %u: commit %llu: %s", g, U(through), status_name(status));
    if (status == STATUS_CONFLICT || status == STATUS_INVALID)
        fail(model, "commit: %s", err.message);
    if (status != STATUS_OK)
        return false;
    uint64_t end = wal_synced_end(model->wal, g).seq;
    if (end < through || end > group->tried)
        fail(model, "group %u: %llu counts after a commit of %llu", g, U(end), U(through));
    if (through > group->committed)
        group->committed = through;
    totals.committed++;
    return true;
}

static void commit(struct model *model, uint32_t g, uint64_t through)
{
    if (commit_blindly(model, g, through))
        numbers_settle(&model->groups[g], wal_synced_end(model->wal, g).seq);
}

/* ---- taking back ---- */

/* Above `after` nothing of what the model knows is left. */
static void cut(struct model *model, uint32_t g, uint64_t after)
{
    struct group_model *group = &model->groups[g];
    for (uint64_t seq = after + 1; seq <= group->end; seq++) {
        if (group->items[seq].number)
            model->fates[group->items[seq].number] = FATE_GONE;
        totals.freed += group->items[seq].sequence > 0;
        group->items[seq] = (struct item){0};
    }
    if (group->end > after)
        group->end = after;
}

/* A number that stands in what stays is nobody else's. */
static void kept_numbers_check(struct model *model, uint32_t g, uint64_t committed, uint64_t after)
{
    const struct group_model *group = &model->groups[g];
    for (uint64_t seq = committed + 1; seq <= after && seq <= group->end; seq++) {
        struct wal_receipt receipts[16];
        uint32_t count;
        uint64_t expected, sequence = group->items[seq].sequence;
        if (sequence == 0)
            continue;
        enum wal_producer_verdict verdict =
            wal_producer_begin(model->wal, producer_of(g), sequence, (struct hash128){sequence, g},
                               receipts, &count, &expected);
        if (verdict == WAL_PRODUCER_NEW)
            fail(model, "group %u: number %llu stands at %llu and is new", g, U(sequence), U(seq));
        totals.kept++;
    }
}

static void truncate_some(struct model *model, uint32_t g)
{
    struct group_model *group = &model->groups[g];
    struct error err;
    uint64_t committed = wal_synced_end(model->wal, g).seq;
    uint64_t end = wal_stored_end(model->wal, g).seq, term = wal_term(model->wal);
    /* A start knows less of what was committed; who commits knows all of it. */
    uint64_t least = committed > group->committed ? committed : group->committed;
    uint64_t after = least + pick(model, end - least + 1);
    if (committed > 0 && pick(model, 8) == 0) {
        if (wal_truncate(model->wal, g, committed - 1, term + 1, &err) != STATUS_CONFLICT)
            fail(model, "group %u: what counts was taken back", g);
        totals.conflicts++;
    }
    group->is_truncating = after < end;
    group->after = after;
    enum status status = wal_truncate(model->wal, g, after, term + 1 + pick(model, 3), &err);
    say(model, "group %u: truncated to %llu of %llu: %s", g, U(after), U(end), status_name(status));
    if (status == STATUS_UNKNOWN_OUTCOME)
        return;
    group->is_truncating = false;
    if (status == STATUS_INVALID) { /* another group's has raised the term meanwhile */
        totals.conflicts++;
        return;
    }
    if (status == STATUS_CONFLICT)
        fail(model, "truncate: %s", err.message);
    if (status != STATUS_OK)
        return;
    cut(model, g, after); /* before a call that may be the node's last */
    numbers_settle(group, committed);
    totals.truncated += after < end;
    kept_numbers_check(model, g, committed, after);
    if (wal_stored_end(model->wal, g).seq != after)
        fail(model, "group %u: ends at %llu after a truncation to %llu", g,
             U(wal_stored_end(model->wal, g).seq), U(after));
}

/* ---- a worker ---- */

static void acknowledge(struct model *model, uint32_t g)
{
    uint32_t table = (uint32_t)pick(model, TABLES);
    struct wal_ack acks[GROUPS] = {0};
    struct error err;
    if (table == model->stuck || model->stuck == TABLES)
        return;
    for (uint32_t i = 0; i < GROUPS; i++) {
        struct wal_ack known;
        acks[i].through = wal_ack_get(model->wal, model->table_ids[table], i, &known)
                              ? known.through
                              : (struct wal_position){0};
    }
    acks[g].through = wal_synced_end(model->wal, g);
    acks[g].committed = acks[g].through;
    model->groups[g].through[table] = acks[g].through.seq;
    totals.acks += wal_ack_table(model->wal, model->table_ids[table], acks, &err) == STATUS_OK;
}

/* A mirror is told of every segment that is there, and of no end that does not count. */
static void extents_check(struct model *model)
{
    static struct wal_extent extents[256];
    uint64_t ends[GROUPS], before[256];
    size_t count, sealed = 0;
    struct wal_segment_info info;
    for (size_t i = 0; wal_segment_at(model->wal, i, &info); i++)
        if (strcmp(info.state, "sealed") == 0 && sealed < COUNT_OF(before))
            before[sealed++] = info.id;
    wal_extents(model->wal, 0, extents, COUNT_OF(extents), &count, ends);
    for (size_t i = 0, at = 0; i < sealed && count <= COUNT_OF(extents); i++) {
        while (at < count && extents[at].segment_id < before[i])
            at++;
        bool is_there = at < count && extents[at].segment_id == before[i];
        if (!is_there && model->stuck == TABLES) /* nothing goes: nobody is acknowledged */
            fail(model, "segment %llu is in no extent", U(before[i]));
        if (is_there && !extents[at].is_sealed)
            totals.held_back++;
    }
    for (uint32_t g = 0; g < GROUPS; g++)
        if (ends[g] > model->groups[g].tried)
            fail(model, "group %u: a mirror is told of %llu", g, U(ends[g]));
}

static void work(void *context)
{
    struct worker *worker = context;
    struct model *model = worker->model;
    uint32_t g = worker->g;
    struct error err;
    for (uint32_t i = 0; i < model->ops; i++) {
        uint64_t committed = wal_synced_end(model->wal, g).seq;
        uint64_t end = wal_stored_end(model->wal, g).seq;
        uint64_t what = pick(model, 20);
        if (model->groups[g].is_truncating) /* of unknown outcome: the next start tells */
            return;
        if (what < 9)
            append(model, g);
        else if (what < 12)
            commit(model, g, committed + pick(model, end - committed + 1));
        else if (what < 14)
            truncate_some(model, g);
        else if (what < 16)
            acknowledge(model, g);
        else if (what < 18)
            table_check(model, g, (uint32_t)pick(model, TABLES));
        else if (what == 18 && wal_seal(model->wal, &err) != STATUS_OK)
            totals.refused++;
        else if (pick(model, 3) == 0)
            extents_check(model);
        else if (pick(model, 3) == 0)
            env_sleep_ms(sim_node_env(model->node), 20 + pick(model, 1500));
    }
}

/* ---- a run ---- */

static void tables_commit(void *context)
{
    struct model *model = context;
    while (model->table_ids[TABLES - 1] == 0) {
        commit(model, 0, wal_stored_end(model->wal, 0).seq);
        env_sleep_ms(sim_node_env(model->node), 5);
    }
}

/* A table waits until its entry counts, so another thread says so. */
static bool tables_open(struct model *model)
{
    struct env_thread *thread;
    struct error err;
    bool is_known = wal_table_find(model->wal, "ns.t1") != 0, is_open = true;
    memset(model->table_ids, 0, sizeof model->table_ids);
    if (!is_known && env_thread_start(sim_node_env(model->node), "commit", tables_commit, model,
                                      &thread, &err) != STATUS_OK)
        return false;
    for (uint32_t t = 0; t < TABLES && is_open; t++)
        is_open = wal_table_open(model->wal, t ? "ns.t1" : "ns.t0", &model->table_ids[t], &err) ==
                  STATUS_OK;
    if (!is_known) {
        if (!is_open) /* the thread need not wait */
            model->table_ids[TABLES - 1] = UINT32_MAX;
        env_thread_join(thread);
    }
    return is_open;
}

/* What a truncation that a crash cut off came to: all of it, or nothing. */
static void truncation_settle(struct model *model, uint32_t g)
{
    struct group_model *group = &model->groups[g];
    if (!group->is_truncating)
        return;
    totals.interrupted++;
    uint64_t first = group->after + 1, chain;
    struct error err;
    while (first <= group->end && group->items[first].number == 0)
        first++;
    if (first <= group->end) {
        uint64_t end = wal_stored_end(model->wal, g).seq;
        bool is_left = false;
        if (first <= end) {
            if (!commit_blindly(model, g, first) ||
                wal_chain_at(model->wal, g, first, &chain, &err) != STATUS_OK)
                return;
            is_left = chain == group->items[first].chain;
        }
        say(model, "group %u: a truncation to %llu %s", g, U(group->after),
            is_left ? "did not happen" : "happened");
        totals.left_after_all += is_left;
        totals.cut_after_all += !is_left;
        if (!is_left)
            cut(model, g, group->after);
    } else if (group->end > group->after) { /* no row of ours is above it */
        group->end = group->after;
    }
    group->is_truncating = false;
    numbers_settle(group, wal_synced_end(model->wal, g).seq);
}

static void start_check(struct model *model, uint32_t g)
{
    struct group_model *group = &model->groups[g];
    uint64_t committed = wal_synced_end(model->wal, g).seq;
    uint64_t end = wal_stored_end(model->wal, g).seq;
    if (committed > group->tried || committed > end)
        fail(model, "group %u: %llu count, %llu were committed", g, U(committed), U(group->tried));
    truncation_settle(model, g);
    if (group->is_truncating)
        return;
    if (end < group->end)
        fail(model, "group %u ends at %llu, and had %llu", g, U(end), U(group->end));
    totals.tails += committed < end;
    totals.tail_entries += end - committed;
    if (pick(model, 2)) {
        commit(model, g, end);
        for (uint32_t t = 0; t < TABLES; t++)
            table_check(model, g, t);
        producer_check(model, g);
    }
    numbers_settle(group, wal_synced_end(model->wal, g).seq);
}

static void run_main(void *context)
{
    struct model *model = context;
    struct env *env = sim_node_env(model->node);
    struct worker workers[GROUPS];
    struct env_thread *threads[GROUPS] = {0};
    struct error err;
    enum status status = wal_open(env, &model->options, &model->wal, &err);
    if (status != STATUS_OK) {
        say(model, "open: %s", err.message);
        bool is_sync = status == STATUS_IO && sim_node_faults(model->node)->sync_fails;
        if (status != STATUS_NO_SPACE && status != STATUS_NO_MEMORY && !is_sync &&
            status != STATUS_UNKNOWN_OUTCOME)
            fail(model, "open: %s: %s", status_name(status), err.message);
        totals.open_refused++;
        return;
    }
    struct wal_damage damage;
    if (wal_damage_at(model->wal, 0, &damage))
        fail(model, "damage: group %u %llu to %llu: %s", damage.group, U(damage.seq_first),
             U(damage.seq_last), damage.where);
    if (wal_term(model->wal) <= model->term_last)
        fail(model, "term %llu after %llu", U(wal_term(model->wal)), U(model->term_last));
    model->term_last = wal_term(model->wal);
    say(model, "open: term %llu", U(model->term_last));
    for (uint32_t g = 0; g < GROUPS; g++)
        truncation_settle(model, g);
    if (tables_open(model)) {
        for (uint32_t g = 0; g < GROUPS; g++)
            start_check(model, g);
        for (uint32_t g = 0; g < GROUPS; g++) {
            workers[g] = (struct worker){.model = model, .g = g};
            if (env_thread_start(env, "worker", work, &workers[g], &threads[g], &err) != STATUS_OK)
                threads[g] = NULL;
        }
        for (uint32_t g = 0; g < GROUPS; g++)
            env_thread_join(threads[g]);
    }
    wal_close(model->wal);
}

static void faults_choose(struct model *model)
{
    struct sim_faults *faults = sim_node_faults(model->node);
    *faults = (struct sim_faults){.switches = pick(model, 3) ? 16384 : 1024};
    if (pick(model, 6) == 0)
        faults->sync_fails = 1 + (uint32_t)pick(model, 300);
    if (pick(model, 5) == 0)
        faults->write_no_space = 1 + (uint32_t)pick(model, 1500);
    if (pick(model, 5) == 0)
        faults->allocate_no_space = 1 + (uint32_t)pick(model, 20000);
    if (pick(model, 8) == 0)
        faults->alloc_fails = 1 + (uint32_t)pick(model, 300);
}

static void world(struct model *model)
{
    struct wal_options *options = &model->options;
    *options = wal_options_default(dir);
    options->needs_commit = true;
    options->group_count = GROUPS;
    options->segment_bytes = (16 + 4 * pick(model, 13)) << 10;
    options->budget_bytes = options->segment_bytes * (20 + pick(model, 40));
    options->seal_after_ms = 20 + pick(model, 400);
    options->copy_ahead_bytes = pick(model, 3) ? pick(model, 4000) : 32 << 10;
    options->keep_committed_ms = 0;
    options->compacted_from_percent = (uint32_t)pick(model, 40);
    options->compacted_below_percent = 25 + (uint32_t)pick(model, 60);
    model->stuck = (uint32_t)pick(model, 2 * TABLES);
    model->node = sim_node_create(model->sim, options->budget_bytes * 2 + (8 << 20));
    sim_node_direct(model->node, pick(model, 2));
    uint64_t rounds = 2 + pick(model, 6);
    for (uint64_t round = 0; round <= rounds; round++) {
        bool is_last = round == rounds;
        model->ops = 5 + (uint32_t)pick(model, 60);
        faults_choose(model);
        model->had_no_memory |= sim_node_faults(model->node)->alloc_fails > 0;
        if (is_last)
            *sim_node_faults(model->node) = (struct sim_faults){.switches = 4096};
        else if (pick(model, 8))
            sim_crash_at(model->node, pick(model, 3) ? SIM_POWER_CUT : SIM_KILLED,
                         1 + pick(model, pick(model, 3) ? 150 : 1500));
        enum sim_end end = sim_run(model->node, run_main, model);
        totals.runs++;
        say(model, "run %llu ended: %d (%s)", U(round), (int)end,
            end == SIM_EXITED ? sim_exit_reason(model->node) : "");
        if (end == SIM_STUCK || (is_last && end != SIM_ENDED))
            fail(model, "nobody can go on (%d)", (int)end);
        if (end == SIM_EXITED && sim_exit_code(model->node) != 74)
            fail(model, "exit code %d", sim_exit_code(model->node));
        if (end != SIM_ENDED && end != SIM_POWER_CUT && pick(model, 3) == 0)
            sim_power_cut(model->node);
    }
}

static uint64_t run_seed(uint64_t seed, bool is_verbose)
{
    struct model *model = calloc(1, sizeof *model);
    CHECK(model);
    model->seed = seed;
    model->is_verbose = is_verbose;
    model->sim = sim_create(seed);
    world(model);
    uint64_t trace = sim_trace(model->sim);
    sim_counts_add(&totals.sim, sim_counts(model->sim));
    totals.seeds++;
    sim_destroy(model->sim);
    free(model);
    return trace;
}

static const struct sim_event must_happen[] = {
    {"power cuts", &totals.sim.power_cuts},
    {"kills", &totals.sim.kills},
    {"exits after a failed sync", &totals.sim.exits},
    {"no space, injected", &totals.sim.no_space},
    {"failed allocations", &totals.sim.allocs_failed},
    {"commits", &totals.committed},
    {"truncations", &totals.truncated},
    {"truncations cut off by a crash", &totals.interrupted},
    {"of those, done all the same", &totals.cut_after_all},
    {"of those, not done", &totals.left_after_all},
    {"truncations refused", &totals.conflicts},
    {"starts with entries that do not count", &totals.tails},
    {"entries reclaimed", &totals.reclaimed},
    {"acks", &totals.acks},
    {"sealed segments that a mirror waits for", &totals.held_back},
    {"receipts repeated", &totals.repeats},
    {"producers' numbers taken back", &totals.freed},
    {"producers' numbers below that", &totals.kept},
    {"submissions refused", &totals.refused},
};

static void sum_up(void)
{
    printf("# %llu seeds, %llu runs, %llu appended, %llu scanned, %llu found uncommitted\n",
           U(totals.seeds), U(totals.runs), U(totals.appended), U(totals.scanned),
           U(totals.tail_entries));
}

int main(int argc, char **argv)
{
    static const struct sim_program program = {.name = "sim_wal_commit",
                                               .run = run_seed,
                                               .sum_up = sum_up,
                                               .events = must_happen,
                                               .event_count = COUNT_OF(must_happen)};
    return sim_program_main(&program, argc, argv);
}
