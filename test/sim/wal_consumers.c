/* SPDX-License-Identifier: Apache-2.0
 *
 * Consumers in the seeds: made, renewed, acknowledging, left alone, forgotten, by workers that
 * crash. What must hold of them, by the test's own book-keeping:
 *
 *   - an ack that returned is known for ever, one that was never tried never; so are consumers
 *   - an ack with a term that is not its entry's is refused while the entry is there
 *   - the hold is never above any member's ack, and stays while a member is surely absent
 *   - while nobody says that a hold was released, nothing above it is reclaimed (L33)
 */
#include "sim/wal_model.h"

static void name_of(const struct model *model, const struct consumer_model *consumer, char out[8])
{
    snprintf(out, 8, "c%u", (unsigned)(consumer - model->consumers));
}

static struct wal_consumer_key key_of(const struct consumer_model *consumer, const char *name,
                                      uint32_t member)
{
    return (struct wal_consumer_key){
        .name = name, .owner = "", .member = member, .member_count = consumer->members};
}

static int64_t now_ns(const struct model *model)
{
    return env_mono_ns(sim_node_env(model->node));
}

static void renewed(struct model *model, struct consumer_model *consumer, uint32_t member)
{
    consumer->until_ns[member] = now_ns(model) + (int64_t)consumer->ttl_ms * 1000000;
}

/* What the log says against what was promised. Nobody else works on this consumer. */
static void consumer_hold_check(struct model *model, struct consumer_model *consumer)
{
    char name[8];
    struct wal_consumer info;
    name_of(model, consumer, name);
    /* The floor first: a hold that is not released afterwards was not released before. */
    uint64_t floor =
        wal_reclaimed_through(model->wal, consumer->group, model->table_ids[consumer->table]);
    if (!wal_consumer_get(model->wal, name, &info))
        fail(model, "consumer %s is lost", name);
    if (info.group != consumer->group || info.member_count != consumer->members ||
        info.table_id != model->table_ids[consumer->table])
        fail(model, "consumer %s came back as another", name);
    for (uint32_t m = 0; m < consumer->members; m++) {
        if (info.members[m].seq < consumer->sure[m] || info.members[m].seq > consumer->tried[m])
            fail(model, "consumer %s member %u: ack %llu, of %llu to %llu", name, m,
                 U(info.members[m].seq), U(consumer->sure[m]), U(consumer->tried[m]));
        if (info.held_from > info.members[m].seq)
            fail(model, "consumer %s: held from %llu, above member %u at %llu", name,
                 U(info.held_from), m, U(info.members[m].seq));
    }
    if (info.held_from < consumer->held)
        fail(model, "consumer %s: held from %llu after %llu", name, U(info.held_from),
             U(consumer->held));
    consumer->held = info.held_from;
    totals.holds_released += info.is_released;
    if (info.is_released)
        return;
    uint64_t most = consumer->floor > info.held_from ? consumer->floor : info.held_from;
    if (floor > most)
        fail(model, "consumer %s holds from %llu, and %llu is reclaimed", name, U(info.held_from),
             U(floor));
    totals.holds_checked += wal_synced_end(model->wal, info.group).seq > info.held_from;
}

/* A call has ended whose effect is known: from here on the hold counts. Until the floor is read,
 * which a crash may cut off, the call counts as in flight. */
static void settled(struct model *model, struct consumer_model *consumer)
{
    consumer->floor =
        wal_reclaimed_through(model->wal, consumer->group, model->table_ids[consumer->table]);
    consumer->is_sure = true;
    consumer->in_flight = false;
}

/* A call was cut off: whatever it left is what counts from here on. Any member may have been
 * renewed since. */
static void adopt(struct model *model, struct consumer_model *consumer,
                  const struct wal_consumer *info)
{
    for (uint32_t m = 0; m < consumer->members; m++) {
        if (consumer->is_sure && info->members[m].seq < consumer->sure[m])
            fail(model, "a consumer's ack of %llu is %llu", U(consumer->sure[m]),
                 U(info->members[m].seq));
        consumer->sure[m] = consumer->tried[m] = info->members[m].seq;
        consumer->has_joined[m] = info->members[m].has_joined;
        renewed(model, consumer, m);
    }
    settled(model, consumer);
}

static bool is_excused(enum status status)
{
    return status == STATUS_NO_SPACE || status == STATUS_NO_MEMORY || status == STATUS_CLOSED ||
           status == STATUS_IO;
}

static void do_put(struct model *model, struct consumer_model *consumer, const char *name)
{
    struct error err;
    struct wal_consumer info;
    enum wal_consumer_verdict verdict;
    bool is_unsure = !consumer->is_sure || consumer->in_flight;
    if (!consumer->is_known) {
        *consumer =
            (struct consumer_model){.is_busy = true,
                                    .is_known = true,
                                    .table = (uint32_t)pick(model, TABLES),
                                    .group = (uint32_t)pick(model, model->groups),
                                    .members = pick(model, 2) ? 1 : 2 + (uint32_t)pick(model, 2),
                                    .ttl_ms = 20 + pick(model, pick(model, 2) ? 200 : 20000)};
    }
    uint32_t member = (uint32_t)pick(model, consumer->members);
    struct wal_consumer_ask ask = {.key = key_of(consumer, name, member),
                                   .table_id = model->table_ids[consumer->table],
                                   .group = consumer->group,
                                   .ttl_ms = consumer->ttl_ms,
                                   .start = pick(model, 2) ? WAL_START_EARLIEST : WAL_START_LATEST};
    consumer->in_flight = true;
    consumer->has_joined[member] = true;
    enum status status = wal_consumer_put(model->wal, &ask, &verdict, &info, &err);
    if (status != STATUS_OK && !is_excused(status))
        fail(model, "consumer: %s", err.message);
    if (status != STATUS_OK)
        return;
    if (verdict != WAL_CONSUMER_OK)
        fail(model, "consumer %s: put got verdict %d", name, (int)verdict);
    if (is_unsure)
        adopt(model, consumer, &info);
    renewed(model, consumer, member);
    settled(model, consumer);
}

/* Somebody who is counted in the group and surely not there. */
static bool has_absent(const struct model *model, const struct consumer_model *consumer,
                       uint32_t but)
{
    for (uint32_t m = 0; m < consumer->members; m++)
        if (m != but && (!consumer->has_joined[m] || consumer->until_ns[m] < now_ns(model)))
            return true;
    return false;
}

static void do_consumer_ack(struct model *model, struct consumer_model *consumer, const char *name)
{
    struct error err;
    struct wal_consumer before = {0}, info = {0};
    enum wal_consumer_verdict verdict;
    uint32_t member = (uint32_t)pick(model, consumer->members);
    const struct u64s *list = &model->synced_at[consumer->group];
    uint64_t seq = list->count ? pick(model, list->count) : 0, number = u64s_get(list, seq);
    if (!number || consumer->in_flight)
        return;
    uint64_t term = model->items[number].term;
    bool is_wrong = pick(model, 4) == 0, was_absent = has_absent(model, consumer, member);
    struct wal_consumer_key key = key_of(consumer, name, member);
    term += is_wrong ? 1 + pick(model, 3) : 0;
    uint64_t tried = consumer->tried[member];
    if (consumer->has_joined[member] && seq > tried)
        consumer->tried[member] = seq;
    consumer->in_flight = true;
    bool was_there = wal_consumer_get(model->wal, name, &before);
    enum status status = wal_consumer_ack(model->wal, &key, term, seq, &verdict, &info, &err);
    if (status != STATUS_OK && !is_excused(status))
        fail(model, "consumer ack: %s", err.message);
    if (status != STATUS_OK)
        return;
    if (!consumer->has_joined[member]) {
        consumer->in_flight = false;
        if (verdict != WAL_CONSUMER_ABSENT)
            fail(model, "consumer %s: an absent member's ack got verdict %d", name, (int)verdict);
        return;
    }
    if (verdict == WAL_CONSUMER_OTHER_TERM && is_wrong) {
        consumer->tried[member] = tried;
        consumer->in_flight = false;
        totals.terms_refused++;
        return;
    }
    const struct item *item = &model->items[number];
    bool may_be_gone =
        model->has_rot ||
        seq <= wal_reclaimed_through(model->wal, item->group, model->table_ids[item->table]);
    if (verdict != WAL_CONSUMER_OK || (is_wrong && !may_be_gone))
        fail(model, "consumer %s: ack of seq %llu with %s term got verdict %d", name, U(seq),
             is_wrong ? "another" : "its", (int)verdict);
    if (was_there && was_absent && info.held_from > before.held_from)
        fail(model, "consumer %s: the hold moved to %llu without all members", name,
             U(info.held_from));
    if (seq > consumer->sure[member])
        consumer->sure[member] = seq;
    renewed(model, consumer, member);
    totals.consumer_acks++;
    settled(model, consumer);
}

static void do_renew(struct model *model, struct consumer_model *consumer, const char *name)
{
    struct wal_consumer before = {0}, info;
    uint32_t member = (uint32_t)pick(model, consumer->members);
    struct wal_consumer_key key = key_of(consumer, name, member);
    bool was_there = wal_consumer_get(model->wal, name, &before);
    enum wal_consumer_verdict verdict = wal_consumer_renew(model->wal, &key, &info);
    if (consumer->in_flight)
        return;
    bool has_joined = consumer->has_joined[member];
    if (verdict != (has_joined ? WAL_CONSUMER_OK : WAL_CONSUMER_ABSENT))
        fail(model, "consumer %s: renewal got verdict %d", name, (int)verdict);
    if (!was_there || info.held_from != before.held_from)
        fail(model, "consumer %s: a renewal moved the hold to %llu", name, U(info.held_from));
    if (has_joined)
        renewed(model, consumer, member);
}

static void do_drop(struct model *model, struct consumer_model *consumer, const char *name)
{
    struct error err;
    bool was_there;
    bool was_sure = consumer->is_sure && !consumer->in_flight;
    consumer->in_flight = true;
    consumer->is_sure = false;
    enum status status = wal_consumer_drop(model->wal, name, &was_there, &err);
    if (status != STATUS_OK && !is_excused(status))
        fail(model, "consumer drop: %s", err.message);
    if (status != STATUS_OK)
        return;
    if (was_sure && !was_there)
        fail(model, "consumer %s was not there", name);
    *consumer = (struct consumer_model){.is_busy = true};
}

void consumer_work(struct worker *worker)
{
    struct model *model = worker->model;
    char name[8];
    struct consumer_model *consumer = &model->consumers[pick(model, CONSUMERS)];
    if (consumer->is_busy)
        return;
    consumer->is_busy = true;
    name_of(model, consumer, name);
    uint64_t choice = pick(model, 24);
    if (!consumer->is_known || choice < 5)
        do_put(model, consumer, name);
    else if (choice < 15)
        do_consumer_ack(model, consumer, name);
    else if (choice < 23)
        do_renew(model, consumer, name);
    else
        do_drop(model, consumer, name);
    if (consumer->is_sure && !consumer->in_flight)
        consumer_hold_check(model, consumer);
    consumer->is_busy = false;
}

void consumers_check(struct model *model)
{
    for (size_t i = 0; i < CONSUMERS; i++) {
        struct consumer_model *consumer = &model->consumers[i];
        struct wal_consumer info;
        char name[8];
        name_of(model, consumer, name);
        bool is_there = wal_consumer_get(model->wal, name, &info);
        if (is_there && !consumer->is_known)
            fail(model, "consumer %s is there, and nobody made it", name);
        if (!is_there && consumer->is_sure)
            fail(model, "consumer %s is gone", name);
        if (!is_there)
            *consumer = (struct consumer_model){0};
        else if (consumer->in_flight)
            adopt(model, consumer, &info);
        if (!is_there)
            continue;
        for (uint32_t m = 0; m < consumer->members; m++)
            renewed(model, consumer, m);
        consumer_hold_check(model, consumer);
    }
}
