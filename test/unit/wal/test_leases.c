/* SPDX-License-Identifier: Apache-2.0
 *
 * Consumers of the log: acks that last, holds that keep segments, and the three ways a hold ends.
 */
#include "wal_fixture.h"
#include "wal_tests.h"

enum { LONG_MS = 600000, SHORT_MS = 150 };

static struct wal_consumer_ask ask_of(const struct fixture *f, const char *name, uint64_t ttl_ms)
{
    return (struct wal_consumer_ask){.key = {.name = name, .owner = "", .member_count = 1},
                                     .table_id = f->table,
                                     .ttl_ms = ttl_ms};
}

static struct wal_consumer put(struct fixture *f, const struct wal_consumer_ask *ask,
                               enum wal_consumer_verdict expected)
{
    struct error err;
    struct wal_consumer consumer = {0};
    enum wal_consumer_verdict verdict;
    assert_ok(wal_consumer_put(f->wal, ask, &verdict, &consumer, &err));
    assert_int_equal(verdict, expected);
    return consumer;
}

static struct wal_consumer ack(struct fixture *f, const struct wal_consumer_key *key, uint64_t term,
                               uint64_t seq, enum wal_consumer_verdict expected)
{
    struct error err;
    struct wal_consumer consumer = {0};
    enum wal_consumer_verdict verdict;
    assert_ok(wal_consumer_ack(f->wal, key, term, seq, &verdict, &consumer, &err));
    assert_int_equal(verdict, expected);
    return consumer;
}

static void reopen(struct fixture *f)
{
    wal_close(f->wal);
    fixture_open(f);
}

/* As if a lane had published all there is. */
static void publish_all(struct fixture *f)
{
    struct error err;
    struct wal_ack acked = {.through = wal_synced_end(f->wal, 0)};
    acked.committed = acked.through;
    assert_ok(wal_seal(f->wal, &err));
    assert_ok(wal_ack_table(f->wal, f->table, &acked, &err));
}

static bool wait_reclaimed(struct fixture *f, uint64_t seq, int rounds)
{
    for (int i = 0; i < rounds && wal_reclaimed_through(f->wal, 0, f->table) < seq; i++)
        env_sleep_ms(env_real(), 20);
    return wal_reclaimed_through(f->wal, 0, f->table) >= seq;
}

static void open_eager(struct fixture *f, const char *name)
{
    fixture_init(f, name);
    f->options.keep_committed_ms = 0;
    reopen(f);
}

/* L33: an ack is durable, monotone, and names the term of its entry. */
void test_acks_of_consumers_last(void **state)
{
    (void)state;
    struct fixture f;
    struct error err;
    uint64_t seqs[20], term;
    fixture_init(&f, "consumers");
    for (uint64_t i = 0; i < COUNT_OF(seqs); i++)
        seqs[i] = fixture_append(&f, i, 500);
    struct wal_consumer_ask ask = ask_of(&f, "a", LONG_MS);
    struct wal_consumer_key unknown = {.name = "b", .owner = "", .member_count = 1};
    struct wal_consumer found = put(&f, &ask, WAL_CONSUMER_OK);
    assert_true(found.is_held && !found.is_released && found.held_from == 0);
    term = wal_term(f.wal);
    assert_true(ack(&f, &ask.key, term, seqs[9], WAL_CONSUMER_OK).held_from == seqs[9]);
    assert_true(ack(&f, &ask.key, term, seqs[3], WAL_CONSUMER_OK).held_from == seqs[9]);
    ack(&f, &ask.key, term + 1, seqs[10], WAL_CONSUMER_OTHER_TERM);
    ack(&f, &ask.key, 0, seqs[10], WAL_CONSUMER_OTHER_TERM);
    ack(&f, &ask.key, term, seqs[19] + 1, WAL_CONSUMER_AHEAD);
    ack(&f, &unknown, term, seqs[1], WAL_CONSUMER_UNKNOWN);
    for (int i = 0; i < 3; i++) {
        reopen(&f);
        assert_true(wal_consumer_get(f.wal, "a", &found));
        assert_true(found.held_from == seqs[9] && found.members[0].seq == seqs[9] &&
                    found.members[0].term == term && found.ttl_ms == LONG_MS && found.is_held);
    }
    struct wal_consumer_ask later = ask_of(&f, "later", LONG_MS);
    later.start = WAL_START_LATEST;
    assert_true(put(&f, &later, WAL_CONSUMER_OK).held_from == wal_synced_end(f.wal, 0).seq);
    later.key.name = "beyond";
    later.start = WAL_START_AFTER;
    later.start_seq = wal_synced_end(f.wal, 0).seq + 1;
    put(&f, &later, WAL_CONSUMER_AHEAD);
    uint32_t other;
    assert_ok(wal_table_open(f.wal, "otel.spans", &other, &err));
    ask.table_id = other;
    put(&f, &ask, WAL_CONSUMER_OTHER);
    bool was_there = false;
    assert_ok(wal_consumer_drop(f.wal, "a", &was_there, &err));
    assert_true(was_there);
    reopen(&f);
    assert_false(wal_consumer_get(f.wal, "a", &found));
    assert_true(wal_consumer_get(f.wal, "later", &found));
    ask.key.name = "";
    enum wal_consumer_verdict verdict;
    assert_status(STATUS_INVALID, wal_consumer_put(f.wal, &ask, &verdict, &found, &err));
    fixture_deinit(&f);
}

void test_consumers_are_limited(void **state)
{
    (void)state;
    struct fixture f;
    struct wal_consumer found;
    fixture_init(&f, "many");
    char name[16];
    struct wal_consumer_ask ask = ask_of(&f, name, LONG_MS);
    for (int i = 0; i < WAL_CONSUMERS_MAX; i++) {
        snprintf(name, sizeof name, "c%d", i);
        put(&f, &ask, WAL_CONSUMER_OK);
    }
    snprintf(name, sizeof name, "one-more");
    put(&f, &ask, WAL_CONSUMER_FULL);
    snprintf(name, sizeof name, "c7");
    put(&f, &ask, WAL_CONSUMER_OK);
    reopen(&f);
    assert_true(wal_consumer_at(f.wal, WAL_CONSUMERS_MAX - 1, &found));
    assert_false(wal_consumer_at(f.wal, WAL_CONSUMERS_MAX, &found));
    fixture_deinit(&f);
}

/* L31, L33: what is not acknowledged stays, over a restart too; a renewal credits nothing. */
void test_a_hold_keeps_what_is_not_acknowledged(void **state)
{
    (void)state;
    struct fixture f;
    struct wal_consumer found;
    open_eager(&f, "hold");
    struct wal_consumer_ask ask = ask_of(&f, "a", LONG_MS);
    put(&f, &ask, WAL_CONSUMER_OK);
    uint64_t last = 0, term = wal_term(f.wal);
    for (uint64_t i = 0; i < 50; i++)
        last = fixture_append(&f, i, 2000);
    publish_all(&f);
    assert_int_equal(wal_consumer_renew(f.wal, &ask.key, &found), WAL_CONSUMER_OK);
    assert_false(wait_reclaimed(&f, 1, 75));
    reopen(&f);
    assert_false(wait_reclaimed(&f, 1, 75));
    ack(&f, &ask.key, term, last, WAL_CONSUMER_OK);
    assert_true(wait_reclaimed(&f, last, 200));
    /* An ack of what is gone changes nothing, and its term cannot be checked. */
    assert_true(ack(&f, &ask.key, term + 7, last, WAL_CONSUMER_OK).held_from == last);
    struct wal_consumer_ask late = ask_of(&f, "late", LONG_MS);
    late.start = WAL_START_AFTER;
    late.start_seq = last - 1;
    put(&f, &late, WAL_CONSUMER_RECLAIMED);
    late.start = WAL_START_EARLIEST;
    assert_true(put(&f, &late, WAL_CONSUMER_OK).held_from == last);
    fixture_deinit(&f);
}

/* A lease that nobody renews ends, and that is known until the next ack, over a restart too. */
void test_a_lease_lapses(void **state)
{
    (void)state;
    struct fixture f;
    struct wal_consumer found;
    open_eager(&f, "lapse");
    struct wal_consumer_ask ask = ask_of(&f, "a", SHORT_MS);
    uint64_t first = fixture_append(&f, 1, 2000);
    put(&f, &ask, WAL_CONSUMER_OK);
    publish_all(&f);
    assert_true(wait_reclaimed(&f, first, 300));
    assert_true(wal_usage(f.wal).holds_lapsed == 1);
    reopen(&f);
    assert_true(wal_consumer_get(f.wal, "a", &found) && found.is_released && !found.is_held);
    /* Taken up again in memory: what comes now is held. */
    ask.ttl_ms = LONG_MS;
    found = put(&f, &ask, WAL_CONSUMER_OK);
    assert_true(found.is_released && found.is_held);
    uint64_t second = fixture_append(&f, 2, 2000);
    publish_all(&f);
    assert_false(wait_reclaimed(&f, second, 75));
    reopen(&f);
    assert_true(wal_consumer_get(f.wal, "a", &found) && found.is_released && !found.is_held);
    assert_true(wait_reclaimed(&f, second, 300));
    found = ack(&f, &ask.key, wal_term(f.wal), wal_synced_end(f.wal, 0).seq, WAL_CONSUMER_OK);
    assert_true(found.was_released && !found.is_released && found.is_held);
    found = ack(&f, &ask.key, wal_term(f.wal), wal_synced_end(f.wal, 0).seq, WAL_CONSUMER_OK);
    assert_false(found.was_released);
    fixture_deinit(&f);
}

/* A hold never makes the log refuse for good: it is given up when there is no other room. */
void test_a_hold_gives_way(void **state)
{
    (void)state;
    struct fixture f;
    struct error err;
    struct wal_consumer found;
    open_eager(&f, "pressure");
    wal_close(f.wal);
    f.options.budget_bytes = 16 * FIXTURE_SEGMENT_BYTES;
    fixture_open(&f);
    struct wal_consumer_ask ask = ask_of(&f, "a", LONG_MS);
    struct wal_consumer_ask current = ask_of(&f, "current", LONG_MS);
    put(&f, &ask, WAL_CONSUMER_OK);
    put(&f, &current, WAL_CONSUMER_OK);
    uint64_t kept = 0;
    for (uint64_t i = 0; i < 400; i++) {
        uint64_t seq = 0;
        enum status status = fixture_try(&f, i, 3000, &seq, &err);
        for (int k = 0; k < 200 && status == STATUS_NO_SPACE; k++) {
            env_sleep_ms(env_real(), 20);
            status = fixture_try(&f, i, 3000, &seq, &err);
        }
        assert_ok(status);
        if (i % 20 != 19)
            continue;
        publish_all(&f);
        ack(&f, &current.key, wal_term(f.wal), seq, WAL_CONSUMER_OK);
        if (wal_reclaimed_through(f.wal, 0, f.table) == 0)
            kept = wal_usage(f.wal).segments_committed;
    }
    assert_true(kept >= 6); /* most of the budget, before it gave way */
    assert_true(wal_consumer_get(f.wal, "a", &found) && found.is_released && !found.is_held);
    assert_true(wal_usage(f.wal).holds_released >= 1);
    assert_true(wal_reclaimed_through(f.wal, 0, f.table) > 0);
    assert_true(wal_usage(f.wal).allocated_bytes <= f.options.budget_bytes);
    /* Who keeps up keeps his hold. */
    assert_true(wal_consumer_get(f.wal, "current", &found) && !found.is_released);
    reopen(&f);
    assert_true(wal_consumer_get(f.wal, "a", &found) && found.is_released);
    fixture_deinit(&f);
}

/* L33: the lowest member's credit, while all are present. */
void test_partition_groups(void **state)
{
    (void)state;
    struct fixture f;
    struct wal_consumer found;
    fixture_init(&f, "members");
    uint64_t seqs[20], term = wal_term(f.wal);
    for (uint64_t i = 0; i < COUNT_OF(seqs); i++)
        seqs[i] = fixture_append(&f, i, 100);
    struct wal_consumer_ask asks[3];
    for (uint32_t i = 0; i < COUNT_OF(asks); i++) {
        asks[i] = ask_of(&f, "g", LONG_MS);
        asks[i].key = (struct wal_consumer_key){
            .name = "g", .owner = i == 1 ? "one" : "", .member = i, .member_count = 3};
    }
    put(&f, &asks[0], WAL_CONSUMER_OK);
    put(&f, &asks[1], WAL_CONSUMER_OK);
    assert_true(ack(&f, &asks[0].key, term, seqs[5], WAL_CONSUMER_OK).held_from == 0);
    assert_true(ack(&f, &asks[1].key, term, seqs[6], WAL_CONSUMER_OK).held_from == 0);
    ack(&f, &asks[2].key, term, seqs[6], WAL_CONSUMER_ABSENT);
    asks[2].ttl_ms = SHORT_MS; /* of all of them, from now on */
    put(&f, &asks[2], WAL_CONSUMER_OK);
    assert_true(ack(&f, &asks[2].key, term, seqs[4], WAL_CONSUMER_OK).held_from == seqs[4]);
    struct wal_consumer_ask wrong = asks[0];
    wrong.key.member_count = 2;
    put(&f, &wrong, WAL_CONSUMER_SIZE);
    assert_int_equal(wal_consumer_renew(f.wal, &wrong.key, &found), WAL_CONSUMER_SIZE);
    wrong = asks[0];
    wrong.key.owner = "two";
    put(&f, &wrong, WAL_CONSUMER_TAKEN);
    ack(&f, &wrong.key, term, seqs[7], WAL_CONSUMER_TAKEN);
    /* Member 2 goes; the others renew for long, and move nothing. */
    asks[0].ttl_ms = asks[1].ttl_ms = LONG_MS;
    put(&f, &asks[0], WAL_CONSUMER_OK);
    put(&f, &asks[1], WAL_CONSUMER_OK);
    env_sleep_ms(env_real(), 2 * SHORT_MS);
    assert_true(wal_consumer_get(f.wal, "g", &found) && !found.members[2].is_present);
    assert_true(found.members[0].is_present && found.is_held);
    assert_true(ack(&f, &asks[0].key, term, seqs[15], WAL_CONSUMER_OK).held_from == seqs[4]);
    assert_true(ack(&f, &asks[1].key, term, seqs[15], WAL_CONSUMER_OK).held_from == seqs[4]);
    /* Another takes its place, where it was. */
    wrong = asks[2];
    wrong.key.owner = "two";
    wrong.ttl_ms = LONG_MS;
    found = put(&f, &wrong, WAL_CONSUMER_OK);
    assert_true(found.members[2].seq == seqs[4] && strcmp(found.members[2].owner, "two") == 0);
    ack(&f, &asks[2].key, term, seqs[9], WAL_CONSUMER_TAKEN);
    reopen(&f);
    assert_true(wal_consumer_get(f.wal, "g", &found) && found.held_from == seqs[4]);
    assert_true(found.members[0].seq == seqs[15] && found.members[2].is_present);
    assert_true(ack(&f, &wrong.key, term, seqs[12], WAL_CONSUMER_OK).held_from == seqs[12]);
    fixture_deinit(&f);
}

/* Each allocation fails once: an error, and the consumer as it was. */
void test_consumers_without_memory(void **state)
{
    (void)state;
    struct fixture f;
    struct error err;
    struct wal_consumer found;
    enum wal_consumer_verdict verdict;
    fixture_init(&f, "consumer-alloc");
    uint64_t seq = fixture_append(&f, 1, 100), made = 0, acked = 0;
    struct wal_consumer_ask ask = ask_of(&f, "a", LONG_MS);
    for (int64_t n = 0; n < 40 && acked == 0; n++) {
        alloc_fail_after(n);
        enum status status = wal_consumer_put(f.wal, &ask, &verdict, &found, &err);
        alloc_fail_after(-1);
        assert_true(status == STATUS_OK || status == STATUS_NO_MEMORY);
        made += status == STATUS_OK;
        assert_int_equal(wal_consumer_get(f.wal, "a", &found), made > 0);
        alloc_fail_after(n);
        status = wal_consumer_ack(f.wal, &ask.key, wal_term(f.wal), seq, &verdict, &found, &err);
        alloc_fail_after(-1);
        assert_true(status == STATUS_OK || status == STATUS_NO_MEMORY);
        acked += status == STATUS_OK && verdict == WAL_CONSUMER_OK;
        if (wal_consumer_get(f.wal, "a", &found))
            assert_true(found.held_from == (acked ? seq : 0));
    }
    assert_true(made > 0 && acked > 0);
    fixture_deinit(&f);
}
