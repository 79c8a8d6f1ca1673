/* SPDX-License-Identifier: Apache-2.0
 *
 * Every row of the decision table E12, in its order, by name.
 */
#include "../unit.h"
#include "flow/publish/publish_internal.h"

/* Our own log: the chain of seq n is n * 10. */
static enum chain_verdict ask_chain(void *context, uint32_t group, struct wal_position position)
{
    (void)group;
    if (context && position.seq <= *(const uint64_t *)context)
        return CHAIN_UNKNOWN; /* below retention */
    return position.chain == position.seq * 10 ? CHAIN_OURS : CHAIN_FOREIGN;
}

static struct positions at(uint64_t seq)
{
    return (struct positions){.count = 1, .at = {{.seq = seq, .chain = seq * 10}}};
}

struct world {
    struct own_state own;
    struct checkpoint checkpoint;
    struct record record;
    struct positions ack, log_end, from;
    struct facts facts;
    char reason[400];
};

/* The table stands at 50, by our commit with sequence 5; the log ends at 100; nothing is open. */
static struct world *calm(void)
{
    static struct world world;
    memset(&world, 0, sizeof world);
    world.own = (struct own_state){.has_property = true,
                                   .has_summary = true,
                                   .positions = at(50),
                                   .stated_groups = 1,
                                   .epoch = {1, 1},
                                   .digest = "d50",
                                   .sequence = 5,
                                   .walk = WALK_FOUND};
    world.checkpoint = (struct checkpoint){.exists = true, .committed = at(50), .through = at(50)};
    world.ack = at(50);
    world.log_end = at(100);
    world.facts = (struct facts){.table_uuid = "u1",
                                 .bound_uuid = "u1",
                                 .own = &world.own,
                                 .epoch = {1, 1},
                                 .checkpoint = &world.checkpoint,
                                 .has_ack = true,
                                 .ack = &world.ack,
                                 .record = &world.record,
                                 .base = {.uuid = "u1",
                                          .snapshot_id = 7,
                                          .last_sequence_number = 5,
                                          .last_updated_ms = 1000},
                                 .log_end = &world.log_end,
                                 .chain = ask_chain};
    return &world;
}

/* The same with the range (50, 60] under way, described on the base that stands. */
static struct world *publishing(void)
{
    struct world *world = calm();
    world->record = (struct record){.exists = true,
                                    .is_descriptor = true,
                                    .epoch = {1, 1},
                                    .from = at(50),
                                    .to = at(60),
                                    .digest = "d60",
                                    .base = world->facts.base};
    return world;
}

static enum decision decide(struct world *world)
{
    return publish_decide(&world->facts, &world->from, world->reason);
}

static void test_E12_another_uuid_halts_until_rebind(void **state)
{
    (void)state;
    struct world *world = calm();
    world->facts.table_uuid = "u2";
    assert_int_equal(decide(world), DECIDE_HALT_REBIND);
    world->facts.bound_uuid = ""; /* not bound yet: any table will do */
    world->checkpoint.exists = false;
    assert_int_equal(decide(world), DECIDE_GO_ON);
}

static void test_E12_a_newer_epoch_makes_us_stand_down(void **state)
{
    (void)state;
    struct world *world = publishing();
    world->own.epoch.counter = 2;
    assert_int_equal(decide(world), DECIDE_STAND_DOWN);
    world->own.epoch = (struct epoch){2, 0}; /* the incarnation decides first (L36) */
    assert_int_equal(decide(world), DECIDE_STAND_DOWN);
    world->own.epoch = (struct epoch){0, 9};
    assert_int_not_equal(decide(world), DECIDE_STAND_DOWN);
}

static void test_E12_a_rolled_back_table_halts(void **state)
{
    (void)state;
    struct world *world = calm();
    world->own.walk = WALK_LOST;
    assert_int_equal(decide(world), DECIDE_HALT);
    world = publishing();
    world->own.walk = WALK_LOST;
    assert_int_equal(decide(world), DECIDE_HALT);
}

static void test_E12_a_record_does_not_outweigh_a_roll_back(void **state)
{
    (void)state;
    struct world *world = publishing(); /* it was committed, then taken down, and is not in main */
    assert_int_equal(decide(world), DECIDE_COMMIT_AGAIN);
    world->checkpoint.committed = at(60);
    assert_int_equal(decide(world), DECIDE_HALT);
    world = publishing(); /* it was committed, and not yet taken down */
    world->facts.is_record_listed = true;
    assert_int_equal(decide(world), DECIDE_HALT);
}

static void test_E12_an_expired_parent_proves_nothing(void **state)
{
    (void)state;
    struct world *world = calm();
    world->own.walk = WALK_EXPIRED;
    world->own.has_summary = false;
    assert_int_equal(decide(world), DECIDE_GO_ON);
    assert_true(positions_equal(&world->from, &world->own.positions));
}

static void test_E12_a_roll_back_stays_one_when_its_traces_expire(void **state)
{
    (void)state;
    struct world *world = calm();
    world->own.walk = WALK_EXPIRED;
    world->own.has_summary = false;
    world->facts.lost_sequence = world->own.sequence;
    assert_int_equal(decide(world), DECIDE_HALT);
    /* The property is gone, and an older commit of ours is found. */
    world->own.walk = WALK_FOUND;
    world->own.has_summary = true;
    world->own.has_property = false;
    world->own.sequence--;
    assert_int_equal(decide(world), DECIDE_HALT);
    world->own.sequence++;
    assert_int_equal(decide(world), DECIDE_GO_ON);
}

static void test_E12_property_or_summary_alone_counts(void **state)
{
    (void)state;
    struct world *world = calm();
    world->own.has_property = false;
    assert_int_equal(decide(world), DECIDE_GO_ON);
    world->own.has_property = true;
    world->own.has_summary = false;
    assert_int_equal(decide(world), DECIDE_GO_ON);
    assert_int_equal(world->from.at[0].seq, 50);
}

static void test_E12_a_group_found_in_neither_is_never_zero(void **state)
{
    (void)state;
    struct world *world = calm();
    world->own.positions.at[0] = (struct wal_position){0, 0};
    world->own.stated_groups = 0;
    assert_int_equal(decide(world), DECIDE_GO_ON);
    assert_int_equal(world->from.at[0].seq, 50); /* the checkpoint's */
    world->checkpoint.exists = false;
    assert_int_equal(decide(world), DECIDE_GO_ON);
    assert_int_equal(world->from.at[0].seq, 50); /* the durable ack's */
}

static void test_E12_a_group_named_at_zero_behind_its_checkpoint_was_rolled_back(void **state)
{
    (void)state;
    struct world *world = calm();
    world->own.positions.at[0] = (struct wal_position){0, 0};
    assert_int_equal(decide(world), DECIDE_HALT);
    world = publishing();
    world->own.positions.at[0] = (struct wal_position){0, 0};
    assert_int_equal(decide(world), DECIDE_HALT);
}

static void test_E12_both_missing_halts_where_a_commit_is_known(void **state)
{
    (void)state;
    struct world *world = calm();
    world->own = (struct own_state){.positions = {.count = 1}};
    assert_int_equal(decide(world), DECIDE_HALT); /* the checkpoint knows */
    world->checkpoint.exists = false;
    assert_int_equal(decide(world), DECIDE_HALT); /* the ack knows */
    world->facts.has_ack = false;
    assert_int_equal(decide(world), DECIDE_GO_ON); /* nobody does: a first publication */
    assert_int_equal(world->from.at[0].seq, 0);
    world->record =
        (struct record){.exists = true, .is_descriptor = true, .from = at(10), .to = at(20)};
    assert_int_equal(decide(world), DECIDE_HALT); /* the journal knows */
}

static void test_E12_on_the_same_base_the_same_commit_again(void **state)
{
    (void)state;
    assert_int_equal(decide(publishing()), DECIDE_COMMIT_AGAIN);
}

static void test_E12_main_unmoved_rewrites_the_list(void **state)
{
    (void)state;
    struct world *world = publishing();
    world->facts.base.last_updated_ms++;
    assert_int_equal(decide(world), DECIDE_REWRITE_LIST);
    world->facts.base.last_sequence_number++;
    assert_int_equal(decide(world), DECIDE_REWRITE_LIST);
}

static void test_E12_main_moved_rebases(void **state)
{
    (void)state;
    struct world *world = publishing();
    world->facts.base.snapshot_id = 8;
    world->facts.base.last_sequence_number = 6;
    assert_int_equal(decide(world), DECIDE_REBASE);
}

static void test_E12_our_digest_at_b_is_done(void **state)
{
    (void)state;
    struct world *world = publishing();
    world->own.positions = at(60);
    snprintf(world->own.digest, sizeof world->own.digest, "d60");
    world->facts.base.snapshot_id = 8;
    assert_int_equal(decide(world), DECIDE_DONE);
}

static void test_E12_past_b_with_our_chain_is_done(void **state)
{
    (void)state;
    struct world *world = publishing();
    world->own.positions = at(80);
    assert_int_equal(decide(world), DECIDE_DONE);
}

static void test_E12_another_digest_at_b_halts(void **state)
{
    (void)state;
    struct world *world = publishing();
    world->own.positions = at(60);
    snprintf(world->own.digest, sizeof world->own.digest, "other");
    assert_int_equal(decide(world), DECIDE_HALT);
}

static void test_E12_past_b_with_another_chain_halts(void **state)
{
    (void)state;
    struct world *world = publishing();
    world->own.positions = at(80);
    world->own.positions.at[0].chain++;
    assert_int_equal(decide(world), DECIDE_HALT);
}

static void test_E12_above_the_end_of_the_log_halts(void **state)
{
    (void)state;
    struct world *world = publishing();
    world->own.positions = at(200);
    assert_int_equal(decide(world), DECIDE_HALT);
    world = calm();
    world->own.positions = at(200);
    assert_int_equal(decide(world), DECIDE_HALT);
}

static void test_E12_below_a_or_the_checkpoint_halts(void **state)
{
    (void)state;
    struct world *world = publishing();
    world->own.positions = at(40);
    assert_int_equal(decide(world), DECIDE_HALT);
    world = calm();
    world->own.positions = at(40);
    assert_int_equal(decide(world), DECIDE_HALT);
}

static void test_E12_inside_the_range_by_a_newer_epoch_discards(void **state)
{
    (void)state;
    struct world *world = publishing();
    world->own.positions = at(55);
    world->own.epoch = world->facts.epoch = (struct epoch){1, 2};
    assert_int_equal(decide(world), DECIDE_DISCARD);
    world->record.epoch = (struct epoch){1, 2}; /* our own epoch cannot have done that */
    assert_int_equal(decide(world), DECIDE_HALT);
}

static void test_E12_mixed_groups_halt(void **state)
{
    (void)state;
    struct world *world = publishing();
    world->own.positions.count = world->record.from.count = world->record.to.count = 2;
    world->log_end.count = world->ack.count = world->checkpoint.committed.count = 2;
    world->log_end.at[1] = at(100).at[0];
    world->record.from.at[1] = world->checkpoint.committed.at[1] = at(5).at[0];
    world->record.to.at[1] = at(9).at[0];
    world->own.positions.at[0] = at(60).at[0]; /* b */
    world->own.positions.at[1] = at(5).at[0];  /* a */
    assert_int_equal(decide(world), DECIDE_HALT);
}

static void test_E7_a_foreign_chain_halts_and_retention_asks_the_ack(void **state)
{
    (void)state;
    struct world *world = calm();
    static uint64_t retained = 70;
    world->facts.context = &retained; /* headers up to 70 are gone */
    assert_int_equal(decide(world), DECIDE_GO_ON);
    world->own.positions.at[0].chain++;
    assert_int_equal(decide(world), DECIDE_HALT);
    world->facts.context = NULL;
    assert_int_equal(decide(world), DECIDE_HALT);
}

static void test_an_intent_does_not_decide(void **state)
{
    (void)state;
    struct world *world = publishing();
    world->record.is_descriptor = false;
    assert_int_equal(decide(world), DECIDE_GO_ON);
}

static void test_positions_and_epochs_survive_their_text(void **state)
{
    (void)state;
    struct positions positions = {.count = 3, .at = {{1, 2}, {0, 0}, {UINT64_MAX, UINT64_MAX}}};
    struct positions back;
    struct buf text = {0};
    positions_to_text(&positions, &text);
    buf_put_byte(&text, '\0');
    assert_true(positions_from_text((const char *)text.data, &back));
    assert_true(positions_equal(&positions, &back));
    static const char *const bad[] = {"", "x", "0:1", "0:1:zz;", "64:1:1", "0:1:1;;", "0:1:1 "};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(positions_from_text(bad[i], &back));
    struct epoch epoch;
    char epoch_text[48];
    epoch_to_text((struct epoch){3, UINT64_MAX}, epoch_text);
    assert_true(epoch_from_text(epoch_text, &epoch));
    assert_true(epoch.incarnation == 3 && epoch.counter == UINT64_MAX);
    assert_false(epoch_from_text("3", &epoch));
    buf_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_E12_another_uuid_halts_until_rebind),
        cmocka_unit_test(test_E12_a_newer_epoch_makes_us_stand_down),
        cmocka_unit_test(test_E12_a_rolled_back_table_halts),
        cmocka_unit_test(test_E12_a_record_does_not_outweigh_a_roll_back),
        cmocka_unit_test(test_E12_an_expired_parent_proves_nothing),
        cmocka_unit_test(test_E12_a_roll_back_stays_one_when_its_traces_expire),
        cmocka_unit_test(test_E12_property_or_summary_alone_counts),
        cmocka_unit_test(test_E12_a_group_found_in_neither_is_never_zero),
        cmocka_unit_test(test_E12_a_group_named_at_zero_behind_its_checkpoint_was_rolled_back),
        cmocka_unit_test(test_E12_both_missing_halts_where_a_commit_is_known),
        cmocka_unit_test(test_E12_on_the_same_base_the_same_commit_again),
        cmocka_unit_test(test_E12_main_unmoved_rewrites_the_list),
        cmocka_unit_test(test_E12_main_moved_rebases),
        cmocka_unit_test(test_E12_our_digest_at_b_is_done),
        cmocka_unit_test(test_E12_past_b_with_our_chain_is_done),
        cmocka_unit_test(test_E12_another_digest_at_b_halts),
        cmocka_unit_test(test_E12_past_b_with_another_chain_halts),
        cmocka_unit_test(test_E12_above_the_end_of_the_log_halts),
        cmocka_unit_test(test_E12_below_a_or_the_checkpoint_halts),
        cmocka_unit_test(test_E12_inside_the_range_by_a_newer_epoch_discards),
        cmocka_unit_test(test_E12_mixed_groups_halt),
        cmocka_unit_test(test_E7_a_foreign_chain_halts_and_retention_asks_the_ack),
        cmocka_unit_test(test_an_intent_does_not_decide),
        cmocka_unit_test(test_positions_and_epochs_survive_their_text),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
