/* SPDX-License-Identifier: Apache-2.0
 *
 * The mirror under simulated faults, against a model that shares no code with it but the names and
 * headers of objects.
 *
 *   sim_mirror [--seeds FIRST COUNT]    (default 1 200; $SIM_SHARE divides the count)
 *   sim_mirror --seed N                 replays one, with what happened
 *
 * Each seed is one world: a log and a mirror of it on one disk, a few workers that append, wait for
 * the mirror, acknowledge, seal and idle; a run ends cleanly, by a kill, by the engine's own exit
 * or by a power cut at any disk call. Syncs fail everywhere, or under the mirror alone. After each
 * run the mirror is looked at alone, as if the log were lost:
 *
 *   - every object under one of our names is whole, and what its name says
 *   - an entry that somebody was told is remote is there, proven, unless its table acknowledged it
 *   - so it is in the log that the newest state and the ranges give back, where nothing that a
 *     table has not is missing for want of a state
 *   - a producer's number that somebody was told is remote is known there, whatever was deleted
 *   - a mirror is never refused: it is never ahead of its log
 * and after the last run, which has no faults, everything that no table has is there.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/mirror/mirror.h"
#include "sim/sim.h"

enum { GROUPS_MAX = 2, WORKERS_MAX = 3, ITEMS_MAX = 4096, SEGMENTS_MAX = 1024 };
#define U(x) ((unsigned long long)(x))

static const char log_dir[] = "/data/log", mirror_dir[] = "/mirror", back_dir[] = "/back";

/* One entry that was acknowledged as synced; its number is in its payload. */
struct item {
    uint32_t group;
    uint64_t seq;
    bool is_remote;    /* somebody was told so */
    uint32_t worker;   /* whose producer sent it */
    uint64_t sequence; /* 0: nobody's */
    bool is_there;     /* in the look under way */
};

struct model {
    uint64_t seed;
    bool is_verbose, is_last;
    struct sim *sim;
    struct sim_node *node;
    struct wal_options log_options;
    struct mirror_options options;
    struct wal *wal;
    struct mirror *mirror;
    uint32_t groups, workers, ops, table;
    struct item items[ITEMS_MAX];
    uint64_t item_count;
    uint64_t tried[GROUPS_MAX];      /* acknowledged by the table, or perhaps */
    uint64_t sequences[WORKERS_MAX]; /* the producers': the last one tried */
};

struct worker {
    struct model *model;
    uint32_t index;
    struct env_thread *thread;
};

/* Lives through a crash: it may be told late. */
struct wait {
    struct mirror_waiter waiter;
    struct model *model;
    uint64_t number;
    bool is_told;
    enum status status;
};

static struct {
    uint64_t seeds, runs, appended, remote, given_up, abandoned, looked, ranges, states, swept,
        back, failures, producers, acks;
    struct sim_counts sim;
} totals;

/* ---- talking ---- */

static _Noreturn void fail(const struct model *model, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void say(const struct model *model, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void fail(const struct model *model, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("not ok - seed %llu\n# ", U(model->seed));
    vprintf(format, args);
    printf("\n# replay: sim_mirror --seed %llu\n", U(model->seed));
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

/* ---- work ---- */

static struct span producer_of(uint32_t worker)
{
    static const char names[WORKERS_MAX][3] = {"p0", "p1", "p2"};
    return span_of(names[worker], 2);
}

/* The next number of the worker's producer, claimed; 0: none. */
static uint64_t claim(struct model *model, uint32_t worker)
{
    struct wal_receipt receipts[16];
    uint32_t count;
    uint64_t expected;
    for (int i = 0; i < 3; i++) {
        uint64_t sequence = model->sequences[worker] + 1;
        enum wal_producer_verdict verdict =
            wal_producer_begin(model->wal, producer_of(worker), sequence, (struct hash128){0},
                               receipts, &count, &expected);
        if (verdict == WAL_PRODUCER_NEW)
            return sequence;
        if (verdict == WAL_PRODUCER_GAP) /* the last one was never stored */
            model->sequences[worker] = expected - 1;
        else if (verdict == WAL_PRODUCER_REPEAT || verdict == WAL_PRODUCER_OLD)
            model->sequences[worker]++;
    }
    return 0;
}

static uint64_t append(struct model *model, uint32_t worker)
{
    struct error err;
    if (model->item_count + 1 >= ITEMS_MAX)
        return 0;
    uint64_t number = ++model->item_count;
    uint64_t bytes = 16 + (pick(model, 8) ? pick(model, 600) : pick(model, 30000));
    uint8_t *payload = mem_alloc(bytes);
    if (!payload)
        return 0;
    memset(payload, (int)(number % 251), bytes);
    put_le64(payload, number);
    uint64_t sequence = claim(model, worker);
    struct wal_contribution contribution = {.rows = 1};
    if (sequence) {
        contribution.producer = (const char *)producer_of(worker).data;
        contribution.producer_length = 2;
        contribution.producer_sequence = sequence;
        model->sequences[worker] = sequence;
    }
    struct wal_entry entry = {.type = WAL_DATA,
                              .group = (uint32_t)pick(model, model->groups),
                              .table_id = model->table,
                              .rows = 1,
                              .contributions = &contribution,
                              .contribution_count = 1,
                              .payload = span_of(payload, bytes),
                              .payload_crc = crc32c(0, payload, bytes)};
    struct wal_submission submission = {
        .entries = &entry, .entry_count = 1, .durability = WAL_SYNCED};
    enum status status = wal_append(model->wal, &submission, &err);
    mem_free(payload);
    if (status != STATUS_OK) {
        if (sequence)
            wal_producer_abandon(model->wal, producer_of(worker), sequence);
        return 0;
    }
    model->items[number] = (struct item){
        .group = entry.group, .seq = entry.seq, .worker = worker, .sequence = sequence};
    totals.appended++;
    return number;
}

static void told(struct mirror_waiter *waiter, enum status status)
{
    struct wait *wait = CONTAINER_OF(waiter, struct wait, waiter);
    if (wait->is_told)
        fail(wait->model, "entry %llu: told twice", U(wait->number));
    wait->is_told = true;
    wait->status = status;
    totals.abandoned += status == STATUS_RECLAIMED;
    if (status != STATUS_OK)
        return;
    wait->model->items[wait->number].is_remote = true;
    totals.remote++;
}

static void append_remote(struct model *model, uint32_t worker)
{
    struct env *env = sim_node_env(model->node);
    uint64_t number = append(model, worker), patience = pick(model, 4) ? 400 : pick(model, 20);
    if (!number)
        return;
    struct wait *wait = calloc(1, sizeof *wait);
    CHECK(wait);
    *wait = (struct wait){.waiter.done = told, .model = model, .number = number};
    mirror_wait(model->mirror, &wait->waiter, model->items[number].group, model->items[number].seq);
    for (uint64_t i = 0; i < patience && !wait->is_told; i++)
        env_sleep_ms(env, 5);
    if (!wait->is_told && mirror_wait_cancel(model->mirror, &wait->waiter)) {
        totals.given_up++;
        free(wait);
        return;
    }
    while (!wait->is_told) /* it is about to be */
        env_sleep_ms(env, 1);
    free(wait);
}

static void ack(struct model *model)
{
    struct error err;
    struct wal_ack acks[GROUPS_MAX];
    for (uint32_t g = 0; g < model->groups; g++) {
        acks[g].through = acks[g].committed = wal_synced_end(model->wal, g);
        if (acks[g].through.seq > model->tried[g])
            model->tried[g] = acks[g].through.seq;
    }
    totals.acks += wal_ack_table(model->wal, model->table, acks, &err) == STATUS_OK;
}

static void work(void *context)
{
    struct worker *worker = context;
    struct model *model = worker->model;
    struct error err;
    for (uint32_t i = 0; i < model->ops; i++) {
        uint64_t choice = pick(model, 100);
        if (choice < 40) {
            append_remote(model, worker->index);
        } else if (choice < 75) {
            append(model, worker->index);
        } else if (choice < 83) {
            ack(model);
        } else if (choice < 90) {
            enum status status = wal_seal(model->wal, &err);
            UNUSED(status);
        } else {
            env_sleep_ms(sim_node_env(model->node), pick(model, 300));
        }
    }
}

/* ---- a run ---- */

static bool open_all(struct model *model, struct env *env)
{
    struct error err;
    model->wal = NULL;
    model->mirror = NULL;
    enum status status = wal_open(env, &model->log_options, &model->wal, &err);
    if (status == STATUS_OK)
        status = wal_table_open(model->wal, "ns.t", &model->table, &err);
    if (status == STATUS_OK)
        status = mirror_create(env, &model->options, model->wal, &model->mirror, &err);
    if (status == STATUS_OK)
        status = mirror_start(model->mirror, &err);
    if (status != STATUS_OK) {
        say(model, "open: %s", err.message);
        if (model->is_last)
            fail(model, "open: %s", err.message);
    }
    return status == STATUS_OK;
}

static void check_even(struct model *model)
{
    for (uint32_t g = 0; g < model->groups; g++) {
        uint64_t end = wal_synced_end(model->wal, g).seq;
        if (mirror_confirmed(model->mirror, g) < end)
            fail(model, "group %u ends at %llu, the mirror at %llu: %s", g, U(end),
                 U(mirror_confirmed(model->mirror, g)), mirror_stats(model->mirror).why);
    }
}

static void run_main(void *context)
{
    struct model *model = context;
    struct env *env = sim_node_env(model->node);
    struct worker workers[WORKERS_MAX] = {0};
    struct error err;
    bool is_open = open_all(model, env);
    for (uint32_t i = 0; is_open && i < model->workers; i++) {
        workers[i].model = model;
        workers[i].index = i;
        if (env_thread_start(env, "worker", work, &workers[i], &workers[i].thread, &err) !=
            STATUS_OK)
            workers[i].thread = NULL;
    }
    for (uint32_t i = 0; i < model->workers; i++)
        if (workers[i].thread)
            env_thread_join(workers[i].thread);
    if (is_open) {
        mirror_stop(model->mirror, model->is_last ? 600000 : pick(model, 2000));
        if (mirror_check(model->mirror, &err) != STATUS_OK)
            fail(model, "refused: %s", err.message);
        if (model->is_last)
            check_even(model);
        struct mirror_stats stats = mirror_stats(model->mirror);
        totals.states += stats.states_total;
        totals.swept += stats.swept_total;
        for (size_t i = 0; i < MIRROR_STEPS; i++)
            totals.failures += stats.failures_total[i];
    }
    mirror_destroy(model->mirror);
    wal_close(model->wal);
}

/* ---- the look ---- */

struct object {
    struct mirror_header header;
    char path[160];
};

struct look {
    struct model *model;
    struct object objects[SEGMENTS_MAX];
    size_t count;
    char root[80];
};

static void look_at(void *context, const char *path, const struct env_stat *stat)
{
    struct look *look = context;
    struct object *object = &look->objects[look->count];
    struct mirror_header name;
    const uint8_t *data;
    uint64_t bytes;
    struct error err;
    size_t root = strlen(mirror_dir) + 1 + 32;
    if (stat->is_directory || strlen(path) < root + 1 ||
        !mirror_name_parse(span_of_text(path + root + 1), &name))
        return;
    snprintf(look->root, sizeof look->root, "%.*s", (int)root, path);
    CHECK(sim_file_bytes(look->model->node, path, &data, &bytes));
    if (mirror_object_check(span_of(data, bytes), &object->header, &err) != STATUS_OK)
        fail(look->model, "%s: %s", path, err.message);
    if (!mirror_header_is_of(&object->header, &name))
        fail(look->model, "%s: says another name", path);
    if (++look->count == SEGMENTS_MAX)
        fail(look->model, "more than %d objects", SEGMENTS_MAX);
    snprintf(object->path, sizeof object->path, "%s", path);
}

static int compare_objects(const void *a, const void *b)
{
    const struct mirror_header *x = &((const struct object *)a)->header;
    const struct mirror_header *y = &((const struct object *)b)->header;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->from != y->from ? (x->from < y->from ? -1 : 1) : x->to < y->to ? -1 : x->to > y->to;
}

/* A segment put together from its ranges, as far as they follow each other. */
struct joined {
    uint64_t id, floor;
    bool is_whole;
    struct buf bytes;
};

/* From the object at *inout_at on; false: no further segment. */
static bool join_next(struct look *look, size_t *inout_at, struct joined *joined)
{
    size_t at = *inout_at;
    if (at == look->count || look->objects[at].header.kind != MIRROR_RANGE)
        return false;
    buf_clear(&joined->bytes);
    joined->id = look->objects[at].header.id;
    joined->floor = 0;
    joined->is_whole = false;
    for (; at < look->count && look->objects[at].header.kind == MIRROR_RANGE &&
           look->objects[at].header.id == joined->id;
         at++) {
        const struct mirror_header *header = &look->objects[at].header;
        const uint8_t *data;
        uint64_t bytes, end = joined->bytes.length;
        if (header->from > end)
            continue; /* behind a gap */
        CHECK(sim_file_bytes(look->model->node, look->objects[at].path, &data, &bytes));
        size_t known = (size_t)(end - header->from), length = (size_t)(header->to - header->from);
        if (known && memcmp(joined->bytes.data + header->from, data + MIRROR_HEADER_BYTES,
                            known < length ? known : length) != 0)
            fail(look->model, "%s: other bytes than before", look->objects[at].path);
        if (known < length)
            buf_put(&joined->bytes, data + MIRROR_HEADER_BYTES + known, length - known);
        if (header->floor > joined->floor)
            joined->floor = header->floor;
        joined->is_whole |= (header->flags & MIRROR_IS_END) != 0;
        totals.ranges++;
    }
    *inout_at = at;
    return true;
}

static void see_entry(struct model *model, const uint8_t *record, const uint8_t *payload,
                      size_t payload_bytes)
{
    uint64_t number = payload_bytes >= 8 ? get_le64(payload) : 0;
    if (record[8] != WAL_DATA || number == 0 || number > model->item_count)
        return;
    struct item *item = &model->items[number];
    if (item->seq == 0) /* nobody was told that it is synced */
        return;
    if (item->seq != get_le64(record + 40) || item->group != get_le32(record + 32))
        fail(model, "entry %llu: at another place", U(number));
    if (crc32c(0, payload, payload_bytes) != get_le32(record + 12))
        fail(model, "entry %llu: other bytes", U(number));
    item->is_there = true;
}

/* docs/format/segment.md, "Reading a file that was not sealed", by other code. */
static void see_segment(struct model *model, const struct joined *joined)
{
    const uint8_t *data = joined->bytes.data;
    size_t length = joined->bytes.length;
    uint64_t floor = joined->floor, number = 0, last = 0;
    if (length < 4096)
        return;
    for (int pass = 0; pass < 2; pass++) {
        number = 0;
        for (size_t at = get_le32(data + 12);
             at + 72 <= length && get_le32(data + at) == 0x4e554c53;
             at += get_le64(data + at + 24)) {
            uint64_t unit = get_le64(data + at + 8), bytes = get_le64(data + at + 24);
            if (unit != number + 1 || bytes > length - at || (pass == 1 && unit > last))
                break;
            number = unit;
            if (pass == 0) {
                floor = get_le64(data + at + 16) > floor ? get_le64(data + at + 16) : floor;
                continue;
            }
            for (uint32_t i = 0; i < get_le32(data + at + 32); i++) {
                const uint8_t *row = data + at + 72 + (size_t)i * 24;
                const uint8_t *record = data + at + (size_t)get_le32(row) * 64;
                if (get_le32(row + 20) < 32)
                    see_entry(model, record, record + (get_le32(row + 4) + 63) / 64 * 64,
                              get_le32(row + 8));
            }
        }
        last = number < floor ? number : floor;
    }
}

static bool is_needed(const struct model *model, const struct item *item)
{
    bool is_promised = item->is_remote || (model->is_last && item->seq);
    return is_promised && item->seq > model->tried[item->group];
}

/* ---- the way back: a log from the newest state and the ranges ---- */

static void put_back(struct look *look)
{
    struct model *model = look->model;
    struct joined joined = {0};
    char path[200];
    const uint8_t *data;
    uint64_t bytes;
    for (size_t at = 0; join_next(look, &at, &joined);) {
        /* Of one that was committed before it was copied whole the rest is in its table: a gap, and
         * not the end of the log. */
        bool is_last = at == look->count || look->objects[at].header.kind != MIRROR_RANGE;
        snprintf(path, sizeof path, "%s/%s/%016llx.seg", back_dir,
                 joined.is_whole || !is_last ? "sealed" : "active", U(joined.id));
        if (joined.bytes.length)
            sim_put_file(model->node, path, joined.bytes.data, joined.bytes.length);
    }
    buf_deinit(&joined.bytes);
    const struct object *state = &look->objects[look->count - 1];
    CHECK(sim_file_bytes(model->node, state->path, &data, &bytes));
    snprintf(path, sizeof path, "%s/state/%016llx.state", back_dir, 0ull);
    uint8_t *copy = malloc(bytes);
    CHECK(copy);
    memcpy(copy, data, bytes);
    sim_put_file(model->node, path, copy + MIRROR_HEADER_BYTES, bytes - MIRROR_HEADER_BYTES);
    free(copy);
}

/* Nobody's number that is known to be stored is new. */
static void check_producers(struct model *model, struct wal *wal)
{
    struct wal_receipt receipts[16];
    uint64_t remote[WORKERS_MAX] = {0}, expected;
    uint32_t count;
    for (uint64_t i = 1; i <= model->item_count; i++) {
        const struct item *item = &model->items[i];
        if (item->is_remote && item->sequence > remote[item->worker])
            remote[item->worker] = item->sequence;
    }
    for (uint32_t w = 0; w < WORKERS_MAX; w++) {
        if (remote[w] == 0)
            continue;
        enum wal_producer_verdict verdict = wal_producer_begin(
            wal, producer_of(w), remote[w], (struct hash128){0}, receipts, &count, &expected);
        if (wal_incarnation(wal) > 1) { /* L30: of a recovered log, once */
            if (verdict != WAL_PRODUCER_UNCERTAIN)
                fail(model, "way back: producer %u is certain: %d", w, (int)verdict);
            verdict = wal_producer_begin(wal, producer_of(w), remote[w], (struct hash128){0},
                                         receipts, &count, &expected);
        }
        if (verdict != WAL_PRODUCER_REPEAT && verdict != WAL_PRODUCER_OLD)
            fail(model, "way back: producer %u: %llu is stored, and not known: %d", w, U(remote[w]),
                 (int)verdict);
        totals.producers++;
    }
}

static void check_back(struct model *model, struct wal *wal)
{
    struct error err;
    struct wal_scan *scan;
    struct wal_view view;
    for (uint64_t number = 1; number <= model->item_count; number++) {
        struct item *item = &model->items[number];
        if (!is_needed(model, item))
            continue;
        uint32_t table = wal_table_find(wal, "ns.t");
        enum status status = wal_scan_open(wal, item->group, table, item->seq - 1, &scan, &err);
        if (status != STATUS_OK)
            fail(model, "way back: entry %llu at %u/%llu: %s", U(number), item->group, U(item->seq),
                 err.message);
        status = wal_scan_next(scan, &view, &err);
        if (status != STATUS_OK || view.seq != item->seq || get_le64(view.payload.data) != number)
            fail(model, "way back: entry %llu at %u/%llu is not there: %s", U(number), item->group,
                 U(item->seq), status == STATUS_OK ? "another is" : err.message);
        wal_scan_close(scan);
        totals.back++;
    }
    check_producers(model, wal);
}

static struct wal *open_back(struct model *model, const struct wal_restore *restore)
{
    struct wal_options options = model->log_options;
    struct wal *wal = NULL;
    struct error err;
    options.dir = back_dir;
    options.budget_bytes = 1 << 30;
    options.restore = restore;
    if (wal_open(sim_node_env(model->node), &options, &wal, &err) != STATUS_OK)
        fail(model, "way back: %s", err.message);
    return wal;
}

static void back_main(void *context)
{
    struct wal *wal = open_back(context, NULL);
    check_back(context, wal);
    wal_close(wal);
}

/* The same by `log recover`, which also makes what is lost void, and starts once more. */
static void recover_main(void *context)
{
    struct model *model = context;
    struct env *env = sim_node_env(model->node);
    struct store *store = NULL;
    struct mirror_plan *plan = NULL;
    struct wal_damage damage;
    struct error err;
    uint64_t voided;
    if (store_open(env, mirror_dir, &store, &err) != STATUS_OK ||
        mirror_plan_create(store, NULL, &plan, &err) != STATUS_OK ||
        mirror_fetch(env, store, plan, back_dir, &err) != STATUS_OK)
        fail(model, "recover: %s", err.message);
    struct wal_restore restore = {.incarnation = plan->incarnation + 1};
    mirror_plan_prove(plan, &restore);
    struct wal *wal = open_back(model, &restore);
    if (wal_repair(wal, &voided, &err) != STATUS_OK)
        fail(model, "recover: %s", err.message);
    check_back(model, wal);
    wal_close(wal);
    wal = open_back(model, NULL);
    if (wal_damage_at(wal, 0, &damage))
        fail(model, "recover: damage is left: %s", damage.where);
    check_back(model, wal);
    wal_close(wal);
    mirror_plan_destroy(plan);
    store_close(store);
}

static void look(struct model *model)
{
    static struct look look;
    struct joined joined = {0};
    memset(&look, 0, sizeof look);
    look.model = model;
    sim_each_file(model->node, mirror_dir, look_at, &look);
    qsort(look.objects, look.count, sizeof look.objects[0], compare_objects);
    for (uint64_t i = 1; i <= model->item_count; i++)
        model->items[i].is_there = false;
    for (size_t at = 0; join_next(&look, &at, &joined);)
        see_segment(model, &joined);
    buf_deinit(&joined.bytes);
    for (uint64_t i = 1; i <= model->item_count; i++) {
        const struct item *item = &model->items[i];
        if (is_needed(model, item) && !item->is_there)
            fail(model, "entry %llu at %u/%llu is not in the mirror", U(i), item->group,
                 U(item->seq));
    }
    totals.looked++;
    if (look.count == 0 || look.objects[look.count - 1].header.kind != MIRROR_STATE)
        return;
    struct sim_disk_copy *disk = sim_disk_save(model->node);
    struct sim_faults faults = *sim_node_faults(model->node);
    *sim_node_faults(model->node) = (struct sim_faults){.switches = 16384};
    put_back(&look);
    if (sim_run(model->node, back_main, model) != SIM_ENDED)
        fail(model, "way back: %s", sim_exit_reason(model->node));
    sim_disk_load(model->node, disk);
    disk = sim_disk_save(model->node);
    if (sim_run(model->node, recover_main, model) != SIM_ENDED)
        fail(model, "recover: %s", sim_exit_reason(model->node));
    *sim_node_faults(model->node) = faults;
    sim_disk_load(model->node, disk);
}

/* ---- a world ---- */

static void faults_choose(struct model *model)
{
    struct sim_faults *faults = sim_node_faults(model->node);
    *faults = (struct sim_faults){.switches = pick(model, 3) ? 16384 : 1024};
    if (pick(model, 2)) {
        faults->syncs_under = mirror_dir;
        faults->sync_fails = 500 + (uint32_t)pick(model, 20000);
        faults->dir_sync_fails = pick(model, 2) ? 500 + (uint32_t)pick(model, 10000) : 0;
    } else if (pick(model, 4) == 0) {
        faults->sync_fails = 1 + (uint32_t)pick(model, 300);
    }
    if (pick(model, 5) == 0)
        faults->write_no_space = 1 + (uint32_t)pick(model, 800);
    if (pick(model, 5) == 0)
        faults->alloc_fails = 1 + (uint32_t)pick(model, 200);
    if (pick(model, 4) == 0)
        faults->clock_steps = 1 + (uint32_t)pick(model, 3000);
}

static void options_choose(struct model *model)
{
    struct wal_options *log = &model->log_options;
    *log = wal_options_default(log_dir);
    log->group_count = model->groups;
    log->segment_bytes = (24 + 8 * pick(model, 8)) << 10;
    log->budget_bytes = 64 << 20;
    log->unit_bytes_max = (32 + 16 * pick(model, 6)) << 10;
    log->seal_after_ms = 20 + pick(model, 400);
    log->keep_committed_ms = pick(model, 3) ? 0 : 200;
    struct mirror_options *options = &model->options;
    *options = mirror_options_default(mirror_dir);
    options->interval_ms = 1 + pick(model, 300);
    options->uploads = 1 + (unsigned)pick(model, 4);
    options->retry_ms_min = 1 + pick(model, 10);
    options->retry_ms_max = 20 + pick(model, 100);
    options->state_ms = pick(model, 2) ? pick(model, 500) : 3600000;
    options->sweep_ms = pick(model, 500);
    options->head_ms = pick(model, 500);
    options->range_bytes = pick(model, 2) ? 3000 + pick(model, 9000) : 1 << 20;
}

static void world(struct model *model)
{
    model->groups = 1 + (uint32_t)pick(model, GROUPS_MAX);
    options_choose(model);
    model->node = sim_node_create(model->sim, UINT64_C(1) << 32);
    uint64_t rounds = 2 + pick(model, 4);
    for (uint64_t round = 0; round <= rounds; round++) {
        model->is_last = round == rounds;
        model->workers = 1 + (uint32_t)pick(model, WORKERS_MAX);
        model->ops = 5 + (uint32_t)pick(model, 40);
        faults_choose(model);
        if (model->is_last) {
            *sim_node_faults(model->node) = (struct sim_faults){.switches = 4096};
        } else if (pick(model, 8)) {
            enum sim_end how = pick(model, 4) ? SIM_POWER_CUT : SIM_KILLED;
            sim_crash_at(model->node, how, 1 + pick(model, pick(model, 3) ? 300 : 1500));
        }
        enum sim_end end = sim_run(model->node, run_main, model);
        sim_crash_at(model->node, SIM_KILLED, 0);
        totals.runs++;
        say(model, "run %llu ended: %d (%s)", U(round), (int)end,
            end == SIM_EXITED ? sim_exit_reason(model->node) : "");
        if (end == SIM_STUCK)
            fail(model, "nobody can go on");
        if (end == SIM_EXITED && sim_exit_code(model->node) != 74)
            fail(model, "exit code %d", sim_exit_code(model->node));
        if (model->is_last && end != SIM_ENDED)
            fail(model, "ended by itself without a fault: %s", sim_exit_reason(model->node));
        if (end != SIM_ENDED && end != SIM_POWER_CUT && pick(model, 3) == 0)
            sim_power_cut(model->node);
        look(model);
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
    struct model *model = calloc(1, sizeof *model);
    CHECK(model);
    model->seed = seed;
    model->is_verbose = is_verbose;
    model->sim = sim_create(seed);
    world(model);
    uint64_t trace = sim_trace(model->sim);
    counts_add(&totals.sim, sim_counts(model->sim));
    totals.seeds++;
    sim_destroy(model->sim);
    free(model);
    return trace;
}

static const struct {
    const char *name;
    const uint64_t *count;
} must_happen[] = {
    {"power cuts", &totals.sim.power_cuts},
    {"kills", &totals.sim.kills},
    {"exits after a failed sync", &totals.sim.exits},
    {"pending writes lost", &totals.sim.ops_lost},
    {"pending writes torn", &totals.sim.ops_torn},
    {"names lost", &totals.sim.names_lost},
    {"failed syncs", &totals.sim.syncs_failed},
    {"no space, injected", &totals.sim.no_space},
    {"failed allocations", &totals.sim.allocs_failed},
    {"entries told to be remote", &totals.remote},
    {"waits given up", &totals.given_up},
    {"waits for what tables had first", &totals.abandoned},
    {"acknowledgements of the table", &totals.acks},
    {"steps of the mirror that failed", &totals.failures},
    {"states", &totals.states},
    {"objects deleted", &totals.swept},
    {"ranges read", &totals.ranges},
    {"entries found on the way back", &totals.back},
    {"producers known on the way back", &totals.producers},
};

int main(int argc, char **argv)
{
    uint64_t first = 1, count = 200, by = 1;
    bool is_one = false, is_ok = true;
    const char *share = getenv("SIM_SHARE");
    if (argc == 3 && strcmp(argv[1], "--seed") == 0) {
        is_one = parse_u64(argv[2], strlen(argv[2]), &first);
        count = 1;
    } else if (argc == 4 && strcmp(argv[1], "--seeds") == 0 &&
               parse_u64(argv[2], strlen(argv[2]), &first) &&
               parse_u64(argv[3], strlen(argv[3]), &count)) {
        if (share && (!parse_u64(share, strlen(share), &by) || by == 0))
            by = 1;
        count = (count + by - 1) / by;
    } else if (argc != 1) {
        fprintf(stderr, "usage: sim_mirror [--seed N | --seeds FIRST COUNT]\n");
        return 2;
    }
    for (uint64_t seed = first; seed < first + count; seed++) {
        uint64_t trace = run_seed(seed, is_one);
        if ((is_one || seed < first + 3) && trace != run_seed(seed, false)) {
            printf("# seed %llu does not replay\n", U(seed));
            return 1;
        }
    }
    printf("# %llu seeds, %llu runs, %llu entries\n", U(totals.seeds), U(totals.runs),
           U(totals.appended));
    if (is_one)
        return 0;
    printf("1..%zu\nok 1 - every seed kept every promise\n", COUNT_OF(must_happen) + 1);
    for (size_t i = 0; i < COUNT_OF(must_happen); i++) {
        bool happened = *must_happen[i].count > 0 || by > 1;
        is_ok &= happened;
        printf("%sok %zu - %s: %llu\n", happened ? "" : "not ", i + 2, must_happen[i].name,
               U(*must_happen[i].count));
    }
    return is_ok ? 0 : 1;
}
