/* SPDX-License-Identifier: Apache-2.0
 *
 * From a mirror back to a log: what was confirmed and is in no table comes back, nothing else is
 * taken for it, and numbers go on above what anybody names (L3, L20, L25, L35, L36).
 */
#include "mirror_fixture.h"

enum { NUMBERS_MAX = 4000 };

/* What was written, by number of the payload, which rises with seq. */
struct model {
    struct mirrored m;
    uint64_t seqs[NUMBERS_MAX]; /* 0: not written, or lost and known to be */
    uint64_t next, confirmed;
    struct wal_position table, before; /* what it has published; and what another one had */
    uint64_t through;                  /* as acknowledged when the mirror ran last */
};

static void run_mirror(struct model *model)
{
    struct error err;
    assert_ok(mirror_run_once(model->m.mirror, &err));
    model->confirmed = mirror_confirmed(model->m.mirror, 0);
}

static void write_some(struct model *model, struct random *random)
{
    uint64_t count = 1 + random_next(random) % 40;
    for (uint64_t i = 0; i < count; i++) {
        assert_true(model->next < NUMBERS_MAX);
        model->seqs[model->next] =
            fixture_append(&model->m.log, model->next, 9 + random_next(random) % 6000);
        model->next++;
    }
}

/* The table publishes up to somewhere. */
static void publish_some(struct model *model, struct random *random, bool is_acked)
{
    struct error err;
    uint64_t end = wal_synced_end(model->m.log.wal, 0).seq;
    uint64_t seq = model->table.seq + random_next(random) % (end - model->table.seq + 1);
    uint64_t chain;
    struct wal_ack ack;
    if (seq == model->table.seq ||
        wal_chain_at(model->m.log.wal, 0, seq, &chain, &err) != STATUS_OK) /* within a void */
        return;
    model->before = model->table;
    model->table = (struct wal_position){.seq = seq, .chain = chain};
    ack.committed = ack.through = model->table;
    if (is_acked)
        assert_ok(wal_ack_table(model->m.log.wal, model->m.log.table, &ack, &err));
}

static void plan_make(struct model *model, struct store **out_store, struct mirror_plan **out_plan)
{
    struct error err;
    assert_ok(store_open(env_real(), model->m.dir, out_store, &err));
    assert_ok(mirror_plan_create(*out_store, NULL, out_plan, &err));
}

/* The log is lost, with all that was not mirrored; what the table holds is known. */
static void lose_and_recover(struct model *model)
{
    struct error err;
    struct store *store;
    struct mirror_plan *plan;
    struct mirrored *m = &model->m;
    struct log_id log = wal_log_id(m->log.wal);
    uint64_t incarnation = wal_incarnation(m->log.wal), term = wal_term(m->log.wal), voided;
    struct wal_known_position known[] = {{.table = "otel.logs", .position = model->table},
                                         {.table = "otel.spans", .position = model->before}};
    mirrored_close(m);
    fixture_remove_tree(m->log.dir);
    plan_make(model, &store, &plan);
    assert_true(log_id_equal(plan->head.log_id, log) && plan->incarnation == incarnation);
    static const char ours[] = "0123456789abcdef0123456789abcdef";
    assert_ok(mirror_claim(store, plan, incarnation + 1, ours, &err));
    assert_ok(mirror_claim(store, plan, incarnation + 1, ours, &err)); /* interrupted, and again */
    assert_status(
        STATUS_BUSY, /* one that began beside it */
        mirror_claim(store, plan, incarnation + 1, "f123456789abcdef0123456789abcdef", &err));
    assert_int_equal(plan->claimed, incarnation > 1 ? incarnation : 0);
    assert_ok(mirror_head_raise(env_real(), store, plan, incarnation + 1, &err));
    assert_status(STATUS_BUSY, /* a second recovery, whose plan is of before */
                  mirror_head_raise(env_real(), store, plan, incarnation + 1, &err));
    assert_ok(mirror_fetch(env_real(), store, plan, m->log.dir, &err));
    assert_int_equal(plan->problem_count, 0);
    struct wal_restore restore = {.log_id = log,
                                  .group_count = plan->head.group_count,
                                  .incarnation = incarnation + 1,
                                  .known = known,
                                  .known_count = model->before.seq  ? 2
                                                 : model->table.seq ? 1
                                                                    : 0};
    mirror_plan_prove(plan, &restore);
    m->log.options.restore = &restore;
    assert_ok(wal_open(env_real(), &m->log.options, &m->log.wal, &err));
    assert_ok(wal_repair(m->log.wal, &voided, &err));
    wal_close(m->log.wal);
    m->log.options.restore = NULL;
    fixture_open(&m->log);
    mirrored_open(m);
    assert_true(wal_incarnation(m->log.wal) == incarnation + 1);
    assert_true(wal_term(m->log.wal) > term + 1000); /* starts that were not mirrored count too */
    mirror_plan_destroy(plan);
    store_close(store);
}

static void check(struct model *model)
{
    static uint64_t numbers[NUMBERS_MAX];
    static bool is_there[NUMBERS_MAX];
    struct error err;
    struct wal_damage damage;
    struct wal_position end;
    struct fixture *log = &model->m.log;
    uint64_t chain, from = wal_reclaimed_through(log->wal, 0, log->table), count = 0;
    struct wal_scan *scan;
    struct wal_view view;
    memset(is_there, 0, sizeof is_there);
    assert_false(wal_damage_at(log->wal, 0, &damage));
    assert_true(from <= model->table.seq); /* nothing is called gone that no table has */
    assert_ok(wal_scan_open(log->wal, 0, log->table, from, &scan, &err));
    while (wal_scan_next(scan, &view, &err) == STATUS_OK) {
        numbers[count] = get_le64(view.payload.data);
        assert_true(numbers[count] < model->next && model->seqs[numbers[count]] == view.seq);
        assert_true(count == 0 || numbers[count] > numbers[count - 1]);
        is_there[numbers[count++]] = true;
    }
    wal_scan_close(scan);
    assert_true(wal_recovered_to(log->wal, 0, &end));
    for (uint64_t n = 0; n < model->next; n++) {
        bool is_safe = model->seqs[n] <= model->confirmed && model->seqs[n] > model->table.seq;
        assert_true(is_there[n] || !is_safe);
        assert_true(!is_there[n] || model->seqs[n] <= end.seq);
        if (!is_there[n] && model->seqs[n] > model->table.seq)
            model->seqs[n] = 0; /* acknowledged as durable alone, and lost */
    }
    if (model->table.seq) { /* E7 */
        enum status status = wal_chain_at(log->wal, 0, model->table.seq, &chain, &err);
        struct wal_ack ack;
        assert_true(wal_ack_get(log->wal, log->table, 0, &ack));
        assert_true(ack.committed.seq == model->table.seq &&
                    ack.committed.chain == model->table.chain);
        assert_true(status != STATUS_OK || chain == model->table.chain);
        assert_true(status == STATUS_OK || model->table.seq <= end.seq);
        assert_true(wal_synced_end(log->wal, 0).seq > model->table.seq);
        if (model->before.seq > end.seq) { /* L25: of each position within the hole */
            assert_ok(wal_chain_at(log->wal, 0, model->before.seq, &chain, &err));
            assert_true(chain == model->before.chain);
        }
    }
}

static void story(uint64_t seed)
{
    struct model *model = mem_alloc_zero(1, sizeof *model);
    struct random random;
    random_init(&random, seed);
    mirrored_init(&model->m, "back");
    model->m.options.range_bytes = 4096 << random_next(&random) % 4;
    mirrored_reopen(&model->m);
    for (int lives = 0; lives < 3; lives++) {
        uint64_t steps = 1 + random_next(&random) % 12;
        for (uint64_t i = 0; i < steps; i++) {
            switch (random_next(&random) % 5) {
            case 0:
            case 1:
                write_some(model, &random);
                break;
            case 2:
                publish_some(model, &random, true);
                break;
            case 3:
                run_mirror(model);
                break;
            default:
                mirrored_reopen(&model->m);
                break;
            }
        }
        if (lives == 0)
            run_mirror(model); /* there is one */
        write_some(model, &random);
        if (random_next(&random) % 2)
            publish_some(model, &random, random_next(&random) % 2);
        lose_and_recover(model);
        check(model);
        run_mirror(model);
    }
    mirrored_deinit(&model->m);
    mem_free(model);
}

static void test_stories(void **state)
{
    const char *wanted = getenv("WAY_BACK_SEED");
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++)
        if (!wanted || strtoull(wanted, NULL, 10) == seed)
            story(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stories),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
