/* SPDX-License-Identifier: Apache-2.0
 *
 * Consumers: how far each has taken the log over, and what is kept for him (L31-L33). A hold stands
 * for the entries of one table in one group above `held_from`.
 *
 * What state/ holds changes under the state long lock, memory after the sync: an ack that was
 * answered is known after any crash, and no segment goes before it is synced that its hold was
 * given up. Renewals are memory: a start gives each lease its whole time again.
 */
#include <stdio.h>

#include "log/wal/wal_internal.h"

/* ---- what is known ---- */

static struct lease *lease_find(const struct wal *wal, struct span name)
{
    for (size_t i = 0; i < wal->lease_count; i++)
        if (span_equal(span_of_text(wal->leases[i]->state.name), name))
            return wal->leases[i];
    return NULL;
}

static bool is_present(const struct lease *lease, uint32_t member, int64_t now_ns)
{
    return lease->state.members[member].has_joined && lease->until_ns[member] > now_ns;
}

static uint32_t count_present(const struct lease *lease, int64_t now_ns)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < lease->state.member_count; i++)
        count += is_present(lease, i, now_ns);
    return count;
}

static bool is_holding(const struct lease *lease)
{
    return !lease->state.is_released || lease->is_retaken;
}

uint64_t leases_held_from(const struct wal *wal, uint32_t group, uint32_t table_id)
{
    uint64_t from = UINT64_MAX;
    for (size_t i = 0; i < wal->lease_count; i++) {
        const struct lease *lease = wal->leases[i];
        if (is_holding(lease) && lease->state.group == group && lease->state.table_id == table_id &&
            lease->state.held_from < from)
            from = lease->state.held_from;
    }
    return from;
}

bool leases_need(const struct wal *wal, const struct segment *segment)
{
    for (size_t i = 0; i < wal->lease_count; i++) {
        const struct lease *lease = wal->leases[i];
        const struct segment_table *table =
            is_holding(lease)
                ? segment_table_find(segment, lease->state.group, lease->state.table_id)
                : NULL;
        if (table && table->last_seq > lease->state.held_from)
            return true;
    }
    return false;
}

static void renew(struct wal *wal, struct lease *lease, uint32_t member)
{
    lease->until_ns[member] =
        env_mono_ns(wal->env) + (int64_t)(lease->state.ttl_ms * (uint64_t)1000000);
    lease->is_retaken = lease->state.is_released;
}

static void show(const struct wal *wal, const struct lease *lease, struct wal_consumer *out)
{
    const struct lease_state *state = &lease->state;
    int64_t now_ns = env_mono_ns(wal->env);
    *out = (struct wal_consumer){.table_id = state->table_id,
                                 .group = state->group,
                                 .member_count = state->member_count,
                                 .ttl_ms = state->ttl_ms,
                                 .held_from = state->held_from,
                                 .is_held = is_holding(lease),
                                 .is_released = state->is_released};
    memcpy(out->name, state->name, sizeof out->name);
    for (uint32_t i = 0; i < state->member_count; i++) {
        const struct lease_member *member = &state->members[i];
        out->members[i] = (struct wal_consumer_member){.has_joined = member->has_joined,
                                                       .is_present = is_present(lease, i, now_ns),
                                                       .term = member->term,
                                                       .seq = member->seq};
        memcpy(out->members[i].owner, member->owner, sizeof member->owner);
    }
}

/* ---- on the disk ---- */

static void put_short_text(const char *text, struct buf *out)
{
    buf_put_byte(out, (uint8_t)strlen(text));
    buf_put_text(out, text);
}

static bool get_short_text(struct cursor *cursor, char *out, size_t most)
{
    uint8_t length = cursor_get_byte(cursor);
    const uint8_t *text = cursor_take(cursor, length);
    if (!text || length > most || memchr(text, '\0', length))
        return false;
    memcpy(out, text, length);
    out[length] = '\0';
    return true;
}

void lease_encode(const struct lease_state *state, struct buf *out)
{
    put_short_text(state->name, out);
    buf_put_le32(out, state->table_id);
    buf_put_le32(out, state->group);
    buf_put_le64(out, state->ttl_ms);
    buf_put_le64(out, state->held_from);
    buf_put_byte(out, state->is_released);
    buf_put_le32(out, state->member_count);
    for (uint32_t i = 0; i < state->member_count; i++) {
        const struct lease_member *member = &state->members[i];
        buf_put_byte(out, member->has_joined);
        buf_put_le64(out, member->term);
        buf_put_le64(out, member->seq);
        put_short_text(member->owner, out);
    }
}

bool lease_decode(struct cursor *cursor, uint32_t group_count, struct lease_state *out_state)
{
    struct lease_state state = {0};
    if (!get_short_text(cursor, state.name, WAL_CONSUMER_NAME_MAX))
        return false;
    state.table_id = cursor_get_le32(cursor);
    state.group = cursor_get_le32(cursor);
    state.ttl_ms = cursor_get_le64(cursor);
    state.held_from = cursor_get_le64(cursor);
    state.is_released = cursor_get_byte(cursor);
    state.member_count = cursor_get_le32(cursor);
    if (state.group >= group_count || state.member_count == 0 ||
        state.member_count > WAL_MEMBERS_MAX)
        return false;
    for (uint32_t i = 0; i < state.member_count; i++) {
        struct lease_member *member = &state.members[i];
        member->has_joined = cursor_get_byte(cursor);
        member->term = cursor_get_le64(cursor);
        member->seq = cursor_get_le64(cursor);
        if (!get_short_text(cursor, member->owner, WAL_OWNER_MAX))
            return false;
    }
    *out_state = state;
    return !cursor->failed;
}

bool lease_set(struct wal *wal, const struct lease_state *state)
{
    struct lease *lease = lease_find(wal, span_of_text(state->name));
    if (!lease) {
        lease = wal->lease_count < WAL_CONSUMERS_MAX ? mem_alloc_zero(1, sizeof *lease) : NULL;
        if (!lease)
            return false;
        wal->leases[wal->lease_count++] = lease;
    }
    lease->state = *state;
    for (uint32_t i = 0; i < state->member_count; i++)
        renew(wal, lease, i);
    lease->is_retaken = false;
    return true;
}

void lease_forget(struct wal *wal, struct span name)
{
    for (size_t i = 0; i < wal->lease_count; i++) {
        if (!span_equal(span_of_text(wal->leases[i]->state.name), name))
            continue;
        mem_free(wal->leases[i]);
        memmove(&wal->leases[i], &wal->leases[i + 1],
                (wal->lease_count - i - 1) * sizeof(struct lease *));
        wal->lease_count--;
        return;
    }
}

void leases_deinit(struct wal *wal)
{
    for (size_t i = 0; i < wal->lease_count; i++)
        mem_free(wal->leases[i]);
    wal->lease_count = 0;
}

/* ---- asking ---- */

static enum status key_check(const struct wal_consumer_key *key, struct error *err)
{
    size_t name = strlen(key->name), owner = strlen(key->owner);
    if (name == 0 || name > WAL_CONSUMER_NAME_MAX || owner > WAL_OWNER_MAX)
        return error_set(err, STATUS_INVALID,
                         "consumer: a name of %zu bytes, an owner of %zu; up to %d", name, owner,
                         WAL_CONSUMER_NAME_MAX);
    if (key->member_count == 0 || key->member_count > WAL_MEMBERS_MAX ||
        key->member >= key->member_count)
        return error_set(err, STATUS_INVALID, "consumer: member %u of %u; up to %d of them",
                         key->member, key->member_count, WAL_MEMBERS_MAX);
    return STATUS_OK;
}

/* May this owner speak for this member? */
static enum wal_consumer_verdict key_admit(const struct lease *lease,
                                           const struct wal_consumer_key *key)
{
    if (!lease)
        return WAL_CONSUMER_UNKNOWN;
    if (lease->state.member_count != key->member_count)
        return WAL_CONSUMER_SIZE;
    const struct lease_member *member = &lease->state.members[key->member];
    if (!member->has_joined)
        return WAL_CONSUMER_ABSENT;
    return strcmp(member->owner, key->owner) == 0 ? WAL_CONSUMER_OK : WAL_CONSUMER_TAKEN;
}

/* The state long lock, and the lock again. Returning with both held. */
static enum status begin(struct wal *wal, struct error *err)
{
    if (wal->options.is_read_only)
        return error_set(err, STATUS_CLOSED, "log: opened for reading");
    env_lock(wal->lock);
    wal_state_acquire(wal);
    if (!wal->is_dead)
        return STATUS_OK;
    wal_state_release(wal);
    env_unlock(wal->lock);
    return error_set(err, STATUS_CLOSED, "log: it has failed");
}

/* Writes what `next` says, and makes it what is known; `fresh` is for one that was not there, and
 * taken. Called and returning with both locks held. */
static enum status save(struct wal *wal, const struct lease_state *next, struct lease *fresh,
                        struct error *err)
{
    env_unlock(wal->lock);
    enum status status = state_put_lease(wal, next, err);
    env_lock(wal->lock);
    if (status != STATUS_OK) {
        mem_free(fresh);
        return status;
    }
    struct lease *lease = fresh ? fresh : lease_find(wal, span_of_text(next->name));
    CHECK(lease); /* nobody else changes the list while the state is held */
    lease->state = *next;
    if (fresh)
        wal->leases[wal->lease_count++] = fresh;
    return STATUS_OK;
}

static void end(struct wal *wal)
{
    wal_state_release(wal);
    wal_poke(wal);
    env_unlock(wal->lock);
}

/* Where a consumer begins that is made now; both locks held. */
static enum wal_consumer_verdict start_at(const struct wal *wal, const struct wal_consumer_ask *ask,
                                          uint64_t *out_seq)
{
    uint64_t floor = floor_get(wal, ask->table_id, ask->group);
    uint64_t synced = wal->groups[ask->group].committed_seq;
    uint64_t seq = ask->start == WAL_START_EARLIEST ? floor
                   : ask->start == WAL_START_LATEST ? synced
                                                    : ask->start_seq;
    *out_seq = seq;
    return seq > synced  ? WAL_CONSUMER_AHEAD
           : seq < floor ? WAL_CONSUMER_RECLAIMED
                         : WAL_CONSUMER_OK;
}

/* What the consumer becomes; both locks held. */
static enum wal_consumer_verdict put_decide(const struct wal *wal, const struct lease *lease,
                                            const struct wal_consumer_ask *ask,
                                            struct lease_state *next)
{
    const struct wal_consumer_key *key = &ask->key;
    struct lease_member *member = &next->members[key->member];
    if (!lease) {
        uint64_t seq = 0;
        enum wal_consumer_verdict verdict = start_at(wal, ask, &seq);
        if (wal->lease_count == WAL_CONSUMERS_MAX)
            verdict = WAL_CONSUMER_FULL;
        if (verdict != WAL_CONSUMER_OK)
            return verdict;
        snprintf(next->name, sizeof next->name, "%s", key->name);
        next->table_id = ask->table_id;
        next->group = ask->group;
        next->member_count = key->member_count;
        next->held_from = seq;
        for (uint32_t i = 0; i < key->member_count; i++)
            next->members[i].seq = seq;
    } else if (lease->state.table_id != ask->table_id || lease->state.group != ask->group) {
        return WAL_CONSUMER_OTHER;
    } else if (lease->state.member_count != key->member_count) {
        return WAL_CONSUMER_SIZE;
    } else if (strcmp(member->owner, key->owner) != 0 &&
               is_present(lease, key->member, env_mono_ns(wal->env))) {
        return WAL_CONSUMER_TAKEN;
    }
    member->has_joined = true;
    snprintf(member->owner, sizeof member->owner, "%s", key->owner);
    next->ttl_ms = ask->ttl_ms;
    return WAL_CONSUMER_OK;
}

enum status wal_consumer_put(struct wal *wal, const struct wal_consumer_ask *ask,
                             enum wal_consumer_verdict *out_verdict,
                             struct wal_consumer *out_consumer, struct error *err)
{
    TRY(key_check(&ask->key, err));
    struct lease *fresh = mem_alloc_zero(1, sizeof *fresh);
    if (!fresh)
        return error_set(err, STATUS_NO_MEMORY, "consumer: out of memory");
    enum status status = begin(wal, err);
    if (status != STATUS_OK) {
        mem_free(fresh);
        return status;
    }
    if (ask->group >= wal->group_count || ask->table_id == 0 || ask->table_id > wal->table_count) {
        end(wal);
        mem_free(fresh);
        return error_set(err, STATUS_INVALID, "consumer: table %u, group %u: there is none",
                         ask->table_id, ask->group);
    }
    struct lease *lease = lease_find(wal, span_of_text(ask->key.name));
    struct lease_state next = {0};
    if (lease) {
        next = lease->state;
        mem_free(fresh);
        fresh = NULL;
    }
    enum wal_consumer_verdict verdict = put_decide(wal, lease, ask, &next);
    if (verdict == WAL_CONSUMER_OK && !(lease && memcmp(&next, &lease->state, sizeof next) == 0))
        status = save(wal, &next, fresh, err);
    else
        mem_free(fresh);
    lease = lease_find(wal, span_of_text(ask->key.name));
    if (status == STATUS_OK && verdict == WAL_CONSUMER_OK)
        renew(wal, lease, ask->key.member);
    if (status == STATUS_OK && lease)
        show(wal, lease, out_consumer);
    if (status == STATUS_OK)
        *out_verdict = verdict;
    end(wal);
    return status;
}

/* ---- acknowledging ---- */

/* Only the lowest member's, and only while nobody is missing (L33). */
static void credit(const struct lease *lease, int64_t now_ns, struct lease_state *next)
{
    if (count_present(lease, now_ns) < next->member_count)
        return;
    uint64_t lowest = UINT64_MAX;
    for (uint32_t i = 0; i < next->member_count; i++)
        if (next->members[i].seq < lowest)
            lowest = next->members[i].seq;
    if (lowest > next->held_from)
        next->held_from = lowest;
}

static enum status ack_save(struct wal *wal, struct lease *lease,
                            const struct wal_consumer_key *key, uint64_t term, uint64_t seq,
                            struct error *err)
{
    struct lease_state next = lease->state;
    struct lease_member *member = &next.members[key->member];
    renew(wal, lease, key->member);
    if (seq > member->seq) {
        member->seq = seq;
        member->term = term;
    }
    credit(lease, env_mono_ns(wal->env), &next);
    next.is_released = false;
    if (memcmp(&next, &lease->state, sizeof next) != 0)
        TRY(save(wal, &next, NULL, err));
    lease->is_retaken = false;
    return STATUS_OK;
}

enum status wal_consumer_ack(struct wal *wal, const struct wal_consumer_key *key, uint64_t term,
                             uint64_t seq, enum wal_consumer_verdict *out_verdict,
                             struct wal_consumer *out_consumer, struct error *err)
{
    struct wal_consumer before;
    uint64_t known_term = term;
    TRY(key_check(key, err));
    /* A (term, seq) is given out once (L3): what is read here stays so. */
    if (wal_consumer_get(wal, key->name, &before) && seq > 0) {
        enum status told = wal_term_at(wal, before.group, seq, &known_term, err);
        if (told == STATUS_NOT_FOUND || told == STATUS_CORRUPT)
            known_term = term; /* gone: there is nothing of it left to hold */
        else
            TRY(told);
    }
    TRY(begin(wal, err));
    struct lease *lease = lease_find(wal, span_of_text(key->name));
    enum wal_consumer_verdict verdict = key_admit(lease, key);
    enum status status = STATUS_OK;
    bool was_released = lease && lease->state.is_released;
    if (verdict == WAL_CONSUMER_OK && seq > wal->groups[lease->state.group].committed_seq)
        verdict = WAL_CONSUMER_AHEAD;
    if (verdict == WAL_CONSUMER_OK && known_term != term)
        verdict = WAL_CONSUMER_OTHER_TERM;
    if (verdict == WAL_CONSUMER_OK)
        status = ack_save(wal, lease, key, term, seq, err);
    if (status == STATUS_OK && lease) {
        show(wal, lease, out_consumer);
        out_consumer->was_released = was_released;
    }
    if (status == STATUS_OK)
        *out_verdict = verdict;
    end(wal);
    return status;
}

/* ---- renewing, forgetting, looking ---- */

enum wal_consumer_verdict wal_consumer_renew(struct wal *wal, const struct wal_consumer_key *key,
                                             struct wal_consumer *out_consumer)
{
    env_lock(wal->lock);
    struct lease *lease = lease_find(wal, span_of_text(key->name));
    enum wal_consumer_verdict verdict = key_admit(lease, key);
    if (verdict == WAL_CONSUMER_OK)
        renew(wal, lease, key->member);
    if (lease)
        show(wal, lease, out_consumer);
    env_unlock(wal->lock);
    return verdict;
}

enum status wal_consumer_drop(struct wal *wal, const char *name, bool *out_was_there,
                              struct error *err)
{
    TRY(begin(wal, err));
    bool is_there = lease_find(wal, span_of_text(name));
    env_unlock(wal->lock);
    enum status status = is_there ? state_put_lease_gone(wal, name, err) : STATUS_OK;
    env_lock(wal->lock);
    if (status == STATUS_OK) {
        lease_forget(wal, span_of_text(name));
        *out_was_there = is_there;
    }
    end(wal);
    return status;
}

bool wal_consumer_get(struct wal *wal, const char *name, struct wal_consumer *out_consumer)
{
    env_lock(wal->lock);
    const struct lease *lease = lease_find(wal, span_of_text(name));
    if (lease)
        show(wal, lease, out_consumer);
    env_unlock(wal->lock);
    return lease;
}

bool wal_consumer_at(struct wal *wal, size_t index, struct wal_consumer *out_consumer)
{
    env_lock(wal->lock);
    bool is_there = index < wal->lease_count;
    if (is_there)
        show(wal, wal->leases[index], out_consumer);
    env_unlock(wal->lock);
    return is_there;
}

/* ---- giving up ---- */

/* Marks it in state/; who renewed meanwhile has it again, in memory. Both locks held. */
static enum status give_up(struct wal *wal, struct lease *lease, uint64_t *counter,
                           struct error *err)
{
    struct lease_state next = lease->state;
    ++*counter;
    if (lease->state.is_released)
        return STATUS_OK;
    next.is_released = true;
    return save(wal, &next, NULL, err);
}

enum status leases_lapse(struct wal *wal, struct error *err)
{
    enum status status = STATUS_OK;
    env_lock(wal->lock);
    for (size_t i = 0; i < wal->lease_count && status == STATUS_OK; i++) {
        struct lease *lease = wal->leases[i];
        if (!is_holding(lease) || count_present(lease, env_mono_ns(wal->env)) > 0)
            continue;
        lease->is_retaken = false;
        status = give_up(wal, lease, &wal->counters.holds_lapsed, err);
        if (status == STATUS_OK && count_present(lease, env_mono_ns(wal->env)) > 0)
            lease->is_retaken = true; /* renewed while it was written */
    }
    env_unlock(wal->lock);
    return status == STATUS_NO_SPACE ? STATUS_OK : status; /* later again; it holds until then */
}

enum status leases_release(struct wal *wal, const struct segment *segment, bool only_published,
                           struct error *err)
{
    enum status status = STATUS_OK;
    env_lock(wal->lock);
    for (size_t i = 0; i < wal->lease_count && status == STATUS_OK; i++) {
        struct lease *lease = wal->leases[i];
        const struct segment_table *table =
            segment_table_find(segment, lease->state.group, lease->state.table_id);
        if (!is_holding(lease) || !table || table->last_seq <= lease->state.held_from ||
            (only_published && table->last_seq > table_through(wal, table)))
            continue;
        status = give_up(wal, lease, &wal->counters.holds_released, err);
        if (status == STATUS_OK)
            lease->is_retaken = false;
    }
    env_unlock(wal->lock);
    return status;
}
